//! Data that decide where something is read or by what is divided, checked: [`checked`] copies
//! them, and stops the run at the first element that is not what it must be.
//!
//! The check is a function of its own, so that its consumer stays in the canonical form, and costs
//! one comparison an element of these data, not of what is computed with them.

use std::fmt;

use tilewright_ir::dim::Integer;
use tilewright_ir::tensor::index_of;
use tilewright_ir::text::fill;
use tilewright_ir::visit::{fold_func, fold_stmt_children};
use tilewright_ir::{DType, Dim, Expr, Fold, Result, Stmt, StmtKind, Tensor, TensorFunc, Var, dim};

use crate::operand::{Operand, unsupported_type};
use crate::te;

/// What integers must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Not zero.
    NonZero,
    /// Between two bounds, both included. One pair is for all elements; several are for the
    /// positions along the last axis, one each.
    Within(Vec<(Integer, Integer)>),
    /// There must be none: a run that comes here cannot go on, for this reason.
    Never(String),
}

impl Need {
    /// Positions along an axis of this extent, where negative ones count from its end.
    pub fn position(extent: impl Into<Dim>) -> Need {
        Need::Within(vec![positions(extent.into())])
    }

    /// Tuples in the last axis of positions along axes of these extents.
    pub fn positions<D: Into<Dim> + Copy>(extents: &[D]) -> Need {
        let mut bounds: Vec<_> = extents.iter().map(|&d| positions(d.into())).collect();
        if bounds.iter().all(|b| Some(b) == bounds.first()) {
            bounds.truncate(1);
        }
        Need::Within(bounds)
    }

    /// [`Need::is_met_by`] of a number.
    fn met_by(&self, value: i128, last: usize) -> Option<bool> {
        match i64::try_from(value) {
            Ok(value) => self.is_met_by(value.into(), last),
            // No bound is that far out.
            Err(_) => Some(*self == Need::NonZero),
        }
    }

    /// Whether an integer meets it, at this position along the last axis; `None` where that depends
    /// on open sizes.
    pub fn is_met_by(&self, value: Integer, last: usize) -> Option<bool> {
        let (low, high) = match self {
            Need::Never(_) => return Some(false),
            Need::NonZero => return value.equals(0).map(|zero| !zero),
            Need::Within(bounds) => *bounds.get(last).or(bounds.first())?,
        };
        let below = value.is_less(low);
        let above = high.is_less(value);
        match (below, above) {
            (Some(true), _) | (_, Some(true)) => Some(false),
            (Some(false), Some(false)) => Some(true),
            _ => None,
        }
    }

    /// Whether it depends on open sizes if a tensor of integers meets it.
    pub fn is_open_for(&self, t: &Tensor) -> bool {
        let along = t.shape().last().copied().unwrap_or(1).max(1);
        (0..t.len()).any(|i| self.met_by(t.get_i128(i), i % along).is_none())
    }

    /// What is said of an element that does not meet it, where `what` is what it is: the first one of
    /// a tensor of integers; `None` where all meet it.
    pub fn violated_by(&self, what: &str, t: &Tensor) -> Option<String> {
        let along = t.shape().last().copied().unwrap_or(1).max(1);
        let mut all = (0..t.len()).map(|i| (i, t.get_i128(i)));
        let (at, value) = all.find(|&(i, value)| self.met_by(value, i % along) == Some(false))?;
        let index = index_of(at, t.shape()).into_iter().map(|i| i as i128);
        let values: Vec<i128> =
            self.shows_value().then_some(value).into_iter().chain(index).collect();
        Some(fill(&self.message(what, t.shape().len()), &values))
    }

