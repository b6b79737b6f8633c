//! What importing refuses, and what it says then.

use crate::common::*;
use tilewright_ir::Tensor;
use tilewright_onnx::proto::{
    AttributeProto, AttributeType, DataType, TensorProto, TypeProto, TypeValue, ValueInfoProto,
};
use tilewright_onnx::{ImportOptions, Model, import_bytes, import_path};

/// One node of an operator on inputs `x`, `y`, ... of the given shapes, in an opset.
fn single(op: &str, opset: i64, shapes: &[&[i64]], attributes: &[AttributeProto]) -> M {
    let names = ["x", "y", "z", "v", "w"];
    let mut m = model().opset(opset);
    for (name, shape) in names.iter().zip(shapes) {
        m = m.input(name, shape.iter().copied());
    }
    m.node_with(op, &names[..shapes.len()], &["out"], attributes.to_vec()).output("out")
}

/// Checks the first line of what is said.
fn says(m: &M, expected: &str) {
    let said = m.refused();
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(first, format!("error: `m.onnx`: {expected}"), "{said}");
}

/// Checks what is said about the only node.
fn node_says(m: &M, expected: &str) {
    let op = &m.graph.node[0].op_type;
    says(m, &format!("node 0 ({op}, opset {}): {expected}", m.opset));
}

#[test]
fn files_that_are_no_models() {
    let decode = |bytes: &'static [u8]| match Model::decode("f", bytes) {
        Ok(_) => "it was decoded".into(),
        Err(e) => e.to_string(),
    };
    assert_eq!(decode(b""), "`f`: the file is empty");
    assert_eq!(
        decode(b"not a model at all"),
        "`f`: the file is truncated, corrupt or no ONNX model: its structure breaks at byte 0 of 18"
    );
    // A varint where the graph should be.
    assert_eq!(decode(&[0x38, 1]), "`f`: the file is truncated, corrupt or no ONNX model");
    assert_eq!(decode(&[0x08, 8]), "`f`: the file has no graph: it is truncated or no ONNX model");
    assert_eq!(
        decode(&[0x08, 8, 0x3a, 0]),
        "`f`: the file does not say which version of ONNX's operators it uses"
    );
    assert_eq!(
        decode(&[0x08, 8, 0x3a, 0, 0x42, 2, 0x10, 13, 0x42, 2, 0x10, 14]),
        "`f`: the file gives the version of ONNX's operators twice"
    );
}

#[test]
fn every_truncation_is_an_error() {
    let m = model()
        .input("x", [2])
        .floats("w", &[2], &[1.0, 2.0])
        .node("Add", &["x", "w"], &["y"])
        .output("y");
    let bytes = m.bytes();
    assert!(m.import().is_ok());
    for end in 0..bytes.len() {
        let cut = bytes[..end].to_vec();
        assert!(import_bytes("m", cut, &ImportOptions::default()).is_err(), "{end}");
    }
}

#[test]
fn files_that_cannot_be_read() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let missing = import_path(folder.path().join("none.onnx"), &ImportOptions::default());
    let said = missing.map_or_else(|e| e.to_string(), |_| String::new());
    assert!(said.starts_with("cannot read `") && said.contains("none.onnx"), "{said}");
    let folder_itself = import_path(folder.path(), &ImportOptions::default());
    let said = folder_itself.map_or_else(|e| e.to_string(), |_| String::new());
    assert!(said.ends_with("it is not a plain file"), "{said}");
    Ok(())
}

#[test]
fn small_files_that_would_take_much_memory() {
    // Two bytes a node.
    let count = 1 << 20;
    let mut graph = Vec::new();
    for _ in 0..count {
        graph.extend([0x0a, 0]);
    }
    let mut file = vec![0x08, 8, 0x42, 2, 0x10, 13, 0x3a];
    let mut length = graph.len();
    while length >= 0x80 {
        file.push((length & 0x7f | 0x80) as u8);
        length >>= 7;
    }
    file.push(length as u8);
    file.extend(graph);
    let said = Model::decode("f", file).map_or_else(|e| e.to_string(), |_| "decoded".into());
    assert!(said.ends_with("it is corrupt or hostile"), "{said}");
}

