//! The calls of a plan: code, constants and memory, ready to run.
//!
//! Everything that running needs is made once for each set of sizes: the places of all values in an
//! arena, the argument lists of all kernel calls with the places of inputs and outputs left open. A
//! run fills in those places and calls one kernel after the other. It allocates nothing but outputs,
//! unless its sizes are new, or more runs go on at the same time than ever before: each takes an
//! arena of its own, from those that earlier ones left behind. There are at most `max_runs` of them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::plan::Shared;
use crate::{MemoryPlan, OpenPort, Port, Slot, Step};
use tilewright_ir::tensor::{ALIGN, byte_count};
use tilewright_ir::{Error, Result, Tensor};
use tilewright_target::{Code, Device};

use crate::arenas::{Arenas, Fixed, Lease, Memory, broken};
use crate::device_tensor::{DeviceTensor, Operand, Shaped};
use crate::home::{Arena, Home};
use crate::pool::{Pool, cores};

/// Most arenas of one executable, however many cores there are.
const MAX_ARENAS: usize = 64;

/// For so many sets of sizes, the latest ones, plans are kept.
const MAX_PLANS: usize = 16;

/// What is done around the call of a step, which it gets with its number.
type Around<'a> = dyn FnMut(usize, &dyn Fn() -> Result<()>) -> Result<()> + 'a;

/// Inputs whose memory outputs have taken over in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(pub(crate) Vec<Shared>);

impl Taken {
    fn is_output(&self, output: usize) -> bool {
        self.0.iter().any(|shared| shared.output == output)
    }

    /// Where what lies in an input that was taken is now.
    fn slot(&self, slot: Slot) -> Slot {
        let output =
            |input| self.0.iter().find(|shared| shared.input == input).map(|shared| shared.output);
        match slot {
            Slot::Input(i) => output(i).map_or(slot, Slot::Output),
            Slot::InputAt(i, at) => output(i).map_or(slot, |k| Slot::OutputAt(k, at)),
            _ => slot,
        }
    }
}

/// A plan with the functions that it calls.
pub(crate) struct Calls {
    pub(crate) plan: MemoryPlan,
    /// The number of each step's function in the code.
    kernels: Vec<usize>,
    /// Plans for sizes, the latest last. Where no size is open there is one.
    fixed: Mutex<Vec<Arc<Fixed>>>,
    /// Values of the plan's `given` sizes, in order, as far as they are known.
    given: Mutex<Vec<Option<usize>>>,
    pub(crate) arenas: Arenas,
    /// How many runs may go on at the same time: to count cores is to read files of the system.
    pub(crate) max_runs: usize,
    pool: Arc<Pool>,
    code: Arc<dyn Code>,
    home: Home,
}

impl Calls {
    /// Takes the functions of a plan from code, and allocates what they need.
    ///
    /// # Safety
    /// As [`Executable::new`](crate::Executable::new).
    pub(crate) unsafe fn new(
        plan: MemoryPlan,
        code: Arc<dyn Code>,
        pool: Arc<Pool>,
    ) -> Result<Calls> {
        let kernels = plan
            .steps
            .iter()
            .map(|step| kernel_number(&step.func, &*code))
            .collect::<Result<_>>()?;
        plan.check()?;
        let home = Home::new(&*code, &plan.constants)?;
        let given = Mutex::new(vec![None; plan.given.len()]);
        let calls = Calls {
            plan,
            kernels,
            fixed: Mutex::default(),
            given,
            arenas: Arenas::default(),
            max_runs: cores().clamp(2, MAX_ARENAS),
            pool,
            code,
            home,
        };
        if calls.plan.is_fixed() {
            // The first arena, so that what does not fit memory is known now.
            let fixed = calls.fixed_for(&[])?;
            drop(calls.lease(&fixed)?);
        }
        Ok(calls)
    }

    /// Threads that a run uses.
    pub(crate) fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs with the plan for the inputs, and gives the outputs.
    pub(crate) fn run(&self, fixed: &Arc<Fixed>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut outputs = fixed.empty_outputs()?;
        self.call_all(fixed, inputs, &mut outputs, &Taken::default(), |_, call| call())?;
        Ok(outputs)
    }

