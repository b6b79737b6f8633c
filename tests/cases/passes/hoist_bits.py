# run: opt --pass hoist_expression --pass-config hoisted_conditionals=16
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = 0.0
# error: the option `hoist_expression.hoisted_conditionals` is a number from 0 to 15, not `16`
