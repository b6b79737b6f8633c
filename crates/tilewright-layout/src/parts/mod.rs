//! Parts of values in place: what a concatenation joins is computed where the whole lies, and slices are
//! read there.
//!
//! A *join* is a function that copies each of its inputs, as it is, into a box of its result, so that the
//! boxes are disjoint and together are the result. A part of it needs no copy where it may lie in its
//! box from the start: who computes it writes there, who reads it reads there, and the join runs no
//! code. To them the part is a tensor with *strides*, the distances of neighbours in the whole:
//!
//! ```text
//! whole[n, h, w, 0:64]    <- x, strides (h * w * 96, w * 96, 96, 1)
//! whole[n, h, w, 64:96]   <- y, the same strides, 64 elements further
//! ```
//!
//! Where a part begins is not in the function but in its pointer. So parts of equal strides share
//! their functions, whatever their places, and nothing is derived or compiled anew for a place; a part
//! that is contiguous in the whole has no strides at all, and keeps its functions. That is why parts
//! are tensors with strides, and not stores at `whole[.., c + 64]`, of which each place needs another
//! function.
//!
//! The graph stays one of values: calls take and give logical tensors, and the strides of a parameter
//! say how its argument lies in memory. The module after this pass means what it meant before, and can
//! be printed and interpreted; [`plan_memory`](crate::plan_memory) checks that all functions agree on
//! how a value lies, and gives parts the memory of the whole. The join keeps its function, with the
//! corners of the boxes as the attribute `tilewright.parts`; it is not called.
//!
//! What is given (inputs, constants), returned, or a part of something else already, is copied into its
//! box by a call of its own; so is a value that is joined twice. A join of which most would have to be
//! copied stays as it is. A value with strides is read and written only by functions whose
//! parameter is accessed by indices alone. Joins go from the last to the first, so that a
//! concatenation of concatenations is one whole, as in a network in which every layer reads all
//! before it. A whole may be a result: then the parts lie where the caller wants it.
//!
//! A *slice* is a function whose result is cells of its input at distances that strides say. It needs
//! no copy where all who read it can do so in its input, which may be an input of the graph; the function
//! keeps where the result lies as the attribute `tilewright.slice`, and is not called. A call of
//! several results, as a split, becomes a call for each. Slices that together are one value, and are
//! joined again as they lie in it, are that value in the join:
//!
//! ```text
//! a, b = split(y)        y is computed in whole[.., 0:64]; a and b are read there,
//! c = f(b)               c is computed in whole[.., 64:96],
//! whole = [a, b, c]      and nothing is copied
//! ```
//!
//! Slices go after the joins, from the first to the last, since what a slice lies in may be a part
//! itself.
//!
//! * `join`: which functions are joins, and what the attribute `tilewright.parts` says of them.
//! * `slice`: which functions are slices, and what the attribute `tilewright.slice` says of them.
//! * `strides`: how tensors lie, and functions whose parameters lie so.
//! * `users`: who reads and writes the memory of the values of a graph function.
//! * `placement`: which parts lie where.
//! * `rewrite`: the graph function of that.
//! * `estimate`: what plans ask while layouts are open.

mod estimate;
mod join;
mod placement;
mod rewrite;
mod slice;
mod strides;
mod users;

use std::collections::BTreeSet;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{Expr, GraphExpr, GraphFunc, Module, Remarks, Result, TensorFunc};
use tilewright_transform::pass::{Flag, Pass, Run};

use super::padding::same_extent;

use tilewright_graph::functions::{Functions, rewritten};
use tilewright_graph::normal::results;

pub(crate) use estimate::{OpenJoins, copies};
pub(crate) use join::Join;
use placement::{Movers, Placing};
pub(crate) use slice::Slice;
use slice::Sliced;
pub(crate) use strides::{Strides, moving, reshaped, row_major, strides_of, without_strides};
use users::Users;

/// Whether parts are placed also where copies are estimated to take less time.
const ALL: Flag = Flag {
    name: "all",
    summary: "place parts also where their rows are short or no longer aligned",
    default: false,
};

/// `place_parts` by name.
pub const PASS: Pass = Pass {
    name: "place_parts",
    summary: "compute the parts of a concatenation where the whole lies, and read slices where they lie",
    options: &[&ALL],
    run: Run::Module(|module, given, why| place_parts(module, given.get(&ALL)?, why)),
};

/// The values of a graph function that joins and slices move, which may come to lie in others: with the axes of which
/// each stays apart from the one before, since the value is a part along it; with `None` where all stay as they are.
pub(crate) type Moved = HashMap<u64, Option<BTreeSet<usize>>>;

