//! How a tensor lies in an input or output whose layout is not the model's own.
//!
//! Each logical index, after an offset, is written as a number of mixed radix, and the digits of all
//! axes are the indices of the stored tensor in some order. So the place of an element is a sum of one
//! number for each axis, and storing and reading are a loop over the elements with a table an axis.
//!
//! Cells that no element has are *padding*. In an input they must hold the pad value: the code may read
//! them, and takes them for that value. In an output they hold the pad value where there is one, and
//! anything otherwise.
//!
//! A graph function carries it in the attributes [`INPUTS`] and [`OUTPUTS`], a list with an entry for
//! each parameter or result, `None` for those in the model's own layout.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::dtype::DType;
use tilewright_ir::error::{Error, Result};
use tilewright_ir::expr::Var;
use tilewright_ir::scalar::Scalar;
use tilewright_ir::stmt::{Attr, Attrs};
use tilewright_ir::tensor::Tensor;
use tilewright_ir::text::commas;

/// Attribute of a graph function: how its parameters are stored.
pub const INPUTS: &str = "stored_inputs";
/// Attribute of a graph function: how its results are stored.
pub const OUTPUTS: &str = "stored_outputs";

/// How a tensor is stored; see the head of this file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Logical extents.
    pub logical: Vec<usize>,
    /// For each logical axis, what is added to an index, and the extents of the digits of the sum,
    /// the most significant first.
    pub digits: Vec<(usize, Vec<usize>)>,
    /// The axes of the stored tensor: logical axis, and position among its digits.
    pub order: Vec<(usize, usize)>,
    /// What the padding holds; `None` where that is not known, or there is none.
    pub pad: Option<f64>,
}

impl Stored {
    /// The extents of the stored tensor.
    pub fn physical(&self) -> Vec<usize> {
        self.order.iter().map(|(axis, k)| self.digits[*axis].1[*k]).collect()
    }

    /// What an error says of a tensor that is given with another shape.
    pub fn note(&self) -> String {
        format!("it stores a tensor of shape {:?} as {self}", self.logical)
    }

    /// Whether there are cells that no element has.
    pub fn is_padded(&self) -> bool {
        self.digits
            .iter()
            .zip(&self.logical)
            .any(|((_, digits), n)| digits.iter().product::<usize>() != *n)
    }

    /// A logical tensor as it is stored, with the pad value in the padding; zero where there is none.
    ///
    /// # Errors
    /// [`Error::Input`] if it has another shape, or there is no memory.
    pub fn store(&self, tensor: &Tensor) -> Result<Tensor> {
        self.fits("logical", &self.logical, tensor)?;
        let mut out = Tensor::zeros(tensor.dtype(), &self.physical())?;
        if let Some(pad) = self.pad.filter(|pad| *pad != 0.0 && self.is_padded()) {
            let value = Scalar::float(pad, DType::F64).cast(tensor.dtype()).bits().to_le_bytes();
            let size = tensor.dtype().bytes();
            out.bytes_mut().chunks_exact_mut(size).for_each(|c| c.copy_from_slice(&value[..size]));
        }
        self.copy(tensor, &mut out, |element, place| (element, place));
        Ok(out)
    }

    /// The logical tensor of a stored one.
    ///
    /// # Errors
    /// [`Error::Input`] if it has another shape, or there is no memory.
    pub fn load(&self, tensor: &Tensor) -> Result<Tensor> {
        self.fits("stored", &self.physical(), tensor)?;
        let mut out = Tensor::zeros(tensor.dtype(), &self.logical)?;
        self.copy(tensor, &mut out, |element, place| (place, element));
        Ok(out)
    }

    /// Copies every element; `way` says from which position to which, of the element and its cell.
    fn copy(&self, from: &Tensor, to: &mut Tensor, way: impl Fn(usize, usize) -> (usize, usize)) {
        let (size, from) = (from.dtype().bytes(), from.bytes());
        let to = to.bytes_mut();
        self.each(|element, place| {
            let (source, target) = way(element * size, place * size);
            to[target..target + size].copy_from_slice(&from[source..source + size]);
        });
    }

    fn fits(&self, what: &str, shape: &[usize], tensor: &Tensor) -> Result<()> {
        if tensor.shape() == shape {
            Ok(())
        } else {
            Err(Error::input(format!(
                "a {what} tensor has the shape {shape:?} here, and {:?} was given",
                tensor.shape()
            )))
        }
    }

