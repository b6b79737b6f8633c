//! Cells around a tensor: a constant, or elements of it.

use tilewright_ir::dim::Integer;
use tilewright_ir::{DType, Dim, Error, Expr, Result, TensorFunc};

use crate::movement::injective;
use crate::operand::{Operand, Scalar};
use crate::te::{self, Tensor};

/// What [`pad`] puts around.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    Constant(Scalar),
    /// The nearest element.
    Edge,
    /// The mirror image, without the element at the edge.
    Reflect,
    /// The other end.
    Wrap,
}

/// Adds cells before and behind each axis; negative numbers cut off, which comes first.
/// Parameters: `x`, the result.
///
/// # Errors
/// [`Error::Input`] where the numbers do not fit.
pub fn pad<I: Into<Integer> + Copy>(
    x: &Operand,
    before: &[I],
    after: &[I],
    mode: PadMode,
) -> Result<TensorFunc> {
    let axes = paddings(x, before, after)?;
    let t = x.placeholder("x");
    let PadMode::Constant(fill) = mode else {
        if let Some(a) = axes.iter().position(|p| p.kept == 0.into() && p.count != 0) {
            return Err(Error::input(format!("pad: axis {a} of {x} has no element to repeat")));
        }
        let shape: Vec<Dim> = axes.iter().map(|p| p.count).collect();
        return injective("pad", x, &shape, |i| {
            i.iter().zip(&axes).map(|(e, p)| p.nearest(e, mode)).collect()
        });
    };
    let out = filled(&t, &axes, || fill.expr(x.dtype));
    te::func([&t], [&out])
}

/// [`pad`] with the one element of an operand of shape `value` (ones, or no axes) as the constant.
/// Parameters: `x`, the value, the result.
pub fn pad_with<I: Into<Integer> + Copy, D: Into<Dim> + Copy>(
    x: &Operand,
    before: &[I],
    after: &[I],
    value: &[D],
) -> Result<TensorFunc> {
    let value = &te::dims(value)[..];
    if value.iter().any(|&d| d != 1) {
        return Err(Error::input(format!("pad: a value of shape {value:?} is not one element")));
    }
    let axes = paddings(x, before, after)?;
    let (t, v) = (x.placeholder("x"), te::placeholder("value", value, x.dtype));
    let out = filled(&t, &axes, || v.at(value.iter().map(|_| 0i64)));
    te::func([&t, &v], [&out])
}

fn paddings<I: Into<Integer> + Copy>(
    x: &Operand,
    before: &[I],
    after: &[I],
) -> Result<Vec<Padding>> {
    if before.len() != x.rank() || after.len() != x.rank() {
        return Err(Error::input(format!(
            "pad: {} numbers before and {} behind the axes of {x}",
            before.len(),
            after.len()
        )));
    }
    (0..x.rank())
        .map(|a| {
            let (before, after) = (before[a].into(), after[a].into());
            Padding::new(x.shape[a], before, after).ok_or_else(|| {
                Error::input(format!(
                    "pad: {before} and {after} cells do not fit around axis {a} of {x}"
                ))
            })
        })
        .collect()
}

/// The tensor with `fill` around it.
fn filled(t: &Tensor, axes: &[Padding], fill: impl Fn() -> Expr) -> Tensor {
    let shape: Vec<Dim> = axes.iter().map(|p| p.count).collect();
    te::compute("pad", &shape, |i| {
        let inside = i.iter().zip(axes).fold(Expr::bool(true), |c, (e, p)| c.and(p.inside(e)));
        let at: Vec<Expr> = i.iter().zip(axes).map(|(e, p)| p.shifted(e)).collect();
        if inside.is_true() { t.at(at) } else { Expr::if_then_else(inside, t.at(at), fill()) }
    })
}

/// One padded axis: `lead` new cells, then the `kept` elements from `first` on.
struct Padding {
    lead: Integer,
    first: Integer,
    kept: Integer,
    after: Integer,
    /// Extent of the result.
    count: Dim,
}

impl Padding {
    /// `None` where more is cut off than there is, or the result is too long.
    fn new(extent: Dim, before: Integer, after: Integer) -> Option<Self> {
        let zero = Integer::from(0);
        let kept =
            Integer::from(extent).minus(clipped(before, zero)?)?.minus(clipped(after, zero)?)?;
        let (lead, behind) = (before.max(0)?, after.max(0)?);
        let count = kept.plus(lead)?.plus(behind)?;
        let fits = kept.is_less(0) != Some(true) && is_small(count) && is_small(extent.into());
        fits.then_some(Padding {
            lead,
            first: clipped(before, zero)?,
            kept,
            after: behind,
            count: count.dim()?,
        })
    }

    fn shifted(&self, i: &Expr) -> Expr {
        match self.first.minus(self.lead) {
            Some(by) => i + by.expr(),
            None => i + self.first.expr() - self.lead.expr(),
        }
    }

    fn inside(&self, i: &Expr) -> Expr {
        let low = match self.lead {
            Integer::Number(0) => Expr::bool(true),
            lead => i.clone().greater_equal(lead.expr()),
        };
        match (self.after, self.lead.plus(self.kept)) {
            (Integer::Number(0), _) => low,
            (_, Some(end)) => low.and(i.clone().less(end.expr())),
            (_, None) => low,
        }
    }

    /// The element that stands for cell `i`.
    fn nearest(&self, i: &Expr, mode: PadMode) -> Expr {
        let zero = Integer::from(0);
        let from = i - self.lead.expr();
        let last = self.kept.minus(1).unwrap_or(zero);
        let twice = last.times(2).unwrap_or(zero);
        let inner = match mode {
            _ if self.lead == zero && self.after == zero => from,
            _ if last == zero => Expr::i32(0),
            PadMode::Constant(_) | PadMode::Edge => from.max(0).min(last.expr()),
            PadMode::Wrap => from.floormod(self.kept.max(1).unwrap_or(self.kept).expr()),
            PadMode::Reflect => {
                let way = if is_short(self.lead, last) && is_short(self.after, last) {
                    // One reflection: the distance from the first element.
                    from.clone().max(Expr::i32(0) - &from)
                } else {
                    from.floormod(match twice.number() {
                        Some(n) => Expr::int(n.max(1), DType::I32),
                        None => twice.expr().max(1),
                    })
                };
                way.clone().min(Expr::i32(0) + twice.expr() - &way)
            }
        };
        let inner = if self.kept.number().is_none() && !(self.lead == zero && self.after == zero) {
            // Between the ends it is the element itself; where extents are numbers, that follows.
            Expr::select(self.inside(i), i - self.lead.expr(), inner)
        } else {
            inner
        };
        inner + self.first.expr()
    }
}

fn clipped(v: Integer, zero: Integer) -> Option<Integer> {
    zero.minus(v)?.max(0)
}

fn is_small(v: Integer) -> bool {
    v.number().is_none_or(|n| i32::try_from(n).is_ok())
}

fn is_short(v: Integer, last: Integer) -> bool {
    last.is_less(v) == Some(false)
}
