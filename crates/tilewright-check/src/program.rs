//! Functions as lists of statements: what each writes and reads, where and when.
//!
//! Iteration variables of blocks stand for their values, so that all is said of loops. A statement runs
//! at the points of its loops at which its condition holds, in the order of its `time`.

use std::collections::HashMap;

/// A loop variable or a size, by its number.
pub type Var = usize;

/// An expression. Operators go by their names; a cast is `cast` and the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Int(i128),
    /// A number or text that is no integer, as it is written.
    Literal(String),
    Var(Var),
    /// A buffer and its indices.
    Load(usize, Vec<Expr>),
    Op(String, Vec<Expr>),
}

impl Expr {
    pub fn op(name: &str, args: Vec<Expr>) -> Expr {
        Expr::Op(name.to_owned(), args)
    }

    pub fn and(self, other: Expr) -> Expr {
        match self {
            Expr::Op(op, _) if op == "true" => other,
            this => Expr::op("and", vec![this, other]),
        }
    }

    pub fn truth() -> Expr {
        Expr::op("true", Vec::new())
    }

    /// The number that it is.
    pub fn constant(&self) -> Option<f64> {
        match self {
            Expr::Int(v) => Some(*v as f64),
            Expr::Literal(text) => text.trim_matches('"').parse().ok(),
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("neg", [e]) => e.constant().map(|v| -v),
                (cast, [e]) if cast.starts_with("cast ") && cast != "cast bool" => e.constant(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The operands of a sum, product, minimum or maximum, and what changes nothing as the second one.
    pub fn neutral(&self) -> Option<(&Expr, &Expr, f64)> {
        let Expr::Op(op, args) = self else { return None };
        let [x, y] = args.as_slice() else { return None };
        let neutral = match op.as_str() {
            "+" | "-" => 0.0,
            "*" => 1.0,
            "T.max" => f64::NEG_INFINITY,
            "T.min" => f64::INFINITY,
            _ => return None,
        };
        Some((x, y, neutral))
    }

    /// Its value, where variables have values; conditions are 1 or 0.
    pub fn at(&self, place: &HashMap<Var, i128>) -> Option<i128> {
        let Expr::Op(op, args) = self else {
            return match self {
                Expr::Int(v) => Some(*v),
                Expr::Var(v) => place.get(v).copied(),
                _ => None,
            };
        };
        let args: Vec<i128> = args.iter().map(|a| a.at(place)).collect::<Option<_>>()?;
        match (op.as_str(), args.as_slice()) {
            ("true", []) => Some(1),
            ("false", []) => Some(0),
            ("neg", [a]) => a.checked_neg(),
            ("not", [a]) => Some(i128::from(*a == 0)),
            ("+", [a, b]) => a.checked_add(*b),
            ("-", [a, b]) => a.checked_sub(*b),
            ("*", [a, b]) => a.checked_mul(*b),
            ("//", [a, b]) if *b > 0 => Some(a.div_euclid(*b)),
            ("%", [a, b]) if *b > 0 => Some(a.rem_euclid(*b)),
            ("and", [a, b]) => Some(a & b),
            ("or", [a, b]) => Some(a | b),
            ("==", [a, b]) => Some(i128::from(a == b)),
            (">=", [a, b]) => Some(i128::from(a >= b)),
            _ => None,
        }
    }

    /// Whether it loads from a buffer.
    pub fn loads(&self) -> bool {
        match self {
            Expr::Load(..) => true,
            Expr::Op(_, args) => args.iter().any(Expr::loads),
            _ => false,
        }
    }
}

/// Memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<Expr>,
    /// Its number among what is given: parameters, results that are none, constants.
    pub param: Option<usize>,
    /// Loops around the allocation: the memory is another one in each iteration.
    pub around: Vec<Var>,
}

/// A moment: the place in a sequence, or the value of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tick {
    At(usize),
    Loop(Var),
}

/// A load: buffer, indices with those of the loops around its memory in front, and the condition under
/// which it is evaluated.
#[derive(Clone, Debug)]
pub struct Read {
    pub buffer: usize,
    pub indices: Vec<Expr>,
    pub condition: Expr,
}

/// A store; or, without a value, the caller who looks at a parameter at the end.
#[derive(Clone, Debug)]
pub struct Stmt {
    pub line: usize,
    pub loops: Vec<Var>,
    /// Ranges of loops and conditions around.
    pub condition: Expr,
    pub time: Vec<Tick>,
    /// What is written; for the caller, what is read.
    pub buffer: usize,
    pub indices: Vec<Expr>,
    pub value: Option<Expr>,
    /// The loads of the value, in order of the text.
    pub reads: Vec<Read>,
}

/// What an assumption says: the cells of a buffer hold a constant.
#[derive(Clone, Debug)]
pub struct Fact {
    pub loops: Vec<Var>,
    pub condition: Expr,
    pub buffer: usize,
    pub indices: Vec<Expr>,
    pub value: Expr,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub name: String,
    pub buffers: Vec<Buffer>,
    /// Sizes that are open, by name.
    pub sizes: Vec<(String, Var)>,
    pub stmts: Vec<Stmt>,
    /// Variables have numbers from here.
    pub first: Var,
    pub vars: Vec<String>,
    /// Assumptions, which the claim takes as given.
    pub assumptions: usize,
    /// What they say, where it is understood.
    pub facts: Vec<Fact>,
    /// What the caller looks at in the end: the parameters, then the results of a graph function.
    pub looks: Vec<usize>,
    /// Numbers in the text of a graph function.
    pub constants: Vec<Constant>,
    /// Shapes of parameters of functions that are called, and those of what is given for them.
    pub views: Vec<(usize, Expr, Expr)>,
}

/// A tensor whose values stand in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub buffer: usize,
    pub shape: Vec<usize>,
    pub values: Vec<String>,
}

