//! Sets, touched cells, loop bounds and dependences against brute force.

use std::collections::BTreeSet;

use crate::common::*;
use proptest::prelude::*;
use tilewright_ir::{Buffer, DType, Expr, Range, Var};
use tilewright_polyhedral::{AccessRelation, Proof, Reason, evaluate};

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn set_algebra_agrees_with_brute_force(
        (case, (a, b)) in with(|n| (condition(n), condition(n)).boxed())
    ) {
        let d = case.domain();
        let (x, y) = (d.with_guard(&a).to_set().unwrap(), d.with_guard(&b).to_set().unwrap());
        let points = case.points();
        let sat = |p: &Vec<i64>, e: &Expr| value(e, p) != 0;
        let both: Vec<_> = points.iter().filter(|p| sat(p, &a) && sat(p, &b)).cloned().collect();
        let either: Vec<_> = points.iter().filter(|p| sat(p, &a) || sat(p, &b)).cloned().collect();
        let only: Vec<_> = points.iter().filter(|p| sat(p, &a) && !sat(p, &b)).cloned().collect();
        for (set, expected) in [
            (x.intersect(&y).unwrap(), &both),
            (x.union(&y).unwrap(), &either),
            (x.subtract(&y).unwrap(), &only),
        ] {
            prop_assert_eq!(set.is_empty().is_yes(), expected.is_empty());
            if let Some(w) = set.point().unwrap() {
                let p: Vec<i64> = case.vars().iter().map(|v| w.get(v).unwrap()).collect();
                prop_assert!(expected.contains(&p));
            }
            let cond = set.condition(&d).unwrap();
            for p in &points {
                prop_assert_eq!(value(&cond, p) != 0, expected.contains(p), "{} at {:?}", cond, p);
            }
        }
        prop_assert_eq!(x.is_subset(&y).is_yes(), only.is_empty());
        prop_assert_eq!(x.is_disjoint(&y).is_yes(), both.is_empty());
        let equal = x.is_within(&y) && y.is_within(&x);
        prop_assert_eq!(equal, both.len() == either.len());
        let first = [case.vars()[0].clone()];
        let projected = x.project(&first).unwrap();
        let seen: BTreeSet<i64> = points.iter().filter(|p| sat(p, &a)).map(|p| p[0]).collect();
        if let (Some(lo), Some(hi)) = (seen.first(), seen.last()) {
            let hull = hull(&projected);
            prop_assert_eq!(hull[0].min.as_int(), Some(*lo));
            prop_assert_eq!(hull[0].max.as_int(), Some(*hi));
        }
    }

    #[test]
    fn touched_cells_are_exact(
        (case, (guard, indices)) in with(|n| {
            (condition(n), prop::collection::vec(index(n), 1..3)).boxed()
        })
    ) {
        let d = case.domain().with_guard(&guard);
        let cells: Vec<Var> = (0..indices.len()).map(|i| Var::index(format!("c{i}"))).collect();
        let touched = AccessRelation::new(&d, &indices).touched(&cells).unwrap();
        let expected: BTreeSet<Vec<i64>> = case
            .points()
            .iter()
            .filter(|p| value(&guard, p) != 0)
            .map(|p| indices.iter().map(|e| value(e, p)).collect())
            .collect();
        // Ask inside a box with a margin.
        let ends = |k: usize| {
            let all: Vec<i64> = expected.iter().map(|c| c[k]).collect();
            (all.iter().min().map_or(0, |v| v - 1), all.iter().max().map_or(2, |v| v + 2))
        };
        let ranges: Vec<(Var, Range)> = cells.iter().enumerate().map(|(k, c)| {
            let (lo, hi) = ends(k);
            let min = Expr::int(lo, DType::I32);
            (c.clone(), Range { min, extent: Expr::int(hi - lo, DType::I32) })
        }).collect();
        let within = engine().domain_of(&ranges, &[]);
        let cond = match touched.condition(&within) {
            Ok(cond) => cond,
            Err(u) => return Err(TestCaseError::reject(u.to_string())),
        };
        let mut all = vec![vec![]];
        for k in 0..cells.len() {
            let (lo, hi) = ends(k);
            all = all.iter().flat_map(|p: &Vec<i64>| {
                (lo..hi.min(lo + 12)).map(move |v| [p.as_slice(), &[v]].concat())
            }).collect();
        }
        for c in all {
            let env = |v: &Var| cells.iter().position(|x| x == v).map(|i| c[i]);
            let inside = evaluate(&cond, &env).unwrap() != 0;
            prop_assert_eq!(inside, expected.contains(&c), "{} at {:?}", cond, c);
        }
    }

    #[test]
    fn loop_bounds_are_tight((case, guard) in with(condition)) {
        let d = case.domain().with_guard(&guard);
        let inner = case.vars().last().unwrap();
        let kept = &case.vars()[..case.vars().len() - 1];
        let points: Vec<_> =
            case.points().into_iter().filter(|p| value(&guard, p) != 0).collect();
        let bounds = match d.tight_bounds(&inner.expr(), kept) {
            Ok(b) => b,
            Err(u) => {
                let fine = points.is_empty() || u.reason() == &Reason::NoClosedForm;
                prop_assert!(fine, "{}", u);
                return Ok(());
            }
        };
        for p in &points {
            let outer = &p[..p.len() - 1];
            let same: Vec<i64> =
                points.iter().filter(|q| q.starts_with(outer)).map(|q| q[q.len() - 1]).collect();
            prop_assert_eq!(value(&bounds.min, p), *same.iter().min().unwrap());
            prop_assert_eq!(value(&bounds.max, p), *same.iter().max().unwrap());
        }
    }

    #[test]
    fn independence_agrees_with_brute_force(
        (case, (a, b, later)) in with(|n| (index(n), index(n), any::<bool>()).boxed())
    ) {
        let d = case.domain();
        let one = AccessRelation::new(&d, std::slice::from_ref(&a));
        let (two, names) = AccessRelation::new(&d, std::slice::from_ref(&b)).elsewhere();
        let x = &case.vars()[0];
        let when = if later { vec![x.expr().less(&names[x])] } else { vec![] };
        let points = case.points();
        let conflict = points.iter().any(|p| points.iter().any(|q| {
            value(&a, p) == value(&b, q) && (!later || p[0] < q[0])
        }));
        match one.independent(&two, &when) {
            Proof::Yes => prop_assert!(!conflict),
            Proof::No { witness } => {
                let p: Vec<i64> = case.vars().iter().map(|v| witness.get(v).unwrap()).collect();
                let q: Vec<i64> =
                    case.vars().iter().map(|v| witness.get(&names[v]).unwrap()).collect();
                prop_assert_eq!(value(&a, &p), value(&b, &q));
                prop_assert!(points.contains(&p) && points.contains(&q));
            }
            Proof::Unknown(u) => prop_assert!(false, "{}", u),
        }
    }
}

