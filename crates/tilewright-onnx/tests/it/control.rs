//! Branches, loops, sequences and sizes that data decide: what is imported computes what the operators
//! say, and models that contradict themselves are refused.

use tilewright_interp::run_module;
use tilewright_ir::Tensor;
use tilewright_ir::list::ListOp;
use tilewright_onnx::ImportOptions;
use tilewright_onnx::proto::DataType;

use super::common::{D, M, graph, int, int_tensor, ints, model, sample, tensor, text};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).expect("a tensor")
}

fn longs(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_slice(shape, values).expect("a tensor")
}

fn run(m: &M, inputs: &[Tensor]) -> Vec<Tensor> {
    let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    run_module(&module, "main", inputs).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// `x`, any length, and a condition on its first element.
fn with_condition() -> M {
    model()
        .input("x", ["N"])
        .floats("zero", &[], &[0.0])
        .ints("at", &[0])
        .node_with("ReduceSum", &["x"], &["sum"], [int("keepdims", 0)])
        .node("Greater", &["sum", "zero"], &["c"])
}

/// The body of a loop, with the number of the iteration and the condition.
fn loop_body() -> M {
    model().typed_input("i", DataType::Int64, [0i64; 0]).typed_input(
        "go",
        DataType::Bool,
        [0i64; 0],
    )
}

fn doubled() -> M {
    model().floats("two", &[], &[2.0]).node("Mul", &["x", "two"], &["d"]).output("d")
}

fn joined() -> M {
    model().node_with("Concat", &["x", "x"], &["j"], [int("axis", 0)]).output("j")
}

#[test]
fn a_branch_sees_what_is_around_it_and_gives_its_own_shape() {
    let branches = [graph("then_branch", doubled()), graph("else_branch", joined())];
    let m = with_condition()
        .node_with("If", &["c"], &["y"], branches)
        .node("Neg", &["y"], &["z"])
        .output("z");
    assert_eq!(run(&m, &[floats(&[1.0, 2.0])])[0].as_slice(), Some(&[-2.0f32, -4.0][..]));
    let other = run(&m, &[floats(&[-1.0, -2.0])]);
    assert_eq!(other[0].as_slice(), Some(&[1.0f32, 2.0, 1.0, 2.0][..]));
}

#[test]
fn a_branch_that_cannot_be_computed_ends_the_run_that_chooses_it() {
    // Four columns: the product fits no length but four.
    let product =
        || model().floats("w", &[4, 1], &[1.0; 4]).node("MatMul", &["x", "w"], &["p"]).output("p");
    for at in ["then_branch", "else_branch"] {
        let other = if at == "then_branch" { "else_branch" } else { "then_branch" };
        let m = with_condition()
            .node_with("If", &["c"], &["y"], [graph(at, product()), graph(other, doubled())])
            .output("y");
        let options = ImportOptions { dims: [("N".to_owned(), 3)].into(), ..Default::default() };
        let module = m.import_with(&options).unwrap_or_else(|e| panic!("{}", e.render()));
        let sign = if at == "then_branch" { 1.0 } else { -1.0 };
        let good = floats(&[-sign, -sign, -sign]);
        let out = run_module(&module, "main", &[good]).expect("the other branch runs");
        assert_eq!(out[0].as_slice(), Some(&[-2.0 * sign; 3][..]));
        let said = run_module(&module, "main", &[floats(&[sign; 3])]).expect_err("it cannot run");
        let said = said.render();
        assert!(said.contains(&format!("the condition chooses the `{at}`")), "{said}");
        assert!(said.contains("MatMul"), "{said}");
    }
}

#[test]
fn one_element_in_two_ranks_takes_the_rank_that_the_branches_declare() {
    let body = |dims: &[i64], scalar: bool| {
        let m = model().floats("own", dims, &[3.0]).node("Mul", &["sum", "own"], &["b"]);
        if scalar { m.typed_output("b", DataType::Float, [0i64; 0]) } else { m.output("b") }
    };
    let branches = |is_declared: bool| {
        let then = graph("then_branch", body(&[], is_declared));
        [then, graph("else_branch", body(&[1], is_declared))]
    };
    let m = |is_declared: bool| {
        with_condition().node_with("If", &["c"], &["y"], branches(is_declared)).output("y")
    };
    for x in [2.0, -2.0] {
        let out = run(&m(true), &[floats(&[x])]);
        assert_eq!((out[0].shape(), out[0].as_slice()), (&[][..], Some(&[3.0 * x][..])));
    }
    let said = m(false).import().expect_err("nothing says which rank").render();
    assert!(said.contains("of 0 dimensions or float32 of 1"), "{said}");
}

#[test]
fn what_is_halved_and_doubled_is_checked_at_the_node() {
    let halved = || [ints("kernel_shape", &[2]), ints("strides", &[2]), int("ceil_mode", 1)];
    let twice =
        || [text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "floor")];
    let m = model()
        .input("x", [D::N(1), D::N(1), D::S("L")])
        .floats("scales", &[3], &[1.0, 1.0, 2.0])
        .node_with("MaxPool", &["x"], &["a"], halved())
        .node_with("MaxPool", &["a"], &["b"], halved())
        .node_with("MaxPool", &["b"], &["c"], halved())
        .node_with("Resize", &["b", "", "scales"], &["b2"], twice())
        .node("Add", &["a", "b2"], &["ab"])
        .node_with("Resize", &["c", "", "scales"], &["c2"], twice())
        .node_with("Concat", &["b", "c2"], &["bc"], [int("axis", 1)])
        .output("ab")
        .output("bc");
    let image = |n: usize| {
        let values: Vec<f32> = (0..n).map(|i| (i * 7 % 11) as f32).collect();
        Tensor::from_slice(&[1, 1, n], &values).expect("a tensor")
    };
    for n in [8, 15, 16, 39, 40] {
        let options = ImportOptions { dims: [("L".to_owned(), n)].into(), ..Default::default() };
        let fixed = m.import_with(&options).expect("the sizes fit");
        let want = run_module(&fixed, "main", &[image(n)]).expect("it runs");
        let got = run(&m, &[image(n)]);
        let cells = |all: &[Tensor]| all.iter().map(|t| t.bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(cells(&got), cells(&want));
    }
    let open = m.import().expect("it is fine");
    let said = run_module(&open, "main", &[image(12)]).expect_err("halves of 12 differ").render();
    let why = "node 6 (Concat, opset 13) needs `(L + 3) // 4` and `(L + 7) // 8 * 2` to be equal, so `L` is a \
               multiple of 8 or at most 1 less";
    assert!(said.contains(why), "{said}");
}

#[test]
fn updates_have_as_many_elements_as_indices() {
    // As many positions as elements are not zero, and as many updates as positions.
    let m = model()
        .input("x", ["N"])
        .input("u", ["M"])
        .node("NonZero", &["x"], &["at"])
        .ints("axes", &[0])
        .node("Squeeze", &["at", "axes"], &["list"])
        .node("NonZero", &["u"], &["from"])
        .node("Squeeze", &["from", "axes"], &["places"])
        .node("Gather", &["u", "places"], &["updates"])
        .node("ScatterElements", &["x", "list", "updates"], &["y"])
        .output("y");
    let x = floats(&[1.0, 0.0, 2.0]);
    let out = run(&m, &[x.clone(), floats(&[0.0, 5.0, 6.0, 0.0])]);
    assert_eq!(out[0].as_slice(), Some(&[5.0f32, 0.0, 6.0][..]));
    let module = m.import().expect("it is fine");
    run_module(&module, "main", &[x, floats(&[5.0, 6.0, 7.0])]).expect_err("three are not two");
}

#[test]
fn a_condition_that_is_known_is_decided_at_import() {
    let branches = [graph("then_branch", doubled()), graph("else_branch", joined())];
    let yes = tilewright_onnx::proto::TensorProto {
        name: "yes".into(),
        data_type: DataType::Bool as i32,
        int32_data: vec![1],
        ..Default::default()
    };
    let m = model()
        .input("x", ["N"])
        .constant(yes)
        .node_with("If", &["yes"], &["y"], branches)
        .output("y");
    let module = m.import().expect("it is fine");
    assert!(!module.graph("main").expect("it is there").has_control());
}

#[test]
fn a_loop_carries_what_grows_and_stacks_the_rest() {
    let body = loop_body()
        .input("h", ["L"])
        .node_with("Concat", &["h", "x"], &["h2"], [int("axis", 0)])
        .node("Identity", &["go"], &["go2"])
        .node("Identity", &["x"], &["s"])
        .output("go2")
        .output("h2")
        .output("s");
    let m = model()
        .input("x", ["N"])
        .typed_input("trip", DataType::Int64, [0i64; 0])
        .node_with("Loop", &["trip", "", "x"], &["y", "all"], [graph("body", body)])
        .output("y")
        .output("all");
    for trip in [0i64, 1, 3] {
        let out = run(&m, &[floats(&[1.0, 2.0]), longs(&[], &[trip])]);
        assert_eq!(out[0].shape(), [2 + 2 * trip as usize]);
        assert_eq!(out[1].shape(), [trip as usize, 2]);
    }
}

#[test]
fn the_first_iteration_may_change_the_number_of_dimensions() {
    let body = loop_body()
        .input("h", [0i64; 0])
        .ints("to", &[1, 1])
        .node("Reshape", &["h", "to"], &["r"])
        .node("Add", &["r", "r"], &["h2"])
        .node("Identity", &["go"], &["go2"])
        .node("Identity", &["h2"], &["s"])
        .output("go2")
        .output("h2")
        .output("s");
    let m = model()
        .input("x", [0i64; 0])
        .typed_input("trip", DataType::Int64, [0i64; 0])
        .node_with("Loop", &["trip", "", "x"], &["y", "all"], [graph("body", body)])
        .output("y")
        .output("all");
    let x = Tensor::from_slice(&[], &[1.5f32]).expect("a tensor");
    for trip in [1i64, 3] {
        let out = run(&m, &[x.clone(), longs(&[], &[trip])]);
        assert_eq!(out[0].shape(), [1, 1]);
        assert_eq!(out[0].as_slice(), Some(&[1.5f32 * 2f32.powi(trip as i32)][..]));
        assert_eq!(out[1].shape(), [trip as usize, 1, 1]);
    }
    let module = m.import().expect("it is fine");
    let said = run_module(&module, "main", &[x, longs(&[], &[0])]).expect_err("no iteration");
    assert!(said.render().contains("the number of iterations 0"), "{}", said.render());
}

#[test]
fn a_scan_goes_over_inputs_of_one_length() {
    let body = model()
        .input("s", [2i64])
        .input("x", [2i64])
        .input("y", [2i64])
        .node("Mul", &["x", "y"], &["xy"])
        .node("Add", &["s", "xy"], &["s2"])
        .output("s2");
    let m = model()
        .input("s0", [D::N(2)])
        .input("xs", [D::S("N"), D::N(2)])
        .input("ys", [D::S("M"), D::N(2)])
        .node_with(
            "Scan",
            &["s0", "xs", "ys"],
            &["s"],
            [graph("body", body), int("num_scan_inputs", 2)],
        )
        .output("s");
    let rows = |n: usize| Tensor::from_slice(&[n, 2], &vec![2.0f32; 2 * n]).expect("a tensor");
    let out = run(&m, &[floats(&[0.0, 1.0]), rows(3), rows(3)]);
    assert_eq!(out[0].as_slice(), Some(&[12.0f32, 13.0][..]));
    let module = m.import().expect("it is imported");
    let inputs = [floats(&[0.0, 1.0]), rows(2), rows(3)];
    let said = run_module(&module, "main", &inputs).expect_err("other lengths").render();
    assert!(said.contains("Scan") && said.contains("`M` and `N`"), "{said}");
}

#[test]
fn a_scan_goes_both_ways() {
    let body = || {
        model()
            .input("s", [2i64])
            .input("x", [2i64])
            .node("Add", &["s", "x"], &["s2"])
            .node("Identity", &["s2"], &["y"])
            .output("s2")
            .output("y")
    };
    let m = |attributes: Vec<_>| {
        model()
            .input("s0", [2i64])
            .input("xs", [2i64, 3])
            .node_with("Scan", &["s0", "xs"], &["s", "ys"], attributes)
            .output("s")
            .output("ys")
    };
    let xs = Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0]).expect("a tensor");
    let count = || int("num_scan_inputs", 1);
    let axis = || ints("scan_input_axes", &[1]);
    let forward = m(vec![graph("body", body()), count(), axis(), ints("scan_output_axes", &[-1])]);
    let out = run(&forward, &[floats(&[0.0, 0.0]), xs.clone()]);
    assert_eq!(out[0].as_slice(), Some(&[6.0f32, 60.0][..]));
    assert_eq!(out[1].as_slice(), Some(&[1.0f32, 3.0, 6.0, 10.0, 30.0, 60.0][..]));
    let back = [ints("scan_input_directions", &[1]), ints("scan_output_directions", &[1])];
    let attributes = vec![graph("body", body()), count(), axis()];
    let out = run(&m(attributes.into_iter().chain(back).collect()), &[floats(&[0.0, 0.0]), xs]);
    assert_eq!(out[1].as_slice(), Some(&[6.0f32, 60.0, 5.0, 50.0, 3.0, 30.0][..]));
}

