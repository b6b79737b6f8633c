//! Windows that slide along an axis: how many there are, and what they reach.
//!
//! Window `o` covers the cells `o * stride + k * dilation - begin` for `k` in `0..kernel`. A cell
//! outside of `0..extent` is padding. Operators read windows without conditions, from a copy of
//! the tensor that has the padding: see [`padded`].

use tilewright_ir::{Error, Expr, Result};

use crate::te::{self, Axis, Tensor};

/// Windows along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub extent: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub begin: usize,
    pub end: usize,
    /// Number of windows.
    pub count: usize,
}

/// The parameters of the windows along all spatial axes, as users give them.
pub(crate) struct Windows<'a> {
    pub op: &'static str,
    pub extents: &'a [usize],
    pub kernel: &'a [usize],
    pub strides: &'a [usize],
    pub dilations: &'a [usize],
    pub begin: &'a [usize],
    pub end: &'a [usize],
    /// Whether a window that starts inside but ends outside counts.
    pub ceil: bool,
}

impl Windows<'_> {
    /// One window an axis. Fails where a list has the wrong length, a number is zero that must not
    /// be or too large, or no window fits.
    pub fn check(&self) -> Result<Vec<Window>> {
        let op = self.op;
        let n = self.extents.len();
        let lists = [
            ("kernel extents", self.kernel),
            ("strides", self.strides),
            ("dilations", self.dilations),
            ("pads at the begin", self.begin),
            ("pads at the end", self.end),
        ];
        for (what, list) in lists {
            if list.len() != n {
                let len = list.len();
                return Err(Error::input(format!("{op}: {len} {what} for {n} spatial axes")));
            }
            let fits = |d: &usize| i32::try_from(*d).is_ok_and(|d| d < i32::MAX / 4);
            if let Some(d) = list.iter().chain(self.extents).find(|d| !fits(d)) {
                return Err(Error::input(format!("{op}: {d} among the {what} is too large")));
            }
        }
        for (what, list) in &lists[..3] {
            if list.contains(&0) {
                return Err(Error::input(format!("{op}: zero among the {what}")));
            }
        }
        (0..n).map(|a| self.axis(a)).collect()
    }

    fn axis(&self, a: usize) -> Result<Window> {
        let mut w = Window {
            extent: self.extents[a],
            kernel: self.kernel[a],
            stride: self.strides[a],
            dilation: self.dilations[a],
            begin: self.begin[a],
            end: self.end[a],
            count: 0,
        };
        // `check` has bounded each number but not this product.
        let room = w.extent + w.begin + w.end;
        let reach = (w.kernel - 1).checked_mul(w.dilation).map(|r| r + 1);
        let Some(free) = reach.and_then(|r| room.checked_sub(r)) else {
            return Err(Error::input(format!(
                "{}: a window of {} cells, {} apart, does not fit into {room} cells of spatial \
                 axis {a}",
                self.op, w.kernel, w.dilation
            )));
        };
        w.count = free / w.stride + 1;
        if self.ceil && free % w.stride != 0 && w.count * w.stride < w.extent + w.begin {
            w.count += 1;
        }
        Ok(w)
    }
}

impl Window {
    /// Number of cells from the first to the last of a window.
    pub fn span(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    /// Number of cells, padding included, that the windows reach.
    pub fn reach(&self) -> usize {
        (self.count - 1) * self.stride + self.span()
    }

    /// Whether a window reaches into padding.
    fn needs_padding(&self) -> bool {
        self.begin > 0 || self.reach() > self.extent
    }
}

/// Names of `n` spatial axes.
pub(crate) fn spatial_names(n: usize) -> Vec<String> {
    match n {
        0..=3 => ["d", "h", "w"][3 - n..].iter().map(|s| (*s).to_owned()).collect(),
        _ => (0..n).map(|k| format!("s{k}")).collect(),
    }
}

/// Names of a batch, a channel and `n` spatial axes.
pub(crate) fn data_axes(shape: &[usize]) -> Vec<Axis> {
    let names = ["n", "c"].iter().map(|s| (*s).to_owned());
    let names = names.chain(spatial_names(shape.len().saturating_sub(2)));
    shape.iter().zip(names).map(|(&d, name)| te::axis(d, name)).collect()
}

/// The tensor `[N, C, D1, D2, ...]` with its padding filled in, as far as the windows reach; the
/// tensor itself where they stay inside. `value` makes a cell from its element.
pub(crate) fn padded(
    name: &str,
    x: &Tensor,
    windows: &[Window],
    fill: &Expr,
    value: impl Fn(Expr) -> Expr,
) -> Tensor {
    if !windows.iter().any(Window::needs_padding) {
        return x.clone();
    }
    let skip = x.rank() - windows.len();
    let mut shape = x.shape().to_vec();
    for (d, w) in shape[skip..].iter_mut().zip(windows) {
        if w.needs_padding() {
            *d = w.reach();
        }
    }
    te::compute_over(name, data_axes(&shape), |i| {
        let mut at = i.to_vec();
        let mut inside = Expr::bool(true);
        for (k, w) in windows.iter().enumerate() {
            let p = &i[skip + k];
            let (begin, end) = (w.begin as i64, (w.begin + w.extent) as i64);
            if w.begin > 0 {
                inside = inside.and(p.clone().greater_equal(begin));
            }
            if shape[skip + k] > w.begin + w.extent {
                inside = inside.and(p.clone().less(end));
            }
            at[skip + k] = p - begin;
        }
        Expr::if_then_else(inside, value(x.at(at)), fill.clone())
    })
}
