//! The code of contractions, for machines of three kinds: what runs the sums keeps them in registers, of fixed and of
//! open sizes.

use std::sync::Arc;

use tilewright_autoschedule::integer::{expand, expand_products};
use tilewright_autoschedule::price::price;
use tilewright_autoschedule::{TileCheck, UNTILED, contractions, others};
use tilewright_codegen::emit;
use tilewright_codegen::entry::{self, Planned};
use tilewright_codegen::llvm::{Emit, Llvm};
use tilewright_driver::random::Random;
use tilewright_driver::{OptLevel, Options, Session, Target};
use tilewright_ir::control::NEEDS_ELEMENTS;
use tilewright_ir::{Attr, DType, Dim, Expr, ExprKind, Module, Remarks, Source, TensorFunc, Var};
use tilewright_layout::marks::FREE_LAYOUT;
use tilewright_ops::Operand;
use tilewright_ops::blocks;
use tilewright_ops::contraction::{
    Conv, ConvInteger, ConvTranspose, conv, conv_integer, conv_transpose, matmul,
};
use tilewright_ops::pool::{Pool, max_pool};
use tilewright_ops::quantize::matmul_integer;
use tilewright_ops::reduce::{Reduction, reduce};
use tilewright_transform::lower::{self, IN_MEMORY};
use tilewright_transform::products::with_products_as_sizes;
use tilewright_tvmscript::parse_module;

use crate::schedules::{chain, channels_last, depthwise, grouped, image, product};

