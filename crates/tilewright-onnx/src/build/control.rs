//! Control flow in the making: bodies inside of each other, branches, loops, lists, and sizes that data
//! decide.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::control::{MATCH_CAST, TENSOR_TO_SHAPE};
use tilewright_ir::list::ListOp;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Body, Branches, DType, Dim, Error, Function, GraphExpr,
    GraphType, GraphVar, Loop, Module, Result, TensorType, Var,
};
use tilewright_ops::Operand;

use super::{Builder, Call, Origins, Shared, Step, fresh, tensor_type};
use crate::build::identifier;
use crate::node::{Element, Imported, ItemType};

/// A body that is being built.
#[derive(Default)]
pub(super) struct OpenBody {
    pub(super) number: usize,
    pub(super) steps: Vec<Option<Step>>,
    /// Sizes that data decide in it.
    sizes: Vec<Var>,
}

/// A body that is complete.
pub(crate) struct Nested {
    steps: Vec<Option<Step>>,
    /// What it gives.
    pub(crate) results: Vec<Imported>,
    /// Sizes that are known only inside of it.
    sizes: Vec<Var>,
}

impl Nested {
    /// Whether a size is known outside, too.
    pub(crate) fn is_outside(&self, size: Dim) -> bool {
        !size.vars().iter().any(|v| self.sizes.contains(v))
    }
}

/// A step that is no call of a tensor function.
pub(super) enum Control {
    /// The elements of a list of integers are sizes.
    Sizes {
        of: Imported,
        var: GraphVar,
    },
    /// What is known of the type of a value from a list.
    Cast {
        of: Imported,
        out: GraphVar,
    },
    List {
        op: ListOp,
        attrs: Attrs,
        args: Vec<Imported>,
        out: GraphVar,
    },
    If {
        cond: Imported,
        then: Nested,
        otherwise: Nested,
        outs: Vec<GraphVar>,
    },
    Loop {
        given: LoopGiven,
        body: Nested,
        outs: Vec<GraphVar>,
    },
}

/// What a loop is given.
pub(crate) struct LoopGiven {
    pub(crate) trip: Option<Imported>,
    pub(crate) cond: Option<Imported>,
    pub(crate) carried: Vec<Imported>,
    /// The number of the iteration, and the carried values.
    pub(crate) params: Vec<GraphVar>,
}

impl Control {
    /// The values that it reads, those that bodies read from around them included.
    pub(super) fn args(&self) -> Vec<&Imported> {
        match self {
            Control::Sizes { of, .. } | Control::Cast { of, .. } => vec![of],
            Control::List { args, .. } => args.iter().collect(),
            Control::If { cond, then, otherwise, .. } => {
                let mut all = vec![cond];
                all.extend(then.args());
                all.extend(otherwise.args());
                all
            }
            Control::Loop { given, body, .. } => {
                let mut all: Vec<&Imported> = given.trip.iter().chain(&given.cond).collect();
                all.extend(&given.carried);
                all.extend(body.args());
                all
            }
        }
    }

    fn outs(&self) -> Vec<&GraphVar> {
        match self {
            Control::Sizes { .. } => Vec::new(),
            Control::Cast { out, .. } | Control::List { out, .. } => vec![out],
            Control::If { outs, .. } | Control::Loop { outs, .. } => outs.iter().collect(),
        }
    }
}

impl Nested {
    fn args(&self) -> Vec<&Imported> {
        self.steps.iter().flatten().flat_map(Step::args).chain(&self.results).collect()
    }
}

/// The type of values whose type is not written.
fn object() -> GraphType {
    GraphType::Opaque("R.Object".into())
}

impl Builder {
    /// Adds a step that defines variables.
    pub(super) fn add(&mut self, outs: &[GraphVar], step: Step) {
        let Some(body) = self.bodies.last_mut() else { return };
        let at = (body.number, body.steps.len());
        self.defined_by.extend(outs.iter().map(|v| (v.id(), at)));
        body.steps.push(Some(step));
    }

    fn control(&mut self, control: Control) {
        let outs: Vec<GraphVar> = control.outs().into_iter().cloned().collect();
        self.add(&outs, Step::Control(control));
    }

