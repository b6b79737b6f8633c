//! Statements.
//!
//! Annotations of a loop that have a meaning here:
//!
//! | annotation | effect |
//! |---|---|
//! | `pragma_no_unroll` | LLVM does not unroll the loop |
//! | `pragma_unroll_count` | LLVM unrolls the loop so many times; what is left of the iterations runs one by one |
//! | `pragma_vectorize` | LLVM vectorises the loop: true or 1 with a width of its choice, `n` with that width, false or 0 not at all. Like a vectorised loop it may reorder the sums that the loop accumulates |
//! | `pragma_reassoc` | sums and products that the loop accumulates in one place may be reordered |
//!
//! All others are left alone. Nothing else reorders floating point, and nothing assumes that there
//! is no `NaN` or infinity.
//!
//! A product may round together with the sum that it goes into only where a store accumulates into
//! the place that it reads (`C[i] = C[i] + a * b`). Elsewhere every operation rounds by itself:
//! models compute `mean(x * x) - mean * mean` and rely on both products rounding alike.

use std::fmt::Write;

use tilewright_ir::equal::{loads_cell, same_expr};
use tilewright_ir::index::Linear;
use tilewright_ir::visit::Fold;
use tilewright_ir::{
    Attr, Attrs, BinOp, Buffer, DType, Error, Expr, ExprKind, ForKind, Range, Result, Stmt,
    StmtKind, Var, tensor::ALIGN,
};

use super::address::{UNROLLED, is_for_addresses};
use super::code::{Scalar, Shared, Val};
use super::extremes::carries_many;
use super::free_lanes::has_free_lanes;
use super::func::{Assertion, Func, MAX_VALUES};
use super::types::element_count;
use super::types::{is_signed, memory};

/// Most bytes of stack memory for the allocations of one function.
const MAX_STACK: usize = 64 * 1024;

/// Most bytes of a vector of which lanes are left out in memory of the function.
pub(super) const MASKED: usize = 64;

