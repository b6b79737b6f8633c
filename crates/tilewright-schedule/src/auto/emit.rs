//! Building loops: flat views, values at a point, parallel nests.

use std::cmp::Ordering;
use std::collections::HashMap;

use tilewright_analysis::stage::Extent;
use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{
    Buffer, DType, Dim, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, Var, dim, extent,
};

use crate::auto::affine::{Affine, is_flat};
use crate::auto::axes::Axis;

/// Loops with fewer iterations of work than this run on one thread: waking others costs more.
pub const PARALLEL_WORK: i64 = 16 * 1024;

/// Enough parallel iterations that chunks of them balance over a few threads.
pub const PARALLEL_ITERATIONS: i64 = 32;

/// Flat views of buffers and new buffers, made on demand, which are defined around the whole body
/// at the end.
#[derive(Default)]
pub struct Views {
    flat: HashMap<Buffer, Buffer>,
    order: Vec<Buffer>,
    allocated: Vec<Buffer>,
}

impl Views {
    /// The view of a buffer as one axis, for which [`is_flat`] holds: of all that it spans.
    pub fn flat(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(f) = self.flat.get(buffer) {
            return f.clone();
        }
        if buffer.rank() == 1 && buffer.strides.is_empty() {
            return buffer.clone();
        }
        // One that `int32` does not count has no affine offsets, and is not viewed.
        let size = match buffer.strides.is_empty() {
            true => extent::product(DType::I32, &buffer.shape),
            false => extent::span(&buffer.shape, &buffer.strides),
        };
        let Ok(size) = size else { return buffer.clone() };
        let flat = buffer.derive(|d| {
            d.shape = vec![size];
            d.strides = Vec::new();
        });
        self.flat.insert(buffer.clone(), flat.clone());
        self.order.push(flat.clone());
        flat
    }

    /// Gives a buffer memory for the whole body.
    pub fn allocate(&mut self, buffer: &Buffer) {
        self.allocated.push(buffer.clone());
    }

    /// Defines every view and new buffer around a body.
    pub fn define(self, body: Stmt) -> Stmt {
        let declare = |body, buffer| Stmt::new(StmtKind::Declare { buffer, body });
        let body = self.order.into_iter().rev().fold(body, declare);
        self.allocated.iter().rev().fold(body, |body, b| Stmt::allocate(b, body))
    }
}

/// Where every axis stands: the values of a stage's iteration variables, also as axes.
pub struct Point<'a> {
    /// Axes with their values.
    pub axes: Vec<(&'a Axis, Expr)>,
    /// Values of the iteration variables.
    pub vars: HashMap<Var, Expr>,
}

impl<'a> Point<'a> {
    /// The point at which each axis has the given value, and variables of extent one are zero.
    pub fn new(units: &HashMap<Var, Expr>, axes: Vec<(&'a Axis, Expr)>) -> Self {
        let mut vars = units.clone();
        for (axis, at) in &axes {
            vars.extend(axis.unfuse(at));
        }
        Point { axes, vars }
    }

    /// The flat offset of an access; `known` as for [`Point::value`].
    fn offset(&self, access: &Affine, views: &mut Views, known: Known) -> Expr {
        let mut sum = Expr::i32(0);
        for (axis, at) in &self.axes {
            // A variable without a coefficient is inside of the opaque terms.
            match axis.step(access) {
                Some(step) => sum = sum + at.clone() * step,
                None => {
                    for (v, _) in &axis.parts {
                        let direct = access.vars().find(|(x, _)| *x == v);
                        sum = sum + self.vars[v].clone() * direct.map_or(0, |(_, k)| k);
                    }
                }
            }
        }
        // What is no axis: open sizes, and variables of extent one.
        let is_axis = |v: &Var| self.axes.iter().any(|(a, _)| a.parts.iter().any(|(x, _)| x == v));
        for (v, step) in access.vars().filter(|(v, _)| !is_axis(v)) {
            let at = self.vars.get(v).cloned().unwrap_or_else(|| v.expr());
            sum = sum + at.cast(DType::I32) * step;
        }
        for (term, factor) in access.opaque() {
            let term = At { point: self, views, known }.expr(term);
            sum = sum + term.cast(DType::I32) * factor;
        }
        sum + access.constant()
    }

    /// A value of the stage at this point; `known` replaces loads of one buffer by a value.
    pub fn value(&self, e: &Expr, views: &mut Views, known: Known) -> Expr {
        At { point: self, views, known }.expr(e)
    }

    /// A store of the stage at this point.
    pub fn store(&self, buffer: &Buffer, indices: &[Expr], value: Expr, views: &mut Views) -> Stmt {
        match Affine::of_access(buffer, indices).filter(|_| is_flat(buffer)) {
            Some(offset) => {
                let offset = self.offset(&offset, views, None);
                Stmt::store(&views.flat(buffer), vec![offset], value)
            }
            None => {
                let mut at = At { point: self, views, known: None };
                Stmt::store(buffer, indices.iter().map(|i| at.expr(i)).collect(), value)
            }
        }
    }
}

/// A buffer that has no memory, and the value that stands for each load of it, also for one inside of
/// an index.
type Known<'a> = Option<(&'a Buffer, &'a Expr)>;

struct At<'a, 'b> {
    point: &'a Point<'a>,
    views: &'b mut Views,
    known: Known<'a>,
}

impl Fold for At<'_, '_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Var(v) => self.point.vars.get(v).cloned().unwrap_or_else(|| e.clone()),
            ExprKind::Load(b, indices) => {
                if let Some((_, value)) = self.known.filter(|(known, _)| *known == b) {
                    return value.clone();
                }
                match Affine::of_access(b, indices).filter(|_| is_flat(b)) {
                    Some(a) => {
                        let offset = self.point.offset(&a, self.views, self.known);
                        self.views.flat(b).load([offset])
                    }
                    None => fold_expr_children(self, e),
                }
            }
            _ => fold_expr_children(self, e),
        }
    }
}

