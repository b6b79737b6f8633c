//! Compiled functions on a device: the host's steps, and the calls of kernels.

use std::sync::{Arc, Mutex, PoisonError};
use tilewright_ir::hash::HashMap;

use tilewright_ir::index::{Interval, Ranges};
use tilewright_ir::scalar::{Scalar, to_f64};
use tilewright_ir::visit::Subst;
use tilewright_ir::{DType, Error, Expr, Fold, Lowered, Result, Source, TypeKind, Var};
use tilewright_runtime::parallel;
use tilewright_target::abi::Workers;
use tilewright_target::{Code, Device, DeviceMemory};

use super::{KernelDevice, Value, Work};
use crate::c::{self, Argument, Arithmetic, HostStep, Image, Kernels, Memory, Over};
use crate::cache::ObjectCache;
use crate::emit::MAX_VALUES;

/// A function: what the host does, and the kernels that it calls.
struct Function<D: KernelDevice> {
    name: Arc<str>,
    kernels: Kernels,
    /// In the order of [`Kernels::kernels`]. Held while the steps of a call are put into the queue: kernels
    /// may have one set of arguments, and calls share what the function has of memory.
    objects: Mutex<Vec<D::Kernel>>,
    /// What it has of memory, by the position in [`Kernels::memory`].
    own: Vec<Own<D::Image>>,
}

/// Memory of a function.
enum Own<Image> {
    /// That of a parameter.
    Nothing,
    Memory(DeviceMemory),
    Image(Image),
}

/// Functions on a device.
pub(crate) struct OnDevice<D: KernelDevice> {
    device: Arc<D>,
    functions: Vec<Function<D>>,
    source: Option<Arc<Source>>,
    /// Where assertions leave what failed: zero, as long as none did. Held while a function that asserts
    /// runs.
    failure: Mutex<DeviceMemory>,
}

/// Bytes of what an assertion leaves.
const FAILURE_BYTES: usize = 8 * (1 + MAX_VALUES);

impl<D: KernelDevice> OnDevice<D> {
    /// Compiles functions of a module, and gives each the memory that it always has.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what the device does not have, [`Error::Toolchain`] if its compiler fails,
    /// [`Error::Execution`] where there is not enough memory.
    pub fn new(
        device: Arc<D>,
        arithmetic: Arithmetic,
        module: &Lowered,
        functions: &[Arc<str>],
        cache: &ObjectCache,
    ) -> Result<OnDevice<D>> {
        let made = parallel::map(functions.len(), |k| {
            let name = &functions[k];
            let made = c::kernels(name, module.tensor(name)?, arithmetic);
            let kernels =
                made.map_err(|e| module.source.iter().fold(e, |e, source| e.in_source(source)))?;
            let function = Function::new(&device, name, kernels, cache);
            function.map_err(|e| e.context(format!("function `{name}`")))
        });
        let functions = made.into_iter().collect::<Result<Vec<_>>>()?;
        let shared: Arc<dyn Device> = device.clone();
        let failure = DeviceMemory::new(&shared, FAILURE_BYTES)?;
        failure.fill(0)?;
        let source = module.source.clone();
        Ok(OnDevice { device, functions, source, failure: Mutex::new(failure) })
    }
}

impl<D: KernelDevice> Function<D> {
    fn new(
        device: &Arc<D>,
        name: &Arc<str>,
        kernels: Kernels,
        cache: &ObjectCache,
    ) -> Result<Function<D>> {
        let objects = Mutex::new(device.kernels(&kernels, cache)?);
        let shared: Arc<dyn Device> = device.clone();
        let own = kernels.memory.iter().map(|memory| match memory {
            Memory::Param(_) | Memory::Image(Image { param: Some(_), .. }) => Ok(Own::Nothing),
            Memory::Scratch(bytes) => DeviceMemory::new(&shared, *bytes).map(Own::Memory),
            Memory::Image(image) => device.image(image).map(Own::Image),
            Memory::Constant(tensor) => {
                let memory = DeviceMemory::new(&shared, tensor.bytes().len())?;
                memory.write(0, tensor.bytes())?;
                Ok(Own::Memory(memory))
            }
        });
        let own = own.collect::<Result<_>>()?;
        Ok(Function { name: name.clone(), kernels, objects, own })
    }
}

