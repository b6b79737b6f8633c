use std::cmp::Ordering;

use tilewright_interp::run_module;
use tilewright_ir::{DType, Module};
use tilewright_ops::Operand;
use tilewright_ops::dynamic::{count, indices, positions};
use tilewright_ops::suppression::{Suppression, non_max_suppression};
use tilewright_ops::unique::{unique_kinds, unique_rows};

use crate::nd::{Nd, check, refused};

/// Numbers with all `NaN` equal, behind the others.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Checks the kinds of the rows of a matrix, and what is known of each kind.
fn kinds_agree(x: &Nd, dtype: DType) {
    let [n, m] = x.shape[..] else { panic!("a matrix") };
    let order = |a: usize, b: usize| {
        let columns = (0..m).map(|c| compare(x.at(&[a, c]), x.at(&[b, c])));
        columns.fold(Ordering::Equal, Ordering::then)
    };
    let same = |a: usize, b: usize| order(a, b) == Ordering::Equal;
    let firsts: Vec<usize> = (0..n).filter(|&i| !(0..i).any(|j| same(i, j))).collect();
    for sorted in [false, true] {
        let mut rows = firsts.clone();
        if sorted {
            rows.sort_by(|&a, &b| order(a, b));
        }
        let kind = |i: usize| rows.iter().position(|&row| same(i, row)).expect("a kind") as f64;
        let first = Nd::build(&[n], |i| f64::from(u8::from(firsts.contains(&i[0]))));
        let kinds = Nd::build(&[n], |i| kind(i[0]));
        let func = unique_kinds(&Operand::new(&[n, m], dtype), sorted);
        let expected = [(&first, DType::BOOL), (&kinds, DType::I64)];
        check(func, &[x.tensor(dtype)], &expected);

        let found = rows.len();
        let at = Nd::build(&[found], |k| rows[k[0]] as f64);
        let counts = Nd::build(&[found], |k| {
            kinds.data.iter().filter(|&&kind| kind == k[0] as f64).count() as f64
        });
        // It has loops of its own, so that it is no stage in canonical form.
        let func = unique_rows(&Operand::new(&[n], DType::BOOL), found.into());
        let mut module = Module::new();
        module.insert("main", func.unwrap_or_else(|e| panic!("{}", e.render())));
        let inputs = [first.tensor(DType::BOOL), kinds.tensor(DType::I64)];
        let results = run_module(&module, "main", &inputs);
        let results = results.unwrap_or_else(|e| panic!("{}", e.render()));
        for (result, expected) in results.iter().zip([at, counts]) {
            let got: Vec<f64> = (0..found).map(|k| result.get_f64(k)).collect();
            assert_eq!(got, expected.data);
        }
    }
}

#[test]
fn equal_rows_are_of_one_kind() {
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 70] {
        for high in [0, 1, 5, 1000] {
            let list = Nd::integers(&[n, 1], n as u64, -high, high);
            for dtype in [DType::I64, DType::F32, DType::F16, DType::I32] {
                kinds_agree(&list, dtype);
            }
        }
        for m in [0, 2, 3] {
            kinds_agree(&Nd::integers(&[n, m], 3, 0, 2), DType::F32);
        }
    }
}

#[test]
fn kinds_of_extreme_values() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let floats = [0.0, -0.0, nan, 1.5, -inf, inf, -1.0e-40, nan, inf, -7.0, -inf, -0.0, 7.0];
    let whole = [-2147483648.0, 2147483647.0, 0.0, -1.0, 1.0, -2147483648.0, 2147483647.0, -1.0];
    let most = [4294967295.0, 0.0, 2147483648.0, 2147483647.0, 4294967295.0, 1.0];
    let list = |values: &[f64]| Nd { shape: vec![values.len(), 1], data: values.to_vec() };
    for dtype in [DType::F32, DType::F64] {
        kinds_agree(&list(&floats), dtype);
    }
    kinds_agree(&list(&whole), DType::I32);
    kinds_agree(&list(&most), DType::U32);
    let columns = Nd { shape: vec![4, 2], data: vec![nan, 1.0, nan, 0.0, 2.0, nan, nan, 1.0] };
    kinds_agree(&columns, DType::F32);
}

#[test]
fn what_is_not_zero_is_found() {
    for shape in [vec![1], vec![37], vec![0], vec![5, 7], vec![3, 0, 2], vec![2, 3, 4, 5]] {
        for high in [0, 1, 4] {
            let x = Nd::integers(&shape, 7, 0, high);
            let mut all = Vec::new();
            Nd::build(&shape, |i| {
                if x.at(i) != 0.0 {
                    all.push(i.to_vec());
                }
                0.0
            });
            let found = all.len();
            let at = Nd::build(&[shape.len(), found], |i| all[i[1]][i[0]] as f64);
            for dtype in [DType::BOOL, DType::F32, DType::I64] {
                let of = Operand::new(&shape, dtype);
                let inputs = [x.tensor(dtype)];
                check(indices(&of, found.into()), &inputs, &[(&at, DType::I64)]);
                if shape.len() == 1 {
                    let number = Nd { shape: vec![1], data: vec![found as f64] };
                    check(count(&of), &inputs, &[(&number, DType::I64)]);
                    let at = Nd { shape: vec![found], data: at.data.clone() };
                    check(positions(&of, found.into()), &inputs, &[(&at, DType::I64)]);
                }
            }
        }
    }
}

