//! Reading text in isl's notation; see `text`.

use std::fmt;

use crate::aff::{Aff, PwAff};
use crate::num::{Budget, Int, Res, Stop};
use crate::relation::{Dim, Relation, Space};

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong.
    pub message: String,
    /// The byte at which it shows.
    pub at: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at)
    }
}

impl std::error::Error for ParseError {}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Int(Int),
    Name(String),
    Sign(&'static str),
}

const SIGNS: [&str; 21] = [
    "->", "<=", ">=", "!=", "=", "<", ">", "{", "}", "[", "]", "(", ")", ",", ";", ":", "+", "-",
    "*", "/", "%",
];

#[derive(Clone, Debug)]
enum Expr {
    Int(Int),
    Name(String, usize),
    Add(Box<Expr>, Box<Expr>, Int),
    Mul(Box<Expr>, Int),
    Div(Box<Expr>, Int),
    Floor(Box<Expr>),
    Mod(Box<Expr>, Int),
}

#[derive(Clone, Debug)]
enum Formula {
    Bool(bool),
    Compare(Expr, &'static str, Expr),
    And(Vec<Formula>),
    Or(Vec<Formula>),
    Exists(Vec<(String, Option<Expr>)>, Box<Formula>),
}

type Parsed<T> = Result<T, ParseError>;

struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    end: usize,
}

