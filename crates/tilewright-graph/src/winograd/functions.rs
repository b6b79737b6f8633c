//! The functions that a convolution by transforms becomes, and what they cost.

use tilewright_ir::TensorFunc;

use super::build::{Tiles, Transform};

/// The results of a tile along an axis, the fewest products first.
pub(super) const TILES: [usize; 2] = [4, 2];

/// The functions that a convolution becomes.
pub(super) struct Winograd {
    pub input: Transform,
    pub products: TensorFunc,
    pub output: Transform,
}

impl Winograd {
    pub fn build(tiles: &Tiles<'_>) -> Option<Winograd> {
        let (input, output) = (tiles.input()?, tiles.output()?);
        Some(Winograd { input, products: tiles.products_of_planes()?, output })
    }

    /// What they cost together; `free` says which arguments of the convolution are constants.
    pub fn cost(&self, free: &[bool], price: &dyn Fn(&TensorFunc, &[bool]) -> f64) -> f64 {
        let Winograd { input, products, output } = self;
        price(&input.func, &free_behind(0, &input.kept, free))
            + price(products, &[false, true])
            + price(&output.func, &free_behind(1, &output.kept, free))
    }
}

fn free_behind(first: usize, kept: &[usize], free: &[bool]) -> Vec<bool> {
    let given = kept.iter().map(|k| free.get(*k).copied().unwrap_or(false));
    vec![false; first].into_iter().chain(given).collect()
}
