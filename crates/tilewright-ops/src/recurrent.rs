//! Recurrent networks: LSTM, GRU and the simple RNN.
//!
//! What the steps of a sequence contribute by themselves, `X W + b`, is one product of matrices over
//! all steps, and comes in as an operand. What is left for each step is the product of the state of
//! the step before with the recurrent weights, and the gates:
//!
//! ```text
//! for each direction, for each step t:
//!     z = input[t] + h R          the sums of all gates, one row an example of the batch
//!     c, h = gates(z, c)          element by element
//!     y[t] = h
//! ```
//!
//! The loop over the steps cannot be written as stages of one value each, since the stages of one
//! step read what those of the step before wrote. So the function has loops of its own: the state
//! and the sums of the gates are local buffers of a block, the product runs over the rows of `R` with
//! the gates innermost, four rows at a time, so that each sum is read and written once for four
//! products, and all gates of an element are computed together.
//!
//! An example that is shorter than the others keeps its state behind its end, and its results are
//! zero there. Backwards this is the same rule: its state is the initial one until its end is reached.

use tilewright_ir::{Block, Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc, dim};

use crate::elementwise::{Unary, apply_unary};
use crate::loops::{each, function, with};
use crate::operand::{int, unsupported_type};
use crate::te::{self, Tensor};

/// A function that a gate applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// An operator of one operand.
    Unary(Unary),
    /// `alpha * x + beta`.
    Affine {
        /// Factor.
        alpha: f64,
        /// Addend.
        beta: f64,
    },
    /// `alpha * tanh(beta * x)`.
    ScaledTanh {
        /// Factor of the result.
        alpha: f64,
        /// Factor of the argument.
        beta: f64,
    },
}

impl Activation {
    fn apply(self, x: Expr) -> Expr {
        match self {
            Activation::Unary(op) => apply_unary(op, x),
            Activation::Affine { alpha, beta } => x * alpha + beta,
            Activation::ScaledTanh { alpha, beta } => apply_unary(Unary::Tanh, x * beta) * alpha,
        }
    }
}

/// The kind of a network: how many gates there are, and what they do. `f`, `g` and `h` stand for the
/// activations of a direction, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// One gate: `h' = f(z)`.
    Rnn,
    /// Update, reset, hidden: `h' = (1 - u) n + u h` with `u = f(z_u)`, `r = f(z_r)`.
    Gru {
        /// Whether the reset gate acts behind the product, `n = g(x_n + r (h R_n + b_n))`, and not
        /// before it, `n = g(x_n + (r h) R_n)`.
        reset_after: bool,
    },
    /// Input, output, forget, cell: `c' = f c + i g(z_c)`, `h' = o h(c')`, where the gates are
    /// `f(z)`.
    Lstm {
        /// Whether there is no forget gate of its own: it is one less the input gate.
        coupled: bool,
    },
}

impl Cell {
    /// Number of gates.
    pub fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// Number of activations of a direction.
    pub fn activations(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 2,
            Cell::Lstm { .. } => 3,
        }
    }

    /// What functions are called.
    pub fn name(self) -> &'static str {
        match self {
            Cell::Rnn => "rnn",
            Cell::Gru { .. } => "gru",
            Cell::Lstm { .. } => "lstm",
        }
    }
}

/// One direction of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Whether it begins with the last step.
    pub backward: bool,
    /// As many as [`Cell::activations`] says.
    pub activations: Vec<Activation>,
}

/// A recurrent network over sequences of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrent {
    /// The kind.
    pub cell: Cell,
    /// Type of all operands but the lengths: `float32` or `float64`.
    pub dtype: DType,
    /// Number of steps.
    pub steps: Dim,
    /// Examples of a batch.
    pub batch: Dim,
    /// Elements of the state.
    pub hidden: usize,
    /// One or two.
    pub directions: Vec<Direction>,
    /// Whether the batch is the outermost axis, before steps and directions.
    pub batch_first: bool,
    /// Bound of the magnitude of what activations of gates are applied to.
    pub clip: Option<f64>,
    /// Whether there is a bias of the hidden gate inside of the reset.
    pub reset_bias: bool,
    /// Whether a step adds the product of the state with recurrent weights to the sums of its gates. Where they have
    /// it already, there are no such weights.
    pub fed_back: bool,
    /// Whether there is an initial state.
    pub initial: bool,
    /// Whether there is an initial cell.
    pub initial_cell: bool,
    /// Whether gates see the cell.
    pub peepholes: bool,
    /// Type of the lengths of the examples, if they are given.
    pub lengths: Option<DType>,
}

