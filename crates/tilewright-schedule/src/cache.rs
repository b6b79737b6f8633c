//! Copies of buffers: `cache_read`, `cache_write`, `cache_inplace`, also with another layout.
//!
//! A cache is a new buffer that is allocated in the scope of a block (the block around it, or the
//! whole function), a block that copies between it and the buffer, and the accesses of some blocks
//! that go to the cache instead:
//!
//! ```text
//! cache_read:     A_local[..] = A[..]  before the first consumer, after every earlier write of A
//! cache_write:    A[..] = A_local[..]  after the block, before the next access of A
//! cache_inplace:  both, directly around the block
//! ```
//!
//! Where the copy is directly in its scope, the cache has the size of the region that is
//! copied: what was written before, or what consumers that are given read of a buffer that nothing
//! writes; where it is in a loop, it has the size of the buffer, each iteration copies its
//! part, and consumers behind the loop may read the parts of all. What is legal follows from what
//! lies between the copy and the accesses: a cache for reading must hold what is read, and nothing
//! may write the buffer in between; a cache for writing must be written as a whole, or the copy
//! would overwrite cells with arbitrary values. A cache for reading has a box around what was written
//! before; unwritten cells in it are copied, too, and stay unwritten ones in the cache
//! (`docs/semantics.md`, *Values*).

use std::sync::Arc;

use tilewright_analysis::regions::declared_or_inferred;
use tilewright_ir::visit::{Subst, accessed, free_vars};
use tilewright_ir::{
    Block, Buffer, Error, Expr, Fold, ForKind, IterKind, IterVar, Range, Region, Result, Stmt,
    StmtKind, TensorFunc, Var,
};

use crate::argument::OptionalName;
use crate::buffer_arg::{BufferArg, Side};
use crate::copying::{Change, Copying, InsertionPoint, Redirect, Redirected, fit, hull, join};
use crate::cursor::{
    BlockCursor, Cursor, InFunction, as_block, as_loop, find, in_scope, the_block,
};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::BlockRef;
use tilewright_analysis::footprint::{
    Cells, Footprint, cover, fed, is_writer, known_around, reads_own_writes, touches, within,
};
use tilewright_transform::names::block_names;

primitives! {
    /// Copies a buffer that a block reads into a cache of a storage scope, and lets the consumers
    /// read from there: the given blocks, or every block of the scope that only reads the buffer
    /// between the same two writes. Returns the block that copies.
    ///
    /// # Errors
    /// `Refused` where the storage scope is not known, the block does not read the buffer or also
    /// writes it, a consumer is outside of where the copy is valid, or its pointer is used in
    /// a way that the cache cannot serve.
    cache_read(
        block: &BlockRef,
        [into] buffer "read_buffer_index" "buffer" "buffer_index": BufferArg,
        [into] storage_scope: OptionalName = OptionalName::default(),
        consumer_blocks: &[BlockRef] = &[]
    ) -> BlockRef, edit |f| cache_read(f, block, &buffer, storage_scope.get(), consumer_blocks);

    /// Lets a block write a cache of a storage scope, which is then copied to the buffer; the
    /// given consumers read the cache. Returns the block that copies.
    ///
    /// # Errors
    /// `Refused` where the storage scope is not known, the block does not write the buffer, reads
    /// of it what it has not written itself, or does not write its region as a whole.
    cache_write(
        block: &BlockRef,
        [into] buffer "write_buffer_index" "buffer" "buffer_index": BufferArg,
        [into] storage_scope: OptionalName = OptionalName::default(),
        consumer_blocks: &[BlockRef] = &[]
    ) -> BlockRef, edit |f| cache_write(f, block, &buffer, storage_scope.get(), consumer_blocks);

    /// Lets a block work on a cache of a storage scope that is filled before it and copied back
    /// after it. Returns the two blocks that copy.
    ///
    /// # Errors
    /// `Refused` where the storage scope is not known, or the block does not both read and write
    /// the buffer.
    cache_inplace(
        block: &BlockRef,
        [into] buffer "read_buffer_index" "buffer" "buffer_index": BufferArg,
        [into] storage_scope: OptionalName = OptionalName::default()
    ) -> (BlockRef, BlockRef), edit |f| cache_inplace(f, block, &buffer, storage_scope.get());
}

