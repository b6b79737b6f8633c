//! Arrays of Python as tensors, and back.
//!
//! An input is read in place where it is C-contiguous, aligned to its elements and in the byte order
//! of the machine; kernels ask for no more. Anything else is copied by NumPy first. An output is a
//! NumPy array in the memory of its tensor, which lives as long as the array. NumPy arrays are looked
//! at directly, everything else goes through DLPack, or else through `numpy.asarray`.
//!
//! An array that another thread changes during a run is read while it changes, as with NumPy itself.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use numpy::npyffi::{PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use tilewright_driver::{DType, Error, Tensor};
use tilewright_runtime::OpenPort;

use crate::dlpack::{self, Foreign};
use crate::error::Result;

/// A tensor in the memory of an object; `what` it is for is for messages. `like` is the element type
/// of what is no array yet: a number, a list.
pub fn tensor(obj: &Bound<'_, PyAny>, what: &str, like: Option<DType>) -> Result<Tensor> {
    if let Ok(array) = obj.cast::<PyUntypedArray>() {
        return of_numpy(array, what);
    }
    let py = obj.py();
    // A scalar of NumPy speaks DLPack in some versions, and is no memory that can be borrowed.
    let is_scalar = obj.getattr_opt(intern!(py, "ndim"))?.is_some_and(|n| n.eq(0).unwrap_or(false));
    if !is_scalar && obj.getattr_opt(intern!(py, "__dlpack__"))?.is_some() {
        return of_dlpack(obj, what);
    }
    let kwargs = PyDict::new(py);
    if let Some(dtype) = like {
        kwargs.set_item(intern!(py, "dtype"), descriptor(py, dtype)?)?;
    }
    let array = numpy(py)?.call_method(intern!(py, "asarray"), (obj,), Some(&kwargs))?;
    match array.cast::<PyUntypedArray>() {
        Ok(array) => of_numpy(array, what),
        Err(_) => Err(PyTypeError::new_err(format!("{what} is no array")).into()),
    }
}

fn numpy<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let numpy = NUMPY
        .get_or_try_init(py, || py.import("numpy").map(|module| module.into_any().unbind()))?;
    Ok(numpy.bind(py).clone())
}

/// The element type of a NumPy array.
fn dtype_of(descr: &Bound<'_, PyArrayDescr>, what: &str) -> Result<DType> {
    let found = match (descr.kind(), descr.itemsize()) {
        (b'f', 4) => Some(DType::F32),
        (b'f', 8) => Some(DType::F64),
        (b'f', 2) => Some(DType::F16),
        (b'i', 1) => Some(DType::I8),
        (b'i', 2) => Some(DType::I16),
        (b'i', 4) => Some(DType::I32),
        (b'i', 8) => Some(DType::I64),
        (b'u', 1) => Some(DType::U8),
        (b'u', 2) => Some(DType::U16),
        (b'u', 4) => Some(DType::U32),
        (b'u', 8) => Some(DType::U64),
        (b'b', 1) => Some(DType::BOOL),
        (b'V', 2) if descr.str()? == "bfloat16" => Some(DType::BF16),
        _ => None,
    };
    found.ok_or_else(|| {
        let text = descr.str().map(|s| s.to_string()).unwrap_or_default();
        Error::input(format!("{what} has elements of type {text}, which is not supported"))
            .help("types are bool, int8 to int64, uint8 to uint64, float16, float32, float64, bfloat16")
            .into()
    })
}

fn of_numpy(array: &Bound<'_, PyUntypedArray>, what: &str) -> Result<Tensor> {
    let descr = array.dtype();
    let dtype = dtype_of(&descr, what)?;
    // SAFETY: the array is alive, and its fields are what NumPy says they are.
    let data = unsafe { (*array.as_array_ptr()).data }.cast::<u8>();
    let is_plain = array.is_c_contiguous()
        && descr.is_native_byteorder() != Some(false)
        && data.addr().is_multiple_of(dtype.bytes());
    match NonNull::new(data).filter(|_| is_plain) {
        Some(start) => {
            let owner = Arc::new(array.clone().into_any().unbind());
            // SAFETY: an array that is referred to keeps its memory, which holds as many elements of
            // its type as its shape says, one after the other. NumPy writes a `bool` as 0 or 1.
            Ok(unsafe { Tensor::from_foreign(dtype, array.shape(), start, owner) }?)
        }
        None => {
            let py = array.py();
            let kwargs = PyDict::new(py);
            kwargs.set_item(intern!(py, "dtype"), descriptor(py, dtype)?)?;
            kwargs.set_item(intern!(py, "order"), intern!(py, "C"))?;
            kwargs.set_item(intern!(py, "copy"), true)?;
            let copy = numpy(py)?.call_method(intern!(py, "array"), (array,), Some(&kwargs))?;
            let copy = copy.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
            let shape = copy.shape().to_vec();
            // SAFETY: as above; NumPy has made the copy as it was asked to.
            let data = unsafe { (*copy.as_array_ptr()).data }.cast::<u8>();
            let start = NonNull::new(data)
                .ok_or_else(|| PyValueError::new_err("an array at no address"))?;
            let owner = Arc::new(copy.into_any().unbind());
            // SAFETY: as above.
            Ok(unsafe { Tensor::from_foreign(dtype, &shape, start, owner) }?)
        }
    }
}

