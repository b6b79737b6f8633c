//! The domain of a function before its loops: what is known of its sizes, and which of its
//! variables hold data.

use crate::{Domain, Engine};
use tilewright_ir::control::NEEDS_ELEMENTS;
use tilewright_ir::dim::SizeRange;
use tilewright_ir::visit::accessed;
use tilewright_ir::{BinOp, DType, Dim, Expr, TensorFunc, Var, data};

/// An engine that knows which variables of a function hold data, so that arithmetic on them wraps, and
/// what its sizes may be: not negative, and in their ranges.
pub fn engine(func: &TensorFunc) -> Engine {
    Engine::new().with_data(data::variables(func)).given(&given(func))
}

/// Runs work about a function: every engine that it takes from [`Engine::new`] is [`engine`].
pub fn about<T>(func: &TensorFunc, work: impl FnOnce() -> T) -> T {
    engine(func).about(work)
}

/// A function's domain without loops: its sizes are not negative, and in their ranges.
pub fn sizes(func: &TensorFunc) -> Domain {
    let domain = engine(func).domain();
    given(func).iter().fold(domain, |domain, fact| domain.with_guard(fact))
}

/// What every call of a function keeps to: no extent is negative, or zero where arguments have elements
/// ([`NEEDS_ELEMENTS`]), and sizes are in their ranges; those that stand for quotients or extrema of others are between
/// their bounds.
pub fn given(func: &TensorFunc) -> Vec<Expr> {
    let extents = func.buffers().flat_map(|b| &b.shape);
    let open = extents.filter(|dim| dim.as_int().is_none() && dim.effects().constant());
    let extents = open.map(|dim| dim.clone().greater_equal(0));
    let sizes = func.sizes();
    // What is divided may be a number that the function is given, which no extent names.
    let mut known = sizes.clone();
    known.extend(func.scalars().filter(|v| v.dtype().is_int()).cloned());
    let quotients = sizes.iter().filter_map(|v| is_quotient(v, &known));
    let products = known.iter().filter_map(|v| is_product(v, &known)).flatten();
    let extrema = sizes.iter().flat_map(|v| is_extremum(v, &known));
    let ranged = sizes.iter().filter(|v| v.range() != SizeRange::ALL);
    let ranges = ranged.map(|v| {
        let (least, most) = (v.range().least() as i64, v.range().most() as i64);
        let inside = v.expr().greater_equal(least).and(v.expr().less_equal(most));
        let remainders = v.range().remainders().condition(v.expr());
        remainders.into_iter().fold(inside, Expr::and)
    });
    let mut all: Vec<Expr> =
        extents.chain(ranges).chain(quotients).chain(products).chain(extrema).collect();
    if func.attrs.contains_key(NEEDS_ELEMENTS) {
        let written = accessed(&func.body).1;
        let read = func.buffers().filter(|b| !written.contains(b)).flat_map(|b| &b.shape);
        all.extend(read.filter(|e| e.as_int().is_none()).flat_map(some_elements));
    }
    all
}

/// What is known of an extent that is not zero: that of its factors, and where it is more than their product, that of
/// the extent.
fn some_elements(extent: &Expr) -> Vec<Expr> {
    let Some(size) = Dim::from_expr(extent) else { return Vec::new() };
    let factors = factors(size);
    let all = size.vars().iter().all(|v| factors.contains(v));
    let own = (!all).then(|| extent.clone().greater_equal(1));
    factors.iter().map(|v| v.expr().greater_equal(1)).chain(own).collect()
}

/// What is between a size and the multiples of it that say which quotient of other sizes it is; `None` where it is
/// none of what the function knows.
fn is_quotient(v: &Var, known: &[Var]) -> Option<Expr> {
    let (of, by) = v.stands_for()?.quotient()?;
    if !of.vars().iter().all(|x| known.contains(x)) {
        return None;
    }
    let (of, by) = (of.typed(v.dtype()), i64::try_from(by).ok()?);
    let rest = of - v.expr() * by;
    Some(rest.clone().greater_equal(0).and(rest.less(by)))
}

/// Which product of sizes that the function knows a size is; `None` where it is none.
fn is_product(v: &Var, known: &[Var]) -> Option<[Expr; 2]> {
    let of = v.stands_for()?;
    let knows = of.is_product() && of.vars().iter().all(|x| known.contains(x));
    knows.then(|| [v.expr().greater_equal(0), v.expr().equal(of.typed(v.dtype()))])
}

/// That a size which is the smaller one of others is not larger than those, as far as the function knows them, and the
/// same the other way round. That it is one of them is left out: sets would be in two parts for it.
fn is_extremum(v: &Var, known: &[Var]) -> Vec<Expr> {
    let Some((op, a, b)) = v.stands_for().and_then(Dim::extremum) else { return Vec::new() };
    let limits = [a, b].into_iter().filter(|of| of.vars().iter().all(|x| known.contains(x)));
    let side = if op == BinOp::Min { BinOp::Le } else { BinOp::Ge };
    // A limit may be more than the type of sizes holds, and a product more than any.
    let limits = limits.filter(|of| of.is_linear());
    limits.map(|of| Expr::binary(side, v.expr().cast(DType::I64), of.wide())).collect()
}

/// The sizes that an extent is a multiple of: where it is not zero, they are not either.
fn factors(extent: Dim) -> Vec<Var> {
    let mut sizes = extent.vars();
    // Sizes are no negative numbers, so that `q - 1` is none where `q` is zero: one more is.
    let more = extent + Dim::from(1);
    sizes.retain(|v| more.substitute(&|x| (x == v).then(|| Dim::from(0))) == 1);
    sizes
}
