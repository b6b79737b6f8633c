# run: opt --pass storage_flatten --pass-config cache_line_size=64
# Only what says that it comes from the older kind of schedule is flattened.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def old(A: T.Buffer((2, 3), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True)})
        for i, j in T.grid(2, 3):
            A[i, j] = 1.0

    @T.prim_func
    def new(A: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            A[i, j] = 1.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def old(A: T.Buffer((2, 3), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True)})
        A_1 = T.decl_buffer((6,), "float32", data=A.data)
        for i, j in T.grid(2, 3):
            A_1[i * 3 + j] = T.float32(1.0)

    @T.prim_func
    def new(A: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            A[i, j] = T.float32(1.0)
