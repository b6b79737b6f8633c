//! Products of 16-bit floats whose factors are widened once.
//!
//! A product of halves is a sum of `float32`. Where a factor is used for many places of the result, converting it
//! where it is multiplied takes as long as multiplying. So what is not the same in every run is widened before, by a
//! stage of its own; weights stay as they are, half as many bytes, and are widened in registers, where one
//! conversion serves all rows of a tile.
//!
//! ```text
//! for i, j, k: c[i, j] += f32(a[i, k]) * f32(w[k, j])      for i, k: a_wide[i, k] = f32(a[i, k])
//!                                                          for i, j, k: c[i, j] += a_wide[i, k] * f32(w[k, j])
//! ```
//!
//! Once there are tiles, it is known how often weights are converted, once for each tile of rows. Where that is often,
//! each run widens them once, before all tiles: conversions take the units that multiply.

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::{
    accessed, fold_expr_children, fold_stmt_children, walk_expr, walk_stmt,
};
use tilewright_ir::{
    Buffer, DType, Expr, ExprKind, Fold, ForKind, IterKind, Stmt, StmtKind, TensorFunc, Visit,
};
use tilewright_target::Target;

use crate::canonical::mapped;

/// Places of the result for each of which a factor is used from which on it is widened before.
const OFTEN: usize = 8;

/// Conversions of each weight from which on weights are widened before, where they then stay in half of the second
/// cache.
const CONVERSIONS: u64 = 8;

/// The same for weights that come from memory then.
const CONVERSIONS_OF_MANY: u64 = 64;

/// Whether it is a float of 16 bits.
pub(crate) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The function with factors of products of halves widened before; `None` where that is of no use, or the machine
/// multiplies them as they are. `is_free` says which buffers are the same in every run.
pub(crate) fn widen(
    func: &TensorFunc,
    target: &Target,
    is_free: &dyn Fn(&Buffer) -> bool,
) -> Option<TensorFunc> {
    let stages = open_stages(func)?;
    let (mut allocs, mut stmts) = (func.root_parts().0.to_vec(), Vec::new());
    let mut changed = false;
    for stage in &stages {
        let mut stage = stage.clone();
        for from in often_used(&stage, target, is_free) {
            let (wide, made) = mapped(&from, "wide", DType::F32, |x, _| x)?;
            let value = stage.value.replace(|e| match e.kind() {
                ExprKind::Cast(x) => match x.kind() {
                    ExprKind::Load(b, at) if *b == from => Some(wide.load(at.clone())),
                    _ => None,
                },
                _ => None,
            });
            stage = stage.with_value(value);
            stmts.push(made.stmt);
            allocs.push(wide);
            changed = true;
        }
        stmts.push(stage.stmt);
    }
    changed.then(|| func.with_root(allocs, Stmt::seq(stmts)))
}

/// The function with arguments of halves, which its loops convert often, widened before; `None` where there are none.
pub(crate) fn widen_once(func: &TensorFunc, target: &Target) -> Option<TensorFunc> {
    let mut converted = Conversions::default();
    converted.stmt(&func.body);
    let written = accessed(&func.body).1;
    let often = |b: &&Buffer| {
        let Some(cells) = b.shape.iter().try_fold(1u64, |all, n| all.checked_mul(known(n)?)) else {
            return false;
        };
        let fits = cells.saturating_mul(2 * DType::F32.bytes() as u64) <= target.caches.l2 as u64;
        let least = if fits { CONVERSIONS } else { CONVERSIONS_OF_MANY };
        !written.contains(b) && converted.count(b) >= cells.max(1).saturating_mul(least)
    };
    let mut wide = Vec::new();
    let (mut allocs, body) = (func.root_parts().0.to_vec(), func.root_parts().1);
    let mut stmts = Vec::new();
    for from in func.buffers().filter(|b| is_half(b.dtype())).filter(often) {
        let (to, stage) = mapped(from, "wide", DType::F32, |x, _| x)?;
        allocs.push(to.clone());
        stmts.push(stage.stmt);
        wide.push((from.clone(), to));
    }
    if wide.is_empty() {
        return None;
    }
    stmts.push(Widened { wide }.stmt(body));
    Some(func.with_root(allocs, Stmt::seq(stmts)))
}

fn known(extent: &Expr) -> Option<u64> {
    extent.as_int().and_then(|n| u64::try_from(n).ok())
}

