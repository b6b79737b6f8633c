//! Running modules: graph functions, and tensor functions by themselves.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::control::{SIZE_REASONS, WHY, is_control_operator};
use tilewright_ir::dim::SizeRange;
use tilewright_ir::list::Item;
use tilewright_ir::{
    Attr, Binding, Error, Expr, Function, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Param,
    Result, Tensor, TensorFunc, TensorType, Var, graph, well_formed,
};

mod control;
mod value;

use value::{GraphValue, operator};

use crate::alias::{Memories, Mode};
use crate::code::range_of;
use crate::compile::Compiler;
use crate::machine::Machine;
use crate::scalar::Scalar;
use crate::{Arg, Outcome, Output, Program, RunOptions, State, written_params};

/// Runs a function of a module on its inputs and returns its outputs, with default options.
///
/// A tuple is given and returned as its parts. A scalar parameter takes a tensor of one element.
/// Outputs must be written everywhere; arbitrary elements come as zero. See [`Interpreter::run`]
/// for the errors.
pub fn run_module(module: &Module, entry: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let outputs = Interpreter::new(module, RunOptions::default())?.run(entry, inputs)?;
    outputs.into_iter().map(Output::into_tensor).collect()
}

/// A module that is being run; functions are compiled at their first call.
pub struct Interpreter<'m> {
    module: &'m Module,
    options: RunOptions,
    programs: HashMap<(Arc<str>, Vec<Mode>), Arc<Program>>,
}

impl<'m> Interpreter<'m> {
    /// Prepares a module. Fails with [`Error::Malformed`] where it breaks a rule of the IR.
    pub fn new(module: &'m Module, options: RunOptions) -> Result<Self> {
        well_formed::check_module(module)?;
        Ok(Interpreter { module, options, programs: HashMap::default() })
    }

    /// Runs a function on its inputs and returns its outputs with the state of their elements.
    ///
    /// Fails with [`Error::Input`] where the inputs do not fit, [`Error::Unsupported`] where the
    /// module does something that the interpreter does not know, and [`Error::Execution`] where
    /// it does something illegal.
    pub fn run(&mut self, entry: &str, inputs: &[Tensor]) -> Result<Vec<Output>> {
        let run = match self.module.functions.get_key_value(entry) {
            Some((name, Function::Graph(f))) => self.run_entry(name, f, inputs),
            _ => self.module.tensor(entry).cloned().and_then(|f| {
                let name: Arc<str> = entry.into();
                self.run_bare(&name, &f, inputs)
            }),
        };
        run.map_err(|e| match &self.module.source {
            Some(source) => e.in_source(source),
            None => e,
        })
    }

    /// Runs a tensor function on one argument a parameter.
    pub fn call(&mut self, name: &str, args: &[Arg]) -> Result<Outcome> {
        let func = self.module.tensor(name)?.clone();
        self.call_func(&name.into(), &func, args)
    }

    /// Calls a function; scratch memory that is not among the arguments is added, and is no output.
    fn call_func(&mut self, name: &Arc<str>, func: &TensorFunc, args: &[Arg]) -> Result<Outcome> {
        let (params, scratch) = func.split_params();
        if !scratch.is_empty() && args.len() == params.len() {
            let fresh = scratch.iter().map(|_| Arg::Fresh(None));
            let all: Vec<Arg> = args.iter().cloned().chain(fresh).collect();
            let mut outcome = self.call_func(name, func, &all)?;
            outcome.outputs.retain(|o| o.param < params.len());
            return Ok(outcome);
        }
        let modes: Vec<Mode> = args.iter().filter_map(Arg::mode).collect();
        let key = (name.clone(), modes);
        let program = match self.programs.get(&key) {
            Some(program) => program.clone(),
            None => {
                let program = Arc::new(Program::new(name, func, &key.1, &self.options)?);
                self.programs.insert(key, program.clone());
                program
            }
        };
        program.run(args)
    }

