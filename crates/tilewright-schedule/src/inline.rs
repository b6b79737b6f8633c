//! `compute_inline` and `reverse_compute_inline`: a stage that disappears into its neighbour.
//!
//! ```text
//! for i: B[i] = A[i] * 2
//! for i: C[i] = B[i] + 1         both give        for i: C[i] = A[i] * 2 + 1
//! ```
//!
//! The first puts the value of a block where its buffer is read, the second puts what a block
//! makes of a buffer where that is written. Either way the buffer must be internal, written by
//! one block as a whole, each cell with a value that depends on nothing but the cell; and what
//! the value reads must still be there where it is now computed.

use std::sync::Arc;

use tilewright_ir::index::{Ranges, simplify_indices};
use tilewright_ir::visit::{
    Subst, fold_block_children, fold_expr_children, fold_stmt_children, walk_expr,
};
use tilewright_ir::{
    Block, Buffer, CallTarget, Error, Expr, ExprKind, Fold, IterKind, Region, Result, Stmt,
    StmtKind, TensorFunc, Var, Visit,
};

use crate::cursor::{
    BlockCursor, Cursor, as_block, find, in_scope, replace, replace_in, the_block,
};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::BlockRef;
use tilewright_analysis::footprint::{
    Cells, Footprint, cover, fed, known_around, touches, uses_pointer,
};

primitives! {
    /// Puts the value of a block where its buffer is read; the block and the buffer go.
    ///
    /// # Errors
    /// `Refused` where the block is not one store at its iteration variables that fills an
    /// internal buffer alone, where the buffer is read before or through a pointer, or where what
    /// the value reads may have changed by then.
    compute_inline(block: &BlockRef), edit |f| compute_inline(f, block);

    /// Inlines a block into the block that writes its input; the block and the buffer between them
    /// go.
    ///
    /// # Errors
    /// `Refused` where the block does not read a buffer at its iteration variables alone, the
    /// producer is not one block that fills the buffer without reading it, the buffer has another
    /// reader, or the results would be written too early for others.
    reverse_compute_inline(block: &BlockRef), edit |f| reverse_inline(f, block);
}

/// A block that is one store, without buffers of its own.
pub(crate) struct StoreBlock {
    pub at: BlockCursor,
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    pub value: Expr,
}

impl StoreBlock {
    /// # Errors
    /// `Refused` where there is no such block, or it is another one.
    pub fn find(func: &TensorFunc, block: &BlockRef) -> Result<StoreBlock> {
        let at = the_block(func, block)?;
        let (buffer, indices, value) = at.store()?;
        let (buffer, indices, value) = (buffer.clone(), indices.to_vec(), value.clone());
        Ok(StoreBlock { at, buffer, indices, value })
    }

    /// One without a reduction, whose value can be computed again.
    fn spatial(func: &TensorFunc, block: &BlockRef) -> Result<StoreBlock> {
        let stage = StoreBlock::find(func, block)?;
        let at = &stage.at;
        if at.block.init.is_some() || at.pairs().any(|(i, _)| i.kind != IterKind::Spatial) {
            return Err(at.refuse("is not spatial"));
        }
        match not_repeatable(&stage.value) {
            None => Ok(stage),
            Some(what) => Err(at.refuse(format!("computes `{what}`, which may differ each time"))),
        }
    }

    /// What is known around its scope; `own` is the block in that.
    pub fn known_outside(&self, own: &Cursor) -> Vec<Expr> {
        known_around(&self.at.around[..self.at.around.len() - own.around.len()])
    }

    /// Values that the loops of a scope have do not exist elsewhere.
    pub fn check_vars(&self) -> Result<()> {
        let bound = in_scope(&self.at.around).iter().find_map(|s| match s.kind() {
            StmtKind::For { var, .. } | StmtKind::Let { var, .. } => {
                Some(var).filter(|v| self.value.mentions(v))
            }
            _ => None,
        });
        match bound {
            None => Ok(()),
            Some(v) => Err(Error::refused(format!(
                "the value of the block `{}` uses `{v}`, which is not one of its variables",
                self.at.block.name
            ))),
        }
    }