impl Func<'_> {
    pub(super) fn stmt(&mut self, s: &Stmt) -> Result<()> {
        self.enter()?;
        self.stmt_node(s).map_err(|e| e.at(s.span()))?;
        self.leave();
        Ok(())
    }

    fn stmt_node(&mut self, s: &Stmt) -> Result<()> {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } if self.moved(buffer, indices, value)? => {
                self.forget();
            }
            StmtKind::Store { buffer, indices, value } => {
                let v = self.stored_value(buffer, indices, value)?;
                if value.dtype().scalar() != buffer.dtype().scalar() {
                    return Err(Error::malformed(format!(
                        "a value of type {} is stored to buffer `{}` of type {}",
                        value.dtype(),
                        buffer.name,
                        buffer.dtype()
                    )));
                }
                self.store(buffer, indices, &v)?;
                self.forget();
            }
            StmtKind::For { var, range, kind, annotations, body } => {
                self.for_loop(&Loop { var, range, kind, annotations, body })?;
                self.forget();
            }
            StmtKind::If { cond, then, otherwise } => {
                self.if_stmt(cond, then, otherwise.as_ref())?;
                self.forget();
            }
            StmtKind::Let { var, value, body } => {
                self.bind_to(var, value)?;
                self.stmt(body)?;
            }
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s))?,
            StmtKind::Allocate { buffer, body, .. } => {
                self.allocate(buffer)?;
                self.filled_first(buffer, body)?;
            }
            StmtKind::Constant { buffer, value, body } => {
                let address = self.code.bytes("data", ALIGN, value.bytes());
                self.env.insert(buffer.data.clone(), address);
                self.owned.insert(buffer.data.clone());
                self.stmt(body)?;
            }
            StmtKind::Declare { body, .. } => self.stmt(body)?,
            StmtKind::Block { block, .. } => {
                return Err(Error::malformed(format!(
                    "the block `{}` is left where code is generated",
                    block.name
                ))
                .help("lower the function first"));
            }
            StmtKind::Assume(e) => self.assume(e)?,
            StmtKind::Assert { cond, values, .. } => self.assert(s, cond, values)?,
            StmtKind::Evaluate(e) => match e.kind() {
                ExprKind::Int(_) | ExprKind::Float(_) => {}
                ExprKind::Call(tilewright_ir::CallTarget::Extern(name), args) => {
                    self.call_extern(name, args, e.dtype())?;
                }
                _ => {
                    self.expr(e)?;
                }
            },
        }
        Ok(())
    }

    /// The value of a store. Where the loop around allows it, the operator that accumulates is
    /// marked as one that may be reordered.
    fn stored_value(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<Val> {
        let ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) = value.kind()
        else {
            return self.expr(value);
        };
        if ![a, b].iter().any(|e| loads_cell(e, buffer, indices)) {
            return self.expr(value);
        }
        let reassoc = self.reassoc && *op != BinOp::Sub;
        let contract = std::mem::replace(&mut self.code.contract, true);
        let sum = self.binary(value, *op, a, b, reassoc);
        self.code.contract = contract;
        sum
    }

    /// What follows an allocation. Where the first statement only fills the buffer with one constant, lanes that a
    /// mask leaves out get it, too: they hold nothing yet, and would keep what the iteration before left there.
    fn filled_first(&mut self, buffer: &Buffer, body: &Stmt) -> Result<()> {
        let (first, rest) = match body.kind() {
            StmtKind::Seq(list) => (list.first().unwrap_or(body), list.get(1..).unwrap_or(&[])),
            _ => return self.stmt(body),
        };
        if !self.padded.contains(&buffer.data) {
            return self.stmt(body);
        }
        if has_free_lanes(buffer, body) {
            self.free_lanes.insert(buffer.data.clone());
        }
        if !fills(first, buffer) {
            return self.stmt(body);
        }
        self.filling = Some(buffer.data.clone());
        let filled = self.stmt(first);
        self.filling = None;
        filled?;
        rest.iter().try_for_each(|s| self.stmt(s))
    }

    fn allocate(&mut self, buffer: &Buffer) -> Result<()> {
        let count = element_count(buffer).filter(|_| buffer.strides.is_empty());
        let count = count.ok_or_else(|| {
            Error::unsupported(format!("the size of buffer `{}` is not a constant", buffer.name))
        })?;
        let element = memory(buffer.dtype(), self.code.shared.machine.half)?;
        let bytes = count.saturating_mul(element.bytes());
        self.stack = self.stack.saturating_add(bytes);
        if self.stack > MAX_STACK {
            return Err(Error::unsupported(format!(
                "buffer `{}` of {bytes} bytes: local memory of {} bytes in one function, at most {MAX_STACK} are possible",
                buffer.name, self.stack
            ))
            .help("allocate large buffers outside the loops"));
        }
        // Lanes that a mask leaves out are read and written as they are.
        let behind =
            if &*buffer.scope == "local" { MASKED / element.bytes().max(1) - 1 } else { 0 };
        if behind > 0 {
            self.padded.insert(buffer.data.clone());
        }
        let p = self.code.alloca(element, count.max(1) + behind);
        self.env.insert(buffer.data.clone(), p);
        self.owned.insert(buffer.data.clone());
        Ok(())
    }

    fn if_stmt(&mut self, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        if cond.is_true() || cond.is_false() {
            let taken = if cond.is_true() { Some(then) } else { otherwise };
            return taken.map_or(Ok(()), |s| self.stmt(s));
        }
        if let Some(first) = first_lane(cond).filter(|_| cond.dtype().lanes > 1)
            && otherwise.is_none()
        {
            let some_lanes = |f: &mut Self| {
                let c = f.expr(cond)?;
                f.masked(&c, |f| {
                    f.first_lane = true;
                    f.stmt(then)
                })
            };
            return match self.left_to_ask(&first) {
                Some(first) => self.only_if(&first, some_lanes),
                None => some_lanes(self),
            };
        }
        let c = self.expr(cond)?;
        if c.ty.scalar != Scalar::I1 {
            return Err(Error::malformed(format!("the condition `{cond}` is not a bool")));
        }
        if c.lanes() != 1 {
            self.masked(&c, |f| f.stmt(then))?;
            if let Some(s) = otherwise {
                let not = self.code.not(&c);
                self.forget();
                self.masked(&not, |f| f.stmt(s))?;
            }
            return Ok(());
        }
        let [t, f, end] = ["then", "else", "end"].map(|hint| self.code.new_label(hint));
        self.code.branch(&c, &t, if otherwise.is_some() { &f } else { &end });
        self.code.begin(&t);
        self.scoped(|func| func.stmt(then))?;
        self.code.jump(&end);
        if let Some(s) = otherwise {
            self.forget();
            self.code.begin(&f);
            self.scoped(|func| func.stmt(s))?;
            self.code.jump(&end);
        }
        self.code.begin(&end);
        Ok(())
    }

    /// Does something where a scalar condition holds.
    fn only_if(&mut self, cond: &Expr, inside: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let c = self.expr(cond)?;
        let [t, end] = ["then", "end"].map(|hint| self.code.new_label(hint));
        self.code.branch(&c, &t, &end);
        self.code.begin(&t);
        self.scoped(inside)?;
        self.code.jump(&end);
        self.code.begin(&end);
        Ok(())
    }

    /// Hands over the values of the message, and returns its code, where the condition is false.
    fn assert(&mut self, s: &Stmt, cond: &Expr, values: &[Expr]) -> Result<()> {
        let ok = self.expr(cond)?;
        let mut failed = self.code.not(&ok);
        if let Some(mask) = self.mask.clone() {
            let failed_lanes = self.code.splat(&failed, mask.lanes());
            failed = if failed_lanes.ty == mask.ty {
                self.code.bin("and", &failed_lanes, &mask)
            } else {
                return Err(Error::unsupported(
                    "an assertion cannot stand under a condition of other lanes",
                ));
            };
        }
        let failed = self.code.any(&failed);
        let own = Assertion::from_stmt(s);
        let code = self.assertions.iter().position(|a| Some(a) == own.as_ref());
        let code = code.map_or(1, |k| k + 1);
        let [fail, go] = ["fail", "go"].map(|hint| self.code.new_label(hint));
        self.code.branch(&failed, &fail, &go);
        self.code.begin(&fail);
        if !values.is_empty() {
            self.scoped(|f| f.report(code, values))?;
        }
        self.code.line(format_args!("ret i32 {code}"));
        self.code.begin(&go);
        Ok(())
    }

    /// Hands the values of a failed assertion to the caller.
    fn report(&mut self, code: usize, values: &[Expr]) -> Result<()> {
        self.forget();
        let mut args = vec!["ptr %ctx".to_owned(), format!("i64 {code}")];
        for value in values.iter().take(MAX_VALUES) {
            args.push(self.index64(value)?.to_string());
        }
        args.resize(MAX_VALUES + 2, "i64 0".to_owned());
        self.forget();
        self.code.shared.helper(REPORT, |_| report_function());
        self.code.line(format_args!("call void @{REPORT}({})", args.join(", ")));
        Ok(())
    }

    fn for_loop(&mut self, l: &Loop<'_>) -> Result<()> {
        let Loop { var, range, kind, body, .. } = *l;
        if let ForKind::ThreadBinding(axis) = kind {
            return Err(Error::unsupported(format!(
                "loop `{}` is bound to `{axis}`, and this target has no such threads",
                var.name()
            ))
            .help("use a parallel loop"));
        }
        let dtype = var.dtype();
        if !dtype.is_int() || range.min.dtype() != dtype || range.extent.dtype() != dtype {
            return Err(Error::malformed(format!(
                "loop `{}` of type {dtype} has bounds of the types {} and {}",
                var.name(),
                range.min.dtype(),
                range.extent.dtype()
            )));
        }
        if self.ranges.interval(&range.extent).hi <= 0 {
            return Ok(());
        }
        if range.extent.as_int() == Some(1) {
            self.bind_to(var, &range.min)?;
            self.forget();
            return self.stmt(body);
        }
        self.sizes.vars.remove(var);
        let [min, extent] = [&range.min, &range.extent].map(|e| self.sizes.expr(e));
        self.ranges.bind_loop(var, &Range { min, extent });
        if *kind == ForKind::Parallel && !self.parallel && self.mask.is_none() {
            return self.parallel_loop(l);
        }
        if self.is_transposing(l) {
            return self.transposing(l);
        }
        let (min, extent) = (self.expr(&range.min)?, self.expr(&range.extent)?);
        let some = (self.ranges.interval(&range.extent).lo <= 0).then(|| {
            let op = if is_signed(dtype) { "icmp sgt" } else { "icmp ugt" };
            self.code.cmp(op, &extent, &Val::zero(extent.ty))
        });
        let end = if min.is_int(0) { extent } else { self.code.bin("add", &min, &extent) };
        self.counted(l, min, &end, some)
    }

    /// A loop over `min..end`. `some` says whether there is an iteration, where that is not known.
    pub(super) fn counted(
        &mut self,
        l: &Loop<'_>,
        min: Val,
        end: &Val,
        some: Option<Val>,
    ) -> Result<()> {
        let signed = is_signed(l.var.dtype());
        let is_wide = l.has_wide_counter();
        let (min, end) = if is_wide {
            (self.code.widen_bound(&min), self.code.widen_bound(end))
        } else {
            (min, end.clone())
        };
        let ty = min.ty;
        let [head, latch, exit] = ["loop", "next", "done"].map(|hint| self.code.new_label(hint));
        let from = self.code.label();
        match some {
            Some(c) => self.code.branch(&c, &head, &exit),
            None => self.code.jump(&head),
        }
        self.code.begin(&head);
        let i = self.code.name(ty);
        let next = self.code.name(ty);
        let ways = format!("[ {}, %{from} ], [ {}, %{latch} ]", min.text, next.text);
        self.code.define(&i, format_args!("phi {ty} {ways}"));
        if is_wide {
            let narrow = self.code.convert("trunc", &i, Scalar::I32);
            self.wide.insert(l.var.clone(), i.clone());
            self.env.insert(l.var.clone(), narrow);
        } else {
            self.bind(l.var, i.clone());
        }
        self.nesting += 1;
        self.nests.insert(l.var.clone(), if l.is_unrolled() { UNROLLED } else { self.nesting });
        self.forget();
        let reassoc = self.reassoc;
        self.reassoc |= is_set(l.annotations, "pragma_reassoc");
        let many = self.many_extremes;
        self.many_extremes = if l.is_unrolled() { many } else { carries_many(l.body) };
        self.scoped(|f| f.stmt(l.body))?;
        (self.reassoc, self.many_extremes) = (reassoc, many);
        self.nesting -= 1;
        self.code.jump(&latch);
        self.code.begin(&latch);
        // The last value is within the type, so counting to it does not wrap.
        let wrap = if signed { "nsw" } else { "nuw" };
        self.code.define(&next, format_args!("add {wrap} {i}, 1"));
        let end = self.code.end_of_loop(&end);
        let more = self.code.cmp(if signed { "icmp slt" } else { "icmp ult" }, &next, &end);
        let metadata = l.metadata(self.code.shared);
        self.code.line(format_args!("br {more}, label %{head}, label %{exit}{metadata}"));
        self.code.begin(&exit);
        Ok(())
    }
}

