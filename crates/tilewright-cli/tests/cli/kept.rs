//! Programs that are kept for the next start.

use std::fs;
use std::path::Path;
use std::process::Output;

use prost::Message;
use tilewright_onnx::proto::{
    DataType, DimensionProto, DimensionValue, EXTERNAL, GraphProto, ModelProto, NodeProto,
    OperatorSetId, StringStringEntry, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    TypeValue, ValueInfoProto,
};

use super::{Scratch, program};

/// `y = x @ w`, with weights of more than a megabyte, whose last one is `last`.
fn product(scratch: &Scratch, last: f32) -> String {
    model(scratch, last, false)
}

/// The same, reshaped to what an input says where that is asked for.
fn model(scratch: &Scratch, last: f32, reshaped: bool) -> String {
    written(scratch, last, reshaped, None)
}

/// The same, with its weights in a file beside it where one is named.
fn written(scratch: &Scratch, last: f32, reshaped: bool, beside: Option<&str>) -> String {
    let (k, m) = (512i64, 600i64);
    let dim = |n: &i64| DimensionProto { value: Some(DimensionValue::Value(*n)) };
    let input = |name: &str, dtype: DataType, extents: &[i64]| {
        let shape = Some(TensorShapeProto { dim: extents.iter().map(dim).collect() });
        let ty = TensorTypeProto { elem_type: dtype as i32, shape };
        let ty = TypeProto { value: Some(TypeValue::Tensor(ty)) };
        ValueInfoProto { name: name.into(), r#type: Some(ty) }
    };
    let node = |op: &str, inputs: [&str; 2], output: &str| NodeProto {
        input: inputs.map(str::to_owned).into(),
        output: vec![output.into()],
        op_type: op.into(),
        ..Default::default()
    };
    let mut inputs = vec![input("x", DataType::Float, &[3, k])];
    let mut nodes = vec![node("MatMul", ["x", "w"], "y")];
    if reshaped {
        inputs.push(input("shape", DataType::Int64, &[2]));
        nodes.push(node("Reshape", ["y", "shape"], "z"));
    }
    let output = if reshaped { "z" } else { "y" };
    let mut weights: Vec<f32> = (0..k * m).map(|i| (i % 7) as f32 - 3.0).collect();
    *weights.last_mut().expect("many") = last;
    let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut tensor = TensorProto {
        name: "w".into(),
        dims: vec![k, m],
        data_type: DataType::Float as i32,
        ..Default::default()
    };
    match beside {
        None => tensor.raw_data = Some(bytes.into()),
        Some(file) => {
            scratch.file(file, &bytes);
            let location = StringStringEntry { key: "location".into(), value: file.into() };
            (tensor.external_data, tensor.data_location) = (vec![location], EXTERNAL);
        }
    }
    let graph = GraphProto {
        input: inputs,
        initializer: vec![tensor],
        node: nodes,
        output: vec![ValueInfoProto { name: output.into(), r#type: None }],
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetId { domain: String::new(), version: 13 }],
        graph: Some(graph),
        ..Default::default()
    };
    scratch.file("product.onnx", model.encode_to_vec())
}

/// A cache of its own.
struct Cache(Scratch);

impl Cache {
    fn new() -> Cache {
        Cache(Scratch::new())
    }

    fn run(&self, model: &str, more: &[&str]) -> (String, String) {
        self.command("run", model, more)
    }

    fn command(&self, name: &str, model: &str, more: &[&str]) -> (String, String) {
        let mut command = program();
        command.env("TILEWRIGHT_CACHE", self.0.path("cache"));
        let Output { status, stdout, stderr } =
            command.args([name, model]).args(more).output().expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let (out, err) = (text(stdout), text(stderr));
        assert!(status.success(), "{err}");
        (out, err)
    }

    /// The files of programs.
    fn programs(&self) -> Vec<String> {
        let Ok(list) = fs::read_dir(self.0.path("cache")) else { return Vec::new() };
        let names = list.map(|e| e.expect("an entry").path().to_str().expect("text").to_owned());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".twprog")).collect();
        names.sort();
        names
    }
}

