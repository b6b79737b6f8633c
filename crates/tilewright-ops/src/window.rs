//! Windows that slide along an axis: how many there are, and what they reach.
//!
//! Window `o` covers the cells `o * stride + k * dilation - begin` for `k` in `0..kernel`. A cell
//! outside of `0..extent` is padding. Operators read windows without conditions, from a copy of
//! the tensor that has the padding: see [`padded`].

use tilewright_ir::{Dim, Error, Expr, Result};

use crate::te::{self, Axis, Tensor};

/// Windows along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub extent: Dim,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub begin: usize,
    pub end: usize,
    /// Number of windows.
    pub count: Dim,
    /// Whether a window may reach past the last cell that is no padding.
    pub past: bool,
    /// Whether a window may reach past the padding behind it.
    pub beyond: bool,
}

/// The parameters of the windows along all spatial axes, as users give them.
pub(crate) struct Windows<'a> {
    pub op: &'static str,
    pub extents: &'a [Dim],
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
        let fits = |d: usize| i32::try_from(d).is_ok_and(|d| d < i32::MAX / 4);
        if let Some(d) = self.extents.iter().filter_map(|d| d.known()).find(|d| !fits(*d)) {
            return Err(Error::input(format!("{op}: an axis of {d} elements is too long")));
        }
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
            if let Some(d) = list.iter().find(|d| !fits(**d)) {
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
            count: Dim::from(0),
            past: false,
            beyond: false,
        };
        // `check` has bounded each number but not this product.
        let room = w.extent + w.begin + w.end;
        let reach = (w.kernel - 1).checked_mul(w.dilation).map(|r| r + 1);
        let free = match (reach, room.known()) {
            (Some(reach), Some(room)) => room.checked_sub(reach).map(Dim::from),
            // What runs the program sees to it that extents are not negative.
            (Some(reach), None) => Some(room - reach),
            (None, _) => None,
        };
        let Some(free) = free else {
            return Err(Error::input(format!(
                "{}: a window of {} cells, {} apart, does not fit into {room} cells of spatial \
                 axis {a}",
                self.op, w.kernel, w.dilation
            )));
        };
        w.count = free.floordiv(w.stride) + 1;
        if self.ceil {
            // The last window starts inside, or in the padding before it.
            let most = (w.extent + w.begin).ceildiv(w.stride);
            w.count = w.count.max((free.ceildiv(w.stride) + 1).min(most));
        }
        let inner = w.extent + w.begin;
        w.past = (w.end > 0 || self.ceil) && !inner.at_least(w.reach());
        w.beyond = self.ceil && !(inner + w.end).at_least(w.reach());
        Ok(w)
    }
}

impl Window {
    /// Number of cells from the first to the last of a window.
    pub fn span(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    /// Number of cells, padding included, that the windows reach.
    pub fn reach(&self) -> Dim {
        (self.count - 1) * self.stride + self.span()
    }

    /// Whether a window reaches into padding.
    fn needs_padding(&self) -> bool {
        self.begin > 0 || self.past
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
pub(crate) fn data_axes(shape: &[Dim]) -> Vec<Axis> {
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
            let begin = w.begin as i64;
            if w.begin > 0 {
                inside = inside.and(p.clone().greater_equal(begin));
            }
            if w.past {
                inside = inside.and(p.clone().less((w.extent + w.begin).expr()));
            }
            at[skip + k] = p - begin;
        }
        Expr::if_then_else(inside, value(x.at(at)), fill.clone())
    })
}
