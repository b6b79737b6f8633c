//! What a measurement is of.
//!
//! Two functions have the same key if their texts are equal after all variables, buffers and blocks
//! got names by the order of their definition.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use serde::{Deserialize, Serialize};
use tilewright_ir::visit::{Subst, fold_block_children, fold_expr_children};
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Fold, Param, TensorFunc, Var};
use tilewright_tvmscript::print_func;

/// The version of the code that is measured: another one makes other kernels.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of a measurement: the hash of all that it depends on, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(pub String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where measurements hold: the machine, and how many threads run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The target in words that tell targets apart.
    pub target: String,
    /// The number of threads.
    pub threads: usize,
}

impl Scope {
    /// The scope as one text.
    pub fn text(&self) -> String {
        format!("{}, {} threads, version {VERSION}", self.target, self.threads)
    }

    /// The code that runs, whatever the number of threads, as one text.
    pub fn code(&self) -> String {
        format!("{}, version {VERSION}", self.target)
    }

    /// The key of a function. `free` are the positions of the arguments that are the same in every
    /// run.
    pub fn function(&self, func: &TensorFunc, free: impl IntoIterator<Item = usize>) -> Key {
        let free: BTreeSet<usize> = free.into_iter().collect();
        self.key(&["function", &canonical(func), &format!("{free:?}")])
    }

    /// The key of a conversion, by the text of its layouts.
    pub fn conversion(&self, layouts: &str) -> Key {
        self.key(&["conversion", layouts])
    }

    /// The key of a whole model, by its text, in some layouts.
    pub fn model(&self, text: &str, layouts: &str) -> Key {
        self.key(&["model", text, layouts])
    }

    fn key(&self, parts: &[&str]) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in [&*self.text()].iter().chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Key(hasher.finalize().to_hex().to_string())
    }
}

/// The text of a function in which names say nothing.
fn canonical(func: &TensorFunc) -> String {
    let mut names = Names::default();
    let mut renamed = func.clone();
    renamed.attrs.remove("global_symbol");
    for param in &mut renamed.params {
        match param {
            Param::Scalar(v) => *v = names.var_def(v),
            Param::Buffer { handle, buffer } => {
                *handle = names.var_def(handle);
                *buffer = names.buffer_def(buffer);
            }
        }
    }
    renamed.body = names.stmt(&func.body);
    print_func("main", &renamed)
}

/// Gives what is defined names by the order of definition.
#[derive(Default)]
struct Names {
    vars: HashMap<Var, Expr>,
    buffers: HashMap<Buffer, Buffer>,
    blocks: usize,
    /// What became of shared expressions.
    done: HashMap<usize, (Expr, Expr)>,
}

impl Fold for Names {
    fn expr(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Var(v) = e.kind() {
            return self.vars.get(v).cloned().unwrap_or_else(|| e.clone());
        }
        if let Some((_, new)) = self.done.get(&e.address()) {
            return new.clone();
        }
        let new = fold_expr_children(self, e);
        if e.is_shared() {
            self.done.insert(e.address(), (e.clone(), new.clone()));
        }
        new
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        self.blocks += 1;
        let name: Arc<str> = format!("b{}", self.blocks).into();
        let mut new = (*fold_block_children(self, b)).clone();
        new.name = name;
        Arc::new(new)
    }

    fn var_def(&mut self, v: &Var) -> Var {
        let new = Var::new(format!("v{}", self.vars.len()), v.dtype());
        // What was folded may hold the variable by its old name.
        self.done.clear();
        self.vars.insert(v.clone(), new.expr());
        new
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        if let Some(new) = self.buffers.get(b) {
            return new.clone();
        }
        let data = match self.vars.get(&b.data).and_then(|e| e.as_var().cloned()) {
            Some(data) => data,
            None => self.var_def(&b.data),
        };
        let mut shape = Subst::vars(self.vars.iter().map(|(v, e)| (v.clone(), e.clone())));
        let name: Arc<str> = format!("m{}", self.buffers.len()).into();
        let new = b.derive(|d| {
            d.name = name;
            d.data = data;
            d.shape = d.shape.iter().map(|e| shape.expr(e)).collect();
            d.strides = d.strides.iter().map(|e| shape.expr(e)).collect();
            d.elem_offset = d.elem_offset.as_ref().map(|e| shape.expr(e));
        });
        self.buffers.insert(b.clone(), new.clone());
        new
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        self.buffers.get(b).cloned().unwrap_or_else(|| b.clone())
    }
}
