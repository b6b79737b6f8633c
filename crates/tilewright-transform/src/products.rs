//! Products of open sizes as sizes of their own, while a function is changed.
//!
//! An axis of `h * w * 3` cells is for a proof an axis of a size `p`: nothing asks how the product comes about, and
//! all that is said of `p` is linear. Afterwards the product stands in its place again.

use std::collections::HashMap;

use tilewright_ir::visit::{Subst, fold_buffer, fold_expr_children, fold_func};
use tilewright_ir::{
    BinOp, Buffer, DType, Dim, Expr, ExprKind, Fold, Param, Result, TensorFunc, Var, dim,
};

/// What `change` makes of a function, to which products of sizes that are extents of its buffers are sizes.
///
/// # Errors
/// Those of `change`.
pub fn with_products_as_sizes(
    func: &TensorFunc,
    change: impl FnOnce(&TensorFunc) -> Result<TensorFunc>,
) -> Result<TensorFunc> {
    let products = products(func);
    if products.is_empty() {
        return change(func);
    }
    let sizes: Vec<(Var, Dim)> = products.into_iter().map(|d| (named(d), d)).collect();
    let mut given = fold_func(&mut Products { sizes: &sizes, buffers: HashMap::new() }, func);
    let at = given.params.len() - given.scratch_count();
    let scalars = sizes.iter().map(|(v, _)| Param::Scalar(v.clone()));
    given.params.splice(at..at, scalars);
    let made = change(&given)?;
    let back = sizes.iter().map(|(v, d)| (v.clone(), d.typed(v.dtype())));
    let mut made = fold_func(&mut Subst::vars(back), &made);
    made.params.retain(|p| p.scalar().is_none_or(|v| sizes.iter().all(|(size, _)| size != v)));
    Ok(made)
}

/// The extents of buffers that are products, without those that another one divides. One that is a multiple of a
/// single size counts where neither an extent nor a quotient tells more of that size.
fn products(func: &TensorFunc) -> Vec<Dim> {
    let (allocs, _) = func.root_parts();
    let extents = func.buffers().chain(allocs).flat_map(|b| &b.shape).filter_map(Dim::of);
    let extents: Vec<Dim> = extents.filter(|d| d.known().is_none()).collect();
    let is_product = |d: &Dim| {
        let times = d.substitute(&|_| Some(Dim::from(1)));
        let product = dim::product(d.vars().iter().map(Dim::open));
        product != *d && times.known().is_some() && product * times == *d
            || d.vars().len() > 1 && product == *d
    };
    let mut found: Vec<Dim> = extents.iter().copied().filter(is_product).collect();
    found.sort();
    found.dedup();
    let all = found.clone();
    found.retain(|d| all.iter().all(|other| other == d || multiple(*d, *other).is_none()));
    let tells = |of: &Dim, d: &Dim| {
        of.vars().iter().any(|v| d.vars().contains(v)) && multiple(*of, *d).is_none()
    };
    found.retain(|d| {
        d.vars().len() > 1 || !extents.iter().any(|of| tells(of, d)) && !has_quotients(func, *d)
    });
    found
}

/// Whether the function divides something that such a size is in: a variable does not say of which number the size
/// is a multiple.
fn has_quotients(func: &TensorFunc, size: Dim) -> bool {
    func.body.any_expr(|e| match e.kind() {
        ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, a, _) => {
            size.vars().iter().any(|v| a.mentions(v))
        }
        _ => false,
    })
}

/// A variable for a product, named after its factors.
fn named(product: Dim) -> Var {
    let names: Vec<String> = product.vars().iter().map(|v| v.name().to_string()).collect();
    Var::new(names.join("_"), DType::I32)
}

/// How often a size has a product in it, where it is a multiple of it.
fn multiple(of: Dim, product: Dim) -> Option<Dim> {
    let times = of.floordiv(product);
    (times != 0 && times * product == of).then_some(times)
}

/// Puts variables in the place of products.
struct Products<'a> {
    sizes: &'a [(Var, Dim)],
    buffers: HashMap<Buffer, Buffer>,
}

impl Fold for Products<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let counts = e.dtype().is_int() && e.dtype().lanes == 1 && e.as_var().is_none();
        for (v, product) in self.sizes.iter().filter(|_| counts) {
            if !product.vars().iter().all(|factor| e.mentions(factor)) {
                continue;
            }
            let times = Dim::of(e).and_then(|size| multiple(size, *product));
            match times {
                Some(times) if times == 1 => return v.expr().cast(e.dtype()),
                Some(times) => {
                    return self.expr(&times.typed(e.dtype())) * v.expr().cast(e.dtype());
                }
                None => {}
            }
        }
        fold_expr_children(self, e)
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        if let Some(new) = self.buffers.get(b) {
            return new.clone();
        }
        let Some(new) = fold_buffer(self, b) else { return b.clone() };
        self.buffers.insert(b.clone(), new.clone());
        new
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        self.buffers.get(b).unwrap_or(b).clone()
    }
}
