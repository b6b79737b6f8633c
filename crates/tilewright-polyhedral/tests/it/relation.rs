//! Index maps against brute force: injectivity, shape, padding, inverse, composition.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::*;
use proptest::prelude::*;
use tilewright_ir::{Expr, Range, Var};
use tilewright_polyhedral::{Reason, Relation, evaluate};

/// Maps of the kinds that layouts are made of: offsets, splits, fusions, permutations.
fn layout(n: usize) -> BoxedStrategy<Vec<Expr>> {
    #[derive(Clone, Debug)]
    enum Step {
        Offset(usize, i64),
        Split(usize, i64),
        Fuse(usize, i64),
        Rotate,
    }
    let step = prop_oneof![
        1 => (0usize..4, 0i64..4).prop_map(|(a, k)| Step::Offset(a, k)),
        3 => (0usize..4, 2i64..6).prop_map(|(a, k)| Step::Split(a, k)),
        1 => (0usize..4, 3i64..9).prop_map(|(a, k)| Step::Fuse(a, k)),
        1 => Just(Step::Rotate),
    ];
    prop::collection::vec(step, 1..4)
        .prop_map(move |steps| {
            // The variables start at -3 or above.
            let mut axes: Vec<Expr> = VARS[..n].iter().map(|v| v + 3).collect();
            for s in steps {
                match s {
                    Step::Offset(a, k) => {
                        let a = a % axes.len();
                        axes[a] = &axes[a] + k;
                    }
                    Step::Split(a, k) => {
                        let a = a % axes.len();
                        let e = axes[a].clone();
                        axes[a] = e.clone().floordiv(k);
                        axes.insert(a + 1, e.floormod(k));
                    }
                    Step::Fuse(a, k) if axes.len() > 1 => {
                        let a = a % (axes.len() - 1);
                        let inner = axes.remove(a + 1);
                        axes[a] = &axes[a] * k + inner;
                    }
                    Step::Fuse(..) => {}
                    Step::Rotate => axes.rotate_left(1),
                }
            }
            axes
        })
        .boxed()
}

fn image_of(case: &Case, map: &[Expr]) -> BTreeMap<Vec<i64>, Vec<Vec<i64>>> {
    let mut image: BTreeMap<Vec<i64>, Vec<Vec<i64>>> = BTreeMap::new();
    for p in case.points() {
        image.entry(map.iter().map(|e| value(e, &p)).collect()).or_default().push(p);
    }
    image
}

fn cells(n: usize) -> Vec<Var> {
    (0..n).map(|i| Var::index(format!("p{i}"))).collect()
}

