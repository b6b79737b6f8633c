//! A fixed choice of layouts for whole models.
//!
//! Every convolution is computed in one kind of layout, its activations and its weights; whatever
//! lies between follows by [`super::flow`]. A convolution is recognised from its accesses: a sum of
//! products in which one factor, the data, is read along some axes in *windows* (`2 * y + ky`, a
//! spatial and a reduction variable in one index), and the other, the weights, by those reduction
//! variables. Its channels are what both factors have or the result has from the weights.
//!
//! | policy | activations | weights |
//! |---|---|---|
//! | `nchw16c`, `nchw8c` | `[n, c // 16, y, x, c % 16]` | `[m // 16, c // 16, ky, kx, c % 16, m % 16]` |
//! | `nhwc` | `[n, y, x, c]` | `[ky, kx, c, m]` |
//!
//! Channels that are not a multiple of the block are padded with zeros. Batch and pixels may be open.
//! Channels of an open size are in blocks only where the block divides that size for every value:
//! else how much is padding would be known in no place.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    BinOp, Buffer, Dim, Error, Expr, ExprKind, IterKind, Result, TensorFunc, Var, dim,
};

use super::tiled::TiledLayout;

/// Which layout convolutions get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConvLayout {
    /// `NCHW16c` and `NCHW8c`: channels in blocks, the block innermost.
    Blocked(i64),
    /// `NHWC`: channels innermost.
    ChannelsLast,
}

impl ConvLayout {
    /// Every policy by its name, and none.
    pub const NAMES: &[(&str, Option<ConvLayout>)] = &[
        ("none", None),
        ("nchw16c", Some(ConvLayout::Blocked(16))),
        ("nchw8c", Some(ConvLayout::Blocked(8))),
        ("nhwc", Some(ConvLayout::ChannelsLast)),
    ];
}

impl FromStr for ConvLayout {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let named = ConvLayout::NAMES.iter().find(|(name, _)| *name == s);
        named.and_then(|(_, policy)| *policy).ok_or_else(|| {
            Error::input(format!("there is no layout `{s}`"))
                .help("layouts are plan, none, nchw8c, nchw16c and nhwc")
        })
    }
}

impl fmt::Display for ConvLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = ConvLayout::NAMES.iter().find(|(_, policy)| *policy == Some(*self));
        match (named, self) {
            (Some((name, _)), _) => f.write_str(name),
            (None, ConvLayout::Blocked(block)) => write!(f, "nchw{block}c"),
            (None, ConvLayout::ChannelsLast) => f.write_str("nhwc"),
        }
    }
}

impl ConvLayout {
    /// The layouts of data, weights and result of a convolution; `None` for other functions.
    pub fn layouts(self, func: &TensorFunc) -> Option<Vec<(Buffer, TiledLayout)>> {
        let stages = open_stages(func)?;
        let conv = stages.iter().find_map(ConvAxes::recognise)?;
        if self.undivided(&conv).is_some() {
            return None;
        }
        conv.0
            .iter()
            .map(|(b, axes)| {
                let shape = dim::of_shape(&b.shape)?;
                Some((b.clone(), self.layout(&shape, axes)?))
            })
            .collect()
    }

    /// Why a convolution has no layout by this policy; `None` where it has one, and for other
    /// functions.
    pub fn missing(self, func: &TensorFunc) -> Option<String> {
        let conv = open_stages(func)?.iter().find_map(ConvAxes::recognise)?;
        let (buffer, axis, size) = self.undivided(&conv)?;
        let name = &buffer.name;
        Some(format!(
            "axis {axis} of `{name}`, its channels, is `{size}` long, which is not a multiple of the \
             blocks of {self} for every size"
        ))
    }

    /// Channels of an open size that the blocks of the policy do not divide.
    fn undivided(self, conv: &ConvAxes) -> Option<(&Buffer, usize, Dim)> {
        let ConvLayout::Blocked(block) = self else { return None };
        let block = usize::try_from(block).ok()?;
        conv.0.iter().find_map(|(buffer, axes)| {
            let shape = dim::of_shape(&buffer.shape)?;
            let axis = *axes.channels.iter().find(|d| {
                shape[**d].known().is_none() && shape[**d].modulo(block) != Dim::from(0)
            })?;
            Some((buffer, axis, shape[axis]))
        })
    }

