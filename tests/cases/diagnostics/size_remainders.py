# run: opt --pass simplify
@T.prim_func
def f(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tir_var_remainders": {"n": [8, 3, 9]}})
                #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error: expected `"tir_var_remainders": {"n": [MODULUS, BELOW, COUNT], ...}`
                # note: `(n + BELOW) % MODULUS` is less than COUNT, and BELOW and COUNT are less than MODULUS
    for i in range(n):
        B[i] = A[i]
