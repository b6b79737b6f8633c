//! Every pass against the interpreter, on random programs.
//!
//! A program is decoded from bytes, one for each choice, so that a failure shrinks to a small one:
//! loops, guards on indices, sizes and data, bindings, blocks with predicates and initialisation,
//! scratch memory, divisions and loads that only their guard makes legal. The end of `A` is padding,
//! of which an assumption says that it is zero. Each pass by itself, and all of them one after the
//! other, must leave in every argument what the program leaves there.

use proptest::prelude::*;
use tilewright_interp::{Arg, Options, Scalar, run_func, symbolic};
use tilewright_ir::visit::Subst;
use tilewright_ir::well_formed::check_tensor;
use tilewright_ir::{
    Attr, Block, Buffer, CallTarget, DType, Expr, Fold, ForKind, Intrin, IterKind, IterVar, Module,
    Param, Range, Remarks, Result, Stmt, StmtKind, Tensor, TensorFunc, Var,
};
use tilewright_script::print_module;
use tilewright_transform::hoist::{Hoist, hoist_expression};
use tilewright_transform::partition::{HINT, Partition, loop_partition};
use tilewright_transform::{extents, merge, no_op, overcompute, placeholder, simplify};

/// Elements of each argument.
const SIZE: i64 = 16;
/// Elements of `A` before its padding.
const USED: i64 = 13;

type Pass = fn(&TensorFunc, &mut Remarks) -> Result<TensorFunc>;

/// Each pass, and in every how many programs it runs: those that follow values through memory take
/// most of the time.
const PASSES: &[(&str, usize, Pass)] = &[
    ("simplify", 4, |f, why| simplify::simplify(f, simplify::Options::default(), why)),
    ("remove_no_op", 20, |f, why| no_op::remove_no_op(f, &no_op::Options::default(), why)),
    ("remove_no_op by text", 2, |f, why| {
        no_op::remove_no_op(f, &no_op::Options { flow: false }, why)
    }),
    ("hoist_expression", 1, |f, why| hoist_expression(f, None, Hoist::default(), why)),
    ("hoist_if", 1, |f, why| hoist_expression(f, None, Hoist::branches(false), why)),
    ("merge_adjacent_loops", 1, merge::merge_adjacent_loops),
    ("reduce_loop_extents", 1, |f, why| extents::reduce_loop_extents(f, None, why)),
    ("loop_partition", 1, |f, why| {
        let how = Partition { constant_loops: true, unroll_whole: true, ..Default::default() };
        loop_partition(f, how, why)
    }),
    ("remove_branching_through_overcompute", 20, |f, why| {
        overcompute::remove_branching(f, &overcompute::Options::default(), why)
    }),
    ("remove_overcompute_through_branching", 40, |f, why| {
        overcompute::remove_overcompute(f, None, why)
    }),
    ("remove_assume", 1, |f, _| Ok(placeholder::remove_assume(f))),
];

/// Makes a program, one byte a choice; zeros where there are no more.
struct Maker<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// Loops, outermost first.
    loops: Vec<Var>,
    /// What can be loaded from.
    memory: Vec<Buffer>,
    n: Var,
    blocks: usize,
}

