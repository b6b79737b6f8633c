//! The rules of graph functions, and the types of their expressions.

use crate::hash::{HashMap, HashSet};
use std::sync::Arc;

mod control;
mod operators;

use self::operators::{malformed, require};
use super::tensor::may_be_equal;
use crate::control::is_control_operator;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{Expr, ExprKind, Var};
use crate::func::{Param, TensorFunc};
use crate::graph::{self, BindingBlock, GraphExpr, GraphFunc, GraphType, GraphVar, TensorType};
use crate::module::{Function, Module};
use crate::operators::fold_binary;
use crate::stmt::Attr;
use crate::text::{brief, commas};
use crate::visit::{Fold, accessed, fold_expr_children, free_vars};

/// Checks a graph function against its module.
pub fn check(module: &Module, func: &GraphFunc) -> Result<()> {
    let mut c = Checker {
        module,
        known: HashSet::default(),
        ever: HashSet::default(),
        dims: HashSet::default(),
        depth: 0,
    };
    // Extents may name a variable that only a later parameter binds.
    c.dims.extend(func.params.iter().flat_map(|p| p.ty().bound_sizes()));
    for p in &func.params {
        c.define(p)?;
        c.type_rules(p.ty(), &format!("parameter `{}`", p.name()), true)?;
    }
    c.binding_blocks(&func.blocks)?;
    let ty = c.ty(&func.ret).map_err(|e| e.context("the result"))?;
    if let (Some(declared), Some(ty)) = (&func.ret_ty, &ty) {
        fits(declared, ty).map_err(|e| e.context("the result"))?;
    }
    c.output_names(func)
}

/// Refuses graph functions that call themselves, directly or not.
pub fn check_recursion(module: &Module) -> Result<()> {
    // Colours: absent, on the path (false), done (true).
    let mut state: HashMap<&str, bool> = HashMap::default();
    for (root, _) in module.graphs() {
        if state.contains_key(&**root) {
            continue;
        }
        state.insert(root, false);
        let mut path = vec![(&**root, callees(module, root).into_iter())];
        while let Some((name, rest)) = path.last_mut() {
            match rest.next() {
                None => {
                    state.insert(name, true);
                    path.pop();
                }
                Some(next) => match state.get(next) {
                    Some(true) => {}
                    Some(false) => {
                        return malformed(format!("graph function `{next}` calls itself"));
                    }
                    None => {
                        state.insert(next, false);
                        path.push((next, callees(module, next).into_iter()));
                    }
                },
            }
        }
    }
    Ok(())
}

/// Graph functions that a graph function calls.
fn callees<'m>(module: &'m Module, name: &str) -> Vec<&'m str> {
    let mut out = Vec::new();
    if let Some(Function::Graph(f)) = module.functions.get(name) {
        f.for_each_expr(&mut |e| {
            if let GraphExpr::Call { op, .. } = e {
                let called = graph::callee(op).and_then(|n| module.functions.get_key_value(n));
                out.extend(called.map(|(name, _)| &**name));
            }
        });
    }
    out
}

struct Checker<'m> {
    module: &'m Module,
    known: HashSet<GraphVar>,
    ever: HashSet<GraphVar>,
    /// Variables in shapes that have a value.
    dims: HashSet<Var>,
    /// Bodies around.
    depth: usize,
}