    /// Refuses readers that are none, and those where what the value is made of is another one.
    pub fn read_by(&self, body: &Stmt, own: &Cursor, readers: &[Cursor]) -> Result<()> {
        if readers.is_empty() {
            return Err(Error::refused(format!("nothing reads `{}`", self.buffer.name)));
        }
        for x in self.value.loaded_buffers().iter().filter(|x| **x != self.buffer) {
            if let Some(r) = readers.iter().find(|r| touches(&r.stmt, x).1) {
                return Err(Error::refused(format!(
                    "`{x}` is written where the value of the block `{}` would be computed from it",
                    self.at.block.name
                ))
                .at(r.stmt.span()));
            }
            nothing_between(body, own, readers, x, |(_, w)| w, "is written")?;
        }
        Ok(())
    }

    /// Refuses a block that reads what it writes.
    fn reads_others(&self) -> Result<()> {
        if self.value.loads_from(|b| *b == self.buffer) {
            let name = &self.buffer.name;
            Err(self.at.refuse(format!("reads `{name}`, which it writes")))
        } else {
            Ok(())
        }
    }
}

/// Most nodes that one statement may get in the place of loads.
const MAX_INLINED: u64 = 1 << 16;

/// Refuses to write a value in so many places that a statement becomes too large: stages that read
/// the one before twice double it each time.
fn check_size(value: &Expr, places: u64, block: &str) -> Result<()> {
    let nodes = places.saturating_mul(u64::from(value.size()));
    if nodes <= MAX_INLINED {
        Ok(())
    } else {
        Err(Error::refused(format!(
            "the value of the block `{block}` has {} nodes and would stand in {places} places of \
             one statement, which may get {MAX_INLINED} nodes",
            value.size()
        )))
    }
}

/// How often a statement loads from a buffer, as text.
fn loads_as_text(s: &Stmt, buffer: &Buffer) -> u64 {
    struct Loads<'a>(&'a Buffer, u64);
    impl Visit for Loads<'_> {
        fn expr(&mut self, e: &Expr) {
            self.1 += u64::from(matches!(e.kind(), ExprKind::Load(b, _) if b == self.0));
            if e.effects().loads {
                walk_expr(self, e);
            }
        }
    }
    let mut loads = Loads(buffer, 0);
    loads.stmt(s);
    loads.1
}

/// A part of a value that cannot be computed again.
pub(crate) fn not_repeatable(e: &Expr) -> Option<Expr> {
    if !e.effects().impure() {
        None
    } else {
        e.find(|part| match part.kind() {
            ExprKind::Undef => true,
            ExprKind::Call(target, _) => {
                !matches!(target, CallTarget::Intrin(_) | CallTarget::Reinterpret(_))
            }
            _ => false,
        })
    }
}

/// The expression that each iteration variable has where the indices are `at`: the indices must
/// be these variables, each once, and the others have one value only.
pub(crate) fn solve(b: &Block, indices: &[Expr], buffer: &Buffer) -> Result<Vec<Var>> {
    let mut vars: Vec<Var> = Vec::new();
    for i in indices {
        let v = i.as_var().filter(|v| b.iters.iter().any(|x| x.var == **v) && !vars.contains(v));
        vars.push(v.cloned().ok_or_else(|| {
            Error::refused(format!(
                "the block `{}` accesses `{buffer}` at `{i}`, not at an iteration variable of its \
                 own for each axis",
                b.name
            ))
        })?);
    }
    for iter in &b.iters {
        if !vars.contains(&iter.var) && iter.domain.extent.as_int() != Some(1) {
            return Err(Error::refused(format!(
                "the block `{}` accesses a cell of `{buffer}` for several values of `{}`",
                b.name,
                iter.var.name()
            )));
        }
    }
    Ok(vars)
}

