//! Sums of products: matmul, gemm, convolutions.

use tilewright_ir::dim::Integer;
use tilewright_ir::{DType, Dim, Error, Expr, Result, TensorFunc, dim};

use crate::operand::{
    Operand, accumulator, broadcast_index, broadcast_shapes, centred, require_number, require_same,
    require_zero_point, rounded, unequal, unsupported_type, working, zero_at,
};
use crate::te::{self, Axis, Reducer, Stage, Tensor};
use crate::window::{Same, Window, Windows, data_axes, padded, spatial_names};

/// A product of matrices after the rules of [`matmul`].
pub(crate) struct Product<'a> {
    a_batch: &'a [Dim],
    b_batch: &'a [Dim],
    /// What both broadcast to.
    batch: Vec<Dim>,
    pub(crate) rows: Option<Dim>,
    pub(crate) cols: Option<Dim>,
    /// The inner extent.
    k: Dim,
}

impl<'a> Product<'a> {
    /// Of operands that have axes, and fit.
    pub(crate) fn new(name: &str, a: &'a Operand, b: &'a Operand) -> Result<Product<'a>> {
        let (Some((&k, a_outer)), Some((&b_last, b_outer))) =
            (a.shape.split_last(), b.shape.split_last())
        else {
            return Err(Error::input(format!("{name}: {a} times {b}: an operand has no axes")));
        };
        // What is left of each side without the axis that goes: rows and columns behind batches.
        let (a_batch, rows) = a_outer.split_last().map_or((&[][..], None), |(m, r)| (r, Some(*m)));
        let (b_k, b_batch, cols) =
            b_outer.split_last().map_or((b_last, &[][..], None), |(k, r)| (*k, r, Some(b_last)));
        if k != b_k {
            let error = Error::input(format!(
                "{name}: {a} times {b}: the inner extents {k} and {b_k} differ"
            ));
            return Err(unequal(error, [(k, b_k)]));
        }
        let batch = broadcast_shapes(name, &[a_batch, b_batch])?;
        Ok(Product { a_batch, b_batch, batch, rows, cols, k })
    }

    /// The sums of products. A factor is made of the index of its element and of the row or column.
    pub(crate) fn sums(
        &self,
        name: String,
        left: impl Fn(Vec<Expr>, Option<&Expr>) -> Expr,
        right: impl Fn(Vec<Expr>, Option<&Expr>) -> Expr,
    ) -> Tensor {
        let kaxis = te::reduce_axis(self.k, "k");
        let axes = (0..).zip(&self.batch).map(|(n, &d)| te::axis(d, format!("b{n}")));
        let axes = axes.chain(self.rows.map(|d| te::axis(d, "i")));
        let axes = axes.chain(self.cols.map(|d| te::axis(d, "j")));
        te::compute_over(name, axes, |i| {
            let (outer, inner) = i.split_at(self.batch.len());
            let row = self.rows.and_then(|_| inner.first());
            let col = self.cols.and_then(|_| inner.last());
            let mut at_left = broadcast_index(self.a_batch, outer, &self.batch);
            at_left.extend(row.cloned().into_iter().chain([kaxis.expr()]));
            let mut at_right = broadcast_index(self.b_batch, outer, &self.batch);
            at_right.extend([kaxis.expr()].into_iter().chain(col.cloned()));
            te::reduce(Reducer::Sum, left(at_left, row) * right(at_right, col), [&kaxis])
        })
    }
}

/// Matrix product after numpy's rules: the last two axes are multiplied, those before broadcast,
/// and an operand with one axis is a row on the left and a column on the right.
/// Parameters: `a`, `b`, the result. Types: floats and integers, equal on both sides.
pub fn matmul(a: &Operand, b: &Operand) -> Result<TensorFunc> {
    let name = "matmul";
    require_same(name, a.dtype, b.dtype)?;
    require_number(name, a.dtype)?;
    let product = Product::new(name, a, b)?;
    let (x, y) = (a.placeholder("a"), b.placeholder("b"));
    let work = working(a.dtype);
    let acc = product.sums(
        accumulator(name, a.dtype),
        |at, _| x.at(at).cast(work),
        |at, _| y.at(at).cast(work),
    );
    te::func([&x, &y], [&rounded(name, acc, a.dtype)])
}

