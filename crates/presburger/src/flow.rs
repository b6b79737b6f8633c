//! Last writers: which instance of which write gives a read its value (Feautrier 1991).
//!
//! An instance of a write *reaches* a read of the same cell if it comes before it. Of those, one is
//! the last if no certain write to that cell lies between the two. All of it is said with relations
//! between instances and differences of them.

use crate::basic::Basic;
use crate::num::{Budget, Res};
use crate::relation::{Dim, Relation};

/// A write that may give a read its value.
#[derive(Clone, Debug)]
pub struct Source {
    /// From instances to cells.
    pub cells: Relation,
    /// From instances to times, which are compared lexicographically.
    pub time: Relation,
    /// Whether the write certainly happens.
    pub is_certain: bool,
}

/// Where the values of a read come from, by the places of the sources.
#[derive(Clone, Debug)]
pub struct Flow {
    /// From instances of a source to instances of the read: the source is certainly the last.
    pub certain: Vec<Relation>,
    /// It may be the last; with those that are certain.
    pub possible: Vec<Relation>,
    /// The pairs of instance and cell that have no certain write before them.
    pub rest: Relation,
}

/// The flow into a read: its instances and cells, and when they happen.
///
/// # Errors
/// [`Stop`](crate::Stop).
pub fn last_writers(
    read: &Relation,
    time: &Relation,
    sources: &[Source],
    budget: &Budget,
) -> Res<Flow> {
    let ins = read.dim(Dim::In);
    // The read, point by point, to its cell: (instance, cell) -> cell.
    let points = read.wrap();
    let dims = points.dim(Dim::Out);
    let at = points.identity()?.project_out(Dim::Out, 0, ins, budget)?.reverse();
    // Instances of sources to points of the read that they come before.
    let mut reach = Vec::with_capacity(sources.len());
    for s in sources {
        let same = s.cells.then(&at, budget)?;
        let before = earlier(&s.time, time, budget)?.insert_dims(Dim::Out, ins, dims - ins);
        let both = same.intersect(&before, budget)?;
        reach.push(both.without_empty(budget)?);
    }
    let mut rest = points;
    for (s, r) in sources.iter().zip(&reach) {
        if s.is_certain && !r.is_nothing() {
            rest = rest.subtract(&r.range(budget)?, budget)?;
        }
    }
    let (mut certain, mut possible) = (Vec::new(), Vec::new());
    for (k, s) in sources.iter().enumerate() {
        let mut last = reach[k].clone();
        let mut sure = None;
        // Certain writes between rule it out; others make it uncertain.
        for pass in [true, false] {
            for (t, r) in sources.iter().zip(&reach) {
                if t.is_certain != pass || r.is_nothing() || last.is_nothing() {
                    continue;
                }
                let between = earlier(&s.time, &t.time, budget)?.then(r, budget)?;
                last = last.subtract(&between, budget)?;
            }
            if pass {
                sure = Some(last.clone());
            }
        }
        let all = sure.unwrap_or_else(|| last.clone());
        possible.push(instances_of(all, ins, dims, budget)?.coalesce(budget)?);
        let none = Relation::empty(last.space());
        certain.push(
            instances_of(if s.is_certain { last } else { none }, ins, dims, budget)?
                .coalesce(budget)?,
        );
    }
    let rest = rest.move_dims(Dim::In, 0, Dim::Out, 0, ins);
    Ok(Flow { certain, possible, rest })
}

fn instances_of(
    r: Relation,
    ins: usize,
    dims: usize,
    budget: &Budget,
) -> Result<Relation, crate::Stop> {
    r.project_out(Dim::Out, ins, dims - ins, budget)
}

/// The pairs of instances of which the first has the earlier time.
fn earlier(first: &Relation, second: &Relation, budget: &Budget) -> Res<Relation> {
    let n = first.dim(Dim::Out);
    let params = first.dim(Dim::Param);
    let space = first.space().with(n, n);
    let mut parts = Vec::with_capacity(n);
    for level in 0..n {
        let mut p = Basic::universe(space.total());
        for k in 0..level {
            let row = p.eqs.push_zero();
            (row[1 + params + k], row[1 + params + n + k]) = (-1, 1);
        }
        let row = p.ineqs.push_zero();
        (row[0], row[1 + params + level], row[1 + params + n + level]) = (-1, -1, 1);
        p.normalize()?;
        parts.push(p);
    }
    let less = Relation::new(space, parts);
    first.then(&less, budget)?.then(&second.reverse(), budget)?.without_empty(budget)
}
