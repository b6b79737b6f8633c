//! What plans ask of joins while layouts are open: which parts can lie in the whole, and what is copied
//! in some layout. The answers are those of the pass, call by call.

use tilewright_ir::hash::HashMap;

use tilewright_ir::{Binding, Buffer, Dim, GraphFunc, Module, Remarks, TensorFunc, dim};

use super::join::Join;
use super::placement::{Movers, Placing, Region, is_most};
use super::strides::row_major;
use super::users::Users;
use tilewright_graph::fuse::Kernels;
use tilewright_graph::legalize::copy_func;

/// The joins of a graph whose layouts are still open, and which of their parts may lie in the whole.
pub(crate) struct OpenJoins(HashMap<u64, Vec<bool>>);

impl OpenJoins {
    /// The joins of a graph function in normal form that become kernels of their own.
    pub(crate) fn collect(module: &Module, func: &GraphFunc, kernels: &Kernels) -> OpenJoins {
        let movers = Movers::joins(module);
        if movers.is_empty() {
            return OpenJoins(HashMap::default());
        }
        let (graph, bindings) = (Users::collect(module, func), func.bindings().collect());
        let placing = Placing { graph: &graph, bindings, movers: &movers, all: true };
        let joined = placing.place(&mut Remarks::new()).joined;
        let found = func.bindings().enumerate().filter_map(|(n, b)| Some((b, joined.get(&n)?)));
        let alone = found.filter(|(b, _)| kernels.is_alone(b));
        OpenJoins(
            alone
                .map(|(b, parts)| (b.var.id(), parts.iter().map(|p| p.placed).collect()))
                .collect(),
        )
    }

    /// For each argument of a call whether it may lie in the result, if it is a join.
    pub(crate) fn of_call(&self, b: &Binding) -> Option<Vec<bool>> {
        self.0.get(&b.var.id()).cloned()
    }
}

/// The functions that run in the place of a join in some layout, which copy the parts that do not lie in
/// their boxes; `may` says which can. `None` where the join runs itself.
///
/// Where the whole is itself a part, its own strides decide.
pub(crate) fn copies(func: &TensorFunc, may: &[bool]) -> Option<Vec<(usize, TensorFunc)>> {
    let join = Join::recognise(func)?;
    let buffers: Vec<&Buffer> = func.buffers().collect();
    let (whole, parts) = buffers.split_last()?;
    let strides = row_major(&dim::of_shape(&whole.shape)?);
    let within = Region { offset: Dim::from(0), strides };
    let (mut cells, mut placed, mut copies) = (0i64, 0i64, Vec::new());
    let shapes = parts.iter().map(|part| dim::of_shape(&part.shape)).collect::<Option<Vec<_>>>()?;
    let corners = join.corners(&shapes)?;
    for (k, (part, shape)) in parts.iter().zip(shapes).enumerate() {
        let count = dim::product(shape.iter().copied()).estimate();
        cells = cells.saturating_add(count);
        let region = within.part(&corners[k], &shape, &shape);
        let lies = region.is_some_and(|region| region.pays(&shape, part.dtype()).is_ok());
        if lies && may.get(k) == Some(&true) {
            placed = placed.saturating_add(count)
        } else {
            copies.push((k, copy_func(part.dtype(), &shape).ok()?))
        }
    }
    is_most(placed, cells).then_some(copies)
}
