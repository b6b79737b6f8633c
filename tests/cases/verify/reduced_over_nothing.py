# run: verify
# A sum over nothing is zero where the range of the size begins at zero.
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
        y[()] = T.float32(1) + s[()]

# ---- expected
