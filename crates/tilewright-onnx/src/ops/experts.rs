//! Mixtures of experts: `MoE` and `QMoE`, whose weights are integers of a few bits that stay packed.
//!
//! Each row goes through the networks of those experts that its scores choose, and their results are added up by
//! weights. An expert that no row chooses is not computed, and of the others only the rows that choose them:
//!
//! ```text
//! for each expert e:
//!     if some row chooses e:
//!         rows = those that do
//!         y[rows] += weight[rows, e] * (act(x[rows] W1[e]^T + b1[e]) W2[e]^T + b2[e])
//! ```

use tilewright_ir::{DType, Dim, Error, Result, Tensor, dim};
use tilewright_ops::blocks::{Weights, Zero};
use tilewright_ops::unequal;

use super::compose::{Compose, float, int, text};
use super::packed::{held, product_of_rows};
use super::{one, value};
use crate::build::Builder;
use crate::imported::{Imported, Like, operand};
use crate::node::Node;
use crate::operator::{Operator, op};

/// Of the domain `com.microsoft`.
pub(crate) static OPERATORS: &[Operator] = &[op("MoE", 9, 8, moe), op("QMoE", 9, 19, qmoe)];

/// A layer of all experts: rows times its weights, and its bias.
struct Layer<'n> {
    /// Numbers `[experts, columns, features]`, or the integers in bytes.
    weights: &'n Imported,
    /// `[experts, columns]`.
    bias: Option<&'n Imported>,
    packed: Option<Packed<'n>>,
}

/// What integers of a few bits stand for.
struct Packed<'n> {
    bits: u32,
    /// Integers in a block of a row; `None` where a row is one block.
    block: Option<usize>,
    /// `[experts, columns]`, or `[experts, columns, blocks]`.
    scales: &'n Imported,
    zeros: Option<&'n Imported>,
    /// Whether rows become integers, too.
    in_integers: bool,
}

/// The network of an expert.
struct Network<'n> {
    experts: usize,
    first: Layer<'n>,
    second: Layer<'n>,
    /// What the result of the first one is multiplied with.
    gate: Option<Layer<'n>>,
    activation: Activation,
}

/// What stands between the layers.
enum Activation {
    /// An operator of one operand.
    Plain(&'static str),
    /// `g * sigmoid(alpha * g) * (l + beta)`, both within bounds.
    Gated { alpha: f32, beta: f32, limit: Option<f32>, halves: Halves },
}

/// Where both parts of a gated activation are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halves {
    /// In two layers.
    Apart,
    /// In turns in the result of one.
    Woven,
    /// One behind the other.
    Joined,
}

/// `com.microsoft.MoE`.
fn moe(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let layer = |weights: usize, bias: usize| -> Option<Layer> {
        let weights = node.optional(weights)?;
        Some(Layer { weights, bias: node.optional(bias), packed: None })
    };
    let network = Network::read(node, layer(2, 3), layer(4, 5), layer(6, 7))?;
    network.mixture(node, b, None)
}

/// `com.microsoft.QMoE`, with integers.
fn qmoe(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let kind = node.text_or("quant_type", "int")?;
    if kind != "int" {
        return Err(node.unsupported_value("quant_type", kind, "int"));
    }
    let prepacked = node.int_or("weights_prepacked", -1)?;
    // Weights for kernels of other machines have another order.
    if prepacked > 0 {
        return Err(node.unsupported_value("weights_prepacked", prepacked, "0"));
    }
    if let Some(at) = (15..19).find(|at| node.optional(*at).is_some()) {
        return Err(Error::unsupported(format!("input {at} is not supported")));
    }
    let all = node.int_or("expert_weight_bits", 4)?;
    let block = match node.size_or("block_size", 0)? {
        0 => None,
        block => Some(block),
    };
    let in_integers = node.int_or("accuracy_level", 0)? == 4 && block.is_some();
    let layer = |name: &'static str, at: usize, zeros: usize| -> Result<Option<Layer>> {
        let bits = node.int_or(name, all)?;
        let bits = match bits {
            2 | 4 | 8 => bits as u32,
            _ => return Err(node.unsupported_value(name, bits, "2, 4, 8")),
        };
        let Some(weights) = node.optional(at) else { return Ok(None) };
        let (scales, zeros) = (node.input(at + 1)?, node.optional(zeros));
        let packed = Packed { bits, block, scales, zeros, in_integers };
        Ok(Some(Layer { weights, bias: node.optional(at + 2), packed: Some(packed) }))
    };
    let layers = [
        layer("fc1_expert_weight_bits", 2, 11)?,
        layer("fc2_expert_weight_bits", 5, 12)?,
        layer("fc3_expert_weight_bits", 8, 13)?,
    ];
    let [first, second, gate] = layers;
    let network = Network::read(node, first, second, gate)?;
    network.mixture(node, b, node.optional(14))
}

