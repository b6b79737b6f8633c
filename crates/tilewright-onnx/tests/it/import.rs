//! What importing gives: the shape of the module, what is folded, and what it computes.

use std::collections::BTreeMap;

use crate::common::*;
use tilewright_interp::run_module;
use tilewright_ir::{
    Attr, DType, Error, Function, GraphExpr, GraphFunc, Module, Result, Tensor, well_formed,
};
use tilewright_onnx::proto::{DataType, EXTERNAL, StringStringEntry, TensorProto};
use tilewright_onnx::{Dim, ImportOptions, Model, import_path};

/// The functions that `main` calls, in order.
fn calls(module: &Module) -> Vec<String> {
    let main = module.graph("main").unwrap_or_else(|e| panic!("{e}"));
    let called = main.bindings().filter_map(|b| match &b.value {
        GraphExpr::CallTir { func, .. } => Some(func.to_string()),
        _ => None,
    });
    called.collect()
}

/// The names in an attribute of a function.
fn names_in<'a>(main: &'a GraphFunc, key: &str) -> Vec<&'a str> {
    let Some(Attr::List(names)) = main.attrs.get(key) else { panic!("{main:?}") };
    names.iter().map(|n| if let Attr::Str(s) = n { &**s } else { "" }).collect()
}

/// Imports a model, checks the module, and runs it.
fn run(m: &M, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let module = m.import()?;
    well_formed::check_module(&module)?;
    run_module(&module, "main", inputs)
}

/// The only output as floats.
fn floats_of(m: &M, inputs: &[Tensor]) -> Vec<f64> {
    let outputs = run(m, inputs).unwrap_or_else(|e| panic!("{}", e.render()));
    (0..outputs[0].len()).map(|i| outputs[0].get_f64(i)).collect()
}

