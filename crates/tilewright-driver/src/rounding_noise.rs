//! What rounding does to a module that rounds numbers to integers.
//!
//! A number near the middle between two integers is rounded the other way where any float before it is rounded
//! otherwise, and then results move by steps, however small the change was. So the floats of a module, its constants and
//! the numbers in its functions, are changed by a little more than rounding does. What that does to results is noise; a
//! model whose results are farther away than that computes something else.
//!
//! A second module has each change the other way round: a value in the very middle between two integers moves in one
//! of both.

use tilewright_graph::rewrite::{GraphFold, fold_blocks, fold_children};
use tilewright_ir::visit::{fold_expr_children, fold_func};
use tilewright_ir::{
    DType, Expr, ExprKind, Fold, Function, GraphExpr, GraphFunc, Module, Result, Tensor,
};
use tilewright_runtime::Executable;

use crate::options::Options;
use crate::random::Random;
use crate::session::compile;

/// By which part of itself a float is changed at most: twice as much as constants may differ that count as one.
const CHANGE: f64 = 3e-6;

/// A module whose floats are changed, and the one whose floats are changed the other way round.
pub(crate) fn changed(module: &Module) -> Result<[Executable; 2]> {
    let change = |direction| -> Result<Executable> {
        let mut all = module.clone();
        for (name, func) in &module.functions {
            match func {
                Function::Tensor(f) => {
                    all.insert(name.clone(), fold_func(&mut Literals(direction), f))
                }
                Function::Graph(f) => {
                    let mut fold = Constants { random: Random::new(1), direction };
                    let blocks = fold_blocks(&mut fold, &f.blocks)?;
                    let ret = fold.expr(&f.ret)?;
                    all.insert(name.clone(), GraphFunc { blocks, ret, ..(**f).clone() });
                }
            }
        }
        compile(&all, &Options::default())
    };
    Ok([change(1.0)?, change(-1.0)?])
}

/// A number that is changed by at least half as much as the most, up or down. Integers stay: they are ends of types, and
/// zeros in the middle of them, which no rounding moves.
fn rounded_otherwise(v: f32, random: &mut Random, direction: f64) -> f32 {
    let unit = random.unit();
    if v.fract() == 0.0 {
        return v;
    }
    let part = (unit.abs() + 1.0) / 2.0 * CHANGE.copysign(unit) * direction;
    let other = (f64::from(v) * (1.0 + part)) as f32;
    if other.is_finite() { other } else { v }
}

/// Changes numbers in functions: the same ones in the same way, so that functions stay alike that are.
struct Literals(f64);

impl Fold for Literals {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Float(_) if e.dtype() == DType::F32 => {
                let Some(v) = e.as_float() else { return e.clone() };
                let changed = rounded_otherwise(v as f32, &mut Random::new(v.to_bits()), self.0);
                Expr::float(f64::from(changed), DType::F32)
            }
            _ => fold_expr_children(self, e),
        }
    }
}

struct Constants {
    random: Random,
    direction: f64,
}

impl GraphFold for Constants {
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let GraphExpr::Const(t) = e else { return fold_children(self, e) };
        let Some(values) = t.as_slice::<f32>() else { return Ok(e.clone()) };
        let values: Vec<f32> = values
            .iter()
            .map(|v| rounded_otherwise(*v, &mut self.random, self.direction))
            .collect();
        Ok(GraphExpr::Const(Tensor::from_slice(t.shape(), &values)?))
    }
}
