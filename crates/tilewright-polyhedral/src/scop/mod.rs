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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, Statement};
    use tilewright_ir::{
        Block, Buffer, CallTarget, DType, Expr, ExprKind, Range, Stmt, StmtKind, TensorFunc, Var,
    };
    use tilewright_ir::{IterKind, Param};

    fn ints(name: &str) -> Buffer {
        Buffer::with_extents(name, &[16], DType::I32)
    }

    fn scop(params: &[&Buffer], body: Stmt) -> Scop {
        let params = params.iter().map(|b| Param::tensor(b)).collect();
        Scop::extract(&TensorFunc::new(params, body))
    }

    /// The last writers of what each statement reads of a memory, as `reader<-writer` by places;
    /// the observer has no place.
    fn sources(p: &Scop, b: &Buffer) -> Vec<String> {
        let mut list: Vec<(Option<usize>, Statement)> = Vec::new();
        for s in &p.stmts {
            list.extend(p.restricted(s, b).map(|(st, _)| (Some(s.place), st)));
        }
        list.extend(p.observer(b).map(|st| (None, st)));
        let all: Vec<Statement> = list.iter().map(|(_, s)| s.clone()).collect();
        let flow = Flow::compute(p.engine(), &all).expect("decided");
        flow.edges
            .iter()
            .map(|e| {
                let sure = if e.certain { "" } else { "?" };
                format!(
                    "{}<-{}{sure}",
                    place_name(e.reader.statement, &list),
                    place_name(e.writer.statement, &list)
                )
            })
            .collect()
    }

    fn place_name(k: usize, list: &[(Option<usize>, Statement)]) -> String {
        list[k].0.map_or("end".to_owned(), |p| p.to_string())
    }

    #[test]
    fn places_are_those_of_a_rewrite() {
        let b = ints("B");
        let i = Var::index("i");
        let set = |v: i32| Stmt::store(&b, vec![i.expr()], Expr::i32(v));
        let both = Stmt::if_else(i.expr().less(4), set(1), set(2));
        let body = Stmt::serial(&i, Expr::i32(16), Stmt::seq([both, set(3)]));
        let p = scop(&[&b], body.clone());
        let places: Vec<usize> = p.stmts.iter().map(|s| s.place).collect();
        let mut stores = Vec::new();
        rewrite(&body, &mut |place, s| {
            if matches!(s.kind(), StmtKind::Store { .. }) {
                stores.push(place);
            }
            None
        });
        assert_eq!((places, stores), (vec![3, 4, 5], vec![3, 4, 5]));
        assert_eq!(sources(&p, &b), ["end<-5"]);
    }

    #[test]
    fn an_initialisation_runs_where_the_reduction_starts() {
        let (a, b) = (ints("A"), ints("B"));
        let (i, k, vi, vk) = (Var::index("i"), Var::index("k"), Var::index("vi"), Var::index("vk"));
        let at = || vec![vi.expr()];
        let sum = Stmt::store(&b, at(), b.load(at()) + a.load([vk.expr()]));
        let mut block = Block::new("sum", sum);
        block.init = Some(Stmt::store(&b, at(), Expr::i32(0)));
        for (var, kind) in [(&vi, IterKind::Spatial), (&vk, IterKind::Reduce)] {
            let domain = Range::upto(Expr::i32(4));
            block.iters.push(tilewright_ir::IterVar { var: var.clone(), domain, kind });
        }
        let block = Stmt::block(vec![i.expr(), k.expr()], Expr::bool(true), block);
        let body = Stmt::serial(&i, Expr::i32(4), Stmt::serial(&k, Expr::i32(4), block));
        let p = scop(&[&a, &b], body);
        assert_eq!(sources(&p, &b), ["4<-3", "4<-4", "end<-4"]);
    }

    #[test]
    fn memory_inside_of_a_loop_is_new_each_time() {
        let (b, l) = (ints("B"), ints("L"));
        let i = Var::index("i");
        let use_it = Stmt::store(&b, vec![i.expr()], l.load(vec![Expr::i32(0)]));
        let fill =
            Stmt::guard(i.expr().equal(0), Stmt::store(&l, vec![Expr::i32(0)], Expr::i32(1)));
        let inner = Stmt::seq([fill, use_it]);
        let p = scop(&[&b], Stmt::serial(&i, Expr::i32(4), Stmt::allocate(&l, inner.clone())));
        let flow = |p: &Scop| {
            let stmts = p.stmts.iter().filter_map(|s| p.restricted(s, &l).map(|(s, _)| s));
            let stmts: Vec<Statement> = stmts.collect();
            let flow = Flow::compute(p.engine(), &stmts).expect("decided");
            flow.uninitialised
                .iter()
                .map(|u| {
                    let first = u.instances.vars().next().expect("a loop").expr();
                    let points = u.instances.domain();
                    let ends = points.tight_bounds(&first, &[]).expect("decided");
                    format!("{}..={}", ends.min, ends.max)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(flow(&p), ["1..=3"]);
        let p = scop(&[&b], Stmt::allocate(&l, Stmt::serial(&i, Expr::i32(4), inner)));
        assert!(flow(&p).is_empty());
    }

    #[test]
    fn what_was_read_before_a_write_is_not_what_is_read_after_it() {
        // if A[0] == 0: A[0] = 1      if A[0] == 0: B[0] = 1      B[0] = 2 if not (A[0] == 0)
        let (a, b) = (ints("A"), ints("B"));
        let zero = || a.load(vec![Expr::i32(0)]).equal(0);
        let set = |b: &Buffer, v: i32| Stmt::store(b, vec![Expr::i32(0)], Expr::i32(v));
        let body = Stmt::seq([
            set(&b, 9),
            Stmt::guard(zero(), set(&a, 1)),
            Stmt::guard(zero(), set(&b, 1)),
            Stmt::guard(!zero(), set(&b, 2)),
        ]);
        let p = scop(&[&a, &b], body);
        // Each store of `B` may be the last one.
        assert_eq!(sources(&p, &b), ["end<-1?", "end<-5?", "end<-7?"]);
    }

    #[test]
    fn an_assumption_is_a_write_of_a_known_value_and_reads_what_was_there() {
        let b = ints("B");
        let i = Var::index("i");
        let here = || b.load([i.expr()]);
        let fact = i.expr().less(14).or(here().equal(0));
        let assume = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(fact)));
        let set = Stmt::store(&b, vec![Expr::i32(15)], Expr::i32(0));
        let p = scop(&[&b], Stmt::seq([set.clone(), assume]));
        let value = p.stmts.iter().find_map(|s| match &s.act {
            Act::Fact(v) => v.as_int(),
            _ => None,
        });
        assert_eq!(value, Some(0));
        assert_eq!(sources(&p, &b), ["3<-1", "end<-3"]);
        let any = i.expr().less(14).or(here().equal(Expr::new(ExprKind::Undef, DType::I32)));
        let permit = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(any)));
        let p = scop(&[&b], Stmt::seq([set, permit]));
        assert!(matches!(p.stmts.last().map(|s| &s.act), Some(Act::Permit)));
        assert_eq!(sources(&p, &b), ["end<-3"]);
    }

    #[test]
    fn a_call_may_change_every_parameter_and_nothing_else() {
        let (b, l) = (ints("B"), ints("L"));
        let call = Expr::call(CallTarget::Extern("f".into()), vec![], DType::I32);
        let body = Stmt::seq([
            Stmt::store(&b, vec![Expr::i32(0)], Expr::i32(1)),
            Stmt::store(&l, vec![Expr::i32(0)], Expr::i32(1)),
            Stmt::store(&b, vec![Expr::i32(0)], call + l.load(vec![Expr::i32(0)])),
            Stmt::store(&b, vec![Expr::i32(0)], b.load(vec![Expr::i32(0)]) + 1),
        ]);
        let p = scop(&[&b], Stmt::allocate(&l, body));
        assert_eq!(sources(&p, &b), ["4<-2?", "end<-4?", "5<-4", "end<-5"]);
        assert_eq!(sources(&p, &l), ["4<-3"]);
    }

    #[test]
    fn memory_with_two_faces_is_not_followed() {
        let b = ints("B");
        let view = b.derive(|d| d.shape = vec![Expr::i32(8)]);
        let inner = Stmt::new(StmtKind::Declare { buffer: view.clone(), body: set_first(&view) });
        let p = scop(&[&b], Stmt::seq([set_first(&b), inner]));
        assert!(!p.follows(&b) && p.memories().is_empty());
        assert!(p.stmts.iter().all(|s| s.accesses.is_empty()));
    }

    fn set_first(b: &Buffer) -> Stmt {
        Stmt::store(b, vec![Expr::i32(0)], Expr::i32(1))
    }
}
