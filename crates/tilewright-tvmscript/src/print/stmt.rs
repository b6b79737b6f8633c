//! Statements and blocks.
//!
//! A binding whose body is the rest of its suite is printed flat (`x: T.int32 = ...`), any other
//! as a scope (`with T.LetStmt(...) as x:`), so that the text says where it ends.

use tilewright_ir::hash::HashSet;

use tilewright_ir::text::{Names, commas, quote, tuple};
use tilewright_ir::{
    Block, Buffer, DType, Expr, ForKind, Range, Region, Stmt, StmtKind, Var, Visit, equal, visit,
};

use super::Printer;
use crate::consts;
use crate::tensor::{LOOPS, axis_names};

/// Whether regions or annotations of a block name buffers, or pointers of buffers, that the block
/// defines.
fn names_own_buffers(b: &Block) -> bool {
    struct Find<'a> {
        buffers: HashSet<&'a Buffer>,
        pointers: HashSet<&'a Var>,
        found: bool,
    }
    impl Visit for Find<'_> {
        fn expr(&mut self, e: &Expr) {
            self.found |= e.as_var().is_some_and(|v| self.pointers.contains(v));
            visit::walk_expr(self, e);
        }
        fn buffer_use(&mut self, b: &Buffer) {
            self.found |= self.buffers.contains(b);
        }
    }
    let own = || b.allocs.iter().chain(b.matches.iter().map(|m| &m.buffer));
    let mut find =
        Find { buffers: own().collect(), pointers: own().map(|b| &b.data).collect(), found: false };
    b.reads.iter().chain(&b.writes).flatten().for_each(|r| visit::walk_region(&mut find, r));
    visit::walk_attrs(&mut find, &b.annotations);
    find.found
}

