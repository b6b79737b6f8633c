# run: opt
# layout: A[i, j] at [i & 1 | (j & 1) << 1 | (i & 2) << 1 | (j & 2) << 2 | (i & 4) << 2 | (j & 4) << 3], padding 0
# Morton order of a ragged square: digits of both indices in turn.
@T.prim_func
def main(A: T.Buffer((7, 5), "float32"), B: T.Buffer((7, 5), "float32")):
    for i, j in T.grid(7, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [(i & 1) | (j & 1) << 1 | (i & 2) << 1 | (j & 2) << 2 | (i & 4) << 2 | (j & 4) << 3], pad_value=0.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((53,), "float32"), B: T.Buffer((7, 5), "float32")):
        for i_j in range(53):
            with T.block("buffer_A_assumption"):
                v_i_j = T.axis.spatial(53, i_j)
                T.assume(not (v_i_j // 16 * 4 + v_i_j // 4 * 2 + v_i_j % 2 >= v_i_j // 8 * 4 + 7 and (v_i_j % 4 >= 2 or v_i_j % 16 >= 8 or v_i_j < 32)) or A[v_i_j] == T.float32(0.0))
        for i, j in T.grid(7, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj // 4 * 16 + vi // 4 * 8 + vj // 2 * 4 + vj * 2 + vi // 2 * 2 + vi] * T.float32(2.0)
