//! Stages by the offsets of what they access: how the axes of buffers and loops are split and merged says nothing.
//!
//! An access of a buffer of constant extents becomes one of its offset in row-major order. An axis of the stage of
//! which offsets take quotients or remainders is split into digits; two axes that move all offsets as one would
//! are merged. So a product of rows and one of a batch of rows, with the shapes that lead from one to the other,
//! are one stage.

use std::collections::BTreeSet;
use tilewright_ir::hash::HashMap;

use tilewright_ir::index::{Interval, Linear, Ranges, divided, simplify, simplify_indices};
use tilewright_ir::visit::{Subst, fold_expr_children, walk_expr};
use tilewright_ir::{BinOp, Buffer, Dim, Expr, ExprKind, Fold, IterKind, Var, Visit};

use crate::stage::Stage;

/// Axes of a stage: their variables, extents and kinds.
pub(super) type Axes = Vec<(Var, Dim, IterKind)>;

/// Most times that axes are split, since digits may have digits.
const ROUNDS: usize = 4;

/// Buffers with one axis in the place of those with several.
#[derive(Default)]
pub(super) struct Flat(HashMap<Buffer, Buffer>);

impl Flat {
    /// The buffer of one axis that stands for another one, where that has several of constant extents.
    pub(super) fn of(&mut self, buffer: &Buffer) -> Option<Buffer> {
        if let Some(flat) = self.0.get(buffer) {
            return Some(flat.clone());
        }
        let extents: Option<Vec<i64>> = buffer.shape.iter().map(Expr::as_int).collect();
        let extents = extents.filter(|_| buffer.strides.is_empty() && buffer.rank() > 1)?;
        let count = extents.iter().try_fold(1i64, |n, m| n.checked_mul(*m))?;
        let count = Expr::int(i64::from(i32::try_from(count).ok()?), buffer.shape[0].dtype());
        let flat = buffer.derive_storage(|d| d.shape = vec![count]);
        self.0.insert(buffer.clone(), flat.clone());
        Some(flat)
    }

    /// The indices of an access in the buffer that stands for this one.
    fn indices(&mut self, buffer: &Buffer, at: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let flat = self.of(buffer)?;
        let pairs = at.iter().zip(&buffer.shape);
        let offset = pairs.fold(None, |sum: Option<Expr>, (index, extent)| {
            Some(sum.map_or(index.clone(), |sum| sum * extent.as_int().unwrap_or(1) + index))
        });
        Some((flat, vec![offset?]))
    }
}

impl Fold for Flat {
    fn expr(&mut self, e: &Expr) -> Expr {
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Load(buffer, at) => match self.indices(buffer, at) {
                Some((flat, at)) => Expr::load(&flat, at),
                None => e,
            },
            _ => e,
        }
    }
}

/// A stage in terms of offsets: axes, where it stores, and what.
pub(super) fn normal(stage: &Stage, value: &Expr, flat: &mut Flat) -> (Axes, Vec<Expr>, Expr) {
    let axes = stage.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect();
    let at = flat.indices(&stage.buffer, &stage.indices);
    let at = at.map_or_else(|| stage.indices.clone(), |(_, at)| at);
    let mut form = Form { axes, at, value: flat.expr(value) };
    form.simplify();
    for _ in 0..ROUNDS {
        if !form.split() {
            break;
        }
    }
    while form.merge() {}
    form.sort();
    (form.axes, form.at, form.value)
}

/// A stage that is being changed.
struct Form {
    axes: Axes,
    at: Vec<Expr>,
    value: Expr,
}

