use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::matrix::det;
use tilewright_ops::pool::{Blocks, unite_blocks};
use tilewright_ops::reduce::cumprod;
use tilewright_ops::regions::{RoiAlign, max_roi_pool, roi_align};
use tilewright_ops::sample::{DeformConv, GridSample, Outside, Sampling, deform_conv, grid_sample};

use crate::nd::{Nd, check, check_f32, refused};

/// There and back between two ends, one way after the other.
fn mirror(x: f64, low: f64, high: f64) -> f64 {
    let mut x = x;
    if low == high {
        return low;
    }
    while x < low || x > high {
        x = if x < low { 2.0 * low - x } else { 2.0 * high - x };
    }
    x
}

/// A cell of an image of two axes, as what lies outside says.
fn cell(x: &Nd, lead: [usize; 2], at: [i64; 2], outside: Outside, edges: [(f64, f64); 2]) -> f64 {
    let mut index = [lead[0] as i64, lead[1] as i64, at[0], at[1]];
    for a in 0..2 {
        let last = x.shape[2 + a] as i64 - 1;
        match outside {
            Outside::Zeros => {}
            Outside::Border => index[2 + a] = at[a].clamp(0, last),
            Outside::Reflection => {
                let turned = mirror(at[a] as f64, edges[a].0, edges[a].1);
                index[2 + a] = (turned as i64).clamp(0, last);
            }
        }
    }
    x.get(&index).unwrap_or(0.0)
}

fn cubic(s: f64) -> f64 {
    let (a, s) = (-0.75, s.abs());
    match s {
        _ if s <= 1.0 => (a + 2.0) * s.powi(3) - (a + 3.0) * s.powi(2) + 1.0,
        _ if s < 2.0 => a * s.powi(3) - 5.0 * a * s.powi(2) + 8.0 * a * s - 4.0 * a,
        _ => 0.0,
    }
}

#[test]
fn grids_are_looked_up() {
    let (x, grid) = (Nd::random(&[2, 3, 4, 5], 1), Nd::random(&[2, 3, 4, 2], 2));
    // Far outside too.
    let mut grid = grid.map(|v| v / 2.0 + 0.03);
    // And nowhere.
    for (at, v) in [(3, f64::NAN), (10, f64::INFINITY), (17, -1e30), (30, f64::NEG_INFINITY)] {
        grid.data[at] = v;
    }
    for mode in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
        for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
            for align_corners in [false, true] {
                let expected = Nd::build(&[2, 3, 3, 4], |i| {
                    let (mut at, mut edges) = ([0.0; 2], [(0.0, 0.0); 2]);
                    for a in 0..2 {
                        let d = x.shape[2 + a] as f64;
                        let g = grid.at(&[i[0], i[2], i[3], 1 - a]);
                        at[a] = if align_corners {
                            (g + 1.0) / 2.0 * (d - 1.0)
                        } else {
                            ((g + 1.0) * d - 1.0) / 2.0
                        };
                        edges[a] = if align_corners { (0.0, d - 1.0) } else { (-0.5, d - 0.5) };
                        if !at[a].is_finite() || at[a].abs() > 1e20 {
                            at[a] = edges[a].0;
                        }
                        at[a] = match outside {
                            Outside::Zeros | Outside::Border => at[a],
                            Outside::Reflection => mirror(at[a], edges[a].0, edges[a].1),
                        };
                    }
                    let value = |y: i64, z: i64| cell(&x, [i[0], i[1]], [y, z], outside, edges);
                    let weight = |d: f64| match mode {
                        Sampling::Cubic => cubic(d),
                        _ => (1.0 - d.abs()).max(0.0),
                    };
                    if mode == Sampling::Nearest {
                        let [y, z] = at.map(|v| v.round_ties_even() as i64);
                        return value(y, z);
                    }
                    let low = at.map(|v| v.floor() as i64);
                    let mut sum = 0.0;
                    for y in low[0] - 1..low[0] + 3 {
                        for z in low[1] - 1..low[1] + 3 {
                            let w = weight(at[0] - y as f64) * weight(at[1] - z as f64);
                            sum += if w == 0.0 { 0.0 } else { w * value(y, z) };
                        }
                    }
                    sum
                });
                let p = GridSample {
                    x: Operand::new(&x.shape, DType::F64),
                    grid: Operand::new(&grid.shape, DType::F64),
                    mode,
                    outside,
                    align_corners,
                };
                let inputs = [x.tensor(DType::F64), grid.tensor(DType::F64)];
                check(grid_sample(&p), &inputs, &[(&expected, DType::F64)]);
            }
        }
    }
}

