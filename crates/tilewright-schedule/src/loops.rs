//! Primitives on loops: split, fuse, how a loop runs, annotations.
//!
//! Splitting a loop of `n` iterations by factors whose product is not `n` runs over the larger
//! box and guards what is beyond: each outermost block below gets the condition as part of its
//! predicate, and statements outside of blocks get an `if`. New loops are of `int64` where the type
//! of the old ones does not hold their values.

use tilewright_ir::stmt::MAX_NESTING;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Attrs, DType, Error, Expr, Fold, ForKind, IterKind, Range, Result, Stmt, StmtKind, TensorFunc,
    Var, extent,
};
use tilewright_polyhedral::dependence::{accesses, keeps_order};
use tilewright_polyhedral::sizes::sizes;
use tilewright_polyhedral::{Engine, Proof};

use crate::argument::BlockOrLoop;
use crate::cursor::{
    Cursor, InFunction, around, as_block, as_loop, find, loop_cursor, replace_in, the_loop, within,
};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::LoopRef;
use tilewright_analysis::footprint::known_around;

primitives! {
    /// Splits a loop into as many as there are factors, outermost first; one factor may be left
    /// open and is then the smallest that covers the loop. Returns the new loops.
    ///
    /// # Errors
    /// `Refused` where more than one factor is open, a factor is not positive, the factors are not
    /// known to cover the loop, their product is beyond `int64`, or the loop does not start at zero
    /// or runs in a special way.
    split(
        l "loop": &LoopRef,
        factors: &[Option<Expr>];
        preserve_unit_iters = true, disable_predication = false
    ) -> Vec<LoopRef>, edit |f| split(f, l, factors);

    /// Fuses loops that are directly inside one another, outermost first, into one.
    ///
    /// # Errors
    /// `Refused` where they are not nested so, bounds depend on an outer variable, or the number of
    /// iterations is beyond `int64`.
    fuse([rest] loops: &[LoopRef]; preserve_unit_iters = true) -> LoopRef, edit |f| fuse(f, loops);

    /// Puts loops of one perfect nest into the given order, outermost first; loops between them
    /// that are not named stay where they are.
    ///
    /// # Errors
    /// `Refused` where something other than loops is between them, a bound depends on a loop
    /// that would move inside, what is inside is not one block with iteration variables, or
    /// iterations that depend on each other would change their order.
    reorder([rest] loops: &[LoopRef]), edit |f| reorder(f, loops);

    /// Runs the iterations of a loop on several threads.
    ///
    /// # Errors
    /// `Refused` where iterations depend on each other, with two that do, or where that is not
    /// known.
    parallel(l "loop": &LoopRef), edit |f| set_kind(f, l, ForKind::Parallel);

    /// Runs the iterations of a loop as lanes of vectors. Updates of one cell by one operator that
    /// commutes may be in different lanes.
    ///
    /// # Errors
    /// As [`Schedule::parallel`](crate::Schedule::parallel).
    vectorize(l "loop": &LoopRef), edit |f| set_kind(f, l, ForKind::Vectorized);

    /// Makes a copy of the body for each iteration of a loop.
    ///
    /// # Errors
    /// `Refused` where there is no such loop.
    unroll(l "loop": &LoopRef), edit |f| set_kind(f, l, ForKind::Unrolled);

    /// Puts a loop of one iteration around a block or a loop. Returns it.
    ///
    /// # Errors
    /// `Refused` for the root block, which is around everything.
    add_unit_loop([into] target "block_or_loop" "block" "loop": BlockOrLoop) -> LoopRef,
        edit |f| add_unit_loop(f, &target);

    /// Binds a loop to a thread axis such as `threadIdx.x`.
    ///
    /// # Errors
    /// As [`Schedule::parallel`](crate::Schedule::parallel).
    bind(l "loop": &LoopRef, thread_axis: &str),
        edit |f| set_kind(f, l, ForKind::ThreadBinding(thread_axis.into()));
}