/// The storage scope that is asked for; that of the buffer where nothing is said.
pub(crate) fn scope_or_own(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    side: Side,
    storage_scope: Option<&str>,
) -> Result<Arc<str>> {
    match storage_scope {
        Some(scope) => check_storage_scope(scope).map(|()| scope.into()),
        None => Ok(which.region(&the_block(func, block)?.block, side)?.buffer.scope.clone()),
    }
}

/// Refuses storage scopes that no part of the system knows.
pub(crate) fn check_storage_scope(scope: &str) -> Result<()> {
    const KNOWN: [&str; 14] = [
        "global",
        "local",
        "shared",
        "shared.dyn",
        "warp",
        "wmma.matrix_a",
        "wmma.matrix_b",
        "wmma.accumulator",
        "m16n8k8.matrixA",
        "m16n8k8.matrixB",
        "m16n8k8.matrixC",
        "global.vtcm",
        "global.workspace",
        "texture",
    ];
    if KNOWN.contains(&scope) || scope.starts_with("global.texture") {
        return Ok(());
    }
    Err(Error::refused(format!("the storage scope `{scope}` is not known"))
        .note(format!("known are: {}, global.texture*", KNOWN.join(", "))))
}

/// The body of the scope around a cursor, inside of what only defines buffers and values.
fn scope_body(func: &TensorFunc, scope: Option<&Stmt>) -> Stmt {
    let mut at = match scope.and_then(as_block) {
        Some(b) => b.body.clone(),
        None => func.body.clone(),
    };
    while let Some(body) = at.body().filter(|_| as_loop(&at).is_none()) {
        at = body.clone();
    }
    at
}

/// A sequence around a statement: the sequence, and which of its elements holds the statement.
struct InSeq {
    elements: Vec<Stmt>,
    at: usize,
    /// Statements around the sequence, outermost first.
    around: Vec<Stmt>,
}

/// The sequences around a cursor up to its scope, innermost first.
fn sequences(cursor: &Cursor) -> Vec<InSeq> {
    let mut out = Vec::new();
    let outside = cursor.around.len() - in_scope(&cursor.around).len();
    for (k, s) in cursor.around.iter().enumerate().skip(outside).rev() {
        if let StmtKind::Seq(elements) = s.kind() {
            let inner = cursor.around.get(k + 1).unwrap_or(&cursor.stmt);
            if let Some(at) = elements.iter().position(|e| e.ptr_eq(inner)) {
                let around = cursor.around[..k].to_vec();
                out.push(InSeq { elements: elements.clone(), at, around });
            }
        }
    }
    out
}

/// Whether one of the loops inside the scope runs more than once, as far as known.
fn repeats(around: &[Stmt]) -> bool {
    in_scope(around)
        .iter()
        .filter_map(as_loop)
        .any(|(_, range, _)| range.extent.as_int().is_none_or(|n| n > 1))
}

/// Whether both scopes are one.
fn same_scope(a: Option<&Stmt>, b: Option<&Stmt>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.ptr_eq(b),
        _ => false,
    }
}

/// The blocks directly in a scope.
fn blocks_in(func: &TensorFunc, scope: Option<&Stmt>) -> Vec<Cursor> {
    find(&func.body, |s| as_block(s).is_some())
        .into_iter()
        .filter(|s| same_scope(s.scope(), scope))
        .collect()
}

/// What around a statement of the scope's body is outside of that body.
fn around_body(func: &TensorFunc, body: &Stmt) -> Vec<Stmt> {
    find(&func.body, |s| s.ptr_eq(body)).into_iter().next().map_or_else(Vec::new, |s| s.around)
}

/// Where a copy for reading goes, and its readers.
pub(crate) struct ReadPlace {
    pub at: BlockCursor,
    pub buffer: Buffer,
    pub place: InsertionPoint,
    /// The blocks that read the copy.
    pub nodes: Vec<Stmt>,
    /// The statements beside the copy that hold them.
    touched: Vec<Stmt>,
    /// The statements beside the copy that come before it, where the scope writes the buffer.
    writers: Option<Vec<Stmt>>,
    /// Listed consumers behind the loops around the copy, whose iterations have all filled their
    /// part of it by then.
    behind: Vec<Cursor>,
}

