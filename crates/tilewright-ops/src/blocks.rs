//! Products with weights of a few bits, which have a scale and a zero point for each block of a row.
//!
//! A weight is `(w - zero) * scale` with an integer `w` of 2, 4 or 8 bits. A row of `k` weights is
//! `ceil(k / block)` blocks; the last one may have integers that stand for nothing. The integers lie packed,
//! the first one in the lowest bits of a byte, and stay so: their function reads bytes, and takes the bits
//! apart where it multiplies. Zero points are packed the same way, floats, or all the middle of the range.
//!
//! Either the numbers are multiplied ([`product`]), or the other operand becomes integers, too
//! ([`quantize`]), with a scale for each block, so that the sum over a block is one of integers, which is
//! exact ([`integer_product`]):
//!
//! ```text
//! y[m, n] = sum over blocks b of (sum over i of q[m, b, i] * (w[n, b, i] - zero[n, b])) * (t[m, b] * scale[n, b])
//! ```

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc};

use crate::operand::{Operand, call};
use crate::te::{self, Reducer, Tensor};

/// Where the zero points of packed weights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zero {
    /// They are the middle of the range: 8 of 4 bits.
    Middle,
    /// They are packed as the weights are: bytes of a row, `uint8 [n, bytes]`.
    Packed(usize),
    /// They are numbers of a type, `[n, blocks]`.
    Float(DType),
}

/// Weights of a few bits in blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weights {
    /// Rows: columns of the result.
    pub n: usize,
    /// Weights in a row.
    pub k: usize,
    /// Bits of a weight: 2, 4 or 8.
    pub bits: u32,
    /// Weights in a block; whole bytes.
    pub block: usize,
    /// Type of the scales.
    pub scale: DType,
    /// The zero points.
    pub zero: Zero,
}

impl Weights {
    /// How many blocks a row has.
    pub fn blocks(&self) -> usize {
        self.k.div_ceil(self.block.max(1))
    }

    /// Weights in a byte.
    pub fn per_byte(&self) -> usize {
        8 / self.bits.max(1) as usize
    }

    /// Bytes of a row of packed zero points.
    pub fn zero_bytes(&self) -> usize {
        self.blocks().div_ceil(self.per_byte())
    }

    /// The operands in order: integers `uint8 [n, blocks, bytes]`, scales `[n, blocks]`, and the zero points
    /// that there are.
    pub fn operands(&self) -> Vec<Operand> {
        let blocks = self.blocks();
        let integers = Operand::new(&[self.n, blocks, self.block / self.per_byte()], DType::U8);
        let scales = Operand::new(&[self.n, blocks], self.scale);
        let zero = match self.zero {
            Zero::Middle => None,
            Zero::Packed(bytes) => Some(Operand::new(&[self.n, bytes], DType::U8)),
            Zero::Float(dtype) => Some(Operand::new(&[self.n, blocks], dtype)),
        };
        [integers, scales].into_iter().chain(zero).collect()
    }

    fn check(&self, name: &str) -> Result<()> {
        if !matches!(self.bits, 2 | 4 | 8) {
            let what = format!("{name}: weights of {} bits", self.bits);
            return Err(Error::unsupported(what).help("there are weights of 2, 4 and 8 bits"));
        }
        if self.n == 0
            || self.k == 0
            || self.block == 0
            || !self.block.is_multiple_of(self.per_byte())
        {
            return Err(Error::input(format!(
                "{name}: blocks of {} weights in {} rows of {}",
                self.block, self.n, self.k
            )));
        }
        match self.zero {
            Zero::Packed(bytes) if bytes < self.zero_bytes() => Err(Error::input(format!(
                "{name}: {bytes} bytes do not hold the zero points of {} blocks",
                self.blocks()
            ))),
            _ => Ok(()),
        }
    }
}

/// The integer of some bits at a position of a packed row, as `uint8`.
fn few_bits(bits: u32, bytes: impl FnOnce(Expr) -> Expr, at: Expr) -> Expr {
    let per = 8 / i64::from(bits);
    if per == 1 {
        return bytes(at);
    }
    let shift = (at.clone().floormod(per) * Expr::i32(bits as i32)).cast(DType::U8);
    let shifted = Expr::intrin(Intrin::Shr, vec![bytes(at.floordiv(per)), shift]);
    let mask = Expr::int((1i64 << bits) - 1, DType::U8);
    Expr::intrin(Intrin::BitAnd, vec![shifted, mask])
}

