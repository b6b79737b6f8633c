# run: opt
# sizes: n=2, h=3, w=5
# Pixels of open images become one axis, and channels tiles around it: the pixel has the digits that it is put together of.
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    h = T.int32()
    w = T.int32()
    A = T.match_buffer(a, (n, h + 2, w + 2, 8), "float32")
    B = T.match_buffer(b, (n, h, w, 8), "float32")
    C = T.alloc_buffer((n, h, w, 8), "float32")
    for i, y, x, c in T.grid(n, h, w, 8):
        with T.block("C"):
            vi, vy, vx, vc = T.axis.remap("SSSS", [i, y, x, c])
            C[vi, vy, vx, vc] = A[vi, vy + 1, vx + 1, vc] * 2.0
    for i, y, x, c in T.grid(n, h, w, 8):
        with T.block("B"):
            vi, vy, vx, vc = T.axis.remap("SSSS", [i, y, x, c])
            B[vi, vy, vx, vc] = C[vi, vy, vx, vc] + 1.0

# ---- schedule
b0 = sch.get_block(name="C")
sch.transform_layout(b0, ("write", 0), lambda i, y, x, c: [c // 4, (i * h + y) * w + x, c % 4])
b1 = sch.get_block(name="B")
sch.transform_block_layout(b1, lambda i, y, x, c: [(i * h + y) * w + x, c])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int32()
        h = T.int32()
        w = T.int32()
        A = T.match_buffer(a, (n, h + 2, w + 2, 8), "float32")
        B = T.match_buffer(b, (n, h, w, 8), "float32")
        C = T.alloc_buffer((2, w * h * n, 4), "float32")
        for i, y, x, c in T.grid(n, h, w, 8):
            with T.block("C"):
                vi, vy, vx, vc = T.axis.remap("SSSS", [i, y, x, c])
                C[vc // 4, (vi * h + vy) * w + vx, vc % 4] = A[vi, vy + 1, vx + 1, vc] * T.float32(2.0)
        for i_y_x, c in T.grid(w * h * n, 8):
            with T.block("B"):
                v_i_y_x, v_c = T.axis.remap("SS", [i_y_x, c])
                B[v_i_y_x // w // h, v_i_y_x // w % h, v_i_y_x % w, v_c] = C[v_c // 4, v_i_y_x, v_c % 4] + T.float32(1.0)
