//! Wrong fusions of a small graph: each is found, and none is called equal.

use tilewright_driver::verify::{Answer, verify};
use tilewright_driver::{Module, Sizes, parse};
use tilewright_verify::VerifyOptions;

/// A graph of 6 x 6: a product, a window along columns with pads, a scale, a bias, a norm of rows by the root of their
/// squares, a transpose, a product.
const GRAPH: &str = r#"
@I.ir_module
class Module:
    @T.prim_func
    def mm(a: T.Buffer((6, 6), "float32"), b: T.Buffer((6, 6), "float32"), y: T.Buffer((6, 6), "float32")):
        for i, j, k in T.grid(6, 6, 6):
            with T.block("mm"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @T.prim_func
    def window(x: T.Buffer((6, 6), "float32"), y: T.Buffer((6, 6), "float32")):
        p = T.alloc_buffer((8, 6), "float32")
        for i, j in T.grid(8, 6):
            with T.block("p"):
                vi, vj = T.axis.remap("SS", [i, j])
                p[vi, vj] = T.if_then_else(vi >= 1 and vi < 7, x[vi - 1, vj], T.float32(0))
        for i, j, k in T.grid(6, 6, 3):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + p[vi + vk, vj]

    @T.prim_func
    def norm(x: T.Buffer((6, 6), "float32"), y: T.Buffer((6, 6), "float32")):
        s = T.alloc_buffer((6,), "float32")
        for i, k in T.grid(6, 6):
            with T.block("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    s[vi] = T.float32(0)
                s[vi] = s[vi] + x[vi, vk] * x[vi, vk]
        for i, j in T.grid(6, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] / T.sqrt(s[vi] + T.float32(1e-05))

    @T.prim_func
    def turned(x: T.Buffer((6, 6), "float32"), y: T.Buffer((6, 6), "float32")):
        for i, j in T.grid(6, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vj, vi]
"#;

/// The scale and the bias as two calls.
const APART: &str = r#"
    @T.prim_func
    def scaled(x: T.Buffer((6, 6), "float32"), y: T.Buffer((6, 6), "float32")):
        for i, j in T.grid(6, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5)

    @T.prim_func
    def shifted(x: T.Buffer((6, 6), "float32"), c: T.Buffer((6,), "float32"), y: T.Buffer((6, 6), "float32")):
        for i, j in T.grid(6, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] + c[vj]
"#;

/// Both as one.
const FUSED: &str = r#"
    @T.prim_func
    def line(x: T.Buffer((6, 6), "float32"), c: T.Buffer((6,), "float32"), y: T.Buffer((6, 6), "float32")):
        for i, j in T.grid(6, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5) + c[vj]
"#;

/// Calls of functions on values.
fn module(functions: &str, calls: &[(&str, &str, &str)]) -> String {
    let ty = "R.Tensor((6, 6), \"float32\")";
    let mut text = format!("{GRAPH}{functions}\n    @R.function\n");
    text += &format!("    def main(x: {ty}, w: {ty}, c: R.Tensor((6,), \"float32\")) -> {ty}:\n");
    text += "        cls = Module\n        with R.dataflow():\n";
    for (name, func, args) in calls {
        text +=
            &format!("            {name} = R.call_tir(cls.{func}, ({args},), out_sinfo={ty})\n");
    }
    text + "            R.output(out)\n        return out\n"
}

fn read(text: &str) -> Module {
    parse(text, &Sizes::new()).unwrap_or_else(|e| panic!("{}\n{text}", e.render()))
}

fn answer(a: &Module, b: &Module, reals: bool) -> Answer {
    let options = VerifyOptions { reals, ..VerifyOptions::default() };
    verify(a, b, &Sizes::new(), &options).unwrap_or_else(|e| panic!("{}", e.render())).answer
}

#[test]
fn wrong_fusions_are_found() {
    let (first, behind) = (
        [("a", "mm", "x, w"), ("b", "window", "a")],
        [("f", "norm", "e"), ("g", "turned", "f"), ("out", "mm", "g, w")],
    );
    let apart = [("d", "scaled", "b"), ("e", "shifted", "d, c")];
    let model = read(&module(APART, &[&first[..], &apart, &behind].concat()));
    let fused = module(FUSED, &[&first[..], &[("e", "line", "b, c")], &behind].concat());
    for reals in [false, true] {
        assert_eq!(answer(&model, &read(&fused), reals), Answer::Equal);
    }
    for (kind, right, wrong) in [
        ("swapped operands", "(g, w,)", "(w, g,)"),
        ("swapped operands of the first product", "(x, w,)", "(w, x,)"),
        ("a wrong axis", "x[vi, vk] * x[vi, vk]", "x[vk, vi] * x[vk, vi]"),
        ("a bias along the other axis", "+ c[vj]", "+ c[vi]"),
        ("a dropped scale", "* T.float32(0.5) + c", "+ c"),
        ("another scale", "T.float32(0.5) + c", "T.float32(0.51) + c"),
        ("a dropped bias", " + c[vj]", ""),
        (
            "a scaled bias",
            "x[vi, vj] * T.float32(0.5) + c[vj]",
            "(x[vi, vj] + c[vj]) * T.float32(0.5)",
        ),
        ("a transposed square", "a[vi, vk] * b[vk, vj]", "a[vi, vk] * b[vj, vk]"),
        ("a transpose that is none", "= x[vj, vi]", "= x[vi, vj]"),
        ("a pad that is off by one", "vi >= 1 and vi < 7, x[vi - 1, vj]", "vi < 6, x[vi, vj]"),
        ("a pad that is no zero", "x[vi - 1, vj], T.float32(0)", "x[vi - 1, vj], T.float32(0.1)"),
        ("another epsilon", "T.float32(1e-05)", "T.float32(0.5)"),
        ("no root", "T.sqrt(s[vi] + T.float32(1e-05))", "(s[vi] + T.float32(1e-05))"),
    ] {
        let text = fused.replace(right, wrong);
        assert_ne!(text, fused, "{kind}");
        let other = read(&text);
        assert_eq!(answer(&model, &other, false), Answer::Differ, "{kind}");
        assert_eq!(answer(&model, &other, true), Answer::Differ, "{kind} in the reals");
    }
}

/// Groups of calls behind a wrong one are not compared, where a run of both models shows that they differ.
#[test]
fn what_a_run_shows_is_not_compared_first() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func
    def scaled(x: T.Buffer((160, 160), "float32"), y: T.Buffer((160, 160), "float32")):
        for i, j in T.grid(160, 160):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5) + T.float32(1)

    @R.function
    def main(x: R.Tensor((160, 160), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.scaled, (x,), out_sinfo=R.Tensor((160, 160), "float32"))
            R.output(y)
        return y
"#;
    let model = read(text);
    for (factor, expected) in [("0.25", Answer::Differ), ("0.5", Answer::Equal)] {
        let other = text.replace(
            "T.float32(0.5) + T.float32(1)",
            &format!("T.float32({factor}) + T.float32(1)"),
        );
        let other = read(&other.replace("x[vi, vj] *", "T.float32(1) * x[vi, vj] *"));
        let verified = verify(&model, &other, &Sizes::new(), &VerifyOptions::default());
        let verified = verified.unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(verified.answer, expected, "{factor}");
        let is_seen = verified.text.contains("when both are run");
        assert_eq!(is_seen, expected == Answer::Differ, "{}", verified.text);
        assert!(verified.notes.iter().all(|n| !n.contains("random data")), "{:?}", verified.notes);
    }
}

/// A model of single constants: `W` scaled by channels behind the product, of which two calls read the result.
#[test]
fn scales_of_a_shared_product_are_those_of_two() {
    let ty = "R.Tensor((6, 3), \"float32\")";
    let functions = r#"
@I.ir_module
class Module:
    @T.prim_func
    def mm(a: T.Buffer((6, 2), "float32"), b: T.Buffer((2, 3), "float32"), y: T.Buffer((6, 3), "float32")):
        for i, j, k in T.grid(6, 3, 2):
            with T.block("mm"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @T.prim_func
    def mul(x: T.Buffer((6, 3), "float32"), c: T.Buffer((3,), "float32"), y: T.Buffer((6, 3), "float32")):
        for i, j in T.grid(6, 3):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * c[vj]

    @T.prim_func
    def add(x: T.Buffer((6, 3), "float32"), c: T.Buffer((3,), "float32"), y: T.Buffer((6, 3), "float32")):
        for i, j in T.grid(6, 3):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] + c[vj]

    @T.prim_func
    def single(x: T.Buffer((6, 3), "float32"), w: T.Buffer((3, 1), "float32"), c: T.Buffer((3,), "float32"), y: T.Buffer((6, 3), "float32")):
        s = T.alloc_buffer((6, 3), "float32")
        for i, j, k in T.grid(6, 3, 1):
            with T.block("s"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    s[vi, vj] = T.float32(0)
                s[vi, vj] = s[vi, vj] + x[vi, vj + vk] * w[vj, vk]
        for i, j in T.grid(6, 3):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = s[vi, vj] + c[vj]
"#;
    let constant = |values: &str| format!("R.const([{values}], dtype=\"float32\")");
    let module = |calls: &[(&str, &str, String)]| {
        let mut text = format!(
            "{functions}\n    @R.function\n    def main(x: R.Tensor((6, 2), \"float32\")) -> R.Tuple({ty}, {ty}):\n"
        );
        text += "        cls = Module\n        with R.dataflow():\n";
        for (name, func, args) in calls {
            text +=
                &format!("            {name} = R.call_tir(cls.{func}, ({args}), out_sinfo={ty})\n");
        }
        read(&(text + "            R.output(p, q)\n        return (p, q)\n"))
    };
    let product = |w: &str| format!("x, {}", constant(w));
    // The constants of each channel in turn; the products of weights and scales are rounded.
    let shared = module(&[
        ("u", "mm", product("[0.3, 0.7, -1.1], [0.9, 1.3, 0.1]")),
        ("v", "mul", format!("u, {}", constant("0.7, 1.1, 1.9"))),
        ("w", "add", format!("v, {}", constant("0.1, 0.2, 0.3"))),
        ("p", "mul", format!("w, {}", constant("2.0, 4.0, 0.5"))),
        (
            "q",
            "single",
            format!("u, {}, {}", constant("[3.0], [5.0], [7.0]"), constant("1.0, 2.0, 3.0")),
        ),
    ]);
    let apart = |bias: &str| {
        module(&[
            ("v", "mm", product("[0.42, 3.08, -1.045], [1.26, 5.72, 0.095]")),
            ("p", "add", format!("v, {}", constant(bias))),
            ("u", "mm", product("[0.9, 3.5, -7.7], [2.7, 6.5, 0.7]")),
            ("q", "add", format!("u, {}", constant("1.0, 2.0, 3.0"))),
        ])
    };
    assert_eq!(answer(&shared, &apart("0.2, 0.8, 0.15"), true), Answer::Equal);
    assert_eq!(answer(&shared, &apart("0.1, 0.2, 0.3"), true), Answer::Differ);
}
