//! A compiled module, ready to run: the calls of a plan, or an executor of control flow over several of them; and versions
//! for some of the sizes.

use std::sync::Arc;
use std::time::Duration;

use crate::plan::program::Program;
use crate::plan::{OpenStep, Port, Shared};
use crate::{MemoryPlan, OpenPort};
use indexmap::IndexMap;
use tilewright_ir::list::Item;
use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_target::{Code, Device};

use crate::calls::{Calls, Taken, check};
use crate::control::ControlExecutor;
use crate::device_tensor::{DeviceTensor, Operand, Shaped};
use crate::pool::Pool;

/// A compiled module that can be run, from any thread. Runs of several threads go on at the same
/// time, up to [`Executable::max_runs`]; those after them wait for one to end.
pub struct Executable {
    /// The calls of the plan; there are none where there is control flow.
    calls: Calls,
    /// What runs instead then.
    control: Option<ControlExecutor>,
    /// Executables for some of the sizes, which run instead of this one where they fit.
    versions: Vec<Executable>,
}

impl Executable {
    /// Takes the functions of a plan, by their names, from code, and allocates what they need.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no memory for the arena, [`Error::Internal`] if the plan names
    /// functions, inputs or places that are not there.
    ///
    /// # Safety
    /// The plan is one for the functions that the code was made from: each of them takes as many
    /// arguments as its steps have slots, of the sizes that the plan gives them, and writes only
    /// where no other argument of its step lies.
    pub unsafe fn new(
        plan: MemoryPlan,
        code: Arc<dyn Code>,
        pool: Arc<Pool>,
    ) -> Result<Executable> {
        // SAFETY: as this function.
        let calls = unsafe { Calls::new(plan, code, pool) }?;
        Ok(Executable { calls, control: None, versions: Vec::new() })
    }

    /// A program over pieces, each of which is a plan; all take their functions from one code.
    ///
    /// # Errors
    /// As [`Executable::new`], and [`Error::Internal`] where the program uses a piece or a place that
    /// is not there.
    ///
    /// # Safety
    /// As [`Executable::new`], for each piece.
    pub unsafe fn with_program(
        program: Program,
        pieces: Vec<MemoryPlan>,
        code: Arc<dyn Code>,
        pool: Arc<Pool>,
    ) -> Result<Executable> {
        let signature = MemoryPlan { outputs: Vec::new(), ..program.signature.clone() };
        // SAFETY: as this function, for each piece; the signature has no steps.
        let mut calls = unsafe { Calls::new(signature, code.clone(), pool.clone()) }?;
        calls.plan = program.signature.clone();
        let pieces = pieces
            .into_iter()
            .map(|plan| unsafe { Calls::new(plan, code.clone(), pool.clone()) })
            .collect::<Result<_>>()?;
        let control = Some(ControlExecutor::new(program, pieces)?);
        Ok(Executable { calls, control, versions: Vec::new() })
    }

    /// Adds versions: executables of the same model for some of its sizes. A run takes the first that
    /// its inputs fit.
    ///
    /// # Errors
    /// [`Error::Input`] for an executable of other inputs or outputs; those of
    /// [`MemoryPlan::check_versions`].
    pub fn with_versions(self, versions: Vec<Executable>) -> Result<Executable> {
        fn kinds(ports: &[OpenPort]) -> Vec<(&Arc<str>, DType, usize)> {
            ports.iter().map(|p| (&p.name, p.dtype, p.shape.len())).collect()
        }
        for version in &versions {
            let (own, other) = (self.plan(), version.plan());
            if kinds(&own.inputs) != kinds(&other.inputs)
                || kinds(&own.outputs) != kinds(&other.outputs)
            {
                return Err(Error::input("a version has other inputs or outputs than the model"));
            }
            own.check_versions()?;
        }
        Ok(Executable { versions, ..self })
    }

    /// The values of the open sizes for these inputs, in the order of [`MemoryPlan::sizes`].
    ///
    /// # Errors
    /// [`Error::Input`] where the inputs do not fit, or a size is not given.
    pub fn sizes(&self, inputs: &[Tensor]) -> Result<Vec<usize>> {
        self.calls.sizes_of(inputs)
    }

    /// Says how large something is that the shapes of the inputs do not say, for all runs that begin
    /// later: a size `n` of which the inputs only have `(n + 7) // 8`. The plan names these sizes
    /// ([`MemoryPlan::given`]).
    ///
    /// # Errors
    /// [`Error::Input`] where there is no such size, or it cannot be that large.
    pub fn give(&self, name: &str, size: usize) -> Result<()> {
        self.calls.give(name, size)
    }

