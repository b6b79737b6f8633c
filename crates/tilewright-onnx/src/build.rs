//! Collects calls of tensor functions while a graph is imported, and makes the module of them.
//!
//! A call whose arguments are all known is run at once, within limits, and leaves a constant:
//! this is how shape arithmetic disappears. Calls with equal parameters share one function. What
//! the outputs do not need in the end is left out of the module.

use std::fmt::Debug;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{
    Attr, Attrs, BindingBlock, Dim, Error, GraphExpr, GraphFunc, GraphType, GraphVar, Module,
    Result, Stmt, StmtKind, Tensor, TensorFunc, TensorIdentity, Var, Visit, dim,
};
use tilewright_ops::{self as ops, Operand, Scalar};

use crate::data::Element;
use crate::extents::{check_extents, check_rank};
use crate::facts::Facts;
use crate::fold;
use crate::imported::{Imported, operand, tensor_type};
use crate::narrow::NarrowValues;
use crate::node::Node;
use crate::ratio::Ratio;
use crate::sizes;

mod blocked;
mod control;
mod convolution;
mod emit;
mod entries;
mod step;

pub(crate) use blocked::Blocked;
pub(crate) use convolution::Convolution;
use emit::{Emit, Origin, Origins, Shared, expr};
pub(crate) use entries::Entry;
use step::{BodyStep, Call, OpenBody};
pub(crate) use step::{LoopGiven, Nested};

/// What importing may spend.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Bytes of constants that are computed rather than read.
    pub(crate) bytes: usize,
    /// Steps of the interpreter for all constants together.
    pub(crate) steps: u64,
}

impl Budget {
    /// Accounts for a constant that is about to be made; an error where it is too large.
    pub(crate) fn charge(&mut self, operand: &Operand) -> Result<()> {
        let shape = dim::fixed(&operand.shape, "a constant")?;
        let size = tilewright_ir::tensor::byte_count(operand.dtype, &shape);
        match size.and_then(|size| self.bytes.checked_sub(size)) {
            Some(rest) => {
                self.bytes = rest;
                Ok(())
            }
            None => Err(Error::unsupported(format!(
                "the constant {operand} exceeds the memory for constants that are computed at import"
            ))
            .note(format!("{} bytes of it are left", self.bytes))
            .help("raise `constant_bytes` in the options of the import")),
        }
    }
}

/// Turns a node into values, from its inputs and attributes.
pub(crate) type Plain = fn(&Node, &mut Builder) -> Result<Vec<Imported>>;

/// Where the calls are collected.
pub(crate) struct Builder {
    pub(crate) budget: Budget,
    /// Name for the variables that the next calls define.
    pub(crate) hint: String,
    /// What messages call the node that is imported.
    pub(crate) node: String,
    /// What is known of the inputs' sizes, and may be taken of them.
    pub(crate) facts: Facts,
    functions: Vec<Shared>,
    by_parameters: HashMap<String, usize>,
    /// The body that is being built, and those around it, outermost first.
    bodies: Vec<OpenBody>,
    /// Number of the body and position of the step that defines a variable, by its identity.
    defined_by: HashMap<u64, (usize, usize)>,
    /// How many bodies there were.
    numbered: usize,
    /// How many sizes data decide.
    sized: usize,
    /// These sizes.
    decided: HashSet<Var>,
    /// The sizes that a list of integers says, by its variable, and the number of the body that knows them.
    sizes_by_list: HashMap<u64, (usize, Vec<Dim>)>,
    /// The names of sizes that are long expressions, and the numbers of the bodies that know them.
    named: HashMap<Dim, (usize, Dim)>,
    /// What is known of short lists of integers, by their variables.
    entries_of: HashMap<u64, Vec<Entry>>,
    /// What the elements of short lists are if floats are exact, by their variables.
    expected_of: HashMap<u64, Vec<Option<Ratio>>>,
    /// Calls of a function of some operands, with their results and the number of their body.
    calls: HashMap<(usize, Vec<Same>), Called>,
    /// What values were joined to along an axis, by these, and the number of the body that knows it.
    joined: HashMap<(usize, Vec<u64>), (usize, Imported)>,
    /// Convolutions whose scale may still change, by the identity of their result.
    pub(crate) convolutions: HashMap<u64, Convolution>,
    /// The elements of lists of which it is known at import which ones they hold, by their variables.
    pub(crate) elements_of: HashMap<u64, Vec<Imported>>,
    /// Values that are integers in blocks, by their variables, which no step defines.
    blocked: HashMap<u64, Blocked>,
    /// Of values with channels of zeros at their end, by their variables, what is before these.
    pub(crate) filled: HashMap<u64, Imported>,
    /// The one number that all elements of values of open shape are, by their variables.
    pub(crate) uniform: HashMap<u64, Scalar>,
    /// How many products read the result of the current node, where nothing else does; 0 otherwise.
    pub(crate) products: usize,
    /// Whether nothing is quantised in a run of the current graph, so that products are those of numbers.
    pub(crate) of_numbers: bool,
    /// What the elements of values stand for that modules have no type for.
    pub(crate) narrow: NarrowValues,
    /// Constants that the graph has as calls.
    origins: Origins,
    /// The importer of an operator of ONNX's own in its newest version, for operators that are made of
    /// it; an error where there is none.
    pub(crate) importers: fn(&str) -> Result<Plain>,
}

