//! Every pass by its name: what `tilewright opt --pass` can run.
//!
//! A pass takes a module and gives a module. Passes over tensor functions run on each of them.

use std::collections::BTreeMap;

use tilewright_graph::layout::{self, Leave, Policy, flow};
use tilewright_ir::{Error, Module, Remarks, Result, TensorFunc};
use tilewright_schedule::{Machine, auto};
use tilewright_sets::budget;
use tilewright_transform::hoist::{self, Hoist};
use tilewright_transform::lower::{blocks, flatten, opaque, scratch, vectorize};
use tilewright_transform::partition::{self, Partition};
use tilewright_transform::{
    extents, inline, lower, merge, no_op, overcompute, placeholder, simplify,
};

use crate::assume::use_assume;
use crate::checked;
use crate::pipeline::{check_after, each_tensor};

/// Settings of passes by name, as the user wrote them.
pub type Config = BTreeMap<String, String>;

/// A pass.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Settings that it takes, each with what it means.
    pub settings: &'static [(&'static str, &'static str)],
    run: fn(&Module, &Settings<'_>, &mut Remarks) -> Result<Module>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The settings that were given, for one pass.
struct Settings<'a>(&'a Config);

impl Settings<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| names(given, key)).map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Result<Option<usize>> {
        let wrong = |text: &str| Error::input(format!("`{key}` is a number, not `{text}`"));
        self.text(key).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }

    /// A switch: `1` or `0`.
    fn flag(&self, key: &str, default: bool) -> Result<bool> {
        match self.text(key) {
            None => Ok(default),
            Some("1" | "true" | "True") => Ok(true),
            Some("0" | "false" | "False") => Ok(false),
            Some(other) => Err(Error::input(format!("`{key}` is 1 or 0, not `{other}`"))),
        }
    }
}

/// Whether the user's key means a setting: its whole name, or the part after the pass.
fn names(given: &str, setting: &str) -> bool {
    given == setting || setting.split_once('.').is_some_and(|(_, last)| last == given)
}

/// The features of a target, for `auto_schedule`.
const FEATURES: (&str, &str) =
    ("auto_schedule.features", "CPU features in LLVM's notation; default +avx2,+fma");

/// What `flow_layout` may do.
const FLOW_LAYOUT: &[(&str, &str)] = &[
    ("flow_layout.outputs", "logical (default), or physical with anything in the padding"),
    ("flow_layout.policy", "nchw16c, nchw8c or nhwc: the layout of all convolutions"),
];

const HOIST: &[(&str, &str)] = &[
    (
        "hoist_expression.hoisted_conditionals",
        "1 if statements + 2 if expressions + 4 other conditions + 8 using threads; default 7",
    ),
    (
        "hoist_expression.hoisted_let_bindings",
        "1 those that conditions need + 2 let statements + 4 let expressions; default 7",
    ),
];

/// Whether `hoist_if` takes conditions on threads.
const HOIST_IF: (&str, &str) =
    ("hoist_if.support_block_scope_hoisting", "1: also conditions that depend on a thread");

/// How `loop_partition` takes loops apart.
const PARTITION: &[(&str, &str)] = &[
    (
        "loop_partition.partition_const_loop",
        "1: also loops with constant bounds, at their conditions in T.likely",
    ),
    ("loop_partition.no_unroll_loop_with_extent_one", "1: keep loops of one iteration"),
    (
        "loop_partition.unroll_loop_with_partition_hint_no_interval",
        "1: unroll loops with a hint that no condition takes apart",
    ),
];

