//! The command line from outside: exit codes, what is on which stream, messages.

mod candidates;
mod compile;
mod device;
mod guide;
mod io_layout;
mod kept;
mod layout;
mod opt;
mod plan_html;
#[path = "../program/mod.rs"]
mod program;
mod run;
mod target;
mod tune;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use program::program;
use prost::Message;
use tempfile::TempDir;
use tilewright_onnx::proto::{
    DataType, DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetId,
    TensorShapeProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};

/// What came of a command.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// It ended with this code, or the test fails with what it said.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// This is part of its standard output.
    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.out.contains(part), "`{part}` is not in stdout: {}", self.out);
        self
    }

    /// This is part of its standard error.
    #[track_caller]
    pub(crate) fn complains(self, part: &str) -> Self {
        assert!(self.err.contains(part), "`{part}` is not in stderr: {}", self.err);
        self
    }
}

/// Runs the program on arguments, with this standard input.
pub(crate) fn tilewright_on<S: AsRef<OsStr>>(stdin: &str, arguments: &[S]) -> Done {
    let mut command = program();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    if let Some(mut pipe) = child.stdin.take() {
        // A program that does not read its input may be gone already.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let done = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints text");
    Done {
        code: done.status.code().expect("the program is not killed"),
        out: text(done.stdout),
        err: text(done.stderr),
    }
}

/// Runs the program on arguments.
pub(crate) fn tilewright<S: AsRef<OsStr>>(arguments: &[S]) -> Done {
    tilewright_on("", arguments)
}

/// A file of the digits example.
pub(crate) fn digits(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits").join(name);
    path.to_str().expect("the path of the project is text").to_owned()
}

/// A model that reshapes `x`, six floats, to `shape`, and adds `k` to it.
pub(crate) fn reshape(scratch: &Scratch) -> String {
    let value = |name: &str, dtype: DataType, extent: i64| {
        let dim = DimensionProto { value: Some(DimensionValue::Value(extent)) };
        let shape = Some(TensorShapeProto { dim: vec![dim] });
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
    let graph = GraphProto {
        input: vec![
            value("x", DataType::Float, 6),
            value("shape", DataType::Int64, 2),
            value("k", DataType::Float, 1),
        ],
        node: vec![node("Reshape", ["x", "shape"], "r"), node("Add", ["r", "k"], "y")],
        output: vec![ValueInfoProto { name: "y".into(), r#type: None }],
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetId { domain: String::new(), version: 13 }],
        graph: Some(graph),
        ..Default::default()
    };
    scratch.file("reshape.onnx", model.encode_to_vec())
}

pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("a temporary path is text").to_owned()
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }
}

#[test]
fn help_and_version_are_answers() {
    tilewright(&["--version"]).code(0).says("tilewright ");
    tilewright(&["--help"]).code(0).says("Usage: tilewright");
    tilewright(&["--help"]).code(0).says("TILEWRIGHT_CACHE");
    for command in ["run", "compile", "opt", "diff", "doctor", "ops", "completions", "man"] {
        tilewright(&["help", command]).code(0).says(&format!("Usage: tilewright {command}"));
    }
    tilewright(&["opt", "--help"]).code(0).says("lower_blocks ");
}

#[test]
fn wrong_arguments_are_refused() {
    tilewright::<&str>(&[]).code(2).complains("Usage: tilewright");
    tilewright(&["fly"]).code(2).complains("fly");
    tilewright(&["run"]).code(2).complains("<MODEL>");
    tilewright(&["run", "x.onnx", "--dim", "N"]).code(2).complains("expected NAME=SIZE");
    tilewright(&["run", "x.onnx", "--dim", "N=-1"]).code(2).complains("`-1` is not a size");
    tilewright(&["run", "x.onnx", "--rtol=-1"]).code(2).complains("not negative");
    tilewright(&["run", "x.onnx", "--input", "x"]).code(2).complains("expected NAME=VALUE");
    // Clap knows what is near.
    tilewright(&["verfy"]).code(2).complains("'verify'");
    let near = tilewright(&["opt", &digits("digits.onnx"), "--pass", "simplfy"]).code(2);
    near.complains("there is no pass `simplfy`").complains("did you mean `simplify`?");
    tilewright(&["run", &digits("digits.onnx"), "--layout", "auto"])
        .code(2)
        .complains("there is no layout `auto`")
        .complains("layouts are plan, none, ");
}

#[test]
fn doctor_finds_llvm() {
    let done = tilewright(&["doctor"]).code(0);
    let done = done.says("LLVM: ").says("CPU: ").says("cores: ").says("cc: ").says("cache");
    assert_eq!(done.err, "");
}

#[test]
fn doctor_says_what_is_missing() {
    let mut command = program();
    let done = command.arg("doctor").env("TILEWRIGHT_LLVM", "/nowhere/libLLVM.so").output();
    let done = done.expect("the program runs");
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        text.contains("LLVM: MISSING: cannot use the LLVM that TILEWRIGHT_LLVM names"),
        "{text}"
    );
}

