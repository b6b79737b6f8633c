//! Layouts that split axes into digits and put the digits into an order of their own.
//!
//! Each logical index, after an offset, is written as a number of mixed radix, and the digits of
//! all axes are the physical indices in some order:
//!
//! ```text
//! lambda n, c, h, w: [n, c // 16, h, w, c % 16]      c has the digits (c // 16, c % 16)
//! lambda i, j: [j, i]                                one digit each, in another order
//! lambda i: [(i + 2) // 8, (i + 2) % 8]              an offset of 2
//! ```
//!
//! Where the digits have room for more than the axis has, the rest is padding. This form is what
//! can be propagated from one buffer to another through the accesses of a function
//! ([`super::propagate`]): an axis takes its digits along, whatever other axes are there.
//!
//! Extents may be open ([`Dim`]), as the variables that tensor functions have for the sizes of a
//! graph: an axis of open extent stays one digit, and the digits of the others do not depend on it.
//! An open axis in blocks has an open number of them, and where the block does not divide it for
//! every size, its room counts as padded.
//!
//! **Limits.** Maps that fuse axes are not of this form.

use std::fmt;

use tilewright_analysis::Extent;
use tilewright_ir::index::Affine;
use tilewright_ir::{Buffer, DType, Dim, Expr, IterKind, TensorFunc, Var, dim};

use super::conversion::Conversion;
use tilewright_graph::stages::{at, buffer, cells, one_stage};

/// How the index of one axis is written in digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// What is added to the index.
    pub offset: i64,
    /// Extents of the digits, the most significant first.
    pub digits: Vec<Dim>,
}

impl Split {
    /// The index as it is.
    pub fn plain(extent: impl Extent) -> Self {
        Split { offset: 0, digits: vec![extent.dim()] }
    }

    /// `i // block, i % block`, as many blocks as an extent needs.
    pub fn blocks(extent: impl Extent, block: i64) -> Self {
        let block = block.dim();
        Split { offset: 0, digits: vec![extent.dim().ceildiv(block), block] }
    }

    /// Whether the index stays as it is.
    pub fn is_plain(&self, extent: impl Extent) -> bool {
        self.offset == 0 && self.digits == [extent.dim()]
    }

    /// Number of values that the digits have room for.
    pub fn room(&self) -> Dim {
        dim::product(self.digits.iter().copied())
    }

    /// Whether there are values of the digits that are no index, for some sizes if they are open.
    pub fn is_padded(&self, extent: impl Extent) -> bool {
        self.room() != extent.dim()
    }

    /// Value of a step of each digit.
    fn weights(&self) -> Vec<Dim> {
        (0..self.digits.len()).map(|k| dim::product(self.digits[k + 1..].iter().copied())).collect()
    }

    /// Product of all extents but the first, where it is a number.
    fn inner(&self) -> Option<i64> {
        let inner = self.weights().first().map_or(Some(1), |w| w.known())?;
        i64::try_from(inner).ok()
    }

    /// The digits of an index.
    pub fn split(&self, index: &Expr) -> Vec<Expr> {
        let from = index.clone() + self.offset;
        self.weights()
            .into_iter()
            .enumerate()
            .map(|(k, w)| match k {
                0 => from.clone().floordiv(w.typed(index.dtype())),
                _ => from
                    .clone()
                    .floordiv(w.typed(index.dtype()))
                    .floormod(self.digits[k].typed(index.dtype())),
            })
            .collect()
    }

    /// The index that has these digits.
    pub fn join(&self, digits: &[Expr]) -> Expr {
        let terms = digits.iter().zip(self.weights()).map(|(d, w)| d.clone() * w.typed(d.dtype()));
        let sum = terms.reduce(|a, b| a + b).unwrap_or_else(|| Expr::i32(0));
        sum - self.offset
    }

