# run: verify
# exit: 1
# The weights of two products side by side, in the wrong order.
@I.ir_module
class Module:
    @T.prim_func
    def product(a: T.Buffer((400000, 6), "float32"), b: T.Buffer((6, 4), "float32"), y: T.Buffer((400000, 4), "float32")):
        for i, j, k in T.grid(400000, 4, 6):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @T.prim_func
    def ratio(q: T.Buffer((400000, 4), "float32"), k: T.Buffer((400000, 4), "float32"), y: T.Buffer((400000, 4), "float32")):
        for i, j in T.grid(400000, 4):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = q[vi, vj] - k[vi, vj]

    @R.function
    def main(x: R.Tensor((400000, 6), "float32")) -> R.Tensor((400000, 4), "float32"):
        cls = Module
        with R.dataflow():
            q = R.call_tir(cls.product, (x, R.const([[1.484375, 1.390625, -0.9375, -1.3125], [-0.328125, -0.75, 0.5, 1.09375], [-1.15625, -0.03125, -0.828125, 0.375], [0.328125, -0.28125, 0.265625, -0.015625], [-0.421875, -0.34375, -0.59375, 0.40625], [-0.375, -0.78125, 0.046875, 0.84375]], "float32")), out_sinfo=R.Tensor((400000, 4), "float32"))
            k = R.call_tir(cls.product, (x, R.const([[-0.296875, 0.140625, 0.609375, -1.203125], [0.140625, 0.71875, 0.96875, 0.375], [0.953125, -0.125, 0.046875, 0.8125], [-1.109375, 0.734375, 1.171875, -0.90625], [-1.421875, -1.25, -0.25, -0.9375], [1.03125, 1.0625, 0.9375, -1.1875]], "float32")), out_sinfo=R.Tensor((400000, 4), "float32"))
            out = R.call_tir(cls.ratio, (q, k), out_sinfo=R.Tensor((400000, 4), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def product(a: T.Buffer((400000, 6), "float32"), b: T.Buffer((6, 8), "float32"), y: T.Buffer((400000, 8), "float32")):
        for i, j, k in T.grid(400000, 8, 6):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @T.prim_func
    def split(a: T.Buffer((400000, 8), "float32"), y: T.Buffer((400000, 4), "float32"), z: T.Buffer((400000, 4), "float32")):
        for i, j in T.grid(400000, 4):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj]
        for i, j in T.grid(400000, 4):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                z[vi, vj] = a[vi, vj + 4]

    @T.prim_func
    def ratio(q: T.Buffer((400000, 4), "float32"), k: T.Buffer((400000, 4), "float32"), y: T.Buffer((400000, 4), "float32")):
        for i, j in T.grid(400000, 4):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = q[vi, vj] - k[vi, vj]

    @R.function
    def main(x: R.Tensor((400000, 6), "float32")) -> R.Tensor((400000, 4), "float32"):
        cls = Module
        with R.dataflow():
            j = R.call_tir(cls.product, (x, R.const([[-0.296875, 0.140625, 0.609375, -1.203125, 1.484375, 1.390625, -0.9375, -1.3125], [0.140625, 0.71875, 0.96875, 0.375, -0.328125, -0.75, 0.5, 1.09375], [0.953125, -0.125, 0.046875, 0.8125, -1.15625, -0.03125, -0.828125, 0.375], [-1.109375, 0.734375, 1.171875, -0.90625, 0.328125, -0.28125, 0.265625, -0.015625], [-1.421875, -1.25, -0.25, -0.9375, -0.421875, -0.34375, -0.59375, 0.40625], [1.03125, 1.0625, 0.9375, -1.1875, -0.375, -0.78125, 0.046875, 0.84375]], "float32")), out_sinfo=R.Tensor((400000, 8), "float32"))
            parts = R.call_tir(cls.split, (j,), out_sinfo=[R.Tensor((400000, 4), "float32"), R.Tensor((400000, 4), "float32")])
            q = parts[0]
            k = parts[1]
            out = R.call_tir(cls.ratio, (q, k), out_sinfo=R.Tensor((400000, 4), "float32"))
            R.output(out)
        return out

# ---- expected
# exit: 1
# `main` differs in the result[366458, 0], on random data when both are run
#   that is 7.530e0 and -7.530e0
