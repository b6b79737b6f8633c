//! Products of open sizes as sizes of their own, while a function is changed.
//!
//! An axis of `h * w * 3` cells is for a proof an axis of a size `p`: nothing asks how the product comes about, and
//! all that is said of `p` is linear. Afterwards the product stands in its place again.
//!
//! So is an axis of `h // 8 * (w // 8) + 1` cells one of `p + 1`, if all that the function says of `h` and `w` is that,
//! and one of `(n + 1) // 2` cells one of `q`, of which it stays known that `n` is `2*q - 1` or `2*q`
//! ([`Var::stands_for`]): as another number, `(n + 1) // 16` is `q // 8`. So is an extent that is a long expression, or
//! a polynomial such as `(h - 2) * (w - 2)`, whatever else is said: proofs would spend their budget on it. Code without
//! blocks computes such a size once.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::dim::Integer;
use tilewright_ir::index::divided_by_size;
use tilewright_ir::visit::{Subst, fold_buffer, fold_expr_children, fold_func, free_vars};
use tilewright_ir::{
    BinOp, Buffer, DType, Dim, Expr, ExprKind, Fold, Param, Result, Stmt, StmtKind, TensorFunc,
    Var, dim,
};

/// Nodes of an expression from which on an extent is a size of its own, whatever else the function says.
const LONG: u32 = 64;

/// Nodes of an expression from which on code computes it once.
const SHORT: u32 = 16;

/// What `change` makes of a function, to which products of sizes that are extents of its buffers are sizes.
///
/// Products come first: what is a quotient of one is then a quotient of a size; then those of quotients.
///
/// # Errors
/// Those of `change`.
pub fn with_products_as_sizes(
    func: &TensorFunc,
    change: impl FnOnce(&TensorFunc) -> Result<TensorFunc>,
) -> Result<TensorFunc> {
    let mut sizes = long(func);
    sizes.extend(products(func).into_iter().map(Size::product));
    with_as_sizes(func, &sizes, |func| {
        with_as_sizes(func, &terms_and_quotients(func), |func| {
            let mut sizes = products(func);
            sizes.retain(|d| d.vars().len() > 1);
            sizes.extend(products_of_memory(func));
            sizes.sort();
            sizes.dedup();
            let sizes: Vec<Size> = sizes.into_iter().map(Size::product).collect();
            with_as_sizes(func, &sizes, change)
        })
    })
}

/// The products that are terms of extents, and the quotients in them, as far as they are sizes of their own.
fn terms_and_quotients(func: &TensorFunc) -> Vec<Size> {
    let said = Said::of(func);
    let mut sizes = closed(&said, &[], terms(func));
    let parts = parts(func);
    let closed = closed(&said, &sizes, parts.clone());
    // Of a quotient it is known what it is of. Those of memory of its own alone are numbers of tiles, whose loops
    // count to other quotients of the same size.
    let given = quotients(func.buffers().flat_map(|b| &b.shape));
    let related = parts.into_iter().filter(|part| given.iter().any(|q| q.value == part.value));
    let related = related.filter(|part| part.value.quotient().is_some());
    let related: Vec<Size> =
        related.filter(|part| closed.iter().all(|size| size.value != part.value)).collect();
    sizes.extend(closed);
    sizes.extend(related);
    sizes
}

/// What `change` makes of a function in which these are sizes; they are no longer in the result.
fn with_as_sizes(
    func: &TensorFunc,
    sizes: &[Size],
    change: impl FnOnce(&TensorFunc) -> Result<TensorFunc>,
) -> Result<TensorFunc> {
    if sizes.is_empty() {
        return change(func);
    }
    let mut given = with_sizes(func, sizes);
    let at = given.params.len() - given.scratch_count();
    let scalars = sizes.iter().map(|size| Param::Scalar(size.var.clone()));
    given.params.splice(at..at, scalars);
    let mut made = change(&given)?;
    made.params.retain(|p| !p.scalar().is_some_and(|v| sizes.iter().any(|size| size.var == *v)));
    let values: Vec<(Var, Expr)> =
        sizes.iter().map(|size| (size.var.clone(), size.value.typed(size.var.dtype()))).collect();
    let (long, short): (Vec<_>, Vec<_>) =
        values.into_iter().partition(|(_, value)| made.root().is_none() && value.size() >= SHORT);
    let made = if short.is_empty() { made } else { fold_func(&mut Subst::vars(short), &made) };
    Ok(bind_values(made, long))
}

