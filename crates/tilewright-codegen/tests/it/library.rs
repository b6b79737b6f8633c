//! A shared library and an object file, used from C.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::common::*;
use tilewright_codegen::cache::ObjectCache;
use tilewright_codegen::entry::{self, Planned};
use tilewright_codegen::header;
use tilewright_codegen::library::{Library, Program};
use tilewright_codegen::llvm::{Emit, Llvm, OptLevel};
use tilewright_ir::{DType, Error, Expr, ForKind, Intrin, Range, Stmt, TensorFunc, Var};
use tilewright_runtime::{Port, SizedPlan, Slot, Step};

/// `y = exp(x) * w + b` over `[3, 4]` in two steps, the second one parallel, which refuses
/// negative `x`; the names are not ones that C has.
fn functions() -> [(Arc<str>, TensorFunc); 2] {
    let matrix = |n: &str| buffer(n, &[3, 4], DType::F32);
    let (x, t) = (matrix("x"), matrix("t"));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = |i: &Var, j: &Var| vec![i.expr(), j.expr()];
    let exp = Stmt::store(&t, at(&i, &j), Expr::intrin(Intrin::Exp, vec![x.load(at(&i, &j))]));
    let body = Stmt::serial(&i, Expr::i32(3), Stmt::serial(&j, Expr::i32(4), exp));
    let first = func(&[&x, &t], body);

    let (x, t, y) = (matrix("x"), matrix("t"), matrix("y"));
    let (w, b) = (buffer("w", &[4], DType::F32), buffer("b", &[], DType::F32));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let check = Stmt::assert(x.load(at(&i, &j)).greater_equal(0.0), "x is \"negative\"");
    let value = t.load(at(&i, &j)) * w.load([j.expr()]) + b.load([]);
    let store = Stmt::store(&y, at(&i, &j), value);
    let body = Stmt::serial(&j, Expr::i32(4), Stmt::seq([check, store]));
    let body = Stmt::for_loop(&i, Range::upto(Expr::i32(3)), ForKind::Parallel, body);
    [("exp of x".into(), first), ("affine/é".into(), func(&[&x, &t, &w, &b, &y], body))]
}

fn plan() -> Planned {
    Planned::Fixed(fixed())
}

fn fixed() -> SizedPlan {
    let port =
        |n: &str| Port { name: n.into(), dtype: DType::F32, shape: vec![3, 4], stored: None };
    let step = |f: &str, args: &[Slot]| Step {
        func: f.into(),
        args: args.into(),
        idle: false,
        unless_shared: None,
    };
    SizedPlan {
        inputs: vec![port("x */ the input")],
        outputs: vec![port("y")],
        constants: vec![floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[0.25])],
        steps: vec![
            step("exp of x", &[Slot::Input(0), Slot::Arena(64)]),
            step(
                "affine/é",
                &[
                    Slot::Input(0),
                    Slot::Arena(64),
                    Slot::Constant(0),
                    Slot::Constant(1),
                    Slot::Output(0),
                ],
            ),
        ],
        arena_bytes: 128,
    }
}

/// Compiles a C program in a directory and runs it; gives what it prints.
fn run_c(directory: &Path, source: &str, arguments: &[&str]) -> String {
    std::fs::write(directory.join("main.c"), source).expect("a file can be written");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o", "main", "main.c"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}\n{source}");
    let ran = Command::new(directory.join("main"))
        .env("LD_LIBRARY_PATH", directory)
        .output()
        .expect("the program runs");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn a_c_program_uses_a_library() {
    let llvm = Llvm::get().expect("an LLVM");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let functions = functions();
    let funcs: Vec<_> = functions.iter().map(|(n, f)| (n.clone(), f)).collect();
    let (plan, target) = (plan(), llvm.host());
    let library = Library {
        name: "small_net",
        soname: None,
        program: Program { plan: &plan, funcs: &funcs },
        versions: &[],
        control: None,
        link: &[],
        target: &target,
    };
    let out = directory.join("libsmall.so");
    let made = library.build(llvm, &ObjectCache::off());
    let made = made.unwrap_or_else(|e| panic!("{}", e.render()));
    std::fs::write(&out, made.library).expect("a file can be written");
    std::fs::write(out.with_extension("h"), made.header).expect("a file can be written");
    let printed = run_c(
        directory,
        r#"
#include "libsmall.h"
#include <stdio.h>
#include <stdlib.h>

static int calls;

static void two_parts(const small_net_context *context, small_net_task task, void *closure,
                      int64_t begin, int64_t end) {
    calls += *(int *)context->user;
    task(context, closure, begin, begin + 1);
    task(context, closure, begin + 1, end);
}

static void run(float *x, void *arena) {
    float y[SMALL_NET_OUTPUT_0_ELEMENTS] = {0};
    const void *inputs[SMALL_NET_INPUTS] = {x};
    void *outputs[SMALL_NET_OUTPUTS] = {y};
    int result = small_net_run(inputs, outputs, arena);
    const char *message = small_net_message(result);
    if (result != 0) printf("%s\n", message);
    else for (int k = 0; k < 12; k++) printf("%.3f%c", y[k], k % 4 == 3 ? '\n' : ' ');
}

int main(void) {
    float x[12];
    for (int k = 0; k < 12; k++) x[k] = 0.1f * (float)k;
    run(x, NULL);
    void *arena = aligned_alloc(64, SMALL_NET_ARENA_BYTES);
    int one = 1;
    small_net_set_parallel(two_parts, &one);
    run(x, arena);
    small_net_set_parallel(NULL, NULL);
    x[7] = -1;
    run(x, arena);
    printf("%d %d %d\n", calls, small_net_message(0) == NULL, small_net_message(5) == NULL);
    free(arena);
    return sizeof(x) != SMALL_NET_INPUT_0_BYTES;
}
"#,
        &["-L.", "-lsmall"],
    );
    let mut rows = String::new();
    for i in 0..3 {
        let row: Vec<String> = (0..4)
            .map(|j| {
                let x = f64::from(0.1f32 * (4 * i + j) as f32);
                format!("{:.3}", x.exp() * f64::from(j + 1) + 0.25)
            })
            .collect();
        rows += &(row.join(" ") + "\n");
    }
    assert_eq!(printed, format!("{rows}{rows}affine/é: x is \"negative\"\n1 1 1\n"));

    // Nothing but the interface is visible.
    let symbols = Command::new("nm").args(["-D", "--defined-only"]).arg(&out).output();
    if let Ok(symbols) = symbols {
        let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
        let mut names: Vec<&str> =
            text.lines().filter_map(|l| l.split_whitespace().last()).collect();
        names.sort_unstable();
        assert_eq!(names, ["small_net_message", "small_net_run", "small_net_set_parallel"]);
    }
}

