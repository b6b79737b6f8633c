# run: opt --pass lower_opaque_block
# Strides that are parameters, of arguments and of a buffer inside of a block.
@T.prim_func
def f(a: T.handle, c: T.handle, n: T.int32, s0: T.int32, s1: T.int32, t0: T.int32, t1: T.int32):
    A = T.match_buffer(a, (16, 16), "float32", strides=[s0, s1])
    C = T.match_buffer(c, (n, 16), "float32", strides=[t0, t1])
    for i, j in T.grid(n, 16):
        with T.block(""):
            B = T.alloc_buffer((17, 17), "float32", strides=[s0 + 1, s1])
            for k in range(16):
                with T.block(""):
                    T.reads(A[i % 16, j])
                    T.writes(B[i % 16, (j + k) % 17])
                    B[i % 16, (j + k) % 17] = A[i % 16, j] + T.float32(1)
            with T.block(""):
                C[i, j] = B[i % 16, j] * T.float32(2)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, c: T.handle, n: T.int32, s0: T.int32, s1: T.int32, t0: T.int32, t1: T.int32):
        A = T.match_buffer(a, (16, 16), "float32", strides=(s0, s1))
        C = T.match_buffer(c, (n, 16), "float32", strides=(t0, t1))
        for i, j in T.grid(n, 16):
            B = T.decl_buffer((17, 17), "float32", strides=(s0 + 1, s1), annotations={"buffer_allocated_addr": [], "buffer_data_alignment": 64})
            for k in range(16):
                B[i % 16, (j + k) % 17] = A[i % 16, j] + T.float32(1.0)
            C[i, j] = B[i % 16, j] * T.float32(2.0)
