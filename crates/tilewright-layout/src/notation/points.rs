//! An index map at every point of a constant shape: what is asked point by point, is answered exactly.
//!
//! Indices are compiled to a few instructions on a stack, since a map may have a million points.

use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind, Intrin, Result, Var};

use super::{Spec, dtype, refused};

/// Most points of a shape that are looked at one by one.
pub const MOST_POINTS: i64 = 1 << 22;

/// Physical indices are below this.
const MOST_INDEX: i64 = 1 << 40;

/// The offsets in memory of all points of a shape.
pub struct Grid {
    shape: Vec<i64>,
    /// The smallest box from zero that holds all physical indices.
    physical: Vec<i64>,
    /// By the logical index, the last one fastest.
    offsets: Vec<i64>,
}

impl Grid {
    /// Each point of a shape in a layout.
    ///
    /// # Errors
    /// `Refused` for a negative index, an index that is no arithmetic of the parameters, and more than
    /// [`MOST_POINTS`] points.
    pub fn new(spec: &Spec, shape: &[i64]) -> Result<Grid> {
        let map = &spec.map;
        let count = shape.iter().try_fold(1i64, |p, n| p.checked_mul(*n));
        let count = count.filter(|n| *n <= MOST_POINTS).ok_or_else(|| {
            refused(format!("more than {MOST_POINTS} points are not looked at one by one"))
        })?;
        let programs = map.indices.iter().map(|e| Program::compile(&map.params, e));
        let programs: Vec<Program> = programs.collect::<Result<_>>()?;
        let mut indices: Vec<Vec<i64>> = Vec::with_capacity(count as usize);
        let mut physical = vec![0; programs.len()];
        let mut stack = Vec::new();
        for at in (Points { at: vec![0; shape.len()], shape: shape.to_vec(), left: count }) {
            let mut cell = Vec::with_capacity(programs.len());
            for (program, extent) in programs.iter().zip(&mut physical) {
                let value = program.execute(&at, &mut stack).and_then(|v| match v {
                    ..0 => Err("is negative"),
                    v if v >= MOST_INDEX => Err("is too large"),
                    v => Ok(v),
                });
                let value = value.map_err(|why| {
                    let text = program.text();
                    refused(format!("at {at:?} the index `{text}` {why}"))
                })?;
                *extent = (*extent).max(value + 1);
                cell.push(value);
            }
            indices.push(cell);
        }
        let whole = spec.with_whole_tiles(shape);
        if whole != shape {
            let whole: Vec<Expr> = whole.iter().map(|n| Expr::int(*n, dtype())).collect();
            let boxes = map.on(&whole, false)?.physical;
            for (extent, n) in physical.iter_mut().zip(&boxes) {
                *extent = n.as_int().map_or(*extent, |n| n.max(*extent));
            }
        }
        let cells = physical.iter().try_fold(1i64, |p, n| p.checked_mul(*n));
        if cells.is_none() {
            return Err(refused("the physical box is too large"));
        }
        let offsets = indices
            .iter()
            .map(|cell| cell.iter().zip(&physical).fold(0, |sum, (i, n)| sum * n + i))
            .collect();
        Ok(Grid { shape: shape.to_vec(), physical, offsets })
    }

    /// The logical extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The physical extents.
    pub fn physical(&self) -> &[i64] {
        &self.physical
    }

    /// The number of cells of memory.
    pub fn cells(&self) -> i64 {
        self.physical.iter().product()
    }

    /// The offsets of all points, the last logical index fastest.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// All points, the last index fastest.
    pub fn points(&self) -> impl Iterator<Item = Vec<i64>> + use<> {
        let left = self.offsets.len() as i64;
        Points { at: vec![0; self.shape.len()], shape: self.shape.clone(), left }
    }

    /// The offset of a point of the shape.
    pub fn offset(&self, at: &[i64]) -> i64 {
        let flat = at.iter().zip(&self.shape).fold(0, |sum, (i, n)| sum * n + i);
        self.offsets.get(flat as usize).copied().unwrap_or(0)
    }

    /// The point with a number, counted with the last index fastest.
    pub fn point(&self, number: usize) -> Vec<i64> {
        let mut rest = number as i64;
        let mut at: Vec<i64> = self
            .shape
            .iter()
            .rev()
            .map(|n| {
                let digit = rest % n.max(&1);
                rest /= n.max(&1);
                digit
            })
            .collect();
        at.reverse();
        at
    }

    /// The number of the point in each cell, in the order of memory; `None` for padding. Where several
    /// points share a cell, that is the first.
    pub fn contents(&self) -> Vec<Option<usize>> {
        let mut cells = vec![None; self.cells() as usize];
        for (number, offset) in self.offsets.iter().enumerate().rev() {
            cells[*offset as usize] = Some(number);
        }
        cells
    }
}

/// The points of a box.
struct Points {
    at: Vec<i64>,
    shape: Vec<i64>,
    left: i64,
}

