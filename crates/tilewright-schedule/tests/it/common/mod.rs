//! Helpers for tests of primitives: text to a schedule and back, and the interpreter as judge.
#![allow(dead_code, reason = "each test file uses a part")]

use tilewright_interp::{Arg, Fill, RunOptions, Uninitialised, run_func};
use tilewright_ir::{DType, Module, Source, Tensor, TensorFunc};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_tvmscript::{parse_module, print_module};

/// The module of a text.
#[track_caller]
pub fn module(text: &str) -> Module {
    parse_module(&Source::new("test.py", text)).unwrap_or_else(|e| panic!("{}\n{text}", e.render()))
}

/// A schedule for the module of a text.
#[track_caller]
pub fn schedule(text: &str) -> Schedule {
    Schedule::new(module(text), Permissions::default())
}

/// The body of the function `main` as text, without its header.
pub fn text(sch: &Schedule) -> String {
    let all = print_module(sch.module());
    let lines = all.lines().skip_while(|l| !l.trim_start().starts_with("def ")).skip(1);
    let body: Vec<&str> = lines.collect();
    let cut = body.iter().map(|l| l.len() - l.trim_start().len()).min().unwrap_or(0);
    body.iter().map(|l| l.get(cut..).unwrap_or("").to_owned() + "\n").collect()
}

fn random_tensor(seed: &mut u64, dtype: DType, shape: &[usize]) -> Tensor {
    let mut next = || {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % 17
    };
    let n: usize = shape.iter().product();
    let made = match dtype {
        DType::F32 => {
            let values: Vec<f32> = (0..n).map(|_| next() as f32 - 8.0).collect();
            Tensor::from_slice(shape, &values)
        }
        DType::I8 => {
            let values: Vec<i8> = (0..n).map(|_| next() as i8 - 8).collect();
            Tensor::from_slice(shape, &values)
        }
        DType::I32 => {
            let values: Vec<i32> = (0..n).map(|_| next() as i32 - 8).collect();
            Tensor::from_slice(shape, &values)
        }
        other => panic!("no random tensors of {other}"),
    };
    made.expect("the size fits")
}

/// Runs both functions on the same random tensors, outputs included, and compares every cell.
#[track_caller]
pub fn same_results(before: &TensorFunc, after: &TensorFunc) {
    let mut seed = 7;
    let args: Vec<Arg> = before
        .buffers()
        .map(|b| {
            let shape: Vec<usize> = b
                .const_shape()
                .expect("constant shapes")
                .iter()
                .map(|&n| usize::try_from(n).expect("positive"))
                .collect();
            Arg::Tensor(random_tensor(&mut seed, b.dtype(), &shape))
        })
        .collect();
    let lenient = RunOptions {
        uninitialised: Uninitialised::Undef,
        fill: Fill::Random(99),
        ..RunOptions::default()
    };
    let x = run_func(before, &args, &RunOptions::default())
        .unwrap_or_else(|e| panic!("before: {}", e.render()));
    let y = run_func(after, &args, &lenient).unwrap_or_else(|e| panic!("after: {}", e.render()));
    for a in &x.outputs {
        let b = y.outputs.iter().find(|b| b.param == a.param);
        let b = b.unwrap_or_else(|| panic!("`{}` is no longer written", a.name));
        assert!(a.tensor.same(&b.tensor), "`{}`: {:?} became {:?}", a.name, a.tensor, b.tensor);
    }
    assert_eq!(x.outputs.len(), y.outputs.len(), "other outputs");
}
