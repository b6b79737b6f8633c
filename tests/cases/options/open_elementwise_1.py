# run: opt
# sizes: n=1
# layout: A[i] at [i // 8, i % 8], padding 0
# layout: B[i] at [i // 8, i % 8], padding undef
# Tiles of eight over an open size are whole for each size, those below eight included, and need no guard.
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(3)

# ---- schedule
sch.transform_layout("B", "A", lambda i: [i // 8, i % 8], pad_value=0.0)
sch.transform_layout("B", "B", lambda i: [i // 8, i % 8], pad_value=lambda a, b: T.undef())
b = sch.get_block("B")
sch.sequential_buffer_access(b, "B")
sch.remove_branching_through_overcompute(b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, b: T.handle, n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
        B = T.match_buffer(b, ((n + T.int64(7)) // T.int64(8), T.int64(8)), "float32")
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not v_i_0 * T.int64(8) + v_i_1 >= n or A[v_i_0, v_i_1] == T.float32(0.0))
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("B"):
                vi = T.axis.spatial((n + T.int64(7)) // T.int64(8) * T.int64(8), i_0 * T.int64(8) + i_1)
                B[vi // T.int64(8), vi % T.int64(8)] = A[vi // T.int64(8), vi % T.int64(8)] * T.float32(3.0)
        for i_0, i_1 in T.grid((n + T.int64(7)) // T.int64(8), T.int64(8)):
            with T.block("buffer_B_padding"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.where(i_0 * T.int64(8) + i_1 >= n)
                B[v_i_0, v_i_1] = T.undef(dtype="float32")