/// The integer at a position of a row, where rows are packed if a width in bits is given.
fn integer_at(t: &Tensor, packed: Option<u32>, row: &[Expr], at: Expr) -> Expr {
    let value = match packed {
        Some(bits) => few_bits(bits, |at| byte_at(t, row, at), at),
        None => byte_at(t, row, at),
    };
    value.cast(DType::I32)
}

fn byte_at(t: &Tensor, row: &[Expr], at: Expr) -> Expr {
    t.at(row.iter().cloned().chain([at]))
}

/// The tensors of weights in a function.
struct Given<'w> {
    weights: &'w Weights,
    tensors: Vec<Tensor>,
}

impl<'w> Given<'w> {
    fn new(weights: &'w Weights) -> Given<'w> {
        let names = ["weights", "scales", "zero_points"];
        let tensors = weights.operands();
        let tensors = tensors.iter().zip(names).map(|(o, name)| o.placeholder(name)).collect();
        Given { weights, tensors }
    }

    fn integer(&self, n: &Expr, block: &Expr, at: &Expr) -> Expr {
        few_bits(self.weights.bits, |byte| self.tensors[0].at([n, block, &byte]), at.clone())
    }

    fn scale(&self, n: &Expr, block: &Expr) -> Expr {
        self.tensors[1].at([n, block]).cast(DType::F32)
    }

    /// The zero point, where it is an integer.
    fn zero(&self, n: &Expr, block: &Expr) -> Option<Expr> {
        match self.weights.zero {
            Zero::Middle => Some(Expr::i32(1 << (self.weights.bits - 1))),
            Zero::Packed(_) => Some(
                few_bits(self.weights.bits, |byte| self.tensors[2].at([n, &byte]), block.clone())
                    .cast(DType::I32),
            ),
            Zero::Float(_) => None,
        }
    }

    /// The zero point as a number.
    fn zero_number(&self, n: &Expr, block: &Expr) -> Expr {
        match self.zero(n, block) {
            Some(zero) => zero.cast(DType::F32),
            None => self.tensors[2].at([n, block]).cast(DType::F32),
        }
    }
}

/// Rows of numbers in blocks: what stands behind the last one is zero.
fn in_blocks(x: &Tensor, k: usize, block: usize, at: [&Expr; 3]) -> Expr {
    let [m, b, i] = at.map(Clone::clone);
    let place = b * block as i64 + i;
    match k % block {
        0 => block_value(place, x, &m),
        _ => {
            let inside = place.clone().less(k as i64);
            Expr::if_then_else(inside, block_value(place, x, &m), Expr::float(0.0, DType::F32))
        }
    }
}

fn block_value(at: Expr, x: &Tensor, m: &Expr) -> Expr {
    x.at([m.clone(), at]).cast(DType::F32)
}

fn require_rows(name: &str, x: &Operand) -> Result<(Dim, usize)> {
    match x.shape[..] {
        [rows, k] if x.dtype.is_float() => Ok((rows, k.fixed(name)?)),
        _ => Err(Error::unsupported(format!("{name} of {x}")).help("it takes rows of floats")),
    }
}

/// Rows of numbers as integers from -127 to 127 with a scale for each block, the largest magnitude in it
/// by 127. Parameters: `x [rows, k]`, the integers `int8 [rows, blocks, block]`, the scales
/// `float32 [rows, blocks]`.
///
/// # Errors
/// `Unsupported` for other operands, `Input` for blocks of nothing.
pub fn quantize(x: &Operand, block: usize) -> Result<TensorFunc> {
    let name = "quantize_blocks";
    let (rows, k) = require_rows(name, x)?;
    if block == 0 || k == 0 {
        return Err(Error::input(format!("{name}: blocks of {block} in rows of {k}")));
    }
    let blocks = k.div_ceil(block);
    let t = x.placeholder("x");
    let i = te::reduce_axis(block, "i");
    let largest = te::compute("largest", &[rows, blocks.into()], |at| {
        let value = in_blocks(&t, k, block, [&at[0], &at[1], &i.expr()]);
        let magnitude = value.clone().max(Expr::float(0.0, DType::F32) - value);
        te::reduce(Reducer::Max, magnitude, [&i])
    });
    let scale = te::compute("block_scales", &[rows, blocks.into()], |at| {
        (largest.at(at).max(0.0)) * Expr::float(1.0 / 127.0, DType::F32)
    });
    let integers = te::compute("block_integers", &[rows, blocks.into(), block.into()], |at| {
        let value = in_blocks(&t, k, block, [&at[0], &at[1], &at[2]]);
        let most = largest.at(&at[..2]);
        let some = most.clone().greater(0.0);
        let by =
            Expr::select(some, Expr::float(127.0, DType::F32) / most, Expr::float(0.0, DType::F32));
        call(Intrin::NearbyInt, value * by).max(-127.0).min(127.0).cast(DType::I8)
    });
    te::func([&t], [&integers, &scale])
}

/// The product of rows of integers with weights, exact within a block. Parameters: the integers
/// `int8 [rows, blocks, block]` and their scales `float32 [rows, blocks]` ([`quantize`]), those of the
/// weights ([`Weights::operands`]), the result `float32 [rows, n]`.
///
/// # Errors
/// `Unsupported` for other bits, `Input` for weights that contradict themselves.
pub fn integer_product(rows: Dim, weights: &Weights) -> Result<TensorFunc> {
    let name = "integer_product_of_blocks";
    weights.check(name)?;
    let (n, block) = (Dim::from(weights.n), Dim::from(weights.block));
    let blocks = Dim::from(weights.blocks());
    let q = te::placeholder("integers", &[rows, blocks, block], DType::I8);
    let t = te::placeholder("integer_scales", &[rows, blocks], DType::F32);
    let given = Given::new(weights);
    let i = te::reduce_axis(block, "i");
    let sums = te::compute("block_sums", &[rows, n, blocks], |at| {
        let (row, column, b) = (&at[0], &at[1], &at[2]);
        let w = given.integer(column, b, &i.expr()).cast(DType::I32);
        let w = given.zero(column, b).into_iter().fold(w, |w, zero| w - zero);
        te::reduce(Reducer::Sum, q.at([row, b, &i.expr()]).cast(DType::I32) * w, [&i])
    });
    let zero = matches!(weights.zero, Zero::Float(_)).then(|| {
        te::compute("integer_sums", &[rows, blocks], |at| {
            te::reduce(Reducer::Sum, q.at([&at[0], &at[1], &i.expr()]).cast(DType::I32), [&i])
        })
    });
    let b = te::reduce_axis(blocks, "b");
    let out = te::compute("product_of_blocks", &[rows, n], |at| {
        let (row, column, b_at) = (&at[0], &at[1], &b.expr());
        let sum = sums.at([row, column, b_at]).cast(DType::F32);
        let sum = zero.iter().fold(sum, |sum, all| {
            let all = all.at([row, b_at]).cast(DType::F32);
            sum - given.zero_number(column, b_at) * all
        });
        let scale = t.at([row, b_at]) * given.scale(column, b_at);
        te::reduce(Reducer::Sum, sum * scale, [&b])
    });
    te::func([&q, &t].into_iter().chain(&given.tensors), [&out])
}

/// The product of rows of numbers with weights. Parameters: `x [rows, k]`, those of the weights
/// ([`Weights::operands`]), the result `float32 [rows, n]`.
///
/// # Errors
/// As [`integer_product`].
pub fn product(x: &Operand, weights: &Weights) -> Result<TensorFunc> {
    let name = "product_of_blocks";
    weights.check(name)?;
    let (rows, k) = require_rows(name, x)?;
    if k != weights.k {
        return Err(Error::input(format!("{name}: {x} and weights for {}", weights.k)));
    }
    let block = weights.block;
    let (n, blocks) = (Dim::from(weights.n), Dim::from(weights.blocks()));
    let t = x.placeholder("x");
    let given = Given::new(weights);
    let in_rows = te::compute("x_in_blocks", &[rows, blocks, block.into()], |at| {
        in_blocks(&t, k, block, [&at[0], &at[1], &at[2]])
    });
    let (b, i) = (te::reduce_axis(blocks, "b"), te::reduce_axis(block, "i"));
    let out = te::compute(name, &[rows, n], |at| {
        let (row, column) = (&at[0], &at[1]);
        let (b_at, i_at) = (&b.expr(), &i.expr());
        let w = given.integer(column, b_at, i_at).cast(DType::F32);
        let w = (w - given.zero_number(column, b_at)) * given.scale(column, b_at);
        te::reduce(Reducer::Sum, in_rows.at([row, b_at, i_at]) * w, [&b, &i])
    });
    te::func([&t].into_iter().chain(&given.tensors), [&out])
}

/// Integers along the last axis of a tensor, with a scale and a zero point for each block of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// The integers: bytes that hold some each, or one each.
    pub integers: Operand,
    /// The scales: as the integers, but for the last axis, which has the blocks.
    pub scales: Operand,
    /// The zero points, packed as the integers are; without, what [`Rows::middle`] says.
    pub zero: Option<Operand>,
    /// Bits of an integer.
    pub bits: u32,
    /// Whether a byte holds as many as fit.
    pub packed: bool,
    /// Integers in a block.
    pub block: usize,
    /// Whether zero points that are not there are the middle of the range; zero otherwise.
    pub middle: bool,
}

