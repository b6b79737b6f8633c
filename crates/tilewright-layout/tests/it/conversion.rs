//! What is recognised as a conversion, and the algebra of conversions.

use expect_test::{Expect, expect};
use tilewright_ir::{DType, Expr, Source, TensorFunc};
use tilewright_layout::{Conversion, Pad};
use tilewright_tvmscript::parse_module;

/// A function with `x` of shape `from`, `y` of shape `to`, and these lines as its body.
fn func(from: &str, to: &str, body: &str) -> TensorFunc {
    let body: String = body.trim().lines().map(|l| format!("    {l}\n")).collect();
    let text = format!(
        "@T.prim_func\ndef f(x: T.Buffer({from}, \"float32\"), y: T.Buffer({to}, \"float32\")):\n{body}"
    );
    let module = parse_module(&Source::new("f.py", text.clone()))
        .unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    (**module.tensors().next().expect("a function").1).clone()
}

fn conversion(from: &str, to: &str, body: &str) -> Option<Conversion> {
    Conversion::recognise(&func(from, to, body))
}

fn check(from: &str, to: &str, body: &str, expected: Expect) {
    let found = conversion(from, to, body);
    expected.assert_eq(&found.map_or("none".to_owned(), |c| c.to_string()));
}

const PACK: &str = "
for io, ii in T.grid(4, 4):
    y[io, ii] = T.if_then_else(4 * io + ii < 14, x[4 * io + ii], T.float32(0))";

