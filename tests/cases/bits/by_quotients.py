# run: opt
# sizes: n=11, m=70
# layout: O[i, j] at [i, j // 32, j % 2 * 16 + j // 2 % 2 * 8 + j // 4 % 2 * 4 + j // 8 % 2 * 2 + j // 16 % 2], padding undef
# Morton order in tiles of open numbers of rows and columns, and digits turned round, as quotients and remainders.
@T.prim_func
def main(a: T.handle, o: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), "float32")
    O = T.match_buffer(o, (n, m), "float32")
    S = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(n, m):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = S[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("copy", "S", lambda i, j: [i // 8, j // 8, (i % 2) + (j % 2) * 2 + (i // 2 % 2) * 4 + (j // 2 % 2) * 8 + (i // 4 % 2) * 16 + (j // 4 % 2) * 32], pad_value=0.0)
sch.transform_layout("out", "O", lambda i, j: [i, j // 32, (j % 2) * 16 + (j // 2 % 2) * 8 + (j // 4 % 2) * 4 + (j // 8 % 2) * 2 + j // 16 % 2], pad_value=lambda *at: T.undef())

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, o: T.handle, n: T.int64, m: T.int64):
        A = T.match_buffer(a, (n, m), "float32")
        O = T.match_buffer(o, (n, (m + T.int64(31)) // T.int64(32), T.int64(32)), "float32")
        S = T.alloc_buffer(((n + T.int64(7)) // T.int64(8), (m + T.int64(7)) // T.int64(8), T.int64(64)), "float32")
        for i, j, i_j in T.grid((n + T.int64(7)) // T.int64(8), (m + T.int64(7)) // T.int64(8), T.int64(64)):
            with T.block("copy"):
                v_i, v_j, v_i_j = T.axis.remap("SSS", [i, j, i_j])
                S[v_i, v_j, v_i_j] = T.if_then_else(v_i * T.int64(8) + v_i_j // T.int64(16) % T.int64(2) * T.int64(4) + v_i_j // T.int64(4) % T.int64(2) * T.int64(2) + v_i_j % T.int64(2) >= n or v_j * T.int64(8) + v_i_j // T.int64(32) * T.int64(4) + v_i_j // T.int64(8) % T.int64(2) * T.int64(2) + v_i_j // T.int64(2) % T.int64(2) >= m, T.float32(0.0), A[v_i * T.int64(8) + v_i_j // T.int64(16) % T.int64(2) * T.int64(4) + v_i_j // T.int64(4) % T.int64(2) * T.int64(2) + v_i_j % T.int64(2), v_j * T.int64(8) + v_i_j // T.int64(32) * T.int64(4) + v_i_j // T.int64(8) % T.int64(2) * T.int64(2) + v_i_j // T.int64(2) % T.int64(2)] + T.float32(1.0))
        for i, j in T.grid(n, m):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj // T.int64(32), vj * T.int64(16) - vj // T.int64(2) * T.int64(24) - vj // T.int64(4) * T.int64(12) - vj // T.int64(8) * T.int64(6) - vj // T.int64(16) * T.int64(3) - vj // T.int64(32) * T.int64(2)] = S[vi // T.int64(8), vj // T.int64(8), vj // T.int64(4) * T.int64(16) + vi // T.int64(4) * T.int64(8) + vj // T.int64(2) * T.int64(4) + vj * T.int64(2) + vi // T.int64(2) * T.int64(2) + vi - vj // T.int64(8) * T.int64(64) - vi // T.int64(8) * T.int64(32)] * T.float32(2.0)
        for i, j_0, j_1 in T.grid(n, (m + T.int64(31)) // T.int64(32), T.int64(32)):
            with T.block("buffer_O_padding"):
                v_i, v_j_0, v_j_1 = T.axis.remap("SSS", [i, j_0, j_1])
                T.where(j_1 // T.int64(2) * T.int64(24) + j_1 // T.int64(4) * T.int64(12) + j_1 // T.int64(8) * T.int64(6) + j_1 // T.int64(16) * T.int64(3) + m <= j_0 * T.int64(32) + j_1 * T.int64(16))
                O[v_i, v_j_0, v_j_1] = T.undef(dtype="float32")
