//! Nodes to pieces and operations.
//!
//! Every node has a level: a call of a tensor function has that of its operands, or one more than that
//! of the control flow that gives them; control flow has the highest level of its operands. The calls
//! of a level are one piece, which runs before the control flow of that level.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::plan::program::{Block, Operation, Program, Register, Slot, What};
use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    Attr, Attrs, Binding, BindingBlock, Dim, Error, Expr, GraphExpr, GraphFunc, GraphType,
    GraphVar, Module, OpenPlan, OpenPort, Result, TensorType, Var,
};

use super::resolve::{Kind, Node, Part};
use super::{Cut, PIECE};
use crate::call_sizes::extents;
use crate::normal::{needed, output_names};

/// The pieces of a graph function, and the program.
pub(super) fn emit(
    module: &Module,
    name: &str,
    func: &GraphFunc,
    params: &[GraphVar],
    part: Part,
) -> Result<Cut> {
    let mut out = module.clone();
    out.functions.retain(|_, f| matches!(f, tilewright_ir::Function::Tensor(_)));
    let mut e = Emitter {
        module: out,
        entry: name,
        pieces: Vec::new(),
        registers: 0,
        places: HashMap::new(),
        sizes: Vec::new(),
        known: HashSet::new(),
    };
    let mut signature = OpenPlan::default();
    for p in params {
        e.register(p);
        signature.inputs.push(e.port(p.name(), p.ty()).map_err(|e| e.at(func.span))?);
    }
    for v in signature.sizes() {
        e.slot(&v);
        e.known.insert(v);
    }
    let names = output_names(func, part.results.len());
    for (name, value) in names.iter().zip(&part.results) {
        let ty = match value {
            GraphExpr::Var(v) => v.ty().clone(),
            GraphExpr::Const(t) => GraphType::Tensor(TensorType::fixed(t.shape(), t.dtype())),
            _ => return Err(Error::internal("a result is neither a variable nor a constant")),
        };
        signature.outputs.push(e.output(name, &ty).map_err(|e| e.at(func.span))?);
    }
    let inputs: Vec<Register> = (0..params.len()).collect();
    let body = e.part(&part, &inputs)?;
    let Emitter { module, pieces, registers, sizes, .. } = e;
    Ok(Cut { module, program: Program { signature, pieces, sizes, registers, body } })
}

struct Emitter<'m> {
    module: Module,
    entry: &'m str,
    pieces: Vec<Arc<str>>,
    registers: usize,
    /// The registers of variables.
    places: HashMap<u64, Register>,
    /// The sizes with a slot.
    sizes: Vec<Var>,
    /// The sizes whose values are known.
    known: HashSet<Var>,
}

/// What a node reads: values by their identity, and sizes.
#[derive(Default)]
struct Reads {
    values: HashSet<u64>,
    sizes: HashSet<Var>,
}

impl Reads {
    fn value(&mut self, e: &GraphExpr) {
        needed(e, &mut |v| {
            self.values.insert(v.id());
        });
    }

    fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        self.sizes.extend(exprs.into_iter().flat_map(free_vars));
    }

    fn ty(&mut self, ty: &GraphType) {
        match ty {
            GraphType::Tensor(t) => self.exprs(&t.shape),
            GraphType::Shape(sizes) => self.exprs(sizes),
            GraphType::Tuple(items) => items.iter().for_each(|t| self.ty(t)),
            GraphType::Opaque(_) => {}
        }
    }

    fn part(&mut self, part: &Part) {
        part.nodes.iter().for_each(|n| self.node(n));
        part.results.iter().for_each(|e| self.value(e));
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            Kind::Call(bindings) => {
                for b in bindings {
                    self.value(&b.value);
                    self.ty(b.var.ty());
                    if let GraphExpr::CallTir { outs, scalars, .. } = &b.value {
                        outs.iter().for_each(|t| self.exprs(&t.shape));
                        self.exprs(scalars);
                    }
                }
            }
            Kind::Cast { of, to } => {
                self.value(of);
                self.ty(to.ty());
            }
            Kind::Sizes { of, shape, .. } => {
                self.value(of);
                self.exprs(shape);
            }
            Kind::List { args, to, .. } => {
                args.iter().for_each(|e| self.value(e));
                self.ty(to.ty());
            }
            Kind::If { cond, then, otherwise, outs } => {
                self.value(cond);
                self.part(then);
                self.part(otherwise);
                outs.iter().for_each(|v| self.ty(v.ty()));
            }
            Kind::Loop { trip, cond, carried, params, body, outs } => {
                trip.iter().chain(cond).chain(carried).for_each(|e| self.value(e));
                self.part(body);
                params.iter().chain(outs).for_each(|v| self.ty(v.ty()));
            }
        }
    }
}