    /// Runs a piece of a program, which is told some sizes.
    pub(crate) fn run_piece(
        &self,
        inputs: &[Tensor],
        given: &[usize],
        times: Option<&mut [Duration]>,
    ) -> Result<Vec<Tensor>> {
        check("input", &self.plan.inputs, inputs)?;
        let shapes: Vec<&[usize]> = inputs.iter().map(Tensor::shape).collect();
        let fixed = self.fixed_for(&self.plan.solve_given(&shapes, given)?)?;
        let Some(times) = times else { return self.run(&fixed, inputs) };
        let mut outputs = fixed.empty_outputs()?;
        self.call_timed(&fixed, inputs, &mut outputs, times)?;
        Ok(outputs)
    }

    /// Calls every kernel, and adds to `times` how long each step takes.
    pub(crate) fn call_timed(
        &self,
        fixed: &Arc<Fixed>,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
        times: &mut [Duration],
    ) -> Result<()> {
        self.call_all(fixed, inputs, outputs, &Taken::default(), |step, call| {
            let took = self.timed(&mut || call())?;
            if let Some(time) = times.get_mut(step) {
                *time += took;
            }
            Ok(())
        })
    }

    /// The plan for the values of the open sizes: one that is kept, or a new one.
    fn fixed_for(&self, sizes: &[usize]) -> Result<Arc<Fixed>> {
        let mut list = self.lock_fixed();
        if let Some(at) = position_of(&list, sizes) {
            // The latest comes last.
            let fixed = list[at].clone();
            if at + 1 != list.len() {
                list.remove(at);
                list.push(fixed.clone());
            }
            return Ok(fixed);
        }
        drop(list);
        let fixed = Arc::new(Fixed::new(sizes, self.plan.at(sizes)?)?);
        let mut list = self.lock_fixed();
        if position_of(&list, sizes).is_none() {
            if list.len() == MAX_PLANS {
                list.remove(0);
            }
            list.push(fixed.clone());
        }
        Ok(fixed)
    }