#[test]
fn a_c_program_uses_an_object_file() {
    let llvm = Llvm::get().expect("an LLVM");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let functions = functions();
    let funcs: Vec<_> = functions.iter().map(|(n, f)| (n.clone(), f)).collect();
    let text = entry::program("net", &plan(), &funcs, &llvm.host()).expect("a program");
    let object = llvm.compile(&text, &llvm.host(), OptLevel::Full, Emit::Object);
    let object = object.unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    std::fs::write(directory.join("net.o"), object).expect("a file can be written");
    let header = header::object(&plan(), "net").expect("a header");
    std::fs::write(directory.join("net.h"), header).expect("a file can be written");
    let printed = run_c(
        directory,
        r#"
#include "net.h"
#include <stdio.h>

static _Alignas(64) float w[NET_CONSTANT_0_BYTES / 4] = {1, 2, 3, 4}, b[NET_CONSTANT_1_BYTES / 4];
static _Alignas(64) char arena[NET_ARENA_BYTES];

int main(void) {
    float x[NET_INPUT_0_ELEMENTS] = {0}, y[NET_OUTPUT_0_ELEMENTS];
    const void *inputs[NET_INPUTS] = {x}, *constants[NET_CONSTANTS] = {w, b};
    void *outputs[NET_OUTPUTS] = {y};
    int32_t result = net_run(NULL, inputs, outputs, constants, arena);
    printf("%d %g %g", (int)result, (double)y[0], (double)y[11]);
    x[3] = -1;
    printf(" %d", (int)net_run(NULL, inputs, outputs, constants, arena));
    return 0;
}
"#,
        &["net.o", "-lm"],
    );
    let failed = 4096 + 1;
    assert_eq!(entry::failure(failed), Some((1, 0)));
    assert_eq!(printed, format!("0 1 4 {failed}"));
}

#[test]
fn the_plan_runs_in_this_process() {
    let llvm = Llvm::get().expect("an LLVM");
    let functions = functions();
    let funcs: Vec<_> = functions.iter().map(|(n, f)| (n.clone(), f)).collect();
    let plan = fixed();
    let text = entry::program("tw", &Planned::Fixed(plan.clone()), &funcs, &llvm.host());
    let text = text.expect("a program");
    let jit = tilewright_codegen::llvm::Jit::new(llvm).expect("a JIT");
    let object = llvm.compile(&text, &llvm.host(), OptLevel::Full, Emit::Object);
    let object = object.unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    jit.add_object(&object).expect("an object");
    let run = jit.lookup(&entry::symbol("tw")).unwrap_or_else(|e| panic!("{}", e.render()));
    type Run = unsafe extern "C" fn(
        *const Context,
        *const *const u8,
        *const *mut u8,
        *const *const u8,
        *mut u8,
    ) -> i32;
    // SAFETY: this is the function's type.
    let run = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Run>(run.as_ptr()) };
    let (x, mut y) = (floats(&[0.0; 12]), zeros(DType::F32, &[12]));
    let mut arena = zeros(DType::U8, &[plan.arena_bytes]);
    let inputs = [x.bytes().as_ptr()];
    let outputs = [y.bytes_mut().as_mut_ptr()];
    let constants: Vec<*const u8> = plan.constants.iter().map(|c| c.bytes().as_ptr()).collect();
    let context =
        Context { parallel_for: Some(threads), user: std::ptr::null(), failure: std::ptr::null() };
    // SAFETY: the tables have the lengths that the plan says, the tensors their sizes.
    let result = unsafe {
        run(
            &context,
            inputs.as_ptr(),
            outputs.as_ptr(),
            constants.as_ptr(),
            arena.bytes_mut().as_mut_ptr(),
        )
    };
    assert_eq!(result, 0);
    let row = [1.25, 2.25, 3.25, 4.25];
    assert_eq!(y.as_slice::<f32>(), Some([row; 3].as_flattened()));
}

#[test]
fn a_name_that_is_not_one_is_an_error() {
    let llvm = Llvm::get().expect("an LLVM");
    let (plan, target) = (Planned::Fixed(SizedPlan::default()), llvm.host());
    let library = Library {
        name: "my-net",
        soname: None,
        program: Program { plan: &plan, funcs: &[] },
        versions: &[],
        control: None,
        link: &[],
        target: &target,
    };
    let error = library.build(llvm, &ObjectCache::off()).map(drop).expect_err("an error");
    assert!(matches!(error, Error::Input(_)), "{error}");
    assert!(error.to_string().contains("`my-net` is not a C identifier"), "{error}");
}
