# run: opt
# A pad value has the type of the buffer.
@T.prim_func
def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
        #^^^^^^^^^^^^^^^^ error: `transform_layout`: the pad value `T.int8(0)` is int8, but `B` is int32
        # note: trace.py:1 asked for it: sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=T.int8(0))
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] + 1
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]

# ---- schedule
sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=T.int8(0))
