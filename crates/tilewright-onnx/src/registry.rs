//! The operators that are supported, with the opsets in which they are: each importer's file says which
//! ones it imports.

use std::sync::LazyLock;

use tilewright_ir::{Error, Result};

use crate::build::Plain;
use crate::operator::{Import, OPSETS, Operator};
use crate::ops::{
    arithmetic, attention, constants, contraction, dynamic, experts, features, grouped, indexed,
    linear, list, loss, maps, microsoft, ml, movement, narrow, nchwc, nested, norm, packed, pool,
    qlinear, quantize, quantized, quantized_recurrent, random, recurrent, reduce, resize, sample,
    signal, text, tokenizer, trees,
};

/// The operators of each domain; the domains are sorted by name.
static OPERATORS: &[(&str, &[&[Operator]])] = &[
    (
        "",
        &[
            arithmetic::OPERATORS,
            attention::OPERATORS,
            constants::OPERATORS,
            contraction::OPERATORS,
            dynamic::OPERATORS,
            indexed::OPERATORS,
            list::OPERATORS,
            loss::OPERATORS,
            microsoft::PLAIN,
            ml::OPERATORS,
            movement::OPERATORS,
            narrow::OPERATORS,
            nested::OPERATORS,
            norm::OPERATORS,
            pool::OPERATORS,
            quantize::OPERATORS,
            quantized::OPERATORS,
            random::OPERATORS,
            recurrent::OPERATORS,
            reduce::OPERATORS,
            resize::OPERATORS,
            sample::OPERATORS,
            signal::OPERATORS,
            text::OPERATORS,
        ],
    ),
    (
        "ai.onnx.ml",
        &[features::OPERATORS, linear::OPERATORS, maps::OPERATORS, ml::ML, trees::OPERATORS],
    ),
    ("ai.onnx.preview", &[attention::PREVIEW]),
    (
        MICROSOFT_DOMAIN,
        &[
            experts::OPERATORS,
            grouped::OPERATORS,
            microsoft::OPERATORS,
            packed::OPERATORS,
            qlinear::OPERATORS,
            quantized_recurrent::OPERATORS,
            tokenizer::OPERATORS,
        ],
    ),
    ("com.microsoft.nchwc", &[nchwc::OPERATORS]),
];

/// A domain, and its operators, sorted by name. ONNX's own domain has no name. Those of
/// `com.microsoft` go by the opset of ONNX, which their own version says nothing of; the others have versions
/// of their own.
struct Domain {
    name: &'static str,
    operators: Vec<Operator>,
}

/// All domains, sorted by name.
static DOMAINS: LazyLock<Vec<Domain>> = LazyLock::new(|| {
    OPERATORS
        .iter()
        .map(|(name, parts)| {
            let mut operators = parts.concat();
            operators.sort_by_key(|o| o.name);
            Domain { name, operators }
        })
        .collect()
});

const MICROSOFT_DOMAIN: &str = "com.microsoft";

/// Whether there are operators of a domain.
pub(crate) fn has_domain(domain: &str) -> bool {
    domain == "ai.onnx" || DOMAINS.iter().any(|d| d.name == domain)
}

/// The domain whose version counts for the operators of one: ONNX's own, unless there are operators of
/// it with versions of their own.
pub(crate) fn versions_of(domain: &str) -> &str {
    match domain {
        MICROSOFT_DOMAIN => "",
        other if DOMAINS.iter().any(|d| d.name == other) => other,
        _ => "",
    }
}

/// An operator that can be imported, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedOp {
    /// Its domain; ONNX's own one has no name.
    pub domain: &'static str,
    /// ONNX's name.
    pub name: &'static str,
    /// First opset in which it is supported.
    pub min: i64,
    /// Last opset in which it is supported.
    pub max: i64,
}

/// The operators that can be imported, by domain and name: those of ONNX's own domain first.
pub fn supported_ops() -> impl Iterator<Item = SupportedOp> {
    DOMAINS.iter().flat_map(|domain| {
        domain.operators.iter().map(|o| SupportedOp {
            domain: domain.name,
            name: o.name,
            min: o.versions.0,
            max: o.versions.1,
        })
    })
}

/// The operator of a domain and name; the error says where to look. The opset is the version of the
/// domain that [`versions_of`] says.
pub(crate) fn find(domain: &str, name: &str, opset: i64) -> Result<&'static Operator> {
    let standard = if domain == "ai.onnx" { "" } else { domain };
    let Some(Domain { operators: table, .. }) = DOMAINS.iter().find(|d| d.name == standard) else {
        let names = DOMAINS.iter().map(|d| d.name).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        return Err(Error::unsupported(format!(
            "operators of the domain `{domain}` are not supported"
        ))
        .note(format!("ONNX's own operators are, and some of {}", names.join(", "))));
    };
    let Ok(at) = table.binary_search_by(|o| o.name.cmp(name)) else {
        return Err(Error::unsupported("the operator is not supported")
            .help("`tilewright ops` lists those that are"));
    };
    let found = &table[at];
    if (found.versions.0..=found.versions.1).contains(&opset) {
        Ok(found)
    } else {
        Err(Error::unsupported(format!(
            "the operator is not supported in this opset; it is in opsets {} to {}",
            found.versions.0, found.versions.1
        )))
    }
}

/// The importer of an operator of ONNX's own without graphs, in its newest version.
pub(crate) fn plain(name: &str) -> Result<Plain> {
    match find("", name, OPSETS.1)?.import {
        Import::Plain(import) => Ok(import),
        Import::WithGraphs(_) => Err(Error::internal(format!("`{name}` has graphs"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_opsets_are_supported() {
        for Domain { operators, .. } in DOMAINS.iter() {
            assert!(operators.is_sorted_by(|a, b| a.name < b.name));
            assert!(operators.iter().all(|o| o.versions.0 >= OPSETS.0 && o.versions.1 <= OPSETS.1));
        }
        assert!(DOMAINS.is_sorted_by(|a, b| a.name < b.name));
    }
}
