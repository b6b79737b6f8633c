//! Random well-formed modules: what is printed reads back as the same module.
//!
//! A module is made from a list of bytes, each of which is one choice, so that a failing case
//! shrinks to few bytes, and those to zero: the simplest choice.

use proptest::prelude::*;
use tilewright_ir::stmt::{Attr, Attrs, Block, IterKind, IterVar, MatchRegion, Region};
use tilewright_ir::visit::{Visit, walk_stmt};
use tilewright_ir::{
    BinOp, Binding, BindingBlock, Buffer, CallTarget, DType, Expr, ForKind, Function, GraphExpr,
    GraphFunc, GraphType, GraphVar, Intrin, Module, Param, Range, Source, Stmt, StmtKind, Tensor,
    TensorFunc, TensorType, TypeKind, Var, equal, well_formed,
};
use tilewright_tvmscript::{
    ConstTable, parse_module, parse_module_with, print_module, print_module_with,
};

mod graph;

/// Names that are ordinary, clash, or are none in Python.
const NAMES: &[&str] = &[
    "i",
    "A",
    "x",
    "i",
    "T",
    "lambda",
    "gpu_0/data_0",
    "",
    "1x",
    "größe",
    "cls",
    "range",
    "a.b",
    "A_1",
    "n",
    "min",
    "Module",
    "_",
    "x\"y\\z\n",
    "metadata",
    "A.data",
    "T.sblock",
];

const INTS: &[DType] =
    &[DType::I32, DType::I64, DType::U8, DType::I8, DType::U64, DType::I16, DType::U32];
const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::F64, DType::BF16];

struct Gen<'a> {
    bytes: &'a [u8],
    at: usize,
    vars: Vec<Var>,
    buffers: Vec<Buffer>,
    /// Loops around, with their ranges.
    loops: Vec<(Var, Range)>,
    /// Whether `T.undef()` may be used here.
    undef: bool,
}

