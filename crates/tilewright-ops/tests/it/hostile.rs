//! Parameters that make no sense: every operator answers, with a function or an error.

use tilewright_ir::dim::shape;
use tilewright_ir::{DType, Result, TensorFunc};
use tilewright_ops::contraction::{Conv, ConvTranspose, Gemm, conv, conv_transpose, gemm, matmul};
use tilewright_ops::creation::{eye, full, range};
use tilewright_ops::einsum::einsum;
use tilewright_ops::elementwise::{Binary, Unary, Variadic, binary, cast, unary, variadic, where_};
use tilewright_ops::movement::{
    DepthOrder, concat, copy, depth_to_space, expand, gather, gather_elements, gather_nd, one_hot,
    reshape, reverse_sequence, scatter_elements, scatter_nd, slice, space_to_depth, split, tile,
    transpose, trilu,
};
use tilewright_ops::norm::{
    BatchNorm, LayerNorm, Lrn, batch_norm, group_norm, hardmax, instance_norm, layer_norm,
    log_softmax_from, lp_norm, lrn, mean_variance_norm, rms_norm, softmax,
};
use tilewright_ops::pad::{PadMode, pad, pad_with};
use tilewright_ops::pool::{
    Pool, average_pool, global_average_pool, global_lp_pool, global_max_pool, lp_pool, max_pool,
    max_pool_with_indices,
};
use tilewright_ops::quantize::{Quantization, dequantize_linear, matmul_integer, quantize_linear};
use tilewright_ops::reduce::{Arg, Reduction, arg_reduce, cumsum, reduce, top_k};
use tilewright_ops::resize::{Coordinates, Interpolation, Resize, resize};
use tilewright_ops::te::Reducer;
use tilewright_ops::window::Same;
use tilewright_ops::{Operand, Scalar, results};

/// A source of numbers that are mostly small and sometimes as large as can be.
struct Source(u64);

impl Source {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.bits() as usize % all.len()]
    }

    fn size(&mut self) -> usize {
        const LARGE: [usize; 8] =
            [0, 46341, 1 << 29, (1 << 31) - 1, 1 << 31, 1 << 32, usize::MAX / 2, usize::MAX];
        match self.bits() % 8 {
            0 => self.pick(&LARGE),
            _ => self.bits() as usize % 7,
        }
    }

    fn signed(&mut self) -> i64 {
        const LARGE: [i64; 6] =
            [i64::MIN, i64::MIN + 1, -(1 << 31), 1 << 31, i64::MAX - 1, i64::MAX];
        match self.bits() % 8 {
            0 => self.pick(&LARGE),
            _ => self.bits() as i64 % 9 - 4,
        }
    }

    fn float(&mut self) -> f64 {
        self.pick(&[0.0, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e300, f64::NAN, f64::INFINITY, -0.75])
    }

    fn sizes(&mut self) -> Vec<usize> {
        let n = self.pick(&[0, 1, 1, 2, 2, 3, 4, 4, 5]);
        self.sizes_of(n)
    }

    /// As many as asked for, mostly.
    fn sizes_of(&mut self, n: usize) -> Vec<usize> {
        let n = if self.bits().is_multiple_of(16) { n + 1 } else { n };
        (0..n).map(|_| self.size()).collect()
    }

    fn signed_of(&mut self, n: usize) -> Vec<i64> {
        let n = if self.bits().is_multiple_of(16) { n + 1 } else { n };
        (0..n).map(|_| self.signed()).collect()
    }

    fn dtype(&mut self) -> DType {
        self.pick(&[
            DType::F32,
            DType::F32,
            DType::F16,
            DType::F64,
            DType::I64,
            DType::I32,
            DType::U8,
            DType::I8,
            DType::BOOL,
            DType::U64,
            DType::HANDLE,
            DType::VOID,
        ])
    }

    fn operand(&mut self) -> Operand {
        Operand::new(&self.sizes(), self.dtype())
    }

    fn flag(&mut self) -> bool {
        self.bits().is_multiple_of(2)
    }
}

