//! Instructions of a warp in a nest over its lanes: the tiles that they work on are registers of the lanes.
//!
//! ```text
//! C = alloc((32, 4), "local")                    for lane in thread_binding(32):
//! for lane in thread_binding(32):                    C = alloc((4,), "local")
//!     C[lane, ..] = 0                                C[..] = 0
//! for i, j, k in grid(16, 8, 16):            →       call_extern("mma_m16n8k16_f16", A[0], B[0], C[0])
//!     C[lane(i, j), number(i, j)] += ...
//! ```
//!
//! So does `ldmatrix`, which fills a fragment from rows of shared memory: each lane gives the address of one row.
//!
//! ```text
//! for i, k in grid(16, 16): A[lane(i, k), number(i, k)] = S[i * 40 + k]
//!         →   call_extern("ldmatrix_x4", A[0], S[lane % 16 * 40 + lane // 16 * 8])
//! ```
//!
//! The loops that an instruction computes are marked ([`TENSOR_INSTRUCTION`]) and know nothing of lanes; that each
//! element lies where the instruction has it is asked of all of them here; where the
//! loops over threads become one nest, all lanes run one call, and each tile loses its axis of lanes.

use tilewright_ir::hash::HashMap;

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{Affine, Ranges, simplify};
use tilewright_ir::visit::{Subst, accessed, fold_expr_children};
use tilewright_ir::{
    Attr, Attrs, BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt,
    StmtKind, Var,
};
use tilewright_polyhedral::evaluate;
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped};
use tilewright_target::{
    LOAD_MATRIX, MATRIX_ROW, TENSOR_INSTRUCTION, Tile, WarpOperand, instruction as instruction_of,
};

/// Lanes of a warp.
pub(super) const LANES: i64 = 32;

/// The instruction that a loop is marked with.
fn instruction(annotations: &Attrs) -> Option<&str> {
    match annotations.get(TENSOR_INSTRUCTION)? {
        Attr::Str(name) => Some(name),
        _ => None,
    }
}

/// Whether loops that an instruction of a warp computes are in a statement.
pub(super) fn has_instructions(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| {
        if let StmtKind::For { annotations, .. } = s.kind() {
            found |= instruction(annotations).is_some();
        }
    });
    found
}

/// A statement in a nest over lanes, whose variable is given: calls in the place of what instructions compute, and
/// tiles without their axis of lanes. `None` where a lane accesses registers of another one beside.
pub(super) fn in_lanes(s: &Stmt, lane: &Var, around: &Scope) -> Option<Stmt> {
    let mut tiles = HashMap::default();
    s.for_each(|s| {
        if let StmtKind::For { annotations, .. } = s.kind()
            && instruction(annotations).is_some()
        {
            let (mut reads, writes) = accessed(s);
            // What is loaded from shared memory is no tile.
            if instruction(annotations) == Some(LOAD_MATRIX) {
                reads.clear();
            }
            for old in reads.into_iter().chain(writes) {
                let axis = old.rank().checked_sub(2);
                let new = old.derive_storage(|d| {
                    if let Some(axis) = axis {
                        d.shape.remove(axis);
                    }
                });
                tiles.entry(old).or_insert(new);
            }
        }
    });
    let plain = tiles.keys().all(|b: &Buffer| {
        let axis = b.rank().checked_sub(2);
        let lanes = axis.and_then(|k| b.shape[k].as_int());
        lanes == Some(LANES) && &*b.scope == "local" && b.strides.is_empty()
    });
    let mut scope = around.clone();
    scope.enter(lane, &Range::upto(Expr::int(LANES, lane.dtype())));
    let mut fold = InLanes { lane, scope, tiles, fails: !plain };
    if fold.fails {
        return None;
    }
    let out = fold.stmt(s);
    (!fold.fails).then_some(out)
}

struct InLanes<'a> {
    lane: &'a Var,
    /// What holds here: a condition may have simplified an index.
    scope: Scope,
    /// Each tile without its axis of lanes.
    tiles: HashMap<Buffer, Buffer>,
    fails: bool,
}

