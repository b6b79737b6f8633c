# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# layout: B[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# For every size. Padding at both ends, from an offset.
@T.prim_func
def func(a: T.handle, F: T.Buffer((3,), "float32"), b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n + 2,), "float32")
    with T.block("compute"):
        for Bi in T.serial(n + 2):
            B[Bi] = 0.0
            for fi in T.serial(3):
                if 0 <= Bi - fi and Bi - fi < n:
                    B[Bi] = B[Bi] + F[fi] * A[Bi - fi]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.transform_layout(block='compute', buffer='B', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(a: T.handle, F: T.Buffer((3,), "float32"), b: T.handle, n: T.int64):
        A = T.match_buffer(a, ((n + T.int64(9)) // T.int64(8), T.int64(8)), "float32")
        B = T.match_buffer(b, ((n + T.int64(11)) // T.int64(8), T.int64(8)), "float32")
        for i_0, i_1 in T.grid((n + T.int64(9)) // T.int64(8), T.int64(8)):
            with T.block("buffer_A_assumption"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.assume(not (v_i_0 == T.int64(0) and v_i_1 < T.int64(2) or v_i_0 * T.int64(8) + v_i_1 >= n + T.int64(2)) or A[v_i_0, v_i_1] == T.float32(0.0))
        with T.block("compute"):
            for Bi_0, Bi_1 in T.grid((n + T.int64(11)) // T.int64(8), T.int64(8)):
                B[Bi_0, Bi_1] = T.float32(0.0)
                for fi in range(3):
                    if Bi_0 * T.int64(8) + Bi_1 >= T.Cast("int64", fi) + T.int64(2) and Bi_0 * T.int64(8) + Bi_1 < n + T.Cast("int64", fi) + T.int64(2):
                        B[Bi_0, Bi_1] = B[Bi_0, Bi_1] + F[fi] * A[Bi_0 + (Bi_1 - T.Cast("int64", fi)) // T.int64(8), (Bi_1 - T.Cast("int64", fi)) % T.int64(8)]
            for i_0, i_1 in T.grid((n + T.int64(11)) // T.int64(8), T.int64(8)):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 == T.int64(0) and i_1 < T.int64(2) or i_0 * T.int64(8) + i_1 >= n + T.int64(4))
                    B[v_i_0, v_i_1] = T.float32(0.0)