/// Rows of the recurrent weights whose products are added at a time.
const ROWS: usize = 4;

/// Columns of the gates that several examples compute before the next ones.
const COLUMNS: usize = 64;

/// See [`Recurrent`]. With `D` directions, `T` steps, `B` examples, `H` elements and `G` gates, the
/// parameters are:
///
/// * what the inputs contribute, `[T * B, D * G * H]` (`[B * T, ..]` with the batch first), gates in
///   the order of [`Cell`],
/// * where they are given, and in this order: the recurrent weights `[D, H, G * H]`, the reset bias `[D, H]`,
///   the initial state `[D, B, H]`, the initial cell, the peepholes `[D, 3 * H]` of input, output and forget gate,
///   the lengths `[B]`,
/// * the results `[T, D, B, H]`, the last state `[D, B, H]`, and of an LSTM the last cell.
///
/// With the batch first the shapes are `[B, T, D, H]` and `[B, D, H]`.
///
/// # Errors
/// [`Error::Input`] where parameters contradict each other, [`Error::Unsupported`] for other types.
pub fn recurrent(p: &Recurrent) -> Result<TensorFunc> {
    let name = p.cell.name();
    if !matches!(p.dtype, DType::F32 | DType::F64) {
        return Err(unsupported_type(name, p.dtype, "float32 and float64"));
    }
    if let Some(dtype) = p.lengths.filter(|d| !d.is_int()) {
        return Err(unsupported_type(name, dtype, "lengths that are integers"));
    }
    let lstm = matches!(p.cell, Cell::Lstm { .. });
    let after = matches!(p.cell, Cell::Gru { reset_after: true });
    if (!lstm && (p.initial_cell || p.peepholes)) || (!after && p.reset_bias) {
        return Err(Error::input(format!("{name}: there is an operand that only others have")));
    }
    if !matches!(p.directions.len(), 1 | 2) {
        return Err(Error::input(format!("{name}: {} directions", p.directions.len())));
    }
    let wanted = p.cell.activations();
    if let Some(d) = p.directions.iter().find(|d| d.activations.len() != wanted) {
        return Err(Error::input(format!(
            "{name}: {} activations, not {wanted}",
            d.activations.len()
        )));
    }
    let (directions, width) = (p.directions.len(), p.cell.gates().saturating_mul(p.hidden));
    let mut inputs = Vec::new();
    let mut input = |wanted: bool, name: &str, shape: &[Dim], dtype| {
        let tensor = wanted.then(|| te::placeholder(name, shape, dtype));
        inputs.extend(tensor.clone());
        tensor.map(|t| t.buffer().clone())
    };
    let rows = p.steps * p.batch;
    let columns = directions.saturating_mul(width);
    let [each, hidden, width, columns] = [directions, p.hidden, width, columns].map(Dim::from);
    let state = if p.batch_first { [p.batch, each, hidden] } else { [each, p.batch, hidden] };
    let input_sums = input(true, "x", &[rows, columns], p.dtype);
    let weights = input(p.fed_back, "r", &[each, hidden, width], p.dtype);
    let reset_bias = input(p.reset_bias, "reset_bias", &[each, p.hidden.into()], p.dtype);
    let initial = input(p.initial, "initial_h", &state, p.dtype);
    let initial_cell = input(p.initial_cell, "initial_c", &state, p.dtype);
    let peepholes = input(p.peepholes, "p", &[each, (3 * p.hidden).into()], p.dtype);
    let lengths =
        input(p.lengths.is_some(), "lengths", &[p.batch], p.lengths.unwrap_or(DType::I32));
    let all = if p.batch_first {
        [p.batch, p.steps, each, hidden]
    } else {
        [p.steps, each, p.batch, hidden]
    };
    let y = te::placeholder("y", &all, p.dtype);
    let y_h = te::placeholder("y_h", &state, p.dtype);
    let y_c = lstm.then(|| te::placeholder("y_c", &state, p.dtype));
    let outputs: Vec<Tensor> = [y.clone(), y_h.clone()].into_iter().chain(y_c.clone()).collect();
    let input_sums = input_sums.ok_or_else(|| Error::internal("an operand is missing"))?;
    let tensors: Vec<Tensor> = inputs.into_iter().chain(outputs).collect();
    tensors.iter().try_for_each(te::check_type)?;
    let net = Net {
        p,
        input_sums,
        weights,
        reset_bias,
        initial,
        initial_cell,
        peepholes,
        lengths,
        y: y.buffer().clone(),
        y_h: y_h.buffer().clone(),
        y_c: y_c.map(|t| t.buffer().clone()),
    };
    let blocks: Vec<Stmt> = (0..directions).map(|d| net.direction(d)).collect();
    let params: Vec<&Buffer> = tensors.iter().map(Tensor::buffer).collect();
    let sizes = [p.steps, p.batch].into_iter().flat_map(Dim::vars);
    function(name, &params, sizes.map(|v| dim::narrow(&v)), Stmt::seq(blocks))
}

