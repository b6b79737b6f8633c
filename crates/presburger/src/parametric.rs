//! Least integer points as functions of parameters.
//!
//! Feautrier's algorithm (1988, "Parametric integer programming"): a dual simplex whose right-hand
//! sides are affine in the parameters. Where the sign of one is not the same for all parameters of
//! the context, the context is split in two; where a vertex is no integer, a Gomory cut is added,
//! whose remainder is a new division of parameters. The pieces have no common point.
//!
//! An unknown may be negative: it is `y - M` of a `y >= 0`, where `M` is larger than any number. What
//! still has `M` in its least value has no least value.

use crate::basic::{Basic, complement};
use crate::matrix::{content, negate, value};
use crate::num::{Budget, Int, Res, Stop, add, add_mul, floor_mod, gcd, mul, neg};

/// An affine function of the constant and the parameters over a denominator: an integer wherever it
/// is asked.
pub(crate) struct Value {
    pub row: Vec<Int>,
    pub den: Int,
}

/// Parameters for which the least point has one form.
pub(crate) struct Piece {
    /// The parameters: dimensions, and divisions of which some are new. It is not in its shortest form.
    pub domain: Basic,
    /// The least value of the function that was asked for; `None` where there is no least one.
    pub value: Option<Value>,
}

/// The parameters for which there are values of the unknowns, in pieces, and the least value of a
/// function of all columns there. The unknowns are the columns from `first` on, and no definition of
/// an earlier division mentions one.
pub(crate) fn least(
    basic: &Basic,
    first: usize,
    function: Option<&[Int]>,
    budget: &Budget,
) -> Res<Vec<Piece>> {
    let mut context = basic.clone();
    context.eqs.retain(|row| row[first..].iter().all(|v| *v == 0));
    context.ineqs.retain(|row| row[first..].iter().all(|v| *v == 0));
    while context.width() > first {
        context.remove_div(context.divs.len() - 1);
    }
    solve(Node::new(basic, first, function, context)?, function.is_some(), usize::MAX, budget)
}

/// The value of a function of all columns that the parameters give, in pieces: right where there are
/// values of the unknowns, and anything elsewhere. A piece may have more points than those.
///
/// What is `given` says the same of the parameters, in its own unknowns. Nothing is split where it has
/// no point. Where there are more than `most` pieces, that is [`Stop::NoForm`].
pub(crate) fn only(
    basic: &Basic,
    first: usize,
    function: &[Int],
    given: &Basic,
    most: usize,
    budget: &Budget,
) -> Res<Vec<Piece>> {
    let mut context = basic.clone();
    context.eqs.clear();
    context.ineqs.clear();
    while context.width() > first {
        context.remove_div(context.divs.len() - 1);
    }
    context.conjoin(given);
    let hidden = first..context.width();
    let first = Node::new(basic, first, Some(function), context)?;
    let mut out = solve(first, true, most, budget)?;
    for piece in &mut out {
        let p = &mut piece.domain;
        let apart = |row: &[Int]| row[hidden.clone()].iter().all(|v| *v == 0);
        p.eqs.retain(apart);
        p.ineqs.retain(apart);
        for column in hidden.clone().rev() {
            p.remove_div(column - 1 - p.dims);
            if let Some(value) = &mut piece.value {
                value.row.remove(column);
            }
        }
    }
    Ok(out)
}

fn solve(first: Node, has_function: bool, most: usize, budget: &Budget) -> Res<Vec<Piece>> {
    let mut done = Vec::new();
    let mut open = vec![first];
    while let Some(mut node) = open.pop() {
        match node.settle(budget)? {
            SimplexStep::Empty => {}
            SimplexStep::Done => {
                let value = node.least().filter(|_| has_function);
                done.push(Piece { domain: node.context, value });
                if done.len() > most {
                    return Err(Stop::NoForm);
                }
            }
            SimplexStep::Split(row) => {
                let part = node.rows[row].known.clone();
                let mut below = node.clone();
                below.demand(&complement(&part)?)?;
                below.rows[row].sign = Some(Sign::Minus);
                node.demand(&part)?;
                node.rows[row].sign = Some(Sign::Plus);
                open.push(below);
                open.push(node);
            }
        }
    }
    Ok(done)
}

