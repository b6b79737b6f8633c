//! Groups of calls that lead from values at an edge to one value, each as one tensor function.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tilewright_graph::merge::{Member, Source, merge};
use tilewright_ir::visit::{accessed, fold_block_children, fold_expr_children};
use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, Fold, Param, Stmt, StmtKind, Tensor, TensorFunc,
};

use crate::values::{Graph, Value};

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
            if !is_number && is_edge(n) {
                edge.insert(n);
                continue;
            }
            match &graph.nodes[n].value {
                Value::Call { args, scalars, .. } if scalars.is_empty() => {
                    if calls.insert(n) {
                        todo.extend(args);
                    }
                    if calls.len() > GROUP {
                        return None;
                    }
                }
                _ if is_number => {}
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
            // Inputs, the results, and nothing else.
            let count = sources.len() + outs;
            if func.buffers().count() != count || func.params.len() != count {
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

/// A function without its results but one; `None` where that needs another one.
fn one_result(func: &TensorFunc, inputs: usize, item: usize) -> Option<TensorFunc> {
    let results: Vec<&Buffer> = func.buffers().skip(inputs).collect();
    let result = *results.get(item)?;
    let is_other = |b: &Buffer| b != result && results.contains(&b);
    let (allocs, body) = func.root_parts();
    let (mut kept, mut reads_other) = (Vec::new(), false);
    let parts = match body.kind() {
        StmtKind::Seq(parts) => &parts[..],
        _ => std::slice::from_ref(body),
    };
    for part in parts {
        let (loaded, stored) = accessed(part);
        if !stored.is_empty() && stored.iter().all(is_other) {
            continue;
        }
        reads_other |= stored.iter().chain(&loaded).any(is_other);
        kept.push(part.clone());
    }
    let params = func.params.iter().filter(|p| !p.buffer().is_some_and(is_other)).cloned();
    let one = TensorFunc { params: params.collect(), ..func.clone() };
    (!reads_other).then(|| one.with_root(allocs.to_vec(), Stmt::seq(kept)))
}

/// A function in which some parameters, by position, have no axes of one element.
fn squeezed(func: &TensorFunc, which: &HashSet<usize>) -> TensorFunc {
    let mut all = Squeezed(HashMap::new());
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

/// The number that all elements of a tensor are, as the bits of a `float64`.
fn literal(t: &Tensor) -> Option<u64> {
    if let Some(floats) = t.as_slice::<f32>() {
        let (first, rest) = floats.split_first()?;
        let is_one = rest.iter().all(|v| v.to_bits() == first.to_bits());
        return is_one.then(|| f64::from(*first).to_bits());
    }
    /// Integers of this size and less are exact as `float64`.
    const EXACT: i128 = 1 << 52;
    if !t.dtype().is_int() || t.is_empty() {
        return None;
    }
    let first = t.get_i128(0);
    let is_one = first.abs() < EXACT && (1..t.len()).all(|k| t.get_i128(k) == first);
    is_one.then(|| (first as f64).to_bits())
}
