//! Loops and the axes of groups and threads that they are bound to.

use tilewright_ir::index::Linear;
use tilewright_ir::{Attr, Buffer, Dim, Error, Expr, Result, Var, dim};
use tilewright_schedule::{LoopRef, Schedule};
use tilewright_target::{DOUBLE_BUFFER, EXPECTED, ThreadGroups};

use crate::parts::{no_unroll, number};

/// Threads of a group: eight warps, of which a processor of a GPU runs several at a time.
pub(super) const GROUP: i64 = 256;

/// The most registers of a thread for addresses and loops of tiles (measured with `ptxas`: kernels of 17 models).
pub(super) const ADDRESSES: i64 = 48;

/// Bytes of a word of a bank of the memory that a group shares.
pub(super) const WORD_BYTES: i64 = 4;

/// Groups along any but the first axis of them (CUDA C++ Programming Guide, technical specifications).
pub(super) const MOST_GROUPS: usize = 65535;

/// Loops and the axes of threads that they are bound to when all else is in its place.
pub(super) struct Grid {
    pub bound: Vec<(LoopRef, &'static str)>,
    /// The innermost loop over threads.
    pub inner: LoopRef,
}

impl Grid {
    pub fn bind(&self, sch: &mut Schedule) -> Result<()> {
        bind(sch, &self.bound)
    }
}

/// Binds loops to axes of threads, those of threads before those of groups, which are around them: what is around a
/// loop that changes is proved again.
pub(super) fn bind(sch: &mut Schedule, bound: &[(LoopRef, &'static str)]) -> Result<()> {
    let mut inner_first: Vec<_> = bound.iter().collect();
    inner_first.sort_by_key(|(_, axis)| (axis.starts_with("blockIdx"), *axis));
    inner_first.into_iter().try_for_each(|(l, axis)| sch.bind(l, axis))
}

/// How many copies of what a group shares of its operands there are: two where one is filled while the other is read.
pub(super) fn copies(groups: &ThreadGroups) -> i64 {
    if groups.async_copies { 2 } else { 1 }
}

/// Has a loop fill what a group shares for its next iteration while this one is computed, where the machine copies
/// while threads go on.
pub(super) fn fill_ahead(sch: &mut Schedule, groups: &ThreadGroups, l: &LoopRef) -> Result<()> {
    if !groups.async_copies {
        return Ok(());
    }
    no_unroll(sch, l)?;
    sch.annotate(l, DOUBLE_BUFFER, Attr::Int(1))
}

/// Says at the loop over groups of a kernel how many registers a thread is expected to take at most, and how many bytes
/// a group shares.
pub(super) fn expect(
    sch: &mut Schedule,
    groups: &LoopRef,
    registers: i64,
    shared: i64,
) -> Result<()> {
    sch.annotate(groups, EXPECTED, Attr::List(vec![Attr::Int(registers), Attr::Int(shared)]))
}

/// A loop in three, the inner two of so many iterations.
pub(super) fn in_three(
    sch: &mut Schedule,
    l: &LoopRef,
    middle: i64,
    inner: i64,
) -> Result<[LoopRef; 3]> {
    in_parts(sch, l, [middle, inner])
}

/// A loop in several, all but the outermost of so many iterations.
pub(super) fn in_parts<const INNER: usize, const ALL: usize>(
    sch: &mut Schedule,
    l: &LoopRef,
    inner: [i64; INNER],
) -> Result<[LoopRef; ALL]> {
    let factors: Vec<Option<Expr>> = std::iter::once(None).chain(inner.map(number)).collect();
    let parts = sch.split(l, &factors)?;
    parts.try_into().map_err(|_| Error::internal("a loop that was split has other parts"))
}

/// How many cells farther an access is for each step of a variable; `None` where steps differ.
pub(super) fn stride(buffer: &Buffer, indices: &[Expr], var: &Var) -> Option<i64> {
    let shape = dim::of_shape(&buffer.shape)?;
    let (mut weight, mut stride) = (Some(1i64), 0i64);
    for (index, extent) in indices.iter().zip(&shape).rev() {
        let by = Linear::from_expr(index)?.coefficient(var)?;
        if by != 0 {
            stride = stride.checked_add(i64::try_from(by).ok()?.checked_mul(weight?)?)?;
        }
        weight = weight.zip(known(*extent)).and_then(|(w, n)| w.checked_mul(n));
    }
    Some(stride)
}

/// An extent as a number.
pub(super) fn known(extent: Dim) -> Option<i64> {
    extent.known().and_then(|n| i64::try_from(n).ok())
}