#[test]
fn sizes_that_data_decide() {
    let m = model().input("x", ["N", "M"]).node("NonZero", &["x"], &["y"]).output("y");
    let x = Tensor::from_slice(&[2, 3], &[0.0f32, 1.0, 0.0, 2.0, 0.0, 3.0]).expect("a tensor");
    let out = run(&m, &[x]);
    assert_eq!(out[0].as_slice(), Some(&[0i64, 1, 1, 1, 0, 2][..]));
    let none = Tensor::from_slice(&[1, 2], &[0.0f32, 0.0]).expect("a tensor");
    assert_eq!(run(&m, &[none])[0].shape(), [2, 0]);

    let m = model()
        .typed_input("x", DataType::Int64, ["N"])
        .node("Unique", &["x"], &["y", "first", "kind", "count"])
        .output("y")
        .output("first")
        .output("kind")
        .output("count");
    let out = run(&m, &[longs(&[5], &[7, 3, 7, 5, 3])]);
    let all: Vec<&[i64]> = out.iter().filter_map(|t| t.as_slice()).collect();
    assert_eq!(all, [&[3i64, 5, 7][..], &[1, 3, 0], &[2, 0, 2, 1, 0], &[2, 1, 2]]);

    // The limit is computed; the elements of a list are a shape.
    let m = model()
        .typed_input("x", DataType::Int64, ["N"])
        .constant(tilewright_onnx::proto::TensorProto {
            name: "zero".into(),
            data_type: DataType::Int64 as i32,
            int64_data: vec![0],
            ..Default::default()
        })
        .constant(tilewright_onnx::proto::TensorProto {
            name: "two".into(),
            data_type: DataType::Int64 as i32,
            int64_data: vec![2],
            ..Default::default()
        })
        .node_with("ReduceMax", &["x"], &["most"], [int("keepdims", 0)])
        .node_with("ReduceMax", &["x"], &["list"], [int("keepdims", 1)])
        .node("Range", &["zero", "most", "two"], &["r"])
        .node("Expand", &["two", "list"], &["e"])
        .output("r")
        .output("e");
    let out = run(&m, &[longs(&[3], &[2, 5, 1])]);
    assert_eq!(out[0].as_slice(), Some(&[0i64, 2, 4][..]));
    assert_eq!(out[1].as_slice(), Some(&[2i64; 5][..]));
}

