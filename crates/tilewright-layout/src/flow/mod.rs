//! Layouts flow through the graph.
//!
//! A logical value of the graph may exist in several *versions*: as it is, or in physical layouts
//! ([`super::tiled`]). Conversions between them are made where a call needs a version that is
//! not there, and only then, so that conversions move past the calls that can do without, and
//! pairs that undo each other never arise.
//!
//! 1. *Backward*: what each value is wanted as. Calls in a fixed layout say it, graph outputs want
//!    the logical layout, and every other call hands on what its result is wanted as, as far as its
//!    accesses propagate it ([`super::propagate`]).
//! 2. *Forward*: each call is computed in the layout that moves the fewest bytes: those of the
//!    versions of its operands that would have to be made, and those of its result that are wanted
//!    and are not what it gives. Constants cost nothing, since their conversions run at compile
//!    time. So a contradiction, two operands in different layouts, is resolved at its cheapest
//!    edge.
//!
//! Pad values go along. A version whose padding is known, or does not matter, serves as it is;
//! else the call that made it gets a selection, or, where its padding is already relied on, the
//! value is padded anew.
//!
//! A value whose axes are those of another one in another order is no value of its own here (`Permuted`): its
//! versions are those of the other. So a call that reads a transposed tensor, or whose result is transposed,
//! has the same choice as any other.
//!
//! A plan carries layouts through reshapes as well ([`regroup`](crate::regroup)): where the digits of a layout and
//! those of the reshape divide one another, both values are the same memory (`carried`), and the reshaped one is
//! a view of a version of the other (`regrouped`).
//!
//! `candidates` finds in which layouts each call can be computed, `surroundings` what its price depends on
//! beside it. `backward` and `forward` are the two ways; `versions` makes the versions that are not there.

mod backward;
mod candidates;
mod carried;
mod forward;
mod plan;
mod regrouped;
mod surroundings;
mod versions;
mod ways;

pub use plan::{PlanOptions, Planned, Reordered, Went, plan_layout};
pub use surroundings::{Costs, Moved, Priced, Surrounding, Surroundings};
pub use versions::conversion;

use std::cell::OnceCell;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::scalar::Scalar;
use tilewright_ir::{
    Binding, Buffer, Dim, Error, Expr, GraphExpr, GraphFunc, GraphVar, Module, Remarks, Result,
    TensorFunc, Var, dim,
};
use tilewright_polyhedral::Engine;
use tilewright_runtime::Stored;
use tilewright_transform::pass::{OneOf, Pass, Run};

use super::conversion::{Conversion, Pad};
use super::known::Values;
use super::policy::ConvLayout;
use super::propagate::Propagation;
use super::recognise::Recognised;
use super::regroup::Regrouping;
use super::tiled::TiledLayout;
use tilewright_graph::call_sizes::{inside, passes_sizes, unify_sizes};
use tilewright_graph::functions::{Functions, rewritten};
use tilewright_graph::normal::Constants;

/// In which layout results are.
const OUTPUTS: OneOf<bool> = OneOf {
    name: "outputs",
    summary: "results are logical, or physical with anything in the padding",
    of: &[("logical", false), ("physical", true)],
    default: false,
};

/// The layout of all convolutions.
const POLICY: OneOf<Option<ConvLayout>> = OneOf {
    name: "policy",
    summary: "the layout of all convolutions",
    of: ConvLayout::NAMES,
    default: None,
};

/// `flow_layout` by name.
pub const PASS: Pass = Pass {
    name: "flow_layout",
    summary: "move layout conversions through the graph to where they move the fewest bytes",
    options: &[&OUTPUTS, &POLICY],
    run: Run::Module(|module, given, why| {
        let (physical_outputs, policy) = (given.get(&OUTPUTS)?, given.get(&POLICY)?);
        policy.iter().for_each(|p| say_missing(module, *p, why));
        let outputs = if physical_outputs { Ends::Free } else { Ends::Logical };
        let options = FlowOptions {
            anchors: &|_, f| policy.and_then(|p| anchor(p, f)),
            outputs,
            ..FlowOptions::default()
        };
        Ok(flow_layout(module, &options, why)?.0)
    }),
};

