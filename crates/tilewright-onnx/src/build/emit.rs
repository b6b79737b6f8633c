//! The module of the steps: bindings, and the functions that they call.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_interp::Program;
use tilewright_ir::control::{MATCH_CAST, TENSOR_TO_SHAPE};
use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Body, Branches, Error, Expr, Function, GraphExpr, GraphType,
    GraphVar, Loop, Module, Result, Tensor, TensorFunc, TensorIdentity, TensorType, Var,
};
use tilewright_ops::Operand;

use super::step::{BodyStep, Call, Control, Nested};
use crate::imported::{Imported, tensor_type};

/// A tensor function, once for all calls with the same parameters.
pub(super) struct Shared {
    pub(super) base: &'static str,
    pub(super) func: Arc<TensorFunc>,
    pub(super) inputs: Vec<Operand>,
    pub(super) outs: Vec<Operand>,
    /// What its calls pass for scalar parameters.
    pub(super) scalars: Vec<Expr>,
    pub(super) cost: u64,
    /// Ready to run on constants, once that was needed.
    pub(super) program: Option<Program>,
}

/// The calls that made constants, for those that the graph is to have as these calls: what is known of
/// how a constant came about says more than its elements do. Keys are the memory of a constant and its
/// shape.
#[derive(Default)]
pub(super) struct Origins(pub(super) HashMap<TensorIdentity, Origin>);

/// The call that made a constant.
pub(super) struct Origin {
    /// The constant, so that its memory stays its own.
    pub(super) made: Tensor,
    pub(super) func: usize,
    pub(super) args: Vec<Imported>,
}

impl Origins {
    pub(super) fn find(&self, t: &Tensor) -> Option<&Origin> {
        self.0.get(&t.identity())
    }
}

/// `base`, `base_1`, `base_2`, ...: the first that is free.
fn fresh<'a>(
    base: &'a str,
    counts: &mut HashMap<&'a str, usize>,
    taken: &mut HashSet<String>,
) -> Arc<str> {
    let count = counts.entry(base).or_insert(0);
    loop {
        let name = if *count == 0 { base.to_owned() } else { format!("{base}_{count}") };
        *count += 1;
        if taken.insert(name.clone()) {
            return name.into();
        }
    }
}

/// A value as an expression of the graph.
pub(super) fn expr(value: &Imported) -> Result<GraphExpr> {
    match value {
        Imported::Const(t) => Ok(GraphExpr::Const(t.clone())),
        Imported::Var { var, .. } | Imported::Item { var, .. } => Ok(var.expr()),
        Imported::Sizes(_) => Err(Error::internal("sizes are no operand")),
        Imported::Text(_) | Imported::Chosen { .. } => {
            Err(Error::internal("strings are no operand"))
        }
        Imported::Map { .. } => Err(Error::internal("maps are no operand")),
    }
}

/// Makes bindings of steps, and functions of what they call.
pub(super) struct Emit<'b> {
    functions: &'b [Shared],
    origins: &'b Origins,
    /// Variables of constants that are calls.
    called: HashMap<TensorIdentity, GraphVar>,
    pub(super) module: Module,
    names: HashMap<&'b str, usize>,
    taken: HashSet<String>,
    name_of: Vec<Option<Arc<str>>>,
}

impl<'b> Emit<'b> {
    pub(super) fn new(functions: &'b [Shared], origins: &'b Origins) -> Self {
        Emit {
            functions,
            origins,
            called: HashMap::default(),
            module: Module::new(),
            names: HashMap::default(),
            taken: HashSet::from_iter(["main".to_owned()]),
            name_of: vec![None; functions.len()],
        }
    }

    /// The bindings of the steps that some values need.
    pub(super) fn bindings(
        &mut self,
        steps: &[Option<BodyStep>],
        results: &[Imported],
    ) -> Result<Vec<Binding>> {
        let live = live(self.functions, steps, results);
        let mut bindings = Vec::new();
        for (step, _) in steps.iter().flatten().zip(live).filter(|(_, live)| *live) {
            match step {
                BodyStep::Call(call) => self.call(call, &mut bindings)?,
                BodyStep::Control(control) => self.control(control, &mut bindings)?,
            }
        }
        Ok(bindings)
    }

