//! What the tests of generated code share: compile a function, call it, compare.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tilewright_codegen::emit;
use tilewright_codegen::llvm::{Emit, Jit, Llvm, OptLevel, Target};
use tilewright_interp::{self as interp, RunOptions};
use tilewright_ir::{Buffer, DType, Expr, Param, Result, Stmt, Tensor, TensorFunc, TypeKind, Var};

/// The part of the calling context that kernels know.
#[repr(C)]
pub struct Context {
    pub parallel_for: Option<ParallelFor>,
    pub user: *const c_void,
    pub failure: *const c_void,
}

pub type Task = unsafe extern "C" fn(*const Context, *mut c_void, i64, i64);
pub type ParallelFor = unsafe extern "C" fn(*const Context, Task, *mut c_void, i64, i64);
pub type Kernel = unsafe extern "C" fn(*const Context, *const u64) -> i32;

thread_local! {
    /// Calls of [`threads`] by this thread so far.
    pub static PARALLEL_CALLS: Cell<i64> = const { Cell::new(0) };
}

/// A `parallel_for` with four threads, each with several chunks.
pub unsafe extern "C" fn threads(
    ctx: *const Context,
    task: Task,
    closure: *mut c_void,
    begin: i64,
    end: i64,
) {
    PARALLEL_CALLS.set(PARALLEL_CALLS.get() + 1);
    let (ctx, closure) = (ctx.expose_provenance(), closure.expose_provenance());
    let next = &AtomicI64::new(begin);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                loop {
                    let from = next.fetch_add(3, Ordering::Relaxed);
                    if from >= end {
                        return;
                    }
                    let (ctx, closure) = (
                        std::ptr::with_exposed_provenance(ctx),
                        std::ptr::with_exposed_provenance_mut(closure),
                    );
                    // SAFETY: the pointers are those that came with the task; chunks differ.
                    unsafe { task(ctx, closure, from, (from + 3).min(end)) };
                }
            });
        }
    });
}

/// A compiled function.
pub struct Native {
    kernel: Kernel,
    _jit: Rc<Jit>,
}

pub fn ir(func: &TensorFunc, target: &Target) -> Result<String> {
    emit::module(&[("f".into(), func)], target)
}

/// Compiles for this machine.
pub fn compile(func: &TensorFunc) -> Native {
    compile_for(func, &Llvm::get().expect("an LLVM").host(), OptLevel::Full)
}

/// Compiles for this machine, with functions of this process that it may call: the text of their
/// definitions, in which `ADDRESS` is where they are.
pub fn compile_with(func: &TensorFunc, functions: &[(&str, *mut c_void)]) -> Native {
    let host = Llvm::get().expect("an LLVM").host();
    compile_all(func, &host, OptLevel::Full, functions)
}

pub fn compile_for(func: &TensorFunc, target: &Target, level: OptLevel) -> Native {
    compile_all(func, target, level, &[])
}

fn compile_all(
    func: &TensorFunc,
    target: &Target,
    level: OptLevel,
    functions: &[(&str, *mut c_void)],
) -> Native {
    let llvm = Llvm::get().expect("an LLVM");
    let text = ir(func, target).unwrap_or_else(|e| panic!("{}", e.render()));
    let object = llvm.compile(&text, target, level, Emit::Object);
    let object = object.unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    let jit = Jit::new(llvm).expect("a JIT");
    for (text, address) in functions {
        let address = format!("inttoptr (i64 {} to ptr)", address.expose_provenance());
        let text = text.replace("ADDRESS", &address);
        let object = llvm.compile(&text, target, level, Emit::Object).expect("a definition");
        jit.add_object(&object).expect("an object for this machine");
    }
    jit.add_object(&object).expect("an object for this machine");
    find(&Rc::new(jit), "f")
}

/// Compiles functions for this machine as one module: its text, and each of them.
pub fn compile_together(funcs: &[(Arc<str>, &TensorFunc)]) -> (String, Vec<Native>) {
    let llvm = Llvm::get().expect("an LLVM");
    let text = emit::module(funcs, &llvm.host()).unwrap_or_else(|e| panic!("{}", e.render()));
    let object = llvm.compile(&text, &llvm.host(), OptLevel::Full, Emit::Object);
    let object = object.unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    let jit = Rc::new(Jit::new(llvm).expect("a JIT"));
    jit.add_object(&object).expect("an object for this machine");
    let natives = funcs.iter().map(|(name, _)| find(&jit, name)).collect();
    (text, natives)
}

/// The kernel of a function that was compiled.
fn find(jit: &Rc<Jit>, name: &str) -> Native {
    let address: NonNull<c_void> =
        jit.lookup(&emit::symbol(emit::PREFIX, name)).unwrap_or_else(|e| panic!("{}", e.render()));
    // SAFETY: the symbol is a kernel by the calling convention.
    let kernel = unsafe { std::mem::transmute::<*mut c_void, Kernel>(address.as_ptr()) };
    Native { kernel, _jit: jit.clone() }
}

/// An argument of a kernel.
pub enum Arg<'a> {
    /// A tensor, for reading or writing.
    Tensor(&'a mut Tensor),
    /// The bits of a scalar or size.
    Bits(u64),
}

impl Native {
    /// Calls on tensors, serially.
    pub fn call(&self, tensors: &mut [Tensor]) -> i32 {
        self.call_with(tensors.iter_mut().map(Arg::Tensor).collect(), None)
    }

    /// Calls on tensors with threads.
    pub fn call_threads(&self, tensors: &mut [Tensor]) -> i32 {
        self.call_with(tensors.iter_mut().map(Arg::Tensor).collect(), Some(threads))
    }

