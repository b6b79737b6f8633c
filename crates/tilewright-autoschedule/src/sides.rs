//! Sides of images of open sizes, for decisions: what is usual says nothing about a run, and later layers have images
//! that are smaller than those of the first ones.

use tilewright_ir::Dim;

/// By how much the sides of later layers are shorter than those of the first ones.
pub(crate) const SHORTER: [i64; 2] = [4, 16];
/// By how much the shortest sides are.
pub(crate) const MUCH_SHORTER: i64 = 32;
/// What a side of later layers has at least.
pub(crate) const SHORT: i64 = 15;
/// The shortest side that is usual.
pub(crate) const SHORTEST: i64 = 7;
/// Open sizes that the number of the pixels of an image is of.
const PIXELS: usize = 2;

/// Whether a size is that of all pixels of an image: many, as a rule.
pub(crate) fn is_of_pixels(size: Dim) -> bool {
    sizes_of(size) >= PIXELS
}

/// How many open sizes a size is of, also where a variable stands for it.
fn sizes_of(dim: Dim) -> usize {
    dim.vars().iter().map(|v| v.stands_for().map_or(1, sizes_of)).sum()
}

/// The part of a vector of so many lanes that each value of a side takes, in the mean of sides from the usual length to the
/// shortest.
pub(crate) fn vectors_of_side(usual: i64, lanes: i64) -> f64 {
    let [a, b] = SHORTER;
    let all = [1, a, b, MUCH_SHORTER].map(|part| {
        let side = (usual / part).max(SHORTEST).min(usual);
        (side as u64).div_ceil(lanes as u64) as f64 / side as f64
    });
    all.iter().sum::<f64>() / all.len() as f64
}
