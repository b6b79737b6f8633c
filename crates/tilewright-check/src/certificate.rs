//! The file: two functions, and what shows that they compute the same.
//!
//! ```text
//! tilewright certificate 1
//! before
//! @T.prim_func ...
//! after
//! @T.prim_func ...
//! because
//! layout 0 (i, j) to (i, j // 4, j % 4) and back (c0, c1, c2) to (c0, c1 * 4 + c2)
//! reads before 1.0 (i, k)
//! from 0 (i) where k == 0
//! from 1 (i, k - 1) where k >= 1
//! known 0 (i, k) where k >= 8
//! given where False
//! passes before 1.0 (i, k) where k >= 8
//! equal before 1.0 (i, k) after 1.0 (io, ii, k1) where i == io * 4 + ii
//! steps
//! (sum 0:1 3:1)
//! go
//! ```
//!
//! Statements are counted in the order of the text, and `out2` is the caller who looks at parameter 2 at
//! the end. `1.0` is the first load of statement 1. `known` is what an assumption says, by its number in the text;
//! `passes` says that a store gives its first operand on, since the second one changes nothing.

use crate::graph::function;
use crate::program::{Constant, Expr, Fact, Program, Var};
use crate::reader::{Parsed, expression};

/// A load of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub stmt: usize,
    pub read: usize,
}

/// Instances of a load that get their value from one place.
#[derive(Clone, Debug)]
pub struct Piece {
    pub line: usize,
    pub from: From,
    pub condition: Expr,
}

/// The place of a value.
#[derive(Clone, Debug)]
pub enum From {
    /// A store and the values of its loops.
    Store(usize, Vec<Expr>),
    /// An assumption and the values of its loops.
    Known(usize, Vec<Expr>),
    /// What the function was given.
    Given,
}

/// Instances of a store that store their first operand.
#[derive(Clone, Debug)]
pub struct Pass {
    pub line: usize,
    pub side: usize,
    pub stmt: usize,
    pub condition: Expr,
}

/// Where a load gets its values from. Expressions are of the loops of its statement.
#[derive(Clone, Debug)]
pub struct Flow {
    pub line: usize,
    pub side: usize,
    pub load: Load,
    pub pieces: Vec<Piece>,
}

/// Loads that have one value where a condition of the loops of both holds.
#[derive(Clone, Debug)]
pub struct Claim {
    pub line: usize,
    pub loads: [Load; 2],
    pub condition: Expr,
}

/// A parameter that lies in another way: the map of indices, and its inverse.
#[derive(Clone, Debug)]
pub struct Layout {
    pub line: usize,
    pub param: usize,
    pub from: Vec<Var>,
    pub map: Vec<Expr>,
    pub cells: Vec<Var>,
    pub inverse: Vec<Expr>,
}

/// Where the cells of a constant of the second function lie in one of the first, where a condition holds.
#[derive(Clone, Debug)]
pub struct Pack {
    pub line: usize,
    /// The number of that of the first function, and of the second.
    pub constants: [usize; 2],
    pub into: Vec<Var>,
    pub map: Vec<Expr>,
    pub condition: Expr,
}

/// A certificate without its steps.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub programs: [Program; 2],
    pub texts: [String; 2],
    pub layouts: Vec<Layout>,
    pub packs: Vec<Pack>,
    /// Lines that say what cells of constants hold, and the facts of the second function that they are.
    pub cells: Vec<(usize, usize)>,
    pub flows: Vec<Flow>,
    pub passes: Vec<Pass>,
    pub claims: Vec<Claim>,
    /// The names of variables that only the layouts have.
    pub names: Vec<String>,
}

/// What names stand for.
type Names = Vec<(String, Expr)>;

/// The first line of a certificate.
pub const HEAD: &str = "tilewright certificate 1";
/// Variables of the second function, and those of layouts, have numbers from here.
const SECOND: Var = Var::MAX / 4;
const OTHERS: Var = Var::MAX / 2;