impl InLanes<'_> {
    /// The own part of an access to a tile.
    fn own(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let new = self.tiles.get(buffer)?.clone();
        let mut indices: Vec<Expr> = indices.iter().map(|e| self.expr(e)).collect();
        let lane = simplify(&indices.remove(indices.len() - 2), &Ranges::default());
        self.fails |= lane.as_var() != Some(self.lane) && !self.is_own(&lane);
        Some((new, indices))
    }

    /// Whether an index is that of the lane wherever it is reached.
    fn is_own(&self, index: &Expr) -> bool {
        let own = self.lane.expr().cast(index.dtype());
        let index = self.scope.index(index);
        index.is_some_and(|index| self.scope.domain().proves(&index.equal(own)))
    }

    /// The call that fills a fragment from rows of shared memory.
    fn load_matrix(&mut self, s: &Stmt) -> Option<Stmt> {
        let (mut inside, mut at) = (Vec::new(), s);
        while let StmtKind::For { var, range, body, .. } = at.kind() {
            range.min.as_int().filter(|min| *min == 0)?;
            inside.push((var.clone(), range.extent.as_int()?));
            at = body;
        }
        let (StmtKind::Store { buffer: to, indices, value }, [first, second]) =
            (at.kind(), &inside[..])
        else {
            return None;
        };
        let ExprKind::Load(from, place) = value.kind() else { return None };
        let bytes = from.dtype().bytes() as i64;
        if *from.scope != *"shared" || from.dtype() != to.dtype() || !matches!(bytes, 1 | 2) {
            return None;
        }
        // Elements of a row of a matrix.
        let row = MATRIX_ROW / bytes;
        // Rows and columns of the fragment, and whether its registers run across the rows of memory.
        let tiles = [WarpOperand::Left, WarpOperand::Right].map(|operand| Tile {
            dtype: to.dtype(),
            rows: if operand == WarpOperand::Left { 16 } else { 2 * row },
            columns: if operand == WarpOperand::Left { 2 * row } else { 8 },
            group: 1,
            warp: Some(operand),
        });
        let tile = tiles.into_iter().find(|t| {
            (first.1, second.1) == (t.rows, t.columns)
                && lies_as(t, [&first.0, &second.0], indices) == Some(true)
        })?;
        let runs_along = |v: &Var| {
            let (last, others) = place.split_last()?;
            let step = Affine::from_expr(last)?.coefficient(v)?;
            let others = others.iter().all(|e| !e.mentions(v));
            Some(step == 1 && others)
        };
        let is_left = tile.warp == Some(WarpOperand::Left);
        let lane = self.lane.expr();
        let (low, high) = (lane.clone().floormod(8), lane.clone().floordiv(8));
        // Of the matrices, which are registers in this order: the first row and the first column in the fragment.
        let (down, right) = match is_left {
            true => (high.clone().floormod(2) * 8, high.floordiv(2) * row),
            false => (high.floormod(2) * row, Expr::int(0, lane.dtype())),
        };
        // `row` is the fragment's first axis. Registers hold neighbours of the left one's columns, of the right
        // one's rows.
        let across = match (runs_along(&second.0)?, runs_along(&first.0)?) {
            (true, _) => false,
            (_, true) => true,
            _ => return None,
        };
        let (i, j) = if across { (down, right + low) } else { (down + low, right) };
        let turned = is_left == across;
        if turned && bytes != 2 {
            return None;
        }
        let types = [first.0.dtype(), second.0.dtype()];
        let values = [(first.0.clone(), i.cast(types[0])), (second.0.clone(), j.cast(types[1]))];
        let mut subst = Subst::vars(values);
        let source: Vec<Expr> = place.iter().map(|e| subst.expr(e)).collect();
        let source = source.iter().map(|e| self.expr(e)).collect::<Vec<_>>();
        let new = self.tiles.get(to)?.clone();
        let (outer, _) = indices.split_at(indices.len() - 2);
        if outer.iter().any(|e| e.mentions_any([&first.0, &second.0])) {
            return None;
        }
        let zero = Expr::int(0, indices.last()?.dtype());
        let target = new.load(outer.iter().cloned().chain([zero]));
        let count = if is_left { "x4" } else { "x2" };
        let name = format!("{LOAD_MATRIX}_{count}{}", if turned { "_trans" } else { "" });
        let args = vec![target, from.load(source)];
        let call = Expr::call(CallTarget::Extern(name.into()), args, DType::HANDLE);
        // Other passes see from stores which registers are written.
        let number = Var::index("register");
        let count = Expr::int(tile.rows * tile.columns / LANES, number.dtype());
        let cell: Vec<Expr> = outer.iter().cloned().chain([number.expr()]).collect();
        let zero = match new.dtype() {
            dtype if dtype.is_float() => Expr::float(0.0, dtype),
            dtype => Expr::int(0, dtype),
        };
        let zero = Stmt::store(&new, cell, zero);
        let fill = Stmt::for_loop(&number, Range::upto(count), ForKind::Unrolled, zero);
        Some(Stmt::seq([fill, Stmt::new(StmtKind::Evaluate(call))]))
    }

    /// The call that takes the place of marked loops: the first registers of the factors and the sums.
    fn call(&mut self, name: &str, s: &Stmt) -> Option<Stmt> {
        if name == LOAD_MATRIX {
            return self.load_matrix(s);
        }
        let known = instruction_of(name).filter(|i| i.is_of_warp())?;
        let (mut inside, mut at) = (Vec::new(), s);
        while let StmtKind::For { var, range, body, .. } = at.kind() {
            range.min.as_int().filter(|min| *min == 0)?;
            inside.push((var.clone(), range.extent.as_int()?));
            at = body;
        }
        let StmtKind::Store { buffer: c, indices, value } = at.kind() else { return None };
        let ExprKind::Binary(BinOp::Add, sum, product) = value.kind() else { return None };
        let ExprKind::Binary(BinOp::Mul, x, y) = product.kind() else { return None };
        let operands = [loaded(x)?, loaded(y)?, (c.clone(), indices.clone())];
        let (summed, same) = loaded(sum)?;
        let adds = summed == *c && same.iter().zip(indices).all(|(x, y)| same_expr(x, y));
        let extents = [known.c.rows, known.c.columns, known.a.columns];
        let vars: Vec<Var> = inside.iter().map(|l| l.0.clone()).collect();
        if !adds || inside.iter().map(|l| l.1).ne(extents) {
            return None;
        }
        let [row, column, step] = [0, 1, 2].map(|k| vars[k].clone());
        let tiles = [(known.a, &row, &step), (known.b, &step, &column), (known.c, &row, &column)];
        for ((tile, across, along), (buffer, at)) in tiles.into_iter().zip(&operands) {
            let lies = buffer.dtype() == tile.dtype && lies_as(&tile, [across, along], at)?;
            if !lies {
                return None;
            }
        }
        let inside = vars;
        let mut args = Vec::new();
        for (buffer, at) in operands {
            let new = self.tiles.get(&buffer)?.clone();
            let (outer, _) = at.split_at(at.len() - 2);
            if outer.iter().any(|e| e.mentions_any(&inside)) {
                return None;
            }
            let first = Expr::int(0, at.last()?.dtype());
            args.push(new.load(outer.iter().cloned().chain([first])));
        }
        let call = Expr::call(CallTarget::Extern(name.into()), args, DType::HANDLE);
        Some(Stmt::new(StmtKind::Evaluate(call)))
    }
}

