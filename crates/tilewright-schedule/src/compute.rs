//! `compute_at`: a stage that is computed where it is needed.
//!
//! ```text
//! for i, j in grid(8, 8): B[i, j] = A[i, j] * 2
//! for i in range(8):                                for i in range(8):
//!     for j in range(8): C[i, j] = B[i, j] + 1          for j in range(8): B[i, j] = A[i, j] * 2
//!                                                       for j in range(8): C[i, j] = B[i, j] + 1
//! ```
//!
//! In each iteration of the loop the block runs for the box of cells that the rest of the iteration
//! reads, whether another iteration has computed some of them or not: the value of a cell depends
//! on nothing but the cell.

use std::ops::Deref;

use tilewright_analysis::footprint::{
    self, Footprint, cover, known_around, reads_own_writes, touches,
};
use tilewright_ir::index::{Ranges, simplify};
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    AtOnce, Block, Buffer, Error, Expr, Fold, IterKind, Range, Region, Result, Stmt, StmtKind,
    TensorFunc, Var,
};
use tilewright_polyhedral::dependence::{self, PlacedAccess};
use tilewright_polyhedral::{Engine, Proof};

use crate::argument::{Readable, by_value};
use crate::copying::{self, Bound, Change, InsertionPoint, fit, hull};
use crate::cursor::{BlockCursor, Cursor, as_block, loop_cursor, loop_ranges, the_loop, within};
use crate::inline::{
    StoreBlock, cursor_in, earlier, not_repeatable, removed, scope_of, solve, users,
};
use crate::primitive::primitives;
use crate::schedule::{Edited, Schedule};
use crate::value::{BlockRef, LoopRef, Value};

/// Where in the body of a loop a block goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// As late as it may.
    #[default]
    Last,
    /// As early as it may.
    First,
    /// Before the statement of this number.
    At(usize),
}

/// How a block is put under a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Loops of one iteration are made, too.
    pub preserve_unit_loops: bool,
    /// Where in the body of the loop.
    pub position: Position,
}

impl Placement {
    /// The positions to try of those from `first` to `last`, the best one first.
    pub(crate) fn candidates(&self, first: usize, last: usize) -> Result<Vec<usize>> {
        match self.position {
            Position::First => Ok((first..=last).collect()),
            Position::Last => Ok((first..=last).rev().collect()),
            Position::At(k) if (first..=last).contains(&k) => Ok(vec![k]),
            Position::At(k) => Err(Error::refused(format!(
                "{k} is no position for the block in the loop, those from {first} to {last} are"
            ))),
        }
    }

    /// A loop variable for an axis of this range, or nothing where one value is to stand for it.
    pub(crate) fn axis(&self, number: usize, r: &Range) -> Option<Var> {
        let single = r.extent.as_int() == Some(1) && !self.preserve_unit_loops;
        (!single).then(|| Var::new(format!("ax{number}"), r.extent.dtype()))
    }
}

/// The statements of a body, one after the other.
pub(crate) fn elements(body: &Stmt) -> Vec<Stmt> {
    match body.kind() {
        StmtKind::Seq(list) => list.clone(),
        _ => vec![body.clone()],
    }
}

/// Last is `-1` and first is `-2` in scripts.
impl Readable for Position {
    fn takes() -> String {
        "a position, -1 (as late as it may) or -2 (as early as it may)".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        Ok(match value {
            Value::Int(-1) => Some(Position::Last),
            Value::Int(-2) => Some(Position::First),
            Value::Int(k) => usize::try_from(*k).ok().map(Position::At),
            _ => None,
        })
    }
    fn record(&self) -> Value {
        Value::Int(match self {
            Position::Last => -1,
            Position::First => -2,
            Position::At(k) => i64::try_from(*k).unwrap_or(i64::MAX),
        })
    }
}
by_value!(Position);

primitives! {
    /// Moves a block under a loop, in front of the first that reads its buffer there; it then runs
    /// for what is read in one iteration.
    ///
    /// # Errors
    /// `Refused` where the block is not one store that alone writes an internal buffer at its
    /// spatial variables, something outside of the loop reads that buffer, what the block reads
    /// may have changed by then, or iterations that run at the same time would compute one cell.
    compute_at(
        block: &BlockRef,
        l "loop": &LoopRef,
        preserve_unit_loops: bool = false,
        index: Position = Position::Last
    ), edit |f| compute_at(f, block, l, Placement { preserve_unit_loops, position: index });
}

