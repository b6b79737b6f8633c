//! Vectors that are woven from runs of neighbours in memory: whole vectors, and shuffles.
//!
//! Where the lanes of a load lie at constant distances, as those of `A[(l % 2) * 784 + l // 2]` do, each run of
//! neighbours is one load of a vector, of nothing but elements that the lanes read.

use tilewright_ir::{Buffer, Error, Result};

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
        (base, apart): (&Val, &[i64]),
        runs: &[Run],
        ty: Ty,
    ) -> Result<Val> {
        let lanes = usize::from(ty.lanes);
        let mut all: Option<Val> = None;
        for (k, (first, count)) in runs.iter().enumerate() {
            let at = self.code.add64(base, &Val::int(Ty::I64, *first));
            let (address, element) = self.address(b, &at)?;
            let run = self.load_lanes(b, &address, ty.of(element).with_lanes(*count), element);
            let next = match count {
                1 => self.code.splat(&run, ty.lanes),
                _ => self.code.resized(&run, ty.lanes),
            };
            let here = |lane: usize| -> Option<usize> {
                let place = apart[lane].checked_sub(*first)?;
                usize::try_from(place).ok().filter(|p| *p < usize::from(*count))
            };
            // The first two are woven at once; lanes of runs that are still to come are any.
            let order: Vec<usize> = match (k, &all) {
                (0, _) => {
                    all = Some(next);
                    continue;
                }
                (1, _) => {
                    let (start, _) = runs[0];
                    let before =
                        |lane: usize| usize::try_from(apart[lane].wrapping_sub(start)).unwrap_or(0);
                    let place = |lane: usize| match here(lane) {
                        Some(place) => lanes + place,
                        None => before(lane).min(lanes - 1),
                    };
                    (0..lanes).map(place).collect()
                }
                _ => (0..lanes).map(|l| here(l).map_or(l, |place| lanes + place)).collect(),
            };
            all = all.map(|all| self.code.shuffle(&all, &next, &order));
        }
        let all = all.ok_or_else(|| Error::internal("a vector of no runs"))?;
        match runs {
            [(start, count)] => {
                let place = |at: &i64| usize::try_from(at.wrapping_sub(*start)).unwrap_or(0);
                let order: Vec<usize> =
                    apart.iter().map(|at| place(at).min(usize::from(*count) - 1)).collect();
                Ok(self.code.shuffle(&all, &all, &order))
            }
            _ => Ok(all),
        }
    }
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