impl Maker<'_> {
    fn pick(&mut self, below: usize) -> usize {
        self.bytes.next().map_or(0, |b| usize::from(*b) % below)
    }

    fn small(&mut self) -> Expr {
        Expr::i32(i32::try_from(self.pick(17)).expect("small"))
    }

    fn variable(&mut self) -> Expr {
        match self.loops.len() {
            0 => self.n.expr(),
            k => {
                let at = self.pick(k);
                self.loops[k - 1 - at].expr()
            }
        }
    }

    /// Some index, maybe outside.
    fn index(&mut self) -> Expr {
        match self.pick(6) {
            0 => self.variable(),
            1 => self.variable() * 4 + self.variable(),
            2 => self.variable() + self.small(),
            3 => Expr::i32(15) - self.variable(),
            4 => self.variable().floordiv(2),
            _ => self.small(),
        }
    }

    /// An index that is in range.
    fn place(&mut self) -> Expr {
        match self.pick(3) {
            0 => self.index().floormod(SIZE),
            _ => match self.loops.is_empty() {
                true => Expr::i32(2),
                false => self.variable(),
            },
        }
    }

    fn buffer(&mut self) -> Buffer {
        let k = self.pick(self.memory.len());
        self.memory[k].clone()
    }

    fn condition(&mut self, depth: usize) -> Expr {
        match self.pick(if depth == 0 { 8 } else { 13 }) {
            0 => self.index().less(self.small()),
            1 => self.index().greater_equal(self.small()),
            2 => self.variable().equal(self.small()),
            3 => self.variable().floormod(2).equal(0),
            4 => (self.n.expr() + self.small()).less(self.small()),
            5 => self.n.expr().greater(self.pick(3) as i64),
            6 => {
                let (b, at) = (self.buffer(), self.place());
                b.load([at]).greater(0)
            }
            7 => {
                let by = if self.pick(2) == 0 { self.n.expr() } else { self.variable() };
                let than = if self.pick(2) == 0 { Expr::i32(2) } else { self.variable() };
                by.clone().not_equal(0).and(self.small().floordiv(by).greater(than))
            }
            8 | 9 => self.condition(depth - 1).and(self.condition(depth - 1)),
            10 => self.condition(depth - 1).or(self.condition(depth - 1)),
            11 => !self.condition(depth - 1),
            _ => {
                let likely = CallTarget::Intrin(Intrin::Likely);
                Expr::call(likely, vec![self.condition(depth - 1)], DType::BOOL)
            }
        }
    }

    fn value(&mut self, depth: usize) -> Expr {
        match self.pick(if depth == 0 { 3 } else { 8 }) {
            0 => self.small(),
            1 => {
                let (b, at) = (self.buffer(), self.place());
                b.load([at])
            }
            2 => self.index(),
            3 => self.value(depth - 1) + self.value(depth - 1),
            4 => {
                Expr::if_then_else(self.condition(1), self.value(depth - 1), self.value(depth - 1))
            }
            5 => {
                let (b, at) = (self.buffer(), self.index());
                let inside = at.clone().greater_equal(0).and(at.clone().less(SIZE));
                Expr::if_then_else(inside, b.load([at]), Expr::i32(0))
            }
            6 => Expr::select(self.condition(0), self.value(depth - 1), self.value(depth - 1)),
            _ => {
                let x = Var::index("x");
                let value = self.value(depth - 1);
                Expr::let_in(x.clone(), value, x.expr() + self.value(depth - 1))
            }
        }
    }

    /// A store to an argument, maybe an update.
    fn store(&mut self) -> Stmt {
        let k = self.pick(3);
        let (b, at) = (self.memory[k].clone(), self.place());
        let value = match self.pick(3) {
            0 => b.load([at.clone()]) + self.value(1),
            _ => self.value(2),
        };
        Stmt::store(&b, vec![at], value)
    }

    fn nest(&mut self, depth: usize) -> Stmt {
        let var = Var::index(["i", "j", "k"][self.loops.len().min(2)]);
        let extent = [4, 16, 3, 14, 1, 2][self.pick(6)];
        let hint = self.pick(4) == 0;
        let kind = if self.pick(8) == 7 { ForKind::Unrolled } else { ForKind::Serial };
        self.loops.push(var.clone());
        let body = self.stmt(depth - 1);
        self.loops.pop();
        let annotations = match hint {
            true => [(HINT.into(), Attr::Int(1))].into(),
            false => Default::default(),
        };
        let range = Range::upto(Expr::i32(extent));
        Stmt::new(StmtKind::For { var, range, kind, annotations, body })
    }

    /// `B[i] = sum of A`, as a block with an initialisation, under a predicate.
    fn reduction(&mut self) -> Stmt {
        let (i, k) = (Var::index("i"), Var::index("k"));
        let (vi, vk) = (Var::index("vi"), Var::index("vk"));
        let (from, to) = (self.buffer(), 1 + self.pick(2));
        let to = self.memory[to].clone();
        let cell = || vec![vi.expr()];
        let sum = to.load(cell()) + from.load([vk.expr()]);
        let mut block = self.block(Stmt::store(&to, cell(), sum));
        block.init = Some(Stmt::store(&to, cell(), Expr::i32(0)));
        for (var, kind) in [(&vi, IterKind::Spatial), (&vk, IterKind::Reduce)] {
            let domain = Range::upto(Expr::i32(16));
            block.iters.push(IterVar { var: var.clone(), domain, kind });
        }
        self.loops.extend([i.clone(), k.clone()]);
        let predicate = if self.pick(2) == 0 { Expr::bool(true) } else { self.condition(1) };
        self.loops.truncate(self.loops.len() - 2);
        let body = Stmt::block(vec![i.expr(), k.expr()], predicate, block);
        Stmt::serial(&i, Expr::i32(4), Stmt::serial(&k, Expr::i32(3), body))
    }

    fn block(&mut self, body: Stmt) -> Block {
        self.blocks += 1;
        Block::new(format!("b{}", self.blocks), body)
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        if depth == 0 {
            return self.store();
        }
        match self.pick(12) {
            0 => self.store(),
            1..=3 => self.nest(depth),
            4 | 5 => Stmt::guard(self.condition(2), self.stmt(depth - 1)),
            6 => Stmt::if_else(self.condition(1), self.stmt(depth - 1), self.stmt(depth - 1)),
            7 => Stmt::seq([self.stmt(depth - 1), self.stmt(depth - 1)]),
            8 => {
                let x = Var::new("flag", DType::BOOL);
                let value = self.condition(1);
                let body = Stmt::guard(x.expr(), self.stmt(depth - 1));
                Stmt::let_in(&x, value, body)
            }
            9 => {
                let (v, at) = (Var::index("v"), self.place());
                self.loops.push(v.clone());
                let body = self.stmt(depth - 1);
                self.loops.pop();
                let mut block = self.block(body);
                let domain = Range::upto(Expr::i32(16));
                block.iters.push(IterVar { var: v, domain, kind: IterKind::Opaque });
                Stmt::block(vec![at], self.condition(1), block)
            }
            10 => self.reduction(),
            _ => {
                let s = Buffer::with_extents("S", &[SIZE], DType::I32);
                let i = Var::index("s");
                self.loops.push(i.clone());
                let first = Stmt::store(&s, vec![i.expr()], self.value(1));
                self.loops.pop();
                self.memory.push(s.clone());
                let rest = self.stmt(depth - 1);
                self.memory.pop();
                let fill = Stmt::serial(&i, Expr::i32(16), first);
                Stmt::allocate(&s, Stmt::seq([fill, rest]))
            }
        }
    }
}