fn at(e: &Expr, vars: &[Var], point: &[i64]) -> i64 {
    let env = |v: &Var| vars.iter().position(|x| x == v).and_then(|i| point.get(i).copied());
    evaluate(e, &env).unwrap_or_else(|| panic!("`{e}` has no value at {point:?}"))
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn collisions_are_found((case, map) in with(|n| prop::collection::vec(index(n), 1..3).boxed())) {
        let image = image_of(&case, &map);
        let relation = case.domain().map(&map).unwrap();
        match relation.collision().unwrap() {
            None => prop_assert!(image.values().all(|points| points.len() == 1)),
            Some(c) => {
                let points: Vec<Vec<i64>> = [&c.first, &c.second]
                    .map(|w| case.vars().iter().map(|v| w.get(v).unwrap()).collect())
                    .to_vec();
                prop_assert!(points[0] != points[1], "{}", c);
                prop_assert!(image.values().any(|all| points.iter().all(|p| all.contains(p))));
            }
        }
    }

    #[test]
    fn shape_and_padding_are_exact((case, map) in with(layout)) {
        let image = image_of(&case, &map);
        prop_assume!(!image.is_empty());
        let relation = case.domain().map(&map).unwrap();
        let vars = cells(map.len());
        let found = relation.image(&vars).unwrap();
        let shape: Vec<i64> = found.shape.iter().map(|e| e.as_int().unwrap()).collect();
        for (k, extent) in shape.iter().enumerate() {
            prop_assert_eq!(*extent, image.keys().map(|c| c[k]).max().unwrap() + 1);
        }
        let mut all = vec![vec![]];
        for n in &shape {
            all = all.iter().flat_map(|p: &Vec<i64>| {
                (0..*n).map(move |v| [p.as_slice(), &[v]].concat())
            }).collect();
        }
        for cell in all {
            let padded = at(&found.padding, &vars, &cell) != 0;
            prop_assert_eq!(padded, !image.contains_key(&cell), "{} at {:?}", found.padding, cell);
        }
    }

    #[test]
    fn inverses_invert((case, map) in with(layout)) {
        let image = image_of(&case, &map);
        let relation = case.domain().map(&map).unwrap();
        let vars = cells(map.len());
        let injective = image.values().all(|points| points.len() == 1);
        match relation.inverse(&vars) {
            Ok(inverse) => {
                prop_assert!(injective);
                for (cell, points) in &image {
                    for (e, x) in inverse.iter().zip(&points[0]) {
                        prop_assert_eq!(at(e, &vars, cell), *x, "{} of {:?}", e, map);
                    }
                }
            }
            Err(u) => prop_assert!(!injective || image.is_empty(), "{} of {:?}", u, map),
        }
    }

    #[test]
    fn arbitrary_maps_are_inverted_by_the_engine(
        (case, map) in with(|n| prop::collection::vec(index(n), n..n + 2).boxed())
    ) {
        let image = image_of(&case, &map);
        let injective = image.values().all(|points| points.len() == 1);
        let vars = cells(map.len());
        let relation = case.domain().map(&map).unwrap();
        match relation.inverse(&vars) {
            Ok(inverse) => {
                prop_assert!(injective);
                for (cell, points) in &image {
                    for (e, x) in inverse.iter().zip(&points[0]) {
                        prop_assert_eq!(at(e, &vars, cell), *x, "{} of {:?}", e, map);
                    }
                }
            }
            Err(u) => prop_assert!(
                !injective || image.is_empty() || u.reason() == &Reason::NoClosedForm, "{}", u
            ),
        }
    }

    #[test]
    fn composition_is_substitution((case, map) in with(layout), outer in 0usize..4, k in 2i64..6) {
        let relation = case.domain().map(&map).unwrap();
        let vars = cells(map.len());
        let outer = vars[outer % vars.len()].expr();
        let after = [outer.clone().floordiv(k), outer.clone().floormod(k)];
        let both = relation.then(&vars, &after).unwrap();
        for p in case.points() {
            let cell: Vec<i64> = map.iter().map(|e| value(e, &p)).collect();
            for (e, a) in both.exprs().iter().zip(&after) {
                prop_assert_eq!(value(e, &p), at(a, &vars, &cell));
            }
        }
    }

    #[test]
    fn ranges_are_exact((case, map) in with(|n| prop::collection::vec(index(n), 1..3).boxed())) {
        let image = image_of(&case, &map);
        let relation = case.domain().map(&map).unwrap();
        let vars = cells(map.len());
        let range = relation.range(&vars).unwrap();
        prop_assert!(range.is_exact());
        prop_assert_eq!(range.is_empty().is_yes(), image.is_empty());
        if image.is_empty() {
            return Ok(());
        }
        for (bounds, k) in hull(&range).iter().zip(0..) {
            let reached: BTreeSet<i64> = image.keys().map(|c| c[k]).collect();
            prop_assert_eq!(bounds.min.as_int(), reached.first().copied());
            prop_assert_eq!(bounds.max.as_int(), reached.last().copied());
        }
    }
}

fn texts(list: &[Expr]) -> Vec<String> {
    list.iter().map(Expr::to_string).collect()
}

fn split(i: &Var, k: i64) -> [Expr; 2] {
    [i.expr().floordiv(k), i.expr().floormod(k)]
}

fn relation(ranges: &[(&Var, i64)], map: &[Expr]) -> Relation {
    let extents: Vec<(Var, i64)> = ranges.iter().map(|(v, n)| ((*v).clone(), *n)).collect();
    engine().box_of(&extents).map(map).unwrap()
}

