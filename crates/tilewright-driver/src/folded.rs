//! Products with constants that take on a scale and a sum behind them, as optimisers fold norms into weights.
//!
//! A product `sum of x * w`, with a bias or without, whose result is scaled and shifted by constants for each
//! channel, `a * (..) + b`, is the product with `a * w` and `a * bias + b`: in the reals, and with constants that are
//! rounded once more.

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_analysis::stage::open_stages;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Tensor, TensorFunc, Var};

/// A function, and its arguments that are constants.
type Given<'a> = (&'a Arc<TensorFunc>, &'a [Option<Tensor>]);

/// The constants of a product, by the positions of its parameters, with which it is what an elementwise function makes of
/// its result.
pub(crate) fn folded(scale: Given<'_>, product: Given<'_>) -> Option<Vec<(usize, Tensor)>> {
    let of = Product::recognise(product.0)?;
    let weights = product.1.get(of.weights)?.as_ref()?;
    let channels = *weights.shape().get(of.along)?;
    let lines = Scale::recognise(scale, of.channel, channels)?;
    let inside: usize = weights.shape()[of.along + 1..].iter().product();
    let values = weights.as_slice::<f32>()?.iter().enumerate();
    let values = values.map(|(k, w)| (f64::from(*w) * lines[k / inside % channels].0) as f32);
    let values: Vec<f32> = values.collect();
    let mut all = vec![(of.weights, Tensor::from_slice(weights.shape(), &values).ok()?)];
    match of.bias {
        Some(at) => {
            let bias = product.1.get(at)?.as_ref()?;
            let values = bias.as_slice::<f32>()?.iter().zip(&lines);
            let values: Vec<f32> =
                values.map(|(v, (a, b))| (f64::from(*v) * a + b) as f32).collect();
            all.push((
                at,
                Tensor::from_slice(bias.shape(), &values).ok().filter(|t| t.len() == channels)?,
            ));
        }
        None if lines.iter().any(|(_, b)| *b != 0.0) => return None,
        None => {}
    }
    Some(all)
}

/// A sum of products with weights.
struct Product {
    /// The positions of the parameters.
    weights: usize,
    bias: Option<usize>,
    /// The axis of the result that counts channels, and that of the weights.
    channel: usize,
    along: usize,
}

impl Product {
    fn recognise(func: &TensorFunc) -> Option<Product> {
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

/// An elementwise function of one tensor: `a * x + b`, for each channel.
struct Scale<'a> {
    constants: Vec<(&'a Buffer, &'a Tensor)>,
    data: &'a Buffer,
    stage: &'a Stage,
    /// The variable that counts channels.
    var: &'a Var,
}

impl Scale<'_> {
    /// `a` and `b` of each channel.
    fn recognise(scale: Given<'_>, channel: usize, channels: usize) -> Option<Vec<(f64, f64)>> {
        let (func, given) = scale;
        let [stage] = &open_stages(func)?[..] else { return None };
        let params: Vec<&Buffer> = func.buffers().collect();
        let (result, inputs) = params.split_last()?;
        let data = *inputs.iter().zip(given).find(|(_, t)| t.is_none())?.0;
        let constants =
            inputs.iter().zip(given).filter_map(|(b, t)| Some((*b, t.as_ref()?))).collect();
        let is_plain = stage.init.is_none()
            && stage.buffer == **result
            && stage.covers_buffer().is_some_and(|axes| axes.iter().all(Option::is_some));
        let var = stage.indices.get(channel).and_then(Expr::as_var).filter(|_| is_plain)?;
        let scale = Scale { constants, data, stage, var };
        (0..channels).map(|c| scale.line(&stage.value, c)).collect()
    }

    /// The line that an expression is in one channel.
    fn line(&self, e: &Expr, channel: usize) -> Option<(f64, f64)> {
        match e.kind() {
            ExprKind::Float(_) => Some((0.0, e.as_float()?)),
            ExprKind::Load(b, at) if b == self.data => {
                let own = self.stage.indices.iter().map(Expr::as_var);
                at.iter().map(Expr::as_var).eq(own).then_some((1.0, 0.0))
            }
            ExprKind::Load(b, at) => {
                let t = self.constants.iter().find(|(c, _)| *c == b)?.1;
                let mut place = 0;
                for (index, extent) in at.iter().zip(t.shape()) {
                    let index = match index.as_int() {
                        Some(n) => usize::try_from(n).ok()?,
                        // An axis of one element has one index.
                        None if *extent == 1 => 0,
                        None if index.as_var() == Some(self.var) => channel,
                        None => return None,
                    };
                    place = place * extent + Some(index).filter(|i| i < extent)?;
                }
                let is_float = t.dtype().is_float() && at.len() == t.shape().len();
                is_float.then(|| (0.0, t.get_f64(place)))
            }
            ExprKind::Binary(op, x, y) => {
                let ((a, b), (c, d)) = (self.line(x, channel)?, self.line(y, channel)?);
                match op {
                    BinOp::Add => Some((a + c, b + d)),
                    BinOp::Sub => Some((a - c, b - d)),
                    BinOp::Mul if a == 0.0 => Some((b * c, b * d)),
                    BinOp::Mul if c == 0.0 => Some((a * d, b * d)),
                    BinOp::Div if c == 0.0 && d != 0.0 => Some((a / d, b / d)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
