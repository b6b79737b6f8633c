//! Whether the iterations of a loop may run at once.
//!
//! Parallel and vectorised loops and loops over threads promise that their iterations do not depend
//! on one another: no two of them touch one cell that one of them writes. The set engine decides it,
//! and a pair that does is the witness. Two things are permitted:
//!
//! * In a vectorised loop, updates of one cell by one operator that commutes
//!   ([`tilewright_ir::update`]): a vectorised reduction. Threads would lose some of them.
//! * Work that several iterations do again: writes of the same value to one cell, which every
//!   iteration that reads the cell has written itself before. That is what a stage computed per
//!   tile does where tiles overlap.
//!
//! ```text
//! for i in T.parallel(4):
//!     for j in range(5):
//!         B[i * 4 + j] = A[i * 4 + j] * 2        B[4] is written by i = 0 and i = 1
//!     for j in range(4):
//!         C[i * 4 + j] = B[i * 4 + j] + B[i * 4 + j + 1]
//! ```
//!
//! What is allocated in the body belongs to one iteration.

use tilewright_ir::hash::HashMap;

use crate::{AccessRelation, Domain, Known};
use tilewright_ir::visit::accessed;
use tilewright_ir::{AtOnce, Buffer, Error, Expr, Fold, Result, Stmt, StmtKind, TensorFunc, Var};

use crate::dependence::{
    PlacedAccess, PlacedAccesses, accesses_and_local, exchange, one_view, renaming, report,
};
use crate::flow::{Run, Unwritten, same_at_once};
use crate::outline::Outline;
use crate::scop::Scop;
use crate::scope::{Scope, Scoped, fold_scoped};

/// Why iterations may not run at once, as far as that is known.
pub struct Dependent {
    /// The two accesses, and the two iterations or the fact that is missing.
    pub error: Error,
    /// Whether there are such iterations, whatever is in memory.
    pub certain: bool,
}

impl Dependent {
    fn maybe(error: Error) -> Dependent {
        Dependent { error, certain: false }
    }
}

/// Checks that the iterations of a loop do not depend on one another. What holds around the loop
/// comes as a domain, whose variables have one value for all of them. Of several reasons why they
/// may not run at once a certain one is given.
pub fn check(l: &Stmt, around: &Domain, how: AtOnce) -> Result<(), Dependent> {
    let StmtKind::For { var, range, body, .. } = l.kind() else {
        return Err(Dependent::maybe(Error::internal("a loop that is none")));
    };
    let inside = around.with_var(var, range);
    let pairs = Pairs { var, outer: around.vars().cloned().collect() };
    let (again, names) = pairs.elsewhere(&AccessRelation::new(&inside, &[]));
    // Asked last: most loops have several iterations, and to find two of them takes long.
    let one = || AccessRelation::new(&inside, &[]).is_disjoint(&again, &[pairs.differ(&names)]);
    match several(l, body, &inside, &pairs, how) {
        Err(_) if one() => Ok(()),
        result => result,
    }
}

/// [`check`] of a loop with several iterations.
fn several(
    l: &Stmt,
    body: &Stmt,
    inside: &Domain,
    pairs: &Pairs<'_>,
    how: AtOnce,
) -> Result<(), Dependent> {
    let vars = std::slice::from_ref(pairs.var);
    let touched = accesses_and_local(body, inside).map_err(|e| Dependent::maybe(e.at(l.span())))?;
    let mut again: HashMap<Buffer, bool> = HashMap::default();
    let mut outlines = Outlines::new(&touched, pairs, inside);
    let mut perhaps: Option<Dependent> = None;
    for (k, a) in touched.all.iter().enumerate() {
        for (l, b) in touched.all.iter().enumerate().skip(k) {
            let exchanged = how == AtOnce::Lanes && exchange(a, b);
            if a.buffer.data != b.buffer.data || !(a.write || b.write) || exchanged {
                continue;
            }
            if let Err(e) = one_view(a, b) {
                perhaps.get_or_insert_with(|| Dependent::maybe(e));
                continue;
            }
            if outlines.are_apart(k, l) {
                continue;
            }
            let (other, names) = pairs.elsewhere(&b.at);
            let differ = [pairs.differ(&names)];
            // A pair takes longer to find, and is needed only where there is no other reason.
            if a.at.is_disjoint(&other, &differ)
                || *again.entry(a.buffer.clone()).or_insert_with(|| {
                    let repeats = Repeats { pairs, touched: &touched, inside, body };
                    repeats.buffer(&a.buffer) == Ok(true)
                })
            {
                continue;
            }
            let proof = a.at.independent(&other, &differ);
            let what = "touch one cell in different iterations";
            let Err(error) = report(&proof, a, b, vars, &names, what) else { continue };
            if proof.is_no() && a.certain && b.certain {
                return Err(Dependent { error, certain: true });
            }
            perhaps.get_or_insert_with(|| Dependent::maybe(error));
        }
    }
    perhaps.map_or(Ok(()), Err)
}

