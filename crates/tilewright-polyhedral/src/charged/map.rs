//! Relations, and the last writers of what they read.

use presburger::{self as pb, Dim};

use super::{Ctx, PwAff, Set, coalesced, few_pairs};
use crate::answer::Known;

/// A union of conjunctions over inputs and outputs.
#[derive(Clone)]
pub(crate) struct Map {
    pub(super) ctx: Ctx,
    pub(super) raw: pb::Relation,
}

impl Map {
    pub(super) fn new(ctx: &Ctx, raw: pb::Relation) -> Map {
        Map { ctx: ctx.clone(), raw }
    }

    fn adopt(&self, raw: pb::Res<pb::Relation>) -> Known<Map> {
        Ok(Map::new(&self.ctx, self.ctx.known(raw)?))
    }

    fn made_set(&self, raw: pb::Res<pb::Set>) -> Known<Set> {
        Ok(Set::new(&self.ctx, self.ctx.known(raw)?))
    }

    pub fn union(&self, other: &Map) -> Map {
        Map::new(&self.ctx, self.raw.union(&other.raw))
    }

    pub fn intersect(&self, other: &Map) -> Known<Map> {
        few_pairs(&self.raw, &other.raw)?;
        self.adopt(self.raw.intersect(&other.raw, &self.ctx.budget()))
    }

    pub fn subtract(&self, other: &Map) -> Known<Map> {
        few_pairs(&self.raw, &other.raw)?;
        self.adopt(self.raw.subtract(&other.raw, &self.ctx.budget()))
    }

    pub fn intersect_domain(&self, domain: &Set) -> Known<Map> {
        few_pairs(&self.raw, &domain.raw)?;
        self.adopt(self.raw.intersect_domain(&domain.raw, &self.ctx.budget()))
    }

    pub fn intersect_range(&self, range: &Set) -> Known<Map> {
        few_pairs(&self.raw, &range.raw)?;
        self.adopt(self.raw.intersect_range(&range.raw, &self.ctx.budget()))
    }

    pub fn subtract_range(&self, range: &Set) -> Known<Map> {
        few_pairs(&self.raw, &range.raw)?;
        self.adopt(self.raw.subtract_range(&range.raw, &self.ctx.budget()))
    }

    /// This relation, then the other one.
    pub fn then(&self, other: &Map) -> Known<Map> {
        few_pairs(&self.raw, &other.raw)?;
        self.adopt(self.raw.then(&other.raw, &self.ctx.budget()))
    }

    /// The outputs of both, one behind the other.
    pub fn flat_range_product(&self, other: &Map) -> Known<Map> {
        self.adopt(self.raw.flat_range_product(&other.raw, &self.ctx.budget()))
    }

    pub fn reverse(&self) -> Map {
        Map::new(&self.ctx, self.raw.reverse())
    }

    pub fn domain(&self) -> Known<Set> {
        self.made_set(self.raw.domain(&self.ctx.budget()))
    }

    pub fn range(&self) -> Known<Set> {
        self.made_set(self.raw.range(&self.ctx.budget()))
    }

    /// The pairs as a set: inputs, then outputs.
    pub fn wrap(&self) -> Set {
        Set::new(&self.ctx, self.raw.wrap())
    }

    /// The union in fewer parts, where that does not take long.
    pub fn coalesce(&self) -> Known<Map> {
        Ok(Map::new(&self.ctx, coalesced(&self.ctx, &self.raw)?))
    }

    /// `n` inputs without constraints more, in front of input `at`.
    pub fn insert_inputs(&self, at: usize, n: usize) -> Map {
        Map::new(&self.ctx, self.raw.insert_dims(Dim::In, at, n))
    }

    /// The relation without `n` inputs from `at` on.
    pub fn project_out_inputs(&self, at: usize, n: usize) -> Known<Map> {
        self.adopt(self.raw.project_out(Dim::In, at, n, &self.ctx.budget()))
    }

    /// Input `from` as parameter `to`, with a name.
    pub fn input_to_param(&self, from: usize, to: usize, name: &str) -> Map {
        let raw = self.raw.move_dims(Dim::Param, to, Dim::In, from, 1);
        Map::new(&self.ctx, raw.with_param_name(to, name))
    }

    /// Output `at` as a function of the inputs.
    pub fn function(&self, at: usize) -> Known<PwAff> {
        let raw = self.raw.function(at, &self.ctx.budget());
        Ok(PwAff::new(&self.ctx, self.ctx.known(raw)?))
    }

    pub fn is_subset(&self, other: &Map) -> Known<bool> {
        few_pairs(&self.raw, &other.raw)?;
        self.ctx.known(self.raw.is_subset(&other.raw, &self.ctx.budget()))
    }

    pub fn is_injective(&self) -> Known<bool> {
        self.ctx.known(self.raw.is_injective(&self.ctx.budget()))
    }

    pub fn is_empty(&self) -> Known<bool> {
        self.ctx.known(self.raw.is_empty(&self.ctx.budget()))
    }
}

/// A write that may give a read its value.
pub(crate) struct Source<'a> {
    /// From instances to cells.
    pub cells: &'a Map,
    /// From instances to times, which are compared lexicographically.
    pub time: &'a Map,
    /// Whether the write certainly happens.
    pub is_certain: bool,
}

/// Where the values of a read come from, by the places of the sources.
pub(crate) struct LastWriters {
    /// The pairs of instances of which the first is certainly the last write.
    pub certain: Vec<Map>,
    /// Those of which it may be.
    pub possible: Vec<Map>,
    /// What of the read has no certain write before it.
    pub rest: Map,
}

/// The last writers of a read that happens at `time`.
pub(crate) fn last_writers(read: &Map, time: &Map, sources: &[Source]) -> Known<LastWriters> {
    let ctx = &read.ctx;
    let sources: Vec<pb::Source> = sources
        .iter()
        .map(|s| pb::Source {
            cells: s.cells.raw.clone(),
            time: s.time.raw.clone(),
            is_certain: s.is_certain,
        })
        .collect();
    let flow = pb::last_writers(&read.raw, &time.raw, &sources, &ctx.budget());
    let flow = ctx.known(flow)?;
    Ok(LastWriters {
        certain: maps_of(flow.certain, ctx),
        possible: maps_of(flow.possible, ctx),
        rest: Map::new(ctx, flow.rest),
    })
}

fn maps_of(raws: Vec<pb::Relation>, ctx: &Ctx) -> Vec<Map> {
    raws.into_iter().map(|raw| Map::new(ctx, raw)).collect()
}
