//! Memory planning: where every value of a graph function lies, and the kernel calls over it.
//!
//! Results are computed where the caller wants them; every other computed value lies in one
//! arena, with its lifetime from the step that writes it to the last one that reads it; so do the
//! scratch parameters of a step, during that step. A view has the memory of what it views.
//! Constants are kept once, however often they occur.
//!
//! Nothing is computed in place: the arguments of a kernel do not overlap.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tilewright_analysis::flow::{Run, Unwritten};
use tilewright_analysis::scop::Scop;
use tilewright_ir::tensor::byte_count;
use tilewright_ir::{
    Binding, Buffer, Error, Expr, ExprKind, Function, GraphExpr, GraphFunc, GraphType, GraphVar,
    Lowered, Module, Param, Plan, Port, Result, Slot, Span, Step, Stmt, Tensor, TensorFunc,
    TensorType, Visit, visit,
};

use crate::arena::{Block, place};
use crate::legalize::Origins;
use crate::normal::{normalize, output_names, results};

/// Plans the memory of a function of a lowered module whose graph functions went through [`legalize`](crate::legalize()). A tensor function becomes a plan of one
/// step: the parameters that it writes are the outputs, the others the inputs.
///
/// # Errors
/// * `Input` for a size that is not a constant or does not fit memory.
/// * `Unsupported` for scalar arguments, values that are not tensors, operators without a tensor
///   function, and parameters that a tensor function reads before it writes them.
/// * `Malformed` where an argument does not have the type of the parameter.
/// * `Refused` where a result has no memory of its own, because the module was not legalized.
pub fn plan_memory(module: &Lowered, entry: &str) -> Result<Plan> {
    let plan = match module.functions.get(entry) {
        Some(Function::Graph(g)) => plan_graph(module, entry, g),
        Some(Function::Tensor(f)) => plan_tensor(entry, f),
        None => module.graph(entry).map(|_| Plan::default()),
    };
    plan.map_err(|e| match &module.source {
        Some(source) => e.in_source(source),
        None => e,
    })
}

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Storage {
    Input(usize),
    Constant(usize),
    /// Computed: position in [`Planner::computed`].
    Computed(usize),
}

/// A computed value.
struct Computed {
    block: Block,
    /// The result that it is.
    output: Option<usize>,
}

/// A value: place and type.
#[derive(Clone)]
struct TensorValue {
    storage: Storage,
    ty: TensorType,
}

/// Size in bytes of a tensor type.
fn bytes(ty: &TensorType, what: impl Fn() -> String) -> Result<usize> {
    let Some(shape) = ty.const_shape() else {
        return Err(Error::input(format!("the size of {} is not known", what()))
            .help("give the open sizes with --dim"));
    };
    byte_count(ty.dtype, &shape)
        .ok_or_else(|| Error::input(format!("{} does not fit in memory", what())))
}

fn port(name: &Arc<str>, ty: &TensorType) -> Result<Port> {
    bytes(ty, || format!("`{name}`"))?;
    let shape = ty.const_shape().unwrap_or_default();
    Ok(Port { name: name.clone(), dtype: ty.dtype, shape })
}

struct Planner<'m> {
    module: &'m Module,
    values: HashMap<(u64, Option<usize>), TensorValue>,
    constants: Vec<Tensor>,
    constants_by_hash: HashMap<u64, Vec<usize>>,
    computed: Vec<Computed>,
    steps: Vec<(Arc<str>, Vec<Storage>)>,
}