/// The sign of a right-hand side for the parameters of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    /// Nowhere negative.
    Plus,
    /// Negative everywhere.
    Minus,
    /// Sometimes negative.
    Both,
}

/// What a row or a column stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Unknown(usize),
    Constraint,
    Cut,
}

/// `(known + large * M + columns) / den`, which must not be negative.
#[derive(Clone, Debug)]
struct Row {
    name: Name,
    den: Int,
    /// The constant, and a coefficient a parameter.
    known: Vec<Int>,
    large: Int,
    columns: Vec<Int>,
    /// The sign of what is known, as far as it was looked at.
    sign: Option<Sign>,
}

impl Row {
    /// Divides by what all numbers have in common.
    fn shorten(&mut self) {
        let g = gcd(gcd(self.den, self.large), gcd(content(&self.known), content(&self.columns)));
        if g > 1 {
            self.den /= g;
            self.large /= g;
            self.known.iter_mut().chain(&mut self.columns).for_each(|v| *v /= g);
        }
    }
}

/// A context, and the tableau of the unknowns in it.
#[derive(Clone)]
struct Node {
    context: Basic,
    rows: Vec<Row>,
    columns: Vec<Name>,
    unknowns: usize,
    /// Points of the context, as long as they are.
    points: Vec<Vec<Int>>,
}

enum SimplexStep {
    Empty,
    Done,
    /// The sign of this row has to be known.
    Split(usize),
}

impl Node {
    /// The unknowns are the columns from `first` on; the context begins with those before.
    fn new(basic: &Basic, first: usize, function: Option<&[Int]>, context: Basic) -> Res<Node> {
        let extra = usize::from(function.is_some());
        let unknowns = basic.width() - first + extra;
        let mut rows: Vec<Row> = Vec::new();
        let mut demand = |row: &[Int], with: Int| -> Res<()> {
            let mut columns = vec![0; unknowns];
            columns[extra..].copy_from_slice(&row[first..]);
            if extra == 1 {
                columns[0] = with;
            }
            let large = columns.iter().try_fold(0, |sum, c| add(sum, neg(*c)?))?;
            let mut known = row[..first].to_vec();
            known.resize(context.width(), 0);
            rows.push(Row { name: Name::Constraint, den: 1, known, large, columns, sign: None });
            Ok(())
        };
        for row in basic.eqs.rows().filter(|r| !is_alone(r, first)) {
            let mut row = row.to_vec();
            demand(&row, 0)?;
            negate(&mut row)?;
            demand(&row, 0)?;
        }
        for row in basic.ineqs.rows().filter(|r| !is_alone(r, first)) {
            demand(row, 0)?;
        }
        if let Some(f) = function {
            // The first unknown is not less than the function.
            let mut row = f.to_vec();
            negate(&mut row)?;
            demand(&row, 1)?;
        }
        let columns = (0..unknowns).map(Name::Unknown).collect();
        Ok(Node { context, rows, columns, unknowns, points: Vec::new() })
    }

    /// Pivots and cuts until the sign of a row has to be known, or there is a least point.
    fn settle(&mut self, budget: &Budget) -> Res<SimplexStep> {
        if self.points.is_empty() {
            match self.context.point(budget)? {
                Some(point) => self.points.push(point),
                None => return Ok(SimplexStep::Empty),
            }
        }
        loop {
            let mut split = None;
            let mut minus = None;
            for at in 0..self.rows.len() {
                let sign = self.sign(at, budget)?;
                if sign == Sign::Plus {
                    continue;
                }
                if self.rows[at].columns.iter().all(|v| *v <= 0) {
                    // It can only hold where what is known is not negative.
                    if sign == Sign::Minus {
                        return Ok(SimplexStep::Empty);
                    }
                    let part = self.rows[at].known.clone();
                    self.demand(&part)?;
                    self.rows[at].sign = Some(Sign::Plus);
                    continue;
                }
                if sign == Sign::Minus {
                    minus = minus.or(Some(at));
                } else {
                    split = split.or(Some(at));
                }
            }
            if self.points.is_empty() {
                match self.context.point(budget)? {
                    Some(point) => self.points.push(point),
                    None => return Ok(SimplexStep::Empty),
                }
            }
            if let Some(row) = minus {
                let column = self.entering(row)?;
                self.pivot(row, column, budget)?;
                continue;
            }
            if let Some(row) = split {
                return Ok(SimplexStep::Split(row));
            }
            if !self.cut(budget)? {
                return Ok(SimplexStep::Done);
            }
        }
    }