#[test]
fn windows_are_deformed() {
    let x = Nd::random(&[2, 4, 5, 6], 1);
    let w = Nd::random(&[6, 2, 2, 3], 2);
    let (out, kernel) = ([3, 2], [2, 3]);
    let offset = Nd::random(&[2, 2 * 6 * 2, 3, 2], 3).map(|v| v / 3.0);
    let (bias, mask) = (Nd::random(&[6], 4), Nd::random(&[2, 2 * 6, 3, 2], 5));
    for with in [false, true] {
        let expected = Nd::build(&[2, 6, 3, 2], |i| {
            let mut sum = if with { bias.at(&[i[1]]) } else { 0.0 };
            for c in 0..2 {
                for (k0, k1) in (0..6).map(|k| (k / 3, k % 3)) {
                    let channel = i[1] / 3 * 2 + c;
                    let cells = channel / 2 * 6 + k0 * 3 + k1;
                    let by = |a| offset.at(&[i[0], cells * 2 + a, i[2], i[3]]);
                    let y = (i[2] * 2 + k0) as f64 - 1.0 + by(0);
                    let z = (i[3] * 2 + k1 * 2) as f64 - 1.0 + by(1);
                    let mut value = 0.0;
                    for dy in 0..2 {
                        for dz in 0..2 {
                            let at = [y.floor() as i64 + dy, z.floor() as i64 + dz];
                            let near = |v: f64, c: i64| 1.0 - (v - c as f64).abs();
                            let index = [i[0] as i64, channel as i64, at[0], at[1]];
                            value += near(y, at[0]) * near(z, at[1]) * x.get(&index).unwrap_or(0.0);
                        }
                    }
                    let m = if with { mask.at(&[i[0], cells, i[2], i[3]]) } else { 1.0 };
                    sum += value * m * w.at(&[i[1], c, k0, k1]);
                }
            }
            sum
        });
        let p = DeformConv {
            x: Operand::new(&x.shape, DType::F64),
            w: Operand::new(&w.shape, DType::F64),
            offset: Operand::new(&offset.shape, DType::F64),
            bias: with,
            mask: with,
            strides: vec![2, 2],
            dilations: vec![1, 2],
            pads: vec![1, 1],
            groups: 2,
            offset_groups: 2,
        };
        assert_eq!((out, kernel), ([3, 2], [2, 3]));
        let mut inputs =
            vec![x.tensor(DType::F64), w.tensor(DType::F64), offset.tensor(DType::F64)];
        if with {
            inputs.extend([bias.tensor(DType::F64), mask.tensor(DType::F64)]);
        }
        check(deform_conv(&p), &inputs, &[(&expected, DType::F64)]);
    }
}

/// A value between cells; zero far outside.
fn between(x: &Nd, lead: [usize; 2], at: [f64; 2], max: bool) -> f64 {
    let extents = [x.shape[2], x.shape[3]];
    if (0..2).any(|a| at[a] < -1.0 || at[a] > extents[a] as f64) {
        return 0.0;
    }
    let mut taps = Vec::new();
    let axis = |a: usize| {
        let last = extents[a] - 1;
        let v = at[a].clamp(0.0, last as f64);
        let low = v.floor() as usize;
        [(low, 1.0 - v.fract()), ((low + 1).min(last), v.fract())]
    };
    for (y, wy) in axis(0) {
        for (z, wz) in axis(1) {
            taps.push(wy * wz * x.at(&[lead[0], lead[1], y, z]));
        }
    }
    if max { taps.into_iter().fold(f64::NEG_INFINITY, f64::max) } else { taps.into_iter().sum() }
}

