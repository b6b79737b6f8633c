//! Regions of an image whose bounds are data: each is divided into bins, and each bin becomes one cell.
//!
//! How many elements a bin has is known only when the function runs, so these functions have loops of
//! their own, with an accumulator in a local buffer.

use tilewright_ir::{Buffer, DType, Dim, Error, Expr, Intrin, Result, Stmt, TensorFunc, Var};

use crate::loops::{Lets, buffers, cells, cells_along, each, get, load, one_cell, set, store};
use crate::operand::{
    Operand, call, float_size, int, require_float, unequal, unsupported_type, working,
};
use crate::te;

/// Regions whose bins are sampled between the elements.
#[derive(Clone, Debug, PartialEq)]
pub struct RoiAlign {
    /// `[N, C, H, W]`.
    pub x: Operand,
    /// `[R, 4]`: the corners of each region as `x1, y1, x2, y2`, before scaling.
    pub regions: Operand,
    /// `[R]`: the example that each region lies in.
    pub examples: Operand,
    /// Bins along both axes.
    pub bins: [usize; 2],
    /// Samples of a bin along each axis; 0 for as many as its extent, rounded up.
    pub samples: usize,
    /// Factor of the regions.
    pub scale: f64,
    /// Whether cells are half a cell further.
    pub half_pixel: bool,
    /// Whether the largest of the weighted elements counts, and not their mean.
    pub max: bool,
}

/// Whether one of some extents is zero.
fn has_zero(extents: &[Dim]) -> bool {
    extents.iter().any(|d| *d == 0)
}

fn unfit(name: &str, x: &Operand, regions: &Operand) -> Error {
    Error::input(format!("{name}: {x} and {regions} do not fit"))
}

