//! What bytes cost by the place that they come from: caches near and far, or memory.

use tilewright_ir::{Buffer, dim};
use tilewright_target::Target;

use crate::tile::LINE_BYTES;

/// Where operands are.
#[derive(Clone, Default)]
pub(super) struct Operands {
    /// Those that other kernels make.
    pub(super) apart: Vec<Buffer>,
    /// Those that the same kernel makes.
    pub(super) joined: Vec<Buffer>,
    /// Those that come from memory.
    pub(super) cold: Vec<Buffer>,
    /// Whether the result is stored nowhere.
    pub(super) reduced: bool,
}

/// The part of the constants of a graph, which have so many bytes, that comes from memory in each run: none
/// where they fill half of the last cache, and all where they are larger than it by as much.
fn from_memory(constants: u64, target: &Target) -> f64 {
    let cache = target.caches.l3.max(2 * target.caches.l2) as f64;
    (constants as f64 / cache - 0.5).clamp(0.0, 1.0)
}

/// What is so much where all comes from a cache, and so much where all comes from memory.
fn between(near: f64, far: f64, part: f64) -> f64 {
    near + (far - near) * part
}

/// What a kernel of so many bytes costs beside its work; `constants` are the bytes of all constants that a
/// run reads.
pub(super) fn call(bytes: f64, constants: u64, target: &Target) -> f64 {
    let costs = &target.costs;
    let most = if constants <= target.caches.l2 as u64 {
        costs.call_near
    } else {
        between(costs.call_far, costs.call_memory, from_memory(constants, target))
    };
    // What is small is there after a few misses.
    most.min(costs.call_near + bytes / LINE_BYTES * costs.call_line)
}

/// An access of a line of what was made shortly before, where so many bytes are read and written in all.
pub(super) fn access(touched: f64, target: &Target) -> f64 {
    let costs = &target.costs;
    match touched {
        _ if touched <= target.caches.l1 as f64 => costs.vector_first,
        _ if touched <= target.caches.l2 as f64 * 0.5 => costs.vector_near,
        _ if touched <= target.caches.l2 as f64 * 3.0 => costs.vector_second,
        _ => costs.vector_far,
    }
}

/// How many cells a buffer has; estimated where its size is open.
pub(super) fn cells(buffer: &Buffer) -> Option<f64> {
    let shape = dim::of_shape(&buffer.shape)?;
    Some(shape.into_iter().map(|d| d.estimate() as f64).product())
}

/// How many bytes a buffer has; estimated where its size is open.
pub(crate) fn bytes(buffer: &Buffer) -> Option<f64> {
    Some(cells(buffer)? * buffer.dtype().bytes() as f64)
}

/// What takes so many cycles beside reading so many bytes of weights.
pub(super) fn with_weights(cycles: f64, weights: f64, constants: u64, target: &Target) -> f64 {
    let costs = &target.costs;
    let near = cycles.max(weights * costs.weight_near);
    let far = (cycles + weights * costs.wait).max(weights * costs.weight_far);
    between(near, far, from_memory(constants, target))
}
