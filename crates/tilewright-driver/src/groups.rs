//! Groups of calls that lead from values at an edge to one value, each as one tensor function.

use std::collections::BTreeSet;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_graph::merge::{Member, Source, merge};
use tilewright_ir::dim::{self, MAX_CELLS, SizeRange};
use tilewright_ir::prune::prune;
use tilewright_ir::visit::{
    Subst, accessed, fold_block_children, fold_expr_children, fold_func, fold_stmt_children,
};
use tilewright_ir::{
    Block, Buffer, Dim, Expr, ExprKind, Fold, Param, Stmt, StmtKind, TensorFunc, Var,
};

use crate::values::{Graph, Value, literal};

/// Most calls of a group.
const GROUP: usize = 24;

/// Calls that lead from values at an edge to one value.
pub(crate) struct Group {
    /// In the order of the graph; the last one gives the value.
    pub(crate) calls: Vec<usize>,
    /// The values at the edge that they read.
    pub(crate) edge: BTreeSet<usize>,
}

impl Group {
    /// The calls from the edge to a value; `None` where something else is reached, or there are too many.
    pub(crate) fn collect(
        graph: &Graph<'_>,
        at: usize,
        is_edge: &dyn Fn(usize) -> bool,
    ) -> Option<Group> {
        let (mut calls, mut edge) = (BTreeSet::new(), BTreeSet::new());
        let mut todo = vec![at];
        while let Some(n) = todo.pop() {
            // One number for all elements is a part of the function, whatever its shape is.
            let is_number =
                matches!(&graph.nodes[n].value, Value::Constant(t) if literal(t).is_some());
            if is_number {
                continue;
            }
            if is_edge(n) {
                edge.insert(n);
                continue;
            }
            match &graph.nodes[n].value {
                // What runs under other conditions may fail where the value is not needed.
                _ if graph.nodes[n].bodies != graph.nodes[at].bodies => return None,
                Value::Call { args, passes_sizes: true, .. } => {
                    if calls.insert(n) {
                        todo.extend(args);
                    }
                    if calls.len() > GROUP {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        Some(Group { calls: calls.into_iter().collect(), edge })
    }

    /// The group as one function; `place` is the parameter that a value at the edge is.
    pub(crate) fn function(
        &self,
        graph: &Graph<'_>,
        place: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<TensorFunc> {
        let mut members = Vec::new();
        for n in &self.calls {
            let Value::Call { func, args, item, outs, .. } = &graph.nodes[*n].value else {
                return None;
            };
            let sources = args
                .iter()
                .map(|a| match self.calls.binary_search(a) {
                    Ok(member) => Some(Source::Member(member)),
                    Err(_) if self.edge.contains(a) => place(*a).map(Source::Param),
                    Err(_) => match &graph.nodes[*a].value {
                        Value::Constant(t) => literal(t).map(Source::Literal),
                        _ => None,
                    },
                })
                .collect::<Option<Vec<Source>>>()?;
            let mut func = graph.callee(func)?.clone();
            // Inputs and the results.
            let count = sources.len() + outs;
            if func.buffers().count() != count {
                return None;
            }
            if *outs > 1 {
                func = Arc::new(one_result(&func, sources.len(), *item)?);
            }
            let constants = args.iter().zip(&sources).enumerate().filter(|(_, (a, source))| {
                matches!(source, Source::Param(_))
                    && matches!(graph.nodes[**a].value, Value::Constant(_))
            });
            let constants: HashSet<usize> = constants.map(|(k, _)| k).collect();
            if !constants.is_empty() {
                func = Arc::new(squeezed(&func, &constants));
            }
            members.push(Member { func, sources });
        }
        let edge: BTreeSet<usize> = self.edge.iter().filter_map(|n| place(*n)).collect();
        Some(merge(&members, edge.len()))
    }
}

/// Two functions over the same sizes: those of the second one are those of the first of the same names, and what one
/// is given as a number the other one is given, too, in the order of the names. No size is larger than tensors can
/// be.
pub(crate) fn over_same_sizes(a: &TensorFunc, b: &TensorFunc) -> [TensorFunc; 2] {
    let all = |f: &TensorFunc| -> Vec<Var> {
        let sizes = f.sizes();
        let others = f.scalars().filter(|v| !sizes.contains(v)).cloned().collect::<Vec<_>>();
        [sizes, others].concat()
    };
    let shared: Vec<(Var, Var)> = all(a).iter().map(|v| (v.clone(), bounded(v, a))).collect();
    let mut names = Subst::default();
    for w in all(b) {
        let same = |(v, _): &&(Var, Var)| v.name() == w.name() && v.dtype() == w.dtype();
        if let Some((_, new)) = shared.iter().find(same) {
            names.vars.insert(w, new.expr());
        }
    }
    names.vars.extend(shared.iter().map(|(v, new)| (v.clone(), new.expr())));
    let renamed = |v: &Var| names.vars.get(v).and_then(Expr::as_var).unwrap_or(v).clone();
    let mut given: Vec<Var> = a.scalars().chain(b.scalars()).map(renamed).collect();
    given.sort_by_key(|v| v.name().clone());
    [a, b].map(|f| {
        let mut f = f.clone();
        f.params.retain(|p| p.scalar().is_none());
        f = fold_func(&mut names, &f);
        f.pass_sizes(given.iter().cloned());
        f
    })
}

/// A size in the range that the largest tensor of which it is the one open extent leaves: no tensor has more than
/// [`MAX_CELLS`] elements.
fn bounded(v: &Var, func: &TensorFunc) -> Var {
    if v.stands_for().is_some() {
        return v.clone();
    }
    let each = func.buffers().filter_map(|b| {
        let shape = dim::of_shape(&b.shape)?;
        let (own, others): (Vec<Dim>, Vec<Dim>) = shape.iter().partition(|d| **d == Dim::open(v));
        let others: usize = dim::known(&others)?.iter().product();
        (own.len() == 1).then_some(MAX_CELLS / others.max(1))
    });
    let (least, most) = match v.range() {
        SizeRange::ALL => (0, MAX_CELLS),
        range => (range.least(), range.most()),
    };
    let most = each.min().map_or(most, |n| n.min(most));
    match SizeRange::new(least, most) {
        Ok(range) if most < v.range().most() => {
            let range = range.with_remainders(v.range().remainders());
            Var::usually(v.name().clone(), v.dtype(), range, v.usual())
        }
        _ => v.clone(),
    }
}

/// A function without its results but one: what others are read for it is memory of its own, and the rest is not stored.
/// `None` where it has no such result.
fn one_result(func: &TensorFunc, inputs: usize, item: usize) -> Option<TensorFunc> {
    let results: Vec<&Buffer> = func.buffers().skip(inputs).collect();
    let result = *results.get(item)?;
    let is_other = |b: &Buffer| b != result && results.contains(&b);
    let (allocs, body) = func.root_parts();
    let parts = match body.kind() {
        StmtKind::Seq(parts) => &parts[..],
        _ => std::slice::from_ref(body),
    };
    let each: Vec<_> = parts.iter().map(|part| (part, accessed(part))).collect();
    let mut needed: Vec<Buffer> = Vec::new();
    let kept: Vec<Stmt> = loop {
        let is_kept = |stored: &[Buffer]| {
            stored.is_empty() || stored.iter().any(|b| !is_other(b) || needed.contains(b))
        };
        let kept: Vec<_> = each.iter().filter(|(_, (_, stored))| is_kept(stored)).collect();
        let mut read = kept.iter().flat_map(|(_, (loaded, _))| loaded).filter(|b| is_other(b));
        match read.find(|b| !needed.contains(b)).cloned() {
            Some(more) => needed.push(more),
            None => break kept.iter().map(|(part, _)| (*part).clone()).collect(),
        }
    };
    let left = results.iter().filter(|b| is_other(b) && !needed.contains(b));
    let mut unstored = Unstored(left.map(|b| (*b).clone()).collect());
    let body = prune(&unstored.stmt(&Stmt::seq(kept)));
    let params = func.params.iter().filter(|p| !p.buffer().is_some_and(is_other)).cloned();
    let one = TensorFunc { params: params.collect(), ..func.clone() };
    Some(one.with_root([allocs.to_vec(), needed].concat(), body))
}

/// Leaves out stores to buffers.
struct Unstored(Vec<Buffer>);

impl Fold for Unstored {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { buffer, .. } if self.0.contains(buffer) => Stmt::nop(),
            _ => fold_stmt_children(self, s),
        }
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let mut b = (*fold_block_children(self, b)).clone();
        for regions in [&mut b.reads, &mut b.writes].into_iter().flatten() {
            regions.retain(|r| !self.0.contains(&r.buffer));
        }
        Arc::new(b)
    }
}

/// A function in which some parameters, by position, have no axes of one element.
fn squeezed(func: &TensorFunc, which: &HashSet<usize>) -> TensorFunc {
    let mut all = Squeezed(HashMap::default());
    let params = func.params.iter().enumerate().map(|(k, p)| match p.buffer() {
        Some(buffer) if which.contains(&k) => {
            let shape = buffer.shape.iter().filter(|n| n.as_int() != Some(1)).cloned().collect();
            let new = buffer.derive_storage(|d| d.shape = shape);
            all.0.insert(buffer.clone(), new.clone());
            Param::tensor(&new)
        }
        _ => p.clone(),
    });
    let func = TensorFunc { params: params.collect(), ..func.clone() };
    TensorFunc { body: all.stmt(&func.body), ..func }
}

struct Squeezed(HashMap<Buffer, Buffer>);

impl Fold for Squeezed {
    fn expr(&mut self, e: &Expr) -> Expr {
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Load(buffer, at) => match self.0.get(buffer) {
                Some(new) => {
                    let at = at.iter().zip(&buffer.shape).filter(|(_, n)| n.as_int() != Some(1));
                    Expr::load(new, at.map(|(index, _)| index.clone()).collect())
                }
                None => e,
            },
            _ => e,
        }
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let mut b = (*fold_block_children(self, b)).clone();
        // What a block reads is said by its expressions.
        if let Some(reads) = &mut b.reads {
            reads.retain(|r| !self.0.contains_key(&r.buffer));
        }
        Arc::new(b)
    }
}
