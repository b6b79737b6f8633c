# run: verify
# Data that show a difference are found also where few do.


@T.prim_func
def f(A: T.Buffer((1,), "int32"), i: T.int32, j: T.int32):
    if i + 3 * j < 1000000 and 100 < j and j < 200:
        A[0] = 1

# ---- other
@T.prim_func
def f(A: T.Buffer((1,), "int32"), i: T.int32, j: T.int32):
    if i + 3 * j <= 1000000 and 100 < j and j < 200:
        A[0] = 1

# ---- expected
# exit: 1
# `f` differs in `A`[0]
#   first:  (1 if ((((i + (j * 3)) <= 999999) and (j > 100)) and (j <= 199)) else A[0])
#   second: (1 if ((j <= 199) and ((j > 100) and ((i + (j * 3)) <= 1000000))) else A[0])
#   with A[0] = -2147483648, i = 999697, j = 101: -2147483648 and 1
