//! Tensors of the same cells under other axes: what reshapes and transposes make.
//!
//! Both shapes are written in common *digits*: an axis of either is a number of mixed radix over some of
//! them, and each digit is in one axis of either.
//!
//! ```text
//! (77, 320) -> (77, 5, 64)        digits 77, 5, 64: the second axis is (5, 64), then each is an axis
//! (1, 58, 9) -> (1, 2, 29, 9)     digits 2, 29, 9
//! (2, 29, 9) -> (29, 2, 9)        the same ones in another order
//! ```
//!
//! A layout of one tensor says in which order digits of its axes lie in memory. Where those and the common
//! digits divide one another, the same memory is a layout of the other tensor ([`Regrouping::carry`]): no cell
//! moves. So a reshape and a transpose that a layout is carried through are index maps, and cost nothing.
//!
//! Extents may be open; digits are found where one size divides another for all values. In a layout that is carried
//! only the first digit of an axis is open, as in any other.
//!
//! **Limits.** `(4, 6) -> (6, 4)` in the order of memory has no common digits. Padding stays at the ends of
//! axes: a layout that pads a digit which is not the first of the other tensor's axis is not carried.

use tilewright_ir::{DType, Dim, Expr, TensorFunc, dim};

use super::conversion::{Conversion, Pad};
use super::tiled::{Split, TiledLayout};
use tilewright_graph::stages::{at, buffer, cells, one_stage};
use tilewright_graph::view::relabels;

/// Two shapes of the same cells, in common digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regrouping {
    from: Vec<Dim>,
    to: Vec<Dim>,
    /// The extents of the digits.
    digits: Vec<Dim>,
    /// The digits of each axis of `from`, the most significant first; none for an axis of one index.
    from_axes: Vec<Vec<usize>>,
    /// The same of `to`.
    to_axes: Vec<Vec<usize>>,
}

/// A part of a digit of a layout that is one of a common digit, too.
#[derive(Clone, Copy)]
struct Piece {
    /// The common digit.
    digit: usize,
    extent: Dim,
    /// Its place in memory among the pieces.
    place: usize,
}

impl Regrouping {
    /// That of a function which gives its argument another shape, if it has one.
    pub fn of_view(func: &TensorFunc) -> Option<Regrouping> {
        if !relabels(func) {
            return None;
        }
        let shapes = func.buffers().map(|b| dim::of_shape(&b.shape));
        let shapes = shapes.collect::<Option<Vec<_>>>()?;
        Regrouping::of_shapes(shapes.first()?, shapes.last()?)
    }

    /// That of a conversion without padding, which leaves nothing out, if it has one.
    pub fn of_conversion(c: &Conversion) -> Option<Regrouping> {
        if !c.is_total() || !c.keeps_all() {
            return None;
        }
        let packed = TiledLayout::of_pack(c).as_ref().and_then(Regrouping::of_layout);
        packed.or_else(|| {
            let back = c.inverse(Pad::Undef)?;
            Some(Regrouping::of_layout(&TiledLayout::of_pack(&back)?)?.inverse())
        })
    }

    /// The same elements in row-major order.
    pub fn of_shapes(from: &[Dim], to: &[Dim]) -> Option<Regrouping> {
        let mut new = Regrouping {
            from: from.to_vec(),
            to: to.to_vec(),
            digits: Vec::new(),
            from_axes: vec![Vec::new(); from.len()],
            to_axes: vec![Vec::new(); to.len()],
        };
        let (mut left, mut right) = (Rest::new(from), Rest::new(to));
        loop {
            match (left.axis(), right.axis()) {
                (None, None) => break,
                (Some(a), Some(b)) => {
                    let extent = common(left.rest, right.rest)?;
                    for (axis, rest) in [
                        (&mut new.from_axes[a], &mut left.rest),
                        (&mut new.to_axes[b], &mut right.rest),
                    ] {
                        axis.insert(0, new.digits.len());
                        *rest = rest.floordiv(extent);
                    }
                    new.digits.push(extent);
                }
                _ => return None,
            }
        }
        Some(new)
    }

