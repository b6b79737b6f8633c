//! How the loops of a call are made: the TVMScript of its function after each step of its automatic
//! schedule.
//!
//! Texts are kept as the lines that a step replaces, and lines by their numbers in one table, so that
//! the pages of large models stay small.

use std::collections::HashMap;

use similar::{Algorithm, DiffTag, capture_diff_slices};
use tilewright_autoschedule::auto_schedule;
use tilewright_driver::schedule_script::apply;
use tilewright_driver::{Module, Result, Target, print};
use tilewright_ir::{Function, GraphExpr, Remarks, Source};
use tilewright_layout::free::mark_free;
use tilewright_schedule::{Permissions, Schedule};

use crate::writing::json;

/// The steps of functions, each once.
#[derive(Default)]
pub(crate) struct Steps {
    lines: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The steps of a function as JSON.
    pub(crate) functions: Vec<String>,
}

impl Steps {
    /// The steps of the function that each binding of a graph function calls: their numbers, by the
    /// name of the binding. A name that stands for several has none.
    pub(crate) fn of_graph(
        &mut self,
        module: &Module,
        graph: &str,
        target: &Target,
    ) -> HashMap<String, usize> {
        let module = mark_free(module);
        let mut made: HashMap<String, Option<usize>> = HashMap::new();
        let mut found: HashMap<String, Option<usize>> = HashMap::new();
        let Ok(graph) = module.graph(graph) else { return HashMap::new() };
        for b in graph.bindings() {
            let GraphExpr::CallTir { func, .. } = &b.value else { continue };
            let number = *made
                .entry(func.to_string())
                .or_insert_with(|| self.function(&module, func, target));
            found
                .entry(b.var.name().to_string())
                .and_modify(|old| *old = old.filter(|old| Some(*old) == number))
                .or_insert(number);
        }
        found.into_iter().filter_map(|(name, number)| Some((name, number?))).collect()
    }

    /// The steps of a function; `None` where its schedule has none.
    fn function(&mut self, module: &Module, name: &str, target: &Target) -> Option<usize> {
        let func = module.tensor(name).ok()?;
        let mut alone = Module::new();
        alone.functions.insert(name.into(), Function::Tensor(func.clone()));
        let steps = steps(alone, target).ok().filter(|steps| steps.len() > 1)?;
        let mut steps = steps.into_iter();
        let (_, mut text) = steps.next()?;
        let first: Vec<String> = text.lines().map(|line| self.line(line).to_string()).collect();
        let mut parts = Vec::new();
        for (calls, new) in steps {
            let (old, lines): (Vec<&str>, Vec<&str>) =
                (text.lines().collect(), new.lines().collect());
            let mut hunks = Vec::new();
            for op in capture_diff_slices(Algorithm::Patience, &old, &lines) {
                let (tag, from, to) = op.as_tag_tuple();
                if tag != DiffTag::Equal {
                    let added = lines[to].iter().map(|line| self.line(line).to_string());
                    let added = added.collect::<Vec<_>>().join(",");
                    hunks.push(format!("[{},{},[{added}]]", from.start, from.len()));
                }
            }
            parts.push(format!("[{},[{}]]", json(&calls), hunks.join(",")));
            text = new;
        }
        self.functions.push(format!("[[{}],[{}]]", first.join(","), parts.join(",")));
        Some(self.functions.len() - 1)
    }

    fn line(&mut self, line: &str) -> usize {
        let next = self.lines.len();
        *self.numbers.entry(line.to_owned()).or_insert_with_key(|line| {
            self.lines.push(line.clone());
            next
        })
    }

    /// The table of lines as JSON.
    pub(crate) fn lines(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| json(line)).collect();
        format!("[{}]", lines.join(","))
    }
}

/// What is called until the text changes, and the text; the first without a call.
fn steps(module: Module, target: &Target) -> Result<Vec<(String, String)>> {
    let (_, trace) = auto_schedule(&module, target, &mut Remarks::new())?;
    let script = Source::new("trace.py", trace.to_string());
    let mut steps = vec![(String::new(), text(&module))];
    let mut calls = Vec::new();
    let mut schedule = Schedule::new(module, Permissions::default());
    apply(&mut schedule, &script, |call, module| {
        calls.push(call.to_owned());
        let text = text(module);
        if steps.last().is_none_or(|(_, last)| *last != text) {
            steps.push((calls.join("\n"), text));
            calls.clear();
        }
        Ok(())
    })?;
    Ok(steps)
}

/// The functions of a module as text, without what is around them.
fn text(module: &Module) -> String {
    let text = print(module);
    let body = text.split_once("class Module:\n").map_or(&*text, |(_, body)| body);
    let lines = body.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}