fn vector(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_last_version_of_a_domain_counts() {
    let file = |versions: [u8; 2]| {
        let [first, second] = versions;
        vec![0x08, 8, 0x3a, 0, 0x42, 2, 0x10, first, 0x42, 2, 0x10, second]
    };
    for (versions, expected) in [([13, 13], 13), ([11, 13], 13), ([13, 11], 11)] {
        let model = Model::decode("f", file(versions)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(model.opset(), expected);
    }
    // `ai.onnx` is another name of the same domain.
    let mut named = file([13, 11]);
    named[9] = 11;
    named.extend([0x0a, 7]);
    named.extend(b"ai.onnx");
    let model = Model::decode("f", named).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(model.opset(), 11);
}

#[test]
fn nodes_need_not_be_in_order() {
    // Also where only a graph inside of a node reads what stands behind it.
    let then = model().node("Neg", &["late"], &["t"]).output("t");
    let or = model().node("Abs", &["late"], &["o"]).output("o");
    let m = model()
        .input("x", [2])
        .constant(TensorProto {
            name: "c".into(),
            data_type: DataType::Bool as i32,
            int32_data: vec![1],
            ..Default::default()
        })
        .node_with("If", &["c"], &["z"], [graph("then_branch", then), graph("else_branch", or)])
        .node("Mul", &["late", "late"], &["late too"])
        .node("Add", &["x", "x"], &["late"])
        .node("Add", &["late too", "z"], &["y"])
        .output("y");
    assert_eq!(floats_of(&m, &[vector(&[1.0, 3.0])]), [2.0, 30.0]);
}

#[test]
fn the_module_has_the_names_of_the_model() -> Result<()> {
    let m = model()
        .input("the input/0", [2, 3])
        .floats("w", &[3], &[1.0, 2.0, 3.0])
        .node("Add", &["the input/0", "w"], &["a"])
        .node("Relu", &["a"], &["first:0"])
        .node("Add", &["first:0", "w"], &["second"])
        .output("first:0")
        .output("second");
    let module = m.import()?;
    well_formed::check_module(&module)?;
    let main = module.graph("main")?;
    assert_eq!(&**main.params[0].name(), "the input/0");
    assert_eq!(names_in(main, "output_names"), ["first:0", "second"]);
    // The two additions are one function.
    assert_eq!(calls(&module), ["add", "relu", "add"]);
    assert_eq!(module.functions.len(), 3);
    assert!(main.blocks.len() == 1 && main.blocks[0].dataflow);
    let x = sample(&[2, 3], 1);
    let out = run_module(&module, "main", std::slice::from_ref(&x))?;
    for i in 0..6 {
        let first = (x.get_f64(i) as f32 + (i % 3 + 1) as f32).max(0.0);
        assert_eq!(out[0].get_f64(i), f64::from(first));
        assert_eq!(out[1].get_f64(i), f64::from(first + (i % 3 + 1) as f32));
    }
    Ok(())
}

#[test]
fn functions_are_told_apart_by_their_parameters() -> Result<()> {
    let m = model()
        .input("x", [2, 3])
        .node_with("Softmax", &["x"], &["a"], [int("axis", 0)])
        .node_with("Softmax", &["x"], &["b"], [int("axis", 1)])
        .node_with("Softmax", &["x"], &["c"], [int("axis", -1)])
        .output("a")
        .output("b")
        .output("c");
    assert_eq!(calls(&m.import()?), ["softmax", "softmax_1", "copy"]);
    Ok(())
}

#[test]
fn outputs_may_be_inputs_constants_and_each_other() -> Result<()> {
    let m = model()
        .input("x", [2])
        .floats("c", &[2], &[5.0, 6.0])
        .node("Relu", &["x"], &["r"])
        .node("Identity", &["r"], &["same"])
        .output("x")
        .output("c")
        .output("r")
        .output("same");
    let x = vector(&[-1.0, 2.0]);
    let out = run(&m, std::slice::from_ref(&x))?;
    assert!(out[0].same(&x) && out[1].same(&vector(&[5.0, 6.0])));
    assert!(out[2].same(&vector(&[0.0, 2.0])) && out[3].same(&out[2]));
    Ok(())
}

#[test]
fn dimensions_come_from_options() -> Result<()> {
    let m = model()
        .input("x", [D::S("N"), D::N(3), D::N(-1)])
        .node("Shape", &["x"], &["s"])
        .output("s");
    let open = m.import()?;
    let main = open.graph("main")?;
    let shape = &main.params[0].ty().as_tensor().expect("a tensor").shape;
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    assert_eq!(shape, ["N", "T.int64(3)", "x_2"]);
    let dims: BTreeMap<String, usize> = [("N".into(), 2), ("x.2".into(), 7)].into();
    let module = m.import_with(&ImportOptions { dims, ..Default::default() })?;
    let out = run_module(&module, "main", &[sample(&[2, 3, 7], 1)])?;
    assert!(out[0].same(&Tensor::from_slice(&[3], &[2i64, 3, 7])?));
    let shapes = [("x".to_owned(), vec![1, 3, 5])].into();
    let module = m.import_with(&ImportOptions { shapes, ..Default::default() })?;
    assert_eq!(
        module.graph("main")?.params[0].ty().as_tensor().and_then(|t| t.const_shape()),
        Some(vec![1, 3, 5])
    );
    let dims = [("M".into(), 2)].into();
    let Err(Error::Input(d)) = m.import_with(&ImportOptions { dims, ..Default::default() }) else {
        panic!("a wrong key")
    };
    assert_eq!(d.message, "`m.onnx`: no dimension of the model is called `M`");
    Ok(())
}

#[test]
fn the_signature_is_read_without_an_import() -> Result<()> {
    let mut m = model()
        .input("x", [D::S("N"), D::N(3), D::N(0), D::S("?")])
        .floats("w", &[1], &[1.0])
        .input("w", [1])
        .node("Unheard", &["x"], &["y"])
        .output("y");
    m.graph.output.push(value("z", DataType::Bool, ["N"]));
    let s = Model::decode("m", m.bytes())?.signature()?;
    assert_eq!(s.inputs.len(), 1);
    assert_eq!((s.inputs[0].name.as_str(), s.inputs[0].dtype), ("x", Some(F32)));
    let dims = [Dim::Named("N".into()), Dim::Fixed(3), Dim::Open, Dim::Open];
    assert_eq!(s.inputs[0].dims.as_deref(), Some(&dims[..]));
    assert_eq!((s.outputs[0].dtype, &s.outputs[0].dims), (None, &None));
    assert_eq!(s.outputs[1].dims.as_deref(), Some(&[Dim::Named("N".into())][..]));
    Ok(())
}

#[test]
fn old_files_list_constants_among_their_inputs() -> Result<()> {
    let m = model()
        .input("x", [2])
        .input("w", [2])
        .floats("w", &[2], &[1.0, 2.0])
        .node("Add", &["x", "w"], &["y"])
        .output("y");
    assert_eq!(m.import()?.graph("main")?.params.len(), 1);
    assert_eq!(floats_of(&m, &[vector(&[1.0, 1.0])]), [2.0, 3.0]);
    Ok(())
}

#[test]
fn shape_arithmetic_disappears() -> Result<()> {
    // As exporters write `x.reshape(x.shape[0], -1)`, and a broadcast to a computed shape.
    let m = model()
        .input("x", [2, 3, 4])
        .node("Shape", &["x"], &["s"])
        .ints("zero", &[0])
        .ints("minus", &[-1])
        .ints("two", &[2])
        .node("Gather", &["s", "zero"], &["n"])
        .node_with("Concat", &["n", "minus"], &["flat"], [int("axis", 0)])
        .node("Reshape", &["x", "flat"], &["y"])
        .node("Mul", &["n", "two"], &["twice"])
        .node_with("Concat", &["twice", "n"], &["wide"], [int("axis", 0)])
        .node_with("Cast", &["wide"], &["float"], [int("to", 1)])
        .node("Sqrt", &["float"], &["root"])
        .node_with("Cast", &["root"], &["whole"], [int("to", 7)])
        .node_with("ConstantOfShape", &["whole"], &["c"], [tensor("value", int_tensor(&[1], &[9]))])
        .node("Expand", &["c", "wide"], &["e"])
        .node("ReduceSum", &["e"], &["sum"])
        .output("y")
        .output("sum");
    // ConstantOfShape([2, 1]) cannot be expanded to [4, 2].
    assert!(m.refused().contains("do not broadcast"), "{}", m.refused());
    let mut m = m;
    m.graph.initializer[2] = TensorProto { name: "two".into(), ..int_tensor(&[1], &[1]) };
    // [1, 1] to [2, 2] of nines.
    let module = m.import()?;
    assert_eq!(calls(&module), ["reshape", "copy"]);
    let x = sample(&[2, 3, 4], 1);
    let out = run_module(&module, "main", std::slice::from_ref(&x))?;
    assert!(out[0].same(&x.reshape(&[2, 12])?));
    assert!(out[1].same(&Tensor::from_slice(&[1, 1], &[36i64])?));
    Ok(())
}

#[test]
fn inputs_that_sizes_depend_on_become_constants() -> Result<()> {
    // `a` and `b` are found in two steps; `a` is data as well; `y` is only data.
    let m = model()
        .input("x", [2, 3])
        .typed_input("a", DataType::Int64, [2])
        .typed_input("b", DataType::Int64, [1])
        .input("y", [1, 1])
        .node("Add", &["a", "b"], &["target"])
        .node("Reshape", &["x", "a"], &["r"])
        .node("Expand", &["y", "target"], &["e"])
        .node("Neg", &["a"], &["n"])
        .output("r")
        .output("e")
        .output("n");
    let (x, y) = (sample(&[2, 3], 1), Tensor::from_slice(&[1, 1], &[7.0f32])?);
    let a = Tensor::from_slice(&[2], &[3i64, 2])?;
    let values = [
        ("x".to_owned(), x.clone()),
        ("a".to_owned(), a),
        ("b".to_owned(), Tensor::from_slice(&[1], &[1i64])?),
        ("y".to_owned(), y.clone()),
    ];
    let module = m.import_with(&ImportOptions { values: values.into(), ..Default::default() })?;
    well_formed::check_module(&module)?;
    let main = module.graph("main")?;
    let params: Vec<&str> = main.params.iter().map(|p| &**p.name()).collect();
    assert_eq!(params, ["x", "y"]);
    assert_eq!(names_in(main, "fixed_inputs"), ["a", "b"]);
    let out = run_module(&module, "main", &[x.clone(), y])?;
    assert!(out[0].same(&x.reshape(&[3, 2])?));
    assert!(out[1].same(&Tensor::from_slice(&[4, 3], &[7.0f32; 12])?));
    assert!(out[2].same(&Tensor::from_slice(&[2], &[-3i64, -2])?));
    Ok(())
}

#[test]
fn values_give_sizes_and_change_nothing_else() -> Result<()> {
    let m = model().input("x", ["N"]).node("Relu", &["x"], &["y"]).output("y");
    let values = [("x".to_owned(), vector(&[1.0, -1.0, 2.0]))].into();
    let module = m.import_with(&ImportOptions { values, ..Default::default() })?;
    let main = module.graph("main")?;
    assert_eq!((main.params.len(), main.attrs.contains_key("fixed_inputs")), (1, false));
    let out = run_module(&module, "main", &[vector(&[-1.0, 0.5, -2.0])])?;
    assert!(out[0].same(&vector(&[0.0, 0.5, 0.0])));
    Ok(())
}

#[test]
fn large_constants_are_left_to_the_run() -> Result<()> {
    let m = model()
        .input("x", [1000])
        .floats("c", &[1000], &vec![2.0; 1000])
        .node("Exp", &["c"], &["e"])
        .node("Add", &["x", "e"], &["y"])
        .output("y");
    assert_eq!(calls(&m.import()?), ["add"]);
    let options = ImportOptions { constant_steps: 999, ..Default::default() };
    let module = m.import_with(&options)?;
    assert_eq!(calls(&module), ["exp", "add"]);
    let x = sample(&[1000], 1);
    let (a, b) = (run_module(&module, "main", std::slice::from_ref(&x))?, run(&m, &[x])?);
    assert!(a[0].same(&b[0]));
    Ok(())
}

#[test]
fn constants_that_cannot_be_computed_are_the_models_fault() {
    let m =
        model().ints("a", &[1]).ints("zero", &[0]).node("Div", &["a", "zero"], &["y"]).output("y");
    let Err(Error::Model(d)) = m.import() else { panic!("it was imported") };
    let expected = "node 0 (Div, opset 13): the divisor at [0] is zero";
    assert!(d.message.contains(expected), "{}", d.message);
}

#[test]
fn batch_norm_goes_into_the_convolution() -> Result<()> {
    let parameters = |m: M| {
        m.floats("g", &[2], &[1.5, -0.5])
            .floats("b", &[2], &[0.25, 1.0])
            .floats("m", &[2], &[0.5, -1.0])
            .floats("v", &[2], &[2.0, 0.75])
    };
    let weights: Vec<f32> = (0..2 * 3 * 9).map(|v| (v % 7) as f32 / 5.0 - 0.5).collect();
    let base = |bias: bool| {
        let m = parameters(model()).input("x", [1, 3, 5, 7]).floats("w", &[2, 3, 3, 3], &weights);
        let m = m.floats("c", &[2], &[0.125, -0.75]);
        let inputs: &[&str] = if bias { &["x", "w", "c"] } else { &["x", "w"] };
        m.node_with("Conv", inputs, &["a"], [ints("pads", &[1, 1, 1, 1])])
    };
    let norm =
        |m: M, x: &str| m.node("BatchNormalization", &[x, "g", "b", "m", "v"], &["y"]).output("y");
    let x = sample(&[1, 3, 5, 7], 5);
    for bias in [false, true] {
        let folded = norm(base(bias), "a");
        assert_eq!(calls(&folded.import()?), ["conv"], "bias {bias}");
        // Another reader of the convolution's result keeps it as it is.
        let kept = norm(base(bias), "a").output("a");
        assert_eq!(calls(&kept.import()?), ["conv", "mul", "add"]);
        // So does one behind another name.
        let renamed = norm(base(bias).node("Identity", &["a"], &["i"]), "i").output("i");
        assert_eq!(calls(&renamed.import()?), ["conv", "mul", "add"]);
        let through = norm(base(bias).node("Dropout", &["a"], &["i"]), "i");
        assert_eq!(calls(&through.import()?), ["conv"]);
        let (a, b) =
            (run(&folded, std::slice::from_ref(&x))?, run(&kept, std::slice::from_ref(&x))?);
        assert!(distance(&a[0], &b[0]) < 2e-6, "{}", distance(&a[0], &b[0]));
        // Computed here from the convolution's own result.
        let (scale, shift) = (1.5 / (2.0f64 + 1e-5).sqrt(), 0.25);
        let expected = (b[1].get_f64(0) - 0.5) * scale + shift;
        assert!((a[0].get_f64(0) - expected).abs() < 1e-5);
    }
    let alone = parameters(model().input("x", [2, 2, 3]));
    let alone = norm(alone, "x");
    assert_eq!(calls(&alone.import()?), ["mul", "add"]);
    let x = sample(&[2, 2, 3], 1);
    let y = &run(&alone, std::slice::from_ref(&x))?[0];
    let expected = (x.get_f64(4) + 1.0) * (-0.5 / (0.75f64 + 1e-5).sqrt()) + 1.0;
    assert!((y.get_f64(4) - expected).abs() < 1e-6);
    Ok(())
}

#[test]
fn external_data_is_found_beside_the_model() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|e| Error::io(e.to_string()))?;
    let save = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).map_err(|e| Error::io(e.to_string()))
    };
    let outer = |name: &str, offset: &str, dims: &[i64]| TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: DataType::Float as i32,
        data_location: EXTERNAL,
        external_data: vec![
            StringStringEntry { key: "location".into(), value: "weights.bin".into() },
            StringStringEntry { key: "offset".into(), value: offset.into() },
        ],
        ..Default::default()
    };
    let m = model()
        .input("x", [2])
        .constant(outer("a", "0", &[2]))
        .constant(outer("b", "8", &[]))
        .node("Add", &["x", "a"], &["s"])
        .node("Mul", &["s", "b"], &["y"])
        .output("y");
    save("m.onnx", &m.bytes())?;
    save("weights.bin", Tensor::from_slice(&[3], &[1.0f32, 2.0, 10.0])?.bytes())?;
    let path = folder.path().join("m.onnx");
    let module = import_path(&path, &ImportOptions::default())?;
    let y = run_module(&module, "main", &[vector(&[1.0, 1.0])])?;
    assert!(y[0].same(&vector(&[20.0, 30.0])));
    save("weights.bin", &[0; 11])?;
    let Err(Error::Model(d)) = import_path(&path, &ImportOptions::default()) else {
        panic!("the weights are cut off")
    };
    let expected = "node 1 (Mul, opset 13): constant `b`: external data `weights.bin` is truncated: 4 bytes at offset 8 are wanted, the file has 11";
    assert!(d.message.ends_with(expected), "{}", d.message);
    // A model in memory has no place.
    let Err(Error::Input(_) | Error::Model(_)) = m.import() else { panic!("there is no file") };
    Ok(())
}

