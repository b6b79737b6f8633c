# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [i // 8, i % 8], padding undef
# layout: B[i] at [i // 8, i % 8], padding undef
# For every size. Padding of any content: whole tiles, and what fills the last one is left open.
@T.prim_func
def func(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    with T.block("compute"):
        for i in T.serial(n):
            B[i] = 2 * A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8], pad_value=lambda io, ii: T.undef())
sched.transform_layout(block='compute', buffer='B', lambda i: [i//8, i%8], pad_value=lambda io, ii: T.undef())
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
