# run: opt
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    with T.block("root"):
        T.block_attr({"note": 1})
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] * 2.0

# ---- schedule
sch.add_unit_loop("root")
