# run: opt --pass remove_branching_through_overcompute --explain
# semantics: not compared, because `f` is not there to be called
# What is overwritten later still decides what an update of its own cell reads, whether it divides
# by zero, and whether something happens that may fail. Where the update only passes the value on, the
# guard goes.


@T.prim_func
def index(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = i + 2
    for i in range(8):
        B[i] = A[B[i]]
    for i in range(8):
        B[i] = 0


@T.prim_func
def divisor(B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 1
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = 6 - i
    for i in range(8):
        B[i] = 100 // B[i]
    for i in range(8):
        B[i] = 0


@T.prim_func
def remainder(B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 1
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = 6 - i
    for i in range(8):
        B[i] = B[i] + T.truncmod(100, B[i])
    for i in range(8):
        B[i] = 0


@T.prim_func
def shift(B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 1
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = 5 - i
    for i in range(8):
        B[i] = T.shift_left(1, B[i])
    for i in range(8):
        B[i] = 0


@T.prim_func
def bound(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = i + 3
    for i in range(8):
        for j in range(B[i]):
            C[j] = A[j]
        B[i] = B[i] + 1
    for i in range(8):
        B[i] = 0


@T.prim_func
def call(B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read at i=0 before it is written again
            B[i] = i
    for i in range(8):
        B[i] = T.call_extern("int32", "f", B[i])
    for i in range(8):
        B[i] = 0


@T.prim_func
def condition(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = i + 1
    for i in range(8):
        B[i] = T.if_then_else(B[i] < 7, A[i + 1 - T.min(B[i], 1)], 0)
    for i in range(8):
        B[i] = 0


@T.prim_func
def binding(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=6: B[6] is read before it is written again
            B[i] = i + 2
    for i in range(8):
        B[i] = T.Let(A[x], where={x: B[i]})
    for i in range(8):
        B[i] = 0


@T.prim_func
def passed_on(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        if i < 6:
            B[i] = i + 2
    for i in range(8):
        B[i] = B[i] // 3 + A[i]
    for i in range(6, 8):
        B[i] = 0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def index(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 0
        for i in range(8):
            if i < 6:
                B[i] = i + 2
        for i in range(8):
            B[i] = A[B[i]]
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def divisor(B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 1
        for i in range(8):
            if i < 6:
                B[i] = 6 - i
        for i in range(8):
            B[i] = 100 // B[i]
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def remainder(B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 1
        for i in range(8):
            if i < 6:
                B[i] = 6 - i
        for i in range(8):
            B[i] = B[i] + T.truncmod(100, B[i])
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def shift(B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 1
        for i in range(8):
            if i < 6:
                B[i] = 5 - i
        for i in range(8):
            B[i] = T.shift_left(1, B[i])
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def bound(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 0
        for i in range(8):
            if i < 6:
                B[i] = i + 3
        for i in range(8):
            for j in range(B[i]):
                C[j] = A[j]
            B[i] = B[i] + 1
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def call(B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 0
        for i in range(8):
            if i < 6:
                B[i] = i
        for i in range(8):
            B[i] = T.call_extern("int32", "f", B[i])
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def condition(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 0
        for i in range(8):
            if i < 6:
                B[i] = i + 1
        for i in range(8):
            B[i] = T.if_then_else(B[i] < 7, A[i + 1 - T.min(B[i], 1)], 0)
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def binding(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = 0
        for i in range(8):
            if i < 6:
                B[i] = i + 2
        for i in range(8):
            B[i] = T.Let(A[x], where={x: B[i]})
        for i in range(8):
            B[i] = 0

    @T.prim_func
    def passed_on(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = i + 2
        for i in range(8):
            B[i] = B[i] // 3 + A[i]
        for i in range(6, 8):
            B[i] = 0
