//! Products with weights of a few bits in blocks, in the form that tiles of vectors are made of.
//!
//! Such a product is recognised from what it computes, whatever the bits are packed in: a factor is made of
//! integers that are the same in every run and lie in a range of 2, 4 or 8 bits, and all else that is made
//! of such arguments is the same for a whole block of the reduction. Either a sum of integers over a block
//! is scaled and added up, or numbers are:
//!
//! ```text
//! d[m, n, b] = sum over i of q[m, b, i] * (w(n, b, i) - zero(n, b))
//! y[m, n] = sum over b of d[m, n, b] * scale(n, b)           y[m, n] = sum over b, i of x(m, b, i) * f(w(n, b, i), n, b)
//! ```
//!
//! The integers are packed again, so that a vector of bytes holds what vectors of lanes multiply: of a tile of
//! columns, chunks of a block follow one another, and in a byte lie the bits of elements that are a group of
//! an instruction apart (1 for numbers):
//!
//! ```text
//! packed[tile, b, chunk, j, vector, lane, e] = bits of n = (tile, vector, lane), i = (chunk, j * per_byte + h, e) for each h
//! ```
//!
//! It is a stage that is marked ([`PRE`](tilewright_layout::marks::PRE)), as are the tables of what belongs to a block of a column: both are made
//! once, and what they are made of is not kept. The bits are taken apart by a stage that `schedule` computes
//! in registers. Rows come in tiles; those that whole tiles leave over are a part of their own.

mod form;
mod make;
pub(crate) mod schedule;
mod tiles;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Buffer, TensorFunc};
use tilewright_target::Target;

use self::form::BlockedProduct;
use self::make::TiledFunction;
use self::tiles::Tiles;
use crate::contraction::is_free;

/// The function with its products of weights in blocks in tiles; `None` where there are none, or the machine
/// has no vectors for them.
pub fn expand(func: &TensorFunc, target: &Target) -> Option<TensorFunc> {
    let stages = open_stages(func)?;
    let form = recognised(func, &stages, &|b| is_free(func, b))?;
    let tiles = Tiles::choose(&form, target)?;
    let (allocs, _) = func.root_parts();
    let made = TiledFunction { allocs: allocs.to_vec(), ..TiledFunction::default() };
    made.product(func, &stages, &form, &tiles)
}

/// The first product with weights in blocks of a function, where `free` says what is the same in every run.
fn recognised(
    func: &TensorFunc,
    stages: &[Stage],
    free: &dyn Fn(&Buffer) -> bool,
) -> Option<BlockedProduct> {
    let (allocs, _) = func.root_parts();
    (0..stages.len()).find_map(|k| {
        let form = BlockedProduct::integers(allocs, stages, k, free);
        form.or_else(|| BlockedProduct::numbers(&stages[k], k, free))
    })
}

/// What a product costs whose tiles [`expand`] makes.
pub(crate) struct TiledProduct {
    /// The stages that it takes the place of, by their numbers.
    pub stages: Vec<usize>,
    /// Estimated cycles, weights being in a cache.
    pub cycles: f64,
}

/// The price of the product with weights in blocks of a function; `None` where there is none, or the machine has no
/// vectors for it.
pub(crate) fn price(
    func: &TensorFunc,
    free: &dyn Fn(&Buffer) -> bool,
    target: &Target,
) -> Option<TiledProduct> {
    let form = recognised(func, &open_stages(func)?, free)?;
    let cycles = Tiles::choose(&form, target)?.cycles(&form, target);
    Some(TiledProduct { stages: form.stages, cycles })
}