/// The part of the union of two boxes that both share, in the order of operations of the operator.
fn shared(a: [f32; 4], b: [f32; 4], centred: bool) -> f32 {
    let ends = |v: [f32; 4], k: usize| match centred {
        true => (v[k] - v[k + 2] * 0.5, v[k] + v[k + 2] * 0.5),
        false => (v[k].min(v[k + 2]), v[k].max(v[k + 2])),
    };
    let extent = |(low, high): (f32, f32)| high - low;
    let along = |k: usize| {
        let ((a, b), (c, d)) = (ends(a, k), ends(b, k));
        (b.min(d) - a.max(c)).max(0.0)
    };
    let area = |v| extent(ends(v, 0)) * extent(ends(v, 1));
    let both = along(0) * along(1);
    let all = area(a) + area(b) - both;
    if all > 0.0 && both > 0.0 { both / all } else { 0.0 }
}

/// The boxes of a class that are kept, padded with -1.
fn kept(
    boxes: &[[f32; 4]],
    scores: &[f32],
    limits: [f32; 2],
    most: usize,
    centred: bool,
) -> Vec<f64> {
    let mut left: Vec<usize> = (0..boxes.len()).filter(|&i| scores[i] > limits[1]).collect();
    // Stable: of equal scores the first one comes first.
    left.sort_by(|&a, &b| scores[b].partial_cmp(&scores[a]).expect("numbers"));
    let mut out: Vec<usize> = Vec::new();
    for i in left {
        let over = |&k: &usize| shared(boxes[k], boxes[i], centred) > limits[0];
        if out.len() < most && !out.iter().any(over) {
            out.push(i);
        }
    }
    let padding = vec![-1.0; most - out.len()];
    out.into_iter().map(|i| i as f64).chain(padding).collect()
}

#[test]
fn boxes_over_better_ones_are_not_kept() {
    for (n, most) in [(1, 1), (2, 2), (3, 1), (9, 4), (33, 33), (40, 7)] {
        for (overlap, least) in [(0.5, f32::NEG_INFINITY), (0.0, -1.0), (0.9, 0.5), (0.3, 1000.0)] {
            for centred in [false, true] {
                let mut boxes = Nd::random(&[2, n, 4], 1);
                if centred {
                    boxes = boxes.map(f64::abs);
                }
                // Few scores, so that many are equal, and some that are none.
                let mut scores = Nd::integers(&[2, 3, n], 2, -3, 3).map(|v| v / 2.0);
                scores.set(&[0, 1, 0], f64::NAN);
                scores.set(&[1, 2, n - 1], f64::INFINITY);
                scores.set(&[1, 1, n / 2], -0.0);
                let mut data = Vec::new();
                for b in 0..2 {
                    let corner = |i, k| boxes.at(&[b, i, k]) as f32;
                    let all: Vec<[f32; 4]> =
                        (0..n).map(|i| [0, 1, 2, 3].map(|k| corner(i, k))).collect();
                    for c in 0..3 {
                        let of: Vec<f32> = (0..n).map(|i| scores.at(&[b, c, i]) as f32).collect();
                        data.extend(kept(&all, &of, [overlap, least], most, centred));
                    }
                }
                let expected = Nd { shape: vec![2, 3, most], data };
                let p = Suppression {
                    boxes: Operand::f32(&[2, n, 4]),
                    scores: Operand::f32(&[2, 3, n]),
                    most: most.into(),
                    centred,
                };
                let limit = |v: f32| Nd { shape: vec![1], data: vec![v.into()] }.f32();
                let inputs = [boxes.f32(), scores.f32(), limit(overlap), limit(least)];
                check(non_max_suppression(&p), &inputs, &[(&expected, DType::I64)]);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32(&[2, 3]);
    let messages = [
        refused(count(&f)),
        refused(positions(&f, 1.into())),
        refused(indices(&Operand::f32(&[0usize; 0]), 1.into())),
        refused(unique_kinds(&Operand::f32(&[3]), true)),
        refused(unique_kinds(&Operand::new(&[2, 3], DType::BOOL), true)),
        refused(unique_rows(&f, 1.into())),
    ];
    expect_test::expect![[r#"
        input: count: float32[2, 3] is no list
        input: positions: float32[2, 3] is no list
        input: indices: float32[] has no axes
        input: unique: float32[3] is no matrix
        unsupported: unique: bool is not supported
        input: unique_rows: float32[2, 3] is no list
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
