//! Reads tensor functions in TVMScript: loops, blocks, conditions and stores over buffers.
//!
//! What is not understood is refused at its line, never skipped. Loops of every kind are read as loops
//! that run in order, indices as integers without a width.

use std::collections::HashMap;

use crate::graph::Call;
use crate::program::{Buffer, Expr, Program, Read, Stmt, Tick, Var};

/// A wrong line, by its number in the file.
pub type Parsed<T> = Result<T, (usize, String)>;

/// A line: its number, how far it is indented, and its words.
pub struct Line {
    pub number: usize,
    pub indent: usize,
    pub words: Vec<String>,
}

impl Line {
    /// The words from one on.
    pub fn from(&self, at: usize) -> &[String] {
        self.words.get(at..).unwrap_or_default()
    }
}

/// The words of a text.
///
/// # Errors
/// A character that is no part of the language.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    const PAIRS: [&str; 7] = ["//", "<=", ">=", "==", "!=", "->", "**"];
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let exponent = |k: usize, c: char| {
            (c == '-' || c == '+')
                && rest.starts_with(|c: char| c.is_ascii_digit())
                && rest[..k].ends_with(['e', 'E'])
        };
        let end = if c == '#' {
            break;
        } else if is_word(c) {
            let mut end = rest.char_indices().skip_while(|(k, c)| is_word(*c) || exponent(*k, *c));
            end.next().map_or(rest.len(), |(k, _)| k)
        } else if c == '"' {
            rest[1..].find('"').map(|k| k + 2).ok_or("a text without end")?
        } else if PAIRS.iter().any(|p| rest.starts_with(p)) {
            2
        } else if "()[]{}:,=<>+-*/%@&|^".contains(c) {
            1
        } else {
            return Err(format!("`{c}` is no part of the language"));
        };
        out.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    Ok(out)
}

/// The lines of a text whose first line has this number.
///
/// # Errors
/// See [`words`].
pub fn lines(text: &str, first: usize) -> Parsed<Vec<Line>> {
    let mut out: Vec<Line> = Vec::new();
    let mut open = 0i64;
    for (k, line) in text.lines().enumerate() {
        let number = first + k;
        let words = words(line).map_err(|e| (number, e))?;
        let depth: i64 = words
            .iter()
            .map(|w| match w.as_str() {
                "(" | "[" | "{" => 1,
                ")" | "]" | "}" => -1,
                _ => 0,
            })
            .sum();
        match out.last_mut() {
            Some(last) if open > 0 => last.words.extend(words),
            _ if words.is_empty() => {}
            _ => {
                let indent = line.len() - line.trim_start().len();
                out.push(Line { number, indent, words });
            }
        }
        open += depth;
    }
    Ok(out)
}

/// Deepest nesting of an expression, each level of operators counted, and of statements.
const DEEPEST: usize = 1500;

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Name {
    Value(Expr),
    Buffer(usize),
    /// A parameter that has no shape yet, by its place.
    Handle(usize),
}

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

/// Names and their values, for the expressions of certificates.
pub fn expression(text: &str, names: &[(String, Expr)]) -> Result<Vec<Expr>, String> {
    let words = words(text)?;
    let names = names.iter().map(|(n, e)| (n.clone(), Name::Value(e.clone()))).collect();
    let mut reader =
        Reader { words: &words, at: 0, depth: 0, strided: false, names: &names, buffers: &[] };
    let list = reader.list("")?;
    match reader.next() {
        "" => Ok(list),
        word => Err(format!("`{word}` stands after the end")),
    }
}

