//! `run`.

use tilewright_driver::Tensor;
use tilewright_runtime::{npy, npz};

use super::{Done, Scratch, digits, reshape, tilewright, tilewright_on};

/// Runs the digits model on its test images, with more arguments.
fn run_digits(more: &[&str]) -> Done {
    let (model, inputs) = (digits("digits.onnx"), digits("test_inputs.npz"));
    tilewright(&[&["run", &model, "--inputs", &inputs], more].concat())
}

/// The expected outputs with a change, in a file.
fn expected(scratch: &Scratch, change: impl FnOnce(&mut npz::Arrays)) -> String {
    let mut arrays = npz::read(digits("test_expected.npz")).expect("it is there");
    change(&mut arrays);
    write(scratch, "expected.npz", &arrays)
}

fn write(scratch: &Scratch, name: &str, arrays: &npz::Arrays) -> String {
    let path = scratch.path(name);
    npz::write(&path, arrays.iter().map(|(n, t)| (n.as_str(), t))).expect("it can be written");
    path
}

fn floats(shape: &[usize], value: f32) -> Tensor {
    let n = shape.iter().product();
    Tensor::from_slice(shape, &vec![value; n]).expect("a tensor")
}

#[test]
fn digits_give_what_is_expected() {
    let done = run_digits(&["--expect", &digits("test_expected.npz")]).code(0);
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", done.out);
    assert!(lines[0].starts_with("logits: agrees: largest error "), "{}", done.out);
    assert!(lines[1].starts_with("probabilities: agrees: largest error "), "{}", done.out);
    assert_eq!(done.err, "");
}

#[test]
fn any_number_of_threads_gives_the_same() {
    for threads in ["1", "2", "5"] {
        let expected = digits("test_expected.npz");
        run_digits(&["--threads", threads, "--expect", &expected]).code(0);
    }
    run_digits(&["--threads", "0"]).code(2).complains("at least one thread");
}

#[test]
fn a_difference_is_shown_with_its_place() {
    let scratch = Scratch::new();
    let path = expected(&scratch, |arrays| {
        let logits = arrays["logits"].as_mut_slice::<f32>().expect("floats");
        logits[3 * 10 + 4] += 0.5;
    });
    let done = run_digits(&["--expect", &path]).code(1);
    let done = done.says("logits: differs in 1 of 970 elements: largest error 0.5 at [3, 4]");
    let done = done.says("; at [3, 4] it is ").says("probabilities: agrees");
    assert_eq!(done.err, "");
    run_digits(&["--expect", &path, "--atol", "0.6"]).code(0);
    run_digits(&["--expect", &path, "--rtol", "100"]).code(0);
}

#[test]
fn names_that_are_missing_or_not_expected_are_reported() {
    let scratch = Scratch::new();
    let part = expected(&scratch, |arrays| drop(arrays.shift_remove("logits")));
    let done = run_digits(&["--expect", &part]).code(0).says("probabilities: agrees");
    done.complains("note: output `logits` is not compared");
    let more = expected(&scratch, |arrays| drop(arrays.insert("x".into(), floats(&[1], 0.0))));
    run_digits(&["--expect", &more]).code(1).says("x: is expected, and there is no such output");
    let none = expected(&scratch, npz::Arrays::clear);
    run_digits(&["--expect", &none]).code(2).complains("holds no arrays");
}

#[test]
fn expected_outputs_of_another_type_or_shape_differ() {
    let scratch = Scratch::new();
    let path = expected(&scratch, |arrays| {
        arrays["logits"] = floats(&[97, 11], 0.0);
        let wide = Tensor::from_slice(&[1], &[0.0f64]).expect("a tensor");
        arrays["probabilities"] = wide;
    });
    run_digits(&["--expect", &path])
        .code(1)
        .says("logits: has the shape [97, 10], expected [97, 11]")
        .says("probabilities: has elements of type float32, expected float64");
}

#[test]
fn outputs_are_written_and_are_the_same_again() {
    let scratch = Scratch::new();
    let path = scratch.path("out.npz");
    let done = run_digits(&["--output", &path]).code(0);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("", ""));
    let arrays = npz::read(&path).expect("it was written");
    assert_eq!(arrays.keys().collect::<Vec<_>>(), ["logits", "probabilities"]);
    assert_eq!(arrays["logits"].shape(), [97, 10]);
    run_digits(&["--expect", &path, "--rtol", "0", "--atol", "0"])
        .code(0)
        .says("logits: agrees exactly\nprobabilities: agrees exactly\n");
    run_digits(&["--output", "/nowhere/out.npz"]).code(2).complains("/nowhere/out.npz");
}

