//! Layouts in the notations of others: a corpus of public ones, random ones, and texts that are wrong.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{DType, Expr};
use tilewright_layout::notation::equal::{Equality, equal};
use tilewright_layout::notation::facts::{Banks, collision, conflict, padding, vector};
use tilewright_layout::notation::points::Grid;
use tilewright_layout::notation::{Notation, Spec, read, text_of, write};
use tilewright_polyhedral::Engine;

/// A line of the corpus: notation, shape and text.
fn corpus() -> Vec<(Notation, Vec<i64>, &'static str)> {
    let lines = include_str!("public.txt").lines().filter(|l| !l.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.splitn(3, '|').map(str::trim);
            let mut next = || parts.next().expect("three parts");
            let notation = Notation::of_name(next()).expect("a notation");
            let shape = next().split(',').filter(|n| !n.is_empty());
            let shape = shape.map(|n| n.parse().expect("an extent")).collect();
            (notation, shape, next())
        })
        .collect()
}

fn is_equal(a: &Spec, b: &Spec) -> bool {
    matches!(equal(a, b).expect("a comparison"), Equality::Equal(_))
}

#[test]
fn public_layouts_round_trip() {
    let corpus = corpus();
    assert!(corpus.len() >= 60);
    let mut translated = 0;
    for (notation, shape, text) in corpus {
        let spec = read(text, None, &shape).unwrap_or_else(|e| panic!("{text}: {}", e.render()));
        assert_eq!(spec.notation, notation, "{text}");
        for other in Notation::ALL {
            let written = match write(&spec, other, None) {
                Ok(written) => written,
                Err(e) if other != notation => {
                    assert!(e.to_string().starts_with("this is no layout of"), "{text}: {e}");
                    continue;
                }
                // What is no bijection of addresses has no bases.
                Err(e) => panic!("{text} as {}: {}", other.name(), e.render()),
            };
            let shape = spec.shape.clone().unwrap_or_default();
            let again = read(&written, Some(other), &shape)
                .unwrap_or_else(|e| panic!("{text} as {written}: {}", e.render()));
            if spec.places == again.places {
                assert!(is_equal(&spec, &again), "{text} as {}: {written}", other.name());
                translated += 1;
            }
        }
    }
    assert!(translated > 200, "{translated} translations");
}

/// The indices of a layout at every point, by a definition of its own.
fn offsets(text: &str, shape: &[i64], of: impl Fn(&[i64]) -> i64) {
    let spec = read(text, None, shape).unwrap_or_else(|e| panic!("{text}: {}", e.render()));
    let grid = Grid::new(&spec, shape).expect("a grid");
    for at in grid.points() {
        assert_eq!(grid.offset(&at), of(&at), "{text} at {at:?}");
    }
}

