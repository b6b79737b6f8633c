# run: opt --pass reduce_loop_extents
# Sizes that are open, conditions that mix loops, bindings and both sides of a branch; a bound that
# divides by what is assumed not to be zero.


@T.prim_func
def open_size(A: T.Buffer((32,), "int32"), n: T.int32):
    for i in T.parallel(n):
        if T.likely(i < 10) and i >= 3:
            A[i] = 1

@T.prim_func
def mixed(A: T.Buffer((32, 32), "int32"), n: T.int32):
    for i, j in T.grid(n, 8):
        if 8 * i + j < 20 and j >= i:
            A[i, j] = 1

@T.prim_func
def bound(A: T.Buffer((32, 32), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(4, 12):
        x: T.int32 = i - 4
        if x >= 6:
            for j in range(x):
                if j + x < 9:
                    A[x, j] = B[j]

@T.prim_func
def sides(A: T.Buffer((32,), "int32")):
    for i in T.unroll(8):
        if i == 5:
            A[i] = 1
        else:
            if i > 6:
                A[i] = 2

@T.prim_func
def divides(A: T.Buffer((32,), "int32"), n: T.int32, m: T.int32):
    T.assume(m > 0)
    for i in range(16):
        if i < n // m:
            A[i] = 1

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def open_size(A: T.Buffer((32,), "int32"), n: T.int32):
        for i in T.parallel(3, T.min(n, 10)):
            A[i] = 1

    @T.prim_func
    def mixed(A: T.Buffer((32, 32), "int32"), n: T.int32):
        for i in range(T.min(n, 3)):
            for j in range(i, T.min(20 - i * 8, 8)):
                A[i, j] = 1

    @T.prim_func
    def bound(A: T.Buffer((32, 32), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(10, 12):
            x: T.int32 = i - 4
            for j in range(13 - i):
                A[x, j] = B[j]

    @T.prim_func
    def sides(A: T.Buffer((32,), "int32")):
        for i in T.unroll(5, 8):
            if i == 5:
                A[i] = 1
            elif i > 6:
                A[i] = 2

    @T.prim_func
    def divides(A: T.Buffer((32,), "int32"), n: T.int32, m: T.int32):
        T.assume(m > 0)
        for i in range(T.min(n // m, 16)):
            if i < n // m:
                A[i] = 1
