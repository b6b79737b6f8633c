//! Values that are transposes of known ones.
//!
//! An optimiser has values lie in another order for several calls, and transposes them back where others read them.
//! Where such a transpose is a value of the first graph, what it transposes is that value in the other order: calls after it
//! begin there, and not where the order was changed.

use std::sync::Arc;

use tilewright_analysis::stage::open_stages;
use tilewright_graph::stages::{buffer, cells, load, one_stage};
use tilewright_ir::{Expr, TensorFunc, dim};

use crate::values::{Graph, Value};

impl Graph<'_> {
    /// The calls that transpose a value, with what transposes back.
    pub(crate) fn transposes(&self, of: usize) -> Vec<(usize, TensorFunc)> {
        let all = self.nodes.iter().enumerate().skip(of + 1);
        let calls = all.filter_map(|(n, node)| match &node.value {
            Value::Call { func, args, scalars, outs: 1, .. }
                if args[..] == [of]
                    && scalars.is_empty()
                    && node.bodies == self.nodes[of].bodies =>
            {
                Some((n, back(self.callee(func)?)?))
            }
            _ => None,
        });
        calls.collect()
    }

    /// Has a value be what a function makes of another one.
    pub(crate) fn is_made(&mut self, at: usize, of: usize, func: TensorFunc) {
        let name: Arc<str> = format!("transposed {of}").into();
        self.add_function(name.clone(), func);
        self.nodes[at].value = Value::Call {
            func: name,
            args: vec![of],
            scalars: vec![],
            passes_sizes: true,
            item: 0,
            outs: 1,
        };
    }
}

/// What takes a transpose back; `None` where a function is none.
fn back(func: &TensorFunc) -> Option<TensorFunc> {
    let stages = open_stages(func)?;
    let ([stage], params) = (&stages[..], func.buffers().collect::<Vec<_>>()) else {
        return None;
    };
    let [from, to] = params[..] else { return None };
    let (read, places) = load(&stage.value).filter(|_| stage.init.is_none())?;
    let is_whole = read == from && stage.buffer == *to && stage.covers_buffer().is_some();
    if !is_whole || from.rank() != to.rank() {
        return None;
    }
    // Where each axis of what is stored is read.
    let axes: Option<Vec<usize>> = stage
        .indices
        .iter()
        .map(|index| {
            let var = index.as_var()?;
            places.iter().position(|p| p.as_var() == Some(var))
        })
        .collect();
    let axes = axes?;
    if (0..from.rank()).any(|k| !axes.contains(&k)) {
        return None;
    }
    let [wide, narrow] = [dim::of_shape(&to.shape)?, dim::of_shape(&from.shape)?];
    let same = axes.iter().zip(&wide).all(|(k, extent)| narrow[*k] == *extent);
    let [given, made] =
        [buffer("x", &wide, from.dtype()), buffer("transposed", &narrow, from.dtype())];
    let iters = cells("v", &narrow);
    let index: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
    let place: Vec<Expr> = axes.iter().map(|k| index[*k].clone()).collect();
    let value = given.load(place);
    same.then(|| one_stage("transposed", &iters, [&given, &made], index, value))
}
