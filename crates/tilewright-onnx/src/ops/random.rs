//! Random numbers. They are constants of the module: the same in each run, and those of the same seed
//! in each import. Without a seed the node's name is one. ONNX does not say which generator makes
//! them; here it is SplitMix64 (Steele, Lea and Flood, 2014), and the method of Box and Muller.

use tilewright_ir::{DType, Error, Result, dim, random};
use tilewright_ops::Operand;

use super::compose::{Compose, int};
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

    fn bits(&mut self) -> u64 {
        random::bits(&mut self.0)
    }

    /// Above zero and below one.
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }
}

/// A constant of random numbers.
fn fill(
    b: &mut Builder,
    shape: &[usize],
    dtype: DType,
    mut next: impl FnMut() -> f64,
) -> Result<Imported> {
    check_extents(&dim::shape(shape))?;
    b.budget.charge(&Operand::new(shape, DType::F64))?;
    b.budget.charge(&Operand::new(shape, dtype))?;
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
    value::constant(dtype, shape, &values)
}

/// Shape and type: attributes, or those of the input.
fn form(node: &Node, like: bool) -> Result<(Vec<usize>, DType)> {
    let stated = node.element("dtype", data::element_type)?;
    if like {
        let x = node.input(0)?;
        return Ok((x.fixed(node)?, stated.unwrap_or(x.dtype())));
    }
    let shape = required(node.ints("shape")?, "attribute `shape`")?;
    Ok((extents::checked_shape(&shape)?, stated.unwrap_or(DType::F32)))
}

fn normal(node: &Node, b: &mut Builder, like: bool) -> Result<Vec<Imported>> {
    let (shape, dtype) = form(node, like)?;
    let mean = f64::from(node.float_or("mean", 0.0)?);
    let scale = f64::from(node.float_or("scale", 1.0)?);
    let mut random = Generator::read(node)?;
    one(fill(b, &shape, dtype, || mean + scale * random.normal())?)
}

fn uniform(node: &Node, b: &mut Builder, like: bool) -> Result<Vec<Imported>> {
    let (shape, dtype) = form(node, like)?;
    let low = f64::from(node.float_or("low", 0.0)?);
    let high = f64::from(node.float_or("high", 1.0)?);
    let mut random = Generator::read(node)?;
    one(fill(b, &shape, dtype, || low + (high - low) * random.unit())?)
}

/// One where a random number is below the input, which is a probability.
pub(crate) fn bernoulli(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (shape, dtype) = form(node, true)?;
    let x = node.input(0)?;
    let mut random = Generator::read(node)?;
    let bound = fill(b, &shape, x.dtype(), || random.unit())?;
    let mut c = Compose::new(node, b);
    let hit = c.op("Less", &[&bound, x])?;
    one(c.cast(&hit, dtype)?)
}

/// Classes drawn by the logarithms of their probabilities: the largest after adding numbers of the
/// distribution of Gumbel, which has the same chances.
pub(crate) fn multinomial(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let [batch, classes] = x.fixed(node)?[..] else {
        return Err(Error::model(format!("classes along two axes, not {:?}", x.shape())));
    };
    let draws = node.size_or("sample_size", 1)?;
    let to = match node.int_or("dtype", 6)? {
        6 => DType::I32,
        7 => DType::I64,
        other => return Err(node.unsupported_value("dtype", other, "int32, int64")),
    };
    let mut random = Generator::read(node)?;
    let noise = fill(b, &[batch, draws, classes], x.dtype(), || -(-random.unit().ln()).ln())?;
    let mut c = Compose::new(node, b);
    let x = c.reshape(x, &[batch, 1, classes])?;
    let sum = c.op("Add", &[&x, &noise])?;
    let best = c.with("ArgMax", &[&sum], [int("axis", 2), int("keepdims", 0)])?;
    one(c.cast(&best, to)?)
}
