//! Loops over the same range that run together.
//!
//! ```text
//! for i in range(16):              for i in range(16):
//!     A[i] = 0.0              →        A[i] = 0.0
//! for i in range(16):                  A[i] = A[i] + 1.0
//!     A[i] = A[i] + 1.0
//! ```
//!
//! Together, iteration `j` of the second loop runs before the iterations `i > j` of the first. That
//! is the same program if no such pair touches a cell that one of them writes; the set engine
//! decides it, and a pair that does is the witness of a refusal. In loops whose iterations promise
//! not to depend on each other, all pairs of different iterations count. Bodies are merged in turn,
//! so nests of loops become one nest.
//!
//! Statements between the loops are no obstacle where the second loop touches no cell that they
//! write, and writes none that they touch: it then moves in front of them. An assumption about a
//! cell counts as a write to it: what it allows comes after it. Nothing moves in front of an
//! assertion, which may be what keeps it in range.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::Subst;
use tilewright_ir::{Error, Expr, Fold, ForKind, Remarks, Result, Stmt, StmtKind, TensorFunc, Var};
use tilewright_polyhedral::Proof;

use crate::pass::{self, Run};
use tilewright_polyhedral::dependence::{PlacedAccess, accesses, one_view};
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped, scoped};

/// `merge_adjacent_loops` by name.
pub const PASS: pass::Pass = pass::Pass {
    name: "merge_adjacent_loops",
    summary: "let loops over the same range run together where no dependent iterations swap",
    options: &[],
    run: Run::Tensor(|f, _, why| merge_adjacent_loops(f, why)),
};

/// Merges the loops of every sequence that can run together.
pub fn merge_adjacent_loops(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    let mut merger = Merger::new(func, None, why);
    Ok(TensorFunc { body: merger.stmt(&func.body), ..func.clone() })
}

/// Merges two loops of one sequence, each the same node in memory. What they have inside stays as it
/// is.
///
/// # Errors
/// `Refused` with the pair of iterations that conflicts, or another reason.
pub fn merge_loops(func: &TensorFunc, first: &Stmt, second: &Stmt) -> Result<TensorFunc> {
    let mut why = Remarks::new();
    let mut merger = Merger::new(func, Some((first, second)), &mut why);
    let body = merger.stmt(&func.body);
    if merger.merged {
        Ok(TensorFunc { body, ..func.clone() })
    } else {
        Err(why.into_iter().next().unwrap_or_else(|| {
            Error::refused("the loops are not one after the other in one sequence")
                .at(second.span())
        }))
    }
}

struct Merger<'a> {
    scope: Scope,
    /// The two loops that are meant, where it is two.
    only: Option<(&'a Stmt, &'a Stmt)>,
    /// What a view of a block is a view of, by pointer.
    views: HashMap<Var, Var>,
    merged: bool,
    why: &'a mut Remarks,
}

impl Scoped for Merger<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Merger<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::Seq(stmts) = s.kind() else { return fold_scoped(self, s) };
        let parts = scoped(self, |pass| {
            let mut parts: Vec<Sibling> = Vec::new();
            for s in stmts {
                if !pass.absorb(&mut parts, s) {
                    parts.push(Sibling::new(s, &pass.scope));
                }
                pass.scope.after(s);
            }
            parts
        });
        if parts.len() == stmts.len() {
            fold_scoped(self, s)
        } else {
            fold_scoped(self, &Stmt::seq(parts.into_iter().map(|p| p.stmt)))
        }
    }
}

/// A statement of a sequence.
struct Sibling {
    stmt: Stmt,
    accesses: Result<Vec<PlacedAccess>>,
    /// The memory that assumptions in it speak of, by pointer.
    assumed: HashSet<Var>,
    /// Whether it asserts something, and may stop the program.
    stops: bool,
}

impl Sibling {
    fn new(s: &Stmt, scope: &Scope) -> Sibling {
        let mut assumed = HashSet::default();
        s.for_each(|s| {
            if let StmtKind::Assume(cond) = s.kind() {
                cond.for_each_load(|b, _| {
                    assumed.insert(b.data.clone());
                });
            }
        });
        let accesses = accesses(s, scope.domain());
        Sibling { stmt: s.clone(), accesses, assumed, stops: s.effects().asserts }
    }
}

