//! The tensor instructions that the threads of a warp run together.

use tilewright_target::{Target, TensorInstruction};

use crate::contraction::Contraction;

/// Those of a target.
pub(super) fn instructions(target: &Target) -> Vec<&'static TensorInstruction> {
    target.tensor_instructions().filter(|i| i.is_of_warp()).collect()
}

/// Whether an instruction multiplies the operands of a contraction, one of which is the left factor.
pub(super) fn takes(i: &TensorInstruction, c: &Contraction, left: usize) -> bool {
    let [a, b] = [left, 1 - left].map(|o| c.operands[o].buffer.dtype());
    i.is_of_warp() && (i.a.dtype, i.b.dtype, i.c.dtype) == (a, b, c.dtype)
}
