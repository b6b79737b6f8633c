//! Which added stores leave their cells as they are, given what is known of what they read.

use std::collections::HashMap;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{Buffer, Expr, ExprKind, Fold};
use tilewright_sets::{AccessId, Domain, Known, Set, Touch};

use super::added::Added;
use crate::flow::{Run, Traffic, Who, same, same_constant};
use crate::neutral::{Floats, reduced};
use crate::program::{Act, Program};

/// What memory holds where added instances look at it, in the program as it is.
pub(super) struct Knowledge<'a> {
    program: &'a Program,
    traffic: HashMap<Buffer, Traffic<'a>>,
}

/// A read of a step, by numbers; `None` is the cell that it writes.
pub(super) type Look = (usize, Option<usize>);

/// A store that changes nothing at some points.
pub(super) struct Unchanged {
    /// The points of its loops.
    pub points: Set,
    /// What that rests on.
    pub rests_on: Vec<Look>,
}

/// What a value is where parts of it are known.
pub(super) struct Value {
    /// The value.
    pub value: Expr,
    /// Where that holds: points of the loops.
    pub points: Set,
    /// What it rests on.
    pub rests_on: Vec<Look>,
}

impl<'a> Knowledge<'a> {
    /// What these would see of the memories that are `asked` for.
    pub fn of(
        program: &'a Program,
        added: &[&Added],
        asked: impl Fn(&Buffer) -> bool,
    ) -> Knowledge<'a> {
        let mut looked_at: HashMap<Buffer, Vec<&Added>> = HashMap::new();
        for a in added {
            for t in a.what.touches.iter().filter(|t| asked(&t.buffer)) {
                let list = looked_at.entry(t.buffer.clone()).or_default();
                if list.last().is_none_or(|last| last.step != a.step) {
                    list.push(a);
                }
            }
        }
        let mut traffic = HashMap::new();
        for (memory, list) in looked_at {
            let real = (0..program.steps.len())
                .filter(|k| !matches!(program.steps[*k].act, Act::Permit))
                .filter_map(|k| Some(Run::of(program, k, &memory)?.only(|t| t.is_write)));
            let look = |a: &&Added| {
                let who = Who::Added(a.step);
                let run = Run::new(program, who, &a.what, &memory)?;
                Some(run.looking(&a.what).only(|t| !t.is_write))
            };
            let runs = real.chain(list.iter().filter_map(look)).collect();
            if let Ok(t) = Traffic::between(program, runs) {
                traffic.insert(memory, t);
            }
        }
        Knowledge { program, traffic }
    }

    /// Where an added instance reads, or looks before it writes.
    fn access(
        &self,
        step: usize,
        touch: &Touch,
        number: Option<usize>,
    ) -> Option<(&Traffic<'a>, AccessId)> {
        let t = self.traffic.get(&touch.buffer)?;
        let statement = t.runs.iter().position(|r| r.who == Who::Added(step))?;
        let touch = t.runs.get(statement)?.touches.iter().position(|x| *x == number)?;
        Some((t, AccessId { statement, touch }))
    }

    /// The constants that added instances of a statement read, with the points at which they do.
    fn constants(&self, place: usize, added: &[&Added]) -> Vec<Read> {
        let mut found = Vec::new();
        for a in added {
            if a.what.place != place {
                continue;
            }
            for (k, touch) in a.what.touches.iter().enumerate().filter(|(_, t)| !t.is_write) {
                let known = self.access(a.step, touch, Some(k)).and_then(|(t, id)| t.constant(id));
                let Some((value, points)) = known else { continue };
                let Ok(all) = a.what.domain.to_set() else { continue };
                found.push(Read {
                    step: a.step,
                    touch: k,
                    what: touch.clone(),
                    value,
                    everywhere: all.is_subset(&points).is_yes(),
                    points,
                });
            }
        }
        found
    }

    /// A value of an added instance, as far as what it reads is known: everywhere, or also in parts
    /// of the added points. `added` are all that go with it.
    pub fn value(
        &self,
        a: &Added,
        added: &[&Added],
        value: &Expr,
        partly: bool,
        floats: Floats,
    ) -> Known<Value> {
        let mut points = a.what.domain.to_set()?;
        let mut put = Put { program: self.program, reads: Vec::new() };
        for read in self.constants(a.what.place, added) {
            if !read.everywhere {
                if !partly || read.step != a.step {
                    continue;
                }
                points = points.intersect(&read.points)?;
            }
            put.reads.push(read);
        }
        let rests_on = put.reads.iter().map(|r| (r.step, Some(r.touch))).collect();
        let value = reduced(&put.expr(value), &points.domain()?, floats);
        Ok(Value { value, points, rests_on })
    }

    /// The points at which an added store leaves its cell as it is.
    pub fn unchanged(&self, a: &Added, added: &[&Added], floats: Floats) -> Option<Unchanged> {
        let step = &a.what;
        let (Act::Store(value), Some(target)) = (&step.act, step.target()) else { return None };
        let look = self.access(a.step, target, None);
        for partly in [false, true] {
            let Ok(known) = self.value(a, added, value, partly, floats) else { continue };
            let Value { value, points, mut rests_on } = known;
            let at = points.domain().ok()?;
            if self.is_cell(&value, target, &at) {
                return Some(Unchanged { points, rests_on });
            }
            if let Some((there, where_)) = look.and_then(|(t, id)| t.constant(id))
                && same_constant(&value, &there)
            {
                rests_on.push((a.step, None));
                return Some(Unchanged { points: points.intersect(&where_).ok()?, rests_on });
            }
        }
        let (t, id) = look?;
        t.holds(id, value).then(|| {
            let points = a.what.domain.to_set().ok()?;
            Some(Unchanged { points, rests_on: vec![(a.step, None)] })
        })?
    }

    /// Whether a value is what the cell holds.
    fn is_cell(&self, value: &Expr, target: &Touch, at: &Domain) -> bool {
        let ExprKind::Load(buffer, indices) = value.kind() else { return false };
        let cell = target.indices.iter().skip(self.program.lifetime(buffer));
        *buffer == target.buffer
            && indices.iter().zip(cell).all(|(x, y)| same(self.program, at, x, y))
    }
}

/// A load whose value is known.
struct Read {
    step: usize,
    touch: usize,
    what: Touch,
    value: Expr,
    points: Set,
    /// Whether it is known at all added points.
    everywhere: bool,
}

/// Puts known values in the place of loads.
struct Put<'a> {
    program: &'a Program,
    reads: Vec<Read>,
}

impl Fold for Put<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let ExprKind::Load(buffer, indices) = e.kind() else { return fold_expr_children(self, e) };
        let outer = self.program.lifetime(buffer);
        let is_this = |r: &&Read| {
            let at = r.what.indices.iter().skip(outer);
            r.what.buffer == *buffer && indices.iter().zip(at).all(|(x, y)| same_expr(x, y))
        };
        self.reads.iter().find(is_this).map_or_else(|| e.clone(), |r| r.value.clone())
    }
}