#[test]
fn a_summary_shows_the_best_classes() {
    let done = run_digits(&[]).code(0).says("logits: float32 [97, 10] ").says("  row 0: ");
    assert!(done.out.contains("... 93 rows more"), "{}", done.out);
}

#[test]
fn sizes_come_from_arguments_or_from_inputs() {
    let model = digits("digits.onnx");
    tilewright(&["run", &model])
        .code(0)
        .says("logits: float32 [1, 10]")
        .complains("note: the size `N` is open, and 1 is taken; --dim N=SIZE gives another\n");
    let said = run_digits(&[]).code(0).err;
    assert!(!said.contains("is taken"), "{said}");
    for key in ["N", "image.0"] {
        tilewright(&["run", &model, "--dim", &format!("{key}=3")])
            .code(0)
            .says("logits: float32 [3, 10]")
            .complains("note: input `image` is random (seed 0): float32 [3, 1, 8, 8]");
    }
    tilewright(&["run", &model, "--dim", "M=3"]).code(2).complains("`M`");
    tilewright(&["run", &model, "--dim", "N=3", "--dim", "N=4"]).code(2).complains("given twice");
    run_digits(&["--dim", "N=3"]).code(2).complains("N=3").complains("[97, 1, 8, 8]");
    run_digits(&["--dim", "N=97"]).code(0);
}

#[test]
fn inputs_that_sizes_depend_on_are_compiled_in() {
    let scratch = Scratch::new();
    let model = reshape(&scratch);
    let shape = |a, b| {
        let shape = Tensor::from_slice::<i64>(&[2], &[a, b]).expect("a tensor");
        let path = scratch.path(&format!("{a}_{b}.npy"));
        npy::write(&path, &shape).expect("it can be written");
        format!("shape={path}")
    };
    let run = |shape: &str| tilewright(&["run", &model, "--input", shape]);
    let done = run(&shape(2, 3)).code(0).says("y: float32 [2, 3]");
    let done = done.complains("note: sizes depend on input `shape`: its value is compiled in\n");
    done.complains("note: input `x` is random").complains("note: input `k` is random");
    run(&shape(-1, 1)).code(0).says("y: float32 [6, 1]");
    run(&shape(4, 2)).code(2).complains("cannot take the shape");
    tilewright(&["run", &model])
        .code(2)
        .complains("the input `shape` must be known when the model is imported")
        .complains("it depends on values that are not given: `shape`")
        .complains("--input shape=FILE.npy");
}