/// How often halves are converted by loops of known extents, where no other use is made of them. A conversion that
/// copies of a loop's body repeat is one.
#[derive(Default)]
struct Conversions {
    /// Iterations of the loops around, copies left out; `None` where they are not known.
    around: Vec<Option<u64>>,
    counts: Vec<(Buffer, u64)>,
    /// What is also read as it is.
    others: Vec<Buffer>,
}

impl Conversions {
    fn count(&self, b: &Buffer) -> u64 {
        if self.others.contains(b) {
            return 0;
        }
        self.counts.iter().filter(|(of, _)| of == b).fold(0, |all, (_, n)| all.saturating_add(*n))
    }
}

impl Visit for Conversions {
    fn stmt(&mut self, s: &Stmt) {
        // What is assumed of halves is no use of them.
        if let StmtKind::Assume(_) = s.kind() {
            return;
        }
        let StmtKind::For { range, kind, .. } = s.kind() else { return walk_stmt(self, s) };
        self.around.push(if *kind == ForKind::Unrolled { Some(1) } else { known(&range.extent) });
        walk_stmt(self, s);
        self.around.pop();
    }

    fn expr(&mut self, e: &Expr) {
        let half = if e.dtype() == DType::F32 { half(e) } else { None };
        if let Some((from, at)) = half {
            let all = self.around.iter().try_fold(1u64, |all, n| all.checked_mul((*n)?));
            self.counts.push((from, all.unwrap_or(0)));
            return at.iter().for_each(|i| self.expr(i));
        }
        if let ExprKind::Load(b, _) = e.kind() {
            self.others.push(b.clone());
        }
        walk_expr(self, e);
    }
}

/// Reads what was widened in the place of halves.
struct Widened {
    wide: Vec<(Buffer, Buffer)>,
}

impl Fold for Widened {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Seq(_) => fold_stmt_children(self, s),
            // What is assumed is said of the halves.
            _ if s.effects().assumes => s.clone(),
            _ => fold_stmt_children(self, s),
        }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        let read = half(e).and_then(|(b, at)| {
            let to = &self.wide.iter().find(|(from, _)| *from == b)?.1;
            Some((to.clone(), at))
        });
        match read {
            Some((to, at)) => to.load(at.iter().map(|i| self.expr(i)).collect::<Vec<_>>()),
            None => fold_expr_children(self, e),
        }
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        let to = self.wide.iter().find(|(from, _)| from == b);
        to.map_or(b, |(_, to)| to).clone()
    }
}

/// The halves that a stage multiplies and uses often, which are not the same in every run.
fn often_used(stage: &Stage, target: &Target, is_free: &dyn Fn(&Buffer) -> bool) -> Vec<Buffer> {
    let factors = stage.factors().filter(|_| stage.buffer.dtype() == DType::F32);
    let halves = factors.and_then(|[a, b]| Some([half(&a)?, half(&b)?]));
    let Some(halves) = halves.filter(|[a, b]| a.0 != b.0 && !multiplies(target, a.0.dtype()))
    else {
        return Vec::new();
    };
    let often = |at: &[Expr]| {
        let mut others = stage.dims().filter(|(v, _, kind)| {
            *kind == IterKind::Spatial && !at.iter().any(|index| index.mentions(v))
        });
        let count =
            others.try_fold(1, |all: usize, (_, n, _)| Some(all.saturating_mul(n.known()?)));
        count.is_none_or(|count| count >= OFTEN)
    };
    halves.into_iter().filter(|(b, at)| !is_free(b) && often(at)).map(|(b, _)| b).collect()
}

/// The load of a half that a factor widens.
fn half(factor: &Expr) -> Option<(Buffer, Vec<Expr>)> {
    let ExprKind::Cast(x) = factor.kind() else { return None };
    match x.kind() {
        ExprKind::Load(b, at) if is_half(b.dtype()) => Some((b.clone(), at.clone())),
        _ => None,
    }
}

/// Whether a machine multiplies halves of a type as they are.
fn multiplies(target: &Target, dtype: DType) -> bool {
    target.tensor_instructions().any(|i| {
        let fits = (i.is_dot() || i.is_of_warp()) && i.c.dtype == DType::F32;
        fits && (i.a.dtype, i.b.dtype) == (dtype, dtype) && i.implementation().is_some()
    })
}
