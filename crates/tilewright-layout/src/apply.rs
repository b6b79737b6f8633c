//! Conversions of constants, run directly ([`Gather`]), and not by running their functions.
//!
//! Large constants are moved late, where something first asks for their bytes: several conversions, one after the other,
//! become one [`Movement`] by then.

use std::sync::Arc;

use tilewright_ir::index::{Ranges, simplify};
use tilewright_ir::tensor::Origin;
use tilewright_ir::visit::Subst;
use tilewright_ir::{Buffer, DType, Expr, Fold, Range, Tensor, Var, dim};

use super::constant::scalar;
use super::conversion::{Conversion, Pad};
use super::gather::Gather;

/// Bytes from which a constant is moved late.
const LATE: usize = 1 << 16;

/// What a conversion makes of a tensor; `None` where it has no such simple form.
pub(crate) fn apply(c: &Conversion, tensor: &Tensor) -> Option<Tensor> {
    let by = Movement::of(c)?;
    if tensor.dtype() != by.dtype || by.from != tensor.shape() {
        return None;
    }
    if let Some(first) = moved_late(tensor)
        && let Some(both) = first.by.then(&by)
        && let Some(moved) = both.apply(&first.from)
    {
        return Some(moved);
    }
    by.apply(tensor)
}

/// How the elements of a tensor move: a conversion of known extents, without the engine that proves things of it.
struct Movement {
    dtype: DType,
    from: Vec<usize>,
    to: Vec<usize>,
    /// Names for the indices of a cell of the result.
    cells: Vec<Var>,
    /// The cell that a cell takes; right where `data` holds.
    source: Vec<Expr>,
    data: Expr,
    /// The bits that the other cells hold; `None` where any will do.
    pad: Option<u64>,
}

impl Movement {
    fn of(c: &Conversion) -> Option<Movement> {
        let pad = match &c.pad {
            Pad::Value(e) if !c.data.is_true() => Some(scalar(e).ok()?.bits()),
            _ => None,
        };
        Some(Movement {
            dtype: c.dtype,
            from: dim::known(&c.from)?,
            to: dim::known(&c.to)?,
            cells: c.cells.clone(),
            source: c.source.clone(),
            data: c.data.clone(),
            pad,
        })
    }

    /// First this one, then another one, whose argument has the extents of this one's result; `None` where cells
    /// that take nothing hold different values.
    fn then(&self, next: &Movement) -> Option<Movement> {
        if self.to != next.from || self.dtype != next.dtype {
            return None;
        }
        let pad = match (self.pad, next.pad) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let place = self.cells.iter().zip(&next.source);
        let mut place = Subst::vars(place.map(|(c, e)| (c.clone(), e.clone().cast(c.dtype()))));
        let mut ranges = Ranges::default();
        for (cell, extent) in next.cells.iter().zip(&next.to) {
            let extent = Expr::int(i64::try_from(*extent).ok()?, cell.dtype());
            ranges.bind_loop(cell, &Range::upto(extent));
        }
        let mut at_next = |e: &Expr| simplify(&place.expr(e), &ranges);
        let source = self.source.iter().map(&mut at_next).collect();
        let data = next.data.clone().and(at_next(&self.data));
        let (from, to, cells) = (self.from.clone(), next.to.clone(), next.cells.clone());
        Some(Movement { from, to, cells, source, data, pad, dtype: self.dtype })
    }

    /// What becomes of a tensor.
    fn apply(self, tensor: &Tensor) -> Option<Tensor> {
        let gather = self.gather()?;
        let (dtype, to) = (self.dtype, self.to.clone());
        if to.iter().product::<usize>() * dtype.bytes() < LATE {
            return gather.tensor(dtype, tensor);
        }
        let from = tensor.clone();
        Tensor::late(dtype, &to, Arc::new(Moved { from, by: self, gather })).ok()
    }

    /// `None` where a cell would take what is outside of the source, and as for [`Gather::new`].
    fn gather(&self) -> Option<Gather> {
        let from: Vec<i64> =
            self.from.iter().map(|n| i64::try_from(*n).ok()).collect::<Option<_>>()?;
        let from = Buffer::with_extents("from", &from, self.dtype);
        let gather =
            Gather::new(&from, &self.source, (&self.cells, &self.to), &self.data, self.pad)?;
        gather.stays_within(self.from.iter().product()).then_some(gather)
    }
}

/// A constant that is moved where something first asks for its bytes.
struct Moved {
    from: Tensor,
    by: Movement,
    gather: Gather,
}

impl Origin for Moved {
    fn make(&self) -> Tensor {
        let made = self.gather.tensor(self.by.dtype, &self.from);
        // Such constants are most often needed once.
        self.from.release();
        // Places were checked when it was taken on. Without memory a copy would end the process as well.
        made.unwrap_or_else(|| panic!("no memory for a constant of shape {:?}", self.by.to))
    }
}

/// How a tensor is moved that has not been yet.
fn moved_late(tensor: &Tensor) -> Option<Arc<Moved>> {
    let moved: Arc<Moved> = tensor.origin()?.downcast().ok()?;
    (moved.by.to == tensor.shape()).then_some(moved)
}
