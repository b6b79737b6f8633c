//! DLPack: tensors that libraries hand to one another in capsules.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, intern};
use tilewright_driver::{DType, Error};
use tilewright_ir::TypeKind;

use crate::error::Result;

/// `DLDataType`.
#[repr(C)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DlType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct DlManaged {
    tensor: DlTensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManaged)>,
}

/// A tensor that was taken out of its capsule.
pub struct Taken(NonNull<DlManaged>);

// SAFETY: DLPack lets a consumer delete a tensor from any thread; nothing else is done with it.
unsafe impl Send for Taken {}
// SAFETY: as above; it is only read.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // The deleter of an array of Python needs the lock of the interpreter.
        Python::attach(|_| {
            // SAFETY: the tensor was taken out of its capsule, so that it is deleted here only.
            unsafe {
                if let Some(delete) = self.0.as_ref().deleter {
                    delete(self.0.as_ptr());
                }
            }
        });
    }
}

/// The kind and the number of the device that a tensor of a library is on; `None` for what speaks no DLPack.
pub fn device_of(obj: &Bound<'_, PyAny>) -> Result<Option<(i32, i32)>> {
    let py = obj.py();
    if obj.getattr_opt(intern!(py, "__dlpack__"))?.is_none() {
        return Ok(None);
    }
    Ok(Some(obj.call_method0(intern!(py, "__dlpack_device__"))?.extract()?))
}

/// A tensor of a library.
pub struct Foreign {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Whether its elements lie row after row.
    pub is_contiguous: bool,
    pub data: *mut c_void,
    pub byte_offset: u64,
    /// What keeps its memory.
    pub owner: Arc<Taken>,
}

/// Takes a tensor of a library; `what` it is for is for messages. One on a GPU is there for who works in the order of a
/// stream.
pub fn take(obj: &Bound<'_, PyAny>, what: &str, stream: Option<u64>) -> Result<Foreign> {
    let py = obj.py();
    let kwargs = PyDict::new(py);
    if let Some(stream) = stream {
        kwargs.set_item(intern!(py, "stream"), stream)?;
    }
    let capsule = obj.call_method(intern!(py, "__dlpack__"), (), Some(&kwargs))?;
    let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
    // SAFETY: a capsule of this name holds a `DLManagedTensor`. Under the name `used_dltensor` its
    // own destructor leaves the tensor to who took it.
    let taken = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME);
        let Some(pointer) = NonNull::new(pointer.cast::<DlManaged>()) else {
            return Err(PyErr::fetch(py).into());
        };
        if ffi::PyCapsule_SetName(capsule.as_ptr(), c"used_dltensor".as_ptr()) != 0 {
            return Err(PyErr::fetch(py).into());
        }
        Taken(pointer)
    };
    // SAFETY: the tensor is alive as long as `taken`; DLPack says what its fields are.
    let DlTensor { data, ndim, dtype, shape, strides, byte_offset, .. } =
        unsafe { &taken.0.as_ref().tensor };
    let kind = match dtype.code {
        0 => TypeKind::Int,
        1 => TypeKind::UInt,
        2 => TypeKind::Float,
        4 => TypeKind::BFloat,
        6 => TypeKind::Bool,
        code => return Err(unsupported(what, &format!("the DLPack code {code}")).into()),
    };
    let bits = if kind == TypeKind::Bool { 1 } else { dtype.bits };
    let own = DType { kind, bits, lanes: dtype.lanes };
    if !KNOWN.contains(&own) {
        return Err(unsupported(what, &own.to_string()).into());
    }
    let rank = usize::try_from(*ndim).unwrap_or(0);
    let list = |p: *const i64| match rank {
        0 => &[][..],
        // SAFETY: there are as many numbers as axes.
        _ => unsafe { std::slice::from_raw_parts(p, rank) },
    };
    let extents: Option<Vec<usize>> =
        list(*shape).iter().map(|d| usize::try_from(*d).ok()).collect();
    let shape = extents.ok_or_else(|| Error::input(format!("{what} has a negative extent")))?;
    let is_contiguous = strides.is_null() || shape.contains(&0) || {
        let mut expected = 1;
        list(*strides).iter().zip(&shape).rev().all(|(stride, extent)| {
            let fits = *extent == 1 || *stride == expected;
            expected *= *extent as i64;
            fits
        })
    };
    let (data, byte_offset) = (*data, *byte_offset);
    Ok(Foreign { dtype: own, shape, is_contiguous, data, byte_offset, owner: Arc::new(taken) })
}

/// The types of elements that tensors of both have.
const KNOWN: [DType; 13] = [
    DType::BOOL,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::BF16,
];

fn unsupported(what: &str, found: &str) -> Error {
    Error::input(format!("{what} has elements of type {found}, which is not supported"))
}

/// The name of a capsule that nobody took a tensor out of.
const NAME: *const c_char = c"dltensor".as_ptr();

/// A tensor for others: where it is, and what keeps it there.
struct Given<T> {
    managed: DlManaged,
    _shape: Vec<i64>,
    _owner: T,
}

/// A capsule with a tensor, whose elements lie row after row, on a device; `owner` keeps its memory.
pub fn give<'py, T: Send + 'static>(
    py: Python<'py>,
    dtype: DType,
    extents: &[usize],
    device: (i32, i32),
    (data, byte_offset): (u64, u64),
    owner: T,
) -> Result<Bound<'py, PyAny>> {
    let code = match dtype.kind {
        TypeKind::Int => 0,
        TypeKind::UInt => 1,
        TypeKind::Float => 2,
        TypeKind::BFloat => 4,
        TypeKind::Bool => 6,
        _ => return Err(unsupported("a tensor", &dtype.to_string()).into()),
    };
    // A truth is a byte.
    let bits = if code == 6 { 8 } else { dtype.bits };
    let shape: Vec<i64> = extents.iter().map(|n| *n as i64).collect();
    let tensor = DlTensor {
        data: std::ptr::with_exposed_provenance_mut(data as usize),
        device_type: device.0,
        device_id: device.1,
        ndim: shape.len() as i32,
        dtype: DlType { code, bits, lanes: 1 },
        shape: shape.as_ptr(),
        strides: std::ptr::null(),
        byte_offset,
    };
    let managed =
        DlManaged { tensor, manager: std::ptr::null_mut(), deleter: Some(delete_given::<T>) };
    let given = Box::into_raw(Box::new(Given { managed, _shape: shape, _owner: owner }));
    // SAFETY: the box is a valid tensor until its deleter runs, once: by who took it, or by the capsule.
    unsafe {
        (*given).managed.manager = given.cast();
        let tensor: *mut DlManaged = &raw mut (*given).managed;
        let capsule = ffi::PyCapsule_New(tensor.cast(), NAME, Some(delete_capsule));
        match Bound::from_owned_ptr_or_opt(py, capsule) {
            Some(capsule) => Ok(capsule),
            None => {
                delete_given::<T>(tensor);
                Err(PyMemoryError::new_err("a capsule for a tensor").into())
            }
        }
    }
}

unsafe extern "C" fn delete_given<T>(tensor: *mut DlManaged) {
    // SAFETY: `give` made the box, and DLPack deletes a tensor once.
    drop(unsafe { Box::from_raw((*tensor).manager.cast::<Given<T>>()) });
}

unsafe extern "C" fn delete_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python gives the capsule that is going; one of another name has lost its tensor to who took it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME) == 0 {
            return;
        }
        let tensor = ffi::PyCapsule_GetPointer(capsule, NAME).cast::<DlManaged>();
        if let Some(delete) = (*tensor).deleter {
            delete(tensor);
        }
    }
}