/// One call of each operator with parameters from the source, and the number of its results.
fn calls(s: &mut Source) -> Vec<Result<TensorFunc>> {
    let (x, y) = (s.operand(), s.operand());
    let w = Operand::new(&s.sizes_of(x.rank()), x.dtype);
    let n = x.rank().saturating_sub(2);
    let pool = Pool {
        kernel: s.sizes_of(n),
        strides: s.sizes_of(n),
        dilations: s.sizes_of(n),
        pads_begin: s.sizes_of(n),
        pads_end: s.sizes_of(n),
        same: s.flag().then_some(Same::OddAtEnd),
        ceil_mode: s.flag(),
        x: x.clone(),
    };
    let image = Conv {
        x: x.clone(),
        w: w.clone(),
        bias: s.flag(),
        strides: s.sizes_of(n),
        dilations: s.sizes_of(n),
        pads_begin: s.sizes_of(n),
        pads_end: s.sizes_of(n),
        same: s.flag().then_some(Same::OddAtStart),
        groups: s.size(),
    };
    let up = ConvTranspose {
        x: x.clone(),
        w: w.clone(),
        bias: s.flag(),
        strides: s.sizes_of(n),
        dilations: s.sizes_of(n),
        pads_begin: s.signed_of(n),
        pads_end: s.signed_of(n),
        output_padding: s.sizes_of(n),
        groups: s.size(),
    };
    let product = Gemm {
        c: s.flag().then(|| shape(&s.sizes())),
        trans_a: s.flag(),
        trans_b: s.flag(),
        alpha: s.float(),
        beta: s.float(),
        ..Gemm::new(x.clone(), w.clone())
    };
    let layer = LayerNorm {
        x: x.clone(),
        axis: s.signed(),
        scale: shape(&s.sizes()),
        bias: s.flag().then(|| shape(&s.sizes())),
        epsilon: s.float(),
        statistics: s.flag(),
    };
    let scaled = Resize {
        x: x.clone(),
        sizes: shape(&s.sizes_of(x.rank())),
        scales: (0..x.rank()).map(|_| s.float()).collect(),
        mode: s.pick(&[Interpolation::Linear, Interpolation::Cubic(-0.75)]),
        coordinates: s.pick(&[Coordinates::HalfPixel, Coordinates::AlignCorners]),
        crop: s.flag().then(|| (0..x.rank()).map(|_| [s.float(), s.float()]).collect()),
        exclude_outside: s.flag(),
        antialias: s.flag(),
    };
    let near = Resize::new(x.clone(), &s.sizes_of(x.rank()));
    let q = Quantization {
        scale: s.dtype(),
        axis: s.flag().then(|| s.signed()),
        zero_point: s.flag(),
        bits: None,
    };
    let unaries = [
        Unary::Relu,
        Unary::Not,
        Unary::PowConst(s.float()),
        Unary::Clip { low: Some(Scalar::Int(s.signed())), high: Some(s.float().into()) },
    ];
    let pads =
        [PadMode::Constant(s.float().into()), PadMode::Edge, PadMode::Reflect, PadMode::Wrap];
    let scatter = s.pick(&[None, Some(Reducer::Sum), Some(Reducer::Max)]);
    let rank = x.rank();
    vec![
        unary(s.pick(&unaries), &x),
        cast(&x, s.dtype()),
        binary(s.pick(&[Binary::Add, Binary::Pow, Binary::Mod, Binary::PRelu]), &x, &y),
        variadic(s.pick(&[Variadic::Sum, Variadic::Mean]), &[x.clone(), y.clone()]),
        where_(&s.sizes(), &x, &y),
        matmul(&x, &w),
        gemm(&product),
        conv(&image),
        conv_transpose(&up),
        max_pool(&pool),
        max_pool_with_indices(&pool, s.flag()),
        average_pool(&pool, s.flag()),
        lp_pool(&pool, s.size() as u32),
        global_max_pool(&x),
        global_average_pool(&x),
        global_lp_pool(&x, s.size() as u32),
        reduce(
            s.pick(&[Reduction::Sum, Reduction::Mean, Reduction::LogSumExp]),
            &x,
            &s.signed_of(2),
            s.flag(),
        ),
        arg_reduce(Arg::Max, &x, s.signed(), s.flag(), s.flag()),
        cumsum(&x, s.signed(), s.flag(), s.flag()),
        top_k(&x, s.signed(), s.size(), s.flag()),
        softmax(&x, s.signed()),
        log_softmax_from(&x, s.signed()),
        hardmax(&x, s.signed()),
        batch_norm(&BatchNorm { epsilon: s.float(), ..BatchNorm::new(x.clone()) }),
        layer_norm(&layer),
        rms_norm(&x, s.signed(), &s.sizes(), s.float()),
        instance_norm(&x, s.float()),
        group_norm(&x, s.size(), s.float(), s.flag()),
        mean_variance_norm(&x, &s.signed_of(2)),
        lp_norm(&x, s.signed(), s.size() as u32),
        lrn(&Lrn { beta: s.float(), ..Lrn::new(x.clone(), s.size()) }),
        copy(&x),
        reshape(&x, &s.sizes()),
        transpose(&x, &s.sizes_of(rank)),
        concat(&[x.clone(), w.clone()], s.signed()),
        split(&x, s.signed(), &s.sizes()),
        slice(&x, &s.signed_of(2), &s.signed_of(2), &s.signed_of(2), &s.signed_of(2)),
        pad(&x, &s.signed_of(rank), &s.signed_of(rank), s.pick(&pads)),
        pad_with(&x, &s.signed_of(rank), &s.signed_of(rank), &[1]),
        expand(&x, &s.sizes()),
        tile(&x, &s.sizes_of(rank)),
        gather(&x, &y, s.signed()),
        gather_elements(&x, &y, s.signed()),
        gather_nd(&x, &y, s.size()),
        scatter_elements(&x, &y, s.signed(), scatter),
        scatter_nd(&x, &y, scatter),
        depth_to_space(&x, s.size(), DepthOrder::Crd),
        space_to_depth(&x, s.size()),
        trilu(&x, s.signed(), s.flag()),
        reverse_sequence(&x, s.size(), s.size()),
        one_hot(&x, s.size(), s.signed(), s.dtype()),
        resize(&scaled).map(|r| r.0),
        resize(&near).map(|r| r.0),
        full(&s.sizes(), s.float().into(), s.dtype()),
        range(s.float().into(), s.float().into(), s.size(), s.dtype()),
        eye(s.size(), s.size(), s.signed(), s.dtype()),
        einsum(
            s.pick(&["ij,jk->ik", "...i,...i", "ii", "i->", "a...b->b...a", ",->"]),
            &[x.clone(), w.clone()],
        ),
        quantize_linear(&x, &q, s.dtype()),
        dequantize_linear(&x, &q),
        matmul_integer(&x, &w, Some(&[]), Some(&shape(&s.sizes_of(1)))),
    ]
}

#[test]
fn hostile_parameters_get_an_answer() {
    let mut source = Source(7);
    let (mut built, mut refused) = (0, 0);
    for _ in 0..2000 {
        for call in calls(&mut source) {
            match call {
                Ok(func) => {
                    assert!(!results(&func, 1).is_empty());
                    built += 1;
                }
                Err(tilewright_ir::Error::Input(_) | tilewright_ir::Error::Unsupported(_)) => {
                    refused += 1;
                }
                Err(e) => panic!("{e:?}"),
            }
        }
    }
    // Both happen often, so that the parameters reach everything.
    assert!(built > 10_000 && refused > 10_000, "{built} built, {refused} refused");
}
