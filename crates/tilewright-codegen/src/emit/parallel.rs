//! Parallel loops.
//!
//! The body of a parallel loop becomes a function of its own that runs the iterations
//! `begin..end`. What it uses from outside (pointers, variables) is passed through a closure on
//! the caller's stack:
//!
//! ```text
//! f.impl:      fill %closure; call parallel_for(ctx, @f.task0, %closure, begin, end)
//! @f.task0:    load the fields; call @f.loop0(ctx, begin, end, fields...)
//! @f.loop0:    the loop, with the pointers as `noalias` parameters
//! ```
//!
//! The second function is there for the `noalias`: what LLVM knows about pointers that are loaded
//! from a closure is nothing. Where an assertion inside fails, the loop function returns its
//! code, the task stores it in the closure's first field, and the caller returns it after the loop;
//! of several, any one. Without a `parallel_for`, and where there is little to do ([`grain`](super::grain)), the task is
//! called directly.
//!
//! A parallel loop inside a parallel loop is an ordinary one.

use std::rc::Rc;
use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::{walk_buffer, walk_expr, walk_stmt};
use tilewright_ir::{
    Buffer, DType, Error, Expr, ExprKind, Range, Result, Stmt, StmtKind, Var, Visit,
};

use super::code::{Code, Ty, Val};
use super::func::Func;
use super::stmt::Loop;
use super::template::{ARGUMENT, ONLY_IN_FAMILIES, SYMBOL};
use super::types::is_signed;

