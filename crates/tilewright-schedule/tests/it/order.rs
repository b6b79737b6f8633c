//! Random nests whose blocks read their own output, with iteration variables of any kind, under
//! random primitives that change the order or the kind of loops. Whatever is accepted computes the
//! same, also when the loops that run at once run backwards; what breaks the promise of a loop is
//! found by the interpreters.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::common::{module, same_results, text};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::visit::{Subst, fold_func, fold_stmt_children};
use tilewright_ir::{Expr, Fold, ForKind, Module, Result, Stmt, StmtKind, Tensor, TensorFunc};
use tilewright_polyhedral::at_once;
use tilewright_schedule::value::{Lambda, LambdaItem, LoopRef};
use tilewright_schedule::{Permissions, Schedule};

/// A nest of two loops around one block.
#[derive(Clone, Debug)]
struct Nest {
    n: [i64; 2],
    /// Which iteration variables are called reduced.
    reduced: [bool; 2],
    /// Which cell is stored to.
    cell: usize,
    /// Which other cell is read, by its distance.
    offset: [i64; 2],
    /// What is stored.
    value: usize,
    init: bool,
    kinds: [usize; 2],
}

fn nest() -> impl Strategy<Value = Nest> {
    let n = [2i64..=4, 2i64..=4];
    let pair = || any::<[bool; 2]>();
    (
        n,
        pair(),
        0usize..6,
        [-2i64..=2, -2i64..=2],
        0usize..12,
        any::<bool>(),
        [0usize..3, 0usize..3],
    )
        .prop_map(|(n, reduced, cell, offset, value, init, kinds)| {
            let init = init && reduced != [false; 2];
            Nest { n, reduced, cell, offset, value, init, kinds }
        })
}

/// Often a reduction of a row by an operator that commutes, which `rfactor` and
/// `decompose_reduction` take.
fn nest_or_reduction() -> impl Strategy<Value = Nest> {
    (nest(), 0usize..3, prop::sample::select(vec![1, 5])).prop_map(|(nest, which, value)| {
        match which {
            0 => Nest { reduced: [false, true], cell: 3, value, init: true, ..nest },
            _ => nest,
        }
    })
}

/// The program; `kinds` says whether the loops are of the kinds that the nest says, or serial.
fn program(s: &Nest, kinds: bool) -> String {
    let cell = |dx: i64, dy: i64| {
        let (x, y) = match s.cell {
            0 | 1 => ("vi", "vj"),
            2 => ("vj", "vi"),
            3 => ("vi", "0"),
            4 => ("0", "vj"),
            _ => ("(vi + vj) // 2", "1"),
        };
        format!("B[{x} + {}, {y} + {}]", 2 + dx, 2 + dy)
    };
    let own = cell(0, 0);
    let other = cell(s.offset[0], s.offset[1]);
    let x = "A[vi, vj]";
    let value = match s.value {
        0 => x.to_owned(),
        1 => format!("{own} + {x}"),
        2 => format!("{own} - {x} + vj"),
        3 => format!("{own} * 2 + {x}"),
        4 => format!("{x} - {own}"),
        5 => format!("T.max({x}, {own})"),
        6 => format!("{own} + {other}"),
        7 => format!("{other} + {x}"),
        8 => format!("T.bitwise_xor({own}, {x})"),
        9 => format!("T.if_then_else(vi > 0, {other}, 0) + {x}"),
        10 => format!("T.if_then_else({x} > 0, {own} * {x}, {own})"),
        _ => "7".to_owned(),
    };
    let mut text = String::from(
        "@T.prim_func\ndef main(A: T.Buffer((4, 4), \"int32\"), B: T.Buffer((8, 8), \"int32\")):\n",
    );
    for (k, v) in ["i", "j"].into_iter().enumerate() {
        let kind = match s.kinds[k] {
            _ if !kinds => "range",
            0 => "range",
            1 => "T.parallel",
            _ => "T.vectorized",
        };
        text += &format!("{}for {v} in {kind}({}):\n", "    ".repeat(k + 1), s.n[k]);
    }
    let pad = "            ";
    text += &format!("{pad}with T.block(\"B\"):\n");
    for (k, v) in ["i", "j"].into_iter().enumerate() {
        let kind = if s.reduced[k] { "reduce" } else { "spatial" };
        text += &format!("{pad}    v{v} = T.axis.{kind}({}, {v})\n", s.n[k]);
    }
    if s.init {
        text += &format!("{pad}    with T.init():\n{pad}        {own} = 1\n");
    }
    text + &format!("{pad}    {own} = {value}\n")
}

const PRIMITIVES: [&str; 11] = [
    "reorder",
    "parallel",
    "vectorize",
    "bind",
    "transform_block_layout",
    "transform_loops",
    "decompose_reduction",
    "sequential_buffer_access",
    "rfactor",
    "split",
    "fuse",
];

fn map(kind: usize) -> Lambda {
    Lambda::from_fn(["i", "j"], move |at: &[Expr]| -> Vec<LambdaItem> {
        let (i, j) = (at[0].clone(), at[1].clone());
        match kind {
            0 => vec![(&j).into(), (&i).into()],
            1 => vec![(&i).into(), (&(i.clone() + j)).into()],
            2 => vec![(&(i + &j)).into(), (&j).into()],
            _ => vec![(&(i * 4 + j)).into()],
        }
    })
}

