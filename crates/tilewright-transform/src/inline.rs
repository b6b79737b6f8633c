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

use std::collections::{BTreeSet, HashMap, HashSet};

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
    let mut pointers = HashSet::new();
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

#[cfg(test)]
mod tests {
    use tilewright_ir::{DType, Intrin, IterKind, Param};

    use super::*;

    /// Buffers, and stages that are spatial over the whole buffer that they write.
    #[derive(Default)]
    struct Build {
        params: Vec<Buffer>,
        allocs: Vec<Buffer>,
        stages: Vec<Stmt>,
    }

    fn buffer(name: &str, shape: &[i64]) -> Buffer {
        Buffer::with_extents(name, shape, DType::F32)
    }

    impl Build {
        fn param(&mut self, name: &str, shape: &[i64]) -> Buffer {
            self.params.push(buffer(name, shape));
            buffer_of(&self.params)
        }

        fn alloc(&mut self, name: &str, shape: &[i64]) -> Buffer {
            self.allocs.push(buffer(name, shape));
            buffer_of(&self.allocs)
        }

        fn spatial(&mut self, out: &Buffer, value: impl Fn(&[Expr]) -> Expr) {
            let iters = spatial_iters(out);
            let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
            let name = out.name.clone();
            let stage = Stage::build(name, &iters, out, at.clone(), value(&at), None);
            self.stages.push(stage.stmt);
        }

        fn sum(&mut self, out: &Buffer, extent: i64, value: impl Fn(&[Expr]) -> Expr) {
            let mut iters = spatial_iters(out);
            let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
            iters.push((Var::index("k"), extent, IterKind::Reduce));
            let all: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
            let sum = out.load(at.clone()) + value(&all);
            let zero = Some(Expr::float(0.0, DType::F32));
            self.stages.push(Stage::build(out.name.clone(), &iters, out, at, sum, zero).stmt);
        }

        fn inlined(&self) -> Vec<String> {
            let params = self.params.iter().map(Param::tensor).collect();
            let f = TensorFunc::new(params, Stmt::nop())
                .with_root(self.allocs.clone(), Stmt::seq(self.stages.clone()));
            let f = inline_spatial(&f);
            open_stages(&f)
                .expect("still canonical")
                .iter()
                .map(|s| format!("{} = {}", s.buffer.load(s.indices.clone()), s.value))
                .collect()
        }
    }

    fn buffer_of(list: &[Buffer]) -> Buffer {
        list.last().expect("just pushed").clone()
    }

    fn spatial_iters(out: &Buffer) -> Vec<(Var, i64, IterKind)> {
        let shape = out.const_shape().expect("constant");
        let names = ["i", "j", "l"].map(Var::index);
        names.into_iter().zip(shape).map(|(v, e)| (v, e, IterKind::Spatial)).collect()
    }

    fn exp(e: Expr) -> Expr {
        Expr::intrin(Intrin::Exp, vec![e])
    }

    #[test]
    fn a_chain_becomes_one_stage() {
        let mut b = Build::default();
        let (x, t, u, y) = (
            b.param("x", &[4, 6]),
            b.alloc("t", &[4, 6]),
            b.alloc("u", &[6, 4]),
            b.param("y", &[24]),
        );
        b.spatial(&t, |at| exp(x.load(at.to_vec())));
        b.spatial(&u, |at| t.load([at[1].clone(), at[0].clone()]));
        b.spatial(&y, |at| u.load([at[0].clone().floordiv(4), at[0].clone().floormod(4)]) * 2.0);
        assert_eq!(b.inlined(), ["y[i] = T.exp(x[i % 4, i // 4]) * T.float32(2.0)"]);
    }

