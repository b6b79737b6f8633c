//! Random programs, decoded from bytes, one for each choice.
//!
//! A program computes with four arguments and a size `n`. Of `A` the padding is known, of `P` it may
//! be read but is arbitrary; `B` and `C` are for results. Its one to four items are *stages*, which
//! fill a buffer under a guard and its padding before or after, *reductions* over a buffer, updates
//! that their own cell steers, and statements of any form. Most of them are legal: indices carry
//! their range, and one that does not fit is taken modulo the extent or guarded.

use tilewright_ir::{
    Attr, BinOp, Block, Buffer, CallTarget, DType, Expr, ForKind, Intrin, IterKind, IterVar, Param,
    Range, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_transform::partition::HINT;

/// Elements of each buffer: three rows of four.
pub const SIZE: i64 = 12;
mod updates;

/// Elements in a row.
const ROW: i64 = 4;
/// Elements of `A` and `P` before their padding.
pub const USED: i64 = 10;
/// One more than the largest value of `n`.
pub const SIZES: i64 = 4;

/// A program, and what it takes.
pub struct Program {
    /// The function.
    pub func: TensorFunc,
    /// The assumption that it begins with: a promise about its arguments.
    pub promise: Stmt,
    /// What the padding of `A` holds.
    pub pad: f64,
}

/// The program of some bytes.
pub fn program(bytes: &[u8]) -> Program {
    let mut bytes = bytes.iter();
    let mut first = |below: u8| bytes.next().map_or(0, |b| *b % below);
    let dtype = if first(2) == 0 { DType::F32 } else { DType::I32 };
    let tiled = first(5) == 4;
    let pad = [0, 0, 1, -9][usize::from(first(4))];
    let count = [1, 1, 1, 1, 1, 2, 2, 3][usize::from(first(8))];
    let told = first(4);
    let mut m = Maker {
        bytes,
        dtype,
        tiled,
        loops: Vec::new(),
        memory: Vec::new(),
        n: Var::index("n"),
        zeros: told == 3 && pad == 0,
        blocks: 0,
    };
    m.memory = ["A", "P", "B", "C"].map(|name| m.buffer(name)).into();
    let mut params: Vec<Param> = m.memory.iter().map(Param::tensor).collect();
    params.push(Param::Scalar(m.n.clone()));
    let (a, p) = (m.memory[0].clone(), m.memory[1].clone());
    let known = Region { from: 0, to: USED };
    let promise = match told {
        0 | 1 => Stmt::nop(),
        _ => m.assume(&a, known, m.number(pad)),
    };
    let mut body = vec![promise.clone()];
    if told == 3 {
        body.push(m.assume(&p, known, Expr::undef(dtype)));
    }
    body.push(m.items(count));
    Program { func: TensorFunc::new(params, Stmt::seq(body)), promise, pad: pad as f64 }
}

/// An index, with the least and the largest value that it takes.
#[derive(Clone)]
struct Index {
    at: Expr,
    low: i64,
    high: i64,
}

impl Index {
    fn constant(k: i64) -> Index {
        Index { at: Expr::int(k, DType::I32), low: k, high: k }
    }

    fn plus(self, other: Index) -> Index {
        Index { at: self.at + other.at, low: self.low + other.low, high: self.high + other.high }
    }

    fn times(self, k: i64) -> Index {
        Index { at: self.at * k, low: self.low * k, high: self.high * k }
    }

    fn taken_from(self, k: i64) -> Index {
        Index { at: Expr::int(k, DType::I32) - self.at, low: k - self.high, high: k - self.low }
    }

    fn div(self, k: i64) -> Index {
        let (low, high) = (self.low.div_euclid(k), self.high.div_euclid(k));
        Index { at: self.at.floordiv(k), low, high }
    }

    fn fits(&self, extent: i64) -> bool {
        0 <= self.low && self.high < extent
    }

    /// The index, or its remainder where it is out of range.
    fn inside(self, extent: i64) -> Expr {
        if self.fits(extent) { self.at } else { self.at.floormod(extent) }
    }
}

/// The elements of a buffer that are no padding.
#[derive(Clone, Copy)]
struct Region {
    from: i64,
    to: i64,
}

/// Loops over all of a buffer, and what runs in them.
struct Sweep {
    loops: Vec<(Var, i64)>,
    /// The place in the buffer, and as row and column where the loops are these.
    flat: Index,
    pair: Option<(Var, Var)>,
}

struct Maker<'a> {
    bytes: std::slice::Iter<'a, u8>,
    dtype: DType,
    /// Whether buffers have two axes.
    tiled: bool,
    /// Loops around, outermost first.
    loops: Vec<Index>,
    /// What can be loaded from: the arguments, then scratch memory.
    memory: Vec<Buffer>,
    n: Var,
    /// Whether the padding of `A` is known to be zero, and that of `P` may be read.
    zeros: bool,
    blocks: usize,
}