impl<'n> Network<'n> {
    fn read(
        node: &Node,
        first: Option<Layer<'n>>,
        second: Option<Layer<'n>>,
        gate: Option<Layer<'n>>,
    ) -> Result<Network<'n>> {
        let (Some(first), Some(second)) = (first, second) else {
            return Err(Error::model("the weights of a layer are missing"));
        };
        let experts = first.weights.shape().first().map_or(Ok(0), |d| d.fixed(node.op()))?;
        let (alpha, beta) =
            (node.float_or("activation_alpha", 1.0)?, node.float_or("activation_beta", 0.0)?);
        let limit = node.float_or("swiglu_limit", f32::INFINITY)?;
        let fusion = node.int_or("swiglu_fusion", 0)?;
        let late = node.int_or("swiglu_limit_after_activation", 0)?;
        if late != 0 {
            return Err(node.unsupported_value("swiglu_limit_after_activation", late, "0"));
        }
        if node.flag("use_sparse_mixer", false)? {
            return Err(node.unsupported_value("use_sparse_mixer", 1, "0"));
        }
        let activation = match node.text_or("activation_type", "relu")? {
            "relu" => Activation::Plain("Relu"),
            "gelu" => Activation::Plain("Gelu"),
            "silu" => Activation::Plain("Swish"),
            "identity" => Activation::Plain("Identity"),
            "swiglu" => {
                let halves = match fusion {
                    0 => Halves::Apart,
                    1 => Halves::Woven,
                    2 => Halves::Joined,
                    _ => return Err(node.unsupported_value("swiglu_fusion", fusion, "0, 1, 2")),
                };
                let limit = Some(limit).filter(|limit| limit.is_finite());
                Activation::Gated { alpha, beta, limit, halves }
            }
            other => {
                let known = "relu, gelu, silu, swiglu, identity";
                return Err(node.unsupported_value("activation_type", other, known));
            }
        };
        let two = matches!(&activation, Activation::Gated { halves: Halves::Apart, .. });
        let one = matches!(&activation, Activation::Gated { .. }) && !two;
        if two && gate.is_none() || one && gate.is_some() {
            return Err(Error::model("`swiglu_fusion` does not fit the layers that are given"));
        }
        Ok(Network { experts, first, second, gate, activation })
    }

    /// The results of the experts that each row chooses, added up.
    fn mixture(
        &self,
        node: &Node,
        b: &mut Builder,
        weights: Option<&Imported>,
    ) -> Result<Vec<Imported>> {
        let c = &mut Compose::new(node, b);
        let x = node.input(0)?;
        let Some((width, outer)) = x.shape().split_last().map(|(w, o)| (*w, o.to_vec())) else {
            return Err(Error::model(format!("{} has no rows", operand(x))));
        };
        let rows = dim::product(outer.iter().copied());
        let flat = c.reshape(x, &[rows, width])?;
        let mix = self.weights_of_rows(node, c, rows, weights)?;
        let zero = c.number(x.dtype(), 0.0)?;
        let mut y = c.expand(&zero, &[rows, width])?;
        for e in 0..self.experts {
            let own = c.slice(&mix, 1, e, e + 1)?;
            let own = c.reshape(&own, &[rows])?;
            let zero = c.number(own.dtype(), 0.0)?;
            let chosen = c.op("Equal", &[&own, &zero])?;
            let chosen = c.op("Not", &[&chosen])?;
            let any = c.cast(&chosen, DType::I32)?;
            let any = c.reduce("ReduceMax", &any, &[0], false)?;
            let any = c.cast(&any, DType::BOOL)?;
            let depth = c.b.depth();
            c.b.open_body();
            let added = self.added(c, e, &flat, &y, (&own, &chosen));
            let added = added.inspect_err(|_| c.b.drop_bodies(depth))?;
            let then = c.b.close_body(&[added])?;
            c.b.open_body();
            let otherwise = c.b.close_body(&[y.clone()])?;
            let kinds = [Like::new(&y)];
            let made = c.b.branches(&any, then, otherwise, &kinds)?;
            y = made.into_iter().next().ok_or_else(|| Error::internal("a branch gives nothing"))?;
        }
        one(c.reshape(&y, &x.shape())?)
    }

    /// The weight of each expert in each row, `[rows, experts]`: zero for those that it does not choose.
    fn weights_of_rows(
        &self,
        node: &Node,
        c: &mut Compose,
        rows: Dim,
        weights: Option<&Imported>,
    ) -> Result<Imported> {
        let scores = node.input(1)?;
        let experts = Dim::from(self.experts);
        let shape = scores.shape();
        if shape != [rows, experts] {
            let what =
                format!("the scores {} of {rows} rows and {experts} experts", operand(scores));
            let pairs = (shape.len() == 2 && shape[1] == experts).then(|| (shape[0], rows));
            return Err(unequal(Error::model(what), pairs));
        }
        let count = node.size_or("k", 1)?;
        let k = value::list(&[count as i64])?;
        let best = c.all("TopK", &[Some(scores), Some(&k)], [int("axis", 1)], 2)?;
        let [_, at] = &best[..] else { return Err(Error::internal("TopK has two results")) };
        let all = match weights {
            Some(weights) => weights.clone(),
            None => c.with("Softmax", &[scores], [int("axis", 1)])?,
        };
        let mut chosen = c.with("GatherElements", &[&all, at], [int("axis", 1)])?;
        if node.flag("normalize_routing_weights", false)? {
            let sum = c.reduce("ReduceSum", &chosen, &[1], true)?;
            chosen = c.op("Div", &[&chosen, &sum])?;
        }
        let zero = c.number(chosen.dtype(), 0.0)?;
        let none = c.expand(&zero, &[rows, experts])?;
        c.with("ScatterElements", &[&none, at, &chosen], [int("axis", 1)])
    }

    /// What has been added up, and the results of an expert for the rows that choose it.
    fn added(
        &self,
        c: &mut Compose,
        e: usize,
        x: &Imported,
        y: &Imported,
        (weights, chosen): (&Imported, &Imported),
    ) -> Result<Imported> {
        if x.shape()[0] == 1 {
            let made = self.expert(c, e, x)?;
            let weight = c.reshape(weights, &[1, 1])?;
            let made = c.op("Mul", &[&made, &weight])?;
            return c.op("Add", &[y, &made]);
        }
        let at = c.op("NonZero", &[chosen])?;
        let count = *at.shape().last().unwrap_or(&Dim::from(0));
        let at = c.reshape(&at, &[count])?;
        let rows = c.with("Gather", &[x, &at], [int("axis", 0)])?;
        let made = self.expert(c, e, &rows)?;
        let weights = c.with("Gather", &[weights, &at], [int("axis", 0)])?;
        let weights = c.reshape(&weights, &[count, 1.into()])?;
        let made = c.op("Mul", &[&made, &weights])?;
        let at = c.reshape(&at, &[count, 1.into()])?;
        c.with("ScatterND", &[y, &at, &made], [text("reduction", "add")])
    }

    /// The network of an expert on rows.
    fn expert(&self, c: &mut Compose, e: usize, x: &Imported) -> Result<Imported> {
        let first = self.first.on(c, e, x)?;
        let gate = self.gate.as_ref().map(|gate| gate.on(c, e, x)).transpose()?;
        let inner = match (&self.activation, gate) {
            (Activation::Gated { alpha, beta, limit, halves }, gate) => {
                let (g, l) = parts(c, first, gate, *halves)?;
                let numbers = [*alpha, *beta].map(|n| c.number(x.dtype(), n.into()));
                let [alpha, beta] = numbers;
                let (g, l) = match limit {
                    Some(limit) => {
                        let [low, high] = [-limit, *limit].map(|n| c.number(x.dtype(), n.into()));
                        let (low, high) = (low?, high?);
                        let l = c.op("Max", &[&l, &low])?;
                        (c.op("Min", &[&g, &high])?, c.op("Min", &[&l, &high])?)
                    }
                    None => (g, l),
                };
                let bent = c.op("Mul", &[&g, &alpha?])?;
                let bent = c.op("Sigmoid", &[&bent])?;
                let bent = c.op("Mul", &[&g, &bent])?;
                let l = c.op("Add", &[&l, &beta?])?;
                c.op("Mul", &[&bent, &l])?
            }
            (Activation::Plain(op), gate) => {
                let bent = match *op {
                    "Identity" => first,
                    // As ONNX Runtime computes it.
                    "Gelu" => c.with("Gelu", &[&first], [text("approximate", "tanh")])?,
                    "Swish" => c.with("Swish", &[&first], [float("alpha", 1.0)])?,
                    op => c.op(op, &[&first])?,
                };
                gate.map_or(Ok(bent.clone()), |gate| c.op("Mul", &[&bent, &gate]))?
            }
        };
        self.second.on(c, e, &inner)
    }
}

