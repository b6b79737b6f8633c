//! Constants and types that contradict an operator, and values that it needs.

use super::{node_says, says};
use crate::common::*;
use tilewright_ir::Tensor;
use tilewright_onnx::ImportOptions;
use tilewright_onnx::proto::{AttributeProto, DataType, TensorProto};

/// A node with the input `x` and constants.
fn with_constants(
    op: &str,
    opset: i64,
    x: &[i64],
    constants: &[&[i64]],
    attributes: &[AttributeProto],
) -> M {
    let names = ["p", "q", "r", "s"];
    let mut m = model().opset(opset).input("x", x.iter().copied());
    for (name, values) in names.iter().zip(constants) {
        m = m.ints(name, values);
    }
    let inputs: Vec<&str> = ["x"].into_iter().chain(names).take(1 + constants.len()).collect();
    m.node_with(op, &inputs, &["out"], attributes.to_vec()).output("out")
}

#[test]
fn constants_that_contradict_the_data() {
    let many: Vec<i64> = vec![1; 40];
    for (op, opset, x, constants, attributes, said) in [
        (
            "Reshape",
            13,
            &[2, 3][..],
            &[&[4, 2][..]][..],
            vec![],
            "a tensor of shape [2, 3] cannot take the shape [4, 2]",
        ),
        (
            "Reshape",
            13,
            &[2, 3],
            &[&[-1, -1]],
            vec![],
            "a tensor of shape [2, 3] cannot take the shape [-1, -1]",
        ),
        (
            "Reshape",
            13,
            &[2, 3],
            &[&[-1, 4]],
            vec![],
            "a tensor of shape [2, 3] cannot take the shape [-1, 4]",
        ),
        (
            "Reshape",
            13,
            &[2, 3],
            &[&[2, 3, 0]],
            vec![],
            "a tensor of shape [2, 3] cannot take the shape [2, 3, 0]",
        ),
        (
            "Reshape",
            13,
            &[2, 3],
            &[&[2, -3]],
            vec![],
            "a tensor of shape [2, 3] cannot take the shape [2, -3]",
        ),
        (
            "Reshape",
            14,
            &[2, 3],
            &[&[0, -1]],
            vec![int("allowzero", 1)],
            "a tensor of shape [2, 3] cannot take the shape [0, -1]",
        ),
        (
            "Reshape",
            13,
            &[1],
            &[&many],
            vec![],
            "a tensor of 40 dimensions is not supported; at most 32 are",
        ),
        (
            "Reshape",
            13,
            &[1],
            &[&[1 << 30, 1 << 30]],
            vec![],
            "a tensor of shape [1073741824, 1073741824] is too large",
        ),
        (
            "Expand",
            13,
            &[2, 3],
            &[&[4]],
            vec![],
            "expand: the shapes [[2, 3], [4]] do not broadcast together",
        ),
        ("Expand", 13, &[2, 3], &[&[-4, 1]], vec![], "the extent -4 is negative"),
        (
            "Expand",
            13,
            &[1],
            &[&many],
            vec![],
            "a tensor of 40 dimensions is not supported; at most 32 are",
        ),
        ("Tile", 13, &[2, 3], &[&[1]], vec![], "1 repeats for 2 axes"),
        (
            "Tile",
            13,
            &[2],
            &[&[1 << 62]],
            vec![],
            "a tensor of shape [4611686018427387904] is too large",
        ),
        ("Unsqueeze", 13, &[2], &[&[0, 0]], vec![], "axis 0 is given twice"),
        ("Slice", 13, &[2], &[&[0], &[1], &[0], &[0]], vec![], "a step is 0"),
        ("Gather", 13, &[2], &[&[0, 2]], vec![], "the index 2 at [1] lies outside of [-2, 1]"),
        (
            "GatherElements",
            13,
            &[2],
            &[&[-3]],
            vec![],
            "the index -3 at [0] lies outside of [-2, 1]",
        ),
        ("GatherND", 13, &[2], &[&[0]], vec![int("batch_dims", 1)], "attribute `batch_dims` is 1"),
        ("CumSum", 13, &[2], &[&[0, 0]], vec![], "the input `axis` must be one number"),
        ("ReduceSum", 13, &[2], &[&[1]], vec![], "there is no axis 1 in a tensor of 1 dimensions"),
        ("Pad", 13, &[2], &[&[1, 1], &[5]], vec![], "the data are float32, the value is int64"),
        (
            "Pad",
            13,
            &[2],
            &[&[1, 1]],
            vec![text("mode", "wrap")],
            "attribute `mode` = wrap is not supported",
        ),
        (
            "Split",
            18,
            &[2],
            &[&[1, 1]],
            vec![int("num_outputs", 1)],
            "both sizes and their number are given",
        ),
        ("Clip", 13, &[2], &[&[1]], vec![], "the input `min` must be one float32, but is int64[1]"),
        (
            "ScatterElements",
            13,
            &[2],
            &[&[1], &[1]],
            vec![],
            "the data are float32, the updates int64",
        ),
        ("Dropout", 13, &[2], &[&[1], &[1]], vec![], "training is not supported"),
        (
            "Conv",
            13,
            &[1, 1, 3],
            &[&[1], &[1]],
            vec![],
            "a window of 0 dimensions over 1 spatial dimensions",
        ),
        ("Gemm", 13, &[1, 1], &[&[1], &[1]], vec![], "the inputs are float32 and int64"),
        ("LayerNormalization", 17, &[2], &[&[1, 1]], vec![], "the inputs are float32 and int64"),
        ("RMSNormalization", 23, &[2], &[&[1, 1]], vec![], "the inputs are float32 and int64"),
        (
            "BatchNormalization",
            13,
            &[1, 1],
            &[&[1], &[1], &[1], &[1]],
            vec![],
            "scale, bias, mean and variance must be floating-point",
        ),
    ] {
        node_says(&with_constants(op, opset, x, constants, &attributes), said);
    }
    let scalar_list = model()
        .input("x", [2])
        .constant(TensorProto { name: "s".into(), ..int_tensor(&[1, 1], &[2]) })
        .node("Reshape", &["x", "s"], &["out"])
        .output("out");
    node_says(
        &scalar_list,
        "the input `shape` must be a list of integers, but is int64 of shape [1, 1]",
    );
    let m = model()
        .input("x", [2])
        .typed_input("s", DataType::Int64, [1])
        .node("Reshape", &["x", "s"], &["out"])
        .output("out");
    node_says(&m, "the input `shape` must be known when the model is imported");
    let m = model().input("x", [2]).node("Reshape", &["x"], &["out"]).output("out");
    node_says(&m, "the input `shape` is missing");
    let m = model()
        .input("x", [2])
        .ints("pads", &[1, 1])
        .floats("v", &[2], &[1.0, 2.0])
        .node("Pad", &["x", "pads", "v"], &["out"])
        .output("out");
    node_says(&m, "the input `constant_value` must be one number, but has the shape [2]");
}