fn apply(s: &mut Schedule, (primitive, k, kind): (usize, usize, usize)) -> Option<Result<()>> {
    let block = s.get_block("B", "main").ok()?;
    let loops = s.get_loops(&block).ok()?;
    let one = loops.get(k % loops.len().max(1))?.clone();
    let last_two: Vec<LoopRef> = loops.iter().rev().take(2).rev().cloned().collect();
    Some(match primitive {
        0 => {
            let mut order = loops;
            let by = (k % 2 + 1) % order.len();
            order.rotate_left(by);
            s.reorder(&order)
        }
        1 => s.parallel(&one),
        2 => s.vectorize(&one),
        3 => s.bind(&one, "threadIdx.x"),
        4 => s.transform_block_layout(&block, &map(kind)),
        5 => s.transform_loops(&last_two, &map(kind)).map(|_| ()),
        6 => s.decompose_reduction(&block, &one).map(|_| ()),
        7 => s.sequential_buffer_access(&block, "B").map(|_| ()),
        8 => s.rfactor(&one, 0).map(|_| ()),
        9 => s.split(&one, &[None, Some(Expr::int(2, one.var.dtype()))]).map(|_| ()),
        _ => s.fuse(&last_two).map(|_| ()),
    })
}

/// The same function with loops whose iterations run at once serial, and backwards.
fn backwards(f: &TensorFunc) -> TensorFunc {
    struct Turn;
    impl Fold for Turn {
        fn stmt(&mut self, s: &Stmt) -> Stmt {
            let s = fold_stmt_children(self, s);
            match s.kind() {
                StmtKind::For { var, range, kind, body, .. }
                    if !matches!(kind, ForKind::Serial | ForKind::Unrolled) =>
                {
                    let turned = range.min.clone() * 2 + &range.extent - 1 - var.expr();
                    let body = Subst::vars([(var.clone(), turned)]).stmt(body);
                    Stmt::for_loop(var, range.clone(), ForKind::Serial, body)
                }
                _ => s,
            }
        }
    }
    fold_func(&mut Turn, f)
}

fn cases<S: Strategy>(
    n: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> std::result::Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases: n,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(8),
        ..ProptestConfig::default()
    };
    TestRunner::new(config).run(strategy, test).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn what_is_accepted_computes_the_same() {
    let count = RefCell::new(BTreeMap::<&str, [usize; 2]>::new());
    let step = (0..PRIMITIVES.len(), 0usize..3, 0usize..4);
    let programs = (nest_or_reduction(), prop::collection::vec(step, 1..=3));
    cases(1500, &programs, |(nest, steps)| {
        let source = program(&nest, false);
        let before = module(&source);
        let mut s = Schedule::new(before.clone(), Permissions::default());
        for step in &steps {
            if let Some(done) = apply(&mut s, *step) {
                count.borrow_mut().entry(PRIMITIVES[step.0]).or_default()
                    [usize::from(done.is_err())] += 1;
            }
        }
        let shown = text(&s);
        let (before, after) = (before.tensor("main").expect("main"), s.func("main").expect("main"));
        let same = std::panic::catch_unwind(|| {
            same_results(before, after);
            same_results(before, &backwards(after));
        });
        prop_assert!(same.is_ok(), "{source}\n{}\n{shown}", s.trace());
        Ok(())
    });
    let count = count.into_inner();
    for name in PRIMITIVES {
        let [yes, no] = count.get(name).copied().unwrap_or_default();
        let always = ["split", "fuse"].contains(&name);
        assert!(yes >= 10 && (no >= 4 || always), "`{name}`, accepted and refused: {count:?}");
    }
}

fn run(f: &TensorFunc) -> Result<Vec<Tensor>> {
    let tensor = |n: usize, of: fn(usize) -> i32| {
        let values: Vec<i32> = (0..n * n).map(of).collect();
        Tensor::from_slice(&[n, n], &values).map(Arg::Tensor)
    };
    let a = tensor(4, |k| (k as i32 * 7 + 3) % 11 - 4)?;
    let b = tensor(8, |k| (k as i32 * 5 + 1) % 13 - 5)?;
    let out = run_func(f, &[a, b], &RunOptions::default())?;
    Ok(out.outputs.into_iter().map(|o| o.tensor).collect())
}

fn verify(m: &Module) -> Result<tilewright_verify::Verdict> {
    tilewright_verify::functions(m, "main", m, "main", &tilewright_verify::VerifyOptions::default())
}

#[test]
fn a_broken_promise_is_found() {
    let count = RefCell::new([0usize; 3]);
    cases(1500, &nest(), |nest| {
        let source = program(&nest, true);
        let m = module(&source);
        let f = m.tensor("main").expect("main");
        let stated = at_once::check_promises(f);
        let proved = verify(&m);
        let mut count = count.borrow_mut();
        match run(f) {
            Ok(outputs) => {
                count[0] += 1;
                let turned = run(&backwards(f)).map_err(|e| TestCaseError::fail(e.render()))?;
                let same = outputs.iter().zip(&turned).all(|(a, b)| a.same(b));
                prop_assert!(same, "another result backwards:\n{source}");
            }
            Err(e) => {
                count[1] += 1;
                let what = e.render();
                prop_assert!(what.contains("which one of them writes"), "{what}\n{source}");
                let found = !matches!(proved, Ok(tilewright_verify::Verdict::Equal(_)));
                prop_assert!(found, "not found on symbols: {what}\n{source}");
            }
        }
        if let Err(e) = stated {
            count[2] += 1;
            prop_assert!(proved.is_err(), "{}\n{source}", e.render());
        }
        Ok(())
    });
    let count = count.into_inner();
    assert!(count.iter().all(|n| *n >= 100), "kept, broken, seen without running: {count:?}");
}
