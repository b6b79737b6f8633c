//! Tensors in memory of a device, as Python has them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright_driver::{DType, Executable};
use tilewright_runtime::{DeviceTensor as Inner, Operand};

use crate::error::Result;
use crate::{array, dlpack};

/// A tensor in memory of a device.
#[pyclass(frozen, module = "tilewright._native")]
pub struct DeviceTensor {
    inner: Inner,
}

#[pymethods]
impl DeviceTensor {
    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.shape())
    }

    /// The name of the type of its elements.
    #[getter]
    fn dtype(&self) -> String {
        self.inner.dtype().to_string()
    }

    /// A copy in memory of the processor.
    fn numpy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let tensor = py.detach(|| self.inner.to_host())?;
        array::array(py, tensor)
    }

    /// The kind and the number of its device, as DLPack has them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let identity = self.inner.identity();
        (identity.kind, identity.number)
    }

    /// A capsule with the tensor; whatever was to be computed is there.
    #[pyo3(signature = (**_how))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        _how: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let inner = self.inner.clone();
        let place = py.detach(|| inner.exported())?;
        let (dtype, shape) = (inner.dtype(), inner.shape().to_vec());
        dlpack::give(py, dtype, &shape, self.__dlpack_device__(), place, inner)
    }

    fn __repr__(&self) -> String {
        let (kind, number) = self.__dlpack_device__();
        let name = match kind {
            2 => "cuda",
            4 => "opencl",
            _ => "device",
        };
        let (dtype, shape) = (self.inner.dtype(), self.inner.shape());
        format!("<DeviceTensor: {dtype}{shape:?} on {name}:{number}>")
    }
}

/// What an executable on a device takes for an input: what is on that device stays there.
fn operand(
    executable: &Executable,
    obj: &Bound<'_, PyAny>,
    what: &str,
    like: Option<DType>,
) -> Result<Operand> {
    if let Ok(own) = obj.cast::<DeviceTensor>() {
        return Ok(Operand::Device(own.get().inner.clone()));
    }
    let Some(device) = executable.device() else {
        return array::tensor(obj, what, like).map(Operand::Host);
    };
    let identity = device.identity();
    if dlpack::device_of(obj)? != Some((identity.kind, identity.number)) {
        return array::tensor(obj, what, like).map(Operand::Host);
    }
    let taken = dlpack::take(obj, what, identity.stream)?;
    if !taken.is_contiguous {
        let plain = obj.call_method0("contiguous")?;
        return operand(executable, &plain, what, like);
    }
    let place = (taken.data.expose_provenance() as u64, taken.byte_offset);
    // SAFETY: the library says that so many elements lie there, and keeps them as long as its tensor is not deleted.
    let inner = unsafe { Inner::foreign(device, place, taken.dtype, &taken.shape, taken.owner) };
    Ok(Operand::Device(inner.map_err(|e| e.context(what.to_owned()))?))
}

/// Runs on arrays and tensors of a device, by position or by name, and leaves the outputs there.
pub fn run(
    executable: &Executable,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Result<Vec<DeviceTensor>> {
    let py = args.py();
    let inputs = array::inputs_as(executable.inputs(), args, kwargs, |obj, what, like| {
        operand(executable, obj, what, like)
    })?;
    let outputs = py.detach(|| executable.run_on_device(&inputs))?;
    Ok(outputs.into_iter().map(|inner| DeviceTensor { inner }).collect())
}
