//! The way from a module to native code, as one table of stages.
//!
//! [`STAGES`] is the table, in the order in which the stages run; [`run_stages`] runs them, and checks the
//! rules of the IR after each where the options say so, as they do in debug builds. Each stage takes a
//! module and gives a module, which can be printed and read back. After the last one it is
//! [`Lowered`](tilewright_ir::Lowered): the graph function becomes a plan
//! ([`tilewright_layout::plan_memory`]), and a [`Backend`](tilewright_target::Backend) makes code of the
//! tensor functions that the plan calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_autoschedule::integer::{self, expand};
use tilewright_autoschedule::{TileCheck, UNTILED, contractions, others, with_code};
use tilewright_graph as graph;
use tilewright_graph::call_sizes::unify_sizes;
use tilewright_graph::control::{self, Cut, mark_needs_elements};
use tilewright_graph::functions::each_tensor;
use tilewright_graph::in_place::mark_updates;
use tilewright_graph::marks::{VIEW, is_placed};
use tilewright_graph::normal::var;
use tilewright_graph::view::flat_copy;
use tilewright_ir::{
    Attr, Error, GraphExpr, Module, Remarks, Result, TensorFunc, phases, well_formed,
};
use tilewright_layout::collapse::{self, collapse_axes};
use tilewright_layout::fold::fold_conversions;
use tilewright_layout::free::{mark_free, unmark};
use tilewright_layout::parts::{self, place_parts};
use tilewright_layout::precompute::precompute;
use tilewright_layout::textures::place_in_textures;
use tilewright_layout::{Leave, Left, begin, lift_layout};
use tilewright_polyhedral::at_once;
use tilewright_transform::lower::{self, IN_MEMORY};
use tilewright_transform::pass::{Config, Pass, Run};
use tilewright_transform::products::with_products_as_sizes;

use super::constants::{evaluate, evaluate_all};
use super::options::{IoLayout, Options};
use super::rules::check_after;
use super::{assume, derivations, layout, textures, winograd};

/// A stage from module to module, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PipelineStage {
    /// Values lie in memory as the layouts say that were chosen.
    Layout,
    /// Outputs have names, and every open size has one variable.
    Begin,
    /// What functions assume is used, and the assumptions go.
    Assume,
    /// Elementwise work joins the functions that make its operands.
    Fuse,
    /// Convolutions are computed by transforms, where an error is allowed.
    Winograd,
    /// The graph takes the form that memory planning needs.
    Legalize,
    /// Axes of open sizes that functions walk as one are one axis.
    Collapse,
    /// Products of 8-bit integers take a form that instructions multiply.
    Expand,
    /// What functions compute of constants alone is computed.
    Precompute,
    /// Values between calls lie in textures, where those are cheaper to read.
    Textures,
    /// Contractions get tiles.
    Tile,
    /// What contractions packed of their operands is packed in the graph, of constants now.
    Pack,
    /// Parts are placed in the wholes that they are joined to.
    Place,
    /// Functions that keep most of an input get one beside them that writes the rest alone.
    Update,
    /// All other loops are made to suit the processor.
    Schedule,
    /// Blocks and multi-dimensional buffers become loops over flat memory.
    Lower,
}

/// What the table says of a stage.
pub struct Row {
    /// Which stage it is.
    pub stage: PipelineStage,
    /// Its name, for people and for options that name a stage.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    is_wanted: fn(&Options) -> bool,
    run: fn(&mut State<'_>) -> Result<Module>,
}

/// What a stage is given.
struct State<'a> {
    module: &'a Module,
    options: &'a Options,
    tile_check: TileCheck,
    /// The conversions that are left.
    left: &'a mut Vec<Left>,
}