#[test]
fn touched_has_its_predicate() {
    let e = engine();
    let [io, ii, x, y] = ["io", "ii", "x", "y"].map(Var::index);
    let d = e.box_of(&[(io.clone(), 4), (ii.clone(), 4)]);
    let guarded = d.with_guard(&(&io * 4 + &ii).less(14));
    let cells = [x.clone(), y.clone()];
    let touched = AccessRelation::new(&guarded, &[io.expr(), ii.expr()]).touched(&cells).unwrap();
    let all = e.box_of(&[(x.clone(), 4), (y.clone(), 4)]);
    assert_eq!(touched.condition(&all).unwrap().to_string(), "x < 3 or y < 2");
    let flat = AccessRelation::new(&guarded, &[&io * 4 + &ii]).touched(&cells[..1]).unwrap();
    let hull = hull(&flat);
    assert_eq!((hull[0].min.to_string(), hull[0].max.to_string()), ("0".into(), "13".into()));
}

#[test]
fn symbolic_loop_bounds() {
    let e = engine();
    let [io, ii, n] = ["io", "ii", "n"].map(Var::index);
    let ranges =
        [(io.clone(), Range::upto((&n + 3).floordiv(4))), (ii.clone(), Range::upto(Expr::i32(4)))];
    let d = e.domain_of(&ranges, &[(&io * 4 + &ii).less(&n)]);
    let r = d.tight_range(&ii, std::slice::from_ref(&io)).unwrap();
    assert_eq!(
        (r.min.to_string(), r.extent.to_string()),
        ("0".into(), "T.min(n - io * 4, 4)".into())
    );
    let r = d.tight_range(&io, &[]).unwrap();
    assert_eq!((r.min.to_string(), r.extent.to_string()), ("0".into(), "(n + 3) // 4".into()));
    let pad = e
        .box_of(&[(io.clone(), 4), (ii.clone(), 4)])
        .with_guard(&(&io * 4 + &ii).greater_equal(14));
    let r = pad.tight_range(&io, &[]).unwrap();
    assert_eq!((r.min.to_string(), r.extent.to_string()), ("3".into(), "1".into()));
    let u = d.tight_bounds(&n.expr(), &[]).map(|b| b.max.to_string());
    assert_eq!(u.unwrap(), "n");
    let free = e.domain_of(&[], &[n.expr().greater(0)]);
    let open = free.with_var(&io, &Range { min: Expr::i32(0), extent: Expr::i32(1 << 30) });
    assert!(open.tight_bounds(&(&io + &n), &[]).is_ok());
    assert_eq!(
        pad.with_guard(&Expr::bool(false)).tight_range(&io, &[]).unwrap_err().reason(),
        &Reason::Empty
    );
}

