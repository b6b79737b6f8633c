//! Windows that slide over the spatial axes of `[N, C, D1, D2, ...]`.

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc, dim};

use crate::elementwise::pow_const;
use crate::operand::{
    Operand, accumulator, call, int, require_float, require_number, rounded, unequal, working,
};
use crate::reduce::{self, Reduction};
use crate::te::{self, Axis, Reducer, Tensor};
use crate::window::{Same, Window, Windows, data_axes, padded, spatial_names};

/// Windows over the spatial axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// `[N, C, D1, D2, ...]`.
    pub x: Operand,
    /// Extents of the window, one a spatial axis.
    pub kernel: Vec<usize>,
    /// Step of the window, one a spatial axis.
    pub strides: Vec<usize>,
    /// Distance of neighbours in the window, one a spatial axis.
    pub dilations: Vec<usize>,
    /// Padding before the start of each spatial axis; smaller than the window.
    pub pads_begin: Vec<usize>,
    /// Padding behind the end of each spatial axis; smaller than the window.
    pub pads_end: Vec<usize>,
    /// Padding that the sizes decide, in place of `pads_begin` and `pads_end`.
    pub same: Option<Same>,
    /// Whether a last window that reaches over the end counts too, as long as it starts inside
    /// of the tensor or of the padding before it.
    pub ceil_mode: bool,
}

impl Pool {
    /// Steps and distances of one, no padding, `ceil_mode` off.
    pub fn new(x: Operand, kernel: &[usize]) -> Self {
        let n = kernel.len();
        Pool {
            x,
            kernel: kernel.to_vec(),
            strides: vec![1; n],
            dilations: vec![1; n],
            pads_begin: vec![0; n],
            pads_end: vec![0; n],
            same: None,
            ceil_mode: false,
        }
    }
}

/// The largest value of each window; padding does not count. Parameters: `x`, the result.
pub fn max_pool(p: &Pool) -> Result<TensorFunc> {
    let name = "max_pool";
    require_number(name, p.x.dtype)?;
    let windows = p.windows(name)?;
    let x = p.x.placeholder("x");
    let (_, out) = max_of_windows(name, &x, &windows);
    te::func([&x], [&out])
}

impl Pool {
    fn windows(&self, op: &'static str) -> Result<Vec<Window>> {
        let [_, _, extents @ ..] = self.x.shape.as_slice() else {
            let x = &self.x;
            return Err(Error::input(format!("{op}: {x} must be [N, C, D1, ...]")));
        };
        let windows = Windows {
            op,
            extents,
            kernel: &self.kernel,
            strides: &self.strides,
            dilations: &self.dilations,
            begin: &self.pads_begin,
            end: &self.pads_end,
            same: self.same,
            ceil: self.ceil_mode,
            longer: true,
        }
        .check()?;
        for w in &windows {
            let span = w.span();
            let most = w.begin.max(w.end);
            if most.known().is_some_and(|most| most >= span) {
                return Err(Error::unsupported(format!(
                    "{op}: padding of {most} cells for a window that spans {span}"
                ))
                .help("padding must be smaller than the window"));
            }
        }
        Ok(windows)
    }
}

/// A stage over `[N, C, O1, ...]` that reduces the cells of each window of `source`, which has its
/// padding. `f` takes the index of the output, the index of the cell in `source`.
fn slide(
    name: impl Into<std::sync::Arc<str>>,
    source: &Tensor,
    windows: &[Window],
    reducer: Reducer,
    f: impl Fn(&[Expr], &[Expr]) -> Expr,
) -> Tensor {
    let cell: Vec<Axis> = windows
        .iter()
        .zip(spatial_names(windows.len()))
        .map(|(w, name)| te::reduce_axis(w.kernel, format!("k{name}")))
        .collect();
    te::compute_over(name, output_axes(source, windows), |i| {
        let mut at = i[..2].to_vec();
        for ((w, o), k) in windows.iter().zip(&i[2..]).zip(&cell) {
            at.push(o * (w.stride as i64) + k.expr() * (w.dilation as i64));
        }
        te::reduce(reducer, f(i, &at), &cell)
    })
}