/// Every stage, in order.
pub static STAGES: [Row; 16] = [
    Row {
        stage: PipelineStage::Layout,
        name: "layout",
        summary: "values lie in memory as the chosen layouts say",
        is_wanted: |_| true,
        run: lay_out,
    },
    Row {
        stage: PipelineStage::Begin,
        name: "begin",
        summary: "outputs have names, and every open size has one variable",
        is_wanted: |_| true,
        run: |state| unify_sizes(&begin(state.module)),
    },
    Row {
        stage: PipelineStage::Assume,
        name: assume::PASS.name,
        summary: "what functions assume is used, and the assumptions go",
        is_wanted: |_| true,
        run: |state| run_pass(&assume::PASS, state.module, &Config::new()),
    },
    Row {
        stage: PipelineStage::Fuse,
        name: graph::fuse::PASS.name,
        summary: "elementwise work joins the functions that make its operands",
        is_wanted: |options| options.fuse,
        run: |state| run_pass(&graph::fuse::PASS, state.module, &Config::new()),
    },
    Row {
        stage: PipelineStage::Winograd,
        name: winograd::PASS.name,
        summary: "convolutions are computed by transforms, where an error is allowed",
        is_wanted: |options| options.schedule && options.fast_math.is_some(),
        run: transform_convolutions,
    },
    Row {
        stage: PipelineStage::Legalize,
        name: graph::legalize::PASS.name,
        summary: "the graph takes the form that memory planning needs",
        is_wanted: |_| true,
        run: legalize,
    },
    Row {
        stage: PipelineStage::Collapse,
        name: collapse::PASS.name,
        summary: "axes of open sizes that functions walk as one are one axis",
        is_wanted: |options| options.schedule,
        run: |state| collapse_axes(&mark_needs_elements(state.module)),
    },
    Row {
        stage: PipelineStage::Expand,
        name: integer::PASS.name,
        summary: "products of 8-bit integers take a form that instructions multiply",
        is_wanted: |options| options.schedule,
        run: expand_products,
    },
    Row {
        stage: PipelineStage::Precompute,
        name: "precompute",
        summary: "what functions compute of constants alone is computed",
        is_wanted: |options| options.schedule,
        run: |state| precompute(state.module, &mut evaluate_all),
    },
    Row {
        stage: PipelineStage::Textures,
        name: "textures",
        summary: "values between calls lie in textures, where those are cheaper to read",
        is_wanted: |options| options.schedule,
        run: place_values_in_textures,
    },
    Row {
        stage: PipelineStage::Tile,
        name: "tile",
        summary: "contractions get register tiles",
        is_wanted: |options| options.schedule,
        run: tile_contractions,
    },
    Row {
        stage: PipelineStage::Pack,
        name: "pack",
        summary: "what contractions pack of their operands is packed in the graph, of constants now",
        is_wanted: |options| options.schedule,
        run: pack_operands,
    },
    Row {
        stage: PipelineStage::Place,
        name: parts::PASS.name,
        summary: "parts are placed in the wholes that they are joined to",
        is_wanted: |options| options.schedule,
        run: |state| place_parts(state.module, false, &mut Remarks::new()),
    },
    Row {
        stage: PipelineStage::Update,
        name: "update",
        summary: "functions that keep most of an input get one beside them that writes the rest alone",
        is_wanted: |options| options.schedule,
        run: |state| mark_updates(state.module),
    },
    Row {
        stage: PipelineStage::Schedule,
        name: "schedule",
        summary: "all other loops are made to suit the processor",
        is_wanted: |options| options.schedule,
        run: schedule_others,
    },
    Row {
        stage: PipelineStage::Lower,
        name: lower::PASS.name,
        summary: "blocks and multi-dimensional buffers become loops over flat memory",
        is_wanted: |_| true,
        run: lower_functions,
    },
];

impl PipelineStage {
    /// Every stage, in order.
    pub fn all() -> impl Iterator<Item = PipelineStage> {
        STAGES.iter().map(|row| row.stage)
    }

