//! `opt` and `diff`.

use super::{Scratch, tilewright, tilewright_on};

const ADD: &str = r#"
@T.prim_func
def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)
"#;

#[test]
fn a_module_comes_out_as_text_that_reads_back() {
    let printed = tilewright_on(ADD, &["opt", "-"]).code(0);
    assert_eq!(printed.err, "");
    let again = tilewright_on(&printed.out, &["opt", "-"]).code(0);
    assert_eq!(again.out, printed.out);
    let scratch = Scratch::new();
    let (a, b) = (scratch.file("a.py", ADD), scratch.file("b.py", printed.out));
    assert_eq!(tilewright(&["diff", &a, &b]).code(0).out, "");
}

#[test]
fn passes_run_in_order_and_every_result_can_be_printed() {
    let lowered =
        tilewright_on(ADD, &["opt", "-", "--pass", "lower_blocks,flatten_buffer"]).code(0);
    assert!(!lowered.out.contains("T.block"), "{}", lowered.out);
    let two = ["opt", "-", "--pass", "lower_blocks", "--pass", "flatten_buffer"];
    assert_eq!(tilewright_on(ADD, &two).code(0).out, lowered.out);
    let all =
        tilewright_on(ADD, &["opt", "-", "--pass", "lower_blocks,lower", "--print-after-all"]);
    let all = all.code(0).says("# after lower_blocks\n").says("# after lower\n");
    assert_eq!(all.out.matches("def add").count(), 2);
    let none = tilewright_on(ADD, &["opt", "-", "--print-after-all"]).code(0);
    assert_eq!(none.out.matches("def add").count(), 1);
}

#[test]
fn unknown_passes_and_options_say_what_there_is() {
    let done = tilewright_on(ADD, &["opt", "-", "--pass", "fly"]).code(2);
    let done = done.complains("there is no pass `fly`").complains("lower_blocks");
    assert_eq!(done.out, "");
    tilewright_on(ADD, &["opt", "-", "--pass", "simplfy"]).code(2).complains("`simplify`?");
    let with = |config: &str| {
        let overcompute = "remove_branching_through_overcompute";
        tilewright_on(ADD, &["opt", "-", "--pass", overcompute, "--pass-config", config])
    };
    for config in ["finite=0", "finite=False", "finite=off", "finite=1", "finite=True"] {
        with(config).code(0);
    }
    for config in ["finite=maybe", "use_dataflow_analysis=banana", "wrap_indices="] {
        with(config).code(2).complains("is 1 or 0, not `");
    }
    with("finit=1").code(2).complains("did you mean `finite`?");
    with("growth=1").code(2).complains("is an option of `fold_constant`, which is not to run");
    tilewright_on(ADD, &["opt", "-", "--pass", "lower", "--pass-config", "x=1"])
        .code(2)
        .complains("none of the passes has an option `x`");
    tilewright_on(ADD, &["opt", "-", "--pass-config", "x"]).code(2).complains("NAME=VALUE");
}

#[test]
fn a_schedule_that_is_not_there_is_refused() {
    tilewright_on(ADD, &["opt", "-", "--schedule", "nowhere.py"])
        .code(2)
        .complains("cannot read `nowhere.py`");
}

#[test]
fn bad_text_is_refused_with_its_place() {
    let text = ADD.replace("A[vi]", "C[vi]");
    let done = tilewright_on(&text, &["opt", "-"]).code(2);
    let done = done.complains("--> <stdin>:7:21\n").complains("B[vi] = C[vi]");
    assert!(!done.err.contains('\x1b'), "no colours without a terminal: {}", done.err);
    tilewright_on("def f(:", &["opt", "-"]).code(2).complains("--> <stdin>:1:");
}

#[test]
fn files_that_are_not_there_or_not_text_are_refused() {
    tilewright(&["opt", "/nowhere/x.py"]).code(2).complains("cannot read `/nowhere/x.py`: ");
    let scratch = Scratch::new();
    let path = scratch.file("x.py", [b'x', 0xff]);
    tilewright(&["opt", &path]).code(2).complains("not UTF-8 text, at byte 1");
}

#[test]
fn diff_shows_the_first_difference_and_where_it_is() {
    let scratch = Scratch::new();
    let a = scratch.file("a.py", ADD);
    let names = scratch.file("names.py", ADD.replace("vi", "k").replace("add", "plus"));
    let other = scratch.file("other.py", ADD.replace("T.float32(1)", "T.float32(2)"));
    tilewright(&["diff", &a, &names]).code(0);
    tilewright(&["diff", "--strict", &a, &names]).code(1);
    let done = tilewright(&["diff", &a, &other]).code(1);
    let done = done.says("T.float32(1.0)").says("T.float32(2.0)");
    let done = done.says("a.py:7:13\n").says("other.py:7:13\n");
    assert_eq!(done.err, "");
    tilewright(&["diff", &a, "/nowhere/b.py"]).code(2).complains("/nowhere/b.py");
}

