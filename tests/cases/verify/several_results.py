# run: verify
# A recurrence with two results, one of which is not read: an initial state of zeros is none.
@I.ir_module
class Module:
    @T.prim_func
    def scan(x: T.Buffer((1000000, 3), "float32"), start: T.Buffer((3,), "float32"), y: T.Buffer((1000000, 3), "float32"), last: T.Buffer((3,), "float32")):
        with T.block("scan"):
            h = T.alloc_buffer((3,), "float32")
            for j in range(3):
                h[j] = start[j]
            for t in range(1000000):
                for j in range(3):
                    h[j] = h[j] * T.float32(0.5) + x[t, j]
                for j in range(3):
                    y[t, j] = h[j]
            for j in range(3):
                last[j] = h[j]

    @R.function
    def main(x: R.Tensor((1000000, 3), "float32")):
        cls = Module
        with R.dataflow():
            v = R.call_tir(cls.scan, (x, R.const([0.0, 0.0, 0.0], "float32")), out_sinfo=[R.Tensor((1000000, 3), "float32"), R.Tensor((3,), "float32")])
            out = v[0]
            R.output(out)
        return out

# ---- other
@I.ir_module
class Module:
    @T.prim_func
    def scan(x: T.Buffer((1000000, 3), "float32"), y: T.Buffer((1000000, 3), "float32"), last: T.Buffer((3,), "float32")):
        with T.block("scan"):
            h = T.alloc_buffer((3,), "float32")
            for j in range(3):
                h[j] = T.float32(0)
            for t in range(1000000):
                for j in range(3):
                    h[j] = h[j] * T.float32(0.5) + x[t, j]
                for j in range(3):
                    y[t, j] = h[j]
            for j in range(3):
                last[j] = h[j]

    @R.function
    def main(x: R.Tensor((1000000, 3), "float32")):
        cls = Module
        with R.dataflow():
            v = R.call_tir(cls.scan, (x,), out_sinfo=[R.Tensor((1000000, 3), "float32"), R.Tensor((3,), "float32")])
            out = v[0]
            R.output(out)
        return out

# ---- expected
