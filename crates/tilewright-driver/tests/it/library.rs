//! The library from outside: what its users call.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tilewright_codegen::llvm::{Llvm, Target};
use tilewright_driver::options::Progress;
use tilewright_driver::passes;
use tilewright_driver::pipeline::{PipelineStage, run_stages};
use tilewright_driver::random::Random;
use tilewright_driver::{
    DType, Error, IoLayout, Module, Options, Session, Sizes, Tensor, compile, load, parse, print,
};
use tilewright_ir::{Buffer, Expr, Param, Remarks, Stmt, TensorFunc, Var};

use tilewright_schedule::table::{self, Example};
use tilewright_transform::lower::bounds;

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");

fn options() -> Options {
    Options::new().threads(2).cache(false)
}

fn digits(images: usize) -> Module {
    load(DIGITS, &Sizes::new().dim("N", images)).expect("the example is there")
}

#[test]
fn a_model_is_run_in_a_few_lines() {
    let executable = compile(&digits(3), &options()).expect("it compiles");
    let names = |ports: &[tilewright_runtime::OpenPort]| -> Vec<String> {
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

/// The model leaves its batch open: compiled once, it runs at every size, as one that is compiled
/// for the size does.
#[test]
fn a_size_that_is_open_may_be_another_in_every_run() {
    let open = load(DIGITS, &Sizes::new()).expect("it loads");
    let open = compile(&open, &options()).expect("it compiles");
    assert_eq!(open.inputs()[0].shape[0].to_string(), "N");
    for n in [1, 3, 2, 17, 3] {
        let images = Random::new(5).tensor(DType::F32, &[n, 1, 8, 8]).expect("a tensor");
        let got = open.run(std::slice::from_ref(&images)).expect("it runs");
        let fixed = compile(&digits(n), &options()).expect("it compiles");
        let expected = fixed.run(&[images]).expect("it runs");
        for (a, b) in got.iter().zip(&expected) {
            assert_eq!(a.shape(), b.shape());
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            let values = |t: &Tensor| t.as_slice::<f32>().expect("floats").to_vec();
            assert!(values(a).iter().zip(&values(b)).all(near), "{n}");
        }
    }
    let error = |shape: &[usize]| {
        let image = Tensor::zeros(DType::F32, shape).expect("a tensor");
        open.run(&[image]).expect_err("it does not fit").render()
    };
    assert_eq!(
        error(&[0, 1, 8, 8]),
        "error: input `image` has the shape [N, 1, 8, 8], and was given [0, 1, 8, 8]\n\
         note: `N`, dimension 0 of `image`, is 0; it must be at least 1 and at most 2^31 - 2^16\n"
    );
    assert!(error(&[2, 1, 8, 9]).contains("was given [2, 1, 8, 9]"));
}

#[test]
fn a_module_goes_to_text_and_back() {
    let module = digits(2);
    let again = parse(&print(&module), &Sizes::new()).expect("what is printed parses");
    let run = |module: &Module| {
        let executable = compile(module, &options()).expect("it compiles");
        let image = Random::new(5).tensor(DType::F32, &[2, 1, 8, 8]).expect("a tensor");
        executable.run(&[image]).expect("it runs")
    };
    assert!(run(&module).iter().zip(run(&again)).all(|(a, b)| a.same(&b)));
    assert!(matches!(load("/nowhere", &Sizes::new()), Err(Error::Io(_))));
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
    compile(&digits(1), &options().progress(Some(progress))).expect("it compiles");
    let told = told.lock().expect("no panic");
    // Transforms have to be allowed.
    let all = PipelineStage::all()
        .filter(|stage| *stage != PipelineStage::Winograd)
        .map(PipelineStage::name);
    let all: Vec<&str> = all.collect();
    let count = all.len();
    let stages: Vec<&str> = told.iter().take(count).map(|p| p.what).collect();
    assert_eq!(stages, all);
    let kernels: Vec<&Progress> = told[count..].iter().collect();
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
    let none = options().fuse(false).schedule(false);
    let first = ["layout", "begin", "use_assume"];
    let some = stages(&options(), PipelineStage::Legalize);
    assert_eq!(some, [&first[..], &["fuse", "legalize"]].concat());
    assert_eq!(stages(&none, PipelineStage::Lower), [&first[..], &["legalize", "lower"]].concat());
}

#[test]
fn assumptions_are_in_the_way_of_no_schedule() {
    let text = |assumed: &str| {
        format!(
            "@T.prim_func\n\
             def f(A: T.Buffer((16, 32), 'float32'), B: T.Buffer((16, 32), 'float32')):\n\
             {assumed}\n    for i, j in T.grid(16, 32):\n        with T.block('B'):\n            \
             vi, vj = T.axis.remap('SS', [i, j])\n            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
        )
    };
    let scheduled = |text: String| {
        let module = parse(&text, &Sizes::new()).expect("it reads");
        Session::new(options())
            .stages(&module, PipelineStage::Schedule)
            .map(|staged| staged.module)
            .map(|m| print(&m))
    };
    let plain = scheduled(text("")).expect("it goes through");
    let assumed = "    for i, j in T.grid(16, 32): T.assume(j < 30 or A[i, j] == T.float32(0))";
    assert_eq!(scheduled(text(assumed)).expect("it goes through"), plain);
    assert!(plain.contains("range(512)"), "{plain}");
    let error = scheduled(text("    T.assume(False)")).expect_err("it cannot hold");
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
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

    let threads = options().threads(5000);
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

/// The C function of `tests/cases/layout/flow_kernel_library.py`.
const KERNEL: &str = "
int blocked_matmul(const float *p, const float *b, float *q) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 12; j++)
            for (int k = 0; k < 8; k++) {
                float sum = 0;
                for (int l = 0; l < 12; l++)
                    sum += p[(i * 12 + l) * 8 + k] * b[l * 12 + j];
                q[(i * 12 + j) * 8 + k] = sum;
            }
    return 0;
}
";

#[test]
fn a_c_kernel_with_its_own_layout_is_linked_into_a_run() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("kernel.c"), KERNEL).expect("it is written");
    let cc = |arguments: &[&str], out: &str| {
        let mut command = std::process::Command::new("cc");
        command.args(arguments).arg("-o").arg(path(out)).arg(path("kernel.c"));
        assert!(command.status().expect("a C compiler").success());
    };
    cc(&["-c", "-O1", "-fPIC"], "kernel.o");
    cc(&["-shared", "-O1", "-fPIC"], "libkernel.so");

    let text = include_str!("../../../../tests/cases/layout/flow_kernel_library.py");
    let input = text.split("# ---- ").next().expect("the input");
    let module = parse(input, &Sizes::new()).expect("it reads");
    let mut flowed = module.clone();
    for name in ["lift_layout", "flow_layout"] {
        let pass = passes::find(name).expect("a pass");
        let run = passes::run(pass, &flowed, &Default::default(), &mut Default::default());
        flowed = run.expect("it runs");
    }
    let mut random = Random::new(3);
    let inputs: Vec<Tensor> = [[16, 12], [12, 12], [12, 12]]
        .map(|shape| random.tensor(DType::F32, &shape).expect("a tensor"))
        .to_vec();
    let [x, v, w] = [0, 1, 2].map(|k| inputs[k].as_slice::<f32>().expect("floats"));
    let matmul = |a: &[f32], b: &[f32]| -> Vec<f32> {
        let cell = |at: usize| (0..12).map(|l| a[at / 12 * 12 + l] * b[l * 12 + at % 12]).sum();
        (0..16 * 12).map(cell).collect()
    };
    let hidden: Vec<f32> = matmul(x, v).into_iter().map(|e| e.max(0.0)).collect();
    let expected = matmul(&hidden, w);
    for (module, file) in [(&module, "kernel.o"), (&flowed, "kernel.o"), (&flowed, "libkernel.so")]
    {
        let options = options().link(vec![path(file)]);
        let outputs =
            compile(module, &options).expect("it compiles").run(&inputs).expect("it runs");
        let found = outputs[0].as_slice::<f32>().expect("floats");
        let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(close, "{found:?} and {expected:?}");
    }

    let options = options().link(vec![path("missing.o")]);
    let error = compile(&flowed, &options).err().expect("there is no such file").render();
    assert!(error.contains("missing.o"), "{error}");
    std::fs::write(path("broken.so"), "no library").expect("it is written");
    let options = options.link(vec![path("broken.so")]);
    let error = compile(&flowed, &options).err().expect("it is no library").render();
    assert!(error.contains("cannot load") && error.contains("broken.so"), "{error}");
}

