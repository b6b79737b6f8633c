//! Values between the cells of an image: grids of positions, and convolutions that look elsewhere.
//!
//! Along each axis a position meets a few cells, its *taps*: the nearest one, the two around it, or
//! four for a cubic. Which cells and with what weight depends on the position alone, so tables of both
//! are computed first, once for all channels. A value is then a sum over the taps of all axes: the
//! product of the weights times the element. A cell outside that counts as zero has the number -1 in
//! the table.

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc};

use crate::operand::{
    Operand, call, float_size, int, require_float, require_number, rounded, unequal, working,
};
use crate::te::{self, Axis, Reducer, Tensor};

/// How a value between cells is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// The nearest cell; halves go to the even one.
    Nearest,
    /// Straight lines.
    Linear,
    /// Keys' cubic kernel with the constant -0.75.
    Cubic,
}

/// What lies outside of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    Zeros,
    /// The cell at the border.
    Border,
    /// The image again, mirrored.
    Reflection,
}

/// An image looked up at positions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GridSample {
    /// `[N, C, D1, D2, ...]`.
    pub x: Operand,
    /// `[N, O1, O2, ..., R]` for `R` spatial axes: positions between -1 and 1, the last axis first. One that is no
    /// number is -1.
    pub grid: Operand,
    /// How values are made.
    pub mode: Sampling,
    /// What lies outside.
    pub outside: Outside,
    /// Whether -1 and 1 are the centres of the first and last cell, and not their outer edges.
    pub align_corners: bool,
}

impl Sampling {
    fn taps(self) -> usize {
        match self {
            Sampling::Nearest => 1,
            Sampling::Linear => 2,
            Sampling::Cubic => 4,
        }
    }

    /// The weight of a tap whose cell is `t` steps behind the first one, for a position that is
    /// `fraction` behind the cell below it.
    fn weight(self, t: &Expr, fraction: Expr) -> Expr {
        let dtype = fraction.dtype();
        match self {
            Sampling::Nearest => Expr::float(1.0, dtype),
            Sampling::Linear => Expr::select(
                t.clone().equal(0),
                Expr::float(1.0, dtype) - &fraction,
                fraction.clone(),
            ),
            Sampling::Cubic => {
                let a = -0.75;
                let offset = t.clone().cast(dtype) - 1.0;
                let s = call(Intrin::Abs, fraction - offset);
                let near = (&s * (a + 2.0) - (a + 3.0)) * &s * &s + 1.0;
                let far = ((&s * a - 5.0 * a) * &s + 8.0 * a) * &s - 4.0 * a;
                Expr::select(s.less_equal(Expr::float(1.0, dtype)), near, far)
            }
        }
    }
}

/// The position mirrored into `low..=high`, as often as needed.
fn reflected(x: Expr, low: f64, high: Expr) -> Expr {
    let dtype = x.dtype();
    let range = high - low;
    let some = range.clone().greater(Expr::float(0.0, dtype));
    // The distance from the lower end, on a way there and back.
    let way = call(Intrin::Abs, x - low);
    let round = Expr::select(some.clone(), range * 2.0, Expr::float(1.0, dtype));
    let turns = call(Intrin::Floor, &way / &round);
    let rest = way - turns * &round;
    let back = round - &rest;
    Expr::select(some, rest.min(back) + low, Expr::float(low, dtype))
}

/// Cells and weights of the taps of positions along one axis.
struct Taps {
    cells: Tensor,
    weights: Tensor,
}

