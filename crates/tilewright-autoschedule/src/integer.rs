//! Sums of products of 8-bit integers less their zero points, as sums of what instructions multiply.
//!
//! A quantised product is `sum((a - za) * (w - zw))` in `int32`. Instructions multiply an unsigned by a
//! signed byte, or pairs of `int16`, and have no zero points. Where the machine multiplies bytes, an
//! operand of the wrong sign is moved by 128, and so is its zero point; then the product is expanded:
//!
//! ```text
//! sum((a - za) * (w - zw)) == sum(a * w) - zw * sum(a) - za * sum(w) + K * za * zw
//! ```
//!
//! Both sides are polynomials of the same integers, and `int32` is the ring of integers modulo 2^32: sums
//! and products that wrap are equal where the polynomials are. So it holds for all values, also where
//! sums overflow. Where the machine multiplies pairs of `int16`, `a - za` and `w - zw`, which lie in
//! -255..=255, are such operands as they are, and two products of them do not leave `int32`.
//!
//! What is made of one argument alone (a moved operand, its sums) is marked ([`PRE`](tilewright_layout::marks::PRE)), so that it can be
//! made once where the argument is a constant.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use crate::options::{CPU, FEATURES, TRIPLE, target};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    BinOp, Buffer, DType, Dim, Expr, ExprKind, Fold, IterKind, Module, Stmt, TensorFunc, TypeKind,
    Var, dim,
};
use tilewright_target::{Target, TensorInstruction};
use tilewright_transform::pass::{Pass, Run};

use crate::blocks;
use crate::canonical::{mapped, pre, sole_reader};
use crate::contraction::is_free;
use crate::threads::as_product::as_products;
use crate::{halves, padding};

/// `expand_products` by name.
pub const PASS: Pass = Pass {
    name: "expand_products",
    summary: "turn products of integers less zero points into products that instructions compute",
    options: &[&CPU, &FEATURES, &TRIPLE],
    run: Run::Module(|module, given, _| Ok(expand_products(module, &target(given)?))),
};

/// The fewest elements of a group: with fewer, most of an instruction multiplies padding.
const FEWEST: usize = 4;

/// Expands the products of 8-bit integers in every function, for the instructions of a machine.
pub fn expand_products(module: &Module, target: &Target) -> Module {
    let mut out = module.clone();
    for (name, func) in module.tensors() {
        if let Some(new) = expand(func, target) {
            out.insert(name.clone(), new);
        }
    }
    out
}

/// The function with its products of 8-bit integers expanded, or one with weights in blocks
/// ([`blocks::expand`]), or with factors of products of halves widened (`halves`); `None` where there are none, or
/// nothing is to be done for them.
pub fn expand(func: &TensorFunc, target: &Target) -> Option<TensorFunc> {
    let of_blocks = blocks::expand(func, target);
    of_blocks.or_else(|| expand_with(func, target, &|b| is_free(func, b)))
}

/// The function with its products of 8-bit integers expanded or factors of products of halves widened, where
/// `is_free` says which buffers are the same in every run.
pub(crate) fn expand_with(
    func: &TensorFunc,
    target: &Target,
    is_free: &dyn Fn(&Buffer) -> bool,
) -> Option<TensorFunc> {
    let bytes = expand_bytes(func, target, is_free);
    let products = as_products(bytes.as_ref().unwrap_or(func), target, is_free);
    products.or(bytes).or_else(|| halves::widen(func, target, is_free))
}

