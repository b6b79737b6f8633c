//! A body with control flow as nodes over plain variables: no variable is another name of a value,
//! tuples are taken apart, and calls of graph functions are expanded.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::control::{MATCH_CAST, PIECE, TENSOR_TO_SHAPE};
use tilewright_ir::list::ListOp;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Body, Error, Expr, Fold, Function, GraphExpr, GraphFunc,
    GraphType, GraphVar, Module, Result, Span, TensorType, Var, graph,
};

use crate::calls::{Env, Resolve, tuple_item};
use crate::rewrite::{sized, sized_tensor};

/// Nodes in order, and the values that are left after them.
pub struct ResolvedBody {
    pub nodes: Vec<Node>,
    /// Variables and constants.
    pub results: Vec<GraphExpr>,
}

pub struct Node {
    pub kind: Kind,
    pub span: Option<Span>,
}

/// Operands are variables and constants.
pub enum Kind {
    /// A call of a tensor function, and the parts of its result.
    Call(Vec<Binding>),
    /// A call of a piece, with the sizes that it is told.
    Piece {
        name: Arc<str>,
        sizes: Vec<Expr>,
        args: Vec<GraphExpr>,
        outs: Vec<GraphVar>,
    },
    /// More is said of the type of a value.
    Cast {
        of: GraphExpr,
        to: GraphVar,
        attrs: Attrs,
    },
    /// The elements of a list are sizes.
    Sizes {
        of: GraphExpr,
        name: Arc<str>,
        shape: Vec<Expr>,
        attrs: Attrs,
    },
    List {
        op: ListOp,
        attrs: Attrs,
        args: Vec<GraphExpr>,
        to: GraphVar,
    },
    If {
        name: Arc<str>,
        cond: GraphExpr,
        then: ResolvedBody,
        otherwise: ResolvedBody,
        outs: Vec<GraphVar>,
    },
    Loop {
        name: Arc<str>,
        trip: Option<GraphExpr>,
        cond: Option<GraphExpr>,
        carried: Vec<GraphExpr>,
        params: Vec<GraphVar>,
        body: ResolvedBody,
        outs: Vec<GraphVar>,
    },
}

/// The body of a graph function, and its parameters.
pub fn resolve(
    module: &Module,
    name: &str,
    func: &GraphFunc,
) -> Result<(ResolvedBody, Vec<GraphVar>)> {
    let mut r = Resolver {
        env: Env::new(module, name, func.span),
        sizes: Subst::default(),
        nodes: Vec::new(),
    };
    let ret = Resolve::body(&mut r, func)?;
    let mut results = Vec::new();
    flatten(ret, &mut results);
    Ok((ResolvedBody { nodes: r.nodes, results }, func.params.clone()))
}

/// The values of a tuple in order.
fn flatten(e: GraphExpr, out: &mut Vec<GraphExpr>) {
    match e {
        GraphExpr::Tuple(items) => items.into_iter().for_each(|e| flatten(e, out)),
        e => out.push(e),
    }
}

/// The sizes that bindings find, those in bodies included.
fn collect_found_sizes(blocks: &[BindingBlock], to: &mut Vec<Var>) {
    for b in blocks.iter().flat_map(|block| &block.bindings) {
        to.extend(b.var.ty().bound_sizes());
        if let GraphExpr::Loop(l) = &b.value {
            to.extend(l.params.iter().flat_map(|p| p.ty().bound_sizes()));
        }
        b.value.bodies().into_iter().for_each(|body| collect_found_sizes(&body.blocks, to));
    }
}

struct Resolver<'m> {
    env: Env<'m>,
    /// What sizes of functions that are expanded stand for.
    sizes: Subst,
    nodes: Vec<Node>,
}

impl<'m> Resolve<'m> for Resolver<'m> {
    fn env(&mut self) -> &mut Env<'m> {
        &mut self.env
    }

    fn item(&mut self, of: GraphExpr, k: usize) -> Result<GraphExpr> {
        match of {
            GraphExpr::Tuple(items) => tuple_item(&items, k),
            _ => Err(Error::malformed(format!("item {k} of no tuple"))),
        }
    }

    fn call(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let GraphExpr::Call { op, args, .. } = e else { return self.call_tir(e, None) };
        if let Some(name) = graph::callee(op) {
            let args = self.values(args)?;
            let mut outer = Subst::default();
            let ret = self.expand(name, args, |r, func, args| {
                outer = std::mem::replace(&mut r.sizes, Self::sizes_of(func, args));
            })?;
            self.sizes = outer;
            return Ok(ret);
        }
        if ListOp::find(op).is_none() {
            return Err(Error::unsupported(format!(
                "`{op}` has no tensor function: only call_tir, calls of graph functions and operators on lists can run"
            ))
            .at(self.env.span));
        }
        let ty = GraphType::Opaque("R.Object".into());
        self.bind(&GraphVar::new(op.clone(), ty), e)
    }

    fn body(&mut self, func: &GraphFunc) -> Result<GraphExpr> {
        self.blocks(&func.blocks)?;
        self.env.span = func.span;
        self.value(&func.ret)
    }
}