/// The memory of an array that a run may write an output into; `None` where that is not a plain one of NumPy.
pub fn written(obj: &Bound<'_, PyAny>) -> Option<Tensor> {
    let array = obj.cast::<PyUntypedArray>().ok()?;
    let descr = array.dtype();
    let dtype = dtype_of(&descr, "the array").ok()?;
    // SAFETY: the array is alive, and its fields are what NumPy says they are.
    let (data, flags) = unsafe {
        let fields = array.as_array_ptr();
        ((*fields).data.cast::<u8>(), (*fields).flags)
    };
    let is_plain = array.is_c_contiguous()
        && flags & numpy::npyffi::NPY_ARRAY_WRITEABLE != 0
        && descr.is_native_byteorder() != Some(false)
        && data.addr().is_multiple_of(dtype.bytes());
    let start = NonNull::new(data).filter(|_| is_plain)?;
    let owner = Arc::new(array.clone().into_any().unbind());
    // SAFETY: as in `of_numpy`; who gives an array for an output leaves it alone while it is written.
    unsafe { Tensor::from_foreign_mut(dtype, array.shape(), start, owner) }.ok()
}

/// The descriptor of an element type.
pub fn descriptor<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyArrayDescr>> {
    static BFLOAT16: PyOnceLock<Py<PyArrayDescr>> = PyOnceLock::new();
    Ok(match dtype {
        DType::F32 => numpy::dtype::<f32>(py),
        DType::F64 => numpy::dtype::<f64>(py),
        DType::I8 => numpy::dtype::<i8>(py),
        DType::I16 => numpy::dtype::<i16>(py),
        DType::I32 => numpy::dtype::<i32>(py),
        DType::I64 => numpy::dtype::<i64>(py),
        DType::U8 => numpy::dtype::<u8>(py),
        DType::U16 => numpy::dtype::<u16>(py),
        DType::U32 => numpy::dtype::<u32>(py),
        DType::U64 => numpy::dtype::<u64>(py),
        DType::BOOL => numpy::dtype::<bool>(py),
        DType::BF16 => {
            let found = BFLOAT16.get_or_try_init(py, || {
                let types = py.import("ml_dtypes").map_err(|e| {
                    let error = PyTypeError::new_err(
                        "NumPy has no bfloat16 of its own: `pip install ml_dtypes` adds it",
                    );
                    error.set_cause(py, Some(e));
                    error
                })?;
                PyArrayDescr::new(py, types.getattr("bfloat16")?).map(Bound::unbind)
            });
            found?.bind(py).clone()
        }
        other => PyArrayDescr::new(py, other.to_string())?,
    })
}

/// Keeps the memory of an output for its array.
#[pyclass(frozen)]
struct Owner {
    _tensor: Tensor,
}

/// A tensor as a NumPy array in the same memory.
pub fn array<'py>(py: Python<'py>, mut tensor: Tensor) -> Result<Bound<'py, PyAny>> {
    let descr = descriptor(py, tensor.dtype())?;
    // A tensor whose bytes are shared is copied here, so that the array may be written.
    let data = tensor.bytes_mut().as_mut_ptr();
    let mut dims: Vec<npy_intp> = tensor.shape().iter().map(|d| *d as npy_intp).collect();
    let count = dims.len() as c_int;
    let owner = Bound::new(py, Owner { _tensor: tensor })?;
    // SAFETY: NumPy takes over one reference of the descriptor. The memory holds as many elements as
    // the shape says, and the owner, of which the array takes over one reference, keeps it where it
    // is. Without strides, NumPy takes those of C.
    unsafe {
        let flags = numpy::npyffi::NPY_ARRAY_WRITEABLE
            | numpy::npyffi::NPY_ARRAY_ALIGNED
            | numpy::npyffi::NPY_ARRAY_C_CONTIGUOUS;
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            PY_ARRAY_API.get_type_object(py, numpy::npyffi::NpyTypes::PyArray_Type),
            descr.into_dtype_ptr(),
            count,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            data.cast::<c_void>(),
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let base = owner.into_any().into_ptr();
        match PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) {
            0 => Ok(array),
            _ => Err(PyErr::fetch(py).into()),
        }
    }
}

/// The devices of DLPack whose memory the processor can read: `kDLCPU`, `kDLCUDAHost`, `kDLROCMHost`.
const READABLE: [i32; 3] = [1, 3, 11];

