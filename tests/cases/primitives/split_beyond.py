# run: opt
@T.prim_func
def main(A: T.Buffer((64,), "int8")):
    for i in range(64):
    #^^^^^^^^^^^^^^^^^ error: `split`: the size 18446744073709551616 is beyond the integers of 64 bits
    # note: trace.py:2 asked for it: sch.split(l1, factors=[4294967296, 4294967296])
        with T.block("A"):
            vi = T.axis.spatial(64, i)
            A[vi] = T.int8(1)

# ---- schedule
l1, = sch.get_loops("A")
sch.split(l1, factors=[4294967296, 4294967296])
