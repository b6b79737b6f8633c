# run: verify
# A product with weights that are stored transposed: one constant is a view of the other. Large, so that cells are not compared.
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

    @R.function
    def main(x: R.Tensor((400000, 6), "float32")) -> R.Tensor((400000, 4), "float32"):
        cls = Module
        with R.dataflow():
            out = R.call_tir(cls.product, (x, R.const([[1.484375, 1.390625, -0.9375, -1.3125], [-0.328125, -0.75, 0.5, 1.09375], [-1.15625, -0.03125, -0.828125, 0.375], [0.328125, -0.28125, 0.265625, -0.015625], [-0.421875, -0.34375, -0.59375, 0.40625], [-0.375, -0.78125, 0.046875, 0.84375]], "float32")), out_sinfo=R.Tensor((400000, 4), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def product(a: T.Buffer((400000, 6), "float32"), b: T.Buffer((4, 6), "float32"), y: T.Buffer((400000, 4), "float32")):
        for i, j, k in T.grid(400000, 4, 6):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vj, vk]

    @R.function
    def main(x: R.Tensor((400000, 6), "float32")) -> R.Tensor((400000, 4), "float32"):
        cls = Module
        with R.dataflow():
            out = R.call_tir(cls.product, (x, R.const([[1.484375, -0.328125, -1.15625, 0.328125, -0.421875, -0.375], [1.390625, -0.75, -0.03125, -0.28125, -0.34375, -0.78125], [-0.9375, 0.5, -0.828125, 0.265625, -0.59375, 0.046875], [-1.3125, 1.09375, 0.375, -0.015625, 0.40625, 0.84375]], "float32")), out_sinfo=R.Tensor((400000, 4), "float32"))
            R.output(out)
        return out

# ---- expected
