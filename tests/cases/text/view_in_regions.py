# run: opt
# A view that a block declares and names in its regions is declared around the block.


@T.prim_func
def f(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    table = T.allocate_const([1, 2, 3, 4], "float32", [4])
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            table_1 = T.Buffer((4,), data=table)
            T.reads(A[vi], table_1[vi])
            T.writes(C[vi])
            C[vi] = A[vi] * table_1[vi]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        table = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        for i in range(4):
            table_1 = T.decl_buffer((4,), "float32", data=table.data)
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi], table_1[vi])
                T.writes(C[vi])
                C[vi] = A[vi] * table_1[vi]