/// A schedule's steps have certificates, which are accepted until something in them is another.
#[test]
fn certificates_are_written_and_checked() {
    let scratch = Scratch::new();
    let (add, path) = (scratch.file("add.py", ADD), scratch.path("add.cert"));
    let tiles = "sch.transform_layout('B', 'B', lambda i: [i // 2, i % 2])\nsch.split(sch.get_loops(sch.get_block('B'))[0], [2, 2])\n";
    let tiles = scratch.file("tiles.py", tiles);
    tilewright(&["opt", &add, "--schedule", &tiles, "--certificate", &path]).code(0);
    let accepted = tilewright(&["check", &path]).code(0);
    assert!(accepted.out.starts_with("accepted: 2 rewrites, "), "{}", accepted.out);
    let text = std::fs::read_to_string(&path).expect("it was written");
    let layout = "\n(layout 1 (i0) ((i0 // 2) (i0 % 2)) (c0 c1) (((c0 * 2) + c1)))\n";
    assert!(text.contains(layout), "{text}");
    // The file leads from the one script to the other one, and to nothing else.
    let tiled = tilewright(&["opt", &add, "--schedule", &tiles]).code(0).out;
    let tiled = scratch.file("tiled.py", tiled);
    let lead = ["check", &path, "--before", &add, "--after", &tiled];
    assert_eq!(tilewright(&lead).code(0).out, accepted.out);
    let lead = ["check", &path, "--before", &tiled, "--after", &add];
    assert!(tilewright(&lead).code(1).out.contains("no rewrites lead from `"));
    let other = scratch.file("other.py", ADD.replace("1", "2"));
    let lead = ["check", &path, "--before", &other, "--after", &tiled];
    assert!(tilewright(&lead).code(1).out.contains("no rewrites lead from `"));
    // A wrong pass would have stored something else, or in another place.
    let right = ") + (cast.float32 1";
    let last = text.rfind(right).expect("the store");
    for wrong in [") - (cast.float32 1", ") + (cast.float32 2"] {
        let forged = format!("{}{wrong}{}", &text[..last], &text[last + right.len()..]);
        let forged = scratch.file("forged.cert", forged);
        let refused = tilewright(&["check", &forged]).code(1);
        assert!(refused.out.starts_with(&format!("{forged}:")), "{}", refused.out);
    }
    let none = scratch.path("none.cert");
    let sums = scratch.file("none.py", "sch.rfactor(sch.get_loops('B')[1], 0)\n");
    let reduction = scratch.file(
        "sum.py",
        "@T.prim_func\ndef f(A: T.Buffer((2, 3, 4), 'float32'), B: T.Buffer((2,), 'float32')):\n    for i, j, k in T.grid(2, 3, 4):\n        with T.block('B'):\n            vi, vj, vk = T.axis.remap('SRR', [i, j, k])\n            with T.init():\n                B[vi] = T.float32(0)\n            B[vi] = B[vi] + A[vi, vj, vk]\n",
    );
    // Another order of a sum is another function of floats.
    tilewright(&["opt", &reduction, "--schedule", &sums, "--certificate", &none])
        .code(3)
        .complains("has no certificate");
    assert!(!std::path::Path::new(&none).exists());
}

/// Conversions that are lifted out of functions, moved, cancelled and folded into constants have certificates; a
/// layout of weights that is another one in the forged text has none.
#[test]
fn certificates_of_graphs_are_written_and_checked() {
    let scratch = Scratch::new();
    for (case, passes) in [
        ("layout/lift_weight", "lift_layout,fold_constant"),
        ("layout/cancel_matmul_chain", "cancel_layout"),
        ("layout/flow_addone_1", "lift_layout,flow_layout"),
        ("layout/plan_residual", "plan_layout"),
        ("graph/fuse_epilogue", "fuse"),
    ] {
        let path = format!("{}/../../tests/cases/{case}.py", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the case is there");
        let module = text.split("# ---- ").next().expect("a module");
        let (module, path) = (scratch.file("module.py", module), scratch.path("graph.cert"));
        tilewright(&["opt", &module, "--pass", passes, "--certificate", &path]).code(0);
        let accepted = tilewright(&["check", &path]).code(0);
        assert!(accepted.out.starts_with("accepted: "), "{case}: {}", accepted.out);
        let text = std::fs::read_to_string(&path).expect("it was written");
        // The last store of the last function stores something else, and to the first cell.
        let at = text.rfind("(store ").expect("a store");
        let end = at + text[at..].find('\n').expect("a line");
        let name = text[at..end].split(' ').nth(1).expect("a name");
        let dtype = ["param", "alloc"].iter().find_map(|item| {
            let item = format!("({item} {name} ");
            text[..at].rfind(&item).map(|k| text[k + item.len()..].lines().next().expect("a line"))
        });
        let rank = dtype.expect("it is defined").trim_end_matches(')').split(' ').count() - 1;
        let zeros = vec!["0"; rank].join(" ");
        let forged = format!("{}(store {name} ({zeros}) (exp 1)){}", &text[..at], &text[end..]);
        let refused = tilewright(&["check", &scratch.file("forged.cert", forged)]).code(1);
        let line = refused.out.rsplit("forged.cert:").next().expect("a line");
        assert!(line.starts_with(|c: char| c.is_ascii_digit()), "{case}: {}", refused.out);
    }
}

/// Beside a graph function, a function that it does not call has a certificate of its own.
#[test]
fn certificates_beside_a_graph_are_of_all_functions() {
    let scratch = Scratch::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/graph/fuse_epilogue.py");
    let text = std::fs::read_to_string(path).expect("the case is there");
    let alone = "    @T.prim_func
    def alone(A: T.Buffer((7,), \"float32\"), B: T.Buffer((7,), \"float32\")):
        for i in range(7):
            if i < 7:
                B[i] = A[i]

    @R.function";
    let module = text.split("# ---- ").next().expect("a module");
    let module = scratch.file("module.py", module.replacen("    @R.function", alone, 1));
    let path = scratch.path("both.cert");
    tilewright(&["opt", &module, "--pass", "simplify", "--certificate", &path]).code(0);
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.contains("(function alone\n"), "{text}");
    let accepted = tilewright(&["check", &path]).code(0);
    assert!(accepted.out.starts_with("accepted: "), "{}", accepted.out);
}