    /// Calls without any context.
    pub fn call_without_context(&self, tensors: &mut [&mut Tensor]) -> i32 {
        let slots: Vec<u64> = tensors
            .iter_mut()
            .map(|t| t.bytes_mut().as_mut_ptr().expose_provenance() as u64)
            .collect();
        // SAFETY: the tests pass as many arguments, of such sizes, as the function has.
        unsafe { (self.kernel)(std::ptr::null(), slots.as_ptr()) }
    }

    pub fn call_with(&self, args: Vec<Arg<'_>>, parallel_for: Option<ParallelFor>) -> i32 {
        let slots: Vec<u64> = args
            .into_iter()
            .map(|a| match a {
                Arg::Tensor(t) => t.bytes_mut().as_mut_ptr().expose_provenance() as u64,
                Arg::Bits(bits) => bits,
            })
            .collect();
        let context = Context { parallel_for, user: std::ptr::null(), failure: std::ptr::null() };
        // SAFETY: the tests pass as many arguments, of such sizes, as the function has.
        unsafe { (self.kernel)(&context, slots.as_ptr()) }
    }
}

/// A function of these buffers in order.
pub fn func(buffers: &[&Buffer], body: Stmt) -> TensorFunc {
    TensorFunc::new(buffers.iter().map(|b| Param::tensor(b)).collect(), body)
}

/// `for i in range(n): out[i] = value(i)`.
pub fn elementwise(out: &Buffer, n: i64, value: impl FnOnce(&Var) -> Expr) -> Stmt {
    let i = Var::index("i");
    let value = value(&i);
    Stmt::serial(&i, Expr::int(n, DType::I32), Stmt::store(out, vec![i.expr()], value))
}

pub fn buffer(name: &str, shape: &[i64], dtype: DType) -> Buffer {
    Buffer::with_extents(name, shape, dtype)
}

pub fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).expect("a tensor")
}

pub fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::zeros(dtype, shape).expect("a tensor")
}

/// A target without any vector extension beyond what the architecture has.
pub fn baseline() -> Target {
    let host = Llvm::get().expect("an LLVM").host();
    Target::new(host.triple, "", "")
}

pub fn name(text: &str) -> Arc<str> {
    text.into()
}

/// A tensor of small numbers without pattern: multiples of 1/8 between -4 and 4 for floats.
pub fn random(dtype: DType, shape: &[usize], seed: u64) -> Tensor {
    let mut t = zeros(dtype, shape);
    let (n, size) = (t.len(), dtype.bytes());
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for k in 0..n {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let x = ((state >> 33) % 65) as i64 - 32;
        let value = match dtype.kind {
            TypeKind::Bool => interp::Scalar::int(x & 1, dtype),
            TypeKind::Float | TypeKind::BFloat => interp::Scalar::float(x as f64 / 8.0, dtype),
            _ => interp::Scalar::int(x, dtype),
        };
        let bytes = value.bits().to_le_bytes();
        t.bytes_mut()[k * size..(k + 1) * size].copy_from_slice(&bytes[..size]);
    }
    t
}

/// Tensors for the parameters of a function with constant shapes.
pub fn arguments(func: &TensorFunc, seed: u64) -> Vec<Tensor> {
    let tensor = |(k, b): (usize, &Buffer)| {
        let shape: Vec<usize> =
            b.const_shape().expect("constant extents").iter().map(|&d| d as usize).collect();
        random(b.dtype(), &shape, seed + k as u64)
    };
    func.buffers().enumerate().map(tensor).collect()
}

/// Runs a function in the interpreter and as native code (for this machine serially and with
/// threads, for one without extensions, and without optimisation), and compares every tensor
/// parameter. Gives the tensors.
#[track_caller]
pub fn compare(func: &TensorFunc, tensors: &[Tensor]) -> Vec<Tensor> {
    compare_within(func, tensors, 1e-5)
}

#[track_caller]
pub fn compare_within(func: &TensorFunc, tensors: &[Tensor], tolerance: f64) -> Vec<Tensor> {
    let args: Vec<interp::Arg> = tensors.iter().cloned().map(interp::Arg::Tensor).collect();
    let outcome = interp::run_func(func, &args, &RunOptions::default());
    let outcome = outcome.unwrap_or_else(|e| panic!("{}", e.render()));
    let mut expected = tensors.to_vec();
    for output in outcome.outputs {
        expected[output.param] = output.tensor;
    }
    let host = Llvm::get().expect("an LLVM").host();
    let ways = [
        ("this machine", &host, OptLevel::Full, false),
        ("threads", &host, OptLevel::Full, true),
        ("no extensions", &baseline(), OptLevel::Less, false),
        ("no optimisation", &host, OptLevel::None, false),
    ];
    for (way, target, level, threads) in ways {
        let native = compile_for(func, target, level);
        let mut got = tensors.to_vec();
        let code = if threads { native.call_threads(&mut got) } else { native.call(&mut got) };
        assert_eq!(code, 0, "{way}");
        for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
            for i in 0..got.len() {
                let (x, y) = (got.get_f64(i), expected.get_f64(i));
                let close = if got.dtype().is_float() {
                    let same = x == y || (x.is_nan() && y.is_nan());
                    same || (x - y).abs() <= tolerance * (1.0 + y.abs())
                } else {
                    got.get_i128(i) == expected.get_i128(i)
                };
                assert!(close, "{way}: parameter {k}, element {i}: {x} is not {y}");
            }
        }
    }
    expected
}
