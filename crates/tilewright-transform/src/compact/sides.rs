//! The part of each axis of a buffer that a statement uses: the smallest range that holds all indices for given values of
//! the loops outside.
//!
//! Intervals of linear indices answer first, and exact sets where these do not. Guards count: where extents are constants,
//! a range is exact, or the sets are asked. Where they are open, what exact sets find takes long and saves a few cells, so
//! a range that is a little large is taken.

use std::cell::OnceCell;

use tilewright_analysis::footprint::{Cells, Footprint};
use tilewright_ir::index::{self, Interval, Linear};
use tilewright_ir::{Expr, Range, Stmt, Var};
use tilewright_polyhedral::{Domain, Engine, Reason, Set};

use super::moved::Side;
use super::relations::{IndexTerms, domain};
use super::{Around, Compact, Local, reach};

/// The most cells that an axis of open extent gets whatever the sizes are.
const MOST_CELLS: i64 = 1 << 14;

/// Points of the program.
struct Points {
    /// Those at which the place of an allocation is reached.
    around: Domain,
    /// Those of each access.
    each: Vec<Domain>,
}

/// Accesses of a buffer.
struct Accesses {
    cells: Vec<Cells>,
    /// Their points, made where intervals do not answer: for all axes.
    points: OnceCell<Points>,
}