// SAFETY: lowered functions access nothing outside of their buffers, and the kernels do what they do.
unsafe impl<D: KernelDevice> Code for OnDevice<D> {
    fn find(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|f| *f.name == *name)
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        Some(self.device.clone())
    }

    unsafe fn call(&self, function: usize, args: &[u64], _: &Workers) -> Result<()> {
        let Some(f) = self.functions.get(function) else {
            return Err(Error::internal(format!("there is no function {function}")));
        };
        let values = f.kernels.scalars.iter().map(|(var, at)| {
            let word = args.get(*at).copied().unwrap_or(0);
            (var.clone(), constant(word, var.dtype()))
        });
        let values = values.collect();
        let mut objects = f.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let in_function = |e: Error| e.context(format!("function `{}`", f.name));
        let images;
        let objects = &mut objects;
        let mut run = Run { code: self, f, objects, args, values, failure: 0, images: &[] };
        images = run.access_memory().map_err(in_function)?;
        run.images = &images;
        if f.kernels.assertions.is_empty() {
            return run.steps(&f.kernels.steps).map_err(in_function);
        }
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        run.failure = failure.address();
        run.steps(&f.kernels.steps).map_err(in_function)?;
        let mut words = [0u8; FAILURE_BYTES];
        failure.read(0, &mut words)?;
        if word_at(0, words) == 0 {
            return Ok(());
        }
        failure.write(0, &[0; FAILURE_BYTES])?;
        Err(self.failed(
            f,
            word_at(0, words),
            &std::array::from_fn::<i64, MAX_VALUES, _>(|k| word_at(k + 1, words)),
        ))
    }
}

fn word_at(k: usize, words: [u8; 72]) -> i64 {
    i64::from_ne_bytes(std::array::from_fn(|b| words[8 * k + b]))
}

impl<D: KernelDevice> OnDevice<D> {
    /// The assertion that failed.
    fn failed(&self, f: &Function<D>, code: i64, values: &[i64]) -> Error {
        let at = usize::try_from(code).ok().and_then(|code| code.checked_sub(1));
        let Some(assertion) = at.and_then(|at| f.kernels.assertions.get(at)) else {
            return Error::internal(format!("a kernel of `{}` left {code}", f.name));
        };
        let text = assertion.text(Some(values));
        let error = Error::execution(format!("an assertion of `{}` failed: {text}", f.name));
        match &self.source {
            Some(source) => error.at(assertion.span).in_source(source),
            None => error,
        }
    }
}

/// A constant of a type from the word that a scalar is handed over as.
fn constant(word: u64, dtype: DType) -> Expr {
    match dtype.kind {
        TypeKind::Float if dtype.bits == 32 => {
            Expr::float(f64::from(f32::from_bits(word as u32)), dtype)
        }
        TypeKind::Float | TypeKind::BFloat => Expr::float(to_f64(word, dtype), dtype),
        _ => Expr::int(word as i64, dtype),
    }
}

/// One call of a function.
struct Run<'a, D: KernelDevice> {
    code: &'a OnDevice<D>,
    f: &'a Function<D>,
    objects: &'a mut [D::Kernel],
    args: &'a [u64],
    values: HashMap<Var, Expr>,
    failure: u64,
    /// The images of parameters, by the position in [`Kernels::memory`].
    images: &'a [Option<Arc<D::Image>>],
}

impl<'a, D: KernelDevice> Run<'a, D> {
    fn value(&self, e: &Expr) -> Result<i64> {
        if let Some(value) = e.as_int() {
            return Ok(value);
        }
        let known = self.values.iter().map(|(v, e)| (v.clone(), e.clone()));
        let e = Subst::vars(known).expr(e);
        let ranges = Ranges::default();
        let value = e.as_int().or_else(|| match ranges.interval(&e) {
            Interval { lo, hi } if lo == hi => i64::try_from(lo).ok(),
            _ => None,
        });
        value.ok_or_else(|| Error::unsupported(format!("the host cannot compute `{e}`")))
    }