/// Runs one node on `float32` inputs and constants, in an opset.
fn node(
    op: &str,
    opset: i64,
    x: &Tensor,
    constants: &[&[i64]],
    attributes: &[tilewright_onnx::proto::AttributeProto],
) -> Tensor {
    let shape = x.shape().iter().map(|&d| d as i64);
    let mut m = model().opset(opset).input("x", shape);
    let names = ["p", "q", "r", "s"];
    for (name, values) in names.iter().zip(constants) {
        m = m.ints(name, values);
    }
    let inputs: Vec<&str> = ["x"].into_iter().chain(names).take(1 + constants.len()).collect();
    let m = m.node_with(op, &inputs, &["y"], attributes.to_vec()).output("y");
    run(&m, std::slice::from_ref(x))
        .unwrap_or_else(|e| panic!("{op} in opset {opset}: {}", e.render()))
        .swap_remove(0)
}

#[test]
fn parameters_moved_from_attributes_to_inputs() {
    let x = sample(&[2, 1, 6], 3);
    let same = |a: Tensor, b: Tensor| assert!(a.same(&b), "{a:?}\n{b:?}");
    for new in [13, 28] {
        same(
            node("Squeeze", 11, &x, &[], &[ints("axes", &[1])]),
            node("Squeeze", new, &x, &[&[-2]], &[]),
        );
        same(
            node("Unsqueeze", 11, &x, &[], &[ints("axes", &[0, 4])]),
            node("Unsqueeze", new, &x, &[&[0, -1]], &[]),
        );
        same(
            node("Split", 11, &x, &[], &[int("axis", 2), ints("split", &[6])]),
            node("Split", new, &x, &[&[6]], &[int("axis", 2)]),
        );
        same(
            node("ReduceSum", 11, &x, &[], &[ints("axes", &[2])]),
            node("ReduceSum", new, &x, &[&[2]], &[]),
        );
    }
    for (old, new) in [(9, 10), (9, 28)] {
        let attributes = [ints("axes", &[2]), ints("starts", &[-4]), ints("ends", &[100])];
        same(
            node("Slice", old, &x, &[], &attributes),
            node("Slice", new, &x, &[&[2], &[6], &[2]], &[]),
        );
    }
    let pads = [0, 0, 1, 0, 0, 2];
    same(node("Pad", 9, &x, &[], &[ints("pads", &pads)]), node("Pad", 11, &x, &[&pads], &[]));
    // Along some axes only, from opset 18 on.
    let m = model()
        .opset(18)
        .input("x", [2, 1, 6])
        .ints("amounts", &[1, 2])
        .ints("axes", &[-1])
        .node("Pad", &["x", "amounts", "", "axes"], &["y"])
        .output("y");
    let y = run(&m, std::slice::from_ref(&x)).unwrap_or_else(|e| panic!("{e}")).swap_remove(0);
    same(node("Pad", 9, &x, &[], &[ints("pads", &pads)]), y);
    for old in ["ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp"] {
        let keep = int("keepdims", 0);
        same(
            node(old, 17, &x, &[], &[ints("axes", &[0, 2]), keep.clone()]),
            node(old, 18, &x, &[&[0, 2]], &[keep]),
        );
    }
}