    /// A tensor, and one that has the digits of a layout as its axes; `None` where that pads.
    fn of_layout(layout: &TiledLayout) -> Option<Regrouping> {
        let shifts = layout.splits.iter().any(|s| s.offset != 0);
        let is_empty = layout.logical.iter().any(|n| *n == 0);
        if shifts || is_empty || layout.is_padded() {
            return None;
        }
        let digits = layout.physical();
        let long = |p: &usize| digits[*p] != 1;
        let from_axes = layout.splits.iter().enumerate().map(|(d, split)| {
            let places = (0..split.digits.len()).map(|k| {
                layout.order.iter().position(|digit| *digit == (d, k)).unwrap_or_default()
            });
            places.filter(long).collect()
        });
        let from_axes = from_axes.collect();
        let to_axes = (0..digits.len()).map(|p| [p].into_iter().filter(long).collect()).collect();
        let (from, to) = (layout.logical.clone(), digits.clone());
        Some(Regrouping { from, to, digits, from_axes, to_axes })
    }

    /// Whether the second tensor has the axes of the first one, in their order or another.
    pub fn permutes(&self) -> bool {
        let whole = self.from_axes.iter().chain(&self.to_axes).all(|axis| axis.len() < 2);
        whole && self.from.len() == self.to.len()
    }

    /// The other way round.
    pub fn inverse(self) -> Regrouping {
        let Regrouping { from, to, digits, from_axes, to_axes } = self;
        Regrouping { from: to, to: from, digits, from_axes: to_axes, to_axes: from_axes }
    }

    /// The first tensor's extents.
    pub fn from(&self) -> &[Dim] {
        &self.from
    }

    /// The second tensor's extents.
    pub fn to(&self) -> &[Dim] {
        &self.to
    }

    /// The layout of the second tensor in which it is the same memory as the first one in a layout, with
    /// the same padding; `None` where there is none. Digits that lie one behind the other in an axis and in
    /// memory are one.
    pub fn carry(&self, layout: &TiledLayout) -> Option<TiledLayout> {
        if layout.logical != self.from {
            return None;
        }
        let mut pieces = Vec::with_capacity(self.from.len());
        for (axis, split) in self.from_axes.iter().zip(&layout.splits) {
            pieces.push(self.pieces(axis, split)?);
        }
        let mut place = 0;
        for (d, k) in &layout.order {
            for piece in &mut pieces[*d][*k] {
                piece.place = place;
                place += 1;
            }
        }
        // Of each common digit, the most significant first.
        let mut parts: Vec<Vec<Piece>> = vec![Vec::new(); self.digits.len()];
        for piece in pieces.into_iter().flatten().flatten() {
            parts[piece.digit].push(piece);
        }
        let mut splits = Vec::with_capacity(self.to.len());
        let mut places: Vec<(usize, (usize, usize))> = Vec::new();
        for (d, axis) in self.to_axes.iter().enumerate() {
            let mut digits: Vec<Dim> = Vec::new();
            let mut before = None;
            for (k, digit) in axis.iter().enumerate() {
                let room = dim::product(parts[*digit].iter().map(|p| p.extent));
                if room != self.digits[*digit] && k > 0 {
                    return None;
                }
                for piece in &parts[*digit] {
                    match digits.last_mut() {
                        Some(last) if before.is_some_and(|p: usize| p + 1 == piece.place) => {
                            *last = *last * piece.extent;
                        }
                        _ => {
                            places.push((piece.place, (d, digits.len())));
                            digits.push(piece.extent);
                        }
                    }
                    before = Some(piece.place);
                }
            }
            // An open axis has one open digit, the first.
            if digits.iter().skip(1).any(|n| n.known().is_none()) {
                return None;
            }
            splits.push(Split { offset: 0, digits });
        }
        places.sort_unstable();
        let mut order: Vec<(usize, usize)> = places.into_iter().map(|(_, digit)| digit).collect();
        for (d, split) in splits.iter_mut().enumerate().filter(|(_, s)| s.digits.is_empty()) {
            split.digits.push(Dim::from(1));
            let at = order.iter().position(|(axis, _)| *axis > d).unwrap_or(order.len());
            order.insert(at, (d, 0));
        }
        Some(TiledLayout { logical: self.to.clone(), splits, order })
    }