fn output_axes(source: &Tensor, windows: &[Window]) -> Vec<Axis> {
    let shape = &source.shape()[..2];
    let names = spatial_names(windows.len());
    let outer = windows.iter().zip(names).map(|(w, name)| te::axis(w.count, format!("o{name}")));
    data_axes(shape).into_iter().chain(outer).collect()
}

/// The data with their padding, and the largest value of each window.
fn max_of_windows(name: &str, x: &Tensor, windows: &[Window]) -> (Tensor, Tensor) {
    let source = padded("x_pad", x, windows, &te::lowest(x.dtype()));
    let out = slide(name, &source, windows, Reducer::Max, |_, at| source.at(at));
    (source, out)
}

/// The sums of what becomes of the elements of each window, in the working type.
fn sum_of_windows(
    name: &str,
    x: &Tensor,
    windows: &[Window],
    value: impl Fn(Expr) -> Expr,
) -> Tensor {
    let source = padded("x_pad", x, windows, &Expr::float(0.0, x.dtype()));
    slide(format!("{name}_acc"), &source, windows, Reducer::Sum, |_, at| {
        value(source.at(at).cast(working(x.dtype())))
    })
}

/// [`max_pool`], and where in `x` the value is. Parameters: `x`, the result, the `int64`
/// positions of the same shape: offsets into the whole of `x`, of the first such value, in
/// row-major order or (`column_major`) with the order of the spatial axes reversed.
pub fn max_pool_with_indices(p: &Pool, column_major: bool) -> Result<TensorFunc> {
    let name = "max_pool";
    require_number(name, p.x.dtype)?;
    let windows = p.windows(name)?;
    let x = p.x.placeholder("x");
    let (source, out) = max_of_windows(name, &x, &windows);
    // Of the cells with the largest value, the one that comes first in `x`.
    let none = Reducer::Min.identity(DType::I64);
    let positions = slide("positions", &source, &windows, Reducer::Min, |o, at| {
        let value = source.at(at);
        let mut found = value.clone().equal(out.at(o));
        if p.x.dtype.is_float() {
            found = found.or(call(Intrin::IsNan, value));
        }
        let mut cell = at.to_vec();
        for (w, e) in windows.iter().zip(&mut cell[2..]) {
            *e = &*e - &w.begin.expr();
            if w.begin != 0 {
                found = e.clone().greater_equal(0).and(found);
            }
            if w.past {
                found = e.clone().less(w.extent.expr()).and(found);
            }
        }
        let mut order: Vec<usize> = (0..cell.len()).collect();
        if column_major {
            order[2..].reverse();
        }
        let shape = x.shape();
        let offset = order.iter().fold(Expr::i32(0), |sum, &a| sum * shape[a].expr() + &cell[a]);
        Expr::select(found, offset.cast(DType::I64), none.clone())
    });
    te::func([&x], [&out, &positions])
}

/// The mean of each window; cells of the padding count as zeros if asked for, else only cells of
/// `x` count. Cells past the padding never count. Parameters: `x`, the result.
pub fn average_pool(p: &Pool, count_include_pad: bool) -> Result<TensorFunc> {
    let name = "average_pool";
    require_float(name, p.x.dtype)?;
    let windows = p.windows(name)?;
    let x = p.x.placeholder("x");
    let work = working(p.x.dtype);
    let acc = sum_of_windows(name, &x, &windows, |e| e);
    let counts: Vec<Count> = windows.iter().map(|w| Count::new(w, count_include_pad)).collect();
    let constant: f64 = counts.iter().filter_map(|c| c.constant).map(|n| n as f64).product();
    let out = te::compute_over(name, output_axes(&x, &windows), |i| {
        let varying = windows.iter().zip(&counts).zip(&i[2..]);
        let varying = varying.filter(|((_, c), _)| c.constant.is_none());
        let mean = match varying.map(|((w, c), o)| c.expr(w, o)).reduce(|a, b| a * b) {
            None => acc.at(i) * (1.0 / constant),
            Some(count) => {
                let count = count.cast(work);
                acc.at(i) / if constant == 1.0 { count } else { count * constant }
            }
        };
        mean.cast(p.x.dtype)
    });
    te::func([&x], [&out])
}

