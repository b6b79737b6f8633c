# run: opt
@T.prim_func
def f(A: T.Buffer((4,), "float33")):
                        #^^^^^^^^ error: unknown data type `float33`
                        # help: data types are bool, int8..int64, uint8..uint64, float16, float32, float64, bfloat16, handle, void, with `xN` for N lanes
    A[0] = 1.0
