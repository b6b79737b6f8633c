//! What is known of the cells of graph values: that all cells of a region hold one constant.
//!
//! The question is asked of a region, and goes up through the functions that make the value: a
//! conversion moves the region to its argument, or answers with its pad value; any other function
//! is evaluated on the constants that its loads give there. That is how `Y[18:] == 0` follows for
//! `Y = conv1d(pad(X), F)`: the cells are sums of products of a padding cell and one of `F`, and a
//! product with zero is zero *where the other side is finite*, which the constant `F` is.
//!
//! What a function assumes (`T.assume`) of an argument, or of its result when it is done, is known
//! of the value as well.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::condition::CellFact;
use tilewright_ir::equal::same_expr;
use tilewright_ir::text::{Hints, expr_to_string};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Binding, Buffer, CallTarget, DType, Dim, Expr, ExprKind, Fold, GraphExpr, GraphVar,
    Tensor, TensorFunc, Var, dim,
};
use tilewright_polyhedral::place::Around;
use tilewright_polyhedral::{AccessRelation, Domain, Engine, Known, Set};

use super::constant::{Answer, binary, cast, intrinsic, is_zero, same_value};
use super::conversion::{Conversion, Pad, boxed, cell_names};
use super::writes::{Write, Writes};
use tilewright_graph::functions::Functions;
use tilewright_graph::normal::var;

/// How far up a question goes.
const MAX_DEPTH: usize = 32;

/// Cells of a value: those of a box at which a condition holds.
#[derive(Clone)]
pub(crate) struct Region {
    pub cells: Vec<Var>,
    pub shape: Vec<Dim>,
    pub cond: Expr,
}

impl Region {
    /// The cells that are touched by `indices` on a domain.
    pub fn touched(domain: &Domain, indices: &[Expr], shape: &[Dim]) -> Option<Region> {
        let cells = cell_names(shape);
        let touched = AccessRelation::new(domain, indices).touched(&cells).ok()?;
        Region::of_set(domain.engine(), &touched, cells, shape)
    }

    fn of_set(engine: &Engine, set: &Set, cells: Vec<Var>, shape: &[Dim]) -> Option<Region> {
        let cond = set.condition(&boxed(engine, &cells, shape)).ok()?;
        Some(Region { cells, shape: shape.to_vec(), cond })
    }

    fn domain(&self, engine: &Engine) -> Domain {
        boxed(engine, &self.cells, &self.shape).with_guard(&self.cond)
    }

    /// The condition at given indices.
    pub fn at(&self, indices: &[Expr]) -> Expr {
        let place = self.cells.iter().zip(indices);
        Subst::vars(place.map(|(c, e)| (c.clone(), e.clone().cast(c.dtype())))).expr(&self.cond)
    }
}

/// The functions and values of a graph function, as far as they have been met.
pub(crate) struct Values {
    engine: Engine,
    made: HashMap<u64, Definition>,
    /// Cells of values that hold a constant by assumption.
    assumed: HashMap<u64, Vec<(Region, Expr)>>,
    /// Answers to what was asked on the way of one question, by value and condition: values that
    /// are used several times are followed once.
    answers: RefCell<HashMap<(u64, String), Answer>>,
}

enum Definition {
    Constant(Tensor),
    Conversion(Rc<Conversion>, GraphExpr),
    Function(Arc<TensorFunc>, Vec<GraphExpr>),
}

impl Values {
    pub fn new(engine: &Engine) -> Values {
        Values {
            engine: engine.clone(),
            made: HashMap::default(),
            assumed: HashMap::default(),
            answers: RefCell::default(),
        }
    }

    /// Takes note of a binding whose value a conversion makes.
    pub fn converted(&mut self, b: &Binding, conversion: &Rc<Conversion>, from: &GraphExpr) {
        self.made.insert(b.var.id(), Definition::Conversion(conversion.clone(), from.clone()));
    }

