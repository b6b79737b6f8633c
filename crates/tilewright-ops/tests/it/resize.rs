use tilewright_ir::{DType, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::resize::{Coordinates, Interpolation, Nearest, Resize, resize};

use crate::nd::{Extent, Nd, check, refused};

const COORDINATES: [Coordinates; 6] = [
    Coordinates::HalfPixel,
    Coordinates::HalfPixelSymmetric,
    Coordinates::PytorchHalfPixel,
    Coordinates::AlignCorners,
    Coordinates::Asymmetric,
    Coordinates::Middle,
];

fn coordinate(p: &Resize, a: usize, o: usize) -> f64 {
    let (o, scale) = (o as f64, p.scales[a]);
    let (extent, size) = (p.x.shape[a].count() as f64, p.sizes[a].count() as f64);
    let half = (o + 0.5) / scale - 0.5;
    match p.coordinates {
        Coordinates::HalfPixel => half,
        Coordinates::HalfPixelSymmetric => {
            let adjustment = size / (scale * extent);
            extent / 2.0 * (1.0 - adjustment) + half
        }
        Coordinates::PytorchHalfPixel if size == 1.0 => 0.0,
        Coordinates::PytorchHalfPixel => half,
        Coordinates::AlignCorners if size == 1.0 => 0.0,
        Coordinates::AlignCorners => o * (extent - 1.0) / (scale * extent - 1.0),
        Coordinates::Asymmetric => o / scale,
        Coordinates::Middle => (o + 0.5) / scale,
    }
}

/// The same in `float32`, which decides what is nearest.
fn narrow(p: &Resize, a: usize, o: usize) -> f32 {
    let (o, scale) = (o as f32, p.scales[a] as f32);
    let (extent, size) = (p.x.shape[a].count() as f32, p.sizes[a].count() as f32);
    let half = (o + 0.5) / scale - 0.5;
    match p.coordinates {
        Coordinates::HalfPixel => half,
        Coordinates::HalfPixelSymmetric => {
            let adjustment = size / (scale * extent);
            extent / 2.0 * (1.0 - adjustment) + half
        }
        Coordinates::PytorchHalfPixel | Coordinates::AlignCorners if size == 1.0 => 0.0,
        Coordinates::PytorchHalfPixel => half,
        Coordinates::AlignCorners => o * (extent - 1.0) / (scale * extent - 1.0),
        Coordinates::Asymmetric => o / scale,
        Coordinates::Middle => (o + 0.5) / scale,
    }
}

/// Weights of the elements along an axis for a coordinate: the whole sum, with no tables or taps.
fn weights(p: &Resize, a: usize, x: f64) -> Vec<f64> {
    let extent = p.x.shape[a].count() as i64;
    let mut weights = vec![0.0; extent as usize];
    let squeeze = if p.antialias { p.scales[a].min(1.0) } else { 1.0 };
    let filter = |d: f64| {
        let d = (d * squeeze).abs();
        match p.mode {
            Interpolation::Linear => (1.0 - d).max(0.0),
            Interpolation::Cubic(c) if d <= 1.0 => {
                (c + 2.0) * d.powi(3) - (c + 3.0) * d.powi(2) + 1.0
            }
            Interpolation::Cubic(c) if d < 2.0 => {
                c * d.powi(3) - 5.0 * c * d.powi(2) + 8.0 * c * d - 4.0 * c
            }
            _ => 0.0,
        }
    };
    // Far enough on both sides for every filter here.
    for k in -40..extent + 40 {
        let weight = match p.mode {
            Interpolation::Nearest(n) => {
                let at = match n {
                    Nearest::Floor => x.floor(),
                    Nearest::Ceil => x.ceil(),
                    Nearest::RoundPreferFloor if (x - x.floor() - 0.5).abs() < 1e-6 => x.floor(),
                    Nearest::RoundPreferCeil if (x - x.floor() - 0.5).abs() < 1e-6 => x.ceil(),
                    _ => x.round(),
                };
                f64::from(k as f64 == at)
            }
            _ => filter(k as f64 - x),
        };
        if (0..extent).contains(&k) || !p.exclude_outside {
            weights[k.clamp(0, extent - 1) as usize] += weight;
        }
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

fn reference(p: &Resize, x: &Nd) -> Nd {
    let mut value = x.clone();
    for a in 0..p.sizes.len() {
        // What is not scaled stays as it is, whatever the coordinates are.
        if p.scales[a] == 1.0 && p.sizes[a] == p.x.shape[a] {
            continue;
        }
        let mut shape = value.shape.clone();
        shape[a] = p.sizes[a].count();
        value = Nd::build(&shape, |i| {
            let element = |(k, w): (usize, &f64)| {
                let mut at = i.to_vec();
                at[a] = k;
                w * value.at(&at)
            };
            let x = match p.mode {
                Interpolation::Nearest(_) => narrow(p, a, i[a]).into(),
                _ => coordinate(p, a, i[a]),
            };
            weights(p, a, x).iter().enumerate().map(element).sum()
        });
    }
    value
}

/// Checks a resize, and gives the number of its tables.
#[track_caller]
fn checked(p: &Resize, dtype: DType) -> usize {
    let x = Nd::random(&p.x.shape, 1);
    let expected = reference(p, &x);
    let p = Resize { x: Operand::new(&p.x.shape, dtype), ..p.clone() };
    let (func, tables) = resize(&p).unwrap_or_else(|e| panic!("{}", e.render()));
    let count = tables.len();
    let inputs: Vec<Tensor> = [x.tensor(dtype)].into_iter().chain(tables).collect();
    check(Ok(func), &inputs, &[(&expected, dtype)]);
    count
}

/// Extents before and after with scales, those that follow and those that are rounded.
fn sizes() -> Vec<Resize> {
    let mut all = Vec::new();
    for (from, to) in [([3, 4], [6, 8]), ([3, 4], [7, 5]), ([5, 6], [2, 3]), ([4, 7], [1, 1])] {
        all.push(Resize::new(Operand::f32(&[1, 2, from[0], from[1]]), &[1, 2, to[0], to[1]]));
    }
    for (from, scale) in [([4, 5], 0.6), ([3, 4], 1.3), ([2, 5], 2.5)] {
        let to = from.map(|d| (d as f64 * scale) as usize);
        let sizes = [1, 2, to[0], to[1]];
        let p = Resize::new(Operand::f32(&[1, 2, from[0], from[1]]), &sizes);
        all.push(Resize { scales: vec![1.0, 1.0, scale, scale], ..p });
    }
    all
}

#[test]
fn every_mode_at_every_coordinate() {
    for p in sizes() {
        for coordinates in COORDINATES {
            for nearest in
                [Nearest::RoundPreferFloor, Nearest::RoundPreferCeil, Nearest::Floor, Nearest::Ceil]
            {
                // Coordinates that `f64` does not hold have no one nearest neighbour.
                if coordinates == Coordinates::HalfPixelSymmetric && p.scales[2].fract() != 0.0 {
                    continue;
                }
                let mode = Interpolation::Nearest(nearest);
                checked(&Resize { mode, coordinates, ..p.clone() }, DType::F32);
            }
            for mode in
                [Interpolation::Linear, Interpolation::Cubic(-0.75), Interpolation::Cubic(-0.5)]
            {
                for antialias in [false, true] {
                    for exclude_outside in [false, true] {
                        let p =
                            Resize { mode, coordinates, antialias, exclude_outside, ..p.clone() };
                        checked(&p, DType::F32);
                    }
                }
            }
        }
    }
}

#[test]
fn integers_are_interpolated_as_floats_and_truncated() {
    // By hand: 12.5, 17.5, 77.5 and 192.5 lie between.
    for (dtype, from, to) in [
        (DType::U8, &[10.0, 20.0, 250.0][..], &[10.0, 12.0, 17.0, 77.0, 192.0, 250.0][..]),
        (DType::I8, &[-10.0, -20.0], &[-10.0, -12.0, -17.0, -20.0]),
        (DType::I32, &[-10.0, -20.0], &[-10.0, -12.0, -17.0, -20.0]),
    ] {
        let p = Resize::new(Operand::new(&[from.len()], dtype), &[to.len()]);
        let p = Resize { mode: Interpolation::Linear, ..p };
        let (func, tables) = resize(&p).unwrap_or_else(|e| panic!("{}", e.render()));
        let x = Nd::build(&[from.len()], |i| from[i[0]]).tensor(dtype);
        let inputs: Vec<Tensor> = [x].into_iter().chain(tables).collect();
        let expected = Nd::build(&[to.len()], |i| to[i[0]]);
        check(Ok(func), &inputs, &[(&expected, dtype)]);
    }
}

#[test]
fn nearest_neighbours_are_found_in_float32() {
    // By hand: 0.6 is a little more in `float32`, and the quotient is rounded to what is meant.
    let picked = |extent: usize, scale: f64, mode: Nearest| {
        let size = (extent as f32 * scale as f32) as usize;
        let p = Resize::new(Operand::f32(&[extent]), &[size]);
        let mode = Interpolation::Nearest(mode);
        let coordinates = Coordinates::Asymmetric;
        let scales = vec![f64::from(scale as f32)];
        let (func, tables) = resize(&Resize { scales, mode, coordinates, ..p }).expect("fits");
        let x = Nd::build(&[extent], |i| i[0] as f64);
        let inputs: Vec<Tensor> = [x.f32()].into_iter().chain(tables).collect();
        let results = crate::nd::run(Ok(func), &inputs);
        (0..size).map(|k| results[0].get_f64(k) as usize).collect::<Vec<_>>()
    };
    assert_eq!(picked(25, 0.6, Nearest::Floor)[12], 20);
    assert_eq!(picked(25, 0.6, Nearest::Ceil)[12], 20);
    // 9 / 1.2 is the middle between two but for its last bit.
    assert_eq!(picked(20, 1.2, Nearest::RoundPreferCeil)[9], 8);
    assert_eq!(picked(20, 1.2, Nearest::RoundPreferFloor)[9], 7);
    assert_eq!(picked(20, 1.2, Nearest::RoundPreferCeil)[10], 8);
}

#[test]
fn taps_without_weight_leave_nan_where_it_is() {
    // Shrunk by a filter that is widened to 1 / 0.7: cell `o` weighs what is nearer than that to its place.
    let (extent, size, scale, nan) = (20, 14, 0.7, 9);
    let p = Resize::new(Operand::f32(&[extent]), &[size]);
    let mode = Interpolation::Linear;
    let p = Resize { mode, scales: vec![scale], antialias: true, ..p };
    let (func, tables) = resize(&p).expect("fits");
    let x = Nd::build(&[extent], |i| if i[0] == nan { f64::NAN } else { i[0] as f64 });
    let inputs: Vec<Tensor> = [x.f32()].into_iter().chain(tables).collect();
    let results = crate::nd::run(Ok(func), &inputs);
    for o in 0..size {
        let place = (o as f64 + 0.5) / scale - 0.5;
        let near = (place - nan as f64).abs() * scale < 1.0;
        assert_eq!(results[0].get_f64(o).is_nan(), near, "cell {o}");
    }
}

#[test]
fn types_and_unchanged_axes() {
    let p = &sizes()[1];
    for dtype in [DType::F16, DType::F64] {
        checked(&Resize { mode: Interpolation::Linear, ..p.clone() }, dtype);
        checked(p, dtype);
    }
    let same = Resize::new(Operand::f32(&[2, 3]), &[2, 3]);
    assert_eq!(checked(&same, DType::F32), 0);
    assert_eq!(checked(&Resize { mode: Interpolation::Linear, ..same }, DType::F32), 0);
    let x = Nd::integers(&[1, 3], 1, 0, 99);
    let p = Resize::new(Operand::new(&[1, 3], DType::U8), &[1, 7]);
    let (func, tables) = resize(&p).unwrap();
    let expected = reference(&p, &x);
    let inputs: Vec<Tensor> = [x.tensor(DType::U8)].into_iter().chain(tables).collect();
    check(Ok(func), &inputs, &[(&expected, DType::U8)]);
}

#[test]
fn common_nearest_neighbours_need_no_tables() {
    for coordinates in COORDINATES {
        for (from, to) in [(5, 10), (5, 15), (8, 4), (6, 4), (4, 6), (5, 3), (7, 7)] {
            let p = Resize::new(Operand::f32(&[from]), &[to]);
            assert_eq!(checked(&Resize { coordinates, ..p }, DType::F32), 0, "{from} to {to}");
        }
    }
    // Linear interpolation that meets elements only.
    let p = Resize::new(Operand::f32(&[9]), &[5]);
    let p = Resize { mode: Interpolation::Linear, coordinates: Coordinates::AlignCorners, ..p };
    assert_eq!(checked(&p, DType::F32), 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let p = Resize::new(Operand::f32(&[4]), &[6]);
    let of = |p: Resize| refused(resize(&p).map(|r| r.0));
    let messages = [
        of(Resize { sizes: vec![6.into(), 1.into()], ..p.clone() }),
        of(Resize { scales: vec![0.0], ..p.clone() }),
        of(Resize { scales: vec![f64::NAN], ..p.clone() }),
        of(Resize {
            scales: vec![1e-320],
            coordinates: Coordinates::HalfPixelSymmetric,
            ..p.clone()
        }),
        of(Resize { x: Operand::f32(&[0]), ..p.clone() }),
        of(Resize { sizes: vec![(1 << 40).into()], ..p.clone() }),
        of(Resize {
            scales: vec![1e-30],
            antialias: true,
            mode: Interpolation::Linear,
            ..p.clone()
        }),
        of(Resize {
            x: Operand::new(&[4], DType::I32),
            mode: Interpolation::Cubic(-0.75),
            ..p.clone()
        }),
    ];
    expect_test::expect![[r#"
        input: resize: 2 sizes and 1 scales for float32[4]
        input: resize: axis 0: the scale is 0
        input: resize: axis 0: the scale is NaN
        input: resize: axis 0: the scale 1e-320 leads nowhere
        input: resize: axis 0: there is nothing to make 6 cells from
        input: resize: axis 0: a resize from 4 to 1099511627776 needs too large a table
        input: resize: axis 0: a resize from 4 to 6 needs too large a table
        unsupported: resize: int32 is not supported
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
