//! The program of a graph function with control flow: in which order its pieces run, on which values.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::control::WHY;
use tilewright_ir::{
    Attr, Attrs, Dim, Error, Expr, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Result, Var,
};
use tilewright_runtime::plan::Reason;
use tilewright_runtime::plan::program::{Block, Operation, Program, Register, Slot, What};
use tilewright_runtime::{MemoryPlan, OpenPort};

use tilewright_graph::call_sizes::extents;
use tilewright_graph::control::resolve::{self, Kind, ResolvedBody};
use tilewright_graph::functions::located;
use tilewright_graph::normal::output_names;

/// What runs a graph function whose calls are in pieces: what [`cut`](tilewright_graph::control::cut) left
/// of one.
///
/// # Errors
/// * `Unsupported` for inputs and outputs that are no tensors.
/// * `Malformed` where values are not what they are used as, or a piece is told a size that is not
///   known.
pub fn program(module: &Module, entry: &str) -> Result<Program> {
    let func = module.graph(entry)?;
    let program = resolve::resolve(module, entry, func)
        .and_then(|(resolved, params)| emit(func, &params, &resolved));
    located(module, program)
}

/// The program of a graph function whose calls are in pieces.
fn emit(func: &GraphFunc, params: &[GraphVar], resolved: &ResolvedBody) -> Result<Program> {
    let mut e = Emitter::default();
    let mut signature = MemoryPlan::default();
    for p in params {
        e.register(p);
        signature.inputs.push(e.port(p.name(), p.ty()).map_err(|e| e.at(func.span))?);
    }
    signature.reasons = Reason::list(&func.attrs, &signature.inputs);
    for v in signature.sizes() {
        e.slot(&v);
        e.known.insert(v);
    }
    let names = output_names(func, resolved.results.len());
    for (name, value) in names.iter().zip(&resolved.results) {
        signature.outputs.push(e.output(name, &value.ty()).map_err(|e| e.at(func.span))?);
    }
    let inputs: Vec<Register> = (0..params.len()).collect();
    let body = e.body(resolved, &inputs)?;
    let Emitter { pieces, registers, sizes, .. } = e;
    Ok(Program { signature, pieces, sizes, registers, body })
}

#[derive(Default)]
struct Emitter {
    pieces: Vec<Arc<str>>,
    registers: usize,
    /// The registers of variables.
    places: HashMap<u64, Register>,
    /// The sizes with a slot.
    sizes: Vec<Var>,
    /// The sizes whose values are known.
    known: HashSet<Var>,
}

impl Emitter {
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

    /// The operations of a body. `params` are registers that are written when it starts.
    fn body(&mut self, resolved: &ResolvedBody, params: &[Register]) -> Result<Block> {
        let outer = self.known.clone();
        let mut block = Block::default();
        for node in &resolved.nodes {
            self.node(&node.kind, &mut block).map_err(|e| e.at(node.span))?;
        }
        for e in &resolved.results {
            let at = self.operand(e, &mut block)?;
            block.results.push(at);
        }
        block.free(params);
        self.known = outer;
        Ok(block)
    }

    /// The slot of a size that a piece takes.
    fn slot_of_size(&self, piece: &str, size: &Expr) -> Result<Slot> {
        let at = size.as_var().and_then(|v| self.sizes.iter().position(|s| s == v));
        at.ok_or_else(|| Error::malformed(format!("`{piece}` is told the size `{size}`")))
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

    fn node(&mut self, kind: &Kind, block: &mut Block) -> Result<()> {
        match kind {
            Kind::Call(_) => return Err(Error::internal("a call that is in no piece")),
            Kind::Piece { name, sizes, args, outs } => {
                let args = self.operands(args, block)?;
                let sizes =
                    sizes.iter().map(|e| self.slot_of_size(name, e)).collect::<Result<_>>()?;
                let outs = outs.iter().map(|v| self.register(v)).collect();
                let known = self.pieces.iter().position(|p| p == name);
                let piece = known.unwrap_or_else(|| {
                    self.pieces.push(name.clone());
                    self.pieces.len() - 1
                });
                push(block, What::Piece { piece, args, sizes, outs });
            }
            Kind::Cast { of, to, attrs } => {
                let (from, out) = (self.operand(of, block)?, self.register(to));
                push(block, What::Copy(from, out));
                self.bind(to, reason(attrs), block)?;
            }
            Kind::Sizes { of, name, shape, attrs } => {
                let of = self.operand(of, block)?;
                let (shape, brings) = self.brought(name, shape)?;
                let (name, why) = (name.clone(), reason(attrs));
                push(block, What::Sizes { of, name, shape, brings, why });
            }
            Kind::List { op, attrs, args, to } => {
                let args = self.operands(args, block)?;
                let out = self.register(to);
                push(block, What::List { op: *op, attrs: attrs.clone(), args, to: out });
                self.bind(to, None, block)?;
            }
            Kind::If { cond, then, otherwise, outs, .. } => {
                let cond = self.operand(cond, block)?;
                let (then, otherwise) = (self.body(then, &[])?, self.body(otherwise, &[])?);
                let registers = outs.iter().map(|v| self.register(v)).collect();
                push(block, What::If { cond, then, otherwise, outs: registers });
                outs.iter().try_for_each(|v| self.bind(v, None, block))?;
            }
            Kind::Loop { trip, cond, carried, params, body, outs, .. } => {
                let trip = trip.as_ref().map(|e| self.operand(e, block)).transpose()?;
                let cond = cond.as_ref().map(|e| self.operand(e, block)).transpose()?;
                let first = self.operands(carried, block)?;
                let outer = self.known.clone();
                let registers: Vec<Register> = params.iter().map(|v| self.register(v)).collect();
                let mut start = Block::default();
                params.iter().try_for_each(|v| self.bind(v, None, &mut start))?;
                let mut body = self.body(body, &registers)?;
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
                outs.iter().try_for_each(|v| self.bind(v, None, block))?;
            }
        }
        Ok(())
    }

    /// Checks the type of a tensor, and takes from it the sizes that it brings.
    fn bind(&mut self, var: &GraphVar, why: Option<Arc<str>>, block: &mut Block) -> Result<()> {
        let Some(ty) = var.ty().as_tensor() else { return Ok(()) };
        let of = self.operand(&var.expr(), block)?;
        let (shape, brings) = self.brought(var.name(), &ty.shape)?;
        let (name, dtype) = (var.name().clone(), ty.dtype);
        push(block, What::Bind { of, name, dtype, shape, brings, why });
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

/// Why a value must be as its type says, where that is known.
fn reason(attrs: &Attrs) -> Option<Arc<str>> {
    match attrs.get(WHY) {
        Some(Attr::Str(why)) => Some(why.clone()),
        _ => None,
    }
}

/// Positions of extents that give sizes their values, with the slots of these.
type Brought = Vec<(usize, Slot)>;

fn push(block: &mut Block, what: What) {
    block.operations.push(Operation { what, free: Vec::new() });
}
