//! Loops, conditions and bindings: generated code against the interpreter, written out and at random.

use std::sync::Arc;

use crate::common::*;
use proptest::prelude::*;
use tilewright_codegen::llvm::Llvm;
use tilewright_ir::{
    Attr, Attrs, BinOp, Buffer, DType, Expr, ForKind, Intrin, Range, Stmt, StmtKind, TensorFunc,
    Var,
};

fn int(n: i32) -> Expr {
    Expr::i32(n)
}

fn annotated(var: &Var, extent: i32, annotations: &[(&str, Attr)], body: Stmt) -> Stmt {
    let annotations: Attrs = annotations.iter().map(|(k, v)| (Arc::from(*k), v.clone())).collect();
    let range = Range::upto(int(extent));
    Stmt::new(StmtKind::For { var: var.clone(), range, kind: ForKind::Serial, annotations, body })
}

#[test]
fn extents_and_bounds_of_every_kind() {
    let o = buffer("O", &[64], DType::I64);
    for dtype in [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32, DType::U64]
    {
        for (min, extent) in [(0, 0), (0, 1), (5, 1), (3, 7), (0, 64), (63, 1)] {
            let i = Var::new("i", dtype);
            let range = Range { min: Expr::int(min, dtype), extent: Expr::int(extent, dtype) };
            let value = Expr::cast_node(i.expr(), DType::I64);
            let value = if dtype == DType::I64 { i.expr() } else { value };
            for kind in [ForKind::Serial, ForKind::Parallel, ForKind::Unrolled, ForKind::Vectorized]
            {
                let body = Stmt::store(&o, vec![i.expr()], value.clone() * 3);
                let f = func(&[&o], Stmt::for_loop(&i, range.clone(), kind, body));
                compare(&f, &arguments(&f, 1));
            }
        }
    }
}

#[test]
fn bounds_that_depend_on_outer_loops_and_on_memory() {
    let (o, n) = (buffer("O", &[12, 12], DType::I32), buffer("N", &[12], DType::I32));
    let (i, j) = (Var::index("i"), Var::index("j"));
    // From i - 3, which may be negative, for N[i] iterations, of which some are none.
    let range = Range { min: &i - 3, extent: n.load([i.expr()]).min(9) };
    let store = Stmt::store(&o, vec![i.expr(), j.expr().max(0)], &j * 2 + &i);
    let inner = Stmt::for_loop(&j, range, ForKind::Serial, store);
    // The bound is read before the loop, and once.
    let clear = Stmt::store(&n, vec![i.expr()], int(0));
    let body = Stmt::seq([inner, clear]);
    let f = func(&[&o, &n], Stmt::serial(&i, int(12), body));
    compare(&f, &arguments(&f, 4));
}

#[test]
fn what_a_loop_changes_is_read_again_in_it() {
    let o = buffer("O", &[8], DType::F32);
    let i = Var::index("i");
    let first = o.load([int(0)]);
    let step = Stmt::store(&o, vec![int(0)], first.clone() + 1.0);
    let take = Stmt::store(&o, vec![i.expr()], first.clone());
    let body = Stmt::seq([
        Stmt::store(&o, vec![int(7)], first),
        Stmt::for_loop(
            &i,
            Range { min: int(1), extent: int(6) },
            ForKind::Serial,
            Stmt::seq([step, take]),
        ),
    ]);
    let f = func(&[&o], body);
    compare(&f, &arguments(&f, 2));
}

