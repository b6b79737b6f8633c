//! What holds on a path: the conditions that were taken, as a set of integers.
//!
//! Integers that conditions name (parameters, cells, terms that are not looked into) are the
//! parameters of the set; [`super::forms`] says how a term looks over them. A condition holds on a
//! path if the points of the set at which it fails are none, and a path on which there is no point
//! is never taken. Intervals answer first what they can, and everything where sets are not wanted.
//!
//! Answers are kept until the path changes. The number of questions is limited, so that the work is
//! the same on every machine.

use tilewright_ir::hash::HashSet;

use tilewright_ir::index::Interval;
use tilewright_ir::visit::free_vars;
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Var};
use tilewright_polyhedral::{Domain, Engine};

use super::forms::Forms;
use super::ranges::{Narrowed, Ranges};
use super::term::{Fast, Node, Term, Terms};
use tilewright_ir::scalar::Scalar;

/// Operations of the set engine for one question.
const QUOTA: u64 = 100_000;

/// Steps of the comparison that one question counts for.
const STEPS: u64 = 10_000;

/// Parts of a condition that are looked at one inside the other.
const DEPTH: usize = 12;

/// What all paths share: forms of terms, and the engine.
pub struct Integers {
    forms: Forms,
    /// None where intervals must do.
    engine: Option<Engine>,
    questions: u64,
}

impl Integers {
    /// With a number of steps, of which each question takes several; `sets` asks the set engine.
    pub fn new(steps: u64, sets: bool) -> Self {
        let engine = sets.then(|| Engine::new().with_quota(QUOTA));
        Integers { forms: Forms::default(), engine, questions: steps / STEPS }
    }

    /// Whether one more question may be asked.
    fn spend(&mut self) -> bool {
        match self.questions.checked_sub(1) {
            Some(left) => self.questions = left,
            None => return false,
        }
        true
    }

    /// A domain with the ranges of the variables of an expression that `known` does not have.
    fn bounded(&self, mut d: Domain, e: &Expr, known: &mut HashSet<Var>) -> Domain {
        for v in free_vars(e) {
            let range = self.forms.dtype(&v).and_then(Interval::of_type);
            if !known.insert(v.clone()) || v.dtype() != DType::I64 {
                continue;
            }
            let Some(Interval { lo: least, hi: most }) = range else { continue };
            // The ends of 64 bits are left out: what is proven without them is proven.
            if let Some(least) = i64::try_from(least).ok().filter(|v| *v != i64::MIN) {
                d = d.with_guard(&v.expr().greater_equal(least));
            }
            if let Some(most) = i64::try_from(most).ok().filter(|v| *v != i64::MAX) {
                d = d.with_guard(&v.expr().less_equal(most));
            }
        }
        d
    }
}

/// Conditions that were taken, innermost last.
#[derive(Default)]
pub struct Path {
    levels: Vec<Level>,
    ranges: Ranges,
    /// Whether intervals show that the path is never taken, from which level on.
    void: Option<usize>,
    /// What is certain without any condition.
    always: Answers,
}

struct Level {
    condition: Term,
    truth: bool,
    narrowed: Vec<Narrowed>,
    /// The points of this path, with the variables that it has.
    points: Option<(Domain, HashSet<Var>)>,
    answers: Answers,
}

#[derive(Default)]
struct Answers {
    truths: Fast<Term, Option<bool>>,
    bounds: Fast<Term, Interval>,
    empty: Option<bool>,
}

