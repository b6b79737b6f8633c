//! Sizes beyond `int32`: what `split`, `fuse` and `transform_layout` make of large random extents,
//! evaluated as the machine does it, against arithmetic in 128 bits.

use std::collections::HashMap;

use crate::common::schedule;
use proptest::prelude::*;
use tilewright_ir::scalar::{eval_int, wrap};
use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{DType, Expr, ExprKind, Stmt, StmtKind, Var, Visit, extent};
use tilewright_schedule::Schedule;
use tilewright_schedule::value::{Lambda, LambdaItem, Value};

/// The value that the machine computes.
fn eval(e: &Expr, env: &HashMap<Var, i64>) -> i64 {
    match e.kind() {
        ExprKind::Int(v) => *v,
        ExprKind::Var(v) => env[v],
        ExprKind::Cast(a) => wrap(eval(a, env), e.dtype()),
        ExprKind::Binary(op, a, b) => {
            assert_eq!(a.dtype(), b.dtype(), "in {e}");
            eval_int(*op, eval(a, env), eval(b, env), a.dtype()).expect("no division by zero")
        }
        _ => panic!("unexpected {e}"),
    }
}

/// Loops, bindings and predicate of the only block, and the indices of its store.
#[derive(Default)]
struct Nest {
    loops: Vec<(Var, i64)>,
    bindings: Vec<Expr>,
    iters: Vec<Var>,
    predicate: Option<Expr>,
    stored: Vec<Expr>,
}

impl Nest {
    fn find(s: &Schedule) -> Nest {
        let mut nest = Nest::default();
        nest.stmt(&s.func("main").expect("main").body);
        for (v, n) in &nest.loops {
            assert!(extent::holds(v.dtype(), i128::from(*n) - 1), "{v:?} counts to {n}");
        }
        nest
    }

    /// The values of the loops at a point of the box, each given as a share of its extent.
    fn at(&self, shares: &[f64]) -> HashMap<Var, i64> {
        let value = |n: i64, s: f64| ((n as f64 * s) as i64).clamp(0, n - 1);
        self.loops.iter().zip(shares).map(|((v, n), s)| (v.clone(), value(*n, *s))).collect()
    }
}

impl Visit for Nest {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::For { var, range, .. } => {
                let n = range.extent.as_int().expect("a constant");
                self.loops.push((var.clone(), n));
            }
            StmtKind::Block { bindings, predicate, block } if !block.iters.is_empty() => {
                self.bindings = bindings.clone();
                self.predicate = Some(predicate.clone());
                self.iters = block.iters.iter().map(|i| i.var.clone()).collect();
            }
            StmtKind::Store { indices, .. } => self.stored = indices.clone(),
            _ => {}
        }
        walk_stmt(self, s);
    }
}

/// `main` with a loop for each extent around a block that stores one element.
fn program(extents: &[i64]) -> Schedule {
    let list = |f: &dyn Fn(usize, i64) -> String| {
        let all: Vec<String> = extents.iter().enumerate().map(|(k, n)| f(k, *n)).collect();
        all.join(", ")
    };
    let vars: Vec<String> = extents
        .iter()
        .enumerate()
        .map(|(k, n)| format!("            v{k} = T.axis.spatial({n}, i{k})\n"))
        .collect();
    schedule(&format!(
        "@T.prim_func\ndef main():\n    A = T.alloc_buffer(({},), \"int8\")\n    for {} in T.grid({}):\n        with T.block(\"b\"):\n{}            A[{}] = T.int8(0)\n",
        list(&|_, n| n.to_string()),
        list(&|k, _| format!("i{k}")),
        list(&|_, n| n.to_string()),
        vars.concat(),
        list(&|k, _| format!("v{k}")),
    ))
}

fn size() -> impl Strategy<Value = i64> {
    let far = i64::from(i32::MAX);
    prop_oneof![1..=70i64, 40_000..=70_000i64, 1..=far, Just(far), Just(65536)]
}