impl<'a> Merger<'a> {
    fn new(
        func: &TensorFunc,
        only: Option<(&'a Stmt, &'a Stmt)>,
        why: &'a mut Remarks,
    ) -> Merger<'a> {
        let mut views: HashMap<Var, Var> = HashMap::default();
        func.body.for_each(|s| {
            let StmtKind::Block { block, .. } = s.kind() else { return };
            for m in &block.matches {
                let of = &m.source.buffer.data;
                let root = views.get(of).unwrap_or(of).clone();
                views.insert(m.buffer.data.clone(), root);
            }
        });
        Merger { scope: Scope::at_entry(func), only, views, merged: false, why }
    }

    /// Merges a loop into one before it; whether it did.
    fn absorb(&mut self, parts: &mut [Sibling], s: &Stmt) -> bool {
        let candidate = match self.only {
            Some((_, second)) => s.ptr_eq(second),
            None => matches!(s.kind(), StmtKind::For { .. }),
        };
        if !candidate {
            return false;
        }
        let here = Sibling::new(s, &self.scope);
        for k in (0..parts.len()).rev() {
            let wanted = self.only.is_none_or(|(first, _)| parts[k].stmt.ptr_eq(first));
            if wanted {
                match self.fits(&parts[k].stmt, s).and_then(|kind| {
                    let [i, j] = [&parts[k].stmt, s].map(Stmt::loop_var);
                    self.separate(&parts[k], &here, i, j, kind)
                }) {
                    Ok(()) => {
                        parts[k] = Sibling::new(&together(&parts[k].stmt, s), &self.scope);
                        self.merged = true;
                        return true;
                    }
                    Err(Refusal::Conflict(e)) => self.why.push(e),
                    Err(Refusal::Unlike(e)) if self.only.is_some() => self.why.push(e),
                    Err(Refusal::Unlike(_)) => {}
                }
                if self.only.is_some() {
                    return false;
                }
            }
            if let Err(Refusal::Conflict(e) | Refusal::Unlike(e)) =
                self.separate(&parts[k], &here, None, None, Order::Any)
            {
                if parts[..k].iter().any(|p| self.is_partner(p, s)) {
                    self.why.push(e);
                }
                return false;
            }
        }
        false
    }

    fn is_partner(&self, p: &Sibling, s: &Stmt) -> bool {
        match self.only {
            Some((first, _)) => p.stmt.ptr_eq(first),
            None => self.fits(&p.stmt, s).is_ok(),
        }
    }

    /// Whether two loops run over the same values in the same way: in which order pairs of
    /// iterations must not conflict.
    fn fits(&self, a: &Stmt, b: &Stmt) -> Result<Order, Refusal> {
        let (
            StmtKind::For { var, range: r, kind, annotations: x, .. },
            StmtKind::For { range: t, kind: other, annotations: y, .. },
        ) = (a.kind(), b.kind())
        else {
            return Err(Refusal::Unlike(Error::refused("only loops can be merged").at(a.span())));
        };
        let order = match kind {
            _ if kind != other => return unlike("they do not run in the same way".into(), a, b),
            ForKind::Serial | ForKind::Unrolled => Order::Later,
            ForKind::Parallel | ForKind::Vectorized => Order::Other,
            ForKind::ThreadBinding(_) => return unlike("they run over threads".into(), a, b),
        };
        if !x.is_empty() || !y.is_empty() {
            return unlike("they have annotations".into(), a, b);
        }
        for (what, p, q) in
            [("start", &r.min, &t.min), ("number of iterations", &r.extent, &t.extent)]
        {
            let (Some(p), Some(q)) = (self.scope.index(p), self.scope.index(q)) else {
                return unlike(format!("their {what} depends on memory"), a, b);
            };
            if var.dtype() != p.dtype() || p.dtype() != q.dtype() {
                return unlike("their types differ".into(), a, b);
            }
            match self.scope.domain().equal(&p, &q) {
                Proof::Yes => {}
                Proof::No { .. } => {
                    return unlike(format!("their {what} differs: {p} and {q}"), a, b);
                }
                Proof::Unknown(why) => {
                    return unlike(format!("their {what} may differ, {p} and {q}: {why}"), a, b);
                }
            }
        }
        Ok(order)
    }

    /// Whether no point of one statement and point of the other, of iterations in an order, conflict.
    fn separate(
        &self,
        a: &Sibling,
        b: &Sibling,
        i: Option<&Var>,
        j: Option<&Var>,
        order: Order,
    ) -> Result<(), Refusal> {
        let when: Vec<Expr> = i.zip(j).map(|(i, j)| order.compare(i, j)).into_iter().collect();
        if a.stops {
            return conflict("an assertion there may stop the program".into(), b);
        }
        let (x, y) = match (&a.accesses, &b.accesses) {
            (Ok(x), Ok(y)) => (x, y),
            (Err(e), _) | (_, Err(e)) => return conflict(e.to_string(), b),
        };
        for x in x {
            for y in y {
                self.meet(a, x, b, y, &when, i.zip(j)).map_err(Refusal::Conflict)?;
            }
        }
        Ok(())
    }

    fn meet(
        &self,
        a: &Sibling,
        x: &PlacedAccess,
        b: &Sibling,
        y: &PlacedAccess,
        when: &[Expr],
        loops: Option<(&Var, &Var)>,
    ) -> Result<()> {
        if self.root_of(x) != self.root_of(y) || !(changes_memory(x, a) || changes_memory(y, b)) {
            return Ok(());
        }
        let text = match loops {
            Some(_) => format!(
                "the loops over `{}` are not merged: the first {} and the second {}",
                names(&a.stmt, &b.stmt),
                access_text(x),
                access_text(y)
            ),
            None => format!(
                "{} does not move in front of what is before it, which {} where it {}",
                describe(&b.stmt),
                access_text(x),
                access_text(y)
            ),
        };
        one_view(x, y)
            .map_err(|e| Error::refused(text.clone()).at(b.stmt.span()).note(e.to_string()))?;
        match x.at.independent(&y.at, when) {
            Proof::Yes => Ok(()),
            Proof::Unknown(why) => {
                Err(Error::refused(text.clone()).at(b.stmt.span()).note(why.to_string()))
            }
            Proof::No { witness } => {
                Err(Error::refused(text.clone()).at(b.stmt.span()).note(match loops {
                    Some((i, j)) => {
                        format!(
                            "at {}={} of the first and {}={} of the second",
                            i.name(),
                            value_at(i, &witness),
                            j.name(),
                            value_at(j, &witness)
                        )
                    }
                    None => format!("at {witness}"),
                }))
            }
        }
    }

    fn root_of(&self, t: &PlacedAccess) -> Var {
        self.views.get(&t.buffer.data).unwrap_or(&t.buffer.data).clone()
    }
}

