//! `float64` on devices that do not have it: sums of two `float32`.
//!
//! A value is the pair of what rounds to it and of what is left: 48 bits of the 53, and the range of `float32`
//! (`arithmetic`).
//!
//! Each step of such arithmetic is a variable before the statement, or within the side of a choice that it belongs to.
//! Memory, variables and constants become two of each; what a function is lent as its workspace holds the first parts,
//! and behind them the others. Other memory that is handed over, whose bytes others know, cannot: such a function is
//! refused.

mod arithmetic;

use tilewright_ir::hash::HashMap;

use tilewright_ir::visit::{fold_expr_children, fold_func, fold_stmt_children};
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, Intrin, Param, Result, Stmt,
    StmtKind, Tensor, TensorFunc, Var,
};

use arithmetic::{Pair, Steps, call, number, parts, single};

/// A function without `float64`; itself, where it has none.
///
/// # Errors
/// [`Error::Unsupported`] for what pairs cannot do.
pub(super) fn without_doubles(func: &TensorFunc) -> Result<TensorFunc> {
    if !has_doubles(func) {
        return Ok(func.clone());
    }
    let mut fold = Pairs::default();
    let mut views = Vec::new();
    for b in func.split_params().1.iter().filter_map(Param::buffer) {
        if is_double(b.dtype()) && b.strides.is_empty() && b.elem_offset.is_none() {
            views.extend(fold.share(b));
        }
    }
    let mut new = fold_func(&mut fold, func);
    let body = new.body.clone();
    new.body =
        views.into_iter().fold(body, |body, buffer| Stmt::new(StmtKind::Declare { buffer, body }));
    match fold.refused {
        Some(what) => Err(Error::unsupported(format!("this device has no float64: {what}"))
            .help("pairs of float32 stand for it within a function; choose a device that has it")),
        None => Ok(new),
    }
}

fn has_doubles(func: &TensorFunc) -> bool {
    let mut found = func.buffers().any(|b| is_double(b.dtype()));
    func.body.for_each(|s| {
        found |= match s.kind() {
            StmtKind::Allocate { buffer, .. }
            | StmtKind::Constant { buffer, .. }
            | StmtKind::Declare { buffer, .. } => is_double(buffer.dtype()),
            _ => false,
        }
    });
    found || func.body.any_expr(|e| is_double(e.dtype()))
}

fn is_double(dtype: DType) -> bool {
    dtype.scalar() == DType::F64
}

/// The recursion.
#[derive(Default)]
struct Pairs {
    buffers: HashMap<Buffer, [Buffer; 2]>,
    vars: HashMap<Var, Pair>,
    /// Those before the statement, or of the lazy side, that is folded.
    steps: Steps,
    refused: Option<String>,
}

impl Pairs {
    fn refuse(&mut self, what: impl FnOnce() -> String, dtype: DType) -> Pair {
        if self.refused.is_none() {
            self.refused = Some(what());
        }
        Pair::constant(0.0, dtype)
    }

    /// The two buffers that hold what one of doubles holds.
    fn memory(&mut self, b: &Buffer) -> [Buffer; 2] {
        let both = ["high", "low"].map(|part| {
            b.derive_storage(|d| {
                d.name = format!("{}_{part}", b.name).into();
                d.dtype = DType::F32.with_lanes(d.dtype.lanes);
            })
        });
        self.buffers.insert(b.clone(), both.clone());
        both
    }

    /// The two buffers into which lent memory is divided.
    fn share(&mut self, b: &Buffer) -> [Buffer; 2] {
        let count =
            b.shape.iter().fold(Expr::int(1, DType::I64), |n, d| n * d.clone().cast(DType::I64));
        let part = |offset: Option<Expr>| {
            b.derive(|d| {
                d.dtype = DType::F32.with_lanes(d.dtype.lanes);
                d.elem_offset = offset;
            })
        };
        let both = [part(None), part(Some(count))];
        self.buffers.insert(b.clone(), both.clone());
        both
    }

