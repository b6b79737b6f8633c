//! Products by dot-product instructions: native code against the interpreter. Of 8-bit integers, for
//! machines with dot products of bytes and for those with pairs of `int16`, with the values at which sums
//! would saturate or overflow; and of `bfloat16`.

use tilewright_autoschedule::integer::expand;
use tilewright_codegen::entry::{self, Planned};
use tilewright_codegen::llvm::{Emit, Llvm};
use tilewright_driver::random::Random;
use tilewright_driver::{DType, OptLevel, Options, Session, Target, Tensor, compile};
use tilewright_interp as interp;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Dim, GraphExpr, GraphFunc, GraphVar, Module, TensorFunc,
    TensorType, Var,
};
use tilewright_layout::free::mark_free;
use tilewright_ops::Operand;
use tilewright_ops::blocks::{Weights, Zero, integer_product, product};
use tilewright_ops::contraction::{Conv, ConvInteger, conv, conv_integer, matmul};
use tilewright_ops::quantize::matmul_integer;

/// Both signs.
const BYTES: [DType; 2] = [DType::I8, DType::U8];

/// Integers of which many are the least and the largest there are; floats of both signs near one.
fn extreme(random: &mut Random, dtype: DType, shape: &[usize]) -> Tensor {
    let len: usize = shape.iter().product();
    let mut value = || match random.bits() % 4 {
        0 => 0x80u8,
        1 => 0xff,
        2 => 0x7f,
        _ => (random.bits() >> 8) as u8,
    };
    match dtype {
        DType::BF16 => {
            // A sign, an exponent near that of one, and the bits behind the point.
            let bits = |v: u8| 0x3f00 + (u16::from(v) << 15 | u16::from(v));
            let bytes: Vec<u8> = (0..len).flat_map(|_| bits(value()).to_le_bytes()).collect();
            Tensor::from_bytes(dtype, shape, &bytes)
        }
        DType::F16 => {
            let bits = |v: u8| 0x3800 + (u16::from(v & 0x80) << 8 | u16::from(v & 0x7f) << 3);
            let bytes: Vec<u8> = (0..len).flat_map(|_| bits(value()).to_le_bytes()).collect();
            Tensor::from_bytes(dtype, shape, &bytes)
        }
        DType::I8 => {
            Tensor::from_slice(shape, &(0..len).map(|_| value() as i8).collect::<Vec<_>>())
        }
        DType::F32 => {
            let scale = |v: u8| f32::from(v) / 64.0;
            Tensor::from_slice(shape, &(0..len).map(|_| scale(value())).collect::<Vec<_>>())
        }
        _ => Tensor::from_slice(shape, &(0..len).map(|_| value()).collect::<Vec<_>>()),
    }
    .expect("a tensor")
}

/// The rows of values where their number is open.
const ROWS: usize = 64;

/// A graph that calls a function with constants for all inputs but some, with values for these.
fn module(func: TensorFunc, given: &[usize], random: &mut Random) -> (Module, Vec<Tensor>) {
    let written = interp::written_params(&func);
    let (mut params, mut values, mut args, mut outs) = (vec![], vec![], vec![], vec![]);
    for (k, (buffer, written)) in func.buffers().zip(written).enumerate() {
        let ty = TensorType { shape: buffer.shape.clone(), dtype: buffer.dtype() };
        if written {
            outs.push(ty);
            continue;
        }
        let shape: Vec<usize> =
            buffer.shape.iter().map(|d| d.as_int().map_or(ROWS, |n| n as usize)).collect();
        let value = extreme(random, buffer.dtype(), &shape);
        if given.contains(&k) {
            let param = GraphVar::tensor(buffer.name.clone(), ty);
            args.push(param.expr());
            params.push(param);
            values.push(value);
        } else {
            args.push(GraphExpr::Const(value));
        }
    }
    let mut module = Module::new();
    module.insert("f", func);
    let result = GraphVar::tensor("y", outs[0].clone());
    let value = GraphExpr::call_tir("f", args, outs);
    let binding = Binding { var: result.clone(), value, span: None };
    let bindings = vec![binding];
    let graph = GraphFunc {
        params,
        ret_ty: None,
        blocks: vec![BindingBlock { dataflow: true, bindings, outputs: vec![result.clone()] }],
        ret: result.expr(),
        attrs: Attrs::default(),
        private: false,
        span: None,
    };
    module.insert("main", graph);
    (module, values)
}