impl Path {
    /// Whether nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// The conditions with their values, outermost first.
    pub fn taken(&self) -> impl DoubleEndedIterator<Item = (Term, bool)> + '_ {
        self.levels.iter().map(|l| (l.condition, l.truth))
    }

    /// Takes a condition to have a value.
    pub fn enter(&mut self, terms: &Terms, condition: Term, truth: bool) {
        let (condition, truth) = match terms.node(condition) {
            Node::Not(a) => (a, !truth),
            _ => (condition, truth),
        };
        let mut narrowed = Vec::new();
        self.narrow(terms, condition, truth, DEPTH, &mut narrowed);
        let void = narrowed
            .iter()
            .any(|(t, _)| self.ranges.interval(terms, *t).is_some_and(Interval::is_empty));
        self.levels.push(Level {
            condition,
            truth,
            narrowed,
            points: None,
            answers: Answers::default(),
        });
        if void && self.void.is_none() {
            self.void = Some(self.levels.len());
        }
    }

    /// Forgets the condition that was taken last.
    pub fn leave(&mut self) {
        if let Some(level) = self.levels.pop() {
            self.ranges.undo(level.narrowed);
        }
        self.void = self.void.filter(|at| *at <= self.levels.len());
    }

    /// What a condition says about intervals.
    fn narrow(
        &mut self,
        terms: &Terms,
        c: Term,
        truth: bool,
        depth: usize,
        undo: &mut Vec<Narrowed>,
    ) {
        let Some(below) = depth.checked_sub(1) else { return };
        let (least, most) = (i128::MIN, i128::MAX);
        if let Node::Not(a) = terms.node(c) {
            self.narrow(terms, a, !truth, below, undo);
        }
        match terms.operator(c) {
            Some((op @ (BinOp::And | BinOp::Or), _, parts)) if truth == (op == BinOp::And) => {
                parts.iter().for_each(|part| self.narrow(terms, *part, truth, below, undo));
            }
            Some((op @ (BinOp::Lt | BinOp::Le), dtype, &[a, b])) if dtype.is_int() => {
                // `low + gap <= high`
                let (low, high, gap) = if truth {
                    (a, b, i128::from(op == BinOp::Lt))
                } else {
                    (b, a, i128::from(op == BinOp::Le))
                };
                let (Some(l), Some(h)) =
                    (self.ranges.interval(terms, low), self.ranges.interval(terms, high))
                else {
                    return;
                };
                self.ranges.narrow(terms, low, Interval::new(least, h.hi - gap), undo);
                self.ranges.narrow(terms, high, Interval::new(l.lo + gap, most), undo);
            }
            Some((BinOp::Eq, dtype, &[a, b])) if dtype.is_int() || dtype.is_bool() => {
                let (Some(x), Some(y)) =
                    (self.ranges.interval(terms, a), self.ranges.interval(terms, b))
                else {
                    return;
                };
                if truth {
                    self.ranges.narrow(terms, a, y, undo);
                    self.ranges.narrow(terms, b, x, undo);
                } else if let Some(y) = y.as_point() {
                    // Unequal to an end of the interval.
                    let low = x.lo + i128::from(x.lo == y);
                    let high = x.hi - i128::from(x.hi == y);
                    self.ranges.narrow(terms, a, Interval::new(low, high), undo);
                }
            }
            _ => {}
        }
        if terms.dtype(c).is_bool() {
            self.ranges.narrow(terms, c, Interval::point(i128::from(truth)), undo);
        }
    }

    /// The value of a condition, where it is the same at every point of the path.
    pub fn truth(&mut self, with: &mut Integers, terms: &Terms, c: Term) -> Option<bool> {
        if let Some(known) = self.quick(terms, c, DEPTH) {
            return Some(known);
        }
        if let Some(known) = self.answers().truths.get(&c) {
            return *known;
        }
        let answer = self.ask(with, terms, c);
        self.answers().truths.insert(c, answer);
        answer
    }

    /// What the path says directly, and intervals.
    fn quick(&self, terms: &Terms, c: Term, depth: usize) -> Option<bool> {
        let below = depth.checked_sub(1)?;
        if let Some(level) = self.levels.iter().rev().find(|l| l.condition == c) {
            return Some(level.truth);
        }
        if let Some(value) = self.ranges.interval(terms, c).and_then(Interval::as_point) {
            return Some(value != 0);
        }
        if let Node::Not(a) = terms.node(c) {
            return self.quick(terms, a, below).map(|v| !v);
        }
        match terms.operator(c) {
            Some((op @ (BinOp::And | BinOp::Or), _, parts)) => {
                self.combine(parts, op == BinOp::Or, terms, below)
            }
            Some((op, dtype, &[a, b])) if dtype.is_int() || dtype.is_bool() => {
                let (a, b) = (self.ranges.interval(terms, a)?, self.ranges.interval(terms, b)?);
                match op {
                    BinOp::Lt if a.hi < b.lo => Some(true),
                    BinOp::Lt if a.lo >= b.hi => Some(false),
                    BinOp::Le if a.hi <= b.lo => Some(true),
                    BinOp::Le if a.lo > b.hi => Some(false),
                    BinOp::Eq if a.meet(b).is_empty() => Some(false),
                    BinOp::Eq if a == b && a.as_point().is_some() => Some(true),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn combine(&self, parts: &[Term], end: bool, terms: &Terms, below: usize) -> Option<bool> {
        // `end` is the value of a part that decides.
        let mut all = true;
        for part in parts {
            match self.quick(terms, *part, below) {
                Some(v) if v == end => return Some(end),
                Some(_) => {}
                None => all = false,
            }
        }
        all.then_some(!end)
    }

    fn ask(&mut self, with: &mut Integers, terms: &Terms, c: Term) -> Option<bool> {
        let form = with.forms.form(terms, c)?;
        if !self.concerns(with, terms, &form) {
            return None;
        }
        let points = self.points(with, terms, &form)?;
        let mut holds = |e: &Expr| with.spend() && points.proves(e);
        if holds(&form) {
            return Some(true);
        }
        holds(&Expr::not_node(form)).then_some(false)
    }

    /// Whether a path may say something about a form: they share a variable, or the form is more
    /// than one comparison.
    fn concerns(&mut self, with: &mut Integers, terms: &Terms, form: &Expr) -> bool {
        let simple = match form.kind() {
            ExprKind::Binary(op, a, b) if op.is_compare() => is_leaf(a) && is_leaf(b),
            _ => is_leaf(form),
        };
        if !simple {
            return true;
        }
        let vars = free_vars(form);
        let mut forms = self.levels.iter().filter_map(|l| with.forms.form(terms, l.condition));
        forms.any(|f| free_vars(&f).iter().any(|v| vars.contains(v)))
    }

    /// Least and greatest value of an integer, as far as intervals say.
    pub fn quick_range(&self, terms: &Terms, t: Term) -> Option<Interval> {
        self.ranges.interval(terms, t)
    }

    /// Least and greatest value of an integer on the path.
    pub fn bounds(&mut self, with: &mut Integers, terms: &Terms, t: Term) -> Option<Interval> {
        let quick = self.ranges.interval(terms, t)?;
        if quick.lo >= quick.hi {
            return Some(quick);
        }
        if let Some(known) = self.answers().bounds.get(&t) {
            return Some(*known);
        }
        let asked = with.forms.form(terms, t).and_then(|form| {
            let points = self.points(with, terms, &form)?;
            let found = if with.spend() { points.bounds(&form).ok()? } else { return None };
            let low = found.0.map_or(i128::MIN, i128::from);
            Some(quick.meet(Interval::new(low, found.1.map_or(i128::MAX, i128::from))))
        });
        let bounds = asked.unwrap_or(quick);
        self.answers().bounds.insert(t, bounds);
        Some(bounds)
    }

    /// Whether two integers or conditions are the same at every point of the path.
    pub fn equal(&mut self, with: &mut Integers, terms: &Terms, a: Term, b: Term) -> bool {
        let (Some(x), Some(y)) = (self.ranges.interval(terms, a), self.ranges.interval(terms, b))
        else {
            return false;
        };
        if a == b || (x == y && x.as_point().is_some()) {
            return true;
        }
        if x.meet(y).is_empty() {
            return false;
        }
        let (Some(f), Some(g)) = (with.forms.form(terms, a), with.forms.form(terms, b)) else {
            return false;
        };
        let same = Expr::binary(BinOp::Eq, f, g);
        if !self.concerns(with, terms, &same) {
            return false;
        }
        match self.points(with, terms, &same) {
            Some(points) => with.spend() && points.proves(&same),
            None => false,
        }
    }

    /// Whether it is certain that no data lead along the path.
    pub fn is_void(&mut self, with: &mut Integers, terms: &Terms) -> bool {
        if self.void.is_some() || self.levels.is_empty() {
            return self.void.is_some();
        }
        if let Some(known) = self.answers().empty {
            return known;
        }
        let points = self.points(with, terms, &Expr::bool(true));
        let empty = points.is_some_and(|p| with.spend() && p.proves(&Expr::bool(false)));
        self.answers().empty = Some(empty);
        empty
    }

    /// Values of inputs on the path for which two integers or conditions differ.
    pub fn distinguish(
        &mut self,
        with: &mut Integers,
        terms: &Terms,
        a: Term,
        b: Term,
    ) -> Option<Vec<(Term, u64)>> {
        let (f, g) = (with.forms.form(terms, a)?, with.forms.form(terms, b)?);
        let same = Expr::binary(BinOp::Eq, f, g);
        let points = self.points(with, terms, &same)?;
        let proof = if with.spend() { points.prove(&same) } else { return None };
        let found = proof.witness()?.values.iter().filter_map(|(v, value)| {
            let t = with.forms.term(v)?;
            let input = matches!(terms.node(t), Node::Input(..));
            input.then(|| (t, Scalar::int(*value, terms.dtype(t)).bits()))
        });
        Some(found.collect())
    }

    fn answers(&mut self) -> &mut Answers {
        match self.levels.last_mut() {
            Some(level) => &mut level.answers,
            None => &mut self.always,
        }
    }

    /// The points of the path, where the variables of a form have their ranges, too.
    fn points(&mut self, with: &mut Integers, terms: &Terms, form: &Expr) -> Option<Domain> {
        let engine = with.engine.clone()?;
        let first = self.levels.iter().rposition(|l| l.points.is_some());
        let (mut d, mut known) = match first.and_then(|at| self.levels[at].points.clone()) {
            Some(points) => points,
            None => (engine.domain(), HashSet::default()),
        };
        for level in self.levels.iter_mut().skip(first.map_or(0, |at| at + 1)) {
            if let Some(form) = with.forms.form(terms, level.condition)
                && with.spend()
            {
                let form = if level.truth { form } else { Expr::not_node(form) };
                d = with.bounded(d, &form, &mut known).with_guard(&form);
            }
            level.points = Some((d.clone(), known.clone()));
        }
        Some(with.bounded(d, form, &mut known))
    }
}

fn is_leaf(e: &Expr) -> bool {
    e.as_var().is_some() || e.as_int().is_some()
}
