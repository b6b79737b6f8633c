//! Answers that are remembered for as long as the process lives.
//!
//! Layers of a model repeat, and passes ask about a function what they asked about it a step before.
//! A question about a domain of guards is one of integers alone: two that differ in the names of
//! variables have the same answer. It is written down (`Question`) with atoms numbered as they
//! occur, with what is known of each (its type, whether it is data) and with their order among one
//! another, which is all that the engine and the algebra of forms see of them. Equal texts are the
//! same question, whichever function, pass or thread asks it.
//!
//! **Nothing depends on what was asked before.** Work is limited by operations, so a remembered
//! answer has to cost what it cost when it was found. It does:
//!
//! * With an answer its charge is kept, and paid again each time. What is left for the questions
//!   after it is the same.
//! * Where less is left than the charge, the question is asked as if nothing were known of it: it
//!   may run out, as it would have.
//! * The set of a domain, which questions share, is made before they are counted, and what a
//!   condition is charged does not depend on whether its set is ever made. So it does not matter
//!   that the question that would have made it was remembered.
//! * Only answers are kept, and no reasons why there is none: these may be the limit, and they name
//!   terms.
//!
//! What is kept is bounded ([`MOST_BYTES`]); then all is forgotten, and found again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use tilewright_ir::hash::HashMap;

use tilewright_ir::text::{Names, expr_to_string};
use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Buffer, Expr, Var};

use crate::answer::{Proof, Witness};
use crate::form::{Atom, Pred, Sum, Term};
use crate::product::close;

/// Most bytes of questions that are kept.
const MOST_BYTES: usize = 64 << 20;

/// A question under construction.
pub(crate) struct Question {
    text: String,
    atoms: Vec<Atom>,
    buffers: Vec<Buffer>,
    /// Whether something in it is another value each time that it is evaluated.
    is_unique: bool,
}

/// A question, and the variables that it is about by their numbers.
pub(crate) struct Asked {
    text: Box<str>,
    vars: Vec<Option<Var>>,
}

/// An answer by the numbers of variables.
#[derive(Clone)]
pub(crate) enum Kept {
    Truth(bool),
    Proof(Option<Vec<(usize, i64)>>),
    Ends(Option<i64>, Option<i64>),
    /// An expression over these variables.
    Expr(Option<Expr>, Vec<Option<Var>>),
}

#[derive(Default)]
struct Memory {
    answers: HashMap<Box<str>, (Kept, u64)>,
    bytes: usize,
}

/// That of this process.
static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(Mutex::default);

