//! Shared libraries of models with control flow compute what the interpreter computes, through the C
//! interface alone.

use std::collections::HashMap;
use std::ffi::c_void;
use std::process::Command;

use tilewright_driver::library;
use tilewright_driver::program::Program;
use tilewright_driver::random::Random;
use tilewright_driver::{DType, Module, Options, Result, Session, Sizes, Tensor, parse};
use tilewright_dylib::Library;
use tilewright_interp::run_module;
use tilewright_ir::dim;
use tilewright_runtime::OpenPort;

use super::control::{random_graph, reopened};

/// Random graphs that are tried, unless the environment variable `TILEWRIGHT_FUZZ_ITERS` says how many.
const GRAPHS: u64 = 12;

type Shapes = unsafe extern "C" fn(*const i64, *mut i64) -> i32;
type Run = unsafe extern "C" fn(*const *const c_void, *const *mut c_void, *mut c_void) -> i32;
type OpenRun =
    unsafe extern "C" fn(*const i64, *const *const c_void, *const *mut c_void, *mut c_void) -> i32;
type Results = unsafe extern "C" fn(*const *const c_void, *mut *mut c_void) -> i32;
type OpenResults = unsafe extern "C" fn(*const i64, *const *const c_void, *mut *mut c_void) -> i32;
type Output = unsafe extern "C" fn(*const c_void, i32, *mut *const i64) -> *const c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Message = unsafe extern "C" fn(i32) -> *const std::ffi::c_char;

/// A library with the prefix `m`, and what its header says.
struct Shared {
    library: Library,
    header: String,
    program: Program,
}

fn options() -> Options {
    Options::new().threads(1).cache(false)
}