/// See [`RoiAlign`]. Parameters: `x`, the regions, the examples, the result `[R, C, bins]`.
///
/// # Errors
/// [`Error::Input`] where shapes do not fit, [`Error::Unsupported`] for other types than floats.
pub fn roi_align(p: &RoiAlign) -> Result<TensorFunc> {
    let name = "roi_align";
    require_float(name, p.x.dtype)?;
    if p.regions.dtype != p.x.dtype || !p.examples.dtype.is_int() {
        return Err(unsupported_type(name, p.regions.dtype, "regions of the data's type"));
    }
    let [n, c, h, w, r] = match (&p.x.shape[..], &p.regions.shape[..], &p.examples.shape[..]) {
        (&[n, c, h, w], &[r, corners], &[count]) if corners == 4 && count == r => [n, c, h, w, r],
        (_, &[r, _], &[count]) => {
            return Err(unequal(unfit(name, &p.x, &p.regions), [(r, count)]));
        }
        _ => return Err(unfit(name, &p.x, &p.regions)),
    };
    if has_zero(&[n, h, w]) || p.bins.contains(&0) {
        return Err(unfit(name, &p.x, &p.regions));
    }
    let work = working(p.x.dtype);
    let shape = [r, c, p.bins[0].into(), p.bins[1].into()];
    let tensors = [
        p.x.placeholder("x"),
        p.regions.placeholder("regions"),
        p.examples.placeholder("examples"),
        te::placeholder(name, &shape, p.x.dtype),
    ];
    let [x, regions, examples, out] = buffers(tensors)?;
    // A sample lies at the same place in all channels, so that the loop over them is inside.
    let acc = Buffer::new("acc", vec![c.expr()], work);
    let around = [(0, r), (2, shape[2]), (3, shape[3])];
    let params = [&x, &regions, &examples, &out];
    cells_along(name, &params, &around, vec![acc.clone()], |at| {
        let bin_at = &at[1..];
        let mut lets = Lets(Vec::new());
        let example = Expr::load(&examples, vec![at[0].clone()]).cast(DType::I32);
        let example = lets.add("example", example.max(0).min((n - 1).expr()));
        // Start, extent of a bin and number of samples along both axes.
        let axes = [(1, p.bins[0], "y"), (0, p.bins[1], "x")];
        let mut along = Vec::new();
        for (k, (first, bins, axis)) in axes.into_iter().enumerate() {
            let [low, high] = [first, first + 2].map(|column| {
                let v = load(&regions, &[&at[0], &int(column)]).cast(work) * p.scale;
                if p.half_pixel { v - 0.5 } else { v }
            });
            let start = lets.add(&format!("start_{axis}"), low);
            let extent = high - start.clone();
            // A region without extent is one cell.
            let extent = if p.half_pixel { extent } else { extent.max(Expr::float(1.0, work)) };
            let bin = lets.add(&format!("bin_{axis}"), extent / Expr::float(bins as f64, work));
            let samples = match p.samples {
                0 => call(Intrin::Ceil, bin.clone()).max(0.0).min(1e6).cast(DType::I32),
                samples => int(samples),
            };
            let samples = lets.add(&format!("samples_{axis}"), samples);
            along.push((start + bin_at[k].clone().cast(work) * bin.clone(), bin, samples));
        }
        let loops = ["sy", "sx"].map(Var::index);
        let mut inner = Lets(Vec::new());
        let mut inside = Expr::bool(true);
        let mut taps = Vec::new();
        for (k, ((start, bin, samples), extent)) in along.iter().zip([h, w]).enumerate() {
            let axis = ["y", "x"][k];
            let part = (loops[k].expr().cast(work) + 0.5) * bin.clone();
            let at = inner.add(axis, start.clone() + part / samples.clone().cast(work));
            let range = at.clone().greater_equal(Expr::float(-1.0, work));
            inside = inside.and(range).and(at.clone().less_equal(float_size(extent, work)));
            let last = (extent - 1).expr();
            let at = at.max(Expr::float(0.0, work)).min(float_size(extent - 1, work));
            let low = call(Intrin::Floor, at.clone()).cast(DType::I32).max(0).min(last.clone());
            let low = inner.add(&format!("low_{axis}"), low);
            let part = inner.add(&format!("part_{axis}"), at - low.clone().cast(work));
            let high = (low.clone() + 1).min(last);
            taps.push([(low, Expr::float(1.0, work) - &part), (high, part)]);
        }
        let inside = inner.add("inside", inside);
        let channel = Var::index("channel");
        let mut terms = Vec::new();
        for (row, wy) in &taps[0] {
            for (column, wx) in &taps[1] {
                let weight = inner.add("weight", wy.clone() * wx);
                let column = inner.add("column", column.clone());
                let index = vec![example.clone(), channel.expr(), row.clone(), column];
                terms.push(Expr::load(&x, index).cast(work) * weight);
            }
        }
        let value = terms
            .into_iter()
            .reduce(|a, b| combined(a, b, p))
            .unwrap_or_else(|| Expr::float(0.0, work));
        let value = Expr::select(inside, value, Expr::float(0.0, work));
        let so_far = load(&acc, &[&channel.expr()]);
        let sum = store(&acc, &[&channel.expr()], combined(so_far, value, p));
        let body = inner.around(Stmt::serial(&channel, c.expr(), sum));
        let (sy, sx) = (along[0].2.clone(), along[1].2.clone());
        let body = Stmt::serial(&loops[1], sx.clone(), body);
        let body = Stmt::serial(&loops[0], sy.clone(), body);
        let start =
            if p.max { Expr::float(f64::NEG_INFINITY, work) } else { Expr::float(0.0, work) };
        let samples = sy * sx;
        let all = |channel: &Expr| {
            let all = load(&acc, &[channel]);
            let result = if p.max {
                Expr::select(samples.clone().greater(0), all, Expr::float(0.0, work))
            } else {
                all / samples.clone().max(1).cast(work)
            };
            store(&out, &[&at[0], channel, &bin_at[0], &bin_at[1]], result.cast(p.x.dtype))
        };
        lets.around(Stmt::seq([
            each("channel", c, |channel| store(&acc, &[channel], start)),
            body,
            each("channel", c, all),
        ]))
    })
}

