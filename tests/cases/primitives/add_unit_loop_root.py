# run: opt
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    with T.block("root"):
    #^^^^^^^^^^^^^^^^^^^ error: `add_unit_loop`: no loop may be around the root block
    # note: trace.py:1 asked for it: sch.add_unit_loop("root")
        T.block_attr({"note": 1})
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] * 2.0

# ---- schedule
sch.add_unit_loop("root")
