# run: opt --pass flatten_buffer
# Strides and indices of 2^33 elements are of int64.
# semantics: not compared, because the buffer does not fit memory.
@T.prim_func
def f(A: T.Buffer((2, 65536, 65536), "int8"), i: T.int32, j: T.int32, k: T.int32):
    A[i, j, k] = T.int8(1)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((2, 65536, 65536), "int8"), i: T.int32, j: T.int32, k: T.int32):
        A_1 = T.decl_buffer((T.int64(8589934592),), "int8", data=A.data)
        A_1[T.Cast("int64", i) * T.int64(4294967296) + T.Cast("int64", j) * T.int64(65536) + T.Cast("int64", k)] = T.int8(1)
