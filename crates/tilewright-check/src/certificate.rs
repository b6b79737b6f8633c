//! A certificate: two functions, and what shows that they compute the same.
//!
//! ```text
//! tilewright-certificate-2
//! (function f ...)
//! (function f ...)
//! (because
//! (layout 0 (i j) (i (j // 4) (j % 4)) (a b c) (a ((b * 4) + c)))
//! (reads before 1 0
//! (from 0 (i) (k == 0))
//! (from 1 (i (k - 1)) (k >= 1))
//! (known 0 (i k) (k >= 8))
//! (given (false))
//! )
//! (passes before 1 (k >= 8))
//! (equal 1 0 1 0 (i == ((io' * 4) + ii')))
//! )
//! (steps
//! (sum 0:1 3:1)
//! (go)
//! )
//! ```
//!
//! `1 0` is load 0 of statement 1. Statements are the stores in order, then the looks of the caller at the end: at
//! the parameters, then at results. `known` is what an assumption says, by its number; `passes` says that a store
//! gives its first operand on, since the second one changes nothing; `packs` says where cells of a constant of the
//! second function lie in one of the first, and `cells` what number they hold.

use std::rc::Rc;

use crate::program::{Access, Constant, Expr, Fact, Program, Stmt, Var};
use crate::set::{Affine, Place, System};
use crate::tree::{Fine, Placed, Tree, Word};

/// A load of the first function or of the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub side: usize,
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

impl Piece {
    fn read(piece: &Tree) -> Fine<Piece> {
        let (line, parts) = piece.list()?;
        let (from, condition) = match parts {
            [Word("given"), condition] => (From::Given, condition),
            [Word("from"), stmt, at, condition] => {
                (From::Store(stmt.number()?, Expr::list(at)?), condition)
            }
            [Word("known"), fact, at, condition] => {
                (From::Known(fact.number()?, Expr::list(at)?), condition)
            }
            _ => return Err(format!("line {line} is no place of a value")),
        };
        Ok(Piece { line, from, condition: Expr::read(condition, None)? })
    }
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
    pub load: Load,
    pub pieces: Vec<Piece>,
}

/// Loads, one of each function, that have one value where a condition of the loops of both holds.
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
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    pub programs: [Program; 2],
    pub layouts: Vec<Layout>,
    pub packs: Vec<Pack>,
    /// Lines that say what cells of constants hold, and the facts of the second function that they are.
    pub cells: Vec<(usize, usize)>,
    pub flows: Vec<Flow>,
    pub passes: Vec<Pass>,
    pub claims: Vec<Claim>,
}