#[test]
fn doctor_says_where_the_cache_is() {
    let scratch = Scratch::new();
    let cache = scratch.path("cache");
    let run = |arguments: &[&str]| {
        let done = program().args(arguments).env("TILEWRIGHT_CACHE", &cache).output();
        String::from_utf8(done.expect("the program runs").stdout).expect("text")
    };
    assert!(run(&["doctor"]).contains(&format!("cache: {cache}: 0 objects, 0.0 MiB")));
    run(&["run", &digits("digits.onnx"), "--dim", "N=1", "--no-cache"]);
    assert!(run(&["doctor"]).contains(": 0 objects"));
    run(&["run", &digits("digits.onnx"), "--dim", "N=1"]);
    assert!(!run(&["doctor"]).contains(": 0 objects"));
}

#[cfg(unix)]
#[test]
fn a_cache_that_others_may_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let cache = scratch.path("cache");
    std::fs::create_dir(&cache).expect("a directory can be made");
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&cache, mode).expect("the mode can be set");
    let run = |arguments: &[&str]| {
        let done = program().args(arguments).env("TILEWRIGHT_CACHE", &cache).output();
        let done = done.expect("the program runs");
        assert!(done.status.success());
        [done.stdout, done.stderr].map(|text| String::from_utf8(text).expect("text"))
    };
    let [_, said] = run(&["run", &digits("digits.onnx"), "--dim", "N=1"]);
    let why = "others may write it (mode 777)";
    assert!(said.contains("warning: ") && said.contains(&cache) && said.contains(why), "{said}");
    assert_eq!(said.matches("warning: ").count(), 1);
    let [said, _] = run(&["doctor"]);
    assert!(said.contains(&format!("cache: {cache}: NOT USED: {why}")), "{said}");
    assert_eq!(std::fs::read_dir(&cache).expect("it is there").count(), 0);
}

#[test]
fn a_cpu_that_is_not_there_is_refused_before_anything_is_done() {
    let scratch = Scratch::new();
    let out = scratch.path("x.o");
    let model = digits("digits.onnx");
    for (cpu, said) in [("znver44", "did you mean `znver4`?"), ("i386", "no CPU `i386`")] {
        if cfg!(target_arch = "x86_64") {
            let done = tilewright(&["run", &model, "--dim", "N=1", "--cpu", cpu]).code(2);
            done.complains(said);
        }
    }
    let nonsense = ["compile", &model, "--dim", "N=1", "--cpu", "nonsense\u{7}", "-o", &out];
    tilewright(&nonsense).code(2).complains("no CPU `nonsense\\u{7}`");
    assert!(!std::path::Path::new(&out).exists());
}

/// The deepest programs that are read go through every command without running out of stack.
#[test]
fn deep_programs_end_in_an_answer() {
    let scratch = Scratch::new();
    let path = scratch.path("deep.py");
    let sum = format!("{}A[0]{}", "(A[0] + ".repeat(380), ")".repeat(380));
    let choice = (0..180)
        .fold("A[0]".to_owned(), |inner, _| format!("T.if_then_else(A[0] < {inner}, A[0], A[1])"));
    let ifs: String =
        (0..90).map(|k| format!("{}if A[{}] < 9:\n", "    ".repeat(k + 1), k % 2)).collect();
    let body = format!("{}B[0] = A[0]\n", "    ".repeat(91));
    let lets: String = (0..400).map(|k| format!("    v{k}: T.int32 = A[0] + {k}\n")).collect();
    for text in [
        format!("    B[0] = {sum}\n"),
        format!("    B[0] = {choice}\n"),
        ifs + &body,
        lets + "    B[0] = v0\n",
    ] {
        let head =
            "@T.prim_func\ndef f(A: T.Buffer((2,), \"int32\"), B: T.Buffer((1,), \"int32\")):\n";
        std::fs::write(&path, head.to_owned() + &text).expect("it can be written");
        for command in [
            &["run", &path][..],
            &["opt", &path, "--pass", "lower"],
            &["diff", &path, &path],
            &["compile", &path, "--emit", "llvm-ir", "--opt-level", "0"],
        ] {
            let done = program().args(command).output().expect("the program runs");
            let code = done.status.code();
            assert!(matches!(code, Some(0 | 2)), "{command:?}: {code:?}: {}", text.len());
        }
    }
}