    /// Whether there is anything but calls of tensor functions.
    pub(super) fn has_control(&self) -> bool {
        let steps = self.bodies.iter().flat_map(|b| b.steps.iter().flatten());
        steps.into_iter().any(|s| matches!(s, Step::Control(_)))
    }

    /// Starts a body.
    pub(crate) fn open_body(&mut self) {
        let number = self.numbered;
        self.numbered += 1;
        self.bodies.push(OpenBody { number, ..OpenBody::default() });
    }

    /// Ends the body that was started last.
    ///
    /// # Errors
    /// Those of making open sizes data.
    pub(crate) fn close_body(&mut self, results: &[Imported]) -> Result<Nested> {
        let results = results.iter().map(|v| self.as_data(v)).collect::<Result<_>>()?;
        let body = self.bodies.pop().ok_or_else(|| Error::internal("no body is open"))?;
        Ok(Nested { steps: body.steps, results, sizes: body.sizes })
    }

    /// How many bodies are being built.
    pub(crate) fn depth(&self) -> usize {
        self.bodies.len()
    }

    /// Forgets all bodies but so many.
    pub(crate) fn drop_bodies(&mut self, depth: usize) {
        self.bodies.truncate(depth);
    }

    /// A size that nothing says yet; known in the body that is being built.
    fn new_size(&mut self, name: &str) -> Dim {
        // Functions are found by the text of their parameters, so no two have one name.
        self.sized += 1;
        let var = Var::new(format!("{}_{}", identifier(name), self.sized), DType::I64);
        if let Some(body) = self.bodies.last_mut() {
            body.sizes.push(var.clone());
        }
        self.decided.insert(var.clone());
        Dim::open(&var)
    }

    /// The elements of a list of integers as sizes, from here on.
    pub(crate) fn sizes_of(&mut self, list: &Imported, count: usize) -> Result<Vec<Dim>> {
        let name = identifier(&self.hint);
        let sizes: Vec<Dim> = (0..count)
            .map(|k| match count {
                1 => self.new_size(&name),
                _ => self.new_size(&format!("{name}_{k}")),
            })
            .collect();
        let shape = sizes.iter().map(|d| d.wide()).collect();
        let of = self.as_data(list)?;
        let var = GraphVar::new(format!("{name}_sizes"), GraphType::Shape(shape));
        self.control(Control::Sizes { of, var });
        Ok(sizes)
    }

    /// The one element of a list as a size that an input decides.
    pub(crate) fn part_of(&mut self, list: &Imported) -> Result<Dim> {
        let sizes = self.sizes_of(list, 1)?;
        for v in sizes[0].vars() {
            self.decided.remove(&v);
        }
        Ok(sizes[0])
    }

    /// Two operands of a broadcast, where data decide sizes of one that the other has otherwise: they
    /// are taken to be equal, and the run ends where they are not.
    pub(crate) fn fitted(&mut self, x: &Imported, y: &Imported) -> (Imported, Imported) {
        let (mut a, mut b) = (x.shape(), y.shape());
        for (a, b) in a.iter_mut().rev().zip(b.iter_mut().rev()) {
            if *a != 1 && *b != 1 {
                self.agree(a, b);
            }
        }
        (self.with_shape(x, a), self.with_shape(y, b))
    }

    /// Two values that must have the same extents along their first axes, so many of them, as in
    /// [`Builder::fitted`].
    pub(crate) fn alike(&mut self, x: &Imported, y: &Imported, axes: usize) -> [Imported; 2] {
        let (mut a, mut b) = (x.shape(), y.shape());
        a.iter_mut().zip(&mut b).take(axes).for_each(|(a, b)| self.agree(a, b));
        [self.with_shape(x, a), self.with_shape(y, b)]
    }

    /// Of two extents that must be equal, one that data decide becomes the other.
    fn agree(&self, a: &mut Dim, b: &mut Dim) {
        let decided = |d: Dim| d.vars().iter().any(|v| self.decided.contains(v));
        if decided(*b) {
            *b = *a;
        } else if decided(*a) {
            *a = *b;
        }
    }