impl Printer<'_> {
    /// The statements of a suite, one level deeper, in a scope of their own.
    pub(super) fn suite(&mut self, s: &Stmt) {
        self.names.push();
        self.indent += 1;
        self.body(s);
        self.indent -= 1;
        self.names.pop();
    }

    /// The statements of a suite whose scope is open.
    pub(super) fn body(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Seq(stmts) => {
                for (i, s) in stmts.iter().enumerate() {
                    self.stmt(s, i + 1 == stmts.len());
                }
            }
            _ => self.stmt(s, true),
        }
    }

    /// A statement; `last` says that nothing follows it in its suite.
    fn stmt(&mut self, s: &Stmt, last: bool) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let target = Expr::load(buffer, indices.clone());
                let line = format!("{} = {}", self.expr(&target), self.expr(value));
                self.line(&line);
            }
            StmtKind::For { .. } => self.for_loop(s),
            StmtKind::If { cond, then, otherwise } => {
                let line = format!("if {}:", self.expr(cond));
                self.line(&line);
                self.suite(then);
                self.otherwise(otherwise.as_ref());
            }
            StmtKind::Let { var, value, body } => {
                let value = self.typed(value);
                if last {
                    let name = self.names.define(var);
                    self.line(&format!("{name}: T.{} = {value}", var.dtype()));
                    self.body(body);
                } else {
                    self.names.push();
                    let name = self.names.define(var);
                    self.line(&format!("with T.LetStmt({value}) as {name}:"));
                    self.suite(body);
                    self.names.pop();
                }
            }
            StmtKind::Seq(_) => self.body(s),
            StmtKind::Allocate { buffer, annotations, body } => {
                let mut args = self.buffer_args(buffer, None);
                if !annotations.is_empty() {
                    args += &format!(", annotations={}", self.attrs(annotations));
                }
                self.binding(buffer, &format!("T.decl_buffer({args})"), body, last);
            }
            StmtKind::Constant { buffer, value, body } => {
                let args = consts::print_elements(value) + &self.buffer_details(buffer);
                self.binding(buffer, &format!("T.allocate_const({args})"), body, last);
            }
            StmtKind::Declare { buffer, body } => {
                let data = self.names.var(&buffer.data);
                let args = self.buffer_args(buffer, Some(&data));
                self.binding(buffer, &format!("T.decl_buffer({args})"), body, last);
            }
            StmtKind::Block { bindings, predicate, block } => {
                self.block(bindings, predicate, block);
            }
            StmtKind::Assume(e) => {
                let line = format!("T.assume({})", self.expr(e));
                self.line(&line);
            }
            StmtKind::Assert { cond, message, values } => {
                let mut parts = vec![quote(message)];
                parts.extend(values.iter().map(|e| self.typed(e)));
                let said = if values.is_empty() { parts.concat() } else { tuple(parts) };
                let line = format!("assert {}, {said}", self.expr(cond));
                self.line(&line);
            }
            StmtKind::Evaluate(e) => {
                let line = format!("T.evaluate({})", self.expr(e));
                self.line(&line);
            }
        }
    }

    /// The value of a binding; a constant with its type.
    fn typed(&mut self, e: &Expr) -> String {
        match e.as_int() {
            Some(v) if e.dtype() == DType::I32 => format!("T.int32({v})"),
            _ => self.expr(e),
        }
    }

    fn binding(&mut self, buffer: &Buffer, value: &str, body: &Stmt, last: bool) {
        if last {
            let name = self.names.define_buffer(buffer);
            self.line(&format!("{name} = {value}"));
            self.body(body);
        } else {
            self.names.push();
            let name = self.names.define_buffer(buffer);
            self.line(&format!("with {value} as {name}:"));
            self.suite(body);
            self.names.pop();
        }
    }

    fn otherwise(&mut self, otherwise: Option<&Stmt>) {
        let mut next = otherwise;
        while let Some(s) = next {
            match s.kind() {
                StmtKind::If { cond, then, otherwise } => {
                    let line = format!("elif {}:", self.expr(cond));
                    self.line(&line);
                    self.suite(then);
                    next = otherwise.as_ref();
                }
                _ => {
                    self.line("else:");
                    self.suite(s);
                    next = None;
                }
            }
        }
    }

    /// A loop; nested serial loops from zero whose extents do not depend on each other are one
    /// `T.grid`.
    fn for_loop(&mut self, s: &Stmt) {
        let mut vars: Vec<&Var> = Vec::new();
        let mut extents = Vec::new();
        let mut inner = s;
        while let StmtKind::For { var, range, kind: ForKind::Serial, annotations, body } =
            inner.kind()
        {
            let free = visit::free_vars(&range.extent);
            let own = vars.iter().any(|v| free.contains(*v));
            if !annotations.is_empty() || range.min.as_int() != Some(0) || own {
                break;
            }
            vars.push(var);
            extents.push(range.extent.clone());
            inner = body;
        }
        self.names.push();
        if vars.len() > 1 {
            let extents_text = self.exprs(&extents);
            let names = commas(vars.iter().map(|v| self.names.define(v)));
            self.line(&format!("for {names} in T.grid({extents_text}):"));
            for (v, e) in vars.iter().zip(extents) {
                self.loops.insert((*v).clone(), Range::upto(e));
            }
            self.suite(inner);
        } else if let StmtKind::For { var, range, kind, annotations, body } = s.kind() {
            let mut args = match self.bounds(range) {
                (None, end) => end,
                (Some(min), end) => format!("{min}, {end}"),
            };
            if let ForKind::ThreadBinding(tag) = kind {
                args += &format!(", thread={}", quote(tag));
            }
            if !annotations.is_empty() {
                args += &format!(", annotations={}", self.attrs(annotations));
            }
            let named = LOOPS.iter().find(|(_, k)| k == kind);
            let callee = match named.map_or("thread_binding", |(name, _)| name) {
                "serial" if annotations.is_empty() => "range".to_owned(),
                name => format!("T.{name}"),
            };
            let name = self.names.define(var);
            self.line(&format!("for {name} in {callee}({args}):"));
            self.loops.insert(var.clone(), range.clone());
            self.suite(body);
        }
        self.names.pop();
    }

    /// `A[i, 0:4]`
    fn region(&mut self, r: &Region) -> String {
        let buffer = self.names.buffer(&r.buffer);
        if r.ranges.is_empty() {
            return format!("{buffer}[()]");
        }
        format!(
            "{buffer}[{}]",
            commas(r.ranges.iter().map(|r| {
                if r.is_point() {
                    self.expr(&r.min)
                } else {
                    match self.bounds(r) {
                        (None, end) => format!("0:{end}"),
                        (Some(min), end) => format!("{min}:{end}"),
                    }
                }
            }))
        )
    }

    fn regions(&mut self, name: &str, regions: Option<&Vec<Region>>) {
        if let Some(regions) = regions {
            let regions = commas(regions.iter().map(|r| self.region(r)));
            self.line(&format!("T.{name}({regions})"));
        }
    }

    fn block(&mut self, bindings: &[Expr], predicate: &Expr, b: &Block) {
        self.line(&format!("with T.block({}):", quote(&b.name)));
        self.names.push();
        self.indent += 1;
        self.axes(bindings, b);
        if !predicate.is_true() {
            let line = format!("T.where({})", self.expr(predicate));
            self.line(&line);
        }
        // Regions and annotations come first, unless they name what the block itself defines.
        let late = names_own_buffers(b);
        if !late {
            self.clauses(b);
        }
        for a in &b.allocs {
            self.alloc(a);
        }
        for m in &b.matches {
            let source = self.region(&m.source);
            // A view may share a pointer that is known already.
            let data = self.names.known(&m.buffer.data).map(str::to_owned);
            let args = self.buffer_args(&m.buffer, data.as_deref());
            let name = self.names.define_buffer(&m.buffer);
            self.line(&format!("{name} = T.match_buffer({source}, {args})"));
        }
        if late {
            self.clauses(b);
        }
        if let Some(init) = &b.init {
            self.line("with T.init():");
            self.suite(init);
        }
        self.body(&b.body);
        self.indent -= 1;
        self.names.pop();
    }

    /// What a block says about its regions, and its annotations.
    fn clauses(&mut self, b: &Block) {
        self.regions("reads", b.reads.as_ref());
        self.regions("writes", b.writes.as_ref());
        if !b.annotations.is_empty() {
            let line = format!("T.block_attr({})", self.attrs(&b.annotations));
            self.line(&line);
        }
    }

    /// `A = T.alloc_buffer(...)`
    pub(super) fn alloc(&mut self, b: &Buffer) {
        let args = self.buffer_args(b, None);
        let name = self.names.define_buffer(b);
        self.line(&format!("{name} = T.alloc_buffer({args})"));
    }

    /// The iteration variables. Where each stands for a loop with the loop's own range, they are
    /// one `T.axis.remap`.
    fn axes(&mut self, bindings: &[Expr], b: &Block) {
        if b.iters.len() > 1
            && b.iters.iter().zip(bindings).all(|(i, e)| self.is_loop(&i.domain, e))
        {
            let values = self.exprs(bindings);
            let kinds: String = b.iters.iter().map(|i| axis_names(i.kind).1).collect();
            let names = commas(b.iters.iter().map(|i| self.names.define(&i.var)));
            self.line(&format!("{names} = T.axis.remap(\"{kinds}\", [{values}])"));
            return;
        }
        for (iter, value) in b.iters.iter().zip(bindings) {
            let value = self.expr(value);
            let domain = match self.bounds(&iter.domain) {
                (None, end) => end,
                (Some(min), end) => format!("({min}, {end})"),
            };
            let (kind, _) = axis_names(iter.kind);
            let name = self.names.define(&iter.var);
            self.line(&format!("{name} = T.axis.{kind}({domain}, {value})"));
        }
    }

    fn is_loop(&self, range: &Range, e: &Expr) -> bool {
        let around = e.as_var().and_then(|v| self.loops.get(v));
        around.is_some_and(|r| {
            equal::same_expr(&r.min, &range.min) && equal::same_expr(&r.extent, &range.extent)
        })
    }

    /// The arguments that describe a buffer: shape, type, and what is not usual.
    pub(super) fn buffer_args(&mut self, b: &Buffer, data: Option<&str>) -> String {
        let shape = tuple(b.shape.iter().map(|e| self.expr(e)));
        let mut args = format!("{shape}, \"{}\"", b.dtype());
        if let Some(data) = data {
            args += &format!(", data={data}");
        }
        args + &self.buffer_details(b)
    }

    /// What of a buffer is not as usual.
    fn buffer_details(&mut self, b: &Buffer) -> String {
        let mut args = String::new();
        if !b.strides.is_empty() {
            args += &format!(", strides={}", tuple(b.strides.iter().map(|e| self.expr(e))));
        }
        if let Some(e) = &b.elem_offset {
            args += &format!(", elem_offset={}", self.expr(e));
        }
        if &*b.scope != "global" {
            args += &format!(", scope={}", quote(&b.scope));
        }
        if b.align != 0 {
            args += &format!(", align={}", b.align);
        }
        if b.offset_factor != 0 {
            args += &format!(", offset_factor={}", b.offset_factor);
        }
        if !b.axis_separators.is_empty() {
            args += &format!(", axis_separators={:?}", b.axis_separators);
        }
        args
    }
}