/// The program of some bytes.
fn program(bytes: &[u8]) -> TensorFunc {
    let memory: Vec<Buffer> =
        ["A", "B", "C"].map(|name| Buffer::with_extents(name, &[SIZE], DType::I32)).into();
    let n = Var::index("n");
    let mut params: Vec<Param> = memory.iter().map(Param::tensor).collect();
    params.push(Param::Scalar(n.clone()));
    let i = Var::index("p");
    let known = i.expr().less(USED).or(memory[0].load([i.expr()]).equal(0));
    let assume = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(known)));
    let mut m = Maker { bytes: bytes.iter(), loops: Vec::new(), memory, n, blocks: 0 };
    let count = 1 + m.pick(4);
    let mut body = vec![assume];
    body.extend((0..count).map(|_| m.stmt(3)));
    TensorFunc::new(params, Stmt::seq(body))
}

/// What the arguments hold afterwards.
fn run(func: &TensorFunc, n: i64) -> Result<Vec<Vec<i32>>> {
    let data = |k: i64| -> Vec<i32> {
        let used = if k == 0 { USED } else { SIZE };
        (0..SIZE).map(|i| if i < used { ((i * 7 + k * 5) % 11 - 4) as i32 } else { 0 }).collect()
    };
    let mut held: Vec<Vec<i32>> = (0..3).map(data).collect();
    let mut args: Vec<Arg> = Vec::new();
    for values in &held {
        args.push(Arg::Tensor(Tensor::from_slice(&[SIZE as usize], values)?));
    }
    args.push(Arg::Scalar(Scalar::int(n, DType::I32)));
    for output in run_func(func, &args, &Options::default())?.outputs {
        held[output.param] = output.tensor.as_slice().expect("int32").to_vec();
    }
    Ok(held)
}