impl Iterator for Points {
    type Item = Vec<i64>;

    fn next(&mut self) -> Option<Vec<i64>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let now = self.at.clone();
        for (i, n) in self.at.iter_mut().zip(&self.shape).rev() {
            *i += 1;
            if *i < *n {
                break;
            }
            *i = 0;
        }
        Some(now)
    }
}

/// An index as instructions on a stack.
struct Program {
    index: Expr,
    steps: Vec<Instruction>,
}

enum Instruction {
    Number(i64),
    Param(usize),
    Binary(BinOp),
    Bits(Intrin),
}

/// What is left to do, last first: an expression, or the step of one whose parts are done.
enum Todo<'e> {
    Value(&'e Expr),
    Instruction(Instruction),
}

impl Program {
    fn compile(params: &[Var], e: &Expr) -> Result<Program> {
        let mut steps = Vec::new();
        let mut todo = vec![Todo::Value(e)];
        while let Some(next) = todo.pop() {
            let e = match next {
                Todo::Instruction(step) => {
                    steps.push(step);
                    continue;
                }
                Todo::Value(e) => e,
            };
            let param = e.as_var().and_then(|v| params.iter().position(|p| p == v));
            if let Some(at) = param {
                steps.push(Instruction::Param(at));
                continue;
            }
            match e.kind() {
                ExprKind::Int(v) => steps.push(Instruction::Number(*v)),
                ExprKind::Cast(a) if e.dtype().is_int() && a.dtype().is_int() => {
                    todo.push(Todo::Value(a));
                }
                ExprKind::Binary(op, a, b) if e.dtype().is_int() => {
                    todo.extend([
                        Todo::Instruction(Instruction::Binary(*op)),
                        Todo::Value(b),
                        Todo::Value(a),
                    ]);
                }
                ExprKind::Call(CallTarget::Intrin(op), args)
                    if args.len() == 2 && is_of_bits(*op) =>
                {
                    todo.push(Todo::Instruction(Instruction::Bits(*op)));
                    todo.extend([Todo::Value(&args[1]), Todo::Value(&args[0])]);
                }
                _ => {
                    let text = super::text_of(e);
                    return Err(refused(format!("`{text}` is no arithmetic of indices")));
                }
            }
        }
        Ok(Program { index: e.clone(), steps })
    }

    fn text(&self) -> String {
        super::text_of(&self.index)
    }

    /// The value at a point, or why there is none.
    fn execute(&self, at: &[i64], stack: &mut Vec<i64>) -> std::result::Result<i64, &'static str> {
        /// A program that was compiled takes no more from the stack than lies there.
        const UNBALANCED: &str = "is no arithmetic";
        const OVERFLOWS: &str = "overflows";
        stack.clear();
        for step in &self.steps {
            let value = match step {
                Instruction::Number(v) => *v,
                Instruction::Param(k) => *at.get(*k).ok_or(UNBALANCED)?,
                Instruction::Binary(op) => {
                    let (b, a) = (stack.pop().ok_or(UNBALANCED)?, stack.pop().ok_or(UNBALANCED)?);
                    let value = match op {
                        BinOp::Add => a.checked_add(b),
                        BinOp::Sub => a.checked_sub(b),
                        BinOp::Mul => a.checked_mul(b),
                        BinOp::Min => Some(a.min(b)),
                        BinOp::Max => Some(a.max(b)),
                        _ if b == 0 => return Err("divides by zero"),
                        BinOp::TruncDiv => a.checked_div(b),
                        BinOp::TruncMod => a.checked_rem(b),
                        _ if b < 0 => return Err("divides by a negative number"),
                        BinOp::FloorDiv => Some(a.div_euclid(b)),
                        BinOp::FloorMod => Some(a.rem_euclid(b)),
                        _ => return Err(UNBALANCED),
                    };
                    value.ok_or(OVERFLOWS)?
                }
                Instruction::Bits(op) => {
                    let (b, a) = (stack.pop().ok_or(UNBALANCED)?, stack.pop().ok_or(UNBALANCED)?);
                    let bits = || {
                        let bits = u32::try_from(b).ok().filter(|bits| *bits < i64::BITS);
                        bits.ok_or("shifts by less than 0 or more than 63 bits")
                    };
                    match op {
                        Intrin::BitAnd => a & b,
                        Intrin::BitOr => a | b,
                        Intrin::BitXor => a ^ b,
                        Intrin::Shl => a.checked_mul(1 << bits()?).ok_or(OVERFLOWS)?,
                        _ => a >> bits()?,
                    }
                }
            };
            stack.push(value);
        }
        stack.pop().ok_or(UNBALANCED)
    }
}

fn is_of_bits(op: Intrin) -> bool {
    matches!(op, Intrin::BitAnd | Intrin::BitOr | Intrin::BitXor | Intrin::Shl | Intrin::Shr)
}
