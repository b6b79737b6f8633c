//! The problem: which alternative does each call run, so that the calls and the conversions
//! between layouts cost least?
//!
//! A tensor has layouts. It is produced in one of them: by the one call that writes it, or it is
//! given (an input of the graph, or a constant). Whoever needs it in another layout needs a
//! conversion from the layout in which it is produced; it is paid once for each tensor and layout,
//! however many calls share it. Data that may be given in any layout for nothing are the output of
//! a call that reads nothing and has an alternative for each layout.

use serde::{Deserialize, Serialize};

use crate::solver::Cost;

/// The greatest sum of all finite costs of a problem, so that no arithmetic on them overflows.
pub const MOST: u64 = 1 << 56;

/// A layout problem. What is built by hand is valid where [`Problem::validate`] says so; the
/// functions of this crate ask it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// The tensors; their indices are what calls refer to.
    pub tensors: Vec<Tensor>,
    /// The calls, in any order.
    pub calls: Vec<Call>,
}

/// A tensor with its layouts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// For messages; need not be unique.
    pub name: String,
    /// The names of the layouts, at least one; their indices are what everything refers to.
    pub layouts: Vec<String>,
    /// The layout in which the tensor is there before any call runs; `None` where a call writes it.
    #[serde(default)]
    pub given: Option<usize>,
    /// The layouts in which the tensor must exist at the end; none for tensors inside.
    #[serde(default)]
    pub required: Vec<usize>,
    /// `conversions[i][j]` is the cost of making layout `j` out of layout `i`. The diagonal is not
    /// read: a tensor that is produced in a layout has it for nothing. Conversions do not chain:
    /// where two in a row are cheaper than one, their sum belongs here.
    pub conversions: Vec<Vec<Cost>>,
}

/// A call, of which one alternative runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// For messages; need not be unique.
    pub name: String,
    /// At least one; all of them write the same tensors.
    pub alternatives: Vec<Alternative>,
}

/// One way to run a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// For messages.
    pub name: String,
    /// What running it costs, conversions apart.
    pub cost: Cost,
    /// The tensors that it reads, each with the layout that it needs.
    #[serde(default)]
    pub reads: Vec<Use>,
    /// The tensors that it writes, each with the layout that it gives.
    #[serde(default)]
    pub writes: Vec<Use>,
}

/// A tensor in a layout, both by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// Index into [`Problem::tensors`].
    pub tensor: usize,
    /// Index into [`Tensor::layouts`].
    pub layout: usize,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The problem contradicts itself; the text names the tensor or call.
    #[error("invalid layout problem: {0}")]
    Invalid(String),
    /// Every choice needs something forbidden; proven.
    #[error("every choice of alternatives needs something that is forbidden")]
    Infeasible,
    /// No choice without something forbidden was found in time; there may be one.
    #[error("no plan was found within the time limit")]
    TimedOut,
}

fn invalid<T>(message: String) -> Result<T, Error> {
    Err(Error::Invalid(message))
}

impl Problem {
    /// Whether everything refers to something that is there, every tensor has one producer, no call
    /// depends on itself, and the sum of all costs is at most [`MOST`].
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of a tensor or call.
    pub fn validate(&self) -> Result<(), Error> {
        for tensor in &self.tensors {
            self.validate_tensor(tensor)?;
        }
        for call in &self.calls {
            self.validate_call(call)?;
        }
        self.validate_producers()?;
        self.validate_order()?;
        let conversions = self.tensors.iter().flat_map(|t| t.conversions.iter().flatten());
        let runs = self.calls.iter().flat_map(|c| c.alternatives.iter().map(|a| &a.cost));
        let total: u128 =
            conversions.chain(runs).filter_map(|cost| cost.get()).map(u128::from).sum();
        if total > u128::from(MOST) {
            return invalid(format!("all costs add up to {total}, and {MOST} is the limit"));
        }
        Ok(())
    }

    fn validate_tensor(&self, tensor: &Tensor) -> Result<(), Error> {
        let (name, layouts) = (&tensor.name, tensor.layouts.len());
        if layouts == 0 {
            return invalid(format!("tensor `{name}` has no layout"));
        }
        if let Some(layout) = tensor.given.iter().chain(&tensor.required).find(|&&l| l >= layouts) {
            return invalid(format!(
                "tensor `{name}` has {layouts} layouts and no layout {layout}"
            ));
        }
        let square = tensor.conversions.iter().all(|row| row.len() == layouts);
        if tensor.conversions.len() != layouts || !square {
            return invalid(format!(
                "the conversions of tensor `{name}` are not a matrix of {layouts} by {layouts}"
            ));
        }
        Ok(())
    }

