//! Element types: kind, width in bits, and lanes for vector values.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The kind of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeKind {
    /// True or false; one byte in memory.
    Bool,
    /// Signed two's complement.
    Int,
    /// Unsigned.
    UInt,
    /// IEEE 754 binary.
    Float,
    /// bfloat16.
    BFloat,
    /// A pointer.
    Handle,
    /// No value.
    Void,
}

/// The type of a value: `float32`, `int64`, `bool`, `float32x16`, ...
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType {
    /// The kind of each lane.
    pub kind: TypeKind,
    /// Bits of one lane (1 for `bool`, 64 for handles, 0 for void).
    pub bits: u8,
    /// Number of lanes; 1 for scalars.
    pub lanes: u16,
}

macro_rules! named {
    ($($name:ident $text:literal $kind:ident $bits:literal),*) => {
        $(#[doc = concat!("`", stringify!($kind), "` of ", stringify!($bits), " bits.")]
        pub const $name: DType = DType { kind: TypeKind::$kind, bits: $bits, lanes: 1 };)*

        /// The scalar types by their names.
        const NAMED: &[(&str, DType)] = &[$(($text, DType::$name)),*];
    };
}

impl DType {
    named!(BOOL "bool" Bool 1,
        I8 "int8" Int 8, I16 "int16" Int 16, I32 "int32" Int 32, I64 "int64" Int 64,
        U8 "uint8" UInt 8, U16 "uint16" UInt 16, U32 "uint32" UInt 32, U64 "uint64" UInt 64,
        F16 "float16" Float 16, F32 "float32" Float 32, F64 "float64" Float 64,
        BF16 "bfloat16" BFloat 16, HANDLE "handle" Handle 64, VOID "void" Void 0);

    /// The same scalar type with `lanes` lanes.
    pub fn with_lanes(self, lanes: u16) -> Self {
        DType { lanes, ..self }
    }

    /// The type of one lane.
    pub fn scalar(self) -> Self {
        self.with_lanes(1)
    }

    /// Bytes of one lane in memory (a `bool` takes one byte).
    pub fn bytes(self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    /// Signed or unsigned integers; not `bool`.
    pub fn is_int(self) -> bool {
        matches!(self.kind, TypeKind::Int | TypeKind::UInt)
    }

    /// Floating point of any width, `bfloat16` included.
    pub fn is_float(self) -> bool {
        matches!(self.kind, TypeKind::Float | TypeKind::BFloat)
    }

    /// `bool` of any lanes.
    pub fn is_bool(self) -> bool {
        self.kind == TypeKind::Bool
    }

    /// Smallest value of an integer type (`None` for other kinds); `u64` fits as `i128`.
    pub fn min_int(self) -> Option<i128> {
        match self.kind {
            TypeKind::Int => Some(-(1i128 << (self.bits - 1))),
            TypeKind::UInt | TypeKind::Bool => Some(0),
            _ => None,
        }
    }

    /// Largest value of an integer type (`None` for other kinds).
    pub fn max_int(self) -> Option<i128> {
        match self.kind {
            TypeKind::Int => Some((1i128 << (self.bits - 1)) - 1),
            TypeKind::UInt | TypeKind::Bool => Some((1i128 << self.bits) - 1),
            _ => None,
        }
    }

    /// Largest finite value of a floating-point type (`None` for other kinds).
    pub fn max_float(self) -> Option<f64> {
        match (self.kind, self.bits) {
            (TypeKind::Float, 16) => Some(half::f16::MAX.to_f64()),
            (TypeKind::Float, 32) => Some(f64::from(f32::MAX)),
            (TypeKind::Float, 64) => Some(f64::MAX),
            (TypeKind::BFloat, _) => Some(half::bf16::MAX.to_f64()),
            _ => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TypeKind::Bool => f.write_str("bool")?,
            TypeKind::Int => write!(f, "int{}", self.bits)?,
            TypeKind::UInt => write!(f, "uint{}", self.bits)?,
            TypeKind::Float => write!(f, "float{}", self.bits)?,
            TypeKind::BFloat => write!(f, "bfloat{}", self.bits)?,
            TypeKind::Handle => f.write_str("handle")?,
            TypeKind::Void => f.write_str("void")?,
        }
        if self.lanes != 1 { write!(f, "x{}", self.lanes) } else { Ok(()) }
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (scalar, lanes) = match text.rsplit_once('x') {
            Some((s, l)) => (s, l.parse::<u16>().map_err(|_| unknown_dtype(text))?),
            None => (text, 1),
        };
        let named = DType::NAMED.iter().find(|(name, _)| *name == scalar);
        let base = named.ok_or_else(|| unknown_dtype(text))?.1;
        if lanes == 0 {
            return Err(unknown_dtype(text));
        }
        Ok(base.with_lanes(lanes))
    }
}

fn unknown_dtype(text: &str) -> Error {
    Error::syntax(format!("unknown data type `{text}`"))
                .help("data types are bool, int8..int64, uint8..uint64, float16, float32, float64, bfloat16, handle, void, with `xN` for N lanes")
}
