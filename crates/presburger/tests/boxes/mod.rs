//! Random questions about sets in small boxes, each answered by enumeration of all points too.
//!
//! `tests/small_boxes.rs` asks a fixed few of them, `examples/boxes.rs` as many as one likes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use presburger::{Budget, Dim, Int, PwAff, Relation, Res};
use proptest::prelude::*;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestError, TestRunner};

/// Coordinates that are looked at.
const LOW: Int = -3;
const HIGH: Int = 4;
const DIMS: usize = 3;
/// What one question may cost.
const OPERATIONS: u64 = 20_000_000;

/// A term as it is written, and what it means.
#[derive(Clone, Debug)]
enum Term {
    Dim(usize),
    Div(usize, usize, Int),
    Mod(usize, Int),
}

impl Term {
    fn text(&self) -> String {
        match self {
            Term::Dim(k) => format!("i{k}"),
            Term::Div(k, l, d) => format!("floor((i{k} + 2*i{l} + 1)/{d})"),
            Term::Mod(k, d) => format!("((i{k}) mod {d})"),
        }
    }

    fn at(&self, p: &[Int]) -> Int {
        match self {
            Term::Dim(k) => p[*k],
            Term::Div(k, l, d) => (p[*k] + 2 * p[*l] + 1).div_euclid(*d),
            Term::Mod(k, d) => p[*k].rem_euclid(*d),
        }
    }
}

/// `a + b * s + c * t`, compared with zero.
#[derive(Clone, Debug)]
struct Constraint(Int, Int, Term, Int, Term, bool);

impl Constraint {
    fn text(&self) -> String {
        let Constraint(a, b, s, c, t, equal) = self;
        let sign = if *equal { "=" } else { ">=" };
        format!("{a} + {b}*{} + {c}*{} {sign} 0", s.text(), t.text()).replace("+ -", "- ")
    }

    fn holds(&self, p: &[Int]) -> bool {
        let Constraint(a, b, s, c, t, equal) = self;
        let v = a + b * s.at(p) + c * t.at(p);
        if *equal { v == 0 } else { v >= 0 }
    }
}

/// A union of conjunctions.
#[derive(Clone)]
struct Given(Vec<Vec<Constraint>>);

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Given {
    fn text(&self) -> String {
        let boxed: Vec<String> = (0..DIMS).map(|k| format!("{LOW} <= i{k} <= {HIGH}")).collect();
        let part = |c: &Vec<Constraint>| {
            let mut all = boxed.clone();
            all.extend(c.iter().map(Constraint::text));
            format!("[i0, i1, i2] : {}", all.join(" and "))
        };
        let parts: Vec<String> = self.0.iter().map(part).collect();
        format!("{{ {} }}", parts.join("; "))
    }

    fn set(&self) -> Relation {
        let text = self.text();
        Relation::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    fn has(&self, p: &[Int]) -> bool {
        self.0.iter().any(|c| c.iter().all(|c| c.holds(p)))
    }

    fn points(&self) -> Vec<Vec<Int>> {
        points(DIMS).into_iter().filter(|p| self.has(p)).collect()
    }
}

fn term() -> impl Strategy<Value = Term> {
    prop_oneof![
        3 => (0..DIMS).prop_map(Term::Dim),
        1 => (0..DIMS, 0..DIMS, 2..5i128).prop_map(|(k, l, d)| Term::Div(k, l, d)),
        1 => (0..DIMS, 2..5i128).prop_map(|(k, d)| Term::Mod(k, d)),
    ]
}

fn constraint() -> impl Strategy<Value = Constraint> {
    let c = || -4..5i128;
    let equal = prop_oneof![4 => Just(false), 1 => Just(true)];
    (-6..7i128, c(), term(), c(), term(), equal)
        .prop_map(|(a, b, s, c, t, e)| Constraint(a, b, s, c, t, e))
}

fn given() -> impl Strategy<Value = Given> {
    let part = proptest::collection::vec(constraint(), 1..4);
    proptest::collection::vec(part, 1..3).prop_map(Given)
}

/// All points of the box.
fn points(dims: usize) -> Vec<Vec<Int>> {
    (0..dims).fold(vec![Vec::new()], |all, _| {
        let more = |p: &Vec<Int>| {
            let p = p.clone();
            (LOW..=HIGH).map(move |v| [&p[..], &[v]].concat())
        };
        all.iter().flat_map(more).collect()
    })
}

/// Asks questions, each with a budget of its own, and remembers the longest.
#[derive(Debug, Default)]
pub struct Asker {
    /// Questions so far.
    pub asked: Cell<u64>,
    /// The longest time of one question.
    pub longest: Cell<Duration>,
    /// The most operations of one question.
    pub dearest: Cell<u64>,
}

impl Asker {
    fn ask<T>(
        &self,
        what: &str,
        question: impl FnOnce(&Budget) -> Res<T>,
    ) -> Result<T, TestCaseError> {
        let (budget, start) = (Budget::new(OPERATIONS), Instant::now());
        let answer = question(&budget);
        self.asked.set(self.asked.get() + 1);
        self.longest.set(self.longest.get().max(start.elapsed()));
        self.dearest.set(self.dearest.get().max(budget.spent()));
        answer.map_err(|stop| TestCaseError::fail(format!("{what}: {stop}")))
    }

    /// Whether a set has a point.
    fn holds(&self, set: &Relation, p: &[Int]) -> Result<bool, TestCaseError> {
        let eqs: Vec<Vec<Int>> = (p.iter().enumerate())
            .map(|(k, v)| {
                let mut row = vec![0; 1 + p.len()];
                (row[0], row[1 + k]) = (-v, 1);
                row
            })
            .collect();
        let point = Relation::of_constraints(set.space(), &eqs, &[]).expect("small numbers");
        Ok(!self.ask("a point", |b| set.is_disjoint(&point, b))?)
    }

    /// Whether a set has the points that it should have.
    fn same(&self, set: &Relation, dims: usize, has: impl Fn(&[Int]) -> bool) -> TestCaseResult {
        for p in points(dims) {
            prop_assert_eq!(self.holds(set, &p)?, has(&p), "{:?} of {}", p, set);
        }
        Ok(())
    }
}

/// A kind of question.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Points,
    Emptiness,
    Pairs,
    Projections,
    Simplifications,
    Extremes,
    Functions,
    Inverses,
}

