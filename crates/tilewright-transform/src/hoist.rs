//! Conditions and bindings move out of the loops that they do not depend on.
//!
//! ```text
//! for i, j in T.grid(4, 4):            for i in range(4):
//!     if i < 3 and j < 2:       →          if i < 3:
//!         A[i, j] = 0.0                        for j in range(4):
//!                                                  if j < 2:
//!                                                      A[i, j] = 0.0
//! ```
//!
//! Around a loop, a condition becomes a branch between two copies of the loop, in each of which it
//! is decided; what was guarded in only one of them leaves nothing in the other. A binding moves as
//! it is. Loops are taken from the outside, so that everything ends up as far outside as it can.
//!
//! A condition stays inside
//!
//! * of a loop whose variable, or what is bound or allocated in it, it depends on. Where that is
//!   only a binding which can move too, it goes first;
//! * of a loop that writes to memory that the condition reads, or calls what might;
//! * of a sequence, whose other statements would have to be repeated;
//! * of a block, which stands for itself, and of a loop over threads;
//! * where it might **fault** outside: a load, or a division by something that may be zero, is
//!   evaluated before the loop only if the first iteration certainly gets to it.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{
    accessed, fold_expr_children, fold_stmt_children, free_vars, walk_expr, walk_range, walk_stmt,
};
use tilewright_ir::{
    BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, ForKind, Intrin, Remarks, Result, Span,
    Stmt, StmtKind, TensorFunc, Var, Visit,
};

use crate::pass::{self, Flag, Number, Run};
use crate::settle::settle;
use tilewright_polyhedral::scope::{
    Copies, MAX_COPIED, Scope, Scoped, fold_scoped, likely, scoped, under,
};

/// Which conditions `hoist_expression` moves.
const CONDITIONALS: Number = Number {
    name: "hoisted_conditionals",
    summary: "1 if statements + 2 if expressions + 4 other conditions + 8 using threads",
    default: 7,
    most: 15,
};

/// Which bindings `hoist_expression` moves.
const LET_BINDINGS: Number = Number {
    name: "hoisted_let_bindings",
    summary: "1 those that conditions need + 2 let statements + 4 let expressions",
    default: 7,
    most: 7,
};

/// Whether `hoist_if` takes conditions on threads.
const BLOCK_SCOPE: Flag = Flag {
    name: "support_block_scope_hoisting",
    summary: "also conditions that depend on a thread",
    default: false,
};

/// `hoist_expression` by name.
pub const PASS: pass::Pass = pass::Pass {
    name: "hoist_expression",
    summary: "move conditions and let bindings out of the loops that they do not depend on",
    options: &[&CONDITIONALS, &LET_BINDINGS],
    run: Run::Tensor(|f, given, why| {
        let (conditionals, bindings) = (given.get(&CONDITIONALS)?, given.get(&LET_BINDINGS)?);
        let what = Hoist::from_bits(conditionals.into(), bindings.into())?;
        Ok(hoist_expression(f, None, what, why))
    }),
};

/// `hoist_if` by name.
pub(crate) const IF: pass::Pass = pass::Pass {
    name: "hoist_if",
    summary: "move the conditions of if statements out of the loops that they do not depend on",
    options: &[&BLOCK_SCOPE],
    run: Run::Tensor(|f, given, why| {
        Ok(hoist_expression(f, None, Hoist::branches(given.get(&BLOCK_SCOPE)?), why))
    }),
};

/// Most conditions that one loop is copied for: each may double it.
const MAX_CONDITIONS: usize = 6;

/// What moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hoist {
    /// Conditions of `if`, and predicates of blocks.
    pub if_statements: bool,
    /// Conditions of `T.if_then_else`.
    pub if_expressions: bool,
    /// Boolean expressions inside of others: operands of `and` and `or`, what is selected by,
    /// what is stored.
    pub booleans: bool,
    /// Also conditions that depend on the index of a thread.
    pub using_threads: bool,
    /// Bindings that a condition needs, to move itself.
    pub required_bindings: bool,
    /// Statements that bind a variable.
    pub let_statements: bool,
    /// Expressions that bind a variable.
    pub let_expressions: bool,
}

