# run: opt
# layout: A[i] at [i // 4, i % 4]
# layout: B[i] at [i // 4, i % 4]
@T.prim_func
def func(
    A: T.Buffer[(16,), "int32"],
    F: T.Buffer[(3,), "int32"],
    B: T.Buffer[(14,), "int32"],
):
    with T.block('compute'):
        for i in T.serial(14):
            B[i] = 0
            for f in T.serial(3):
                B[i] = B[i] + F[f] * A[i + f]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4])
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4])
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((4, 4), "int32")):
        with T.block("compute"):
            for i in range(14):
                B[i // 4, i % 4] = 0
            for i_f_0, i_f_1, f in T.grid(4, 4, 3):
                if i_f_0 * 4 + i_f_1 - f >= 0 and i_f_0 * 4 + i_f_1 - f < 14:
                    B[i_f_0 + (i_f_1 - f) // 4, (i_f_1 - f) % 4] = B[i_f_0 + (i_f_1 - f) // 4, (i_f_1 - f) % 4] + F[f] * A[i_f_0, i_f_1]
