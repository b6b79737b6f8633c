//! The library from outside: what its users call.

use std::sync::{Arc, Mutex};

use tilewright::ir::{Buffer, Expr, Param, Stmt, TensorFunc, Var};
use tilewright::pipeline::{Progress, Stage, run_stages};
use tilewright::{
    DType, Error, Module, ModuleExt, Options, Sizes, Tensor, compile, load, random::Random,
};

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");

fn options() -> Options {
    Options { threads: 2, cache: false, ..Options::default() }
}

fn digits(images: usize) -> Module {
    load(DIGITS, &Sizes::new().dim("N", images)).expect("the example is there")
}

#[test]
fn a_model_is_run_in_a_few_lines() {
    let executable = compile(&digits(3), &options()).expect("it compiles");
    let names = |ports: &[tilewright::ir::Port]| -> Vec<String> {
        ports.iter().map(|port| format!("{} {} {:?}", port.name, port.dtype, port.shape)).collect()
    };
    assert_eq!(names(executable.inputs()), ["image float32 [3, 1, 8, 8]"]);
    assert_eq!(
        names(executable.outputs()),
        ["logits float32 [3, 10]", "probabilities float32 [3, 10]"]
    );
    let images = Random::new(1).tensor(DType::F32, &[3, 1, 8, 8]).expect("a tensor");
    let outputs = executable.run(std::slice::from_ref(&images)).expect("it runs");
    let sums: Vec<f32> = outputs[1]
        .as_slice::<f32>()
        .expect("floats")
        .chunks(10)
        .map(|row| row.iter().sum())
        .collect();
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{sums:?}");
    // By name.
    let named = executable.run_named([("image", images)]).expect("it runs");
    assert!(named["logits"].same(&outputs[0]) && named["probabilities"].same(&outputs[1]));
}

#[test]
fn inputs_by_name_must_be_there_and_be_known() {
    let executable = compile(&digits(1), &options()).expect("it compiles");
    let image = Tensor::zeros(DType::F32, &[1, 1, 8, 8]).expect("a tensor");
    let error = executable.run_named([]).expect_err("nothing is given").render();
    assert_eq!(error, "error: no tensor was given for input `image`\n");
    let error = executable.run_named([("image", image.clone()), ("x", image)]);
    assert_eq!(
        error.expect_err("there is no x").render(),
        "error: there is no input `x`\nnote: the inputs are: `image`\n"
    );
}

#[test]
fn a_module_goes_to_text_and_back() {
    let module = digits(2);
    let again = Module::from_script(&module.to_script()).expect("what is printed parses");
    let run = |module: &Module| {
        let executable = compile(module, &options()).expect("it compiles");
        let image = Random::new(5).tensor(DType::F32, &[2, 1, 8, 8]).expect("a tensor");
        executable.run(&[image]).expect("it runs")
    };
    assert!(run(&module).iter().zip(run(&again)).all(|(a, b)| a.same(&b)));
    assert!(matches!(Module::from_onnx(DIGITS), Err(Error::Input(_))), "N is open");
    assert!(matches!(Module::from_onnx("/nowhere"), Err(Error::Io(_))));
}

#[test]
fn a_file_is_known_by_its_ending_or_its_content() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    };
    let none = Sizes::new();
    let script = "@T.prim_func\ndef f(A: T.Buffer((1,), \"float32\")):\n    A[0] = 1.0\n";
    for name in ["a.py", "a.tir", "a"] {
        assert!(load(file(name, script.as_bytes()), &none).is_ok(), "{name}");
    }
    let onnx = std::fs::read(DIGITS).expect("the example is there");
    for name in ["a.onnx", "A.ONNX", "a.model"] {
        assert!(load(file(name, &onnx), &none.clone().dim("N", 1)).is_ok(), "{name}");
    }
    assert!(matches!(load(file("b.py", &onnx), &none), Err(Error::Syntax(_))));
    assert!(matches!(load(file("b.onnx", script.as_bytes()), &none), Err(Error::Model(_))));
}

#[test]
fn progress_is_told_stage_by_stage_and_then_kernel_by_kernel() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let to = told.clone();
    let progress = Arc::new(move |p: Progress| to.lock().expect("no panic").push(p));
    compile(&digits(1), &Options { progress: Some(progress), ..options() }).expect("it compiles");
    let told = told.lock().expect("no panic");
    let stages: Vec<&str> = told.iter().take(4).map(|p| p.what).collect();
    assert_eq!(stages, Stage::ALL.map(Stage::name));
    let kernels: Vec<&Progress> = told[4..].iter().collect();
    let total = kernels[0].total;
    assert!(total > 3);
    let mut done: Vec<usize> = kernels.iter().map(|p| p.done).collect();
    done.sort();
    assert_eq!(done, (0..=total).collect::<Vec<_>>());
    assert!(kernels.iter().all(|p| p.what == "compile" && p.total == total));
}

#[test]
fn stages_can_be_left_out_and_stopped_at() {
    let stages = |options: &Options, until| {
        let mut seen = Vec::new();
        let module = run_stages(&digits(1), options, until, |stage, _| {
            seen.push(stage.name());
            Ok(())
        });
        module.expect("it goes through");
        seen
    };
    let none = Options { fuse: false, schedule: false, ..options() };
    assert_eq!(stages(&options(), Stage::Prepare), ["fuse", "prepare"]);
    assert_eq!(stages(&none, Stage::Lower), ["prepare", "lower"]);
}

/// A module with one function of one buffer.
fn one(buffer: &Buffer, body: Stmt) -> Module {
    let mut module = Module::new();
    module.insert("f", TensorFunc::new(vec![Param::tensor(buffer)], body));
    module
}

#[test]
fn what_cannot_be_compiled_is_an_error_of_the_right_kind() {
    let zero = Expr::float(0.0, DType::F32);
    let a = Buffer::with_extents("A", &[4, 4], DType::F32);
    let rank = one(&a, Stmt::store(&a, vec![Expr::i32(0)], zero.clone()));
    let error = compile(&rank, &options()).map(drop).expect_err("two axes, one index");
    assert!(matches!(error, Error::Malformed(_)), "{error}");

    let n = Var::index("n");
    let b = Buffer::new("B", vec![n.expr()], DType::F32);
    let open = one(&b, Stmt::store(&b, vec![Expr::i32(0)], zero.clone()));
    let error = compile(&open, &options()).map(drop).expect_err("n is open");
    assert!(matches!(error, Error::Input(_)), "{error}");

    let c = a.derive_storage(|d| d.axis_separators = vec![1]);
    let two = one(&c, Stmt::store(&c, vec![Expr::i32(0), Expr::i32(0)], zero));
    let error = compile(&two, &options()).map(drop).expect_err("two physical axes");
    assert!(matches!(error, Error::Unsupported(_)), "{error}");

    let error = compile(&Module::new(), &options()).map(drop).expect_err("nothing to run");
    assert_eq!(error.to_string(), "the module has no functions");

    let threads = Options { threads: 5000, ..options() };
    let error = compile(&digits(1), &threads).map(drop).expect_err("too many");
    assert!(error.to_string().starts_with("5000 threads"), "{error}");
}

#[test]
fn several_threads_compile_and_run_at_once() {
    std::thread::scope(|scope| {
        for images in 1..4 {
            scope.spawn(move || {
                let executable = compile(&digits(images), &options()).expect("it compiles");
                let image = Tensor::zeros(DType::F32, &[images, 1, 8, 8]).expect("a tensor");
                let outputs = executable.run(&[image]).expect("it runs");
                assert_eq!(outputs[0].shape(), [images, 10]);
            });
        }
    });
}
