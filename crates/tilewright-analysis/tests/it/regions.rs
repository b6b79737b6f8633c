//! What a block reads and writes, where it does not say.

use tilewright_analysis::regions::infer;
use tilewright_ir::{Block, Buffer, DType, Expr, Range, Region, Stmt, Var};

fn text(regions: &[Region]) -> Vec<String> {
    regions
        .iter()
        .map(|r| {
            let ranges: Vec<String> = r.ranges.iter().map(range_text).collect();
            format!("{}[{}]", r.buffer.name, ranges.join(", "))
        })
        .collect()
}

fn range_text(r: &Range) -> String {
    if r.is_point() { r.min.to_string() } else { format!("{}:+{}", r.min, r.extent) }
}

#[test]
fn inner_loops_are_widened() {
    let (a, b) = (
        Buffer::with_extents("A", &[64, 9], DType::F32),
        Buffer::with_extents("B", &[64], DType::F32),
    );
    let [i, x, k] = ["i", "x", "k"].map(Var::index);
    let at = &i * 16 + &x;
    let value = b.load([at.clone()]) + a.load([at.clone() + 2, Expr::i32(8) - &k]);
    let body = Stmt::store(&b, vec![at], value);
    let body = Stmt::serial(&x, Expr::i32(16), Stmt::serial(&k, Expr::i32(5), body));
    let (reads, writes) = infer(&Block::new("b", body));
    assert_eq!(text(&reads), ["B[i * 16:+16]", "A[i * 16 + 2:+16, 4:+5]"]);
    assert_eq!(text(&writes), ["B[i * 16:+16]"]);
}

#[test]
fn several_accesses_join_and_unknown_ones_take_the_axis() {
    let a = Buffer::with_extents("A", &[64], DType::F32);
    let index = Buffer::with_extents("I", &[4], DType::I32);
    let b = Buffer::with_extents("B", &[64], DType::F32);
    let i = Var::index("i");
    let near = a.load([i.expr() - 1]) + a.load([&i + 1]);
    let store = |value| Block::new("b", Stmt::store(&b, vec![i.expr()], value));
    assert_eq!(text(&infer(&store(near.clone())).0), ["A[i - 1:+3]"]);
    let far = near + a.load([index.load([Expr::i32(3)])]);
    assert_eq!(text(&infer(&store(far)).0), ["A[0:+64]", "I[3]"]);
}

#[test]
fn ends_are_exact_where_the_type_of_indices_is_narrow() {
    for dtype in [DType::U8, DType::I8] {
        let a = Buffer::with_extents("A", &[300, 300], DType::F32);
        let [i, j] = ["i", "j"].map(|name| Var::new(name, dtype));
        let store = |x: Expr, y: Expr| Stmt::store(&a, vec![x, y], Expr::float(0.0, DType::F32));
        let all = Stmt::serial(
            &i,
            Expr::int(3, dtype),
            Stmt::serial(&j, Expr::int(100, dtype), store(i.expr(), j.expr())),
        );
        // It begins with the first one, and ends before it.
        let row = Stmt::serial(&j, Expr::int(4, dtype), store(Expr::int(0, dtype), j.expr()));
        // It begins behind the first one, and its end is no value of the type.
        let last = dtype.max_int().unwrap_or(0) as i64;
        let far = store(Expr::int(last, dtype), Expr::int(0, dtype));
        let upto = |n: i64| (Some(0), Some(n));
        assert_eq!(written_ranges(vec![all.clone(), row.clone()]), [upto(3), upto(100)]);
        assert_eq!(written_ranges(vec![row, all.clone()]), [upto(3), upto(100)]);
        assert_eq!(written_ranges(vec![all.clone(), far.clone()]), [upto(last + 1), upto(100)]);
        assert_eq!(written_ranges(vec![far, all]), [upto(last + 1), upto(100)]);
    }
}

fn written_ranges(list: Vec<Stmt>) -> Vec<(Option<i64>, Option<i64>)> {
    let (_, writes) = infer(&Block::new("b", Stmt::seq(list)));
    let ranges = writes.into_iter().flat_map(|r| r.ranges);
    ranges.map(|r| (r.min.as_int(), r.extent.as_int())).collect()
}

#[test]
fn the_accumulator_of_a_reduction_is_not_read() {
    let (a, b) =
        (Buffer::with_extents("A", &[4], DType::F32), Buffer::with_extents("B", &[1], DType::F32));
    let k = Var::index("k");
    let zero = vec![Expr::i32(0)];
    let sum = b.load(zero.clone()) + a.load([k.expr()]);
    let mut block = Block::new("b", Stmt::store(&b, zero.clone(), sum));
    assert_eq!(text(&infer(&block).0), ["B[0]", "A[k]"]);
    block.init = Some(Stmt::store(&b, zero, Expr::float(0.0, DType::F32)));
    assert_eq!(text(&infer(&block).0), ["A[k]"]);
}