/// The layouts that a call is to be computed in, whatever that costs.
pub struct Anchor {
    /// Of some parameters of its function; the others follow.
    pub layouts: Vec<(Buffer, TiledLayout)>,
    /// Whether padding that it reads must be zero; else it is what its maker left there.
    pub zero: bool,
}

/// Which calls have an anchor: the variable that a call is bound to, and its function.
pub type Anchors<'a> = &'a dyn Fn(&GraphVar, &TensorFunc) -> Option<Anchor>;

/// In which layout the parameters or the results of a graph function are. How they are stored then
/// is said by its attributes ([`Stored`]).
#[derive(Clone, Copy, Default)]
pub enum Ends<'a> {
    /// As the model has them.
    #[default]
    Logical,
    /// A parameter as its readers want it, if none of them wants it logical; a result as it is made,
    /// with any values in its padding.
    Free,
    /// As this says; logical where it says nothing. The padding of a parameter holds zeros.
    Chosen(&'a dyn Fn(&GraphVar) -> Option<TiledLayout>),
}

/// What [`flow_layout`] may do.
pub struct FlowOptions<'a> {
    /// The calls that say in which layout they are computed.
    pub anchors: Anchors<'a>,
    /// The parameters of graph functions.
    pub inputs: Ends<'a>,
    /// The results of graph functions.
    pub outputs: Ends<'a>,
    /// Whether layouts are carried through reshapes, as the anchors of these say.
    pub regroups: bool,
}

impl Default for FlowOptions<'_> {
    fn default() -> Self {
        FlowOptions {
            anchors: &|_, _| None,
            inputs: Ends::Logical,
            outputs: Ends::Logical,
            regroups: false,
        }
    }
}

/// Whether the inputs and outputs of a model may be stored in other layouts than the model's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoLayout {
    /// They are as the model has them.
    #[default]
    Logical,
    /// They are as the program is the fastest with: the caller asks how. Those of an open size are as
    /// the model has them.
    Physical,
}

impl FromStr for IoLayout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "logical" => Ok(IoLayout::Logical),
            "physical" => Ok(IoLayout::Physical),
            _ => Err(Error::input(format!("expected logical or physical, not `{name}`"))),
        }
    }
}

/// A conversion that is left.
#[derive(Clone, Debug)]
pub struct Left {
    /// The value that is converted.
    pub value: Arc<str>,
    /// The layout that it is in.
    pub from: TiledLayout,
    /// The layout that it gets.
    pub to: TiledLayout,
    /// Cells that are read and written.
    pub cells: Dim,
    /// Bytes of a cell.
    pub width: u64,
    /// Why.
    pub reason: String,
}

impl Left {
    /// Bytes that are read and written, estimated where sizes are open.
    pub fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.cells.estimate().unsigned_abs())
    }

    /// The same for some sizes; `None` where one of them is not known.
    pub fn bytes_for(&self, size: &dyn Fn(&Var) -> Option<usize>) -> Option<u64> {
        Some(self.width.saturating_mul(self.cells.value(size)? as u64))
    }
}

/// Gives every convolution of a module the layout of a policy, and lets the others follow.
///
/// # Errors
/// Those of [`flow_layout`].
pub fn apply(
    module: &Module,
    policy: ConvLayout,
    io: IoLayout,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    say_missing(module, policy, why);
    let ends = match io {
        IoLayout::Logical => Ends::Logical,
        IoLayout::Physical => Ends::Free,
    };
    let anchors = &|_: &GraphVar, f: &TensorFunc| anchor(policy, f);
    let options = FlowOptions { anchors, inputs: ends, outputs: ends, ..FlowOptions::default() };
    flow_layout(module, &options, why)
}

/// Says which convolutions a policy has no layout for, and why.
fn say_missing(module: &Module, policy: ConvLayout, why: &mut Remarks) {
    for (name, func) in module.tensors() {
        why.extend(missing(name, func, policy));
    }
}

