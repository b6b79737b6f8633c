//! Where buffers live, and annotations of blocks.

use tilewright_ir::visit::{Subst, fold_func, walk_block};
use tilewright_ir::{Attr, Attrs, Block, Buffer, Error, Expr, Result, TensorFunc, Visit};

use crate::buffer_arg::{BufferArg, Side};
use crate::cache::{check_storage_scope, indexed, the_block};
use crate::footprint::view_of;
use crate::loops::attr_value;
use crate::schedule::{Edited, Schedule, with_block};
use crate::site::replace_in;
use crate::trace::{Args, BlockRef, Value};

/// Annotation of the block of a stage that converts an argument to another layout: it can leave the
/// function.
pub const PRE: &str = "preproc";

/// Annotation of the block of a stage that converts a result.
pub const POST: &str = "postproc";

/// Attribute of a function: the numbers of the parameters that are the same in every run, so that
/// they may be stored in any layout.
pub const FREE_LAYOUT: &str = "layout_free_buffers";

impl Schedule {
    /// Lets a buffer that a block writes live in another storage scope.
    ///
    /// # Errors
    /// `Refused` where the scope is not known, the block does not write the buffer, or the buffer
    /// is an argument of the function, whose place is the caller's.
    pub fn set_scope(
        &mut self,
        block: &BlockRef,
        buffer: impl Into<BufferArg>,
        storage_scope: &str,
    ) -> Result<()> {
        let which = buffer.into();
        let args = vec![
            ("block", block.into()),
            ("buffer_index", Value::from(&which)),
            ("storage_scope", storage_scope.into()),
        ];
        self.edit(&block.func, "set_scope", args, |f, _| {
            set_scope(f, block, &which, storage_scope)
        })?;
        Ok(())
    }

    /// Adds an annotation to a block, or replaces it.
    pub fn annotate_block(&mut self, block: &BlockRef, key: &str, value: Attr) -> Result<()> {
        let args = vec![
            ("block_or_loop", block.into()),
            ("ann_key", key.into()),
            ("ann_val", attr_value(&value)),
        ];
        self.edit(&block.func, "annotate", args, |func, _| {
            edit_annotations(func, block, |a| {
                a.insert(key.into(), value);
                Ok(())
            })
        })?;
        Ok(())
    }

    /// Removes an annotation of a block.
    ///
    /// # Errors
    /// `Refused` where the block has no such annotation.
    pub fn unannotate_block(&mut self, block: &BlockRef, key: &str) -> Result<()> {
        let args = vec![("block_or_loop", block.into()), ("ann_key", key.into())];
        self.edit(&block.func, "unannotate", args, |func, _| {
            edit_annotations(func, block, |a| match a.remove(key) {
                Some(_) => Ok(()),
                None => Err(Error::refused(format!(
                    "the block `{}` has no annotation `{key}`",
                    block.name
                ))),
            })
        })?;
        Ok(())
    }
}

/// `set_scope(block, buffer_index, storage_scope)` of a script.
pub(crate) fn set_scope_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let block = args.block(sch)?;
    let which = indexed(&mut args, "buffer_index")?;
    let scope = args.str(&["storage_scope"])?;
    args.finish()?;
    sch.set_scope(&block, which, &scope)?;
    Ok(Vec::new())
}

/// `annotate(block_or_loop, ann_key, ann_val)` of a script.
pub(crate) fn annotate_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let target = args.block_or_loop(sch)?;
    let key = args.str(&["ann_key"])?;
    let value = args.required(&["ann_val"])?;
    let value = attr_of(&value).ok_or_else(|| args.wrong("ann_val", "a constant", &value))?;
    args.finish()?;
    match target {
        Value::Loop(l) => sch.annotate_loop(&l, &key, value)?,
        Value::Block(b) => sch.annotate_block(&b, &key, value)?,
        _ => {}
    }
    Ok(Vec::new())
}

/// `unannotate(block_or_loop, ann_key)` of a script.
pub(crate) fn unannotate_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let target = args.block_or_loop(sch)?;
    let key = args.str(&["ann_key"])?;
    args.finish()?;
    match target {
        Value::Loop(l) => sch.unannotate_loop(&l, &key)?,
        Value::Block(b) => sch.unannotate_block(&b, &key)?,
        _ => {}
    }
    Ok(Vec::new())
}

/// An argument of a script as an annotation; `None` for what an annotation cannot hold.
fn attr_of(v: &Value) -> Option<Attr> {
    Some(match v {
        Value::None => Attr::None,
        Value::Bool(b) => Attr::Bool(*b),
        Value::Int(k) => Attr::Int(*k),
        Value::Float(x) => Attr::Float(*x),
        Value::Str(s) => Attr::Str(s.clone()),
        Value::Expr(e) => Attr::Expr(e.clone()),
        Value::List(items) => Attr::List(items.iter().map(attr_of).collect::<Option<_>>()?),
        _ => return None,
    })
}

fn edit_annotations(
    func: &TensorFunc,
    block: &BlockRef,
    edit: impl FnOnce(&mut Attrs) -> Result<()>,
) -> Result<Edited> {
    let (site, b) = the_block(func, block)?;
    let mut new = (*b).clone();
    edit(&mut new.annotations).map_err(|e| e.at(site.stmt.span()))?;
    Ok((replace_in(func, &site.stmt, &with_block(&site.stmt, new)), Vec::new()))
}

fn set_scope(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    storage_scope: &str,
) -> Result<Edited> {
    check_storage_scope(storage_scope)?;
    let (site, b) = the_block(func, block)?;
    let buffer = which.region(&b, Side::Write)?.buffer;
    let refuse = |why: String| Err(Error::refused(why).at(site.stmt.span()));
    if func.buffers().any(|p| *p == buffer || p.data == buffer.data) {
        return refuse(format!(
            "`{}` is an argument of the function, and lives where the caller has put it",
            buffer.name
        ));
    }
    if let Some(view) = view_of(&func.body, &buffer) {
        return refuse(format!(
            "`{}` is a view of the memory of `{}`, which would be left behind",
            view.name, buffer.name
        ));
    }
    if *buffer.scope == *storage_scope {
        return Ok((func.clone(), Vec::new()));
    }
    // Views of parts live where the whole does.
    let mut moved = vec![buffer.clone()];
    loop {
        let mut all = Matches(&moved, Vec::new());
        all.stmt(&func.body);
        let before = moved.len();
        for m in all.1 {
            if !moved.contains(&m) {
                moved.push(m);
            }
        }
        if moved.len() == before {
            break;
        }
    }
    let mut subst = Subst::default();
    for old in &moved {
        let new = old.derive_storage(|d| d.scope = storage_scope.into());
        subst.vars.insert(old.data.clone(), Expr::var(&new.data));
        subst.buffers.insert(old.clone(), new);
    }
    Ok((fold_func(&mut subst, func), Vec::new()))
}

/// The views of parts of some buffers.
struct Matches<'a>(&'a [Buffer], Vec<Buffer>);

impl Visit for Matches<'_> {
    fn expr(&mut self, _: &Expr) {}
    fn block(&mut self, b: &Block) {
        let of = b.matches.iter().filter(|m| self.0.contains(&m.source.buffer));
        self.1.extend(of.map(|m| m.buffer.clone()));
        walk_block(self, b);
    }
}