const CROP: &str = "
for i in range(14):
    y[i] = x[i // 4, i % 4]";

fn pack() -> Conversion {
    conversion("(14,)", "(4, 4)", PACK).expect("packs")
}

fn crop() -> Conversion {
    conversion("(4, 4)", "(14,)", CROP).expect("crops")
}

#[test]
fn gathers_and_scatters_are_recognised() {
    check(
        "(14,)",
        "(4, 4)",
        PACK,
        expect!["(c0, c1) <- (4 * c0 + c1) where c0 < 3 or c1 < 2, else T.float32(0.0)"],
    );
    check("(4, 4)", "(14,)", CROP, expect!["(c0) <- (c0 // 4, c0 % 4)"]);
    let scatter = "
for i in range(14):
    y[i // 4, i % 4] = x[i]";
    check(
        "(14,)",
        "(4, 4)",
        scatter,
        expect!["(c0, c1) <- (c0 * 4 + c1) where c0 < 3 or c1 < 2, else nothing"],
    );
    let blocks = "
for i, j in T.grid(3, 5):
    with T.block(\"t\"):
        vi, vj = T.axis.remap(\"SS\", [i, j])
        y[vj, vi] = x[vi, vj]";
    check("(3, 5)", "(5, 3)", blocks, expect!["(c0, c1) <- (c1, c0)"]);
}

#[test]
fn guards_and_several_stores_are_padding() {
    let guarded = "
for io, ii in T.grid(4, 4):
    if 4 * io + ii < 14:
        y[io, ii] = x[4 * io + ii]";
    check(
        "(14,)",
        "(4, 4)",
        guarded,
        expect!["(c0, c1) <- (4 * c0 + c1) where c0 < 3 or c1 < 2, else nothing"],
    );
    let filled = "
for io, ii in T.grid(4, 4):
    y[io, ii] = T.float32(1)
for i in range(14):
    y[i // 4, i % 4] = x[i]";
    check(
        "(14,)",
        "(4, 4)",
        filled,
        expect!["(c0, c1) <- (c0 * 4 + c1) where c0 < 3 or c1 < 2, else T.float32(1.0)"],
    );
    let undefined = "
for i in range(14):
    y[i // 4, i % 4] = x[i]
for j in range(2):
    y[3, j + 2] = T.undef()";
    check(
        "(14,)",
        "(4, 4)",
        undefined,
        expect!["(c0, c1) <- (c0 * 4 + c1) where c0 < 3 or c1 < 2, else any value"],
    );
    let varying = "
for io, ii in T.grid(4, 4):
    y[io, ii] = T.Select(4 * io + ii < 14, x[T.min(4 * io + ii, 13)], T.cast(ii, \"float32\"))";
    check(
        "(14,)",
        "(4, 4)",
        varying,
        expect![[
            r#"(c0, c1) <- (c0 * 4 + c1) where c0 < 3 or c1 < 2, else T.Cast("float32", c1)"#
        ]],
    );
}

#[test]
fn what_computes_repeats_or_mixes_is_none() {
    for body in [
        "for i in range(4):\n    y[i] = x[i] + T.float32(1)",
        // One element twice.
        "for i in range(4):\n    y[i] = x[i // 2]",
        // A constant.
        "for i in range(4):\n    y[i] = T.float32(0)",
        // Part undefined, part zero, part not written.
        "for i in range(4):\n    y[i] = T.if_then_else(i < 2, x[i], T.if_then_else(i < 3, T.float32(0), T.undef()))",
        "for i in range(2):\n    y[i] = x[i]\ny[2] = T.float32(0)",
        // Depends on data.
        "for i in range(4):\n    y[i] = T.if_then_else(x[i] < T.float32(0), x[i], T.float32(0))",
        // Which store is last depends on the iteration.
        "for i in range(3):\n    y[i] = x[i]\n    y[i + 1] = T.float32(0)",
        // A cell that is written several times.
        "for i, j in T.grid(4, 4):\n    y[i] = x[j]",
        // An element that is not there.
        "for i in range(4):\n    y[i] = x[i + 1]",
    ] {
        assert!(conversion("(4,)", "(4,)", body).is_none(), "{body}");
    }
}

#[test]
fn a_crop_and_its_pad_compose_to_the_identity_up_to_padding() {
    let (pack, crop) = (pack(), crop());
    assert!(pack.keeps_all() && !pack.is_total() && crop.is_total() && !crop.keeps_all());
    let there_and_back = pack.then(&crop).expect("composes");
    assert!(there_and_back.is_identity(), "{there_and_back}");
    let back_and_there = crop.then(&pack).expect("composes");
    expect!["(c0, c1) <- (c0, c1) where c0 < 3 or c1 < 2, else T.float32(0.0)"]
        .assert_eq(&back_and_there.to_string());
    assert!(!back_and_there.is_identity() && back_and_there.takes_own_cells());
    let undefined = crop.then(&pack.with_pad(Pad::Undef)).expect("composes");
    assert!(undefined.is_identity());
}

#[test]
fn equal_shapes_prove_nothing() {
    let turn = |from: &str| {
        conversion(
            "(4, 4)",
            "(4, 4)",
            &format!("for i, j in T.grid(4, 4):\n    y[i, j] = x[{from}]"),
        )
        .expect("moves")
    };
    let (transpose, reverse) = (turn("j, i"), turn("3 - i, j"));
    assert!(transpose.then(&transpose).is_some_and(|c| c.is_identity()));
    assert!(reverse.then(&reverse).is_some_and(|c| c.is_identity()));
    let both = transpose.then(&reverse).expect("composes");
    expect!["(c0, c1) <- (c1, 3 - c0)"].assert_eq(&both.to_string());
    assert!(!both.is_identity() && !both.then(&both).is_some_and(|c| c.is_identity()));
}

#[test]
fn inverses_and_canonical_functions_lead_back() {
    let value = Pad::Value(Expr::float(0.0, DType::F32));
    for (conversion, pad) in [(pack(), Pad::None), (crop(), value)] {
        let inverse = conversion.inverse(pad).expect("injective");
        let round = conversion.then(&inverse).expect("composes");
        assert!(round.takes_own_cells(), "{round}");
        for c in [conversion, inverse] {
            let again = Conversion::recognise(&c.to_func("f")).expect("a conversion");
            assert!(again.same_as(&c), "{again} is not {c}");
        }
    }
    for pad in [Pad::None, Pad::Undef] {
        let c = pack().with_pad(pad);
        let again = Conversion::recognise(&c.to_func("f")).expect("a conversion");
        assert!(again.same_as(&c) && !again.same_as(&pack()), "{again} is not {c}");
    }
}

#[test]
fn views_keep_the_row_major_order() {
    let flat = "
for i, j, k in T.grid(2, 3, 4):
    y[i, j * 4 + k] = x[i * 3 + j, k]";
    assert!(conversion("(6, 4)", "(2, 12)", flat).is_some_and(|c| c.is_view()));
    let turned = "
for i, j in T.grid(4, 6):
    y[i, j] = x[j, i]";
    assert!(conversion("(6, 4)", "(4, 6)", turned).is_some_and(|c| !c.is_view()));
}