#[test]
fn constants_that_follow_from_parameters() {
    let range = |values: [i64; 3]| {
        let mut m = model();
        for (name, v) in ["a", "b", "c"].iter().zip(values) {
            m = m.constant(TensorProto { name: (*name).into(), ..int_tensor(&[], &[v]) });
        }
        m.node("Range", &["a", "b", "c"], &["out"]).output("out")
    };
    node_says(&range([0, 10, 0]), "a range from 0 to 10 in steps of 0 is too long");
    node_says(&range([0, 1 << 40, 1]), "a range from 0 to 1099511627776 in steps of 1 is too long");
    let m = model()
        .ints("a", &[1])
        .floats("b", &[1], &[1.0])
        .node("Range", &["a", "b", "a"], &["out"])
        .output("out");
    node_says(&m, "start, limit and delta must have one type");
    let m = model().ints("a", &[1]).node("Range", &["a"], &["out"]).output("out");
    node_says(&m, "the input `limit` is missing");

    let filled = |shape: &[i64], attributes: &[AttributeProto]| {
        model()
            .ints("s", shape)
            .node_with("ConstantOfShape", &["s"], &["out"], attributes.to_vec())
            .output("out")
    };
    node_says(&filled(&[-1], &[]), "the extent -1 is negative");
    node_says(
        &filled(&[1 << 40, 1 << 40], &[]),
        "a tensor of shape [1099511627776, 1099511627776] is too large",
    );
    node_says(
        &filled(&[1 << 20, 1 << 20], &[]),
        "the constant float32[1048576, 1048576] exceeds the memory for constants that are computed at import",
    );
    node_says(
        &filled(&[1], &[tensor("value", int_tensor(&[2], &[1, 2]))]),
        "attribute `value` must be one number, but has the shape [2]",
    );
    node_says(&model().node("ConstantOfShape", &[], &["out"]).output("out"), "input 0 is missing");

    let hot = |depth: i64, values: &[i64]| {
        model()
            .typed_input("x", DataType::Int64, [2])
            .ints("d", &[depth])
            .ints("v", values)
            .node("OneHot", &["x", "d", "v"], &["out"])
            .output("out")
    };
    node_says(&hot(-1, &[0, 1]), "the depth is -1");
    node_says(&hot(3, &[0]), "the values must be two, but have the shape [1]");
    node_says(
        &model()
            .typed_input("x", DataType::Int64, [2])
            .ints("v", &[0, 1])
            .node("OneHot", &["x", "", "v"], &["out"])
            .output("out"),
        "the input `depth` is missing",
    );
}

