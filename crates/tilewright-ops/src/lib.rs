//! Operator library: tensor expressions that build tensor functions.
//!
//! [`te`] is the small language: tensors defined element by element. The other modules hold the
//! operators, each a function from typed parameters to a
//! [`TensorFunc`](tilewright_ir::TensorFunc) in the operator's logical layout:
//!
//! * [`elementwise`]: one element of the result from one element of each operand.
//! * [`contraction`]: sums of products: matmul, gemm, convolutions; [`einsum`]: any other.
//! * [`subpixel`]: transposed convolutions as ordinary ones.
//! * [`pool`]: windows that slide.
//! * [`reduce`]: axes that go: sums, extremes, their positions, running sums.
//! * [`norm`]: softmax and the normalisations.
//! * [`movement`]: data that only moves; [`resize`]: interpolated images.
//! * [`sample`]: values between the cells of an image; [`regions`]: parts of one that data choose.
//! * [`dynamic`]: results whose sizes data decide; [`unique`]: rows that differ; [`suppression`]: boxes that are kept.
//! * [`check`]: data that stop the run where they are not what they must be.
//! * [`blocks`]: products with weights of a few bits; [`cache`]: keys and values that grow.
//! * [`quantize`]: integers that stand for floats; [`narrow`]: floats and integers of less than a byte or of one.
//! * [`recurrent`]: LSTM, GRU and RNN, step by step; [`linear_attention`]: attention that is so too.
//! * Determinants of matrices: [`matrix`]; ensembles of decision trees: [`trees`]; probabilities of pairs: [`coupling`].
//! * [`creation`]: tensors from nothing but parameters.
//!
//! Sizes are numbers or open ([`Dim`]): many operators work with both, the others
//! refuse an open size. A function's parameters are the operands in the order of the
//! function's documentation, then the results. Parameters that do not fit are refused:
//! [`Error::Input`](tilewright_ir::Error::Input) where they contradict each other,
//! [`Error::Unsupported`](tilewright_ir::Error::Unsupported) where a type or an option is not
//! covered. `float16` and `bfloat16` are computed and accumulated in `float32` and rounded at the
//! end. Shapes of results are found by asking the function: see [`results`].
//!
//! ```
//! use tilewright_ops::contraction::{Conv, conv};
//! use tilewright_ops::{Operand, results};
//! let p = Conv {
//!     strides: vec![2, 2],
//!     pads_begin: vec![1, 1],
//!     pads_end: vec![1, 1],
//!     bias: true,
//!     ..Conv::new(Operand::f32(&[1, 3, 65, 77]), Operand::f32(&[16, 3, 3, 3]))
//! };
//! let func = conv(&p)?;
//! assert_eq!(results(&func, 1), [Operand::f32(&[1, 16, 33, 39])]);
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Architecture invariant:** an operator knows nothing of models, files, layouts or targets,
//! and no other crate looks at an operator's name to learn what it does.

pub mod blocks;
pub mod cache;
pub mod check;
pub mod contraction;
pub mod coupling;
pub mod creation;
pub mod dynamic;
pub mod einsum;
pub mod elementwise;
mod keys;
pub mod linear_attention;
mod loops;
pub mod matrix;
pub mod movement;
pub mod narrow;
pub mod norm;
mod operand;
pub mod pad;
pub mod pool;
pub mod quantize;
pub mod recurrent;
pub mod reduce;
pub mod regions;
pub mod resize;
pub mod sample;
mod sort;
pub mod subpixel;
pub mod suppression;
pub mod te;
mod top_k;
pub mod trees;
pub mod unique;
pub mod window;

use tilewright_ir::Dim;

pub use operand::{Operand, Scalar, Unequal, advice, broadcast_shapes, unequal, unequal_shapes};

/// Shapes and types of the results of an operator's function: its last `count` parameters.
pub fn results(func: &tilewright_ir::TensorFunc, count: usize) -> Vec<Operand> {
    let all: Vec<Operand> = func
        .buffers()
        .map(|b| {
            let shape = b
                .shape
                .iter()
                .map(|e| Dim::from_expr(e).map_or(Dim::from(0), Dim::outside))
                .collect();
            Operand { shape, dtype: b.dtype() }
        })
        .collect();
    all[all.len().saturating_sub(count)..].to_vec()
}