/// `x`, which has one axis less where the second one has one element: PyTorch's `x.squeeze(1)`.
fn squeezed() -> M {
    let gone = model().ints("axis", &[1]).node("Squeeze", &["x", "axis"], &["s"]).output("s");
    let same = model().node("Identity", &["x"], &["i"]).output("i");
    model()
        .input("x", ["N", "M"])
        .ints("second", &[1])
        .ints("single", &[1])
        .node("Shape", &["x"], &["shape"])
        .node("Gather", &["shape", "second"], &["m"])
        .node("Equal", &["m", "single"], &["c"])
        .node_with("If", &["c"], &["y"], [graph("then_branch", gone), graph("else_branch", same)])
}

#[test]
fn what_follows_branches_of_different_ranks_is_computed_in_each() {
    let m = squeezed()
        .ints("last", &[-1])
        .node("Mul", &["y", "y"], &["yy"])
        .node_with("ReduceSum", &["yy", "last"], &["sum"], [int("keepdims", 1)])
        .ints("flat", &[-1])
        .node("Reshape", &["sum", "flat"], &["z"])
        .output("z")
        .output("shape");
    let of = |shape: &[usize], values: &[f32]| {
        let x = Tensor::from_slice(shape, values).expect("a tensor");
        run(&m, &[x])[0].as_slice::<f32>().expect("floats").to_vec()
    };
    assert_eq!(of(&[3, 1], &[1.0, 2.0, 3.0]), [14.0]);
    assert_eq!(of(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), [5.0, 25.0]);
}