/// The function with its products of 8-bit integers expanded.
fn expand_bytes(
    func: &TensorFunc,
    target: &Target,
    is_free: &dyn Fn(&Buffer) -> bool,
) -> Option<TensorFunc> {
    let stages = open_stages(func)?;
    let (allocs, _) = func.root_parts();
    let mut out = Expanded { stmts: Vec::new(), allocs: allocs.to_vec() };
    let mut changed = false;
    let mut at = 0;
    while let Some(stage) = stages.get(at) {
        let made = product(stage).and_then(|p| p.made_of(stage, target, is_free));
        at += 1;
        let Some(made) = made else {
            out.stmts.push(stage.stmt.clone());
            continue;
        };
        changed = true;
        out.stmts.extend(made.before);
        out.allocs.extend(made.allocs);
        out.stmts.push(made.sum.stmt.clone());
        // What alone reads the sums, behind them, reads the products instead.
        let next = sole_reader(allocs, &stages, at - 1).filter(|(k, _)| *k == at);
        match (next, &made.result) {
            (_, None) => {}
            (Some((_, next)), Some(result)) => {
                let value = next.value.replace(|e| match e.kind() {
                    ExprKind::Load(b, at) if *b == stage.buffer => {
                        let vars = stage.indices.iter().zip(at);
                        let map =
                            vars.filter_map(|(i, at)| Some((i.as_var()?.clone(), at.clone())));
                        Some(Subst::vars(map).expr(result))
                    }
                    _ => None,
                });
                out.allocs.retain(|b| *b != stage.buffer);
                out.stmts.push(next.with_value(value).stmt);
                at += 1;
            }
            (None, Some(result)) => {
                let mut iters = padding::iters(stage);
                iters.retain(|i| i.2 == IterKind::Spatial);
                let (name, indices) = (stage.name().clone(), stage.indices.clone());
                let last = Stage::build(name, &iters, &stage.buffer, indices, result.clone(), None);
                out.stmts.push(Subst::refresh().stmt(&last.stmt));
            }
        }
    }
    changed.then(|| func.with_root(out.allocs, Stmt::seq(out.stmts)))
}

/// The statements and buffers of a function under construction.
struct Expanded {
    stmts: Vec<Stmt>,
    allocs: Vec<Buffer>,
}

/// An operand of a product: elements of 8 bits less a zero point.
#[derive(Clone)]
struct Factor {
    buffer: Buffer,
    at: Vec<Expr>,
    zero: Option<Expr>,
}

/// The factors of a sum of products of 8-bit integers in `int32`.
struct Product([Factor; 2]);

fn product(stage: &Stage) -> Option<Product> {
    let [a, b] = stage.factors()?;
    let zero = stage.init.as_ref().is_some_and(|e| e.as_int() == Some(0));
    if !zero || stage.buffer.dtype() != DType::I32 || stage.covers_buffer().is_none() {
        return None;
    }
    let reduced: Vec<&Var> = stage.reduce().map(|r| r.0).collect();
    let factors = [factor(&a, &reduced)?, factor(&b, &reduced)?];
    // Instructions multiply neighbours along an axis of both operands.
    let in_groups = stage.dims().any(|(v, extent, kind)| {
        kind == IterKind::Reduce
            && extent.known().is_some_and(|n| n >= FEWEST)
            && factors.iter().all(|f| runs_along(f, v, extent))
    });
    (in_groups && factors[0].buffer != factors[1].buffer).then_some(Product(factors))
}

fn runs_along(f: &Factor, v: &Var, extent: Dim) -> bool {
    let once = f.at.iter().filter(|i| i.mentions(v)).count() == 1;
    let at = f.at.iter().position(|i| i.as_var() == Some(v));
    once && at.is_some_and(|d| Dim::from_expr(&f.buffer.shape[d]) == Some(extent))
}

/// Whether an integer expression has the values of a type of 8 bits.
fn is_byte(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Cast(x) => matches!(x.dtype(), DType::I8 | DType::U8),
        _ => e.as_int().is_some_and(|v| (-128..=255).contains(&v)),
    }
}

fn factor(e: &Expr, reduced: &[&Var]) -> Option<Factor> {
    match e.kind() {
        ExprKind::Binary(BinOp::Sub, x, zero) if is_byte(zero) => {
            let inner = factor(x, reduced).filter(|f| f.zero.is_none())?;
            // The same for the whole sum, and not a part of it.
            let outside = !zero.mentions_any(reduced.iter().copied());
            outside.then(|| Factor { zero: Some(zero.clone()), ..inner })
        }
        ExprKind::Cast(x) if e.dtype() == DType::I32 => match x.kind() {
            ExprKind::Load(buffer, at) if matches!(buffer.dtype(), DType::I8 | DType::U8) => {
                Some(Factor { buffer: buffer.clone(), at: at.clone(), zero: None })
            }
            _ => None,
        },
        _ => None,
    }
}