fn missing(name: &str, func: &TensorFunc, policy: ConvLayout) -> Option<Error> {
    let missing = policy.missing(func)?;
    let what = format!("`{name}` is not computed in {policy}");
    Some(Error::refused(what).at(func.span).note(missing))
}

/// How a policy has a convolution computed; `None` for other functions.
fn anchor(policy: ConvLayout, func: &TensorFunc) -> Option<Anchor> {
    Some(Anchor { layouts: policy.layouts(func)?, zero: true })
}

/// Moves layout conversions through every graph function; see the head of this module. Each
/// conversion that is made and not of a constant is one of the result's list. Graph functions in
/// which something changes come back in normal form.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize) and [`unify_sizes`].
pub fn flow_layout(
    module: &Module,
    options: &FlowOptions<'_>,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    let mut left = Vec::new();
    let module = rewritten(&unify_sizes(module)?, |functions, normal| {
        Flow::new(normal, options, functions, why)?.run(normal, &mut left)
    })?;
    Ok((module, left))
}

/// A value that has the axes of another one, the root, in another order.
#[derive(Clone)]
struct Permuted {
    root: GraphVar,
    /// The root's extents.
    logical: Vec<Dim>,
    /// For each axis the root's.
    axes: Vec<usize>,
    /// For each of the root's axes the value's.
    inverse: Vec<usize>,
}

impl Permuted {
    /// A layout of the value, as one of the root.
    fn to_root(&self, layout: &TiledLayout) -> TiledLayout {
        layout.with_axes(&self.axes)
    }

    /// A layout of the root, as one of the value.
    fn as_value(&self, layout: &TiledLayout) -> TiledLayout {
        layout.with_axes(&self.inverse)
    }
}

/// How a value is another one.
#[derive(Clone)]
struct Regrouped {
    from: GraphVar,
    regrouping: Rc<Regrouping>,
}

/// A way to compute a call.
struct Choice {
    propagation: Option<Propagation>,
    /// Layouts of the arguments, then of the results.
    layouts: Vec<TiledLayout>,
}

struct Flow<'a, 'm> {
    options: &'a FlowOptions<'a>,
    functions: &'a mut Functions<'m>,
    why: &'a mut Remarks,
    /// Values that are conversions of others to physical layouts.
    packs: HashMap<u64, (GraphVar, TiledLayout, Pad, Rc<Conversion>)>,
    /// Values that are physical ones in logical layout.
    crops: HashMap<u64, (GraphVar, TiledLayout)>,
    /// Values that are others under other axes, where layouts are carried through.
    regrouped: HashMap<u64, Regrouped>,
    constants: Constants,
    /// Types of logical values that are items of calls with several results.
    items: HashMap<u64, Vec<GraphVar>>,
    wanted: HashMap<u64, Vec<TiledLayout>>,
    versions: HashMap<u64, Vec<Version>>,
    /// Values that are made by a call.
    made: HashSet<u64>,
    /// Why calls stay in the logical layout.
    stays: HashMap<u64, String>,
    bindings: Vec<Binding>,
    /// What is known of the cells of values that are bound.
    values: Values,
    /// Values whose padding a call takes as it is, by number.
    relied: HashSet<u64>,
    left: Vec<Left>,
    /// How the results are stored, in order.
    results: Vec<Option<Stored>>,
}