/// Finds the place of a copy for reading.
pub(crate) fn read_place(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    consumers: &[BlockRef],
) -> Result<ReadPlace> {
    let at = the_block(func, block)?;
    let buffer = which.region(&at.block, Side::Read)?.buffer;
    if touches(&at.stmt, &buffer).1 {
        let name = &buffer.name;
        return Err(at
            .refuse(format!("also writes `{name}`, and would not see that in a copy"))
            .help("use cache_inplace"));
    }
    let scope = at.scope().cloned();
    let mut listed: Vec<Cursor> =
        consumers.iter().map(|c| c.cursor(func)).collect::<Result<_>>()?;
    let in_scope = blocks_in(func, scope.as_ref());
    if let Some(other) = listed.iter().find(|l| !in_scope.iter().any(|s| s.stmt.ptr_eq(&l.stmt))) {
        return Err(Error::refused(format!(
            "the consumer `{}` is not in the same scope as the block `{block}`",
            as_block(&other.stmt).map_or("", |b| &*b.name)
        ))
        .at(other.stmt.span()));
    }
    listed.sort_by_key(|l| in_scope.iter().position(|s| s.stmt.ptr_eq(&l.stmt)));
    // The innermost sequence around the block in which something else writes the buffer before,
    // or after it in a loop.
    let anchor = listed.first().map_or(&*at, |l| l);
    let found = sequences(anchor).into_iter().find(|q| {
        let earlier = q.elements[..q.at].iter().any(|s| touches(s, &buffer).1);
        earlier || (repeats(&q.around) && q.elements[q.at..].iter().any(|s| touches(s, &buffer).1))
    });
    let body = scope_body(func, scope.as_ref());
    let wanted: Vec<Cursor> = if listed.is_empty() {
        in_scope
            .into_iter()
            .filter(|s| {
                let (r, w) = touches(&s.stmt, &buffer);
                r && !w
            })
            .collect()
    } else {
        listed.clone()
    };
    // Elements from `first` on may read the copy.
    let (elements, first, around, writers) = match &found {
        Some(q) => {
            let first =
                q.elements[..q.at].iter().rposition(|s| touches(s, &buffer).1).map_or(0, |k| k + 1);
            let writers = q.elements[..first].to_vec();
            (q.elements.clone(), first, q.around.clone(), writers)
        }
        None => (vec![body.clone()], 0, around_body(func, &body), Vec::new()),
    };
    // A write before a consumer, or in a loop with it, would be missed.
    let later: Vec<Cursor> =
        elements[first..].iter().flat_map(|e| find(e, |s| is_writer(s, &buffer))).collect();
    // Behind the loops around the copy, if all writes are in them and before it.
    let writes_before = found.is_some()
        && find(&body, |s| is_writer(s, &buffer))
            .iter()
            .all(|w| elements[..first].iter().any(|e| w.stmt.ptr_eq(e) || w.inside(e)));
    let is_behind = |s: &Cursor| {
        let end = elements.last().filter(|_| writes_before && !listed.is_empty());
        end.is_some_and(|e| !e.ptr_eq(&s.stmt) && !s.inside(e) && comes_after(&body, &s.stmt, e))
    };
    let mut redirected: Vec<(usize, Stmt)> = Vec::new();
    let mut behind: Vec<Cursor> = Vec::new();
    for s in &wanted {
        let needed = !listed.is_empty() || s.stmt.ptr_eq(&at.stmt);
        match (
            element_of(s, &elements, first),
            later.iter().find(|w| w.shares_loop(s) || !comes_after(&body, &w.stmt, &s.stmt)),
        ) {
            (Some(k), None) => redirected.push((k, s.stmt.clone())),
            (None, None) if is_behind(s) => behind.push(s.clone()),
            (_, write) if needed => {
                return Err(Error::refused(format!(
                    "`{buffer}` is written between any place for its copy and the consumer `{}`",
                    as_block(&s.stmt).map_or("", |b| &*b.name)
                ))
                .at(write.map_or(s.stmt.span(), |w| w.stmt.span())));
            }
            _ => {}
        }
    }
    let start = redirected.iter().map(|(k, _)| *k).min().unwrap_or(first);
    let place = match &found {
        Some(_) => InsertionPoint { node: elements[start].clone(), before: true, around },
        None => InsertionPoint { node: body.clone(), before: true, around },
    };
    let nodes = redirected.iter().map(|(_, s)| s).chain(behind.iter().map(|s| &s.stmt));
    let nodes: Vec<Stmt> = nodes.cloned().collect();
    let mut touched: Vec<Stmt> = redirected.iter().map(|(k, _)| elements[*k].clone()).collect();
    touched.dedup_by(|a, b| a.ptr_eq(b));
    let writers = found.map(|_| writers);
    Ok(ReadPlace { at, buffer, place, nodes, touched, writers, behind })
}