fn plan_graph(module: &Module, name: &str, func: &GraphFunc) -> Result<Plan> {
    let func = normalize(module, name, func)?;
    let mut p = Planner {
        module,
        values: HashMap::new(),
        constants: Vec::new(),
        constants_by_hash: HashMap::new(),
        computed: Vec::new(),
        steps: Vec::new(),
    };
    let mut inputs = Vec::new();
    for (k, v) in func.params.iter().enumerate() {
        let ty = tensor_type(v, func.span)?;
        inputs.push(port(v.name(), ty).map_err(|e| e.at(func.span))?);
        p.values.insert((v.id(), None), TensorValue { storage: Storage::Input(k), ty: ty.clone() });
    }
    let mut origins = Origins::new(module);
    for b in func.bindings() {
        p.binding(b, &origins).map_err(|e| e.at(b.span))?;
        origins.bind(b);
    }
    let ret = results(&func.ret);
    let names = output_names(&func, ret.len());
    let mut outputs = Vec::new();
    for (k, (value, name)) in ret.into_iter().zip(&names).enumerate() {
        let value = p.value(value)?;
        outputs.push(port(name, &value.ty).map_err(|e| e.at(func.span))?);
        let shared = || {
            Error::refused(format!("the result `{name}` has no memory of its own"))
                .note("it is a parameter, a constant, or has the memory of another result")
                .help("bring the module into the form of `legalize` first, which inserts a copy")
                .at(func.span)
        };
        match value.storage {
            Storage::Computed(c) if p.computed[c].output.is_none() => {
                p.computed[c].output = Some(k);
            }
            _ => return Err(shared()),
        }
    }
    p.finish(inputs, outputs)
}

fn tensor_type(v: &GraphVar, span: Option<Span>) -> Result<&TensorType> {
    v.ty().as_tensor().ok_or_else(|| {
        Error::unsupported(format!("`{}` is not a tensor of known rank", v.name())).at(span)
    })
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
                Ok(TensorValue { storage: Storage::Constant(self.constant(t)), ty })
            }
            _ => Err(Error::internal("an argument is neither a variable nor a constant")),
        }
    }

    /// The position of a constant; equal ones (in type and bytes) have one.
    fn constant(&mut self, t: &Tensor) -> usize {
        let mut hasher = DefaultHasher::new();
        (t.dtype(), t.bytes()).hash(&mut hasher);
        let known = self.constants_by_hash.entry(hasher.finish()).or_default();
        let same = |c: &&usize| {
            let c = &self.constants[**c];
            c.dtype() == t.dtype() && c.bytes() == t.bytes()
        };
        if let Some(found) = known.iter().find(same) {
            return *found;
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
                if let Some(s) = scalars.first() {
                    return Err(Error::unsupported(format!(
                        "the call of `{func}` has the scalar argument `{s}`: all sizes must be constants"
                    )));
                }
                let args: Vec<TensorValue> =
                    args.iter().map(|a| self.value(a)).collect::<Result<_>>()?;
                if origins.is_view(&b.value)
                    && let ([arg], [out]) = (&args[..], &outs[..])
                    && bytes(&arg.ty, || format!("`{name}`"))?
                        == bytes(out, || format!("`{name}`"))?
                {
                    let value = TensorValue { storage: arg.storage, ty: out.clone() };
                    self.values.insert((b.var.id(), None), value);
                    return Ok(());
                }
                self.call(&b.var, func, &args, outs)
            }
            GraphExpr::Call { op, .. } => Err(Error::unsupported(format!(
                "`{op}` has no tensor function: only call_tir and calls of graph functions can run"
            ))),
            GraphExpr::Var(_) | GraphExpr::Tuple(_) => {
                Err(Error::internal(format!("the binding of `{name}` is not in normal form")))
            }
        }
    }

    fn call(
        &mut self,
        var: &GraphVar,
        name: &Arc<str>,
        args: &[TensorValue],
        outs: &[TensorType],
    ) -> Result<()> {
        let func = self.module.tensor(name)?.clone();
        let step = self.steps.len();
        let scratch = func.scratch_count();
        if args.len() + outs.len() + scratch != func.params.len() {
            return Err(Error::malformed(format!(
                "`{name}` takes {} tensors and is given {}",
                func.params.len() - scratch,
                args.len() + outs.len()
            )));
        }
        let params = buffers(name, &func)?;
        let types = args.iter().map(|a| &a.ty).chain(outs);
        for (buffer, ty) in params.iter().zip(types) {
            let given = bytes(ty, || format!("an argument of `{name}`"))?;
            if ty.dtype != buffer.dtype() || given != buffer_bytes(buffer)? {
                return Err(Error::malformed(format!(
                    "the parameter `{}` of `{name}` takes another type than it is given",
                    buffer.name
                )));
            }
        }
        let mut places: Vec<Storage> = args.iter().map(|a| a.storage).collect();
        for place in &places {
            if let Storage::Computed(c) = place {
                let block = &mut self.computed[*c].block;
                block.last = block.last.max(step);
            }
        }
        for (k, buffer) in params[args.len()..].iter().enumerate() {
            let block = Block { bytes: buffer_bytes(buffer)?, first: step, last: step };
            let storage = Storage::Computed(self.computed.len());
            self.computed.push(Computed { block, output: None });
            places.push(storage);
            if let Some(ty) = outs.get(k) {
                let item = (outs.len() > 1 || matches!(var.ty(), GraphType::Tuple(_))).then_some(k);
                self.values.insert((var.id(), item), TensorValue { storage, ty: ty.clone() });
            }
        }
        self.steps.push((name.clone(), places));
        Ok(())
    }

    fn finish(self, inputs: Vec<Port>, outputs: Vec<Port>) -> Result<Plan> {
        let inside: Vec<usize> =
            (0..self.computed.len()).filter(|c| self.computed[*c].output.is_none()).collect();
        let blocks: Vec<Block> = inside.iter().map(|c| self.computed[*c].block).collect();
        let (offsets, arena_bytes) = place(&blocks)
            .ok_or_else(|| Error::input("the intermediate results do not fit in memory"))?;
        let offsets: HashMap<usize, usize> = inside.into_iter().zip(offsets).collect();
        let slot = |place: &Storage| match *place {
            Storage::Input(k) => Slot::Input(k),
            Storage::Constant(k) => Slot::Constant(k),
            Storage::Computed(c) => match self.computed[c].output {
                Some(k) => Slot::Output(k),
                None => Slot::Arena(offsets.get(&c).copied().unwrap_or(0)),
            },
        };
        let steps = self.steps.iter().map(|(func, places)| Step {
            func: func.clone(),
            args: places.iter().map(slot).collect(),
        });
        let steps = steps.collect();
        Ok(Plan { inputs, outputs, constants: self.constants, steps, arena_bytes })
    }
}

