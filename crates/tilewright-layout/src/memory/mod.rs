//! Memory planning: where every value of a graph function lies, and the kernel calls over it.
//!
//! Results are computed where the caller wants them; every other computed value lies in one
//! arena, with its lifetime from the step that writes it to the last one that reads it; so do the
//! scratch parameters of a step, during that step. A view has the memory of what it views.
//! Constants are kept once, however often they occur.
//!
//! The parts of a value lie in its memory ([`parts`](crate::parts)), and so do slices, also of inputs:
//! the call that joins them, or cuts them out, runs no code. They may have *strides*, which are those of
//! the parameters that write and read them; that all of these agree is checked here.
//!
//! What a kernel writes overlaps none of its other arguments. A result that is an input with some cells changed
//! ([`in_place`](tilewright_graph::in_place)) may be the memory of that input, where the caller says so: then the
//! step that copies it is left out, and one behind it changes the cells.
//!
//! Sizes may be open: those that inputs have, and expressions of these. What a kernel is to know of
//! them is an argument of its call.

mod program;
mod tensor;

pub use program::program;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use rustc_hash::FxHasher;
use tilewright_ir::{
    Binding, Buffer, Dim, Error, Expr, Function, GraphExpr, GraphFunc, GraphType, GraphVar,
    Lowered, Module, Param, Result, Span, Tensor, TensorFunc, TensorType, dim,
};
use tilewright_runtime::plan::{
    ArgSource, MemoryPlan, OpenPort, OpenStep, Reason, Shared, Stored, Value, Within, stored,
};

use crate::parts::{Join, Slice, Strides, moving, reshaped, row_major, strides_of};
use tilewright_graph::call_sizes::{self, CallSizes, type_cells};
use tilewright_graph::control::PIECE;
use tilewright_graph::functions::located;
use tilewright_graph::in_place::InPlace;
use tilewright_graph::legalize::Origins;
use tilewright_graph::normal::{normalize, output_names, results};

/// Plans the memory of a function of a lowered module whose graph functions went through [`legalize`](tilewright_graph::legalize()). A tensor function becomes a plan of one
/// step: the parameters that it writes are the outputs, the others the inputs.
///
/// # Errors
/// * `Input` for a size that no input says or that does not fit memory.
/// * `Unsupported` for scalar arguments that are no sizes, values that are not tensors, operators
///   without a tensor function, and parameters that a tensor function reads before it writes them.
/// * `Malformed` where an argument does not have the type of the parameter.
/// * `Refused` where a result has no memory of its own, because the module was not legalized.
pub fn plan_memory(module: &Lowered, entry: &str) -> Result<MemoryPlan> {
    let plan = match module.functions.get(entry) {
        Some(Function::Graph(g)) => plan_graph(module, entry, g),
        Some(Function::Tensor(f)) => tensor::plan(entry, f),
        None => module.graph(entry).map(|_| MemoryPlan::default()),
    };
    located(module, plan.and_then(|plan| plan.check().map(|()| plan)))
}

/// A computed value.
#[derive(Clone, Copy)]
struct Computed {
    /// Where it is a part, [`Value::within`] counts what is computed.
    value: Value,
    /// The result that it is.
    output: Option<usize>,
    /// It has strides: its elements span more memory than it has cells.
    spread: bool,
}

/// A value: place and type. [`ArgSource::Value`] counts what is computed, results among it.
#[derive(Clone)]
struct TensorValue {
    place: ArgSource,
    ty: TensorType,
    /// Where it is not compact.
    strides: Option<Strides>,
}

impl TensorValue {
    fn compact(place: ArgSource, ty: TensorType) -> TensorValue {
        TensorValue { place, ty, strides: None }
    }
}

