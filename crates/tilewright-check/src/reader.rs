//! Lines, words and expressions of TVMScript.

use std::collections::HashMap;

use crate::program::{Buffer, Expr};

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
pub(crate) const DEEPEST: usize = 1500;

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Name {
    Value(Expr),
    Buffer(usize),
    /// A parameter that has no shape yet, by its place.
    Handle(usize),
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
    pub fn arguments(&mut self) -> Result<Vec<Expr>, String> {
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
    pub fn shape_inside(&mut self) -> Result<(Vec<Expr>, String), String> {
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

    pub fn atom(&mut self) -> Result<Expr, String> {
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
