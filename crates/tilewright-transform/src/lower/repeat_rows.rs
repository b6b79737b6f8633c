//! Rows that a tile of registers has too many are computed as the last row that there is.
//!
//! ```text
//! for k in range(K):                              for k in range(K):
//!     for r in unroll(4):                             for r in unroll(4):
//!         if r < left:                      →             sums[r] += a[min(r, left - 1), k] * b[k]
//!             sums[r] += a[r, k] * b[k]
//! for r in unroll(4):                             for r in unroll(4):
//!     if r < left:                                    if r < left:
//!         out[r] = sums[r]                                out[r] = sums[r]
//! ```
//!
//! One tile then serves any number of rows, and its loops have no branch. It is right without a look at what is
//! computed: memory of the tile's own is accessed under one guard alone, a row each, so nothing reads what a row
//! holds that is not there; and such a row reads, in the place of its own elements, those that the last row reads in
//! the same iterations of the other loops. So what memory of the tile holds must not decide what else is read, it must
//! have a place for each iteration over rows, and nothing but that place may vary with the row. That there is a last
//! row is proved.

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::Linear;
use tilewright_ir::visit::{Subst, fold_expr_children, fold_stmt_children};
use tilewright_ir::{
    BinOp, Buffer, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped};

use crate::pass::{Pass, Run};

/// `repeat_rows` by name.
pub const PASS: Pass = Pass {
    name: "repeat_rows",
    summary: "rows that tiles of local memory have too many compute the last row again, without a guard",
    options: &[],
    run: Run::Tensor(|f, _, _| Ok(repeat_rows(f))),
};

/// A function without blocks in which such guards are gone.
pub fn repeat_rows(func: &TensorFunc) -> TensorFunc {
    let mut tiles = Tiles { scope: Scope::at_entry(func) };
    TensorFunc { body: tiles.stmt(&func.body), ..func.clone() }
}

/// Looks for memory of tiles.
struct Tiles {
    scope: Scope,
}

impl Scoped for Tiles {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Tiles {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            // What is allocated inside may be a tile where this is none: there may be loops over tiles between them.
            StmtKind::Allocate { buffer, .. } if is_local(buffer) => {
                let new = self.unguarded(s).unwrap_or_else(|| s.clone());
                fold_scoped(self, &new)
            }
            _ => fold_scoped(self, s),
        }
    }
}

fn is_local(buffer: &Buffer) -> bool {
    &*buffer.scope == "local"
}

impl Tiles {
    /// The statement that allocates memory of a tile, without guards of rows in it.
    fn unguarded(&self, s: &Stmt) -> Option<Stmt> {
        let mut found = Found::default();
        found.walk(s, &mut Path::default())?;
        let there = |rows: &Rows| self.scope.proves(&rows.bound.clone().greater(0));
        found.memory.retain(|memory| memory.rows.as_ref().is_some_and(there));
        let mut repeat = Repeat { memory: &found.memory, path: Path::default() };
        (!found.memory.is_empty()).then(|| repeat.stmt(s))
    }
}

/// The loops and conditions between the allocation and a statement in it.
#[derive(Default)]
struct Path {
    loops: Vec<Var>,
    /// The loops from zero to a number that run in order, with the number.
    rows: Vec<(Var, i64)>,
    conds: Vec<Expr>,
    /// The ranges of loops and the values of bindings.
    parts: Vec<Expr>,
}

impl Path {
    /// What a condition says of a row: that there are so many. The number is the same in all loops inside.
    fn guard(&self, cond: &Expr) -> Option<(Var, Expr)> {
        let ExprKind::Binary(BinOp::Lt, a, b) = cond.kind() else { return None };
        let (less, more) = (Linear::from_expr(a)?, Linear::from_expr(b)?);
        let difference = more.plus(&less, -1)?;
        let (row, _) = self.rows.iter().find(|(v, _)| difference.coefficient(v) == Some(-1))?;
        let bound = difference.plus(&Linear::atom(row.expr()), 1)?.to_expr()?;
        let open = bound.effects().constant() && !bound.mentions_any(&self.loops);
        (open && bound.dtype() == row.dtype()).then(|| (row.clone(), bound))
    }

