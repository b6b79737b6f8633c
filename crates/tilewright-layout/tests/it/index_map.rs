//! Index maps on shapes: boxes, padding, inverses, and maps that are refused.

use expect_test::{Expect, expect};
use tilewright_ir::lambda::{Lambda, LambdaBody, LambdaItem};
use tilewright_ir::{DType, Expr, Range, Result, Var};
use tilewright_layout::{IndexMap, PhysicalLayout};

fn lambda(text: &str, build: impl Fn(&[Var]) -> Vec<Expr> + Send + Sync + 'static) -> Lambda {
    Lambda::new(text, move |dtypes| {
        let params: Vec<Var> =
            dtypes.iter().enumerate().map(|(k, d)| Var::new(format!("i{k}"), *d)).collect();
        let items = build(&params).into_iter().map(LambdaItem::Expr).collect();
        Ok(LambdaBody { params, items })
    })
}

fn show(layout: Result<PhysicalLayout>) -> String {
    match layout {
        Err(e) => e.render(),
        Ok(l) => {
            let k = match &l.known {
                Ok(k) => format!("padding {}\ninverse ({})", k.padding, comma_list(&k.inverse)),
                Err(e) => e.to_string(),
            };
            format!("box ({})\n{k}\n", comma_list(&l.physical))
        }
    }
}

fn comma_list(l: &[Expr]) -> String {
    l.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ")
}

fn check(
    shape: &[Expr],
    build: impl Fn(&[Var]) -> Vec<Expr> + Send + Sync + 'static,
    expected: Expect,
) {
    let whole: Vec<(DType, Range)> =
        shape.iter().map(|e| (e.dtype(), Range::upto(e.clone()))).collect();
    let map = IndexMap::bind_over(&lambda("f", build), &whole).unwrap();
    expected.assert_eq(&show(map.on(shape, false)));
}

fn ints(shape: &[i32]) -> Vec<Expr> {
    shape.iter().map(|n| Expr::i32(*n)).collect()
}

#[test]
fn splits_have_padding_at_the_end() {
    check(
        &ints(&[16]),
        in_fours,
        expect![[r#"
        box (4, 4)
        padding T.bool(False)
        inverse (i0_0 * 4 + i0_1)
    "#]],
    );
    check(
        &ints(&[14]),
        in_fours,
        expect![[r#"
        box (4, 4)
        padding i0_0 == 3 and i0_1 >= 2
        inverse (i0_0 * 4 + i0_1)
    "#]],
    );
    let n = Var::index("n");
    check(
        &[n.expr()],
        in_fours,
        expect![[r#"
        box ((n + 3) // 4, 4)
        padding i0_0 * 4 + i0_1 >= n
        inverse (i0_0 * 4 + i0_1)
    "#]],
    );
}

fn in_fours(i: &[Var]) -> Vec<Expr> {
    vec![i[0].expr().floordiv(4), i[0].expr().floormod(4)]
}

#[test]
fn what_int32_does_not_hold_is_int64() {
    type Build = fn(&[Var]) -> Vec<Expr>;
    let boxed = |shape: &[Expr], build: Build| {
        let whole: Vec<(DType, Range)> =
            shape.iter().map(|e| (e.dtype(), Range::upto(e.clone()))).collect();
        let map = IndexMap::bind_over(&lambda("f", build), &whole).unwrap();
        let layout = map.on(shape, false).unwrap();
        layout.physical.iter().map(|e| (e.as_int(), e.dtype())).collect::<Vec<_>>()
    };
    let wide = |n: i64| (Some(n), DType::I64);
    assert_eq!(
        boxed(&ints(&[65536, 65537]), |i| vec![&i[0] * 65537 + &i[1]]),
        [wide(4_295_032_832)]
    );
    // A step on the way leaves the type.
    assert_eq!(
        boxed(&ints(&[65536, 65536]), |i| vec![
            (&i[0] * 65536 + &i[1]).floordiv(65536),
            i[1].expr()
        ]),
        [wide(65536), wide(65536)]
    );
    // The last index is 2^31 - 1, the extent one more.
    assert_eq!(boxed(&ints(&[i32::MAX]), |i| vec![&i[0] + 1]), [wide(1 << 31)]);
    // An open size is taken to be small enough.
    let shape = [Var::index("n").expr(), Expr::i32(4)];
    let open = boxed(&shape, |i| vec![&i[0] * 4 + &i[1]]);
    assert_eq!(open, [(None, DType::I32)]);
}

#[test]
fn offsets_pad_at_the_start() {
    check(
        &ints(&[14]),
        in_eights,
        expect![[r#"
        box (2, 8)
        padding i0_0 == 0 and i0_1 < 2
        inverse (i0_0 * 8 + i0_1 - 2)
    "#]],
    );
    check(
        &ints(&[16]),
        in_eights,
        expect![[r#"
        box (3, 8)
        padding i0_0 == 0 and i0_1 < 2 or i0_0 == 2 and i0_1 >= 2
        inverse (i0_0 * 8 + i0_1 - 2)
    "#]],
    );
    check(
        &ints(&[16]),
        |i| vec![&i[0] - 2],
        expect![[r#"
        error: the index map is no layout: `i0 - 2` is negative at i0=0
    "#]],
    );
}

fn in_eights(i: &[Var]) -> Vec<Expr> {
    vec![(&i[0] + 2).floordiv(8), (&i[0] + 2).floormod(8)]
}

#[test]
fn maps_that_are_not_injective_are_refused() {
    check(
        &ints(&[16]),
        |i| vec![i[0].expr().floordiv(4)],
        expect![[r#"
        error: the index map is not injective
        note: the logical indices [0] and [1] have one physical index
    "#]],
    );
    check(
        &ints(&[4, 4]),
        |i| vec![&i[0] * 3 + &i[1]],
        expect![[r#"
        error: the index map is not injective
        note: the logical indices [0, 3] and [1, 0] have one physical index
    "#]],
    );
}

#[test]
fn symbolic_sizes() {
    let n = Var::new("n", DType::I64);
    let m = n.clone();
    let shape =
        [Expr::int(1, DType::I64), Expr::int(32, DType::I64), Expr::int(1, DType::I64), n.expr()];
    check(
        &shape,
        move |i| {
            let n = &m;
            vec![i[0].expr() * 32 * n + i[1].expr() * n + i[2].expr() * n + &i[3]]
        },
        expect![[r#"
        box (n * T.int64(32))
        padding T.bool(False)
        inverse (T.int64(0), i0_i1_i2_i3 // n, T.int64(0), i0_i1_i2_i3 % n)
    "#]],
    );
    let n = Var::index("n");
    check(
        &ints(&[16]),
        move |i| vec![i[0].expr().floordiv(&n), i[0].expr().floormod(&n)],
        expect![[r#"
        box ((n + 15) // n, n)
        padding i0_0 * n + i0_1 >= 16
        inverse (i0_0 * n + i0_1)
    "#]],
    );
}
