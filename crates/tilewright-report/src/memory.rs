//! The map of a plan's memory: which bytes of the arena each value has, and from which step to which.
//!
//! Steps go to the right and addresses upwards, so that two boxes over one another lie in memory at one time, and
//! boxes beside one another share it. What is drawn is the memory plan of the lowered module, for sizes that are
//! known.

use std::fmt::Write as _;

use tilewright_driver::{LayoutPolicy, Module, Options, Result, Session, Target};
use tilewright_ir::tensor::byte_count;
use tilewright_runtime::plan::ArgSource;
use tilewright_runtime::{MemoryPlan, Slot};

use crate::writing::{amount, html, plural};

/// Width and height of a drawing in its own units.
const SIZE: (f64, f64) = (1000.0, 260.0);

/// The largest values that are listed.
const LISTED: usize = 10;

/// A value in the arena.
#[derive(Clone, Debug, PartialEq)]
struct Placed {
    name: String,
    /// The first and the last step that it lies there for.
    steps: (usize, usize),
    /// From this byte of the arena on.
    at: usize,
    bytes: usize,
}

/// The maps of a module that is laid out, one for each of its plans of memory.
pub(crate) fn section(module: &Module, target: &Target) -> String {
    let mut text = "<section aria-labelledby=memory>\n<h2 id=memory>Memory</h2>\n".to_owned();
    match maps(module, target) {
        Ok(maps) => text += &maps,
        Err(why) => {
            let _ =
                writeln!(text, "<p>There is no map of the memory: {}.</p>", html(&why.to_string()));
        }
    }
    text + "</section>\n"
}

fn maps(module: &Module, target: &Target) -> Result<String> {
    let options = Options::of_target(target)?.layout(LayoutPolicy::AsWritten);
    let program = Session::new(options).lower(module)?.program;
    let mut text = String::new();
    for plan in program.plans() {
        if plan.is_fixed() {
            text += &map(plan)?;
        } else {
            text += "<p>Sizes are open, so that values are placed when a run says them.</p>\n";
        }
    }
    Ok(text)
}

/// The map of one plan of fixed sizes.
fn map(plan: &MemoryPlan) -> Result<String> {
    let arena = plan.at(&[])?.arena_bytes;
    let placed = placed(plan)?;
    if placed.is_empty() {
        return Ok("<p>No value needs memory between steps.</p>\n".to_owned());
    }
    let steps = plan.steps.len().max(1);
    let at_once =
        (0..steps).map(|k| placed.iter().filter(|v| v.lives_at(k)).map(|v| v.bytes).sum());
    let least: usize = at_once.max().unwrap_or(0);
    let apart: usize = placed.iter().map(|v| v.bytes).sum();
    let mut text = format!(
        "<p>{} lie in an arena of {}. Each in memory of its own, they would take {}; those of the fullest step \
         take {}, and no arena is smaller.</p>\n",
        plural(placed.len(), "value"),
        size(arena),
        size(apart),
        size(least)
    );
    text += &drawing(&placed, steps, arena);
    let mut largest: Vec<&Placed> = placed.iter().collect();
    largest.sort_by_key(|v| std::cmp::Reverse(v.bytes));
    text += "<div class=wide><table>\n<caption>The largest values</caption>\n<thead><tr><th>value<th class=n>bytes\
             <th class=n>from byte<th class=n>steps</tr></thead>\n<tbody>\n";
    for v in largest.into_iter().take(LISTED) {
        let _ = writeln!(
            text,
            "<tr><td><code>{}</code><td class=n>{}<td class=n>{}<td class=n>{} to {}</tr>",
            html(&v.name),
            v.bytes,
            v.at,
            v.steps.0,
            v.steps.1
        );
    }
    Ok(text + "</tbody></table></div>\n")
}

/// A number of bytes.
fn size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        _ => format!("{}B", amount(bytes as u64)),
    }
}

