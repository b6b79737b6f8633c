//! The way from a module to native code, with its stages in sight.
//!
//! | stage | what it does |
//! |---|---|
//! | [`Stage::Assume`] | what functions assume is used, and the assumptions go |
//! | [`Stage::Fuse`] | elementwise work joins the functions that make its operands |
//! | [`Stage::Winograd`] | convolutions are computed by transforms, where an error is allowed |
//! | [`Stage::Legalize`] | the graph takes the form that memory planning needs |
//! | [`Stage::Schedule`] | every function gets loops that suit the processor |
//! | [`Stage::Lower`] | blocks and multi-dimensional buffers become loops over flat memory |
//!
//! Each takes a module and gives a module, which can be printed and read back. After the last one it
//! is [`Lowered`](tilewright_ir::Lowered): the graph function becomes a plan
//! ([`tilewright_layout::plan_memory`]), and a [`Backend`](tilewright_target::Backend) makes code of the tensor functions that the
//! plan calls.

use std::sync::Arc;

use tilewright_autoschedule::integer::expand;
use tilewright_autoschedule::{UNTILED, contractions, others};
use tilewright_graph as graph;
use tilewright_graph::control::mark_needs_elements;
use tilewright_ir::{Attr, Error, Module, Remarks, Result, well_formed};
use tilewright_layout::collapse::collapse_axes;
use tilewright_layout::fold::fold_conversions;
use tilewright_layout::free::{mark_free, unmark};
use tilewright_layout::parts::place_parts;
use tilewright_layout::precompute::precompute;
use tilewright_layout::{Leave, lift_layout};
use tilewright_polyhedral::at_once;
use tilewright_target::Target;
use tilewright_transform::lower;
use tilewright_transform::pass::{Config, Pass, Run};
use tilewright_transform::products::with_products_as_sizes;

use super::constants::evaluate;
use super::options::Options;
use super::{assume, derivations, winograd};