    /// Another view of memory that is two.
    fn view(&mut self, b: &Buffer) -> Option<[Buffer; 2]> {
        if let Some(known) = self.buffers.get(b) {
            return Some(known.clone());
        }
        let other = self.buffers.iter().find(|(old, _)| old.data == b.data)?;
        let both = other.1.clone().map(|part| {
            b.derive(|d| {
                d.name = part.name.clone();
                d.dtype = part.dtype();
                d.data = part.data.clone();
                d.elem_offset = match (&part.elem_offset, &b.elem_offset) {
                    (Some(x), Some(y)) => Some(x + y),
                    (x, y) => x.clone().or_else(|| y.clone()),
                };
            })
        });
        self.buffers.insert(b.clone(), both.clone());
        Some(both)
    }

    /// What is computed with the steps of its own.
    fn apart<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> (T, Steps) {
        let outer = std::mem::take(&mut self.steps);
        let made = make(self);
        (made, std::mem::replace(&mut self.steps, outer))
    }

    /// A double in two parts.
    fn pair(&mut self, e: &Expr) -> Pair {
        let dtype = e.dtype();
        match e.kind() {
            ExprKind::Float(v) => Pair::constant(*v, dtype),
            ExprKind::Undef => Pair::constant(0.0, dtype),
            ExprKind::Var(v) => match self.vars.get(v) {
                Some(pair) => pair.clone(),
                None => self.refuse(|| format!("`{}` is one", v.name()), dtype),
            },
            ExprKind::Load(buffer, indices) => {
                let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
                let Some(both) = self.view(buffer) else {
                    return self.refuse(|| format!("`{}` holds them", buffer.name), dtype);
                };
                let [high, low] = both.map(|part| Expr::load(&part, indices.clone()));
                self.steps.kept(Pair { high, low })
            }
            ExprKind::Broadcast(a) => self.pair(a).map(|part| Expr::broadcast(part, dtype.lanes)),
            ExprKind::Select(c, t, f) => {
                let (c, t, f) = (self.expr(c), self.pair(t), self.pair(f));
                self.steps.choice(c, t, f)
            }
            ExprKind::IfThenElse(c, t, f) => {
                let c = self.expr(c);
                let c = self.steps.keep(c);
                let [t, f] = [t, f].map(|side| {
                    let (pair, steps) = self.apart(|own| own.pair(side));
                    pair.map(|part| steps.within(part))
                });
                let chosen = t.with(f, |t, f| Expr::if_then_else(c.clone(), t, f));
                self.steps.kept(chosen)
            }
            ExprKind::Let(var, value, body) => {
                self.bind(var, value);
                self.pair(body)
            }
            ExprKind::Cast(a) => self.widened(a, dtype),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.pair(a), self.pair(b));
                match op {
                    BinOp::Add => self.steps.add(&a, &b),
                    BinOp::Sub => self.steps.sub(&a, &b),
                    BinOp::Mul => self.steps.mul(&a, &b),
                    BinOp::Div => self.steps.div(&a, &b),
                    BinOp::Min | BinOp::Max => {
                        let first = if *op == BinOp::Min { a.less(&b) } else { b.less(&a) };
                        let nan = call(Intrin::IsNan, &a.high);
                        self.steps.choice(first.or(nan), a, b)
                    }
                    _ => self.refuse(|| format!("`{}` of them", op.symbol()), dtype),
                }
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => match &args[..] {
                [x] => {
                    let x = self.pair(x);
                    self.function(*op, &x, dtype)
                }
                _ => self.refuse(|| format!("`{}` of them", op.name()), dtype),
            },
            _ => self.refuse(|| "their bits are not those of a pair".to_owned(), dtype),
        }
    }

    fn function(&mut self, op: Intrin, x: &Pair, dtype: DType) -> Pair {
        let steps = &mut self.steps;
        match op {
            Intrin::Abs => steps.abs(x),
            Intrin::Floor => steps.floor(x),
            Intrin::Ceil => steps.ceil(x),
            Intrin::Trunc => steps.trunc(x),
            Intrin::Round => steps.round(x),
            Intrin::NearbyInt => steps.nearby(x),
            Intrin::Sqrt => steps.sqrt(x),
            Intrin::Rsqrt => {
                let root = steps.sqrt(x);
                steps.div(&Pair::exactly(number(1.0, &x.high)), &root)
            }
            Intrin::Exp => steps.along(op, x, |_, y| y.clone()),
            Intrin::Log => steps.along(op, x, |x, _| number(1.0, x) / x),
            Intrin::Sin => {
                let x = steps.turned(x);
                steps.along(op, &x, |x, _| call(Intrin::Cos, x))
            }
            Intrin::Cos => {
                let x = steps.turned(x);
                steps.along(op, &x, |x, _| number(-0.0, x) - call(Intrin::Sin, x))
            }
            _ => self.refuse(|| format!("`{}` of them", op.name()), dtype),
        }
    }

    /// Gives a variable its value.
    fn bind(&mut self, var: &Var, value: &Expr) {
        if is_double(value.dtype()) {
            let pair = self.pair(value);
            let pair = self.steps.kept(pair);
            self.vars.insert(var.clone(), pair);
        } else {
            let value = self.expr(value);
            self.steps.0.push((var.clone(), value));
        }
    }

    /// A value of another type as a double.
    fn widened(&mut self, a: &Expr, to: DType) -> Pair {
        let from = a.dtype();
        if is_double(from) {
            return self.pair(a);
        }
        let x = self.expr(a);
        let x = self.steps.keep(x);
        let high = self.steps.keep(x.clone().cast(single(to)));
        if !from.is_int() || from.bits <= 16 {
            return Pair::exactly(high);
        }
        // In 64 bits: the nearest `float32` of an integer may be none of its type.
        let wide = if from.bits < 64 { DType::I64 } else { from.scalar() }.with_lanes(to.lanes);
        let signed = DType::I64.with_lanes(to.lanes);
        let rest = (x.cast(wide) - high.clone().cast(wide)).cast(signed);
        self.steps.renormed(&high, rest.cast(single(to)))
    }

    /// A double as a value of another type.
    fn narrowed(&mut self, x: &Pair, to: DType) -> Expr {
        let limits = to.scalar().min_int().zip(to.scalar().max_int());
        let Some((least, most)) = limits.filter(|_| !to.is_bool()) else {
            return x.high.clone().cast(to);
        };
        let wide = DType::I64.with_lanes(to.lanes);
        let whole = self.steps.trunc(x);
        let sum = whole.high.cast(wide) + whole.low.cast(wide);
        let constant = |v: i128| {
            let one = Expr::int(v as i64, DType::I64);
            if to.lanes == 1 { one } else { Expr::broadcast(one, to.lanes) }
        };
        let above = sum.max(constant(least));
        let within = if to.bits < 64 { above.min(constant(most)) } else { above };
        // So large ones have no digits below, and may be none of 64 bits.
        let limit = number(2f64.powi(62), &x.high);
        let is_small = call(Intrin::Abs, &x.high).less(limit);
        Expr::select(is_small, within.cast(to), x.high.clone().cast(to))
    }

    /// A side that is computed only where it is asked for.
    fn lazy(&mut self, e: &Expr) -> Expr {
        let (e, steps) = self.apart(|own| own.expr(e));
        steps.within(e)
    }
}

