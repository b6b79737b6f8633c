//! What statements do to one buffer: whether they read or write it, and which cells.
//!
//! Two views. [`touches`] says whether a statement may read or write a buffer at all, declared
//! regions and pointers included. [`Footprint`] lists every access with the loops and conditions
//! around it, from which the set engine answers whether a box is written as a whole, or holds
//! everything that is read.
//!
//! What a block does through a pointer cannot be seen; its declared regions are taken at their
//! word there.

use crate::regions::declared_or_inferred;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Fold, Subst, walk_block, walk_expr};
use tilewright_ir::{
    Block, Buffer, Error, Expr, ExprKind, Range, Region, Result, Stmt, StmtKind, Var, Visit,
};
use tilewright_polyhedral::place::{Around, Placed, walk_expr_placed, walk_stmt_placed};
use tilewright_polyhedral::{AccessRelation, Domain, Engine, Known, Proof, Set};

/// Whether a statement may read, and whether it may write the buffer.
pub fn touches(s: &Stmt, buffer: &Buffer) -> (bool, bool) {
    struct Uses<'a> {
        buffer: &'a Buffer,
        reads: bool,
        writes: bool,
        declared: bool,
    }
    impl Visit for Uses<'_> {
        fn expr(&mut self, e: &Expr) {
            // A pointer that leaves the sight of declared regions may do anything.
            if e.as_var() == Some(&self.buffer.data) && !self.declared {
                self.reads = true;
                self.writes = true;
            }
            walk_expr(self, e);
        }
        fn access(&mut self, b: &Buffer, _: &[Expr], write: bool) {
            *(if write { &mut self.writes } else { &mut self.reads }) |= b == self.buffer;
        }
        fn block(&mut self, b: &Block) {
            self.reads |= self.names_buffer(&b.reads);
            self.writes |= self.names_buffer(&b.writes);
            let viewed = b.matches.iter().any(|m| m.source.buffer == *self.buffer);
            if viewed && (b.reads.is_none() || b.writes.is_none()) {
                self.reads = true;
                self.writes = true;
            }
            let before = self.declared;
            self.declared |= b.reads.is_some() && b.writes.is_some();
            b.init.iter().for_each(|s| self.stmt(s));
            self.stmt(&b.body);
            self.declared = before;
        }
    }

    impl Uses<'_> {
        fn names_buffer(&self, list: &Option<Vec<Region>>) -> bool {
            list.as_ref().is_some_and(|l| l.iter().any(|r| r.buffer == *self.buffer))
        }
    }
    let mut t = Uses { buffer, reads: false, writes: false, declared: false };
    t.stmt(s);
    (t.reads, t.writes)
}

/// A store to the buffer, or a block that declares to write it.
pub fn is_writer(s: &Stmt, buffer: &Buffer) -> bool {
    match s.kind() {
        StmtKind::Store { buffer: b, .. } => b == buffer,
        StmtKind::Block { .. } | StmtKind::Evaluate(_) => touches(s, buffer).1,
        _ => false,
    }
}

/// Whether the pointer of the buffer, or a view of it other than by blocks, is used in a
/// statement.
pub fn uses_pointer(s: &Stmt, buffer: &Buffer) -> bool {
    struct Pointer<'a>(&'a Buffer, bool);
    impl Visit for Pointer<'_> {
        fn expr(&mut self, e: &Expr) {
            self.1 |= e.as_var() == Some(&self.0.data);
            walk_expr(self, e);
        }
        fn buffer_def(&mut self, b: &Buffer) {
            self.1 |= b != self.0 && b.data == self.0.data;
        }
        fn buffer_use(&mut self, b: &Buffer) {
            self.1 |= b != self.0 && b.data == self.0.data;
        }
    }
    let mut p = Pointer(buffer, false);
    p.stmt(s);
    p.1
}

/// Whether a statement accesses the buffer by indices alone: nothing uses its pointer, and nothing has
/// a view of it.
pub fn by_indices_alone(s: &Stmt, buffer: &Buffer) -> bool {
    struct Views<'a>(&'a Buffer, bool);
    impl Visit for Views<'_> {
        fn block(&mut self, b: &Block) {
            self.1 |= b.matches.iter().any(|m| m.source.buffer == *self.0);
            walk_block(self, b);
        }
    }
    let mut views = Views(buffer, false);
    views.stmt(s);
    !views.1 && !uses_pointer(s, buffer)
}

