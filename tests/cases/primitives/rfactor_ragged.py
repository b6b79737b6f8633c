# run: opt
@T.prim_func
def main(A: T.Buffer((5, 3), "float32"), C: T.Buffer((5,), "float32")):
    for i, ko, ki in T.grid(5, 1, 4):
        with T.block("C"):
        #^^^^^^^^^^^^^^^^ error: `rfactor`: a partial result of `C` would have no first value, where `ki < 3` does not hold
        # note: at i=0, ki=3
        # note: trace.py:1 asked for it: sch.rfactor("ki", 0)
            vi = T.axis.spatial(5, i)
            vk = T.axis.reduce(3, ko * 4 + ki)
            T.where(ko * 4 + ki < 3)
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]

# ---- schedule
sch.rfactor("ki", 0)
