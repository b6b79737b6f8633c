# run: opt --pass simplify --explain
# Why branches stay: points at which the condition holds and fails, memory of which too little is
# known, a question that is not affine, and a branch that may change what the next one asks.


@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    for i in range(16):
        if i < 14:
        #^^^^^^^^ remark: this branch stays, its condition is not decided
        # note: `i < 14` fails at i=14, and holds at i=0
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
        #^^^^^^^^^^^ remark: this branch stays, its condition is not decided
        # note: `n * m > i` fails at i=0, n=0, m=0, and holds at i=15, n=64, m=64
            B[i] = 2

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
