//! A fixed choice of layouts for whole models.
//!
//! Every convolution is computed in one kind of layout, its activations and its weights; whatever
//! lies between follows by [`super::flow`]. [`Convolution`] says what the axes of one are.
//!
//! | policy | activations | weights |
//! |---|---|---|
//! | `nchw16c`, `nchw8c`, `nchw4c` | `[n, c // 16, y, x, c % 16]` | `[m // 16, c // 16, ky, kx, c % 16, m % 16]` |
//! | `nhwc` | `[n, y, x, c]` | `[ky, kx, c, m]` |
//!
//! Channels that are not a multiple of the block are padded with zeros. Batch and pixels may be open.
//! Channels of an open size are in blocks only where the block divides that size for every value:
//! else how much is padding would be known in no place.

use std::fmt;
use std::str::FromStr;

use tilewright_analysis::convolution::{ConvAxes, ConvOperand, Convolution};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Buffer, Dim, Error, Result, TensorFunc, dim};

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
        ("nchw4c", Some(ConvLayout::Blocked(4))),
        ("nhwc", Some(ConvLayout::ChannelsLast)),
    ];
}

impl ConvLayout {
    /// Those that plans choose from where memory is flat.
    pub const OF_BUFFERS: &[ConvLayout] =
        &[ConvLayout::ChannelsLast, ConvLayout::Blocked(16), ConvLayout::Blocked(8)];

    /// Those that plans choose from where values lie in textures: a block is a texel.
    pub const OF_TEXTURES: &[ConvLayout] = &[ConvLayout::Blocked(4)];
}

impl FromStr for ConvLayout {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let named = ConvLayout::NAMES.iter().find(|(name, _)| *name == s);
        named.and_then(|(_, policy)| *policy).ok_or_else(|| {
            Error::input(format!("there is no layout `{s}`"))
                .help("layouts are plan, none, nchw4c, nchw8c, nchw16c and nhwc")
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
        let conv = stages.iter().find_map(Convolution::recognise)?;
        if self.undivided(&conv).is_some() {
            return None;
        }
        let operands = conv.operands().into_iter();
        operands
            .map(|operand| {
                let shape = dim::of_shape(&operand.buffer.shape)?;
                Some((operand.buffer.clone(), self.layout(&shape, &operand.axes)?))
            })
            .collect()
    }

    /// Why a convolution has no layout by this policy; `None` where it has one, and for other
    /// functions.
    pub fn missing(self, func: &TensorFunc) -> Option<String> {
        let conv = open_stages(func)?.iter().find_map(Convolution::recognise)?;
        let (buffer, axis, size) = self.undivided(&conv)?;
        let name = &buffer.name;
        Some(format!(
            "axis {axis} of `{name}`, its channels, is `{size}` long, which is not a multiple of the \
             blocks of {self} for every size"
        ))
    }

    /// Channels of an open size that the blocks of the policy do not divide.
    fn undivided(self, conv: &Convolution) -> Option<(&Buffer, usize, Dim)> {
        let ConvLayout::Blocked(block) = self else { return None };
        let block = usize::try_from(block).ok()?;
        conv.operands().into_iter().find_map(|ConvOperand { buffer, axes, .. }| {
            let shape = dim::of_shape(&buffer.shape)?;
            let axis = *axes.channels.iter().find(|d| {
                shape[**d].known().is_none() && shape[**d].modulo(block) != Dim::from(0)
            })?;
            Some((buffer, axis, shape[axis]))
        })
    }

    fn layout(self, shape: &[Dim], axes: &ConvAxes) -> Option<TiledLayout> {
        let ConvAxes { outer, channels, windows } = axes;
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
    let conv = stages.iter().find_map(Convolution::recognise)?;
    let outside = |inner: &ConvOperand, written| {
        let outer = outside_buffer(&inner.buffer, written, func, &stages)?;
        Some((outer, axis_roles(&inner.axes, inner.buffer.rank())))
    };
    let (data, result) = (outside(&conv.data, false)?, outside(&conv.result, true)?);
    let fit = [&data, &result].iter().all(|(outer, roles)| outer.rank() == roles.len());
    fit.then_some([data, result])
}

fn axis_roles(axes: &ConvAxes, rank: usize) -> Roles {
    let mut roles = vec![None; rank];
    let kinds = [("batch", &axes.outer), ("channels", &axes.channels), ("pixels", &axes.windows)];
    for (name, list) in kinds {
        list.iter().for_each(|d| roles[*d] = Some(name));
    }
    roles
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