/// Refuses where iterations of loops around a statement that run at the same time write one cell.
fn alone(moved: &Stmt, around: &[Stmt], buffer: &Buffer) -> Result<()> {
    let Some(first) = around.iter().position(|s| AtOnce::of_loop(s).is_some()) else {
        return Ok(());
    };
    let domain = Engine::new().domain_of(&[], &known_around(&around[..first]));
    let all = dependence::accesses(moved, &within(domain, &around[first..]))?;
    let writes: Vec<&PlacedAccess> =
        all.iter().filter(|t| t.write && t.buffer == *buffer).collect();
    for s in around.iter().filter(|s| AtOnce::of_loop(s).is_some()) {
        let (v, ..) = the_loop(s)?;
        for (a, b) in writes.iter().flat_map(|a| writes.iter().map(move |b| (a, b))) {
            let vars: Vec<Var> = b.at.domain.vars().cloned().collect();
            let (other, names) = b.at.elsewhere_in(&vars);
            let Some(twin) = names.get(v) else { continue };
            let proof = a.at.independent(&other, &[v.expr().not_equal(twin.expr())]);
            if !proof.is_yes() {
                let e = Error::refused(format!(
                    "the iterations of the loop `{v}` run at the same time, and might compute the \
                     same cells of `{buffer}`"
                ))
                .help("compute the block there first, and let the loop run so afterwards")
                .at(s.span());
                return Err(match proof {
                    Proof::No { witness } => e.note(format!(
                        "{0}={1} and {0}={2} do",
                        v.name(),
                        value_at(v, &witness),
                        value_at(twin, &witness)
                    )),
                    Proof::Unknown(why) => e.note(why.to_string()),
                    Proof::Yes => e,
                });
            }
        }
    }
    Ok(())
}

fn value_at(v: &Var, witness: &tilewright_polyhedral::Witness) -> String {
    witness.get(v).map_or("?".into(), |x| x.to_string())
}

/// A block that is computed elsewhere.
struct Moving<'a> {
    stage: &'a StoreBlock,
    /// The block among the statements of its scope.
    own: &'a Cursor,
}

impl Deref for Moving<'_> {
    type Target = StoreBlock;
    fn deref(&self) -> &StoreBlock {
        self.stage
    }
}

impl Moving<'_> {
    /// Each cell must be a function of itself, and all of them must be made.
    fn gives_every_cell(&self) -> Result<()> {
        let (own, b) = (self.own, &self.at.block);
        let spatial = Block {
            iters: self.at.of_kind(IterKind::Spatial).map(|(i, _)| i.clone()).collect(),
            ..(**b).clone()
        };
        solve(&spatial, &self.indices, &self.buffer)?;
        if self.at.nothing_opaque().is_err() {
            return Err(self.at.refuse("has opaque variables"));
        }
        reads_own_writes(&self.at.stmt, &self.buffer, &known_around(&self.at.around))
            .map_err(|e| e.context("the block updates its buffer"))?;
        let loops = loop_ranges(&own.around);
        for (i, e) in self.at.of_kind(IterKind::Reduce) {
            self.at.own_loop(i, e, &loops)?;
        }
        if let Some(s) = own.around.iter().find(|s| matches!(s.kind(), StmtKind::If { .. })) {
            return Err(self.at.refuse("runs under a condition").at(s.span()));
        }
        let over = free_vars(&self.at.predicate);
        if self.at.of_kind(IterKind::Reduce).any(|(_, e)| e.mentions_any(&over)) {
            let what = format!("the predicate of `{}` is over its reduction", b.name);
            return Err(Error::refused(what));
        }
        // Then the value is defined for every cell.
        let writes = Footprint::collect(&removed(own), &self.buffer).writes;
        cover(&writes, &Region::whole(&self.buffer), &self.known_outside(own))
            .map_err(|e| e.context("the buffer must be filled as a whole"))?;
        self.check_vars()
    }

    /// Those that read the buffer; all must be in the loop and come later, and nothing else may write it.
    fn readers(&self, body: &Stmt, at: &Cursor, l: &LoopRef) -> Result<Vec<Cursor>> {
        let (own, buffer) = (self.own, &self.buffer);
        for w in users(body, buffer, |(r, w)| r || w) {
            if w.stmt.ptr_eq(&own.stmt) {
                continue;
            }
            let (_, writes) = touches(&w.stmt, buffer);
            if writes || !w.inside(&at.stmt) {
                return Err(Error::refused(format!(
                    "`{buffer}` is {} outside of the loop `{}` or by another block",
                    if writes { "written" } else { "read" },
                    l.var.name()
                ))
                .at(w.stmt.span()));
            }
        }
        if earlier(body, &own.stmt, std::slice::from_ref(at)).is_some() {
            return Err(Error::refused(format!(
                "the loop `{}` comes before `{}`",
                l.var, self.at.block.name
            )));
        }
        let readers = users(body, buffer, |(r, w)| r && !w);
        self.read_by(body, own, &readers)?;
        Ok(readers)
    }

    /// The block over a box, of which some axes may reach out of the buffer.
    fn over_box(&self, region: &Region, bounds: &[(usize, Bound)], placement: Placement) -> Stmt {
        let StoreBlock { at: BlockCursor { block: b, .. }, buffer, indices, .. } = self.stage;
        let mut nest = Vec::new();
        let mut values: Vec<(Var, Expr)> = Vec::new();
        let mut inside = Expr::bool(true);
        for (k, (i, r)) in indices.iter().zip(&region.ranges).enumerate() {
            let Some(v) = i.as_var() else { continue };
            let at = match placement.axis(nest.len(), r) {
                None => r.min.clone(),
                Some(ax) => {
                    let at = simplify(&(r.min.clone() + &ax), &Ranges::default());
                    nest.push((ax, Range::upto(r.extent.clone())));
                    at
                }
            };
            inside = copying::within(inside, bounds, k, &at, &buffer.shape[k]);
            values.push((v.clone(), at));
        }
        let mut new_bindings = Vec::new();
        for i in &b.iters {
            let value = values.iter().find(|(v, _)| *v == i.var).map(|(_, e)| e.clone());
            new_bindings.push(match (value, i.kind) {
                (Some(value), _) => value.cast(i.var.dtype()),
                (None, IterKind::Reduce) => {
                    let v = Var::new(format!("ax{}", nest.len()), i.var.dtype());
                    nest.push((v.clone(), i.domain.clone()));
                    v.expr()
                }
                (None, _) => i.domain.min.clone(),
            });
        }
        let moved = Block { reads: None, writes: None, ..(**b).clone() };
        let moved = Stmt::block(new_bindings, inside, moved);
        Subst::refresh().stmt(&Stmt::nest(nest.into_iter(), moved))
    }
}

