//! `sequential_buffer_access`: loops in the order in which a buffer lies in memory.
//!
//! The physical indices of the buffer become loops of their own; loops that the indices do not
//! determine stay inside. Where a block accesses the buffer in several ways, its first write says
//! the order, or else its first read, and the others follow. It expands into other primitives: the
//! trace shows how the loops are found, a `fission` for each statement that is between them (an
//! initialisation), and one `transform_loops`.
//!
//! ```text
//! for i in range(14):                                  for i in range(14):
//!     B[i] = 0                                             B[i] = 0
//!     for f in range(3):                               for io, ii, f in T.grid(4, 4, 3):
//!         B[i] += F[f] * A[(i + f) // 4, (i + f) % 4]      if 0 <= io * 4 + ii - f < 14:
//!                                                              B[io * 4 + ii - f] += F[f] * A[io, ii]
//! ```
//!
//! Semantics: Apache TVM RFC 0077, "Reorder Loops According to Buffer".

use tilewright_ir::hash::HashSet;

use tilewright_analysis::footprint::touches;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Block, Buffer, Error, Expr, Fold, Range, Result, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::Engine;
use tilewright_polyhedral::dependence::accesses;

use crate::buffer_arg::BufferArg;
use crate::cursor::{
    BlockCursor, as_block, as_loop, find, loop_cursor, loop_ranges, the_block, the_loop,
};
use crate::loop_layout::is_loop_over;
use crate::primitive::primitives;
use crate::schedule::Schedule;
use crate::value::{BlockRef, Lambda, LoopRef};
use tilewright_layout::index_map::IndexMap;

primitives! {
    /// Rewrites the loops of a block so that they follow the axes of a buffer. Returns the loops.
    ///
    /// # Errors
    /// `Refused` where the indices do not tell the loops apart, what is between the loops
    /// cannot be split off, or iterations that depend on each other would change their order.
    sequential_buffer_access(block: &BlockRef, [into] buffer: BufferArg) -> Vec<LoopRef>,
        expand |sch| sequential(sch, block, &buffer);
}

fn sequential(sch: &mut Schedule, block: &BlockRef, buffer: &BufferArg) -> Result<Vec<LoopRef>> {
    let mut plan = plan(sch.func(&block.func)?, block, buffer)?;
    if plan.is_done() {
        return Ok(plan.nest.iter().map(|(v, _)| LoopRef::new(&block.func, v)).collect());
    }
    // The trace names loops by what returned them.
    let inside = plan.inside;
    name_loops(sch, inside, block)?;
    while let Some((outer, at)) = plan.stray(sch.func(&block.func)?, block)? {
        let (before, _) = sch.fission(&LoopRef::new(&block.func, &outer), at.max(1))?;
        if at == 0 {
            // The nest is in the first of the two loops, under new names.
            plan.follow(sch.func(&block.func)?, &outer, &before)?;
            name_loops(sch, inside, block)?;
        }
    }
    let loops: Vec<LoopRef> = plan.nest.iter().map(|(v, _)| LoopRef::new(&block.func, v)).collect();
    sch.transform_loops(&loops, &plan.map())
}

fn name_loops(sch: &mut Schedule, inside: bool, block: &BlockRef) -> Result<Vec<LoopRef>> {
    if inside { sch.get_inner_loops(block) } else { sch.get_loops(block) }
}

/// What is to be done.
struct AccessOrder {
    /// The loops, outermost first.
    nest: Vec<(Var, Range)>,
    /// The new loops in terms of them: the buffer's indices, then the loops that stay.
    order: Vec<Expr>,
    /// Whether the loops are inside the block.
    inside: bool,
}

impl AccessOrder {
    fn is_done(&self) -> bool {
        self.nest.len() == self.order.len()
            && self.nest.iter().zip(&self.order).all(|((v, _), e)| e.as_var() == Some(v))
    }

    /// The outermost loop of the nest that holds more than the next one, and where in its body that
    /// stands.
    fn stray(&self, func: &TensorFunc, block: &BlockRef) -> Result<Option<(Var, usize)>> {
        for pair in self.nest.windows(2) {
            let (outer, inner) = (&pair[0].0, &pair[1].0);
            let cursor = loop_cursor(func, &LoopRef::new(&block.func, outer))?;
            if let Some((.., body)) = as_loop(&cursor.stmt)
                && let StmtKind::Seq(list) = body.kind()
                && let Some(at) = list.iter().position(|s| is_loop_over(s, inner))
            {
                return Ok(Some((outer.clone(), at)));
            }
        }
        Ok(None)
    }

    /// The loop `old` has become two, of which the first one holds the rest of the nest.
    fn follow(&mut self, func: &TensorFunc, old: &Var, new: &LoopRef) -> Result<()> {
        let copy = loop_cursor(func, new)?.stmt;
        let mut at = &copy;
        let mut names = Vec::new();
        for (v, range) in self.nest.iter_mut().skip_while(|(v, _)| v != old) {
            let (var, r, body) = the_loop(at)?;
            names.push((v.clone(), var.expr()));
            (*v, *range) = (var.clone(), r.clone());
            at = match body.kind() {
                StmtKind::Seq(list) => list.first().unwrap_or(body),
                _ => body,
            };
        }
        let mut renamed = Subst::vars(names);
        self.order.iter_mut().for_each(|e| *e = renamed.expr(e));
        Ok(())
    }

