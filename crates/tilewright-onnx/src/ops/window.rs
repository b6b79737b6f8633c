//! Attributes of sliding windows, which convolutions and pools share.

use tilewright_ir::{Error, Result};
use tilewright_ops::window::Same;

use crate::node::Node;

/// The names of a convolution's attributes.
pub(crate) const ATTRIBUTES: [&str; 6] =
    ["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];

/// Windows over the spatial axes, with the padding settled.
pub(crate) struct Windows {
    pub(crate) strides: Vec<usize>,
    pub(crate) dilations: Vec<usize>,
    pub(crate) begin: Vec<usize>,
    pub(crate) end: Vec<usize>,
    /// Padding that the sizes decide, in place of both.
    pub(crate) same: Option<Same>,
    /// Whether the padding was given as numbers, so that `ceil_mode` changes the size.
    pub(crate) explicit: bool,
}

/// How the padding is found.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum AutoPad {
    /// As the attribute `pads` says.
    Explicit,
    /// As many cells as keep the size, up to the strides; the odd one at the end or at the start.
    Same(Same),
    /// None.
    Valid,
}

/// Reads `auto_pad`.
pub(crate) fn auto_pad(node: &Node) -> Result<AutoPad> {
    match node.text_or("auto_pad", "NOTSET")? {
        "NOTSET" | "" => Ok(AutoPad::Explicit),
        "SAME_UPPER" => Ok(AutoPad::Same(Same::OddAtEnd)),
        "SAME_LOWER" => Ok(AutoPad::Same(Same::OddAtStart)),
        "VALID" => Ok(AutoPad::Valid),
        other => {
            Err(node.unsupported_value("auto_pad", other, "NOTSET, SAME_UPPER, SAME_LOWER, VALID"))
        }
    }
}

/// A list of `count` numbers, none below `least`; `default` everywhere where it is absent.
pub(crate) fn sizes(
    node: &Node,
    name: &'static str,
    count: usize,
    least: i64,
    default: usize,
) -> Result<Vec<usize>> {
    let Some(list) = node.ints(name)? else { return Ok(vec![default; count]) };
    if list.len() != count {
        return Err(Error::model(format!(
            "attribute `{name}` has {} numbers where {count} are needed",
            list.len()
        )));
    }
    list.iter()
        .map(|&v| match usize::try_from(v) {
            Ok(size) if v >= least && v <= i64::from(i32::MAX) => Ok(size),
            _ => Err(node.unsupported_value(name, v, &format!("numbers from {least} on"))),
        })
        .collect()
}

/// The explicit padding: before and behind each axis.
pub(crate) fn pads(node: &Node, count: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    let mut begin = sizes(node, "pads", 2 * count, 0, 0)?;
    let end = begin.split_off(count);
    Ok((begin, end))
}

/// [`pads`] that may be negative: a transposed convolution adds zeros to its result there.
pub(crate) fn signed_pads(node: &Node, count: usize) -> Result<(Vec<i64>, Vec<i64>)> {
    let Some(mut begin) = node.ints("pads")? else { return Ok((vec![0; count], vec![0; count])) };
    if begin.len() != 2 * count {
        return Err(Error::model(format!(
            "attribute `pads` has {} numbers where {} are needed",
            begin.len(),
            2 * count
        )));
    }
    if let Some(v) = begin.iter().find(|v| i32::try_from(**v).is_err()) {
        return Err(node.unsupported_value("pads", v, "numbers of 32 bits"));
    }
    let end = begin.split_off(count);
    Ok((begin, end))
}

/// Splits a padding of `total` cells.
pub(crate) fn halves(total: i64, odd_at_end: bool) -> (i64, i64) {
    let less = total.div_euclid(2);
    if odd_at_end { (less, total - less) } else { (total - less, less) }
}

/// Reads strides, dilations and padding for windows of `kernel` over as many spatial axes.
pub(crate) fn windows(node: &Node, axes: usize, kernel: &[usize]) -> Result<Windows> {
    if kernel.len() != axes {
        return Err(Error::model(format!(
            "a window of {} dimensions over {axes} spatial dimensions",
            kernel.len()
        )));
    }
    let strides = sizes(node, "strides", axes, 1, 1)?;
    let dilations = sizes(node, "dilations", axes, 1, 1)?;
    let padding = auto_pad(node)?;
    let explicit = matches!(padding, AutoPad::Explicit);
    let (begin, end) = if explicit {
        pads(node, axes)?
    } else {
        node.ignore("pads");
        (vec![0; axes], vec![0; axes])
    };
    let same = match padding {
        AutoPad::Same(same) => Some(same),
        AutoPad::Explicit | AutoPad::Valid => None,
    };
    Ok(Windows { strides, dilations, begin, end, same, explicit })
}
