//! Schedules of reductions against the interpreter: operators of ragged sizes, before and after.
//!
//! Inputs are small whole numbers, so that sums are exact in any order and results must be equal.

use proptest::prelude::*;
use tilewright_autoschedule::{auto_schedule, others};
use tilewright_interp::run_module;
use tilewright_ir::equal::{Equality, tensor_funcs};
use tilewright_ir::{
    DType, Module, Remarks, Result, Source, StmtKind, Tensor, TensorFunc, TypeKind,
};
use tilewright_ops::contraction::{Conv, Gemm, conv, gemm, matmul};
use tilewright_ops::pool::{Pool, average_pool, max_pool};
use tilewright_ops::{Operand, norm, reduce};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_target::Target;
use tilewright_transform::lower;
use tilewright_tvmscript::{parse_module, print_module};

/// Machines with vectors of 64, 32 and 16 bytes.
pub fn targets() -> [Target; 3] {
    ["x86-64-v4", "x86-64-v3", "x86-64"].map(|cpu| Target::new("x86_64-unknown-linux-gnu", cpu, ""))
}

/// Small whole numbers in an order without a period.
pub fn inputs(func: &TensorFunc) -> Result<Vec<Tensor>> {
    let mut seed = 7u64;
    let mut buffers: Vec<_> = func.buffers().cloned().collect();
    buffers.pop();
    buffers
        .iter()
        .map(|b| {
            let shape: Vec<usize> =
                b.const_shape().unwrap_or_default().iter().map(|d| *d as usize).collect();
            let mut next = || {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 33) as i64 % 9 - 4
            };
            let n: usize = shape.iter().product();
            match b.dtype() {
                DType::I32 => {
                    let data: Vec<i32> = (0..n).map(|_| next() as i32).collect();
                    Tensor::from_slice(&shape, &data)
                }
                DType::F32 => {
                    let data: Vec<f32> = (0..n).map(|_| next() as f32).collect();
                    Tensor::from_slice(&shape, &data)
                }
                dtype => {
                    // Those of unsigned types are not negative.
                    let least = if dtype.kind == TypeKind::UInt { 4 } else { 0 };
                    let data: Vec<u8> =
                        (0..n).flat_map(|_| bytes_of(next() + least, dtype)).collect();
                    Tensor::from_bytes(dtype, &shape, &data)
                }
            }
        })
        .collect()
}

/// A whole number of at most eight in a type of 8 or 16 bits.
fn bytes_of(value: i64, dtype: DType) -> Vec<u8> {
    let single = (value as f32).to_bits();
    match dtype {
        DType::BF16 => ((single >> 16) as u16).to_ne_bytes().to_vec(),
        DType::F16 if value == 0 => vec![0, 0],
        // The exponent begins at another number.
        DType::F16 => {
            let [sign, exponent, rest] = [single >> 31, (single >> 23) & 255, single & 0x7f_ffff];
            let half = (sign << 15) | ((exponent - 127 + 15) << 10) | (rest >> 13);
            (half as u16).to_ne_bytes().to_vec()
        }
        _ => vec![value as u8],
    }
}

pub fn run(func: TensorFunc, inputs: &[Tensor]) -> Result<Tensor> {
    let mut module = Module::new();
    module.insert("main", func);
    Ok(run_module(&module, "main", inputs)?.swap_remove(0))
}

/// The function with loops for a machine; no primitive is refused.
pub fn auto(func: &TensorFunc, target: &Target) -> TensorFunc {
    let mut why = Remarks::new();
    let scheduled = others(func, target, &mut why).expect("a schedule");
    assert!(why.is_empty(), "{}", why[0].render());
    scheduled
}

/// The trace of a function's schedule gives the same function when it is replayed.
fn replays(func: &TensorFunc, target: &Target) {
    let mut module = Module::new();
    module.insert("main", func.clone());
    let mut why = Remarks::new();
    let (traced, trace) = auto_schedule(&module, target, &mut why).expect("a schedule");
    let mut replayed = Schedule::new(module, Permissions::default());
    replayed.replay(&trace).expect("the trace runs");
    let traced = traced.tensor("main").expect("a function");
    let again = replayed.func("main").expect("a function");
    tensor_funcs(traced, again, &Equality::default()).expect("the same function");
}

/// Runs a function as it is, scheduled, and scheduled and lowered, on every machine.
pub fn check(func: &TensorFunc, tolerance: f64) {
    let inputs = inputs(func).expect("inputs");
    let expected = run(func.clone(), &inputs).expect("the function runs");
    replays(func, &targets()[0]);
    for target in &targets() {
        let scheduled = auto(func, target);
        let lowered = lower(&scheduled).expect("lowers");
        for (what, f) in [("scheduled", scheduled), ("lowered", lowered)] {
            let found = run(f, &inputs).unwrap_or_else(|e| panic!("{what}: {}", e.render()));
            assert_eq!(found.shape(), expected.shape());
            for i in 0..found.len() {
                let (x, y) = (found.get_f64(i), expected.get_f64(i));
                let near = (x - y).abs() <= tolerance * (1.0 + y.abs());
                assert!(near || x == y, "{what} for {}: element {i} is {x}, not {y}", target.cpu);
            }
        }
    }
}