fn module(func: &TensorFunc) -> Module {
    let mut module = Module::new();
    module.insert("main", func.clone());
    module
}

/// The function for one value of `n`.
fn fixed(func: &TensorFunc, n: i64) -> TensorFunc {
    let scalar = func.params.iter().find_map(|p| match p {
        Param::Scalar(n) => Some(n.clone()),
        Param::Buffer { .. } => None,
    });
    let values = scalar.into_iter().map(|v| (v, Expr::int(n, DType::I32)));
    TensorFunc { body: Subst::vars(values).stmt(&func.body), ..func.clone() }
}

fn check(
    name: &str,
    before: &TensorFunc,
    after: &TensorFunc,
    n: i64,
    expected: &[Vec<i32>],
) -> Result<(), TestCaseError> {
    let told = || {
        format!(
            "{name}, n={n}\n{}\nbecame\n{}",
            print_module(&module(before)),
            print_module(&module(after))
        )
    };
    if let Err(e) = check_tensor("main", after) {
        return Err(TestCaseError::fail(format!("{}: {}", e.render(), told())));
    }
    match run(after, n) {
        Ok(got) => prop_assert_eq!(&got[..], expected, "{}", told()),
        Err(e) => return Err(TestCaseError::fail(format!("{}: {}", e.render(), told()))),
    }
    Ok(())
}

/// A quarter of all programs.
fn some_programs() -> ProptestConfig {
    ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() }
}

fn every_pass(bytes: &[u8], n: i64, round: usize) -> Result<(), TestCaseError> {
    let func = program(bytes);
    let expected = run(&func, n);
    prop_assume!(expected.is_ok());
    let expected = expected.expect("just checked");
    let mut all = func.clone();
    let due = |every: usize| round.is_multiple_of(every);
    for (name, _, pass) in PASSES.iter().filter(|(_, every, _)| due(*every)) {
        let refused = |e: tilewright_ir::Error| {
            TestCaseError::fail(format!("{name}: {}\n{}", e.render(), print_module(&module(&func))))
        };
        let alone = pass(&func, &mut Remarks::new()).map_err(refused)?;
        if !alone.body.ptr_eq(&func.body) {
            check(name, &func, &alone, n, &expected)?;
        }
        let before = all.clone();
        all = pass(&all, &mut Remarks::new()).map_err(refused)?;
        if !all.body.ptr_eq(&before.body) {
            check(name, &before, &all, n, &expected)?;
        }
    }
    // Now and then for all data, as far as it can be decided.
    if due(20) {
        // Arithmetic of indices does not overflow, so not for every `n`.
        let (a, b) = (module(&fixed(&func, n)), module(&fixed(&all, n)));
        let options = symbolic::Options { steps: 1_000_000, ..Default::default() };
        let verdict = symbolic::functions(&a, "main", &b, "main", &options);
        let differs = matches!(verdict, Ok(symbolic::Verdict::Differ(_)));
        prop_assert!(!differs, "{}\n{}\n{verdict:?}", print_module(&a), print_module(&b));
    }
    Ok(())
}

macro_rules! quarters {
    ($($name:ident)*) => {
        proptest! {
            #![proptest_config(some_programs())]
            $(
                #[test]
                fn $name(
                    bytes in proptest::collection::vec(any::<u8>(), 0..60),
                    n in 0i64..4,
                    round in 0usize..20,
                ) {
                    every_pass(&bytes, n, round)?;
                }
            )*
        }
    };
}
quarters!(programs_first programs_second programs_third programs_fourth);
