//! Functions as lists of statements: what each writes and reads, where and when.
//!
//! A function is a tree ([`crate`] has an example):
//!
//! ```text
//! (function NAME ITEM ...)
//! (sizes n m)                        integers that are open, known by their names to both functions
//! (param A float32 n 4)              memory that is given, in order, with its type and extents
//! (constant w int8 (2 2) 1 2 3 4)    memory that is given and holds these numbers
//! (alloc P float32 n)                memory of an iteration of the loops around, which holds anything
//! (for i LOW HIGH ITEM ...)          for i = LOW, ..., HIGH - 1, in this order
//! (if CONDITION (ITEM ...) (ITEM ...))
//! (store P (i) VALUE)
//! (assume P (i) NUMBER CONDITION)     it is given that cells hold a number where the condition holds
//! (same EXTENT EXTENT)               extents that have to be equal
//! (result P)                         memory at which the caller looks in the end, as at that of parameters
//! ```
//!
//! An expression is a name, a number, `(A op B)`, `(load P i ...)` or `(op A ...)`; `(cast.int8 A)` converts.
//! Each loop and each memory has a name of its own; those of loops of the second function have a `'` behind
//! them in reasons. A statement runs at the points of its loops at which its condition holds, in the order
//! of its `time`.

use std::collections::HashMap;
use std::rc::Rc;

use crate::tree::{Fine, List, Placed, Tree, Word};

/// The name of a loop variable or a size.
pub type Var = Rc<str>;

/// An expression. Operators go by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Int(i128),
    /// A number that is no integer, as it is written.
    Literal(String),
    Var(Var),
    /// A buffer and its indices.
    Load(usize, Vec<Expr>),
    Op(String, Vec<Expr>),
}

/// Operators that stand between their operands.
pub const INFIX: [&str; 14] =
    ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"];

