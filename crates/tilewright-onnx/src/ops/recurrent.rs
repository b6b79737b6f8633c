//! LSTM, GRU and RNN.
//!
//! The inputs of all steps are multiplied with the weights of all gates and directions at once, by
//! one `gemm`; the rest is one function with a loop over the steps.

use tilewright_ir::{DType, Dim, Error, Result};
use tilewright_ops::elementwise::Unary;
use tilewright_ops::recurrent::{Activation, Cell, Direction, Recurrent, recurrent};
use tilewright_ops::unequal;

use super::compose::{Compose, int};
use super::value;
use crate::build::Builder;
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("GRU", 7, 6, |n, b| {
        network(n, b, Cell::Gru { reset_after: n.flag("linear_before_reset", false)? })
    }),
    op("LSTM", 7, 8, |n, b| network(n, b, Cell::Lstm { coupled: n.flag("input_forget", false)? })),
    op("RNN", 7, 6, |n, b| network(n, b, Cell::Rnn)),
];

/// The activations of all directions, in order. The lists of parameters hold values for those that
/// take some, in the same order.
fn activations(node: &Node, cell: Cell, directions: usize) -> Result<Vec<Activation>> {
    let defaults: &[&str] = match cell {
        Cell::Rnn => &["Tanh"],
        Cell::Gru { .. } => &["Sigmoid", "Tanh"],
        Cell::Lstm { .. } => &["Sigmoid", "Tanh", "Tanh"],
    };
    let names = match node.texts("activations")? {
        Some(names) if names.len() != defaults.len() * directions => {
            return Err(Error::model(format!(
                "there are {} activations, where {directions} x {} are needed",
                names.len(),
                defaults.len()
            )));
        }
        Some(names) => names,
        None => defaults.repeat(directions).iter().map(|s| (*s).to_owned()).collect(),
    };
    let mut alphas = node.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = node.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let mut alpha = |default: f32| f64::from(alphas.next().unwrap_or(default));
        let mut beta = |default: f32| f64::from(betas.next().unwrap_or(default));
        found.push(match name.to_ascii_lowercase().as_str() {
            "relu" => Activation::Unary(Unary::Relu),
            "tanh" => Activation::Unary(Unary::Tanh),
            "sigmoid" => Activation::Unary(Unary::Sigmoid),
            "softsign" => Activation::Unary(Unary::Softsign),
            "softplus" => Activation::Unary(Unary::Softplus),
            "leakyrelu" => Activation::Unary(Unary::LeakyRelu { alpha: alpha(0.01) }),
            "thresholdedrelu" => Activation::Unary(Unary::ThresholdedRelu { alpha: alpha(1.0) }),
            "elu" => Activation::Unary(Unary::Elu { alpha: alpha(1.0) }),
            "hardsigmoid" => {
                Activation::Unary(Unary::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) })
            }
            "affine" => Activation::Affine { alpha: alpha(1.0), beta: beta(0.0) },
            "scaledtanh" => Activation::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
            _ => {
                return Err(node.unsupported_value(
                    "activations",
                    name,
                    "Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, Softplus, \
                     Softsign, Tanh, ThresholdedRelu",
                ));
            }
        });
    }
    Ok(found)
}

/// For each direction of a node, whether its steps run from the last to the first.
fn backward(node: &Node) -> Result<Vec<bool>> {
    let all: [(&str, &[bool]); 3] =
        [("forward", &[false]), ("reverse", &[true]), ("bidirectional", &[false, true])];
    node.choice("direction", "forward", &all).map(<[bool]>::to_vec)
}

/// Refuses an operand of another shape or type.
fn demand(what: &str, value: &Imported, shape: &[Dim], dtype: DType) -> Result<()> {
    let is = value.shape();
    if is == shape && value.dtype() == dtype {
        return Ok(());
    }
    let error = Error::model(format!(
        "the input `{what}` must be {dtype}{shape:?}, but is {}{is:?}",
        value.dtype()
    ));
    if is.len() != shape.len() || value.dtype() != dtype {
        return Err(error);
    }
    Err(unequal(error, is.iter().copied().zip(shape.iter().copied())))
}