/// `alpha * A' B' + beta * C`, where `'` transposes if asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// `[M, K]`, or `[K, M]` if transposed.
    pub a: Operand,
    /// `[K, N]`, or `[N, K]` if transposed.
    pub b: Operand,
    /// Shape that broadcasts to `[M, N]`, of what is added; nothing for no such operand.
    pub c: Option<Vec<Dim>>,
    /// Whether `a` is transposed.
    pub trans_a: bool,
    /// Whether `b` is transposed.
    pub trans_b: bool,
    /// Factor of the product; integral for integers.
    pub alpha: f64,
    /// Factor of `c`; integral for integers.
    pub beta: f64,
}

impl Gemm {
    /// `A B`: nothing transposed or added, factors of one.
    pub fn new(a: Operand, b: Operand) -> Self {
        Gemm { a, b, c: None, trans_a: false, trans_b: false, alpha: 1.0, beta: 1.0 }
    }
}

/// See [`Gemm`]. Parameters: `a`, `b`, `c` if there is one, the result `[M, N]`.
pub fn gemm(p: &Gemm) -> Result<TensorFunc> {
    let name = "gemm";
    let (a, b, dtype) = (&p.a, &p.b, p.a.dtype);
    require_same(name, dtype, b.dtype)?;
    require_number(name, dtype)?;
    let (&[a0, a1], &[b0, b1]) = (a.shape.as_slice(), b.shape.as_slice()) else {
        return Err(Error::input(format!("{name}: {a} and {b} must have two axes each")));
    };
    let (m, k) = if p.trans_a { (a1, a0) } else { (a0, a1) };
    let (bk, n) = if p.trans_b { (b1, b0) } else { (b0, b1) };
    if k != bk {
        let (ta, tb) = (transposed(p.trans_a), transposed(p.trans_b));
        let error = Error::input(format!(
            "{name}: {a}{ta} times {b}{tb}: the inner extents {k} and {bk} differ"
        ));
        return Err(unequal(error, [(k, bk)]));
    }
    for (what, factor) in [("alpha", p.alpha), ("beta", p.beta)] {
        if dtype.is_int() && factor.fract() != 0.0 {
            return Err(Error::unsupported(format!("{name}: {what} = {factor} for {dtype}"))
                .help("factors of integers must be integral"));
        }
    }
    let shape = [m, n];
    if let Some(c) = &p.c
        && broadcast_shapes(name, &[c.as_slice(), &shape]).ok().as_deref() != Some(&shape[..])
    {
        let error = Error::input(format!(
            "{name}: the addend's shape {c:?} does not broadcast to {shape:?}"
        ));
        let skip = shape.len().saturating_sub(c.len());
        let pairs = c.iter().copied().zip(shape.into_iter().skip(skip));
        return Err(unequal(error, pairs.filter(|(d, _)| *d != 1 && c.len() <= shape.len())));
    }

    let (x, y) = (a.placeholder("a"), b.placeholder("b"));
    let z = p.c.as_ref().map(|c| te::placeholder("c", c, dtype));
    let addend = z.as_ref().filter(|_| p.beta != 0.0);
    let work = working(dtype);
    let plain = addend.is_none() && p.alpha == 1.0 && work == dtype;
    let kaxis = te::reduce_axis(k, "k");
    let acc_name = if plain { name.to_owned() } else { format!("{name}_acc") };
    let acc = te::compute_over(acc_name, [te::axis(m, "i"), te::axis(n, "j")], |i| {
        let (row, col, k) = (i[0].clone(), i[1].clone(), kaxis.expr());
        let xv = if p.trans_a { x.at([&k, &row]) } else { x.at([&row, &k]) };
        let yv = if p.trans_b { y.at([&col, &k]) } else { y.at([&k, &col]) };
        te::reduce(Reducer::Sum, xv.cast(work) * yv.cast(work), [&kaxis])
    });
    let out = if plain {
        acc
    } else {
        te::compute_over(name, [te::axis(m, "i"), te::axis(n, "j")], |i| {
            let value = scaled(acc.at(i), p.alpha, work);
            let value = match addend {
                Some(c) => {
                    let c = c.at(broadcast_index(c.shape(), i, &shape)).cast(work);
                    value + scaled(c, p.beta, work)
                }
                None => value,
            };
            value.cast(dtype)
        })
    };
    te::func([x, y].into_iter().chain(z), [&out])
}