#[test]
fn regions_are_divided_into_bins() {
    let x = Nd::random(&[2, 2, 6, 7], 1);
    let regions = Nd {
        shape: vec![4, 4],
        data: [
            [0.0, 0.0, 6.0, 5.0],
            [1.5, 2.0, 9.0, 3.0],
            [4.0, 1.0, 4.0, 1.0],
            [-3.0, -3.0, 2.0, 9.0],
        ]
        .concat(),
    };
    let examples = Nd { shape: vec![4], data: vec![0.0, 1.0, 1.0, 0.0] };
    for samples in [0, 2] {
        for half_pixel in [false, true] {
            for max in [false, true] {
                let expected = Nd::build(&[4, 2, 2, 3], |i| {
                    let corner = |k: usize| {
                        regions.at(&[i[0], k]) * 0.75 - if half_pixel { 0.5 } else { 0.0 }
                    };
                    let start = [corner(1), corner(0)];
                    let mut extent = [corner(3) - corner(1), corner(2) - corner(0)];
                    if !half_pixel {
                        extent = extent.map(|v| v.max(1.0));
                    }
                    let bin = [extent[0] / 2.0, extent[1] / 3.0];
                    let counts = bin.map(|v| if samples > 0 { samples } else { v.ceil() as usize });
                    let mut found = Vec::new();
                    for sy in 0..counts[0] {
                        for sz in 0..counts[1] {
                            let place = |a: usize, s: usize| {
                                let part = (s as f64 + 0.5) / counts[a] as f64;
                                start[a] + (i[2 + a] as f64 + part) * bin[a]
                            };
                            let example = examples.at(&[i[0]]) as usize;
                            let at = [place(0, sy), place(1, sz)];
                            found.push(between(&x, [example, i[1]], at, max));
                        }
                    }
                    match (max, found.is_empty()) {
                        (_, true) => 0.0,
                        (true, _) => found.into_iter().fold(f64::NEG_INFINITY, f64::max),
                        (false, _) => {
                            let count = found.len() as f64;
                            found.into_iter().sum::<f64>() / count
                        }
                    }
                });
                let p = RoiAlign {
                    x: Operand::new(&x.shape, DType::F64),
                    regions: Operand::new(&[4, 4], DType::F64),
                    examples: Operand::new(&[4], DType::I64),
                    bins: [2, 3],
                    samples,
                    scale: 0.75,
                    half_pixel,
                    max,
                };
                let inputs =
                    [x.tensor(DType::F64), regions.tensor(DType::F64), examples.tensor(DType::I64)];
                check(roi_align(&p), &inputs, &[(&expected, DType::F64)]);
            }
        }
    }
}

#[test]
fn regions_have_a_largest_element() {
    let x = Nd::random(&[2, 2, 6, 7], 1);
    let data = [[0.0, 0.0, 0.0, 6.0, 5.0], [1.0, 2.0, 1.0, 3.0, 20.0], [1.0, 9.0, 9.0, 12.0, 12.0]];
    let regions = Nd { shape: vec![3, 5], data: data.concat() };
    let expected = Nd::build(&[3, 2, 2, 3], |i| {
        let corner = |k: usize| (regions.at(&[i[0], k]) * 0.5 + 0.5).floor();
        let mut best = f64::NEG_INFINITY;
        let bounds = |a: usize| {
            let (start, end) = (corner(2 - a), corner(4 - a));
            let bin = (end - start + 1.0).max(1.0) / [2.0, 3.0][a];
            let at = i[2 + a] as f64;
            let clamp = |v: f64| v.clamp(0.0, x.shape[2 + a] as f64) as usize;
            clamp((at * bin).floor() + start)..clamp(((at + 1.0) * bin).ceil() + start)
        };
        for y in bounds(0) {
            for z in bounds(1) {
                best = best.max(x.at(&[data[i[0]][0] as usize, i[1], y, z]));
            }
        }
        if best == f64::NEG_INFINITY { 0.0 } else { best }
    });
    let func = max_roi_pool(&Operand::f32(&x.shape), &Operand::f32(&[3, 5]), [2, 3], 0.5);
    check_f32(func, &[x.f32(), regions.f32()], &expected);
}

#[test]
fn blocks_are_added_up() {
    let (image, block) = ([5usize, 6usize], [2usize, 3usize]);
    let (strides, dilations, begin, end) = ([2, 1], [2, 1], [1, 0], [0, 2]);
    let count = |a: usize| {
        (image[a] + begin[a] + end[a] - (dilations[a] * (block[a] - 1) + 1)) / strides[a] + 1
    };
    let blocks = [count(0), count(1)];
    let x = Nd::random(&[2, 3 * 6, blocks[0] * blocks[1]], 1);
    let mut expected = Nd::build(&[2, 3, 5, 6], |_| 0.0);
    for n in 0..2 {
        for row in 0..18 {
            for l in 0..blocks[0] * blocks[1] {
                let (c, k) = (row / 6, [row % 6 / 3, row % 3]);
                let b = [l / blocks[1], l % blocks[1]];
                let at = |a: usize| (b[a] * strides[a] + k[a] * dilations[a]).checked_sub(begin[a]);
                if let (Some(y), Some(z)) = (at(0), at(1))
                    && y < 5
                    && z < 6
                {
                    let old = expected.at(&[n, c, y, z]);
                    expected.set(&[n, c, y, z], old + x.at(&[n, row, l]));
                }
            }
        }
    }
    let p = Blocks {
        x: Operand::f32(&x.shape),
        image: image.iter().map(|n| (*n).into()).collect(),
        block: block.to_vec(),
        strides: strides.to_vec(),
        dilations: dilations.to_vec(),
        pads_begin: begin.to_vec(),
        pads_end: end.to_vec(),
    };
    check_f32(unite_blocks(&p), &[x.f32()], &expected);
}

