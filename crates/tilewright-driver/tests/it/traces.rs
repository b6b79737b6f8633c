//! Arbitrary schedule scripts: an error or a schedule, and never a panic, a hang or memory without
//! bound.
//!
//! Inputs are mutations of scripts that use every part of the language and most primitives, made
//! from a fixed seed. `TILEWRIGHT_FUZZ_ITERS` sets their number, `TILEWRIGHT_FUZZ_SEED` the seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_driver::schedule_script::apply;
use tilewright_driver::{Error, Module, Sizes, parse, print};
use tilewright_ir::{Source, random};
use tilewright_schedule::{Permissions, Schedule};

const PROGRAM: &str = r#"
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), W: T.Buffer((10, 8), "float32"), C: T.Buffer((12, 8), "float32")):
    B = T.alloc_buffer((12, 10), "float32")
    M = T.alloc_buffer((12, 8), "float32")
    for i, j in T.grid(12, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi >= 1 and vi < 11, A[vi, vj] * T.float32(2), T.float32(0))
    for i, j, k in T.grid(12, 8, 10):
        with T.block("M"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                M[vi, vj] = T.float32(0)
            M[vi, vj] = M[vi, vj] + B[vi, vk] * W[vk, vj]
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(M[vi, vj], T.float32(0))
"#;

const SCRIPTS: &[&str] = &[
    r#"def apply_trace(sch):
    b0 = sch.get_block(name="M", func_name="main")
    l1, l2, l3 = sch.get_loops(block=b0)
    l4, l5 = sch.split(loop=l1, factors=[None, 4])
    l6, l7 = sch.split(l2, factors=[2, None])
    sch.reorder(l4, l6, l3, l5, l7)
    b1 = sch.cache_read(b0, "W", "local")
    b2 = sch.cache_write(b0, 0, "global")
    sch.compute_at(b1, l6)
    sch.reverse_compute_at(b2, l6)
    sch.vectorize(l7)
    sch.parallel(l4)
    sch.annotate(l5, "pragma_note", 1)
    sch.decompose_reduction(b0, l3)
"#,
    r#"b = sch.get_block("B")
loops = sch.get_loops(b)
f = sch.fuse(*loops)
o, m, i = sch.split(f, factors=[None, 2, 5])
sch.transform_layout(b, "B", lambda i, j: [i // 4, j // 4, i % 4, j % 4], pad_value=0.0)
sch.transform_block_layout("C", lambda i, j: [j, i])
sch.set_axis_separator(b, "B", axis_separators=[2])
sch.unroll(i)
sch.bind(o, "threadIdx.x")
"#,
    r#"c = sch.get_block("C")
m = sch.get_block("M")
i, j, k = sch.get_loops(m)
rf = sch.rfactor(k, 0)
sch.reverse_compute_inline(c)
x = sch.reindex_cache_read(m, "M", "local", lambda i, j, k: [k, j, i])
sch.set_scope(m, "M", "shared")
sch.pad_einsum(m, padding=[4, 4, 4])
"#,
    r#"p = sch.get_block("B")
l = sch.get_loops(p)
q = sch.decompose_padding(p, l[0])
sch.loop_partition(l[-1], factors=[2, None])
for k, x in enumerate(sch.get_loops(sch.get_block("M"))[:2]):
    o, n = sch.split(x, factors=[None, [2, 4][k]])
    both = [a + 1 for a in range(3)] + [1] * 2
sch.sequential_buffer_access("C", "M")
sch.cache_inplace("M", "M", "local")
sch.transform_loops(sch.get_loops("C"), lambda i, j: [i * 8 + j])
sch.fission(l[1], 1)
sch.hoist_expression(p, 7, 7)
sch.reduce_loop_extents(p)
sch.merge_loops(l[0], l[1])
sch.remove_branching_through_overcompute(p, wrap_indices=True)
sch.compute_inline(p)
"#,
];

/// Pieces that mean something somewhere.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    ", ",
    "=",
    "*",
    "**",
    "//",
    "-",
    "-1",
    "0",
    "1",
    "None",
    "True",
    "\"",
    "'",
    "\n",
    "    ",
    "#",
    "lambda i: ",
    "lambda *i: ",
    "for x in range(9):\n    ",
    "range(",
    "sch.",
    "9999999999999999999999",
    "4294967296",
    "2147483647",
    "1e999",
    "l1",
    "b0",
    "\"B\"",
    "\"A\"",
    "x = [x, x]\n",
    "x = [*x, *x]\n",
    "x = [1]\n",
    "[x for x in range(9999)]",
    "[1] * 9999",
    "T.undef()",
    "T.float32(1)",
    "é",
    "\u{0}",
    "len(",
    "list(",
    "zip(",
    "enumerate(",
    ":",
    "i // 0",
    "i % 0",
    "i * i",
];

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        random::bits(&mut self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The places of names and numbers.
fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| is_word(*c)) {
        match words.last_mut().filter(|w| w.end == at) {
            Some(word) => word.end = at + c.len_utf8(),
            None => words.push(at..at + c.len_utf8()),
        }
    }
    words
}

fn mutate(random: &mut Random, text: &mut String) {
    let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let place = |random: &mut Random, text: &str| {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        ends[random.below(ends.len())]
    };
    match random.below(9) {
        // One word for another: often still a script.
        0..=3 => {
            let words = words(text);
            let (a, b) = (random.below(words.len()), random.below(words.len()));
            if let (Some(a), Some(b)) = (words.get(a), words.get(b)) {
                let word = text[b.clone()].to_owned();
                text.replace_range(a.clone(), &word);
            }
        }
        4 => {
            let at = place(random, text);
            text.insert_str(at, PIECES[random.below(PIECES.len())]);
        }
        5 => {
            let words = words(text);
            if let Some(word) = words.get(random.below(words.len())) {
                text.replace_range(word.clone(), PIECES[random.below(PIECES.len())]);
            }
        }
        6 => {
            let (from, to) = (random.below(lines.len()), random.below(lines.len()));
            let mut lines = lines;
            if let Some(line) = lines.get(from).cloned() {
                // The same again, sometimes many times.
                let times = if random.below(4) == 0 { 60 } else { 1 };
                lines.insert(to, line.repeat(times));
                *text = lines.concat();
            }
        }
        7 => {
            let gone = random.below(lines.len());
            *text =
                lines.iter().enumerate().filter(|(k, _)| *k != gone).map(|(_, l)| &**l).collect();
        }
        _ => {
            let at = place(random, text);
            text.truncate(at);
        }
    }
}

fn module() -> Module {
    parse(PROGRAM, &Sizes::new()).expect("it reads")
}

/// Runs a script, prints what it leaves, and reads that back; says how many calls were accepted.
fn run(text: &str) -> Result<usize, (usize, Error)> {
    let mut schedule = Schedule::new(module(), Permissions::default());
    let mut calls = 0;
    let result = apply(&mut schedule, &Source::new("trace.py", text), |_, _| {
        calls += 1;
        Ok(())
    });
    if calls > 0 {
        let printed = print(schedule.module());
        if let Err(e) = parse(&printed, &Sizes::new()) {
            panic!("what was printed does not read: {}\n{printed}", e.render());
        }
        let _ = schedule.trace().to_string();
    }
    match result {
        Ok(()) => Ok(calls),
        Err(e) => {
            let _ = e.render();
            Err((calls, e))
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn arbitrary_scripts_end_in_a_schedule_or_an_error() {
    let mut random = Random(setting("TILEWRIGHT_FUZZ_SEED", 3));
    let (mut accepted, mut ran) = (0, 0);
    for k in 0..setting("TILEWRIGHT_FUZZ_ITERS", 300) {
        let mut text = SCRIPTS[random.below(SCRIPTS.len())].to_owned();
        for _ in 0..1 + random.below(4) {
            mutate(&mut random, &mut text);
        }
        let Ok(result) = catch_unwind(AssertUnwindSafe(|| run(&text))) else {
            panic!("a panic in case {k}:\n{text}");
        };
        let calls = match result {
            Ok(calls) => {
                ran += 1;
                calls
            }
            Err((_, e @ Error::Internal(_))) => panic!("case {k}: {}\n{text}", e.render()),
            Err((calls, _)) => calls,
        };
        accepted += calls;
    }
    assert!(accepted >= 300 && ran >= 10, "{accepted} calls accepted, {ran} scripts ran whole");
}

#[test]
fn scripts_take_no_memory_or_depth_without_bound() {
    let fails = |text: &str, with: &str| {
        let e = match run(text) {
            Ok(_) => panic!("accepted: {text}"),
            Err((_, e)) => e.render(),
        };
        assert!(e.contains(with), "{e}");
    };
    let doubled = "x = [x, x]\n".repeat(60);
    fails(&format!("x = [1]\n{doubled}"), "a script makes at most 1000000 values");
    let doubled = "x = [*x, *x]\n".repeat(60);
    fails(&format!("x = [1]\n{doubled}"), "a script makes at most 1000000 values");
    let nested = "x = [[y for y in range(9999)] for z in range(9999)]";
    fails(nested, "a script makes at most 1000000 values");
    fails("x = [[1] * 5000] * 5000", "this has no value in a script");
    let ones = "l = sch.get_loops(\"C\")\nsch.split(l[0], factors=[1] * 5000 + [None])\n";
    fails(ones, "5001 factors are more than the 300 loops that may be around each other");
    let deeper = "for k in range(400):\n    l = sch.get_loops(\"C\")\n    sch.split(l[0], factors=[1, None])\n";
    fails(deeper, "loops, conditions, blocks and bindings would be around each other");
    let wide =
        format!("sch.transform_layout(\"C\", \"M\", lambda i, j: [{}i, j])\n", "0, ".repeat(99));
    fails(&wide, "the lambda gives 101 items, at most 64 are allowed");
}
