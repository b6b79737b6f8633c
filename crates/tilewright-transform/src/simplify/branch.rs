//! Branches: which side is taken, when both are one, and which of them belong together.
//!
//! Two branches, one after the other, that ask the same become one, and those that ask the
//! opposite too, crosswise:
//!
//! ```text
//! if i < 8:  a        if i < 8:           if i // 8 == 0:  a     if i < 8:
//! if i < 8:  b             a; b           if i >= 8:  b               a
//!                                                                else:
//!                                                                     b
//! ```
//!
//! Whether conditions are the same or opposite is a question about the place and not about their
//! form. A condition is asked once where it was asked twice, so what the first branch does must
//! not touch what the second condition reads.
//!
//! A branch goes if its sides do the same: if one of them is, at the places where the other one
//! runs, the [`same`](tilewright_analysis::equivalence).

use tilewright_ir::{Error, Expr, Stmt, StmtKind, equal};
use tilewright_polyhedral::Domain;

use super::Simplify;
use tilewright_analysis::equivalence::same_on;

impl Simplify<'_> {
    pub(super) fn sequence(&mut self, s: &Stmt, parts: &[Stmt]) -> Stmt {
        let mut done = Vec::new();
        let mut last: Option<Stmt> = None;
        for part in parts {
            let merged = last.as_ref().and_then(|last| self.merged(last, part));
            if let Some(before) = last.replace(merged.clone().unwrap_or_else(|| part.clone()))
                && merged.is_none()
            {
                done.push(self.statement(&before));
            }
        }
        done.extend(last.map(|last| self.statement(&last)));
        let new = Stmt::seq(done);
        match new.kind() {
            StmtKind::Seq(_) => Stmt::spanned(new.kind().clone(), s.span()),
            _ => new,
        }
    }

    /// Two branches as one.
    fn merged(&mut self, first: &Stmt, second: &Stmt) -> Option<Stmt> {
        let (
            StmtKind::If { cond, then, otherwise },
            StmtKind::If { cond: next, then: then2, otherwise: otherwise2 },
        ) = (first.kind(), second.kind())
        else {
            return None;
        };
        if cond.effects().impure() || next.effects().impure() {
            return None;
        }
        let same = self.relation(cond, next)?;
        let written = self.memory.written_by(first);
        if let Some(changed) = self.memory.may_change(&written, next) {
            self.why.push(
                Error::refused("this branch asks what the one before it asks, but is not merged")
                    .at(second.span())
                    .note(format!(
                        "the branch before it may change `{}`, which `{next}` reads",
                        changed.name
                    )),
            );
            return None;
        }
        let (yes, no) = if same {
            (then2.clone(), otherwise2.clone().unwrap_or_else(Stmt::nop))
        } else {
            (otherwise2.clone().unwrap_or_else(Stmt::nop), then2.clone())
        };
        let then = Stmt::seq([then.clone(), yes]);
        let otherwise = Stmt::seq([otherwise.clone().unwrap_or_else(Stmt::nop), no]);
        let otherwise = (!otherwise.is_nop()).then_some(otherwise);
        Some(Stmt::spanned(StmtKind::If { cond: cond.clone(), then, otherwise }, first.span()))
    }

    /// Whether two conditions are the same here, or opposite; neither is `None`.
    fn relation(&mut self, a: &Expr, b: &Expr) -> Option<bool> {
        if equal::same_expr(a, b) {
            return Some(true);
        }
        let domain = self.domain();
        if domain.same_condition(a, b).is_yes() {
            return Some(true);
        }
        domain.same_condition(a, &!b.clone()).is_yes().then_some(false)
    }

    pub(super) fn branch(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::If { cond, then, otherwise } = s.kind() else { return s.clone() };
        let cond = self.condition(cond);
        if let Some(taken) = cond.as_int() {
            return match (taken != 0, otherwise) {
                (true, _) => self.statement(then),
                (false, Some(otherwise)) => self.statement(otherwise),
                (false, None) => Stmt::nop(),
            };
        }
        let negated = !cond.clone();
        let before = self.domain();
        let pure = !cond.effects().impure();
        if let Some(otherwise) = otherwise
            && let Some(one) = self.one_for_both(&cond, then, otherwise, same_on)
        {
            self.memory.move_here(&one);
            return self.statement(&one);
        }
        let yes = self.side(&cond, then);
        let no = otherwise.as_ref().map(|otherwise| self.side(&negated, otherwise));
        let no = no.filter(|no| !no.is_nop());
        let one = no.as_ref().and_then(|no| self.one_for_both(&cond, &yes, no, same_on));
        self.forget(s);
        if let Some(one) = one {
            return one;
        }
        match no {
            None if yes.is_nop() && pure => yes,
            Some(no) if yes.is_nop() && pure => {
                let cond = self.index(&negated);
                Stmt::spanned(StmtKind::If { cond, then: no, otherwise: None }, s.span())
            }
            no => {
                self.undecided(s, &cond, &before);
                Stmt::spanned(StmtKind::If { cond, then: yes, otherwise: no }, s.span())
            }
        }
    }

    /// The side of a choice that is, where the other one is taken, the same as that one. Tests for
    /// this look at memory by its text, and at nothing else that changes in a side.
    pub(super) fn one_for_both<T: Clone>(
        &mut self,
        cond: &Expr,
        yes: &T,
        no: &T,
        same: impl Fn(&Domain, &T, &T) -> bool,
    ) -> Option<T> {
        if cond.effects().impure() {
            return None;
        }
        let here = self.domain();
        if same(&here.with_guard(&!cond.clone()), yes, no) {
            return Some(yes.clone());
        }
        same(&here.with_guard(cond), no, yes).then(|| no.clone())
    }

    fn side(&mut self, cond: &Expr, s: &Stmt) -> Stmt {
        self.memory.enter_branch(cond, true);
        let new = self.under(cond, |me| me.statement(s));
        self.memory.leave();
        new
    }

    /// Says what is missing to decide a branch. Nothing is where it is now this, now that.
    fn undecided(&mut self, s: &Stmt, cond: &Expr, here: &Domain) {
        let mut missing: Vec<String> = Vec::new();
        missing.extend(here.doubt(cond).map(|why| why.to_string()));
        if missing.is_empty() {
            return;
        }
        let reads = cond.loaded_buffers();
        let mut names: Vec<&str> = reads.iter().map(|b| &*b.name).collect();
        names.sort_unstable();
        if !names.is_empty() {
            missing.push(format!("no value of {} is known that decides it", list(&names)));
        }
        if let Some(lost) =
            self.lost.iter().rev().find(|lost| lost.loads_from(|b| reads.contains(b)))
        {
            missing.push(format!("`{lost}` was known until something that may change it"));
        }
        let remark = Error::refused("this branch stays, its condition is not decided").at(s.span());
        self.why.push(missing.into_iter().fold(remark, Error::note));
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
