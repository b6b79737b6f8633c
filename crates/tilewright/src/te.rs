//! Tensor expressions with a schedule for how their tensors lie in memory.
//!
//! The computation is written once, over logical indices; the layout of each tensor is a function
//! from logical to physical indices, applied to its *stage*:
//!
//! ```
//! use tilewright::te::{self, AXIS_SEPARATOR};
//! use tilewright::DType;
//! let a = te::placeholder("A", &[16, 64, 64, 128], DType::F32);
//! let b = te::compute("B", a.shape(), |i| a.at(i) * 2.0);
//! let mut s = te::create_schedule([&a], [&b])?;
//! // From NHWC to NCHWc, with two physical axes: n, c // 4, h and w, c % 4.
//! s.stage(&b).transform_layout(|i| {
//!     let (n, h, w, c) = (&i[0], &i[1], &i[2], &i[3]);
//!     let (co, ci) = (c.clone().floordiv(4), c.clone().floormod(4));
//!     vec![n.into(), co.into(), h.into(), AXIS_SEPARATOR, w.into(), ci.into()]
//! })?;
//! assert!(s.func()?.buffers().any(|b| b.const_shape() == Some(vec![16, 32, 64, 64, 4])));
//! # Ok::<(), tilewright::Error>(())
//! ```
//!
//! A schedule of a tensor expression is a [`Schedule`] of the function that it makes: both ways
//! give the same functions, and every primitive is available through [`TeSchedule::schedule`].
//!
//! Semantics: Apache TVM RFC 0039, "Buffer Physical Layout".

use std::borrow::Borrow;
use std::sync::Arc;

use tilewright_ir::{Error, Expr, Module, Result, TensorFunc};
pub use tilewright_ops::te::*;
use tilewright_schedule::value::{BlockRef, Lambda, LambdaItem, Value};
use tilewright_schedule::{BufferArg, Permissions, Schedule};

/// Ends a group of axes that become one physical axis.
pub const AXIS_SEPARATOR: LambdaItem = LambdaItem::Separator;

/// Name of the function that a schedule of tensors makes.
const NAME: &str = "main";

/// The schedule of the function that computes the outputs from the inputs; see [`func`]. It
/// has no callers yet, so that inputs and outputs may be laid out, too.
///
/// # Errors
/// Those of [`func`].
pub fn create_schedule<T: Borrow<Tensor>, U: Borrow<Tensor>>(
    inputs: impl IntoIterator<Item = T>,
    outputs: impl IntoIterator<Item = U>,
) -> Result<TeSchedule> {
    let mut module = Module::new();
    module.insert(NAME, func(inputs, outputs)?);
    Ok(TeSchedule { schedule: Schedule::new(module, Permissions { change_interface: true }) })
}

/// Tensors under a schedule.
#[derive(Clone, Debug)]
pub struct TeSchedule {
    schedule: Schedule,
}

impl TeSchedule {
    /// What is to be done to a tensor.
    pub fn stage(&mut self, tensor: &Tensor) -> TensorStage<'_> {
        TensorStage { schedule: &mut self.schedule, name: tensor.name().clone() }
    }

    /// The schedule of the function, for every other primitive.
    pub fn schedule(&mut self) -> &mut Schedule {
        &mut self.schedule
    }

    /// The function as it is now.
    pub fn func(&self) -> Result<&Arc<TensorFunc>> {
        self.schedule.func(NAME)
    }

    /// The module of that function, which is called `main`.
    pub fn into_module(self) -> Module {
        self.schedule.module().clone()
    }
}

/// A tensor under a schedule.
#[derive(Debug)]
pub struct TensorStage<'a> {
    schedule: &'a mut Schedule,
    name: Arc<str>,
}

impl TensorStage<'_> {
    /// Lays the tensor out by a function from logical to physical indices; [`AXIS_SEPARATOR`]
    /// among these groups them into physical axes. Padding, where there is some, is not accessed.
    ///
    /// # Errors
    /// Those of [`Schedule::transform_layout`].
    pub fn transform_layout(
        self,
        map: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
    ) -> Result<Self> {
        self.transform_layout_padded(map, &Value::None)
    }

    /// Like [`TensorStage::transform_layout`], where the padding holds a value.
    ///
    /// # Errors
    /// Those of [`Schedule::transform_layout`].
    pub fn transform_layout_padded(
        mut self,
        map: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
        pad_value: &Value,
    ) -> Result<Self> {
        let func = self.schedule.func(NAME)?;
        let buffers = func.buffers().chain(func.root_parts().0);
        let rank = buffers.filter(|b| b.name == self.name).map(|b| b.rank()).next();
        let rank = rank.ok_or_else(|| {
            Error::input(format!("the schedule computes no tensor `{}`", self.name))
        })?;
        let block = self.block()?;
        let map = Lambda::from_fn((0..rank).map(|k| format!("i{k}")), map);
        let buffer = BufferArg::Name(self.name.clone());
        self.schedule.transform_layout(&block, buffer, &map, pad_value, false)?;
        Ok(self)
    }

    /// A block that accesses the tensor: the one that computes it, or else the first that reads it.
    fn block(&mut self) -> Result<BlockRef> {
        let blocks = self.schedule.blocks_of(NAME, &self.name)?;
        let own = blocks.iter().find(|b| **b == self.name).or(blocks.first());
        let own = own.ok_or_else(|| Error::input(format!("nothing uses `{}`", self.name)))?;
        self.schedule.get_block(own, NAME)
    }
}