    /// Says what memory is accessed, and gives the images of parameters.
    fn access_memory(&self) -> Result<Vec<Option<Arc<D::Image>>>> {
        let (device, kernels) = (&self.code.device, &self.f.kernels);
        let address = |param: usize| self.args.get(param).copied().unwrap_or(0);
        if !device.images().is_empty() {
            for access in &kernels.accesses {
                let bytes = self.count(&access.bytes)? as u64;
                device.images().access(&**device, address(access.param), bytes, access.writes)?;
            }
        }
        let images = kernels.memory.iter().map(|memory| match memory {
            Memory::Image(image) => match image.param {
                Some(param) => device.images().lend(&**device, image, address(param)).map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        });
        images.collect()
    }

    fn steps(&mut self, steps: &[HostStep]) -> Result<()> {
        for step in steps {
            match step {
                HostStep::Launch(kernel) => self.launch(*kernel)?,
                HostStep::Loop(var, range, body) => {
                    let (min, extent) = (self.value(&range.min)?, self.value(&range.extent)?);
                    for i in min..min + extent {
                        self.values.insert(var.clone(), Expr::int(i, var.dtype()));
                        self.steps(body)?;
                    }
                }
                HostStep::If(cond, then, otherwise) => {
                    let taken = if self.value(cond)? != 0 { then } else { otherwise };
                    self.steps(taken)?;
                }
                HostStep::Let(var, value, body) => {
                    let value = Expr::int(self.value(value)?, var.dtype());
                    self.values.insert(var.clone(), value);
                    self.steps(body)?;
                }
            }
        }
        Ok(())
    }

    fn count(&self, e: &Expr) -> Result<usize> {
        Ok(self.value(e)?.max(0) as usize)
    }

    fn launch(&mut self, number: usize) -> Result<()> {
        let f = self.f;
        let kernel = &f.kernels.kernels[number];
        let work = match &kernel.over {
            Over::One => Work::Items(1),
            Over::Items(extent) => Work::Items(self.count(extent)?),
            Over::Groups(extents) => {
                let mut groups = [1; 3];
                for (count, extent) in groups.iter_mut().zip(&extents.groups) {
                    *count = extent.as_ref().map_or(Ok(1), |e| self.count(e))?;
                }
                Work::Groups { groups, threads: extents.threads.map(|n| n.max(1) as usize) }
            }
        };
        if work.is_none() {
            return Ok(());
        }
        let arguments = kernel.arguments.iter().map(|argument| self.argument(argument));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        self.code.device.launch(&mut self.objects[number], work, &arguments)
    }

    fn argument(&self, argument: &Argument) -> Result<Value<'a, D::Image>> {
        let f = self.f;
        Ok(match argument {
            Argument::Memory(k) => match (&f.kernels.memory[*k], &f.own[*k]) {
                (_, Own::Image(image)) => Value::Image(image),
                (_, Own::Memory(own)) => Value::Memory(own.address()),
                (Memory::Param(p), _) => Value::Memory(self.args.get(*p).copied().unwrap_or(0)),
                _ => match self.images.get(*k) {
                    Some(Some(image)) => Value::Image(image),
                    _ => return Err(Error::internal(format!("`{}` has no memory", f.name))),
                },
            },
            Argument::Scalar(var) => {
                let value = self.values.get(var).ok_or_else(|| {
                    Error::internal(format!("`{}` has no value on the host", var.name()))
                })?;
                let bits = Scalar::constant(value).map_or(0, |s| s.bits());
                Value::Number(bits.to_le_bytes(), var.dtype().bytes().clamp(1, 8))
            }
            Argument::Failure => Value::Whole(self.failure),
        })
    }
}