    /// Takes note of a binding whose value is a constant, or made by another function.
    pub fn bound(&mut self, b: &Binding, functions: &Functions<'_>) {
        let made = match &b.value {
            GraphExpr::Const(t) => Definition::Constant(t.clone()),
            GraphExpr::CallTir { func, args, .. } => match functions.get(func) {
                Some(f) => Definition::Function(f.clone(), args.clone()),
                None => return,
            },
            _ => return,
        };
        self.made.insert(b.var.id(), made);
    }

    /// Takes note of what a function assumes of its arguments.
    pub fn assumptions(&mut self, func: &TensorFunc, args: &[GraphExpr]) {
        let Some(writes) = Writes::collect(func.root_parts().1) else { return };
        for a in &writes.assumes {
            for (buffer, arg) in func.buffers().zip(args) {
                let untouched = writes.stores[..a.after].iter().all(|w| w.buffer != *buffer);
                if let GraphExpr::Var(v) = arg
                    && untouched
                    && let Some(fact) = fact(&self.engine, &a.place, &a.cond, buffer)
                {
                    self.assumed.entry(v.id()).or_default().push(fact);
                }
            }
        }
    }

    /// The constant that every cell of a region holds, or why that is not known.
    pub fn constant(&self, value: &GraphExpr, region: &Region) -> Answer {
        self.answers.borrow_mut().clear();
        self.ask(value, region, MAX_DEPTH)
    }