    fn validate_call(&self, call: &Call) -> Result<(), Error> {
        let name = &call.name;
        let Some(first) = call.alternatives.first() else {
            return invalid(format!("call `{name}` has no alternative"));
        };
        let written = written(first);
        for alternative in &call.alternatives {
            let which = &alternative.name;
            for used in alternative.reads.iter().chain(&alternative.writes) {
                let Some(tensor) = self.tensors.get(used.tensor) else {
                    return invalid(format!(
                        "call `{name}`, alternative `{which}`: there is no tensor {}",
                        used.tensor
                    ));
                };
                if used.layout >= tensor.layouts.len() {
                    return invalid(format!(
                        "call `{name}`, alternative `{which}`: tensor `{}` has no layout {}",
                        tensor.name, used.layout
                    ));
                }
            }
            let tensors = self::written(alternative);
            if tensors.windows(2).any(|pair| pair[0] == pair[1]) {
                return invalid(format!(
                    "call `{name}`, alternative `{which}` writes a tensor twice"
                ));
            }
            if tensors != written {
                return invalid(format!(
                    "the alternatives of call `{name}` do not write the same tensors"
                ));
            }
        }
        Ok(())
    }

    fn validate_producers(&self) -> Result<(), Error> {
        let mut producer: Vec<Option<&str>> = vec![None; self.tensors.len()];
        for call in &self.calls {
            for tensor in written(&call.alternatives[0]) {
                let name = &self.tensors[tensor].name;
                if let Some(other) = producer[tensor].replace(&call.name) {
                    return invalid(format!(
                        "tensor `{name}` is written by call `{other}` and by call `{}`",
                        call.name
                    ));
                }
                if self.tensors[tensor].given.is_some() {
                    return invalid(format!(
                        "tensor `{name}` is given, and call `{}` writes it",
                        call.name
                    ));
                }
            }
        }
        match (0..self.tensors.len())
            .find(|&t| producer[t].is_none() && self.tensors[t].given.is_none())
        {
            Some(t) => {
                let name = &self.tensors[t].name;
                invalid(format!("tensor `{name}` is neither given nor written by a call"))
            }
            None => Ok(()),
        }
    }

    fn validate_order(&self) -> Result<(), Error> {
        if self.order().len() == self.calls.len() {
            return Ok(());
        }
        let mut ordered = vec![false; self.calls.len()];
        self.order().into_iter().for_each(|c| ordered[c] = true);
        let stuck = ordered.iter().position(|done| !done).unwrap_or_default();
        invalid(format!(
            "call `{}` depends on itself, or on a call that does",
            self.calls[stuck].name
        ))
    }

    /// The call that writes each tensor.
    pub(crate) fn producers(&self) -> Vec<Option<usize>> {
        let mut producer = vec![None; self.tensors.len()];
        for (c, call) in self.calls.iter().enumerate() {
            for used in &call.alternatives[0].writes {
                producer[used.tensor] = Some(c);
            }
        }
        producer
    }

    /// The calls, each after those whose results it may read; calls on cycles are left out.
    pub(crate) fn order(&self) -> Vec<usize> {
        let producer = self.producers();
        let mut waits = vec![0usize; self.calls.len()];
        let mut then = vec![Vec::new(); self.calls.len()];
        for (c, call) in self.calls.iter().enumerate() {
            let reads = call.alternatives.iter().flat_map(|a| &a.reads);
            for before in reads.filter_map(|used| producer[used.tensor]) {
                waits[c] += 1;
                then[before].push(c);
            }
        }
        let mut order: Vec<usize> = (0..waits.len()).filter(|&c| waits[c] == 0).collect();
        let mut next = 0;
        while let Some(&c) = order.get(next) {
            next += 1;
            for &after in &then[c] {
                waits[after] -= 1;
                if waits[after] == 0 {
                    order.push(after);
                }
            }
        }
        order
    }
}

fn written(alternative: &Alternative) -> Vec<usize> {
    let mut tensors: Vec<usize> = alternative.writes.iter().map(|used| used.tensor).collect();
    tensors.sort_unstable();
    tensors
}
