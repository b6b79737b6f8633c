//! What importing refuses, and what it says then: files and graphs here.

mod attributes;
mod constants;

use crate::common::*;
use tilewright_onnx::proto::{
    AttributeProto, DataType, TensorProto, TypeProto, TypeValue, ValueInfoProto,
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
    assert!(said.ends_with("it is a directory, not a plain file"), "{said}");
    // Larger than any message of protobuf.
    let large = folder.path().join("large.onnx");
    std::fs::File::create(&large)?.set_len(3 << 30)?;
    let said = import_path(&large, &ImportOptions::default());
    let said = said.map_or_else(|e| e.to_string(), |_| String::new());
    assert!(said.contains("a model has less than 2147483648"), "{said}");
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
    let only = "only dense tensors, sequences of them, and optional ones are supported";
    says(
        &typed(Some(TypeValue::Sequence(Default::default()))),
        "input `x`: the type of the elements is not given",
    );
    says(
        &typed(Some(TypeValue::Map(Default::default()))),
        "input `x`: it is a map whose keys are neither int64 nor strings",
    );
    says(
        &typed(Some(TypeValue::Opaque(Default::default()))),
        &format!("input `x`: it is opaque; {only}"),
    );
    says(
        &typed(Some(TypeValue::SparseTensor(Default::default()))),
        &format!("input `x`: it is a sparse tensor; {only}"),
    );
    says(
        &typed(Some(TypeValue::Optional(Default::default()))),
        "input `x`: the type of the elements is not given",
    );
    says(&typed(None), "the type of input `x` is not given");
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
        .node("Add", &["x", "z"], &["y"])
        .output("z");
    says(
        &m,
        "2 nodes form a cycle, in which each reads what the next one computes: node 0 (Relu, opset 13), node 1 (Add, opset 13)",
    );
    let m = model().input("x", [1]).node("Add", &["x", "z"], &["z"]).output("z");
    says(&m, "node 0 (Add, opset 13) reads what it computes");
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
    let mut m = single("ImageDecoder", 13, &[&[1]], &[]);
    m.graph.node[0].name = "n0".into();
    let said = m.refused();
    assert!(
        said.starts_with("error: `m.onnx`: node `n0` (ImageDecoder, opset 13): the operator is not supported\nhelp: `tilewright ops` lists"),
        "{said}"
    );
    let m = model()
        .input("x", [1])
        .node("ImageDecoder", &["x"], &["y"])
        .node("Gradient", &["y"], &["z"])
        .node("ImageDecoder", &["z"], &["v"])
        .output("v");
    assert_eq!(
        m.refused(),
        "error: `m.onnx`: node 0 (ImageDecoder, opset 13): the operator is not supported\n\
         note: `ImageDecoder` is also used by node 2\n\
         note: `Gradient` is not supported either: node 1\n\
         help: `tilewright ops` lists those that are\n"
    );
    let mut m = single("FusedConv", 13, &[&[1]], &[]);
    m.graph.node[0].domain = "com.example".into();
    assert_eq!(
        m.refused(),
        "error: `m.onnx`: node 0 (com.example.FusedConv, opset 13): operators of the domain `com.example` are not supported\n\
         note: ONNX's own operators are, and some of `ai.onnx.ml`, `ai.onnx.preview`, `com.microsoft`, \
         `com.microsoft.nchwc`\n"
    );
    node_says(
        &single("Mish", 13, &[&[1]], &[]),
        "the operator is not supported in this opset; it is in opsets 18 to 28",
    );
    node_says(
        &single("Scatter", 13, &[&[1], &[1], &[1]], &[]),
        "the operator is not supported in this opset; it is in opsets 9 to 10",
    );
    node_says(
        &single("Relu", 6, &[&[1]], &[]),
        "the operator is not supported in this opset; it is in opsets 7 to 28",
    );
    for opset in [29, -1] {
        says(
            &single("Relu", opset, &[&[1]], &[]),
            &format!("opset {opset} is not supported; opsets 1 to 28 are"),
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
    let older = OperatorSetId { domain: String::new(), version: 6 };
    let messages = [
        with(&|f| f.opset_import = vec![older.clone()]),
        with(&|f| f.input.clear()),
        with(&|f| f.node[0].op_type = "Mine".into()),
        with(&|f| f.node[0].op_type = "Other".into()),
    ];
    let cause = [
        "`m.onnx`: node `Mine/` (Relu, opset 6): the operator is not supported in this opset; it is in opsets 7 to 28",
        "`m.onnx`: function `Mine`: it has 0 inputs, but is called with 1",
        "`m.onnx`: function `Mine`: its calls are nested too deeply, or form a cycle",
        "`m.onnx`: node `Mine/` (Other, opset 13): the operator is not supported",
    ];
    for (said, cause) in messages.iter().zip(cause) {
        assert!(said.starts_with("`m.onnx`: ") && said.ends_with(&cause[10..]), "{said}");
    }
}
