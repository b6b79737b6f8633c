# run: opt
# An initialisation runs once for each value of a variable that is no reduction, also in its padding.
@T.prim_func
def main(A: T.Buffer((1, 6), "int32"), B: T.Buffer((1,), "int32")):
    for i, k in T.grid(1, 6):
        with T.block("sum"):
        #^^^^^^^^^^^^^^^^^^ error: `pad_einsum`: the block `sum` would begin its sums again in the padding of `vi`, which is no index of `B`
        # note: trace.py:1 asked for it: sch.pad_einsum("sum", [2, 4])
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vi, vk]

# ---- schedule
sch.pad_einsum("sum", [2, 4])