/// What operators begin with that convert to numbers.
pub const CASTS: [&str; 4] = ["cast.int", "cast.uint", "cast.float", "cast.bfloat"];

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

    /// `low <= v < high`.
    fn within(v: &Var, low: Expr, high: Expr) -> Expr {
        let above = Expr::op("<=", vec![low, Expr::Var(v.clone())]);
        above.and(Expr::op("<", vec![Expr::Var(v.clone()), high]))
    }

    /// Reads an expression; outside of functions words are variables, and nothing is loaded.
    pub(crate) fn read(tree: &Tree, scope: Option<&Reader>) -> Fine<Expr> {
        let all = |trees: &[Tree]| trees.iter().map(|t| Expr::read(t, scope)).collect::<Fine<_>>();
        Ok(match tree {
            Word(word) if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                let known =
                    scope.map_or_else(|| Some((*word).into()), |s| s.vars.get(word).cloned());
                Expr::Var(known.ok_or_else(|| format!("`{word}` is not known here"))?)
            }
            Word(word) => word.parse().map_or_else(|_| Expr::Literal((*word).into()), Expr::Int),
            List(_, inside) => match (inside.as_slice(), scope) {
                ([a, Word(op), b], _) if INFIX.contains(op) => {
                    Expr::op(op, vec![Expr::read(a, scope)?, Expr::read(b, scope)?])
                }
                ([Word("load"), Word(name), at @ ..], Some(scope)) => {
                    Expr::Load(scope.known(name, at.len())?, scope.exprs(at)?)
                }
                ([Word(op), args @ ..], _) if *op != "load" => Expr::op(op, all(args)?),
                _ => return Err("brackets without an operator".into()),
            },
        })
    }

    pub(crate) fn list(tree: &Tree) -> Fine<Vec<Expr>> {
        tree.list()?.1.iter().map(|tree| Expr::read(tree, None)).collect()
    }

    pub fn constant(&self) -> Option<f64> {
        match self {
            Expr::Int(v) => Some(*v as f64),
            Expr::Literal(text) => text.parse().ok(),
            Expr::Op(op, args) => match args.as_slice() {
                [e] if CASTS.iter().any(|cast| op.starts_with(cast)) => e.constant(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The operator and operands of a sum, product, minimum or maximum, and what changes nothing as the second one.
    pub fn neutral(&self) -> Option<(&str, &Expr, &Expr, f64)> {
        let Expr::Op(op, args) = self else { return None };
        let [x, y] = args.as_slice() else { return None };
        let neutral = match op.as_str() {
            "+" | "-" => 0.0,
            "*" => 1.0,
            "max" => f64::NEG_INFINITY,
            "min" => f64::INFINITY,
            _ => return None,
        };
        Some((op, x, y, neutral))
    }

    pub fn loads(&self) -> usize {
        match self {
            Expr::Load(..) => 1,
            Expr::Op(_, args) => args.iter().map(Expr::loads).sum(),
            _ => 0,
        }
    }
}

/// Memory.
#[derive(Clone, Debug)]
pub struct Buffer {
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

/// The cells of a buffer that something meets, at the points of loops at which a condition holds. Indices
/// begin with those of the loops around the buffer's memory.
#[derive(Clone, Debug)]
pub struct Access {
    pub loops: Vec<Var>,
    /// For statements, ranges of loops and conditions around.
    pub condition: Expr,
    pub buffer: usize,
    pub indices: Vec<Expr>,
}

/// A store; or the caller who looks at what is in memory at the end.
#[derive(Clone, Debug)]
pub struct Stmt {
    pub line: usize,
    /// What is written; for the caller, what is read.
    pub to: Access,
    pub time: Vec<Tick>,
    /// For the caller, a load of that.
    pub value: Expr,
    /// The loads of the value, in order of the text, each with the condition under which it is evaluated.
    pub reads: Vec<Access>,
}

/// What an assumption says: cells hold a constant.
#[derive(Clone, Debug)]
pub struct Fact {
    pub of: Access,
    pub value: Expr,
}

/// A tensor whose values stand in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub buffer: usize,
    pub shape: Vec<usize>,
    pub values: Vec<String>,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub name: String,
    pub buffers: Vec<Buffer>,
    pub sizes: Vec<Var>,
    /// The stores in order, then the looks of the caller.
    pub stmts: Vec<Stmt>,
    pub stores: usize,
    pub facts: Vec<Fact>,
    /// Assumptions that are taken as given: not those about what the function itself writes.
    pub assumptions: usize,
    pub params: usize,
    /// What the caller looks at in the end: the parameters, then results.
    pub looks: Vec<usize>,
    pub constants: Vec<Constant>,
    /// Extents that have to be equal, and their lines.
    pub equal: Vec<(usize, [Expr; 2])>,
}

impl Program {
    /// Reads a function; the names of its loops get a mark.
    pub(crate) fn read(tree: &Tree, mark: &'static str) -> Placed<Program> {
        let List(line, inside) = tree else { return Err((1, "no function".into())) };
        let [Word("function"), Word(name), items @ ..] = inside.as_slice() else {
            return Err((*line, "no function with a name".into()));
        };
        let (vars, buffers) = Default::default();
        let program = Program { name: (*name).to_owned(), ..Program::default() };
        let mut reader = Reader { program, line: *line, mark, vars, buffers };
        let (loops, time) = Default::default();
        let around = Around { loops, condition: Expr::truth(), time };
        reader.items(items, &around).map_err(|e| (reader.line, e))?;
        let mut program = reader.program;
        program.stores = program.stmts.len();
        program.assumptions = program.facts.iter().filter(|f| !program.writes(f.of.buffer)).count();
        for look in 0..program.looks.len() {
            program.look(look, mark);
        }
        Ok(program)
    }

    /// Adds the caller who looks at memory at the end.
    fn look(&mut self, look: usize, mark: &str) {
        let buffer = self.looks[look];
        let mut condition = Expr::truth();
        let mut loops = Vec::new();
        for (k, extent) in self.buffers[buffer].shape.iter().enumerate() {
            let v: Var = format!("out'{look}_{k}{mark}").into();
            condition = condition.and(Expr::within(&v, Expr::Int(0), extent.clone()));
            loops.push(v);
        }
        let indices: Vec<Expr> = loops.iter().cloned().map(Expr::Var).collect();
        let value = Expr::Load(buffer, indices.clone());
        let read = Access { loops: Vec::new(), condition: Expr::truth(), buffer, indices };
        let to = Access { loops, condition, ..read.clone() };
        let time = vec![Tick::At(usize::MAX)];
        self.stmts.push(Stmt { line: 0, to, time, value, reads: vec![read] });
    }

    /// The constant that has a number among what is given.
    pub(crate) fn constant(&self, number: usize) -> Fine<&Constant> {
        let found = self.constants.iter().find(|c| self.buffers[c.buffer].param == Some(number));
        found.ok_or_else(|| format!("there is no constant {number}"))
    }

    /// Whether a statement writes a buffer.
    pub fn writes(&self, buffer: usize) -> bool {
        self.stmts[..self.stores].iter().any(|s| s.to.buffer == buffer)
    }

    /// The indices by which the cells of a buffer are told apart.
    fn cell(&self, buffer: usize, at: impl IntoIterator<Item = Expr>) -> Vec<Expr> {
        let around = self.buffers[buffer].around.iter().cloned().map(Expr::Var);
        around.chain(at).collect()
    }
}

#[derive(Clone)]
struct Around {
    loops: Vec<Var>,
    condition: Expr,
    time: Vec<Tick>,
}

pub(crate) struct Reader<'a> {
    program: Program,
    line: usize,
    mark: &'static str,
    vars: HashMap<&'a str, Var>,
    buffers: HashMap<&'a str, usize>,
}

impl<'a> Reader<'a> {
    fn items(&mut self, items: &[Tree<'a>], around: &Around) -> Fine<()> {
        for (position, item) in items.iter().enumerate() {
            let mut inside = around.clone();
            inside.time.push(Tick::At(position));
            self.item(item, inside)?;
        }
        Ok(())
    }

    fn item(&mut self, item: &Tree<'a>, mut inside: Around) -> Fine<()> {
        let (line, parts) = item.list()?;
        self.line = line;
        match parts {
            [Word("sizes"), names @ ..] => {
                for name in names {
                    let size = self.var(name, "")?;
                    self.program.sizes.push(size);
                }
            }
            [Word("param"), Word(name), Word(dtype), shape @ ..] => {
                if self.program.looks.len() != self.program.params {
                    return Err("a parameter after a result".into());
                }
                let number = Some(self.program.params);
                let buffer = self.buffer(name, dtype, shape, number)?;
                self.program.params += 1;
                self.program.looks.push(buffer);
            }
            [Word("constant"), Word(name), Word(dtype), List(_, shape), values @ ..] => {
                let buffer = self.buffer(name, dtype, shape, Some(usize::MAX))?;
                let shape = shape.iter().map(Tree::number).collect::<Fine<Vec<usize>>>()?;
                let cells = shape.iter().try_fold(1usize, |cells, n| cells.checked_mul(*n));
                let word = |tree: &Tree| match tree {
                    Word(word) => Ok((*word).to_owned()),
                    List(..) => Err("a list in a constant".to_owned()),
                };
                let values = values.iter().map(word).collect::<Fine<Vec<_>>>()?;
                if cells != Some(values.len()) {
                    return Err(format!("there are {} numbers", values.len()));
                }
                self.program.constants.push(Constant { buffer, shape, values });
            }
            [Word("alloc"), Word(name), Word(dtype), shape @ ..] => {
                let buffer = self.buffer(name, dtype, shape, None)?;
                self.program.buffers[buffer].around = inside.loops;
            }
            [Word("for"), name, low, high, body @ ..] => {
                let (low, high) = (self.index(low)?, self.index(high)?);
                let v = self.var(name, self.mark)?;
                inside.condition = inside.condition.and(Expr::within(&v, low, high));
                inside.loops.push(v.clone());
                inside.time.push(Tick::Loop(v));
                self.items(body, &inside)?;
            }
            [Word("if"), condition, List(_, yes), List(_, no)] => {
                let condition = self.index(condition)?;
                let not = Expr::op("not", vec![condition.clone()]);
                for (k, (condition, items)) in [(condition, yes), (not, no)].into_iter().enumerate()
                {
                    let mut inside = inside.clone();
                    inside.condition = inside.condition.and(condition);
                    inside.time.push(Tick::At(k));
                    self.items(items, &inside)?;
                }
            }
            [Word("store"), Word(name), List(_, at), value] => {
                let (buffer, at) = (self.known(name, at.len())?, self.exprs(at)?);
                let value = Expr::read(value, Some(self))?;
                let mut reads = Vec::new();
                self.reads(&value, Expr::truth(), &mut reads);
                let indices = self.program.cell(buffer, at);
                let Around { loops, condition, time } = inside;
                let to = Access { loops, condition, buffer, indices };
                self.program.stmts.push(Stmt { line, to, time, value, reads });
            }
            [Word("assume"), Word(name), List(_, at), value, condition] => {
                let buffer = self.known(name, at.len())?;
                let condition = inside.condition.and(self.index(condition)?);
                let (indices, value) = (self.exprs(at)?, self.index(value)?);
                if value.constant().is_none() {
                    return Err("an assumption of what is no number".into());
                }
                let of = Access { loops: inside.loops, condition, buffer, indices };
                self.program.facts.push(Fact { of, value });
            }
            [Word("same"), x, y] => {
                let extents = [self.index(x)?, self.index(y)?];
                self.program.equal.push((line, extents));
            }
            [Word("result"), Word(name)] => {
                let buffer =
                    *self.buffers.get(name).ok_or_else(|| format!("no buffer `{name}`"))?;
                if !self.program.buffers[buffer].around.is_empty() {
                    return Err("a result is the memory of a loop".into());
                }
                self.program.looks.push(buffer);
            }
            _ => return Err("no item of a function that is understood".into()),
        }
        Ok(())
    }

    fn var(&mut self, name: &Tree<'a>, mark: &str) -> Fine<Var> {
        let Word(name) = name else { return Err("a list where a name is expected".into()) };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if !name.chars().all(is_name) || name.starts_with(|c: char| c.is_numeric()) {
            return Err(format!("`{name}` is no name"));
        }
        let v: Var = format!("{name}{mark}").into();
        match self.vars.insert(name, v.clone()) {
            Some(_) => Err(format!("there are two variables `{name}`")),
            None => Ok(v),
        }
    }

    fn buffer(
        &mut self,
        name: &'a str,
        dtype: &str,
        shape: &[Tree],
        param: Option<usize>,
    ) -> Fine<usize> {
        let (number, shape) = (self.program.buffers.len(), self.exprs(shape)?);
        let (dtype, around) = (dtype.to_owned(), Vec::new());
        self.program.buffers.push(Buffer { dtype, shape, param, around });
        match self.buffers.insert(name, number) {
            Some(_) => Err(format!("there are two buffers `{name}`")),
            None => Ok(number),
        }
    }

    /// A buffer by its name, which has so many axes.
    fn known(&self, name: &str, rank: usize) -> Fine<usize> {
        let buffer = self.buffers.get(name).copied();
        let buffer = buffer.filter(|b| self.program.buffers[*b].shape.len() == rank);
        buffer.ok_or_else(|| format!("`{name}` is no buffer of {rank} axes"))
    }

    /// An index or a condition, which does not depend on data.
    fn index(&self, tree: &Tree) -> Fine<Expr> {
        match Expr::read(tree, Some(self))? {
            e if e.loads() == 0 => Ok(e),
            _ => Err("an index or a condition depends on data".into()),
        }
    }

    fn exprs(&self, trees: &[Tree]) -> Fine<Vec<Expr>> {
        trees.iter().map(|t| self.index(t)).collect()
    }

    /// The loads of a value, and the conditions under which they are evaluated.
    fn reads(&self, e: &Expr, condition: Expr, out: &mut Vec<Access>) {
        match e {
            Expr::Load(buffer, at) => {
                let indices = self.program.cell(*buffer, at.iter().cloned());
                out.push(Access { loops: Vec::new(), condition, buffer: *buffer, indices });
            }
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("if_then_else", [c, a, b]) if c.loads() == 0 => {
                    self.reads(a, condition.clone().and(c.clone()), out);
                    self.reads(b, condition.and(Expr::op("not", vec![c.clone()])), out);
                }
                _ => args.iter().for_each(|a| self.reads(a, condition.clone(), out)),
            },
            _ => {}
        }
    }
}
