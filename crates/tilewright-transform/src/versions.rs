//! Versions of a loop for the values that an expression has.
//!
//! ```text
//! for io in range(1):                          if n % 4 == 1:
//!     for ii in range(4):                          for io in range(1):
//!         if io * 4 + ii < n % 4:                      for ii in range(1):
//!             C[io * 4 + ii] = ...       →                 C[io * 4 + ii] = ...
//!                                              if n % 4 == 2:
//!                                                  for io in range(1):
//!                                                      for ii in range(2):
//!                                                          C[io * 4 + ii] = ...
//!                                              ...
//! ```
//!
//! One version runs, whichever the value is: where it may have others than those that are given, the loop itself, under
//! the condition that it has none of these. In a version what its condition decides is gone, and loops that do
//! nothing from the iteration of that number on end there: what is left over of tiles has a known number of rows.

use tilewright_ir::visit::{Subst, fold_stmt_children};
use tilewright_ir::{Error, Expr, Fold, Range, Result, Stmt, StmtKind, TensorFunc, Var};
use tilewright_polyhedral::scope::{Copies, Scope, Scoped, fold_scoped, under};

use crate::settle::settle;

/// Makes versions of one loop, the same node in memory: for each of some values of an expression of sizes and of loops
/// around. Second, the variables of their loops, in the order of the values, that of others last.
///
/// # Errors
/// `Refused` where the expression depends on memory, and where the copies are too many.
pub fn version_loop(
    func: &TensorFunc,
    target: &Stmt,
    value: &Expr,
    cases: &[i64],
) -> Result<(TensorFunc, Vec<Var>)> {
    let mut versions = Versions {
        scope: Scope::at_entry(func),
        copies: Copies::within(func),
        target,
        value,
        cases,
        made: Ok(Vec::new()),
    };
    let body = versions.stmt(&func.body);
    Ok((TensorFunc { body, ..func.clone() }, versions.made?))
}

struct Versions<'a> {
    scope: Scope,
    copies: Copies,
    target: &'a Stmt,
    value: &'a Expr,
    cases: &'a [i64],
    /// The variables of the versions.
    made: Result<Vec<Var>>,
}

impl Scoped for Versions<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Versions<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if !s.ptr_eq(self.target) {
            return fold_scoped(self, s);
        }
        match self.all(s) {
            Ok((new, made)) => {
                self.made = Ok(made);
                new
            }
            Err(e) => {
                self.made = Err(e.at(s.span()));
                s.clone()
            }
        }
    }
}

impl Versions<'_> {
    fn all(&mut self, s: &Stmt) -> Result<(Stmt, Vec<Var>)> {
        let StmtKind::For { range, .. } = s.kind() else {
            return Err(Error::internal("a loop cursor is no loop"));
        };
        let value = self.value;
        if self.scope.index(value).is_none() {
            return Err(Error::refused(format!("the value {value} depends on memory")));
        }
        if self.cases.is_empty() || !self.copies.allows(s, self.cases.len()) {
            return Err(Error::refused(format!("{} versions of a loop", self.cases.len())));
        }
        let conditions = self
            .cases
            .iter()
            .map(|case| (value.clone().equal(Expr::int(*case, value.dtype())), Some(*case)));
        let mut all: Vec<(Expr, Option<i64>)> = conditions.collect();
        let others =
            self.cases.iter().map(|n| value.clone().not_equal(Expr::int(*n, value.dtype())));
        let others = others.reduce(Expr::and);
        all.extend(others.map(|cond| (cond, None)));
        let (mut new, mut made) = (Vec::new(), Vec::new());
        for (cond, case) in all {
            // Where no iteration has the value, there is no version.
            let runs = range.extent.clone().greater(0);
            if self.scope.proves(&!(cond.clone().and(runs))) {
                continue;
            }
            let version = under(self, &cond, true, |v| v.version(s, case));
            let version = if made.is_empty() { version } else { self.copies.copy(&version) };
            made.extend(version.loop_var().cloned());
            new.push(Stmt::guard(cond, version));
        }
        Ok((Stmt::seq(new), made))
    }

    /// The loop where the value is known, or none of those that are given.
    fn version(&mut self, s: &Stmt, case: Option<i64>) -> Stmt {
        // A size is the number that it has.
        let known = self.value.as_var().zip(case);
        let known = known.map(|(v, case)| Subst::vars([(v.clone(), Expr::int(case, v.dtype()))]));
        let s = &known.map_or_else(|| s.clone(), |mut known| known.stmt(s));
        let StmtKind::For { var, range, body, .. } = s.kind() else { return s.clone() };
        let one = Expr::int(1, range.extent.dtype());
        let once = self.scope.proves(&range.extent.clone().equal(one.clone()));
        let extent = if once { one } else { range.extent.clone() };
        let range = Range { min: range.min.clone(), extent };
        let mut scope = self.scope.clone();
        scope.enter(var, &range);
        let short = case.map(|case| Shortened { scope: scope.clone(), most: case }.stmt(body));
        s.with_loop(range, settle(short.as_ref().unwrap_or(body), &scope))
    }
}

/// Ends loops after so many iterations where the others do nothing.
struct Shortened {
    scope: Scope,
    most: i64,
}

impl Scoped for Shortened {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Shortened {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::For { var, range, body, .. } = s.kind() else {
            return match s.kind() {
                StmtKind::Block { .. } => s.clone(),
                StmtKind::If { .. } | StmtKind::Let { .. } | StmtKind::Seq(_) => {
                    fold_scoped(self, s)
                }
                _ => fold_stmt_children(self, s),
            };
        };
        let most = Expr::int(self.most, range.extent.dtype());
        let longer =
            range.min.as_int() == Some(0) && range.extent.as_int().is_some_and(|n| n > self.most);
        if longer {
            let mut inside = self.scope.clone();
            inside.enter(var, range);
            if ends(body, &inside, &var.expr().less(most.clone())) {
                let range = Range::upto(most);
                return fold_scoped(self, &s.with_loop(range, body.clone()));
            }
        }
        fold_scoped(self, s)
    }
}

/// Whether all that a statement does happens under a condition.
fn ends(s: &Stmt, scope: &Scope, cond: &Expr) -> bool {
    match s.kind() {
        StmtKind::For { var, range, body, .. } => {
            let mut inside = scope.clone();
            inside.enter(var, range);
            ends(body, &inside, cond)
        }
        StmtKind::Seq(all) => all.iter().all(|s| ends(s, scope, cond)),
        StmtKind::If { cond: taken, then, otherwise } => {
            let under = |holds: bool, s: &Stmt| {
                let mut inside = scope.clone();
                inside.learn(taken, holds);
                ends(s, &inside, cond)
            };
            under(true, then) && otherwise.as_ref().is_none_or(|s| under(false, s))
        }
        StmtKind::Block { predicate, .. } => {
            let mut inside = scope.clone();
            inside.learn(predicate, true);
            // A predicate that says nothing of the loop decides nothing.
            let vars = cond.any(|e| e.as_var().is_some_and(|v| predicate.mentions(v)));
            vars && inside.proves(cond)
        }
        _ => s.is_nop(),
    }
}