/// Changes how a loop runs or its annotations.
pub(crate) fn edit_loop(
    func: &TensorFunc,
    l: &LoopRef,
    edit: impl FnOnce(&mut ForKind, &mut Attrs) -> Result<()>,
) -> Result<Edited> {
    let cursor = loop_cursor(func, l)?;
    let mut new = cursor.stmt.kind().clone();
    let StmtKind::For { kind, annotations, .. } = &mut new else {
        return Err(Error::internal("a loop cursor is no loop"));
    };
    edit(kind, annotations)?;
    let new = Stmt::spanned(new, cursor.stmt.span());
    Ok((replace_in(func, &cursor.stmt, &new), ()))
}

/// Changes how a loop runs; [`crate::Schedule::edit`] checks that it may run so.
fn set_kind(func: &TensorFunc, l: &LoopRef, to: ForKind) -> Result<Edited> {
    edit_loop(func, l, |kind, _| {
        *kind = to;
        Ok(())
    })
}

fn add_unit_loop(func: &TensorFunc, target: &BlockOrLoop) -> Result<Edited<LoopRef>> {
    let stmt = target.cursor(func)?.stmt;
    if func.root().is_some() && stmt.ptr_eq(&func.body) {
        return Err(Error::refused("no loop may be around the root block"));
    }
    let var = Var::index("u");
    let new = Stmt::serial(&var, Expr::i32(1), stmt.clone());
    let func_name = target.func().ok_or_else(|| Error::internal("a target in no function"))?;
    Ok((replace_in(func, &stmt, &new), LoopRef::new(func_name, &var)))
}

/// Variable, range and body of a serial loop without annotations.
pub(crate) fn serial<'a>(s: &'a Stmt, what: &str) -> Result<(&'a Var, &'a Range, &'a Stmt)> {
    let (var, range, body) = the_loop(s)?;
    let why = match s.kind() {
        StmtKind::For { kind: ForKind::Serial, annotations, .. } if annotations.is_empty() => {
            return Ok((var, range, body));
        }
        StmtKind::For { kind: ForKind::Serial, .. } => "it has annotations",
        _ => "it is not a serial loop",
    };
    Err(Error::refused(format!("the loop `{var}` cannot be {what}: {why}")).at(s.span()))
}

/// The same from zero, with the extent.
fn from_zero<'a>(s: &'a Stmt, what: &str) -> Result<(&'a Var, &'a Expr, &'a Stmt)> {
    let (var, range, body) = serial(s, what)?;
    match range.min.as_int() {
        Some(0) => Ok((var, &range.extent, body)),
        _ => Err(Error::refused(format!(
            "the loop `{var}` cannot be {what}: it starts at {}, not at 0",
            range.min
        ))
        .at(s.span())),
    }
}

/// Loops that are directly inside one another, outermost first.
pub(crate) struct Nest {
    /// The outermost one.
    pub outer: Cursor,
    pub loops: Vec<Stmt>,
    /// What is inside of the innermost one.
    pub body: Stmt,
}

impl Nest {
    /// # Errors
    /// `Refused` where the loops are not nested so, or the check refuses one.
    pub fn find(
        func: &TensorFunc,
        list: &[LoopRef],
        check: impl Fn(&Stmt) -> Result<()>,
    ) -> Result<Nest> {
        let outer = list.cursor(func)?;
        let (mut loops, mut body) = (Vec::new(), outer.stmt.clone());
        for (k, l) in list.iter().enumerate() {
            if body.loop_var() != Some(&l.var) {
                let outside = list[k.saturating_sub(1)].var.name();
                return Err(Error::refused(format!(
                    "the loop `{}` is not directly inside the loop `{outside}`",
                    l.var
                ))
                .at(body.span()));
            }
            check(&body)?;
            let inner = the_loop(&body)?.2.clone();
            loops.push(std::mem::replace(&mut body, inner));
        }
        Ok(Nest { outer, loops, body })
    }
}