    /// A value of another shape, which a run sees to.
    pub(crate) fn with_shape(&mut self, value: &Imported, shape: Vec<Dim>) -> Imported {
        if !matches!(value, Imported::Var { .. }) || value.shape() == shape {
            return value.clone();
        }
        let known: Vec<Option<Dim>> = shape.into_iter().map(Some).collect();
        let (out, cast) = self.tensor_var(value.dtype(), &known);
        self.control(Control::Cast { of: value.clone(), out });
        cast
    }

    /// A new variable of a tensor, in whose shape missing extents are sizes that its value brings.
    fn tensor_var(&mut self, dtype: DType, shape: &[Option<Dim>]) -> (GraphVar, Imported) {
        let name = identifier(&self.hint);
        let shape: Vec<Dim> = shape
            .iter()
            .enumerate()
            .map(|(k, d)| d.unwrap_or_else(|| self.new_size(&format!("{name}_{k}"))))
            .collect();
        let operand = Operand { shape: shape.clone(), dtype };
        let var = GraphVar::tensor(name.as_str(), tensor_type(&operand));
        let value = Imported::Var { var: var.clone(), shape, dtype };
        (var, value)
    }

    /// A new variable for a value like this one.
    fn var_like(&mut self, kind: &Like) -> (GraphVar, Imported) {
        match kind {
            Like::Tensor(dtype, shape) => self.tensor_var(*dtype, shape),
            Like::Item(what) => {
                let var = GraphVar::new(identifier(&self.hint), object());
                (var.clone(), Imported::Item { var, what: what.clone() })
            }
        }
    }

    /// Variables for the parameters of a body.
    pub(crate) fn params(&mut self, kinds: &[Like]) -> (Vec<GraphVar>, Vec<Imported>) {
        kinds.iter().map(|kind| self.var_like(kind)).unzip()
    }

    /// A list operator whose result is a list or an optional.
    pub(crate) fn list(
        &mut self,
        op: ListOp,
        args: &[Imported],
        attrs: Attrs,
        what: ItemType,
    ) -> Result<Imported> {
        let args = args.iter().map(|v| self.as_data(v)).collect::<Result<_>>()?;
        let (out, value) = self.var_like(&Like::Item(what));
        self.control(Control::List { op, attrs, args, out });
        Ok(value)
    }

    /// A list operator whose result is a tensor.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where its type or number of dimensions is not known.
    pub(crate) fn out_of_list(
        &mut self,
        op: ListOp,
        args: &[Imported],
        attrs: Attrs,
        element: &Element,
    ) -> Result<Imported> {
        let (Some(dtype), Some(shape)) = (element.dtype, &element.shape) else {
            return Err(Error::unsupported(
                "the type and the number of dimensions of what is taken from it are not known",
            ));
        };
        let args = args.iter().map(|v| self.as_data(v)).collect::<Result<_>>()?;
        let plain = GraphVar::new(identifier(&self.hint), object());
        self.control(Control::List { op, attrs, args, out: plain.clone() });
        let (out, value) = self.tensor_var(dtype, shape);
        let of = Imported::Item { var: plain, what: ItemType::List(Element::default()) };
        self.control(Control::Cast { of, out });
        Ok(value)
    }

    /// Branches; their values come back.
    pub(crate) fn branches(
        &mut self,
        cond: &Imported,
        then: Nested,
        otherwise: Nested,
        kinds: &[Like],
    ) -> Result<Vec<Imported>> {
        let cond = self.as_data(cond)?;
        let (outs, values) = self.params(kinds);
        self.control(Control::If { cond, then, otherwise, outs });
        Ok(values)
    }

    /// A loop; its carried and its stacked values come back.
    pub(crate) fn graph_loop(
        &mut self,
        given: LoopGiven,
        body: Nested,
        kinds: &[Like],
    ) -> Result<Vec<Imported>> {
        let mut data = |v: &Imported| self.as_data(v);
        let trip = given.trip.as_ref().map(&mut data).transpose()?;
        let cond = given.cond.as_ref().map(&mut data).transpose()?;
        let carried = given.carried.iter().map(data).collect::<Result<_>>()?;
        let given = LoopGiven { trip, cond, carried, params: given.params };
        let (outs, values) = self.params(kinds);
        self.control(Control::Loop { given, body, outs });
        Ok(values)
    }
}

