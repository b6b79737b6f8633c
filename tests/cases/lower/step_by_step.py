# run: opt --pass lower_blocks,flatten_buffer,vectorize_loop,lift_scratch --print-after-all
@T.prim_func
def f(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
    C = T.alloc_buffer((3, 4), "int32")
    for i in T.serial(3):
        for j in T.vectorized(4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + vj
    for i, j in T.grid(3, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, 3 - vj]

# ---- expected
# after lower_blocks
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
        C = T.decl_buffer((3, 4), "int32")
        for i in range(3):
            for j in T.vectorized(4):
                C[i, j] = A[i, j] + j
        for i, j in T.grid(3, 4):
            B[i, j] = C[i, 3 - j]
# after flatten_buffer
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
        A_1 = T.decl_buffer((12,), "int32", data=A.data)
        B_1 = T.decl_buffer((12,), "int32", data=B.data)
        C = T.decl_buffer((12,), "int32")
        for i in range(3):
            for j in T.vectorized(4):
                C[i * 4 + j] = A_1[i * 4 + j] + j
        for i, j in T.grid(3, 4):
            B_1[i * 4 + j] = C[i * 4 + (3 - j)]
# after vectorize_loop
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
        A_1 = T.decl_buffer((12,), "int32", data=A.data)
        B_1 = T.decl_buffer((12,), "int32", data=B.data)
        C = T.decl_buffer((12,), "int32")
        for i in range(3):
            C[T.Ramp(i * 4, 1, 4)] = A_1[T.Ramp(i * 4, 1, 4)] + T.Ramp(0, 1, 4)
        for i, j in T.grid(3, 4):
            B_1[i * 4 + j] = C[i * 4 + (3 - j)]
# after lift_scratch
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32"), C: T.Buffer((12,), "int32")):
        T.func_attr({"tilewright.workspace": 1})
        A_1 = T.decl_buffer((12,), "int32", data=A.data)
        B_1 = T.decl_buffer((12,), "int32", data=B.data)
        for i in range(3):
            C[T.Ramp(i * 4, 1, 4)] = A_1[T.Ramp(i * 4, 1, 4)] + T.Ramp(0, 1, 4)
        for i, j in T.grid(3, 4):
            B_1[i * 4 + j] = C[i * 4 + (3 - j)]