#[test]
fn random_inputs_follow_the_seed() {
    let model = digits("digits.onnx");
    let run = |seed| tilewright(&["run", &model, "--dim", "N=1", "--seed", seed]).code(0).out;
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn inputs_may_come_one_by_one() {
    let scratch = Scratch::new();
    let image = npz::read(digits("test_inputs.npz")).expect("it is there")["image"].clone();
    let path = scratch.path("image.npy");
    npy::write(&path, &image).expect("it can be written");
    let (model, expected) = (digits("digits.onnx"), digits("test_expected.npz"));
    let input = format!("image={path}");
    tilewright(&["run", &model, "--input", &input, "--expect", &expected]).code(0);
    run_digits(&["--input", &input]).code(2).complains("input `image` is given twice");
    let other = format!("picture={path}");
    tilewright(&["run", &model, "--input", &other])
        .code(2)
        .complains("`picture` was given, and is not an input");
    tilewright(&["run", &model, "--input", "image=/nowhere.npy"]).code(2).complains("/nowhere.npy");
}

#[test]
fn inputs_of_another_type_or_shape_are_refused() {
    let scratch = Scratch::new();
    let model = digits("digits.onnx");
    let run = |tensor: Tensor| {
        let inputs = write(&scratch, "in.npz", &[("image".to_owned(), tensor)].into());
        tilewright(&["run", &model, "--inputs", &inputs])
    };
    run(Tensor::from_slice(&[1, 1, 8, 8], &[0.0f64; 64]).expect("a tensor"))
        .code(2)
        .complains("input `image` has elements of type float32, and was given float64");
    run(floats(&[1, 1, 8, 9], 0.0)).code(2).complains("image");
    run(floats(&[1, 1, 8], 0.0)).code(2).complains("image");
}

#[test]
fn files_that_are_missing_or_damaged_are_refused() {
    let scratch = Scratch::new();
    let (model, inputs) = (digits("digits.onnx"), digits("test_inputs.npz"));
    let whole = std::fs::read(&inputs).expect("it is there");
    let cut = scratch.file("cut.npz", &whole[..whole.len() / 2]);
    let text = scratch.file("text.npz", "hello");
    tilewright(&["run", "/nowhere/m.onnx"]).code(2).complains("/nowhere/m.onnx");
    tilewright(&["run", &model, "--inputs", "/nowhere/i.npz"]).code(2).complains("/nowhere/i.npz");
    for bad in [&cut, &text] {
        tilewright(&["run", &model, "--inputs", bad]).code(2).complains("not a `.npz` file");
        run_digits(&["--expect", bad]).code(2).complains("not a `.npz` file");
    }
    let bytes = std::fs::read(&model).expect("it is there");
    let half = scratch.file("half.onnx", &bytes[..bytes.len() / 2]);
    tilewright(&["run", &half]).code(2).complains("half.onnx");
    let empty = scratch.file("empty.onnx", "");
    tilewright(&["run", &empty]).code(2).complains("empty.onnx");
}

#[test]
fn layouts_change_nothing_but_the_layout() {
    let expected = digits("test_expected.npz");
    for layout in ["plan", "none", "nhwc", "nchw8c", "nchw16c"] {
        run_digits(&["--layout", layout, "--expect", &expected]).code(0);
    }
    let timed = run_digits(&["--layout", "nchw8c", "--time"]).code(0);
    timed.complains("conversions a run that move");
    run_digits(&["--layout", "round"]).code(2).complains("there is no layout `round`");
}

#[test]
fn a_plan_lists_the_conversions_that_are_left_with_their_reasons() {
    let model = digits("digits.onnx");
    let plan = |more: &[&str]| {
        let arguments = ["plan", &model, "--dim", "N=1"];
        tilewright(&[&arguments[..], more].concat())
    };
    plan(&["--layout", "none"]).code(0).says("0 conversions, 0 bytes");
    plan(&["--layout", "none", "--json"]).code(0).says("[]");
    plan(&["--layout", "nchw8c"])
        .code(0)
        .says("image: 2304 bytes\n  from lambda i0, i1, i2, i3: [i0, i1, i2, i3]\n")
        .says("  to   lambda i0, i1, i2, i3: [i0, i1 // 8, i2, i3, i1 % 8]\n")
        .says("`image` is an argument of the graph")
        .says("2 conversions, 4428 bytes");
    plan(&["--layout", "nchw8c", "--json"]).code(0).says("\"value\": \"image\"");
    plan(&["--layout", "round"]).code(2).complains("there is no layout `round`");
}

/// Each piece of a model with control flow is planned by itself, as it is compiled.
/// Transposes are layouts of what they read: a plan says of each what it is.
#[test]
fn a_plan_says_what_a_transposed_value_is() {
    let case = include_str!("../../../../tests/cases/layout/flow_permuted.py");
    let scratch = Scratch::new();
    let path = scratch.path("permuted.py");
    let module = case.split("# ---- expected").next().unwrap_or_default();
    std::fs::write(&path, module).expect("it is written");
    let plan = tilewright(&["plan", &path]).code(0);
    let plan = plan.says("  a: as `x` by lambda i0, i1, i2, i3: [i0, i3, i1, i2]");
    let plan = plan.says("  c: as `b` by lambda i0, i1, i2, i3: [i0, i2, i3, i1]");
    // Nothing but the weights is converted.
    assert_eq!(plan.out.matches("  from lambda").count(), 1, "{}", plan.out);
}

#[test]
fn a_model_with_control_flow_has_a_plan_for_each_piece() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/control/run_if.py");
    let plan = |more: &[&str]| tilewright(&[&["plan", root][..], more].concat());
    plan(&[]).code(0).says("graph function main_0:\ncalls, in cycles:\n").says("main_0: plan: ");
    let json = plan(&["--json", "--fast-math"]).code(0).out;
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let graphs = value["graphs"].as_array().expect("a list");
    assert!(graphs.len() > 1 && graphs.iter().all(|g| g["objective"].is_u64()), "{json}");
    assert_eq!(
        (&value["costs"], &value["transforms"]),
        (&"written".into(), &serde_json::json!([]))
    );
    plan(&["--price"]).code(2).complains("a model with control flow has no one plan");
}

