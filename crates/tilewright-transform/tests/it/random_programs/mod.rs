//! Every pass against the interpreters, on random programs.
//!
//! Each pass by itself, and some of them one after the other with a simplification at the end, must
//! leave in every argument what the program leaves there: for all data, by symbols, and for data in
//! which all that is arbitrary is `NaN`. A failure shrinks to a small program. How many programs
//! each pass changes is counted, since a pass that changes none is not tested.
//!
//! The programs are the same in every run; `PROGRAMS_SEED=8 cargo test` makes others.

mod make;

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestError, TestRunner};
use tilewright_interp::{Arg, Fill, RunOptions, Scalar, State, Uninitialised, run_func};
use tilewright_ir::visit::{Subst, walk_stmt};
use tilewright_ir::well_formed::check_tensor;
use tilewright_ir::{
    DType, Expr, Fold, Module, Param, Remarks, Result, Stmt, StmtKind, Tensor, TensorFunc, Visit,
    equal,
};
use tilewright_transform::PASSES;
use tilewright_transform::partition::partition_loop;
use tilewright_transform::pass::{self, Config};
use tilewright_tvmscript::print_module;

use make::{Program, SIZE, SIZES, USED, program};

/// Programs of a run.
const PROGRAMS: usize = 2000;
/// Threads that share them.
const THREADS: usize = 2;
/// Passes that drop permissions to read cells that hold nothing.
const FORGET: [&str; 2] = ["remove_assume", "remove_store_undef"];
/// Passes that run one after the other.
const CHAIN: usize = 3;

/// A pass with options, or something else to be done to a function.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Programs of a run that it changes, at least: well below what is usual.
    changes: usize,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    /// The pass of this name, with options.
    Pass(&'static str, &'static [(&'static str, &'static str)]),
    /// Something that is no pass.
    Change(fn(&TensorFunc, &mut Remarks) -> Result<TensorFunc>),
}

impl Case {
    fn run(&self, f: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
        match self.does {
            Does::Change(change) => change(f, why),
            Does::Pass(name, options) => {
                let pass = pass::find(PASSES, name)?;
                let with = |c: Config, (key, value): &(&str, &str)| c.with(*key, *value);
                let config = options.iter().fold(Config::new(), with);
                pass::check(&config, &[pass], PASSES)?;
                let new = pass.apply(&module(f), &config, why)?;
                Ok((**new.tensor("main")?).clone())
            }
        }
    }
}

/// Passes that take functions in other forms than these programs have, or leave others.
const OTHER_FORMS: [&str; 11] = [
    "flatten_buffer",
    "inline",
    "lift_scratch",
    "lower",
    "lower_blocks",
    "lower_opaque_block",
    // It has random programs of its own.
    "repeat_rows",
    "storage_flatten",
    "use_assume_to_reduce_branches",
    "use_border",
    "vectorize_loop",
];

/// How many programs passes change at least, where that is not one.
const CHANGES: [(&str, usize); 13] = [
    // It only says something.
    ("count_warp_accesses", 0),
    ("hoist_expression", 120),
    ("hoist_if", 12),
    ("loop_partition", 0),
    ("merge_adjacent_loops", 400),
    ("reduce_loop_extents", 550),
    ("remove_assume", 500),
    (BRANCHING, 250),
    ("remove_no_op", 250),
    ("remove_overcompute_through_branching", 30),
    ("remove_store_undef", 400),
    ("renormalize_split_pattern", 650),
    (SIMPLIFY, 800),
];

const SIMPLIFY: &str = "simplify";
const BRANCHING: &str = "remove_branching_through_overcompute";

