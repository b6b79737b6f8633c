//! Axes in tiles: the form that oneDNN's tags, TVM's layouts and `linalg.pack` share.
//!
//! Each axis of memory is a digit of a logical axis: `(i // weight) % extent`, or without the remainder
//! where it is the outermost one, whose extent follows from the shape. Digits of an axis cover it
//! without gaps. That is a subset of index maps, which is recognised from their expressions, for
//! all sizes.

use tilewright_ir::{BinOp, Expr, ExprKind, Result, Var};

use super::{dtype, refused};
use crate::index_map::IndexMap;

/// A digit of a logical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub axis: usize,
    pub weight: i64,
    /// `None` for the outermost digit.
    pub extent: Option<i64>,
}

/// The digits of all axes, in the order of memory; some may be joined to one axis of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    pub rank: usize,
    pub axes: Vec<Vec<Digit>>,
}

impl Tiles {
    /// Outer axes in an order, and tiles behind them, outermost first. The weights of tiles are what the
    /// later tiles of their axis leave.
    pub fn new(rank: usize, outer: &[usize], tiles: &[Vec<(usize, i64)>]) -> Tiles {
        let mut weights = vec![1i64; rank];
        let mut inner: Vec<Vec<Digit>> = Vec::new();
        for group in tiles.iter().rev() {
            let mut digits = Vec::new();
            for &(axis, extent) in group.iter().rev() {
                digits.push(Digit { axis, weight: weights[axis], extent: Some(extent) });
                weights[axis] = weights[axis].saturating_mul(extent);
            }
            digits.reverse();
            inner.push(digits);
        }
        inner.reverse();
        let outer = outer
            .iter()
            .map(|axis| vec![Digit { axis: *axis, weight: weights[*axis], extent: None }]);
        Tiles { rank, axes: outer.chain(inner).collect() }
    }

    /// The index map, with parameters of these names.
    pub fn map(&self, names: &[String]) -> IndexMap {
        let params: Vec<Var> = names.iter().map(|n| Var::new(n.as_str(), dtype())).collect();
        let indices = self
            .axes
            .iter()
            .filter_map(|group| {
                let sum = group.iter().map(|d| (digit_value(d, &params), d.extent.unwrap_or(1)));
                sum.reduce(|(sum, _), (e, n)| (sum * n + e, n)).map(|(e, _)| e)
            })
            .collect();
        IndexMap { params, indices, separators: Vec::new() }
    }

    /// The tiles that an index map is made of.
    ///
    /// # Errors
    /// `Refused` with the index that is no digit.
    pub fn recognise(map: &IndexMap) -> Result<Tiles> {
        let mut axes = Vec::new();
        for index in &map.indices {
            let found = digits(map, index);
            let Some(found) = found else {
                return Err(refused(format!("`{}` is no digit of an axis", super::text_of(index))));
            };
            axes.push(found);
        }
        let tiles = Tiles { rank: map.params.len(), axes };
        for axis in 0..tiles.rank {
            tiles.check(axis, map.params[axis].name())?;
        }
        Ok(tiles)
    }

    /// The digits of an axis, lowest first.
    pub fn of_axis(&self, axis: usize) -> Vec<Digit> {
        let all = self.axes.iter().flatten().copied().filter(|d| d.axis == axis);
        let mut all: Vec<Digit> = all.collect();
        all.sort_by_key(|d| (d.weight, d.extent.unwrap_or(i64::MAX)));
        all
    }

    /// Whether the digits of an axis cover it without gaps.
    fn check(&self, axis: usize, name: &str) -> Result<()> {
        let mut weight = 1;
        let digits = self.of_axis(axis);
        for (k, digit) in digits.iter().enumerate() {
            let last = k + 1 == digits.len();
            if digit.weight != weight || digit.extent.is_none() != last {
                return Err(refused(format!("the digits of axis `{name}` leave gaps or overlap")));
            }
            weight = weight.saturating_mul(digit.extent.unwrap_or(1));
        }
        if digits.is_empty() {
            return Err(refused(format!("axis `{name}` is nowhere in memory")));
        }
        Ok(())
    }

    /// The outer digits, as the order of axes, and the tiles behind them.
    ///
    /// # Errors
    /// `Refused` where a tile stands before an outer digit, which the notations do not have.
    pub fn outer_and_tiles(&self) -> Result<(Vec<usize>, Vec<Vec<Digit>>)> {
        let outer =
            self.axes.iter().take_while(|g| matches!(&g[..], [d] if d.extent.is_none())).count();
        let (outer, tiles) = self.axes.split_at(outer);
        if outer.len() != self.rank {
            return Err(refused("a tile lies outside of what it is a part of"));
        }
        Ok((outer.iter().flatten().map(|d| d.axis).collect(), tiles.to_vec()))
    }
}

/// How many elements along each axis a tile has; 1 where a map has no tiles.
pub(super) fn extents(map: &IndexMap) -> Vec<i64> {
    let rank = map.params.len();
    let Ok(tiles) = Tiles::recognise(map) else { return vec![1; rank] };
    (0..rank).map(|axis| tiles.of_axis(axis).iter().filter_map(|d| d.extent).product()).collect()
}

fn digit_value(d: &Digit, params: &[Var]) -> Expr {
    let value = params[d.axis].expr();
    let value = if d.weight > 1 { value.floordiv(d.weight) } else { value };
    match d.extent {
        // A tile of one element stays to be seen.
        Some(1) => Expr::binary(BinOp::FloorMod, value, Expr::int(1, dtype())),
        Some(extent) => value.floormod(extent),
        None => value,
    }
}

/// The digits that an index is, or joins in mixed radix.
fn digits(map: &IndexMap, index: &Expr) -> Option<Vec<Digit>> {
    if let Some(d) = digit(map, index) {
        return Some(vec![d]);
    }
    let ExprKind::Binary(BinOp::Add, a, b) = index.kind() else { return None };
    let last = digit(map, b)?;
    let ExprKind::Binary(BinOp::Mul, a, by) = a.kind() else { return None };
    let mut all = digits(map, a)?;
    let bounded = all.iter().all(|d| d.extent.is_some());
    if !bounded || by.as_int()? != last.extent? {
        return None;
    }
    all.push(last);
    Some(all)
}

/// `i`, `i // w`, `i % n`, `i // w % n` or `i % n // w`.
fn digit(map: &IndexMap, index: &Expr) -> Option<Digit> {
    let (mut weight, mut end) = (1i64, None::<i64>);
    let mut at = index;
    // From the outside in: each operation is on what the ones inside of it leave.
    let mut operations = Vec::new();
    while let ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), a, b) = at.kind() {
        operations.push((*op, b.as_int().filter(|k| *k > 0)?));
        at = a;
    }
    let axis = map.params.iter().position(|p| Some(p) == at.as_var())?;
    for (op, k) in operations.into_iter().rev() {
        match op {
            BinOp::FloorDiv => weight = weight.checked_mul(k)?,
            _ => {
                let cut = weight.checked_mul(k)?;
                match end {
                    Some(old) if old % cut != 0 => return None,
                    _ => end = Some(cut),
                }
            }
        }
    }
    match end {
        None => Some(Digit { axis, weight, extent: None }),
        Some(end) if end % weight == 0 => Some(Digit { axis, weight, extent: Some(end / weight) }),
        Some(_) => None,
    }
}