    /// Where the index of these digits is one of the axis.
    pub fn is_data(&self, extent: impl Extent, index: &Expr) -> Expr {
        let extent = extent.dim();
        let room = index.clone().less(extent.typed(index.dtype()));
        let before = usize::try_from(self.offset).unwrap_or(0);
        match (self.offset > 0, !(extent + before).at_least(self.room())) {
            (false, false) => Expr::bool(true),
            (false, true) => room,
            (true, false) => index.clone().greater_equal(0),
            (true, true) => index.clone().greater_equal(0).and(room),
        }
    }

    /// The split of another axis, `extent` long, whose indices are those of this axis, `own` long,
    /// from `shift` on; and by how much the first digits then differ. The other digits are the
    /// same. `None` where they could not be.
    pub fn window(
        &self,
        own: impl Extent,
        shift: i64,
        extent: impl Extent,
    ) -> Option<(Split, i64)> {
        if shift == 0 && own.dim() == extent.dim() {
            return Some((self.clone(), 0));
        }
        let inner = self.inner().filter(|n| *n > 0 && shift % n == 0)?;
        if self.offset != 0 {
            return None;
        }
        let mut digits = self.digits.clone();
        *digits.first_mut()? = extent.dim().ceildiv(inner.dim());
        Some((Split { offset: 0, digits }, shift / inner))
    }
}

/// How a tensor lies in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TiledLayout {
    /// Logical extents.
    pub logical: Vec<Dim>,
    /// The digits of each logical axis.
    pub splits: Vec<Split>,
    /// The physical axes: logical axis and position among its digits.
    pub order: Vec<(usize, usize)>,
}

impl TiledLayout {
    /// The logical indices as they are.
    pub fn identity(shape: &[impl Extent]) -> Self {
        TiledLayout {
            logical: shape.iter().map(|d| d.dim()).collect(),
            splits: shape.iter().map(|d| Split::plain(*d)).collect(),
            order: (0..shape.len()).map(|d| (d, 0)).collect(),
        }
    }

    /// The axes in another order, and some of them in blocks: each item of `axes` is a logical
    /// axis; where it is named a second time it means the remainder by the block.
    pub fn blocked(shape: &[impl Extent], axes: &[usize], blocks: &[(usize, i64)]) -> Option<Self> {
        let mut layout = TiledLayout::identity(shape);
        for (d, block) in blocks {
            *layout.splits.get_mut(*d)? = Split::blocks(*shape.get(*d)?, *block);
        }
        layout.order.clear();
        for d in axes {
            let digit = layout.order.iter().filter(|(a, _)| a == d).count();
            layout.order.push((*d, digit));
        }
        let digits: usize = layout.splits.iter().map(|s| s.digits.len()).sum();
        let known = layout
            .order
            .iter()
            .all(|(d, k)| layout.splits.get(*d).is_some_and(|s| *k < s.digits.len()));
        (known && layout.order.len() == digits).then_some(layout)
    }

    /// The axes in their order where nothing else is done to them: no digits, no offset.
    pub fn axes(&self) -> Option<Vec<usize>> {
        let plain = self.splits.iter().zip(&self.logical).all(|(split, n)| split.is_plain(*n));
        plain.then(|| self.order.iter().map(|(d, _)| *d).collect())
    }

    /// The same memory as a layout of the tensor that has axis `k` of this one as its axis `axes[k]`.
    pub fn with_axes(&self, axes: &[usize]) -> TiledLayout {
        let (mut logical, mut splits) = (self.logical.clone(), self.splits.clone());
        for (k, d) in axes.iter().enumerate() {
            logical[*d] = self.logical[k];
            splits[*d] = self.splits[k].clone();
        }
        let order = self.order.iter().map(|(k, digit)| (axes[*k], *digit)).collect();
        TiledLayout { logical, splits, order }
    }

    /// That of a buffer of logical shape.
    pub fn of_buffer(b: &Buffer) -> Self {
        TiledLayout::identity(&dim::of_shape(&b.shape).unwrap_or_default())
    }

