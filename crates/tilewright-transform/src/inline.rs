//! Inlining of spatial stages into the stages that read them.
//!
//! A spatial stage `B[i, j] = f(i, j)` that covers its buffer says what every cell of the buffer
//! is, so `B[x, y]` may be replaced by `f(x, y)`; once `B` is no longer read, stage and buffer go.
//! The replacement stays inside of the branch in which the load stood, so what was lazy stays
//! lazy. Stages are taken from the last to the first: by then everything between a stage and the
//! last one that needs it is already one expression.
//!
//! Not everything that may be inlined should be. *Work* counts what a cell costs to compute.
//!
//! * Data movement (loads, constants, selection by index) goes into every spatial reader.
//! * Arithmetic goes in where no cell is computed twice: the readers together read no more often
//!   than the buffer has cells, where loads of one cell by one reader count once (they share the
//!   value through `T.Let` where it is more than a few operations).
//! * Cheap arithmetic may also be computed once in each of several readers.
//! * Nothing goes into a reduction that would compute it again for other reduction steps, and no
//!   branches go into one: its accesses stay as the scheduler wants to see them.

use std::collections::BTreeSet;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::{Subst, fold_expr_children, free_vars, walk_expr};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Fold, Stmt, TensorFunc, Var, Visit, dim};

use crate::pass::{Pass, Run};
use tilewright_analysis::cost::Cost;
use tilewright_analysis::stage::{Stage, open_stages};
use tilewright_ir::index::{same_all, simplify_indices};

/// `inline` by name.
pub const PASS: Pass = Pass {
    name: "inline",
    summary: "substitute spatial stages into their consumers where that repeats no work",
    options: &[],
    run: Run::Tensor(|f, _, _| Ok(inline_spatial(f))),
};

/// A value of at most this much work is computed again rather than stored.
const CHEAP: usize = 4;

/// A value of at most this many nodes is repeated rather than bound by `T.Let`: the code
/// generator's common subexpression elimination removes the repeated work.
const SMALL: usize = 12;

/// Expressions do not grow beyond this many nodes.
const MAX_NODES: usize = 1024;

/// Inlines the spatial stages of a function in canonical form where that saves memory traffic
/// without repeating work, and drops stages whose results are not read. A function in another form
/// comes back as it is.
pub fn inline_spatial(func: &TensorFunc) -> TensorFunc {
    let Some(found) = open_stages(func) else { return func.clone() };
    let (allocs, _) = func.root_parts();
    let mut pointers = HashSet::default();
    let distinct = func.buffers().chain(allocs).all(|b| pointers.insert(b.data.clone()));
    let known: HashSet<&Buffer> = func.buffers().chain(allocs).collect();
    let closed = found
        .iter()
        .all(|s| known.contains(&s.buffer) && s.loads().iter().all(|(b, _)| known.contains(b)));
    if allocs.is_empty() || !distinct || !closed {
        return func.clone();
    }
    let mut work = Work::new(found, allocs);
    for at in (0..work.stages.len()).rev() {
        work.visit(at);
    }
    if !work.changed {
        return func.clone();
    }
    let left: Vec<&Stage> = work.stages.iter().flatten().collect();
    let used: HashSet<Buffer> = left
        .iter()
        .flat_map(|s| s.loads())
        .map(|l| l.0)
        .chain(left.iter().map(|s| s.buffer.clone()))
        .collect();
    let allocs = allocs.iter().filter(|a| used.contains(*a)).cloned().collect();
    func.with_root(allocs, Stmt::seq(left.into_iter().map(|s| s.stmt.clone())))
}

#[derive(Default)]
struct Work {
    /// The stages; `None` for those that went.
    stages: Vec<Option<Stage>>,
    /// Buffers that are allocated inside of the function.
    local: HashSet<Buffer>,
    readers: HashMap<Buffer, BTreeSet<usize>>,
    writers: HashMap<Buffer, Vec<usize>>,
    changed: bool,
}

impl Work {
    fn new(found: Vec<Stage>, allocs: &[Buffer]) -> Self {
        let mut work = Work { local: allocs.iter().cloned().collect(), ..Work::default() };
        for (at, stage) in found.iter().enumerate() {
            work.writers.entry(stage.buffer.clone()).or_default().push(at);
            work.reads(at, stage);
        }
        work.stages = found.into_iter().map(Some).collect();
        work
    }

