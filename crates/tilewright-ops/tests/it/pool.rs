use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::pool::{
    Pool, average_pool, global_average_pool, global_lp_pool, global_max_pool, lp_pool, max_pool,
    max_pool_with_indices,
};

use crate::nd::{Nd, check, check_f32, numbers, refused};

/// A cell of a window: whether inside of the padding, and the index.
type Cell = (bool, Vec<i64>);

/// Shape of the output, and the cells of each output's window.
fn windows(p: &Pool) -> (Vec<usize>, impl Fn(&[usize]) -> Vec<Cell>) {
    let n = p.kernel.len();
    let extents = numbers(&p.x.shape);
    let mut shape = extents[..2].to_vec();
    for a in 0..n {
        let (d, s, begin) = (extents[2 + a], p.strides[a], p.pads_begin[a]);
        let span = p.dilations[a] * (p.kernel[a] - 1) + 1;
        let starts = (0..).map(|o| o * s);
        let count = match p.ceil_mode {
            // A window counts until one reaches the end, unless it starts past the data.
            true => {
                let room = (d + begin + p.pads_end[a]) as i64 - span as i64;
                let count = (room as f64 / s as f64).ceil() as usize + 1;
                if (count - 1) * s >= d + begin { count - 1 } else { count }
            }
            false => {
                let room = d + begin + p.pads_end[a];
                let fitting = starts.take_while(|o| o + span <= room).count();
                // One that is longer than all of it counts, if by less than a step.
                fitting.max(usize::from(span < room + s))
            }
        };
        shape.push(count);
    }
    let p = p.clone();
    let cells = move |o: &[usize]| {
        let mut cells = Vec::new();
        Nd::build(&p.kernel, |k| {
            let mut at = vec![o[0] as i64, o[1] as i64];
            let mut inside = true;
            for a in 0..n {
                let cell = o[2 + a] * p.strides[a] + k[a] * p.dilations[a];
                inside &= cell < extents[2 + a] + p.pads_begin[a] + p.pads_end[a];
                at.push(cell as i64 - p.pads_begin[a] as i64);
            }
            cells.push((inside, at));
            0.0
        });
        cells
    };
    (shape, cells)
}

fn cases() -> Vec<Pool> {
    let f = Operand::f32;
    let mut cases = vec![
        Pool::new(f(&[2, 3, 7]), &[3]),
        Pool::new(f(&[1, 2, 5, 4]), &[1, 1]),
        Pool::new(f(&[1, 2, 5, 4]), &[5, 4]),
        Pool::new(f(&[1, 1, 4, 5, 3]), &[2, 3, 2]),
        Pool { pads_begin: vec![1], ..Pool::new(f(&[1, 1, 1]), &[2]) },
        Pool { pads_begin: vec![1], pads_end: vec![1], ..Pool::new(f(&[1, 1, 1]), &[3]) },
        // One window that is larger than the data, with and without padding, and with gaps.
        Pool { strides: vec![3], ..Pool::new(f(&[1, 2, 3]), &[4]) },
        Pool {
            strides: vec![4, 1],
            pads_begin: vec![1, 0],
            pads_end: vec![1, 1],
            ..Pool::new(f(&[1, 1, 3, 4]), &[8, 3])
        },
        Pool { strides: vec![9], ceil_mode: true, ..Pool::new(f(&[1, 2, 6]), &[9]) },
        Pool {
            strides: vec![5],
            pads_begin: vec![2],
            pads_end: vec![1],
            ceil_mode: true,
            ..Pool::new(f(&[1, 1, 3]), &[8])
        },
        Pool {
            strides: vec![4, 2],
            dilations: vec![2, 3],
            ceil_mode: true,
            ..Pool::new(f(&[1, 1, 3, 7]), &[3, 2])
        },
    ];
    for (kernel, strides, dilations, begin, end) in [
        ([3, 2], [2, 2], [1, 1], [0, 0], [0, 0]),
        ([3, 3], [2, 2], [1, 1], [1, 1], [1, 1]),
        ([2, 3], [3, 2], [1, 1], [1, 0], [0, 2]),
        ([2, 2], [1, 2], [3, 2], [1, 2], [2, 0]),
        ([3, 3], [3, 3], [1, 1], [0, 2], [2, 1]),
        ([2, 2], [5, 7], [1, 1], [0, 0], [1, 1]),
    ] {
        for ceil_mode in [false, true] {
            cases.push(Pool {
                strides: strides.into(),
                dilations: dilations.into(),
                pads_begin: begin.into(),
                pads_end: end.into(),
                ceil_mode,
                ..Pool::new(f(&[1, 2, 9, 8]), &kernel)
            });
        }
    }
    cases
}