#[test]
fn more_outputs_than_are_supported() {
    let m = model()
        .input("x", [1, 2])
        .input("s", [2])
        .node("BatchNormalization", &["x", "s", "s", "s", "s"], &["y", "mean"])
        .output("y");
    node_says(&m, "training is not supported: only one output is computed");
    let m = model().input("x", [1]).node("Relu", &["x"], &["y", "z"]).output("y");
    node_says(&m, "output 1 is not supported; only the first 1 are");
}

#[test]
fn as_many_inputs_and_outputs_as_are_sane() {
    let names = vec!["x"; 2000];
    let m = model().input("x", [1]).node("Sum", &names, &["y"]).output("y");
    node_says(&m, "2000 inputs are not supported; at most 1024 are");
    let outputs: Vec<String> = (0..2000).map(|i| format!("y{i}")).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let m = model().input("x", [2000]).node("Split", &["x"], &outputs).output("y0");
    node_says(&m, "2000 outputs are not supported; at most 1024 are");
    let m = model().input("x", [1]).node("Mean", &names[..100], &["y"]).output("y");
    node_says(&m, "the mean of 100 inputs is not supported; of 64 it is");
}

#[test]
fn tensors_that_are_too_large() {
    let m = model().input("x", [1 << 40, 1 << 40]).node("Relu", &["x"], &["y"]).output("y");
    says(&m, "input `x`: a tensor of shape [1099511627776, 1099511627776] is too large");
    let m = model().input("x", vec![1i64; 33]).node("Relu", &["x"], &["y"]).output("y");
    says(&m, "input `x` has 33 dimensions; at most 32 are supported");
}

/// A node with the input `x` and constants of any type, named in order.
fn with_tensors(
    op: &str,
    opset: i64,
    x: &[i64],
    constants: &[Option<TensorProto>],
    attributes: &[AttributeProto],
) -> M {
    let names = ["p", "q", "r", "s"];
    let mut m = model().opset(opset).input("x", x.iter().copied());
    let mut inputs = vec!["x"];
    for (name, t) in names.iter().zip(constants) {
        inputs.push(if t.is_some() { name } else { "" });
        if let Some(t) = t {
            m = m.constant(TensorProto { name: (*name).into(), ..t.clone() });
        }
    }
    m.node_with(op, &inputs, &["out"], attributes.to_vec()).output("out")
}

/// An 8-bit tensor of zeros.
fn bytes(dims: &[i64], data_type: DataType) -> TensorProto {
    let count = dims.iter().product::<i64>() as usize;
    TensorProto {
        dims: dims.to_vec(),
        data_type: data_type as i32,
        int32_data: vec![0; count],
        ..Default::default()
    }
}

