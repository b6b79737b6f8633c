//! Where the padding of a buffer gets to: which loads read it, and which cells are computed from it.

use tilewright_ir::demand::decisive_loads;
use tilewright_ir::{Buffer, Expr, ExprKind, Stmt, Visit, dim};
use tilewright_polyhedral::place::{Placed, walk_expr_placed};
use tilewright_polyhedral::{AccessRelation, Domain, Engine, Known, Set};

use super::conversion::{Conversion, boxed, cell_names};
use super::known::Region;
use super::writes::Writes;

/// Cells get their values from cells in at most this many steps, or it is not known from which.
const MAX_ROUNDS: usize = 8;

/// Cells that are computed from padding.
struct Stained {
    buffer: Buffer,
    region: Region,
    set: Set,
}

/// What comes of the padding of a buffer.
pub(crate) struct Taint {
    stained: Vec<Stained>,
    /// A load that reads the padding, with the point at which it does.
    read: Option<String>,
    /// What could not be followed.
    unknown: Option<String>,
}

impl Taint {
    /// Follows the cells that `conversion` pads through a statement.
    pub fn analyse(
        engine: &Engine,
        body: &Stmt,
        buffer: &Buffer,
        conversion: &Conversion,
    ) -> Taint {
        let mut taint = Taint { stained: Vec::new(), read: None, unknown: None };
        if let Err(e) = taint.follow(engine, body, buffer, conversion) {
            taint.unknown = Some(e.to_string());
        }
        taint
    }

    /// `Err` where padding is read, or may be.
    pub fn read(&self) -> Result<(), String> {
        self.unknown.iter().chain(&self.read).next().map_or(Ok(()), |what| Err(what.clone()))
    }

    /// `Err` where one of the buffers has cells that are computed from padding, or may have.
    pub fn reaches<'a>(&self, buffers: impl Iterator<Item = &'a Buffer>) -> Result<(), String> {
        if let Some(what) = &self.unknown {
            return Err(what.clone());
        }
        for b in buffers {
            if let Some(found) = self.stained.iter().find(|s| s.buffer == *b) {
                let read = self.read.iter().map(|r| format!(": {r}")).collect::<String>();
                let cells = if found.region.cond.is_true() {
                    "in all cells".to_owned()
                } else {
                    format!("where {}", found.region.cond)
                };
                return Err(format!("`{}` is computed from it {cells}{read}", b.name));
            }
        }
        Ok(())
    }

    fn follow(
        &mut self,
        engine: &Engine,
        body: &Stmt,
        buffer: &Buffer,
        conversion: &Conversion,
    ) -> Known<()> {
        let Some(writes) = Writes::collect(body) else {
            self.unknown = Some("what the function does cannot be followed".into());
            return Ok(());
        };
        let padding = conversion.padding();
        self.stained.push(Stained {
            buffer: buffer.clone(),
            region: Region {
                cells: conversion.cells.clone(),
                shape: conversion.to.clone(),
                cond: Expr::not_node(conversion.data.clone()),
            },
            set: padding.to_set()?,
        });
        for _ in 0..MAX_ROUNDS {
            let mut more = false;
            for w in &writes.stores {
                let mut loads = Vec::new();
                let domain = w.place.domain(engine);
                guarded_loads(&w.value, &domain, &mut loads);
                let elsewhere = w.place.guards.iter().chain(&w.indices);
                for e in elsewhere.chain(w.place.loops.iter().map(|l| &l.1.extent)) {
                    if !e.effects().constant() {
                        self.unknown = Some(format!("`{e}` depends on data"));
                        return Ok(());
                    }
                }
                let decisive = decisive_loads(&w.value);
                for (domain, load) in loads {
                    let ExprKind::Load(b, at) = load.kind() else { continue };
                    for k in 0..self.stained.len() {
                        if self.stained[k].buffer != *b {
                            continue;
                        }
                        more |= self.spread(engine, k, &domain, at, w)?;
                        // Another value there might stop the program, or read elsewhere.
                        let decides = decisive.iter().any(|d| d.ptr_eq(&load));
                        if decides && !self.hit(k, &domain, at).is_void() {
                            self.unknown = Some(format!("`{load}` decides more than a value"));
                            return Ok(());
                        }
                    }
                }
            }
            if !more {
                return Ok(());
            }
        }
        self.unknown = Some("it goes through many cells".into());
        Ok(())
    }

    /// The points at which a load of a stained buffer reads stained cells.
    fn hit(&self, from: usize, domain: &Domain, at: &[Expr]) -> Domain {
        domain.with_guard(&self.stained[from].region.at(at))
    }

    /// What one load of a stained buffer stains.
    fn spread(
        &mut self,
        engine: &Engine,
        from: usize,
        domain: &Domain,
        at: &[Expr],
        w: &super::writes::Write,
    ) -> Known<bool> {
        let source = &self.stained[from];
        let hit = self.hit(from, domain, at);
        let empty = hit.is_empty();
        if empty.is_yes() {
            return Ok(false);
        }
        if from == 0 && self.read.is_none() {
            let point = empty.witness().map(|p| format!("at {p} ")).unwrap_or_default();
            let at: Vec<String> = at.iter().map(Expr::to_string).collect();
            self.read = Some(format!("{point}`{}[{}]` is read", source.buffer.name, at.join(", ")));
        }
        let Some(shape) = dim::of_shape(&w.buffer.shape) else {
            self.unknown = Some(format!("the size of `{}` is not known", w.buffer.name));
            return Ok(false);
        };
        let known = self.stained.iter().position(|s| s.buffer == w.buffer);
        let cells =
            known.map_or_else(|| cell_names(&shape), |k| self.stained[k].region.cells.clone());
        let new = AccessRelation::new(&hit, &w.indices).touched(&cells)?;
        let all = boxed(engine, &cells, &shape);
        match known.map(|k| &mut self.stained[k]) {
            Some(old) if new.is_within(&old.set) => Ok(false),
            Some(old) => {
                old.set = old.set.union(&new)?;
                old.region.cond = old.set.condition(&all)?;
                Ok(true)
            }
            None => {
                let cond = new.condition(&all)?;
                let region = Region { cells, shape, cond };
                self.stained.push(Stained { buffer: w.buffer.clone(), region, set: new });
                Ok(true)
            }
        }
    }
}

/// The loads of a value with the points at which they happen.
fn guarded_loads(e: &Expr, domain: &Domain, out: &mut Vec<(Domain, Expr)>) {
    struct Scan<'a>(Domain, &'a mut Vec<(Domain, Expr)>);
    impl Placed for Scan<'_> {
        type At = Domain;
        fn at(&mut self) -> &mut Domain {
            &mut self.0
        }
    }
    impl Visit for Scan<'_> {
        fn expr(&mut self, e: &Expr) {
            match e.kind() {
                // What is selected away has no part in the value.
                ExprKind::Select(c, t, f) => {
                    self.expr(c);
                    self.under(c, true, |s| s.expr(t));
                    self.under(c, false, |s| s.expr(f));
                }
                ExprKind::Load(..) => {
                    self.1.push((self.0.clone(), e.clone()));
                    walk_expr_placed(self, e);
                }
                _ => walk_expr_placed(self, e),
            }
        }
    }
    Scan(domain.clone(), out).expr(e);
}