/// What TVM lets one switch on in `simplify`. Exact sets have no use for the first three.
const SIMPLIFY: &[(&str, &str)] = &[
    ("simplify.transitively_prove_inequalities", "no effect: always done"),
    ("simplify.convert_boolean_to_and_of_ors", "no effect: the shortest form is taken"),
    ("simplify.apply_constraints_to_boolean_branches", "no effect: always done"),
    ("simplify.propagate_knowns_to_prove_conditional", KNOWN_CONDITIONS),
    ("simplify.propagate_knowns_to_simplify_expressions", KNOWN_VALUES),
];
const KNOWN_CONDITIONS: &str = "whether what memory is known to hold decides conditions; default 1";
const KNOWN_VALUES: &str = "whether it stands in the place of loads; default 1";

/// Whether `remove_no_op` follows values through memory.
const FLOW: &str = "remove_no_op.use_dataflow_analysis";

/// What TVM lets one say to `remove_no_op`.
const REMOVE_NO_OP: &[(&str, &str)] = &[
    (FLOW, "0: look at the text only; default 1"),
    ("remove_no_op.max_simplification_steps", "no effect: every question has a quota of its own"),
    ("remove_no_op.ignore_profiler_call", "no effect"),
];

/// How much larger folded constants may be, for `fold_constant`.
const FOLD: (&str, &str) =
    ("fold_constant.growth", "bytes by which a result may exceed its arguments; default 1048576");

/// What a function keeps of the padding of a lifted stage, for `lift_layout`.
const LIFT: (&str, &str) = (
    "lift_layout.padding",
    "what functions are told of it: value (default), undef (may be read), none (may not)",
);

/// Whether `remove_branching_through_overcompute` may change indices.
const WRAP: &str = "remove_branching_through_overcompute.wrap_indices";

/// Whether `remove_branching_through_overcompute` may take floats to be finite.
const FINITE: &str = "remove_branching_through_overcompute.finite";

/// Settings of `remove_branching_through_overcompute`.
const OVERCOMPUTE: &[(&str, &str)] = &[
    (
        FINITE,
        "1: floats in memory are neither infinite nor NaN, so zero times one is zero; default 0",
    ),
    (WRAP, "1: take indices modulo the extent where only their range is in the way; default 0"),
    ("remove_branching_through_overcompute.use_dataflow_analysis", "no effect: always done"),
];

