# run: opt --pass simplify
@T.prim_func
def f(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tir_var_lower_bound": {"n": 17}, "tir_var_upper_bound": {"n": 16}})
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: 17..16 is no range of sizes, which is given to `n`
                # note: a size is at least 0 and at most 2147418112
    for i in range(n):
        B[i] = A[i]
