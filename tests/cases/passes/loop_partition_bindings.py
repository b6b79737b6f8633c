# run: opt --pass loop_partition
# Conditions that are bound, selections, and a bound that may be beyond an open end.


@T.prim_func
def bound(A: T.Buffer((16,), "int32"), n: T.int32):
    for i in T.serial(n, annotations={"pragma_loop_partition_hint": 1}):
        first: T.bool = i < 5
        A[i] = T.if_then_else(first, 1, 0)

@T.prim_func
def selected(A: T.Buffer((16,), "int32")):
    for i in T.parallel(2, 16, annotations={"pragma_loop_partition_hint": 1}):
        A[i] = T.Select(i < 5, 1, T.Select(i >= 9, 4, 2))

@T.prim_func
def reduction(A: T.Buffer((16,), "int32"), B: T.Buffer((16, 16), "int32")):
    for i in range(16):
        for k in T.serial(16, annotations={"pragma_loop_partition_hint": 1}):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(k < 13)
                with T.init():
                    A[vi] = 0
                A[vi] = A[vi] + B[vi, vk]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def bound(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(T.min(n, 5)):
            first: T.bool = i < 5
            A[i] = 1
        for i in range(n - T.min(n, 5)):
            first: T.bool = i + T.min(n, 5) < 5
            A[i + T.min(n, 5)] = 0

    @T.prim_func
    def selected(A: T.Buffer((16,), "int32")):
        for i in T.parallel(3):
            A[i + 2] = 1
        for i in T.parallel(4):
            A[i + 5] = 2
        for i in T.parallel(7):
            A[i + 9] = 4

    @T.prim_func
    def reduction(A: T.Buffer((16,), "int32"), B: T.Buffer((16, 16), "int32")):
        for i, k in T.grid(16, 13):
            with T.block("sum"):
                vi = T.axis.spatial(16, i)
                vk = T.axis.reduce(16, k)
                with T.init():
                    A[vi] = 0
                A[vi] = A[vi] + B[vi, vk]