#[test]
fn layouts_mean_what_their_projects_say() {
    // oneDNN: offsets of a blocked weight, by its documentation.
    offsets("OIhw4i16o4i", &[32, 32, 3, 3], |at| {
        let [o, i, h, w] = at[..] else { panic!("four axes") };
        let block = ((o / 16 * 2 + i / 16) * 3 + h) * 3 + w;
        block * 256 + (i % 16 / 4) * 64 + (o % 16) * 4 + i % 4
    });
    offsets("nhwc", &[2, 3, 4, 5], |at| ((at[0] * 4 + at[2]) * 5 + at[3]) * 3 + at[1]);
    // TVM: the axes in brackets are one of memory.
    offsets("OI[4o4i]", &[8, 8], |at| (at[0] / 4 * 2 + at[1] / 4) * 16 + at[0] % 4 * 4 + at[1] % 4);
    offsets("NCHW->NHWC", &[2, 3, 4, 5], |at| ((at[0] * 4 + at[2]) * 5 + at[3]) * 3 + at[1]);
    // MLIR: outer axes in an order, tiles in another one.
    let pack = "outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [4, 2]";
    offsets(pack, &[6, 8], |at| (at[1] / 4 * 3 + at[0] / 2) * 8 + at[1] % 4 * 2 + at[0] % 2);
    // CuTe: coordinates count their first digit fastest.
    offsets("(4,(2,4)):(2,(1,8))", &[4, 8], |at| at[0] * 2 + at[1] % 2 + at[1] / 2 * 8);
    offsets("Sw<2,1,3> o 0 o (8,8):(8,1)", &[8, 8], |at| {
        let plain = at[0] * 8 + at[1];
        plain ^ ((plain >> 3) & 0b110)
    });
    offsets("Sw<2,1,-3> o 0 o (8,8):(8,1)", &[8, 8], |at| {
        let plain = at[0] * 8 + at[1];
        plain ^ ((plain & 0b110) << 3)
    });
    // Triton: bases add by exclusive or; here the offset of an element is their inverse.
    let bases = [[0, 1], [0, 2], [1, 0], [2, 2], [4, 1]];
    offsets("{offset = [[0, 1], [0, 2], [1, 0], [2, 2], [4, 1]]}", &[8, 4], |at| {
        let element = |offset: i64| {
            let used = bases.iter().enumerate().filter(|(k, _)| offset >> k & 1 == 1);
            used.fold([0, 0], |e, (_, b)| [e[0] ^ b[0], e[1] ^ b[1]])
        };
        (0..32).find(|offset| element(*offset) == [at[0], at[1]]).expect("an offset")
    });
    let swizzled = "#ttg.swizzled_shared<{vec = 2, perPhase = 2, maxPhase = 4, order = [1, 0]}>";
    offsets(swizzled, &[16, 8], |at| at[0] * 8 + (at[1] ^ (at[0] / 2 % 4 * 2)));
    // Rows of fewer elements than all phases have.
    let short = "#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>";
    offsets(short, &[8, 8], |at| at[0] * 8 + (at[1] ^ (at[0] % 4 * 4 % 8)));
    // A tag of oneDNN in upper case: the axes are counted in the order of the alphabet.
    offsets("BA8b4a", &[8, 24], |at| (at[1] / 8 * 2 + at[0] / 4) * 32 + at[1] % 8 * 4 + at[0] % 4);
    offsets("BA->AB8b4a", &[24, 8], |at| {
        (at[1] / 4 * 3 + at[0] / 8) * 32 + at[0] % 8 * 4 + at[1] % 4
    });
}

#[test]
fn a_linear_layout_has_no_padding_and_may_be_of_one_element() {
    let padded = read("A8a", None, &[4]).expect("a layout");
    let e = write(&padded, Notation::Linear, None).expect_err("padding");
    assert!(
        e.to_string().ends_with("the layout has padding, which a linear layout has not"),
        "{e}"
    );
    let one = read("lambda i, j: [i, j]", None, &[1, 1]).expect("a layout");
    let text = write(&one, Notation::Linear, None).expect("bases");
    let again = read(&text, None, &[1, 1]).unwrap_or_else(|e| panic!("{text}: {}", e.render()));
    assert!(is_equal(&one, &again));
}

#[test]
fn layouts_are_composed_as_the_algebra_says() {
    let same = |text: &str, plain: &str| {
        let (a, b) = (read(text, None, &[]).unwrap(), read(plain, None, &[]).unwrap());
        assert_eq!(
            write(&a, Notation::Cute, None).unwrap(),
            write(&b, Notation::Cute, None).unwrap()
        );
        assert_eq!(a.shape, b.shape, "{text}");
    };
    // The examples of CUTLASS's "CuTe Layout Algebra".
    same("composition((6,2):(8,2),(4,3):(3,1))", "((2,2),3):((24,2),8)");
    same("20:2 o (5,4):(4,1)", "(5,4):(8,2)");
    same("(10,2):(16,4) o (5,4):(1,5)", "(5,(2,2)):(16,(80,4))");
    same("complement(4:1,24)", "6:4");
    same("complement(6:4,24)", "4:1");
    same("complement((4,6):(1,4),24)", "1:0");
    same("complement(4:2,24)", "((2,3)):((1,8))");
    same("complement((2,4):(1,6),24)", "3:2");
    same("complement((2,2):(1,6),24)", "((3,2)):((2,12))");
    same("coalesce((2,(1,6)):(1,(6,2)))", "12:1");
    same("logical_divide((4,2,3):(2,1,8),4:2)", "((2,2),(2,3)):((4,1),(2,8))");
    same("logical_product((2,2):(4,1),6:1)", "((2,2),(2,3)):((4,1),(2,8))");
}

/// `A o B` is `A(B(c))` for each coordinate, or refused: parts of `B` may add up to more than a digit of `A` holds.
#[test]
fn compositions_whose_parts_carry_are_refused() {
    let refused = |text: &str| {
        let e = read(text, None, &[]).expect_err(text).to_string();
        assert!(e.contains("add up to more than a digit"), "{text}: {e}");
    };
    refused("(2,2,3):(18,1,6) o ((1,2),4):((1,2),1)");
    refused("(2,16,8):(24,96,1) o (8,6):(4,1)");
    // Parts that overlap, where no digit is full.
    let fine = read("(8,2):(1,100) o (2,2):(1,1)", None, &[]).expect("a layout");
    assert_eq!(write(&fine, Notation::Cute, None).expect("strides"), "(2,2):(1,1)");
}

