//! Arithmetic of numbers that are sums of two `float32`, as steps that are variables.
//!
//! `x = high + low` with `high == round(high + low)`. Sums keep what they round away by Knuth's exact sum, products by
//! Dekker's parts of 12 bits, and quotients and roots by one step of Newton (T. J. Dekker, "A floating-point technique
//! for extending the available precision", 1971). Where the result is not finite, nothing is left of it. Functions
//! that no step corrects are those of `float32`.

use tilewright_ir::{BinOp, DType, Expr, ExprKind, Intrin, Stmt, Var};

/// The type of each part of a double.
pub(super) fn single(dtype: DType) -> DType {
    DType::F32.with_lanes(dtype.lanes)
}

pub(super) fn number(v: f64, like: &Expr) -> Expr {
    Expr::constant(v, single(like.dtype()))
}

/// The nearest `float32` of a number, and what is left of it.
pub(super) fn parts(v: f64) -> [f32; 2] {
    let high = v as f32;
    [high, if high.is_finite() { (v - f64::from(high)) as f32 } else { 0.0 }]
}

/// A value in two parts.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) high: Expr,
    pub(super) low: Expr,
}

impl Pair {
    /// A `float32`.
    pub(super) fn exactly(high: Expr) -> Pair {
        let low = number(0.0, &high);
        Pair { high, low }
    }

    pub(super) fn constant(v: f64, dtype: DType) -> Pair {
        let [high, low] = parts(v).map(|x| Expr::constant(f64::from(x), single(dtype)));
        Pair { high, low }
    }

    fn is_single(&self) -> bool {
        self.low.as_float() == Some(0.0)
            || matches!(self.low.kind(), ExprKind::Broadcast(x) if x.as_float() == Some(0.0))
    }

    pub(super) fn map(self, mut f: impl FnMut(Expr) -> Expr) -> Pair {
        Pair { high: f(self.high), low: f(self.low) }
    }

    pub(super) fn with(self, other: Pair, f: impl Fn(Expr, Expr) -> Expr) -> Pair {
        Pair { high: f(self.high, other.high), low: f(self.low, other.low) }
    }

    fn neg(self) -> Pair {
        self.map(|x| Expr::binary(BinOp::Sub, number(-0.0, &x), x))
    }

    pub(super) fn less(&self, other: &Pair) -> Expr {
        let [high, others] = [&self.high, &other.high].map(Expr::clone);
        let low = self.low.clone().less(other.low.clone());
        high.clone().less(others.clone()).or(high.equal(others).and(low))
    }

    fn equal(&self, other: &Pair) -> Expr {
        self.high.clone().equal(other.high.clone()).and(self.low.clone().equal(other.low.clone()))
    }

    pub(super) fn compare(op: BinOp, a: &Pair, b: &Pair) -> Option<Expr> {
        Some(match op {
            BinOp::Lt => a.less(b),
            BinOp::Gt => b.less(a),
            BinOp::Le => a.less(b).or(a.equal(b)),
            BinOp::Ge => b.less(a).or(a.equal(b)),
            BinOp::Eq => a.equal(b),
            BinOp::Ne => !a.equal(b),
            _ => return None,
        })
    }

    pub(super) fn is_negative(&self) -> Expr {
        self.high.clone().less(number(0.0, &self.high))
    }

    fn half(&self) -> Pair {
        Pair::exactly(number(0.5, &self.high))
    }
}

pub(super) fn call(op: Intrin, x: &Expr) -> Expr {
    Expr::intrin(op, vec![x.clone()])
}

/// A number, or zero where it is not finite.
fn if_finite(x: &Expr, then: Expr) -> Expr {
    Expr::select(call(Intrin::IsFinite, x), then, number(0.0, x))
}

/// Arithmetic of pairs, by steps that are variables.
#[derive(Default)]
pub(super) struct Steps(pub(super) Vec<(Var, Expr)>);

impl Steps {
    /// The variable that has a value.
    pub(super) fn keep(&mut self, e: Expr) -> Expr {
        if matches!(e.kind(), ExprKind::Var(_) | ExprKind::Float(_) | ExprKind::Int(_)) {
            return e;
        }
        let var = Var::new("part", e.dtype());
        self.0.push((var.clone(), e));
        var.expr()
    }

    pub(super) fn kept(&mut self, pair: Pair) -> Pair {
        pair.map(|part| self.keep(part))
    }

    /// A statement behind the steps.
    pub(super) fn before(self, s: Stmt) -> Stmt {
        self.0.into_iter().rev().fold(s, |s, (var, value)| Stmt::let_in(&var, value, s))
    }

    /// A value of a lazy side, with the steps inside of it.
    pub(super) fn within(&self, e: Expr) -> Expr {
        self.0.iter().rev().fold(e, |e, (var, value)| Expr::let_in(var.clone(), value.clone(), e))
    }

    /// A sum, and what it rounds away.
    fn exact_sum(&mut self, a: &Expr, b: &Expr) -> (Expr, Expr) {
        let sum = self.keep(a + b);
        let of_b = self.keep(&sum - a);
        let of_a = self.keep(&sum - &of_b);
        let left = self.keep((a - of_a) + (b - of_b));
        (sum, left)
    }

    /// The first 12 bits of a number, and the rest.
    fn halves(&mut self, x: &Expr) -> [Expr; 2] {
        let bits = Expr::reinterpret(x.clone(), DType::I32.with_lanes(x.dtype().lanes));
        let mask = Expr::constant(f64::from(-4096), bits.dtype());
        let first = Expr::intrin(Intrin::BitAnd, vec![bits, mask]);
        let first = self.keep(Expr::reinterpret(first, x.dtype()));
        let rest = self.keep(x - &first);
        [first, rest]
    }