/// The variables of the axes of constants.
pub fn axes(rank: usize) -> Vec<Var> {
    (0..rank).map(|k| Var::MAX - k).collect()
}

/// The two functions, with the caller at their ends.
///
/// # Errors
/// The first line that is not understood.
pub fn programs(texts: [&str; 2], lines: [usize; 2]) -> Parsed<[Program; 2]> {
    let [mut a, mut b] = [function(texts[0], lines[0], 0)?, function(texts[1], lines[1], SECOND)?];
    if a.params() != b.params() || a.looks.len() != b.looks.len() {
        return Err((lines[1], "the functions have different parameters or results".into()));
    }
    for at in 0..a.looks.len() {
        let (x, y) = (a.looks[at], b.looks[at]);
        if a.buffers[x].dtype != b.buffers[y].dtype {
            return Err((lines[1], format!("parameter {at} has two types")));
        }
        a.observe(x);
        b.observe(y);
    }
    // Constants of the same numbers are one, wherever they stand.
    let mut known: Vec<(Constant, String)> = Vec::new();
    for p in [&mut a, &mut b] {
        for c in &p.constants {
            let buffer = &mut p.buffers[c.buffer];
            let this = (Constant { buffer: 0, ..c.clone() }, buffer.dtype.clone());
            let at = known.iter().position(|k| *k == this).unwrap_or(known.len());
            known.extend((at == known.len()).then_some(this));
            buffer.param = Some(p.looks.len() + at);
        }
    }
    Ok([a, b])
}

/// The number of stores of a program, after which come the looks of the caller.
pub fn stores(p: &Program) -> usize {
    p.stmts.iter().filter(|s| s.value.is_some()).count()
}

