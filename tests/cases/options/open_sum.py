# run: opt --pass remove_branching_through_overcompute
# sizes: n=1
# layout: A[i] at [i // 8, i % 8], padding 0
# For every size. Zeros in the padding add nothing.
@T.prim_func
def func(a: T.handle, B: T.Buffer((1,), "int32"), n: T.int64):
    A = T.match_buffer(a, (n,), "int32")
    with T.block("compute"):
        B[0] = 0
        for i in T.serial(n):
            B[0] = B[0] + A[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//8, i%8], pad_value=0)
sched.sequential_buffer_access(block='compute', buffer='A')

# ---- expected
