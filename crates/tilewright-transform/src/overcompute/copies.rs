//! Added uses of what was copied.
//!
//! A copy of a cell that holds nothing is allowed, and holds nothing (`docs/semantics.md`, *Values*).
//! So that a statement copies a cell shows neither that there is something in it, nor in the cell
//! that it writes. Where an added instance uses a cell that was copied, the cell that it came from
//! must have been written, or be one that the function uses anyway.

use tilewright_ir::index::is_index;
use tilewright_ir::{Buffer, Expr, ExprKind};
use tilewright_polyhedral::flow::{MemoryFlow, Run, Unwritten, Who};
use tilewright_polyhedral::scop::{Act, ScopStmt};
use tilewright_polyhedral::{Known, Reason, Statement};

use super::candidates::Candidates;
use super::leaks::Leaks;

/// Memories that are followed back, one copy after the other.
const STEPS: usize = 16;

/// Copies of copies through which a use is seen.
const DEPTH: usize = 4;

/// Whether a value is a load, or a choice by indices of loads and constants.
fn is_copy(value: &Expr) -> bool {
    match value.kind() {
        ExprKind::Load(_, indices) => indices.iter().all(is_index),
        ExprKind::Int(_) | ExprKind::Float(_) => true,
        ExprKind::IfThenElse(c, yes, no) | ExprKind::Select(c, yes, no) => {
            is_index(c) && is_copy(yes) && is_copy(no)
        }
        _ => false,
    }
}

/// Whether a statement stores a copy.
fn copies(stmt: &ScopStmt) -> bool {
    matches!(&stmt.act, Act::Store(value) if value.effects().loads && is_copy(value))
}

fn is_read(run: &Run) -> bool {
    run.statement.accesses.iter().any(|t| !t.is_write)
}

impl<'a> Candidates<'a> {
    /// Whether a statement, or the store that its place in the text is, is a copy.
    fn is_of_copy(&self, stmt: &ScopStmt) -> bool {
        self.scop.stmts.iter().any(|s| s.place == stmt.place && copies(s))
    }

    /// The added uses of a memory that may see a copy of a cell that holds nothing.
    pub(super) fn copies_of_nothing(&self, memory: &Buffer, leaks: &mut Leaks<'a>) {
        let uses = self.added(memory, |_, access| access.is_some()).into_iter();
        let uses = uses.map(|r| r.only(|t| !t.is_write));
        let uses = uses
            .filter(|r| is_read(r) && self.stmt_of(r).is_some_and(|stmt| !self.is_of_copy(stmt)));
        let mut left = vec![(memory.clone(), uses.collect::<Vec<Run>>())];
        let mut steps = 0;
        while let Some((m, reads)) = left.pop() {
            if reads.is_empty() {
                continue;
            }
            steps += 1;
            let looked = if steps > STEPS {
                Err(Reason::TooLarge.into())
            } else {
                self.look_back(memory, &m, reads, leaks)
            };
            match looked {
                Ok(more) => left.extend(more),
                Err(unknown) => return self.all_leak(memory, unknown, leaks),
            }
        }
    }

    /// Notes reads of what may hold nothing, and gives the reads of what was copied there.
    fn look_back(
        &self,
        memory: &Buffer,
        m: &Buffer,
        reads: Vec<Run>,
        leaks: &mut Leaks<'a>,
    ) -> Known<Vec<(Buffer, Vec<Run>)>> {
        // The first one is known to be written, or read by something.
        if m != memory || self.is_copied(m) {
            let mut all = self.used_or_written(m)?;
            // What added instances write is followed back where it is a copy.
            all.extend(self.added(m, |_, _| false));
            all.extend(reads.iter().cloned());
            let unwritten = Unwritten::new(self.scop, all)?;
            self.unwritten(m, &unwritten, leaks);
        }
        let mut more: Vec<(Buffer, Vec<Run>)> = Vec::new();
        for (buffer, run) in self.sources(m, reads, false)? {
            match more.iter_mut().find(|(b, _)| b.data == buffer.data) {
                Some((_, runs)) => runs.push(run),
                None => more.push((buffer, vec![run])),
            }
        }
        Ok(more)
    }

    /// Whether a memory is read by a copy.
    fn is_copied(&self, memory: &Buffer) -> bool {
        self.scop.stmts.iter().any(|s| {
            s.accesses.iter().any(|t| !t.is_write && t.buffer.data == memory.data)
                && self.is_of_copy(s)
        })
    }

