//! Attention without softmax: a matrix for each head remembers what keys and values came, one step
//! after the other.
//!
//! ```text
//! S = decay S                          row by row
//! u = v, or beta (v - S' k)            what is new of the value
//! S = S + k u'
//! y = scale S' q
//! ```

use tilewright_ir::{Buffer, DType, Error, Expr, Intrin, Result, Stmt, TensorFunc, Var};

use crate::loops::{cells, load, store};
use crate::operand::{Operand, call, int, require_float, working};
use crate::te::{self, Tensor};

/// Attention by a state for each head of keys and values, `D` by `E`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearAttention {
    /// `[B, T, Q * D]`.
    pub query: Operand,
    /// `[B, T, H * D]`.
    pub key: Operand,
    /// `[B, T, H * E]`.
    pub value: Operand,
    /// `[B, H, D, E]`, if there is an initial state.
    pub state: Option<Operand>,
    /// Logarithms of what remains of the state, `[B, T, H]` or `[B, T, H * D]`.
    pub decay: Option<Operand>,
    /// The share of what is new, `[B, T, H]` or `[B, T, 1]`, where the state's own answer is taken
    /// off the value.
    pub beta: Option<Operand>,
    /// Heads of queries, `Q`: a multiple of `H`.
    pub query_heads: usize,
    /// Heads of keys and values, `H`.
    pub heads: usize,
    /// Factor of the result.
    pub scale: f64,
    /// Type of the state that is returned.
    pub state_type: DType,
}

