# run: opt --pass auto_schedule --print-trace
# A transform of tiles of four pixels, at every second one: both stages for a tile and a vector of
# channels at a time. The last channels are no whole vector.


@T.prim_func
def transform(X: T.Buffer((9, 20), "float32"), U: T.Buffer((4, 5, 20), "float32")):
    P = T.alloc_buffer((12, 20))
    H = T.alloc_buffer((5, 4, 20))
    for p, c in T.grid(12, 20):
        with T.block("P"):
            vp, vc = T.axis.remap("SS", [p, c])
            P[vp, vc] = T.if_then_else(vp >= 1 and vp < 10, X[vp - 1, vc], T.float32(0))
    for t, x, c in T.grid(5, 4, 20):
        with T.block("H"):
            vt, vx, vc = T.axis.remap("SSS", [t, x, c])
            H[vt, vx, vc] = T.Select(
                vx == 0,
                P[vt * 2, vc] - P[vt * 2 + 2, vc],
                T.Select(
                    vx == 1,
                    P[vt * 2 + 1, vc] + P[vt * 2 + 2, vc],
                    T.Select(vx == 2, P[vt * 2 + 2, vc] - P[vt * 2 + 1, vc], P[vt * 2 + 3, vc] - P[vt * 2 + 1, vc]),
                ),
            )
    for t, y, c in T.grid(5, 4, 20):
        with T.block("U"):
            vt, vy, vc = T.axis.remap("SSS", [t, y, c])
            U[vy, vt, vc] = T.Select(
                vy == 0,
                H[vt, 0, vc] - H[vt, 2, vc],
                T.Select(
                    vy == 1,
                    H[vt, 1, vc] + H[vt, 2, vc],
                    T.Select(vy == 2, H[vt, 2, vc] - H[vt, 1, vc], H[vt, 3, vc] - H[vt, 1, vc]),
                ),
            )

# ---- expected
# def apply_trace(sch):
#     b0 = sch.get_block(name="U", func_name="transform")
#     l1, l2, l3 = sch.get_loops(block=b0)
#     l4, l5 = sch.split(loop=l3, factors=[None, 8])
#     sch.reorder(l1, l4, l2, l5)
#     b6 = sch.get_block(name="H", func_name="transform")
#     sch.compute_at(block=b6, loop=l4)
#     sch.set_scope(block=b6, buffer_index=0, storage_scope="local")
#     b7 = sch.get_block(name="P", func_name="transform")
#     sch.compute_at(block=b7, loop=l1)
#     l8, l9, l10 = sch.get_loops(block=b7)
#     b11 = sch.decompose_padding(block=b7, loop=l9)
#     l12, l13, l14, l15 = sch.get_loops(block=b6)
#     l16, l17 = sch.loop_partition(loop=l13, factors=[2, 1])
#     b18 = sch.get_block(name="H_1", func_name="transform")
#     b19 = sch.get_block(name="U_1", func_name="transform")
#     l20, l21, l22, l23 = sch.get_loops(block=b6)
#     sch.vectorize(loop=l23)
#     sch.unroll(loop=l22)
#     l24, l25, l26, l27 = sch.get_loops(block=b0)
#     sch.vectorize(loop=l27)
#     sch.unroll(loop=l26)
#     l28, l29, l30, l31 = sch.get_loops(block=b18)
#     sch.unroll(loop=l30)
#     l32, l33, l34, l35 = sch.get_loops(block=b19)
#     sch.unroll(loop=l34)
