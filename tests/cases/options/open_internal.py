# run: opt --pass remove_branching_through_overcompute
# sizes: n=7
# For every size. A buffer inside whose padding the copy writes.
@T.prim_func
def func(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(n):
            B[0] = B[0] + A[i]

# ---- schedule
sched.cache_read(block='compute', buffer='A', "local")
sched.transform_layout(block='compute', buffer='A_local', lambda i: [i//8, i%8], pad_value=0)
sched.sequential_buffer_access(block='A_local', buffer='A_local')
sched.sequential_buffer_access(block='compute', buffer='A_local')

# ---- expected
