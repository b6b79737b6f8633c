//! Tiles with random guards compute the same where rows that are not there repeat the last one.
//!
//! A tile has sums of its own, a row each, and statements that are made from bytes: most of them under the guard of
//! their row, some under none, under another one, at another row, or in loops and bindings that depend on the row.

use proptest::prelude::*;
use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{
    Buffer, DType, Expr, ForKind, Param, Range, Stmt, StmtKind, Tensor, TensorFunc, Var,
};
use tilewright_transform::lower::repeat_rows::repeat_rows;

/// Rows of a tile, and the most that there are.
const ROWS: i64 = 3;
const MOST: i64 = 10;

struct Gen<'a> {
    bytes: std::slice::Iter<'a, u8>,
    n: Var,
    /// The tile's number.
    t: Var,
    sums: [Buffer; 2],
    /// Whether memory of the tile is accessed at another place than that of the row.
    elsewhere: bool,
    a: Buffer,
    out: Buffer,
}

impl Gen<'_> {
    fn pick(&mut self, n: u8) -> u8 {
        self.bytes.next().map_or(0, |b| b % n)
    }

    fn row(&self, r: &Var) -> Expr {
        &self.t * ROWS + r.expr()
    }

    /// Memory of the tile, mostly at its row.
    fn cell(&mut self, r: &Var) -> (Buffer, Expr) {
        let buffer = self.sums[usize::from(self.pick(2))].clone();
        let at = match self.pick(12) {
            0 => Expr::i32(1),
            1 => Expr::i32(ROWS as i32 - 1) - r.expr(),
            _ => return (buffer, r.expr()),
        };
        self.elsewhere = true;
        (buffer, at)
    }

    fn value(&mut self, r: &Var, more: &Expr) -> Expr {
        match self.pick(6) {
            // What the tile holds says what is read.
            4 => {
                let (b, at) = self.cell(r);
                self.a.load([b.load([at])])
            }
            5 => {
                let (b, at) = self.cell(r);
                let held = b.load([at]);
                Expr::if_then_else(held.clone().less(2i64), self.a.load([held]), Expr::i32(2))
            }
            0 => Expr::i32(3),
            1 => self.a.load([self.row(r)]) + more.clone(),
            2 => {
                let (b, at) = self.cell(r);
                b.load([at])
            }
            _ => {
                let (b, at) = self.cell(r);
                b.load([at]) + self.a.load([self.row(r)]) * 2
            }
        }
    }

    fn store(&mut self, r: &Var, more: &Expr) -> Stmt {
        let value = self.value(r, more);
        match self.pick(4) {
            0 => Stmt::store(&self.out, vec![self.row(r)], value),
            _ => {
                let (b, at) = self.cell(r);
                Stmt::store(&b, vec![at], value)
            }
        }
    }

    /// A statement of a row, under its guard.
    fn guarded(&mut self, r: &Var, more: &Expr) -> Stmt {
        let store = self.store(r, more);
        let there = self.row(r).less(&self.n);
        match self.pick(12) {
            0 => Stmt::guard(there.and(r.expr().not_equal(1i64)), store),
            1 => Stmt::guard(there.and(self.t.expr().less(2i64)), store),
            2 => Stmt::guard(self.row(r).less(self.n.expr() - 1), store),
            3 => Stmt::guard(there, Stmt::seq([store, self.store(r, more)])),
            // In range, and under no guard.
            4 => Stmt::store(&self.sums[0], vec![r.expr()], Expr::i32(1)),
            _ => Stmt::guard(there, store),
        }
    }

    /// A loop over rows.
    fn rows(&mut self) -> Stmt {
        let (r, k) = (Var::index("r"), Var::index("k"));
        let kind = if self.pick(2) == 0 { ForKind::Unrolled } else { ForKind::Serial };
        let body = match self.pick(8) {
            0 => {
                let body = self.guarded(&r, &k.expr());
                let range = Range::upto(r.expr() + 1);
                Stmt::for_loop(&k, range, ForKind::Serial, body)
            }
            1 => {
                let body = self.guarded(&r, &k.expr());
                Stmt::serial(&k, Expr::i32(2), body)
            }
            2 => {
                let body = self.guarded(&r, &k.expr());
                Stmt::let_in(&k, r.expr() + 1, body)
            }
            _ => self.guarded(&r, &Expr::i32(1)),
        };
        Stmt::for_loop(&r, Range::upto(Expr::i32(ROWS as i32)), kind, body)
    }
}