/// A loop `for var in range(extent)`; none where the extent is one.
pub fn for_each(
    kind: ForKind,
    name: &str,
    extent: impl Extent,
    body: impl FnOnce(Expr) -> Stmt,
) -> Stmt {
    let extent = extent.dim();
    if extent == 1 {
        return body(Expr::i32(0));
    }
    let var = Var::index(name);
    let range = Range::upto(extent.typed(DType::I32));
    let body = body(var.expr());
    Stmt::for_loop(&var, range, kind, body)
}

/// How many loops, from outside, of those with such extents make up one parallel loop: as many of the
/// first `fusible` ones as it takes to have enough iterations to share, and none where `work`
/// (innermost iterations in all) is not worth it.
pub fn shared(extents: &[Dim], fusible: usize, work: i64) -> usize {
    let mut fused = 0;
    let mut total = Dim::from(1);
    if work < PARALLEL_WORK {
        return 0;
    }
    while fused < extents.len().min(fusible) && total.estimate() < PARALLEL_ITERATIONS {
        let more = total * extents[fused];
        // Quotients by open sizes are not linear: only the outermost may be open.
        let linear = total == 1 || extents[fused].known().is_some();
        if !more.fits_int32() || !linear {
            break;
        }
        total = more;
        fused += 1;
    }
    if total == 1 { 0 } else { fused }
}

/// Nested loops, outermost first, with the leading ones in parallel where `work` (innermost
/// iterations in all) is worth it ([`shared`]).
pub fn nest(
    loops: &[(String, Dim)],
    fusible: usize,
    work: i64,
    body: impl FnOnce(Vec<Expr>) -> Stmt,
) -> Stmt {
    let extents: Vec<Dim> = loops.iter().map(|l| l.1).collect();
    let fused = shared(&extents, fusible, work);
    let total = dim::product(extents[..fused].iter().copied());
    if total == 1 {
        return serial_nest(loops, Vec::new(), body);
    }
    let (outer, inner) = loops.split_at(fused);
    let name = outer.iter().filter(|l| l.1 != 1).map(|l| &*l.0).collect::<Vec<_>>().join("_");
    for_each(ForKind::Parallel, &name, total, |at| {
        let mut values = Vec::new();
        let first = outer.iter().position(|l| l.1 != 1);
        for (k, (_, extent)) in outer.iter().enumerate() {
            let left = dim::product(outer[k + 1..].iter().map(|l| l.1));
            values.push(match Some(k).cmp(&first) {
                Ordering::Less => Expr::i32(0),
                _ if *extent == 1 => Expr::i32(0),
                Ordering::Equal => at.clone().floordiv(left.typed(DType::I32)),
                Ordering::Greater => {
                    at.clone().floordiv(left.typed(DType::I32)).floormod(extent.typed(DType::I32))
                }
            });
        }
        serial_nest(inner, values, body)
    })
}

fn serial_nest(
    loops: &[(String, Dim)],
    mut values: Vec<Expr>,
    body: impl FnOnce(Vec<Expr>) -> Stmt,
) -> Stmt {
    let vars: Vec<(Option<Var>, Dim)> =
        loops.iter().map(|(n, e)| ((*e != 1).then(|| Var::index(n.as_str())), *e)).collect();
    values.extend(vars.iter().map(|(v, _)| v.as_ref().map_or(Expr::i32(0), Var::expr)));
    let stmt = body(values);
    vars.into_iter().rev().fold(stmt, |stmt, (var, extent)| match var {
        Some(var) => Stmt::serial(&var, extent.typed(DType::I32), stmt),
        None => stmt,
    })
}