fn element_of(s: &Cursor, elements: &[Stmt], first: usize) -> Option<usize> {
    elements
        .iter()
        .position(|e| e.ptr_eq(&s.stmt) || s.around.iter().any(|a| a.ptr_eq(e)))
        .filter(|k| *k >= first)
}

fn cache_read(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    storage_scope: Option<&str>,
    consumers: &[BlockRef],
) -> Result<Edited<BlockRef>> {
    let storage_scope = &*scope_or_own(func, block, which, Side::Read, storage_scope)?;
    let found = read_place(func, block, which, consumers)?;
    let ReadPlace { at, buffer, place, nodes, touched, writers, behind } = found;
    let scope = at.scope();
    let known = known_around(&place.around);
    // Of what nothing writes, listed consumers get what they read.
    let touched = match &writers {
        None if !consumers.is_empty() => {
            let nests: Option<Vec<Stmt>> = nodes.iter().map(|s| alone(func, s)).collect();
            nests.unwrap_or(touched)
        }
        _ => touched,
    };
    let reads: Vec<_> = touched.iter().flat_map(|s| Footprint::collect(s, &buffer).reads).collect();
    let holds = |r: &Region| {
        let (r, _) = fit(r, &known);
        within(&reads, &r, &known)
    };
    // What was written; failing that, what the scope reads; failing that, what is read.
    let before = writers.iter().flatten();
    let hull_of = |s: &Stmt, write: bool| hull(s, &buffer, write, &place.around);
    let written = join(before.filter_map(|s| hull_of(s, true)).collect());
    let of_scope = || match (scope.and_then(as_block), &writers) {
        (Some(s), None) if !s.is_plain_root() && !s.iters.is_empty() => {
            let (reads, _) = declared_or_inferred(s);
            reads.into_iter().find(|r| r.buffer == buffer)
        }
        _ => None,
    };
    let whole = Region::whole(&buffer);
    let region = written
        .filter(&holds)
        .or_else(|| of_scope().filter(&holds))
        .or_else(|| {
            writers.as_ref().map(drop).or((!consumers.is_empty()).then_some(()))?;
            join(touched.iter().filter_map(|s| hull_of(s, false)).collect()).filter(&holds)
        })
        .unwrap_or(whole);
    let copy = Copying::new(&region, storage_scope, place.in_scope_directly(), &known);
    copy.check_pointers(func, &nodes)?;
    // A read behind the loops gets what the last iteration to write a cell has left there.
    let before = writers.iter().flatten();
    let written: Vec<_> = before.flat_map(|s| Footprint::collect(s, &buffer).writes).collect();
    for s in &behind {
        let filled = so_far(&copy.block(&block.name, true), &place.around, s, &copy.cache);
        let held = within(&written, &copy.region, &known)
            && !place.in_scope_directly()
            && holds_reads(s, &buffer, &filled);
        if !held {
            return Err(more_than_held(s, &buffer));
        }
    }
    let (func, [copy]) = finish(func, block, scope, &copy, &nodes, [(place, true)]);
    Ok((func, copy))
}

/// The loops around a block up to its scope with the block alone in them; `None` where they may need
/// values that are bound on the way.
fn alone(func: &TensorFunc, block: &Stmt) -> Option<Stmt> {
    let cursor = find(&func.body, |s| s.ptr_eq(block)).into_iter().next()?;
    let around = in_scope(&cursor.around);
    let binds = around.iter().any(|s| {
        as_loop(s).is_none() && !matches!(s.kind(), StmtKind::Seq(_) | StmtKind::If { .. })
    });
    if binds {
        return None;
    }
    let loops = around.iter().filter(|s| as_loop(s).is_some());
    Some(loops.rev().fold(cursor.stmt.clone(), |body, s| s.with_body(body)))
}

