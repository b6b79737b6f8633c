//! Vectors that are woven from runs of neighbours in memory: whole vectors, and shuffles.
//!
//! Where the lanes of a load lie at constant distances, as those of `A[(l % 2) * 784 + l // 2]` do, each run of
//! neighbours is one load of a vector, of nothing but elements that the lanes read.

use tilewright_ir::{Buffer, Error, Result};

use super::address::Base;
use super::code::{Ty, Val};
use super::func::Func;

/// The most runs that are read as vectors.
const MOST: usize = 4;

/// Elements that lie beside one another: the first one, and how many.
type Run = (i64, u16);

/// The runs that lanes at these distances read, in the order of memory; `None` where they are too many, or so
/// short that a load of each lane costs no more.
pub(super) fn runs(apart: &[i64]) -> Option<Vec<Run>> {
    let mut places = apart.to_vec();
    places.sort_unstable();
    places.dedup();
    let mut all: Vec<Run> = Vec::new();
    for place in places {
        match all.last_mut() {
            Some((first, count)) if place.checked_sub(*first) == Some(i64::from(*count)) => {
                *count = count.checked_add(1)?;
            }
            _ => all.push((place, 1)),
        }
    }
    (all.len() <= MOST && 2 * all.len() <= apart.len()).then_some(all)
}

impl Func<'_> {
    /// Lanes at constant distances from a place, which lie in these runs; `ty` is the type in registers.
    pub(super) fn woven(
        &mut self,
        b: &Buffer,
        start: &Base,
        (at, apart): (&Val, &[i64]),
        runs: &[Run],
        ty: Ty,
    ) -> Result<Val> {
        let lanes = usize::from(ty.lanes);
        let Some((&(lowest, _), others)) = runs.split_first() else {
            return Err(Error::internal("a vector of no runs"));
        };
        let mut all = self.run(b, start, at, runs[0], ty)?;
        // Where each lane is in the vector; lanes of runs that are still to come are any.
        let mut places: Vec<usize> = apart
            .iter()
            .map(|at| usize::try_from(at.wrapping_sub(lowest)).unwrap_or(0).min(lanes - 1))
            .collect();
        if others.is_empty() {
            return Ok(self.code.shuffle(&all, &all, &places));
        }
        for &(first, count) in others {
            let next = self.run(b, start, at, (first, count), ty)?;
            let order: Vec<usize> = apart
                .iter()
                .zip(places)
                .map(|(at, place)| lane_at(*at, first, count, lanes).unwrap_or(place))
                .collect();
            all = self.code.shuffle(&all, &next, &order);
            places = (0..lanes).collect();
        }
        Ok(all)
    }

    /// A run at a distance from a place, at the start of a vector.
    fn run(
        &mut self,
        b: &Buffer,
        start: &Base,
        at: &Val,
        (first, count): Run,
        ty: Ty,
    ) -> Result<Val> {
        let at = self.code.add_index(at, &Val::int(Ty::I64, first), true);
        let cells = self.cells(b, start, &at)?;
        let run = self.load_lanes(b, &cells, count);
        Ok(match count {
            1 => self.code.splat(&run, ty.lanes),
            _ => self.code.resized(&run, ty.lanes),
        })
    }
}

fn lane_at(at: i64, first: i64, count: u16, lanes: usize) -> Option<usize> {
    let place = usize::try_from(at.checked_sub(first)?).ok()?;
    (place < usize::from(count)).then_some(lanes + place)
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn neighbours_are_one_run() {
        let woven: Vec<i64> = (0..16).map(|l| l % 2 * 100 + l / 2).collect();
        assert_eq!(runs(&woven), Some(vec![(0, 8), (100, 8)]));
        let twice: Vec<i64> = (0..16).map(|l| l / 2).collect();
        assert_eq!(runs(&twice), Some(vec![(0, 8)]));
        let apart: Vec<i64> = (0..8).map(|l| l * 5).collect();
        assert_eq!(runs(&apart), None);
        assert_eq!(runs(&[0, 7, 14, 21]), None);
        assert_eq!(runs(&[i64::MIN, i64::MAX, 0, 1]), None);
    }
}
