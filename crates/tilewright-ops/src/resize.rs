//! Resizing by interpolation.
//!
//! Interpolation is separable: along each axis, cell `o` of the result is a weighted sum of a few
//! elements, its *taps*. Which elements and weights is known once the sizes are, so they are
//! computed here in `f64` and become constant tables that the function takes as parameters. An
//! axis whose every cell has one tap of weight one only picks elements; where the index has a
//! closed form `(o * a + b) // c`, it is written so and needs no table, which keeps the access
//! open to analysis. Along an axis of open extent the tables are stages of the function (`open`),
//! by the same formulas. Tables have a row for each tap: cells that lie side by side find what they read side by side.
//!
//! For a coordinate `x` between elements, tap `k` has the weight `f((k - x) * s)` with the filter
//! `f` of the mode: a triangle (linear) or Keys' cubic kernel ("Cubic convolution interpolation
//! for digital image processing", 1981). `s` is one, or below one to widen the filter against
//! aliasing when shrinking.

use tilewright_ir::{DType, Dim, Error, Expr, Result, Tensor as Data, TensorFunc};

mod open;
mod parameters;

pub use parameters::{Coordinates, Interpolation, Nearest, Resize, ratio};
use parameters::{HALF_WIDTH, TABLE_LIMIT, Tables, tap_range};

use crate::operand::{Operand, require_float, require_number, rounded};
use crate::te::{self, Axis, Reducer, Tensor};

/// One tap: an element and its weight.
type Tap = (usize, f64);

/// What happens along one axis.
enum Along {
    /// Nothing.
    Keep,
    /// Each cell is the element `clamp((o * a + b) // c)`.
    Affine { a: i64, b: i64, c: i64, low: bool, high: bool },
    /// Each cell is the element that the table says.
    Pick(Vec<usize>),
    /// Each cell is a weighted sum of equally many taps.
    Weigh(Vec<Vec<Tap>>),
    /// Tables of an axis of open extent, which the function computes.
    Open(Tables),
}

impl Along {
    fn weighs(&self) -> bool {
        matches!(self, Along::Weigh(_) | Along::Open(Tables { weight: Some(_), .. }))
    }
}

/// See [`Resize`]. Parameters: `x`, the tables, the result. The tables are constants that come
/// with the function; any other value of them is another function.
///
/// Nearest neighbours take every type, straight lines numbers, the other modes floats. Integers are interpolated as
/// `float32`, and truncated.
pub fn resize(p: &Resize) -> Result<(TensorFunc, Vec<Data>)> {
    let name = "resize";
    let rank = p.x.rank();
    let cropped = p.crop.as_ref().map_or(rank, Vec::len);
    if p.sizes.len() != rank || p.scales.len() != rank || cropped != rank {
        return Err(Error::input(format!(
            "{name}: {} sizes and {} scales for {}",
            p.sizes.len(),
            p.scales.len(),
            p.x
        )));
    }
    match p.mode {
        Interpolation::Nearest(_) => {}
        Interpolation::Linear if !p.antialias => require_number(name, p.x.dtype)?,
        Interpolation::Linear | Interpolation::Cubic(_) => require_float(name, p.x.dtype)?,
    }
    let along: Vec<Along> = (0..rank).map(|a| p.along(a)).collect::<Result<_>>()?;

    let x = p.x.placeholder("x");
    let work = p.work();
    let mut inputs = vec![x.clone()];
    let mut data = Vec::new();
    let mut table = |name: String, shape: &[usize], values: Data| {
        let t = te::placeholder(name, shape, values.dtype());
        inputs.push(t.clone());
        data.push(values);
        t
    };

    // All axes that pick, in one stage.
    let mut shape = p.x.shape.clone();
    let mut picked = Vec::new();
    for (a, along) in along.iter().enumerate() {
        if !along.weighs() {
            shape[a] = p.sizes[a];
        }
        picked.push(match along {
            Along::Pick(indices) => {
                let indices: Vec<i32> = indices.iter().map(|&i| i as i32).collect();
                let len = [indices.len()];
                Some(table(format!("index_{a}"), &len, Data::from_slice(&len, &indices)?))
            }
            Along::Open(Tables { index, weight: None }) => Some(index.clone()),
            _ => None,
        });
    }

    let picks = along.iter().any(|a| !matches!(a, Along::Keep) && !a.weighs());
    let weighs = along.iter().filter(|a| a.weighs()).count();
    let mut value = x;
    if picks || weighs == 0 {
        let stage = if weighs == 0 { name } else { "resize_pick" };
        value = te::compute(stage, &shape, |i| {
            let axes = along.iter().zip(&picked).zip(&p.x.shape).zip(i);
            value.at(axes.map(|(((along, table), extent), o)| {
                picked_index(along, table.as_ref(), *extent, o)
            }))
        });
    }

    // Each axis that weighs, in a stage of its own.
    let mut left = weighs;
    for (a, along) in along.iter().enumerate() {
        let (index, weight, count) = match along {
            Along::Weigh(taps) => {
                let count = taps.first().map_or(0, Vec::len);
                let len = [count, taps.len()];
                let by_tap = (0..count).flat_map(|k| taps.iter().map(move |all| all[k]));
                let indices: Vec<i32> = by_tap.clone().map(|t| t.0 as i32).collect();
                let index = table(format!("index_{a}"), &len, Data::from_slice(&len, &indices)?);
                let weights = by_tap.map(|t| t.1);
                let weights = match work {
                    DType::F64 => Data::from_slice(&len, &weights.collect::<Vec<f64>>())?,
                    _ => Data::from_slice(&len, &weights.map(|w| w as f32).collect::<Vec<f32>>())?,
                };
                (index, table(format!("weight_{a}"), &len, weights), Dim::from(count))
            }
            Along::Open(Tables { index, weight: Some(weight) }) => {
                (index.clone(), weight.clone(), weight.shape()[0])
            }
            _ => continue,
        };
        left -= 1;
        let stage =
            if left == 0 && work == p.x.dtype { name.to_owned() } else { format!("resize_{a}") };
        shape[a] = p.sizes[a];
        let tap: Axis = te::reduce_axis(count, "tap");
        value = te::compute(stage, &shape, |i| {
            let mut at = i.to_vec();
            at[a] = index.at([&tap.expr(), &i[a]]);
            if matches!(along, Along::Open(_)) {
                at[a] = inside(at[a].clone(), p.x.shape[a]);
            }
            let weight = weight.at([&tap.expr(), &i[a]]);
            let term = value.at(at).cast(work) * weight.clone();
            // A widened filter has taps that some cells give no weight: NaN there counts nothing.
            let term = if p.antialias {
                let zero = Expr::float(0.0, work);
                Expr::select(weight.equal(zero.clone()), zero, term)
            } else {
                term
            };
            te::reduce(Reducer::Sum, term, [&tap])
        });
    }
    let out: Tensor = rounded(name, value, p.x.dtype);
    Ok((te::func(&inputs, [&out])?, data))
}

