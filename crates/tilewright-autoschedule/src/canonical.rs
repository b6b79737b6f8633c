//! A function in canonical form, statement by statement: which ones are stages that have no loops of
//! their own yet, and which of these only maps the result of another one.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_analysis::Stage;
use tilewright_analysis::stage::stage;
use tilewright_ir::visit::{Subst, accessed};
use tilewright_ir::{
    Attr, Block, Buffer, DType, Dim, Error, Expr, Fold, IterKind, Stmt, StmtKind, TensorFunc, Var,
    dim,
};
use tilewright_layout::marks::PRE;

/// What a primitive refused of a stage, with its notes, in a line.
pub(crate) fn refusal(stage: &str, e: &Error) -> String {
    let d = e.diagnostic();
    let parts = [d.message.as_str()].into_iter().chain(d.notes.iter().map(String::as_str));
    format!("`{stage}`: {}", parts.collect::<Vec<_>>().join("; "))
}

/// A buffer `NAME_suffix` of another type, and the stage that makes each of its elements of that of a buffer, and of
/// where it stands; `None` where an extent is no size.
pub(crate) fn mapped(
    from: &Buffer,
    suffix: &str,
    dtype: DType,
    value: impl FnOnce(Expr, &[Expr]) -> Expr,
) -> Option<(Buffer, Stage)> {
    let name: Arc<str> = format!("{}_{suffix}", from.name).into();
    let like = Buffer::with_extents(name.clone(), &[], dtype);
    let to = like.derive_storage(|b| b.shape = from.shape.clone());
    let iters: Vec<(Var, Dim, IterKind)> = (0..)
        .zip(dim::of_shape(&from.shape)?)
        .map(|(d, n)| (Var::new(format!("v{d}"), DType::I32), n, IterKind::Spatial))
        .collect();
    let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
    let value = value(from.load(at.clone()), &at).cast(dtype);
    let stage = Stage::build(name, &iters, &to, at, value, None);
    Some((to, stage))
}

/// The statements of a function, and which of them are stages.
pub(crate) struct Stages {
    allocs: Vec<Buffer>,
    list: Vec<Stmt>,
    stages: Vec<Option<Stage>>,
}

impl Stages {
    /// `None` for a function that stays as it is: one with a loop of more iterations than `int32` counts,
    /// and one with a buffer of several physical axes, since the loops are for flat memory. Whether the
    /// target has other memory is for its backend to say.
    pub(crate) fn from_func(func: &TensorFunc) -> Option<Self> {
        let (allocs, _) = func.root_parts();
        let flat = func.buffers().chain(allocs).all(|b| b.axis_separators.is_empty());
        Self::of_any_memory(func).filter(|_| flat)
    }

    /// The same, whatever physical axes buffers have.
    pub(crate) fn of_any_memory(func: &TensorFunc) -> Option<Self> {
        let (allocs, body) = func.root_parts();
        if func.root().is_some_and(|r| !r.is_plain_root()) {
            return None;
        }
        let list = match body.kind() {
            StmtKind::Seq(list) => list.clone(),
            _ => vec![body.clone()],
        };
        let stages: Vec<Option<Stage>> = list.iter().map(stage).collect();
        let iters = stages.iter().flatten().flat_map(Stage::dims);
        let counted = iters.map(|(_, extent, _)| extent).all(Dim::fits_int32);
        counted.then(|| Stages { allocs: allocs.to_vec(), list, stages })
    }

    /// The stages of a kind, by their numbers.
    pub(crate) fn each(&self, reduction: bool) -> impl Iterator<Item = (usize, &Stage)> {
        let stages = self.stages.iter().enumerate().filter_map(|(k, s)| Some((k, s.as_ref()?)));
        stages.filter(move |(_, s)| s.is_reduction() == reduction)
    }

    /// The stage with a number, if that statement is one.
    pub(crate) fn get(&self, k: usize) -> Option<&Stage> {
        self.stages.get(k)?.as_ref()
    }

    /// Whether a buffer belongs to the function.
    fn is_local(&self, buffer: &Buffer) -> bool {
        self.allocs.contains(buffer)
    }

    /// The stage that alone reads the result of a reduction, point by point, and comes right after it.
    pub(crate) fn epilogue(&self, k: usize) -> Option<&Stage> {
        let (stage, next) = (self.get(k)?, self.get(k + 1)?);
        let mut others = self.list.iter().enumerate().filter(|(i, _)| *i != k && *i != k + 1);
        let alone = self.is_local(&stage.buffer)
            && !others.any(|(_, s)| accessed(s).0.contains(&stage.buffer));
        (alone && follows(stage, next).is_some()).then_some(next)
    }