    /// A product, and what it rounds away.
    fn exact_product(&mut self, a: &Expr, b: &Expr) -> (Expr, Expr) {
        let product = self.keep(a * b);
        let ([a, c], [b, d]) = (self.halves(a), self.halves(b));
        let left = ((&a * &b - &product) + &a * &d + &c * &b) + c * d;
        (product, self.keep(left))
    }

    /// The sum of a number and of one that is at most half of its last digit, or a little more.
    pub(super) fn renormed(&mut self, high: &Expr, low: Expr) -> Pair {
        let low = self.keep(low);
        let low = self.keep(if_finite(high, low));
        let sum = self.keep(high + &low);
        let low = if_finite(&sum, low - (&sum - high));
        Pair { low: self.keep(low), high: sum }
    }

    pub(super) fn add(&mut self, a: &Pair, b: &Pair) -> Pair {
        let (sum, left) = self.exact_sum(&a.high, &b.high);
        if a.is_single() || b.is_single() {
            let low = if a.is_single() { &b.low } else { &a.low };
            return self.renormed(&sum, left + low);
        }
        // Where the high parts cancel, digits of the low ones are the first of the result.
        let (lows, last) = self.exact_sum(&a.low, &b.low);
        let Pair { high, low } = self.renormed(&sum, left + lows);
        self.renormed(&high, low + last)
    }

    pub(super) fn sub(&mut self, a: &Pair, b: &Pair) -> Pair {
        let b = self.kept(b.clone().neg());
        self.add(a, &b)
    }

    pub(super) fn mul(&mut self, a: &Pair, b: &Pair) -> Pair {
        let (product, left) = self.exact_product(&a.high, &b.high);
        let across = &a.high * &b.low + &a.low * &b.high;
        self.renormed(&product, left + across)
    }

    pub(super) fn div(&mut self, a: &Pair, b: &Pair) -> Pair {
        let first = self.keep(&a.high / &b.high);
        let product = self.mul(&Pair::exactly(first.clone()), b);
        let rest = self.sub(a, &product);
        let second = self.keep(rest.high / &b.high);
        self.renormed(&first, if_finite(&second, second.clone()))
    }

    pub(super) fn sqrt(&mut self, x: &Pair) -> Pair {
        let first = self.keep(call(Intrin::Sqrt, &x.high));
        let root = Pair::exactly(first.clone());
        let square = self.mul(&root, &root);
        let rest = self.sub(x, &square);
        let second = self.keep(rest.high / (&first + &first));
        self.renormed(&first, if_finite(&second, second.clone()))
    }

    /// One of two values.
    pub(super) fn choice(&mut self, cond: Expr, t: Pair, f: Pair) -> Pair {
        let cond = self.keep(cond);
        let chosen = t.with(f, |t, f| Expr::select(cond.clone(), t, f));
        self.kept(chosen)
    }

    pub(super) fn floor(&mut self, x: &Pair) -> Pair {
        let high = self.keep(call(Intrin::Floor, &x.high));
        let is_whole = high.clone().equal(x.high.clone());
        let low = Expr::select(is_whole, call(Intrin::Floor, &x.low), number(0.0, &high));
        self.renormed(&high, low)
    }

    pub(super) fn ceil(&mut self, x: &Pair) -> Pair {
        let mirrored = self.kept(x.clone().neg());
        let floor = self.floor(&mirrored);
        self.kept(floor.neg())
    }

    pub(super) fn abs(&mut self, x: &Pair) -> Pair {
        let magnitude = self.choice(x.is_negative(), x.clone().neg(), x.clone());
        // That of a negative zero, which is not less than zero.
        Pair { high: self.keep(call(Intrin::Abs, &magnitude.high)), low: magnitude.low }
    }

    pub(super) fn trunc(&mut self, x: &Pair) -> Pair {
        let (ceil, floor) = (self.ceil(x), self.floor(x));
        self.choice(x.is_negative(), ceil, floor)
    }

    /// The nearest integer; of two, that away from zero.
    pub(super) fn round(&mut self, x: &Pair) -> Pair {
        let magnitude = self.abs(x);
        let raised = self.add(&magnitude, &x.half());
        let up = self.floor(&raised);
        self.choice(x.is_negative(), up.clone().neg(), up)
    }

    /// The nearest integer; of two, the even one.
    pub(super) fn nearby(&mut self, x: &Pair) -> Pair {
        let raised = self.add(x, &x.half());
        let up = self.floor(&raised);
        let half = self.mul(&up, &x.half());
        let half = self.floor(&half);
        let even = self.add(&half, &half);
        let down = self.add(&up, &Pair::exactly(number(-1.0, &up.high)));
        self.choice(raised.equal(&up).and(!even.equal(&up)), down, up)
    }

    /// A function whose slope is known: what is left moves it by as much.
    pub(super) fn along(
        &mut self,
        op: Intrin,
        x: &Pair,
        slope: impl Fn(&Expr, &Expr) -> Expr,
    ) -> Pair {
        let value = self.keep(call(op, &x.high));
        let moved = slope(&x.high, &value) * &x.low;
        self.renormed(&value, moved)
    }

    /// An angle less whole turns.
    pub(super) fn turned(&mut self, x: &Pair) -> Pair {
        let turn = Pair::constant(std::f64::consts::TAU, x.high.dtype());
        let turns = self.div(x, &turn);
        let turns = self.nearby(&turns);
        let whole = self.mul(&turns, &turn);
        self.sub(x, &whole)
    }
}