impl Taps {
    /// Of the positions that a tensor holds, counted in cells, along an axis of some extent.
    fn new(
        name: &str,
        position: &Tensor,
        extent: Dim,
        mode: Sampling,
        outside: Outside,
        edges: (f64, Expr),
    ) -> Taps {
        let shape = [position.shape(), &[Dim::from(mode.taps())]].concat();
        let behind = if mode == Sampling::Cubic { 1 } else { 0 };
        let last = (extent - 1).expr();
        let cells = te::compute(format!("{name}_cells"), &shape, |i| {
            let t = &i[position.rank()];
            match outside {
                Outside::Reflection => {
                    let cell = lower_cell(i, position, mode) + t.clone().cast(position.dtype())
                        - behind as f64;
                    let cell = reflected(cell, edges.0, edges.1.clone()).cast(DType::I32);
                    cell.max(0).min(last.clone())
                }
                Outside::Border => (lower_cell(i, position, mode).cast(DType::I32) + t - behind)
                    .max(0)
                    .min(last.clone()),
                Outside::Zeros => {
                    let cell = lower_cell(i, position, mode).cast(DType::I32) + t - behind;
                    let inside = cell.clone().less_equal(last.clone());
                    let inside = cell.clone().greater_equal(0).and(inside);
                    Expr::select(inside, cell, Expr::i32(-1))
                }
            }
        });
        let weights = te::compute(format!("{name}_weights"), &shape, |i| {
            let fraction = position.at(&i[..position.rank()]) - lower_cell(i, position, mode);
            mode.weight(&i[position.rank()], fraction)
        });
        Taps { cells, weights }
    }
}

fn lower_cell(i: &[Expr], position: &Tensor, mode: Sampling) -> Expr {
    let x = position.at(&i[..position.rank()]);
    let f = match mode {
        Sampling::Nearest => Intrin::NearbyInt,
        _ => Intrin::Floor,
    };
    call(f, x)
}

/// A position that no cell beyond the taps outside can tell from others, so that it fits an integer.
fn bounded(position: Expr, extent: Dim) -> Expr {
    let dtype = position.dtype();
    position.max(-4.0).min(float_size(extent + 4, dtype))
}

/// The element at the cells, or zero where one is outside.
fn element(x: &Tensor, lead: &[Expr], cells: &[Expr], work: DType) -> Expr {
    let inside = cells.iter().map(|c| c.clone().greater_equal(0));
    let inside = inside.fold(Expr::bool(true), Expr::and);
    let extents = &x.shape()[lead.len()..];
    let at = cells.iter().zip(extents).map(|(c, &d)| c.clone().max(0).min((d - 1).expr()));
    let value = x.at(lead.iter().cloned().chain(at)).cast(work);
    Expr::select(inside, value, Expr::constant(0.0, work))
}

/// The element at the taps of a position, times their weights.
fn weighted(
    x: &Tensor,
    lead: &[Expr],
    taps: &[Taps],
    over: &[Axis],
    position: &[Expr],
    work: DType,
) -> Expr {
    let cells: Vec<Expr> =
        taps.iter().zip(over).map(|(t, k)| tap_at(&t.cells, k, position)).collect();
    let value = element(x, lead, &cells, work);
    taps.iter().zip(over).fold(value, |v, (t, k)| v * tap_at(&t.weights, k, position).cast(work))
}

fn tap_at(t: &Tensor, k: &Axis, position: &[Expr]) -> Expr {
    t.at(position.iter().cloned().chain([k.expr()]))
}