#[test]
fn a_rank_that_does_not_fit_what_follows_ends_the_run_that_takes_it() {
    let weights = || squeezed().floats("w", &[4, 2], &[1.0; 8]);
    // One row only where the axis goes.
    let m = weights()
        .ints("front", &[0])
        .node("Unsqueeze", &["y", "front"], &["row"])
        .node("Gemm", &["row", "w"], &["z"])
        .output("z");
    let row = Tensor::from_slice(&[4, 1], &[1.0f32, 2.0, 3.0, 4.0]).expect("a column");
    assert_eq!(run(&m, &[row])[0].as_slice(), Some(&[10.0f32; 2][..]));
    let module = m.import().expect("it is imported");
    let wide = Tensor::from_slice(&[2, 2], &[1.0f32; 4]).expect("a tensor");
    let said = run_module(&module, "main", &[wide]).expect_err("three dimensions").render();
    assert!(said.contains("the condition chooses the `else_branch`"), "{said}");
    assert!(said.contains("Gemm"), "{said}");
}

#[test]
fn outputs_have_the_rank_that_the_file_declares() {
    let of = |m: M| m.import().map(|module| (m, module));
    let said = of(squeezed().output("y")).err().expect("nothing says which rank").render();
    assert!(said.contains("float32 of 1 dimensions or float32 of 2"), "{said}");
    let (_, module) = of(squeezed().typed_output("y", DataType::Float, ["N"])).expect("a vector");
    let out = run_module(&module, "main", &[sample(&[3, 1], 1)]).expect("it runs");
    assert_eq!(out[0].shape(), [3]);
    let said = run_module(&module, "main", &[sample(&[3, 2], 1)]).expect_err("a matrix").render();
    assert!(said.contains("has 2 dimensions, and the file declares 1"), "{said}");
}

