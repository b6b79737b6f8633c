//! The rules of branches and loops.

use super::*;
use crate::graph::{Body, Branches, Loop};

/// Most bodies around one another.
const MAX_DEPTH: usize = 64;

impl Checker<'_> {
    /// Checks a body; what it defines is not known after it.
    fn body(&mut self, what: &str, params: &[GraphVar], body: &Body) -> Result<Option<GraphType>> {
        let (known, dims) = (self.known.clone(), self.dims.clone());
        self.depth += 1;
        require(self.depth <= MAX_DEPTH, || {
            format!("branches and loops are nested deeper than {MAX_DEPTH}")
        })?;
        let result = (|| {
            for p in params {
                self.define(p)?;
                self.type_rules(p.ty(), &format!("parameter `{}`", p.name()), true)?;
            }
            self.binding_blocks(&body.blocks)?;
            self.ty(&body.ret).map_err(|e| e.context("the result"))
        })();
        self.depth -= 1;
        (self.known, self.dims) = (known, dims);
        result.map_err(|e: Error| e.context(what))
    }

    pub(super) fn branches(&mut self, branches: &Branches) -> Result<Option<GraphType>> {
        let cond = self.ty(&branches.cond)?;
        scalar(cond.as_ref(), DType::BOOL).map_err(|e| e.context("the condition"))?;
        let then = self.body("the branch", &[], &branches.then)?;
        let otherwise = self.body("the other branch", &[], &branches.otherwise)?;
        let (Some(a), Some(b)) = (then, otherwise) else { return Ok(None) };
        common(&a, &b).map_err(|e| e.context("the branches"))
    }

    pub(super) fn graph_loop(&mut self, l: &Loop) -> Result<Option<GraphType>> {
        for (what, e, dtype) in [
            ("the number of iterations", &l.trip, DType::I64),
            ("the condition", &l.cond, DType::BOOL),
        ] {
            let Some(e) = e else { continue };
            let ty = self.ty(e)?;
            scalar(ty.as_ref(), dtype).map_err(|e| e.context(what))?;
        }
        let carried: Vec<Option<GraphType>> =
            l.carried.iter().map(|e| self.ty(e)).collect::<Result<_>>()?;
        let (n, m) = (l.params.len(), carried.len() + 1);
        require(n == m, || format!("the loop has {n} parameters, and {m} are needed"))?;
        scalar(Some(l.params[0].ty()), DType::I64)
            .map_err(|e| e.context(format!("parameter `{}`", l.params[0].name())))?;
        let given = self.body("the loop", &l.params, &l.body)?;
        let Some(GraphType::Tuple(given)) = given else {
            return match given {
                None => Ok(None),
                Some(_) => malformed("the loop gives no tuple"),
            };
        };
        require(given.len() >= m, || {
            format!("the loop gives {} values, and at least {m} are needed", given.len())
        })?;
        scalar(given.first(), DType::BOOL).map_err(|e| e.context("what the loop gives first"))?;
        let mut types = Vec::with_capacity(given.len() - 1);
        for ((param, first), next) in l.params[1..].iter().zip(&carried).zip(&given[1..]) {
            let params: HashSet<Var> = match param.ty() {
                GraphType::Tensor(t) => t.shape.iter().filter_map(Expr::as_var).cloned().collect(),
                _ => HashSet::default(),
            };
            // Sizes that the parameter brings may differ from one iteration to the next.
            let open = loosened(param.ty(), &|v| params.contains(v) && !self.dims.contains(v));
            for value in first.iter().chain([next]) {
                fits(&open, value)
                    .map_err(|e| e.context(format!("the carried value `{}`", param.name())))?;
            }
            types.push(open);
        }
        for (k, ty) in given[m..].iter().enumerate() {
            match ty {
                GraphType::Tensor(t) => {
                    // How many iterations there are is known after them.
                    let count = Var::new("iterations", DType::I64).expr();
                    let shape = [count].into_iter().chain(t.shape.clone()).collect();
                    types.push(GraphType::Tensor(TensorType { shape, dtype: t.dtype }));
                }
                _ => return malformed(format!("the scanned value {k} is no tensor")),
            }
        }
        let dims = self.dims.clone();
        types.iter_mut().for_each(|ty| *ty = loosened(ty, &|v| !dims.contains(v)));
        Ok(Some(GraphType::Tuple(types)))
    }
}

/// Refuses what is not one number of a type; what is not known may be.
fn scalar(ty: Option<&GraphType>, dtype: DType) -> Result<()> {
    let ok = match ty {
        None | Some(GraphType::Opaque(_)) => true,
        Some(GraphType::Tensor(t)) => t.dtype == dtype && t.shape.is_empty(),
        Some(_) => false,
    };
    require(ok, || format!("is no {dtype} without axes"))
}

/// A type with a fresh variable in the place of each extent with variables that `open` says.
fn loosened(ty: &GraphType, open: &dyn Fn(&Var) -> bool) -> GraphType {
    match ty {
        GraphType::Tensor(t) => {
            let shape = t
                .shape
                .iter()
                .map(|e| {
                    if free_vars(e).iter().any(open) {
                        Var::new("size", DType::I64).expr()
                    } else {
                        e.clone()
                    }
                })
                .collect();
            GraphType::Tensor(TensorType { shape, dtype: t.dtype })
        }
        GraphType::Tuple(items) => {
            GraphType::Tuple(items.iter().map(|t| loosened(t, open)).collect())
        }
        GraphType::Shape(_) | GraphType::Opaque(_) => ty.clone(),
    }
}

/// What the values of both branches are: tensors of one type and rank, with extents that may differ.
fn common(a: &GraphType, b: &GraphType) -> Result<Option<GraphType>> {
    Ok(match (a, b) {
        (GraphType::Opaque(_), _) | (_, GraphType::Opaque(_)) => None,
        (GraphType::Tensor(x), GraphType::Tensor(y)) => {
            let ok = x.dtype == y.dtype && x.shape.len() == y.shape.len();
            require(ok, || format!("give {} and {}", text(x), text(y)))?;
            let shape = x.shape.iter().zip(&y.shape).map(common_extent).collect();
            Some(GraphType::Tensor(TensorType { shape, dtype: x.dtype }))
        }
        (GraphType::Tuple(x), GraphType::Tuple(y)) if x.len() == y.len() => {
            let items = x
                .iter()
                .zip(y)
                .map(|(x, y)| Ok(common(x, y)?.unwrap_or(GraphType::Opaque("R.Object".into()))));
            Some(GraphType::Tuple(items.collect::<Result<_>>()?))
        }
        _ => return malformed("give values of different kinds"),
    })
}

fn common_extent((x, y): (&Expr, &Expr)) -> Expr {
    if x.as_int().is_some() && x.as_int() == y.as_int() {
        x.clone()
    } else {
        Var::new("size", DType::I64).expr()
    }
}
