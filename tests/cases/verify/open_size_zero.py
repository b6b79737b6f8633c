# run: verify
# At size zero nothing is stored.


@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    for i in range(n):
        C[0] = 1

# ---- other
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), C: T.Buffer((1,), "int32")):
    n = T.int32()
    C[0] = 1

# ---- expected
# exit: 1
# `f` at n=0 differs in `C`[0]
#   first:  C[0]
#   second: 1
#   with C[0] = 2: 2 and 1
