//! `tensorize`: a piece of a nest becomes an instruction of the hardware.
//!
//! An instruction is a pair of tensor functions over the same parameters: the *description* says
//! in plain loops what it computes, the *implementation* how it is asked for. That both compute
//! the same is a promise of who wrote them; that the nest is what the description
//! says is checked here.
//!
//! ```text
//! for io, ki:                                   tensorize(ii, "dot")
//!     for ii, kk: C[io*4+ii] += A[io*4+ii, ki*8+kk]
//!
//! for io, ki:
//!     with T.block("C_o"):
//!         vio, vki = T.axis.remap("SR", [io, ki])
//!         c = T.match_buffer(C[vio*4 : vio*4+4], (4,))
//!         a = T.match_buffer(A[vio*4 : vio*4+4, vki*8 : vki*8+8], (4, 8))
//!         ...                                   the implementation, over `c` and `a`
//! ```
//!
//! Both sides are compared as statements without blocks, where a block's initialisation is a
//! condition on its reduction. Each parameter stands for a box of one buffer, whose corner is what
//! is left of the first access in the nest when the description's index is taken away; all other
//! accesses must then agree, and the rest of the code must be the same, but for the order of factors. A
//! predicate that is the same in the whole nest stays, around the implementation.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_analysis::regions::declared_or_inferred;
use tilewright_ir::equal::{Equality, stmts};
use tilewright_ir::index::{Ranges, simplify, simplify_indices};
use tilewright_ir::visit::{
    Subst, fold_expr_children, fold_func, fold_stmt_children, free_vars, walk_stmt,
};
use tilewright_ir::{
    Attr, BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, IterKind, IterVar, MatchRegion, Range,
    Region, Result, Stmt, StmtKind, TensorFunc, Var, Visit,
};
use tilewright_polyhedral::Engine;
use tilewright_target::TENSOR_INSTRUCTION;
use tilewright_transform::lower::blocks::lower_blocks;

use crate::argument::BlockOrLoop;
use crate::cursor::{Cursor, InFunction, as_block, as_loop, find, replace_in};
use crate::loops::edit_loop;
use crate::primitive::primitives;
use crate::schedule::{Edited, Schedule};
use tilewright_analysis::footprint::known_around;
use tilewright_transform::names::fresh_block_name;

/// An instruction: what it computes, and how it is asked for, over the same parameters.
#[derive(Clone, Debug)]
struct Intrinsic {
    /// What it computes, in plain loops.
    desc: Arc<TensorFunc>,
    /// What takes the place of such loops.
    implementation: Arc<TensorFunc>,
    /// Whether the loops stay and are marked: what the lanes of a warp do together.
    marks: bool,
}

impl Schedule {
    /// The instruction of this name: the functions `NAME_desc` and `NAME_impl` of the module, or one that
    /// a target has.
    fn intrinsic(&self, name: &str) -> Result<Intrinsic> {
        let part = |part: &str| self.func(&format!("{name}_{part}")).cloned();
        let (Ok(desc), Ok(implementation)) = (part("desc"), part("impl")) else {
            let known = tilewright_target::instruction(name);
            if let Some(i) = known
                && let Some(implementation) = i.implementation()
            {
                let (desc, implementation) = (Arc::new(i.description()), Arc::new(implementation));
                return Ok(Intrinsic { desc, implementation, marks: i.is_of_warp() });
            }
            let e = Error::refused(format!("there is no instruction `{name}`"));
            return Err(e.help(format!(
                "define the functions `{name}_desc` and `{name}_impl` in the module"
            )));
        };
        let found = Intrinsic { desc, implementation, marks: false };
        check_pair(name, &found)?;
        Ok(found)
    }
}

