//! The affine hull: all equalities that hold at every point.
//!
//! Points are collected. What they have in common as equations is a basis of candidates; a point off
//! one of them is looked for, joins the others, and makes the candidates fewer. After at most one
//! more point than there are dimensions every candidate holds everywhere.
//!
//! Two short cuts save nearly all searches: the neighbours of a point along the axes are tried first,
//! and candidates that are no more than the equalities of the one conjunction hold without a search.

use crate::basic::{Basic, complement};
use crate::lattice::echelon;
use crate::matrix::{Matrix, combine, content, value};
use crate::num::{Budget, Int, Res, add, floor_div, gcd, mul, neg};
use crate::relation::Relation;

/// The equations in the first `cols` columns that hold at all points of some conjunctions, constant
/// first; `None` where there is no point.
pub(crate) fn equations(
    parts: &[Basic],
    cols: usize,
    budget: &Budget,
) -> Res<Option<Vec<Vec<Int>>>> {
    let mut points: Vec<Vec<Int>> = Vec::new();
    for p in parts {
        if let Some(mut point) = p.point(budget)? {
            neighbours(p, &point, cols, &mut points, budget)?;
            point.truncate(cols);
            points.push(point);
        }
    }
    if points.is_empty() {
        return Ok(None);
    }
    let known = match parts {
        [p] => rank(&p.eqs, cols, budget)?,
        _ => 0,
    };
    'again: loop {
        budget.charge(4)?;
        let candidates = through(&points, cols)?;
        if candidates.len() == known {
            return Ok(Some(candidates));
        }
        for eq in &candidates {
            let mut above = eq.clone();
            above[0] = add(above[0], -1)?;
            for side in [above, complement(eq)?] {
                for p in parts {
                    let mut row = side.clone();
                    row.resize(p.width(), 0);
                    let mut off = p.clone();
                    off.ineqs.push(&row);
                    if let Some(mut point) = off.point(budget)? {
                        point.truncate(cols);
                        points.push(point);
                        continue 'again;
                    }
                }
            }
        }
        return Ok(Some(candidates));
    }
}

/// Adds the points of a conjunction that differ from one of them by one in one of the first `cols` columns, and in
/// the divisions that depend on it.
fn neighbours(
    p: &Basic,
    point: &[Int],
    cols: usize,
    points: &mut Vec<Vec<Int>>,
    budget: &Budget,
) -> Res<()> {
    budget.charge(1 + (p.eqs.len() + p.ineqs.len()) / 8)?;
    for k in (0..cols).filter(|k| *k < p.dims || !p.is_explicit(k - p.dims)) {
        for step in [1, -1] {
            let mut beside = point.to_vec();
            beside[k] = add(beside[k], step)?;
            if is_point(p, &mut beside)? {
                beside.truncate(cols);
                points.push(beside);
                break;
            }
        }
    }
    Ok(())
}

/// Whether a conjunction has a point: the values of all columns but the constant. Explicit divisions get their values
/// here, whatever they were.
fn is_point(p: &Basic, point: &mut [Int]) -> Res<bool> {
    for (div, def) in p.divs.rows().enumerate() {
        let at = p.dims + div;
        if def[0] != 0 {
            point[at] = floor_div(value(&def[1..2 + at], &point[..at])?, def[0]);
        }
    }
    for row in p.eqs.rows() {
        if value(row, point)? != 0 {
            return Ok(false);
        }
    }
    for row in p.ineqs.rows() {
        if value(row, point)? < 0 {
            return Ok(false);
        }
    }
    Ok(!p.void)
}

/// How many of some rows are independent, of those that are zero behind the first `cols` columns.
fn rank(rows: &Matrix, cols: usize, budget: &Budget) -> Res<usize> {
    let mut within = Matrix::new(cols);
    for row in rows.rows().filter(|row| row[1 + cols..].iter().all(|v| *v == 0)) {
        within.push(&row[1..1 + cols]);
    }
    echelon(&mut within, cols, budget)
}

/// Independent equations that hold at all of some points, each solved for its last column.
fn through(points: &[Vec<Int>], cols: usize) -> Res<Vec<Vec<Int>>> {
    // Directions between the points, in echelon form: pivots are the first columns that vary.
    let mut rows = Matrix::new(cols);
    for p in &points[1..] {
        let row = rows.push_zero();
        for ((r, a), b) in row.iter_mut().zip(p).zip(&points[0]) {
            *r = add(*a, neg(*b)?)?;
        }
    }
    let mut pivots: Vec<usize> = Vec::new();
    for k in 0..cols {
        let rank = pivots.len();
        let Some(at) = (rank..rows.len()).find(|r| rows.row(*r)[k] != 0) else { continue };
        let pivot = rows.row(at).to_vec();
        rows.swap(at, rank);
        for (i, row) in rows.rows_mut().enumerate() {
            if i != rank && row[k] != 0 {
                let g = gcd(row[k], pivot[k]);
                let (a, b) = (pivot[k] / g, neg(row[k] / g)?);
                combine(row, a, &pivot, b)?;
                let g = content(row);
                if g > 1 {
                    row.iter_mut().for_each(|v| *v /= g);
                }
            }
        }
        pivots.push(k);
    }
    // Each other column is a function of the pivots.
    let mut out = Vec::new();
    for k in (0..cols).filter(|k| !pivots.contains(k)) {
        let mut scale = 1;
        for (i, p) in pivots.iter().enumerate() {
            let (c, d) = (rows.row(i)[k], rows.row(i)[*p]);
            let d = (d / gcd(c, d)).abs();
            scale = mul(scale / gcd(scale, d), d)?;
        }
        // scale * x_k - sum scale * c_i / d_i * x_p = constant
        let mut eq = vec![0; 1 + cols];
        eq[1 + k] = scale;
        for (i, p) in pivots.iter().enumerate() {
            let (c, d) = (rows.row(i)[k], rows.row(i)[*p]);
            eq[1 + p] = neg(mul(scale, c)? / d)?;
        }
        eq[0] = neg(value(&eq, &points[0])?)?;
        let g = content(&eq);
        if g > 1 {
            eq.iter_mut().for_each(|v| *v /= g);
        }
        out.push(eq);
    }
    Ok(out)
}

impl Relation {
    /// The smallest set with equalities alone that has every point: one conjunction, empty for an
    /// empty set.
    pub fn affine_hull(&self, budget: &Budget) -> Res<Relation> {
        let total = self.space.total();
        let Some(eqs) = equations(&self.parts, total, budget)? else {
            return Ok(Relation::empty(&self.space));
        };
        Relation::of_constraints(&self.space, &eqs, &[])
    }

    /// The same points, with the equalities that follow in each conjunction made explicit.
    pub fn detect_equalities(&self, budget: &Budget) -> Res<Relation> {
        let mut parts = Vec::new();
        for p in self.parts.iter() {
            let Some(eqs) = equations(std::slice::from_ref(p), p.width() - 1, budget)? else {
                continue;
            };
            let mut p = p.clone();
            eqs.iter().for_each(|eq| p.eqs.push(eq));
            p.normalize()?;
            parts.push(p);
        }
        Ok(Relation::new(self.space.clone(), parts))
    }

    /// Without inequalities that follow from the others of their conjunction.
    pub fn remove_redundancies(&self, budget: &Budget) -> Res<Relation> {
        let mut parts = Vec::new();
        for p in self.parts.iter() {
            let mut p = p.clone();
            crate::eliminate::remove_redundant(&mut p, budget)?;
            p.normalize()?;
            parts.push(p);
        }
        Ok(Relation::new(self.space.clone(), parts))
    }
}