#[test]
fn shells_and_manuals_get_their_texts() {
    for shell in ["bash", "zsh", "fish"] {
        tilewright(&["completions", shell]).code(0).says("tilewright").says("verify");
    }
    tilewright(&["man"]).code(0).says(".TH tilewright 1").says("verify");
    tilewright(&["man", "run"]).code(0).says(".TH tilewright").says("expect");
    tilewright(&["man", "fly"]).code(2).complains("there is no command `fly`");
}

#[cfg(unix)]
#[test]
fn files_may_have_names_that_are_no_text() {
    use std::os::unix::ffi::OsStringExt;
    let scratch = Scratch::new();
    let odd = |name: &[u8]| {
        let directory = OsStr::new(&scratch.path("")).to_owned().into_encoded_bytes();
        std::ffi::OsString::from_vec([&directory, name].concat())
    };
    let (model, input, output) = (odd(b"m\xff.onnx"), odd(b"i\xfe.npz"), odd(b"o\xfd.npz"));
    std::fs::copy(digits("digits.onnx"), &model).expect("a file can be copied");
    std::fs::copy(digits("test_inputs.npz"), &input).expect("a file can be copied");
    let ran: [&OsStr; 6] =
        ["run".as_ref(), &model, "--inputs".as_ref(), &input, "--output".as_ref(), &output];
    tilewright(&ran).code(0);
    assert!(std::fs::metadata(&output).is_ok());
    let array = odd(b"a\xff.npy");
    let images =
        tilewright_driver::Tensor::from_slice(&[2, 1, 8, 8], &[0.5f32; 128]).expect("a tensor");
    tilewright_runtime::npy::write(&array, &images).expect("it can be written");
    let mut given = std::ffi::OsString::from("image=");
    given.push(&array);
    let ran: [&OsStr; 4] = ["run".as_ref(), &model, "--input".as_ref(), &given];
    tilewright(&ran).code(0).says("logits: float32 [2, 10]");
    let library = odd(b"lib\xff.so");
    let compiled: [&OsStr; 4] = ["compile".as_ref(), &model, "--output".as_ref(), &library];
    tilewright(&compiled).code(0);
    assert!(std::fs::metadata(&library).is_ok_and(|meta| meta.len() > 1000));
    let missing: [&OsStr; 2] = ["run".as_ref(), &odd(b"no\xff.onnx")];
    tilewright(&missing).code(2).complains("no");
}

#[test]
fn a_file_that_is_no_model_is_said_to_be_none() {
    let scratch = Scratch::new();
    let readme = scratch.file("README.md", "# It's a text\n\nIt isn't closed.\n");
    let binary = scratch.file("data", [0xff, 0, 1, 2]);
    for file in [&readme, &binary] {
        tilewright(&["run", file])
            .code(2)
            .complains("ends in neither `.onnx` nor `.py`, and is no model");
    }
}