/// The numbers that integers in blocks stand for. Parameters: the integers, the scales, the zero points if
/// there are any, the result, of the scales' type.
///
/// # Errors
/// `Unsupported` for other types and bits, `Input` for shapes that do not fit one another.
pub fn numbers(rows: &Rows) -> Result<TensorFunc> {
    let name = "numbers_of_blocks";
    let Rows { integers, scales, zero, bits, packed, block, middle } = rows;
    if !matches!(bits, 2 | 4 | 8) || !integers.dtype.is_int() || !scales.dtype.is_float() {
        let what = format!("{name} of {integers} of {bits} bits with {scales}");
        return Err(Error::unsupported(what).help("it takes bytes of integers, and floats"));
    }
    let (&[ref outer @ .., last], &[ref of_scales @ .., blocks]) =
        (&integers.shape[..], &scales.shape[..])
    else {
        return Err(Error::input(format!("{name} of {integers} with {scales}")));
    };
    let per = if *packed { 8 / *bits as usize } else { 1 };
    let count = last.fixed(name)? * per;
    let groups = Dim::from(count.div_ceil((*block).max(1)));
    let zero_bytes = Dim::from(count.div_ceil((*block).max(1)).div_ceil(per));
    if *block == 0
        || of_scales != outer
        || blocks != groups
        || !zero.as_ref().is_none_or(|z| {
            z.shape.split_last().is_some_and(|(d, o)| *d == zero_bytes && o == outer)
        })
    {
        let what = format!("{name}: {integers} in blocks of {block} with the scales {scales}");
        return Err(Error::input(what));
    }
    let (x, s) = (integers.placeholder("integers"), scales.placeholder("scales"));
    let z = zero.as_ref().map(|z| z.placeholder("zero_points"));

    let width = packed.then_some(*bits);
    let shape: Vec<Dim> = outer.iter().copied().chain([Dim::from(count)]).collect();
    let out = te::compute(name, &shape, |i| {
        let (outer, at) = (&i[..i.len() - 1], i[i.len() - 1].clone());
        let group = at.clone().floordiv(*block as i64);
        let zero = match (&z, middle) {
            (Some(z), _) => integer_at(z, width, outer, group.clone()),
            (None, true) => Expr::i32(1 << (bits - 1)),
            (None, false) => Expr::i32(0),
        };
        let scale = s.at(outer.iter().cloned().chain([group])).cast(DType::F32);
        ((integer_at(&x, width, outer, at) - zero).cast(DType::F32) * scale).cast(scales.dtype)
    });
    te::func([&x, &s].into_iter().chain(&z), [&out])
}
