//! Second step: which candidates go.
//!
//! One flow for each memory that they write, with the added instances in it, shows what leaks out of them. A
//! guard that leaks is put back, and only the memories that it touched are looked at again. The second and third
//! reason (see [`super`]) depend on reads; that nothing added changes what these see is part of the question.
//! Much is known before: that a later stage overwrites all of what an added store writes, or that other memory
//! makes its value neutral. The flow of sums through their cells costs most, and is looked at only for what is
//! left.

use tilewright_ir::hash::HashSet;

use tilewright_analysis::neutral::Floats;
use tilewright_ir::{Buffer, Error, Remarks};
use tilewright_polyhedral::scop::GuardId;

use super::added::Added;
use super::candidates::{Candidates, stays};
use super::leaks::Leaks;
use super::unchanged::Knowledge;

impl Candidates<'_> {
    /// Puts guards back until nothing leaks, and gives the reasons to `why`: first those whose values are
    /// used, then, if `reads` count, those under which something is read that may not be.
    pub fn decide(&mut self, reads: bool, why: &mut Remarks) {
        let suspects: Vec<usize> = self.suspects();
        self.judge(&suspects, false);
        let touched: HashSet<Buffer> = self.extras.keys().flat_map(|k| self.touched(*k)).collect();
        let (mut values, mut unread) = (touched.clone(), touched);
        while !values.is_empty() || (reads && !unread.is_empty()) {
            let mut found = Leaks::new();
            let by_value = !values.is_empty();
            let open = std::mem::take(if by_value { &mut values } else { &mut unread });
            for memory in self.scop.memories().into_iter().filter(|m| open.contains(*m)) {
                if by_value {
                    self.leaks(memory, &mut found)
                } else {
                    self.forbidden(memory, &mut found);
                    self.copies_of_nothing(memory, &mut found);
                }
            }
            let mut new: Vec<usize> = found.keys().copied().collect();
            new.retain(|k| by_value && !self.extras[k].judged);
            if self.judge(&new, true) {
                values = new.iter().flat_map(|k| self.touched(*k)).chain(open).collect();
                continue;
            }
            for (k, leak) in found {
                let Some(id) = self.extras.get(&k).map(|x| x.guard) else { continue };
                let reason = leak.why(|error| self.hint(k, error));
                let touched = self.put_back(id, reason, why);
                values.extend(touched.iter().cloned());
                unread.extend(touched);
            }
        }
    }

    /// Finds out where stores change nothing, from what memory holds; from what their own cells
    /// hold, if asked. Whether that makes a difference.
    fn judge(&mut self, stores: &[usize], own: bool) -> bool {
        let places: HashSet<Option<usize>> =
            stores.iter().map(|k| self.stmt(*k).map(|s| s.place)).collect();
        let asked: Vec<&Added> = self
            .extras
            .iter()
            .filter(|(k, _)| places.contains(&self.stmt(**k).map(|s| s.place)))
            .map(|(_, x)| &x.added)
            .collect();
        let knowledge = Knowledge::new(self.scop);
        let mut found = Vec::new();
        for k in stores {
            let added = self.extras.get(k).map(|x| &x.added);
            let unchanged =
                |floats| added.and_then(|a| knowledge.unchanged(a, &asked, own, floats));
            let known = unchanged(self.floats);
            let if_finite = known.is_none() && unchanged(Floats::Finite).is_some();
            found.push((*k, known, if_finite));
        }
        let mut differs = false;
        for (k, unchanged, if_finite) in found {
            let Some(x) = self.extras.get_mut(&k) else { continue };
            x.judged |= own;
            x.if_finite |= if_finite;
            let Some(u) = unchanged else { continue };
            let rest = x.added.what.domain.to_set().and_then(|all| all.subtract(&u.points));
            let Ok(rest) = rest else { continue };
            x.writes = (!rest.is_void()).then(|| rest.domain());
            differs = true;
            self.depend_on(u.depends_on);
        }
        differs
    }

    /// Leaves a guard where it is. The memories about which that makes a difference.
    fn put_back(&mut self, id: GuardId, reason: Error, why: &mut Remarks) -> Vec<Buffer> {
        if let Some(guard) = self.guards.remove(&id) {
            why.push(stays(&guard, reason));
        }
        let gone: Vec<usize> =
            self.extras.iter().filter(|(_, x)| x.guard == id).map(|(k, _)| *k).collect();
        let touched = gone.iter().flat_map(|k| self.touched(*k)).collect();
        for k in gone {
            self.extras.remove(&k);
        }
        touched
    }

    /// What the user could say to let a store go.
    fn hint(&self, k: usize, error: Error) -> Error {
        if self.extras.get(&k).is_some_and(|x| x.if_finite) {
            error
                .note("zero times what is not finite is not zero")
                .help("if all values are finite numbers, say so: `finite`")
        } else {
            error
        }
    }
}
