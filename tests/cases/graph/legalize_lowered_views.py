# run: opt --pass legalize
# A lowered function that copies each element to its own place is a view; one that moves elements, or does more, is none.


@I.ir_module
class Module:
    @T.prim_func
    def same(x: T.Buffer((5, 12), "float32"), y_handle: T.handle):
        y = T.match_buffer(y_handle, (60,), "float32")
        x_1 = T.decl_buffer((60,), "float32", data=x.data)
        for i in range(60):
            y[i] = x_1[i]

    @T.prim_func
    def moved(x: T.Buffer((60,), "float32"), y: T.Buffer((60,), "float32")):
        for i in range(59):
            y[i] = x[i + 1]

    @T.prim_func
    def changed(x: T.Buffer((60,), "float32"), y: T.Buffer((60,), "float32")):
        for i in range(60):
            y[i] = x[i]
        y[7] = 1.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def same(x: T.Buffer((5, 12), "float32"), y: T.Buffer((60,), "float32")):
        T.func_attr({"tilewright.view": 1})
        x_1 = T.decl_buffer((60,), "float32", data=x.data)
        for i in range(60):
            y[i] = x_1[i]

    @T.prim_func
    def moved(x: T.Buffer((60,), "float32"), y: T.Buffer((60,), "float32")):
        for i in range(59):
            y[i] = x[i + 1]

    @T.prim_func
    def changed(x: T.Buffer((60,), "float32"), y: T.Buffer((60,), "float32")):
        for i in range(60):
            y[i] = x[i]
        y[7] = T.float32(1.0)
