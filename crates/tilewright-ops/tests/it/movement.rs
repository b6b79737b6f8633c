use proptest::prelude::*;
use tilewright_ir::{DType, Result, TensorFunc};
use tilewright_ops::Operand;
use tilewright_ops::movement::{
    DepthOrder, concat, copy, depth_to_space, expand, gather, gather_elements, gather_nd, one_hot,
    reshape, reverse_sequence, scatter_elements, scatter_nd, slice, space_to_depth, split, tile,
    transpose, trilu,
};
use tilewright_ops::pad::{PadMode, pad, pad_with};
use tilewright_ops::te::Reducer;

use crate::nd::{Nd, check, check_f32, refused};

/// Numbers that are all different.
fn distinct(shape: &[usize]) -> Nd {
    let mut next = 0.0;
    Nd::build(shape, |_| {
        next += 1.0;
        next
    })
}

/// Checks a function of one operand for several types.
#[track_caller]
fn moves(build: impl Fn(&Operand) -> Result<TensorFunc>, x: &Nd, expected: &Nd) {
    for dtype in [DType::F32, DType::I64, DType::F16] {
        let func = build(&Operand::new(&x.shape, dtype));
        check(func, &[x.tensor(dtype)], &[(expected, dtype)]);
    }
}

#[test]
fn copies_and_reshapes_keep_the_order() {
    let x = distinct(&[2, 6, 5]);
    moves(copy, &x, &x);
    for to in [
        vec![2, 6, 5],
        vec![60],
        vec![12, 5],
        vec![2, 30],
        vec![2, 1, 6, 5, 1],
        vec![2, 3, 2, 5],
        vec![4, 3, 5],
        vec![5, 6, 2],
        vec![3, 4, 5],
        vec![2, 2, 15],
        vec![1, 60, 1],
        vec![10, 6],
    ] {
        moves(|o| reshape(o, &to), &x, &Nd { shape: to.clone(), ..x.clone() });
    }
    let one = distinct(&[1]);
    moves(|o| reshape::<usize>(o, &[]), &one, &Nd { shape: vec![], ..one.clone() });
    let scalar = distinct(&[]);
    moves(|o| reshape(o, &[1, 1]), &scalar, &Nd { shape: vec![1, 1], ..scalar.clone() });
    let empty = distinct(&[2, 0, 3]);
    moves(|o| reshape(o, &[0]), &empty, &Nd { shape: vec![0], ..empty.clone() });
}

