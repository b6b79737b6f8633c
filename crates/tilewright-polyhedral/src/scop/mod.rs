//! A function as a static control part (SCoP), the model of polyhedral compilers.
//!
//! A [`Scop`] has a [`ScopStmt`] for each store, each assumption about a cell, each read that
//! decides something and each call: when it runs (its loops and guards as a
//! [`Domain`], its place in time as a schedule vector) and its accesses. That is what
//! [`crate::Flow`] wants; `Scop::restricted` cuts out what concerns one memory,
//! `Scop::observer` reads what the caller will see at the end.
//!
//! ```text
//! for i in range(8):           place 1
//!     if i < 6:                place 2
//!         B[i] = A[i]          place 3: 0 <= i < 8, i < 6; at (0, i); reads A[i], writes B[i]
//! ```
//!
//! Memories are independent of each other, so every question is asked of one at a time; a
//! function of many blocks stays cheap.
//!
//! * Iteration variables of blocks and `let` variables are replaced by their values, so that all
//!   is said in terms of loops.
//! * `T.assume(c or B[i] == v)` reads `B[i]` and then counts as a write of the known value `v` to
//!   it where `c` is false ([`Act::Fact`]). It reads, because it is about what was written.
//!   `B[i] == T.undef()` says nothing of the value: it is a permission to read ([`Act::Permit`]).
//! * Memory that is allocated inside of loops is new in each iteration: the variables of those
//!   loops come before the indices of its accesses ([`Scop::lifetime`]).
//! * What was read from memory that may change (in a condition, an index, a bound, a `let`) is a
//!   value of its own from then on: no two of them count as equal. What depends on them *may*
//!   happen.
//! * Memory that is accessed through two buffers, through a part of it or through its pointer is
//!   not followed ([`Scop::follows`]): no statement accesses it. A parameter may have one view of
//!   all its cells, by which it is accessed, as flattening makes them. A call may read and write
//!   every parameter.
//! * Loops run in order, as far as this goes. Iterations of a parallel loop are promised not to
//!   depend on each other; a pass that adds work to one has to keep that promise.

mod collect;
mod memory;
mod model;

use tilewright_ir::hash::HashMap;

use crate::{Domain, Engine};
use tilewright_ir::visit::fold_stmt_children;
use tilewright_ir::{Buffer, Fold, Stmt, TensorFunc};

use self::collect::collect;
use self::memory::Memory;
pub use self::model::{Act, Guard, GuardId, Loop, Scop, ScopStmt};
use crate::sizes::sizes;

impl Scop {
    /// A whole function. Every parameter is observed at the end.
    pub fn extract(func: &TensorFunc) -> Scop {
        let base = sizes(func);
        let params: Vec<Buffer> = func.buffers().cloned().collect();
        Scop::build(base.engine().clone(), base, &func.body, params)
    }

    /// A part of a function. What holds around it comes as a domain, whose variables are loops
    /// outside: they have one value. All memory that is not allocated inside is observed at the
    /// end.
    pub fn of_part(body: &Stmt, around: &Domain) -> Scop {
        Scop::build(around.engine().clone(), around.fixed(), body, Vec::new())
    }

    fn build(engine: Engine, base: Domain, body: &Stmt, params: Vec<Buffer>) -> Scop {
        let memory = Memory::collect(body, params);
        let mut scop = Scop {
            stmts: Vec::new(),
            text: Vec::new(),
            last: Vec::new(),
            engine,
            memory,
            base: base.clone(),
            lifetime: HashMap::default(),
            observed: Vec::new(),
        };
        collect(&mut scop, base, body);
        let seen =
            scop.memory.buffers.values().filter(|b| !scop.memory.local.contains(&b.data)).cloned();
        scop.observed = seen.filter(|b| scop.memory.follows(&b.data)).collect();
        scop.observed.sort_by_key(Buffer::id);
        scop
    }
}

/// Rebuilds a statement by places: `edit` gets each statement with its place, after those inside,
/// and gives another one for it.
pub fn rewrite(s: &Stmt, edit: &mut dyn FnMut(usize, &Stmt) -> Option<Stmt>) -> Stmt {
    struct Rewrite<'a> {
        next: usize,
        edit: &'a mut dyn FnMut(usize, &Stmt) -> Option<Stmt>,
    }
    impl Fold for Rewrite<'_> {
        fn stmt(&mut self, s: &Stmt) -> Stmt {
            let place = self.next;
            self.next += 1;
            let s = fold_stmt_children(self, s);
            (self.edit)(place, &s).unwrap_or(s)
        }
    }
    Rewrite { next: 0, edit }.stmt(s)
}
