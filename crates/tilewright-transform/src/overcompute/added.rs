//! What a statement would do more without the guard around it, and whether it may.
//!
//! The added instances must not stop the program: every access stays in range (rule 5 of
//! `docs/semantics.md`), every operation is defined, nothing is assumed, asserted or
//! called. Iterations of a parallel loop must still not depend on each other.

use tilewright_ir::demand::demand;
use tilewright_ir::visit::{walk_expr, walk_stmt};
use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, ForKind, IterKind, IterVar,
    Range, Result, Stmt, StmtKind, Var, Visit,
};
use tilewright_polyhedral::{Access, AccessRelation, Domain, Proof};

use tilewright_polyhedral::flow::cell;
use tilewright_polyhedral::scop::{Act, GuardId, Scop, ScopStmt};

/// The instances that a statement has more.
pub(super) struct Added {
    /// The statement's number.
    pub stmt: usize,
    /// What it does at the added points.
    pub what: ScopStmt,
}

/// An iteration variable of a block, by its place and number, whose domain grows.
pub(super) type Wider = (usize, usize, Range);

/// An axis of a buffer whose indices are taken modulo its extent, in the statement at a place.
pub(super) type Wrap = (usize, Buffer, usize);

/// What happens if a guard goes.
#[derive(Default)]
pub(super) struct More {
    pub added: Vec<Added>,
    pub wider: Vec<Wider>,
    pub wraps: Vec<Wrap>,
}

/// What is added if a guard goes, or with `opposite` if the other side of it runs everywhere. With
/// `wrap`, indices that would leave their range come back in at the other end.
///
/// # Errors
/// `Refused` with the reason why they may not be added.
pub(super) fn more(
    scop: &Scop,
    id: GuardId,
    opposite: bool,
    stmts: &[usize],
    wrap: bool,
) -> Result<More> {
    match scop.text.get(id.place).map(Stmt::kind) {
        Some(StmtKind::If { cond, otherwise: Some(other), .. }) if opposite => {
            check_harmless(other, cond, scop)?
        }
        Some(StmtKind::If { cond, then, .. }) => check_harmless(then, cond, scop)?,
        Some(StmtKind::Store { value, .. }) => {
            check_harmless(&Stmt::new(StmtKind::Evaluate(value.clone())), &Expr::bool(true), scop)?;
        }
        Some(StmtKind::Block { predicate, block, .. }) => {
            block.init.iter().try_for_each(|s| check_harmless(s, predicate, scop))?;
            check_harmless(&block.body, predicate, scop)?;
        }
        _ => return Err(Error::internal("a guard that is none")),
    }
    let mut more = More::default();
    for k in stmts {
        let Some(stmt) = scop.stmts.get(*k) else { continue };
        let domain = scop.without(stmt, id, opposite);
        if domain.proves(&Expr::bool(false)) {
            continue;
        }
        if let Act::Enter(values) = &stmt.act {
            widen(scop, stmt, values, &domain, &mut more.wider)?;
        }
        for t in &stmt.accesses {
            for (axis, proof) in ranges(scop, &domain, t) {
                let stores = matches!(
                    scop.text.get(stmt.place).map(Stmt::kind),
                    Some(StmtKind::Store { .. })
                );
                if wrap && stores {
                    more.wraps.push((stmt.place, t.buffer.clone(), axis))
                } else {
                    return Err(out_of_range(scop, t, proof));
                }
            }
        }
        more.added.push(Added { stmt: *k, what: ScopStmt { domain, ..stmt.clone() } });
    }
    for a in &mut more.added {
        a.wrap(scop, &more.wraps);
    }
    more.added.iter().try_for_each(|a| check_parallel(scop, a, &more.added))?;
    Ok(more)
}

fn check_harmless(s: &Stmt, cond: &Expr, scop: &Scop) -> Result<()> {
    let mut harmless = Harmless { scop, why: None };
    if cond.effects().calls {
        harmless.refuse("the condition has an effect");
    }
    harmless.stmt(s);
    harmless.why.map_or(Ok(()), |why| Err(Error::refused(why)))
}

impl Added {
    /// Takes indices modulo the extents of their axes.
    fn wrap(&mut self, scop: &Scop, wraps: &[Wrap]) {
        let here = self.what.place;
        for (_, buffer, axis) in wraps.iter().filter(|(place, ..)| *place == here) {
            for t in self.what.accesses.iter_mut().filter(|t| t.buffer == *buffer) {
                let at = scop.lifetime(buffer) + axis;
                if let Some(i) = t.indices.get_mut(at) {
                    *i = modulo(i, buffer, *axis);
                }
            }
        }
        if let Act::Store(value) = &mut self.what.act {
            *value = Wrapped { place: here, wraps }.expr(value);
        }
    }
}

