//! What assumptions say about the inputs.
//!
//! An assumption about the content of a cell gives the cell that value; permission to read gives it
//! an arbitrary one. What depends on the inputs is noted as a constraint.

use super::*;

impl Run<'_> {
    /// An assumption, or a part of one: `whole` is what the user wrote.
    pub(super) fn assume(&mut self, e: &Expr, whole: &Expr) -> Ran<()> {
        if let Some(CellFact { buffer, indices, value, .. }) = CellFact::from_condition(e, true) {
            let at = self.locate(&buffer, &indices)?;
            let old = self.given(self.cell(at))?;
            match old == Terms::unwritten() {
                true if value.is_undef() => {
                    self.write(at, Terms::undef());
                    return Ok(());
                }
                true => {}
                false if value.is_undef() => return Ok(()),
                false => {
                    let v = self.eval(&value)?;
                    return self.assume_cell(at, buffer.dtype(), old, v, whole);
                }
            }
        }
        match e.kind() {
            ExprKind::Binary(BinOp::And, a, b) => {
                self.assume(a, whole)?;
                return self.assume(b, whole);
            }
            ExprKind::Binary(BinOp::Or, a, b) => {
                // A side that is known to be false leaves the other one.
                for (known, other) in [(a, b), (b, a)] {
                    if known.effects().loads {
                        continue;
                    }
                    return match self.condition(known)? {
                        Val::Known(0) => self.assume(other, whole),
                        Val::Known(_) => Ok(()),
                        Val::Term(c) => {
                            self.path.enter(&self.shared.terms, c, false);
                            let done = self.assume(other, whole);
                            self.path.leave();
                            done
                        }
                    };
                }
            }
            _ => {}
        }
        match self.eval(e)? {
            Val::Known(0) => {
                let text = tilewright_ir::text::brief(whole);
                Err(self.fault(format!("assumption `{text}` does not hold")))
            }
            Val::Known(_) => Ok(()),
            v if v == Terms::undef() => {
                let text = tilewright_ir::text::brief(whole);
                Err(self.fault(format!("assumption `{text}` is about an arbitrary value")))
            }
            v => self.rely(v, whole),
        }
    }

    /// A cell that is assumed to hold a value.
    fn assume_cell(
        &mut self,
        at: (usize, usize),
        dtype: DType,
        old: Val,
        v: Val,
        whole: &Expr,
    ) -> Ran<()> {
        let text = || tilewright_ir::text::brief(whole);
        if old == Terms::undef() || v == Terms::undef() {
            return Err(self.fault(format!("assumption `{}` is about an arbitrary value", text())));
        }
        match self.make(|terms| terms.binary(BinOp::Eq, dtype, old, v))? {
            Val::Known(0) => Err(self.fault(format!("assumption `{}` does not hold", text()))),
            Val::Known(_) => Ok(()),
            equal => {
                if let (Val::Term(t), Val::Known(bits), true) = (old, v, self.path.is_empty())
                    && matches!(self.shared.terms.node(t), Node::Input(..))
                {
                    self.shared.assumed.entry(t).or_insert(bits);
                }
                self.rely(equal, whole)?;
                self.write(at, v);
                Ok(())
            }
        }
    }

    /// Notes a condition that the program relies on.
    fn rely(&mut self, v: Val, whole: &Expr) -> Ran<()> {
        let mut v = v;
        for (c, truth) in self.path.taken().rev().collect::<Vec<_>>() {
            let c = Val::Term(c);
            let (t, f) = if truth { (v, Val::Known(1)) } else { (Val::Known(1), v) };
            v = self.make(|terms| terms.ite(c, t, f, DType::BOOL))?;
        }
        if let Val::Term(t) = v {
            self.shared.constraints.push(t);
            let text = tilewright_ir::text::brief(whole);
            if !self.shared.relied.contains(&text) {
                self.shared.relied.push(text);
            }
        }
        Ok(())
    }
}
