//! Windows that slide.

use tilewright_driver::DType;
use tilewright_ops::Operand;
use tilewright_ops::pool::{
    Pool, average_pool, global_average_pool, global_lp_pool, global_max_pool, lp_pool, max_pool,
    max_pool_with_indices,
};

use super::check;

fn pools() -> Vec<Pool> {
    let plain = || Pool::new(Operand::f32(&[2, 3, 9, 11]), &[3, 2]);
    vec![
        plain(),
        Pool { strides: vec![2, 2], ..plain() },
        Pool { strides: vec![2, 3], ceil_mode: true, ..plain() },
        Pool { pads_begin: vec![1, 0], pads_end: vec![1, 1], ..plain() },
        Pool { dilations: vec![2, 3], ..plain() },
        Pool {
            strides: vec![2, 2],
            pads_begin: vec![1, 1],
            pads_end: vec![1, 0],
            ceil_mode: true,
            ..plain()
        },
        Pool::new(Operand::f32(&[1, 5, 17]), &[4]),
        Pool::new(Operand::f32(&[1, 2, 5, 6, 7]), &[2, 3, 2]),
    ]
}

#[test]
fn pools_with_every_option() {
    for p in pools() {
        check(&format!("max {p:?}"), max_pool(&p));
        check(&format!("max with indices {p:?}"), max_pool_with_indices(&p, false));
        check(&format!("average {p:?}"), average_pool(&p, false));
        check(&format!("average with pads {p:?}"), average_pool(&p, true));
        check(&format!("lp {p:?}"), lp_pool(&p, 2));
    }
}

#[test]
fn pools_of_other_types() {
    for dtype in [DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8] {
        let p = Pool {
            pads_begin: vec![1, 1],
            pads_end: vec![1, 1],
            ..Pool::new(Operand::new(&[1, 3, 8, 7], dtype), &[3, 3])
        };
        check(&format!("max {p:?}"), max_pool(&p));
        if dtype.is_float() {
            check(&format!("average {p:?}"), average_pool(&p, false));
        }
    }
}

#[test]
fn pools_of_the_whole_image() {
    for shape in [&[2, 5, 7, 9][..], &[1, 17, 3], &[2, 3, 4, 5, 6], &[1, 65, 1, 1]] {
        let x = Operand::f32(shape);
        check(&format!("max of {x}"), global_max_pool(&x));
        check(&format!("average of {x}"), global_average_pool(&x));
        check(&format!("lp of {x}"), global_lp_pool(&x, 2));
    }
}