impl Default for Hoist {
    fn default() -> Hoist {
        Hoist::new(7, 7)
    }
}

impl Hoist {
    /// Only the conditions of `if` statements, and no bindings.
    pub fn branches(using_threads: bool) -> Hoist {
        Hoist { using_threads, ..Hoist::new(1, 0) }
    }

    /// From bit sets. Of conditions: 1 for `if` statements, 2 for `if` expressions, 4 for other
    /// boolean expressions, 8 for those that depend on threads. Of bindings: 1 for required ones,
    /// 2 for statements, 4 for expressions.
    ///
    /// # Errors
    /// `Input` for other bits.
    pub fn from_bits(conditionals: i64, let_bindings: i64) -> Result<Hoist> {
        for (name, bits, all) in
            [("hoisted_conditionals", conditionals, 15), ("hoisted_let_bindings", let_bindings, 7)]
        {
            if bits & !all != 0 {
                return Err(Error::input(format!("`{name}` is {bits}, expected 0 to {all}")));
            }
        }
        Ok(Hoist::new(conditionals, let_bindings))
    }

    fn new(conditionals: i64, let_bindings: i64) -> Hoist {
        let (c, l) = (|bit| conditionals & bit != 0, |bit| let_bindings & bit != 0);
        Hoist {
            if_statements: c(1),
            if_expressions: c(2),
            booleans: c(4),
            using_threads: c(8),
            required_bindings: l(1),
            let_statements: l(2),
            let_expressions: l(4),
        }
    }
}

/// Moves what `what` says out of the loops of a function, or of a part of it: a statement of its
/// body, the same node in memory.
pub fn hoist_expression(
    func: &TensorFunc,
    part: Option<&Stmt>,
    what: Hoist,
    why: &mut Remarks,
) -> TensorFunc {
    let mut hoister = Hoister {
        what,
        part: part.unwrap_or(&func.body),
        active: false,
        scope: Scope::at_entry(func),
        copies: Copies::within(func),
        threads: HashSet::default(),
        depth: 0,
        why,
    };
    TensorFunc { body: hoister.stmt(&func.body), ..func.clone() }
}

struct Hoister<'a> {
    what: Hoist,
    part: &'a Stmt,
    /// Whether this is inside of the part.
    active: bool,
    scope: Scope,
    copies: Copies,
    /// Variables of loops over threads around.
    threads: HashSet<Var>,
    /// How many conditions the loop was copied for.
    depth: usize,
    why: &'a mut Remarks,
}

impl Scoped for Hoister<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Hoister<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if !self.active && s.ptr_eq(self.part) {
            self.active = true;
            let new = self.stmt(s);
            self.active = false;
            return new;
        }
        match s.kind() {
            StmtKind::For { var, kind: ForKind::ThreadBinding(_), .. } => {
                self.threads.insert(var.clone());
                fold_scoped(self, s)
            }
            StmtKind::For { .. } if self.active => self.out_of(s),
            _ => fold_scoped(self, s),
        }
    }
}

