# run: opt --pass simplify
# Conditions that the range of a size decides.
@T.prim_func
def f(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tir_var_lower_bound": {"n": 4}, "tir_var_upper_bound": {"n": 16}})
    for i in range(n):
        B[i] = A[i]
    for i in range(4):
        if i < n:
            B[i] = T.float32(1)
    if n > 16:
        B[0] = T.float32(2)
    if n > 15:
        B[0] = T.float32(3)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A_handle: T.handle, B_handle: T.handle):
        n = T.int32()
        A = T.match_buffer(A_handle, (n,), "float32")
        B = T.match_buffer(B_handle, (n,), "float32")
        T.func_attr({"tir_var_lower_bound": {"n": 4}, "tir_var_upper_bound": {"n": 16}})
        for i in range(n):
            B[i] = A[i]
        for i in range(4):
            B[i] = T.float32(1.0)
        if n > 15:
            B[0] = T.float32(3.0)
