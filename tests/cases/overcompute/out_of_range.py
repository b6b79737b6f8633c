# run: opt --pass remove_branching_through_overcompute --explain
# As RFC 0077 has it, the window leaves the input: the guard stays.


@T.prim_func
def func(A: T.Buffer((4, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
    with T.block("compute"):
        for io, ii in T.grid(4, 4):
            if 4 * io + ii < 14:
            #^^^^^^^^^^^^^^^^^^ remark: the guard `4 * io + ii < 14` stays: `A` would be accessed out of range
            # note: at io=3, ii=2, f=2: A[4, 0] is out of range
            # help: `wrap_indices` takes such indices modulo the extent, where that helps
                B[io, ii] = 0.0
                for f in T.serial(3):
                    B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
        for io, ii in T.grid(4, 4):
            if io == 3 and ii >= 2:
            #^^^^^^^^^^^^^^^^^^^^^ remark: the guard `io == 3 and ii >= 2` stays: what would be written to `B` is used, and is not known to be what is there
            # note: at io=0, ii=0: B[0, 0] is seen by the caller
                B[io, ii] = 0.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
        with T.block("compute"):
            for io, ii in T.grid(4, 4):
                if 4 * io + ii < 14:
                    B[io, ii] = T.float32(0.0)
                    for f in range(3):
                        B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
            for io, ii in T.grid(4, 4):
                if io == 3 and ii >= 2:
                    B[io, ii] = T.float32(0.0)