fn of_dlpack(obj: &Bound<'_, PyAny>, what: &str) -> Result<Tensor> {
    let py = obj.py();
    if !dlpack::device_of(obj)?.is_some_and(|(kind, _)| READABLE.contains(&kind)) {
        return Err(Error::input(format!("{what} is not in memory that the CPU can read"))
            .help("move it there first: `.cpu()` of PyTorch, `cupy.asnumpy`")
            .into());
    }
    let Foreign { dtype, shape, is_contiguous, data, byte_offset, owner } =
        dlpack::take(obj, what, None)?;
    let start = data.cast::<u8>().wrapping_add(byte_offset as usize);
    let start = match NonNull::new(start) {
        None if shape.contains(&0) => NonNull::<u64>::dangling().cast(),
        None => return Err(Error::input(format!("{what} is at no address")).into()),
        Some(start) => start,
    };
    if !is_contiguous || !start.as_ptr().addr().is_multiple_of(dtype.bytes()) {
        drop(owner);
        // What its own library lays out in order; NumPy where it has no such method.
        let plain = match obj.getattr_opt(intern!(py, "contiguous"))? {
            Some(method) => method.call0()?,
            None => numpy(py)?.call_method1(intern!(py, "from_dlpack"), (obj,))?,
        };
        return match plain.cast::<PyUntypedArray>() {
            Ok(array) => of_numpy(array, what),
            Err(_) if !plain.is(obj) => of_dlpack(&plain, what),
            Err(_) => {
                Err(PyValueError::new_err(format!("{what} cannot be laid out in order")).into())
            }
        };
    }
    // SAFETY: the tensor has these elements one after the other, as was checked, as long as it is
    // not deleted.
    Ok(unsafe { Tensor::from_foreign(dtype, &shape, start, owner) }?)
}

/// The arrays of a call as the inputs of these names and types, in order.
pub fn inputs(
    ports: &[OpenPort],
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Result<Vec<Tensor>> {
    inputs_as(ports, args, kwargs, tensor)
}

/// The same as whatever a function makes of them: it gets the array, what it is for, and the type that is wanted.
pub fn inputs_as<'py, T>(
    ports: &[OpenPort],
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    taken: impl Fn(&Bound<'py, PyAny>, &str, Option<DType>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut list = Vec::with_capacity(ports.len());
    if args.len() > ports.len() {
        let what = format!("{} arrays were given for {} inputs", args.len(), ports.len());
        return Err(Error::input(what).note(names(ports)).into());
    }
    for (port, obj) in ports.iter().zip(args.iter_borrowed()) {
        list.push(taken(&obj, &format!("input `{}`", port.name), Some(port.dtype))?);
    }
    let mut used = 0;
    for port in &ports[list.len()..] {
        let given = kwargs.map(|k| k.get_item(&*port.name)).transpose()?.flatten();
        let Some(obj) = given else {
            no_unknown(ports, kwargs)?;
            let what = format!("no array was given for input `{}`", port.name);
            return Err(Error::input(what).note(names(ports)).into());
        };
        used += 1;
        list.push(taken(&obj, &format!("input `{}`", port.name), Some(port.dtype))?);
    }
    if kwargs.is_some_and(|k| k.len() > used) {
        no_unknown(ports, kwargs)?;
        for port in &ports[..args.len()] {
            if kwargs.map(|k| k.contains(&*port.name)).transpose()?.unwrap_or(false) {
                let what = format!("input `{}` is given twice", port.name);
                return Err(Error::input(what).into());
            }
        }
    }
    Ok(list)
}

/// The names of inputs, for messages.
fn names(ports: &[OpenPort]) -> String {
    let names: Vec<String> = ports.iter().map(|p| format!("`{}`", p.name)).collect();
    format!("the inputs are: {}", names.join(", "))
}

/// Refuses arrays by names that are no inputs.
fn no_unknown(ports: &[OpenPort], kwargs: Option<&Bound<'_, PyDict>>) -> Result<()> {
    for name in kwargs.into_iter().flat_map(|kwargs| kwargs.keys()) {
        let name: String = name.extract()?;
        if !ports.iter().any(|p| *p.name == *name) {
            let error = Error::input(format!("there is no input `{name}`")).note(names(ports));
            return Err(error.did_you_mean(&name, ports.iter().map(|p| &*p.name)).into());
        }
    }
    Ok(())
}

/// A tensor that owns its bytes: what it is made from may change later.
pub fn owned(obj: &Bound<'_, PyAny>, what: &str) -> Result<Tensor> {
    let borrowed = tensor(obj, what, None)?;
    Ok(Tensor::from_bytes(borrowed.dtype(), borrowed.shape(), borrowed.bytes())?)
}

/// Where an array would be read: its own address, unless it has to be copied.
#[pyfunction]
pub fn address(array: &Bound<'_, PyAny>) -> Result<usize> {
    Ok(tensor(array, "the array", None)?.bytes().as_ptr().addr())
}
