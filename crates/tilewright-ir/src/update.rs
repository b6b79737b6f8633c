//! Stores that update their own cell, `B[i] = B[i] + x`, by an operator that commutes.
//!
//! Two updates of one cell by one such operator give the same in either order, as long as what they
//! combine into the cell does not change in between: integers wrap, and so their sums and products
//! commute; sums and products of floats round, and change their order only where a schedule asks for
//! it. [`update`] recognises the form, also under conditions and with several operands:
//!
//! ```text
//! B[i] = B[i] + x - y                            Sum
//! B[i] = T.max(x, B[i])                          Max
//! B[i] = T.if_then_else(x > 0, B[i] * x, B[i])   Product
//! B[i] = x - B[i]                                none: the order matters
//! B[i] = B[i] * 2 + x                            none
//! ```
//!
//! What is combined may read other cells of the buffer. Whether an update of those comes in between
//! is a question about indices, which a caller that exchanges updates has to ask.

use crate::hash::HashMap;

use crate::buffer::Buffer;
use crate::equal::same_expr;
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Intrin};

/// An operator that is commutative and associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// `a + b`, and `a - b` where `a` is the cell.
    Sum,
    /// `a * b`.
    Product,
    /// `T.min(a, b)`.
    Min,
    /// `T.max(a, b)`.
    Max,
    /// `a and b`.
    And,
    /// `a or b`.
    Or,
    /// Bitwise and.
    BitAnd,
    /// Bitwise or.
    BitOr,
    /// Bitwise exclusive or.
    BitXor,
}

/// Those that are nodes of expressions.
const BINARY: [(BinOp, Combine); 6] = [
    (BinOp::Add, Combine::Sum),
    (BinOp::Mul, Combine::Product),
    (BinOp::Min, Combine::Min),
    (BinOp::Max, Combine::Max),
    (BinOp::And, Combine::And),
    (BinOp::Or, Combine::Or),
];

impl Combine {
    /// The operator as a node of an expression, where it is one.
    pub fn binary(self) -> Option<BinOp> {
        BINARY.iter().find(|(_, op)| *op == self).map(|(node, _)| *node)
    }

    /// The operator that combines the operands of a node, and those operands. Of a difference only
    /// the first one may be the cell.
    fn recognise(e: &Expr) -> Option<(Combine, &Expr, &Expr)> {
        let (op, a, b) = match e.kind() {
            ExprKind::Binary(op, a, b) => {
                let same = if *op == BinOp::Sub { BinOp::Add } else { *op };
                let (_, op) = BINARY.iter().find(|(node, _)| *node == same)?;
                (*op, a, b)
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                let op = match op {
                    Intrin::BitAnd => Combine::BitAnd,
                    Intrin::BitOr => Combine::BitOr,
                    Intrin::BitXor => Combine::BitXor,
                    _ => return None,
                };
                let [a, b] = args.as_slice() else { return None };
                (op, a, b)
            }
            _ => return None,
        };
        Some((op, a, b))
    }
}

/// The operator by which a store combines something into its own cell; `None` where it does
/// something else, or leaves the cell as it is.
pub fn update(buffer: &Buffer, indices: &[Expr], value: &Expr) -> Option<Combine> {
    match (Cell { buffer, indices }).change(value, &mut HashMap::default())? {
        Change::By(op) => Some(op),
        Change::Nothing => None,
    }
}

/// Whether a load of a buffer is one of the cell at these indices, by the text.
pub fn is_cell(buffer: &Buffer, indices: &[Expr], load: &Expr) -> bool {
    match load.kind() {
        ExprKind::Load(b, at) => {
            b == buffer
                && at.len() == indices.len()
                && at.iter().zip(indices).all(|(x, y)| same_expr(x, y))
        }
        _ => false,
    }
}

/// Whether a value reads the memory of a buffer at other cells than this one, by the text.
pub fn reads_elsewhere(buffer: &Buffer, indices: &[Expr], value: &Expr) -> bool {
    value.any(|e| {
        matches!(e.kind(), ExprKind::Load(b, _) if b.data == buffer.data)
            && !is_cell(buffer, indices, e)
    })
}

/// What becomes of the cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    By(Combine),
}

impl Change {
    /// Either this or that.
    fn or(self, other: Change) -> Option<Change> {
        match (self, other) {
            (Change::Nothing, c) | (c, Change::Nothing) => Some(c),
            (a, b) => (a == b).then_some(a),
        }
    }
}

struct Cell<'a> {
    buffer: &'a Buffer,
    indices: &'a [Expr],
}

impl Cell<'_> {
    /// What a value makes of the cell; `None` where it is no update. `known` has the answers for
    /// nodes that stand in several places.
    fn change(&self, e: &Expr, known: &mut HashMap<usize, Option<Change>>) -> Option<Change> {
        if let Some(known) = known.get(&e.address()) {
            return *known;
        }
        let change = self.change_of(e, known);
        known.insert(e.address(), change);
        change
    }

    fn change_of(&self, e: &Expr, known: &mut HashMap<usize, Option<Change>>) -> Option<Change> {
        if is_cell(self.buffer, self.indices, e) {
            return Some(Change::Nothing);
        }
        match e.kind() {
            ExprKind::IfThenElse(c, yes, no) | ExprKind::Select(c, yes, no) => {
                let sides = self.change(yes, known)?.or(self.change(no, known)?);
                sides.filter(|_| !self.is_in(c))
            }
            ExprKind::Let(_, value, body) => {
                self.change(body, known).filter(|_| !self.is_in(value))
            }
            _ => {
                let (op, a, b) = Combine::recognise(e)?;
                let ordered = matches!(e.kind(), ExprKind::Binary(BinOp::Sub, ..));
                let (inner, rest) = match (self.change(a, known), self.change(b, known)) {
                    (Some(inner), None) => (inner, b),
                    (None, Some(inner)) if !ordered => (inner, a),
                    _ => return None,
                };
                inner.or(Change::By(op)).filter(|_| !self.is_in(rest))
            }
        }
    }

    /// Whether an expression reads the cell.
    fn is_in(&self, e: &Expr) -> bool {
        e.any(|part| is_cell(self.buffer, self.indices, part))
    }
}
