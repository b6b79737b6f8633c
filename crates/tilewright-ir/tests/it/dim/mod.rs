//! Sizes that may be open: their normal form, against values, and as expressions.

mod fact;
mod integer;
mod order;

use tilewright_ir::dim::{Fact, Integer, SizeRange, narrow, open_size};
use tilewright_ir::{DType, Dim, Expr, ExprKind, Var};

fn open(name: &str) -> Dim {
    Dim::open(&Var::new(name, DType::I64))
}

#[test]
fn equal_polynomials_are_one_size() {
    let (n, m) = (open("n"), open("m"));
    assert_eq!((n + 1) * m, m + n * m);
    assert_eq!(n + m - n, m);
    assert_eq!((n * 12 * m).floordiv(m * 4), n * 3);
    assert_eq!((n * 12 + 5).floordiv(4), n * 3 + 1);
    assert_eq!((n * 12 + 5).modulo(4), Dim::from(1));
    assert_ne!(n, open("n"));
    assert_eq!(n - n, Dim::from(0));
}

#[test]
fn what_is_not_decided_is_a_term() {
    let n = open("n");
    let half = (n + 1).floordiv(2);
    assert_eq!(half, n.ceildiv(2));
    assert_eq!(half.to_string(), "(n + 1) // 2");
    assert_eq!((n - 1).floordiv(2) + 1, half);
    for (at, out) in [(1, 1), (2, 1), (33, 17), (34, 17)] {
        assert_eq!(((n - 1).floordiv(2) + 1).value(&|_| Some(at)), Some(out));
    }
    assert_eq!((half * 2).floordiv(2), half);
    // Windows of two and three cells, two apart.
    assert_eq!((n - 2).floordiv(2) + 1, n.floordiv(2));
    assert_eq!((n - 1).floordiv(2) + 1, half);
    assert_eq!(((n - 1).floordiv(2) + 1).value(&|_| Some(8)), Some(4));
    assert_eq!(n.max(1), n);
    assert_eq!(n.min(7).to_string(), "T.min(7, n)");
    assert!(n.at_least(1) && !n.at_least(2) && (n + 1).at_least(2));
    let value = |d: Dim, at: usize| d.value(&|_| Some(at));
    assert_eq!((value(half, 6), value(half, 7)), (Some(3), Some(4)));
    assert_eq!(value(n - 3, 2), None);
    assert_eq!(value((n - 5).floordiv(2) + 1, 1), None);
    let rest = (n - 3).max(0);
    assert_eq!((value(rest, 2), value(rest, 3), value(rest, 8)), (Some(0), Some(0), Some(5)));
}

#[test]
fn what_is_rounded_down_below_zero_is_rounded_up() {
    let n = open("n");
    let (none, up) = (Integer::from(0), Integer::from(n.ceildiv(16)));
    // How exporters round up, and what they pad by.
    let minus = none.minus(n).expect("small");
    let down = minus.floordiv(16).expect("by a number");
    assert_eq!(none.minus(down), Some(up));
    let pad = minus.minus(down.times(16).expect("small")).and_then(|pad| pad.dim());
    let pad = pad.expect("a size");
    assert_eq!(n + pad, n.ceildiv(16) * 16);
    assert!(pad.at_least(0));
    // What it is of a small number is not taken apart.
    let third = pad.floordiv(3);
    assert_eq!(third.to_string(), "(n * -1 + (n + 15) // 16 * 16) // 3");
    for at in [1, 15, 16, 17, 40] {
        assert_eq!(pad.value(&|_| Some(at)), Some((16 - at % 16) % 16), "{at}");
        assert_eq!(third.value(&|_| Some(at)), Some((16 - at % 16) % 16 / 3), "{at}");
    }
    assert_eq!((n * 55).floordiv(28).to_string(), "n + n * 27 // 28");
    // The same by two remainders.
    let short = Integer::from(16).minus(n.modulo(Dim::from(16))).and_then(|d| d.dim());
    assert_eq!(short.expect("a size").modulo(Dim::from(16)), pad);
}

#[test]
fn a_size_demands_what_its_parts_need() {
    let (n, m) = (open("n"), open("m"));
    let steps = (n - 5).floordiv(m - 1);
    assert_eq!((steps + 1).demands(), [(n - 5, 0), (m - 1, 1), (steps + 1, 0)]);
    assert_eq!((n - 3).max(0).demands(), [((n - 3).max(0), 0)]);
    assert_eq!(Dim::from(4).demands(), []);
    let ceiling = (n * m * 3 - 2).ceiling().to_string();
    assert_eq!(
        ceiling,
        "T.float64(2.0) + T.float64(3.0) * T.Cast(\"float64\", n) * T.Cast(\"float64\", m)"
    );
}