/// See [`LinearAttention`]. Parameters: query, key, value, then state, decay and beta as far as they
/// are given, the result `[B, T, Q * E]`, the last state `[B, H, D, E]`.
///
/// # Errors
/// [`Error::Input`] where shapes do not fit, [`Error::Unsupported`] for other types than floats.
pub fn linear_attention(p: &LinearAttention) -> Result<TensorFunc> {
    let name = "linear_attention";
    require_float(name, p.state_type)?;
    let optional = [&p.state, &p.decay, &p.beta].into_iter().flatten();
    for x in [&p.query, &p.key, &p.value].into_iter().chain(optional) {
        require_float(name, x.dtype)?;
        x.fixed(name)?;
    }
    let (&[batch, steps, keys], &[_, _, values]) =
        (&p.key.fixed(name)?[..], &p.value.fixed(name)?[..])
    else {
        return Err(does_not_fit(&p.value, p, name));
    };
    if p.heads == 0 || !keys.is_multiple_of(p.heads) || !values.is_multiple_of(p.heads) {
        return Err(does_not_fit(&p.value, p, name));
    }
    if p.query_heads == 0 || !p.query_heads.is_multiple_of(p.heads) {
        return Err(does_not_fit(&p.query, p, name));
    }
    let (d, e, share) = (keys / p.heads, values / p.heads, p.query_heads / p.heads);
    let state_shape = [batch, p.heads, d, e];
    let mut widths: Vec<(&Operand, [usize; 2])> =
        vec![(&p.query, [p.query_heads * d; 2]), (&p.value, [values; 2])];
    widths.extend(p.decay.as_ref().map(|x| (x, [p.heads, keys])));
    widths.extend(p.beta.as_ref().map(|x| (x, [p.heads, 1])));
    for (x, [one, other]) in widths {
        if x.shape != [batch, steps, one] && x.shape != [batch, steps, other] {
            return Err(does_not_fit(x, p, name));
        }
    }
    if let Some(x) = p.state.as_ref().filter(|x| x.shape != state_shape) {
        return Err(does_not_fit(x, p, name));
    }
    let [query, key, value] =
        [(&p.query, "query"), (&p.key, "key"), (&p.value, "value")].map(|(x, n)| x.placeholder(n));
    let (state, decay, beta) =
        (given(&p.state, "state"), given(&p.decay, "decay"), given(&p.beta, "beta"));
    let out = te::placeholder(name, &[batch, steps, p.query_heads * e], p.query.dtype);
    let last = te::placeholder("present_state", &state_shape, p.state_type);
    let mut all: Vec<Tensor> = vec![query.clone(), key.clone(), value.clone()];
    all.extend([&state, &decay, &beta].into_iter().flatten().cloned());
    all.extend([out.clone(), last.clone()]);
    all.iter().try_for_each(te::check_type)?;
    let work = working(p.query.dtype);
    let s = Buffer::new("s", vec![int(d), int(e)], work);
    // The new part of a value; what the state answers to a query.
    let new = Buffer::new("new", vec![int(e)], work);
    let answer = Buffer::new("answer", vec![int(e)], work);
    let allocs = vec![s.clone(), new.clone(), answer.clone()];
    let params: Vec<&Buffer> = all.iter().map(Tensor::buffer).collect();
    cells(name, &params, &te::dims(&[batch, p.heads]), allocs, |at| {
        let (b, head) = (&at[0], &at[1]);
        let [i, j, t, g] = ["i", "j", "t", "g"].map(Var::index);
        let (row, column, step) = (i.expr(), j.expr(), t.expr());
        let of = |x: &Tensor, width: usize, k: &Expr| {
            x.at([b.clone(), step.clone(), head.clone() * int(width) + k]).cast(work)
        };
        let first = state
            .as_ref()
            .map(|x| x.at(vec![b.clone(), head.clone(), row.clone(), column.clone()]).cast(work));
        let start = serial(
            &i,
            d,
            serial(
                &j,
                e,
                store(&s, &[&row, &column], first.unwrap_or_else(|| Expr::float(0.0, work))),
            ),
        );
        let mut body = Vec::new();
        if let Some(decay) = &decay {
            let per_row = decay.shape()[2] == keys && d > 1;
            let by = if per_row { of(decay, d, &row) } else { of(decay, 1, &Expr::i32(0)) };
            let kept = Var::new("kept", work);
            let fade = serial(
                &j,
                e,
                store(&s, &[&row, &column], load(&s, &[&row, &column]) * kept.expr()),
            );
            let fade = Stmt::let_in(&kept, call(Intrin::Exp, by), fade);
            body.push(serial(&i, d, fade));
        }
        body.push(serial(&j, e, store(&new, &[&column], of(&value, e, &column))));
        if let Some(beta) = &beta {
            let known = load(&new, &[&column]) - load(&s, &[&row, &column]) * of(&key, d, &row);
            body.push(serial(&i, d, serial(&j, e, store(&new, &[&column], known))));
            let share = match beta.shape()[2].known() {
                Some(1) => beta.at([b.clone(), step.clone(), Expr::i32(0)]).cast(work),
                _ => of(beta, 1, &Expr::i32(0)),
            };
            body.push(serial(&j, e, store(&new, &[&column], load(&new, &[&column]) * share)));
        }
        body.push(serial(
            &i,
            d,
            serial(
                &j,
                e,
                store(
                    &s,
                    &[&row, &column],
                    load(&s, &[&row, &column]) + of(&key, d, &row) * load(&new, &[&column]),
                ),
            ),
        ));
        let which = head.clone() * int(share) + g.expr();
        let asked = which.clone() * int(d) + &row;
        let asked = query.at([b.clone(), step.clone(), asked]).cast(work);
        let place = vec![b.clone(), step.clone(), which * int(e) + &column];
        let result = (load(&answer, &[&column]) * p.scale).cast(p.query.dtype);
        body.push(serial(
            &g,
            share,
            Stmt::seq([
                serial(&j, e, store(&answer, &[&column], Expr::float(0.0, work))),
                serial(
                    &i,
                    d,
                    serial(
                        &j,
                        e,
                        store(
                            &answer,
                            &[&column],
                            load(&answer, &[&column]) + load(&s, &[&row, &column]) * asked,
                        ),
                    ),
                ),
                serial(&j, e, Stmt::store(out.buffer(), place, result)),
            ]),
        ));
        let end = Stmt::store(
            last.buffer(),
            vec![b.clone(), head.clone(), row.clone(), column.clone()],
            load(&s, &[&row, &column]).cast(p.state_type),
        );
        Stmt::seq([start, serial(&t, steps, Stmt::seq(body)), serial(&i, d, serial(&j, e, end))])
    })
}

fn does_not_fit(what: &Operand, p: &LinearAttention, name: &str) -> Error {
    Error::input(format!("{name}: {what} does not fit {} heads of {}", p.heads, p.key))
}

fn given(x: &Option<Operand>, name: &str) -> Option<Tensor> {
    x.as_ref().map(|x| x.placeholder(name))
}

fn serial(v: &Var, n: usize, body: Stmt) -> Stmt {
    Stmt::serial(v, int(n), body)
}