#[test]
fn a_plan_says_what_each_call_costs_and_its_rivals() {
    let model = digits("digits.onnx");
    let plan = |more: &[&str]| {
        let arguments = ["plan", &model, "--dim", "N=1", "--cpu", "x86-64-v3"];
        tilewright(&[&arguments[..], more].concat())
    };
    let text = plan(&["--layout", "plan"]).code(0).says("calls, in cycles:\n").out;
    assert_eq!(text, plan(&[]).code(0).out);
    let total = |text: &str, before: &str| -> u64 {
        let at = text.find(before).unwrap_or_else(|| panic!("{before} is not in {text}"));
        let digits = text[at + before.len()..].chars().take_while(char::is_ascii_digit);
        digits.collect::<String>().parse().expect("a number of cycles")
    };
    assert!(text.contains("cycles, proved to be the least;"), "{text}");
    let best = total(&text, "plan: ");
    // Never worse, by its own costs, than what it was compared with.
    for other in ["greedy ", "nchw16c ", "nchw8c ", "nhwc ", "none "] {
        let after = text.rfind("proved to be").expect("a line of totals");
        assert!(total(&text[after..], other) >= best, "{other}{text}");
    }
    let json = plan(&["--json"]).code(0).out;
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["objective"], best);
    assert_eq!(value["bound"], best);
    for key in ["gap", "alternatives", "calls", "tensors", "conversions"] {
        assert!(!value[key].is_null(), "{key}: {json}");
    }
    // To fix what is chosen changes nothing; what is not costs as much or more.
    let call = value["calls"].as_array().expect("a list").iter().find(|c| {
        c["alternatives"].get("nhwc").is_some() && c["alternatives"].get("logical").is_some()
    });
    let name = call.expect("a convolution")["name"].as_str().expect("a name").to_owned();
    let mut costs = Vec::new();
    for layout in ["none", "nhwc", "nchw8c", "nchw16c"] {
        let what = format!("{name}={layout}");
        let text = plan(&["--what-if", &what]).code(0).out;
        costs.push(total(&text, &format!("what if {what}: ")));
    }
    assert_eq!(costs.iter().min(), Some(&best), "{costs:?}");
    plan(&["--what-if", "x"]).code(2).complains("expected VALUE=LAYOUT");
    plan(&["--what-if", "x=nhwc"]).code(2).complains("no call makes `x`");
    plan(&["--what-if", &format!("{name}_=nhwc")])
        .code(2)
        .complains(&format!("did you mean `{name}`?"));
    plan(&["--what-if", &format!("{name}=round")])
        .code(2)
        .complains(&format!("`{name}` cannot be computed in `round`"))
        .complains("it can be computed in: none; nchw16c; nchw8c; nhwc");
    // Calls that follow have index maps in the place of names.
    let calls = value["calls"].as_array().expect("a list");
    let map = calls.iter().find_map(|c| {
        let ways = c["alternatives"].as_object()?;
        let map = ways.keys().find(|way| way.starts_with("lambda"))?;
        Some(format!("{}={map}", c["name"].as_str()?))
    });
    let map = map.expect("a call that follows");
    plan(&["--what-if", &map]).code(0).says(&format!("what if {map}: "));
    plan(&["--layout", "nhwc", "--what-if", "x=nhwc"]).code(2).complains("asks about the plan");
}