/// More than the passes of the table as they are.
static MORE: &[Case] = &[
    Case {
        name: "remove_no_op by text",
        changes: 25,
        does: Does::Pass("remove_no_op", &[("use_dataflow_analysis", "0")]),
    },
    Case {
        name: "hoist_expression of expressions",
        changes: 110,
        does: Does::Pass(
            "hoist_expression",
            &[("hoisted_conditionals", "6"), ("hoisted_let_bindings", "5")],
        ),
    },
    Case {
        name: "loop_partition of all loops",
        changes: 110,
        does: Does::Pass(
            "loop_partition",
            &[("partition_const_loop", "1"), ("unroll_loop_with_partition_hint_no_interval", "1")],
        ),
    },
    Case {
        name: "loop_partition of one loop",
        changes: 900,
        does: Does::Change(|f, why| match first_loop(f) {
            Some(target) => {
                let extents = [Some(Expr::i32(1)), None, Some(Expr::i32(1))];
                Ok(partition_loop(f, &target, Some(&extents), why)?.0)
            }
            None => Ok(f.clone()),
        }),
    },
];

/// Every pass of the table that fits, and [`MORE`].
fn cases() -> Vec<Case> {
    let names = PASSES.iter().map(|p| p.name).filter(|name| !OTHER_FORMS.contains(name));
    let case = |name: &'static str| {
        let changes = CHANGES.iter().find(|(pass, _)| *pass == name).map_or(1, |(_, n)| *n);
        Case { name, changes, does: Does::Pass(name, &[]) }
    };
    names.map(case).chain(MORE.iter().copied()).collect()
}

/// Where a remark of [`BRANCHING`] says that an option would help.
static OPTIONS: [Case; 2] = [
    Case {
        name: "remove_branching_through_overcompute, indices modulo",
        changes: 80,
        does: Does::Pass(BRANCHING, &[("wrap_indices", "1")]),
    },
    Case {
        name: "remove_branching_through_overcompute, finite",
        changes: 2,
        does: Does::Pass(BRANCHING, &[("finite", "1")]),
    },
];

fn first_loop(f: &TensorFunc) -> Option<Stmt> {
    struct First(Option<Stmt>);
    impl Visit for First {
        fn stmt(&mut self, s: &Stmt) {
            match s.kind() {
                _ if self.0.is_some() => {}
                StmtKind::For { .. } => self.0 = Some(s.clone()),
                _ => walk_stmt(self, s),
            }
        }
    }
    let mut first = First(None);
    first.stmt(&f.body);
    first.0
}

/// What an argument holds; `None` where that is arbitrary.
type Held = Vec<Option<f64>>;

/// A program and what it does.
struct Given {
    program: Program,
    n: i64,
    /// What is in memory that is not defined.
    rest: f64,
    expected: Vec<Held>,
    /// The program on symbols: for one `n`, since arithmetic of indices may overflow for others.
    fixed: Module,
}

impl Given {
    /// `None` if the program is illegal.
    fn new(bytes: &[u8], n: i64) -> Option<Given> {
        let program = program(bytes);
        let fixed = fixed(&program.func, n, &Stmt::nop());
        let mut given = Given { program, n, rest: f64::NAN, expected: Vec::new(), fixed };
        given.expected = given.run(&given.program.func, Uninitialised::Refuse).ok()?;
        Some(given)
    }

    /// The same with nothing but finite numbers in memory, so large that their products are not.
    fn finite(self) -> Option<Given> {
        let mut given = Given { rest: 3e38, ..self };
        given.expected = given.run(&given.program.func, Uninitialised::Refuse).ok()?;
        Some(given)
    }

