//! Divisions by what is not constant: common factors and remainders.

use tilewright_ir::{BinOp, DType, Dim, Expr, Range, Var};
use tilewright_polyhedral::{AccessRelation, Engine, evaluate};

fn op(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

#[test]
fn common_factors_and_remainders_vanish() {
    let engine = Engine::new();
    let (x, y) = (Var::index("x"), Var::index("y"));
    let range = || Range { min: Expr::i32(-5), extent: Expr::i32(11) };
    let all = engine.domain_of(&[(x.clone(), range()), (y.clone(), range())], &[]);
    let domain = all.with_guard(&x.expr().not_equal(0)).with_guard(&y.expr().not_equal(0));
    let (x, y) = (x.expr(), y.expr());
    let xx = || &x * 32 * &x;
    use BinOp::{FloorDiv, FloorMod, TruncDiv, TruncMod};
    let equal = [
        (op(FloorMod, xx(), x.clone()), Expr::i32(0)),
        (op(TruncMod, xx(), x.clone()), Expr::i32(0)),
        (op(FloorDiv, &x * (&y * 2) * 3, &y * 3), &x * 2),
        (op(TruncDiv, &x * (&y * 2) * 3, &y * 3), &x * 2),
        (op(FloorDiv, &x * 2 * &x * &y, &x * 4 * &x * &x), op(FloorDiv, y.clone(), &x * 2)),
        (op(TruncDiv, &x * 2 * &x * &y, &x * 4 * &x * &x), op(TruncDiv, y.clone(), &x * 2)),
        (op(FloorMod, xx(), &x * &y), op(FloorMod, &x * 32, y.clone()) * &x),
        (op(TruncMod, xx(), &x * &y), op(TruncMod, &x * 32, y.clone()) * &x),
        (op(FloorMod, &x - op(FloorMod, x.clone(), y.clone()), y.clone()), Expr::i32(0)),
        (op(FloorMod, &x - op(FloorMod, x.clone(), &y * -1), y.clone()), Expr::i32(0)),
        (op(FloorMod, &x + op(FloorMod, &x * -1, y.clone()), y.clone()), Expr::i32(0)),
    ];
    let value = |e: &Expr, at: (i64, i64)| {
        evaluate(e, &|v| if &**v.name() == "x" { Some(at.0) } else { Some(at.1) })
    };
    for (a, b) in &equal {
        for at in (-5..6).flat_map(|x| (-5..6).map(move |y| (x, y))) {
            if at.0 != 0 && at.1 != 0 {
                assert_eq!(value(a, at), value(b, at), "{a} and {b} at {at:?}");
            }
        }
        assert!(domain.equal(a, b).is_yes(), "{a} and {b}: {}", domain.equal(a, b));
    }
    let product = (&x * &y).equal(0);
    assert!(all.equal(&product, &x.clone().equal(0).or(y.clone().equal(0))).is_yes());
    // A remainder by something else stays.
    let other = op(FloorMod, &x - op(FloorMod, x.clone(), &y * 2 + 1), y.clone());
    assert!(!domain.equal(&other, &Expr::i32(0)).is_yes());
}

/// Sizes, and an engine that knows that they are positive and that `p` stands for their product.
fn images() -> ([Var; 4], Engine) {
    let [n, h, w] = ["n", "h", "w"].map(Var::index);
    let product = Dim::open(&n) * Dim::open(&h) * Dim::open(&w);
    let p = Var::standing_for("p", DType::I32, product);
    let mut facts: Vec<Expr> = [&n, &h, &w].map(|v| v.expr().greater_equal(1)).to_vec();
    facts.extend([p.expr().greater_equal(0), p.expr().equal(product.typed(DType::I32))]);
    let engine = Engine::new().given(&facts);
    ([n, h, w, p], engine)
}

/// The digits of a number in a radix of sizes, the slowest first.
fn digits(number: &Expr, h: &Var, w: &Var) -> [Expr; 3] {
    let row = number.clone().floordiv(w.expr());
    [row.clone().floordiv(h.expr()), row.floormod(h.expr()), number.clone().floormod(w.expr())]
}

#[test]
fn digits_of_a_number_below_a_product_of_sizes_are_below_the_sizes() {
    let ([n, h, w, p], engine) = images();
    let (tile, row) = (Var::index("tile"), Var::index("row"));
    let (five, tiles) = (Range::upto(Expr::i32(5)), Range::upto(p.expr().floordiv(5)));
    let whole = engine.domain_of(&[(tile.clone(), tiles), (row.clone(), five)], &[]);
    let rest = engine.domain_of(&[(row.clone(), Range::upto(p.expr().floormod(5)))], &[]);
    let behind = row.expr() + p.expr() - p.expr().floormod(5);
    for (domain, number) in [(whole, tile.expr() * 5 + row.expr()), (rest, behind)] {
        for (digit, size) in digits(&number, &h, &w).iter().zip([&n, &h, &w]) {
            assert!(domain.proves(&digit.clone().greater_equal(0)), "{digit} >= 0");
            assert!(domain.proves(&digit.clone().less(size.expr())), "{digit} < {size}");
            assert!(!domain.proves(&digit.clone().less(size.expr() - 1)), "{digit} < {size} - 1");
            let padded = (digit.clone() + 2).less(size.expr() + 2);
            assert!(domain.proves(&padded), "{padded}");
        }
    }
    // One number more, and there is a digit more.
    let all = engine.domain_of(&[(tile.clone(), Range::upto(p.expr() + 1))], &[]);
    assert!(!all.proves(&digits(&tile.expr(), &h, &w)[0].clone().less(n.expr())));
}

#[test]
fn digits_that_are_put_together_are_the_number() {
    let ([_, h, w, p], engine) = images();
    let i = Var::index("i");
    let domain = engine.domain_of(&[(i.clone(), Range::upto(p.expr()))], &[]);
    let [image, y, x] = digits(&i.expr(), &h, &w);
    let row = image.clone() * h.expr() + y.clone();
    assert_eq!(domain.simplify(&(row.clone() * w.expr() + x.clone())).to_string(), "i");
    let cell = (row.clone() * w.expr() + x.clone()) * 8 + 3;
    assert_eq!(domain.simplify(&cell).to_string(), "i * 8 + 3");
    // By another size they are none.
    let other = image * w.expr() + y;
    assert!(domain.simplify(&other).to_string().contains("//"));
}

#[test]
fn cells_at_different_digits_differ() {
    let ([_, h, w, p], engine) = images();
    let i = Var::index("i");
    let domain = engine.domain_of(&[(i.clone(), Range::upto(p.expr()))], &[]);
    let at = AccessRelation::new(&domain, &digits(&i.expr(), &h, &w));
    let (other, names) = at.elsewhere();
    let differ = i.expr().not_equal(names[&i].expr());
    assert!(at.is_disjoint(&other, std::slice::from_ref(&differ)));
    // Two of three digits are not the number.
    let part = AccessRelation::new(&domain, &digits(&i.expr(), &h, &w)[1..]);
    let (other, names) = part.elsewhere();
    assert!(!part.is_disjoint(&other, &[i.expr().not_equal(names[&i].expr())]));
}
