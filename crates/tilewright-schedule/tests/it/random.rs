//! Random programs under random primitives: whatever is accepted computes the same, and each
//! primitive is accepted often enough for that to say something.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::common::{module, same_results, text};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_ir::{Expr, Result};
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::{BlockRef, Lambda, LambdaItem, LoopRef};
use tilewright_schedule::{Permissions, Schedule};

/// How a stage runs.
#[derive(Clone, Debug)]
struct Nest {
    /// Which order its loops have.
    order: usize,
    /// Iterations of the inner loop where the first axis is split; 0 where it is not.
    tile: i64,
    /// Which value it computes.
    value: usize,
}

fn nest() -> impl Strategy<Value = Nest> {
    (0usize..3, 0i64..=3, 0usize..8).prop_map(|(order, tile, value)| Nest { order, tile, value })
}

/// The loops of `axes` around a block, indented by `depth`: `(name, extent, kind, split)`.
fn block(
    name: &str,
    axes: &[(&str, i64, bool)],
    s: &Nest,
    depth: usize,
    body: &[String],
) -> String {
    let mut loops: Vec<(String, i64)> = Vec::new();
    let mut lines = Vec::new();
    let mut guards = Vec::new();
    for (k, (axis, n, reduced)) in axes.iter().enumerate() {
        let kind = if *reduced { "reduce" } else { "spatial" };
        let value = if k == 0 && s.tile > 0 {
            let tiles = (n + s.tile - 1) / s.tile;
            loops.push((format!("{axis}o"), tiles));
            loops.push((format!("{axis}i"), s.tile));
            let value = format!("{axis}o * {} + {axis}i", s.tile);
            if tiles * s.tile != *n {
                guards.push(format!("{value} < {n}"));
            }
            value
        } else {
            loops.push(((*axis).into(), *n));
            (*axis).into()
        };
        lines.push(format!("v{axis} = T.axis.{kind}({n}, {value})"));
    }
    match s.order {
        1 => loops.reverse(),
        2 => loops.rotate_left(1),
        _ => {}
    }
    lines.extend(guards.iter().map(|g| format!("T.where({g})")));
    lines.extend(body.iter().cloned());
    let names: Vec<&str> = loops.iter().map(|(v, _)| &**v).collect();
    let extents: Vec<String> = loops.iter().map(|(_, n)| n.to_string()).collect();
    let indent = " ".repeat(depth * 4);
    let mut out = match loops.len() {
        1 => format!("{indent}for {} in range({}):\n", names[0], extents[0]),
        _ => format!("{indent}for {} in T.grid({}):\n", names.join(", "), extents.join(", ")),
    };
    out += &format!("{indent}    with T.block(\"{name}\"):\n");
    for line in lines {
        out += &format!("{indent}        {line}\n");
    }
    out
}

/// A stage that computes all of `out` from `x`.
fn stage(out: &str, x: &str, n: i64, s: &Nest) -> String {
    let set = |value: String| vec![format!("{out}[vi, vj] = {value}")];
    let sum = |op: &str, init: String| {
        let update = match op {
            "+" => format!("{out}[vi, vj] + {x}[vi, vk] * {x}[vj, vk]"),
            _ => format!("{op}({out}[vi, vj], {x}[vk, vi])"),
        };
        vec![
            "with T.init():".into(),
            format!("    {out}[vi, vj] = {init}"),
            format!("{out}[vi, vj] = {update}"),
        ]
    };
    let (body, reduced) = match s.value {
        0 => (set(format!("{x}[vi, vj] * 2")), false),
        1 => (set(format!("{x}[vj, vi] + 1")), false),
        2 => (set(format!("{x}[vi, vj] + {x}[vi, (vj + 1) % {n}]")), false),
        3 => (set(format!("{x}[vi, 0] - vj")), false),
        4 => (set(format!("T.if_then_else(vi <= vj, {x}[vi, vj], 3)")), false),
        5 => (sum("+", "1".into()), true),
        6 => (sum("T.max", format!("{x}[vi, vj]")), true),
        _ => (sum("T.min", "5".into()), true),
    };
    let mut axes = vec![("i", n, false), ("j", n, false)];
    if reduced {
        axes.push(("k", n, true));
    }
    block(out, &axes, s, 1, &body)
}

/// Stages B, D and C one after the other; B and D may share the loop over rows.
fn program(n: i64, shared: bool, again: bool, stages: &[Nest; 3]) -> String {
    let mut body = String::new();
    if shared {
        body += &format!("    for r in range({n}):\n");
        for (out, x, s) in [("B", "A", &stages[0]), ("D", "B", &stages[1])] {
            let plain = Nest { order: 0, ..s.clone() };
            let at = if s.value % 2 == 0 { "vj".into() } else { format!("(vj + 1) % {n}") };
            let set = [
                format!("vi = T.axis.spatial({n}, r)"),
                format!("{out}[vi, vj] = {x}[vi, {at}] + 1"),
            ];
            body += &block(out, &[("j", n, false)], &plain, 2, &set);
        }
    } else {
        body += &stage("B", "A", n, &stages[0]);
        if again {
            let plus = ["B[vi, vj] = B[vi, vj] + 1".to_owned()];
            body += &block("again", &[("i", n, false), ("j", n, false)], &stages[0], 1, &plus);
        }
        body += &stage("D", "B", n, &stages[1]);
    }
    body += &stage("C", "D", n, &stages[2]);
    let buffer = format!("T.Buffer(({n}, {n}), \"int32\")");
    format!(
        "@T.prim_func\ndef main(A: {buffer}, C: {buffer}):\n    \
         B = T.alloc_buffer(({n}, {n}), \"int32\")\n    D = T.alloc_buffer(({n}, {n}), \"int32\")\n{body}"
    )
}