/// The body of the scope of a cursor, and the refusal unless the buffer is allocated in that scope.
pub(crate) fn scope_of(func: &TensorFunc, cursor: &Cursor, buffer: &Buffer) -> Result<Stmt> {
    let (body, allocs) = match cursor.scope().and_then(as_block) {
        Some(b) => (b.body.clone(), b.allocs.clone()),
        None => (func.body.clone(), Vec::new()),
    };
    if !allocs.contains(buffer) {
        return Err(Error::refused(format!(
            "`{buffer}` is not allocated by the scope of the block, and others may see it"
        )));
    }
    if uses_pointer(&func.body, buffer) {
        return Err(Error::refused(format!(
            "the memory of `{buffer}` is used through a pointer or a view"
        )));
    }
    Ok(body)
}

/// The innermost statements that do something to a buffer: stores and blocks.
pub(crate) fn users(
    body: &Stmt,
    buffer: &Buffer,
    wanted: impl Fn((bool, bool)) -> bool,
) -> Vec<Cursor> {
    let ours = |s: &Stmt| {
        let simple = match s.kind() {
            StmtKind::Block { .. }
            | StmtKind::Store { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Assume(_)
            | StmtKind::Assert { .. } => true,
            StmtKind::If { cond, .. } => cond.loaded_buffers().contains(buffer),
            StmtKind::Let { value, .. } => value.loaded_buffers().contains(buffer),
            StmtKind::For { range, .. } => {
                range.min.loaded_buffers().contains(buffer)
                    || range.extent.loaded_buffers().contains(buffer)
            }
            _ => false,
        };
        simple && wanted(touches(s, buffer))
    };
    // What is inside a block belongs to it.
    find(body, ours)
        .into_iter()
        .filter(|s| !s.around.iter().any(|a| as_block(a).is_some() && ours(a)))
        .collect()
}

/// Refuses where an access of a buffer by others comes between two statements, in the order of
/// the text or by way of a loop.
pub(crate) fn nothing_between(
    body: &Stmt,
    from: &Cursor,
    to: &[Cursor],
    buffer: &Buffer,
    wanted: impl Fn((bool, bool)) -> bool,
    does: &str,
) -> Result<()> {
    let order = |s: &Stmt| {
        let all = find(body, |x| as_block(x).is_some() || x.ptr_eq(s));
        move |x: &Stmt| all.iter().position(|y| y.stmt.ptr_eq(x))
    };
    for w in users(body, buffer, wanted) {
        if w.stmt.ptr_eq(&from.stmt) || to.iter().any(|t| t.stmt.ptr_eq(&w.stmt)) {
            continue;
        }
        let at = order(&w.stmt);
        let (w_at, from_at) = (at(&w.stmt), at(&from.stmt));
        let before = w_at < from_at;
        let after = to.iter().all(|t| at(&t.stmt) < w_at);
        let looped = w.shares_loop(from) || to.iter().any(|t| w.shares_loop(t));
        if looped || !(before || after) {
            return Err(Error::refused(format!(
                "`{buffer}` {does} between the block `{}` and where its result is used",
                as_block(&from.stmt).map_or("", |b| &*b.name)
            ))
            .at(w.stmt.span()));
        }
    }
    Ok(())
}

pub(crate) fn cursor_in(body: &Stmt, s: &Stmt) -> Result<Cursor> {
    find(body, |x| x.ptr_eq(s))
        .into_iter()
        .next()
        .ok_or_else(|| Error::internal("a block is not in its scope"))
}

/// What comes first of a statement and others, in the order of the text, where that is another one.
pub(crate) fn earlier(body: &Stmt, own: &Stmt, others: &[Cursor]) -> Option<Cursor> {
    let order = find(body, |s| s.ptr_eq(own) || others.iter().any(|o| o.stmt.ptr_eq(s)));
    order.into_iter().next().filter(|first| !first.stmt.ptr_eq(own))
}

fn compute_inline(func: &TensorFunc, block: &BlockRef) -> Result<Edited> {
    let st = StoreBlock::spatial(func, block)?;
    let vars = solve(&st.at.block, &st.indices, &st.buffer)?;
    let body = scope_of(func, &st.at, &st.buffer)?;
    st.reads_others()?;
    st.check_vars()?;
    let own = cursor_in(&body, &st.at.stmt)?;
    only_writer(&body, &st, &own)?;
    let whole = Region::whole(&st.buffer);
    cover(&Footprint::collect(&body, &st.buffer).writes, &whole, &st.known_outside(&own))
        .map_err(|e| e.context("the buffer must be filled as a whole"))?;
    let readers = users(&body, &st.buffer, |(r, _)| r);
    if let Some(first) = earlier(&body, &own.stmt, &readers) {
        return Err(Error::refused(format!(
            "`{}` is read before the block `{block}` writes it",
            st.buffer.name
        ))
        .at(first.stmt.span()));
    }
    st.read_by(&body, &own, &readers)?;
    let loads = readers.iter().map(|r| loads_as_text(&r.stmt, &st.buffer)).max().unwrap_or(0);
    check_size(&st.value, loads, &block.name)?;
    let mut point = Subst::default();
    for iter in &st.at.block.iters {
        if !vars.contains(&iter.var) {
            point.vars.insert(iter.var.clone(), iter.domain.min.clone().cast(iter.var.dtype()));
        }
    }
    let value = point.expr(&st.value);
    let mut inline = Inline {
        gone: removed(&own),
        buffer: &st.buffer,
        put: &mut |at: &[Expr]| {
            let mut s = Subst::refresh();
            for (v, e) in vars.iter().zip(at) {
                s.vars.insert(v.clone(), e.clone().cast(v.dtype()));
            }
            simplify_indices(&s.expr(&value), &Ranges::default())
        },
        opaque: None,
    };
    let body = inline.stmt(&func.body);
    if let Some(name) = inline.opaque {
        return Err(Error::refused(format!(
            "the block `{name}` reads `{}` and also works through pointers, so that what it reads \
             cannot be told",
            st.buffer.name
        )));
    }
    Ok((without_root(TensorFunc { body, ..func.clone() }), ()))
}

/// A root block that holds nothing any more goes.
fn without_root(func: TensorFunc) -> TensorFunc {
    let (allocs, body) = func.root_parts();
    let (allocs, body) = (allocs.to_vec(), body.clone());
    match func.root() {
        Some(_) => func.with_root(allocs, body),
        None => func,
    }
}

fn only_writer(body: &Stmt, st: &StoreBlock, own: &Cursor) -> Result<()> {
    match users(body, &st.buffer, |(_, w)| w).iter().find(|w| !w.stmt.ptr_eq(&own.stmt)) {
        None => Ok(()),
        Some(w) => Err(Error::refused(format!(
            "`{}` is not written by the block `{}` alone",
            st.buffer.name, st.at.block.name
        ))
        .at(w.stmt.span())),
    }
}

/// The largest statement that holds nothing but a block.
pub(crate) fn removed(own: &Cursor) -> Stmt {
    let mut gone = own.stmt.clone();
    for s in own.around.iter().rev() {
        match s.kind() {
            StmtKind::For { .. } | StmtKind::Let { .. } => gone = s.clone(),
            StmtKind::If { otherwise: None, .. } => gone = s.clone(),
            _ => break,
        }
    }
    gone
}

/// Takes a statement out and puts values where a buffer is read.
struct Inline<'a> {
    gone: Stmt,
    buffer: &'a Buffer,
    put: &'a mut dyn FnMut(&[Expr]) -> Expr,
    /// A block whose regions cannot be inferred.
    opaque: Option<Arc<str>>,
}

