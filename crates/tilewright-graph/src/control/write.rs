//! Nodes back to a graph function: the way back from `resolve`, for nodes without calls of tensor
//! functions.

use std::sync::Arc;

use tilewright_ir::control::{MATCH_CAST, TENSOR_TO_SHAPE};
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Body, Branches, GraphExpr, GraphFunc, GraphType, GraphVar, Loop,
    Span, graph,
};

use super::pieces::tuple;
use super::resolve::{Kind, ResolvedBody, several};

/// The function with the nodes as its body.
pub(super) fn write(func: &GraphFunc, params: Vec<GraphVar>, resolved: ResolvedBody) -> GraphFunc {
    let body = body(resolved, tuple);
    GraphFunc { params, blocks: body.blocks, ret: body.ret, ret_ty: None, ..func.clone() }
}

fn body(resolved: ResolvedBody, ret: impl Fn(Vec<GraphExpr>) -> GraphExpr) -> Body {
    let mut bindings = Vec::new();
    for node in resolved.nodes {
        bind(node.kind, node.span, &mut bindings);
    }
    let blocks = if bindings.is_empty() {
        Vec::new()
    } else {
        vec![BindingBlock { dataflow: false, bindings, outputs: Vec::new() }]
    };
    Body { blocks, ret: ret(resolved.results) }
}

fn bind(kind: Kind, span: Option<Span>, to: &mut Vec<Binding>) {
    match kind {
        Kind::Call(bindings) => to.extend(bindings),
        Kind::Piece { name, sizes, mut args, outs } => {
            if !sizes.is_empty() {
                args.insert(0, GraphExpr::shape(sizes));
            }
            bind_results(&name, call_of(&graph::call_of(&name), args), outs, span, to);
        }
        Kind::Cast { of, to: var, attrs } => {
            let value = GraphExpr::Call { op: MATCH_CAST.into(), args: vec![of], attrs };
            to.push(Binding { var, value, span });
        }
        Kind::Sizes { of, name, shape, attrs } => {
            let args = vec![call_of(TENSOR_TO_SHAPE, vec![of])];
            let value = GraphExpr::Call { op: MATCH_CAST.into(), args, attrs };
            to.push(Binding { var: GraphVar::new(name, GraphType::Shape(shape)), value, span });
        }
        Kind::List { op, attrs, args, to: var } => {
            to.push(Binding {
                var,
                value: GraphExpr::Call { op: op.name().into(), args, attrs },
                span,
            });
        }
        Kind::If { name, cond, then, otherwise, outs } => {
            let (then, otherwise) = (body(then, tuple), body(otherwise, tuple));
            let value = GraphExpr::If(Arc::new(Branches { cond, then, otherwise }));
            bind_results(&name, value, outs, span, to);
        }
        Kind::Loop { name, trip, cond, carried, params, body: inner, outs } => {
            let body = body(inner, GraphExpr::Tuple);
            let value = GraphExpr::Loop(Arc::new(Loop { trip, cond, carried, params, body }));
            several(&name, value, outs, span, to);
        }
    }
}

fn call_of(op: &str, args: Vec<GraphExpr>) -> GraphExpr {
    GraphExpr::Call { op: op.into(), args, attrs: Attrs::new() }
}

/// Binds the one value of a node, or a tuple and each of its values.
fn bind_results(
    name: &Arc<str>,
    value: GraphExpr,
    outs: Vec<GraphVar>,
    span: Option<Span>,
    to: &mut Vec<Binding>,
) {
    match <[GraphVar; 1]>::try_from(outs) {
        Ok([var]) => to.push(Binding { var, value, span }),
        Err(outs) => several(name, value, outs, span, to),
    }
}
