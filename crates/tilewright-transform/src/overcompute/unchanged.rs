//! Which added stores leave their cells as they are, given what is known of what they read.

use std::cell::RefCell;
use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::equal::same_expr;
use tilewright_ir::scalar::Scalar;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind};
use tilewright_polyhedral::{Access, AccessId, Domain, Known, Set};

use super::added::Added;
use tilewright_analysis::neutral::{Floats, reduced};
use tilewright_polyhedral::flow::{MemoryFlow, Run, Who, is_constant, same, same_constant};
use tilewright_polyhedral::scop::{Act, Scop, ScopStmt};

/// What memory holds where added instances look at it, in the program as it is: found out when it
/// is asked for, for one statement and one memory at a time.
pub(super) struct Knowledge<'a> {
    scop: &'a Scop,
    found: RefCell<HashMap<(usize, Buffer), Shared<'a>>>,
}

/// A flow, where it is known.
type Shared<'a> = Option<Rc<MemoryFlow<'a>>>;

/// How to look for a value.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    /// Also for one in parts of the points.
    pub partly: bool,
    /// Not into this memory.
    pub but: Option<&'a Buffer>,
    /// What may be in memory.
    pub floats: Floats,
}

/// A read of a statement, by numbers; `None` is the cell that it writes.
pub(super) type Read = (usize, Option<usize>);

/// Where something is known of a statement: that its store changes nothing, or what its value is.
pub(super) struct Unchanged {
    /// The points of its loops.
    pub points: Set,
    /// The accesses that this depends on.
    pub depends_on: Vec<Read>,
}

impl<'a> Knowledge<'a> {
    /// What added instances would see.
    pub fn new(scop: &'a Scop) -> Knowledge<'a> {
        Knowledge { scop, found: RefCell::default() }
    }

    /// The flow through a memory up to an added instance.
    fn memory_flow(&self, a: &Added, memory: &Buffer) -> Shared<'a> {
        let asked = (a.stmt, memory.clone());
        if let Some(known) = self.found.borrow().get(&asked) {
            return known.clone();
        }
        let scop = self.scop;
        let stmts = scop.stmts.iter().enumerate();
        let real = stmts.filter(|(_, s)| !matches!(s.act, Act::Permit));
        let mut runs: Vec<Run> = real
            .filter_map(|(k, _)| Some(Run::from_statement(scop, k, memory)?.only(|t| t.is_write)))
            .collect();
        let look = Run::new(scop, Who::Added(a.stmt), &a.what, memory);
        runs.extend(look.map(|run| run.looking(&a.what).only(|t| !t.is_write)));
        let memory_flow = MemoryFlow::between(scop, runs).ok().map(Rc::new);
        self.found.borrow_mut().insert(asked, memory_flow.clone());
        memory_flow
    }

    /// Where an added instance reads, or looks before it writes.
    fn access(
        &self,
        a: &Added,
        access: &Access,
        number: Option<usize>,
    ) -> Option<(Rc<MemoryFlow<'a>>, AccessId)> {
        let t = self.memory_flow(a, &access.buffer)?;
        let statement = t.runs.iter().position(|r| r.who == Who::Added(a.stmt))?;
        let access = t.runs.get(statement)?.accesses.iter().position(|x| *x == number)?;
        Some((t, AccessId { statement, access }))
    }

    /// The constants that added instances of a statement read, with the points at which they do.
    /// Nothing of the memory `but`.
    fn constants(&self, place: usize, added: &[&Added], but: Option<&Buffer>) -> Vec<Constant> {
        let mut found = Vec::new();
        for a in added {
            if a.what.place != place {
                continue;
            }
            for (k, access) in a
                .what
                .accesses
                .iter()
                .enumerate()
                .filter(|(_, t)| !t.is_write && Some(&t.buffer) != but)
            {
                let known = self.access(a, access, Some(k)).and_then(|(t, id)| t.constant(id));
                let Some((value, points)) = known else { continue };
                let Ok(all) = a.what.domain.to_set() else { continue };
                found.push(Constant {
                    stmt: a.stmt,
                    access: k,
                    what: access.clone(),
                    value,
                    everywhere: all.is_within(&points),
                    points,
                });
            }
        }
        found
    }

