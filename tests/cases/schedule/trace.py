# run: opt --pass auto_schedule --print-trace
@T.prim_func
def matmul(
    A: T.Buffer((13, 37), "float32"),
    B: T.Buffer((37, 27), "float32"),
    C: T.Buffer((13, 27), "float32"),
):
    T.func_attr({"layout_free_buffers": [1]})
    for i, j, k in T.grid(13, 27, 37):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