    /// Notes what a stage reads of other stages: its own accumulator does not count.
    fn reads(&mut self, at: usize, stage: &Stage) {
        let init = stage.init.iter().flat_map(Expr::loaded_buffers);
        for buffer in stage.value.loaded_buffers().into_iter().chain(init) {
            if buffer != stage.buffer {
                self.readers.entry(buffer).or_default().insert(at);
            }
        }
    }

    /// Drops a stage.
    fn forget(&mut self, at: usize) {
        let Some(stage) = self.stages[at].take() else { return };
        for buffer in stage.init.iter().chain([&stage.value]).flat_map(Expr::loaded_buffers) {
            if let Some(readers) = self.readers.get_mut(&buffer) {
                readers.remove(&at);
            }
        }
        self.changed = true;
    }

    /// Inlines stage `at` into its readers, or drops it, or leaves it.
    fn visit(&mut self, at: usize) {
        let Some(stage) = self.stages[at].clone() else { return };
        let buffer = &stage.buffer;
        if !self.local.contains(buffer) || self.writers[buffer].len() != 1 {
            return;
        }
        let readers: Vec<usize> = self.readers.get(buffer).into_iter().flatten().copied().collect();
        if readers.is_empty() {
            return self.forget(at);
        }
        let Some(producer) = Producer::new(&stage) else { return };
        if readers[0] < at
            || stage
                .value
                .loaded_buffers()
                .iter()
                .any(|b| self.writers.get(b).is_some_and(|w| w.iter().any(|w| *w > at)))
        {
            return;
        }
        let Some(uses) = readers
            .iter()
            .map(|r| self.stages[*r].as_ref().and_then(|s| Uses::new(s, buffer)))
            .collect::<Option<Vec<Uses>>>()
        else {
            return;
        };
        if !producer.worth(&uses) {
            return;
        }
        let new: Vec<Stage> = uses.iter().map(|u| producer.substitute(u)).collect();
        for (reader, stage) in readers.into_iter().zip(new) {
            self.reads(reader, &stage);
            self.stages[reader] = Some(stage);
        }
        self.forget(at);
    }
}

/// A stage whose value may stand for loads of its buffer.
struct Producer<'a> {
    stage: &'a Stage,
    /// The iteration variable that indexes each axis of the buffer.
    axes: Vec<Option<Var>>,
    cells: i128,
    cost: Cost,
}

impl<'a> Producer<'a> {
    fn new(stage: &'a Stage) -> Option<Self> {
        let cost = Cost::count(&stage.value);
        let own = stage.value.loaded_buffers().contains(&stage.buffer);
        if stage.is_reduction() || own || cost.opaque {
            return None;
        }
        let cells = dim::product(dim::of_shape(&stage.buffer.shape)?).estimate().into();
        Some(Producer { stage, axes: stage.covers_buffer()?, cells, cost })
    }

    fn worth(&self, readers: &[Uses]) -> bool {
        let nodes = readers.iter().map(|u| u.loads * self.cost.nodes + u.nodes).max();
        if nodes.is_none_or(|n| n > MAX_NODES) {
            return false;
        }
        // A reader that reads each cell at most once.
        let reductions = readers
            .iter()
            .filter(|u| u.stage.is_reduction())
            .all(|u| u.reads() <= self.cells && !self.cost.branches);
        let together: i128 = readers.iter().map(Uses::reads).sum();
        let spatial = self.cost.work == 0
            || together <= self.cells
            || (self.cost.work <= CHEAP && readers.iter().all(|u| u.reads() <= self.cells));
        reductions && spatial
    }

    /// The value of the cell at `indices`.
    fn value_at(&self, indices: &[Expr]) -> Expr {
        let mut subst = Subst::refresh();
        for (axis, index) in self.axes.iter().zip(indices) {
            if let Some(var) = axis {
                subst.vars.insert(var.clone(), index.clone().cast(var.dtype()));
            }
        }
        // A variable that no axis follows has the one value zero.
        for (var, _) in self.stage.spatial() {
            subst.vars.entry(var.clone()).or_insert_with(|| Expr::int(0, var.dtype()));
        }
        subst.expr(&self.stage.value)
    }