impl Gen<'_> {
    fn byte(&mut self) -> usize {
        let b = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(b)
    }

    /// A number below `n`.
    fn pick(&mut self, n: usize) -> usize {
        self.byte() % n.max(1)
    }

    fn chance(&mut self, of: usize) -> bool {
        self.pick(of) == of - 1
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())].clone()
    }

    fn name(&mut self) -> &'static str {
        self.of(NAMES)
    }

    fn int_type(&mut self) -> DType {
        if self.chance(3) { self.of(INTS) } else { DType::I32 }
    }

    fn any_type(&mut self) -> DType {
        match self.pick(4) {
            0 => self.of(FLOATS),
            1 => DType::BOOL,
            _ => self.int_type(),
        }
    }

    fn small(&mut self, dtype: DType) -> Expr {
        let v = self.pick(9) as i64 + 1;
        Expr::int(v, dtype)
    }

    /// A constant of a type; extremes included.
    fn constant(&mut self, dtype: DType) -> Expr {
        if dtype.is_float() {
            let special = [
                0.0,
                1.5,
                -0.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                1e-30,
                0.1,
                -65504.0,
                1e30,
                f64::MIN_POSITIVE,
                16777217.0,
            ];
            return Expr::float(self.of(&special), dtype);
        }
        let values = [0, 1, 2, 7, -1, -3, 100, i64::MAX, i64::MIN, i64::from(i32::MIN)];
        Expr::int(self.of(&values), dtype)
    }

    /// A scalar expression of a type.
    fn expr(&mut self, dtype: DType, depth: usize) -> Expr {
        let vars: Vec<Var> = self.vars.iter().filter(|v| v.dtype() == dtype).cloned().collect();
        if depth == 0 || self.chance(4) {
            return match vars.is_empty() || self.chance(3) {
                true if self.undef && self.chance(8) => Expr::undef(dtype),
                true => self.constant(dtype),
                false => self.of(&vars).expr(),
            };
        }
        let d = depth - 1;
        match self.pick(8) {
            0 => self.arithmetic(dtype, d),
            1 => {
                let (c, t, f) =
                    (self.expr(DType::BOOL, d), self.expr(dtype, d), self.expr(dtype, d));
                if self.chance(2) { Expr::select(c, t, f) } else { Expr::if_then_else(c, t, f) }
            }
            2 => {
                let from = self.any_type();
                Expr::cast_node(self.expr(from, d), dtype)
            }
            3 => self.load(dtype, d).unwrap_or_else(|| self.constant(dtype)),
            4 => {
                let ty = self.any_type();
                let value = self.expr(ty, d);
                let var = Var::new(self.name(), ty);
                self.vars.push(var.clone());
                let body = self.expr(dtype, d);
                self.vars.pop();
                Expr::let_in(var, value, body)
            }
            5 => self.call(dtype, d),
            _ => self.arithmetic(dtype, d),
        }
    }

    fn arithmetic(&mut self, dtype: DType, d: usize) -> Expr {
        use BinOp::*;
        if dtype.is_bool() {
            return match self.pick(5) {
                0 => {
                    let ty = self.any_type();
                    let op = if ty.is_bool() {
                        self.of(&[Eq, Ne])
                    } else {
                        self.of(&[Lt, Le, Eq, Ne, Gt, Ge])
                    };
                    Expr::binary(op, self.expr(ty, d), self.expr(ty, d))
                }
                1 => Expr::not_node(self.expr(dtype, d)),
                2 => Expr::intrin(Intrin::Likely, vec![self.expr(dtype, d)]),
                3 => {
                    let ty = self.of(FLOATS);
                    Expr::intrin(self.of(&[Intrin::IsNan, Intrin::IsInf]), vec![self.expr(ty, d)])
                }
                _ => Expr::binary(self.of(&[And, Or]), self.expr(dtype, d), self.expr(dtype, d)),
            };
        }
        if self.chance(4) {
            let op = if dtype.is_float() {
                self.of(&[Intrin::Exp, Intrin::Sqrt, Intrin::Pow, Intrin::Tanh, Intrin::Atan2])
            } else {
                self.of(&[Intrin::BitAnd, Intrin::Shl, Intrin::Abs, Intrin::BitNot, Intrin::Pow])
            };
            let args = (0..op.arity()).map(|_| self.expr(dtype, d)).collect();
            return Expr::intrin(op, args);
        }
        let ops = if dtype.is_float() {
            [Add, Sub, Mul, Div, Min, Max, Add, Add]
        } else {
            [Add, Sub, Mul, FloorDiv, FloorMod, TruncDiv, TruncMod, Max]
        };
        Expr::binary(self.of(&ops), self.expr(dtype, d), self.expr(dtype, d))
    }

    fn call(&mut self, dtype: DType, d: usize) -> Expr {
        let name = self.name();
        let n = self.pick(3);
        let mut args: Vec<Expr> = Vec::new();
        for _ in 0..n {
            args.push(match self.pick(5) {
                0 => Expr::str(self.name()),
                1 if !self.buffers.is_empty() => {
                    let buffers = self.buffers.clone();
                    self.of(&buffers).data.expr()
                }
                2 => Expr::broadcast(self.expr(DType::F32, d), 4),
                _ => {
                    let ty = self.any_type();
                    self.expr(ty, d)
                }
            });
        }
        let target = if self.chance(2) {
            CallTarget::Extern(name.into())
        } else {
            CallTarget::Opaque(self.of(&["ret", "vscale", name, "min"]).into())
        };
        Expr::call(target, args, dtype)
    }

    fn indices(&mut self, b: &Buffer, depth: usize) -> Vec<Expr> {
        let before = std::mem::replace(&mut self.undef, false);
        let mut out = Vec::new();
        for _ in 0..b.rank() {
            let ty = self.int_type();
            out.push(self.expr(ty, depth.min(2)));
        }
        self.undef = before;
        out
    }

    fn load(&mut self, dtype: DType, depth: usize) -> Option<Expr> {
        let fit: Vec<Buffer> =
            self.buffers.iter().filter(|b| b.dtype() == dtype).cloned().collect();
        if fit.is_empty() {
            return None;
        }
        let b = self.of(&fit);
        let indices = self.indices(&b, depth);
        Some(Expr::load(&b, indices))
    }

    /// An extent; not negative where it is a constant.
    fn extent(&mut self, dtype: DType) -> Expr {
        let before = std::mem::replace(&mut self.undef, false);
        let e = if self.chance(4) { self.expr(dtype, 2) } else { self.small(dtype) };
        self.undef = before;
        match e.as_int() {
            Some(v) if v < 0 => Expr::int(3, dtype),
            _ => e,
        }
    }

    fn range(&mut self, dtype: DType) -> Range {
        let before = std::mem::replace(&mut self.undef, false);
        let min = match self.pick(4) {
            0 => self.expr(dtype, 2),
            1 => self.constant(dtype),
            _ => Expr::int(0, dtype),
        };
        let extent = if self.chance(4) { self.constant(dtype) } else { self.extent(dtype) };
        self.undef = before;
        Range { min, extent }
    }

    /// What a buffer may say besides shape and type.
    fn details(&mut self, b: Buffer) -> Buffer {
        if self.chance(2) {
            return b;
        }
        let strides = if self.chance(3) {
            (0..b.rank()).map(|_| self.small(DType::I32)).collect()
        } else {
            Vec::new()
        };
        let offset = self.chance(4).then(|| self.small(DType::I32));
        let (align, factor) = (self.of(&[0, 64, 128]), self.of(&[0, 1, 16]));
        let scope = self.of(&["global", "local", "shared.dyn", "a \"scope\""]);
        let rank = b.rank();
        let separators = if self.chance(3) { vec![self.pick(rank + 1)] } else { Vec::new() };
        b.derive(|d| {
            d.strides = strides;
            d.elem_offset = offset;
            d.align = align;
            d.offset_factor = factor;
            d.scope = scope.into();
            d.axis_separators = separators;
        })
    }

    fn new_buffer(&mut self) -> Buffer {
        let rank = self.pick(4);
        let ty = self.int_type();
        let shape = (0..rank).map(|_| self.extent(ty)).collect();
        let dtype = self.any_type();
        let b = Buffer::new(self.name(), shape, dtype);
        self.details(b)
    }

    fn attr(&mut self, depth: usize) -> Attr {
        match self.pick(if depth == 0 { 6 } else { 9 }) {
            0 => Attr::Int(self.of(&[0, -1, i64::MAX, i64::MIN])),
            1 => Attr::Bool(self.chance(2)),
            2 => Attr::Str(self.name().into()),
            3 => Attr::Float(self.of(&[0.0, -0.0, 0.1, 1e300, f64::INFINITY, f64::NAN])),
            4 => Attr::None,
            5 => {
                let ty = self.any_type();
                Attr::Expr(self.expr(ty, 1))
            }
            6 => Attr::Map(self.attrs(depth - 1)),
            _ => Attr::List((0..self.pick(3)).map(|_| self.attr(depth - 1)).collect()),
        }
    }

    fn attrs(&mut self, depth: usize) -> Attrs {
        let n = self.pick(3);
        (0..n).map(|_| (self.name().into(), self.attr(depth))).collect()
    }

    fn loop_attrs(&mut self) -> Attrs {
        if self.chance(4) { self.attrs(1) } else { Attrs::new() }
    }

    fn stmts(&mut self, depth: usize) -> Stmt {
        let n = self.pick(4);
        let mut flat = Vec::new();
        for _ in 0..=n {
            let s = self.stmt(depth);
            match s.kind() {
                StmtKind::Seq(inner) => flat.extend(inner.iter().cloned()),
                _ => flat.push(s),
            }
        }
        match flat.len() {
            1 => flat.swap_remove(0),
            _ => Stmt::new(StmtKind::Seq(flat)),
        }
    }

    /// Statements in which `buffer` is known.
    fn with_buffer(&mut self, buffer: &Buffer, depth: usize) -> Stmt {
        self.buffers.push(buffer.clone());
        let body = self.stmts(depth);
        self.buffers.pop();
        body
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        if depth == 0 || self.chance(3) {
            return self.leaf();
        }
        let d = depth - 1;
        match self.pick(7) {
            0 => {
                let ty = self.int_type();
                let range = self.range(ty);
                let var = Var::new(self.name(), ty);
                let kinds = [
                    ForKind::Serial,
                    ForKind::Serial,
                    ForKind::Parallel,
                    ForKind::Vectorized,
                    ForKind::Unrolled,
                    ForKind::ThreadBinding("threadIdx.x".into()),
                ];
                let kind = self.of(&kinds);
                let annotations = self.loop_attrs();
                self.vars.push(var.clone());
                self.loops.push((var.clone(), range.clone()));
                let body = self.stmts(d);
                self.loops.pop();
                self.vars.pop();
                Stmt::new(StmtKind::For { var, range, kind, annotations, body })
            }
            1 => {
                let cond = self.expr(DType::BOOL, 2);
                let then = self.stmts(d);
                let otherwise = self.chance(2).then(|| self.stmts(d));
                Stmt::new(StmtKind::If { cond, then, otherwise })
            }
            2 => {
                let ty = self.any_type();
                let value = self.expr(ty, 2);
                let var = Var::new(self.name(), ty);
                self.vars.push(var.clone());
                let body = self.stmts(d);
                self.vars.pop();
                Stmt::let_in(&var, value, body)
            }
            3 => {
                let buffer = self.new_buffer();
                let annotations = self.loop_attrs();
                let body = self.with_buffer(&buffer, d);
                Stmt::new(StmtKind::Allocate { buffer, annotations, body })
            }
            4 if !self.buffers.is_empty() => {
                let owners = self.buffers.clone();
                let owner = self.of(&owners);
                let pointer = if self.chance(2) {
                    Var::new(self.name(), DType::HANDLE)
                } else {
                    owner.data.clone()
                };
                let buffer = self.new_buffer().derive(|b| b.data = pointer.clone());
                let body = self.with_buffer(&buffer, d);
                let view = Stmt::new(StmtKind::Declare { buffer, body });
                if pointer == owner.data {
                    view
                } else {
                    Stmt::let_in(&pointer, owner.data.expr(), view)
                }
            }
            _ => self.block(d),
        }
    }

    fn leaf(&mut self) -> Stmt {
        if self.buffers.is_empty() {
            return Stmt::nop();
        }
        let buffers = self.buffers.clone();
        match self.pick(8) {
            0 => Stmt::new(StmtKind::Assume(self.expr(DType::BOOL, 2))),
            1 => {
                let cond = self.expr(DType::BOOL, 2);
                Stmt::assert(cond, self.name())
            }
            2 => {
                let value = match self.pick(3) {
                    0 => Expr::int(self.pick(3) as i64, DType::I32),
                    1 => self.call(DType::HANDLE, 1),
                    _ => self.call(DType::VOID, 1),
                };
                Stmt::new(StmtKind::Evaluate(value))
            }
            3 => {
                // A vector of elements.
                let b = self.of(&buffers);
                let mut indices = self.indices(&b, 1);
                let lanes = 4;
                match indices.pop() {
                    Some(last) => {
                        let stride = self.small(last.dtype());
                        indices.push(Expr::ramp(last, stride, lanes));
                        let value = self.expr(b.dtype(), 1);
                        Stmt::store(&b, indices, Expr::broadcast(value, lanes))
                    }
                    None => Stmt::store(&b, indices, self.expr(b.dtype(), 1)),
                }
            }
            _ => {
                let b = self.of(&buffers);
                let indices = self.indices(&b, 2);
                self.undef = true;
                let value = self.expr(b.dtype(), 3);
                self.undef = false;
                Stmt::store(&b, indices, value)
            }
        }
    }

    fn region(&mut self, b: &Buffer) -> Region {
        let ranges = (0..b.rank())
            .map(|_| {
                if self.chance(2) {
                    Range::point(self.expr(DType::I32, 1))
                } else {
                    let ty = self.int_type();
                    self.range(ty)
                }
            })
            .collect();
        Region { buffer: b.clone(), ranges }
    }

    fn regions(&mut self) -> Option<Vec<Region>> {
        let buffers = self.buffers.clone();
        if buffers.is_empty() || self.chance(2) {
            return None;
        }
        let n = self.pick(3);
        Some(
            (0..n)
                .map(|_| {
                    let b = self.of(&buffers);
                    self.region(&b)
                })
                .collect(),
        )
    }

    fn block(&mut self, d: usize) -> Stmt {
        let mut block = Block::new(self.of(&["b", "root", "x\"y", "B"]), Stmt::nop());
        let mut bindings = Vec::new();
        let predicate = if self.chance(3) { self.expr(DType::BOOL, 2) } else { Expr::bool(true) };
        let kinds = [IterKind::Spatial, IterKind::Reduce, IterKind::Opaque];
        for _ in 0..self.pick(4) {
            let loops = self.loops.clone();
            let (domain, binding) = if loops.is_empty() || self.chance(3) {
                let ty = self.int_type();
                (self.range(ty), self.expr(ty, 1))
            } else {
                let (var, range) = self.of(&loops);
                (range, var.expr())
            };
            let var = Var::new(self.name(), domain.min.dtype());
            block.iters.push(IterVar { var, domain, kind: self.of(&kinds) });
            bindings.push(binding);
        }
        let (vars, buffers) = (self.vars.len(), self.buffers.len());
        let iters: Vec<Var> = block.iters.iter().map(|i| i.var.clone()).collect();
        self.vars.extend(iters);
        for _ in 0..self.pick(3) {
            let b = self.new_buffer();
            self.buffers.push(b.clone());
            block.allocs.push(b);
        }
        if self.chance(3) && !self.buffers.is_empty() {
            let sources = self.buffers.clone();
            let source = self.of(&sources);
            let source = self.region(&source);
            let shape = source.ranges.iter().map(|r| match r.extent.as_int() {
                Some(v) if v < 0 => Expr::int(1, r.extent.dtype()),
                _ => r.extent.clone(),
            });
            let shape: Vec<Expr> = shape.collect();
            let negative = source.ranges.iter().any(|r| r.extent.as_int().is_some_and(|v| v < 0));
            if !negative {
                let view = Buffer::new(self.name(), shape, source.buffer.dtype());
                let offset = self.chance(2).then(|| Var::index("off").expr());
                let shared = self.chance(3).then(|| source.buffer.data.clone());
                let view = view.derive(|v| {
                    v.elem_offset = offset.clone();
                    v.data = shared.unwrap_or_else(|| v.data.clone());
                });
                if let Some(v) = offset.as_ref().and_then(Expr::as_var) {
                    self.vars.push(v.clone());
                }
                self.buffers.push(view.clone());
                block.matches.push(MatchRegion { buffer: view, source });
            }
        }
        block.reads = self.regions();
        block.writes = self.regions();
        block.annotations = self.loop_attrs();
        block.init = self.chance(3).then(|| self.stmts(d.min(1)));
        block.body = self.stmts(d);
        self.vars.truncate(vars);
        self.buffers.truncate(buffers);
        Stmt::block(bindings, predicate, block)
    }

    fn tensor_func(&mut self) -> TensorFunc {
        let mut params = Vec::new();
        for _ in 0..self.pick(3) {
            let ty = if self.chance(8) { DType::HANDLE } else { self.any_type() };
            let var = Var::new(self.name(), ty);
            if ty != DType::HANDLE {
                self.vars.push(var.clone());
            }
            params.push(Param::Scalar(var));
        }
        let dims: Vec<Var> = (0..self.pick(3))
            .map(|_| Var::new(self.name(), self.of(&[DType::I32, DType::I64])))
            .collect();
        let mut unbound = dims.clone();
        let mut buffers = Vec::new();
        for _ in 0..=self.pick(3) {
            let mut b = self.new_buffer();
            if let Some(n) = unbound.pop() {
                // The extent that binds the variable stands alone.
                b = b.derive(|b| {
                    b.shape = vec![n.expr(), n.expr()];
                    b.strides.clear();
                    b.axis_separators.clear();
                });
                self.vars.push(n);
            }
            buffers.push(b.clone());
            let handle = Var::new(self.name(), DType::HANDLE);
            params.insert(self.pick(params.len() + 1), Param::Buffer { handle, buffer: b });
        }
        self.buffers = buffers;
        let body = self.stmts(4);
        let mut f = TensorFunc::new(params, body);
        if f.root().is_none() && self.chance(3) {
            let allocs = (0..self.pick(3)).map(|_| self.new_buffer()).collect();
            f = f.with_root(allocs, f.body.clone());
        }
        f.attrs = self.attrs(2);
        f.private = self.chance(3);
        f.ret = self.chance(5).then(|| self.of(&[DType::I32, DType::F32]));
        f
    }

    fn module(&mut self) -> Module {
        let mut m = Module::new();
        for _ in 0..self.pick(3) {
            let f = self.tensor_func();
            self.vars.clear();
            self.buffers.clear();
            self.loops.clear();
            m.insert(self.name(), f);
        }
        if self.chance(2) {
            let copy = m.fresh_name(self.name());
            let (x, y) = (
                Buffer::with_extents("x", &[4], DType::F32),
                Buffer::with_extents("y", &[4], DType::F32),
            );
            let i = Var::index("i");
            let body = Stmt::store(&y, vec![i.expr()], x.load([i.expr()]));
            let body = Stmt::serial(&i, Expr::i32(4), body);
            let f = TensorFunc::new(vec![Param::tensor(&x), Param::tensor(&y)], body);
            m.insert(copy.clone(), f);
            let g = self.graph_func(&copy);
            let name = m.fresh_name(self.name());
            m.insert(name, g);
        }
        if self.chance(4) {
            m.attrs = self.attrs(2);
        }
        m
    }
}