/// What a factor, or a sum, loads.
fn loaded(e: &Expr) -> Option<(Buffer, Vec<Expr>)> {
    match e.kind() {
        ExprKind::Load(buffer, indices) => Some((buffer.clone(), indices.to_vec())),
        ExprKind::Cast(inner) => loaded(inner),
        _ => None,
    }
}

/// Whether the last two indices of an access are lane and number of each element of a tile, whose row and column are
/// variables: asked of every element.
fn lies_as(tile: &Tile, [row, column]: [&Var; 2], indices: &[Expr]) -> Option<bool> {
    let (_, place) = indices.split_at(indices.len().checked_sub(2)?);
    for (i, j) in (0..tile.rows).flat_map(|i| (0..tile.columns).map(move |j| (i, j))) {
        let value = |v: &Var| match v {
            v if v == row => Some(i),
            v if v == column => Some(j),
            _ => None,
        };
        let wanted = tile.layout(&Expr::int(i, DType::I32), &Expr::int(j, DType::I32));
        for (index, wanted) in place.iter().zip(&wanted) {
            if evaluate(index, &value)? != wanted.as_int()? {
                return Some(false);
            }
        }
    }
    Some(true)
}

impl Scoped for InLanes<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for InLanes<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(buffer, indices) => match self.own(buffer, indices) {
                Some((new, indices)) => new.load(indices),
                None => fold_expr_children(self, e),
            },
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { annotations, .. } if instruction(annotations).is_some() => {
                let name = instruction(annotations).unwrap_or_default().to_owned();
                self.call(&name, s).unwrap_or_else(|| {
                    self.fails = true;
                    s.clone()
                })
            }
            StmtKind::Store { buffer, indices, value } => match self.own(buffer, indices) {
                Some((new, indices)) => Stmt::store(&new, indices, self.expr(value)),
                None => fold_scoped(self, s),
            },
            StmtKind::Allocate { buffer, body, .. } if self.tiles.contains_key(buffer) => {
                let (new, body) = (self.tiles[buffer].clone(), self.stmt(body));
                Stmt::allocate(&new, body)
            }
            _ => fold_scoped(self, s),
        }
    }
}
