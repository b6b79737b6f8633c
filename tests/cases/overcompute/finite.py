# run: opt --pass remove_branching_through_overcompute --pass-config finite=1 --explain
# semantics: not compared, because the assumptions do not hold for all data
# What is in memory is finite, so that zero times it is zero. What is computed from it may overflow:
# zero times infinity is no number.


@T.prim_func
def loaded(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float32(0))
        T.assume(P[i] == T.undef(dtype="float32"))
    B[0] = T.float32(0)
    for i in range(8):
        if i < 6:
            B[0] = B[0] + A[i] * T.max(T.float32(0) - P[i], P[i])


@T.prim_func
def product(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float32(0))
        T.assume(P[i] == T.undef(dtype="float32"))
    B[0] = T.float32(0)
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=7: B[0] is seen by the caller
            B[0] = B[0] + A[i] * (P[i] * P[i])


@T.prim_func
def exponential(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float32(0))
        T.assume(P[i] == T.undef(dtype="float32"))
    B[0] = T.float32(0)
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=7: B[0] is seen by the caller
            B[0] = B[0] + A[i] * T.exp(P[i])


@T.prim_func
def sum_of_products(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float32(0))
        T.assume(P[i] == T.undef(dtype="float32"))
    B[0] = T.float32(0)
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=7: B[0] is seen by the caller
            B[0] = B[0] + A[i] * (P[i] * T.float32(2) + P[i] * T.float32(3))


@T.prim_func
def proven_range(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float32(0))
        T.assume(P[i] == T.undef(dtype="float32"))
    B[0] = T.float32(0)
    for i in range(8):
        if i < 6:
            B[0] = B[0] + A[i] * (T.exp(T.tanh(P[i])) + P[i] * T.float32(0.25))


@T.prim_func
def narrowed(A: T.Buffer((8,), "float16"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float16")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float16(0))
        T.assume(P[i] == T.undef(dtype="float32"))
    B[0] = T.float16(0)
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=7: B[0] is seen by the caller
            B[0] = B[0] + A[i] * T.Cast("float16", P[i])


@T.prim_func
def argument(A: T.Buffer((8,), "float32"), s: T.float32, B: T.Buffer((1,), "float32")):
    for i in range(8):
        T.assume(i < 6 or A[i] == T.float32(0))
    B[0] = T.float32(0)
    for i in range(8):
        if i < 6:
        #^^^^^^^ remark: the guard `i < 6` stays: what would be written to `B` is used, and is not known to be what is there
        # note: at i=7: B[0] is seen by the caller
            B[0] = B[0] + A[i] * s

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def loaded(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float32(0.0))
            T.assume(P[i] == T.undef(dtype="float32"))
        B[0] = T.float32(0.0)
        for i in range(8):
            B[0] = B[0] + A[i] * T.max(T.float32(0.0) - P[i], P[i])

    @T.prim_func
    def product(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float32(0.0))
            T.assume(P[i] == T.undef(dtype="float32"))
        B[0] = T.float32(0.0)
        for i in range(8):
            if i < 6:
                B[0] = B[0] + A[i] * (P[i] * P[i])

    @T.prim_func
    def exponential(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float32(0.0))
            T.assume(P[i] == T.undef(dtype="float32"))
        B[0] = T.float32(0.0)
        for i in range(8):
            if i < 6:
                B[0] = B[0] + A[i] * T.exp(P[i])

    @T.prim_func
    def sum_of_products(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float32(0.0))
            T.assume(P[i] == T.undef(dtype="float32"))
        B[0] = T.float32(0.0)
        for i in range(8):
            if i < 6:
                B[0] = B[0] + A[i] * (P[i] * T.float32(2.0) + P[i] * T.float32(3.0))

    @T.prim_func
    def proven_range(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float32(0.0))
            T.assume(P[i] == T.undef(dtype="float32"))
        B[0] = T.float32(0.0)
        for i in range(8):
            B[0] = B[0] + A[i] * (T.exp(T.tanh(P[i])) + P[i] * T.float32(0.25))

    @T.prim_func
    def narrowed(A: T.Buffer((8,), "float16"), P: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float16")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float16(0.0))
            T.assume(P[i] == T.undef(dtype="float32"))
        B[0] = T.float16(0.0)
        for i in range(8):
            if i < 6:
                B[0] = B[0] + A[i] * T.Cast("float16", P[i])

    @T.prim_func
    def argument(A: T.Buffer((8,), "float32"), s: T.float32, B: T.Buffer((1,), "float32")):
        for i in range(8):
            T.assume(i < 6 or A[i] == T.float32(0.0))
        B[0] = T.float32(0.0)
        for i in range(8):
            if i < 6:
                B[0] = B[0] + A[i] * s
