# run: opt --pass flatten_buffer
# Each index is in the range of its axis, and their sum is beyond the type of the indices.
@T.prim_func
def beyond(B: T.Buffer((3, 7, 7), "int32")):
    for i, j, k in T.grid(T.int8(3), T.int8(7), T.int8(7)):
        B[i, j, k] = 1


@T.prim_func
def within(B: T.Buffer((2, 7, 7), "int32")):
    for i, j, k in T.grid(T.int8(2), T.int8(7), T.int8(7)):
        B[i, j, k] = 1


@T.prim_func
def unsigned(B: T.Buffer((300, 300), "int32"), C: T.Buffer((3, 255), "int32")):
    for i, j in T.grid(T.uint16(300), T.uint16(300)):
        B[i, j] = 1
    for i, j in T.grid(T.uint8(3), T.uint8(255)):
        C[i, j] = C[i, j] + 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def beyond(B: T.Buffer((3, 7, 7), "int32")):
        B_1 = T.decl_buffer((147,), "int32", data=B.data)
        for i, j, k in T.grid(T.int8(3), T.int8(7), T.int8(7)):
            B_1[T.Cast("int32", i) * 49 + T.Cast("int32", j) * 7 + T.Cast("int32", k)] = 1

    @T.prim_func
    def within(B: T.Buffer((2, 7, 7), "int32")):
        B_1 = T.decl_buffer((98,), "int32", data=B.data)
        for i, j, k in T.grid(T.int8(2), T.int8(7), T.int8(7)):
            B_1[i * T.int8(49) + j * T.int8(7) + k] = 1

    @T.prim_func
    def unsigned(B: T.Buffer((300, 300), "int32"), C: T.Buffer((3, 255), "int32")):
        B_1 = T.decl_buffer((90000,), "int32", data=B.data)
        C_1 = T.decl_buffer((765,), "int32", data=C.data)
        for i, j in T.grid(T.uint16(300), T.uint16(300)):
            B_1[T.Cast("int32", i) * 300 + T.Cast("int32", j)] = 1
        for i, j in T.grid(T.uint8(3), T.uint8(255)):
            C_1[T.Cast("int32", i) * 255 + T.Cast("int32", j)] = C_1[T.Cast("int32", i) * 255 + T.Cast("int32", j)] + 1