// The iteration variables of the new block stand for the loops outside, of one iteration or more.
primitives! {
    /// Puts an instruction in the place of a loop or block, in a block that is called after the
    /// first one there, `NAME_o`.
    ///
    /// # Errors
    /// `Refused` where what is there is not what the instruction computes, with the first
    /// difference, or a box that it works on is not known to lie in its buffer.
    tensorize(
        [into] target "block_or_loop" "block" "loop": BlockOrLoop,
        tensor_intrin: &str;
        preserve_unit_iters = true or false
    ), run |sch, step| {
        let intrinsic = sch.intrinsic(tensor_intrin)?;
        sch.edit(&target, step, |f| {
            let cursor = target.cursor(f)?;
            // What is refused is said of the description as it is written.
            let made = tensorize(f, &cursor, &intrinsic).or_else(|e| {
                let desc = Arc::new(fold_func(&mut Exchanged, &intrinsic.desc));
                let implementation = intrinsic.implementation.clone();
                tensorize(f, &cursor, &Intrinsic { desc, implementation, marks: false }).map_err(|_| e)
            });
            match &target {
                // The loops stay, which mean the same, and say what lanes do together.
                BlockOrLoop::Loop(l) if intrinsic.marks => made.and_then(|_| {
                    edit_loop(f, l, |_, annotations| {
                        annotations
                            .insert(TENSOR_INSTRUCTION.into(), Attr::Str(tensor_intrin.into()));
                        Ok(())
                    })
                }),
                _ => made,
            }
        })
    };
}

/// The factors of products in the other order, which are the same products.
struct Exchanged;

impl Fold for Exchanged {
    fn expr(&mut self, e: &Expr) -> Expr {
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Binary(BinOp::Mul, a, b) => Expr::binary(BinOp::Mul, b.clone(), a.clone()),
            _ => e,
        }
    }
}

fn check_pair(name: &str, i: &Intrinsic) -> Result<()> {
    let (desc, implementation) = (&i.desc, &i.implementation);
    let (a, b): (Vec<_>, Vec<_>) = (desc.buffers().collect(), implementation.buffers().collect());
    let plain = a.len() == desc.params.len()
        && b.len() == implementation.params.len()
        && implementation.root().is_none_or(|r| r.matches.is_empty() && r.init.is_none());
    if plain && a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same_shape(a, b)) {
        Ok(())
    } else {
        Err(Error::refused(format!(
            "the description and the implementation of `{name}` do not have the same parameters, \
             buffers of fixed shapes, or the implementation begins with views"
        )))
    }
}

fn same_shape(a: &Buffer, b: &Buffer) -> bool {
    a.dtype() == b.dtype() && a.const_shape().is_some() && a.const_shape() == b.const_shape()
}

/// Loads and stores in the order in which they happen, each with its indices, and the loops.
#[derive(Default)]
struct AccessSequence {
    accesses: Vec<(Buffer, Vec<Expr>)>,
    loops: Vec<Var>,
}

impl Visit for AccessSequence {
    fn access(&mut self, b: &Buffer, indices: &[Expr], _: bool) {
        self.accesses.push((b.clone(), indices.to_vec()));
    }
    fn stmt(&mut self, s: &Stmt) {
        self.loops.extend(s.loop_var().cloned());
        walk_stmt(self, s);
    }
}

/// The statement without blocks, and the values of its loops and of those around it.
fn bare(func: &TensorFunc, body: &Stmt, around: &[Stmt]) -> Result<(Stmt, Ranges)> {
    let plain = lower_blocks(&TensorFunc { body: body.clone(), ..func.clone() })?.body;
    let mut ranges = Ranges::default();
    let mut loops: Vec<Stmt> = around.to_vec();
    plain.for_each(&mut |s: &Stmt| loops.push(s.clone()));
    for (var, range, _) in loops.iter().filter_map(as_loop) {
        ranges.bind_loop(var, range);
    }
    let plain = Tidy(&ranges).stmt(&plain);
    Ok((plain, ranges))
}

/// Indices and conditions in one form, whatever they were made of.
struct Tidy<'a>(&'a Ranges);

