# run: opt --pass simplify --pass-config simplify.propagate_knowns_to_prove_conditional=maybe
# A switch is on or off.
@T.prim_func
def f(A: T.Buffer((1,), "int32")):
    A[0] = 3
# error: the option `simplify.propagate_knowns_to_prove_conditional` is 1 or 0, not `maybe`