fn compute_at(
    func: &TensorFunc,
    block: &BlockRef,
    l: &LoopRef,
    placement: Placement,
) -> Result<Edited> {
    let stage = StoreBlock::find(func, block)?;
    let target = loop_cursor(func, l)?;
    let (name, buffer) = (&block.name, &stage.buffer);
    if let Some(what) = not_repeatable(&stage.value) {
        return Err(stage.at.refuse(format!("computes `{what}`")));
    }
    let body = scope_of(func, &stage.at, buffer)?;
    let (own, at) = (cursor_in(&body, &stage.at.stmt)?, cursor_in(&body, &target.stmt));
    let at = at.map_err(|_| {
        let l = l.var.name();
        Error::refused(format!("the loop `{l}` is in another scope than `{name}`"))
    })?;
    let in_scope = at.around.iter().all(|s| as_block(s).is_none());
    if !in_scope || own.inside(&at.stmt) {
        return Err(Error::refused(format!(
            "the loop `{}` is around the block `{name}` or in another scope",
            l.var
        )));
    }
    let moving = Moving { stage: &stage, own: &own };
    moving.gives_every_cell()?;
    let readers = moving.readers(&body, &at, l)?;
    // What one iteration reads, in terms of what is outside of it.
    let (_, _, inner) = the_loop(&target.stmt)?;
    let around = target.with_own();
    let known = known_around(&around);
    let region = hull(inner, buffer, false, &around)
        .ok_or_else(|| Error::internal("the readers read nothing"))?;
    let (region, bounds) = fit(&region, &known);
    if bounds.is_empty()
        && !footprint::within(&Footprint::collect(inner, buffer).reads, &region, &known)
    {
        return Err(Error::refused(format!(
            "it is not known which cells of `{buffer}` an iteration of `{}` reads",
            l.var.name()
        )));
    }
    let moved = moving.over_box(&region, &bounds, placement);
    alone(&moved, &around, buffer)?;
    // Not behind the first reader, directly in the loop.
    let reader = &readers[0];
    let elements = elements(inner);
    let last =
        elements.iter().position(|e| e.ptr_eq(&reader.stmt) || reader.inside(e)).unwrap_or(0);
    let position = placement.candidates(0, last).map_err(|e| e.at(target.stmt.span()))?[0];
    let node = elements[position].clone();
    let change = Change {
        swap: vec![(removed(&own), Stmt::nop())],
        insert: vec![(InsertionPoint { node, before: true, around }, moved)],
        ..Change::default()
    };
    Ok((change.apply(func), ()))
}
