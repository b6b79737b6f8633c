//! What a schedule needs to know of the processor.

/// Vector width, registers and caches of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of a vector register.
    pub vector_bytes: usize,
    /// Number of vector registers.
    pub vector_registers: usize,
    /// Bytes of the second-level cache.
    pub l2_bytes: usize,
}

impl Machine {
    /// AVX-512: 32 registers of 64 bytes.
    pub const AVX512: Machine =
        Machine { vector_bytes: 64, vector_registers: 32, l2_bytes: 1 << 20 };
    /// AVX2: 16 registers of 32 bytes.
    pub const AVX2: Machine =
        Machine { vector_bytes: 32, vector_registers: 16, l2_bytes: 512 << 10 };
    /// NEON: 32 registers of 16 bytes.
    pub const NEON: Machine =
        Machine { vector_bytes: 16, vector_registers: 32, l2_bytes: 512 << 10 };
    /// SSE2, which every x86-64 has: 16 registers of 16 bytes.
    pub const SSE2: Machine =
        Machine { vector_bytes: 16, vector_registers: 16, l2_bytes: 256 << 10 };

    /// Lanes of one register for elements of so many bytes.
    pub fn lanes(&self, element_bytes: usize) -> i64 {
        (self.vector_bytes / element_bytes.max(1)).max(1) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Features;

    #[test]
    fn the_widest_feature_counts() {
        let of = |triple: &str, cpu: &str, list: &str| Features::of(triple, cpu, list).machine();
        let t = "x86_64-unknown-linux-gnu";
        assert_eq!(of(t, "", "+avx2,+avx512f,-sse4a"), Machine::AVX512);
        assert_eq!(of(t, "", "+avx2,+avx512f,-avx512f"), Machine::AVX2);
        assert_eq!(of(t, "", "+avx2,-avx512f"), Machine::AVX2);
        assert_eq!(of(t, "", ""), Machine::SSE2);
        assert_eq!(of(t, "x86-64-v3", ""), Machine::AVX2);
        assert_eq!(of(t, "znver5", ""), Machine::AVX512);
        assert_eq!(of("aarch64-apple-darwin", "", "+neon"), Machine::NEON);
        assert_eq!(Machine::AVX512.lanes(4), 16);
    }
}