/// How many cells of a window along one axis count: those from `low` up to `high`, measured from
/// the start of the padding.
struct Count {
    low: Dim,
    high: Dim,
    /// The number, where it is the same for all windows.
    constant: Option<usize>,
}

impl Count {
    fn new(w: &Window, include_padding: bool) -> Self {
        let (low, high) = if include_padding {
            (Dim::from(0), w.extent + (w.begin + w.end))
        } else {
            (w.begin, w.extent + w.begin)
        };
        // Only the first and the last windows can reach out.
        let out = if include_padding { w.beyond } else { w.past };
        let one = w.count == 1;
        // Cells of the first window before a position.
        let constant = match (low == 0 && !out, low.known(), high.known()) {
            (true, ..) => Some(w.kernel),
            (false, Some(low), Some(high)) if one => Some(
                high.div_ceil(w.dilation)
                    .min(w.kernel)
                    .saturating_sub(low.div_ceil(w.dilation).min(w.kernel)),
            ),
            (false, ..) => None,
        };
        Count { low, high, constant }
    }

    /// The number for window `o`.
    fn expr(&self, w: &Window, o: &Expr) -> Expr {
        let start = o * (w.stride as i64);
        let (low, high) = (self.low, self.high);
        if w.dilation == 1 {
            return (&start + w.kernel as i64).min(high.expr()) - start.max(low.expr());
        }
        // The first cell that is not below `low`, and one past the last below `high`.
        let d = w.dilation as i64;
        let first = ((low + (w.dilation - 1)).expr() - &start).floordiv(d).max(0);
        let end = ((high - 1).expr() - &start).floordiv(d) + 1;
        (end.min(w.kernel as i64) - first).max(0)
    }
}

/// The p-norm of each window. Parameters: `x`, the result.
pub fn lp_pool(p: &Pool, norm: u32) -> Result<TensorFunc> {
    let name = "lp_pool";
    check_norm(name, &p.x, norm)?;
    let windows = p.windows(name)?;
    let x = p.x.placeholder("x");
    let acc = sum_of_windows(name, &x, &windows, |e| power(e, norm));
    te::func([&x], [&root(name, acc, norm, p.x.dtype)])
}

fn check_norm(name: &str, x: &Operand, norm: u32) -> Result<()> {
    require_float(name, x.dtype)?;
    match norm {
        0 => Err(Error::unsupported(format!("{name}: there is no 0-norm"))),
        _ => Ok(()),
    }
}

/// The magnitude of a value to the power of the norm.
fn power(e: Expr, norm: u32) -> Expr {
    match norm {
        2 => pow_const(e, 2.0),
        _ => pow_const(call(Intrin::Abs, e), f64::from(norm)),
    }
}

/// The stage that takes the root of sums of powers.
fn root(name: &str, acc: Tensor, norm: u32, dtype: DType) -> Tensor {
    te::compute(name, acc.shape(), |i| pow_const(acc.at(i), 1.0 / f64::from(norm)).cast(dtype))
}

/// The largest value over all spatial axes. Parameters: `x`, the result `[N, C, 1, 1, ...]`.
pub fn global_max_pool(x: &Operand) -> Result<TensorFunc> {
    global("global_max_pool", x, Reduction::Max)
}

/// The mean over all spatial axes. Parameters: `x`, the result `[N, C, 1, 1, ...]`.
pub fn global_average_pool(x: &Operand) -> Result<TensorFunc> {
    require_float("global_average_pool", x.dtype)?;
    global("global_average_pool", x, Reduction::Mean)
}

/// The p-norm over all spatial axes. Parameters: `x`, the result `[N, C, 1, 1, ...]`.
pub fn global_lp_pool(x: &Operand, norm: u32) -> Result<TensorFunc> {
    let name = "global_lp_pool";
    check_norm(name, x, norm)?;
    let axes = spatial_axes(name, x)?;
    let t = x.placeholder("x");
    let acc = reduce::fold(format!("{name}_acc"), &x.shape, &axes, true, Reducer::Sum, |i| {
        power(t.at(i).cast(working(x.dtype)), norm)
    });
    te::func([&t], [&root(name, acc, norm, x.dtype)])
}

