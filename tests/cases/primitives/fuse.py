# run: opt --print-after-all
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 9), "float32"), C: T.Buffer((6, 9), "float32")):
    for i, j, k in T.grid(6, 9, 10):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
l0 = sch.fuse(l1, l2)
              #^ error: `l1` is not defined in the script
