//! The accesses of a buffer under a new layout.
//!
//! Every load and store of the buffer gets the physical indices of its logical ones, simplified
//! under the ranges of the loops and iteration variables around it. Declared regions follow: a
//! point by the map, a box by what the block then accesses. A view of a box (`T.match_buffer` in a
//! block) stays where the map moves the box as it is; otherwise the layout is refused.
//!
//! What cannot be followed is refused: the pointer of the buffer in an expression, other buffers
//! over the same memory, vectors, explicit strides.

use std::sync::Arc;

use tilewright_analysis::regions::infer;
use tilewright_ir::equal::same_expr;
use tilewright_ir::operators::fold_binary;
use tilewright_ir::visit::free_vars;
use tilewright_ir::visit::{
    Subst, fold_block_children, fold_expr_children, fold_func, fold_stmt_children,
};
use tilewright_ir::{
    Block, Buffer, DType, Error, Expr, ExprKind, Fold, MatchRegion, Range, Region, Result, Stmt,
    StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::Engine;

use crate::index_map::IndexMap;
use tilewright_ir::lambda::Lambda;

/// The function with the buffer laid out anew; `wide` where the map needs indices of `int64`.
pub fn relayout(
    func: &TensorFunc,
    old: &Buffer,
    new: &Buffer,
    lambda: &Lambda,
    wide: bool,
) -> Result<TensorFunc> {
    if !old.strides.is_empty() {
        return Err(Error::refused(format!(
            "`{old}` has explicit strides, which a new layout would not keep"
        )));
    }
    let mut r = Relayout {
        old,
        new,
        lambda,
        wide,
        engine: Engine::new(),
        maps: Vec::new(),
        ranges: Vec::new(),
        known: Vec::new(),
        error: None,
    };
    let out = fold_func(&mut r, func);
    r.error.map_or(Ok(out), Err)
}

struct Relayout<'a> {
    old: &'a Buffer,
    new: &'a Buffer,
    lambda: &'a Lambda,
    wide: bool,
    engine: Engine,
    /// The map for each combination of types of indices.
    maps: Vec<(Vec<DType>, IndexMap)>,
    /// Loops and iteration variables in scope.
    ranges: Vec<(Var, Range)>,
    /// Indices that were simplified already.
    known: Vec<(Expr, Expr)>,
    error: Option<Error>,
}

impl Relayout<'_> {
    fn fail(&mut self, e: Error) {
        self.error.get_or_insert(e);
    }

    fn map(&mut self, logical: &[Expr]) -> Result<Vec<Expr>> {
        let widened: Vec<Expr>;
        let logical = if self.wide {
            widened = logical.iter().map(|e| e.clone().cast(DType::I64)).collect();
            &widened
        } else {
            logical
        };
        let dtypes: Vec<DType> = logical.iter().map(Expr::dtype).collect();
        let at = match self.maps.iter().position(|(d, _)| *d == dtypes) {
            Some(at) => at,
            None => {
                let map = IndexMap::bind(self.lambda, &dtypes)?;
                self.maps.push((dtypes, map));
                self.maps.len() - 1
            }
        };
        let map = self.maps[at].1.clone();
        let mut physical = map.apply(logical);
        for (e, index) in physical.iter_mut().zip(&map.indices) {
            // What is one parameter is an index as it was.
            if index.as_var().is_none() {
                *e = self.simple(e);
            }
        }
        Ok(physical)
    }

    /// The physical indices of an access.
    fn indices(&mut self, logical: &[Expr]) -> Vec<Expr> {
        if logical.iter().any(|i| i.dtype().lanes != 1) {
            self.fail(
                Error::refused(format!("`{}` is accessed by vectors", self.old.name))
                    .help("transform the layout before loops are vectorized"),
            );
            return logical.to_vec();
        }
        self.map(logical).unwrap_or_else(|e| {
            self.fail(e);
            logical.to_vec()
        })
    }

    fn simple(&mut self, e: &Expr) -> Expr {
        if e.as_int().is_some() || e.as_var().is_some() {
            return e.clone();
        }
        if let Some((_, found)) = self.known.iter().find(|(k, _)| same_expr(k, e)) {
            return found.clone();
        }
        let simple = simplify_under(&self.engine, &self.ranges, &[], e);
        self.known.push((e.clone(), simple.clone()));
        simple
    }

    fn region(&mut self, r: &Region) -> Option<Region> {
        if !r.ranges.iter().all(Range::is_point) {
            return None;
        }
        let at: Vec<Expr> = r.ranges.iter().map(|r| r.min.clone()).collect();
        let ranges = self.indices(&at).into_iter().map(Range::point).collect();
        Some(Region { buffer: self.new.clone(), ranges })
    }

    /// The region that a view has of the new layout: the box moves as it is.
    fn view(&mut self, m: &MatchRegion) -> Result<MatchRegion> {
        let r = &m.source;
        if let Some(source) = self.region(r) {
            return Ok(MatchRegion { buffer: m.buffer.clone(), source });
        }
        let steps: Vec<(Var, Range)> = r
            .ranges
            .iter()
            .enumerate()
            .map(|(k, r)| {
                (Var::new(format!("step{k}"), r.extent.dtype()), Range::upto(r.extent.clone()))
            })
            .collect();
        let first: Vec<Expr> = r.ranges.iter().map(|r| r.min.clone()).collect();
        let point: Vec<Expr> = first
            .iter()
            .zip(&steps)
            .map(|(f, (s, _))| f.clone() + &s.expr().cast(f.dtype()))
            .collect();
        let (from, to) = (self.map(&first)?, self.map(&point)?);
        if from.len() != first.len() {
            return self.refuse_view("the layout has another rank", m);
        }
        let domain = self.engine.domain_of(&[&self.ranges[..], &steps].concat(), &[]);
        for ((a, b), (s, _)) in from.iter().zip(&to).zip(&steps) {
            let moved = a.clone() + &s.expr().cast(a.dtype());
            if !domain.is_equal(&moved, b) {
                return self.refuse_view("the layout does not move the box as it is", m);
            }
        }
        let ranges = from
            .into_iter()
            .zip(&r.ranges)
            .map(|(min, r)| Range { min, extent: r.extent.clone() })
            .collect();
        let source = Region { buffer: self.new.clone(), ranges };
        Ok(MatchRegion { buffer: m.buffer.clone(), source })
    }

    fn refuse_view(&self, why: &str, m: &MatchRegion) -> Result<MatchRegion> {
        Err(Error::refused(format!(
            "the block views a box of `{}` as `{}`, and {why}",
            self.old.name, m.buffer.name
        )))
    }
}

