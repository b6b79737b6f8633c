//! Compile and run tensor programs.
//!
//! A [`Module`] comes from an ONNX model or from TVMScript ([`load()`], [`parse`]), or is built with
//! [`te`]; [`print()`] is its text. [`compile()`] turns it into native code in this process, an
//! [`Executable`] that takes and gives [`Tensor`]s:
//!
//! ```
//! use tilewright::{Options, Sizes, Tensor, compile, load};
//! # if !cfg!(feature = "onnx") { return Ok(()) }
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
//! let module = load(model, &Sizes::new().dim("N", 2))?;
//! let executable = compile(&module, &Options::new())?;
//! let images = Tensor::from_slice(&[2, 1, 8, 8], &[0.5f32; 128])?;
//! let outputs = executable.run(&[images])?;
//! assert_eq!(outputs[0].shape(), [2, 10]);
//! # Ok::<(), tilewright::Error>(())
//! ```
//!
//! A function of one's own is written element by element, over logical indices:
//!
//! ```
//! use tilewright::te::{self, Reducer};
//! use tilewright::{DType, Module, Options, Tensor, compile};
//! let a = te::placeholder("a", &[5, 7], DType::F32);
//! let b = te::placeholder("b", &[7, 3], DType::F32);
//! let k = te::reduce_axis(7, "k");
//! let c = te::compute("c", &[5, 3], |i| {
//!     te::reduce(Reducer::Sum, a.at([&i[0], &k.expr()]) * b.at([&k.expr(), &i[1]]), [&k])
//! });
//! let mut module = Module::new();
//! module.insert("matmul", te::func([&a, &b], [&c])?);
//! let executable = compile(&module, &Options::default())?;
//! let ones = |shape: &[usize]| Tensor::from_slice(shape, &vec![1.0f32; shape.iter().product()]);
//! let outputs = executable.run(&[ones(&[5, 7])?, ones(&[7, 3])?])?;
//! assert_eq!(outputs[0].as_slice::<f32>(), Some(&[7.0; 15][..]));
//! # Ok::<(), tilewright::Error>(())
//! ```
//!
//! ONNX models are read by the feature `onnx`, which is on unless default features are off.
//!
//! Layouts are planned by estimates; with the feature `tuning` and [`Options::tuning`], by a file of
//! measured times.
//!
//! How its loops run and how its tensors lie in memory is said by a [`schedule`].

#![warn(missing_docs)]

pub mod schedule;
pub mod te;

pub use tilewright_driver::{
    DType, Error, Executable, IoLayout, LayoutPolicy, Module, OptLevel, Options, Result, Session,
    SizeRange, Sizes, Target, Tensor, compile, compile_file, load, parse, print,
};
