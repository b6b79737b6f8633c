//! How values of the IR's types are held: in registers, and in memory.
//!
//! | type | register | memory |
//! |---|---|---|
//! | `bool` | `i1` | `i8`, 0 or 1 |
//! | integers of 8, 16, 32, 64 bits | the same | the same |
//! | `float32`, `float64` | `float`, `double` | the same |
//! | `float16`, `bfloat16` | `float`, always rounded to the type | 16 bits |
//! | `handle` | `ptr` | `ptr` |

use tilewright_ir::{Buffer, DType, Error, Result, TypeKind};

use super::code::{Scalar, Ty};

/// The type of a value in registers.
///
/// # Errors
/// [`Error::Unsupported`] for widths that no machine type has, and for `void`.
pub(super) fn register(dtype: DType) -> Result<Ty> {
    let scalar = match (dtype.kind, dtype.bits) {
        (TypeKind::Bool, _) => Scalar::I1,
        (TypeKind::Int | TypeKind::UInt, 8) => Scalar::I8,
        (TypeKind::Int | TypeKind::UInt, 16) => Scalar::I16,
        (TypeKind::Int | TypeKind::UInt, 32) => Scalar::I32,
        (TypeKind::Int | TypeKind::UInt, 64) => Scalar::I64,
        (TypeKind::Float, 16 | 32) | (TypeKind::BFloat, 16) => Scalar::F32,
        (TypeKind::Float, 64) => Scalar::F64,
        (TypeKind::Handle, _) => Scalar::Ptr,
        _ => return Err(Error::unsupported(format!("native code has no values of type {dtype}"))),
    };
    match dtype.lanes {
        0 => Err(Error::malformed(format!("the type {dtype} has no lanes"))),
        lanes => Ok(Ty { scalar, lanes }),
    }
}

/// The type of one lane in memory.
///
/// # Errors
/// As [`register`].
pub(super) fn memory(dtype: DType, native_half: bool) -> Result<Scalar> {
    Ok(match (register(dtype)?.scalar, dtype.kind, dtype.bits) {
        (Scalar::I1, ..) => Scalar::I8,
        (Scalar::F32, TypeKind::Float, 16) if native_half => Scalar::Half,
        (Scalar::F32, _, 16) => Scalar::I16,
        (scalar, ..) => scalar,
    })
}

/// Whether values are held in a wider register type, so that every result has to be rounded.
pub(super) fn is_narrow_float(dtype: DType) -> bool {
    dtype.is_float() && dtype.bits == 16
}

/// Whether an integer type is signed.
pub(super) fn is_signed(dtype: DType) -> bool {
    dtype.kind == TypeKind::Int
}

/// Number of elements of a buffer without strides, where that is constant.
pub(super) fn element_count(b: &Buffer) -> Option<usize> {
    let shape = b.const_shape()?;
    shape
        .iter()
        .try_fold(usize::from(b.dtype().lanes), |n, &d| n.checked_mul(usize::try_from(d).ok()?))
}
