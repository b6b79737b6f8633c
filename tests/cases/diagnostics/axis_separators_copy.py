# run: run
# A schedule does not do away with them.
@T.prim_func
def main(A: T.Buffer((4, 6), "float32", axis_separators=[1]), B: T.Buffer((4, 6), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
            #^^^^^^^^^^^^^^^^^^^^ error: function `main`: buffer `A` has 2 physical axes, and `global` memory of this target takes 1
            # help: remove the axis separators, or compile for a target with such memory