/// What a statement has written of a buffer when a reader that comes after it runs: in all
/// iterations of loops around it that are not around the reader, and in those up to the present one
/// of the innermost loop around both. Nothing where more than loops is around it.
fn so_far(s: &Stmt, around: &[Stmt], reader: &Cursor, buffer: &Buffer) -> Vec<Cells> {
    let around = in_scope(around);
    if !around
        .iter()
        .all(|s| reader.inside(s) || as_loop(s).is_some() || matches!(s.kind(), StmtKind::Seq(_)))
    {
        return Vec::new();
    }
    let loops: Vec<&Stmt> = around.iter().filter(|s| as_loop(s).is_some()).collect();
    let innermost = loops.iter().rposition(|s| reader.inside(s));
    let mut all = s.clone();
    for (k, l) in loops.iter().enumerate().rev() {
        let Some((var, range, _)) = as_loop(l) else { continue };
        if !reader.inside(l) {
            all = Stmt::for_loop(var, range.clone(), ForKind::Serial, all);
        } else if Some(k) == innermost {
            let earlier = var.fresh();
            let extent = var.expr() - &range.min + 1;
            let body = Subst::vars([(var.clone(), earlier.expr())]).stmt(&all);
            let range = Range { min: range.min.clone(), extent };
            all = Stmt::for_loop(&earlier, range, ForKind::Serial, body);
        }
    }
    Footprint::collect(&all, buffer).writes
}

/// Whether all that a consumer reads of a buffer is among cells of its cache.
fn holds_reads(consumer: &Cursor, buffer: &Buffer, filled: &[Cells]) -> bool {
    let reads = Footprint::collect(&consumer.stmt, buffer).reads;
    fed(buffer, &reads, filled, &known_around(&consumer.around))
}

fn more_than_held(consumer: &Cursor, buffer: &Buffer) -> Error {
    let name = as_block(&consumer.stmt).map_or("", |b| &*b.name);
    let what = format!(
        "the consumer `{name}` reads more of `{buffer}` than the cache is known to hold then"
    );
    Error::refused(what).at(consumer.stmt.span())
}

/// Applies a change and returns the blocks that copy, one for each place.
fn finish<const N: usize>(
    func: &TensorFunc,
    at: &BlockRef,
    scope: Option<&Stmt>,
    copy: &Copying,
    nodes: &[Stmt],
    places: [(InsertionPoint, bool); N],
) -> Edited<[BlockRef; N]> {
    let (from, to) = (&copy.region.buffer, &copy.cache);
    let mut change = Change {
        scope,
        allocs: vec![copy.cache.clone()],
        redirect: nodes
            .iter()
            .map(|s| (s.clone(), Redirect { from, to, place: Redirected::Less(&copy.offsets) }))
            .collect(),
        ..Change::default()
    };
    let mut names = block_names(func);
    let made = places.map(|(place, into_cache)| {
        let name = names.take(&copy.cache.name);
        change.insert.push((place, copy.block(&name, into_cache)));
        BlockRef { func: at.func.clone(), name }
    });
    (change.apply(func), made)
}

/// Where the copy back of a block's writes goes.
pub(crate) struct WritePlace {
    pub at: BlockCursor,
    pub buffer: Buffer,
    pub place: InsertionPoint,
    /// What holds the block, beside or before the copy; nothing else in it accesses the buffer.
    element: Stmt,
    /// The body of the scope.
    body: Stmt,
    /// The consumers that will read the cache.
    listed: Vec<Cursor>,
    /// The block and those consumers.
    pub nodes: Vec<Stmt>,
}

