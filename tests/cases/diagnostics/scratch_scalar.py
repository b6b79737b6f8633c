# run: opt
@T.prim_func
def f(x: T.Buffer((4,), "float32"), n: T.int32):
    # error: function `f`: the scratch parameter `n` is no tensor
    T.func_attr({"tilewright.workspace": 1})
    x[0] = T.float32(0)
