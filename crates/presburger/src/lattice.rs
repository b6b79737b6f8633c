//! Integer points of polyhedra in any direction: complete, where plain branching is not.
//!
//! A polyhedron `A x >= b` may go on for ever along its recession cone `A c >= 0`. A constraint that
//! is positive on some `c` of the cone is met by every point that is moved far enough along it, so
//! that an integer point of the *other* constraints is enough. Those are zero on the whole cone and
//! bound a polytope, times the lattice on which they are zero: a Hermite form separates the two.
//!
//! A polytope that is long and thin in a direction which is no axis takes very many branches. So the
//! unknowns are changed to a basis in which the columns of the constraints, each measured by the
//! range of the constraint over the polytope, are short and near to orthogonal (Lenstra, Lenstra and
//! Lovász 1982; Krishnamoorthy and Pataki 2009, "Column basis reduction and decomposable knapsack
//! problems"). The change is an integer matrix of determinant 1; floating point only chooses it, and
//! cannot make an answer wrong.

use crate::branch::{Search, branches, tighten};
use crate::matrix::{Matrix, combine, value};
use crate::num::{Budget, Int, Res, Stop, add_mul, gcd, mul, neg, round_div};
use crate::tableau::{Num, Tableau, exact};

/// An integer point of inequalities.
pub(crate) fn point(rows: &Matrix, budget: &Budget) -> Res<Option<Vec<Int>>> {
    let n = rows.cols() - 1;
    let (ray, unbounded) = exact!(|N| cone::<N>(rows, budget))?;
    let mut kept = Matrix::new(n + 1);
    for (row, unbounded) in rows.rows().zip(&unbounded) {
        if !unbounded {
            kept.push(row);
        }
    }
    let Some(mut found) = bounded_point(&kept, budget)? else { return Ok(None) };
    // Along the ray, until all constraints hold.
    let mut steps = 0;
    for row in rows.rows() {
        let (now, gain) = (value(row, &found)?, dot(&row[1..], &ray)?);
        if now < 0 && gain > 0 {
            steps = steps.max(crate::num::ceil_div(-now, gain));
        }
    }
    for (x, c) in found.iter_mut().zip(&ray) {
        *x = add_mul(*x, steps, *c)?;
    }
    Ok(Some(found))
}

fn dot(a: &[Int], b: &[Int]) -> Res<Int> {
    a.iter().zip(b).try_fold(0, |sum, (x, y)| add_mul(sum, *x, *y))
}

/// A direction of the recession cone on which as many constraints as possible are positive, and
/// which those are.
fn cone<N: Num>(rows: &Matrix, budget: &Budget) -> Res<(Vec<Int>, Vec<bool>)> {
    let n = rows.cols() - 1;
    let mut base = Tableau::<N>::new(n, budget);
    for row in rows.rows() {
        let mut row = row.to_vec();
        row[0] = 0;
        base.add(&row)?;
    }
    let mut ray = vec![0; n];
    let mut grows = vec![false; rows.len()];
    for at in 0..rows.len() {
        if grows[at] {
            continue;
        }
        let mut t = base.clone();
        let mut row = rows.row(at).to_vec();
        row[0] = -1;
        t.add(&row)?;
        if t.is_empty() {
            continue;
        }
        let mut scale = 1;
        let mut direction = Vec::new();
        for (a, d) in t.vertex() {
            let (a, d) = (a.to_int().ok_or(Stop::TooLarge)?, d.to_int().ok_or(Stop::TooLarge)?);
            scale = mul(scale / gcd(scale, d), d)?;
            direction.push((a, d));
        }
        for (r, (a, d)) in ray.iter_mut().zip(direction) {
            *r = add_mul(*r, a, scale / d)?;
        }
        for (g, row) in grows.iter_mut().zip(rows.rows()) {
            *g = *g || dot(&row[1..], &ray)? > 0;
        }
    }
    Ok((ray, grows))
}

/// A point of inequalities that are bounded but for the lattice on which they are all zero.
fn bounded_point(rows: &Matrix, budget: &Budget) -> Res<Option<Vec<Int>>> {
    let n = rows.cols() - 1;
    // Rows of `change` are the images of the unit vectors, and of the constraints' columns beside.
    let m = rows.len();
    let mut columns = Matrix::new(m + n);
    for k in 0..n {
        let column = columns.push_zero();
        for (i, row) in rows.rows().enumerate() {
            column[i] = row[1 + k];
        }
        column[m + k] = 1;
    }
    let rank = echelon(&mut columns, m, budget)?;
    let weights = weights(rows, &columns, rank, budget)?;
    if let Some(weights) = &weights {
        reduce(&mut columns, rank, m, weights, budget)?;
    }
    let mut system = Matrix::new(rank + 1);
    for (i, row) in rows.rows().enumerate() {
        let new = system.push_zero();
        new[0] = row[0];
        for k in 0..rank {
            new[1 + k] = columns.row(k)[i];
        }
        if !tighten(new) {
            return Ok(None);
        }
    }
    let found = match exact!(|N| branches::<N>(&system, None, budget))? {
        Search::Point(found) => found,
        _ => return Ok(None),
    };
    let mut out = vec![0; n];
    for (k, y) in found.iter().enumerate() {
        for (x, u) in out.iter_mut().zip(&columns.row(k)[m..]) {
            *x = add_mul(*x, *y, *u)?;
        }
    }
    Ok(Some(out))
}