#[test]
fn wrong_texts_are_refused_at_their_place() {
    let check = |text: &str, expected: Expect| {
        let e = read(text, None, &[]).expect_err(text);
        expected.assert_eq(&e.render());
    };
    check(
        "aBcd",
        expect![[r#"
        error: `B` stands for an axis in blocks, and has none
          --> <layout>:1:2
           1 | aBcd
             |  ^
    "#]],
    );
    check(
        "nchw16c",
        expect![[r#"
        error: axis `c` has a block
          --> <layout>:1:7
           1 | nchw16c
             |       ^
        help: write `C` in upper case
    "#]],
    );
    check(
        "ancd",
        expect![[r#"
        error: these letters are no axes of a tensor
          --> <layout>:1:1
           1 | ancd
             | ^^^^
        help: count the axes from `a` on, or use those of images (`ncdhw`) or weights (`goidhw`)
    "#]],
    );
    check(
        "NCHW16k",
        expect![[r#"
        error: there is no axis `K`
          --> <layout>:1:7
           1 | NCHW16k
             |       ^
    "#]],
    );
    check(
        "NCHW16c4c",
        expect![[r#"
        error: `N` stands for an axis in blocks, and has none
          --> <layout>:1:1
           1 | NCHW16c4c
             | ^
    "#]],
    );
    check(
        "(4,8):(1,(2,4))",
        expect![[r#"
        error: the strides are not nested as the shape `(4,8)` is
          --> <layout>:1:7
           1 | (4,8):(1,(2,4))
             |       ^^^^^^^^^
    "#]],
    );
    check(
        "(4,8)",
        expect![[r#"
        error: expected `:` and the strides, but the text ends
          --> <layout>:1:6
           1 | (4,8)
             |      ^
        help: a layout is a shape and its strides: `(4,8):(8,1)`
    "#]],
    );
    check(
        "Sw<3,3,2> o 0 o (8,8):(8,1)",
        expect![[r#"
        error: the 3 digits that are read and changed overlap: the shift is less
          --> <layout>:1:1
           1 | Sw<3,3,2> o 0 o (8,8):(8,1)
             | ^^^^^^^^^
    "#]],
    );
    check(
        "composition((6,2):(1,7),3:4)",
        expect![[r#"
        error: `3:4` does not divide the modes before it, so that the composition has no strides
          --> <layout>:1:1
           1 | composition((6,2):(1,7),3:4)
             | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "inner_dims_pos = [2] inner_tiles = [8] outer_dims_perm = [0, 1]",
        expect![[r#"
        error: 2 is no axis of the source
          --> <layout>:1:18
           1 | inner_dims_pos = [2] inner_tiles = [8] outer_dims_perm = [0, 1]
             |                  ^^^
    "#]],
    );
    check(
        "{lane = [[0, 1], [0, 1]]}",
        expect![[r#"
        error: two places hold one element, so that it has no index
          --> <layout>:1:1
           1 | {lane = [[0, 1], [0, 1]]}
             | ^^^^^^^^^^^^^^^^^^^^^^^^^
        note: the first place and that of lane 3 hold the same element
    "#]],
    );
    check(
        "{lane = [[0, 1], [1]]}",
        expect![[r#"
        error: the elements have different numbers of coordinates
          --> <layout>:1:9
           1 | {lane = [[0, 1], [1]]}
             |         ^^^^^^^^^^^^^
    "#]],
    );
    check(
        "lambda i, j: [i, k]",
        expect![[r#"
        error: unknown name `k`
          --> <layout>:1:18
           1 | lambda i, j: [i, k]
             |                  ^
    "#]],
    );
    check(
        "",
        expect![[r#"
        error: expected an axis, a letter in upper case
          --> <layout>:1:1
           1 |
             | ^
    "#]],
    );
}

#[test]
fn what_a_notation_cannot_say_is_refused() {
    let check = |text: &str, shape: &[i64], to: Notation, expected: Expect| {
        let spec = read(text, None, shape).expect(text);
        expected.assert_eq(&write(&spec, to, None).expect_err(text).render());
    };
    check(
        "lambda i: [i % 4, i // 4]",
        &[14],
        Notation::Cute,
        expect![[r#"
        error: this is no layout of cute: the offsets are no sum of digits with strides, swizzled or not
    "#]],
    );
    check(
        "OIhw4i16o4i",
        &[],
        Notation::Tvm,
        expect![[r#"
        error: this is no layout of tvm: a layout of TVM has one tile an axis, `I` has two
    "#]],
    );
    check(
        "OIhw4i16o4i",
        &[],
        Notation::Linalg,
        expect![[r#"
        error: this is no layout of linalg: `linalg.pack` splits an axis once, axis 1 is split twice
    "#]],
    );
    check(
        "nChw16c",
        &[2, 20, 3, 3],
        Notation::Linear,
        expect![[r#"
        error: this is no layout of triton: a linear layout has extents that are powers of two, 20 is none
    "#]],
    );
    check(
        "lambda i, j: [i + j]",
        &[4, 4],
        Notation::OneDnn,
        expect![[r#"
        error: this is no layout of onednn: `i + j` is no digit of an axis
    "#]],
    );
    check(
        "nChw16c",
        &[],
        Notation::Cute,
        expect![[r#"
        error: this is no layout of cute: cute says the shape, too: give one
    "#]],
    );
}

#[test]
fn vectors_banks_and_padding_are_counted() {
    let grid = |text: &str, shape: &[i64]| {
        let spec = read(text, None, shape).expect(text);
        Grid::new(&spec, spec.shape.as_ref().expect("a shape")).expect("a grid")
    };
    let plain = grid("(32,32):(32,1)", &[]);
    assert_eq!((vector(&plain, 0), vector(&plain, 1)), (1, 32));
    let banks = Banks::default();
    // A column of a square lies in one bank.
    let found = conflict(&plain, 0, banks);
    assert_eq!((found.degree, found.lanes), (32, Some([0, 1])));
    assert_eq!(found.elements, Some([vec![0, 0], vec![1, 0]]));
    assert_eq!(conflict(&plain, 1, banks).degree, 1);
    // One more element a row, or a swizzle, spreads it.
    assert_eq!(conflict(&grid("(32,32):(33,1)", &[]), 0, banks).degree, 1);
    assert_eq!(conflict(&grid("Sw<5,0,5> o 0 o (32,32):(32,1)", &[]), 0, banks).degree, 1);
    assert_eq!(conflict(&grid("Sw<4,0,5> o 0 o (32,32):(32,1)", &[]), 0, banks).degree, 2);
    // Two halves of a word are one word.
    let halves = Banks { element: 2, ..banks };
    assert_eq!(conflict(&plain, 1, halves).degree, 1);
    // A swizzle of groups of four keeps vectors of four.
    let swizzled = grid("Sw<3,2,3> o 0 o (8,32):(32,1)", &[]);
    assert_eq!(vector(&swizzled, 1), 4);
    let ragged = grid("nChw16c", &[1, 20, 1, 1]);
    assert_eq!((padding(&ragged), ragged.cells(), vector(&ragged, 1)), (12, 32, 16));
    assert_eq!(collision(&ragged), None);
    assert_eq!(collision(&grid("(4,2):(1,0)", &[])), Some([vec![0, 0], vec![0, 1]]));
}

#[test]
fn differences_are_points() {
    let compare = |a: &str, b: &str, shape: &[i64]| {
        equal(&read(a, None, shape).unwrap(), &read(b, None, shape).unwrap()).unwrap()
    };
    assert_eq!(compare("nChw16c", "NCHW16c", &[]), Equality::Equal(None));
    assert_eq!(compare("acdb", "NCHW->NHWC", &[]), Equality::Equal(None));
    assert!(matches!(compare("nChw16c", "NCHW8c", &[]), Equality::Differ { .. }));
    let Equality::Differ { at, addresses, .. } = compare("nChw16c", "NCHW8c", &[1, 16, 2, 2])
    else {
        panic!("they differ")
    };
    assert_eq!((at, addresses), (vec![0, 0, 0, 1], ["16".to_owned(), "8".to_owned()]));
    // More points than are looked at one by one.
    let large = [4096, 4096, 3, 3];
    assert!(matches!(compare("OIhw16i16o", "OIHW16i16o", &large), Equality::Equal(Some(_))));
    let e = equal(&read("ab", None, &[]).unwrap(), &read("abc", None, &[]).unwrap());
    assert_eq!(e.unwrap_err().to_string(), "the layouts have 2 and 3 axes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Random linear layouts: box, padding and inverse of the index map against all points, and back.
    #[test]
    fn random_bases(bits in 1u32..7, rows in prop::collection::vec(1u64..64, 6), split in 0u32..7) {
        // Unit matrices with random sums of rows added are invertible.
        let n = bits as usize;
        let mut bases: Vec<u64> = (0..n).map(|k| 1 << k).collect();
        for (k, r) in rows.iter().enumerate().take(n) {
            let other = (*r as usize + k + 1) % n;
            if other != k {
                bases[k] ^= bases[other];
            }
        }
        let split = split.min(bits);
        let list: Vec<String> =
            bases.iter().map(|b| format!("[{}, {}]", b >> split, b & ((1 << split) - 1))).collect();
        let text = format!("{{offset = [{}]}}", list.join(", "));
        let spec = read(&text, None, &[]).unwrap();
        let shape = spec.shape.clone().unwrap();
        let grid = Grid::new(&spec, &shape).unwrap();
        for at in grid.points() {
            let offset = grid.offset(&at);
            let used = bases.iter().enumerate().filter(|(k, _)| offset >> k & 1 == 1);
            let element = used.fold(0, |e, (_, b)| e ^ b);
            prop_assert_eq!(element, ((at[0] as u64) << split) | at[1] as u64, "{} at {:?}", text, at);
        }
        let extents: Vec<Expr> = shape.iter().map(|n| Expr::int(*n, DType::I64)).collect();
        let layout = spec.map.on(&extents, false).unwrap();
        let known = layout.known.unwrap();
        prop_assert!(known.padding.is_false());
        prop_assert_eq!(layout.physical[0].as_int(), Some(1 << bits));
        let back: Vec<String> = known.inverse.iter().map(text_of).collect();
        let again = write(&spec, Notation::Linear, None).unwrap();
        prop_assert!(is_equal(&spec, &read(&again, None, &[]).unwrap()), "{:?}", back);
    }

    /// Random injective layouts of digits with gaps between them, and swizzles of these: the inverse at each element,
    /// and the padding at each cell.
    #[test]
    fn random_digits(
        digits in prop::collection::vec((1i64..7, 0i64..5), 2..5),
        turn in 0usize..5,
        nested in any::<bool>(),
        swizzle in prop::option::of((1u32..4, 0u32..4, 3u32..5)),
    ) {
        // From the smallest stride on, each is above what the digits before it reach.
        let mut strides = vec![(0, 0); digits.len()];
        let mut reach = 0;
        for k in 0..digits.len() {
            let at = (k + turn) % digits.len();
            strides[at] = (digits[at].0, reach + 1 + digits[at].1);
            reach += (digits[at].0 - 1) * strides[at].1;
        }
        let list = |f: &dyn Fn(&(i64, i64)) -> i64| {
            let all: Vec<String> = strides.iter().map(|d| f(d).to_string()).collect();
            match nested {
                true => format!("(({}),{})", all[..all.len() - 1].join(","), all[all.len() - 1]),
                false => format!("({})", all.join(",")),
            }
        };
        let plain = format!("{}:{}", list(&|d| d.0), list(&|d| d.1));
        let text = swizzle.map_or(plain.clone(), |(b, m, s)| format!("Sw<{b},{m},{s}> o 0 o {plain}"));
        let spec = read(&text, None, &[]).unwrap();
        let shape = spec.shape.clone().unwrap();
        let grid = Grid::new(&spec, &shape).unwrap();
        prop_assume!(grid.cells() < 2000);
        let extents: Vec<Expr> = shape.iter().map(|n| Expr::int(*n, DType::I64)).collect();
        let layout = spec.map.on(&extents, false).unwrap();
        let known = layout.known.unwrap();
        let physical: Vec<Option<i64>> = layout.physical.iter().map(Expr::as_int).collect();
        prop_assert_eq!(physical, grid.physical().iter().map(|n| Some(*n)).collect::<Vec<_>>(), "{}", text);
        let domain = Engine::new().domain();
        for (cell, content) in grid.contents().iter().enumerate() {
            let mut at = Subst::vars([(layout.cells[0].clone(), Expr::int(cell as i64, DType::I64))]);
            let padding = domain.simplify(&at.expr(&known.padding));
            prop_assert_eq!(padding.as_int(), Some(content.is_none().into()), "{} at {}: {}", text, cell, padding);
            if let Some(number) = content {
                let back: Vec<Option<i64>> =
                    known.inverse.iter().map(|e| domain.simplify(&at.expr(e)).as_int()).collect();
                let point: Vec<Option<i64>> = grid.point(*number).into_iter().map(Some).collect();
                prop_assert_eq!(back, point, "{} at {}", text, cell);
            }
        }
    }
}