/// Whether nothing was imported.
fn is_kept(err: &str) -> bool {
    err.contains("time: import 0.000 us")
}

const TIME: [&str; 3] = ["--time", "--seconds", "0.001"];

#[test]
fn the_second_start_takes_what_the_first_one_made() {
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let model = product(&scratch, 0.0);
    let (first, err) = cache.run(&model, &TIME);
    assert!(!is_kept(&err), "{err}");
    assert_eq!(cache.programs().len(), 1);
    let (second, err) = cache.run(&model, &TIME);
    assert!(is_kept(&err), "{err}");
    assert_eq!(first, second);
    // Other options are other programs, and nothing is kept where there is no cache.
    for more in
        [&["--threads", "1"][..], &["--layout", "none"], &["--unchecked"], &["--fast-math=1e-5"]]
    {
        let (other, err) = cache.run(&model, &[&TIME[..], more].concat());
        assert!(!is_kept(&err), "{more:?}: {err}");
        assert_eq!(first, other);
    }
    assert_eq!(cache.programs().len(), 5);
    let (_, err) = cache.run(&model, &[&TIME[..], &["--no-cache"]].concat());
    assert!(!is_kept(&err), "{err}");
}

#[test]
fn another_model_under_the_same_name_is_another_program() {
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let model = product(&scratch, 0.0);
    let (first, _) = cache.run(&model, &["--seed", "1"]);
    product(&scratch, 1000.0);
    let out = scratch.path("out.npz");
    let (_, err) = cache.run(&model, &[&TIME[..], &["--output", &out]].concat());
    assert!(!is_kept(&err), "{err}");
    product(&scratch, 0.0);
    let (again, err) = cache.run(&model, &[&TIME[..], &["--seed", "1"]].concat());
    assert!(is_kept(&err), "{err}");
    assert_eq!(first, again);
}

#[test]
fn what_was_damaged_is_not_used() {
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let model = product(&scratch, 0.5);
    let (first, _) = cache.run(&model, &[]);
    let [entry] = &cache.programs()[..] else { panic!("one program") };
    let whole = fs::read(entry).expect("it is there");
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x21;
        bytes
    };
    // The head, the header, the text, the code, the weights, the end.
    let places = [0, 20, 70, 200, 3000, whole.len() / 2, whole.len() - 100];
    let mut contents: Vec<Vec<u8>> = places.into_iter().map(changed).collect();
    for len in [0, 10, 64, 300, whole.len() / 2, whole.len() - 1] {
        contents.push(whole[..len].to_vec());
    }
    contents.push([&whole[..], b"more"].concat());
    for (k, bytes) in contents.iter().enumerate() {
        fs::write(entry, bytes).expect("it can be written");
        let (out, err) = cache.run(&model, &TIME);
        assert!(!is_kept(&err), "{k}: {err}");
        assert_eq!(out, first, "{k}");
        let (out, err) = cache.run(&model, &TIME);
        assert!(is_kept(&err), "{k}: {err}");
        assert_eq!(out, first, "{k}");
    }
    // Of other users it is not taken, nor through a link.
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(entry, fs::Permissions::from_mode(0o666)).expect("a mode can be set");
    let (_, err) = cache.run(&model, &TIME);
    assert!(!is_kept(&err) && err.contains("others may write it"), "{err}");
    let elsewhere = scratch.path("elsewhere");
    fs::rename(entry, &elsewhere).expect("it can be moved");
    std::os::unix::fs::symlink(&elsewhere, entry).expect("a link can be made");
    let (_, err) = cache.run(&model, &TIME);
    assert!(!is_kept(&err) && err.contains("it is a link"), "{err}");
    assert!(Path::new(entry).is_file());
}

