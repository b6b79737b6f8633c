# run: opt
# The box around two writes, where the second one ends before the first: its end minus the other
# is no value of the type of the indices.
@T.prim_func
def main(B: T.Buffer((3, 4), "float32")):
    with T.block("writes"):
        for i, j in T.grid(T.uint8(3), T.uint8(4)):
            B[i, j] = T.float32(1)
        for j in range(T.uint8(4)):
            B[T.uint8(0), j] = T.float32(2)

# ---- schedule
sch.cache_write("writes", "B", "local")
