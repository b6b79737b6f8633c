# run: run --seed 1
# The distance of points whose squares overflow, and the number of bits of numbers.
@T.prim_func
def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((2,), "int32")):
    n = T.allocate_const([0, 1, 1000, -1], "int64", [4])
    bits = T.decl_buffer((4,), "int64", data=n)
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = 64 - T.clz(bits[v])
    for i in range(2):
        with T.block("C"):
            v = T.axis.spatial(2, i)
            C[v] = T.clz(T.Cast("uint8", v + 3)) * 100 + T.clz(v)
    for i, j in T.grid(2, 3):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.hypot(T.float32(3e30) * T.Cast("float32", vi), T.Cast("float32", vj) * T.float32(4e30))

# ---- expected
# A: float32 [2, 3] 0 4e30 8e30 3e30 5e30 8.544e30
# B: int32 [4] 0 1 10 64
# C: int32 [2] 632 531
