use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::reduce::{Arg, Reduction, arg_reduce, cumsum, reduce, top_k};

use crate::nd::{Nd, check, check_f32, refused, run};

/// The elements of `x` that come together in each element of the result.
fn groups(x: &Nd, axes: &[usize], keepdims: bool) -> (Vec<usize>, Vec<Vec<f64>>) {
    let rank = x.shape.len();
    let reduced = |a: &usize| axes.contains(a);
    let shape: Vec<usize> = (0..rank)
        .filter(|a| keepdims || !reduced(a))
        .map(|a| if reduced(&a) { 1 } else { x.shape[a] })
        .collect();
    let kept: Vec<usize> = (0..rank).map(|a| if reduced(&a) { 1 } else { x.shape[a] }).collect();
    let mut all = vec![Vec::new(); kept.iter().product()];
    Nd::build(&x.shape, |i| {
        let at = (0..rank).fold(0, |o, a| o * kept[a] + if reduced(&a) { 0 } else { i[a] });
        all[at].push(x.at(i));
        0.0
    });
    (shape, all)
}

fn reference(x: &Nd, axes: &[usize], keepdims: bool, f: impl Fn(&[f64]) -> f64) -> Nd {
    let (shape, groups) = groups(x, axes, keepdims);
    Nd { shape, data: groups.iter().map(|g| f(g)).collect() }
}

type Table = Vec<(Reduction, fn(&[f64]) -> f64)>;