/// A stage from module to module, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// What functions assume is used, and the assumptions go.
    Assume,
    /// Elementwise work joins the functions that make its operands.
    Fuse,
    /// Convolutions are computed by transforms, where an error is allowed.
    Winograd,
    /// The graph takes the form that memory planning needs.
    Legalize,
    /// Functions get loops that suit the processor.
    Schedule,
    /// Blocks and multi-dimensional buffers become loops over flat memory.
    Lower,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 6] = [
        Stage::Assume,
        Stage::Fuse,
        Stage::Winograd,
        Stage::Legalize,
        Stage::Schedule,
        Stage::Lower,
    ];

    /// The pass that it is; `None` for [`Stage::Schedule`], which is several.
    fn pass(self) -> Option<&'static Pass> {
        match self {
            Stage::Assume => Some(&assume::PASS),
            Stage::Fuse => Some(&graph::fuse::PASS),
            Stage::Winograd => Some(&winograd::PASS),
            Stage::Legalize => Some(&graph::legalize::PASS),
            Stage::Schedule => None,
            Stage::Lower => Some(&lower::PASS),
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        self.pass().map_or("schedule", |pass| pass.name)
    }

    /// Whether options ask for it.
    fn is_wanted(self, options: &Options) -> bool {
        match self {
            Stage::Fuse => options.fuse,
            Stage::Schedule => options.schedule,
            Stage::Winograd => options.schedule && options.fast_math.is_some(),
            Stage::Assume | Stage::Legalize | Stage::Lower => true,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the stage, and of [`Options::target`].
    pub fn run(self, module: &Module, options: &Options) -> Result<Module> {
        let Some(pass) = self.pass() else { return schedule(module, &options.target()?) };
        if let (Stage::Winograd, Some(error)) = (self, options.fast_math) {
            // The target says more than the options of the pass can.
            return winograd::apply(module, error, None, &options.target()?, &mut Remarks::new());
        }
        let config = match self {
            Stage::Lower => {
                let unchecked = u8::from(options.unchecked).to_string();
                Config::new().with(pass.key(lower::UNCHECKED.name), unchecked)
            }
            _ => Config::new(),
        };
        match pass.run {
            Run::Tensor(_) => derivations::of_pass(pass, module, &config),
            Run::Module(_) | Run::Rounding(_) | Run::Traced(_) => {
                pass.apply(module, &config, &mut Remarks::new())
            }
        }
    }
}

/// Gives every function loops for a target: contractions first ([`contractions`]), then all else
/// ([`others`]), which depends on where parameters lie.
/// Products of 8-bit integers take a form first that instructions multiply ([`expand`]).
/// What is made and packed of constants for contractions is made now, and then parts are placed in the
/// wholes that they are joined to. The target says more than the options of the passes can.
fn schedule(module: &Module, target: &Target) -> Result<Module> {
    // What a pass leaves as it was is for `opt --explain` to say.
    let mut why = Remarks::new();
    let module = &collapse_axes(&mark_needs_elements(module))?;
    let what = format!("expand_products {target:?}");
    let expanded = derivations::each(&what, &mark_free(module), |_, f| {
        Ok(expand(f, target).map_or_else(|| f.clone(), Arc::new))
    })?;
    let expanded = precompute(&expanded, &mut evaluate)?;
    let what = format!("contractions {target:?}");
    let tiled = derivations::each(&what, &mark_free(&expanded), |name, f| {
        let made = with_products_as_sizes(f, |f| {
            let module = module.alone(name, &Arc::new(f.clone()));
            let (made, _) = contractions(&module, target, &mut Remarks::new())?;
            Ok((**made.tensor(name)?).clone())
        })?;
        Ok(Arc::new(made))
    })?;
    // Constants are packed with their padding: what else it could be decides nothing.
    let lifted = lift_layout(&tiled, Leave::Value, &mut why)?;
    let is_lifted = |name: &str| !tiled.functions.contains_key(name);
    let packed = fold_conversions(&lifted, &is_lifted, &mut evaluate, &mut why)?;
    let placed = place_parts(&unmark(&packed), false, &mut why)?;
    let what = format!("others {target:?}");
    derivations::each(&what, &placed, |_, f| {
        let made = with_products_as_sizes(f, |f| others(f, target, &mut Remarks::new()))?;
        Ok(Arc::new(made))
    })
}

/// What a user should know of how the functions of a module are computed, in a sentence each: convolutions by
/// transforms, and contractions that have no register tiles, since primitives refused them.
pub fn summary(module: &Module) -> Vec<String> {
    let mut all: Vec<String> = winograd::summary(module).into_iter().collect();
    for (name, f) in module.tensors() {
        let Some(Attr::List(untiled)) = f.attrs.get(UNTILED) else { continue };
        for text in untiled {
            let Attr::Str(text) = text else { continue };
            all.push(format!("plain loops in `{name}` for {text}"));
        }
    }
    all
}

/// Checks that iterations of loops that run at once do not depend on one another, as far as that can
/// be seen.
///
/// # Errors
/// [`Error::Malformed`] with the loop and two iterations.
fn check_promises(module: &Module) -> Result<()> {
    module.tensors().try_for_each(|(name, f)| {
        at_once::check_promises(f).map_err(|e| {
            let e = e.context(format_args!("function `{name}`"));
            module.source.iter().fold(e, |e, source| e.in_source(source))
        })
    })
}

/// Checks the rules of the IR, where a failure is a bug of what gave the module. Functions may have
/// free integers: nothing can run such a function, but it can be transformed and printed.
pub(crate) fn check_after(what: &str, module: &Module) -> Result<()> {
    well_formed::check_open_module(module)
        .map_err(|e| Error::internal(format!("`{what}` broke a rule: {}", e.diagnostic().message)))
}

/// Runs the stages up to and including `until`. `after` sees the module after each.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule, those of the stages, and [`Error::Internal`] if a stage breaks a rule
/// ([`Options::check`]).
pub fn run_stages(
    module: &Module,
    options: &Options,
    until: Stage,
    mut after: impl FnMut(Stage, &Module) -> Result<()>,
) -> Result<Module> {
    well_formed::check_module(module)?;
    check_promises(module)?;
    let mut module = graph::call_sizes::unify_sizes(&tilewright_layout::begin(module))?;
    let stages = Stage::ALL.into_iter().filter(|stage| *stage <= until);
    for stage in stages.filter(|stage| stage.is_wanted(options)) {
        options.tell(stage.name(), 0, 1);
        module = stage.run(&module, options)?;
        if stage == Stage::Legalize && graph::control::is_cut(&module) {
            // Functions have their last form but for loops.
            module = graph::control::mark_empty(&module);
        }
        if options.check {
            check_after(stage.name(), &module)?;
        }
        after(stage, &module)?;
    }
    Ok(module)
}
