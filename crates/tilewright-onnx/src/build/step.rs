//! What bodies consist of: calls of tensor functions, and control flow.

use tilewright_ir::{Attrs, Dim, GraphVar, Var};

use crate::imported::Imported;

/// A call, or nothing where it was taken back.
pub(super) struct Call {
    pub(super) func: usize,
    pub(super) args: Vec<Imported>,
    pub(super) outs: Vec<GraphVar>,
}

/// What a body consists of.
pub(super) enum BodyStep {
    Call(Call),
    Control(Control),
}

impl BodyStep {
    pub(super) fn args(&self) -> Vec<&Imported> {
        match self {
            BodyStep::Call(call) => call.args.iter().collect(),
            BodyStep::Control(control) => control.args(),
        }
    }
}

/// A body that is being built.
#[derive(Default)]
pub(super) struct OpenBody {
    pub(super) number: usize,
    pub(super) steps: Vec<Option<BodyStep>>,
    /// Sizes that data decide in it.
    pub(super) sizes: Vec<Var>,
}

/// A body that is complete.
pub(crate) struct Nested {
    pub(super) steps: Vec<Option<BodyStep>>,
    /// What it gives.
    pub(crate) results: Vec<Imported>,
    /// Sizes that are known only inside of it.
    pub(super) sizes: Vec<Var>,
}

impl Nested {
    pub(super) fn args(&self) -> Vec<&Imported> {
        self.steps.iter().flatten().flat_map(BodyStep::args).chain(&self.results).collect()
    }

    /// Whether a size is known outside, too.
    pub(crate) fn is_outside(&self, size: Dim) -> bool {
        !size.vars().iter().any(|v| self.sizes.contains(v))
    }
}

/// A step that is no call of a tensor function.
pub(super) enum Control {
    /// The elements of a list of integers are sizes.
    Sizes {
        of: Imported,
        var: GraphVar,
        attrs: Attrs,
    },
    /// An operator of the graph: one on lists, or what says more of a type.
    Call {
        op: &'static str,
        attrs: Attrs,
        args: Vec<Imported>,
        out: GraphVar,
    },
    If {
        cond: Imported,
        then: Nested,
        otherwise: Nested,
        outs: Vec<GraphVar>,
    },
    Loop {
        given: LoopGiven,
        body: Nested,
        outs: Vec<GraphVar>,
    },
}

impl Control {
    /// The values that it reads, those that bodies read from around them included.
    pub(super) fn args(&self) -> Vec<&Imported> {
        match self {
            Control::Sizes { of, .. } => vec![of],
            Control::Call { args, .. } => args.iter().collect(),
            Control::If { cond, then, otherwise, .. } => {
                let mut all = vec![cond];
                all.extend(then.args());
                all.extend(otherwise.args());
                all
            }
            Control::Loop { given, body, .. } => {
                let mut all: Vec<&Imported> = given.trip.iter().chain(&given.cond).collect();
                all.extend(&given.carried);
                all.extend(body.args());
                all
            }
        }
    }

    pub(super) fn outs(&self) -> Vec<&GraphVar> {
        match self {
            Control::Sizes { .. } => Vec::new(),
            Control::Call { out, .. } => vec![out],
            Control::If { outs, .. } | Control::Loop { outs, .. } => outs.iter().collect(),
        }
    }
}

pub(crate) struct LoopGiven {
    pub(crate) trip: Option<Imported>,
    pub(crate) cond: Option<Imported>,
    pub(crate) carried: Vec<Imported>,
    /// The number of the iteration, and the carried values.
    pub(crate) params: Vec<GraphVar>,
}