/// Every pass, sorted by name.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "auto_schedule",
        about: "give functions in canonical form loops that suit a processor",
        settings: &[FEATURES],
        run: |module, settings, _| {
            // Not this machine's: the result of a pass does not hang on where it runs.
            let features = settings.text(FEATURES.0).unwrap_or("+avx2,+fma");
            let machine = Machine::of_target("x86_64-unknown-linux-gnu", features);
            each_tensor(module, |f| Ok(auto(f, &machine)))
        },
    },
    Pass {
        name: "cancel_layout",
        about: "remove layout conversions that undo each other, and make one of those in a row",
        settings: &[],
        run: |module, _, why| layout::cancel_layout(module, why),
    },
    Pass {
        name: "flatten_buffer",
        about: "one index for each physical axis of a buffer; blocks must be lowered",
        settings: &[],
        run: |module, _, _| each_tensor(module, flatten::flatten_buffers),
    },
    Pass {
        name: "flow_layout",
        about: "move layout conversions through the graph to where they move the fewest bytes",
        settings: FLOW_LAYOUT,
        run: |module, settings, why| {
            let physical_outputs = match settings.text(FLOW_LAYOUT[0].0) {
                None | Some("logical") => false,
                Some("physical") => true,
                Some(other) => {
                    return Err(Error::input(format!("{} cannot be `{other}`", FLOW_LAYOUT[0].0)));
                }
            };
            let policy = settings.text(FLOW_LAYOUT[1].0).map(str::parse::<Policy>).transpose()?;
            let anchors = |f: &TensorFunc| policy.and_then(|p| p.layouts(f));
            let options = flow::Options { anchors: &anchors, physical_outputs };
            Ok(flow::flow_layout(module, &options, why)?.0)
        },
    },
    Pass {
        name: "fold_constant",
        about: "run calls of constants now",
        settings: &[FOLD],
        run: |module, settings, why| {
            let growth = settings.number(FOLD.0)?.unwrap_or(layout::fold::DEFAULT_GROWTH);
            layout::fold_constant(module, growth, &mut layout::fold::interpret, why)
        },
    },
    Pass {
        name: "fuse",
        about: "join elementwise work with the functions that make its operands",
        settings: &[],
        run: |module, _, _| tilewright_graph::fuse(module),
    },
    Pass {
        name: "hoist_expression",
        about: "move conditions and let bindings out of the loops that they do not depend on",
        settings: HOIST,
        run: |module, settings, why| {
            let bits = |key| {
                Ok::<i64, Error>(match settings.number(key)? {
                    Some(bits) => i64::try_from(bits).unwrap_or(i64::MAX),
                    None => 7,
                })
            };
            let what = Hoist::from_bits(bits(HOIST[0].0)?, bits(HOIST[1].0)?)?;
            each_tensor(module, |f| hoist::hoist_expression(f, None, what, why))
        },
    },
    Pass {
        name: "hoist_if",
        about: "move the conditions of if statements out of the loops that they do not depend on",
        settings: &[HOIST_IF],
        run: |module, settings, why| {
            let what = Hoist::branches(settings.flag(HOIST_IF.0, false)?);
            each_tensor(module, |f| hoist::hoist_expression(f, None, what, why))
        },
    },
    Pass {
        name: "inline",
        about: "substitute spatial stages into their consumers where that repeats no work",
        settings: &[],
        run: |module, _, _| each_tensor(module, |f| Ok(inline::inline_spatial(f))),
    },
    Pass {
        name: "lift_layout",
        about: "move marked conversions at the edges of functions into the graph",
        settings: &[LIFT],
        run: |module, settings, why| {
            let leave = match settings.text(LIFT.0) {
                None | Some("value") => Leave::Value,
                Some("undef") => Leave::Undef,
                Some("none") => Leave::Nothing,
                Some(other) => {
                    let what = format!("`{}` is value, undef or none, not `{other}`", LIFT.0);
                    return Err(Error::input(what));
                }
            };
            layout::lift_layout(module, leave, why)
        },
    },
    Pass {
        name: "lift_scratch",
        about: "turn allocations outside of parallel work into parameters; buffers must be flat",
        settings: &[],
        run: |module, _, _| each_tensor(module, scratch::lift_scratch),
    },
    Pass {
        name: "loop_partition",
        about: "take loops apart at their hints and T.likely, so that most of them has no guards",
        settings: PARTITION,
        run: |module, settings, why| {
            let how = Partition {
                constant_loops: settings.flag(PARTITION[0].0, false)?,
                keep_single: settings.flag(PARTITION[1].0, false)?,
                unroll_whole: settings.flag(PARTITION[2].0, false)?,
            };
            each_tensor(module, |f| partition::loop_partition(f, how, why))
        },
    },
    Pass {
        name: "lower",
        about: "all that code generation needs, from remove_assume to lift_scratch",
        settings: &[],
        run: |module, _, _| each_tensor(module, lower),
    },
    Pass {
        name: "lower_blocks",
        about: "turn blocks into plain statements",
        settings: &[],
        run: |module, _, _| each_tensor(module, blocks::lower_blocks),
    },
    Pass {
        name: "lower_opaque_block",
        about: "lower_blocks, without loops of one iteration, with rows aligned and annotations",
        settings: &[],
        run: |module, _, _| each_tensor(module, opaque::lower_opaque_blocks),
    },
    Pass {
        name: "merge_adjacent_loops",
        about: "let loops over the same range run together where no dependent iterations swap",
        settings: &[],
        run: |module, _, why| each_tensor(module, |f| merge::merge_adjacent_loops(f, why)),
    },
    Pass {
        name: "prepare",
        about: "bring graph functions into the form that memory planning needs",
        settings: &[],
        run: |module, _, _| tilewright_graph::prepare(module),
    },
    Pass {
        name: "reduce_loop_extents",
        about: "run loops only over the iterations that their guards let do something",
        settings: &[],
        run: |module, _, why| each_tensor(module, |f| extents::reduce_loop_extents(f, None, why)),
    },
    Pass {
        name: "remove_assume",
        about: "drop assumptions",
        settings: &[],
        run: |module, _, _| each_tensor(module, |f| Ok(placeholder::remove_assume(f))),
    },
    Pass {
        name: "remove_branching_through_overcompute",
        about: "remove guards whose bodies may run everywhere, because that changes nothing",
        settings: OVERCOMPUTE,
        run: |module, settings, why| {
            let is_on = |key| settings.text(key).is_some_and(|v| v != "0");
            let floats = match is_on(FINITE) {
                true => overcompute::Floats::Finite,
                false => overcompute::Floats::Any,
            };
            let options = overcompute::Options { wrap_indices: is_on(WRAP), floats, block: None };
            each_tensor(module, |f| overcompute::remove_branching(f, &options, why))
        },
    },
    Pass {
        name: "remove_no_op",
        about: "remove stores that nobody uses or that change nothing, and what is empty then",
        settings: REMOVE_NO_OP,
        run: |module, settings, why| {
            let options = no_op::Options { flow: settings.text(FLOW) != Some("0") };
            each_tensor(module, |f| no_op::remove_no_op(f, &options, why))
        },
    },
    Pass {
        name: "remove_overcompute_through_branching",
        about: "put guards around what changes nothing where they are false",
        settings: &[],
        run: |module, _, why| {
            each_tensor(module, |f| overcompute::remove_overcompute(f, None, why))
        },
    },
    Pass {
        name: "remove_store_undef",
        about: "drop stores of arbitrary values; what is arbitrary elsewhere becomes zero",
        settings: &[],
        run: |module, _, _| each_tensor(module, |f| Ok(placeholder::remove_store_undef(f))),
    },
    Pass {
        name: "renormalize_split_pattern",
        about: "quotients and remainders of flat indices by their parts; statements stay",
        settings: &[],
        run: |module, _, _| each_tensor(module, simplify::indices),
    },
    Pass {
        name: "simplify",
        about: "simplify indices, conditions, branches and loops by what is known at each place",
        settings: SIMPLIFY,
        run: |module, settings, why| {
            let options = simplify::Options {
                conditions: settings.flag(SIMPLIFY[3].0, true)?,
                values: settings.flag(SIMPLIFY[4].0, true)?,
            };
            each_tensor(module, |f| simplify::simplify(f, options, why))
        },
    },
    Pass {
        name: "storage_flatten",
        about: "flatten_buffer for the functions that say from_legacy_te_schedule, as TVM had it",
        settings: &[("storage_flatten.cache_line_size", "taken for TVM's sake; has no effect")],
        run: |module, _, _| each_tensor(module, flatten::flatten_legacy),
    },
    Pass {
        name: "use_assume",
        about: "do what assumptions allow, as simplify and overcompute do it, and drop them",
        settings: &[],
        run: |module, _, why| each_tensor(module, |f| use_assume(f, why)),
    },
    Pass {
        name: "use_assume_to_reduce_branches",
        about: "remove_branching_through_overcompute, by the name that TVM has for a part of it",
        settings: &[],
        run: |module, _, why| {
            let options = overcompute::Options::default();
            each_tensor(module, |f| overcompute::remove_branching(f, &options, why))
        },
    },
    Pass {
        name: "vectorize_loop",
        about: "turn vectorised loops into vector expressions; buffers must be flat",
        settings: &[],
        run: |module, _, _| each_tensor(module, |f| Ok(vectorize::vectorize_loops(f))),
    },
];

