# run: opt --pass lower_blocks,simplify,remove_branching_through_overcompute,remove_assume --pass-config finite=1 --pass-config wrap_indices=1
# layout: A[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# layout: B[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# "Implicitly write default value of next operator": a window of zeros sums to zero.
@T.prim_func
def func(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((18,), "float32")):
    with T.block("compute"):
        for Bi in T.serial(18):
            B[Bi] = 0.0
            for fi in T.serial(3):
                if 0 <= Bi - fi and Bi - fi < 16:
                    B[Bi] = B[Bi] + F[fi] * A[Bi - fi]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.transform_layout(block='compute', buffer='B', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.sequential_buffer_access(block='compute', buffer='A')
sched.sequential_buffer_access(block='compute', buffer='B')
pad = sched.get_block("buffer_B_padding")
io, ii = sched.get_loops(pad)
sched.merge_loops(["Bi_0", io])
sched.merge_loops(["Bi_1", ii])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
        for Bi_0, Bi_1 in T.grid(3, 8):
            B[Bi_0, Bi_1] = T.float32(0.0)
        for Bi_fi_0, Bi_fi_1, fi in T.grid(3, 8, 3):
            B[(Bi_fi_0 + (Bi_fi_1 + fi) // 8) % 3, (Bi_fi_1 + fi) % 8] = B[(Bi_fi_0 + (Bi_fi_1 + fi) // 8) % 3, (Bi_fi_1 + fi) % 8] + F[fi] * A[Bi_fi_0, Bi_fi_1]