    /// The stage of a name.
    ///
    /// # Errors
    /// [`Error::Input`] that lists those there are.
    pub fn named(name: &str) -> Result<PipelineStage> {
        let row = STAGES.iter().find(|row| row.name == name);
        row.map(|row| row.stage).ok_or_else(|| {
            let names: Vec<&str> = STAGES.iter().map(|row| row.name).collect();
            Error::input(format!("there is no stage `{name}`"))
                .note(format!("the stages are: {}", names.join(", ")))
        })
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    fn row(self) -> &'static Row {
        // The table has the order of the variants, which a test checks.
        &STAGES[self as usize]
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the stage, and of [`Options::resolve_target`].
    pub fn run(self, module: &Module, options: &Options) -> Result<Module> {
        let (tile_check, left) = (TileCheck::Lower, &mut Vec::new());
        (self.row().run)(&mut State { module, options, tile_check, left })
    }
}

/// Runs a pass over all functions; what it leaves as it was is for `opt --explain` to say, but for what functions say
/// of themselves ([`summary`]).
fn run_pass(pass: &Pass, module: &Module, config: &Config) -> Result<Module> {
    match pass.run {
        Run::Tensor(_) => derivations::of_pass(pass, module, config),
        Run::Module(_) | Run::Rounding(_) | Run::Traced(_) => {
            pass.apply(module, config, &mut Remarks::new())
        }
    }
}

fn lay_out(state: &mut State<'_>) -> Result<Module> {
    let State { module, options, .. } = state;
    let (module, left) = layout::lay_out(module, options)?;
    state.left.extend(left);
    Ok(module)
}

/// The target says more than the options of the pass can.
fn transform_convolutions(state: &mut State<'_>) -> Result<Module> {
    let State { module, options, .. } = state;
    match options.fast_math {
        Some(error) => {
            let target = options.resolve_target()?;
            winograd::apply(module, error, None, &target, &mut Remarks::new())
        }
        None => Ok((*module).clone()),
    }
}

fn legalize(state: &mut State<'_>) -> Result<Module> {
    let module = run_pass(&graph::legalize::PASS, state.module, &Config::new())?;
    // Functions have their last form but for loops.
    let is_cut = control::is_cut(&module);
    let mark = if is_cut { control::mark_empty } else { control::mark_empty_operands };
    Ok(mark(&module))
}

/// Products of 8-bit integers take a form that instructions multiply, and those with weights of a few
/// bits in blocks one whose weights are packed for tiles.
fn expand_products(state: &mut State<'_>) -> Result<Module> {
    let target = state.options.resolve_target()?;
    let module = mark_free(state.module);
    derivations::each(&format!("expand_products {target:?}"), &module, |_, f| {
        Ok(expand(f, &target).map_or_else(|| f.clone(), Arc::new))
    })
}

fn place_values_in_textures(state: &mut State<'_>) -> Result<Module> {
    let target = state.options.resolve_target()?;
    match textures::memory_of(&target) {
        Some(memory) => place_in_textures(state.module, &memory, &mut Remarks::new()),
        None => Ok(state.module.clone()),
    }
}

fn tile_contractions(state: &mut State<'_>) -> Result<Module> {
    let target = state.options.resolve_target()?;
    let module = mark_free(state.module);
    let check = state.tile_check;
    derivations::each(&format!("contractions {check:?} {target:?}"), &module, |name, f| {
        let tiled = with_products_as_sizes(f, |f| {
            let module = module.alone(name, &Arc::new(f.clone()));
            let (tiled, _) = contractions(&module, &target, check, &mut Remarks::new())?;
            Ok((**tiled.tensor(name)?).clone())
        })?;
        Ok(Arc::new(tiled))
    })
}

/// Constants are packed with their padding: what else it could be decides nothing.
fn pack_operands(state: &mut State<'_>) -> Result<Module> {
    let (tiled, mut why) = (state.module, Remarks::new());
    let lifted = lift_layout(tiled, Leave::Value, &mut why)?;
    let packed = fold_conversions(
        &lifted,
        &|name| !tiled.functions.contains_key(name),
        &mut evaluate,
        &mut why,
    )?;
    Ok(unmark(&packed))
}

/// Last of the loops, since what is best depends on where parameters lie. What is lowered to see whether there is code
/// is what [`lower_functions`] asks for next, and is kept.
fn schedule_others(state: &mut State<'_>) -> Result<Module> {
    let target = state.options.resolve_target()?;
    let config = lower_config(state.options);
    derivations::each(&format!("others {target:?}"), state.module, |name, f| {
        if is_placed(f) {
            return Ok(f.clone());
        }
        let why = &mut Remarks::new();
        let made = with_products_as_sizes(f, |f| others(f, &target, why))?;
        let lower = |f: &TensorFunc| {
            let module = state.module.alone(name, &Arc::new(f.clone()));
            derivations::of_pass(&lower::PASS, &module, &config).map(drop)
        };
        Ok(Arc::new(with_code(f, made, why, &lower)))
    })
}

fn lower_functions(state: &mut State<'_>) -> Result<Module> {
    let module = each_tensor(&control::initialise_empty(state.module), |_, f| {
        let copy = f.attrs.contains_key(VIEW).then(|| flat_copy(f)).flatten();
        *f = copy.map_or_else(|| f.clone(), Arc::new);
    });
    run_pass(&lower::PASS, &module, &lower_config(state.options))
}

fn lower_config(options: &Options) -> Config {
    let unchecked = u8::from(options.unchecked).to_string();
    Config::new().with(lower::PASS.key(lower::UNCHECKED.name), unchecked)
}

/// What a user should know of how the functions of a module are computed, in a sentence each: convolutions by
/// transforms, contractions and other reductions whose loops are plain, since primitives refused them, and sums that
/// are in memory where they were to be in registers.
pub fn summary(module: &Module) -> Vec<String> {
    let mut all: Vec<String> = winograd::summary(module).into_iter().collect();
    for (name, f) in module.tensors() {
        all.extend(texts(f, UNTILED).map(|text| format!("plain loops in `{name}` for {text}")));
        all.extend(
            texts(f, IN_MEMORY).map(|text| format!("`{name}` has its sums in memory: {text}")),
        );
    }
    all
}

/// The texts of an attribute that is a list of them.
fn texts<'a>(f: &'a TensorFunc, key: &str) -> impl Iterator<Item = &'a str> {
    let list = match f.attrs.get(key) {
        Some(Attr::List(list)) => &list[..],
        _ => &[],
    };
    list.iter().filter_map(|text| match text {
        Attr::Str(text) => Some(&**text),
        _ => None,
    })
}

