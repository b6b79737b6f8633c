# run: opt --pass reduce_loop_extents
# A parallel loop keeps a number of iterations that is known, where sizes would decide it.
@T.prim_func
def f(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 32), "int32")
    for i in T.parallel(6):
        if i < 4:
            for j in range(n // 3):
                A[j, i] = 0
        else:
            for j in range(n % 3):
                A[n // 3 + j, i] = 1
    for i in T.parallel(6):
        if i < 4:
            A[0, i] = 2

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 32), "int32")
        for i in T.parallel(6):
            if i < 4:
                for j in range(n // 3):
                    A[j, i] = 0
            else:
                for j in range(n % 3):
                    A[n // 3 + j, i] = 1
        for i in T.parallel(4):
            A[0, i] = 2
