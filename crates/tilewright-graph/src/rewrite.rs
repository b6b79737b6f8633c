//! Graph functions made anew: what passes over them share.

use std::sync::Arc;

use tilewright_ir::{
    Binding, BindingBlock, Body, Branches, Expr, GraphExpr, GraphType, GraphVar, Loop, Result,
    TensorType,
};

/// Rebuilds graph functions; what is not overridden stays as it is.
pub trait GraphFold {
    /// An expression.
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        fold_children(self, e)
    }

    /// A variable where it is defined.
    fn var_def(&mut self, v: &GraphVar) -> GraphVar {
        v.clone()
    }

    /// A variable where it is used.
    fn var(&mut self, v: &GraphVar) -> GraphVar {
        v.clone()
    }

    /// An extent of a result of a call, or a number that is passed.
    fn size(&mut self, e: &Expr) -> Expr {
        e.clone()
    }
}

fn fold_all<F: GraphFold + ?Sized>(f: &mut F, list: &[GraphExpr]) -> Result<Vec<GraphExpr>> {
    list.iter().map(|e| f.expr(e)).collect()
}

/// Rebuilds an expression from its folded parts.
pub fn fold_children<F: GraphFold + ?Sized>(f: &mut F, e: &GraphExpr) -> Result<GraphExpr> {
    Ok(match e {
        GraphExpr::Var(v) => f.var(v).expr(),
        GraphExpr::Const(_) => e.clone(),
        GraphExpr::CallTir { func, args, outs, scalars } => GraphExpr::CallTir {
            func: func.clone(),
            args: fold_all(f, args)?,
            outs: outs.iter().map(|ty| sized_tensor(ty, &mut |e| f.size(e))).collect(),
            scalars: scalars.iter().map(|e| f.size(e)).collect(),
        },
        GraphExpr::Call { op, args, attrs } => {
            GraphExpr::Call { op: op.clone(), args: fold_all(f, args)?, attrs: attrs.clone() }
        }
        GraphExpr::Tuple(items) => GraphExpr::Tuple(fold_all(f, items)?),
        GraphExpr::Item(of, k) => GraphExpr::Item(Box::new(f.expr(of)?), *k),
        GraphExpr::If(branches) => GraphExpr::If(Arc::new(Branches {
            cond: f.expr(&branches.cond)?,
            then: fold_body(f, &branches.then)?,
            otherwise: fold_body(f, &branches.otherwise)?,
        })),
        GraphExpr::Loop(l) => GraphExpr::Loop(Arc::new(Loop {
            trip: l.trip.as_ref().map(|e| f.expr(e)).transpose()?,
            cond: l.cond.as_ref().map(|e| f.expr(e)).transpose()?,
            carried: fold_all(f, &l.carried)?,
            params: l.params.iter().map(|p| f.var_def(p)).collect(),
            body: fold_body(f, &l.body)?,
        })),
    })
}

fn fold_body<F: GraphFold + ?Sized>(f: &mut F, body: &Body) -> Result<Body> {
    Ok(Body { blocks: fold_blocks(f, &body.blocks)?, ret: f.expr(&body.ret)? })
}

/// Folds bindings; an error is at the binding whose value gives it.
pub fn fold_blocks<F: GraphFold + ?Sized>(
    f: &mut F,
    blocks: &[BindingBlock],
) -> Result<Vec<BindingBlock>> {
    let mut new = Vec::with_capacity(blocks.len());
    for block in blocks {
        let mut bindings = Vec::with_capacity(block.bindings.len());
        for b in &block.bindings {
            let value = f.expr(&b.value).map_err(|e| e.at(b.span))?;
            bindings.push(Binding { var: f.var_def(&b.var), value, span: b.span });
        }
        let outputs = block.outputs.iter().map(|v| f.var(v)).collect();
        new.push(BindingBlock { dataflow: block.dataflow, bindings, outputs });
    }
    Ok(new)
}

/// A type of other sizes.
pub fn sized(ty: &GraphType, size: &mut dyn FnMut(&Expr) -> Expr) -> GraphType {
    match ty {
        GraphType::Tensor(t) => GraphType::Tensor(sized_tensor(t, size)),
        GraphType::Tuple(items) => {
            GraphType::Tuple(items.iter().map(|ty| sized(ty, size)).collect())
        }
        GraphType::Shape(sizes) => GraphType::Shape(sizes.iter().map(size).collect()),
        GraphType::Opaque(_) => ty.clone(),
    }
}

/// The same of a tensor.
pub fn sized_tensor(ty: &TensorType, size: &mut dyn FnMut(&Expr) -> Expr) -> TensorType {
    TensorType { shape: ty.shape.iter().map(size).collect(), dtype: ty.dtype }
}
