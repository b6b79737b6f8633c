# run: opt
@T.prim_func
def conv1d_cumsum(
    A: T.Buffer[(16,), "int32"],
    F: T.Buffer[(3,), "int32"],
    B: T.Buffer[(14,), "int32"],
):
    with T.block('compute'):
        for i in T.serial(14):
        #^^^^^^^^^^^^^^^^^^^^ error: `sequential_buffer_access`: `fission`: the read `B[(i - 1) // 4, (i - 1) % 4]` and the write `B[i // 4, i % 4]` may touch one cell in iterations whose order would change
        # note: at i=1 and at i=0
        # note: trace.py:3 asked for it: sched.sequential_buffer_access(block='compute', buffer='A')
            if i == 0:
                B[i] = 0
            else:
                B[i] = B[i - 1]

            for f in T.serial(3):
                B[i] = B[i] + F[f] * A[i + f]

# ---- schedule
sched.transform_layout(block='compute', buffer='A', lambda i: [i//4, i%4])
sched.transform_layout(block='compute', buffer='B', lambda i: [i//4, i%4])
sched.sequential_buffer_access(block='compute', buffer='A')
