//! What a condition says: the parts that hold together, and the cells of memory that have a value.

use crate::buffer::Buffer;
use crate::expr::{BinOp, Expr, ExprKind};

/// The parts of a condition that have the value `holds`, each with its own value: those of a
/// conjunction that holds, or of a disjunction that does not. All of them together say what the
/// condition says. A constant that has its value is left out.
pub fn parts(cond: &Expr, holds: bool) -> Vec<(Expr, bool)> {
    fn collect(cond: &Expr, holds: bool, out: &mut Vec<(Expr, bool)>) {
        match (cond.kind(), holds) {
            _ if cond.dtype().lanes != 1 => out.push((cond.clone(), holds)),
            (ExprKind::Not(inner), _) => collect(inner, !holds, out),
            (ExprKind::Binary(BinOp::And, a, b), true)
            | (ExprKind::Binary(BinOp::Or, a, b), false) => {
                collect(a, holds, out);
                collect(b, holds, out);
            }
            _ if if holds { cond.is_true() } else { cond.is_false() } => {}
            _ => out.push((cond.clone(), holds)),
        }
    }
    let mut out = Vec::new();
    collect(cond, holds, &mut out);
    out
}

impl Expr {
    /// A condition that holds where this one has the value `holds`.
    pub fn being(self, holds: bool) -> Expr {
        if holds { self } else { !self }
    }

    /// What holds where all of a condition does, in order; nothing for `True`.
    pub fn conjuncts(&self) -> Vec<Expr> {
        parts(self, true).into_iter().map(|(part, holds)| part.being(holds)).collect()
    }

    /// The condition that all of some conditions hold; `True` for none.
    pub fn all(conditions: impl IntoIterator<Item = Expr>) -> Expr {
        conditions.into_iter().fold(Expr::bool(true), Expr::and)
    }
}

/// `buffer[indices] == value`, unless one of some other conditions holds.
#[derive(Clone, Debug)]
pub struct CellFact {
    /// The conditions under which nothing is said.
    pub unless: Vec<Expr>,
    /// Whose cell it is.
    pub buffer: Buffer,
    /// Which cell.
    pub indices: Vec<Expr>,
    /// What it holds. `T.undef()` is permission to read it.
    pub value: Expr,
}

impl CellFact {
    /// The cell and its value, where a condition that is no disjunction gives one.
    pub fn from_condition(cond: &Expr, holds: bool) -> Option<CellFact> {
        match cond.kind() {
            _ if cond.dtype().lanes != 1 => None,
            ExprKind::Not(inner) => CellFact::from_condition(inner, !holds),
            ExprKind::Load(buffer, at) => fact_of(buffer, at, Expr::bool(holds)),
            ExprKind::Binary(op, a, b) if *op == if holds { BinOp::Eq } else { BinOp::Ne } => {
                match (a.kind(), b.kind()) {
                    (ExprKind::Load(buffer, at), _) => fact_of(buffer, at, b.clone()),
                    (_, ExprKind::Load(buffer, at)) => fact_of(buffer, at, a.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What `... or buffer[indices] == value or ...` says where it holds: one fact for each part
    /// that gives a cell a value, with the other parts as what it holds unless.
    pub fn all(cond: &Expr) -> Vec<CellFact> {
        let parts = parts(cond, false);
        let facts = parts.iter().enumerate().filter_map(|(k, (part, fails))| {
            let fact = CellFact::from_condition(part, !fails)?;
            let others = parts.iter().enumerate().filter(|(other, _)| *other != k);
            let unless = others.map(|(_, (part, fails))| part.clone().being(!fails)).collect();
            Some(CellFact { unless, ..fact })
        });
        facts.collect()
    }
}

fn fact_of(buffer: &Buffer, indices: &[Expr], value: Expr) -> Option<CellFact> {
    let (buffer, indices) = (buffer.clone(), indices.to_vec());
    Some(CellFact { unless: Vec::new(), buffer, indices, value })
}
