# run: opt --pass auto_schedule,lower --pass-config auto_schedule.cpu=x86-64-v4
# A product whose 30 columns become bytes. The machine leaves out lanes of no vector of bytes, so that the last tile
# stores a whole vector and one of 14 lanes, and nothing one by one.
@T.prim_func
def bytes(A: T.Buffer((30, 64), "float32"), B: T.Buffer((64, 30), "float32"), Y: T.Buffer((30, 30), "uint8")):
    C = T.alloc_buffer((30, 30), "float32")
    for i, j, k in T.grid(30, 30, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(30, 30):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.Cast("uint8", T.min(T.max(C[vi, vj], T.float32(0)), T.float32(255)))

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def bytes(A: T.Buffer((30, 64), "float32"), B: T.Buffer((64, 30), "float32"), Y: T.Buffer((30, 30), "uint8"), B_pad: T.Buffer((2048,), "float32")):
        T.func_attr({"tilewright.workspace": 1})
        A_1 = T.decl_buffer((1920,), "float32", data=A.data)
        B_1 = T.decl_buffer((1920,), "float32", data=B.data)
        Y_1 = T.decl_buffer((900,), "uint8", data=Y.data)
        for i1_0_i0_i1_1_fused in range(2048):
            B_pad[i1_0_i0_i1_1_fused] = T.float32(0.0)
        for i0, i1_1 in T.grid(64, 30):
            B_pad[i0 * 32 + i1_1] = B_1[i0 * 30 + i1_1]
        for i0_0 in range(30):
            C_pad = T.decl_buffer((32,), "float32", scope="local")
            for i1_1_0 in T.unroll(2):
                C_pad[T.Ramp(i1_1_0 * 16, 1, 16)] = T.Broadcast(T.float32(0.0), 16)
            for i2 in T.serial(64, annotations={"pragma_unroll_count": 4}):
                for i1_1_0 in T.unroll(2):
                    C_pad[T.Ramp(i1_1_0 * 16, 1, 16)] = C_pad[T.Ramp(i1_1_0 * 16, 1, 16)] + T.Broadcast(A_1[i0_0 * 64 + i2], 16) * B_pad[T.Ramp(i2 * 32 + i1_1_0 * 16, 1, 16)]
            Y_1[T.Ramp(i0_0 * 30, 1, 16)] = T.Cast("uint8x16", T.min(T.max(C_pad[T.Ramp(0, 1, 16)], T.Broadcast(T.float32(0.0), 16)), T.Broadcast(T.float32(255.0), 16)))
            Y_1[T.Ramp(i0_0 * 30 + 16, 1, 14)] = T.Cast("uint8x14", T.min(T.max(C_pad[T.Ramp(16, 1, 14)], T.Broadcast(T.float32(0.0), 14)), T.Broadcast(T.float32(255.0), 14)))