    /// Works inside of a loop or a condition.
    fn inside<R>(&mut self, s: &Stmt, work: impl FnOnce(&mut Path) -> R) -> R {
        let (loops, rows) = (self.loops.len(), self.rows.len());
        let (conds, parts) = (self.conds.len(), self.parts.len());
        match s.kind() {
            StmtKind::For { var, range, kind, .. } => {
                self.loops.push(var.clone());
                self.parts.extend([range.min.clone(), range.extent.clone()]);
                let in_order = matches!(kind, ForKind::Serial | ForKind::Unrolled);
                if let (true, Some(0), Some(n)) =
                    (in_order, range.min.as_int(), range.extent.as_int())
                {
                    self.rows.push((var.clone(), n));
                }
            }
            StmtKind::Let { var, value, .. } => {
                self.loops.push(var.clone());
                self.parts.push(value.clone());
            }
            StmtKind::If { cond, .. } => self.conds.extend(cond.conjuncts()),
            _ => {}
        }
        let result = work(self);
        self.loops.truncate(loops);
        self.rows.truncate(rows);
        self.conds.truncate(conds);
        self.parts.truncate(parts);
        result
    }

    /// Whether an access is at the place of a row along an axis that has one for each iteration, and otherwise at the
    /// same place for all rows.
    fn is_place(&self, buffer: &Buffer, indices: &[Expr], axis: usize, row: &Var) -> bool {
        let count = self.rows.iter().find(|(v, _)| v == row).map(|(_, n)| *n);
        let places = buffer.shape.get(axis).and_then(Expr::as_int);
        count.zip(places).is_some_and(|(n, places)| n <= places)
            && indices.iter().enumerate().all(|(k, i)| match k == axis {
                true => i.as_var() == Some(row),
                false => !i.mentions(row) && !i.effects().loads,
            })
    }

    /// Whether everything but the guard of a row is the same for all rows.
    fn is_apart(&self, row: &Var) -> bool {
        self.conds.iter().chain(&self.parts).all(|e| !e.mentions(row))
    }
}

/// The rows of memory: along which axis, and how many there are.
struct Rows {
    axis: usize,
    bound: Expr,
}

/// Memory of a tile; `rows` is `None` where it is accessed in another way than row by row under one guard.
struct Memory {
    buffer: Buffer,
    rows: Option<Rows>,
    accessed: bool,
}

/// The memory that is allocated at a place and inside of it.
#[derive(Default)]
struct Found {
    memory: Vec<Memory>,
}

impl Found {
    /// Collects accesses; `None` where something is done that is not looked into.
    fn walk(&mut self, s: &Stmt, path: &mut Path) -> Option<()> {
        let plain = |found: &Found, e: &Expr| {
            (!e.loads_from(|b| found.of(b).is_some())
                && found.memory.iter().all(|m| !e.mentions(&m.buffer.data)))
            .then_some(())
        };
        match s.kind() {
            StmtKind::Seq(list) => list.iter().try_for_each(|s| self.walk(s, path)),
            StmtKind::Allocate { buffer, body, .. } => {
                let buffer = buffer.clone();
                self.memory.push(Memory { buffer, rows: None, accessed: false });
                self.walk(body, path)
            }
            StmtKind::For { range, body, .. } => {
                plain(self, &range.min)?;
                plain(self, &range.extent)?;
                path.inside(s, |path| self.walk(body, path))
            }
            StmtKind::If { cond, then, otherwise } => {
                plain(self, cond)?;
                path.inside(s, |path| self.walk(then, path))?;
                otherwise.iter().try_for_each(|o| self.walk(o, path))
            }
            StmtKind::Let { value, body, .. } => {
                plain(self, value)?;
                path.inside(s, |path| self.walk(body, path))
            }
            StmtKind::Evaluate(e) => plain(self, e),
            StmtKind::Assert { cond, values, .. } => {
                plain(self, cond)?;
                values.iter().try_for_each(|e| plain(self, e))
            }
            StmtKind::Store { buffer, indices, value } => {
                self.access(buffer, indices, path);
                let mut loads = Vec::new();
                for e in indices.iter().chain([value]) {
                    e.any(|e| {
                        if let ExprKind::Load(b, at) = e.kind() {
                            loads.push((b.clone(), at.clone()));
                        }
                        false
                    });
                }
                loads.iter().for_each(|(b, at)| self.access(b, at, path));
                Some(())
            }
            _ => None,
        }
    }

    fn of(&self, buffer: &Buffer) -> Option<usize> {
        self.memory.iter().position(|m| m.buffer.data == buffer.data)
    }