    /// Adds a constraint of the context.
    fn demand(&mut self, row: &[Int]) -> Res<()> {
        self.context.ineqs.push(row);
        let mut kept = Vec::with_capacity(self.points.len());
        for point in self.points.drain(..) {
            if value(row, &point)? >= 0 {
                kept.push(point);
            }
        }
        self.points = kept;
        for row in &mut self.rows {
            if row.sign == Some(Sign::Both) {
                row.sign = None;
            }
        }
        Ok(())
    }

    /// The sign of what is known of a row.
    fn sign(&mut self, at: usize, budget: &Budget) -> Res<Sign> {
        let row = &self.rows[at];
        if let Some(sign) = row.sign {
            return Ok(sign);
        }
        let known = row.known.clone();
        let sign = if row.large != 0 {
            if row.large > 0 { Sign::Plus } else { Sign::Minus }
        } else if known[1..].iter().all(|v| *v == 0) {
            if known[0] >= 0 { Sign::Plus } else { Sign::Minus }
        } else {
            self.sign_of(&known, budget)?
        };
        self.rows[at].sign = Some(sign);
        Ok(sign)
    }

    fn sign_of(&mut self, known: &[Int], budget: &Budget) -> Res<Sign> {
        let (mut plus, mut minus) = (false, false);
        for point in &self.points {
            if value(known, point)? >= 0 {
                plus = true;
            } else {
                minus = true;
            }
        }
        if !minus {
            minus = self.meets(&complement(known)?, budget)?;
        }
        if !plus {
            plus = self.meets(known, budget)?;
        }
        Ok(match (plus, minus) {
            (true, true) => Sign::Both,
            (false, true) => Sign::Minus,
            _ => Sign::Plus,
        })
    }

    /// Whether a constraint holds at some point of the context, which is remembered.
    fn meets(&mut self, row: &[Int], budget: &Budget) -> Res<bool> {
        let mut part = self.context.clone();
        part.ineqs.push(row);
        let point = part.point(budget)?;
        let found = point.is_some();
        self.points.extend(point);
        Ok(found)
    }

    /// The entry of a column in the row of an unknown.
    fn entry(&self, unknown: usize, column: usize) -> Int {
        if self.columns[column] == Name::Unknown(unknown) {
            return 1;
        }
        let row = self.rows.iter().find(|r| r.name == Name::Unknown(unknown));
        row.map_or(0, |r| r.columns[column])
    }

    /// The column that leaves zero when a row becomes zero: that along which the unknowns grow least,
    /// the first one counting most.
    fn entering(&self, row: usize) -> Res<usize> {
        let weights = &self.rows[row].columns;
        let mut best: Option<usize> = None;
        for column in (0..weights.len()).filter(|c| weights[*c] > 0) {
            let Some(old) = best else {
                best = Some(column);
                continue;
            };
            for unknown in 0..self.unknowns {
                let new = mul(self.entry(unknown, column), weights[old])?;
                let known = mul(self.entry(unknown, old), weights[column])?;
                if new != known {
                    if new < known {
                        best = Some(column);
                    }
                    break;
                }
            }
        }
        Ok(best.unwrap_or(0))
    }