fn table() -> Table {
    vec![
        (Reduction::Sum, |v| v.iter().sum()),
        (Reduction::Max, |v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        (Reduction::Min, |v| v.iter().copied().fold(f64::INFINITY, f64::min)),
        (Reduction::Prod, |v| v.iter().product()),
        (Reduction::L1, |v| v.iter().map(|x| x.abs()).sum()),
        (Reduction::SumSquare, |v| v.iter().map(|x| x * x).sum()),
    ]
}

fn float_table() -> Table {
    let mut all = table();
    all.push((Reduction::Mean, |v| v.iter().sum::<f64>() / v.len() as f64));
    all.push((Reduction::L2, |v| v.iter().map(|x| x * x).sum::<f64>().sqrt()));
    all.push((Reduction::LogSumExp, |v| v.iter().map(|x| x.exp()).sum::<f64>().ln()));
    all
}

const AXES: [(&[usize], &[i64], &[usize]); 7] = [
    (&[3, 5, 4], &[0], &[0]),
    (&[3, 5, 4], &[-1], &[2]),
    (&[3, 5, 4], &[2, 0], &[0, 2]),
    (&[3, 5, 4], &[0, 1, 2], &[0, 1, 2]),
    (&[3, 5, 4], &[], &[]),
    (&[7], &[0], &[0]),
    (&[], &[], &[]),
];

#[test]
fn reductions_over_any_axes() {
    for (shape, axes, at) in AXES {
        // Products stay small.
        let x = Nd::random(shape, 5).map(|v| v / 2.0);
        for keepdims in [false, true] {
            for dtype in [DType::F32, DType::F64, DType::F16] {
                for (op, f) in float_table() {
                    let expected = reference(&x, at, keepdims, f);
                    let func = reduce(op, &Operand::new(shape, dtype), axes, keepdims);
                    check(func, &[x.tensor(dtype)], &[(&expected, dtype)]);
                }
            }
            let positive = x.map(|v| v.abs() + 0.5);
            let expected = reference(&positive, at, keepdims, |v| v.iter().sum::<f64>().ln());
            let func = reduce(Reduction::LogSum, &Operand::f32(shape), axes, keepdims);
            check_f32(func, &[positive.f32()], &expected);
        }
    }
}

#[test]
fn reductions_of_integers_and_truth_values() {
    let mut cases = table();
    cases.push((Reduction::Mean, |v| (v.iter().sum::<f64>() / v.len() as f64).trunc()));
    cases.push((Reduction::L2, |v| v.iter().map(|x| x * x).sum::<f64>().sqrt().trunc()));
    for (shape, axes, at) in AXES {
        let x = Nd::integers(shape, 5, -2, 2);
        for dtype in [DType::I32, DType::I64] {
            for &(op, f) in &cases {
                let expected = reference(&x, at, true, f).map(|v| v + 0.0);
                // More than 2^53 has no exact reference.
                let func = reduce(op, &Operand::new(shape, dtype), axes, true);
                check(func, &[x.tensor(dtype)], &[(&expected, dtype)]);
            }
        }
        let byte = Nd::integers(shape, 5, 0, 3);
        for op in [Reduction::L1, Reduction::Sum] {
            let expected = reference(&byte, at, false, |v| v.iter().sum::<f64>() % 256.0);
            let func = reduce(op, &Operand::new(shape, DType::U8), axes, false);
            check(func, &[byte.tensor(DType::U8)], &[(&expected, DType::U8)]);
        }
        let truth = Nd::integers(shape, 6, 0, 1);
        let any = reference(&truth, at, false, |v| f64::from(v.contains(&1.0)));
        let all = reference(&truth, at, false, |v| f64::from(!v.contains(&0.0)));
        for (op, expected) in [(Reduction::Max, any), (Reduction::Min, all)] {
            let func = reduce(op, &Operand::new(shape, DType::BOOL), axes, false);
            check(func, &[truth.tensor(DType::BOOL)], &[(&expected, DType::BOOL)]);
        }
    }
}

#[test]
fn reductions_of_nothing() {
    let x = Nd::build(&[2, 0], |_| 0.0);
    let infinity = f64::INFINITY;
    for (op, value) in [
        (Reduction::Sum, 0.0),
        (Reduction::Prod, 1.0),
        (Reduction::Max, -infinity),
        (Reduction::Min, infinity),
        (Reduction::L1, 0.0),
        (Reduction::L2, 0.0),
        (Reduction::SumSquare, 0.0),
        (Reduction::LogSum, -infinity),
        (Reduction::LogSumExp, -infinity),
        (Reduction::Mean, f64::NAN),
    ] {
        let func = reduce(op, &Operand::f32(&[2, 0]), &[1], false);
        check_f32(func, &[x.f32()], &Nd::build(&[2], |_| value));
    }
}

#[test]
fn log_sum_exp_survives_large_values() {
    let x =
        Nd { shape: vec![2, 2], data: vec![1000.0, 1000.0, f64::NEG_INFINITY, f64::NEG_INFINITY] };
    let expected = Nd { shape: vec![2], data: vec![1000.0 + 2f64.ln(), f64::NEG_INFINITY] };
    check_f32(
        reduce(Reduction::LogSumExp, &Operand::f32(&[2, 2]), &[1], false),
        &[x.f32()],
        &expected,
    );
}

#[test]
fn positions_of_extremes() {
    for shape in [vec![3, 5, 4], vec![7], vec![2, 1]] {
        // Few values, so that the extreme comes several times.
        let x = Nd::integers(&shape, 2, -1, 1);
        for axis in 0..shape.len() {
            for select_last in [false, true] {
                for (op, sign) in [(Arg::Max, 1.0), (Arg::Min, -1.0)] {
                    let expected = reference(&x, &[axis], true, |v| {
                        let mut best = 0;
                        for (k, e) in v.iter().enumerate() {
                            let (new, old) = (sign * e, sign * v[best]);
                            if new > old || select_last && new == old {
                                best = k;
                            }
                        }
                        best as f64
                    });
                    for dtype in [DType::F32, DType::I64, DType::I8] {
                        let operand = Operand::new(&shape, dtype);
                        let func = arg_reduce(op, &operand, axis as i64, true, select_last);
                        check(func, &[x.tensor(dtype)], &[(&expected, DType::I64)]);
                    }
                }
            }
        }
    }
    let x = Nd { shape: vec![4], data: vec![1.0, f64::NAN, 9.0, f64::NAN] };
    for (select_last, at) in [(false, 1.0), (true, 3.0)] {
        let func = arg_reduce(Arg::Max, &Operand::f32(&[4]), 0, false, select_last);
        check(func, &[x.f32()], &[(&Nd::build(&[], |_| at), DType::I64)]);
    }
}

#[test]
fn running_sums() {
    let shape = [3, 5, 2];
    let x = Nd::integers(&shape, 2, -9, 9);
    for axis in 0..3 {
        for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
            let expected = Nd::build(&shape, |i| {
                let counts = |k: usize| match (reverse, exclusive) {
                    (false, false) => k <= i[axis],
                    (false, true) => k < i[axis],
                    (true, false) => k >= i[axis],
                    (true, true) => k > i[axis],
                };
                let element = |k: usize| {
                    let mut at = i.to_vec();
                    at[axis] = k;
                    x.at(&at)
                };
                (0..shape[axis]).filter(|&k| counts(k)).map(element).sum()
            });
            for dtype in [DType::F32, DType::I64, DType::F16] {
                let func = cumsum(&Operand::new(&shape, dtype), axis as i64, exclusive, reverse);
                check(func, &[x.tensor(dtype)], &[(&expected, dtype)]);
            }
        }
    }
    let empty = Nd::build(&[2, 0], |_| 0.0);
    check_f32(cumsum(&Operand::f32(&[2, 0]), 1, false, false), &[empty.f32()], &empty);
}