/// A gather: the indices are data.
const GATHER: &str = r#"
@T.prim_func
def gather(A: T.Buffer((10, 3), "float32"), at: T.Buffer((8,), "int32"), B: T.Buffer((8, 3), "float32")):
    for i in T.parallel(8):
        for j in range(3):
            B[i, j] = A[at[i], j]
"#;

#[test]
fn an_access_out_of_range_ends_the_run_with_its_place_and_indices() {
    let module = parse(GATHER, &Sizes::new()).expect("a module");
    let executable = compile(&module, &options()).expect("it compiles");
    let a: Vec<f32> = (0..30).map(|v| v as f32).collect();
    let a = Tensor::from_slice(&[10, 3], &a).expect("a tensor");
    let run = |at: [i32; 8]| {
        executable.run(&[a.clone(), Tensor::from_slice(&[8], &at).expect("a tensor")])
    };
    let outputs = run([9, 0, 1, 2, 3, 4, 5, 6]).expect("all are in range");
    assert_eq!(
        outputs[0].as_slice::<f32>().map(|v| v[..4].to_vec()),
        Some(vec![27.0, 28.0, 29.0, 0.0])
    );
    for bad in [10, -1, i32::MAX, i32::MIN] {
        for place in 0..8 {
            let mut at = [0; 8];
            at[place] = bad;
            let error = run(at).expect_err("it is out of range");
            assert!(matches!(error, Error::Execution(_)));
            let text = error.render();
            let said = format!("`A[{bad}, 0]` is out of range: axis 0 has extent 10");
            assert!(text.contains("`gather`") && text.contains(&said), "{text}");
            assert!(text.contains("B[i, j] = A[at[i], j]"), "the place is shown: {text}");
        }
    }
    // And afterwards it runs as before.
    assert!(run([0; 8]).is_ok());
}

