# run: opt
# Lists of loops as Python has them: items, slices, stars, comprehensions, loops over them.


@T.prim_func
def main(A: T.Buffer((4, 6, 8, 10), "float32"), B: T.Buffer((4, 6, 8, 10), "float32")):
    for i, j, k, l in T.grid(4, 6, 8, 10):
        with T.block("B"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            B[vi, vj, vk, vl] = A[vi, vj, vk, vl] + 1.0

# ---- schedule
loops = sch.get_loops(sch.get_block("B"))
sch.reorder(*loops[::-1])
first, *rest, last = loops
sch.parallel(last)
outer, inner = [sch.split(l, factors=[None, 2])[1] for l in rest]
for l in [outer, inner]:
    sch.unroll(l)
sch.vectorize(loops[len(loops) - 4])
for k, l in enumerate(sch.get_loops(sch.get_block("B"))[1:3]):
    sch.annotate(l, "place", k + 1)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 6, 8, 10), "float32"), B: T.Buffer((4, 6, 8, 10), "float32")):
        for l in T.parallel(10):
            for k_0 in T.serial(4, annotations={"place": 1}):
                for k_1 in T.unroll(2, annotations={"place": 2}):
                    for j_0 in range(3):
                        for j_1 in T.unroll(2):
                            for i in T.vectorized(4):
                                with T.block("B"):
                                    vi = T.axis.spatial(4, i)
                                    vj = T.axis.spatial(6, j_0 * 2 + j_1)
                                    vk = T.axis.spatial(8, k_0 * 2 + k_1)
                                    vl = T.axis.spatial(10, l)
                                    B[vi, vj, vk, vl] = A[vi, vj, vk, vl] + T.float32(1.0)