impl Hoister<'_> {
    /// Moves what can be moved out of a loop, and goes on inside.
    fn out_of(&mut self, s: &Stmt) -> Stmt {
        let (found, remarks) = Search::run(s, self);
        match found {
            Some(Found::Binding(var, value)) => {
                let rest = Unbind(&var).stmt(s);
                let body = scoped(self, |p| {
                    p.scope.bind(&var, &value);
                    p.stmt(&rest)
                });
                Stmt::let_in(&var, value, body)
            }
            Some(Found::Condition(cond))
                if self.depth < MAX_CONDITIONS && self.copies.allows(s, 1) =>
            {
                self.depth += 1;
                let (then, otherwise) = (self.side(s, &cond, true), self.side(s, &cond, false));
                self.depth -= 1;
                if otherwise.is_nop() {
                    Stmt::guard(cond, then)
                } else if then.is_nop() {
                    Stmt::guard(!cond, otherwise)
                } else {
                    Stmt::if_else(cond, then, self.copies.copy(&otherwise))
                }
            }
            found => {
                if let Some(Found::Condition(cond)) = found {
                    let text = format!("`{cond}` stays inside of the loop {}", name(s));
                    let note = if self.depth < MAX_CONDITIONS {
                        format!("its copies would have more than {MAX_COPIED} nodes")
                    } else {
                        format!("the loop was already copied for {MAX_CONDITIONS} conditions")
                    };
                    self.why.push(Error::refused(text).at(s.span()).note(note));
                }
                self.why.extend(remarks);
                let depth = std::mem::take(&mut self.depth);
                let new = fold_scoped(self, s);
                self.depth = depth;
                new
            }
        }
    }

    /// A statement where a condition holds, or where it does not.
    fn side(&mut self, s: &Stmt, cond: &Expr, holds: bool) -> Stmt {
        under(self, cond, holds, |p| {
            let decided = Decide { cond: likely(cond).unwrap_or(cond), holds }.stmt(s);
            let settled = settle(&decided, &p.scope);
            p.stmt(&settled)
        })
    }
}

/// The variable of a loop, for messages.
fn name(s: &Stmt) -> String {
    s.loop_var().map_or_else(String::new, |v| format!("`{}`", v.name()))
}

/// Drops the binding of a variable, which is bound further out.
struct Unbind<'a>(&'a Var);

impl Fold for Unbind<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Let(v, _, body) if v == self.0 => body.clone(),
            _ => fold_expr_children(self, e),
        }
    }
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Let { var, body, .. } if var == self.0 => body.clone(),
            _ => fold_stmt_children(self, s),
        }
    }
}

/// Puts its value in the place of a condition that does not change; blocks keep theirs.
struct Decide<'a> {
    cond: &'a Expr,
    holds: bool,
}

impl Fold for Decide<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        if e.dtype() == self.cond.dtype() && same_expr(e, self.cond) {
            Expr::bool(self.holds)
        } else {
            fold_expr_children(self, e)
        }
    }
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Assume(_) => s.clone(),
            _ => fold_stmt_children(self, s),
        }
    }
    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        b.clone()
    }
}

/// What moves out of a loop next.
enum Found {
    Binding(Var, Expr),
    Condition(Expr),
}

/// Where a condition is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionKind {
    IfStatement,
    IfExpression,
    Inside,
}

/// A binding inside of the loop.
struct Binding {
    var: Var,
    value: Expr,
    certain: bool,
}

/// Looks for the first thing that can move out of a loop.
struct Search<'a> {
    what: Hoist,
    scope: Scope,
    threads: &'a HashSet<Var>,
    /// Variables that are defined in the loop.
    inner: HashSet<Var>,
    bindings: Vec<Binding>,
    /// Memory that changes in the loop, by pointer; `None` if any may.
    written: Option<HashSet<Var>>,
    /// Whether this place is certainly reached in the first iteration.
    certain: bool,
    /// Whether other statements run in the same iteration.
    in_sequence: bool,
    /// Whether this is inside of `T.likely`.
    likely: bool,
    /// The loop, for messages.
    name: String,
    span: Option<Span>,
    found: Option<Found>,
    remarks: Remarks,
}

