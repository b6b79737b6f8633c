//! Where the blocks and loops that values of scripts refer to are in their functions.
//!
//! Finding and replacing statements is [`tilewright_transform::cursor`]'s.

use std::sync::Arc;

use tilewright_ir::{Error, Result, TensorFunc};
pub(crate) use tilewright_transform::cursor::*;

use crate::value::{BlockRef, LoopRef};

/// The block of a reference.
pub(crate) fn the_block(func: &TensorFunc, block: &BlockRef) -> Result<BlockCursor> {
    block_cursor(func, &block.name)
}

/// Where the loop with this variable is.
pub(crate) fn loop_cursor(func: &TensorFunc, l: &LoopRef) -> Result<Cursor> {
    let mut cursors = find(&func.body, |s| as_loop(s).is_some_and(|(v, ..)| *v == l.var));
    match cursors.len() {
        1 => Ok(cursors.swap_remove(0)),
        0 => Err(Error::refused(format!("the loop `{}` no longer exists", l.var.name()))),
        n => Err(Error::refused(format!("the loop `{}` exists {n} times", l.var.name()))),
    }
}

/// What is in one function of the module.
pub(crate) trait InFunction {
    /// The name of the function; `None` for no loops at all.
    fn func(&self) -> Option<&Arc<str>>;

    /// Where it is, in that function.
    fn cursor(&self, func: &TensorFunc) -> Result<Cursor>;
}

impl InFunction for BlockRef {
    fn func(&self) -> Option<&Arc<str>> {
        Some(&self.func)
    }
    fn cursor(&self, func: &TensorFunc) -> Result<Cursor> {
        Ok(the_block(func, self)?.at)
    }
}

impl InFunction for LoopRef {
    fn func(&self) -> Option<&Arc<str>> {
        Some(&self.func)
    }
    fn cursor(&self, func: &TensorFunc) -> Result<Cursor> {
        loop_cursor(func, self)
    }
}

impl InFunction for [LoopRef] {
    fn func(&self) -> Option<&Arc<str>> {
        self.first().map(|l| &l.func)
    }
    fn cursor(&self, func: &TensorFunc) -> Result<Cursor> {
        let first = self.first().ok_or_else(|| Error::internal("no loops"))?;
        first.cursor(func)
    }
}

impl<T: InFunction + ?Sized> InFunction for &T {
    fn func(&self) -> Option<&Arc<str>> {
        (**self).func()
    }
    fn cursor(&self, func: &TensorFunc) -> Result<Cursor> {
        (**self).cursor(func)
    }
}