/// Checks that iterations of loops that run at once do not depend on one another, as far as that can
/// be seen.
///
/// # Errors
/// [`Error::Malformed`] with the loop and two iterations.
fn check_promises(module: &Module) -> Result<()> {
    module.tensors().try_for_each(|(name, f)| {
        let phases = phases::split(f);
        let kept = phases.and_then(|phases| at_once::check_promises(phases.as_ref().unwrap_or(f)));
        kept.map_err(|e| {
            let e = e.context(format_args!("function `{name}`"));
            module.source.iter().fold(e, |e, source| e.in_source(source))
        })
    })
}

/// What the stages made of a module.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The module.
    pub module: Module,
    /// The conversions between layouts that are left in it.
    pub left: Vec<Left>,
}

/// Runs the stages up to and including `until`. `after` sees the module after each. Control flow is cut
/// first: what goes through the stages are the pieces, and the entry that calls them is put back behind
/// the last one.
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule, those of [`control::cut`] and of the stages, and
/// [`Error::Internal`] if a stage breaks a rule ([`Options::check`]).
pub fn run_stages(
    module: &Module,
    options: &Options,
    until: PipelineStage,
    after: impl FnMut(PipelineStage, &Module) -> Result<()>,
) -> Result<Staged> {
    well_formed::check_module(module)?;
    check_promises(module)?;
    match cut_control(module)? {
        None => run_in_order(module.clone(), options, until, after),
        Some(Cut { module, name, entry }) => {
            // The ends of pieces are the model's own, so they stay logical.
            let options = options.clone().io_layout(IoLayout::Logical);
            let staged = run_in_order(module, &options, until, after)?;
            Ok(Staged { module: Cut::join(staged.module, name, entry), ..staged })
        }
    }
}

