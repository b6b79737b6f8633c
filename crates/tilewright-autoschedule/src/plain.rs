//! Loops that are no stages, as those of recurrent networks and of scatters: what of them threads share.
//!
//! Such a function has loops of its own, and would run as one thread. The loops of a nest whose iterations do not
//! depend on one another, whatever the others do, move to its outside and become one parallel loop:
//!
//! ```text
//! for k: for b: for g:                          for f in T.parallel(B * G):
//!     z[b, g] += h[b, k] * r[k, g]       →          for k:
//!                                                       z[f // G, f % G] += h[f // G, k] * r[k, f % G]
//! ```
//!
//! That is right, since iterations that depend on one another differ in the other loops alone, which keep their
//! order. Loops around nests, such as that over the steps of a sequence, are run by the host.
//!
//! Threads of a processor share the outermost loops of nests alone, such as the rows of `TopK`, and these keep their
//! place: recurrent networks have a form of their own there, and other nests may have memory that they share.

use tilewright_ir::visit::Subst;
use tilewright_ir::{
    AtOnce, Dim, Expr, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var, dim,
};
use tilewright_polyhedral::at_once;
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped};
use tilewright_target::Target;

use crate::price::statements::statements;

/// The price of a function, as of a processor with vectors, below which it is left to one thread: about two thousand
/// cells. Each nest is a kernel, and to start one takes as long.
const WORTH: f64 = 128.0;

/// Iterations that keep a GPU busy.
const MANY: i64 = 4096;

/// Cycles below which a nest is left to one thread of a processor: waking another one takes about as long.
const WORTH_WAKING: f64 = 8192.0;

/// The function with its plain loops shared; `None` where there are none that threads can share. Threads of a
/// processor share outermost loops alone, which keep their place.
pub(crate) fn share_plain(func: &TensorFunc, target: &Target) -> Option<TensorFunc> {
    let least = if target.groups.is_some() { WORTH } else { WORTH_WAKING };
    if statements(func, target) < least {
        return None;
    }
    let of_processor = target.groups.is_none().then_some(target);
    let mut share = Share { scope: Scope::at_entry(func), func, of_processor, is_shared: false };
    let body = share.stmt(&func.body);
    share.is_shared.then(|| TensorFunc { body, ..func.clone() })
}

struct Share<'a> {
    scope: Scope,
    func: &'a TensorFunc,
    /// The machine where threads are those of a processor.
    of_processor: Option<&'a Target>,
    is_shared: bool,
}

impl Scoped for Share<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Share<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { .. } if self.of_processor.is_some() => match self.shared_outside(s) {
                Some(shared) => {
                    self.is_shared = true;
                    shared
                }
                None => s.clone(),
            },
            StmtKind::For { kind: ForKind::Serial, range, .. } => match self.shared(s) {
                Some(shared) => {
                    self.is_shared = true;
                    shared
                }
                None if is_known(&range.min) && is_known(&range.extent) => fold_scoped(self, s),
                None => s.clone(),
            },
            // What the host cannot decide is one kernel of one thread, and a stage has its loops.
            StmtKind::For { .. } => s.clone(),
            StmtKind::If { cond, .. } if !is_known(cond) => s.clone(),
            StmtKind::Let { value, .. } if !is_known(value) => s.clone(),
            StmtKind::Block { block, .. } if !block.iters.is_empty() => s.clone(),
            _ => fold_scoped(self, s),
        }
    }
}

/// Whether the host knows the value.
fn is_known(e: &Expr) -> bool {
    e.effects().constant()
}