impl Checker<'_> {
    fn define(&mut self, v: &GraphVar) -> Result<()> {
        require(self.ever.insert(v.clone()), || {
            format!("variable `{}` is defined twice", v.name())
        })?;
        self.known.insert(v.clone());
        Ok(())
    }

    fn binding_blocks(&mut self, blocks: &[BindingBlock]) -> Result<()> {
        for block in blocks {
            let before = self.known.clone();
            for b in &block.bindings {
                if block.dataflow && matches!(b.value, GraphExpr::If(_) | GraphExpr::Loop(_)) {
                    let e = Error::malformed("control flow inside of a dataflow region");
                    return Err(e
                        .help("end the region before it")
                        .context(format!("binding `{}`", b.var.name()))
                        .at(b.span));
                }
                self.binding(&b.var, &b.value)
                    .map_err(|e| e.context(format!("binding `{}`", b.var.name())).at(b.span))?;
            }
            for v in &block.outputs {
                let bound = block.bindings.iter().any(|b| b.var == *v);
                require(bound, || format!("output `{}` is not bound in its region", v.name()))?;
            }
            if block.dataflow {
                self.known = before;
                self.known.extend(block.outputs.iter().cloned());
            }
        }
        Ok(())
    }

    fn binding(&mut self, var: &GraphVar, value: &GraphExpr) -> Result<()> {
        let ty = match value {
            GraphExpr::If(branches) => self.branches(branches)?,
            GraphExpr::Loop(l) => self.graph_loop(l)?,
            value => self.ty(value)?,
        };
        // A call of something that we do not know may bring new extents; so may what depends on
        // data: branches, loops, casts.
        let brings = ty.is_none() || operators::brings_sizes(value);
        self.type_rules(var.ty(), "its type", brings)?;
        if let Some(ty) = &ty {
            fits(var.ty(), ty)?;
        }
        self.define(var)
    }

    /// Rules of a type; `binds` says that variables which stand alone are defined by it.
    fn type_rules(&mut self, ty: &GraphType, what: &str, binds: bool) -> Result<()> {
        if binds {
            self.dims.extend(ty.bound_sizes());
        }
        match ty {
            GraphType::Opaque(_) => Ok(()),
            GraphType::Tuple(items) => {
                items.iter().try_for_each(|t| self.type_rules(t, what, false))
            }
            GraphType::Shape(sizes) => self.size_rules(sizes, what),
            GraphType::Tensor(t) => self.tensor_rules(t, what),
        }
    }

    fn tensor_rules(&mut self, t: &TensorType, what: &str) -> Result<()> {
        let (kind, lanes) = (t.dtype, t.dtype.lanes);
        require(lanes == 1 && (kind.is_int() || kind.is_float() || kind.is_bool()), || {
            format!("{what}: a tensor of {kind}")
        })?;
        self.size_rules(&t.shape, what)
    }

    fn size_rules(&mut self, sizes: &[Expr], what: &str) -> Result<()> {
        for e in sizes {
            let ok = e.dtype().is_int() && e.dtype().lanes == 1;
            require(ok, || format!("{what}: extent `{}` is {}", brief(e), e.dtype()))?;
            let negative = e.as_int().is_some_and(|v| v < 0);
            require(!negative, || format!("{what}: extent {} is negative", brief(e)))?;
            let unknown = free_vars(e).into_iter().find(|v| !self.dims.contains(v));
            require(unknown.is_none(), || {
                let v = unknown.map_or(String::new(), |v| v.name().to_string());
                format!("{what}: extent `{}` uses `{v}`, which is not defined", brief(e))
            })?;
        }
        Ok(())
    }

    /// The type of an expression, where it is known.
    fn ty(&mut self, e: &GraphExpr) -> Result<Option<GraphType>> {
        match e {
            GraphExpr::Var(v) => {
                let (known, ever) = (self.known.contains(v), self.ever.contains(v));
                require(known, || {
                    if ever {
                        format!(
                            "`{}` is used after its dataflow region, of which it is no output",
                            v.name()
                        )
                    } else {
                        format!("variable `{}` is not defined", v.name())
                    }
                })?;
                Ok(match v.ty() {
                    GraphType::Opaque(_) => None,
                    ty => Some(ty.clone()),
                })
            }
            GraphExpr::Const(_) => Ok(Some(e.ty())),
            GraphExpr::Tuple(items) => {
                let types: Result<Vec<_>> = items.iter().map(|e| self.ty(e)).collect();
                Ok(types?.into_iter().collect::<Option<Vec<_>>>().map(GraphType::Tuple))
            }
            GraphExpr::Item(e, i) => match self.ty(e)? {
                Some(GraphType::Tuple(mut items)) if *i < items.len() => {
                    Ok(Some(items.swap_remove(*i)))
                }
                Some(GraphType::Tuple(items)) => {
                    malformed(format!("item {i} of a tuple of {}", items.len()))
                }
                Some(_) => malformed(format!("item {i} of a tensor")),
                None => Ok(None),
            },
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let callee = match self.module.functions.get(func) {
                    Some(Function::Tensor(f)) => f.clone(),
                    Some(_) => {
                        return malformed(format!("call_tir of `{func}`, a graph function"));
                    }
                    None => {
                        return malformed(format!("call_tir of `{func}`, which is not defined"));
                    }
                };
                let args: Result<Vec<_>> = args.iter().map(|a| self.ty(a)).collect();
                for t in outs {
                    self.tensor_rules(t, "output")?;
                }
                let ty = call_tir(&callee, &args?, outs, scalars);
                ty.map(Some).map_err(|e| e.context(format!("call_tir of `{func}`")))
            }
            GraphExpr::If(_) | GraphExpr::Loop(_) => {
                malformed("branches and loops are values of bindings, and of nothing else")
            }
            GraphExpr::Call { op, args, .. } => {
                if let Some(sizes) = e.as_shape() {
                    let unknown = sizes.iter().flat_map(free_vars).find(|v| !self.dims.contains(v));
                    return match unknown {
                        None => Ok(Some(GraphType::Shape(sizes))),
                        Some(v) => {
                            malformed(format!("a size uses `{}`, which is not defined", v.name()))
                        }
                    };
                }
                let args: Result<Vec<_>> = args.iter().map(|a| self.ty(a)).collect();
                let args = args?;
                if is_control_operator(op) {
                    return operators::operator(op, &args);
                }
                let Some(name) = graph::callee(op) else { return Ok(None) };
                let callee: Arc<GraphFunc> = match self.module.functions.get(name) {
                    Some(Function::Graph(f)) => f.clone(),
                    Some(_) => {
                        let message = format!("`{name}` is a tensor function");
                        return Err(Error::malformed(message).help("call it through R.call_tir"));
                    }
                    None => return malformed(format!("call of `{name}`, which is not defined")),
                };
                let (n, m) = (callee.params.len(), args.len());
                require(n == m, || format!("`{name}` takes {n} arguments, not {m}"))?;
                for (p, a) in callee.params.iter().zip(&args) {
                    if let Some(a) = a {
                        fits(p.ty(), a).map_err(|e| {
                            e.context(format!("argument `{}` of `{name}`", p.name()))
                        })?;
                    }
                }
                // Extents of the callee's result are written in the callee's variables.
                let fixed = callee.ret_ty.as_ref().filter(|t| closed(t));
                Ok(fixed.cloned())
            }
        }
    }

    /// `output_names` names each output.
    fn output_names(&self, func: &GraphFunc) -> Result<()> {
        let Some(names) = func.attrs.get("output_names") else { return Ok(()) };
        let n = match names {
            Attr::List(items) if items.iter().all(|a| matches!(a, Attr::Str(_))) => items.len(),
            _ => return malformed("attribute `output_names` is no list of texts"),
        };
        let outputs = match &func.ret {
            GraphExpr::Tuple(items) => items.len(),
            GraphExpr::Var(v) => match v.ty() {
                GraphType::Tuple(items) => items.len(),
                _ => 1,
            },
            _ => 1,
        };
        require(n == outputs, || {
            format!("attribute `output_names` has {n} names, but there are {outputs} outputs")
        })
    }
}