impl<'a, 'm> Flow<'a, 'm> {
    fn new(
        func: &GraphFunc,
        options: &'a FlowOptions<'a>,
        functions: &'a mut Functions<'m>,
        why: &'a mut Remarks,
    ) -> Result<Self> {
        let mut flow = Flow {
            options,
            functions,
            why,
            packs: HashMap::default(),
            crops: HashMap::default(),
            regrouped: HashMap::default(),
            constants: Constants::collect(func),
            items: HashMap::default(),
            wanted: HashMap::default(),
            versions: HashMap::default(),
            made: func.bindings().map(|b| b.var.id()).collect(),
            stays: HashMap::default(),
            bindings: Vec::new(),
            values: Values::new(&Engine::new()),
            left: Vec::new(),
            results: Vec::new(),
            relied: HashSet::default(),
        };
        let mut recognised = Recognised::default();
        for b in func.bindings() {
            match &b.value {
                GraphExpr::Item(of, _) => {
                    if let GraphExpr::Var(of) = &**of {
                        flow.items.entry(of.id()).or_default().push(b.var.clone());
                    }
                }
                GraphExpr::CallTir { func, args, .. } => {
                    let Some(f) = flow.functions.get(func).cloned() else { continue };
                    let [GraphExpr::Var(from)] = &args[..] else { continue };
                    let found =
                        recognised.regrouping(func, &f, &b.value).filter(|_| options.regroups);
                    if found.is_some_and(|r| flow.note_regrouped(&b.var, from, r)) {
                        continue;
                    }
                    if let Some(c) = recognised.call(func, &f, &b.value) {
                        flow.conversion(&b.var, from, &c);
                    }
                }
                _ => {}
            }
        }
        Ok(flow)
    }

    /// The graph function, computed anew; the conversions that are left join a list.
    fn run(mut self, func: &GraphFunc, left: &mut Vec<Left>) -> Result<GraphFunc> {
        self.backward(func);
        let new = self.forward(func);
        left.append(&mut self.left);
        new
    }

    /// Takes note of a conversion that is there already. What only reorders is a change of layout
    /// either way; it counts as the way to the physical one.
    fn conversion(&mut self, to: &GraphVar, from: &GraphVar, c: &Rc<Conversion>) {
        let (mut from, mut c) = (from.clone(), c.clone());
        let before = self.packs.get(&from.id());
        let composed = before.is_some();
        if let Some((root, .., inner)) = before {
            let Some(both) = inner.then(&c) else { return };
            (from, c) = (root.clone(), Rc::new(both));
        }
        if c.keeps_all()
            && let Some(layout) = TiledLayout::of_pack(&c)
            && (composed || !layout.is_identity())
        {
            self.packs.insert(to.id(), (from, layout, c.pad.clone(), c));
        } else if c.is_total()
            && let Some(back) = c.inverse(Pad::Undef)
            && let Some(layout) = TiledLayout::of_pack(&back)
            && (composed || !layout.is_identity())
        {
            self.crops.insert(to.id(), (from, layout));
        }
    }

    /// How a value is another one with its axes in another order; `None` where it is not.
    fn permuted(&self, v: &GraphVar) -> Option<Permuted> {
        let (root, layout, ..) = self.packs.get(&v.id())?;
        let axes = layout.axes()?;
        let mut inverse = vec![0; axes.len()];
        axes.iter().enumerate().for_each(|(k, d)| inverse[*d] = k);
        Some(Permuted { root: root.clone(), logical: layout.logical.clone(), axes, inverse })
    }

    /// Whether a value is a conversion of another one that does more than permute its axes.
    fn is_converted(&self, v: &GraphVar) -> bool {
        self.packs.get(&v.id()).is_some_and(|(_, layout, ..)| layout.axes().is_none())
    }

    /// The value that has versions, and the layout in which it is what a value is in a layout.
    fn rooted(&self, v: &GraphVar, layout: &TiledLayout) -> (GraphVar, TiledLayout) {
        match self.permuted(v) {
            Some(permuted) => (permuted.root.clone(), permuted.to_root(layout)),
            None => (v.clone(), layout.clone()),
        }
    }

    /// The function of a call that may be computed in other layouts, and its results.
    fn call(&self, b: &Binding) -> Option<(Arc<TensorFunc>, Vec<GraphVar>)> {
        let GraphExpr::CallTir { func, args, outs, scalars } = &b.value else { return None };
        let f = self.functions.get(func)?.clone();
        let id = b.var.id();
        let results = match outs.len() {
            1 => vec![b.var.clone()],
            // An item that is never read is not there.
            n => self.items.get(&id).filter(|i| i.len() == n)?.clone(),
        };
        let fixed = !passes_sizes(&f, scalars)
            || self.crops.contains_key(&id)
            || self.packs.contains_key(&id)
            || self.regrouped.contains_key(&id)
            || args.iter().any(|a| matches!(a, GraphExpr::Var(v) if self.is_converted(v)))
            || f.buffers().count() != args.len() + outs.len();
        (!fixed).then_some((f, results))
    }

