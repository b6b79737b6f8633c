//! What a resize is told, and the tables of an axis.

use tilewright_ir::{DType, Dim};

use crate::operand::{Operand, working};
use crate::te::{self, Tensor};

/// How a cell's coordinate among the elements is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coordinates {
    /// `(o + 1/2) / scale - 1/2`.
    HalfPixel,
    /// Half pixels around the common centre, where `scale` times the extent is no integer.
    HalfPixelSymmetric,
    /// Half pixels, or zero for a result of extent one.
    PytorchHalfPixel,
    /// First on first and last on last.
    AlignCorners,
    /// `o / scale`.
    Asymmetric,
    /// `(o + 1/2) / scale`: the middle of a cell, where an element is at the place at which it begins. Along an axis
    /// that is not scaled, each cell is its element.
    Middle,
}

/// Which of two neighbours is nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nearest {
    /// The closer one, the lower one of equally close ones.
    RoundPreferFloor,
    /// The closer one, the upper one of equally close ones.
    RoundPreferCeil,
    /// The lower one.
    Floor,
    /// The upper one.
    Ceil,
}

/// How values between elements are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interpolation {
    /// One element.
    Nearest(Nearest),
    /// Straight lines.
    Linear,
    /// Keys' cubic kernel with this constant (ONNX's default is -0.75).
    Cubic(f64),
}

/// A change of extents by interpolation. Cells outside take the value at the edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// What is resized.
    pub x: Operand,
    /// Extents of the result, one an axis.
    pub sizes: Vec<Dim>,
    /// Extent of the result over that of `x`, one an axis, before rounding.
    pub scales: Vec<f64>,
    /// How values are made.
    pub mode: Interpolation,
    /// Where they are taken.
    pub coordinates: Coordinates,
    /// The first and the last coordinate on each axis, as fractions of the last element's; instead of
    /// `coordinates`.
    pub crop: Option<Vec<[f64; 2]>>,
    /// Whether elements outside have no weight, and the others share it.
    pub exclude_outside: bool,
    /// Whether to widen the filter when shrinking; not for nearest neighbours.
    pub antialias: bool,
}

impl Resize {
    /// The type of weights and sums. Integers are interpolated as floats.
    pub(super) fn work(&self) -> DType {
        if self.x.dtype.is_float() { working(self.x.dtype) } else { DType::F32 }
    }

    /// To the given extents, with scales that follow from them, to nearest neighbours (lower ones
    /// where equally close) of half-pixel coordinates.
    pub fn new<D: Into<Dim> + Copy>(x: Operand, sizes: &[D]) -> Self {
        let sizes = te::dims(sizes);
        let scales = x.shape.iter().zip(&sizes).map(|(&d, &s)| ratio(s, d)).collect();
        Resize {
            x,
            sizes,
            scales,
            mode: Interpolation::Nearest(Nearest::RoundPreferFloor),
            coordinates: Coordinates::HalfPixel,
            crop: None,
            exclude_outside: false,
            antialias: false,
        }
    }
}

/// The quotient of two sizes; not a number where it is open.
pub fn ratio(size: Dim, extent: Dim) -> f64 {
    match (size.known(), extent.known()) {
        (Some(size), Some(extent)) => size as f64 / extent as f64,
        _ if size == extent => 1.0,
        // A whole multiple.
        _ if size.modulo(extent) == 0 => {
            size.floordiv(extent).known().map_or(f64::NAN, |n| n as f64)
        }
        _ => f64::NAN,
    }
}

/// By how much a coordinate in `float32` may miss the middle of two neighbours and still count as equally
/// close to both: what ONNX Runtime takes.
pub(super) const HALF_WIDTH: f64 = 1e-6;

/// Entries of a table above which a resize is refused.
pub(super) const TABLE_LIMIT: f64 = (1u64 << 24) as f64;

/// Which elements a cell is made of: `index[o]`, or `index[o, tap]` with `weight[o, tap]`.
pub(super) struct Tables {
    pub(super) index: Tensor,
    pub(super) weight: Option<Tensor>,
}

/// The taps of a coordinate, counted from the element below it.
pub(super) fn tap_range(squeeze: f64, reach: f64) -> std::ops::Range<i64> {
    let first = (-reach / squeeze).floor() as i64 + 1;
    first..2 - first
}
