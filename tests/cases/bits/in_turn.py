# run: opt
# sizes: n=11
# layout: O[i, j] at [i // 4, j ^ i % 4, i % 4], padding undef
# A swizzle of rows of tiles that another layout made, in indices of two types.
@T.prim_func
def main(a: T.handle, o: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 16), "float32")
    O = T.match_buffer(o, (n, 16), "float32")
    P = T.alloc_buffer((n, 16), "float32")
    for i, j in T.grid(n, 16):
        with T.block("p"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(n, 16):
        with T.block("o"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = P[vi, 15 - vj]

# ---- schedule
sch.transform_layout("p", "P", lambda i, j: [i // 4, i % 4, j], pad_value=0.0)
sch.transform_layout("p", "P", lambda a, b, j: [a, b, j ^ (b * 4)])
sch.transform_layout("o", "O", lambda i, j: [i // 4, j ^ (i % 4), i % 4], pad_value=lambda *at: T.undef())

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, o: T.handle, n: T.int64):
        A = T.match_buffer(a, (n, 16), "float32")
        O = T.match_buffer(o, ((n + T.int64(3)) // T.int64(4), T.int64(16), T.int64(4)), "float32")
        P = T.alloc_buffer(((n + T.int64(3)) // T.int64(4), T.int64(4), T.int64(16)), "float32")
        for i_0, i_1, j in T.grid((n + T.int64(3)) // T.int64(4), T.int64(4), 16):
            with T.block("p"):
                v_i_0, v_i_1, v_j = T.axis.remap("SSS", [i_0, i_1, j])
                P[v_i_0, v_i_1, T.bitwise_xor(T.Cast("int64", v_j), v_i_1 * T.int64(4))] = T.if_then_else(v_i_0 * T.int64(4) + v_i_1 >= n, T.float32(0.0), A[v_i_0 * T.int64(4) + v_i_1, v_j] + T.float32(1.0))
        for i, j in T.grid(n, 16):
            with T.block("o"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi // T.int64(4), T.bitwise_xor(T.Cast("int64", vj), vi % T.int64(4)), vi % T.int64(4)] = P[vi // T.int64(4), vi % T.int64(4), T.bitwise_xor(T.Cast("int64", 15 - vj), vi % T.int64(4) * T.int64(4))]
        for i_0, i_j, i_1 in T.grid((n + T.int64(3)) // T.int64(4), T.int64(16), T.int64(4)):
            with T.block("buffer_O_padding"):
                v_i_0, v_i_j, v_i_1 = T.axis.remap("SSS", [i_0, i_j, i_1])
                T.where(i_0 * T.int64(4) + i_1 >= n)
                O[v_i_0, v_i_j, v_i_1] = T.undef(dtype="float32")
