//! Convolutions, recognised from their accesses: a sum of products in which one factor, the data, is read along
//! some axes in *windows* (`2 * y + ky`, a spatial and a reduction variable in one index), and the other, the
//! weights, by those reduction variables. Channels are what both factors have, or the result has from the weights.

use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::free_vars;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, IterKind, Var};

use crate::stage::Stage;

/// The axes of an operand by what they are.
#[derive(Clone, Debug)]
pub struct ConvAxes {
    /// Batch.
    pub outer: Vec<usize>,
    /// Channels; of weights, output channels first.
    pub channels: Vec<usize>,
    /// The axes that windows slide over, or the window's own.
    pub windows: Vec<usize>,
}

/// An operand of a convolution, and where it is accessed.
#[derive(Clone, Debug)]
pub struct ConvOperand {
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    pub axes: ConvAxes,
}

/// The operands of a convolution. Any window will do, whatever its length, stride and dilation.
#[derive(Clone, Debug)]
pub struct Convolution {
    pub data: ConvOperand,
    pub weights: ConvOperand,
    pub result: ConvOperand,
}

impl Convolution {
    /// The convolution that a stage is; `None` for others.
    pub fn recognise(stage: &Stage) -> Option<Convolution> {
        let [a, b] = stage.factors()?;
        let (a, b) = (operand(&a)?, operand(&b)?);
        let kinds = Kinds {
            spatial: vars(stage, IterKind::Spatial),
            reduce: vars(stage, IterKind::Reduce),
        };
        Self::with(stage, &kinds, a, b).or_else(|| Self::with(stage, &kinds, b, a))
    }

    /// The operands: data, weights and result.
    pub fn operands(&self) -> [&ConvOperand; 3] {
        [&self.data, &self.weights, &self.result]
    }

    fn with(
        stage: &Stage,
        kinds: &Kinds,
        data: (&Buffer, &[Expr]),
        weights: (&Buffer, &[Expr]),
    ) -> Option<Convolution> {
        let in_weights: HashSet<Var> = weights.1.iter().flat_map(free_vars).collect();
        // What slides is not in the weights; a group, which is, selects channels.
        let windows: Vec<usize> = positions(data.1, |e| {
            kinds.is_window(e) && !free_vars(e).is_disjoint(&(&kinds.spatial - &in_weights))
        });
        let slide: HashSet<Var> = windows.iter().flat_map(|d| free_vars(&data.1[*d])).collect();
        let window: HashSet<Var> = slide.intersection(&kinds.reduce).cloned().collect();
        if windows.is_empty() || !window.is_subset(&in_weights) {
            return None;
        }
        // Windows have a variable each in the weights; all other axes of the weights are channels.
        let own = positions(weights.1, |e| mentions_one_of(e, &window));
        let mut channels = positions(weights.1, |e| {
            mentions_one_of(e, &kinds.spatial) && !mentions_one_of(e, &window)
        });
        channels.extend(positions(weights.1, |e| {
            mentions_one_of(e, &kinds.reduce) && !mentions_one_of(e, &window)
        }));
        let outer =
            (0..weights.1.len()).filter(|d| !own.contains(d) && !channels.contains(d)).collect();
        let conv_operand = |(buffer, indices): (&Buffer, &[Expr]), axes| ConvOperand {
            buffer: buffer.clone(),
            indices: indices.to_vec(),
            axes,
        };
        let result = (&stage.buffer, &stage.indices[..]);
        Some(Convolution {
            data: conv_operand(data, axes_of(data.1, &slide, &in_weights)),
            weights: conv_operand(weights, ConvAxes { outer, channels, windows: own }),
            result: conv_operand(result, axes_of(result.1, &slide, &in_weights)),
        })
    }
}

fn mentions_one_of(e: &Expr, set: &HashSet<Var>) -> bool {
    free_vars(e).iter().any(|v| set.contains(v))
}

fn axes_of(at: &[Expr], slide: &HashSet<Var>, in_weights: &HashSet<Var>) -> ConvAxes {
    let windows = positions(at, |e| mentions_one_of(e, slide));
    let rest = (0..at.len()).filter(|d| !windows.contains(d));
    let (channels, outer): (Vec<usize>, Vec<usize>) =
        rest.partition(|d| mentions_one_of(&at[*d], in_weights));
    ConvAxes { outer, channels, windows }
}

/// The variables of a stage by their kind.
struct Kinds {
    spatial: HashSet<Var>,
    reduce: HashSet<Var>,
}

impl Kinds {
    /// A spatial and a reduction variable together.
    fn is_window(&self, e: &Expr) -> bool {
        let free = free_vars(e);
        !free.is_disjoint(&self.spatial) && !free.is_disjoint(&self.reduce)
    }
}

fn vars(stage: &Stage, kind: IterKind) -> HashSet<Var> {
    stage.iters().filter(|i| i.2 == kind).map(|i| i.0.clone()).collect()
}

fn positions(at: &[Expr], wanted: impl Fn(&Expr) -> bool) -> Vec<usize> {
    (0..at.len()).filter(|d| wanted(&at[*d])).collect()
}

/// A load, possibly converted to the type of the sum, and less a zero point.
fn operand(e: &Expr) -> Option<(&Buffer, &[Expr])> {
    match e.kind() {
        ExprKind::Load(b, at) => Some((b, at)),
        ExprKind::Cast(inner) => operand(inner),
        ExprKind::Binary(BinOp::Sub, inner, zero) => {
            let list = operand(zero).is_none_or(|(_, at)| at.len() <= 1);
            operand(inner).filter(|_| list)
        }
        _ => None,
    }
}