impl Form {
    fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        for (var, extent, _) in &self.axes {
            let last = extent.number().map_or(i128::from(i32::MAX), i128::from) - 1;
            ranges.bind(var, Interval::new(0, last));
        }
        ranges
    }

    fn simplify(&mut self) {
        let ranges = self.ranges();
        self.at = self.at.iter().map(|e| simplify(e, &ranges)).collect();
        self.value = simplify_indices(&self.value, &ranges);
    }

    fn substitute(&mut self, mut vars: Subst) {
        self.at = self.at.iter().map(|e| vars.expr(e)).collect();
        self.value = vars.expr(&self.value);
        self.simplify();
    }

    /// Splits axes at the numbers that they are divided by; whether there was one.
    fn split(&mut self) -> bool {
        let mut divisors = Divisors::default();
        self.at.iter().chain([&self.value]).for_each(|e| divisors.expr(e));
        let (mut axes, mut vars) = (Axes::default(), Vec::new());
        for (var, extent, kind) in std::mem::take(&mut self.axes) {
            let whole = extent.known().and_then(|n| i64::try_from(n).ok());
            let steps = divisors.0.get(&var).zip(whole).and_then(|(d, n)| digits(d, n));
            let Some(steps) = steps else {
                axes.push((var, extent, kind));
                continue;
            };
            let mut sum: Option<Expr> = None;
            // From the outermost digit on: each step is what its digit counts.
            for (k, (step, count)) in steps.iter().enumerate() {
                let digit = Var::new(format!("{}_{k}", var.name()), var.dtype());
                let part = digit.expr() * *step;
                sum = Some(sum.map_or(part.clone(), |sum| sum + part));
                axes.push((digit, Dim::from(usize::try_from(*count).unwrap_or(1)), kind));
            }
            vars.extend(sum.map(|sum| (var, sum)));
        }
        self.axes = axes;
        let is_split = !vars.is_empty();
        self.substitute(Subst::vars(vars));
        is_split
    }

    /// Merges two axes that all offsets take as one; whether there were such.
    fn merge(&mut self) -> bool {
        let mut accesses = Accesses::default();
        accesses.expr(&self.value);
        accesses.offsets.extend(self.at.iter().cloned());
        let forms: Option<Vec<Linear>> = accesses.offsets.iter().map(Linear::from_expr).collect();
        let Some(forms) = forms else { return false };
        // What stands elsewhere, or in what is not linear, is left.
        let moves = |var: &Var| {
            let elsewhere = accesses.elsewhere.contains(&var.id());
            let each = forms.iter().map(|f| f.coefficient(var));
            each.collect::<Option<Vec<i128>>>().filter(|_| !elsewhere)
        };
        let known: Vec<Option<Vec<i128>>> = self.axes.iter().map(|(v, ..)| moves(v)).collect();
        for (outer, by) in known.iter().enumerate() {
            for (inner, of) in known.iter().enumerate() {
                let (a, b) = (&self.axes[outer], &self.axes[inner]);
                let (Some(by), Some(of)) = (by, of) else { continue };
                let (Some(n), Some(m)) = (a.1.known(), b.1.known()) else { continue };
                let extent = i128::try_from(m).unwrap_or(i128::MAX);
                let one = by.iter().zip(of).all(|(x, y)| y.checked_mul(extent) == Some(*x));
                if outer == inner || a.2 != b.2 || !one {
                    continue;
                }
                let Some(count) = n.checked_mul(m) else { continue };
                let (gone, kept) = (a.0.clone(), b.0.clone());
                self.axes[inner].1 = Dim::from(count);
                self.axes.remove(outer);
                let zero = Expr::int(0, gone.dtype());
                self.substitute(Subst::vars([(gone, zero), (kept.clone(), kept.expr())]));
                return true;
            }
        }
        false
    }

    /// Spatial axes by how far they move what is stored, the farthest first; the order of loops says nothing.
    fn sort(&mut self) {
        let forms: Vec<Option<Linear>> = self.at.iter().map(Linear::from_expr).collect();
        let by = |var: &Var| {
            let each = forms.iter().map(|f| f.as_ref().and_then(|f| f.coefficient(var)));
            each.map(|c| c.unwrap_or(0)).collect::<Vec<i128>>()
        };
        let mut axes: Vec<_> = self.axes.drain(..).map(|axis| (by(&axis.0), axis)).collect();
        axes.sort_by(|(x, a), (y, b)| {
            let kind = |axis: &(Var, Dim, IterKind)| axis.2 != IterKind::Spatial;
            kind(a).cmp(&kind(b)).then_with(|| y.cmp(x))
        });
        self.axes = axes.into_iter().map(|(_, axis)| axis).collect();
    }
}

/// Numbers that variables are divided by.
#[derive(Default)]
struct Divisors(HashMap<Var, BTreeSet<i64>>);

impl Visit for Divisors {
    fn expr(&mut self, e: &Expr) {
        for op in [BinOp::FloorDiv, BinOp::FloorMod] {
            if let Some((y, by)) = divided(e, op)
                && let (Some(var), Ok(by)) = (y.as_var(), i64::try_from(by))
            {
                self.0.entry(var.clone()).or_default().insert(by);
            }
        }
        walk_expr(self, e);
    }
}

/// What the digits of an axis count, and how many of each there are, the outermost first; `None` where the numbers do
/// not divide one another.
fn digits(divisors: &BTreeSet<i64>, extent: i64) -> Option<Vec<(i64, i64)>> {
    let mut steps = vec![1];
    steps.extend(divisors.iter().filter(|d| **d > 1 && **d < extent));
    steps.push(extent);
    let pairs = steps.windows(2);
    let found: Option<Vec<(i64, i64)>> =
        pairs.map(|w| (w[1] % w[0] == 0).then_some((w[0], w[1] / w[0]))).collect();
    found.filter(|f| f.len() > 1).map(|f| f.into_iter().rev().collect())
}

/// Offsets of loads, and the variables that stand elsewhere.
#[derive(Default)]
struct Accesses {
    offsets: Vec<Expr>,
    elsewhere: BTreeSet<u64>,
}

impl Visit for Accesses {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Load(_, at) => {
                for index in at {
                    // Only what is loaded to make an index is looked at inside.
                    index.for_each_load(|_, inner| self.offsets.extend(inner.iter().cloned()));
                    self.offsets.push(index.clone());
                }
            }
            ExprKind::Var(v) => {
                self.elsewhere.insert(v.id());
            }
            _ => walk_expr(self, e),
        }
    }
}