/// What a sum of products becomes.
struct SumOfIntegers {
    before: Vec<Stmt>,
    allocs: Vec<Buffer>,
    sum: Stage,
    /// What the sums of the original are in terms of its variables, where they are not those of `sum`.
    result: Option<Expr>,
}

/// The dot product of a machine for operands of two types, in one order or the other, or the instruction of its warps.
fn instruction(target: &Target, types: [DType; 2]) -> Option<&'static TensorInstruction> {
    let lanes = target.vectors.lanes(DType::I32.bytes());
    let [x, y] = types;
    target.tensor_instructions().find(|i| {
        let pair = (i.a.dtype, i.b.dtype);
        let is_dot = i.is_dot() && i.c.columns == lanes;
        (is_dot || i.is_of_warp())
            && i.c.dtype == DType::I32
            && i.implementation().is_some()
            && (pair == (x, y) || pair == (y, x))
    })
}

/// The other type of 8 bits.
fn other_sign(dtype: DType) -> DType {
    if dtype == DType::I8 { DType::U8 } else { DType::I8 }
}

impl Product {
    /// What a machine makes the sum of; `None` where it is that already, or the machine has no
    /// instruction.
    fn made_of(
        self,
        stage: &Stage,
        target: &Target,
        is_free: &dyn Fn(&Buffer) -> bool,
    ) -> Option<SumOfIntegers> {
        let types = [0, 1].map(|o: usize| self.0[o].buffer.dtype());
        let mut made = SumOfIntegers {
            before: Vec::new(),
            allocs: Vec::new(),
            sum: stage.clone(),
            result: None,
        };
        let [mut left, mut right] = self.0;
        let other = [types[0], other_sign(types[1])];
        let bytes = match (instruction(target, types), instruction(target, other)) {
            (Some(_), _) => true,
            (None, Some(_)) => {
                // What is the same in every run can be moved once. But a zero point of it takes the
                // sums of the other operand in every run, for each place of a window: where it has
                // none, it gets none, and the other is moved.
                let first = match (is_free(&left.buffer), is_free(&right.buffer)) {
                    (true, false) => left.zero.is_some(),
                    (false, true) => right.zero.is_none(),
                    _ => false,
                };
                let operand = if first { &mut left } else { &mut right };
                *operand = made.flip_sign(operand)?;
                true
            }
            _ => false,
        };
        let pairs = instruction(target, [DType::I16, DType::I16]).is_some();
        if !bytes && !pairs {
            return None;
        }
        if !bytes {
            left = made.widened(&left)?;
            right = made.widened(&right)?;
        }
        if made.before.is_empty() && left.zero.is_none() && right.zero.is_none() {
            return None;
        }
        // The products alone.
        let plain = left.zero.is_none() && right.zero.is_none();
        let out = if plain {
            stage.buffer.clone()
        } else {
            made.alloc(&format!("{}_products", stage.buffer.name), &stage.buffer.shape, DType::I32)
        };
        let name: Arc<str> =
            if plain { stage.name().clone() } else { format!("{}_products", stage.name()).into() };
        let iters = padding::iters(stage);
        let sum = out.load(stage.indices.to_vec()) + (factor_value(&left) * factor_value(&right));
        let zero = Some(Expr::i32(0));
        let sum = Stage::build(name, &iters, &out, stage.indices.clone(), sum, zero);
        made.sum = tilewright_analysis::stage::stage(&Subst::refresh().stmt(&sum.stmt))?;
        if plain {
            return Some(made);
        }
        let mut result = out.load(stage.indices.clone());

        if let Some(zero) = &right.zero {
            result = result - zero.clone() * made.sums(stage, &iters, &left)?;
        }
        if let Some(zero) = &left.zero {
            result = result - zero.clone() * made.sums(stage, &iters, &right)?;
        }
        if let (Some(x), Some(y)) = (&left.zero, &right.zero) {
            let count = dim::product(iters.iter().filter(|i| i.2 == IterKind::Reduce).map(|i| i.1));
            result = result + count.typed(DType::I32) * (x.clone() * y.clone());
        }
        made.result = Some(result);
        Some(made)
    }
}

