//! Parts in place: what is planned for them, and what is refused.

use crate::common::{Graph, functions, operand};
use tilewright_graph::legalize;
use tilewright_ir::{GraphVar, Lowered, Module, Result, Source};
use tilewright_layout::parts::place_parts;
use tilewright_layout::plan_memory;
use tilewright_ops::elementwise::{Unary, unary};
use tilewright_ops::movement::{concat, slice};
use tilewright_runtime::MemoryPlan;
use tilewright_runtime::plan::{ArgSource, Within};
use tilewright_transform::lower;
use tilewright_tvmscript::parse_module;

fn planned(module: &Module) -> Result<MemoryPlan> {
    let mut out = module.clone();
    for (name, func) in functions(module) {
        out.insert(name, lower(&func)?);
    }
    plan_memory(&Lowered::new(out)?, "main")
}

/// Layers that read all before them: one value has memory, and all others lie in it.
#[test]
fn concatenations_of_concatenations_are_one_whole() {
    let mut g = Graph::default();
    let x = g.input("x", &[2, 3, 5]);
    let un = |g: &mut Graph, x: &GraphVar| {
        let f = unary(Unary::Neg, &operand(x)).expect("valid");
        g.call("neg", f, &[x])
    };
    let mut all = un(&mut g, &x);
    for _ in 0..3 {
        let new = un(&mut g, &all);
        let f = concat(&[operand(&all), operand(&new)], 1).expect("valid");
        all = g.call("concat", f, &[&all, &new]);
    }
    let last = un(&mut g, &all);
    let module = legalize(&g.returns(&[&last])).expect("legalizes");
    let plan =
        place_parts(&module, true, &mut Vec::new()).and_then(|m| planned(&m)).expect("plans");
    assert!(plan.steps.iter().all(|step| step.func.starts_with("neg")), "{:?}", plan.steps);
    let own: Vec<usize> =
        (0..plan.values.len()).filter(|k| plan.values[*k].within.is_none()).collect();
    let [whole] = own[..] else { panic!("{:?}", plan.values) };
    // Rows of 3, 3, 6 and 12, one behind the other.
    let mut at: Vec<usize> =
        plan.values.iter().filter_map(|v| v.within.and_then(|w| w.byte.known())).collect();
    at.sort_unstable();
    assert_eq!(at, [0, 0, 0, 60, 120, 240]);
    assert!(
        plan.values.iter().filter_map(|v| v.within).all(|w| w.whole == ArgSource::Value(whole))
    );
    assert_eq!((plan.values[whole].first, plan.values[whole].last), (0, 4));
    let fixed = plan.at(&[]).expect("it fits");
    assert_eq!(fixed.arena_bytes, (2 * 24 * 5 * 4usize).next_multiple_of(64));
}

