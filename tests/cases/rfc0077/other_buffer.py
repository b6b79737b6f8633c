# run: opt
@T.prim_func
def func(A: T.Buffer[14, "float32"], B: T.Buffer[14, "float32"]):
    A_cache = T.alloc_buffer(14, "float32")
    for i in T.serial(14):
        with T.block("A_cache"):
            A_cache[i] = A[i]
    B_cache = T.alloc_buffer(14, "float32")
    for i in T.serial(14):
        with T.block("compute"):
        #^^^^^^^^^^^^^^^^^^^^^^ error: `transform_layout`: the pad value of `A_cache` depends on another buffer, `B`
        # note: trace.py:1 asked for it: sched.transform_layout(block='compute', buffer='A_cache', lambda i: [i//4, i%4], pad_value=lambda io, ii: B[ii])
            B_cache[i] = 2 * A_cache[i]
    for i in T.serial(14):
        with T.block("B_cache"):
            B[i] = B_cache[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A_cache', lambda i: [i//4, i%4], pad_value=lambda io, ii: B[ii])