/// See [`GridSample`]. Parameters: `x`, the grid, the result `[N, C, O1, O2, ...]`.
///
/// # Errors
/// [`Error::Input`] where shapes do not fit, [`Error::Unsupported`] for a grid that is not of
/// floating-point numbers.
pub fn grid_sample(p: &GridSample) -> Result<TensorFunc> {
    let name = "grid_sample";
    require_float(name, p.grid.dtype)?;
    if p.mode != Sampling::Nearest {
        require_number(name, p.x.dtype)?;
    }
    let ([n, c, extents @ ..], [gn, out @ .., columns]) = (&p.x.shape[..], &p.grid.shape[..])
    else {
        return Err(grid_misfit(name, p));
    };
    let r = extents.len();
    if gn != n || *columns != r || out.len() != r || r == 0 || extents.iter().any(|d| *d == 0) {
        return Err(unequal(grid_misfit(name, p), [(*n, *gn)]));
    }
    let (x, grid) = (p.x.placeholder("x"), p.grid.placeholder("grid"));
    let place = working(p.grid.dtype);
    let lead = [&[*n], out].concat();
    let taps: Vec<Taps> = (0..r)
        .map(|a| {
            let (d, last) = (float_size(extents[a], place), float_size(extents[a] - 1, place));
            let edges = if p.align_corners { (0.0, last.clone()) } else { (-0.5, d.clone() - 0.5) };
            let position = te::compute(format!("position_{a}"), &lead, |i| {
                let g = grid.at(i.iter().cloned().chain([int(r - 1 - a)]));
                let g = g.cast(place);
                let at = if p.align_corners {
                    (g + 1.0) * 0.5 * &last
                } else {
                    ((g + 1.0) * &d - 1.0) * 0.5
                };
                // What is no number, and what no integer of 64 bits comes near, is -1, as in ONNX Runtime.
                let is_near = call(Intrin::Abs, at.clone()).less(2f64.powi(63));
                let at = Expr::select(is_near, at, Expr::float(edges.0, place));
                match p.outside {
                    // The cells of the taps move to the border, not the position: a cubic has other
                    // weights there.
                    Outside::Zeros | Outside::Border => bounded(at, extents[a]),
                    Outside::Reflection => reflected(at, edges.0, edges.1.clone()),
                }
            });
            Taps::new(&format!("axis_{a}"), &position, extents[a], p.mode, p.outside, edges)
        })
        .collect();
    let shape = [&[*n, *c], out].concat();
    if p.mode == Sampling::Nearest {
        let result = te::compute(name, &shape, |i| {
            let at: Vec<Expr> = [&i[0]].into_iter().chain(&i[2..]).cloned().collect();
            let cells: Vec<Expr> =
                taps.iter().map(|t| t.cells.at(at.iter().cloned().chain([Expr::i32(0)]))).collect();
            element(&x, &i[..2], &cells, p.x.dtype)
        });
        return te::func([&x, &grid], [&result]);
    }
    // Integers are interpolated as floats, and truncated.
    let work = if p.x.dtype.is_float() { working(p.x.dtype) } else { place };
    let over: Vec<Axis> = (0..r).map(|a| te::reduce_axis(p.mode.taps(), format!("t{a}"))).collect();
    let acc = te::compute(format!("{name}_sum"), &shape, |i| {
        let at: Vec<Expr> = [&i[0]].into_iter().chain(&i[2..]).cloned().collect();
        te::reduce(Reducer::Sum, weighted(&x, &i[..2], &taps, &over, &at, work), &over)
    });
    te::func([&x, &grid], [&rounded(name, acc, p.x.dtype)])
}

fn grid_misfit(name: &str, p: &GridSample) -> Error {
    Error::input(format!("{name}: the grid {} does not fit {}", p.grid, p.x))
}

/// A convolution whose window reads each cell at an offset of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeformConv {
    /// `[N, C, D1, ...]`.
    pub x: Operand,
    /// `[M, C / groups, K1, ...]`.
    pub w: Operand,
    /// `[N, offset_groups * K1 * ... * R, O1, ...]` for `R` spatial axes.
    pub offset: Operand,
    /// Whether there is a bias `[M]`.
    pub bias: bool,
    /// Whether there is a factor for each cell, `[N, offset_groups * K1 * ..., O1, ...]`.
    pub mask: bool,
    /// Step of the window, one a spatial axis.
    pub strides: Vec<usize>,
    /// Distance of neighbours in the window.
    pub dilations: Vec<usize>,
    /// What lies before the start of each axis.
    pub pads: Vec<usize>,
    /// Number of groups of channels that do not see each other.
    pub groups: usize,
    /// Number of groups of channels with offsets of their own.
    pub offset_groups: usize,
}

