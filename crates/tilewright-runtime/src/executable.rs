//! A compiled plan: code, constants and memory, ready to run.
//!
//! Everything that running needs is made once: the arena, the constants at their addresses, the
//! argument lists of all kernel calls with the places of inputs and outputs left open, the threads.
//! A run fills in those places and calls one kernel after the other. It allocates nothing, unless
//! more runs go on at the same time than ever before: each takes an arena of its own, from those
//! that earlier ones left behind. There are at most [`Executable::max_runs`] of them.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use tilewright_codegen::emit::{Assertion, MAX_VALUES};
use tilewright_codegen::llvm::Jit;
use tilewright_ir::{DType, Error, Plan, Port, Result, Slot, Source, Tensor};

use crate::abi::{Context, Failure, Kernel};
use crate::pool::{Pool, cores};

/// Most arenas of one executable, however many cores there are.
const MAX_ARENAS: usize = 64;

/// A kernel in a [`Jit`]: how to find it, and what it may say.
#[derive(Clone, Debug, Default)]
pub struct Symbol {
    /// The symbol.
    pub name: String,
    /// What the assertions of the function say, in the order of the codes that it returns.
    pub assertions: Vec<Assertion>,
    /// The text that the places of the assertions are in.
    pub source: Option<Arc<Source>>,
}

/// A compiled module that can be run, from any thread. Runs of several threads go on at the same
/// time, up to [`Executable::max_runs`]; those after them wait for one to end.
pub struct Executable {
    plan: Plan,
    calls: Vec<Call>,
    /// The places of inputs and outputs in the argument lists.
    open: Vec<(usize, Slot)>,
    arenas: Arenas,
    pool: Arc<Pool>,
    /// Owns the code that `calls` point into.
    _jit: Arc<Jit>,
}

/// One kernel call.
struct Call {
    kernel: Kernel,
    /// Where its arguments start in [`Memory::args`].
    args: usize,
    assertions: Vec<Assertion>,
    source: Option<Arc<Source>>,
}

/// What a run writes to, apart from the outputs.
struct Memory {
    arena: Tensor,
    /// The argument lists of all calls.
    args: Vec<u64>,
}

/// What runs write to, for as many of them as go on at the same time.
#[derive(Default)]
struct Arenas {
    state: Mutex<Free>,
    /// An arena was given back.
    freed: Condvar,
}

#[derive(Default)]
struct Free {
    list: Vec<Memory>,
    /// Arenas in all, those in use included.
    made: usize,
}

/// The memory of one run, which goes back when it ends.
struct Lease<'a> {
    arenas: &'a Arenas,
    /// Empty only while it is dropped.
    memory: Option<Memory>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.arenas.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.memory.take() {
            Some(memory) => state.list.push(memory),
            None => state.made -= 1,
        }
        drop(state);
        self.arenas.freed.notify_one();
    }
}

impl Executable {
    /// Links the kernels of a plan, by the names of their functions, and allocates what they need.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if a symbol cannot be linked, [`Error::Input`] if there is no memory for
    /// the arena, [`Error::Internal`] if the plan names functions, inputs or places that it does not
    /// have.
    ///
    /// # Safety
    /// The symbols are kernels ([`Kernel`]) that code generation made for the functions of the plan:
    /// each takes as many arguments as its steps have slots, and stays within the memory that the
    /// plan gives it.
    pub unsafe fn new(
        plan: Plan,
        jit: Arc<Jit>,
        symbols: &HashMap<Arc<str>, Symbol>,
        pool: Arc<Pool>,
    ) -> Result<Executable> {
        let mut executable = Executable {
            calls: Vec::with_capacity(plan.steps.len()),
            open: Vec::new(),
            arenas: Arenas::default(),
            plan,
            pool,
            _jit: jit.clone(),
        };
        let broken = |what: String| Error::internal(format!("the memory plan is wrong: {what}"));
        let Executable { plan, calls, open, .. } = &mut executable;
        let mut count = 0;
        let mut linked: HashMap<&str, Kernel> = HashMap::new();
        for step in &plan.steps {
            let symbol = symbols
                .get(&step.func)
                .ok_or_else(|| broken(format!("no kernel for the function `{}`", step.func)))?;
            let kernel = match linked.get(&*step.func) {
                Some(kernel) => *kernel,
                None => {
                    let address = jit.lookup(&symbol.name)?;
                    // SAFETY: by contract it is a kernel.
                    let kernel = unsafe { std::mem::transmute::<NonNull<c_void>, Kernel>(address) };
                    linked.insert(&step.func, kernel);
                    kernel
                }
            };
            let (assertions, source) = (symbol.assertions.clone(), symbol.source.clone());
            calls.push(Call { kernel, args: count, assertions, source });
            for slot in &step.args {
                match *slot {
                    Slot::Arena(at) if at <= plan.arena_bytes => {}
                    Slot::Constant(i) if i < plan.constants.len() => {}
                    Slot::Input(i) if i < plan.inputs.len() => open.push((count, *slot)),
                    Slot::Output(i) if i < plan.outputs.len() => open.push((count, *slot)),
                    _ => return Err(broken(format!("`{}` uses {slot:?}", step.func))),
                }
                count += 1;
            }
        }
        // The first arena, so that what does not fit memory is known now.
        drop(executable.lease()?);
        Ok(executable)
    }

