//! Control flow of graph functions: branches and loops, whose bodies see the values around them.
//!
//! A [`Body`] is bindings and a result, as a graph function has them. What it binds is not known
//! after it; what was bound before it is known inside. [`Branches`](crate::Branches) runs one of two
//! bodies. A [`Loop`](crate::Loop) runs its body again and again: it hands values on from one iteration
//! to the next (*carried* values, whose shapes may change where their types say so), and stacks what an
//! iteration gives beyond them along a new first axis (*scanned* values).
//!
//! Values other than tensors are lists and optionals ([`crate::list`]) and shapes: what is bound to
//! a variable of the type [`GraphType::Shape`](crate::GraphType::Shape) gives variables of sizes
//! their values, as `R.match_cast` does.

use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::TensorFunc;
use crate::graph::{Body, GraphExpr, GraphFunc};
use crate::stmt::{Attr, Attrs};

/// Operator that says more of the type of a value than is known: sizes that the type names for the
/// first time get their values. Its type is that of the variable that it is bound to.
pub const MATCH_CAST: &str = "R.match_cast";

/// Attribute of [`MATCH_CAST`]: why the value must have the type, for the message where it has not.
pub const WHY: &str = "why";

/// Attribute of a graph function: a list of `[INPUT, AXIS, WHY]`, why extents of inputs must be what the
/// types say.
pub const SIZE_REASONS: &str = "size_reasons";

/// Operator that takes the elements of a list of integers as a shape.
pub const TENSOR_TO_SHAPE: &str = "R.tensor_to_shape";

/// Operator that writes sizes down as a value: `R.shape([n, 4])`.
const SHAPE: &str = "R.shape";

/// Attribute of the graph functions that a function with control flow is cut into. Their sizes may be
/// zero.
pub const PIECE: &str = "tilewright.piece";

/// Attribute of a tensor function that is right for arguments without elements, too.
pub const TAKES_EMPTY: &str = "tilewright.takes_empty";

/// Attribute of a tensor function that no call gives an argument without elements: no axis of what it
/// reads has the size zero.
pub const NEEDS_ELEMENTS: &str = "tilewright.needs_elements";

impl TensorFunc {
    /// Whether it says that it is right for arguments without elements ([`TAKES_EMPTY`]): what it reduces over nothing is
    /// what the reduction begins with.
    pub fn takes_empty(&self) -> bool {
        self.attrs.contains_key(TAKES_EMPTY)
    }
}

impl GraphExpr {
    /// Sizes as a value.
    pub fn shape(sizes: Vec<Expr>) -> GraphExpr {
        let sizes = Attr::List(sizes.into_iter().map(Attr::Expr).collect());
        let attrs = Attrs::from([("_0".into(), sizes)]);
        GraphExpr::Call { op: SHAPE.into(), args: Vec::new(), attrs }
    }

    /// The sizes that are written down as a value.
    pub fn as_shape(&self) -> Option<Vec<Expr>> {
        let GraphExpr::Call { op, args, attrs } = self else { return None };
        let Some(Attr::List(sizes)) = attrs.get("_0").filter(|_| **op == *SHAPE) else {
            return None;
        };
        sizes
            .iter()
            .map(size_of)
            .collect::<Option<_>>()
            .filter(|_| args.is_empty() && attrs.len() == 1)
    }

    /// Whether running it takes more than calls of tensor functions: branches, loops, and operators
    /// on lists, optionals and shapes.
    pub fn is_control(&self) -> bool {
        match self {
            GraphExpr::If(_) | GraphExpr::Loop(_) => true,
            GraphExpr::Call { op, .. } if is_control_operator(op) => true,
            _ => self.operands().into_iter().any(GraphExpr::is_control),
        }
    }

    /// The expressions directly inside, without those of bodies.
    pub fn operands(&self) -> Vec<&GraphExpr> {
        match self {
            GraphExpr::Var(_) | GraphExpr::Const(_) => Vec::new(),
            GraphExpr::CallTir { args, .. }
            | GraphExpr::Call { args, .. }
            | GraphExpr::Tuple(args) => args.iter().collect(),
            GraphExpr::Item(of, _) => vec![of],
            GraphExpr::If(branches) => vec![&branches.cond],
            GraphExpr::Loop(l) => l.operands().collect(),
        }
    }

    /// The bodies directly inside.
    pub fn bodies(&self) -> Vec<&Body> {
        match self {
            GraphExpr::If(branches) => vec![&branches.then, &branches.otherwise],
            GraphExpr::Loop(l) => vec![&l.body],
            _ => Vec::new(),
        }
    }

    /// Calls `f` for the expression and for every one inside of it, those of bodies included.
    pub fn for_each(&self, f: &mut dyn FnMut(&GraphExpr)) {
        f(self);
        self.operands().into_iter().for_each(|e| e.for_each(f));
        for body in self.bodies() {
            body.bindings().for_each(|b| b.value.for_each(f));
            body.ret.for_each(f);
        }
    }
}

fn size_of(a: &Attr) -> Option<Expr> {
    match a {
        Attr::Int(n) => Some(Expr::int(*n, DType::I64)),
        Attr::Expr(e) => Some(e.clone()),
        _ => None,
    }
}

/// Whether an operator works on lists, optionals or shapes.
pub fn is_control_operator(op: &str) -> bool {
    op == MATCH_CAST || op == TENSOR_TO_SHAPE || crate::list::ListOp::find(op).is_some()
}

impl GraphFunc {
    /// Whether it has branches, loops, or values other than tensors and tuples of them. Passes over
    /// graphs leave such a function alone; the pieces that it is cut into go through them.
    pub fn has_control(&self) -> bool {
        self.bindings().any(|b| b.value.is_control()) || self.ret.is_control()
    }

    /// Calls `f` for every expression, those of branches and loops included.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&GraphExpr)) {
        self.bindings().for_each(|b| b.value.for_each(f));
        self.ret.for_each(f);
    }
}
