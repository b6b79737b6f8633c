//! Loops of a symbolic run whose iterations run at once: a pair that depends on each other ends it.
//!
//! Two writes of one term to a cell are the same work done again. What happens under a condition on
//! data may not happen at all, so a conflict there leaves the comparison undecided.

use tilewright_ir::update::{is_cell, update};

use tilewright_interp::race::{Act, message};

use super::*;

impl Run<'_> {
    /// What a store does to its cell. Until its value is there, loads of the cell are a part of it.
    pub(super) fn begin_store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Act {
        if self.watches.is_empty() {
            return Act::Write;
        }
        let act = update(buffer, indices, value).map_or(Act::Write, Act::Update);
        if let Act::Update(_) = act {
            self.updating = Some((buffer.clone(), indices.to_vec()));
        }
        act
    }

    /// Tells the loops around of a load.
    pub(super) fn note_load(
        &mut self,
        at: (usize, usize),
        buffer: &Buffer,
        indices: &[Expr],
    ) -> Ran<()> {
        if self.watches.is_empty() {
            return Ok(());
        }
        let load = Expr::load(buffer, indices.to_vec());
        if self.updating.as_ref().is_some_and(|(b, i)| is_cell(b, i, &load)) {
            Ok(())
        } else {
            self.note(at, Act::Read, None, buffer, indices)
        }
    }

    /// Tells the loops around what is done to a cell; `value` is what is written.
    pub(super) fn note(
        &mut self,
        at: (usize, usize),
        act: Act,
        value: Option<Val>,
        buffer: &Buffer,
        indices: &[Expr],
    ) -> Ran<()> {
        if self.watches.is_empty() {
            return Ok(());
        }
        let changes = value.is_some_and(|v| v != self.cell(at));
        let conditional = !self.path.is_empty();
        let mut found = None;
        for w in self.watches.iter_mut().filter(|w| at.0 < w.own) {
            let (history, under) = w.cells.entry(at).or_default();
            let before = std::mem::replace(under, *under || conditional);
            if let Err(other) = history.access(1, w.iteration, w.how, act, changes) {
                let value = |k: u32| w.first.wrapping_add(i64::from(k)).wrapping_sub(1);
                let pair = (value(other), value(w.iteration));
                found = Some((w.name.clone(), w.how, pair, before));
                break;
            }
        }
        let Some((name, how, pair, before)) = found else { return Ok(()) };
        let mut texts = Vec::new();
        for e in indices {
            let index = if e.dtype().lanes > 1 { None } else { self.number(e, "an index").ok() };
            texts.push(index.map_or_else(|| e.to_string(), |i| i.to_string()));
        }
        let text = message(&name, how, pair, &format!("{}[{}]", buffer.name, texts.join(", ")));
        if before {
            undecided(format!("under a condition on data: {text}"))
        } else {
            Err(self.fault(text))
        }
    }
}
