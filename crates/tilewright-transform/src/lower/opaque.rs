//! What is left of a schedule in blocks becomes plain statements, still over multi-dimensional
//! buffers.
//!
//! Beyond [`lower_blocks`]:
//! * loops of one iteration go, their variable replaced by its value. A loop with annotations or
//!   one that is bound to threads stays: a later pass may look for it;
//! * `buffer_dim_align` on a block, a list of `[written buffer, axis, factor, offset]`, becomes
//!   strides of the allocation: the distance along the axis grows to the next number that is
//!   `offset` modulo `factor` (counted in elements);
//! * each allocation says its alignment in bytes and that no address was planned for it, in the
//!   annotations that TVM's later passes look for.
//!
//! Annotations of loops are kept, those of blocks end with the block.

use tilewright_ir::hash::HashMap;

use tilewright_ir::visit::{Subst, fold_func, fold_stmt_children, walk_block, walk_stmt};
use tilewright_ir::{
    Attr, Block, Buffer, Error, Expr, Fold, ForKind, Result, Stmt, StmtKind, TensorFunc, Visit,
    extent,
};

use super::blocks::lower_blocks;
use super::flatten::dim_product;
use crate::pass::{Pass, Run};
use tilewright_analysis::regions::declared_or_inferred;

/// `lower_opaque_block` by name.
pub const PASS: Pass = Pass {
    name: "lower_opaque_block",
    summary: "lower_blocks, without loops of one iteration, with rows aligned and annotations",
    options: &[],
    run: Run::Tensor(|f, _, _| lower_opaque_blocks(f)),
};

/// Annotation of a block: how to align the rows of buffers that it writes.
const DIM_ALIGN: &str = "buffer_dim_align";
/// Annotation of an allocation: its alignment in bytes.
const ALIGNMENT: &str = "buffer_data_alignment";
/// Annotation of an allocation: places in memory pools; none before such a plan.
const ADDRESS: &str = "buffer_allocated_addr";
/// Alignment of allocations that ask for none, in bytes: a cache line.
const DEFAULT_ALIGNMENT: u32 = 64;

/// Replaces blocks by their statements, applies alignments and removes loops of one iteration.
///
/// # Errors
/// `Unsupported` for a view whose shape does not fit its region axis by axis, and for an alignment
/// of a buffer that has strides already, is viewed under another name, or is not allocated here;
/// `Malformed` for an alignment that names no buffer or axis, or has no positive factor.
fn lower_opaque_blocks(func: &TensorFunc) -> Result<TensorFunc> {
    let func = lower_blocks(&align(func)?)?;
    Ok(fold_func(&mut Tidy, &func))
}

/// Removes loops of one iteration and annotates allocations.
struct Tidy;

