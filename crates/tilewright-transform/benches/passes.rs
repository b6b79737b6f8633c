//! How the passes that rest on flow grow with a function: `cargo bench -p tilewright-transform`.
//!
//! Two shapes of function with twice as many blocks as guards. In a *chain*, each stage writes a
//! padded buffer of its own under a guard, then its padding, and reads the stage before. In a *row*,
//! all stages write parts of one buffer.

use std::time::{Duration, Instant};

use tilewright_ir::{
    Block, Buffer, DType, Expr, IterKind, IterVar, Param, Range, Remarks, Stmt, StmtKind,
    TensorFunc, Var,
};
use tilewright_transform::{no_op, overcompute, simplify};

/// A block over loops that it takes one variable each for.
fn block(name: String, extents: &[i64], body: impl FnOnce(&[Var]) -> Stmt) -> Stmt {
    let loops: Vec<Var> = (0..extents.len()).map(|k| Var::index(format!("i{k}"))).collect();
    let vars: Vec<Var> = (0..extents.len()).map(|k| Var::index(format!("v{k}"))).collect();
    let mut block = Block::new(name, body(&vars));
    for (v, n) in vars.iter().zip(extents) {
        let domain = Range::upto(Expr::int(*n, DType::I32));
        block.iters.push(IterVar { var: v.clone(), domain, kind: IterKind::Spatial });
    }
    let inner = Stmt::block(loops.iter().map(Var::expr).collect(), Expr::bool(true), block);
    let around = loops.iter().zip(extents).rev();
    around.fold(inner, |s, (v, n)| Stmt::serial(v, Expr::int(*n, DType::I32), s))
}

/// `stages` times two blocks, with one guard.
fn function(stages: i64, chain: bool) -> TensorFunc {
    let wide = if chain { 16 } else { 16 * stages };
    let buffer = |name: String| Buffer::with_extents(name, &[wide, 16], DType::F32);
    let (input, output) = (buffer("A".into()), buffer("B".into()));
    // The argument's padding may be read.
    let any = |v: &[Var]| {
        let cell = input.load(vec![v[0].expr(), v[1].expr()]);
        Stmt::new(StmtKind::Assume(cell.equal(Expr::undef(DType::F32))))
    };
    let mut body = vec![block("permission".into(), &[wide, 16], any)];
    let mut locals = Vec::new();
    let mut from = input.clone();
    for k in 0..stages {
        let to = if chain && k + 1 < stages { buffer(format!("B{k}")) } else { output.clone() };
        let row = |v: &Var| if chain { v.expr() } else { v.expr() + 16 * k };
        body.push(block(format!("stage{k}"), &[16, 16], |v| {
            let at = vec![row(&v[0]), v[1].expr()];
            let value = from.load(at.clone()) + Expr::float(1.0, DType::F32);
            Stmt::guard((&v[0] * 16 + &v[1]).less(250), Stmt::store(&to, at, value))
        }));
        body.push(block(format!("pad{k}"), &[6], |v| {
            let row = Expr::i32(15) + if chain { 0 } else { 16 * k };
            Stmt::store(&to, vec![row, &v[0] + 10], Expr::float(0.0, DType::F32))
        }));
        if chain {
            locals.push(to.clone());
            from = to;
        }
    }
    locals.retain(|b| *b != output);
    let params = vec![Param::tensor(&input), Param::tensor(&output)];
    TensorFunc::new(params, Stmt::nop()).with_root(locals, Stmt::seq(body))
}

/// Time of the processor that this thread has used, where the system says; else the time of day.
fn now(start: Instant) -> Duration {
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = used.and_then(|s| s.split(' ').next()?.parse().ok());
    used.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// The best of some runs.
fn best(mut run: impl FnMut()) -> Duration {
    let start = Instant::now();
    let times = (0..3).map(|_| {
        let before = now(start);
        run();
        now(start).saturating_sub(before)
    });
    times.min().unwrap_or_default()
}

fn main() {
    for (name, chain) in [("chain", true), ("row", false)] {
        println!("{name}: milliseconds, and the exponent of growth since the line before");
        println!("blocks  simplify  remove_no_op  overcompute     all  exponent");
        let mut before: Option<(f64, f64)> = None;
        for blocks in [25, 50, 100, 200] {
            let f = function(blocks / 2, chain);
            let mut why = Remarks::new();
            let simple = best(|| drop(simplify::simplify(&f, Default::default(), &mut why)));
            let idle = best(|| drop(no_op::remove_no_op(&f, true, &mut why)));
            let options = overcompute::OvercomputeOptions::default();
            let mut left = Remarks::new();
            let over = best(|| {
                left.clear();
                drop(overcompute::remove_branching(&f, &options, &mut left));
            });
            assert!(left.is_empty(), "every guard goes: {:?}", left.first());
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            let all = ms(simple) + ms(idle) + ms(over);
            let grown = before.map(|(n, t)| (all / t).ln() / (blocks as f64 / n).ln());
            let grown = grown.map_or(String::new(), |g| format!("{g:.2}"));
            let (simple, idle, over) = (ms(simple), ms(idle), ms(over));
            println!("{blocks:6}{simple:10.1}{idle:14.1}{over:13.1}{all:8.1}{grown:>10}");
            before = Some((blocks as f64, all));
        }
    }
}