/// A function whose body computes values once; in the shapes of its parameters they stand as expressions.
fn bind_values(func: TensorFunc, values: Vec<(Var, Expr)>) -> TensorFunc {
    if values.is_empty() {
        return func;
    }
    let mut in_shapes = Subst::vars(values.iter().cloned());
    let params: Vec<Param> = func
        .params
        .iter()
        .map(|p| match p {
            Param::Buffer { handle, buffer } => {
                Param::Buffer { handle: handle.clone(), buffer: in_shapes.buffer_def(buffer) }
            }
            Param::Scalar(_) => p.clone(),
        })
        .collect();
    let pairs = func.params.iter().zip(&params).filter_map(|(old, new)| {
        old.buffer().zip(new.buffer()).map(|(old, new)| (old.clone(), new.clone()))
    });
    let mut body = Subst::buffers(pairs).stmt(&func.body);
    for (var, value) in values.into_iter().rev() {
        if body.any_expr(|e| e.as_var() == Some(&var)) {
            body = Stmt::new(StmtKind::Let { var, value, body });
        }
    }
    TensorFunc { params, body, ..func }
}

/// What is a size of its own for a while.
#[derive(Clone)]
struct Size {
    var: Var,
    /// What it stands for.
    value: Dim,
    /// Of a quotient by a number, what is divided, and the number.
    quotient: Option<(Integer, i64)>,
}

impl Size {
    fn new(value: Dim, quotient: Option<(Integer, i64)>) -> Size {
        Size { var: named(value), value, quotient }
    }

    fn product(value: Dim) -> Size {
        Size::new(value, None)
    }

    /// A quotient by a multiple of the own divisor: `(x + q * r) // (q * m)` is `(x // q + r) // m`.
    fn coarser(&self, a: &Expr, by: i64) -> Option<Expr> {
        let (more, m) = self.divides(Integer::from_expr(a)?, by)?;
        let more = if a.dtype() == DType::I32 { more.expr() } else { more.long().cast(a.dtype()) };
        let own = self.var.expr().cast(a.dtype());
        Some((own + more).floordiv(Expr::int(m, a.dtype())))
    }

    /// The `r` and `m` of such a quotient.
    fn divides(&self, a: Integer, by: i64) -> Option<(Integer, i64)> {
        let (of, q) = self.quotient?;
        if q < 2 || by % q != 0 {
            return None;
        }
        let apart = a.minus(of)?;
        let more = apart.truncdiv(q)?;
        (more.times(q)? == apart).then_some((more, by / q))
    }
}

/// The function with variables in the place of products.
fn with_sizes(func: &TensorFunc, sizes: &[Size]) -> TensorFunc {
    fold_func(&mut Products::new(sizes), func)
}

/// The extents of buffers that are open.
fn extents(func: &TensorFunc) -> Vec<Expr> {
    let (allocs, _) = func.root_parts();
    let extents = func.buffers().chain(allocs).flat_map(|b| &b.shape);
    extents.filter(|e| e.as_int().is_none()).cloned().collect()
}

/// The extents that are long expressions, or polynomials.
fn long(func: &TensorFunc) -> Vec<Size> {
    let extents = extents(func);
    let dims = extents.iter().filter_map(|e| Some((e.size() >= LONG, Dim::from_expr(e)?)));
    let mut long: Vec<Dim> = dims
        .filter(|(is_long, d)| d.known().is_none() && (*is_long || d.is_polynomial()))
        .map(|(_, d)| d)
        .collect();
    long.sort();
    long.dedup();
    long.into_iter().map(Size::product).collect()
}

/// The products that are terms of extents and no multiples of others.
fn terms(func: &TensorFunc) -> Vec<Size> {
    let mut terms: Vec<Dim> =
        extents(func).iter().filter_map(Dim::from_expr).flat_map(Dim::products).collect();
    terms.sort();
    terms.dedup();
    let all = terms.clone();
    terms.retain(|d| all.iter().all(|other| other == d || multiple(*d, *other).is_none()));
    terms.into_iter().map(Size::product).collect()
}

