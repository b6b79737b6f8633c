# run: opt --pass auto_schedule --print-trace
# Loops that all accesses walk as one are fused, padding is apart, digits are loops, and what copies across runs
# in square tiles. One short loop needs nothing.
@T.prim_func
def scale(x: T.Buffer((4, 33, 20, 20), "float32"), s: T.Buffer((33,), "float32"), y: T.Buffer((4, 33, 20, 20), "float32")):
    for n, c, h, w in T.grid(4, 33, 20, 20):
        with T.block("scale"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            y[vn, vc, vh, vw] = x[vn, vc, vh, vw] * s[vc]


@T.prim_func
def pad(x: T.Buffer((3, 12, 12), "float32"), y: T.Buffer((3, 14, 14), "float32")):
    for c, h, w in T.grid(3, 14, 14):
        with T.block("pad"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            y[vc, vh, vw] = T.if_then_else(
                vh >= 1 and vh < 13 and vw >= 1 and vw < 13, x[vc, vh - 1, vw - 1], T.float32(0)
            )


@T.prim_func
def heads(x: T.Buffer((10, 96), "float32"), y: T.Buffer((12, 10, 8), "float32")):
    for h, n, c in T.grid(12, 10, 8):
        with T.block("heads"):
            vh, vn, vc = T.axis.remap("SSS", [h, n, c])
            y[vh, vn, vc] = x[vn, vh * 8 + vc]


@T.prim_func
def shuffle(x: T.Buffer((5, 24), "float32"), y: T.Buffer((5, 24), "float32")):
    for i, c in T.grid(5, 24):
        with T.block("shuffle"):
            vi, vc = T.axis.remap("SS", [i, c])
            y[vi, vc] = x[vi, vc % 4 * 6 + vc // 4]


@T.prim_func
def across(x: T.Buffer((8, 17), "float32"), y: T.Buffer((17, 8), "float32")):
    for i, j in T.grid(17, 8):
        with T.block("across"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vj, vi]


@T.prim_func
def blocks(x: T.Buffer((35, 7), "float32"), y: T.Buffer((3, 7, 16), "float32")):
    for k, p, j in T.grid(3, 7, 16):
        with T.block("blocks"):
            vk, vp, vj = T.axis.remap("SSS", [k, p, j])
            y[vk, vp, vj] = T.if_then_else(vk * 16 + vj < 35, x[vk * 16 + vj, vp], T.float32(0))


@T.prim_func
def relu(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("relu"):
            vi = T.axis.spatial(64, i)
            y[vi] = T.max(x[vi], T.float32(0))

# ---- expected
# def apply_trace(sch):
#     b0 = sch.get_block(name="scale", func_name="scale")
#     l1, l2, l3, l4 = sch.get_loops(block=b0)
#     l5 = sch.fuse(l3, l4)
#     l6 = sch.fuse(l1, l2)
#     sch.parallel(loop=l6)
#     b7 = sch.get_block(name="pad", func_name="pad")
#     l8, l9, l10 = sch.get_loops(block=b7)
#     b11 = sch.decompose_padding(block=b7, loop=l8)
#     l12, l13, l14 = sch.get_loops(block=b11)
#     l15 = sch.fuse(l12, l13, l14)
#     l16, l17, l18 = sch.get_loops(block=b7)
#     b19 = sch.get_block(name="shuffle", func_name="shuffle")
#     l20, l21 = sch.get_loops(block=b19)
#     l22, l23 = sch.split(loop=l21, factors=[6, 4])
#     l24, l25, l26 = sch.get_loops(block=b19)
#     l27 = sch.fuse(l25, l26)
#     l28, l29 = sch.get_loops(block=b19)
#     l30, l31 = sch.loop_partition(loop=l29, factors=[16, 8])
#     b32 = sch.get_block(name="shuffle_1", func_name="shuffle")
#     l33, l34 = sch.get_loops(block=b19)
#     l35, l36 = sch.fission(loop=l33, at=1)
#     l37, l38 = sch.get_loops(block=b19)
#     l39, l40 = sch.split(loop=l38, factors=[1, 16])
#     sch.vectorize(loop=l40)
#     l41, l42 = sch.get_loops(block=b32)
#     l43, l44 = sch.split(loop=l42, factors=[1, 8])
#     sch.vectorize(loop=l44)
#     b45 = sch.get_block(name="across", func_name="across")
#     l46, l47 = sch.get_loops(block=b45)
#     l48, l49 = sch.get_loops(block=b45)
#     l50, l51 = sch.loop_partition(loop=l48, factors=[16, 1])
#     b52 = sch.get_block(name="across_1", func_name="across")
#     l53, l54 = sch.get_loops(block=b45)
#     l55, l56 = sch.split(loop=l53, factors=[2, 8])
#     l57, l58 = sch.split(loop=l54, factors=[1, 8])
#     sch.reorder(l55, l57, l56, l58)
#     sch.unroll(loop=l56)
#     sch.vectorize(loop=l58)
#     l59, l60 = sch.get_loops(block=b52)
#     b61 = sch.get_block(name="blocks", func_name="blocks")
#     l62, l63, l64 = sch.get_loops(block=b61)
#     l65, l66 = sch.loop_partition(loop=l62, factors=[2, 1])
#     b67 = sch.get_block(name="blocks_1", func_name="blocks")
#     l68, l69, l70 = sch.get_loops(block=b61)
#     l71, l72, l73 = sch.get_loops(block=b61)
#     l74, l75 = sch.loop_partition(loop=l72, factors=[4, 3])
#     b76 = sch.get_block(name="blocks_2", func_name="blocks")
#     l77, l78, l79 = sch.get_loops(block=b61)
#     l80, l81 = sch.fission(loop=l77, at=1)
#     l82, l83, l84 = sch.get_loops(block=b61)
#     l85, l86 = sch.split(loop=l83, factors=[1, 4])
#     l87, l88 = sch.split(loop=l84, factors=[4, 4])
#     sch.reorder(l82, l85, l87, l86, l88)
#     sch.unroll(loop=l86)
#     sch.vectorize(loop=l88)
#     l89, l90, l91 = sch.get_loops(block=b76)
#     l92, l93, l94 = sch.get_loops(block=b67)
#     b95 = sch.decompose_padding(block=b67, loop=l92)
#     l96, l97, l98 = sch.get_loops(block=b95)
#     l99 = sch.fuse(l96, l97, l98)
#     l100, l101, l102 = sch.get_loops(block=b67)
