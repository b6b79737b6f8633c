//! One tensor function, some of whose axes change.
//!
//! A change of an axis of a buffer goes to the iteration variables that index it, and from there to the
//! other axes that these index:
//!
//! | index of the axis | what follows |
//! |---|---|
//! | `v + c` | the same change of `v`, `c` earlier; what lies in front of all that is accessed moves `c` instead |
//! | `v // k`, all of `v` | `k` times the change |
//! | `v // k % r`, `v % k` | nothing, as long as `v` changes by whole periods |
//! | `v * k + w` without overlap | a `k`-th of the change, for `v` |
//! | `s * y + d * k + c`, a window | a change of the axis by a multiple of `s` adds to the end of `y` |
//!
//! Conditions that compare `v` with a number move the number along. All else is refused where what
//! changes takes part in it.

use tilewright_ir::hash::HashMap;

use tilewright_analysis::{Stage, stages};
use tilewright_ir::index::Linear;
use tilewright_ir::visit::{fold_expr_children, free_vars};
use tilewright_ir::{
    BinOp, Buffer, Error, Expr, ExprKind, Fold, IterKind, Param, Result, Stmt, TensorFunc, Var,
};

use super::growth::Growth;
use crate::stages::accesses;

/// The changes of the axes of buffers.
type Axes = HashMap<Buffer, Vec<Growth>>;

/// What an index is.
enum IndexForm {
    Number(i64),
    /// `v + c`.
    Shifted(Var, i64),
    /// The first digit of a variable: `v // k`.
    First(Var, i64),
    /// Another digit, which comes again after so many values.
    Digit(Var, i64),
    /// `v * k` and others that are less than `k` together.
    Joined(Var, i64),
    /// A window that slides with `y` by steps of `s`.
    Window(Var, i64),
    /// Something else.
    Other,
}

pub(super) struct Resize<'a> {
    func: &'a TensorFunc,
    stages: Vec<Stage>,
    axes: Axes,
    vars: HashMap<Var, Growth>,
    changed: bool,
}

