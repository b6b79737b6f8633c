# run: opt
# sizes: n=13
# layout: A[i] at [i // 8, i % 8], padding 0
# layout: B[i] at [i // 8, i % 8], padding undef
# Tiles of eight over an open size are whole for each size, those below eight included, and need no guard.
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(3)

# ---- schedule
sch.transform_layout("B", "A", lambda i: [i // 8, i % 8], pad_value=0.0)
sch.transform_layout("B", "B", lambda i: [i // 8, i % 8], pad_value=lambda a, b: T.undef())
b = sch.get_block("B")
sch.sequential_buffer_access(b, "B")
sch.remove_branching_through_overcompute(b)