/// An index modulo the extent of its axis.
fn modulo(index: &Expr, buffer: &Buffer, axis: usize) -> Expr {
    match buffer.shape.get(axis) {
        Some(extent) => index.clone().floormod(extent.clone().cast(index.dtype())),
        None => index.clone(),
    }
}

/// Takes indices in the text modulo the extents of their axes.
pub(super) struct Wrapped<'a> {
    /// The statement.
    pub place: usize,
    /// What is to be changed.
    pub wraps: &'a [Wrap],
}

impl Wrapped<'_> {
    fn indices(&self, buffer: &Buffer, indices: &[Expr]) -> Vec<Expr> {
        let each = indices.iter().enumerate();
        each.map(|(k, i)| if self.is_asked(k, buffer) { modulo(i, buffer, k) } else { i.clone() })
            .collect()
    }

    fn is_asked(&self, axis: usize, buffer: &Buffer) -> bool {
        self.wraps.iter().any(|(p, b, k)| *p == self.place && b == buffer && *k == axis)
    }
}

impl Fold for Wrapped<'_> {
    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let inside: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
        Some((b.clone(), self.indices(b, &inside)))
    }
}

/// The axes on which an access is not known to stay in range.
fn ranges(scop: &Scop, domain: &Domain, t: &Access) -> Vec<(usize, Proof)> {
    let indices = t.indices.iter().skip(scop.lifetime(&t.buffer));
    let each = indices.zip(&t.buffer.shape).enumerate().map(|(axis, (i, extent))| {
        let low = i.clone().greater_equal(0);
        let high = i.clone().less(extent.clone().cast(i.dtype()));
        (axis, domain.prove(&low.and(high)))
    });
    each.filter(|(_, proof)| !proof.is_yes()).collect()
}

fn out_of_range(scop: &Scop, t: &Access, proof: Proof) -> Error {
    let name = &t.buffer.name;
    let (what, note) = match proof {
        Proof::No { witness } => {
            let cell = cell(scop, t, &witness);
            (
                format!("`{name}` would be accessed out of range"),
                format!("at {witness}: {cell} is out of range"),
            )
        }
        proof => (
            format!("it is not known that accesses of `{name}` would stay in range"),
            proof.to_string(),
        ),
    };
    Error::refused(what)
        .note(note)
        .help("`wrap_indices` takes such indices modulo the extent, where that helps")
}

/// The domains of iteration variables that have to grow for the values they would get.
fn widen(
    scop: &Scop,
    stmt: &ScopStmt,
    values: &[Expr],
    domain: &Domain,
    wider: &mut Vec<Wider>,
) -> Result<()> {
    let Some(StmtKind::Block { block, .. }) = scop.text.get(stmt.place).map(Stmt::kind) else {
        return Err(Error::internal("an entry without a block"));
    };
    for (number, (iter, value)) in block.iters.iter().zip(values).enumerate() {
        let Range { min, extent } = &iter.domain;
        let end = min.clone() + extent;
        let low = value.clone().greater_equal(min.clone().cast(value.dtype()));
        let high = value.clone().less(end.cast(value.dtype()));
        if domain.proves(&low.and(high)) {
            continue;
        }
        let bounds = domain.bounds(value).ok();
        let (Some((Some(lo), Some(hi))), Some(min), Some(extent)) =
            (bounds, min.as_int(), extent.as_int())
        else {
            let range = open_range(domain, stmt, value, &iter.domain, iter.var.dtype());
            wider.push((stmt.place, number, range.ok_or_else(|| leaves_range(iter, block))?));
            continue;
        };
        // The initialisation depends on the first value of a reduction.
        if lo < min && iter.kind == IterKind::Reduce {
            return Err(leaves_range(iter, block));
        }
        let end = (hi.checked_add(1)).and_then(|hi| Some(hi.max(min.checked_add(extent)?)));
        let range = end.and_then(|end| Range::between(lo.min(min), end, iter.var.dtype()));
        wider.push((stmt.place, number, range.ok_or_else(|| leaves_range(iter, block))?));
    }
    Ok(())
}

fn leaves_range(iter: &IterVar, block: &Block) -> Error {
    let (block, var) = (&block.name, iter.var.name());
    Error::refused(format!("the variable `{var}` of block `{block}` would leave its range"))
}