fn scaled(value: Expr, factor: f64, work: DType) -> Expr {
    if factor == 1.0 { value } else { value * Expr::constant(factor, work) }
}

fn transposed(yes: bool) -> &'static str {
    if yes { " transposed" } else { "" }
}

/// A convolution (strictly a correlation) over any number of spatial axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conv {
    /// `[N, C, D1, D2, ...]`.
    pub x: Operand,
    /// `[M, C / groups, K1, K2, ...]`.
    pub w: Operand,
    /// Whether there is a bias `[M]`.
    pub bias: bool,
    /// Step of the window, one a spatial axis.
    pub strides: Vec<usize>,
    /// Distance of neighbours in the window, one a spatial axis.
    pub dilations: Vec<usize>,
    /// Zeros before the start of each spatial axis.
    pub pads_begin: Vec<usize>,
    /// Zeros behind the end of each spatial axis.
    pub pads_end: Vec<usize>,
    /// Zeros that the sizes decide, in place of `pads_begin` and `pads_end`.
    pub same: Option<Same>,
    /// Number of groups of channels that do not see each other.
    pub groups: usize,
}

impl Conv {
    /// No bias, steps and distances of one, no padding, one group.
    pub fn new(x: Operand, w: Operand) -> Self {
        let n = x.rank().saturating_sub(2);
        Conv {
            x,
            w,
            bias: false,
            strides: vec![1; n],
            dilations: vec![1; n],
            pads_begin: vec![0; n],
            pads_end: vec![0; n],
            same: None,
            groups: 1,
        }
    }
}

impl Conv {
    /// The sum that it is, after a look at shapes.
    fn correlation(&self, name: &'static str) -> Result<Correlation> {
        let p = self;
        let (n, channels, extents) = extents_of(name, &p.x, &p.w)?;
        let weights = dim::fixed(&p.w.shape, name)?;
        let (m, icg) = (weights[0], weights[1]);
        let wanted = icg.checked_mul(p.groups).map(Dim::from);
        if p.groups == 0 || m % p.groups != 0 || wanted != Some(channels) {
            let error = Error::input(format!(
                "{name}: weights {} do not fit {} with {} groups",
                p.w, p.x, p.groups
            ))
            .note("weights are [M, C / groups, ...] for C channels, and groups divide M");
            let fits = p.groups > 0 && m % p.groups == 0;
            return Err(unequal(error, wanted.filter(|_| fits).map(|wanted| (channels, wanted))));
        }
        let windows = Windows {
            op: name,
            extents,
            kernel: &weights[2..],
            strides: &p.strides,
            dilations: &p.dilations,
            begin: &p.pads_begin,
            end: &p.pads_end,
            same: p.same,
            ceil: false,
            longer: false,
        }
        .check()?;
        Ok(Correlation { name, n, groups: p.groups, icg, ocg: m / p.groups, windows })
    }
}

