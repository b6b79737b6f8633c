# run: run
@T.prim_func
def f(B: T.Buffer((1,), "int32")):
    assert 1 > 2, "one is more than two"
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: an assertion of `f` failed: one is more than two
    B[0] = 1
