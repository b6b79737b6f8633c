# run: opt --print-after-all
@T.prim_func
def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((10, 8), "float32"), C: T.Buffer((30, 10), "float32")):
    D = T.alloc_buffer((30, 10))
    for i, j, k in T.grid(30, 10, 8):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = 0.0
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid(30, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(D[vi, vj], 0.0)

# ---- schedule
b0 = sch.get_block(name="D", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
l4, l5 = sch.split(loop=l1, factors=[None, 16])
b6 = sch.get_block(name="C", func_name="main")
sch.reverse_compute_at(block=b6, loop=l4)

# ---- expected
# after b0 = sch.get_block(name="D", func_name="main")
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((10, 8), "float32"), C: T.Buffer((30, 10), "float32")):
        D = T.alloc_buffer((30, 10), "float32")
        for i, j, k in T.grid(30, 10, 8):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0.0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
        for i, j in T.grid(30, 10):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0.0))
# after l1, l2, l3 = sch.get_loops(block=b0)
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((10, 8), "float32"), C: T.Buffer((30, 10), "float32")):
        D = T.alloc_buffer((30, 10), "float32")
        for i, j, k in T.grid(30, 10, 8):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0.0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
        for i, j in T.grid(30, 10):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0.0))
# after l4, l5 = sch.split(loop=l1, factors=[None, 16])
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((10, 8), "float32"), C: T.Buffer((30, 10), "float32")):
        D = T.alloc_buffer((30, 10), "float32")
        for i_0, i_1, j, k in T.grid(2, 16, 10, 8):
            with T.block("D"):
                vi = T.axis.spatial(30, i_0 * 16 + i_1)
                vj = T.axis.spatial(10, j)
                vk = T.axis.reduce(8, k)
                T.where(i_0 * 16 + i_1 < 30)
                with T.init():
                    D[vi, vj] = T.float32(0.0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
        for i, j in T.grid(30, 10):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0.0))
# after b6 = sch.get_block(name="C", func_name="main")
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((10, 8), "float32"), C: T.Buffer((30, 10), "float32")):
        D = T.alloc_buffer((30, 10), "float32")
        for i_0, i_1, j, k in T.grid(2, 16, 10, 8):
            with T.block("D"):
                vi = T.axis.spatial(30, i_0 * 16 + i_1)
                vj = T.axis.spatial(10, j)
                vk = T.axis.reduce(8, k)
                T.where(i_0 * 16 + i_1 < 30)
                with T.init():
                    D[vi, vj] = T.float32(0.0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
        for i, j in T.grid(30, 10):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0.0))
# after sch.reverse_compute_at(block=b6, loop=l4)
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((10, 8), "float32"), C: T.Buffer((30, 10), "float32")):
        D = T.alloc_buffer((30, 10), "float32")
        for i_0 in range(2):
            for i_1, j, k in T.grid(16, 10, 8):
                with T.block("D"):
                    vi = T.axis.spatial(30, i_0 * 16 + i_1)
                    vj = T.axis.spatial(10, j)
                    vk = T.axis.reduce(8, k)
                    T.where(i_0 * 16 + i_1 < 30)
                    with T.init():
                        D[vi, vj] = T.float32(0.0)
                    D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
            for ax0, ax1 in T.grid(16, 10):
                with T.block("C"):
                    vi = T.axis.spatial(30, i_0 * 16 + ax0)
                    vj = T.axis.spatial(10, ax1)
                    T.where(i_0 * 16 + ax0 < 30)
                    C[vi, vj] = T.max(D[vi, vj], T.float32(0.0))
