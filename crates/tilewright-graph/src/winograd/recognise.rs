//! Convolutions whose windows of 3 x 3 move by one pixel, recognised from their accesses.

use tilewright_analysis::convolution::{self, ConvOperand};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::Linear;
use tilewright_ir::{DType, Dim, Expr, IterKind, TensorFunc, Var, dim};

use crate::stages::{Access, param, sum_of_products};

/// The taps of a window along an axis.
pub(super) const TAPS: i64 = 3;

/// An axis that windows move along.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The pixel of the result.
    pub pixel: Var,
    /// How many there are.
    pub extent: i64,
    pub tap: Var,
    /// The index of the data, and what it is for pixel and tap zero.
    pub data: usize,
    pub offset: i64,
    /// The index of the weights that is the tap.
    pub weights: usize,
    /// The index of the sums that is the pixel.
    pub sums: usize,
}

/// A convolution that is part of a function.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub stages: Vec<Stage>,
    /// The stage of the sums.
    pub sum: usize,
    /// The data, and where they are read.
    pub data: Access,
    /// The weights, a parameter, and where they are read.
    pub weights: Access,
    /// The weights among the parameters.
    pub param: usize,
    /// The two axes that windows move along.
    pub windows: [Window; 2],
}

/// Why a function has no products to save.
pub(super) enum Missing {
    /// It is no convolution.
    Other,
    /// It is one, and this is why it stays.
    Because(String),
}

impl Convolution {
    /// The convolution in a function whose last parameter is its one result.
    pub fn recognise(func: &TensorFunc) -> Result<Convolution, Missing> {
        let plain = func.ret.is_none() && func.size_arguments().is_ok();
        let stages = open_stages(func).filter(|_| plain).ok_or(Missing::Other)?;
        let (sum, _) = sum_of_products(&stages).ok_or(Missing::Other)?;
        let found = convolution::Convolution::recognise(&stages[sum]).ok_or(Missing::Other)?;
        let param = param(func, &found.weights.buffer).ok_or(Missing::Other)?;
        let windows = windows(&stages[sum], &found)?;
        let access = |operand: ConvOperand| (operand.buffer, operand.indices);
        let (data, weights) = (access(found.data), access(found.weights));
        let conv = Convolution { stages, sum, data, weights, param, windows };
        conv.checked().map(|()| conv)
    }

    /// Whether what is around the sums can be around their transforms.
    fn checked(&self) -> Result<(), Missing> {
        let stage = self.stage();
        let floats = [&stage.buffer, &self.data.0, &self.weights.0];
        if floats.iter().any(|b| b.dtype() != DType::F32) {
            return missing("it is not computed in float32");
        }
        if self.stages.iter().filter(|s| s.buffer == stage.buffer).count() > 1 {
            return missing("its sums are written more than once");
        }
        // A stage writes different cells for different results: as many as there are is all.
        let spatial = stage.dims().filter(|d| d.2 == IterKind::Spatial).map(|d| d.1);
        let cells = dim::of_shape(&stage.buffer.shape).map(dim::product);
        if cells != Some(dim::product(spatial)) {
            return missing("its sums do not cover their buffer");
        }
        let makers: Vec<&Stage> = self.stages.iter().filter(|s| s.buffer == self.data.0).collect();
        let one = match &makers[..] {
            [] => true,
            [maker] => !maker.is_reduction() && maker.covers_buffer().is_some(),
            _ => false,
        };
        let before = |s: &Stage| self.stages[..self.sum].iter().any(|o| o.stmt.ptr_eq(&s.stmt));
        if !one || !makers.iter().all(|s| before(s)) {
            return missing("its data are made in more than one step");
        }
        let others = self.stages.iter().enumerate().filter(|(k, _)| *k != self.sum);
        if others.clone().any(|(_, s)| s.value.loads_from(|from| from == &self.weights.0))
            || self.stages[self.sum + 1..].iter().any(|s| {
                let before = self.stages[..self.sum].iter().map(|o| &o.buffer);
                before.chain([&self.weights.0]).any(|b| s.value.loads_from(|from| from == b))
            })
        {
            return missing("what it reads is read again after it");
        }
        Ok(())
    }