impl Compact<'_> {
    /// The part of each axis that a statement uses, `None` for all of it; and what is not known.
    pub(super) fn sides(&mut self, local: &Local, s: &Stmt) -> (Vec<Option<Side>>, Vec<String>) {
        let footprint = Footprint::collect(s, &local.buffer);
        self.learn_inner(&footprint);
        let cells = footprint.reads.into_iter().chain(footprint.writes).collect();
        let accesses = Accesses { cells, points: OnceCell::new() };
        let (mut sides, mut notes) = (Vec::new(), Vec::new());
        for (axis, extent) in local.buffer.shape.iter().enumerate() {
            let side = match self.side(extent, axis, &accesses) {
                Ok(side) => side,
                Err(note) => {
                    notes.push(format!("axis {axis}: {note}"));
                    None
                }
            };
            sides.push(side.filter(|side| extent.as_int().is_none_or(|n| side.extent < n)));
        }
        (sides, notes)
    }

    /// The part of an axis that is used, `None` for all of it; or why it is not known.
    fn side(
        &mut self,
        extent: &Expr,
        axis: usize,
        accesses: &Accesses,
    ) -> Result<Option<Side>, String> {
        if extent.as_int() == Some(1) {
            return Ok(None);
        }
        if extent.as_int().is_some() {
            let side = self.by_intervals(extent, axis, accesses);
            return side.map_or_else(|| self.by_sets(extent, axis, accesses), Ok).map(Some);
        }
        // How much a tensor can hold at most is no bound that memory should be taken for.
        std::mem::swap(&mut self.ranges, &mut self.growing);
        let side = self.by_intervals(extent, axis, accesses);
        std::mem::swap(&mut self.ranges, &mut self.growing);
        let side = side.map_or_else(|| self.by_sets(extent, axis, accesses), Ok)?;
        if side.extent > MOST_CELLS {
            return Err(format!("its extent is {} at most, too much to take always", side.extent));
        }
        Ok(Some(side))
    }

    /// The used part of an axis, where all indices are linear, and in range; of an axis of constant
    /// extent, where it is used as a whole.
    fn by_intervals(&self, extent: &Expr, axis: usize, accesses: &Accesses) -> Option<Side> {
        let cells = &accesses.cells;
        let parts: Option<Vec<IndexTerms>> =
            cells.iter().map(|c| self.parts(c.indices.get(axis)?, &c.vars, None)).collect();
        let parts = parts?;
        let base = &parts.first()?.outer;
        // What is used by all, and what is used for certain.
        let (mut all, mut sure): (Option<Interval>, Option<Interval>) = (None, None);
        for (part, c) in parts.iter().zip(cells) {
            let offset = part.outer.clone().plus(base, -1)?;
            let ends = part.inner?.plus(offset.span(&self.ranges)?)?;
            all = Some(all.map_or(ends, |all| all.union(ends)));
            if part.reached && c.guards.is_empty() && offset.terms.is_empty() {
                sure = Some(sure.map_or(ends, |sure| sure.union(ends)));
            }
        }
        let Interval { lo: low, hi: high } = all?;
        let least = base.clone().plus(&Linear::constant(low, base.dtype), 1)?;
        let most = base.clone().plus(&Linear::constant(high, base.dtype), 1)?;
        let inside = match extent.as_int() {
            Some(extent) => {
                all == sure
                    && least.bounds(&self.ranges)?.lo >= 0
                    && most.bounds(&self.ranges)?.hi < i128::from(extent)
            }
            None => parts.iter().zip(cells).enumerate().all(|(k, (part, c))| {
                self.stays_inside(part, c, extent).unwrap_or(false)
                    || self.is_known_inside((k, axis), extent, accesses).is_ok()
            }),
        };
        let min = least.to_expr().filter(|_| inside)?;
        Some(Side { min, extent: i64::try_from(high - low + 1).ok()? })
    }

    /// An index taken apart, where it is index arithmetic.
    pub(super) fn parts(
        &self,
        e: &Expr,
        vars: &[(Var, Range)],
        var: Option<&Var>,
    ) -> Option<IndexTerms> {
        if e.mentions_any(&self.data) || !e.effects().constant() {
            return None;
        }
        let all = index::linear(e, &self.ranges)?;
        let mut outer = Linear::constant(all.constant, all.dtype);
        let mut inner = Linear::constant(0, all.dtype);
        let mut step = 0;
        let mut reached = vars.iter().all(|(_, r)| r.extent.as_int().is_some_and(|n| n > 0));
        for (atom, by) in all.terms.iter().cloned() {
            if var.is_some() && atom.as_var() == var {
                step = by;
            } else if var.is_some_and(|v| atom.mentions(v)) {
                return None;
            } else if atom.mentions_any(vars.iter().map(|(v, _)| v)) {
                reached &=
                    vars.iter().any(|(v, r)| Some(v) == atom.as_var() && r.min.as_int().is_some());
                inner.terms.push((atom, by));
            } else {
                outer.terms.push((atom, by));
            }
        }
        let inner = reach::between(&inner, vars, &self.ranges);
        Some(IndexTerms { all, outer, step, inner, reached })
    }

    /// Whether the loops of an access, and each of its guards, reach ever more cells of an axis as sizes grow, as far as
    /// can be seen.
    fn is_open(&self, cells: &Cells, axis: usize) -> bool {
        let grows =
            |length: Option<Linear>| length.is_some_and(|l| l.span(&self.growing).is_none());
        let mut guards = cells.guards.iter().flat_map(Expr::conjuncts);
        grows(self.length(cells, axis, None))
            && guards.all(|guard| grows(self.length(cells, axis, Some(&guard))))
    }

    /// How far apart the ends are that the loops of an access reach along an axis, or the first one and the last one
    /// that a guard lets it have.
    fn length(&self, cells: &Cells, axis: usize, guard: Option<&Expr>) -> Option<Linear> {
        let index = self.parts(cells.indices.get(axis)?, &cells.vars, None)?.all;
        let most = match guard {
            None => index.clone(),
            Some(guard) => reach::under_guard(&index, guard, &self.ranges)?,
        };
        let (first, _) = reach::ends(&index, &cells.vars, &self.ranges)?;
        let (_, last) = reach::ends(&most, &cells.vars, &self.ranges)?;
        last.plus(&first, -1)
    }

    /// Whether an index is in range, by what its loops reach, inside of the place and around it, and by
    /// conditions: those that bound loops, and guards that bound the index.
    fn stays_inside(&self, index: &IndexTerms, cells: &Cells, extent: &Expr) -> Option<bool> {
        let around = self.around.iter().filter_map(|a| match a {
            Around::Loop(var, range) => Some((var.clone(), range.clone())),
            Around::Holds(_) => None,
        });
        let loops: Vec<(Var, Range)> = around.chain(cells.vars.iter().cloned()).collect();
        let extent = index::linear(extent, &self.ranges)?;
        let within = |loops: &[(Var, Range)]| {
            reach::is_within(&index.all, &cells.guards, loops, &extent, &self.ranges)
        };
        if within(&loops).unwrap_or(false) {
            return Some(true);
        }
        let around = self.around.iter().filter_map(|a| match a {
            Around::Holds(cond) => Some(cond),
            Around::Loop(..) => None,
        });
        let conditions = around.chain(&cells.guards).filter(|c| !c.mentions_any(&self.data));
        let bounded = reach::bounded(&loops, conditions);
        bounded.map_or(Some(false), |loops| within(&loops))
    }

    /// Whether the index of an access is in range, by sets; or why it is not known.
    fn is_known_inside(
        &self,
        (k, axis): (usize, usize),
        extent: &Expr,
        accesses: &Accesses,
    ) -> Result<(), String> {
        let points = self.points(accesses);
        let at = accesses.cells[k].indices.get(axis).cloned().unwrap_or_else(|| Expr::i32(0));
        if !at.effects().constant() || at.dtype().lanes != 1 {
            return Err(format!("the index `{at}` is not known"));
        }
        let extent = extent.clone().cast(at.dtype());
        let inside = at.clone().greater_equal(0).and(at.clone().less(&extent));
        if points.each[k].proves(&inside) {
            Ok(())
        } else {
            Err(format!("the index `{at}` is not known to be in range"))
        }
    }

    /// The points of all accesses, which are made once.
    fn points<'p>(&self, accesses: &'p Accesses) -> &'p Points {
        accesses.points.get_or_init(|| {
            let engine = Engine::new();
            let known = self.known();
            let each = accesses.cells.iter().map(|c| domain(&engine, c, &known)).collect();
            Points { around: self.loops(&engine), each }
        })
    }

    /// The used part of an axis; or why it is not known.
    fn by_sets(&self, extent: &Expr, axis: usize, accesses: &Accesses) -> Result<Side, String> {
        let cells = &accesses.cells;
        if extent.as_int().is_none() && cells.iter().any(|c| self.is_open(c, axis)) {
            return Err("its extent has no constant bound".to_owned());
        }
        let Points { around, each } = self.points(accesses);
        let cell =
            Var::new("cell", cells.first().map_or(extent.dtype(), |c| index_of(c, axis).dtype()));
        let whole = Range::upto(extent.clone().cast(cell.dtype()));
        (0..cells.len()).try_for_each(|k| self.is_known_inside((k, axis), extent, accesses))?;
        if extent.as_int().is_some()
            && let Some((low, high)) = self.by_each(axis, accesses, each)
        {
            let extent = high.checked_sub(low).and_then(|n| n.checked_add(1));
            let extent = extent.ok_or("its extent is too large")?;
            return Ok(Side { min: Expr::int(low, cell.dtype()), extent });
        }
        let used = Set::union_of(cells.iter().zip(each).map(|(c, touching)| {
            let at = index_of(c, axis).cast(cell.dtype());
            let touched = touching.with_var(&cell, &whole).with_guard(&cell.expr().equal(at));
            touched.to_set()?.project(std::slice::from_ref(&cell))
        }));
        let used = used.map_err(|e| e.to_string())?.ok_or("it is not used")?;
        if used.is_void() {
            // No access is ever made: any cell will do.
            return Ok(Side { min: Expr::int(0, extent.dtype()), extent: 1 });
        }
        let range = used.domain().tight_range(&cell, &[]);
        let range = range.map_err(|e| e.to_string())?;
        let extent = match range.extent.as_int() {
            Some(n) => Some(n),
            None => {
                let most = around.bounds(&range.extent);
                most.map_err(|e| e.to_string())?.1
            }
        };
        match extent {
            Some(extent) => Ok(Side { min: range.min, extent: extent.max(1) }),
            None => Err(format!("its extent `{}` has no constant bound", range.extent)),
        }
    }

    /// The least and the largest index of an axis, where loops around the place move no access along it: by the points
    /// of each access alone. What these have together takes long to find where sizes are open, and begins elsewhere
    /// only where a guard says so. `None` where that is not known, or no access is ever made.
    fn by_each(&self, axis: usize, accesses: &Accesses, each: &[Domain]) -> Option<(i64, i64)> {
        let mut ends: Option<(i64, i64)> = None;
        for (c, points) in accesses.cells.iter().zip(each) {
            let at = index_of(c, axis);
            let stays = self.parts(&at, &c.vars, None)?.outer.terms.is_empty();
            let own = match points.bounds(&at) {
                Ok((Some(low), Some(high))) if stays => (low, high),
                Err(e) if matches!(e.reason(), Reason::Empty) => continue,
                _ => return None,
            };
            ends = Some(ends.map_or(own, |all| (all.0.min(own.0), all.1.max(own.1))));
        }
        ends
    }
}

fn index_of(c: &Cells, axis: usize) -> Expr {
    c.indices.get(axis).cloned().unwrap_or_else(|| Expr::i32(0))
}
