# run: opt
@T.prim_func
def main(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 32):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `rfactor`: the loop `i` is not one of the reduction of the block `C`, or holds other statements
        # note: trace.py:1 asked for it: sch.rfactor("i", 0)
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
sch.rfactor("i", 0)
