//! What a layout on a constant shape does to memory: padding, vector accesses, bank conflicts, and where
//! two layouts differ. All of it is counted over every point, so that it is exact.

use super::points::Grid;

/// Two logical indices.
pub type Pair = [Vec<i64>; 2];

/// Two indices with one address, if there are such.
pub fn collision(grid: &Grid) -> Option<Pair> {
    let mut first = vec![None; grid.cells() as usize];
    for (number, offset) in grid.offsets().iter().enumerate() {
        if let Some(other) = first[*offset as usize].replace(number) {
            return Some([grid.point(other), grid.point(number)]);
        }
    }
    None
}

/// The number of cells that hold no element.
pub fn padding(grid: &Grid) -> usize {
    grid.contents().iter().filter(|c| c.is_none()).count()
}

/// The longest vector access along an axis: a power of two `v` such that elements `v*k` to `v*k + v - 1` of the
/// axis always lie one behind the other from a multiple of `v` on. What a ragged axis leaves at its end
/// is shorter.
pub fn vector(grid: &Grid, axis: usize) -> i64 {
    let Some(extent) = grid.shape().get(axis).copied() else { return 1 };
    let step: i64 = grid.shape()[axis + 1..].iter().product();
    let offsets = grid.offsets();
    let mut longest = 1;
    while longest * 2 <= extent && fits_vector(longest * 2, offsets, step, extent) {
        longest *= 2;
    }
    longest
}

fn fits_vector(v: i64, offsets: &[i64], step: i64, extent: i64) -> bool {
    offsets.iter().enumerate().all(|(number, offset)| {
        let at = number as i64 / step % extent;
        let first = number as i64 - at % v * step;
        let base = offsets[first as usize];
        base % v == 0 && *offset == base + at % v
    })
}

/// Memory in banks, and the lanes that access it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banks {
    /// Lanes of a warp.
    pub lanes: i64,
    pub banks: i64,
    /// Bytes of a word of a bank.
    pub word: i64,
    /// Bytes of an element.
    pub element: i64,
}

impl Default for Banks {
    /// 32 lanes, 32 banks of four bytes, elements of four bytes: shared memory of NVIDIA's GPUs.
    fn default() -> Self {
        Banks { lanes: 32, banks: 32, word: 4, element: 4 }
    }
}

/// How far accesses of a warp wait for one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The largest number of different words of one bank that a warp accesses.
    pub degree: i64,
    /// Two lanes that access different words of one bank, where the degree is above one.
    pub lanes: Option<[i64; 2]>,
    /// What the two lanes access.
    pub elements: Option<Pair>,
}

/// The worst bank conflict of warps whose lanes access elements that follow one another along an axis,
/// and along the axes before it where that is shorter than a warp. Each warp begins where the one before it
/// ends.
pub fn conflict(grid: &Grid, axis: usize, banks: Banks) -> Conflict {
    let rank = grid.shape().len();
    // The axes from the fastest one on: the given one, then those from the last one on.
    let rest = (0..rank).rev().filter(|d| *d != axis);
    let order: Vec<usize> = std::iter::once(axis).chain(rest).filter(|d| *d < rank).collect();
    let count = grid.offsets().len() as i64;
    let mut worst = Conflict { degree: 1.min(count), lanes: None, elements: None };
    let mut words: Vec<(i64, i64, i64)> = Vec::new();
    let mut first = 0;
    while first < count {
        words.clear();
        for lane in 0..banks.lanes.min(count - first) {
            let offset = grid.offset(&point_of(first + lane, rank, &order, grid));
            let word = offset * banks.element / banks.word;
            words.push((word % banks.banks, word, lane));
        }
        words.sort_unstable();
        let mut start = 0;
        while start < words.len() {
            let same = words[start..].iter().take_while(|w| w.0 == words[start].0).count();
            let of_bank = &words[start..start + same];
            let different = 1 + of_bank.windows(2).filter(|w| w[0].1 != w[1].1).count() as i64;
            if different > worst.degree
                && let Some(pair) = of_bank.windows(2).find(|w| w[0].1 != w[1].1)
            {
                let lanes = [pair[0].2, pair[1].2];
                let elements = lanes.map(|lane| point_of(first + lane, rank, &order, grid));
                worst =
                    Conflict { degree: different, lanes: Some(lanes), elements: Some(elements) };
            }
            start += same;
        }
        first += banks.lanes;
    }
    worst
}

fn point_of(number: i64, rank: usize, order: &[usize], grid: &Grid) -> Vec<i64> {
    let mut rest = number;
    let mut at = vec![0; rank];
    for d in order {
        let n = grid.shape()[*d].max(1);
        at[*d] = rest % n;
        rest /= n;
    }
    at
}

/// The first index at which two layouts of one shape have different addresses, with both.
pub fn difference(a: &Grid, b: &Grid) -> Option<(Vec<i64>, i64, i64)> {
    let mut pairs = a.offsets().iter().zip(b.offsets());
    let at = pairs.position(|(x, y)| x != y)?;
    Some((a.point(at), a.offsets()[at], b.offsets()[at]))
}
