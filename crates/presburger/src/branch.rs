//! Integer points by the simplex with branches: quick where few are needed, and not complete.

use crate::matrix::{Matrix, content};
use crate::num::{Budget, Int, Res, Stop, floor_div};
use crate::tableau::{Num, Tableau};

/// Divides an inequality by what its coefficients have in common; no if nothing satisfies it.
pub(crate) fn tighten(row: &mut [Int]) -> bool {
    let g = content(&row[1..]);
    if g == 0 {
        return row[0] >= 0;
    }
    if g > 1 {
        row[0] = floor_div(row[0], g);
        row[1..].iter_mut().for_each(|v| *v /= g);
    }
    true
}

/// What a search with branches comes to.
pub(crate) enum Search {
    Point(Vec<Int>),
    Empty,
    /// The branches were not enough.
    Open,
}

/// Branches until there is an integer vertex or nothing, or until there were `most` of them.
pub(crate) fn branches<N: Num>(rows: &Matrix, most: Option<usize>, budget: &Budget) -> Res<Search> {
    let vars = rows.cols() - 1;
    let mut first = Tableau::<N>::new(vars, budget);
    for row in rows.rows() {
        first.add(row)?;
        if first.is_empty() {
            return Ok(Search::Empty);
        }
    }
    let mut open = vec![first];
    let mut seen = 0;
    while let Some(t) = open.pop() {
        if t.is_empty() {
            continue;
        }
        if most.is_some_and(|most| seen > most) {
            return Ok(Search::Open);
        }
        seen += 1;
        budget.charge(4)?;
        let vertex = t.vertex();
        // The last unknown that is no integer: in a reduced basis that is the best one to branch on.
        let broken = vertex.iter().rposition(|(_, d)| !d.is_one());
        let Some(k) = broken else {
            let ints = vertex.iter().map(|(v, _)| v.to_int());
            let point = ints.collect::<Option<Vec<Int>>>().ok_or(Stop::TooLarge)?;
            return Ok(Search::Point(point));
        };
        let (a, d) = &vertex[k];
        let floor = a.floored(d);
        let mut row = vec![N::from_int(0); vars + 1];
        // x <= floor, x >= floor + 1
        let mut below = t.clone();
        row[0] = floor.clone();
        row[k + 1] = N::from_int(-1);
        below.add_row(&row)?;
        let mut above = t;
        let next = floor.plus(&N::from_int(1)).ok_or(Stop::TooLarge)?;
        row[0] = next.negated().ok_or(Stop::TooLarge)?;
        row[k + 1] = N::from_int(1);
        above.add_row(&row)?;
        open.push(above);
        open.push(below);
    }
    Ok(Search::Empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::value;

    #[test]
    fn a_thin_polytope_in_reduced_coordinates() {
        let rows = [
            [-1, 1, 8, 0, -4],
            [24, -1, -8, 0, 4],
            [1, 0, 0, -1, 3],
            [-1, 1, 0, 0, -4],
            [8, -1, 0, 0, 4],
            [-7, 0, 0, -1, -5],
            [9, 0, 0, 1, 5],
            [1, 0, 0, 1, -3],
            [6, 0, 0, -1, 3],
            [7, 1, 0, 0, 4],
            [0, -1, 0, 0, -4],
        ];
        let mut m = Matrix::new(5);
        rows.iter().for_each(|r| m.push(r));
        let found = branches::<Int>(&m, Some(50), &Budget::unlimited()).expect("no overflow");
        let Search::Point(p) = found else { panic!("there is a point") };
        assert!(m.rows().all(|row| value(row, &p).expect("small") >= 0));
    }
}
