//! Reads tensor functions in TVMScript: loops, blocks, conditions and stores over buffers.
//!
//! What is not understood is refused at its line, never skipped. Loops of every kind are read as loops
//! that run in order, indices as integers without a width.

use std::collections::HashMap;

use crate::program::{Buffer, Expr, Program, Read, Stmt, Tick, Var};
use crate::reader::{DEEPEST, Line, Name, Reader};

/// Where a statement stands.
#[derive(Clone)]
pub(crate) struct Around {
    pub names: HashMap<String, Name>,
    loops: Vec<Var>,
    condition: Expr,
    time: Vec<Tick>,
    /// Conditions of the initialisation of the block around.
    first: Option<Expr>,
    /// The number of stores before the lines that stand together here.
    stores: usize,
}

impl Around {
    /// The start of a function that is called at this time.
    pub fn new(time: Vec<Tick>) -> Around {
        let (names, loops) = Default::default();
        Around { names, loops, condition: Expr::truth(), time, first: None, stores: 0 }
    }

    fn under(&self, condition: Expr) -> Around {
        Around { condition: self.condition.clone().and(condition), ..self.clone() }
    }
}

/// What a function is called with.
pub(crate) struct Call {
    /// Inputs, then outputs.
    pub args: Vec<usize>,
    pub scalars: std::vec::IntoIter<Expr>,
    /// Sizes of the function that shapes tell.
    pub open: Vec<Var>,
    /// Their values.
    pub told: HashMap<Var, Expr>,
    pub views: Vec<(Expr, Expr)>,
}

impl Call {
    /// Takes the sizes in the shape of a parameter from the shape of what is given.
    pub fn bind(&mut self, shape: Vec<Expr>, given: &[Expr], around: &mut Around) {
        for (formal, actual) in shape.into_iter().zip(given) {
            match formal {
                Expr::Var(v) if self.open.contains(&v) && !self.told.contains_key(&v) => {
                    for name in around.names.values_mut() {
                        if matches!(name, Name::Value(Expr::Var(w)) if *w == v) {
                            *name = Name::Value(actual.clone());
                        }
                    }
                    self.told.insert(v, actual.clone());
                }
                formal => self.views.push((formal, actual.clone())),
            }
        }
    }
}

pub(crate) struct Parser<'a> {
    pub program: Program,
    /// The line that is read.
    pub line: usize,
    pub lines: &'a [Line],
    /// What the function that is read is called with.
    pub call: Option<Call>,
}

