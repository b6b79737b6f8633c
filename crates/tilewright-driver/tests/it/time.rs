//! Every pass ends soon, whatever is in a function: programs whose meaning written out is
//! exponential in their text, or of which exact questions are hard.
//!
//! Nothing measures time here. A pass that takes time exponential in the size of the text would not
//! end, and what the passes ask of the sets is counted.

use std::fmt::Write as _;

use tilewright_driver::passes::{self, Config, passes};
use tilewright_driver::{Sizes, parse};
use tilewright_polyhedral::budget;

/// A function `f(A, B)` of `int32` with these extents, by the lines of its body.
fn function(extents: [&str; 2], lines: &[String]) -> String {
    let [a, b] = extents;
    let mut text = String::from("@T.prim_func\n");
    let _ = writeln!(text, "def f(A: T.Buffer({a}, \"int32\"), B: T.Buffer({b}, \"int32\")):");
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// `t0 = first`, `t1 = t0 + t0`, and so on, and then a last line.
fn bindings(n: usize, first: &str, op: &str, last: impl Fn(&str) -> String) -> String {
    let mut lines = vec!["for i in range(16):".to_owned(), format!("    t0: T.int32 = {first}")];
    lines.extend((0..n).map(|k| format!("    t{}: T.int32 = t{k} {op} t{k}", k + 1)));
    lines.push(format!("    {}", last(&format!("t{n}"))));
    function(["(16,)", "(16,)"], &lines)
}

fn store(value: &str) -> String {
    function(["(128,)", "(128,)"], &["for i in range(128):".into(), format!("    B[i] = {value}")])
}

/// A value that grows by `step`, `n` times.
fn grown(n: usize, step: impl Fn(usize, &str) -> String) -> String {
    (0..n).fold("A[i]".to_owned(), |e, k| step(k, &e))
}

/// `for i0 in range(2):`, and so on, around a line.
fn loops(n: usize, line: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        (0..n).map(|k| format!("{}for i{k} in range(2):", "    ".repeat(k))).collect();
    lines.push(format!("{}{line}", "    ".repeat(n)));
    lines
}

/// The programs, by name.
fn programs() -> Vec<(&'static str, String)> {
    let sum = |n: usize| (0..n).map(|k| format!("i{k}")).collect::<Vec<_>>().join(" + ");
    let indices = (0..24).map(|k| format!("i{k}")).collect::<Vec<_>>().join(", ");
    let choices = |n| grown(n, |k, e| format!("T.if_then_else(i < {}, A[i] + {k}, {e})", k + 1));
    let values = |n| grown(n, |k, e| format!("T.if_then_else(A[{k}] > 0, {e} + 1, {k})"));
    let conditions = |n| grown(n, |k, e| format!("T.if_then_else({e} > {k}, A[i] * {k}, {k})"));
    let lets = {
        let body = (0..60).rev().fold("t60".to_owned(), |e, k| {
            format!("T.Let({e}, where={{t{}: t{k} + t{k}}})", k + 1)
        });
        let vars = (0..=60).map(|k| format!("t{k} = T.var(\"int32\")"));
        let rest = [
            "for i in range(16):".to_owned(),
            format!("    B[i] = T.Let({body}, where={{t0: A[i]}})"),
        ];
        function(["(16,)", "(16,)"], &vars.chain(rest).collect::<Vec<_>>())
    };
    let guards: Vec<String> = std::iter::once("for i in range(64):".to_owned())
        .chain((0..24).flat_map(|k| {
            [format!("    if i < {}:", 2 * k + 1), format!("        B[i] = B[i] + {k}")]
        }))
        .collect();
    let quotients = (0..16).fold("i".to_owned(), |e, k| {
        let d = k % 5 + 2;
        format!("({e} // {d} * {d} + {k} % 3)")
    });
    let reductions: Vec<String> = (0..6)
        .flat_map(|k| {
            [
                "for i, r in T.grid(24, 24):".to_owned(),
                format!("    with T.block(\"s{k}\"):"),
                "        vi, vr = T.axis.remap(\"SR\", [i, r])".to_owned(),
                "        with T.init():".to_owned(),
                "            B[vi] = 0".to_owned(),
                format!("        B[vi] = B[vi] + A[vi, vr] * {}", k + 1),
            ]
        })
        .collect();
    let conjunction: Vec<String> =
        (0..16).map(|k| format!("(i < {} or A[{k}] < {})", 3 * k, 5 * (16 - k))).collect();
    // Each loop has a guard that changes inside of it, and one on the loop around it.
    let nested: Vec<String> = (0..10)
        .flat_map(|k| {
            let tab = "    ".repeat(2 * k);
            let outer = k.max(1) - 1;
            [
                format!("{tab}for i{k} in T.serial(n, annotations={{\"pragma_loop_partition_hint\": 1}}):"),
                format!("{tab}    if T.likely(i{k} < 3) or i{outer} < n // 2:"),
            ]
        })
        .chain([format!("{}B[{} % 16] = 1", "    ".repeat(20), sum(10))])
        .collect();
    let flat = [&sum(24), &sum(24)].map(|s| format!("[{s}]"));
    let box_of = format!("({})", "2, ".repeat(24));
    vec![
        ("choices by indices", store(&choices(64))),
        ("choices by data", store(&values(16))),
        ("choices of choices", store(&conditions(64))),
        ("bindings of data", bindings(60, "A[i]", "+", |t| format!("B[i] = {t}"))),
        ("bindings in an index", bindings(60, "i", "+", |t| format!("B[{t} % 16] = 1"))),
        ("bindings of products", bindings(60, "i", "*", |t| format!("B[{t} % 16] = 1"))),
        ("bindings in a condition", {
            let text = bindings(60, "i", "+", |t| format!("if {t} < 5:"));
            format!("{text}            B[i] = 1\n")
        }),
        ("bindings in an expression", lets),
        ("loops", function(["(16,)", &box_of], &loops(24, &format!("B[{indices}] = 1")))),
        (
            "loops over a sum",
            function(["(25,)", "(25,)"], &loops(24, &format!("B{} = A{} + 1", flat[0], flat[1]))),
        ),
        ("guards", function(["(64,)", "(64,)"], &guards)),
        (
            "conjunction",
            function(
                ["(64,)", "(64,)"],
                &[
                    "for i in range(64):".into(),
                    format!("    if {}:", conjunction.join(" and ")),
                    "        B[i] = 1".into(),
                ],
            ),
        ),
        (
            "quotients",
            function(
                ["(16,)", "(1024,)"],
                &["for i in range(1000):".into(), format!("    B[{quotients} % 1024] = 1")],
            ),
        ),
        (
            "nested guards",
            function(["(16,)", "(16,)"], &nested).replacen("):", ", n: T.int32):", 1),
        ),
        ("reductions", function(["(24, 24)", "(24,)"], &reductions)),
    ]
}

/// Runs one pass over all programs. What it gives is well-formed and, in debug builds, compared with
/// what it was given, as after every pass.
fn ends(pass: &str) {
    let pass = passes::find(pass).expect("it is in the table");
    for (name, text) in programs() {
        let module =
            parse(&text, &Sizes::new()).unwrap_or_else(|e| panic!("{name}: {}", e.render()));
        let mut why = Vec::new();
        let run = || passes::run(pass, &module, &Config::new(), &mut why);
        let (result, spent) = budget::within(name, u64::MAX, run);
        // A pass that wants another form of its input says so.
        if let Err(e) = result {
            assert!(!e.render().contains("internal"), "{} of {name}: {}", pass.name, e.render());
        }
        let stopped = why.iter().filter(|e| e.render().contains("spent its budget")).count();
        assert_eq!(stopped, spent.short.len(), "{} of {name}", pass.name);
        // One question may end beyond the limit, by its own quota.
        let most = budget::PER_FUNCTION + budget::charge(tilewright_polyhedral::DEFAULT_QUOTA);
        assert!(spent.operations <= most, "{} of {name}: {spent:?}", pass.name);
    }
}

macro_rules! passes {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            ends(stringify!($name));
        })*

        #[test]
        fn every_pass_is_here() {
            let mut all: Vec<&str> = passes().iter().map(|p| p.name).collect();
            all.retain(|name| ![$(stringify!($name)),*].contains(name));
            assert!(all.is_empty(), "no test runs {all:?}");
        }
    };
}

passes! {
    auto_schedule cancel_layout collapse_axes compact_buffer count_warp_accesses expand_products flatten_buffer
    flow_layout
    fold_constant fuse hoist_expression hoist_if integer_products
    inline lay_out_shared legalize lift_layout lift_scratch loop_partition lower lower_blocks lower_opaque_block
    mark_free_layout merge_adjacent_loops place_parts plan_layout reduce_loop_extents refine remove_assume
    remove_branching_through_overcompute remove_no_op remove_overcompute_through_branching
    remove_store_undef renormalize_split_pattern repeat_rows schedule_stages simplify storage_flatten unroll_loop use_assume
    use_assume_to_reduce_branches use_border vectorize_loop winograd
}