/// Where along an axis that picks the element lies which comes to position `o`.
fn picked_index(along: &Along, table: Option<&Tensor>, extent: Dim, o: &Expr) -> Expr {
    match (along, table) {
        (Along::Open(_), Some(table)) => inside(table.at([o]), extent),
        (_, Some(table)) => table.at([o]),
        (&Along::Affine { a, b, c, low, high }, _) => {
            let at = (o * a + b).floordiv(c);
            let at = if low { at.max(0) } else { at };
            if high { at.min((extent - 1).expr()) } else { at }
        }
        _ => o.clone(),
    }
}

/// A position that is among the elements, so that this can be seen.
fn inside(at: Expr, extent: Dim) -> Expr {
    at.max(0).min((extent - 1).expr())
}

impl Resize {
    fn along(&self, axis: usize) -> Result<Along> {
        let (extent, size, scale) = (self.x.shape[axis], self.sizes[axis], self.scales[axis]);
        let whole = self.crop.as_ref().is_none_or(|crop| crop[axis] == [0.0, 1.0]);
        if extent == size && scale == 1.0 && whole {
            return Ok(Along::Keep);
        }
        if size == 0 {
            return Ok(Along::Pick(Vec::new()));
        }
        let (Some(extent), Some(size)) = (extent.known(), size.known()) else {
            return self.along_open(axis);
        };
        if extent == 0 {
            return refuse_axis(format!("there is nothing to make {size} cells from"), axis);
        }
        if !(scale > 0.0 && scale.is_finite()) {
            return refuse_axis(format!("the scale is {scale}"), axis);
        }
        let (squeeze, reach) = (self.squeeze(axis), self.reach());
        if extent > i32::MAX as usize || size as f64 * (2.0 * reach / squeeze + 2.0) > TABLE_LIMIT {
            return refuse_axis(
                format!("a resize from {extent} to {size} needs too large a table"),
                axis,
            );
        }
        // Far outside, everything is the edge.
        let far = (1u64 << 40) as f64;
        let coordinates: Vec<f64> = (0..size.max(2))
            .map(|o| self.coordinate(axis, extent, o as f64).clamp(-far, far))
            .collect();
        let slope = coordinates[1] - coordinates[0];
        let coordinates = &coordinates[..size];
        if coordinates[0].is_nan() || coordinates[size - 1].is_nan() {
            return refuse_axis(format!("the scale {scale:e} leads nowhere"), axis);
        }
        if let Interpolation::Nearest(nearest) = self.mode {
            let last = (extent - 1) as f64;
            let picks = coordinates.iter().map(|x| nearest.round(*x).clamp(0.0, last) as usize);
            return Ok(Along::from_picks(picks.collect(), extent, slope));
        }
        let taps: Vec<Vec<Tap>> =
            coordinates.iter().map(|x| self.taps(*x, extent, squeeze, reach)).collect();
        // Where interpolation meets elements only, nothing needs to be weighed.
        match taps
            .iter()
            .map(|taps| {
                let mut heavy = taps.iter().filter(|t| t.1 != 0.0);
                heavy.next().filter(|t| t.1 == 1.0 && heavy.next().is_none()).map(|t| t.0)
            })
            .collect::<Option<Vec<usize>>>()
        {
            Some(picks) => Ok(Along::from_picks(picks, extent, slope)),
            None => Ok(Along::Weigh(taps)),
        }
    }

