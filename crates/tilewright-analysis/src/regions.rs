//! The boxes of each buffer that a block reads and writes.
//!
//! A region is a box: one range an axis, in terms of the variables that are defined outside of
//! the statement. Variables of inner loops and blocks are widened over their values:
//!
//! ```text
//! for x in range(16): B[i*16 + x] = A[i*16 + x + 2]     reads A[i*16 + 2 : i*16 + 18]
//! ```
//!
//! An index that is affine in the inner variables gives its exact bounds, also symbolic ones. For
//! any other index, or where several accesses have no common bound that can be compared, the
//! region is the whole axis. Conditions do not shrink a region. Each buffer appears once, in the
//! order of the text; the accumulator of a block with an initialisation is written, not read.

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{Linear, Ranges, simplify};
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, Fold, Range, Region, Stmt, StmtKind, Var, Visit, extent,
};

use tilewright_polyhedral::place::{Place, Placed, ScopeStep, walk_expr_placed, walk_stmt_placed};

/// What a block reads and what it writes, from its accesses.
pub fn infer(block: &Block) -> (Vec<Region>, Vec<Region>) {
    infer_within(block, &[])
}

/// [`infer`] of a block inside of these statements, outermost first: what the variables of their loops and
/// blocks can be says which indices do not wrap, so that `(i * 16 + x) // 16` is `i`.
pub fn infer_within(block: &Block, around: &[Stmt]) -> (Vec<Region>, Vec<Region>) {
    let mut outer = Ranges::default();
    for s in around {
        match s.kind() {
            StmtKind::For { var, range, .. } => outer.bind_loop(var, range),
            StmtKind::Block { block, .. } => {
                block.iters.iter().for_each(|i| outer.bind_loop(&i.var, &i.domain));
            }
            _ => {}
        }
    }
    for iter in &block.iters {
        outer.bind_loop(&iter.var, &iter.domain);
    }
    let at = Inner { vars: Vec::new(), ranges: outer };
    let mut scan = Scan { at, reads: Vec::new(), writes: Vec::new() };
    block.init.iter().for_each(|s| scan.stmt(s));
    scan.stmt(&block.body);
    for m in &block.matches {
        for list in [&mut scan.reads, &mut scan.writes] {
            if list.iter().any(|r| r.buffer == m.buffer) {
                add(list, m.source.clone());
            }
        }
    }
    let Scan { mut reads, mut writes, .. } = scan;
    reads.retain(|r| !is_local(r, block));
    writes.retain(|r| !is_local(r, block));
    if block.init.is_some() {
        reads.retain(|r| !writes.iter().any(|w| same_region(r, w)));
    }
    (reads, writes)
}

fn is_local(r: &Region, block: &Block) -> bool {
    block.allocs.contains(&r.buffer) || block.matches.iter().any(|m| m.buffer == r.buffer)
}

/// The regions that a block declares, and the inferred ones where it declares none.
pub fn declared_or_inferred(block: &Block) -> (Vec<Region>, Vec<Region>) {
    match (&block.reads, &block.writes) {
        (Some(r), Some(w)) => (r.clone(), w.clone()),
        (r, w) => {
            let (reads, writes) = infer(block);
            (r.clone().unwrap_or(reads), w.clone().unwrap_or(writes))
        }
    }
}

/// Whether two regions are the same box of the same buffer, as far as simplification shows.
pub fn same_region(a: &Region, b: &Region) -> bool {
    let free = Ranges::default();
    a.buffer == b.buffer
        && a.ranges.len() == b.ranges.len()
        && a.ranges
            .iter()
            .zip(&b.ranges)
            .all(|(x, y)| equal_in(&x.min, &y.min, &free) && equal_in(&x.extent, &y.extent, &free))
}

fn equal_in(x: &Expr, y: &Expr, free: &Ranges) -> bool {
    same_expr(x, y) || same_expr(&simplify(x, free), &simplify(y, free))
}

/// Variables around an access.
#[derive(Clone)]
struct Inner {
    /// Those defined inside, with their values; innermost last.
    vars: Vec<(Var, Range)>,
    ranges: Ranges,
}

impl Place for Inner {
    fn enter(&mut self, var: &Var, range: &Range) {
        self.ranges.bind_loop(var, range);
        self.vars.push((var.clone(), range.clone()));
    }
    fn bind(&mut self, var: &Var, value: &Expr) {
        self.vars.push((var.clone(), Range::point(value.clone())));
    }
    fn learn(&mut self, _: &Expr, _: bool) {}
}

struct Scan {
    at: Inner,
    reads: Vec<Region>,
    writes: Vec<Region>,
}

impl Scan {
    fn region(&mut self, region: &Region, write: bool) {
        let ranges = region
            .ranges
            .iter()
            .zip(&region.buffer.shape)
            .map(|(r, extent)| self.widen(r).unwrap_or_else(|| Range::upto(extent.clone())))
            .collect();
        let region = Region { buffer: region.buffer.clone(), ranges };
        add(if write { &mut self.writes } else { &mut self.reads }, region);
    }

