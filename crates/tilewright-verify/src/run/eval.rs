//! Expressions on symbols: numbers where they are known, terms where they are not.

use super::*;

/// Iterations of a loop whose extent depends on data.
const TURNS: i128 = 256;

/// Ends a run that needs a number and has none.
fn depends<T>(e: &Expr, what: &str) -> Ran<T> {
    undecided(format!("{what} depends on data: `{}`", tilewright_ir::text::brief(e)))
}

impl Run<'_> {
    pub(super) fn spend(&mut self) -> Ran<()> {
        match self.shared.steps.checked_sub(1) {
            Some(left) => self.shared.steps = left,
            None => return undecided("the programs take more steps than are allowed"),
        }
        Ok(())
    }

    /// An integer that must be known.
    pub(super) fn number(&mut self, e: &Expr, what: &str) -> Ran<i64> {
        if let Some(v) = e.as_int() {
            return Ok(v);
        }
        match self.eval(e)? {
            Val::Known(bits) => Ok(bits as i64),
            v if v == Terms::undef() => Err(self.fault(format!("{what} is an arbitrary value"))),
            Val::Term(t) => match self.range(t).and_then(Interval::as_point) {
                Some(value) => Ok(value as i64),
                None => depends(e, what),
            },
        }
    }

    /// The values that an integer may have on this path; `None` where nothing was taken.
    pub(super) fn range(&mut self, t: Term) -> Option<Interval> {
        let Shared { terms, integers, .. } = &mut *self.shared;
        if self.path.is_empty() {
            self.path.quick_range(terms, t)
        } else {
            self.path.bounds(integers, terms, t)
        }
    }

    /// How often a loop may run; also the term of its extent, where that is none number.
    pub(super) fn count(&mut self, extent: &Expr) -> Ran<(Option<Term>, i64)> {
        let what = "the extent of a loop";
        if let Some(v) = extent.as_int() {
            return Ok((None, v));
        }
        let v = self.eval(extent)?;
        match (v, self.given(v)?) {
            (Val::Term(t), Val::Term(_)) if v != Terms::undef() => match self.range(t) {
                Some(Interval { lo, hi }) if lo == hi => Ok((None, lo as i64)),
                Some(Interval { hi, .. }) if hi <= TURNS => Ok((Some(t), hi.max(0) as i64)),
                _ => depends(extent, what),
            },
            _ => self.number(extent, what).map(|n| (None, n)),
        }
    }

    /// A condition, resolved as far as the path does.
    pub(super) fn condition(&mut self, e: &Expr) -> Ran<Val> {
        let v = self.eval(e)?;
        let v = self.given(v)?;
        if v == Terms::undef() {
            Err(self.fault("a condition is an arbitrary value".to_owned()))
        } else {
            Ok(v)
        }
    }

    /// A value where the conditions of the path hold.
    pub(super) fn given(&mut self, v: Val) -> Ran<Val> {
        let mut v = v;
        while let Val::Term(t) = v {
            if self.path.is_empty() {
                break;
            }
            let Shared { terms, integers, .. } = &mut *self.shared;
            if terms.dtype(t).is_bool()
                && let Some(truth) = self.path.truth(integers, terms, t)
            {
                return Ok(Val::Known(u64::from(truth)));
            }
            let Node::Ite(c, a, b) = terms.node(t) else { break };
            v = match self.path.truth(integers, terms, c) {
                Some(truth) => terms.val(if truth { a } else { b }),
                None => break,
            };
        }
        Ok(v)
    }

    /// Evaluates the current lane.
    pub(super) fn eval(&mut self, e: &Expr) -> Ran<Val> {
        self.value(e, false)
    }

    /// Evaluates the current lane of an expression; of one that is only stored (`copying`), a load
    /// or one side of a choice may be a cell that is not written.
    pub(super) fn value(&mut self, e: &Expr, copying: bool) -> Ran<Val> {
        self.spend()?;
        let dtype = e.dtype().scalar();
        Ok(match e.kind() {
            ExprKind::Int(v) => Val::Known(*v as u64),
            ExprKind::Float(v) => Val::Known(scalar::from_f64(*v, dtype)),
            ExprKind::Str(_) => return undecided("text as a value"),
            ExprKind::Var(v) => return self.variable(v),
            ExprKind::Cast(a) => {
                let v = self.eval(a)?;
                self.make(|terms| terms.cast(a.dtype().scalar(), dtype, v))?
            }
            ExprKind::Binary(op, a, b) => return self.binary(*op, a, b),
            ExprKind::Not(a) => {
                let v = self.eval(a)?;
                self.make(|terms| terms.not(v))?
            }
            ExprKind::Select(c, t, f) => {
                let c = self.eval(c)?;
                let c = self.given(c)?;
                let (t, f) = (self.value(t, copying)?, self.value(f, copying)?);
                self.make(|terms| terms.ite(c, t, f, dtype))?
            }
            ExprKind::IfThenElse(c, t, f) => match self.condition(c)? {
                Val::Known(0) => return self.value(f, copying),
                Val::Known(_) => return self.value(t, copying),
                Val::Term(c) => {
                    let mut side = |e: &Expr, truth| {
                        self.path.enter(&self.shared.terms, c, truth);
                        let v = self.value(e, copying);
                        self.path.leave();
                        v
                    };
                    let (t, f) = (side(t, true)?, side(f, false)?);
                    self.make(|terms| terms.ite(Val::Term(c), t, f, dtype))?
                }
            },
            ExprKind::Load(b, indices) => return self.load(b, indices, copying),
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                let Some(first) = args.first() else {
                    return Err(Error::internal("an intrinsic without arguments").into());
                };
                let a = self.eval(first)?;
                let b = match args.get(1) {
                    Some(b) => self.eval(b)?,
                    None => a,
                };
                self.make(|terms| terms.intrin(*op, first.dtype().scalar(), a, b))?
            }
            ExprKind::Call(CallTarget::Reinterpret(_), args) => {
                let [a] = args.as_slice() else {
                    return Err(Error::internal("`T.reinterpret` takes one value").into());
                };
                let v = self.eval(a)?;
                self.make(|terms| terms.reinterpret(a.dtype().scalar(), dtype, v))?
            }
            ExprKind::Call(CallTarget::Extern(name), _) => {
                return undecided(format!("`{name}` is a function outside of the program"));
            }
            ExprKind::Call(CallTarget::Opaque(name), _) => {
                return undecided(format!("what T.{name} does is not known"));
            }
            ExprKind::Let(v, value, body) => {
                let value = self.eval(value)?;
                let lane = if v.dtype().lanes > 1 { self.lane } else { 0 };
                self.vars.insert((v.id(), lane), value);
                return self.eval(body);
            }
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.eval(base)?, self.eval(stride)?);
                let lane = Val::Known(wrap(i64::from(self.lane), dtype) as u64);
                let step = self.make(|terms| terms.binary(BinOp::Mul, dtype, stride, lane))?;
                self.make(|terms| terms.binary(BinOp::Add, dtype, base, step))?
            }
            ExprKind::Broadcast(a) => return self.eval(a),
            ExprKind::Undef => Terms::undef(),
        })
    }

    fn variable(&mut self, v: &Var) -> Ran<Val> {
        let lane = if v.dtype().lanes > 1 { self.lane } else { 0 };
        if let Some(value) = self.vars.get(&(v.id(), lane)) {
            return Ok(*value);
        }
        if !is_data(v.dtype()) {
            return undecided(format!("`{}` has no value that computes", v.name()));
        }
        let made = self.shared.free(v);
        let value = self.make(|_| made)?;
        self.vars.insert((v.id(), lane), value);
        Ok(value)
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Ran<Val> {
        let dtype = a.dtype().scalar();
        let x = self.eval(a)?;
        if let (true, Val::Known(bits)) = (op.is_logic(), x)
            && (bits != 0) == (op == BinOp::Or)
        {
            return Ok(x);
        }
        let y = match (op.is_logic(), x) {
            (true, Val::Term(c)) if x != Terms::undef() => {
                self.path.enter(&self.shared.terms, c, op == BinOp::And);
                let y = self.eval(b);
                self.path.leave();
                y?
            }
            _ => self.eval(b)?,
        };
        self.make(|terms| terms.binary(op, dtype, x, y))
    }
}
