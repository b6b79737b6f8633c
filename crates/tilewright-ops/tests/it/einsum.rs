use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::einsum::einsum;

use crate::nd::{Nd, check, refused};

#[test]
fn sums_of_products() {
    let x = |shape: &[usize]| Nd::integers(shape, shape.len() as u64, -4, 4);
    let (a, b) = (x(&[3, 4]), x(&[4, 5]));
    let (p, q) = (x(&[2, 3, 4]), Nd::integers(&[2, 4, 5], 9, -4, 4));
    let s = x(&[3, 3]);
    let sum = |n: usize, f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>();
    let cases: Vec<(&str, Vec<&Nd>, Nd)> = vec![
        (
            "ij,jk->ik",
            vec![&a, &b],
            Nd::build(&[3, 5], |i| sum(4, &|k| a.at(&[i[0], k]) * b.at(&[k, i[1]]))),
        ),
        (
            "ij, jk",
            vec![&a, &b],
            Nd::build(&[3, 5], |i| sum(4, &|k| a.at(&[i[0], k]) * b.at(&[k, i[1]]))),
        ),
        (
            "bij,bjk->kbi",
            vec![&p, &q],
            Nd::build(&[5, 2, 3], |i| sum(4, &|k| p.at(&[i[1], i[2], k]) * q.at(&[i[1], k, i[0]]))),
        ),
        (
            "...ij,...jk->...ik",
            vec![&p, &q],
            Nd::build(&[2, 3, 5], |i| sum(4, &|k| p.at(&[i[0], i[1], k]) * q.at(&[i[0], k, i[2]]))),
        ),
        (
            "...ij,jk",
            vec![&p, &b],
            Nd::build(&[2, 3, 5], |i| sum(4, &|k| p.at(&[i[0], i[1], k]) * b.at(&[k, i[2]]))),
        ),
        ("ij->ji", vec![&a], Nd::build(&[4, 3], |i| a.at(&[i[1], i[0]]))),
        ("ba", vec![&a], Nd::build(&[4, 3], |i| a.at(&[i[1], i[0]]))),
        ("ij->", vec![&a], Nd::build(&[], |_| a.data.iter().sum())),
        ("ii->i", vec![&s], Nd::build(&[3], |i| s.at(&[i[0], i[0]]))),
        ("ii", vec![&s], Nd::build(&[], |_| sum(3, &|k| s.at(&[k, k])))),
        ("...->...", vec![&a], a.clone()),
        ("i...->...", vec![&p], Nd::build(&[3, 4], |i| sum(2, &|k| p.at(&[k, i[0], i[1]])))),
    ];
    for (equation, operands, expected) in &cases {
        for dtype in [DType::F32, DType::I64, DType::F16] {
            let types: Vec<_> = operands.iter().map(|x| Operand::new(&x.shape, dtype)).collect();
            let inputs: Vec<_> = operands.iter().map(|x| x.tensor(dtype)).collect();
            check(einsum(equation, &types), &inputs, &[(expected, dtype)]);
        }
    }
    let (u, v, w) = (x(&[2]), Nd::integers(&[3], 8, -4, 4), Nd::integers(&[4], 7, -4, 4));
    let expected = Nd::build(&[3, 4, 2], |i| u.at(&i[2..]) * v.at(&i[..1]) * w.at(&i[1..2]));
    let types: Vec<_> = [&u, &v, &w].map(|x| Operand::f32(&x.shape)).into();
    check(einsum("i,j,k->jki", &types), &[u.f32(), v.f32(), w.f32()], &[(&expected, DType::F32)]);
    // Axes of the dots broadcast.
    let (m, n) = (x(&[2, 1, 3]), x(&[4, 3]));
    let expected = Nd::build(&[2, 4], |i| sum(3, &|k| m.at(&[i[0], 0, k]) * n.at(&[i[1], k])));
    let types: Vec<_> = [&m, &n].map(|x| Operand::f32(&x.shape)).into();
    check(einsum("...k,...k->...", &types), &[m.f32(), n.f32()], &[(&expected, DType::F32)]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (x, y) = (Operand::f32(&[3, 4]), Operand::f32(&[5, 6]));
    let of = |equation: &str, operands: &[&Operand]| {
        refused(einsum(equation, &operands.iter().map(|x| (*x).clone()).collect::<Vec<_>>()))
    };
    let messages = [
        of("ij", &[]),
        of("ij", &[&x, &y]),
        of("ij,jk", &[&x, &y]),
        of("ijk", &[&x]),
        of("i", &[&x]),
        of("ijk...", &[&x]),
        of("i1", &[&x]),
        of("i......", &[&x]),
        of("ij->ijk", &[&x]),
        of("ij->ii", &[&x]),
        of("ij->...ji->", &[&x]),
        of("ij", &[&Operand::new(&[1, 1], DType::BOOL)]),
        of("ij,ij", &[&x, &Operand::new(&[3, 4], DType::F16)]),
    ];
    expect_test::expect![[r#"
        input: einsum: `ij`: there is no operand
        input: einsum: `ij`: it has 1 terms for 2 operands
        input: einsum: `ij,jk`: axis `j` has 4 and 5 elements
        input: einsum: `ijk`: the term `ijk` does not have 2 axes
        input: einsum: `i`: the term `i` does not have 2 axes
        input: einsum: `ijk...`: the term `ijk...` does not have 2 axes
        input: einsum: `i1`: `1` is no label
        input: einsum: `i......`: `.` is no label
        input: einsum: `ij->ijk`: no operand has the label `k` of the result
        input: einsum: `ij->ii`: a label comes twice in the result
        input: einsum: `ij->...ji->`: `-` is no label
        unsupported: einsum: bool is not supported
        input: einsum: the types float32 and float16 differ
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
