# run: opt
@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: `transform_layout`: the index map is not injective
        # note: the logical indices [0, 0] and [1, 1] have one physical index
        # note: trace.py:1 asked for it: sch.transform_layout("B", "A", lambda i, j: [i ^ j, 0])
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [i ^ j, 0])