/// What a value is, without what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Like {
    /// A tensor; missing extents are sizes of its own.
    Tensor(DType, Vec<Option<Dim>>),
    Item(ItemType),
}

impl Like {
    /// What a value is.
    pub(crate) fn of(value: &Imported) -> Like {
        match value {
            Imported::Item { what, .. } => Like::Item(what.clone()),
            value => Like::Tensor(value.dtype(), value.shape().into_iter().map(Some).collect()),
        }
    }

    /// What is either of two.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for values of different kinds, types or ranks.
    pub(crate) fn join(&self, other: &Like) -> Result<Like> {
        let element = |dtype: &DType, shape: &Vec<Option<Dim>>| Element {
            dtype: Some(*dtype),
            shape: Some(shape.clone()),
            ..Element::default()
        };
        Ok(match (self, other) {
            (Like::Tensor(a, x), Like::Tensor(b, y)) => {
                if a != b || x.len() != y.len() {
                    return Err(Error::unsupported(format!(
                        "a value that is {a} of {} dimensions or {b} of {}",
                        x.len(),
                        y.len()
                    )));
                }
                Like::Tensor(*a, x.iter().zip(y).map(|(x, y)| x.filter(|_| x == y)).collect())
            }
            (Like::Item(ItemType::List(a)), Like::Item(ItemType::List(b))) => {
                Like::Item(ItemType::List(a.join(b)?))
            }
            (Like::Item(ItemType::OptionalTensor(a)), Like::Tensor(d, s))
            | (Like::Tensor(d, s), Like::Item(ItemType::OptionalTensor(a))) => {
                Like::Item(ItemType::OptionalTensor(a.join(&element(d, s))?))
            }
            (Like::Item(ItemType::OptionalTensor(a)), Like::Item(ItemType::OptionalTensor(b))) => {
                Like::Item(ItemType::OptionalTensor(a.join(b)?))
            }
            (
                Like::Item(ItemType::OptionalList(a)),
                Like::Item(ItemType::OptionalList(b) | ItemType::List(b)),
            )
            | (Like::Item(ItemType::List(a)), Like::Item(ItemType::OptionalList(b))) => {
                Like::Item(ItemType::OptionalList(a.join(b)?))
            }
            _ => return Err(Error::unsupported("a value that is a tensor or a list")),
        })
    }

    /// Without the sizes that are known only inside of a body.
    pub(crate) fn outside(self, body: &Nested) -> Like {
        let known = |d: &Option<Dim>| d.filter(|d| body.is_outside(*d));
        let element =
            |e: Element| Element { shape: e.shape.map(|s| s.iter().map(known).collect()), ..e };
        match self {
            Like::Tensor(dtype, shape) => Like::Tensor(dtype, shape.iter().map(known).collect()),
            Like::Item(ItemType::List(e)) => Like::Item(ItemType::List(element(e))),
            Like::Item(ItemType::OptionalTensor(e)) => {
                Like::Item(ItemType::OptionalTensor(element(e)))
            }
            Like::Item(ItemType::OptionalList(e)) => Like::Item(ItemType::OptionalList(element(e))),
        }
    }
}

/// A value as an expression of the graph.
pub(super) fn expr(value: &Imported) -> Result<GraphExpr> {
    match value {
        Imported::Const(t) => Ok(GraphExpr::Const(t.clone())),
        Imported::Var { var, .. } | Imported::Item { var, .. } => Ok(var.expr()),
        Imported::Sizes(_) => Err(Error::internal("sizes are no operand")),
        Imported::Text(_) => Err(Error::internal("strings are no operand")),
    }
}

