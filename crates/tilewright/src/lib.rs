//! Compile and run tensor programs.
//!
//! A [`Module`] comes from an ONNX model or from TVMScript ([`load()`]), or is built with
//! [`te`](mod@te). [`compile()`] turns it into native code in this process, an [`Executable`]:
//!
//! ```
//! use tilewright::{Options, Sizes, Tensor, compile, load};
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
//! let module = load(model, &Sizes::new().dim("N", 2))?;
//! let executable = compile(&module, &Options::default())?;
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
//! * [`load`](mod@load), [`sizes`]: files to modules, and the sizes that they leave open.
//! * [`pipeline`], [`compile`](mod@compile): modules to native code, stage by stage.
//! * [`assume`]: what functions assume, used before they are compiled.
//! * [`passes`]: every pass by its name.
//! * [`schedule_script`]: schedules written as scripts.
//! * [`te`]: tensor expressions, and how their tensors lie in memory.
//! * [`layout`]: how the tensors of a whole model lie in memory.
//! * [`compare`], [`random`]: comparing outputs, making inputs.
//!
//! The other crates of the project are re-exported: [`ir`], [`script`], [`interp`], [`ops`],
//! [`onnx`], [`sets`], [`transform`], [`schedule`], [`graph`], [`codegen`], [`runtime`].

pub mod assume;
mod checked;
pub mod compare;
pub mod compile;
pub mod layout;
pub mod load;
pub mod passes;
pub mod pipeline;
pub mod random;
pub mod schedule_script;
pub mod sizes;
pub mod te;

pub use compile::compile;
pub use load::{ModuleExt, load};
pub use pipeline::Options;
pub use sizes::Sizes;
pub use tilewright_analysis as analysis;
pub use tilewright_auto as auto;
pub use tilewright_codegen as codegen;
pub use tilewright_graph as graph;
pub use tilewright_interp as interp;
pub use tilewright_ir as ir;
pub use tilewright_ir::{DType, Error, Module, Result, Tensor};
pub use tilewright_onnx as onnx;
pub use tilewright_ops as ops;
pub use tilewright_runtime as runtime;
pub use tilewright_runtime::Executable;
pub use tilewright_schedule as schedule;
pub use tilewright_script as script;
pub use tilewright_sets as sets;
pub use tilewright_target as target;
pub use tilewright_transform as transform;