#[test]
fn times_are_said_and_the_outputs_stay_right() {
    let expected = digits("test_expected.npz");
    let done =
        run_digits(&["--time", "--profile", "--threads", "1", "--expect", &expected]).code(0);
    let line = |start: &str| {
        let found = done.err.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no `{start}` in {}", done.err)).to_owned()
    };
    assert!(line("time: import ").contains(", compile "), "{}", done.err);
    for part in [", min ", ", p90 ", ", spread ", " runs, 1 threads"] {
        assert!(line("time: median ").contains(part), "{}", done.err);
    }
    assert!(line("profile: ").contains(" steps, medians of "), "{}", done.err);
    assert!(done.err.lines().filter(|line| line.contains(" x ")).count() > 3, "{}", done.err);
    // Those of all pieces, where there is control flow.
    let sizes = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/control/run_sizes.py");
    let done = tilewright(&["run", sizes, "--dim", "n=9", "--profile"]).code(0);
    assert!(done.err.lines().any(|line| line.contains(" x ")), "{}", done.err);
}

/// The bytes of conversions are those of the sizes of a run, whether these are open or not.
#[test]
fn bytes_of_conversions_are_those_of_the_run() {
    let said = |more: &[&str]| {
        let options = ["--layout", "nchw16c", "--time", "--seconds", "0.001"];
        let model = digits("digits.onnx");
        let done = tilewright(&[&["run", &model][..], &options, more].concat()).code(0);
        let line = done.err.lines().find(|line| line.starts_with("time: layout "));
        let line = line.unwrap_or_else(|| panic!("no line in {}", done.err));
        line.split_once(", ").expect("a time").1.to_owned()
    };
    for n in ["N=3", "N=41"] {
        assert_eq!(said(&["--open", "--dim", n]), said(&["--dim", n]), "{n}");
    }
}

#[test]
fn choices_of_native_code_change_nothing_in_the_results() {
    let expected = digits("test_expected.npz");
    for choice in [
        &["--no-fuse"][..],
        &["--no-schedule"],
        &["--no-fuse", "--no-schedule", "--opt-level", "0"],
        &["--check"],
        &["--no-cache", "--opt-level", "1"],
    ] {
        run_digits(&[choice, &["--expect", &expected]].concat()).code(0);
    }
}

/// `B[i] = A[i] + 1` for `n` elements.
const SYMBOLIC: &str = r#"
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] + T.float32(1)
"#;

#[test]
fn a_tensor_function_takes_its_sizes_from_the_inputs() {
    let scratch = Scratch::new();
    let inputs = write(&scratch, "in.npz", &[("A".to_owned(), floats(&[7], 2.5))].into());
    tilewright_on(SYMBOLIC, &["run", "-", "--inputs", &inputs])
        .code(0)
        .says("B: float32 [7] 3.5 3.5 3.5 3.5 3.5 3.5 3.5\n");
    tilewright_on(SYMBOLIC, &["run", "-", "--dim", "n=3"]).code(0).says("B: float32 [3] ");
    tilewright_on(SYMBOLIC, &["run", "-"])
        .code(2)
        .complains("the module leaves these sizes open: `n`")
        .complains("--dim n=SIZE");
    let output = write(&scratch, "out.npz", &[("B".to_owned(), floats(&[7], 2.5))].into());
    tilewright_on(SYMBOLIC, &["run", "-", "--inputs", &output])
        .code(2)
        .complains("`B` was given, and is not an input");
}