/// Machines whose code this one can run.
fn machines() -> Vec<Target> {
    let host = Options::default().resolve_target().expect("a host");
    let mut all = vec![host.clone()];
    for cpu in ["x86-64-v3", "x86-64-v4", "alderlake", "znver4"] {
        let target = Target::new("x86_64-unknown-linux-gnu", cpu, "");
        if target.known_features().missing_in(host.known_features()).is_empty() {
            all.push(target);
        }
    }
    all
}

/// Compares what a function computes, with constants for all inputs but some, on all machines.
#[track_caller]
fn check(what: &str, func: &TensorFunc, given: &[usize]) {
    check_within(2e-6, what, func, given);
}

/// The same where sums of floats in two orders differ by no more than a part of the largest result.
#[track_caller]
fn check_within(part: f64, what: &str, func: &TensorFunc, given: &[usize]) {
    let (module, inputs) = module(func.clone(), given, &mut Random::new(what.len() as u64));
    let expected = interp::run_module(&module, "main", &inputs).expect("it runs");
    for target in machines() {
        let name = target.cpu.clone();
        let options = Options::new().threads(1).target(target);
        let made = compile(&module, &options).unwrap_or_else(|e| panic!("{what}: {}", e.render()));
        let results = made.run(&inputs).unwrap_or_else(|e| panic!("{what}: {}", e.render()));
        match expected[0].dtype() {
            // A sum in another order is another one, by less than a step of the result.
            DType::BF16 | DType::F16 => (0..expected[0].len()).for_each(|k| {
                let (got, wanted) = (results[0].get_f64(k), expected[0].get_f64(k));
                let step = if expected[0].dtype() == DType::F16 { 1024.0 } else { 128.0 };
                let close = (got - wanted).abs() <= wanted.abs() / step + 1e-4;
                assert!(close, "{what} on {name}: {got} for {wanted} at {k}");
            }),
            DType::F32 => {
                let scale = (0..expected[0].len()).map(|k| expected[0].get_f64(k).abs());
                let scale = scale.fold(1.0, f64::max);
                (0..expected[0].len()).for_each(|k| {
                    let (got, wanted) = (results[0].get_f64(k), expected[0].get_f64(k));
                    let close = (got - wanted).abs() <= scale * part;
                    assert!(close, "{what} on {name}: {got} for {wanted} at {k}");
                });
            }
            _ => assert!(results[0].bytes() == expected[0].bytes(), "{what} on {name}"),
        }
    }
}

#[test]
fn products_of_all_signs_with_and_without_zero_points() {
    for x in BYTES {
        for y in BYTES {
            for (x_zero, y_zero) in [
                (None, None),
                (Some(vec![]), None),
                (None, Some(vec![])),
                (Some(vec![]), Some(vec![])),
                (Some(vec![Dim::from(13)]), Some(vec![Dim::from(50)])),
            ] {
                let (a, b) = (Operand::new(&[13, 70], x), Operand::new(&[70, 50], y));
                let func = matmul_integer(&a, &b, x_zero.as_deref(), y_zero.as_deref());
                let func = func.expect("a product");
                let what = format!("{a} times {b} less {x_zero:?} and {y_zero:?}");
                // Weights that are constants, and those that are not, as zero points of a run.
                check(&what, &func, &[0]);
                check(&what, &func, &[0, 1, 2, 3]);
            }
        }
    }
}