#[test]
fn resizes_that_do_not_fit() {
    let floats = |values: &[f32]| Some(float_tensor(&[values.len() as i64], values));
    let ints = |values: &[i64]| Some(int_tensor(&[values.len() as i64], values));
    let up = || vec![None, floats(&[1.0, 2.0])];
    for (opset, constants, attributes, said) in [
        (13, vec![None, None], vec![], "neither scales nor sizes are given"),
        (
            13,
            vec![None, floats(&[1.0, 1.0]), ints(&[2, 3])],
            vec![],
            "both scales and sizes are given",
        ),
        (13, vec![None, floats(&[1.0])], vec![], "1 sizes or scales for 2 axes"),
        (13, vec![None, None, ints(&[1])], vec![], "1 sizes or scales for 2 axes"),
        (
            13,
            vec![None, floats(&[1.0, -2.0])],
            vec![],
            "the scales [1.0, -2.0] for the shape [2, 3]",
        ),
        (
            13,
            vec![None, floats(&[1.0, f32::NAN])],
            vec![],
            "the scales [1.0, NaN] for the shape [2, 3]",
        ),
        (
            13,
            vec![None, ints(&[1, 2])],
            vec![],
            "the input `scales` must be a list of numbers, but is int64 of shape [2]",
        ),
        (10, vec![], vec![], "the input `scales` is missing"),
        (
            10,
            vec![floats(&[0.5, 2.0])],
            vec![],
            "shrinking and growing at once is not supported before opset 11",
        ),
        (
            10,
            vec![floats(&[1.0, 2.0])],
            vec![text("mode", "cubic")],
            "attribute `mode` = cubic is not supported",
        ),
        (13, up(), vec![text("mode", "area")], "attribute `mode` = area is not supported"),
        (
            13,
            up(),
            vec![text("nearest_mode", "any")],
            "attribute `nearest_mode` = any is not supported",
        ),
        (
            13,
            up(),
            vec![text("coordinate_transformation_mode", "tf_crop_and_resize")],
            "the input `roi` is missing, or empty",
        ),
        (
            18,
            vec![None, None, ints(&[2, 3])],
            vec![text("keep_aspect_ratio_policy", "any")],
            "attribute `keep_aspect_ratio_policy` = any is not supported",
        ),
    ] {
        node_says(&with_tensors("Resize", opset, &[2, 3], &constants, &attributes), said);
    }
    let m = model()
        .input("x", [2, 3])
        .input("s", [2])
        .node("Resize", &["x", "", "s"], &["out"])
        .output("out");
    node_says(&m, "the input `scales` must be known when the model is imported");
}

#[test]
fn values_that_shapes_are_made_of() {
    let m = model()
        .input("x", [6])
        .typed_input("b", DataType::Int64, [2])
        .typed_input("a", DataType::Int64, [2])
        .ints("two", &[2])
        .node("Add", &["a", "b"], &["sum"])
        .node("Mul", &["sum", "two"], &["target"])
        .node("Reshape", &["x", "target"], &["out"])
        .output("out");
    // Without them, what the result is like is known when it runs.
    assert!(m.import_with(&ImportOptions::default()).is_ok());
    let refused = |options: ImportOptions| match m.import_with(&options) {
        Ok(_) => panic!("it was imported"),
        Err(e) => e.render(),
    };
    let given = |values: &[(&str, Tensor)]| ImportOptions {
        values: values.iter().map(|(n, t)| ((*n).to_owned(), t.clone())).collect(),
        ..Default::default()
    };
    let two = |a, b| Tensor::from_slice::<i64>(&[2], &[a, b]).expect("a tensor");
    // What is given is checked as it would be if it were computed.
    let said = refused(given(&[("a", two(1, 2)), ("b", two(1, 1))]));
    assert!(said.contains("cannot take the shape"), "{said}");
    let narrow = Tensor::from_slice(&[2], &[1i32, 2]).expect("a tensor");
    let said = refused(given(&[("a", narrow)]));
    assert!(said.contains("`a` has elements of type int64, and was given int32"), "{said}");
    let said = refused(given(&[("c", two(1, 2))]));
    assert!(said.contains("the model has no input `c`"), "{said}");
    // What takes too many steps is left to the run.
    let options = given(&[("a", two(1, 0)), ("b", two(0, 1))]);
    assert!(m.import_with(&ImportOptions { constant_steps: 1, ..options }).is_ok());
}

#[test]
fn quantisations_that_do_not_fit() {
    let one = || Some(float_tensor(&[], &[0.5]));
    let row = || Some(float_tensor(&[3], &[0.5, 1.0, 2.0]));
    let u8s = |dims: &[i64]| Some(bytes(dims, DataType::Uint8));
    let block = Some(float_tensor(&[2, 2], &[1.0; 4]));
    for (opset, constants, attributes, said) in [
        (13, vec![one(), u8s(&[2])], vec![], "the scale has the shape [], the zero point [2]"),
        (10, vec![row()], vec![], "a scale of shape [3] for data of shape [2, 3]"),
        (21, vec![block.clone()], vec![], "a scale of shape [2, 2] for data of shape [2, 3]"),
        (
            21,
            vec![block],
            vec![int("block_size", 1)],
            "a scale of shape [2, 2] for data of shape [2, 3] in blocks of 1 along axis 1",
        ),
        (
            21,
            vec![one(), u8s(&[])],
            vec![int("output_dtype", 3)],
            "attribute `output_dtype` is int8, but the zero point is uint8",
        ),
        (
            23,
            vec![one()],
            vec![int("precision", 10)],
            "attribute `precision` = float16 is not supported",
        ),
        (
            21,
            vec![one()],
            vec![int("output_dtype", 8)],
            "attribute `output_dtype`: element type STRING is not supported",
        ),
    ] {
        node_says(&with_tensors("QuantizeLinear", opset, &[2, 3], &constants, &attributes), said);
    }
    let m = model()
        .typed_input("x", DataType::Int8, [2])
        .floats("s", &[], &[1.0])
        .constant(TensorProto { name: "z".into(), ..bytes(&[], DataType::Uint8) })
        .node("DequantizeLinear", &["x", "s", "z"], &["out"])
        .output("out");
    node_says(&m, "the data are int8, the zero point is uint8");
    let m = model()
        .typed_input("x", DataType::Int8, [2, 2])
        .constant(TensorProto { name: "z".into(), ..bytes(&[], DataType::Uint8) })
        .node("MatMulInteger", &["x", "x", "z"], &["out"])
        .output("out");
    node_says(&m, "the data are int8, the zero point is uint8");
}

