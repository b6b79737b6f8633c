# run: opt
# A variable that is no index of the output updates the same cells again in its padding, whatever
# kind it has.
@T.prim_func
def main(B: T.Buffer((4,), "int32")):
    for i, j in T.grid(1, 4):
        with T.block("double"):
        #^^^^^^^^^^^^^^^^^^^^^ error: `pad_einsum`: `B[vj]` is not known to be zero where `vi` is in the padding
        # note: a product of floats is zero for certain where both sides are
        # note: trace.py:1 asked for it: sch.pad_einsum("double", [2, 1])
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj] = B[vj] + B[vj]

# ---- schedule
sch.pad_einsum("double", [2, 1])
