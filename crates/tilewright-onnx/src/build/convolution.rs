//! Convolutions that may still change.

use tilewright_ir::{GraphVar, Tensor};
use tilewright_ops::contraction::Conv;

use crate::imported::Imported;

/// A convolution with constant weights, kept so that a batch normalisation can join it.
pub(crate) struct Convolution {
    pub(crate) params: Conv,
    pub(crate) x: Imported,
    pub(crate) weights: Tensor,
    pub(crate) bias: Option<Tensor>,
    pub(crate) result: GraphVar,
    /// How often the graph reads the result.
    pub(crate) uses: usize,
}