    /// An arena, and the argument lists with the addresses in it and of the constants.
    fn memory(&self) -> Result<Memory> {
        let mut arena = Tensor::zeros(DType::U8, &[self.plan.arena_bytes])
            .map_err(|e| e.context("memory for intermediate results"))?;
        // The arena never moves: tensors that share their bytes with nobody are written in place.
        let start = arena.bytes_mut().as_mut_ptr();
        let slots = self.plan.steps.iter().flat_map(|step| &step.args);
        let address = |slot: &Slot| match *slot {
            Slot::Arena(at) => start.wrapping_add(at).expose_provenance() as u64,
            Slot::Constant(i) => self.plan.constants[i].bytes().as_ptr().expose_provenance() as u64,
            Slot::Input(_) | Slot::Output(_) => 0,
        };
        let args = slots.map(address).collect();
        Ok(Memory { arena, args })
    }

    /// The memory for a run: one that is free, a new one, or where there may be no more of them
    /// the next one that becomes free.
    fn lease(&self) -> Result<Lease<'_>> {
        let mut state = self.arenas.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(memory) = state.list.pop() {
                return Ok(Lease { arenas: &self.arenas, memory: Some(memory) });
            }
            if state.made < self.max_runs() {
                state.made += 1;
                drop(state);
                // If it fails, dropping the lease counts it out again.
                let mut lease = Lease { arenas: &self.arenas, memory: None };
                lease.memory = Some(self.memory()?);
                return Ok(lease);
            }
            state = self.arenas.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many runs may go on at the same time: one a core, and at least two.
    pub fn max_runs(&self) -> usize {
        cores().clamp(2, MAX_ARENAS)
    }

    /// Inputs, in the order in which a run takes them.
    pub fn inputs(&self) -> &[Port] {
        &self.plan.inputs
    }

    /// Outputs, in the order in which a run gives them.
    pub fn outputs(&self) -> &[Port] {
        &self.plan.outputs
    }

