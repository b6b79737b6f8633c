//! Products with weights in blocks, as they are recognised.

use tilewright_analysis::Stage;
use tilewright_ir::equal::{Equality, exprs};
use tilewright_ir::index::{Linear, Ranges};
use tilewright_ir::visit::Subst;
use tilewright_ir::{BinOp, Buffer, DType, Dim, Expr, ExprKind, Fold, IterKind, Var};

use crate::canonical::{reads, sole_reader};

/// An axis of a product: its variable, and how long it is.
#[derive(Clone)]
pub(super) struct ProductAxis {
    pub(super) var: Var,
    pub(super) extent: i64,
}

impl ProductAxis {
    fn find(dims: &[(Var, Dim, IterKind)], var: &Var) -> Option<ProductAxis> {
        let found = dims.iter().find(|d| d.0 == *var)?;
        Some(ProductAxis { var: var.clone(), extent: found.1.number()? })
    }
}

/// A product with weights in blocks, in terms of the variables of its axes.
pub(super) struct BlockedProduct {
    /// The stages that it takes the place of, by their numbers; the last one gives the result.
    pub(super) stages: Vec<usize>,
    pub(super) row: (Var, Dim),
    pub(super) column: ProductAxis,
    pub(super) block: ProductAxis,
    pub(super) inner: ProductAxis,
    /// Where the row and the column are among the indices of the result.
    pub(super) at: [usize; 2],
    /// The integers of the weights, and the range that they lie in.
    pub(super) weight: Expr,
    pub(super) low: i64,
    pub(super) bits: u32,
    /// The factor that is no weight: what it is, in integers or in numbers.
    pub(super) other: Expr,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// Sums of integers over a block: what is taken from the weights, the buffer of the sums, and what is
    /// added up of a block.
    Integers { zero: Option<Expr>, sums: Buffer, value: Expr },
    /// Numbers: the factor that is made of weights.
    Numbers { factor: Expr },
}

/// The bits of integers in a range; `None` for more than 8.
fn bits_of(ranges: &Ranges, e: &Expr) -> Option<(i64, u32)> {
    let range = ranges.interval(e);
    let (low, high) = (i64::try_from(range.lo).ok()?, i64::try_from(range.hi).ok()?);
    let bits = [2, 4, 8].into_iter().find(|bits| high - low < 1 << bits)?;
    Some((low, bits))
}

/// Whether two expressions are the same.
pub(super) fn same(a: &Expr, b: &Expr) -> bool {
    exprs(a, b, &Equality::default()).is_ok()
}

/// Whether all that is loaded is the same in every run, and something is.
fn is_constant(e: &Expr, free: &dyn Fn(&Buffer) -> bool) -> bool {
    e.effects().loads && e.loaded_buffers().into_iter().all(|b| free(&b))
}

fn is_zero(e: Option<&Expr>) -> bool {
    e.is_some_and(|e| e.as_int() == Some(0) || e.as_float() == Some(0.0))
}

fn uncast(e: &Expr) -> &Expr {
    match e.kind() {
        ExprKind::Cast(x) => x,
        _ => e,
    }
}

/// The variables of a stage.
fn dims(stage: &Stage) -> Vec<(Var, Dim, IterKind)> {
    stage.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect()
}

/// Both factors of what a stage sums up, in either order.
fn factors(stage: &Stage, dtype: DType) -> Option<[(Expr, Expr); 2]> {
    let reduction = stage.reduction().filter(|r| r.op == BinOp::Add)?;
    if stage.buffer.dtype() != dtype || !is_zero(stage.init.as_ref()) {
        return None;
    }
    let ExprKind::Binary(BinOp::Mul, a, b) = reduction.value.kind() else { return None };
    Some([(a.clone(), b.clone()), (b.clone(), a.clone())])
}

impl BlockedProduct {
    /// The row and the column of a result, of which the column alone is in what is made of weights.
    fn spatial(stage: &Stage, weight: &Expr, other: &Expr) -> Option<([Var; 2], [usize; 2])> {
        let axes = stage.covers_buffer()?;
        let [Some(x), Some(y)] = &axes[..] else { return None };
        match (splits_spatial(x, y, weight, other), splits_spatial(y, x, weight, other)) {
            (true, _) => Some(([x.clone(), y.clone()], [0, 1])),
            (_, true) => Some(([y.clone(), x.clone()], [1, 0])),
            _ => None,
        }
    }