impl Share<'_> {
    /// A nest that is no stage, with its outermost loops as one that runs in parallel, if it is worth that, and their
    /// iterations are independent.
    fn shared_outside(&self, s: &Stmt) -> Option<Stmt> {
        let (loops, body) = nest(s);
        let alone = TensorFunc { body: s.clone(), ..self.func.clone() };
        if is_stage(&body) || statements(&alone, self.of_processor?) < WORTH_WAKING {
            return None;
        }
        let is_free = |k: &usize| self.is_free(&loops, *k, &body);
        let free = (0..loops.len()).take_while(is_free).count();
        let ((var, range), values) = fuse(loops[..free].iter())?;
        let left = loops.iter().filter(|(var, _)| !values.iter().any(|(v, _)| v == var));
        let inside = Subst::vars(values.clone()).stmt(&Stmt::nest(left.cloned(), body));
        Some(Stmt::for_loop(&var, range, ForKind::Parallel, inside))
    }

    /// Whether a loop of a nest may be outside of all others, and its iterations run at once.
    fn is_free(&self, loops: &[Loop], k: usize, body: &Stmt) -> bool {
        let (var, range) = &loops[k];
        let others = loops.iter().enumerate().filter(|(other, _)| *other != k);
        let inside = Stmt::nest(others.map(|(_, l)| l.clone()), body.clone());
        let l = Stmt::for_loop(var, range.clone(), ForKind::Parallel, inside);
        range.extent.as_int() != Some(1)
            && at_once::check(&l, self.scope.domain(), AtOnce::Threads).is_ok()
    }

    /// A nest with those of its loops outside, as one that runs in parallel, whose iterations are independent;
    /// `None` where there are none.
    fn shared(&self, s: &Stmt) -> Option<Stmt> {
        let (loops, body) = nest(s);
        let is_free = |k: &usize| self.is_free(&loops, *k, &body);
        let free: Vec<usize> = (0..loops.len()).filter(is_free).collect();
        let (fused, values) = fuse(free.iter().map(|k| &loops[*k]))?;
        // What one iteration does in turn may be done by all in turn, each with more of its own loops.
        if let StmtKind::Seq(parts) = body.kind()
            && values.len() == loops.len()
            && has_loops(&body)
            && fused.1.extent.as_int().is_none_or(|n| n < MANY)
        {
            let alone = parts.iter().map(|part| {
                let part = Stmt::nest(loops.iter().cloned(), part.clone());
                let part = Subst::refresh().stmt(&part);
                self.shared(&part).unwrap_or(part)
            });
            return Some(Stmt::seq(alone));
        }
        let left = loops.iter().filter(|(var, _)| !values.iter().any(|(v, _)| v == var));
        let inside = Stmt::nest(left.cloned(), body);
        let (var, range) = fused;
        let inside = Subst::vars(values).stmt(&inside);
        Some(Stmt::for_loop(&var, range, ForKind::Parallel, inside))
    }
}

/// Whether a statement is the block of a stage, which has its loops, or has some that were made for it.
fn is_stage(s: &Stmt) -> bool {
    let mut found = matches!(s.kind(), StmtKind::Store { .. });
    if let StmtKind::Block { block, .. } = s.kind() {
        found |= matches!(block.body.kind(), StmtKind::Store { .. });
    }
    s.for_each(|s| {
        found |= matches!(s.kind(), StmtKind::For { kind, .. } if *kind != ForKind::Serial)
    });
    found
}

fn has_loops(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| found |= matches!(s.kind(), StmtKind::For { .. }));
    found
}

/// Serial loops that are directly inside one another and of which none says how far another one runs, and what is in
/// them. Their bounds are known where the first of them begins.
fn nest(s: &Stmt) -> (Vec<(Var, Range)>, Stmt) {
    let (mut loops, mut s): (Vec<(Var, Range)>, _) = (Vec::new(), s.clone());
    while let StmtKind::For { var, range, kind: ForKind::Serial, body, .. } = s.kind() {
        let vars = || loops.iter().map(|l| &l.0);
        let depends = |e: &Expr| !is_known(e) || vars().any(|v| e.mentions(v));
        if depends(&range.min) || depends(&range.extent) {
            break;
        }
        loops.push((var.clone(), range.clone()));
        s = body.clone();
    }
    (loops, s)
}

/// A variable with its range.
type Loop = (Var, Range);

/// One loop for several, with what each variable is of its variable. Quotients by open sizes are not linear, so that
/// only the outermost of them has an open extent: the first one that has; others stay where they are, and so do those
/// with which there would be more iterations than `int32` counts.
fn fuse<'a>(loops: impl Iterator<Item = &'a Loop>) -> Option<(Loop, Vec<(Var, Expr)>)> {
    let (open, fixed): (Vec<&Loop>, Vec<&Loop>) =
        loops.partition(|(_, range)| range.extent.as_int().is_none());
    let mut count = Dim::from(1);
    let mut all = Vec::new();
    for l in open.into_iter().take(1).chain(fixed) {
        let more = count * *dim::of_shape(std::slice::from_ref(&l.1.extent))?.first()?;
        if more.fits_int32() {
            count = more;
            all.push(l);
        }
    }
    let first = &all.first()?.0;
    let (dtype, fused) =
        (first.dtype(), Var::new(format!("{}_fused", first.name()), first.dtype()));
    let mut inner = Expr::int(1, dtype);
    let mut values = Vec::new();
    for (k, (var, range)) in all.iter().enumerate().rev() {
        let extent = range.extent.clone().cast(dtype);
        let digit = fused.expr().floordiv(inner.clone());
        let digit = if k == 0 { digit } else { digit.floormod(extent.clone()) };
        values.push((var.clone(), range.min.clone() + digit.cast(var.dtype())));
        inner = extent * inner;
    }
    Some(((fused, Range::upto(inner)), values))
}
