//! Random numbers. They are the same in each run, and those of the same seed in each import: constants, or where a
//! size is open functions of the positions. Without a seed the node's name is one. ONNX does not say which
//! generator makes them; here it is SplitMix64 (Steele, Lea and Flood, 2014), and the method of Box and Muller.

use std::f64::consts::PI;

use tilewright_ir::{DType, Dim, Error, Result, Tensor, dim, random};
use tilewright_ops::Operand;

use super::compose::{Compose, int, text};
use super::{one, value};
use crate::build::Builder;
use crate::data;
use crate::extents::{self, check_extents};
use crate::imported::Imported;
use crate::node::{Node, required};
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Bernoulli", 15, 1, bernoulli),
    op("Multinomial", 7, 1, multinomial),
    op("RandomNormal", 7, 0, |n, b| normal(n, b, false)),
    op("RandomNormalLike", 7, 1, |n, b| normal(n, b, true)),
    op("RandomUniform", 7, 0, |n, b| uniform(n, b, false)),
    op("RandomUniformLike", 7, 1, |n, b| uniform(n, b, true)),
];

struct Generator(u64);

impl Generator {
    fn read(node: &Node) -> Result<Generator> {
        let seed = match node.float("seed")? {
            Some(seed) => u64::from(seed.to_bits()),
            // The hash of Fowler, Noll and Vo.
            None => node.label.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, byte| {
                (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }),
        };
        Ok(Generator(seed))
    }

    /// Above zero and below one.
    fn unit(&mut self) -> f64 {
        ((random::bits(&mut self.0) >> 12) as f64 + 0.5) / UNITS
    }
}

/// What [`random::bits`] adds to its state before each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What it then does with the state: takes the exclusive or with what a shift to the right gives, and multiplies.
const MIX: [(u64, u64); 3] = [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb), (31, 1)];

/// So many different numbers lie between zero and one.
const UNITS: f64 = (1u64 << 52) as f64;

/// What numbers are drawn, from others that lie evenly between zero and one.
enum Distribution {
    Normal { mean: f64, scale: f64 },
    Uniform { low: f64, high: f64 },
    Gumbel,
}

impl Distribution {
    /// How many others a number takes.
    fn draws(&self) -> usize {
        match self {
            Distribution::Normal { .. } => 2,
            Distribution::Uniform { .. } | Distribution::Gumbel => 1,
        }
    }

    fn next(&self, random: &mut Generator) -> f64 {
        match self {
            Distribution::Normal { mean, scale } => {
                let radius = (-2.0 * random.unit().ln()).sqrt();
                mean + scale * (radius * (2.0 * PI * random.unit()).cos())
            }
            Distribution::Uniform { low, high } => low + (high - low) * random.unit(),
            Distribution::Gumbel => -(-random.unit().ln()).ln(),
        }
    }

    /// What [`Distribution::next`] is, for `float64` tensors of the others.
    fn of_units(&self, c: &mut Compose, units: &[Imported]) -> Result<Imported> {
        let number = |v: f64| value::constant(DType::F64, &[], &[v]);
        let log = c.op("Log", &[&units[0]])?;
        match self {
            Distribution::Normal { mean, scale } => {
                let square = c.op("Mul", &[&log, &number(-2.0)?])?;
                let radius = c.op("Sqrt", &[&square])?;
                let angle = c.op("Mul", &[&units[1], &number(2.0 * PI)?])?;
                let cosine = c.op("Cos", &[&angle])?;
                let normal = c.op("Mul", &[&radius, &cosine])?;
                let scaled = c.op("Mul", &[&normal, &number(*scale)?])?;
                c.op("Add", &[&scaled, &number(*mean)?])
            }
            Distribution::Uniform { low, high } => {
                let scaled = c.op("Mul", &[&units[0], &number(high - low)?])?;
                c.op("Add", &[&scaled, &number(*low)?])
            }
            Distribution::Gumbel => {
                let inner = c.op("Neg", &[&log])?;
                let outer = c.op("Log", &[&inner])?;
                c.op("Neg", &[&outer])
            }
        }
    }
}

/// Random numbers of a distribution.
fn fill(
    node: &Node,
    b: &mut Builder,
    shape: &[Dim],
    dtype: DType,
    of: &Distribution,
) -> Result<Imported> {
    check_extents(shape)?;
    let mut random = Generator::read(node)?;
    let Some(known) = dim::known(shape) else {
        let mut c = Compose::new(node, b);
        let at = c.positions(dim::product(shape.iter().copied()))?;
        let at = c.cast(&at, DType::U64)?;
        let draws = 1..=of.draws() as u64;
        let states = draws.map(|draw| state(&mut c, &at, random.0, draw, of.draws() as u64));
        let states = states.collect::<Result<Vec<_>>>()?;
        let units = states.iter().map(|state| unit(&mut c, state)).collect::<Result<Vec<_>>>()?;
        let numbers = of.of_units(&mut c, &units)?;
        let numbers = c.cast(&numbers, dtype)?;
        return c.reshape(&numbers, shape);
    };
    b.budget.charge(&Operand::new(shape, DType::F64))?;
    b.budget.charge(&Operand::new(shape, dtype))?;
    let values: Vec<f64> = (0..known.iter().product()).map(|_| of.next(&mut random)).collect();
    value::constant(dtype, &known, &values)
}

