# run: opt --pass simplify
# What is known at a place: bindings keep what was read, assertions are known after them, views
# of a buffer end what is known of it, and a store ends what is known of its cell only.
@T.prim_func
def bindings(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        x: T.int32 = i // 4
        y: T.int32 = x * 4 + i % 4
        if y == i:
            B[y] = A[i]
        z: T.int32 = A[x]
        if z > 5:
            if z > 3:
                B[i] = z
        A[x] = 0
        if z > 3:
            B[i] = 7
    A[0] = 3
    before: T.int32 = A[0]
    A[0] = 4
    if before == 3:
        B[1] = A[0] - before


@T.prim_func
def assertions(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
    assert n < 8, "small"
    assert n < 9, "smaller"
    if n < 8:
        B[0] = 1
    for i in range(16):
        if i < n:
            assert i < 7, "near"
            if i <= 6:
                B[i] = A[i]


@T.prim_func
def views(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    V = T.decl_buffer((4, 4), "int32", data=A.data)
    A[5] = 7
    C[0] = A[5]
    V[1, 1] = C[1]
    C[2] = A[5]
    T.assume(A[7] < 100)
    if A[7] < 101:
        V[1, 3] = C[8]
        if A[7] < 101:
            C[5] = 1


@T.prim_func
def cells(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(15):
        if A[i] < 8:
            A[i + 1] = B[i]
        if A[i] < 8:
            B[i] = 2
        if A[i] < 8:
            A[i] = B[15]
        if A[i] < 8:
            B[i] = 3

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def bindings(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            x: T.int32 = i // 4
            y: T.int32 = i
            B[y] = A[i]
            z: T.int32 = A[x]
            if z > 5:
                B[i] = z
            A[x] = 0
            if z > 3:
                B[i] = 7
        A[0] = 3
        before: T.int32 = T.int32(3)
        A[0] = 4
        B[1] = 1

    @T.prim_func
    def assertions(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
        assert n < 8, "small"
        B[0] = 1
        for i in range(16):
            if i < n:
                B[i] = A[i]

    @T.prim_func
    def views(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        V = T.decl_buffer((4, 4), "int32", data=A.data)
        A[5] = 7
        C[0] = 7
        V[1, 1] = C[1]
        C[2] = A[5]
        T.assume(A[7] < 100)
        V[1, 3] = C[8]
        if A[7] < 101:
            C[5] = 1

    @T.prim_func
    def cells(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(15):
            if A[i] < 8:
                A[i + 1] = B[i]
                B[i] = 2
                A[i] = B[15]
            if A[i] < 8:
                B[i] = 3