#[test]
fn checks_are_left_out_where_they_are_not_wanted() {
    let module = parse(GATHER, &Sizes::new()).expect("a module");
    let checks = |unchecked: bool| {
        let options = options().unchecked(unchecked);
        let lowered = Session::new(options.clone())
            .stages(&module, PipelineStage::Lower)
            .map(|staged| staged.module)
            .expect("it lowers");
        lowered.tensors().map(|(_, f)| bounds::count(f)).sum::<usize>()
    };
    assert_eq!((checks(false), checks(true)), (1, 0));
}

#[test]
fn a_model_is_proved_under_every_layout() {
    for layout in ["none", "nhwc", "nchw8c", "nchw16c"] {
        for (fuse, schedule) in [(true, true), (false, true), (false, false)] {
            let mut module = digits(97);
            if layout != "none" {
                let policy = layout.parse().expect("a layout");
                let laid_out = tilewright_driver::layout::apply(
                    &module,
                    policy,
                    IoLayout::Logical,
                    &mut Remarks::new(),
                );
                module = laid_out.expect("it is laid out").0;
            }
            let options = options().fuse(fuse).schedule(schedule);
            let lowered = Session::new(options.clone())
                .stages(&module, PipelineStage::Lower)
                .map(|staged| staged.module);
            for (name, f) in lowered.expect("it lowers").tensors() {
                assert_eq!(bounds::count(f), 0, "{name} under {layout}");
            }
        }
    }
}

#[test]
fn code_for_another_machine_is_not_run() {
    let llvm = Llvm::get().expect("an LLVM");
    let host = llvm.host();
    let Target { triple, cpu, features, .. } = host.clone();
    let lacking = ["x86-64-v4", "sapphirerapids", "knl", "apple-m4", "neoverse-v2", "cortex-a55"];
    let other = lacking.into_iter().map(|cpu| Target::new(triple.clone(), cpu, ""));
    let mut other = other.filter(|target| llvm.check_target(target).is_ok());
    let have = host.known_features();
    if let Some(target) = other.find(|t| !t.known_features().missing_in(have).is_empty()) {
        let missing = target.known_features().missing_in(have);
        let options = options().target(target);
        let error = compile(&digits(1), &options).err().expect("this machine cannot run it");
        assert!(matches!(error, Error::Unsupported(_)));
        assert!(error.to_string().ends_with(&missing.join(", ")), "{error}");
    }
    for (cpu, features) in [("znver33", features.as_str()), (cpu.as_str(), "+nonsense")] {
        let target = Target::new(triple.clone(), cpu, features);
        let options = options().target(target);
        let error = compile(&digits(1), &options).err().expect("there is no such thing");
        assert!(matches!(error, Error::Input(_)), "{error}");
    }
}