    /// A value of an added instance, as far as what it reads is known, and where that holds. `added`
    /// are all that go with it.
    pub fn value(
        &self,
        a: &Added,
        added: &[&Added],
        value: &Expr,
        look: Look<'_>,
    ) -> Known<(Expr, Unchanged)> {
        let mut points = a.what.domain.to_set()?;
        let mut known = Vec::new();
        for read in self.constants(a.what.place, added, look.but) {
            if !read.everywhere {
                if !look.partly || read.stmt != a.stmt {
                    continue;
                }
                points = points.intersect(&read.points)?;
            }
            known.push(read);
        }
        let depends_on = known.iter().map(|r| (r.stmt, Some(r.access))).collect();
        let value = value.replace(|e| {
            let ExprKind::Load(buffer, indices) = e.kind() else { return None };
            let outer = self.scop.lifetime(buffer);
            Some(
                known
                    .iter()
                    .find(|r| {
                        let at = r.what.indices.iter().skip(outer);
                        r.what.buffer == *buffer
                            && indices.iter().zip(at).all(|(x, y)| same_expr(x, y))
                    })
                    .map_or_else(|| e.clone(), |r| r.value.clone()),
            )
        });
        let value = reduced(&value, &points.domain(), &|b| {
            look.floats == Floats::Finite && self.scop.has(b)
        });
        Ok((value, Unchanged { points, depends_on }))
    }

    /// The points at which an added store leaves its cell as it is. What the cell holds is looked
    /// at last, and only if asked: where a store updates it, that is the hardest to know, and often
    /// of no importance.
    pub fn unchanged(
        &self,
        a: &Added,
        added: &[&Added],
        own: bool,
        floats: Floats,
    ) -> Option<Unchanged> {
        let (Act::Store(value), Some(target)) = (&a.what.act, a.what.target()) else { return None };
        let all = a.what.domain.to_set().ok()?;
        let mut found: Option<Unchanged> = None;
        for but in [Some(&target.buffer), None].into_iter().take(1 + usize::from(own)) {
            for partly in [false, true] {
                let look = Look { partly, but, floats };
                let known = self.value(a, added, value, look);
                let here = known.ok().and_then(|known| self.neutral(a, target, known, but));
                let Some(mut here) = here else { continue };
                if let Some(before) = found.take() {
                    here.points = here.points.union(&before.points).ok()?;
                    here.depends_on.extend(before.depends_on);
                }
                if all.is_within(&here.points) {
                    return Some(here);
                }
                found = Some(here);
            }
        }
        if own
            && !self.scop.reads_what_changes(value)
            && self.access(a, target, None).is_some_and(|(t, id)| t.holds(id, value))
        {
            Some(Unchanged { points: all, depends_on: vec![(a.stmt, None)] })
        } else {
            found
        }
    }

    /// The points at which a known value is what its cell holds.
    fn neutral(
        &self,
        a: &Added,
        target: &Access,
        (value, mut known): (Expr, Unchanged),
        but: Option<&Buffer>,
    ) -> Option<Unchanged> {
        if self.is_cell(&value, target, &known.points.domain()) {
            return Some(known);
        }
        if but.is_none()
            && let Some(end) = self.end(&value, target, &known.points.domain())
            && self.is_beyond(a, target, &end)
        {
            known.depends_on.push((a.stmt, None));
            return Some(known);
        }
        if but.is_some() || !is_constant(&value) {
            return None;
        }
        let (there, at) = self.access(a, target, None).and_then(|(t, id)| t.constant(id))?;
        if !same_constant(&value, &there) {
            return None;
        }
        known.depends_on.push((a.stmt, None));
        Some(Unchanged { points: known.points.intersect(&at).ok()?, ..known })
    }