    /// Whether physical and logical indices are the same.
    pub fn is_identity(&self) -> bool {
        *self == TiledLayout::identity(&self.logical)
    }

    /// Whether elements lie in memory in the order of their logical indices, without gaps.
    pub fn is_row_major(&self) -> bool {
        let moving = self.order.iter().filter(|(d, k)| self.splits[*d].digits[*k] != 1);
        moving.is_sorted() && !self.is_padded()
    }

    /// Physical extents.
    pub fn physical(&self) -> Vec<Dim> {
        self.order.iter().map(|(d, k)| self.splits[*d].digits[*k]).collect()
    }

    /// Whether an axis has padding.
    pub fn pads(&self, axis: usize) -> bool {
        self.splits[axis].is_padded(self.logical[axis])
    }

    /// Whether there is any padding.
    pub fn is_padded(&self) -> bool {
        (0..self.logical.len()).any(|d| self.pads(d))
    }

    /// The part of its cells that are padding, from 0 to 1; estimated where sizes are open.
    pub fn waste(&self) -> f64 {
        let (data, all) = (cell_estimate(&self.logical), cell_estimate(&self.physical()));
        if all > 0.0 { 1.0 - data / all } else { 0.0 }
    }

    /// How many cells lie one behind the other in this layout and in another one of the same tensor, at
    /// least; estimated where sizes are open.
    pub fn run(&self, other: &TiledLayout) -> i64 {
        let mut run = 1i64;
        for (a, b) in run_digits(self).into_iter().zip(run_digits(other)) {
            if (a.0, a.1) != (b.0, b.1) {
                break;
            }
            run = run.saturating_mul(a.2.min(b.2));
            if a.2 != b.2 {
                break;
            }
        }
        run
    }

    /// The conversion of logical tensors to this layout; `pad` is what the padding holds, any
    /// value where it is not said.
    pub fn pack(&self, dtype: DType, pad: Option<&Expr>) -> TensorFunc {
        let physical = self.physical();
        let [from, to] = [("x", &self.logical), ("y", &physical)]
            .map(|(name, shape)| buffer(name, shape, dtype));
        let cells = self.cells();
        let logical = self.join(&cells);
        let data = self.is_data(&logical);
        let load = from.load(logical);
        let value = if data.is_true() {
            load
        } else {
            let pad = pad.cloned().unwrap_or_else(|| Expr::undef(dtype));
            Expr::if_then_else(data, load, pad)
        };
        let at = cells.iter().map(Var::expr).collect();
        let iters = cells.into_iter().zip(&physical).map(|(v, n)| (v, *n, IterKind::Spatial));
        one_stage("pack", &iters.collect::<Vec<_>>(), [&from, &to], at, value)
    }

    /// The conversion of tensors in this layout to logical ones.
    pub fn crop(&self, dtype: DType) -> TensorFunc {
        let physical = self.physical();
        let [from, to] = [("x", &physical), ("y", &self.logical)]
            .map(|(name, shape)| buffer(name, shape, dtype));
        let iters = cells("vi", &self.logical);
        let value = from.load(self.split(&at(&iters)));
        one_stage("crop", &iters, [&from, &to], at(&iters), value)
    }

    /// Variables for the physical indices.
    pub fn cells(&self) -> Vec<Var> {
        (0..self.order.len()).map(|k| Var::index(format!("vc{k}"))).collect()
    }

    /// The physical indices of logical ones.
    pub fn split(&self, logical: &[Expr]) -> Vec<Expr> {
        let digits: Vec<Vec<Expr>> =
            logical.iter().zip(&self.splits).map(|(i, s)| s.split(i)).collect();
        self.order.iter().map(|(d, k)| digits[*d][*k].clone()).collect()
    }

