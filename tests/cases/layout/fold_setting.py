# run: opt --pass fold_constant --pass-config fold_constant.growth=much
# A setting that is no number.


@T.prim_func
def f(A: T.Buffer((1,), "float32")):
    A[0] = T.float32(0)
# error: the option `fold_constant.growth` is a number from 0 to 4294967295, not `much`