/// `main` negates its input twice, the first result with strides as `first` says, and joins both.
fn text(first: &str, second: &str, parts: &str) -> Module {
    let text = format!(
        r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32"{first})):
        for i, j in T.grid(3, 2):
            B[i, j] = -A[i, j]

    @T.prim_func
    def g(A: T.Buffer((3, 2), "float32"{second}), B: T.Buffer((3, 2), "float32", strides=(4, 1))):
        for i, j in T.grid(3, 2):
            B[i, j] = -A[i, j]

    @T.prim_func
    def join(A: T.Buffer((3, 2), "float32", strides=(4, 1)), B: T.Buffer((3, 2), "float32", strides=(4, 1)), C: T.Buffer((3, 4), "float32")):
        T.func_attr({{{parts}}})
        for i, j in T.grid(3, 2):
            C[i, j] = A[i, j]
            C[i, j + 2] = B[i, j]

    @T.prim_func
    def h(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            B[i, j] = -A[i, j]

    @R.function
    def main(x: R.Tensor((3, 2), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((3, 2), "float32"))
            b = R.call_tir(cls.g, (a,), out_sinfo=R.Tensor((3, 2), "float32"))
            c = R.call_tir(cls.join, (a, b), out_sinfo=R.Tensor((3, 4), "float32"))
            d = R.call_tir(cls.h, (c,), out_sinfo=R.Tensor((3, 4), "float32"))
            R.output(d)
        return d
"#
    );
    parse_module(&Source::new("parts.py", text)).expect("it parses")
}

#[test]
fn strides_that_disagree_and_places_that_are_none_are_refused() {
    let (strides, parts) = (", strides=(4, 1)", r#""tilewright.parts": [[0, 0], [0, 2]]"#);
    let plan = planned(&text(strides, strides, parts)).expect("it is right");
    assert_eq!(plan.steps.len(), 3);
    let within: Vec<_> = plan.values.iter().map(|v| v.within).collect();
    let part = |byte: usize| Some(Within { whole: ArgSource::Value(2), byte: byte.into() });
    assert_eq!(within, [part(0), part(8), None]);
    for (first, second, parts, message) in [
        (strides, "", parts, "`g` is given for `A` a tensor with other strides"),
        ("", "", parts, "`join` is given for `A` a tensor with other strides"),
        (strides, strides, "", "a value with strides is no part of another one"),
        (
            strides,
            strides,
            r#""tilewright.parts": [[0, 0], [0, 1]]"#,
            "the attribute `tilewright.parts` does not say where each input lies in the result",
        ),
        (
            strides,
            strides,
            r#""tilewright.parts": [[0, 0], [0, 3]]"#,
            "the attribute `tilewright.parts` does not say where each input lies in the result",
        ),
    ] {
        let error = planned(&text(first, second, parts)).map(drop).expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// `main` slices what it computes, or its input, and reads the slice; `slice` says how it lies.
fn sliced(strides: &str, slice: &str, of: &str) -> Module {
    let text = format!(
        r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3, 6), "float32"), B: T.Buffer((3, 6), "float32")):
        for i, j in T.grid(3, 6):
            B[i, j] = -A[i, j]

    @T.prim_func
    def part(A: T.Buffer((3, 6), "float32"), B: T.Buffer((3, 2), "float32"{strides})):
        T.func_attr({{"tilewright.slice": {slice}}})
        for i, j in T.grid(3, 2):
            B[i, j] = A[i, j * 2 + 1]

    @T.prim_func
    def g(A: T.Buffer((3, 2), "float32"{strides}), B: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            B[i, j] = -A[i, j]

    @R.function
    def main(x: R.Tensor((3, 6), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((3, 6), "float32"))
            b = R.call_tir(cls.part, ({of},), out_sinfo=R.Tensor((3, 2), "float32"))
            c = R.call_tir(cls.g, (b,), out_sinfo=R.Tensor((3, 2), "float32"))
            R.output(a, c)
        return {results}
"#,
        results = if of == "x" { "(a, c)" } else { "c" }
    );
    parse_module(&Source::new("slices.py", text)).expect("it parses")
}

#[test]
fn a_slice_lies_in_what_it_is_of() {
    let (strides, slice) = (", strides=(6, 2)", "[[0, 1], [[1, 0], [0, 2]]]");
    for (of, whole) in [("a", ArgSource::Value(0)), ("x", ArgSource::Input(0))] {
        let plan = planned(&sliced(strides, slice, of)).expect("it is right");
        assert_eq!(plan.steps.len(), 2, "{of}");
        let part = Some(Within { whole, byte: 4.into() });
        assert!(plan.values.iter().any(|v| v.within == part), "{of}: {:?}", plan.values);
    }
    for (strides, slice, message) in [
        ("", slice, "a slice with other strides than its input"),
        (", strides=(6, 1)", slice, "a slice with other strides than its input"),
        (strides, "[[0, 4], [[1, 0], [0, 2]]]", "does not say where the result lies in the input"),
        (strides, "[[0, 1], [[1, 0]]]", "does not say where the result lies in the input"),
        (strides, "[[0, 1]]", "does not say where the result lies in the input"),
    ] {
        let error = planned(&sliced(strides, slice, "a")).map(drop).expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// Slices of one value that are joined again, with more: the value lies in the whole, and they lie in it.
#[test]
fn slices_that_are_joined_again_are_what_they_are_slices_of() {
    let mut g = Graph::default();
    let x = g.input("x", &[2, 4, 5]);
    let un = |g: &mut Graph, x: &GraphVar| {
        let f = unary(Unary::Neg, &operand(x)).expect("valid");
        g.call("neg", f, &[x])
    };
    let y = un(&mut g, &x);
    let cut = |g: &mut Graph, from: i64, to: i64| {
        let f = slice(&operand(&y), &[from], &[to], &[1], &[1]).expect("valid");
        g.call("slice", f, &[&y])
    };
    let (a, b) = (cut(&mut g, 0, 3), cut(&mut g, 3, 4));
    let more = un(&mut g, &b);
    let f = concat(&[operand(&a), operand(&b), operand(&more)], 1).expect("valid");
    let whole = g.call("concat", f, &[&a, &b, &more]);
    let module = legalize(&g.returns(&[&whole])).expect("legalizes");
    let placed = place_parts(&module, true, &mut Vec::new()).expect("it places");
    let plan = planned(&placed).expect("plans");
    // The whole is the result, so that there is nothing beside it.
    assert_eq!(plan.steps.len(), 2, "{:?}", plan.steps);
    assert_eq!(plan.at(&[]).expect("it fits").arena_bytes, 0);
    let bytes: Vec<_> = plan.values.iter().filter_map(|v| v.within).collect();
    assert!(bytes.iter().all(|w| w.whole == ArgSource::Output(0)), "{bytes:?}");
    let bytes: Vec<_> = bytes.iter().filter_map(|w| w.byte.known()).collect();
    // Nothing reads the first slice.
    assert_eq!(bytes, [0, 60, 80]);
}
