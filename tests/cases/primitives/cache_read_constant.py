# run: opt
# A constant is read through a cache like any other memory.


@T.prim_func
def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    table = T.allocate_const([0, 1, 2, 3, 4, 5, 6, 7], "float32", [8])
    table_1 = T.decl_buffer((8,), "float32", data=table)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + table_1[vi]

# ---- schedule
def apply_trace(sch):
    b0 = sch.get_block(name="C", func_name="main")
    b1 = sch.cache_read(block=b0, read_buffer_index=1, storage_scope="global")

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        table_1_global = T.alloc_buffer((8,), "float32")
        table = T.allocate_const([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "float32", [8])
        table_1 = T.decl_buffer((8,), "float32", data=table.data)
        for ax0 in range(8):
            with T.block("table_1_global"):
                v0 = T.axis.spatial(8, ax0)
                T.reads(table_1[v0])
                T.writes(table_1_global[v0])
                table_1_global[v0] = table_1[v0]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + table_1_global[vi]
