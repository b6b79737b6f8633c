//! Stages: the canonical form of a tensor function before it is scheduled.
//!
//! A function in this form is a sequence of perfect loop nests. Each nest is serial loops from
//! zero, with extents that are constants or open sizes, around one block, whose iteration variables are bound to the loops
//! one to one and in order, spatial ones first. The block stores one value to one buffer, to
//! different cells for different values of the spatial variables, and reads of that buffer at most the
//! cell that it stores to. So the iterations of the spatial loops do not depend on one another,
//! whatever the variables are called:
//!
//! ```text
//! for n, i, k in T.grid(4, 5, 6):
//!     with T.block("C"):
//!         vn, vi, vk = T.axis.remap("SSR", [n, i, k])
//!         with T.init():
//!             C[vn, vi] = 0
//!         C[vn, vi] = C[vn, vi] + A[vn, vk] * B[vk, vi]
//! ```
//!
//! Fusion and scheduling work on this view, found from the structure alone.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_ir::index::{Interval, Linear, Ranges, same_all};
use tilewright_ir::update::reads_elsewhere;
use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    BinOp, Block, Buffer, Dim, Expr, ExprKind, ForKind, IterKind, IterVar, Range, Stmt, StmtKind,
    TensorFunc, Var, dim,
};

use tilewright_polyhedral::Engine;

/// One loop nest around one block that stores one value.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Loop variables, outermost first, each with its number of iterations.
    pub loops: Vec<(Var, Dim)>,
    /// The block; its iteration variables follow the loops one to one.
    pub block: Arc<Block>,
    /// The buffer that is written.
    pub buffer: Buffer,
    /// Where it is written, in terms of the block's iteration variables.
    pub indices: Vec<Expr>,
    /// The stored value, in terms of the block's iteration variables. For a reduction this is
    /// the whole right side, accumulator included: see [`Stage::reduction`].
    pub value: Expr,
    /// What a reduction starts from.
    pub init: Option<Expr>,
    /// The statement that this is a view of.
    pub stmt: Stmt,
}

/// What the extent of a loop is given as: a size, or a number that is not negative.
pub trait Extent: Copy {
    /// The size.
    fn dim(self) -> Dim;
}

impl Extent for Dim {
    fn dim(self) -> Dim {
        self
    }
}

impl Extent for i64 {
    fn dim(self) -> Dim {
        Dim::from(usize::try_from(self).unwrap_or(0))
    }
}

/// The update `acc = op(acc, value)` of a reduction.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The combining operator.
    pub op: BinOp,
    /// What is combined into the accumulator.
    pub value: Expr,
}

impl Stage {
    /// Builds the loop nest for a block over `iters` (variable, extent, kind; spatial ones
    /// first). The loop variables are new and named after the iteration variables: `i` for `vi`.
    pub fn build(
        name: impl Into<Arc<str>>,
        iters: &[(Var, impl Extent, IterKind)],
        buffer: &Buffer,
        indices: Vec<Expr>,
        value: Expr,
        init: Option<Expr>,
    ) -> Stage {
        let body = Stmt::store(buffer, indices.clone(), value.clone());
        let (mut block, loops) = Stage::block(name, iters, body);
        block.init = init.clone().map(|e| Stmt::store(buffer, indices.clone(), e));
        let (block, buffer) = (Arc::new(block), buffer.clone());
        let stmt = Stage::wrap(&loops, block.clone());
        Stage { loops, block, buffer, indices, value, init, stmt }
    }

    /// The same loop nest around a block with any other body.
    pub fn nest(
        name: impl Into<Arc<str>>,
        iters: &[(Var, impl Extent, IterKind)],
        body: Stmt,
    ) -> Stmt {
        let (block, loops) = Stage::block(name, iters, body);
        Stage::wrap(&loops, Arc::new(block))
    }

    fn block(
        name: impl Into<Arc<str>>,
        iters: &[(Var, impl Extent, IterKind)],
        body: Stmt,
    ) -> (Block, Vec<(Var, Dim)>) {
        let mut block = Block::new(name, body);
        block.iters = iters
            .iter()
            .map(|(var, extent, kind)| IterVar {
                var: var.clone(),
                domain: Range::upto(extent.dim().typed(var.dtype())),
                kind: *kind,
            })
            .collect();
        let loops = iters.iter().map(|(var, extent, _)| (loop_var_of(var), extent.dim())).collect();
        (block, loops)
    }

