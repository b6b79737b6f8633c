//! Whether two layouts put every element at the same address.
//!
//! On a constant shape that is asked of every point, or of the set engine where these are too many.
//! Without one it is asked of all shapes: layouts with the same physical indices are equal on each of them,
//! and a few shapes are tried for a difference.

use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Error, Expr, Range, Result, Var};
use tilewright_polyhedral::{Engine, Proof, Witness};

use super::points::{Grid, MOST_POINTS};
use super::{Notation, Spec, dtype, facts};
use crate::index_map::IndexMap;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Equality {
    /// They do, on this shape, or on all.
    Equal(Option<Vec<i64>>),
    /// They do not: a shape and an index, with both addresses.
    Differ {
        /// The logical extents.
        shape: Vec<i64>,
        /// The logical index.
        at: Vec<i64>,
        /// Where the element lies in the first and in the second layout.
        addresses: [String; 2],
    },
    /// It cannot be said.
    Undecided(String),
}

/// Compares two layouts, on the shape that one of them says.
///
/// # Errors
/// `Input` where they have different axes or are of different shapes.
pub fn equal(a: &Spec, b: &Spec) -> Result<Equality> {
    let (n, m) = (a.map.params.len(), b.map.params.len());
    if n != m {
        return Err(Error::input(format!("the layouts have {n} and {m} axes")));
    }
    if a.places != b.places {
        let (a, b) = (space_text(a), space_text(b));
        return Err(Error::input(format!("one layout gives {a}, the other one {b}")));
    }
    let (a, b) = (&as_whole_as(a, b), &as_whole_as(b, a));
    let shape = match (&a.shape, &b.shape) {
        (Some(a), Some(b)) if a != b => {
            return Err(Error::input(format!("the layouts are of the shapes {a:?} and {b:?}")));
        }
        (a, b) => a.as_ref().or(b.as_ref()),
    };
    match shape {
        Some(shape) => on(a, b, shape),
        None => everywhere(a, b),
    }
}

/// An index map says where elements lie, and not how much memory an axis takes that is shorter than a tile: that is as
/// in the layout that it is compared with.
fn as_whole_as(spec: &Spec, other: &Spec) -> Spec {
    let mut spec = spec.clone();
    if spec.notation == Notation::Script {
        spec.tiles.clone_from(&other.tiles);
    }
    spec
}

fn space_text(s: &Spec) -> String {
    match &s.places[..] {
        [] => "addresses".to_owned(),
        places => places.join(", "),
    }
}

/// Compares on a shape.
fn on(a: &Spec, b: &Spec, shape: &[i64]) -> Result<Equality> {
    let points = shape.iter().try_fold(1i64, |p, n| p.checked_mul(*n));
    if points.is_some_and(|n| n <= MOST_POINTS) {
        let (of_a, of_b) = (Grid::new(a, shape)?, Grid::new(b, shape)?);
        let Some((at, x, y)) = facts::difference(&of_a, &of_b) else {
            return Ok(Equality::Equal(Some(shape.to_vec())));
        };
        let addresses = [place(a, of_a.physical(), x), place(b, of_b.physical(), y)];
        return Ok(Equality::Differ { shape: shape.to_vec(), at, addresses });
    }
    let engine = Engine::new();
    let exprs =
        |shape: &[i64]| -> Vec<Expr> { shape.iter().map(|n| Expr::int(*n, dtype())).collect() };
    let ranges: Vec<(Var, Range)> =
        a.map.params.iter().cloned().zip(exprs(shape).into_iter().map(Range::upto)).collect();
    let (of_a, of_b) = (exprs(&a.with_whole_tiles(shape)), exprs(&b.with_whole_tiles(shape)));
    let (x, y) =
        (flat_address(&a.map, &of_a)?, flat_address(&with_params(&b.map, &a.map.params), &of_b)?);
    Ok(match engine.domain_of(&ranges, &[]).equal(&x, &y) {
        Proof::Yes => Equality::Equal(Some(shape.to_vec())),
        Proof::No { witness } => {
            let at: Vec<i64> = a.map.params.iter().map(|p| witness.get(p).unwrap_or(0)).collect();
            let addresses = [value_at(&x, &witness), value_at(&y, &witness)];
            Equality::Differ { shape: shape.to_vec(), at, addresses }
        }
        Proof::Unknown(why) => Equality::Undecided(why.to_string()),
    })
}

fn flat_address(map: &IndexMap, extents: &[Expr]) -> Result<Expr> {
    let physical = map.on(extents, true)?.physical;
    let flat = map.indices.iter().cloned().zip(physical);
    let flat = flat.reduce(|(sum, _), (e, n)| (sum * &n + e, n));
    Ok(flat.map_or_else(|| Expr::int(0, dtype()), |(e, _)| e))
}

fn value_at(e: &Expr, witness: &Witness) -> String {
    tilewright_polyhedral::evaluate(e, &|v| witness.get(v).or(Some(0)))
        .map_or("?".to_owned(), |v| v.to_string())
}

/// Compares on all shapes.
fn everywhere(a: &Spec, b: &Spec) -> Result<Equality> {
    let second = with_params(&b.map, &a.map.params);
    // Where an axis is shorter than a tile, the size of the tile counts.
    if a.tiles == b.tiles && a.map.indices.len() == second.indices.len() {
        let engine = Engine::new();
        let ranges: Vec<(Var, Range)> = a
            .map
            .params
            .iter()
            .map(|p| (p.clone(), Range::upto(Var::new(format!("n_{p}"), dtype()).expr())))
            .collect();
        let domain = engine.domain_of(&ranges, &[]);
        let mut pairs = a.map.indices.iter().zip(&second.indices);
        if pairs.all(|(x, y)| domain.is_equal(x, y)) {
            return Ok(Equality::Equal(None));
        }
    }
    const TRIED: [[i64; 4]; 5] =
        [[5, 7, 3, 6], [16, 32, 8, 4], [33, 17, 9, 5], [64, 64, 2, 2], [2, 100, 3, 7]];
    let rank = a.map.params.len();
    let mut equal = Vec::new();
    for sizes in TRIED {
        let shape: Vec<i64> = (0..rank).map(|d| sizes.get(d).copied().unwrap_or(2)).collect();
        match on(a, b, &shape)? {
            Equality::Equal(_) => equal.push(format!("{shape:?}")),
            found @ Equality::Differ { .. } => return Ok(found),
            Equality::Undecided(_) => {}
        }
    }
    let tried = equal.join(", ");
    Ok(Equality::Undecided(format!(
        "they are equal on the shapes {tried}, which proves nothing for others: give a shape"
    )))
}

/// The same map with other parameters.
fn with_params(map: &IndexMap, params: &[Var]) -> IndexMap {
    let mut subst = Subst::vars(map.params.iter().cloned().zip(params.iter().map(Var::expr)));
    let indices = map.indices.iter().map(|e| subst.expr(e)).collect();
    IndexMap { params: params.to_vec(), indices, separators: map.separators.clone() }
}

/// What lies at an offset of the box, as a place.
pub fn place(spec: &Spec, physical: &[i64], offset: i64) -> String {
    if spec.places.is_empty() {
        return offset.to_string();
    }
    let mut rest = offset;
    let mut parts: Vec<String> = spec
        .places
        .iter()
        .zip(physical)
        .rev()
        .filter_map(|(name, n)| {
            let digit = rest % n.max(&1);
            rest /= n.max(&1);
            (*n > 1).then(|| format!("{name} {digit}"))
        })
        .collect();
    parts.reverse();
    parts.join(", ")
}
