//! An index at the points of a box: compiled to a few instructions on a stack, since there may be millions of points.

use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind, Intrin, Var};

/// The points of a box, the last index fastest.
pub(crate) struct Points {
    at: Vec<i64>,
    shape: Vec<i64>,
    left: i64,
}

impl Points {
    /// The first `count` points of a box, which has as many.
    pub(crate) fn new(shape: &[i64], count: i64) -> Points {
        Points { at: vec![0; shape.len()], shape: shape.to_vec(), left: count }
    }
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
pub(crate) struct Program {
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
    /// The program of an index of some parameters.
    ///
    /// # Errors
    /// The part of it that is no arithmetic of these.
    pub(crate) fn compile(params: &[Var], e: &Expr) -> Result<Program, Expr> {
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
                _ => return Err(e.clone()),
            }
        }
        Ok(Program { steps })
    }

    /// The value at a point, or why there is none.
    pub(crate) fn execute(&self, at: &[i64], stack: &mut Vec<i64>) -> Result<i64, &'static str> {
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