/// See [`Conv`]. Parameters: `x`, `w`, the bias if there is one, the result
/// `[N, M, O1, O2, ...]`.
pub fn conv(p: &Conv) -> Result<TensorFunc> {
    let name = "conv";
    require_same(name, p.x.dtype, p.w.dtype)?;
    require_number(name, p.x.dtype)?;
    let correlation = p.correlation(name)?;
    let (x, w) = (p.x.placeholder("x"), p.w.placeholder("w"));
    let bias = p.bias.then(|| te::placeholder("bias", &p.w.shape[..1], p.x.dtype));
    let zero = Expr::constant(0.0, p.x.dtype);
    let source = padded("x_pad", &x, &correlation.windows, &zero);
    let out = correlation.build(&source, bias.as_ref(), |c| {
        w.at([c.out_channel, c.in_channel].into_iter().chain(c.window))
    });
    te::func([x, w].into_iter().chain(bias), [&out])
}

/// Batch, channels and spatial extents of `[N, C, D1, ...]`, after a look at ranks.
fn extents_of<'a>(name: &str, x: &'a Operand, w: &Operand) -> Result<(Dim, Dim, &'a [Dim])> {
    match x.shape.as_slice() {
        [n, c, extents @ ..] if !extents.is_empty() && w.rank() == x.rank() => {
            Ok((*n, *c, extents))
        }
        _ => Err(Error::input(format!("{name}: data {x} and weights {w} do not fit"))
            .note("data are [N, C, D1, ...] and weights have as many axes")),
    }
}

/// The sum over channels and window positions of data times weights, without conditions.
struct Correlation {
    name: &'static str,
    n: Dim,
    groups: usize,
    /// Input channels of a group.
    icg: usize,
    /// Output channels of a group.
    ocg: usize,
    windows: Vec<Window>,
}

/// Where a weight is looked up.
struct WeightAt {
    group: Expr,
    /// The output channel within its group.
    group_channel: Expr,
    /// The output channel.
    out_channel: Expr,
    /// The input channel within its group.
    in_channel: Expr,
    /// The position in the window.
    window: Vec<Expr>,
}

impl Correlation {
    /// Builds the stages. The loops are batch, (group,) output channel, spatial axes, (input
    /// channel,) window; those in parentheses, and the output channel within its group, go where
    /// they would be single steps of a grouped convolution.
    fn build(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        weight: impl Fn(WeightAt) -> Expr,
    ) -> Tensor {
        let dtype = x.dtype();
        let work = working(dtype);
        let acc_name = match bias {
            Some(_) => format!("{}_acc", self.name),
            None => accumulator(self.name, dtype),
        };
        let acc = self.sums(acc_name, work, |at| x.at(at).cast(work), |at| weight(at).cast(work));
        match bias {
            None => rounded(self.name, acc, dtype),
            Some(bias) => {
                let spatial = spatial_names(self.windows.len());
                let spatial = spatial.iter().map(|name| format!("o{name}"));
                let names = ["n", "oc"].map(str::to_owned).into_iter().chain(spatial);
                let axes: Vec<Axis> =
                    acc.shape().iter().zip(names).map(|(d, name)| te::axis(*d, name)).collect();
                te::compute_over(self.name, axes, |i| {
                    (acc.at(i) + bias.at([&i[1]]).cast(work)).cast(dtype)
                })
            }
        }
    }