    /// Every element in row-major order with the place of its cell.
    fn each(&self, mut visit: impl FnMut(usize, usize)) {
        let physical = self.physical();
        let tables: Vec<Vec<usize>> = self
            .digits
            .iter()
            .enumerate()
            .map(|(axis, (offset, digits))| {
                let place = |index: usize| {
                    let mut rest = index + offset;
                    let mut sum = 0;
                    for (k, extent) in digits.iter().enumerate().rev() {
                        let at = self.order.iter().position(|o| *o == (axis, k));
                        sum += rest % extent
                            * at.map_or(0, |at| physical[at + 1..].iter().product::<usize>());
                        rest /= extent;
                    }
                    sum
                };
                (0..self.logical[axis]).map(place).collect()
            })
            .collect();
        let Some((inner, outer)) = tables.split_last() else { return visit(0, 0) };
        let rows: usize = outer.iter().map(Vec::len).product();
        let mut at = vec![0usize; outer.len()];
        for row in 0..rows {
            let start: usize = at.iter().zip(outer).map(|(i, table)| table[*i]).sum();
            for (k, place) in inner.iter().enumerate() {
                visit(row * inner.len() + k, start + place);
            }
            for (i, table) in at.iter_mut().zip(outer).rev() {
                *i += 1;
                if *i < table.len() {
                    break;
                }
                *i = 0;
            }
        }
    }

    /// As an attribute.
    pub fn to_attr(&self) -> Attr {
        let offsets: Vec<usize> = self.digits.iter().map(|d| d.0).collect();
        let digits = self.digits.iter().map(|d| list_attr(&d.1)).collect();
        let order = self.order.iter().map(|(axis, k)| list_attr(&[*axis, *k])).collect();
        let entries = [
            ("shape", list_attr(&self.logical)),
            ("offsets", list_attr(&offsets)),
            ("digits", Attr::List(digits)),
            ("order", Attr::List(order)),
            ("pad", self.pad.map_or(Attr::None, Attr::Float)),
        ];
        Attr::Map(entries.into_iter().map(|(key, value)| (Arc::from(key), value)).collect())
    }

    /// What an attribute says; `None` where it says no such thing.
    fn of_attr(attr: &Attr) -> Option<Stored> {
        let Attr::Map(entries) = attr else { return None };
        let (logical, offsets) =
            (numbers(entries.get("shape")?)?, numbers(entries.get("offsets")?)?);
        let digits = number_lists("digits", entries)?;
        let order = number_lists("order", entries)?.into_iter().map(|pair| match pair[..] {
            [axis, k] => Some((axis, k)),
            _ => None,
        });
        let pad = match entries.get("pad")? {
            Attr::None => None,
            Attr::Float(pad) => Some(*pad),
            Attr::Int(pad) => Some(*pad as f64),
            _ => return None,
        };
        let same = offsets.len() == logical.len() && digits.len() == logical.len();
        let order = order.collect::<Option<Vec<_>>>()?;
        let stored =
            Stored { logical, digits: offsets.into_iter().zip(digits).collect(), order, pad };
        (same && stored.is_sound()).then_some(stored)
    }

    /// Whether every digit has one axis, and the digits have room for every index.
    fn is_sound(&self) -> bool {
        let mut all: Vec<(usize, usize)> = self.order.clone();
        all.sort_unstable();
        let digits = self.digits.iter().enumerate();
        let every = digits.flat_map(|(axis, (_, d))| (0..d.len()).map(move |k| (axis, k)));
        let room = |digits: &[usize]| digits.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let fits = self.digits.iter().zip(&self.logical).all(|((offset, digits), n)| {
            offset.checked_add(*n).zip(room(digits)).is_some_and(|(last, room)| last <= room)
        });
        let cells = self.digits.iter().try_fold(1usize, |n, (_, d)| n.checked_mul(room(d)?));
        fits && cells.is_some() && all.into_iter().eq(every)
    }

    /// The entries of a list attribute of a graph function, as many as there are ports.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is no such list, or has another number of entries.
    pub fn list(attrs: &Attrs, key: &str, count: usize) -> Result<Vec<Option<Arc<Stored>>>> {
        let Some(attr) = attrs.get(key) else { return Ok(vec![None; count]) };
        let Attr::List(items) = attr else { return Err(no_layouts(count, key)) };
        if items.len() != count {
            return Err(no_layouts(count, key));
        }
        items
            .iter()
            .map(|item| match item {
                Attr::None => Ok(None),
                item => Stored::of_attr(item)
                    .map(|s| Some(Arc::new(s)))
                    .ok_or_else(|| no_layouts(count, key)),
            })
            .collect()
    }
}

fn list_attr(l: &[usize]) -> Attr {
    Attr::List(l.iter().map(|n| Attr::Int(*n as i64)).collect())
}

fn number_lists(key: &str, entries: &Attrs) -> Option<Vec<Vec<usize>>> {
    match entries.get(key)? {
        Attr::List(items) => items.iter().map(numbers).collect::<Option<Vec<_>>>(),
        _ => None,
    }
}

fn no_layouts(count: usize, key: &str) -> Error {
    Error::malformed(format!(
        "the attribute `{key}` is not a list of {count} layouts, each None or what this \
                 compiler writes there"
    ))
}

/// A list of numbers that are not negative.
fn numbers(attr: &Attr) -> Option<Vec<usize>> {
    let Attr::List(items) = attr else { return None };
    items
        .iter()
        .map(|item| match item {
            Attr::Int(n) => usize::try_from(*n).ok(),
            _ => None,
        })
        .collect()
}