/// Another buffer of the function over the same memory, as declared with `data=`.
pub fn view_of(s: &Stmt, buffer: &Buffer) -> Option<Buffer> {
    struct View<'a>(&'a Buffer, Option<Buffer>);
    impl Visit for View<'_> {
        fn buffer_use(&mut self, b: &Buffer) {
            if b != self.0 && b.data == self.0.data {
                self.1 = Some(b.clone());
            }
        }
    }
    let mut v = View(buffer, None);
    v.stmt(s);
    v.1
}

/// One access with what is around it.
#[derive(Clone)]
pub struct Cells {
    /// Loops, outermost first; a box that is accessed as a whole has a variable for each axis.
    pub vars: Vec<(Var, Range)>,
    /// Conditions under which it runs.
    pub guards: Vec<Expr>,
    /// One index an axis.
    pub indices: Vec<Expr>,
}

impl Cells {
    /// The points at which it runs, where all that is known holds.
    pub fn domain(&self, engine: &Engine, known: &[Expr]) -> Domain {
        let guards: Vec<Expr> = self.guards.iter().chain(known).cloned().collect();
        engine.domain_of(&self.vars, &guards)
    }

    /// The cells, over one variable an axis.
    fn touched(&self, engine: &Engine, known: &[Expr], cells: &[Var]) -> Known<Set> {
        AccessRelation::new(&self.domain(engine, known), &self.indices).touched(cells)
    }
}

/// The accesses of a buffer in a statement; variables that are defined outside stay free.
#[derive(Default)]
pub struct Footprint {
    /// What is read, accumulators of blocks with an initialisation excepted.
    pub reads: Vec<Cells>,
    /// What is written.
    pub writes: Vec<Cells>,
}

impl Footprint {
    /// The accesses of `buffer` in `s`.
    pub fn collect(s: &Stmt, buffer: &Buffer) -> Footprint {
        let at = Around::default();
        let mut c = Collect { buffer, at, accumulator: false, out: Footprint::default() };
        c.stmt(s);
        c.out
    }
}

struct Collect<'a> {
    buffer: &'a Buffer,
    at: Around,
    /// Loads of the buffer are of an accumulator.
    accumulator: bool,
    out: Footprint,
}

impl Collect<'_> {
    fn cells(&mut self, indices: &[Expr]) -> Cells {
        let indices = self.at.exprs(indices);
        Cells { vars: self.at.loops.clone(), guards: self.at.guards.clone(), indices }
    }

    fn boxed(&mut self, region: &Region) -> Cells {
        let mut vars = self.at.loops.clone();
        let mut indices = Vec::new();
        for r in &region.ranges {
            let range = Range { min: self.at.expr(&r.min), extent: self.at.expr(&r.extent) };
            if range.is_point() {
                indices.push(range.min);
                continue;
            }
            let v = Var::new("c", range.min.dtype());
            indices.push(v.expr());
            vars.push((v, range));
        }
        Cells { vars, guards: self.at.guards.clone(), indices }
    }

    fn regions_of_buffer(&self, list: &[Region], seen: &[Buffer]) -> Vec<Region> {
        list.iter()
            .filter(|r| r.buffer == *self.buffer && !seen.contains(&r.buffer))
            .cloned()
            .collect()
    }
}

impl Visit for Collect<'_> {
    fn expr(&mut self, e: &Expr) {
        walk_expr_placed(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        walk_stmt_placed(self, s);
    }

    fn access(&mut self, b: &Buffer, indices: &[Expr], write: bool) {
        if b == self.buffer && (write || !self.accumulator) {
            let cells = self.cells(indices);
            if write { &mut self.out.writes } else { &mut self.out.reads }.push(cells);
        }
    }
}

