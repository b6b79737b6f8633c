//! What is known of short lists of integers that are computed when the model runs.
//!
//! A list such as the target of a Reshape is often joined of sizes and of numbers that data decide. Each entry of
//! it is known by itself, so that what is known stays known where the list is needed as sizes.
//!
//! Of what floats compute of sizes it is known what comes out as long as these floats are exact: it is expected, and
//! where it becomes a size, a run compares.

use tilewright_ir::Dim;
use tilewright_ir::dim::{self, Integer, SizeRange};

use super::Builder;
use crate::extents::MAX_RANK;
use crate::imported::Imported;
use crate::ratio::Ratio;
use crate::sizes::is_whole;

/// An entry of a list of integers.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Known(Integer),
    /// The one at a position of a value of the graph, in row-major order.
    Of(Imported, usize),
}

impl Builder {
    /// The entries of a list of integers; nothing where it is no such list, or a long one.
    pub(crate) fn entries(&self, list: &Imported) -> Option<Vec<Entry>> {
        let count = dim::product(list.shape()).known().filter(|count| *count <= MAX_RANK)?;
        match list {
            Imported::Sizes(s) => Some(s.values.iter().copied().map(Entry::Known).collect()),
            Imported::Const(t) if is_whole(t.dtype()) => (0..count)
                .map(|k| i64::try_from(t.get_i128(k)).ok())
                .map(|n| Some(Entry::Known(n?.into())))
                .collect(),
            Imported::Var { var, dtype, .. } if is_whole(*dtype) => {
                let known = self.entries_of.get(&var.id()).cloned();
                Some(
                    known.unwrap_or_else(|| {
                        (0..count).map(|k| Entry::Of(list.clone(), k)).collect()
                    }),
                )
            }
            _ => None,
        }
    }

    /// The numbers in a list as far as they are known but for open sizes; nothing where none is.
    pub(super) fn known_entries(&self, list: &Imported) -> Option<Vec<Option<Integer>>> {
        let entries = list.var().and_then(|var| self.entries_of.get(&var.id()))?;
        let known = entries.iter().map(|entry| match entry {
            Entry::Known(value) => Some(*value),
            Entry::Of(..) => None,
        });
        Some(known.collect())
    }

    /// Takes note of the numbers in a list, as far as they are known.
    pub(super) fn note_known(&mut self, list: &Imported, known: &[Option<Ratio>]) {
        let is_short = known.len() <= MAX_RANK && is_whole(list.dtype());
        if let (Some(var), true) = (list.var(), is_short && known.iter().any(Option::is_some)) {
            let entries = known.iter().enumerate().map(|(k, value)| {
                let value = value.and_then(Ratio::integer);
                value.map_or_else(|| Entry::Of(list.clone(), k), Entry::Known)
            });
            self.entries_of.insert(var.id(), entries.collect());
        }
    }

    /// Takes note of the numbers in a list that are expected.
    pub(super) fn expect(&mut self, list: &Imported, expected: Vec<Option<Ratio>>) {
        let is_any = expected.len() <= MAX_RANK && expected.iter().any(Option::is_some);
        if let (Some(var), true) = (list.var(), is_any) {
            self.expected_of.insert(var.id(), expected);
        }
    }

    /// The numbers in a list that are expected; nothing where none is.
    pub(super) fn expected(&self, list: &Imported) -> Option<&Vec<Option<Ratio>>> {
        self.expected_of.get(&list.var()?.id())
    }

    /// The size that an entry of a list is expected to be, where it is in a range for certain.
    pub(super) fn expected_size(
        &self,
        list: &Imported,
        at: usize,
        range: SizeRange,
    ) -> Option<Dim> {
        let value = self.expected(list)?.get(at).copied()??.integer()?;
        let is_least = value.is_less(i64::try_from(range.least()).ok()?) == Some(false);
        value.dim().filter(|_| is_least)
    }

    /// Takes note of what a list of integers is joined of, or is a copy of.
    pub(crate) fn note_parts(&mut self, list: &Imported, parts: &[Imported]) {
        let entries = parts.iter().map(|part| self.entries(part)).collect::<Option<Vec<_>>>();
        let Some(entries) = entries.map(|parts| parts.concat()) else { return };
        let count = dim::product(list.shape());
        if let (Some(var), true) =
            (list.var(), count == Dim::from(entries.len()) && entries.len() <= MAX_RANK)
        {
            self.entries_of.insert(var.id(), entries);
        }
    }
}
