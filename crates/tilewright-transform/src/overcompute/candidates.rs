//! First step: guards that may go, and the instances that statements have more without them.
//!
//! Of the guards of one depth none is inside another, so that all of them are tried together. What is collected
//! here is what [`decide`](super::decide) takes away from until nothing leaks, and what
//! [`rewrite`](super::rewrite) then leaves out of the function.

use std::collections::BTreeMap;
use tilewright_ir::hash::HashSet;

use tilewright_analysis::neutral::Floats;
use tilewright_ir::{Buffer, Error, Remarks};
use tilewright_polyhedral::Domain;
use tilewright_polyhedral::flow::Run;
use tilewright_polyhedral::scop::{Act, GuardId, Scop, ScopStmt};

use super::added::{Added, Wider, Wrap, more};
use super::guard::{Guard, OvercomputeOptions};
use super::unchanged::Read;

/// The instances that a statement has more without its guard.
pub(super) struct Extra {
    pub guard: GuardId,
    pub added: Added,
    /// The points at which it changes what it writes, if it is a store.
    pub writes: Option<Domain>,
    /// The reads that a later use depends on, by access; `None` is the cell that it writes.
    pub depended_on: HashSet<Option<usize>>,
    /// Whether it is known which points change nothing.
    pub judged: bool,
    /// Whether it would change nothing if all floats were finite.
    pub if_finite: bool,
}

impl Extra {
    /// Nothing is known of them yet.
    pub fn new(guard: GuardId, added: Added) -> Extra {
        let is_store = matches!(added.what.act, Act::Store(_));
        let writes = is_store.then(|| added.what.domain.clone());
        Extra {
            guard,
            writes,
            depended_on: HashSet::default(),
            judged: false,
            if_finite: false,
            added,
        }
    }
}

/// Guards of which none is inside another, and what runs more without them.
pub(super) struct Candidates<'a> {
    pub scop: &'a Scop,
    pub guards: BTreeMap<GuardId, Guard>,
    /// Iteration variables that take more values.
    pub wider: Vec<(GuardId, Wider)>,
    /// Indices that are taken modulo their extents.
    pub wraps: Vec<(GuardId, Wrap)>,
    /// By statement.
    pub extras: BTreeMap<usize, Extra>,
    pub floats: Floats,
}

impl<'a> Candidates<'a> {
    /// None.
    pub fn empty(scop: &'a Scop) -> Candidates<'a> {
        Candidates {
            scop,
            guards: BTreeMap::new(),
            wider: Vec::new(),
            wraps: Vec::new(),
            extras: BTreeMap::new(),
            floats: Floats::Any,
        }
    }

    /// Those of some guards without which it is known what runs more; `why` gets the reasons of the others.
    pub fn collect(
        scop: &'a Scop,
        guards: impl Iterator<Item = (GuardId, Guard)>,
        options: &OvercomputeOptions<'_>,
        why: &mut Remarks,
    ) -> Candidates<'a> {
        let mut all = Candidates { floats: options.floats, ..Candidates::empty(scop) };
        for (id, guard) in guards {
            match more(scop, id, false, &guard.stmts, options.wrap_indices) {
                Err(e) => why.push(stays(&guard, e)),
                Ok(more) => {
                    all.extras.extend(more.added.into_iter().map(|a| (a.stmt, Extra::new(id, a))));
                    all.wider.extend(more.wider.into_iter().map(|w| (id, w)));
                    all.wraps.extend(more.wraps.into_iter().map(|w| (id, w)));
                    all.guards.insert(id, guard);
                }
            }
        }
        all
    }

    pub fn stmt(&self, k: usize) -> Option<&'a ScopStmt> {
        self.scop.stmts.get(k)
    }

    pub fn stmt_of(&self, run: &Run) -> Option<&'a ScopStmt> {
        self.stmt(run.who.stmt()?)
    }

    /// The memories that a statement, and what stands at its place, accesses.
    pub fn touched(&self, k: usize) -> Vec<Buffer> {
        let place = self.stmt(k).map(|s| s.place);
        let all = self.scop.stmts.iter().filter(|s| Some(s.place) == place);
        all.flat_map(|s| &s.accesses).map(|t| t.buffer.clone()).collect()
    }

    /// Notes reads that a later use depends on.
    pub fn depend_on(&mut self, reads: Vec<Read>) {
        for (stmt, access) in reads {
            if let Some(x) = self.extras.get_mut(&stmt) {
                x.depended_on.insert(access);
            }
        }
    }
}

/// The remark about a guard that stays.
pub(super) fn stays(guard: &Guard, why: Error) -> Error {
    why.context(format!("the guard `{}` stays", guard.cond)).at(guard.span)
}
