//! Random programs compute the same after simplification.
//!
//! A program is made from bytes, so that proptest can shrink it: loops, guards that overlap and
//! complement each other, stores of constants, of indices and of what was read, blocks, lets, and
//! assumptions that hold. Buffers are small and hold small numbers, so that facts and conditions
//! meet often.

use proptest::prelude::*;
use tilewright_analysis::equivalence::equivalent;
use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{
    Block, Buffer, DType, Expr, ForKind, IterKind, IterVar, Param, Range, Remarks, Stmt, StmtKind,
    Tensor, TensorFunc, Var,
};
use tilewright_transform::simplify::{self, indices, simplify};

/// Cells of each buffer.
const CELLS: i64 = 12;

struct Gen<'a> {
    bytes: std::slice::Iter<'a, u8>,
    buffers: Vec<Buffer>,
    /// Variables with their last values; the first is 0.
    vars: Vec<(Var, i64)>,
}

impl Gen<'_> {
    fn pick(&mut self, n: i64) -> i64 {
        self.bytes.next().map_or(0, |b| i64::from(*b) % n)
    }

    fn var(&mut self) -> Option<(Var, i64)> {
        let at = self.pick(self.vars.len().max(1) as i64);
        self.vars.get(at as usize).cloned()
    }

    fn index(&mut self) -> Expr {
        let (kind, v, c) = (self.pick(8), self.var(), self.pick(CELLS));
        match (kind, v) {
            (0, _) | (_, None) => Expr::int(c, DType::I32),
            (1..=3, Some((v, last))) if last < CELLS => v.expr(),
            (4 | 5, Some((v, last))) if last + c < CELLS => &v + c,
            (6, Some((v, last))) if last < CELLS => Expr::int(CELLS - 1, DType::I32) - v.expr(),
            (_, Some((v, _))) => {
                let other = self.var().map_or(Expr::i32(0), |(w, _)| w.expr());
                (v.expr() * (1 + self.pick(4)) + other + c).floormod(CELLS)
            }
        }
    }

    fn load(&mut self) -> Expr {
        let at = self.pick(self.buffers.len() as i64) as usize;
        let index = self.index();
        self.buffers[at].load([index])
    }

    fn value(&mut self, depth: usize) -> Expr {
        match self.pick(if depth > 1 { 8 } else { 12 }) {
            0..=3 => Expr::int(self.pick(4), DType::I32),
            4 | 5 => self.var().map_or_else(|| Expr::i32(1), |(v, _)| v.expr()),
            6 | 7 => self.load(),
            8 => self.value(depth + 1) + self.value(depth + 1),
            9 => self.value(depth + 1) * self.value(depth + 1),
            10 => {
                let cond = self.cond(depth + 1);
                Expr::if_then_else(cond, self.value(depth + 1), self.value(depth + 1))
            }
            _ => self.value(depth + 1) - self.value(depth + 1),
        }
    }

    fn cond(&mut self, depth: usize) -> Expr {
        match self.pick(if depth > 1 { 7 } else { 10 }) {
            0..=2 => self.load().equal(self.pick(4)),
            3 => self.load().less(self.pick(4)),
            4 => self.index().less(self.pick(CELLS)),
            5 => self.index().floordiv(1 + self.pick(8)).equal(self.pick(3)),
            6 => self.index().floormod(1 + self.pick(4)).equal(self.pick(3)),
            7 => !self.cond(depth + 1),
            8 => self.cond(depth + 1).or(self.cond(depth + 1)),
            _ => self.cond(depth + 1).and(self.cond(depth + 1)),
        }
    }

    fn body(&mut self, depth: usize) -> Stmt {
        let n = 1 + self.pick(3);
        Stmt::seq((0..n).map(|_| self.stmt(depth)).collect::<Vec<_>>())
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        let kind = match (depth, self.pick(3)) {
            (0, 1..) => 4,
            _ => self.pick(if depth > 3 { 4 } else { 10 }),
        };
        match kind {
            4 | 5 => {
                let kind = if self.pick(6) == 0 { ForKind::Unrolled } else { ForKind::Serial };
                let extent = [CELLS, 1, 3, 6, CELLS, 0, 8][self.pick(7) as usize];
                let v = Var::index("i");
                let range = Range::upto(Expr::int(extent, DType::I32));
                let body = self.under(&v, extent - 1, depth);
                Stmt::for_loop(&v, range, kind, body)
            }
            6 => {
                // Two branches that may have to do with each other.
                let cond = self.cond(0);
                let next = match (self.pick(3), self.var()) {
                    (0, _) => cond.clone(),
                    (1, Some((v, _))) => !v.expr().less(self.pick(4)),
                    _ => !cond.clone(),
                };
                let first = Stmt::guard(cond, self.body(depth + 1));
                Stmt::seq([first, Stmt::guard(next, self.body(depth + 1))])
            }
            7 => {
                let (cond, yes) = (self.cond(0), self.body(depth + 1));
                match self.pick(3) {
                    0 => Stmt::guard(cond, yes),
                    1 => Stmt::if_else(cond, yes.clone(), fresh(&yes)),
                    _ => Stmt::if_else(cond, yes, self.body(depth + 1)),
                }
            }
            8 => {
                let (v, value) = (Var::index("v"), self.index());
                let mut block = Block::new("block", self.under(&v, CELLS - 1, depth));
                let domain = Range::upto(Expr::int(CELLS, DType::I32));
                block.iters = vec![IterVar { var: v, domain, kind: IterKind::Opaque }];
                Stmt::block(vec![value], self.cond(1), block)
            }
            9 => {
                let cond = self.cond(0);
                let assume = Stmt::new(StmtKind::Assume(cond.clone()));
                let body = Stmt::seq([assume, self.body(depth + 1)]);
                match self.pick(2) {
                    0 => Stmt::guard(cond, body),
                    _ => {
                        let v = Var::index("x");
                        let value = self.value(1);
                        // Its last value is not known, so that it is no index by itself.
                        Stmt::seq([
                            Stmt::guard(cond, body),
                            Stmt::let_in(&v, value, self.under(&v, CELLS, depth)),
                        ])
                    }
                }
            }
            _ => {
                let at = self.pick(self.buffers.len() as i64) as usize;
                let (index, value) = (self.index(), self.value(0));
                Stmt::store(&self.buffers[at].clone(), vec![index], value)
            }
        }
    }

    fn under(&mut self, v: &Var, last: i64, depth: usize) -> Stmt {
        self.vars.push((v.clone(), last));
        let body = self.body(depth + 1);
        self.vars.pop();
        body
    }
}

