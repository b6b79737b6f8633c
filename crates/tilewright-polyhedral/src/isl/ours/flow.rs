//! Last writers, as the objects that say which relations belong together.

use presburger::{self as pb, Source};

use super::{AccessInfo, Flow, Map, UnionMap};
use crate::answer::{Known, Reason, Unknown};

impl UnionMap {
    pub fn union(mut self, other: UnionMap) -> Known<UnionMap> {
        for map in other.maps {
            match self.maps.iter_mut().find(|m| m.names == map.names) {
                Some(known) => known.raw = known.raw.union(&map.raw),
                None => self.maps.push(map),
            }
        }
        Ok(self)
    }

    pub fn sink(self) -> Known<AccessInfo> {
        let none = || UnionMap { maps: Vec::new() };
        Ok(AccessInfo { sink: self, must: none(), may: none(), schedule: none() })
    }

    /// The relations, one a space.
    pub fn list(&self) -> Known<Vec<Map>> {
        Ok(self.maps.clone())
    }
}

impl AccessInfo {
    pub fn must_source(self, writes: UnionMap) -> Known<AccessInfo> {
        Ok(AccessInfo { must: writes, ..self })
    }

    pub fn may_source(self, writes: UnionMap) -> Known<AccessInfo> {
        Ok(AccessInfo { may: writes, ..self })
    }

    pub fn schedule(self, order: UnionMap) -> Known<AccessInfo> {
        Ok(AccessInfo { schedule: order, ..self })
    }

    /// The flow into the sink, which is one relation.
    pub fn flow(self) -> Known<Flow> {
        let none = || UnionMap { maps: Vec::new() };
        let Some(sink) = self.sink.maps.first() else {
            return Ok(Flow { must: none(), may: none(), rest: none() });
        };
        let lost = || Unknown::from(Reason::Engine("an access without a time".into()));
        let time = |map: &Map| {
            let found = self.schedule.maps.iter().find(|m| m.names[0] == map.names[0]);
            found.map(|m| m.raw.clone()).ok_or_else(lost)
        };
        let writes = || {
            let must = self.must.maps.iter().map(|m| (m, true));
            must.chain(self.may.maps.iter().map(|m| (m, false)))
        };
        let sources = writes()
            .map(|(m, is_certain)| Ok(Source { cells: m.raw.clone(), time: time(m)?, is_certain }));
        let sources = sources.collect::<Known<Vec<_>>>()?;
        let ctx = &sink.ctx;
        let flow = pb::last_writers(&sink.raw, &time(sink)?, &sources, &ctx.budget());
        let flow = ctx.known(flow)?;
        let named = |raws: Vec<pb::Relation>| {
            let pairs = writes().zip(raws).map(|((m, _), raw)| Map {
                ctx: ctx.clone(),
                raw,
                names: [m.names[0].clone(), sink.names[0].clone()],
            });
            UnionMap { maps: pairs.collect() }
        };
        let rest = Map { ctx: ctx.clone(), raw: flow.rest, names: sink.names.clone() };
        Ok(Flow {
            must: named(flow.certain),
            may: named(flow.possible),
            rest: UnionMap { maps: vec![rest] },
        })
    }
}

impl Flow {
    pub fn must(&self) -> Known<UnionMap> {
        Ok(self.must.clone())
    }

    pub fn may(&self) -> Known<UnionMap> {
        Ok(self.may.clone())
    }

    pub fn may_no_source(&self) -> Known<UnionMap> {
        Ok(self.rest.clone())
    }
}
