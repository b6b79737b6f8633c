# run: run --open
# No input says how large the result is.
@T.prim_func
def iota(b: T.handle):
    n = T.int32()
    B = T.match_buffer(b, (n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = vi * vi
# error: no input says how large `n` is, which the output `B` depends on
# help: give it when compiling: --dim n=SIZE
