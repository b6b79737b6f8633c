//! What is asked about one memory: whether the instances that statements have more may run as far as it goes.
//!
//! Added stores may be seen by others ([`Candidates::leaks`]), and added reads may find cells that hold nothing
//! ([`Candidates::forbidden`]; [`copies`](super::copies) follows those that are copied). One flow, with the added
//! instances in it, answers for all statements.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::{Buffer, Error, Var};
use tilewright_polyhedral::flow::{MemoryFlow, Run, Unwritten, Who};
use tilewright_polyhedral::scop::{Act, ScopStmt};
use tilewright_polyhedral::{Access, AccessRelation, Domain, Known, Unknown, is_before};

use super::candidates::{Candidates, Extra};

/// Why added instances are not allowed, by statements.
pub(super) type Leaks<'a> = BTreeMap<usize, Leak<'a>>;

/// Why instances may not be added.
pub(super) struct Leak<'a> {
    error: Error,
    /// The edge of a flow by which a read sees what they write.
    seen: Option<(Rc<MemoryFlow<'a>>, usize)>,
}

impl Leak<'_> {
    /// The reason, with what the user could do about it, and what is seen where.
    pub fn why(self, hint: impl FnOnce(Error) -> Error) -> Error {
        let note = self.seen.and_then(|(t, e)| t.witness(t.flow.edges.get(e)?));
        note.into_iter().fold(hint(self.error), Error::note)
    }
}

impl<'a> Candidates<'a> {
    /// What the program does to a memory, and what it reads that a result depends on. Reads that
    /// updates only pass on are left out, and so are permissions.
    fn readers(&self, memory: &Buffer) -> Vec<Run> {
        let stmts = self.scop.stmts.iter().enumerate();
        let stmts = stmts.filter(|(_, s)| !matches!(s.act, Act::Permit));
        let mut all: Vec<Run> = stmts
            .filter_map(|(k, s)| {
                Some(Run::from_statement(self.scop, k, memory)?.only(|t| !s.passes_on(t)))
            })
            .collect();
        all.extend(MemoryFlow::end(self.scop, memory));
        let rests = self.added(memory, |x, access| x.depended_on.contains(&access));
        all.extend(rests.into_iter().map(|r| r.only(|t| !t.is_write)));
        all
    }

    /// The added stores to a memory that may be read before they are overwritten.
    fn visible_stores(&self, memory: &Buffer, readers: &[Run]) -> Vec<usize> {
        let stores = self.extras.iter().filter(|(_, x)| {
            x.writes.is_some() && stored_memory(&x.added.what) == Some(&memory.data)
        });
        let seen = stores.filter(|(_, x)| !is_overwritten(x, readers).unwrap_or(false));
        seen.map(|(k, _)| *k).collect()
    }

    /// All added stores that may be read before they are overwritten.
    pub(super) fn suspects(&self) -> Vec<usize> {
        let memories = self.scop.memories().into_iter();
        memories.flat_map(|m| self.visible_stores(m, &self.readers(m))).collect()
    }

    /// The added stores to a memory whose values are used by others.
    pub(super) fn leaks(&self, memory: &Buffer, leaks: &mut Leaks<'a>) {
        let mut all = self.readers(memory);
        let seen = self.visible_stores(memory, &all);
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
    pub(super) fn forbidden(&self, memory: &Buffer, leaks: &mut Leaks<'a>) {
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
                Unwritten::new(self.scop, all)
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
            all = Unwritten::new(scop, runs.clone())?.found()?;
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
fn stored_memory(stmt: &ScopStmt) -> Option<&Var> {
    match stmt.act {
        Act::Store(_) => stmt.target().map(|t| &t.buffer.data),
        _ => None,
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