    /// The name of a function in the module.
    fn name(&mut self, func: usize) -> Arc<str> {
        if let Some(name) = &self.name_of[func] {
            return name.clone();
        }
        let shared = &self.functions[func];
        let name = fresh(shared.base, &mut self.names, &mut self.taken);
        self.module.functions.insert(name.clone(), Function::Tensor(shared.func.clone()));
        self.name_of[func] = Some(name.clone());
        name
    }

    /// An argument of a call; where it is a constant that the graph has as a call, its variable.
    fn argument(&mut self, value: &Imported, bindings: &mut Vec<Binding>) -> Result<GraphExpr> {
        let origins = self.origins;
        let Some(origin) = value.constant().and_then(|t| origins.find(t)) else {
            return expr(value);
        };
        let key = origin.made.identity();
        if let Some(var) = self.called.get(&key) {
            return Ok(var.expr());
        }
        let args = origin.args.iter().map(|a| self.argument(a, bindings));
        let args = args.collect::<Result<Vec<_>>>()?;
        let shared = &self.functions[origin.func];
        let ty = TensorType::fixed(origin.made.shape(), origin.made.dtype());
        let var = GraphVar::tensor(shared.base, ty.clone());
        let (func, scalars) = (self.name(origin.func), shared.scalars.clone());
        let value = GraphExpr::CallTir { func, args, outs: vec![ty], scalars };
        bindings.push(bind(&var, value));
        self.called.insert(key, var.clone());
        Ok(var.expr())
    }

    fn call(&mut self, call: &Call, bindings: &mut Vec<Binding>) -> Result<()> {
        let shared = &self.functions[call.func];
        let args = call.args.iter().map(|a| self.argument(a, bindings));
        let args = args.collect::<Result<Vec<_>>>()?;
        let func = self.name(call.func);
        let outs: Vec<TensorType> = shared.outs.iter().map(tensor_type).collect();
        let types = outs.iter().cloned().map(GraphType::Tensor).collect();
        let scalars = shared.scalars.clone();
        let value = GraphExpr::CallTir { func, args, outs, scalars };
        match call.outs.as_slice() {
            [var] => bindings.push(bind(var, value)),
            several => spread(GraphType::Tuple(types), value, several, bindings),
        }
        Ok(())
    }

    fn body(&mut self, body: &Nested, tuple: bool) -> Result<Body> {
        let bindings = self.bindings(&body.steps, &body.results)?;
        let blocks = if bindings.is_empty() {
            Vec::new()
        } else {
            vec![BindingBlock { dataflow: false, bindings, outputs: Vec::new() }]
        };
        let values: Vec<GraphExpr> = body.results.iter().map(expr).collect::<Result<_>>()?;
        let ret = match values.as_slice() {
            [one] if !tuple => one.clone(),
            _ => GraphExpr::Tuple(values),
        };
        Ok(Body { blocks, ret })
    }

    fn control(&mut self, control: &Control, bindings: &mut Vec<Binding>) -> Result<()> {
        match control {
            Control::Sizes { of, var, attrs } => {
                let shape = graph_call(TENSOR_TO_SHAPE, vec![expr(of)?], Attrs::new());
                bindings.push(bind(var, graph_call(MATCH_CAST, vec![shape], attrs.clone())));
            }
            Control::Call { op, attrs, args, out } => {
                let args = args.iter().map(expr).collect::<Result<_>>()?;
                bindings.push(bind(out, graph_call(op, args, attrs.clone())));
            }
            Control::If { cond, then, otherwise, outs } => {
                let value = GraphExpr::If(Arc::new(Branches {
                    cond: expr(cond)?,
                    then: self.body(then, false)?,
                    otherwise: self.body(otherwise, false)?,
                }));
                match outs.as_slice() {
                    [var] => bindings.push(bind(var, value)),
                    several => spread(tuple_type(outs), value, several, bindings),
                }
            }
            Control::Loop { given, body, outs } => {
                let value = GraphExpr::Loop(Arc::new(Loop {
                    trip: optional_expr(&given.trip)?,
                    cond: optional_expr(&given.cond)?,
                    carried: given.carried.iter().map(expr).collect::<Result<_>>()?,
                    params: given.params.clone(),
                    body: self.body(body, true)?,
                }));
                spread(tuple_type(outs), value, outs, bindings);
            }
        }
        Ok(())
    }
}