    /// [`Resize::along`] of an axis of an open extent: nearest neighbours by a whole factor, or by half, a quarter
    /// and so on, in closed form, else tables that the function computes.
    fn along_open(&self, axis: usize) -> Result<Along> {
        let (extent, size, scale) = (self.x.shape[axis], self.sizes[axis], self.scales[axis]);
        let plain = self.crop.is_none()
            && matches!(self.mode, Interpolation::Nearest(_))
            && self.coordinates != Coordinates::AlignCorners;
        // How many cells an element becomes, or how many elements a cell: then coordinates are exact.
        let more = Some(scale).filter(|s| s.fract() == 0.0 && (1.0..=64.0).contains(s));
        let fewer = Some(scale.recip()).filter(|s| [2.0, 4.0, 8.0, 16.0, 32.0, 64.0].contains(s));
        // Of fewer cells others lie where the extent says.
        let same = matches!(
            self.coordinates,
            Coordinates::HalfPixel | Coordinates::Asymmetric | Coordinates::Middle
        );
        let fewer = fewer.filter(|_| same);
        let lengths = match (more, fewer) {
            (Some(by), _) if size == extent * by as usize => {
                Some((8, 8 * by as usize, (1, by as i64)))
            }
            (None, Some(by)) if size == extent.floordiv(by as usize) => {
                Some((8 * by as usize, 8, (by as i64, 1)))
            }
            _ => None,
        };
        if let Some((elements, cells, slope)) = lengths.filter(|_| plain) {
            // The same elements, by the same formula, for all extents that are long enough: the
            // pattern repeats after one element or cell, and only the ends are different.
            let like = Operand { shape: vec![Dim::from(elements)], dtype: self.x.dtype };
            let sizes = vec![Dim::from(cells)];
            let along = Resize { x: like, sizes, scales: vec![scale], ..self.clone() }.along(0)?;
            if let Along::Affine { a, c, .. } = along
                && (a, c) == slope
            {
                return Ok(along);
            }
        }
        if scale <= 0.0 || scale.is_infinite() {
            return Err(Error::input(format!("resize: axis {axis}: the scale is {scale}")));
        }
        if self.crop.is_some() {
            extent.fixed("resize")?;
            size.fixed("resize")?;
        }
        open::tables(self, axis).map(Along::Open)
    }

    /// Where cell `o` of the result lies among the elements. Which neighbour is the nearest is decided in
    /// `float32`, each operation rounded, as by those who wrote the models: 12 / 0.6 is 20.
    fn coordinate(&self, axis: usize, extent: usize, o: f64) -> f64 {
        let nearest = matches!(self.mode, Interpolation::Nearest(_));
        let rounded = |v: f64| if nearest { f64::from(v as f32) } else { v };
        let (size, scale) = (self.sizes[axis].known().unwrap_or(1), rounded(self.scales[axis]));
        let (extent, end) = (extent as f64, extent as f64 - 1.0);
        if let Some([first, last]) = self.crop.as_ref().map(|crop| crop[axis]) {
            return match size {
                1 => rounded((first + last) / 2.0 * end),
                _ => {
                    let along = rounded(rounded(o * rounded(last - first)) * end);
                    rounded(rounded(first * end) + rounded(along / (size as f64 - 1.0)))
                }
            };
        }
        let middle = rounded((o + 0.5) / scale);
        let half = rounded(middle - 0.5);
        let width = rounded(scale * extent);
        match self.coordinates {
            Coordinates::HalfPixel => half,
            Coordinates::PytorchHalfPixel if size > 1 => half,
            Coordinates::PytorchHalfPixel => 0.0,
            Coordinates::HalfPixelSymmetric => {
                let rest = rounded(1.0 - rounded(size as f64 / width));
                rounded(rounded(extent / 2.0 * rest) + half)
            }
            Coordinates::AlignCorners if width == 1.0 || size == 1 => 0.0,
            Coordinates::AlignCorners => rounded(rounded(o * end) / rounded(width - 1.0)),
            Coordinates::Asymmetric => rounded(o / scale),
            Coordinates::Middle => middle,
        }
    }

