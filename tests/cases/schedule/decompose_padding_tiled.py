# run: opt
# Tiles that do not fit: the copy keeps the predicate of the tiling beside its own bounds.


@T.prim_func
def f(x: T.Buffer((13,), "float32"), y: T.Buffer((13,), "float32")):
    pad = T.alloc_buffer((15,), "float32")
    for i in range(15):
        with T.block("pad"):
            vi = T.axis.spatial(15, i)
            pad[vi] = T.if_then_else(1 <= vi and vi < 14, x[vi - 1], T.float32(0))
    for i, k in T.grid(13, 3):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + pad[vi + vk]

# ---- schedule
def apply_trace(sch):
    b0 = sch.get_block(name="y", func_name="main")
    b1 = sch.get_block(name="pad", func_name="main")
    l2, l3 = sch.get_loops(block=b0)
    l4, l5 = sch.split(loop=l2, factors=[None, 4])
    sch.compute_at(block=b1, loop=l4)
    l6, l7 = sch.get_loops(block=b1)
    b8 = sch.decompose_padding(block=b1, loop=l7)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.Buffer((13,), "float32"), y: T.Buffer((13,), "float32")):
        pad = T.alloc_buffer((15,), "float32")
        for i_0 in range(4):
            for ax0 in range(6):
                with T.block("pad_pad_const"):
                    vi = T.axis.spatial(15, i_0 * 4 + ax0)
                    T.where(i_0 * 4 + ax0 < 15)
                    pad[vi] = T.float32(0.0)
            for ax0 in range(6):
                with T.block("pad"):
                    vi = T.axis.spatial(13, i_0 * 4 + ax0 - 1)
                    T.where(1 <= i_0 * 4 + ax0 and i_0 * 4 + ax0 < 14 and i_0 * 4 + ax0 < 15)
                    pad[vi + 1] = x[vi]
            for i_1, k in T.grid(4, 3):
                with T.block("y"):
                    vi = T.axis.spatial(13, i_0 * 4 + i_1)
                    vk = T.axis.reduce(3, k)
                    T.where(i_0 * 4 + i_1 < 13)
                    with T.init():
                        y[vi] = T.float32(0.0)
                    y[vi] = y[vi] + pad[vi + vk]
