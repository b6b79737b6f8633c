//! The matrices of the products that stand for convolutions.

use tilewright_graph::winograd::points::Matrices;

/// `y[i]` has `d[l] * g[k]` once where `l = i + k`, and nowhere else.
#[test]
fn the_matrices_are_a_filter() {
    for m in [2, 4] {
        let f = Matrices::of_three(m);
        let n = f.products();
        assert_eq!((f.results(), n), (m, m + 2));
        for i in 0..m {
            for (k, l) in (0..3).flat_map(|k| (0..n).map(move |l| (k, l))) {
                let products = (0..n).map(|j| f.result[i][j] * f.taps[j][k] * f.data[j][l]);
                let wanted = if l == i + k { 1.0 } else { 0.0 };
                let sum: f64 = products.sum();
                assert!((sum - wanted).abs() < 1e-14, "F({m}, 3): y[{i}], g[{k}], d[{l}]");
            }
        }
    }
}

#[test]
fn data_are_combined_by_whole_numbers() {
    let all = [2, 4].map(|m| Matrices::of_three(m).data.concat()).concat();
    assert!(all.iter().all(|c| c.fract() == 0.0));
}
