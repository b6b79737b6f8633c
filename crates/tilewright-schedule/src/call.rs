//! Blocks and loops by name.

use tilewright_ir::Stmt;

use crate::argument::OptionalName;
use crate::cursor::{block_cursor, the_block};
use crate::primitive::primitives;
use crate::value::{BlockRef, LoopRef};

primitives! {
    /// The block of this name, in the named function; without a name, in `main` or in the only
    /// tensor function.
    ///
    /// # Errors
    /// `Refused` where there is none, or several; `Input` where there is no such function.
    #[alias("get_sblock")]
    get_block(name: &str, [into] func_name: OptionalName = OptionalName::default()) -> BlockRef, ask |sch| {
        let func = sch.function(func_name.get())?;
        block_cursor(sch.func(&func)?, name)?;
        Ok(BlockRef { func, name: name.into() })
    };

    /// The loops around a block up to the block that encloses it, outermost first.
    ///
    /// # Errors
    /// `Refused` where there is no such block.
    get_loops(block: &BlockRef) -> Vec<LoopRef>, ask |sch| {
        let loops = the_block(sch.func(&block.func)?, block)?.loops();
        Ok(loops.iter().filter_map(Stmt::loop_var).map(|v| LoopRef::new(&block.func, v)).collect())
    };

    /// Says which function comes next. Traces say it; every block and loop carries its function, so
    /// that nothing follows from it.
    ///
    /// # Errors
    /// `Input` where there is no such function.
    work_on(func_name: &str), ask |sch| sch.func(func_name).map(|_| ());
}
