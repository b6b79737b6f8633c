//! Statements that update their own cells.

use super::*;

impl Maker<'_> {
    /// `B[j] = B[j] + S[i] * A[i]`, with its start before it or as the initialisation of a block.
    pub(super) fn reduction(&mut self) -> Stmt {
        let to = self.output();
        // The sum of `A[i] * P[i]` where no padding is, or of products that may overflow: mostly,
        // where the padding of `A` makes them zero for what is finite.
        let dot = self.pick(4) >= if self.zeros { 1 } else { 3 };
        let op = if dot {
            BinOp::Add
        } else {
            [BinOp::Add, BinOp::Max, BinOp::Min, BinOp::Mul][self.pick(4)]
        };
        let start = self.some_number();
        let region = if dot { Region { from: 0, to: USED } } else { self.region() };
        let guarded = dot || self.pick(3) > 0;
        let (j, i) = (Var::index("j"), Var::index("i"));
        let others = self.memory.iter().filter(|b| **b != to).cloned().collect();
        let memory = std::mem::replace(&mut self.memory, others);
        let extent = self.between(1, 3);
        let tiled = self.tiled;
        let cell = |v: &Var| if tiled { vec![Expr::i32(1), v.expr()] } else { vec![v.expr()] };
        let sweep = |v: &Var| Sweep::of(vec![(v.clone(), SIZE)]);
        let update = |m: &mut Self, cell: &[Expr], v: &Var| {
            let sweep = sweep(v);
            let x = match m.pick(3) {
                _ if dot => {
                    let x = m.memory[1].load(m.element(&sweep));
                    let other = match m.pick(5) {
                        0 => &x * &x,
                        1 => &x + &x,
                        2 if m.dtype.is_float() => {
                            Expr::call(CallTarget::Intrin(Intrin::Exp), vec![x], m.dtype)
                        }
                        _ => x,
                    };
                    m.memory[0].load(m.element(&sweep)) * other
                }
                0 => m.elementwise(&sweep),
                _ => m.one_load(&sweep),
            };
            Stmt::store(&to, cell.to_vec(), Expr::binary(op, to.load(cell.to_vec()), x))
        };
        let cond = |m: &mut Self, v: &Var| {
            if guarded { m.used(region, &sweep(v)) } else { Expr::bool(true) }
        };
        let extent_of = |k: i64| Expr::int(k, DType::I32);
        let stmt = match self.pick(3) {
            0 => {
                let (vj, vi) = (Var::index("vj"), Var::index("vi"));
                let at = cell(&vj);
                let predicate = self.pick(2) == 0;
                let mut body = update(self, &at, &vi);
                if !predicate {
                    body = Stmt::guard(cond(self, &vi), body);
                }
                let mut block = self.block(body);
                block.init = Some(Stmt::store(&to, at, start));
                for (var, n, kind) in
                    [(&vj, extent, IterKind::Spatial), (&vi, SIZE, IterKind::Reduce)]
                {
                    let domain = Range::upto(extent_of(n));
                    block.iters.push(IterVar { var: var.clone(), domain, kind });
                }
                let guard = if predicate { cond(self, &i) } else { Expr::bool(true) };
                let body = Stmt::block(vec![j.expr(), i.expr()], guard, block);
                let body = Stmt::serial(&i, extent_of(SIZE), body);
                Stmt::serial(&j, extent_of(extent), body)
            }
            _ => {
                let body = update(self, &cell(&j), &i);
                let inner = Stmt::guard(cond(self, &i), body);
                let inner = Stmt::serial(&i, extent_of(SIZE), inner);
                let begin = Stmt::store(&to, cell(&j), start);
                Stmt::serial(&j, extent_of(extent), Stmt::seq([begin, inner]))
            }
        };
        self.memory = memory;
        stmt
    }

    /// A value that steers an update of its own cell, as an index, a divisor or a shift, or decides
    /// whether there is one. It is legal where the cells hold what the first statements store, and
    /// what the update makes is overwritten, mostly.
    pub(super) fn steered(&mut self) -> Stmt {
        let to = self.output();
        let region = self.region();
        let cast = |e: Expr, to: DType| e.cast(to);
        let elements = |m: &Self, s: &Sweep| m.element(s);
        let always = |_: &mut Self, _: &Sweep| Expr::bool(true);
        let used = |m: &mut Self, s: &Sweep| m.used(region, s);
        let sweep = self.sweep();
        let t = self.dtype;
        // Something in range for every element, or for those that are used alone.
        let fill = |m: &mut Self, s: &Sweep| {
            let at = s.flat.at.clone();
            let value = match m.pick(5) {
                0 => Expr::i32(m.between(0, 11) as i32),
                1 => Expr::i32((region.to - 1) as i32) - at,
                2 => at + (SIZE - region.to),
                3 => at - region.from,
                _ => Expr::i32(region.to as i32) - at,
            };
            let cell = elements(m, s);
            Stmt::store(&to, cell, cast(value, t))
        };
        let mut stmts = Vec::new();
        if self.pick(2) == 0 {
            stmts.push(self.swept(&sweep, ForKind::Serial, always, |m, s| {
                let (cell, k) = (elements(m, s), m.between(1, 11));
                Stmt::store(&to, cell, m.number(k))
            }));
        }
        stmts.push(match self.pick(3) {
            0 => self.swept(&sweep, ForKind::Serial, always, fill),
            _ => self.swept(&sweep, ForKind::Serial, used, fill),
        });
        let update = |m: &mut Self, s: &Sweep| {
            let cell = elements(m, s);
            let own = || cast(to.load(cell.clone()), DType::I32);
            let from = m.memory[0].clone();
            let value = match m.pick(6) {
                0 | 1 => from.load(m.split(own())),
                2 => cast(Expr::i32(100).floordiv(own()), t),
                3 => cast(s.flat.at.clone().floormod(own()), t),
                4 => {
                    let shift = CallTarget::Intrin(Intrin::Shl);
                    cast(Expr::call(shift, vec![Expr::i32(1), own()], DType::I32), t)
                }
                _ => {
                    let (flat, low) = (s.flat.at.clone() + own(), Expr::i32(0));
                    let inside = own().greater_equal(low).and(own().less(2));
                    let read = from.load(m.split(flat.floordiv(2)));
                    Expr::if_then_else(inside, read, m.number(1))
                }
            };
            let value = if m.one_in(3) { value + to.load(cell.clone()) } else { value };
            Stmt::store(&to, cell, value)
        };
        stmts.push(match self.pick(3) {
            0 => self.swept(&sweep, ForKind::Serial, used, update),
            _ => self.swept(&sweep, ForKind::Serial, always, update),
        });
        let pad = self.some_number();
        stmts.push(match self.pick(3) {
            0 => self.swept(&sweep, ForKind::Serial, always, |m, s| {
                let cell = elements(m, s);
                Stmt::store(&to, cell, pad.clone())
            }),
            1 => self.padding(&to, region, &pad),
            _ => Stmt::nop(),
        });
        Stmt::seq(stmts)
    }
}
