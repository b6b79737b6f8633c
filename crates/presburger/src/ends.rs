//! Ends of single unknowns, narrowed by inequalities until nothing changes.
//!
//! Rows are kept as their coefficients that are not zero, and a row is looked at again only where an end that it
//! reads has changed since: most of a system stays as it was when one unknown is fixed.

use crate::matrix::Matrix;
use crate::num::{Int, add_mul, ceil_div, floor_div, mul};

/// Rounds over the inequalities, after which ends stay as they are.
const ROUNDS: usize = 8;

/// Known ends of unknowns.
#[derive(Clone)]
pub(crate) struct Ends {
    pub low: Vec<Option<Int>>,
    pub high: Vec<Option<Int>>,
    /// Whether an end that a row reads has changed since it was looked at, by rows.
    stale: Vec<bool>,
}

impl Ends {
    /// How many integers beside the first lie between the ends of an unknown.
    pub fn range(&self, v: usize) -> Option<Int> {
        Some(self.high[v]?.saturating_sub(self.low[v]?))
    }
}

/// Inequalities that narrow ends: the greatest value of each is not negative.
pub(crate) struct Narrowing {
    rows: Vec<Row>,
    /// Unknowns and their coefficients, row by row.
    terms: Vec<(usize, Int)>,
    /// The rows that read the low end of an unknown, and those that read its high end.
    readers: Vec<[Vec<usize>; 2]>,
}

struct Row {
    constant: Int,
    first: usize,
    end: usize,
}

const LOW: usize = 0;
const HIGH: usize = 1;

impl Narrowing {
    /// Of rows with the constant in front.
    pub fn new(rows: &Matrix, vars: usize) -> Narrowing {
        let mut readers = vec![[Vec::new(), Vec::new()]; vars];
        let (mut all, mut terms) = (Vec::with_capacity(rows.len()), Vec::new());
        for (at, row) in rows.rows().enumerate() {
            let first = terms.len();
            for (v, c) in row[1..].iter().enumerate().filter(|(_, c)| **c != 0) {
                terms.push((v, *c));
                readers[v][if *c > 0 { HIGH } else { LOW }].push(at);
            }
            all.push(Row { constant: row[0], first, end: terms.len() });
        }
        Narrowing { rows: all, terms, readers }
    }

    /// No ends.
    pub fn free(&self) -> Ends {
        let vars = self.readers.len();
        Ends { low: vec![None; vars], high: vec![None; vars], stale: vec![true; self.rows.len()] }
    }

    /// Whether an inequality has several unknowns.
    pub fn joins(&self) -> bool {
        self.rows.iter().any(|row| row.end - row.first > 1)
    }

    /// Gives an unknown other ends.
    pub fn set(&self, ends: &mut Ends, v: usize, low: Int, high: Int) {
        if ends.low[v] != Some(low) {
            self.set_end(ends, v, LOW, low);
        }
        if ends.high[v] != Some(high) {
            self.set_end(ends, v, HIGH, high);
        }
    }

    fn set_end(&self, ends: &mut Ends, v: usize, which: usize, value: Int) {
        let end = if which == LOW { &mut ends.low[v] } else { &mut ends.high[v] };
        *end = Some(value);
        for row in &self.readers[v][which] {
            ends.stale[*row] = true;
        }
    }

    /// Narrows ends by each inequality; no for a contradiction.
    pub fn narrow(&self, ends: &mut Ends) -> bool {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for (at, row) in self.rows.iter().enumerate() {
                if std::mem::replace(&mut ends.stale[at], false) {
                    match self.narrow_by(row, ends) {
                        Some(narrowed) => changed |= narrowed,
                        None => return false,
                    }
                }
            }
            if !changed {
                break;
            }
        }
        true
    }

    /// Narrows ends by one inequality, and says whether it did; `None` for a contradiction.
    fn narrow_by(&self, row: &Row, ends: &mut Ends) -> Option<bool> {
        let terms = &self.terms[row.first..row.end];
        // The greatest value of the row; one unknown without end leaves only that to be bounded.
        let mut sum = row.constant;
        let mut open = None;
        for (v, c) in terms {
            match if *c > 0 { ends.high[*v] } else { ends.low[*v] } {
                Some(end) => match add_mul(sum, *c, end) {
                    Ok(more) => sum = more,
                    // Nothing is narrowed where a number does not fit.
                    Err(_) => return Some(false),
                },
                None if open.is_some() => return Some(false),
                None => open = Some(*v),
            }
        }
        if open.is_none() && sum < 0 {
            return None;
        }
        let mut changed = false;
        for (v, c) in terms.iter().filter(|(v, _)| open.is_none_or(|open| open == *v)) {
            let own = match if *c > 0 { ends.high[*v] } else { ends.low[*v] } {
                Some(end) => match mul(*c, end) {
                    Ok(part) => part,
                    Err(_) => continue,
                },
                None => 0,
            };
            // Beyond the integers that have an opposite, nothing is narrowed.
            let Some(rest) = sum.checked_sub(own).filter(|rest| *rest > Int::MIN) else { continue };
            // c * x + rest >= 0
            if *c > 0 {
                let low = if *c == 1 { -rest } else { ceil_div(-rest, *c) };
                if ends.low[*v].is_none_or(|old| low > old) {
                    self.set_end(ends, *v, LOW, low);
                    changed = true;
                }
            } else {
                let high = if *c == -1 { rest } else { floor_div(rest, -*c) };
                if ends.high[*v].is_none_or(|old| high < old) {
                    self.set_end(ends, *v, HIGH, high);
                    changed = true;
                }
            }
            if ends.range(*v).is_some_and(|range| range < 0) {
                return None;
            }
        }
        Some(changed)
    }
}
