//! Random questions about sets in small boxes, against enumeration of all points.

use presburger::{Budget, Dim, Int, PwAff, Relation};
use proptest::prelude::*;

/// Coordinates that are looked at.
const LOW: Int = -3;
const HIGH: Int = 4;
const DIMS: usize = 3;

fn budget() -> Budget {
    Budget::new(20_000_000)
}

fn points(dims: usize) -> Vec<Vec<Int>> {
    (0..dims).fold(vec![Vec::new()], |all, _| {
        let more = |p: &Vec<Int>| {
            let p = p.clone();
            (LOW..=HIGH).map(move |v| [&p[..], &[v]].concat())
        };
        all.iter().flat_map(more).collect()
    })
}

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
#[derive(Clone, Debug)]
struct Given(Vec<Vec<Constraint>>);

impl Given {
    fn set(&self) -> Relation {
        let boxed: Vec<String> = (0..DIMS).map(|k| format!("{LOW} <= i{k} <= {HIGH}")).collect();
        let part = |c: &Vec<Constraint>| {
            let mut all = boxed.clone();
            all.extend(c.iter().map(Constraint::text));
            format!("[i0, i1, i2] : {}", all.join(" and "))
        };
        let parts: Vec<String> = self.0.iter().map(part).collect();
        let text = format!("{{ {} }}", parts.join("; "));
        Relation::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    fn has(&self, p: &[Int]) -> bool {
        self.0.iter().any(|c| c.iter().all(|c| c.holds(p)))
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

/// Whether a set has a point.
fn holds(set: &Relation, p: &[Int]) -> bool {
    let eqs: Vec<Vec<Int>> = (p.iter().enumerate())
        .map(|(k, v)| {
            let mut row = vec![0; 1 + p.len()];
            (row[0], row[1 + k]) = (-v, 1);
            row
        })
        .collect();
    let point = Relation::of_constraints(set.space(), &eqs, &[]).expect("small numbers");
    !set.is_disjoint(&point, &budget()).expect("few operations")
}

fn same(set: &Relation, dims: usize, has: impl Fn(&[Int]) -> bool) -> Result<(), TestCaseError> {
    for p in points(dims) {
        prop_assert_eq!(holds(set, &p), has(&p), "{:?} of {}", p, set);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn points_are_those_of_the_formula(a in given()) {
        let set = a.set();
        same(&set, DIMS, |p| a.has(p))?;
        // The text says the same.
        let again = Relation::parse(&set.to_string()).expect("own text");
        prop_assert!(again.is_equal(&set, &budget()).expect("decided"));
    }

    #[test]
    fn emptiness_has_a_point(a in given()) {
        let set = a.set();
        let some = points(DIMS).iter().any(|p| a.has(p));
        prop_assert_eq!(set.is_empty(&budget()).expect("decided"), !some);
        if let Some(p) = set.sample(&budget()).expect("decided") {
            prop_assert!(a.has(&p), "{:?}", p);
        }
    }

    #[test]
    fn differences_unions_and_intersections(a in given(), b in given()) {
        let (s, t) = (a.set(), b.set());
        let budget = budget();
        same(&s.subtract(&t, &budget).expect("decided"), DIMS, |p| a.has(p) && !b.has(p))?;
        same(&s.intersect(&t, &budget).expect("decided"), DIMS, |p| a.has(p) && b.has(p))?;
        same(&s.union(&t).coalesce(&budget).expect("decided"), DIMS, |p| a.has(p) || b.has(p))?;
        let all = points(DIMS);
        let within = all.iter().all(|p| !a.has(p) || b.has(p));
        let apart = all.iter().all(|p| !a.has(p) || !b.has(p));
        prop_assert_eq!(s.is_subset(&t, &budget).expect("decided"), within);
        prop_assert_eq!(s.is_disjoint(&t, &budget).expect("decided"), apart);
    }

    #[test]
    fn projections_are_exact(a in given(), at in 0..DIMS) {
        let budget = budget();
        let shadow = a.set().project_out(Dim::Out, at, 1, &budget).expect("decided");
        let wanted = |q: &[Int]| {
            (LOW..=HIGH).any(|v| {
                let mut p = q.to_vec();
                p.insert(at, v);
                a.has(&p)
            })
        };
        same(&shadow, DIMS - 1, wanted)?;
        let explicit = shadow.compute_divs(&budget).expect("decided");
        same(&explicit, DIMS - 1, wanted)?;
        let others = shadow.complement(&budget).expect("decided");
        same(&others, DIMS - 1, |q| !wanted(q))?;
    }

    #[test]
    fn gist_and_hull_and_equalities(a in given(), b in given()) {
        let budget = budget();
        let (s, t) = (a.set(), b.set());
        let gist = s.gist(&t, &budget).expect("decided");
        let inside = gist.intersect(&t, &budget).expect("decided");
        same(&inside, DIMS, |p| a.has(p) && b.has(p))?;
        let explicit = s.detect_equalities(&budget).expect("decided");
        same(&explicit, DIMS, |p| a.has(p))?;
        let needed = s.remove_redundancies(&budget).expect("decided");
        same(&needed, DIMS, |p| a.has(p))?;
        let hull = s.affine_hull(&budget).expect("decided");
        prop_assert!(s.is_subset(&hull, &budget).expect("decided"));
    }

    #[test]
    fn extremes(a in given(), at in 0..DIMS) {
        let budget = budget();
        let set = a.set();
        let inside: Vec<Vec<Int>> = points(DIMS).into_iter().filter(|p| a.has(p)).collect();
        for greatest in [false, true] {
            let pick = |all: &mut dyn Iterator<Item = Int>| if greatest { all.max() } else { all.min() };
            let wanted = pick(&mut inside.iter().map(|p| p[at]));
            let found = set.extreme_value(Dim::Out, at, greatest, &budget).ok();
            prop_assert_eq!(found, wanted);
            let best = if greatest { inside.iter().max() } else { inside.iter().min() };
            let lex = set.lexicographic(greatest, &budget).expect("decided");
            same(&lex, DIMS, |p| Some(p) == best.map(|b| b.as_slice()))?;
            // By the other dimensions as parameters.
            let by = set.move_dims(Dim::Param, 0, Dim::Out, (at + 1) % DIMS, 1);
            let place = if (at + 1) % DIMS < at { at - 1 } else { at };
            let Ok(f) = by.extreme(place, greatest, &budget) else { continue };
            for v in LOW..=HIGH {
                let wanted = pick(&mut inside.iter().filter(|p| p[(at + 1) % DIMS] == v).map(|p| p[at]));
                let mut found = None;
                for (s, aff) in f.pieces() {
                    if holds(s, &[v]) {
                        let value = aff.at(&[v]).expect("small numbers");
                        prop_assert!(found.is_none() || found == Some(value));
                        found = Some(value);
                    }
                }
                prop_assert_eq!(found.flatten(), wanted, "at {} of {}", v, f);
            }
        }
    }

    #[test]
    fn functions_by_pieces(a in given(), s in term(), t in term(), k in 2..5i128) {
        let budget = budget();
        let text = |t: &Term| format!("{{ [i0, i1, i2] -> [({})] }}", t.text());
        let read = |t: &Term| PwAff::parse(&text(t)).expect("a function");
        let (f, g) = (read(&s), read(&t));
        let set = a.set();
        let all = [
            (f.add(&g, &budget).expect("decided"), 0),
            (f.min(&g, &budget).expect("decided"), 1),
            (f.max(&g, &budget).expect("decided"), 2),
            (f.modulo(k).expect("decided"), 3),
            (f.scale_down(k).expect("decided").floor().expect("decided"), 4),
            (f.neg().expect("decided").union_add(&g, &budget).expect("decided"), 5),
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
            let gist = h.gist(&set, &budget).expect("decided").coalesce(&budget).expect("decided");
            let graph = gist.intersect_domain(&set, &budget).expect("decided").graph().expect("small");
            let zero = h.zero(&budget).expect("decided");
            let sign = h.nonneg(&budget).expect("decided");
            let other = h.non_zero(&budget).expect("decided");
            for p in points(DIMS).into_iter().step_by(7) {
                let v = wanted(&p);
                prop_assert_eq!(holds(&zero, &p), v == 0);
                prop_assert_eq!(holds(&sign, &p), v >= 0);
                prop_assert_eq!(holds(&other, &p), v != 0);
                if a.has(&p) {
                    let at = [&p[..], &[v]].concat();
                    prop_assert!(holds(&graph.wrap(), &at), "{:?} of {}", at, gist);
                }
            }
            let inside: Vec<Int> = points(DIMS).iter().filter(|p| a.has(p)).map(|p| wanted(p)).collect();
            let least = h.intersect_domain(&set, &budget).expect("decided").extreme_value(false, &budget);
            prop_assert_eq!(least.ok(), inside.iter().min().map(|v| (*v, 1)));
        }
    }
}
