# run: opt
@T.prim_func
def main(A: T.Buffer((17,), "float32"), B: T.Buffer((16,), "float32")):
    T_buf = T.alloc_buffer((17,))
    for i in range(17):
        with T.block("first"):
            v = T.axis.spatial(17, i)
            T_buf[v] = A[v] * 2.0
    for j in range(17):
    #^^^^^^^^^^^^^^^^^ error: `merge_loops`: the loops over `i` and `j` are not merged: the first writes `T_buf[i]` and the second reads `T_buf[j + 1]`
    # note: at i=1 of the first and j=0 of the second
    # note: trace.py:5 asked for it: sch.merge_loops(l0, l1)
        with T.block("second"):
            v = T.axis.spatial(17, j)
            T.where(j < 16)
            B[v] = T_buf[v + 1]

# ---- schedule
b0 = sch.get_block(name="first")
b1 = sch.get_block(name="second")
l0, = sch.get_loops(b0)
l1, = sch.get_loops(b1)
sch.merge_loops(l0, l1)