#[test]
fn annotations_reach_llvm_and_keep_the_result() {
    let (a, s) = (buffer("A", &[100], DType::F32), buffer("S", &[1], DType::F32));
    let i = Var::index("i");
    let sum = || Stmt::store(&s, vec![int(0)], s.load([int(0)]) + a.load([i.expr()]));
    let cases: [(&str, Attr, &str); 7] = [
        ("pragma_no_unroll", Attr::Int(1), "llvm.loop.unroll.disable"),
        ("pragma_unroll_count", Attr::Int(3), "llvm.loop.unroll.count\", i32 3"),
        ("pragma_vectorize", Attr::Bool(true), "llvm.loop.vectorize.enable\", i1 true"),
        ("pragma_vectorize", Attr::Int(8), "llvm.loop.vectorize.width\", i32 8"),
        ("pragma_vectorize", Attr::Int(0), "llvm.loop.vectorize.enable\", i1 false"),
        ("pragma_reassoc", Attr::Int(1), "fadd reassoc contract"),
        ("pragma_reassoc", Attr::Expr(int(1)), "fadd reassoc contract"),
    ];
    for (key, value, mark) in cases {
        let f = func(&[&a, &s], annotated(&i, 100, &[(key, value)], sum()));
        let text = ir(&f, &baseline()).expect("it is lowered");
        assert!(text.contains(mark), "{key}: {text}");
        compare(&f, &arguments(&f, 3));
    }
    for (key, value) in [("pragma_reassoc", Attr::Int(0)), ("other", Attr::Str("x".into()))] {
        let f = func(&[&a, &s], annotated(&i, 100, &[(key, value)], sum()));
        let text = ir(&f, &baseline()).expect("it is lowered");
        assert!(!text.contains("reassoc") && !text.contains("llvm.loop"), "{text}");
    }
    // Only the sum that accumulates, and only below the loop.
    let other = Stmt::store(&s, vec![int(0)], a.load([int(1)]) + a.load([i.expr()]));
    let f = func(&[&a, &s], annotated(&i, 100, &[("pragma_reassoc", Attr::Int(1))], other));
    assert!(!ir(&f, &baseline()).expect("it is lowered").contains("reassoc"));
    let unrolled = Stmt::for_loop(&i, Range::upto(int(4)), ForKind::Unrolled, sum());
    let text = ir(&func(&[&a, &s], unrolled), &baseline()).expect("it is lowered");
    assert!(text.contains("llvm.loop.unroll.full"), "{text}");
}

#[test]
fn only_what_accumulates_is_contracted() {
    let [a, b, c] = ["A", "B", "C"].map(|name| buffer(name, &[64], DType::F32));
    let i = Var::index("i");
    let at = || vec![i.expr()];
    let product = || a.load(at()) * b.load(at());
    let nest =
        |value: Expr| func(&[&a, &b, &c], Stmt::serial(&i, int(64), Stmt::store(&c, at(), value)));
    let text = |f: &TensorFunc| ir(f, &baseline()).expect("it is lowered");
    let sum = nest(c.load(at()) + product());
    assert!(text(&sum).contains("fadd contract") && text(&sum).contains("fmul contract"));
    compare(&sum, &arguments(&sum, 8));
    let difference = nest(product() - product());
    assert!(!text(&difference).contains("contract"));
    compare_within(&difference, &arguments(&difference, 8), 0.0);
}

#[test]
fn a_division_that_could_trap_is_not_left_to_the_vectoriser() {
    // In the second half of the loop, an element of B at a place that is the same for every
    // iteration and takes a division to compute; LLVM 22 computed it only if the first of a
    // vector's lanes was in that half.
    for dtype in [DType::I8, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64] {
        let (p, b) = (buffer("P", &[4], dtype), buffer("B", &[3, 7], DType::F32));
        let c = buffer("C", &[64], DType::F32);
        let (i, j) = (Var::index("i"), Var::index("j"));
        let at = |k: i64| p.load([(&i + k).floormod(4)]);
        let divisor = Expr::intrin(Intrin::BitOr, vec![at(1), Expr::int(1, dtype)]);
        let rest = Expr::binary(BinOp::TruncMod, at(0), divisor);
        let row = Expr::binary(BinOp::FloorMod, rest, Expr::int(3, dtype));
        let value = Expr::if_then_else(
            j.expr().greater(&i * 5),
            b.load([row.cast(DType::I32), j.expr().floormod(7)]),
            Expr::float(1.0, DType::F32),
        );
        let body =
            Stmt::serial(&j, int(64), Stmt::store(&c, vec![j.expr()], value + c.load([j.expr()])));
        let f = func(&[&p, &b, &c], Stmt::serial(&i, int(11), body));
        compare(&f, &arguments(&f, 9));
        let text = ir(&f, &baseline()).expect("it is lowered");
        let (_, body) = text.split_once("@tw_k_f.impl(").expect("the function");
        let divides = |l: &&str| ["div i", "rem i"].iter().any(|op| l.contains(op));
        let variable = |l: &&str| l.rsplit(", ").next().is_some_and(|b| b.starts_with('%'));
        assert_eq!(body.lines().filter(divides).find(variable), None);
    }
}

