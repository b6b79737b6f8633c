//! Windows that slide along an axis: how many there are, and what they reach.
//!
//! Window `o` covers the cells `o * stride + k * dilation - begin` for `k` in `0..kernel`. A cell
//! outside of `0..extent` is padding. Operators read windows without conditions, from a copy of
//! the tensor that has the padding: see `padded`.

use tilewright_ir::{Dim, Error, Expr, Result};

use crate::te::{self, Axis, Tensor};

/// Windows along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub extent: Dim,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub begin: Dim,
    pub end: Dim,
    /// Number of windows.
    pub count: Dim,
    /// Whether a window may reach past the last cell that is no padding.
    pub past: bool,
    /// Whether a window may reach past the padding behind it.
    pub beyond: bool,
}

/// Padding with which there is a window for each `stride` cells, `ceil(extent / stride)` of them: as
/// much as that needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Same {
    /// An odd cell comes behind the end.
    OddAtEnd,
    /// An odd cell comes before the start.
    OddAtStart,
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
    /// Takes the place of `begin` and `end`.
    pub same: Option<Same>,
    /// Whether a window that starts inside but ends outside counts.
    pub ceil: bool,
    /// Whether the only window of an axis may be longer than it, by less than a stride: ONNX Runtime
    /// rounds the number of steps towards zero.
    pub longer: bool,
}

impl Windows<'_> {
    /// One window an axis. Fails where a list has the wrong length, a number is zero that must not
    /// be or too large, or no window fits.
    pub fn check(&self) -> Result<Vec<Window>> {
        let op = self.op;
        let n = self.extents.len();
        if let Some(d) = self.extents.iter().filter_map(|d| d.known()).find(|d| !fits_int32(*d)) {
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
            if let Some(d) = list.iter().find(|d| !fits_int32(**d)) {
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
        let (extent, kernel, stride) = (self.extents[a], self.kernel[a], self.strides[a]);
        let dilation = self.dilations[a];
        let span = (kernel - 1).checked_mul(dilation).and_then(|r| r.checked_add(1));
        let Some(span) = span.filter(|s| i32::try_from(*s).is_ok()) else {
            return Err(self.misfit(extent + self.begin[a] + self.end[a], a, dilation, kernel));
        };
        if self.same.is_some() && extent == 0 {
            return Err(self.misfit(extent, a, dilation, kernel));
        }
        let (begin, end) = match self.same {
            None => (Dim::from(self.begin[a]), Dim::from(self.end[a])),
            Some(same) => {
                let last = extent.ceildiv(stride) - 1;
                let total = (last * stride + span).max(extent) - extent;
                let half = total.floordiv(2);
                match same {
                    Same::OddAtEnd => (half, total - half),
                    Same::OddAtStart => (total - half, half),
                }
            }
        };
        let mut count = extent.ceildiv(stride);
        let room = extent + begin + end;
        let ceil = self.same.is_none()
            && (self.ceil
                || room
                    .known()
                    .is_some_and(|room| self.longer && room < span && span < room + stride));
        if self.same.is_none() {
            // With `ceil`, the only window may end outside.
            let over = if ceil { stride - 1 } else { 0 };
            // What runs the program sees to it that open extents are not negative.
            if room.known().is_some_and(|room| room + over < span) {
                return Err(self.misfit(room, a, dilation, kernel));
            }
            count = (room + over - span).floordiv(stride) + 1;
            // With `ceil`, the last window starts inside, or in the padding before it: at most
            // `ceildiv(extent + begin, stride)` windows do. Both are quotients by the stride, of
            // numbers that differ by `end + stride - span`.
            if ceil && self.end[a] + stride > span {
                count = (extent + begin).ceildiv(stride);
            }
        }
        let (past, beyond) = (false, false);
        let mut w = Window { extent, kernel, stride, dilation, begin, end, count, past, beyond };
        let inner = extent + begin;
        w.past = (end != 0 || ceil) && !inner.at_least(w.reach());
        w.beyond = ceil && !(inner + end).at_least(w.reach());
        Ok(w)
    }

    fn misfit(&self, room: Dim, a: usize, dilation: usize, kernel: usize) -> Error {
        Error::input(format!(
            "{}: a window of {kernel} cells, {dilation} apart, does not fit into {room} cells \
                 of spatial axis {a}",
            self.op
        ))
    }
}

fn fits_int32(d: usize) -> bool {
    i32::try_from(d).is_ok_and(|d| d < i32::MAX / 4)
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
        self.begin != 0 || self.past
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
/// tensor itself where they stay inside.
pub(crate) fn padded(name: &str, x: &Tensor, windows: &[Window], fill: &Expr) -> Tensor {
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
            if w.begin != 0 {
                inside = inside.and(p.clone().greater_equal(w.begin.expr()));
            }
            if w.past {
                inside = inside.and(p.clone().less((w.extent + w.begin).expr()));
            }
            at[skip + k] = p - &w.begin.expr();
        }
        Expr::if_then_else(inside, x.at(at), fill.clone())
    })
}