fn word(bits: u64) -> Result<Imported> {
    Tensor::from_slice(&[], &[bits]).map(Imported::Const)
}

/// The state of the generator at the `draw`th of the draws for each position.
fn state(c: &mut Compose, at: &Imported, seed: u64, draw: u64, draws: u64) -> Result<Imported> {
    let before = c.op("Mul", &[at, &word(STEP.wrapping_mul(draws))?])?;
    c.op("Add", &[&before, &word(STEP.wrapping_mul(draw).wrapping_add(seed))?])
}

/// [`Generator::unit`] for a tensor of states.
fn unit(c: &mut Compose, state: &Imported) -> Result<Imported> {
    let mut bits = state.clone();
    for (shift, factor) in MIX {
        bits = shifted(c, &bits, shift)?;
        if factor != 1 {
            bits = c.op("Mul", &[&bits, &word(factor)?])?;
        }
    }
    let high = c.with("BitShift", &[&bits, &word(12)?], [text("direction", "RIGHT")])?;
    let high = c.cast(&high, DType::F64)?;
    let half = value::constant(DType::F64, &[], &[0.5])?;
    let above = c.op("Add", &[&high, &half])?;
    c.op("Mul", &[&above, &value::constant(DType::F64, &[], &[1.0 / UNITS])?])
}

/// Bits with those above them added without a carry.
fn shifted(c: &mut Compose, bits: &Imported, by: u64) -> Result<Imported> {
    let moved = c.with("BitShift", &[bits, &word(by)?], [text("direction", "RIGHT")])?;
    c.op("BitwiseXor", &[bits, &moved])
}

/// Shape and type: attributes, or those of the input.
fn form(node: &Node, like: bool) -> Result<(Vec<Dim>, DType)> {
    let stated = node.element("dtype", data::element_type)?;
    if like {
        let x = node.input(0)?;
        return Ok((x.shape(), stated.unwrap_or(x.dtype())));
    }
    let shape = required(node.ints("shape")?, "attribute `shape`")?;
    let shape = extents::checked_shape(&shape)?;
    Ok((dim::shape(&shape), stated.unwrap_or(DType::F32)))
}

fn normal(node: &Node, b: &mut Builder, like: bool) -> Result<Vec<Imported>> {
    let (shape, dtype) = form(node, like)?;
    let mean = f64::from(node.float_or("mean", 0.0)?);
    let scale = f64::from(node.float_or("scale", 1.0)?);
    one(fill(node, b, &shape, dtype, &Distribution::Normal { mean, scale })?)
}

fn uniform(node: &Node, b: &mut Builder, like: bool) -> Result<Vec<Imported>> {
    let (shape, dtype) = form(node, like)?;
    let low = f64::from(node.float_or("low", 0.0)?);
    let high = f64::from(node.float_or("high", 1.0)?);
    one(fill(node, b, &shape, dtype, &Distribution::Uniform { low, high })?)
}

/// One where a random number is below the input, which is a probability.
pub(crate) fn bernoulli(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (shape, dtype) = form(node, true)?;
    let x = node.input(0)?;
    let even = Distribution::Uniform { low: 0.0, high: 1.0 };
    let bound = fill(node, b, &shape, x.dtype(), &even)?;
    let mut c = Compose::new(node, b);
    let hit = c.op("Less", &[&bound, x])?;
    one(c.cast(&hit, dtype)?)
}

/// Classes drawn by the logarithms of their probabilities: the largest after adding numbers of the
/// distribution of Gumbel, which has the same chances.
pub(crate) fn multinomial(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let [batch, classes] = x.shape()[..] else {
        return Err(Error::model(format!("classes along two axes, not {:?}", x.shape())));
    };
    let draws = node.size_or("sample_size", 1)?;
    let to = match node.int_or("dtype", 6)? {
        6 => DType::I32,
        7 => DType::I64,
        other => return Err(node.unsupported_value("dtype", other, "int32, int64")),
    };
    let shape = [batch, Dim::from(draws), classes];
    let noise = fill(node, b, &shape, x.dtype(), &Distribution::Gumbel)?;
    let mut c = Compose::new(node, b);
    let x = c.reshape(x, &[batch, Dim::from(1), classes])?;
    let sum = c.op("Add", &[&x, &noise])?;
    let best = c.with("ArgMax", &[&sum], [int("axis", 2), int("keepdims", 0)])?;
    one(c.cast(&best, to)?)
}
