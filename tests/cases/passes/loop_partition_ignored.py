# run: opt --pass loop_partition --pass-config partition_const_loop=1
# A condition that is to be left alone is no reason to take a loop apart.


@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(16, annotations={"pragma_loop_partition_hint": True}):
        if T.ignore_loop_partition(i < 3):
            A[i] = 1.0
        if i < 10:
            B[i] = 2.0

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(10):
            if i < 3:
                A[i] = T.float32(1.0)
            B[i] = T.float32(2.0)
