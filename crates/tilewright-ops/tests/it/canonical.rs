//! The stages that operators are made of, which fusion and scheduling count on.

use expect_test::{Expect, expect};
use tilewright_ir::{Result, TensorFunc};
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, Gemm, conv, gemm};
use tilewright_ops::norm::softmax;
use tilewright_ops::pool::{Pool, average_pool, max_pool};

use crate::text::text;

#[track_caller]
fn shows(func: Result<TensorFunc>, expected: Expect) {
    expected.assert_eq(&func.map_or_else(|e| e.render(), |f| text(&f)));
}

#[test]
fn a_conv_is_padding_sum_and_bias() {
    let p = Conv {
        bias: true,
        strides: vec![2, 1],
        dilations: vec![1, 2],
        pads_begin: vec![1, 0],
        pads_end: vec![1, 0],
        ..Conv::new(Operand::f32(&[1, 3, 8, 9]), Operand::f32(&[5, 3, 3, 2]))
    };
    shows(
        conv(&p),
        expect![[r#"
        param x float32[1, 3, 8, 9]
        param w float32[5, 3, 3, 2]
        param bias float32[5]
        param conv float32[1, 5, 4, 7]
          block root
          alloc x_pad float32[1, 3, 9, 9]
          alloc conv_acc float32[1, 5, 4, 7]
            n < 1
              c < 3
                h < 9
                  w < 9
                      block x_pad S:vn S:vc S:vh S:vw
                      x_pad[vn, vc, vh, vw] = T.if_then_else(vh >= 1, x[vn, vc, vh - 1, vw], T.float32(0.0))
            n < 1
              oc < 5
                oh < 4
                  ow < 7
                    ic < 3
                      kh < 3
                        kw < 2
                            block conv_acc S:vn S:voc S:voh S:vow R:vic R:vkh R:vkw
                            init
                            conv_acc[vn, voc, voh, vow] = T.float32(0.0)
                            conv_acc[vn, voc, voh, vow] = conv_acc[vn, voc, voh, vow] + x_pad[vn, vic, voh * 2 + vkh, vow + vkw * 2] * w[voc, vic, vkh, vkw]
            n < 1
              oc < 5
                oh < 4
                  ow < 7
                      block conv S:vn S:voc S:voh S:vow
                      conv[vn, voc, voh, vow] = conv_acc[vn, voc, voh, vow] + bias[voc]
    "#]],
    );
}

#[test]
fn a_grouped_conv_splits_its_channels() {
    let p = Conv { groups: 2, ..Conv::new(Operand::f32(&[1, 4, 8]), Operand::f32(&[6, 2, 3])) };
    shows(
        conv(&p),
        expect![[r#"
        param x float32[1, 4, 8]
        param w float32[6, 2, 3]
        param conv float32[1, 6, 6]
        n < 1
          g < 2
            oc < 3
              ow < 6
                ic < 2
                  kw < 3
                      block conv S:vn S:vg S:voc S:vow R:vic R:vkw
                      init
                      conv[vn, vg * 3 + voc, vow] = T.float32(0.0)
                      conv[vn, vg * 3 + voc, vow] = conv[vn, vg * 3 + voc, vow] + x[vn, vg * 2 + vic, vow + vkw] * w[vg * 3 + voc, vic, vkw]
    "#]],
    );
}

#[test]
fn a_depthwise_conv_has_no_loop_over_input_channels() {
    let p = Conv { groups: 4, ..Conv::new(Operand::f32(&[1, 4, 8]), Operand::f32(&[4, 1, 3])) };
    shows(
        conv(&p),
        expect![[r#"
        param x float32[1, 4, 8]
        param w float32[4, 1, 3]
        param conv float32[1, 4, 6]
        n < 1
          g < 4
            ow < 6
              kw < 3
                  block conv S:vn S:vg S:vow R:vkw
                  init
                  conv[vn, vg, vow] = T.float32(0.0)
                  conv[vn, vg, vow] = conv[vn, vg, vow] + x[vn, vg, vow + vkw] * w[vg, 0, vkw]
    "#]],
    );
}

#[test]
fn a_gemm_is_a_sum_and_an_epilogue() {
    let p = Gemm {
        c: Some(vec![5.into()]),
        trans_b: true,
        beta: 0.5,
        ..Gemm::new(Operand::f32(&[3, 4]), Operand::f32(&[5, 4]))
    };
    shows(
        gemm(&p),
        expect![[r#"
        param a float32[3, 4]
        param b float32[5, 4]
        param c float32[5]
        param gemm float32[3, 5]
          block root
          alloc gemm_acc float32[3, 5]
            i < 3
              j < 5
                k < 4
                    block gemm_acc S:vi S:vj R:vk
                    init
                    gemm_acc[vi, vj] = T.float32(0.0)
                    gemm_acc[vi, vj] = gemm_acc[vi, vj] + a[vi, vk] * b[vj, vk]
            i < 3
              j < 5
                  block gemm S:vi S:vj
                  gemm[vi, vj] = gemm_acc[vi, vj] + c[vj] * T.float32(0.5)
    "#]],
    );
}

#[test]
fn a_softmax_is_maximum_exponential_sum_and_quotient() {
    shows(
        softmax(&Operand::f32(&[3, 7]), 1),
        expect![[r#"
        param x float32[3, 7]
        param softmax float32[3, 7]
          block root
          alloc softmax_max float32[3]
          alloc softmax_exp float32[3, 7]
          alloc softmax_sum float32[3]
            i0 < 3
              k1 < 7
                  block softmax_max S:vi0 R:vk1
                  init
                  softmax_max[vi0] = T.float32("-inf")
                  softmax_max[vi0] = T.max(softmax_max[vi0], x[vi0, vk1])
            i0 < 3
              i1 < 7
                  block softmax_exp S:vi0 S:vi1
                  softmax_exp[vi0, vi1] = T.exp(x[vi0, vi1] - softmax_max[vi0])
            i0 < 3
              k1 < 7
                  block softmax_sum S:vi0 R:vk1
                  init
                  softmax_sum[vi0] = T.float32(0.0)
                  softmax_sum[vi0] = softmax_sum[vi0] + softmax_exp[vi0, vk1]
            i0 < 3
              i1 < 7
                  block softmax S:vi0 S:vi1
                  softmax[vi0, vi1] = softmax_exp[vi0, vi1] / softmax_sum[vi0]
    "#]],
    );
}

#[test]
fn pools_read_padded_data() {
    let p = Pool { pads_begin: vec![1], ..Pool::new(Operand::f32(&[1, 2, 8]), &[3]) };
    shows(
        max_pool(&p),
        expect![[r#"
        param x float32[1, 2, 8]
        param max_pool float32[1, 2, 7]
          block root
          alloc x_pad float32[1, 2, 9]
            n < 1
              c < 2
                w < 9
                    block x_pad S:vn S:vc S:vw
                    x_pad[vn, vc, vw] = T.if_then_else(vw >= 1, x[vn, vc, vw - 1], T.float32("-inf"))
            n < 1
              c < 2
                ow < 7
                  kw < 3
                      block max_pool S:vn S:vc S:vow R:vkw
                      init
                      max_pool[vn, vc, vow] = T.float32("-inf")
                      max_pool[vn, vc, vow] = T.max(max_pool[vn, vc, vow], x_pad[vn, vc, vow + vkw])
    "#]],
    );
    shows(
        average_pool(&p, false),
        expect![[r#"
        param x float32[1, 2, 8]
        param average_pool float32[1, 2, 7]
          block root
          alloc x_pad float32[1, 2, 9]
          alloc average_pool_acc float32[1, 2, 7]
            n < 1
              c < 2
                w < 9
                    block x_pad S:vn S:vc S:vw
                    x_pad[vn, vc, vw] = T.if_then_else(vw >= 1, x[vn, vc, vw - 1], T.float32(0.0))
            n < 1
              c < 2
                ow < 7
                  kw < 3
                      block average_pool_acc S:vn S:vc S:vow R:vkw
                      init
                      average_pool_acc[vn, vc, vow] = T.float32(0.0)
                      average_pool_acc[vn, vc, vow] = average_pool_acc[vn, vc, vow] + x_pad[vn, vc, vow + vkw]
            n < 1
              c < 2
                ow < 7
                    block average_pool S:vn S:vc S:vow
                    average_pool[vn, vc, vow] = average_pool_acc[vn, vc, vow] / T.Cast("float32", T.min(vow + 3, 9) - T.max(vow, 1))
    "#]],
    );
    // The same number of cells in every window.
    shows(
        average_pool(&Pool::new(p.x, &[3]), false),
        expect![[r#"
        param x float32[1, 2, 8]
        param average_pool float32[1, 2, 6]
          block root
          alloc average_pool_acc float32[1, 2, 6]
            n < 1
              c < 2
                ow < 6
                  kw < 3
                      block average_pool_acc S:vn S:vc S:vow R:vkw
                      init
                      average_pool_acc[vn, vc, vow] = T.float32(0.0)
                      average_pool_acc[vn, vc, vow] = average_pool_acc[vn, vc, vow] + x[vn, vc, vow + vkw]
            n < 1
              c < 2
                ow < 6
                    block average_pool S:vn S:vc S:vow
                    average_pool[vn, vc, vow] = average_pool_acc[vn, vc, vow] * T.float32(0.33333334)
    "#]],
    );
}
