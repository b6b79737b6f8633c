//! Guards of which none is inside another, and what happens without them.
//!
//! All guards of one depth are tried at once, the innermost ones first: one flow for each memory
//! that they write, with the added instances in it, shows what leaks out of them. A guard that
//! leaks is put back, and only the memories that it touched are looked at again. The second and
//! third reason rest on reads; that nothing added changes what these see is part of the question.
//! Much is known before: that a later stage overwrites all of what an added store writes, or that
//! other memory makes its value neutral. The flow of sums through their cells costs most, and is
//! looked at only for what is left.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::visit::fold_stmt_children;
use tilewright_ir::{
    Block, Buffer, DType, Error, Expr, Range, Region, Remarks, Result, Stmt, StmtKind, TensorFunc,
    Var,
};
use tilewright_polyhedral::{Access, AccessRelation, Domain, Known, Unknown, is_before};

use super::added::{Added, Wider, Wrap, Wrapped, between, more};
use tilewright_analysis::neutral::Floats;

use super::guard::{Guard, OvercomputeOptions, guards};
use super::unchanged::{Knowledge, Read};
use tilewright_analysis::regions::{infer, same_region};
use tilewright_polyhedral::flow::{MemoryFlow, Run, Unwritten, Who};
use tilewright_polyhedral::scop::{Act, GuardId, Scop, ScopStmt, rewrite};

/// The instances that a statement has more without its guard.
pub(super) struct Extra {
    guard: GuardId,
    pub added: Added,
    /// The points at which it changes what it writes, if it is a store.
    pub writes: Option<Domain>,
    /// The reads that a later use depends on, by access; `None` is the cell that it writes.
    pub depended_on: HashSet<Option<usize>>,
    /// Whether it is known which points change nothing.
    pub judged: bool,
    /// Whether it would change nothing if all floats were finite.
    if_finite: bool,
}

impl Extra {
    /// Nothing is known of them yet.
    pub fn new(guard: GuardId, added: Added) -> Extra {
        let is_store = matches!(added.what.act, Act::Store(_));
        let writes = is_store.then(|| added.what.domain.clone());
        Extra { guard, writes, depended_on: HashSet::new(), judged: false, if_finite: false, added }
    }
}

/// Why added instances are not allowed, by statements.
pub(super) type Leaks<'a> = BTreeMap<usize, Leak<'a>>;

/// Why instances may not be added.
pub(super) struct Leak<'a> {
    error: Error,
    /// The edge of a flow by which a read sees what they write.
    seen: Option<(Rc<MemoryFlow<'a>>, usize)>,
}

impl Leak<'_> {
    /// The reason, with what is seen where.
    fn why(self) -> Error {
        let note = self.seen.and_then(|(t, e)| t.witness(t.flow.edges.get(e)?));
        note.into_iter().fold(self.error, Error::note)
    }
}

