//! Executables: compiled modules that take and give arrays.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tilewright_driver::saved;
use tilewright_driver::{Error, Tensor};
use tilewright_ir as ir;
use tilewright_ir::list::Item;
use tilewright_runtime::OpenPort;
use tilewright_runtime::plan::Shared;
use tilewright_runtime::pool::cores;

use crate::error::{Result, closed};
use crate::work::away;
use crate::{array, device, options};

/// A port: name, element type, and sizes as numbers or names.
pub type Port = (String, String, Option<Vec<Py<PyAny>>>);

/// A compiled module. Safe from several threads.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Executable {
    /// `None` once it is closed.
    running: Mutex<Option<Arc<tilewright_driver::Executable>>>,
}

/// Sizes as Python has them: numbers, and texts of those that are open.
pub fn sizes(py: Python<'_>, dims: &[ir::Dim]) -> PyResult<Vec<Py<PyAny>>> {
    let size = |d: &ir::Dim| {
        Ok(match d.known() {
            Some(n) => n.into_pyobject(py)?.into_any().unbind(),
            None => d.to_string().into_pyobject(py)?.into_any().unbind(),
        })
    };
    dims.iter().map(size).collect()
}

fn ports(ports: &[OpenPort], py: Python<'_>) -> PyResult<Vec<Port>> {
    let one =
        |p: &OpenPort| Ok((p.name.to_string(), p.dtype.to_string(), Some(sizes(py, &p.shape)?)));
    ports.iter().map(one).collect()
}

/// Outputs as Python has them: one value, or a tuple.
fn result<'py>(py: Python<'py>, mut outputs: Vec<Item>) -> Result<Bound<'py, PyAny>> {
    if outputs.len() == 1 {
        return value(py, outputs.swap_remove(0));
    }
    let values = outputs.into_iter().map(|item| value(py, item)).collect::<Result<Vec<_>>>()?;
    Ok(PyTuple::new(py, values)?.into_any())
}

/// A value as Python has it: an array, a list, or `None`.
fn value(py: Python<'_>, item: Item) -> Result<Bound<'_, PyAny>> {
    match item {
        Item::Tensor(tensor) => array::array(py, tensor),
        Item::Nothing => Ok(py.None().into_bound(py)),
        Item::List(items) => {
            let items = items.iter().map(|item| value(py, item.clone()));
            Ok(PyList::new(py, items.collect::<Result<Vec<_>>>()?)?.into_any())
        }
    }
}

/// Index map, logical and stored extents, what the padding holds.
type Storage = (String, Vec<usize>, Vec<usize>, Option<f64>);

fn storage(stored: &tilewright_runtime::Stored) -> Storage {
    (stored.to_string(), stored.logical.clone(), stored.physical(), stored.pad)
}

fn named<'a>(ports: &'a [OpenPort], name: &str) -> tilewright_driver::Result<&'a OpenPort> {
    let found = ports.iter().find(|port| *port.name == *name);
    found.ok_or_else(|| {
        let names: Vec<String> = ports.iter().map(|port| format!("`{}`", port.name)).collect();
        Error::input(format!("there is no `{name}`"))
            .note(format!("there are: {}", names.join(", ")))
    })
}

/// Whether the memory for an output is that of nothing else, but of the input that it may share it with.
fn is_apart(k: usize, given: &[Option<Tensor>], inputs: &[Tensor], shared: &[Shared]) -> bool {
    let Some(own) = given[k].as_ref().map(|t| t.bytes().as_ptr_range()) else { return false };
    let meets = |t: &Tensor| {
        let other = t.bytes().as_ptr_range();
        own.start < other.end && other.start < own.end
    };
    let of_input = |(i, t): (usize, &Tensor)| {
        let may = shared.contains(&Shared { input: i, output: k });
        !meets(t) || may && t.bytes().as_ptr_range() == own
    };
    inputs.iter().enumerate().all(of_input)
        && given.iter().enumerate().all(|(j, t)| j == k || !t.as_ref().is_some_and(meets))
}

impl Executable {
    pub fn of(executable: tilewright_driver::Executable) -> Executable {
        Executable { running: Mutex::new(Some(Arc::new(executable))) }
    }

    fn get(&self) -> Result<Arc<tilewright_driver::Executable>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone().ok_or_else(|| closed("executable"))
    }
}

/// The executable of the content of a file that [`Module.save`](crate::module::Module) wrote.
#[pyfunction]
#[pyo3(signature = (content, threads=None))]
pub fn open_saved(
    content: &Bound<'_, PyAny>,
    threads: Option<Bound<'_, PyAny>>,
) -> Result<Executable> {
    let py = content.py();
    let threads = threads.map(|given| options::threads(&given)).transpose()?;
    let threads = threads.map(|count| count.unwrap_or_else(cores));
    let content = array::tensor(content, "a compiled model", None)?;
    // SAFETY: who opens a file vouches for it, as for a shared library: the documentation says so.
    let executable = away(py, || unsafe { saved::open(&content, threads) })?;
    Ok(Executable::of(executable))
}

