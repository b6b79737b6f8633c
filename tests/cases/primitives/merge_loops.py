# run: opt
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T_buf = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("first"):
            v = T.axis.spatial(16, i)
            T_buf[v] = A[v] * 2.0
    for j in range(16):
        with T.block("second"):
            v = T.axis.spatial(16, j)
            B[v] = T_buf[v] + 1.0

# ---- schedule
b0 = sch.get_block(name="first")
b1 = sch.get_block(name="second")
l0, = sch.get_loops(b0)
l1, = sch.get_loops(b1)
l2 = sch.merge_loops(l0, l1)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T_buf = T.alloc_buffer((16,), "float32")
        for i in range(16):
            with T.block("first"):
                v = T.axis.spatial(16, i)
                T_buf[v] = A[v] * T.float32(2.0)
            with T.block("second"):
                v = T.axis.spatial(16, i)
                B[v] = T_buf[v] + T.float32(1.0)