/// What joins and slices of a graph function move, but for slices that are results of it: those are copies.
pub(crate) fn moved(func: &GraphFunc, functions: &Functions<'_>) -> Moved {
    let mut moved = Moved::default();
    let results: HashSet<u64> = results(&func.ret)
        .into_iter()
        .filter_map(|value| match value {
            GraphExpr::Var(v) => Some(v.id()),
            _ => None,
        })
        .collect();
    let whole = || Some(BTreeSet::new());
    // The axes of the results of slices that are tuples, by their variable.
    let mut of_tuples: HashMap<u64, Vec<Option<BTreeSet<usize>>>> = HashMap::default();
    for b in func.bindings() {
        match &b.value {
            GraphExpr::CallTir { func, args, .. } => {
                let Some(mover) = functions.get(func) else { continue };
                let of_args = if let Some(join) = Join::recognise(mover) {
                    add_axes(&mut moved, b.var.id(), whole());
                    Some(join.axes())
                } else if results.contains(&b.var.id()) {
                    continue;
                } else if let Some(sliced) = slices(mover) {
                    let mut of_results = sliced.axes();
                    let of_result = (of_results.len() == 1).then(|| of_results.remove(0));
                    add_axes(&mut moved, b.var.id(), of_result.flatten());
                    of_tuples.insert(b.var.id(), of_results);
                    whole()
                } else {
                    continue;
                };
                for arg in args {
                    if let GraphExpr::Var(v) = arg {
                        add_axes(&mut moved, v.id(), of_args.clone());
                    }
                }
            }
            GraphExpr::Item(of, k) => {
                let GraphExpr::Var(of) = &**of else { continue };
                if let Some(axes) = of_tuples.get(&of.id()).and_then(|all| all.get(*k)) {
                    add_axes(&mut moved, b.var.id(), axes.clone());
                }
            }
            _ => {}
        }
    }
    // Results of other calls of several go with the call.
    for b in func.bindings() {
        let GraphExpr::Item(of, _) = &b.value else { continue };
        let GraphExpr::Var(of) = &**of else { continue };
        let is_sliced = of_tuples.contains_key(&of.id());
        if !is_sliced && (moved.contains_key(&of.id()) || moved.contains_key(&b.var.id())) {
            moved.extend([(of.id(), None), (b.var.id(), None)]);
        }
    }
    moved
}

/// Whether a function moves what it gives: the axes of a value that is one are its own.
pub(crate) fn is_mover(func: &TensorFunc) -> bool {
    Join::recognise(func).is_some() || slices(func).is_some()
}

/// The slices that a function is, but for one that gives all of its input in another order.
fn slices(func: &TensorFunc) -> Option<Sliced> {
    Sliced::recognise(func).ok().filter(|_| !only_turns(func))
}

fn add_axes(moved: &mut Moved, value: u64, axes: Option<BTreeSet<usize>>) {
    let known = moved.entry(value).or_insert_with(|| Some(BTreeSet::new()));
    *known = known.take().zip(axes).map(|(known, axes)| &known | &axes);
}

/// Whether all tensors of a function have the same extents, in some order.
fn only_turns(func: &TensorFunc) -> bool {
    let mut all = func.buffers().map(|b| &b.shape[..]);
    all.next().is_some_and(|first| all.all(|other| have_same_extents(first, other)))
}

fn have_same_extents(a: &[Expr], b: &[Expr]) -> bool {
    let mut left: Vec<&Expr> = b.iter().collect();
    for extent in a {
        let Some(at) = left.iter().position(|other| same_extent(extent, other)) else {
            return false;
        };
        left.swap_remove(at);
    }
    left.is_empty()
}

/// Places the parts of concatenations, and slices, in a module that went through
/// [`legalize`](tilewright_graph::legalize()); `all` of them that can be, or where it pays. Functions that nothing
/// calls any more go. `why` gets the facts that are missed where something is copied.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize).
pub fn place_parts(module: &Module, all: bool, why: &mut Remarks) -> Result<Module> {
    let mut movers = Movers::default();
    for (name, func) in module.tensors() {
        movers.add(name, func, why);
    }
    if movers.is_empty() {
        return Ok(module.clone());
    }
    rewritten(module, |functions, func| {
        let graph = Users::collect(module, func);
        let bindings = func.bindings().collect();
        let placing = Placing { graph: &graph, bindings, movers: &movers, all };
        let placed = placing.place(why);
        if placed.joined.is_empty() && placed.sliced.is_empty() {
            Ok(func.clone())
        } else {
            placed.rewrite(&placing, functions)
        }
    })
}
