//! A graph function with control flow as one without, for what compares values and runs nothing.
//!
//! Calls have no effects, so that both branches may stand in the function. What control flow gives is the
//! result of an operator of these values:
//!
//! ```text
//! if c: y = f(x)                 a = f(x)
//! else: y = g(x)                 b = g(x)
//!                                y = branch(c, a, b)
//!
//! loop n, from s = x:            s = carried(n, x)        any value, the same in loops over the same
//!     s = f(s)                   t = f(s)
//! y = s                          y = loop(n, x, t)
//! ```
//!
//! Two loops of equal operands, whose bodies give equal values for any values that are carried, are equal. What may
//! fail still runs only where control flow gets there: [`ENTER`] and [`LEAVE`] say where bodies begin and end.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::list::ListOp;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Attr, Attrs, Binding, BindingBlock, Error, Expr, Fold, Function, GraphExpr, GraphFunc,
    GraphType, GraphVar, Module, Result, Var,
};
use tilewright_transform::names::UniqueNames;

use super::pieces::tuple;
use super::resolve::{Kind, ResolvedBody, resolve};
use crate::rewrite::{GraphFold, fold_blocks, fold_children, sized};

/// The operator that says more of the type of a value, and is that value.
pub const CAST: &str = "control.cast";
/// The operators before and after what a body has in it, which give nothing: one body of a branch of that condition,
/// or of a loop of these operands.
pub const ENTER: &str = "control.enter";
pub const LEAVE: &str = "control.leave";
/// Other operators: the elements of a tensor as sizes, and what control flow gives.
const SIZES: &str = "control.sizes";
const BRANCH: &str = "control.branch";
const CARRIED: &str = "control.carried";
const LOOP: &str = "control.loop";

/// Whether an operator of such a function gives equal values for equal operands. Of others that is not known.
pub fn is_value_operator(op: &str) -> bool {
    [CAST, SIZES, BRANCH, CARRIED, LOOP].contains(&op) || ListOp::find(&listed(op)).is_some()
}

/// The name of an operator on lists in a graph function that has control flow.
fn listed(op: &str) -> String {
    format!("{LISTED}{op}")
}

/// What the names of operators on lists begin with. Without it they are no control flow.
const LISTED: &str = "R.";

/// The module with a graph function, and the graph functions that it calls, as one function without control
/// flow.
///
/// # Errors
/// [`Error::Unsupported`] for a module of pieces ([`cut`](super::cut)); those of [`resolve`].
pub fn as_dataflow(module: &Module, name: &str) -> Result<Module> {
    let func = module.graph(name)?;
    let (resolved, params) = resolve(module, name, func)?;
    let mut bindings = Vec::new();
    let results = body(resolved, &mut bindings)?;
    // Nothing reads what says sizes.
    let block = BindingBlock { dataflow: false, bindings, outputs: Vec::new() };
    let (blocks, ret) = (vec![block], tuple(results));
    let func = GraphFunc { params, blocks, ret, ret_ty: None, ..(**func).clone() };
    let mut out = module.clone();
    out.functions.retain(|_, f| matches!(f, Function::Tensor(_)));
    out.insert(name, func);
    Ok(out)
}