    /// A block whose iteration variables are the loops.
    fn wrap(loops: &[(Var, Dim)], block: Arc<Block>) -> Stmt {
        let stmt = Stmt::new(StmtKind::Block {
            bindings: loops.iter().map(|(var, _)| var.expr()).collect(),
            predicate: Expr::bool(true),
            block,
        });
        loops
            .iter()
            .rev()
            .fold(stmt, |body, (var, extent)| Stmt::serial(var, extent.typed(var.dtype()), body))
    }

    /// The same stage with another stored value. What the block declares to read goes.
    pub fn with_value(&self, value: Expr) -> Stage {
        let mut block = (*self.block).clone();
        let (buffer, indices) = (self.buffer.clone(), self.indices.clone());
        let store = StmtKind::Store { buffer, indices, value: value.clone() };
        block.reads = None;
        block.body = Stmt::spanned(store, block.body.span());
        Stage { value, ..self.with_block(block) }
    }

    /// The same stage without an annotation of its block.
    pub fn without_annotation(&self, key: &str) -> Stage {
        let mut block = (*self.block).clone();
        block.annotations.retain(|k, _| **k != *key);
        self.with_block(block)
    }

    fn with_block(&self, block: Block) -> Stage {
        let block = Arc::new(block);
        Stage { stmt: Stage::wrap(&self.loops, block.clone()), block, ..self.clone() }
    }

    /// Name of the block.
    pub fn name(&self) -> &Arc<str> {
        &self.block.name
    }

    /// The ranges of its iteration variables, each from zero to its extent.
    pub fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        for (var, extent, _) in self.iters() {
            ranges.bind(var, Interval::new(0, i128::from(extent) - 1));
        }
        ranges
    }

    /// Iteration variables with their extents and kinds, in the order of the loops.
    pub fn dims(&self) -> impl Iterator<Item = (&Var, Dim, IterKind)> {
        self.block.iters.iter().zip(&self.loops).map(|(i, (_, extent))| (&i.var, *extent, i.kind))
    }

    /// Whether no extent is open.
    pub fn is_fixed(&self) -> bool {
        self.loops.iter().all(|l| l.1.known().is_some())
    }

    /// Iteration variables with their extents and kinds, in the order of the loops. An open extent
    /// is the most that it can be: ask [`Stage::dims`] where there may be such.
    pub fn iters(&self) -> impl Iterator<Item = (&Var, i64, IterKind)> {
        self.dims()
            .map(|(var, extent, kind)| (var, extent.number().unwrap_or(i32::MAX.into()), kind))
    }

    /// Spatial iteration variables with their extents.
    pub fn spatial(&self) -> impl Iterator<Item = (&Var, i64)> {
        self.iters().filter(|i| i.2 == IterKind::Spatial).map(|i| (i.0, i.1))
    }

    /// Reduction variables with their extents.
    pub fn reduce(&self) -> impl Iterator<Item = (&Var, i64)> {
        self.iters().filter(|i| i.2 == IterKind::Reduce).map(|i| (i.0, i.1))
    }

    /// Whether the block has reduction variables.
    pub fn is_reduction(&self) -> bool {
        self.reduce().next().is_some()
    }

    /// The update of a reduction whose body is `B[i] = op(B[i], value)`, with the accumulator on
    /// the left and not read in `value`, and with an initial value.
    pub fn reduction(&self) -> Option<Reduction> {
        self.init.as_ref()?;
        let ExprKind::Binary(op, acc, value) = self.value.kind() else { return None };
        if !matches!(op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max) {
            return None;
        }
        let ExprKind::Load(buffer, at) = acc.kind() else { return None };
        let same = *buffer == self.buffer && same_all(at, &self.indices);
        let once = !value.loads_from(|b| *b == self.buffer);
        (self.is_reduction() && same && once).then(|| Reduction { op: *op, value: value.clone() })
    }

    /// The factors of the products that it sums up, if that is all that it does.
    pub fn factors(&self) -> Option<[Expr; 2]> {
        let sum = self.reduction().filter(|r| r.op == BinOp::Add)?;
        match sum.value.kind() {
            ExprKind::Binary(BinOp::Mul, a, b) => Some([a.clone(), b.clone()]),
            _ => None,
        }
    }

    /// Every load in the value with its indices, in the order of the text, the accumulator's
    /// included; loads inside of indices come after the load that they index.
    pub fn loads(&self) -> Vec<(Buffer, Vec<Expr>)> {
        let mut loads = Vec::new();
        self.value.for_each_load(|b, at| loads.push((b.clone(), at.to_vec())));
        loads
    }

    /// The spatial variables where the store's indices are distinct spatial variables (or
    /// constant zeros along axes of extent one) that cover the whole buffer: for each axis of the
    /// buffer the variable, or `None` for such a zero. Then every cell is written exactly once
    /// (or reduced into exactly once).
    pub fn covers_buffer(&self) -> Option<Vec<Option<Var>>> {
        let shape = dim::of_shape(&self.buffer.shape)?;
        let spatial = self.dims().filter(|i| i.2 == IterKind::Spatial);
        let mut left: Vec<(&Var, Dim)> = spatial.map(|i| (i.0, i.1)).collect();
        let mut axes = Vec::with_capacity(shape.len());
        for (index, extent) in self.indices.iter().zip(&shape) {
            match (index.as_var(), index.as_int()) {
                (Some(var), _) => {
                    let at = left.iter().position(|(v, e)| *v == var && e == extent)?;
                    left.swap_remove(at);
                    axes.push(Some(var.clone()));
                }
                (None, Some(0)) if *extent == 1 => axes.push(None),
                _ => return None,
            }
        }
        // A spatial variable that the store leaves out would write a cell again and again.
        (axes.len() == shape.len() && left.iter().all(|(_, e)| *e == 1)).then_some(axes)
    }
}