    fn layout(self, shape: &[Dim], axes: &Axes) -> Option<TiledLayout> {
        let Axes { outer, channels, windows } = axes;
        match self {
            ConvLayout::Blocked(block) => {
                let blocks: Vec<(usize, i64)> = channels.iter().map(|c| (*c, block)).collect();
                // Output channels come first, and innermost.
                let inner: Vec<usize> = channels.iter().rev().copied().collect();
                let order = [&outer[..], channels, windows, &inner].concat();
                TiledLayout::blocked(shape, &order, &blocks)
            }
            ConvLayout::ChannelsLast => {
                let inner: Vec<usize> = channels.iter().rev().copied().collect();
                TiledLayout::blocked(shape, &[&outer[..], windows, &inner].concat(), &[])
            }
        }
    }
}

/// What the axes of an operand are, where that is known.
pub type Roles = Vec<Option<&'static str>>;

/// The data and the result of a convolution, with what their axes are: `batch`, `channels` or `pixels`;
/// `None` for other functions.
pub fn roles(func: &TensorFunc) -> Option<[(Buffer, Roles); 2]> {
    let stages = open_stages(func)?;
    let ConvAxes([data, _, result]) = stages.iter().find_map(ConvAxes::recognise)?;
    let (data, result) = (
        (outside_buffer(&data.0, false, func, &stages)?, data.1.roles(data.0.rank())),
        (outside_buffer(&result.0, true, func, &stages)?, result.1.roles(result.0.rank())),
    );
    let fit = [&data, &result].iter().all(|(outer, roles)| outer.rank() == roles.len());
    fit.then_some([data, result])
}

impl Axes {
    fn roles(&self, rank: usize) -> Roles {
        let mut roles = vec![None; rank];
        let kinds =
            [("batch", &self.outer), ("channels", &self.channels), ("pixels", &self.windows)];
        for (name, list) in kinds {
            list.iter().for_each(|d| roles[*d] = Some(name));
        }
        roles
    }
}

/// The parameter that an inner buffer is read from or written to, with the same axes.
fn outside_buffer(
    inner: &Buffer,
    written: bool,
    func: &TensorFunc,
    stages: &[Stage],
) -> Option<Buffer> {
    let own = func.buffers().any(|b| b == inner);
    let of = stages.iter().find_map(|s| {
        let reads = s.loads().into_iter().map(|l| l.0);
        match written {
            true if s.buffer != *inner && s.loads().iter().any(|l| l.0 == *inner) => {
                Some(s.buffer.clone())
            }
            false if s.buffer == *inner => reads.last(),
            _ => None,
        }
    });
    if own { Some(inner.clone()) } else { of }
}

/// The axes of an operand by what they are.
struct Axes {
    /// Batch.
    outer: Vec<usize>,
    /// Channels; of weights, output channels first.
    channels: Vec<usize>,
    /// The axes that windows slide over, or the window's own.
    windows: Vec<usize>,
}

/// The axes of a convolution's data, weights and result by what they are. Any window will do: whether it
/// can be transformed is asked elsewhere.
struct ConvAxes([(Buffer, Axes); 3]);

impl ConvAxes {
    fn recognise(stage: &Stage) -> Option<ConvAxes> {
        let [a, b] = stage.factors()?;
        let (a, b) = (operand(&a)?, operand(&b)?);
        let kinds = Kinds {
            spatial: vars(stage, IterKind::Spatial),
            reduce: vars(stage, IterKind::Reduce),
        };
        Self::with(stage, &kinds, a, b).or_else(|| Self::with(stage, &kinds, b, a))
    }

    fn with(
        stage: &Stage,
        kinds: &Kinds,
        data: (&Buffer, &[Expr]),
        weights: (&Buffer, &[Expr]),
    ) -> Option<ConvAxes> {
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
        Some(ConvAxes([
            (data.0.clone(), axes_of(data.1, &slide, &in_weights)),
            (weights.0.clone(), Axes { outer, channels, windows: own }),
            (stage.buffer.clone(), axes_of(&stage.indices, &slide, &in_weights)),
        ]))
    }
}

fn mentions_one_of(e: &Expr, set: &HashSet<Var>) -> bool {
    free_vars(e).iter().any(|v| set.contains(v))
}

fn axes_of(at: &[Expr], slide: &HashSet<Var>, in_weights: &HashSet<Var>) -> Axes {
    let windows = positions(at, |e| mentions_one_of(e, slide));
    let rest = (0..at.len()).filter(|d| !windows.contains(d));
    let (channels, outer): (Vec<usize>, Vec<usize>) =
        rest.partition(|d| mentions_one_of(&at[*d], in_weights));
    Axes { outer, channels, windows }
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
