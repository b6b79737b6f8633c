//! What scales and shifts each channel by constants, `a * x + b`: norms, biases, and convolutions of single pixels
//! that optimisers write for them.

use tilewright_analysis::Stage;
use tilewright_analysis::reals::inlined;
use tilewright_graph::stages::{at, buffer, cells};
use tilewright_ir::{
    BinOp, Buffer, DType, Dim, Error, Expr, ExprKind, Param, Result, Tensor, TensorFunc, Var, dim,
};

/// `a * x + b` for each channel.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// The axis that counts channels.
    pub(crate) channel: usize,
    /// `a` and `b` of each.
    pub(crate) each: Vec<(f64, f64)>,
}

impl Lines {
    /// Those that a function makes of its one argument that is no constant, along an axis, or along the first one for
    /// which it has such.
    pub(crate) fn recognise(
        func: &TensorFunc,
        constants: &[Option<Tensor>],
        channel: Option<usize>,
    ) -> Option<Lines> {
        let [stage] = &inlined(func)?[..] else { return None };
        let params: Vec<&Buffer> = func.buffers().collect();
        let (result, inputs) = params.split_last()?;
        let data = *inputs.iter().zip(constants).find(|(_, t)| t.is_none())?.0;
        let constants =
            inputs.iter().zip(constants).filter_map(|(b, t)| Some((*b, t.as_ref()?))).collect();
        let is_plain = stage.init.is_none()
            && stage.buffer == **result
            && stage.covers_buffer().is_some_and(|axes| axes.iter().all(Option::is_some));
        let scale = Scale { constants, data, stage };
        let axes = channel.map_or(0..result.rank(), |c| c..c + 1);
        axes.filter(|_| is_plain).find_map(|channel| {
            let channels = dim::fixed(&dim::of_shape(&result.shape)?, "channels").ok()?;
            let var = stage.indices.get(channel)?.as_var()?;
            let each = (0..*channels.get(channel)?).map(|c| scale.line(&stage.value, var, c));
            Some(Lines { channel, each: each.collect::<Option<Vec<_>>>()? })
        })
    }

    /// These lines of other ones.
    pub(crate) fn after(&self, before: &Lines) -> Option<Lines> {
        let is_same = self.channel == before.channel && self.each.len() == before.each.len();
        let pairs = self.each.iter().zip(&before.each);
        let each = pairs.map(|((a, b), (c, d))| (a * c, a * d + b)).collect();
        is_same.then_some(Lines { channel: self.channel, each })
    }

    /// Without the factors.
    pub(crate) fn shifts(&self) -> Lines {
        let each = self.each.iter().map(|(_, b)| (1.0, *b)).collect();
        Lines { channel: self.channel, each }
    }

    /// Whether they change anything.
    pub(crate) fn is_identity(&self) -> bool {
        self.each.iter().all(|line| *line == (1.0, 0.0))
    }

    /// A function that computes them of a tensor of numbers, and its constants.
    pub(crate) fn func(&self, shape: &[Dim]) -> Result<(TensorFunc, [Tensor; 2])> {
        let channels =
            *shape.get(self.channel).ok_or_else(|| Error::internal("no such channel"))?;
        let [x, y] = ["x", "y"].map(|name| buffer(name, shape, DType::F32));
        let [a, b] = ["a", "b"].map(|name| buffer(name, &[channels], DType::F32));
        let iters = cells("v", shape);
        let place = at(&iters);
        let channel = place[self.channel].clone();
        let value = x.load(place.clone()) * a.load([channel.clone()]) + b.load([channel]);
        let stage = Stage::build("line", &iters, &y, place, value, None);
        let params = [x, a, b, y].iter().map(Param::tensor).collect();
        let func = TensorFunc::new(params, stage.stmt);
        let constant = |of: fn(&(f64, f64)) -> f64| {
            let values: Vec<f32> = self.each.iter().map(|line| of(line) as f32).collect();
            Tensor::from_slice(&[values.len()], &values)
        };
        Ok((func, [constant(|line| line.0)?, constant(|line| line.1)?]))
    }
}

/// An elementwise function of one tensor and constants.
struct Scale<'a> {
    constants: Vec<(&'a Buffer, &'a Tensor)>,
    data: &'a Buffer,
    stage: &'a Stage,
}

impl Scale<'_> {
    /// The line that an expression is in one channel, which a variable counts.
    fn line(&self, e: &Expr, var: &Var, channel: usize) -> Option<(f64, f64)> {
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
                        None if index.as_var() == Some(var) => channel,
                        None => return None,
                    };
                    place = place * extent + Some(index).filter(|i| i < extent)?;
                }
                let is_float = t.dtype().is_float() && at.len() == t.shape().len();
                is_float.then(|| (0.0, t.get_f64(place)))
            }
            ExprKind::Binary(op, x, y) => {
                let (a, b) = self.line(x, var, channel)?;
                let (c, d) = self.line(y, var, channel)?;
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
