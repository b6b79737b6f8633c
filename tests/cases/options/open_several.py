# run: opt --pass remove_branching_through_overcompute
# sizes: n=7, m=9
# layout: A[i, j] at [i // 4, i % 4, j // 8, j % 8], padding 0
# layout: B[i] at [i // 4, i % 4], padding undef
# For every size. Two rules in turn for one buffer.
@T.prim_func
def func(a: T.handle, b: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (n,), "int32")
    with T.block("compute"):
        for i in T.serial(n):
            B[i] = 0
            for j in T.serial(m):
                B[i] = B[i] + A[i, j]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i, j: [i//4, i%4, j], pad_value=lambda io, ii, j: T.undef())
sched.transform_layout(block='compute', buffer='A', lambda io, ii, j: [io, ii, j//8, j%8], pad_value=0)
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4], pad_value=lambda io, ii: T.undef())
sched.sequential_buffer_access(block='compute', buffer='A')
sched.sequential_buffer_access(block='compute', buffer='B')

# ---- expected