#[test]
fn softmax_changed_its_axes() {
    let x = sample(&[2, 3, 4], 7);
    // Since opset 13 along one axis, before that along all from the axis on.
    let along = node("Softmax", 13, &x, &[], &[int("axis", 1)]);
    let from = node("Softmax", 11, &x, &[], &[]);
    let sums = |t: &Tensor, from: usize, step: usize, count: usize| -> f64 {
        (0..count).map(|k| t.get_f64(from + k * step)).sum()
    };
    assert!((sums(&along, 5, 4, 2) + along.get_f64(1) - 1.0).abs() < 1e-6);
    assert!((sums(&from, 0, 1, 12) - 1.0).abs() < 1e-6);
    assert!((sums(&node("LogSoftmax", 11, &x, &[], &[int("axis", 0)]), 0, 1, 24)) < -24.0);
    let hard = node("Hardmax", 11, &x, &[], &[]);
    assert_eq!(sums(&hard, 0, 1, 12), 1.0);
    assert_eq!(sums(&node("Hardmax", 13, &x, &[], &[]), 0, 1, 24), 6.0);
}

#[test]
fn padding_is_found_from_its_rule() {
    let x = sample(&[1, 1, 5], 9);
    let kernel = ints("kernel_shape", &[2]);
    let pool = |rule: &str, stride: i64| {
        node(
            "MaxPool",
            12,
            &x,
            &[],
            &[kernel.clone(), text("auto_pad", rule), ints("strides", &[stride])],
        )
    };
    let explicit = |pads: &[i64], stride: i64| {
        node(
            "MaxPool",
            12,
            &x,
            &[],
            &[kernel.clone(), ints("pads", pads), ints("strides", &[stride])],
        )
    };
    assert!(pool("SAME_UPPER", 1).same(&explicit(&[0, 1], 1)));
    assert!(pool("SAME_LOWER", 1).same(&explicit(&[1, 0], 1)));
    assert!(pool("VALID", 1).same(&explicit(&[0, 0], 1)));
    assert!(pool("SAME_UPPER", 2).same(&explicit(&[0, 1], 2)));
    assert_eq!(pool("SAME_LOWER", 3).shape(), [1, 1, 2]);
}