#[test]
fn squeeze_without_axes_says_which_size_may_not_be_one() {
    let m = model().input("x", [D::S("N"), D::N(1)]).node("Squeeze", &["x"], &["y"]).output("y");
    let module = m.import().expect("it is imported");
    let out = run_module(&module, "main", &[sample(&[3, 1], 1)]).expect("it runs");
    assert_eq!(out[0].shape(), [3]);
    let said = run_module(&module, "main", &[sample(&[1, 1], 1)]).expect_err("no vector").render();
    assert!(said.contains("Squeeze") && said.contains("`N`"), "{said}");
    let known = ImportOptions { dims: [("N".to_owned(), 1)].into(), ..Default::default() };
    let module = m.import_with(&known).expect("it is imported");
    let out = run_module(&module, "main", &[sample(&[1, 1], 1)]).expect("it runs");
    assert!(out[0].shape().is_empty());
    // A size that data decide.
    let m = model()
        .input("x", ["N"])
        .node("NonZero", &["x"], &["at"])
        .node("Squeeze", &["at"], &["y"])
        .output("y");
    assert_eq!(run(&m, &[floats(&[1.0, 0.0, 2.0])])[0].as_slice(), Some(&[0i64, 2][..]));
    let module = m.import().expect("it is imported");
    let said = run_module(&module, "main", &[floats(&[1.0, 0.0])]).expect_err("a number").render();
    assert!(said.contains("size of axis 1"), "{said}");
}

#[test]
fn scatters_of_what_a_mask_selects_may_have_no_updates() {
    let chosen = model()
        .opset(17)
        .input("x", ["N"])
        .floats("zero", &[], &[0.0])
        .ints("flat", &[-1])
        .node("Greater", &["x", "zero"], &["mask"])
        .node("NonZero", &["mask"], &["at"])
        .node("Compress", &["x", "mask"], &["some"])
        .node("Neg", &["some"], &["less"]);
    let tuples = chosen.copy().node_with("Transpose", &["at"], &["to"], [ints("perm", &[1, 0])]);
    let list = chosen.node("Reshape", &["at", "flat"], &["to"]);
    for (before, op) in [(tuples, "ScatterND"), (list, "ScatterElements")] {
        // PyTorch writes minima and maxima into files of opset 17, too.
        for (reduction, sum) in [("none", -1.0f32), ("add", 0.0), ("max", 1.0)] {
            let how = [text("reduction", reduction)];
            let m = before.copy().node_with(op, &["x", "to", "less"], &["y"], how).output("y");
            let out = run(&m, &[floats(&[1.0, -2.0, 3.0])]);
            assert_eq!(out[0].as_slice(), Some(&[sum, -2.0, 3.0 * sum][..]), "{op} {reduction}");
            let out = run(&m, &[floats(&[-1.0, -2.0])]);
            assert_eq!(out[0].as_slice(), Some(&[-1.0f32, -2.0][..]), "{op} {reduction}");
        }
    }
}

#[test]
fn a_condition_of_several_dimensions_selects_as_a_list_does() {
    let m = model()
        .opset(17)
        .input("x", [D::N(2), D::S("N")])
        .floats("zero", &[], &[0.0])
        .node("Greater", &["x", "zero"], &["mask"])
        .node("Compress", &["x", "mask"], &["y"])
        .output("y");
    let x = Tensor::from_slice(&[2, 3], &[1.0f32, -2.0, 3.0, -4.0, 5.0, 6.0]).expect("a tensor");
    assert_eq!(run(&m, &[x])[0].as_slice(), Some(&[1.0f32, 3.0, 5.0, 6.0][..]));
}

