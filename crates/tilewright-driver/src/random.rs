//! Seeded random tensors, for runs without inputs and for tests.
//!
//! Floats are uniform between -1 and 1, integers small and positive (so that they serve as indices
//! and sizes), `bool` is a toss. The same seed gives the same tensor on every machine. The generator
//! is SplitMix64 (Steele, Lea and Flood, 2014).

use half::{bf16, f16};
use tilewright_ir::{DType, Result, Tensor, TypeKind, random};

/// The largest random integer; the smallest is 1.
pub(crate) const MAX_INT: u64 = 8;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A number of 64 random bits.
    pub fn bits(&mut self) -> u64 {
        random::bits(&mut self.0)
    }

    /// A number from -1 to before 1, a multiple of 2⁻²³, so that `float32` holds it exactly.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 40) as f64 / f64::from(1 << 23) - 1.0
    }

    /// A tensor of this type and shape.
    ///
    /// # Errors
    /// `Input` if it does not fit in memory.
    ///
    /// ```
    /// use tilewright_driver::{DType, random::Random};
    /// let x = Random::new(7).tensor(DType::I32, &[2, 3])?;
    /// assert!(x.as_slice::<i32>().is_some_and(|x| x.iter().all(|v| (1..=8).contains(v))));
    /// # Ok::<(), tilewright_driver::Error>(())
    /// ```
    pub fn tensor(&mut self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let mut tensor = Tensor::zeros(dtype, shape)?;
        for element in tensor.bytes_mut().chunks_exact_mut(dtype.bytes()) {
            self.element(dtype, element);
        }
        Ok(tensor)
    }

    fn element(&mut self, dtype: DType, to: &mut [u8]) {
        let bytes = match (dtype.kind, dtype.bits) {
            (TypeKind::Float, 64) => self.unit().to_le_bytes(),
            (TypeKind::Float, 32) => low((self.unit() as f32).to_bits().into()),
            (TypeKind::Float, _) => low(f16::from_f64(self.unit()).to_bits().into()),
            (TypeKind::BFloat, _) => low(bf16::from_f64(self.unit()).to_bits().into()),
            (TypeKind::Bool, _) => low(self.bits() >> 63),
            _ => low(1 + self.bits() % MAX_INT),
        };
        // An element has at most 8 bytes.
        let len = to.len().min(bytes.len());
        to[..len].copy_from_slice(&bytes[..len]);
    }
}

fn low(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_tensor_and_another_another() {
        assert!(tensor_of(1).same(&tensor_of(1)));
        assert!(!tensor_of(1).same(&tensor_of(2)));
        // SplitMix64's published first number for the seed 1234567.
        assert_eq!(Random::new(1_234_567).bits(), 6_457_827_717_110_365_317);
    }

    fn tensor_of(seed: u64) -> Tensor {
        Random::new(seed).tensor(DType::F32, &[100]).expect("a tensor")
    }

    #[test]
    fn every_type_has_values_in_its_range() {
        for name in [
            "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "bfloat16", "float32", "float64",
        ] {
            let dtype: DType = name.parse().expect(name);
            let t = Random::new(3).tensor(dtype, &[500]).expect("a tensor");
            let values: Vec<f64> = (0..500).map(|i| t.get_f64(i)).collect();
            let range = match (dtype.is_float(), dtype.is_bool()) {
                (true, _) => -1.0..=1.0,
                (_, true) => 0.0..=1.0,
                _ => 1.0..=8.0,
            };
            assert!(values.iter().all(|v| range.contains(v)), "{name}: {values:?}");
            let distinct = values.iter().filter(|v| **v != values[0]).count();
            assert!(distinct > 100, "{name}: {values:?}");
        }
    }
}
