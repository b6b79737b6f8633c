//! What a layout's padding holds, and the code that says so.
//!
//! * A buffer that the function writes: the padding is written, too. Where one loop nest writes
//!   every cell, it becomes a nest over the physical box whose stores select between the pad value
//!   and their own (`folding`); elsewhere a nest of its own follows the last write.
//!   Undefined padding is always a nest of its own: a store of `T.undef()` is dropped when
//!   lowering, an expression that selects it would stay.
//! * An argument that is only read: a nest at the start assumes it.

use std::sync::Arc;

use tilewright_ir::demand::{Demand, demand};
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, Intrin, Result, Stmt, StmtKind,
    TensorFunc, Var, Visit, extent,
};
use tilewright_polyhedral::place::{Around, Placed, walk_expr_placed};
use tilewright_polyhedral::{Domain, Engine, Proof};

use crate::index_map::{LayoutFacts, PhysicalLayout};
use tilewright_ir::lambda::{Lambda, LambdaItem};
use tilewright_transform::cursor::{as_block, as_loop, blocks, find, replace_in};
use tilewright_transform::names::fresh_block_name;

/// The padding of one buffer.
pub(crate) struct Padding<'a> {
    pub layout: &'a PhysicalLayout,
    pub known: &'a LayoutFacts,
    /// The pad value over the cells of the layout.
    pub value: Expr,
    pub old: &'a Buffer,
    pub new: &'a Buffer,
    pub engine: &'a Engine,
}

/// What padding is to hold, before the physical indices are known.
#[derive(Clone, Debug)]
pub enum PadValue {
    /// Nothing: it exists, and is not accessed.
    Nothing,
    /// An integer, of the buffer's type.
    Int(i64),
    /// A number, of the buffer's type.
    Float(f64),
    /// A value that is the same in all of it.
    Item(LambdaItem),
    /// A function of the physical indices, which may read the buffer itself.
    Lambda(Lambda),
}

/// The pad value as an expression of the cells, with loads of the buffer under its new layout;
/// `None` where the padding is not to be accessed.
pub(crate) fn pad_value(
    value: &PadValue,
    func: &TensorFunc,
    layout: &PhysicalLayout,
    old: &Buffer,
    new: &Buffer,
) -> Result<Option<Expr>> {
    let dtype = old.dtype();
    let item = match value {
        PadValue::Nothing => return Ok(None),
        PadValue::Int(v) => return int_constant(i128::from(*v), dtype).map(Some),
        PadValue::Float(v) => return constant(*v, dtype).map(Some),
        PadValue::Item(item) => item.clone(),
        PadValue::Lambda(l) => {
            let dtypes: Vec<DType> = layout.cells.iter().map(Var::dtype).collect();
            let body = l.bind_with(&dtypes, std::slice::from_ref(new))?;
            let [item] = body.items.as_slice() else {
                return Err(Error::input("a pad value is one value"));
            };
            match item {
                LambdaItem::Expr(e) => {
                    let cells = layout.cells.iter().map(Var::expr);
                    let mut place = Subst::vars(body.params.into_iter().zip(cells));
                    place.buffers.insert(new.clone(), old.clone());
                    LambdaItem::Expr(place.expr(e))
                }
                other => other.clone(),
            }
        }
    };
    let e = match item {
        LambdaItem::None => return Ok(None),
        LambdaItem::Number(v) => return constant(v, dtype).map(Some),
        LambdaItem::Separator => return Err(Error::input("a pad value is no axis separator")),
        LambdaItem::Expr(e) => e,
        other => return Err(Error::input(format!("a pad value is {other}, not a value"))),
    };
    let e = match (e.kind(), e.as_int(), e.as_float()) {
        (ExprKind::Undef, ..) => Expr::undef(dtype),
        _ if e.dtype() == dtype => e,
        _ => {
            let what = format!("the pad value `{e}` is {}, but `{old}` is {dtype}", e.dtype());
            return Err(Error::refused(what));
        }
    };
    check_value(&e, func, layout, old)?;
    Ok(Some(Subst::buffers([(old.clone(), new.clone())]).expr(&e)))
}

fn int_constant(v: i128, dtype: DType) -> Result<Expr> {
    if dtype.is_float() {
        Ok(Expr::float(v as f64, dtype))
    } else if extent::holds(dtype, v) {
        Ok(Expr::int(v as i64, dtype))
    } else {
        Err(Error::refused(format!("the pad value {v} does not fit {dtype}")))
    }
}

fn constant(v: f64, dtype: DType) -> Result<Expr> {
    if dtype.is_float() {
        Ok(Expr::float(v, dtype))
    } else if v.fract() == 0.0 && v.abs() < 1.8e19 {
        int_constant(v as i128, dtype)
    } else {
        Err(Error::refused(format!("the pad value {v} does not fit {dtype}")))
    }
}