impl Builder {
    pub(crate) fn new(budget: Budget, importers: fn(&str) -> Result<Plain>) -> Self {
        Builder {
            importers,
            budget,
            hint: String::new(),
            node: String::new(),
            facts: Facts::default(),
            functions: Vec::new(),
            by_parameters: HashMap::default(),
            bodies: vec![OpenBody::default()],
            defined_by: HashMap::default(),
            numbered: 1,
            sized: 0,
            decided: HashSet::default(),
            sizes_by_list: HashMap::default(),
            named: HashMap::default(),
            entries_of: HashMap::default(),
            expected_of: HashMap::default(),
            calls: HashMap::default(),
            joined: HashMap::default(),
            convolutions: HashMap::default(),
            elements_of: HashMap::default(),
            blocked: HashMap::default(),
            filled: HashMap::default(),
            uniform: HashMap::default(),
            products: 0,
            of_numbers: false,
            narrow: NarrowValues::default(),
            origins: Origins::default(),
        }
    }

    /// The element type of an input, which must be there.
    pub(crate) fn input_type(&self, node: &Node, at: usize) -> Result<Element> {
        Ok(match self.narrow.input(node.proto, at) {
            Some(narrow) => Element::Narrow(narrow),
            None => Element::Plain(node.input(at)?.dtype()),
        })
    }