impl Fold for Inline<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(b, indices) if b == self.buffer => {
                let at: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
                (self.put)(&at)
            }
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if s.ptr_eq(&self.gone) { Stmt::nop() } else { fold_stmt_children(self, s) }
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let mut new = (**b).clone();
        if self.names_buffer(&b.reads) {
            new.reads = None;
        }
        if self.names_buffer(&b.writes) {
            new.writes = None;
        }
        if (self.names_buffer(&b.reads) || self.names_buffer(&b.writes))
            && b.body.any_expr(is_pointer)
        {
            self.opaque = Some(b.name.clone());
        }
        new.allocs.retain(|a| a != self.buffer);
        fold_block_children(self, &Arc::new(new))
    }
}

impl Inline<'_> {
    fn names_buffer(&self, l: &Option<Vec<Region>>) -> bool {
        l.as_ref().is_some_and(|l| l.iter().any(|r| r.buffer == *self.buffer))
    }
}

/// Whether an expression is a pointer.
fn is_pointer(e: &Expr) -> bool {
    e.as_var().is_some_and(|v| v.dtype() == tilewright_ir::DType::HANDLE)
}

fn reverse_inline(func: &TensorFunc, block: &BlockRef) -> Result<Edited> {
    let consumer = StoreBlock::spatial(func, block)?;
    consumer.check_vars()?;
    // The buffer that disappears: internal, and written by a block of the same scope.
    let mut why = consumer.at.refuse("reads no buffer that its scope allocates");
    let mut found = None;
    let scope = consumer.at.scope().and_then(as_block);
    for b in consumer.value.loaded_buffers() {
        if !scope.is_some_and(|s| s.allocs.contains(&b)) {
            continue;
        }
        let producer = scope_of(func, &consumer.at, &b).and_then(|body| {
            let producer = producer_of(func, block, &body, &consumer, &b)?;
            Ok((b, body, producer))
        });
        match producer {
            Ok(p) => found = found.or(Some(p)),
            Err(e) => why = e,
        }
    }
    let Some((buffer, body, producer)) = found else { return Err(why) };
    let out = &consumer.buffer;
    let from = cursor_in(&body, &producer.at.stmt)?;
    let to = cursor_in(&body, &consumer.at.stmt)?;
    if touches(&producer.at.stmt, out) != (false, false) {
        let why = format!("uses `{out}`, which would be written too early");
        return Err(producer.at.refuse(why));
    }
    consumer.reads_others()?;
    let list = std::slice::from_ref(&to);
    nothing_between(&body, &from, list, out, |(r, w)| r || w, "is used")?;
    for x in consumer.value.loaded_buffers().iter().filter(|x| **x != buffer) {
        nothing_between(&body, &from, list, x, |(_, w)| w, "is written")?;
    }
    // The producer's store, seen from the consumer.
    let at = read_at(&consumer, &buffer)?;
    let vars = solve(&consumer.at.block, &at, &buffer)?;
    let mut subst = Subst::refresh();
    for iter in &consumer.at.block.iters {
        let value = match vars.iter().position(|v| *v == iter.var) {
            Some(k) => producer.indices[k].clone(),
            None => iter.domain.min.clone(),
        };
        subst.vars.insert(iter.var.clone(), value.cast(iter.var.dtype()));
    }
    let loads = loads_as_text(&to.stmt, &buffer);
    check_size(&producer.value, loads, &producer.at.block.name)?;
    let mut replace = Inline {
        gone: removed(&to),
        buffer: &buffer,
        put: &mut |_| producer.value.clone(),
        opaque: None,
    };
    let value = simplify_indices(&subst.expr(&consumer.value), &Ranges::default());
    let value = replace.expr(&value);
    let indices: Vec<Expr> = consumer.indices.iter().map(|i| subst.expr(i)).collect();
    // Where the consumer does not read, as in padding, the producer may not run.
    let (was, becomes) = (
        written(&body, &consumer.at, out, &consumer.indices),
        written(&body, &producer.at, out, &indices),
    );
    if !fed(out, &was, &becomes, &consumer.known_outside(&to)) {
        return Err(producer.at.refuse(format!(
            "does not run for every cell of `{out}` that the block `{block}` writes"
        )));
    }
    let new = Block {
        reads: None,
        writes: None,
        body: Stmt::spanned(
            StmtKind::Store { buffer: out.clone(), indices, value },
            producer.at.block.body.span(),
        ),
        ..(*producer.at.block).clone()
    };
    let func = replace_in(func, &producer.at.stmt, &producer.at.with_block(new));
    Ok((without_root(TensorFunc { body: replace.stmt(&func.body), ..func }), ()))
}