fn split(func: &TensorFunc, l: &LoopRef, factors: &[Option<Expr>]) -> Result<Edited<Vec<LoopRef>>> {
    let cursor = loop_cursor(func, l)?;
    let (var, n, body) = from_zero(&cursor.stmt, "split")?;
    if factors.is_empty() {
        return Err(Error::refused("a split needs at least one factor"));
    }
    if factors.len() > MAX_NESTING {
        return Err(Error::refused(format!(
            "{} factors are more than the {MAX_NESTING} loops that may be around each other",
            factors.len()
        )));
    }
    let mut product = Expr::int(1, var.dtype());
    for f in factors.iter().flatten() {
        if f.as_int().is_some_and(|v| v <= 0) {
            return Err(Error::refused(format!("the factor {f} is not positive")));
        }
        product = extent::times(&product, &factor_of(f, var)?)?;
    }
    let open = factors.iter().filter(|f| f.is_none()).count();
    if open > 1 {
        return Err(Error::refused(format!("{open} factors are open, at most one may be")));
    }
    let ceil = extent::ceil_div(n, &product)?;
    let covered = if open == 1 { extent::times(&product, &ceil)? } else { product };
    // One type for all of the loops, which holds the last value that they count to.
    let dtype = match covered.as_int() {
        Some(c) => extent::index_type(var.dtype(), i128::from(c) - 1)?,
        None => extent::wider(var.dtype(), covered.dtype()),
    };
    let given: Vec<&Expr> = factors.iter().flatten().collect();
    let factors: Vec<Expr> = factors
        .iter()
        .map(|f| {
            Ok(f.as_ref().map_or_else(|| Ok(ceil.clone()), |f| factor_of(f, var))?.cast(dtype))
        })
        .collect::<Result<_>>()?;
    let exact = match (n.as_int(), covered.as_int()) {
        (Some(n), Some(c)) if c < n => {
            return Err(Error::refused(format!(
                "the factors cover {c} of the {n} iterations of the loop `{var}`"
            )));
        }
        (Some(n), Some(c)) => c == n,
        _ => covers(func, &cursor, &given, &covered, open == 1)?,
    };
    let vars: Vec<Var> =
        (0..factors.len()).map(|k| Var::new(format!("{var}_{k}"), dtype)).collect();
    let value = vars.iter().zip(&factors).fold(Expr::int(0, dtype), |sum, (v, f)| sum * f + v);
    let mut body = Subst::vars([(var.clone(), value.clone().cast(var.dtype()))]).stmt(body);
    if !exact {
        body = guard_blocks(&body, &value.less(n));
    }
    let out = vars.iter().map(|var| LoopRef::new(&l.func, var)).collect();
    let loops = vars.into_iter().zip(factors.into_iter().map(Range::upto));
    Ok((replace_in(func, &cursor.stmt, &Stmt::nest(loops, body)), out))
}

fn factor_of(f: &Expr, var: &Var) -> Result<Expr> {
    match f.as_int() {
        Some(v) => extent::constant(i128::from(v), var.dtype()),
        None => Ok(f.clone().cast(var.dtype())),
    }
}

/// Checks that factors of which some are no constants cover a loop, or divide it where one is left
/// open; `covered` is their product. Says whether they cover it exactly.
fn covers(
    func: &TensorFunc,
    cursor: &Cursor,
    given: &[&Expr],
    covered: &Expr,
    open: bool,
) -> Result<bool> {
    let (var, range, _) = the_loop(&cursor.stmt)?;
    let symbolic: Vec<&&Expr> = given.iter().filter(|f| f.as_int().is_none()).collect();
    // The open factor is the number of iterations divided by constants, rounded up.
    if open && symbolic.is_empty() {
        return Ok(false);
    }
    let known = known_around(&cursor.around);
    let domain = known.iter().fold(sizes(func), |d, cond| d.with_guard(cond));
    for f in symbolic {
        let (least, what) = if open { (1, "positive") } else { (0, "not negative") };
        if !domain.proves(&(*f).clone().greater_equal(least)) {
            return Err(Error::refused(format!("the factor {f} is not known to be {what}")));
        }
    }
    if open {
        return Ok(false);
    }
    let (n, name) = (&range.extent, var.name());
    let n = n.clone().cast(covered.dtype());
    match domain.prove(&covered.clone().greater_equal(&n)) {
        Proof::Yes => Ok(domain.is_equal(covered, &n)),
        Proof::No { witness } => Err(Error::refused(format!(
            "the factors cover {covered} of the {n} iterations of the loop `{name}`: too few at \
             {witness}"
        ))),
        Proof::Unknown(_) => Err(Error::refused(format!(
            "it is not known whether the factors, which cover {covered} iterations, cover all {n} \
             of the loop `{name}`"
        ))),
    }
}