fn unlike(note: String, a: &Stmt, b: &Stmt) -> Result<Order, Refusal> {
    let text = format!("the loops over `{}` are not merged", names(a, b));
    Err(Refusal::Unlike(Error::refused(text).at(b.span()).note(note)))
}

fn conflict(note: String, b: &Sibling) -> Result<(), Refusal> {
    let text = format!("{} is not merged with what is before it", describe(&b.stmt));
    Err(Refusal::Conflict(Error::refused(text).at(b.stmt.span()).note(note)))
}

fn changes_memory(t: &PlacedAccess, p: &Sibling) -> bool {
    t.write || p.assumed.contains(&t.buffer.data)
}

fn access_text(t: &PlacedAccess) -> String {
    format!("{} {t}", if t.write { "writes" } else { "reads" })
}

fn value_at(v: &Var, witness: &tilewright_polyhedral::Witness) -> String {
    witness.get(v).map_or("?".into(), |k| k.to_string())
}

/// Why two statements stay apart.
enum Refusal {
    /// They are no loops over the same range.
    Unlike(Error),
    /// They touch the same cells.
    Conflict(Error),
}

/// Which pairs of iterations change their order.
#[derive(Clone, Copy)]
enum Order {
    /// All pairs.
    Any,
    /// Those of different iterations.
    Other,
    /// Those with the first loop's iteration after the second's.
    Later,
}

impl Order {
    fn compare(self, i: &Var, j: &Var) -> Expr {
        match self {
            Order::Any => Expr::bool(true),
            Order::Other => i.expr().not_equal(j),
            Order::Later => i.expr().greater(j),
        }
    }
}

fn describe(s: &Stmt) -> String {
    s.loop_var().map_or("the statement".into(), |v| format!("the loop over `{}`", v.name()))
}

fn names(a: &Stmt, b: &Stmt) -> String {
    match [a, b].map(|s| s.loop_var().map_or("", |v| v.name())) {
        [a, b] if a == b => a.to_owned(),
        [a, b] => format!("{a}` and `{b}"),
    }
}

/// The first loop around both bodies.
fn together(a: &Stmt, b: &Stmt) -> Stmt {
    let (StmtKind::For { var, body, .. }, StmtKind::For { var: other, body: second, .. }) =
        (a.kind(), b.kind())
    else {
        return a.clone();
    };
    let second = Subst::vars([(other.clone(), var.expr())]).stmt(second);
    a.with_body(Stmt::seq([body.clone(), second]))
}