impl Placed for Collect<'_> {
    type At = Around;

    fn at(&mut self) -> &mut Around {
        &mut self.at
    }

    fn inside(&mut self, block: &Block) {
        let (loads, stores) = tilewright_ir::visit::accessed(&block.body);
        let (reads, writes) = declared_or_inferred(block);
        let boxes = self
            .regions_of_buffer(&reads, &loads)
            .iter()
            .map(|r| self.boxed(r))
            .collect::<Vec<_>>();
        self.out.reads.extend(boxes);
        let boxes = self
            .regions_of_buffer(&writes, &stores)
            .iter()
            .map(|r| self.boxed(r))
            .collect::<Vec<_>>();
        self.out.writes.extend(boxes);
        let accumulates = block.init.is_some() && !reads.iter().any(|r| r.buffer == *self.buffer);
        let before = self.accumulator;
        self.accumulator |= accumulates;
        self.stmt(&block.body);
        self.accumulator = before;
    }
}

/// What is known where a statement runs: the values of loops and of iteration variables around
/// it, and the conditions.
pub fn known_around(around: &[Stmt]) -> Vec<Expr> {
    let mut known = Vec::new();
    for s in around {
        match s.kind() {
            StmtKind::For { var, range, .. } => known.extend(in_range(var, range)),
            StmtKind::Block { block, .. } => {
                known.extend(block.iters.iter().flat_map(|i| in_range(&i.var, &i.domain)));
            }
            _ => {}
        }
    }
    known
}

/// That a variable has a value of a range.
pub fn in_range(v: &Var, r: &Range) -> [Expr; 2] {
    let end = (r.min.clone() + &r.extent).cast(v.dtype());
    [v.expr().greater_equal(r.min.clone().cast(v.dtype())), v.expr().less(end)]
}

/// Whether the accesses touch every cell of a box, whatever the variables outside are.
///
/// # Errors
/// `Refused` where they do not, with a cell that is left out, or where it is not known, with the
/// reason.
pub fn cover(cells: &[Cells], region: &Region, known: &[Expr]) -> Result<()> {
    if cells.iter().any(|c| plainly_covers(c, region)) {
        return Ok(());
    }
    let engine = Engine::new();
    let vars: Vec<Var> = region.ranges.iter().map(|r| Var::new("cell", r.min.dtype())).collect();
    let ranges: Vec<(Var, Range)> =
        vars.iter().cloned().zip(region.ranges.iter().cloned()).collect();
    let wanted = engine.domain_of(&ranges, known).to_set()?;
    let name = &region.buffer.name;
    let Some(all) = Set::union_of(cells.iter().map(|c| c.touched(&engine, known, &vars)))? else {
        return Err(Error::refused(format!("`{name}` is not accessed")));
    };
    match wanted.is_subset(&all) {
        Proof::Yes => Ok(()),
        Proof::No { witness } => {
            let at: Vec<String> = vars
                .iter()
                .map(|v| witness.get(v).map_or_else(|| "?".to_owned(), |x| x.to_string()))
                .collect();
            Err(Error::refused(format!("`{name}[{}]` is left out", at.join(", "))))
        }
        Proof::Unknown(why) => Err(Error::from(why)
            .context(format!("it is not known whether all of `{name}` in question is accessed"))),
    }
}

/// Whether a statement reads of the buffer only what it has written itself before.
///
/// # Errors
/// `Refused` with a cell that it reads first, or with the reason why it is not known.
pub fn reads_own_writes(s: &Stmt, buffer: &Buffer, known: &[Expr]) -> Result<()> {
    follows_writes(s, buffer, known, fed)
}

/// [`reads_own_writes`] as far as it is seen without sets: what is read was written by the same index, in loops
/// over the same ranges.
pub fn plainly_reads_own_writes(s: &Stmt, buffer: &Buffer) -> bool {
    follows_writes(s, buffer, &[], |_, reads, writes, _| plainly_fed(reads, writes)).is_ok()
}

