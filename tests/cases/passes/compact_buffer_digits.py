# run: opt --pass compact_buffer
# sizes: n=3
# A loop over pairs, whose variable is a quotient and a remainder: where both are told, other iterations have other cells.


# Each branch has the rows of one remainder to itself.
@T.prim_func
def apart(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 2, 16), "float32")
    B = T.match_buffer(b, (n, 2, 16), "float32")
    L = T.decl_buffer((n, 2, 16), "float32", scope="local")
    for f in T.parallel(n * 2):
        if f % 2 < 1:
            for l in range(16):
                L[f // 2, 0, l] = A[f // 2, 0, l]
            for l in range(16):
                B[f // 2, 0, l] = L[f // 2, 0, 15 - l]
        else:
            for l in range(16):
                L[f // 2, 1, l] = A[f // 2, 1, l]
            for l in range(16):
                B[f // 2, 1, l] = L[f // 2, 1, 15 - l]


# The second iteration of a pair reads what the first one wrote.
@T.prim_func
def handed_over(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 16), "float32")
    B = T.match_buffer(b, (n, 16), "float32")
    L = T.decl_buffer((n, 16), "float32", scope="local")
    for f in range(n * 2):
        if f % 2 < 1:
            for l in range(16):
                L[f // 2, l] = A[f // 2, l]
        else:
            for l in range(16):
                B[f // 2, l] = L[f // 2, 15 - l]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def apart(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 2, 16), "float32")
        B = T.match_buffer(b, (n, 2, 16), "float32")
        for f in T.parallel(n * 2):
            if f % 2 < 1:
                L = T.decl_buffer((1, 1, 16), "float32", scope="local")
                for l in range(16):
                    L[0, 0, l] = A[f // 2, 0, l]
                for l in range(16):
                    B[f // 2, 0, l] = L[0, 0, 15 - l]
            else:
                L = T.decl_buffer((1, 1, 16), "float32", scope="local")
                for l in range(16):
                    L[0, 0, l] = A[f // 2, 1, l]
                for l in range(16):
                    B[f // 2, 1, l] = L[0, 0, 15 - l]

    @T.prim_func
    def handed_over(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 16), "float32")
        B = T.match_buffer(b, (n, 16), "float32")
        L = T.decl_buffer((n, 16), "float32", scope="local")
        for f in range(n * 2):
            if f % 2 < 1:
                for l in range(16):
                    L[f // 2, l] = A[f // 2, l]
            else:
                for l in range(16):
                    B[f // 2, l] = L[f // 2, 15 - l]