/// The simplest form of an index or condition under ranges, of which only those matter that it
/// depends on, and conditions.
pub fn simplify_under(engine: &Engine, ranges: &[(Var, Range)], guards: &[Expr], e: &Expr) -> Expr {
    let mut wanted = free_vars(e);
    guards.iter().for_each(|g| wanted.extend(free_vars(g)));
    let mut used: Vec<(Var, Range)> = Vec::new();
    for (v, r) in ranges.iter().rev() {
        if wanted.contains(v) {
            wanted.extend(free_vars(&r.min));
            wanted.extend(free_vars(&r.extent));
            used.push((v.clone(), r.clone()));
        }
    }
    used.reverse();
    let values = used
        .iter()
        .filter(|(_, r)| r.extent.as_int() == Some(1) && r.min.as_int().is_some())
        .map(|(v, r)| (v.clone(), r.min.clone()));
    let e = Folded(Subst::vars(values)).expr(e);
    engine.domain_of(&used, guards).simplify(&e)
}

/// Replaces variables, and folds what becomes constant; the order of terms stays.
struct Folded(Subst);

impl Fold for Folded {
    fn expr(&mut self, e: &Expr) -> Expr {
        let e = match e.kind() {
            ExprKind::Var(_) => self.0.expr(e),
            _ => fold_expr_children(self, e),
        };
        match e.kind() {
            ExprKind::Binary(op, a, b) => fold_binary(*op, a, b).unwrap_or(e),
            _ => e,
        }
    }
}

impl Fold for Relayout<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Var(v) if *v == self.old.data => {
                self.fail(Error::refused(format!(
                    "the pointer of `{}` is used, so that its accesses are not all known",
                    self.old.name
                )));
                e.clone()
            }
            _ => fold_expr_children(self, e),
        }
    }

    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        (b == self.old).then(|| {
            let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
            (self.new.clone(), self.indices(&indices))
        })
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let depth = self.ranges.len();
        let out = match s.kind() {
            StmtKind::For { var, range, .. } => {
                self.ranges.push((var.clone(), range.clone()));
                fold_stmt_children(self, s)
            }
            StmtKind::Declare { buffer, .. } if buffer == self.old => {
                let name = &self.old.name;
                self.fail(Error::refused(format!("`{name}` is a view of other memory")));
                s.clone()
            }
            _ => fold_stmt_children(self, s),
        };
        self.ranges.truncate(depth);
        if self.error.is_some() {
            let e = self.error.take().map(|e| e.at(s.span()));
            self.error = e;
        }
        out
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let depth = self.ranges.len();
        self.ranges.extend(b.iters.iter().map(|i| (i.var.clone(), i.domain.clone())));
        let out = self.block_in_scope(b);
        self.ranges.truncate(depth);
        out
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        if b == self.old {
            return self.new.clone();
        }
        if b.data == self.old.data {
            self.fail(Error::refused(format!(
                "`{}` and `{}` are the same memory",
                self.old.name, b.name
            )));
        }
        b.clone()
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        if b == self.old { self.new.clone() } else { b.clone() }
    }
}

