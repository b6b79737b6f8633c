# run: opt
# 16 iterations are not enough for every `n`.
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "int32")
    for i in range(n):
    #^^^^^^^^^^^^^^^^ error: `split`: the factors cover 16 of the n iterations of the loop `i`: too few at n=17
    # note: trace.py:2 asked for it: sch.split(l1, factors=[4, 4])
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = 1

# ---- schedule
l1, = sch.get_loops("A")
sch.split(l1, factors=[4, 4])