impl Search<'_> {
    fn run(s: &Stmt, hoister: &Hoister<'_>) -> (Option<Found>, Remarks) {
        let effects = s.effects();
        let mut search = Search {
            what: hoister.what,
            scope: hoister.scope.clone(),
            threads: &hoister.threads,
            inner: HashSet::default(),
            bindings: Vec::new(),
            written: (!effects.impure()).then(|| data_of(accessed(s).1)),
            certain: true,
            in_sequence: false,
            likely: false,
            name: name(s),
            span: s.span(),
            found: None,
            remarks: Remarks::new(),
        };
        if let StmtKind::For { var, range, body, .. } = s.kind() {
            search.inside(var, range, body);
        }
        (search.found, search.remarks)
    }

    /// The body of a loop. What is known of its variable does not count: the question is always
    /// what holds in front of the loop.
    fn inside(&mut self, var: &Var, range: &tilewright_ir::Range, body: &Stmt) {
        self.inner.insert(var.clone());
        let runs = self.scope.proves(&range.extent.clone().greater(0));
        self.maybe(runs, |s| s.stmt(body));
    }

    /// Does what is only reached if `certain`.
    fn maybe(&mut self, certain: bool, work: impl FnOnce(&mut Self)) {
        let before = self.certain;
        self.certain &= certain;
        work(self);
        self.certain = before;
    }

    /// Why the value of an expression at this place is not to be had in front of the loop.
    fn obstacle(&self, e: &Expr, certain: bool) -> Option<String> {
        let effects = e.effects();
        if effects.impure() {
            return Some("its value may be another one each time".into());
        }
        if effects.loads {
            let reads = accessed(&Stmt::new(StmtKind::Evaluate(e.clone()))).0;
            let Some(written) = &self.written else {
                return Some("the loop calls what may change memory".into());
            };
            if let Some(b) = reads.iter().find(|b| written.contains(&b.data)) {
                return Some(format!("the loop writes to `{}`", b.name));
            }
        }
        if certain || !effects.may_fail() {
            return None;
        }
        if effects.loads {
            return Some("it loads, and the first iteration may not get to it".into());
        }
        let demand = self.scope.unmet(e)?;
        Some(format!("it {demand} where it is not evaluated"))
    }

    /// The bindings that an expression needs in front of the loop, innermost last; `None` if that
    /// cannot be.
    fn needed(&self, e: &Expr, order: &mut Vec<usize>) -> Option<()> {
        for v in free_vars(e).iter().filter(|v| self.inner.contains(v)) {
            let k = self.bindings.iter().position(|b| b.var == *v)?;
            let b = &self.bindings[k];
            if self.obstacle(&b.value, b.certain).is_some() {
                return None;
            }
            self.needed(&b.value, order)?;
            if !order.contains(&k) {
                order.push(k);
            }
        }
        Some(())
    }

    /// A condition of the text.
    fn condition(&mut self, e: &Expr, kind: ConditionKind) {
        let wanted = match kind {
            ConditionKind::IfStatement => self.what.if_statements,
            ConditionKind::IfExpression => self.what.if_expressions,
            ConditionKind::Inside => self.what.booleans,
        };
        let scalar = e.dtype().is_bool() && e.dtype().lanes == 1 && e.as_int().is_none();
        if self.found.is_some() || !wanted || !scalar {
            return;
        }
        let mut bindings = Vec::new();
        if self.needed(e, &mut bindings).is_none() {
            return;
        }
        let free = free_vars(e);
        let obstacle = if self.in_sequence {
            Some("the statements around it would have to be repeated".into())
        } else if !bindings.is_empty() && !self.what.required_bindings {
            Some("it needs a binding that stays inside".into())
        } else if !self.what.using_threads && !free.is_disjoint(self.threads) {
            Some("it depends on the index of a thread".into())
        } else {
            self.obstacle(e, self.certain)
        };
        match (obstacle, bindings.first()) {
            (Some(note), _) => {
                self.stays(format!("`{e}`"), note);
            }
            (None, Some(k)) => {
                let b = &self.bindings[*k];
                self.found = Some(Found::Binding(b.var.clone(), b.value.clone()));
            }
            (None, None) => {
                let cond = if self.likely { likely_call(e.clone()) } else { e.clone() };
                self.found = Some(Found::Condition(cond));
            }
        }
    }

    fn stays(&mut self, what: String, note: String) {
        let text = format!("{what} stays inside of the loop {}", self.name);
        self.remarks.push(Error::refused(text).at(self.span).note(note));
    }

    /// A binding of the text; then what it is for.
    fn binding(&mut self, var: &Var, value: &Expr, wanted: bool) {
        let outside = free_vars(value).is_disjoint(&self.inner);
        if self.found.is_none() && wanted && outside {
            match self.obstacle(value, self.certain) {
                None => self.found = Some(Found::Binding(var.clone(), value.clone())),
                Some(note) => self.stays(format!("the binding of `{}`", var.name()), note),
            }
        }
        self.inner.insert(var.clone());
        let (var, value, certain) = (var.clone(), value.clone(), self.certain);
        self.bindings.push(Binding { var, value, certain });
    }

    /// The parts of an expression that was looked at itself.
    fn parts(&mut self, e: &Expr) {
        if self.found.is_some() {
            return;
        }
        match e.kind() {
            ExprKind::Binary(BinOp::And | BinOp::Or, a, b) => {
                self.expr(a);
                self.maybe(false, |s| s.expr(b));
            }
            _ if likely(e).is_some() => {
                let before = std::mem::replace(&mut self.likely, true);
                walk_expr(self, e);
                self.likely = before;
            }
            ExprKind::IfThenElse(..) | ExprKind::Let(..) => self.expr(e),
            _ => walk_expr(self, e),
        }
    }
}