#[test]
fn a_tile_of_accumulators_lives_in_registers() {
    // C[8, 16] = A[k, 8] * B[k, 16] through a local tile, unrolled, one vector a row.
    let (kk, rows, n) = (50, 8, 16u16);
    let (a, b) = (buffer("A", &[kk, rows], DType::F32), buffer("B", &[kk, 16], DType::F32));
    let c = buffer("C", &[rows, 16], DType::F32);
    let t = buffer("T", &[rows, 16], DType::F32).derive_storage(|d| d.scope = "local".into());
    let row = |v: &Var| vec![v.expr(), Expr::ramp(int(0), int(1), n)];
    let unrolled =
        |v: &Var, body| Stmt::for_loop(v, Range::upto(int(rows as i32)), ForKind::Unrolled, body);
    let [i, j, l, k] = ["i", "j", "l", "k"].map(Var::index);
    let zero = Expr::broadcast(Expr::float(0.0, DType::F32), n);
    let product =
        Expr::binary(BinOp::Mul, Expr::broadcast(a.load([k.expr(), j.expr()]), n), b.load(row(&k)));
    let sum = Expr::binary(BinOp::Add, t.load(row(&j)), product);
    let main = annotated(
        &k,
        kk as i32,
        &[("pragma_no_unroll", Attr::Int(1))],
        unrolled(&j, Stmt::store(&t, row(&j), sum)),
    );
    let body = Stmt::seq([
        unrolled(&i, Stmt::store(&t, row(&i), zero)),
        main,
        unrolled(&l, Stmt::store(&c, row(&l), t.load(row(&l)))),
    ]);
    let f = func(&[&a, &b, &c], Stmt::allocate(&t, body));
    compare(&f, &arguments(&f, 6));
    let llvm = Llvm::get().expect("an LLVM");
    let text = ir(&f, &llvm.host()).expect("it is lowered");
    let optimised = llvm.compile(
        &text,
        &llvm.host(),
        Default::default(),
        tilewright_codegen::llvm::Emit::OptimizedIr,
    );
    let optimised = String::from_utf8(optimised.expect("it compiles")).expect("text");
    assert!(!optimised.contains("alloca"), "{optimised}");
    assert_eq!(optimised.matches("phi <16 x float>").count(), 8, "{optimised}");
}