fn port(
    name: &Arc<str>,
    ty: &TensorType,
    stored: Option<&Option<Arc<Stored>>>,
) -> Result<OpenPort> {
    let what = || format!("`{name}`");
    type_cells(ty, what)?;
    let stored = stored.cloned().flatten();
    if let Some(stored) = &stored
        && ty.const_shape() != Some(stored.physical())
    {
        let physical = stored.physical();
        let text = format!("`{name}` is said to be stored as {physical:?}, and has another shape");
        return Err(Error::malformed(text));
    }
    let shape = call_sizes::extents(&ty.shape, what)?;
    Ok(OpenPort { name: name.clone(), dtype: ty.dtype, shape, stored })
}

/// A step that changes an input where it lies, which comes behind the one that makes all of the result.
struct Update {
    /// The number of that one.
    after: usize,
    /// The input that it keeps most of.
    read: usize,
    /// What it makes, among what is computed.
    written: usize,
    step: OpenStep,
}

struct Planner<'m> {
    module: &'m Module,
    values: HashMap<(u64, Option<usize>), TensorValue>,
    constants: Vec<Tensor>,
    constants_by_hash: HashMap<u64, Vec<usize>>,
    computed: Vec<Computed>,
    steps: Vec<OpenStep>,
    updates: Vec<Update>,
}

fn plan_graph(module: &Module, name: &str, func: &GraphFunc) -> Result<MemoryPlan> {
    let func = normalize(module, name, func)?;
    let mut p = Planner {
        module,
        values: HashMap::default(),
        constants: Vec::new(),
        constants_by_hash: HashMap::default(),
        computed: Vec::new(),
        steps: Vec::new(),
        updates: Vec::new(),
    };
    let mut inputs = Vec::new();
    let stored = stored_list(stored::INPUTS, func.params.len(), &func)?;
    let mut given = Vec::new();
    for (n, v) in func.params.iter().enumerate() {
        if let GraphType::Shape(sizes) = v.ty() {
            given.extend(sizes.iter().filter_map(Expr::as_var).cloned());
            continue;
        }
        let k = inputs.len();
        let ty = tensor_type(v, func.span)?;
        inputs.push(port(v.name(), ty, stored.get(n)).map_err(|e| e.at(func.span))?);
        p.values.insert((v.id(), None), TensorValue::compact(ArgSource::Input(k), ty.clone()));
    }
    let mut origins = Origins::new(module);
    for b in func.bindings() {
        p.binding(b, &origins).map_err(|e| e.at(b.span))?;
        origins.bind(b);
    }
    let ret = results(&func.ret);
    let names = output_names(&func, ret.len());
    let mut outputs = Vec::new();
    let stored = stored_list(stored::OUTPUTS, ret.len(), &func)?;
    for (k, (value, name)) in ret.into_iter().zip(&names).enumerate() {
        let value = p.value(value)?;
        outputs.push(port(name, &value.ty, stored.get(k)).map_err(|e| e.at(func.span))?);
        match value.place {
            ArgSource::Value(c) if p.computed[c].may_leave() => {
                p.computed[c].output = Some(k);
            }
            _ => {
                return Err(Error::refused(format!(
                    "the result `{name}` has no memory of its own"
                ))
                .note("it is a parameter, a constant, or has the memory of another result")
                .help("bring the module into the form of `legalize` first, which inserts a copy")
                .at(func.span));
            }
        }
    }
    let empty = func.attrs.contains_key(PIECE);
    let reasons = Reason::list(&func.attrs, &inputs);
    Ok(MemoryPlan { given, empty, reasons, ..p.finish(inputs, outputs)? })
}

fn stored_list(
    key: &str,
    count: usize,
    func: &GraphFunc,
) -> Result<Vec<Option<Arc<Stored>>>, Error> {
    Stored::list(&func.attrs, key, count).map_err(|e| e.at(func.span))
}

/// How a value lies under another type.
fn seen_as(from: &TensorType, strides: &Strides, to: &TensorType) -> Option<Strides> {
    reshaped(&dim::of_shape(&from.shape)?, strides, &dim::of_shape(&to.shape)?)
}

