//! Which accesses never meet.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::walk_expr;
use tilewright_ir::{Buffer, Expr, TensorFunc, Var, Visit};

use super::code::Shared;

/// Alias information on accesses: the text that follows a load or store of each buffer.
#[derive(Default)]
pub(super) struct Aliases(HashMap<u64, String>);

impl Aliases {
    /// Finds buffers that are views of one memory at different places: loads and stores of them
    /// never meet, which LLVM is told through alias scopes, one a view.
    pub fn find(func: &TensorFunc, shared: &Shared) -> Aliases {
        let mut found = Views::default();
        found.stmt(&func.body);
        let mut by_memory: HashMap<Var, Vec<(Buffer, i64, i64)>> = HashMap::default();
        for b in found.buffers {
            let (start, end) = extent_in_bytes(&b).unwrap_or((i64::MIN, i64::MAX));
            by_memory.entry(b.data.clone()).or_default().push((b, start, end));
        }
        let mut groups: Vec<_> = by_memory.into_values().filter(|g| g.len() > 1).collect();
        groups.sort_by_key(|g| g.first().map(|(b, ..)| b.id()));
        let mut texts = HashMap::default();
        for group in groups {
            let domain = shared.node(|id| format!("distinct !{{!{id}}}"));
            let scopes: Vec<String> = group
                .iter()
                .map(|_| shared.node(|id| format!("distinct !{{!{id}, !{domain}}}")))
                .collect();
            for ((b, start, end), scope) in group.iter().zip(&scopes) {
                let apart: Vec<String> = group
                    .iter()
                    .zip(&scopes)
                    .filter(|((_, s, e), _)| s >= end || e <= start)
                    .map(|(_, scope)| format!("!{scope}"))
                    .collect();
                if apart.is_empty() {
                    continue;
                }
                let own = shared.node(|_| format!("!{{!{scope}}}"));
                let others = shared.node(|_| format!("!{{{}}}", apart.join(", ")));
                texts.insert(b.id(), format!(", !alias.scope !{own}, !noalias !{others}"));
            }
        }
        Aliases(texts)
    }

    pub(super) fn attributes(&self, b: &Buffer) -> &str {
        self.0.get(&b.id()).map_or("", String::as_str)
    }
}

/// Collects the buffers that are accessed, each once.
#[derive(Default)]
struct Views {
    buffers: Vec<Buffer>,
    /// Nodes that were visited; they may be shared many times.
    seen: HashSet<usize>,
}

impl Visit for Views {
    fn expr(&mut self, e: &Expr) {
        if self.seen.insert(e.address()) {
            walk_expr(self, e);
        }
    }
    fn buffer_use(&mut self, b: &Buffer) {
        if !self.buffers.contains(b) {
            self.buffers.push(b.clone());
        }
    }
}

/// The bytes that a buffer covers behind its pointer, where that is constant.
fn extent_in_bytes(b: &Buffer) -> Option<(i64, i64)> {
    let element = i64::try_from(b.dtype().bytes()).ok()?.checked_mul(b.dtype().lanes.into())?;
    let offset = match &b.elem_offset {
        Some(e) => e.as_int()?,
        None => 0,
    };
    let shape = b.const_shape()?;
    let count = if b.strides.is_empty() {
        shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?
    } else {
        let strides: Option<Vec<i64>> = b.strides.iter().map(Expr::as_int).collect();
        shape.iter().zip(strides?).try_fold(1i64, |n, (d, s)| {
            if s < 0 {
                return None;
            }
            n.checked_add(d.checked_sub(1)?.checked_mul(s)?)
        })?
    };
    let start = offset.checked_mul(element)?;
    Some((start, start.checked_add(count.checked_mul(element)?)?))
}
