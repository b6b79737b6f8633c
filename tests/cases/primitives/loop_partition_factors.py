# run: opt
# Parts of given extents: one is open, what is left over is a part, and a loop may start anywhere.
@T.prim_func
def main(A: T.Buffer((20, 8), "float32"), B: T.Buffer((20, 8), "float32"), n: T.int32):
    T.assume(n >= 4)
    for i in range(2, 20):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi < 10:
                    B[vi, vj] = A[vi, vj]
                else:
                    B[vi, vj] = 0.0
    for k in range(n):
        with T.block("C"):
            vk = T.axis.spatial(n, k)
            A[0, vk % 8] = 1.0

# ---- schedule
b0 = sch.get_block(name="B")
l1, l2 = sch.get_loops(b0)
l3, l4, l5 = sch.loop_partition(l1, factors=[8, None, 1])
sch.parallel(l4)
l6, l7 = sch.loop_partition(l2, factors=[6])
b1 = sch.get_block(name="C")
l8, = sch.get_loops(b1)
sch.loop_partition(l8, [None, 3])

# ---- expected
