//! The matrices of Winograd's minimal filtering, derived from interpolation points.
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
//! and `B^T` the coefficients of the product over all points. All of it is exact, in rationals.
//!
//! Rows of `B^T` are made integers by a factor that the row of `G` is divided by.

use tilewright_ir::linear::gcd;

/// A rational number in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rational {
    over: i128,
    under: i128,
}

impl Rational {
    pub const ZERO: Rational = Rational { over: 0, under: 1 };
    pub const ONE: Rational = Rational { over: 1, under: 1 };

    /// `over / under`, where `under` is not zero. Numbers here are small: nothing overflows.
    pub fn new(over: i128, under: i128) -> Rational {
        let a = gcd(over, under) * under.signum();
        Rational { over: over / a, under: under / a }
    }

    fn plus(self, other: Rational) -> Rational {
        let over = self.over * other.under + other.over * self.under;
        Rational::new(over, self.under * other.under)
    }

    fn times(self, other: Rational) -> Rational {
        Rational::new(self.over * other.over, self.under * other.under)
    }

    fn negative(self) -> Rational {
        Rational::new(-self.over, self.under)
    }

    fn inverse(self) -> Rational {
        Rational::new(self.under, self.over)
    }

    fn power(self, exponent: usize) -> Rational {
        (0..exponent).fold(Rational::ONE, |all, _| all.times(self))
    }

    /// The nearest number of 64 bits.
    pub fn value(self) -> f64 {
        self.over as f64 / self.under as f64
    }
}

/// The matrices of `F(m, r)`, by rows.
#[derive(Clone, Debug)]
pub struct Matrices {
    /// `A^T`, `m` x `n`: from products to results.
    pub result: Vec<Vec<Rational>>,
    /// `G`, `n` x `r`: of the taps.
    pub taps: Vec<Vec<Rational>>,
    /// `B^T`, `n` x `n`: of the data.
    pub data: Vec<Vec<Rational>>,
}

impl Matrices {
    /// The matrices for some points, all different, of which there are `m + r - 2` beside infinity.
    pub fn new(m: usize, r: usize, points: &[Rational]) -> Matrices {
        let n = m + r - 1;
        debug_assert_eq!(points.len() + 1, n);
        let others = |j: usize| {
            let all = points.iter().enumerate();
            all.filter(move |(l, _)| *l != j).map(|(_, p)| *p).collect::<Vec<_>>()
        };
        let last = |len: usize| {
            let mut row = vec![Rational::ZERO; len];
            row.extend([Rational::ONE]);
            row
        };
        let result = (0..m)
            .map(|i| {
                let mut row: Vec<_> = points.iter().map(|p| p.power(i)).collect();
                row.push(if i + 1 == m { Rational::ONE } else { Rational::ZERO });
                row
            })
            .collect();
        let (mut taps, mut data) = (Vec::new(), Vec::new());
        for (j, p) in points.iter().enumerate() {
            let differences = others(j).into_iter().map(|q| p.plus(q.negative()));
            let norm = differences.fold(Rational::ONE, Rational::times);
            let mut row = product(&others(j));
            row.resize(n, Rational::ZERO);
            let whole = row.iter().fold(1, |all, c| all / gcd(all, c.under) * c.under);
            let whole = Rational::new(whole, 1);
            let by = norm.times(whole).inverse();
            data.push(row.into_iter().map(|c| c.times(whole)).collect());
            taps.push((0..r).map(|k| p.power(k).times(by)).collect());
        }
        data.push(product(points));
        taps.push(last(r - 1));
        Matrices { result, taps, data }
    }

    /// The matrices of `F(m, 3)`, for 2 or 4 results.
    pub fn of_three(m: usize) -> Matrices {
        let points = [(0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1)].map(|(a, b)| Rational::new(a, b));
        Matrices::new(m, 3, &points[..m + 1])
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

/// The coefficients of the product of `x - p` over some points, the constant first.
fn product(points: &[Rational]) -> Vec<Rational> {
    points.iter().fold(vec![Rational::ONE], |all, p| {
        let shifted = [&[Rational::ZERO][..], &all].concat();
        let scaled = all.iter().map(|c| c.times(p.negative())).chain([Rational::ZERO]);
        shifted.into_iter().zip(scaled).map(|(a, b)| a.plus(b)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `y[i]` has `d[l] * g[k]` once where `l = i + k`, and nowhere else.
    #[test]
    fn the_matrices_are_a_filter() {
        let half = [(0, 1), (1, 1), (-1, 1), (1, 2), (-1, 2)].map(|(a, b)| Rational::new(a, b));
        for (m, r, points) in [(2, 3, &half[..3]), (4, 3, &half[..5]), (3, 2, &half[..3])] {
            is_filter(&Matrices::new(m, r, points), r);
        }
        [2, 4].into_iter().for_each(|m| is_filter(&Matrices::of_three(m), 3));
    }

    fn is_filter(f: &Matrices, r: usize) {
        let n = f.products();
        for i in 0..f.results() {
            for (k, l) in (0..r).flat_map(|k| (0..n).map(move |l| (k, l))) {
                let products =
                    (0..n).map(|j| f.result[i][j].times(f.taps[j][k]).times(f.data[j][l]));
                let sum = products.fold(Rational::ZERO, Rational::plus);
                let wanted = if l == i + k { Rational::ONE } else { Rational::ZERO };
                assert_eq!(sum, wanted, "y[{i}], g[{k}], d[{l}]");
            }
        }
    }

    #[test]
    fn data_are_combined_by_whole_numbers() {
        let f = Matrices::of_three(4);
        assert!(f.data.iter().flatten().all(|c| c.under == 1));
        assert_eq!((f.products(), f.results()), (6, 4));
    }
}