#[test]
fn inverses_read_as_people_write() {
    let [i, j, k, l] = ["i", "j", "k", "l"].map(Var::index);
    let [p, q, r, s, t] = ["p", "q", "r", "s", "t"].map(Var::index);
    // Split, exact and ragged, and with an offset.
    let two = [p.clone(), q.clone()];
    assert_eq!(texts(&relation(&[(&i, 16)], &split(&i, 4)).inverse(&two).unwrap()), ["p * 4 + q"]);
    let offset = [(&i + 2).floordiv(8), (&i + 2).floormod(8)];
    let shifted = relation(&[(&i, 14)], &offset);
    assert_eq!(texts(&shifted.inverse(&two).unwrap()), ["p * 8 + q - 2"]);
    // Several levels.
    let levels = [i.expr().floordiv(16), i.expr().floordiv(4).floormod(4), i.expr().floormod(4)];
    let three = [p.clone(), q.clone(), r.clone()];
    let inverse = relation(&[(&i, 60)], &levels).inverse(&three).unwrap();
    assert_eq!(texts(&inverse), ["p * 16 + q * 4 + r"]);
    // Fusion, permutation.
    let fused = relation(&[(&i, 3), (&j, 4), (&k, 5)], &[&i * 20 + &j * 5 + &k]);
    let inverse = fused.inverse(std::slice::from_ref(&p)).unwrap();
    assert_eq!(texts(&inverse), ["p // 20", "p % 20 // 5", "p % 5"]);
    let permuted = relation(&[(&i, 3), (&j, 4)], &[j.expr(), i.expr()]);
    assert_eq!(texts(&permuted.inverse(&two).unwrap()), ["q", "p"]);
    // NCHW to NCHW4c, and a fused spatial axis on top.
    let packed = [i.expr(), j.expr().floordiv(4), &k * 7 + &l, j.expr().floormod(4)];
    let four = [p, q, r, s];
    let map = relation(&[(&i, 2), (&j, 6), (&k, 7), (&l, 7)], &packed);
    assert_eq!(texts(&map.inverse(&four).unwrap()), ["p", "q * 4 + s", "r // 7", "r % 7"]);
    // Diagonal storage: only elimination sees it.
    let skewed = relation(&[(&i, 5), (&j, 5)], &[i.expr(), &i + &j]);
    assert_eq!(texts(&skewed.inverse(&two).unwrap()), ["p", "q - p"]);
    // Terms whose ranges overlap: remainders tell them, one after the other.
    let overlapping = [((&i + &k) * 2 + &j) * 3 + &k, &i * 10 + &j * 15 + &k * 6, &i * 3 - &j * 5];
    for (map, extents) in overlapping.iter().zip([[4, 2, 3], [3, 2, 5], [5, 3, 1]]) {
        let [a, b, c] = extents;
        let relation = relation(&[(&i, a), (&j, b), (&k, c)], std::slice::from_ref(map));
        let inverse = relation.inverse(std::slice::from_ref(&t)).unwrap();
        let point = |n: i64| [n / (b * c), n / c % b, n % c];
        for x in (0..a * b * c).map(point) {
            let cell = at(map, &[i.clone(), j.clone(), k.clone()], &x);
            let back = inverse.iter().map(|e| at(e, std::slice::from_ref(&t), &[cell]));
            assert_eq!(back.collect::<Vec<_>>(), x, "{map}: {:?}", texts(&inverse));
        }
    }
    // A tangle, by the engine.
    let tangled = relation(&[(&i, 12)], &[(&i * 5).floormod(12)]);
    let inverse = tangled.inverse(std::slice::from_ref(&t)).unwrap();
    for x in 0..12 {
        assert_eq!(at(&inverse[0], std::slice::from_ref(&t), &[x * 5 % 12]), x, "{}", inverse[0]);
    }
}

#[test]
fn collisions_are_shown() {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let folded = relation(&[(&i, 16), (&j, 2)], &[i.expr().floormod(8), j.expr()]);
    let shown = folded.collision().unwrap().unwrap().to_string();
    assert_eq!(shown, "(i=0, j=0) and (i=8, j=0) have one image");
    let refused = folded.inverse(&cells(2)).unwrap_err();
    assert_eq!(refused.to_string(), shown);
}

#[test]
fn padding_in_every_place() {
    let i = Var::index("i");
    let two = ["io", "ii"].map(Var::index);
    let padding =
        |n: i64, map: &[Expr]| relation(&[(&i, n)], map).image(&two).unwrap().padding.to_string();
    assert_eq!(padding(16, &split(&i, 4)), "T.bool(False)");
    assert_eq!(padding(14, &split(&i, 4)), "io == 3 and ii >= 2");
    let shifted = [(&i + 2).floordiv(8), (&i + 2).floormod(8)];
    assert_eq!(padding(14, &shifted), "io == 0 and ii < 2");
    let both = [(&i + 3).floordiv(8), (&i + 3).floormod(8)];
    assert_eq!(padding(11, &both), "io == 0 and ii < 3 or io == 1 and ii >= 6");
    let gaps = [i.expr(), i.expr().floormod(1) + &i * 2];
    assert_eq!(padding(3, &gaps), "io * 2 != ii");
}