    /// The constant of a value that is the larger, or the smaller, of a constant and what the cell holds.
    fn end(&self, value: &Expr, target: &Access, at: &Domain) -> Option<End> {
        let ExprKind::Binary(op @ (BinOp::Max | BinOp::Min), x, y) = value.kind() else {
            return None;
        };
        let (cell, bound) = if is_constant(y) { (x, y) } else { (y, x) };
        let of = Scalar::constant(bound).filter(|_| self.is_cell(cell, target, at))?;
        Some(End { op: *op, of })
    }

    /// Whether the cell that an added instance looks at is at or beyond an end: it was written before, by stores that
    /// never leave a memory on the other side. These store constants there, or the larger (or smaller) of anything
    /// and what the cell held since it was written first.
    fn is_beyond(&self, a: &Added, target: &Access, end: &End) -> bool {
        let Some((flow, look)) = self.access(a, target, None) else { return false };
        let writers = self.scop.stmts.iter().enumerate().filter(|(_, s)| {
            s.accesses.iter().any(|t| t.is_write && t.buffer.data == target.buffer.data)
        });
        let mut updates = Vec::new();
        for (k, stmt) in writers {
            let Act::Store(value) = &stmt.act else { return false };
            if end.is_met_by(value) {
                continue;
            }
            let Some(own) = end.update(value, stmt) else { return false };
            updates.push((k, own));
        }
        let is_written = |flow: &MemoryFlow, reader| {
            flow.flow.sources(reader).all(|e| e.certain)
                && flow.flow.uninitialised.iter().all(|u| u.reader != reader)
        };
        if !is_written(&flow, look) {
            return false;
        }
        let runs = Run::all(self.scop, &target.buffer).collect();
        let Ok(all) = MemoryFlow::between(self.scop, runs) else { return false };
        updates.into_iter().all(|(k, own)| {
            let Some(statement) = all.runs.iter().position(|r| r.who == Who::Stmt(k)) else {
                return false;
            };
            let access = all.runs[statement].accesses.iter().position(|x| *x == Some(own));
            access.is_some_and(|access| is_written(&all, AccessId { statement, access }))
        })
    }

    /// Whether a value is what the cell holds.
    fn is_cell(&self, value: &Expr, target: &Access, at: &Domain) -> bool {
        let ExprKind::Load(buffer, indices) = value.kind() else { return false };
        let cell = target.indices.iter().skip(self.scop.lifetime(buffer));
        *buffer == target.buffer && indices.iter().zip(cell).all(|(x, y)| same(self.scop, at, x, y))
    }
}

/// A load whose value is known.
struct Constant {
    stmt: usize,
    access: usize,
    what: Access,
    value: Expr,
    points: Set,
    /// Whether it is known at all added points.
    everywhere: bool,
}

/// A constant that is the least value (or with `Min` the greatest) that a cell may hold.
struct End {
    op: BinOp,
    of: Scalar,
}

impl End {
    /// Whether a constant is at the end or beyond.
    fn is_met_by(&self, value: &Expr) -> bool {
        let Some(value) = Scalar::constant(value).filter(|v| v.dtype() == self.of.dtype()) else {
            return false;
        };
        let (value, of) = (value.as_f64(), self.of.as_f64());
        // Integers that are no `float64` are not compared as such.
        let is_exact = |v: f64| self.of.dtype().is_float() || v.abs() < 9e15;
        is_exact(value)
            && is_exact(of)
            && if self.op == BinOp::Max { value >= of } else { value <= of }
    }

    /// The number of the access by which a store reads its own cell, where it keeps the larger (or smaller) of that and
    /// something else.
    fn update(&self, value: &Expr, stmt: &ScopStmt) -> Option<usize> {
        let target = stmt.target()?;
        let ExprKind::Binary(op, x, y) = value.kind() else { return None };
        let reads_own = |e: &Expr| match e.kind() {
            ExprKind::Load(buffer, at) => {
                let own = target.indices.iter().rev().zip(at.iter().rev());
                *buffer == target.buffer && own.into_iter().all(|(x, y)| same_expr(x, y))
            }
            _ => false,
        };
        if *op != self.op || !(reads_own(x) || reads_own(y)) {
            return None;
        }
        stmt.accesses.iter().position(|t| !t.is_write && stmt.updates(t))
    }
}