#[test]
fn inputs_that_do_not_fit_each_other() {
    let f = |dims: &[i64]| {
        let count = dims.iter().product::<i64>() as usize;
        Some(float_tensor(dims, &vec![1.0; count]))
    };
    let i = |values: &[i64]| Some(int_tensor(&[values.len() as i64], values));
    for (op, opset, x, constants, attributes, said) in [
        ("Tile", 13, &[2][..], vec![], vec![], "the input `repeats` is missing"),
        (
            "ScatterElements",
            18,
            &[3],
            vec![i(&[0, 1]), f(&[3])],
            vec![],
            "indices of shape [2] and updates of shape [3]",
        ),
        (
            "ScatterElements",
            16,
            &[3],
            vec![i(&[0]), f(&[1])],
            vec![text("reduction", "mean")],
            "attribute `reduction` = mean is not supported",
        ),
        (
            "ScatterND",
            13,
            &[3, 2],
            vec![i(&[0]), f(&[3])],
            vec![],
            "updates of shape [3] do not fit data of shape [3, 2] and indices of shape [1]",
        ),
        (
            "SpaceToDepth",
            28,
            &[1, 4],
            vec![],
            vec![int("blocksize", 2), text("mode", "CRD")],
            "float32[1, 4] is no image",
        ),
        (
            "SpaceToDepth",
            28,
            &[1, 1, 4, 3],
            vec![],
            vec![int("blocksize", 2), text("mode", "CRD")],
            "float32[1, 1, 4, 3] does not split into blocks of 2",
        ),
        (
            "SpaceToDepth",
            28,
            &[1, 1, 4, 4],
            vec![],
            vec![int("blocksize", 2), text("mode", "X")],
            "attribute `mode` = X is not supported",
        ),
        (
            "Trilu",
            14,
            &[2, 2],
            vec![f(&[1])],
            vec![],
            "the input `k` must be one int64, but is float32[1]",
        ),
        ("TopK", 13, &[3], vec![i(&[1, 2])], vec![], "the input `K` must be one number"),
        ("TopK", 13, &[3], vec![i(&[4])], vec![], "the input `K` does not fit 3 elements"),
        ("SwiGLU", 28, &[3], vec![f(&[1])], vec![], "float32[3] and float32[1] differ"),
        (
            "Einsum",
            13,
            &[3],
            vec![],
            vec![text("equation", "ij->i")],
            "einsum: `ij->i`: the term `ij` does not have 1 axes",
        ),
    ] {
        node_says(&with_tensors(op, opset, x, &constants, &attributes), said);
    }
    let m = model()
        .input("x", [2])
        .typed_input("k", DataType::Int64, Vec::<i64>::new())
        .opset(14)
        .node("Trilu", &["x", "k"], &["out"])
        .output("out");
    node_says(&m, "trilu: float32[2] has no matrices");
    let wide = TensorProto {
        name: "axes".into(),
        dims: vec![1],
        data_type: DataType::Uint64 as i32,
        uint64_data: vec![u64::MAX],
        ..Default::default()
    };
    let m = model()
        .input("x", [2])
        .constant(wide)
        .node("ReduceSum", &["x", "axes"], &["out"])
        .output("out");
    node_says(&m, "the input `axes` is out of range");
    let mut m = model().input("x", [1, 2]).input("s", [2]);
    m = m.typed_input("d", DataType::Double, [2]);
    let m = m.node("BatchNormalization", &["x", "s", "d", "s", "s"], &["out"]).output("out");
    node_says(&m, "scale and bias, and mean and variance, must have equal types");
}