impl Certificate {
    /// Reads a certificate whose first line has a number; with it come the lines of its steps, each with its
    /// own.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn parse(lines: &[&str], first: usize) -> Parsed<(Certificate, Vec<(usize, String)>)> {
        let find = |word: &str| {
            let at = lines.iter().position(|l| *l == word);
            at.ok_or_else(|| (first, format!("the certificate has no line `{word}`")))
        };
        let [before, after, because, steps] =
            [find("before")?, find("after")?, find("because")?, find("steps")?];
        if lines.first() != Some(&HEAD) || before != 1 {
            return Err((first, format!("`{HEAD}` and `before` do not come first")));
        }
        if !(before < after && after < because && because < steps) {
            return Err((first + because, "the parts are in another order".into()));
        }
        let texts = [lines[before + 1..after].join("\n"), lines[after + 1..because].join("\n")];
        let programs = programs([&texts[0], &texts[1]], [first + before + 1, first + after + 1])?;
        let (layouts, packs, cells, flows, passes, claims, names) = Default::default();
        let mut certificate =
            Certificate { programs, texts, layouts, packs, cells, flows, passes, claims, names };
        for (k, line) in lines.iter().enumerate().take(steps).skip(because + 1) {
            certificate.line(first + k, line).map_err(|e| (first + k, e))?;
        }
        let steps = lines.iter().enumerate().skip(steps + 1);
        let steps = steps.filter(|(_, l)| !l.trim().is_empty());
        Ok((certificate, steps.map(|(k, l)| (first + k, (*l).to_owned())).collect()))
    }

    /// Reads a line of the reasons.
    ///
    /// # Errors
    /// What is not understood.
    pub fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').ok_or("a line of one word")?;
        let (rest, condition) = match rest.split_once(" where ") {
            Some((rest, condition)) => (rest, Some(condition)),
            None => (rest, None),
        };
        let of = |c: Option<&str>, names: &[(String, Expr)]| match expression(
            c.ok_or("no `where`")?,
            names,
        )?
        .as_slice()
        {
            [one] => Ok(one.clone()),
            _ => Err("a condition is one expression".to_owned()),
        };
        match word {
            "layout" => {
                let layout = self.layout(number, rest)?;
                self.layouts.push(layout);
            }
            "packs" => {
                let wrong = "it is `packs FROM INTO (i, ...) from (e, ...) where CONDITION`";
                let mut words = rest.splitn(3, ' ');
                let constants =
                    [words.next(), words.next()].map(|w| w.and_then(|w| w.parse().ok()));
                let ([Some(p), Some(q)], Some(rest)) = (constants, words.next()) else {
                    return Err(wrong.into());
                };
                let (into, from) = rest.split_once(" from ").ok_or(wrong)?;
                let (into, names) = self.axes(into)?;
                let map = expression(bracket(from)?, &names)?;
                let condition = of(condition, &names)?;
                self.packs.push(Pack { line: number, constants: [p, q], into, map, condition });
            }
            "cells" => {
                let wrong = "it is `cells CONSTANT (i, ...) is NUMBER where CONDITION`";
                let (constant, rest) = rest.split_once(' ').ok_or(wrong)?;
                let (from, value) = rest.split_once(" is ").ok_or(wrong)?;
                let (loops, names) = self.axes(from)?;
                let condition = of(condition, &names)?;
                let value = of(Some(value), &names)?;
                let indices = loops.iter().map(|v| Expr::Var(*v)).collect();
                let at: usize = constant.parse().map_err(|_| wrong)?;
                let buffer = self.constant(1, at)?.buffer;
                let facts = &mut self.programs[1].facts;
                self.cells.push((number, facts.len()));
                facts.push(Fact { loops, condition, buffer, indices, value });
            }
            "reads" => {
                let (side, load, names) =
                    self.load(&mut rest.split_inclusive(')').next().unwrap_or(""))?;
                self.names(side, load, &names)?;
                self.flows.push(Flow { line: number, side, load, pieces: Vec::new() });
                self.names = names;
            }
            "given" | "from" | "known" => {
                let names = self.names.clone();
                let flow = self.flows.last().ok_or("a piece of no load")?;
                let (side, names) = (flow.side, self.names(flow.side, flow.load, &names)?);
                let from = if word == "given" {
                    From::Given
                } else {
                    let (number, at) = rest.split_once(' ').ok_or("no indices")?;
                    let at = expression(bracket(at)?, &names)?;
                    match word {
                        "from" => From::Store(self.stmt(side, number)?, at),
                        _ => From::Known(number.parse().map_err(|_| "no number")?, at),
                    }
                };
                // `given where ...` has its condition right after the word.
                let condition = condition.or_else(|| rest.strip_prefix("where "));
                let piece = Piece { line: number, from, condition: of(condition, &names)? };
                self.flows.last_mut().ok_or("a piece of no load")?.pieces.push(piece);
            }
            "passes" => {
                let (side, load, names) = self.load(&mut { rest })?;
                let condition = of(condition, &self.names(side, load, &names)?)?;
                self.passes.push(Pass { line: number, side, stmt: load.stmt, condition });
            }
            "equal" => {
                let mut rest = rest;
                let (a, first, x) = self.load(&mut rest)?;
                let (b, second, y) = self.load(&mut rest)?;
                if (a, b) != (0, 1) {
                    return Err("one load of each function is expected, `before` first".into());
                }
                let mut names = self.names(0, first, &x)?;
                names.extend(self.names(1, second, &y)?);
                let condition = of(condition, &names)?;
                self.claims.push(Claim { line: number, loads: [first, second], condition });
            }
            _ => return Err(format!("`{word}` is no reason")),
        }
        Ok(())
    }

    fn layout(&self, line: usize, rest: &str) -> Result<Layout, String> {
        let wrong = "a layout is `PARAM (i, ...) to (e, ...) and back (c, ...) to (e, ...)`";
        let (param, rest) = rest.split_once(' ').ok_or(wrong)?;
        let (there, back) = rest.split_once(" and back ").ok_or(wrong)?;
        let taken = 2 * self.layouts.len() * 64;
        let half = |text: &str, first: Var| -> Result<(Vec<Var>, Vec<Expr>), String> {
            let (names, to) = text.split_once(" to ").ok_or(wrong)?;
            let names: Vec<&str> = bracket(names)?.split(',').map(str::trim).collect();
            let vars: Vec<Var> = (0..names.len()).map(|k| OTHERS + first + k).collect();
            let mut known = self.sizes();
            known.extend(names.iter().zip(&vars).map(|(n, v)| ((*n).to_owned(), Expr::Var(*v))));
            Ok((vars, expression(bracket(to)?, &known)?))
        };
        let (from, map) = half(there, taken)?;
        let (cells, inverse) = half(back, taken + 64)?;
        let param = param.parse().map_err(|_| wrong)?;
        Ok(Layout { line, param, from, map, cells, inverse })
    }

    /// Names for the axes of a constant.
    fn axes(&self, text: &str) -> Result<(Vec<Var>, Names), String> {
        let names: Vec<&str> =
            bracket(text)?.split(',').map(str::trim).filter(|n| !n.is_empty()).collect();
        let vars = axes(names.len());
        let named = names.iter().zip(&vars).map(|(n, v)| ((*n).to_owned(), Expr::Var(*v)));
        Ok((vars.clone(), named.collect()))
    }

    /// The constant of a side that has a number.
    ///
    /// # Errors
    /// There is none.
    pub fn constant(&self, side: usize, number: usize) -> Result<&Constant, String> {
        let p = &self.programs[side];
        let found = p.constants.iter().find(|c| p.buffers[c.buffer].param == Some(number));
        found.ok_or_else(|| format!("there is no constant {number}"))
    }

    /// Sizes by their names: those of both functions go by one.
    fn sizes(&self) -> Vec<(String, Expr)> {
        let [a, b] = &self.programs;
        let all = a.sizes.iter().chain(&b.sizes);
        all.map(|(n, v)| (n.clone(), Expr::Var(*v))).collect()
    }

    fn stmt(&self, side: usize, text: &str) -> Result<usize, String> {
        let p = &self.programs[side];
        let looks = text.strip_prefix("out");
        let number: usize =
            looks.unwrap_or(text).parse().map_err(|_| format!("`{text}` is no statement"))?;
        let at = if looks.is_some() { stores(p).saturating_add(number) } else { number };
        let fits = at < p.stmts.len() && (looks.is_some() || at < stores(p));
        if fits { Ok(at) } else { Err(format!("there is no statement {text}")) }
    }

    /// Reads `before 1.0 (i, k)` from the start of a text: side, load, names.
    fn load(&self, text: &mut &str) -> Result<(usize, Load, Vec<String>), String> {
        let wrong = || format!("`{text}` is no load");
        let mut words = text.trim_start().splitn(3, ' ');
        let side = match words.next() {
            Some("before") => 0,
            Some("after") => 1,
            _ => return Err(wrong()),
        };
        let (stmt, read) = words.next().and_then(|w| w.split_once('.')).ok_or_else(wrong)?;
        let stmt = self.stmt(side, stmt)?;
        let read = read.parse().map_err(|_| wrong())?;
        if read >= self.programs[side].stmts[stmt].reads.len() {
            return Err(wrong());
        }
        let rest = words.next().ok_or_else(wrong)?;
        let end = rest.find(')').ok_or_else(wrong)? + 1;
        let names = bracket(&rest[..end])?.split(',').map(|n| n.trim().to_owned());
        let names = names.filter(|n| !n.is_empty()).collect();
        *text = &rest[end..];
        Ok((side, Load { stmt, read }, names))
    }

    /// Names for the loops of a load's statement, and those of sizes.
    fn names(
        &self,
        side: usize,
        load: Load,
        names: &[String],
    ) -> Result<Vec<(String, Expr)>, String> {
        let loops = &self.programs[side].stmts[load.stmt].loops;
        if loops.len() != names.len() {
            return Err(format!("the statement has {} loops", loops.len()));
        }
        let mut all = self.sizes();
        all.extend(names.iter().cloned().zip(loops.iter().map(|v| Expr::Var(*v))));
        Ok(all)
    }
}

fn bracket(text: &str) -> Result<&str, String> {
    let inside = text.trim().strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    inside.ok_or_else(|| format!("`{text}` is no list in brackets"))
}