/// The quotients, larger and smaller ones in extents, of which all that share an open size with them are quotients by
/// two or more, with a number added: `(n + 3) // 4` beside `(n + 1) // 2` is `(q + 1) // 2`.
fn parts(func: &TensorFunc) -> Vec<Size> {
    let mut parts = quotients(&extents(func));
    let all = parts.clone();
    parts.retain(|part| {
        let vars = part.value.vars();
        all.iter().all(|other| {
            let coarser = other.quotient.and_then(|(of, by)| part.divides(of, by));
            other.value == part.value
                || coarser.is_some_and(|(more, m)| m > 1 && more.number().is_some())
                || !other.value.vars().iter().any(|v| vars.contains(v))
        })
    });
    parts
}

/// The quotients, larger and smaller ones in extents.
fn quotients<'a>(extents: impl IntoIterator<Item = &'a Expr>) -> Vec<Size> {
    let mut parts: Vec<Size> = Vec::new();
    for extent in extents {
        extent.for_each(|e| {
            let ExprKind::Binary(BinOp::FloorDiv | BinOp::Max | BinOp::Min, a, b) = e.kind() else {
                return true;
            };
            let Some(value) = Dim::from_expr(e).filter(|d| d.known().is_none()) else {
                return false;
            };
            let is_quotient = matches!(e.kind(), ExprKind::Binary(BinOp::FloorDiv, ..));
            let by = b.as_int().filter(|by| is_quotient && *by > 0);
            // Of a quotient of quotients, what it is a quotient of.
            let of = value.quotient().and_then(|(of, by)| Some((of.into(), by.try_into().ok()?)));
            if parts.iter().all(|part| part.value != value) {
                let quotient = by.and_then(|by| of.or(Integer::from_expr(a).zip(Some(by))));
                parts.push(Size::new(value, quotient));
            }
            false
        });
    }
    parts
}

/// What a function says of its open sizes: its expressions with one of them, outermost ones, each once.
struct Said {
    sizes: Vec<Var>,
    seen: HashSet<usize>,
    exprs: Vec<Expr>,
}

impl Said {
    fn of(func: &TensorFunc) -> Said {
        let (seen, exprs) = Default::default();
        let mut said = Said { sizes: func.sizes(), seen, exprs };
        fold_func(&mut said, func);
        said
    }

    /// The sizes that are left where these are sizes of their own.
    fn left(&self, sizes: &[Size]) -> HashSet<Var> {
        let mut products = Products::new(sizes);
        let mut left = HashSet::default();
        for e in &self.exprs {
            left.extend(free_vars(&products.expr(e)));
        }
        left.retain(|v| self.sizes.contains(v));
        left
    }
}

impl Fold for Said {
    fn expr(&mut self, e: &Expr) -> Expr {
        if e.mentions_any(&self.sizes) && self.seen.insert(e.address()) {
            self.exprs.push(e.clone());
        }
        e.clone()
    }
}

/// Those of which the function says nothing else: with them and the others as sizes, it has nothing left of what
/// they are made of.
fn closed(said: &Said, others: &[Size], mut sizes: Vec<Size>) -> Vec<Size> {
    if sizes.is_empty() {
        return sizes;
    }
    let left = said.left(&[others, &sizes[..]].concat());
    sizes.retain(|size| !size.value.vars().iter().any(|v| left.contains(v)));
    sizes
}

/// The extents of buffers that are products, without those that another one divides. One that is a multiple of a
/// single size counts where neither an extent nor a quotient tells more of that size.
fn products(func: &TensorFunc) -> Vec<Dim> {
    let extents: Vec<Dim> = extents(func).iter().filter_map(Dim::from_expr).collect();
    // Of `h * w * 32`, `h * w`: that there are whole tiles of 32 is not forgotten.
    let open = |d: Dim| if d.vars().len() > 1 { open_factors(d) } else { d };
    let mut found: Vec<Dim> =
        extents.iter().copied().filter(|d| is_product(*d)).map(open).collect();
    found.sort();
    found.dedup();
    let all = found.clone();
    found.retain(|d| all.iter().all(|other| other == d || multiple(*d, *other).is_none()));
    found.retain(|d| {
        let more = extents.iter().any(|of| {
            of.vars().iter().any(|v| d.vars().contains(v)) && multiple(*of, *d).is_none()
        });
        d.vars().len() > 1 || !more && !has_quotients(func, *d)
    });
    found
}

