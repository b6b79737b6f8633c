//! Instructions of a warp: `mma.sync` and `ldmatrix` of PTX, as functions that all of its lanes call.
//!
//! A lane hands over its registers of both factors and of the sums (`lower::warp_registers`), in the order of the
//! PTX ISA's tables (`tilewright_target::tensor`): elements that share a register of 32 bits are neighbours.

use tilewright_ir::{CallTarget, Error, Expr, ExprKind, Result};
use tilewright_target::{LOAD_MATRIX, MATRIX_ROW, instruction};

use super::mma::PREFIX;
use super::vector::is_multiple;
use super::writer::Writer;

impl Writer {
    /// Writes the call of an instruction of a warp; whether an expression is one.
    pub(super) fn warp_call(&mut self, e: &Expr) -> Result<bool> {
        let ExprKind::Call(CallTarget::Extern(name), args) = e.kind() else { return Ok(false) };
        let loads = name.strip_prefix(LOAD_MATRIX).map(|kind| kind.trim_start_matches('_'));
        let known = instruction(name).filter(|i| i.is_of_warp()).map(|i| i.name);
        if known.or(loads).is_none() {
            return Ok(false);
        }
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
                return Err(Error::malformed(format!("`{name}` takes memory")));
            };
            let is_row = loads.is_some() && self.place(buffer)?.space == "__local";
            let row = MATRIX_ROW / buffer.dtype().bytes().max(1) as i64;
            if is_row && !is_multiple(buffer, indices, i128::from(row)) {
                let text =
                    format!("`{name}`: rows of `{}` may begin inside of a word", buffer.name);
                return Err(Error::unsupported(text));
            }
            registers.push(format!("&{}", self.cell(buffer, indices)?));
        }
        let function = match (known, loads) {
            (Some(name), _) => self.helpers.name("mma", name.trim_start_matches(PREFIX)),
            (None, kind) => self.helpers.name(LOAD_MATRIX, kind.unwrap_or_default()),
        };
        self.line(format_args!("{function}({});", registers.join(", ")));
        Ok(true)
    }
}