fn loop_var_of(var: &Var) -> Var {
    match var.name().strip_prefix('v') {
        Some(rest) if !rest.is_empty() => Var::new(rest, var.dtype()),
        _ => var.fresh(),
    }
}

/// The stages of a function in canonical form whose extents are constants, in order; `None` where it
/// is not in that form.
pub fn stages(func: &TensorFunc) -> Option<Vec<Stage>> {
    open_stages(func).filter(|stages| stages.iter().all(Stage::is_fixed))
}

/// The stages of a function in canonical form, in order; `None` where it is not in that form.
pub fn open_stages(func: &TensorFunc) -> Option<Vec<Stage>> {
    let (_, body) = func.root_parts();
    if func.root().is_some_and(|r| !r.is_plain_root()) {
        return None;
    }
    match body.kind() {
        StmtKind::Seq(stmts) => stmts.iter().map(stage).collect(),
        _ => Some(vec![stage(body)?]),
    }
}

/// The stage that a statement is, if it is one.
pub fn stage(stmt: &Stmt) -> Option<Stage> {
    let mut loops: Vec<(Var, Dim)> = Vec::new();
    let mut at = stmt;
    while let StmtKind::For { var, range, kind, annotations, body } = at.kind() {
        let plain = *kind == ForKind::Serial && annotations.is_empty();
        if !plain || range.min.as_int() != Some(0) {
            return None;
        }
        loops.push((var.clone(), Dim::from_expr(&range.extent)?));
        at = body;
    }
    let StmtKind::Block { bindings, predicate, block } = at.kind() else { return None };
    let bound = bindings.len() == loops.len()
        && bindings.iter().zip(&loops).all(|(b, (v, _))| b.as_var() == Some(v));
    if !bound || !predicate.is_true() || !plain_block(block, &loops) {
        return None;
    }
    let (buffer, indices, value) = as_store(&block.body)?;
    let init = match &block.init {
        None => None,
        Some(s) => {
            let (b, i, v) = as_store(s)?;
            if b != buffer || !same_all(i, indices) {
                return None;
            }
            Some(v.clone())
        }
    };
    let reduced: HashSet<&Var> =
        block.iters.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| &i.var).collect();
    let scattered = indices.iter().flat_map(free_vars).any(|v| reduced.contains(&v));
    if scattered || init.is_some() == reduced.is_empty() {
        return None;
    }
    let elsewhere = init.iter().chain([value]).any(|e| reads_elsewhere(buffer, indices, e));
    let spatial = block.iters.iter().filter(|i| i.kind == IterKind::Spatial);
    let spatial: Vec<(Var, Range)> = spatial.map(|i| (i.var.clone(), i.domain.clone())).collect();
    if elsewhere || !tells_apart(indices, &spatial) {
        return None;
    }
    Some(Stage {
        block: block.clone(),
        buffer: buffer.clone(),
        indices: indices.clone(),
        value: value.clone(),
        init,
        stmt: stmt.clone(),
        loops,
    })
}

