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

use std::collections::HashMap;

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
    let mut buffers = HashMap::new();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tilewright_ir::{Attrs, DType, Param, Range, Var};

    /// `for i in 3: for j in 1: T[i, j] = 0` in a block that asks for an alignment of `T`.
    fn sample(annotation: Attr, buffer: &Buffer, alloc: bool) -> TensorFunc {
        let (i, j) = (Var::index("i"), Var::index("j"));
        let store = Stmt::store(buffer, vec![i.expr(), j.expr()], Expr::float(0.0, DType::F32));
        let mut block = Block::new("fill", store);
        block.annotations = Attrs::from([(Arc::from(DIM_ALIGN), annotation)]);
        let block = Stmt::block(Vec::new(), Expr::bool(true), block);
        let loops = Stmt::serial(&i, Expr::i32(3), Stmt::serial(&j, Expr::i32(1), block));
        if alloc {
            TensorFunc::new(Vec::new(), Stmt::allocate(buffer, loops))
        } else {
            TensorFunc::new(vec![Param::tensor(buffer)], loops)
        }
    }

    fn aligned(entry: &[i64]) -> Attr {
        Attr::List(vec![Attr::List(entry.iter().map(|v| Attr::Int(*v)).collect())])
    }

    #[test]
    fn rows_are_aligned_and_unit_loops_go() {
        let t = Buffer::with_extents("T", &[3, 1], DType::F32);
        let f = lower_opaque_blocks(&sample(aligned(&[0, 0, 32, 5]), &t, true)).expect("lowers");
        let StmtKind::Allocate { buffer, annotations, body } = f.body.kind() else {
            panic!("{f:?}")
        };
        let strides: Vec<_> = buffer.strides.iter().map(Expr::as_int).collect();
        assert_eq!(strides, [Some(5), Some(1)]);
        assert!(matches!(annotations.get(ALIGNMENT), Some(Attr::Int(64))));
        let StmtKind::For { body, .. } = body.kind() else { panic!("{body:?}") };
        let StmtKind::Store { buffer: stored, indices, .. } = body.kind() else {
            panic!("{body:?}")
        };
        assert_eq!((stored, indices[1].as_int()), (buffer, Some(0)));
    }

    #[test]
    fn strides_are_the_next_that_have_the_remainder() {
        let shape = [Expr::i32(4), Expr::i32(3), Expr::i32(10)];
        let ints = |a: &[Alignment]| -> Vec<i64> {
            strides(&shape, a).expect("sizes that fit").iter().filter_map(Expr::as_int).collect()
        };
        assert_eq!(ints(&[]), [30, 10, 1]);
        assert_eq!(ints(&[(1, 16, 0)]), [48, 16, 1]);
        assert_eq!(ints(&[(1, 10, 0)]), [30, 10, 1]);
        assert_eq!(ints(&[(0, 32, 1), (1, 8, 3)]), [33, 11, 1]);
    }

    #[test]
    fn alignments_that_cannot_be_are_errors() {
        let t = Buffer::with_extents("T", &[3, 1], DType::F32);
        for bad in [aligned(&[1, 0, 32, 0]), aligned(&[0, 2, 32, 0]), aligned(&[0, 0, 0, 0])] {
            let text = error_text(&sample(bad, &t, true));
            assert!(text.contains("block `fill` has no valid `buffer_dim_align`"), "{text}");
        }
        assert!(error_text(&sample(Attr::Int(1), &t, true)).contains("no valid"));
        let text = error_text(&sample(aligned(&[0, 0, 32, 0]), &t, false));
        assert!(text.contains("buffer `T`: it is not allocated here"), "{text}");
        let strided = t.derive(|d| d.strides = vec![Expr::i32(2), Expr::i32(1)]);
        let text = error_text(&sample(aligned(&[0, 0, 32, 0]), &strided, true));
        assert!(text.contains("it has strides already"), "{text}");
        let viewed = sample(aligned(&[0, 0, 32, 0]), &t, true);
        let StmtKind::Allocate { body, .. } = viewed.body.kind() else { panic!("{viewed:?}") };
        let view = t.derive(|d| d.shape = vec![Expr::i32(3)]);
        let body = Stmt::new(StmtKind::Declare { buffer: view, body: body.clone() });
        let viewed = TensorFunc { body: Stmt::allocate(&t, body), ..viewed };
        assert!(error_text(&viewed).contains("also declared under another name"));
    }

    fn error_text(f: &TensorFunc) -> String {
        lower_opaque_blocks(f).expect_err("refused").render()
    }

    #[test]
    fn loops_that_are_marked_stay() {
        let i = Var::index("i");
        let b = Buffer::with_extents("B", &[1], DType::F32);
        let store = Stmt::store(&b, vec![i.expr()], Expr::float(0.0, DType::F32));
        let kind = ForKind::ThreadBinding("threadIdx.x".into());
        let range = Range::upto(Expr::i32(1));
        let threads = Stmt::for_loop(&i, range.clone(), kind, store.clone());
        let marked = Stmt::new(StmtKind::For {
            var: i,
            range,
            kind: ForKind::Serial,
            annotations: Attrs::from([(Arc::from("pragma_x"), Attr::Int(1))]),
            body: store,
        });
        for body in [threads, marked] {
            let f = TensorFunc::new(vec![Param::tensor(&b)], body);
            let f = lower_opaque_blocks(&f).expect("lowers");
            assert!(matches!(f.body.kind(), StmtKind::For { .. }));
        }
    }
}