#[test]
fn determinants() {
    // The sum over all permutations, by the first row.
    fn expanded(m: &[Vec<f64>]) -> f64 {
        if m.is_empty() {
            return 1.0;
        }
        let rest = |skip: usize| -> Vec<Vec<f64>> {
            let row = |r: &Vec<f64>| {
                r.iter().enumerate().filter(|(j, _)| *j != skip).map(|(_, v)| *v).collect()
            };
            m[1..].iter().map(row).collect()
        };
        let sign = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..m.len()).map(|j| sign(j) * m[0][j] * expanded(&rest(j))).sum()
    }
    for n in [1, 2, 3, 5] {
        // Zeros ask for other pivots, and make some matrices singular.
        let x = Nd::integers(&[6, n, n], n as u64, -2, 2);
        let expected = Nd::build(&[6], |i| {
            let row = |r: usize| (0..n).map(|j| x.at(&[i[0], r, j])).collect();
            expanded(&(0..n).map(row).collect::<Vec<_>>())
        });
        let func = det(&Operand::new(&x.shape, DType::F64));
        check(func, &[x.tensor(DType::F64)], &[(&expected, DType::F64)]);
    }
}

#[test]
fn running_products() {
    let x = Nd::random(&[2, 4, 3], 1);
    for exclusive in [false, true] {
        for reverse in [false, true] {
            let expected = Nd::build(&x.shape, |i| {
                let counts = |k: &usize| {
                    if reverse {
                        *k > i[1] || (*k == i[1] && !exclusive)
                    } else {
                        *k < i[1] || (*k == i[1] && !exclusive)
                    }
                };
                (0..4).filter(counts).map(|k| x.at(&[i[0], k, i[2]])).product()
            });
            let func = cumprod(&Operand::f32(&x.shape), 1, exclusive, reverse);
            check_f32(func, &[x.f32()], &expected);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = |shape: &[usize]| Operand::f32(shape);
    let grid = |x: &[usize], grid: &[usize]| GridSample {
        x: f(x),
        grid: f(grid),
        mode: Sampling::Linear,
        outside: Outside::Zeros,
        align_corners: false,
    };
    let mut integral = grid(&[1, 1, 2, 2], &[1, 2, 2, 2]);
    integral.grid.dtype = DType::I32;
    let messages = [
        refused(grid_sample(&grid(&[1, 1, 2, 2], &[1, 2, 2, 3]))),
        refused(grid_sample(&grid(&[1, 1, 2, 2], &[2, 2, 2, 2]))),
        refused(grid_sample(&grid(&[1, 1, 0, 2], &[1, 2, 2, 2]))),
        refused(grid_sample(&integral)),
        refused(max_roi_pool(&f(&[1, 1, 2, 2]), &f(&[1, 4]), [1, 1], 1.0)),
        refused(det(&f(&[2, 3]))),
        refused(det(&f(&[3]))),
        refused(det(&Operand::new(&[2, 2], DType::I32))),
    ];
    expect_test::expect![[r#"
        input: grid_sample: the grid float32[1, 2, 2, 3] does not fit float32[1, 1, 2, 2]
        input: grid_sample: the grid float32[2, 2, 2, 2] does not fit float32[1, 1, 2, 2]
        input: grid_sample: the grid float32[1, 2, 2, 2] does not fit float32[1, 1, 0, 2]
        unsupported: grid_sample: int32 is not supported
        input: max_roi_pool: float32[1, 1, 2, 2] and float32[1, 4] do not fit
        input: det: float32[2, 3] has matrices that are not square
        input: det: float32[3] has no matrices
        unsupported: det: int32 is not supported
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
