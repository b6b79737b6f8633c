//! What transforms make of the prices of layouts, before layouts are chosen.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{GraphExpr, Module, Result, Tensor, TensorFunc};

use super::build::Tiles;
use super::error;
use super::functions::{TILES, Winograd};
use super::points::Matrices;
use super::recognise::Convolution;
use crate::call_sizes::unify_sizes;
use crate::normal::Constants;

/// In which tiles the convolutions of a module may be computed, within an error.
///
/// How large the error is depends on the weights, and not on the layout.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// By the name of a function: the tiles in which all its calls may be computed.
    of: HashMap<Arc<str>, Vec<usize>>,
    /// The tiles of a function that the module does not have: those of all others.
    others: Vec<usize>,
}

impl Allowed {
    /// Measures the errors of a module's convolutions; `noise` gives numbers in [0, 1).
    ///
    /// # Errors
    /// Those of [`unify_sizes`].
    pub fn measure(
        module: &Module,
        budget: f64,
        noise: &mut dyn FnMut() -> f64,
    ) -> Result<Allowed> {
        let module = &unify_sizes(module)?;
        let found =
            module.tensors().filter_map(|(name, f)| Some((name, Convolution::recognise(f).ok()?)));
        let convolutions: HashMap<&Arc<str>, Convolution> =
            found.filter(|(_, conv)| conv.depth().is_some_and(|n| n >= 2)).collect();
        let mut of: HashMap<Arc<str>, Vec<usize>> = HashMap::default();
        for (_, graph) in module.graphs() {
            let constants = Constants::collect(graph);
            for b in graph.bindings() {
                let GraphExpr::CallTir { func, args, .. } = &b.value else { continue };
                let Some(conv) = convolutions.get(func) else { continue };
                let weights = args.get(conv.param).and_then(|e| constants.get(e));
                let all = of.entry(func.clone()).or_insert_with(|| TILES.to_vec());
                *all = weights.map_or(Vec::new(), |w| tiles(conv, w, budget, all, noise));
            }
        }
        of.retain(|_, tiles| !tiles.is_empty());
        let all: HashSet<usize> = of.values().flatten().copied().collect();
        let mut others: Vec<usize> = all.into_iter().collect();
        others.retain(|tile| of.values().all(|tiles| tiles.contains(tile)));
        Ok(Allowed { of, others })
    }

    /// Whether nothing may be computed by transforms.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// What a call of a function costs in the tiles in which that is least, in some layout; `None`
    /// where it may not be computed by transforms. `free` says which arguments are constants, and `price`,
    /// which is told the same, what a call of a part costs.
    pub fn least(
        &self,
        name: &str,
        func: &TensorFunc,
        free: &[bool],
        price: &dyn Fn(&TensorFunc, &[bool]) -> f64,
    ) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        let conv = Convolution::recognise(func).ok()?;
        if !free.get(conv.param).copied().unwrap_or(false) {
            return None;
        }
        let tiles = self.of.get(name).unwrap_or(&self.others);
        tiles
            .iter()
            .filter_map(|tile| {
                let f = Matrices::of_three(*tile);
                Some(Winograd::build(&Tiles::new(func, &conv, &f))?.cost(free, price))
            })
            .min_by(f64::total_cmp)
    }
}

/// Those of some tiles in which a convolution with these weights is within an error.
fn tiles(
    conv: &Convolution,
    weights: &Tensor,
    budget: f64,
    among: &[usize],
    noise: &mut dyn FnMut() -> f64,
) -> Vec<usize> {
    // Fewer results of a tile take fewer steps: where the most are within the error, all are.
    let first = among.iter().position(|tile| {
        error::measure_error(conv, &Matrices::of_three(*tile), weights, noise)
            .is_some_and(|e| e <= budget)
    });
    first.map_or(Vec::new(), |first| among[first..].to_vec())
}