/// Whether all cells that an added store writes are written again before anybody else looks, as far
/// as that shows without a flow: by what runs after all of the store, and before all such readers.
fn is_overwritten(x: &Extra, runs: &[Run]) -> Known<bool> {
    let (stmt, Some(domain)) = (&x.added.what, &x.writes) else { return Ok(true) };
    let Some(cell) = stmt.target() else { return Ok(true) };
    let axes: Vec<Var> = (0..cell.indices.len()).map(|k| Var::index(format!("c{k}"))).collect();
    let readers: Vec<&Run> = runs
        .iter()
        .filter(|r| r.statement.accesses.iter().any(|t| !t.is_write))
        .filter(|r| !is_before(&r.statement.schedule, &stmt.schedule))
        .collect();
    let mut rest = AccessRelation::new(domain, &cell.indices).touched(&axes)?;
    for w in runs.iter().filter(|r| !matches!(r.who, Who::Added(_))).map(|r| &r.statement) {
        let between = is_before(&stmt.schedule, &w.schedule)
            && readers.iter().all(|r| is_before(&w.schedule, &r.statement.schedule));
        for t in w.accesses.iter().filter(|t| t.is_write && between) {
            let written = AccessRelation::new(&w.domain, &t.indices).touched(&axes)?;
            if written.is_exact() {
                rest = rest.subtract(&written)?;
                if rest.is_void() {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// The memory that a statement stores to.
fn stored(stmt: &ScopStmt) -> Option<&Var> {
    match stmt.act {
        Act::Store(_) => stmt.target().map(|t| &t.buffer.data),
        _ => None,
    }
}

/// Guards of which none is inside another, and what happens without them.
pub(super) struct Trial<'a> {
    pub(super) scop: &'a Scop,
    pub guards: BTreeMap<GuardId, Guard>,
    wider: Vec<(GuardId, Wider)>,
    wraps: Vec<(GuardId, Wrap)>,
    pub extras: BTreeMap<usize, Extra>,
    floats: Floats,
    pub remarks: Remarks,
}

impl<'a> Trial<'a> {
    pub fn empty(scop: &'a Scop) -> Trial<'a> {
        Trial {
            scop,
            guards: BTreeMap::new(),
            wider: Vec::new(),
            wraps: Vec::new(),
            extras: BTreeMap::new(),
            floats: Floats::Any,
            remarks: Remarks::new(),
        }
    }

    pub fn new(
        scop: &'a Scop,
        guards: impl Iterator<Item = (GuardId, Guard)>,
        options: &OvercomputeOptions<'_>,
    ) -> Trial<'a> {
        let mut trial = Trial { floats: options.floats, ..Trial::empty(scop) };
        for (id, guard) in guards {
            match more(scop, id, false, &guard.stmts, options.wrap_indices) {
                Err(e) => trial.remarks.push(stays(&guard, e)),
                Ok(more) => {
                    trial
                        .extras
                        .extend(more.added.into_iter().map(|a| (a.stmt, Extra::new(id, a))));
                    trial.wider.extend(more.wider.into_iter().map(|w| (id, w)));
                    trial.wraps.extend(more.wraps.into_iter().map(|w| (id, w)));
                    trial.guards.insert(id, guard);
                }
            }
        }
        trial
    }

    fn stmt(&self, k: usize) -> Option<&'a ScopStmt> {
        self.scop.stmts.get(k)
    }

    pub(super) fn stmt_of(&self, run: &Run) -> Option<&'a ScopStmt> {
        self.stmt(run.who.stmt()?)
    }

    /// Puts guards back until nothing leaks: first those whose values are used, then, if `reads`
    /// count, those under which something is read that may not be.
    pub fn settle(&mut self, reads: bool) {
        let suspects: Vec<usize> = self.suspects();
        self.judge(&suspects, false);
        let touched: HashSet<Buffer> = self.extras.keys().flat_map(|k| self.touched(*k)).collect();
        let (mut values, mut unread) = (touched.clone(), touched);
        while !values.is_empty() || (reads && !unread.is_empty()) {
            let mut found = Leaks::new();
            let by_value = !values.is_empty();
            let open = std::mem::take(if by_value { &mut values } else { &mut unread });
            for memory in self.scop.memories().into_iter().filter(|m| open.contains(*m)) {
                if by_value {
                    self.leaks(memory, &mut found)
                } else {
                    self.forbidden(memory, &mut found);
                    self.copies_of_nothing(memory, &mut found);
                }
            }
            let mut new: Vec<usize> = found.keys().copied().collect();
            new.retain(|k| by_value && !self.extras[k].judged);
            if self.judge(&new, true) {
                values = new.iter().flat_map(|k| self.touched(*k)).chain(open).collect();
                continue;
            }
            for (k, leak) in found {
                let Some(id) = self.extras.get(&k).map(|x| x.guard) else { continue };
                let why = Leak { error: self.hint(k, leak.error), ..leak }.why();
                let touched = self.put_back(id, why);
                values.extend(touched.iter().cloned());
                unread.extend(touched);
            }
        }
    }

    fn touched(&self, k: usize) -> Vec<Buffer> {
        let place = self.stmt(k).map(|s| s.place);
        let all = self.scop.stmts.iter().filter(|s| Some(s.place) == place);
        all.flat_map(|s| &s.accesses).map(|t| t.buffer.clone()).collect()
    }

    /// Leaves a guard where it is. The memories about which that makes a difference.
    fn put_back(&mut self, id: GuardId, why: Error) -> Vec<Buffer> {
        if let Some(guard) = self.guards.remove(&id) {
            self.remarks.push(stays(&guard, why));
        }
        let gone: Vec<usize> =
            self.extras.iter().filter(|(_, x)| x.guard == id).map(|(k, _)| *k).collect();
        let touched = gone.iter().flat_map(|k| self.touched(*k)).collect();
        for k in gone {
            self.extras.remove(&k);
        }
        touched
    }

    /// Finds out where stores change nothing, from what memory holds; from what their own cells
    /// hold, if asked. Whether that makes a difference.
    fn judge(&mut self, stores: &[usize], own: bool) -> bool {
        let places: HashSet<Option<usize>> =
            stores.iter().map(|k| self.stmt(*k).map(|s| s.place)).collect();
        let asked: Vec<&Added> = self
            .extras
            .iter()
            .filter(|(k, _)| places.contains(&self.stmt(**k).map(|s| s.place)))
            .map(|(_, x)| &x.added)
            .collect();
        let knowledge = Knowledge::of(self.scop);
        let mut found = Vec::new();
        for k in stores {
            let added = self.extras.get(k).map(|x| &x.added);
            let unchanged =
                |floats| added.and_then(|a| knowledge.unchanged(a, &asked, own, floats));
            let known = unchanged(self.floats);
            let if_finite = known.is_none() && unchanged(Floats::Finite).is_some();
            found.push((*k, known, if_finite));
        }
        let mut differs = false;
        for (k, unchanged, if_finite) in found {
            let Some(x) = self.extras.get_mut(&k) else { continue };
            x.judged |= own;
            x.if_finite |= if_finite;
            let Some(u) = unchanged else { continue };
            let rest = x.added.what.domain.to_set().and_then(|all| all.subtract(&u.points));
            let Ok(rest) = rest else { continue };
            x.writes = (!rest.is_void()).then(|| rest.domain());
            differs = true;
            self.depend_on(u.depends_on);
        }
        differs
    }

    /// Notes reads that a later use depends on.
    pub fn depend_on(&mut self, reads: Vec<Read>) {
        for (stmt, access) in reads {
            if let Some(x) = self.extras.get_mut(&stmt) {
                x.depended_on.insert(access);
            }
        }
    }

    /// What the program does to a memory, and what it reads that a result depends on. Reads that
    /// updates only pass on are left out, and so are permissions.
    fn readers(&self, memory: &Buffer) -> Vec<Run> {
        let stmts = self.scop.stmts.iter().enumerate();
        let stmts = stmts.filter(|(_, s)| !matches!(s.act, Act::Permit));
        let mut all: Vec<Run> = stmts
            .filter_map(|(k, s)| Some(Run::of(self.scop, k, memory)?.only(|t| !s.passes_on(t))))
            .collect();
        all.extend(MemoryFlow::end(self.scop, memory));
        let rests = self.added(memory, |x, access| x.depended_on.contains(&access));
        all.extend(rests.into_iter().map(|r| r.only(|t| !t.is_write)));
        all
    }

    /// The added stores to a memory that may be read before they are overwritten.
    fn seen(&self, memory: &Buffer, readers: &[Run]) -> Vec<usize> {
        let stores = self
            .extras
            .iter()
            .filter(|(_, x)| x.writes.is_some() && stored(&x.added.what) == Some(&memory.data));
        let seen = stores.filter(|(_, x)| !is_overwritten(x, readers).unwrap_or(false));
        seen.map(|(k, _)| *k).collect()
    }

    /// All such stores.
    fn suspects(&self) -> Vec<usize> {
        let memories = self.scop.memories().into_iter();
        memories.flat_map(|m| self.seen(m, &self.readers(m))).collect()
    }

    /// The added stores to a memory whose values are used by others.
    fn leaks(&self, memory: &Buffer, leaks: &mut Leaks<'a>) {
        let mut all = self.readers(memory);
        let seen = self.seen(memory, &all);
        if seen.is_empty() {
            return;
        }
        // A reader of an added store whose own result is not used does no harm.
        let writes = self.added(memory, |_, _| false).into_iter();
        all.extend(writes.filter(|r| r.who.stmt().is_some_and(|k| seen.contains(&k))));
        // What is over before any added store has nothing to do with where those go.
        let added: Vec<&ScopStmt> = seen.iter().filter_map(|k| self.stmt(*k)).collect();
        all.retain(|r| added.iter().any(|s| !is_before(&r.statement.schedule, &s.schedule)));
        match MemoryFlow::between(self.scop, all) {
            Ok(memory_flow) => self.used(memory, &Rc::new(memory_flow), leaks),
            Err(unknown) => self.all_leak(memory, unknown, leaks),
        }
    }

    /// The added reads of a memory where that is not permitted and nothing was written.
    fn forbidden(&self, memory: &Buffer, leaks: &mut Leaks<'a>) {
        let added = self.added(memory, |_, access| access.is_some()).into_iter();
        let added = added.map(|r| {
            let stmt = self.stmt_of(&r);
            r.only(|t| !(t.is_write && stmt.is_some_and(|s| s.updates(t))))
        });
        let added: Vec<Run> = added.collect();
        if added.iter().all(|r| r.statement.accesses.iter().all(|t| t.is_write)) {
            return;
        }
        // What the function was given is looked at only where its own stores do not say enough.
        let tries: &[bool] = match (self.scop.is_observed(memory), self.scop.changes(memory)) {
            (false, _) => &[false],
            (true, true) => &[false, true],
            (true, false) => &[true],
        };
        for given in tries.iter().copied() {
            let unwritten = self.defined(memory, given).and_then(|mut all| {
                all.extend(added.iter().cloned());
                Unwritten::of(self.scop, all)
            });
            match unwritten {
                Ok(u) if u.reads().next().is_none() => return,
                Ok(_) if Some(&given) != tries.last() => {}
                Ok(u) => return self.unwritten(memory, &u, leaks),
                Err(unknown) => return self.all_leak(memory, unknown, leaks),
            }
        }
    }

    /// After what a cell may be read: its writes, permissions, and, if asked, before all else what
    /// the program reads of memory as it found it, which shows that there is something.
    fn defined(&self, memory: &Buffer, given: bool) -> Known<Vec<Run>> {
        let scop = self.scop;
        let runs: Vec<Run> = Run::all(scop, memory).collect();
        let mut all: Vec<Run> = Vec::new();
        if given {
            all = Unwritten::of(scop, runs.clone())?.found()?;
        }
        all.extend(runs.into_iter().map(|r| {
            let stmt = self.stmt_of(&r);
            r.only(|t| t.is_write && (given || !stmt.is_some_and(|s| s.updates(t))))
        }));
        Ok(all)
    }

    /// The added stores that are used.
    fn used(&self, memory: &Buffer, memory_flow: &Rc<MemoryFlow<'a>>, leaks: &mut Leaks<'a>) {
        for (n, e) in memory_flow.flow.edges.iter().enumerate() {
            let Who::Added(k) = memory_flow.who(e.writer) else { continue };
            leaks.entry(k).or_insert_with(|| {
                let error = Error::refused(format!(
                    "what would be written to `{}` is used, and is not known to be what is there",
                    memory.name
                ));
                Leak { error, seen: Some((memory_flow.clone(), n)) }
            });
        }
    }

    /// The added reads of cells that are not written.
    pub(super) fn unwritten(&self, memory: &Buffer, unwritten: &Unwritten, leaks: &mut Leaks<'a>) {
        for (run, u) in unwritten.reads() {
            let Who::Added(k) = run.who else { continue };
            let name = &memory.name;
            let error = if self.scop.is_observed(memory) {
                Error::refused(format!("`{name}` would be read where it may hold nothing"))
                    .help(format!("`T.assume({name}[...] == T.undef())` permits reading cells"))
            } else {
                Error::refused(format!("`{name}` would be read where nothing has been written"))
            };
            let error = run.example(self.scop, u).into_iter().fold(error, Error::note);
            leaks.entry(k).or_insert(Leak { error, seen: None });
        }
    }

    /// What the user could say to let a store go.
    fn hint(&self, k: usize, error: Error) -> Error {
        if self.extras.get(&k).is_some_and(|x| x.if_finite) {
            error
                .note("zero times what is not finite is not zero")
                .help("if all values are finite numbers, say so: `finite`")
        } else {
            error
        }
    }

    /// Nothing is known of a memory.
    pub(super) fn all_leak(&self, memory: &Buffer, why: Unknown, leaks: &mut Leaks<'a>) {
        for k in self.extras.keys().filter(|k| self.touched(**k).contains(memory)) {
            let error = Error::refused(format!("the flow of `{}` is not known", memory.name));
            let error = error.note(why.to_string());
            leaks.entry(*k).or_insert(Leak { error, seen: None });
        }
    }

    /// What added instances do to a memory: the reads that are asked for, and what they really
    /// write.
    pub(super) fn added(
        &self,
        memory: &Buffer,
        asked: fn(&Extra, Option<usize>) -> bool,
    ) -> Vec<Run> {
        let each = self.extras.iter();
        each.flat_map(|(k, x)| self.added_by(*k, x, memory, asked)).collect()
    }

    fn added_by(
        &self,
        k: usize,
        x: &Extra,
        memory: &Buffer,
        asked: fn(&Extra, Option<usize>) -> bool,
    ) -> Vec<Run> {
        let stmt = &x.added.what;
        let run = Run::new(self.scop, Who::Added(k), stmt, memory).map(|run| run.looking(stmt));
        let reads =
            restricted_part(&stmt.domain, &|t, which| !t.is_write && asked(x, which), run.as_ref());
        let writes =
            x.writes.as_ref().and_then(|d| restricted_part(d, &|t, _| t.is_write, run.as_ref()));
        reads.into_iter().chain(writes).collect()
    }

    /// The function without the guards that are left.
    ///
    /// # Errors
    /// `Refused` where the type of an iteration variable does not hold the domain that it would
    /// have.
    pub fn without_guards(&self, func: &TensorFunc) -> Result<TensorFunc> {
        let wraps: Vec<Wrap> = self.left(&self.wraps).cloned().collect();
        let mut error = None;
        let mut edit = |place: usize, s: &Stmt| {
            let goes = self.guards.contains_key(&GuardId { place, part: 0 });
            match s.kind() {
                StmtKind::If { then, .. } if goes => Some(then.clone()),
                StmtKind::Block { bindings, predicate, block } => {
                    let predicate = if goes { Expr::bool(true) } else { predicate.clone() };
                    let block = self.widened(place, block).unwrap_or_else(|e| {
                        error = Some(e);
                        block.clone()
                    });
                    let bindings = bindings.clone();
                    Some(Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span()))
                }
                StmtKind::Store { .. } if wraps.iter().any(|(p, ..)| *p == place) => {
                    Some(fold_stmt_children(&mut Wrapped { place, wraps: &wraps }, s))
                }
                _ => None,
            }
        };
        let body = rewrite(&func.body, &mut edit);
        error.map_or_else(|| Ok(TensorFunc { body, ..func.clone() }), Err)
    }

    /// What belongs to guards that go.
    fn left<'b, T>(&self, list: &'b [(GuardId, T)]) -> impl Iterator<Item = &'b T> {
        list.iter().filter(|(id, _)| self.guards.contains_key(id)).map(|(_, what)| what)
    }

    /// The block with domains for all values of its variables, and regions for all it touches.
    fn widened(&self, place: usize, block: &Arc<Block>) -> Result<Arc<Block>> {
        let mut new = (**block).clone();
        for (_, number, range) in self.left(&self.wider).filter(|(p, ..)| *p == place) {
            if let Some(iter) = new.iters.get_mut(*number) {
                iter.domain = join(&iter.domain, range, iter.var.dtype())?;
            }
        }
        let declares = new.reads.is_some() || new.writes.is_some();
        if let Some(StmtKind::Block { block: old, .. }) = self.scop.text.get(place).map(Stmt::kind)
            && declares
        {
            let ((reads, writes), before) = (infer(&new), infer(old));
            if !same_regions(&reads, &before.0) || !same_regions(&writes, &before.1) {
                (new.reads, new.writes) = (new.reads.map(|_| reads), new.writes.map(|_| writes));
            }
        }
        Ok(Arc::new(new))
    }
}

