# run: opt
# sizes: n=6
# layout: A[i, k] at [i // 6, k, i % 6], padding 0
# layout: C[i, j] at [i // 6, j, i % 6], padding undef
# Tiles of six rows of an open number of rows.
@T.prim_func
def main(a: T.handle, B: T.Buffer((24, 40), "float32"), c: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 24), "float32")
    C = T.match_buffer(c, (n, 40), "float32")
    for i, j, k in T.grid(n, 40, 24):
        with T.block("mm"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
sch.transform_layout("mm", "A", lambda i, k: [i // 6, k, i % 6], pad_value=0.0)
sch.transform_layout("mm", "C", lambda i, j: [i // 6, j, i % 6], pad_value=lambda a, b, c: T.undef())
b = sch.get_block("mm")
i, j, k = sch.get_loops(b)
io, ii = sch.split(i, factors=[None, 6])
sch.remove_branching_through_overcompute(b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, B: T.Buffer((24, 40), "float32"), c: T.handle, n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(5)) // T.int64(6), 24, T.int64(6)), "float32")
        C = T.match_buffer(c, ((n + T.int64(5)) // T.int64(6), 40, T.int64(6)), "float32")
        for i_0, k, i_1 in T.grid((n + T.int64(5)) // T.int64(6), 24, T.int64(6)):
            with T.block("buffer_A_assumption"):
                v_i_0, v_k, v_i_1 = T.axis.remap("SSS", [i_0, k, i_1])
                T.assume(not v_i_0 * T.int64(6) + v_i_1 >= n or A[v_i_0, v_k, v_i_1] == T.float32(0.0))
        for i_0, i_1, j, k in T.grid((n + T.int64(5)) // T.int64(6), T.int64(6), 40, 24):
            with T.block("mm"):
                vi = T.axis.spatial((n + T.int64(5)) // T.int64(6) * T.int64(6), i_0 * T.int64(6) + i_1)
                vj = T.axis.spatial(40, j)
                vk = T.axis.reduce(24, k)
                with T.init():
                    C[vi // T.int64(6), vj, vi % T.int64(6)] = T.float32(0.0)
                C[vi // T.int64(6), vj, vi % T.int64(6)] = C[vi // T.int64(6), vj, vi % T.int64(6)] + A[vi // T.int64(6), vk, vi % T.int64(6)] * B[vk, vj]
        for i_0, j, i_1 in T.grid((n + T.int64(5)) // T.int64(6), 40, T.int64(6)):
            with T.block("buffer_C_padding"):
                v_i_0, v_j, v_i_1 = T.axis.remap("SSS", [i_0, j, i_1])
                T.where(i_0 * T.int64(6) + i_1 >= n)
                C[v_i_0, v_j, v_i_1] = T.undef(dtype="float32")
