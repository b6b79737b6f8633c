//! Accesses of a buffer compared with one another: whether they meet, by sets of the cells that each touches.

use std::cell::OnceCell;

use tilewright_analysis::footprint::Cells;
use tilewright_ir::interval::Ranges;
use tilewright_ir::linear::Linear;
use tilewright_ir::{Expr, Range, Var};
use tilewright_polyhedral::{AccessRelation, Engine};

use super::{Around, Compact, IndexTerms, domain, reach};

/// An access that is compared with others.
pub(super) struct Compared<'c> {
    pub cells: &'c Cells,
    pub axes: Vec<Axis>,
    /// As a relation, where intervals do not tell it apart.
    pub points: OnceCell<AccessRelation>,
}

/// An index of an access that is compared with others.
pub(super) struct Axis {
    pub terms: Option<IndexTerms>,
    pub ends: OnceCell<Option<(Linear, Linear)>>,
}

impl Axis {
    /// The least and the greatest value over the loops of the access.
    pub fn ends(&self, access: &Compared, ranges: &Ranges) -> Option<&(Linear, Linear)> {
        self.ends
            .get_or_init(|| reach::ends(&self.terms.as_ref()?.all, &access.cells.vars, ranges))
            .as_ref()
    }
}

/// Accesses as relations, made where intervals do not tell them apart, each once.
pub(super) struct Relations<'a> {
    /// The loop of which other iterations count, with its range.
    var: Option<(&'a Var, Option<Range>)>,
    engine: Engine,
    known: Vec<Expr>,
}

impl<'a> Relations<'a> {
    pub fn new(compact: &Compact<'_>, var: Option<&'a Var>) -> Self {
        let var = var.map(|v| (v, loop_range(v, compact)));
        Relations { var, engine: Engine::new(), known: compact.known() }
    }

    /// Whether a write and a read do not meet: at all, or in other iterations.
    pub fn are_apart(&self, w: &Compared, r: &Compared) -> bool {
        if !self.depends_on_var(w.cells) && !self.depends_on_var(r.cells)
            || matches!(self.var, Some((_, None)))
        {
            return false;
        }
        let engine = &self.engine;
        let [w, r] = [w, r]
            .map(|access| access.points.get_or_init(|| self.relation_of(access.cells, engine)));
        let (r, names) = r.elsewhere();
        match self.var.as_ref().map(|(var, _)| (var, names.get(*var))) {
            None => w.is_apart(&r, &[]),
            Some((var, Some(other))) => w.is_apart(&r, &[var.expr().not_equal(other)]),
            Some((_, None)) => false,
        }
    }

    /// Without the variable in an index, only guards could keep iterations apart.
    fn depends_on_var(&self, c: &Cells) -> bool {
        self.var
            .as_ref()
            .is_none_or(|(v, _)| c.indices.iter().chain(&c.guards).any(|e| e.mentions(v)))
    }

    fn relation_of(&self, c: &Cells, engine: &Engine) -> AccessRelation {
        let points = domain(engine, c, &self.known);
        let points = match &self.var {
            Some((var, Some(range))) => points.with_var(var, range),
            _ => points,
        };
        AccessRelation::new(&points, &c.indices)
    }
}

/// The variable of the loop is no variable of the domains of accesses.
fn loop_range(var: &Var, compact: &Compact<'_>) -> Option<Range> {
    compact.around.iter().rev().find_map(|a| match a {
        Around::Loop(v, range) if v == var => Some(range.clone()),
        _ => None,
    })
}
