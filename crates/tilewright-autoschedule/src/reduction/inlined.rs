//! Windows over an image of open size, which are read from the image itself.
//!
//! ```text
//! the image is read where padding was                                   compute_inline
//! for tiles of rows and vectors:
//!     sums = identity
//!     for steps of the window:
//!         sums = op(sums, x where that is inside, else the constant)
//! ```
//!
//! Vectors run along a padded axis: what decides is a mask of the lanes that are read, which does not change from row
//! to row. A copy of the image with its padding costs about as much as a window of 3 x 3 on it: rows of an open length
//! are no whole vectors, and begin anywhere. It is made where a window reads many vectors, or cells that are apart, and
//! where vectors run along another axis: then there are no masks, and each step would be a branch.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{Expr, ExprKind, Fold, IterKind, Var};
use tilewright_target::Target;

use super::stage::Reduction;
use crate::canonical::reads;
use crate::padding::{iters, padding};

/// So many loads under masks cost what the copy of a vector to a padded image does: each takes a place among the
/// arithmetic.
const COPIED: i64 = 10;

/// The reduction of the image that `pad` pads for it alone, with vectors along an axis with padding that the machine
/// can leave out lanes of. `None` where there are none, what is padded is no image in memory, or a copy is cheaper.
pub(super) fn of<'a>(
    pad: &Stage,
    reader: &'a Stage,
    epilogue: Option<&'a Stage>,
    target: &'a Target,
) -> Option<Reduction<'a>> {
    let (inside, value, _) = padding(&iters(pad), &pad.value)?;
    let ExprKind::Load(image, at) = value.kind() else { return None };
    let [indices] = &reads(reader, &pad.buffer)[..] else { return None };
    let (mut moved, mut along): (HashMap<Var, Expr>, HashSet<Var>) = Default::default();
    for (v, index) in pad.covers_buffer()?.into_iter().zip(indices) {
        let axis = v.and_then(|v| pad.dims().find(|d| *d.0 == v));
        let Some((v, extent, _)) = axis else { continue };
        if inside.get(v).is_some_and(|bounds| *bounds != (0, extent)) {
            along.extend(free_vars(index));
        }
        moved.insert(v.clone(), index.clone().cast(v.dtype()));
    }
    let mut moved = Subst::vars(moved);
    let at: Vec<Expr> = at.iter().map(|i| moved.expr(i)).collect();
    let combined = reader.reduction()?.value.replace(|e| match e.kind() {
        ExprKind::Load(b, _) if *b == pad.buffer => Some(image.load(at.clone())),
        _ => None,
    });
    let none = HashSet::default();
    let found =
        Reduction::over((reader, epilogue), &iters(reader), &combined, (&none, &along), target)?;
    let v = found.vector_axis().filter(|v| found.axes[*v].kind == IterKind::Spatial)?;
    let crosses = found.axes[v].parts.iter().any(|(v, _)| along.contains(v));
    // Each vector of cells that are apart lies in several, with masks of their own.
    let beside = found.steps(v).all(|s| matches!(s, Some(0 | 1)));
    (crosses && found.masks() && beside && found.loads_of_row(v) <= COPIED).then_some(found)
}
