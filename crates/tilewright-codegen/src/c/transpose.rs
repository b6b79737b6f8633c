//! Loops that read across rows ([`crate::across_rows`]), as vectors of C and choices of their lanes.

use tilewright_ir::{Expr, ForKind, Range, Result, Stmt, Var};

use super::types;
use super::vector::{cells_of_lanes, vector_type};
use super::writer::Writer;
use crate::across_rows::{AcrossRows, across_rows, transposed};

impl Writer {
    /// Whether a loop reads across rows that vectors can read.
    pub(super) fn is_transposing(
        &self,
        var: &Var,
        range: &Range,
        kind: &ForKind,
        body: &Stmt,
    ) -> Result<bool> {
        Ok(!self.find_across(var, range, kind, body)?.is_empty())
    }

    fn find_across<'e>(
        &self,
        var: &Var,
        range: &Range,
        kind: &ForKind,
        body: &'e Stmt,
    ) -> Result<Vec<AcrossRows<'e>>> {
        let mut found = Vec::new();
        if !self.has_vectors() {
            return Ok(found);
        }
        for load in across_rows(var, range, kind, body) {
            let is_vector = vector_type(load.load.dtype())?.is_some();
            if is_vector && !self.place(load.buffer)?.image && evenly(&load).is_some() {
                found.push(load);
            }
        }
        Ok(found)
    }

    /// The iterations of a loop that [`Writer::is_transposing`] accepts, one after the other.
    pub(super) fn transposing(
        &mut self,
        var: &Var,
        range: &Range,
        kind: &ForKind,
        body: &Stmt,
    ) -> Result<()> {
        self.begin_loop(var, range)?;
        let ty = types::value(var.dtype())?;
        let min = self.expr(&range.min)?;
        self.braced("", |w| {
            w.vars.insert(var.clone(), min.clone());
            let mut columns: Vec<(&Expr, Vec<String>)> = Vec::new();
            for load in w.find_across(var, range, kind, body)? {
                columns.push((load.load, w.columns(&load)?));
            }
            for j in 0..range.extent.as_int().unwrap_or(0) {
                let name = w.name(var.name());
                w.vars.insert(var.clone(), name.clone());
                w.forget();
                w.braced("", |w| {
                    w.line(format_args!("const {ty} {name} = {min} + {j};"));
                    for (load, values) in &columns {
                        let value = values.get(j as usize);
                        value.into_iter().for_each(|v| w.know_vector(load, v));
                    }
                    w.stmt(body)
                })?;
            }
            Ok(())
        })
    }

    /// The names of what a load gives in each iteration.
    fn columns(&mut self, load: &AcrossRows<'_>) -> Result<Vec<String>> {
        let dtype = load.load.dtype();
        let (Some(vector), Some((first, step))) = (vector_type(dtype)?, evenly(load)) else {
            return Ok(Vec::new());
        };
        let scalar = types::memory(load.buffer.dtype())?;
        let space = self.place(load.buffer)?.space;
        let (cell, from) = (self.cell(load.buffer, &first)?, self.name("from"));
        self.line(format_args!("const {space} {scalar}* {from} = &{cell};"));
        let mut rows = Vec::new();
        for row in 0..i64::from(dtype.lanes) {
            let at = format!("{from} + {}", row * step);
            let (value, name) = (types::value(dtype)?, self.name("row"));
            let text = self.vector_loaded(value, dtype.lanes, space, &at);
            self.line(format_args!("const {vector} {name} = {text};"));
            rows.push(name);
        }
        Ok(transposed(rows, dtype.scalar().bytes(), |a, b, lanes| {
            let name = self.name("t");
            let lane = |l: &usize| match l.checked_sub(lanes.len()) {
                Some(l) => format!("{b}.s{l:x}"),
                None => format!("{a}.s{l:x}"),
            };
            let all: Vec<String> = lanes.iter().map(lane).collect();
            self.line(format_args!("const {vector} {name} = ({vector})({});", all.join(", ")));
            name
        }))
    }
}

/// The cell of the first row, and how many cells the next one is behind.
fn evenly(load: &AcrossRows<'_>) -> Option<(Vec<Expr>, i64)> {
    cells_of_lanes(load.buffer, std::slice::from_ref(load.at))
}