impl Parser {
    fn new(text: &str) -> Parsed<Parser> {
        let mut tokens = Vec::new();
        let mut at = 0;
        'text: while let Some(c) = text[at..].chars().next() {
            if c.is_whitespace() {
                at += c.len_utf8();
            } else if c.is_ascii_digit() {
                let end = word_end(|c| c.is_ascii_digit(), text, at);
                let value = text[at..end].parse();
                let value = value
                    .map_err(|_| ParseError { message: "the number is too large".into(), at })?;
                tokens.push((Token::Int(value), at));
                at = end;
            } else if c.is_alphabetic() || c == '_' {
                let end = word_end(|c| c.is_alphanumeric() || c == '_' || c == '\'', text, at);
                tokens.push((Token::Name(text[at..end].to_owned()), at));
                at = end;
            } else {
                for sign in SIGNS {
                    if text[at..].starts_with(sign) {
                        tokens.push((Token::Sign(sign), at));
                        at += sign.len();
                        continue 'text;
                    }
                }
                return Err(ParseError { message: format!("unexpected `{c}`"), at });
            }
        }
        Ok(Parser { tokens, next: 0, end: text.len() })
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let at = self.tokens.get(self.next).map_or(self.end, |(_, at)| *at);
        Err(ParseError { message: message.into(), at })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(t, _)| t)
    }

    fn has(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(s)) if *s == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.has(sign);
        self.next += usize::from(found);
        found
    }

    fn want(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(format!("`{sign}` is missing")) }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(n)) if n == word);
        self.next += usize::from(found);
        found
    }

    /// A tuple; its name says nothing about the points.
    fn tuple(&mut self) -> Parsed<Vec<Expr>> {
        if let Some(Token::Name(_)) = self.peek() {
            self.next += 1;
        }
        self.want("[")?;
        let mut out = Vec::new();
        while !self.eat("]") {
            if !out.is_empty() {
                self.want(",")?;
            }
            out.push(self.expr()?);
        }
        Ok(out)
    }

    fn expr(&mut self) -> Parsed<Expr> {
        let mut all = if self.eat("-") {
            Expr::Mul(Box::new(self.term()?), -1)
        } else {
            self.eat("+");
            self.term()?
        };
        loop {
            let sign = if self.eat("+") {
                1
            } else if self.eat("-") {
                -1
            } else {
                return Ok(all);
            };
            all = Expr::Add(Box::new(all), Box::new(self.term()?), sign);
        }
    }

    fn int(&mut self) -> Parsed<Int> {
        match self.peek() {
            Some(Token::Int(v)) => {
                let v = *v;
                self.next += 1;
                Ok(v)
            }
            _ => self.fail("a number is missing"),
        }
    }

    fn divisor(&mut self) -> Parsed<Int> {
        match self.int()? {
            0 => self.fail("a division by zero"),
            k => Ok(k),
        }
    }

    fn term(&mut self) -> Parsed<Expr> {
        let mut out = match self.peek() {
            Some(Token::Int(v)) => {
                let v = *v;
                self.next += 1;
                let more = matches!(self.peek(), Some(Token::Name(n))
                    if !["and", "or", "mod"].contains(&n.as_str()))
                    || self.has("(");
                if self.eat("*") || more {
                    Expr::Mul(Box::new(self.factor()?), v)
                } else {
                    Expr::Int(v)
                }
            }
            _ => self.factor()?,
        };
        loop {
            if self.eat("/") {
                out = Expr::Div(Box::new(out), self.divisor()?);
            } else if self.eat("%") || self.word("mod") {
                out = Expr::Mod(Box::new(out), self.divisor()?);
            } else if self.eat("*") {
                out = Expr::Mul(Box::new(out), self.int()?);
            } else {
                return Ok(out);
            }
        }
    }

    fn factor(&mut self) -> Parsed<Expr> {
        if self.eat("(") {
            let inner = self.expr()?;
            self.want(")")?;
            return Ok(inner);
        }
        if self.word("floor") {
            self.want("(")?;
            let inner = self.expr()?;
            self.want(")")?;
            return Ok(Expr::Floor(Box::new(inner)));
        }
        match self.tokens.get(self.next) {
            Some((Token::Name(n), at)) => {
                let out = Expr::Name(n.clone(), *at);
                self.next += 1;
                Ok(out)
            }
            Some((Token::Int(v), _)) => {
                let v = *v;
                self.next += 1;
                Ok(Expr::Int(v))
            }
            _ => self.fail("a value is missing"),
        }
    }

    fn formula(&mut self) -> Parsed<Formula> {
        let mut any = vec![self.conjunction()?];
        while self.word("or") {
            any.push(self.conjunction()?);
        }
        Ok(if any.len() == 1 { any.swap_remove(0) } else { Formula::Or(any) })
    }

    fn conjunction(&mut self) -> Parsed<Formula> {
        let mut all = vec![self.atom()?];
        while self.word("and") {
            all.push(self.atom()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Formula::And(all) })
    }

    fn atom(&mut self) -> Parsed<Formula> {
        if self.word("true") {
            return Ok(Formula::Bool(true));
        }
        if self.word("false") {
            return Ok(Formula::Bool(false));
        }
        if self.word("exists") {
            self.want("(")?;
            let mut names = Vec::new();
            while !self.eat(":") {
                if !names.is_empty() {
                    self.want(",")?;
                }
                let Some(Token::Name(name)) = self.peek().cloned() else {
                    return self.fail("a name is missing");
                };
                self.next += 1;
                let value = if self.eat("=") { Some(self.expr()?) } else { None };
                names.push((name, value));
            }
            let inner = self.formula()?;
            self.want(")")?;
            return Ok(Formula::Exists(names, Box::new(inner)));
        }
        if self.has("(") {
            let here = self.next;
            self.next += 1;
            if let Ok(inner) = self.formula()
                && self.eat(")")
            {
                return Ok(inner);
            }
            self.next = here;
        }
        let mut all = Vec::new();
        let mut left = self.expr()?;
        loop {
            let signs = ["<=", ">=", "!=", "=", "<", ">"];
            let Some(sign) = signs.into_iter().find(|s| self.eat(s)) else { break };
            let right = self.expr()?;
            all.push(Formula::Compare(left, sign, right.clone()));
            left = right;
        }
        match all.len() {
            0 => self.fail("a comparison is missing"),
            1 => Ok(all.swap_remove(0)),
            _ => Ok(Formula::And(all)),
        }
    }
}

fn word_end(f: fn(char) -> bool, text: &str, at: usize) -> usize {
    text[at..].find(|c: char| !f(c)).map_or(text.len(), |n| at + n)
}

/// The names of columns.
struct Scope {
    names: Vec<String>,
}

enum Wrong {
    Text(ParseError),
    Stop(Stop),
}

impl From<Stop> for Wrong {
    fn from(stop: Stop) -> Wrong {
        Wrong::Stop(stop)
    }
}

