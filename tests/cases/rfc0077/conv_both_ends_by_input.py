# run: opt
# layout: A[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# layout: B[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
@T.prim_func
def main(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((18,), "float32")):
    with T.block("compute"):
        for Bi in range(18):
            B[Bi] = 0.0
            for fi in range(3):
                if 0 <= Bi - fi and Bi - fi < 16:
                    B[Bi] = B[Bi] + F[fi] * A[Bi - fi]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [(i + 2) // 8, (i + 2) % 8], pad_value=0.0)
sched.transform_layout(block='compute', buffer='B', lambda i: [(i + 2) // 8, (i + 2) % 8], pad_value=0.0)
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
        for i_0, i_1 in T.grid(3, 8):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not (v_i_0 == 0 and v_i_1 < 2 or v_i_0 == 2 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.float32(0.0))
        with T.block("compute"):
            for Bi in range(18):
                B[(Bi + 2) // 8, (Bi + 2) % 8] = T.float32(0.0)
            for Bi_fi_0, Bi_fi_1, fi in T.grid(3, 8, 3):
                if Bi_fi_0 * 8 + Bi_fi_1 + fi - 2 >= 0 and Bi_fi_0 * 8 + Bi_fi_1 + fi - 2 < 18:
                    if (Bi_fi_0 >= 1 or Bi_fi_1 >= 2) and (Bi_fi_0 < 2 or Bi_fi_1 < 2):
                        B[Bi_fi_0 + (Bi_fi_1 + fi) // 8, (Bi_fi_1 + fi) % 8] = B[Bi_fi_0 + (Bi_fi_1 + fi) // 8, (Bi_fi_1 + fi) % 8] + F[fi] * A[Bi_fi_0, Bi_fi_1]
            for i_0, i_1 in T.grid(3, 8):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 == 0 and i_1 < 2 or i_0 == 2 and i_1 >= 4)
                    B[v_i_0, v_i_1] = T.float32(0.0)