    /// The pairs of a stage without reduction and the reduction that alone reads it, by their numbers.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let touched: Vec<_> = self.list.iter().map(accessed).collect();
        let mut pairs = Vec::new();
        for (k, made) in self.each(false) {
            let mut users =
                (0..self.list.len()).filter(|i| *i != k && uses_buffer(*i, &touched, made));
            let (Some(reader), None) = (users.next(), users.next()) else { continue };
            // What is made must stay until it is read.
            let stays = reader > k
                && !(k..=reader).any(|i| touched[i].1.iter().any(|b| touched[k].0.contains(b)));
            let reduces = self.get(reader).is_some_and(Stage::is_reduction);
            if self.is_local(&made.buffer) && stays && reduces {
                pairs.push((k, reader));
            }
        }
        pairs
    }
}

fn uses_buffer(i: usize, touched: &[(Vec<Buffer>, Vec<Buffer>)], made: &Stage) -> bool {
    touched[i].0.contains(&made.buffer) || touched[i].1.contains(&made.buffer)
}

/// Where a stage reads a buffer.
pub(crate) fn reads(stage: &Stage, b: &Buffer) -> Vec<Vec<Expr>> {
    stage.loads().into_iter().filter(|l| l.0 == *b).map(|l| l.1).collect()
}

/// The stage that alone reads what another one makes in memory of the function, and its number.
pub(crate) fn sole_reader<'a>(
    allocs: &[Buffer],
    stages: &'a [Stage],
    k: usize,
) -> Option<(usize, &'a Stage)> {
    let buffer = &stages[k].buffer;
    let mut readers = stages
        .iter()
        .enumerate()
        .filter(|(i, s)| *i != k && s.loads().iter().any(|(b, _)| b == buffer));
    let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
    allocs.contains(buffer).then_some(reader)
}

/// Whether `next` only maps the result of the reduction `stage` point by point: for each of its
/// iteration variables, the reduction's variable that it stands for.
pub(crate) fn follows(stage: &Stage, next: &Stage) -> Option<HashMap<Var, Expr>> {
    if next.is_reduction() || stage.loads().iter().any(|(b, _)| *b == next.buffer) {
        return None;
    }
    // Where it is stored must not depend on the result.
    if next.indices.iter().any(|i| i.loaded_buffers().contains(&stage.buffer)) {
        return None;
    }
    let axes = stage.covers_buffer()?;
    let mut map: HashMap<Var, Expr> = HashMap::default();
    let mut seen = false;
    for (_, indices) in next.loads().into_iter().filter(|(b, _)| *b == stage.buffer) {
        for (index, axis) in indices.iter().zip(&axes) {
            match (index.as_var(), axis) {
                (Some(v), Some(axis)) => match map.get(v) {
                    Some(old) if old.as_var() != Some(axis) => return None,
                    _ => {
                        map.insert(v.clone(), axis.expr());
                    }
                },
                (None, None) if index.as_int() == Some(0) => {}
                (Some(_), None) => {}
                (None, Some(_)) if index.as_int() == Some(0) => {}
                _ => return None,
            }
        }
        seen = true;
    }
    // Each variable of the reduction stands for exactly one of `next`, of the same extent.
    let mut taken: Vec<Var> = Vec::new();
    for (v, extent, _) in next.dims() {
        match map.get(v).and_then(Expr::as_var) {
            Some(axis) => {
                let (_, of, _) = stage.dims().find(|(s, ..)| *s == axis)?;
                if of != extent || taken.contains(axis) {
                    return None;
                }
                taken.push(axis.clone());
            }
            None if extent == 1 => {
                map.insert(v.clone(), Expr::int(0, v.dtype()));
            }
            None => return None,
        }
    }
    let spatial = stage.dims().filter(|i| i.2 == IterKind::Spatial);
    let all = spatial.into_iter().all(|(v, extent, _)| extent == 1 || taken.contains(v));
    (seen && all).then_some(map)
}

/// The statement of a stage with variables of its own, marked as what is made of an argument alone ([`PRE`]).
pub(crate) fn pre(stage: &Stage) -> Stmt {
    struct Mark;
    impl Fold for Mark {
        fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
            let mut block = (**b).clone();
            block.annotations.insert(PRE.into(), Attr::Str("operand".into()));
            Arc::new(block)
        }
    }
    Mark.stmt(&Subst::refresh().stmt(&stage.stmt))
}