/// Whether indices certainly differ for different values of the variables. Where each of these is an
/// index, or a digit of one, that is plain; else the set engine is asked.
pub fn tells_apart(indices: &[Expr], vars: &[(Var, Range)]) -> bool {
    let mut moving = vars.iter().filter(|(_, r)| r.extent.as_int() != Some(1));
    let numbers: Vec<&Expr> = indices.iter().filter(|i| is_number(i, vars)).collect();
    if moving.all(|(v, _)| is_told(v, indices, vars, &numbers)) {
        return true;
    }
    let map = Engine::new().domain_of(vars, &[]).map(indices);
    map.and_then(|m| m.collision()).is_ok_and(|c| c.is_none())
}

fn is_told(v: &Var, indices: &[Expr], vars: &[(Var, Range)], numbers: &[&Expr]) -> bool {
    indices.iter().any(|i| is_shifted(i, v, vars)) || numbers.iter().any(|i| i.mentions(v))
}

/// Whether an index is a variable, and something that is the same for all values of the others added to it.
pub fn is_shifted(index: &Expr, v: &Var, vars: &[(Var, Range)]) -> bool {
    if !index.mentions(v) {
        return false;
    }
    Linear::from_expr(index).is_some_and(|sum| {
        let mut moving =
            sum.terms.iter().filter(|(atom, _)| vars.iter().any(|(v, _)| atom.mentions(v)));
        let own = moving.next().is_some_and(|(atom, by)| atom.as_var() == Some(v) && by.abs() == 1);
        own && moving.next().is_none() && index.effects().constant()
    })
}

/// Whether an index is the number whose digits are the variables in it, in their order: each from zero to its extent.
fn is_number(index: &Expr, vars: &[(Var, Range)]) -> bool {
    // Forms of sizes are not right for other arithmetic of what may be zero.
    let other = index.any(|e| match e.kind() {
        ExprKind::Binary(BinOp::Add | BinOp::Mul, ..) | ExprKind::Var(_) => false,
        ExprKind::Cast(_) => e.dtype().bits < 32,
        _ => vars.iter().any(|(v, _)| e.mentions(v)),
    });
    let digits = vars.iter().filter(|(v, _)| !other && index.mentions(v));
    let number = digits.fold(None, |number: Option<Expr>, (v, range)| {
        Some(number.map_or(v.expr(), |n| n * range.extent.clone() + v.expr()))
    });
    number.is_some_and(|n| Dim::from_expr(&n).is_some_and(|n| Dim::from_expr(index) == Some(n)))
}

/// No nested structure, domains that are those of the loops, spatial variables before the others.
fn plain_block(block: &Block, loops: &[(Var, Dim)]) -> bool {
    let kinds: Vec<IterKind> = block.iters.iter().map(|i| i.kind).collect();
    block.allocs.is_empty()
        && block.matches.is_empty()
        && block.iters.len() == loops.len()
        && block.iters.iter().zip(loops).all(|(i, (_, extent))| {
            i.domain.min.as_int() == Some(0) && Dim::from_expr(&i.domain.extent) == Some(*extent)
        })
        && kinds.iter().all(|k| *k != IterKind::Opaque)
        && kinds.windows(2).all(|w| w != [IterKind::Reduce, IterKind::Spatial])
}

fn as_store(s: &Stmt) -> Option<(&Buffer, &Vec<Expr>, &Expr)> {
    match s.kind() {
        StmtKind::Store { buffer, indices, value } => Some((buffer, indices, value)),
        _ => None,
    }
}