#[test]
fn variables_of_functions_stand_for_sizes() {
    let var = Var::new("n", DType::I64);
    let n = Dim::open(&var);
    let inside = narrow(&var);
    assert_eq!((open_size(&inside), open_size(&Var::index("n"))), (Some(var), None));
    assert_eq!(Dim::from_expr(&(n * 2).expr()).map(Dim::outside), Some(n * 2));
    assert_eq!((Dim::open(&inside).outside(), n.inside()), (n, Dim::open(&inside)));
}

#[test]
fn equal_floors_and_sums_are_one_size() {
    let (h, w, b) = (open("h"), open("w"), open("b"));
    // Five strides of two, and one division.
    let halved = (0..5).fold(h, |d, _| (d - 1).floordiv(2) + 1);
    assert_eq!(halved, (h + 31).floordiv(32));
    assert_eq!(h.floordiv(3).floordiv(w), h.floordiv(w * 3));
    assert_eq!((h * 6 + 5).floordiv(4), h + (h + 2).floordiv(2));
    assert_eq!((h * w).floordiv(w * 2), h.floordiv(2));
    // A sum cancels.
    let tokens = h * w + 1;
    assert_eq!((tokens * b * 12).floordiv(tokens * 4), b * 3);
    assert_eq!((tokens * (h + w)).floordiv(h + w), tokens);
    // A remainder is what a quotient leaves.
    assert_eq!(h - h.floordiv(2) * 2, h.modulo(2));
    assert_eq!(h.modulo(2).to_string(), "h % 2");
    assert_eq!((h * 3 + w.modulo(4) * 2).to_string(), "h * 3 + w % 4 * 2");
    // What two sums have in common is not inside of the larger one.
    assert_eq!((h - 3).max(0), h.max(3) - 3);
    assert_eq!((h + w).min(w + 6) - w, h.min(6));
    let (pad, start) = (h.max(5) - 5, h.max(5) - h);
    assert!((pad * 2 + 9).at_least(start + h * 2 - 1));
}

#[test]
fn what_a_half_leaves_is_the_other_half() {
    let [n, m] = ["n", "m"].map(|name| Dim::open(&Var::new(name, DType::I64)));
    assert_eq!(n - n.ceildiv(2), n.floordiv(2));
    assert_eq!(n - n.floordiv(2), n.ceildiv(2));
    assert_eq!((n + m) * 3 - (n + m).floordiv(2) * 3 + 1, (n + m).ceildiv(2) * 3 + 1);
    assert_eq!((n - n.floordiv(2)) + n.floordiv(2), n);
    assert_eq!(m * n - m * n.ceildiv(2), m * n.floordiv(2));
    let half = n.floordiv(2);
    assert_eq!(half - half.ceildiv(2), n.floordiv(4));
    assert_eq!(n.floordiv(4) + (n + 2).floordiv(4), half);
    assert_eq!(m * (half - half.ceildiv(2)), m * half - m * (n + 2).floordiv(4));
    let e = (m * (half - half.ceildiv(2))).expr();
    assert_eq!(Dim::from_expr(&e), Some((m * (half - half.ceildiv(2))).inside()), "{e}");
    // A remainder stays one.
    assert_eq!(n - n.floordiv(2) * 2, n.modulo(2));
}

#[test]
fn ranges_and_quotients_decide_which_is_larger() {
    let range = SizeRange::new(4, 1000).expect("a range");
    let n = Dim::open(&Var::size("n", DType::I64, range));
    let (h, w) = (open("h"), open("w"));
    assert_eq!(n.min(1000), n);
    assert_eq!(n.floordiv(1001), Dim::from(0));
    assert!((n - 3).floordiv(2).at_least(0) && (h * w).at_least(h));
    assert!(h.at_least(h.floordiv(2) * 2) && (h.floordiv(2) * 2 + 1).at_least(h));
    assert!(h.max(w).at_least(h) && (h + w).at_least(h.max(w)) && !h.at_least(h.max(w)));
    assert!(h.min(w).at_least(1) && h.at_least(h.min(w)));
    let zero = Dim::open(&Var::size("z", DType::I64, SizeRange::WITH_ZERO));
    assert!(!zero.at_least(1) && zero.min(1) != 1 && zero.at_least(0));
}

