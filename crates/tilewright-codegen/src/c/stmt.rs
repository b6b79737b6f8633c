//! Statements of a kernel as C text.

use tilewright_ir::equal::{loads_cell, same_expr};
use tilewright_ir::phases::{has_barrier, is_barrier};
use tilewright_ir::{
    Attr, BinOp, Buffer, Error, Expr, ExprKind, ForKind, Range, Result, Stmt, StmtKind, Var,
};

use tilewright_target::ASYNC_COPY;

use super::lanes;
use super::threads::{ThreadAxis, has_phases, is_barrier_stmt, runs_threads};
use super::types;
use super::writer::{KernelMemory, Lane, Writer};
use crate::emit::{Assertion, MAX_VALUES};

/// Most bytes of the memory of one thread.
const MAX_PRIVATE: usize = 64 * 1024;

impl Writer {
    pub(super) fn stmt(&mut self, s: &Stmt) -> Result<()> {
        self.enter()?;
        self.stmt_node(s).map_err(|e| e.at(s.span()))?;
        self.leave();
        Ok(())
    }

    fn stmt_node(&mut self, s: &Stmt) -> Result<()> {
        if self.extents.has_threads() && self.inside == 0 && acts(s) && !runs_threads(s) {
            return self.by_one_thread(s);
        }
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                self.store(buffer, indices, value)?;
                self.forget();
            }
            StmtKind::For { var, range, kind: kind @ ForKind::ThreadBinding(_), body, .. } => {
                self.thread_loop(var, range, ThreadAxis::from_kind(kind)?, body)?;
                self.forget();
            }
            // A condition that is the same for all channels is one around the texel.
            StmtKind::For { var, body, .. } if self.is_guarded_texel(var, s) => {
                if let StmtKind::If { cond, then, .. } = body.kind() {
                    self.if_stmt(cond, &s.with_body(then.clone()), None)?;
                }
                self.forget();
            }
            StmtKind::For { var, range, body, .. } if self.is_texel_loop(range, body) => {
                self.texel_loop(var, range, body)?;
                self.forget();
            }
            StmtKind::For { var, range, kind, body, .. }
                if self.is_transposing(var, range, kind, body)? =>
            {
                self.transposing(var, range, kind, body)?;
                self.forget();
            }
            StmtKind::For { var, range, kind, annotations, body } => {
                let unrolled = *kind == ForKind::Unrolled;
                let few = annotations.get("pragma_unroll_count").and_then(count);
                // Compilers unroll what is short, and hold what many iterations load.
                let none = annotations.contains_key("pragma_no_unroll") && self.inside > 0;
                let few = few.or(none.then_some(1));
                self.forget();
                self.serial_loop(
                    var,
                    range,
                    if unrolled { Some(None) } else { few.map(Some) },
                    body,
                )?;
                self.forget();
            }
            StmtKind::If { cond, then, otherwise } => {
                self.if_stmt(cond, then, otherwise.as_ref())?;
                self.forget();
            }
            StmtKind::Evaluate(e) if self.warp_call(e)? => self.forget(),
            StmtKind::Let { var, value, body } => {
                self.define(var, value)?;
                if self.varying.has(value) {
                    self.varying.add(var);
                }
                self.stmt(body)?;
            }
            StmtKind::Seq(stmts) => self.sequence(stmts)?,
            StmtKind::Allocate { buffer, annotations, body } => {
                self.allocate(buffer)?;
                if self.arithmetic.is_wide() && annotations.contains_key(ASYNC_COPY) {
                    self.filled_ahead.insert(buffer.data.clone());
                }
                self.stmt(body)?;
            }
            StmtKind::Declare { body, .. } => self.stmt(body)?,
            // Memory that the program has at hand.
            StmtKind::Constant { body, .. } => self.stmt(body)?,
            StmtKind::Block { block, .. } => {
                return Err(Error::malformed(format!(
                    "the block `{}` is left where code is generated",
                    block.name
                ))
                .help("lower the function first"));
            }
            StmtKind::Assume(_) => {}
            StmtKind::Assert { cond, values, .. } => self.assert(s, cond, values)?,
            StmtKind::Evaluate(e) if is_barrier(e) => self.wait()?,
            StmtKind::Evaluate(e) => match e.kind() {
                ExprKind::Int(_) | ExprKind::Float(_) => {}
                _ => {
                    let text = self.expr(e)?;
                    self.line(format_args!("(void)({text});"));
                }
            },
        }
        Ok(())
    }

    /// Statements in order, with a wait between two of which one runs threads.
    fn sequence(&mut self, stmts: &[Stmt]) -> Result<()> {
        let mut threads = false;
        for (k, s) in stmts.iter().enumerate() {
            let runs = self.extents.has_threads() && has_phases(s);
            let beside = is_barrier_stmt(s) || (k > 0 && is_barrier_stmt(&stmts[k - 1]));
            if k > 0 && (threads || runs) && !beside {
                self.wait()?;
            }
            threads = runs;
            self.stmt(s)?;
        }
        Ok(())
    }

    /// Threads wait for one another.
    fn wait(&mut self) -> Result<()> {
        if self.diverged {
            return Err(Error::unsupported(
                "threads wait for one another where they may not all come to",
            )
            .help(
                "a condition around, or the extent of a loop, depends on the thread or on data",
            ));
        }
        self.waits = true;
        if !self.filled_ahead.is_empty() {
            let wait = self.helpers.name("wait", "copies");
            self.line(format_args!("{wait}();"));
        }
        self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
        self.forget();
        Ok(())
    }

    /// What a group does once.
    fn by_one_thread(&mut self, s: &Stmt) -> Result<()> {
        let axes = (0..3).filter(|k| self.extents.threads[*k] > 0);
        let first: Vec<String> = axes.map(|k| format!("get_local_id({k}) == 0")).collect();
        self.inside += 1;
        let diverged = std::mem::replace(&mut self.diverged, true);
        let done = self.braced(format_args!("if ({})", first.join(" && ")), |w| w.stmt(s));
        self.diverged = diverged;
        self.inside -= 1;
        done
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<()> {
        self.check_type(buffer.dtype(), None)?;
        let lanes = indices.iter().map(|i| i.dtype().lanes).max().unwrap_or(1);
        if lanes != value.dtype().lanes {
            return Err(Error::malformed(format!(
                "a value of {} lanes is stored to {lanes} lanes of buffer `{}`",
                value.dtype().lanes,
                buffer.name
            )));
        }
        if self.place(buffer)?.image {
            return self.texel_store(buffer, indices, value);
        }
        if lanes == 1 {
            if self.mask.is_some() {
                return Err(Error::unsupported(
                    "one element is stored under a condition of several lanes",
                ));
            }
            if self.copy_cell(buffer, indices, value)? {
                return Ok(());
            }
            let text = self.write_stored_value(buffer, indices, value)?;
            let cell = self.cell(buffer, indices)?;
            self.line(format_args!("{cell} = {text};"));
            return Ok(());
        }
        // All lanes are read before one is written.
        let mut overlaps = false;
        value.for_each_load(|b, at| {
            overlaps |= b.data == buffer.data && !is_own_cell(b, at, indices, buffer)
        });
        if !overlaps
            && self.has_vectors()
            && let Some(parts) = lanes::parts(buffer, indices, value)
        {
            return parts.iter().try_for_each(|(at, value)| self.store(buffer, at, value));
        }
        let contract = std::mem::replace(&mut self.contract, accumulates(buffer, indices, value));
        let done = match self.wide_copy(buffer, indices, value) {
            Ok(false) => self.vector_store(buffer, indices, value),
            done => done,
        };
        self.contract = contract;
        if done? {
            return Ok(());
        }
        if !overlaps {
            return self.each_lane(lanes, |w, _| {
                let text = w.write_stored_value(buffer, indices, value)?;
                let cell = w.cell(buffer, indices)?;
                w.line(format_args!("{cell} = {text};"));
                Ok(())
            });
        }
        let name = self.name("lanes");
        self.line(format_args!("{} {name}[{lanes}];", types::memory(buffer.dtype())?));
        self.each_lane(lanes, |w, lane| {
            let text = w.write_stored_value(buffer, indices, value)?;
            w.line(format_args!("{name}[{lane}] = {text};"));
            Ok(())
        })?;
        self.each_lane(lanes, |w, lane| {
            let cell = w.cell(buffer, indices)?;
            w.line(format_args!("{cell} = {name}[{lane}];"));
            Ok(())
        })
    }

    /// The value of a store, as it stands in memory.
    fn write_stored_value(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        value: &Expr,
    ) -> Result<String> {
        // Halves that only move are not widened in between.
        if let Some(bits) = self.moved_halves(value, buffer.dtype())? {
            return Ok(bits);
        }
        let text = match value.kind() {
            ExprKind::Binary(op, a, b) if accumulates(buffer, indices, value) => {
                let contract = std::mem::replace(&mut self.contract, true);
                let text = self.binary(value, *op, a, b);
                self.contract = contract;
                text?
            }
            _ => self.expr(value)?,
        };
        Ok(match types::narrow(buffer.dtype()) {
            Some(kind) => format!("{}({text})", self.helpers.name("put", kind)),
            None => text,
        })
    }

    fn if_stmt(&mut self, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        if cond.is_true() || cond.is_false() {
            let taken = if cond.is_true() { Some(then) } else { otherwise };
            return taken.map_or(Ok(()), |s| self.stmt(s));
        }
        if cond.dtype().lanes > 1 {
            return self.if_lanes(cond, then, otherwise);
        }
        let c = self.expr(cond)?;
        let diverged = self.diverged;
        self.diverged |= self.varying.has(cond);
        self.braced(format_args!("if ({c})"), |w| w.stmt(then))?;
        if let Some(s) = otherwise {
            self.forget();
            self.braced("else", |w| w.stmt(s))?;
        }
        self.diverged = diverged;
        Ok(())
    }

    /// A condition of several lanes: the statements run for the lanes where it holds.
    fn if_lanes(&mut self, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        let lanes = cond.dtype().lanes;
        for (s, holds) in [(Some(then), true), (otherwise, false)] {
            let Some(s) = s else { continue };
            let name = self.name("mask");
            self.line(format_args!("bool {name}[{lanes}] = {{false}};"));
            self.each_lane(lanes, |w, lane| {
                let c = w.expr(cond)?;
                w.line(format_args!("{name}[{lane}] = {}{c};", if holds { "" } else { "!" }));
                Ok(())
            })?;
            let outer = self.mask.replace(Lane { name, lanes });
            let done = self.braced("", |w| w.stmt(s));
            self.mask = outer;
            done?;
            self.forget();
        }
        Ok(())
    }

    /// The variable of a loop, where it has one iteration; whether it has one at all.
    pub(super) fn begin_loop(&mut self, var: &Var, range: &Range) -> Result<()> {
        let dtype = var.dtype();
        if !dtype.is_int() || range.min.dtype() != dtype || range.extent.dtype() != dtype {
            return Err(Error::malformed(format!(
                "loop `{}` of type {dtype} has bounds of the types {} and {}",
                var.name(),
                range.min.dtype(),
                range.extent.dtype()
            )));
        }
        self.ranges.bind_loop(var, range);
        Ok(())
    }

    fn serial_loop(
        &mut self,
        var: &Var,
        range: &Range,
        unroll: Option<Option<i64>>,
        body: &Stmt,
    ) -> Result<()> {
        self.begin_loop(var, range)?;
        let ty = types::value(var.dtype())?;
        let name = self.name(var.name());
        let (min, extent) = (self.expr(&range.min)?, self.expr(&range.extent)?);
        self.vars.insert(var.clone(), name.clone());
        if range.extent.as_int() == Some(1) {
            return self.braced("", |w| {
                w.line(format_args!("const {ty} {name} = {min};"));
                w.stmt(body)
            });
        }
        let end = if range.min.as_int() == Some(0) { extent } else { format!("{min} + {extent}") };
        match unroll {
            Some(None) => self.line("#pragma unroll"),
            Some(Some(n)) => self.line(format_args!("#pragma unroll {n}")),
            None => {}
        }
        let diverged = self.diverged;
        if self.varying.has(&range.extent) || self.varying.has(&range.min) {
            self.diverged = true;
            self.varying.add(var);
        }
        let head = format!("for ({ty} {name} = {min}; {name} < {end}; ++{name})");
        let done = self.braced(head, |w| {
            w.stmt(body)?;
            // The next iteration may write what threads still read.
            let waits = w.extents.has_threads() && (runs_threads(body) || has_barrier(body));
            if waits && !ends_with_barrier(body) { w.wait() } else { Ok(()) }
        });
        self.diverged = diverged;
        done
    }

    /// One iteration of a loop, that of the own group or thread.
    fn thread_loop(
        &mut self,
        var: &Var,
        range: &Range,
        axis: ThreadAxis,
        body: &Stmt,
    ) -> Result<()> {
        self.begin_loop(var, range)?;
        let ty = types::value(var.dtype())?;
        let (name, min) = (self.name(var.name()), self.expr(&range.min)?);
        self.vars.insert(var.clone(), name.clone());
        let number = axis.number();
        let all = match axis {
            ThreadAxis::Group(_) => true,
            ThreadAxis::Thread(k) => range.extent.as_int() == Some(self.extents.threads[k]),
        };
        let (inside, diverged) = (self.inside, self.diverged);
        if let ThreadAxis::Thread(_) = axis {
            self.inside += 1;
            self.varying.add(var);
            self.diverged |= !all;
        }
        let extent = self.expr(&range.extent)?;
        let head =
            if all { String::new() } else { format!("if ((long){number} < (long){extent})") };
        let done = self.braced(head, |w| {
            w.line(format_args!("const {ty} {name} = {min} + ({ty}){number};"));
            w.stmt(body)
        });
        (self.inside, self.diverged) = (inside, diverged);
        done
    }

    fn allocate(&mut self, buffer: &Buffer) -> Result<()> {
        self.check_type(buffer.dtype(), None)?;
        let shape = buffer.const_shape().filter(|_| buffer.strides.is_empty());
        let shape = shape.ok_or_else(|| {
            Error::unsupported(format!("the size of buffer `{}` is not a constant", buffer.name))
        })?;
        let count = shape.iter().product::<i64>().max(1);
        let ty = types::memory(buffer.dtype())?;
        let name = self.name(&buffer.name);
        let outside = self.extents.has_threads() && self.inside == 0;
        let space = match &*buffer.scope {
            "shared" => "__local",
            "local" if outside => {
                return Err(Error::unsupported(format!(
                    "buffer `{}` belongs to a thread and stands outside of the loops over threads",
                    buffer.name
                ))
                .help("allocate it inside of them, or in `shared`"));
            }
            _ if outside => "__local",
            _ => "",
        };
        if space.is_empty() {
            let bytes =
                usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(buffer.dtype().bytes());
            if bytes > MAX_PRIVATE {
                return Err(Error::unsupported(format!(
                    "buffer `{}`: {bytes} bytes of memory of one thread, at most {MAX_PRIVATE} are possible",
                    buffer.name
                ))
                .help("allocate large buffers outside of the loops"));
            }
            // Vectors of it are vectors of C, of 64 bytes at most.
            let aligned = if count > 1 { " __attribute__((aligned(64)))" } else { "" };
            self.line(format_args!("{ty} {name}[{count}]{aligned};"));
        } else {
            let aligned =
                if self.arithmetic.is_wide() { " __attribute__((aligned(16)))" } else { "" };
            self.shared.push(format!("{space} {ty} {name}[{count}]{aligned};"));
        }
        if buffer.scope.starts_with("global.texture") {
            return Err(Error::unsupported(format!(
                "the texture `{}` belongs to one kernel, and a kernel does not read what it writes to a texture",
                buffer.name
            ))
            .help("allocate it outside of parallel loops"));
        }
        let place = KernelMemory { name, space, dtype: buffer.dtype(), image: false };
        self.places.insert(buffer.data.clone(), place);
        Ok(())
    }

    /// Leaves the code of the assertion and the values of its message, where it is the first that fails,
    /// and ends.
    fn assert(&mut self, s: &Stmt, cond: &Expr, values: &[Expr]) -> Result<()> {
        let own = Assertion::from_stmt(s);
        let code =
            self.assertions.iter().position(|a| Some(a) == own.as_ref()).map_or(1, |k| k + 1);
        self.asserted.get_or_insert_with(|| s.clone());
        match self.mask.as_ref().map_or(cond.dtype().lanes, |mask| mask.lanes) {
            1 => self.assert_one(cond, values, code),
            lanes => self.each_lane(lanes, |w, _| w.assert_one(cond, values, code)),
        }
    }

    /// An assertion outside of vectors, or in one lane of them.
    fn assert_one(&mut self, cond: &Expr, values: &[Expr], code: usize) -> Result<()> {
        let c = self.expr(cond)?;
        if self.is_host {
            self.line(format_args!("if (!{c}) return {code};"));
            return Ok(());
        }
        self.braced(format_args!("if (!{c})"), |w| {
            let values: Vec<String> =
                values.iter().take(MAX_VALUES).map(|v| w.expr(v)).collect::<Result<_>>()?;
            let claim =
                format!("if (atomic_cmpxchg((volatile __global int*)failure, 0, {code}) == 0)");
            w.braced(claim, |w| {
                for (k, value) in values.iter().enumerate() {
                    w.line(format_args!("failure[{}] = (long){value};", k + 1));
                }
                Ok(())
            })?;
            w.line("return;");
            Ok(())
        })
    }
}

/// Whether a sum that is stored is one with what stood in the cell before.
fn accumulates(buffer: &Buffer, indices: &[Expr], value: &Expr) -> bool {
    matches!(value.kind(), ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b)
        if [a, b].iter().any(|e| loads_cell(e, buffer, indices)))
}

fn is_own_cell(b: &Buffer, at: &[Expr], indices: &[Expr], buffer: &Buffer) -> bool {
    at.len() == indices.len() && b == buffer && at.iter().zip(indices).all(|(x, y)| same_expr(x, y))
}

/// Whether the last thing that a statement does is to wait.
fn ends_with_barrier(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Seq(stmts) => stmts.last().is_some_and(ends_with_barrier),
        _ => is_barrier_stmt(s),
    }
}

/// Whether a statement does something by itself: it writes or checks.
fn acts(s: &Stmt) -> bool {
    matches!(
        s.kind(),
        StmtKind::Store { .. }
            | StmtKind::For { .. }
            | StmtKind::If { .. }
            | StmtKind::Assert { .. }
    )
}

fn count(a: &Attr) -> Option<i64> {
    match a {
        Attr::Int(n @ 2..=64) => Some(*n),
        _ => None,
    }
}