/// The extents of memory of a function's own that are products, also of quotients of which it says more: of such
/// memory, in which pixels of images lie side by side, its own loops alone speak.
fn products_of_memory(func: &TensorFunc) -> impl Iterator<Item = Dim> {
    let (allocs, _) = func.root_parts();
    let extents = allocs.iter().flat_map(|b| &b.shape).filter_map(Dim::from_expr);
    extents.filter(|d| d.is_product())
}

/// Whether a size is a product of open ones, or a multiple of one.
fn is_product(d: Dim) -> bool {
    let times = d.substitute(&|_| Some(Dim::from(1)));
    let product = open_factors(d);
    product != d && times.known().is_some() && product * times == d
        || d.vars().len() > 1 && product == d
}

/// The product of the open sizes that a size is of.
fn open_factors(d: Dim) -> Dim {
    dim::product(d.vars().iter().map(Dim::open))
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

/// A variable for a product, named after its factors, with its range, in the widest of their types: of a factor that is
/// cast to fewer bits the sets know nothing.
fn named(product: Dim) -> Var {
    let factors = product.vars();
    let names: Vec<String> = factors.iter().map(|v| v.name().to_string()).collect();
    let is_long = factors.iter().any(|v| v.dtype() == DType::I64);
    let dtype = if is_long { DType::I64 } else { DType::I32 };
    Var::standing_for(names.join("_"), dtype, product)
}

/// How often a size has a product in it, where it is a multiple of it.
fn multiple(of: Dim, product: Dim) -> Option<Dim> {
    let times = of.floordiv(product);
    (times != 0 && times * product == of).then_some(times)
}

/// Puts variables in the place of products.
struct Products<'a> {
    sizes: &'a [Size],
    /// What they are made of.
    of: Vec<Var>,
    buffers: HashMap<Buffer, Buffer>,
    /// Expressions by their addresses, with what was made of them.
    made: HashMap<usize, (Expr, Expr)>,
}

impl<'a> Products<'a> {
    fn new(sizes: &'a [Size]) -> Products<'a> {
        let of = sizes.iter().flat_map(|size| size.value.vars()).collect();
        let (buffers, made) = Default::default();
        Products { sizes, of, buffers, made }
    }
}

impl Fold for Products<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        if !e.mentions_any(&self.of) && !e.effects().loads {
            return e.clone();
        }
        if let Some((_, made)) = self.made.get(&e.address()) {
            return made.clone();
        }
        let made = self.changed(e);
        self.made.insert(e.address(), (e.clone(), made.clone()));
        made
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

impl Products<'_> {
    fn changed(&mut self, e: &Expr) -> Expr {
        let counts = e.dtype().is_int() && e.dtype().lanes == 1 && e.as_var().is_none();
        // Digits in a radix of open sizes are no multiples of these, and long.
        let counts = counts && !e.any(|part| divided_by_size(part).is_some());
        for size in self.sizes.iter().filter(|_| counts) {
            if !size.value.vars().iter().all(|factor| e.mentions(factor)) {
                continue;
            }
            if let Some(all) = Dim::from_expr(e) {
                let own = size.var.expr().cast(e.dtype());
                let mut of = |times: Dim| match times == 1 {
                    true => own.clone(),
                    false => self.expr(&times.typed(e.dtype())) * own.clone(),
                };
                if let Some(times) = multiple(all, size.value) {
                    return of(times);
                }
                // What is taken away, as `2 * p % 3` is `-p % 3`: no size is negative.
                if let Some(times) = multiple(Dim::from(0) - all, size.value) {
                    return Expr::int(0, e.dtype()) - of(times);
                }
            }
            if let ExprKind::Binary(BinOp::FloorDiv, a, b) = e.kind()
                && let Some(by @ 1..) = b.as_int()
                && let Some(quotient) = size.coarser(a, by)
                // It gets shorter, or says less of what sizes are made of: so there is an end.
                && (quotient.size() < e.size()
                    || !size.value.vars().iter().any(|v| quotient.mentions(v)))
            {
                return self.expr(&quotient);
            }
        }
        fold_expr_children(self, e)
    }
}