impl Parser<'_> {
    pub fn reader<'r>(&'r self, words: &'r [String], around: &'r Around) -> Reader<'r> {
        Reader {
            words,
            at: 0,
            depth: 0,
            strided: false,
            names: &around.names,
            buffers: &self.program.buffers,
        }
    }

    /// Reads the function whose head is a line; the line after it.
    pub fn function(&mut self, head: usize) -> Result<usize, String> {
        let mut around = Around::new(Vec::new());
        self.parameters(&self.lines[head], &mut around)?;
        let end = self.suite(head, around)?;
        for at in 0..self.program.params() {
            let buffer = self.program.param(at);
            self.program.looks.push(buffer.ok_or("a parameter is not bound to a buffer")?);
        }
        Ok(end)
    }

    pub fn parameters(&mut self, line: &Line, around: &mut Around) -> Result<(), String> {
        // def name ( a : type , ... ) :
        let mut at = 3;
        let mut place = 0;
        self.program.name = line.words.get(1).cloned().unwrap_or_default();
        while line.words.get(at).is_some_and(|w| w != ")") {
            let name = line.words[at].clone();
            let kind = line.words.get(at + 2).map_or("", String::as_str).to_owned();
            at += 3;
            if kind == "T.handle" {
                around.names.insert(name, Name::Handle(place));
                place += 1;
            } else if kind == "T.Buffer" {
                let mut reader = self.reader(line.from(at), around);
                reader.strided = self.call.is_some();
                let (shape, dtype) = reader.shape()?;
                at += reader.at;
                self.buffer(name, shape, dtype, Some(place), around)?;
                place += 1;
            } else if kind.starts_with("T.int") {
                match &mut self.call {
                    Some(call) => {
                        let value = call.scalars.next().ok_or("a size is not given")?;
                        around.names.insert(name, Name::Value(value));
                    }
                    None => self.size(name, around),
                }
            } else {
                return Err(format!("`{name}` is `{kind}`, which is not understood"));
            }
            if line.words.get(at).is_some_and(|w| w == ",") {
                at += 1;
            }
        }
        match line.from(at + 1) {
            [colon] if colon == ":" => Ok(()),
            _ => Err("the head of the function is not understood".into()),
        }
    }

    pub fn size(&mut self, name: String, around: &mut Around) {
        let v = self.program.fresh(&name);
        match &mut self.call {
            Some(call) => call.open.push(v),
            None => self.program.sizes.push((name.clone(), v)),
        }
        around.names.insert(name, Name::Value(Expr::Var(v)));
    }

    pub fn buffer(
        &mut self,
        name: String,
        shape: Vec<Expr>,
        dtype: String,
        param: Option<usize>,
        around: &mut Around,
    ) -> Result<(), String> {
        let mut number = self.program.buffers.len();
        match (&mut self.call, param) {
            (Some(call), Some(param)) => {
                number = *call.args.get(param).ok_or("the call has fewer arguments")?;
                let given = &self.program.buffers[number];
                if given.dtype != dtype || given.shape.len() != shape.len() {
                    return Err(format!("`{name}` is given what has another type or rank"));
                }
                call.bind(shape, &given.shape, around);
            }
            _ => {
                let around = if param.is_some() { Vec::new() } else { around.loops.clone() };
                let name = name.clone();
                self.program.buffers.push(Buffer { name, dtype, shape, param, around });
            }
        }
        around.names.insert(name, Name::Buffer(number));
        Ok(())
    }

    /// The lines that are indented further than the one at `head`; the line after them.
    pub fn suite(&mut self, head: usize, mut around: Around) -> Result<usize, String> {
        let lines = self.lines;
        let mut at = head + 1;
        let mut position = 0;
        around.stores = self.program.stmts.len();
        let Some(indent) = lines.get(at).map(|l| l.indent).filter(|i| *i > lines[head].indent)
        else {
            return Err("nothing stands inside".into());
        };
        while let Some(line) = lines.get(at).filter(|l| l.indent == indent) {
            let mut inside = around.clone();
            inside.time.push(Tick::At(position));
            at = self.statement(at, inside, &mut around)?;
            position += 1;
            if lines.get(at).is_some_and(|l| l.indent > indent) {
                self.line = line.number;
                return Err("an indented line follows".into());
            }
        }
        if lines.get(at).is_some_and(|l| l.indent > lines[head].indent) {
            return Err("wrong indentation follows".into());
        }
        Ok(at)
    }

    /// Reads the statement at a line. `inside` is where it is, and `around` what the next ones see.
    fn statement(
        &mut self,
        at: usize,
        inside: Around,
        around: &mut Around,
    ) -> Result<usize, String> {
        let lines = self.lines;
        let line = &lines[at];
        self.line = line.number;
        if inside.time.len() > DEEPEST {
            return Err("the statements are too deep".into());
        }
        let word = |k: usize| line.words.get(k).map_or("", String::as_str);
        match (word(0), word(1)) {
            ("for", _) => {
                let inside = self.for_loop(line, inside)?;
                self.suite(at, inside)
            }
            ("if" | "elif", _) => {
                let mut reader = self.reader(line.from(1), &inside);
                let condition = reader.expr()?;
                reader.end(":")?;
                let mut yes = inside.under(condition.clone());
                yes.time.push(Tick::At(0));
                let mut next = self.suite(at, yes)?;
                let mut other = inside.under(Expr::op("not", vec![condition]));
                other.time.push(Tick::At(1));
                let follows = lines.get(next).filter(|l| l.indent == line.indent);
                match follows.map_or("", |l| l.words[0].as_str()) {
                    "else" => next = self.suite(next, other)?,
                    "elif" => next = self.statement(next, other, &mut inside.clone())?,
                    _ => {}
                }
                Ok(next)
            }
            ("with", "T.block" | "T.sblock") => {
                self.suite(at, Around { first: Some(Expr::truth()), ..inside })
            }
            ("with", "T.init") => {
                let first = inside.first.clone();
                let first = first.ok_or("an initialisation outside of blocks")?;
                self.suite(at, inside.under(first))
            }
            ("pass", _) => Ok(at + 1),
            ("T.reads" | "T.writes" | "T.func_attr" | "T.block_attr" | "T.sblock_attr", "(") => {
                Ok(at + 1)
            }
            ("T.evaluate", "(") if word(2).parse::<i64>().is_ok() && word(3) == ")" => Ok(at + 1),
            ("T.assume", "(") => {
                let mut reader = self.reader(line.from(2), &inside);
                let e = reader.expr()?;
                self.program.assumptions += 1;
                self.program.facts.extend(self.program.fact(e, inside.loops, inside.condition));
                Ok(at + 1)
            }
            ("T.where", "(") => {
                if inside.stores != self.program.stmts.len() {
                    return Err("a predicate after a store".into());
                }
                let mut reader = self.reader(line.from(2), &inside);
                let condition = reader.expr()?;
                reader.end(")")?;
                around.condition = around.condition.clone().and(condition);
                Ok(at + 1)
            }
            (name, ":") if word(3) == "=" => {
                let mut reader = self.reader(line.from(4), &inside);
                let value = reader.expr()?;
                reader.end("")?;
                if value.loads() {
                    return Err(format!("`{name}` depends on data"));
                }
                around.names.insert(name.to_owned(), Name::Value(value));
                Ok(at + 1)
            }
            (_, "=" | ",") => {
                self.definition(line, &inside, around)?;
                Ok(at + 1)
            }
            (_, "[") => {
                self.store(line, inside)?;
                Ok(at + 1)
            }
            (word, _) => Err(format!("a line that begins with `{word}` is not understood")),
        }
    }

    fn for_loop(&mut self, line: &Line, mut inside: Around) -> Result<Around, String> {
        let of = line.words.iter().position(|w| w == "in").ok_or("a loop without `in`")?;
        let names: Vec<&String> = line.words[1..of].iter().filter(|w| *w != ",").collect();
        let kind = line.words.get(of + 1).map_or("", String::as_str);
        const KINDS: [&str; 7] = [
            "range",
            "T.serial",
            "T.parallel",
            "T.vectorized",
            "T.unroll",
            "T.grid",
            "T.thread_binding",
        ];
        if !KINDS.contains(&kind) {
            return Err(format!("`{kind}` is no loop that is understood"));
        }
        let mut reader = self.reader(line.from(of + 2), &inside);
        reader.expect("(")?;
        let args = reader.arguments()?;
        reader.end(":")?;
        let ranges: Vec<(Expr, Expr)> = match (kind, args.as_slice()) {
            ("T.grid", extents) => extents.iter().map(|e| (Expr::Int(0), e.clone())).collect(),
            (_, [hi]) => vec![(Expr::Int(0), hi.clone())],
            (_, [lo, hi]) => vec![(lo.clone(), hi.clone())],
            _ => return Err("a loop with a step is not understood".into()),
        };
        if ranges.len() != names.len() {
            return Err("the loop has another number of variables".into());
        }
        for (name, (lo, hi)) in names.into_iter().zip(ranges) {
            let v = self.program.fresh(name);
            inside.loops.push(v);
            inside.time.push(Tick::Loop(v));
            inside = inside.under(Expr::op("<=", vec![lo, Expr::Var(v)]));
            inside = inside.under(Expr::op("<", vec![Expr::Var(v), hi]));
            inside.names.insert(name.to_owned(), Name::Value(Expr::Var(v)));
        }
        inside.first = None;
        Ok(inside)
    }

    fn definition(
        &mut self,
        line: &Line,
        inside: &Around,
        around: &mut Around,
    ) -> Result<(), String> {
        let eq = line.words.iter().position(|w| w == "=").ok_or("no `=`")?;
        let names: Vec<String> = line.words[..eq].iter().filter(|w| *w != ",").cloned().collect();
        let kind = line.words.get(eq + 1).cloned().unwrap_or_default();
        let mut reader = self.reader(line.from(eq + 2), inside);
        match (kind.as_str(), names.as_slice()) {
            ("T.match_buffer", [name]) => {
                reader.expect("(")?;
                let handle = reader.next().to_owned();
                let Some(Name::Handle(place)) = inside.names.get(&handle) else {
                    return Err(format!("`{handle}` is no handle"));
                };
                reader.expect(",")?;
                reader.strided = self.call.is_some();
                let (shape, dtype) = reader.shape_inside()?;
                reader.end("")?;
                let place = *place;
                if self.call.is_none() && self.program.param(place).is_some() {
                    return Err(format!("`{handle}` is bound twice"));
                }
                self.buffer(name.clone(), shape, dtype, Some(place), around)?;
            }
            ("T.alloc_buffer" | "T.sblock_alloc_buffer" | "T.decl_buffer", [name]) => {
                let (shape, dtype) = reader.shape()?;
                reader.end("")?;
                self.buffer(name.clone(), shape, dtype, None, around)?;
            }
            ("T.axis.spatial" | "T.axis.reduce" | "T.axis.S" | "T.axis.R", [name]) => {
                reader.expect("(")?;
                // A range in brackets, or an extent.
                let mut range = Vec::new();
                if reader.eat("(") {
                    range = reader.list(")")?;
                }
                if range.len() != 2 || !reader.eat(")") {
                    reader.at = 1;
                    reader.expr()?;
                    range = vec![Expr::Int(0)];
                }
                let first = range.swap_remove(0);
                reader.expect(",")?;
                let value = reader.expr()?;
                reader.expect(")")?;
                reader.end("")?;
                let reduces = kind.ends_with("reduce") || kind.ends_with('R');
                bind(around, name, value, reduces.then_some(first));
            }
            ("T.axis.remap", names) => {
                reader.expect("(")?;
                let kinds = reader.next().trim_matches('"').to_owned();
                reader.expect(",")?;
                reader.expect("[")?;
                let values = reader.list("]")?;
                reader.expect("]")?;
                reader.expect(")")?;
                reader.end("")?;
                if kinds.len() != names.len() || values.len() != names.len() {
                    return Err("the block has another number of variables".into());
                }
                for ((name, value), kind) in names.iter().zip(values).zip(kinds.chars()) {
                    bind(around, name, value, (kind == 'R').then_some(Expr::Int(0)));
                }
            }
            ("T.int32" | "T.int64", [name]) if reader.words == ["(", ")"] => {
                self.size(name.clone(), around);
            }
            _ => return Err(format!("`{kind}` is not understood")),
        }
        Ok(())
    }

    fn store(&mut self, line: &Line, inside: Around) -> Result<(), String> {
        let mut reader = self.reader(&line.words, &inside);
        let Expr::Load(buffer, indices) = reader.atom()? else {
            return Err(format!("`{}` is no buffer", line.words[0]));
        };
        reader.expect("=")?;
        let value = reader.expr()?;
        reader.end("")?;
        let mut reads = Vec::new();
        if indices.iter().any(Expr::loads) || inside.condition.loads() {
            return Err("an index or a condition depends on data".into());
        }
        self.reads(&value, Expr::truth(), &mut reads)?;
        let indices = self.program.cell(buffer, &indices);
        let Around { loops, condition, time, .. } = inside;
        let value = Some(value);
        let line = line.number;
        self.program.stmts.push(Stmt {
            line,
            loops,
            condition,
            time,
            buffer,
            indices,
            value,
            reads,
        });
        Ok(())
    }

    /// The loads of a value, and the conditions under which they are evaluated.
    fn reads(&self, e: &Expr, condition: Expr, out: &mut Vec<Read>) -> Result<(), String> {
        match e {
            Expr::Load(buffer, at) => {
                if at.iter().any(Expr::loads) {
                    return Err("an index depends on data".into());
                }
                out.push(Read {
                    buffer: *buffer,
                    indices: self.program.cell(*buffer, at),
                    condition,
                });
            }
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("T.if_then_else", [c, a, b]) if !c.loads() => {
                    self.reads(a, condition.clone().and(c.clone()), out)?;
                    self.reads(b, condition.and(Expr::op("not", vec![c.clone()])), out)?;
                }
                _ => args.iter().try_for_each(|a| self.reads(a, condition.clone(), out))?,
            },
            _ => {}
        }
        Ok(())
    }
}

/// A block's iteration variable: a name of a value, from which a reduction begins.
fn bind(around: &mut Around, name: &str, value: Expr, first: Option<Expr>) {
    if let Some(first) = first {
        let starts = Expr::op("==", vec![value.clone(), first]);
        around.first = Some(around.first.take().unwrap_or_else(Expr::truth).and(starts));
    }
    around.names.insert(name.to_owned(), Name::Value(value));
}