    fn access(&mut self, buffer: &Buffer, indices: &[Expr], path: &Path) {
        let Some(at) = self.of(buffer) else { return };
        let memory = &mut self.memory[at];
        let guards: Vec<(Var, Expr)> = path.conds.iter().filter_map(|c| path.guard(c)).collect();
        let is = |axis: usize, v: &Var| path.is_place(buffer, indices, axis, v);
        let same = memory.buffer == *buffer;
        memory.rows = match (memory.accessed, memory.rows.take()) {
            (false, _) if same => guards.into_iter().find_map(|(v, bound)| {
                let axis = (0..indices.len()).find(|axis| is(*axis, &v))?;
                Some(Rows { axis, bound })
            }),
            (true, Some(rows)) if same => guards
                .iter()
                .any(|(v, bound)| is(rows.axis, v) && same_expr(bound, &rows.bound))
                .then_some(rows),
            _ => None,
        };
        memory.accessed = true;
    }
}

/// Takes the guards of rows away.
struct Repeat<'a> {
    memory: &'a [Memory],
    path: Path,
}

impl Fold for Repeat<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if let Some(new) = self.repeated(s) {
            return new;
        }
        let mut path = std::mem::take(&mut self.path);
        let memory = self.memory;
        let new = path.inside(s, |path| {
            let mut inside = Repeat { memory, path: std::mem::take(path) };
            let new = fold_stmt_children(&mut inside, s);
            *path = inside.path;
            new
        });
        self.path = path;
        new
    }
}

impl Repeat<'_> {
    /// What a guard of a row guards, for each row.
    fn repeated(&self, s: &Stmt) -> Option<Stmt> {
        let StmtKind::If { cond, then, otherwise: None } = s.kind() else { return None };
        let mut conds = cond.conjuncts();
        let guard = |k: usize| Some((k, self.path.guard(&conds[k])?));
        let (at, (row, bound)) = (0..conds.len()).find_map(guard)?;
        conds.remove(at);
        let last = Expr::binary(BinOp::Min, row.expr(), bound.clone() - 1);
        let mut body = RowOf { memory: self.memory, row: &row, bound: &bound, last, other: false };
        let new = body.stmt(then);
        let apart = self.path.is_apart(&row) && conds.iter().all(|c| !c.mentions(&row));
        let rest = conds.into_iter().reduce(Expr::and);
        let new = rest.into_iter().fold(new, |body, cond| Stmt::guard(cond, body));
        (apart && !body.other).then_some(new)
    }
}

/// Lets a row read what the last one does, but for the memory of the tile.
struct RowOf<'a> {
    memory: &'a [Memory],
    row: &'a Var,
    bound: &'a Expr,
    /// The row, or the last one.
    last: Expr,
    /// Whether there is something that may only be done for rows that are there.
    other: bool,
}

impl RowOf<'_> {
    /// Whether this is an access of the row in memory of the tile.
    fn is_own(&self, buffer: &Buffer, indices: &[Expr]) -> bool {
        self.memory.iter().any(|m| {
            m.buffer == *buffer
                && m.rows.as_ref().is_some_and(|rows| {
                    indices.get(rows.axis).and_then(Expr::as_var) == Some(self.row)
                        && same_expr(&rows.bound, self.bound)
                })
        })
    }
}

impl RowOf<'_> {
    fn loads_own(&self, e: &Expr) -> bool {
        e.loads_from(|b| self.memory.iter().any(|m| m.buffer == *b))
    }

    fn refuse(&mut self, e: &Expr) -> Expr {
        self.other = true;
        e.clone()
    }
}

impl Fold for RowOf<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(b, at) if self.is_own(b, at) => e.clone(),
            // What a row holds that is not there divides nothing, and decides neither what is read nor where.
            ExprKind::Binary(
                BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod,
                _,
                by,
            ) if self.loads_own(by) => self.refuse(e),
            ExprKind::Binary(BinOp::And | BinOp::Or, first, _) if self.loads_own(first) => {
                self.refuse(e)
            }
            ExprKind::IfThenElse(cond, ..) if self.loads_own(cond) => self.refuse(e),
            ExprKind::Load(_, at) if at.iter().any(|i| self.loads_own(i)) => self.refuse(e),
            _ if !e.effects().loads => Subst::vars([(self.row.clone(), self.last.clone())]).expr(e),
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Seq(_) => fold_stmt_children(self, s),
            StmtKind::For { range: Range { min, extent }, .. }
                if min.as_int().is_some() && extent.as_int().is_some() =>
            {
                fold_stmt_children(self, s)
            }
            StmtKind::Store { buffer, indices, value }
                if self.is_own(buffer, indices) && !value.effects().impure() =>
            {
                let value = self.expr(value);
                let (buffer, indices) = (buffer.clone(), indices.clone());
                Stmt::spanned(StmtKind::Store { buffer, indices, value }, s.span())
            }
            _ => {
                self.other = true;
                s.clone()
            }
        }
    }
}