impl Fold for Tidy<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        simplify_indices(e, self.0)
    }
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => Stmt::spanned(
                StmtKind::Store {
                    buffer: buffer.clone(),
                    indices: indices.iter().map(|e| simplify(e, self.0)).collect(),
                    value: self.expr(value),
                },
                s.span(),
            ),
            StmtKind::If { cond, then, otherwise } => {
                let (cond, then) = (simplify(cond, self.0), self.stmt(then));
                match otherwise {
                    None => Stmt::guard(cond, then),
                    Some(o) => Stmt::if_else(cond, then, self.stmt(o)),
                }
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

/// A parameter of the description: a box of a buffer.
struct Slice {
    buffer: Buffer,
    /// The corner, one index an axis of the buffer.
    corner: Vec<Expr>,
}

/// Where each parameter lies, as the accesses of the nest and of the description pair up.
fn slices(
    desc: &AccessSequence,
    nest: &AccessSequence,
    ranges: &Ranges,
) -> Result<HashMap<Buffer, Slice>> {
    for (ours, theirs, what) in [
        (nest.loops.len(), desc.loops.len(), "loops"),
        (nest.accesses.len(), desc.accesses.len(), "accesses to memory"),
    ] {
        if ours != theirs {
            return Err(Error::refused(format!(
                "the number of {what} is {ours}, where the description has {theirs}"
            )));
        }
    }
    let pairs = desc.loops.iter().zip(&nest.loops);
    let mut renamed = Subst::vars(pairs.map(|(d, n)| (d.clone(), n.expr())));
    let mut out: HashMap<Buffer, Slice> = HashMap::default();
    for ((param, at), (buffer, indices)) in desc.accesses.iter().zip(&nest.accesses) {
        if let Some(known) = out.get(param) {
            if known.buffer != *buffer {
                return Err(Error::refused(format!(
                    "`{}` and `{buffer}` are accessed where the description has `{param}` alone",
                    known.buffer.name
                )));
            }
            continue;
        }
        if param.dtype() != buffer.dtype() || param.scope != buffer.scope {
            return Err(Error::refused(format!(
                "{} stands where the description has {}",
                buffer_text(buffer),
                buffer_text(param)
            )));
        }
        // Parameters do not overlap, and each buffer must say which one it is.
        if let Some((other, _)) = out.iter().find(|(_, s)| s.buffer == *buffer) {
            return Err(Error::refused(format!(
                "`{buffer}` would be both `{other}` and `{param}` of the description"
            )));
        }
        let Some(more) = indices.len().checked_sub(at.len()) else {
            return Err(Error::refused(format!(
                "`{buffer}` has fewer axes than `{param}` of the description"
            )));
        };
        let mut corner = indices[..more].to_vec();
        for (i, d) in indices[more..].iter().zip(at) {
            let offset = i.clone() - renamed.expr(d).cast(i.dtype());
            corner.push(simplify(&offset, ranges));
        }
        for (k, e) in corner.iter().enumerate() {
            if let Some(v) = free_vars(e).iter().find(|v| nest.loops.contains(v)) {
                return Err(Error::refused(format!(
                    "the index `{}` of `{buffer}` moves with the loop `{v}` as none of `{param}` in the \
                     description does",
                    indices[k]
                )));
            }
        }
        out.insert(param.clone(), Slice { buffer: buffer.clone(), corner });
    }
    Ok(out)
}

fn buffer_text(b: &Buffer) -> String {
    format!("`{}` of {} in `{}`", b.name, b.dtype(), b.scope)
}

/// The nest in terms of the description's parameters.
struct InSlices<'a>(&'a HashMap<Buffer, Slice>, &'a Ranges);

impl Fold for InSlices<'_> {
    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let (param, slice) = self.0.iter().find(|(_, s)| s.buffer == *b)?;
        let more = slice.corner.len() - param.rank();
        // The first axes must be where they were; a difference shows as one more index.
        let mut out: Vec<Expr> = Vec::new();
        for (k, (i, c)) in indices.iter().zip(&slice.corner).enumerate() {
            let e = simplify(&(self.expr(i) - c.clone().cast(i.dtype())), self.1);
            if k >= more || e.as_int() != Some(0) {
                out.push(e);
            }
        }
        Some((param.clone(), out))
    }
}

