//! Loop nests in batches against the same nests one iteration after the other.

use proptest::prelude::*;
use tilewright_interp::{Arg, Output, RunOptions, run_func};
use tilewright_ir::{
    BinOp, Block, Buffer, DType, Expr, ForKind, Intrin, IterKind, IterVar, Range, Result, Stmt,
    TensorFunc, Var,
};

use crate::build::*;

/// Random choices.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.roll(items.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }
}

const SIZE: i64 = 160;

struct Nest {
    dice: Dice,
    vars: Vec<Var>,
    /// `A` is given, `T` is written in part, `C` is what the nest stores to.
    a: Buffer,
    t: Buffer,
    c: Buffer,
    /// Where the nest stores.
    at: Vec<Expr>,
}

impl Nest {
    /// A sum of multiples of variables.
    fn index(&mut self) -> Expr {
        let mut e = Expr::i32(self.dice.pick(&[0, 0, 0, 1, 3]));
        for v in self.vars.clone() {
            let factor = self.dice.pick(&[0, 0, 1, 1, 1, 2, 7, -1]);
            e = e + &v * factor;
        }
        if self.dice.chance(10) { e.floormod(SIZE) } else { e }
    }

    /// A single variable mostly, so that spatial and reducing loops come about.
    fn store_index(&mut self) -> Expr {
        let v = self.dice.pick(&(0..self.vars.len()).collect::<Vec<_>>());
        let v = self.vars[v].expr();
        match self.dice.roll(8) {
            0 => self.index(),
            1 => Expr::i32(2),
            2 => v * 2 + 1,
            _ => v,
        }
    }

    fn load(&mut self) -> Expr {
        let b = match self.dice.roll(20) {
            0 => self.c.clone(),
            1 | 2 => self.t.clone(),
            _ => self.a.clone(),
        };
        if self.dice.chance(10) && b == self.c {
            return b.load(self.at.clone());
        }
        let at = [self.index(), self.index()];
        b.load(at)
    }