impl Resolver<'_> {
    fn ty(&mut self, ty: &GraphType) -> GraphType {
        sized(ty, &mut |e| self.sizes.expr(e))
    }

    /// A variable in the place of one that is bound: each expansion of a function has its own.
    fn fresh(&mut self, var: &GraphVar) -> GraphVar {
        if self.env.is_outermost() {
            var.clone()
        } else {
            GraphVar::new(var.name().clone(), self.ty(var.ty()))
        }
    }

    fn push(&mut self, kind: Kind) {
        self.nodes.push(Node { kind, span: self.env.span });
    }

    fn blocks(&mut self, blocks: &[BindingBlock]) -> Result<()> {
        for b in blocks.iter().flat_map(|block| &block.bindings) {
            self.env.span = b.span;
            let value = self.bind(&b.var, &b.value).map_err(|e| e.at(b.span))?;
            self.env.values.insert(b.var.id(), value);
        }
        Ok(())
    }

    fn body(&mut self, body: &Body) -> Result<ResolvedBody> {
        let outer = std::mem::take(&mut self.nodes);
        let span = self.env.span;
        let ret = self.blocks(&body.blocks).and_then(|()| self.value(&body.ret));
        self.env.span = span;
        let nodes = std::mem::replace(&mut self.nodes, outer);
        let mut results = Vec::new();
        flatten(ret?, &mut results);
        Ok(ResolvedBody { nodes, results })
    }

    /// What a variable that is bound stands for.
    fn bind(&mut self, var: &GraphVar, value: &GraphExpr) -> Result<GraphExpr> {
        match value {
            GraphExpr::CallTir { .. } => {
                let var = self.fresh(var);
                self.call_tir(value, Some(var))
            }
            GraphExpr::Call { op, args, attrs } if **op == *MATCH_CAST => {
                let [of] = args.as_slice() else {
                    return Err(Error::malformed("a cast takes one value"));
                };
                let ty = self.ty(var.ty());
                match (ty, of) {
                    (GraphType::Shape(shape), GraphExpr::Call { op, args, .. })
                        if **op == *TENSOR_TO_SHAPE && args.len() == 1 =>
                    {
                        let of = self.value(&args[0])?;
                        let (name, attrs) = (var.name().clone(), attrs.clone());
                        self.push(Kind::Sizes { of, name, shape, attrs });
                        // Nothing but its sizes is ever read.
                        Ok(GraphExpr::Tuple(Vec::new()))
                    }
                    (GraphType::Shape(_), _) => Err(Error::unsupported(
                        "a shape that is not made of a tensor",
                    )
                    .help(format!("write {MATCH_CAST}({TENSOR_TO_SHAPE}(x), R.Shape(...))"))),
                    _ => {
                        let of = self.value(of)?;
                        let to = GraphVar::new(var.name().clone(), self.ty(var.ty()));
                        self.push(Kind::Cast { of, to: to.clone(), attrs: attrs.clone() });
                        Ok(to.expr())
                    }
                }
            }
            GraphExpr::Call { op, args, attrs } if let Some(list) = ListOp::find(op) => {
                let args = self.values(args)?;
                let to = GraphVar::new(var.name().clone(), self.ty(var.ty()));
                self.push(Kind::List { op: list, attrs: attrs.clone(), args, to: to.clone() });
                Ok(to.expr())
            }
            GraphExpr::Call { op, args, .. } if let Some(name) = self.piece(op) => {
                let mut args = args.as_slice();
                let mut sizes = Vec::new();
                if let Some((first, rest)) = args.split_first()
                    && let Some(told) = first.as_shape()
                {
                    sizes = told.iter().map(|e| self.sizes.expr(e)).collect();
                    args = rest;
                }
                let args = self.values(args)?;
                let ty = self.ty(var.ty());
                let (outs, value) = outs(var.name(), &ty);
                self.push(Kind::Piece { name, sizes, args, outs });
                Ok(value)
            }
            GraphExpr::If(branches) => {
                let cond = self.value(&branches.cond)?;
                let (then, otherwise) =
                    (self.body(&branches.then)?, self.body(&branches.otherwise)?);
                let ty = self.ty(var.ty());
                let (outs, value) = outs(var.name(), &ty);
                if then.results.len() != outs.len() || otherwise.results.len() != outs.len() {
                    return Err(Error::malformed(format!(
                        "`{}` is {} values, but the branches give {} and {}",
                        var.name(),
                        outs.len(),
                        then.results.len(),
                        otherwise.results.len()
                    )));
                }
                self.push(Kind::If { name: var.name().clone(), cond, then, otherwise, outs });
                Ok(value)
            }
            GraphExpr::Loop(l) => {
                let (trip, cond) = (
                    l.trip.as_ref().map(|e| self.value(e)).transpose()?,
                    l.cond.as_ref().map(|e| self.value(e)).transpose()?,
                );
                let carried = self.values(&l.carried)?;
                let params: Vec<GraphVar> = l.params.iter().map(|p| self.fresh(p)).collect();
                for (old, new) in l.params.iter().zip(&params) {
                    self.env.values.insert(old.id(), new.expr());
                }
                let body = self.body(&l.body)?;
                let ty = self.ty(var.ty());
                let (outs, value) = outs(var.name(), &ty);
                let given = body.results.len();
                let tuple = matches!(value, GraphExpr::Tuple(_));
                if !tuple || outs.len() + 1 != given || outs.len() < carried.len() {
                    return Err(Error::malformed(format!(
                        "the type of `{}` does not say what its loop gives: {} values",
                        var.name(),
                        given.saturating_sub(1)
                    ))
                    .help("say its type: a tuple of the carried and the stacked values"));
                }
                let name = var.name().clone();
                self.push(Kind::Loop { name, trip, cond, carried, params, body, outs });
                Ok(value)
            }
            other => self.value(other),
        }
    }

    /// The name of the piece that an operator calls.
    fn piece(&self, op: &str) -> Option<Arc<str>> {
        let (name, function) = self.env.module.functions.get_key_value(graph::callee(op)?)?;
        match function {
            Function::Graph(f) if f.attrs.contains_key(PIECE) => Some(name.clone()),
            _ => None,
        }
    }

    /// A call of a tensor function, whose results are bound one by one.
    fn call_tir(&mut self, e: &GraphExpr, var: Option<GraphVar>) -> Result<GraphExpr> {
        let GraphExpr::CallTir { func, args, outs, scalars } = e else {
            return Err(Error::internal("no call of a tensor function"));
        };
        let args = self.values(args)?;
        let mut size = |e: &Expr| self.sizes.expr(e);
        let outs: Vec<TensorType> = outs.iter().map(|t| sized_tensor(t, &mut size)).collect();
        let scalars = scalars.iter().map(size).collect();
        let name = var.as_ref().map_or(func.clone(), |v| v.name().clone());
        let span = self.env.span;

        let call = GraphExpr::CallTir { func: func.clone(), args, outs: outs.clone(), scalars };
        let tuple = var.as_ref().is_some_and(|v| matches!(v.ty(), GraphType::Tuple(_)));
        if let [one] = outs.as_slice()
            && !tuple
        {
            let to = match var {
                Some(v) if v.ty().as_tensor().is_some() => v,
                _ => GraphVar::tensor(name, one.clone()),
            };
            self.push(Kind::Call(vec![Binding { var: to.clone(), value: call, span }]));
            return Ok(to.expr());
        }
        let types = outs.into_iter().map(GraphType::Tensor).collect();
        let (vars, value) = self::outs(&name, &GraphType::Tuple(types));
        let mut bindings = Vec::new();
        several(&name, call, vars, span, &mut bindings);
        self.push(Kind::Call(bindings));
        Ok(value)
    }

    /// The sizes of a graph function that is called with some arguments.
    fn sizes_of(func: &GraphFunc, args: &[GraphExpr]) -> Subst {
        let mut sizes = HashMap::default();
        for (p, arg) in func.params.iter().zip(args) {
            if let (GraphType::Tensor(p), GraphType::Tensor(a)) = (p.ty(), arg.ty()) {
                for (e, given) in p.shape.iter().zip(a.shape) {
                    if let Some(v) = e.as_var() {
                        sizes.entry(v.clone()).or_insert_with(|| given.cast(v.dtype()));
                    }
                }
            }
        }
        // Sizes that the function finds are others in each call.
        let mut new = Vec::new();
        collect_found_sizes(&func.blocks, &mut new);
        for v in new {
            let fresh = v.fresh().expr();
            sizes.entry(v).or_insert(fresh);
        }
        Subst::vars(sizes)
    }
}

/// Binds a tuple, and each of its values.
pub fn several(
    name: &Arc<str>,
    value: GraphExpr,
    outs: Vec<GraphVar>,
    span: Option<Span>,
    to: &mut Vec<Binding>,
) {
    let types = outs.iter().map(|v| v.ty().clone()).collect();
    let all = GraphVar::new(name.clone(), GraphType::Tuple(types));
    to.push(Binding { var: all.clone(), value, span });
    to.extend(outs.into_iter().enumerate().map(|(k, var)| Binding {
        var,
        value: GraphExpr::Item(Box::new(all.expr()), k),
        span,
    }));
}

/// Variables for the values of a type, and the value that is made of them.
fn outs(name: &str, ty: &GraphType) -> (Vec<GraphVar>, GraphExpr) {
    match ty {
        GraphType::Tuple(items) => {
            let (mut all, mut values) = (Vec::new(), Vec::new());
            for (k, item) in items.iter().enumerate() {
                let (vars, value) = outs(&format!("{name}_{k}"), item);
                all.extend(vars);
                values.push(value);
            }
            (all, GraphExpr::Tuple(values))
        }
        ty => {
            let var = GraphVar::new(name, ty.clone());
            (vec![var.clone()], var.expr())
        }
    }
}
