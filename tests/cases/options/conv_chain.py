# run: opt --pass simplify,remove_branching_through_overcompute --pass-config finite=1 --pass-config wrap_indices=1
# layout: A[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# layout: C[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# Two convolutions in a row: the second one knows the zeros around what the first one wrote.
@T.prim_func
def func(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), C: T.Buffer((20,), "float32")):
    B = T.alloc_buffer((18,), "float32")
    with T.block("first"):
        for Bi in T.serial(18):
            B[Bi] = 0.0
            for fi in T.serial(3):
                if 0 <= Bi - fi and Bi - fi < 16:
                    B[Bi] = B[Bi] + F[fi] * A[Bi - fi]
    with T.block("second"):
        for Ci in T.serial(20):
            C[Ci] = 0.0
            for fi in T.serial(3):
                if 0 <= Ci - fi and Ci - fi < 18:
                    C[Ci] = C[Ci] + F[fi] * B[Ci - fi]

# ---- schedule
sched.transform_layout(block='first', buffer='A', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.transform_layout(block='first', buffer='B', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.transform_layout(block='second', buffer='C', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.sequential_buffer_access(block='first', buffer='A')
sched.sequential_buffer_access(block='first', buffer='B')
sched.sequential_buffer_access(block='second', buffer='B')
sched.sequential_buffer_access(block='second', buffer='C')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), C: T.Buffer((3, 8), "float32")):
        B = T.alloc_buffer((3, 8), "float32")
        for i_0, i_1 in T.grid(3, 8):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not (v_i_0 == 0 and v_i_1 < 2 or v_i_0 == 2 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.float32(0.0))
        with T.block("first"):
            for Bi_0, Bi_1 in T.grid(3, 8):
                B[Bi_0, Bi_1] = T.float32(0.0)
            for Bi_fi_0, Bi_fi_1, fi in T.grid(3, 8, 3):
                B[(Bi_fi_0 + (Bi_fi_1 + fi) // 8) % 3, (Bi_fi_1 + fi) % 8] = B[(Bi_fi_0 + (Bi_fi_1 + fi) // 8) % 3, (Bi_fi_1 + fi) % 8] + F[fi] * A[Bi_fi_0, Bi_fi_1]
            for i_0, i_1 in T.grid(3, 8):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 == 0 and i_1 < 2 or i_0 == 2 and i_1 >= 4)
                    B[v_i_0, v_i_1] = T.float32(0.0)
        with T.block("second"):
            for Ci_0, Ci_1 in T.grid(3, 8):
                C[Ci_0, Ci_1] = T.float32(0.0)
            for Ci_fi_0, Ci_fi_1, fi in T.grid(3, 8, 3):
                C[(Ci_fi_0 + (Ci_fi_1 + fi) // 8) % 3, (Ci_fi_1 + fi) % 8] = C[(Ci_fi_0 + (Ci_fi_1 + fi) // 8) % 3, (Ci_fi_1 + fi) % 8] + F[fi] * B[Ci_fi_0, Ci_fi_1]
            for i_0, i_1 in T.grid(3, 8):
                with T.block("buffer_C_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 == 0 and i_1 < 2 or i_0 == 2 and i_1 >= 6)
                    C[v_i_0, v_i_1] = T.float32(0.0)