    /// The plan that this runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Threads that a run uses.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs on the inputs, in order, and gives the outputs.
    ///
    /// # Errors
    /// [`Error::Input`] if the number, an element type or a shape does not fit;
    /// [`Error::Execution`] if an assertion of a tensor function fails.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check_inputs(inputs)?;
        let mut outputs = self.empty_outputs()?;
        self.run_into(inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Runs on inputs by name, and gives the outputs by name, in order.
    ///
    /// # Errors
    /// As [`Executable::run`], and [`Error::Input`] if an input is missing or unknown.
    pub fn run_named<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<IndexMap<Arc<str>, Tensor>> {
        let mut given: IndexMap<&str, Tensor> = inputs.into_iter().collect();
        let mut list = Vec::with_capacity(self.plan.inputs.len());
        for port in &self.plan.inputs {
            list.push(given.shift_remove(&*port.name).ok_or_else(|| {
                Error::input(format!("no tensor was given for input `{}`", port.name))
            })?);
        }
        if let Some(name) = given.keys().next() {
            let names: Vec<_> =
                self.plan.inputs.iter().map(|port| format!("`{}`", port.name)).collect();
            return Err(Error::input(format!("there is no input `{name}`"))
                .note(format!("the inputs are: {}", names.join(", "))));
        }
        let outputs = self.run(&list)?;
        Ok(self.plan.outputs.iter().map(|port| port.name.clone()).zip(outputs).collect())
    }

    /// Tensors that fit the outputs, for [`Executable::run_into`].
    ///
    /// # Errors
    /// [`Error::Input`] if there is no memory for them.
    pub fn empty_outputs(&self) -> Result<Vec<Tensor>> {
        self.plan.outputs.iter().map(|port| Tensor::zeros(port.dtype, &port.shape)).collect()
    }

    /// Runs on the inputs and overwrites the outputs. Nothing is allocated, as long as the outputs
    /// do not share their bytes with other tensors.
    ///
    /// # Errors
    /// As [`Executable::run`], and [`Error::Input`] if an output does not fit. After an error the
    /// outputs hold anything.
    pub fn run_into(&self, inputs: &[Tensor], outputs: &mut [Tensor]) -> Result<()> {
        self.call_all(inputs, outputs, |_, call| call())
    }

    /// Like [`Executable::run_into`], and adds to `times` how long each step of the plan took.
    ///
    /// # Errors
    /// As [`Executable::run_into`].
    pub fn run_profiled(
        &self,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
        times: &mut [Duration],
    ) -> Result<()> {
        self.call_all(inputs, outputs, |step, call| {
            let start = Instant::now();
            let code = call();
            if let Some(time) = times.get_mut(step) {
                *time += start.elapsed();
            }
            code
        })
    }

    /// Calls every kernel through `around`, which gets the number of the step.
    fn call_all(
        &self,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
        mut around: impl FnMut(usize, &dyn Fn() -> i32) -> i32,
    ) -> Result<()> {
        self.check_inputs(inputs)?;
        check("output", &self.plan.outputs, outputs)?;
        let mut lease = self.lease()?;
        let Some(Memory { arena, args }) = &mut lease.memory else {
            return Err(Error::internal("a run without memory"));
        };
        if cfg!(debug_assertions) {
            // NaN in every floating-point type: what is read before it is written shows.
            arena.bytes_mut().fill(0xff);
            outputs.iter_mut().for_each(|output| output.bytes_mut().fill(0xff));
        }
        for (place, slot) in &self.open {
            // In range, as `new` and the checks above have seen.
            args[*place] = match *slot {
                Slot::Input(i) => inputs[i].bytes().as_ptr().expose_provenance() as u64,
                Slot::Output(i) => outputs[i].bytes_mut().as_mut_ptr().expose_provenance() as u64,
                Slot::Constant(_) | Slot::Arena(_) => continue,
            };
        }
        let failure = Failure::default();
        let context = Context { failure: &failure, ..self.pool.context() };
        for (step, call) in self.calls.iter().enumerate() {
            let args = args[call.args..].as_ptr();
            // SAFETY: by the contract of `new` the kernel takes these arguments and stays within
            // what they point to: the constants, the arena, which no other run has while this one
            // holds the lease, and the inputs and outputs, whose sizes were checked.
            let code = around(step, &|| unsafe { (call.kernel)(&context, args) });
            if code != 0 {
                return Err(self.failed(step, code, &failure));
            }
        }
        Ok(())
    }

    fn failed(&self, step: usize, code: i32, failure: &Failure) -> Error {
        let func = self.plan.steps.get(step).map_or("?", |step| &*step.func);
        // Of several threads that failed, the one that left its values is reported.
        let first = failure.code.load(Ordering::Relaxed);
        let values: [i64; MAX_VALUES] =
            std::array::from_fn(|k| failure.values[k].load(Ordering::Relaxed));
        let (code, values) = match first {
            0 => (i64::from(code), None),
            first => (first, Some(&values[..])),
        };
        let call = self.calls.get(step);
        let said =
            usize::try_from(code).ok().and_then(|code| call?.assertions.get(code.checked_sub(1)?));
        let Some(said) = said else {
            return Error::internal(format!("the kernel of `{func}` returned {code}"));
        };
        let text = said.text(values);
        let error = Error::execution(format!("an assertion of `{func}` failed: {text}"));
        match call.and_then(|call| call.source.as_ref()) {
            Some(source) => error.at(said.span).in_source(source),
            None => error,
        }
    }

    fn check_inputs(&self, inputs: &[Tensor]) -> Result<()> {
        check("input", &self.plan.inputs, inputs)
    }
}

/// Whether the tensors are what the ports want; `what` they are is for the message.
fn check(what: &str, ports: &[Port], tensors: &[Tensor]) -> Result<()> {
    if ports.len() != tensors.len() {
        let names: Vec<_> = ports.iter().map(|port| format!("`{}`", port.name)).collect();
        let given = match tensors.len() {
            1 => "1 tensor was".to_owned(),
            n => format!("{n} tensors were"),
        };
        let plural = if ports.len() == 1 { "" } else { "s" };
        return Err(Error::input(format!("{given} given for {} {what}{plural}", ports.len()))
            .note(format!("the {what}s are: {}", names.join(", "))));
    }
    ports.iter().zip(tensors).try_for_each(|(port, tensor)| check_port(what, port, tensor))
}

/// Whether a tensor has the type and shape of a port; `what` the port is is for the message.
///
/// # Errors
/// [`Error::Input`] that names the port, what it wants and what it got.
pub fn check_port(what: &str, port: &Port, tensor: &Tensor) -> Result<()> {
    let Port { name, dtype, shape } = port;
    if tensor.dtype() != *dtype {
        return Err(Error::input(format!(
            "{what} `{name}` has elements of type {dtype}, and was given {}",
            tensor.dtype()
        ))
        .help(format!("convert the tensor to {dtype}")));
    }
    if tensor.shape() != shape {
        return Err(Error::input(format!(
            "{what} `{name}` has the shape {shape:?}, and was given {:?}",
            tensor.shape()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tilewright_codegen::llvm::{Emit, Llvm, OptLevel};
    use tilewright_ir::Step;

    /// `double(x, out)`, eight elements, and `add(x, y, out)` with a parallel loop; `check(x, out)`
    /// copies one element and asserts that it is positive.
    const KERNELS: &str = r#"
        define i32 @tw_double(ptr %ctx, ptr %args) {
          %x = load ptr, ptr %args
          %o.at = getelementptr i64, ptr %args, i64 1
          %o = load ptr, ptr %o.at
          %v = load <8 x float>, ptr %x, align 4
          %w = fadd <8 x float> %v, %v
          store <8 x float> %w, ptr %o, align 4
          ret i32 0
        }
        define void @body(ptr %ctx, ptr %args, i64 %begin, i64 %end) {
          %x = load ptr, ptr %args
          %y.at = getelementptr i64, ptr %args, i64 1
          %y = load ptr, ptr %y.at
          %o.at = getelementptr i64, ptr %args, i64 2
          %o = load ptr, ptr %o.at
          br label %loop
        loop:
          %i = phi i64 [ %begin, %0 ], [ %next, %loop ]
          %x.i = getelementptr float, ptr %x, i64 %i
          %y.i = getelementptr float, ptr %y, i64 %i
          %o.i = getelementptr float, ptr %o, i64 %i
          %a = load float, ptr %x.i
          %b = load float, ptr %y.i
          %c = fadd float %a, %b
          store float %c, ptr %o.i
          %next = add i64 %i, 1
          %more = icmp slt i64 %next, %end
          br i1 %more, label %loop, label %done
        done:
          ret void
        }
        define i32 @tw_add(ptr %ctx, ptr %args) {
          %for = load ptr, ptr %ctx
          %serial = icmp eq ptr %for, null
          br i1 %serial, label %here, label %there
        here:
          call void @body(ptr %ctx, ptr %args, i64 0, i64 8)
          ret i32 0
        there:
          call void %for(ptr %ctx, ptr @body, ptr %args, i64 0, i64 8)
          ret i32 0
        }
        declare void @meet(ptr)
        define i32 @tw_wait(ptr %ctx, ptr %args) {
          %x = load ptr, ptr %args
          %at = load ptr, ptr %x
          call void @meet(ptr %at)
          ret i32 0
        }
        define i32 @tw_check(ptr %ctx, ptr %args) {
          %x = load ptr, ptr %args
          %o.at = getelementptr i64, ptr %args, i64 1
          %o = load ptr, ptr %o.at
          %v = load float, ptr %x
          store float %v, ptr %o
          %ok = fcmp ogt float %v, 0.0
          %code = select i1 %ok, i32 0, i32 2
          ret i32 %code
        }"#;

    fn port(name: &str, shape: &[usize]) -> Port {
        Port { name: name.into(), dtype: DType::F32, shape: shape.into() }
    }

    fn step(func: &str, args: &[Slot]) -> Step {
        Step { func: func.into(), args: args.into() }
    }

    fn floats(values: &[f32]) -> Tensor {
        Tensor::from_slice(&[values.len()], values).expect("a tensor")
    }

    fn link(plan: Plan, threads: usize) -> Result<Executable> {
        let llvm = Llvm::get()?;
        let jit = Jit::new(llvm)?;
        let meet = NonNull::new(meet as *mut c_void).expect("a function has an address");
        jit.define("meet", meet)?;
        jit.add_object(&llvm.compile(KERNELS, &llvm.host(), OptLevel::Full, Emit::Object)?)?;
        let assertions = ["never", "x is positive"].map(|message| Assertion {
            message: message.into(),
            values: 0,
            span: None,
        });
        let symbols = ["double", "add", "check", "wait"].map(|name| {
            let assertions = assertions.to_vec();
            let symbol = Symbol { name: format!("tw_{name}"), assertions, source: None };
            (name.into(), symbol)
        });
        // SAFETY: the kernels take the arguments that the plans of the tests give them.
        unsafe { Executable::new(plan, jit.into(), &symbols.into(), Pool::new(threads)?.into()) }
    }

    /// `out = 2 * x + [1, 1, ...]`, `same = 2 * x`.
    fn example() -> Plan {
        Plan {
            inputs: vec![port("x", &[8])],
            outputs: vec![port("out", &[8]), port("same", &[8])],
            constants: vec![floats(&[1.0; 8])],
            steps: vec![
                step("double", &[Slot::Input(0), Slot::Arena(64)]),
                step("add", &[Slot::Arena(64), Slot::Constant(0), Slot::Output(0)]),
                step("double", &[Slot::Input(0), Slot::Output(1)]),
            ],
            arena_bytes: 96,
        }
    }

    #[test]
    fn a_plan_runs_again_and_again_with_one_or_more_threads() {
        for threads in [1, 3] {
            let executable = link(example(), threads).expect("a plan that fits");
            assert_eq!(executable.threads(), threads);
            assert_eq!(executable.inputs()[0], port("x", &[8]));
            assert_eq!(executable.outputs().len(), 2);
            for k in 0..50 {
                let x: Vec<f32> = (0..8).map(|i| (i + k) as f32).collect();
                let outputs = executable.run(&[floats(&x)]).expect("it runs");
                let twice: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
                let more: Vec<f32> = twice.iter().map(|v| v + 1.0).collect();
                assert_eq!(outputs[0].as_slice(), Some(&more[..]));
                assert_eq!(outputs[1].as_slice(), Some(&twice[..]));
            }
        }
    }

    #[test]
    fn outputs_are_overwritten_in_place_and_the_clones_of_a_tensor_are_not() {
        let executable = link(example(), 1).expect("a plan that fits");
        let x = floats(&[3.0; 8]);
        let mut outputs = executable.empty_outputs().expect("memory");
        let before = outputs[0].bytes().as_ptr();
        executable.run_into(std::slice::from_ref(&x), &mut outputs).expect("it runs");
        assert_eq!(outputs[0].bytes().as_ptr(), before);
        let kept = outputs.clone();
        // The second output is the input as well: the input keeps its values.
        outputs[1] = x.clone();
        executable.run_into(std::slice::from_ref(&x), &mut outputs).expect("it runs");
        assert_eq!(x.get_f64(0), 3.0);
        assert!(outputs[1].same(&kept[1]) && kept[0].same(&outputs[0]));
    }

    #[test]
    fn threads_may_share_an_executable() {
        let executable = link(example(), 2).expect("a plan that fits");
        std::thread::scope(|scope| {
            for k in 0..4 {
                let executable = &executable;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let outputs = executable.run(&[floats(&[k as f32; 8])]).expect("it runs");
                        assert_eq!(outputs[0].as_slice(), Some(&[2.0 * k as f32 + 1.0; 8][..]));
                    }
                });
            }
        });
    }

    /// Counts the runs that are inside, and waits for another one.
    unsafe extern "C" fn meet(inside: *const AtomicUsize) {
        // SAFETY: the test hands over the address of a number that lives as long as its runs.
        let inside = unsafe { &*inside };
        inside.fetch_add(1, Ordering::SeqCst);
        while inside.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
    }

    /// Two runs of one executable are inside of a kernel at the same time, each with its own arena:
    /// the kernel returns only when both are there.
    #[test]
    fn runs_go_on_at_the_same_time() {
        let plan = Plan {
            inputs: vec![
                Port { name: "at".into(), dtype: DType::I64, shape: vec![1] },
                port("x", &[8]),
            ],
            outputs: vec![port("out", &[8])],
            steps: vec![
                step("double", &[Slot::Input(1), Slot::Arena(0)]),
                step("wait", &[Slot::Input(0)]),
                step("double", &[Slot::Arena(0), Slot::Output(0)]),
            ],
            arena_bytes: 64,
            ..Plan::default()
        };
        let executable = link(plan, 1).expect("a plan that fits");
        let inside = AtomicUsize::new(0);
        let address: *const AtomicUsize = &inside;
        let at = Tensor::from_slice(&[1], &[address.expose_provenance() as i64]).expect("a tensor");
        std::thread::scope(|scope| {
            for k in 0..2 {
                let (executable, at) = (&executable, at.clone());
                scope.spawn(move || {
                    let x = floats(&[k as f32; 8]);
                    let outputs = executable.run(&[at, x]).expect("it runs");
                    assert_eq!(outputs[0].as_slice(), Some(&[4.0 * k as f32; 8][..]));
                });
            }
        });
        assert_eq!(executable.arenas.state.lock().expect("no panic").made, 2);
    }

    /// More runs than there may be arenas all come to an end, and leave no more behind.
    #[test]
    fn the_number_of_arenas_is_bounded() {
        let executable = link(example(), 1).expect("a plan that fits");
        let most = executable.max_runs();
        std::thread::scope(|scope| {
            for k in 0..most * 3 {
                let executable = &executable;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let outputs = executable.run(&[floats(&[k as f32; 8])]).expect("it runs");
                        assert_eq!(outputs[1].as_slice(), Some(&[2.0 * k as f32; 8][..]));
                    }
                });
            }
        });
        let state = executable.arenas.state.lock().expect("no panic");
        assert!(state.made <= most && state.list.len() == state.made);
    }

    #[test]
    fn a_profile_has_a_time_for_each_step() {
        let executable = link(example(), 1).expect("a plan that fits");
        let mut outputs = executable.empty_outputs().expect("memory");
        let mut times = [Duration::ZERO; 3];
        for _ in 0..100 {
            let run = executable.run_profiled(&[floats(&[3.0; 8])], &mut outputs, &mut times);
            run.expect("it runs");
        }
        assert!(times.iter().all(|time| !time.is_zero()), "{times:?}");
    }

    #[test]
    fn inputs_and_outputs_that_do_not_fit_are_errors_that_name_them() {
        let executable = link(example(), 1).expect("a plan that fits");
        let text =
            |inputs: &[Tensor]| executable.run(inputs).expect_err("it does not fit").render();
        assert_eq!(
            text(&[]),
            "error: 0 tensors were given for 1 input\nnote: the inputs are: `x`\n"
        );
        assert_eq!(
            text(&[floats(&[1.0; 7])]),
            "error: input `x` has the shape [8], and was given [7]\n"
        );
        let ints = Tensor::from_slice(&[8], &[1i64; 8]).expect("a tensor");
        assert_eq!(
            text(&[ints]),
            "error: input `x` has elements of type float32, and was given int64\n\
             help: convert the tensor to float32\n"
        );
        let (x, mut outputs) = (floats(&[1.0; 8]), [floats(&[0.0; 8]), floats(&[0.0; 2])]);
        let error = executable.run_into(&[x], &mut outputs).expect_err("it does not fit");
        assert_eq!(error.to_string(), "output `same` has the shape [8], and was given [2]");
    }

    #[test]
    fn a_failed_assertion_is_an_error_with_its_message() {
        let plan = Plan {
            inputs: vec![port("x", &[1])],
            outputs: vec![port("out", &[1])],
            steps: vec![step("check", &[Slot::Input(0), Slot::Output(0)])],
            ..Plan::default()
        };
        let executable = link(plan, 1).expect("a plan that fits");
        assert!(executable.run(&[floats(&[1.0])]).is_ok());
        let error = executable.run(&[floats(&[-1.0])]).expect_err("the assertion fails");
        assert!(matches!(error, Error::Execution(_)));
        assert_eq!(error.to_string(), "an assertion of `check` failed: x is positive");
    }

    #[test]
    fn plans_that_are_wrong_are_errors() {
        for (func, slot, message) in [
            ("double", Slot::Input(1), "`double` uses Input(1)"),
            ("double", Slot::Output(2), "`double` uses Output(2)"),
            ("double", Slot::Constant(1), "`double` uses Constant(1)"),
            ("double", Slot::Arena(128), "`double` uses Arena(128)"),
            ("other", Slot::Input(0), "no kernel for the function `other`"),
        ] {
            let mut plan = example();
            plan.steps.push(step(func, &[slot]));
            let error = link(plan, 1).map(drop).expect_err(message);
            assert_eq!(error.to_string(), format!("the memory plan is wrong: {message}"));
        }
    }
}