fn data_of(b: Vec<Buffer>) -> HashSet<Var> {
    b.iter().map(|b| b.data.clone()).collect()
}

fn likely_call(e: Expr) -> Expr {
    let target = tilewright_ir::CallTarget::Intrin(Intrin::Likely);
    Expr::call(target, vec![e], tilewright_ir::DType::BOOL)
}

impl Visit for Search<'_> {
    fn expr(&mut self, e: &Expr) {
        if self.found.is_some() {
            return;
        }
        match e.kind() {
            ExprKind::IfThenElse(c, a, b) => {
                self.condition(c, ConditionKind::IfExpression);
                self.parts(c);
                self.maybe(false, |s| {
                    s.expr(a);
                    s.expr(b);
                });
            }
            ExprKind::Let(var, value, body) => {
                self.parts(value);
                self.binding(var, value, self.what.let_expressions);
                self.expr(body);
            }
            _ => {
                self.condition(e, ConditionKind::Inside);
                self.parts(e);
            }
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        if self.found.is_some() {
            return;
        }
        match s.kind() {
            StmtKind::If { cond, then, otherwise } => {
                self.condition(cond, ConditionKind::IfStatement);
                self.parts(cond);
                self.maybe(false, |f| {
                    f.stmt(then);
                    otherwise.iter().for_each(|o| f.stmt(o));
                });
            }
            StmtKind::For { var, range, kind, body, .. } => {
                walk_range(self, range);
                // Across the start of threads only what is asked for.
                if self.what.using_threads || !matches!(kind, ForKind::ThreadBinding(_)) {
                    self.inside(var, range, body);
                }
            }
            StmtKind::Let { var, value, body } => {
                self.parts(value);
                self.binding(var, value, self.what.let_statements);
                self.stmt(body);
            }
            StmtKind::Seq(stmts) => {
                let before = (self.in_sequence, self.certain);
                self.in_sequence = true;
                for s in stmts {
                    self.stmt(s);
                    // It may stop the program.
                    self.certain &=
                        !matches!(s.kind(), StmtKind::Assert { .. }) && !s.effects().impure();
                }
                (self.in_sequence, self.certain) = before;
            }
            StmtKind::Allocate { buffer, .. }
            | StmtKind::Declare { buffer, .. }
            | StmtKind::Constant { buffer, .. } => {
                // What is loaded from it depends on it.
                self.inner.insert(buffer.data.clone());
                if let Some(written) = &mut self.written {
                    written.insert(buffer.data.clone());
                }
                walk_stmt(self, s);
            }
            StmtKind::Block { bindings, predicate, .. } => {
                self.condition(predicate, ConditionKind::IfStatement);
                self.parts(predicate);
                bindings.iter().for_each(|b| self.expr(b));
            }
            StmtKind::Assume(_) | StmtKind::Assert { .. } => {}
            _ => walk_stmt(self, s),
        }
    }
}