fn factor_value(f: &Factor) -> Expr {
    f.buffer.load(f.at.clone()).cast(DType::I32)
}

impl SumOfIntegers {
    fn alloc(&mut self, name: &str, shape: &[Expr], dtype: DType) -> Buffer {
        let like = Buffer::with_extents(name, &[], dtype);
        let buffer = like.derive_storage(|b| b.shape = shape.to_vec());
        self.allocs.push(buffer.clone());
        buffer
    }

    /// A stage that maps a buffer element by element.
    fn map(
        &mut self,
        f: &Factor,
        suffix: &str,
        dtype: DType,
        value: impl FnOnce(Expr, &[Expr]) -> Expr,
    ) -> Option<Buffer> {
        let (to, stage) = mapped(&f.buffer, suffix, dtype, |x, at| value(x.cast(DType::I32), at))?;
        self.allocs.push(to.clone());
        self.before.push(pre(&stage));
        Some(to)
    }

    /// The operand with the other sign: its elements and its zero point moved by 128.
    fn flip_sign(&mut self, f: &Factor) -> Option<Factor> {
        let to = other_sign(f.buffer.dtype());
        let by = Expr::i32(if to.kind == TypeKind::UInt { 128 } else { -128 });
        let buffer = self.map(f, "moved", to, |x, _| x + by.clone())?;
        let zero = f.zero.clone().map_or_else(|| by.clone(), |z| z + by.clone());
        Some(Factor { buffer, at: f.at.clone(), zero: Some(zero) })
    }

    /// The operand as `int16`, without its zero point where that is a number for each place along its
    /// axes.
    fn widened(&mut self, f: &Factor) -> Option<Factor> {
        let mut zero = f.zero.clone();
        let own = f.zero.as_ref().and_then(|z| {
            free_vars(z)
                .into_iter()
                .map(|v| Some((v.clone(), f.at.iter().position(|i| i.as_var() == Some(&v))?)))
                .collect::<Option<Vec<_>>>()
        });
        let buffer = self.map(f, "wide", DType::I16, |x, at| match (own, &f.zero) {
            (Some(places), Some(z)) => {
                zero = None;
                let map: Vec<(Var, Expr)> =
                    places.into_iter().map(|(v, d)| (v, at[d].clone())).collect();
                x - Subst::vars(map).expr(z)
            }
            _ => x,
        })?;
        Some(Factor { buffer, at: f.at.clone(), zero })
    }

    /// The sum of an operand over the reduction, at the place of the stage's variables.
    fn sums(&mut self, stage: &Stage, iters: &[(Var, Dim, IterKind)], f: &Factor) -> Option<Expr> {
        let used: HashSet<Var> = f.at.iter().flat_map(free_vars).collect();
        let iters: Vec<_> = iters
            .iter()
            .filter(|i| i.2 == IterKind::Reduce || used.contains(&i.0))
            .cloned()
            .collect();
        let spatial: Vec<_> = iters.iter().filter(|i| i.2 == IterKind::Spatial).collect();
        let shape: Vec<Expr> = spatial.iter().map(|i| i.1.typed(DType::I32)).collect();
        let at: Vec<Expr> = spatial.iter().map(|i| i.0.expr()).collect();
        let name = format!("{}_{}_sums", stage.name(), f.buffer.name);
        let to = self.alloc(&name, &shape, DType::I32);
        let value = to.load(at.clone()) + f.buffer.load(f.at.clone()).cast(DType::I32);
        let sums = Stage::build(name, &iters, &to, at.clone(), value, Some(Expr::i32(0)));
        self.before.push(pre(&sums));
        Some(to.load(at))
    }
}