    /// Exchanges a row and a column.
    fn pivot(&mut self, at: usize, column: usize, budget: &Budget) -> Res<()> {
        let width = self.columns.len() + self.context.width();
        budget.charge(1 + self.rows.len() * width / 16)?;
        let name = self.columns[column];
        let row = &mut self.rows[at];
        self.columns[column] = std::mem::replace(&mut row.name, name);
        // y = (k + sum a x + p x_c) / d  ==>  x_c = (d y - k - sum a x) / p
        let p = std::mem::replace(&mut row.columns[column], neg(row.den)?);
        row.den = p;
        row.large = neg(row.large)?;
        negate(&mut row.known)?;
        negate(&mut row.columns)?;
        row.sign = None;
        row.shorten();
        let pivot = row.clone();
        for (i, row) in self.rows.iter_mut().enumerate() {
            let a = row.columns[column];
            if i == at || a == 0 {
                continue;
            }
            row.columns[column] = 0;
            row.large = add_mul(mul(row.large, pivot.den)?, a, pivot.large)?;
            for (v, p) in row.known.iter_mut().zip(&pivot.known) {
                *v = add_mul(mul(*v, pivot.den)?, a, *p)?;
            }
            for (v, p) in row.columns.iter_mut().zip(&pivot.columns) {
                *v = add_mul(mul(*v, pivot.den)?, a, *p)?;
            }
            row.den = mul(row.den, pivot.den)?;
            row.sign = None;
            row.shorten();
        }
        if name == Name::Cut {
            // Integers satisfy it anyway.
            self.rows.swap_remove(at);
        }
        Ok(())
    }

    /// Cuts off a vertex that is no integer everywhere; whether there was something to cut.
    fn cut(&mut self, budget: &Budget) -> Res<bool> {
        for unknown in 0..self.unknowns {
            let row = self.rows.iter().find(|r| r.name == Name::Unknown(unknown));
            let Some(row) = row.filter(|r| r.den != 1) else { continue };
            let den = row.den;
            // The rest of what is missing to an integer.
            let missing = row.known.iter().map(|v| Ok(floor_mod(neg(*v)?, den)));
            let mut missing = missing.collect::<Res<Vec<Int>>>()?;
            if missing.iter().all(|v| *v == 0) {
                continue;
            }
            let columns: Vec<Int> = row.columns.iter().map(|v| floor_mod(*v, den)).collect();
            if missing[1..].iter().any(|v| *v != 0) {
                let column = self.quotient(den, &missing)?;
                missing.resize(self.context.width(), 0);
                missing[column] = neg(den)?;
                let mut some = missing.clone();
                some[0] = add(some[0], -1)?;
                if self.sign_of(&some, budget)? == Sign::Minus {
                    continue;
                }
            }
            budget.charge(2)?;
            negate(&mut missing)?;
            let (name, large) = (Name::Cut, 0);
            let mut cut = Row { name, den, known: missing, large, columns, sign: None };
            cut.shorten();
            self.rows.push(cut);
            return Ok(true);
        }
        Ok(false)
    }

    /// The column of `floor(row / den)`, a division of parameters.
    fn quotient(&mut self, den: Int, row: &[Int]) -> Res<usize> {
        let g = gcd(den, content(&row[1..]));
        let mut def = vec![den / g];
        def.extend(row.iter().map(|v| v / g));
        def[1] = row[0].div_euclid(g);
        if let Some(at) = self.context.divs.rows().position(|d| d == def.as_slice()) {
            return Ok(self.context.div_col(at));
        }
        let column = self.context.add_div();
        let div = self.context.divs.len() - 1;
        def.push(0);
        self.context.set_def(div, def[0], &def[1..]);
        for point in &mut self.points {
            let v = value(&def[1..], point)?;
            point.push(v.div_euclid(def[0]));
        }
        self.rows.iter_mut().for_each(|r| r.known.push(0));
        Ok(column)
    }

    /// The value of the first unknown; `None` if it has no least one.
    fn least(&self) -> Option<Value> {
        let row = self.rows.iter().find(|r| r.name == Name::Unknown(0))?;
        (row.large == row.den).then(|| Value { row: row.known.clone(), den: row.den })
    }
}

fn is_alone(row: &[Int], first: usize) -> bool {
    row[first..].iter().all(|v| *v == 0)
}
