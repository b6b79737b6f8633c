//! Points that bounds suggest.
//!
//! Most sets that have a point are boxes with a few more constraints, and the corner at the lower
//! bounds is one, perhaps after a step inside. To evaluate constraints there takes less than to solve
//! them. A corner that is no point says nothing.

use crate::basic::Basic;
use crate::matrix::value;
use crate::num::{Int, Res, add, ceil_div, floor_div, mul, neg};

/// Most columns of a conjunction that is looked at.
const MAX_WIDTH: usize = 32;

/// What is known of a dimension.
#[derive(Clone, Copy, Default)]
struct Bounds {
    least: Option<Int>,
    greatest: Option<Int>,
    /// An equality gave the value.
    given: bool,
}

impl Bounds {
    fn corner(&self) -> Int {
        self.least.or(self.greatest.map(|v| v.min(0))).unwrap_or(0)
    }
}

/// The one column that a row mentions.
fn single(row: &[Int]) -> Option<usize> {
    let first = row.iter().skip(1).position(|v| *v != 0)? + 1;
    row[first + 1..].iter().all(|v| *v == 0).then_some(first)
}

impl Basic {
    /// Whether the corner is a point.
    pub fn has_corner(&self) -> bool {
        self.width() <= MAX_WIDTH && self.all_explicit() && self.is_corner().unwrap_or(false)
    }

    fn is_corner(&self) -> Res<bool> {
        let mut bounds = [Bounds::default(); MAX_WIDTH];
        for row in self.eqs.rows() {
            if let Some(k) = single(row).filter(|k| *k <= self.dims) {
                if row[0] % row[k] != 0 {
                    return Ok(false);
                }
                let value = neg(row[0] / row[k])?;
                bounds[k] = Bounds { least: Some(value), greatest: None, given: true };
            }
        }
        for row in self.ineqs.rows() {
            let Some(k) = single(row).filter(|k| *k <= self.dims) else { continue };
            let bound = &mut bounds[k];
            if bound.given {
                continue;
            }
            if row[k] > 0 {
                let least = ceil_div(neg(row[0])?, row[k]);
                bound.least = Some(bound.least.map_or(least, |v| v.max(least)));
            } else {
                let greatest = floor_div(row[0], neg(row[k])?);
                bound.greatest = Some(bound.greatest.map_or(greatest, |v| v.min(greatest)));
            }
        }
        let mut point = [0; MAX_WIDTH];
        for (x, bound) in point.iter_mut().zip(&bounds[1..=self.dims]) {
            *x = bound.corner();
        }
        let dims = 1..=self.dims;
        // A step inside, for each constraint that does not hold.
        for row in self.ineqs.rows().filter(|r| r[1 + self.dims..].iter().all(|v| *v == 0)) {
            let mut short = neg(value(row, &point)?)?;
            for k in dims.clone().rev().filter(|k| row[*k] > 0 && !bounds[*k].given) {
                if short <= 0 {
                    break;
                }
                let mut step = ceil_div(short, row[k]);
                if let Some(greatest) = bounds[k].greatest {
                    step = step.min(add(greatest, neg(point[k - 1])?)?);
                }
                if step > 0 {
                    point[k - 1] = add(point[k - 1], step)?;
                    short = add(short, neg(mul(step, row[k])?)?)?;
                }
            }
        }
        // Equalities give the last dimension that they mention once.
        for row in self.eqs.rows().filter(|r| r[1 + self.dims..].iter().all(|v| *v == 0)) {
            let rest = value(row, &point)?;
            if rest != 0
                && let Some(k) = dims.clone().rfind(|k| row[*k].abs() == 1 && !bounds[*k].given)
            {
                point[k - 1] = add(point[k - 1], if row[k] > 0 { neg(rest)? } else { rest })?;
                bounds[k].given = true;
            }
        }
        for (at, def) in self.divs.rows().enumerate() {
            let numerator = value(&def[1..], &point[..self.dims + at])?;
            point[self.dims + at] = floor_div(numerator, def[0]);
        }
        for row in self.eqs.rows() {
            if value(row, &point)? != 0 {
                return Ok(false);
            }
        }
        for row in self.ineqs.rows() {
            if value(row, &point)? < 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