    fn ask(&self, value: &GraphExpr, region: &Region, depth: usize) -> Answer {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("the question goes through more than {MAX_DEPTH} functions"));
        };
        let v = match value {
            GraphExpr::Const(t) => return uniform(t),
            GraphExpr::Var(v) => v,
            _ => return Err("it is no tensor".into()),
        };
        let key = (v.id(), expr_to_string(&region.cond, &mut Hints(DType::I32)));
        if let Some(known) = self.answers.borrow().get(&key) {
            return known.clone();
        }
        let answer = self.of_var(v, region, depth);
        self.answers.borrow_mut().insert(key, answer.clone());
        answer
    }

    fn of_var(&self, v: &GraphVar, region: &Region, depth: usize) -> Answer {
        for (cells, constant) in self.assumed.get(&v.id()).into_iter().flatten() {
            let names: Vec<Expr> = region.cells.iter().map(Var::expr).collect();
            if region.domain(&self.engine).proves(&cells.at(&names)) {
                return Ok(constant.clone());
            }
        }
        match self.made.get(&v.id()) {
            None => Err(format!("nothing is known of the cells of `{}`", v.name())),
            Some(Definition::Constant(t)) => uniform(t),
            Some(Definition::Conversion(c, from)) => {
                self.through_conversion(c, from, region, depth)
            }
            Some(Definition::Function(f, args)) => {
                let Some(out) = f.buffers().nth(args.len()) else {
                    return Err(format!("`{}` is one of several results", v.name()));
                };
                Function { values: self, func: f, args, depth }.constant(out, region)
            }
        }
    }

    fn through_conversion(
        &self,
        c: &Conversion,
        from: &GraphExpr,
        region: &Region,
        depth: usize,
    ) -> Answer {
        let own: Vec<Expr> = c.cells.iter().map(Var::expr).collect();
        let here = region.at(&own);
        let padding = c.padding().with_guard(&here);
        let inside = c.inside().with_guard(&here);
        let pad = match (&c.pad, padding.is_void()) {
            (_, true) => None,
            (Pad::Value(e), _) => Some(constant_on(&padding, e)?),
            _ => return Err("the padding holds any value".into()),
        };
        if inside.is_void() {
            return pad.ok_or_else(|| "there are no such cells".into());
        }
        let touched = Region::touched(&inside, &c.source, &c.from);
        let source = self.ask(from, &touched.ok_or("the cells have no closed form")?, depth)?;
        match pad {
            Some(pad) => agree(pad, source),
            None => Ok(source),
        }
    }

    /// `Err` where cells of a region are not written by the function that makes the value, or that
    /// is not known.
    pub fn written(&self, value: &GraphExpr, region: &Region) -> Result<(), String> {
        match var(value).and_then(|v| self.made.get(&v.id())) {
            Some(Definition::Conversion(c, _)) if matches!(c.pad, Pad::None) => {
                let own: Vec<Expr> = c.cells.iter().map(Var::expr).collect();
                if c.padding().with_guard(&region.at(&own)).is_void() {
                    Ok(())
                } else {
                    Err("it is not written there".into())
                }
            }
            Some(Definition::Function(f, args)) => {
                let Some(out) = f.buffers().nth(args.len()) else {
                    return Err("it is one of several results".into());
                };
                let Some(writes) = Writes::collect(f.root_parts().1) else {
                    return Err(format!("what is done to `{}` cannot be followed", out.name));
                };
                let stores: Vec<&Write> =
                    writes.stores.iter().filter(|w| w.buffer == *out).collect();
                match covers(&self.engine, &stores, region) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(format!("not all of `{}` is written there", out.name)),
                    Err(why) => Err(why.to_string()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether no element is `NaN` or infinite.
    fn finite(&self, value: &GraphExpr, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match value {
            GraphExpr::Const(t) => all_finite(t),
            GraphExpr::Var(v) => match self.made.get(&v.id()) {
                Some(Definition::Constant(t)) => all_finite(t),
                Some(Definition::Conversion(c, from)) => {
                    let pad = match &c.pad {
                        Pad::Value(e) => e.as_float().map_or(c.dtype.is_int(), f64::is_finite),
                        Pad::None => c.is_total(),
                        Pad::Undef => false,
                    };
                    pad && self.finite(from, depth)
                }
                _ => v.ty().as_tensor().is_some_and(|t| t.dtype.is_int() || t.dtype.is_bool()),
            },
            _ => false,
        }
    }
}

/// A function whose arguments are known.
struct Function<'a> {
    values: &'a Values,
    func: &'a TensorFunc,
    /// Its first parameters; the others are results.
    args: &'a [GraphExpr],
    /// How far up a question about an argument goes.
    depth: usize,
}

/// A value, on the points of a domain.
struct Evaluation<'a> {
    function: &'a Function<'a>,
    writes: &'a Writes,
    /// The buffer that is being asked for, and what its cells are supposed to hold.
    own: (&'a Buffer, Option<&'a Expr>),
    depth: usize,
}

impl Function<'_> {
    /// The value that a parameter is given.
    fn argument(&self, buffer: &Buffer) -> Option<&GraphExpr> {
        self.args.get(self.func.buffers().position(|p| p == buffer)?)
    }

    /// The constant that all cells of a region of a buffer hold when the function is done.
    fn constant(&self, buffer: &Buffer, region: &Region) -> Answer {
        let Some(writes) = Writes::collect(self.func.root_parts().1) else {
            return Err(format!("what is done to `{}` cannot be followed", buffer.name));
        };
        let last = writes.stores.iter().rposition(|w| w.buffer == *buffer).map_or(0, |k| k + 1);
        match self.assumed(&writes, buffer, region, last) {
            Some(value) => Ok(value),
            None => self.of_writes(&writes, buffer, region, self.depth),
        }
    }

    /// Whether no element of an argument is `NaN` or infinite.
    fn finite(&self, buffer: &Buffer) -> bool {
        self.argument(buffer).is_some_and(|arg| self.values.finite(arg, self.depth))
    }

    /// What is assumed of a region of a buffer once `after` stores are done.
    fn assumed(
        &self,
        writes: &Writes,
        buffer: &Buffer,
        region: &Region,
        after: usize,
    ) -> Option<Expr> {
        let names: Vec<Expr> = region.cells.iter().map(Var::expr).collect();
        writes.assumes.iter().filter(|a| a.after >= after).find_map(|a| {
            let (cells, value) = fact(&self.values.engine, &a.place, &a.cond, buffer)?;
            region.domain(&self.values.engine).proves(&cells.at(&names)).then_some(value)
        })
    }

    fn of_writes(&self, writes: &Writes, buffer: &Buffer, region: &Region, depth: usize) -> Answer {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("the question goes through more than {MAX_DEPTH} functions"));
        };
        let stored = writes.stores.iter().any(|w| w.buffer == *buffer);
        let argument = self.argument(buffer);
        match (stored, argument.is_some()) {
            (false, _) => {
                return self.assumed(writes, buffer, region, 0).map_or_else(
                    || match argument {
                        Some(arg) => self.values.ask(arg, region, self.depth),
                        None => Err(format!("`{}` is not followed", buffer.name)),
                    },
                    Ok,
                );
            }
            (true, true) => return Err(format!("`{}` is changed in place", buffer.name)),
            (true, false) => {}
        }
        // First what is stored from other buffers, then what is computed from that in place.
        let (updates, sets): (Vec<&Write>, Vec<&Write>) = writes
            .stores
            .iter()
            .filter(|w| w.buffer == *buffer)
            .partition(|w| w.value.loads_from(|b| b == buffer));
        if !covers(&self.values.engine, &sets, region).map_err(|e| e.to_string())? {
            return Err(not_written(buffer));
        }
        let mut found: Option<Expr> = None;
        for w in sets {
            let domain = w.place.domain(&self.values.engine).with_guard(&region.at(&w.indices));
            if domain.is_void() {
                continue;
            }
            let own = (buffer, None);
            let value =
                Evaluation { function: self, writes, own, depth }.value(&w.value, &domain)?;
            found = Some(match found {
                None => value,
                Some(before) => agree(before, value)?,
            });
        }
        let found = found.ok_or_else(|| not_written(buffer))?;
        for w in updates {
            let domain = w.place.domain(&self.values.engine).with_guard(&region.at(&w.indices));
            if domain.is_void() {
                continue;
            }
            // Only its own cell.
            let mut cells: Vec<(Buffer, Vec<Expr>)> = Vec::new();
            w.value.for_each_load(|b, at| cells.push((b.clone(), at.to_vec())));
            let mut own = cells.iter().filter(|(b, _)| b == buffer);
            if !own.all(|(_, at)| at.iter().zip(&w.indices).all(|(a, b)| same_expr(a, b))) {
                return Err(format!("`{}` is computed from other cells of itself", buffer.name));
            }
            let own = (buffer, Some(&found));
            let value =
                Evaluation { function: self, writes, own, depth }.value(&w.value, &domain)?;
            agree(found.clone(), value)?;
        }
        Ok(found)
    }
}