#[pymethods]
impl Executable {
    /// Runs on arrays, by position or by name.
    #[pyo3(signature = (*args, **kwargs))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let executable = self.get()?;
        let inputs = array::inputs(executable.inputs(), args, kwargs)?;
        let outputs = py.detach(|| {
            if executable.outputs().iter().any(OpenPort::is_item) {
                executable.run_items(&inputs)
            } else {
                Ok(executable.run(&inputs)?.into_iter().map(Item::Tensor).collect())
            }
        })?;
        result(py, outputs)
    }

    /// Runs on a device, on arrays and tensors that are there, and leaves the outputs there.
    #[pyo3(signature = (*args, **kwargs))]
    fn run_on_device(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Result<Vec<device::DeviceTensor>> {
        device::run(&*self.get()?, args, kwargs)
    }

    /// Runs on arrays by position and by name, and writes the outputs, where it can, into the arrays that are
    /// given for them. Gives for each output `None` where it did, else its value.
    fn run_into<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        outs: Vec<Option<Bound<'py, PyAny>>>,
    ) -> Result<Vec<Option<Bound<'py, PyAny>>>> {
        let executable = self.get()?;
        let inputs = array::inputs(executable.inputs(), args, Some(kwargs))?;
        if executable.outputs().iter().any(OpenPort::is_item) {
            let items = py.detach(|| executable.run_items(&inputs))?;
            return items.into_iter().map(|item| value(py, item).map(Some)).collect();
        }
        let mut given: Vec<Option<Tensor>> =
            outs.iter().map(|out| out.as_ref().and_then(array::written)).collect();
        // Of arrays that are wrong nothing is written into the others either.
        if outs.iter().zip(&given).any(|(out, t)| out.is_some() && t.is_none()) {
            given.fill(None);
        }
        let shared: Vec<Shared> = executable.version(&inputs).shared().collect();
        let alone: Vec<bool> =
            (0..given.len()).map(|k| is_apart(k, &given, &inputs, &shared)).collect();
        given.iter_mut().zip(alone).filter(|(_, alone)| !alone).for_each(|(t, _)| *t = None);
        let places: Vec<Option<*const u8>> =
            given.iter().map(|t| t.as_ref().map(|t| t.bytes().as_ptr())).collect();
        let outputs = py.detach(|| executable.run_taking(inputs, given))?;
        let outputs = outputs.into_iter().enumerate().map(|(k, t)| {
            let is_there = places.get(k).is_some_and(|p| *p == Some(t.bytes().as_ptr()));
            if is_there { Ok(None) } else { array::array(py, t).map(Some) }
        });
        outputs.collect()
    }

    /// Runs some times, and adds up what each step takes: the name of its function and the seconds of
    /// its shortest run.
    #[pyo3(signature = (repeat, args, kwargs))]
    fn profile<'py>(
        &self,
        py: Python<'py>,
        repeat: usize,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Result<Vec<(String, f64)>> {
        let executable = self.get()?;
        let inputs = array::inputs(executable.inputs(), args, kwargs)?;
        let executable = executable.version(&inputs);
        let steps: Vec<_> = executable.steps().collect();
        let best = py.detach(|| {
            let mut outputs = executable.run(&inputs)?;
            let mut best = vec![Duration::MAX; steps.len()];
            let mut times = vec![Duration::ZERO; steps.len()];
            for _ in 0..repeat.max(1) {
                times.fill(Duration::ZERO);
                executable.run_profiled(&inputs, &mut outputs, &mut times)?;
                best.iter_mut().zip(&times).for_each(|(best, time)| *best = (*best).min(*time));
            }
            Ok::<_, tilewright_driver::Error>(best)
        })?;
        let names = steps.iter().map(|step| step.func.to_string());
        Ok(names.zip(best.iter().map(Duration::as_secs_f64)).collect())
    }

    /// Says how large what no input says is, for later runs.
    fn give(&self, name: &str, size: usize) -> Result<()> {
        Ok(self.get()?.give(name, size)?)
    }

    /// Name, element type and sizes of each input.
    fn inputs(&self, py: Python<'_>) -> Result<Vec<Port>> {
        Ok(ports(self.get()?.inputs(), py)?)
    }

    /// The same of each output.
    fn outputs(&self, py: Python<'_>) -> Result<Vec<Port>> {
        Ok(ports(self.get()?.outputs(), py)?)
    }

    /// How each input and each output is stored; `None` where that is as the model has it.
    fn storage(&self) -> Result<[Vec<Option<Storage>>; 2]> {
        let executable = self.get()?;
        let of =
            |ports: &[OpenPort]| ports.iter().map(|p| Some(storage(p.stored.as_ref()?))).collect();
        Ok([of(executable.inputs()), of(executable.outputs())])
    }

    /// An array of the model's shape as an input takes it.
    fn store<'py>(&self, name: &str, value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let executable = self.get()?;
        let port = named(executable.inputs(), name)?;
        let tensor = array::tensor(value, &format!("input `{name}`"), Some(port.dtype))?;
        let stored = port.stored.as_ref().map(|stored| stored.store(&tensor)).transpose()?;
        array::array(value.py(), stored.unwrap_or(tensor))
    }

    /// The array of the model's shape that an output holds.
    fn load<'py>(&self, name: &str, value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let executable = self.get()?;
        let port = named(executable.outputs(), name)?;
        let tensor = array::tensor(value, &format!("output `{name}`"), Some(port.dtype))?;
        let loaded = port.stored.as_ref().map(|stored| stored.load(&tensor)).transpose()?;
        array::array(value.py(), loaded.unwrap_or(tensor))
    }

    /// Threads of a run.
    fn threads(&self) -> Result<usize> {
        Ok(self.get()?.threads())
    }

    /// Bytes of intermediate results, where no size is open, and of constants.
    fn memory(&self) -> Result<(Option<usize>, usize)> {
        let executable = self.get()?;
        let plan = executable.plan();
        let arena = if plan.is_fixed() { Some(plan.at(&[])?.arena_bytes) } else { None };
        Ok((arena, plan.constants.iter().map(|t| t.bytes().len()).sum()))
    }

    /// Gives its memory back once the runs that go on have ended.
    fn close(&self) {
        let closed = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(closed);
    }

    /// Whether it was closed.
    fn closed(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}