/// Finds the place of the copy back of a block's writes.
pub(crate) fn write_place(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    consumers: &[BlockRef],
) -> Result<WritePlace> {
    let cursor = the_block(func, block)?;
    let b = cursor.block.clone();
    let buffer = which.region(&b, Side::Write)?.buffer;
    let scope = cursor.scope();
    let known_block = known_around(&cursor.around);
    if let Some(iter) = never_first(&cursor, &known_block)
        && touches(&b.body, &buffer).0
    {
        return Err(Error::refused(format!(
            "the initialisation of `{buffer}` does not run where its block `{}` updates it: `{}` never \
             has its first value there",
            b.name,
            iter.var.name()
        )));
    }
    reads_own_writes(&cursor.stmt, &buffer, &known_block).map_err(|e| {
        e.context(format!("the block `{}` needs what was in `{buffer}` before", b.name))
            .help("use cache_inplace, which fills the cache first")
    })?;
    let body = scope_body(func, scope);
    let mut listed: Vec<Cursor> = Vec::new();
    for c in consumers {
        let consumer = c.cursor(func)?;
        let together = same_scope(consumer.scope(), scope);
        let why = match (together, touches(&consumer.stmt, &buffer)) {
            (false, _) => "it is in another scope",
            (_, (_, true)) => "it writes the buffer",
            (_, (false, _)) => "it does not read the buffer",
            _ => {
                listed.push(consumer);
                continue;
            }
        };
        return Err(Error::refused(format!(
            "`{}` is no consumer of `{buffer}` in the scope of `{}`: {why}",
            c.name, b.name
        ))
        .at(consumer.stmt.span()));
    }
    let nodes: Vec<Stmt> =
        std::iter::once(&*cursor).chain(&listed).map(|s| s.stmt.clone()).collect();
    let found = sequences(&cursor).into_iter().find(|q| {
        q.elements.iter().any(|s| touches_but(s, &nodes[..1], &buffer) != (false, false))
    });
    let (element, place) = match &found {
        Some(q) => {
            let next = q.elements[q.at + 1..]
                .iter()
                .position(|s| touches_but(s, &nodes, &buffer) != (false, false))
                .map(|k| q.at + 1 + k);
            let (node, before) = match next {
                Some(k) => (&q.elements[k], true),
                None => (&q.elements[q.elements.len() - 1], false),
            };
            (
                q.elements[q.at].clone(),
                InsertionPoint { node: node.clone(), before, around: q.around.clone() },
            )
        }
        None => {
            let around = around_body(func, &body);
            (body.clone(), InsertionPoint { node: body.clone(), before: false, around })
        }
    };
    let others_write = touches_but(&body, &nodes, &buffer).1;
    if others_write && !listed.is_empty() {
        return Err(Error::refused(format!(
            "other blocks write `{buffer}` too, so that its cache does not hold all that a consumer \
             reads"
        )));
    }
    check_reduction(&cursor, &place, others_write)?;
    Ok(WritePlace { at: cursor, buffer, place, element, body, listed, nodes })
}

/// Accesses by others, and by others than the listed consumers, which will read the cache.
fn touches_but(s: &Stmt, hidden: &[Stmt], buffer: &Buffer) -> (bool, bool) {
    let shown = s.replace(|s| hidden.iter().any(|n| n.ptr_eq(s)).then(Stmt::nop));
    touches(&shown, buffer)
}

fn cache_write(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    storage_scope: Option<&str>,
    consumers: &[BlockRef],
) -> Result<Edited<BlockRef>> {
    let storage_scope = &*scope_or_own(func, block, which, Side::Write, storage_scope)?;
    let found = write_place(func, block, which, consumers)?;
    let WritePlace { at: cursor, buffer, place, element, body, listed, nodes } = found;
    let b = &cursor.block;
    let known = known_around(&place.around);
    // Only what the block itself writes counts: the others in the element are hidden by `found`.
    let region = hull(&element, &buffer, true, &place.around)
        .ok_or_else(|| Error::internal("the block writes nothing of its buffer"))?;
    let (fitted, _) = fit(&region, &known);
    let footprint = Footprint::collect(&element, &buffer);
    let opaque = !accessed(&b.body).1.contains(&buffer);
    if !opaque {
        must_write(b, &footprint.writes, &fitted, &known)?;
    }
    let copy = Copying::new(&region, storage_scope, place.in_scope_directly(), &known);
    let copied_in = place.around.clone();
    for s in &listed {
        let inside = s.around.iter().any(|a| a.ptr_eq(&element));
        let cells = Footprint::collect(&s.stmt, &buffer).reads;
        let known = [known.clone(), known_around(&s.around)].concat();
        let held = || {
            if within(&cells, &copy.region, &known) {
                return Ok(true);
            }
            // A cache of the buffer's size also keeps what other iterations have written.
            let filled = so_far(&element, &copied_in, s, &buffer);
            Ok::<bool, Error>(!copy.cropped && holds_reads(s, &buffer, &filled))
        };
        if inside || !comes_after(&body, &s.stmt, &cursor.stmt) || !held()? {
            return Err(more_than_held(s, &buffer));
        }
    }
    copy.check_pointers(func, &nodes)?;
    let (func, [copy]) = finish(func, block, cursor.scope(), &copy, &nodes, [(place, false)]);
    Ok((func, copy))
}

/// Checks that a block writes every cell of the region that a copy takes from its cache.
pub(crate) fn must_write(
    b: &Block,
    writes: &[Cells],
    region: &Region,
    known: &[Expr],
) -> Result<()> {
    cover(writes, region, known).map_err(|e| {
        e.context(format!(
            "the block `{}` must write all that is copied from the cache to `{}`",
            b.name, region.buffer.name
        ))
    })
}

