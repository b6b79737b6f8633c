//! Values with channels of zeros behind their own, as blocks of channels that are not full have them: what computes
//! each channel by itself computes their own ones.

use tilewright_ir::Result;

use super::compose::Compose;
use super::one;
use crate::build::Builder;
use crate::imported::Imported;
use crate::node::Node;

/// A tensor and so many channels of zeros behind its own.
pub(crate) fn fill(c: &mut Compose, x: &Imported, count: usize) -> Result<Imported> {
    if count == 0 {
        return Ok(x.clone());
    }
    let mut rest = x.shape();
    if let Some(channels) = rest.get_mut(1) {
        *channels = count.into();
    }
    let zero = c.number(x.dtype(), 0.0)?;
    let rest = c.expand(&zero, &rest)?;
    let whole = c.concat(&[x, &rest], 1)?;
    c.note_filled(&whole, x);
    Ok(whole)
}

/// An operator that treats each channel by itself, and makes zeros of zeros.
pub(crate) fn each_channel(
    node: &Node,
    b: &mut Builder,
    op: impl FnOnce(&mut Compose, &Imported) -> Result<Imported>,
) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let Some(part) = c.filled(x).cloned() else { return one(op(c, x)?) };
    let channels = |x: &Imported| x.shape().get(1).and_then(|d| d.known());
    let rest = channels(x).zip(channels(&part)).map_or(0, |(all, own)| all - own);
    let y = op(c, &part)?;
    one(fill(c, &y, rest)?)
}
