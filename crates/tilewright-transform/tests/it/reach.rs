//! Between which ends an index moves.

use tilewright_ir::index::{Interval, Linear, Ranges};
use tilewright_ir::{Expr, Range, Var};
use tilewright_transform::compact::reach::{bounded, ends};

fn linear(e: &Expr) -> Linear {
    Linear::from_expr(e).expect("small")
}

#[test]
fn the_last_iteration_of_an_open_loop_is_an_end() {
    let [i, j, w] = ["i", "j", "w"].map(Var::index);
    let mut ranges = Ranges::default();
    ranges.bind_size(&w);
    let loops =
        [(i.clone(), Range::upto(w.expr().floordiv(6))), (j.clone(), Range::upto(Expr::i32(6)))];
    let index = linear(&(&i * 6 + &j));
    let (least, greatest) = ends(&index, &loops, &ranges).expect("linear");
    assert_eq!(least.as_constant(), Some(0));
    let left = linear(&w.expr()).plus(&greatest, -1).expect("small");
    assert_eq!(left.span(&ranges), Some(Interval::new(1, 6)));
}

#[test]
fn conditions_bound_the_loops_of_parts_that_share_one() {
    let [i, j, w] = ["i", "j", "w"].map(Var::index);
    let mut ranges = Ranges::default();
    ranges.bind_size(&w);
    let tiles = w.expr().floordiv(6);
    let loops =
        [(i.clone(), Range::upto(tiles.clone() * 2)), (j.clone(), Range::upto(Expr::i32(6)))];
    // The second part of a loop over both.
    let index = linear(&((i.expr() - tiles.clone()) * 6 + &j));
    let (least, _) = ends(&index, &loops, &ranges).expect("linear");
    assert!(least.span(&ranges).is_none_or(|values| values.lo < 0));
    let conditions = [!i.expr().less(tiles.clone()), i.expr().less(tiles * 2)];
    let loops = bounded(&loops, &conditions).expect("they bound it");
    let (least, greatest) = ends(&index, &loops, &ranges).expect("linear");
    assert_eq!(least.as_constant(), Some(0));
    let left = linear(&w.expr()).plus(&greatest, -1).expect("small");
    assert_eq!(left.span(&ranges), Some(Interval::new(1, 6)));
    // What is said by a loop inside is no bound outside.
    assert!(bounded(&loops, &[i.expr().less(j.expr())]).is_none());
}