impl Fold for Pairs {
    /// A parameter: what is lent is twice as many numbers.
    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        match self.buffers.get(b) {
            Some([high, low]) => {
                high.derive(|d| d.shape = low.elem_offset.iter().map(|n| n * 2).collect())
            }
            None => b.clone(),
        }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Cast(a) if is_double(a.dtype()) && !is_double(e.dtype()) => {
                let x = self.pair(a);
                self.narrowed(&x, e.dtype())
            }
            ExprKind::Binary(op, a, b) if op.is_compare() && is_double(a.dtype()) => {
                let (a, b) = (self.pair(a), self.pair(b));
                Pair::compare(*op, &a, &b).unwrap_or_else(|| e.clone())
            }
            ExprKind::Call(CallTarget::Intrin(op), args) if op.is_predicate() => match &args[..] {
                [x] if is_double(x.dtype()) => call(*op, &self.pair(x).high),
                _ => fold_expr_children(self, e),
            },
            // What is left here is not one part of it alone.
            _ if is_double(e.dtype()) => self.refuse(|| format!("`{e}`"), e.dtype()).high,
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let (a, b) = (self.expr(a), self.lazy(b));
                Expr::binary(*op, a, b)
            }
            ExprKind::IfThenElse(c, t, f) => {
                let (c, t, f) = (self.expr(c), self.lazy(t), self.lazy(f));
                Expr::if_then_else(c, t, f)
            }
            // Before steps that may use it.
            ExprKind::Let(var, value, body) => {
                self.bind(var, value);
                self.expr(body)
            }
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let (new, steps) = self.apart(|own| own.statement(s));
        steps.before(new)
    }
}