#[test]
fn products_at_ragged_sizes() {
    for (m, k, n) in
        [(1, 64, 64), (1, 33, 17), (7, 16, 16), (5, 19, 31), (64, 4, 65), (31, 257, 16)]
    {
        for x in BYTES {
            let (a, b) = (Operand::new(&[m, k], x), Operand::new(&[k, n], DType::I8));
            let func = matmul_integer(&a, &b, Some(&[]), None).expect("a product");
            check(&format!("{a} times {b}"), &func, &[0]);
        }
    }
}

#[test]
fn convolutions_of_all_signs() {
    for (channels, extent, results, kernel, stride, groups) in
        [(8, 9, 16, 3, 1, 1), (16, 8, 32, 1, 1, 1), (6, 7, 20, 3, 2, 1), (8, 7, 32, 3, 1, 2)]
    {
        for x in BYTES {
            for y in BYTES {
                let data = Operand::new(&[1, channels, extent, extent], x);
                let weights = Operand::new(&[results, channels / groups, kernel, kernel], y);
                let pad = kernel / 2;
                let conv = Conv {
                    strides: vec![stride; 2],
                    pads_begin: vec![pad; 2],
                    pads_end: vec![pad; 2],
                    groups,
                    ..Conv::new(data, weights)
                };
                let w_zero = Some(vec![Dim::from(results)]);
                let params = ConvInteger { conv, x_zero: Some(vec![]), w_zero };
                let func = conv_integer(&params).expect("a convolution");
                check(&format!("{params:?}"), &func, &[0]);
            }
        }
    }
}

#[test]
fn products_of_bfloat16() {
    for (m, k, n) in [(13, 70, 50), (1, 64, 64), (5, 33, 31), (64, 4, 65), (197, 384, 96)] {
        let (a, b) = (Operand::new(&[m, k], DType::BF16), Operand::new(&[k, n], DType::BF16));
        let func = matmul(&a, &b).expect("a product");
        let what = format!("{a} times {b}");
        check(&what, &func, &[0]);
        check(&what, &func, &[0, 1]);
    }
    let data = Operand::new(&[1, 12, 9, 9], DType::BF16);
    let weights = Operand::new(&[20, 12, 3, 3], DType::BF16);
    let params = Conv { pads_begin: vec![1; 2], pads_end: vec![1; 2], ..Conv::new(data, weights) };
    check("a convolution", &conv(&params).expect("a convolution"), &[0]);
}

/// Halves of two inputs, of an input and weights, and of convolutions, are widened once or in registers.
#[test]
fn products_of_halves() {
    for (m, k, n) in
        [(13, 70, 50), (1, 64, 64), (5, 33, 31), (64, 4, 65), (9, 384, 96), (151, 20, 43)]
    {
        let (a, b) = (Operand::new(&[m, k], DType::F16), Operand::new(&[k, n], DType::F16));
        let func = matmul(&a, &b).expect("a product");
        let what = format!("{a} times {b}");
        check(&what, &func, &[0]);
        check(&what, &func, &[1]);
        check(&what, &func, &[0, 1]);
    }
    for (channels, results, groups, size) in [(12, 20, 1, 9), (8, 8, 8, 9), (12, 20, 1, 23)] {
        let data = Operand::new(&[1, channels, size, size], DType::F16);
        let weights = Operand::new(&[results, channels / groups, 3, 3], DType::F16);
        let pads = || vec![1; 2];
        let params =
            Conv { pads_begin: pads(), pads_end: pads(), groups, ..Conv::new(data, weights) };
        check("a convolution", &conv(&params).expect("a convolution"), &[0]);
    }
}

/// Rows that come with a run are widened once, and weights where they are multiplied.
#[test]
fn rows_of_halves_are_widened_before_they_are_multiplied() {
    for rows in [1, 61] {
        let (a, b) = (Operand::new(&[rows, 130], DType::F16), Operand::new(&[130, 96], DType::F16));
        let func = matmul(&a, &b).expect("a product");
        let (module, _) = module(func, &[0], &mut Random::new(1));
        let module = mark_free(&module);
        let func = module.tensor("f").expect("the product");
        let made = expand(func, &linux("x86_64", "x86-64-v3")).expect("a form for the machine");
        let mut alone = Module::new();
        alone.insert("f", made);
        let text = tilewright_driver::print(&alone);
        let found = text.contains("a_wide[vi, vk] * T.Cast(\"float32\", b[vk, vj])");
        assert!(found, "{text}");
    }
}