#[test]
fn a_slice_that_an_iteration_takes_is_a_condition_and_a_bound() {
    // How long a slice from `i` to `i + 1` is, nothing says: it may end with the list.
    let taken = || {
        loop_body()
            .input("h", [1i64])
            .ints("flat", &[-1])
            .node("Reshape", &["i", "flat"], &["from"])
            .node("Add", &["from", "one"], &["to"])
            .node("Slice", &["list", "from", "to"], &["a"])
    };
    let looped = |body: M, list: &[i64]| {
        let body = body.node("Identity", &["go"], &["go2"]).output("go2").output("h2");
        model()
            .opset(15)
            .input("x", [1i64])
            .typed_input("trip", DataType::Int64, [0i64; 0])
            .ints("one", &[1])
            .ints("zero", &[0])
            .ints("list", list)
            .floats("table", &[3], &[10.0, 20.0, 30.0])
            .node_with("Loop", &["trip", "", "x"], &["y"], [graph("body", body)])
            .output("y")
    };
    // Two is added, or multiplied with, as the list says.
    let branch =
        |op: &str| model().floats("two", &[1], &[2.0]).node(op, &["h", "two"], &["r"]).output("r");
    let how = [graph("then_branch", branch("Mul")), graph("else_branch", branch("Add"))];
    let chosen = taken().node("Equal", &["a", "one"], &["c"]).node_with("If", &["c"], &["h2"], how);
    // The list says from where an element of the table is taken.
    let summed = taken()
        .node("Add", &["a", "one"], &["end"])
        .node("Slice", &["table", "a", "end", "zero"], &["part"])
        .node("Add", &["h", "part"], &["h2"]);
    for (body, list, results, op) in [
        (chosen, [1, 0, 1], [2.0f32, 4.0, 8.0], "If"),
        (summed, [2, 0, 1], [31.0, 41.0, 61.0], "Slice"),
    ] {
        let m = looped(body, &list);
        let inputs = |trip: i64| [floats(&[1.0]), longs(&[], &[trip])];
        for (trip, y) in (1..).zip(results) {
            assert_eq!(run(&m, &inputs(trip))[0].as_slice(), Some(&[y][..]), "{op} {trip}");
        }
        // The list has no fourth element.
        let module = m.import().expect("it is imported");
        let said = run_module(&module, "main", &inputs(4)).expect_err("no element").render();
        assert!(said.contains(&format!("({op}, opset 15) needs")), "{said}");
    }
}

#[test]
fn scatters_into_what_a_mask_selects_may_have_neither_data_nor_updates() {
    let m = model()
        .opset(18)
        .input("x", ["N"])
        .floats("zero", &[], &[0.0])
        .floats("one", &[], &[1.0])
        .ints("flat", &[-1])
        .node("Greater", &["x", "zero"], &["mask"])
        .node("Compress", &["x", "mask"], &["some"])
        .node("Greater", &["some", "one"], &["large"])
        .node("NonZero", &["large"], &["at"])
        .node("Reshape", &["at", "flat"], &["to"])
        .node("Compress", &["some", "large"], &["values"])
        .node("Neg", &["values"], &["less"])
        .node("ScatterElements", &["some", "to", "less"], &["y"])
        .output("y");
    for (x, y) in [
        (&[0.5f32, -2.0, 3.0][..], &[0.5f32, -3.0][..]),
        (&[0.5, -2.0, 0.25], &[0.5, 0.25]),
        (&[-1.0, -2.0], &[]),
    ] {
        assert_eq!(run(&m, &[floats(x)])[0].as_slice(), Some(y), "{x:?}");
    }
}

/// The list operators in the module of a model.
fn list_operators(m: &M) -> Vec<&'static str> {
    let text = format!("{:?}", m.import().unwrap_or_else(|e| panic!("{}", e.render())));
    let all = [ListOp::Of, ListOp::At, ListOp::Insert, ListOp::Erase, ListOp::Length, ListOp::Join];
    let names = all.iter().chain(&[ListOp::Split]).map(|op| op.name());
    names.filter(|name| text.contains(&format!("{name:?}"))).collect()
}

#[test]
fn what_is_known_of_sequences_needs_none_at_run_time() {
    let m = model()
        .opset(17)
        .input("x", [D::S("N"), D::N(5)])
        .ints("lengths", &[2, 3])
        .ints("one", &[1])
        .ints("first", &[-2])
        .node_with("SplitToSequence", &["x", "lengths"], &["s"], [int("axis", 1)])
        .node("SequenceAt", &["s", "one"], &["b"])
        .node("SequenceAt", &["s", "first"], &["a"])
        .node("SequenceInsert", &["s", "a", "one"], &["t"])
        .node("SequenceErase", &["t"], &["u"])
        .node_with("ConcatFromSequence", &["u"], &["y"], [int("axis", 1)])
        .node_with("ConcatFromSequence", &["u"], &["z"], [int("axis", 0), int("new_axis", 1)])
        .node("SequenceLength", &["t"], &["n"])
        .output("b")
        .output("y")
        .output("z")
        .output("n");
    assert_eq!(list_operators(&m), [""; 0]);
    let x = Tensor::from_slice(&[2, 5], &std::array::from_fn::<f32, 10, _>(|k| k as f32));
    let out = run(&m, &[x.expect("a tensor")]);
    assert_eq!(out[0].as_slice(), Some(&[2.0f32, 3.0, 4.0, 7.0, 8.0, 9.0][..]));
    assert_eq!(out[1].as_slice(), Some(&[0.0f32, 1.0, 0.0, 1.0, 5.0, 6.0, 5.0, 6.0][..]));
    assert_eq!((out[2].shape(), out[2].get_f64(5)), (&[2, 2, 2][..], 1.0));
    assert_eq!(out[3].as_slice(), Some(&[3i64][..]));
    // Equal parts, of which the last one is smaller, and single ones without their axis.
    let parts = |lengths: &[&str]| {
        model()
            .opset(17)
            .input("x", [D::N(5)])
            .ints("last", &[-1])
            .constant(tilewright_onnx::proto::TensorProto {
                name: "two".into(),
                data_type: DataType::Int64 as i32,
                int64_data: vec![2],
                ..Default::default()
            })
            .node_with("SplitToSequence", &[&["x"], lengths].concat(), &["s"], [int("keepdims", 0)])
            .node("SequenceAt", &["s", "last"], &["y"])
            .output("y")
    };
    for (lengths, shape) in [(&["two"][..], &[1usize][..]), (&[], &[])] {
        let m = parts(lengths);
        assert_eq!(list_operators(&m), [""; 0]);
        let out = run(&m, &[floats(&[1.0, 2.0, 3.0, 4.0, 5.0])]);
        assert_eq!((out[0].shape(), out[0].get_f64(0)), (shape, 5.0));
    }
}