#[test]
fn the_best_come_first() {
    for shape in [vec![3, 5, 2], vec![7], vec![1], vec![53], vec![37, 2]] {
        // Few values, so that many are equal.
        let x = Nd::integers(&shape, 2, -2, 2);
        for axis in 0..shape.len() {
            for k in 0..=shape[axis] {
                for largest in [false, true] {
                    let order = |i: &[usize]| {
                        let value = |k: usize| {
                            let mut at = i.to_vec();
                            at[axis] = k;
                            x.at(&at)
                        };
                        let mut all: Vec<usize> = (0..shape[axis]).collect();
                        let sign = if largest { -1.0 } else { 1.0 };
                        all.sort_by(|&a, &b| (sign * value(a)).total_cmp(&(sign * value(b))));
                        (value(all[i[axis]]), all[i[axis]])
                    };
                    let mut out = shape.clone();
                    out[axis] = k;
                    let values = Nd::build(&out, |i| order(i).0);
                    let places = Nd::build(&out, |i| order(i).1 as f64);
                    for dtype in [DType::F32, DType::I64, DType::F64, DType::F16, DType::I8] {
                        let func = top_k(&Operand::new(&shape, dtype), axis as i64, k, largest);
                        let expected = [(&values, dtype), (&places, DType::I64)];
                        check(func, &[x.tensor(dtype)], &expected);
                    }
                }
            }
        }
    }
}

/// Values at the ends of their types, both zeros, infinite ones and `NaN`.
#[test]
fn the_best_of_extreme_values_come_first() {
    let floats =
        [0.0, -0.0, 1.5, f64::NAN, f64::NEG_INFINITY, -1.0e-40, f64::INFINITY, f64::NAN, -7.0, 0.0];
    let best = [[3, 7, 6, 2, 0, 1, 9, 5, 8, 4], [4, 8, 5, 0, 1, 9, 2, 6, 3, 7]];
    type Orders = [[usize; 10]; 2];
    let all: [(DType, &[f64], Orders); 4] = [
        (DType::F32, &floats, best),
        (DType::F64, &floats, best),
        (
            DType::U32,
            &[0.0, 4294967295.0, 1.0, 2147483648.0, 2147483647.0, 5.0, 0.0, 6.0, 7.0, 8.0],
            [[1, 3, 4, 9, 8, 7, 5, 2, 0, 6], [0, 6, 2, 5, 7, 8, 9, 4, 3, 1]],
        ),
        (
            DType::I32,
            &[-2147483648.0, 2147483647.0, 0.0, -1.0, 1.0, 2.0, 3.0, -2.0, 4.0, 5.0],
            [[1, 9, 8, 6, 5, 4, 2, 3, 7, 0], [0, 7, 3, 2, 4, 5, 6, 8, 9, 1]],
        ),
    ];
    for (dtype, values, orders) in all {
        let x = Nd::build(&[10], |i| values[i[0]]);
        for (largest, order) in [(true, orders[0]), (false, orders[1])] {
            for k in [1, 4, 10] {
                let func = top_k(&Operand::new(&[10], dtype), 0, k, largest);
                let [found, places] = &run(func, &[x.tensor(dtype)])[..] else {
                    panic!("two results")
                };
                let places: Vec<usize> = (0..k).map(|i| places.get_f64(i) as usize).collect();
                assert_eq!(places, order[..k], "{dtype} {largest}");
                let given = x.tensor(dtype);
                let same =
                    |i: usize| found.get_f64(i).to_bits() == given.get_f64(order[i]).to_bits();
                assert!((0..k).all(same), "{dtype} {largest}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32(&[2, 3]);
    let i = Operand::new(&[2, 3], DType::I32);
    let b = Operand::new(&[2, 3], DType::BOOL);
    let empty = Operand::new(&[2, 0], DType::I32);
    let messages = [
        refused(reduce(Reduction::Sum, &f, &[2], false)),
        refused(reduce(Reduction::Sum, &f, &[1, -1], false)),
        refused(reduce(Reduction::Sum, &b, &[1], false)),
        refused(reduce(Reduction::LogSumExp, &i, &[1], false)),
        refused(reduce(Reduction::Mean, &empty, &[1], false)),
        refused(arg_reduce(Arg::Max, &f, 2, false, false)),
        refused(arg_reduce(Arg::Max, &b, 0, false, false)),
        refused(arg_reduce(Arg::Max, &empty, 1, false, false)),
        refused(cumsum(&f, 2, false, false)),
        refused(cumsum(&b, 0, false, false)),
        refused(top_k(&f, 2, 1, true)),
        refused(top_k(&f, 1, 4, true)),
        refused(top_k(&b, 1, 1, true)),
    ];
    expect_test::expect![[r#"
        input: reduce_sum: there is no axis 2 among 2 axes
        input: reduce_sum: the axis 1 comes twice
        unsupported: reduce_sum: bool is not supported
        unsupported: reduce_log_sum_exp: int32 is not supported
        input: reduce_mean: int32[2, 0] has no elements to take the mean of
        input: arg_max: there is no axis 2 among 2 axes
        unsupported: arg_max: bool is not supported
        input: arg_max: int32[2, 0] has no elements along axis 1
        input: cumsum: there is no axis 2 among 2 axes
        unsupported: cumsum: bool is not supported
        input: top_k: there is no axis 2 among 2 axes
        input: top_k: 4 of 3 elements along axis 1
        unsupported: top_k: bool is not supported
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
