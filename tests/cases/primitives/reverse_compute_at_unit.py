# run: opt
@T.prim_func
def main(A: T.Buffer((30, 8), "float32"), C: T.Buffer((30,), "float32"), E: T.Buffer((30,), "float32")):
    D = T.alloc_buffer((30,))
    for i in range(30):
        for k in range(8):
            with T.block("D"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    D[vi] = 0.0
                D[vi] = D[vi] + A[vi, vk]
        with T.block("E"):
            vi = T.axis.spatial(30, i)
            E[vi] = A[vi, 0]
    for i in range(30):
        with T.block("C"):
            vi = T.axis.spatial(30, i)
            C[vi] = D[vi] * D[vi]

# ---- schedule
b0 = sch.get_block(name="E", func_name="main")
l1, = sch.get_loops(block=b0)
sch.reverse_compute_at(block="C", loop=l1, preserve_unit_loops=True, index=-2)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 8), "float32"), C: T.Buffer((30,), "float32"), E: T.Buffer((30,), "float32")):
        D = T.alloc_buffer((30,), "float32")
        for i in range(30):
            for k in range(8):
                with T.block("D"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        D[vi] = T.float32(0.0)
                    D[vi] = D[vi] + A[vi, vk]
            for ax0 in range(1):
                with T.block("C"):
                    vi = T.axis.spatial(30, i + ax0)
                    C[vi] = D[vi] * D[vi]
            with T.block("E"):
                vi = T.axis.spatial(30, i)
                E[vi] = A[vi, 0]