/// Whether a statement reads only what it has written before, where it is given what is fed by writes.
fn follows_writes(
    s: &Stmt,
    buffer: &Buffer,
    known: &[Expr],
    fed: fn(&Buffer, &[Cells], &[Cells], &[Expr]) -> bool,
) -> Result<()> {
    if Footprint::collect(s, buffer).reads.is_empty() {
        return Ok(());
    }
    // What a statement evaluates before the statements inside of it.
    let evaluated: Vec<&Expr> = match s.kind() {
        StmtKind::For { range, .. } => vec![&range.min, &range.extent],
        StmtKind::If { cond, .. } => vec![cond],
        StmtKind::Let { value, .. } => vec![value],
        StmtKind::Block { bindings, predicate, .. } => bindings.iter().chain([predicate]).collect(),
        _ => Vec::new(),
    };
    if evaluated.iter().any(|e| e.loads_from(|b| b.data == buffer.data)) {
        return read_before_written(buffer, s);
    }
    let deeper = |inside: &Stmt, known: &[Expr]| follows_writes(inside, buffer, known, fed);
    match s.kind() {
        StmtKind::Seq(list) => {
            let mut written: Vec<Cells> = Vec::new();
            for s in list {
                let own = Footprint::collect(s, buffer);
                if !fed(buffer, &own.reads, &written, known) {
                    deeper(s, known)?;
                }
                written.extend(own.writes);
            }
            Ok(())
        }
        StmtKind::For { body, .. } => deeper(body, &known_with(s, known)),
        StmtKind::Block { block, .. }
            if block.matches.iter().all(|m| m.source.buffer != *buffer) =>
        {
            deeper(&block.body, &known_with(s, known))
        }
        StmtKind::If { then, otherwise, .. } => {
            deeper(then, known)?;
            otherwise.iter().try_for_each(|o| deeper(o, known))
        }
        _ => s.body().map_or_else(|| read_before_written(buffer, s), |body| deeper(body, known)),
    }
}

fn read_before_written(buffer: &Buffer, s: &Stmt) -> Result<()> {
    let what = format!("`{}` is read before all that is read is written", buffer.name);
    Err(Error::refused(what).at(s.span()))
}

fn known_with(more: &Stmt, known: &[Expr]) -> Vec<Expr> {
    [known, &known_around(std::slice::from_ref(more))].concat()
}

/// Whether all that is read was written; what is not known counts as a no.
pub fn fed(buffer: &Buffer, reads: &[Cells], writes: &[Cells], known: &[Expr]) -> bool {
    if plainly_fed(reads, writes) {
        return true;
    }
    let engine = Engine::new();
    let vars: Vec<Var> = buffer.shape.iter().map(|e| Var::new("cell", e.dtype())).collect();
    let Ok(Some(all)) = Set::union_of(writes.iter().map(|c| c.touched(&engine, known, &vars)))
    else {
        return false;
    };
    reads.iter().all(|r| r.touched(&engine, known, &vars).is_ok_and(|cells| cells.is_within(&all)))
}

/// Whether each read has a write by the same index, in loops over the same ranges or more.
fn plainly_fed(reads: &[Cells], writes: &[Cells]) -> bool {
    reads.iter().all(|r| writes.iter().any(|w| plainly_feeds(w, r)))
}

/// Whether a write touches each cell that a read does, by putting expressions of the read in the place of the
/// write's loops: these run through those values, under conditions that the read has too.
fn plainly_feeds(w: &Cells, r: &Cells) -> bool {
    let mut found: Vec<(Var, Expr)> = Vec::new();
    let matched = w.indices.len() == r.indices.len()
        && w.indices.iter().zip(&r.indices).all(|(a, b)| unify(a, b, &w.vars, &mut found));
    if !matched {
        return false;
    }
    // A loop of the write that no index names may have the name of another loop around the read.
    let is_left = |e: &Expr| {
        w.vars.iter().any(|(v, _)| e.mentions(v) && found.iter().all(|(own, _)| own != v))
    };
    let bounds = w.vars.iter().flat_map(|(_, range)| [&range.min, &range.extent]);
    if bounds.chain(&w.guards).any(is_left) {
        return false;
    }
    let mut given = Subst::vars(found.iter().cloned());
    let ranges = w.vars.iter().all(|(v, range)| {
        let (min, extent) = (given.expr(&range.min), given.expr(&range.extent));
        match found.iter().find(|(own, _)| own == v) {
            Some((_, value)) => runs_through(&min, &extent, value, r),
            // A loop that does not run writes nothing.
            None => extent.as_int().is_some_and(|n| n > 0),
        }
    });
    let guards = r.guards.iter().flat_map(Expr::conjuncts).collect::<Vec<_>>();
    ranges
        && w.guards.iter().flat_map(Expr::conjuncts).all(|guard| {
            let guard = given.expr(&guard);
            guard.effects().constant() && guards.iter().any(|own| same_expr(own, &guard))
        })
}