/// Reads the only function of a text, or its only graph function with the functions that it calls.
///
/// # Errors
/// The first line that is not understood.
pub fn function(text: &str, first_line: usize, first_var: Var) -> Parsed<Program> {
    let lines = lines(text, first_line)?;
    let is_graph = |k: &usize| lines[*k].words.starts_with(&["@".into(), "R.function".into()]);
    let graphs: Vec<usize> = (0..lines.len()).filter(is_graph).collect();
    let defs: Vec<usize> = (0..lines.len()).filter(|k| lines[*k].words[0] == "def").collect();
    let (head, is_graph) = match (&graphs[..], &defs[..]) {
        ([], [def]) => (*def, false),
        ([graph], _) => (graph + 1, true),
        (_, defs) => {
            return Err((first_line, format!("there are {} functions, not one", defs.len())));
        }
    };
    let Some(def) = lines.get(head).filter(|l| l.words[0] == "def") else {
        return Err((lines[head - 1].number, "no function follows".into()));
    };
    let program = Program { first: first_var, ..Program::default() };
    let mut parser = Parser { program, lines: &lines, line: def.number, call: None };
    let end = if is_graph { parser.graph(head) } else { parser.function(head) };
    let end = end.map_err(|e| (parser.line, e))?;
    match lines.get(end).filter(|_| !is_graph) {
        Some(line) => Err((line.number, "a line after the end of the function".into())),
        None => Ok(parser.program),
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
    fn function(&mut self, head: usize) -> Result<usize, String> {
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
            Some(call) => drop(call.open.push(v)),
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
            inside.names.insert(name.clone(), Name::Value(Expr::Var(v)));
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

/// Reads expressions.
pub(crate) struct Reader<'a> {
    pub words: &'a [String],
    pub at: usize,
    pub depth: usize,
    /// Whether buffers may say how their axes lie: the memory of a graph's tensors is whoever runs it's to
    /// choose, so that no two cells are one.
    pub strided: bool,
    pub names: &'a HashMap<String, Name>,
    pub buffers: &'a [Buffer],
}

impl Reader<'_> {
    pub fn peek(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    pub fn next(&mut self) -> &str {
        self.at += 1;
        self.words.get(self.at - 1).map_or("", String::as_str)
    }

    pub fn eat(&mut self, word: &str) -> bool {
        let is = self.peek() == word;
        self.at += usize::from(is);
        is
    }

    pub fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.eat(word) {
            return Ok(());
        }
        Err(format!("`{}` stands where `{word}` is expected", self.peek()))
    }

    pub fn end(&mut self, word: &str) -> Result<(), String> {
        if !word.is_empty() {
            self.expect(word)?;
        }
        if self.peek().is_empty() { Ok(()) } else { Err(format!("`{}` is too much", self.peek())) }
    }

    /// Expressions up to a word, which is not read.
    pub fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let mut out = Vec::new();
        while self.peek() != end && !self.peek().is_empty() {
            out.push(self.expr()?);
            if !self.eat(",") {
                break;
            }
        }
        Ok(out)
    }

    /// Arguments after the bracket, with the bracket at their end. Those with a name are refused, but for
    /// how a loop runs, which is not read, and the type of a value.
    fn arguments(&mut self) -> Result<Vec<Expr>, String> {
        let mut out = Vec::new();
        while self.peek() != ")" {
            match self.named()?.as_deref() {
                None => out.push(self.expr()?),
                Some("thread" | "annotations") => drop(self.skip()?),
                Some("dtype") => out.push(Expr::Literal(self.skip()?)),
                Some(name) => return Err(format!("`{name}` is not understood")),
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(out)
    }

    /// The name of an argument that has one.
    pub fn named(&mut self) -> Result<Option<String>, String> {
        if self.words.get(self.at + 1).is_none_or(|w| w != "=") {
            return Ok(None);
        }
        self.at += 2;
        Ok(Some(self.words[self.at - 2].clone()))
    }

    /// The words of an argument.
    pub fn skip(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut open = 0;
        loop {
            match self.peek() {
                "" => return Err("the line ends inside of brackets".into()),
                "," | ")" | "]" if open == 0 => return Ok(text),
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open -= 1,
                _ => {}
            }
            text += self.next();
        }
    }

    pub fn shape(&mut self) -> Result<(Vec<Expr>, String), String> {
        self.expect("(")?;
        self.shape_inside()
    }

    /// A shape and a type, up to the bracket's end.
    fn shape_inside(&mut self) -> Result<(Vec<Expr>, String), String> {
        self.expect("(")?;
        let shape = self.list(")")?;
        self.expect(")")?;
        let mut dtype = "float32".to_owned();
        while self.eat(",") {
            match self.named()?.as_deref() {
                None | Some("dtype") => dtype = self.skip()?.trim_matches('"').to_owned(),
                Some("scope" | "axis_separators") => drop(self.skip()?),
                Some("strides") if self.strided => drop(self.skip()?),
                _ => return Err(format!("`{}` is not understood", self.peek())),
            }
        }
        self.expect(")")?;
        Ok((shape, dtype))
    }

    pub fn expr(&mut self) -> Result<Expr, String> {
        self.binary(0)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression is too deep".into());
        }
        let e = self.at_level(level);
        self.depth -= 1;
        e
    }

    fn at_level(&mut self, level: usize) -> Result<Expr, String> {
        const LEVELS: [&[&str]; 5] = [
            &["or"],
            &["and"],
            &["<", "<=", ">", ">=", "==", "!="],
            &["+", "-"],
            &["*", "/", "//", "%"],
        ];
        let Some(ops) = LEVELS.get(level) else { return self.unary() };
        if level == 2 && self.eat("not") {
            return Ok(Expr::op("not", vec![self.binary(2)?]));
        }
        let mut left = self.binary(level + 1)?;
        let mut chain = 0;
        while ops.contains(&self.peek()) {
            chain += 1;
            if chain > DEEPEST {
                return Err("the expression is too long".into());
            }
            let op = self.next().to_owned();
            left = Expr::Op(op, vec![left, self.binary(level + 1)?]);
            if level == 2 && ops.contains(&self.peek()) {
                return Err("comparisons in a chain are not understood".into());
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        if !self.eat("-") {
            return self.atom();
        }
        Ok(match self.binary(usize::MAX)? {
            Expr::Int(v) => Expr::Int(-v),
            e => Expr::op("neg", vec![e]),
        })
    }

    fn atom(&mut self) -> Result<Expr, String> {
        let word = self.next().to_owned();
        if word == "(" {
            let e = self.expr()?;
            self.expect(")")?;
            return Ok(e);
        }
        if word.starts_with('"') || word.starts_with(|c: char| c.is_ascii_digit()) {
            let value = word.parse::<i128>();
            return Ok(value.map_or_else(|_| Expr::Literal(word.clone()), Expr::Int));
        }
        match (word.as_str(), self.names.get(&word)) {
            ("True", _) => return Ok(Expr::truth()),
            ("False", _) => return Ok(Expr::op("false", Vec::new())),
            (_, Some(Name::Value(e))) => return Ok(e.clone()),
            (_, Some(Name::Buffer(b))) => {
                self.expect("[")?;
                let at = self.list("]")?;
                self.expect("]")?;
                if at.len() != self.buffers.get(*b).map_or(0, |b| b.shape.len()) {
                    return Err(format!("`{word}` has another number of axes"));
                }
                return Ok(Expr::Load(*b, at));
            }
            _ => {}
        }
        if !word.starts_with("T.") || !self.eat("(") {
            return Err(format!("`{word}` is not known here"));
        }
        let args = self.arguments()?;
        Ok(call(&word, args))
    }
}

fn call(name: &str, mut args: Vec<Expr>) -> Expr {
    let is_type = ["T.int", "T.uint", "T.float", "T.bfloat"].iter().any(|t| name.starts_with(t));
    match args.as_mut_slice() {
        [Expr::Int(v)] if name == "T.int32" || name == "T.int64" => Expr::Int(*v),
        [e @ Expr::Op(..)] if name == "T.bool" => e.clone(),
        [e] if name == "T.likely" => e.clone(),
        [Expr::Literal(of), e] if name == "T.Cast" => {
            Expr::op(&format!("cast {}", of.trim_matches('"')), vec![e.clone()])
        }
        [e] if is_type => Expr::op(&format!("cast {}", &name[2..]), vec![e.clone()]),
        _ => Expr::Op(name.to_owned(), args),
    }
}