fn not_written(buffer: &Buffer) -> String {
    format!("not all of these cells of `{}` are written", buffer.name)
}

/// Whether every cell of a region is written by one of some stores.
fn covers(engine: &Engine, stores: &[&Write], region: &Region) -> Known<bool> {
    let mut left = region.domain(engine).to_set()?;
    for w in stores {
        let domain = w.place.domain(engine).with_guard(&region.at(&w.indices));
        let touched = AccessRelation::new(&domain, &w.indices).touched(&region.cells)?;
        if touched.is_exact() {
            left = left.subtract(&touched)?;
        }
    }
    Ok(left.is_void())
}

impl Evaluation<'_> {
    fn value(&self, e: &Expr, domain: &Domain) -> Answer {
        match e.kind() {
            ExprKind::Int(_) | ExprKind::Float(_) => Ok(e.clone()),
            ExprKind::Load(b, at) => {
                if b == self.own.0 {
                    return self.own.1.cloned().map_or_else(|| not_followed(e), Ok);
                }
                let Some(shape) = dim::of_shape(&b.shape) else { return not_followed(e) };
                match Region::touched(domain, at, &shape) {
                    Some(region) => self.function.of_writes(self.writes, b, &region, self.depth),
                    None => not_followed(e),
                }
            }
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                if !c.effects().constant() {
                    return agree(self.value(t, domain)?, self.value(f, domain)?);
                }
                let (yes, no) =
                    (domain.with_guard(c), domain.with_guard(&Expr::not_node(c.clone())));
                match (yes.is_void(), no.is_void()) {
                    (_, true) => self.value(t, &yes),
                    (true, _) => self.value(f, &no),
                    _ => agree(self.value(t, &yes)?, self.value(f, &no)?),
                }
            }
            ExprKind::Cast(a) if e.dtype().lanes == 1 => cast(&self.value(a, domain)?, e.dtype()),
            ExprKind::Binary(BinOp::Mul, a, b) => {
                match (self.value(a, domain), self.value(b, domain)) {
                    (Ok(zero), Err(why)) if is_zero(&zero) => self.times_zero(zero, b, why),
                    (Err(why), Ok(zero)) if is_zero(&zero) => self.times_zero(zero, a, why),
                    (a, b) => binary(BinOp::Mul, &a?, &b?),
                }
            }
            ExprKind::Binary(op, a, b) => {
                binary(*op, &self.value(a, domain)?, &self.value(b, domain)?)
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                let args: Result<Vec<Expr>, String> =
                    args.iter().map(|a| self.value(a, domain)).collect();
                intrinsic(*op, &args?)
            }
            _ if e.effects().constant() => constant_on(domain, e),
            _ => not_followed(e),
        }
    }

    /// Zero times a value of which nothing else is known.
    fn times_zero(&self, zero: Expr, other: &Expr, why: String) -> Answer {
        if zero.dtype().is_int() {
            return Ok(zero);
        }
        match other.kind() {
            ExprKind::Load(b, _) if self.function.finite(b) => Ok(zero),
            ExprKind::Load(b, _) => {
                Err(format!("a product with zero: `{}` may hold NaN or infinity", b.name))
            }
            _ => Err(why),
        }
    }
}

