# run: opt --pass merge_adjacent_loops
# What one iteration reads or writes before the other writes it keeps its order; what is in between
# and touches other cells is no obstacle; ranges are equal by proof.


@T.prim_func
def reads_then_writes(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32")):
    for i in range(16):
        B[i] = A[i + 1]
    for i in range(16):
        A[i] = i

@T.prim_func
def reads_too_late(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32")):
    for i in range(16):
        B[i] = A[i]
    for i in range(16):
        A[i + 1] = i

@T.prim_func
def writes_twice(A: T.Buffer((17,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        A[i] = i
    for k in range(5):
        B[k] = k
    for i in range(16):
        A[i] = A[i] * 2

@T.prim_func
def writes_in_another_order(A: T.Buffer((17,), "int32")):
    for i in range(16):
        A[i] = i
    for i in range(16):
        A[i + 1] = 2 * i

@T.prim_func
def equal_ranges(A: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(2, (n * 4 + 11) // 4):
        A[i] = 1
    for i in range(2, n + 2):
        A[i] = A[i] + A[i - 1]

@T.prim_func
def reduction(A: T.Buffer((16,), "int32"), B: T.Buffer((16, 8), "int32"), C: T.Buffer((16,), "int32")):
    for i, k in T.grid(16, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                A[vi] = 0
            A[vi] = A[vi] + B[vi, vk]
    for i in T.serial(16):
        with T.block("double"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] * 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def reads_then_writes(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32")):
        for i in range(16):
            B[i] = A[i + 1]
            A[i] = i

    @T.prim_func
    def reads_too_late(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32")):
        for i in range(16):
            B[i] = A[i]
        for i in range(16):
            A[i + 1] = i

    @T.prim_func
    def writes_twice(A: T.Buffer((17,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = i
            A[i] = A[i] * 2
        for k in range(5):
            B[k] = k

    @T.prim_func
    def writes_in_another_order(A: T.Buffer((17,), "int32")):
        for i in range(16):
            A[i] = i
        for i in range(16):
            A[i + 1] = 2 * i

    @T.prim_func
    def equal_ranges(A: T.Buffer((64,), "int32"), n: T.int32):
        for i in range(2, (n * 4 + 11) // 4):
            A[i] = 1
            A[i] = A[i] + A[i - 1]

    @T.prim_func
    def reduction(A: T.Buffer((16,), "int32"), B: T.Buffer((16, 8), "int32"), C: T.Buffer((16,), "int32")):
        for i in range(16):
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        A[vi] = 0
                    A[vi] = A[vi] + B[vi, vk]
            with T.block("double"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi] * 2