impl Scope {
    fn aff(&self, e: &Expr) -> Result<Aff, Wrong> {
        Ok(match e {
            Expr::Int(v) => {
                let mut row = self.zeros();
                row[0] = *v;
                Aff::new(row)
            }
            Expr::Name(n, at) => {
                let Some(k) = self.names.iter().rposition(|m| m == n) else {
                    let message = format!("`{n}` is not declared");
                    return Err(Wrong::Text(ParseError { message, at: *at }));
                };
                let mut row = self.zeros();
                row[1 + k] = 1;
                Aff::new(row)
            }
            Expr::Add(a, b, sign) => self.aff(a)?.add_scaled(&self.aff(b)?, *sign)?,
            Expr::Mul(a, k) => self.aff(a)?.scale(*k)?,
            Expr::Div(a, k) => self.aff(a)?.scale_down(*k)?,
            Expr::Floor(a) => self.aff(a)?.floor()?,
            Expr::Mod(a, k) => self.aff(a)?.modulo(*k)?,
        })
    }

    fn zeros(&self) -> Vec<i128> {
        vec![0; 1 + self.names.len()]
    }

    fn space(&self) -> Space {
        Space::set(0, self.names.len())
    }

    fn formula(&mut self, f: &Formula, budget: &Budget) -> Result<Relation, Wrong> {
        let space = self.space();
        Ok(match f {
            Formula::Bool(true) => Relation::universe(&space),
            Formula::Bool(false) => Relation::empty(&space),
            Formula::Compare(a, sign, b) => {
                let (a, b) = (self.aff(a)?, self.aff(b)?);
                let (low, high) = if sign.starts_with('>') { (b, a) } else { (a, b) };
                let gap = high.add_scaled(&low, -1)?;
                // Fractions: the sign is that of the numerator.
                let gap = gap.scale(gap.denominator())?;
                let less = |gap: &Aff| -> Res<Relation> {
                    let mut one = vec![0; 1 + self.names.len()];
                    one[0] = -1;
                    gap.add_scaled(&Aff::new(one), 1)?.nonneg(&space)
                };
                match *sign {
                    "=" => gap.zero(&space)?,
                    "!=" => less(&gap)?.union(&less(&gap.scale(-1)?)?),
                    "<" | ">" => less(&gap)?,
                    _ => gap.nonneg(&space)?,
                }
            }
            Formula::And(parts) => {
                let mut all = Relation::universe(&space);
                for p in parts {
                    all = all.intersect(&self.formula(p, budget)?, budget)?;
                }
                all
            }
            Formula::Or(parts) => {
                let mut any = Relation::empty(&space);
                for p in parts {
                    any = any.union(&self.formula(p, budget)?);
                }
                any
            }
            Formula::Exists(names, inner) => {
                let outer = self.names.len();
                self.names.extend(names.iter().map(|(n, _)| n.clone()));
                let mut all = self.formula(inner, budget)?;
                for (k, (_, value)) in names.iter().enumerate() {
                    let Some(value) = value else { continue };
                    let mut own = vec![0; 1 + self.names.len()];
                    own[1 + outer + k] = 1;
                    let gap = self.aff(value)?.add_scaled(&Aff::new(own), -1)?;
                    all = all.intersect(&gap.zero(&self.space())?, budget)?;
                }
                self.names.truncate(outer);
                all.project_out(Dim::Out, outer, names.len(), budget)?
            }
        })
    }
}

/// One disjunct: what it is over, and where.
struct Disjunct {
    domain: Vec<Expr>,
    range: Option<Vec<Expr>>,
    condition: Option<Formula>,
}

/// A text as it is written.
struct Whole {
    params: Vec<String>,
    disjuncts: Vec<Disjunct>,
}

fn whole(text: &str) -> Parsed<Whole> {
    let mut p = Parser::new(text)?;
    let mut params = Vec::new();
    if p.has("[") {
        for e in p.tuple()? {
            match e {
                Expr::Name(n, _) => params.push(n),
                _ => return p.fail("a parameter is a name"),
            }
        }
        p.want("->")?;
    }
    p.want("{")?;
    let mut disjuncts = Vec::new();
    loop {
        let domain = p.tuple()?;
        let range = if p.eat("->") { Some(p.tuple()?) } else { None };
        let colon = p.eat(":");
        let stated = colon && !p.has(";") && !p.has("}");
        let condition = if stated { Some(p.formula()?) } else { None };
        disjuncts.push(Disjunct { domain, range, condition });
        if !p.eat(";") {
            break;
        }
    }
    p.want("}")?;
    match p.peek() {
        None => Ok(Whole { params, disjuncts }),
        Some(_) => p.fail("the text goes on"),
    }
}

