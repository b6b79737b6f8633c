# run: opt --pass remove_branching_through_overcompute --pass-config wrap_indices=1
# semantics: not compared, because the assumptions do not hold for all data
# RFC 0077, "Implicitly write default value of next operator", in integers: what is added is zero, but
# only the modulo keeps it inside of the result.


@T.prim_func
def func(A: T.Buffer((3, 8), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((3, 8), "int32")):
    for io, ii in T.grid(3, 8):
        T.assume((io == 0 and ii >= 2) or io == 1 or (io == 2 and ii < 2) or A[io, ii] == 0)
    for io, ii in T.grid(3, 8):
        B[io, ii] = 0
    for io in T.serial(3):
        for ii in T.serial(8):
            if (io > 0 or ii >= 2) and (io < 2 or ii < 2):
                for fi in T.serial(3):
                    B[io + (ii + fi) // 8, (ii + fi) % 8] = (
                        B[io + (ii + fi) // 8, (ii + fi) % 8] + F[fi] * A[io, ii]
                    )

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((3, 8), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((3, 8), "int32")):
        for io, ii in T.grid(3, 8):
            T.assume(io == 0 and ii >= 2 or io == 1 or io == 2 and ii < 2 or A[io, ii] == 0)
        for io, ii in T.grid(3, 8):
            B[io, ii] = 0
        for io, ii, fi in T.grid(3, 8, 3):
            B[(io + (ii + fi) // 8) % 3, (ii + fi) % 8] = B[(io + (ii + fi) // 8) % 3, (ii + fi) % 8] + F[fi] * A[io, ii]
