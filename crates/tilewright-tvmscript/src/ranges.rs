//! What sizes may be, in the text: `{"tir_var_lower_bound": {"n": 1}, "tir_var_upper_bound": {"n": 512}}`
//! among the attributes of a function, as Relax writes it. Sizes next to multiples of a number are
//! `{"tir_var_remainders": {"n": [32, 15, 16]}}`: `(n + 15) % 32` is less than 16. In memory the range belongs to the
//! variable.

use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use ruff_python_ast as ast;
use tilewright_ir::dim::{Remainders, SizeRange};
use tilewright_ir::{Attr, Attrs, DType, Error, Result, Var};

use crate::args::Args;
use crate::env::Item;
use crate::expr::{ExprParser, Space};

/// The attributes with the least and the most that sizes may be, by name.
const ENDS: [&str; 2] = ["tir_var_lower_bound", "tir_var_upper_bound"];

/// The attribute with the remainders of sizes, by name: a number, how far below its multiples sizes begin, and how many
/// there are at each.
const REMAINDERS: &str = "tir_var_remainders";

/// The ranges that attributes say, which are taken out of them.
fn take(attrs: &mut Attrs) -> Result<HashMap<String, SizeRange>> {
    let mut ends: BTreeMap<Arc<str>, [usize; 2]> = BTreeMap::new();
    for (at, key) in ENDS.iter().enumerate() {
        let Some(attr) = attrs.remove(*key) else { continue };
        let Attr::Map(sizes) = attr else { return Err(no_range(key)) };
        for (name, size) in sizes {
            let Attr::Int(size) = size else { return Err(no_range(key)) };
            let all = [SizeRange::ALL.least(), SizeRange::ALL.most()];
            ends.entry(name).or_insert(all)[at] = usize::try_from(size).unwrap_or(0);
        }
    }
    let mut remainders = take_remainders(attrs)?;
    for name in remainders.keys() {
        ends.entry(name.clone()).or_insert([SizeRange::ALL.least(), SizeRange::ALL.most()]);
    }
    ends.into_iter()
        .map(|(name, [least, most])| {
            let range = SizeRange::new(least, most).map_err(|e| {
                let notes = e.diagnostic().notes.clone();
                let error = Error::syntax(format!("{e}, which is given to `{name}`"));
                notes.into_iter().fold(error, Error::note)
            })?;
            let remainders = remainders.remove(&name).unwrap_or(Remainders::ALL);
            Ok((name.to_string(), range.with_remainders(remainders)))
        })
        .collect()
}

/// The remainders that an attribute says, which is taken out of them.
fn take_remainders(attrs: &mut Attrs) -> Result<BTreeMap<Arc<str>, Remainders>> {
    let expected = || {
        Error::syntax(format!(
            "expected `\"{REMAINDERS}\": {{\"n\": [MODULUS, BELOW, COUNT], ...}}`"
        ))
        .note(
            "`(n + BELOW) % MODULUS` is less than COUNT, and BELOW and COUNT are less than MODULUS",
        )
    };
    let Some(attr) = attrs.remove(REMAINDERS) else { return Ok(BTreeMap::new()) };
    let Attr::Map(sizes) = attr else { return Err(expected()) };
    let read = |attr: &Attr| {
        let Attr::List(parts) = attr else { return None };
        let [Attr::Int(modulus), Attr::Int(below), Attr::Int(count)] = parts.as_slice() else {
            return None;
        };
        let [modulus, below, count] =
            [*modulus, *below, *count].map(|n| u32::try_from(n).ok().map(|n| n as usize));
        let (modulus, below, count) = (modulus?, below?, count?);
        (count > 0 && count < modulus && below < modulus).then_some(Remainders {
            modulus,
            below,
            count,
        })
    };
    sizes.into_iter().map(|(name, attr)| Ok((name, read(&attr).ok_or_else(expected)?))).collect()
}

fn no_range(key: &&str) -> Error {
    Error::syntax(format!("expected `\"{key}\": {{\"n\": SIZE, ...}}`"))
}

/// Adds the ranges of variables, each with its name in the text, to attributes.
pub(crate) fn with_ranges<'a>(
    attrs: &Attrs,
    vars: impl Iterator<Item = (&'a Var, String)>,
) -> Attrs {
    let mut attrs = attrs.clone();
    for (v, name) in vars {
        let ends = [v.range().least(), v.range().most()];
        let usual = [SizeRange::ALL.least(), SizeRange::ALL.most()];
        for ((key, end), usual) in ENDS.iter().zip(ends).zip(usual) {
            if end == usual {
                continue;
            }
            let sizes = attrs.entry((*key).into()).or_insert_with(|| Attr::Map(Attrs::new()));
            if let Attr::Map(sizes) = sizes {
                sizes.insert(name.as_str().into(), Attr::Int(end as i64));
            }
        }
        if let Remainders { modulus: modulus @ 2.., below, count } = v.range().remainders() {
            let sizes = attrs.entry(REMAINDERS.into()).or_insert_with(|| Attr::Map(Attrs::new()));
            if let Attr::Map(sizes) = sizes {
                let parts = [modulus, below, count].map(|n| Attr::Int(n as i64));
                sizes.insert(name.as_str().into(), Attr::List(parts.to_vec()));
            }
        }
    }
    attrs
}

impl ExprParser {
    /// Reads the ranges of a function's sizes from its statements, before the sizes are defined.
    /// What is wrong with them is said where the statement is read.
    pub(crate) fn find_ranges(&mut self, body: &[ast::Stmt]) {
        self.ranges.clear();
        for s in body {
            if let ast::Stmt::Expr(e) = s
                && let ast::Expr::Call(c) = &*e.value
                && self.path(&c.func).is_some_and(|(_, name)| name == "func_attr")
                && let Ok(args) = Args::bind(c, "func_attr", &["attrs"])
                && let Ok(at) = args.need("attrs")
                && let Ok(mut attrs) = self.attrs(at)
                && let Ok(ranges) = take(&mut attrs)
            {
                self.ranges.extend(ranges);
            }
        }
    }

    /// The attributes of a function without the ranges of sizes.
    ///
    /// # Errors
    /// `Syntax` with the place where they are no ranges.
    pub(crate) fn func_attrs(&mut self, at: &ast::Expr) -> Result<Attrs> {
        let mut attrs = self.attrs(at)?;
        take(&mut attrs).map_err(|e| e.at(self.span(at)))?;
        Ok(attrs)
    }

    /// The type of the variable that `T.int64()` declares.
    pub(crate) fn declared(&self, c: &ast::ExprCall) -> Option<DType> {
        match self.path(&c.func) {
            Some((Space::T, name)) if c.arguments.args.is_empty() => name.parse().ok(),
            _ => None,
        }
    }

    /// Declares a variable that something else defines. Declaring what a shape has named already
    /// changes nothing.
    pub(crate) fn declare_var(&mut self, name: &str, dtype: DType) {
        match self.env.get(name) {
            Some(Item::Var(v)) if v.dtype() == dtype => {}
            _ => self.env.insert(name, Item::Var(self.size_var(name, dtype))),
        }
    }

    /// A variable that something else defines, such as an extent of a parameter.
    pub(crate) fn size_var(&self, name: &str, dtype: DType) -> Var {
        let range = self.ranges.get(name).copied().unwrap_or(SizeRange::ALL);
        Var::size(name, dtype, range)
    }
}
