//! Assertions about data are asked for many iterations together.
//!
//! ```text
//! for i in range(n):                for b in range(ceildiv(n, T)):
//!     assert ok(x[i])                   holds[0] = 1
//!     y[i] = f(x[i])          →         for i in tile(b): holds[0] = T.min(holds[0], ok(x[i]))
//!                                       if holds[0] == 0:
//!                                           for i in tile(b): assert ok(x[i])
//!                                       for i in tile(b): y[i] = f(x[i])
//! ```
//!
//! LLVM makes no vectors of a loop that may end early; of the first and the last of these it does. The one that ends
//! early runs where an assertion fails, and says which. What a run that fails leaves in its outputs is open, so that
//! a tile may be asked about before its stores, or those of the tiles after it.

use tilewright_ir::hash::HashSet;
use tilewright_ir::visit::{Subst, accessed, fold_stmt_children};
use tilewright_ir::{
    BinOp, Buffer, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
};

/// Iterations of a tile: their cells stay in the nearest cache.
const TILE: i64 = 1024;

/// The fewest iterations for which it pays.
const FEWEST: i64 = 32;

/// A function with flat memory whose loops ask for assertions together.
pub(super) fn assert_together(func: &TensorFunc) -> TensorFunc {
    TensorFunc { body: Together.stmt(&func.body), ..func.clone() }
}

struct Together;

impl Fold for Together {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        together(s).unwrap_or_else(|| fold_stmt_children(self, s))
    }
}

/// A loop over an assertion and stores, as above; `None` for all others.
fn together(s: &Stmt) -> Option<Stmt> {
    let StmtKind::For { var, range, kind, annotations, body } = s.kind() else { return None };
    let is_plain = matches!(kind, ForKind::Serial | ForKind::Parallel) && annotations.is_empty();
    let StmtKind::Seq(parts) = body.kind() else { return None };
    let [assertion, rest @ ..] = &parts[..] else { return None };
    let StmtKind::Assert { cond, .. } = assertion.kind() else { return None };
    let count = range.extent.as_int();
    if !is_plain || count.is_some_and(|n| n < FEWEST) || !asks_data(cond) || !stores(rest, cond) {
        return None;
    }
    let one_tile = *kind == ForKind::Serial && count.is_some_and(|n| n <= TILE);
    if one_tile {
        return Some(tile(var, range, cond, assertion, rest));
    }
    let dtype = range.extent.dtype();
    let size = || Expr::int(TILE, dtype);
    let tiles = Var::new("tile", dtype);
    let first = tiles.expr() * size();
    let left = range.extent.clone() - first.clone();
    let own = Range { min: range.min.clone() + first, extent: left.min(size()) };
    // The first tile that is not whole is the last one: no sum leaves the type, and a host knows how many there are.
    let whole = range.extent.clone().floordiv(size());
    let more = range.extent.clone().floormod(size()).min(Expr::int(1, dtype));
    let all = Range::upto(match count {
        Some(n) => Expr::int(n / TILE + (n % TILE).min(1), dtype),
        None => whole + more,
    });
    let tiled = Stmt::for_loop(&tiles, all, kind.clone(), tile(var, &own, cond, assertion, rest));
    // A row of an open length may be short.
    let few = count.is_none().then(|| range.extent.clone().less(FEWEST));
    Some(few.map_or(tiled.clone(), |few| Stmt::if_else(few, s.clone(), tiled)))
}

/// The iterations of a tile.
fn tile(var: &Var, range: &Range, cond: &Expr, assertion: &Stmt, rest: &[Stmt]) -> Stmt {
    let holds =
        Buffer::with_extents("holds", &[1], DType::I32).derive(|b| b.scope = "local".into());
    let place = || vec![Expr::i32(0)];
    let so_far = || Expr::load(&holds, place());
    let each = |body: Stmt| {
        let own = var.fresh();
        let body = Subst::vars([(var.clone(), own.expr())]).stmt(&body);
        Stmt::for_loop(&own, range.clone(), ForKind::Serial, body)
    };
    let asked = so_far().min(cond.clone().cast(DType::I32));
    let fails = so_far().less(1);
    Stmt::allocate(
        &holds,
        Stmt::seq([
            Stmt::store(&holds, place(), Expr::i32(1)),
            each(Stmt::store(&holds, place(), asked)),
            Stmt::guard(fails, each(assertion.clone())),
            each(Stmt::seq(rest.iter().cloned())),
        ]),
    )
}

/// Whether a condition reads memory, at places that do not depend on what memory holds, and computes what any
/// iteration may.
fn asks_data(cond: &Expr) -> bool {
    let is_simple = |e: &Expr| match e.kind() {
        ExprKind::Load(_, indices) => !indices.iter().any(|i| i.effects().loads),
        ExprKind::Binary(op, ..) => {
            !matches!(op, BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod)
        }
        ExprKind::Call(..) | ExprKind::IfThenElse(..) | ExprKind::Let(..) => false,
        _ => e.dtype().lanes == 1,
    };
    cond.effects().loads && !cond.any(|e| !is_simple(e))
}

/// Whether statements are stores, none of them to what a condition reads.
fn stores(all: &[Stmt], cond: &Expr) -> bool {
    let asked = Stmt::new(StmtKind::Evaluate(cond.clone()));
    let read: HashSet<Var> = accessed(&asked).0.iter().map(|b| b.data.clone()).collect();
    all.iter().all(|s| match s.kind() {
        StmtKind::Store { buffer, .. } => {
            !s.effects().impure() && !s.effects().asserts && !read.contains(&buffer.data)
        }
        _ => false,
    })
}