    /// The values of a range for all values of the inner variables.
    fn widen(&self, range: &Range) -> Option<Range> {
        let mut min = simplify(&range.min, &self.at.ranges);
        let mut extent = range.extent.clone();
        if let ExprKind::Ramp(base, stride) = min.kind() {
            let reach = stride.clone() * i64::from(min.dtype().lanes - 1);
            (min, extent) = (base.clone(), extent + reach);
        }
        for (var, values) in self.at.vars.iter().rev() {
            let inside = free_vars(&min).contains(var);
            if free_vars(&extent).contains(var) {
                return None;
            }
            if !inside {
                continue;
            }
            let k = i64::try_from(Linear::from_expr(&min)?.coefficient(var)?).ok()?;
            let reach = match values.extent.as_int() {
                Some(n) => {
                    let reach = (i128::from(n) - 1) * i128::from(k.unsigned_abs());
                    extent::constant(reach, min.dtype()).ok()?
                }
                None => ((&values.extent - 1) * k.abs()).cast(min.dtype()),
            };
            let first =
                if k > 0 { values.min.clone() } else { &values.min + &(&values.extent - 1) };
            min = Subst::vars([(var.clone(), first.cast(var.dtype()))]).expr(&min);
            extent = extent::sum(&extent, &reach).ok()?;
        }
        Some(Range {
            min: simplify(&min, &self.at.ranges),
            extent: simplify(&extent, &self.at.ranges),
        })
    }
}

/// Adds a region to a list, joined with the buffer's region that is there already.
fn add(list: &mut Vec<Region>, region: Region) {
    let Some(old) = list.iter_mut().find(|r| r.buffer == region.buffer) else {
        list.push(region);
        return;
    };
    for ((a, b), extent) in old.ranges.iter_mut().zip(&region.ranges).zip(&region.buffer.shape) {
        *a = join(a, b).unwrap_or_else(|| Range::upto(extent.clone()));
    }
}

/// The smallest range that holds both, where their ends can be compared. Ends, and what lies between
/// them, are exact: an unsigned or a narrow type does not hold them.
fn join(a: &Range, b: &Range) -> Option<Range> {
    let free = Ranges::default();
    let offset = distance(&a.min, &b.min, &free)?;
    let beyond = offset + distance(&a.extent, &b.extent, &free)?;
    let min = if offset < 0 { &b.min } else { &a.min };
    // How far the one that ends last begins behind the one that begins first.
    let (last, behind) =
        if beyond > 0 { (&b.extent, offset.max(0)) } else { (&a.extent, (-offset).max(0)) };
    let extent = match last.as_int() {
        Some(n) => extent::constant(i128::from(n) + behind, min.dtype()).ok()?,
        None => {
            let last = last.clone().cast(min.dtype());
            extent::sum(&last, &extent::constant(behind, last.dtype()).ok()?).ok()?
        }
    };
    Some(Range { min: min.clone(), extent: simplify(&extent, &free) })
}

fn linear_form(e: &Expr, free: &Ranges) -> Option<Linear> {
    Linear::from_expr(&simplify(e, free))
}

fn distance(a: &Expr, b: &Expr, free: &Ranges) -> Option<i128> {
    linear_form(b, free)?.plus(&linear_form(a, free)?, -1)?.as_constant()
}

impl Placed for Scan {
    type At = Inner;
    fn at(&mut self) -> &mut Inner {
        &mut self.at
    }

    /// What is known of a variable stays: it has one definition.
    fn within(&mut self, step: ScopeStep<'_>, work: impl FnOnce(&mut Self)) {
        let outside = self.at.vars.len();
        self.at.go(step);
        work(self);
        self.at.vars.truncate(outside);
    }
}

impl Visit for Scan {
    fn expr(&mut self, e: &Expr) {
        walk_expr_placed(self, e);
    }

    fn access(&mut self, b: &Buffer, indices: &[Expr], write: bool) {
        self.region(&Region::cell(b, indices), write);
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Block { bindings, predicate, block } => {
                bindings.iter().for_each(|b| self.expr(b));
                self.expr(predicate);
                let (reads, writes) = declared_or_inferred(block);
                let mut bind = Subst::vars(
                    block.iters.iter().zip(bindings).map(|(i, b)| (i.var.clone(), b.clone())),
                );
                for (list, write) in [(reads, false), (writes, true)] {
                    for r in list {
                        let ranges = r
                            .ranges
                            .iter()
                            .map(|x| Range { min: bind.expr(&x.min), extent: bind.expr(&x.extent) })
                            .collect();
                        self.region(&Region { buffer: r.buffer, ranges }, write);
                    }
                }
            }
            StmtKind::Allocate { buffer, body, .. }
            | StmtKind::Constant { buffer, body, .. }
            | StmtKind::Declare { buffer, body } => {
                self.stmt(body);
                self.reads.retain(|r| r.buffer != *buffer);
                self.writes.retain(|r| r.buffer != *buffer);
            }
            _ => walk_stmt_placed(self, s),
        }
    }
}
