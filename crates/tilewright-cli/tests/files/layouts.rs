//! Parameters that lie in memory in another way after a transformation.
//!
//! ```python
//! # layout: A[i] at [i // 4, i % 4], padding 0
//! ```
//!
//! says where each element of `A` is, and what the padding holds: a number, `undef`, or nothing
//! where it does not say, and then it must not be accessed. A function made of that line finds the
//! places: it writes the number of each element there.

use tilewright_driver::{DType, Sizes, Tensor, parse};
use tilewright_interp::{Arg, Interpreter, Output, RunOptions, State};

/// A parameter's new layout.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its name.
    pub name: String,
    indices: String,
    at: String,
    padding: Padding,
}

#[derive(Clone, Debug)]
enum Padding {
    Nothing,
    Undef,
    Is(f64),
}

/// The number of the element that is at each place, if one is.
pub type Places = Vec<Option<usize>>;

impl Layout {
    /// Reads `A[i] at [i // 4, i % 4], padding 0`.
    pub fn parse(text: &str) -> Result<Layout, String> {
        let wrong = || format!("`{text}` is not of the form `A[i] at [i // 4, i % 4], padding 0`");
        let (from, to) = text.split_once("] at [").ok_or_else(wrong)?;
        let (name, indices) = from.split_once('[').ok_or_else(wrong)?;
        let (at, rest) = to.rsplit_once(']').ok_or_else(wrong)?;
        let padding = match rest.strip_prefix(", padding ") {
            None if rest.is_empty() => Padding::Nothing,
            Some("undef") => Padding::Undef,
            Some(value) => Padding::Is(value.parse().map_err(|_| wrong())?),
            None => return Err(wrong()),
        };
        Ok(Layout { name: name.into(), indices: indices.into(), at: at.into(), padding })
    }

    /// Where the elements of a tensor are in its new shape.
    pub fn places(&self, old: &[usize], new: &[usize]) -> Result<Places, String> {
        let list =
            |shape: &[usize]| shape.iter().map(|n| format!("{n},")).collect::<Vec<_>>().join(" ");
        let number = self
            .indices
            .split(',')
            .zip(old)
            .fold("0".to_owned(), |sum, (i, n)| format!("({sum}) * {n} + {}", i.trim()));
        let text = format!(
            "@T.prim_func\ndef places(P: T.Buffer(({}), \"int32\")):\n    for {} in T.grid({}):\n        \
             P[{}] = {number}\n",
            list(new),
            self.indices,
            list(old),
            self.at,
        );
        let render =
            |e: tilewright_driver::Error| format!("layout of `{}`: {}", self.name, e.render());
        let module = parse(&text, &Sizes::new()).map_err(render)?;
        let mut run = Interpreter::new(&module, RunOptions::default()).map_err(render)?;
        let outcome = run.call("places", &[Arg::Fresh(None)]).map_err(render)?;
        let found = outcome.outputs.first().ok_or("no places")?;
        let state = |k: usize| found.states.as_ref().map_or(State::Value, |s| s[k]);
        let at = |k: usize| (state(k) == State::Value).then(|| found.tensor.get_f64(k) as usize);
        let places: Places = (0..found.tensor.len()).map(at).collect();
        if places.iter().flatten().count() == old.iter().product::<usize>() {
            Ok(places)
        } else {
            Err(format!("layout of `{}`: two elements are at one place", self.name))
        }
    }

    /// A tensor in its new shape. Padding that the function is to write was not written before.
    pub fn moved(
        &self,
        tensor: &Tensor,
        places: &Places,
        shape: &[usize],
        written: bool,
    ) -> Result<Arg, String> {
        let mut out = Tensor::zeros(tensor.dtype(), shape).map_err(|e| e.render())?;
        let size = tensor.dtype().bytes();
        let (empty, fill) = match self.padding {
            Padding::Is(v) if !written => (State::Value, v),
            Padding::Undef if !written => (State::Undef, 0.0),
            _ => (State::Unwritten, 0.0),
        };
        let fill = match tensor.dtype() {
            DType::F32 => (fill as f32).to_le_bytes(),
            DType::I32 => (fill as i32).to_le_bytes(),
            other => return Err(format!("no padding of {other}")),
        };
        let mut states = vec![State::Value; places.len()];
        for (k, place) in places.iter().enumerate() {
            match place {
                Some(i) => out.bytes_mut()[k * size..(k + 1) * size]
                    .copy_from_slice(&tensor.bytes()[i * size..(i + 1) * size]),
                None => {
                    out.bytes_mut()[k * size..(k + 1) * size].copy_from_slice(&fill);
                    states[k] = empty;
                }
            }
        }
        Ok(Arg::Partial(out, states))
    }

    /// The elements of a result in their old places, once the padding holds what it should.
    pub fn back(&self, new: &Output, old: &Output, places: &Places) -> Result<Output, String> {
        let mut out = old.clone();
        let mut states = vec![State::Value; old.tensor.len()];
        let size = old.tensor.dtype().bytes();
        for (k, place) in places.iter().enumerate() {
            let state = new.states.as_ref().map_or(State::Value, |s| s[k]);
            let Some(i) = place else {
                let good = match self.padding {
                    Padding::Nothing => state == State::Unwritten,
                    Padding::Undef => state != State::Unwritten,
                    Padding::Is(v) => state == State::Value && new.tensor.get_f64(k) == v,
                };
                if good {
                    continue;
                } else {
                    return Err(format!("the padding of `{}` at {k} is wrong", old.name));
                }
            };
            states[*i] = state;
            out.tensor.bytes_mut()[i * size..(i + 1) * size]
                .copy_from_slice(&new.tensor.bytes()[k * size..(k + 1) * size]);
        }
        Ok(Output { states: Some(states), ..out })
    }
}