/// What a random sum of quotients, larger and smaller ones is, by its form and by arithmetic.
#[test]
fn forms_have_the_values_of_what_they_are_made_of() {
    let vars = ["p", "q"].map(|name| Var::new(name, DType::I64));
    let mut state = 1u64;
    let mut random = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let points: Vec<[i128; 2]> = (1..10).flat_map(|p| (1..10).map(move |q| [p, q])).collect();
    let mut sizes: Vec<(Dim, Vec<i128>)> =
        (0..2).map(|k| (Dim::open(&vars[k]), points.iter().map(|p| p[k]).collect())).collect();
    for round in 0..400 {
        let (a, b) = (random(sizes.len() as u64) as usize, random(sizes.len() as u64) as usize);
        let ((a, x), (b, y)) = (sizes[a].clone(), sizes[b].clone());
        let k = random(4) as usize + 1;
        let each = |f: &dyn Fn(i128, i128) -> i128| -> Vec<i128> {
            x.iter().zip(&y).map(|(x, y)| f(*x, *y)).collect()
        };
        let (made, want) = match random(8) {
            0 => (a + b, each(&|x, y| x + y)),
            1 => (a * k, each(&|x, _| x * k as i128)),
            2 => (a + k, each(&|x, _| x + k as i128)),
            3 => (a.floordiv(k), each(&|x, _| x.div_euclid(k as i128))),
            4 => (a.modulo(k), each(&|x, _| x.rem_euclid(k as i128))),
            5 => (a.max(b), each(&|x, y| x.max(y))),
            6 => (a.min(b), each(&|x, y| x.min(y))),
            _ => ((a - b).max(0), each(&|x, y| (x - y).max(0))),
        };
        for (point, want) in points.iter().zip(&want) {
            assert_eq!(
                made.value(&|v| Some(point[usize::from(*v == vars[1])] as usize)),
                Some(*want as usize),
                "{round}: {made} at {point:?}"
            );
        }
        let (all, none) = (want.iter().all(|v| *v >= 2), want.iter().all(|v| *v < 2));
        assert!(all || !made.at_least(2), "{made}");
        assert!(none || !Dim::from(1).at_least(made), "{made}");
        if let Some(fact) = Fact::of_equal(made, a, &|_| true) {
            for (point, (made, a)) in points.iter().zip(want.iter().zip(&x)) {
                let of = |v: &Var| Some(point[usize::from(*v == vars[1])] as usize);
                let at = |v: &Var| of(v).unwrap_or(0);
                let holds = match &fact {
                    Fact::Is(v, d) => d.value(&of) == Some(at(v)),
                    Fact::Within(v, least, most) => (*least..=*most).contains(&at(v)),
                    Fact::Multiple(v, n) => at(v).is_multiple_of(*n),
                    Fact::Next(v, remainders) => remainders.contains(at(v)),
                };
                assert_eq!(holds, made == a, "{fact:?} at {point:?}");
            }
        }
        if want.iter().all(|v| *v < 1 << 20) && made.to_string().len() < 60 {
            sizes.push((made, want));
        }
    }
}

#[test]
fn expressions_are_read_back() {
    let n = open("n");
    for d in [n * 3 + 1, (n * n).floordiv(5), n.modulo(4) + 2, (n - 1).max(4)] {
        assert_eq!(Dim::from_expr(&d.wide()), Some(d));
    }
    assert_eq!(Dim::from_expr(&Expr::i32(-1)), None);
}

#[test]
fn sizes_that_subtract_products_are_computed_in_64_bits() {
    let (n, m) = (open("n"), open("m"));
    let is_wide = |d: Dim| {
        let (inside, own) = (d.expr(), d.typed(DType::I32));
        assert_eq!((inside.dtype(), own.dtype()), (DType::I32, DType::I32));
        assert_eq!(Dim::from_expr(&own), Some(d), "{own} is read back");
        let of = |e: &Expr| matches!(e.kind(), ExprKind::Cast(a) if a.dtype() == DType::I64);
        assert_eq!(of(&inside), of(&own));
        of(&own)
    };
    // A bound that counts from the end where it is negative.
    let factor = (m * 160).min(n + 7) - (m * 159).min(n);
    assert!(is_wide(n * factor));
    assert!(is_wide((n * factor + 3).floordiv(Dim::from(4))));
    assert!(!is_wide(n * m + 1));
    assert!(!is_wide(n * 3 - m));
}
