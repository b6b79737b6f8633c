//! Shape arithmetic with open sizes: integers that are known but for these, and tensor functions run on
//! them.
//!
//! A model computes shapes with its ordinary operators: it takes extents of one tensor, multiplies and
//! joins them, and gives the result to Reshape. Where all extents are known, the functions of these
//! operators are run in the interpreter. Here they are run on expressions: every element of a buffer is
//! an integer in normal form, loops and conditions must be decided. What cannot be expressed so is left
//! to run time.

use std::collections::HashMap;

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::operators::fold_binary;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Dim, Expr, ExprKind, Intrin, Result, Stmt, StmtKind, Tensor,
    TensorFunc, Var,
};
use tilewright_ops::Operand;

use crate::fold;
use crate::imported::{Imported, Sizes};

/// Integers as a value: a constant where no size is open.
pub(crate) fn value(shape: &[usize], values: Vec<Integer>, dtype: DType) -> Result<Imported> {
    let numbers: Option<Vec<i64>> = values.iter().map(|v| v.number()).collect();
    match numbers {
        Some(numbers) => {
            fold::cast(&Tensor::from_slice(shape, &numbers)?, dtype).map(Imported::Const)
        }
        None => Ok(Imported::Sizes(Sizes { shape: shape.to_vec(), values: values.into(), dtype })),
    }
}

/// A list of sizes.
pub(crate) fn list(values: &[Dim]) -> Result<Imported> {
    let values: Vec<Integer> = values.iter().map(|d| Integer::from(*d)).collect();
    value(&[values.len()], values, DType::I64)
}

/// Most statements of a function that is run on expressions.
const STEPS: usize = 1 << 16;

/// The integers in a constant; it is empty where it holds others, or too many.
pub(crate) fn numbers(t: &Tensor) -> Vec<Option<Integer>> {
    if !is_whole(t.dtype()) || t.len() > STEPS {
        return Vec::new();
    }
    (0..t.len()).map(|i| i64::try_from(t.get_i128(i)).ok().map(Integer::from)).collect()
}

/// The elements of the results of a function for operands of which some hold open sizes, those missing that
/// cannot be expressed so; `None` where it does what is not decided.
pub(crate) fn run(
    func: &TensorFunc,
    args: &[Vec<Option<Integer>>],
    outs: &[Operand],
    shapes: &[Vec<usize>],
) -> Option<Vec<Vec<Option<Integer>>>> {
    if outs.iter().any(|o| !is_whole(o.dtype)) {
        return None;
    }
    let mut machine = SizeMachine { memory: HashMap::new(), vars: HashMap::new(), steps: STEPS };
    let buffers: Vec<Buffer> = func.buffers().cloned().collect();
    for (buffer, arg) in buffers.iter().zip(args) {
        machine.memory.insert(buffer.id(), arg.clone());
    }
    machine.stmt(&func.body)?;
    let results = buffers[args.len()..].iter().zip(shapes).map(|(buffer, shape)| {
        let mut stored = machine.memory.remove(&buffer.id()).unwrap_or_default();
        stored.resize(shape.iter().product(), None);
        stored
    });
    Some(results.collect())
}

/// Results whose elements are known but for open sizes; `None` where one is not.
pub(crate) fn values(
    found: &[Vec<Option<Integer>>],
    outs: &[Operand],
    shapes: &[Vec<usize>],
) -> Result<Option<Vec<Imported>>> {
    let mut results = Vec::with_capacity(outs.len());
    for ((found, out), shape) in found.iter().zip(outs).zip(shapes) {
        let Some(values) = found.iter().copied().collect::<Option<Vec<Integer>>>() else {
            return Ok(None);
        };
        let open = values.iter().any(|v| v.number().is_none());
        if open && !matches!(out.dtype, DType::I64 | DType::I32) {
            return Ok(None);
        }
        results.push(value(shape, values, out.dtype)?);
    }
    Ok(Some(results))
}

fn is_whole(d: DType) -> bool {
    d.is_bool() || d.is_int() && d.lanes == 1
}

/// Runs statements on expressions. Where something is not decided, it stops.
struct SizeMachine {
    /// The elements of each buffer; nothing for what could not be expressed.
    memory: HashMap<u64, Vec<Option<Integer>>>,
    vars: HashMap<Var, Integer>,
    steps: usize,
}