/// The assembly of a product for a machine.
fn assembly(func: TensorFunc, target: &Target) -> String {
    let (module, _) = module(func, &[0], &mut Random::new(1));
    let options = Options::new().threads(1).target(target.clone());
    let program = Session::new(options.clone())
        .lower(&module)
        .map(|lowering| lowering.program)
        .expect("it lowers");
    let functions = program.functions().expect("functions");
    let plan = Planned::new(&program.plan).expect("fixed");
    let ir = entry::program("m", &plan, &functions, target).expect("IR");
    let llvm = Llvm::get().expect("an LLVM");
    let bytes = llvm.compile(&ir, target, OptLevel::Full, Emit::Assembly);
    String::from_utf8(bytes.expect("assembly")).expect("text")
}

fn linux(arch: &str, cpu: &str) -> Target {
    Target::new(format!("{arch}-unknown-linux-gnu"), cpu, "")
}

#[test]
fn bfloat16_is_multiplied_where_the_machine_can() {
    for (cpu, least) in [("znver4", 8), ("x86-64-v4", 0)] {
        let (a, b) = ([61, 130], [130, 96]);
        let func = matmul(&Operand::new(&a, DType::BF16), &Operand::new(&b, DType::BF16));
        let text = assembly(func.expect("a product"), &linux("x86_64", cpu));
        let count = text.lines().filter(|line| line.contains("vdpbf16ps")).count();
        assert!(if least == 0 { count == 0 } else { count >= least }, "{cpu}: {count}\n{text}");
    }
}

#[test]
fn the_instruction_of_the_machine_multiplies() {
    for (target, wanted) in [
        (linux("x86_64", "x86-64-v3"), ["vpmaddwd", "%ymm"]),
        (linux("x86_64", "x86-64-v4"), ["vpmaddwd", "%zmm"]),
        (linux("x86_64", "alderlake"), ["vpdpbusd", "%ymm"]),
        (linux("x86_64", "znver4"), ["vpdpbusd", "%zmm"]),
        (linux("aarch64", "neoverse-n1"), ["dot", ".4s"]),
    ] {
        for x in BYTES {
            let (a, b) = (Operand::new(&[61, 130], x), Operand::new(&[130, 96], DType::I8));
            let func = matmul_integer(&a, &b, Some(&[]), None).expect("a product");
            let text = assembly(func, &target);
            let is_wanted = |line: &&str| wanted.iter().all(|part| line.contains(part));
            let count = text.lines().filter(is_wanted).count();
            assert!(count >= 8, "{x} on {}: {count} of {wanted:?}\n{text}", target.cpu);
        }
    }
}

/// Sizes around tiles, blocks that end behind a row, all widths and zero points.
fn block_weights() -> Vec<(usize, Weights)> {
    let of = |n, k, bits, block, zero| Weights { n, k, bits, block, scale: DType::F32, zero };
    vec![
        (1, of(19, 64, 4, 32, Zero::Middle)),
        (3, of(32, 172, 4, 32, Zero::Packed(3))),
        (6, of(65, 100, 4, 16, Zero::Float(DType::F32))),
        (13, of(40, 150, 2, 64, Zero::Packed(1))),
        (5, of(33, 70, 8, 32, Zero::Packed(3))),
        (2, of(7, 600, 4, 512, Zero::Middle)),
    ]
}

#[test]
fn weights_of_a_few_bits_are_multiplied_as_integers() {
    for (rows, w) in block_weights() {
        let func = integer_product(rows.into(), &w).expect("a product");
        check(&format!("{rows} rows, {w:?}"), &func, &[0, 1]);
    }
}

