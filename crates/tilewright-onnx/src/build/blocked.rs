//! Weights that are integers with a scale for each block, of which numbers are made only where something other than
//! a product reads them.

use tilewright_ir::{DType, Result, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::blocks::{Weights, Zero};

use super::Builder;
use crate::fold::{View, materialize, row_major};
use crate::imported::Imported;

/// A constant matrix of integers in blocks along an axis: a number is `(integer - zero) * scale`.
#[derive(Clone)]
pub(crate) struct Blocked {
    /// The integers, a byte each.
    pub(crate) integers: Tensor,
    /// The scales: as the integers, but for the axis of the blocks, which has these.
    pub(crate) scales: Tensor,
    /// The zero points, as the scales; zero where there are none.
    pub(crate) zeros: Option<Tensor>,
    /// Bits of an integer.
    pub(crate) bits: u32,
    /// The axis along which blocks lie, and the integers in a block.
    pub(crate) axis: usize,
    pub(crate) block: usize,
    /// Whether the value has the axes in the other order.
    pub(crate) transposed: bool,
    /// How many products are going to read it.
    pub(crate) uses: usize,
}

impl Blocked {
    /// Extents and type of the value.
    fn operand(&self) -> Operand {
        let mut shape = self.integers.shape().to_vec();
        if self.transposed {
            shape.reverse();
        }
        Operand::new(&shape, self.scales.dtype())
    }

    /// The type of the numbers.
    pub(crate) fn dtype(&self) -> DType {
        self.scales.dtype()
    }

    /// As the second factor of a product, of which a column is a row here: the integers packed, the scales, and the
    /// zero points where they are not the middle of the range. `None` where blocks lie along columns.
    pub(crate) fn packed(&self) -> Result<Option<(Weights, Vec<Tensor>)>> {
        let along = usize::from(self.transposed);
        let (&[a, b], true) = (self.integers.shape(), self.axis == along) else { return Ok(None) };
        let (k, n) = if along == 0 { (a, b) } else { (b, a) };
        // Blocks are whole bytes.
        let whole =
            |bits: &u32| *bits >= self.bits && (self.block * *bits as usize).is_multiple_of(8);
        let bits = [2, 4, 8].into_iter().find(whole).unwrap_or(8);
        let signed = self.integers.dtype() == DType::I8;
        let mut weights = Weights {
            n,
            k,
            bits,
            block: self.block,
            scale: self.scales.dtype(),
            zero: Zero::Middle,
        };
        let (blocks, bytes) = (weights.blocks(), self.block / weights.per_byte());
        let least = if signed { 1u8 << (self.bits - 1) } else { 0 };
        let code = |byte: u8| byte.wrapping_add(least);
        let place = |n: usize, k: usize| n * blocks * self.block + k;
        let integers =
            packed(bits, n * blocks * bytes, &self.by_columns(&self.integers)?, &code, place);
        let mut all = vec![
            Tensor::from_bytes(DType::U8, &[n, blocks, bytes], &integers)?,
            self.by_columns(&self.scales)?,
        ];
        if self.zeros.is_some() || !signed || bits != self.bits {
            let row = weights.zero_bytes();
            weights.zero = Zero::Packed(row);
            let zeros = match &self.zeros {
                Some(zeros) => self.by_columns(zeros)?,
                None => Tensor::zeros(self.integers.dtype(), &[n, blocks])?,
            };
            let place = |n: usize, b: usize| n * row * weights.per_byte() + b;
            let zeros = packed(bits, n * row, &zeros, &code, place);
            all.push(Tensor::from_bytes(DType::U8, &[n, row], &zeros)?);
        }
        Ok(Some((weights, all)))
    }

    /// A tensor with a row for each column of the value.
    fn by_columns(&self, t: &Tensor) -> Result<Tensor> {
        let (true, &[a, b]) = (!self.transposed, t.shape()) else { return Ok(t.clone()) };
        let mut steps = row_major(t.shape());
        steps.reverse();
        materialize(t, &View { offset: 0, shape: vec![b, a], steps })
    }

    /// The same with axes in the other order, read so often.
    pub(crate) fn swapped(self, uses: usize) -> Blocked {
        Blocked { transposed: !self.transposed, uses, ..self }
    }
}

/// The codes of a matrix packed in bytes, the first one in the lowest bits; a code stands at a position by its row
/// and column.
fn packed(
    bits: u32,
    bytes: usize,
    of: &Tensor,
    code: &dyn Fn(u8) -> u8,
    place: impl Fn(usize, usize) -> usize,
) -> Vec<u8> {
    let (mut out, per) = (vec![0; bytes], 8 / bits as usize);
    let columns = of.shape().last().copied().unwrap_or(1).max(1);
    for (row, values) in of.bytes().chunks(columns).enumerate() {
        for (column, value) in values.iter().enumerate() {
            let at = place(row, column);
            out[at / per] |= code(*value) << (bits as usize * (at % per));
        }
    }
    out
}

impl Builder {
    /// A value that is made of integers in blocks, for products only.
    pub(crate) fn blocked(&mut self, of: Blocked) -> Imported {
        let (var, value) = Imported::var_of("weights", of.operand());
        self.blocked.insert(var.id(), of);
        value
    }

    /// What such a value is made of.
    pub(crate) fn blocked_of(&self, value: &Imported) -> Option<Blocked> {
        self.blocked.get(&value.var()?.id()).cloned()
    }

    /// Takes note that a product has read such a value; behind the last one it is forgotten.
    pub(crate) fn note_product(&mut self, value: &Imported) {
        let Some(id) = value.var().map(|v| v.id()) else { return };
        if let Some(of) = self.blocked.get_mut(&id) {
            of.uses = of.uses.saturating_sub(1);
            if of.uses == 0 {
                self.blocked.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shape: &[usize; 2], values: &[i8]) -> Result<Tensor> {
        Tensor::from_slice(shape, values)
    }

    #[test]
    fn integers_are_packed_by_columns_and_keep_their_zero_points() -> Result<()> {
        // Three rows in blocks of two: the second block has one.
        let weights = Blocked {
            integers: of(&[3, 2], &[-8, 7, 1, 2, 3, -1])?,
            scales: Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?,
            zeros: None,
            bits: 4,
            axis: 0,
            block: 2,
            transposed: false,
            uses: 1,
        };
        let (packed, tensors) = weights.packed()?.expect("blocks along rows");
        assert_eq!((packed.n, packed.k, packed.bits, packed.zero), (2, 3, 4, Zero::Middle));
        assert_eq!(tensors[0].shape(), [2, 2, 1]);
        assert_eq!(tensors[0].bytes(), [0x90, 0x0b, 0xaf, 0x07]);
        assert_eq!(tensors[1].as_slice::<f32>(), Some(&[1.0, 3.0, 2.0, 4.0][..]));
        // The same by rows, with zero points, and with blocks of an odd size, which need a byte an integer.
        let by_rows = Blocked {
            integers: of(&[2, 3], &[-8, 1, 3, 7, 2, -1])?,
            scales: Tensor::from_slice(&[2, 1], &[1.0f32, 2.0])?,
            zeros: Some(of(&[2, 1], &[-8, 7])?),
            axis: 1,
            block: 3,
            transposed: true,
            ..weights.clone()
        };
        let (packed, tensors) = by_rows.packed()?.expect("blocks along rows");
        assert_eq!((packed.bits, packed.zero), (8, Zero::Packed(1)));
        assert_eq!(tensors[0].bytes(), [0, 9, 11, 15, 10, 7]);
        assert_eq!(tensors[2].bytes(), [0, 15]);
        assert!(Blocked { transposed: true, ..weights }.packed()?.is_none());
        Ok(())
    }
}
