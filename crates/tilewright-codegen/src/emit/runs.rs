//! Vectors that are woven from runs of neighbours in memory: whole vectors, and shuffles.
//!
//! Where the lanes of a load lie at constant distances, as those of `A[(l % 2) * 784 + l // 2]` do, or in rows whose
//! distance is a size, each run of neighbours is one load of a vector, of nothing but elements that the lanes read.

use tilewright_ir::{Buffer, Error, Result};

use super::address::Base;
use super::code::{Ty, Val};
use super::func::Func;

/// The most runs that are read as vectors.
const MOST: usize = 4;

/// Rows whose distance is known when the code runs.
#[derive(Clone)]
pub(super) struct Rows {
    /// The distance of a row from the next one.
    pub distance: Val,
    /// In which row each lane is.
    pub of: Vec<i64>,
}

/// Where a lane lies: in which row, and how far from where that begins.
type Place = (i64, i64);

/// Elements that lie beside one another: the first one, and how many.
type Run = (Place, u16);

/// The places of lanes so far from a base, and in rows.
pub(super) fn places(apart: &[i64], rows: Option<&Rows>) -> Vec<Place> {
    let row = |lane: usize| rows.and_then(|rows| rows.of.get(lane)).copied().unwrap_or(0);
    apart.iter().enumerate().map(|(lane, at)| (row(lane), *at)).collect()
}

/// The runs that lanes at these places read, in the order of rows and memory; `None` where they are too many, or so
/// short that a load of each lane costs no more.
pub(super) fn runs(places: &[Place]) -> Option<Vec<Run>> {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut all: Vec<Run> = Vec::new();
    for place in sorted {
        match all.last_mut() {
            Some((first, count))
                if place.0 == first.0
                    && place.1.checked_sub(first.1) == Some(i64::from(*count)) =>
            {
                *count = count.checked_add(1)?;
            }
            _ => all.push((place, 1)),
        }
    }
    (all.len() <= MOST && 2 * all.len() <= places.len()).then_some(all)
}

impl Func<'_> {
    /// Lanes at places from a base, with the distance of rows where there are several, which lie in these runs; `ty`
    /// is the type in registers.
    pub(super) fn woven(
        &mut self,
        b: &Buffer,
        start: &Base,
        base: (&Val, Option<&Val>),
        (places, runs): (&[Place], &[Run]),
        ty: Ty,
    ) -> Result<Val> {
        let lanes = usize::from(ty.lanes);
        let Some((&first, others)) = runs.split_first() else {
            return Err(Error::internal("a vector of no runs"));
        };
        let mut all = self.run(b, start, base, first, ty)?;
        // Where each lane is in the vector; lanes of runs that are still to come are any.
        let mut order: Vec<usize> =
            places.iter().map(|place| lane_at(*place, first).unwrap_or(0)).collect();
        if others.is_empty() {
            return Ok(self.code.shuffle(&all, &all, &order));
        }
        for &run in others {
            let next = self.run(b, start, base, run, ty)?;
            for (at, place) in order.iter_mut().zip(places) {
                *at = lane_at(*place, run).map_or(*at, |lane| lanes + lane);
            }
            all = self.code.shuffle(&all, &next, &order);
            order = (0..lanes).collect();
        }
        Ok(all)
    }

    /// A run, at the start of a vector.
    fn run(
        &mut self,
        b: &Buffer,
        start: &Base,
        (base, distance): (&Val, Option<&Val>),
        ((row, first), count): Run,
        ty: Ty,
    ) -> Result<Val> {
        let mut at = self.code.add_index(base, &Val::int(Ty::I64, first), true);
        if let Some(distance) = distance.filter(|_| row != 0) {
            let rows = self.code.mul_index(distance, &Val::int(Ty::I64, row), true);
            at = self.code.add_index(&at, &rows, true);
        }
        let cells = self.cells(b, start, &at)?;
        let run = self.load_lanes(b, &cells, count);
        Ok(match count {
            1 => self.code.splat(&run, ty.lanes),
            _ => self.code.resized(&run, ty.lanes),
        })
    }
}

/// Where in a run an element lies; `None` where it is in another one.
fn lane_at((row, at): Place, ((run, first), count): Run) -> Option<usize> {
    let lane = usize::try_from(at.checked_sub(first)?).ok()?;
    (row == run && lane < usize::from(count)).then_some(lane)
}

#[cfg(test)]
mod tests {
    use super::{Place, runs};

    #[test]
    fn neighbours_are_one_run() {
        let of_one_row = |lanes: &[i64]| lanes.iter().map(|at| (0, *at)).collect::<Vec<Place>>();
        let woven: Vec<i64> = (0..16).map(|l| l % 2 * 100 + l / 2).collect();
        assert_eq!(runs(&of_one_row(&woven)), Some(vec![((0, 0), 8), ((0, 100), 8)]));
        let twice: Vec<i64> = (0..16).map(|l| l / 2).collect();
        assert_eq!(runs(&of_one_row(&twice)), Some(vec![((0, 0), 8)]));
        let apart: Vec<i64> = (0..8).map(|l| l * 5).collect();
        assert_eq!(runs(&of_one_row(&apart)), None);
        assert_eq!(runs(&of_one_row(&[0, 7, 14, 21])), None);
        assert_eq!(runs(&of_one_row(&[i64::MIN, i64::MAX, 0, 1])), None);
        // What lies beside one another in two rows is two runs.
        let rows: Vec<Place> = (0..16).map(|l| (l % 2, l / 2)).collect();
        assert_eq!(runs(&rows), Some(vec![((0, 0), 8), ((1, 0), 8)]));
        assert_eq!(runs(&[(0, 0), (0, 1), (1, 2), (1, 3)]), Some(vec![((0, 0), 2), ((1, 2), 2)]));
    }
}
