# run: opt
# layout: A[i, j] at [i * 3 ^ j, j], padding 0
# Not linear in digits, since a product by three carries.
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), B: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(5, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [(i * 3) ^ j, j], pad_value=0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 4), "float32"), B: T.Buffer((5, 4), "float32")):
        for i_j, j in T.grid(16, 4):
            with T.block("buffer_A_assumption"):
                v_i_j, v_j = T.axis.remap("SS", [i_j, j])
                T.assume(not (v_i_j + v_j == 15 or (v_i_j + (v_i_j + v_j) % 2 + v_j % 2 - (v_i_j // 2 * 2 + (v_i_j + v_j) // 2 * 2 + v_j // 2 * 2 + v_i_j + v_j) // 4 * 2 - v_i_j // 2) % 6 * 2 + v_i_j % 2 >= 4) or A[v_i_j, v_j] == T.float32(0.0))
        for i, j in T.grid(5, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[T.bitwise_xor(vi * 3, vj), vj] * T.float32(2.0)
