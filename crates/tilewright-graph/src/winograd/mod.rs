//! Convolutions by Winograd's minimal filtering: fewer products, and more rounding.
//!
//! A convolution with windows of 3 x 3 pixels that move by one pixel is computed tile by tile: `F(2x2)`
//! makes 4 results by 16 products instead of 36, `F(4x4)` makes 16 by 36 instead of 144 (see `points`):
//!
//! ```text
//! transformed[x, y, .., tile, channel] = B^T data B             of tiles that overlap by two pixels
//! sums[x, y, .., tile, result] = sum(transformed * weights)     a product of matrices for each x, y
//! result[.., pixel, result] = A^T sums A                        and what followed the convolution
//! ```
//!
//! The weights are constants, and are transformed now. Tiles at the ends may be cut; groups, further axes
//! and the layout stay as they are, since only the indices change that windows move along (`build`).
//!
//! The results are other numbers in `float32`: the pass runs only where the user gave an error budget.
//! The error is measured on samples for each convolution with its weights (`error`), and one whose error
//! is larger than the budget takes the smaller tile, or stays. So is the largest data found that overflow
//! nowhere. Further a convolution stays where the three parts
//! are estimated to take longer.

mod allowed;
mod build;
mod error;
mod functions;
pub mod points;
mod recognise;

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{
    Attr, Binding, Error, GraphExpr, GraphFunc, GraphVar, Module, Remarks, Result, Tensor,
    TensorFunc,
};

pub use self::allowed::Allowed;
use self::build::Tiles;
use self::functions::{TILES, Winograd};
use self::points::Matrices;
use self::recognise::{Convolution, Missing};
use crate::call_sizes::unify_sizes;
use crate::functions::{Functions, rewritten};
use crate::normal::{Constants, each_binding};
use crate::stages::result_type;

/// Attribute of a graph function that lists its convolutions by transforms: for each the value that it
/// makes, the results of a tile along an axis, the error, and the limit.
pub(crate) const WINOGRAD: &str = "tilewright.winograd";

/// What the names of values end with that are transformed data, and their products with the weights.
pub const TRANSFORMED: &str = "_transformed";
/// See [`TRANSFORMED`].
pub const PRODUCTS: &str = "_products";

/// What a convolution by transforms may be.
pub struct Choice<'a> {
    /// The largest error, as a part of the largest result.
    pub budget: f64,
    /// The results of a tile along an axis, where that is fixed; then no price is asked.
    pub tile: Option<usize>,
    /// What a call of a function costs; it is told which arguments are constants, and the bytes of all
    /// constants.
    pub price: &'a dyn Fn(&TensorFunc, &[bool], u64) -> f64,
    /// Random numbers in [0, 1).
    pub noise: &'a mut dyn FnMut() -> f64,
}

/// A convolution by transforms.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The value that it makes.
    pub value: Arc<str>,
    /// The results of a tile along an axis.
    pub tile: usize,
    /// The largest error that was measured in samples, as a part of the largest result.
    pub error: f64,
    /// Data up to this absolute value overflow nowhere in the transforms.
    pub limit: f64,
}

/// The convolutions of a module's graph functions that are computed by transforms.
pub fn chosen(module: &Module) -> Vec<Chosen> {
    let lists = module.graphs().filter_map(|(_, g)| g.attrs.get(WINOGRAD));
    let all = lists.flat_map(|a| if let Attr::List(list) = a { &list[..] } else { &[] });
    all.filter_map(|a| {
        let Attr::List(list) = a else { return None };
        let [Attr::Str(value), Attr::Int(tile), Attr::Float(error), Attr::Float(limit)] = &list[..]
        else {
            return None;
        };
        let (value, tile) = (value.clone(), usize::try_from(*tile).ok()?);
        Some(Chosen { value, tile, error: *error, limit: *limit })
    })
    .collect()
}

/// Computes convolutions by transforms in every graph function of a module. What stays is said in
/// `why`.
///
/// # Errors
/// Those of [`normalize`](crate::normal::normalize) and [`unify_sizes`].
pub fn winograd(module: &Module, asked: &mut Choice<'_>, why: &mut Remarks) -> Result<Module> {
    if !module.tensors().any(|(_, f)| !matches!(Convolution::recognise(f), Err(Missing::Other))) {
        return Ok(module.clone());
    }
    let mut known = HashMap::default();
    rewritten(&unify_sizes(module)?, |functions, normal| {
        let constants = Constants::collect(normal);
        State { functions, known: &mut known, constants, asked, why }.graph(normal)
    })
}

struct State<'f, 'm, 'a> {
    functions: &'f mut Functions<'m>,
    known: &'f mut HashMap<Arc<str>, Option<Arc<Convolution>>>,
    constants: Constants,
    asked: &'f mut Choice<'a>,
    why: &'f mut Remarks,
}

/// What a call becomes.
struct Replacement {
    winograd: Winograd,
    weights: Tensor,
    chosen: Chosen,
}