fn shares() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![0.0..1.0, Just(0.0), Just(1.0)], 4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn split_covers_the_loop(
        n in size(), factors in prop::collection::vec(size(), 1..4), open in 0usize..5,
        points in prop::collection::vec(shares(), 4),
    ) {
        let mut s = program(&[n]);
        let b = s.get_block("b", "main").expect("a block");
        let l = s.get_loops(&b).expect("loops")[0].clone();
        let given = |(k, f): (usize, &i64)| (k != open).then(|| Expr::int(*f, DType::I64));
        let asked: Vec<Option<Expr>> = factors.iter().enumerate().map(given).collect();
        let product: i128 = factors
            .iter()
            .enumerate()
            .filter(|(k, _)| *k != open)
            .map(|(_, f)| i128::from(*f))
            .product();
        let n = i128::from(n);
        let whole = match open < factors.len() {
            true => product * ((n + product - 1) / product),
            false => product,
        };
        match s.split(&l, &asked) {
            Err(_) => prop_assert!(whole < n || whole > i128::from(i64::MAX)),
            Ok(_) => {
                let nest = Nest::find(&s);
                let extents: i128 = nest.loops.iter().map(|(_, e)| i128::from(*e)).product();
                prop_assert_eq!(extents, whole);
                for p in &points {
                    let env = nest.at(p);
                    let exact = nest
                        .loops
                        .iter()
                        .fold(0i128, |sum, (v, e)| sum * i128::from(*e) + i128::from(env[v]));
                    let runs = eval(nest.predicate.as_ref().expect("a block"), &env) == 1;
                    prop_assert_eq!(runs, exact < n);
                    if runs {
                        prop_assert_eq!(i128::from(eval(&nest.bindings[0], &env)), exact);
                    }
                }
            }
        }
    }

    #[test]
    fn fuse_counts_every_iteration(
        extents in prop::collection::vec(size(), 2..4),
        points in prop::collection::vec(shares(), 4),
    ) {
        let whole: i128 = extents.iter().map(|n| i128::from(*n)).product();
        // A buffer of more bytes than 64 bits count is no program.
        prop_assume!(whole <= i128::from(i64::MAX));
        let mut s = program(&extents);
        let b = s.get_block("b", "main").expect("a block");
        let l = s.get_loops(&b).expect("loops");
        s.fuse(&l).expect("fuses");
        let nest = Nest::find(&s);
        prop_assert_eq!(i128::from(nest.loops[0].1), whole);
        for p in &points {
            let env = nest.at(p);
            let mut left = i128::from(env[&nest.loops[0].0]);
            for (binding, n) in nest.bindings.iter().zip(&extents).rev() {
                let n = i128::from(*n);
                prop_assert_eq!(i128::from(eval(binding, &env)), left % n);
                left /= n;
            }
        }
    }

    #[test]
    fn a_layout_reaches_every_element(
        extents in prop::collection::vec(size(), 2), points in prop::collection::vec(shares(), 4),
    ) {
        let mut s = program(&extents);
        let b = s.get_block("b", "main").expect("a block");
        let inner = extents[1];
        let map = Lambda::from_fn(["i", "j"], move |at| {
            vec![LambdaItem::Expr(&at[0] * &Expr::int(inner, at[0].dtype()) + &at[1])]
        });
        let which = tilewright_schedule::BufferArg::Write(0);
        s.transform_layout(&b, which, &map, &Value::None, false).expect("is laid out");
        let nest = Nest::find(&s);
        let func = s.func("main").expect("main");
        let (allocs, _) = func.root_parts();
        let whole = i128::from(extents[0]) * i128::from(inner);
        prop_assert_eq!(allocs[0].const_shape().map(|s| i128::from(s[0])), Some(whole));
        for p in &points {
            let mut env = nest.at(p);
            let at: Vec<i64> = nest.loops.iter().map(|(v, _)| env[v]).collect();
            let bound: Vec<i64> = nest.bindings.iter().map(|e| eval(e, &env)).collect();
            env.extend(nest.iters.iter().cloned().zip(bound));
            let exact = i128::from(at[0]) * i128::from(inner) + i128::from(at[1]);
            prop_assert_eq!(i128::from(eval(&nest.stored[0], &env)), exact);
        }
    }
}