    /// Which cells along an axis of known extents lie outside of the elements.
    pub fn outside(&self, axis: usize) -> Vec<bool> {
        let (extent, size) = (self.x.shape[axis].known(), self.sizes[axis].known());
        let (Some(extent), Some(size)) = (extent, size) else { return Vec::new() };
        let within = 0.0..=extent as f64 - 1.0;
        (0..size).map(|o| !within.contains(&self.coordinate(axis, extent, o as f64))).collect()
    }

    /// The taps around a coordinate: as many for each coordinate.
    fn taps(&self, x: f64, extent: usize, squeeze: f64, reach: f64) -> Vec<Tap> {
        let base = x.floor();
        let last = extent as i64 - 1;
        let mut taps: Vec<Tap> = tap_range(squeeze, reach)
            .map(|k| {
                let at = base as i64 + k;
                let weight = self.filter((k as f64 - (x - base)) * squeeze);
                let outside = self.exclude_outside && !(0..=last).contains(&at);
                (at.clamp(0, last) as usize, if outside { 0.0 } else { weight })
            })
            .collect();
        let sum: f64 = taps.iter().map(|t| t.1).sum();
        if (self.antialias || self.exclude_outside) && sum != 0.0 {
            taps.iter_mut().for_each(|t| t.1 /= sum);
        }
        taps
    }

    /// How far the filter is widened along an axis, as a factor of distances.
    fn squeeze(&self, axis: usize) -> f64 {
        if self.antialias { self.scales[axis].min(1.0) } else { 1.0 }
    }

    /// How far an element counts.
    fn reach(&self) -> f64 {
        match self.mode {
            Interpolation::Nearest(_) => 0.5,
            Interpolation::Linear => 1.0,
            Interpolation::Cubic(_) => 2.0,
        }
    }

    fn filter(&self, distance: f64) -> f64 {
        let d = distance.abs();
        match self.mode {
            Interpolation::Cubic(a) if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
            Interpolation::Cubic(a) if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
            Interpolation::Cubic(_) => 0.0,
            _ => (1.0 - d).max(0.0),
        }
    }
}

fn refuse_axis(why: String, axis: usize) -> Result<Along> {
    Err(Error::input(format!("resize: axis {axis}: {why}")))
}

impl Nearest {
    fn round(self, x: f64) -> f64 {
        match self {
            Nearest::RoundPreferFloor => (x - (0.5 + HALF_WIDTH)).ceil(),
            Nearest::RoundPreferCeil => (x + (0.5 + HALF_WIDTH)).floor(),
            Nearest::Floor => x.floor(),
            Nearest::Ceil => x.ceil(),
        }
    }
}

impl Along {
    /// Picks in closed form, where there is one for every cell.
    fn from_picks(picks: Vec<usize>, extent: usize, slope: f64) -> Self {
        if picks.len() == extent && picks.iter().enumerate().all(|(o, &p)| o == p) {
            return Along::Keep;
        }
        let last = extent as i64 - 1;
        let denominators = (1..=64i64).map(|c| ((slope * c as f64).round() as i64, c));
        // A fraction that drifts away from the slope cannot fit.
        for (a, c) in denominators {
            let drift = (a as f64 / c as f64 - slope).abs() * picks.len() as f64;
            if a < 0 || !fits_int32(a) || drift >= 2.0 || drift.is_nan() {
                continue;
            }
            // Each pick bounds `b`; the first and the last element only from one side.
            let (mut least, mut most) = (i64::MIN, i64::MAX);
            for (o, &p) in (0..).zip(&picks) {
                let p = p as i64;
                if p > 0 {
                    least = least.max(c * p - o * a);
                }
                if p < last {
                    most = most.min(c * (p + 1) - 1 - o * a);
                }
            }
            if least > most {
                continue;
            }
            let b = 0i64.clamp(least, most);
            let end = (picks.len() as i64 - 1) * a + b;
            if fits_int32(b) && fits_int32(end) {
                let (low, high) = (b < 0, end.div_euclid(c) > last);
                return Along::Affine { a, b, c, low, high };
            }
        }
        Along::Pick(picks)
    }
}

fn fits_int32(v: i64) -> bool {
    i32::try_from(v).is_ok()
}