/// The sizes of a call, whose arguments are as many as the parameters, and have their types and their
/// strides.
fn check_call<'a>(
    name: &'a str,
    func: &TensorFunc,
    args: &[TensorValue],
    outs: &[TensorType],
    scalars: &[Expr],
) -> Result<CallSizes<'a>> {
    let (given, _) = func.split_params();
    let taken = given.iter().filter(|p| p.buffer().is_some()).count();
    if args.len() + outs.len() != taken || scalars.len() != given.len() - taken {
        return Err(Error::malformed(format!(
            "`{name}` takes {taken} tensors and {} numbers, and is given {} and {}",
            given.len() - taken,
            args.len() + outs.len(),
            scalars.len()
        )));
    }
    let types: Vec<&TensorType> = args.iter().map(|a| &a.ty).chain(outs).collect();
    let sizes = CallSizes::new(name, func, &types, scalars)?;
    for (buffer, ty) in given.iter().filter_map(Param::buffer).zip(&types) {
        let given = type_cells(ty, || format!("an argument of `{name}`"))?;
        if ty.dtype != buffer.dtype() || given != sizes.cells(buffer)? {
            return Err(Error::malformed(format!(
                "the parameter `{}` of `{name}` takes another type than it is given",
                buffer.name
            )));
        }
    }
    for (buffer, arg) in given.iter().filter_map(Param::buffer).zip(args) {
        if lies(buffer, &sizes)? != arg.strides {
            let text = format!("for `{}` a tensor with other strides", buffer.name);
            return Err(disagree(name, &text));
        }
    }
    Ok(sizes)
}

/// How a parameter lies in a call, where it is not compact.
fn lies(buffer: &Buffer, sizes: &CallSizes<'_>) -> Result<Option<Strides>> {
    Ok(strides_of(buffer)?.map(|strides| sizes.outside(strides)))
}

/// A call, which is [`checked`].
struct Call<'a> {
    /// What it computes.
    var: &'a GraphVar,
    name: &'a Arc<str>,
    func: &'a TensorFunc,
    args: &'a [TensorValue],
    outs: &'a [TensorType],
    sizes: CallSizes<'a>,
}

impl Call<'_> {
    /// Whether what it is given has the shapes of its parameters, and not only their numbers of cells.
    fn has_shapes(&self) -> bool {
        let types = self.args.iter().map(|arg| &arg.ty).chain(self.outs);
        self.func.buffers().zip(types).all(|(buffer, ty)| {
            let shape = dim::of_shape(&buffer.shape).map(|shape| self.sizes.outside(shape));
            dim::of_shape(&ty.shape) == shape
        })
    }
}

fn disagree(name: &str, what: &str) -> Error {
    Error::malformed(format!("`{name}` is given {what}"))
        .help("strides of parameters are set by the pass `place_parts`, for all calls at once")
}

fn tensor_type(v: &GraphVar, span: Option<Span>) -> Result<&TensorType> {
    v.ty().as_tensor().ok_or_else(|| {
        Error::unsupported(format!("`{}` is not a tensor of known rank", v.name())).at(span)
    })
}

impl Computed {
    /// Whether it can be computed where the caller wants it.
    fn may_leave(&self) -> bool {
        self.output.is_none() && !self.spread && self.value.within.is_none()
    }
}

