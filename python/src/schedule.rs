//! Schedules: the table of primitives, and the one call that runs any of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tilewright::schedule::{BlockRef, LoopRef, Permissions, Value};
use tilewright_driver::schedule_script;
use tilewright_ir::Source;
use tilewright_schedule::signature::{Given, Signature};
use tilewright_schedule::table;

use crate::error::Result;
use crate::expr::{Expr, Lambda};
use crate::module::Module;
use crate::work::away;

/// A module under a schedule.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Schedule(Mutex<tilewright::schedule::Schedule>);

/// A block.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Block(BlockRef);

#[pymethods]
impl Block {
    /// The function that it is in.
    #[getter]
    fn function(&self) -> &str {
        &self.0.func
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    fn __repr__(&self) -> String {
        format!("Block({:?}, function={:?})", self.0.name, self.0.func)
    }

    fn __eq__(&self, other: &Block) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash(&self.0)
    }
}

/// A loop.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Loop(LoopRef);

#[pymethods]
impl Loop {
    /// The function that it is in.
    #[getter]
    fn function(&self) -> &str {
        &self.0.func
    }

    /// The name of its variable.
    #[getter]
    fn name(&self) -> &str {
        self.0.var.name()
    }

    fn __repr__(&self) -> String {
        format!("Loop({:?}, function={:?})", self.0.var.name(), self.0.func)
    }

    fn __eq__(&self, other: &Loop) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash(&self.0)
    }
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// An object as a value of a schedule.
fn value(obj: &Bound<'_, PyAny>) -> Result<Value> {
    if obj.is_none() {
        return Ok(Value::None);
    }
    if let Ok(b) = obj.cast::<PyBool>() {
        return Ok(Value::Bool(b.is_true()));
    }
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(Value::Str(s.to_string().into()));
    }
    if let Ok(x) = obj.cast::<PyFloat>() {
        return Ok(Value::Float(x.value()));
    }
    if let Ok(b) = obj.cast::<Block>() {
        return Ok(Value::Block(b.get().0.clone()));
    }
    if let Ok(l) = obj.cast::<Loop>() {
        return Ok(Value::Loop(l.get().0.clone()));
    }
    if let Ok(l) = obj.cast::<Lambda>() {
        return Ok(Value::Lambda(l.get().0.clone()));
    }
    if let Ok(e) = obj.cast::<Expr>() {
        return Ok(Value::Expr(e.get().0.clone()));
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        let items = obj.try_iter()?.map(|item| value(&item?));
        return Ok(Value::List(items.collect::<Result<_>>()?));
    }
    if obj.is_instance_of::<PyInt>() || obj.hasattr("__index__")? {
        return Ok(Value::Int(obj.extract()?));
    }
    let name = obj.get_type().name()?;
    Err(PyTypeError::new_err(format!("a schedule takes no {name}")).into())
}

/// A value of a schedule as an object.
fn object<'py>(py: Python<'py>, value: Value) -> Result<Bound<'py, PyAny>> {
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Bool(v) => v.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(v) => v.into_pyobject(py)?.into_any(),
        Value::Float(v) => v.into_pyobject(py)?.into_any(),
        Value::Str(s) => s.into_pyobject(py)?.into_any(),
        Value::Expr(e) => Bound::new(py, Expr(e))?.into_any(),
        Value::Block(b) => Bound::new(py, Block(b))?.into_any(),
        Value::Loop(l) => Bound::new(py, Loop(l))?.into_any(),
        Value::Lambda(l) => Bound::new(py, Lambda(l))?.into_any(),
        Value::List(items) => {
            let items = items.into_iter().map(|v| object(py, v)).collect::<Result<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        other => {
            let message = format!("a schedule gives {}, which is no object", other.describe());
            return Err(PyTypeError::new_err(message).into());
        }
    })
}

impl Schedule {
    fn lock(&self) -> MutexGuard<'_, tilewright::schedule::Schedule> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Schedule {
    #[new]
    fn new(py: Python<'_>, module: &Module, change_interface: bool) -> Result<Schedule> {
        let permissions = Permissions { change_interface };
        let module = module.get(py)?.clone();
        Ok(Schedule(Mutex::new(tilewright::schedule::Schedule::new(module, permissions))))
    }

    /// Calls a primitive by its name.
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, PyAny>> {
        let primitive = table::find(name)?;
        let given = |obj: &Bound<'_, PyAny>| Ok(Given::from(value(obj)?));
        let positional = args.iter().map(|arg| given(&arg)).collect::<Result<Vec<Given>>>()?;
        let mut named = Vec::new();
        for (name, arg) in kwargs {
            named.push((name.extract::<String>()?.into(), given(&arg)?));
        }
        // Without the lock of the interpreter: a function of indices takes it when it is asked.
        let outputs = away(py, || {
            let mut schedule = self.lock();
            let asked = || primitive.call(&mut schedule, positional, named);
            let budget = tilewright_polyhedral::budget::PER_FUNCTION;
            let (outputs, _) = tilewright_polyhedral::budget::within(name, budget, asked);
            outputs.map_err(|e| match &schedule.module().source {
                Some(source) => e.in_source(source),
                None => e,
            })
        })?;
        let mut objects = Vec::new();
        for output in outputs {
            objects.push(object(py, output)?);
        }
        Ok(match objects.len() {
            _ if primitive.signature.returns.is_list() => PyList::new(py, objects)?.into_any(),
            0 => py.None().into_bound(py),
            _ => objects.swap_remove(0),
        })
    }

    /// Runs a schedule script.
    fn run_script(&self, py: Python<'_>, text: &str, name: &str) -> Result<()> {
        let source = Source::new(name, text);
        away(py, || {
            let mut schedule = self.lock();
            schedule_script::apply(&mut schedule, &source, |_, _| Ok(()))
        })?;
        Ok(())
    }

    /// The names of the blocks that access a buffer of a function, those that compute it first.
    fn blocks_of(&self, function: &str, buffer: &str) -> Result<Vec<String>> {
        let mut blocks = self.lock().blocks_of(function, buffer)?;
        // A block that computes a tensor has its name.
        blocks.sort_by_key(|name| **name != *buffer);
        Ok(blocks.iter().map(|name| name.to_string()).collect())
    }

    /// The module as it is now.
    fn module(&self, py: Python<'_>) -> Module {
        Module::of(away(py, || self.lock().module().clone()))
    }

    /// What was done, as a script.
    fn trace(&self, py: Python<'_>) -> String {
        away(py, || self.lock().trace().to_string())
    }
}

/// An argument: its names, whether it takes the rest, what may be given, its default as text.
type Parameter = (Vec<&'static str>, bool, String, Option<String>);

/// A primitive: name, other names, summary, arguments, switches, what it returns, whether that is a
/// list.
type Row = (
    &'static str,
    &'static [&'static str],
    String,
    Vec<Parameter>,
    Vec<(&'static str, bool)>,
    &'static str,
    bool,
);

/// The table of primitives.
#[pyfunction]
pub fn primitives() -> Vec<Row> {
    let row = |p: &'static Signature| {
        let params = p
            .params
            .iter()
            .map(|x| (x.names.to_vec(), x.rest, x.takes(), x.default().map(|v| v.to_string())));
        let flags = p.flags.iter().map(|f| (f.name, f.default));
        let (params, flags) = (params.collect(), flags.collect());
        (p.name, p.aliases, p.summary(), params, flags, p.returns.text(), p.returns.is_list())
    };
    table::signatures().map(row).collect()
}
