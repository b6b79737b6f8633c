# run: opt
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), n: T.int32):
    with T.block("B"):
        for i in range(4):
        #^^^^^^^^^^^^^^^^ error: `hoist_expression`: `n > 0` stays inside of the loop `i`
        # note: the statements around it would have to be repeated
        # note: trace.py:2 asked for it: sch.hoist_expression(block=b0, hoisted_conditionals=1)
            A[i, 0] = 1.0
            if n > 0:
                A[i, 1] = 0.0

# ---- schedule
b0 = sch.get_block(name="B")
sch.hoist_expression(block=b0, hoisted_conditionals=1)