impl Planner<'_> {
    /// The value of a variable or constant.
    fn value(&mut self, e: &GraphExpr) -> Result<TensorValue> {
        match e {
            GraphExpr::Var(v) => self.values.get(&(v.id(), None)).cloned().ok_or_else(|| {
                let what = match v.ty() {
                    GraphType::Tensor(_) => "is not defined",
                    _ => "is not a tensor",
                };
                Error::malformed(format!("`{}` is used as a tensor and {what}", v.name()))
            }),
            GraphExpr::Const(t) => {
                let ty = TensorType::fixed(t.shape(), t.dtype());
                Ok(TensorValue::compact(ArgSource::Constant(self.constant(t)), ty))
            }
            _ => Err(Error::internal("an argument is neither a variable nor a constant")),
        }
    }

    /// The position of a constant; equal ones (in type and bytes) have one.
    fn constant(&mut self, t: &Tensor) -> usize {
        /// Bytes at each end by which constants are told apart before they are compared: most weights differ there,
        /// and those of a file that is mapped are not read for it.
        const ENDS: usize = 1 << 12;
        let bytes = t.bytes();
        let ends = (&bytes[..bytes.len().min(ENDS)], &bytes[bytes.len().saturating_sub(ENDS)..]);
        let mut hasher = FxHasher::default();
        (t.dtype(), bytes.len(), ends).hash(&mut hasher);
        let known = self.constants_by_hash.entry(hasher.finish()).or_default();
        for at in &*known {
            let constant = &self.constants[*at];
            if constant.dtype() == t.dtype() && constant.bytes() == t.bytes() {
                return *at;
            }
        }
        known.push(self.constants.len());
        self.constants.push(t.clone());
        self.constants.len() - 1
    }

    fn binding(&mut self, b: &Binding, origins: &Origins) -> Result<()> {
        let name = b.var.name();
        match &b.value {
            GraphExpr::Const(_) => {
                let value = self.value(&b.value)?;
                self.values.insert((b.var.id(), None), value);
                Ok(())
            }
            GraphExpr::Item(of, k) => {
                let value = match &**of {
                    GraphExpr::Var(v) => self.values.get(&(v.id(), Some(*k))).cloned(),
                    _ => None,
                };
                let value = value.ok_or_else(|| {
                    Error::unsupported(format!("`{name}` is an item of what no call computes"))
                })?;
                self.values.insert((b.var.id(), None), value);
                Ok(())
            }
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let args: Vec<TensorValue> =
                    args.iter().map(|a| self.value(a)).collect::<Result<_>>()?;
                if origins.is_view(&b.value)
                    && let ([arg], [out]) = (&args[..], &outs[..])
                    && type_cells(&arg.ty, || format!("`{name}`"))?
                        == type_cells(out, || format!("`{name}`"))?
                {
                    let strides = match &arg.strides {
                        None => None,
                        Some(strides) => Some(seen_as(&arg.ty, strides, out).ok_or_else(|| {
                            disagree(func, "a view of what has strides that it cannot see")
                        })?),
                    };
                    let value = TensorValue { place: arg.place, ty: out.clone(), strides };
                    self.values.insert((b.var.id(), None), value);
                    return Ok(());
                }
                let module = self.module;
                let called = module.tensor(func)?;
                let placed = (Join::placed(called)?, Slice::placed(called)?);
                let sizes = check_call(func, called, &args, outs, scalars)?;
                let call = Call { var: &b.var, name: func, func: called, args: &args, outs, sizes };
                match placed {
                    (Some(join), _) => self.join(&call, &join),
                    (_, Some(slice)) => self.slice(&call, &slice),
                    (None, None) => self.call(&call),
                }
            }
            GraphExpr::Call { op, .. } => Err(Error::unsupported(format!(
                "`{op}` has no tensor function: only call_tir and calls of graph functions can run"
            ))),
            GraphExpr::Var(_) | GraphExpr::Tuple(_) | GraphExpr::If(_) | GraphExpr::Loop(_) => {
                Err(Error::internal(format!("the binding of `{name}` is not in normal form")))
            }
        }
    }

    /// Memory for what the next step computes, and its strides where it has own ones.
    fn compute(
        &mut self,
        buffer: &Buffer,
        sizes: &CallSizes,
    ) -> Result<(ArgSource, Option<Vec<Dim>>)> {
        let (cells, dtype) = (sizes.cells(buffer)?, buffer.dtype());
        let step = self.steps.len();
        let value = Value { cells, dtype, first: step, last: step, within: None };
        let strides = lies(buffer, sizes)?;
        self.computed.push(Computed { value, output: None, spread: strides.is_some() });
        Ok((ArgSource::Value(self.computed.len() - 1), strides))
    }

    /// A call that runs code.
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let Call { var, name, func, args, outs, sizes } = call;
        let step = self.steps.len();
        let (given, scratch) = func.split_params();
        for arg in *args {
            if let ArgSource::Value(c) = arg.place {
                let value = &mut self.computed[c].value;
                value.last = value.last.max(step);
            }
        }

        let mut places = Vec::with_capacity(func.params.len());
        let mut tensors = 0;
        for param in given {
            places.push(match param {
                Param::Scalar(v) => ArgSource::Size(sizes.value(v)?),
                Param::Buffer { buffer, .. } => {
                    tensors += 1;
                    match (args.get(tensors - 1), tensors.checked_sub(args.len() + 1)) {
                        (Some(arg), _) => arg.place,
                        (None, k) => {
                            let k = k.unwrap_or(0);
                            let (place, strides) = self.compute(buffer, sizes)?;
                            let tuple = matches!(var.ty(), GraphType::Tuple(_));
                            let item = (outs.len() > 1 || tuple).then_some(k);
                            let value = TensorValue { place, ty: outs[k].clone(), strides };
                            self.values.insert((var.id(), item), value);
                            place
                        }
                    }
                }
            });
        }
        for buffer in scratch.iter().filter_map(Param::buffer) {
            places.push(self.compute(buffer, sizes)?.0);
        }
        let shapes = func.shape_vars();
        let shapes = shapes.iter().map(|v| Ok(ArgSource::Size(sizes.value(v)?)));
        places.extend(shapes.collect::<Result<Vec<_>>>()?);
        let results = args.len()..args.len() + outs.len();
        let takes_empty = func.takes_empty();
        let (func, value) = (Arc::clone(name), var.name().clone());
        if let Some(update) = self.update(call, &places)? {
            self.updates.push(update);
        }
        let unless_shared = None;
        self.steps.push(OpenStep {
            func,
            value,
            args: places,
            results,
            takes_empty,
            unless_shared,
        });
        Ok(())
    }

    /// What a call that is about to become a step may be where the caller has its result in the memory of its
    /// input; `places` are its arguments.
    fn update(&self, call: &Call<'_>, places: &[ArgSource]) -> Result<Option<Update>> {
        let Some(InPlace { input, func: name }) = InPlace::of(call.func) else { return Ok(None) };
        let (Some(from), [out]) = (call.args.get(input), call.outs) else { return Ok(None) };
        let result = places.get(call.args.len());
        let (ArgSource::Input(read), Some(ArgSource::Value(written))) = (from.place, result) else {
            return Ok(None);
        };
        if from.strides.is_some() || self.computed[*written].spread {
            return Ok(None);
        }
        let func = self.module.tensor(&name)?;
        let args = call.args.iter().enumerate().filter(|(k, _)| *k != input).map(|(_, arg)| arg);
        let types: Vec<&TensorType> = args.clone().map(|arg| &arg.ty).chain([out]).collect();
        let (given, scratch) = func.split_params();
        if !scratch.is_empty() || given.len() != types.len() {
            return Ok(None);
        }
        let sizes = CallSizes::new(&name, func, &types, &[])?;
        let mut args: Vec<ArgSource> = args.map(|arg| arg.place).collect();
        args.push(ArgSource::Value(*written));
        let results = args.len() - 1..args.len();
        for v in func.shape_vars() {
            args.push(ArgSource::Size(sizes.value(&v)?));
        }
        let value = call.var.name().clone();
        let takes_empty = func.takes_empty();
        let step = OpenStep { func: name, value, args, results, takes_empty, unless_shared: None };
        Ok(Some(Update { after: self.steps.len(), read, written: *written, step }))
    }

    /// A call that joins parts: they lie in the memory of the result.
    fn join(&mut self, call: &Call<'_>, join: &Join) -> Result<()> {
        let Call { var, name, func, args, outs, sizes } = call;
        let buffers: Vec<&Buffer> = func.buffers().collect();
        let ([parts @ .., whole], [out]) = (&buffers[..], outs) else {
            return Err(Error::malformed(format!("`{name}` joins parts of several results")));
        };
        if !call.has_shapes() {
            return Err(disagree(name, "a tensor of another shape than it joins"));
        }
        let strides = lies(whole, sizes)?;
        let shape = dim::of_shape(&out.shape).unwrap_or_default();
        let distances = strides.clone().unwrap_or_else(|| row_major(&shape));
        let at = self.computed.len();
        let shapes = args.iter().map(|arg| dim::of_shape(&arg.ty.shape).unwrap_or_default());
        let corners = join.corners_of(&shapes.collect::<Vec<_>>())?;
        for ((buffer, arg), corner) in parts.iter().zip(*args).zip(&corners) {
            let part = match arg.place {
                ArgSource::Value(c) => self.computed.get_mut(c),
                _ => None,
            };
            let part = part.filter(|c| c.output.is_none() && c.value.within.is_none()).ok_or_else(
                || {
                    disagree(
                        name,
                        "a part that is an input, a constant, or a part of something else",
                    )
                },
            )?;
            let extents = dim::of_shape(&arg.ty.shape).unwrap_or_default();
            let own = arg.strides.clone().unwrap_or_else(|| row_major(&extents));
            if own != moving(&extents, &distances) {
                return Err(disagree(name, "a part with other strides than the whole"));
            }
            let steps = corner.iter().zip(&distances);
            let cells = steps.fold(Dim::from(0), |sum, (c, s)| sum + *s * *c);
            let byte = cells * buffer.dtype().bytes();
            part.value.within = Some(Within { whole: ArgSource::Value(at), byte });
        }
        self.lay(var, out, strides, None)
    }

    /// A call whose result lies in its argument.
    fn slice(&mut self, call: &Call<'_>, slice: &Slice) -> Result<()> {
        let Call { var, name, func, args, outs, sizes } = call;
        let ([from], [out], Some(result)) = (args, outs, func.buffers().nth(1)) else {
            return Err(Error::malformed(format!("`{name}` is a slice of several tensors")));
        };
        if !call.has_shapes() {
            return Err(disagree(name, "a tensor of another shape than it is a slice of"));
        }
        let (Some(whole), Some(shape)) = (dim::of_shape(&from.ty.shape), dim::of_shape(&out.shape))
        else {
            return Err(disagree(name, "a tensor of unknown shape"));
        };
        let own = from.strides.clone().unwrap_or_else(|| row_major(&whole));
        let (cells, distances) = slice.lies(&shape, &own);
        let strides = lies(result, sizes)?;
        if strides.clone().unwrap_or_else(|| row_major(&shape)) != distances {
            return Err(disagree(name, "a slice with other strides than its input"));
        }
        if matches!(from.place, ArgSource::Constant(_)) {
            return Err(disagree(name, "a constant, which has no parts"));
        }
        let byte = cells * out.dtype.bytes();
        self.lay(var, out, strides, Some(Within { whole: from.place, byte }))
    }

    /// The value of a call that runs no code.
    fn lay(
        &mut self,
        var: &GraphVar,
        ty: &TensorType,
        strides: Option<Strides>,
        within: Option<Within>,
    ) -> Result<()> {
        let cells = type_cells(ty, || format!("`{}`", var.name()))?;
        let value = Value { cells, dtype: ty.dtype, first: self.steps.len(), last: 0, within };
        let place = ArgSource::Value(self.computed.len());
        self.computed.push(Computed { value, output: None, spread: strides.is_some() });
        self.values.insert((var.id(), None), TensorValue { place, ty: ty.clone(), strides });
        Ok(())
    }

    /// Gives parts their places in what has memory, and that the lifetimes of its parts.
    fn settle(&mut self) -> Result<()> {
        for c in 0..self.computed.len() {
            let Computed { value, spread, .. } = self.computed[c];
            let Some(mut within) = value.within else {
                if spread {
                    let text = "a value with strides is no part of another one: only compact tensors can be planned";
                    return Err(Error::unsupported(text));
                }
                continue;
            };
            // A whole of a part comes after it, and a slice after its whole: there is no cycle.
            while let ArgSource::Value(whole) = within.whole
                && let Some(outer) = self.computed[whole].value.within
            {
                within = Within { whole: outer.whole, byte: within.byte + outer.byte };
            }
            self.computed[c].value.within = Some(within);
            if let ArgSource::Value(whole) = within.whole {
                let whole = &mut self.computed[whole].value;
                whole.first = whole.first.min(value.first);
                whole.last = whole.last.max(value.last);
            }
        }
        Ok(())
    }

    /// Puts steps that change inputs in place behind those that copy them, where the result is one of the graph
    /// and nothing reads the input any more.
    fn insert_updates(&mut self) {
        let mut behind: Vec<Option<OpenStep>> = vec![None; self.steps.len()];
        for Update { after, read, written, step } in std::mem::take(&mut self.updates) {
            let Some(output) = self.computed[written].output else { continue };
            let lies_in = |place: &ArgSource| match place {
                ArgSource::Input(k) => *k == read,
                ArgSource::Value(c) => self.computed[*c]
                    .value
                    .within
                    .is_some_and(|within| within.whole == ArgSource::Input(read)),
                _ => false,
            };
            // The other arguments of the step are read while the rows are written.
            let is_read = step.args.iter().any(lies_in)
                || self.steps[after + 1..].iter().flat_map(|s| &s.args).any(lies_in)
                || self.steps[..after]
                    .iter()
                    .any(|s| s.unless_shared.is_some_and(|s| s.input == read));
            if !is_read {
                self.steps[after].unless_shared = Some(Shared { input: read, output });
                behind[after] = Some(step);
            }
        }
        // The new number of the first and last step of each.
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut numbers = Vec::with_capacity(self.steps.len());
        for (step, update) in std::mem::take(&mut self.steps).into_iter().zip(behind) {
            let first = steps.len();
            steps.push(step);
            steps.extend(update);
            numbers.push((first, steps.len() - 1));
        }
        let end = (steps.len(), steps.len());
        for value in self.computed.iter_mut().map(|c| &mut c.value) {
            value.first = numbers.get(value.first).unwrap_or(&end).0;
            value.last = numbers.get(value.last).unwrap_or(&end).1;
        }
        self.steps = steps;
    }

    fn finish(mut self, inputs: Vec<OpenPort>, outputs: Vec<OpenPort>) -> Result<MemoryPlan> {
        self.settle()?;
        self.insert_updates();
        // Results have places of their own.
        let mut values = Vec::new();
        let places: Vec<ArgSource> = self
            .computed
            .iter()
            .map(|c| match c.output {
                Some(k) => ArgSource::Output(k),
                None => {
                    values.push(c.value);
                    ArgSource::Value(values.len() - 1)
                }
            })
            .collect();
        for value in &mut values {
            if let Some(Within { whole: ArgSource::Value(whole), byte }) = value.within {
                value.within = Some(Within { whole: places[whole], byte });
            }
        }
        let mut steps = self.steps;
        for place in steps.iter_mut().flat_map(|step| &mut step.args) {
            if let ArgSource::Value(c) = *place {
                *place = places[c];
            }
        }
        let constants = self.constants;
        Ok(MemoryPlan { inputs, outputs, constants, steps, values, ..MemoryPlan::default() })
    }
}