/// Two shapes of one size: products of the same primes in groups of their own.
fn two_shapes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let primes = prop::collection::vec(prop::sample::select(vec![2usize, 2, 3, 5]), 0..5);
    primes.prop_flat_map(|primes| {
        let shape = prop::collection::vec(0..4usize, primes.len()).prop_map(move |axes| {
            let mut shape = vec![1; axes.iter().max().map_or(0, |m| m + 1)];
            for (&axis, prime) in axes.iter().zip(&primes) {
                shape[axis] *= prime;
            }
            shape
        });
        (shape.clone(), shape)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_reshape_keeps_the_order((from, to) in two_shapes()) {
        let x = distinct(&from);
        let expected = Nd { shape: to.clone(), ..x.clone() };
        check_f32(reshape(&Operand::f32(&from), &to), &[x.f32()], &expected);
    }

    #[test]
    fn any_slice_follows_onnx(
        extent in 0..9usize, start in -12..12i64, end in -12..12i64, step in 1..5i64, back: bool
    ) {
        let step = if back { -step } else { step };
        let x = distinct(&[extent]);
        let at = positions(extent as i64, start, end, step);
        let expected = Nd::build(&[at.len()], |i| x.at(&[at[i[0]]]));
        let func = slice(&Operand::f32(&[extent]), &[start], &[end], &[0], &[step]);
        check_f32(func, &[x.f32()], &expected);
    }
}

#[test]
fn an_axis_that_a_reshape_keeps_is_not_divided() {
    let func = reshape(&Operand::f32(&[7, 2, 6, 5]), &[7, 12, 5]).unwrap();
    let (_, body) = func.root_parts();
    let text = format!("{body:?}");
    assert!(text.contains("x[vi0, vi1 // 6, vi1 % 6, vi2]"), "{text}");
}

#[test]
fn transposes_order_axes() {
    for perm in [vec![0, 1, 2], vec![2, 1, 0], vec![1, 2, 0], vec![2, 0, 1], vec![0, 2, 1]] {
        let x = distinct(&[2, 3, 5]);
        let shape: Vec<usize> = perm.iter().map(|&a| x.shape[a]).collect();
        let expected = Nd::build(&shape, |i| {
            let mut at = [0; 3];
            for (k, &a) in perm.iter().enumerate() {
                at[a] = i[k];
            }
            x.at(&at)
        });
        moves(|o| transpose(o, &perm), &x, &expected);
    }
    moves(|o| transpose(o, &[]), &distinct(&[]), &distinct(&[]));
}

#[test]
fn concat_and_split_are_inverse() {
    for axis in 0..3 {
        for sizes in [vec![3, 1, 4], vec![2], vec![0, 3, 0], vec![0], vec![0, 0], vec![3, 0]] {
            let mut shape = [2, 3, 2];
            shape[axis] = sizes.iter().sum();
            let whole = distinct(&shape);
            let mut start = 0;
            let parts: Vec<Nd> = sizes
                .iter()
                .map(|&size| {
                    let mut shape = shape;
                    shape[axis] = size;
                    let part = Nd::build(&shape, |i| {
                        let mut at = i.to_vec();
                        at[axis] += start;
                        whole.at(&at)
                    });
                    start += size;
                    part
                })
                .collect();
            for dtype in [DType::F32, DType::I64] {
                let operands: Vec<Operand> =
                    parts.iter().map(|p| Operand::new(&p.shape, dtype)).collect();
                let inputs: Vec<_> = parts.iter().map(|p| p.tensor(dtype)).collect();
                let func = concat(&operands, axis as i64 - 3);
                check(func, &inputs, &[(&whole, dtype)]);
                let outputs: Vec<_> = parts.iter().map(|p| (p, dtype)).collect();
                let func = split(&Operand::new(&shape, dtype), axis as i64, &sizes);
                check(func, &[whole.tensor(dtype)], &outputs);
            }
        }
    }
}

/// The element that stands for a cell, among so many.
type Source = fn(i64, i64) -> Option<i64>;

/// `range(start, end, step)` after ONNX's rules for slices: a step back begins at an element, where
/// Python begins before the first one.
fn positions(extent: i64, start: i64, end: i64, step: i64) -> Vec<usize> {
    let wrap = |v: i64| if v < 0 { v.saturating_add(extent) } else { v };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let limit = |v: i64, low: i64| wrap(v).max(low).min(high);
    let (mut at, end) = (limit(start, 0), limit(end, low));
    let mut all = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        all.push(at as usize);
        at = at.saturating_add(step);
    }
    all
}

#[test]
fn slices_follow_onnx() {
    let x = distinct(&[3, 7]);
    let far = i64::MAX;
    for (start, end, step) in [
        (0, 7, 1),
        (1, 5, 2),
        (-3, far, 1),
        (0, -2, 3),
        (6, 0, -1),
        (-1, i64::MIN, -2),
        (far, i64::MIN, -3),
        (5, 5, 1),
        (5, 2, 1),
        (2, 5, -1),
        (i64::MIN, far, 100),
        (3, far, far),
        (3, i64::MIN, i64::MIN),
        (-100, 100, 4),
        (-100, i64::MIN, -2),
    ] {
        let at = positions(7, start, end, step);
        let expected = Nd::build(&[3, at.len()], |i| x.at(&[i[0], at[i[1]]]));
        moves(|o| slice(o, &[start], &[end], &[-1], &[step]), &x, &expected);
    }
    let expected = Nd::build(&[2, 4], |i| x.at(&[2 - 2 * i[0], 1 + i[1]]));
    moves(|o| slice(o, &[2, 1], &[i64::MIN, 5], &[], &[-2, 1]), &x, &expected);
    let expected = Nd::build(&[2, 7], |i| x.at(&[i[0] + 1, i[1]]));
    moves(|o| slice(o, &[1], &[3], &[0], &[]), &x, &expected);
    let empty = distinct(&[0, 2]);
    moves(|o| slice(o, &[0], &[i64::MIN], &[0], &[-1]), &empty, &empty);
}