/// Whether a statement comes after another one in the text.
fn comes_after(body: &Stmt, s: &Stmt, other: &Stmt) -> bool {
    let order = find(body, |x| x.ptr_eq(s) || x.ptr_eq(other));
    order.first().is_some_and(|first| first.stmt.ptr_eq(other)) && order.len() == 2
}

/// A cache that is copied before its block has come to an end must keep its values meanwhile.
fn check_reduction(cursor: &BlockCursor, place: &InsertionPoint, others_write: bool) -> Result<()> {
    let b = &cursor.block;
    let loops: Vec<&Var> = in_scope(&cursor.around).iter().filter_map(Stmt::loop_var).collect();
    let outside: Vec<&Var> = place.around.iter().filter_map(Stmt::loop_var).collect();
    let reduced = cursor.pairs().filter(|(i, _)| i.kind != IterKind::Spatial && b.init.is_some());
    for (_, value) in reduced {
        for v in free_vars(value) {
            let is_loop = loops.contains(&&v);
            if !is_loop && scope_var(cursor, &v) {
                return Err(Error::refused(format!(
                    "the reduction of `{}` over `{v}` goes on from one instance of its scope to the \
                     next, and a cache lives for one",
                    b.name
                )));
            }
            if outside.contains(&&v) && others_write {
                return Err(Error::refused(format!(
                    "the loop `{v}` over the reduction of `{}` also holds other writes of the \
                     buffer",
                    b.name
                )));
            }
        }
    }
    Ok(())
}

/// A reduction variable of a block that never has its first value, so that the initialisation of the
/// block does not run: loops that were cut leave such parts.
fn never_first<'a>(at: &'a BlockCursor, known: &[Expr]) -> Option<&'a IterVar> {
    at.block.init.as_ref()?;
    let domain = tilewright_polyhedral::Engine::new().domain_of(&[], known);
    let mut pairs = at.of_kind(IterKind::Reduce);
    pairs
        .find(|(i, value)| domain.proves(&(*value).clone().not_equal(i.domain.min.clone())))
        .map(|(i, _)| i)
}

/// Whether a variable is one of the loops or iteration variables outside of the scope's body.
fn scope_var(cursor: &Cursor, v: &Var) -> bool {
    cursor.around.iter().any(|s| match s.kind() {
        StmtKind::Block { block, .. } => block.iters.iter().any(|i| i.var == *v),
        StmtKind::For { var, .. } => var == v,
        _ => false,
    })
}

fn cache_inplace(
    func: &TensorFunc,
    block: &BlockRef,
    which: &BufferArg,
    storage_scope: Option<&str>,
) -> Result<Edited<(BlockRef, BlockRef)>> {
    let storage_scope = &*scope_or_own(func, block, which, Side::Read, storage_scope)?;
    let at = the_block(func, block)?;
    let buffer = which.region(&at.block, Side::Read)?.buffer;
    let name = &buffer.name;
    if !declared_or_inferred(&at.block).1.iter().any(|r| r.buffer == buffer) {
        let why = format!("reads `{name}` and does not write it");
        return Err(at.refuse(why).help("use cache_read"));
    }
    if at.block.init.as_ref().is_some_and(|init| touches(init, &buffer).1) {
        let why =
            format!("initialises `{name}`, which holds nothing before that could fill a cache");
        return Err(at.refuse(why).help("use cache_write"));
    }
    let known = known_around(&at.around);
    // All that is copied back was filled before, so that nothing else changes.
    let both =
        [false, true].into_iter().filter_map(|write| hull(&at.stmt, &buffer, write, &at.around));
    let both = join(both.collect())
        .ok_or_else(|| Error::internal("the block touches nothing of its buffer"))?;
    let copy = Copying::new(&both, storage_scope, place_at(true, &at).in_scope_directly(), &known);
    let nodes = std::slice::from_ref(&at.stmt);
    copy.check_pointers(func, nodes)?;
    let places = [(place_at(true, &at), true), (place_at(false, &at), false)];
    let (func, [fill, back]) = finish(func, block, at.scope(), &copy, nodes, places);
    Ok((func, (fill, back)))
}

fn place_at(before: bool, at: &BlockCursor) -> InsertionPoint {
    InsertionPoint { node: at.stmt.clone(), before, around: at.around.clone() }
}
