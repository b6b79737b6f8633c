# run: opt
# 16 iterations are enough for `T.min(n, 16)`, and a guard takes those that are too many.
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "int32")
    for k in range(2):
        for i in range(T.min(n, 16)):
            with T.block("A"):
                vk = T.axis.opaque(2, k)
                vi = T.axis.opaque(n, i)
                A[vi] = vk

# ---- schedule
l0, l1 = sch.get_loops("A")
sch.split(l1, factors=[4, 4])