#[test]
fn pads_put_cells_around() {
    let x = distinct(&[3, 4]);
    let modes: [(PadMode, Source); 4] = [
        (PadMode::Constant((-1i64).into()), |i, n| (0..n).contains(&i).then_some(i)),
        (PadMode::Edge, |i, n| Some(i.clamp(0, n - 1))),
        (PadMode::Wrap, |i, n| Some(i.rem_euclid(n))),
        (PadMode::Reflect, |mut i, n| {
            while n > 1 && !(0..n).contains(&i) {
                i = if i < 0 { -i } else { 2 * (n - 1) - i };
            }
            Some(if n > 1 { i } else { 0 })
        }),
    ];
    for (before, after) in [
        ([0, 0], [0, 0]),
        ([1, 0], [0, 2]),
        ([2, 3], [2, 3]),
        ([5, 0], [0, 9]),
        ([-1, 2], [1, -2]),
        ([-2, -1], [0, -1]),
        ([-2, -3], [4, 4]),
    ] {
        for (mode, source) in modes {
            // Cutting off comes first.
            let cut: Vec<[i64; 2]> = (0..2)
                .map(|a: usize| [(-before[a]).max(0), x.shape[a] as i64 - (-after[a]).max(0)])
                .collect();
            let shape: Vec<usize> =
                (0..2).map(|a| (x.shape[a] as i64 + before[a] + after[a]) as usize).collect();
            let expected = Nd::build(&shape, |i| {
                let at: Option<Vec<i64>> = (0..2)
                    .map(|a| {
                        let from = i[a] as i64 - i64::max(before[a], 0);
                        source(from, cut[a][1] - cut[a][0]).map(|k| k + cut[a][0])
                    })
                    .collect();
                at.map_or(-1.0, |at| x.get(&at).unwrap())
            });
            moves(|o| pad(o, &before, &after, mode), &x, &expected);
        }
    }
    for shape in [vec![], vec![1], vec![1, 1]] {
        let (x, value) = (distinct(&[2]), Nd::build(&shape, |_| 9.0));
        let expected = Nd { shape: vec![4], data: vec![9.0, 1.0, 2.0, 9.0] };
        let func = pad_with(&Operand::f32(&[2]), &[1], &[1], &shape);
        check_f32(func, &[x.f32(), value.f32()], &expected);
    }
    let empty = distinct(&[0]);
    let filled = Nd::build(&[3], |_| -1.0);
    moves(|o| pad(o, &[1], &[2], PadMode::Constant((-1i64).into())), &empty, &filled);
}

#[test]
fn expand_and_tile_repeat() {
    for (shape, to, out) in [
        (vec![3, 1], vec![2, 1, 6], vec![2, 3, 6]),
        (vec![3, 1], vec![1, 1], vec![3, 1]),
        (vec![], vec![2], vec![2]),
        (vec![1, 4], vec![0, 1], vec![0, 4]),
    ] {
        let x = distinct(&shape);
        let expected = Nd::build(&out, |i| x.broadcast(i));
        moves(|o| expand(o, &to), &x, &expected);
    }
    for repeats in [[1, 1, 1], [2, 1, 3], [0, 2, 1], [3, 4, 5]] {
        let x = distinct(&[2, 1, 3]);
        let shape: Vec<usize> = (0..3).map(|a| x.shape[a] * repeats[a]).collect();
        let expected = Nd::build(&shape, |i| x.at(&[i[0] % 2, 0, i[2] % 3]));
        moves(|o| tile(o, &repeats), &x, &expected);
    }
}

/// A possibly negative index.
fn wrap(index: f64, extent: usize) -> usize {
    (if index < 0.0 { index + extent as f64 } else { index }) as usize
}