/// Both parts of a gated activation.
fn parts(
    c: &mut Compose,
    first: Imported,
    gate: Option<Imported>,
    halves: Halves,
) -> Result<(Imported, Imported)> {
    if let (Halves::Apart, Some(gate)) = (halves, gate) {
        return Ok((first, gate));
    }
    let &[rows, width] = &first.shape()[..] else { return Err(Error::internal("rows")) };
    let half = width.floordiv(2);
    if halves == Halves::Joined {
        return Ok((c.slice(&first, 1, 0, half)?, c.slice(&first, 1, half, width)?));
    }
    let pairs = c.reshape(&first, &[rows, half, 2.into()])?;
    let mut part = |at: usize| {
        let one = c.slice(&pairs, 2, at, at + 1)?;
        c.reshape(&one, &[rows, half])
    };
    Ok((part(0)?, part(1)?))
}

/// What belongs to an expert.
fn of_expert(c: &mut Compose, all: &Imported, e: usize) -> Result<Imported> {
    let one = c.slice(all, 0, e, e + 1)?;
    let shape = one.shape();
    c.reshape(&one, &shape[1..])
}

impl Layer<'_> {
    /// The layer of an expert on rows.
    fn on(&self, c: &mut Compose, e: usize, x: &Imported) -> Result<Imported> {
        let weights = of_expert(c, self.weights, e)?;
        let bias = self.bias.map(|bias| of_expert(c, bias, e)).transpose()?;
        let Some(packed) = &self.packed else {
            let inputs = [Some(x), Some(&weights), bias.as_ref()];
            return c.first("Gemm", &inputs, [int("transB", 1)]);
        };
        let (weights, given) = packed.of_expert(c, e, &weights, x)?;
        product_of_rows(c, x, &weights, &given, packed.in_integers, bias.as_ref())
    }
}

