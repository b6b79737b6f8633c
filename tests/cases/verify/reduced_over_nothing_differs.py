# run: verify --dim n=0
# The sums differ over nothing, too.
@T.prim_func
def main(a: T.handle, y: T.Buffer((), "float32")):
    T.func_attr({"tir_var_lower_bound": {"n": 0}})
    n = T.int64()
    x = T.match_buffer(a, (n,), "float32")
    s = T.alloc_buffer((), "float32")
    for i in range(n):
        with T.block("r"):
            vi = T.axis.reduce(n, i)
            with T.init():
                s[()] = T.float32(0)
            s[()] = s[()] + x[vi]
    with T.block("y"):
        y[()] = s[()] + T.float32(1)

# ---- other
@T.prim_func
def main(a: T.handle, y: T.Buffer((), "float32")):
    T.func_attr({"tir_var_lower_bound": {"n": 0}})
    n = T.int64()
    x = T.match_buffer(a, (n,), "float32")
    s = T.alloc_buffer((), "float32")
    for i in range(n):
        with T.block("r"):
            vi = T.axis.reduce(n, i)
            with T.init():
                s[()] = T.float32(0)
            s[()] = s[()] + x[vi]
    with T.block("y"):
        y[()] = s[()] + T.float32(2)

# ---- expected
# exit: 1
# `main` at n=0 differs in `y`
#   that is 1.0 and 2.0
