# run: opt
# The fill runs before all tiles, the copy stays in each.
@T.prim_func
def main(x: T.Buffer((4, 9), "int8"), y: T.Buffer((4, 9), "int8")):
    pad = T.alloc_buffer((4, 11), "int8")
    for c, w in T.grid(4, 11):
        with T.block("pad"):
            vc, vw = T.axis.remap("SS", [c, w])
            pad[vc, vw] = T.if_then_else(1 <= vw and vw < 10, x[vc, vw - 1], T.int8(0))
    for c, w, k in T.grid(4, 9, 3):
        with T.block("y"):
            vc, vw, vk = T.axis.remap("SSR", [c, w, k])
            with T.init():
                y[vc, vw] = T.int8(0)
            y[vc, vw] = y[vc, vw] + pad[vc, vw + vk]

# ---- schedule
c, w, k = sch.get_loops("y")
w0, w1 = sch.split(w, factors=[None, 4])
sch.reorder(w0, c, w1, k)
sch.compute_at("pad", w0)
o, a, b = sch.get_loops("pad")
sch.decompose_padding("pad", o)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer((4, 9), "int8"), y: T.Buffer((4, 9), "int8")):
        pad = T.alloc_buffer((4, 11), "int8")
        for w_0, ax0, ax1 in T.grid(3, 4, 6):
            with T.block("pad_pad_const"):
                vc = T.axis.spatial(4, ax0)
                vw = T.axis.spatial(11, w_0 * 4 + ax1)
                T.where(w_0 * 4 + ax1 < 11)
                pad[vc, vw] = T.int8(0)
        for w_0 in range(3):
            for ax0, ax1 in T.grid(4, 6):
                with T.block("pad"):
                    vc = T.axis.spatial(4, ax0)
                    vw = T.axis.spatial(9, w_0 * 4 + ax1 - 1)
                    T.where(1 <= w_0 * 4 + ax1 and w_0 * 4 + ax1 < 10 and w_0 * 4 + ax1 < 11)
                    pad[vc, vw + 1] = x[vc, vw]
            for c, w_1, k in T.grid(4, 4, 3):
                with T.block("y"):
                    vc = T.axis.spatial(4, c)
                    vw = T.axis.spatial(9, w_0 * 4 + w_1)
                    vk = T.axis.reduce(3, k)
                    T.where(w_0 * 4 + w_1 < 9)
                    with T.init():
                        y[vc, vw] = T.int8(0)
                    y[vc, vw] = y[vc, vw] + pad[vc, vw + vk]