#[test]
fn max_pool_takes_the_largest_and_where_it_is() {
    for p in cases() {
        // Few values, so that several cells of a window are the largest.
        let x = Nd::integers(&p.x.shape, 3, -3, 3).map(|v| v - 5.0);
        let (shape, cells) = windows(&p);
        let best = |o: &[usize], column_major: bool| {
            let mut best = (f64::NEG_INFINITY, 0.0);
            let mut smallest = f64::INFINITY;
            for (_, at) in cells(o) {
                let Some(v) = x.get(&at) else { continue };
                let mut order: Vec<usize> = (0..at.len()).collect();
                if column_major {
                    order[2..].reverse();
                }
                let offset =
                    order.iter().fold(0.0, |sum, &a| sum * x.shape[a] as f64 + at[a] as f64);
                if v > best.0 || v == best.0 && offset < smallest {
                    best = (v, offset);
                    smallest = offset;
                }
            }
            best
        };
        let values = Nd::build(&shape, |o| best(o, false).0);
        for dtype in [DType::F32, DType::F16, DType::I8, DType::I32] {
            let q = Pool { x: Operand::new(&p.x.shape, dtype), ..p.clone() };
            check(max_pool(&q), &[x.tensor(dtype)], &[(&values, dtype)]);
        }
        for column_major in [false, true] {
            let positions = Nd::build(&shape, |o| best(o, column_major).1);
            let expected = [(&values, DType::F32), (&positions, DType::I64)];
            check(max_pool_with_indices(&p, column_major), &[x.f32()], &expected);
        }
    }
}

#[test]
fn padding_never_wins_over_the_lowest_values() {
    let x = Nd::build(&[1, 1, 3], |_| f64::NEG_INFINITY);
    let p = Pool {
        pads_begin: vec![1],
        pads_end: vec![1],
        ..Pool::new(Operand::f32(&[1, 1, 3]), &[2])
    };
    let at = Nd { shape: vec![1, 1, 4], data: vec![0.0, 0.0, 1.0, 2.0] };
    let low = Nd::build(&[1, 1, 4], |_| f64::NEG_INFINITY);
    let expected = [(&low, DType::F32), (&at, DType::I64)];
    check(max_pool_with_indices(&p, false), &[x.f32()], &expected);
    let x = Nd { shape: vec![1, 1, 3], data: vec![1.0, f64::NAN, 0.0] };
    let best = Nd { shape: vec![1, 1, 4], data: vec![1.0, f64::NAN, f64::NAN, 0.0] };
    let at = Nd { shape: vec![1, 1, 4], data: vec![0.0, 1.0, 1.0, 2.0] };
    let expected = [(&best, DType::F32), (&at, DType::I64)];
    check(max_pool_with_indices(&p, false), &[x.f32()], &expected);
}

#[test]
fn average_pool_counts_the_cells_it_should() {
    for p in cases() {
        let x = Nd::random(&p.x.shape, 3);
        let (shape, cells) = windows(&p);
        for include in [false, true] {
            let expected = Nd::build(&shape, |o| {
                let values: Vec<Option<f64>> = cells(o)
                    .iter()
                    .filter(|(inside, _)| *inside)
                    .map(|(_, at)| x.get(at).or(include.then_some(0.0)))
                    .collect();
                let counted: Vec<f64> = values.into_iter().flatten().collect();
                counted.iter().sum::<f64>() / counted.len() as f64
            });
            for dtype in [DType::F32, DType::F16] {
                let q = Pool { x: Operand::new(&p.x.shape, dtype), ..p.clone() };
                check(average_pool(&q, include), &[x.tensor(dtype)], &[(&expected, dtype)]);
            }
        }
    }
}