/// The cells of this map's padding are many parts, which coalescing must not lose.
#[test]
fn padding_without_coalescing() {
    let [i, j] = ["i", "j"].map(Var::index);
    let two = ["io", "ii"].map(Var::index);
    let skewed = (&i + &j) * 6 + &j;
    let split = [skewed.clone().floordiv(2), skewed.floormod(2)];
    let map = relation(&[(&i, 3), (&j, 6)], &split);
    let image = map.image(&two).unwrap();
    let padding = image.cells.with_guard(&image.padding);
    for (io, ii) in (0..24).flat_map(|io| [(io, 0), (io, 1)]) {
        let reached = (0..3).any(|i| (0..6).any(|j| (i + j) * 6 + j == io * 2 + ii));
        let here = two[0].expr().equal(io).and(two[1].expr().equal(ii));
        assert_eq!(padding.prove(&!here).is_yes(), reached, "{io}, {ii}");
    }
}

/// Digits of a digit of a sum: what the sizes are is no part of what the padding says.
#[test]
fn padding_of_digits_of_a_digit() {
    let [i, j] = ["i", "j"].map(Var::index);
    let (rows, columns) = (12, 13);
    let shifted = (&i + &j).floormod(4) + 2;
    let digits =
        [(&i + &j).floordiv(4), shifted.clone().floordiv(3), shifted.floormod(3), j.expr()];
    let map = relation(&[(&i, rows), (&j, columns)], &digits);
    let cells = cells(4);
    let image = map.image(&cells).unwrap();
    assert_eq!(texts(&image.shape), ["6", "2", "3", "13"]);
    let reached: BTreeSet<[i64; 4]> = (0..rows)
        .flat_map(|i| (0..columns).map(move |j| (i, j)))
        .map(|(i, j)| {
            let (quotient, rest) = ((i + j) / 4, (i + j) % 4 + 2);
            [quotient, rest / 3, rest % 3, j]
        })
        .collect();
    for at in 0..6 * 2 * 3 * 13 {
        let point = [at / 78, at / 39 % 2, at / 13 % 3, at % 13];
        let value = |v: &Var| cells.iter().position(|c| c == v).map(|k| point[k]);
        let is_padding = evaluate(&image.padding, &value).unwrap() != 0;
        assert_eq!(is_padding, !reached.contains(&point), "{point:?}");
    }
    assert!(map.inverse(&cells).is_ok());
}

#[test]
fn symbolic_shapes() {
    let (i, n) = (Var::index("i"), Var::index("n"));
    let d = engine().domain_of(&[(i.clone(), Range::upto(n.expr()))], &[]);
    let map = d.map(&split(&i, 4)).unwrap();
    let two = ["io", "ii"].map(Var::index);
    let large = d.with_guard(&n.expr().greater_equal(4)).map(&split(&i, 4)).unwrap();
    let image = large.image(&two).unwrap();
    assert_eq!(texts(&image.shape), ["(n + 3) // 4", "4"]);
    assert_eq!(image.padding.to_string(), "io * 4 + ii >= n");
    assert_eq!(texts(&map.inverse(&two).unwrap()), ["io * 4 + ii"]);
    assert_eq!(texts(&map.physical_shape().unwrap()), ["(n + 3) // 4", "4"]);
    assert!(map.collision().unwrap().is_none());
}

#[test]
fn symbolic_tiles_are_not_affine() {
    let [i, n, t] = ["i", "n", "t"].map(Var::index);
    let d = engine().domain_of(&[(i.clone(), Range::upto(n.expr()))], &[t.expr().greater(0)]);
    let map = d.map(&[i.expr().floordiv(t.expr()), i.expr().floormod(t.expr())]).unwrap();
    let u = map.image(&["io", "ii"].map(Var::index)).err().unwrap();
    assert!(matches!(u.reason(), Reason::NotAffine { .. }), "{u}");
}

#[test]
fn negative_indices_have_no_physical_shape() {
    let i = Var::index("i");
    let map = relation(&[(&i, 8)], &[&i - 2]);
    let u = map.physical_shape().unwrap_err();
    assert_eq!(u.to_string(), "`i - 2` is negative at i=0");
    let wrong = map.inverse(&cells(2)).unwrap_err();
    assert_eq!(wrong.to_string(), "2 variables for 1 indices");
}

#[test]
fn equal_maps_are_recognised() {
    let i = Var::index("i");
    let a = relation(&[(&i, 64)], &split(&i, 4));
    let p = cells(2);
    let round = a.then(&p, &[&p[0] * 4 + &p[1]]).unwrap();
    assert_eq!(texts(round.exprs()), ["i"]);
    assert!(round.same_as(&a.domain().map(&[i.expr()]).unwrap()).is_yes());
    let other = a.domain().map(&split(&i, 8)).unwrap();
    assert_eq!(a.same_as(&other).to_string(), "no, at i=4");
}