    /// The ways to compute a call: the one that an anchor says, or those that what its results are
    /// wanted as, and what its operands come in, allow; the logical layout is the last, and always
    /// there: whether padding can be computed shows only when a function is built.
    fn choices(
        &mut self,
        var: &GraphVar,
        func: &Arc<TensorFunc>,
        args: usize,
        outs: &[GraphVar],
        come: &[(usize, TiledLayout)],
    ) -> Vec<Choice> {
        let buffers: Vec<Buffer> = func.buffers().cloned().collect();
        let logical: Vec<TiledLayout> = buffers.iter().map(TiledLayout::of_buffer).collect();
        let mut given: Vec<Vec<(Buffer, TiledLayout)>> = Vec::new();
        let anchor = (self.options.anchors)(var, func);
        match anchor {
            Some(Anchor { layouts, .. }) => {
                if layouts.iter().any(|(_, l)| !l.is_identity()) {
                    given.push(layouts);
                }
            }
            None => {
                for (k, layout) in come {
                    given.push(vec![(buffers[*k].clone(), layout.clone())]);
                }
                for (out, buffer) in outs.iter().zip(&buffers[args..]) {
                    for layout in self.wanted.get(&out.id()).into_iter().flatten() {
                        if !layout.is_identity() {
                            given.push(vec![(buffer.clone(), layout.clone())]);
                        }
                    }
                }
            }
        }
        let mut choices: Vec<Choice> = Vec::new();
        for given in given {
            match Propagation::new(func, &given) {
                Ok(propagation) => {
                    let layouts = propagation.params();
                    if !choices.iter().any(|c| c.layouts == layouts) {
                        choices.push(Choice { propagation: Some(propagation), layouts });
                    }
                }
                Err(e) => {
                    let reason = e.diagnostic().message.clone();
                    if self.stays.insert(var.id(), reason).is_none() {
                        let name = var.name();
                        self.why.push(e.context(format_args!("`{name}` keeps its layout")));
                    }
                }
            }
        }
        choices.push(Choice { propagation: None, layouts: logical });
        choices
    }
}

/// The extents of a tensor value, as tensor functions have them.
fn extents(v: &GraphVar) -> Option<Vec<Dim>> {
    inside(v.ty().as_tensor()?)
}

/// How a tensor of a layout is stored, with a pad value where it is known and a number. `None` where
/// its size is open: that is stored as the model has it.
fn storage(layout: &TiledLayout, pad: Option<&Expr>) -> Option<Stored> {
    let pad = pad.filter(|_| layout.is_padded()).and_then(Scalar::constant);
    let pad = pad.map(Scalar::as_f64).filter(|pad| pad.is_finite());
    let digits = layout.splits.iter();
    let digits = digits.map(|s| Some((usize::try_from(s.offset).ok()?, dim::known(&s.digits)?)));
    Some(Stored {
        logical: dim::known(&layout.logical)?,
        digits: digits.collect::<Option<_>>()?,
        order: layout.order.clone(),
        pad,
    })
}

/// A value in a layout.
#[derive(Clone)]
struct Version {
    layout: TiledLayout,
    expr: GraphExpr,
    pad: Padding,
    /// The call that made it was written here, so that no other code reads its padding.
    own: bool,
}

/// What the padding of a version holds, where that is known.
#[derive(Clone)]
enum Padding {
    Known(Option<Expr>),
    /// What its maker or an assumption tells, when it is first asked: that takes many questions, and most readers
    /// take any padding.
    Asked(Rc<OnceCell<Option<Expr>>>),
}
