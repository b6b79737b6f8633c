//! One tensor function from several: stages one after the other, what passes between them in
//! buffers of the merged function, and then inlined.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::index::either;
use tilewright_ir::visit::{Subst, fold_block_children, fold_expr_children};
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Fold, Param, Stmt, TensorFunc};
use tilewright_transform::inline_spatial;
use tilewright_transform::names::{UniqueNames, unique_blocks};

/// Longest name of a merged function, in bytes, before it is made unique.
const MAX_NAME: usize = 48;

/// Where an input of a member comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The merged function's parameter.
    Param(usize),
    /// The result of an earlier member.
    Member(usize),
    /// A number, as the bits of a `float64`: all that each cell of an input holds.
    Literal(u64),
}

/// A function with one result, its last parameter, and where its inputs come from.
pub struct Member {
    /// The function.
    pub func: Arc<TensorFunc>,
    /// One for each input, in the order of its parameters.
    pub sources: Vec<Source>,
}

/// The function that does what the members do in turn: parameters for the inputs that come from
/// outside, then the result of the last member. All members are in canonical form, and an input
/// has the type of what it comes from.
pub fn merge(members: &[Member], params: usize) -> TensorFunc {
    let mut inputs: Vec<Option<Buffer>> = vec![None; params];
    let mut results: Vec<Buffer> = Vec::new();
    let (mut allocs, mut bodies) = (Vec::new(), Vec::new());
    let mut names = UniqueNames::default();
    for member in members {
        let mut subst = Subst::refresh();
        let mut literals = Literals(HashMap::default());
        let buffers: Vec<&Buffer> = member.func.buffers().collect();
        for (buffer, source) in buffers.iter().zip(&member.sources) {
            let new = match source {
                Source::Literal(bits) => {
                    let (value, dtype) = (f64::from_bits(*bits), buffer.dtype());
                    let value = if dtype.is_float() {
                        Expr::float(value, dtype)
                    } else {
                        Expr::int(value as i64, dtype)
                    };
                    literals.0.insert((*buffer).clone(), value);
                    continue;
                }
                Source::Member(m) => results[*m].clone(),
                Source::Param(p) => {
                    inputs[*p].get_or_insert_with(|| copy(buffer, &mut names)).clone()
                }
            };
            subst.buffers.insert((*buffer).clone(), new);
        }
        if let Some(result) = buffers.last() {
            let new = copy(result, &mut names);
            subst.buffers.insert((*result).clone(), new.clone());
            results.push(new);
        }
        let (inner, body) = member.func.root_parts();
        for buffer in inner {
            let new = copy(buffer, &mut names);
            subst.buffers.insert(buffer.clone(), new.clone());
            allocs.push(new);
        }
        let body = if literals.0.is_empty() { body.clone() } else { literals.stmt(body) };
        bodies.push(subst.stmt(&body));
    }
    // The last member's result is a parameter; the others are allocated inside.
    let result = results.pop();
    allocs.extend(results);
    let params = inputs.iter().flatten().chain(&result).map(Param::tensor).collect();
    let func = TensorFunc::new(params, Stmt::nop()).with_root(allocs, Stmt::seq(bodies));
    let mut func = unique_blocks(&inline_spatial(&func));
    for member in members.iter().map(|m| &m.func) {
        func.pass_sizes(member.shape_vars().into_iter().chain(member.scalars().cloned()));
    }
    func
}

/// Replaces what is read of buffers of one cell by what they hold.
struct Literals(HashMap<Buffer, Expr>);

impl Fold for Literals {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(buffer, _) if self.0.contains_key(buffer) => self.0[buffer].clone(),
            _ => {
                let e = fold_expr_children(self, e);
                match e.kind() {
                    ExprKind::Binary(op, x, y) if op.is_logic() => {
                        either(*op, x, y).cloned().unwrap_or(e)
                    }
                    _ => e,
                }
            }
        }
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let b = fold_block_children(self, b);
        let gone = b.reads.iter().flatten().any(|r| self.0.contains_key(&r.buffer));
        if !gone {
            return b;
        }
        let mut b = (*b).clone();
        if let Some(reads) = &mut b.reads {
            reads.retain(|r| !self.0.contains_key(&r.buffer));
        }
        Arc::new(b)
    }
}

/// A buffer like this one with memory and a name of its own.
fn copy(buffer: &Buffer, names: &mut UniqueNames) -> Buffer {
    let name = names.take(&buffer.name);
    buffer.derive_storage(|d| d.name = name)
}

/// `conv_add_relu` for the functions `conv_3`, `add`, `relu_1`: the names without their numbers,
/// as many as fit.
pub fn joined_name(parts: &[&str]) -> String {
    let mut name = String::new();
    for (n, part) in parts.iter().enumerate() {
        let base = match part.rsplit_once('_') {
            Some((base, digits))
                if !base.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
            {
                base
            }
            _ => part,
        };
        if name.len() + 1 + base.len() > MAX_NAME {
            let sep = if name.is_empty() { "" } else { "_" };
            return format!("{name}{sep}and_{}_more", parts.len() - n);
        }
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(base);
    }
    name
}
