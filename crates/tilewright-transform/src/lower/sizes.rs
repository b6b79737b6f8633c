//! What is computed of sizes alone is computed once, before all loops.
//!
//! ```text
//!                                              half: T.int32 = (n + 1) // 2
//! for i in T.parallel((n + 1) // 2):           for i in T.parallel(half):
//!     for j in range(8):                   →       for j in range(8):
//!         B[i * 8 + j * ((n + 1) // 2)]                B[i * 8 + j * half]
//! ```
//!
//! To who compiles the loops, such a number is then one that does not change, and not an expression to look into
//! at each access. Quotients are taken of constants alone, since what is guarded may divide by zero.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{BinOp, Expr, ExprKind, Fold, Stmt, StmtKind, TensorFunc, Var};

use crate::names::UniqueNames;

/// A lowered function in which no loop computes sizes of sizes.
pub(super) fn hoist_sizes(func: &TensorFunc) -> TensorFunc {
    let given: HashSet<Var> =
        func.shape_vars().into_iter().chain(func.scalars().cloned()).collect();
    if given.is_empty() {
        return func.clone();
    }
    let mut names = UniqueNames::default();
    given.iter().for_each(|v| names.reserve(v.name().clone()));
    let mut sizes = Sizes { given, names, bound: Vec::new(), kinds: HashMap::default() };
    let (first, body) = sizes.first_bindings(&func.body);
    let body = sizes.stmt(body);
    let mut all = sizes.bound;
    all.splice(0..0, first);
    let body =
        all.into_iter().rev().fold(body, |body, (value, var)| Stmt::let_in(&var, value, body));
    TensorFunc { body, ..func.clone() }
}

/// What an expression is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Constants alone.
    Constant,
    /// Sizes, and computed at no cost that counts.
    Cheap,
    /// Sizes.
    Computed,
    /// Anything else.
    Other,
}

struct Sizes {
    given: HashSet<Var>,
    names: UniqueNames,
    bound: Vec<(Expr, Var)>,
    /// By the address of the node, which is kept.
    kinds: HashMap<usize, (Expr, Kind)>,
}

impl Sizes {
    /// What a body binds before anything else and is computed of sizes, which is a size then, and the rest of it.
    fn first_bindings<'s>(&mut self, body: &'s Stmt) -> (Vec<(Expr, Var)>, &'s Stmt) {
        let (mut found, mut rest) = (Vec::new(), body);
        while let StmtKind::Let { var, value, body } = rest.kind()
            && self.kind(value) != Kind::Other
        {
            self.given.insert(var.clone());
            self.names.reserve(var.name().clone());
            found.push((value.clone(), var.clone()));
            rest = body;
        }
        (found, rest)
    }

    fn kind(&mut self, e: &Expr) -> Kind {
        if let Some((_, kind)) = self.kinds.get(&e.address()) {
            return *kind;
        }
        let kind = self.kind_of_node(e);
        self.kinds.insert(e.address(), (e.clone(), kind));
        kind
    }

    fn kind_of_node(&mut self, e: &Expr) -> Kind {
        if !e.dtype().is_int() || e.dtype().lanes != 1 {
            return Kind::Other;
        }
        match e.kind() {
            ExprKind::Int(_) => Kind::Constant,
            ExprKind::Var(v) if self.given.contains(v) => Kind::Cheap,
            ExprKind::Cast(a) if a.dtype().is_int() => self.kind(a),
            ExprKind::Binary(op, a, b) => match (op, self.kind(a), self.kind(b)) {
                (_, Kind::Other, _) | (_, _, Kind::Other) => Kind::Other,
                (_, Kind::Constant, Kind::Constant) => Kind::Constant,
                (BinOp::Add | BinOp::Sub, Kind::Cheap, Kind::Constant)
                | (BinOp::Add, Kind::Constant, Kind::Cheap) => Kind::Cheap,
                (BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max, ..) => {
                    Kind::Computed
                }
                (BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod, ..)
                    if b.as_int().is_some_and(|b| b > 0) =>
                {
                    Kind::Computed
                }
                _ => Kind::Other,
            },
            _ => Kind::Other,
        }
    }

    fn bind(&mut self, e: &Expr) -> Expr {
        if let Some((_, var)) = self.bound.iter().find(|(value, _)| same_expr(value, e)) {
            return var.expr();
        }
        let var = Var::new(self.names.take("size"), e.dtype());
        self.bound.push((e.clone(), var.clone()));
        var.expr()
    }
}

impl Fold for Sizes {
    fn expr(&mut self, e: &Expr) -> Expr {
        match self.kind(e) {
            Kind::Computed => self.bind(e),
            Kind::Constant | Kind::Cheap => e.clone(),
            Kind::Other => fold_expr_children(self, e),
        }
    }
}
