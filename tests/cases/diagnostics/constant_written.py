# run: opt
@T.prim_func
def f(A: T.Buffer((3,), "float32")):
    table = T.allocate_const([2, 0, 5], "float32", [3])
    table_1 = T.decl_buffer((3,), "float32", data=table)
    for i in range(3):
        A[i] = table_1[i]
        table_1[i] = T.float32(0)
        #^^^^^^^^^^^^^^^^^^^^^^^^ error: function `f`: `table_1[i]` is written, but its memory is a constant
        # note: in `table_1[i] = T.float32(0.0)`
