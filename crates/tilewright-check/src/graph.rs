//! Reads graph functions: a call is the statements of what it calls, over the tensors that it is given.
//!
//! So a graph function is a program like any other one. Its tensors are memory, its constants are given like
//! parameters, and the caller looks at its results.

use std::collections::HashMap;

use crate::program::{Buffer, Constant, Expr, Program, Tick, Var};
use crate::reader::{Line, Parsed, Reader, lines, words};
use crate::script::{Around, Call, Parser};

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

/// A tensor that an expression names, or the numbers of a constant and their type.
enum Operand {
    Named(Vec<usize>),
    Numbers(Vec<usize>, Vec<String>, String),
}

/// Names of tensors and tuples.
type Tensors = HashMap<String, Vec<usize>>;

impl Parser<'_> {
    /// Reads the graph function whose head is a line; the line after it.
    pub fn graph(&mut self, head: usize) -> Result<usize, String> {
        let lines = self.lines;
        let inside = lines[head + 1..].iter().take_while(|l| l.indent > lines[head].indent);
        let inside: Vec<&Line> = inside.collect();
        let mut around = Around::new(Vec::new());
        for line in &inside {
            if let [name, "=", "T.int64", "(", ")"] = texts(&line.words)[..] {
                self.size(name.to_owned(), &mut around);
            }
        }
        let mut tensors = Tensors::new();
        self.program.name = lines[head].words.get(1).cloned().unwrap_or_default();
        let mut reader = self.reader(lines[head].from(3), &around);
        let mut params = Vec::new();
        while !matches!(reader.peek(), ")" | "") {
            let name = reader.next().to_owned();
            reader.expect(":")?;
            params.push((name, reader.tensor()?));
            reader.eat(",");
        }
        for (number, (name, (shape, dtype))) in params.into_iter().enumerate() {
            let buffer = self.tensor(shape, dtype, Some(number));
            tensors.insert(name, vec![buffer]);
            self.program.looks.push(buffer);
        }
        for (position, line) in inside.iter().enumerate() {
            self.line = line.number;
            let mut words = line.words.clone();
            if words.get(1).is_some_and(|w| w == ":") {
                // The type that a name has is that of its value.
                let mut reader = self.reader(line.from(2), &around);
                drop(reader.tensor()?);
                let read = reader.at;
                words.drain(1..2 + read);
            }
            match texts(&words)[..] {
                ["cls", "=", "Module"] | ["with", "R.dataflow", "(", ")", ":"] => {}
                ["R.func_attr" | "R.output", ..] | [_, "=", "T.int64", "(", ")"] => {}
                [name, "=", "R.call_tir", ..] => {
                    let outs = self.call(&words[3..], position, &tensors, &around)?;
                    tensors.insert(name.to_owned(), outs);
                    self.line = line.number;
                }
                [name, "=", ..] => {
                    let mut reader = self.reader(&words[2..], &around);
                    let value = reader.operand(&tensors)?;
                    reader.end("")?;
                    let value = self.known(value);
                    tensors.insert(name.to_owned(), value);
                }
                ["return", ..] => {
                    let mut reader = self.reader(&words[1..], &around);
                    let value = reader.operand(&tensors)?;
                    reader.end("")?;
                    let results = self.known(value);
                    self.program.looks.extend(results);
                    return Ok(head + 1 + inside.len());
                }
                _ => return Err("no statement of a graph that is understood".into()),
            }
        }
        Err("the graph function returns nothing".into())
    }

    fn tensor(&mut self, shape: Vec<Expr>, dtype: String, param: Option<usize>) -> usize {
        let (name, around) = Default::default();
        self.program.buffers.push(Buffer { name, dtype, shape, param, around });
        self.program.buffers.len() - 1
    }

    fn known(&mut self, operand: Operand) -> Vec<usize> {
        match operand {
            Operand::Named(tensors) => tensors,
            Operand::Numbers(shape, values, dtype) => {
                let extents = shape.iter().map(|n| Expr::Int(*n as i128)).collect();
                let buffer = self.tensor(extents, dtype, Some(usize::MAX));
                self.program.constants.push(Constant { buffer, shape, values });
                vec![buffer]
            }
        }
    }

    /// Reads a call, and the function that is called with its tensors; what it gives.
    fn call(
        &mut self,
        words: &[String],
        position: usize,
        tensors: &Tensors,
        around: &Around,
    ) -> Result<Vec<usize>, String> {
        let mut reader = self.reader(words, around);
        reader.expect("(")?;
        let callee = reader.next().trim_start_matches("cls.").to_owned();
        reader.expect(",")?;
        let inputs = reader.operands(tensors)?;
        let (mut types, mut scalars) = (Vec::new(), Vec::new());
        while reader.eat(",") {
            match reader.named()?.as_deref() {
                Some("out_sinfo") if reader.eat("[") => {
                    while !reader.eat("]") {
                        types.push(reader.tensor()?);
                        reader.eat(",");
                    }
                }
                Some("out_sinfo") => types.push(reader.tensor()?),
                Some("tir_vars") => {
                    ["R.shape", "(", "["].iter().try_for_each(|w| reader.expect(w))?;
                    scalars = reader.list("]")?;
                    ["]", ")"].iter().try_for_each(|w| reader.expect(w))?;
                }
                _ => return Err(format!("`{}` is not understood", reader.peek())),
            }
        }
        reader.end(")")?;
        let inputs: Vec<Vec<usize>> = inputs.into_iter().map(|o| self.known(o)).collect();
        let outs: Vec<usize> = types.into_iter().map(|(s, t)| self.tensor(s, t, None)).collect();
        let args: Vec<usize> = inputs.into_iter().flatten().chain(outs.iter().copied()).collect();
        let is_head = |l: &Line| l.words[0] == "def" && l.words.get(1) == Some(&callee);
        let head = self.lines.iter().position(is_head);
        let head = head.ok_or_else(|| format!("there is no function `{callee}`"))?;
        let (open, told, views) = Default::default();
        self.call = Some(Call { args, scalars: scalars.into_iter(), open, told, views });
        let mut inside = Around::new(vec![Tick::At(position)]);
        self.parameters(&self.lines[head], &mut inside)?;
        self.suite(head, inside)?;
        let call = self.call.take().ok_or("no call")?;
        for (formal, actual) in call.views {
            let formal = placed(&formal, &call.told);
            if formal != actual {
                self.program.views.push((self.line, formal, actual));
            }
        }
        Ok(outs)
    }
}

