# run: opt
# layout: A[i, j] at [i * 3 ^ j, j], padding 0
# Not linear in digits, since a product by three carries.
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), B: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(5, 4):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: `transform_layout`: the index map cannot be analysed: no closed form was found
        # note: trace.py:1 asked for it: sch.transform_layout("B", "A", lambda i, j: [(i * 3) ^ j, j], pad_value=0.0)
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

# ---- schedule
sch.transform_layout("B", "A", lambda i, j: [(i * 3) ^ j, j], pad_value=0.0)