/// Makes bindings of steps, and functions of what they call.
pub(super) struct Emit<'b> {
    functions: &'b [Shared],
    origins: &'b Origins,
    /// Variables of constants that are calls, by the memory of these.
    called: HashMap<(*const u8, Vec<usize>), GraphVar>,
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
            called: HashMap::new(),
            module: Module::new(),
            names: HashMap::new(),
            taken: HashSet::from(["main".to_owned()]),
            name_of: vec![None; functions.len()],
        }
    }

    /// The bindings of the steps that some values need.
    pub(super) fn bindings(
        &mut self,
        steps: &[Option<Step>],
        results: &[Imported],
    ) -> Result<Vec<Binding>> {
        let live = live(steps, results);
        let mut bindings = Vec::new();
        for (step, _) in steps.iter().flatten().zip(live).filter(|(_, live)| *live) {
            match step {
                Step::Call(call) => self.call(call, &mut bindings)?,
                Step::Control(control) => self.control(control, &mut bindings)?,
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
        let Some(origin) = value.constant().and_then(|t| origins.of(t)) else {
            return expr(value);
        };
        let key = (origin.made.bytes().as_ptr(), origin.made.shape().to_vec());
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
        let blocks = match bindings.is_empty() {
            true => Vec::new(),
            false => vec![BindingBlock { dataflow: false, bindings, outputs: Vec::new() }],
        };
        let values: Vec<GraphExpr> = body.results.iter().map(expr).collect::<Result<_>>()?;
        let ret = match values.as_slice() {
            [one] if !tuple => one.clone(),
            _ => GraphExpr::Tuple(values),
        };
        Ok(Body { blocks, ret })
    }

    fn control(&mut self, control: &Control, bindings: &mut Vec<Binding>) -> Result<()> {
        let cast = |of: GraphExpr| GraphExpr::Call {
            op: MATCH_CAST.into(),
            args: vec![of],
            attrs: Attrs::new(),
        };
        let tuple =
            |outs: &[GraphVar]| GraphType::Tuple(outs.iter().map(|v| v.ty().clone()).collect());
        match control {
            Control::Sizes { of, var } => {
                let (args, attrs) = (vec![expr(of)?], Attrs::new());
                let shape = GraphExpr::Call { op: TENSOR_TO_SHAPE.into(), args, attrs };
                bindings.push(bind(var, cast(shape)));
            }
            Control::Cast { of, out } => bindings.push(bind(out, cast(expr(of)?))),
            Control::List { op, attrs, args, out } => {
                let args = args.iter().map(expr).collect::<Result<_>>()?;
                let value = GraphExpr::Call { op: op.name().into(), args, attrs: attrs.clone() };
                bindings.push(bind(out, value));
            }
            Control::If { cond, then, otherwise, outs } => {
                let value = GraphExpr::If(Arc::new(Branches {
                    cond: expr(cond)?,
                    then: self.body(then, false)?,
                    otherwise: self.body(otherwise, false)?,
                }));
                match outs.as_slice() {
                    [var] => bindings.push(bind(var, value)),
                    several => spread(tuple(outs), value, several, bindings),
                }
            }
            Control::Loop { given, body, outs } => {
                let optional = |v: &Option<Imported>| v.as_ref().map(expr).transpose();
                let value = GraphExpr::Loop(Arc::new(Loop {
                    trip: optional(&given.trip)?,
                    cond: optional(&given.cond)?,
                    carried: given.carried.iter().map(expr).collect::<Result<_>>()?,
                    params: given.params.clone(),
                    body: self.body(body, true)?,
                }));
                spread(tuple(outs), value, outs, bindings);
            }
        }
        Ok(())
    }
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
fn brings_sizes(step: &Step) -> bool {
    match step {
        Step::Control(Control::Sizes { .. }) => true,
        Step::Control(Control::Cast { out, .. }) => {
            let open = |t: &TensorType| t.shape.iter().any(|e| e.as_int().is_none());
            out.ty().as_tensor().is_some_and(open)
        }
        _ => false,
    }
}

/// For each step that was not taken back, whether values need it. Sizes are always needed.
fn live(steps: &[Option<Step>], results: &[Imported]) -> Vec<bool> {
    let mut needed: HashSet<u64> =
        results.iter().filter_map(Imported::var).map(GraphVar::id).collect();
    let mut live: Vec<bool> = steps
        .iter()
        .rev()
        .flatten()
        .map(|step| {
            let outs: Vec<&GraphVar> = match step {
                Step::Call(call) => call.outs.iter().collect(),
                Step::Control(control) => control.outs(),
            };
            let live = brings_sizes(step) || outs.iter().any(|v| needed.contains(&v.id()));
            if live {
                needed.extend(step.args().into_iter().filter_map(Imported::var).map(GraphVar::id));
            }
            live
        })
        .collect();
    live.reverse();
    live
}
