# run: opt --pass auto_schedule,lower_blocks,refine
# sizes: n=13
# A product with an open number of rows: whole tiles without a guard, and the rows that are left apart.
@T.prim_func
def matmul(a: T.handle, W: T.Buffer((16, 16), "float32"), c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 16), "float32")
    C = T.match_buffer(c, (n, 16), "float32")
    for i, j, k in T.grid(n, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(a: T.handle, W: T.Buffer((16, 16), "float32"), c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 16), "float32")
        C = T.match_buffer(c, (n, 16), "float32")
        for i0_0 in range(n // 6):
            C_local = T.decl_buffer((1, 6, 16), "float32", scope="local")
            for i0_1 in T.unroll(6):
                for i1_1_0 in T.unroll(2):
                    for i1_1_1 in T.vectorized(8):
                        C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = T.float32(0.0)
            for i2 in T.serial(16, annotations={"pragma_unroll_count": 2}):
                for i0_1 in T.unroll(6):
                    for i1_1_0 in T.unroll(2):
                        for i1_1_1 in T.vectorized(8):
                            C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] + A[i0_0 * 6 + i0_1, i2] * W[i2, i1_1_0 * 8 + i1_1_1]
            for i0_1 in T.unroll(6):
                for ax0_0 in T.unroll(2):
                    for ax0_1 in T.vectorized(8):
                        C[i0_0 * 6 + i0_1, ax0_0 * 8 + ax0_1] = C_local[0, i0_1, ax0_0 * 8 + ax0_1]
        if n % 6 == 1:
            C_local = T.decl_buffer((1, 1, 16), "float32", scope="local")
            for i1_1_0 in T.unroll(2):
                for i1_1_1 in T.vectorized(8):
                    C_local[0, 0, i1_1_0 * 8 + i1_1_1] = T.float32(0.0)
            for i2 in T.serial(16, annotations={"pragma_unroll_count": 2}):
                for i1_1_0 in T.unroll(2):
                    for i1_1_1 in T.vectorized(8):
                        C_local[0, 0, i1_1_0 * 8 + i1_1_1] = C_local[0, 0, i1_1_0 * 8 + i1_1_1] + A[n - n % 6, i2] * W[i2, i1_1_0 * 8 + i1_1_1]
            for ax0_0 in T.unroll(2):
                for ax0_1 in T.vectorized(8):
                    C[n - n % 6, ax0_0 * 8 + ax0_1] = C_local[0, 0, ax0_0 * 8 + ax0_1]
        if n % 6 == 2:
            C_local = T.decl_buffer((1, 2, 16), "float32", scope="local")
            for i0_1 in T.unroll(2):
                for i1_1_0 in T.unroll(2):
                    for i1_1_1 in T.vectorized(8):
                        C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = T.float32(0.0)
            for i2 in T.serial(16, annotations={"pragma_unroll_count": 2}):
                for i0_1 in T.unroll(2):
                    for i1_1_0 in T.unroll(2):
                        for i1_1_1 in T.vectorized(8):
                            C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] + A[n + i0_1 - n % 6, i2] * W[i2, i1_1_0 * 8 + i1_1_1]
            for i0_1 in T.unroll(2):
                for ax0_0 in T.unroll(2):
                    for ax0_1 in T.vectorized(8):
                        C[n + i0_1 - n % 6, ax0_0 * 8 + ax0_1] = C_local[0, i0_1, ax0_0 * 8 + ax0_1]
        if n % 6 == 3:
            C_local = T.decl_buffer((1, 3, 16), "float32", scope="local")
            for i0_1 in T.unroll(3):
                for i1_1_0 in T.unroll(2):
                    for i1_1_1 in T.vectorized(8):
                        C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = T.float32(0.0)
            for i2 in T.serial(16, annotations={"pragma_unroll_count": 2}):
                for i0_1 in T.unroll(3):
                    for i1_1_0 in T.unroll(2):
                        for i1_1_1 in T.vectorized(8):
                            C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] + A[n + i0_1 - n % 6, i2] * W[i2, i1_1_0 * 8 + i1_1_1]
            for i0_1 in T.unroll(3):
                for ax0_0 in T.unroll(2):
                    for ax0_1 in T.vectorized(8):
                        C[n + i0_1 - n % 6, ax0_0 * 8 + ax0_1] = C_local[0, i0_1, ax0_0 * 8 + ax0_1]
        if n % 6 == 4:
            C_local = T.decl_buffer((1, 4, 16), "float32", scope="local")
            for i0_1 in T.unroll(4):
                for i1_1_0 in T.unroll(2):
                    for i1_1_1 in T.vectorized(8):
                        C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = T.float32(0.0)
            for i2 in T.serial(16, annotations={"pragma_unroll_count": 2}):
                for i0_1 in T.unroll(4):
                    for i1_1_0 in T.unroll(2):
                        for i1_1_1 in T.vectorized(8):
                            C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] + A[n + i0_1 - n % 6, i2] * W[i2, i1_1_0 * 8 + i1_1_1]
            for i0_1 in T.unroll(4):
                for ax0_0 in T.unroll(2):
                    for ax0_1 in T.vectorized(8):
                        C[n + i0_1 - n % 6, ax0_0 * 8 + ax0_1] = C_local[0, i0_1, ax0_0 * 8 + ax0_1]
        if n % 6 == 5:
            C_local = T.decl_buffer((1, 5, 16), "float32", scope="local")
            for i0_1 in T.unroll(5):
                for i1_1_0 in T.unroll(2):
                    for i1_1_1 in T.vectorized(8):
                        C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = T.float32(0.0)
            for i2 in T.serial(16, annotations={"pragma_unroll_count": 2}):
                for i0_1 in T.unroll(5):
                    for i1_1_0 in T.unroll(2):
                        for i1_1_1 in T.vectorized(8):
                            C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] = C_local[0, i0_1, i1_1_0 * 8 + i1_1_1] + A[n + i0_1 - n % 6, i2] * W[i2, i1_1_0 * 8 + i1_1_1]
            for i0_1 in T.unroll(5):
                for ax0_0 in T.unroll(2):
                    for ax0_1 in T.vectorized(8):
                        C[n + i0_1 - n % 6, ax0_0 * 8 + ax0_1] = C_local[0, i0_1, ax0_0 * 8 + ax0_1]
