//! `compile_file`: programs of models that are kept for the next process.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prost::Message;
use tempfile::TempDir;
use tilewright_driver::options::Watcher;
use tilewright_driver::{Options, Sizes, Tensor, compile_file};
use tilewright_onnx::proto::{
    DataType, DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetId,
    TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};

/// `y = x @ w` with rows of an open number `N`; all of `w` are `weight`. Where data decide something,
/// the model also gives the positions of what is not zero in `y`.
fn write_model(path: &Path, weight: f32, decided: bool) {
    let (k, m) = (512i64, 600i64);
    let dim = |value| DimensionProto { value: Some(value) };
    let rows = dim(DimensionValue::Param("N".into()));
    let shape = TensorShapeProto { dim: vec![rows, dim(DimensionValue::Value(k))] };
    let ty = TensorTypeProto { elem_type: DataType::Float as i32, shape: Some(shape) };
    let ty = TypeProto { value: Some(TypeValue::Tensor(ty)) };
    let bytes: Vec<u8> = (0..k * m).flat_map(|_| weight.to_le_bytes()).collect();
    let graph = GraphProto {
        input: vec![ValueInfoProto { name: "x".into(), r#type: Some(ty) }],
        initializer: vec![TensorProto {
            name: "w".into(),
            dims: vec![k, m],
            data_type: DataType::Float as i32,
            raw_data: Some(bytes.into()),
            ..Default::default()
        }],
        node: [("MatMul", &["x", "w"][..], "y"), ("NonZero", &["y"], "at")]
            .into_iter()
            .take(1 + usize::from(decided))
            .map(|(op, input, output)| NodeProto {
                input: input.iter().map(|name| (*name).into()).collect(),
                output: vec![output.into()],
                op_type: op.into(),
                ..Default::default()
            })
            .collect(),
        output: ["y", "at"]
            .into_iter()
            .take(1 + usize::from(decided))
            .map(|name| ValueInfoProto { name: name.into(), r#type: None })
            .collect(),
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetId { domain: String::new(), version: 13 }],
        graph: Some(graph),
        ..Default::default()
    };
    std::fs::write(path, model.encode_to_vec()).expect("it can be written");
}

/// What a process of its own does, whose cache the environment names: it compiles the model for some
/// rows, none for an open number, and says what came of it.
#[test]
#[ignore = "the other tests of this file run it"]
fn process() {
    let given = |name: &str| std::env::var(name).expect("it is given");
    let stages = Arc::new(AtomicUsize::new(0));
    let heard = stages.clone();
    let progress: Watcher = Arc::new(move |_| {
        heard.fetch_add(1, Ordering::Relaxed);
    });
    let options = Options::new().threads(1).progress(Some(progress));
    let rows = given("ROWS").parse().ok();
    let sizes = rows.map_or_else(Sizes::new, |n| Sizes::new().dim("N", n));
    let executable = compile_file(given("MODEL"), &sizes, &options).expect("it compiles");
    let rows = rows.unwrap_or(3);
    let x = Tensor::from_slice(&[rows, 512], &vec![1.0f32; rows * 512]).expect("a tensor");
    let outputs = executable.run(&[x]).expect("it runs");
    let y = &outputs[0];
    if let Some(at) = outputs.get(1) {
        assert_eq!(at.shape(), [2, y.len()], "nothing is zero");
    }
    let first = y.as_slice::<f32>().expect("floats")[0];
    let made = stages.load(Ordering::Relaxed) > 0;
    println!("RESULT {:?} {first} {made}", y.shape());
}

#[test]
fn a_file_is_compiled_once_for_the_same_sizes() {
    let folder = TempDir::new().expect("a folder");
    let model = folder.path().join("product.onnx");
    let start = |rows: &str| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "kept::process", "--ignored", "--nocapture"]);
        command.env("TILEWRIGHT_CACHE", folder.path().join("cache"));
        command.env("MODEL", &model).env("ROWS", rows);
        let done = command.output().expect("it starts");
        let text = String::from_utf8(done.stdout).expect("text");
        let line = text.lines().find_map(|line| line.split_once("RESULT ")).map(|l| l.1.to_owned());
        line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&done.stderr)))
    };
    write_model(&model, 0.5, false);
    assert_eq!(start("2"), "[2, 600] 256 true");
    assert_eq!(start("2"), "[2, 600] 256 false");
    assert_eq!(start("4"), "[4, 600] 256 true");
    // A program for all sizes is kept as well.
    assert_eq!(start(""), "[3, 600] 256 true");
    assert_eq!(start(""), "[3, 600] 256 false");
    // Another model under the same name.
    write_model(&model, 0.25, false);
    assert_eq!(start("2"), "[2, 600] 128 true");
    assert_eq!(start("2"), "[2, 600] 128 false");
    // One that is several plans, because data decide a size.
    write_model(&model, 0.125, true);
    for rows in ["2", ""] {
        let shape = if rows.is_empty() { "[3, 600]" } else { "[2, 600]" };
        assert_eq!(start(rows), format!("{shape} 64 true"));
        assert_eq!(start(rows), format!("{shape} 64 false"));
    }
}
