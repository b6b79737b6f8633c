//! What operators need of open sizes beyond what the model says: sizes that are equal, ranges, multiples and sizes next
//! to them.
//!
//! An import that finds such a fact starts again with it. What runs the module checks it, and says which node
//! needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::dim::{Fact, Remainders, SizeRange, USUAL_SIZE};
use tilewright_ir::{DType, Dim as Size, Var};

/// What operators need of open sizes, found in imports that then start again: sizes that are equal, ranges,
/// multiples. A run checks it.
#[derive(Clone, Default)]
pub(crate) struct Facts {
    /// In the variables of earlier imports, which are found by their names.
    found: Vec<Found>,
    /// The open sizes of the inputs.
    known: BTreeMap<Arc<str>, Var>,
    /// In this import, how often the number goes into each size that is a multiple of one.
    parts: BTreeMap<Arc<str>, (usize, Size)>,
}

#[derive(Clone)]
struct Found {
    name: Arc<str>,
    fact: Fact,
    /// The node, and what it needs.
    why: Arc<str>,
}

/// Why an axis of an input must have the size that it has.
pub(crate) struct Reason {
    pub(crate) input: usize,
    pub(crate) axis: usize,
    pub(crate) why: Arc<str>,
}

/// As many facts as an import finds.
const MOST_FACTS: usize = 1 << 12;

impl Facts {
    /// What two sizes that must be equal say of the inputs' sizes; nothing where it is no such fact.
    fn of_equal(&self, a: Size, b: Size) -> Vec<Fact> {
        match Fact::of_equal(a, b, &|v| self.is_open(v) || self.whole(v).is_some()) {
            Some(Fact::Is(v, with)) => match self.whole(&v) {
                Some((whole, n)) => self.of_variable(whole, self.wholes(with * n)),
                None => self.of_variable(v, self.wholes(with)),
            },
            Some(fact @ Fact::Within(..)) => vec![fact],
            // How often a number goes into a size has no name that a run could refuse.
            Some(Fact::Next(v, remainders)) => match self.whole(&v) {
                Some(_) => Vec::new(),
                None => vec![Fact::Next(v, remainders)],
            },
            Some(Fact::Multiple(v, n)) => match self.whole(&v) {
                Some((whole, before)) => vec![Fact::Multiple(whole, before * n)],
                None => vec![Fact::Multiple(v, n)],
            },
            None => Vec::new(),
        }
    }

    /// What a variable that is this size says; nothing where it may be what the size may not. What is known of the
    /// variable is known of another one that it becomes.
    fn of_variable(&self, v: Var, with: Size) -> Vec<Fact> {
        let (range, vars) = (v.range(), with.vars());
        if vars.contains(&v) || !vars.iter().all(|w| self.is_open(w)) {
            return Vec::new();
        }
        let inside = with.at_least(range.least()) && Size::from(range.most()).at_least(with);
        let other = vars.first().filter(|w| with == Size::open(w)).map(|w| (w, w.range()));
        let mut facts = Vec::new();
        match other {
            _ if range.remainders() == Remainders::ALL => {}
            Some((_, own)) if own.remainders() == range.remainders() => {}
            Some((w, own)) if own.remainders() == Remainders::ALL => {
                facts.push(Fact::Next(w.clone(), range.remainders()));
            }
            _ => return Vec::new(),
        }
        match other {
            _ if inside || range == SizeRange::ALL => {}
            Some((w, own)) => {
                let (least, most) = (range.least().max(own.least()), range.most().min(own.most()));
                if least > most {
                    return Vec::new();
                }
                facts.push(Fact::Within(w.clone(), least, most));
            }
            None => return Vec::new(),
        }
        facts.push(Fact::Is(v, with));
        facts
    }

    /// Whether the import can start again with two sizes that are equal.
    pub fn can_take(&self, a: Size, b: Size) -> bool {
        !self.of_equal(a, b).is_empty() && self.found.len() < MOST_FACTS
    }

    /// Takes note that two sizes are equal, since a node needs it; false where nothing follows from that for
    /// the inputs.
    pub fn take(&mut self, a: Size, b: Size, node: &str) -> bool {
        let can = self.can_take(a, b);
        for fact in self.of_equal(a, b) {
            let (name, more) = match &fact {
                Fact::Is(v, _) => (v.name(), String::new()),
                Fact::Within(v, least, most) => match SizeRange::new(*least, *most) {
                    Ok(range) => (v.name(), format!(", so `{}` is {}", v.name(), range.limits())),
                    Err(_) => return false,
                },
                Fact::Next(v, remainders) => {
                    (v.name(), format!(", so `{}` is {}", v.name(), remainders.words()))
                }
                Fact::Multiple(v, n) => {
                    (v.name(), format!(", so `{}` is a multiple of {n}", v.name()))
                }
            };
            let why = format!("{node} needs `{a}` and `{b}` to be equal{more}");
            self.found.push(Found { name: name.clone(), fact, why: why.into() });
        }
        can
    }