impl SizeMachine {
    fn stmt(&mut self, s: &Stmt) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        match s.kind() {
            StmtKind::Seq(all) => all.iter().try_for_each(|s| self.stmt(s)),
            StmtKind::For { var, range, body, .. } => {
                let (start, extent) = (self.number(&range.min)?, self.number(&range.extent)?);
                for at in start..start.checked_add(extent)? {
                    self.vars.insert(var.clone(), at.into());
                    self.stmt(body)?;
                }
                Some(())
            }
            StmtKind::If { cond, then, otherwise } => match self.number(cond)? {
                0 => otherwise.as_ref().map_or(Some(()), |s| self.stmt(s)),
                _ => self.stmt(then),
            },
            StmtKind::Let { var, value, body } => {
                let value = self.expr(value)?;
                self.vars.insert(var.clone(), value);
                self.stmt(body)
            }
            StmtKind::Block { bindings, predicate, block } => {
                if self.number(predicate)? == 0 {
                    return Some(());
                }
                let mut first = true;
                for (iter, binding) in block.iters.iter().zip(bindings) {
                    let at = self.expr(binding)?;
                    let reduces = iter.kind == tilewright_ir::IterKind::Reduce;
                    first &= !reduces || at.number() == iter.domain.min.as_int();
                    self.vars.insert(iter.var.clone(), at);
                }
                if let (Some(init), true) = (&block.init, first) {
                    self.stmt(init)?;
                }
                self.stmt(&block.body)
            }
            StmtKind::Allocate { body, .. } => self.stmt(body),
            StmtKind::Store { buffer, indices, value } => {
                let value = self.expr(value);
                let (at, count) = self.place(buffer, indices)?;
                let cells = self.memory.entry(buffer.id()).or_default();
                if cells.len() < count {
                    cells.resize(count, None);
                }
                *cells.get_mut(at)? = value;
                Some(())
            }
            _ => None,
        }
    }

    /// The position of an element, and the number of elements.
    fn place(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<(usize, usize)> {
        let (mut at, mut count) = (0usize, 1usize);
        for (index, extent) in indices.iter().zip(&buffer.shape) {
            let extent = usize::try_from(extent.as_int()?).ok()?;
            let index = usize::try_from(self.number(index)?).ok().filter(|i| *i < extent)?;
            at = at.checked_mul(extent)?.checked_add(index)?;
            count = count.checked_mul(extent)?;
        }
        (count <= STEPS).then_some((at, count))
    }

    fn number(&mut self, e: &Expr) -> Option<i64> {
        self.expr(e)?.number()
    }

    fn expr(&mut self, e: &Expr) -> Option<Integer> {
        Some(match e.kind() {
            ExprKind::Int(v) if e.dtype() == DType::U64 && *v < 0 => return None,
            ExprKind::Int(v) => Integer::Number(*v),
            ExprKind::Var(v) => match self.vars.get(v) {
                Some(value) => *value,
                None => Integer::from(Dim::open(&dim::open_size(v)?)),
            },
            ExprKind::Load(buffer, indices) => {
                let (at, _) = self.place(buffer, indices)?;
                *self.memory.get(&buffer.id())?.get(at)?.as_ref()?
            }
            ExprKind::Cast(a) => self.cast(a, e.dtype())?,
            ExprKind::Not(a) => Integer::Number(i64::from(self.number(a)? == 0)),
            ExprKind::Select(c, a, b) | ExprKind::IfThenElse(c, a, b) => match self.number(c) {
                Some(0) => self.expr(b)?,
                Some(_) => self.expr(a)?,
                // Either way the same.
                None => {
                    let (a, b) = (self.expr(a)?, self.expr(b)?);
                    (a == b).then_some(a)?
                }
            },
            ExprKind::Let(var, value, body) => {
                let value = self.expr(value)?;
                self.vars.insert(var.clone(), value);
                self.expr(body)?
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b)?,
            ExprKind::Call(CallTarget::Intrin(Intrin::Abs), args) => {
                let value = self.expr(args.first()?)?;
                value.max(Integer::from(0).minus(value)?)?
            }
            _ => return None,
        })
    }

    fn cast(&mut self, from: &Expr, to: DType) -> Option<Integer> {
        let value = self.expr(from)?;
        match value.number() {
            Some(n) if to.is_bool() => Some(Integer::Number(i64::from(n != 0))),
            Some(n) if to.is_int() => {
                Expr::int(n, from.dtype()).cast(to).as_int().map(Integer::from)
            }
            None if to.is_bool() => Some(Integer::Number(i64::from(!value.equals(0)?))),
            // Sizes fit both types, which the runtime sees to.
            None if matches!(to, DType::I64 | DType::I32) => Some(value),
            _ => None,
        }
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Option<Integer> {
        let dtype = a.dtype();
        // A side that decides does so alone.
        if let BinOp::And | BinOp::Or = op {
            let decides = i64::from(op == BinOp::Or);
            let (x, y) = (self.number(a), self.number(b));
            return match (x, y) {
                (Some(x), _) if x == decides => truth(decides != 0),
                (_, Some(y)) if y == decides => truth(decides != 0),
                (Some(_), Some(_)) => truth(decides == 0),
                _ => None,
            };
        }
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        if let (Some(x), Some(y)) = (x.number(), y.number()) {
            let folded = fold_binary(op, &Expr::int(x, dtype), &Expr::int(y, dtype))?;
            return folded.as_int().map(Integer::from);
        }
        match op {
            BinOp::Add => x.plus(y),
            BinOp::Sub => x.minus(y),
            BinOp::Mul => x.times(y),
            BinOp::FloorDiv => x.floordiv(y),
            BinOp::TruncDiv => x.truncdiv(y),
            BinOp::FloorMod => x.minus(x.floordiv(y)?.times(y)?),
            BinOp::TruncMod => x.minus(x.truncdiv(y)?.times(y)?),
            BinOp::Max => x.max(y),
            BinOp::Min => x.min(y),
            BinOp::Eq => truth(x.equals(y)?),
            BinOp::Ne => truth(!x.equals(y)?),
            BinOp::Lt => truth(x.is_less(y)?),
            BinOp::Ge => truth(!x.is_less(y)?),
            BinOp::Gt => truth(y.is_less(x)?),
            BinOp::Le => truth(!y.is_less(x)?),
            _ => None,
        }
    }
}

fn truth(v: bool) -> Option<Integer> {
    Some(Integer::Number(i64::from(v)))
}
