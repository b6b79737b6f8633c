//! The seam between what runs functions and what makes their code: a second backend, which runs
//! lowered functions in the reference interpreter, behind the same front door as the first one.

use std::path::Path;
use std::sync::Arc;

use tilewright_driver::library;
use tilewright_driver::random::Random;
use tilewright_driver::{
    Error, Module, Options, Result, Session, Sizes, Target, Tensor, compile, load, parse,
};
use tilewright_interp::{Arg, Interpreter, written_params};
use tilewright_ir::{Buffer, Lowered};
use tilewright_target::abi::Workers;
use tilewright_target::{Backend, Code, CodeOptions, MemoryScope};

/// Interprets. Its machine has memory that is addressed by two coordinates.
struct Interpreting;

impl Backend for Interpreting {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn host(&self) -> Result<Target> {
        let texture = MemoryScope::new("global.texture", [2]);
        Ok(Target::new("interpreter", "", "").with_scope(texture))
    }

    fn check_target(&self, target: &Target) -> Result<()> {
        if target.triple == "interpreter" {
            Ok(())
        } else {
            Err(Error::input(format!("the interpreter is no {}", target.triple)))
        }
    }

    fn compile(
        &self,
        module: &Lowered,
        functions: &[Arc<str>],
        target: &Target,
        _: &CodeOptions<'_>,
    ) -> Result<Arc<dyn Code>> {
        self.check(module, functions, target)?;
        Ok(Arc::new(Interpreted { module: module.clone(), names: functions.to_vec() }))
    }
}

struct Interpreted {
    module: Lowered,
    names: Vec<Arc<str>>,
}

fn extents(buffer: &Buffer) -> Vec<usize> {
    buffer.const_shape().expect("plans have constant sizes").iter().map(|&n| n as usize).collect()
}

// SAFETY: the arguments are copied into tensors of the types of the parameters, and what is written
// is copied back.
unsafe impl Code for Interpreted {
    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| **n == *name)
    }

    unsafe fn call(&self, function: usize, args: &[u64], _: &Workers) -> Result<()> {
        let name = &self.names[function];
        let func = self.module.tensor(name)?;
        let mut given = Vec::new();
        for ((buffer, written), &word) in func.buffers().zip(written_params(func)).zip(args) {
            let shape = extents(buffer);
            let bytes = shape.iter().product::<usize>() * buffer.dtype().bytes();
            let address = std::ptr::with_exposed_provenance::<u8>(word as usize);
            given.push(if written {
                Arg::Fresh(Some(shape))
            } else {
                // SAFETY: by contract there are as many bytes.
                let content = unsafe { std::slice::from_raw_parts(address, bytes) };
                Arg::Tensor(Tensor::from_bytes(buffer.dtype(), &shape, content)?)
            });
        }
        let mut run = Interpreter::new(&self.module, tilewright_interp::RunOptions::default())?;
        for output in run.call(name, &given)?.outputs {
            let bytes = output.tensor.bytes();
            let to = std::ptr::with_exposed_provenance_mut::<u8>(args[output.param] as usize);
            // SAFETY: by contract there are as many bytes, and no other code accesses them.
            unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        Ok(())
    }
}

/// Options with a backend, and checks after every stage.
fn with(backend: impl Backend + 'static) -> Options {
    Options::new().backend(Arc::new(backend)).cache(false).check(true)
}

/// What both backends compute from the same random inputs.
fn both(module: &Module) -> [Vec<Tensor>; 2] {
    let options = [Options::new().cache(false), with(Interpreting)];
    options.map(|options| {
        let executable = compile(module, &options).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut random = Random::new(7);
        let inputs: Vec<Tensor> = executable
            .inputs()
            .iter()
            .map(|port| random.tensor(port.dtype, &port.fixed().expect("fixed")).expect("a tensor"))
            .collect();
        executable.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render()))
    })
}

#[test]
fn both_backends_compute_the_same() {
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
    let module = load(digits, &Sizes::new().dim("N", 1)).expect("the example is there");
    let [native, interpreted] = both(&module);
    assert_eq!(native.len(), interpreted.len());
    for (a, b) in native.iter().zip(&interpreted) {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
        for k in 0..a.len() {
            let (x, y) = (a.get_f64(k), b.get_f64(k));
            assert!((x - y).abs() <= 1e-4 * (1.0 + y.abs()), "element {k}: {x} and {y}");
        }
    }
}