    /// The reader with every load of the buffer replaced.
    fn substitute(&self, uses: &Uses) -> Stage {
        let big = self.cost.nodes > SMALL || self.cost.heavy;
        let mut replace = Replace { producer: self, lets: Vec::new() };
        for place in &uses.cells {
            if big && place.count > 1 && place.sure {
                let var = Var::new(self.stage.buffer.name.clone(), self.stage.buffer.dtype());
                replace.lets.push((place.indices.clone(), var));
            }
        }
        let ranges = uses.stage.ranges();
        // The accumulator stays on the left of a reduction's update.
        let update = match (uses.stage.reduction(), uses.stage.value.kind()) {
            (Some(update), ExprKind::Binary(op, acc, _)) => Some((update, *op, acc)),
            _ => None,
        };
        let value = replace.expr(update.as_ref().map_or(&uses.stage.value, |(u, ..)| &u.value));
        let value = replace.lets.iter().rev().fold(value, |body, (indices, var)| {
            Expr::let_in(var.clone(), self.value_at(indices), body)
        });
        let value = simplify_indices(&value, &ranges);
        uses.stage.with_value(match update {
            Some((_, op, acc)) => Expr::binary(op, acc.clone(), value),
            None => value,
        })
    }
}

struct Replace<'a> {
    producer: &'a Producer<'a>,
    /// Cells that are bound around the value, with their variables.
    lets: Vec<(Vec<Expr>, Var)>,
}

impl Fold for Replace<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let ExprKind::Load(buffer, indices) = e.kind() else {
            return fold_expr_children(self, e);
        };
        if *buffer != self.producer.stage.buffer {
            return fold_expr_children(self, e);
        }
        if let Some((_, var)) = self.lets.iter().find(|(at, _)| same_all(at, indices)) {
            return var.expr();
        }
        let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
        self.producer.value_at(&indices)
    }
}

/// How a stage reads a buffer.
struct Uses<'a> {
    stage: &'a Stage,
    cells: Vec<CellRead>,
    loads: usize,
    nodes: usize,
}

/// One cell that a stage reads in each iteration.
struct CellRead {
    indices: Vec<Expr>,
    count: usize,
    /// Read in every iteration, and its indices mean the same around the whole value.
    sure: bool,
}

impl<'a> Uses<'a> {
    /// `None` where the reader is of a kind that nothing is inlined into.
    fn new(stage: &'a Stage, buffer: &Buffer) -> Option<Self> {
        let from_init = stage.init.iter().flat_map(Expr::loaded_buffers).any(|b| b == *buffer);
        if from_init || (stage.is_reduction() && stage.reduction().is_none()) {
            return None;
        }
        let outer: HashSet<Var> = stage.iters().map(|i| i.0.clone()).collect();
        let mut find =
            FindUses { buffer, outer, lazy: 0, cells: Vec::new(), loads: 0, vectors: false };
        find.expr(&stage.value);
        let nodes = Cost::count(&stage.value).nodes;
        (!find.vectors).then_some(Uses { stage, cells: find.cells, loads: find.loads, nodes })
    }

    /// Number of cells that the stage reads, where a cell counts once an iteration.
    fn reads(&self) -> i128 {
        let points = dim::product(self.stage.loops.iter().map(|l| l.1)).estimate();
        let points = i128::from(points);
        points.saturating_mul(self.cells.len() as i128)
    }
}

struct FindUses<'a> {
    buffer: &'a Buffer,
    outer: HashSet<Var>,
    lazy: usize,
    cells: Vec<CellRead>,
    loads: usize,
    vectors: bool,
}

impl FindUses<'_> {
    fn lazily(&mut self, e: &Expr) {
        self.lazy += 1;
        self.expr(e);
        self.lazy -= 1;
    }
}

impl Visit for FindUses<'_> {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::IfThenElse(c, t, f) => {
                self.expr(c);
                self.lazily(t);
                return self.lazily(f);
            }
            ExprKind::Binary(BinOp::And | BinOp::Or, a, b) => {
                self.expr(a);
                return self.lazily(b);
            }
            ExprKind::Load(b, indices) if b == self.buffer => {
                self.vectors |= indices.iter().any(|i| i.dtype().lanes != 1);
                self.loads += 1;
                let free = indices.iter().all(|i| {
                    free_vars(i).is_subset(&self.outer) && !i.loaded_buffers().contains(self.buffer)
                });
                let sure = self.lazy == 0 && free;
                match self.cells.iter_mut().find(|p| same_all(&p.indices, indices)) {
                    Some(place) => {
                        place.count += 1;
                        place.sure |= sure;
                    }
                    None => self.cells.push(CellRead { indices: indices.clone(), count: 1, sure }),
                }
            }
            _ => {}
        }
        walk_expr(self, e);
    }
}