    fn value(&mut self, depth: u32) -> Expr {
        if depth == 0 || self.dice.chance(25) {
            return match self.dice.roll(6) {
                0 => f32(self.dice.pick(&[0.0, 1.0, -2.5, f64::NAN])),
                1 => Expr::cast_node(self.index(), DType::F32),
                _ => self.load(),
            };
        }
        let (x, y) = (self.value(depth - 1), self.value(depth - 1));
        match self.dice.roll(10) {
            0 => Expr::select(self.index().less(3), x, y),
            1 => Expr::if_then_else(self.index().less(3), x, y),
            2 => Expr::intrin(Intrin::Tanh, vec![x]),
            3 => Expr::let_in(Var::new("x", DType::F32), x, y),
            _ => {
                let ops = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Min, BinOp::Max];
                Expr::binary(self.dice.pick(&ops), x, y)
            }
        }
    }

    fn func(seed: u64) -> TensorFunc {
        let mut dice = Dice(seed);
        let [a, t, c] = ["A", "T", "C"].map(|n| buffer(n, &[SIZE, SIZE], DType::F32));
        let count = 1 + dice.roll(4) as usize;
        let loops: Vec<(Var, Range)> = (0..count)
            .map(|i| {
                let extents: &[i64] = if i == 0 { &[1, 3, 150] } else { &[1, 2, 4, 5] };
                let (min, n) = (dice.pick(&[0, 0, 0, 2]), dice.pick(extents));
                (Var::index(format!("i{i}")), range(min, n))
            })
            .collect();
        let in_block = dice.chance(80);
        let vars: Vec<Var> = if in_block {
            (0..count).map(|i| Var::index(format!("v{i}"))).collect()
        } else {
            loops.iter().map(|(v, _)| v.clone()).collect()
        };
        let mut n = Nest { dice, vars, a, t, c, at: Vec::new() };
        n.at = vec![n.store_index(), n.store_index()];
        let store = |n: &Nest, value| Stmt::store(&n.c, n.at.clone(), value);
        let rest = n.value(3);
        let fold = n.dice.chance(70);
        let own = n.c.load(n.at.clone());
        let value = if fold {
            let op = n.dice.pick(&[BinOp::Add, BinOp::Mul, BinOp::Min, BinOp::Max]);
            if n.dice.chance(50) {
                Expr::binary(op, own, rest)
            } else {
                Expr::binary(op, rest, own)
            }
        } else {
            rest
        };
        let mut body = store(&n, value);
        if in_block {
            let mut block = Block::new("nest", body);
            for (v, (_, r)) in n.vars.iter().zip(&loops) {
                let free = n.at.iter().all(|e| !tilewright_ir::visit::free_vars(e).contains(v));
                let kind = match n.dice.chance(10) {
                    true => n.dice.pick(&[IterKind::Spatial, IterKind::Reduce, IterKind::Opaque]),
                    false if free => IterKind::Reduce,
                    false => IterKind::Spatial,
                };
                block.iters.push(IterVar { var: v.clone(), domain: r.clone(), kind });
            }
            if n.dice.chance(60) {
                let value = if n.dice.chance(80) { f32(0.5) } else { n.value(1) };
                block.init = Some(store(&n, value));
            }
            let bindings = loops.iter().map(|(v, _)| v.expr()).collect();
            body = Stmt::block(bindings, Expr::bool(true), block);
        }
        // The loops in any order.
        let mut rest = loops;
        while !rest.is_empty() {
            let (v, r) = rest.swap_remove(n.dice.roll(rest.len() as u64) as usize);
            body = Stmt::for_loop(&v, r, ForKind::Serial, body);
        }
        // Some rows of `T`, and mostly all of `C`.
        let (i, j) = (Var::index("i"), Var::index("j"));
        let at = || vec![i.expr(), j.expr()];
        let rows = n.dice.pick(&[SIZE, SIZE, 100]);
        let limit = n.dice.pick(&[SIZE, SIZE, SIZE, 100]);
        let fill = Stmt::seq([
            Stmt::guard(i.expr().less(rows), Stmt::store(&n.t, at(), f32(3.0))),
            Stmt::guard(i.expr().less(limit), Stmt::store(&n.c, at(), f32(0.25))),
        ]);
        let fill = serial(&i, SIZE, serial(&j, SIZE, fill));
        func(&[&n.a, &n.c], Stmt::nop()).with_root(vec![n.t.clone()], Stmt::seq([fill, body]))
    }
}

fn outcome(f: &TensorFunc, batches: bool) -> Result<(Vec<Output>, u64), String> {
    let options = RunOptions { batches, ..RunOptions::default() };
    let n = SIZE as usize;
    let args = [Arg::Tensor(iota(&[n, n])), Arg::Fresh(None)];
    run_func(f, &args, &options).map(|o| (o.outputs, o.steps)).map_err(|e| e.render())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// The same bits, the same states, the same errors and the same number of steps.
    #[test]
    fn batches_change_nothing(seed in any::<u64>()) {
        let f = Nest::func(seed);
        match (outcome(&f, true), outcome(&f, false)) {
            (Ok((a, n)), Ok((b, m))) => {
                prop_assert_eq!(n, m);
                prop_assert_eq!(a.len(), b.len());
                for (a, b) in a.iter().zip(&b) {
                    let differs = (0..a.tensor.len()).find(|&i| {
                        let (x, y) = (a.tensor.get_f64(i), b.tensor.get_f64(i));
                        x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan())
                    });
                    prop_assert_eq!(differs, None, "{:?}", f);
                    prop_assert_eq!(&a.states, &b.states);
                }
            }
            (Err(a), Err(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert!(false, "{:?} against {:?}", a.err(), b.err()),
        }
    }
}

/// The first value of an element may be a copy of an unwritten one: no error where it is not the one
/// that is chosen.
#[test]
fn a_first_value_may_be_a_copy_of_nothing() {
    let f = Nest::func(4534841058707081978);
    assert_eq!(outcome(&f, true).map(|o| o.1), outcome(&f, false).map(|o| o.1));
    assert!(outcome(&f, true).is_ok());
}
