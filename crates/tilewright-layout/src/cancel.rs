//! `cancel_layout`: conversions that undo each other go, and what is left of a chain of
//! conversions is one.
//!
//! ```text
//! lv1: (16, 128, 8) = matmul(...)            lv1 = matmul(...)
//! lv2: (128, 128)   = unpack(lv1)     -->
//! lv3: (16, 128, 8) = pack(lv2)
//! lv4               = matmul(lv3, ...)       lv4 = matmul(lv1, ...)
//! ```
//!
//! A conversion is composed with those before it in the chain that leads to it, from its nearest
//! argument to the farthest. Where the composition from some value of the chain
//!
//! * is the identity, and the padding agrees, it is that value: the cells that the conversion pads
//!   may hold anything, or are *known* (`known`) to hold the pad value already;
//! * is what another conversion of that value gives, both are one;
//! * is anything else, one conversion takes the place of the chain, unless that would make a copy
//!   out of a view, which costs nothing.
//!
//! What decides are maps and pad values, and never shapes. A value that another call reads stays.

use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{
    Binding, Error, Expr, GraphExpr, GraphVar, Module, Remarks, Result, TensorType, dim,
};
use tilewright_polyhedral::Engine;
use tilewright_transform::pass::{Pass, Run};

use super::constant::same_value;
use super::conversion::{Conversion, Pad, within};
use super::known::{Region, Values};
use super::recognise::Recognised;
use tilewright_graph::call_sizes::unify_sizes;
use tilewright_graph::functions::{Functions, rewritten};
use tilewright_graph::normal::each_binding;
use tilewright_graph::rewrite::GraphFold;

/// `cancel_layout` by name.
pub const PASS: Pass = Pass {
    name: "cancel_layout",
    summary: "remove layout conversions that undo each other, and make one of those in a row",
    options: &[],
    run: Run::Module(|module, _, why| cancel_layout(module, why)),
};

/// Longest chain of conversions that is looked at.
const MAX_CHAIN: usize = 16;

/// Cancels and composes conversions in every graph function of a module. Those in which something
/// changes come back in normal form.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize) and [`unify_sizes`].
pub fn cancel_layout(module: &Module, why: &mut Remarks) -> Result<Module> {
    let engine = Engine::new();
    let mut known = Recognised::default();
    rewritten(&unify_sizes(module)?, |functions, normal| {
        let mut cancel = Cancel {
            functions,
            known: &mut known,
            values: Values::new(&engine),
            steps: HashMap::default(),
            made: Vec::new(),
            alias: HashMap::default(),
            why,
        };
        each_binding(normal, |b, out| {
            out.push(cancel.binding(b)?);
            Ok(())
        })
    })
}

/// A value that a conversion makes from another one.
#[derive(Clone)]
struct Converted {
    from: GraphVar,
    conversion: Rc<Conversion>,
}

struct Cancel<'a, 'm> {
    functions: &'a mut Functions<'m>,
    known: &'a mut Recognised,
    values: Values,
    /// How values are made that conversions make.
    steps: HashMap<u64, Converted>,
    /// Conversions so far, with the variables that they define.
    made: Vec<(GraphVar, Converted)>,
    /// Variables that are other variables now.
    alias: HashMap<u64, GraphVar>,
    why: &'a mut Remarks,
}

/// What becomes of a conversion.
enum Fate {
    /// The value is this one.
    Is(GraphVar),
    /// One conversion does what the chain did.
    Becomes(Converted),
    Stays,
}

/// A value in terms of the variables that stand for others now.
impl GraphFold for Cancel<'_, '_> {
    fn var(&mut self, v: &GraphVar) -> GraphVar {
        self.alias.get(&v.id()).unwrap_or(v).clone()
    }
}

impl Cancel<'_, '_> {
    fn binding(&mut self, b: &Binding) -> Result<Binding> {
        let same = Binding { value: self.expr(&b.value)?, ..b.clone() };
        let GraphExpr::CallTir { func, args, .. } = &same.value else {
            self.values.bound(&same, self.functions);
            return Ok(same);
        };
        let Some(f) = self.functions.get(func).cloned() else { return Ok(same) };
        self.values.assumptions(&f, args);
        let step = match &args[..] {
            [GraphExpr::Var(from)] => {
                let conversion = self.known.call(func, &f, &same.value);
                conversion.map(|conversion| Converted { from: from.clone(), conversion })
            }
            _ => None,
        };
        let Some(step) = step else {
            self.values.bound(&same, self.functions);
            return Ok(same);
        };
        let (step, new) = match self.fate(b, &step) {
            Fate::Is(var) => {
                self.alias.insert(b.var.id(), var.clone());
                return Ok(Binding { value: GraphExpr::Var(var), ..b.clone() });
            }
            Fate::Stays => (step, same.clone()),
            Fate::Becomes(step) => {
                let func = (step.conversion.to_func("convert"), "convert");
                let new = self.functions.made(func, vec![step.from.expr()], &b.var, b.span)?;
                (step, new)
            }
        };
        self.values.converted(&new, &step.conversion, &step.from.expr());
        self.steps.insert(b.var.id(), step.clone());
        self.made.push((b.var.clone(), step));
        Ok(new)
    }