    /// The stage of the sums.
    pub fn stage(&self) -> &Stage {
        &self.stages[self.sum]
    }

    /// Products of a result that are summed up beside those of the window.
    pub fn depth(&self) -> Option<i64> {
        let taps = [&self.windows[0].tap, &self.windows[1].tap];
        let others = self
            .stage()
            .dims()
            .filter(|(v, _, kind)| *kind == IterKind::Reduce && !taps.contains(v));
        others.map(|(_, n, _)| n.number()).product()
    }
}

fn missing(text: &str) -> Result<(), Missing> {
    Err(Missing::Because(text.to_owned()))
}

/// The two innermost axes of the data that windows of [`TAPS`] pixels move along, by one pixel.
fn windows(stage: &Stage, conv: &convolution::Convolution) -> Result<[Window; 2], Missing> {
    let (data, weights) = (&conv.data, &conv.weights);
    let mut found = Vec::new();
    let mut why = None;
    for &at in &data.axes.windows {
        let Some(index) = Linear::from_expr(&data.indices[at]) else { continue };
        let moves = |v: &Var| index.coefficient(v).is_some_and(|c| c != 0);
        let (pixels, taps): (Vec<_>, Vec<_>) =
            stage.dims().filter(|d| moves(d.0)).partition(|d| d.2 == IterKind::Spatial);
        let ([(pixel, count, _)], [(tap, extent, _)]) = (&pixels[..], &taps[..]) else { continue };
        let (pixel, tap, extent) = (*pixel, *tap, *extent);
        if extent != Dim::from(1) && extent != Dim::from(TAPS as usize) {
            why = Some(format!("its windows are {extent} pixels long, not {TAPS}"));
            continue;
        }
        if extent != Dim::from(TAPS as usize) {
            continue;
        }
        let stride = (
            index.coefficient(pixel).filter(|c| *c != 0),
            index.coefficient(tap).filter(|c| *c != 0),
        );
        if stride != (Some(1), Some(1)) {
            why = Some("its windows move by more than a pixel, or have gaps".to_owned());
            continue;
        }
        let Some(pixels) = count.number() else {
            why = Some(format!("its results are {count} pixels long, which is open"));
            continue;
        };
        let places = (plain_axis(&weights.indices, tap), plain_axis(&stage.indices, pixel));
        let (Some(in_weights), Some(sums)) = places else { continue };
        let offset = i64::try_from(index.constant).ok().filter(|_| index.terms.len() == 2);
        let pixel_is_elsewhere = weights.indices.iter().any(|e| e.mentions(pixel));
        let one_index = [pixel, tap].iter().all(|v| alone(&data.indices, v).is_some());
        let (Some(offset), true, false) = (offset, one_index, pixel_is_elsewhere) else { continue };
        found.push(Window {
            pixel: pixel.clone(),
            extent: pixels,
            tap: tap.clone(),
            data: at,
            offset,
            weights: in_weights,
            sums,
        });
    }
    found.sort_by_key(|w| w.data);
    let shape = dim::of_shape(&data.buffer.shape).unwrap_or_default();
    match (found.pop(), found.pop()) {
        (Some(second), Some(first))
            if shape.get(first.data).is_some_and(|d| d.known().is_some())
                && shape.get(second.data).is_some_and(|d| d.known().is_some()) =>
        {
            Ok([first, second])
        }
        _ => Err(why.map_or(Missing::Other, Missing::Because)),
    }
}

fn plain_axis(at: &[Expr], v: &Var) -> Option<usize> {
    alone(at, v).filter(|d| at[*d].as_var() == Some(v))
}

/// The one index that has a variable.
fn alone(at: &[Expr], v: &Var) -> Option<usize> {
    let mut having = (0..at.len()).filter(|d| at[*d].mentions(v));
    having.next().filter(|_| having.next().is_none())
}