/// The pass of this name.
///
/// # Errors
/// [`Error::Input`] that lists those there are.
pub fn find(name: &str) -> Result<&'static Pass> {
    PASSES.iter().find(|p| p.name == name).ok_or_else(|| {
        let names: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
        Error::input(format!("there is no pass `{name}`"))
            .note(format!("the passes are: {}", names.join(", ")))
    })
}

/// The settings that some of the passes take.
///
/// # Errors
/// [`Error::Input`] for a setting that none of them takes.
pub fn check_config(config: &Config, passes: &[&Pass]) -> Result<()> {
    let known: Vec<&str> =
        passes.iter().flat_map(|p| p.settings.iter().map(|(key, _)| *key)).collect();
    match config.keys().find(|key| !known.iter().any(|setting| names(key, setting))) {
        None => Ok(()),
        Some(key) => {
            let names: Vec<&str> = passes.iter().map(|p| p.name).collect();
            let error = Error::input(format!("none of the passes has a setting `{key}`"))
                .note(format!("the passes are: {}", names.join(", ")));
            Err(error.note(match known.is_empty() {
                true => "they have no settings".to_owned(),
                false => format!("their settings are: {}", known.join(", ")),
            }))
        }
    }
}

impl Pass {
    /// Runs the pass; what it left as it was, and why, is added to `why`.
    ///
    /// # Errors
    /// Those of the pass, with the place in the module's source where there is one;
    /// [`Error::Internal`] if the result breaks a rule of the IR or, in debug builds, computes
    /// something else.
    pub fn run(&self, module: &Module, config: &Config, why: &mut Remarks) -> Result<Module> {
        let sourced = |e: Error| module.source.iter().fold(e, |e, source| e.in_source(source));
        let mut said = Remarks::new();
        let (result, spent) = budget::within(self.name, u64::MAX, || {
            (self.run)(module, &Settings(config), &mut said)
        });
        said.extend(spent.short.iter().map(|name| self.stopped(name)));
        why.extend(said.into_iter().map(sourced));
        let new = result.map_err(sourced)?;
        check_after(self.name, &new)?;
        checked::check(self.name, module, &new)?;
        Ok(new)
    }