impl Fold for Tidy {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { var, range, kind, annotations, body }
                if range.is_point()
                    && annotations.is_empty()
                    && !matches!(kind, ForKind::ThreadBinding(_)) =>
            {
                let body = Subst::vars([(var.clone(), range.min.clone())]).stmt(body);
                self.stmt(&body)
            }
            StmtKind::Allocate { buffer, annotations, body } => {
                let mut annotations = annotations.clone();
                let bytes = if buffer.align == 0 { DEFAULT_ALIGNMENT } else { buffer.align };
                annotations.entry(ADDRESS.into()).or_insert(Attr::List(Vec::new()));
                annotations.entry(ALIGNMENT.into()).or_insert(Attr::Int(bytes.into()));
                let (buffer, body) = (buffer.clone(), self.stmt(body));
                Stmt::spanned(StmtKind::Allocate { buffer, annotations, body }, s.span())
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

/// `(axis, factor, offset)` of an alignment.
type Alignment = (usize, i64, i64);

/// Gives the allocations that blocks want aligned their strides.
fn align(func: &TensorFunc) -> Result<TensorFunc> {
    let mut wishes = Wishes::default();
    wishes.stmt(&func.body);
    if let Some(e) = wishes.error {
        return Err(e);
    }
    let mut buffers = HashMap::default();
    for (buffer, alignments) in &wishes.wanted {
        if !wishes.allocated.contains(buffer) {
            return refuse_rows("it is not allocated here", buffer);
        }
        if !buffer.strides.is_empty() {
            return refuse_rows("it has strides already", buffer);
        }
        if wishes.declared.iter().any(|b| b.data == buffer.data) {
            return refuse_rows("its memory is also declared under another name", buffer);
        }
        let strides = strides(&buffer.shape, alignments)?;
        buffers.insert(buffer.clone(), buffer.derive(|d| d.strides = strides));
    }
    if buffers.is_empty() {
        Ok(func.clone())
    } else {
        Ok(fold_func(&mut Subst::buffers(buffers), func))
    }
}

fn refuse_rows(why: &str, buffer: &Buffer) -> Result<TensorFunc> {
    Err(Error::unsupported(format!("cannot align the rows of buffer `{}`: {why}", buffer.name)))
}

/// Row-major strides, innermost first to be computed, each aligned where that is wanted.
fn strides(shape: &[Expr], alignments: &[Alignment]) -> Result<Vec<Expr>> {
    let mut out = vec![Expr::i32(1); shape.len()];
    let mut stride = Expr::i32(1);
    for axis in (0..shape.len()).rev() {
        for (_, factor, offset) in alignments.iter().filter(|a| a.0 == axis) {
            let past = stride.clone().floormod(*factor);
            let missing = (Expr::int(factor + offset, stride.dtype()) - past).floormod(*factor);
            stride = extent::sum(&stride, &missing)?;
        }
        out[axis] = stride.clone();
        stride = dim_product(&[stride, shape[axis].clone()])?;
    }
    Ok(out)
}

/// The alignments that blocks ask for, and how the buffers came to be.
#[derive(Default)]
struct Wishes {
    wanted: Vec<(Buffer, Vec<Alignment>)>,
    allocated: Vec<Buffer>,
    declared: Vec<Buffer>,
    error: Option<Error>,
}

impl Visit for Wishes {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Allocate { buffer, .. } => self.allocated.push(buffer.clone()),
            StmtKind::Declare { buffer, .. } => self.declared.push(buffer.clone()),
            _ => {}
        }
        walk_stmt(self, s);
    }

    fn block(&mut self, b: &Block) {
        self.allocated.extend(b.allocs.iter().cloned());
        if let Some(list) = b.annotations.get(DIM_ALIGN) {
            match read(b, list) {
                Some(found) => {
                    for (buffer, alignment) in found {
                        match self.wanted.iter_mut().find(|w| w.0 == buffer) {
                            Some(known) => known.1.push(alignment),
                            None => self.wanted.push((buffer, vec![alignment])),
                        }
                    }
                }
                None => {
                    self.error.get_or_insert_with(|| {
                        Error::malformed(format!("block `{}` has no valid `{DIM_ALIGN}`", b.name))
                            .help("a list of [written buffer, axis, factor, offset], factor > 0")
                    });
                }
            }
        }
        walk_block(self, b);
    }
}

/// The alignments of an annotation; `None` if it does not make sense.
fn read(block: &Block, list: &Attr) -> Option<Vec<(Buffer, Alignment)>> {
    let Attr::List(list) = list else { return None };
    let (_, writes) = declared_or_inferred(block);
    let mut out = Vec::new();
    for entry in list {
        let Attr::List(entry) = entry else { return None };
        let [at, axis, factor, offset] = entry.as_slice() else { return None };
        let buffer = &writes.get(usize::try_from(int_of(at)?).ok()?)?.buffer;
        let axis = int_of(axis)?;
        let rank = i64::try_from(buffer.rank()).ok()?;
        let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
        let (factor, offset) = (int_of(factor)?, int_of(offset)?);
        if axis >= buffer.rank()
            || factor < 1
            || i32::try_from(factor).is_err()
            || i32::try_from(offset).is_err()
        {
            return None;
        }
        out.push((buffer.clone(), (axis, factor, offset.rem_euclid(factor))));
    }
    Some(out)
}

fn int_of(a: &Attr) -> Option<i64> {
    match a {
        Attr::Int(v) => Some(*v),
        Attr::Expr(e) => e.as_int(),
        _ => None,
    }
}