    fn lock_fixed(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Fixed>>> {
        self.fixed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan for the shapes of these inputs.
    pub(crate) fn fixed_of<T: Shaped>(&self, inputs: &[T]) -> Result<Arc<Fixed>> {
        check("input", &self.plan.inputs, inputs)?;
        let given = self.given()?;
        // Inputs of the same shapes as last time have the same sizes, which need not be solved for.
        let latest = self.lock_fixed().last().cloned();
        let same = |fixed: &Arc<Fixed>| {
            let mut ports = fixed.plan.inputs.iter().zip(inputs);
            fixed.sizes.ends_with(&given) && ports.all(|(port, x)| port.shape == x.shape())
        };
        if let Some(fixed) = latest.filter(same) {
            return Ok(fixed);
        }
        self.fixed_for(&self.sizes_of(inputs)?)
    }

    /// The values of the open sizes for these inputs.
    pub(crate) fn sizes_of<T: Shaped>(&self, inputs: &[T]) -> Result<Vec<usize>> {
        check("input", &self.plan.inputs, inputs)?;
        let shapes: Vec<&[usize]> = inputs.iter().map(T::shape).collect();
        self.plan.solve_given(&shapes, &self.given()?)
    }

    /// Sets a size that no input says, for later runs.
    ///
    /// # Errors
    /// [`Error::Input`] where there is no such size, or it cannot be that large.
    pub(crate) fn give(&self, name: &str, size: usize) -> Result<()> {
        let at = self.plan.given.iter().position(|v| **v.name() == *name).ok_or_else(|| {
            let names: Vec<String> =
                self.plan.given.iter().map(|v| format!("`{}`", v.name())).collect();
            Error::input(format!("there is no size `{name}` to be given")).note(
                if names.is_empty() {
                    "the shapes of the inputs say all sizes".to_owned()
                } else {
                    format!("what the shapes of the inputs do not say: {}", names.join(", "))
                },
            )
        })?;
        self.plan.check_given(at, size)?;
        self.given.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(size);
        Ok(())
    }

    /// The sizes that no input says.
    fn given(&self) -> Result<Vec<usize>> {
        if self.plan.given.is_empty() {
            return Ok(Vec::new());
        }
        let values = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.plan.given.iter().zip(&*values).map(|(v, value)| {
            value.ok_or_else(|| {
                Error::input(format!("the size `{}` is not given", v.name()))
                    .note("the shapes of the inputs do not say it")
            })
        });
        known.collect()
    }

    /// The memory for a run with a plan.
    fn lease(&self, fixed: &Arc<Fixed>) -> Result<Lease<'_>> {
        self.arenas.lease(fixed, &self.home, self.max_runs)
    }

    /// Calls every kernel through `around`, which gets the number of the step. The plan is the one
    /// for the inputs, but for those whose memory is taken: it is that of their outputs.
    pub(crate) fn call_all(
        &self,
        fixed: &Arc<Fixed>,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
        taken: &Taken,
        mut around: impl FnMut(usize, &dyn Fn() -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        check("output", &self.plan.outputs, outputs)?;
        let ports = fixed.plan.outputs.iter().zip(&*outputs);
        ports.into_iter().try_for_each(|(port, tensor)| check_shape("output", port, tensor))?;
        let mut lease = self.lease(fixed)?;
        let Memory { arena, args, .. } = lease.memory()?;
        if cfg!(debug_assertions) {
            // NaN in every floating-point type: what is read before it is written shows.
            arena.fill(0xff)?;
            let own = outputs.iter_mut().enumerate().filter(|(k, _)| !taken.is_output(*k));
            own.for_each(|(_, output)| output.bytes_mut().fill(0xff));
        }
        match arena {
            Arena::Host(_) => take_addresses(fixed, args, inputs, outputs, taken),
            Arena::Device(memory) => fixed.staging.bring(memory, inputs)?,
        }
        self.call_steps(fixed, args, taken, &mut around)?;
        match arena {
            Arena::Host(_) => Ok(()),
            Arena::Device(memory) => fixed.staging.take(memory, outputs),
        }
    }

    /// The device that kernels run on, if it is one with memory of its own.
    pub(crate) fn device(&self) -> Option<&Arc<dyn Device>> {
        self.home.device()
    }

    /// Runs on a device with the plan for the inputs, and leaves the outputs there. What is there is read where it lies.
    pub(crate) fn run_on_device(
        &self,
        fixed: &Arc<Fixed>,
        inputs: &[Operand],
    ) -> Result<Vec<DeviceTensor>> {
        let device = self.device().ok_or_else(|| {
            Error::input("the model runs on the processor, whose memory arrays are in")
                .help("compile it for a device: `--target opencl`, `--target cuda`")
        })?;
        let ports = &fixed.plan.outputs;
        let outputs = ports.iter().map(|port| DeviceTensor::new(device, port.dtype, &port.shape));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let mut lease = self.lease(fixed)?;
        let Memory { arena, args, .. } = lease.memory()?;
        let Arena::Device(memory) = arena else {
            return Err(Error::internal("a device without an arena on it"));
        };
        let mut places = Vec::with_capacity(inputs.len());
        for (input, at) in inputs.iter().zip(&fixed.staging.inputs) {
            let staged = memory.address() + *at as u64;
            places.push(match input {
                Operand::Host(tensor) => {
                    memory.write(*at, tensor.bytes())?;
                    staged
                }
                Operand::Device(tensor) if !tensor.is_on(device) => {
                    return Err(Error::input("a tensor is in memory of another device"));
                }
                Operand::Device(tensor) if tensor.address().is_multiple_of(ALIGN as u64) => {
                    tensor.address()
                }
                // Kernels read several elements at once.
                Operand::Device(tensor) => {
                    let bytes = byte_count(tensor.dtype(), tensor.shape()).unwrap_or(0);
                    device.copy(staged, tensor.address(), bytes)?;
                    staged
                }
            });
        }
        let staged: Vec<u64> = fixed.open.iter().map(|(place, _)| args[*place]).collect();
        for (place, slot) in &fixed.open {
            args[*place] = match *slot {
                Slot::Input(i) => places[i],
                Slot::InputAt(i, at) => places[i] + at as u64,
                Slot::Output(i) => outputs[i].address(),
                Slot::OutputAt(i, at) => outputs[i].address() + at as u64,
                Slot::Constant(_) | Slot::Arena(_) | Slot::Number(_) => continue,
            };
        }
        let done = self.call_steps(fixed, args, &Taken::default(), &mut |_, call| call());
        // What is read may go as soon as this returns.
        let done = done.and_then(|()| device.finish());
        fixed.open.iter().zip(staged).for_each(|((place, _), staged)| args[*place] = staged);
        done.map(|()| outputs)
    }

    /// Calls every kernel of a plan with its arguments.
    fn call_steps(
        &self,
        fixed: &Fixed,
        args: &[u64],
        taken: &Taken,
        around: &mut Around<'_>,
    ) -> Result<()> {
        let workers = self.pool.workers();
        for (step, (call, &kernel)) in fixed.calls.iter().zip(&self.kernels).enumerate() {
            let Step { idle, unless_shared, .. } = &fixed.plan.steps[step];
            if *idle || unless_shared.is_some_and(|shared| taken.0.contains(&shared)) {
                continue;
            }
            let args = &args[call.clone()];
            // SAFETY: by the contract of `new` the kernel takes these arguments. They point to the
            // constants, to the arena, which no other run has while this one holds the lease, and
            // to the inputs and outputs, whose sizes were checked.
            around(step, &|| unsafe { self.code.call(kernel, args, &workers) })?;
        }
        Ok(())
    }

    /// Whether kernels read inputs and write outputs where they lie.
    pub(crate) fn is_on_host(&self) -> bool {
        self.home.is_host()
    }

    /// How long some work takes, where it is done.
    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        self.home.timed(work)
    }
}

fn kernel_number(name: &str, code: &dyn Code) -> Result<usize> {
    code.find(name).ok_or_else(|| broken(format!("no kernel for the function `{name}`")))
}

fn position_of(list: &[Arc<Fixed>], sizes: &[usize]) -> Option<usize> {
    list.iter().rposition(|f| f.sizes == sizes)
}

/// Puts the addresses of inputs and outputs into the lists of arguments.
fn take_addresses(
    fixed: &Fixed,
    args: &mut [u64],
    inputs: &[Tensor],
    outputs: &mut [Tensor],
    taken: &Taken,
) {
    for (place, slot) in &fixed.open {
        // In range, as `Fixed::new` and the checks of the run have seen.
        let mut output = |i: usize| outputs[i].bytes_mut().as_mut_ptr();
        args[*place] = match taken.slot(*slot) {
            Slot::Input(i) => inputs[i].bytes().as_ptr().expose_provenance() as u64,
            Slot::Output(i) => output(i).expose_provenance() as u64,
            Slot::InputAt(i, at) => {
                let start = inputs[i].bytes().as_ptr();
                start.wrapping_add(at).expose_provenance() as u64
            }
            Slot::OutputAt(i, at) => output(i).wrapping_add(at).expose_provenance() as u64,
            Slot::Constant(_) | Slot::Arena(_) | Slot::Number(_) => continue,
        };
    }
}

/// Whether there are as many tensors as ports, of their types; `what` they are is for the message.
pub(crate) fn check<T: Shaped>(what: &str, ports: &[OpenPort], tensors: &[T]) -> Result<()> {
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
    for (OpenPort { name, dtype, .. }, tensor) in ports.iter().zip(tensors) {
        if tensor.dtype() != *dtype {
            return Err(Error::input(format!(
                "{what} `{name}` has elements of type {dtype}, and was given {}",
                tensor.dtype()
            ))
            .help(format!("convert the tensor to {dtype}")));
        }
    }
    Ok(())
}

/// Whether a tensor has the shape of a port; `what` the port is is for the message.
fn check_shape(what: &str, port: &Port, tensor: &Tensor) -> Result<()> {
    if tensor.shape() == port.shape {
        Ok(())
    } else {
        let text = format!(
            "{what} `{}` has the shape {:?}, and was given {:?}",
            port.name,
            port.shape,
            tensor.shape()
        );
        let error = Error::input(text);
        Err(match &port.stored {
            None => error,
            Some(stored) => error.note(stored.note()),
        })
    }
}