    #[test]
    fn one_cell_is_computed_once() {
        let mut b = Build::default();
        let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4]), b.param("y", &[4]));
        b.spatial(&t, |at| exp(x.load(at.to_vec())));
        b.spatial(&y, |at| t.load(at.to_vec()) * t.load(at.to_vec()));
        assert_eq!(b.inlined(), ["y[i] = T.Let(t * t, where={t: T.exp(x[i])})"]);
        // A few operations are repeated: the code generator shares them.
        let mut b = Build::default();
        let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4]), b.param("y", &[4]));
        b.spatial(&t, |at| x.load(at.to_vec()) + 3.0);
        b.spatial(&y, |at| t.load(at.to_vec()) * t.load(at.to_vec()));
        let sum = "(x[i] + T.float32(3.0))";
        assert_eq!(b.inlined(), [format!("y[i] = {sum} * {sum}")]);
    }

    #[test]
    fn a_long_chain_of_doublings_stays_bounded() {
        let mut b = Build::default();
        let mut last = b.param("x", &[4]);
        for n in 0..200 {
            let next = if n < 199 { b.alloc("t", &[4]) } else { b.param("y", &[4]) };
            b.spatial(&next, |at| last.load(at.to_vec()) * last.load(at.to_vec()));
            last = next;
        }
        let left = b.inlined();
        assert!(left.len() < 60, "{}", left.len());
        assert!(left.iter().all(|s| s.len() < 20 * MAX_NODES));
    }

    #[test]
    fn nothing_expensive_is_computed_for_each_step_of_a_reduction() {
        let mut b = Build::default();
        let (x, w) = (b.param("x", &[4, 6]), b.param("w", &[6, 5]));
        let (t, y) = (b.alloc("t", &[4, 6]), b.param("y", &[4, 5]));
        b.spatial(&t, |at| exp(x.load(at.to_vec())));
        b.sum(&y, 6, |at| {
            t.load([at[0].clone(), at[2].clone()]) * w.load([at[2].clone(), at[1].clone()])
        });
        assert_eq!(
            b.inlined(),
            ["t[i, j] = T.exp(x[i, j])", "y[i, j] = y[i, j] + t[i, k] * w[k, j]"]
        );
        // Where every cell is read once, nothing is repeated.
        let mut b = Build::default();
        let (x, t, y) = (b.param("x", &[4, 6]), b.alloc("t", &[4, 6]), b.param("y", &[4]));
        b.spatial(&t, |at| exp(x.load(at.to_vec())));
        b.sum(&y, 6, |at| t.load(at.to_vec()));
        assert_eq!(b.inlined(), ["y[i] = y[i] + T.exp(x[i, k])"]);
    }

    #[test]
    fn padding_stays_out_of_a_reduction_and_lazy_in_a_map() {
        let mut b = Build::default();
        let (x, p, y) = (b.param("x", &[4]), b.alloc("p", &[6]), b.param("y", &[2]));
        pad_of(&mut b, &x, &p);
        b.sum(&y, 3, |at| p.load([&at[0] * 3 + &at[1]]));
        assert_eq!(b.inlined().len(), 2);

        let mut b = Build::default();
        let (x, t) = (b.param("x", &[4]), b.alloc("t", &[4]));
        let (p, y) = (b.alloc("p", &[6]), b.param("y", &[6]));
        b.spatial(&t, |at| x.load(at.to_vec()) * 2.0);
        pad_of(&mut b, &t, &p);
        b.spatial(&y, |at| p.load(at.to_vec()) + 1.0);
        assert_eq!(
            b.inlined(),
            [
                "t[i] = x[i] * T.float32(2.0)",
                "y[i] = T.if_then_else(i >= 1 and i < 5, t[i - 1], T.float32(0.0)) + T.float32(1.0)"
            ]
        );
    }

    fn pad_of(b: &mut Build, x: &Buffer, p: &Buffer) {
        let x = x.clone();
        b.spatial(p, move |at| {
            let i = &at[0];
            let inside = i.clone().greater_equal(1).and(i.clone().less(5));
            Expr::if_then_else(inside, x.load([i - 1]), Expr::float(0.0, DType::F32))
        });
    }

    #[test]
    fn a_reduction_keeps_its_result_for_the_stage_after_it() {
        let mut b = Build::default();
        let (x, bias, s) = (b.param("x", &[4, 6]), b.param("b", &[4]), b.alloc("s", &[4]));
        let (t, y) = (b.alloc("t", &[4]), b.param("y", &[4]));
        b.sum(&s, 6, |at| x.load(at.to_vec()));
        b.spatial(&t, |at| s.load(at.to_vec()) + bias.load(at.to_vec()));
        b.spatial(&y, |at| t.load(at.to_vec()).max(0.0));
        assert_eq!(
            b.inlined(),
            ["s[i] = s[i] + x[i, k]", "y[i] = T.max(s[i] + b[i], T.float32(0.0))"]
        );
    }

    #[test]
    fn a_broadcast_of_arithmetic_is_computed_before() {
        let mut b = Build::default();
        let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4]), b.param("y", &[4, 9]));
        b.spatial(&t, |at| x.load(at.to_vec()) * 2.0);
        b.spatial(&y, |at| t.load([at[0].clone()]) + 1.0);
        assert_eq!(b.inlined().len(), 2);
        // Moving data costs nothing.
        let mut b = Build::default();
        let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4, 1]), b.param("y", &[4, 9]));
        b.spatial(&t, |at| x.load([at[0].clone()]));
        b.spatial(&y, |at| t.load([at[0].clone(), Expr::i32(0)]) + 1.0);
        assert_eq!(b.inlined(), ["y[i, j] = x[i] + T.float32(1.0)"]);
    }

    #[test]
    fn cheap_values_go_to_several_readers_and_unread_stages_go() {
        let mut b = Build::default();
        let (x, t, unread) = (b.param("x", &[4]), b.alloc("t", &[4]), b.alloc("u", &[4]));
        let (y, z) = (b.param("y", &[4]), b.param("z", &[4]));
        b.spatial(&t, |at| x.load(at.to_vec()) + 1.0);
        b.spatial(&unread, |at| t.load(at.to_vec()) * 9.0);
        b.spatial(&y, |at| t.load(at.to_vec()) * 2.0);
        b.spatial(&z, |at| exp(t.load(at.to_vec())));
        let sum = "x[i] + T.float32(1.0)";
        assert_eq!(
            b.inlined(),
            [format!("y[i] = ({sum}) * T.float32(2.0)"), format!("z[i] = T.exp({sum})")]
        );
    }

    #[test]
    fn a_buffer_of_several_writers_stays() {
        let mut b = Build::default();
        let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[8]), b.param("y", &[8]));
        for half in 0..2 {
            let i = Var::index("i");
            let at = vec![&i + half * 4];
            let value = x.load([i.expr()]);
            let iters = [(i, 4, IterKind::Spatial)];
            b.stages.push(Stage::build("t", &iters, &t, at, value, None).stmt);
        }
        b.spatial(&y, |at| t.load(at.to_vec()) * 2.0);
        assert_eq!(b.inlined().len(), 3);
    }
}