/// What is asked for: a primitive, the blocks that it is about, and two numbers.
type Step = (usize, usize, usize, usize, usize);

const PRIMITIVES: [&str; 10] = [
    "compute_at",
    "reverse_compute_at",
    "compute_inline",
    "reverse_compute_inline",
    "rfactor",
    "decompose_reduction",
    "reindex_cache_read",
    "reindex_cache_write",
    "split",
    "parallel",
];

fn the_loop(s: &mut Schedule, block: &BlockRef, k: usize) -> Option<LoopRef> {
    let loops = s.get_loops(block).ok()?;
    loops.get(k % loops.len().max(1)).cloned()
}

fn apply(s: &mut Schedule, step: &Step) -> Option<Result<()>> {
    const BLOCKS: [&str; 4] = ["B", "D", "C", "again"];
    let (primitive, block, other, k, kind) = *step;
    let block = s.get_block(BLOCKS[block], "main").ok()?;
    let other = s.get_block(BLOCKS[other], "main").ok()?;
    let (units, position) =
        (kind % 2 == 0, if kind < 2 { Position::Last } else { Position::First });
    let turned = |kind: usize| {
        Lambda::from_fn(["i", "j"], move |at: &[Expr]| -> Vec<LambdaItem> {
            match kind {
                0 => vec![(&at[1]).into(), (&at[0]).into()],
                1 => vec![
                    (&at[0]).into(),
                    at[1].clone().floordiv(2).into(),
                    at[1].clone().floormod(2).into(),
                ],
                _ => vec![(at[0].clone() * 7 + &at[1]).into()],
            }
        })
    };
    Some(match primitive {
        0 => {
            let l = the_loop(s, &other, k)?;
            s.compute_at(&block, &l, units, position)
        }
        1 => {
            let l = the_loop(s, &other, k)?;
            s.reverse_compute_at(&block, &l, units, position)
        }
        2 => s.compute_inline(&block),
        3 => s.reverse_compute_inline(&block),
        4 => {
            let l = the_loop(s, &block, k)?;
            let axis = i64::try_from(kind).ok()? - 2;
            s.rfactor(&l, axis).map(|_| ())
        }
        5 => {
            let l = the_loop(s, &block, k)?;
            s.decompose_reduction(&block, &l).map(|_| ())
        }
        6 => s.reindex_cache_read(&block, 0, "local", &turned(kind)).map(|_| ()),
        7 => s.reindex_cache_write(&block, 0, "local", &turned(kind)).map(|_| ()),
        8 => {
            let l = the_loop(s, &block, k)?;
            let factor = i64::try_from(kind).ok()? + 1;
            s.split(&l, &[None, Some(Expr::int(factor, l.var.dtype()))]).map(|_| ())
        }
        _ => {
            let l = the_loop(s, &block, k)?;
            s.parallel(&l)
        }
    })
}

#[test]
fn results_stay() {
    let accepted = RefCell::new(BTreeMap::<&str, usize>::new());
    let step = (0..PRIMITIVES.len(), 0usize..4, 0usize..4, 0usize..4, 0usize..4);
    let stages = (nest(), nest(), nest()).prop_map(|(a, b, c)| [a, b, c]);
    let cases =
        ((1i64..=5, any::<bool>(), any::<bool>(), stages), prop::collection::vec(step, 1..=4));
    let config =
        ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() };
    let run = TestRunner::new(config).run(&cases, |((n, shared, again, stages), steps)| {
        let source = program(n, shared && !again, again, &stages);
        let before = module(&source);
        let mut s = Schedule::new(before.clone(), Permissions::default());
        let mut done = 0;
        for step in &steps {
            if let Some(Ok(())) = apply(&mut s, step) {
                *accepted.borrow_mut().entry(PRIMITIVES[step.0]).or_default() += 1;
                done += 1;
            }
        }
        if done > 0 {
            let shown = text(&s);
            let (before, after) = (before.tensor("main"), s.func("main"));
            let same = std::panic::catch_unwind(|| {
                same_results(before.expect("main"), after.expect("main"));
            });
            prop_assert!(same.is_ok(), "{source}\n{}\n{shown}", s.trace());
        }
        Ok(())
    });
    run.unwrap_or_else(|e| panic!("{e}"));
    let accepted = accepted.into_inner();
    for name in PRIMITIVES {
        let n = accepted.get(name).copied().unwrap_or(0);
        assert!(n >= 10, "`{name}` was accepted {n} times only: {accepted:?}");
    }
}