impl Constant {
    /// The value at an index.
    pub fn value(&self, at: &[i128]) -> Option<&str> {
        let mut cell = 0;
        for (x, n) in at.iter().zip(&self.shape) {
            let x = usize::try_from(*x).ok().filter(|x| x < n)?;
            cell = cell * n + x;
        }
        self.values.get(cell).filter(|_| at.len() == self.shape.len()).map(String::as_str)
    }

    /// All indices, with variables for them and the value there.
    pub fn cells<'a>(
        &'a self,
        vars: &'a [Var],
    ) -> impl Iterator<Item = (HashMap<Var, i128>, &'a str)> {
        self.values.iter().enumerate().map(|(cell, value)| {
            let mut rest = cell;
            let mut place = HashMap::new();
            for (v, n) in vars.iter().zip(&self.shape).rev() {
                place.insert(*v, (rest % n) as i128);
                rest /= n;
            }
            (place, value.as_str())
        })
    }
}

impl Program {
    pub fn fresh(&mut self, name: &str) -> Var {
        self.vars.push(name.to_owned());
        self.first + self.vars.len() - 1
    }

    pub fn name(&self, v: Var) -> &str {
        self.vars.get(v.wrapping_sub(self.first)).map_or("?", String::as_str)
    }

    /// The number of parameters.
    pub fn params(&self) -> usize {
        let constant = |k: usize| self.constants.iter().any(|c| c.buffer == k);
        let given = self.buffers.iter().enumerate().filter(|(_, b)| b.param.is_some());
        given.filter(|(k, _)| !constant(*k)).count()
    }

    /// The number of the parameter's buffer.
    pub fn param(&self, at: usize) -> Option<usize> {
        self.buffers.iter().position(|b| b.param == Some(at))
    }

    /// Whether a statement writes a buffer.
    pub fn writes(&self, buffer: usize) -> bool {
        self.stmts.iter().any(|s| s.value.is_some() && s.buffer == buffer)
    }

    /// Assumptions that are used without a proof: not those about what the function itself writes.
    pub fn taken_as_given(&self) -> usize {
        self.assumptions - self.facts.iter().filter(|f| self.writes(f.buffer)).count()
    }

    /// What an assumption `... or B[i] == v` says at the points of loops.
    pub fn fact(&self, e: Expr, loops: Vec<Var>, mut condition: Expr) -> Option<Fact> {
        let mut open = vec![e];
        let mut known = None;
        while let Some(e) = open.pop() {
            match e {
                Expr::Op(op, args) if op == "or" => open.extend(args),
                Expr::Op(op, args) if op == "==" && args.iter().any(Expr::loads) => {
                    known = Some(<[Expr; 2]>::try_from(args).ok().filter(|_| known.is_none())?);
                }
                e => condition = condition.and(Expr::op("not", vec![e])),
            }
        }
        let [Expr::Load(buffer, indices), value] = known? else { return None };
        value.constant()?;
        let plain = !condition.loads() && !indices.iter().any(Expr::loads);
        plain.then_some(Fact { loops, condition, buffer, indices, value })
    }

    /// The indices by which the cells of a buffer are told apart.
    pub fn cell(&self, buffer: usize, at: &[Expr]) -> Vec<Expr> {
        let around = self.buffers[buffer].around.iter().map(|v| Expr::Var(*v));
        around.chain(at.iter().cloned()).collect()
    }

    /// Adds the caller who looks at a parameter at the end; its number.
    pub fn observe(&mut self, buffer: usize) -> usize {
        let shape = self.buffers[buffer].shape.clone();
        let loops: Vec<Var> = (0..shape.len()).map(|k| self.fresh(&format!("c{k}"))).collect();
        let mut condition = Expr::truth();
        for (v, extent) in loops.iter().zip(shape) {
            condition = condition
                .and(Expr::op("<=", vec![Expr::Int(0), Expr::Var(*v)]))
                .and(Expr::op("<", vec![Expr::Var(*v), extent]));
        }
        let indices: Vec<Expr> = loops.iter().map(|v| Expr::Var(*v)).collect();
        let read = Read { buffer, indices: indices.clone(), condition: Expr::truth() };
        let time = vec![Tick::At(usize::MAX)];
        let reads = vec![read];
        self.stmts.push(Stmt {
            line: 0,
            loops,
            condition,
            time,
            buffer,
            indices,
            value: None,
            reads,
        });
        self.stmts.len() - 1
    }
}