fn function(bytes: &[u8]) -> TensorFunc {
    let (n, t) = (Var::index("n"), Var::index("t"));
    // Memory may have places for those rows alone that a small number of rows has.
    let places = ROWS - i64::from(bytes.last().is_some_and(|b| b % 4 == 0));
    let sums = ["sums", "more"].map(|name| {
        Buffer::with_extents(name, &[places], DType::I32).derive(|b| b.scope = "local".into())
    });
    let [a, out] = ["a", "out"].map(|name| Buffer::with_extents(name, &[MOST], DType::I32));
    let (a2, out2) = (a.clone(), out.clone());
    let bytes = bytes.iter();
    let mut g = Gen { bytes, n: n.clone(), t: t.clone(), sums, elsewhere: false, a, out };
    let count = 2 + g.pick(5);
    let steps: Vec<Stmt> = (0..count).map(|_| g.rows()).collect();
    // Everything has a value before it is read, also what a row reads of another one.
    let begin = g.sums.clone().map(|b| {
        let r = Var::index("r");
        let store = Stmt::store(&b, vec![r.expr()], Expr::i32(0));
        let there = g.row(&r).less(&n);
        let always = g.elsewhere || g.pick(4) == 0;
        let store = if always { store } else { Stmt::guard(there, store) };
        Stmt::serial(&r, Expr::i32(ROWS as i32), store)
    });
    let body = Stmt::seq(begin.into_iter().chain(steps));
    let body = g.sums.iter().fold(body, |body, b| {
        let (buffer, annotations) = (b.clone(), Default::default());
        Stmt::new(StmtKind::Allocate { buffer, annotations, body })
    });
    // There may be a tile without a row.
    let tiles = match g.pick(3) {
        0 => Expr::i32(3),
        _ => (n.expr() + (ROWS - 1)).floordiv(ROWS),
    };
    let params = vec![Param::tensor(&a2), Param::tensor(&out2), Param::Scalar(n)];
    TensorFunc::new(params, Stmt::serial(&t, tiles, body))
}

fn results(func: &TensorFunc, n: i32) -> Result<Vec<i32>, String> {
    let data: Vec<i32> = (0..MOST as i32).map(|k| k * k % 7 + 1).collect();
    let tensor = || Arg::Tensor(Tensor::from_slice(&[MOST as usize], &data).expect("it fits"));
    let args = [tensor(), tensor(), Arg::Scalar(n.into())];
    let outcome = run_func(func, &args, &RunOptions::default()).map_err(|e| e.render())?;
    Ok(outcome
        .outputs
        .iter()
        .flat_map(|o| o.tensor.as_slice::<i32>().expect("int32").to_vec())
        .collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_that_are_not_there_change_nothing(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let func = function(&bytes);
        let new = repeat_rows(&func);
        for n in 0..=MOST as i32 - 1 {
            if let Ok(before) = results(&func, n) {
                prop_assert_eq!(results(&new, n), Ok(before), "n = {}\n{:#?}", n, new.body);
            }
        }
    }
}

#[test]
fn guards_go_in_some_of_them() {
    let changed = (0u32..400).filter(|k| {
        let bytes: Vec<u8> =
            (0..60).map(|i| (k.wrapping_mul(2654435761) >> (i % 24)) as u8).collect();
        let func = function(&bytes);
        !repeat_rows(&func).body.ptr_eq(&func.body)
    });
    assert!(changed.count() > 20);
}
