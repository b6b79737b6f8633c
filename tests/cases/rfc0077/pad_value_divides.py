# run: opt
# The first axis is 3 in the padding, the second 2 or 3.
@T.prim_func
def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: `transform_layout`: the pad value divides by `i_1 - 2`, which may be zero in the padding
        # note: at i_0=3, i_1=2
        # note: trace.py:1 asked for it: sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=lambda a, b: 6 // (b - 2))
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] + 1
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]

# ---- schedule
sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=lambda a, b: 6 // (b - 2))
