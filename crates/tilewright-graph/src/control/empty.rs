//! Functions that are right for tensors without elements.
//!
//! What computes each cell by itself is: without elements, its loops do nothing. A reduction is initialised by
//! its first iteration, which a reduction over nothing does not have. Where data decide over how much it goes,
//! and that may be nothing, its cells are initialised by a loop nest of their own, once its loops are made:
//!
//! ```text
//! for i, k: with init: C[i] = 0              for i: C[i] = 0
//!           C[i] = C[i] + A[i, k]            for i, k: C[i] = C[i] + A[i, k]
//! ```
//!
//! The results of a function have no values before, so that this changes nothing else.

use std::sync::Arc;

use tilewright_analysis::elements::may_lack_operand;
use tilewright_analysis::stage::{Stage, open_stages};
use tilewright_ir::control::TAKES_EMPTY;
use tilewright_ir::dim::SizeRange;
use tilewright_ir::visit::{Subst, fold_stmt_children};
use tilewright_ir::{
    Attr, Block, Expr, Fold, IterKind, IterVar, Module, Stmt, StmtKind, TensorFunc, Var,
};

use crate::functions::each_tensor;

/// The module with [`TAKES_EMPTY`] at every tensor function in canonical form that is right without elements,
/// or is made so by [`initialise_empty`].
pub fn mark_empty(module: &Module) -> Module {
    each_tensor(module, |_, f| {
        if f.takes_empty() {
            return;
        }
        let Some(stages) = open_stages(f) else { return };
        if !stages.iter().any(|stage| amount(stage) == Amount::Unsaid) {
            Arc::make_mut(f).attrs.insert(TAKES_EMPTY.into(), Attr::Int(1));
        }
    })
}

/// The module, whose functions with [`TAKES_EMPTY`] that are in canonical form are initialised where they may reduce over
/// nothing.
pub fn initialise_empty(module: &Module) -> Module {
    each_tensor(module, |_, f| {
        let Some(stages) = open_stages(f).filter(|_| f.takes_empty()) else {
            return;
        };
        let amounts: Vec<Amount> = stages.iter().map(amount).collect();
        if amounts.contains(&Amount::MaybeNone) {
            *f = Arc::new(initialised(f, stages.iter().zip(&amounts)));
        }
    })
}

/// The module, whose open sizes are at least 1, with [`TAKES_EMPTY`] at the tensor functions in canonical form
/// that may read something without elements where their results have some, as the join of what is there with no
/// padding does. What reduces over such an extent is not marked.
pub fn mark_empty_operands(module: &Module) -> Module {
    each_tensor(module, |_, f| {
        if f.takes_empty() || !may_lack_operand(f) {
            return;
        }
        let Some(stages) = open_stages(f) else { return };
        let dims = stages.iter().flat_map(Stage::dims);
        let mut reduced = dims.filter(|(_, _, kind)| *kind == IterKind::Reduce);
        if reduced.all(|(_, extent, _)| extent.at_least(1)) {
            Arc::make_mut(f).attrs.insert(TAKES_EMPTY.into(), Attr::Int(1));
        }
    })
}

/// Over how much a stage reduces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// Over something, or it does not reduce.
    Some,
    /// Maybe over nothing, as the range of a size says.
    MaybeNone,
    /// Over a size of which nothing is said.
    Unsaid,
}

fn amount(stage: &Stage) -> Amount {
    let reduced = stage.dims().filter(|(_, _, kind)| *kind == IterKind::Reduce);
    reduced.fold(Amount::Some, |all, (_, extent, _)| {
        let is_said = extent.vars().iter().all(|v| v.range() != SizeRange::ALL);
        match all {
            Amount::MaybeNone => all,
            _ if !extent.at_least(1) => Amount::MaybeNone,
            _ if !is_said => Amount::Unsaid,
            _ => all,
        }
    })
}

/// The function with reductions that may be over nothing initialised before.
fn initialised<'a>(
    func: &TensorFunc,
    stages: impl Iterator<Item = (&'a Stage, &'a Amount)>,
) -> TensorFunc {
    let stmts = stages.flat_map(|(stage, amount)| match amount {
        Amount::MaybeNone => init_and_update(stage),
        _ => vec![stage.stmt.clone()],
    });
    let body = Stmt::seq(stmts.collect::<Vec<_>>());
    func.with_root(func.root_parts().0.to_vec(), body)
}

/// A reduction as two loop nests: one that initialises, and one that combines.
fn init_and_update(stage: &Stage) -> Vec<Stmt> {
    let block = &stage.block;
    let Some(init) = &block.init else { return vec![stage.stmt.clone()] };
    let kept: Vec<usize> =
        (0..block.iters.len()).filter(|k| block.iters[*k].kind != IterKind::Reduce).collect();
    let iters: Vec<IterVar> = kept
        .iter()
        .map(|k| IterVar { var: block.iters[*k].var.fresh(), ..block.iters[*k].clone() })
        .collect();
    let renamed =
        kept.iter().zip(&iters).map(|(k, new)| (block.iters[*k].var.clone(), new.var.expr()));
    let body = Subst::vars(renamed.collect::<Vec<_>>()).stmt(init);
    let loops = loops_of(&stage.stmt);
    let loops: Vec<(Var, Expr)> =
        kept.iter().map(|k| (loops[*k].0.fresh(), loops[*k].1.clone())).collect();
    let bindings = loops.iter().map(|(v, _)| v.expr()).collect();
    let first = Block { iters, ..Block::new(format!("{}_init", block.name), body) };
    let first = Stmt::block(bindings, Expr::bool(true), first);
    let first = loops.into_iter().rev().fold(first, |body, (v, n)| Stmt::serial(&v, n, body));
    vec![first, WithoutInit { block }.stmt(&stage.stmt)]
}

/// The loops of a nest, outermost first, each with its number of iterations.
fn loops_of(nest: &Stmt) -> Vec<(Var, Expr)> {
    let (mut loops, mut at) = (Vec::new(), nest);
    while let StmtKind::For { var, range, body, .. } = at.kind() {
        loops.push((var.clone(), range.extent.clone()));
        at = body;
    }
    loops
}

/// Takes the initialisation out of a block.
struct WithoutInit<'a> {
    block: &'a Arc<Block>,
}

impl Fold for WithoutInit<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Block { bindings, predicate, .. } => {
                let block = Block { init: None, ..(**self.block).clone() };
                Stmt::block(bindings.clone(), predicate.clone(), block)
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