    /// The open sizes that it depends on.
    fn sizes(&self) -> Vec<Var> {
        let Need::Within(bounds) = self else { return Vec::new() };
        let ends = bounds.iter().flat_map(|(low, high)| [low, high]);
        let mut all: Vec<Var> = ends
            .flat_map(|end| match end {
                Integer::Open(d) => d.vars(),
                Integer::Number(_) => Vec::new(),
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Whether the message shows the number, which is known otherwise.
    fn shows_value(&self) -> bool {
        matches!(self, Need::Within(_))
    }

    /// What is said of an element of a tensor of some rank that does not meet it, where `what` is what
    /// it is. `{}` stands for the number, if that is not known otherwise, and then for each index.
    pub fn message(&self, what: &str, rank: usize) -> String {
        let number = if self.shows_value() { " {}" } else { "" };
        let place = match rank {
            0 => String::new(),
            _ => format!(" at [{}]", vec!["{}"; rank].join(", ")),
        };
        format!("the {what}{number}{place} {self}")
    }

    /// The condition on the element at `index`; the constant true where every number of the type
    /// meets it.
    fn condition(&self, value: &Expr, index: &[Expr]) -> Expr {
        let dtype = value.dtype();
        match self {
            Need::Never(_) => Expr::bool(false),
            Need::NonZero => value.clone().not_equal(Expr::int(0, dtype)),
            Need::Within(bounds) => {
                let last = index.last().cloned().unwrap_or_else(|| Expr::i32(0));
                let mut each = bounds.iter().map(|b| between(value, *b));
                let first = each.next().unwrap_or_else(|| Expr::bool(true));
                // At another position than the first, the bounds are others.
                each.zip(1i64..).fold(
                    match bounds.len() {
                        0 | 1 => first,
                        _ => last.clone().not_equal(0).or(first),
                    },
                    |all, (inside, k)| all.and(last.clone().not_equal(k).or(inside)),
                )
            }
        }
    }
}

/// What the message of a failed check says of the element.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Never(why) => f.write_str(&why.replace("{}", "{ }")),
            Need::NonZero => f.write_str("is zero"),
            Need::Within(bounds) => {
                let list: Vec<String> =
                    bounds.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
                write!(f, "lies outside of {}", list.join(" x "))
            }
        }
    }
}

fn positions(extent: Dim) -> (Integer, Integer) {
    let most = Integer::from(i64::MAX);
    let extent = match extent.known() {
        Some(n) => i64::try_from(n).map_or(most, Integer::from),
        None => extent.into(),
    };
    let low = Integer::from(0).minus(extent).unwrap_or(Integer::from(i64::MIN));
    (low, extent.minus(1).unwrap_or(most))
}

/// Whether the value lies between two bounds, as far as its type does not say so.
fn between(value: &Expr, (low, high): (Integer, Integer)) -> Expr {
    let dtype = value.dtype();
    let (Integer::Number(low), Integer::Number(high)) = (low, high) else {
        // Sizes are compared as 64 bits. Only one type holds larger numbers, and no negative ones.
        if dtype == DType::U64 {
            return value.clone().less_equal(high.long().cast(dtype));
        }
        let value = value.clone().cast(DType::I64);
        let below = value.clone().greater_equal(low.long());
        return below.and(value.less_equal(high.long()));
    };
    let (Some(least), Some(most)) = (dtype.min_int(), dtype.max_int()) else {
        return Expr::bool(true);
    };
    let (low, high) = (i128::from(low), i128::from(high));
    if high < least || low > most {
        return Expr::bool(false);
    }
    let mut inside = Expr::bool(true);
    if low > least {
        inside = inside.and(value.clone().greater_equal(Expr::int(low as i64, dtype)));
    }
    if high < most {
        inside = inside.and(value.clone().less_equal(Expr::int(high as i64, dtype)));
    }
    inside
}