    /// A tensor function as entry: its inputs are the parameters that it does not write, or all;
    /// scratch memory does not count.
    fn run_bare(
        &mut self,
        name: &Arc<str>,
        func: &TensorFunc,
        inputs: &[Tensor],
    ) -> Result<Vec<Output>> {
        let (params, _) = func.split_params();
        let mut written = written_params(func);
        written.truncate(params.len());
        let wanted = written.iter().filter(|w| !**w).count();
        let all = inputs.len() == written.len();
        if inputs.len() != wanted && !all {
            return Err(Error::input(format!(
                "function `{name}` takes {wanted} inputs, not {}",
                inputs.len()
            ))
            .help("give those parameters that are not written, or all where one is updated"));
        }
        let mut rest = inputs.iter();
        let mut args = Vec::new();
        for (p, written) in params.iter().zip(&written) {
            let input = if all || !written { rest.next() } else { None };
            args.push(match (p, input) {
                (Param::Scalar(v), Some(t)) => Arg::Scalar(as_scalar(v, t)?),
                (Param::Buffer { .. }, Some(t)) => Arg::Tensor(t.clone()),
                (_, None) => Arg::Fresh(None),
            });
        }
        let outcome = self.call_func(name, func, &args)?;
        Ok(outcome.outputs)
    }

    fn run_entry(
        &mut self,
        name: &Arc<str>,
        func: &GraphFunc,
        inputs: &[Tensor],
    ) -> Result<Vec<Output>> {
        let mut rest = inputs.iter();
        let mut args = Vec::new();
        for p in &func.params {
            match collect(p.ty(), &mut rest) {
                Some(value) => args.push(value),
                None => break,
            }
        }
        let mut wanted = 0;
        func.params.iter().for_each(|p| count(p.ty(), &mut wanted));
        if inputs.len() != wanted {
            return Err(Error::input(format!(
                "function `{name}` takes {wanted} inputs, not {}",
                inputs.len()
            )));
        }
        let result = self.run_graph(name, func, args)?;
        let mut outputs = Vec::new();
        flatten(result, &mut outputs);
        let names = match func.attrs.get("output_names") {
            Some(Attr::List(names)) => names.as_slice(),
            _ => &[],
        };
        let outputs = outputs.into_iter().enumerate().map(|(i, (tensor, states))| Output {
            param: i,
            name: result_name(i, names),
            tensor,
            states: states.map(|s| s.to_vec()),
        });
        Ok(outputs.collect())
    }

    fn run_graph(
        &mut self,
        name: &str,
        func: &GraphFunc,
        args: Vec<GraphValue>,
    ) -> Result<GraphValue> {
        let context = |e: Error| e.context(format!("function `{name}`"));
        let mut run = GraphRun {
            interpreter: self,
            dims: HashMap::default(),
            values: HashMap::default(),
            uses: HashMap::default(),
            brought: HashMap::default(),
        };
        run.count_body(func.bindings(), &func.ret);
        // An extent may name a size that only a later parameter says.
        func.params.iter().zip(&args).for_each(|(p, value)| run.bind_sizes(p.ty(), value));
        for (p, value) in func.params.iter().zip(args) {
            run.define(p, value).map_err(|e| {
                let e = context(e.context(format!("argument `{}`", p.name())));
                size_reasons(func, p.name()).into_iter().fold(e, |e, why| e.note(&*why))
            })?;
        }
        for b in func.bindings() {
            run.binding(b, &context)?;
        }
        run.eval(&func.ret)
    }
}

fn result_name(i: usize, names: &[Attr]) -> Arc<str> {
    match names.get(i) {
        Some(Attr::Str(name)) => name.clone(),
        _ => format!("{i}").into(),
    }
}

