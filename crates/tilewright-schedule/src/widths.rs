//! No step of a schedule makes index arithmetic that leaves its type.
//!
//! Primitives compute sizes with [`tilewright_ir::extent`] and widen indices where they see that
//! `int32` is too narrow. Here is the check of all of them: a function whose arithmetic stays in
//! its type may not become one in which a sum, difference or product of known bounds, the end of a
//! loop or the size of a buffer does not.
//!
//! **Limits.** Arithmetic over open sizes and loaded values is not judged. A program that wraps on
//! purpose says so before the step; then nothing is known of what the step added.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{Interval, Ranges};
use tilewright_ir::visit::{walk_block, walk_expr, walk_func, walk_stmt};
use tilewright_ir::{
    Block, Buffer, Error, Expr, ExprKind, Range, Result, Stmt, StmtKind, TensorFunc, Var, Visit,
    extent,
};

/// Refuses a step that leaves arithmetic beyond its type behind where there was none.
///
/// # Errors
/// The first sum, difference, product, end of a loop or size of a buffer of `new` that its type does not hold.
pub fn check(old: &TensorFunc, new: &TensorFunc) -> Result<()> {
    match beyond(new, unchanged(old, new)) {
        Some(e) if beyond(old, HashSet::default()).is_none() => Err(e),
        _ => Ok(()),
    }
}

/// The first index arithmetic, loop or buffer of a function that leaves its type, but in some statements.
fn beyond(func: &TensorFunc, unchanged: HashSet<usize>) -> Option<Error> {
    let mut widths = Widths { unchanged, ..Widths::default() };
    walk_func(&mut widths, func);
    widths.found
}

/// The statements, by address, that a step left as they were; none where a variable has other values than before,
/// since arithmetic with it may leave its type then.
fn unchanged(old: &TensorFunc, new: &TensorFunc) -> HashSet<usize> {
    let (mut before, mut after) = (Bindings::default(), Bindings::default());
    walk_func(&mut before, old);
    walk_func(&mut after, new);
    let mut bound = after.values.iter();
    let same = bound.all(|(var, now)| before.values.get(var).is_none_or(|was| are_same(was, now)));
    if same && !before.differ && !after.differ { before.statements } else { HashSet::default() }
}

/// The first value of a variable and the number of values where it is that of a loop, the value twice otherwise.
type Values = [Expr; 2];

fn are_same(a: &Values, b: &Values) -> bool {
    a.iter().zip(b).all(|(a, b)| a.address() == b.address() || same_expr(a, b))
}

/// What variables are bound to, and the statements of a function.
#[derive(Default)]
struct Bindings {
    values: HashMap<Var, Values>,
    /// Whether a variable is bound to several values.
    differ: bool,
    statements: HashSet<usize>,
}

impl Bindings {
    fn bind(&mut self, var: &Var, [a, b]: [&Expr; 2]) {
        let now = [a.clone(), b.clone()];
        self.differ |= self.values.get(var).is_some_and(|was| !are_same(was, &now));
        self.values.insert(var.clone(), now);
    }
}

impl Visit for Bindings {
    fn stmt(&mut self, s: &Stmt) {
        self.statements.insert(s.address());
        match s.kind() {
            StmtKind::For { var, range, .. } => self.bind(var, [&range.min, &range.extent]),
            StmtKind::Let { var, value, .. } => self.bind(var, [value, value]),
            _ => {}
        }
        walk_stmt(self, s);
    }

    fn block(&mut self, b: &Block) {
        b.iters.iter().for_each(|i| self.bind(&i.var, [&i.domain.min, &i.domain.extent]));
        walk_block(self, b);
    }

    /// Expressions bind what they contain themselves.
    fn expr(&mut self, _: &Expr) {}
}

#[derive(Default)]
struct Widths {
    ranges: Ranges,
    /// Nodes that were looked at, kept alive so that their addresses stay theirs.
    seen: HashSet<usize>,
    kept: Vec<Expr>,
    /// Statements that need no look.
    unchanged: HashSet<usize>,
    found: Option<Error>,
}

impl Widths {
    /// Takes down the values of a loop or iteration variable.
    fn bind(&mut self, var: &Var, range: &Range) {
        let (min, n) = (self.ranges.exact(&range.min), self.ranges.exact(&range.extent));
        if let (Some(min), Some(n)) = (min, n)
            && n.hi > 0
            && !extent::holds(var.dtype(), min.hi + n.hi - 1)
        {
            self.found.get_or_insert_with(|| {
                let (name, dtype, last) = (var.name(), var.dtype(), min.hi + n.hi - 1);
                Error::refused(format!("`{name}`, which is {dtype}, would go up to {last}"))
            });
        }
        self.ranges.bind_loop(var, range);
    }
}

impl Visit for Widths {
    fn expr(&mut self, e: &Expr) {
        if self.found.is_some() || !self.seen.insert(e.address()) {
            return;
        }
        self.kept.push(e.clone());
        if let ExprKind::Let(var, value, _) = e.kind()
            && let Some(values) = self.ranges.exact(value)
        {
            self.ranges.bind_exact(var, values);
        }
        walk_expr(self, e);
        if let Some(Interval { lo, hi }) = self.ranges.leaves(e) {
            let t = e.dtype().scalar();
            let far = if extent::holds(t, hi) { lo } else { hi };
            self.found.get_or_insert_with(|| {
                Error::refused(format!("the {t} arithmetic `{e}` would reach {far}"))
                    .note(format!("{t} ends there, and the value would be another one"))
            });
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        if self.found.is_some() || self.unchanged.contains(&s.address()) {
            return;
        }
        match s.kind() {
            StmtKind::For { var, range, .. } => self.bind(var, range),
            StmtKind::Let { var, value, .. } => {
                if let Some(values) = self.ranges.exact(value) {
                    self.ranges.bind_exact(var, values);
                }
            }
            _ => {}
        }
        walk_stmt(self, s);
    }

    fn block(&mut self, b: &Block) {
        for i in &b.iters {
            self.bind(&i.var, &i.domain);
        }
        walk_block(self, b);
    }

    fn buffer_def(&mut self, b: &Buffer) {
        let Some(mut shape) = b.const_shape() else { return };
        shape.push(i64::try_from(b.dtype().bytes()).unwrap_or(i64::MAX));
        if let Err(e) = extent::count(&shape) {
            self.found.get_or_insert_with(|| e.context(format!("`{}`", b.name)));
        }
    }
}