/// The buffers of a function whose parameters are all tensors.
fn buffers(name: &str, func: &TensorFunc) -> Result<Vec<Buffer>> {
    let buffer = |p: &Param| match p {
        Param::Buffer { buffer, .. } => Ok(buffer.clone()),
        Param::Scalar(v) => Err(Error::unsupported(format!(
            "`{name}` has the scalar parameter `{}`: only tensors can be planned",
            v.name()
        ))
        .at(func.span)),
    };
    func.params.iter().map(buffer).collect()
}

/// The type of a parameter; strides and offsets need memory that a plan does not know of.
fn buffer_type(b: &Buffer) -> Result<TensorType> {
    if !b.is_row_major() {
        return Err(Error::unsupported(format!(
            "the parameter `{}` has strides or an offset: only compact tensors can be planned",
            b.name
        )));
    }
    Ok(TensorType { shape: b.shape.clone(), dtype: b.dtype() })
}

fn buffer_bytes(b: &Buffer) -> Result<usize> {
    bytes(&buffer_type(b)?, || format!("the parameter `{}`", b.name))
}

/// One call of a tensor function.
fn plan_tensor(name: &str, func: &TensorFunc) -> Result<Plan> {
    let all = buffers(name, func)?;
    let (tensors, scratch) = all.split_at(all.len() - func.scratch_count());
    let touched = Touched::of(func, tensors);
    let mut plan = Plan::default();
    let mut args = Vec::new();
    for (k, buffer) in tensors.iter().enumerate() {
        let port = port(&buffer.name, &buffer_type(buffer)?).map_err(|e| e.at(func.span))?;
        match (touched.written[k], touched.read_first[k]) {
            (false, _) => {
                args.push(Slot::Input(plan.inputs.len()));
                plan.inputs.push(port);
            }
            (true, None) if let Some(span) = reads_unwritten(func, buffer) => {
                return Err(reads_first(name, buffer).at(span));
            }
            (true, None) => {
                args.push(Slot::Output(plan.outputs.len()));
                plan.outputs.push(port);
            }
            (true, Some(_)) if is_written_first(func, buffer) => {
                args.push(Slot::Output(plan.outputs.len()));
                plan.outputs.push(port);
            }
            (true, Some(span)) => {
                return Err(reads_first(name, buffer).at(span));
            }
        }
    }
    let blocks = scratch
        .iter()
        .map(|b| Ok(Block { bytes: buffer_bytes(b)?, first: 0, last: 0 }))
        .collect::<Result<Vec<_>>>()?;
    let (offsets, arena_bytes) =
        place(&blocks).ok_or_else(|| Error::input("the scratch memory does not fit in memory"))?;
    args.extend(offsets.into_iter().map(Slot::Arena));
    plan.steps.push(Step { func: name.into(), args });
    plan.arena_bytes = arena_bytes;
    Ok(plan)
}