#[test]
fn data_dependent_accesses_are_known_from_outside() {
    let e = engine();
    let (i, c) = (Var::index("i"), Var::index("c"));
    let idx = Buffer::with_extents("idx", &[8], DType::U8);
    let d = e.box_of(&[(i.clone(), 8)]);
    let scatter = AccessRelation::new(&d, &[idx.load([i.expr()]).cast(DType::I32)]);
    let touched = scatter.touched(std::slice::from_ref(&c)).unwrap();
    assert!(!touched.is_exact());
    let hull = hull(&touched);
    assert_eq!((hull[0].min.as_int(), hull[0].max.as_int()), (Some(0), Some(255)));
    assert!(touched.condition(&e.box_of(&[(c.clone(), 300)])).is_err());
    // Nothing is certain about where it goes: no proof and no refutation.
    let (other, _) = AccessRelation::new(&d, &[i.expr()]).elsewhere();
    match scatter.independent(&other, &[]) {
        Proof::Unknown(u) => assert!(u.to_string().contains("idx[i]"), "{u}"),
        other => panic!("{other}"),
    }
    // A guard on data keeps the touched cells inside of what the loops give.
    let masked = d.with_guard(&idx.load([i.expr()]).greater(3));
    let touched = AccessRelation::new(&masked, &[i.expr()]).touched(&[c]).unwrap();
    assert!(!touched.is_exact());
}

#[test]
fn shared_loops_are_one_value() {
    let e = engine();
    let (i, j) = (Var::index("i"), Var::index("j"));
    let d = e.box_of(&[(i.clone(), 8), (j.clone(), 8)]);
    let write = AccessRelation::new(&d, &[&i * 8 + &j]);
    let (read, _) = write.elsewhere_in(std::slice::from_ref(&j));
    let (anywhere, _) = write.elsewhere();
    let different = [j.expr().not_equal(read.domain.vars().nth(1).unwrap())];
    assert!(write.independent(&read, &different).is_yes());
    assert!(write.independent(&anywhere, &[]).is_no());
}

#[test]
fn sets_over_different_variables_do_not_mix() {
    let e = engine();
    let (i, j) = (Var::index("i"), Var::index("j"));
    let a = e.box_of(&[(i.clone(), 8)]).to_set().unwrap();
    let b = e.box_of(&[(j.clone(), 8)]).to_set().unwrap();
    assert_eq!(a.union(&b).err().unwrap().to_string(), "sets over different variables");
    assert_eq!(a.project(&[j]).err().unwrap().to_string(), "no dimension `j`");
    let none = a.subtract(&a).unwrap().domain();
    assert_eq!(none.bounds(&i.expr()).err().unwrap().reason(), &Reason::Empty);
}
