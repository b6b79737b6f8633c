# run: opt --pass simplify
# A size is at most 3 less than a multiple of 8: what is halved twice and what is halved three times meet.
@T.prim_func
def f(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tir_var_remainders": {"n": [8, 3, 4]}})
    for i in range((n + 3) // 4):
        if i < (n + 7) // 8 * 2:
            B[i] = A[i]
    if (n + 1) // 2 == (n + 7) // 8 * 4:
        B[0] = T.float32(1)
    if n % 8 == 4:
        B[0] = T.float32(2)

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
        T.func_attr({"tir_var_remainders": {"n": [8, 3, 4]}})
        for i in range((n + 3) // 4):
            B[i] = A[i]
        if (n + 7) % 8 >= 6:
            B[0] = T.float32(1.0)