impl Kind {
    /// Every kind.
    #[allow(dead_code, reason = "the example asks all, a test one")]
    pub const ALL: [Kind; 8] = [
        Kind::Points,
        Kind::Emptiness,
        Kind::Pairs,
        Kind::Projections,
        Kind::Simplifications,
        Kind::Extremes,
        Kind::Functions,
        Kind::Inverses,
    ];

    /// Asks questions about so many random sets; the smallest one with a wrong answer, or without one.
    pub fn run(self, cases: u32, seed: u64, asker: &Asker) -> Result<(), String> {
        let config = Config {
            cases,
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new(config);
        match self {
            Kind::Points => said(runner.run(&given(), |a| points_of_formula(&a, asker))),
            Kind::Emptiness => said(runner.run(&given(), |a| emptiness(&a, asker))),
            Kind::Pairs => said(runner.run(&(given(), given()), |(a, b)| pairs(&a, &b, asker))),
            Kind::Projections => {
                said(runner.run(&(given(), 0..DIMS), |(a, at)| projections(&a, at, asker)))
            }
            Kind::Simplifications => {
                said(runner.run(&(given(), given()), |(a, b)| simplifications(&a, &b, asker)))
            }
            Kind::Extremes => {
                said(runner.run(&(given(), 0..DIMS), |(a, at)| extremes(&a, at, asker)))
            }
            Kind::Functions => {
                let all = (given(), term(), term(), 2..5i128);
                said(runner.run(&all, |(a, s, t, k)| functions(&a, &s, &t, k, asker)))
            }
            Kind::Inverses => {
                let digits = proptest::collection::vec((term(), -4..5i128, term()), 3..5);
                let part = proptest::collection::vec(constraint(), 1..4);
                said(runner.run(&(part, digits), |(part, digits)| {
                    inverses(&Given(vec![part]), &digits, asker)
                }))
            }
        }
    }
}

fn said<T: std::fmt::Debug>(outcome: Result<(), TestError<T>>) -> Result<(), String> {
    outcome.map_err(|e| e.to_string())
}

fn points_of_formula(a: &Given, asker: &Asker) -> TestCaseResult {
    let set = a.set();
    asker.same(&set, DIMS, |p| a.has(p))?;
    // The text says the same.
    let again = Relation::parse(&set.to_string()).expect("own text");
    prop_assert!(asker.ask("equality", |b| again.is_equal(&set, b))?);
    Ok(())
}

fn emptiness(a: &Given, asker: &Asker) -> TestCaseResult {
    let set = a.set();
    let some = points(DIMS).iter().any(|p| a.has(p));
    prop_assert_eq!(asker.ask("emptiness", |b| set.is_empty(b))?, !some);
    if let Some(p) = asker.ask("sample", |b| set.sample(b))? {
        prop_assert!(a.has(&p), "{:?}", p);
    }
    Ok(())
}

fn pairs(a: &Given, b: &Given, asker: &Asker) -> TestCaseResult {
    let (s, t) = (a.set(), b.set());
    let less = asker.ask("difference", |budget| s.subtract(&t, budget))?;
    asker.same(&less, DIMS, |p| a.has(p) && !b.has(p))?;
    let both = asker.ask("intersection", |budget| s.intersect(&t, budget))?;
    asker.same(&both, DIMS, |p| a.has(p) && b.has(p))?;
    let either = asker.ask("coalescing", |budget| s.union(&t).coalesce(budget))?;
    asker.same(&either, DIMS, |p| a.has(p) || b.has(p))?;
    let all = points(DIMS);
    let within = all.iter().all(|p| !a.has(p) || b.has(p));
    let apart = all.iter().all(|p| !a.has(p) || !b.has(p));
    prop_assert_eq!(asker.ask("subset", |budget| s.is_subset(&t, budget))?, within);
    prop_assert_eq!(asker.ask("disjoint", |budget| s.is_disjoint(&t, budget))?, apart);
    Ok(())
}

fn projections(a: &Given, at: usize, asker: &Asker) -> TestCaseResult {
    let set = a.set();
    let shadow = asker.ask("projection", |b| set.project_out(Dim::Out, at, 1, b))?;
    let wanted = |q: &[Int]| {
        (LOW..=HIGH).any(|v| {
            let mut p = q.to_vec();
            p.insert(at, v);
            a.has(&p)
        })
    };
    asker.same(&shadow, DIMS - 1, wanted)?;
    let explicit = asker.ask("divisions", |b| shadow.compute_divs(b))?;
    asker.same(&explicit, DIMS - 1, wanted)?;
    let others = asker.ask("complement", |b| shadow.complement(b))?;
    asker.same(&others, DIMS - 1, |q| !wanted(q))?;
    // Two at once leave one.
    let others = asker
        .ask("projection of two", |b| set.move_dims(Dim::Param, 0, Dim::Out, at, 1).params(b))?;
    let wanted = |q: &[Int]| points(DIMS).iter().any(|p| a.has(p) && p[at] == q[0]);
    asker.same(&others, 1, wanted)?;
    let none = asker.ask("complement of one", |b| others.complement(b))?;
    asker.same(&none, 1, |q| !wanted(q))
}

fn simplifications(a: &Given, b: &Given, asker: &Asker) -> TestCaseResult {
    let (s, t) = (a.set(), b.set());
    let gist = asker.ask("gist", |budget| s.gist(&t, budget))?;
    let inside = asker.ask("intersection", |budget| gist.intersect(&t, budget))?;
    asker.same(&inside, DIMS, |p| a.has(p) && b.has(p))?;
    let explicit = asker.ask("equalities", |budget| s.detect_equalities(budget))?;
    asker.same(&explicit, DIMS, |p| a.has(p))?;
    let needed = asker.ask("redundancies", |budget| s.remove_redundancies(budget))?;
    asker.same(&needed, DIMS, |p| a.has(p))?;
    let hull = asker.ask("hull", |budget| s.affine_hull(budget))?;
    prop_assert!(asker.ask("subset", |budget| s.is_subset(&hull, budget))?);
    Ok(())
}

fn pick(all: impl Iterator<Item = Int>, greatest: bool) -> Option<Int> {
    if greatest { all.max() } else { all.min() }
}

fn extremes(a: &Given, at: usize, asker: &Asker) -> TestCaseResult {
    let set = a.set();
    let inside = a.points();
    // Another dimension as a parameter.
    let fixed = (at + 1) % DIMS;
    let by = set.move_dims(Dim::Param, 0, Dim::Out, fixed, 1);
    let place = if fixed < at { at - 1 } else { at };
    for greatest in [false, true] {
        let wanted = pick(inside.iter().map(|p| p[at]), greatest);
        match wanted {
            Some(wanted) => {
                let found =
                    asker.ask("extreme", |b| set.extreme_value(Dim::Out, at, greatest, b))?;
                prop_assert_eq!(found, wanted);
            }
            None => {
                let found = set.extreme_value(Dim::Out, at, greatest, &Budget::new(OPERATIONS));
                prop_assert_eq!(found, Err(presburger::Stop::Empty));
            }
        }
        let best = if greatest { inside.iter().max() } else { inside.iter().min() };
        let lex = asker.ask("lexicographic", |b| set.lexicographic(greatest, b))?;
        asker.same(&lex, DIMS, |p| Some(p) == best.map(|b| b.as_slice()))?;
        let f = asker.ask("extreme by parameter", |b| by.extreme(place, greatest, b))?;
        for v in LOW..=HIGH {
            let live = inside.iter().filter(|p| p[fixed] == v).map(|p| p[at]);
            let wanted = pick(live, greatest);
            let mut found = None;
            for (s, aff) in f.pieces() {
                if asker.holds(s, &[v])? {
                    let value = aff.at(&[v]).expect("small numbers");
                    prop_assert!(found.is_none() || found == Some(value), "at {} of {}", v, f);
                    found = Some(value);
                }
            }
            prop_assert_eq!(found.flatten(), wanted, "at {} of {}", v, f);
        }
    }
    Ok(())
}

fn functions(a: &Given, s: &Term, t: &Term, k: Int, asker: &Asker) -> TestCaseResult {
    let text = |t: &Term| format!("{{ [i0, i1, i2] -> [({})] }}", t.text());
    let read = |t: &Term| PwAff::parse(&text(t)).expect("a function");
    let (f, g) = (read(s), read(t));
    let set = a.set();
    let all = [
        (asker.ask("sum", |b| f.add(&g, b))?, 0),
        (asker.ask("minimum", |b| f.min(&g, b))?, 1),
        (asker.ask("maximum", |b| f.max(&g, b))?, 2),
        (asker.ask("remainder", |_| f.modulo(k))?, 3),
        (asker.ask("quotient", |_| f.scale_down(k)?.floor())?, 4),
        (asker.ask("difference", |b| f.neg()?.union_add(&g, b))?, 5),
    ];
    for (h, what) in all {
        let wanted = |p: &[Int]| {
            let (x, y) = (s.at(p), t.at(p));
            match what {
                0 => x + y,
                1 => x.min(y),
                2 => x.max(y),
                3 => x.rem_euclid(k),
                4 => x.div_euclid(k),
                _ => y - x,
            }
        };
        let gist = asker.ask("gist of a function", |b| h.gist(&set, b)?.coalesce(b))?;
        let graph = asker.ask("graph", |b| gist.intersect_domain(&set, b)?.graph())?;
        let zero = asker.ask("zero", |b| h.zero(b))?;
        let sign = asker.ask("sign", |b| h.nonneg(b))?;
        let other = asker.ask("not zero", |b| h.non_zero(b))?;
        for p in points(DIMS).into_iter().step_by(7) {
            let v = wanted(&p);
            prop_assert_eq!(asker.holds(&zero, &p)?, v == 0);
            prop_assert_eq!(asker.holds(&sign, &p)?, v >= 0);
            prop_assert_eq!(asker.holds(&other, &p)?, v != 0);
            if a.has(&p) {
                let at = [&p[..], &[v]].concat();
                prop_assert!(asker.holds(&graph.wrap(), &at)?, "{:?} of {}", at, gist);
            }
        }
        let least = pick(a.points().iter().map(|p| wanted(p)), false);
        let found = asker.ask("part", |b| h.intersect_domain(&set, b))?;
        let found = found.extreme_value(false, &Budget::new(OPERATIONS));
        prop_assert_eq!(found.ok(), least.map(|v| (v, 1)));
    }
    Ok(())
}

/// The inverse of a map whose outputs are sums of terms.
fn inverses(a: &Given, digits: &[(Term, Int, Term)], asker: &Asker) -> TestCaseResult {
    let texts: Vec<String> =
        digits.iter().map(|(s, k, t)| format!("{} + {k}*{}", s.text(), t.text())).collect();
    let text = format!("{{ [i0, i1, i2] -> [{}] }}", texts.join(", ").replace("+ -", "- "));
    let map = Relation::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let map = asker.ask("domain", |b| map.intersect_domain(&a.set(), b))?;
    let at = |p: &[Int]| digits.iter().map(|(s, k, t)| s.at(p) + k * t.at(p)).collect::<Vec<_>>();
    let points = a.points();
    let images: std::collections::BTreeSet<Vec<Int>> = points.iter().map(|p| at(p)).collect();
    let injective = images.len() == points.len();
    prop_assert_eq!(asker.ask("injective", |b| map.is_injective(b))?, injective, "{}", map);
    if !injective {
        return Ok(());
    }
    for k in 0..DIMS {
        let f = match map.reverse().function(k, &Budget::new(OPERATIONS)) {
            Err(presburger::Stop::NoForm) => continue,
            f => asker.ask("inverse", |_| f)?,
        };
        for p in &points {
            let image = at(p);
            let mut found = 0;
            for (s, aff) in f.pieces() {
                if asker.holds(s, &image)? {
                    prop_assert_eq!(aff.at(&image).expect("small"), Some(p[k]), "{:?} of {}", p, f);
                    found += 1;
                }
            }
            prop_assert_eq!(found, 1, "{:?} of {}", p, f);
        }
    }
    Ok(())
}