#[test]
fn short_loops_that_collect_values_are_unrolled() {
    // Each iteration adds the value that is carried beside the list, which doubles.
    let body = loop_body()
        .input("l", ["L"])
        .input("v", ["V"])
        .node("SequenceInsert", &["l", "v"], &["l2"])
        .node_with("Concat", &["v", "v"], &["v2"], [int("axis", 0)])
        .node("Identity", &["go"], &["go2"])
        .output("go2")
        .output("l2")
        .output("v2");
    let m = model()
        .opset(17)
        .input("x", ["N"])
        .ints("trip", &[3])
        .node("SequenceEmpty", &[], &["none"])
        .node_with("Loop", &["trip", "", "none", "x"], &["all", "last"], [graph("body", body)])
        .node_with("ConcatFromSequence", &["all"], &["y"], [int("axis", 0)])
        .output("y")
        .output("last");
    assert_eq!(list_operators(&m), [""; 0]);
    let out = run(&m, &[floats(&[1.0, 2.0])]);
    assert_eq!((out[0].shape(), out[1].shape()), (&[14][..], &[16][..]));
    assert_eq!((out[0].get_f64(0), out[0].get_f64(13)), (1.0, 2.0));
    // A condition that ends it after two iterations, and one that data decide.
    let ended = |by: &str| {
        let body = loop_body()
            .input("l", ["L"])
            .node("SequenceInsert", &["l", "x"], &["l2"])
            .node("Less", &[by, "one"], &["go2"])
            .output("go2")
            .output("l2");
        model()
            .opset(17)
            .input("x", ["N"])
            .typed_input("data", DataType::Int64, [0i64; 0])
            .ints("trip", &[5])
            .ints("one", &[1])
            .node("SequenceEmpty", &[], &["none"])
            .node_with("Loop", &["trip", "", "none"], &["all"], [graph("body", body)])
            .node("SequenceLength", &["all"], &["n"])
            .output("n")
    };
    let m = ended("i");
    assert_eq!(list_operators(&m), [""; 0]);
    assert_eq!(run(&m, &[floats(&[1.0]), longs(&[], &[0])])[0].as_slice(), Some(&[2i64][..]));
    let m = ended("data");
    assert!(!list_operators(&m).is_empty());
    for (data, count) in [(0, 5i64), (1, 1)] {
        let out = run(&m, &[floats(&[1.0]), longs(&[], &[data])]);
        assert_eq!(out[0].as_slice(), Some(&[count][..]));
    }
    let at = model().opset(17).input("x", ["N"]).typed_input("at", DataType::Int64, [0i64; 0]);
    let m = at
        .ints("lengths", &[1])
        .node("SplitToSequence", &["x", "lengths"], &["s"])
        .node("SequenceAt", &["s", "at"], &["y"])
        .output("y");
    assert_eq!(list_operators(&m), [ListOp::At.name(), ListOp::Split.name()]);
}