/// Transposes through a buffer of two physical axes, or of as many as there are separators and one.
fn through(scope: &str, separators: &str) -> Module {
    let text = format!(
        r#"
@T.prim_func
def f(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
    C = T.alloc_buffer((4, 6), "float32", scope="{scope}", axis_separators=[{separators}])
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vj, vi] + 1.0
"#
    );
    parse(&text, &Sizes::new()).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn refused(module: &Module, options: &Options) -> String {
    let error = compile(module, options).err().expect("it is refused");
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
    error.render()
}

#[test]
fn memory_of_two_coordinates_is_for_the_backend_that_has_it() {
    let texture = through("global.texture", "1");
    let executable = compile(&texture, &with(Interpreting)).expect("it has textures");
    let a = Random::new(3).tensor(tilewright_driver::DType::F32, &[4, 6]).expect("a tensor");
    let b = executable.run(std::slice::from_ref(&a)).expect("it runs").swap_remove(0);
    for (i, j) in (0..6).flat_map(|i| (0..4).map(move |j| (i, j))) {
        assert_eq!(b.get_f64(i * 4 + j), f64::from(a.get_f64(j * 6 + i) as f32 * 2.0 + 1.0));
    }

    let native = Options::new().cache(false);
    for (module, options, message) in [
        (
            &texture,
            &native,
            "buffer `C` lives in `global.texture`, which this target does not have",
        ),
        (
            &through("global", "1"),
            &native,
            "buffer `C` has 2 physical axes, and `global` memory of this target takes 1",
        ),
        (
            &through("global.texture", ""),
            &with(Interpreting),
            "buffer `C` has 1 physical axis, and `global.texture` memory of this target takes 2",
        ),
    ] {
        let text = refused(module, options);
        assert!(text.contains(&format!("function `f`: {message}")), "{text}");
        // The statement, or the function where lowering left no statement of the text.
        let places = ["C[vi, vj] = A[vi, vj] * 2.0", "def f("];
        assert!(places.iter().any(|p| text.contains(p)), "the place is missing: {text}");
    }
    // Flat memory is there in both.
    let [x, y] = both(&through("global", ""));
    assert!(x[0].same(&y[0]));
}

#[test]
fn assertions_fail_and_targets_are_refused_by_every_backend() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((4,), "float32"), I: T.Buffer((2,), "int32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[I[vi]]
"#;
    let module = parse(text, &Sizes::new()).expect("it parses");
    let a = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0]).expect("a tensor");
    for options in [Options::new().cache(false), with(Interpreting)] {
        let executable = compile(&module, &options).expect("it compiles");
        let at = |index: i32| Tensor::from_slice(&[2], &[3, index]).expect("a tensor");
        let outputs = executable.run(&[a.clone(), at(0)]).expect("it runs");
        assert_eq!(outputs[0].as_slice::<f32>(), Some(&[4.0, 1.0][..]));
        let error = executable.run(&[a.clone(), at(9)]).expect_err("out of range");
        assert!(matches!(error, Error::Execution(_)), "{error}");
    }
    let target = Some(Target::new("x86_64-unknown-linux-gnu", "", ""));
    let error = compile(&module, &with(Interpreting).target(target)).err();
    assert!(matches!(error, Some(Error::Input(_))), "{error:?}");
}

/// A backend that writes no files says so, and nothing else is asked in its place.
#[test]
fn files_are_written_by_the_chosen_backend_or_by_none() {
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
    let module = load(digits, &Sizes::new().dim("N", 1)).expect("the example is there");
    for (options, writes) in [(Options::new().cache(false), true), (with(Interpreting), false)] {
        let lowering = Session::new(options.clone()).lower(&module).expect("it lowers");
        match library::object("m", &lowering.program, &options) {
            Ok(built) => assert!(writes && !built.library.is_empty()),
            Err(error) => {
                assert!(!writes && matches!(error, Error::Unsupported(_)), "{error}");
                assert!(error.to_string().contains("makes no libraries and objects"), "{error}");
            }
        }
    }
}

/// The driver names no backend but through the registry of all, and the runtime and the graph know none:
/// neither their code nor what they depend on names one.
#[test]
fn the_runtime_and_the_graph_know_no_backend() {
    fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { files(&path, found) } else { found.push(path) }
        }
    }
    for name in ["tilewright-runtime", "tilewright-graph", "tilewright-target"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        let mut found = vec![root.join("Cargo.toml")];
        if name != "tilewright-target" {
            files(&root.join("src"), &mut found);
        }
        assert!(name == "tilewright-target" || found.len() > 3);
        for path in found {
            let text = std::fs::read_to_string(&path).expect("a text").to_lowercase();
            for word in ["llvm", "tilewright-codegen", "tilewright_codegen"] {
                assert!(!text.contains(word), "{} names {word}", path.display());
            }
        }
    }
    let mut driver = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut driver);
    for path in driver {
        let text = std::fs::read_to_string(&path).expect("a text").to_lowercase();
        assert!(!text.contains("llvm"), "{} names LLVM", path.display());
    }
}
