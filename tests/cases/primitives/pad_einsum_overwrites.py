# run: opt
# In the padding of a variable that is no index of the output, zeros would replace what was written.
@T.prim_func
def main(A: T.Buffer((4, 1), "float32"), B: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 1):
        with T.block("copy"):
        #^^^^^^^^^^^^^^^^^^^ error: `pad_einsum`: the block `copy` does not add up, and what the padding of `vj` adds must be zero
        # note: trace.py:1 asked for it: sch.pad_einsum("copy", [1, 2])
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi] = A[vi, vj]

# ---- schedule
sch.pad_einsum("copy", [1, 2])
