# run: opt
# sizes: n=11, m=6
# layout: O[j, i] at [j // 8, i, j % 8 ^ j % 8 // 2], padding undef
# Tiles of open numbers of rows and columns, each swizzled, and a code of Gray in the tiles of what is written.
@T.prim_func
def main(a: T.handle, o: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), "float32")
    O = T.match_buffer(o, (m, n), "float32")
    S = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj]
    for j, i in T.grid(m, n):
        with T.block("tr"):
            vj, vi = T.axis.remap("SS", [j, i])
            O[vj, vi] = S[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("copy", "S", lambda i, j: [i // 8, j // 8, i % 8, (j % 8) ^ (i % 8)])
sch.transform_layout("tr", "O", lambda j, i: [j // 8, i, (j % 8) ^ ((j % 8) >> 1)], pad_value=lambda *at: T.undef())

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, o: T.handle, n: T.int64, m: T.int64):
        A = T.match_buffer(a, (n, m), "float32")
        O = T.match_buffer(o, ((m + T.int64(7)) // T.int64(8), n, T.int64(8)), "float32")
        S = T.alloc_buffer(((n + T.int64(7)) // T.int64(8), (m + T.int64(7)) // T.int64(8), T.int64(8), T.int64(8)), "float32")
        for i, j in T.grid(n, m):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi // T.int64(8), vj // T.int64(8), vi % T.int64(8), T.bitwise_xor(vj % T.int64(8), vi % T.int64(8))] = A[vi, vj]
        for j, i in T.grid(m, n):
            with T.block("tr"):
                vj, vi = T.axis.remap("SS", [j, i])
                O[vj // T.int64(8), vi, T.bitwise_xor(vj % T.int64(8), vj % T.int64(8) // T.int64(2))] = S[vi // T.int64(8), vj // T.int64(8), vi % T.int64(8), T.bitwise_xor(vj % T.int64(8), vi % T.int64(8))] * T.float32(2.0)
        for j_0, i, j_1 in T.grid((m + T.int64(7)) // T.int64(8), n, T.int64(8)):
            with T.block("buffer_O_padding"):
                v_j_0, v_i, v_j_1 = T.axis.remap("SSS", [j_0, i, j_1])
                T.where(T.bitwise_xor(T.bitwise_xor(j_0 * T.int64(8) + j_1, j_1 // T.int64(2)), j_1 // T.int64(4)) >= m)
                O[v_j_0, v_i, v_j_1] = T.undef(dtype="float32")
