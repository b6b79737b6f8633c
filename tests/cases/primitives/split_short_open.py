# run: opt
# 16 iterations are not enough for every `n`.
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "int32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = 1

# ---- schedule
l1, = sch.get_loops("A")
sch.split(l1, factors=[4, 4])
