# run: verify
# 810,000 outputs of 49 elements each, over padding that is made again for each tile: compared by where
# values come from, and not cell by cell.


@T.prim_func
def f(x: T.Buffer((16, 225, 225), "int8"), out: T.Buffer((16, 225, 225), "int8")):
    wide = T.alloc_buffer((16, 231, 231), "int8")
    for c, i, j in T.grid(16, 231, 231):
        with T.block("wide"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            wide[vc, vi, vj] = T.if_then_else(3 <= vi and vi < 228 and 3 <= vj and vj < 228, x[vc, vi - 3, vj - 3], T.int8(0))
    for c, i, j, ki, kj in T.grid(16, 225, 225, 7, 7):
        with T.block("out"):
            vc, vi, vj, vki, vkj = T.axis.remap("SSSRR", [c, i, j, ki, kj])
            with T.init():
                out[vc, vi, vj] = T.int8(0)
            out[vc, vi, vj] = out[vc, vi, vj] + wide[vc, vi + vki, vj + vkj]

# ---- other
@T.prim_func
def f(x: T.Buffer((16, 225, 225), "int8"), out: T.Buffer((16, 225, 225), "int8")):
    wide = T.alloc_buffer((16, 231, 231), "int8")
    for io, jo in T.grid(3, 3):
        for c, i, j in T.grid(16, 86, 86):
            if io * 80 + i < 231 and jo * 80 + j < 231:
                wide[c, io * 80 + i, jo * 80 + j] = T.int8(0)
        for c, i, j in T.grid(16, 86, 86):
            if 3 <= io * 80 + i and io * 80 + i < 228 and 3 <= jo * 80 + j and jo * 80 + j < 228:
                wide[c, io * 80 + i, jo * 80 + j] = x[c, io * 80 + i - 3, jo * 80 + j - 3]
        for c, i, j in T.grid(16, 80, 80):
            if io * 80 + i < 225 and jo * 80 + j < 225:
                out[c, io * 80 + i, jo * 80 + j] = T.int8(0)
                for ki, kj in T.grid(7, 7):
                    out[c, io * 80 + i, jo * 80 + j] = out[c, io * 80 + i, jo * 80 + j] + wide[c, io * 80 + i + ki, jo * 80 + j + kj]

# ---- expected
