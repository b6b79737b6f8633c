//! How an axis changes: cells come or go at places.

/// Cells that come in front of places of an axis, or go there, in terms of the old indices: `(5, 2)` are
/// two new cells in front of index 5 (behind the last one, for an axis of 5), and `(5, -2)` takes the
/// two cells away that end there. In the order of the places; no place twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth(Vec<(i64, i64)>);

impl Growth {
    /// A change at one place.
    pub fn at(place: i64, by: i64) -> Growth {
        Growth(vec![(place, by)])
    }

    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Places and changes.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.0.iter().copied()
    }

    /// Adds a change: whether it is new; `None` where another one is at its place.
    pub fn add(&mut self, place: i64, by: i64) -> Option<bool> {
        match self.0.binary_search_by_key(&place, |c| c.0) {
            Ok(at) => (self.0[at].1 == by).then_some(false),
            Err(at) => {
                self.0.insert(at, (place, by));
                Some(true)
            }
        }
    }

    /// By how many cells the axis changes.
    pub fn sum(&self) -> i64 {
        self.0.iter().map(|c| c.1).sum()
    }

    /// By how much an index moves, or the end of a range there.
    pub fn shift(&self, index: i64) -> i64 {
        self.0.iter().filter(|c| c.0 <= index).map(|c| c.1).sum()
    }

    /// Whether every place and change is a multiple of a number.
    pub fn is_multiple_of(&self, n: i64) -> bool {
        self.0.iter().all(|(place, by)| place % n == 0 && by % n == 0)
    }
}