/// Whether no extent has variables.
fn closed(ty: &GraphType) -> bool {
    match ty {
        GraphType::Tensor(TensorType { shape: sizes, .. }) | GraphType::Shape(sizes) => {
            sizes.iter().all(|e| free_vars(e).is_empty())
        }
        GraphType::Tuple(items) => items.iter().all(closed),
        GraphType::Opaque(_) => false,
    }
}

/// Whether two shapes are not known to differ.
fn shapes_fit(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| may_be_equal(x, y))
}

/// Refuses types that are known to differ.
fn fits(declared: &GraphType, ty: &GraphType) -> Result<()> {
    match (declared, ty) {
        (GraphType::Opaque(_), _) | (_, GraphType::Opaque(_)) => Ok(()),
        (GraphType::Tensor(a), GraphType::Tensor(b)) => {
            let ok = a.dtype == b.dtype && shapes_fit(&a.shape, &b.shape);
            require(ok, || format!("declared as {}, but the value is {}", text(a), text(b)))
        }
        (GraphType::Tuple(a), GraphType::Tuple(b)) if a.len() == b.len() => {
            a.iter().zip(b).try_for_each(|(a, b)| fits(a, b))
        }
        (GraphType::Shape(a), GraphType::Shape(b)) => require(shapes_fit(a, b), || {
            format!("{} sizes are declared, but there are {}", a.len(), b.len())
        }),
        _ => malformed("tensors, shapes and tuples do not fit each other"),
    }
}