impl fmt::Display for Stored {
    /// The index map: `lambda i0, i1: [i1 // 4, i0, i1 % 4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<Var> =
            (0..self.logical.len()).map(|d| Var::new(format!("i{d}"), DType::I32)).collect();
        let index = |(axis, k): (usize, usize)| {
            let (offset, digits) = &self.digits[axis];
            let inner: usize = digits[k + 1..].iter().product();
            let from = params[axis].expr() + *offset as i64;
            match k {
                0 => from.floordiv(inner as i64),
                _ => from.floordiv(inner as i64).floormod(digits[k] as i64),
            }
        };
        let names = commas(params.iter().map(Var::name));
        write!(f, "lambda {names}: [{}]", commas(self.order.iter().map(|o| index(*o))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lambda i, j: [j // 4, i, j % 4]` of 3 by 6.
    fn blocked(pad: Option<f64>) -> Stored {
        let digits = vec![(0, vec![3]), (0, vec![2, 4])];
        Stored { logical: vec![3, 6], digits, order: vec![(1, 0), (0, 0), (1, 1)], pad }
    }

    fn numbered(shape: &[usize]) -> Tensor {
        let values: Vec<f32> = (0..shape.iter().product()).map(|k| k as f32 + 1.0).collect();
        Tensor::from_slice(shape, &values).expect("small")
    }

    #[test]
    fn every_element_has_its_cell_and_padding_the_pad_value() {
        for pad in [Some(0.0), Some(-2.5), None] {
            let stored = blocked(pad);
            let x = numbered(&[3, 6]);
            let y = stored.store(&x).expect("it fits");
            assert_eq!(y.shape(), [2, 3, 4]);
            let values = y.as_slice::<f32>().expect("floats");
            for (at, value) in values.iter().enumerate() {
                let (jo, i, ji) = (at / 12, at / 4 % 3, at % 4);
                let expected = match jo * 4 + ji {
                    j if j < 6 => (i * 6 + j) as f32 + 1.0,
                    _ => pad.unwrap_or(0.0) as f32,
                };
                assert_eq!(*value, expected, "{at}");
            }
            assert!(stored.load(&y).expect("it fits").same(&x));
        }
    }

    #[test]
    fn offsets_and_scalars() {
        let digits = vec![(2, vec![2, 4])];
        let stored = Stored { logical: vec![5], digits, order: vec![(0, 1), (0, 0)], pad: None };
        let x = numbered(&[5]);
        let y = stored.store(&x).expect("it fits");
        assert_eq!(y.as_slice::<f32>(), Some(&[0.0, 3.0, 0.0, 4.0, 1.0, 5.0, 2.0, 0.0][..]));
        assert!(stored.load(&y).expect("it fits").same(&x));
        let scalar = Stored { logical: vec![], digits: vec![], order: vec![], pad: None };
        assert!(scalar.store(&numbered(&[])).expect("it fits").same(&numbered(&[])));
        let empty = Stored {
            logical: vec![0, 3],
            digits: vec![(0, vec![0]), (0, vec![3])],
            order: vec![(1, 0), (0, 0)],
            pad: None,
        };
        assert_eq!(empty.store(&numbered(&[0, 3])).expect("it fits").shape(), [3, 0]);
    }

    #[test]
    fn another_shape_is_refused() {
        let error = blocked(None).store(&numbered(&[6, 3])).expect_err("another shape");
        assert!(error.to_string().contains("[3, 6]"), "{error}");
        assert!(blocked(None).load(&numbered(&[3, 6])).is_err());
    }

    #[test]
    fn attributes_say_it_and_nonsense_is_refused() {
        let stored = blocked(Some(0.0));
        let two = attrs_of(vec![Attr::None, stored.to_attr()]);
        let read = Stored::list(&two, INPUTS, 2).expect("it reads");
        assert!(read[0].is_none() && read[1].as_deref() == Some(&stored));
        assert_eq!(stored.to_string(), "lambda i0, i1: [i1 // 4, i0, i1 % 4]");
        assert!(Stored::list(&two, INPUTS, 3).is_err());
        assert_eq!(Stored::list(&two, OUTPUTS, 1).expect("nothing is said"), [None]);
        let broken = [
            Stored { order: vec![(1, 0), (1, 0), (0, 0)], ..stored.clone() },
            Stored { order: vec![(1, 0), (0, 0)], ..stored.clone() },
            Stored { logical: vec![3, 9], ..stored.clone() },
            Stored { digits: vec![(1, vec![3]), (0, vec![2, 4])], ..stored.clone() },
            Stored { digits: vec![(0, vec![3]), (0, vec![usize::MAX >> 1, 4])], ..stored },
        ];
        for stored in broken {
            assert!(
                Stored::list(&attrs_of(vec![stored.to_attr()]), INPUTS, 1).is_err(),
                "{stored:?}"
            );
        }
        assert!(Stored::list(&attrs_of(vec![Attr::Bool(true)]), INPUTS, 1).is_err());
    }

    fn attrs_of(list: Vec<Attr>) -> std::collections::BTreeMap<Arc<str>, Attr> {
        Attrs::from([(Arc::from(INPUTS), Attr::List(list))])
    }
}