    /// What the arguments hold after a run.
    fn run(&self, func: &TensorFunc, uninitialised: Uninitialised) -> Result<Vec<Held>> {
        let value = |k: usize, i: i64| match (k, i < USED) {
            (0, false) => self.program.pad,
            (1, false) => self.rest,
            _ => ((i * 7 + k as i64 * 5) % 11 - 4) as f64,
        };
        let (mut held, mut args): (Vec<Held>, Vec<Arg>) = (Vec::new(), Vec::new());
        for (k, p) in func.params.iter().enumerate() {
            let Some(b) = p.buffer() else {
                args.push(Arg::Scalar(Scalar::int(self.n, DType::I32)));
                continue;
            };
            let values: Vec<f64> = (0..SIZE).map(|i| value(k, i)).collect();
            let shape = b.const_shape().unwrap_or_default();
            let shape: Vec<usize> = shape.into_iter().map(|n| n as usize).collect();
            let tensor = if b.dtype().is_float() {
                let values: Vec<f32> = values.iter().map(|v| *v as f32).collect();
                Tensor::from_slice(&shape, &values)
            } else {
                let values: Vec<i32> = values.iter().map(|v| *v as i32).collect();
                Tensor::from_slice(&shape, &values)
            };
            args.push(Arg::Tensor(tensor?));
            held.push(values.into_iter().map(Some).collect());
        }
        let fill = if self.rest.is_nan() { Fill::Nan } else { Fill::Zero };
        let options = RunOptions { fill, uninitialised, ..RunOptions::default() };
        for output in run_func(func, &args, &options)?.outputs {
            let state = |i: usize| output.states.as_ref().and_then(|s| s.get(i));
            let known = |i: usize| state(i).is_none_or(|s| *s == State::Value);
            let element = |i: usize| known(i).then(|| output.tensor.get_f64(i));
            held[output.param] = (0..output.tensor.len()).map(element).collect();
        }
        Ok(held)
    }

    /// Applies a pass to something that does the same as the program, and checks the result; `None`
    /// if it changes nothing. With `strict`, the result reads no unwritten cell.
    fn apply(
        &self,
        pass: &Case,
        before: &TensorFunc,
        strict: bool,
        why: &mut Remarks,
    ) -> Result<Option<TensorFunc>, TestCaseError> {
        let (name, n) = (pass.name, self.n);
        let wrong = |what: String, after: &TensorFunc| {
            let [first, now] = [before, after].map(|f| print_module(&module(f)));
            Err(TestCaseError::fail(format!("{name}, n={n}: {what}\n{first}\nbecame\n{now}")))
        };
        let after = match pass.run(before, why) {
            Ok(after) => after,
            Err(e) => return wrong(e.render(), before),
        };
        if after.body.ptr_eq(&before.body)
            || equal::tensor_funcs(before, &after, &equal::Equality::default()).is_ok()
        {
            return Ok(None);
        }
        if let Err(e) = check_tensor("main", &after) {
            return wrong(e.render(), &after);
        }
        let uninitialised = if strict { Uninitialised::Refuse } else { Uninitialised::Undef };
        match self.run(&after, uninitialised) {
            Ok(got) if agree(&self.expected, &got) => {}
            Ok(got) => return wrong(format!("{got:?} instead of {:?}", self.expected), &after),
            Err(e) => return wrong(e.render(), &after),
        }
        if self.rest.is_nan() {
            let (steps, uninitialised) = (200_000, Uninitialised::Undef);
            let options =
                tilewright_verify::VerifyOptions { steps, uninitialised, ..Default::default() };
            // What is promised of the arguments stays true where a pass drops it.
            let now = fixed(&after, n, &self.program.promise);
            match tilewright_verify::functions(&self.fixed, "main", &now, "main", &options) {
                Ok(tilewright_verify::Verdict::Differ(d)) => {
                    return wrong(format!("{d:?}"), &after);
                }
                Ok(
                    tilewright_verify::Verdict::Equal(_) | tilewright_verify::Verdict::Undecided(_),
                ) => {}
                Err(e) => return wrong(e.render(), &after),
            }
        }
        Ok(Some(after))
    }
}

/// Whether results are as good as the expected ones: the same where these are known.
fn agree(expected: &[Held], got: &[Held]) -> bool {
    let same = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan();
    expected.iter().flatten().zip(got.iter().flatten()).all(|(x, y)| match (x, y) {
        (Some(x), Some(y)) => same(*x, *y),
        (Some(_), None) => false,
        (None, _) => true,
    })
}

fn module(func: &TensorFunc) -> Module {
    let mut module = Module::new();
    module.insert("main", func.clone());
    module
}