/// Pairs of iterations of a loop.
struct Pairs<'a> {
    var: &'a Var,
    /// Variables around, which have one value.
    outer: Vec<Var>,
}

impl Pairs<'_> {
    /// An access in another iteration.
    fn elsewhere(&self, access: &AccessRelation) -> (AccessRelation, HashMap<Var, Var>) {
        let vars = access.domain.vars().filter(|v| !self.outer.contains(v));
        access.elsewhere_in(&vars.cloned().collect::<Vec<_>>())
    }

    /// That it is another one.
    fn differ(&self, names: &HashMap<Var, Var>) -> Expr {
        let twin = names.get(self.var).map_or_else(|| self.var.expr(), Var::expr);
        self.var.expr().not_equal(twin)
    }
}

/// The outlines of accesses, by which most are told apart: one question for each two of these.
struct Outlines<'a> {
    touched: &'a PlacedAccesses,
    pairs: &'a Pairs<'a>,
    inside: &'a Domain,
    different: Vec<Outline>,
    /// Which one an access has, where it was asked for and where it is known.
    of: Vec<Option<Option<usize>>>,
    found: HashMap<(usize, usize), bool>,
}

impl<'a> Outlines<'a> {
    fn new(touched: &'a PlacedAccesses, pairs: &'a Pairs<'a>, inside: &'a Domain) -> Self {
        let of = vec![None; touched.all.len()];
        Outlines { touched, pairs, inside, different: Vec::new(), of, found: HashMap::default() }
    }

    /// Which outline an access has. Most accesses only read, from buffers that nothing writes, and are never asked.
    fn number(&mut self, k: usize) -> Option<usize> {
        if let Some(known) = self.of[k] {
            return known;
        }
        let own = Outline::of(&self.touched.all[k].at, self.inside).ok();
        let number = own.map(|own| {
            self.different.iter().position(|o| *o == own).unwrap_or_else(|| {
                self.different.push(own);
                self.different.len() - 1
            })
        });
        self.of[k] = Some(number);
        number
    }

    /// Whether two accesses certainly touch no cell in different iterations.
    fn are_apart(&mut self, k: usize, l: usize) -> bool {
        let (Some(a), Some(b)) = (self.number(k), self.number(l)) else { return false };
        if let Some(known) = self.found.get(&(a, b)) {
            return *known;
        }
        let (other, mut names) = self.pairs.elsewhere(&self.touched.all[l].at);
        let differ = self.pairs.differ(&names);
        names.retain(|v, _| self.inside.vars().any(|x| x == v));
        let elsewhere = self.inside.renamed(&names);
        let apart = Outline::of(&other, &elsewhere).and_then(|theirs| {
            self.different[a].is_apart(self.inside, (&theirs, &elsewhere), &differ)
        });
        let apart = apart == Ok(true);
        self.found.insert((a, b), apart);
        apart
    }
}

/// Work that several iterations do again.
struct Repeats<'a> {
    pairs: &'a Pairs<'a>,
    touched: &'a PlacedAccesses,
    inside: &'a Domain,
    body: &'a Stmt,
}

