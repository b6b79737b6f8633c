//! The matrices of Winograd's minimal filtering.
//!
//! `F(m, r)` computes `m` neighbours `y[i] = sum(d[i + k] * g[k])` of a window of `r` taps by
//! `n = m + r - 1` products. By the theorem of Toom and Cook, the coefficients of a product of two
//! polynomials follow from its values at `n` points; the transposed algorithm is a filter:
//!
//! ```text
//! y = A^T ((G g) * (B^T d))
//! ```
//!
//! With points `p[0..n-1]` and infinity, `A^T[i][j] = p[j]^i`, `G[j][k] = p[j]^k / N[j]` where `N[j]` is
//! the product of `p[j] - p[l]` over the other points, and row `j` of `B^T` has the coefficients of the
//! product of `x - p[l]` over the other points; at infinity `A^T` and `G` have a one in their last place,
//! and `B^T` the coefficients of the product over all points. The points here are 0, 1 and -1, and for
//! four results also 2 and -2, so that all of `B^T` are whole numbers.

/// The matrices of `F(m, 3)`, by rows.
#[derive(Clone, Copy, Debug)]
pub struct Matrices {
    /// `A^T`, `m` x `n`: from products to results.
    pub result: &'static [&'static [f64]],
    /// `G`, `n` x 3: of the taps.
    pub taps: &'static [&'static [f64]],
    /// `B^T`, `n` x `n`: of the data.
    pub data: &'static [&'static [f64]],
}

const OF_TWO: Matrices = Matrices {
    result: &[&[1.0, 1.0, 1.0, 0.0], &[0.0, 1.0, -1.0, 1.0]],
    taps: &[&[-1.0, 0.0, 0.0], &[0.5, 0.5, 0.5], &[0.5, -0.5, 0.5], &[0.0, 0.0, 1.0]],
    data: &[
        &[-1.0, 0.0, 1.0, 0.0],
        &[0.0, 1.0, 1.0, 0.0],
        &[0.0, -1.0, 1.0, 0.0],
        &[0.0, -1.0, 0.0, 1.0],
    ],
};

const OF_FOUR: Matrices = Matrices {
    result: &[
        &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        &[0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
        &[0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
        &[0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
    ],
    taps: &[
        &[1.0 / 4.0, 0.0, 0.0],
        &[-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        &[-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        &[1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        &[1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        &[0.0, 0.0, 1.0],
    ],
    data: &[
        &[4.0, 0.0, -5.0, 0.0, 1.0, 0.0],
        &[0.0, -4.0, -4.0, 1.0, 1.0, 0.0],
        &[0.0, 4.0, -4.0, -1.0, 1.0, 0.0],
        &[0.0, -2.0, -1.0, 2.0, 1.0, 0.0],
        &[0.0, 2.0, -1.0, -2.0, 1.0, 0.0],
        &[0.0, 4.0, 0.0, -5.0, 0.0, 1.0],
    ],
};

impl Matrices {
    /// The matrices of `F(m, 3)`, for 2 or 4 results.
    pub fn of_three(m: usize) -> Matrices {
        if m == 2 { OF_TWO } else { OF_FOUR }
    }

    /// How many products there are.
    pub fn products(&self) -> usize {
        self.data.len()
    }

    /// How many results there are.
    pub fn results(&self) -> usize {
        self.result.len()
    }
}