#[test]
fn gathers_look_up() {
    let data = distinct(&[3, 5, 4]);
    let operand = Operand::f32(&data.shape);
    for ix_type in [DType::I32, DType::I64] {
        for axis in 0..3 {
            let extent = data.shape[axis];
            let e = extent as i64;
            for ix_shape in [vec![], vec![4], vec![2, 3]] {
                let ix = Nd::integers(&ix_shape, 3, -e, e - 1);
                let (outer, inner) = (&data.shape[..axis], &data.shape[axis + 1..]);
                let shape = [outer, &ix_shape, inner].concat();
                let expected = Nd::build(&shape, |i| {
                    let (outer, rest) = i.split_at(axis);
                    let (at, inner) = rest.split_at(ix_shape.len());
                    data.at(&[outer, &[wrap(ix.at(at), extent)], inner].concat())
                });
                let func = gather(&operand, &Operand::new(&ix_shape, ix_type), axis as i64 - 3);
                check_f32(func, &[data.f32(), ix.tensor(ix_type)], &expected);
            }
            let mut ix_shape = vec![2, 3, 4];
            ix_shape[axis] = 6;
            let ix = Nd::integers(&ix_shape, 3, -e, e - 1);
            let expected = Nd::build(&ix_shape, |i| {
                let mut at = i.to_vec();
                at[axis] = wrap(ix.at(i), extent);
                data.at(&at)
            });
            let func = gather_elements(&operand, &Operand::new(&ix_shape, ix_type), axis as i64);
            check_f32(func, &[data.f32(), ix.tensor(ix_type)], &expected);
        }
    }
    for (ix_shape, batch) in [
        (vec![2, 3], 0),
        (vec![3], 0),
        (vec![4, 2], 0),
        (vec![3, 6, 2], 1),
        (vec![3, 5, 1], 2),
        (vec![3, 1], 1),
    ] {
        let (depth, outer) = ix_shape.split_last().unwrap();
        // Indices that every axis has.
        let ix = Nd::integers(&ix_shape, 3, -3, 2);
        let shape = [outer, &data.shape[batch + depth..]].concat();
        let expected = Nd::build(&shape, |i| {
            let (outer, inner) = i.split_at(outer.len());
            let found =
                (0..*depth).map(|k| wrap(ix.at(&[outer, &[k]].concat()), data.shape[batch + k]));
            let at: Vec<usize> = outer[..batch].iter().copied().chain(found).collect();
            data.at(&[&at, inner].concat())
        });
        let func = gather_nd(&operand, &Operand::new(&ix_shape, DType::I64), batch);
        check_f32(func, &[data.f32(), ix.tensor(DType::I64)], &expected);
    }
}

#[test]
fn indices_outside_read_inside_and_write_nothing() {
    let data = distinct(&[3]);
    let ix = Nd { shape: vec![4], data: vec![-9.0, 5.0, 1e10, -3.0] };
    let inputs = [data.f32(), ix.tensor(DType::I64)];
    let expected = Nd { shape: vec![4], data: vec![1.0, 3.0, 3.0, 1.0] };
    let (d, i) = (Operand::f32(&[3]), Operand::new(&[4], DType::I64));
    check_f32(gather(&d, &i, 0), &inputs, &expected);
    let updates = Nd { shape: vec![4], data: vec![10.0, 20.0, 30.0, 40.0] };
    let inputs = [data.f32(), ix.tensor(DType::I64), updates.f32()];
    let expected = Nd { shape: vec![3], data: vec![40.0, 2.0, 3.0] };
    check_f32(scatter_elements(&d, &i, 0, None), &inputs, &expected);
    let tuples = Nd { shape: vec![4, 1], ..ix };
    let inputs = [data.f32(), tuples.tensor(DType::I64), updates.f32()];
    let i = Operand::new(&[4, 1], DType::I64);
    check_f32(scatter_nd(&d, &i, None), &inputs, &expected);
}

type Combine = fn(f64, f64) -> f64;

const MODES: [(Option<Reducer>, Combine); 5] = [
    (None, |_, new| new),
    (Some(Reducer::Sum), |old, new| old + new),
    (Some(Reducer::Prod), |old, new| old * new),
    (Some(Reducer::Min), f64::min),
    (Some(Reducer::Max), f64::max),
];

