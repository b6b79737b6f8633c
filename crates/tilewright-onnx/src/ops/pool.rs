//! Pools.

use tilewright_ir::{Error, Result, TensorFunc};
use tilewright_ops::Operand;
use tilewright_ops::pool::{self, Pool};

use super::{one, window};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("AveragePool", 7, 1, average_pool),
    op("GlobalAveragePool", 7, 1, |n, b| {
        global(n, b, "global_average_pool", pool::global_average_pool)
    }),
    op("GlobalLpPool", 7, 1, global_lp_pool),
    op("GlobalMaxPool", 7, 1, |n, b| global(n, b, "global_max_pool", pool::global_max_pool)),
    op("LpPool", 7, 1, lp_pool),
    op("MaxPool", 7, 1, max_pool),
];

/// Reads what all pools share.
fn parameters(node: &Node) -> Result<Pool> {
    let x = operand(node.input(0)?);
    if x.rank() < 3 {
        return Err(Error::model(format!("{x} has no spatial dimensions")));
    }
    let n = x.rank() - 2;
    if node.ints("kernel_shape")?.is_none() {
        return Err(Error::model("attribute `kernel_shape` is missing"));
    }
    let kernel = window::sizes(node, "kernel_shape", n, 1, 1)?;
    let windows = window::windows(node, n, &kernel)?;
    let ceil = node.flag("ceil_mode", false)?;
    Ok(Pool {
        strides: windows.strides,
        dilations: windows.dilations,
        pads_begin: windows.begin,
        pads_end: windows.end,
        same: windows.same,
        ceil_mode: ceil && windows.explicit,
        ..Pool::new(x, &kernel)
    })
}

pub(crate) fn max_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, params) = (node.input(0)?, parameters(node)?);
    let column_major = node.switch("storage_order")?;
    if node.output_count() < 2 {
        return one(b.call("max_pool", &params, [x], || pool::max_pool(&params))?);
    }
    b.call_many("max_pool_with_indices", &(&params, column_major), [x], || {
        pool::max_pool_with_indices(&params, column_major)
    })
}

pub(crate) fn average_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, params) = (node.input(0)?, parameters(node)?);
    let include = node.flag("count_include_pad", false)?;
    one(b.call("average_pool", &(&params, include), [x], || pool::average_pool(&params, include))?)
}

/// The power of a p-norm.
fn norm(node: &Node) -> Result<u32> {
    let p = node.int_or("p", 2)?;
    match u32::try_from(p) {
        Ok(p @ 1..) => Ok(p),
        _ => Err(node.unsupported_value("p", p, "numbers from 1 on")),
    }
}

pub(crate) fn lp_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, params, p) = (node.input(0)?, parameters(node)?, norm(node)?);
    one(b.call("lp_pool", &(&params, p), [x], || pool::lp_pool(&params, p))?)
}

/// A pool over all of the image.
fn global(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    make: fn(&Operand) -> Result<TensorFunc>,
) -> Result<Vec<Imported>> {
    one(b.call_on(base, [node.input(0)?], (), |[x]| make(x))?)
}

pub(crate) fn global_lp_pool(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, p) = (node.input(0)?, norm(node)?);
    one(b.call_on("global_lp_pool", [x], p, |[x]| pool::global_lp_pool(x, p))?)
}