#[test]
fn transposed_convolutions_take_an_output_shape() {
    let m = |extra: Vec<tilewright_onnx::proto::AttributeProto>| {
        let attributes: Vec<_> = [ints("strides", &[3])].into_iter().chain(extra).collect();
        model()
            .input("x", [1, 1, 3])
            .floats("w", &[1, 1, 3], &[1.0, 10.0, 100.0])
            .node_with("ConvTranspose", &["x", "w"], &["y"], attributes)
            .output("y")
    };
    let x = Tensor::from_slice(&[1, 1, 3], &[1.0f32, 2.0, 3.0]).unwrap_or_else(|e| panic!("{e}"));
    let run = |extra| floats_of(&m(extra), std::slice::from_ref(&x));
    let all = [1.0, 10.0, 100.0, 2.0, 20.0, 200.0, 3.0, 30.0, 300.0];
    assert_eq!(run(vec![]), all);
    assert_eq!(run(vec![ints("output_shape", &[11])]), [&all[..], &[0.0, 0.0]].concat());
    let upper = text("auto_pad", "SAME_UPPER");
    assert_eq!(run(vec![ints("output_shape", &[10]), upper.clone()]), [&[0.0], &all[..]].concat());
    assert_eq!(run(vec![ints("output_shape", &[8]), upper.clone()]), all[..8]);
    assert_eq!(run(vec![ints("output_shape", &[8])]), all[1..]);
    assert_eq!(run(vec![upper]), all);
    assert_eq!(run(vec![ints("pads", &[1, 2]), ints("output_padding", &[1])]), all[1..8]);
    let wide = [&[0.0], &all[..], &[0.0, 0.0]].concat();
    assert_eq!(run(vec![ints("pads", &[-1, -2])]), wide);
    assert_eq!(run(vec![ints("pads", &[2, -1])]), wide[3..11]);
}

