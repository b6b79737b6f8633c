# run: opt --pass hoist_expression
# Conditions move to the outermost loop that they do not depend on: of statements, of expressions,
# and parts of them. What is decided in a branch is gone there.
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), n: T.int32):
    for i, j, k in T.grid(4, 4, 4):
        if j < 3:
            if i < 2:
                A[i, j] = 0.0
            else:
                A[i, j] = 1.0
        else:
            if i < 1:
                A[i, j] = 2.0
    for i, j in T.grid(4, 4):
        if i == 0 and j < 2:
            B[i, j] = 0.0
    for i, j in T.grid(4, 4):
        C[i, j] = T.if_then_else(n > 0 and i < 2, 1.0, 2.0)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), n: T.int32):
        for i in range(4):
            if i < 2:
                if i < 1:
                    for j in range(4):
                        if j < 3:
                            for k in range(4):
                                A[i, j] = T.float32(0.0)
                        else:
                            for k in range(4):
                                A[i, j] = T.float32(2.0)
                else:
                    for j in range(4):
                        if j < 3:
                            for k in range(4):
                                A[i, j] = T.float32(0.0)
            else:
                for j in range(4):
                    if j < 3:
                        for k in range(4):
                            A[i, j] = T.float32(1.0)
        for i in range(4):
            if i == 0:
                for j in range(4):
                    if j < 2:
                        B[i, j] = T.float32(0.0)
        if n > 0:
            for i in range(4):
                if i < 2:
                    for j in range(4):
                        C[i, j] = T.float32(1.0)
                else:
                    for j in range(4):
                        C[i, j] = T.float32(2.0)
        else:
            for i, j in T.grid(4, 4):
                C[i, j] = T.float32(2.0)