/// Makes an index of a write that of a read by what is put in the place of loops.
fn unify(w: &Expr, r: &Expr, loops: &[(Var, Range)], found: &mut Vec<(Var, Expr)>) -> bool {
    if let Some(v) = w.as_var().filter(|v| loops.iter().any(|(own, _)| own == *v)) {
        return match found.iter().find(|(own, _)| own == v) {
            Some((_, value)) => same_expr(value, r),
            None => {
                found.push((v.clone(), r.clone()));
                r.effects().constant() && v.dtype() == r.dtype()
            }
        };
    }
    match (w.kind(), r.kind()) {
        (ExprKind::Binary(op, a, b), ExprKind::Binary(other, x, y)) if op == other => {
            unify(a, x, loops, found) && unify(b, y, loops, found)
        }
        (ExprKind::Cast(a), ExprKind::Cast(x)) if w.dtype() == r.dtype() => {
            a.dtype() == x.dtype() && unify(a, x, loops, found)
        }
        _ => w.effects().constant() && same_expr(w, r),
    }
}

/// Whether a range has every value of an expression, which is a loop of the access or a number.
fn runs_through(min: &Expr, extent: &Expr, value: &Expr, access: &Cells) -> bool {
    if !min.effects().constant() || !extent.effects().constant() {
        return false;
    }
    let ends = min.as_int().zip(extent.as_int());
    let within = |first: i64, count: i64| {
        ends.is_some_and(|(min, extent)| {
            min <= first && first.saturating_add(count) <= min.saturating_add(extent)
        })
    };
    if let Some(number) = value.as_int() {
        return within(number, 1);
    }
    let own = access.vars.iter().find(|(v, _)| value.as_var() == Some(v));
    own.is_some_and(|(_, range)| {
        same_expr(&range.min, min) && same_expr(&range.extent, extent)
            || range.min.as_int().zip(range.extent.as_int()).is_some_and(|(a, n)| within(a, n))
    })
}

/// Whether every access lies in a box, whatever the variables outside are. What is not known
/// counts as a no; an access is taken to lie in its buffer.
pub fn within(cells: &[Cells], region: &Region, known: &[Expr]) -> bool {
    if cells.iter().all(|c| is_simply_within(c, region)) {
        return true;
    }
    let engine = Engine::new();
    cells.iter().all(|c| {
        let d = c.domain(&engine, known);
        c.indices.iter().zip(&region.ranges).all(|(i, r)| {
            let i = i.clone().cast(r.min.dtype());
            let end = r.min.clone() + &r.extent.clone().cast(r.min.dtype());
            d.proves(&i.clone().greater_equal(&r.min)) && d.proves(&i.less(end))
        })
    })
}

fn is_simply_within(c: &Cells, region: &Region) -> bool {
    c.indices.iter().zip(&region.ranges).zip(&region.buffer.shape).all(|((i, r), extent)| {
        let whole = r.min.as_int() == Some(0) && same_expr(&r.extent, extent);
        whole || r.is_point() && same_expr(i, &r.min)
    })
}

/// Whether an access is a loop for each axis over exactly the range, without conditions.
fn plainly_covers(c: &Cells, region: &Region) -> bool {
    let mut used: Vec<&Var> = Vec::new();
    c.guards.is_empty()
        && c.indices.len() == region.ranges.len()
        && c.indices.iter().zip(&region.ranges).all(|(i, r)| {
            if r.is_point() && same_expr(i, &r.min) {
                return true;
            }
            let Some(v) = i.as_var() else { return false };
            let fresh = !used.contains(&v);
            used.push(v);
            fresh
                && c.vars.iter().any(|(x, range)| {
                    x == v && plainly_equal(&range.min, &r.min) && plainly_equal(&range.extent, &r.extent)
                })
        })
        // A loop that does not run touches nothing.
        && c.vars.iter().all(|(v, r)| {
            used.contains(&v) || r.extent.as_int().is_some_and(|n| n > 0)
        })
}

fn plainly_equal(a: &Expr, b: &Expr) -> bool {
    same_expr(a, b) || (a.as_int().is_some() && a.as_int() == b.as_int())
}