impl Pairs {
    fn statement(&mut self, s: &Stmt) -> Stmt {
        let spanned = |kind: StmtKind| Stmt::spanned(kind, s.span());
        match s.kind() {
            StmtKind::Store { buffer, indices, value } if is_double(value.dtype()) => {
                let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
                let Some(both) = self.view(buffer) else {
                    self.refuse(|| format!("`{}` holds them", buffer.name), value.dtype());
                    return s.clone();
                };
                // Both are computed before one is stored, since the value may be what is there.
                let value = self.pair(value);
                let Pair { high, low } = self.steps.kept(value);
                Stmt::seq(both.into_iter().zip([high, low]).map(|(buffer, value)| {
                    spanned(StmtKind::Store { buffer, indices: indices.clone(), value })
                }))
            }
            StmtKind::Allocate { buffer, annotations, body } if is_double(buffer.dtype()) => {
                let both = self.memory(buffer);
                let body = self.stmt(body);
                both.into_iter().fold(body, |body, buffer| {
                    let annotations = annotations.clone();
                    spanned(StmtKind::Allocate { buffer, annotations, body })
                })
            }
            StmtKind::Constant { buffer, value, body } if is_double(buffer.dtype()) => {
                let [high, low] = self.memory(buffer);
                let Some([first, rest]) = parts_of(value) else {
                    self.refuse(|| format!("`{}` holds them", buffer.name), buffer.dtype());
                    return s.clone();
                };
                let body = self.stmt(body);
                let body = spanned(StmtKind::Constant { buffer: low, value: rest, body });
                spanned(StmtKind::Constant { buffer: high, value: first, body })
            }
            StmtKind::Declare { buffer, body } if is_double(buffer.dtype()) => {
                let Some(both) = self.view(buffer) else {
                    // Memory that is handed over: refused where it is accessed.
                    return fold_stmt_children(self, s);
                };
                let body = self.stmt(body);
                both.into_iter()
                    .fold(body, |body, buffer| spanned(StmtKind::Declare { buffer, body }))
            }
            StmtKind::Let { var, value, body } if is_double(value.dtype()) => {
                self.bind(var, value);
                self.stmt(body)
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

/// The parts of a tensor of doubles.
fn parts_of(value: &Tensor) -> Option<[Tensor; 2]> {
    let cells = value.as_slice::<f64>()?;
    let part = |k: usize| {
        let cells: Vec<f32> = cells.iter().map(|v| parts(*v)[k]).collect();
        Tensor::from_slice(value.shape(), &cells).ok()
    };
    Some([part(0)?, part(1)?])
}

#[cfg(test)]
mod tests {
    use tilewright_interp::{Arg, RunOptions, run_func};
    use tilewright_ir::func::SCRATCH;
    use tilewright_ir::{Attr, ForKind, Range};

    use super::*;

    const COUNT: usize = 24;

    /// What `f` makes of doubles, in two parts: `X[i] / 3`, `Y[i] / 7` and the integer `Z[i]` are its arguments.
    fn doubles(f: impl Fn(Expr, Expr, Expr) -> Expr) -> TensorFunc {
        let n = COUNT as i64;
        let [x, y, high, low] =
            ["X", "Y", "high", "low"].map(|b| Buffer::with_extents(b, &[n], DType::F32));
        let z = Buffer::with_extents("Z", &[n], DType::I64);
        let [kept, lent] = ["kept", "lent"].map(|b| Buffer::with_extents(b, &[n], DType::F64));
        let (i, v) = (Var::index("i"), Var::new("v", DType::F64));
        let at = || vec![i.expr()];
        let double = |e: Expr| e.cast(DType::F64);
        let (a, b) = (double(Expr::load(&x, at())) / 3.0, double(Expr::load(&y, at())) / 7.0);
        let value = f(a, b, double(Expr::load(&z, at())));
        let first = v.expr().cast(DType::F32);
        let body = Stmt::seq([
            Stmt::store(&kept, at(), value),
            Stmt::store(&lent, at(), Expr::load(&kept, at()) + 1.0),
            Stmt::store(
                &kept,
                at(),
                Expr::load(&kept, at()) * 0.5 + Expr::load(&lent, at()) * 0.5 - 0.5,
            ),
            Stmt::let_in(
                &v,
                Expr::load(&kept, at()),
                Stmt::seq([
                    Stmt::store(&high, at(), first.clone()),
                    Stmt::store(&low, at(), (v.expr() - double(first)).cast(DType::F32)),
                ]),
            ),
        ]);
        let over = Stmt::for_loop(&i, Range::upto(Expr::i32(COUNT as i32)), ForKind::Serial, body);
        let params = [&x, &y, &z, &high, &low, &lent].map(Param::tensor).to_vec();
        let mut func = TensorFunc::new(params, Stmt::allocate(&kept, over));
        func.attrs.insert(SCRATCH.into(), Attr::Int(1));
        func
    }

    fn run(func: &TensorFunc, x: &[f32], y: &[f32], z: &[i64]) -> Vec<f64> {
        let given = |t: Result<Tensor>| Arg::Tensor(t.expect("a tensor"));
        let args = [
            given(Tensor::from_slice(&[COUNT], x)),
            given(Tensor::from_slice(&[COUNT], y)),
            given(Tensor::from_slice(&[COUNT], z)),
            Arg::Fresh(None),
            Arg::Fresh(None),
            Arg::Fresh(None),
        ];
        let done = run_func(func, &args, &RunOptions::default());
        let mut outputs = done.unwrap_or_else(|e| panic!("{}", e.render())).outputs;
        outputs.truncate(2);
        let parts: Vec<Vec<f32>> =
            outputs.iter().map(|o| o.tensor.as_slice::<f32>().expect("numbers").to_vec()).collect();
        (0..COUNT).map(|k| f64::from(parts[0][k]) + f64::from(parts[1][k])).collect()
    }

    #[test]
    fn pairs_keep_forty_bits_of_doubles() {
        let mut x: Vec<f32> = (0..COUNT).map(|k| (k as f32 * 0.7 - 9.0).powi(3) + 0.1).collect();
        let mut y: Vec<f32> = (0..COUNT).map(|k| 31.0 / (k as f32 + 0.5) - 4.0).collect();
        let z: Vec<i64> = (0..COUNT as i64).map(|k| (k - 9) * 0x0123_4567_89ab * (1 + k)).collect();
        let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0, -0.0, 1e30, 10.5, -7.5];
        x[..special.len()].copy_from_slice(&special);
        y[4..4 + special.len()].copy_from_slice(&special);
        let one = |op: Intrin| move |a: Expr, _: Expr, _: Expr| Expr::intrin(op, vec![a]);
        let binary = |op: BinOp| move |a: Expr, b: Expr, _: Expr| Expr::binary(op, a, b);
        let truth = |op: BinOp| {
            move |a: Expr, b: Expr, _: Expr| {
                Expr::binary(op, a.clone(), b).cast(DType::F64) + a * 0.0
            }
        };
        type Case = (&'static str, Box<dyn Fn(Expr, Expr, Expr) -> Expr>, f64);
        let exact = 2f64.powi(-42);
        let mut cases: Vec<Case> = vec![
            ("of an integer", Box::new(|_, _, z| z), 2f64.powi(-46)),
            ("integers", Box::new(|a, _, z| z.cast(DType::I32).cast(DType::F64) + a), exact),
            ("to int64", Box::new(|a, _, z| (a * z).cast(DType::I64).cast(DType::F64)), exact),
            ("to int8", Box::new(|a, _, _| a.cast(DType::I8).cast(DType::F64)), exact),
            ("to uint64", Box::new(|a, _, _| a.cast(DType::U64).cast(DType::F64)), exact),
            ("isnan", Box::new(|a, _, _| call(Intrin::IsNan, &a).cast(DType::F64)), exact),
            ("choice", Box::new(|a, b, _| Expr::select(a.clone().less(b.clone()), a, b)), exact),
            ("lazy", Box::new(|a, b, _| Expr::if_then_else(a.clone().less(0.0), b, a)), exact),
        ];
        for op in [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Min, BinOp::Max] {
            cases.push((op.symbol(), Box::new(binary(op)), exact));
        }
        for op in [BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge, BinOp::Eq, BinOp::Ne] {
            cases.push((op.symbol(), Box::new(truth(op)), exact));
        }
        for op in [
            Intrin::Abs,
            Intrin::Floor,
            Intrin::Ceil,
            Intrin::Trunc,
            Intrin::Round,
            Intrin::NearbyInt,
            Intrin::Sqrt,
            Intrin::Rsqrt,
        ] {
            cases.push((op.name(), Box::new(one(op)), exact));
        }
        // No step makes them better than the function of `float32` is.
        for op in [Intrin::Exp, Intrin::Log, Intrin::Sin, Intrin::Cos] {
            cases.push((op.name(), Box::new(one(op)), 2f64.powi(-20)));
        }
        for (name, f, error) in cases {
            let func = doubles(f);
            let pairs = without_doubles(&func).unwrap_or_else(|e| panic!("{name}: {}", e.render()));
            assert!(!pairs.body.any_expr(|e| is_double(e.dtype())), "{name}");
            let (expected, found) = (run(&func, &x, &y, &z), run(&pairs, &x, &y, &z));
            for (k, (e, f)) in expected.iter().zip(&found).enumerate() {
                // Of an angle, the digits behind 2 pi count.
                let turned = if ["sin", "cos"].contains(&name) { x[k].abs().into() } else { 0.0 };
                let allowed = error * (1.0 + e.abs()) + exact * turned;
                let is_near =
                    if e.is_nan() { f.is_nan() } else { e == f || (e - f).abs() <= allowed };
                // What is larger than any `float32` is infinite.
                let large = e.abs() > f64::from(f32::MAX) / 4096.0;
                assert!(is_near || large, "{name} of {} {} {}: {e} and {f}", x[k], y[k], z[k]);
            }
        }
    }

    #[test]
    fn memory_whose_bytes_others_know_is_refused() {
        let b = Buffer::with_extents("B", &[4], DType::F64);
        let body = Stmt::store(&b, vec![Expr::i32(0)], Expr::float(1.0, DType::F64));
        let func = TensorFunc::new(vec![Param::tensor(&b)], body);
        let error = without_doubles(&func).expect_err("no pairs").render();
        assert!(error.contains("this device has no float64: `B` holds them"), "{error}");
    }
}