impl Maker<'_> {
    /// A choice; the first one where there are no more bytes.
    fn pick(&mut self, below: usize) -> usize {
        self.bytes.next().map_or(0, |b| usize::from(*b) % below)
    }

    fn one_in(&mut self, k: usize) -> bool {
        self.pick(k) == k - 1
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.pick((high - low + 1).unsigned_abs() as usize) as i64
    }

    fn buffer(&self, name: &str) -> Buffer {
        let shape: &[i64] = if self.tiled { &[SIZE / ROW, ROW] } else { &[SIZE] };
        Buffer::with_extents(name, shape, self.dtype)
    }

    /// One of the arguments for results.
    fn output(&mut self) -> Buffer {
        let k = self.pick(2);
        self.memory[2 + k].clone()
    }

    /// One of a few numbers.
    fn some_number(&mut self) -> Expr {
        let k = [0, 1, -9, 2][self.pick(4)];
        self.number(k)
    }

    fn number(&self, k: i64) -> Expr {
        if self.dtype.is_float() {
            Expr::float(k as f64, self.dtype)
        } else {
            Expr::int(k, self.dtype)
        }
    }

    // Indices.

    fn variable(&mut self) -> Index {
        match self.loops.len() {
            0 => Index { at: self.n.expr(), low: 0, high: SIZES - 1 },
            k => {
                let at = self.pick(k);
                self.loops[k - 1 - at].clone()
            }
        }
    }

    fn index(&mut self) -> Index {
        match self.pick(8) {
            0 | 1 => self.variable(),
            2 => self.variable().times(ROW).plus(self.variable()),
            3 => self.variable().plus(Index::constant(self.between(-2, 6))),
            4 => self.variable().taken_from(SIZE - 1),
            5 => self.variable().div(2),
            6 => self.variable().times(2).plus(Index::constant(self.between(-1, 1))),
            _ => Index::constant(self.between(0, SIZE - 1)),
        }
    }

    /// The indices of a place that is in range.
    fn cell(&mut self) -> Vec<Expr> {
        if self.tiled && !self.one_in(6) {
            return vec![self.narrow(SIZE / ROW), self.narrow(ROW)];
        }
        let flat = if self.one_in(4) { self.index().inside(SIZE) } else { self.narrow(SIZE) };
        self.split(flat)
    }

    /// Some index in a range.
    fn narrow(&mut self, extent: i64) -> Expr {
        let some = self.index();
        if some.fits(extent) {
            return some.at;
        }
        let variable = self.variable();
        if variable.fits(extent) {
            variable.at
        } else {
            Expr::int(self.between(0, extent - 1), DType::I32)
        }
    }

    fn split(&self, flat: Expr) -> Vec<Expr> {
        if self.tiled { vec![flat.clone().floordiv(ROW), flat.floormod(ROW)] } else { vec![flat] }
    }

    // Conditions and values.

    /// A comparison that an index does not decide by its range alone.
    fn compared(&mut self, of: Index) -> Expr {
        let than = Expr::int(self.between(of.low, of.high), DType::I32);
        match self.pick(4) {
            0 => of.at.less(than),
            1 => of.at.greater_equal(than),
            2 => of.at.equal(than),
            _ => of.at.not_equal(than),
        }
    }

    fn condition(&mut self, depth: usize) -> Expr {
        match self.pick(if depth == 0 { 8 } else { 14 }) {
            0..=2 => {
                let of = self.index();
                self.compared(of)
            }
            3 => self.variable().at.floormod(2).equal(self.pick(2) as i64),
            4 => self.n.expr().greater(self.between(0, SIZES - 1)),
            5 => (self.n.expr() + self.between(0, 9)).less(self.between(0, 9)),
            6 => {
                let from = [0, 0, 2][self.pick(3)];
                let cell = self.cell();
                self.memory[from].load(cell).greater(0)
            }
            7 => {
                let by = if self.pick(2) == 0 { self.n.expr() } else { self.variable().at };
                let than = if self.pick(2) == 0 { Expr::i32(2) } else { self.variable().at };
                let value = Expr::int(self.between(0, SIZE), DType::I32);
                by.clone().not_equal(0).and(value.floordiv(by).greater(than))
            }
            8 | 9 => self.condition(depth - 1).and(self.condition(depth - 1)),
            10 | 11 => self.condition(depth - 1).or(self.condition(depth - 1)),
            12 => !self.condition(depth - 1),
            _ => {
                let likely = CallTarget::Intrin(Intrin::Likely);
                Expr::call(likely, vec![self.condition(depth - 1)], DType::BOOL)
            }
        }
    }

    fn load(&mut self) -> Expr {
        let from = self.pick(self.memory.len());
        let cell = self.cell();
        self.memory[self.memory.len() - 1 - from].load(cell)
    }

    fn value(&mut self, depth: usize) -> Expr {
        match self.pick(if depth == 0 { 4 } else { 11 }) {
            0 | 1 => self.load(),
            2 => self.some_number(),
            3 => self.index().at.cast(self.dtype),
            4 => self.value(depth - 1) + self.value(depth - 1),
            5 => self.value(depth - 1) * self.value(depth - 1),
            6 => self.value(depth - 1).max(self.value(depth - 1)),
            7 => {
                Expr::if_then_else(self.condition(1), self.value(depth - 1), self.value(depth - 1))
            }
            8 => {
                let at = self.index();
                let inside = at.at.clone().greater_equal(0).and(at.at.clone().less(SIZE));
                let cell = self.split(at.at);
                let from = self.pick(self.memory.len());
                Expr::if_then_else(inside, self.memory[from].load(cell), self.number(0))
            }
            9 => Expr::select(self.condition(0), self.value(depth - 1), self.value(depth - 1)),
            _ => {
                let x = Var::new("x", self.dtype);
                let value = self.value(depth - 1);
                Expr::let_in(x.clone(), value, x.expr() + self.value(depth - 1))
            }
        }
    }

    // Stages.

    /// Where no padding is, at a place; in one of several forms.
    fn used(&mut self, region: Region, sweep: &Sweep) -> Expr {
        let at = || sweep.flat.at.clone();
        let (low, high) = (at().greater_equal(region.from), at().less(region.to));
        match (region.from, region.to, &sweep.pair) {
            (0, USED, Some((row, column))) if self.pick(2) == 1 => match self.pick(2) {
                0 => row.expr().less(USED / ROW).or(column.expr().less(USED % ROW)),
                _ => !(row.expr().equal(USED / ROW).and(column.expr().greater_equal(USED % ROW))),
            },
            (0, USED, _) if self.one_in(3) => at().floordiv(2).less(USED / 2),
            (0, _, _) => high,
            (_, SIZE, _) => low,
            _ => low.and(high),
        }
    }

    fn region(&mut self) -> Region {
        let (from, to) = [(0, USED), (0, USED), (2, SIZE), (1, 11), (0, 7)][self.pick(5)];
        Region { from, to }
    }

    /// Loops over all of a buffer.
    fn sweep(&mut self) -> Sweep {
        let shapes: [&[i64]; 6] = if self.tiled {
            [&[3, 4], &[3, 4], &[3, 4], &[3, 4], &[4, 4], &[SIZE]]
        } else {
            [&[SIZE], &[SIZE], &[SIZE], &[SIZE], &[3, 4], &[4, 4]]
        };
        let shape = shapes[self.pick(6)];
        let loops: Vec<(Var, i64)> = shape.iter().map(|n| (Var::index("i"), *n)).collect();
        Sweep::of(loops)
    }

    /// The element that a sweep is at.
    fn element(&self, sweep: &Sweep) -> Vec<Expr> {
        match (&sweep.pair, self.tiled) {
            (Some((row, column)), true) => vec![row.expr(), column.expr()],
            _ => self.split(sweep.flat.at.clone()),
        }
    }

    /// `for i in range(12): body`, maybe as a block, under a guard or a predicate.
    fn swept(
        &mut self,
        sweep: &Sweep,
        kind: ForKind,
        guard: impl Fn(&mut Self, &Sweep) -> Expr,
        body: impl FnOnce(&mut Self, &Sweep) -> Stmt,
    ) -> Stmt {
        // What is beyond the end has to be guarded.
        let whole = |s: &Sweep, cond: Expr| match s.flat.high < SIZE {
            true => cond,
            false if cond.is_true() => s.flat.at.clone().less(SIZE),
            false => s.flat.at.clone().less(SIZE).and(cond),
        };
        let before = self.loops.len();
        let inner = match self.pick(3) {
            0 => {
                let vars: Vec<(Var, i64)> =
                    sweep.loops.iter().map(|(_, n)| (Var::index("v"), *n)).collect();
                let inside = Sweep::of(vars.clone());
                self.loops.extend(inside.indices());
                let predicate = self.pick(2) == 0;
                let mut stmt = body(self, &inside);
                if !predicate {
                    let cond = guard(self, &inside);
                    stmt = Stmt::guard(whole(&inside, cond), stmt);
                }
                let mut block = self.block(stmt);
                for (var, extent) in vars {
                    let domain = Range::upto(Expr::int(extent, DType::I32));
                    block.iters.push(IterVar { var, domain, kind: IterKind::Spatial });
                }
                let cond =
                    if predicate { whole(sweep, guard(self, sweep)) } else { Expr::bool(true) };
                Stmt::block(sweep.loops.iter().map(|(v, _)| v.expr()).collect(), cond, block)
            }
            _ => {
                self.loops.extend(sweep.indices());
                let stmt = body(self, sweep);
                let cond = guard(self, sweep);
                Stmt::guard(whole(sweep, cond), stmt)
            }
        };
        self.loops.truncate(before);
        sweep.around(inner, kind)
    }

    /// Fills a buffer, and its padding before or after.
    fn stage(&mut self, to: &Buffer) -> Stmt {
        let region = self.region();
        let pad = if self.one_in(4) { Expr::undef(self.dtype) } else { self.some_number() };
        // Its iterations read nothing that others write.
        let kind = match self.pick(6) {
            4 => ForKind::Parallel,
            5 => ForKind::Unrolled,
            _ => ForKind::Serial,
        };
        let sweep = self.sweep();
        let used = |m: &mut Self, s: &Sweep| m.used(region, s);
        let always = |_: &mut Self, _: &Sweep| Expr::bool(true);
        let main = |m: &mut Self, s: &Sweep| {
            let cell = m.element(s);
            let value = match m.pick(2) {
                0 => m.elementwise(s),
                _ => m.value(1),
            };
            Stmt::store(to, cell, value)
        };
        // Permission to read says that nothing depends on what is there, and results are looked at.
        let is_result = self.memory.iter().take(4).any(|b| b == to);
        let others = self.memory.iter().filter(|b| *b != to).cloned().collect();
        let memory = std::mem::replace(&mut self.memory, others);
        let stmt = match self.pick(if is_result { 5 } else { 6 }) {
            0..=2 => {
                let first = self.swept(&sweep, kind, used, main);
                let rest = self.padding(to, region, &pad);
                Stmt::seq(if self.one_in(3) { [rest, first] } else { [first, rest] })
            }
            3 => self.swept(&sweep, kind, always, |m, s| {
                let cell = m.element(s);
                let cond = m.used(region, s);
                let value = match m.pick(2) {
                    0 => Expr::if_then_else(cond, m.value(1), pad.clone()),
                    _ => Expr::select(cond, m.value(1), pad.clone()),
                };
                Stmt::store(to, cell, value)
            }),
            4 => self.swept(&sweep, kind, always, |m, s| {
                let cond = m.used(region, s);
                let cell = m.element(s);
                let other = Stmt::store(to, cell, pad.clone());
                let then = main(m, s);
                Stmt::if_else(cond, then, other)
            }),
            _ => {
                let first = self.swept(&sweep, kind, used, main);
                let allowed = self.assume(to, region, Expr::undef(self.dtype));
                Stmt::seq([first, allowed])
            }
        };
        self.memory = memory;
        stmt
    }

    /// Writes the padding of a buffer.
    fn padding(&mut self, to: &Buffer, region: Region, pad: &Expr) -> Stmt {
        let sweep = self.sweep();
        let unused = |m: &mut Self, s: &Sweep| !m.used(region, s);
        self.swept(&sweep, ForKind::Serial, unused, |m, s| {
            let cell = m.element(s);
            Stmt::store(to, cell, pad.clone())
        })
    }

    /// What one of the buffers holds at the same place.
    fn one_load(&mut self, sweep: &Sweep) -> Expr {
        let from = self.pick(self.memory.len());
        self.memory[self.memory.len() - 1 - from].load(self.element(sweep))
    }

    /// A value of other buffers at the same place.
    fn elementwise(&mut self, sweep: &Sweep) -> Expr {
        let x = self.one_load(sweep);
        match self.pick(4) {
            0 => x,
            1 => x + self.one_load(sweep),
            2 => x * self.one_load(sweep),
            _ => x.max(self.one_load(sweep)),
        }
    }

    /// What the padding of a buffer holds.
    fn assume(&self, b: &Buffer, region: Region, pad: Expr) -> Stmt {
        let axes: &[i64] = if self.tiled { &[SIZE / ROW, ROW] } else { &[SIZE] };
        let sweep = Sweep::of(axes.iter().map(|n| (Var::index("p"), *n)).collect());
        let at = || sweep.flat.at.clone();
        let used = match region.from {
            0 => at().less(region.to),
            from => at().greater_equal(from).and(at().less(region.to)),
        };
        let cond = used.or(b.load(self.element(&sweep)).equal(pad));
        sweep.around(Stmt::new(StmtKind::Assume(cond)), ForKind::Serial)
    }

    // Statements of any form.

    fn block(&mut self, body: Stmt) -> Block {
        self.blocks += 1;
        Block::new(format!("b{}", self.blocks), body)
    }

    /// A store, maybe an update, maybe under the guard that it needs.
    fn store(&mut self) -> Stmt {
        let k = [2, 3, 0, self.memory.len() - 1][self.pick(4)];
        let to = self.memory[k].clone();
        let (cell, guard) = match self.pick(3) {
            0 => {
                let at = self.index();
                let guard = if at.fits(SIZE) {
                    Expr::bool(true)
                } else {
                    at.at.clone().greater_equal(0).and(at.at.clone().less(SIZE))
                };
                (self.split(at.at), guard)
            }
            _ => (self.cell(), Expr::bool(true)),
        };
        let value = match self.pick(3) {
            0 => {
                let op = [BinOp::Add, BinOp::Max, BinOp::Mul][self.pick(3)];
                Expr::binary(op, to.load(cell.clone()), self.value(1))
            }
            1 => self.value(2),
            _ => self.value(1),
        };
        Stmt::guard(guard, Stmt::store(&to, cell, value))
    }

    fn nest(&mut self, depth: usize) -> Stmt {
        let var = Var::index(["i", "j", "k", "l"][self.loops.len().min(3)]);
        let extent = [4, 3, 2, 5, 1, 12][self.pick(6)];
        let min = if self.one_in(5) { self.between(1, 3) } else { 0 };
        let open = self.one_in(8);
        let hint = self.one_in(4);
        let kind = if self.one_in(8) { ForKind::Unrolled } else { ForKind::Serial };
        let high = min + if open { SIZES - 2 } else { extent - 1 };
        self.loops.push(Index { at: var.expr(), low: min, high });
        let body = self.stmt(depth - 1);
        self.loops.pop();
        let annotations =
            if hint { [(HINT.into(), Attr::Int(1))].into() } else { Default::default() };
        let extent = if open { self.n.expr() } else { Expr::int(extent, DType::I32) };
        let range = Range { min: Expr::int(min, DType::I32), extent };
        Stmt::new(StmtKind::For { var, range, kind, annotations, body })
    }

    /// A block with a variable of its own, under a predicate.
    fn opaque(&mut self, depth: usize) -> Stmt {
        let (v, at) = (Var::index("v"), self.index().inside(SIZE));
        self.loops.push(Index { at: v.expr(), low: 0, high: SIZE - 1 });
        let body = self.stmt(depth - 1);
        self.loops.pop();
        let mut block = self.block(body);
        let domain = Range::upto(Expr::int(SIZE, DType::I32));
        block.iters.push(IterVar { var: v, domain, kind: IterKind::Opaque });
        Stmt::block(vec![at], self.condition(1), block)
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        if depth == 0 {
            return self.store();
        }
        match self.pick(11) {
            0 => self.store(),
            1..=3 => self.nest(depth),
            4 | 5 => Stmt::guard(self.condition(1), self.stmt(depth - 1)),
            6 => Stmt::if_else(self.condition(1), self.stmt(depth - 1), self.stmt(depth - 1)),
            7 => Stmt::seq([self.stmt(depth - 1), self.stmt(depth - 1)]),
            8 => {
                let flag = Var::new("flag", DType::BOOL);
                let value = self.condition(1);
                let body = Stmt::guard(flag.expr(), self.stmt(depth - 1));
                Stmt::let_in(&flag, value, body)
            }
            9 => {
                let at = self.index();
                let x = Var::index("x");
                self.loops.push(Index { at: x.expr(), ..at });
                let body = self.stmt(depth - 1);
                self.loops.pop();
                Stmt::let_in(&x, at.at, body)
            }
            _ => self.opaque(depth),
        }
    }

    /// The items of a program.
    fn items(&mut self, count: usize) -> Stmt {
        if count == 0 {
            return Stmt::nop();
        }
        let first = match self.pick(8) {
            0..=2 if count > 1 => {
                let scratch = self.buffer("S");
                let stage = self.stage(&scratch);
                self.memory.push(scratch.clone());
                let rest = self.items(count - 1);
                self.memory.pop();
                return Stmt::allocate(&scratch, Stmt::seq([stage, rest]));
            }
            0 | 3 => {
                let to = self.output();
                self.stage(&to)
            }
            1 | 4 => self.reduction(),
            5 => self.steered(),
            _ => {
                let depth = if self.one_in(4) { 3 } else { 2 };
                self.stmt(depth)
            }
        };
        Stmt::seq([first, self.items(count - 1)])
    }
}

impl Sweep {
    fn of(loops: Vec<(Var, i64)>) -> Sweep {
        let index = |(v, n): &(Var, i64)| Index { at: v.expr(), low: 0, high: n - 1 };
        let (flat, pair) = match &loops[..] {
            [row, column] => {
                let flat = index(row).times(column.1).plus(index(column));
                let pair = ((row.1, column.1) == (SIZE / ROW, ROW))
                    .then(|| (row.0.clone(), column.0.clone()));
                (flat, pair)
            }
            _ => (loops.first().map_or(Index::constant(0), index), None),
        };
        Sweep { loops, flat, pair }
    }

    fn indices(&self) -> impl Iterator<Item = Index> {
        self.loops.iter().map(|(v, n)| Index { at: v.expr(), low: 0, high: n - 1 })
    }

    /// The loops around a body; the outermost one runs as `kind` says.
    fn around(&self, body: Stmt, kind: ForKind) -> Stmt {
        self.loops.iter().enumerate().rev().fold(body, |body, (k, (v, n))| {
            let range = Range::upto(Expr::int(*n, DType::I32));
            let kind = if k == 0 { kind.clone() } else { ForKind::Serial };
            Stmt::for_loop(v, range, kind, body)
        })
    }
}