/// The boxes, each with a title that says what it is.
fn drawing(placed: &[Placed], steps: usize, arena: usize) -> String {
    let (width, height) = SIZE;
    let (x, y) = (width / steps as f64, height / arena.max(1) as f64);
    let mut text = format!(
        "<svg class=memory viewBox=\"0 0 {width} {height}\" preserveAspectRatio=none role=img \
         aria-label=\"Map of the arena: steps to the right, addresses upwards\">\n"
    );
    for v in placed {
        let (from, to) = v.steps;
        let _ = writeln!(
            text,
            "<rect x={:.2} y={:.2} width={:.2} height={:.2}><title>{}: bytes {} to {}, steps {from} to {to}</title></rect>",
            x * from as f64,
            height - y * (v.at + v.bytes) as f64,
            x * (to - from + 1) as f64,
            y * v.bytes as f64,
            html(&v.name),
            v.at,
            v.at + v.bytes
        );
    }
    text + "</svg>\n"
}

/// The values of a plan of fixed sizes that have memory of their own in the arena.
fn placed(plan: &MemoryPlan) -> Result<Vec<Placed>> {
    let sized = plan.at(&[])?;
    let mut found: Vec<Option<Placed>> = vec![None; plan.values.len()];
    for (open, step) in plan.steps.iter().zip(&sized.steps) {
        for (k, (source, slot)) in open.args.iter().zip(&step.args).enumerate() {
            let (&ArgSource::Value(number), &Slot::Arena(at)) = (source, slot) else { continue };
            let Some(value) = plan.values.get(number).filter(|v| v.within.is_none()) else {
                continue;
            };
            let entry = &mut found[number];
            if entry.is_some() {
                continue;
            }
            let name = if open.results.contains(&k) {
                open.value.to_string()
            } else {
                format!("scratch of {}", open.func)
            };
            let bytes = value.cells.known().and_then(|cells| byte_count(value.dtype, &[cells]));
            let steps = (value.first, value.last);
            *entry = Some(Placed { name, steps, at, bytes: bytes.unwrap_or(0) });
        }
    }
    Ok(found.into_iter().flatten().filter(|v| v.bytes > 0).collect())
}

impl Placed {
    fn lives_at(&self, step: usize) -> bool {
        (self.steps.0..=self.steps.1).contains(&step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_live_at_one_time_lie_apart() {
        let text = r#"
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def turn(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi] + A[vi, vj]
    @R.function
    def main(a: R.Tensor((8, 8), "float32")):
        cls = Module
        with R.dataflow():
            x = R.call_tir(cls.turn, (a,), out_sinfo=R.Tensor((8, 8), "float32"))
            y = R.call_tir(cls.turn, (x,), out_sinfo=R.Tensor((8, 8), "float32"))
            z = R.call_tir(cls.turn, (y,), out_sinfo=R.Tensor((8, 8), "float32"))
            w = R.call_tir(cls.turn, (z,), out_sinfo=R.Tensor((8, 8), "float32"))
            R.output(w)
        return w
"#;
        let module =
            tilewright_driver::parse(text, &tilewright_driver::Sizes::new()).expect("a module");
        let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
        let options = Options::new().target(target.clone()).layout(LayoutPolicy::AsWritten);
        let program = Session::new(options).lower(&module).expect("a program").program;
        let [plan] = program.plans() else { panic!("one plan") };
        let placed = placed(plan).expect("fixed sizes");
        assert_eq!(placed.len(), 3, "{placed:?}");
        assert!(placed.iter().all(|v| v.bytes == 256), "{placed:?}");
        for (k, a) in placed.iter().enumerate() {
            for b in &placed[k + 1..] {
                let together = a.steps.0 <= b.steps.1 && b.steps.0 <= a.steps.1;
                let overlap = a.at < b.at + b.bytes && b.at < a.at + a.bytes;
                assert!(!(together && overlap), "{a:?} {b:?}");
            }
        }
        let text = section(&module, &target);
        assert!(text.contains("3 values lie in an arena of 512 B"), "{text}");
        assert_eq!(text.matches("<rect").count(), 3);
    }
}