#[test]
fn scatters_write() {
    let data = Nd::random(&[3, 5, 2], 1);
    let operand = Operand::f32(&data.shape);
    for (mode, f) in MODES {
        for axis in 0..3 {
            let e = data.shape[axis] as i64;
            let mut shape = vec![2, 4, 2];
            shape[axis] = 6;
            let (ix, updates) = (Nd::integers(&shape, 3, -e, e - 1), Nd::random(&shape, 4));
            let mut expected = data.clone();
            Nd::build(&shape, |i| {
                let mut at = i.to_vec();
                at[axis] = wrap(ix.at(i), data.shape[axis]);
                expected.set(&at, f(expected.at(&at), updates.at(i)));
                0.0
            });
            let func =
                scatter_elements(&operand, &Operand::new(&shape, DType::I64), axis as i64, mode);
            check_f32(func, &[data.f32(), ix.tensor(DType::I64), updates.f32()], &expected);
        }
        for ix_shape in [vec![4, 2], vec![2, 3, 1], vec![3], vec![7, 3], vec![1, 0]] {
            let (&depth, outer) = ix_shape.split_last().unwrap();
            let ix = Nd::integers(&ix_shape, 3, -2, 1);
            let updates = Nd::random(&[outer, &data.shape[depth..]].concat(), 4);
            let mut expected = data.clone();
            Nd::build(&updates.shape, |i| {
                let (outer, inner) = i.split_at(outer.len());
                let found = (0..depth).map(|k| wrap(ix.at(&[outer, &[k]].concat()), data.shape[k]));
                let at: Vec<usize> = found.chain(inner.iter().copied()).collect();
                expected.set(&at, f(expected.at(&at), updates.at(i)));
                0.0
            });
            let func = scatter_nd(&operand, &Operand::new(&ix_shape, DType::I32), mode);
            check_f32(func, &[data.f32(), ix.tensor(DType::I32), updates.f32()], &expected);
        }
    }
}

#[test]
fn depth_and_space_change_places() {
    let (c, b) = (3, 2);
    let deep = distinct(&[2, c * b * b, 2, 5]);
    for (order, channel) in [
        (
            DepthOrder::Dcr,
            (|c, row, col| (row * 2 + col) * 3 + c) as fn(usize, usize, usize) -> usize,
        ),
        (DepthOrder::Crd, |c, row, col| c * 4 + row * 2 + col),
    ] {
        let wide = Nd::build(&[2, c, 4, 10], |i| {
            deep.at(&[i[0], channel(i[1], i[2] % b, i[3] % b), i[2] / b, i[3] / b])
        });
        moves(|o| depth_to_space(o, b, order), &deep, &wide);
        if order == DepthOrder::Dcr {
            moves(|o| space_to_depth(o, b), &wide, &deep);
        }
    }
}

#[test]
fn triangles_and_reversed_sequences() {
    let x = distinct(&[2, 3, 5]);
    for k in [-9, -3, -2, -1, 0, 1, 3, 4, 5, 9, i64::MIN, i64::MAX] {
        for upper in [false, true] {
            let expected = Nd::build(&x.shape, |i| {
                let over = (i[2] as i64 - i[1] as i64).cmp(&k);
                let kept = if upper { over.is_ge() } else { over.is_le() };
                if kept { x.at(i) } else { 0.0 }
            });
            moves(|o| trilu(o, k, upper), &x, &expected);
        }
    }
    for (batch, time) in [(0, 1), (1, 0)] {
        let x = distinct(&[4, 4, 3]);
        let lengths = Nd { shape: vec![4], data: vec![1.0, 4.0, 0.0, 3.0] };
        let expected = Nd::build(&x.shape, |i| {
            let length = lengths.at(&[i[batch]]) as usize;
            let mut at = i.to_vec();
            if at[time] < length {
                at[time] = length - 1 - at[time];
            }
            x.at(&at)
        });
        let func = reverse_sequence(&Operand::f32(&x.shape), batch, time);
        check_f32(func, &[x.f32(), lengths.tensor(DType::I64)], &expected);
    }
}

