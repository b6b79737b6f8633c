//! What of a target decides the text of code, beyond what LLVM decides itself.

use tilewright_ir::DType;
use tilewright_target::{Arch, Target, TensorInstruction};

use super::scalar::Scalar;

/// Properties of the machine that is compiled for.
#[derive(Clone, Debug)]
pub(super) struct MachineFeatures {
    /// Converts between `half` and `float` in hardware.
    pub half: bool,
    /// Has minimum and maximum instructions that propagate `NaN`.
    pub nan_min_max: bool,
    /// The bytes of elements of which it writes only chosen lanes of vectors, by masks in registers of their own.
    pub masks: &'static [usize],
    /// Preferred width of vectors in bits, where LLVM's own choice is not the best.
    vector_width: Option<u32>,
    /// The exact length of scalable vectors in bits, which makes vectors of that length vectors of the machine.
    sve_bits: Option<usize>,
    /// Its dot products.
    pub dots: Vec<Dot>,
}

impl MachineFeatures {
    pub fn new(target: &Target) -> MachineFeatures {
        let features = target.known_features();
        let (arm, x86, riscv) = (
            features.arch() == Arch::Aarch64,
            features.arch() == Arch::X86_64,
            features.arch() == Arch::Riscv64,
        );
        let has_masks = (x86 && features.has("avx512vl")) || features.sve_bits().is_some();
        MachineFeatures {
            half: arm || (x86 && features.has("f16c")) || (riscv && features.has("zfhmin")),
            nan_min_max: arm,
            masks: if has_masks { target.vectors.masks } else { &[] },
            vector_width: (x86 && target.vectors.bytes.first() == Some(&64)).then_some(512),
            sve_bits: features.sve_bits(),
            dots: Dot::available(target),
        }
    }

    /// The attribute groups: 0 for kernels, 1 for helpers that are always inlined, 2 for
    /// functions of the C mathematics library, 3 for functions of ours that may be called at any
    /// time.
    pub fn attributes(&self) -> String {
        let width = self.vector_width.map_or(String::new(), |w| {
            format!(" \"prefer-vector-width\"=\"{w}\" \"min-legal-vector-width\"=\"{w}\"")
        });
        let scale = self.sve_bits.map_or(String::new(), |bits| {
            let times = bits / 128;
            format!(" vscale_range({times},{times})")
        });
        format!(
            "attributes #0 = {{ nounwind mustprogress{scale} \"no-trapping-math\"=\"true\"{width} }}\n\
             attributes #1 = {{ alwaysinline nounwind willreturn mustprogress{scale} \"no-trapping-math\"=\"true\"{width} }}\n\
             attributes #2 = {{ nounwind willreturn speculatable memory(none) }}\n\
             attributes #3 = {{ noinline nounwind willreturn speculatable memory(none) }}"
        )
    }
}

/// An instruction, and how LLVM calls it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    pub(super) lanes: u16,
    /// Neighbours that are multiplied.
    pub(super) group: usize,
    pub(super) a: DType,
    pub(super) b: DType,
    /// What is added up.
    pub(super) sum: DType,
    /// LLVM's intrinsic. It takes the accumulator and both operands, the unsigned one first where they
    /// differ; of [`Scalar::I16`] the operands alone, and gives what is then added.
    pub(super) intrinsic: &'static str,
    /// The type that the intrinsic takes the operands as.
    pub(super) operand: Scalar,
}

impl Dot {
    /// The dot products of a target that LLVM has intrinsics for.
    pub fn available(target: &Target) -> Vec<Dot> {
        target.tensor_instructions().filter_map(Dot::new).collect()
    }

    fn new(i: &TensorInstruction) -> Option<Dot> {
        use Scalar::{BFloat, I8, I16, I32};
        let (intrinsic, operand) = match i.name {
            "vpdpbusd_512_u8_i8" | "vpdpbusd_512_i8_u8" => ("x86.avx512.vpdpbusd.512", I32),
            "vpdpbusd_256_u8_i8" | "vpdpbusd_256_i8_u8" => ("x86.avx512.vpdpbusd.256", I32),
            "vpmaddwd_512" => ("x86.avx512.pmaddw.d.512", I16),
            "vpmaddwd_256" => ("x86.avx2.pmadd.wd", I16),
            "vdpbf16ps" => ("x86.avx512bf16.dpbf16ps.512", BFloat),
            "sdot" => ("aarch64.neon.sdot.v4i32.v16i8", I8),
            "udot" => ("aarch64.neon.udot.v4i32.v16i8", I8),
            "usdot_u8_i8" | "usdot_i8_u8" => ("aarch64.neon.usdot.v4i32.v16i8", I8),
            _ => return None,
        };
        let lanes = u16::try_from(i.c.columns).ok()?;
        let group = usize::try_from(i.b.group).ok()?;
        let (a, b, sum) = (i.a.dtype, i.b.dtype, i.c.dtype);
        Some(Dot { lanes, group, a, b, sum, intrinsic, operand })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(triple: &str, features: &str) -> MachineFeatures {
        MachineFeatures::new(&Target::new(triple, "", features))
    }

    #[test]
    fn the_last_mention_of_a_feature_counts() {
        let x86 = "x86_64-unknown-linux-gnu";
        assert!(machine(x86, "+f16c").half);
        assert!(!machine(x86, "").half);
        assert!(!machine(x86, "+f16c,-f16c").half);
        assert!(machine(x86, "-avx512f,+avx512f").vector_width == Some(512));
        assert!(machine(x86, "+avx512fp16,-avx512f").vector_width.is_none());
        assert!(machine("aarch64-unknown-linux-gnu", "").half);
        assert!(machine("riscv64-unknown-linux-gnu", "+zfh").half);
        assert!(!machine("riscv64-unknown-linux-gnu", "+v").half);
    }
}
