//! Tensors of strings, which are known when a model is imported and only then.
//!
//! Modules have no type for strings. Operators on them run at import, on constants and on inputs whose
//! values are given. At the border of a model a string is its UTF-8 bytes: a tensor of strings is one
//! of `uint8` with one more axis, the last, along which each string is filled up with zeros.

use std::sync::Arc;

use tilewright_ir::{DType, Error, Result, Tensor};

use crate::extents::checked_shape;
use crate::proto::{DataType, EXTERNAL, TensorProto};

/// Strings in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    shape: Vec<usize>,
    values: Arc<[String]>,
}

impl Texts {
    /// As many strings as a shape has elements.
    ///
    /// # Errors
    /// [`Error::Model`] for another number of them.
    pub(crate) fn new(shape: &[usize], values: Vec<String>) -> Result<Texts> {
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if count == Some(values.len()) {
            Ok(Texts { shape: shape.to_vec(), values: values.into() })
        } else {
            Err(Error::model(format!(
                "a tensor of shape {shape:?} is given {} strings",
                values.len()
            )))
        }
    }

    /// Whether a constant of the file holds strings.
    pub(crate) fn is_in(proto: &TensorProto) -> bool {
        DataType::try_from(proto.data_type) == Ok(DataType::String)
    }

    /// The strings of a constant.
    ///
    /// # Errors
    /// [`Error::Model`] where their number does not fit the shape, or one is not UTF-8;
    /// [`Error::Unsupported`] for strings in another file.
    pub(crate) fn read(proto: &TensorProto) -> Result<Texts> {
        if proto.data_location == EXTERNAL {
            return Err(Error::unsupported("strings in external data are not supported"));
        }
        let shape = checked_shape(&proto.dims)?;
        let values = proto
            .string_data
            .iter()
            .map(|bytes| String::from_utf8(bytes.to_vec()).map_err(|_| not_utf8()))
            .collect::<Result<_>>()?;
        Texts::new(&shape, values)
    }

    /// Extents.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strings.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    /// The positions of the strings in a list of them, and the list.
    pub(crate) fn listed(&self) -> Result<(Tensor, Texts)> {
        let positions: Vec<i64> = (0..self.values.len() as i64).collect();
        let list = Texts { shape: vec![self.values.len()], values: self.values.clone() };
        Ok((Tensor::from_slice(&self.shape, &positions)?, list))
    }

    /// The bytes of the strings along one more axis, which is as long as the longest of them and not
    /// empty.
    pub(crate) fn to_bytes(&self) -> Result<Tensor> {
        let width = self.values.iter().map(String::len).max().unwrap_or(0).max(1);
        let mut tensor = Tensor::zeros(DType::U8, &[&self.shape[..], &[width]].concat())?;
        for (to, text) in tensor.bytes_mut().chunks_exact_mut(width).zip(self.values.iter()) {
            to[..text.len()].copy_from_slice(text.as_bytes());
        }
        Ok(tensor)
    }

    /// The strings whose bytes lie along the last axis.
    ///
    /// # Errors
    /// [`Error::Input`] for other elements than `uint8`, a tensor without axes, and bytes that are not
    /// UTF-8.
    pub(crate) fn of_bytes(tensor: &Tensor) -> Result<Texts> {
        let (DType::U8, Some((&width, shape))) = (tensor.dtype(), tensor.shape().split_last())
        else {
            return Err(Error::input(format!(
                "strings are uint8 with their bytes along the last axis, not {} of shape {:?}",
                tensor.dtype(),
                tensor.shape()
            )));
        };
        let count: usize = shape.iter().product();
        let values: Vec<String> = (0..count)
            .map(|k| {
                let bytes = &tensor.bytes()[k * width..(k + 1) * width];
                let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
                String::from_utf8(bytes[..end].to_vec()).map_err(|_| Error::input(NOT_UTF8))
            })
            .collect::<Result<_>>()?;
        Texts::new(shape, values)
    }
}

const NOT_UTF8: &str = "a string is not valid UTF-8";

fn not_utf8() -> Error {
    Error::model(NOT_UTF8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_become_bytes_and_come_back() {
        let texts = ["", "né", "abc\0d"].map(str::to_owned).to_vec();
        let texts = Texts::new(&[3, 1], texts).expect("three strings");
        let bytes = texts.to_bytes().expect("bytes");
        assert_eq!(bytes.shape(), [3, 1, 5]);
        assert_eq!(Texts::of_bytes(&bytes).expect("strings"), texts);
        let none = Texts::new(&[0], Vec::new()).expect("no strings");
        assert_eq!(none.to_bytes().expect("bytes").shape(), [0, 1]);
        assert!(Texts::new(&[2], vec![String::new()]).is_err());
        assert!(Texts::new(&[usize::MAX, 2], vec![String::new()]).is_err());
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let bad = Tensor::from_slice(&[1, 2], &[0xc3u8, 0x28]).expect("bytes");
        assert_eq!(text_or_error(bad), "a string is not valid UTF-8");
        let wide = Tensor::from_slice(&[1], &[7i64]).expect("numbers");
        assert_eq!(
            text_or_error(wide),
            "strings are uint8 with their bytes along the last axis, not int64 of shape [1]"
        );
    }

    fn text_or_error(t: Tensor) -> String {
        Texts::of_bytes(&t).map_or_else(|e| e.to_string(), |t| format!("{t:?}"))
    }
}
