# run: opt
# `z` reads cells of the next tile, which the fill would have changed.
@T.prim_func
def main(x: T.Buffer((8,), "int8"), pad: T.Buffer((10,), "int8"), z: T.Buffer((10,), "int8")):
    for o in range(5):
        for i in range(2):
            with T.block("pad"):
                v = T.axis.spatial(10, o * 2 + i)
                pad[v] = T.if_then_else(1 <= v and v < 9, x[v - 1], T.int8(0))
        for i in range(2):
        #^^^^^^^^^^^^^^^^ error: `decompose_padding`: the fill would run before all of the loop, in which another statement may read, of what the block has not written in the same iteration, `pad`
        # note: trace.py:2 asked for it: sch.decompose_padding("pad", o)
        # help: decompose at a loop around the block alone
            with T.block("z"):
                v = T.axis.spatial(10, o * 2 + i)
                z[v] = pad[(v + 2) % 10]

# ---- schedule
o, i = sch.get_loops("pad")
sch.decompose_padding("pad", o)