    /// The pieces of each digit of an axis' split, the most significant first.
    fn pieces(&self, axis: &[usize], split: &Split) -> Option<Vec<Vec<Piece>>> {
        let mut found = vec![Vec::new(); split.digits.len()];
        let mut left = axis.len();
        // What is left of the common digit at `left`.
        let mut rest = Dim::from(1);
        for (k, digit) in split.digits.iter().enumerate().rev() {
            let mut own = *digit;
            while own != 1 {
                if rest == 1 && left > 0 {
                    left -= 1;
                    rest = self.digits[axis[left]];
                }
                // The first digit takes what padding there is.
                let extent = match left {
                    0 => own,
                    _ => common(own, rest)?,
                };
                let digit = *axis.get(left)?;
                found[k].insert(0, Piece { digit, extent, place: 0 });
                own = own.floordiv(extent);
                rest = match rest.modulo(extent) == 0 {
                    true => rest.floordiv(extent),
                    false => rest.ceildiv(extent),
                };
            }
        }
        let all = left == 0 && rest == 1 && split.offset == 0;
        all.then_some(found)
    }

    /// The indices of the first tensor's cell that the second one has at some indices.
    pub fn source(&self, indices: &[Expr]) -> Vec<Expr> {
        let mut digits = vec![Expr::i32(0); self.digits.len()];
        for (axis, index) in self.to_axes.iter().zip(indices) {
            for (digit, e) in axis.iter().zip(self.split(axis).split(index)) {
                digits[*digit] = e;
            }
        }
        let join = |axis: &Vec<usize>| {
            let own: Vec<Expr> = axis.iter().map(|k| digits[*k].clone()).collect();
            self.split(axis).join(&own)
        };
        self.from_axes.iter().map(join).collect()
    }

    fn split(&self, axis: &[usize]) -> Split {
        Split { offset: 0, digits: axis.iter().map(|k| self.digits[*k]).collect() }
    }

    /// A function of the first tensor whose result is the second.
    pub fn func(&self, name: &str, dtype: DType) -> TensorFunc {
        let [from, to] =
            [("x", &self.from), ("y", &self.to)].map(|(name, shape)| buffer(name, shape, dtype));
        let iters = cells("v", &self.to);
        let value = from.load(self.source(&at(&iters)));
        one_stage(name, &iters, [&from, &to], at(&iters), value)
    }
}

/// The axes of a shape that are not taken apart yet, from the last one on.
struct Rest<'a> {
    shape: &'a [Dim],
    /// What is left of the axis behind `shape`.
    rest: Dim,
}

impl<'a> Rest<'a> {
    fn new(shape: &'a [Dim]) -> Rest<'a> {
        Rest { shape, rest: Dim::from(1) }
    }

    /// The axis of which something is left; `None` where nothing is.
    fn axis(&mut self) -> Option<usize> {
        while self.rest == 1 {
            let (last, before) = self.shape.split_last()?;
            (self.shape, self.rest) = (before, *last);
        }
        Some(self.shape.len())
    }
}

/// The digit with which two numbers of some rest begin from below: the one that divides the other.
fn common(a: Dim, b: Dim) -> Option<Dim> {
    let divides = |a: Dim, b: Dim| a != 0 && b.modulo(a) == 0;
    match (divides(a, b), divides(b, a)) {
        (true, _) => Some(a),
        (_, true) => Some(b),
        _ => None,
    }
}
