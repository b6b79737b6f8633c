# run: opt
# The extents are compared as numbers, also where the type of the loop does not hold them.
@T.prim_func
def main(A: T.Buffer((200,), "float32")):
    for i in range(T.uint8(200)):
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: `loop_partition`: the loop `i` is not taken apart
    # note: the extents take 300 iterations, more than the T.uint8(200) of the loop
    # note: trace.py:1 asked for it: sch.loop_partition(sch.get_loops("B")[0], factors=[150, 150])
        with T.block("B"):
            v = T.axis.spatial(T.uint8(200), i)
            A[v] = 1.0

# ---- schedule
sch.loop_partition(sch.get_loops("B")[0], factors=[150, 150])
