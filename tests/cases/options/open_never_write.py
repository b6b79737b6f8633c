# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# layout: A[i] at [i // 8, i % 8]
# For every size. As for reads: the caller's padding stays what it is.
@T.prim_func
def func(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    with T.block("compute"):
        for i in T.serial(n):
            A[i] = 42

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8])
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