    /// The logical indices of physical ones.
    pub fn join(&self, cells: &[Var]) -> Vec<Expr> {
        self.splits
            .iter()
            .enumerate()
            .map(|(d, s)| {
                let digits: Vec<Expr> = (0..s.digits.len())
                    .filter_map(|k| self.order.iter().position(|at| *at == (d, k)))
                    .map(|p| cells[p].expr())
                    .collect();
                s.join(&digits)
            })
            .collect()
    }

    /// Where logical indices, as expressions of physical ones, are those of an element.
    pub fn is_data(&self, logical: &[Expr]) -> Expr {
        let parts = self.splits.iter().zip(&self.logical).zip(logical);
        let parts = parts.map(|((s, extent), index)| s.is_data(*extent, index));
        Expr::all(parts)
    }

    /// The layout of a conversion's result, if it takes all of its argument to a layout of this
    /// form.
    pub fn of_pack(c: &Conversion) -> Option<TiledLayout> {
        let mut order: Vec<Option<(usize, usize)>> = vec![None; c.cells.len()];
        let mut splits = Vec::new();
        for (d, source) in c.source.iter().enumerate() {
            let form = Affine::from_expr(source)?;
            if form.opaque().next().is_some() {
                return None;
            }
            // Sizes that are open are no cells.
            let mut digits: Vec<(i64, usize)> = form
                .vars()
                .map(|(v, k)| Some((k, c.cells.iter().position(|cell| cell == v)?)))
                .collect::<Option<_>>()?;
            digits.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
            if digits.is_empty() {
                // An axis of one index, which is nowhere to be seen: it takes a cell of extent one.
                digits.push((
                    1,
                    (0..c.cells.len()).find(|p| {
                        c.to[*p] == 1 && order[*p].is_none() && !mentions(&c.source, &c.cells[*p])
                    })?,
                ));
            }
            for (k, (_, p)) in digits.iter().enumerate() {
                order[*p].replace((d, k)).is_none().then_some(())?;
            }
            let extents = digits.iter().map(|(_, p)| c.to[*p]).collect();
            let split = Split { offset: -form.constant(), digits: extents };
            let weights = split.weights();
            digits.iter().zip(weights).all(|((k, _), w)| k.dim() == w).then_some(())?;
            splits.push(split);
        }
        let order = order.into_iter().collect::<Option<Vec<_>>>()?;
        let layout = TiledLayout { logical: c.from.clone(), splits, order };
        // The proof: what this layout's own conversion moves is what the conversion moves.
        let own = Conversion::recognise(&layout.pack(c.dtype, None))?;
        own.with_pad(c.pad.clone()).same_as(c).then_some(layout)
    }
}

fn cell_estimate(all: &[Dim]) -> f64 {
    all.iter().map(|n| n.estimate() as f64).product::<f64>()
}

/// The digits of a layout, innermost first: axis, value of a step, extent.
fn run_digits(l: &TiledLayout) -> Vec<(usize, Dim, i64)> {
    let weights: Vec<Vec<Dim>> = l.splits.iter().map(Split::weights).collect();
    l.order
        .iter()
        .rev()
        .map(|(d, k)| (*d, weights[*d][*k], l.splits[*d].digits[*k].estimate()))
        .filter(|digit| digit.2 != 1)
        .collect()
}

fn mentions(exprs: &[Expr], v: &Var) -> bool {
    exprs.iter().any(|e| e.mentions(v))
}

impl fmt::Display for TiledLayout {
    /// `lambda i0, i1: [i1 // 4, i0, i1 % 4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<Var> =
            (0..self.logical.len()).map(|d| Var::index(format!("i{d}"))).collect();
        let names: Vec<&str> = params.iter().map(|p| &**p.name()).collect();
        let at: Vec<Expr> = params.iter().map(Var::expr).collect();
        let items: Vec<String> = self.split(&at).iter().map(Expr::to_string).collect();
        write!(f, "lambda {}: [{}]", names.join(", "), items.join(", "))
    }
}
