//! Whether a function may be given something without elements and still have something to compute.
//!
//! The open sizes of a model are at least 1, and what is computed of them may be zero: a join with what pads `n`
//! to a multiple of 8 reads `-n mod 8` columns of padding. Where all results are without elements too, as those
//! of an elementwise function are, nothing is computed, and the question does not come up.

use tilewright_ir::visit::accessed;
use tilewright_ir::{Buffer, Dim, Expr, TensorFunc};
use tilewright_polyhedral::{Domain, sizes};

/// Whether sizes of at least 1, or what their ranges begin with, may give a function an operand without elements
/// while one of its results has elements. It is true where that is not decided.
pub fn may_lack_operand(func: &TensorFunc) -> bool {
    let written = accessed(&func.body).1;
    let (results, read): (Vec<&Buffer>, Vec<&Buffer>) =
        func.buffers().partition(|b| written.contains(*b));
    let may_be_zero = |e: &&Expr| Dim::from_expr(e).is_some_and(|d| !d.at_least(1));
    let doubtful: Vec<&Expr> = read.iter().flat_map(|b| &b.shape).filter(may_be_zero).collect();
    if doubtful.is_empty() {
        return false;
    }
    let domain = func.sizes().iter().fold(sizes::sizes(func), |domain, v| {
        domain.with_guard(&v.expr().greater_equal(v.range().least() as i64))
    });
    doubtful.iter().any(|extent| {
        let without = domain.with_guard(&(*extent).clone().less_equal(0));
        results.iter().any(|result| {
            let some = |domain: Domain, e: &Expr| domain.with_guard(&e.clone().greater_equal(1));
            !result.shape.iter().fold(without.clone(), some).is_void()
        })
    })
}
