//! What the dialects say, and how it is printed.

use expect_test::{Expect, expect};
use tilewright_ir::{
    Attr, DType, Expr, Function, GraphExpr, GraphFunc, Module, Source, StmtKind, Tensor, equal,
    well_formed,
};
use tilewright_tvmscript::{
    ConstTable, parse_module, parse_module_with, print_func, print_module, print_module_with,
};

fn parse(text: &str) -> Module {
    let module =
        parse_module(&Source::new("a.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    if let Err(e) = well_formed::check_module(&module) {
        panic!("{}", e.in_source(&Source::new("a.py", text)).render());
    }
    module
}

/// The printed functions, without the lines that every module has.
fn prints(text: &str, expected: Expect) {
    let module = parse(text);
    let printed = print_module(&module);
    let body = printed.split_once("class Module:\n").map_or("", |(_, body)| body);
    let lines = body.lines().map(|l| l.strip_prefix("    ").unwrap_or(l).to_owned() + "\n");
    expected.assert_eq(&lines.collect::<String>());
    let again = parse(&printed);
    if let Err(d) = equal::modules(&module, &again, &equal::Equality::default()) {
        panic!("{d}\n{printed}");
    }
}

/// Two texts that mean the same.
fn same(a: &str, b: &str) {
    if let Err(d) = equal::modules(&parse(a), &parse(b), &equal::Equality::default()) {
        panic!("{d}\n{a}\n{b}");
    }
}

fn func(params: &str, body: &str) -> String {
    let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
    format!("@T.prim_func\ndef f({params}):\n{body}")
}

#[test]
fn the_newer_dialect_reads_as_the_older() {
    let older = r#"
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    B = T.alloc_buffer((128, 128))
    for i, j in T.grid(128, 128):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            T.block_attr({"key": 1})
            x: T.float32 = A[vi, vj]
            B[vi, vj] = x * T.float32(2.0)
"#;
    let newer = r#"
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def f(A: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    B = T.sblock_alloc_buffer((128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            T.sblock_attr({"key": 1})
            x: T.let[T.float32] = A[vi, vj]
            B[vi, vj] = x * T.float32(2.0)
"#;
    same(older, newer);
    // The dialect is also known from what the printer of the newer one says in comments.
    same(older, &newer.replace("from tvm", "# from tvm"));
    prints(
        older,
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
                    B = T.alloc_buffer((128, 128), "float32")
                    for i, j in T.grid(128, 128):
                        with T.block("B"):
                            vi, vj = T.axis.remap("SS", [i, j])
                            T.reads(A[vi, vj])
                            T.writes(B[vi, vj])
                            T.block_attr({"key": 1})
                            x: T.float32 = A[vi, vj]
                            B[vi, vj] = x * T.float32(2.0)
        "#]],
    );
}

#[test]
fn alloc_buffer_means_two_things() {
    let body = "A = T.alloc_buffer((16,), \"int32\")\nfor i in range(16):\n    A[i] = 0";
    let root = |text: &str| match parse(text).functions.get("f") {
        Some(Function::Tensor(f)) => f.root().is_some(),
        _ => false,
    };
    assert!(root(&func("", body)));
    let newer = format!("from tvm.script import tirx as T\n{}", func("", body));
    assert!(!root(&newer));
    prints(
        &newer,
        expect![[r#"
                @T.prim_func
                def f():
                    A = T.decl_buffer((16,), "int32")
                    for i in range(16):
                        A[i] = 0
        "#]],
    );
    // Where a block's suite is not around it, it is memory for the rest of the suite.
    let inner = "for i in range(16):\n    A = T.alloc_buffer((1,), \"int32\")\n    A[0] = i";
    prints(
        &func("", inner),
        expect![[r#"
                @T.prim_func
                def f():
                    for i in range(16):
                        A = T.decl_buffer((1,), "int32")
                        A[0] = i
        "#]],
    );
}

#[test]
fn loose_code_of_design_documents() {
    same(
        &func("A: T.Buffer[14, \"float32\"], B: T.Buffer[(4, 4), \"int32\"]", "A[0] = B[1, 2]"),
        &func("A: T.Buffer((14,), \"float32\"), B: T.Buffer((4, 4), \"int32\")", "A[0] = B[1, 2]"),
    );
    same(
        &func(
            "a: T.handle, b: T.handle",
            "A = T.match_buffer(shape=(16, 14), dtype=\"float32\")\n\
             B = T.match_buffer(shape=(16,), dtype=\"float32\")\nB[0] = A[0, 1]",
        ),
        &func("A: T.Buffer((16, 14)), B: T.Buffer((16,))", "B[0] = A[0, 1]"),
    );
    prints(
        r#"
@T.func
def grow(A: T.Buffer[14, "int32"], B: T.Buffer[(4, 4), "int32"]):
    AC = T.alloc_buffer(4, 4)
    C = T.alloc_buffer(14, "float32")
    with block("compute"):
        for io, ii in grid(4, 4):
            AC[io, ii] = if_then_else(4*io + ii < 14, A[4*io + ii], T.undef())
        for i in T.grid(14):
            if 0 <= i < 13:
                C[i] = i
    with T.block():
        T.block_attr("postproc", ["crop", T.undef()])
        B[0, 0] += 1
"#,
        expect![[r#"
                @T.prim_func
                def grow(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
                    AC = T.alloc_buffer((4, 4), "float32")
                    C = T.alloc_buffer((14,), "float32")
                    with T.block("compute"):
                        for io, ii in T.grid(4, 4):
                            AC[io, ii] = T.Cast("float32", T.if_then_else(4 * io + ii < 14, A[4 * io + ii], T.undef(dtype="int32")))
                        for i in range(14):
                            if 0 <= i and i < 13:
                                C[i] = T.Cast("float32", i)
                    with T.block("block"):
                        T.block_attr({"postproc": ["crop", T.undef(dtype="int32")]})
                        B[0, 0] = B[0, 0] + 1
        "#]],
    );
    prints(
        r#"
@tvm.script.ir_module
class MyMod:
    @T.func
    def pad(A: T.Buffer((128, 127)), B: T.Buffer((128, 128))):
        B[0, 0] = A[0, 0]

    @R.func
    def main(x: R.Tensor((128, 127)), w: T.Tensor[(128, 127), "float32"]):
        lv0 = call_tir(pad, [x], (128, 128))
        lv1 = call_tir(pad, [w], (128, 128))
        ...
"#,
        expect![[r#"
                @T.prim_func
                def pad(A: T.Buffer((128, 127), "float32"), B: T.Buffer((128, 128), "float32")):
                    B[0, 0] = A[0, 0]

                @R.function
                def main(x: R.Tensor((128, 127), dtype="float32"), w: R.Tensor((128, 127), dtype="float32")):
                    cls = Module
                    lv0 = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((128, 128), dtype="float32"))
                    lv1 = R.call_tir(cls.pad, (w,), out_sinfo=R.Tensor((128, 128), dtype="float32"))
                    return R.tuple()
        "#]],
    );
}

#[test]
fn shapes_with_names() {
    prints(
        r#"
@T.prim_func
def f(A: T.Buffer(("n", 128), "float32"), B: T.Buffer((128, n), "float32"), m: T.int64):
    n = T.int32()
    A[0, 0] = B[0, 0]
"#,
        expect![[r#"
                @T.prim_func
                def f(A_handle: T.handle, B_handle: T.handle, m: T.int64):
                    n = T.int32()
                    A = T.match_buffer(A_handle, (n, 128), "float32")
                    B = T.match_buffer(B_handle, (128, n), "float32")
                    A[0, 0] = B[0, 0]
        "#]],
    );
    same(
        &func(
            "a: T.handle, n: T.int32",
            "A = T.match_buffer(a, (n, (n + 31) // 32))\nA[0, 0] = 1.0",
        ),
        &func("A: T.Buffer((\"n\", \"(n + 31) // 32\")), n: T.int32", "A[0, 0] = 1.0"),
    );
    prints(
        &func(
            "a: T.handle",
            "s0 = T.int32()\nA = T.match_buffer(a, (4, 4), \"int8\", strides=[s0, 1], elem_offset=0, \
             scope=\"shared\", align=128, offset_factor=8, axis_separators=[1])\nA[0, 0] = T.int8(1)",
        ),
        expect![[r#"
                @T.prim_func
                def f(a: T.handle):
                    s0 = T.int32()
                    A = T.match_buffer(a, (4, 4), "int8", strides=(s0, 1), elem_offset=0, scope="shared", align=128, offset_factor=8, axis_separators=[1])
                    A[0, 0] = T.int8(1)
        "#]],
    );
}

#[test]
fn bindings_and_scopes() {
    prints(
        &func(
            "A: T.Buffer((16,), \"float32\"), n: T.int32",
            "x = n + 1\n\
             y: T.int64 = 3\n\
             z: T.let[T.int32] = x // 2\n\
             with T.LetStmt(x * 2) as w:\n    A[w] = 1\n\
             with T.let(v, x):\n    A[v] = 2\n\
             A[z] = T.Cast(\"float32\", y)",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16,), "float32"), n: T.int32):
                    x: T.int32 = n + 1
                    y: T.int64 = T.int64(3)
                    z: T.int32 = x // 2
                    with T.LetStmt(x * 2) as w:
                        A[w] = T.float32(1.0)
                    with T.LetStmt(x) as v:
                        A[v] = T.float32(2.0)
                    A[z] = T.Cast("float32", y)
        "#]],
    );
    prints(
        &func(
            "A: T.Buffer((16,), \"float32\")",
            "B = T.allocate([16], \"float32\", \"local\")\n\
             C = T.decl_buffer((4, 4), data=B)\n\
             D = T.Buffer((8,), \"float32\", data=B.data)\n\
             E = A.view(4, 4)\n\
             with T.decl_buffer((2,), \"int32\") as F:\n    F[0] = 1\n\
             G = T.alloc_shared((4,), \"float16\")\n\
             p: T.handle(\"float32\") = A.data\n\
             H = T.decl_buffer((3,), data=p)\n\
             A[0] = C[0, 0] + D[0] + E[0, 0] + H[0]",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16,), "float32")):
                    B = T.decl_buffer((16,), "float32", scope="local")
                    C = T.decl_buffer((4, 4), "float32", data=B.data)
                    D = T.decl_buffer((8,), "float32", data=B.data)
                    E = T.decl_buffer((4, 4), "float32", data=A.data)
                    with T.decl_buffer((2,), "int32") as F:
                        F[0] = 1
                    G = T.decl_buffer((4,), "float16", scope="shared")
                    p: T.handle = A.data
                    H = T.decl_buffer((3,), "float32", data=p)
                    A[0] = C[0, 0] + D[0] + E[0, 0] + H[0]
        "#]],
    );
    prints(
        &func(
            "A: T.Buffer((16,), \"float32\"), n: T.int32",
            "with T.launch_thread(\"blockIdx.x\", 4) as bx:\n    \
                 tx = T.launch_thread(\"threadIdx.x\", 4)\n    \
                 ty = T.env_thread(\"threadIdx.y\")\n    \
                 T.launch_thread(ty, 1)\n    \
                 A[bx * 4 + tx + ty] = 1\n\
             with T.Assert(n > 0, \"positive\"):\n    A[0] = 2\n\
             assert n < 9, \"small\"\n\
             return n",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16,), "float32"), n: T.int32):
                    for bx in T.thread_binding(4, thread="blockIdx.x"):
                        for tx in T.thread_binding(4, thread="threadIdx.x"):
                            for ty in T.thread_binding(1, thread="threadIdx.y"):
                                A[bx * 4 + tx + ty] = T.float32(1.0)
                    assert n > 0, "positive"
                    A[0] = T.float32(2.0)
                    assert n < 9, "small"
                    T.evaluate(T.ret(n))
        "#]],
    );
}

#[test]
fn loops() {
    prints(
        &func(
            "A: T.Buffer((16, 16), \"int32\"), n: T.int32",
            "for i in T.serial(16):\n    for j in T.serial(0, 16):\n        A[i, j] = 0\n\
             for i in range(4, 12):\n    for j in range(i, i + 4):\n        A[i, j] = j\n\
             for i in T.parallel(n, n + 4):\n    for j in T.vectorized(T.int64(16)):\n        A[i, j] = 0\n\
             for i in T.thread_binding(0, 16, \"threadIdx.x\"):\n    A[i, 0] = 1\n\
             for i in T.unroll(4, annotations={\"pragma\": True, \"n\": [1, 2.5, None, \"x\"]}):\n    A[i, 0] = 1\n\
             for i in T.serial(4, annotations={\"k\": {\"a\": T.int64(3)}}):\n    A[i, 0] = 1\n\
             for i, j, k in T.grid(n, 4, 4):\n    A[i, j] = k\n\
             for i in range(n, 9):\n    A[0, 0] = 1",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16, 16), "int32"), n: T.int32):
                    for i, j in T.grid(16, 16):
                        A[i, j] = 0
                    for i in range(4, 12):
                        for j in range(i, i + 4):
                            A[i, j] = j
                    for i in T.parallel(n, n + 4):
                        for j in T.vectorized(T.int64(16)):
                            A[i, j] = 0
                    for i in T.thread_binding(16, thread="threadIdx.x"):
                        A[i, 0] = 1
                    for i in T.unroll(4, annotations={"n": [1, 2.5, None, "x"], "pragma": True}):
                        A[i, 0] = 1
                    for i in T.serial(4, annotations={"k": {"a": T.int64(3)}}):
                        A[i, 0] = 1
                    for i, j, k in T.grid(n, 4, 4):
                        A[i, j] = k
                    for i in range(n, 9):
                        A[0, 0] = 1
        "#]],
    );
}

#[test]
fn blocks() {
    prints(
        &func(
            "A: T.Buffer((16, 16), \"float32\"), C: T.Buffer((16,), \"float32\"), n: T.int32",
            "for i, j in T.grid(16, 16):\n    with T.block(\"C\"):\n        \
                 vi, vj = T.axis.remap(\"SR\", [i, j])\n        \
                 T.where(i < n and j < 4)\n        \
                 T.reads([A[vi, 0:4], C])\n        T.writes()\n        \
                 T.block_attr({\"a\": 1})\n        T.block_attr({\"b\": \"x\"})\n        \
                 B = T.alloc_buffer((), \"float32\", scope=\"local\")\n        \
                 V = T.match_buffer(A[vi, 4:8], (1, 4), offset_factor=1)\n        \
                 W = T.match_buffer(A[0:16, vj:vj + 4], (16, 4), elem_offset=T.int32(0))\n        \
                 with T.init():\n            C[vi] = 0.0\n        \
                 B[()] = V[0, vj] + W[vi, 0]\n        \
                 C[vi] = C[vi] + B[()]\n\
             for i in range(4):\n    with T.block(\"D\"):\n        \
                 a = T.axis.spatial(16, i * 4)\n        b = T.axis.reduce((2, 6), i + 2)\n        \
                 c = T.axis.opaque(T.int64(4), i)\n        d = T.axis.S(n, i)\n        \
                 C[a] = T.Cast(\"float32\", b)",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16,), "float32"), n: T.int32):
                    for i, j in T.grid(16, 16):
                        with T.block("C"):
                            vi, vj = T.axis.remap("SR", [i, j])
                            T.where(i < n and j < 4)
                            T.reads(A[vi, 0:4], C[0:16])
                            T.writes()
                            T.block_attr({"a": 1, "b": "x"})
                            B = T.alloc_buffer((), "float32", scope="local")
                            V = T.match_buffer(A[vi, 4:8], (1, 4), "float32", offset_factor=1)
                            W = T.match_buffer(A[0:16, vj:vj + 4], (16, 4), "float32", elem_offset=0)
                            with T.init():
                                C[vi] = T.float32(0.0)
                            B[()] = V[0, vj] + W[vi, 0]
                            C[vi] = C[vi] + B[()]
                    for i in range(4):
                        with T.block("D"):
                            a = T.axis.spatial(16, i * 4)
                            b = T.axis.reduce((2, 6), i + 2)
                            c = T.axis.opaque(T.int64(4), T.Cast("int64", i))
                            d = T.axis.spatial(n, i)
                            C[a] = T.Cast("float32", b)
        "#]],
    );
    prints(
        &func(
            "A: T.Buffer((16,), \"float32\")",
            "with T.block(\"root\"):\n    T.reads()\n    T.writes()\n    T.block_attr({\"meta\": 1})\n    \
                 B = T.alloc_buffer((16,))\n    A[0] = B[0]",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16,), "float32")):
                    with T.block("root"):
                        T.reads()
                        T.writes()
                        T.block_attr({"meta": 1})
                        B = T.alloc_buffer((16,), "float32")
                        A[0] = B[0]
        "#]],
    );
}

#[test]
fn expressions() {
    let params = "A: T.Buffer((16,), \"float32\"), J: T.Buffer((16,), \"int32\"), n: T.int32, l: T.int64, x: T.float32, b: T.bool";
    prints(
        &func(
            params,
            "J[0] = 0 <= n < 14 or not b and n != 3\n\
             J[0] = -n + 4 * 4 - 2 ** 3\n\
             J[0] = n // 4 % 3 + T.truncdiv(n, 4) - T.truncmod(n, 4) + T.ceildiv(n, 8)\n\
             J[0] = min(n, 3) + max(1, n) + abs(n) + T.min(n, 2) * T.max(n, 1)\n\
             J[0] = n << 2 | n >> 1 & ~n ^ 5\n\
             J[0] = T.Select(b, n, 0) + T.if_then_else(n < 3, 1, n)\n\
             J[0] = T.int32(7) * T.int32(-1) + T.uint8(255)\n\
             J[l] = l + n + T.Div(n, 2) + T.LT(n, 3)\n\
             A[0] = x / 2 + n * 0.5 + T.float16(0.1) + T.float64(1e300)\n\
             A[0] = T.float32(\"inf\") + float(\"-inf\") + T.float32(\"nan\") + T.infinity(\"float32\")\n\
             A[0] = T.max_value(\"float32\") - T.min_value(\"float32\")\n\
             A[0] = T.exp(x) + T.pow(x, 2.0) + T.sqrt(2) + T.atan2(x, 1) + n.astype(\"float32\")\n\
             A[0] = T.Let(y + z, where={y: x, z: y * 2.0})\n\
             A[0] = T.call_extern(\"float32\", \"f\", x, A.data, \"s\") + T.call_intrin(\"float32\", \"tir.g\", 1)\n\
             A[0] = T.undef() + T.undef(dtype=\"float32\")\n\
             A[0:4] = A[4:8] + T.Broadcast(1.0, 4)\n\
             A[T.ramp(n, 2, 4)] = T.Cast(\"float32x4\", J[0:16:4]) * x\n\
             J[0] = T.likely(n < 3, dtype=\"bool\")\n\
             J[n] -= 1\n\
             T.assume(J[0] == T.undef() or n < 4)\n\
             T.evaluate(n)\n\
             T.call_extern(\"void\", \"g\", A)\n\
             T.tvm_storage_sync(\"shared\")\n\
             T.evaluate(T.tvm_access_ptr(T.type_annotation(\"float32\"), A.data, 0, 16, 1))",
        ),
        expect![[r#"
                @T.prim_func
                def f(A: T.Buffer((16,), "float32"), J: T.Buffer((16,), "int32"), n: T.int32, l: T.int64, x: T.float32, b: T.bool):
                    J[0] = T.Cast("int32", 0 <= n and n < 14 or not b and n != 3)
                    J[0] = n * -1 + 16 - T.pow(2, 3)
                    J[0] = n // 4 % 3 + T.truncdiv(n, 4) - T.truncmod(n, 4) + (n + 8 - 1) // 8
                    J[0] = T.min(n, 3) + T.max(1, n) + T.abs(n) + T.min(n, 2) * T.max(n, 1)
                    J[0] = T.bitwise_or(T.shift_left(n, 2), T.bitwise_xor(T.bitwise_and(T.shift_right(n, 1), T.bitwise_not(n)), 5))
                    J[0] = T.Select(b, n, 0) + T.if_then_else(n < 3, 1, n)
                    J[0] = T.int32(7) * -1 + T.Cast("int32", T.uint8(255))
                    J[l] = T.Cast("int32", l + T.Cast("int64", n) + T.Cast("int64", T.truncdiv(n, 2)) + T.Cast("int64", n < 3))
                    A[0] = T.Cast("float32", T.Cast("float64", x / T.float32(2.0) + T.Cast("float32", n) * T.float32(0.5) + T.Cast("float32", T.float16(0.0999755859375))) + T.float64(1e300))
                    A[0] = T.float32("inf") + T.float32("-inf") + T.float32("nan") + T.float32("inf")
                    A[0] = T.float32(3.4028235e38) - T.float32(-3.4028235e38)
                    A[0] = T.exp(x) + T.pow(x, T.float32(2.0)) + T.sqrt(T.float32(2.0)) + T.atan2(x, T.float32(1.0)) + T.Cast("float32", n)
                    A[0] = T.Let(T.Let(y + z, where={z: y * T.float32(2.0)}), where={y: x})
                    A[0] = T.call_extern("float32", "f", x, A.data, "s") + T.call_intrin("float32", "g", 1)
                    A[0] = T.undef(dtype="float32") + T.undef(dtype="float32")
                    A[T.Ramp(0, 1, 4)] = A[T.Ramp(4, 1, 4)] + T.Broadcast(T.float32(1.0), 4)
                    A[T.Ramp(n, 2, 4)] = T.Cast("float32x4", J[T.Ramp(0, 4, 4)]) * T.Broadcast(x, 4)
                    J[0] = T.Cast("int32", T.likely(n < 3))
                    J[n] = J[n] - 1
                    T.assume(J[0] == T.undef(dtype="int32") or n < 4)
                    T.evaluate(n)
                    T.evaluate(T.call_extern("void", "g", A.data))
                    T.evaluate(T.tvm_storage_sync("shared"))
                    T.evaluate(T.tvm_access_ptr(T.call_intrin("float32", "type_annotation"), A.data, 0, 16, 1))
        "#]],
    );
}

#[test]
fn graph_functions() {
    prints(
        r#"
@I.ir_module
class Net:
    I.module_attrs({"version": 3})

    @T.prim_func(private=True)
    def two(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32"), n: T.int64):
        y[0] = x[0]
        z[0] = x[0]

    @R.function(private=True)
    def inner(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        return x

    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32"), s: R.Shape(["n"]), o: R.Object) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor(("n * 2",), dtype="int64")):
        n = T.int64()
        R.func_attr({"num_input": 1, "output_names": ["a", "b"]})
        cls = Net
        c = R.const([0.5, -1.0, 2.0, float("inf")], "float32")
        with R.dataflow():
            lv = R.call_tir(cls.two, (c,), out_sinfo=[R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")], tir_vars=R.shape([n]))
            lv1: R.Tensor((4,), dtype="float32") = lv[0]
            lv2 = cls.inner(lv1)
            lv3: R.Tensor(dtype="float32", ndim=4) = R.permute_dims(x, axes=[0, 1], index_map=T.index_map(lambda i, j: (i // 4, j, i % 4)))
            lv4: R.Tensor((n * 2,), dtype="int64") = R.shape_to_tensor(R.shape([n, 4]))
            gv = (lv1, lv4)
            R.output(gv, lv2)
        return gv
"#,
        expect![[r#"
                I.module_attrs({"version": 3})

                @T.prim_func(private=True)
                def two(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32"), n: T.int64):
                    y[0] = x[0]
                    z[0] = x[0]

                @R.function(private=True)
                def inner(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
                    return x

                @R.function
                def main(x: R.Tensor(("n", 4), dtype="float32"), s: R.Shape(["n"]), o: R.Object) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor(("n * 2",), dtype="int64")):
                    n = T.int64()
                    R.func_attr({"num_input": 1, "output_names": ["a", "b"]})
                    cls = Module
                    c = R.const([0.5, -1.0, 2.0, float("inf")], "float32")
                    with R.dataflow():
                        lv = R.call_tir(cls.two, (c,), out_sinfo=[R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")], tir_vars=R.shape([n]))
                        lv1: R.Tensor((4,), dtype="float32") = lv[0]
                        lv2: R.Tensor((4,), dtype="float32") = cls.inner(lv1)
                        lv3: R.Tensor(dtype="float32", ndim=4) = R.permute_dims(x, axes=[0, 1], index_map="lambda i0, i1: (i0 // 4, i1, i0 % 4)")
                        lv4: R.Tensor((n * 2,), dtype="int64") = R.shape_to_tensor(R.shape([n, 4]))
                        gv: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((n * 2,), dtype="int64")) = (lv1, lv4)
                        R.output(gv, lv2)
                    return gv
        "#]],
    );
}

#[test]
fn names_that_are_not_python_names_survive() {
    let four = "R.Tensor((4,), dtype=\"float32\")";
    let text = format!(
        "@I.ir_module\nclass M:\n    @T.prim_func(name=\"a/b\", names={{\"A\": \"in 0\", \"n\": \"lambda\"}})\n    \
         def a_b(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float32\"), n: T.int32):\n        B[n] = A[n]\n    \
         @R.function(names={{\"x\": \"gpu_0/data_0\", \"y\": \"x\"}})\n    \
         def main(x: {four}, y: {four}):\n        cls = M\n        \
         z = R.call_tir(cls.a_b, (x,), out_sinfo={four}, tir_vars=(T.int32(1),))\n        return z\n"
    );
    prints(
        &text,
        expect![[r#"
                @T.prim_func(name="a/b", names={"in_0": "in 0", "lambda_": "lambda"})
                def a_b(in_0: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), lambda_: T.int32):
                    B[lambda_] = in_0[lambda_]

                @R.function(names={"gpu_0_data_0": "gpu_0/data_0"})
                def main(gpu_0_data_0: R.Tensor((4,), dtype="float32"), x: R.Tensor((4,), dtype="float32")):
                    cls = Module
                    z = R.call_tir(cls.a_b, (gpu_0_data_0,), out_sinfo=R.Tensor((4,), dtype="float32"), tir_vars=R.shape([T.int32(1)]))
                    return z
        "#]],
    );
    let module = parse(&print_module(&parse(&text)));
    let Some(Function::Graph(main)) = module.functions.get("main") else { panic!("no graph") };
    let names: Vec<&str> = main.params.iter().map(|p| &**p.name()).collect();
    assert_eq!(names, ["gpu_0/data_0", "x"]);
    let Some(Function::Tensor(f)) = module.functions.get("a/b") else { panic!("no function") };
    let names: Vec<&str> = f.buffers().map(|b| &*b.name).collect();
    assert_eq!(names, ["in 0", "B"]);
}

fn constant(tensor: Tensor) -> Module {
    let mut module = Module::new();
    let f = GraphFunc {
        params: Vec::new(),
        blocks: Vec::new(),
        ret: GraphExpr::Const(tensor),
        ret_ty: None,
        attrs: Default::default(),
        private: false,
        span: None,
    };
    module.insert("main", f);
    module
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn constants_are_exact() {
    let bits = [0x7fc0_0001u32, 0xffff_ffff, 0x8000_0000, 0x7f80_0000, 1, 0x3f80_0001];
    let odd: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
    let many: Vec<f32> = (0..100).map(|i| i as f32 * 0.1).collect();
    let cases = [
        floats(&[], &[0.1]),
        floats(&[2, 3], &odd),
        floats(&[2], &[-0.0, f32::MIN_POSITIVE]),
        floats(&[0, 5], &[]),
        floats(&[10, 10], &many),
        Tensor::from_slice(&[2], &[u64::MAX, 0]).unwrap_or_else(|e| panic!("{e}")),
        Tensor::from_slice(&[2], &[i64::MIN, i64::MAX]).unwrap_or_else(|e| panic!("{e}")),
        Tensor::from_bools(&[3], &[true, false, true]).unwrap_or_else(|e| panic!("{e}")),
        Tensor::from_bytes(DType::BOOL, &[2], &[0, 2]).unwrap_or_else(|e| panic!("{e}")),
    ];
    let mut texts = String::new();
    for tensor in cases {
        let text = print_module(&constant(tensor.clone()));
        let value = text.lines().last().unwrap_or("").trim();
        texts += &format!("{}\n", &value[..value.len().min(90)]);
        match parse(&text).functions.get("main") {
            Some(Function::Graph(f)) => match &f.ret {
                GraphExpr::Const(t) => assert!(t.same(&tensor), "{text}"),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    expect![[r#"
        return R.const(0.1, "float32")
        return R.const(b64="AQDAf/////8AAACAAACAfwEAAAABAIA/", shape=(2, 3), dtype="float32")
        return R.const([-0.0, 1.1754944e-38], "float32")
        return R.const(b64="", shape=(0, 5), dtype="float32")
        return R.const(b64="AAAAAM3MzD3NzEw+mpmZPs3MzD4AAAA/mpkZPzMzMz/NzEw/Z2ZmPwAAgD/NzIw/mpmZP2
        return R.const([18446744073709551615, 0], "uint64")
        return R.const([-9223372036854775808, 9223372036854775807], "int64")
        return R.const([True, False, True], "bool")
        return R.const(b64="AAI=", shape=(2,), dtype="bool")
    "#]]
    .assert_eq(&texts);
}

#[test]
fn constants_in_metadata_are_read() {
    // One int64 constant of shape [1], as the newer dialect's printer stores it.
    let tensor = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAABAAQABAAAAAAAAAAgAAAAAAAAABQAAAAAAAAA=";
    let json = format!(
        r#"{{\"root_index\": 5, \"nodes\": [
            {{\"type\": \"ffi.String\", \"data\": \"relax.expr.Constant\"}},
            {{\"type\": \"None\"}},
            {{\"type\": \"ffi.Tensor\", \"data\": \"{tensor}\"}},
            {{\"type\": \"relax.expr.Constant\", \"data\": {{\"span\": null, \"data\": 2}}}},
            {{\"type\": \"ffi.Array\", \"data\": [3]}},
            {{\"type\": \"ffi.Map\", \"data\": [0, 4]}}]}}"#
    );
    prints(
        &format!(
            "metadata = tvm.ir.load_json(\"\"\"{json}\"\"\")\n@R.function\ndef f():\n    \
             return R.add(metadata[\"relax.expr.Constant\"][0], R.const(1, \"int64\"))\n"
        ),
        expect![[r#"
                @R.function
                def f():
                    return R.add(R.const([5], "int64"), R.const(1, "int64"))
        "#]],
    );
}

#[test]
fn large_constants_can_be_kept_apart() {
    let many: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let mut table = ConstTable::new();
    let module = constant(floats(&[100], &many));
    let text = print_module_with(&module, &mut table);
    expect![[r#"        return R.const_ref("c0", R.Tensor((100,), dtype="float32"))"#]]
        .assert_eq(text.lines().last().unwrap_or(""));
    // The same tensor again takes no second entry.
    assert_eq!(print_module_with(&module, &mut table), text);
    assert_eq!(table.iter().count(), 1);
    let again = parse_module_with(&Source::new("a.py", text), &table);
    let again = again.unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(equal::modules(&module, &again, &equal::Equality::default()).is_ok());
}

#[test]
fn a_function_is_printed_alone() {
    let module = parse(&func(
        "A: T.Buffer((16,), \"float32\")",
        "for i in range(16):\n    x: T.float32 = A[i]\n    A[i] = x + 1.0",
    ));
    let Some(Function::Tensor(f)) = module.functions.get("f") else { panic!("no function") };
    expect![[r#"
        @T.prim_func
        def f(A: T.Buffer((16,), "float32")):
            for i in range(16):
                x: T.float32 = A[i]
                A[i] = x + T.float32(1.0)
    "#]]
    .assert_eq(&print_func("f", f));
}

/// An expression over `i` and `n`.
fn expression(text: &str) -> Expr {
    let module = parse(&func("i: T.int32, n: T.int64", &format!("T.evaluate({text})")));
    let Some(Function::Tensor(f)) = module.functions.get("f") else { panic!("no function") };
    let StmtKind::Evaluate(e) = f.body.kind() else { panic!("{text}: no expression") };
    e.clone()
}

#[test]
fn expressions_alone() {
    let e = expression("i // 4 * 8 + T.min(n, 3)");
    assert_eq!(e.to_string(), "T.Cast(\"int64\", i // 4 * 8) + T.min(n, T.int64(3))");
    assert_eq!(e.dtype(), DType::I64);
}

#[test]
fn attributes_keep_their_kinds() {
    let module = parse(&func(
        "n: T.int32",
        "T.func_attr({\"global_symbol\": \"main\", \"tir.noalias\": True, \"t\": T.bool(True), \
         \"i\": 3, \"e\": T.int32(3), \"f\": 0.5, \"v\": n + 1, \"none\": None, \"l\": (1, [2])})\n\
         T.evaluate(n)",
    ));
    let Some(Function::Tensor(f)) = module.functions.get("f") else { panic!("no function") };
    let kind = |key: &str| match f.attrs.get(key) {
        Some(Attr::Expr(e)) => format!("expression {e}: {}", e.dtype()),
        Some(other) => format!("{other:?}"),
        None => "missing".to_owned(),
    };
    assert_eq!(kind("tir.noalias"), "Bool(true)");
    assert_eq!(kind("t"), "expression T.bool(True): bool");
    assert_eq!(kind("i"), "Int(3)");
    assert_eq!(kind("e"), "expression 3: int32");
    assert_eq!(kind("v"), "expression n + 1: int32");
    assert_eq!(kind("l"), "List([Int(1), List([Int(2)])])");
    let text = print_module(&module);
    assert!(equal::modules(&module, &parse(&text), &equal::Equality::default()).is_ok(), "{text}");
}

#[test]
fn plain_numbers_are_pythons() {
    // 4 * 4 is the number 16; a typed product is kept.
    let value = |text: &str| expression(text).to_string();
    assert_eq!(value("4 * 4"), "16");
    assert_eq!(value("T.int32(4) * 4"), "T.int32(4) * 4");
    assert_eq!(value("3 < 4"), "T.bool(True)");
    assert_eq!(value("-2147483648"), "-2147483648");
    assert_eq!(value("5000000000"), "T.int64(5000000000)");
    assert!(matches!(value("T.int32(7) // 0").as_str(), "T.int32(7) // 0"));
    assert_eq!(value("T.uint64(18446744073709551615)"), "T.uint64(18446744073709551615)");
}
