//! `transform_layout` and `set_axis_separator`: how a buffer lies in memory.
//!
//! ```text
//! transform_layout(block, ("write", 0), lambda i: [i // 4, i % 4], pad_value=0)
//!
//! B: (14,)                                     B: (4, 4)
//! for i in range(14):                          for io, ii in T.grid(4, 4):
//!     B[i] = A[i]                                  B[io, ii] = T.if_then_else(io == 3 and ii >= 2,
//!                                                      0, A[io * 4 + ii])
//! ```
//!
//! Without padding only indices change. With padding, `pad_value` says what it holds: nothing
//! (`None`: it exists and is never accessed), a value of the physical indices, `T.undef()`, or
//! elements of the buffer itself. See the module `padding` for how code is derived from it.
//!
//! Semantics: Apache TVM RFC 0039 (buffer physical layout) and RFC 0077 (layout transform padding).

use tilewright_ir::lambda::LambdaItem;
use tilewright_ir::{Buffer, Error, Result, TensorFunc};
use tilewright_layout::buffer::{relayout_buffer, separate_axes};
use tilewright_layout::padding::PadValue;

use crate::buffer_arg::{BufferArg, caller, check_interface};
use crate::cursor::the_block;
use crate::primitive::primitives;
use crate::schedule::{Edited, Invocation, Schedule};
use crate::value::{BlockRef, Lambda, Value};

primitives! {
    /// Lays a buffer of a block out by an index map, everywhere in the function. What padding holds
    /// is `None` where nothing accesses it, a number, an expression, or a lambda over the physical
    /// indices.
    ///
    /// # Errors
    /// `Refused` where the map is not injective (unless `assume_injective_transform`) or gives
    /// negative indices, the buffer is an argument whose layout may not change, its accesses cannot
    /// be followed, or the pad value depends on another buffer.
    transform_layout(
        block: &BlockRef,
        [into] buffer: BufferArg,
        index_map: &Lambda,
        pad_value: &Value = &Value::None,
        assume_injective_transform: bool = false
    ), run |sch, step| {
        // The map is seen to be one to one, and nothing is written beside.
        let cells_only = matches!(pad_value, Value::None) && !assume_injective_transform;
        sch.edit_buffer(block, &buffer, step, cells_only, |f, old| {
            relayout_buffer(f, old, index_map, &pad_of(pad_value)?, assume_injective_transform)
                .map(|f| (f, ()))
        })
    };

    /// Groups the axes of a buffer into physical axes: each separator is a position between axes
    /// where one ends. Views of the buffer follow.
    ///
    /// # Errors
    /// `Refused` where positions are not ascending or out of range, or the buffer is an argument
    /// whose type may not change.
    set_axis_separator(
        block: &BlockRef,
        [into] buffer: BufferArg,
        axis_separators: &[usize]
    ), run |sch, step| {
        sch.edit_buffer(block, &buffer, step, true, |f, old| {
            separate_axes(f, old, axis_separators).map(|f| (f, ()))
        })
    };
}

impl Schedule {
    /// Changes how a buffer of a block lies, if nothing outside of the function depends on that. `cells_only` says
    /// that each cell gets another place, and nothing else changes.
    fn edit_buffer(
        &mut self,
        block: &BlockRef,
        buffer: &BufferArg,
        step: Invocation,
        cells_only: bool,
        edit: impl FnOnce(&TensorFunc, &Buffer) -> Result<Edited>,
    ) -> Result<()> {
        let caller = caller(self.module(), &block.func);
        let permissions = self.permissions().clone();
        let edit = |func: &TensorFunc| {
            let old = buffer.find(func, &the_block(func, block)?.block)?;
            check_interface(func, &old, &block.func, &permissions, caller.as_ref())?;
            edit(func, &old)
        };
        match cells_only {
            true => self.edit_cells(block, step, edit),
            false => self.edit(block, step, edit),
        }
    }
}

/// The pad value that a value of a script is.
fn pad_of(value: &Value) -> Result<PadValue> {
    Ok(match value {
        Value::None => PadValue::Nothing,
        Value::Int(v) => PadValue::Int(*v),
        Value::Bool(v) => PadValue::Int(i64::from(*v)),
        Value::Float(v) => PadValue::Float(*v),
        Value::Expr(e) => PadValue::Item(LambdaItem::Expr(e.clone())),
        Value::Lambda(l) => PadValue::Lambda(l.clone()),
        other => {
            let what = format!("a pad value is {}, not a value or lambda", other.describe());
            return Err(Error::input(what));
        }
    })
}