fn global(name: &str, x: &Operand, op: Reduction) -> Result<TensorFunc> {
    require_number(name, x.dtype)?;
    let axes = spatial_axes(name, x)?;
    let t = x.placeholder("x");
    let out = reduce::reduced(name, op, &t, &axes, true);
    te::func([&t], [&out])
}

fn spatial_axes(name: &str, x: &Operand) -> Result<Vec<usize>> {
    match x.rank() {
        0 | 1 => Err(Error::input(format!("{name}: {x} must be [N, C, D1, ...]"))),
        rank => Ok((2..rank).collect()),
    }
}

/// Blocks put back where they were cut from an image, added up where they overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// `[N, C * K1 * K2 * ..., L]`: the `L` blocks of each example.
    pub x: Operand,
    /// Extents of the image.
    pub image: Vec<Dim>,
    /// Extents of a block.
    pub block: Vec<usize>,
    /// Distance of blocks, one a spatial axis.
    pub strides: Vec<usize>,
    /// Distance of neighbours in a block.
    pub dilations: Vec<usize>,
    /// What the image had before the start of each axis.
    pub pads_begin: Vec<usize>,
    /// What the image had behind the end of each axis.
    pub pads_end: Vec<usize>,
}

/// See [`Blocks`]. Parameters: `x`, the result `[N, C, D1, D2, ...]`.
///
/// # Errors
/// [`Error::Input`] where the blocks do not fit the image, [`Error::Unsupported`] for `bool`.
pub fn unite_blocks(p: &Blocks) -> Result<TensorFunc> {
    let name = "unite_blocks";
    require_number(name, p.x.dtype)?;
    let windows = Windows {
        op: name,
        extents: &p.image,
        kernel: &p.block,
        strides: &p.strides,
        dilations: &p.dilations,
        begin: &p.pads_begin,
        end: &p.pads_end,
        same: None,
        ceil: false,
        longer: false,
    }
    .check()?;
    let cells: usize = p.block.iter().product();
    let blocks = dim::product(windows.iter().map(|w| w.count));
    let [n, rows, count] = p.x.shape[..] else {
        return Err(Error::input(format!("{name}: {} must be [N, C * K, L]", p.x)));
    };
    let whole = rows.floordiv(cells.max(1)) * cells;
    if count != blocks || whole != rows {
        let error =
            Error::input(format!("{name}: {} does not hold {blocks} blocks of {cells} cells", p.x));
        return Err(unequal(error, [(count, blocks), (rows, whole)]));
    }
    let x = p.x.placeholder("x");
    let work = working(p.x.dtype);
    let over: Vec<Axis> =
        (0..).zip(&p.block).map(|(a, &d)| te::reduce_axis(d, format!("k{a}"))).collect();
    let shape = [&[n, rows.floordiv(cells.max(1))], &p.image[..]].concat();
    let sum = te::compute_over(accumulator(name, p.x.dtype), data_axes(&shape), |i| {
        let mut row = i[1].clone();
        let mut block = Expr::i32(0);
        let mut inside = Expr::bool(true);
        for ((w, k), at) in windows.iter().zip(&over).zip(&i[2..]) {
            row = row * int(w.kernel) + k.expr();
            // The block whose cell this is, if it starts at a multiple of the stride.
            let start = at.clone() + w.begin.expr() - k.expr() * int(w.dilation);
            let which = start.clone().floordiv(w.stride as i64);
            inside = inside
                .and(start.floormod(w.stride as i64).equal(0))
                .and(which.clone().greater_equal(0))
                .and(which.clone().less(w.count.expr()));
            block = block * w.count.expr() + which;
        }
        let value = x.at([i[0].clone(), row, block]).cast(work);
        let value = Expr::if_then_else(inside, value, Expr::constant(0.0, work));
        te::reduce(Reducer::Sum, value, &over)
    });
    te::func([&x], [&rounded(name, sum, p.x.dtype)])
}