fn restricted_part(
    domain: &Domain,
    keep: &dyn Fn(&Access, Option<usize>) -> bool,
    run: Option<&Run>,
) -> Option<Run> {
    let mut part = run?.clone().only_where(keep);
    part.statement.domain = domain.clone();
    (!part.accesses.is_empty()).then_some(part)
}

fn same_regions(a: &[Region], b: &[Region]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_region(a, b))
}

/// The smallest constant range around two.
fn join(a: &Range, b: &Range, dtype: DType) -> Result<Range> {
    match (constant_ends(a), constant_ends(b)) {
        (Some((lo, hi)), Some((start, end))) => between(lo.min(start), hi.max(end), dtype)
            .ok_or_else(|| Error::refused(format!("`{dtype}` does not hold {lo}..{end}"))),
        _ => Ok(b.clone()),
    }
}

fn constant_ends(r: &Range) -> Option<(i64, i64)> {
    Some((r.min.as_int()?, r.min.as_int()?.checked_add(r.extent.as_int()?)?))
}

/// The remark about a guard that stays.
fn stays(guard: &Guard, why: Error) -> Error {
    why.context(format!("the guard `{}` stays", guard.cond)).at(guard.span)
}

/// The function without the guard at a place; otherwise why it stays. `reads` says whether it
/// matters that what is read more may be read.
pub(super) fn without(
    func: &TensorFunc,
    place: usize,
    options: &OvercomputeOptions<'_>,
    reads: bool,
) -> Result<std::result::Result<TensorFunc, Error>> {
    let scop = Scop::of(func);
    let id = GuardId { place, part: 0 };
    let everywhere = OvercomputeOptions { block: None, ..*options };
    let this = guards(&scop, &everywhere).into_iter().filter(|(g, _)| *g == id);
    let mut trial = Trial::new(&scop, this, options);
    trial.settle(reads);
    Ok(if trial.guards.is_empty() {
        Err(trial.remarks.pop().unwrap_or_else(|| Error::refused("it guards nothing")))
    } else {
        Ok(trial.without_guards(func)?)
    })
}