fn text(t: &TensorType) -> String {
    format!("{}[{}]", t.dtype, commas(t.shape.iter().map(number)))
}

/// An extent without the type of its literal.
fn number(e: &Expr) -> String {
    e.as_int().map_or_else(|| brief(e), |v| v.to_string())
}

/// Checks a call of a tensor function and gives the type of its result.
fn call_tir(
    callee: &TensorFunc,
    args: &[Option<GraphType>],
    outs: &[TensorType],
    scalars: &[Expr],
) -> Result<GraphType> {
    // Scratch memory is not an argument of a call.
    let (params, _) = callee.split_params();
    let (n, m) = (params.len(), args.len() + outs.len() + scalars.len());
    require(n == m, || {
        let (a, o, s) = (args.len(), outs.len(), scalars.len());
        format!("{n} parameters, but {a} arguments, {o} outputs and {s} scalars")
    })?;
    require(!outs.is_empty(), || "there is no output".to_owned())?;
    let mut actual: Vec<(&Param, Option<&TensorType>)> = Vec::new();
    for (i, (p, a)) in params.iter().zip(args).enumerate() {
        match a {
            Some(GraphType::Tensor(t)) => actual.push((p, Some(t))),
            None => actual.push((p, None)),
            Some(_) => return malformed(format!("argument {i} is a tuple")),
        }
    }
    let rest = params.get(args.len()..).unwrap_or_default();
    actual.extend(rest.iter().zip(outs).map(|(p, t)| (p, Some(t))));
    let rest = rest.get(outs.len()..).unwrap_or_default();
    let mut dims: HashMap<Var, Expr> = HashMap::default();
    for (p, value) in rest.iter().zip(scalars) {
        match p {
            Param::Scalar(v) if v.dtype() == value.dtype() => {
                dims.insert(v.clone(), value.clone());
            }
            Param::Scalar(v) => {
                let (name, want, got) = (v.name(), v.dtype(), value.dtype());
                return malformed(format!("`{name}` is {want}, but the argument is {got}"));
            }
            Param::Buffer { buffer, .. } => {
                return malformed(format!("tensor `{}` stands after the scalars", buffer.name));
            }
        }
    }
    // First what is bound, then what follows from it.
    for (p, t) in &actual {
        let (Some(b), Some(t)) = (p.buffer(), t) else { continue };
        for (want, got) in b.shape.iter().zip(&t.shape) {
            if let Some(v) = want.as_var() {
                dims.entry(v.clone()).or_insert_with(|| got.clone());
            }
        }
    }
    for (p, t) in &actual {
        let Param::Buffer { buffer, .. } = p else {
            return malformed("a scalar parameter gets a tensor");
        };
        let Some(t) = t else { continue };
        let want: Vec<Expr> = buffer.shape.iter().map(|e| BoundValues(&dims).expr(e)).collect();
        let ok = buffer.dtype() == t.dtype && shapes_fit(&want, &t.shape);
        require(ok, || {
            let want = text(&TensorType { shape: want, dtype: buffer.dtype() });
            format!("`{}` is {want}, but {} is passed", buffer.name, text(t))
        })?;
    }
    let (_, written) = accessed(&callee.body);
    for p in callee.params.iter().take(args.len()) {
        let hit = p.buffer().filter(|b| written.iter().any(|w| w.data == b.data));
        require(hit.is_none(), || {
            let name = hit.map_or("", |b| &b.name);
            format!("the callee writes its argument `{name}`")
        })?;
    }
    Ok(GraphType::of_outputs(outs))
}

/// Replaces variables by what they are bound to, and computes what is constant then.
struct BoundValues<'a>(&'a HashMap<Var, Expr>);

impl Fold for BoundValues<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Var(v) = e.kind() {
            let bound = self.0.get(v).cloned();
            // An extent may be bound at another width.
            return match bound {
                Some(b) if b.dtype() == e.dtype() => b,
                Some(b) => b.as_int().map_or_else(|| e.clone(), |n| Expr::int(n, e.dtype())),
                None => e.clone(),
            };
        }
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Binary(op, a, b) => fold_binary(*op, a, b).unwrap_or(e),
            ExprKind::Cast(a) if e.dtype().is_int() && e.dtype() != DType::BOOL => {
                a.as_int().map_or_else(|| e.clone(), |v| Expr::int(v, e.dtype()))
            }
            _ => e,
        }
    }
}
