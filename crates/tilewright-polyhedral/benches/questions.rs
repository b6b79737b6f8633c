//! How long a question takes: `cargo bench -p tilewright-polyhedral`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright_ir::{Buffer, DType, Expr, Range, Var};
use tilewright_polyhedral::{AccessRelation, Engine, Flow, ScheduleDim, Statement};

/// `stages` stages in a row, each an initialisation and a guarded accumulation over a padded
/// buffer that the next stage reads.
fn chain(engine: &Engine, stages: i64) -> Vec<Statement> {
    let mut program = Vec::new();
    let mut previous: Option<Buffer> = None;
    for k in 0..stages {
        let b = Buffer::with_extents(format!("B{k}"), &[16, 16], DType::F32);
        for pass in 0..3 {
            let [i, j, f] = ["i", "j", "f"].map(Var::index);
            let flat = &i * 16 + &j;
            let mut extents = vec![(i.clone(), 16), (j.clone(), 16)];
            let mut at = vec![ScheduleDim::Sequence(2 * k + pass / 2)];
            at.extend([
                ScheduleDim::Loop(i.clone()),
                ScheduleDim::Loop(j.clone()),
                ScheduleDim::Sequence(pass),
            ]);
            let guard = match pass {
                0 => Expr::bool(true),
                1 => {
                    extents.push((f.clone(), 3));
                    at.push(ScheduleDim::Loop(f.clone()));
                    (&flat + &f).less(250)
                }
                _ => flat.clone().greater_equal(250),
            };
            let d = engine.box_of(&extents).with_guard(&guard);
            let cell = [i.expr(), j.expr()];
            let mut s = Statement::new(&d, at).writes(&b, &cell);
            if pass == 1 {
                s = s.reads(&b, &cell);
                if let Some(p) = &previous {
                    let from = &flat + &f;
                    s = s.reads(p, &[from.clone().floordiv(16), from.floormod(16)]);
                }
            }
            program.push(s);
        }
        previous = Some(b);
    }
    program
}

fn questions(c: &mut Criterion) {
    let engine = Engine::new();
    let [i, io, ii, n] = ["i", "io", "ii", "n"].map(Var::index);
    let tiles = engine.box_of(&[(io.clone(), 4), (ii.clone(), 4)]);
    let flat = &io * 4 + &ii;
    let range = Range::upto(n.expr());

    c.bench_function("domain", |b| {
        b.iter(|| {
            engine.box_of(&[(io.clone(), 4), (ii.clone(), 4)]).with_guard(&flat.clone().less(14))
        });
    });
    let back = flat.clone().floordiv(4) * 4 + flat.clone().floormod(4);
    c.bench_function("equality", |b| b.iter(|| tiles.equal(black_box(&back), &flat)));
    let line = engine.box_of(&[(i.clone(), 14)]);
    let digits = i.expr().floordiv(4) * 4 + i.expr().floormod(4);
    c.bench_function("equality, split", |b| b.iter(|| line.equal(black_box(&digits), &i.expr())));
    let guard = flat.clone().less(16);
    c.bench_function("implication", |b| b.iter(|| tiles.prove(black_box(&guard))));
    let refuted = flat.clone().less(14);
    c.bench_function("refutation", |b| b.iter(|| tiles.prove(black_box(&refuted))));
    let modulo = flat.clone().floormod(4);
    c.bench_function("simplify index", |b| b.iter(|| tiles.simplify(black_box(&modulo))));
    c.bench_function("simplify condition", |b| b.iter(|| tiles.simplify(black_box(&refuted))));

    let split = [i.expr().floordiv(4), i.expr().floormod(4)];
    let cells = [io.clone(), ii.clone()];
    let map = line.map(&split).expect("affine");
    c.bench_function("collision", |b| b.iter(|| map.collision()));
    c.bench_function("inverse", |b| b.iter(|| map.inverse(black_box(&cells))));
    c.bench_function("padding", |b| b.iter(|| map.image(black_box(&cells))));
    let symbolic = engine.domain_of(&[(i.clone(), range)], &[n.expr().greater_equal(4)]);
    let map = symbolic.map(&split).expect("affine");
    c.bench_function("padding, symbolic", |b| b.iter(|| map.image(black_box(&cells))));

    let write = AccessRelation::new(&tiles, std::slice::from_ref(&flat));
    let (read, names) = AccessRelation::new(&tiles, &[&flat + 1]).elsewhere();
    let when = [io.expr().less(&names[&io])];
    c.bench_function("independence", |b| b.iter(|| write.independent(black_box(&read), &when)));

    for stages in [1, 20, 80] {
        let program = chain(&engine, stages);
        let name = format!("flow, {} statements", program.len());
        c.bench_function(&name, |b| b.iter(|| Flow::compute(&engine, black_box(&program))));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1));
    targets = questions
}
criterion_main!(benches);