pub fn programs(trees: [&Tree; 2]) -> Placed<[Program; 2]> {
    let [mut a, mut b] = [Program::read(trees[0], "")?, Program::read(trees[1], "'")?];
    let types =
        |p: &Program| p.looks.iter().map(|at| p.buffers[*at].dtype.clone()).collect::<Vec<_>>();
    if a.params != b.params || types(&a) != types(&b) {
        let line = trees[1].list().map_or(1, |(line, _)| line);
        return Err((line, "the functions have different parameters or results".into()));
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

impl Certificate {
    /// Reads the functions of a certificate and its reasons.
    pub fn read(functions: [&Tree; 2], reasons: &[Tree]) -> Placed<Certificate> {
        let programs = programs(functions)?;
        let mut out = Certificate { programs, ..Certificate::default() };
        for reason in reasons {
            let (line, parts) = reason.list().map_err(|e| (1, e))?;
            out.reason(line, parts).map_err(|e| (line, e))?;
        }
        Ok(out)
    }

    fn reason(&mut self, line: usize, parts: &[Tree]) -> Fine<()> {
        match parts {
            [Word("layout"), param, from, map, cells, inverse] => {
                let (from, map) = (names(from)?, Expr::list(map)?);
                let (cells, inverse) = (names(cells)?, Expr::list(inverse)?);
                let param = param.number()?;
                if param >= self.programs[0].looks.len() {
                    return Err("there is no such parameter".into());
                }
                self.layouts.push(Layout { line, param, from, map, cells, inverse });
            }
            [Word("packs"), p, q, into, map, condition] => {
                let (constants, into) = ([p.number()?, q.number()?], names(into)?);
                let (map, condition) = (Expr::list(map)?, Expr::read(condition, None)?);
                self.packs.push(Pack { line, constants, into, map, condition });
            }
            [Word("cells"), constant, loops, value, condition] => {
                let (loops, condition) = (names(loops)?, Expr::read(condition, None)?);
                let buffer = self.programs[1].constant(constant.number()?)?.buffer;
                let indices = loops.iter().cloned().map(Expr::Var).collect();
                let of = Access { loops, condition, buffer, indices };
                let facts = &mut self.programs[1].facts;
                self.cells.push((line, facts.len()));
                facts.push(Fact { of, value: Expr::read(value, None)? });
            }
            [Word("reads"), side, stmt, read, pieces @ ..] => {
                let load = self.load(side_of(side)?, stmt, read)?;
                let pieces = pieces.iter().map(Piece::read).collect::<Fine<_>>()?;
                self.flows.push(Flow { line, load, pieces });
            }
            [Word("passes"), side, stmt, condition] => {
                let (side, condition) = (side_of(side)?, Expr::read(condition, None)?);
                self.passes.push(Pass { line, side, stmt: stmt.number()?, condition });
            }
            [Word("equal"), stmt, read, other, load, condition] => {
                let loads = [self.load(0, stmt, read)?, self.load(1, other, load)?];
                self.claims.push(Claim { line, loads, condition: Expr::read(condition, None)? });
            }
            _ => return Err("no reason that is understood".into()),
        }
        Ok(())
    }

    fn load(&self, side: usize, stmt: &Tree, read: &Tree) -> Fine<Load> {
        let load = Load { side, stmt: stmt.number()?, read: read.number()? };
        let known = self.programs[side].stmts.get(load.stmt).and_then(|s| s.reads.get(load.read));
        known.map(|_| load).ok_or_else(|| "there is no such load".into())
    }

    /// The statement of a load, and what it reads.
    pub fn read_of(&self, load: Load) -> (&Stmt, &Access) {
        let stmt = &self.programs[load.side].stmts[load.stmt];
        (stmt, &stmt.reads[load.read])
    }

    /// Compares constants with what is said of them, cell by cell.
    pub(crate) fn constants(&self) -> Placed<()> {
        let [first, second] = &self.programs;
        for Pack { line, constants: [p, q], into, map, condition } in &self.packs {
            let wrong = |what: String| (*line, what);
            let before = first.constant(*p).map_err(wrong)?;
            let after = second.constant(*q).map_err(wrong)?;
            let types = [&first.buffers[before.buffer].dtype, &second.buffers[after.buffer].dtype];
            if types[0] != types[1] || into.len() != after.shape.len() {
                return Err(wrong("the constants have different types, or other axes".into()));
            }
            for (place, value) in cells(after, into) {
                let from = System::default().list(map, &place).map_err(wrong)?;
                let counts = System::holds_at(condition, &place).map_err(wrong)?;
                if counts && value_at(before, &from) != Some(value) {
                    return Err(wrong(format!("{value} does not lie where the map says")));
                }
            }
        }
        for (line, at) in &self.cells {
            let wrong = |what: String| (*line, what);
            let Fact { of, value: said } = &second.facts[*at];
            let constants = second.constants.iter().filter(|c| c.buffer == of.buffer);
            for (place, value) in constants.flat_map(|c| cells(c, &of.loops)) {
                let known = Expr::read(&Word(value), None).is_ok_and(|e| is_number(&e, said));
                if !known && System::holds_at(&of.condition, &place).map_err(wrong)? {
                    return Err(wrong(format!("one of the cells holds {value}")));
                }
            }
        }
        Ok(())
    }
}

/// The value of a constant at an index.
fn value_at<'a>(constant: &'a Constant, at: &[Affine]) -> Option<&'a str> {
    let mut cell = 0;
    for (x, n) in at.iter().zip(&constant.shape) {
        let x = usize::try_from(x.constant).ok().filter(|k| x.terms.is_empty() && k < n)?;
        cell = cell * n + x;
    }
    constant.values.get(cell).filter(|_| at.len() == constant.shape.len()).map(String::as_str)
}

/// All indices of a constant, with variables for them and the value there.
fn cells<'a>(constant: &'a Constant, vars: &'a [Var]) -> impl Iterator<Item = (Place, &'a str)> {
    constant.values.iter().enumerate().map(|(mut rest, value)| {
        let mut place = Place::new();
        for (v, n) in vars.iter().zip(&constant.shape).rev() {
            place.insert(v.clone(), Affine::constant((rest % n) as i128));
            rest /= n;
        }
        (place, value.as_str())
    })
}

/// Whether a number is another one that may be converted, with its sign.
fn is_number(a: &Expr, b: &Expr) -> bool {
    match (a, b, a.constant().zip(b.constant())) {
        (Expr::Int(a), Expr::Int(b), _) => a == b,
        (a, Expr::Op(_, inside), Some(_)) => is_number(a, &inside[0]),
        (.., Some((a, b))) => a == b && a.is_sign_negative() == b.is_sign_negative(),
        _ => false,
    }
}

fn side_of(tree: &Tree) -> Fine<usize> {
    match tree {
        Word("before") => Ok(0),
        Word("after") => Ok(1),
        _ => Err("neither `before` nor `after`".into()),
    }
}

/// Names of variables, which are all different.
fn names(tree: &Tree) -> Fine<Vec<Var>> {
    let mut names: Vec<Var> = Vec::new();
    for name in tree.list()?.1 {
        match name {
            Word(name) if names.iter().all(|n| **n != **name) => names.push(Rc::from(*name)),
            _ => return Err("no name of a variable, or one that is there twice".into()),
        }
    }
    Ok(names)
}
