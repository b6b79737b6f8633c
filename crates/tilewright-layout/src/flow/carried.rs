//! Layouts carried through the calls whose results are their arguments under other axes ([`Regrouping`]).
//!
//! What a reader wants of a reshaped value is a layout in which the other one can be made, and what that is made in
//! is one in which the reshaped value can be read. In each such pair both are the same memory, so that the call
//! costs nothing.

use std::rc::Rc;

use tilewright_ir::GraphVar;

use super::ways::{Layouts, StoredValue, Way};
use super::{Permuted, Regrouped, TiledLayout};
use crate::regroup::Regrouping;

/// A call whose result is its argument under other axes, with the layouts that are carried through it.
pub(super) struct Carried {
    pub(super) node: usize,
    /// The value that has the argument's versions.
    root: u64,
    permuted: Option<Permuted>,
    var: GraphVar,
    there: Rc<Regrouping>,
    back: Regrouping,
    /// Layouts of the argument and the result that are the same memory.
    pairs: Vec<[TiledLayout; 2]>,
}

impl Carried {
    pub(super) fn new(
        node: usize,
        var: &GraphVar,
        of: &Regrouped,
        permuted: Option<Permuted>,
    ) -> Carried {
        let root = permuted.as_ref().map_or(&of.from, |p| &p.root).id();
        let back = (*of.regrouping).clone().inverse();
        let (var, there) = (var.clone(), of.regrouping.clone());
        Carried { node, root, permuted, var, there, back, pairs: Vec::new() }
    }

    fn to_root(&self, layout: &TiledLayout) -> TiledLayout {
        self.permuted.as_ref().map_or_else(|| layout.clone(), |p| p.to_root(layout))
    }

    /// Carries what is known of the layouts of both values to the other one.
    pub(super) fn follow(&mut self, layouts: &mut Layouts) {
        let own = TiledLayout::identity(self.there.from());
        let mut come = vec![own];
        come.extend(layouts.of(self.root).iter().map(|l| match &self.permuted {
            Some(permuted) => permuted.as_value(l),
            None => l.clone(),
        }));
        if let Some(permuted) = &self.permuted {
            come.push(permuted.as_value(&TiledLayout::identity(&permuted.logical)));
        }
        for from in come {
            if let Some(to) = self.there.carry(&from) {
                layouts.came_through(self.var.id(), &to);
                self.add(from, to, layouts);
            }
        }
        let mut wanted = vec![TiledLayout::identity(self.there.to())];
        wanted.extend(layouts.of(self.var.id()).iter().cloned());
        for to in wanted {
            if let Some(from) = self.back.carry(&to) {
                layouts.came_through(self.root, &self.to_root(&from));
                self.add(from, to, layouts);
            }
        }
    }

    fn add(&mut self, from: TiledLayout, to: TiledLayout, layouts: &mut Layouts) {
        let at_root = self.to_root(&from);
        let pair = [from, to];
        let fits = layouts.add(self.root, &at_root) && layouts.add(self.var.id(), &pair[1]);
        if fits && !self.pairs.contains(&pair) {
            self.pairs.push(pair);
        }
    }

    /// The call in each pair of layouts; at least in that of the argument as it is.
    pub(super) fn ways(&mut self) -> Vec<Way> {
        if self.pairs.is_empty() {
            let own = TiledLayout::identity(self.there.from());
            self.pairs.extend(self.there.carry(&own).map(|to| [own, to]));
        }
        let ways = self.pairs.iter().map(|pair| {
            let [from, to] = pair;
            let read = StoredValue { value: self.root, layout: self.to_root(from) };
            let write = StoredValue { value: self.var.id(), layout: to.clone() };
            Way {
                layouts: pair.to_vec(),
                policy: None,
                reads: vec![read],
                writes: vec![write],
                cost: 0.0,
            }
        });
        ways.collect()
    }
}