impl State<'_, '_, '_> {
    fn graph(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        let mut list = Vec::new();
        let mut new = each_binding(func, |b, bindings| {
            match self.call(b) {
                None => bindings.push(b.clone()),
                Some((name, made)) => match self.bind(bindings, b, &name, &made) {
                    Ok(()) => list.push(made.chosen),
                    Err(e) => {
                        self.why.push(e);
                        bindings.push(b.clone());
                    }
                },
            }
            Ok(())
        })?;
        if list.is_empty() {
            return Ok(new);
        }
        new.attrs.insert(WINOGRAD.into(), Attr::List(list.into_iter().map(entry_of).collect()));
        Ok(new)
    }

    /// What a call becomes; `None` where it stays.
    fn call(&mut self, b: &Binding) -> Option<(Arc<str>, Replacement)> {
        let GraphExpr::CallTir { func: name, args, outs, .. } = &b.value else { return None };
        let func = self.functions.get(name)?.clone();
        let conv = self.convolution(name, &func)?;
        let made = match args.get(conv.param).and_then(|e| self.constants.get(e)).cloned() {
            _ if outs.len() != 1 => Err("it has several results".to_owned()),
            None => Err("its weights are no constant".to_owned()),
            Some(weights) => {
                let free: Vec<bool> =
                    args.iter().map(|a| self.constants.get(a).is_some()).collect();
                self.choose(b, (&func, &conv), &free, &weights)
            }
        };
        match made {
            Ok(made) => Some((name.clone(), made)),
            Err(reason) => {
                let what = format!("`{}` is computed without transforms: {reason}", b.var.name());
                self.why.push(Error::refused(what));
                None
            }
        }
    }

    fn convolution(&mut self, name: &Arc<str>, func: &TensorFunc) -> Option<Arc<Convolution>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let found = match Convolution::recognise(func) {
            Ok(conv) => Some(Arc::new(conv)),
            Err(Missing::Other) => None,
            Err(Missing::Because(reason)) => {
                let what = format!("`{name}` is computed without transforms: {reason}");
                self.why.push(Error::refused(what));
                None
            }
        };
        self.known.insert(name.clone(), found.clone());
        found
    }

    /// The tile of least cost whose error is within the budget, or why there is none.
    fn choose(
        &mut self,
        b: &Binding,
        (func, conv): (&TensorFunc, &Convolution),
        free: &[bool],
        weights: &Tensor,
    ) -> std::result::Result<Replacement, String> {
        if conv.depth().is_none_or(|n| n < 2) {
            return Err("its results are sums over one channel, or an open number".to_owned());
        }
        let bytes = self.constants.bytes();
        let price = |func: &TensorFunc, free: &[bool]| (self.asked.price)(func, free, bytes);
        let direct = price(func, free);
        let mut best: Option<(f64, Replacement)> = None;
        let mut reason = None;
        for tile in TILES.into_iter().filter(|t| self.asked.tile.is_none_or(|own| own == *t)) {
            let f = Matrices::of_three(tile);
            let tiles = Tiles::new(func, conv, &f);
            let Some(winograd) = Winograd::build(&tiles) else { continue };
            let cost = winograd.cost(free, &price);
            if self.asked.tile.is_none() && cost >= direct {
                reason = reason.or(Some(format!(
                    "it is estimated to take {direct:.0} cycles, and {cost:.0} by tiles of {tile} x {tile}"
                )));
                continue;
            }
            if best.as_ref().is_some_and(|(least, _)| *least <= cost) {
                continue;
            }
            let error = error::measure_error(conv, &f, weights, self.asked.noise);
            let Some(error) = error.filter(|e| *e <= self.asked.budget) else {
                reason = Some(match error {
                    Some(error) => format!(
                        "tiles of {tile} x {tile} have an error of {error:.1e}, more than {:.1e}",
                        self.asked.budget
                    ),
                    None => "its weights are not read evenly".to_owned(),
                });
                continue;
            };
            let others = tiles.other_axes(weights);
            let Some(weights) = tiles.transform(weights) else { continue };
            let Some(limit) = error::limit(conv, &f, &weights, &others) else { continue };
            let chosen = Chosen { value: b.var.name().clone(), tile, error, limit };
            best = Some((cost, Replacement { winograd, weights, chosen }));
        }
        best.map(|b| b.1).ok_or_else(|| reason.unwrap_or_else(|| "it has another form".to_owned()))
    }

    /// The calls of the functions in the place of one.
    fn bind(
        &mut self,
        bindings: &mut Vec<Binding>,
        b: &Binding,
        name: &str,
        made: &Replacement,
    ) -> Result<()> {
        let GraphExpr::CallTir { args, .. } = &b.value else {
            return Err(Error::internal("no call"));
        };
        let Winograd { input, products, output } = &made.winograd;
        let [of_input, of_output] = [&input.kept, &output.kept].map(|kept| -> Vec<GraphExpr> {
            kept.iter().filter_map(|k| args.get(*k).cloned()).collect()
        });
        let transformed = format!("{name}{TRANSFORMED}");
        let data = self.value(bindings, &input.func, &transformed, of_input)?;
        let weights = GraphExpr::Const(made.weights.clone());
        let summed = format!("{name}{PRODUCTS}");
        let sums = self.value(bindings, products, &summed, vec![data, weights])?;
        let args = [sums].into_iter().chain(of_output).collect();
        let results = format!("{name}_results");
        let func = (output.func.clone(), &*results);
        bindings.push(self.functions.made(func, args, &b.var, b.span)?);
        Ok(())
    }

    /// A new value: what a function makes.
    fn value(
        &mut self,
        bindings: &mut Vec<Binding>,
        func: &TensorFunc,
        name: &str,
        args: Vec<GraphExpr>,
    ) -> Result<GraphExpr> {
        let ty = result_type(func).ok_or_else(|| Error::internal("a part has no result"))?;
        let var = GraphVar::tensor(name, ty);
        bindings.push(self.functions.made((func.clone(), name), args, &var, None)?);
        Ok(var.expr())
    }
}

fn entry_of(c: Chosen) -> Attr {
    let numbers = [c.error, c.limit].map(Attr::Float);
    let what = [Attr::Str(c.value), Attr::Int(c.tile as i64)];
    Attr::List(what.into_iter().chain(numbers).collect())
}
