# run: opt --pass simplify --explain
# Why branches stay: memory of which too little is known, or no longer, a question that is not
# affine, and a branch that may change what the next one asks. A condition that holds here and fails
# there lacks nothing, and is not spoken of.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    for i in range(16):
        if i < 14:
            B[i] = 0
        if A[i] > 3:
        #^^^^^^^^^^ remark: this branch stays, its condition is not decided
        # note: depends on `A[i]`, which is not affine
        # note: no value of `A` is known that decides it
            A[i] = 1
        if A[i] > 3:
        #^^^^^^^^^^ remark: this branch asks what the one before it asks, but is not merged
        # note: the branch before it may change `A`, which `A[i] > 3` reads
        #^^^^^^^^^^ remark: this branch stays, its condition is not decided
        # note: depends on `A[i]`, which is not affine
        # note: no value of `A` is known that decides it
            B[i] = 1
        if n * m > i:
            B[i] = 2
        if n * n * n == i * i * i + 1:
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remark: this branch stays, its condition is not decided
        # note: depends on `n * n * n`, `i * i * i`, which is not affine
            B[i] = 3
    T.assume(A[0] < 5)
    B[0] = A[0]
    A[n % 16] = B[1]
    if A[0] < 7:
    #^^^^^^^^^^ remark: this branch stays, its condition is not decided
    # note: depends on `A[0]`, which is not affine
    # note: no value of `A` is known that decides it
    # note: `A[0] < 5` was known until something that may change it
        B[2] = 4

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
        for i in range(16):
            if i < 14:
                B[i] = 0
            if A[i] > 3:
                A[i] = 1
            if A[i] > 3:
                B[i] = 1
            if n * m > i:
                B[i] = 2
            if n * n * n == i * i * i + 1:
                B[i] = 3
        T.assume(A[0] < 5)
        B[0] = A[0]
        A[n % 16] = B[1]
        if A[0] < 7:
            B[2] = 4