/// Why extents of a parameter must be what its type says.
fn size_reasons(func: &GraphFunc, param: &str) -> Vec<Arc<str>> {
    let Some(Attr::List(all)) = func.attrs.get(SIZE_REASONS) else { return Vec::new() };
    all.iter()
        .filter_map(|attr| match attr {
            Attr::List(parts) => match parts.as_slice() {
                [Attr::Str(name), _, Attr::Str(why)] if **name == *param => Some(why.clone()),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// One run of a graph function.
struct GraphRun<'r, 'm> {
    interpreter: &'r mut Interpreter<'m>,
    /// Values of the variables in shapes.
    dims: HashMap<Var, i64>,
    values: HashMap<GraphVar, GraphValue>,
    /// Uses that are still to come, so that a value goes with its last one.
    uses: HashMap<GraphVar, usize>,
    /// The sizes that have their values by the type of a variable.
    brought: HashMap<GraphVar, Vec<Var>>,
}

impl GraphRun<'_, '_> {
    fn binding(&mut self, b: &Binding, context: &dyn Fn(Error) -> Error) -> Result<()> {
        let place = |e: Error| e.at(b.span);
        let value = match &b.value {
            GraphExpr::If(branches) => self.branches(branches, context),
            GraphExpr::Loop(l) => self.graph_loop(l, b.var.ty(), context),
            value => self.eval(value),
        };
        let value = value.map_err(place)?;
        self.define(&b.var, value)
            .map_err(|e| with_reason(context(e.context(format!("binding `{}`", b.var.name()))), b))
            .map_err(place)
    }

    fn count_uses(&mut self, e: &GraphExpr) {
        match e {
            GraphExpr::Var(v) => *self.uses.entry(v.clone()).or_default() += 1,
            GraphExpr::Const(_) => {}
            GraphExpr::CallTir { args, .. }
            | GraphExpr::Call { args, .. }
            | GraphExpr::Tuple(args) => args.iter().for_each(|a| self.count_uses(a)),
            GraphExpr::Item(e, _) => self.count_uses(e),
            GraphExpr::If(_) | GraphExpr::Loop(_) => self.count_inside(e),
        }
    }

    /// Gives sizes that stand alone in a type their values, where they have none.
    fn bind_sizes(&mut self, ty: &GraphType, value: &GraphValue) {
        match (ty, value) {
            (GraphType::Tensor(ty), GraphValue::Tensor(t, _)) => {
                bind_extents(&ty.shape, t.shape(), &mut self.dims);
            }
            (GraphType::Tuple(types), GraphValue::Tuple(values)) => {
                types.iter().zip(values).for_each(|(t, v)| self.bind_sizes(t, v));
            }
            (GraphType::Shape(sizes), GraphValue::Shape(values)) => {
                for (e, n) in sizes.iter().zip(values) {
                    if let Some(v) = e.as_var() {
                        self.dims.entry(v.clone()).or_insert(*n);
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks a value against a type, and gives variables in the type their values.
    fn bind_type(&mut self, ty: &GraphType, value: &GraphValue) -> Result<()> {
        self.bind_sizes(ty, value);
        match (ty, value) {
            (GraphType::Tensor(ty), GraphValue::Tensor(t, _)) => self.bind_tensor(ty, t),
            (GraphType::Tuple(types), GraphValue::Tuple(values)) if types.len() == values.len() => {
                types.iter().zip(values).try_for_each(|(t, v)| self.bind_type(t, v))
            }
            (GraphType::Shape(sizes), GraphValue::Shape(values)) => self.bind_shape(sizes, values),
            (GraphType::Opaque(_), _) => Ok(()),
            _ => Err(Error::input("a tensor and a tuple do not fit each other")),
        }
    }

    fn bind_tensor(&mut self, ty: &TensorType, t: &Tensor) -> Result<()> {
        if ty.dtype != t.dtype() {
            let (want, got) = (ty.dtype, t.dtype());
            return Err(Error::input(format!("is {got}, but {want} is declared")));
        }
        if ty.shape.len() != t.shape().len() {
            return wrong_shape(shape_text(&ty.shape), t);
        }
        for (e, &n) in ty.shape.iter().zip(t.shape()) {
            let range = e.as_var().map_or(SizeRange::ALL, |v| v.range());
            if let Some(v) = e.as_var().filter(|_| range != SizeRange::ALL && !range.contains(n)) {
                return Err(range.outside(v.name(), n));
            }
        }
        let declared = self.shape(&ty.shape)?;
        if declared != t.shape() {
            let text = shape_text(&ty.shape);
            return wrong_shape(
                if ty.shape.iter().all(|e| e.as_int().is_some()) {
                    text
                } else {
                    format!("{text}, that is {declared:?},")
                },
                t,
            );
        }
        Ok(())
    }

    fn eval(&mut self, e: &GraphExpr) -> Result<GraphValue> {
        match e {
            GraphExpr::Var(v) => {
                let left = self.uses.get_mut(v).map_or(0, |n| {
                    *n = n.saturating_sub(1);
                    *n
                });
                let value = match left {
                    0 => self.values.remove(v),
                    _ => self.values.get(v).cloned(),
                };
                value.ok_or_else(|| Error::internal(format!("`{}` has no value", v.name())))
            }
            GraphExpr::Const(t) => Ok(GraphValue::Tensor(t.clone(), None)),
            GraphExpr::Tuple(items) => {
                let items: Result<Vec<GraphValue>> = items.iter().map(|e| self.eval(e)).collect();
                Ok(GraphValue::Tuple(items?))
            }
            GraphExpr::Item(e, i) => match self.eval(e)? {
                GraphValue::Tuple(mut items) if *i < items.len() => Ok(items.swap_remove(*i)),
                _ => Err(Error::input(format!("there is no item {i}"))),
            },
            GraphExpr::CallTir { func, args, outs, scalars } => {
                self.call_tir(func, args, outs, scalars)
            }
            GraphExpr::If(_) | GraphExpr::Loop(_) => {
                Err(Error::internal("control flow that is no value of a binding"))
            }
            GraphExpr::Call { op, args, attrs } => {
                if let Some(sizes) = e.as_shape() {
                    let sizes = self.shape(&sizes)?;
                    return Ok(GraphValue::Shape(sizes.into_iter().map(|n| n as i64).collect()));
                }
                let args: Result<Vec<GraphValue>> = args.iter().map(|a| self.eval(a)).collect();
                if is_control_operator(op) {
                    return operator(op, args?, attrs);
                }
                let callee = graph::callee(op).map(|name| {
                    let module = self.interpreter.module;
                    module.graph(name).map(|f| (name, f.clone()))
                });
                match callee {
                    Some(callee) => {
                        let (name, f) = callee?;
                        self.interpreter.run_graph(name, &f, args?)
                    }
                    None => Err(Error::unsupported(format!(
                        "the interpreter does not know the operator `{op}`"
                    ))),
                }
            }
        }
    }

    fn call_tir(
        &mut self,
        func: &Arc<str>,
        args: &[GraphExpr],
        outs: &[TensorType],
        scalars: &[Expr],
    ) -> Result<GraphValue> {
        let callee = self.interpreter.module.tensor(func)?.clone();
        let mut actual = Vec::new();
        for a in args {
            actual.push(match self.eval(a)? {
                GraphValue::Tensor(t, None) => Arg::Tensor(t),
                GraphValue::Tensor(t, Some(states)) => Arg::Partial(t, states.to_vec()),
                GraphValue::Item(Item::Tensor(t)) => Arg::Tensor(t),
                _ => return Err(Error::input("an argument is no tensor")),
            });
        }
        for out in outs {
            actual.push(Arg::Fresh(Some(self.shape(&out.shape)?)));
        }
        for e in scalars {
            actual.push(Arg::Scalar(evaluate(e, &self.dims)?));
        }
        let outcome = self.interpreter.call_func(func, &callee, &actual)?;
        let first = args.len();
        let mut values: Vec<GraphValue> = outcome
            .outputs
            .into_iter()
            .filter(|o| o.param >= first)
            .map(|o| GraphValue::Tensor(o.tensor, o.states.map(Arc::new)))
            .collect();
        Ok(match values.len() {
            1 => values.swap_remove(0),
            _ => GraphValue::Tuple(values),
        })
    }

    fn shape(&self, shape: &[Expr]) -> Result<Vec<usize>> {
        extents(shape, &self.dims)
    }
}

fn with_reason(e: Error, b: &Binding) -> Error {
    match &b.value {
        GraphExpr::Call { attrs, .. } if let Some(Attr::Str(why)) = attrs.get(WHY) => {
            e.note(&**why)
        }
        _ => e,
    }
}

fn wrong_shape(want: String, t: &Tensor) -> Result<()> {
    Err(Error::input(format!("has shape {:?}, but {want} is declared", t.shape())))
}

/// Gives sizes that stand alone in a shape their values, where they have none.
pub fn bind_extents(shape: &[Expr], given: &[usize], dims: &mut HashMap<Var, i64>) {
    for (e, &n) in shape.iter().zip(given) {
        if let (Some(v), Ok(n)) = (e.as_var(), i64::try_from(n)) {
            dims.entry(v.clone()).or_insert(n);
        }
    }
}

/// The extents of a shape, given its variables.
pub fn extents(shape: &[Expr], dims: &HashMap<Var, i64>) -> Result<Vec<usize>> {
    shape
        .iter()
        .map(|e| {
            let value = match e.as_int() {
                Some(v) => i128::from(v),
                None => evaluate(e, dims)?.as_i128(),
            };
            usize::try_from(value)
                .map_err(|_| Error::input(format!("extent `{e}` is {value}, which is negative")))
        })
        .collect()
}

/// The value of an expression over variables.
pub fn evaluate(e: &Expr, vars: &HashMap<Var, i64>) -> Result<Scalar> {
    let options = RunOptions::default();
    let mut c = Compiler::new(&options, Memories::default());
    let slots: Vec<usize> = vars
        .keys()
        .map(|v| {
            let (lo, hi) = range_of(v.dtype());
            c.define(v, lo, hi)
        })
        .collect();
    let code = c.value(e)?.cell();
    let mut m = Machine::new(c.slots, 0, 0, &options);
    slots.iter().zip(vars.values()).for_each(|(slot, value)| m.frame[*slot] = *value as u64);
    let cell = code(&mut m);
    match m.trap {
        None => Ok(Scalar::from_bits(cell.bits, e.dtype())),
        Some(_) => Err(m.error()),
    }
}

fn shape_text(shape: &[Expr]) -> String {
    let shape: Vec<String> =
        shape.iter().map(|e| e.as_int().map_or_else(|| e.to_string(), |v| v.to_string())).collect();
    format!("[{}]", shape.join(", "))
}

fn as_scalar(v: &Var, t: &Tensor) -> Result<Scalar> {
    if t.len() != 1 || t.dtype() != v.dtype() {
        return Err(Error::input(format!(
            "`{}` is a {} scalar, but a {} tensor of shape {:?} is given",
            v.name(),
            v.dtype(),
            t.dtype(),
            t.shape()
        )));
    }
    Ok(Scalar::from_bits(crate::machine::decode(t.bytes(), t.dtype()), t.dtype()))
}

/// Number of tensors in a type.
fn count(ty: &GraphType, n: &mut usize) {
    match ty {
        GraphType::Tuple(items) => items.iter().for_each(|t| count(t, n)),
        _ => *n += 1,
    }
}

/// Takes the tensors of a type from a list.
fn collect<'t>(ty: &GraphType, rest: &mut impl Iterator<Item = &'t Tensor>) -> Option<GraphValue> {
    match ty {
        GraphType::Tuple(items) => {
            let items: Option<Vec<GraphValue>> = items.iter().map(|t| collect(t, rest)).collect();
            items.map(GraphValue::Tuple)
        }
        _ => rest.next().map(|t| GraphValue::Tensor(t.clone(), None)),
    }
}

type Flat = Vec<(Tensor, Option<Arc<Vec<State>>>)>;

fn flatten(value: GraphValue, out: &mut Flat) {
    match value {
        GraphValue::Tensor(t, states) => out.push((t, states)),
        GraphValue::Tuple(items) => items.into_iter().for_each(|v| flatten(v, out)),
        GraphValue::Item(Item::Tensor(t)) => out.push((t, None)),
        GraphValue::Item(_) | GraphValue::Shape(_) => {}
    }
}
