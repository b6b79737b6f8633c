# run: opt
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
    #^^^^^^^^^^^^^^^^ error: `join_loops`: the loop `k` does not come directly behind another one
    # note: trace.py:5 asked for it: sch.join_loops(l0, l1)
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = 1.0
    for j in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, j)
            B[v] = 2.0
    for k in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, k)
            A[v] = 3.0

# ---- schedule
b0 = sch.get_block(name="A")
b1 = sch.get_block(name="C")
l0, = sch.get_loops(b0)
l1, = sch.get_loops(b1)
sch.join_loops(l0, l1)