/// The loops that are directly in one another from outside, and the cells of all memory inside, of a convolution
/// with its channels last.
fn channels_last(height: i64, width: i64, channels: i64, out: i64) -> (Vec<String>, i64) {
    let (h, w) = (height + 2, width + 2);
    let func = text(&format!(
        "def f(X: T.Buffer(({h}, {w}, {channels}), 'float32'), W: T.Buffer((3, 3, {channels}, {out}), 'float32'), O: T.Buffer(({height}, {width}, {out}), 'float32')):\n    \
             for h, w, k, c, kh, kw in T.grid({height}, {width}, {out}, {channels}, 3, 3):\n        \
                 with T.block('conv'):\n            \
                     vh, vw, vk, vc, vkh, vkw = T.axis.remap('SSSRRR', [h, w, k, c, kh, kw])\n            \
                     with T.init():\n                O[vh, vw, vk] = T.float32(0)\n            \
                     O[vh, vw, vk] = O[vh, vw, vk] + X[vh + vkh, vw + vkw, vc] * W[vkh, vkw, vc, vk]\n"
    ));
    let lowered = lower(&auto(&func, &targets()[0])).expect("lowers");
    let cells = crate::windows::largest(&lowered);
    let mut after = Module::new();
    after.insert("f", lowered);
    let printed = print_module(&after);
    let loops = printed.lines().map(str::trim).filter(|l| l.starts_with("for "));
    (loops.take(2).map(str::to_owned).collect(), cells)
}

#[test]
fn the_operand_that_is_expensive_to_read_again_stays() {
    // Rows of pixels go by for one tile of channels, whose weights stay in the cache.
    let (loops, _) = channels_last(56, 56, 256, 256);
    assert!(loops[0].ends_with("in T.parallel(224):"), "{loops:?}");
    assert!(loops[1].ends_with("in range(14):"), "{loops:?}");
}

#[test]
fn tiles_are_no_wider_than_the_cache_has_room_for() {
    // Six rows of four vectors, and of three.
    let cells = |channels| channels_last(28, 28, channels, 192).1;
    assert_eq!((cells(64) % 64, cells(512) % 48), (0, 0));
    assert!(cells(512) % 64 != 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn convolutions(
        (n, groups, ic, oc) in (1usize..3, 1usize..3, 1usize..4, 1usize..8),
        kernel in [1usize..4, 1usize..4],
        more in [0usize..6, 0usize..38],
        strides in [1usize..4, 1usize..6],
        dilations in [1usize..3, 1usize..3],
        pads in [0usize..3, 0usize..3, 0usize..3, 0usize..3],
        bias in any::<bool>(),
    ) {
        let extent = |k: usize| (kernel[k] - 1) * dilations[k] + 1 + more[k];
        let x = Operand::f32(&[n, ic * groups, extent(0), extent(1)]);
        let w = Operand::f32(&[oc * groups, ic, kernel[0], kernel[1]]);
        let mut c = Conv::new(x, w);
        c.groups = groups;
        c.bias = bias;
        c.strides = strides.to_vec();
        c.dilations = dilations.to_vec();
        c.pads_begin = pads[..2].to_vec();
        c.pads_end = pads[2..].to_vec();
        check(&conv(&c).expect("a convolution"), 0.0);
    }

    #[test]
    fn matrix_products(
        (m, k, n) in (1usize..20, 1usize..90, 1usize..70),
        trans in any::<[bool; 2]>(),
        addend in any::<bool>(),
        int in any::<bool>(),
    ) {
        let dtype = if int { DType::I32 } else { DType::F32 };
        let shape = |t: bool, a, b| Operand::new(&if t { [b, a] } else { [a, b] }, dtype);
        let mut g = Gemm::new(shape(trans[0], m, k), shape(trans[1], k, n));
        (g.trans_a, g.trans_b) = (trans[0], trans[1]);
        g.c = addend.then(|| vec![n.into()]);
        check(&gemm(&g).expect("a product"), 0.0);
    }

    #[test]
    fn batched_products(b in 1usize..4, (m, k, n) in (1usize..9, 1usize..40, 1usize..40)) {
        let f = matmul(&Operand::f32(&[b, 1, m, k]), &Operand::f32(&[3, k, n]));
        check(&f.expect("a product"), 0.0);
    }

    #[test]
    fn pools(
        (c, h, w) in (1usize..4, 4usize..9, 4usize..40),
        kernel in [1usize..4, 1usize..4],
        strides in [1usize..4, 1usize..4],
        pads in [0usize..3, 0usize..3],
        ceil_mode in any::<bool>(),
    ) {
        let mut p = Pool::new(Operand::f32(&[1, c, h, w]), &kernel);
        p.strides = strides.to_vec();
        let pad = |k: usize| pads[k].min(kernel[k] - 1);
        p.pads_begin = vec![pad(0), pad(1)];
        p.pads_end = vec![pad(1).min(kernel[0] - 1), pad(0).min(kernel[1] - 1)];
        p.ceil_mode = ceil_mode;
        check(&max_pool(&p).expect("a pool"), 0.0);
        check(&average_pool(&p, false).expect("a pool"), 1e-6);
        check(&average_pool(&p, true).expect("a pool"), 1e-6);
    }

    #[test]
    fn reductions(shape in prop::array::uniform3(1usize..24), axes in 1usize..8, keep in any::<bool>()) {
        let axes: Vec<i64> = (0..3).filter(|a| axes >> a & 1 == 1).collect();
        let x = Operand::f32(&shape);
        for op in [reduce::Reduction::Sum, reduce::Reduction::Max, reduce::Reduction::Mean] {
            check(&reduce::reduce(op, &x, &axes, keep).expect("a reduction"), 1e-6);
        }
        check(&norm::softmax(&x, axes[0]).expect("a softmax"), 1e-5);
    }
}

/// The only function of a text.
pub fn text(text: &str) -> TensorFunc {
    let module = parse_module(&Source::new("test.py", format!("@T.prim_func\n{text}")));
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, func) = module.tensors().next().expect("a function");
    (**func).clone()
}