/// A copy of integers that stops the run where one does not meet the need; `None` where all numbers
/// of the type do. It says whose data they are, and then [`Need::message`]. Parameters: `x`, the
/// result.
///
/// # Errors
/// [`Error::Unsupported`](tilewright_ir::Error::Unsupported) for types that are no integers, and
/// those of [`te::func`].
pub fn checked(x: &Operand, need: &Need, whose: &str, what: &str) -> Result<Option<TensorFunc>> {
    if !x.dtype.is_int() {
        return Err(unsupported_type("check", x.dtype, "integers"));
    }
    let vacuous = need.condition(&x.placeholder("x").at(vec![0i64; x.rank()]), &origin(x.rank()));
    if vacuous.is_true() {
        return Ok(None);
    }
    let t = x.placeholder("x");
    let out = te::compute("checked", &x.shape, |i| t.at(i));
    let func = te::func([&t], [&out])?;
    let message = format!("{}: {}", whose.replace("{}", "{ }"), need.message(what, x.rank()));
    let mut func = fold_func(&mut Guard { need, message }, &func);
    // Open sizes of the bounds that no extent says are numbers behind the result.
    func.pass_sizes(need.sizes().iter().map(dim::narrow));
    Ok(Some(func))
}

/// The index of the first element.
fn origin(rank: usize) -> Vec<Expr> {
    vec![Expr::int(0, DType::I32); rank]
}

/// Puts the assertion before each store.
struct Guard<'a> {
    need: &'a Need,
    message: String,
}

impl Fold for Guard<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { indices, value, .. } => {
                let cond = self.need.condition(value, indices);
                let number = self.need.shows_value().then_some(value);
                let values = number.into_iter().chain(indices);
                let values = values.map(|e| e.clone().cast(DType::I64)).collect();
                let check =
                    StmtKind::Assert { cond, message: self.message.as_str().into(), values };
                Stmt::seq([Stmt::new(check), s.clone()])
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_a_type_keeps_need_no_check() -> Result<()> {
        assert!(checked(&vector_of(DType::U8), &Need::position(256), "n", "index")?.is_none());
        assert!(checked(&vector_of(DType::I8), &Need::position(128), "n", "index")?.is_none());
        assert!(checked(&vector_of(DType::U8), &Need::position(255), "n", "index")?.is_some());
        assert!(checked(&vector_of(DType::I8), &Need::position(127), "n", "index")?.is_some());
        assert!(checked(&vector_of(DType::U64), &Need::NonZero, "n", "divisor")?.is_some());
        assert!(checked(&vector_of(DType::F32), &Need::NonZero, "n", "divisor").is_err());
        Ok(())
    }

    fn vector_of(dtype: DType) -> Operand {
        Operand::new(&[4], dtype)
    }

    #[test]
    fn constants_are_checked_by_their_place_in_the_tuple() -> Result<()> {
        let need = Need::positions(&[2, 5]);
        assert_eq!(need.violated_by("index", &pairs_of(&[-2, 4, 1, -5])?), None);
        let bounds = "lies outside of [-2, 1] x [-5, 4]";
        assert_eq!(
            violation(&need, &pairs_of(&[1, 4, 2, 0])?),
            format!("the index 2 at [1, 0] {bounds}")
        );
        assert_eq!(
            violation(&need, &pairs_of(&[1, -6])?),
            format!("the index -6 at [0, 1] {bounds}")
        );
        assert_eq!(need.to_string(), "lies outside of [-2, 1] x [-5, 4]");
        assert_eq!(Need::positions(&[3, 3]), Need::position(3));
        let huge = Tensor::from_slice(&[1], &[u64::MAX])?;
        let most = "the index 18446744073709551615 at [0] lies outside of [-3, 2]";
        assert_eq!(violation(&Need::position(3), &huge), most);
        assert_eq!(violation(&Need::NonZero, &pairs_of(&[3, 0])?), "the index at [0, 1] is zero");
        let alone = Tensor::from_slice(&[], &[0i64])?;
        assert_eq!(violation(&Need::NonZero, &alone), "the index is zero");
        Ok(())
    }

    fn pairs_of(v: &[i64]) -> Result<Tensor> {
        Tensor::from_slice(&[v.len() / 2, 2], v)
    }

    fn violation(need: &Need, t: &Tensor) -> String {
        need.violated_by("index", t).unwrap_or_default()
    }
}
