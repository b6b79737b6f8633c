//! Instructions of a warp: `mma.sync` of PTX, as functions that all of its lanes call.
//!
//! A lane hands over its registers of both factors and of the sums (`lower::warp_registers`), in the order of the
//! PTX ISA's tables (`tilewright_target::tensor`): elements that share a register of 32 bits are neighbours.

use tilewright_ir::{CallTarget, Error, Expr, ExprKind, Result};
use tilewright_target::instruction;

use super::mma::PREFIX;
use super::writer::Writer;

impl Writer {
    /// Writes the call of an instruction of a warp; whether an expression is one.
    pub(super) fn warp_call(&mut self, e: &Expr) -> Result<bool> {
        let ExprKind::Call(CallTarget::Extern(name), args) = e.kind() else { return Ok(false) };
        let Some(known) = instruction(name).filter(|i| i.is_of_warp()) else { return Ok(false) };
        if !self.arithmetic.mma {
            let text = format!("this device has no instruction `{name}`");
            return Err(Error::unsupported(text).help("compile for `cuda:sm_80` or later"));
        }
        if self.diverged {
            return Err(Error::unsupported(format!("not all lanes of a warp come to `{name}`")));
        }
        let mut registers = Vec::new();
        for a in args {
            let ExprKind::Load(buffer, indices) = a.kind() else {
                return Err(Error::malformed(format!("`{name}` takes memory of a thread")));
            };
            registers.push(format!("&{}", self.cell(buffer, indices)?));
        }
        let function = self.helpers.name("mma", known.name.trim_start_matches(PREFIX));
        self.line(format_args!("{function}({});", registers.join(", ")));
        Ok(true)
    }
}
