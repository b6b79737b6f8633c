//! Branches and loops.

use tilewright_ir::{Body, Branches, Loop, list};

use super::*;

/// Uses of a value that loops and branches read: more than are counted down.
const MANY: usize = usize::MAX / 2;

impl GraphRun<'_, '_> {
    /// Notes the uses of what a body binds.
    pub(super) fn count_body<'b>(
        &mut self,
        bindings: impl Iterator<Item = &'b Binding>,
        ret: &GraphExpr,
    ) {
        bindings.for_each(|b| self.count_uses(&b.value));
        self.count_uses(ret);
    }

    /// What is read inside of bodies is read any number of times.
    pub(super) fn count_inside(&mut self, e: &GraphExpr) {
        e.for_each(&mut |e| {
            if let GraphExpr::Var(v) = e {
                self.uses.insert(v.clone(), MANY);
            }
        });
    }

    /// Gives a variable its value, and sizes that its type names for the first time theirs. In a loop
    /// both may have those of the iteration before.
    pub(super) fn define(&mut self, var: &GraphVar, value: GraphValue) -> Result<()> {
        for v in self.brought.remove(var).into_iter().flatten() {
            self.dims.remove(&v);
        }
        let mut new = var.ty().bound_sizes();
        new.retain(|v| !self.dims.contains_key(v));
        self.bind_type(var.ty(), &value)?;
        self.brought.insert(var.clone(), new);
        self.values.insert(var.clone(), value);
        Ok(())
    }

    pub(super) fn bind_shape(&mut self, sizes: &[Expr], values: &[i64]) -> Result<()> {
        if sizes.len() != values.len() {
            return Err(Error::input(format!(
                "has {} sizes, but {} are declared",
                values.len(),
                sizes.len()
            )));
        }
        let declared = self.shape(sizes)?;
        if declared.iter().zip(values).any(|(d, n)| i64::try_from(*d) != Ok(*n)) {
            return Err(Error::input(format!("is {values:?}, but {declared:?} is declared")));
        }
        Ok(())
    }

    fn body(&mut self, body: &Body, context: &dyn Fn(Error) -> Error) -> Result<GraphValue> {
        for b in body.bindings() {
            self.binding(b, context)?;
        }
        self.eval(&body.ret)
    }

    pub(super) fn branches(
        &mut self,
        branches: &Branches,
        context: &dyn Fn(Error) -> Error,
    ) -> Result<GraphValue> {
        let cond = self.eval(&branches.cond)?.integer()?;
        let body = if cond != 0 { &branches.then } else { &branches.otherwise };
        self.body(body, context)
    }

    pub(super) fn graph_loop(
        &mut self,
        l: &Loop,
        ty: &GraphType,
        context: &dyn Fn(Error) -> Error,
    ) -> Result<GraphValue> {
        let mut number = |e: &Option<GraphExpr>| {
            e.as_ref().map(|e| self.eval(e).and_then(GraphValue::integer)).transpose()
        };
        let (trip, cond) = (number(&l.trip)?, number(&l.cond)?);
        let mut carried: Vec<GraphValue> =
            l.carried.iter().map(|e| self.eval(e)).collect::<Result<_>>()?;
        let mut scanned: Vec<Vec<Tensor>> = Vec::new();
        let (mut go, mut iteration) = (cond != Some(0), 0i64);
        while go && trip.is_none_or(|trip| iteration < trip) {
            let count = Tensor::from_slice(&[], &[iteration])?;
            let values = std::iter::once(GraphValue::Tensor(count, None)).chain(carried);
            for (p, value) in l.params.iter().zip(values) {
                self.define(p, value)
                    .map_err(|e| context(e.context(format!("argument `{}`", p.name()))))?;
            }
            let GraphValue::Tuple(given) = self.body(&l.body, context)? else {
                return Err(Error::input("the body of a loop gives no tuple"));
            };
            let mut given = given.into_iter();
            go = match given.next() {
                Some(value) => value.integer()? != 0,
                None => false,
            };
            carried = given.by_ref().take(l.carried.len()).collect();
            for (k, value) in given.enumerate() {
                let tensor = value.item()?.tensor()?;
                match scanned.get_mut(k) {
                    Some(list) => list.push(tensor),
                    None => scanned.push(vec![tensor]),
                }
            }
            iteration += 1;
        }
        let GraphType::Tuple(types) = ty else {
            return Err(Error::input("the value of a loop is a tuple"));
        };
        for (k, ty) in types.iter().skip(carried.len()).enumerate() {
            let Some(ty) = ty.as_tensor() else {
                return Err(Error::input("what a loop stacks is no tensor"));
            };
            let parts = scanned.get(k).map_or(&[][..], Vec::as_slice);
            // Without iterations, what is not known counts as zero.
            let shape: Vec<usize> = ty
                .shape
                .iter()
                .skip(1)
                .map(|e| self.shape(std::slice::from_ref(e)).map_or(0, |n| n[0]))
                .collect();
            carried.push(GraphValue::Tensor(list::stack(parts, ty.dtype, &shape)?, None));
        }
        Ok(GraphValue::Tuple(carried))
    }
}