    fn fate(&mut self, b: &Binding, step: &Converted) -> Fate {
        // From the nearest argument to the farthest: what leads from there to here, and whether
        // the first conversion on that way is a view.
        let mut chain = vec![(step.clone(), step.conversion.is_view())];
        while let Some((last, _)) = chain.last()
            && chain.len() < MAX_CHAIN
            && let Some(before) = self.steps.get(&last.from.id())
            && let Some(conversion) = before.conversion.then(&last.conversion)
        {
            let view = before.conversion.is_view();
            let conversion = Rc::new(conversion);
            chain.push((Converted { from: before.from.clone(), conversion }, view));
        }
        for (way, _) in chain.iter().rev() {
            if self.is_identity(b, way) {
                return Fate::Is(way.from.clone());
            }
            if let Some((var, _)) = self
                .made
                .iter()
                .find(|(_, s)| s.from == way.from && s.conversion.same_as(&way.conversion))
            {
                return Fate::Is(var.clone());
            }
        }
        if chain.first().is_some_and(|(_, is_view)| *is_view) {
            return Fate::Stays;
        }
        match chain.iter().rev().find(|(_, is_view)| !is_view) {
            Some((way, _)) if way.from != step.from => {
                let conversion = Rc::new(self.widened(b, way));
                Fate::Becomes(Converted { conversion, ..way.clone() })
            }
            _ => Fate::Stays,
        }
    }

    /// Whether the value at the end of a way may be the one at its start.
    fn is_identity(&mut self, b: &Binding, way: &Converted) -> bool {
        let c = &way.conversion;
        if !c.takes_own_cells() || !same_type(&way.from, b) {
            return false;
        }
        let cond = c.all().simplify(&!c.data.clone());
        let region = Region { cells: c.cells.clone(), shape: c.to.clone(), cond };
        let agrees = match &c.pad {
            _ if c.is_total() => Ok(()),
            Pad::None => Ok(()),
            // Any value will do, but it may be read: it must be written at all.
            Pad::Undef => self.values.written(&way.from.expr(), &region),
            Pad::Value(value) => self.holds(way, &region, value),
        };
        if let Err(missing) = &agrees {
            let what = format!("`{}` is not taken for `{}`", way.from.name(), b.var.name());
            self.why.push(Error::refused(what).at(b.span).note(missing));
        }
        agrees.is_ok()
    }

    /// Whether the cells of a region of the value at the start of a way hold a value.
    fn holds(&self, way: &Converted, region: &Region, value: &Expr) -> Result<(), String> {
        let missing = match self.values.constant(&way.from.expr(), region) {
            Ok(there) if same_value(&there, value) => return Ok(()),
            Ok(there) => format!("they hold {there}"),
            Err(missing) => missing,
        };
        let (name, cond) = (way.from.name(), &region.cond);
        Err(format!("the cells of `{name}` where {cond} are not known to hold {value}: {missing}"))
    }

    /// The conversion with cells taken from the argument that are known to hold the pad value.
    fn widened(&mut self, b: &Binding, way: &Converted) -> Conversion {
        let c = &way.conversion;
        let as_it_is = (**c).clone();
        let Pad::Value(value) = &c.pad else { return as_it_is };
        // All of the argument's own cells: that is the identity, which it is not.
        if c.takes_own_cells() {
            return as_it_is;
        }
        let in_range = c
            .source
            .iter()
            .zip(&c.from)
            .fold(Expr::bool(true), |all, (e, n)| all.and(within(e, *n)));
        let in_range = c.all().simplify(&in_range);
        let more = c.padding().with_guard(&in_range);
        let wider = c.with_data(in_range);
        let once = matches!(wider.relation().and_then(|r| r.collision()), Ok(None));
        let region = Region::touched(&more, &c.source, &c.from);
        let Some(region) = region.filter(|_| once && !more.is_void()) else {
            return as_it_is;
        };
        match self.holds(way, &region, value) {
            Ok(()) => wider,
            Err(missing) => {
                let what = format!("`{}` does not take all of `{}`", b.var.name(), way.from.name());
                self.why.push(Error::refused(what).at(b.span).note(missing));
                as_it_is
            }
        }
    }
}

/// Whether a variable has the type of a binding's.
fn same_type(v: &GraphVar, b: &Binding) -> bool {
    let types = v.ty().as_tensor().zip(b.var.ty().as_tensor());
    types.is_some_and(|(a, b)| {
        shape_and_dtype(a).is_some() && shape_and_dtype(a) == shape_and_dtype(b)
    })
}

fn shape_and_dtype(t: &TensorType) -> Option<(Vec<dim::Dim>, tilewright_ir::DType)> {
    dim::of_shape(&t.shape).map(|s| (s, t.dtype))
}