/// Every statement knows its place.
struct Places(usize);

impl Visit for Places {
    fn stmt(&mut self, s: &Stmt) {
        self.0 += usize::from(s.span().is_none());
        walk_stmt(self, s);
    }
}

fn check(bytes: &[u8]) {
    let mut g = Gen {
        bytes,
        at: 0,
        vars: Vec::new(),
        buffers: Vec::new(),
        loops: Vec::new(),
        undef: false,
    };
    let module = g.module();
    if let Err(e) = well_formed::check_module(&module) {
        panic!("the generator is wrong: {}\n{}", e.render(), print_module(&module));
    }
    let text = print_module(&module);
    let same = |again: Module, text: &str| {
        if let Err(d) = equal::modules(&module, &again, &equal::Equality::default()) {
            panic!("{d}\n{text}");
        }
        for (name, f) in &module.functions {
            if let (Function::Graph(f), Some(Function::Graph(g))) = (f, again.functions.get(name)) {
                let names = |f: &GraphFunc| -> Vec<String> {
                    f.params.iter().map(|p| p.name().to_string()).collect()
                };
                assert_eq!(names(f), names(g), "{text}");
            }
            if let (Function::Tensor(f), Some(Function::Tensor(g))) = (f, again.functions.get(name))
            {
                let names = |f: &TensorFunc| -> Vec<String> {
                    f.buffers().map(|b| b.name.to_string()).collect()
                };
                assert_eq!(names(f), names(g), "{text}");
                let mut places = Places(0);
                places.stmt(&g.body);
                assert_eq!(places.0, 0, "statements without a place\n{text}");
            }
        }
    };
    match parse_module(&Source::new("printed", text.clone())) {
        Ok(again) => same(again, &text),
        Err(e) => panic!("{}\n{text}", e.render()),
    }
    let mut table = ConstTable::new();
    let text = print_module_with(&module, &mut table);
    match parse_module_with(&Source::new("printed", text.clone()), &table) {
        Ok(again) => same(again, &text),
        Err(e) => panic!("{}\n{text}", e.render()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn printed_modules_read_back(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
        check(&bytes);
    }
}
