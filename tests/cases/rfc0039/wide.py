# run: opt
# 4,295,032,832 elements: the index is of int64.
# semantics: not compared, because the buffer does not fit memory.
@T.prim_func
def main(A: T.Buffer((65536,), "int8")):
    B = T.alloc_buffer((65536, 65537), "int8")
    for i, j in T.grid(65536, 65537):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi]

# ---- schedule
sch.transform_layout("B", ("write", 0), lambda i, j: [i * 65537 + j])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((65536,), "int8")):
        B = T.alloc_buffer((T.int64(4295032832),), "int8")
        for i, j in T.grid(65536, 65537):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[T.Cast("int64", vi) * T.int64(65537) + T.Cast("int64", vj)] = A[vi]