    /// Has the graph call a function for a constant that its result is. Parameters as those of
    /// [`Builder::call`].
    pub(crate) fn keep_origin<'v>(
        &mut self,
        made: &Imported,
        base: &'static str,
        key: &dyn Debug,
        args: impl IntoIterator<Item = &'v Imported>,
        make: impl FnOnce() -> Result<TensorFunc>,
    ) -> Result<()> {
        let Imported::Const(t) = made else { return Ok(()) };
        // Tensors without elements share their memory.
        if !t.is_empty() {
            let args: Vec<Imported> = args.into_iter().cloned().collect();
            let func = self.function(base, key, args.len(), Box::new(make))?;
            let origin = Origin { made: t.clone(), func, args };
            self.origins.0.insert(t.identity(), origin);
        }
        Ok(())
    }

    /// Whether the graph has a call for a constant.
    pub(crate) fn has_origin(&self, t: &Tensor) -> bool {
        self.origins.find(t).is_some()
    }

    /// Calls the function that `make` builds for operands like some values, whose one result comes
    /// back. `key` holds its other parameters: equal ones mean equal functions.
    pub(crate) fn call_on<const N: usize>(
        &mut self,
        base: &'static str,
        args: [&Imported; N],
        key: impl Debug,
        make: impl FnOnce([&Operand; N]) -> Result<TensorFunc>,
    ) -> Result<Imported> {
        let of = args.map(operand);
        self.call(base, &(&of, key), args, || make(of.each_ref()))
    }

    /// Calls the function that `make` builds, whose one result comes back. `key` holds all
    /// parameters of the function: equal keys mean equal functions.
    pub(crate) fn call<'v>(
        &mut self,
        base: &'static str,
        key: &dyn Debug,
        args: impl IntoIterator<Item = &'v Imported>,
        make: impl FnOnce() -> Result<TensorFunc>,
    ) -> Result<Imported> {
        only(base, self.call_many(base, key, args, make)?)
    }

    /// [`Builder::call`] with any number of results.
    pub(crate) fn call_many<'v>(
        &mut self,
        base: &'static str,
        key: &dyn Debug,
        args: impl IntoIterator<Item = &'v Imported>,
        make: impl FnOnce() -> Result<TensorFunc>,
    ) -> Result<Vec<Imported>> {
        let args: Vec<Imported> = args.into_iter().cloned().collect();
        let func = self.function(base, key, args.len(), Box::new(make))?;
        self.called(func, args)
    }

    /// The results of a function of the builder.
    fn called(&mut self, func: usize, args: Vec<Imported>) -> Result<Vec<Imported>> {
        let shared = &mut self.functions[func];
        // Operators that take types only do not see the shapes of all their operands.
        for (need, arg) in shared.inputs.iter().zip(&args) {
            let given = operand(arg);
            if *need != given {
                return Err(Error::model(format!("there is {given} where {need} is needed")));
            }
        }
        let known: Option<Vec<Vec<usize>>> =
            shared.outs.iter().map(|o| dim::known(&o.shape)).collect();
        if let Some(shapes) = &known
            && shapes.iter().all(|s| s.contains(&0))
        {
            // Nothing is computed.
            let zeros = shared.outs.iter().zip(shapes);
            return zeros.map(|(o, s)| Ok(Imported::Const(Tensor::zeros(o.dtype, s)?))).collect();
        }
        let cost = shared.cost;
        let closed = shared.scalars.is_empty() && known.is_some();
        let affordable = closed && cost <= self.budget.steps;
        let constants: Option<Vec<Tensor>> = args.iter().map(|a| a.constant().cloned()).collect();
        if let (Some(constants), true) = (constants, affordable) {
            self.budget.steps -= shared.cost;
            shared.outs.iter().try_for_each(|o| self.budget.charge(o))?;
            let program = match shared.program.take() {
                Some(program) => program,
                None => fold::compile(shared.base, &shared.func, constants.len())?,
            };
            let results = fold::run(&program, &constants, &shared.outs);
            shared.program = Some(program);
            let results = results?;
            return Ok(results.into_iter().map(Imported::Const).collect());
        }
        let by_floats = args.iter().any(|a| self.expected(a).is_some());
        let of_sizes =
            |a: &Imported| matches!(a, Imported::Sizes(_)) || self.known_entries(a).is_some();
        if by_floats || args.iter().any(of_sizes) {
            let found = match &known {
                Some(shapes) if cost <= self.budget.steps => {
                    let given = args.iter().map(|a| self.numbers(a)).collect::<Vec<_>>();
                    let shared = &self.functions[func];
                    sizes::run(&shared.func, &given, &shared.outs, shapes).zip(Some(shapes))
                }
                _ => None,
            };
            let by_floats = by_floats || found.as_ref().is_some_and(|(found, _)| found.by_floats);
            if let Some((found, shapes)) = &found {
                self.budget.steps -= cost;
                let outs = &self.functions[func].outs;
                if let (Some(values), false) =
                    (sizes::values(&found.values, outs, shapes)?, by_floats)
                {
                    return Ok(values);
                }
            }
            let args = args.iter().map(|a| self.as_data(a)).collect::<Result<Vec<_>>>()?;
            let results = self.push_once(func, args);
            let values = found.into_iter().flat_map(|(found, _)| found.values);
            for (result, values) in results.iter().zip(values) {
                match by_floats {
                    true => self.expect(result, values),
                    false => self.note_known(result, &values),
                }
            }
            return Ok(results);
        }
        Ok(self.push_once(func, args))
    }

    /// The numbers in an operand that are known but for open sizes, or expected; it is empty where none is.
    fn numbers(&self, value: &Imported) -> Vec<Option<Ratio>> {
        match value {
            Imported::Sizes(s) => s.values.iter().map(|v| Some((*v).into())).collect(),
            Imported::Const(t) => sizes::numbers(t),
            other => match self.expected(other) {
                Some(expected) => expected.clone(),
                None => {
                    let known = self.known_entries(other).unwrap_or_default();
                    known.into_iter().map(|v| v.map(Ratio::from)).collect()
                }
            },
        }
    }

    /// The results of a call; those of an equal one that is known here, so that sizes which data decide are
    /// the same where the data are.
    fn push_once(&mut self, func: usize, args: Vec<Imported>) -> Vec<Imported> {
        let same: Option<Vec<Same>> = args.iter().map(Same::from_value).collect();
        // A convolution may still change.
        let Some(same) = same.filter(|_| !self.functions[func].base.starts_with("conv")) else {
            return self.push(func, args);
        };
        let key = (func, same);
        if let Some(called) = self.calls.get(&key)
            && self.is_open_body(called.body)
            && called
                .results
                .iter()
                .all(|v| v.var().is_some_and(|v| self.defined_by.contains_key(&v.id())))
        {
            return called.results.clone();
        }
        let results = self.push(func, args.clone());
        let body = self.bodies.last().map_or(0, |b| b.number);
        self.calls.insert(key, Called { body, results: results.clone(), _args: args });
        results
    }

    /// Takes note of what values are joined to along an axis.
    pub(crate) fn note_joined(&mut self, axis: usize, parts: &[Imported], joined: &Imported) {
        let body = self.bodies.last().map_or(0, |b| b.number);
        if let Some(key) = variables(parts) {
            self.joined.insert((axis, key), (body, joined.clone()));
        }
    }

    /// The first of some values, as many as can be, as one value to which they were joined along an axis before, and
    /// the others. A network that appends to all that it has made so far does not copy it each time then: each
    /// of the values is the beginning of the next one.
    pub(crate) fn joined_before(&self, axis: usize, parts: &[Imported]) -> Option<Vec<Imported>> {
        let key = variables(parts)?;
        (2..parts.len()).rev().find_map(|count| {
            let (body, joined) = self.joined.get(&(axis, key[..count].to_vec()))?;
            let is_there = joined.var().is_some_and(|v| self.defined_by.contains_key(&v.id()));
            let known = is_there && self.is_open_body(*body);
            known.then(|| [std::slice::from_ref(joined), &parts[count..]].concat())
        })
    }

    /// A value as an operand of a function: open sizes are written into a tensor when the model
    /// runs.
    fn as_data(&mut self, value: &Imported) -> Result<Imported> {
        if let Imported::Text(_) | Imported::Chosen { .. } = value {
            return Err(Error::unsupported(
                "strings are known at import only, and here they would be values of a run",
            ));
        }
        if let Imported::Map { .. } = value {
            return Err(Error::unsupported("maps are no values of branches, loops and functions"));
        }
        let Imported::Sizes(s) = value else { return Ok(value.clone()) };
        let func = self.function(
            "sizes",
            &(&s.shape, &s.values, s.dtype),
            0,
            Box::new(|| ops::creation::integers(&s.shape, &s.values, s.dtype)),
        )?;
        only("sizes", self.push(func, Vec::new()))
    }

    /// Copies a value, so that it has a variable of its own.
    pub(crate) fn copy(&mut self, value: &Imported) -> Result<Imported> {
        if let Imported::Sizes(_) = value {
            return self.as_data(value);
        }
        let x = operand(value);
        let func = self.function("copy", &x, 1, Box::new(|| ops::movement::copy(&x)))?;
        only("copy", self.push(func, vec![value.clone()]))
    }

    /// The position of a function: that of an equal one, or of what `make` builds.
    fn function(
        &mut self,
        base: &'static str,
        key: &dyn Debug,
        inputs: usize,
        make: Box<dyn FnOnce() -> Result<TensorFunc> + '_>,
    ) -> Result<usize> {
        let key = format!("{base} {key:?}");
        if let Some(&at) = self.by_parameters.get(&key) {
            return Ok(at);
        }
        let func = make()?;
        let mut params = ops::results(&func, func.params.len());
        let scalars = func.size_arguments();
        let scalars = scalars.map_err(|_| Error::internal(format!("`{base}` takes a scalar")))?;
        let outs = params.split_off(inputs.min(params.len()));
        let inputs = params;
        if outs.is_empty() {
            return Err(Error::internal(format!("`{base}` has no result")));
        }
        outs.iter().try_for_each(|o| check_rank(o.rank()))?;
        outs.iter().try_for_each(|o| check_extents(&o.shape))?;
        let at = self.functions.len();
        let cost = cost(&func);
        self.functions.push(Shared {
            base,
            func: Arc::new(func),
            inputs,
            outs,
            scalars,
            cost,
            program: None,
        });
        self.by_parameters.insert(key, at);
        Ok(at)
    }

    fn push(&mut self, func: usize, args: Vec<Imported>) -> Vec<Imported> {
        let name = identifier(&self.hint);
        let values = self.functions[func].outs.iter().map(|o| Imported::var_of(&name, o.clone()));
        let (outs, values): (Vec<GraphVar>, Vec<Imported>) = values.unzip();
        let defined = outs.clone();
        self.add(&defined, BodyStep::Call(Call { func, args, outs }));
        values.into_iter().map(|value| self.with_short_sizes(value)).collect()
    }

    /// Says that the graph reads a value this often, under one of its names.
    pub(crate) fn note_uses(&mut self, value: &Imported, uses: usize) {
        if let Imported::Var { var, .. } = value
            && let Some(conv) = self.convolutions.get_mut(&var.id())
        {
            conv.uses = conv.uses.max(uses);
        }
    }

    /// Takes back the call that defines a variable which nothing uses.
    pub(crate) fn take_back(&mut self, var: &GraphVar) {
        if let Some((body, at)) = self.defined_by.remove(&var.id())
            && let Some(body) = self.bodies.iter_mut().find(|b| b.number == body)
        {
            body.steps[at] = None;
        }
    }

    /// The parameters of the graph that a variable is computed from.
    pub(crate) fn sources(&self, var: &GraphVar) -> Vec<GraphVar> {
        let (mut open, mut seen, mut found) = (vec![var], HashSet::default(), Vec::new());
        while let Some(var) = open.pop() {
            if !seen.insert(var.id()) {
                continue;
            }
            let step = self.defined_by.get(&var.id()).and_then(|(body, at)| {
                let body = self.bodies.iter().find(|b| b.number == *body)?;
                body.steps[*at].as_ref()
            });
            match step {
                Some(step) => open.extend(step.args().into_iter().filter_map(Imported::var)),
                None => found.push(var.clone()),
            }
        }
        found
    }

    /// The module whose graph function `main` has these parameters, these attributes, and these
    /// outputs, each with the name that the user knows.
    pub(crate) fn finish(
        mut self,
        params: Vec<GraphVar>,
        mut attrs: Attrs,
        outputs: Vec<(String, Imported)>,
    ) -> Result<Module> {
        let inputs: HashSet<u64> = params.iter().map(GraphVar::id).collect();
        let control = self.has_control();
        let mut returned: Vec<Imported> = Vec::new();
        let mut seen = HashSet::default();
        for (name, value) in &outputs {
            let own = match value {
                Imported::Var { var, .. }
                    if !inputs.contains(&var.id()) && seen.insert(var.id()) =>
                {
                    value.clone()
                }
                Imported::Item { .. } => value.clone(),
                // With control flow, a value may be a result twice.
                Imported::Const(_) | Imported::Var { .. } if control => value.clone(),
                _ => {
                    self.hint = name.clone();
                    self.copy(value)?
                }
            };
            returned.push(own);
        }
        let steps = self.bodies.pop().map(|b| b.steps).unwrap_or_default();
        // What stands inside of a body is not known outside of it.
        let origins = if control { Origins::default() } else { self.origins };
        let mut emit = Emit::new(&self.functions, &origins);
        let bindings = emit.bindings(&steps, &returned)?;
        let mut module = emit.module;
        let values = returned.iter().map(expr).collect::<Result<Vec<_>>>()?;
        let types: Vec<GraphType> = returned
            .iter()
            .map(|v| match v {
                Imported::Item { var, .. } => var.ty().clone(),
                tensor => GraphType::Tensor(tensor_type(&operand(tensor))),
            })
            .collect();
        let (ret, ret_ty) = match (values.as_slice(), types.as_slice()) {
            ([value], [ty]) => (value.clone(), ty.clone()),
            _ => (GraphExpr::Tuple(values), GraphType::Tuple(types)),
        };
        let returned: Vec<GraphVar> = returned.iter().filter_map(|v| v.var().cloned()).collect();
        attrs.insert("output_names".into(), name_list(outputs.into_iter().map(|(name, _)| name)));
        let block = if control {
            BindingBlock { dataflow: false, bindings, outputs: Vec::new() }
        } else {
            BindingBlock { dataflow: true, bindings, outputs: returned }
        };
        let main = GraphFunc {
            params,
            blocks: vec![block],
            ret,
            ret_ty: Some(ret_ty),
            attrs,
            private: false,
            span: None,
        };
        module.insert("main", main);
        Ok(module)
    }
}

