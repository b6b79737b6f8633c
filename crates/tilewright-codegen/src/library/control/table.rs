//! A program as the table of numbers that `executor.c` runs.
//!
//! Blocks inside of others stand before them, so that operations name where they begin. Loops have
//! registers of their own for what is carried and stacked.

use tilewright_ir::list::ListOp;
use tilewright_ir::{Attr, Attrs, BinOp, DType, Dim, Error, Expr, ExprKind, Result};
use tilewright_runtime::plan::program::{Block, Operation, Program, Register, Slot, What};

use super::{element_type, type_number};

/// What operations say where they fail, each once.
pub(super) struct Messages {
    /// What comes before their results.
    base: usize,
    pub all: Vec<String>,
}

impl Messages {
    pub fn new(base: usize) -> Messages {
        Messages { base, all: Vec::new() }
    }

    /// The result of a run that ends with a message.
    pub fn result(&mut self, message: impl Into<String>) -> usize {
        let message = message.into();
        let known = self.all.iter().position(|m| *m == message);
        let at = known.unwrap_or_else(|| {
            self.all.push(message);
            self.all.len() - 1
        });
        self.base + at + 1
    }
}

pub(super) struct Table {
    /// Numbers, and names of `executor.c` for some.
    pub numbers: Vec<String>,
    /// Where the block begins that runs.
    pub body: usize,
    /// How many registers there are, with those of loops.
    pub registers: usize,
}

impl Table {
    /// That of a program; `places` says where its constants begin.
    pub fn new(program: &Program, places: &[usize], messages: &mut Messages) -> Result<Table> {
        let numbers = Vec::new();
        let registers = program.registers;
        let mut writer = Writer { program, places, messages, numbers, registers, used: 0 };
        let body = writer.block(&program.body)?;
        Ok(Table { numbers: writer.numbers, body, registers: writer.registers })
    }
}

struct Writer<'a> {
    program: &'a Program,
    places: &'a [usize],
    messages: &'a mut Messages,
    /// Finished blocks.
    numbers: Vec<String>,
    registers: usize,
    /// How many constants were taken.
    used: usize,
}

/// Operations of a block that is not finished.
#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn name(&mut self, name: &str) -> &mut Line {
        self.0.push(name.to_owned());
        self
    }

    fn number(&mut self, n: usize) -> &mut Line {
        self.0.push(n.to_string());
        self
    }

    fn list(&mut self, all: &[usize]) -> &mut Line {
        self.0.push(all.len().to_string());
        self.0.extend(all.iter().map(usize::to_string));
        self
    }

    fn pairs(&mut self, all: &[(usize, Slot)]) -> &mut Line {
        self.list(&all.iter().flat_map(|(at, slot)| [*at, *slot]).collect::<Vec<_>>())
    }

    fn element_type(&mut self, dtype: DType) -> &mut Line {
        self.0.extend(element_type(dtype));
        self
    }
}