/// See [`DeformConv`]. Parameters: `x`, `w`, the offsets, bias and mask if there are such, the result
/// `[N, M, O1, ...]`.
///
/// # Errors
/// [`Error::Input`] where shapes do not fit, [`Error::Unsupported`] for types that are no floats.
pub fn deform_conv(p: &DeformConv) -> Result<TensorFunc> {
    let name = "deform_conv";
    for x in [&p.x, &p.w, &p.offset] {
        require_float(name, x.dtype)?;
    }
    let ([n, c, extents @ ..], [m, icg, kernel @ ..], [on, oc, out @ ..]) =
        (&p.x.shape[..], &p.w.fixed(name)?[..], &p.offset.shape[..])
    else {
        return Err(offset_misfit(name, p));
    };
    let (c, oc) = (c.fixed(name)?, oc.fixed(name)?);
    let r = extents.len();
    let cells: usize = kernel.iter().product();
    let lists = [kernel.len(), out.len(), p.strides.len(), p.dilations.len(), p.pads.len()];
    let fits = p.groups > 0
        && p.offset_groups > 0
        && icg.checked_mul(p.groups) == Some(c)
        && m % p.groups == 0
        && c % p.offset_groups == 0
        && [cells, r].iter().try_fold(p.offset_groups, |n, d| n.checked_mul(*d)) == Some(oc);
    if !fits
        || on != n
        || lists != [r; 5]
        || r == 0
        || cells == 0
        || extents.iter().any(|d| *d == 0)
    {
        return Err(unequal(offset_misfit(name, p), [(*n, *on)]));
    }
    let (x, w, offset) =
        (p.x.placeholder("x"), p.w.placeholder("w"), p.offset.placeholder("offset"));
    let bias = p.bias.then(|| te::placeholder("bias", &[*m], p.x.dtype));
    let shape = [&[*n, Dim::from(p.offset_groups * cells)], out].concat();
    let mask = p.mask.then(|| te::placeholder("mask", &shape, p.x.dtype));
    let work = working(p.x.dtype);
    // Positions and taps: one an example, an offset group and a cell of the window.
    let taps: Vec<Taps> = (0..r)
        .map(|a| {
            let inner: usize = kernel[a + 1..].iter().product();
            let position = te::compute(format!("position_{a}"), &shape, |i| {
                let cell = i[1].clone().floormod(cells as i64);
                let along = cell.floordiv(inner as i64).floormod(kernel[a] as i64);
                let base = i[2 + a].clone() * int(p.strides[a]) + along * int(p.dilations[a])
                    - int(p.pads[a]);
                let channel = i[1].clone() * int(r) + int(a);
                let by =
                    offset.at([i[0].clone(), channel].into_iter().chain(i[2..].iter().cloned()));
                bounded(base.cast(work) + by.cast(work), extents[a])
            });
            let edges = (0.0, float_size(extents[a] - 1, work));
            let (linear, zeros) = (Sampling::Linear, Outside::Zeros);
            Taps::new(&format!("axis_{a}"), &position, extents[a], linear, zeros, edges)
        })
        .collect();
    let over: Vec<Axis> = (0..r).map(|a| te::reduce_axis(2, format!("t{a}"))).collect();
    let per_group = c / p.offset_groups;
    let seen = te::compute("seen", &[&[*n, Dim::from(c), Dim::from(cells)], out].concat(), |i| {
        let group = i[1].clone().floordiv(per_group as i64) * int(cells) + i[2].clone();
        let at: Vec<Expr> =
            [i[0].clone(), group].into_iter().chain(i[3..].iter().cloned()).collect();
        let value = weighted(&x, &i[..2], &taps, &over, &at, work);
        let value = mask.iter().fold(value, |v, m| v * m.at(at.clone()).cast(work));
        te::reduce(Reducer::Sum, value, &over)
    });
    let (channel, cell) = (te::reduce_axis(*icg, "c"), te::reduce_axis(cells, "k"));
    let per_group = m / p.groups;
    let sum = te::compute(format!("{name}_sum"), &[&[*n, Dim::from(*m)], out].concat(), |i| {
        let group = i[1].clone().floordiv(per_group as i64);
        let from = group * int(*icg) + channel.expr();
        let value =
            seen.at([i[0].clone(), from, cell.expr()].into_iter().chain(i[2..].iter().cloned()));
        let window = (0..r).map(|a| {
            let inner: usize = kernel[a + 1..].iter().product();
            cell.expr().floordiv(inner as i64).floormod(kernel[a] as i64)
        });
        let weight = w.at([i[1].clone(), channel.expr()].into_iter().chain(window));
        te::reduce(Reducer::Sum, value * weight.cast(work), [&channel, &cell])
    });
    let result = te::compute(name, sum.shape(), |i| {
        let value = bias.iter().fold(sum.at(i), |v, b| v + b.at([&i[1]]).cast(work));
        value.cast(p.x.dtype)
    });
    te::func([x, w, offset].into_iter().chain(bias).chain(mask), [&result])
}

fn offset_misfit(name: &str, p: &DeformConv) -> Error {
    Error::input(format!("{name}: {}, {} and offsets {} do not fit", p.x, p.w, p.offset))
}