/// Puts a condition around everything that happens in a statement: into the predicates of its
/// outermost blocks, and as an `if` around what is outside of blocks.
pub(crate) fn guard_blocks(stmt: &Stmt, cond: &Expr) -> Stmt {
    stmt.replace(|s| match s.kind() {
        StmtKind::Block { bindings, predicate, block } => {
            let predicate = predicate.clone().and(cond);
            let (bindings, block) = (bindings.clone(), block.clone());
            Some(Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span()))
        }
        _ if !find(s, |s| as_block(s).is_some()).is_empty() => None,
        _ => Some(Stmt::guard(cond.clone(), s.clone())),
    })
}

fn fuse(func: &TensorFunc, loops: &[LoopRef]) -> Result<Edited<LoopRef>> {
    let nest = Nest::find(func, loops, |s| from_zero(s, "fused").map(drop))?;
    let mut parts: Vec<(Var, Expr)> = Vec::new();
    for s in &nest.loops {
        let (var, extent, _) = from_zero(s, "fused")?;
        if let Some((v, _)) = parts.iter().find(|(v, _)| extent.mentions(v)) {
            return Err(Error::refused(format!(
                "the extent {extent} of the loop `{var}` depends on the loop `{v}`"
            ))
            .at(s.span()));
        }
        parts.push((var.clone(), extent.clone()));
    }
    let dtype = parts.iter().map(|p| p.0.dtype()).max_by_key(|d| d.bits).unwrap_or(DType::I32);
    let name: Vec<&str> = parts.iter().map(|(v, _)| &**v.name()).collect();
    // The iterations of the loops from each one inwards.
    let mut counts = vec![Expr::int(1, dtype)];
    for (_, n) in parts.iter().rev() {
        let inner = counts.last().cloned().unwrap_or(Expr::int(1, dtype));
        counts.push(extent::times(&inner, &n.clone().cast(dtype))?);
    }
    let dtype = counts.iter().fold(dtype, |t, n| extent::wider(t, n.dtype()));
    let fused = Var::new(format!("{}_fused", name.join("_")), dtype);
    let mut values = Vec::new();
    // A loop of one iteration has no part in it.
    let first = parts.iter().position(|(_, n)| n.as_int() != Some(1)).unwrap_or(0);
    for ((k, (var, n)), inner) in parts.iter().enumerate().rev().zip(&counts) {
        let mut value = fused.expr().floordiv(inner.clone().cast(dtype));
        if k > first {
            value = value.floormod(n.clone().cast(dtype));
        } else if k < first {
            value = Expr::int(0, dtype);
        }
        values.push((var.clone(), value.cast(var.dtype())));
    }
    let body = Subst::vars(values).stmt(&nest.body);
    let all = counts.pop().map_or(Expr::int(1, dtype), |n| n.cast(dtype));
    let new = Stmt::for_loop(&fused, Range::upto(all), ForKind::Serial, body);
    let out = LoopRef::new(&loops[0].func, &fused);
    Ok((replace_in(func, &nest.outer.stmt, &new), out))
}

/// The outermost blocks of a statement, or a statement outside of them that does something.
fn outer_blocks(stmt: &Stmt) -> Result<Vec<Stmt>, Stmt> {
    match stmt.kind() {
        StmtKind::Block { .. } => Ok(vec![stmt.clone()]),
        _ if let Some(body) = stmt.body() => outer_blocks(body),
        StmtKind::If { then, otherwise, .. } => {
            let mut blocks = outer_blocks(then)?;
            if let Some(o) = otherwise {
                blocks.extend(outer_blocks(o)?);
            }
            Ok(blocks)
        }
        StmtKind::Seq(stmts) => {
            let lists: Result<Vec<Vec<Stmt>>, Stmt> = stmts.iter().map(outer_blocks).collect();
            Ok(lists?.into_iter().flatten().collect())
        }
        _ if stmt.is_nop() => Ok(Vec::new()),
        _ => Err(stmt.clone()),
    }
}