    /// The sums of products in a type, without a bias.
    fn sums(
        &self,
        name: String,
        work: DType,
        data: impl Fn(Vec<Expr>) -> Expr,
        weight: impl Fn(WeightAt) -> Expr,
    ) -> Tensor {
        let names = spatial_names(self.windows.len());
        let grouped = self.groups > 1;
        let counts = self.windows.iter().map(|w| w.count);
        let m = self.groups * self.ocg;
        let shape: Vec<Dim> = [self.n, m.into()].into_iter().chain(counts.clone()).collect();
        let outer: Vec<Axis> =
            counts.zip(&names).map(|(d, name)| te::axis(d, format!("o{name}"))).collect();
        te::stages(name, &shape, work, |out| {
            let batch = te::axis(self.n, "n");
            let group = grouped.then(|| te::axis(self.groups, "g"));
            let channel = (!grouped || self.ocg > 1).then(|| te::axis(self.ocg, "oc"));
            let input = (!grouped || self.icg > 1).then(|| te::reduce_axis(self.icg, "ic"));
            let window: Vec<Axis> = self
                .windows
                .iter()
                .zip(&names)
                .map(|(w, name)| te::reduce_axis(w.kernel, format!("k{name}")))
                .collect();

            let (g, oc, ic) = (axis_index(&group), axis_index(&channel), axis_index(&input));
            let out_channel = &g * (self.ocg as i64) + &oc;
            let mut from = vec![batch.expr(), &g * (self.icg as i64) + &ic];
            for ((w, o), k) in self.windows.iter().zip(&outer).zip(&window) {
                from.push(o.expr() * (w.stride as i64) + k.expr() * (w.dilation as i64));
            }
            let weight = weight(WeightAt {
                group: g,
                group_channel: oc,
                out_channel: out_channel.clone(),
                in_channel: ic,
                window: window.iter().map(Axis::expr).collect(),
            });
            let product = data(from) * weight;
            let indices =
                [batch.expr(), out_channel].into_iter().chain(outer.iter().map(Axis::expr));
            let reduced = te::reduce(Reducer::Sum, product, input.iter().chain(&window));
            let axes = [batch].into_iter().chain(group).chain(channel).chain(outer.clone());
            vec![Stage::new(out, axes, indices.collect(), reduced)]
        })
    }
}

fn axis_index(a: &Option<Axis>) -> Expr {
    a.as_ref().map_or_else(|| Expr::i32(0), Axis::expr)
}

/// A convolution of 8-bit integers less their zero points, in `int32`. What pads the data stands for
/// zero: it is their zero point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvInteger {
    /// The convolution, without a bias; its data and weights are `int8` or `uint8`.
    pub conv: Conv,
    /// Shape of the zero point of the data, if there is one: one number, `[]` or `[1]`.
    pub x_zero: Option<Vec<Dim>>,
    /// Shape of the zero points of the weights, if there are any: one number, or `[M]`.
    pub w_zero: Option<Vec<Dim>>,
}

/// See [`ConvInteger`]. Parameters: `x`, `w`, the zero points that there are, the result
/// `[N, M, O1, O2, ...]`.
pub fn conv_integer(p: &ConvInteger) -> Result<TensorFunc> {
    let (name, conv) = ("conv_integer", &p.conv);
    for x in [&conv.x, &conv.w] {
        if !matches!(x.dtype, DType::I8 | DType::U8) {
            return Err(unsupported_type(name, x.dtype, "int8 and uint8"));
        }
    }
    let correlation = conv.correlation(name)?;
    let m = correlation.groups * correlation.ocg;
    for (zero, count) in [(&p.x_zero, 1), (&p.w_zero, m)] {
        let help = "it is one number; for weights there may be one for each output channel";
        require_zero_point(name, zero.as_deref(), count.into(), help)?;
    }
    let (x, w) = (conv.x.placeholder("x"), conv.w.placeholder("w"));
    let x_zero = zero_point("x_zero_point", &p.x_zero, conv.x.dtype);
    let w_zero = zero_point("w_zero_point", &p.w_zero, conv.w.dtype);
    let (count, first) = (Dim::from(m), Expr::i32(0));
    let fill = x_zero.as_ref().map(|z| zero_at(z, &first, count));
    let fill = fill.unwrap_or_else(|| Expr::int(0, conv.x.dtype));
    let source = padded("x_pad", &x, &correlation.windows, &fill);
    let out = correlation.sums(
        name.to_owned(),
        DType::I32,
        |at| centred(source.at(at), &x_zero, &first, count),
        |c| {
            let at = [c.out_channel.clone(), c.in_channel].into_iter().chain(c.window);
            centred(w.at(at), &w_zero, &c.out_channel, count)
        },
    );
    te::func([x, w].into_iter().chain(x_zero).chain(w_zero), [&out])
}

fn zero_point(name: &str, shape: &Option<Vec<Dim>>, dtype: DType) -> Option<Tensor> {
    shape.as_ref().map(|s| te::placeholder(name, s, dtype))
}