/// A call that others may share.
struct Called {
    body: usize,
    results: Vec<Imported>,
    /// The operands, so that the memory of constants among them stays their own.
    _args: Vec<Imported>,
}

/// What tells whether two operands are the same: the variable, or the constant.
#[derive(PartialEq, Eq, Hash)]
enum Same {
    Var(u64),
    Const(TensorIdentity),
}

impl Same {
    fn from_value(value: &Imported) -> Option<Same> {
        match value {
            Imported::Var { var, .. } => Some(Same::Var(var.id())),
            Imported::Const(t) => Some(Same::Const(t.identity())),
            _ => None,
        }
    }
}

/// The identities of values that are all computed when the model runs.
fn variables(values: &[Imported]) -> Option<Vec<u64>> {
    values.iter().map(|v| v.var().map(GraphVar::id)).collect()
}

/// The one result of a function.
fn only(base: &str, mut results: Vec<Imported>) -> Result<Imported> {
    results.pop().ok_or_else(|| Error::internal(format!("`{base}` has no result")))
}

/// Names as the value of an attribute.
pub(crate) fn name_list(names: impl IntoIterator<Item: Into<Arc<str>>>) -> Attr {
    Attr::List(names.into_iter().map(|name| Attr::Str(name.into())).collect())
}

/// Number of statements that a function runs: the products of the extents around each store.
fn cost(func: &TensorFunc) -> u64 {
    struct Cost {
        around: u64,
        total: u64,
    }
    impl Visit for Cost {
        fn stmt(&mut self, s: &Stmt) {
            let around = self.around;
            match s.kind() {
                StmtKind::For { range, .. } => {
                    let extent = range.extent.as_int().and_then(|e| u64::try_from(e).ok());
                    self.around = around.saturating_mul(extent.unwrap_or(u64::MAX));
                }
                StmtKind::Store { .. } => self.total = self.total.saturating_add(around),
                _ => {}
            }
            walk_stmt(self, s);
            self.around = around;
        }
    }
    let mut cost = Cost { around: 1, total: 0 };
    cost.stmt(&func.body);
    cost.total
}

/// A name in which every character that an identifier cannot have is an underscore.
pub(crate) fn identifier(name: &str) -> String {
    let text: String =
        name.chars().take(64).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match text.chars().next() {
        None => "v".into(),
        Some(c) if c.is_ascii_digit() => format!("v{text}"),
        Some(_) => text,
    }
}
