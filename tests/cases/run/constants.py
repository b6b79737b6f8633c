# run: run --seed 3
@T.prim_func
def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
    weights = T.allocate_const([1, 0.5, 2.0, -1.5, 3, 0.0], "float32", [2, 3])
    keep = T.allocate_const([True, False, True], "bool", [3])
    keep_1 = T.decl_buffer((3,), "bool", data=keep)
    for i, j in T.grid(2, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(keep_1[vj], A[vi, vj] * weights[vi, vj], T.float32(7))

# ---- expected
# B: float32 [2, 3] -0.7731 7 0.4519 1.2814 7 0