/// A transposed convolution over any number of spatial axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvTranspose {
    /// `[N, C, D1, D2, ...]`.
    pub x: Operand,
    /// `[C, M / groups, K1, K2, ...]`.
    pub w: Operand,
    /// Whether there is a bias `[M]`.
    pub bias: bool,
    /// Distance of neighbouring windows, one a spatial axis.
    pub strides: Vec<usize>,
    /// Distance of neighbours in the window, one a spatial axis.
    pub dilations: Vec<usize>,
    /// Cells cut off at the start of each spatial axis; negative ones add zeros.
    pub pads_begin: Vec<i64>,
    /// Cells cut off at the end of each spatial axis; negative ones add zeros.
    pub pads_end: Vec<i64>,
    /// Cells added at the end of each spatial axis.
    pub output_padding: Vec<usize>,
    /// Number of groups of channels that do not see each other.
    pub groups: usize,
}

impl ConvTranspose {
    /// No bias, steps and distances of one, nothing cut off or added, one group.
    pub fn new(x: Operand, w: Operand) -> Self {
        let n = x.rank().saturating_sub(2);
        ConvTranspose {
            x,
            w,
            bias: false,
            strides: vec![1; n],
            dilations: vec![1; n],
            pads_begin: vec![0; n],
            pads_end: vec![0; n],
            output_padding: vec![0; n],
            groups: 1,
        }
    }
}

/// See [`ConvTranspose`]. Parameters: `x`, `w`, the bias if there is one, the result
/// `[N, M, O1, O2, ...]` with `O = (D - 1) * stride + output_padding + (K - 1) * dilation + 1 -
/// pad_begin - pad_end`.
pub fn conv_transpose(p: &ConvTranspose) -> Result<TensorFunc> {
    let name = "conv_transpose";
    let axes = upsampled(p)?;
    let (n, weights) = (p.x.shape[0], dim::fixed(&p.w.shape, name)?);
    let (wc, ocg, kernel) = (weights[0], weights[1], &weights[2..]);
    // With zeros between its elements, the data become those of an ordinary convolution with the
    // window reversed, steps of one and every output cell.
    let (x, w) = (p.x.placeholder("x"), p.w.placeholder("w"));
    let bias = p.bias.then(|| te::placeholder("bias", &[ocg * p.groups], p.x.dtype));
    let spread = spread(&x, &axes);
    let icg = wc / p.groups;
    let windows = axes.iter().map(|a| a.window).collect();
    let correlation = Correlation { name, n, groups: p.groups, icg, ocg, windows };
    let out = correlation.build(&spread, bias.as_ref(), |c| {
        let reversed =
            c.window.iter().zip(kernel).map(|(k, &extent)| Expr::i32(extent as i32 - 1) - k);
        let in_channel = c.group * (icg as i64) + c.in_channel;
        w.at([in_channel, c.group_channel].into_iter().chain(reversed))
    });
    te::func([x, w].into_iter().chain(bias), [&out])
}