/// The variables that a node of control flow defines.
fn defined(kind: &Kind) -> Vec<&GraphVar> {
    match kind {
        Kind::Call(bindings) => bindings.iter().map(|b| &b.var).collect(),
        Kind::Cast { to, .. } | Kind::List { to, .. } => vec![to],
        Kind::Sizes { .. } => Vec::new(),
        Kind::If { outs, .. } | Kind::Loop { outs, .. } => outs.iter().collect(),
    }
}

/// The variables that stand alone in a type, or in the sizes that a node finds.
fn alone(kind: &Kind) -> Vec<Var> {
    let exprs: Vec<&Expr> = match kind {
        Kind::Call(_) => Vec::new(),
        Kind::Sizes { shape, .. } => shape.iter().collect(),
        kind => {
            let types = defined(kind).into_iter().filter_map(|v| v.ty().as_tensor());
            types.flat_map(|t| &t.shape).collect()
        }
    };
    exprs.into_iter().filter_map(Expr::as_var).cloned().collect()
}

/// A level, and whether it is that of control flow.
type Level = (usize, bool);

/// The first level at which what was defined at one can be used by a call.
fn after((level, control): Level) -> usize {
    level + usize::from(control)
}

impl Emitter<'_> {
    fn register(&mut self, var: &GraphVar) -> Register {
        let new = self.new_register();
        self.places.insert(var.id(), new);
        new
    }

    fn new_register(&mut self) -> Register {
        self.registers += 1;
        self.registers - 1
    }

    fn slot(&mut self, var: &Var) -> Slot {
        match self.sizes.iter().position(|v| v == var) {
            Some(at) => at,
            None => {
                self.sizes.push(var.clone());
                self.sizes.len() - 1
            }
        }
    }

    /// An output: a tensor, or a list or optional.
    fn output(&self, name: &Arc<str>, ty: &GraphType) -> Result<OpenPort> {
        match ty {
            GraphType::Opaque(_) => Ok(OpenPort::item(name.clone())),
            _ => self.port(name, ty),
        }
    }

    fn port(&self, name: &Arc<str>, ty: &GraphType) -> Result<OpenPort> {
        let Some(ty) = ty.as_tensor() else {
            return Err(Error::unsupported(format!(
                "`{name}` is an input or output of the model, and no tensor of known rank"
            )));
        };
        let shape = extents(&ty.shape, || format!("`{name}`"))?;
        Ok(OpenPort { name: name.clone(), dtype: ty.dtype, shape, stored: None })
    }

    /// The pieces and operations of a part. `params` are registers that are written when it starts.
    fn part(&mut self, part: &Part, params: &[Register]) -> Result<Block> {
        let outer = self.known.clone();
        let (levels, reads) = self.levels(part);
        let mut block = Block::default();
        let last = levels.iter().copied().max().unwrap_or(0);
        // Who reads each value: the calls of a level, or something else.
        let mut readers: HashMap<u64, Vec<Option<usize>>> = HashMap::new();
        for ((node, reads), level) in part.nodes.iter().zip(&reads).zip(&levels) {
            let reader = matches!(node.kind, Kind::Call(_)).then_some(*level);
            for id in &reads.values {
                readers.entry(*id).or_default().push(reader);
            }
        }
        for e in &part.results {
            needed(e, &mut |v| readers.entry(v.id()).or_default().push(None));
        }
        for level in 0..=last {
            let at = |k: &usize| levels[*k] == level;
            let nodes: Vec<usize> = (0..part.nodes.len()).filter(at).collect();
            let calls = nodes.iter().filter_map(|k| match &part.nodes[*k].kind {
                Kind::Call(bindings) => Some(bindings),
                _ => None,
            });
            let bindings: Vec<Binding> = calls.flatten().cloned().collect();
            let outside = |v: &GraphVar| {
                let all = readers.get(&v.id());
                all.is_some_and(|all| all.iter().any(|reader| *reader != Some(level)))
            };
            self.piece(bindings, outside, &mut block)?;
            for k in nodes {
                let node = &part.nodes[k];
                self.control(&node.kind, &mut block).map_err(|e| e.at(node.span))?;
            }
        }
        for e in &part.results {
            let at = self.operand(e, &mut block)?;
            block.results.push(at);
        }
        block.free(params);
        self.known = outer;
        Ok(block)
    }

    /// The level of each node, and what it reads.
    fn levels(&self, part: &Part) -> (Vec<usize>, Vec<Reads>) {
        let mut values: HashMap<u64, Level> = HashMap::new();
        let mut sizes: HashMap<Var, Level> = HashMap::new();
        let (mut levels, mut all) = (Vec::new(), Vec::new());
        for node in &part.nodes {
            let mut reads = Reads::default();
            reads.node(node);
            let found = reads.values.iter().filter_map(|id| values.get(id));
            let found = found.chain(reads.sizes.iter().filter_map(|v| sizes.get(v)));
            let control = !matches!(node.kind, Kind::Call(_));
            let level = found.map(|l| if control { l.0 } else { after(*l) }).max().unwrap_or(0);
            for v in defined(&node.kind) {
                values.insert(v.id(), (level, control));
            }
            for v in alone(&node.kind) {
                if !self.known.contains(&v) {
                    sizes.entry(v).or_insert((level, true));
                }
            }
            levels.push(level);
            all.push(reads);
        }
        (levels, all)
    }

    /// A graph function of calls, and the operation that runs it; its results are the variables that
    /// are read elsewhere.
    fn piece(
        &mut self,
        bindings: Vec<Binding>,
        outside: impl Fn(&GraphVar) -> bool,
        block: &mut Block,
    ) -> Result<()> {
        let results: Vec<GraphVar> =
            bindings.iter().map(|b| b.var.clone()).filter(outside).collect();
        if results.is_empty() {
            return Ok(());
        }
        // What no result needs is left out, so that it is no parameter either.
        let mut wanted: HashSet<u64> = results.iter().map(GraphVar::id).collect();
        let mut kept: Vec<Binding> = Vec::new();
        for b in bindings.into_iter().rev() {
            if wanted.contains(&b.var.id()) {
                needed(&b.value, &mut |v| {
                    wanted.insert(v.id());
                });
                kept.push(b);
            }
        }
        kept.reverse();
        let bound: HashSet<u64> = kept.iter().map(|b| b.var.id()).collect();
        let (mut params, mut seen) = (Vec::new(), HashSet::new());
        let mut reads = Reads::default();
        for b in &kept {
            needed(&b.value, &mut |v| {
                if !bound.contains(&v.id()) && seen.insert(v.id()) {
                    params.push(v.clone());
                }
            });
            reads.ty(b.var.ty());
            if let GraphExpr::CallTir { outs, scalars, .. } = &b.value {
                outs.iter().for_each(|t| reads.exprs(&t.shape));
                reads.exprs(scalars);
            }
        }
        let mut args = Vec::new();
        for p in &params {
            args.push(*self.places.get(&p.id()).ok_or_else(|| {
                Error::malformed(format!("`{}` is used before it has a value", p.name()))
            })?);
            reads.ty(p.ty());
        }
        let plain: HashSet<Var> = params
            .iter()
            .filter_map(|p| p.ty().as_tensor())
            .flat_map(|t| t.shape.iter().filter_map(Expr::as_var).cloned())
            .collect();
        // What an extent is computed from must be known before any parameter has it as an extent.
        let mut derived = Reads::default();
        for ty in params.iter().filter_map(|p| p.ty().as_tensor()) {
            derived.exprs(ty.shape.iter().filter(|e| e.as_var().is_none()));
        }
        let needed = |v: &Var| !plain.contains(v) || derived.sizes.contains(v);
        let mut given: Vec<Var> = reads.sizes.into_iter().filter(|v| needed(v)).collect();
        given.sort();
        if let Some(v) = given.iter().find(|v| !self.known.contains(v)) {
            return Err(Error::input(format!("nothing says how large `{}` is", v.name())));
        }
        let sizes = given.iter().map(|v| self.slot(v)).collect();
        if !given.is_empty() {
            let shape = given.iter().map(Var::expr).collect();
            // First, since the types of the others use it.
            params.insert(0, GraphVar::new("sizes", GraphType::Shape(shape)));
        }
        let values: Vec<GraphExpr> = results.iter().map(GraphVar::expr).collect();
        let ret = match values.as_slice() {
            [one] => one.clone(),
            _ => GraphExpr::Tuple(values),
        };
        let bindings = BindingBlock { dataflow: true, bindings: kept, outputs: results.clone() };
        let func = GraphFunc {
            params,
            blocks: vec![bindings],
            ret,
            ret_ty: None,
            attrs: Attrs::from([(PIECE.into(), Attr::Int(1))]),
            private: false,
            span: None,
        };
        let name = self.module.fresh_name(&format!("{}_{}", self.entry, self.pieces.len()));
        self.module.insert(name.clone(), func);
        let outs = results.iter().map(|v| self.register(v)).collect();
        let what = What::Piece { piece: self.pieces.len(), args, sizes, outs };
        self.pieces.push(name);
        push(block, what);
        Ok(())
    }

    /// The register of a variable or constant.
    fn operand(&mut self, e: &GraphExpr, block: &mut Block) -> Result<Register> {
        match e {
            GraphExpr::Var(v) => self.places.get(&v.id()).copied().ok_or_else(|| {
                Error::malformed(format!("`{}` is used before it has a value", v.name()))
            }),
            GraphExpr::Const(t) => {
                let to = self.new_register();
                push(block, What::Constant(t.clone(), to));
                Ok(to)
            }
            _ => Err(Error::unsupported("a tuple where one value is needed")),
        }
    }

    fn operands(&mut self, all: &[GraphExpr], block: &mut Block) -> Result<Vec<Register>> {
        all.iter().map(|e| self.operand(e, block)).collect()
    }

    fn control(&mut self, kind: &Kind, block: &mut Block) -> Result<()> {
        match kind {
            Kind::Call(_) => {}
            Kind::Cast { of, to } => {
                let (from, out) = (self.operand(of, block)?, self.register(to));
                push(block, What::Copy(from, out));
                self.bind(to, block)?;
            }
            Kind::Sizes { of, name, shape } => {
                let of = self.operand(of, block)?;
                let (shape, brings) = self.brought(name, shape)?;
                push(block, What::Sizes { of, name: name.clone(), shape, brings });
            }
            Kind::List { op, attrs, args, to } => {
                let args = self.operands(args, block)?;
                let out = self.register(to);
                push(block, What::List { op: *op, attrs: attrs.clone(), args, to: out });
                self.bind(to, block)?;
            }
            Kind::If { cond, then, otherwise, outs } => {
                let cond = self.operand(cond, block)?;
                let (then, otherwise) = (self.part(then, &[])?, self.part(otherwise, &[])?);
                let registers = outs.iter().map(|v| self.register(v)).collect();
                push(block, What::If { cond, then, otherwise, outs: registers });
                outs.iter().try_for_each(|v| self.bind(v, block))?;
            }
            Kind::Loop { trip, cond, carried, params, body, outs } => {
                let mut optional =
                    |e: &Option<GraphExpr>| e.as_ref().map(|e| self.operand(e, block)).transpose();
                let (trip, cond) = (optional(trip)?, optional(cond)?);
                let first = self.operands(carried, block)?;
                let outer = self.known.clone();
                let registers: Vec<Register> = params.iter().map(|v| self.register(v)).collect();
                let mut start = Block::default();
                params.iter().try_for_each(|v| self.bind(v, &mut start))?;
                let mut body = self.part(body, &registers)?;
                body.operations.splice(0..0, start.operations);
                body.free(&registers);
                self.known = outer;
                let stacked = outs.iter().skip(first.len()).map(|v| {
                    let Some(ty) = v.ty().as_tensor().filter(|t| !t.shape.is_empty()) else {
                        return Err(Error::malformed(format!("`{}` is stacked", v.name())));
                    };
                    let shape = extents(&ty.shape[1..], || format!("`{}`", v.name()))?;
                    Ok((ty.dtype, shape))
                });
                let stacked = stacked.collect::<Result<_>>()?;
                let to = outs.iter().map(|v| self.register(v)).collect();
                push(
                    block,
                    What::Loop {
                        trip,
                        cond,
                        carried: first,
                        captured: body.reads(&registers),
                        params: registers,
                        body,
                        stacked,
                        outs: to,
                    },
                );
                outs.iter().try_for_each(|v| self.bind(v, block))?;
            }
        }
        Ok(())
    }

    /// Checks the type of a tensor, and takes from it the sizes that it brings.
    fn bind(&mut self, var: &GraphVar, block: &mut Block) -> Result<()> {
        let Some(ty) = var.ty().as_tensor() else { return Ok(()) };
        let of = self.operand(&var.expr(), block)?;
        let (shape, brings) = self.brought(var.name(), &ty.shape)?;
        let (name, dtype) = (var.name().clone(), ty.dtype);
        push(block, What::Bind { of, name, dtype, shape, brings });
        Ok(())
    }

    /// Extents, and which of them give new sizes their values.
    fn brought(&mut self, name: &str, shape: &[Expr]) -> Result<(Vec<Dim>, Brought)> {
        let dims = extents(shape, || format!("`{name}`"))?;
        let mut brings = Vec::new();
        for (k, e) in shape.iter().enumerate() {
            if let Some(v) = e.as_var()
                && self.known.insert(v.clone())
            {
                brings.push((k, self.slot(v)));
            }
        }
        Ok((dims, brings))
    }
}

/// Positions of extents that give sizes their values, with the slots of these.
type Brought = Vec<(usize, Slot)>;

fn push(block: &mut Block, what: What) {
    block.operations.push(Operation { what, free: Vec::new() });
}