    /// What runs for these inputs: a version for their sizes, or the executable itself.
    pub fn version(&self, inputs: &[Tensor]) -> &Executable {
        self.other_version(inputs).unwrap_or(self)
    }

    /// A version for the sizes of these inputs.
    fn other_version<T: Shaped>(&self, inputs: &[T]) -> Option<&Executable> {
        self.versions.iter().find(|version| {
            let ports = version.calls.plan.inputs.iter().zip(inputs);
            ports
                .flat_map(|(port, tensor)| port.shape.iter().zip(tensor.shape()))
                .all(|(dim, given)| dim.known().is_none_or(|n| n == *given))
                && check("input", &version.calls.plan.inputs, inputs).is_ok()
        })
    }

    /// How many runs may go on at the same time: one a core, and at least two.
    pub fn max_runs(&self) -> usize {
        self.calls.max_runs
    }

    /// Inputs, in the order in which a run takes them.
    pub fn inputs(&self) -> &[OpenPort] {
        &self.calls.plan.inputs
    }

    /// Outputs, in the order in which a run gives them.
    pub fn outputs(&self) -> &[OpenPort] {
        &self.calls.plan.outputs
    }

    /// The plan that this runs.
    pub fn plan(&self) -> &MemoryPlan {
        &self.calls.plan
    }

    /// Threads that a run uses.
    pub fn threads(&self) -> usize {
        self.calls.threads()
    }