/// A pad value is made of constants, the cells, sizes, and the buffer itself.
fn check_value(e: &Expr, func: &TensorFunc, layout: &PhysicalLayout, old: &Buffer) -> Result<()> {
    struct Check<'a> {
        old: &'a Buffer,
        at: Around,
        /// Indices of loads, and the conditions under which they are evaluated.
        loads: Vec<(Vec<Expr>, Vec<Expr>)>,
        /// What operations need to be defined, with the condition, likewise.
        demands: Vec<(Demand, Expr, Vec<Expr>)>,
        error: Option<Error>,
    }
    impl Placed for Check<'_> {
        type At = Around;
        fn at(&mut self) -> &mut Around {
            &mut self.at
        }
    }
    impl Visit for Check<'_> {
        fn expr(&mut self, e: &Expr) {
            match e.kind() {
                ExprKind::Load(b, indices) if b == self.old => {
                    let indices = self.at.exprs(indices);
                    self.loads.push((indices, self.at.guards.clone()));
                }
                ExprKind::Load(b, _) => {
                    self.error = Some(Error::refused(format!(
                        "the pad value of `{}` depends on another buffer, `{}`",
                        self.old.name, b.name
                    )));
                }
                ExprKind::Call(CallTarget::Extern(name) | CallTarget::Opaque(name), _) => {
                    let what = format!("the pad value calls `{name}`, which may have any effect");
                    self.error = Some(Error::refused(what));
                }
                _ => {}
            }
            if let Some(d) = demand(e) {
                let holds = self.at.expr(&d.holds);
                self.demands.push((d, holds, self.at.guards.clone()));
            }
            walk_expr_placed(self, e);
        }
    }
    let (loads, demands) = (Vec::new(), Vec::new());
    let mut c = Check { old, at: Around::default(), loads, demands, error: None };
    c.expr(e);
    if let Some(e) = c.error {
        return Err(e);
    }
    let outside = known_everywhere(func);
    let mut free: Vec<Var> = free_vars(e).into_iter().collect();
    free.sort();
    if let Some(v) = free.iter().find(|v| !layout.cells.contains(v) && !outside.contains(v)) {
        return Err(Error::refused(format!(
            "the pad value depends on `{v}`, which is not known everywhere"
        )));
    }
    let Ok(known) = &layout.known else { return Ok(()) };
    let engine = Engine::new();
    let padding = engine.domain_of(&layout.ranges(), std::slice::from_ref(&known.padding));
    for (need, holds, guards) in c.demands {
        let note = match under_guards(&guards, &padding).prove(&holds) {
            Proof::Yes => continue,
            Proof::No { witness } => format!("at {witness}"),
            Proof::Unknown(why) => why.to_string(),
        };
        return Err(Error::refused(format!("the pad value {need} in the padding")).note(note));
    }
    for (indices, guards) in c.loads {
        if indices.len() != layout.cells.len() {
            return Err(Error::refused(format!(
                "the pad value reads `{old}` with {} indices, but it has {} physical axes",
                indices.len(),
                layout.cells.len()
            )));
        }
        let mut at = Subst::vars(layout.cells.iter().cloned().zip(indices.iter().cloned()));
        let mut inside = !at.expr(&known.padding);
        for (i, extent) in indices.iter().zip(&layout.physical) {
            let extent = extent.clone().cast(i.dtype());
            inside = inside.and(i.clone().greater_equal(0)).and(i.clone().less(extent));
        }
        let text: Vec<String> = indices.iter().map(Expr::to_string).collect();
        let text = format!("`{old}[{}]`", text.join(", "));
        match under_guards(&guards, &padding).prove(&inside) {
            Proof::Yes => {}
            Proof::No { witness } => {
                return Err(Error::refused(format!(
                    "the pad value reads {text}, which is not data"
                ))
                .note(format!("at {witness}")));
            }
            Proof::Unknown(why) => {
                let what = format!("it is not known whether {text} in the pad value is data");
                return Err(Error::refused(what).note(why.to_string()));
            }
        }
    }
    Ok(())
}

fn under_guards(guards: &[Expr], padding: &Domain) -> tilewright_polyhedral::Domain {
    guards.iter().fold(padding.clone(), |d, g| d.with_guard(g))
}

/// Scalar parameters, and the variables that shapes of parameters bind.
fn known_everywhere(func: &TensorFunc) -> Vec<Var> {
    let shapes = func.buffers().flat_map(|b| &b.shape);
    func.scalars().cloned().chain(shapes.flat_map(free_vars)).collect()
}

/// The buffer and what views it by `T.match_buffer` in a block.
pub fn views(func: &TensorFunc, buffer: &Buffer) -> Vec<Buffer> {
    let mut all = vec![buffer.clone()];
    for m in blocks(func).iter().flat_map(|b| &b.matches) {
        if all.contains(&m.source.buffer) {
            all.push(m.buffer.clone());
        }
    }
    all
}

