//! Convolutions by transforms ([`tilewright_graph::winograd`]), within an error that the user allows.

use tilewright_autoschedule::options::{CPU, FEATURES, TRIPLE, target};
use tilewright_autoschedule::price::price;
use tilewright_graph::winograd::{Allowed, Choice, winograd};
pub use tilewright_graph::winograd::{Chosen, chosen};
use tilewright_ir::{Error, Module, Remarks, Result};
use tilewright_target::Target;
use tilewright_transform::pass::{OneOf, Pass, Run, Text};

use super::random::Random;

/// The error that is allowed.
const ERROR: Text = Text {
    name: "error",
    summary: "the largest error of a convolution in samples, as a part of its largest result",
    default: "1e-3",
};

/// The results of a tile.
const TILE: OneOf<Option<usize>> = OneOf {
    name: "tile",
    summary: "results of a tile along an axis: what is estimated to be the fastest, or a number",
    of: &[("auto", None), ("2", Some(2)), ("4", Some(4))],
    default: None,
};

/// `winograd` by name.
pub const PASS: Pass = Pass {
    name: "winograd",
    summary: "compute convolutions of 3 x 3 pixels by transforms: fewer products, within an error",
    options: &[&CPU, &ERROR, &FEATURES, &TILE, &TRIPLE],
    run: Run::Rounding(|module, given, why| {
        let error = parse_error(&given.get(&ERROR)?)?;
        apply(module, error, given.get(&TILE)?, &target(given)?, why)
    }),
};

/// What a user should know of the convolutions of a module that are computed by transforms, in a
/// sentence; `None` where there are none.
pub fn summary(module: &Module) -> Option<String> {
    let all = chosen(module);
    let worst = all.iter().max_by(|a, b| a.error.total_cmp(&b.error))?;
    let least = all.iter().min_by(|a, b| a.limit.total_cmp(&b.limit))?;
    let what = if all.len() == 1 { "convolution" } else { "convolutions" };
    Some(format!(
        "{} {what} by transforms: in samples, errors are up to {:.1e} of the largest result (`{}`); data \
         beyond {:.1e} may overflow (`{}`)",
        all.len(),
        worst.error,
        worst.value,
        least.limit,
        least.value
    ))
}

/// Reads an error that is allowed: a number from 0 to before 1.
///
/// # Errors
/// [`Error::Input`] for other text.
pub fn parse_error(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..1.0).contains(&value) => Ok(value),
        _ => Err(Error::input(format!("an error is a number from 0 to below 1, not `{text}`"))
            .help("1e-3 is a thousandth of the largest result of a convolution")),
    }
}

/// Computes convolutions by transforms whose error in samples is at most `error`, where they are estimated to be
/// faster on a machine, or by one tile.
///
/// # Errors
/// Those of [`winograd`].
pub fn apply(
    module: &Module,
    error: f64,
    tile: Option<usize>,
    target: &Target,
    why: &mut Remarks,
) -> Result<Module> {
    let mut choice = Choice {
        budget: error,
        tile,
        price: &|func, free, constants| price(func, free, constants, target).cycles,
        noise: &mut noise(),
    };
    winograd(module, &mut choice, why)
}

/// In which tiles the convolutions of a module may be computed within an error, before layouts are
/// chosen.
///
/// # Errors
/// Those of [`Allowed::measure`].
pub fn allowed(module: &Module, error: f64) -> Result<Allowed> {
    Allowed::measure(module, error, &mut noise())
}

/// The data that errors are measured on.
fn noise() -> impl FnMut() -> f64 {
    let mut random = Random::new(0);
    move || random.unit().mul_add(0.5, 0.5)
}