/// The helper that fills in what the context says of a failure.
const REPORT: &str = "tilewright.report";

/// Its definition. Of several threads one claims the place.
fn report_function() -> String {
    let params: String = (0..MAX_VALUES).map(|k| format!(", i64 %v{k}")).collect();
    let mut out = format!(
        "define internal void @{REPORT}(ptr %ctx, i64 %code{params}) cold noinline nounwind {{
  %alone = icmp eq ptr %ctx, null
  br i1 %alone, label %end, label %look
look:
  %at = getelementptr i8, ptr %ctx, i64 16
  %failure = load ptr, ptr %at, align 8
  %none = icmp eq ptr %failure, null
  br i1 %none, label %end, label %claim
claim:
  %old = cmpxchg ptr %failure, i64 0, i64 %code monotonic monotonic, align 8
  %first = extractvalue {{ i64, i1 }} %old, 1
  br i1 %first, label %write, label %end
write:
"
    );
    for k in 0..MAX_VALUES {
        let at = 8 * (k + 1);
        let _ = writeln!(out, "  %p{k} = getelementptr i8, ptr %failure, i64 {at}");
        let _ = writeln!(out, "  store i64 %v{k}, ptr %p{k}, align 8");
    }
    out + "  br label %end\nend:\n  ret void\n}"
}

