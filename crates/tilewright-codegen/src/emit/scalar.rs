//! The types of single lanes, in LLVM's words.

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scalar {
    I1,
    I8,
    I16,
    I32,
    I64,
    Half,
    /// As an operand of an instruction only: values in registers are `float`.
    BFloat,
    F32,
    F64,
    Ptr,
}

impl Scalar {
    /// Bits of an integer or floating-point type.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::I1 => 1,
            Scalar::I8 => 8,
            Scalar::I16 | Scalar::Half | Scalar::BFloat => 16,
            Scalar::I32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::F64 | Scalar::Ptr => 64,
        }
    }

    /// Bytes in memory; an `i1` is never stored.
    pub fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    pub fn name(self) -> &'static str {
        match self {
            Scalar::I1 => "i1",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::Half => "half",
            Scalar::BFloat => "bfloat",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::Ptr => "ptr",
        }
    }

    /// As in the names of overloaded intrinsics.
    pub fn suffix(self) -> &'static str {
        match self {
            Scalar::Half => "f16",
            Scalar::BFloat => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::Ptr => "p0",
            other => other.name(),
        }
    }
}