impl Relayout<'_> {
    fn block_in_scope(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let old = self.old;
        if b.matches.iter().any(|m| m.buffer == *old) {
            let name = &old.name;
            self.fail(Error::refused(format!("`{name}` is a view of a part of another buffer")));
        }
        if !names_buffer(&b.reads, old)
            && !names_buffer(&b.writes, old)
            && !b.matches.iter().any(|m| m.source.buffer == *old)
        {
            return fold_block_children(self, b);
        }
        // The regions of the buffer are taken out, so that folding does not meet them.
        let bare = Block {
            reads: without_buffer(&b.reads, old),
            writes: without_buffer(&b.writes, old),
            matches: b.matches.iter().filter(|m| m.source.buffer != *old).cloned().collect(),
            ..(**b).clone()
        };
        let mut new = (*fold_block_children(self, &Arc::new(bare))).clone();
        for (at, m) in b.matches.iter().enumerate().filter(|(_, m)| m.source.buffer == *old) {
            match self.view(m) {
                Ok(m) => new.matches.insert(at.min(new.matches.len()), m),
                Err(e) => self.fail(e),
            }
        }
        let (reads, writes) = infer(&new);
        let kinds = [(&b.reads, &mut new.reads, reads), (&b.writes, &mut new.writes, writes)];
        for (from, to, found) in kinds {
            let Some(to) = to else { continue };
            for (at, r) in from.iter().flatten().enumerate().filter(|(_, r)| r.buffer == *old) {
                let moved = self.region(r);
                let region = moved
                    .or_else(|| found.iter().find(|r| r.buffer == *self.new).cloned())
                    .unwrap_or_else(|| Region::whole(self.new));
                to.insert(at.min(to.len()), region);
            }
        }
        Arc::new(new)
    }
}

fn names_buffer(l: &Option<Vec<Region>>, old: &Buffer) -> bool {
    l.iter().flatten().any(|r| r.buffer == *old)
}

fn without_buffer(l: &Option<Vec<Region>>, old: &Buffer) -> Option<Vec<Region>> {
    l.as_ref().map(|l| l.iter().filter(|r| r.buffer != *old).cloned().collect::<Vec<_>>())
}

/// Simplifies the indices, bounds, bindings and conditions in which one of some variables occurs,
/// under ranges and conditions; values are left as they are.
pub struct Tidy<'a> {
    engine: &'a Engine,
    vars: Vec<Var>,
    ranges: Vec<(Var, Range)>,
    guards: Vec<Expr>,
    known: Vec<(Expr, Expr)>,
}

impl<'a> Tidy<'a> {
    /// Simplifies what depends on `vars`.
    pub fn new(
        engine: &'a Engine,
        ranges: Vec<(Var, Range)>,
        vars: Vec<Var>,
        guards: Vec<Expr>,
    ) -> Self {
        Tidy { engine, vars, ranges, guards, known: Vec::new() }
    }

    fn simple(&mut self, e: &Expr) -> Expr {
        let scalar = e.dtype().lanes == 1 && (e.dtype().is_int() || e.dtype().is_bool());
        let free = free_vars(e);
        if !scalar || e.as_var().is_some() || !self.vars.iter().any(|v| free.contains(v)) {
            return self.expr(e);
        }
        if let Some((_, found)) = self.known.iter().find(|(k, _)| same_expr(k, e)) {
            return found.clone();
        }
        let inner = self.expr(e);
        let guards: Vec<Expr> = self.guards.clone();
        let simple = simplify_under(self.engine, &self.ranges, &guards, &inner);
        self.known.push((e.clone(), simple.clone()));
        simple
    }

    fn all(&mut self, list: &[Expr]) -> Vec<Expr> {
        list.iter().map(|e| self.simple(e)).collect()
    }

    fn range(&mut self, r: &Range) -> Range {
        Range { min: self.simple(&r.min), extent: self.simple(&r.extent) }
    }
}

impl Fold for Tidy<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(b, indices) => Expr::load(b, self.all(indices)),
            ExprKind::IfThenElse(c, t, f) => {
                let c = self.simple(c);
                Expr::if_then_else(c, self.expr(t), self.expr(f))
            }
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let depth = self.ranges.len();
        let out = match s.kind() {
            StmtKind::Store { buffer, indices, value } => Stmt::spanned(
                StmtKind::Store {
                    buffer: buffer.clone(),
                    indices: self.all(indices),
                    value: self.expr(value),
                },
                s.span(),
            ),
            StmtKind::If { cond, then, otherwise } => Stmt::spanned(
                StmtKind::If {
                    cond: self.simple(cond),
                    then: self.stmt(then),
                    otherwise: otherwise.as_ref().map(|o| self.stmt(o)),
                },
                s.span(),
            ),
            StmtKind::For { var, range, body, .. } => {
                let range = self.range(range);
                self.ranges.push((var.clone(), range.clone()));
                let body = self.stmt(body);
                s.with_loop(range, body)
            }
            StmtKind::Block { bindings, predicate, block } => {
                let bindings = self.all(bindings);
                let predicate = self.simple(predicate);
                self.ranges.extend(block.iters.iter().map(|i| (i.var.clone(), i.domain.clone())));
                let mut new = (**block).clone();
                for list in [&mut new.reads, &mut new.writes].into_iter().flatten() {
                    for r in list.iter_mut() {
                        r.ranges = r.ranges.iter().map(|x| self.range(x)).collect();
                    }
                }
                let block = fold_block_children(self, &Arc::new(new));
                Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span())
            }
            _ => fold_stmt_children(self, s),
        };
        self.ranges.truncate(depth);
        out
    }
}
