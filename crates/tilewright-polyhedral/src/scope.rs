//! What is known at a place of a function, of indices alone.
//!
//! A [`Scope`] holds the loops, guards and bindings around a place and the assumptions before it, as
//! far as they do not depend on memory: such facts hold wherever the place is, whatever is written.
//! [`fold_scoped`] keeps it up to date while a pass rebuilds the tree. Inside of a block only the
//! domains of its variables are known, not what they are bound to, so that the block still stands
//! for itself afterwards.

use std::cell::RefCell;
use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use crate::Domain;
use tilewright_ir::condition::parts;
use tilewright_ir::demand::{Demand, unmet};
use tilewright_ir::visit::{Subst, fold_block_children, fold_stmt_children};
use tilewright_ir::{
    Block, CallTarget, Expr, ExprKind, Fold, Intrin, Range, Stmt, StmtKind, TensorFunc, Var,
};

use crate::points::Points;
use crate::sizes::sizes;

/// The condition inside of `T.likely(...)`.
pub fn likely(e: &Expr) -> Option<&Expr> {
    match e.kind() {
        ExprKind::Call(CallTarget::Intrin(Intrin::Likely), args) => args.first(),
        _ => None,
    }
}

/// The condition in `T.likely(...)` or `T.ignore_loop_partition(...)`.
pub fn hinted(e: &Expr) -> Option<&Expr> {
    match e.kind() {
        ExprKind::Call(CallTarget::Intrin(op), args) if op.is_hint() => args.first(),
        _ => None,
    }
}

/// Most nodes, as text, of a value that replaces a variable.
pub const MAX_VALUE: u32 = 1024;

/// What is known at a place. A clone shares the sets, which are made when they are asked for.
#[derive(Clone)]
pub struct Scope {
    points: Points,
    /// The loops around, outermost first.
    loops: Vec<(Var, Range)>,
    /// Values of bindings, in terms of loops and parameters.
    bound: RefCell<Subst>,
    /// Variables whose values depend on memory.
    hidden: HashSet<Var>,
    /// How many conditions were learned.
    pub guards: usize,
}

impl Scope {
    /// The start of a function: sizes are not negative.
    pub fn at_entry(func: &TensorFunc) -> Scope {
        Scope {
            points: Points::new(sizes(func)),
            loops: Vec::new(),
            bound: RefCell::default(),
            hidden: HashSet::default(),
            guards: 0,
        }
    }

    /// The same, where questions may take so many operations.
    pub fn with_quota(self, operations: u64) -> Scope {
        Scope { points: Points::new(self.domain().with_quota(operations)), ..self }
    }

    /// The points at which the place is reached.
    pub fn domain(&self) -> &Domain {
        self.points.domain()
    }

    /// The same by their parts.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// An expression with the values of bindings, as far as these do not depend on memory.
    pub fn inlined(&self, e: &Expr) -> Expr {
        self.bound.borrow_mut().expr(e)
    }

    /// An expression in terms of loops and parameters; `None` if it depends on memory.
    pub fn index(&self, e: &Expr) -> Option<Expr> {
        Some(self.inlined(e)).filter(|e| self.knows(e))
    }

    /// Whether an expression without bindings depends on loops and parameters only.
    pub fn knows(&self, e: &Expr) -> bool {
        e.effects().constant() && !e.mentions_any(&self.hidden)
    }

    /// Whether the value of a variable depends on memory.
    pub fn hides(&self, var: &Var) -> bool {
        self.hidden.contains(var)
    }

    /// Enters a loop, and says whether its bounds are known.
    pub fn enter(&mut self, var: &Var, range: &Range) -> bool {
        match (self.index(&range.min), self.index(&range.extent)) {
            (Some(min), Some(extent)) => {
                let range = Range { min, extent };
                self.points = self.points.with_var(var, &range);
                self.loops.push((var.clone(), range));
                true
            }
            _ => {
                self.hidden.insert(var.clone());
                false
            }
        }
    }

    /// Enters a block, of whose variables only the domains are known.
    pub fn enter_block(&mut self, b: &Block) {
        for iter in &b.iters {
            self.enter(&iter.var, &iter.domain);
        }
    }

    /// Gives a variable its value.
    ///
    /// A value that would be too large as text is not looked into: values of values of values
    /// double each time that they stand twice.
    pub fn bind(&mut self, var: &Var, value: &Expr) {
        match self.index(value).filter(|v| v.size() <= MAX_VALUE) {
            Some(value) => {
                self.bound.get_mut().vars.insert(var.clone(), value);
            }
            None => {
                self.hidden.insert(var.clone());
            }
        }
    }

    /// Takes a condition as true, or as false, and says whether all of it is known.
    pub fn learn(&mut self, cond: &Expr, holds: bool) -> bool {
        let mut all = true;
        for (part, holds) in parts(cond, holds) {
            if let Some(inner) = likely(&part) {
                all &= self.learn(inner, holds);
            } else if let Some(part) = self.index(&part).filter(|c| c.dtype().lanes == 1) {
                self.points = self.points.with_guard(&part.being(holds));
                self.guards += 1;
            } else {
                all = false;
            }
        }
        all
    }

    /// Takes what a statement promises for those after it.
    pub fn after(&mut self, s: &Stmt) {
        if let StmtKind::Assume(cond) | StmtKind::Assert { cond, .. } = s.kind() {
            self.learn(cond, true);
        }
    }