    /// Sums of integers over a block that another stage adds up.
    pub(super) fn integers(
        allocs: &[Buffer],
        stages: &[Stage],
        k: usize,
        free: &dyn Fn(&Buffer) -> bool,
    ) -> Option<BlockedProduct> {
        let dots = &stages[k];
        let both = factors(dots, DType::I32)?;
        let (at, sums) = sole_reader(allocs, stages, k).filter(|(at, _)| *at > k)?;
        let added =
            sums.reduction().filter(|r| r.op == BinOp::Add && is_zero(sums.init.as_ref()))?;
        if sums.buffer.dtype() != DType::F32 {
            return None;
        }
        // The variables of the sums in terms of those of the stage that reads them.
        let places = reads(sums, &dots.buffer);
        let [place] = &places[..] else { return None };
        let axes = dots.covers_buffer()?;
        let mut map = Vec::new();
        for (axis, index) in axes.iter().zip(place) {
            map.push((axis.clone()?, index.as_var()?.expr()));
        }
        let (given, reduced) = (dims(sums), dims(dots));
        let mut blocks = given.iter().filter(|d| d.2 == IterKind::Reduce);
        let (Some(block), None) = (blocks.next(), blocks.next()) else { return None };
        let mut inner = reduced.iter().filter(|d| d.2 == IterKind::Reduce);
        let (Some(inner), None) = (inner.next(), inner.next()) else { return None };
        let (left, right) = both.into_iter().find(|(left, right)| {
            let byte = uncast(left).dtype() == DType::I8;
            byte && matches!(uncast(left).kind(), ExprKind::Load(b, _) if !free(b))
                && is_constant(right, free)
        })?;
        let (weight, zero) = match right.kind() {
            ExprKind::Binary(BinOp::Sub, w, zero) if !zero.mentions(&inner.0) => {
                (uncast(w).clone(), Some(zero.clone()))
            }
            _ => (uncast(&right).clone(), None),
        };
        if left.dtype() != DType::I32 || right.dtype() != DType::I32 || !weight.dtype().is_int() {
            return None;
        }
        let (low, bits) = bits_of(&dots.ranges(), &weight)?;
        let (weight, other) =
            (Subst::vars(map.clone()).expr(&weight), Subst::vars(map.clone()).expr(uncast(&left)));
        let ([row, column], at_result) = BlockedProduct::spatial(sums, &weight, &other)?;
        let rows = given.iter().find(|d| d.0 == row)?.1;
        Some(BlockedProduct {
            stages: vec![k, at],
            row: (row, rows),
            column: ProductAxis::find(&given, &column)?,
            block: ProductAxis::find(&given, &block.0)?,
            inner: ProductAxis::find(&reduced, &inner.0)?,
            at: at_result,
            weight,
            low,
            bits,
            other,
            kind: Kind::Integers {
                zero: zero.map(|z| Subst::vars(map.clone()).expr(&z)),
                sums: dots.buffer.clone(),
                value: added.value,
            },
        })
    }

    /// Products of numbers.
    pub(super) fn numbers(
        stage: &Stage,
        k: usize,
        free: &dyn Fn(&Buffer) -> bool,
    ) -> Option<BlockedProduct> {
        let both = factors(stage, DType::F32)?;
        let given = dims(stage);
        let reduced: Vec<&(Var, Dim, IterKind)> =
            given.iter().filter(|d| d.2 == IterKind::Reduce).collect();
        let [block, inner] = reduced[..] else { return None };
        let (other, factor) = both.into_iter().find(|(other, factor)| {
            let loads =
                other.effects().loads && !other.loaded_buffers().into_iter().any(|b| free(&b));
            loads && is_constant(factor, free)
        })?;
        let weight = Weights { inner: &inner.0, ranges: stage.ranges() }.element(&factor)?;
        let (low, bits) = bits_of(&stage.ranges(), &weight)?;
        // All else is the same for a block.
        let rest = factor.replace(|e| same(e, &weight).then(|| Expr::int(0, e.dtype())));
        let ([row, column], at) = BlockedProduct::spatial(stage, &factor, &other)?;
        let rows = given.iter().find(|d| d.0 == row)?.1;
        (!rest.mentions(&inner.0)).then_some(BlockedProduct {
            stages: vec![k],
            row: (row, rows),
            column: ProductAxis::find(&given, &column)?,
            block: ProductAxis::find(&given, &block.0)?,
            inner: ProductAxis::find(&given, &inner.0)?,
            at,
            weight,
            low,
            bits,
            other,
            kind: Kind::Numbers { factor },
        })
    }
}

impl BlockedProduct {
    /// Whether neighbours in a block lie one behind the other in what the other factor is read from.
    pub(super) fn lies_along_blocks(&self) -> bool {
        let inner = &self.inner.var;
        !self.other.any(|e| match e.kind() {
            ExprKind::Load(_, at) => at.split_last().is_some_and(|(last, others)| {
                let step = Linear::from_expr(last).and_then(|sum| sum.coefficient(inner));
                step != Some(1) || others.iter().any(|index| index.mentions(inner))
            }),
            _ => false,
        })
    }
}

fn splits_spatial(row: &Var, column: &Var, weight: &Expr, other: &Expr) -> bool {
    let apart = !weight.mentions(row) && !other.mentions(column);
    apart && weight.mentions(column) && other.mentions(row)
}

/// The integers of few bits in a factor.
struct Weights<'a> {
    pub(super) inner: &'a Var,
    ranges: Ranges,
}

impl Weights<'_> {
    fn element(&self, factor: &Expr) -> Option<Expr> {
        let mut found: Option<Expr> = None;
        factor.any(|e: &Expr| {
            let fits = e.dtype().is_int()
                && e.effects().loads
                && e.mentions(self.inner)
                && bits_of(&self.ranges, e).is_some();
            // The outermost one is met first.
            if fits && found.is_none() {
                found = Some(e.clone());
            }
            found.is_some()
        });
        found.map(|e| uncast(&e).clone())
    }
}