/// A kind of machine, and how its assembly looks.
struct Machine {
    target: Target,
    /// A fused multiply-add of whole vectors has both.
    fused: [&'static str; 2],
    /// What an access of a register that was put on the stack has: bands of images, which lie there too, are
    /// read by an index.
    stack: &'static str,
}

fn machines() -> [Machine; 3] {
    let linux = |arch: &str, cpu: &str| Target::new(format!("{arch}-unknown-linux-gnu"), cpu, "");
    [
        Machine {
            target: linux("x86_64", "x86-64-v3"),
            fused: ["vfmadd", "%ymm"],
            stack: "(%rsp)",
        },
        Machine {
            target: linux("x86_64", "x86-64-v4"),
            fused: ["vfmadd", "%zmm"],
            stack: "(%rsp)",
        },
        Machine { target: linux("aarch64", "neoverse-n1"), fused: ["fmla", ".4s"], stack: "[sp" },
    ]
}

/// The innermost loops of an assembly: the lines from a label to a branch back to it, without another
/// label between them.
fn innermost_loops(assembly: &str) -> Vec<Vec<&str>> {
    let (mut loops, mut label, mut lines) = (Vec::new(), None, Vec::new());
    for line in assembly.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(':').filter(|name| name.starts_with(".L")) {
            (label, lines) = (Some(name), Vec::new());
            continue;
        }
        lines.push(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        let branches =
            |op: &&str| *op == "b" || ["j", "b.", "cb", "tb"].iter().any(|b| op.starts_with(b));
        if words.first().is_some_and(branches) && words.last().copied() == label {
            loops.push(std::mem::take(&mut lines));
        }
    }
    loops
}

fn assembly(func: &TensorFunc, target: &Target) -> String {
    let module = chain(func, 1, &mut Random::new(1));
    let options = Options::new().threads(1).target(target.clone());
    let program = Session::new(options.clone())
        .lower(&module)
        .map(|lowering| lowering.program)
        .expect("it lowers");
    let functions = program.functions().expect("functions");
    let ir = entry::program("m", &Planned::new(&program.plan).expect("fixed"), &functions, target)
        .expect("IR");
    let llvm = Llvm::get().expect("an LLVM");
    let bytes = llvm.compile(&ir, target, OptLevel::Full, Emit::Assembly).expect("assembly");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn sums_stay_in_registers_on_every_kind_of_machine() {
    for machine in machines() {
        for (name, func) in [
            ("64 channels", image(64, 20, 3, 1)),
            ("65 channels", image(65, 19, 3, 1)),
            ("stride 2", image(48, 15, 3, 2)),
            ("one pixel", image(96, 13, 1, 1)),
            ("5 pixels", image(64, 20, 5, 1)),
            ("11 pixels", image(32, 24, 11, 1)),
            ("few channels", image(12, 28, 3, 1)),
            ("groups", grouped(2, (48, 64), 15, 3)),
            ("ragged groups", grouped(3, (40, 35), 14, 3)),
            ("a channel each", depthwise(64, 14)),
            ("half a vector of channels each more", depthwise(40, 14)),
            ("product", product(96, 192, 192)),
            ("ragged product", product(77, 131, 330)),
            ("a column more", product(64, 96, 65)),
            ("three columns more", product(45, 77, 67)),
            ("a channel more", channels_last((65, 65), 19)),
        ] {
            let text = assembly(&func, &machine.target);
            let is_fused = |line: &&&str| machine.fused.iter().all(|part| line.contains(part));
            let loops = innermost_loops(&text);
            let count = |lines: &Vec<&str>| lines.iter().filter(is_fused).count();
            let best = loops.iter().max_by_key(|lines| count(lines));
            let best = best.unwrap_or_else(|| panic!("{name}: no loop on {:?}", machine.target));
            // Enough sums to hide the latency of an addition.
            assert!(count(best) >= 8, "{name} on {:?}: {best:#?}", machine.target);
            for lines in loops.iter().filter(|lines| count(lines) > 0) {
                let spilled: Vec<&&str> =
                    lines.iter().filter(|line| line.contains(machine.stack)).collect();
                assert!(spilled.is_empty(), "{name} on {:?}: {spilled:?}", machine.target);
            }
        }
    }
}

/// What is left over of the columns is stored in a few vectors, not lane by lane behind a branch each,
/// where it is too little work to be shared by itself.
#[test]
fn lanes_that_are_left_over_have_no_branch_each() {
    for machine in machines() {
        let text = assembly(&product(24, 64, 255), &machine.target);
        let labels = text.lines().filter(|line| line.starts_with(".LBB")).count();
        assert!(labels < 60, "{labels} on {:?}", machine.target);
    }
}

/// Contractions of a type by name, of fixed or of open sizes.
fn operators(dtype: DType, open: bool) -> Vec<(&'static str, TensorFunc)> {
    let size = |name: &str, n: usize| match open {
        true => Dim::open(&Var::index(name)),
        false => n.into(),
    };
    let rows = size("n", 21);
    let of = |shape: &[Dim]| Operand::new(shape, dtype);
    let weights = |shape: [usize; 4]| Operand::new(&shape, dtype);
    let image =
        |channels: usize| of(&[size("b", 1), channels.into(), size("h", 17), size("w", 35)]);
    let conv = |channels: usize, results, groups, window: usize, stride, dilation| {
        let pad = window / 2 * dilation;
        let p = Conv {
            groups,
            strides: vec![stride; 2],
            dilations: vec![dilation; 2],
            pads_begin: vec![pad; 2],
            pads_end: vec![pad; 2],
            ..Conv::new(image(channels), weights([results, channels / groups, window, window]))
        };
        conv(&p).expect("a convolution")
    };
    let transposed = ConvTranspose {
        strides: vec![2; 2],
        ..ConvTranspose::new(image(16), weights([16, 32, 2, 2]))
    };
    let weight = of(&[Dim::from(32), 48.into()]);
    let batch = [of(&[Dim::from(2), rows, 32.into()]), of(&[Dim::from(2), 32.into(), 48.into()])];
    let open_columns = of(&[Dim::from(2), 32.into(), size("m", 48)]);
    let wide = of(&[Dim::from(192), 624.into()]);
    let keys = size("past", 5) + rows;
    let mixed = [of(&[Dim::from(2), rows, keys]), of(&[Dim::from(2), keys, 48.into()])];
    vec![
        ("product", matmul(&of(&[rows, 32.into()]), &weight).expect("a product")),
        ("product of inputs", matmul(&batch[0], &batch[1]).expect("a product")),
        ("product of inputs, open columns", matmul(&batch[0], &open_columns).expect("a product")),
        ("wide product", matmul(&of(&[rows, 192.into()]), &wide).expect("a product")),
        ("product over two sizes", matmul(&mixed[0], &mixed[1]).expect("a product")),
        ("one pixel", conv(32, 48, 1, 1, 1, 1)),
        ("window", conv(16, 32, 1, 3, 1, 1)),
        ("stride 2", conv(16, 32, 1, 3, 2, 1)),
        ("dilation 2", conv(16, 32, 1, 3, 1, 2)),
        ("groups", conv(32, 32, 2, 3, 1, 1)),
        ("a channel each", conv(8, 8, 8, 3, 1, 1)),
        ("a channel each, stride 2", conv(8, 8, 8, 3, 2, 1)),
        ("transposed", conv_transpose(&transposed).expect("a convolution")),
    ]
}

/// A function as the pipeline schedules and lowers it, alone.
fn lowered(func: &TensorFunc, target: &Target) -> TensorFunc {
    let mut func = func.clone();
    func.attrs.insert(NEEDS_ELEMENTS.into(), Attr::Int(1));
    let mut why = Remarks::new();
    let made = with_products_as_sizes(&func, |f| {
        let mut module = Module::new();
        module.insert("main", f.clone());
        let module = expand_products(&module, target);
        let (tiled, _) = contractions(&module, target, TileCheck::Lower, &mut why)?;
        Ok((**tiled.tensor("main")?).clone())
    });
    let made = with_products_as_sizes(&made.expect("a schedule"), |f| {
        others(f, target, &mut Remarks::new())
    });
    lower::lower(&made.expect("a schedule")).expect("lowers")
}

/// Whether a line multiplies single numbers.
fn multiplies_one(line: &str) -> bool {
    let op = line.split_whitespace().next().unwrap_or_default();
    let multiplies = op.starts_with("vfmadd") || op.starts_with("vmul");
    multiplies && ["ss", "sd", "sh"].iter().any(|one| op.ends_with(one))
}

/// The assembly of a lowered function.
fn assembly_of(func: &TensorFunc, target: &Target) -> String {
    let ir = emit::module(&[(Arc::from("main"), func)], target).expect("IR");
    let llvm = Llvm::get().expect("an LLVM");
    let bytes = llvm.compile(&ir, target, OptLevel::Full, Emit::Assembly).expect("assembly");
    String::from_utf8(bytes).expect("text")
}

/// What is wrong with the code of a function: loops that go through products one by one, unless some may be left
/// over, sums in memory, no vectors.
fn faults(func: &TensorFunc, machine: &Machine, left_over: bool) -> Vec<String> {
    let target = &machine.target;
    let func = lowered(func, target);
    let said = [UNTILED, IN_MEMORY].into_iter().filter_map(|key| func.attrs.get(key));
    let mut faults: Vec<String> = said.map(|said| format!("{said:?}")).collect();
    let text = assembly_of(&func, target);
    let single = |lines: &Vec<&str>| lines.iter().any(|line| multiplies_one(line));
    if let Some(lines) = innermost_loops(&text).into_iter().find(single).filter(|_| !left_over) {
        faults.push(format!("a loop over single products: {lines:?}"));
    }
    if !text.lines().any(|line| machine.fused.iter().all(|part| line.contains(part))) {
        faults.push("no vectors".to_owned());
    }
    faults
}

/// The walk over operators, machines, and fixed or open sizes, of one element type.
fn assert_runs_in_vectors(dtype: DType) {
    let mut all = Vec::new();
    for machine in machines().iter().filter(|m| m.target.triple.starts_with("x86_64")) {
        for open in [false, true] {
            for (name, func) in operators(dtype, open) {
                let sizes = if open { "open" } else { "fixed" };
                let what = format!("{name}, {dtype}, {sizes}, {}", machine.target.cpu);
                let kept = machine.target.vectors.leaves_out(dtype.bytes());
                // A few at the end of an open row are single.
                let found = faults(&func, machine, open && !kept);
                all.extend(found.into_iter().map(|fault| format!("{what}: {fault}")));
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn no_contraction_of_floats_runs_element_by_element() {
    assert_runs_in_vectors(DType::F32);
}

#[test]
fn no_contraction_of_doubles_runs_element_by_element() {
    assert_runs_in_vectors(DType::F64);
}

#[test]
fn no_contraction_of_halves_runs_element_by_element() {
    assert_runs_in_vectors(DType::F16);
}

/// Contractions of 8-bit integers by name, of fixed or of open sizes.
fn integer_operators(open: bool) -> Vec<(&'static str, TensorFunc)> {
    let size = |name: &str, n: usize| if open { Dim::open(&Var::index(name)) } else { n.into() };
    let product = |(rows, reduced, columns): (Dim, usize, usize), zero: Option<&[Dim]>| {
        let a = Operand::new(&[rows, reduced.into()], DType::U8);
        let b = Operand::new(&[Dim::from(reduced), columns.into()], DType::I8);
        matmul_integer(&a, &b, zero, None).expect("a product")
    };
    let conv = |channels: usize, results: usize, window: usize, stride: usize| {
        let image = [size("b", 1), channels.into(), size("h", 17), size("w", 35)];
        let weights = [results, channels, window, window];
        let conv = Conv {
            strides: vec![stride; 2],
            pads_begin: vec![window / 2; 2],
            pads_end: vec![window / 2; 2],
            ..Conv::new(Operand::new(&image, DType::U8), Operand::new(&weights, DType::I8))
        };
        let p = ConvInteger { conv, x_zero: Some(Vec::new()), w_zero: None };
        conv_integer(&p).expect("a convolution")
    };
    let rows = size("n", 21);
    vec![
        ("product", product((rows, 64, 48), None)),
        ("product less a zero point", product((rows, 64, 48), Some(&[]))),
        ("ragged product", product((rows, 67, 51), Some(&[]))),
        ("wide product", product((rows, 192, 624), None)),
        ("one pixel", conv(32, 48, 1, 1)),
        ("window", conv(16, 32, 3, 1)),
        ("stride 2", conv(16, 32, 3, 2)),
    ]
}

/// Whether a loop multiplies bytes one by one. Where it divides by a constant, it multiplies indices: it copies.
fn multiplies_bytes(lines: &[&str]) -> bool {
    let has = |ops: &[&str]| lines.iter().any(|line| ops.iter().any(|op| line.starts_with(op)));
    has(&["movsb", "movzb"]) && has(&["imull"]) && !has(&["imulq\t$"])
}

#[test]
fn no_contraction_of_integers_runs_element_by_element() {
    let target = |cpu| Target::new("x86_64-unknown-linux-gnu", cpu, "");
    let machines = [("x86-64-v3", "%ymm"), ("alderlake", "%ymm"), ("znver4", "%zmm")];
    let mut all = Vec::new();
    for (target, vector) in machines.map(|(cpu, vector)| (target(cpu), vector)) {
        for open in [false, true] {
            for (name, func) in integer_operators(open) {
                let func = lowered(&func, &target);
                let said = [UNTILED, IN_MEMORY].into_iter().filter_map(|key| func.attrs.get(key));
                let mut faults: Vec<String> = said.map(|said| format!("{said:?}")).collect();
                let text = assembly_of(&func, &target);
                let single = innermost_loops(&text).into_iter().find(|l| multiplies_bytes(l));
                faults
                    .extend(single.map(|lines| format!("a loop over single products: {lines:?}")));
                let dots = ["vpmaddwd", "vpdpbusd", "vpmaddubsw"];
                let is_dot = |line: &str| dots.iter().any(|op| line.contains(op));
                if !text.lines().any(|line| is_dot(line) && line.contains(vector)) {
                    faults.push("no dot products of vectors".to_owned());
                }
                let sizes = if open { "open" } else { "fixed" };
                let what = format!("{name}, {sizes}, {}", target.cpu);
                all.extend(faults.into_iter().map(|fault| format!("{what}: {fault}")));
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// Pools as they are once images and channels are one axis.
#[test]
fn maxima_of_open_windows_are_in_registers() {
    let size = |name: &str| Dim::open(&Var::index(name));
    for machine in machines() {
        for (window, stride) in [(3, 1), (3, 2), (2, 2), (5, 1)] {
            let shape = [Dim::from(1), size("b") * 89usize, size("h"), size("w")];
            let mut pool = Pool::new(Operand::f32(&shape), &[window; 2]);
            pool.strides = vec![stride; 2];
            pool.pads_begin = vec![window / 2; 2];
            pool.pads_end = vec![window / 2; 2];
            let func = lowered(&max_pool(&pool).expect("a pool"), &machine.target);
            let said = [UNTILED, IN_MEMORY].into_iter().filter_map(|key| func.attrs.get(key));
            let said: Vec<String> = said.map(|said| format!("{said:?}")).collect();
            let what = format!("window {window}, stride {stride}, {}", machine.target.cpu);
            assert!(said.is_empty(), "{what}: {said:?}");
            // What is beside an image has loops of its own, so that rows of it are copied as vectors, or is left out by
            // lanes where it is read.
            let is_choice =
                |e: &Expr| matches!(e.kind(), ExprKind::IfThenElse(c, ..) if c.dtype().lanes == 1);
            assert!(!func.body.any_expr(is_choice), "{what}: a choice is left");
        }
    }
}

/// Of two sides of a maximum one is tested for `NaN`: what several rows of a window read is, once for all of them, and
/// many maxima that wait for nothing are themselves, so that what they read stays in memory.
#[test]
fn maxima_test_what_is_shared() {
    let target = Target::new("x86_64-unknown-linux-gnu", "znver4", "");
    let size = |name: &str| Dim::open(&Var::index(name));
    let counts = |func: &TensorFunc| {
        let text = assembly_of(&lowered(func, &target), &target);
        let loops = innermost_loops(&text).into_iter().map(|lines| {
            ["vmaxps", "vcmpordps"].map(|op| lines.iter().filter(|l| l.starts_with(op)).count())
        });
        loops.max().expect("a loop")
    };
    let mut pool =
        Pool::new(Operand::f32(&[Dim::from(1), 64.into(), size("h"), size("w")]), &[5; 2]);
    (pool.pads_begin, pool.pads_end) = (vec![2; 2], vec![2; 2]);
    let [maxima, tests] = counts(&max_pool(&pool).expect("a pool"));
    assert!(maxima > 20 && 2 * tests < maxima, "{tests} tests for {maxima} maxima");
    let x = Operand::f32(&[2, 82, 740]);
    let [maxima, tests] = counts(&reduce(Reduction::Max, &x, &[1], false).expect("a maximum"));
    assert!(maxima >= 6 && tests == maxima, "{tests} tests for {maxima} maxima");
}

/// Rows of an image whose size was halved several times: how far windows reach is a sum of quotients, of which some
/// are divided by what does not divide the others.
#[test]
fn sums_over_images_that_were_halved_are_in_registers() {
    let text = r#"
from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(x_handle: T.handle, w: T.Buffer((3, 3, 192), "float32"), size_handle: T.handle, out_handle: T.handle):
        n = T.int32()
        h = T.int32()
        w_1 = T.int32()
        x = T.match_buffer(x_handle, (n, (h + 15) // 16, (w_1 + 15) // 16, 192), "float32")
        size = T.match_buffer(size_handle, (h, w_1), "float32")
        out = T.match_buffer(out_handle, (n, (h + 31) // 32, (w_1 + 31) // 32, 192), "float32")
        pad = T.alloc_buffer((n, (h + 31) // 32 * 2 + 1, (w_1 + 31) // 32 * 2 + 1, 192), "float32")
        sums = T.alloc_buffer((n, (h + 31) // 32, (w_1 + 31) // 32, 192), "float32")
        for i, j, k, c in T.grid(n, (h + 31) // 32 * 2 + 1, (w_1 + 31) // 32 * 2 + 1, 192):
            with T.block("pad"):
                vi, vj, vk, vc = T.axis.remap("SSSS", [i, j, k, c])
                pad[vi, vj, vk, vc] = T.if_then_else(vj >= 1 and vj < (h + 15) // 16 + 1 and vk >= 1 and vk < (w_1 + 15) // 16 + 1, x[vi, vj - 1, vk - 1, vc], T.float32(0.0))
        for i, j, k, c, p, q in T.grid(n, (h + 31) // 32, (w_1 + 31) // 32, 192, 3, 3):
            with T.block("sums"):
                vi, vj, vk, vc, vp, vq = T.axis.remap("SSSSRR", [i, j, k, c, p, q])
                with T.init():
                    sums[vi, vj, vk, vc] = T.float32(0.0)
                sums[vi, vj, vk, vc] = sums[vi, vj, vk, vc] + pad[vi, vj * 2 + vp, vk * 2 + vq, vc] * w[vp, vq, vc]
        for i, j, k, c in T.grid(n, (h + 31) // 32, (w_1 + 31) // 32, 192):
            with T.block("out"):
                vi, vj, vk, vc = T.axis.remap("SSSS", [i, j, k, c])
                out[vi, vj, vk, vc] = T.max(sums[vi, vj, vk, vc], T.float32(0.0))
"#;
    let module = parse_module(&Source::new("halved.py", text)).expect("it parses");
    let func = module.tensor("main").expect("a function");
    for machine in machines() {
        let func = lowered(func, &machine.target);
        let said = [UNTILED, IN_MEMORY].into_iter().filter_map(|key| func.attrs.get(key));
        let said: Vec<String> = said.map(|said| format!("{said:?}")).collect();
        assert!(said.is_empty(), "{}: {said:?}", machine.target.cpu);
    }
}

#[test]
fn loops_are_found_in_assembly() {
    let text = ".LBB0_1:\n\tmov\n.LBB0_2:\n\tadd\n\tjne\t.LBB0_2\n\tsub\n\tjne .LBB0_1\nother:\n";
    assert_eq!(innermost_loops(text), [vec!["add", "jne\t.LBB0_2"]]);
    let arm = ".LBB0_2:\n\tfmla\tv0.4s, v1.4s, v2.s[0]\n\tb.ne\t.LBB0_2\n";
    assert_eq!(innermost_loops(arm)[0].len(), 2);
}

/// Rows of a batch of sequences, both of any length, are one size for every tile of weights in blocks.
#[test]
fn weights_in_blocks_are_tiled_for_rows_of_two_open_sizes() {
    let [batch, length] = ["b", "s"].map(|name| Dim::open(&Var::index(name)));
    let rows = batch * length;
    let zero = blocks::Zero::Packed(3);
    let w = blocks::Weights { n: 40, k: 172, bits: 4, block: 32, scale: DType::F32, zero };
    let x = Operand::new(&[rows, w.k.into()], DType::F32);
    let integers = blocks::integer_product(rows, &w).expect("a product");
    let numbers = blocks::product(&x, &w).expect("a product");
    for machine in machines().iter().filter(|m| m.target.triple.starts_with("x86_64")) {
        for (func, first) in [(&integers, 2), (&numbers, 1)] {
            let free = (first..first + 3).map(Attr::Int).collect();
            let mut func = func.clone();
            func.attrs.insert(FREE_LAYOUT.into(), Attr::List(free));
            // The plan knows them by their tiles, too.
            let known: Vec<bool> = (0..func.params.len()).map(|k| k >= first as usize).collect();
            assert!(price(&func, &known, 0, &machine.target).tiled, "{}", machine.target.cpu);
            let func = expand(&func, &machine.target).expect("tiles");
            let func = lowered(&func, &machine.target);
            let said = [UNTILED, IN_MEMORY].into_iter().filter_map(|key| func.attrs.get(key));
            let said: Vec<String> = said.map(|said| format!("{said:?}")).collect();
            assert!(said.is_empty(), "{}: {said:?}", machine.target.cpu);
        }
    }
}

/// Queries of several heads that lie in one product with keys and values: they are so many cells apart as rows of that
/// have, and images of them an open number.
#[test]
fn scores_of_queries_in_a_larger_product_run_in_vectors() {
    let text = r#"
from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(a_handle: T.handle, b_handle: T.handle, mask_handle: T.handle, out_handle: T.handle):
        n = T.int32()
        s = T.int32()
        a = T.match_buffer(a_handle, (n, s, 4, 64), "float32", strides=(s * 768, 768, 64, 1))
        b = T.match_buffer(b_handle, (n, 4, 64, s), "float32")
        mask = T.match_buffer(mask_handle, (n, s, 1, s), "float32")
        out = T.match_buffer(out_handle, (n, s, 4, s), "float32")
        sums = T.alloc_buffer((n, s, 4, s), "float32")
        for i, j, h, l, k in T.grid(n, s, 4, s, 64):
            with T.block("sums"):
                vi, vj, vh, vl, vk = T.axis.remap("SSSSR", [i, j, h, l, k])
                with T.init():
                    sums[vi, vj, vh, vl] = T.float32(0.0)
                sums[vi, vj, vh, vl] = sums[vi, vj, vh, vl] + a[vi, vj, vh, vk] * b[vi, vh, vk, vl]
        for i, j, h, l in T.grid(n, s, 4, s):
            with T.block("out"):
                vi, vj, vh, vl = T.axis.remap("SSSS", [i, j, h, l])
                out[vi, vj, vh, vl] = sums[vi, vj, vh, vl] * T.float32(0.125) + mask[vi, vj, 0, vl]
"#;
    let module = parse_module(&Source::new("scores.py", text)).expect("it parses");
    let func = module.tensor("main").expect("a function");
    for machine in machines().iter().filter(|m| m.target.triple.starts_with("x86_64")) {
        let found = faults(func, machine, true);
        assert!(found.is_empty(), "{}: {found:?}", machine.target.cpu);
        let text = assembly_of(&lowered(func, &machine.target), &machine.target);
        assert!(!text.contains("vgather"), "{}: elements are gathered", machine.target.cpu);
    }
}