    /// The reads of other memory by the copies that give reads of a memory their values, when
    /// those copies are made; if asked, only where it is certain that they do.
    fn sources(
        &self,
        memory: &Buffer,
        reads: Vec<Run>,
        certain: bool,
    ) -> Known<Vec<(Buffer, Run)>> {
        let writes = Run::all(self.scop, memory).map(|r| r.only(|t| t.is_write));
        let mut runs: Vec<Run> = writes.collect();
        if !certain {
            runs.extend(self.added(memory, |_, _| false));
        }
        runs.retain(|r| !r.statement.accesses.is_empty());
        if reads.is_empty() || !runs.iter().any(|r| self.stmt_of(r).is_some_and(copies)) {
            return Ok(Vec::new());
        }
        runs.extend(reads);
        let memory_flow = MemoryFlow::between(self.scop, runs)?;
        let mut found = Vec::new();
        for e in &memory_flow.flow.edges {
            let writer = memory_flow.who(e.writer);
            let Some(store) = self.instances(writer) else { continue };
            if !copies(store) || (certain && !e.certain) {
                continue;
            }
            let pairs = e.pairs()?;
            if certain && !pairs.is_exact() {
                continue;
            }
            let domain = pairs.domain();
            for k in (0..self.scop.stmts.len())
                .filter(|k| self.scop.stmts.get(*k).is_some_and(|s| s.place == store.place))
            {
                let part = match writer {
                    Who::Added(_) => self.instances(Who::Added(k)),
                    _ => self.instances(Who::Stmt(k)),
                };
                let Some(part) = part else { continue };
                // What is read under more conditions than the store has.
                let guards = part.guards.iter().skip(store.guards.len());
                let domain = guards.fold(domain.clone(), |d, g| d.with_guard(&g.cond));
                for t in part.accesses.iter().filter(|t| !t.is_write) {
                    if t.buffer.data == memory.data {
                        if certain {
                            continue;
                        }
                        let what = format!("`{}` is copied within itself", memory.name);
                        return Err(Reason::Mismatch(what).into());
                    }
                    let statement = Statement::new(&domain, store.schedule.clone());
                    let statement = statement.reads(&t.buffer, &t.indices);
                    let who = memory_flow.who(e.reader);
                    found.push((t.buffer.clone(), Run { who, statement, accesses: vec![None] }));
                }
            }
        }
        Ok(found)
    }

    /// What a participant does.
    fn instances(&self, who: Who) -> Option<&ScopStmt> {
        match who {
            Who::Stmt(k) => self.scop.stmts.get(k),
            Who::Added(k) => self.extras.get(&k).map(|x| &x.added.what),
            Who::End => None,
        }
    }

    /// After what a cell holds something: its writes and permissions, and before all else the uses
    /// of memory as the program found it.
    fn used_or_written(&self, memory: &Buffer) -> Known<Vec<Run>> {
        let runs: Vec<Run> = Run::all(self.scop, memory).collect();
        let mut all: Vec<Run> = Vec::new();
        if self.scop.is_observed(memory) {
            let mut seen = self.uses_of(memory, 0)?;
            seen.extend(runs.iter().cloned().map(|r| r.only(|t| t.is_write)));
            all = Unwritten::new(self.scop, seen)?.found()?;
        }
        all.extend(runs.into_iter().map(|r| r.only(|t| t.is_write)));
        Ok(all)
    }

    /// The reads of a memory that use what they read, or copy it for a use that is certain.
    fn uses_of(&self, memory: &Buffer, depth: usize) -> Known<Vec<Run>> {
        let mut found = Vec::new();
        let mut targets: Vec<Buffer> = Vec::new();
        for (k, stmt) in self.scop.stmts.iter().enumerate() {
            let Some(run) = Run::from_statement(self.scop, k, memory) else { continue };
            let run = run.only(|t| !t.is_write);
            if !is_read(&run) || matches!(stmt.act, Act::Permit) {
                continue;
            }
            if !self.is_of_copy(stmt) {
                found.push(run);
                continue;
            }
            let stores = self.scop.stmts.iter().filter(|s| s.place == stmt.place && copies(s));
            for t in stores.filter_map(ScopStmt::target) {
                if !targets.iter().any(|b| b.data == t.buffer.data) {
                    targets.push(t.buffer.clone());
                }
            }
        }
        targets.retain(|t| t.data != memory.data);
        for target in targets.iter().filter(|_| depth < DEPTH) {
            let reads = self.uses_of(target, depth + 1)?;
            let sources = self.sources(target, reads, true)?.into_iter();
            found.extend(sources.filter(|(b, _)| b.data == memory.data).map(|(_, run)| run));
        }
        Ok(found)
    }
}