impl Func<'_> {
    pub(super) fn parallel_loop(&mut self, l: &Loop<'_>) -> Result<()> {
        let Loop { var, range, body, .. } = *l;
        let signed = is_signed(var.dtype());
        let (min, extent) = (self.expr(&range.min)?, self.expr(&range.extent)?);
        let (begin, extent) = (self.code.widen(&min, signed), self.code.widen(&extent, signed));
        let end = self.code.add_index(&begin, &extent, true);
        let number = self.outlined.replace(self.outlined.get() + 1);
        let task = format!("{SYMBOL}.task{number}");
        let function = format!("{SYMBOL}.loop{number}");

        let captured = captured(var, body);
        let fields = captured
            .iter()
            .map(|v| {
                self.env.get(v).cloned().ok_or_else(|| {
                    Error::malformed(format!(
                        "`{}` is used in a parallel loop where it is not defined",
                        v.name()
                    ))
                })
            })
            .collect::<Result<Vec<Val>>>()?;
        let can_fail = asserts(body);
        self.loop_function(&function, l, &captured)?;
        self.task_function(&task, &function, &fields, can_fail);

        let layout = layout(&fields);
        let closure = self.code.alloca_struct(&layout);
        for (k, v) in fields.iter().enumerate() {
            let at = part(&mut self.code, &layout, &closure, k + 1);
            self.code.line(format_args!("store {v}, {at}, align 1"));
        }
        let number_at = format!("%n.at{number}");
        part_in_families(&mut self.code, &number_at, &fields, &closure);
        self.code.line_in_families(format_args!("store i64 %n, ptr {number_at}, align 1"));
        if can_fail {
            self.code.line(format_args!("store i32 0, {closure}, align 4"));
        }
        let worth = super::grain::is_worth(var, range, body);
        let worth = worth.map(|e| self.expr(&e)).transpose()?;
        self.run_task(&task, &closure, (&begin, &end), range, worth);
        if can_fail {
            let code = self.code.emit(Ty::I32, format_args!("load i32, {closure}, align 4"));
            let bad = self.code.cmp("icmp ne", &code, &Val::zero(Ty::I32));
            let [fail, go] = ["fail", "go"].map(|hint| self.code.new_label(hint));
            self.code.branch(&bad, &fail, &go);
            self.code.begin(&fail);
            self.code.line(format_args!("ret {code}"));
            self.code.begin(&go);
        }
        Ok(())
    }

    /// Calls the context's `parallel_for`, or the task itself where there is none or the work is not `worth` it.
    fn run_task(
        &mut self,
        task: &str,
        closure: &Val,
        (begin, end): (&Val, &Val),
        range: &Range,
        worth: Option<Val>,
    ) {
        let may_be_empty = self.ranges.interval(&range.extent).lo <= 0;
        let c = &mut self.code;
        let hints = ["some", "work", "ctx", "serial", "threads", "end"];
        let labels = hints.map(|hint| c.new_label(hint));
        let [some, enough, with_context, serial, threads, after] = &labels;
        if may_be_empty {
            let any = c.cmp("icmp slt", begin, end);
            c.branch(&any, some, after);
            c.begin(some);
        }
        if let Some(worth) = worth {
            c.branch(&worth, enough, serial);
            c.begin(enough);
        }
        let context = Val::new(Ty::PTR, "%ctx");
        let null = Val::zero(Ty::PTR);
        let none = c.cmp("icmp eq", &context, &null);
        c.branch(&none, serial, with_context);
        c.begin(with_context);
        let run = c.emit(Ty::PTR, format_args!("load ptr, {context}, align 8"));
        let none = c.cmp("icmp eq", &run, &null);
        c.branch(&none, serial, threads);
        c.begin(serial);
        c.line(format_args!("call void @{task}({context}, {closure}, {begin}, {end})"));
        c.jump(after);
        c.begin(threads);
        c.line(format_args!(
            "call void {}({context}, ptr @{task}, {closure}, {begin}, {end})",
            run.text
        ));
        c.jump(after);
        c.begin(after);
    }

    fn loop_function(&mut self, name: &str, l: &Loop<'_>, captured: &[Var]) -> Result<()> {
        let shared = self.code.shared;
        let mut inner = Func::new(shared, self.aliases.clone(), self.assertions.clone());
        inner.ranges = self.ranges.clone();
        inner.sizes = self.sizes.clone();
        inner.parallel = true;
        inner.reassoc = self.reassoc;
        inner.depth = self.depth;
        inner.outlined = Rc::clone(&self.outlined);
        let handles = uses_handles(l.body);
        let mut params = ["ptr %ctx", "i64 %begin", "i64 %end"].map(str::to_owned).to_vec();
        for (k, v) in captured.iter().enumerate() {
            let ty = self.env.get(v).map_or(Ty::PTR, |v| v.ty);
            let param = Val::new(ty, format!("%c{k}"));
            // A pointer that is also used as a value may be one of the others under another name.
            let alone = self.owned.contains(v) && !handles;
            if alone {
                inner.owned.insert(v.clone());
            }
            let attrs = if alone { " noalias noundef" } else { "" };
            params.push(format!("{ty}{attrs} {}", param.text));
            inner.bind(v, param);
        }
        let begin = convert_bound(&mut inner.code, l, "%begin")?;
        let end = convert_bound(&mut inner.code, l, "%end")?;
        let first = Var::new(format!("{}_first", l.var.name()), l.var.dtype());
        let narrow = super::types::register(l.var.dtype())?;
        let begun = match begin.ty == narrow {
            true => begin.clone(),
            false => inner.code.convert("trunc", &begin, narrow.scalar),
        };
        inner.ranges.bind_loop(&first, l.range);
        inner.bind(&first, begun);
        inner.task = Some((l.var.clone(), first));
        inner.counted(l, begin, &end, None)?;
        inner.code.line(format_args!("ret i32 0"));
        let params = params.join(", ");
        let head = format!("define internal i32 @{name}({params}{ARGUMENT}) noinline #0");
        shared.function(inner.code.finish(&head));
        Ok(())
    }

    /// The function that `parallel_for` calls, for one or more iterations.
    fn task_function(&self, name: &str, function: &str, fields: &[Val], can_fail: bool) {
        let mut c = Code::new(self.code.shared);
        let closure = Val::new(Ty::PTR, "%closure");
        let layout = layout(fields);
        let mut args = ["ptr %ctx", "i64 %begin", "i64 %end"].map(str::to_owned).to_vec();
        for (k, v) in fields.iter().enumerate() {
            let at = part(&mut c, &layout, &closure, k + 1);
            let value = c.emit(v.ty, format_args!("load {}, {at}, align 1", v.ty));
            args.push(value.to_string());
        }
        part_in_families(&mut c, "%n.at", fields, &closure);
        c.line_in_families(format_args!("%n = load i64, ptr %n.at, align 1"));
        let call = format_args!("call i32 @{function}({}{ARGUMENT})", args.join(", "));
        let code = c.emit(Ty::I32, call);
        if can_fail {
            let bad = c.cmp("icmp ne", &code, &Val::zero(Ty::I32));
            let [fail, done] = ["fail", "done"].map(|hint| c.new_label(hint));
            c.branch(&bad, &fail, &done);
            c.begin(&fail);
            c.line(format_args!("store atomic {code}, {closure} monotonic, align 4"));
            c.jump(&done);
            c.begin(&done);
        }
        c.line(format_args!("ret void"));
        let head = format!(
            "define internal void @{name}(ptr %ctx, ptr %closure, i64 %begin, i64 %end) #0"
        );
        self.code.shared.function(c.finish(&head));
    }
}