/// Numbers in tiles of eight: the inputs have as many tiles for 9 numbers as for 16.
const TILED: &str = r#"
@T.prim_func
def f(a: T.handle, n: T.int64, b: T.handle):
    A = T.match_buffer(a, ((n + 7) // 8, 8), "float32")
    B = T.match_buffer(b, ((n + 7) // 8, 8), "float32")
    for i, j in T.grid((n + 7) // 8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi * 8 + vj < n, A[vi, vj] + T.float32(1), T.float32(0))
"#;

#[test]
fn a_size_that_no_input_says_is_given() {
    let scratch = Scratch::new();
    let inputs = write(&scratch, "in.npz", &[("A".to_owned(), floats(&[2, 8], 2.5))].into());
    let run = |more: &[&str]| {
        tilewright_on(TILED, &[&["run", "-", "--open", "--inputs", &inputs], more].concat())
    };
    let rows = |n: usize| {
        let cells = (0..16).map(|k| if k < n { " 3.5" } else { " 0" });
        // The summary of a tensor shows the first eight.
        format!("B: float32 [2, 8]{}", cells.take(8).collect::<String>())
    };
    let last = |n: &str| {
        let output = scratch.path("out.npz");
        run(&["--dim", n, "--output", &output]).code(0);
        let arrays = npz::read(&output).expect("it is written");
        let b = arrays.values().next().expect("one array").as_slice::<f32>().expect("floats");
        b.iter().filter(|v| **v == 3.5).count()
    };
    run(&["--dim", "n=9"]).code(0).says(&rows(9));
    assert_eq!(["n=9", "n=13", "n=16"].map(last), [9, 13, 16]);
    run(&[]).code(2).complains("the size `n` is not given").complains("--dim n=SIZE");
    // For 17 numbers there are three tiles.
    run(&["--dim", "n=17"]).code(2).complains("dimension 0 must be 3");
    run(&["--dim", "n=9", "--specialize", "n=9"])
        .code(2)
        .complains("a version for some sizes, where the shapes of the inputs do not say `n`");
    let header = scratch.path("tiled.h");
    tilewright_on(TILED, &["compile", "-", "-o", &scratch.path("tiled.o")]).code(0);
    let header = std::fs::read_to_string(header).expect("it is written");
    assert!(header.contains("#define TILED_SIZE_0 0 /* `n` */"), "{header}");
}

#[test]
fn a_failing_assertion_is_an_error() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32")):
    assert A[0] > T.float32(2), "A is large"
    B[0] = A[0]
"#;
    tilewright_on(text, &["run", "-"]).code(2).complains("an assertion of `f` failed: A is large");
}

#[test]
fn arrays_that_are_no_inputs_are_refused_unread() {
    let scratch = Scratch::new();
    let bytes = std::fs::read(digits("test_inputs.npz")).expect("it is there");
    // Whatever is in the member: its name is enough.
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("image.npy"));
    let renamed = bytes.to_vec();
    let at: Vec<usize> =
        (0..renamed.len() - 9).filter(|&i| &renamed[i..i + 9] == b"image.npy").collect();
    let mut other = renamed.clone();
    at.iter().for_each(|&i| other[i..i + 5].copy_from_slice(b"imaga"));
    let path = scratch.file("other.npz", &other);
    tilewright(&["run", &digits("digits.onnx"), "--inputs", &path])
        .code(2)
        .complains("`imaga` was given, and is not an input")
        .complains("the inputs are: `image`");
    // One of the wrong type, whose content is damaged, is refused for its type.
    let wide = Tensor::from_slice(&[2, 1, 8, 8], &[0.25f64; 128]).expect("a tensor");
    let path = write(&scratch, "wide.npz", &[("image".to_owned(), wide)].into());
    let mut bytes = std::fs::read(&path).expect("it is there");
    let at = bytes.len() / 2;
    bytes[at] ^= 0x55;
    let path = scratch.file("wide.npz", &bytes);
    tilewright(&["run", &digits("digits.onnx"), "--inputs", &path])
        .code(2)
        .complains("input `image` has elements of type float32, and was given float64");
}

#[test]
fn places_that_cannot_be_written_are_refused_before_the_model_is_read() {
    let scratch = Scratch::new();
    let directory = scratch.path("");
    // There is no such model, and that is not what is said.
    for output in [directory.as_str(), "/nowhere/out"] {
        for command in [
            &["run", "/nowhere/m.onnx", "--output"][..],
            &["compile", "/nowhere/m.onnx", "--emit", "so", "-o"],
        ] {
            tilewright(&[command, &[output]].concat()).code(2).complains(output);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let done = run_digits(&["--output", "/dev/full"]).code(2).complains("/dev/full: ");
    assert_eq!(done.err.lines().filter(|l| !l.starts_with("note: ")).count(), 1, "{}", done.err);
    tilewright(&["compile", &digits("digits.onnx"), "--emit", "tvmscript", "-o", "/dev/full"])
        .code(2)
        .complains("/dev/full: ");
}

/// A limit on the size of files does what a full disk does: writing fails after a part.
#[cfg(unix)]
#[test]
fn what_does_not_fit_leaves_the_old_file_and_nothing_else() {
    let scratch = Scratch::new();
    let limited = |arguments: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
        command.arg(env!("CARGO_BIN_EXE_tilewright")).args(arguments);
        // Neither does the cache fit, and that is no error.
        command.env("TILEWRIGHT_CACHE", scratch.path("cache"));
        let done = command.output().expect("there is a shell");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let model = digits("digits.onnx");
    let inputs = digits("test_inputs.npz");
    let outputs = [("npz", &["run", &model, "--inputs", &inputs, "--output"][..])];
    let kinds = ["so", "obj", "asm", "llvm-ir", "tvmscript"];
    let compiled =
        kinds.map(|kind| [kind, "compile", &model, "--dim", "N=1", "--emit", kind, "-o"]);
    let compiled = compiled.iter().map(|c| (c[0], &c[1..]));
    for (kind, command) in outputs.into_iter().chain(compiled) {
        let path = scratch.file(&format!("out.{kind}"), "old");
        let (code, said) = limited(&[command, &[&path]].concat());
        assert_eq!(code, Some(2), "{kind}: {said}");
        let said: Vec<&str> = said.lines().filter(|l| !l.starts_with("note: ")).collect();
        assert!(said.len() == 1 && said[0].contains("too large"), "{kind}: {said:?}");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"old", "{kind}");
    }
    let left = std::fs::read_dir(scratch.path("")).expect("it is there");
    let left: Vec<_> = left.map(|e| e.expect("an entry").file_name()).collect();
    let ours =
        |name: &std::ffi::OsString| name == "cache" || name.to_string_lossy().starts_with("out.");
    assert!(left.iter().all(ours) && left.len() <= kinds.len() + 2, "{left:?}");
    let cached = std::fs::read_dir(scratch.path("cache")).map_or(0, |c| c.count());
    assert_eq!(cached, 0, "parts of objects are no objects");
}

#[test]
fn names_cannot_act_on_the_terminal() {
    let scratch = Scratch::new();
    // A graph whose input, output and constant have such names, in a file of such a name.
    let script = "@R.function\ndef main(x: R.Tensor((2,), \"float32\")) -> R.Tensor((2,), \"float32\"):\n    \
        R.func_attr({\"output_names\": [\"y\\x1b[2J\\u202e\\nerror: z\"]})\n    \
        with R.dataflow():\n        v = R.call_tir(f, (x,), out_sinfo=R.Tensor((2,), \"float32\"))\n        \
        R.output(v)\n    return v\n\n@T.prim_func\ndef f(A: T.Buffer((2,), \"float32\"), B: T.Buffer((2,), \"float32\")):\n    \
        for i in range(2):\n        with T.block(\"B\"):\n            vi = T.axis.spatial(2, i)\n            \
        B[vi] = A[vi]\n";
    let path = scratch.file("m\x1b[31m.py", script);
    let acts = |text: &str| text.lines().any(|l| l.contains(tilewright_ir::show::is_hidden));
    for arguments in [&["run"][..], &["run", "--time"], &["plan", "--layout", "nhwc", "--explain"]]
    {
        let done = tilewright(&[arguments, &[path.as_str()]].concat());
        assert!(!acts(&done.out) && !acts(&done.err), "{:?} {:?}", done.out, done.err);
        assert!(!done.out.lines().any(|line| line.starts_with("error: z")), "{}", done.out);
    }
    let broken = scratch.file(
        "b\x1b[31m.py",
        format!("{script}    B[0] = \"\x1b[5m\u{202e}\" + {}", "9".repeat(99_999)),
    );
    let done = tilewright(&["run", &broken]).code(2);
    assert!(!acts(&done.err) && done.err.len() < 2000, "{:?}", done.err);
}

#[test]
fn a_version_for_a_size_runs_where_it_fits() {
    let model = digits("digits.onnx");
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["run", &model, "--open", "--threads", "1"]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        tilewright(&args)
    };
    let plain = run(&["--dim", "N=7"]).code(0);
    let special = run(&["--dim", "N=7", "--specialize", "N=7,9"]).code(0);
    assert_eq!(special.out.lines().count(), plain.out.lines().count());
    run(&["--dim", "N=8", "--specialize", "N=7,9", "--profile"]).code(0);
    run(&["--dim", "N=9", "--specialize", "N=7,9", "--profile"]).code(0);
    run(&["--dim", "N=8", "--specialize", "M=7"]).code(2).complains("`M`");
    run(&["--dim", "N=8", "--specialize", "N=x"]).code(2).complains("expected NAME=SIZE");
    let closed = tilewright(&["run", &model, "--specialize", "N=7"]);
    closed.code(2).complains("--open");
}
