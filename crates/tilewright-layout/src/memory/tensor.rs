//! The plan of one call of a tensor function: which parameters are inputs, which are outputs, and which sizes are given.

use tilewright_ir::hash::HashMap;

use tilewright_graph::call_sizes::{buffer_type, type_cells};
use tilewright_ir::{
    Buffer, Dim, Error, Expr, ExprKind, Param, Result, Span, Stmt, TensorFunc, Visit, visit,
};
use tilewright_polyhedral::flow::{Run, Unwritten};
use tilewright_polyhedral::scop::Scop;
use tilewright_runtime::plan::{ArgSource, MemoryPlan, OpenPort, OpenStep, Value};

use super::port;
/// One call of a tensor function. Its open sizes are those of its inputs, and scalar parameters
/// that are sizes: who runs the plan gives those that are no extent of an input.
pub(super) fn plan(name: &str, func: &TensorFunc) -> Result<MemoryPlan> {
    let sizes = func.sizes();
    if let Some(v) = func.scalars().find(|v| !sizes.contains(v)) {
        return Err(Error::unsupported(format!(
            "`{name}` has the scalar parameter `{}`, which is no size of a tensor: only sizes and tensors can be planned",
            v.name()
        ))
        .at(func.span));
    }
    let (given, scratch) = func.split_params();
    let tensors: Vec<Buffer> = given.iter().filter_map(Param::buffer).cloned().collect();
    let touched = Touched::collect(func, &tensors);
    let mut plan = MemoryPlan::default();
    let mut args = Vec::new();
    for param in given {
        let buffer = match param {
            Param::Buffer { buffer, .. } => buffer,
            Param::Scalar(v) => {
                args.push(ArgSource::Size(Dim::open(v)));
                continue;
            }
        };
        let k = plan.inputs.len() + plan.outputs.len();
        let port = port(&buffer.name, &buffer_type(buffer)?, None).map_err(|e| e.at(func.span))?;
        if !touched.written[k] {
            args.push(ArgSource::Input(plan.inputs.len()));
            plan.inputs.push(port);
            continue;
        }
        let too_early = match touched.read_first[k] {
            None => reads_unwritten(func, buffer),
            Some(span) => (!is_written_first(func, buffer)).then_some(span),
        };
        if let Some(span) = too_early {
            return Err(reads_first(name, buffer).at(span));
        }
        args.push(ArgSource::Output(plan.outputs.len()));
        plan.outputs.push(port);
    }
    for buffer in scratch.iter().filter_map(Param::buffer) {
        let ty = buffer_type(buffer)?;
        let cells = type_cells(&ty, || format!("the parameter `{}`", buffer.name))?;
        args.push(ArgSource::Value(plan.values.len()));
        let dtype = buffer.dtype();
        plan.values.push(Value { cells, dtype, first: 0, last: 0, within: None });
    }
    args.extend(func.shape_vars().iter().map(|v| ArgSource::Size(Dim::open(v))));
    let extents = plan.inputs.iter().flat_map(|port: &OpenPort| &port.shape);
    let extents: Vec<&Dim> = extents.collect();
    plan.given = func.scalars().filter(|v| !extents.contains(&&Dim::open(v))).cloned().collect();
    let (func, value) = (name.into(), "".into());
    let step =
        OpenStep { func, value, args, results: 0..0, takes_empty: false, unless_shared: None };
    plan.steps.push(step);
    Ok(plan)
}

/// Whether every cell of a parameter is certainly written before it is read. A text that reads
/// first may do so: `B[i] = T.if_then_else(i > 0, B[i - 1], 0) + A[i]`.
fn is_written_first(func: &TensorFunc, buffer: &Buffer) -> bool {
    unwritten(func, buffer, |_, found| found.reads().next().is_none()).unwrap_or(false)
}

/// What `of` says of the reads of a parameter's cells that nothing wrote before, where these are known.
fn unwritten<T>(
    func: &TensorFunc,
    buffer: &Buffer,
    of: impl FnOnce(&Scop, &Unwritten) -> T,
) -> Option<T> {
    let scop = Some(Scop::extract(func)).filter(|scop| scop.follows(buffer))?;
    let stmts = 0..scop.stmts.len();
    let runs = stmts.filter_map(|k| Run::from_statement(&scop, k, buffer)).collect();
    let found = Unwritten::new(&scop, runs).ok()?;
    Some(of(&scop, &found))
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
    fn collect(func: &TensorFunc, params: &[Buffer]) -> Touched {
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
    unwritten(func, buffer, |scop, found| {
        let (run, _) = found.reads().find(|(_, read)| read.certain)?;
        Some(run.who.stmt().and_then(|k| scop.stmts.get(k)).and_then(|s| s.span))
    })
    .flatten()
}
