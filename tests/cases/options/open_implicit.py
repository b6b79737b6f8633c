# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# layout: B[i] at [(i + 2) // 8, (i + 2) % 8], padding 0
# For every size. Padding at both ends, from an offset.
@T.prim_func
def func(a: T.handle, F: T.Buffer((3,), "float32"), b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n + 2,), "float32")
    with T.block("compute"):
        for Bi in T.serial(n + 2):
            B[Bi] = 0.0
            for fi in T.serial(3):
                if 0 <= Bi - fi and Bi - fi < n:
                    B[Bi] = B[Bi] + F[fi] * A[Bi - fi]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.transform_layout(block='compute', buffer='B', lambda i: [(i+2)//8, (i+2)%8], pad_value=0.0)
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