    /// The order as a lambda that can be printed.
    fn map(&self) -> Lambda {
        let params = self.nest.iter().map(|(v, _)| v.clone()).collect();
        let indices = self.order.clone();
        IndexMap { params, indices, separators: Vec::new() }.to_lambda()
    }
}

/// The loops in terms of which a block works: those inside of a named region, or else those
/// around it.
fn loops_of_block(cursor: &BlockCursor, buffer: &Buffer, own: bool) -> Vec<Stmt> {
    if cursor.block.iters.is_empty() {
        let mut inside: Vec<Stmt> = Vec::new();
        for s in find(&cursor.block.body, |s| stores_to(s, buffer)) {
            if own && s.around.iter().any(|s| as_block(s).is_some()) {
                continue;
            }
            for l in s.around.iter().filter(|s| as_loop(s).is_some()) {
                if !inside.iter().any(|x| x.ptr_eq(l)) {
                    inside.push(l.clone());
                }
            }
        }
        if !inside.is_empty() {
            return inside;
        }
    }
    cursor.loops()
}

fn stores_to(s: &Stmt, buffer: &Buffer) -> bool {
    let is_store = matches!(s.kind(), StmtKind::Store { .. });
    is_store && touches(s, buffer) != (false, false)
}

/// What a block does outside of blocks inside of it.
fn without_blocks(b: &Block) -> Stmt {
    b.body.replace(|s| as_block(s).map(|_| Stmt::nop()))
}

fn plan(func: &TensorFunc, block: &BlockRef, buffer: &BufferArg) -> Result<AccessOrder> {
    let cursor = the_block(func, block)?;
    let b = &cursor.block;
    let buffer = buffer.find(func, b).map_err(|e| e.at(cursor.stmt.span()))?;
    let engine = Engine::new();

    // Blocks inside of a named region are its own only where it does nothing else.
    let whole = accesses(&cursor.stmt, &engine.domain())?;
    let direct = accesses(&without_blocks(b), &engine.domain())?;
    let own = b.iters.is_empty() && direct.iter().any(|t| t.buffer == buffer);
    let all = if own { direct } else { whole };
    // The first write says the order, or else the first read; other accesses follow.
    let of_buffer = all.into_iter().filter(|t| t.buffer == buffer);
    let indices = of_buffer.min_by_key(|t| !t.write).map(|t| t.indices);
    let Some(indices) = indices else {
        return Err(refused_at(format!("the block does not access `{buffer}`"), &cursor));
    };
    let loops = loops_of_block(&cursor, &buffer, own);
    let all = loop_ranges(&loops);
    let used: HashSet<Var> = indices.iter().flat_map(free_vars).collect();
    let first = all.iter().position(|(v, _)| used.contains(v));
    let last = all.iter().rposition(|(v, _)| used.contains(v));
    let (Some(first), Some(last)) = (first, last) else {
        return Err(refused_at(
            format!("no loop of the block is in {}", access_text(&indices, &buffer)),
            &cursor,
        ));
    };
    let nest = all[first..=last].to_vec();
    let vars: Vec<Var> = nest.iter().map(|(v, _)| v.clone()).collect();
    let axes: Vec<Expr> = indices.iter().filter(|e| e.mentions_any(&vars)).cloned().collect();
    // The fewest loops that stay, inner ones first, such that the order tells iterations apart.
    let domain = nest.iter().fold(engine.domain(), |d, (v, r)| d.with_var(v, r));
    let mut choices: Vec<u32> = (0..1u32 << vars.len().min(10)).collect();
    choices.sort_by_key(|c| (c.count_ones(), std::cmp::Reverse(*c)));
    for kept in choices {
        let stays = vars.iter().enumerate().filter(|(k, _)| *k < 10 && kept >> k & 1 == 1);
        let order: Vec<Expr> = axes.iter().cloned().chain(stays.map(|(_, v)| v.expr())).collect();
        if domain.map(&order)?.collision()?.is_none() {
            let inside = vars.first().is_some_and(|v| is_loop_over(&cursor.stmt, v));
            return Ok(AccessOrder { nest, order, inside });
        }
    }
    Err(refused_at(
        format!("{} does not tell the iterations apart", access_text(&indices, &buffer)),
        &cursor,
    ))
}

fn refused_at(why: String, cursor: &BlockCursor) -> Error {
    Error::refused(why).at(cursor.stmt.span())
}

fn access_text(w: &[Expr], buffer: &Buffer) -> String {
    let list: Vec<String> = w.iter().map(Expr::to_string).collect();
    format!("`{buffer}[{}]`", list.join(", "))
}
