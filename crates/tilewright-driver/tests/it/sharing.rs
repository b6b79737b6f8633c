//! How contractions are shared by threads: the largest part of their work that one iteration of a
//! parallel loop has, and what is left to one thread, from the lowered code alone.

use tilewright_driver::random::Random;
use tilewright_driver::{Options, Session, Target};
use tilewright_ir::visit::Subst;
use tilewright_ir::{Expr, Fold, ForKind, Stmt, StmtKind};

use crate::schedules::{chain, channels_last, grouped, image, product};

/// How many values a statement adds to others. Of branches that nothing decides, the one with more.
fn sums(s: &Stmt) -> i64 {
    match s.kind() {
        StmtKind::For { range, body, .. } => range.extent.as_int().unwrap_or(1) * sums(body),
        StmtKind::Seq(list) => list.iter().map(sums).sum(),
        StmtKind::If { cond, then, otherwise } => {
            let other = || otherwise.as_ref().map_or(0, sums);
            match (cond.is_true(), cond.is_false()) {
                (true, _) => sums(then),
                (_, true) => other(),
                _ => sums(then).max(other()),
            }
        }
        StmtKind::Store { buffer, value, .. } => {
            let adds = value.loads_from(|b| b == buffer);
            i64::from(adds) * i64::from(value.dtype().lanes)
        }
        _ => s.body().map_or(0, sums),
    }
}

/// The sums outside of parallel loops, and those of each iteration of each parallel loop.
fn shares(s: &Stmt, serial: &mut i64, parallel: &mut Vec<Vec<i64>>) {
    match s.kind() {
        StmtKind::For { var, range, kind: ForKind::Parallel, body, .. } => {
            let count = range.extent.as_int().expect("a constant extent");
            let iteration = |i| {
                let at = Expr::int(i, var.dtype()) + &range.min;
                sums(&Subst::vars([(var.clone(), at)]).stmt(body))
            };
            parallel.push((0..count).map(iteration).collect());
        }
        StmtKind::Seq(list) => list.iter().for_each(|s| shares(s, serial, parallel)),
        StmtKind::For { range, body, .. } => {
            let before = *serial;
            shares(body, serial, parallel);
            *serial = before + (*serial - before) * range.extent.as_int().unwrap_or(1);
        }
        StmtKind::Store { .. } | StmtKind::If { .. } => *serial += sums(s),
        _ => {
            if let Some(body) = s.body() {
                shares(body, serial, parallel);
            }
        }
    }
}

#[test]
fn all_tiles_of_a_contraction_are_shared_at_once() {
    for cpu in ["x86-64-v3", "x86-64-v4"] {
        let target = Target::new("x86_64-unknown-linux-gnu", cpu, "");
        for (name, func) in [
            ("one strip of columns", image(64, 56, 1, 1)),
            ("65 channels", image(65, 19, 3, 1)),
            ("small images", image(256, 7, 3, 1)),
            ("groups", grouped(2, (48, 64), 15, 3)),
            ("product", product(96, 192, 192)),
            ("ragged product", product(77, 131, 330)),
            ("few rows", product(13, 512, 700)),
            ("a column more", product(64, 96, 65)),
            ("channels last", channels_last((65, 65), 19)),
        ] {
            let module = chain(&func, 1, &mut Random::new(1));
            let options = Options::new().threads(2).target(target.clone());
            let program = Session::new(options.clone())
                .lower(&module)
                .map(|lowering| lowering.program)
                .expect("it lowers");
            let (mut serial, mut loops) = (0, Vec::new());
            for (_, f) in program.functions().expect("functions") {
                shares(&f.body, &mut serial, &mut loops);
            }
            loops.retain(|l| l.iter().sum::<i64>() > 0);
            let all = loops.iter().flatten().sum::<i64>();
            assert!(serial * 50 <= all, "{name} on {cpu}: {serial} of {all} alone");
            let [parts] = &loops[..] else {
                panic!("{name} on {cpu}: {} loops, not one", loops.len())
            };
            let largest = parts.iter().max().copied().unwrap_or(0);
            assert!(largest * 4 <= all, "{name} on {cpu}: {largest} of {all} in one iteration");
        }
    }
}
