//! Products with constants that take on a scale and a sum behind them, as optimisers fold norms into weights.
//!
//! A product `sum of x * w`, with a bias or without, whose result is scaled and shifted by constants for each
//! channel, `a * (..) + b`, is the product with `a * w` and `a * bias + b`: in the reals, and with constants that are
//! rounded once more. Without a bias the shift stays behind the product.

use tilewright_analysis::Stage;
use tilewright_analysis::stage::open_stages;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Tensor, TensorFunc, Var};

use crate::lines::Lines;

/// A product with other constants.
pub(crate) struct Folded {
    /// By the positions of its parameters.
    pub(crate) constants: Vec<(usize, Tensor)>,
    /// What is left to do behind it.
    pub(crate) left: Option<Lines>,
}

/// A sum of products with weights.
pub(crate) struct Product {
    /// The positions of the parameters.
    weights: usize,
    bias: Option<usize>,
    /// The axis of the result that counts channels.
    pub(crate) channel: usize,
    /// That of the weights.
    along: usize,
}

impl Product {
    /// The product that takes on what lines make of its result; `None` where its weights are no constants.
    pub(crate) fn fold(&self, given: &[Option<Tensor>], lines: &Lines) -> Option<Folded> {
        let weights = given.get(self.weights)?.as_ref()?;
        let channels = *weights.shape().get(self.along)?;
        let each = &lines.each;
        if lines.channel != self.channel || each.len() != channels {
            return None;
        }
        let inside: usize = weights.shape()[self.along + 1..].iter().product();
        let values = weights.as_slice::<f32>()?.iter().enumerate();
        let values = values.map(|(k, w)| (f64::from(*w) * each[k / inside % channels].0) as f32);
        let values: Vec<f32> = values.collect();
        let scaled = Tensor::from_slice(weights.shape(), &values).ok()?;
        let mut constants = vec![(self.weights, scaled)];
        let Some(at) = self.bias else {
            let left = Some(lines.shifts()).filter(|l| !l.is_identity());
            return Some(Folded { constants, left });
        };
        let bias = given.get(at)?.as_ref().filter(|t| t.len() == channels)?;
        let values = bias.as_slice::<f32>()?.iter().zip(each);
        let values: Vec<f32> = values.map(|(v, (a, b))| (f64::from(*v) * a + b) as f32).collect();
        constants.push((at, Tensor::from_slice(bias.shape(), &values).ok()?));
        Some(Folded { constants, left: None })
    }

    pub(crate) fn recognise(func: &TensorFunc) -> Option<Product> {
        let params: Vec<&Buffer> = func.buffers().collect();
        let (result, inputs) = params.split_last()?;
        let place = |b: &Buffer| inputs.iter().position(|p| *p == b);
        let stages = open_stages(func)?;
        let (sum, behind) = match &stages[..] {
            [.., sum, last] if last.init.is_none() && last.buffer == **result => (sum, Some(last)),
            [.., sum] if sum.buffer == **result => (sum, None),
            _ => return None,
        };
        let is_sum = sum.init.as_ref()?.as_float() == Some(0.0);
        let factors = sum.factors().filter(|_| is_sum)?;
        // The weights are a parameter of which each element is multiplied as it is; what pads data is none.
        let loads = factors.iter().rev().filter_map(|e| match e.kind() {
            ExprKind::Load(b, at) => Some((place(b)?, at)),
            _ => None,
        });
        for (weights, at) in loads {
            let axes = sum.indices.iter().enumerate().filter_map(|(channel, e)| {
                let var = e.as_var()?;
                let along = at.iter().position(|i| i.as_var() == Some(var))?;
                let elsewhere = at.iter().enumerate().any(|(k, i)| k != along && i.mentions(var));
                (!elsewhere).then_some((channel, along))
            });
            for (channel, along) in axes {
                let bias = match behind {
                    None => None,
                    Some(last) => match bias_of(last, sum, channel).and_then(|b| place(&b)) {
                        Some(bias) => Some(bias),
                        None => continue,
                    },
                };
                if inputs[weights].rank() > 1
                    && (sum.factors()?.iter().filter(|e| reads(e, inputs[weights])).count() == 1)
                {
                    return Some(Product { weights, bias, channel, along });
                }
            }
        }
        None
    }
}

fn reads(e: &Expr, buffer: &Buffer) -> bool {
    let mut found = false;
    e.for_each_load(|b, _| found |= b == buffer);
    found
}

/// What a stage adds to a sum, for each channel.
fn bias_of(stage: &Stage, sum: &Stage, channel: usize) -> Option<Buffer> {
    let ExprKind::Binary(BinOp::Add, a, b) = stage.value.kind() else { return None };
    let (ExprKind::Load(from, at), ExprKind::Load(bias, by)) = (a.kind(), b.kind()) else {
        return None;
    };
    let vars = stage.indices.iter().map(Expr::as_var).collect::<Option<Vec<&Var>>>()?;
    let is_same =
        *from == sum.buffer && at.iter().map(Expr::as_var).eq(vars.iter().map(|v| Some(*v)));
    let [index] = &by[..] else { return None };
    (is_same && index.as_var() == vars.get(channel).copied()).then(|| bias.clone())
}