    /// Whether a condition holds whenever the place is reached.
    pub fn proves(&self, cond: &Expr) -> bool {
        self.index(cond).is_some_and(|c| self.domain().proves(&c))
    }

    /// The first operation in an expression that may not be defined here.
    pub fn unmet(&self, e: &Expr) -> Option<Demand> {
        unmet(e, |holds| self.proves(holds))
    }

    /// The loops around the place whose bounds are known, outermost first.
    pub fn loops(&self) -> &[(Var, Range)] {
        &self.loops
    }

    /// Their variables.
    pub fn vars(&self) -> Vec<Var> {
        self.loops.iter().map(|(v, _)| v.clone()).collect()
    }
}

/// A fold that knows what holds at each place.
pub trait Scoped: Fold {
    /// What holds here.
    fn scope(&mut self) -> &mut Scope;
}

/// Runs with what is learned on the way forgotten afterwards.
pub fn scoped<F: Scoped + ?Sized, R>(f: &mut F, work: impl FnOnce(&mut F) -> R) -> R {
    let saved = f.scope().clone();
    let result = work(f);
    *f.scope() = saved;
    result
}

/// Runs where a condition holds, or does not.
pub fn under<F: Scoped + ?Sized, R>(
    f: &mut F,
    cond: &Expr,
    holds: bool,
    work: impl FnOnce(&mut F) -> R,
) -> R {
    scoped(f, |f| {
        f.scope().learn(cond, holds);
        work(f)
    })
}

/// Folds the parts of a statement, each in its scope; those of a block in that of its variables.
pub fn fold_scoped<F: Scoped + ?Sized>(f: &mut F, s: &Stmt) -> Stmt {
    match s.kind() {
        StmtKind::For { .. } | StmtKind::If { .. } | StmtKind::Let { .. } | StmtKind::Seq(_) => {
            scoped(f, |f| {
                fold_stmt_children(&mut Parts { f, of: s, head: Vec::new(), first: true }, s)
            })
        }
        StmtKind::Block { block, .. } => scoped(f, |f| {
            f.scope().enter_block(block);
            fold_stmt_children(f, s)
        }),
        _ => fold_stmt_children(f, s),
    }
}

/// Folds the parts of one statement, each in its scope.
struct Parts<'f, F: ?Sized> {
    f: &'f mut F,
    of: &'f Stmt,
    /// The expressions in front of its statements, which are folded first.
    head: Vec<Expr>,
    /// Whether none of its statements was folded yet.
    first: bool,
}

impl<F: Scoped + ?Sized> Fold for Parts<'_, F> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let new = self.f.expr(e);
        self.head.push(new.clone());
        new
    }

    fn var_def(&mut self, v: &Var) -> Var {
        self.f.var_def(v)
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let Parts { f, of, head, first } = self;
        let first = std::mem::take(first);
        let learn = |scope: &mut Scope| match (of.kind(), &head[..]) {
            (StmtKind::For { var, .. }, [min, extent, ..]) => {
                scope.enter(var, &Range { min: min.clone(), extent: extent.clone() });
            }
            (StmtKind::If { .. }, [cond]) => {
                scope.learn(cond, first);
            }
            (StmtKind::Let { var, .. }, [value]) => scope.bind(var, value),
            _ => {}
        };
        if let StmtKind::Seq(_) = of.kind() {
            let new = f.stmt(s);
            f.scope().after(s);
            return new;
        }
        scoped(*f, |f| {
            learn(f.scope());
            f.stmt(s)
        })
    }
}

/// Most nodes that a pass adds to a function by copies. Copies of loops in copies of loops multiply.
pub const MAX_COPIED: u64 = 1 << 16;

/// Copies of parts of a function that can stand beside the original.
pub struct Copies {
    names: HashSet<Arc<str>>,
    /// Nodes that are, or will be, copied.
    nodes: u64,
}

impl Copies {
    /// For copies within a function.
    pub fn within(func: &TensorFunc) -> Copies {
        let mut names = HashSet::default();
        func.body.for_each(|s| {
            if let StmtKind::Block { block, .. } = s.kind() {
                names.insert(block.name.clone());
            }
        });
        Copies { names, nodes: 0 }
    }

    /// Whether a statement may be copied so many times more; if so, that is taken down.
    pub fn allows(&mut self, s: &Stmt, times: usize) -> bool {
        let nodes = u64::from(s.size()).saturating_mul(times as u64).saturating_add(self.nodes);
        let fits = nodes <= MAX_COPIED;
        if fits {
            self.nodes = nodes;
        }
        fits
    }

    /// A copy with variables, buffers and names of blocks of its own.
    pub fn copy(&mut self, s: &Stmt) -> Stmt {
        struct Rename<'a>(&'a mut HashSet<Arc<str>>);
        impl Fold for Rename<'_> {
            fn expr(&mut self, e: &Expr) -> Expr {
                e.clone()
            }
            fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
                let (mut name, mut k) = (b.name.clone(), 0);
                while !self.0.insert(name.clone()) {
                    k += 1;
                    name = format!("{}_{k}", b.name).into();
                }
                let b = fold_block_children(self, b);
                Arc::new(Block { name, ..(*b).clone() })
            }
        }
        Rename(&mut self.names).stmt(&Subst::refresh().stmt(s))
    }
}