#[test]
fn inputs_and_outputs_that_are_no_dense_tensors() {
    let typed = |value: Option<TypeValue>| {
        let mut m = single("Relu", 13, &[&[1]], &[]);
        let r#type = Some(TypeProto { value });
        m.graph.input[0] = ValueInfoProto { name: "x".into(), r#type };
        m
    };
    let only = "only dense tensors are supported";
    says(
        &typed(Some(TypeValue::Sequence(Default::default()))),
        &format!("input `x` is a sequence; {only}"),
    );
    says(&typed(Some(TypeValue::Map(Default::default()))), &format!("input `x` is a map; {only}"));
    says(
        &typed(Some(TypeValue::Opaque(Default::default()))),
        &format!("input `x` is opaque; {only}"),
    );
    says(
        &typed(Some(TypeValue::SparseTensor(Default::default()))),
        &format!("input `x` is a sparse tensor; {only}"),
    );
    says(
        &typed(Some(TypeValue::Optional(Default::default()))),
        &format!("input `x` is optional; {only}"),
    );
    says(&typed(None), "the type of input `x` is not given");
    let m = model()
        .typed_input("x", DataType::String, [1])
        .node("Identity", &["x"], &["y"])
        .output("y");
    says(&m, "input `x`: element type STRING is not supported");
    let m = model()
        .typed_input("x", DataType::Complex64, [1])
        .node("Identity", &["x"], &["y"])
        .output("y");
    says(&m, "input `x`: element type COMPLEX64 is not supported");
    assert!(m.refused().contains("note: supported element types: float32, float64, float16, "));
}

#[test]
fn graphs_that_contradict_themselves() {
    let relu = || single("Relu", 13, &[&[1]], &[]);
    says(&single("Relu", 13, &[&[1]], &[]).output("out"), "two outputs are named `out`");
    says(&relu().input("x", [2]), "two inputs are named `x`");
    says(&relu().input("", [2]), "an input has no name");
    says(&model().input("x", [1]).node("Relu", &["x"], &["y"]), "the graph has no outputs");
    says(&relu().output("gone"), "output `gone`: nothing computes it");
    says(
        &relu().floats("w", &[1], &[1.0]).floats("w", &[1], &[1.0]),
        "two constants are named `w`",
    );
    says(
        &relu().node("Abs", &["x"], &["out"]),
        "node 1 (Abs, opset 13): `out` is defined a second time",
    );
    says(
        &relu().node("Abs", &["out"], &["x"]),
        "node 1 (Abs, opset 13): `x` is defined a second time",
    );
    let m = model()
        .input("x", [1])
        .node("Relu", &["y"], &["z"])
        .node("Relu", &["x"], &["y"])
        .output("z");
    says(
        &m,
        "node 0 (Relu, opset 13): input 0, `y`, is computed only by node 1 (Relu, opset 13): the nodes are not in order, or form a cycle",
    );
    let m = model().input("x", [1]).node("Add", &["x", "z"], &["z"]).output("z");
    says(
        &m,
        "node 0 (Add, opset 13): input 1, `z`, is computed only by node 0 (Add, opset 13): the nodes are not in order, or form a cycle",
    );
    let m = model().input("x", [1]).node("Add", &["x", "nothing"], &["z"]).output("z");
    says(&m, "node 0 (Add, opset 13): input 1, `nothing`, is defined nowhere");
    let mut m = relu();
    m.graph.output[0] = value("out", DataType::Int64, [1]);
    says(&m, "output `out` is declared as int64, but is computed as float32");
    let broken = TensorProto { name: "w".into(), dims: vec![3], ..float_tensor(&[2], &[1.0, 2.0]) };
    let m = model().input("x", [1]).constant(broken).node("Add", &["x", "w"], &["y"]).output("y");
    says(
        &m,
        "node 0 (Add, opset 13): constant `w`: a tensor of shape [3] has 3 elements, but `float_data` has 2",
    );
}

#[test]
fn what_no_output_needs_is_not_looked_at() {
    let m = single("Relu", 13, &[&[1]], &[]).node("Unheard", &["x"], &["dead"]).node(
        "Add",
        &["dead", "nowhere"],
        &["dead too"],
    );
    assert!(m.import().is_ok());
}

#[test]
fn operators_that_are_not_supported() {
    let mut m = single("NonZero", 13, &[&[1]], &[]);
    m.graph.node[0].name = "n0".into();
    let said = m.refused();
    assert!(
        said.starts_with("error: `m.onnx`: node `n0` (NonZero, opset 13): the operator is not supported\nhelp: `tilewright ops` lists"),
        "{said}"
    );
    let m = model()
        .input("x", [1])
        .node("NonZero", &["x"], &["y"])
        .node("Unique", &["y"], &["z"])
        .node("NonZero", &["z"], &["v"])
        .output("v");
    assert_eq!(
        m.refused(),
        "error: `m.onnx`: node 0 (NonZero, opset 13): the operator is not supported\n\
         note: `NonZero` is also used by node 2\n\
         note: `Unique` is not supported either: node 1\n\
         help: `tilewright ops` lists those that are\n"
    );
    let mut m = single("FusedConv", 13, &[&[1]], &[]);
    m.graph.node[0].domain = "com.example".into();
    assert_eq!(
        m.refused(),
        "error: `m.onnx`: node 0 (com.example.FusedConv, opset 13): operators of the domain `com.example` are not supported\n\
         note: ONNX's own operators are, and some of `com.microsoft`\n"
    );
    node_says(
        &single("Mish", 13, &[&[1]], &[]),
        "the operator is not supported in this opset; it is in opsets 18 to 28",
    );
    node_says(
        &single("Scatter", 13, &[&[1], &[1], &[1]], &[]),
        "the operator is not supported in this opset; it is in opsets 9 to 10",
    );
    for opset in [8, 29, -1] {
        says(
            &single("Relu", opset, &[&[1]], &[]),
            &format!("opset {opset} is not supported; opsets 9 to 28 are"),
        );
    }
}

#[test]
fn operators_that_the_model_defines() {
    use prost::Message;
    use tilewright_onnx::proto::{FunctionProto, ModelProto, NodeProto, OperatorSetId};
    let with = |edit: &dyn Fn(&mut FunctionProto)| {
        let m = single("Mine", 13, &[&[1]], &[]);
        let mut proto = ModelProto::decode(m.bytes().as_slice()).unwrap_or_else(|e| panic!("{e}"));
        let inner = NodeProto {
            input: vec!["a".into()],
            output: vec!["b".into()],
            op_type: "Relu".into(),
            ..Default::default()
        };
        let mut function = FunctionProto {
            name: "Mine".into(),
            input: vec!["a".into()],
            output: vec!["b".into()],
            node: vec![inner],
            ..Default::default()
        };
        edit(&mut function);
        proto.functions = vec![function];
        import_bytes("m.onnx", proto.encode_to_vec(), &ImportOptions::default())
            .map_or_else(|e| e.to_string(), |_| "imported".into())
    };
    assert_eq!(with(&|_| ()), "imported");
    let newer = OperatorSetId { domain: String::new(), version: 14 };
    let messages = [
        with(&|f| f.opset_import = vec![newer.clone()]),
        with(&|f| f.input.clear()),
        with(&|f| f.node[0].op_type = "Mine".into()),
        with(&|f| f.node[0].op_type = "Other".into()),
    ];
    let cause = [
        "`m.onnx`: function `Mine`: it uses the operators of opset 14, the graph those of opset 13",
        "`m.onnx`: function `Mine`: it has 0 inputs, but is called with 1",
        "`m.onnx`: function `Mine`: its calls are nested too deeply, or form a cycle",
        "`m.onnx`: node `Mine/` (Other, opset 13): the operator is not supported",
    ];
    for (said, cause) in messages.iter().zip(cause) {
        assert!(said.starts_with("`m.onnx`: ") && said.ends_with(&cause[10..]), "{said}");
    }
}

#[test]
fn attributes_that_do_not_fit() {
    let s: &[&[i64]] = &[&[1, 2]];
    node_says(&single("Relu", 13, s, &[int("slope", 1)]), "attribute `slope` is not supported");
    node_says(
        &single("Softmax", 13, s, &[int("axis", 0), int("axis", 1)]),
        "attribute `axis` is given twice",
    );
    node_says(
        &single("Softmax", 13, s, &[float("axis", 1.0)]),
        "attribute `axis` is of kind Float, not Int",
    );
    let unknown = AttributeProto { r#type: 77, ..int("axis", 1) };
    node_says(&single("Softmax", 13, s, &[unknown]), "attribute `axis` is of kind 77, not Int");
    let reference = AttributeProto { ref_attr_name: "a".into(), ..int("axis", 1) };
    node_says(
        &single("Softmax", 13, s, &[reference]),
        "attribute `axis` refers to an attribute of a function, but stands in none",
    );
    let bytes = AttributeProto {
        name: "approximate".into(),
        r#type: AttributeType::String as i32,
        s: vec![0xff].into(),
        ..Default::default()
    };
    node_says(&single("Gelu", 20, s, &[bytes]), "attribute `approximate` is not valid UTF-8");
    // Files of the first version do not say the kind.
    let untyped = AttributeProto { r#type: 0, ..int("axis", 1) };
    assert!(single("Softmax", 13, s, &[untyped]).import().is_ok());
}

#[test]
fn values_of_attributes_that_are_not_supported() {
    let image: &[&[i64]] = &[&[1, 4, 8, 8]];
    let pool = ints("kernel_shape", &[2, 2]);
    for (op, opset, shapes, attributes, said) in [
        (
            "Gelu",
            20,
            image,
            vec![text("approximate", "x")],
            "attribute `approximate` = x is not supported",
        ),
        (
            "Mod",
            13,
            &[&[1][..], &[1]][..],
            vec![int("fmod", 2)],
            "attribute `fmod` = 2 is not supported",
        ),
        (
            "BitShift",
            13,
            &[&[1], &[1]],
            vec![text("direction", "UP")],
            "attribute `direction` = UP is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), text("auto_pad", "SAME")],
            "attribute `auto_pad` = SAME is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), int("storage_order", 2)],
            "attribute `storage_order` = 2 is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), ints("strides", &[0, 1])],
            "attribute `strides` = 0 is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), ints("pads", &[0, 0, -1, 0])],
            "attribute `pads` = -1 is not supported",
        ),
        (
            "LpPool",
            13,
            image,
            vec![pool.clone(), int("p", 0)],
            "attribute `p` = 0 is not supported",
        ),
        ("LpNormalization", 13, image, vec![int("p", 3)], "attribute `p` = 3 is not supported"),
        (
            "Pad",
            9,
            image,
            vec![ints("pads", &[0; 8]), text("mode", "wrap")],
            "attribute `mode` = wrap is not supported",
        ),
        (
            "DepthToSpace",
            13,
            image,
            vec![int("blocksize", 2), text("mode", "X")],
            "attribute `mode` = X is not supported",
        ),
        (
            "LayerNormalization",
            17,
            &[&[2, 3], &[3]],
            vec![int("stash_type", 10)],
            "attribute `stash_type` = 10 is not supported",
        ),
        (
            "Cast",
            13,
            image,
            vec![int("to", 8)],
            "attribute `to`: element type STRING is not supported",
        ),
        (
            "Cast",
            13,
            image,
            vec![int("to", 1 << 40)],
            "attribute `to`: there is no element type number -1",
        ),
        (
            "EyeLike",
            13,
            &[&[2, 2]],
            vec![int("dtype", 99)],
            "attribute `dtype`: there is no element type number 99",
        ),
        (
            "BatchNormalization",
            14,
            &[&[1, 2], &[2], &[2], &[2], &[2]],
            vec![int("training_mode", 1)],
            "training is not supported: only one output is computed",
        ),
    ] {
        node_says(&single(op, opset, shapes, &attributes), said);
    }
}

#[test]
fn parameters_that_contradict_each_other() {
    let image: &[&[i64]] = &[&[1, 4, 8, 8]];
    let conv: &[&[i64]] = &[&[1, 4, 8, 8], &[2, 4, 3, 3]];
    let pool = ints("kernel_shape", &[2, 2]);
    for (op, opset, shapes, attributes, said) in [
        ("Relu", 13, &[][..], vec![], "input 0 is missing"),
        (
            "Relu",
            13,
            &[&[1][..], &[1]],
            vec![],
            "there are 2 inputs, but the operator takes at most 1",
        ),
        (
            "Softmax",
            13,
            &[&[2, 3]],
            vec![int("axis", 2)],
            "there is no axis 2 in a tensor of 2 dimensions",
        ),
        (
            "Softmax",
            11,
            &[&[2, 3]],
            vec![int("axis", -3)],
            "there is no axis -3 in a tensor of 2 dimensions",
        ),
        (
            "Concat",
            13,
            &[&[2, 3], &[2, 4]],
            vec![int("axis", 0)],
            "float32[2, 3] and float32[2, 4] cannot be joined along axis 0",
        ),
        ("Concat", 13, &[&[2, 3]], vec![], "attribute `axis` is missing"),
        ("Sum", 13, &[], vec![], "there are no inputs"),
        ("Concat", 13, &[], vec![], "there are no inputs"),
        ("Transpose", 13, &[&[2, 3]], vec![ints("perm", &[0])], "the order [0] of 2 axes"),
        ("Transpose", 13, &[&[2, 3]], vec![ints("perm", &[0, 0])], "axis 0 is given twice"),
        (
            "Squeeze",
            11,
            &[&[2, 3]],
            vec![ints("axes", &[0])],
            "axis 0 of the shape [2, 3] is not 1 and cannot go",
        ),
        ("Squeeze", 11, &[&[2, 3], &[1]], vec![], "axes are no input before opset 13"),
        ("Unsqueeze", 11, &[&[2, 3]], vec![], "the axes are not given"),
        (
            "Unsqueeze",
            11,
            &[&[2, 3]],
            vec![ints("axes", &(0..32).collect::<Vec<_>>())],
            "a tensor of 34 dimensions is not supported; at most 32 are",
        ),
        ("ReduceMax", 13, &[&[2, 3], &[1]], vec![], "axes are no input before opset 18"),
        (
            "Split",
            11,
            &[&[2, 3]],
            vec![ints("split", &[1, 1])],
            "2 elements do not split into 1 outputs of the sizes [1, 1]",
        ),
        ("Split", 11, &[&[2, 3]], vec![ints("split", &[-1])], "the size -1 is negative"),
        (
            "Split",
            18,
            &[&[2, 3]],
            vec![int("num_outputs", 2)],
            "attribute `num_outputs` does not fit 1 outputs",
        ),
        ("Slice", 9, &[&[2, 3]], vec![ints("starts", &[0])], "`ends` is missing"),
        (
            "Slice",
            9,
            &[&[2, 3]],
            vec![ints("starts", &[0]), ints("ends", &[1, 2])],
            "starts, ends, axes and steps differ in length",
        ),
        (
            "Slice",
            9,
            &[&[2]],
            vec![ints("starts", &[0, 0]), ints("ends", &[1, 2])],
            "2 bounds for 1 axes",
        ),
        ("Pad", 9, &[&[2]], vec![ints("pads", &[1])], "1 amounts for 1 axes"),
        (
            "Pad",
            9,
            &[&[2]],
            vec![ints("pads", &[1, 1 << 40])],
            "the amounts [1, 1099511627776] are out of range",
        ),
        ("Pad", 9, &[&[2]], vec![], "`pads` is missing"),
        (
            "Conv",
            13,
            conv,
            vec![ints("kernel_shape", &[2, 2])],
            "attribute `kernel_shape` is [2, 2], but the weights have the shape [2, 4, 3, 3]",
        ),
        (
            "Conv",
            13,
            conv,
            vec![ints("strides", &[1])],
            "attribute `strides` has 1 numbers where 2 are needed",
        ),
        ("Conv", 13, conv, vec![int("group", 0)], "attribute `group` is 0"),
        (
            "Conv",
            13,
            &[&[1, 4, 8, 8], &[2, 4, 3]],
            vec![],
            "a window of 1 dimensions over 2 spatial dimensions",
        ),
        (
            "Conv",
            13,
            &[&[1, 4, 8, 8], &[2, 4, 3, 3], &[3]],
            vec![],
            "the bias is float32[3], where float32 of shape [2] is needed",
        ),
        (
            "ConvTranspose",
            13,
            &[&[1, 4, 8], &[4, 2, 3, 3]],
            vec![],
            "data of shape [1, 4, 8] and weights of shape [4, 2, 3, 3] do not fit",
        ),
        (
            "ConvTranspose",
            13,
            &[&[1, 4, 8, 8], &[4, 2, 3, 3]],
            vec![ints("output_shape", &[9])],
            "attribute `output_shape` is [9] for 2 spatial dimensions",
        ),
        (
            "ConvTranspose",
            13,
            &[&[1, 4, 8], &[4, 2, 3]],
            vec![ints("output_shape", &[1 << 40])],
            "an output of 1099511627776 cells cannot come about",
        ),
        ("Gemm", 9, &[&[2, 3], &[3, 2]], vec![], "input 2 is missing"),
        ("MaxPool", 13, &[&[1, 4]], vec![pool.clone()], "float32[1, 4] has no spatial dimensions"),
        ("MaxPool", 13, image, vec![], "attribute `kernel_shape` is missing"),
        (
            "BatchNormalization",
            13,
            &[&[1, 2], &[3], &[2], &[2], &[2]],
            vec![],
            "2 channels are normalised with 3 numbers",
        ),
        (
            "InstanceNormalization",
            13,
            &[&[1, 2, 3], &[3], &[2]],
            vec![],
            "scale and bias must be float32 of shape [2], but there is float32[3]",
        ),
        (
            "QuantizeLinear",
            13,
            &[&[2, 3], &[2]],
            vec![],
            "there is float32[2] where float32[3] is needed",
        ),
        (
            "GroupNormalization",
            21,
            &[&[1, 4, 3], &[4], &[4]],
            vec![],
            "attribute `num_groups` must be a number above 0",
        ),
        ("LRN", 13, image, vec![], "attribute `size` must be a number above 0"),
        ("DepthToSpace", 13, image, vec![], "attribute `blocksize` must be a number above 0"),
        ("Cast", 13, image, vec![], "attribute `to` is missing"),
        ("Gather", 13, &[&[2], &[1]], vec![], "the index is float32, not an integer"),
        ("GatherND", 13, &[&[2], &[1]], vec![], "the index is float32, not an integer"),
        ("Where", 13, &[&[1], &[1], &[1]], vec![], "the condition is float32, not bool"),
        ("EyeLike", 13, &[&[2]], vec![], "the input must be a matrix, but has the shape [2]"),
        (
            "ReverseSequence",
            13,
            &[&[2, 3], &[3]],
            vec![int("batch_axis", 0)],
            "batch axis 0 and time axis 0 of 2 axes",
        ),
        (
            "ReverseSequence",
            13,
            &[&[2, 3], &[3]],
            vec![],
            "the lengths must be int64 of shape [3], but are float32[3]",
        ),
        ("Constant", 13, &[], vec![], "no value is given"),
        (
            "Constant",
            13,
            &[],
            vec![int("value_int", 1), float("value_float", 1.0)],
            "several values are given",
        ),
        (
            "Constant",
            13,
            &[],
            vec![text("value_string", "x")],
            "attribute `value_string` is not supported",
        ),
        (
            "Constant",
            13,
            &[],
            vec![tensor("value", float_tensor(&[2], &[1.0]))],
            "attribute `value`: a tensor of shape [2] has 2 elements, but `float_data` has 1",
        ),
    ] {
        node_says(&single(op, opset, shapes, &attributes), said);
    }
}

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
            "attribute `coordinate_transformation_mode` = tf_crop_and_resize is not supported",
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
fn values_that_must_be_known() {
    let m = model()
        .input("x", [6])
        .typed_input("b", DataType::Int64, [2])
        .typed_input("a", DataType::Int64, [2])
        .ints("two", &[2])
        .node("Add", &["a", "b"], &["sum"])
        .node("Mul", &["sum", "two"], &["target"])
        .node("Reshape", &["x", "target"], &["out"])
        .output("out");
    let line =
        "node 2 (Reshape, opset 13): the input `shape` must be known when the model is imported";
    says(&m, line);
    let refused = |options: ImportOptions| match m.import_with(&options) {
        Ok(_) => panic!("it was imported"),
        Err(e) => e.render(),
    };
    let help = "help: give the values of these inputs, e.g. --input ";
    assert_eq!(
        refused(ImportOptions::default()),
        format!(
            "error: `m.onnx`: {line}\n\
             note: it depends on values that are not given: `a`, `b`\n{help}a=FILE.npy\n"
        )
    );
    let given = |values: &[(&str, Tensor)]| ImportOptions {
        values: values.iter().map(|(n, t)| ((*n).to_owned(), t.clone())).collect(),
        ..Default::default()
    };
    let two = |a, b| Tensor::from_slice::<i64>(&[2], &[a, b]).expect("a tensor");
    let said = refused(given(&[("a", two(1, 2))]));
    assert!(said.contains(&format!("not given: `b`\n{help}b=FILE.npy\n")), "{said}");
    // What is given is checked as it would be if it were computed.
    let said = refused(given(&[("a", two(1, 2)), ("b", two(1, 1))]));
    assert!(said.contains("cannot take the shape"), "{said}");
    let narrow = Tensor::from_slice(&[2], &[1i32, 2]).expect("a tensor");
    let said = refused(given(&[("a", narrow)]));
    assert!(said.contains("`a` has elements of type int64, and was given int32"), "{said}");
    let said = refused(given(&[("c", two(1, 2))]));
    assert!(said.contains("the model has no input `c`"), "{said}");
    let options = given(&[("a", two(1, 0)), ("b", two(0, 1))]);
    let said = refused(ImportOptions { constant_steps: 1, ..options });
    assert!(said.contains("in more steps than an import may take"), "{said}");
}

#[test]
fn quantisations_that_do_not_fit() {
    let one = || Some(float_tensor(&[], &[0.5]));
    let row = || Some(float_tensor(&[3], &[0.5, 1.0, 2.0]));
    let u8s = |dims: &[i64]| Some(bytes(dims, DataType::Uint8));
    let block = Some(float_tensor(&[2, 2], &[1.0; 4]));
    for (opset, constants, attributes, said) in [
        (13, vec![one(), u8s(&[1])], vec![], "the scale has the shape [], the zero point [1]"),
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
            vec![int("output_dtype", 21)],
            "attribute `output_dtype`: element type UINT4 is not supported",
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
            vec![text("reduction", "max")],
            "attribute `reduction` = max is not supported",
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
