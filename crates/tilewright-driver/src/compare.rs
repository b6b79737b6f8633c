//! Comparing the outputs of a run with what they should be.
//!
//! Floats agree where `|got - expected| <= atol + rtol * |expected|`, as in NumPy's `allclose`;
//! infinities agree with themselves, and `NaN` with `NaN`. Integers and `bool` agree where they are
//! equal. A comparison says how far apart the tensors are also where they agree.

use std::fmt;

use tilewright_ir::tensor::index_of;
use tilewright_ir::{DType, Tensor};

/// How far floats may lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the expected value.
    pub relative: f64,
    /// On top of that.
    pub absolute: f64,
}

impl Default for Tolerance {
    /// `1e-4` relative and `1e-5` absolute.
    fn default() -> Self {
        Tolerance { relative: 1e-4, absolute: 1e-5 }
    }
}

/// An element of a tensor, and how large the error is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Extreme {
    /// The error; infinite where only one side is finite, or only one is `NaN`.
    pub error: f64,
    /// Position of the element.
    pub index: Vec<usize>,
}

/// What came of comparing two tensors.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Their types or shapes differ; the text says how.
    Mismatch(String),
    /// They were compared element by element.
    Elements {
        /// Number of elements.
        count: usize,
        /// How many do not agree.
        outside: usize,
        /// The largest absolute error; `None` where every element is exactly right.
        absolute: Option<Extreme>,
        /// The largest error relative to the expected value, of elements whose expected value is
        /// not zero; `None` where those are exactly right.
        relative: Option<Extreme>,
        /// The element that is furthest outside of the tolerance: its position, what it is and what
        /// it should be.
        worst: Option<(Vec<usize>, String, String)>,
    },
}

impl Comparison {
    /// Whether the tensors agree.
    pub fn agrees(&self) -> bool {
        matches!(self, Comparison::Elements { outside: 0, .. })
    }
}