    /// The open size of an input that a size is, and its range without one.
    fn many(&self, size: Size) -> Option<(Var, SizeRange)> {
        let v = size.vars().into_iter().find(|v| self.is_open(v) && size == Size::open(v))?;
        let (least, most) = (v.range().least().max(2), v.range().most());
        let range = (least <= most).then(|| SizeRange::new(least, most).ok()).flatten()?;
        Some((v, range))
    }

    /// Whether the import can start again with a size that is not one.
    pub fn can_take_many(&self, size: Size) -> bool {
        self.many(size).is_some() && self.found.len() < MOST_FACTS
    }

    /// Takes note that a size is not one, since a node needs it; false where it is no open size of an input.
    pub fn take_many(&mut self, size: Size, node: &str) -> bool {
        let Some((v, range)) = self.many(size).filter(|_| self.can_take_many(size)) else {
            return false;
        };
        let why = format!(
            "{node} drops axes of one element, so that its result has another number of dimensions \
             where `{}` is one",
            v.name()
        );
        let fact = Fact::Within(v.clone(), range.least(), range.most());
        self.found.push(Found { name: v.name().clone(), fact, why: why.into() });
        true
    }

    /// Whether a variable is an open size of an input.
    fn is_open(&self, v: &Var) -> bool {
        self.known.get(v.name()).is_some_and(|k| k == v)
    }

    /// The open size that a variable is a part of, and how many of these it is.
    fn whole(&self, v: &Var) -> Option<(Var, usize)> {
        let (name, (n, _)) = self.parts.iter().find(|(_, (_, part))| *part == Size::open(v))?;
        Some((self.known.get(name)?.clone(), *n))
    }

    /// A size with wholes in the place of parts.
    fn wholes(&self, size: Size) -> Size {
        size.substitute(&|v| self.whole(v).map(|(whole, n)| Size::open(&whole).floordiv(n)))
    }

    /// The number of which an open size is a multiple, and why.
    pub fn multiple(&self, v: &Var) -> Option<(usize, Arc<str>)> {
        let of_it = self.found.iter().filter(|f| f.name == *v.name());
        let number = of_it.filter_map(|f| match f.fact {
            Fact::Multiple(_, n) => Some((n, f.why.clone())),
            _ => None,
        });
        number.max_by_key(|(n, _)| *n)
    }

    /// Takes note of the size that says how often a number goes into an open size.
    pub fn divide(&mut self, v: &Var, n: usize, part: Size) {
        self.parts.insert(v.name().clone(), (n, part));
    }

    /// Whether it is known how often a number goes into an open size.
    pub fn is_divided(&self, v: &Var) -> bool {
        self.parts.contains_key(v.name())
    }

    /// A size with multiples of parts in the place of wholes.
    pub fn in_parts(&self, size: Size) -> Size {
        size.substitute(&|v| self.parts.get(v.name()).map(|(n, part)| *part * *n))
    }

    /// The shapes of the inputs as the facts say them, and why these are no others.
    pub fn apply(&mut self, mut shapes: Vec<Vec<Size>>) -> (Vec<Vec<Size>>, Vec<Reason>) {
        let mut here: BTreeMap<Arc<str>, Var> = BTreeMap::new();
        let all = shapes.iter().flatten().flat_map(|d| d.vars());
        here.extend(all.map(|v| (v.name().clone(), v)));
        let mut reasons = Vec::new();
        for Found { name, fact, why } in &self.found {
            let value = match fact {
                Fact::Is(_, value) => value.substitute(&|v| here.get(v.name()).map(Size::open)),
                Fact::Within(_, least, most) => {
                    let Ok(range) = SizeRange::new(*least, *most) else { continue };
                    let known = here.get(name).map_or(Remainders::ALL, |v| v.range().remainders());
                    of_range(&mut here, name, range.with_remainders(known))
                }
                Fact::Next(_, remainders) => {
                    let known = here.get(name).map_or(SizeRange::ALL, Var::range);
                    of_range(&mut here, name, known.with_remainders(*remainders))
                }
                Fact::Multiple(..) => continue,
            };
            for (input, shape) in shapes.iter_mut().enumerate() {
                for (axis, d) in shape.iter_mut().enumerate() {
                    let new = d.substitute(&|v| (v.name() == name).then_some(value));
                    if new != *d || new == value {
                        reasons.push(Reason { input, axis, why: why.clone() });
                        *d = new;
                    }
                }
            }
        }
        self.known.clear();
        let all = shapes.iter().flatten().flat_map(|d| d.vars());
        self.known.extend(all.map(|v| (v.name().clone(), v)));
        self.parts.clear();
        (shapes, reasons)
    }
}

/// A variable of another range for an open size.
fn of_range(here: &mut BTreeMap<Arc<str>, Var>, name: &Arc<str>, range: SizeRange) -> Size {
    let usual = here.get(name).map_or(USUAL_SIZE, Var::usual);
    let var = Var::usually(name.clone(), DType::I64, range, usual);
    here.insert(name.clone(), var.clone());
    Size::open(&var)
}