/// The parts of a loop.
#[derive(Clone, Copy)]
pub(super) struct Loop<'s> {
    pub var: &'s Var,
    pub range: &'s Range,
    pub kind: &'s ForKind,
    pub annotations: &'s Attrs,
    pub body: &'s Stmt,
}

impl Loop<'_> {
    /// Whether a counter of `int32` has 64 bits.
    pub(super) fn has_wide_counter(&self) -> bool {
        self.var.dtype() == DType::I32 && is_for_addresses(self.var, self.body)
    }

    /// Whether nothing is left of the loop.
    fn is_unrolled(&self) -> bool {
        *self.kind == ForKind::Unrolled && self.range.extent.as_int().is_some()
    }

    /// The text that follows the loop's last branch.
    fn metadata(&self, shared: &Shared) -> String {
        let mut hints = Vec::new();
        let count = self.annotations.get("pragma_unroll_count").map(as_number);
        if is_set(self.annotations, "pragma_no_unroll") {
            hints.push("!\"llvm.loop.unroll.disable\"".to_owned());
        } else if let Some(count @ 2..=1024) = count {
            hints.push(format!("!\"llvm.loop.unroll.count\", i32 {count}"));
        } else if *self.kind == ForKind::Unrolled {
            let how = if self.range.extent.as_int().is_some() { "full" } else { "enable" };
            hints.push(format!("!\"llvm.loop.unroll.{how}\""));
        }
        let vectorized = *self.kind == ForKind::Vectorized;
        match self.annotations.get("pragma_vectorize").map(as_number) {
            Some(0) => hints.push("!\"llvm.loop.vectorize.enable\", i1 false".to_owned()),
            Some(width) => {
                hints.push("!\"llvm.loop.vectorize.enable\", i1 true".to_owned());
                if let width @ 2..=1024 = width {
                    hints.push(format!("!\"llvm.loop.vectorize.width\", i32 {width}"));
                }
            }
            None if vectorized => {
                hints.push("!\"llvm.loop.vectorize.enable\", i1 true".to_owned());
            }
            // LLVM may unroll the loop inside first, and then take vectors across its iterations.
            None if writes_rows(self.body) || stores_few_narrow(self.body) => {
                hints.push("!\"llvm.loop.vectorize.enable\", i1 false".to_owned());
            }
            None => {}
        }
        if hints.is_empty() {
            return String::new();
        }
        let nodes: Vec<String> =
            hints.iter().map(|h| shared.node(|_| format!("!{{{h}}}"))).collect();
        let list: String = nodes.iter().map(|n| format!(", !{n}")).collect();
        let id = shared.node(|id| format!("distinct !{{!{id}{list}}}"));
        format!(", !llvm.loop !{id}")
    }
}