impl Packed<'_> {
    /// The weights of an expert for rows, and the tensors that they are.
    fn of_expert(
        &self,
        c: &mut Compose,
        e: usize,
        integers: &Imported,
        x: &Imported,
    ) -> Result<(Weights, Vec<Imported>)> {
        let (n, bytes) = match integers.shape()[..] {
            [n, bytes] if integers.dtype() == DType::U8 => {
                (n.fixed("columns")?, bytes.fixed("bytes")?)
            }
            _ => return Err(Error::model(format!("{} holds no weights", operand(integers)))),
        };
        let per = 8 / self.bits as usize;
        let k = bytes * per;
        let block = self.block.unwrap_or(k);
        let scales = of_expert(c, self.scales, e)?;
        let mut weights =
            Weights { n, k, bits: self.bits, block, scale: scales.dtype(), zero: Zero::Middle };
        let blocks = weights.blocks();
        if x.shape().last() != Some(&Dim::from(k)) || !k.is_multiple_of(block.max(1)) {
            let what = format!("{} for {n} x {k} weights in blocks of {block}", operand(x));
            return Err(Error::model(what));
        }
        let mut given = vec![
            c.reshape(integers, &[n, blocks, block / per])?,
            held(c, &scales, &[n, blocks], "scales")?,
        ];
        if let Some(zeros) = self.zeros {
            let zeros = of_expert(c, zeros, e)?;
            if self.block.is_some() {
                let row = weights.zero_bytes();
                weights.zero = Zero::Packed(row);
                given.push(held(c, &zeros, &[n, row], "zero points")?);
            } else {
                // Those of all columns are packed in one row.
                let Some(bytes) = zeros.constant().filter(|t| t.len() == n.div_ceil(per)) else {
                    let what = format!("the zero points {} of {n} columns", operand(&zeros));
                    return Err(Error::unsupported(what));
                };
                let mask = 0xffu8 >> (8 - self.bits);
                let one = |at: usize| bytes.bytes()[at / per] >> (self.bits as usize * (at % per));
                let numbers: Vec<f32> = (0..n).map(|at| f32::from(one(at) & mask)).collect();
                weights.zero = Zero::Float(DType::F32);
                given.push(Imported::Const(Tensor::from_slice(&[n, 1], &numbers)?));
            }
        }
        Ok((weights, given))
    }
}