/// Random functions. Values are such that floating-point arithmetic is exact, so that contraction
/// changes nothing.
struct Random {
    state: u64,
    ints: Buffer,
    floats: Buffer,
}

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.state >> 33) % n
    }

    fn index(&mut self, extent: i64, vars: &[Var]) -> Expr {
        Expr::binary(BinOp::FloorMod, self.int(2, vars), Expr::int(extent, DType::I32))
    }

    fn element(&mut self, b: &Buffer, vars: &[Var]) -> Expr {
        let shape = b.const_shape().expect("constant");
        let at: Vec<Expr> = shape.iter().map(|&d| self.index(d, vars)).collect();
        b.load(at)
    }

    fn int(&mut self, depth: u32, vars: &[Var]) -> Expr {
        if depth == 0 || self.below(8) == 0 {
            return match self.below(3) {
                0 => Expr::int(self.below(40) as i64 - 15, DType::I32),
                _ if !vars.is_empty() => vars[self.below(vars.len() as u64) as usize].expr(),
                _ => Expr::int(3, DType::I32),
            };
        }
        let op = match self.below(18) {
            0..3 => BinOp::Add,
            3..5 => BinOp::Sub,
            5..7 => BinOp::Mul,
            7 => BinOp::Min,
            8 => BinOp::Max,
            9..12 => {
                let op = [BinOp::FloorDiv, BinOp::FloorMod, BinOp::TruncDiv, BinOp::TruncMod];
                let op = op[self.below(4) as usize];
                let a = self.int(depth - 1, vars);
                let b = match self.below(3) {
                    0 => Expr::int([1, 2, 3, 8, 16, -1, -5, 7][self.below(8) as usize], DType::I32),
                    // Never zero, but that takes a look.
                    1 => Expr::binary(BinOp::Max, self.int(depth - 1, vars), int(1)),
                    _ => Expr::intrin(Intrin::BitOr, vec![self.int(depth - 1, vars), int(1)]),
                };
                return Expr::binary(op, a, b);
            }
            12 => {
                let cond = self.cond(depth - 1, vars);
                return Expr::select(cond, self.int(depth - 1, vars), self.int(depth - 1, vars));
            }
            13 => {
                let cond = self.cond(depth - 1, vars);
                return Expr::if_then_else(
                    cond,
                    self.int(depth - 1, vars),
                    self.int(depth - 1, vars),
                );
            }
            14 => {
                let ints = self.ints.clone();
                return self.element(&ints, vars);
            }
            15 => {
                let types = [
                    DType::I8,
                    DType::U8,
                    DType::I16,
                    DType::U16,
                    DType::I64,
                    DType::U32,
                    DType::BOOL,
                ];
                let to = types[self.below(7) as usize];
                return Expr::cast_node(Expr::cast_node(self.int(depth - 1, vars), to), DType::I32);
            }
            16 => {
                let v = Var::index("v");
                let value = self.int(depth - 1, vars);
                let mut inner = vars.to_vec();
                inner.push(v.clone());
                return Expr::let_in(v, value, self.int(depth - 1, &inner));
            }
            _ => {
                let ops = [Intrin::BitAnd, Intrin::BitXor, Intrin::BitOr];
                let op = ops[self.below(3) as usize];
                return Expr::intrin(
                    op,
                    vec![self.int(depth - 1, vars), self.int(depth - 1, vars)],
                );
            }
        };
        Expr::binary(op, self.int(depth - 1, vars), self.int(depth - 1, vars))
    }

    fn cond(&mut self, depth: u32, vars: &[Var]) -> Expr {
        match self.below(8) {
            0 if depth > 0 => {
                Expr::binary(BinOp::And, self.cond(depth - 1, vars), self.cond(depth - 1, vars))
            }
            1 if depth > 0 => {
                Expr::binary(BinOp::Or, self.cond(depth - 1, vars), self.cond(depth - 1, vars))
            }
            2 if depth > 0 => Expr::not_node(self.cond(depth - 1, vars)),
            3 if depth > 0 => {
                let (a, b) = (self.float(depth - 1, vars), self.float(depth - 1, vars));
                Expr::binary(BinOp::Lt, a, b)
            }
            n => {
                let ops = [BinOp::Eq, BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge];
                Expr::binary(
                    ops[n as usize % 6],
                    self.int(depth.min(1), vars),
                    self.int(depth.min(1), vars),
                )
            }
        }
    }

    fn float(&mut self, depth: u32, vars: &[Var]) -> Expr {
        if depth == 0 || self.below(6) == 0 {
            let floats = self.floats.clone();
            return match self.below(3) {
                0 => Expr::float(self.below(33) as f64 / 8.0 - 2.0, DType::F32),
                _ => self.element(&floats, vars),
            };
        }
        let op = match self.below(10) {
            0..3 => BinOp::Add,
            3 => BinOp::Sub,
            4..6 => BinOp::Mul,
            6 => BinOp::Max,
            7 => BinOp::Min,
            8 => {
                let cond = self.cond(depth - 1, vars);
                return Expr::if_then_else(
                    cond,
                    self.float(depth - 1, vars),
                    self.float(depth - 1, vars),
                );
            }
            _ => {
                let small = Expr::binary(BinOp::FloorMod, self.int(depth - 1, vars), int(9));
                return Expr::cast_node(small, DType::F32);
            }
        };
        Expr::binary(op, self.float(depth - 1, vars), self.float(depth - 1, vars))
    }

    /// A nest around stores to two outputs; the first axis of each belongs to the outermost loop.
    fn nest(&mut self, outs: [&Buffer; 2]) -> Stmt {
        let outer = Var::index("i");
        let extent = outs[0].const_shape().expect("constant")[0];
        let body = self.body(outs, &mut vec![outer.clone()], 2);
        let kinds = [ForKind::Serial, ForKind::Parallel, ForKind::Unrolled];
        let kind = kinds[self.below(3) as usize].clone();
        Stmt::for_loop(&outer, Range::upto(Expr::int(extent, DType::I32)), kind, body)
    }

    fn body(&mut self, outs: [&Buffer; 2], vars: &mut Vec<Var>, depth: u32) -> Stmt {
        let choice = self.below(6);
        if depth == 0 || choice == 0 {
            let out = outs[self.below(2) as usize];
            let shape = out.const_shape().expect("constant");
            let at = vec![vars[0].expr(), self.index(shape[1], vars)];
            let value =
                if out.dtype() == DType::F32 { self.float(3, vars) } else { self.int(4, vars) };
            // Sometimes what is there already takes part.
            let value = match self.below(3) {
                0 => Expr::binary(BinOp::Max, out.load(at.clone()), value),
                _ => value,
            };
            return Stmt::store(out, at, value);
        }
        match choice {
            1 => Stmt::seq([self.body(outs, vars, depth - 1), self.body(outs, vars, depth - 1)]),
            2 => {
                let cond = self.cond(2, vars);
                let then = self.body(outs, vars, depth - 1);
                match self.below(2) {
                    0 => Stmt::guard(cond, then),
                    _ => Stmt::if_else(cond, then, self.body(outs, vars, depth - 1)),
                }
            }
            3 => {
                let v = Var::index("x");
                let value = self.int(2, vars);
                vars.push(v.clone());
                let body = self.body(outs, vars, depth - 1);
                vars.pop();
                Stmt::let_in(&v, value, body)
            }
            _ => {
                let v = Var::index("j");
                let min = Expr::int(self.below(7) as i64 - 3, DType::I32);
                let extent = match self.below(3) {
                    0 => Expr::binary(BinOp::Min, self.int(1, vars), int(6)),
                    _ => Expr::int(1 + self.below(6) as i64, DType::I32),
                };
                let kinds = [ForKind::Serial, ForKind::Unrolled, ForKind::Parallel];
                let kind = match kinds[self.below(3) as usize].clone() {
                    // Several iterations may store to one place.
                    ForKind::Parallel => ForKind::Serial,
                    kind => kind,
                };
                vars.push(v.clone());
                let body = self.body(outs, vars, depth - 1);
                vars.pop();
                Stmt::for_loop(&v, Range { min, extent }, kind, body)
            }
        }
    }
}

