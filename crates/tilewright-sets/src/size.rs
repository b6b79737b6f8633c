//! How large normal forms are.

use crate::form::{Pred, Sum, Term};

impl Sum {
    /// Whether the sum has at least this many nodes, each counted where it occurs. Takes no more
    /// time than that.
    pub fn has_nodes(&self, limit: usize) -> bool {
        sum(self, limit).is_none()
    }
}

impl Pred {
    /// Whether the condition has at least this many nodes.
    pub fn has_nodes(&self, limit: usize) -> bool {
        pred(self, limit).is_none()
    }
}

/// What is left of a number of nodes after those of a sum; `None` for nothing.
fn sum(s: &Sum, left: usize) -> Option<usize> {
    s.terms.keys().try_fold(one(left)?, |left, t| term(t, left))
}

fn one(left: usize) -> Option<usize> {
    left.checked_sub(1).filter(|left| *left > 0)
}

fn term(t: &Term, left: usize) -> Option<usize> {
    let left = one(left)?;
    match t {
        Term::Atom(_) => Some(left),
        Term::Div(s, _) | Term::Mod(s, _) | Term::TruncDiv(s, _) | Term::TruncMod(s, _) => {
            sum(s, left)
        }
        Term::Min(a, b) | Term::Max(a, b) => sum(b, sum(a, left)?),
        Term::Select(c, a, b) => sum(b, sum(a, pred(c, left)?)?),
    }
}

fn pred(p: &Pred, left: usize) -> Option<usize> {
    let left = one(left)?;
    match p {
        Pred::Bool(_) | Pred::Flag(..) => Some(left),
        Pred::Ge(s) | Pred::Eq(s) | Pred::Ne(s) => sum(s, left),
        Pred::And(parts) | Pred::Or(parts) => parts.iter().try_fold(left, |left, p| pred(p, left)),
    }
}