fn failed(wrong: Wrong) -> ParseError {
    match wrong {
        Wrong::Text(e) => e,
        Wrong::Stop(s) => ParseError { message: s.to_string(), at: 0 },
    }
}

impl Scope {
    /// Declares the entries of a tuple: new names, and values that its columns have.
    fn declare(&mut self, tuple: &[Expr]) -> Vec<(usize, Expr)> {
        let mut values = Vec::new();
        for e in tuple {
            let at = self.names.len();
            match e {
                Expr::Name(n, _) if !self.names.contains(n) => self.names.push(n.clone()),
                _ => {
                    self.names.push(String::new());
                    values.push((at, e.clone()));
                }
            }
        }
        values
    }

    fn points(
        &mut self,
        values: Vec<(usize, Expr)>,
        condition: &Option<Formula>,
        budget: &Budget,
    ) -> Result<Relation, Wrong> {
        let mut all = match condition {
            Some(f) => self.formula(f, budget)?,
            None => Relation::universe(&self.space()),
        };
        for (at, value) in values {
            let mut own = vec![0; 1 + self.names.len()];
            own[1 + at] = 1;
            let gap = self.aff(&value)?.add_scaled(&Aff::new(own), -1)?;
            all = all.intersect(&gap.zero(&self.space())?, budget)?;
        }
        Ok(all)
    }
}

impl Relation {
    /// Reads a set or relation.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn parse(text: &str) -> Result<Relation, ParseError> {
        let whole = whole(text)?;
        let budget = Budget::unlimited();
        let mut all: Option<Relation> = None;
        for d in &whole.disjuncts {
            let mut scope = Scope { names: whole.params.clone() };
            let mut values = scope.declare(&d.domain);
            values.extend(d.range.iter().flat_map(|r| scope.declare(r)));
            let points = scope.points(values, &d.condition, &budget).map_err(failed)?;
            let (ins, outs) = match &d.range {
                Some(range) => (d.domain.len(), range.len()),
                None => (0, d.domain.len()),
            };
            let space = Space::named(whole.params.clone(), ins, outs);
            if all.as_ref().is_some_and(|a| a.space != space) {
                let message = "the parts have different dimensions".into();
                return Err(ParseError { message, at: 0 });
            }
            let one = Relation { space, parts: points.parts };
            all = Some(all.map_or(one.clone(), |a| a.union(&one)));
        }
        all.ok_or(ParseError { message: "there is nothing".into(), at: 0 })
    }
}

impl PwAff {
    /// Reads a function: `{ [i] -> [(floor((i)/3))] : i >= 0 }`.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn parse(text: &str) -> Result<PwAff, ParseError> {
        let whole = whole(text)?;
        let budget = Budget::unlimited();
        let mut out: Option<(Space, Vec<(Relation, Aff)>)> = None;
        for d in &whole.disjuncts {
            let (domain, value) = match &d.range {
                Some(range) => (&d.domain[..], range),
                None => (&[][..], &d.domain),
            };
            let [value] = &value[..] else {
                return Err(ParseError { message: "a function has one value".into(), at: 0 });
            };
            let mut scope = Scope { names: whole.params.clone() };
            let values = scope.declare(domain);
            let aff = scope.aff(value).map_err(failed)?;
            let points = scope.points(values, &d.condition, &budget).map_err(failed)?;
            let space = Space::named(whole.params.clone(), 0, domain.len());
            let set = Relation { space: space.clone(), parts: points.parts };
            match &mut out {
                None => out = Some((space, vec![(set, aff)])),
                Some((_, pieces)) => pieces.push((set, aff)),
            }
        }
        let (space, pieces) =
            out.ok_or(ParseError { message: "there is nothing".into(), at: 0 })?;
        Ok(PwAff::of_pieces(space, pieces))
    }
}