fn body(resolved: ResolvedBody, to: &mut Vec<Binding>) -> Result<Vec<GraphExpr>> {
    for node in resolved.nodes {
        let span = node.span;
        let call = |var: GraphVar, op: &str, args: Vec<GraphExpr>, attrs: Attrs| {
            let value = GraphExpr::Call { op: op.into(), args, attrs };
            Binding { var, value, span }
        };
        match node.kind {
            Kind::Call(bindings) => to.extend(bindings),
            Kind::Piece { name, .. } => {
                return Err(Error::unsupported(format!("`{name}` is a piece of a graph function")));
            }
            // What attributes say is for messages.
            Kind::Cast { of, to: var, .. } => to.push(call(var, CAST, vec![of], Attrs::new())),
            Kind::Sizes { of, name, shape, .. } => {
                let var = GraphVar::new(name, GraphType::Shape(shape));
                to.push(call(var, SIZES, vec![of], Attrs::new()));
            }
            Kind::List { op, attrs, args, to: var } => {
                to.push(call(var, op.name().trim_start_matches(LISTED), args, attrs));
            }
            Kind::If { cond, then, otherwise, outs, .. } => {
                let mut inside = |of, k| {
                    to.push(call(nothing(), ENTER, vec![cond.clone()], place(k)));
                    let values = body(of, to)?;
                    to.push(call(nothing(), LEAVE, Vec::new(), Attrs::new()));
                    Ok::<_, Error>(values)
                };
                let (then, otherwise) = (inside(then, 0)?, inside(otherwise, 1)?);
                for ((var, a), b) in outs.into_iter().zip(then).zip(otherwise) {
                    to.push(call(var, BRANCH, vec![cond.clone(), a, b], Attrs::new()));
                }
            }
            Kind::Loop { trip, cond, carried, params, body: inner, outs, .. } => {
                // Which operands are what.
                let parts = [trip.iter().len(), cond.iter().len(), carried.len()].map(number);
                let attrs = |k: usize| {
                    let mut attrs = place(k);
                    attrs.insert("parts".into(), Attr::List(parts.to_vec()));
                    attrs
                };
                let mut operands: Vec<GraphExpr> = trip.into_iter().chain(cond).collect();
                to.push(call(nothing(), ENTER, operands.clone(), attrs(0)));
                operands.extend(carried);
                for (k, var) in params.into_iter().enumerate() {
                    to.push(call(var, CARRIED, operands.clone(), attrs(k)));
                }
                operands.extend(body(inner, to)?);
                to.push(call(nothing(), LEAVE, Vec::new(), Attrs::new()));
                for (k, var) in outs.into_iter().enumerate() {
                    to.push(call(var, LOOP, operands.clone(), attrs(k)));
                }
            }
        }
    }
    Ok(resolved.results)
}

/// The variable of an operator that gives nothing.
fn nothing() -> GraphVar {
    GraphVar::new("nothing", GraphType::Tuple(Vec::new()))
}

/// Which one of several.
fn place(k: usize) -> Attrs {
    Attrs::from([("at".into(), number(k))])
}

fn number(k: usize) -> Attr {
    Attr::Int(i64::try_from(k).unwrap_or(i64::MAX))
}

/// The sizes that a graph function without control flow finds in values, in order.
pub fn found_sizes(func: &GraphFunc) -> Vec<Var> {
    let given: HashSet<Var> = func.params.iter().flat_map(|p| p.ty().bound_sizes()).collect();
    let mut seen = HashSet::default();
    let all = func.bindings().flat_map(|b| b.var.ty().bound_sizes());
    all.filter(|v| !given.contains(v) && seen.insert(v.clone())).collect()
}

/// Other names for sizes, none of which is taken: new variables of the same ranges.
pub fn renamed_sizes(sizes: &[Var], names: &mut UniqueNames) -> HashMap<Var, Expr> {
    let new = sizes.iter().map(|v| {
        let name = names.take(v.name());
        (v.clone(), Var::usually(name, v.dtype(), v.range(), v.usual()).expr())
    });
    new.collect()
}

/// A graph function without control flow with other sizes in the place of some.
///
/// # Errors
/// None where the function has no control flow.
pub fn with_sizes(func: &GraphFunc, sizes: &HashMap<Var, Expr>) -> Result<GraphFunc> {
    let mut fold = WithSizes {
        sizes: Subst::vars(sizes.iter().map(|(v, e)| (v.clone(), e.clone()))),
        vars: HashMap::default(),
    };
    let blocks = fold_blocks(&mut fold, &func.blocks)?;
    let ret = fold.expr(&func.ret)?;
    Ok(GraphFunc { blocks, ret, ..func.clone() })
}

struct WithSizes {
    sizes: Subst,
    vars: HashMap<u64, GraphVar>,
}

impl GraphFold for WithSizes {
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        fold_children(self, e)
    }

    fn var_def(&mut self, v: &GraphVar) -> GraphVar {
        let ty = sized(v.ty(), &mut |e| self.sizes.expr(e));
        let new = GraphVar::new(v.name().clone(), ty);
        self.vars.insert(v.id(), new.clone());
        new
    }

    fn var(&mut self, v: &GraphVar) -> GraphVar {
        self.vars.get(&v.id()).unwrap_or(v).clone()
    }

    fn size(&mut self, e: &Expr) -> Expr {
        self.sizes.expr(e)
    }
}
