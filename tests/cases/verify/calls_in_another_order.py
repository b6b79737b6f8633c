# run: verify
# A transpose that was moved behind more calls than a group has.
@I.ir_module
class Module:
    @T.prim_func
    def turn(a: T.Buffer((900, 1000), "float32"), y: T.Buffer((1000, 900), "float32")):
        for i, j in T.grid(1000, 900):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vj, vi]

    @T.prim_func
    def root(a: T.Buffer((1000, 900), "float32"), y: T.Buffer((1000, 900), "float32")):
        for i, j in T.grid(1000, 900):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.sqrt(a[vi, vj])

    @T.prim_func
    def shift(a: T.Buffer((1000, 900), "float32"), y: T.Buffer((1000, 900), "float32")):
        for i, j in T.grid(1000, 900):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.Tensor((900, 1000), "float32")) -> R.Tensor((1000, 900), "float32"):
        cls = Module
        with R.dataflow():
            v1 = R.call_tir(cls.turn, (x,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v2 = R.call_tir(cls.root, (v1,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v3 = R.call_tir(cls.shift, (v2,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v4 = R.call_tir(cls.root, (v3,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v5 = R.call_tir(cls.shift, (v4,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v6 = R.call_tir(cls.root, (v5,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v7 = R.call_tir(cls.shift, (v6,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v8 = R.call_tir(cls.root, (v7,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v9 = R.call_tir(cls.shift, (v8,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v10 = R.call_tir(cls.root, (v9,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v11 = R.call_tir(cls.shift, (v10,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v12 = R.call_tir(cls.root, (v11,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v13 = R.call_tir(cls.shift, (v12,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v14 = R.call_tir(cls.root, (v13,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v15 = R.call_tir(cls.shift, (v14,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v16 = R.call_tir(cls.root, (v15,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v17 = R.call_tir(cls.shift, (v16,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v18 = R.call_tir(cls.root, (v17,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v19 = R.call_tir(cls.shift, (v18,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v20 = R.call_tir(cls.root, (v19,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v21 = R.call_tir(cls.shift, (v20,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v22 = R.call_tir(cls.root, (v21,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v23 = R.call_tir(cls.shift, (v22,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v24 = R.call_tir(cls.root, (v23,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v25 = R.call_tir(cls.shift, (v24,), out_sinfo=R.Tensor((1000, 900), "float32"))
            v26 = R.call_tir(cls.root, (v25,), out_sinfo=R.Tensor((1000, 900), "float32"))
            out = R.call_tir(cls.shift, (v26,), out_sinfo=R.Tensor((1000, 900), "float32"))
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def turn(a: T.Buffer((900, 1000), "float32"), y: T.Buffer((1000, 900), "float32")):
        for i, j in T.grid(1000, 900):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vj, vi]

    @T.prim_func
    def root(a: T.Buffer((900, 1000), "float32"), y: T.Buffer((900, 1000), "float32")):
        for i, j in T.grid(900, 1000):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.sqrt(a[vi, vj])

    @T.prim_func
    def shift(a: T.Buffer((900, 1000), "float32"), y: T.Buffer((900, 1000), "float32")):
        for i, j in T.grid(900, 1000):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.Tensor((900, 1000), "float32")) -> R.Tensor((1000, 900), "float32"):
        cls = Module
        with R.dataflow():
            v1 = R.call_tir(cls.root, (x,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v2 = R.call_tir(cls.shift, (v1,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v3 = R.call_tir(cls.root, (v2,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v4 = R.call_tir(cls.shift, (v3,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v5 = R.call_tir(cls.root, (v4,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v6 = R.call_tir(cls.shift, (v5,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v7 = R.call_tir(cls.root, (v6,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v8 = R.call_tir(cls.shift, (v7,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v9 = R.call_tir(cls.root, (v8,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v10 = R.call_tir(cls.shift, (v9,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v11 = R.call_tir(cls.root, (v10,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v12 = R.call_tir(cls.shift, (v11,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v13 = R.call_tir(cls.root, (v12,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v14 = R.call_tir(cls.shift, (v13,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v15 = R.call_tir(cls.root, (v14,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v16 = R.call_tir(cls.shift, (v15,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v17 = R.call_tir(cls.root, (v16,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v18 = R.call_tir(cls.shift, (v17,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v19 = R.call_tir(cls.root, (v18,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v20 = R.call_tir(cls.shift, (v19,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v21 = R.call_tir(cls.root, (v20,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v22 = R.call_tir(cls.shift, (v21,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v23 = R.call_tir(cls.root, (v22,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v24 = R.call_tir(cls.shift, (v23,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v25 = R.call_tir(cls.root, (v24,), out_sinfo=R.Tensor((900, 1000), "float32"))
            v26 = R.call_tir(cls.shift, (v25,), out_sinfo=R.Tensor((900, 1000), "float32"))
            out = R.call_tir(cls.turn, (v26,), out_sinfo=R.Tensor((1000, 900), "float32"))
            R.output(out)
        return out

# ---- expected