fn random_function(seed: u64) -> TensorFunc {
    let ints = buffer("I", &[3, 7], DType::I32);
    let floats = buffer("F", &[5, 6], DType::F32);
    let mut r = Random { state: seed, ints: ints.clone(), floats: floats.clone() };
    let rows = 1 + r.below(9) as i64;
    let x = buffer("X", &[rows, 1 + r.below(6) as i64], DType::F32);
    let y = buffer("Y", &[rows, 1 + r.below(6) as i64], DType::I32);
    let nests: Vec<Stmt> = (0..1 + r.below(3)).map(|_| r.nest([&x, &y])).collect();
    func(&[&ints, &floats, &x, &y], Stmt::seq(nests))
}

/// Number of random functions; more with the environment variable `TILEWRIGHT_FUZZ_ITERS`.
fn cases() -> u32 {
    std::env::var("TILEWRIGHT_FUZZ_ITERS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_functions_give_what_the_interpreter_gives(seed in any::<u64>()) {
        let f = random_function(seed);
        compare(&f, &arguments(&f, seed % 100));
    }
}

/// `B[row, 0:rows] = f(A[0:rows, row])` for all rows of a square of `dtype`, which lies behind others.
fn across(rows: i32, dtype: DType, value: impl Fn(Expr) -> Expr) -> TensorFunc {
    let (a, b) = (buffer("A", &[400], dtype), buffer("B", &[400], dtype));
    let (j, o) = (Var::index("j"), Var::index("o"));
    let ramp = |base: Expr, step: i32| Expr::ramp(base, int(step), rows as u16);
    let read = a.load([ramp(&o * 3 + &j + 5, rows + 7)]);
    let store = Stmt::store(&b, vec![ramp(&j * i64::from(rows) + &o, 1)], value(read));
    let inner = Stmt::for_loop(&j, Range::upto(int(rows)), ForKind::Unrolled, store);
    func(&[&a, &b], Stmt::serial(&o, int(2), inner))
}

#[test]
fn loops_across_rows_are_transposed() {
    for rows in [2, 4, 8, 16] {
        for dtype in [DType::BOOL, DType::I8, DType::U8, DType::I16, DType::F16, DType::BF16] {
            let f = across(rows, dtype, |x| x);
            compare(&f, &arguments(&f, 3));
        }
        for dtype in [DType::F32, DType::I32, DType::F64, DType::I64, DType::I16, DType::U32] {
            let f = across(rows, dtype, |x| x);
            compare(&f, &arguments(&f, 3));
            let f = across(rows, dtype, |x| x.clone() * x);
            compare(&f, &arguments(&f, 3));
        }
    }
    let f = across(8, DType::F32, |x| x);
    let text = ir(&f, &baseline()).expect("IR");
    assert!(text.contains("shufflevector") && !text.contains("load float,"), "{text}");
}

#[test]
fn a_loop_that_reads_what_it_writes_is_not_transposed() {
    let b = buffer("B", &[256], DType::F32);
    let j = Var::index("j");
    let ramp = |base: Expr, step: i32| Expr::ramp(base, int(step), 8);
    let read = b.load([ramp(j.expr(), 9)]);
    let store = Stmt::store(&b, vec![ramp(&j * 8, 1)], read);
    let f = func(&[&b], Stmt::for_loop(&j, Range::upto(int(8)), ForKind::Unrolled, store));
    compare(&f, &arguments(&f, 3));
}