/// An example of a primitive from its file case: the comment, the functions without what every module
/// has around them, and the script.
fn example(case: &str) -> Example {
    let (input, rest) = case.split_once("\n# ---- schedule\n").expect("a schedule");
    let (script, after) = rest.split_once("\n# ---- expected\n").expect("an expected module");
    let comments = input.lines().take_while(|line| line.starts_with('#'));
    let comments = comments.filter_map(|line| line.strip_prefix("# "));
    let sentences: Vec<&str> = comments.filter(|line| !line.starts_with("run:")).collect();
    Example {
        caption: sentences.join(" "),
        before: functions(input),
        script: script.trim().to_owned(),
        after: functions(after),
    }
}

/// The functions of a module as text.
fn functions(module: &str) -> String {
    let around = ["from tvm", "@I.ir_module", "class Module", "#"];
    let indent = if module.contains("class Module") { "    " } else { "" };
    let lines = module.lines().filter(|line| !around.iter().any(|start| line.starts_with(start)));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
    lines.join("\n").trim().to_owned()
}

#[test]
fn the_pages_of_passes_and_primitives_are_what_they_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example_of = |name: &str| {
        let case = root.join(format!("tests/cases/primitives/examples/{name}.py"));
        Some(example(&std::fs::read_to_string(case).ok()?))
    };
    // These look for what others change.
    let finders = ["get_block", "get_loops", "get_inner_loops", "work_on"];
    for p in table::signatures() {
        let has_one = example_of(p.name).is_some();
        assert!(has_one != finders.contains(&p.name), "an example of `{}`: {has_one}", p.name);
    }
    for (name, page) in [("passes", passes::page()), ("primitives", table::page(&example_of))] {
        let path = root.join(format!("docs/{name}.md"));
        if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
            std::fs::write(&path, &page).expect("the page is written");
        }
        let found = std::fs::read_to_string(&path).expect("the page is there");
        assert!(found == page, "docs/{name}.md is old; UPDATE_EXPECT=1 writes it");
    }
}

/// What begins in a capital letter, as Python's documentation does.
fn sentence(text: &str) -> String {
    let rest = text.get(1..).unwrap_or_default();
    format!("{}{rest}", text.get(..1).unwrap_or_default().to_uppercase())
}

/// The definitions of a stub of the Python package whose text contains `mark`, by name.
fn stubs<'a>(text: &'a str, define: &str, mark: &str) -> HashMap<&'a str, &'a str> {
    let parts = text.split(define).skip(1).filter(|part| part.contains(mark));
    parts.filter_map(|part| Some((part.split_once('(')?.0, part))).collect()
}

/// What is not in the stub of a pass or primitive.
fn missing(stub: Option<&&str>, lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| stub.is_none_or(|stub| !stub.contains(line))).collect()
}

#[test]
fn the_stubs_of_python_say_what_passes_and_primitives_say() {
    let read = |name: &str| {
        let path = format!("{}/../../python/tilewright/{name}.pyi", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).expect("the stub is there")
    };
    let (of_passes, of_primitives) = (read("passes"), read("schedule"));
    let stubs_of_passes = stubs(&of_passes, "\ndef ", ") -> Transformed:");
    let mut wrong = Vec::new();
    for pass in passes::passes() {
        let mut lines = vec![format!("    \"\"\"{}.\n", sentence(pass.summary))];
        for option in pass.options {
            let (name, values, default) = (option.name(), option.values(), option.default_value());
            let default = if default.is_empty() { "empty" } else { &default };
            let text = sentence(option.summary());
            lines.push(format!("\n    {name}: "));
            lines.push(format!("\n        {name}: {text}: {values}. The default is {default}.\n"));
        }
        wrong.extend(missing(stubs_of_passes.get(pass.name), lines));
    }
    let mark = "RefusedError: where it would change";
    let stubs_of_primitives = stubs(&of_primitives, "\n    def ", mark);
    for primitive in table::signatures() {
        let mut lines = vec![format!("        \"\"\"{}\n", primitive.summary())];
        lines.extend(primitive.aliases.iter().map(|a| format!("\n    {a} = {}\n", primitive.name)));
        for p in primitive.params {
            lines.push(format!("\n            {}: {}.", p.names[0], sentence(&p.takes())));
        }
        wrong.extend(missing(stubs_of_primitives.get(primitive.name), lines));
    }
    assert!(
        wrong.is_empty()
            && stubs_of_passes.len() == passes::passes().len()
            && stubs_of_primitives.len() == table::signatures().count(),
        "python/tilewright/*.pyi are old: build the Python package (`maturin develop`) and write them by \
         `python -m tilewright._stubs`. What they do not say: {wrong:#?}"
    );
}