/// The cells of a buffer that a block would write at these indices.
fn written(body: &Stmt, at: &BlockCursor, buffer: &Buffer, indices: &[Expr]) -> Vec<Cells> {
    // A buffer that nothing else uses.
    let probe = buffer.derive_storage(|_| {});
    let value = Expr::constant(0.0, buffer.dtype());
    let store = Stmt::store(&probe, indices.to_vec(), value);
    let alone = Block { reads: None, writes: None, body: store, ..(*at.block).clone() };
    Footprint::collect(&replace(body, &at.stmt, &at.with_block(alone)), &probe).writes
}

/// The indices at which a consumer reads a buffer, everywhere the same.
fn read_at(consumer: &StoreBlock, buffer: &Buffer) -> Result<Vec<Expr>> {
    let mut places: Vec<Vec<Expr>> = Vec::new();
    consumer.value.for_each_load(|b, at| {
        if b == buffer {
            places.push(at.to_vec());
        }
    });
    let first = places.first().cloned().unwrap_or_default();
    if places.iter().any(|x| !tilewright_ir::index::same_all(x, &first)) {
        let name = &buffer.name;
        return Err(consumer.at.refuse(format!("reads several cells of `{name}`")));
    }
    Ok(first)
}

/// The one block that fills a buffer for a consumer.
fn producer_of(
    func: &TensorFunc,
    block: &BlockRef,
    body: &Stmt,
    consumer: &StoreBlock,
    buffer: &Buffer,
) -> Result<StoreBlock> {
    let writers = users(body, buffer, |(_, w)| w);
    let [writer] = &writers[..] else {
        return Err(refused_buffer("not written by one block", buffer));
    };
    let Some(b) = as_block(&writer.stmt) else {
        return Err(refused_buffer("written outside of blocks", buffer));
    };
    let name = BlockRef { func: block.func.clone(), name: b.name.clone() };
    let producer = StoreBlock::spatial(func, &name).map_err(|e| e.at(writer.stmt.span()))?;
    if !producer.at.stmt.ptr_eq(&writer.stmt) || producer.buffer != *buffer {
        return Err(refused_buffer("written inside of another block", buffer));
    }
    let readers = users(body, buffer, |(r, _)| r);
    if let Some(other) = readers.iter().find(|r| !r.stmt.ptr_eq(&consumer.at.stmt)) {
        return Err(refused_buffer("read by others, too", buffer).at(other.stmt.span()));
    }
    if earlier(body, &writer.stmt, std::slice::from_ref(&consumer.at)).is_some() {
        return Err(refused_buffer("read before it is written", buffer));
    }
    let known = consumer.known_outside(&cursor_in(body, &consumer.at.stmt)?);
    let cells = Footprint::collect(body, buffer);
    let all = Region::whole(buffer);
    cover(&cells.writes, &all, &known)
        .map_err(|e| e.context(format!("the block `{}` must fill the buffer", b.name)))?;
    cover(&cells.reads, &all, &known)
        .map_err(|e| e.context(format!("the block `{block}` must read the whole buffer")))?;
    Ok(producer)
}

fn refused_buffer(why: &str, buffer: &Buffer) -> Error {
    Error::refused(format!("`{buffer}` is {why}"))
}