/// A nest without the predicate of its block where that is the same in all iterations, and this
/// predicate.
fn unconditional(nest: &Stmt) -> (Stmt, Expr) {
    fn inside(s: &Stmt, loops: &mut Vec<Var>) -> Option<(Stmt, Expr)> {
        match s.kind() {
            StmtKind::For { var, body, .. } => {
                loops.push(var.clone());
                let (body, predicate) = inside(body, loops)?;
                Some((s.with_body(body), predicate))
            }
            StmtKind::Block { bindings, predicate, block } if !predicate.is_true() => {
                let same = !predicate.mentions_any(loops.iter()) && !touches_memory(predicate);
                let (bindings, block) = (bindings.clone(), block.clone());
                let always = Expr::bool(true);
                let plain = StmtKind::Block { bindings, predicate: always, block };
                same.then(|| (Stmt::spanned(plain, s.span()), predicate.clone()))
            }
            _ => None,
        }
    }
    inside(nest, &mut Vec::new()).unwrap_or_else(|| (nest.clone(), Expr::bool(true)))
}

fn touches_memory(e: &Expr) -> bool {
    e.effects().loads || e.effects().calls
}

fn tensorize(func: &TensorFunc, cursor: &Cursor, intrinsic: &Intrinsic) -> Result<Edited> {
    let (plain, predicate) = unconditional(&cursor.stmt);
    let desc_root = intrinsic.desc.root();
    let desc_body = desc_root.map_or(&intrinsic.desc.body, |b| &b.body);
    let (desc, _) = bare(&intrinsic.desc, desc_body, &[])?;
    let (nest, ranges) = bare(func, &plain, &cursor.around)?;
    let (mut theirs, mut ours) = (AccessSequence::default(), AccessSequence::default());
    theirs.stmt(&desc);
    ours.stmt(&nest);
    let slices = slices(&theirs, &ours, &ranges)?;
    let moved = Tidy(&ranges).stmt(&InSlices(&slices, &ranges).stmt(&nest));
    stmts(&moved, &desc, &Equality::loose()).map_err(|d| {
        let e = Error::refused(format!(
            "it differs from the description, {}{} stands against {}",
            if d.path.is_empty() { String::new() } else { format!("at {}: ", d.path) },
            d.left,
            d.right
        ));
        e.at(d.left_span)
    })?;
    let mut known = known_around(&cursor.around);
    known.extend((!predicate.is_true()).then(|| predicate.clone()));
    check_slices(&intrinsic.desc, &slices, &known)?;
    let block = holder(func, cursor, intrinsic, &slices, predicate)?;
    Ok((replace_in(func, &cursor.stmt, &block), ()))
}

/// Boxes must lie in their buffers.
fn check_slices(desc: &TensorFunc, slices: &HashMap<Buffer, Slice>, known: &[Expr]) -> Result<()> {
    let domain = Engine::new().domain_of(&[], known);
    for param in desc.buffers() {
        let Some(slice) = slices.get(param) else {
            return Err(Error::refused(format!(
                "the description does not access its parameter `{param}`"
            )));
        };
        let more = slice.corner.len() - param.rank();
        let tail = slice.corner[more..].iter().zip(&slice.buffer.shape[more..]);
        for ((c, whole), part) in tail.zip(&param.shape) {
            let end = c.clone() + part.clone().cast(c.dtype());
            let fits =
                c.clone().greater_equal(0).and(end.less_equal(whole.clone().cast(c.dtype())));
            if !domain.proves(&fits) {
                return Err(Error::refused(format!(
                    "`{param}` of the instruction is not known to lie in `{}`: `{fits}`",
                    slice.buffer.name
                )));
            }
        }
    }
    Ok(())
}