fn not_followed(e: &Expr) -> Result<Expr, String> {
    Err(format!("`{}` is not followed", tilewright_ir::text::brief(e)))
}

/// What a condition `... or buffer[at] == constant` tells: the cells, and the constant.
fn fact(engine: &Engine, place: &Around, cond: &Expr, buffer: &Buffer) -> Option<(Region, Expr)> {
    let fact = CellFact::all(cond).into_iter().find(|f| {
        f.buffer == *buffer
            && (f.value.as_int().is_some() || f.value.as_float().is_some())
            && f.unless.iter().chain(&f.indices).all(|e| e.effects().constant())
    })?;
    let domain = fact.unless.into_iter().fold(place.domain(engine), |d, e| d.with_guard(&!e));
    let shape = dim::of_shape(&buffer.shape)?;
    let cells = cell_names(&shape);
    let touched =
        AccessRelation::new(&domain, &fact.indices).touched(&cells).ok().filter(Set::is_exact)?;
    Some((Region::of_set(engine, &touched, cells, &shape)?, fact.value))
}

fn all_finite(t: &Tensor) -> bool {
    !t.dtype().is_float() || (0..t.len()).all(|i| t.get_f64(i).is_finite())
}

/// The one value of a constant tensor.
fn uniform(t: &Tensor) -> Answer {
    let size = t.dtype().bytes();
    let mut elements = t.unaligned_bytes().chunks(size.max(1));
    let first = elements.next().ok_or("the constant is empty")?;
    if elements.any(|e| e != first) {
        return Err("the constant holds several values".into());
    }
    if t.dtype().is_float() {
        Ok(Expr::float(t.get_f64(0), t.dtype()))
    } else {
        Ok(Expr::int(t.get_i128(0) as i64, t.dtype()))
    }
}

/// The one value of an expression of indices.
fn constant_on(domain: &Domain, e: &Expr) -> Answer {
    match (e.kind(), domain.bounds(e)) {
        (ExprKind::Int(_) | ExprKind::Float(_), _) => Ok(e.clone()),
        (_, Ok((Some(low), Some(high)))) if low == high => Ok(Expr::int(low, e.dtype())),
        _ => Err(format!("`{}` varies", tilewright_ir::text::brief(e))),
    }
}

fn agree(a: Expr, b: Expr) -> Answer {
    if same_value(&a, &b) { Ok(a) } else { Err(format!("some cells hold {a} and some {b}")) }
}
