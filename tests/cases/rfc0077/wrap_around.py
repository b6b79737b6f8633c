# run: opt
@T.prim_func
def func(A: T.Buffer[14, "float32"], B: T.Buffer[14, "float32"]):
    A_cache = T.alloc_buffer(14, "float32")
    for i in T.serial(14):
        with T.block("A_cache"):
            A_cache[i] = A[i]
    B_cache = T.alloc_buffer(14, "float32")
    for i in T.serial(14):
        with T.block("compute"):
            B_cache[i] = 2 * A_cache[i]
    for i in T.serial(14):
        with T.block("B_cache"):
            B[i] = B_cache[i]

# ---- schedule
sched.transform_layout(block='compute', buffer='A_cache', lambda i: [i//4, i%4], pad_value=lambda io, ii: A_cache[0, (4*io + ii - 14) % 4])

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def func(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        A_cache = T.alloc_buffer((4, 4), "float32")
        B_cache = T.alloc_buffer((14,), "float32")
        for i in range(14):
            with T.block("A_cache"):
                A_cache[i // 4, i % 4] = A[i]
        for i_0, i_1 in T.grid(4, 4):
            with T.block("buffer_A_cache_padding"):
                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                T.where(i_0 == 3 and i_1 >= 2)
                A_cache[v_i_0, v_i_1] = A_cache[0, (4 * v_i_0 + v_i_1 - 14) % 4]
        for i in range(14):
            with T.block("compute"):
                B_cache[i] = T.float32(2.0) * A_cache[i // 4, i % 4]
        for i in range(14):
            with T.block("B_cache"):
                B[i] = B_cache[i]