impl Repeats<'_> {
    /// Whether all iterations that write one cell of a buffer write the same to it, and each that
    /// reads one has written it before.
    ///
    /// The values may read buffers of which the same is true: what they read there was written
    /// earlier in the same iteration.
    fn buffer(&self, buffer: &Buffer) -> Known<bool> {
        let scop = Scop::of_part(self.body, self.inside);
        if !scop.follows(buffer) {
            return Ok(false);
        }
        let writes = self.touched.all.iter().filter(|t| t.write && t.buffer == *buffer);
        let writes: Vec<&PlacedAccess> = writes.collect();
        for (k, a) in writes.iter().enumerate() {
            for b in &writes[k..] {
                if !self.same(&scop, a, b)? {
                    return Ok(false);
                }
            }
        }
        // What an iteration of a loop inside reads after it wrote it, so does the one around.
        let (part, domain) = innermost(self.body, self.inside, buffer);
        if !part.ptr_eq(self.body) && writes_first(&Scop::of_part(&part, &domain), buffer)? {
            return Ok(true);
        }
        writes_first(&scop, buffer)
    }

    /// Whether two stores write the same where they meet.
    fn same(&self, scop: &Scop, a: &PlacedAccess, b: &PlacedAccess) -> Known<bool> {
        let (Some(x), Some(y)) = (&a.value, &b.value) else { return Ok(false) };
        // What belongs to one iteration is another value in the other one.
        if self.is_private(x) || self.is_private(y) {
            return Ok(false);
        }
        let (other, names) = self.pairs.elsewhere(&b.at);
        let meet = a.at.meet(&other, &[self.pairs.differ(&names)])?;
        Ok(meet.is_void() || same_at_once(scop, &meet, x, &renaming(&names).expr(y)))
    }

    fn is_private(&self, e: &Expr) -> bool {
        e.loads_from(|b| self.touched.local.contains(b))
    }
}

/// Whether all that is read of a buffer in some statements is written before there.
fn writes_first(scop: &Scop, buffer: &Buffer) -> Known<bool> {
    Ok(Unwritten::new(scop, Run::all(scop, buffer).collect())?.reads().next().is_none())
}

/// The innermost part of a statement, inside of loops, that alone accesses a buffer; and the domain there.
fn innermost(s: &Stmt, domain: &Domain, buffer: &Buffer) -> (Stmt, Domain) {
    let touches = |s: &Stmt| {
        let (reads, writes) = accessed(s);
        reads.iter().chain(&writes).any(|b| b.data == buffer.data)
    };
    let (mut part, mut inside) = (s.clone(), domain.clone());
    loop {
        let next = match part.kind() {
            StmtKind::For { var, range, body, .. }
                if !range.min.effects().loads && !range.extent.effects().loads =>
            {
                inside = inside.with_var(var, range);
                body.clone()
            }
            StmtKind::Seq(all) => {
                let mut touching = all.iter().filter(|s| touches(s));
                match (touching.next(), touching.next()) {
                    (Some(one), None) => one.clone(),
                    _ => return (part, inside),
                }
            }
            _ => return (part, inside),
        };
        part = next;
    }
}

/// The error for a loop whose iterations depend on one another.
pub fn error(l: &Stmt, dependent: Dependent, make: impl FnOnce(String) -> Error) -> Error {
    let name = l.loop_var().map_or("", |v| v.name());
    let d = dependent.error.diagnostic();
    let text =
        format!("the iterations of the loop `{name}` run at the same time, and {}", d.message);
    d.notes.iter().fold(make(text).at(l.span()), |e, note| e.note(note.clone()))
}

/// Refuses a function in which iterations of a loop certainly depend on one another, against what
/// the loop's kind promises. Where that cannot be decided, the
/// promise is taken as true.
///
/// # Errors
/// `Malformed` with the two iterations.
pub fn check_promises(func: &TensorFunc) -> Result<()> {
    broken(func, |dependent| dependent.certain).map_or(Ok(()), Err)
}

/// Whether it is certain that the iterations of all loops that run at once may do so.
pub fn keeps_promises(func: &TensorFunc) -> bool {
    broken(func, |_| true).is_none()
}

/// The first loop whose iterations depend on one another in a way that counts.
fn broken(func: &TensorFunc, counts: fn(&Dependent) -> bool) -> Option<Error> {
    struct Check {
        scope: Scope,
        counts: fn(&Dependent) -> bool,
        error: Option<Error>,
    }
    impl Scoped for Check {
        fn scope(&mut self) -> &mut Scope {
            &mut self.scope
        }
    }
    impl Fold for Check {
        fn expr(&mut self, e: &Expr) -> Expr {
            e.clone()
        }
        fn stmt(&mut self, s: &Stmt) -> Stmt {
            if let (Some(how), None) = (AtOnce::of_loop(s), &self.error)
                && let Err(dependent) = check(s, self.scope.domain(), how)
                && (self.counts)(&dependent)
            {
                self.error = Some(error(s, dependent, Error::malformed));
            }
            fold_scoped(self, s)
        }
    }
    let mut has_loops = false;
    func.body.for_each(|s| has_loops |= AtOnce::of_loop(s).is_some());
    if !has_loops {
        return None;
    }
    let mut check = Check { scope: Scope::at_entry(func), counts, error: None };
    check.stmt(&func.body);
    check.error
}