impl<'a> Resize<'a> {
    /// The changes that follow from those of some axes.
    ///
    /// # Errors
    /// `Refused` where they cannot be followed.
    pub fn new(func: &'a TensorFunc, given: &[(Buffer, Vec<Growth>)]) -> Result<Resize<'a>> {
        let stages = stages(func).ok_or_else(|| refused("it is not in canonical form"))?;
        let (allocs, _) = func.root_parts();
        let mut axes: Axes = func
            .buffers()
            .chain(allocs)
            .map(|b| (b.clone(), vec![Growth::default(); b.shape.len()]))
            .collect();
        for (b, growth) in given {
            axes.insert(b.clone(), growth.clone());
        }
        let mut resize = Resize { func, stages, axes, vars: HashMap::default(), changed: true };
        while resize.changed {
            resize.changed = false;
            for k in 0..resize.stages.len() {
                resize.stage(k)?;
            }
        }
        resize.check()?;
        Ok(resize)
    }

    /// The changes of the axes of a buffer.
    pub fn growth(&self, b: &Buffer) -> &[Growth] {
        self.axes.get(b).map_or(&[], Vec::as_slice)
    }

    fn of_var(&self, v: &Var) -> Growth {
        self.vars.get(v).cloned().unwrap_or_default()
    }

    /// One more round over the accesses of a stage.
    fn stage(&mut self, k: usize) -> Result<()> {
        let stage = self.stages[k].clone();
        for (b, at) in accesses(&stage) {
            let shape = b.const_shape().ok_or_else(|| refused("a size is open"))?;
            for (d, (index, extent)) in at.iter().zip(shape).enumerate() {
                self.axis(&stage, &b, d, index, extent)?;
            }
        }
        Ok(())
    }

    /// What an index and its axis say of each other.
    fn axis(&mut self, s: &Stage, b: &Buffer, d: usize, e: &Expr, extent: i64) -> Result<()> {
        let axis = self.growth(b).get(d).cloned().unwrap_or_default();
        let form = form(s, e, extent);
        match &form {
            IndexForm::Number(_) => {}
            IndexForm::Shifted(v, c) => {
                let own = extent_of(s, v);
                for (place, by) in axis.iter() {
                    let inside = place > *c && place < c + own;
                    // What is at the end of a part of an axis belongs to it where the axis ends there.
                    if inside || place == c + own && place == extent {
                        self.grow(v, place - c, by)?;
                    }
                }
                for (place, by) in self.of_var(v).iter() {
                    if place + c > 0 && place + c <= extent {
                        self.grow_axis(b, d, place + c, by)?;
                    }
                }
            }
            IndexForm::First(v, k) => {
                for (place, by) in axis.iter() {
                    self.grow(v, place * k, by * k)?;
                }
                let own = self.of_var(v);
                if !own.is_multiple_of(*k) {
                    return Err(refused(format!("`{e}` would be split elsewhere")));
                }
                for (place, by) in own.iter() {
                    self.grow_axis(b, d, place / k, by / k)?;
                }
            }
            IndexForm::Digit(v, period) => {
                if !axis.is_none() || !self.of_var(v).is_multiple_of(*period) {
                    return Err(refused(format!("`{e}` would be another digit")));
                }
            }
            IndexForm::Joined(v, k) => {
                for (place, by) in axis.iter() {
                    if place % k != 0 || by % k != 0 {
                        return Err(refused(format!("`{e}` moves by {k} at a time")));
                    }
                    self.grow(v, place / k, by / k)?;
                }
                for (place, by) in self.of_var(v).iter() {
                    self.grow_axis(b, d, place * k, by * k)?;
                }
            }
            IndexForm::Window(v, step) => {
                let by = axis.sum();
                if by % step != 0 {
                    return Err(refused(format!("`{e}` moves by {step} at a time")));
                }
                if by != 0 {
                    self.grow(v, extent_of(s, v), by / step)?;
                }
            }
            IndexForm::Other => {}
        }
        Ok(())
    }

    fn grow(&mut self, v: &Var, place: i64, by: i64) -> Result<()> {
        let known = self.vars.entry(v.clone()).or_default();
        self.changed |= known
            .add(place, by)
            .ok_or_else(|| refused(format!("`{}` would have two sizes", v.name())))?;
        Ok(())
    }

    fn grow_axis(&mut self, b: &Buffer, d: usize, place: i64, by: i64) -> Result<()> {
        let known = self.axes.get_mut(b).and_then(|axes| axes.get_mut(d));
        let known = known.ok_or_else(|| Error::internal("an access of no buffer"))?;
        self.changed |= known
            .add(place, by)
            .ok_or_else(|| refused(format!("axis {d} of `{}` would have two sizes", b.name)))?;
        Ok(())
    }

    /// Whether every access and condition can be written anew, and all that comes is written.
    fn check(&self) -> Result<()> {
        for s in &self.stages {
            for (b, at) in &accesses(s) {
                let shape = b.const_shape().unwrap_or_default();
                for (d, (index, extent)) in at.iter().zip(&shape).enumerate() {
                    let axis = self.growth(b).get(d).cloned().unwrap_or_default();
                    let moving = free_vars(index).iter().any(|v| !self.of_var(v).is_none());
                    let fits = match form(s, index, *extent) {
                        IndexForm::Other => axis.is_none() && !moving,
                        IndexForm::Window(v, step) => {
                            let others = free_vars(index).into_iter().filter(|w| *w != v);
                            let still = others.into_iter().all(|w| self.of_var(&w).is_none());
                            still && self.of_var(&v).sum() * step == axis.sum()
                        }
                        IndexForm::Joined(v, _) => {
                            let mut others = free_vars(index).into_iter().filter(|w| *w != v);
                            others.all(|w| self.of_var(&w).is_none())
                        }
                        _ => true,
                    };
                    if !fits {
                        return Err(refused(format!("`{index}` cannot follow")));
                    }
                    if extent + axis.sum() <= 0 {
                        return Err(refused(format!("nothing would be left of `{}`", b.name)));
                    }
                }
            }
            if !self.follows(&s.value) || !s.init.iter().all(|e| self.follows(e)) {
                return Err(refused("it computes with an index that changes"));
            }
        }
        self.check_stores()
    }

    /// Whether every change of a buffer that is written comes from a loop over it.
    fn check_stores(&self) -> Result<()> {
        for (b, axes) in &self.axes {
            let stores: Vec<&Stage> = self.stages.iter().filter(|s| s.buffer == *b).collect();
            for (d, axis) in axes.iter().enumerate().filter(|_| !stores.is_empty()) {
                for (place, by) in axis.iter() {
                    let is_made = stores.iter().any(|s| {
                        let extent = b.const_shape().and_then(|shape| shape.get(d).copied());
                        match extent.map(|n| form(s, &s.indices[d], n)) {
                            Some(IndexForm::Shifted(v, c)) => {
                                self.of_var(&v).iter().any(|g| g == (place - c, by))
                            }
                            Some(IndexForm::First(v, k)) => {
                                self.of_var(&v).iter().any(|g| g == (place * k, by * k))
                            }
                            Some(IndexForm::Joined(v, k)) => {
                                self.of_var(&v).iter().any(|g| (g.0 * k, g.1 * k) == (place, by))
                            }
                            _ => false,
                        }
                    });
                    if !is_made {
                        let text = format!("nothing writes what is new of `{}`", b.name);
                        return Err(refused(text));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether an expression outside of indices uses what changes only in comparisons with numbers.
    fn follows(&self, e: &Expr) -> bool {
        let mut all = true;
        e.for_each(|e| match e.kind() {
            ExprKind::Load(..) => false,
            ExprKind::Var(v) => {
                all &= self.of_var(v).is_none();
                false
            }
            ExprKind::Binary(op, a, b) if op.is_compare() => match compared(a, b) {
                Some((v, _)) => {
                    all &= self.of_var(&v).is_none() || is_order(*op);
                    false
                }
                None => true,
            },
            _ => true,
        });
        all
    }

    /// The function with its new sizes.
    pub fn build(&self) -> TensorFunc {
        let (allocs, _) = self.func.root_parts();
        let buffers: HashMap<Buffer, Buffer> =
            self.func.buffers().chain(allocs).map(|b| (b.clone(), self.grown_buffer(b))).collect();
        let bodies = self.stages.iter().map(|stage| {
            let mut rewrite = Rewrite { resize: self, stage, buffers: &buffers };
            let iters: Vec<(Var, i64, IterKind)> = stage
                .iters()
                .map(|(v, extent, kind)| (v.clone(), extent + self.of_var(v).sum(), kind))
                .collect();
            let indices = rewrite.indices(&stage.buffer, &stage.indices);
            let value = rewrite.expr(&stage.value);
            let init = stage.init.as_ref().map(|e| rewrite.expr(e));
            let buffer = &buffers[&stage.buffer];
            Stage::build(stage.name().clone(), &iters, buffer, indices, value, init).stmt
        });
        let bodies: Vec<Stmt> = bodies.collect();
        let params = self.func.params.iter().map(|p| match p {
            Param::Buffer { buffer, .. } => Param::tensor(&buffers[buffer]),
            other => other.clone(),
        });
        let allocs = allocs.iter().map(|b| buffers[b].clone()).collect();
        let bare = TensorFunc { params: params.collect(), ..self.func.clone() };
        bare.with_root(allocs, Stmt::seq(bodies))
    }

    fn grown_buffer(&self, b: &Buffer) -> Buffer {
        let shape = b.const_shape().unwrap_or_default();
        let growth = self.growth(b).iter().map(Growth::sum);
        let shape: Vec<i64> = shape.iter().zip(growth).map(|(n, by)| n + by).collect();
        Buffer::with_extents(b.name.clone(), &shape, b.dtype())
    }
}

/// Expressions of a stage with its new sizes.
struct Rewrite<'a> {
    resize: &'a Resize<'a>,
    stage: &'a Stage,
    buffers: &'a HashMap<Buffer, Buffer>,
}

impl Rewrite<'_> {
    fn indices(&mut self, b: &Buffer, at: &[Expr]) -> Vec<Expr> {
        let growth = self.resize.growth(b).to_vec();
        let shape = b.const_shape().unwrap_or_default();
        at.iter().zip(growth.into_iter().zip(shape)).map(|index| self.new_index(index)).collect()
    }

    fn new_index(&self, (e, (growth, extent)): (&Expr, (Growth, i64))) -> Expr {
        match form(self.stage, e, extent) {
            IndexForm::Number(n) => Expr::int(n + growth.shift(n), e.dtype()),
            IndexForm::Shifted(v, c) => {
                // By what the first cell that is accessed moves away from its index.
                let first = c.max(0);
                let moved = growth.shift(first) - self.resize.of_var(&v).shift(first - c);
                match (moved, c + moved) {
                    (0, _) => e.clone(),
                    (_, c) if c < 0 => v.expr().cast(e.dtype()) - -c,
                    (_, c) => v.expr().cast(e.dtype()) + c,
                }
            }
            _ => e.clone(),
        }
    }
}

impl Fold for Rewrite<'_> {
    fn access(&mut self, b: &Buffer, at: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        Some((self.buffers.get(b).unwrap_or(b).clone(), self.indices(b, at)))
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Binary(op, a, b) if op.is_compare() => {
                let Some((v, c)) = compared(a, b) else { return fold_expr_children(self, e) };
                let growth = self.resize.of_var(&v);
                let Some(number) = b.as_int() else { return e.clone() };
                // The first index of the part that the comparison begins or ends.
                let first = number - c + i64::from(matches!(op, BinOp::Le | BinOp::Gt));
                let by = growth.shift(first);
                Expr::binary(*op, a.clone(), Expr::int(number + by, b.dtype()))
            }
            _ => fold_expr_children(self, e),
        }
    }
}

/// `v + c`, compared with a number: `v` and `c`.
fn compared(a: &Expr, b: &Expr) -> Option<(Var, i64)> {
    b.as_int()?;
    let form = Linear::from_expr(a)?;
    let [v] = &free_vars(a).into_iter().collect::<Vec<_>>()[..] else { return None };
    let is_plain = form.coefficient(v) == Some(1);
    let rest = form.plus(&Linear::atom(v.expr()), -1)?.as_constant()?;
    is_plain.then_some((v.clone(), i64::try_from(rest).ok()?))
}

fn is_order(op: BinOp) -> bool {
    matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
}

fn extent_of(s: &Stage, v: &Var) -> i64 {
    s.iters().find(|i| i.0 == v).map_or(1, |i| i.1)
}

/// What an index of an axis is.
fn form(s: &Stage, e: &Expr, extent: i64) -> IndexForm {
    if let Some(n) = e.as_int() {
        return IndexForm::Number(n);
    }
    let mut vars: Vec<Var> = free_vars(e).into_iter().collect();
    if !vars.iter().all(|v| s.iters().any(|i| i.0 == v)) {
        return IndexForm::Other;
    }
    if let [v] = &vars[..]
        && let Some(form) = digit(s, e, v, extent)
    {
        return form;
    }
    let Some(linear) = Linear::from_expr(e) else { return IndexForm::Other };
    let mut rest = linear.clone();
    let mut terms: Vec<(i64, Var)> = Vec::new();
    vars.sort_by_key(|v| v.id());
    for v in vars {
        let Some(k) = linear.coefficient(&v).and_then(|k| i64::try_from(k).ok()) else {
            return IndexForm::Other;
        };
        let Some(less) = rest.plus(&Linear::atom(v.expr()), -i128::from(k)) else {
            return IndexForm::Other;
        };
        rest = less;
        terms.push((k, v));
    }
    let Some(c) = rest.as_constant().and_then(|c| i64::try_from(c).ok()) else {
        return IndexForm::Other;
    };
    if let [(1, v)] = &terms[..] {
        return IndexForm::Shifted(v.clone(), c);
    }
    if terms.iter().any(|t| t.0 <= 0) {
        return IndexForm::Other;
    }
    terms.sort_by_key(|t| std::cmp::Reverse(t.0));
    if let [(k, v), inner @ ..] = &terms[..]
        && c == 0
        && span_of(inner, s) + 1 == *k
        && k * extent_of(s, v) == extent
    {
        return IndexForm::Joined(v.clone(), *k);
    }
    let mut sliding = terms.iter().filter(|(_, v)| s.spatial().any(|i| i.0 == v));
    match (sliding.next(), sliding.next()) {
        (Some((k, v)), None) => IndexForm::Window(v.clone(), *k),
        _ => IndexForm::Other,
    }
}

fn span_of(terms: &[(i64, Var)], s: &Stage) -> i64 {
    terms.iter().map(|(k, v)| k * (extent_of(s, v) - 1)).sum()
}

/// A digit of a variable: `v // k`, `v // k % r`, `v % r`.
fn digit(s: &Stage, e: &Expr, v: &Var, extent: i64) -> Option<IndexForm> {
    match e.kind() {
        ExprKind::Binary(BinOp::FloorMod, a, r) => {
            let (k, r) = (divisor_of(a, v)?, r.as_int()?);
            Some(IndexForm::Digit(v.clone(), k.checked_mul(r)?))
        }
        ExprKind::Binary(BinOp::FloorDiv, ..) => {
            let k = divisor_of(e, v).filter(|k| *k > 0)?;
            let exact = extent.checked_mul(k) == Some(extent_of(s, v));
            exact.then(|| IndexForm::First(v.clone(), k))
        }
        _ => None,
    }
}

fn divisor_of(e: &Expr, v: &Var) -> Option<i64> {
    match e.kind() {
        ExprKind::Binary(BinOp::FloorDiv, a, k) if a.as_var() == Some(v) => k.as_int(),
        _ if e.as_var() == Some(v) => Some(1),
        _ => None,
    }
}

fn refused(why: impl Into<String>) -> Error {
    Error::refused(why.into())
}
