# run: opt
# Before its initialisation a reduction has nothing that a cache could be filled with.
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: x
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] * 0.5 + A[vi, vk]

# ---- schedule
sch.cache_inplace("B", "B", "local")