/// The values of a variable with those that it would get as well, where its range is open: behind its end, as far
/// as sizes say (`0..(n + 7) // 8 * 8` for `0..n`). `None` where some would be before it.
fn open_range(
    domain: &Domain,
    stmt: &ScopStmt,
    value: &Expr,
    old: &Range,
    dtype: DType,
) -> Option<Range> {
    let min = old.min.clone().cast(value.dtype());
    let extent = old.extent.clone().cast(value.dtype());
    if !domain.proves(&value.clone().greater_equal(min.clone())) {
        return None;
    }
    let sizes = domain.engine().domain();
    let padded = end_of(domain, value, &min, &sizes)?;
    // What the loops give holds for sizes that leave nothing to add, too.
    let loops: Vec<(Var, Range)> =
        stmt.loops.iter().map(|l| (l.var.clone(), l.range.clone())).collect();
    let whole =
        end_of(&domain.engine().domain_of(&loops, &[]), value, &min, &sizes).filter(|whole| {
            domain.proves(&whole.clone().greater_equal(padded.clone()))
                && sizes.proves(&whole.clone().greater_equal(extent.clone()))
        });
    if let Some(extent) = whole {
        return Some(Range { min: old.min.clone(), extent: extent.cast(dtype) });
    }
    let grows = domain.proves(&padded.clone().greater_equal(extent.clone()));
    let extent = if grows { padded } else { padded.max(extent) };
    Some(Range { min: old.min.clone(), extent: extent.cast(dtype) })
}

fn end_of(of: &Domain, value: &Expr, min: &Expr, sizes: &Domain) -> Option<Expr> {
    let last = of.tight_bounds(&(value.clone() - min), &[]).ok()?.max;
    Some(sizes.simplify(&(last + 1)))
}

/// Whether added instances leave the iterations of the parallel loops around them independent.
fn check_parallel(scop: &Scop, added: &Added, list: &[Added]) -> Result<()> {
    let stmt = &added.what;
    for (depth, l) in stmt.loops.iter().enumerate() {
        if matches!(l.kind, ForKind::Serial | ForKind::Unrolled) {
            continue;
        }
        let new = list.iter().map(|a| &a.what);
        for other in scop
            .stmts
            .iter()
            .filter(|s| s.loops.get(depth).is_some_and(|x| x.var == l.var))
            .chain(new)
        {
            for t in &stmt.accesses {
                for u in other
                    .accesses
                    .iter()
                    .filter(|u| u.buffer.data == t.buffer.data && (t.is_write || u.is_write))
                {
                    let inner: Vec<_> =
                        other.loops.iter().skip(depth).map(|l| l.var.clone()).collect();
                    let (far, names) =
                        AccessRelation::new(&other.domain, &u.indices).elsewhere_in(&inner);
                    let Some(there) = names.get(&l.var) else { continue };
                    let differ = l.var.expr().not_equal(there.expr());
                    let proof =
                        AccessRelation::new(&stmt.domain, &t.indices).independent(&far, &[differ]);
                    if proof.is_yes() {
                        continue;
                    }
                    let e = Error::refused(format!(
                        "iterations of the parallel loop `{}` would touch one cell of `{}`",
                        l.var.name(),
                        t.buffer.name
                    ));
                    return Err(e.note(match proof {
                        Proof::No { witness } => {
                            format!("at {witness}: {}", cell(scop, t, &witness))
                        }
                        proof => proof.to_string(),
                    }));
                }
            }
        }
    }
    Ok(())
}

/// Looks for what may not run more often than it does.
struct Harmless<'a> {
    scop: &'a Scop,
    why: Option<String>,
}

impl Harmless<'_> {
    fn refuse(&mut self, why: &str) {
        self.why.get_or_insert_with(|| why.to_owned());
    }
}

impl Visit for Harmless<'_> {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Assume(_) => self.refuse("an assumption stands under it"),
            StmtKind::Assert { .. } => self.refuse("an assertion stands under it"),
            _ => {}
        }
        walk_stmt(self, s);
    }

    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Call(CallTarget::Extern(name) | CallTarget::Opaque(name), _) => {
                self.refuse(&format!("`{name}`, which may do anything, is called under it"));
            }
            _ => {
                if let Some(demand) = demand(e) {
                    self.refuse(&format!("what stands under it {demand}"));
                }
            }
        }
        walk_expr(self, e);
    }

    fn buffer_use(&mut self, b: &Buffer) {
        if !self.scop.follows(b) {
            self.refuse(&format!("`{}` is accessed in more than one way", b.name));
        }
    }
}