#[test]
fn one_hot_marks_an_index() {
    let values = Nd { shape: vec![2], data: vec![-1.0, 7.0] };
    for axis in [0, 1, 2, -1] {
        let ix = Nd::integers(&[2, 3], 3, -6, 6);
        let at = if axis < 0 { 2 } else { axis as usize };
        let mut shape = vec![2, 3];
        shape.insert(at, 5);
        let expected = Nd::build(&shape, |i| {
            let mut own = i.to_vec();
            let here = own.remove(at) as f64;
            let ix = ix.at(&own);
            if ix == here || ix + 5.0 == here { 7.0 } else { -1.0 }
        });
        for dtype in [DType::I64, DType::F32, DType::I32] {
            let func = one_hot(&Operand::new(&[2, 3], dtype), 5, axis, DType::F32);
            check_f32(func, &[ix.tensor(dtype), values.f32()], &expected);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32;
    let ix = |shape: &[usize]| Operand::new(shape, DType::I64);
    let x = f(&[2, 3]);
    let messages = [
        refused(reshape(&x, &[7])),
        refused(reshape(&f(&[1 << 40, 1 << 40]), &[0])),
        refused(transpose(&x, &[0, 0])),
        refused(transpose(&x, &[0])),
        refused(transpose(&x, &[0, 2])),
        refused(concat(&[], 0)),
        refused(concat(&[f(&[])], 0)),
        refused(concat(&[x.clone(), f(&[3, 3])], 1)),
        refused(concat(&[x.clone(), f(&[2])], 1)),
        refused(concat(&[x.clone(), ix(&[2, 3])], 1)),
        refused(concat(&[f(&[usize::MAX]), f(&[usize::MAX])], 0)),
        refused(split(&x, 1, &[1, 1])),
        refused(split::<usize>(&x, 1, &[])),
        refused(split(&x, 1, &[usize::MAX, 4])),
        refused(slice(&x, &[0], &[1], &[2], &[])),
        refused(slice(&x, &[0], &[1], &[0], &[0])),
        refused(slice(&x, &[0], &[1, 2], &[0], &[1])),
        refused(pad(&x, &[0], &[0, 0], PadMode::Edge)),
        refused(pad(&x, &[-1, 0], &[-2, 0], PadMode::Edge)),
        refused(pad(&x, &[-2, 0], &[1, 3], PadMode::Wrap)),
        refused(pad(&x, &[i64::MAX, 0], &[1, 0], PadMode::Edge)),
        refused(pad(&x, &[i64::MIN, 0], &[1, 0], PadMode::Edge)),
        refused(pad_with(&x, &[1, 0], &[1, 0], &[2])),
        refused(pad_with(&x, &[1], &[1, 0], &[] as &[usize])),
        refused(expand(&x, &[2])),
        refused(tile(&x, &[2])),
        refused(tile(&x, &[usize::MAX, 2])),
        refused(gather(&x, &f(&[2]), 0)),
        refused(gather(&x, &ix(&[2]), 2)),
        refused(gather(&f(&[0]), &ix(&[2]), 0)),
        refused(gather_elements(&x, &ix(&[2]), 0)),
        refused(gather_elements(&x, &ix(&[2, 4]), 0)),
        refused(gather_nd(&x, &ix(&[2, 3]), 0)),
        refused(gather_nd(&x, &ix(&[3, 1]), 1)),
        refused(gather_nd(&x, &ix(&[]), 0)),
        refused(gather_nd(&x, &ix(&[2, usize::MAX]), 1)),
        refused(scatter_elements(&x, &ix(&[2, 4]), 0, Some(Reducer::Sum))),
        refused(scatter_elements(
            &Operand::new(&[2], DType::BOOL),
            &ix(&[2]),
            0,
            Some(Reducer::Sum),
        )),
        refused(scatter_nd(&x, &ix(&[2, 3]), None)),
        refused(scatter_nd(&f(&[0]), &ix(&[2, 1]), None)),
        refused(depth_to_space(&f(&[1, 6, 2, 2]), 2, DepthOrder::Dcr)),
        refused(depth_to_space(&f(&[1, 6, 2, 2]), 0, DepthOrder::Crd)),
        refused(depth_to_space(&x, 2, DepthOrder::Crd)),
        refused(space_to_depth(&f(&[1, 1, 3, 2]), 2)),
        refused(space_to_depth(&f(&[1, 1, 3, 2]), 0)),
        refused(trilu(&f(&[3]), 0, true)),
        refused(reverse_sequence(&x, 1, 1)),
        refused(reverse_sequence(&f(&[1, 2, 3]), 0, 2)),
        refused(one_hot(&ix(&[2]), 3, 2, DType::F32)),
        refused(one_hot(&Operand::new(&[2], DType::BOOL), 3, 0, DType::F32)),
    ];
    expect_test::expect![[r#"
        input: reshape: float32[2, 3] does not have the shape [7]
        input: reshape: float32[1099511627776, 1099511627776] does not have the shape [0]
        input: transpose: [0, 0] does not order the axes of float32[2, 3]
        input: transpose: [0] does not order the axes of float32[2, 3]
        input: transpose: [0, 2] does not order the axes of float32[2, 3]
        input: concat: there is no operand
        input: concat: there is no axis 0 among 0 axes
        input: concat: float32[2, 3] and float32[3, 3] do not fit together along axis 1
        input: concat: float32[2, 3] and float32[2] do not fit together along axis 1
        input: concat: the types float32 and int64 differ
        input: concat: the result is too long along axis 0
        input: split: the sizes [1, 1] do not add up to axis 1 of float32[2, 3]
        input: split: the sizes [] do not add up to axis 1 of float32[2, 3]
        input: split: the sizes [18446744073709551615, 4] do not add up to axis 1 of float32[2, 3]
        input: slice: there is no axis 2 among 2 axes
        input: slice: the step along axis 0 is zero
        input: slice: 1 starts, 2 ends, 1 axes and 1 steps
        input: pad: 1 numbers before and 2 behind the axes of float32[2, 3]
        input: pad: -1 and -2 cells do not fit around axis 0 of float32[2, 3]
        input: pad: axis 0 of float32[2, 3] has no element to repeat
        input: pad: 9223372036854775807 and 1 cells do not fit around axis 0 of float32[2, 3]
        input: pad: -9223372036854775808 and 1 cells do not fit around axis 0 of float32[2, 3]
        input: pad: a value of shape [2] is not one element
        input: pad: 1 numbers before and 2 behind the axes of float32[2, 3]
        input: expand: the shapes [[2, 3], [2]] do not broadcast together
        input: tile: the repeats [2] do not fit float32[2, 3]
        input: tensor `tile`: the shape [18446744073709551615, 6] has more than 2^31 - 1 elements
        unsupported: gather: float32 is not supported
        input: gather: there is no axis 2 among 2 axes
        input: gather: float32[0] has no elements along axis 0
        input: gather_elements: indices int64[2] do not fit float32[2, 3]
        input: gather_elements: indices int64[2, 4] do not fit float32[2, 3]
        input: gather_nd: indices int64[2, 3] with 0 batch axes do not fit float32[2, 3]
        input: gather_nd: indices int64[3, 1] with 1 batch axes do not fit float32[2, 3]
        input: gather_nd: indices int64[] with 0 batch axes do not fit float32[2, 3]
        input: gather_nd: indices int64[2, 18446744073709551615] with 1 batch axes do not fit float32[2, 3]
        input: scatter_elements: indices int64[2, 4] do not fit float32[2, 3]
        unsupported: scatter_elements: bool is not supported
        input: scatter_nd: indices int64[2, 3] with 0 batch axes do not fit float32[2, 3]
        input: scatter_nd: float32[0] has no elements along axis 0
        input: depth_to_space: 6 channels for blocks of 2
        input: depth_to_space: 6 channels for blocks of 0
        input: depth_to_space: float32[2, 3] must be [N, C, H, W]
        input: space_to_depth: float32[1, 1, 3, 2] in blocks of 2
        input: space_to_depth: float32[1, 1, 3, 2] in blocks of 0
        input: trilu: float32[3] has no matrices
        input: reverse_sequence: batch axis 1 and time axis 1 of float32[2, 3]
        input: reverse_sequence: batch axis 0 and time axis 2 of float32[1, 2, 3]
        input: one_hot: there is no axis 2 among 2 axes
        unsupported: one_hot: bool is not supported
    "#]].assert_eq(&(messages.join("\n") + "\n"));
}