#[test]
fn lp_pool_takes_norms() {
    for p in cases() {
        let x = Nd::random(&p.x.shape, 3);
        let (shape, cells) = windows(&p);
        for norm in 1..=3 {
            let expected = Nd::build(&shape, |o| {
                let values = cells(o).into_iter().filter_map(|(_, at)| x.get(&at));
                values.map(|v| v.abs().powi(norm)).sum::<f64>().powf(1.0 / f64::from(norm))
            });
            check_f32(lp_pool(&p, norm as u32), &[x.f32()], &expected);
        }
    }
}

#[test]
fn global_pools_take_all() {
    for shape in [vec![2, 3, 5], vec![2, 3, 5, 4], vec![2, 3]] {
        let x = Nd::random(&shape, 1);
        let count: usize = shape[2..].iter().product();
        let mut kept = shape.clone();
        kept[2..].fill(1);
        let all = |o: &[usize]| {
            let start = (o[0] * shape[1] + o[1]) * count;
            x.data[start..start + count].to_vec()
        };
        let op = Operand::f32(&shape);
        let max = Nd::build(&kept, |o| all(o).into_iter().fold(f64::NEG_INFINITY, f64::max));
        check_f32(global_max_pool(&op), &[x.f32()], &max);
        let mean = Nd::build(&kept, |o| all(o).iter().sum::<f64>() / count as f64);
        check_f32(global_average_pool(&op), &[x.f32()], &mean);
        let f16 = Operand::new(&shape, DType::F16);
        check(global_average_pool(&f16), &[x.tensor(DType::F16)], &[(&mean, DType::F16)]);
        let norm = Nd::build(&kept, |o| all(o).iter().map(|v| v * v).sum::<f64>().sqrt());
        check_f32(global_lp_pool(&op, 2), &[x.f32()], &norm);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = Operand::f32;
    let p = Pool::new(f(&[1, 2, 4]), &[3]);
    let ints = Pool::new(Operand::new(&[1, 2, 4], DType::I32), &[3]);
    let messages = [
        refused(max_pool(&Pool::new(f(&[4]), &[]))),
        refused(max_pool(&Pool::new(f(&[1, 2, 4]), &[5]))),
        refused(max_pool(&Pool { strides: vec![2], ..Pool::new(f(&[1, 2, 4]), &[6]) })),
        refused(max_pool(&Pool::new(f(&[1, 2, 4]), &[0]))),
        refused(max_pool(&Pool::new(f(&[1, 2, 4]), &[2, 2]))),
        refused(max_pool(&Pool { pads_end: vec![3], ..p.clone() })),
        refused(max_pool(&Pool::new(Operand::new(&[1, 2, 4], DType::BOOL), &[2]))),
        refused(average_pool(&ints, false)),
        refused(lp_pool(&ints, 2)),
        refused(lp_pool(&p, 0)),
        refused(global_max_pool(&f(&[3]))),
        refused(global_average_pool(&ints.x)),
        refused(global_lp_pool(&f(&[3]), 2)),
    ];
    expect_test::expect![[r#"
        input: max_pool: float32[4] must be [N, C, D1, ...]
        input: max_pool: a window of 5 cells, 1 apart, does not fit into 4 cells of spatial axis 0
        input: max_pool: a window of 6 cells, 1 apart, does not fit into 4 cells of spatial axis 0
        input: max_pool: zero among the kernel extents
        input: max_pool: 2 kernel extents for 1 spatial axes
        unsupported: max_pool: padding of 3 cells for a window that spans 3
        unsupported: max_pool: bool is not supported
        unsupported: average_pool: int32 is not supported
        unsupported: lp_pool: int32 is not supported
        unsupported: lp_pool: there is no 0-norm
        input: global_max_pool: float32[3] must be [N, C, D1, ...]
        unsupported: global_average_pool: int32 is not supported
        input: global_lp_pool: float32[3] must be [N, C, D1, ...]
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