impl Reader<'_> {
    /// The shape and type of a tensor. A size's name may stand in quotes.
    fn tensor(&mut self) -> Result<(Vec<Expr>, String), String> {
        self.expect("R.Tensor")?;
        let (shape, dtype) = self.shape()?;
        let open = |e| match e {
            Expr::Literal(text) if text.starts_with('"') => {
                let words = words(text.trim_matches('"'))?;
                let mut reader = Reader { words: &words, at: 0, ..*self };
                let e = reader.expr()?;
                reader.end("").map(|()| e)
            }
            e => Ok(e),
        };
        Ok((shape.into_iter().map(open).collect::<Result<_, _>>()?, dtype))
    }

    fn operand(&mut self, tensors: &Tensors) -> Result<Operand, String> {
        if self.peek() == "(" {
            let mut all = Vec::new();
            for one in self.operands(tensors)? {
                match one {
                    Operand::Named(one) => all.extend(one),
                    Operand::Numbers(..) => return Err("a constant in a tuple".into()),
                }
            }
            return Ok(Operand::Named(all));
        }
        let name = self.next().to_owned();
        if name == "R.const" {
            let (mut shape, mut values) = Default::default();
            self.expect("(")?;
            self.numbers(0, &mut shape, &mut values)?;
            self.expect(",")?;
            let dtype = self.skip()?.trim_matches('"').to_owned();
            self.expect(")")?;
            if shape.iter().product::<usize>() != values.len() {
                return Err("a constant whose rows have different lengths".into());
            }
            return Ok(Operand::Numbers(shape, values, dtype));
        }
        let mut found = tensors.get(&name).cloned();
        if self.eat("[") {
            let at: Option<usize> = self.next().parse().ok();
            found = found.zip(at).and_then(|(f, at)| f.get(at).map(|b| vec![*b]));
            self.expect("]")?;
        }
        found.map(Operand::Named).ok_or_else(|| format!("`{name}` is no tensor that is known"))
    }

    /// Operands in brackets.
    fn operands(&mut self, tensors: &Tensors) -> Result<Vec<Operand>, String> {
        self.expect("(")?;
        let mut all = Vec::new();
        while !self.eat(")") {
            all.push(self.operand(tensors)?);
            if self.peek() != ")" {
                self.expect(",")?;
            }
        }
        Ok(all)
    }

    /// The numbers of a constant in lists of lists.
    fn numbers(
        &mut self,
        depth: usize,
        shape: &mut Vec<usize>,
        values: &mut Vec<String>,
    ) -> Result<(), String> {
        if !self.eat("[") {
            values.push(self.skip()?);
            return Ok(());
        }
        if depth > 64 {
            return Err("a constant has too many axes".into());
        }
        if shape.len() == depth {
            shape.push(0);
        }
        let mut length = 0;
        while !self.eat("]") {
            self.numbers(depth + 1, shape, values)?;
            length += 1;
            if self.peek() != "]" {
                self.expect(",")?;
            }
        }
        if shape[depth] != 0 && shape[depth] != length {
            return Err("a constant whose rows have different lengths".into());
        }
        shape[depth] = length;
        Ok(())
    }
}

/// An expression in which variables have values.
fn placed(e: &Expr, values: &HashMap<Var, Expr>) -> Expr {
    match e {
        Expr::Var(v) => values.get(v).unwrap_or(e).clone(),
        Expr::Op(op, args) => {
            Expr::Op(op.clone(), args.iter().map(|a| placed(a, values)).collect())
        }
        e => e.clone(),
    }
}

fn texts(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