/// A pipe without a writer, in the place of each file that a command reads: it is refused at once.
#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let scratch = Scratch::new();
    let pipe = |name: &str| {
        let path = scratch.path(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        path
    };
    let (model, module) = (digits("digits.onnx"), scratch.file("m.py", "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    for i in range(4):\n        A[i] = T.float32(0)\n"));
    let (onnx, script, array, other) = (pipe("p.onnx"), pipe("p.py"), pipe("p.npy"), pipe("p"));
    let input = format!("image={array}");
    let commands: [&[&str]; 13] = [
        &["run", &onnx],
        &["run", &script],
        &["compile", &onnx, "-o", &scratch.path("m.so")],
        &["plan", &other],
        &["opt", &script],
        &["opt", &module, "--schedule", &script],
        &["diff", &module, &script],
        &["verify", &script, &module],
        &["run", &model, "--inputs", &array],
        &["run", &model, "--input", &input],
        &["run", &model, "--expect", &array],
        &["plan", &model, "--profile", &other],
        &["tune", "--file", &scratch.path("measured"), "--import", &other],
    ];
    for command in commands {
        tilewright(command).code(2).complains("it is a pipe, not a plain file");
    }
    let library = scratch.path("m.so");
    let linked: [&[&str]; 2] = [
        &["run", &model, "--link", &other],
        &["compile", &model, "--link", &other, "-o", &library],
    ];
    for command in linked {
        tilewright(command).code(2).complains("it is not a plain file");
    }
    let log = pipe("tuning-journal");
    for (file, command) in
        [(&other, "run"), (&other, "tune"), (&log.replace("-journal", ""), "tune")]
    {
        scratch.file("tuning", "");
        let mut program = program();
        program.args([command, &model]).env("TILEWRIGHT_TUNING", file);
        let done = program.output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("it is a pipe, not a plain file"), "{command}: {said}");
        // A run goes on without measurements, and says so.
        let code = if command == "run" { 0 } else { 2 };
        assert_eq!(done.status.code(), Some(code), "{command}: {said}");
    }
    let done = program().arg("doctor").env("TILEWRIGHT_LLVM", &other).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    let is_said = ["not a file", "not a plain file"].iter().any(|text| said.contains(text));
    assert!(is_said, "{said}");
}

#[test]
fn ops_lists_name_oldest_and_newest_opset() {
    let done = tilewright(&["ops"]).code(0);
    assert_eq!(done.out, tilewright(&["ops", "--onnx"]).code(0).out);
    for line in done.out.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, min, max] = words[..] else { panic!("{line}") };
        let (min, max): (u32, u32) = (min.parse().expect(line), max.parse().expect(line));
        assert!((1..=max).contains(&min), "{line}");
    }
    for name in ["Conv", "MatMul", "Relu", "Softmax"] {
        let found = done.out.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(found, "{name} is not in {}", done.out);
    }
}

#[test]
fn a_pipe_that_closes_is_no_error() {
    let mut command = program();
    let mut child = command
        .args(["opt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The pipe is closed before it begins to write.
    drop(child.stdout.take());
    let text = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = T.float32(1)\n";
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("the program reads");
    drop(stdin);
    let done = child.wait_with_output().expect("the program ends");
    assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]));
}

/// The words of a command, as a shell splits it: what stands in single quotes is of one word.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (k, part) in command.split('\'').enumerate() {
        if k % 2 == 1 {
            words.last_mut().expect("there is a word").push_str(part);
            continue;
        }
        for (j, piece) in part.split(' ').enumerate() {
            if j > 0 {
                words.push(String::new());
            }
            words.last_mut().expect("there is a word").push_str(piece);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The commands of the README and of the page on commands, as they stand there, in a directory that
/// sees the examples.
#[test]
fn commands_of_the_pages_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = ["README.md", "docs/command-line.md"]
        .map(|page| std::fs::read_to_string(root.join(page)).expect("there is a page"))
        .concat();
    let scratch = Scratch::new();
    for part in ["digits", "layouts"] {
        let to = scratch.path(&format!("examples/{part}"));
        std::fs::create_dir_all(&to).expect("a directory can be made");
        for file in std::fs::read_dir(root.join("examples").join(part))
            .expect("there are examples")
            .flatten()
        {
            if file.path().is_file() {
                let to = Path::new(&to).join(file.file_name());
                std::fs::copy(file.path(), to).expect("a file can be copied");
            }
        }
    }
    let commands = text.lines().filter_map(|line| {
        let line = line.split(" #").next().unwrap_or(line);
        line.strip_prefix("cargo run --profile quick -- ")
            .or_else(|| line.strip_prefix("tilewright "))
    });
    let mut count = 0;
    for command in commands {
        let words = words(command);
        let mut program = program();
        program.args(&words).current_dir(scratch.path(""));
        let done = program.env("TILEWRIGHT_TUNING", scratch.path("measured")).output();
        let done = done.expect("the program runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "tilewright {command}: {said}");
        count += 1;
    }
    assert!(count >= 20, "{count} commands");
}
