//! Rewrites with certificates, each with texts that a wrong pass would have made.

/// A rewrite: the text before and after it, how parameters lie, and texts that a wrong pass would have made.
pub(crate) struct Rewrite {
    pub(crate) what: &'static str,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    pub(crate) layouts: &'static [&'static str],
    pub(crate) faults: &'static [&'static str],
}

pub(crate) const REWRITES: &[Rewrite] = &[
    Rewrite {
        what: "overcompute: what lies beyond the tiles of an open size is not read",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    P = T.alloc_buffer(((n + 7) // 8, 8), \"float32\")
    for io, ii in T.grid((n + 7) // 8, 8):
        if io * 8 + ii < n:
            P[io, ii] = T.exp(A[io * 8 + ii])
    for i in range(n):
        B[i] = P[i // 8, i % 8]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    P = T.alloc_buffer(((n + 7) // 8, 8), \"float32\")
    for io, ii in T.grid((n + 7) // 8, 8):
        P[io, ii] = T.exp(T.if_then_else(io * 8 + ii < n, A[io * 8 + ii], T.float32(0.0)))
    for i in range(n):
        B[i] = P[i // 8, i % 8]
",
        layouts: &[],
        faults: &[
            // The guard of a load goes, too.
            "P[io, ii] = T.exp(A[io * 8 + ii])",
            // One cell less.
            "P[io, ii] = T.exp(T.if_then_else(io * 8 + ii < n - 1, A[io * 8 + ii], T.float32(0.0)))",
        ],
    },
    Rewrite {
        what: "overcompute: what lies beyond is added as zero, by an assumption",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 4, 4), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    for i, io, ii in T.grid(n, 4, 4):
        T.assume(io * 4 + ii < 14 or A[i, io, ii] == T.float32(0.0))
    for i in range(n):
        B[i] = T.float32(0.0)
        for io, ii in T.grid(4, 4):
            if io * 4 + ii < 14:
                B[i] = B[i] + A[i, io, ii]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 4, 4), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    for i, io, ii in T.grid(n, 4, 4):
        T.assume(io * 4 + ii < 14 or A[i, io, ii] == T.float32(0.0))
    for i in range(n):
        B[i] = T.float32(0.0)
        for io, ii in T.grid(4, 4):
            B[i] = B[i] + A[i, io, ii]
",
        layouts: &[],
        faults: &["B[i] = B[i] + A[i, ii, io]", "B[i] = T.max(B[i], A[i, io, ii])"],
    },
    Rewrite {
        what: "no-op removal: a store that is overwritten",
        before: "
def f(A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\")):
    for i in range(16):
        B[i] = A[i]
    for i in range(12):
        B[i] = A[i] * T.float32(2.0)
    for i in range(4):
        B[i + 12] = A[i]
",
        after: "
def f(A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\")):
    for i in range(12):
        B[i] = A[i] * T.float32(2.0)
    for i in range(4):
        B[i + 12] = A[i]
",
        layouts: &[],
        faults: &["B[i + 11] = A[i]", "B[i + 12] = A[i + 12]"],
    },
    Rewrite {
        what: "overcompute: a sum of an open number of values, in tiles of eight with zeros behind",
        before: "
def f(a: T.handle, B: T.Buffer((1,), \"float32\"), n: T.int64):
    A = T.match_buffer(a, ((n + 7) // 8, 8), \"float32\")
    for io, ii in T.grid((n + 7) // 8, 8):
        T.assume(io * 8 + ii < n or A[io, ii] == T.float32(0.0))
    B[0] = T.float32(0.0)
    for i in range(n):
        B[0] = B[0] + A[i // 8, i % 8]
",
        after: "
def f(a: T.handle, B: T.Buffer((1,), \"float32\"), n: T.int64):
    A = T.match_buffer(a, ((n + 7) // 8, 8), \"float32\")
    for io, ii in T.grid((n + 7) // 8, 8):
        T.assume(io * 8 + ii < n or A[io, ii] == T.float32(0.0))
    B[0] = T.float32(0.0)
    for io, ii in T.grid((n + 7) // 8, 8):
        B[0] = B[0] + A[io, ii]
",
        layouts: &[],
        faults: &["B[0] = B[0] + A[io, 7 - ii]", "B[0] = B[0] * A[io, ii]"],
    },
    Rewrite {
        what: "merging: neighbours that do not depend on each other",
        before: "
def f(a: T.handle, b: T.handle, c: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    C = T.match_buffer(c, (n,), \"float32\")
    for i in range(n):
        B[i] = A[i] + T.float32(1.0)
    for i in range(n):
        C[i] = T.if_then_else(i >= 1, B[i - 1], T.float32(0.0))
",
        after: "
def f(a: T.handle, b: T.handle, c: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    C = T.match_buffer(c, (n,), \"float32\")
    for i in range(n):
        B[i] = A[i] + T.float32(1.0)
        C[i] = T.if_then_else(i >= 1, B[i - 1], T.float32(0.0))
",
        layouts: &[],
        faults: &["C[i] = T.if_then_else(i >= 1, B[i], T.float32(0.0))"],
    },
    Rewrite {
        what: "hoisting: a condition out of a loop that it does not depend on",
        before: "
def f(A: T.Buffer((6, 8), \"float32\"), B: T.Buffer((6, 8), \"float32\")):
    for i, j in T.grid(6, 8):
        if i % 2 == 0:
            B[i, j] = A[i, j]
        else:
            B[i, j] = A[i, 7 - j]
",
        after: "
def f(A: T.Buffer((6, 8), \"float32\"), B: T.Buffer((6, 8), \"float32\")):
    for i in range(6):
        if i % 2 == 0:
            for j in range(8):
                B[i, j] = A[i, j]
        else:
            for j in range(8):
                B[i, j] = A[i, 7 - j]
",
        layouts: &[],
        faults: &["B[i, j] = A[i, 7 - i]"],
    },
    Rewrite {
        what: "cancelling: two transposes that undo each other",
        before: "
def f(A: T.Buffer((6, 7), \"float32\"), B: T.Buffer((6, 7), \"float32\")):
    P = T.alloc_buffer((7, 6), \"float32\")
    Q = T.alloc_buffer((6, 7), \"float32\")
    for i, j in T.grid(7, 6):
        P[i, j] = A[j, i]
    for i, j in T.grid(6, 7):
        Q[i, j] = P[j, i]
    for i, j in T.grid(6, 7):
        B[i, j] = T.exp(Q[i, j])
",
        after: "
def f(A: T.Buffer((6, 7), \"float32\"), B: T.Buffer((6, 7), \"float32\")):
    for i, j in T.grid(6, 7):
        B[i, j] = T.exp(A[i, j])
",
        layouts: &[],
        faults: &[
            "B[i, j] = T.exp(A[j % 6, i])",
            "B[i, j] = T.exp(A[i, 6 - j])",
            "B[i, j] = T.tanh(A[i, j])",
        ],
    },
    Rewrite {
        what: "relayout: both parameters in tiles, one with an offset",
        before: "
def f(A: T.Buffer((14,), \"float32\"), B: T.Buffer((14,), \"float32\")):
    for i in range(14):
        with T.block(\"B\"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] * T.float32(2.0)
",
        after: "
def f(A: T.Buffer((3, 8), \"float32\"), B: T.Buffer((4, 4), \"float32\")):
    for io, ii in T.grid(4, 4):
        with T.block(\"B\"):
            vo, vi = T.axis.remap(\"SS\", [io, ii])
            T.where(io * 4 + ii < 14)
            B[vo, vi] = A[(vo * 4 + vi + 3) // 8, (vo * 4 + vi + 3) % 8] * T.float32(2.0)
",
        layouts: &[
            "(layout 0 (i) (((i + 3) // 8) ((i + 3) % 8)) (o k) ((((o * 8) + k) - 3)))",
            "(layout 1 (i) ((i // 4) (i % 4)) (o k) (((o * 4) + k)))",
        ],
        faults: &[
            "B[vo, vi] = A[(vo * 4 + vi + 2) // 8, (vo * 4 + vi + 2) % 8] * T.float32(2.0)",
            "B[vi, vo] = A[(vo * 4 + vi + 3) // 8, (vo * 4 + vi + 3) % 8] * T.float32(2.0)",
        ],
    },
    Rewrite {
        what: "a reduction in tiles, with its initialisation",
        before: "
def f(a: T.handle, b: T.handle, c: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 10), \"float32\")
    B = T.match_buffer(b, (10,), \"float32\")
    C = T.match_buffer(c, (n,), \"float32\")
    for i, k in T.grid(n, 10):
        with T.block(\"C\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                C[vi] = T.float32(0.0)
            C[vi] = C[vi] + A[vi, vk] * B[vk]
",
        after: "
def f(a: T.handle, b: T.handle, c: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 10), \"float32\")
    B = T.match_buffer(b, (10,), \"float32\")
    C = T.match_buffer(c, (n,), \"float32\")
    for i in range(n):
        C[i] = T.float32(0.0)
    for io, ko, ii, ki in T.grid((n + 3) // 4, 5, 4, 2):
        if io * 4 + ii < n:
            C[io * 4 + ii] = C[io * 4 + ii] + A[io * 4 + ii, ko * 2 + ki] * B[ko * 2 + ki]
",
        layouts: &[],
        faults: &[
            // Another order of the sum.
            "C[io * 4 + ii] = C[io * 4 + ii] + A[io * 4 + ii, ki * 5 + ko] * B[ki * 5 + ko]",
            "C[io * 4 + ii] = A[io * 4 + ii, ko * 2 + ki] * B[ko * 2 + ki]",
        ],
    },
    Rewrite {
        what: "cancelling: a crop and a pad of an open number of rows, between two calls",
        before: "
@I.ir_module
class Module:
    @T.prim_func
    def pack(a: T.handle, p: T.handle):
        N = T.int32()
        A = T.match_buffer(a, (N, 14), \"float32\")
        P = T.match_buffer(p, (4, N, 4), \"float32\")
        for i, j, k in T.grid(4, N, 4):
            P[i, j, k] = T.if_then_else(i * 4 + k < 14, A[j, i * 4 + k], T.float32(0.0))

    @T.prim_func
    def crop(p: T.handle, a: T.handle):
        N = T.int32()
        P = T.match_buffer(p, (4, N, 4), \"float32\")
        A = T.match_buffer(a, (N, 14), \"float32\")
        for i, j in T.grid(N, 14):
            A[i, j] = P[j // 4, i, j % 4]

    @T.prim_func
    def negate(p: T.handle, q: T.handle):
        N = T.int32()
        P = T.match_buffer(p, (4, N, 4), \"float32\")
        Q = T.match_buffer(q, (4, N, 4), \"float32\")
        for i, j, k in T.grid(4, N, 4):
            Q[i, j, k] = T.float32(0.0) - P[i, j, k]

    @R.function
    def main(a: R.Tensor((\"N\", 14), dtype=\"float32\")):
        N = T.int64()
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pack, (a,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            q = R.call_tir(cls.negate, (p,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            b = R.call_tir(cls.crop, (q,), out_sinfo=R.Tensor((N, 14), dtype=\"float32\"))
            r = R.call_tir(cls.pack, (b,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            y = R.call_tir(cls.negate, (r,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            R.output(y)
        return y
",
        after: "
@I.ir_module
class Module:
    @T.prim_func
    def pack(a: T.handle, p: T.handle):
        N = T.int32()
        A = T.match_buffer(a, (N, 14), \"float32\")
        P = T.match_buffer(p, (4, N, 4), \"float32\")
        for i, j, k in T.grid(4, N, 4):
            P[i, j, k] = T.if_then_else(i * 4 + k < 14, A[j, i * 4 + k], T.float32(0.0))

    @T.prim_func
    def negate(p: T.handle, q: T.handle):
        N = T.int32()
        P = T.match_buffer(p, (4, N, 4), \"float32\")
        Q = T.match_buffer(q, (4, N, 4), \"float32\")
        for i, j, k in T.grid(4, N, 4):
            Q[i, j, k] = T.float32(0.0) - P[i, j, k]

    @R.function
    def main(a: R.Tensor((\"N\", 14), dtype=\"float32\")):
        N = T.int64()
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pack, (a,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            q = R.call_tir(cls.negate, (p,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            y = R.call_tir(cls.negate, (q,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))
            R.output(y)
        return y
",
        layouts: &[],
        faults: &[
            // The crop and the pad are left out together with a call.
            "y = R.call_tir(cls.negate, (p,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))",
            "y = R.call_tir(cls.pack, (q,), out_sinfo=R.Tensor((4, N, 4), dtype=\"float32\"))",
            "y = R.call_tir(cls.negate, (q,), out_sinfo=R.Tensor((4, N, 3), dtype=\"float32\"))",
            "return q",
            // What holds something else in the padding is not what the pad makes.
            "Q[i, j, k] = T.float32(1.0) - P[i, j, k]",
            "P[i, j, k] = T.if_then_else(i * 4 + k < 14, A[j, i * 4 + k], T.float32(1.0))",
        ],
    },
    Rewrite {
        what: "folding: a constant that is packed into tiles with zeros behind",
        before: "
@I.ir_module
class Module:
    @T.prim_func
    def pack(W: T.Buffer((3, 2), \"float32\"), P: T.Buffer((2, 2, 2), \"float32\")):
        for o, j, i in T.grid(2, 2, 2):
            P[o, j, i] = T.if_then_else(o * 2 + i < 3, W[o * 2 + i, j], T.float32(0.0))

    @T.prim_func
    def scale(X: T.Buffer((2, 2, 2), \"float32\"), W: T.Buffer((2, 2, 2), \"float32\"), Y: T.Buffer((2, 2, 2), \"float32\")):
        for o, j, i in T.grid(2, 2, 2):
            Y[o, j, i] = X[o, j, i] * W[o, j, i]

    @R.function
    def main(x: R.Tensor((2, 2, 2), dtype=\"float32\")) -> R.Tensor((2, 2, 2), dtype=\"float32\"):
        cls = Module
        with R.dataflow():
            w = R.const([[1.0, -2.5], [3.0, 4.0], [5.0, 6e-3]], \"float32\")
            p = R.call_tir(cls.pack, (w,), out_sinfo=R.Tensor((2, 2, 2), dtype=\"float32\"))
            y = R.call_tir(cls.scale, (x, p), out_sinfo=R.Tensor((2, 2, 2), dtype=\"float32\"))
            R.output(y)
        return y
",
        after: "
@I.ir_module
class Module:
    @T.prim_func
    def scale(X: T.Buffer((2, 2, 2), \"float32\"), W: T.Buffer((2, 2, 2), \"float32\"), Y: T.Buffer((2, 2, 2), \"float32\")):
        for o, j, i in T.grid(2, 2, 2):
            Y[o, j, i] = X[o, j, i] * W[o, j, i]

    @R.function
    def main(x: R.Tensor((2, 2, 2), dtype=\"float32\")) -> R.Tensor((2, 2, 2), dtype=\"float32\"):
        cls = Module
        with R.dataflow():
            w = R.const([[[1.0, 3.0], [-2.5, 4.0]], [[5.0, 0.0], [6e-3, 0.0]]], \"float32\")
            y = R.call_tir(cls.scale, (x, w), out_sinfo=R.Tensor((2, 2, 2), dtype=\"float32\"))
            R.output(y)
        return y
",
        layouts: &[],
        faults: &[
            "w = R.const([[[1.0, 3.0], [-2.5, 4.0]], [[5.0, 0.0], [6e-3, 1.0]]], \"float32\")",
            "w = R.const([[[1.0, 3.0], [2.5, 4.0]], [[5.0, 0.0], [6e-3, 0.0]]], \"float32\")",
            "w = R.const([[[1.0, -2.5], [3.0, 4.0]], [[5.0, 0.0], [6e-3, 0.0]]], \"float32\")",
            "w = R.const([[[1.0, 3.0], [-2.5, 4.0]], [[5.0, 0.0], [6e-3]]], \"float32\")",
            "y = R.call_tir(cls.scale, (w, x), out_sinfo=R.Tensor((2, 2, 2), dtype=\"float32\"))",
            "y = R.call_tir(cls.scale, (x, x), out_sinfo=R.Tensor((2, 2, 2), dtype=\"float32\"))",
        ],
    },
    Rewrite {
        what: "lifting: the conversions of a function become calls, and ones are made of zeros in the padding",
        before: "
@I.ir_module
class Module:
    @T.prim_func
    def total(A: T.Buffer((14,), \"int32\"), B: T.Buffer((1,), \"int32\")):
        P = T.alloc_buffer((4, 4), \"int32\")
        for o, i in T.grid(4, 4):
            P[o, i] = T.if_then_else(o * 4 + i < 14, A[o * 4 + i] + 1, 1)
        B[0] = 0
        for o, i in T.grid(4, 4):
            B[0] = B[0] + P[o, i]

    @R.function
    def main(x: R.Tensor((14,), dtype=\"int32\")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((1,), dtype=\"int32\"))
            R.output(y)
        return (x, y)
",
        after: "
@I.ir_module
class Module:
    @T.prim_func
    def total_physical(P: T.Buffer((4, 4), \"int32\"), B: T.Buffer((1,), \"int32\")):
        for o, i in T.grid(4, 4):
            T.assume(o < 3 or i < 2 or P[o, i] == 1)
        B[0] = 0
        for o, i in T.grid(4, 4):
            B[0] = B[0] + P[o, i]

    @T.prim_func
    def pack(x: T.Buffer((14,), \"int32\"), y: T.Buffer((4, 4), \"int32\")):
        for o, i in T.grid(4, 4):
            y[o, i] = T.if_then_else(o * 4 + i < 14, x[o * 4 + i], 0)

    @T.prim_func
    def grow(x: T.Buffer((4, 4), \"int32\"), y: T.Buffer((4, 4), \"int32\")):
        for o, i in T.grid(4, 4):
            y[o, i] = x[o, i] + 1

    @R.function
    def main(x: R.Tensor((14,), dtype=\"int32\")):
        cls = Module
        with R.dataflow():
            p: R.Tensor((4, 4), dtype=\"int32\") = R.call_tir(cls.pack, (x,), out_sinfo=R.Tensor((4, 4), dtype=\"int32\"))
            q = R.call_tir(cls.grow, (p,), out_sinfo=R.Tensor((4, 4), dtype=\"int32\"))
            y = R.call_tir(cls.total_physical, (q,), out_sinfo=R.Tensor((1,), dtype=\"int32\"))
            R.output(y)
        return (x, y)
",
        layouts: &[],
        faults: &[
            // The assumption of the function that is called does not make it so.
            "y = R.call_tir(cls.total_physical, (p,), out_sinfo=R.Tensor((1,), dtype=\"int32\"))",
            "y[o, i] = T.if_then_else(o < 3 or i < 1, x[o, i] + 1, 1)",
            "B[0] = B[0] + P[o, 3 - i]",
            "return (y, x)",
        ],
    },
    Rewrite {
        what: "products of sizes: conditions and extents that are one product in another order",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64, m: T.int64, c: T.int64):
    A = T.match_buffer(a, (n * m,), \"float32\")
    B = T.match_buffer(b, (n * m,), \"float32\")
    for i in range(m * n):
        B[i] = A[i]
        if m * (n + 2) < c:
            B[i] = T.exp(A[i])
        if i < c:
            if i >= m * n - 1:
                B[i] = T.float32(0.0)
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64, m: T.int64, c: T.int64):
    A = T.match_buffer(a, (n * m,), \"float32\")
    B = T.match_buffer(b, (n * m,), \"float32\")
    for i in range(n * m):
        if c > n * m + 2 * m:
            B[i] = T.exp(A[i])
        else:
            B[i] = A[i]
    if n * m >= 1 and n * m - 1 < c:
        B[n * m - 1] = T.float32(0.0)
",
        layouts: &[],
        faults: &[
            // A cell that is there only where the product is not zero.
            "B[n * m - 2] = T.float32(0.0)",
            "B[n + m - 1] = T.float32(0.0)",
        ],
    },
    Rewrite {
        what: "overcompute: a maximum is not changed by the number with which it began",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64, w: T.int64):
    A = T.match_buffer(a, (n, (w + 3) // 4, 4), \"int32\")
    B = T.match_buffer(b, (n,), \"int32\")
    for i, io, ii in T.grid(n, (w + 3) // 4, 4):
        T.assume(io * 4 + ii < w or A[i, io, ii] == -9)
    for i in range(n):
        B[i] = -9
        for io, ii in T.grid((w + 3) // 4, 4):
            if io * 4 + ii < w:
                B[i] = T.max(B[i], A[i, io, ii])
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64, w: T.int64):
    A = T.match_buffer(a, (n, (w + 3) // 4, 4), \"int32\")
    B = T.match_buffer(b, (n,), \"int32\")
    for i, io, ii in T.grid(n, (w + 3) // 4, 4):
        T.assume(io * 4 + ii < w or A[i, io, ii] == -9)
    for i in range(n):
        B[i] = -9
        for io, ii in T.grid((w + 3) // 4, 4):
            B[i] = T.max(B[i], A[i, io, ii])
",
        layouts: &[],
        faults: &[
            "B[i] = T.min(B[i], A[i, io, ii])",
            "B[i] = B[i] + A[i, io, ii]",
            "B[i] = T.max(B[i], A[i, io, ii] + 1)",
            "B[i] = T.max(0, A[i, io, ii])",
        ],
    },
    Rewrite {
        what: "padding of a sum over any number of terms, none included, which another block reads",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64, p: T.int64):
    A = T.match_buffer(a, (n, p), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    C = T.alloc_buffer((n,), \"float32\")
    for i, k in T.grid(n, p):
        with T.block(\"sum\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                C[vi] = T.float32(0.0)
            C[vi] = C[vi] + A[vi, vk]
    for i in range(n):
        B[i] = T.exp(C[i])
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64, p: T.int64):
    A = T.match_buffer(a, (n, p), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    C = T.alloc_buffer(((n + 3) // 4, 4), \"float32\")
    for i, k in T.grid(n, p):
        with T.block(\"sum\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                C[vi // 4, vi % 4] = T.float32(0.0)
            C[vi // 4, vi % 4] = C[vi // 4, vi % 4] + A[vi, vk]
    for i in range(n):
        B[i] = T.exp(C[i // 4, i % 4])
",
        layouts: &[],
        faults: &["B[i] = T.exp(C[i // 4, (i + 1) % 4])", "B[i] = C[i // 4, i % 4]"],
    },
    Rewrite {
        what: "a swizzle of eight columns, for any number of rows",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 8), \"float32\")
    B = T.match_buffer(b, (8, n), \"float32\")
    S = T.alloc_buffer((n, 8), \"float32\")
    for i, j in T.grid(n, 8):
        S[i, j] = A[i, j]
    for j, i in T.grid(8, n):
        B[j, i] = S[i, j]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 8), \"float32\")
    B = T.match_buffer(b, (8, n), \"float32\")
    S = T.alloc_buffer((n, 8), \"float32\")
    for i, j in T.grid(n, 8):
        S[i, T.bitwise_xor(j, i % 8)] = A[i, j]
    for j, i in T.grid(8, n):
        B[j, i] = S[i, T.bitwise_xor(j, i % 8)]
",
        layouts: &[],
        faults: &[
            "B[j, i] = S[i, T.bitwise_xor(j, i % 4)]",
            "B[j, i] = S[i, T.bitwise_or(j, i % 8)]",
            "B[j, i] = S[i, (j + i) % 8]",
        ],
    },
    Rewrite {
        what: "a swizzle of 32 columns in tiles of an open matrix, whose padding is made and not read",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), \"float32\")
    B = T.match_buffer(b, (n, m), \"float32\")
    S = T.alloc_buffer((n, m), \"float32\")
    for i, j in T.grid(n, m):
        S[i, j] = A[i, j] + T.float32(1)
    for i, j in T.grid(n, m):
        B[i, j] = S[i, j]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), \"float32\")
    B = T.match_buffer(b, (n, m), \"float32\")
    S = T.alloc_buffer((n, (m + 31) // 32, 32), \"float32\")
    for i, t, c in T.grid(n, (m + 31) // 32, 32):
        if t * 32 + T.bitwise_xor(c, i % 32) < m:
            S[i, t, c] = A[i, t * 32 + T.bitwise_xor(c, i % 32)] + T.float32(1)
        else:
            S[i, t, c] = T.float32(0)
    for i, j in T.grid(n, m):
        B[i, j] = S[i, j // 32, T.bitwise_xor(j % 32, i % 32)]
",
        layouts: &[],
        faults: &[
            "B[i, j] = S[i, j // 32, T.bitwise_xor(j % 32, i % 16)]",
            "if t * 32 + T.bitwise_xor(c, i % 32) + 1 < m:",
        ],
    },
    Rewrite {
        what: "the digits of an open axis in the order of their last ones",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    S = T.alloc_buffer((n,), \"float32\")
    for i in range(n):
        S[i] = A[i]
    for i in range(n):
        B[i] = S[i]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    S = T.alloc_buffer(((n + 7) // 8, 8), \"float32\")
    for i in range(n):
        S[i // 8, i % 2 * 4 + i // 2 % 2 * 2 + i // 4 % 2] = A[i]
    for i in range(n):
        B[i] = S[i // 8, i % 2 * 4 + i // 2 % 2 * 2 + i // 4 % 2]
",
        layouts: &[],
        faults: &[
            "B[i] = S[i // 8, i % 2 * 4 + i // 2 % 4]",
            "B[i] = S[i // 8, i % 8]",
        ],
    },
    Rewrite {
        what: "loops of a sum as one loop, over any number of rows",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 5), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    for i, k in T.grid(n, 5):
        if k == 0:
            B[i] = T.float32(0.0)
        B[i] = B[i] + A[i, k]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 5), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    for j in range(n * 5):
        if j % 5 == 0:
            B[j // 5] = T.float32(0.0)
        B[j // 5] = B[j // 5] + A[j // 5, j % 5]
",
        layouts: &[],
        faults: &[
            "B[j // 5] = B[j // 5] + A[j // 5, (j + 1) % 5]",
            "B[j // 5] = B[j // 5] + A[j // 5, 4 - j % 5]",
        ],
    },
    Rewrite {
        what: "tiles of two sizes, the second ones with their loops exchanged, over any number",
        before: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    C = T.alloc_buffer((n,), \"float32\")
    for i in range(n):
        C[i] = T.exp(A[i])
    for i in range(n):
        B[i] = C[i] * C[i]
",
        after: "
def f(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), \"float32\")
    B = T.match_buffer(b, (n,), \"float32\")
    C = T.alloc_buffer((n,), \"float32\")
    for io, ii in T.grid((n + 4) // 5, 5):
        if io * 5 + ii < n:
            C[io * 5 + ii] = T.exp(A[io * 5 + ii])
    for ii, io in T.grid(8, (n + 7) // 8):
        if io * 8 + ii < n:
            B[io * 8 + ii] = C[io * 8 + ii] * C[io * 8 + ii]
",
        layouts: &[],
        faults: &[
            "B[io * 8 + ii] = C[io * 8 + ii] * C[io * 7 + ii]",
            "B[io * 8 + ii] = C[io * 8] * C[io * 8 + ii]",
        ],
    },
];
