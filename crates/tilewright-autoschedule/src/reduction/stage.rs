//! Reductions, with what each access does along their axes.

use tilewright_ir::hash::HashSet;

use tilewright_analysis::Stage;
use tilewright_ir::index::Affine;
use tilewright_ir::visit::Subst;
use tilewright_ir::{BinOp, CallTarget, DType, Dim, Expr, ExprKind, Fold, IterKind, Var};
use tilewright_target::Target;

use crate::axes::{Access, FusedAxis, deciding_vars, fuse, loose_vars};
use crate::canonical::follows;
use crate::padding::iters;

/// A reduction, and the stage that maps its result where there is one.
pub(crate) struct Reduction<'a> {
    pub(super) target: &'a Target,
    pub(super) stage: &'a Stage,
    pub(super) epilogue: Option<&'a Stage>,
    pub(super) op: BinOp,
    pub(super) axes: Vec<FusedAxis>,
    pub(super) loads: Vec<Access>,
    /// How the result that is stored at last moves.
    pub(super) store: Option<Affine>,
    pub(super) dtype: DType,
    /// Bytes of the narrowest type in which the value has a function that takes many operations.
    pub(super) function: Option<usize>,
    /// Variables whose values are used directly, also in bounds.
    pub(super) loose: HashSet<Var>,
    /// Those of them that decide between values: lanes of a vector would not do the same.
    pub(super) deciding: HashSet<Var>,
    /// Whether steps that change nothing are left out.
    pub(super) is_bounded: bool,
}

impl<'a> Reduction<'a> {
    /// `None` if the stage is not of the form `acc = op(acc, value)`, or what it starts from depends on the step.
    pub(super) fn recognise(
        stage: &'a Stage,
        epilogue: Option<&'a Stage>,
        target: &'a Target,
    ) -> Option<Self> {
        let value = stage.reduction()?.value;
        let none = HashSet::default();
        Reduction::over((stage, epilogue), &iters(stage), &value, (&none, &none), target)
    }

    /// The same over iterations with other extents, with another value, and with variables whose values are
    /// `used` directly, or that stay `alone`.
    pub(super) fn over(
        (stage, epilogue): (&'a Stage, Option<&'a Stage>),
        iters: &[(Var, Dim, IterKind)],
        value: &Expr,
        (used, alone): (&HashSet<Var>, &HashSet<Var>),
        target: &'a Target,
    ) -> Option<Self> {
        let op = stage.reduction()?.op;
        let mut reduced = stage.dims().filter(|d| d.2 == IterKind::Reduce).map(|d| d.0);
        let init = stage.init.as_ref().filter(|e| !reduced.any(|v| e.mentions(v)))?;
        let (buffer, indices, finished) = match epilogue {
            None => (&stage.buffer, stage.indices.clone(), None),
            Some(next) => {
                let mut rename = Subst::vars(follows(stage, next)?);
                let indices = next.indices.iter().map(|i| rename.expr(i)).collect();
                (&next.buffer, indices, Some(rename.expr(&next.value)))
            }
        };
        let loads = Access::loads(value);
        let store = Access::new(buffer, &indices);
        let mut accesses = loads.clone();
        accesses.extend(Access::loads(init));
        accesses.push(store.clone());
        let [loose, deciding] = [loose_vars(value), deciding_vars(value)].map(|mut vars| {
            vars.extend(used.iter().cloned());
            vars
        });
        let mut pinned = loose.clone();
        pinned.extend(loose_vars(init).into_iter().chain(alone.iter().cloned()));
        if let Some(finished) = &finished {
            let others = Access::loads(finished).into_iter().filter(|a| a.buffer != stage.buffer);
            accesses.extend(others);
            pinned.extend(loose_vars(finished));
        }
        Some(Reduction {
            target,
            stage,
            epilogue,
            op,
            axes: fuse(iters, &accesses, &pinned),
            loads,
            store: store.offset,
            dtype: stage.buffer.dtype(),
            function: narrowest_function(value),
            loose,
            deciding,
            is_bounded: false,
        })
    }

    pub(super) fn spatial(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&k| self.axes[k].kind == IterKind::Spatial)
    }

    pub(super) fn reduce(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&k| self.axes[k].kind == IterKind::Reduce)
    }

    /// Product of all extents, to decide whether threads share it.
    pub(super) fn work(&self) -> i64 {
        self.count(0..self.axes.len())
    }

    /// Product of the extents of some axes, for decisions.
    pub(super) fn count(&self, axes: impl Iterator<Item = usize>) -> i64 {
        axes.map(|k| self.len(k)).fold(1, i64::saturating_mul)
    }

    /// Whether the extent of an axis is open.
    pub(super) fn is_open(&self, axis: usize) -> bool {
        self.axes[axis].extent.known().is_none()
    }

    /// The steps of a result; `None` where their number is open.
    pub(super) fn known_steps(&self) -> Option<i64> {
        let known = self.reduce().all(|k| !self.is_open(k));
        known.then(|| self.count(self.reduce()))
    }

    /// The axis that a variable is part of.
    pub(super) fn axis_of(&self, v: &Var) -> Option<usize> {
        self.axes.iter().position(|a| a.parts.iter().any(|p| p.0 == *v))
    }

    /// The extent of an axis, for decisions.
    pub(super) fn len(&self, axis: usize) -> i64 {
        self.axes[axis].extent.estimate()
    }

    /// Lanes of a vector: those of the widest type, or of that in which functions are computed, since these take
    /// longer than a sum in two vectors of a wider type.
    pub(super) fn lanes(&self) -> i64 {
        let widest = self.loads.iter().map(|l| l.buffer.dtype().bytes()).max().unwrap_or(1);
        let widest = widest.max(self.dtype.bytes());
        self.target.vectors.lanes(self.function.map_or(widest, |bytes| bytes.min(widest)))
    }

    /// Whether the machine leaves out lanes of all that is read and written.
    pub(super) fn masks(&self) -> bool {
        let result = self.epilogue.map_or(&self.stage.buffer, |next| &next.buffer);
        let types = self.loads.iter().map(|l| l.buffer.dtype()).chain([self.dtype, result.dtype()]);
        let mut bytes = types.map(DType::bytes);
        bytes.all(|n| self.target.vectors.leaves_out(n))
    }

    /// By how much each load moves along an axis; `None` where it does not move evenly.
    pub(super) fn steps(&self, axis: usize) -> impl Iterator<Item = Option<i64>> {
        self.loads.iter().map(move |l| self.axes[axis].step(l.offset.as_ref()?))
    }
}

/// Bytes of the narrowest type in which a value has a function that takes more operations than a sum in two
/// vectors instead of one.
fn narrowest_function(value: &Expr) -> Option<usize> {
    const FEW: usize = 4;
    let mut narrowest: Option<usize> = None;
    value.for_each(|e| {
        if let ExprKind::Call(CallTarget::Intrin(f), _) = e.kind()
            && f.cost() > FEW
            && e.dtype().is_float()
        {
            let bytes = e.dtype().bytes();
            narrowest = Some(narrowest.map_or(bytes, |n| n.min(bytes)));
        }
        true
    });
    narrowest
}
