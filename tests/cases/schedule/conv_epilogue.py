# run: opt --pass schedule_stages,lower
# output: not compared, only what it computes
# A padded convolution of ragged sizes with its bias and relu.


@T.prim_func
def conv(
    X: T.Buffer((1, 3, 7, 9), "float32"),
    W: T.Buffer((13, 3, 3, 3), "float32"),
    B: T.Buffer((13,), "float32"),
    Y: T.Buffer((1, 13, 7, 9), "float32"),
):
    P = T.alloc_buffer((1, 3, 9, 11), "float32")
    C = T.alloc_buffer((1, 13, 7, 9), "float32")
    for n, c, h, w in T.grid(1, 3, 9, 11):
        with T.block("P"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            P[vn, vc, vh, vw] = T.if_then_else(
                1 <= vh and vh < 8 and 1 <= vw and vw < 10, X[vn, vc, vh - 1, vw - 1], 0.0
            )
    for n, o, h, w, c, i, j in T.grid(1, 13, 7, 9, 3, 3, 3):
        with T.block("C"):
            vn, vo, vh, vw, vc, vi, vj = T.axis.remap("SSSSRRR", [n, o, h, w, c, i, j])
            with T.init():
                C[vn, vo, vh, vw] = 0.0
            C[vn, vo, vh, vw] = (
                C[vn, vo, vh, vw] + P[vn, vc, vh + vi, vw + vj] * W[vo, vc, vi, vj]
            )
    for n, o, h, w in T.grid(1, 13, 7, 9):
        with T.block("Y"):
            vn, vo, vh, vw = T.axis.remap("SSSS", [n, o, h, w])
            Y[vn, vo, vh, vw] = T.max(C[vn, vo, vh, vw] + B[vo], 0.0)