impl Shared {
    fn new(program: Program) -> Result<Shared> {
        let built = library::build("m", None, &program, &[], &options())?;
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), &built.library).expect("it is written");
        // SAFETY: the library is ours, and has no constructors.
        let library = unsafe { tilewright_dylib::open(file.path()) }.expect("it loads");
        Ok(Shared { library, header: built.header, program })
    }

    fn find<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the header declares the function with this type.
        unsafe { *self.library.get::<T>(name.as_bytes()).expect("the header declares it") }
    }

    fn has(&self, name: &str) -> bool {
        // SAFETY: the symbol is only looked for.
        unsafe { self.library.get::<*const c_void>(name.as_bytes()) }.is_ok()
    }

    fn number(&self, name: &str) -> usize {
        let line = format!("#define {name} ");
        let value = self.header.lines().find_map(|l| l.strip_prefix(&*line));
        value.and_then(|v| v.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{name}"))
    }

    /// The message of a result, or nothing where it is none.
    fn said(&self, result: i32) -> std::result::Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: the result is a text, or null.
        let text = unsafe {
            let text = self.find::<Message>("m_message")(result);
            (!text.is_null()).then(|| std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        Err(text.unwrap_or_else(|| format!("result {result}")))
    }

    fn run(&self, inputs: &[Tensor]) -> std::result::Result<Vec<Tensor>, String> {
        let plan = &self.program.plan;
        let given: Vec<&[usize]> = inputs.iter().map(Tensor::shape).collect();
        let sizes = plan.solve(&given).map_err(|e| e.to_string())?;
        let sizes: Vec<i64> = sizes.into_iter().map(|n| n as i64).collect();
        let is_open = self.has("m_shapes");
        assert_eq!(is_open, !sizes.is_empty());
        let mut shapes = vec![0i64; if is_open { self.number("M_SHAPES") } else { 0 }];
        if is_open {
            // SAFETY: the sizes are as many as the plan has, and the numbers as many as it says.
            let result =
                unsafe { self.find::<Shapes>("m_shapes")(sizes.as_ptr(), shapes.as_mut_ptr()) };
            self.said(result)?;
        }
        let data: Vec<*const c_void> = inputs.iter().map(|t| t.bytes().as_ptr().cast()).collect();
        if self.has("m_free") {
            return self.results(is_open.then_some(&shapes[..]), &data);
        }
        let extents = |(k, port): (usize, &OpenPort)| match dim::known(&port.shape) {
            Some(shape) => shape,
            None => {
                let at = self.number(&format!("M_SHAPES_OUTPUT_{k}"));
                shapes[at..at + port.shape.len()].iter().map(|n| *n as usize).collect()
            }
        };
        let outputs = plan.outputs.iter().enumerate();
        let mut outputs: Vec<Tensor> = outputs
            .map(|(k, port)| Tensor::zeros(port.dtype, &extents((k, port))).expect("memory"))
            .collect();
        let to: Vec<*mut c_void> =
            outputs.iter_mut().map(|t| t.bytes_mut().as_mut_ptr().cast()).collect();
        // SAFETY: inputs and outputs are as large as the header says.
        let result = unsafe {
            if is_open {
                self.find::<OpenRun>("m_run")(
                    shapes.as_ptr(),
                    data.as_ptr(),
                    to.as_ptr(),
                    std::ptr::null_mut(),
                )
            } else {
                self.find::<Run>("m_run")(data.as_ptr(), to.as_ptr(), std::ptr::null_mut())
            }
        };
        self.said(result).map(|()| outputs)
    }

    fn results(
        &self,
        shapes: Option<&[i64]>,
        inputs: &[*const c_void],
    ) -> std::result::Result<Vec<Tensor>, String> {
        let mut results = std::ptr::null_mut();
        // SAFETY: inputs are as large as the header says.
        let result = unsafe {
            match shapes {
                Some(shapes) => self.find::<OpenResults>("m_run")(
                    shapes.as_ptr(),
                    inputs.as_ptr(),
                    &raw mut results,
                ),
                None => self.find::<Results>("m_run")(inputs.as_ptr(), &raw mut results),
            }
        };
        assert_eq!(results.is_null(), result != 0);
        self.said(result)?;
        let outputs = self.program.plan.outputs.iter().enumerate();
        let outputs = outputs.map(|(k, port)| {
            let (mut extents, rank) = (std::ptr::null(), port.shape.len());
            assert_eq!(rank, self.number(&format!("M_OUTPUT_{k}_RANK")));
            // SAFETY: the library gives as many extents as the rank says, and the elements.
            unsafe {
                let data = self.find::<Output>("m_output")(results, k as i32, &raw mut extents);
                assert!(data.addr().is_multiple_of(64));
                let shape: Vec<usize> =
                    std::slice::from_raw_parts(extents, rank).iter().map(|n| *n as usize).collect();
                let bytes = shape.iter().product::<usize>() * port.dtype.bytes();
                let bytes = std::slice::from_raw_parts(data.cast::<u8>(), bytes);
                Tensor::from_bytes(port.dtype, &shape, bytes).expect("a tensor")
            }
        });
        let outputs = outputs.collect();
        // SAFETY: the results are those of the run, and are freed once.
        unsafe { self.find::<Free>("m_free")(results) };
        Ok(outputs)
    }
}

fn module(text: &str) -> Module {
    parse(text, &Sizes::new()).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn shared(module: &Module) -> Shared {
    let made = Session::new(options())
        .lower(module)
        .map(|lowering| lowering.program)
        .and_then(Shared::new);
    made.unwrap_or_else(|e| panic!("{}", e.render()))
}

#[test]
fn libraries_of_random_graphs_with_control_flow_compute_what_they_mean() {
    let asked = std::env::var("TILEWRIGHT_FUZZ_ITERS").ok().and_then(|n| n.parse().ok());
    let (mut same, mut kinds) = (0, HashMap::new());
    for seed in 1000..1000 + asked.unwrap_or(GRAPHS) {
        let text = random_graph(seed);
        let module = module(&text);
        let program = Session::new(options())
            .lower(&module)
            .map(|lowering| lowering.program)
            .expect("it lowers");
        let here = program.load(&options()).expect("it loads");
        let library = Shared::new(program).unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
        *kinds.entry(library.has("m_free")).or_insert(0) += 1;
        for n in [1, 3, 8, 2, 17] {
            let x = Random::new(seed + 1).tensor(DType::F32, &[n]).expect("a tensor");
            let inputs = [x];
            match (library.run(&inputs), here.run(&inputs)) {
                (Ok(got), Ok(meant)) => {
                    assert_eq!(got.len(), meant.len());
                    for (a, b) in got.iter().zip(&meant) {
                        assert!(a.same(b), "graph {seed}, n = {n}: {a:?} is not {b:?}\n{text}");
                    }
                    same += 1;
                }
                (Err(_), Err(_)) => {}
                (Ok(_), Err(e)) => panic!("graph {seed}, n = {n}: {}\n{text}", e.render()),
                (Err(e), Ok(_)) => panic!("graph {seed}, n = {n}: {e}\n{text}"),
            }
        }
    }
    assert!(same > 0 && kinds.len() == 2 || asked.is_some(), "{same} {kinds:?}");
}

/// Lists and optionals inside, a number of iterations that data say, values from around, nested loops.
const LISTS: &str = r#"
from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @T.prim_func
    def plus(x: T.handle, i: T.Buffer((), "int64"), y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for k in range(n):
            with T.block("Y"):
                v = T.axis.spatial(n, k)
                Y[v] = X[v] + T.Cast("float32", i[()])
    @R.function
    def main(x: R.Tensor(("n",), "float32"), count: R.Tensor((), "int64"), go: R.Tensor((), "bool")):
        n = T.int64()
        p = T.int64()
        q = T.int64()
        r = T.int64()
        cls = Module
        empty: R.Object = R.list.of()
        @R.function
        def inner(j: R.Tensor((), "int64"), c: R.Tensor((n,), "float32")):
            d = R.call_tir(cls.plus, (c, j), out_sinfo=R.Tensor((n,), "float32"))
            return (R.const(True, "bool"), d)
        @R.function
        def body(i: R.Tensor((), "int64"), list: R.Object, z: R.Tensor((n,), "float32")):
            y = R.call_tir(cls.plus, (x, i), out_sinfo=R.Tensor((n,), "float32"))
            w: R.Tuple(R.Tensor((n,), "float32")) = R.loop(inner, i, None, (z,))
            longer: R.Object = R.list.insert(list, y, R.const(0, "int64"))
            return (go, longer, w[0], y)
        all: R.Tuple(R.Object, R.Tensor((n,), "float32"), R.Tensor((p, n), "float32")) = R.loop(body, count, go, (empty, x))
        length: R.Tensor((), "int64") = R.list.length(all[0])
        more: R.Object = R.list.insert(all[0], x)
        whole: R.Tensor((q,), "float32") = R.list.join(more, axis=0)
        parts: R.Object = R.list.split(x, axis=0, keepdims=0)
        fewer: R.Object = R.list.erase(parts, R.const(-1, "int64"))
        back: R.Tensor((r,), "float32") = R.list.join(R.list.insert(fewer, R.list.at(parts, R.const(-1, "int64"))), axis=0, new_axis=1)
        return (whole, all[2], all[1], length, back)
"#;

#[test]
fn lists_and_loops_inside_of_a_library() {
    let module = module(LISTS);
    let library = shared(&module);
    let here = library.program.load(&options()).expect("it loads");
    let saved = reopened(&library.program, &options()).expect("it opens");
    for (n, count, go) in [(3usize, 4i64, true), (1, 0, true), (5, 3, false), (2, -2, true)] {
        let x = Random::new(n as u64).tensor(DType::F32, &[n]).expect("a tensor");
        let inputs = [
            x,
            Tensor::from_slice(&[], &[count]).expect("a number"),
            Tensor::from_bools(&[], &[go]).expect("a truth"),
        ];
        let got = library.run(&inputs).unwrap_or_else(|e| panic!("{e}"));
        let meant = run_module(&module, "main", &inputs).unwrap_or_else(|e| panic!("{e}"));
        let native = here.run(&inputs).unwrap_or_else(|e| panic!("{e}"));
        let opened = saved.run(&inputs).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(got.len(), 5);
        for (k, a) in got.iter().enumerate() {
            for b in [&meant[k], &native[k], &opened[k]] {
                assert!(a.same(b), "{n}, {count}, {go}: {a:?} is not {b:?}");
            }
        }
    }
}

#[test]
fn what_a_library_cannot_give_is_refused_with_a_way_out() {
    let text = LISTS.replace("return (whole,", "return (more,");
    let program = Session::new(options())
        .lower(&module(&text))
        .map(|lowering| lowering.program)
        .expect("it lowers");
    let error = Shared::new(program).map(drop).expect_err("a list is no tensor");
    assert_eq!(
        error.render(),
        "error: the output `more` is a sequence or optional, and a shared library gives tensors\n\
         help: join its tensors in the model, or run it in this process or as a saved model\n"
    );
}

#[test]
fn a_failure_inside_of_a_library_has_a_message() {
    let text = LISTS.replace("R.list.erase(parts, R.const(-1", "R.list.erase(parts, R.const(-9");
    let library = shared(&module(&text));
    let inputs = [
        Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("a tensor"),
        Tensor::from_slice(&[], &[1i64]).expect("a number"),
        Tensor::from_bools(&[], &[true]).expect("a truth"),
    ];
    let error = library.run(&inputs).expect_err("there is no such position");
    assert_eq!(error, "R.list.erase: there is no such position in the list");
}

/// A branch that gives as many elements as its input: the interface is that of any model.
const BRANCH: &str = r#"
from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @T.prim_func
    def twice(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for k in range(n):
            with T.block("Y"):
                v = T.axis.spatial(n, k)
                Y[v] = X[v] * T.float32(2)
    @R.function
    def main(x: R.Tensor(("n",), "float32"), go: R.Tensor((), "bool")):
        n = T.int64()
        cls = Module
        if go:
            y: R.Tensor((n,), "float32") = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n,), "float32"))
        else:
            y: R.Tensor((n,), "float32") = x
        return y
"#;

/// Both interfaces from C, by what the headers declare, without a warning.
#[test]
fn a_c_program_runs_models_with_control_flow() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    for (name, text) in [("branch", BRANCH), ("lists", LISTS)] {
        let program = Session::new(options())
            .lower(&module(text))
            .map(|lowering| lowering.program)
            .expect("it lowers");
        let built = library::build(name, None, &program, &[], &options()).expect("it builds");
        std::fs::write(directory.join(format!("lib{name}.so")), built.library).expect("written");
        std::fs::write(directory.join(format!("{name}.h")), built.header).expect("written");
    }
    let source = r#"
#include "branch.h"
#include "lists.h"
#include <stdio.h>

int main(void) {
    float x[3] = {1, 2, 3}, y[3];
    unsigned char go = 1;
    const int64_t sizes[BRANCH_SIZES] = {3};
    int64_t shapes[BRANCH_SHAPES];
    const void *inputs[BRANCH_INPUTS] = {x, &go};
    void *outputs[BRANCH_OUTPUTS] = {y};
    if (branch_shapes(sizes, shapes) != 0) return 1;
    if (shapes[BRANCH_SHAPES_OUTPUT_0_BYTES] != sizeof y) return 2;
    if (branch_run(shapes, inputs, outputs, NULL) != 0) return 3;
    printf("%.0f %.0f %.0f\n", y[0], y[1], y[2]);
    go = 0;
    if (branch_run(shapes, inputs, outputs, NULL) != 0) return 4;
    printf("%.0f %.0f %.0f\n", y[0], y[1], y[2]);

    int64_t count = 2, lists[LISTS_SHAPES];
    go = 1;
    const void *more[LISTS_INPUTS] = {x, &count, &go};
    lists_results *results;
    if (lists_shapes(sizes, lists) != 0 || lists_run(lists, more, &results) != 0) return 5;
    const int64_t *extents;
    const float *rows = lists_output(results, 1, &extents);
    printf("%d x %d: %.0f %.0f\n", (int)extents[0], (int)extents[1], rows[0], rows[5]);
    lists_free(results);
    return 0;
}
"#;
    std::fs::write(directory.join("main.c"), source).expect("it is written");
    let flags =
        ["-Wall", "-Wextra", "-Werror", "-o", "main", "main.c", "-L.", "-lbranch", "-llists"];
    let run = |command: &mut Command| {
        let done = command.current_dir(directory).env("LD_LIBRARY_PATH", directory).output();
        let done = done.expect("it starts");
        assert!(
            done.status.success(),
            "{}: {}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    run(Command::new("cc").args(flags));
    let printed = run(&mut Command::new(directory.join("main")));
    assert_eq!(printed, "2 4 6\n1 2 3\n2 x 3: 1 4\n");
}

/// A choice between inputs computes nothing: there is no kernel in the file or library.
#[test]
fn a_model_without_kernels_is_saved_and_a_library() {
    let text = r#"
from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function
    def choose(a: R.Tensor((3,), "int32"), b: R.Tensor((2,), "int32"), go: R.Tensor((), "bool")):
        k = T.int64()
        if go:
            y: R.Tensor((k,), "int32") = a
        else:
            y: R.Tensor((k,), "int32") = b
        return (y, R.const(7, "int32"))
"#;
    let library = shared(&module(text));
    let saved = reopened(&library.program, &options()).expect("it opens");
    for go in [true, false] {
        let inputs = [
            Tensor::from_slice(&[3], &[1i32, 2, 3]).expect("a tensor"),
            Tensor::from_slice(&[2], &[4i32, 5]).expect("a tensor"),
            Tensor::from_bools(&[], &[go]).expect("a truth"),
        ];
        let meant = &inputs[usize::from(!go)];
        for got in [library.run(&inputs).expect("it runs"), saved.run(&inputs).expect("it runs")] {
            assert!(got[0].same(meant), "{got:?}");
            assert_eq!(got[1].as_slice::<i32>(), Some(&[7][..]));
        }
    }
}

/// Runs `main` of a text in libraries, one of open `n` and one of three, with an input of a shape. Checks
/// how many values lie in something else, and how many steps there are.
fn in_place(text: &str, shape: impl Fn(usize) -> Vec<usize>, expected: (usize, usize)) {
    for n in [None, Some(3)] {
        let open = parse(text, &Sizes::new()).expect("it parses");
        let given = |n: usize| Sizes::new().shape("x", &shape(n));
        let fixed = |n| tilewright_graph::sizes::fill(&open, &given(n)).expect("it fits");
        let module = n.map_or_else(|| open.clone(), fixed);
        let program = Session::new(options())
            .lower(&module)
            .map(|lowering| lowering.program)
            .expect("it lowers");
        let parts = program.plan.values.iter().filter(|v| v.within.is_some()).count();
        assert_eq!((parts, program.plan.steps.len()), expected, "{n:?}");
        let shared = Shared::new(program).expect("it builds");
        for n in n.map_or(vec![1, 2, 7], |n| vec![n]) {
            let x = Random::new(n as u64).tensor(DType::F32, &shape(n)).expect("a tensor");
            let meant = run_module(&fixed(n), "main", std::slice::from_ref(&x)).expect("it runs");
            let got = shared.run(&[x]).expect("it runs");
            assert_eq!(got.len(), meant.len());
            for (got, meant) in got.iter().zip(&meant) {
                let near = |k: usize| (got.get_f64(k) - meant.get_f64(k)).abs() < 1e-4;
                assert!((0..meant.len()).all(near), "{n}");
            }
        }
    }
}

/// The parts of a concatenation lie in the whole, also where the batch is open.
#[test]
fn parts_in_place_run_in_libraries() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func
    def neg(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4, 16), "float32")
        B = T.match_buffer(b, (n, 4, 16), "float32")
        for i, j, k in T.grid(n, 4, 16):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] * T.float32(-1)

    @T.prim_func
    def join(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4, 16), "float32")
        B = T.match_buffer(b, (n, 4, 16), "float32")
        C = T.match_buffer(c, (n, 4, 32), "float32")
        for i, j, k in T.grid(n, 4, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk] = A[vi, vj, vk]
        for i, j, k in T.grid(n, 4, 16):
            with T.block("C_1"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk + 16] = B[vi, vj, vk]

    @T.prim_func
    def sums(c: T.handle, d: T.handle):
        n = T.int64()
        C = T.match_buffer(c, (n, 4, 32), "float32")
        D = T.match_buffer(d, (n, 4), "float32")
        for i, j, k in T.grid(n, 4, 32):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + C[vi, vj, vk]

    @R.function
    def main(x: R.Tensor(("n", 4, 16), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.neg, (x,), out_sinfo=R.Tensor((n, 4, 16), "float32"))
            b = R.call_tir(cls.neg, (a,), out_sinfo=R.Tensor((n, 4, 16), "float32"))
            c = R.call_tir(cls.join, (a, b), out_sinfo=R.Tensor((n, 4, 32), "float32"))
            d = R.call_tir(cls.sums, (c,), out_sinfo=R.Tensor((n, 4), "float32"))
            R.output(d)
        return d
"#;
    in_place(text, |n| vec![n, 4, 16], (2, 3));
}

