# run: run
@T.prim_func
def f(a: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", axis_separators=[1])
    for i, j in T.grid(4, 4):
        A[i, j] = 1.0
        #^^^^^^^^^^^^ error: function `f`: buffer `A` has 2 physical axes, and `global` memory of this target takes 1
        # help: remove the axis separators, or compile for a target with such memory
