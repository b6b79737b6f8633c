//! Shape arithmetic with open sizes: integers that are known but for these, and tensor functions run on
//! them.
//!
//! A model computes shapes with its ordinary operators: it takes extents of one tensor, multiplies and
//! joins them, and gives the result to Reshape. Where all extents are known, the functions of these
//! operators are run in the interpreter. Here they are run on expressions: every element of a buffer is
//! an integer in normal form, loops and conditions must be decided. What cannot be expressed so is left
//! to run time. Floats are fractions of such integers ([`Ratio`]): what a run computes by floats is what comes out
//! here as long as they are exact, so a run compares.

use tilewright_ir::hash::HashMap;

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::operators::fold_binary;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Dim, Expr, ExprKind, Intrin, Result, Stmt, StmtKind, Tensor,
    TensorFunc, Var,
};
use tilewright_ops::Operand;

use crate::fold;
use crate::imported::{Imported, Sizes};
use crate::ratio::Ratio;

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

/// The numbers in a constant; it is empty where it holds others, or too many.
pub(crate) fn numbers(t: &Tensor) -> Vec<Option<Ratio>> {
    if t.len() > STEPS || t.dtype().lanes != 1 {
        return Vec::new();
    }
    match t.dtype() {
        d if is_whole(d) => {
            (0..t.len()).map(|i| i64::try_from(t.get_i128(i)).ok().map(Ratio::from)).collect()
        }
        d if is_exact(d) => (0..t.len()).map(|i| Ratio::from_float(t.get_f64(i))).collect(),
        _ => Vec::new(),
    }
}

/// What a function computes of sizes.
pub(crate) struct Found {
    /// The elements of each result, those missing that cannot be expressed.
    pub(crate) values: Vec<Vec<Option<Ratio>>>,
    /// Whether floats are on the way, so that the elements are these only as long as floats are exact.
    pub(crate) by_floats: bool,
}

/// The results of a function for operands of which some hold open sizes; `None` where it does what is not decided.
pub(crate) fn run(
    func: &TensorFunc,
    args: &[Vec<Option<Ratio>>],
    outs: &[Operand],
    shapes: &[Vec<usize>],
) -> Option<Found> {
    if outs.iter().any(|o| !is_whole(o.dtype) && !is_exact(o.dtype)) {
        return None;
    }
    let (memory, vars) = (HashMap::default(), HashMap::default());
    let mut machine = SizeMachine { memory, vars, steps: STEPS, by_floats: false };
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
    Some(Found { values: results.collect(), by_floats: machine.by_floats })
}

/// Results whose elements are known but for open sizes; `None` where one is not.
pub(crate) fn values(
    found: &[Vec<Option<Ratio>>],
    outs: &[Operand],
    shapes: &[Vec<usize>],
) -> Result<Option<Vec<Imported>>> {
    let mut results = Vec::with_capacity(outs.len());
    for ((found, out), shape) in found.iter().zip(outs).zip(shapes) {
        let values = found.iter().map(|v| v.and_then(Ratio::integer));
        let Some(values) = values.collect::<Option<Vec<Integer>>>().filter(|_| is_whole(out.dtype))
        else {
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

pub(crate) fn is_whole(d: DType) -> bool {
    d.is_bool() || d.is_int() && d.lanes == 1
}

/// Whether sizes of millions and fractions of them are exact in a type.
fn is_exact(d: DType) -> bool {
    matches!(d, DType::F32 | DType::F64)
}

/// Runs statements on expressions. Where something is not decided, it stops.
struct SizeMachine {
    /// The elements of each buffer; nothing for what could not be expressed.
    memory: HashMap<u64, Vec<Option<Ratio>>>,
    vars: HashMap<Var, Ratio>,
    steps: usize,
    /// Whether it met a float.
    by_floats: bool,
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

    fn expr(&mut self, e: &Expr) -> Option<Ratio> {
        self.by_floats |= e.dtype().is_float();
        Some(match e.kind() {
            ExprKind::Int(v) if e.dtype() == DType::U64 && *v < 0 => return None,
            ExprKind::Int(v) => Ratio::from(*v),
            ExprKind::Float(v) => Ratio::from_float(*v)?,
            ExprKind::Var(v) => match self.vars.get(v) {
                Some(value) => *value,
                None => Integer::from(Dim::open(&dim::open_size(v)?)).into(),
            },
            ExprKind::Load(buffer, indices) => {
                let (at, _) = self.place(buffer, indices)?;
                *self.memory.get(&buffer.id())?.get(at)?.as_ref()?
            }
            ExprKind::Cast(a) => self.cast(a, e.dtype())?,
            ExprKind::Not(a) => Ratio::from(i64::from(self.number(a)? == 0)),
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
            ExprKind::Call(CallTarget::Intrin(intrin), args) => {
                let value = self.expr(args.first()?)?;
                match intrin {
                    Intrin::Abs => value.max(Ratio::from(0).minus(value)?)?,
                    Intrin::Floor => value.floor()?.into(),
                    Intrin::Ceil => value.ceil()?.into(),
                    Intrin::Trunc => value.trunc()?.into(),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    fn cast(&mut self, from: &Expr, to: DType) -> Option<Ratio> {
        let value = self.expr(from)?;
        match value.number() {
            _ if is_exact(to) => Some(value),
            Some(n) if to.is_bool() => Some(Ratio::from(i64::from(n != 0))),
            Some(n) if to.is_int() => {
                let from = if is_whole(from.dtype()) { from.dtype() } else { DType::I64 };
                Expr::int(n, from).cast(to).as_int().map(Ratio::from)
            }
            None if to.is_bool() => Some(Ratio::from(i64::from(!value.equals(0.into())?))),
            // Sizes fit both types, which the runtime sees to.
            None if matches!(to, DType::I64 | DType::I32) => value.trunc().map(Ratio::from),
            _ => None,
        }
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Option<Ratio> {
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
        if let (Some(x), Some(y), true) = (x.number(), y.number(), is_whole(dtype)) {
            let folded = fold_binary(op, &Expr::int(x, dtype), &Expr::int(y, dtype))?;
            return folded.as_int().map(Ratio::from);
        }
        match op {
            BinOp::Add => x.plus(y),
            BinOp::Sub => x.minus(y),
            BinOp::Mul => x.times(y),
            BinOp::Div => x.over(y),
            BinOp::FloorDiv | BinOp::TruncDiv | BinOp::FloorMod | BinOp::TruncMod => {
                let (x, y) = (x.integer()?, y.integer()?);
                let down = matches!(op, BinOp::FloorDiv | BinOp::FloorMod);
                let quotient = if down { x.floordiv(y)? } else { x.truncdiv(y)? };
                let is_quotient = matches!(op, BinOp::FloorDiv | BinOp::TruncDiv);
                let value = if is_quotient { quotient } else { x.minus(quotient.times(y)?)? };
                Some(value.into())
            }
            BinOp::Max => x.max(y),
            BinOp::Min => x.min(y),
            BinOp::Eq => truth(x.equals(y)?),
            BinOp::Ne => truth(!x.equals(y)?),
            BinOp::Lt => truth(x.is_less(y)?),
            BinOp::Ge => truth(!x.is_less(y)?),
            BinOp::Gt => truth(y.is_less(x)?),
            BinOp::Le => truth(!y.is_less(x)?),
            BinOp::And | BinOp::Or => None,
        }
    }
}

fn truth(v: bool) -> Option<Ratio> {
    Some(Ratio::from(i64::from(v)))
}
