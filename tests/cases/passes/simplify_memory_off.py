# run: opt --pass simplify --pass-config simplify.propagate_knowns_to_simplify_expressions=0 --pass-config simplify.propagate_knowns_to_prove_conditional=0
# Both uses of what memory is known to hold can be switched off.
@T.prim_func
def f(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    A[0] = 3
    if A[0] == 3:
        B[0] = A[0]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        A[0] = 3
        if A[0] == 3:
            B[0] = 3