fn combined(a: Expr, b: Expr, p: &RoiAlign) -> Expr {
    if p.max { a.max(b) } else { a + b }
}

/// The largest element of each bin of regions with integral bounds. `x` is `[N, C, H, W]`, the regions
/// are `[R, 5]`: the example, then both corners, which are scaled and rounded. A bin without elements
/// gives zero. Parameters: `x`, the regions, the result `[R, C, bins]`.
///
/// # Errors
/// [`Error::Input`] where shapes do not fit, [`Error::Unsupported`] for other types than floats.
pub fn max_roi_pool(
    x: &Operand,
    regions: &Operand,
    bins: [usize; 2],
    scale: f64,
) -> Result<TensorFunc> {
    let name = "max_roi_pool";
    require_float(name, x.dtype)?;
    let (&[n, c, h, w], &[r, columns]) = (&x.shape[..], &regions.shape[..]) else {
        return Err(unfit(name, x, regions));
    };
    if columns != 5 || has_zero(&[n, h, w]) || bins.contains(&0) || regions.dtype != x.dtype {
        return Err(unfit(name, x, regions));
    }
    let work = working(x.dtype);
    let shape = [r, c, bins[0].into(), bins[1].into()];
    let dtype = x.dtype;
    let tensors =
        [x.placeholder("x"), regions.placeholder("regions"), te::placeholder(name, &shape, dtype)];
    let [x, regions, out] = buffers(tensors)?;
    let acc = one_cell("acc", work);
    cells(name, &[&x, &regions, &out], &shape, vec![acc.clone()], |at| {
        let mut lets = Lets(Vec::new());
        let example = lets.add(
            "example",
            load(&regions, &[&at[0], &int(0)])
                .cast(work)
                .cast(DType::I32)
                .max(0)
                .min((n - 1).expr()),
        );
        // Halves go away from zero.
        let mut bounds = Vec::new();
        for (k, (first, extent, axis)) in [(2, h, "y"), (1, w, "x")].into_iter().enumerate() {
            let start = lets.add(
                &format!("start_{axis}"),
                call(
                    Intrin::Floor,
                    load(&regions, &[&at[0], &int(first)]).cast(work) * scale + 0.5,
                ),
            );
            let end = call(
                Intrin::Floor,
                load(&regions, &[&at[0], &int(first + 2)]).cast(work) * scale + 0.5,
            );
            let size = (end - start.clone() + 1.0).max(Expr::float(1.0, work));
            let bin = lets.add(&format!("bin_{axis}"), size / Expr::float(bins[k] as f64, work));
            let place = at[2 + k].clone().cast(work);
            let low = call(Intrin::Floor, place.clone() * bin.clone()) + start.clone();
            let high = call(Intrin::Ceil, (place + 1.0) * bin) + start;
            let [low, high] = [low, high].map(|v| {
                v.max(Expr::float(0.0, work)).min(float_size(extent, work)).cast(DType::I32)
            });
            let low = lets.add(&format!("low_{axis}"), low);
            let count = lets.add(&format!("count_{axis}"), (high - low.clone()).max(0));
            bounds.push((low, count, extent));
        }
        let loops = ["dy", "dx"].map(Var::index);
        let mut index = vec![example, at[1].clone()];
        for ((low, _, extent), step) in bounds.iter().zip(&loops) {
            index.push((low.clone() + step.expr()).min((*extent - 1).expr()));
        }
        let value = get(&acc).max(Expr::load(&x, index).cast(work));
        let body = set(&acc, value);
        let body = Stmt::serial(&loops[1], bounds[1].1.clone(), body);
        let body = Stmt::serial(&loops[0], bounds[0].1.clone(), body);
        let any = (bounds[0].1.clone() * bounds[1].1.clone()).greater(0);
        let result = Expr::select(any, get(&acc), Expr::float(0.0, work));
        lets.around(Stmt::seq([
            set(&acc, Expr::float(f64::NEG_INFINITY, work)),
            body,
            Stmt::store(&out, at.to_vec(), result.cast(dtype)),
        ]))
    })
}
