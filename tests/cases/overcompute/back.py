# run: opt
# There and back: without the guard everything is computed; with it, only what somebody will see.


@T.prim_func
def func(A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(4):
        T.assume(A[4, i] == T.undef(dtype="float32"))
    with T.block("compute"):
        for io, ii in T.grid(4, 4):
            if io < 3 or ii < 2:
                B[io, ii] = 0.0
                for f in T.serial(3):
                    B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
    with T.block("B_pad_value"):
        for io, ii in T.grid(4, 4):
            if io == 3 and ii >= 2:
                B[io, ii] = 0.0

# ---- schedule
sch.remove_branching_through_overcompute(block="compute")
sch.remove_overcompute_through_branching(block="compute")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
        for i in range(4):
            T.assume(A[4, i] == T.undef(dtype="float32"))
        with T.block("compute"):
            for io, ii in T.grid(4, 4):
                if io != 3 or ii < 2:
                    B[io, ii] = T.float32(0.0)
                    for f in range(3):
                        B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
        with T.block("B_pad_value"):
            for io, ii in T.grid(4, 4):
                if io == 3 and ii >= 2:
                    B[io, ii] = T.float32(0.0)