fn graph_call(
    op: &str,
    args: Vec<GraphExpr>,
    attrs: std::collections::BTreeMap<Arc<str>, tilewright_ir::Attr>,
) -> GraphExpr {
    GraphExpr::Call { op: op.into(), args, attrs }
}

fn tuple_type(outs: &[GraphVar]) -> GraphType {
    GraphType::Tuple(outs.iter().map(|v| v.ty().clone()).collect())
}

fn optional_expr(v: &Option<Imported>) -> Result<Option<GraphExpr>> {
    v.as_ref().map(expr).transpose()
}

fn bind(var: &GraphVar, value: GraphExpr) -> Binding {
    Binding { var: var.clone(), value, span: None }
}

/// Bindings of the items of a tuple.
fn spread(ty: GraphType, value: GraphExpr, vars: &[GraphVar], bindings: &mut Vec<Binding>) {
    let all = GraphVar::new("results", ty);
    bindings.push(bind(&all, value));
    let items = vars.iter().enumerate();
    bindings.extend(items.map(|(i, v)| bind(v, GraphExpr::Item(Box::new(all.expr()), i))));
}

/// Whether a step gives sizes their values, which others may need without its result.
fn brings_sizes(step: &BodyStep) -> bool {
    match step {
        BodyStep::Control(Control::Sizes { .. }) => true,
        BodyStep::Control(Control::Call { op: MATCH_CAST, out, .. }) => {
            out.ty().as_tensor().is_some_and(|t| t.shape.iter().any(|e| e.as_int().is_none()))
        }
        _ => false,
    }
}

/// The sizes that a step uses, those in its bodies and of its results included.
fn used_sizes(functions: &[Shared], step: &BodyStep, to: &mut HashSet<Var>) {
    let outs: Vec<&GraphVar> = match step {
        BodyStep::Call(call) => {
            to.extend(functions[call.func].scalars.iter().flat_map(free_vars));
            call.outs.iter().collect()
        }
        BodyStep::Control(control) => control.outs(),
    };
    let shapes = outs.iter().filter_map(|v| v.ty().as_tensor()).flat_map(|t| &t.shape);
    to.extend(shapes.flat_map(free_vars));
    let bodies = match step {
        BodyStep::Control(Control::If { then, otherwise, .. }) => vec![then, otherwise],
        BodyStep::Control(Control::Loop { body, .. }) => vec![body],
        _ => Vec::new(),
    };
    for inner in bodies.into_iter().flat_map(|body| body.steps.iter().flatten()) {
        used_sizes(functions, inner, to);
    }
}

/// For each step that was not taken back, whether values need it, or sizes that its results have. What finds
/// or checks sizes is always needed.
fn live(functions: &[Shared], steps: &[Option<BodyStep>], results: &[Imported]) -> Vec<bool> {
    let mut needed: HashSet<u64> =
        results.iter().filter_map(Imported::var).map(GraphVar::id).collect();
    let mut sizes: HashSet<Var> = HashSet::default();
    let mut live: Vec<bool> = steps
        .iter()
        .rev()
        .flatten()
        .map(|step| {
            let outs: Vec<&GraphVar> = match step {
                BodyStep::Call(call) => call.outs.iter().collect(),
                BodyStep::Control(control) => control.outs(),
            };
            let live = brings_sizes(step)
                || outs.iter().any(|v| needed.contains(&v.id()))
                || outs.iter().any(|v| v.ty().bound_sizes().iter().any(|s| sizes.contains(s)));
            if live {
                used_sizes(functions, step, &mut sizes);
                needed.extend(step.args().into_iter().filter_map(Imported::var).map(GraphVar::id));
            }
            live
        })
        .collect();
    live.reverse();
    live
}
