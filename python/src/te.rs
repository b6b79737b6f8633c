//! Tensor expressions: the classes behind `tilewright.te`.

use std::sync::Mutex;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilewright::te::{self, Body, Reducer};
use tilewright_driver::{DType, Error};
use tilewright_ir::Buffer;

use crate::error::Result;
use crate::expr::{Expr, tree};
use crate::module::Module;

/// A tensor: an input, or what an expression computes.
#[pyclass(frozen, module = "tilewright._native", from_py_object)]
#[derive(Clone)]
pub struct Tensor(pub te::Tensor);

/// The tensor that stages write, as they see it.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Output(Buffer);

/// A range that a stage runs over.
#[pyclass(frozen, module = "tilewright._native", from_py_object)]
#[derive(Clone)]
pub struct Axis(te::Axis);

/// Values that are combined along axes.
#[pyclass(frozen, module = "tilewright._native", from_py_object)]
#[derive(Clone)]
pub struct Reduction(te::Reduction);

/// A loop nest that writes a part of a tensor.
#[pyclass(frozen, module = "tilewright._native", from_py_object)]
#[derive(Clone)]
pub struct Stage(te::Stage);

/// The element of a buffer at indices: one, or a tuple.
fn element(buffer: &Buffer, indices: &Bound<'_, PyAny>) -> Result<Expr> {
    let one = |i: &Bound<'_, PyAny>| {
        let index = tree(i, DType::I32)?;
        if index.dtype().is_int() {
            Ok(index)
        } else {
            Err(PyTypeError::new_err(format!("an index of type {}", index.dtype())).into())
        }
    };
    let list = match indices.cast::<PyTuple>() {
        Ok(several) => several.iter().map(|i| one(&i)).collect::<Result<Vec<_>>>()?,
        Err(_) => match indices.cast::<PyList>() {
            Ok(several) => several.iter().map(|i| one(&i)).collect::<Result<Vec<_>>>()?,
            Err(_) => vec![one(indices)?],
        },
    };
    let rank = buffer.rank();
    if list.len() != rank {
        let what =
            format!("`{}` has {rank} axes, and was given {} indices", buffer.name, list.len());
        return Err(Error::input(what).into());
    }
    Ok(Expr(buffer.load(list)))
}

#[pymethods]
impl Tensor {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        // Sizes given from Python are numbers.
        PyTuple::new(py, self.0.shape().iter().map(|d| d.known().unwrap_or(0)))
    }

    /// Type of the elements.
    #[getter]
    fn dtype(&self) -> String {
        self.0.dtype().to_string()
    }

    fn __getitem__(&self, indices: &Bound<'_, PyAny>) -> Result<Expr> {
        element(self.0.buffer(), indices)
    }

    fn __repr__(&self) -> String {
        format!("Tensor({:?}, {:?}, {:?})", self.0.name(), self.0.shape(), self.dtype())
    }
}

#[pymethods]
impl Output {
    fn __getitem__(&self, indices: &Bound<'_, PyAny>) -> Result<Expr> {
        element(&self.0, indices)
    }
}

#[pymethods]
impl Axis {
    /// Its position.
    #[getter]
    fn expr(&self) -> Expr {
        Expr(self.0.expr())
    }

    /// Number of positions.
    #[getter]
    fn extent(&self) -> usize {
        self.0.extent().known().unwrap_or(0)
    }
}

/// An input.
#[pyfunction]
pub fn placeholder(name: &str, shape: Vec<usize>, dtype: &str) -> Result<Tensor> {
    Ok(Tensor(te::placeholder(name, &shape, dtype.parse::<DType>()?)))
}

/// An axis: `spatial`, `reduce` or `scan`.
#[pyfunction]
pub fn te_axis(extent: usize, name: &str, kind: &str) -> Result<Axis> {
    Ok(Axis(match kind {
        "spatial" => te::axis(extent, name),
        "reduce" => te::reduce_axis(extent, name),
        "scan" => te::scan_axis(extent, name),
        _ => return Err(Error::internal(format!("an axis of kind {kind}")).into()),
    }))
}

/// Combines a value along axes.
#[pyfunction]
pub fn te_reduce(how: &str, value: &Bound<'_, PyAny>, axes: Vec<Axis>) -> Result<Reduction> {
    let reducer = match how {
        "sum" => Reducer::Sum,
        "prod" => Reducer::Prod,
        "max" => Reducer::Max,
        "min" => Reducer::Min,
        _ => return Err(Error::internal(format!("a reduction by {how}")).into()),
    };
    let value = tree(value, DType::F32)?;
    Ok(Reduction(te::reduce(reducer, value, axes.iter().map(|a| &a.0))))
}

fn body(obj: &Bound<'_, PyAny>) -> Result<Body> {
    match obj.cast::<Reduction>() {
        Ok(r) => Ok(Body::Reduce(r.get().0.clone())),
        Err(_) => Ok(Body::Value(tree(obj, DType::F32)?)),
    }
}

/// The tensor whose element at a position of the axes is what the function gives there.
#[pyfunction]
pub fn te_compute(
    py: Python<'_>,
    name: &str,
    axes: Vec<Axis>,
    function: &Bound<'_, PyAny>,
) -> Result<Tensor> {
    let indices = axes.iter().map(|a| Expr(a.0.expr()));
    let indices = PyTuple::new(py, indices.collect::<Vec<Expr>>())?;
    let body = body(&function.call1(indices)?)?;
    let axes: Vec<te::Axis> = axes.into_iter().map(|a| a.0).collect();
    Ok(Tensor(te::compute_over(name, axes, |_| body)))
}

/// A stage that stores a value at indices of a tensor, at each position of its axes.
#[pyfunction]
pub fn te_stage(
    out: &Output,
    axes: Vec<Axis>,
    indices: Vec<Bound<'_, PyAny>>,
    value: &Bound<'_, PyAny>,
) -> Result<Stage> {
    let indices = indices.iter().map(|i| tree(i, DType::I32)).collect::<Result<Vec<_>>>()?;
    let axes: Vec<te::Axis> = axes.into_iter().map(|a| a.0).collect();
    Ok(Stage(te::Stage::new(&out.0, axes, indices, body(value)?)))
}

/// A tensor that several stages write, one after the other.
#[pyfunction]
pub fn te_stages(
    py: Python<'_>,
    name: &str,
    shape: Vec<usize>,
    dtype: &str,
    function: &Bound<'_, PyAny>,
) -> Result<Tensor> {
    let dtype: DType = dtype.parse()?;
    let failed: Mutex<Option<crate::error::Fault>> = Mutex::new(None);
    let tensor = te::stages(name, &shape, dtype, |out| {
        let made = || -> Result<Vec<Stage>> {
            let out = Bound::new(py, Output(out.clone()))?;
            Ok(function.call1((out,))?.extract()?)
        };
        made().map(|stages| stages.into_iter().map(|s| s.0).collect()).unwrap_or_else(|e| {
            *failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(e);
            Vec::new()
        })
    });
    match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(Tensor(tensor)),
    }
}

/// The function that computes the outputs from the inputs, as the only one of a module.
#[pyfunction]
pub fn te_module(name: &str, inputs: Vec<Tensor>, outputs: Vec<Tensor>) -> Result<Module> {
    let inputs = inputs.iter().map(|t| &t.0);
    let func = te::func(inputs, outputs.iter().map(|t| &t.0))?;
    let mut module = tilewright_driver::Module::new();
    module.insert(name, func);
    Ok(Module::of(module))
}