/// The buffers of a function under construction.
struct Net<'a> {
    p: &'a Recurrent,
    input_sums: Buffer,
    weights: Option<Buffer>,
    reset_bias: Option<Buffer>,
    initial: Option<Buffer>,
    initial_cell: Option<Buffer>,
    peepholes: Option<Buffer>,
    lengths: Option<Buffer>,
    y: Buffer,
    y_h: Buffer,
    y_c: Option<Buffer>,
}

/// What one direction keeps between steps, and where.
struct State {
    /// Which direction it is.
    at: usize,
    h: Buffer,
    c: Buffer,
    /// The sums of all gates.
    z: Buffer,
    /// The state behind the reset gate.
    reset: Buffer,
}

impl Net<'_> {
    /// The index into a state of the graph, of one direction.
    fn state_index(&self, d: usize, b: &Expr, j: &Expr) -> Vec<Expr> {
        if self.p.batch_first {
            vec![b.clone(), int(d), j.clone()]
        } else {
            vec![int(d), b.clone(), j.clone()]
        }
    }

    /// Runs over the elements of a state.
    fn elements(&self, body: impl FnOnce(&Expr, &Expr) -> Stmt) -> Stmt {
        each("b", self.p.batch, |b| each("j", self.p.hidden, |j| body(b, j)))
    }

    /// One direction: its state, and all its steps.
    fn direction(&self, d: usize) -> Stmt {
        let p = self.p;
        let width = p.cell.gates() * p.hidden;
        let state = State {
            at: d,
            h: local_buffer("h", p.hidden, p),
            c: local_buffer("c", p.hidden, p),
            z: local_buffer("z", width, p),
            reset: local_buffer("reset", p.hidden, p),
        };
        let lstm = self.y_c.is_some();
        let before = matches!(p.cell, Cell::Gru { reset_after: false });
        let kept = [(&state.h, &self.initial, true), (&state.c, &self.initial_cell, lstm)];
        let start = self.elements(|b, j| {
            Stmt::seq(kept.into_iter().filter(|(.., used)| *used).map(|(to, from, _)| {
                let zero = Expr::float(0.0, p.dtype);
                let value = from.as_ref().map(|f| Expr::load(f, self.state_index(d, b, j)));
                Stmt::store(to, vec![b.clone(), j.clone()], value.unwrap_or(zero))
            }))
        });
        let steps = each("step", p.steps, |step| {
            let t = if p.directions[d].backward { int(p.steps) - 1 - step } else { step.clone() };
            self.step(&state, &t)
        });
        let end = self.elements(|b, j| {
            let cell = self.y_c.as_ref().map(|to| (&state.c, to));
            let last = [(&state.h, &self.y_h)].into_iter().chain(cell);
            Stmt::seq(last.map(|(from, to)| {
                let value = Expr::load(from, vec![b.clone(), j.clone()]);
                Stmt::store(to, self.state_index(d, b, j), value)
            }))
        });
        let mut block =
            Block::new(format!("{}_{d}", p.cell.name()), Stmt::seq([start, steps, end]));
        block.allocs = vec![state.h, state.z];
        block.allocs.extend(lstm.then_some(state.c));
        block.allocs.extend(before.then_some(state.reset));
        Stmt::block(Vec::new(), Expr::bool(true), block)
    }

    /// What the inputs contribute to a column of the gates.
    fn input_sum(&self, s: &State, t: &Expr, b: &Expr, column: Expr) -> Expr {
        let p = self.p;
        let row =
            if p.batch_first { b.clone() * int(p.steps) + t } else { t.clone() * int(p.batch) + b };
        let skip = int(s.at * p.cell.gates() * p.hidden);
        Expr::load(&self.input_sums, vec![row, skip + column])
    }

    /// Sets the first `count` columns of the gates to what the inputs contribute.
    fn start_gates(&self, s: &State, t: &Expr, count: usize) -> Stmt {
        each("b", self.p.batch, |b| {
            each("g", count, |g| {
                let column = int(0) + g;
                let value = self.input_sum(s, t, b, column.clone());
                Stmt::store(&s.z, vec![b.clone(), column], value)
            })
        })
    }

    fn step(&self, s: &State, t: &Expr) -> Stmt {
        let p = self.p;
        let (hidden, width) = (p.hidden, p.cell.gates() * p.hidden);

        match p.cell {
            Cell::Rnn | Cell::Lstm { .. } => Stmt::seq([
                self.start_gates(s, t, width),
                self.accumulate(s, &s.h, 0, width),
                self.elements(|b, j| match p.cell {
                    Cell::Rnn => self.rnn(s, t, b, j),
                    _ => self.lstm(s, t, b, j),
                }),
            ]),
            Cell::Gru { reset_after: true } => {
                let own = self.elements(|b, j| {
                    let zero = Expr::float(0.0, p.dtype);
                    let value = self
                        .reset_bias
                        .as_ref()
                        .map_or(zero, |bias| Expr::load(bias, vec![int(s.at), j.clone()]));
                    Stmt::store(&s.z, vec![b.clone(), int(2 * hidden) + j], value)
                });
                Stmt::seq([
                    self.start_gates(s, t, 2 * hidden),
                    own,
                    self.accumulate(s, &s.h, 0, width),
                    self.elements(|b, j| {
                        let sum = self.input_sum(s, t, b, int(2 * hidden) + j);
                        let reset = self.gate(s, 0, self.z(s, b, 1, j));
                        with("n", sum + reset * self.z(s, b, 2, j), |n| self.gru(s, t, b, j, n))
                    }),
                ])
            }
            Cell::Gru { reset_after: false } => Stmt::seq([
                self.start_gates(s, t, width),
                self.accumulate(s, &s.h, 0, 2 * hidden),
                self.elements(|b, j| {
                    let at = vec![b.clone(), j.clone()];
                    let reset = self.gate(s, 0, self.z(s, b, 1, j));
                    Stmt::store(&s.reset, at.clone(), reset * Expr::load(&s.h, at))
                }),
                self.accumulate(s, &s.reset, 2 * hidden, hidden),
                self.elements(|b, j| with("n", self.z(s, b, 2, j), |n| self.gru(s, t, b, j, n))),
            ]),
        }
    }

    /// Adds the product of a state with some columns of the recurrent weights to the gates. Several
    /// examples share what is read of the weights, and go through the columns in parts that stay in
    /// the nearest cache.
    fn accumulate(&self, s: &State, state: &Buffer, from: usize, count: usize) -> Stmt {
        let Some(weights) = &self.weights else { return Stmt::nop() };
        if self.p.batch == 0 || self.p.batch == 1 || count <= COLUMNS {
            return self.products(s, [state, weights], &int(from), count);
        }
        let (whole, rest) = (count / COLUMNS, count % COLUMNS);
        let parts = each("part", whole, |part| {
            let from = int(from) + part.clone() * int(COLUMNS);
            self.products(s, [state, weights], &from, COLUMNS)
        });
        let rest = (rest > 0)
            .then(|| self.products(s, [state, weights], &int(from + whole * COLUMNS), rest));
        Stmt::seq([parts].into_iter().chain(rest))
    }

    /// [`Net::accumulate`] for neighbouring columns.
    fn products(
        &self,
        s: &State,
        [state, weights]: [&Buffer; 2],
        from: &Expr,
        count: usize,
    ) -> Stmt {
        let p = self.p;
        let (whole, rest) = (p.hidden / ROWS, p.hidden % ROWS);
        let parts = [("k", 0, whole, ROWS), ("rest", whole * ROWS, rest, 1)];
        let parts = parts.into_iter().filter(|(_, _, times, _)| *times > 0);
        Stmt::seq(parts.map(|(name, first, times, rows)| {
            each(name, times, |k| {
                each("b", p.batch, |b| {
                    each("g", count, |g| {
                        let column = from.clone() + g;
                        let at = vec![b.clone(), column.clone()];
                        let sum = (0..rows).fold(Expr::load(&s.z, at.clone()), |sum, u| {
                            let row = k.clone() * int(rows) + int(first + u);
                            let factor = Expr::load(state, vec![b.clone(), row.clone()]);
                            let weight = vec![int(s.at), row, column.clone()];
                            sum + factor * Expr::load(weights, weight)
                        });
                        Stmt::store(&s.z, at, sum)
                    })
                })
            })
        }))
    }

    /// The sum of a gate.
    fn z(&self, s: &State, b: &Expr, gate: usize, j: &Expr) -> Expr {
        Expr::load(&s.z, vec![b.clone(), int(gate * self.p.hidden) + j])
    }

    /// An activation of the direction on a sum, within bounds.
    fn gate(&self, s: &State, which: usize, sum: Expr) -> Expr {
        let sum = self.p.clip.iter().fold(sum, |x, &c| x.max(-c).min(c));
        self.p.directions[s.at].activations[which].apply(sum)
    }

    /// Stores the new state and the result, unless the sequence of the example has ended.
    fn put(&self, s: &State, t: &Expr, b: &Expr, j: &Expr, h: &Expr, c: Option<&Expr>) -> Stmt {
        let p = self.p;
        let index = if p.batch_first {
            vec![b.clone(), t.clone(), int(s.at), j.clone()]
        } else {
            vec![t.clone(), int(s.at), b.clone(), j.clone()]
        };
        let cell = c.map(|c| Stmt::store(&s.c, vec![b.clone(), j.clone()], c.clone()));
        let stores = [
            Stmt::store(&s.h, vec![b.clone(), j.clone()], h.clone()),
            Stmt::store(&self.y, index.clone(), h.clone()),
        ];
        let stores = Stmt::seq(stores.into_iter().chain(cell));
        match &self.lengths {
            None => stores,
            Some(lengths) => {
                let length = Expr::load(lengths, vec![b.clone()]);
                let inside = t.clone().cast(length.dtype()).less(length);
                let ended = Stmt::store(&self.y, index, Expr::float(0.0, p.dtype));
                Stmt::if_else(inside, stores, ended)
            }
        }
    }

    fn rnn(&self, s: &State, t: &Expr, b: &Expr, j: &Expr) -> Stmt {
        with("hidden", self.gate(s, 0, self.z(s, b, 0, j)), |h| self.put(s, t, b, j, h, None))
    }

    /// The end of a GRU's step, from the sum of the hidden gate.
    fn gru(&self, s: &State, t: &Expr, b: &Expr, j: &Expr, n: &Expr) -> Stmt {
        with("update", self.gate(s, 0, self.z(s, b, 0, j)), |u| {
            let old = Expr::load(&s.h, vec![b.clone(), j.clone()]);
            let h =
                (Expr::float(1.0, self.p.dtype) - u) * self.gate(s, 1, n.clone()) + u.clone() * old;
            with("hidden", h, |h| self.put(s, t, b, j, h, None))
        })
    }

    /// The sum of a gate with what the gate sees of the cell.
    fn with_cell(&self, s: &State, j: &Expr, gate: usize, cell: &Expr, sum: Expr) -> Expr {
        let Some(peepholes) = &self.peepholes else { return sum };
        let column = int(gate * self.p.hidden) + j;
        sum + Expr::load(peepholes, vec![int(s.at), column]) * cell
    }

    fn lstm(&self, s: &State, t: &Expr, b: &Expr, j: &Expr) -> Stmt {
        let coupled = matches!(self.p.cell, Cell::Lstm { coupled: true });
        let old = Expr::load(&s.c, vec![b.clone(), j.clone()]);

        with("old", old, |old| {
            with(
                "in_gate",
                self.gate(s, 0, self.with_cell(s, j, 0, old, self.z(s, b, 0, j))),
                |i| {
                    let forget = if coupled {
                        Expr::float(1.0, self.p.dtype) - i
                    } else {
                        self.gate(s, 0, self.with_cell(s, j, 2, old, self.z(s, b, 2, j)))
                    };
                    let cell = forget * old + i.clone() * self.gate(s, 1, self.z(s, b, 3, j));
                    with("cell", cell, |c| {
                        let out = self.gate(s, 0, self.with_cell(s, j, 1, c, self.z(s, b, 1, j)));
                        let last = self.p.directions[s.at].activations[2].apply(c.clone());
                        with("hidden", out * last, |h| self.put(s, t, b, j, h, Some(c)))
                    })
                },
            )
        })
    }
}

fn local_buffer(name: &str, width: usize, p: &Recurrent) -> Buffer {
    Buffer::new(name, vec![int(p.batch), int(width)], p.dtype)
}