fn stores_to(s: &Stmt, buffers: &[Buffer]) -> bool {
    !find(s, |s| matches!(s.kind(), StmtKind::Store { buffer, .. } if buffers.contains(buffer)))
        .is_empty()
}

/// Whether the function writes the buffer.
pub fn is_written(func: &TensorFunc, buffer: &Buffer) -> bool {
    stores_to(&func.body, &views(func, buffer))
}

/// The part of the function in which the buffer exists.
pub fn scope_of(func: &TensorFunc, buffer: &Buffer) -> Stmt {
    let found = find(&func.body, |s| match s.kind() {
        StmtKind::Block { block, .. } => block.allocs.contains(buffer),
        StmtKind::Allocate { buffer: b, .. } | StmtKind::Constant { buffer: b, .. } => b == buffer,
        _ => false,
    });
    found.first().and_then(|s| scope_body(&s.stmt)).unwrap_or_else(|| func.body.clone())
}

fn scope_body(s: &Stmt) -> Option<Stmt> {
    match s.kind() {
        StmtKind::Block { block, .. } => Some(block.body.clone()),
        StmtKind::Allocate { body, .. } | StmtKind::Constant { body, .. } => Some(body.clone()),
        _ => None,
    }
}

/// The last statement that writes one of the buffers, among those that run one after the other:
/// inside of named regions and of what only defines buffers and values.
pub fn last_writer(s: &Stmt, buffers: &[Buffer]) -> Stmt {
    match s.kind() {
        StmtKind::Seq(list) => match list.iter().rfind(|s| stores_to(s, buffers)) {
            Some(last) => last_writer(last, buffers),
            None => s.clone(),
        },
        StmtKind::Allocate { body, .. }
        | StmtKind::Constant { body, .. }
        | StmtKind::Declare { body, .. }
        | StmtKind::Let { body, .. } => last_writer(body, buffers),
        StmtKind::Block { predicate, block, .. }
            if block.iters.is_empty() && block.init.is_none() && predicate.is_true() =>
        {
            if find(&block.body, |s| {
                (as_loop(s).is_some() || as_block(s).is_some()) && stores_to(s, buffers)
            })
            .is_empty()
            {
                s.clone()
            } else {
                last_writer(&block.body, buffers)
            }
        }
        _ => s.clone(),
    }
}

impl Padding<'_> {
    /// The iteration variables of a block over the physical box, with the block's statement over
    /// them inside a nest of loops.
    fn nest(
        &self,
        name: Arc<str>,
        predicate: Expr,
        body: impl FnOnce(&mut Subst, Vec<Expr>) -> Stmt,
    ) -> Stmt {
        let cells = &self.layout.cells;
        let iters = self.layout.iters();
        let at: Vec<Expr> = iters.iter().map(|i| i.var.expr()).collect();
        let mut to_iters = Subst::vars(cells.iter().cloned().zip(at.iter().cloned()));
        let body = body(&mut to_iters, at);
        let block = Block { iters, ..Block::new(name, body) };
        let bindings = cells.iter().map(Var::expr).collect();
        Stmt::nest(self.layout.ranges().into_iter(), Stmt::block(bindings, predicate, block))
    }

    /// The function, whose accesses have the new layout already, with a nest that writes the
    /// padding after the last write.
    pub fn written_after(&self, func: &TensorFunc) -> TensorFunc {
        let last = last_writer(&scope_of(func, self.new), &views(func, self.new));
        let name = fresh_block_name(func, &format!("buffer_{}_padding", self.new.name));
        let stage = self.nest(name, self.known.padding.clone(), |to_iters, at| {
            Stmt::store(self.new, at, to_iters.expr(&self.value))
        });
        replace_in(func, &last, &Stmt::seq([last.clone(), stage]))
    }

    /// The function with the padding assumed at its start.
    pub fn assumed(&self, func: &TensorFunc) -> TensorFunc {
        let name = fresh_block_name(func, &format!("buffer_{}_assumption", self.new.name));
        let stage = self.nest(name, Expr::bool(true), |to_iters, at| {
            let value = to_iters.expr(&self.value);
            let cell = self.new.load(at);
            let holds = match value.as_float() {
                Some(v) if v.is_nan() => Expr::intrin(Intrin::IsNan, vec![cell]),
                _ => Expr::binary(tilewright_ir::BinOp::Eq, cell, value),
            };
            let data = Expr::not_node(to_iters.expr(&self.known.padding));
            Stmt::new(StmtKind::Assume(data.or(holds)))
        });
        let (allocs, body) = func.root_parts();
        func.with_root(allocs.to_vec(), Stmt::seq([stage, body.clone()]))
    }
}

/// Whether two extents are the same expression, or the same number of any type.
pub fn same_extent(a: &Expr, b: &Expr) -> bool {
    same_expr(a, b) || (a.as_int().is_some() && a.as_int() == b.as_int())
}