/// The fewest cells of a row that are better written as vectors of the row.
const ROW: i64 = 8;

/// Whether a condition that depends on no data decides on a store of fewer than 32 bits. Made into a vector whose mask
/// has one lane, LLVM 22 stores 32 bits (x86 with AVX-512: the store of a truncated element).
fn stores_few_narrow(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| {
        if let StmtKind::If { cond, then, .. } = s.kind() {
            found |= !cond.effects().loads && stores_narrow(then);
        }
    });
    found
}

fn stores_narrow(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| {
        if let StmtKind::Store { buffer, .. } = s.kind() {
            found |= buffer.dtype().bytes() < 4;
        }
    });
    found
}

/// The condition that holds where one of lanes does that holds for the first lanes alone: the value of the first lane.
/// `None` where it may hold for others.
fn first_lane(cond: &Expr) -> Option<Expr> {
    match cond.kind() {
        ExprKind::Broadcast(value) => Some(value.clone()),
        ExprKind::Binary(BinOp::And, a, b) => Some(first_lane(a)?.and(first_lane(b)?)),
        ExprKind::Binary(op @ (BinOp::Lt | BinOp::Le), a, b) => match b.kind() {
            ExprKind::Broadcast(b) => Some(Expr::binary(*op, lowest_lane(a)?, b.clone())),
            _ => None,
        },
        ExprKind::Binary(op @ (BinOp::Gt | BinOp::Ge), a, b) => match a.kind() {
            ExprKind::Broadcast(a) => Some(Expr::binary(*op, a.clone(), lowest_lane(b)?)),
            _ => None,
        },
        _ => None,
    }
}