/// Brings vectors into echelon form in their first `m` entries by integer steps of determinant 1;
/// how many are not zero there.
pub(crate) fn echelon(vectors: &mut Matrix, m: usize, budget: &Budget) -> Res<usize> {
    let mut rank = 0;
    for i in 0..m {
        loop {
            budget.charge(1)?;
            let live = (rank..vectors.len()).filter(|k| vectors.row(*k)[i] != 0);
            let Some(least) = live.min_by_key(|k| vectors.row(*k)[i].abs()) else { break };
            vectors.swap(rank, least);
            let pivot = vectors.row(rank).to_vec();
            let mut clean = true;
            for k in rank + 1..vectors.len() {
                let v = vectors.row(k)[i];
                if v != 0 {
                    let q = round_div(v, pivot[i].abs()) * pivot[i].signum();
                    combine(vectors.row_mut(k), 1, &pivot, neg(q)?)?;
                    clean &= vectors.row(k)[i] == 0;
                }
            }
            if clean {
                rank += 1;
                break;
            }
        }
        if rank == vectors.len() {
            break;
        }
    }
    Ok(rank)
}

/// One over the range of each constraint, in the polytope that they bound; `None` if that is empty.
fn weights(rows: &Matrix, columns: &Matrix, rank: usize, budget: &Budget) -> Res<Option<Vec<f64>>> {
    let reduced: Vec<Vec<Int>> = (rows.rows().enumerate())
        .map(|(i, row)| {
            std::iter::once(row[0]).chain((0..rank).map(|k| columns.row(k)[i])).collect()
        })
        .collect();
    exact!(|N| {
        (|| {
            let mut t = Tableau::<N>::new(rank, budget);
            for row in &reduced {
                t.add(row)?;
                if t.is_empty() {
                    return Ok(None);
                }
            }
            let mut out = Vec::new();
            for row in &reduced {
                let down: Vec<Int> = row.iter().map(|v| neg(*v)).collect::<Res<_>>()?;
                let range = match (t.minimum(row)?, t.minimum(&down)?) {
                    (Some((a, d)), Some((b, e))) => {
                        let (low, up) = (a.floored(&d).to_int(), b.floored(&e).to_int());
                        match (low, up) {
                            (Some(low), Some(up)) => -(low as f64) - (up as f64),
                            _ => f64::MAX,
                        }
                    }
                    _ => f64::MAX,
                };
                out.push(1.0 / range.max(1.0));
            }
            Ok(Some(out))
        })()
    })
}

/// Reduces a lattice basis, the first `m` entries of each vector measured by weights.
fn reduce(basis: &mut Matrix, rank: usize, m: usize, weights: &[f64], budget: &Budget) -> Res<()> {
    const STEPS: usize = 400;
    let mut k = 1;
    for _ in 0..STEPS {
        if k >= rank {
            return Ok(());
        }
        budget.charge(4 + rank)?;
        // Gram-Schmidt up to k; the systems are small.
        let mut stars: Vec<Vec<f64>> = Vec::new();
        for i in 0..=k {
            let b = weighed(basis.row(i), m, weights);
            let mut star = b.clone();
            for other in &stars {
                let norm = dot_product(other, other);
                if norm > 0.0 {
                    let mu = dot_product(&b, other) / norm;
                    star.iter_mut().zip(other).for_each(|(s, o)| *s -= mu * o);
                }
            }
            stars.push(star);
        }
        for j in (0..k).rev() {
            let norm = dot_product(&stars[j], &stars[j]);
            if norm <= 0.0 {
                continue;
            }
            let mu = (dot_product(&weighed(basis.row(k), m, weights), &stars[j]) / norm).round();
            if mu != 0.0 && mu.abs() < 1e15 {
                let other = basis.row(j).to_vec();
                combine(basis.row_mut(k), 1, &other, -(mu as Int))?;
            }
        }
        let below = dot_product(&stars[k - 1], &stars[k - 1]);
        let mu = dot_product(&weighed(basis.row(k), m, weights), &stars[k - 1])
            / below.max(f64::MIN_POSITIVE);
        if dot_product(&stars[k], &stars[k]) >= (0.75 - mu * mu) * below {
            k += 1;
        } else {
            basis.swap(k, k - 1);
            k = (k - 1).max(1);
        }
    }
    Ok(())
}

fn weighed(row: &[Int], m: usize, weights: &[f64]) -> Vec<f64> {
    row[..m].iter().zip(weights).map(|(v, w)| *v as f64 * w).collect()
}

fn dot_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>()
}
