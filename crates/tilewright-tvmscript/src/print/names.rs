//! Names in the printed text: Python identifiers, each for one thing at a time.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::text::Names;
use tilewright_ir::{Buffer, DType, Expr, GraphVar, Var, text};

use crate::expr::BARE;
use crate::tensor::LOOPS;

/// Python's keywords.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Names that mean something in a script, beside those of loops and of functions without `T.`.
const SCRIPT: &[&str] = &[
    "I", "Module", "R", "T", "block", "call_tir", "cls", "float", "grid", "int", "metadata",
    "range", "relax", "tir", "tirx", "tvm",
];

/// Whether a name has a meaning of its own.
fn is_reserved(name: &str) -> bool {
    let lists = [KEYWORDS, SCRIPT, BARE];
    lists.iter().any(|list| list.contains(&name)) || LOOPS.iter().any(|(n, _)| *n == name)
}

/// Whether a text is a name that can be printed as it is.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_reserved(name)
}

/// The name itself, or an identifier like it.
pub(crate) fn identifier(name: &str) -> String {
    if is_identifier(name) {
        return name.to_owned();
    }
    let mut text: String =
        name.chars().take(200).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, 'v');
    }
    if is_reserved(&text) {
        text.push('_');
    }
    text
}

/// `x`, `x_1`, `x_2`, ...
fn numbered(base: &str, number: usize) -> String {
    match number {
        0 => base.to_owned(),
        _ => format!("{base}_{number}"),
    }
}

/// Hands out names in nested scopes. A name is free again when its scope ends.
#[derive(Default)]
pub(crate) struct Namer {
    vars: HashMap<Var, String>,
    buffers: HashMap<Buffer, String>,
    graph: HashMap<u64, String>,
    used: HashSet<String>,
    /// Where to look for the next free number after a name.
    numbers: HashMap<String, usize>,
    /// Names of each open scope: base and number.
    scopes: Vec<Vec<(String, usize)>>,
    /// The type of integers that are printed plainly, if not `int32`.
    pub(crate) int: Option<DType>,
}

impl Namer {
    /// Opens a scope.
    pub(crate) fn push(&mut self) {
        self.scopes.push(Vec::new());
    }

    /// Closes the innermost scope.
    pub(crate) fn pop(&mut self) {
        for (base, number) in self.scopes.pop().unwrap_or_default() {
            self.used.remove(&numbered(&base, number));
            if let Some(next) = self.numbers.get_mut(&base) {
                *next = (*next).min(number.max(1));
            }
        }
    }

    /// A name like `hint` that nothing else has now.
    pub(crate) fn fresh(&mut self, hint: &str) -> String {
        let base = identifier(hint);
        let mut number = 0;
        if self.used.contains(&base) {
            number = self.numbers.get(&base).copied().unwrap_or(1);
            while self.used.contains(&numbered(&base, number)) {
                number += 1;
            }
            self.numbers.insert(base.clone(), number + 1);
        }
        let name = numbered(&base, number);
        self.used.insert(name.clone());
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((base, number));
        }
        name
    }

    /// Names a variable where it is defined.
    pub(crate) fn define(&mut self, v: &Var) -> String {
        self.define_as(v, v.name())
    }

    /// Names a variable after `hint` instead of its own name.
    pub(crate) fn define_as(&mut self, v: &Var, hint: &str) -> String {
        let name = self.fresh(hint);
        self.vars.insert(v.clone(), name.clone());
        name
    }

    /// Names a buffer where it is defined; its pointer, unless it has a name, is `A.data`.
    pub(crate) fn define_buffer(&mut self, b: &Buffer) -> String {
        let name = self.fresh(&b.name);
        self.buffers.insert(b.clone(), name.clone());
        self.vars.entry(b.data.clone()).or_insert_with(|| format!("{name}.data"));
        name
    }

    /// Names a graph variable where it is defined.
    pub(crate) fn define_graph(&mut self, v: &GraphVar) -> String {
        let name = self.fresh(v.name());
        self.graph.insert(v.id(), name.clone());
        name
    }

    /// Name of a variable, if it has one.
    pub(crate) fn known(&self, v: &Var) -> Option<&str> {
        self.vars.get(v).map(String::as_str)
    }

    /// Name of a graph variable.
    pub(crate) fn graph(&mut self, v: &GraphVar) -> String {
        match self.graph.get(&v.id()) {
            Some(name) => name.clone(),
            None => self.define_graph(v),
        }
    }

    /// The text of an expression.
    pub(crate) fn expr(&mut self, e: &Expr) -> String {
        text::expr_to_string(e, self)
    }
}

impl Names for Namer {
    fn var(&mut self, v: &Var) -> String {
        match self.vars.get(v) {
            Some(name) => name.clone(),
            None => self.define(v),
        }
    }

    fn buffer(&mut self, b: &Buffer) -> String {
        match self.buffers.get(b) {
            Some(name) => name.clone(),
            None => self.define_buffer(b),
        }
    }

    fn default_int(&self) -> DType {
        self.int.unwrap_or(DType::I32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_gets_an_identifier() {
        assert_eq!(identifier("x1"), "x1");
        assert_eq!(identifier("gpu_0/data_0"), "gpu_0_data_0");
        assert_eq!(identifier("0"), "v0");
        assert_eq!(identifier(""), "v");
        assert_eq!(identifier("lambda"), "lambda_");
        assert_eq!(identifier("größe"), "gr__e");
        for name in ["T", "", "1x", "a b", "é", "for", "range", "-"] {
            assert!(is_identifier(&identifier(name)), "{name}");
        }
    }

    #[test]
    fn names_are_unique_in_their_scope_and_free_after_it() {
        let mut n = Namer::default();
        n.push();
        assert_eq!(n.fresh("i"), "i");
        n.push();
        assert_eq!(n.fresh("i"), "i_1");
        assert_eq!(n.fresh("i"), "i_2");
        assert_eq!(n.fresh("i_1"), "i_1_1");
        n.pop();
        assert_eq!(n.fresh("i"), "i_1");
        assert_eq!(n.fresh("i"), "i_2");
    }

    #[test]
    fn many_names_take_no_quadratic_time() {
        let mut n = Namer::default();
        for i in 1..50_000 {
            n.fresh("x");
            assert_eq!(n.used.len(), i);
        }
    }
}