#[test]
fn dropout_drops_nothing() -> Result<()> {
    let m = |opset| {
        model()
            .opset(opset)
            .input("x", [3])
            .node("Dropout", &["x"], &["y", "mask"])
            .output("y")
            .output("mask")
    };
    let x = vector(&[1.0, 2.0, 3.0]);
    for (opset, mask) in [(9, F32), (10, DType::BOOL), (13, DType::BOOL)] {
        let out = run(&m(opset), std::slice::from_ref(&x))?;
        assert!(out[0].same(&x));
        assert_eq!((out[1].dtype(), out[1].get_f64(2)), (mask, 1.0));
    }
    Ok(())
}

#[test]
fn bounds_may_be_data() {
    let m = model()
        .input("x", [4])
        .input("low", Vec::<i64>::new())
        .node("Clip", &["x", "low"], &["y"])
        .output("y");
    let low = Tensor::from_slice(&[], &[0.5f32]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(floats_of(&m, &[vector(&[-1.0, 0.0, 1.0, 2.0]), low]), [0.5, 0.5, 1.0, 2.0]);
    let x = vector(&[-9.0, 9.0]);
    assert_eq!(node("Clip", 9, &x, &[], &[float("max", 6.0)]).get_f64(1), 6.0);
}

#[test]
fn many_operands_are_combined_in_order() {
    let names = vec!["x"; 300];
    let m = model().input("x", [2]).node("Sum", &names, &["y"]).output("y");
    assert_eq!(floats_of(&m, &[vector(&[1.0, 0.5])]), [300.0, 150.0]);
    let one = model().input("x", [1]).node("Max", &["x"], &["y"]).output("y");
    assert_eq!(floats_of(&one, &[vector(&[4.0])]), [4.0]);
}

#[test]
fn tensors_without_elements_are_constants() -> Result<()> {
    let m = model()
        .input("x", [D::N(2), D::S("N")])
        .node("Relu", &["x"], &["r"])
        .node_with("Concat", &["r", "r"], &["y"], [int("axis", 1)])
        .output("y");
    let dims = [("N".to_owned(), 0)].into();
    let module = m.import_with(&ImportOptions { dims, ..Default::default() })?;
    let Some(Function::Graph(main)) = module.functions.get("main") else { panic!("{module:?}") };
    assert_eq!(main.bindings().count(), 1);
    Ok(())
}

#[test]
fn constants_of_every_form() {
    let of = |attribute| {
        let m = model().node_with("Constant", &[], &["y"], [attribute]).output("y");
        run(&m, &[]).unwrap_or_else(|e| panic!("{e}")).swap_remove(0)
    };
    use tilewright_onnx::proto::{AttributeProto, AttributeType};
    let kind = |name: &str, kind: AttributeType| AttributeProto {
        name: name.into(),
        r#type: kind as i32,
        f: 1.5,
        i: -3,
        floats: vec![1.0, 2.0],
        ints: vec![4, 5, 6],
        ..Default::default()
    };
    assert_eq!(of(kind("value_float", AttributeType::Float)).get_f64(0), 1.5);
    assert_eq!(of(kind("value_int", AttributeType::Int)).get_i128(0), -3);
    assert_eq!(of(kind("value_floats", AttributeType::Floats)).shape(), [2]);
    assert_eq!(of(kind("value_ints", AttributeType::Ints)).get_i128(2), 6);
    assert_eq!(of(tensor("value", float_tensor(&[1, 1], &[2.5]))).shape(), [1, 1]);
}

#[test]
fn models_of_old_opsets_are_read() {
    let m = model()
        .opset(7)
        .input("x", [1, 2, 1, 2])
        .floats("one", &[2], &[1.0, 1.0])
        .floats("zero", &[2], &[0.0, 0.0])
        .node_with(
            "Upsample",
            &["x"],
            &["u"],
            [floats("scales", &[1.0, 1.0, 2.0, 1.0]), text("mode", "nearest")],
        )
        .node_with(
            "BatchNormalization",
            &["u", "one", "zero", "zero", "one"],
            &["y"],
            [int("spatial", 1), float("epsilon", 0.0)],
        )
        .output("y");
    let x = Tensor::from_slice(&[1, 2, 1, 2], &[1.0f32, 2.0, 3.0, 4.0]).expect("a tensor");
    assert_eq!(floats_of(&m, &[x]), [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
    let m = model()
        .opset(8)
        .input("x", [1, 2])
        .floats("one", &[2], &[1.0, 1.0])
        .node_with(
            "BatchNormalization",
            &["x", "one", "one", "one", "one"],
            &["y"],
            [int("spatial", 0)],
        )
        .output("y");
    assert!(m.refused().contains("statistics of single elements are not supported"));
}

/// What was joined before is the first part of what it is joined to, so that layers which append copy nothing twice;
/// along another axis, or in another order, it is not.
#[test]
fn concatenations_that_append_begin_with_the_one_before() -> Result<()> {
    let along = |axis| [int("axis", axis)];
    let m = model()
        .input("x", [2, 3])
        .node("Relu", &["x"], &["a"])
        .node_with("Concat", &["x", "a"], &["c1"], along(1))
        .node("Neg", &["c1"], &["n"])
        .node_with("Concat", &["x", "a", "n"], &["c2"], along(1))
        .node("Abs", &["c2"], &["b"])
        .node_with("Concat", &["x", "a", "n", "b"], &["c3"], along(1))
        .node_with("Concat", &["a", "x", "n"], &["other"], along(1))
        .node_with("Concat", &["x", "a", "a"], &["rows"], along(0))
        .output("c3")
        .output("other")
        .output("rows");
    let module = m.import()?;
    let main = module.graph("main")?;
    let parts: Vec<usize> = main
        .bindings()
        .filter_map(|b| match &b.value {
            GraphExpr::CallTir { func, args, .. } if func.starts_with("concat") => Some(args.len()),
            _ => None,
        })
        .collect();
    assert_eq!(parts, [2, 2, 2, 3, 3]);
    let x = Tensor::from_slice(&[2, 3], &[1f32, -2., 3., -4., 5., -6.])?;
    let outputs = run(&m, &[x])?;
    let rows: Vec<f64> = (0..21).map(|i| outputs[0].get_f64(i)).collect();
    let first = [1., -2., 3., 1., 0., 3., -1., 2., -3., -1., 0., -3.];
    let absolute = [1., 2., 3., 1., 0., 3., 1., 2., 3.];
    assert_eq!(rows, [&first[..], &absolute].concat());
    Ok(())
}