/// Compares two tensors.
///
/// ```
/// use tilewright_driver::Tensor;
/// use tilewright_driver::compare::{Tolerance, compare};
/// let expected = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let got = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.5, 4.0])?;
/// let comparison = compare(&got, &expected, Tolerance::default());
/// assert!(!comparison.agrees());
/// assert_eq!(
///     comparison.to_string(),
///     "differs in 1 of 4 elements: largest error 0.5 at [1, 0], relative 0.16667 at [1, 0]; \
///      at [1, 0] it is 3.5, expected 3",
/// );
/// # Ok::<(), tilewright_driver::Error>(())
/// ```
pub fn compare(got: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Comparison {
    if let Some(differs) = mismatch(got, expected.dtype(), expected.shape()) {
        return differs;
    }
    if got.dtype().is_float() { floats(got, expected, tolerance) } else { integers(got, expected) }
}

/// What [`compare`] says where a tensor has not the expected type or shape, whatever the elements.
pub fn mismatch(got: &Tensor, dtype: DType, shape: &[usize]) -> Option<Comparison> {
    let what = if got.dtype() != dtype {
        format!("has elements of type {}, expected {dtype}", got.dtype())
    } else if got.shape() != shape {
        format!("has the shape {:?}, expected {shape:?}", got.shape())
    } else {
        return None;
    };
    Some(Comparison::Mismatch(what))
}

/// The largest of some errors, and where it is.
#[derive(Default)]
struct Largest {
    error: f64,
    at: Option<usize>,
}

impl Largest {
    fn add(&mut self, error: f64, at: usize) {
        if error > self.error {
            *self = Largest { error, at: Some(at) };
        }
    }

    fn extreme(self, shape: &[usize]) -> Option<Extreme> {
        self.at.map(|at| Extreme { error: self.error, index: index_of(at, shape) })
    }
}

fn floats(got: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Comparison {
    let (mut absolute, mut relative, mut worst) =
        (Largest::default(), Largest::default(), Largest::default());
    let (count, mut outside) = (got.len(), 0);
    for i in 0..count {
        let (a, b) = (got.get_f64(i), expected.get_f64(i));
        if a == b || (a.is_nan() && b.is_nan()) {
            continue;
        }
        let gap = (a - b).abs();
        let gap = if gap.is_finite() { gap } else { f64::INFINITY };
        absolute.add(gap, i);
        if b != 0.0 {
            let ratio = gap / b.abs();
            relative.add(if ratio.is_nan() { f64::INFINITY } else { ratio }, i);
        }
        let allowed = tolerance.absolute + tolerance.relative * b.abs();
        // An expected infinity allows nothing: `inf <= inf` must not hide a finite result.
        if !(gap.is_finite() && gap <= allowed) {
            outside += 1;
            // How many times over; with a tolerance of zero, infinitely many.
            worst.add(if gap.is_finite() { gap / allowed } else { f64::INFINITY }, i);
        }
    }
    let shape = got.shape();
    Comparison::Elements {
        count,
        outside,
        absolute: absolute.extreme(shape),
        relative: relative.extreme(shape),
        worst: worst.at.map(|i| (index_of(i, shape), float_text(got, i), float_text(expected, i))),
    }
}

fn float_text(t: &Tensor, i: usize) -> String {
    Number(t.get_f64(i)).to_string()
}

fn integers(got: &Tensor, expected: &Tensor) -> Comparison {
    let (mut absolute, mut relative) = (Largest::default(), Largest::default());
    let (count, mut outside) = (got.len(), 0);
    for i in 0..count {
        let (a, b) = (got.get_i128(i), expected.get_i128(i));
        if a != b {
            outside += 1;
            let gap = (a - b).unsigned_abs() as f64;
            absolute.add(gap, i);
            if b != 0 {
                relative.add(gap / b.unsigned_abs() as f64, i);
            }
        }
    }
    let shape = got.shape();
    let worst =
        absolute.at.map(|i| (index_of(i, shape), integer_text(got, i), integer_text(expected, i)));
    Comparison::Elements {
        count,
        outside,
        absolute: absolute.extreme(shape),
        relative: relative.extreme(shape),
        worst,
    }
}

fn integer_text(t: &Tensor, i: usize) -> String {
    t.get_i128(i).to_string()
}

/// A number, shown in five significant digits.
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.abs();
        if magnitude == 0.0 || !magnitude.is_finite() {
            return write!(f, "{}", self.0);
        }
        let exponent = magnitude.log10().floor() as i32;
        if !(-4..6).contains(&exponent) {
            let text = format!("{:.4e}", self.0);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            return write!(f, "{}e{exponent}", trim_zeros(digits));
        }
        let decimals = usize::try_from(4 - exponent).unwrap_or(0);
        f.write_str(trim_zeros(&format!("{:.decimals$}", self.0)))
    }
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, outside, absolute, relative, worst) = match self {
            Comparison::Mismatch(how) => return f.write_str(how),
            Comparison::Elements { count, outside, absolute, relative, worst } => {
                (count, outside, absolute, relative, worst)
            }
        };
        match outside {
            0 => f.write_str("agrees")?,
            _ => write!(f, "differs in {outside} of {count} elements")?,
        }
        match absolute {
            None => f.write_str(" exactly")?,
            Some(e) => write!(f, ": largest error {} at {:?}", Number(e.error), e.index)?,
        }
        if let Some(e) = relative {
            write!(f, ", relative {} at {:?}", Number(e.error), e.index)?;
        }
        if let Some((index, got, expected)) = worst {
            write!(f, "; at {index:?} it is {got}, expected {expected}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(shape: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(shape, values).expect("a tensor")
    }

    fn text(got: &Tensor, expected: &Tensor) -> String {
        compare(got, expected, Tolerance { relative: 0.1, absolute: 0.01 }).to_string()
    }

    #[test]
    fn what_is_equal_agrees_exactly() {
        let x = floats(&[4], &[f32::NAN, f32::INFINITY, -0.0, 1.0]);
        let y = floats(&[4], &[f32::NAN, f32::INFINITY, 0.0, 1.0]);
        assert_eq!(text(&x, &y), "agrees exactly");
        assert_eq!(text(&floats(&[0, 3], &[]), &floats(&[0, 3], &[])), "agrees exactly");
        let i = Tensor::from_slice(&[], &[i64::MIN]).expect("a tensor");
        assert_eq!(text(&i, &i), "agrees exactly");
    }

    #[test]
    fn the_largest_errors_and_their_places_are_reported() {
        let expected = floats(&[2, 3], &[100.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        let close = floats(&[2, 3], &[105.0, 0.005, 1.09, 2.0, 3.0, 4.0]);
        assert_eq!(
            text(&close, &expected),
            "agrees: largest error 5 at [0, 0], relative 0.09 at [0, 2]"
        );
        let apart = floats(&[2, 3], &[105.0, 0.02, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!(
            text(&apart, &expected),
            "differs in 2 of 6 elements: largest error 5 at [0, 0], relative 0.25 at [1, 2]; \
             at [1, 2] it is 5, expected 4"
        );
    }

    #[test]
    fn what_is_not_finite_differs_from_what_is() {
        for (a, b) in [
            (f32::NAN, 1.0),
            (1.0, f32::NAN),
            (f32::INFINITY, 1.0),
            (1.0, f32::INFINITY),
            (f32::INFINITY, f32::NEG_INFINITY),
            (f32::NAN, f32::INFINITY),
        ] {
            let comparison =
                compare(&floats(&[1], &[a]), &floats(&[1], &[b]), Tolerance::default());
            assert!(!comparison.agrees(), "{a} against {b}");
            let text = comparison.to_string();
            assert!(text.contains("largest error inf at [0]"), "{text}");
        }
    }

    #[test]
    fn integers_have_no_tolerance() {
        let x = Tensor::from_slice(&[2], &[1_000_000i64, -3]).expect("a tensor");
        let y = Tensor::from_slice(&[2], &[1_000_001i64, -3]).expect("a tensor");
        assert_eq!(
            text(&x, &y),
            "differs in 1 of 2 elements: largest error 1 at [0], relative 1e-6 at [0]; \
             at [0] it is 1000000, expected 1000001"
        );
        let yes = Tensor::from_bools(&[1], &[true]).expect("a tensor");
        let no = Tensor::from_bools(&[1], &[false]).expect("a tensor");
        assert!(!compare(&yes, &no, Tolerance::default()).agrees());
    }

    #[test]
    fn other_types_and_shapes_are_mismatches() {
        let x = floats(&[2], &[1.0, 2.0]);
        let wide = Tensor::from_slice(&[2], &[1.0f64, 2.0]).expect("a tensor");
        assert_eq!(text(&x, &wide), "has elements of type float32, expected float64");
        assert_eq!(text(&x, &floats(&[1, 2], &[1.0, 2.0])), "has the shape [2], expected [1, 2]");
    }

    #[test]
    fn numbers_have_five_digits() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (123456.7, "123457"),
            (12.3456789, "12.346"),
            (0.00012345678, "0.00012346"),
            (1.5e-7, "1.5e-7"),
            (-2.5e20, "-2.5e20"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (9.99999, "10"),
        ] {
            assert_eq!(Number(number).to_string(), text);
        }
    }
}
