# run: verify
# A call with two results whose parts are moved, against one that moves before it splits; large, so that cells are not compared.
@I.ir_module
class Module:
    @T.prim_func
    def split(a: T.Buffer((600, 1000), "float32"), y: T.Buffer((600, 400), "float32"), z: T.Buffer((600, 600), "float32")):
        for i, j in T.grid(600, 400):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj]
        for i, j in T.grid(600, 600):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                z[vi, vj] = a[vi, vj + 400]

    @T.prim_func
    def turn(a: T.Buffer((600, 600), "float32"), y: T.Buffer((600, 600), "float32")):
        for i, j in T.grid(600, 600):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vj, vi]

    @R.function
    def main(x: R.Tensor((600, 1000), "float32")) -> R.Tensor((600, 600), "float32"):
        cls = Module
        with R.dataflow():
            u = R.call_tir(cls.split, (x,), out_sinfo=[R.Tensor((600, 400), "float32"), R.Tensor((600, 600), "float32")])
            v = u[1]
            out = R.call_tir(cls.turn, (v,), out_sinfo=R.Tensor((600, 600), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def turn(a: T.Buffer((600, 1000), "float32"), y: T.Buffer((1000, 600), "float32")):
        for i, j in T.grid(1000, 600):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vj, vi]

    @T.prim_func
    def split(a: T.Buffer((1000, 600), "float32"), y: T.Buffer((600, 600), "float32"), z: T.Buffer((400, 600), "float32")):
        for i, j in T.grid(600, 600):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi + 400, vj]
        for i, j in T.grid(400, 600):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                z[vi, vj] = a[vi, vj]

    @R.function
    def main(x: R.Tensor((600, 1000), "float32")) -> R.Tensor((600, 600), "float32"):
        cls = Module
        with R.dataflow():
            u = R.call_tir(cls.turn, (x,), out_sinfo=R.Tensor((1000, 600), "float32"))
            v = R.call_tir(cls.split, (u,), out_sinfo=[R.Tensor((600, 600), "float32"), R.Tensor((400, 600), "float32")])
            out = v[0]
            R.output(out)
        return out

# ---- expected