/// A slice of an input is read there, and the parts of a result are computed there, at bytes that depend
/// on an open number of rows.
#[test]
fn slices_of_inputs_and_parts_of_results_run_in_libraries() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func
    def cut(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (3, n, 16), "float32")
        B = T.match_buffer(b, (1, n, 16), "float32")
        for i, j, k in T.grid(1, n, 16):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi + 2, vj, vk]

    @T.prim_func
    def neg(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (1, n, 16), "float32")
        B = T.match_buffer(b, (1, n, 16), "float32")
        for i, j, k in T.grid(1, n, 16):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] * T.float32(-1)

    @T.prim_func
    def join(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (1, n, 16), "float32")
        B = T.match_buffer(b, (1, n, 16), "float32")
        C = T.match_buffer(c, (2, n, 16), "float32")
        for i, j, k in T.grid(1, n, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk] = A[vi, vj, vk]
        for i, j, k in T.grid(1, n, 16):
            with T.block("C_1"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi + 1, vj, vk] = B[vi, vj, vk]

    @T.prim_func
    def sums(c: T.handle, d: T.handle):
        n = T.int64()
        C = T.match_buffer(c, (1, n, 16), "float32")
        D = T.match_buffer(d, (1, n), "float32")
        for i, j, k in T.grid(1, n, 16):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + C[vi, vj, vk]

    @R.function
    def main(x: R.Tensor((3, "n", 16), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            s = R.call_tir(cls.cut, (x,), out_sinfo=R.Tensor((1, n, 16), "float32"))
            a = R.call_tir(cls.neg, (s,), out_sinfo=R.Tensor((1, n, 16), "float32"))
            b = R.call_tir(cls.neg, (a,), out_sinfo=R.Tensor((1, n, 16), "float32"))
            c = R.call_tir(cls.join, (a, b), out_sinfo=R.Tensor((2, n, 16), "float32"))
            d = R.call_tir(cls.sums, (s,), out_sinfo=R.Tensor((1, n), "float32"))
            R.output(c, d)
        return (c, d)
"#;
    in_place(text, |n| vec![3, n, 16], (3, 3));
}
