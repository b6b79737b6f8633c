//! Ways to compute a call, and the layouts of values in which calls are looked at.

use tilewright_ir::hash::{HashMap, HashSet};

use super::TiledLayout;
use crate::policy::ConvLayout;

/// Layouts of one value that are looked at beside the logical one, the first found.
const MOST_LAYOUTS: usize = 6;

/// A value in a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredValue {
    pub(super) value: u64,
    pub(super) layout: TiledLayout,
}

/// A way to compute a call.
#[derive(Clone)]
pub(super) struct Way {
    /// The layouts of all arguments, then of the results; empty for a call that has no choice.
    pub(super) layouts: Vec<TiledLayout>,
    /// The policy that says so, for a convolution; `Some(None)` for the logical layout.
    pub(super) policy: Option<Option<ConvLayout>>,
    pub(super) reads: Vec<StoredValue>,
    pub(super) writes: Vec<StoredValue>,
    /// In the unit of the [`Costs`](super::Costs).
    pub(super) cost: f64,
}

/// What is known of the layouts of values.
#[derive(Default)]
pub(super) struct Layouts {
    of: HashMap<u64, Vec<TiledLayout>>,
    /// Those that came through reshapes.
    carried: HashSet<(u64, TiledLayout)>,
    /// Whether one was found since this was set to false.
    pub(super) changed: bool,
}

impl Layouts {
    /// Those of a value beside its own that were found so far.
    pub(super) fn of(&self, value: u64) -> &[TiledLayout] {
        self.of.get(&value).map_or(&[], Vec::as_slice)
    }

    /// Takes note of a layout of a value; whether there is room for it.
    pub(super) fn add(&mut self, value: u64, layout: &TiledLayout) -> bool {
        let all = self.of.entry(value).or_default();
        if layout.is_identity() || all.contains(layout) {
            return true;
        }
        let has_room = all.len() < MOST_LAYOUTS;
        if has_room {
            all.push(layout.clone());
            self.changed = true;
        }
        has_room
    }

    /// Takes note that a layout of a value came through a reshape.
    pub(super) fn came_through(&mut self, value: u64, layout: &TiledLayout) {
        if !layout.is_identity() {
            self.carried.insert((value, layout.clone()));
        }
    }

    /// Whether it did.
    pub(super) fn has_come_through(&self, value: u64, layout: &TiledLayout) -> bool {
        self.carried.contains(&(value, layout.clone()))
    }
}
