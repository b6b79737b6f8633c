# run: opt
# A part of a reduction that was cut off: its initialisation does not run, and what it adds to was
# written by the other part. A cache would hold nothing to add to.
@T.prim_func
def main(A: T.Buffer((4, 10), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        for k in range(9):
            with T.block("most"):
                v, r = T.axis.remap("SR", [i, k])
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + A[v, r]
        for k in range(1):
            with T.block("rest"):
            #^^^^^^^^^^^^^^^^^^^ error: `cache_write`: the initialisation of `B` does not run where its block `rest` updates it: `r` never has its first value there
            # note: trace.py:1 asked for it: sch.cache_write("rest", "B", "local")
                v = T.axis.spatial(4, i)
                r = T.axis.reduce(10, k + 9)
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + A[v, r]

# ---- schedule
sch.cache_write("rest", "B", "local")