    /// The remark about a function for which the pass could not ask all that it wanted.
    fn stopped(&self, function: &str) -> Error {
        let what = format!("`{}` has spent its budget of questions on `{function}`", self.name);
        Error::refused(what).note("what was not decided by then stays as it was")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_settings_carry_the_name_of_their_pass() {
        assert!(PASSES.is_sorted_by_key(|p| p.name));
        for pass in PASSES {
            assert_eq!(find(pass.name).map(|p| p.name).ok(), Some(pass.name));
            for (key, _) in pass.settings {
                assert!(key.starts_with(&format!("{}.", pass.name)), "{key}");
            }
        }
    }

    #[test]
    fn unknown_passes_and_settings_are_errors_that_list_what_there_is() {
        let error = find("lower_block").expect_err("no such pass").render();
        assert!(error.starts_with("error: there is no pass `lower_block`\n"), "{error}");
        assert!(error.contains("lower_blocks, "), "{error}");
        let config = Config::from([("x.y".to_owned(), "1".to_owned())]);
        let lower = find("lower").expect("it is there");
        let auto = find("auto_schedule").expect("it is there");
        let text = |passes: &[&Pass]| check_config(&config, passes).expect_err("unknown").render();
        assert_eq!(
            text(&[lower]),
            "error: none of the passes has a setting `x.y`\n\
             note: the passes are: lower\nnote: they have no settings\n"
        );
        assert!(text(&[lower, auto]).contains("their settings are: auto_schedule.features\n"));
        let known = Config::from([(FEATURES.0.to_owned(), String::new())]);
        assert!(check_config(&known, &[lower, auto]).is_ok());
        let short = Config::from([("features".to_owned(), "+avx2".to_owned())]);
        assert!(check_config(&short, &[auto]).is_ok() && check_config(&short, &[lower]).is_err());
        assert_eq!(Settings(&short).text(FEATURES.0), Some("+avx2"));
    }
}
