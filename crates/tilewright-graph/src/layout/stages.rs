//! A function that works in other layouts and keeps its interface: stages that convert its
//! arguments at entry and its results at exit, and the work between them in physical layout.
//!
//! ```text
//! with_layouts(matmul, [(0, lambda i, j: [i // 8, j, i % 8], None), (2, the same, None)])
//!
//! P[i0, j, i1] = A[i0 * 8 + i1, j]          # preproc
//! Q[i0, j, i1] += P[i0, k, i1] * B[k, j]
//! C[i, j] = Q[i // 8, j, i % 8]             # postproc
//! ```
//!
//! The stages are caches of the arguments and results that lie in the layout asked for; padding is
//! one store that selects. [`lift_layout`](super::lift_layout) moves them into the graph. A result
//! without padding also gives the block that computes it its loops.

use std::sync::Arc;

use tilewright_ir::visit::accessed;
use tilewright_ir::{
    Attr, Buffer, Error, Expr, IterKind, Module, Result, Stmt, StmtKind, TensorFunc,
};
use tilewright_schedule::index_map::IndexMap;
use tilewright_schedule::value::Value;
use tilewright_schedule::{BlockRef, BufferArg, Permissions, Schedule};

use super::conversion::Pad;
use super::lift::{POST, PRE};

/// The function with some of its tensor parameters in other layouts inside.
///
/// # Errors
/// `Input` for a parameter that there is not; `Refused` where it is updated in place, no block
/// accesses it, or its layout cannot be had, with the reason.
pub fn with_layouts(func: &TensorFunc, layouts: &[(usize, IndexMap, Pad)]) -> Result<TensorFunc> {
    let name: Arc<str> = "main".into();
    let mut module = Module::new();
    module.insert(name.clone(), func.clone());
    let mut sch = Schedule::new(module, Permissions::default());
    for (param, map, pad) in layouts {
        let buffer = func.params.get(*param).and_then(|p| p.buffer()).ok_or_else(|| {
            Error::input(format!("the function has no tensor parameter of number {param}"))
        })?;
        let pad = match pad {
            Pad::None => Value::None,
            Pad::Undef => Value::Expr(Expr::undef(buffer.dtype())),
            Pad::Value(e) => Value::Expr(e.clone()),
        };
        let (_, written) = accessed(&sch.func(&name)?.body);
        convert(&mut sch, &name, buffer, map, &pad, !written.contains(buffer))?;
    }
    Ok((**sch.func(&name)?).clone())
}

fn convert(
    sch: &mut Schedule,
    func: &Arc<str>,
    buffer: &Buffer,
    map: &IndexMap,
    pad: &Value,
    is_input: bool,
) -> Result<()> {
    let found = block_of(&sch.func(func)?.body, buffer, is_input)
        .ok_or_else(|| Error::refused(format!("no block accesses `{}`", buffer.name)))?;
    let block = BlockRef { func: func.clone(), name: found };
    let which = BufferArg::Name(buffer.name.clone());
    let (copy, side) = match is_input {
        true => (sch.cache_read(&block, which, "global", &[])?, BufferArg::Write(0)),
        false => (sch.cache_write(&block, which, "global", &[])?, BufferArg::Read(0)),
    };
    sch.transform_layout(&copy, side, &map.to_lambda(), pad, false)?;
    sch.annotate(&copy, if is_input { PRE } else { POST }, Attr::Str("layout".into()))?;
    if !is_input && let Some(order) = physical_order(&sch.func(func)?.body, &block.name) {
        // With padding, or where something else is in the way, the loops stay logical.
        let mut moved = sch.clone();
        if moved.transform_block_layout(&block, &order.to_lambda()).is_ok() {
            *sch = moved;
        }
    }
    Ok(())
}

/// The first block whose statement accesses a buffer, without blocks inside that do.
fn block_of(body: &Stmt, buffer: &Buffer, reads: bool) -> Option<Arc<str>> {
    let mut found = None;
    body.for_each(|s| {
        let StmtKind::Block { block, .. } = s.kind() else { return };
        let (read, written) = accessed(s);
        let touches = if reads { read.contains(buffer) } else { written.contains(buffer) };
        if touches && !block.iters.is_empty() {
            found.get_or_insert(block.name.clone());
        }
    });
    found
}

/// The iteration variables of a block in the order in which its one store has them, then those of
/// its reduction.
fn physical_order(body: &Stmt, name: &str) -> Option<IndexMap> {
    let mut found = None;
    body.for_each(|s| {
        let StmtKind::Block { block, .. } = s.kind() else { return };
        if *block.name == *name
            && let StmtKind::Store { indices, .. } = block.body.kind()
        {
            let reduced = block.iters.iter().filter(|i| i.kind == IterKind::Reduce);
            let indices = indices.iter().cloned().chain(reduced.map(|i| i.var.expr())).collect();
            let params = block.iters.iter().map(|i| i.var.clone()).collect();
            found = Some(IndexMap { params, indices, separators: Vec::new() });
        }
    });
    found
}