fn run_in_order(
    module: Module,
    options: &Options,
    until: PipelineStage,
    mut after: impl FnMut(PipelineStage, &Module) -> Result<()>,
) -> Result<Staged> {
    let mut staged = Staged { module, left: Vec::new() };
    let is_wanted = |row: &&Row| row.stage <= until && (row.is_wanted)(options);
    let mut run = |rows: &[Row], tile_check, staged: &mut Staged| -> Result<()> {
        for row in rows.iter().filter(is_wanted) {
            options.tell(row.name, 0, 1);
            let Staged { module, left } = staged;
            let new = (row.run)(&mut State { module, options, tile_check, left })?;
            *module = new;
            if options.check {
                check_after(row.name, module)?;
            }
            after(row.stage, module)?;
        }
        Ok(())
    };
    let (before, with_tiles) = STAGES.split_at(PipelineStage::Tile as usize);
    run(before, TileCheck::ByCaller, &mut staged)?;
    let untiled = staged.module.clone();
    // Rarely no code can be made of a tile: only then each is lowered as it is made.
    match run(with_tiles, TileCheck::ByCaller, &mut staged) {
        Err(Error::Unsupported(_) | Error::Refused(_)) if has_open_sizes(&untiled) => {
            staged.module = untiled;
            run(with_tiles, TileCheck::Lower, &mut staged)?;
        }
        done => done?,
    }
    Ok(staged)
}

fn has_open_sizes(module: &Module) -> bool {
    module.tensors().any(|(_, f)| !f.sizes().is_empty())
}

/// The values of a module in chosen layouts that lie in other memory than buffers, by name, with the scope of that.
///
/// # Errors
/// Those of the stages.
pub fn scopes(module: &Module, options: &Options) -> Result<BTreeMap<Arc<str>, Arc<str>>> {
    let mut found = BTreeMap::new();
    if options.resolve_target()?.preferred_textures().is_none() {
        return Ok(found);
    }
    let stages = PipelineStage::all().filter(|s| {
        (PipelineStage::Begin..=PipelineStage::Textures).contains(s) && (s.row().is_wanted)(options)
    });
    let placed = stages.into_iter().try_fold(module.clone(), |m, stage| stage.run(&m, options))?;
    for (_, graph) in placed.graphs() {
        for b in graph.bindings() {
            let GraphExpr::CallTir { func, args, .. } = &b.value else { continue };
            // What is read, as constants are, and what is made.
            let names = args.iter().map(|a| var(a).map(|v| v.name().clone()));
            let names = names.chain([Some(b.var.name().clone())]);
            for (buffer, name) in placed.tensor(func)?.buffers().zip(names) {
                if let Some(name) = name.filter(|_| !buffer.axis_separators.is_empty()) {
                    found.insert(name, buffer.scope.clone());
                }
            }
        }
    }
    Ok(found)
}

/// The pieces into which control flow of a module is cut, and the entry that calls them; `None` for a
/// module without.
fn cut_control(module: &Module) -> Result<Option<Cut>> {
    match module.entry() {
        Ok(entry) if module.has_control(entry) => Ok(Some(control::cut(&begin(module), entry)?)),
        _ => Ok(None),
    }
}

/// The pieces into which control flow of a module is cut, each of which is planned by itself; `None` for
/// a module without.
///
/// # Errors
/// Those of [`control::cut`], and [`Error::Malformed`] if the module breaks a rule.
pub fn pieces(module: &Module) -> Result<Option<Module>> {
    well_formed::check_module(module)?;
    Ok(cut_control(module)?.map(|cut| cut.module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(STAGES.iter().enumerate().all(|(k, row)| row.stage as usize == k));
    }
}
