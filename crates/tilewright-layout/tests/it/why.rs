//! What passes say of what they leave as it is: the fact that was missing.

use expect_test::{Expect, expect};
use tilewright_graph::fold::interpret;
use tilewright_ir::{Module, Remarks, Result, Source};
use tilewright_layout::{Leave, cancel_layout, fold_constant, lift_layout};
use tilewright_tvmscript::parse_module;

/// A padded value, `work` on it, and the crop and pad that could go if its padding were zero.
fn chain(work: &str, call: &str, parameter: &str) -> Module {
    let work: String = work.trim().lines().map(|l| format!("        {l}\n")).collect();
    let text = format!(
        "@I.ir_module
class Module:
    @T.prim_func
    def pad(A: T.Buffer((6,), \"float32\"), P: T.Buffer((8,), \"float32\")):
        for i in range(8):
            P[i] = T.if_then_else(i < 6, A[i], T.float32(0))

    @T.prim_func
    def crop(P: T.Buffer((8,), \"float32\"), A: T.Buffer((6,), \"float32\")):
        for i in range(6):
            A[i] = P[i]

    @T.prim_func
    def work({parameter}P: T.Buffer((8,), \"float32\"), Q: T.Buffer((8,), \"float32\")):
{work}
    @R.function
    def main(x: R.Tensor((6,), \"float32\"), w: R.Tensor((8,), \"float32\")):
        cls = Module
        with R.dataflow():
            p = R.call_tir(cls.pad, (x,), out_sinfo=R.Tensor((8,), \"float32\"))
            q = R.call_tir(cls.work, {call}, out_sinfo=R.Tensor((8,), \"float32\"))
            c = R.call_tir(cls.crop, (q,), out_sinfo=R.Tensor((6,), \"float32\"))
            y = R.call_tir(cls.pad, (c,), out_sinfo=R.Tensor((8,), \"float32\"))
            R.output(y)
        return y
"
    );
    let source = Source::new("f.py", text);
    parse_module(&source).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn said(module: &Module, pass: impl Fn(&Module, &mut Remarks) -> Result<Module>) -> String {
    let mut why = Remarks::new();
    pass(module, &mut why).unwrap_or_else(|e| panic!("{}", e.render()));
    let text = |e: &tilewright_ir::Error| {
        let d = e.diagnostic();
        format!("{}\n{}", d.message, d.notes.iter().map(|n| format!("  {n}\n")).collect::<String>())
    };
    why.iter().map(text).collect()
}

fn check(work: &str, expected: Expect) {
    expected.assert_eq(&said(&chain(work, "(p,)", ""), cancel_layout));
}

#[test]
fn padding_that_is_zero_for_several_reasons() {
    let zero = || expect![[""]];
    check("for i in range(8):\n    Q[i] = T.max(P[i] * T.float32(3), T.float32(0))", zero());
    check("for i in range(8):\n    Q[i] = T.sqrt(P[i]) - T.abs(P[i])", zero());
    check("for i in range(8):\n    Q[i] = T.Select(i < 6, T.exp(P[i]), T.float32(0))", zero());
    check(
        "for i in range(8):\n    Q[i] = T.Select(P[i] < P[i] + T.float32(1), P[i], P[i])",
        zero(),
    );
    // In steps, and added up.
    let steps = "
T_ = T.alloc_buffer((8,), \"float32\")
for i in range(8):
    T_[i] = P[i] + P[i]
for i in range(8):
    Q[i] = T.float32(0)
for i, k in T.grid(8, 3):
    Q[i] = Q[i] + T_[i]";
    check(steps, zero());
    // Zero times a product of constants.
    let integer = "
for i in range(8):
    Q[i] = T.Cast(\"float32\", T.Cast(\"int32\", P[i]) * T.Cast(\"int32\", i))";
    check(integer, zero());
}

#[test]
fn padding_that_is_something_else_or_not_known() {
    check(
        "for i in range(8):\n    Q[i] = T.exp(P[i])",
        expect![[r#"
            `q` is not taken for `y`
              the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): they hold T.float32(1.0)
        "#]],
    );
    check(
        "for i in range(8):\n    Q[i] = P[i] + T.Cast(\"float32\", i)",
        expect![[r#"
            `q` is not taken for `y`
              the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): `i` varies
        "#]],
    );
    check(
        "for i in range(8):\n    Q[i] = P[7 - i]",
        expect![[r#"
        `y` does not take all of `x`
          the cells of `x` where c0 < 2 are not known to hold T.float32(0.0): nothing is known of the cells of `x`
    "#]],
    );
    check(
        "for i in range(8):\n    Q[i] = P[i] * P[0]",
        expect![[r#"
            `q` is not taken for `y`
              the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): a product with zero: `P` may hold NaN or infinity
        "#]],
    );
    check(
        "for i in range(7):\n    Q[i] = P[i]\nQ[7] = T.float32(2)",
        expect![[r#"
        `p` is not taken for `q`
          the cells of `p` where c0 >= 7 are not known to hold T.float32(2.0): they hold T.float32(0.0)
    "#]],
    );
    check(
        "for i in range(7):\n    Q[i] = P[i] * T.float32(2)",
        expect![[r#"
            `q` is not taken for `y`
              the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): not all of these cells of `Q` are written
        "#]],
    );
    check(
        "for i in range(8):\n    Q[i] = P[i]\nfor i in range(7):\n    Q[i + 1] = Q[i] + Q[i + 1]",
        expect![[r#"
            `q` is not taken for `y`
              the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): `Q` is computed from other cells of itself
        "#]],
    );
    check(
        "T.evaluate(T.call_extern(\"int32\", \"f\", P.data, Q.data))",
        expect![[r#"
            `q` is not taken for `y`
              the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): what is done to `Q` cannot be followed
        "#]],
    );
    let two = chain(
        "for i in range(8):\n    Q[i] = P[i] * W[i]",
        "(w, p)",
        "W: T.Buffer((8,), \"float32\"), ",
    );
    expect![[r#"
        `q` is not taken for `y`
          the cells of `q` where c0 >= 6 are not known to hold T.float32(0.0): a product with zero: `W` may hold NaN or infinity
    "#]].assert_eq(&said(&two, cancel_layout));
}

#[test]
fn padding_that_may_hold_anything_must_be_written() {
    let undefined = |work: &str| {
        let module = chain(work, "(p,)", "");
        let text = tilewright_tvmscript::print_module(&module);
        let text = text.replace(
            "T.float32(0.0))\n\n    @T.prim_func\n    def crop",
            "T.undef())\n\n    @T.prim_func\n    def crop",
        );
        assert!(text.contains("T.undef()"), "{text}");
        let module = parse_module(&Source::new("f.py", text));
        said(&module.unwrap_or_else(|e| panic!("{}", e.render())), cancel_layout)
    };
    assert_eq!(undefined("for i in range(8):\n    Q[i] = P[i] + T.float32(1)"), "");
    let part = "for i in range(8):\n    if i < 7:\n        Q[i] = P[i] + T.float32(1)";
    expect![[r#"
        `q` is not taken for `y`
          not all of `Q` is written there
    "#]]
    .assert_eq(&undefined(part));
    let outside = "T.evaluate(T.call_extern(\"int32\", \"f\", P.data, Q.data))";
    expect![[r#"
        `q` is not taken for `y`
          what is done to `Q` cannot be followed
    "#]]
    .assert_eq(&undefined(outside));
}

#[test]
fn calls_that_are_not_folded() {
    let text = "
@I.ir_module
class Module:
    @T.prim_func
    def outside(A: T.Buffer((1,), \"float32\"), B: T.Buffer((1,), \"float32\")):
        T.evaluate(T.call_extern(\"int32\", \"f\", A.data, B.data))

    @T.prim_func
    def illegal(A: T.Buffer((1,), \"float32\"), B: T.Buffer((1,), \"float32\")):
        T.assume(A[0] == T.float32(0))
        B[0] = A[0]

    @R.function
    def main():
        cls = Module
        with R.dataflow():
            w = R.const([2.0], \"float32\")
            a = R.call_tir(cls.outside, (w,), out_sinfo=R.Tensor((1,), \"float32\"))
            b = R.call_tir(cls.illegal, (w,), out_sinfo=R.Tensor((1,), \"float32\"))
            R.output(a, b)
        return (a, b)
";
    let module =
        parse_module(&Source::new("f.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    let fold = |m: &Module, why: &mut Remarks| fold_constant(m, 64, &mut interpret, why);
    expect![[r#"
        the call of `outside` for `a` is not folded
          it calls a function from outside
    "#]]
    .assert_eq(&said(&module, fold));
}

#[test]
fn stages_that_keep_what_they_wrote() {
    let work = "
AC = T.alloc_buffer((10,), \"float32\")
for i in range(10):
    with T.block(\"pad\"):
        vi = T.axis.spatial(10, i)
        T.block_attr({\"preproc\": \"pad\"})
        AC[vi] = T.if_then_else(vi < 8, P[vi], T.float32(1))
for i in range(8):
    with T.block(\"work\"):
        vi = T.axis.spatial(8, i)
        Q[vi] = AC[vi] + AC[vi + 2]";
    let module = chain(work, "(p,)", "");
    let kept = |leave: Leave| said(&module, |m, why| lift_layout(m, leave, why));
    expect![[r#"
        `work` keeps the pad value of `AC`
          `Q` is computed from it where c0 >= 6: at i=6 `AC[i + 2]` is read
    "#]]
    .assert_eq(&kept(Leave::Undef));
    expect![[r#"
        `work` keeps the pad value of `AC`
          at i=6 `AC[i + 2]` is read
    "#]]
    .assert_eq(&kept(Leave::Nothing));
    assert_eq!(kept(Leave::Value), "");
    let data = work.replace("AC[vi] + AC[vi + 2]", "AC[T.Cast(\"int32\", AC[vi])]");
    let lift = |m: &Module, why: &mut Remarks| lift_layout(m, Leave::Undef, why);
    expect![[r#"
        `work` keeps the pad value of `AC`
          depends on `T.Cast("int32", AC[i])`, which is not affine
    "#]]
    .assert_eq(&said(&chain(&data, "(p,)", ""), lift));
}
