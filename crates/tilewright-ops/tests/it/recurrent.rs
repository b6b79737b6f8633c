use tilewright_ir::{DType, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::elementwise::Unary;
use tilewright_ops::linear_attention::{LinearAttention, linear_attention};
use tilewright_ops::recurrent::{Activation, Cell, Direction, Recurrent, recurrent};

use crate::nd::{Extent, Nd, check, refused};

fn activate(a: Activation, x: f64) -> f64 {
    match a {
        Activation::Unary(Unary::Sigmoid) => 1.0 / (1.0 + (-x).exp()),
        Activation::Unary(Unary::Tanh) => x.tanh(),
        Activation::Unary(Unary::Relu) => x.max(0.0),
        Activation::Unary(Unary::HardSigmoid { alpha, beta }) => (alpha * x + beta).clamp(0.0, 1.0),
        Activation::Affine { alpha, beta } => alpha * x + beta,
        Activation::ScaledTanh { alpha, beta } => alpha * (beta * x).tanh(),
        Activation::Unary(_) => panic!("no tests with {a:?}"),
    }
}

/// The operands of a network, as the function takes them.
struct Operands {
    x: Nd,
    /// Zeros where the function has none.
    r: Nd,
    reset_bias: Option<Nd>,
    h: Option<Nd>,
    c: Option<Nd>,
    p: Option<Nd>,
    lengths: Option<Nd>,
}

impl Operands {
    fn random(p: &Recurrent) -> Operands {
        let gates = match p.cell {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        };
        let (d, width) = (p.directions.len(), gates * p.hidden);
        let (steps, batch) = (p.steps.count(), p.batch.count());
        let state = if p.batch_first { [batch, d, p.hidden] } else { [d, batch, p.hidden] };
        let small = |shape: &[usize], seed| Nd::random(shape, seed).map(|v| v / 4.0);
        Operands {
            x: small(&[steps * batch, d * width], 1),
            r: small(&[d, p.hidden, width], 2).map(|v| if p.fed_back { v } else { 0.0 }),
            reset_bias: p.reset_bias.then(|| small(&[d, p.hidden], 3)),
            h: p.initial.then(|| small(&state, 4)),
            c: p.initial_cell.then(|| small(&state, 5)),
            p: p.peepholes.then(|| small(&[d, 3 * p.hidden], 6)),
            // Some are empty, and some longer than the sequence.
            lengths: p.lengths.map(|_| Nd::integers(&[batch], 7, 0, steps as i64 + 1)),
        }
    }

    fn tensors(&self, p: &Recurrent) -> Vec<Tensor> {
        let floats = [&self.reset_bias, &self.h, &self.c, &self.p].into_iter().flatten();
        let weights = p.fed_back.then_some(&self.r);
        let floats = [&self.x].into_iter().chain(weights).chain(floats).map(|v| v.tensor(p.dtype));
        let lengths = self.lengths.iter().zip(p.lengths).map(|(v, dtype)| v.tensor(dtype));
        floats.chain(lengths).collect()
    }
}

/// The definition: one example and one direction after the other.
fn expected(p: &Recurrent, o: &Operands) -> Vec<Nd> {
    let (n, d) = (p.hidden, p.directions.len());
    let (count, batch) = (p.steps.count(), p.batch.count());
    let (all, state) = if p.batch_first {
        (vec![batch, count, d, n], vec![batch, d, n])
    } else {
        (vec![count, d, batch, n], vec![d, batch, n])
    };
    let mut y = Nd::build(&all, |_| 0.0);
    let (mut y_h, mut y_c) = (Nd::build(&state, |_| 0.0), Nd::build(&state, |_| 0.0));
    for (at, direction) in p.directions.iter().enumerate() {
        let gate = |which: usize, x: f64| {
            let x = p.clip.map_or(x, |c| x.clamp(-c, c));
            activate(direction.activations[which], x)
        };
        for b in 0..batch {
            let of_state = |j: usize| if p.batch_first { [b, at, j] } else { [at, b, j] };
            let start = |v: &Option<Nd>, j| v.as_ref().map_or(0.0, |v| v.at(&of_state(j)));
            let mut h: Vec<f64> = (0..n).map(|j| start(&o.h, j)).collect();
            let mut c: Vec<f64> = (0..n).map(|j| start(&o.c, j)).collect();
            let length = o.lengths.as_ref().map_or(count, |l| l.at(&[b]) as usize);
            let length = length.min(count);
            let order: Vec<usize> = if direction.backward {
                (0..length).rev().collect()
            } else {
                (0..length).collect()
            };
            for t in order {
                let row = if p.batch_first { b * count + t } else { t * batch + b };
                let width = o.r.shape[2];
                let x = |gate: usize, j: usize| o.x.at(&[row, at * width + gate * n + j]);
                let r = |h: &[f64], gate: usize, j: usize| -> f64 {
                    (0..n).map(|k| h[k] * o.r.at(&[at, k, gate * n + j])).sum()
                };
                let see =
                    |gate: usize, j: usize| o.p.as_ref().map_or(0.0, |p| p.at(&[at, gate * n + j]));
                let old = h.clone();
                for j in 0..n {
                    let sum = |gate: usize| x(gate, j) + r(&old, gate, j);
                    h[j] = match p.cell {
                        Cell::Rnn => gate(0, sum(0)),
                        Cell::Gru { reset_after } => {
                            let u = gate(0, sum(0));
                            let reset = |j: usize| gate(0, x(1, j) + r(&old, 1, j));
                            let hidden = if reset_after {
                                let bias = o.reset_bias.as_ref().map_or(0.0, |v| v.at(&[at, j]));
                                x(2, j) + reset(j) * (r(&old, 2, j) + bias)
                            } else {
                                let kept: Vec<f64> = (0..n).map(|k| reset(k) * old[k]).collect();
                                x(2, j) + r(&kept, 2, j)
                            };
                            (1.0 - u) * gate(1, hidden) + u * old[j]
                        }
                        Cell::Lstm { coupled } => {
                            let i = gate(0, sum(0) + see(0, j) * c[j]);
                            let f =
                                if coupled { 1.0 - i } else { gate(0, sum(2) + see(2, j) * c[j]) };
                            c[j] = f * c[j] + i * gate(1, sum(3));
                            let out = gate(0, sum(1) + see(1, j) * c[j]);
                            out * activate(direction.activations[2], c[j])
                        }
                    };
                    let index = if p.batch_first { [b, t, at, j] } else { [t, at, b, j] };
                    y.set(&index, h[j]);
                }
            }
            for j in 0..n {
                y_h.set(&of_state(j), h[j]);
                y_c.set(&of_state(j), c[j]);
            }
        }
    }
    match p.cell {
        Cell::Lstm { .. } => vec![y, y_h, y_c],
        _ => vec![y, y_h],
    }
}

#[track_caller]
fn compare(p: &Recurrent) {
    let operands = Operands::random(p);
    let expected = expected(p, &operands);
    let expected: Vec<_> = expected.iter().map(|v| (v, p.dtype)).collect();
    check(recurrent(p), &operands.tensors(p), &expected);
}

const SIGMOID: Activation = Activation::Unary(Unary::Sigmoid);
const TANH: Activation = Activation::Unary(Unary::Tanh);

fn plain(cell: Cell, steps: usize, batch: usize, hidden: usize) -> Recurrent {
    let activations = match cell {
        Cell::Rnn => vec![TANH],
        Cell::Gru { .. } => vec![SIGMOID, TANH],
        Cell::Lstm { .. } => vec![SIGMOID, TANH, TANH],
    };
    Recurrent {
        cell,
        dtype: DType::F64,
        steps: steps.into(),
        batch: batch.into(),
        hidden,
        directions: vec![Direction { backward: false, activations }],
        batch_first: false,
        clip: None,
        reset_bias: false,
        fed_back: true,
        initial: false,
        initial_cell: false,
        peepholes: false,
        lengths: None,
    }
}

const CELLS: [Cell; 5] = [
    Cell::Rnn,
    Cell::Gru { reset_after: false },
    Cell::Gru { reset_after: true },
    Cell::Lstm { coupled: false },
    Cell::Lstm { coupled: true },
];

#[test]
fn every_cell_is_its_definition() {
    for cell in CELLS {
        for (steps, batch, hidden) in [(3, 2, 5), (1, 1, 1), (4, 3, 8), (0, 2, 3), (2, 2, 70)] {
            compare(&plain(cell, steps, batch, hidden));
        }
    }
}

#[test]
fn every_option_counts() {
    for cell in CELLS {
        let lstm = matches!(cell, Cell::Lstm { .. });
        let full = plain(cell, 4, 3, 6);
        let forward = full.directions[0].clone();
        let other: Vec<Activation> = [
            Activation::Unary(Unary::HardSigmoid { alpha: 0.3, beta: 0.4 }),
            Activation::ScaledTanh { alpha: 1.5, beta: 0.5 },
            Activation::Affine { alpha: 0.5, beta: 0.25 },
        ][..cell.activations()]
            .to_vec();
        let back = Direction { backward: true, activations: other };
        for directions in [vec![back.clone()], vec![forward, back]] {
            for batch_first in [false, true] {
                compare(&Recurrent {
                    directions: directions.clone(),
                    batch_first,
                    clip: Some(0.4),
                    reset_bias: cell == Cell::Gru { reset_after: true },
                    initial: true,
                    initial_cell: lstm,
                    peepholes: lstm,
                    lengths: Some(DType::I32),
                    ..full.clone()
                });
            }
        }
        compare(&Recurrent { fed_back: false, initial: true, initial_cell: lstm, ..full.clone() });
        compare(&Recurrent { lengths: Some(DType::I64), dtype: DType::F32, ..full });
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let p = plain(Cell::Rnn, 2, 2, 3);
    let lstm = plain(Cell::Lstm { coupled: false }, 2, 2, 3);
    let three = vec![p.directions[0].clone(); 3];
    let messages = [
        refused(recurrent(&Recurrent { dtype: DType::F16, ..p.clone() })),
        refused(recurrent(&Recurrent { lengths: Some(DType::F32), ..p.clone() })),
        refused(recurrent(&Recurrent { peepholes: true, ..p.clone() })),
        refused(recurrent(&Recurrent { reset_bias: true, ..lstm.clone() })),
        refused(recurrent(&Recurrent { directions: three, ..p.clone() })),
        refused(recurrent(&Recurrent { directions: p.directions.clone(), ..lstm })),
        refused(recurrent(&Recurrent { steps: (1 << 20).into(), batch: (1 << 20).into(), ..p })),
    ];
    expect_test::expect![[r#"
        unsupported: rnn: float16 is not supported
        unsupported: rnn: float32 is not supported
        input: rnn: there is an operand that only others have
        input: lstm: there is an operand that only others have
        input: rnn: 3 directions
        input: lstm: 1 activations, not 3
        input: tensor `x`: the shape [1099511627776, 3] has more than 2^31 - 1 elements
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}

#[test]
fn attention_without_softmax() {
    let (batch, steps, heads, share, d, e) = (2, 3, 2, 2, 3, 4);
    let small = |shape: &[usize], seed| Nd::random(shape, seed).map(|v| v / 4.0);
    let q = small(&[batch, steps, heads * share * d], 1);
    let (k, v) = (small(&[batch, steps, heads * d], 2), small(&[batch, steps, heads * e], 3));
    let state = small(&[batch, heads, d, e], 4);
    for decay_width in [0, heads, heads * d] {
        for beta_width in [0, 1, heads] {
            let decay = small(&[batch, steps, decay_width.max(1)], 5);
            let beta = small(&[batch, steps, beta_width.max(1)], 6);
            let given = beta_width != 1;
            let mut y = Nd::build(&[batch, steps, heads * share * e], |_| 0.0);
            let mut last =
                Nd::build(&[batch, heads, d, e], |i| if given { state.at(i) } else { 0.0 });
            for (b, h) in (0..batch * heads).map(|n| (n / heads, n % heads)) {
                let mut s = Nd::build(&[d, e], |i| last.at(&[b, h, i[0], i[1]]));
                for t in 0..steps {
                    let key = |i: usize| k.at(&[b, t, h * d + i]);
                    let by = |i: usize| match decay_width {
                        0 => 0.0,
                        w if w == heads => decay.at(&[b, t, h]),
                        _ => decay.at(&[b, t, h * d + i]),
                    };
                    s = Nd::build(&[d, e], |at| s.at(at) * by(at[0]).exp());
                    let new = |j: usize| {
                        let value = v.at(&[b, t, h * e + j]);
                        let known: f64 = (0..d).map(|i| s.at(&[i, j]) * key(i)).sum();
                        match beta_width {
                            0 => value,
                            1 => beta.at(&[b, t, 0]) * (value - known),
                            _ => beta.at(&[b, t, h]) * (value - known),
                        }
                    };
                    s = Nd::build(&[d, e], |at| s.at(at) + key(at[0]) * new(at[1]));
                    for (g, j) in (0..share * e).map(|n| (n / e, n % e)) {
                        let at = h * share + g;
                        let of = |i: usize| q.at(&[b, t, at * d + i]);
                        let sum: f64 = (0..d).map(|i| s.at(&[i, j]) * of(i)).sum();
                        y.set(&[b, t, at * e + j], 0.5 * sum);
                    }
                }
                for (i, j) in (0..d * e).map(|n| (n / e, n % e)) {
                    last.set(&[b, h, i, j], s.at(&[i, j]));
                }
            }
            let of = |x: &Nd| Operand::new(&x.shape, DType::F64);
            let p = LinearAttention {
                query: of(&q),
                key: of(&k),
                value: of(&v),
                state: given.then(|| of(&state)),
                decay: (decay_width > 0).then(|| of(&decay)),
                beta: (beta_width > 0).then(|| of(&beta)),
                query_heads: heads * share,
                heads,
                scale: 0.5,
                state_type: DType::F64,
            };
            let mut inputs = vec![&q, &k, &v];
            inputs.extend(given.then_some(&state));
            inputs.extend((decay_width > 0).then_some(&decay));
            inputs.extend((beta_width > 0).then_some(&beta));
            let inputs: Vec<Tensor> = inputs.iter().map(|x| x.tensor(DType::F64)).collect();
            let expected = [(&y, DType::F64), (&last, DType::F64)];
            check(linear_attention(&p), &inputs, &expected);
        }
    }
}