/// A recurrent network: its attributes, and its operands, which fit one another.
pub(crate) struct Network<'n> {
    pub(crate) cell: Cell,
    pub(crate) x: &'n Imported,
    pub(crate) w: &'n Imported,
    pub(crate) r: &'n Imported,
    pub(crate) bias: Option<&'n Imported>,
    pub(crate) lengths: Option<&'n Imported>,
    pub(crate) initial: Option<&'n Imported>,
    pub(crate) initial_cell: Option<&'n Imported>,
    pub(crate) peepholes: Option<&'n Imported>,
    batch_first: bool,
    pub(crate) steps: Dim,
    pub(crate) batch: Dim,
    pub(crate) features: Dim,
    pub(crate) hidden: usize,
    /// Elements of all gates, in each direction.
    pub(crate) width: usize,
    /// Whether each direction runs backward.
    pub(crate) backward: Vec<bool>,
    /// Those of all directions, one after the other.
    activations: Vec<Activation>,
    clip: Option<f64>,
}

impl<'n> Network<'n> {
    /// That of a node. Weights have a row for each element of the gates; `quantized` ones have a column,
    /// and a type of their own.
    pub(crate) fn read(node: &'n Node, cell: Cell, quantized: bool) -> Result<Network<'n>> {
        let (x, w, r) = (node.input(0)?, node.input(1)?, node.input(2)?);
        let (&[first, second, features], &[count, rows, columns]) =
            (&x.shape()[..], &w.fixed(node)?[..])
        else {
            return Err(Error::model(format!(
                "the data have the shape {:?}, the weights {:?}; both must have three axes",
                x.shape(),
                w.shape()
            )));
        };
        let width = if quantized { columns } else { rows };
        let batch_first = !quantized && node.opset >= 14 && node.flag("layout", false)?;
        let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
        let backward = backward(node)?;
        let directions = backward.len();
        let gates = cell.gates();
        let hidden = r.fixed(node)?.get(if quantized { 1 } else { 2 }).copied().unwrap_or(0);
        if let Some(said) = node.int("hidden_size")?
            && usize::try_from(said) != Ok(hidden)
        {
            return Err(Error::model(format!(
                "attribute `hidden_size` is {said}, but the weights are for {hidden}"
            )));
        }
        if gates * hidden != width || count != directions {
            return Err(Error::model(format!(
                "the weights have the shapes {:?} and {:?}, for {directions} directions of {gates} gates",
                w.shape(),
                r.shape()
            )));
        }
        let (bias, lengths, initial) = (node.optional(3), node.optional(4), node.optional(5));
        let (initial_cell, peepholes) = match cell {
            Cell::Lstm { .. } => (node.optional(6), node.optional(7)),
            Cell::Rnn | Cell::Gru { .. } => (None, None),
        };
        let all = Network {
            cell,
            x,
            w,
            r,
            bias,
            lengths,
            initial,
            initial_cell,
            peepholes,
            batch_first,
            steps,
            batch,
            features,
            hidden,
            width,
            activations: activations(node, cell, directions)?,
            backward,
            clip: node.float("clip")?.map(f64::from),
        };
        all.check(quantized)?;
        Ok(all)
    }

    /// Refuses operands of other shapes or types.
    fn check(&self, quantized: bool) -> Result<()> {
        let given = self.x.dtype();
        let [each, width, elements] = [self.backward.len(), self.width, self.hidden].map(Dim::from);
        for (what, weights, inner) in [("W", self.w, self.features), ("R", self.r, elements)] {
            if quantized {
                demand(what, weights, &[each, inner, width], weights.dtype())?
            } else {
                demand(what, weights, &[each, width, inner], given)?
            }
        }
        let state = if self.batch_first {
            vec![self.batch, each, elements]
        } else {
            vec![each, self.batch, elements]
        };
        for (what, value, shape) in [
            ("B", self.bias, vec![each, (2 * self.width).into()]),
            ("initial_h", self.initial, state.clone()),
            ("initial_c", self.initial_cell, state),
            ("P", self.peepholes, vec![each, (3 * self.hidden).into()]),
        ] {
            value.map_or(Ok(()), |v| demand(what, v, &shape, given))?;
        }
        if let Some(lengths) = self.lengths
            && (lengths.shape() != [self.batch] || !lengths.dtype().is_int())
        {
            let error = Error::model(format!(
                "the input `sequence_lens` must be {} integers, but is {}{:?}",
                self.batch,
                lengths.dtype(),
                lengths.shape()
            ));
            return Err(match lengths.shape()[..] {
                [own] if lengths.dtype().is_int() => unequal(error, [(own, self.batch)]),
                _ => error,
            });
        }
        Ok(())
    }

    /// The function of the recurrence in a type.
    pub(crate) fn parameters(&self, dtype: DType, reset_bias: bool) -> Recurrent {
        let each = self.backward.iter().zip(self.activations.chunks(self.cell.activations()));
        Recurrent {
            cell: self.cell,
            dtype,
            steps: self.steps,
            batch: self.batch,
            hidden: self.hidden,
            directions: each
                .map(|(&backward, own)| Direction { backward, activations: own.to_vec() })
                .collect(),
            batch_first: self.batch_first,
            clip: self.clip,
            reset_bias,
            fed_back: true,
            initial: self.initial.is_some(),
            initial_cell: self.initial_cell.is_some(),
            peepholes: self.peepholes.is_some(),
            lengths: self.lengths.map(Imported::dtype),
        }
    }

    /// The bias that is added to the products of the inputs, and the one that is left for the inside of the
    /// reset, where the reset comes after its product.
    fn biases(
        &self,
        c: &mut Compose,
        work: DType,
        reset_after: bool,
    ) -> Result<(Option<Imported>, Option<Imported>)> {
        let Some(bias) = self.bias else { return Ok((None, None)) };
        let (hidden, width, directions) = (self.hidden, self.width, self.backward.len());
        let bias = c.cast(bias, work)?;
        let of_inputs = c.slice(&bias, 1, 0, width)?;
        let mut of_state = c.slice(&bias, 1, width, 2 * width)?;
        let mut reset_bias = None;
        if reset_after {
            reset_bias = Some(c.slice(&of_state, 1, 2 * hidden, width)?);
            let outside = c.slice(&of_state, 1, 0, 2 * hidden)?;
            let zeros = vec![0.0; directions * hidden];
            let zeros = value::constant(work, &[directions, hidden], &zeros)?;
            of_state = c.concat(&[&outside, &zeros], 1)?;
        }
        let sum = c.op("Add", &[&of_inputs, &of_state])?;
        Ok((Some(c.reshape(&sum, &[directions * width])?), reset_bias))
    }
}

/// A network: the products of the inputs of all steps with their weights, and the recurrence over them.
fn network(node: &Node, b: &mut Builder, cell: Cell) -> Result<Vec<Imported>> {
    let all = Network::read(node, cell, false)?;
    let (directions, given) = (all.backward.len(), all.x.dtype());
    // Sums over hundreds of steps are kept in float32 at least.
    let work = if given == DType::F64 { DType::F64 } else { DType::F32 };
    let mut c = Compose::new(node, b);
    let x = c.cast(all.x, work)?;
    let w = c.cast(all.w, work)?;
    let r = c.cast(all.r, work)?;
    let r = c.transpose(&r, &[0, 2, 1])?;
    // Both biases are added outside of the loop, but for the one inside of the reset.
    let reset_after = matches!(cell, Cell::Gru { reset_after: true });
    let (bias, reset_bias) = all.biases(&mut c, work, reset_after)?;
    let rows = c.reshape(&x, &[all.steps * all.batch, all.features])?;
    let weights = c.reshape(&w, &[(directions * all.width).into(), all.features])?;
    let inputs = [Some(&rows), Some(&weights), bias.as_ref()];
    let sums = c.first("Gemm", &inputs, [int("transB", 1)])?;
    let params = all.parameters(work, reset_bias.is_some());
    let mut args = vec![sums, r];
    args.extend(reset_bias);
    for value in [all.initial, all.initial_cell, all.peepholes].into_iter().flatten() {
        args.push(c.cast(value, work)?);
    }
    args.extend(all.lengths.cloned());
    let results = c.b.call_many(cell.name(), &params, &args, || recurrent(&params))?;
    results.iter().map(|v| c.cast(v, given)).collect()
}