    /// Runs on the inputs, in order, and gives the outputs.
    ///
    /// # Errors
    /// [`Error::Input`] if the number, an element type or a shape does not fit;
    /// [`Error::Execution`] if an assertion of a tensor function fails.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if let Some(version) = self.other_version(inputs) {
            return version.run(inputs);
        }
        if let Some(control) = &self.control {
            return self.run_control(control, inputs, None);
        }
        self.calls.run(&self.calls.fixed_of(inputs)?, inputs)
    }

    /// Runs the program on the inputs, and gives the outputs, which are tensors.
    fn run_control(
        &self,
        control: &ControlExecutor,
        inputs: &[Tensor],
        times: Option<&mut [Duration]>,
    ) -> Result<Vec<Tensor>> {
        check("input", &self.calls.plan.inputs, inputs)?;
        let outputs = control.run(inputs, times)?.into_iter().zip(&self.calls.plan.outputs);
        let tensor = |(item, port): (Item, &OpenPort)| {
            if port.is_item() {
                return Err(Error::unsupported(format!(
                    "the output `{}` is a sequence or optional, and a tensor is asked for",
                    port.name
                )));
            }
            item.tensor().map_err(|e| e.context(format!("output `{}`", port.name)))
        };
        outputs.map(tensor).collect()
    }

    /// The device that it runs on, if it is one with memory of its own.
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.calls.device()
    }

    /// Runs on the inputs, in order, on a device, and leaves the outputs there. Inputs that are there are read where they
    /// lie, unless they begin at an address that is no multiple of 64.
    ///
    /// # Errors
    /// As [`Executable::run`], and [`Error::Input`] where it runs on the processor, or a tensor is on another device;
    /// [`Error::Unsupported`] where there is control flow.
    pub fn run_on_device(&self, inputs: &[Operand]) -> Result<Vec<DeviceTensor>> {
        if let Some(version) = self.other_version(inputs) {
            return version.run_on_device(inputs);
        }
        if self.control.is_some() {
            return Err(Error::unsupported(
                "a model with control flow gives its outputs on the host",
            ));
        }
        self.calls.run_on_device(&self.calls.fixed_of(inputs)?, inputs)
    }

    /// Runs on the inputs, in order, and gives the outputs, which may be lists and optionals.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn run_items(&self, inputs: &[Tensor]) -> Result<Vec<Item>> {
        match &self.control {
            Some(control) => {
                check("input", &self.calls.plan.inputs, inputs)?;
                control.run(inputs, None)
            }
            None => Ok(self.run(inputs)?.into_iter().map(Item::Tensor).collect()),
        }
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
        let mut list = Vec::with_capacity(self.calls.plan.inputs.len());
        for port in &self.calls.plan.inputs {
            list.push(given.shift_remove(&*port.name).ok_or_else(|| {
                Error::input(format!("no tensor was given for input `{}`", port.name))
            })?);
        }
        if let Some(name) = given.keys().next() {
            let names: Vec<_> =
                self.calls.plan.inputs.iter().map(|port| format!("`{}`", port.name)).collect();
            return Err(Error::input(format!("there is no input `{name}`"))
                .note(format!("the inputs are: {}", names.join(", "))));
        }
        let outputs = self.run(&list)?;
        Ok(self.calls.plan.outputs.iter().map(|port| port.name.clone()).zip(outputs).collect())
    }

    /// Tensors that fit the outputs for these inputs, for [`Executable::run_into`]. Where data decide
    /// the sizes of outputs, as they may with control flow, these are empty: a run replaces them.
    ///
    /// # Errors
    /// [`Error::Input`] if the inputs do not fit, or there is no memory for the outputs.
    pub fn empty_outputs(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if self.control.is_some() {
            check("input", &self.calls.plan.inputs, inputs)?;
            return self
                .calls
                .plan
                .outputs
                .iter()
                .map(|port| Tensor::zeros(port.dtype, &vec![0; port.shape.len()]))
                .collect();
        }
        self.calls.fixed_of(inputs)?.empty_outputs()
    }

    /// Runs on the inputs and overwrites the outputs. Nothing is allocated, as long as the outputs
    /// do not share their bytes with other tensors, and there is no control flow.
    ///
    /// # Errors
    /// As [`Executable::run`], and [`Error::Input`] if an output does not fit. After an error the
    /// outputs hold anything.
    pub fn run_into(&self, inputs: &[Tensor], outputs: &mut [Tensor]) -> Result<()> {
        if let Some(version) = self.other_version(inputs) {
            return version.run_into(inputs, outputs);
        }
        if let Some(control) = &self.control {
            return self.replace(control, inputs, outputs, None);
        }
        let fixed = self.calls.fixed_of(inputs)?;
        self.calls.call_all(&fixed, inputs, outputs, &Taken::default(), |_, call| call())
    }

    /// Runs on the inputs, in order, and gives the outputs. An output that is an input with some cells changed
    /// ([`Executable::shared`]: a cache to which rows are appended) has the memory of that input, of which then
    /// nothing is copied, unless something else holds it.
    ///
    /// # Errors
    /// As [`Executable::run`]; the inputs are gone then.
    pub fn run_in_place(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.run_taking(inputs, Vec::new())
    }

    /// [`Executable::run_in_place`], where outputs, by position, are written into tensors that are given. One of
    /// these that is the memory of an input ([`Executable::shared`]) takes that over. Where one of them does not fit its
    /// output, or there is control flow, all are left as they were, and the outputs have memory of their own.
    ///
    /// # Errors
    /// As [`Executable::run`]; after an error, what was given holds anything.
    pub fn run_taking(
        &self,
        mut inputs: Vec<Tensor>,
        mut given: Vec<Option<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        if let Some(version) = self.other_version(&inputs) {
            return version.run_taking(inputs, given);
        }
        if self.control.is_some() {
            return self.run(&inputs);
        }
        let fixed = self.calls.fixed_of(&inputs)?;
        given.resize(fixed.plan.outputs.len(), None);
        let fits = |(t, port): (&Option<Tensor>, &Port)| {
            t.as_ref().is_none_or(|t| t.dtype() == port.dtype && *t.shape() == *port.shape)
        };
        if !given.iter().zip(&fixed.plan.outputs).all(fits) {
            given.fill(None);
        }
        let mut taken = Taken::default();
        for (k, port) in fixed.plan.outputs.iter().enumerate() {
            let shared = self.shared().find(|s| s.output == k).filter(|_| self.calls.is_on_host());
            if let Some(shared) = shared
                && let Some(input) = inputs.get_mut(shared.input)
            {
                if given[k].is_none() && input.is_alone() {
                    given[k] = Some(std::mem::replace(input, Tensor::zeros(port.dtype, &[0])?));
                    taken.0.push(shared);
                } else if given[k]
                    .as_ref()
                    .is_some_and(|t| t.bytes().as_ptr() == input.bytes().as_ptr())
                {
                    *input = Tensor::zeros(port.dtype, &[0])?;
                    taken.0.push(shared);
                }
            }
        }
        let outputs = given.into_iter().zip(&fixed.plan.outputs);
        let mut outputs = outputs
            .map(|(t, port)| t.map_or_else(|| Tensor::zeros(port.dtype, &port.shape), Ok))
            .collect::<Result<Vec<Tensor>>>()?;
        self.calls.call_all(&fixed, &inputs, &mut outputs, &taken, |_, call| call())?;
        Ok(outputs)
    }

    /// Inputs and outputs that may be the same memory: the output is the input with some cells changed.
    pub fn shared(&self) -> impl Iterator<Item = Shared> {
        self.calls.plan.shared()
    }

    /// The steps of the plan; where there is control flow, those of its pieces in order.
    pub fn steps(&self) -> impl Iterator<Item = &OpenStep> {
        let of_plan = self.calls.plan.steps.iter().filter(|_| self.control.is_none());
        of_plan.chain(self.control.iter().flat_map(ControlExecutor::steps))
    }

    /// Like [`Executable::run_into`] without versions, and adds to `times` how long each of its
    /// [`steps`](Executable::steps) took: of one in a loop, all its iterations together.
    ///
    /// # Errors
    /// As [`Executable::run_into`].
    pub fn run_profiled(
        &self,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
        times: &mut [Duration],
    ) -> Result<()> {
        if let Some(control) = &self.control {
            return self.replace(control, inputs, outputs, Some(times));
        }
        self.calls.call_timed(&self.calls.fixed_of(inputs)?, inputs, outputs, times)
    }

    /// Runs on the inputs, and puts new tensors into the places of the outputs.
    fn replace(
        &self,
        control: &ControlExecutor,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
        times: Option<&mut [Duration]>,
    ) -> Result<()> {
        check("output", &self.calls.plan.outputs, outputs)?;
        let new = self.run_control(control, inputs, times)?;
        new.into_iter().zip(outputs).for_each(|(new, old)| *old = new);
        Ok(())
    }

    /// Whether a run goes through a program over several plans, because there is control flow.
    pub fn has_control(&self) -> bool {
        self.control.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ArgSource, OpenStep, Value};
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tilewright_ir::{Dim, dim};
    use tilewright_target::abi::Workers;

    /// `double(x, out)`, eight elements, and `add(x, y, out)` with a parallel loop; `check(x, out)`
    /// copies one element and asserts that it is positive; `wait(x)` waits for another run.
    struct Kernels;

    const NAMES: [&str; 4] = ["double", "add", "check", "wait"];

    /// The address of an argument.
    fn address<T>(args: &[u64], k: usize) -> *mut T {
        std::ptr::with_exposed_provenance_mut(args[k] as usize)
    }

    /// The iterations of the loop of `add`; the closure is the list of arguments.
    unsafe extern "C" fn body(_: *const Workers, args: *mut c_void, begin: i64, end: i64) {
        // SAFETY: `add` hands over its three arguments, of eight floats each.
        let args = unsafe { std::slice::from_raw_parts(args.cast_const().cast::<u64>(), 3) };
        let [x, y, out] = [0, 1, 2].map(|k| address::<f32>(args, k));
        for i in begin as usize..end as usize {
            // SAFETY: as above; parts of a loop do not overlap.
            unsafe { *out.add(i) = *x.add(i) + *y.add(i) };
        }
    }

    // SAFETY: the functions stay within what the plans of the tests give them.
    unsafe impl Code for Kernels {
        fn find(&self, name: &str) -> Option<usize> {
            NAMES.iter().position(|n| *n == name)
        }

        unsafe fn call(&self, function: usize, args: &[u64], workers: &Workers) -> Result<()> {
            // SAFETY: the arguments are as large as the functions take them.
            unsafe {
                match NAMES[function] {
                    "double" => (0..8).for_each(|i| {
                        *address::<f32>(args, 1).add(i) = 2.0 * *address::<f32>(args, 0).add(i)
                    }),
                    "add" => {
                        let closure = args.as_ptr().cast_mut().cast();
                        match workers.parallel_for {
                            Some(parallel_for) => parallel_for(workers, body, closure, 0, 8),
                            None => body(workers, closure, 0, 8),
                        }
                    }
                    "check" => {
                        *address::<f32>(args, 1) = *address::<f32>(args, 0);
                        if *address::<f32>(args, 0) <= 0.0 {
                            return Err(Error::execution("x is positive"));
                        }
                    }
                    _ => meet(std::ptr::with_exposed_provenance(*address::<u64>(args, 0) as usize)),
                }
            }
            Ok(())
        }
    }

    fn port(name: &str, shape: &[usize]) -> OpenPort {
        OpenPort { name: name.into(), dtype: DType::F32, shape: dim::shape(shape), stored: None }
    }

    fn step(func: &str, args: &[ArgSource]) -> OpenStep {
        let (func, value) = (func.into(), "".into());
        OpenStep {
            func,
            value,
            args: args.into(),
            results: 0..0,
            takes_empty: false,
            unless_shared: None,
        }
    }

    /// Eight floats that are needed from one step to another.
    fn value(first: usize, last: usize) -> Value {
        Value { cells: Dim::from(8), dtype: DType::F32, first, last, within: None }
    }

    fn floats(values: &[f32]) -> Tensor {
        Tensor::from_slice(&[values.len()], values).expect("a tensor")
    }

    fn link(plan: MemoryPlan, threads: usize) -> Result<Executable> {
        // SAFETY: the kernels take the arguments that the plans of the tests give them.
        unsafe { Executable::new(plan, Arc::new(Kernels), Pool::new(threads)?.into()) }
    }

    /// `out = 2 * x + [1, 1, ...]`, `same = 2 * x`.
    fn example() -> MemoryPlan {
        MemoryPlan {
            inputs: vec![port("x", &[8])],
            outputs: vec![port("out", &[8]), port("same", &[8])],
            constants: vec![floats(&[1.0; 8])],
            steps: vec![
                step("double", &[ArgSource::Input(0), ArgSource::Value(0)]),
                step("add", &[ArgSource::Value(0), ArgSource::Constant(0), ArgSource::Output(0)]),
                step("double", &[ArgSource::Input(0), ArgSource::Output(1)]),
            ],
            values: vec![value(0, 1)],
            ..MemoryPlan::default()
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
        let mut outputs = executable.empty_outputs(std::slice::from_ref(&x)).expect("memory");
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
    unsafe fn meet(inside: *const AtomicUsize) {
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
        let plan = MemoryPlan {
            inputs: vec![
                OpenPort {
                    name: "at".into(),
                    dtype: DType::I64,
                    shape: dim::shape(&[1]),
                    stored: None,
                },
                port("x", &[8]),
            ],
            outputs: vec![port("out", &[8])],
            steps: vec![
                step("double", &[ArgSource::Input(1), ArgSource::Value(0)]),
                step("wait", &[ArgSource::Input(0)]),
                step("double", &[ArgSource::Value(0), ArgSource::Output(0)]),
            ],
            values: vec![value(0, 2)],
            ..MemoryPlan::default()
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
        assert_eq!(executable.calls.arenas.count(), (2, 2));
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
        let (made, free) = executable.calls.arenas.count();
        assert!(made <= most && free == made);
    }

    #[test]
    fn a_profile_has_a_time_for_each_step() {
        let executable = link(example(), 1).expect("a plan that fits");
        let mut outputs = executable.empty_outputs(&[floats(&[3.0; 8])]).expect("memory");
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
    fn the_error_of_a_kernel_ends_the_run() {
        let plan = MemoryPlan {
            inputs: vec![port("x", &[1])],
            outputs: vec![port("out", &[1])],
            steps: vec![step("check", &[ArgSource::Input(0), ArgSource::Output(0)])],
            ..MemoryPlan::default()
        };
        let executable = link(plan, 1).expect("a plan that fits");
        assert!(executable.run(&[floats(&[1.0])]).is_ok());
        let error = executable.run(&[floats(&[-1.0])]).expect_err("the assertion fails");
        assert!(matches!(error, Error::Execution(_)));
        assert_eq!(error.to_string(), "x is positive");
    }

    #[test]
    fn plans_that_are_wrong_are_errors() {
        for (func, slot, message) in [
            ("double", ArgSource::Input(1), "`double` uses Input(1)"),
            ("double", ArgSource::Output(2), "`double` uses Output(2)"),
            ("double", ArgSource::Constant(1), "`double` uses Constant(1)"),
            ("double", ArgSource::Value(128), "`double` uses Value(128)"),
            ("other", ArgSource::Input(0), "no kernel for the function `other`"),
        ] {
            let mut plan = example();
            plan.steps.push(step(func, &[slot]));
            let error = link(plan, 1).map(drop).expect_err(message);
            assert_eq!(error.to_string(), format!("the memory plan is wrong: {message}"));
        }
    }
}