fn memory<T>(work: impl FnOnce(&mut Memory) -> T) -> T {
    work(&mut MEMORY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What can be kept.
pub(crate) trait Answer: Sized {
    /// `None` for what mentions other variables than the question.
    fn keep(&self, asked: &Asked) -> Option<Kept>;
    fn read(kept: &Kept, asked: &Asked) -> Option<Self>;
}

impl Question {
    /// A question of some kind under a quota.
    pub fn new(what: &'static str, quota: u64) -> Question {
        let text = format!("{what} {quota}");
        Question { text, atoms: Vec::new(), buffers: Vec::new(), is_unique: false }
    }

    fn write(&mut self, text: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = write!(self.text, " {text}");
    }

    /// A domain: its atoms, of which the first are its variables, and its guards.
    pub fn domain(mut self, vars: usize, atoms: &[Atom], guards: &[Pred]) -> Question {
        self.write(format_args!("({vars}/{}", atoms.len()));
        atoms.iter().for_each(|a| self.atom(a));
        guards.iter().for_each(|p| self.each(p));
        self.text.push(')');
        self
    }

    pub fn pred(mut self, p: &Pred) -> Question {
        self.each(p);
        self
    }

    pub fn sum(mut self, s: &Sum) -> Question {
        self.total(s);
        self
    }

    /// Something that has no variables.
    pub fn number(mut self, number: impl std::fmt::Display) -> Question {
        self.write(number);
        self
    }

    fn each(&mut self, p: &Pred) {
        match p {
            Pred::Bool(value) => self.write(value),
            Pred::Ge(s) => self.marked('>', s),
            Pred::Eq(s) => self.marked('=', s),
            Pred::Ne(s) => self.marked('!', s),
            Pred::Flag(a, value) => {
                self.write(value);
                self.atom(a);
            }
            Pred::And(parts) | Pred::Or(parts) => {
                self.write(if matches!(p, Pred::And(_)) { "&[" } else { "|[" });
                parts.iter().for_each(|p| self.each(p));
                self.text.push(']');
            }
        }
    }

    fn marked(&mut self, mark: char, s: &Sum) {
        self.text.push(mark);
        self.total(s);
    }

    fn total(&mut self, s: &Sum) {
        self.write(s.constant);
        for (term, c) in &s.terms {
            self.write(format_args!("{c}*"));
            match term {
                Term::Atom(a) => self.atom(a),
                Term::Div(s, k) => self.divided("/", s, *k),
                Term::Mod(s, k) => self.divided("%", s, *k),
                Term::TruncDiv(s, k) => self.divided("t/", s, *k),
                Term::TruncMod(s, k) => self.divided("t%", s, *k),
                Term::Min(a, b) | Term::Max(a, b) => {
                    self.text.push_str(if matches!(term, Term::Min(..)) { "min" } else { "max" });
                    self.total(a);
                    self.marked(',', b);
                }
                Term::Select(p, a, b) => {
                    self.text.push('?');
                    self.each(p);
                    self.marked(',', a);
                    self.marked(',', b);
                }
            }
        }
        self.text.push(';');
    }

    fn divided(&mut self, what: &str, s: &Sum, k: i128) {
        self.write(format_args!("{what}{k}"));
        self.total(s);
    }

    /// The number of an atom; where it is new, what is known of it.
    fn atom(&mut self, a: &Atom) {
        if let Some(known) = self.atoms.iter().position(|b| a == b) {
            return self.write(format_args!("#{known}"));
        }
        self.atoms.push(a.clone());
        let data = if a.is_data() { "data" } else { "" };
        self.write(format_args!("#:{}{data}", a.expr().dtype()));
        if a.as_var().is_none() {
            self.is_unique |= a.expr().effects().impure();
            let text = expr_to_string(a.expr(), self);
            self.write(format_args!("`{text}`"));
        }
    }

    /// The question with the order of its atoms; `None` if none is equal to it.
    pub fn asked(mut self) -> Option<Asked> {
        if self.is_unique {
            return None;
        }
        let mut sorted = BTreeSet::new();
        self.atoms.iter().for_each(|a| close(a, &mut sorted));
        // Atoms in others are numbered where the others stand.
        sorted.iter().for_each(|a| self.atom(a));
        let vars = self.atoms.iter().map(|a| a.as_var().cloned()).collect();
        Some(Asked { text: self.text.into(), vars })
    }
}

impl Names for Question {
    fn var(&mut self, v: &Var) -> String {
        let atom = Atom::var(v);
        let at = self.atoms.iter().position(|a| *a == atom).unwrap_or_else(|| {
            self.atoms.push(atom);
            self.atoms.len() - 1
        });
        format!("v{at}:{}", v.dtype())
    }

    fn buffer(&mut self, b: &Buffer) -> String {
        let at = self.buffers.iter().position(|c| c == b).unwrap_or_else(|| {
            self.buffers.push(b.clone());
            self.buffers.len() - 1
        });
        format!("b{at}:{}", b.dtype())
    }
}

impl Asked {
    /// What was answered before, and what that was charged.
    pub fn answer<T: Answer>(&self) -> Option<(T, u64)> {
        let (kept, charge) = memory(|m| m.answers.get(&self.text).cloned())?;
        Some((T::read(&kept, self)?, charge))
    }

    /// Keeps an answer.
    pub fn keep(self, answer: &impl Answer, charge: u64) {
        let Some(kept) = answer.keep(&self) else { return };
        memory(|m| {
            if m.bytes > MOST_BYTES {
                *m = Memory::default();
            }
            m.bytes += self.text.len();
            m.answers.insert(self.text, (kept, charge));
        });
    }

    fn number(&self, v: &Var) -> Option<usize> {
        self.vars.iter().position(|w| w.as_ref() == Some(v))
    }
}

impl Answer for bool {
    fn keep(&self, _: &Asked) -> Option<Kept> {
        Some(Kept::Truth(*self))
    }

    fn read(kept: &Kept, _: &Asked) -> Option<bool> {
        match kept {
            Kept::Truth(value) => Some(*value),
            _ => None,
        }
    }
}

impl Answer for Proof {
    fn keep(&self, asked: &Asked) -> Option<Kept> {
        match self {
            Proof::Yes => Some(Kept::Proof(None)),
            Proof::No { witness } => {
                let values = witness
                    .values
                    .iter()
                    .map(|(v, x)| Some((asked.number(v)?, *x)))
                    .collect::<Option<_>>()?;
                Some(Kept::Proof(Some(values)))
            }
            Proof::Unknown(_) => None,
        }
    }

    fn read(kept: &Kept, asked: &Asked) -> Option<Proof> {
        match kept {
            Kept::Proof(None) => Some(Proof::Yes),
            Kept::Proof(Some(values)) => {
                let values = values
                    .iter()
                    .map(|(at, x)| Some((asked.vars.get(*at)?.clone()?, *x)))
                    .collect::<Option<_>>()?;
                Some(Proof::No { witness: Witness { values } })
            }
            _ => None,
        }
    }
}

impl Answer for (Option<i64>, Option<i64>) {
    fn keep(&self, _: &Asked) -> Option<Kept> {
        Some(Kept::Ends(self.0, self.1))
    }

    fn read(kept: &Kept, _: &Asked) -> Option<(Option<i64>, Option<i64>)> {
        match kept {
            Kept::Ends(low, high) => Some((*low, *high)),
            _ => None,
        }
    }
}

impl Answer for Option<Expr> {
    /// What loads would name buffers.
    fn keep(&self, asked: &Asked) -> Option<Kept> {
        let plain = asked.vars.iter().all(Option::is_some);
        plain.then(|| Kept::Expr(self.clone(), asked.vars.clone()))
    }

    fn read(kept: &Kept, asked: &Asked) -> Option<Option<Expr>> {
        let Kept::Expr(e, vars) = kept else { return None };
        let pairs = vars.iter().zip(&asked.vars);
        let pairs = pairs.map(|(old, new)| Some((old.clone()?, new.as_ref()?.expr())));
        let mut subst = Subst::vars(pairs.collect::<Option<Vec<_>>>()?);
        Some(e.as_ref().map(|e| subst.expr(e)))
    }
}