/// The block that holds the implementation.
fn holder(
    func: &TensorFunc,
    cursor: &Cursor,
    intrinsic: &Intrinsic,
    slices: &HashMap<Buffer, Slice>,
    predicate: Expr,
) -> Result<Stmt> {
    let corners = slices.values().flat_map(|s| &s.corner);
    let used: Vec<Var> = corners.flat_map(free_vars).collect();
    // What the loops outside mean to the blocks inside.
    let mut kinds: Vec<(Var, IterKind)> = Vec::new();
    cursor.stmt.for_each(|s| {
        if let StmtKind::Block { bindings, block, .. } = s.kind() {
            let vars = block.iters.iter().zip(bindings);
            kinds.extend(vars.flat_map(|(i, e)| free_vars(e).into_iter().map(|v| (v, i.kind))));
        }
    });
    let mut iters = Vec::new();
    let mut bindings = Vec::new();
    let mut inside = Subst::default();
    for s in cursor.loops() {
        let Some((v, range, _)) = as_loop(&s) else { continue };
        let mut all = kinds.iter().filter(|(x, _)| x == v).map(|(_, k)| *k);
        let Some(first) = all.next().or_else(|| used.contains(v).then_some(IterKind::Opaque))
        else {
            continue;
        };
        let kind = if all.all(|k| k == first) { first } else { IterKind::Opaque };
        let var = Var::new(format!("v{v}"), v.dtype());
        inside.vars.insert(v.clone(), var.expr());
        iters.push(IterVar { var, domain: range.clone(), kind });
        bindings.push(v.expr());
    }
    let (desc, implementation) = (&intrinsic.desc, &intrinsic.implementation);
    let mut matches = Vec::new();
    let mut sources = HashMap::default();
    for (param, view) in desc.buffers().zip(implementation.buffers()) {
        let slice = &slices[param];
        let more = slice.corner.len() - param.rank();
        let ranges: Vec<Range> = slice
            .corner
            .iter()
            .enumerate()
            .map(|axis| source_range(axis, &mut inside, more, param))
            .collect();
        let source = Region { buffer: slice.buffer.clone(), ranges };
        sources.insert(param.clone(), source.clone());
        matches.push(MatchRegion { buffer: view.clone(), source });
    }
    // What the description reads and writes of the boxes.
    let whole = Block::new("", desc.body.clone());
    let (reads, writes) = declared_or_inferred(desc.root().unwrap_or(&whole));
    let (reads, writes) = (in_sources(reads, &sources), in_sources(writes, &sources));
    let first = find(&cursor.stmt, |s| as_block(s).is_some());
    let base = first.first().and_then(|s| as_block(&s.stmt)).map_or("tensorized", |b| &*b.name);
    let (allocs, body) = implementation.root_parts();
    let block = Block {
        name: fresh_block_name(func, &format!("{base}_o")),
        iters,
        reads: Some(reads),
        writes: Some(writes),
        allocs: allocs.to_vec(),
        matches,
        ..Block::new("", body.clone())
    };
    Ok(Subst::refresh().stmt(&Stmt::block(bindings, predicate, block)))
}

fn in_sources(list: Vec<Region>, sources: &HashMap<Buffer, Region>) -> Vec<Region> {
    let moved = list.iter().filter_map(|r| {
        let source = sources.get(&r.buffer)?;
        let more = source.ranges.len() - r.ranges.len();
        let mut ranges = source.ranges[..more].to_vec();
        for (s, own) in source.ranges[more..].iter().zip(&r.ranges) {
            let min = s.min.clone() + own.min.clone().cast(s.min.dtype());
            let min = simplify(&min, &Ranges::default());
            ranges.push(Range { min, extent: own.extent.clone().cast(s.min.dtype()) });
        }
        Some(Region { buffer: source.buffer.clone(), ranges })
    });
    moved.collect()
}

fn source_range((k, c): (usize, &Expr), inside: &mut Subst, more: usize, param: &Buffer) -> Range {
    let min = inside.expr(c);
    match k.checked_sub(more) {
        None => Range::point(min),
        Some(k) => {
            let extent = param.shape[k].clone().cast(min.dtype());
            Range { min, extent }
        }
    }
}