/// The axes of a transposed convolution.
///
/// # Errors
/// [`Error::Input`] for sizes that do not fit, and where there is no output.
pub(crate) fn upsampled(p: &ConvTranspose) -> Result<Vec<Upsampled>> {
    let name = "conv_transpose";
    require_same(name, p.x.dtype, p.w.dtype)?;
    require_number(name, p.x.dtype)?;
    let (_, channels, extents) = extents_of(name, &p.x, &p.w)?;
    let weights = dim::fixed(&p.w.shape, name)?;
    let (wc, ocg) = (weights[0], weights[1]);
    if p.groups == 0 || channels != wc || wc % p.groups != 0 {
        let error = Error::input(format!(
            "{name}: weights {} do not fit {} with {} groups",
            p.w, p.x, p.groups
        ))
        .note("weights are [C, M / groups, ...] for C channels, and groups divide C");
        let fits = p.groups > 0 && wc % p.groups == 0;
        return Err(unequal(error, fits.then(|| (channels, Dim::from(wc)))));
    }
    if ocg.checked_mul(p.groups).is_none() {
        return Err(Error::input(format!("{name}: {} groups are too many", p.groups)));
    }
    let count = extents.len();
    let kernel = &weights[2..];
    let lists = [p.strides.len(), p.dilations.len(), p.pads_begin.len(), p.pads_end.len()];
    if lists.iter().chain([&p.output_padding.len()]).any(|&len| len != count) {
        return Err(Error::input(format!(
            "{name}: strides, dilations, pads and output padding must each have {count} numbers"
        )));
    }
    (0..count)
        .map(|a| {
            Upsampled::new(
                extents[a],
                kernel[a],
                p.strides[a],
                p.dilations[a],
                (p.pads_begin[a], p.pads_end[a]),
                p.output_padding[a],
            )
            .ok_or_else(|| {
                Error::input(format!(
                    "{name}: no output along spatial axis {a}: extent {}, kernel {}, stride {}, \
                     dilation {}, pads {} and {}, output padding {}",
                    extents[a],
                    kernel[a],
                    p.strides[a],
                    p.dilations[a],
                    p.pads_begin[a],
                    p.pads_end[a],
                    p.output_padding[a]
                ))
            })
        })
        .collect()
}

/// One axis of a transposed convolution: `extent` elements, `stride` apart, behind `lead` zeros
/// (or without the first `-lead` cells).
pub(crate) struct Upsampled {
    extent: Dim,
    stride: i64,
    lead: i64,
    pub(crate) window: Window,
}

impl Upsampled {
    /// `None` where a number is zero that must not be, too large, or nothing is left.
    fn new(
        extent: Dim,
        kernel: usize,
        stride: usize,
        dilation: usize,
        pads: (i64, i64),
        output_padding: usize,
    ) -> Option<Self> {
        let reach = (as_i64(kernel) - 1).checked_mul(as_i64(dilation))?;
        let last = match extent.known() {
            Some(n) => Integer::from(as_i64(n) - 1),
            None => Integer::from(extent).minus(1)?,
        };
        let spread = last.times(as_i64(stride))?;
        let cut = pads.0.checked_add(pads.1)?;
        let count = spread.plus(as_i64(output_padding) + reach + 1)?.minus(cut)?;
        let lead = reach.checked_sub(pads.0)?;
        let room = i64::from(i32::MAX);
        let fits = extent != 0
            && kernel > 0
            && stride > 0
            && dilation > 0
            && count.number().is_none_or(|n| n > 0 && n + reach <= room)
            && lead.abs() <= room;
        let window = Window {
            extent: count.plus(reach)?.dim()?,
            kernel,
            stride: 1,
            dilation,
            begin: Dim::from(0),
            end: Dim::from(0),
            count: count.dim()?,
            past: false,
            beyond: false,
        };
        fits.then_some(Upsampled { extent, stride: as_i64(stride), lead, window })
    }
}

fn as_i64(v: usize) -> i64 {
    i64::from(i32::try_from(v).unwrap_or(i32::MAX))
}

/// The data with zeros around and between their elements.
fn spread(x: &Tensor, axes: &[Upsampled]) -> Tensor {
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(axes.iter().map(|a| a.window.extent));
    te::compute_over("x_spread", data_axes(&shape), |i| {
        let mut at = i.to_vec();
        let mut there = Expr::bool(true);
        for (a, p) in axes.iter().zip(&mut at[2..]) {
            let from = &*p - a.lead;
            if a.lead > 0 {
                there = there.and(from.clone().greater_equal(0));
            }
            let last = (a.extent - 1) * Dim::from(a.stride as usize);
            let end = Integer::from(last + 1).plus(a.lead);
            if end.is_none_or(|end| end.is_less(a.window.extent) != Some(false)) {
                there = there.and(from.clone().less_equal(last.expr()));
            }
            if a.stride > 1 {
                there = there.and(from.clone().floormod(a.stride).equal(0));
            }
            *p = from.floordiv(a.stride);
        }
        Expr::if_then_else(there, x.at(at), Expr::constant(0.0, x.dtype()))
    })
}