fn lowest_lane(e: &Expr) -> Option<Expr> {
    match e.kind() {
        ExprKind::Ramp(base, step) if step.as_int().is_some_and(|k| k >= 0) => Some(base.clone()),
        ExprKind::Broadcast(value) => Some(value.clone()),
        _ => None,
    }
}

/// Whether a statement is a loop that writes neighbours, some vectors of them.
fn writes_rows(s: &Stmt) -> bool {
    let StmtKind::For { var, range, body, .. } = s.kind() else { return false };
    let StmtKind::Store { indices, .. } = body.kind() else { return false };
    range.extent.as_int().is_none_or(|n| n >= ROW)
        && indices
            .last()
            .is_some_and(|i| Linear::from_expr(i).and_then(|i| i.coefficient(var)) == Some(1))
}

/// Whether an annotation is there and does not say no.
fn is_set(annotations: &Attrs, key: &str) -> bool {
    annotations.get(key).is_some_and(|a| as_number(a) != 0)
}

/// An annotation as a number; one without a value counts as 1.
fn as_number(a: &Attr) -> i64 {
    match a {
        Attr::Bool(b) => i64::from(*b),
        Attr::Int(n) => *n,
        Attr::Expr(e) => e.as_int().unwrap_or(1),
        _ => 1,
    }
}

/// Whether a statement stores one constant to a buffer, wherever it does, and reads nothing of it.
fn fills(s: &Stmt, buffer: &Buffer) -> bool {
    let mut values: Vec<Expr> = Vec::new();
    s.for_each(|s| {
        if let StmtKind::Store { buffer: to, value, .. } = s.kind()
            && to.data == buffer.data
        {
            values.push(match value.kind() {
                ExprKind::Broadcast(value) => value.clone(),
                _ => value.clone(),
            });
        }
    });
    let Some((first, others)) = values.split_first() else { return false };
    (first.as_float().is_some() || first.as_int().is_some())
        && others.iter().all(|value| same_expr(first, value))
        && !s.any_expr(|e| e.loads_from(|b| b.data == buffer.data))
}
