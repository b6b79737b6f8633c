# run: opt
# layout: A[i, k] at [i // 32, k // 32, i % 32, k % 32], padding 0
# layout: B[k, j] at [k // 32, j // 32, k % 32, j % 32], padding 0
# layout: C[i, j] at [i // 32, j // 32, i % 32, j % 32], padding undef
# A product of sizes that are multiples of nothing, in tiles of 32: along `k` zeros are added, along
# `i` and `j` the result is arbitrary. Nobody says that it is a product.
@T.prim_func
def matmul(A: T.Buffer((127, 127), "float32"), B: T.Buffer((127, 127), "float32"), C: T.Buffer((127, 127), "float32")):
    for i, j, k in T.grid(127, 127, 127):
        with T.block("compute"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

# ---- schedule
sch.transform_layout(block="compute", buffer="A", index_map=lambda i, k: [i // 32, k // 32, i % 32, k % 32], pad_value=0.0)
sch.transform_layout(block="compute", buffer="B", index_map=lambda k, j: [k // 32, j // 32, k % 32, j % 32], pad_value=0.0)
sch.transform_layout(block="compute", buffer="C", index_map=lambda i, j: [i // 32, j // 32, i % 32, j % 32], pad_value=lambda io, jo, ii, ji: T.undef())
b = sch.get_block("compute")
i, j, k = sch.get_loops(b)
i0, i1 = sch.split(i, factors=[4, 32])
j0, j1 = sch.split(j, factors=[4, 32])
k0, k1 = sch.split(k, factors=[4, 32])
sch.reorder(i0, j0, k0, i1, j1, k1)
sch.remove_branching_through_overcompute(b)

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((4, 4, 32, 32), "float32"), B: T.Buffer((4, 4, 32, 32), "float32"), C: T.Buffer((4, 4, 32, 32), "float32")):
        for k_0, j_0, k_1, j_1 in T.grid(4, 4, 32, 32):
            with T.block("buffer_B_assumption"):
                v_k_0, v_j_0, v_k_1, v_j_1 = T.axis.remap("SSSS", [k_0, j_0, k_1, j_1])
                T.assume(not (v_k_0 == 3 and v_k_1 == 31 or v_j_0 == 3 and v_j_1 == 31) or B[v_k_0, v_j_0, v_k_1, v_j_1] == T.float32(0.0))
        for i_0, k_0, i_1, k_1 in T.grid(4, 4, 32, 32):
            with T.block("buffer_A_assumption"):
                v_i_0, v_k_0, v_i_1, v_k_1 = T.axis.remap("SSSS", [i_0, k_0, i_1, k_1])
                T.assume(not (v_i_0 == 3 and v_i_1 == 31 or v_k_0 == 3 and v_k_1 == 31) or A[v_i_0, v_k_0, v_i_1, v_k_1] == T.float32(0.0))
        for i_0, j_0, k_0, i_1, j_1, k_1 in T.grid(4, 4, 4, 32, 32, 32):
            with T.block("compute"):
                vi = T.axis.spatial(128, i_0 * 32 + i_1)
                vj = T.axis.spatial(128, j_0 * 32 + j_1)
                vk = T.axis.reduce(128, k_0 * 32 + k_1)
                with T.init():
                    C[vi // 32, vj // 32, vi % 32, vj % 32] = T.float32(0.0)
                C[vi // 32, vj // 32, vi % 32, vj % 32] = C[vi // 32, vj // 32, vi % 32, vj % 32] + A[vi // 32, vk // 32, vi % 32, vk % 32] * B[vk // 32, vj // 32, vk % 32, vj % 32]
        for i_0, j_0, i_1, j_1 in T.grid(4, 4, 32, 32):
            with T.block("buffer_C_padding"):
                v_i_0, v_j_0, v_i_1, v_j_1 = T.axis.remap("SSSS", [i_0, j_0, i_1, j_1])
                T.where(i_0 == 3 and i_1 == 31 or j_0 == 3 and j_1 == 31)
                C[v_i_0, v_j_0, v_i_1, v_j_1] = T.undef(dtype="float32")
