//! Where buffers live, and annotations of blocks.

use tilewright_ir::visit::{Subst, fold_func};
use tilewright_ir::{Attr, Attrs, Error, Expr, Result, TensorFunc};

use crate::argument::BlockOrLoop;
use crate::buffer_arg::{BufferArg, Side};
use crate::cache::check_storage_scope;
use crate::cursor::{replace_in, the_block};
use crate::loops::edit_loop;
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::BlockRef;
use tilewright_analysis::footprint::view_of;
use tilewright_layout::padding::views;

primitives! {
    /// Puts a buffer that a block writes into another storage scope.
    ///
    /// # Errors
    /// `Refused` where the scope is not known, the block does not write the buffer, or the buffer
    /// is an argument of the function, whose place is the caller's.
    set_scope(
        block: &BlockRef,
        [into] buffer "buffer_index" "buffer": BufferArg,
        storage_scope: &str
    ), edit |f| set_scope(f, block, &buffer, storage_scope);

    /// Adds an annotation to a block or a loop, or replaces it.
    ///
    /// # Errors
    /// `Refused` where there is no such block or loop.
    annotate([into] target "block_or_loop" "block" "loop": BlockOrLoop, ann_key: &str, ann_val: Attr),
        edit |f| edit_annotations(f, &target, |a| {
            a.insert(ann_key.into(), ann_val);
            Ok(())
        });

    /// Removes an annotation of a block or a loop.
    ///
    /// # Errors
    /// `Refused` where it has no such annotation.
    unannotate([into] target "block_or_loop" "block" "loop": BlockOrLoop, ann_key: &str),
        edit |f| edit_annotations(f, &target, |a| match a.remove(ann_key) {
            Some(_) => Ok(()),
            None => Err(Error::refused(format!("{target} has no annotation `{ann_key}`"))),
        });
}

/// Changes the annotations of a block or a loop.
fn edit_annotations(
    func: &TensorFunc,
    target: &BlockOrLoop,
    edit: impl FnOnce(&mut Attrs) -> Result<()>,
) -> Result<Edited> {
    match target {
        BlockOrLoop::Loop(l) => edit_loop(func, l, |_, annotations| edit(annotations)),
        BlockOrLoop::Block(block) => {
            let at = the_block(func, block)?;
            let mut new = (*at.block).clone();
            edit(&mut new.annotations)?;
            Ok((replace_in(func, &at.stmt, &at.with_block(new)), ()))
        }
    }
}

fn set_scope(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    storage_scope: &str,
) -> Result<Edited> {
    check_storage_scope(storage_scope)?;
    let buffer = which.region(&the_block(func, block)?.block, Side::Write)?.buffer;
    if func.buffers().any(|p| *p == buffer || p.data == buffer.data) {
        return Err(Error::refused(format!(
            "`{buffer}` is an argument of the function, and lives where the caller has put it"
        )));
    }
    if let Some(view) = view_of(&func.body, &buffer) {
        return Err(Error::refused(format!(
            "`{view}` is a view of the memory of `{buffer}`, which would be left behind"
        )));
    }
    if *buffer.scope == *storage_scope {
        return Ok((func.clone(), ()));
    }
    let mut subst = Subst::default();
    // Views of parts live where the whole does.
    for old in views(func, &buffer) {
        let new = old.derive_storage(|d| d.scope = storage_scope.into());
        subst.vars.insert(old.data.clone(), Expr::var(&new.data));
        subst.buffers.insert(old, new);
    }
    Ok((fold_func(&mut subst, func), ()))
}
