# run: opt
# sizes: n=13
# layout: A[i, k] at [i // 6, k, i % 6], padding 0
# layout: C[i, j] at [i // 6, j, i % 6], padding undef
# Tiles of six rows of an open number of rows.
@T.prim_func
def main(a: T.handle, B: T.Buffer((24, 40), "float32"), c: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 24), "float32")
    C = T.match_buffer(c, (n, 40), "float32")
    for i, j, k in T.grid(n, 40, 24):
        with T.block("mm"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
sch.transform_layout("mm", "A", lambda i, k: [i // 6, k, i % 6], pad_value=0.0)
sch.transform_layout("mm", "C", lambda i, j: [i // 6, j, i % 6], pad_value=lambda a, b, c: T.undef())
b = sch.get_block("mm")
i, j, k = sch.get_loops(b)
io, ii = sch.split(i, factors=[None, 6])
sch.remove_branching_through_overcompute(b)
