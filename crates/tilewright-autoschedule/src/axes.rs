//! Axes: iteration variables of a stage, fused where every access allows it.
//!
//! Two neighbouring variables `a` (outer) and `b` (inner) of one kind act as one longer variable
//! `a * extent(b) + b` if each access moves along `a` by exactly `extent(b)` steps of `b`. So a
//! 1x1 convolution sees one axis of pixels, and an elementwise function one axis in all.

use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::{Visit, free_vars, walk_expr};
use tilewright_ir::{Buffer, DType, Dim, Expr, ExprKind, IterKind, Var};

use tilewright_analysis::Stage;
use tilewright_ir::index::{Affine, is_flat};

/// One or several iteration variables that act as one.
#[derive(Clone, Debug)]
pub struct FusedAxis {
    /// The fused variables with their extents, outermost first.
    pub parts: Vec<(Var, Dim)>,
    /// Product of the extents.
    pub extent: Dim,
    /// Spatial or reduction.
    pub kind: IterKind,
}

impl FusedAxis {
    /// By how much an access moves with one step along the axis; `None` where it does not move
    /// evenly.
    pub fn step(&self, access: &Affine) -> Option<i64> {
        self.parts.last().and_then(|(v, _)| access.coefficient(v))
    }
}

/// How an access moves along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Move {
    /// By so many cells.
    By(i64),
    /// By an open number of cells, more than one of them as a rule: by rows of an open length.
    Rows,
}

impl FusedAxis {
    /// How an access moves along the axis; `None` where it does not move evenly.
    pub(crate) fn moves(&self, access: &Access) -> Option<Move> {
        let offset = access.offset.as_ref()?;
        if let Some(n) = self.step(offset) {
            return Some(Move::By(n));
        }
        let [(var, _)] = &self.parts[..] else { return None };
        let mut moving = access.indices.iter().enumerate().filter(|(_, i)| i.mentions(var));
        let (Some((at, index)), None) = (moving.next(), moving.next()) else { return None };
        let inner = at + 1 < access.indices.len();
        let even =
            Affine::from_expr(index).and_then(|i| i.coefficient(var)).is_some_and(|n| n != 0);
        (inner && even && access.buffer.strides.is_empty()).then_some(Move::Rows)
    }
}

/// Every access of some expressions: its buffer, its indices and, where it has one, its affine
/// offset.
#[derive(Clone, Debug)]
pub struct Access {
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    /// The flat offset.
    pub offset: Option<Affine>,
}

impl Access {
    /// An access at indices.
    pub fn new(buffer: &Buffer, indices: &[Expr]) -> Access {
        let offset = Affine::of_access(buffer, indices);
        Access { buffer: buffer.clone(), indices: indices.to_vec(), offset }
    }

    /// Every load in an expression.
    pub fn loads(e: &Expr) -> Vec<Access> {
        struct Loads(Vec<Access>);
        impl Visit for Loads {
            fn expr(&mut self, e: &Expr) {
                if let ExprKind::Load(b, indices) = e.kind() {
                    self.0.push(Access::new(b, indices));
                }
                walk_expr(self, e);
            }
        }
        let mut loads = Loads(Vec::new());
        loads.expr(e);
        loads.0
    }
}

/// Variables whose values an expression uses directly, not only to say where it loads from.
pub fn loose_vars(e: &Expr) -> HashSet<Var> {
    let mut loose = HashSet::default();
    e.for_each(|e| {
        loose.extend(e.as_var().cloned());
        !matches!(e.kind(), ExprKind::Load(b, indices) if Affine::of_access(b, indices).is_some())
    });
    loose
}

/// Variables that decide which of two values an expression has, or whether it is computed.
pub fn deciding_vars(e: &Expr) -> HashSet<Var> {
    let mut deciding = HashSet::default();
    e.for_each(|e| {
        if let ExprKind::IfThenElse(cond, ..) | ExprKind::Select(cond, ..) = e.kind() {
            deciding.extend(loose_vars(cond));
        }
        true
    });
    deciding
}

/// Groups iteration variables (outermost first, with extents and kinds) into axes. Variables of
/// extent one are part of no axis.
pub fn fuse(
    iters: &[(Var, Dim, IterKind)],
    accesses: &[Access],
    loose: &HashSet<Var>,
) -> Vec<FusedAxis> {
    let mut pinned = loose.clone();
    for access in accesses {
        match &access.offset {
            Some(a) if is_flat(&access.buffer) => {
                pinned.extend(a.opaque().flat_map(|(e, _)| free_vars(e)))
            }
            _ => pinned.extend(access.indices.iter().flat_map(free_vars)),
        }
    }
    let mut axes: Vec<FusedAxis> = Vec::new();
    for (var, extent, kind) in iters {
        if *extent == 1 {
            continue;
        }
        let part = (var.clone(), *extent);
        let joined = axes.last_mut().filter(|axis| {
            axis.kind == *kind
                && axis.parts.last().is_some_and(|p| are_joined(p, &part, &pinned, accesses))
                && (axis.extent * *extent).fits_int32()
        });
        match joined {
            Some(axis) => {
                axis.extent = axis.extent * *extent;
                axis.parts.push(part);
            }
            None => axes.push(FusedAxis { parts: vec![part], extent: *extent, kind: *kind }),
        }
    }
    axes
}

fn are_joined(
    outer: &(Var, Dim),
    inner: &(Var, Dim),
    pinned: &HashSet<Var>,
    accesses: &[Access],
) -> bool {
    !pinned.contains(&outer.0)
        && !pinned.contains(&inner.0)
        && accesses.iter().filter_map(|a| a.offset.as_ref()).all(|a| {
            let step = a.coefficient(&inner.0).and_then(|k| k.checked_mul(inner.1.number()?));
            step.is_some() && step == a.coefficient(&outer.0)
        })
}

/// Bytes of the widest type that a stage without reduction accesses, `accesses` being its loads and its store;
/// `None` where its elements cannot be shuffled in registers.
pub(crate) fn widest(stage: &Stage, value: &Expr, accesses: &[Access]) -> Option<usize> {
    // A condition of single elements is no condition of vectors.
    let branches = value.any(|e| matches!(e.kind(), ExprKind::IfThenElse(..)));
    let (_, loads) = accesses.split_last()?;
    let own = loads.iter().any(|a| a.buffer == stage.buffer);
    let kinds = accesses.iter().map(|a| a.buffer.dtype());
    let fits = kinds.clone().all(|d| d.is_int() || d.is_float() || d.is_bool())
        && !branches
        && !own
        && !accesses.iter().any(is_opaque);
    kinds.map(DType::bytes).max().filter(|_| fits)
}

/// Bytes of the widest type, as [`widest`] says, where all are of 4 or 8 bytes; the masks of narrower ones are slow.
pub(crate) fn widest_word(stage: &Stage, value: &Expr, accesses: &[Access]) -> Option<usize> {
    let words =
        accesses.iter().all(|a| !a.buffer.dtype().is_bool() && a.buffer.dtype().bytes() >= 4);
    widest(stage, value, accesses).filter(|_| words)
}

/// Whether an access moves by an open number of cells.
fn is_opaque(a: &Access) -> bool {
    a.offset.is_none()
        || a.indices
            .iter()
            .any(|i| Affine::from_expr(i).is_none_or(|i| i.opaque().next().is_some()))
}

/// The largest number up to `max` for the parts that `total` is cut into evenly.
pub(crate) fn balanced(total: i64, max: i64) -> i64 {
    let parts = (total as u64).div_ceil(max.max(1) as u64).max(1);
    (total as u64).div_ceil(parts) as i64
}