/// The function for one value of its size, after a copy of a statement.
fn fixed(func: &TensorFunc, n: i64, first: &Stmt) -> Module {
    let scalar = func.params.iter().find_map(|p| match p {
        Param::Scalar(n) => Some(n.clone()),
        Param::Buffer { .. } => None,
    });
    let values = scalar.into_iter().map(|v| (v, Expr::int(n, DType::I32)));
    let body = Stmt::seq([Subst::refresh().stmt(first), Subst::vars(values).stmt(&func.body)]);
    module(&TensorFunc { body, ..func.clone() })
}

/// Checks all passes on one program; how many programs each changes is counted.
fn every_pass(
    bytes: &[u8],
    n: i64,
    cases: &[Case],
    chain: &[usize],
    changed: &[AtomicUsize],
) -> Result<(), TestCaseError> {
    let Some(given) = Given::new(bytes, n) else {
        return Err(TestCaseError::reject("illegal"));
    };
    let count = |k: usize| changed[k].fetch_add(1, Ordering::Relaxed);
    let func = given.program.func.clone();
    let mut offered = Remarks::new();
    for (k, pass) in cases.iter().enumerate() {
        let mut why = Remarks::new();
        if given.apply(pass, &func, !FORGET.contains(&pass.name), &mut why)?.is_some() {
            count(k);
        }
        if pass.name == BRANCHING {
            offered = why;
        }
    }
    let (mut all, mut strict) = (func.clone(), true);
    let last = cases.iter().find(|c| c.name == SIMPLIFY);
    for pass in chain.iter().map(|k| &cases[*k]).chain(last) {
        strict &= !FORGET.contains(&pass.name);
        all = given.apply(pass, &all, strict, &mut Remarks::new())?.unwrap_or(all);
    }
    let help = |word: &str| {
        let mut texts = offered.iter().filter_map(|e| e.diagnostic().help.as_deref());
        texts.any(|help| help.contains(word))
    };
    let (wrap, finite) = (help("wrap_indices"), help("finite"));
    if wrap && given.apply(&OPTIONS[0], &func, true, &mut Remarks::new())?.is_some() {
        count(cases.len());
    }
    if finite
        && let Some(given) = given.finite()
        && given.apply(&OPTIONS[1], &func, true, &mut Remarks::new())?.is_some()
    {
        count(cases.len() + 1);
    }
    Ok(())
}

#[test]
fn every_pass_keeps_what_random_programs_do() {
    let cases = cases();
    let passes: Vec<&Case> = cases.iter().chain(&OPTIONS).collect();
    let changed: Vec<AtomicUsize> = passes.iter().map(|_| AtomicUsize::new(0)).collect();
    let bytes = proptest::collection::vec(any::<u8>(), 60..120);
    let chain = proptest::collection::vec(0..cases.len(), CHAIN);
    let choices = (bytes, 0..SIZES, chain);
    let seed = std::env::var("PROGRAMS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(7u64);
    let run = |thread: usize| {
        let config = ProptestConfig {
            cases: (PROGRAMS / THREADS) as u32,
            rng_seed: RngSeed::Fixed(seed.wrapping_mul(1 << 8).wrapping_add(thread as u64)),
            failure_persistence: None,
            max_shrink_iters: 300,
            ..ProptestConfig::default()
        };
        let check = |(bytes, n, chain): (Vec<u8>, i64, Vec<usize>)| {
            every_pass(&bytes, n, &cases, &chain, &changed)
        };
        match TestRunner::new(config).run(&choices, check) {
            Ok(()) => None,
            Err(TestError::Fail(why, _)) => Some(why.to_string()),
            Err(e) => Some(e.to_string()),
        }
    };
    let failed: Vec<String> = std::thread::scope(|threads| {
        let all: Vec<_> = (0..THREADS).map(|k| threads.spawn(move || run(k))).collect();
        all.into_iter().filter_map(|t| t.join().expect("it fails with a message")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    let few: Vec<String> = (passes.iter().zip(&changed))
        .map(|(pass, n)| (pass, n.load(Ordering::Relaxed)))
        .filter(|(pass, n)| *n < pass.changes)
        .map(|(pass, n)| format!("{}: {n} of {PROGRAMS}", pass.name))
        .collect();
    assert!(few.is_empty(), "passes that change few programs:\n{}", few.join("\n"));
}