impl Writer<'_> {
    /// Where a block begins.
    fn block(&mut self, block: &Block) -> Result<usize> {
        let mut line = Line::default();
        line.list(&block.results).number(block.operations.len());
        for operation in &block.operations {
            self.operation(operation, &mut line)?;
        }
        let at = self.numbers.len();
        self.numbers.extend(line.0);
        Ok(at)
    }

    /// Registers that no others use.
    fn fresh(&mut self, count: usize) -> Vec<Register> {
        self.registers += count;
        (self.registers - count..self.registers).collect()
    }

    fn operation(&mut self, Operation { what, free }: &Operation, line: &mut Line) -> Result<()> {
        match what {
            What::Constant(t, to) => {
                let place = self.places.get(self.used).copied();
                let place = place.ok_or_else(|| Error::internal("a constant has no place"))?;
                self.used += 1;
                line.name("CONSTANT").number(*to).number(place).element_type(t.dtype());
                line.list(t.shape());
            }
            What::Copy(from, to) => {
                line.name("COPY").number(*from).number(*to);
            }
            What::Piece { piece, args, sizes, outs } => {
                line.name("PIECE").number(*piece).list(args).list(sizes).list(outs);
            }
            What::Bind { of, name, dtype, shape, brings, why } => {
                let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                let message = format!("`{name}` is not {dtype} of shape {shape:?}{why}");
                let site = self.messages.result(message);
                line.name("BIND").number(*of).number(type_number(*dtype)).number(shape.len());
                line.number(site).pairs(brings).number(shape.len());
                shape.iter().try_for_each(|d| self.size(*d, line))?;
            }
            What::Sizes { of, name, shape, brings, why } => {
                let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                let site = self.messages.result(format!("`{name}` is no shape {shape:?}{why}"));
                line.name("SIZES").number(*of).number(shape.len()).number(site);
                line.pairs(brings).number(shape.len());
                shape.iter().try_for_each(|d| self.size(*d, line))?;
            }
            What::List { op, attrs, args, to } => self.list(*op, attrs, args, *to, line),
            What::If { cond, then, otherwise, outs } => {
                let site = self.messages.result("a condition is no single truth value");
                let (then, otherwise) = (self.block(then)?, self.block(otherwise)?);
                line.name("IF")
                    .number(*cond)
                    .number(site)
                    .number(then)
                    .number(otherwise)
                    .list(outs);
            }
            What::Loop { trip, cond, carried, params, captured, body, stacked, outs } => {
                let held = self.fresh(carried.len());
                let lists = self.fresh(stacked.len());
                let lost: Vec<Register> = carried
                    .iter()
                    .filter(|r| free.contains(r) && !captured.contains(r))
                    .copied()
                    .collect();
                let site = "a condition or number of iterations is no single integer";
                line.name("LOOP").number(self.messages.result(site));
                line.list(trip.as_slice()).list(cond.as_slice()).list(carried).list(&lost);
                line.list(&held).list(&lists).list(params).number(self.block(body)?);
                line.list(&left_in(body, params)).list(outs).element_type(DType::I64);
                for (dtype, shape) in stacked {
                    let site = "what the iterations of a loop give has different shapes";
                    line.number(self.messages.result(site)).element_type(*dtype);
                    line.number(shape.len() + 1);
                    shape.iter().try_for_each(|d| self.size(*d, line))?;
                }
            }
        }
        line.list(free);
        Ok(())
    }

    fn list(
        &mut self,
        op: ListOp,
        attrs: &Attrs,
        args: &[Register],
        to: Register,
        line: &mut Line,
    ) {
        let position = "there is no such position in the list";
        let (name, reason) = match op {
            ListOp::Of => ("OF", ""),
            ListOp::At => ("AT", position),
            ListOp::Insert => ("INSERT", position),
            ListOp::Erase => ("ERASE", position),
            ListOp::Length => ("LENGTH", "there is no list"),
            ListOp::Split => ("SPLIT", "the lengths of the parts do not fit the tensor"),
            ListOp::Join => ("JOIN", "the tensors cannot be joined"),
            ListOp::Nothing => ("NOTHING", ""),
            ListOp::Has => ("HAS", ""),
            ListOp::Get => ("GET", "the optional has no value"),
        };
        let site = if reason.is_empty() {
            0
        } else {
            self.messages.result(format!("{}: {reason}", op.name()))
        };
        let flag = match op {
            ListOp::Split => number_of("keepdims", 1, attrs),
            _ => number_of("new_axis", 0, attrs),
        };
        line.name("LIST").name(name).number(site);
        line.name(&number_of("axis", 0, attrs).to_string()).name(&flag.to_string()).number(to);
        line.element_type(op.scalar().unwrap_or(DType::BOOL)).list(args);
    }

    /// A size in prefix notation; -1 where it has a variable without a slot, which is never known.
    fn size(&self, d: Dim, line: &mut Line) -> Result<()> {
        if d.vars().iter().any(|v| self.program.slot(v).is_none()) {
            line.name("NUMBER").name("-1");
            return Ok(());
        }
        self.size_expr(&d.wide(), line)
    }

    fn size_expr(&self, e: &Expr, line: &mut Line) -> Result<()> {
        match e.kind() {
            ExprKind::Int(n) => {
                line.name("NUMBER").name(&format!("INT64_C({n})"));
            }
            ExprKind::Var(v) => {
                line.name("SLOT").number(self.program.slot(v).ok_or_else(|| no_size(e))?);
            }
            ExprKind::Cast(a) => self.size_expr(a, line)?,
            ExprKind::Binary(op, a, b) => {
                line.name(match op {
                    BinOp::Add => "ADD",
                    BinOp::Sub => "SUB",
                    BinOp::Mul => "MUL",
                    BinOp::FloorDiv => "DIV",
                    BinOp::FloorMod => "MOD",
                    BinOp::Min => "MIN",
                    BinOp::Max => "MAX",
                    _ => return Err(no_size(e)),
                });
                self.size_expr(a, line)?;
                self.size_expr(b, line)?;
            }
            _ => return Err(no_size(e)),
        }
        Ok(())
    }
}

/// The results of a loop's body that the body or its loop wrote: they lie there for one iteration.
fn left_in(body: &Block, params: &[Register]) -> Vec<Register> {
    let writes: Vec<Register> = body.operations.iter().flat_map(|o| o.what.writes()).collect();
    body.results.iter().filter(|r| params.contains(r) || writes.contains(r)).copied().collect()
}

fn number_of(key: &str, default: i64, attrs: &Attrs) -> i64 {
    match attrs.get(key) {
        Some(Attr::Int(n)) => *n,
        Some(Attr::Bool(b)) => i64::from(*b),
        _ => default,
    }
}

fn no_size(e: &Expr) -> Error {
    Error::unsupported(format!("the size `{e}` in a shared library"))
}
