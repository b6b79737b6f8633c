# run: verify
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i]

# ---- other
@T.prim_func
def f(A: T.Buffer((2, 2), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i // 2, i % 2]

# ---- expected
# exit: 3
# undecided: `f`: the interfaces differ: parameter `A` has shape [4] and [2, 2]
