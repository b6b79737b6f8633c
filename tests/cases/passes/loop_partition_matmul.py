# run: opt --pass loop_partition,simplify
# 127 columns in tiles of 32: three full tiles without a guard, and 31 columns.
@T.prim_func
def matmul(A: T.Buffer((127, 127), "float32"), B: T.Buffer((127, 127), "float32"), C: T.Buffer((127, 127), "float32")):
    for i, k in T.grid(127, 127):
        for jo in T.serial(4, annotations={"pragma_loop_partition_hint": 1}):
            for ji in T.vectorized(32, annotations={"pragma_loop_partition_hint": 1}):
                if T.likely(jo * 32 + ji < 127):
                    C[i, jo * 32 + ji] = C[i, jo * 32 + ji] + A[i, k] * B[k, jo * 32 + ji]
# semantics: not compared, because it adds to what it is given

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((127, 127), "float32"), B: T.Buffer((127, 127), "float32"), C: T.Buffer((127, 127), "float32")):
        for i, k in T.grid(127, 127):
            for jo in range(3):
                for ji in T.vectorized(32):
                    C[i, jo * 32 + ji] = C[i, jo * 32 + ji] + A[i, k] * B[k, jo * 32 + ji]
            for ji in T.vectorized(31):
                C[i, ji + 96] = C[i, ji + 96] + A[i, k] * B[k, ji + 96]