fn reorder(func: &TensorFunc, loops: &[LoopRef]) -> Result<Edited> {
    let mut cursors = Vec::new();
    for (k, l) in loops.iter().enumerate() {
        if loops[..k].contains(l) {
            return Err(Error::refused(format!("the loop `{}` is named twice", l.var.name())));
        }
        cursors.push(loop_cursor(func, l)?);
    }
    let outer = cursors.iter().min_by_key(|s| s.around.len()).map(|s| s.stmt.clone());
    let outer = outer.ok_or_else(|| Error::internal("no loop to reorder"))?;

    // The nest from the outermost named loop to the innermost one.
    let mut nest = vec![outer.clone()];
    let mut left = loops.len() - usize::from(position_in(&outer, loops).is_some());
    while left > 0 {
        let last = &nest[nest.len() - 1];
        let Some((_, _, body)) = as_loop(last) else {
            return Err(Error::refused(
                "the loops are not directly inside one another: other statements stand between",
            )
            .at(last.span()));
        };
        let body = body.clone();
        left -= usize::from(position_in(&body, loops).is_some());
        nest.push(body);
    }
    let inside = the_loop(&nest[nest.len() - 1])?.2.clone();

    match outer_blocks(&inside) {
        Ok(blocks) if blocks.len() == 1 => {
            let block = as_block(&blocks[0]).ok_or_else(|| Error::internal("no block"))?;
            let free = block.iters.iter().all(|i| i.kind != IterKind::Opaque);
            if block.iters.is_empty() || !free {
                let why = "has no iteration variables that say which order is free";
                return Err(Error::refused(format!("the block `{}` {why}", block.name))
                    .at(blocks[0].span()));
            }
        }
        Ok(blocks) => {
            let why = format!("{} blocks are inside of the loops, not one", blocks.len());
            return Err(Error::refused(why).at(inside.span()));
        }
        Err(s) => {
            return Err(
                Error::refused("a statement outside of blocks is inside of the loops").at(s.span())
            );
        }
    }

    // The named loops take the places of the named loops, in the new order.
    let mut order = cursors.iter().map(|c| &c.stmt);
    let new: Vec<Stmt> = nest
        .iter()
        .map(|s| if position_in(s, loops).is_some() { order.next().unwrap_or(s) } else { s })
        .cloned()
        .collect();
    let mut bound: Vec<&Var> = Vec::new();
    for s in new.iter().rev() {
        if let Some((var, range, _)) = as_loop(s) {
            if let Some(v) =
                bound.iter().find(|v| range.min.mentions(v) || range.extent.mentions(v))
            {
                let why = format!(
                    "the bounds of the loop `{var}` depend on the loop `{v}`, which would be inside"
                );
                return Err(Error::refused(why).at(s.span()));
            }
            bound.push(var);
        }
    }
    let engine = Engine::new();
    let cursor = cursors.iter().find(|s| s.stmt.ptr_eq(&outer));
    let around = cursor.map_or_else(|| engine.domain(), |cursor| around(&engine, cursor));
    let vars: Vec<Var> = nest.iter().filter_map(Stmt::loop_var).cloned().collect();
    let domain = within(around, &nest);
    keeps_order(
        &domain,
        &accesses(&inside, &domain)?,
        &vars,
        (&loop_order(&nest), &loop_order(&new)),
    )
    .map_err(|e| e.at(outer.span()))?;
    let stmt = new.iter().rev().fold(inside, |body, s| s.with_body(body));
    Ok((replace_in(func, &outer, &stmt), ()))
}

fn position_in(s: &Stmt, loops: &[LoopRef]) -> Option<usize> {
    loops.iter().position(|l| s.loop_var() == Some(&l.var))
}

fn loop_order(nest: &[Stmt]) -> Vec<Expr> {
    nest.iter().filter_map(Stmt::loop_var).map(Var::expr).collect()
}