/// A bound of the loop in the type of its variable.
fn convert_bound(c: &mut Code<'_>, l: &Loop<'_>, name: &str) -> Result<Val> {
    let ty = super::types::register(l.var.dtype())?;
    let v = Val::new(Ty::I64, name);
    Ok(if ty == Ty::I64 || l.has_wide_counter() { v } else { c.convert("trunc", &v, ty.scalar) })
}

/// The type of a closure: the code of a failed assertion, then the fields without gaps, and last the number
/// of a family.
fn layout(fields: &[Val]) -> String {
    let fields: String = fields.iter().map(|v| format!(", {}", v.ty)).collect();
    format!("<{{ i32{fields}{ONLY_IN_FAMILIES}, i64{ONLY_IN_FAMILIES} }}>")
}

/// Names the address of the number of a family in a closure with these fields.
fn part_in_families(c: &mut Code<'_>, name: &str, fields: &[Val], closure: &Val) {
    let types: String = fields.iter().map(|v| format!(", {}", v.ty)).collect();
    c.line_in_families(format_args!(
        "{name} = getelementptr inbounds <{{ i32{types}, i64 }}>, {closure}, i64 0, i32 {}",
        fields.len() + 1
    ));
}

/// The address of a part of a closure.
fn part(c: &mut Code<'_>, layout: &str, closure: &Val, k: usize) -> Val {
    c.emit(Ty::PTR, format_args!("getelementptr inbounds {layout}, {closure}, i64 0, i32 {k}"))
}

/// What a loop uses from outside, pointers of buffers included, in the order of the text.
pub(crate) fn captured(var: &Var, body: &Stmt) -> Vec<Var> {
    #[derive(Default)]
    struct Captured {
        used: Vec<Var>,
        seen: HashSet<Var>,
        bound: HashSet<Var>,
        /// Nodes that were visited; they may be shared many times.
        nodes: HashSet<usize>,
    }
    impl Captured {
        fn use_var(&mut self, v: &Var) {
            if self.seen.insert(v.clone()) {
                self.used.push(v.clone());
            }
        }
    }
    impl Visit for Captured {
        fn expr(&mut self, e: &Expr) {
            if let ExprKind::Var(v) = e.kind() {
                self.use_var(v);
            }
            if self.nodes.insert(e.address()) {
                walk_expr(self, e);
            }
        }
        fn stmt(&mut self, s: &Stmt) {
            if let StmtKind::Allocate { buffer, .. } | StmtKind::Constant { buffer, .. } = s.kind()
            {
                self.bound.insert(buffer.data.clone());
            }
            walk_stmt(self, s);
        }
        fn var_def(&mut self, v: &Var) {
            self.bound.insert(v.clone());
        }
        fn buffer_def(&mut self, _: &Buffer) {}
        fn buffer_use(&mut self, b: &Buffer) {
            // Addressing reads the extents, strides and offset, wherever the buffer is defined.
            self.use_var(&b.data);
            walk_buffer(self, b);
        }
    }
    let mut c = Captured::default();
    c.bound.insert(var.clone());
    c.stmt(body);
    let bound = c.bound;
    c.used.into_iter().filter(|v| !bound.contains(v)).collect()
}

/// Whether pointers are used other than by loads and stores.
fn uses_handles(s: &Stmt) -> bool {
    s.any_expr(|e| e.dtype() == DType::HANDLE)
}

/// Whether an assertion may fail inside.
fn asserts(s: &Stmt) -> bool {
    s.effects().asserts
}