#[test]
fn values_that_are_compiled_in_must_be_the_same() {
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let model = model(&scratch, 0.0, true);
    let shape = |values: &[i64; 2]| {
        let path = scratch.path("shape.npy");
        let value = tilewright_driver::Tensor::from_slice(&[2], values).expect("a tensor");
        tilewright_runtime::npy::write(&path, &value).expect("it can be written");
        format!("shape={path}")
    };
    for (values, kept) in [([3, 600], false), ([3, 600], true), ([2, 900], false), ([2, 900], true)]
    {
        let given = shape(&values);
        let (out, err) = cache.run(&model, &[&TIME[..], &["--input", &given]].concat());
        assert!(out.contains(&format!("z: float32 {values:?}")), "{out}");
        assert_eq!(is_kept(&err), kept, "{values:?}: {err}");
        assert!(err.contains("note: sizes depend on input `shape`"), "{err}");
    }
}

#[test]
fn weights_in_a_file_beside_the_model_must_be_the_same() {
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let external = |last: f32| written(&scratch, last, false, Some("weights.bin"));
    let (first, err) = cache.run(&external(0.0), &TIME);
    assert!(!is_kept(&err), "{err}");
    let (again, err) = cache.run(&external(0.0), &TIME);
    assert!(is_kept(&err) && first == again, "{err}");
    // The model's own file stays what it is.
    let (other, err) = cache.run(&external(1000.0), &TIME);
    assert!(!is_kept(&err), "{err}");
    let (again, err) = cache.run(&external(1000.0), &TIME);
    assert!(is_kept(&err) && other == again, "{err}");
    // What is not there is not made up for.
    fs::remove_file(scratch.path("weights.bin")).expect("it is there");
    let mut command = program();
    command.env("TILEWRIGHT_CACHE", cache.0.path("cache"));
    let done = command.args(["run", &scratch.path("product.onnx")]).output().expect("it starts");
    assert_eq!(done.status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn of_a_file_beside_the_model_only_what_is_used_counts() {
    use std::os::unix::fs::FileExt;
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let model = written(&scratch, 0.0, false, Some("weights.bin"));
    let file = fs::File::options().write(true).open(scratch.path("weights.bin")).expect("it opens");
    // Four tebibytes, of which all but the first one are a hole.
    let used = file.metadata().expect("it is there").len();
    file.set_len(4 << 40).expect("a sparse file");
    let (first, err) = cache.run(&model, &TIME);
    assert!(!is_kept(&err), "{err}");
    assert_eq!(cache.programs().len(), 1);
    file.write_all_at(&[1; 4], used).expect("it is written");
    let (again, err) = cache.run(&model, &TIME);
    assert!(is_kept(&err) && first == again, "{err}");
    file.write_all_at(&1000f32.to_le_bytes(), used - 4).expect("it is written");
    let (_, err) = cache.run(&model, &TIME);
    assert!(!is_kept(&err), "{err}");
}

#[test]
fn compile_takes_the_program_that_it_made_before() {
    let (scratch, cache) = (Scratch::new(), Cache::new());
    let model = product(&scratch, 0.0);
    let out = scratch.path("product.o");
    let compile = |more: &[&str]| {
        let (_, err) = cache.command("compile", &model, &[&["--output", &out], more].concat());
        let header = fs::read_to_string(scratch.path("product.h")).expect("a header");
        (err.contains("from the program that was kept"), header, fs::read(&out).expect("an object"))
    };
    let (kept, header, object) = compile(&[]);
    assert!(!kept);
    assert_eq!(compile(&[]), (true, header, object));
    // What `run` keeps is another program.
    assert!(!is_kept(&cache.run(&model, &TIME).1));
    for more in [&["--threads", "1"][..], &["--layout", "none"], &["--no-cache"]] {
        assert!(!compile(more).0, "{more:?}");
    }
    product(&scratch, 1.0);
    assert!(!compile(&[]).0);
}