#[test]
fn weights_of_a_few_bits_are_multiplied_as_numbers() {
    for (rows, w) in block_weights() {
        let func = product(&Operand::f32(&[rows, w.k]), &w).expect("a product");
        check(&format!("{rows} rows, {w:?}"), &func, &[0]);
    }
}

/// Several tiles of rows share panels of weights, of all blocks and, of long rows, of some of them.
#[test]
fn tiles_of_rows_share_weights_that_are_taken_apart() {
    for (rows, k, block) in [(25, 172usize, 32usize), (61, 100, 16), (26, 33 * 512, 512)] {
        let zero = Zero::Packed(k.div_ceil(block).div_ceil(2));
        let w = Weights { n: 19, k, bits: 4, block, scale: DType::F32, zero };
        let func = product(&Operand::f32(&[rows, k]), &w).expect("a product");
        check_within(2e-5, &format!("{rows} rows, {w:?}"), &func, &[0]);
        let (module, _) = module(func, &[0], &mut Random::new(1));
        let func = mark_free(&module);
        let func = func.tensor("f").expect("the product");
        for target in machines() {
            let made = expand(func, &target).expect("tiles");
            let (allocs, _) = made.root_parts();
            assert!(allocs.iter().any(|b| b.name.starts_with("panels")), "{}", target.cpu);
        }
    }
}

/// Whatever tiles leave over of an open number of rows is computed, by each kind of tile.
#[test]
fn each_row_of_an_open_number_is_multiplied() {
    let (k, block) = (96, 32);
    let w = Weights { n: 19, k, bits: 4, block, scale: DType::F32, zero: Zero::Middle };
    let rows = Dim::open(&Var::index("rows"));
    let func = product(&Operand::f32(&[rows, k.into()]), &w).expect("a product");
    let (module, inputs) = module(func, &[0], &mut Random::new(1));
    let expected = interp::run_module(&module, "main", &inputs).expect("it runs");
    for target in machines() {
        let name = target.cpu.clone();
        let made = compile(&module, &Options::new().threads(1).target(target)).expect("compiles");
        for n in 1..=ROWS {
            let first = |t: &Tensor, width: usize| t.bytes()[..n * width * 4].to_vec();
            let x = Tensor::from_bytes(DType::F32, &[n, k], &first(&inputs[0], k)).expect("rows");
            let got = made.run(&[x]).expect("runs").remove(0);
            let wanted = Tensor::from_bytes(DType::F32, &[n, w.n], &first(&expected[0], w.n));
            let wanted = wanted.expect("rows");
            let far = (0..got.len()).find(|k| {
                (got.get_f64(*k) - wanted.get_f64(*k)).abs()
                    > 1e-3 * wanted.get_f64(*k).abs() + 1e-3
            });
            assert_eq!(far, None, "{n} rows on {name}");
        }
    }
}

#[test]
fn weights_of_a_few_bits_stay_packed() {
    let w = block_weights().remove(1).1;
    let func = integer_product(3usize.into(), &w).expect("a product");
    let (module, _) = module(func, &[0, 1], &mut Random::new(1));
    for target in machines() {
        let options = Options::new().threads(1).target(target);
        let program = Session::new(options.clone()).lower(&module).expect("a program").program;
        let bytes: usize = program
            .module
            .graphs()
            .map(|(_, g)| tilewright_layout::free::constant_bytes(g) as usize)
            .sum();
        // 32 rows of 6 blocks: 16 bytes of weights each, a zero point, and a scale.
        assert!(bytes <= 32 * 6 * (16 + 1 + 4), "{bytes}");
        // Nothing holds a byte for each weight.
        let scratch = program.functions().expect("functions");
        let largest = scratch.iter().flat_map(|(_, f)| f.buffers()).filter_map(|b| b.const_shape());
        let largest = largest.map(|s| s.iter().product::<i64>()).max().unwrap_or(0);
        assert!(largest < 32 * 192, "{largest}");
    }
}