/// `torch.repeat_interleave`, as the older exporter writes it: parts of one element, as many as there are, each as often
/// as another list says.
#[test]
fn parts_of_known_lengths_say_how_often_a_value_is_repeated() {
    let body = loop_body()
        .input("l", ["L"])
        .node("SequenceAt", &["times", "i"], &["k"])
        .node("SequenceAt", &["values", "i"], &["v"])
        .node("Expand", &["v", "k"], &["repeated"])
        .node("SequenceInsert", &["l", "repeated"], &["l2"])
        .node("Identity", &["go"], &["go2"])
        .output("go2")
        .output("l2");
    let m = model()
        .opset(17)
        .input("x", ["N"])
        .typed_input("n", DataType::Int64, ["N"])
        .node("Shape", &["n"], &["shape"])
        .node_with(
            "ConstantOfShape",
            &["shape"],
            &["ones"],
            [tensor("value", int_tensor(&[1], &[1]))],
        )
        .node("SplitToSequence", &["n", "ones"], &["times"])
        .node("SplitToSequence", &["x", "ones"], &["values"])
        .node("SequenceEmpty", &[], &["none"])
        .node_with("Loop", &["shape", "", "none"], &["all"], [graph("body", body)])
        .node_with("ConcatFromSequence", &["all"], &["y"], [int("axis", 0)])
        .output("y");
    let out = run(&m, &[floats(&[1.0, 2.0, 3.0]), longs(&[3], &[2, 0, 3])]);
    assert_eq!(out[0].as_slice(), Some(&[1.0f32, 1.0, 3.0, 3.0, 3.0][..]));
}

#[test]
fn sequences_and_optionals_inside_of_a_model() {
    let square = model().input("e", ["K"]).node("Mul", &["e", "e"], &["e2"]).output("e2");
    let m = model()
        .opset(17)
        .input("x", ["N"])
        .constant(tilewright_onnx::proto::TensorProto {
            name: "two".into(),
            data_type: DataType::Int64 as i32,
            int64_data: vec![2],
            ..Default::default()
        })
        .node_with("SplitToSequence", &["x", "two"], &["s"], [int("axis", 0)])
        .node("SequenceInsert", &["s", "x"], &["t"])
        .node_with("SequenceMap", &["t"], &["u"], [graph("body", square)])
        .node_with("ConcatFromSequence", &["u"], &["y"], [int("axis", 0)])
        .node("SequenceLength", &["u"], &["n"])
        .node("Optional", &["x"], &["o"])
        .node("OptionalHasElement", &["o"], &["has"])
        .node("OptionalGetElement", &["o"], &["got"])
        .output("y")
        .output("n")
        .output("has")
        .output("got");
    let out = run(&m, &[floats(&[1.0, 2.0, 3.0])]);
    assert_eq!(out[0].as_slice(), Some(&[1.0f32, 4.0, 9.0, 1.0, 4.0, 9.0][..]));
    assert_eq!(out[1].as_slice(), Some(&[3i64][..]));
    assert_eq!(out[2].bytes(), [1]);
}

#[test]
fn models_that_contradict_themselves() {
    let says = |m: &M, what: &str| {
        let said = m.refused();
        assert!(said.contains(what), "{said}");
    };
    let two = model().node("Neg", &["x"], &["a"]).output("a").output("a");
    let branches = [graph("then_branch", doubled()), graph("else_branch", two)];
    let m = with_condition().node_with("If", &["c"], &["y"], branches).output("y");
    says(&m, "the branches give 1 and 2 values");
    let number = model().node("Shape", &["x"], &["a"]).output("a");
    let branches = [graph("then_branch", doubled()), graph("else_branch", number)];
    let m = with_condition().node_with("If", &["c"], &["y"], branches).output("y");
    says(&m, "the branches give: a value that is float32 of 1 dimensions or int64 of 1");
    let m = with_condition()
        .node_with("If", &["x"], &["y"], [graph("then_branch", doubled())])
        .output("y");
    says(&m, "the attribute `else_branch` is missing");
    let m = with_condition().node_with("Loop", &["", "", "x"], &["y"], []).output("y");
    says(&m, "the attribute `body` is missing");
    let few = loop_body().output("go");
    let m = with_condition()
        .node_with("Loop", &["", "c", "x"], &["y"], [graph("body", few)])
        .output("y");
    says(&m, "the graph takes 2 inputs, and is given 3");
    let lost = model().node("Neg", &["nowhere"], &["a"]).output("a");
    let branches = [graph("then_branch", doubled()), graph("else_branch", lost)];
    let m = with_condition().node_with("If", &["c"], &["y"], branches).output("y");
    says(&m, "`nowhere`, is defined nowhere");
    let m = model()
        .input("x", ["N"])
        .node("SequenceConstruct", &["x"], &["s"])
        .node("Neg", &["s"], &["y"])
        .output("y");
    says(&m, "`s`, is a sequence or optional, and a tensor is needed");
}

/// Graphs inside of each other without end are refused, and do not exhaust the stack.
#[test]
fn endless_nesting_is_refused() {
    let mut inner = doubled();
    for _ in 0..500 {
        let branches = [graph("then_branch", inner), graph("else_branch", doubled())];
        inner = model().node_with("If", &["c"], &["y"], branches).output("y");
    }
    let m = with_condition()
        .node_with(
            "If",
            &["c"],
            &["y"],
            [graph("then_branch", inner), graph("else_branch", joined())],
        )
        .output("y");
    let said = m.refused();
    assert!(said.starts_with("error: "), "{said}");
}