/// A reduction over two axes, with an operator and an initial value as text.
fn reduction([n, a, b]: [i64; 3], dtype: &str, start: &str, update: &str) -> TensorFunc {
    let text = format!(
        "@T.prim_func\n\
         def f(X: T.Buffer(({n}, {a}, {b}), '{dtype}'), S: T.Buffer(({n}, {a}), '{dtype}'), O: T.Buffer(({n},), '{dtype}')):\n    \
             for i, j, k in T.grid({n}, {a}, {b}):\n        \
                 with T.block('O'):\n            \
                     v, r, s = T.axis.remap('SRR', [i, j, k])\n            \
                     with T.init():\n                O[v] = {start}\n            \
                     O[v] = {update}\n"
    );
    let module = parse_module(&Source::new("reduction.py", text)).expect("it reads");
    (**module.tensor("f").expect("a function")).clone()
}

#[test]
fn rows_of_no_whole_vectors_are_summed_in_vectors() {
    for width in [9usize, 25, 48, 60, 100] {
        let x = Operand::f32(&[6, width]);
        for op in [reduce::Reduction::Sum, reduce::Reduction::Mean] {
            let func = reduce::reduce(op, &x, &[1], false).expect("a reduction");
            check(&func, 1e-6);
            let image = func.buffers().next().expect("an argument").data.clone();
            let lowered = lower(&auto(&func, &targets()[0])).expect("lowers");
            lowered.body.for_each(|s| {
                if let StmtKind::Store { value, .. } = s.kind() {
                    let single = value.dtype().lanes == 1 && value.loads_from(|b| b.data == image);
                    assert!(!single, "{op:?} of {width}: {value}");
                }
            });
        }
    }
}

#[test]
fn what_a_reduction_starts_from_counts_once() {
    // Along memory, so that the vectors hold partial results, and across it; too short for vectors.
    let shapes = [[3, 7, 10], [2, 1, 70], [1, 40, 40], [20, 3, 2], [5, 2, 3]];
    let updates = [
        "O[v] + X[v, r, s]",
        "O[v] * X[v, r, s]",
        "T.max(O[v], X[v, r, s])",
        "T.min(O[v], X[v, r, s])",
        // These do not combine in any order, or not so.
        "O[v] - X[v, r, s]",
        "X[v, r, s] - O[v]",
        "O[v] // (X[v, r, s] * X[v, r, s] + 1)",
        "O[v] % (X[v, r, s] * X[v, r, s] + 90)",
    ];
    let starts = ["-3", "0", "1000000", "-1000000", "S[v, 0]", "v", "S[v, r] + r"];
    for shape in shapes {
        for start in starts {
            for update in updates {
                check(&reduction(shape, "int32", start, update), 0.0);
            }
            let start = format!("T.Cast('float32', {start})");
            let updates = [updates[0], updates[2], updates[4]];
            for update in updates {
                check(&reduction(shape, "float32", &start, update), 1e-6);
            }
        }
    }
}