/// Whether every cell of a parameter is certainly written before it is read. A text that reads
/// first may do so: `B[i] = T.if_then_else(i > 0, B[i - 1], 0) + A[i]`.
fn is_written_first(func: &TensorFunc, buffer: &Buffer) -> bool {
    let Ok(scop) = Scop::of(func) else { return false };
    if !scop.follows(buffer) {
        return false;
    }
    let stmts = 0..scop.stmts.len();
    let runs = stmts.filter_map(|k| Run::of(&scop, k, buffer)).collect();
    Unwritten::of(&scop, runs).is_ok_and(|found| found.reads().next().is_none())
}

/// Which parameters a function writes, and which it reads before it has written any of them.
/// Views of a parameter count as the parameter.
struct Touched {
    by_pointer: HashMap<tilewright_ir::Var, usize>,
    written: Vec<bool>,
    /// Where a parameter is read before the first write, in the order of the text.
    read_first: Vec<Option<Option<Span>>>,
    span: Option<Span>,
}

impl Touched {
    fn of(func: &TensorFunc, params: &[Buffer]) -> Touched {
        let mut t = Touched {
            by_pointer: params.iter().enumerate().map(|(k, b)| (b.data.clone(), k)).collect(),
            written: vec![false; params.len()],
            read_first: vec![None; params.len()],
            span: None,
        };
        t.stmt(&func.body);
        t
    }
}

impl Visit for Touched {
    /// The value is read before the element is written.
    fn access(&mut self, b: &Buffer, _: &[Expr], write: bool) {
        match self.by_pointer.get(&b.data).copied() {
            Some(k) if write => self.written[k] = true,
            Some(k) if !self.written[k] => {
                self.read_first[k].get_or_insert(self.span);
            }
            _ => {}
        }
    }

    fn expr(&mut self, e: &Expr) {
        // A pointer that is passed on may be written through.
        if let ExprKind::Var(v) = e.kind()
            && let Some(k) = self.by_pointer.get(v).copied()
        {
            self.written[k] = true;
        }
        visit::walk_expr(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        self.span = s.span().or(self.span);
        visit::walk_stmt(self, s);
    }
}

/// An error for a parameter that is both input and output.
fn reads_first(name: &str, buffer: &Buffer) -> Error {
    let param = &buffer.name;
    Error::unsupported(format!("`{name}` reads its parameter `{param}` before it writes it"))
        .help("read one parameter and write another")
}

/// Where a parameter is certainly read at a cell that nothing wrote before, although a write of
/// other cells, or one under a condition, comes first in the text.
fn reads_unwritten(func: &TensorFunc, buffer: &Buffer) -> Option<Option<Span>> {
    let scop = Scop::of(func).ok()?;
    if !scop.follows(buffer) {
        return None;
    }
    let stmts = 0..scop.stmts.len();
    let runs = stmts.filter_map(|k| Run::of(&scop, k, buffer)).collect();
    let found = Unwritten::of(&scop, runs).ok()?;
    let (run, _) = found.reads().find(|(_, read)| read.certain)?;
    Some(run.who.stmt().and_then(|k| scop.stmts.get(k)).and_then(|s| s.span))
}