fn fresh(s: &Stmt) -> Stmt {
    tilewright_ir::Fold::stmt(&mut tilewright_ir::visit::Subst::refresh(), s)
}

fn program(bytes: &[u8]) -> TensorFunc {
    let buffers = ["A", "B"].map(|n| Buffer::with_extents(n, &[CELLS], DType::I32));
    let mut g = Gen { bytes: bytes.iter(), buffers: buffers.to_vec(), vars: Vec::new() };
    let body = Stmt::seq((0..4).map(|_| g.stmt(0)).collect::<Vec<_>>());
    TensorFunc::new(buffers.iter().map(Param::tensor).collect(), body)
}

/// What the buffers hold after a run on small numbers, or the error.
fn results(func: &TensorFunc, seed: i32) -> Result<Vec<Vec<i32>>, String> {
    let small = |b: i32| (0..CELLS as i32).map(move |k| (k * k * (b + 3) + k + seed * (b + 1)) % 4);
    let data: Vec<Vec<i32>> = (0..2).map(|b| small(b).collect()).collect();
    let tensor = |d: &Vec<i32>| Tensor::from_slice(&[CELLS as usize], d).expect("it fits");
    let args: Vec<Arg> = data.iter().map(|d| Arg::Tensor(tensor(d))).collect();
    let outcome = run_func(func, &args, &RunOptions::default()).map_err(|e| e.render())?;
    let mut data = data;
    for o in outcome.outputs {
        data[o.param] = o.tensor.as_slice::<i32>().expect("int32").to_vec();
    }
    Ok(data)
}

fn check(bytes: &[u8], options: simplify::SimplifyOptions) -> Result<(), TestCaseError> {
    let func = program(bytes);
    let new = simplify(&func, options, &mut Remarks::new());
    let new = new.map_err(|e| TestCaseError::fail(format!("{}\n{func:?}", e.render())))?;
    equal_results(&func, &new)
}

fn equal_results(func: &TensorFunc, new: &TensorFunc) -> Result<(), TestCaseError> {
    for seed in 0..3 {
        let (before, after) = (results(func, seed), results(new, seed));
        // A program that divides by zero or the like may do so less often.
        if let Ok(before) = before {
            let text = || format!("{:#?}\nagainst\n{:#?}", func.body, new.body);
            prop_assert_eq!(after, Ok(before), "with data {}:\n{}", seed, text());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn random_programs_compute_the_same(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes, simplify::SimplifyOptions::default())?;
    }

    #[test]
    fn without_known_values_too(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check(&bytes, simplify::SimplifyOptions { values: false, conditions: true })?;
    }

    #[test]
    fn expressions_alone_compute_the_same(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let func = program(&bytes);
        let new = indices(&func);
        equal_results(&func, &new)?;
    }

    #[test]
    fn what_is_the_same_computes_the_same(
        bytes in prop::collection::vec(any::<u8>(), 1..60),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        let mut other = bytes.clone();
        other[at.index(bytes.len())] = to;
        let (f, g) = (program(&bytes), program(&other));
        if equivalent(&f, &g) {
            equal_results(&f, &g)?;
        }
        prop_assert!(equivalent(&f, &program(&bytes)));
    }
}
