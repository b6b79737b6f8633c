//! Types and constants of the IR as C has them: OpenCL C's names, which CUDA's prelude defines.
//!
//! | type | value | memory |
//! |---|---|---|
//! | `bool` | `bool` | `uchar`, 0 or 1 |
//! | integers | `char`, `ushort`, `int`, `ulong`, ... | the same |
//! | `float32`, `float64` | `float`, `double` | the same |
//! | `float16`, `bfloat16` | `float`, always rounded to the type | `ushort` |

use tilewright_ir::{DType, Error, Result, TypeKind};

/// The type of a value.
///
/// # Errors
/// [`Error::Unsupported`] for what a device has no values of.
pub(super) fn value(dtype: DType) -> Result<&'static str> {
    Ok(match (dtype.kind, dtype.bits) {
        (TypeKind::Bool, _) => "bool",
        (TypeKind::Int, 8) => "char",
        (TypeKind::Int, 16) => "short",
        (TypeKind::Int, 32) => "int",
        (TypeKind::Int, 64) => "long",
        (TypeKind::UInt, 8) => "uchar",
        (TypeKind::UInt, 16) => "ushort",
        (TypeKind::UInt, 32) => "uint",
        (TypeKind::UInt, 64) => "ulong",
        (TypeKind::Float, 16 | 32) | (TypeKind::BFloat, 16) => "float",
        (TypeKind::Float, 64) => "double",
        _ => return Err(Error::unsupported(format!("a device has no values of type {dtype}"))),
    })
}

/// The type of an element in memory.
///
/// # Errors
/// As [`value`].
pub(super) fn memory(dtype: DType) -> Result<&'static str> {
    Ok(match value(dtype)? {
        "bool" => "uchar",
        "float" if dtype.bits == 16 => "ushort",
        name => name,
    })
}

/// The unsigned integer of the width of one.
pub(super) fn unsigned(dtype: DType) -> DType {
    DType { kind: TypeKind::UInt, ..dtype.scalar() }
}

/// Whether values are held as `float`, so that every result has to be rounded.
pub(super) fn narrow(dtype: DType) -> Option<&'static str> {
    match (dtype.kind, dtype.bits) {
        (TypeKind::BFloat, 16) => Some("bf16"),
        (TypeKind::Float, 16) => Some("f16"),
        _ => None,
    }
}

/// An integer constant.
pub(super) fn int(v: i64, dtype: DType) -> String {
    match (dtype.kind, dtype.bits) {
        (TypeKind::UInt, 64) => format!("{}UL", v as u64),
        (TypeKind::UInt, 32) => format!("{}u", v as u32),
        (_, 64) if v == i64::MIN => "(-9223372036854775807L - 1)".to_owned(),
        (_, 64) if v < 0 => format!("({v}L)"),
        (_, 64) => format!("{v}L"),
        _ if v == i64::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
        _ if v < 0 => format!("({v})"),
        _ => v.to_string(),
    }
}

/// A floating-point constant, whose value the type has.
pub(super) fn float(v: f64, dtype: DType) -> String {
    let sign = if v.is_sign_negative() { "-" } else { "" };
    let double = dtype.bits == 64;
    if v.is_nan() {
        return if double { "((double)NAN)" } else { "NAN" }.to_owned();
    }
    if v.is_infinite() {
        let of = if double { "(double)" } else { "" };
        return format!("({sign}{of}INFINITY)");
    }
    if double { format!("({v:?})") } else { format!("({:?}f)", v as f32) }
}
