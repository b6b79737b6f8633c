//! The stages of a function that are left where what is computed cell by cell is put where it is read.

use tilewright_ir::hash::HashMap;

use tilewright_ir::index::simplify_indices;
use tilewright_ir::visit::{Subst, fold_expr_children};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Fold, IterKind, TensorFunc, Var};

use super::steps::lowest;
use crate::stage::{Stage, open_stages};

/// Most nodes of an expression that is put where it is read.
const SIZE: u32 = 400;

/// The stages of a function in canonical form, without those that are put where they are read. What is reduced
/// over one element is that element.
pub fn inlined(func: &TensorFunc) -> Option<Vec<Stage>> {
    let params: Vec<&Buffer> = func.buffers().collect();
    let (result, inputs) = params.split_last()?;
    let (mut inline, mut left) = (Inline::default(), Vec::new());
    for stage in open_stages(func)? {
        // Each buffer has one value.
        if inline.0.contains_key(&stage.buffer) || inputs.contains(&&stage.buffer) {
            return None;
        }
        let stage = of_one_element(&stage).unwrap_or(stage);
        let value = inline.expr(&stage.value);
        let vars: Option<Vec<Var>> = stage.indices.iter().map(|e| e.as_var().cloned()).collect();
        if let (None, Some(vars)) = (&stage.init, vars)
            && stage.buffer != **result
            && stage.covers_buffer().is_some()
            && value.size() <= SIZE
        {
            inline.0.insert(stage.buffer.clone(), (vars, value));
            continue;
        }
        left.push(stage.with_value(value));
    }
    Some(left)
}

/// A sum, or the largest or smallest one, over axes of one element as that element, where it begins with what changes none.
fn of_one_element(stage: &Stage) -> Option<Stage> {
    let sum = stage.reduction()?;
    let begins = super::starts(stage.init.as_ref()?)?;
    let is_float = stage.buffer.dtype().is_float();
    let is_plain = match sum.op {
        BinOp::Add => begins == 0.0,
        BinOp::Max => is_float && lowest(begins) == f64::NEG_INFINITY,
        BinOp::Min => is_float && lowest(-begins) == f64::NEG_INFINITY,
        _ => false,
    };
    if !is_plain || stage.reduce().any(|(_, extent)| extent != 1) {
        return None;
    }
    let first = stage.reduce().map(|(var, _)| (var.clone(), Expr::int(0, var.dtype())));
    let value = simplify_indices(&Subst::vars(first).expr(&sum.value), &stage.ranges());
    let axes = stage.dims().filter(|(.., kind)| *kind == IterKind::Spatial);
    let axes: Vec<_> = axes.map(|(var, extent, kind)| (var.clone(), extent, kind)).collect();
    let at = stage.indices.clone();
    Some(Stage::build(stage.name().clone(), &axes, &stage.buffer, at, value, None))
}

/// What is stored into buffers that are read elsewhere, by the variables of their indices.
#[derive(Default)]
struct Inline(HashMap<Buffer, (Vec<Var>, Expr)>);

impl Fold for Inline {
    fn expr(&mut self, e: &Expr) -> Expr {
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Load(buffer, at) => match self.0.get(buffer) {
                Some((vars, value)) => {
                    Subst::vars(vars.iter().cloned().zip(at.iter().cloned())).expr(value)
                }
                None => e,
            },
            _ => e,
        }
    }
}
