//! Random layouts of random functions against the interpreter.

use proptest::prelude::*;
use tilewright_ir::{DType, Expr};
use tilewright_schedule::value::Value;

use super::common::{Moved, Pad, block, lambda, parse, same, schedule, shown};

/// One way to change logical indices, as text of expressions.
#[derive(Clone, Debug)]
enum Step {
    /// Axis, factor, offset.
    Split(usize, i64, i64),
    /// Two neighbours into one.
    Fuse(usize),
    Swap(usize, usize),
    /// Axis, offset.
    Shift(usize, i64),
    /// Backwards.
    Flip(usize),
    /// The sum of two axes in place of the second.
    Skew(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3usize, 2..5i64, 0..4i64).prop_map(|(a, f, o)| Step::Split(a, f, o)),
        2 => (0..3usize).prop_map(Step::Fuse),
        2 => (0..3usize, 0..3usize).prop_map(|(a, b)| Step::Swap(a, b)),
        1 => (0..3usize, 1..4i64).prop_map(|(a, o)| Step::Shift(a, o)),
        1 => (0..3usize).prop_map(Step::Flip),
        1 => (0..3usize, 0..3usize).prop_map(|(a, b)| Step::Skew(a, b)),
    ];
    proptest::collection::vec(step, 1..4)
}

/// The lambda of the steps on a shape.
fn map_text(shape: &[i64], steps: &[Step]) -> String {
    let names: Vec<String> = (0..shape.len()).map(|k| format!("i{k}")).collect();
    let mut items: Vec<(String, i64)> = names.iter().cloned().zip(shape.iter().copied()).collect();
    for s in steps {
        let n = items.len();
        match *s {
            Step::Split(a, f, o) => {
                let (e, extent) = items[a % n].clone();
                items[a % n] = (format!("({e} + {o}) // {f}"), (extent + o + f - 1) / f);
                items.insert(a % n + 1, (format!("({e} + {o}) % {f}"), f));
            }
            Step::Fuse(a) if n > 1 => {
                let (second, extent) = items.remove(a % (n - 1) + 1);
                let (first, outer) = &mut items[a % (n - 1)];
                *first = format!("(({first}) * {extent} + {second})");
                *outer *= extent;
            }
            Step::Swap(a, b) => items.swap(a % n, b % n),
            Step::Shift(a, o) => {
                let (e, extent) = &mut items[a % n];
                *e = format!("({e} + {o})");
                *extent += o;
            }
            Step::Flip(a) => {
                let (e, extent) = &mut items[a % n];
                *e = format!("({} - ({e}))", *extent - 1);
            }
            Step::Skew(a, b) if a % n != b % n => {
                let (first, outer) = items[a % n].clone();
                let (second, extent) = &mut items[b % n];
                *second = format!("({second} + {first})");
                *extent += outer - 1;
            }
            Step::Fuse(_) | Step::Skew(..) => {}
        }
    }
    let items: Vec<String> = items.into_iter().map(|(e, _)| e).collect();
    format!("{}: {}", names.join(", "), items.join(", "))
}

#[derive(Clone, Debug)]
struct Case {
    shape: Vec<i64>,
    /// The form of the function.
    nest: u8,
    /// Steps and pad value for the argument, the temporary and the result.
    layouts: [Option<(Vec<Step>, u8)>; 3],
    /// Which buffers give the order of the loops afterwards.
    follow: u8,
}

fn cases() -> impl Strategy<Value = Case> {
    let layout = || proptest::option::weighted(0.6, (steps(), 0..4u8));
    let shape = proptest::collection::vec(1..7i64, 1..4);
    (shape, 0..8u8, [layout(), layout(), layout()], 0..4u8)
        .prop_map(|(shape, nest, layouts, follow)| Case { shape, nest, layouts, follow })
}

/// A function from `A` over `T` to `B`, all of one shape.
fn text(c: &Case) -> String {
    let list =
        |f: &dyn Fn(usize) -> String| (0..c.shape.len()).map(f).collect::<Vec<_>>().join(", ");
    let n = c.shape.len();
    let shape = format!("({},)", list(&|k| c.shape[k].to_string()));
    let grid = |name: &str| {
        let vars = list(&|k| format!("{name}{k}"));
        match n {
            1 => format!("for {vars} in range({})", c.shape[0]),
            _ => format!("for {vars} in T.grid({})", list(&|k| c.shape[k].to_string())),
        }
    };
    let loops = |name: &str| list(&|k| format!("{name}{k}"));
    let iters = list(&|k| format!("v{k}"));
    let remap = |name: &str, kinds: &str| match n {
        1 if kinds.len() == 1 => format!("v0 = T.axis.spatial({}, {name}0)", c.shape[0]),
        _ => format!("{iters} = T.axis.remap(\"{kinds}\", [{}])", loops(name)),
    };
    let spatial = "S".repeat(n);
    let (g, r) = (grid("i"), remap("i", &spatial));
    // The same cells in reverse of the last axis.
    let last = c.shape[n - 1] - 1;
    let back = list(&|k| if k + 1 == n { format!("{last} - v{k}") } else { format!("v{k}") });
    let first = match c.nest {
        // A block for each cell.
        0 => format!(
            "    {g}:\n        with T.block(\"compute\"):\n            {r}\n            T.reads(A[{iters}])\n            T.writes(T_[{iters}])\n            T_[{iters}] = A[{iters}] * 2 + 1\n"
        ),
        // Loops without a block.
        1 => format!(
            "    with T.block(\"compute\"):\n        {g}:\n            T_[{0}] = A[{0}] + 3\n",
            loops("i")
        ),
        // A reduction of nothing but one element, with an initialisation.
        2 => format!(
            "    {g}:\n        for k in range(3):\n            with T.block(\"compute\"):\n                {}\n                vk = T.axis.reduce(3, k)\n                with T.init():\n                    T_[{iters}] = 1\n                T_[{iters}] = T_[{iters}] + A[{iters}] * vk\n",
            r.replace('\n', "")
        ),
        // Written in another order, under a condition with both sides.
        3 => format!(
            "    {g}:\n        with T.block(\"compute\"):\n            {r}\n            T_[{back}] = T.if_then_else(v0 < 2, A[{iters}], A[{back}] - 1)\n"
        ),
        // Two writers.
        4 => format!(
            "    {g}:\n        with T.block(\"compute\"):\n            {r}\n            T_[{iters}] = A[{iters}]\n    {}:\n        with T.block(\"again\"):\n            {}\n            T_[{iters}] = T_[{iters}] * 3\n",
            grid("j"),
            remap("j", &spatial)
        ),
        // A running sum along the last axis.
        5 => {
            let at = loops("i");
            let before = list(&|k| if k + 1 == n { format!("i{k} - 1") } else { format!("i{k}") });
            format!(
                "    with T.block(\"compute\"):\n        {g}:\n            T_[{at}] = A[{at}]\n            if i{} > 0:\n                T_[{at}] = T_[{at}] + T_[{before}]\n",
                n - 1
            )
        }
        // A window that wraps around, with its initialisation beside the loop.
        6 => {
            let at = loops("i");
            let seen = list(&|k| {
                if k == 0 { format!("(i0 + k) % {}", c.shape[0]) } else { format!("i{k}") }
            });
            format!(
                "    with T.block(\"compute\"):\n        {g}:\n            T_[{at}] = 0\n            for k in range(2):\n                T_[{at}] = T_[{at}] + A[{seen}] * (k + 1)\n"
            )
        }
        // Opaque blocks.
        _ => format!(
            "    {g}:\n        with T.block(\"compute\"):\n            T_[{0}] = A[{0}] - 2\n",
            loops("i")
        ),
    };
    format!(
        "@T.prim_func\ndef main(A: T.Buffer({shape}, \"int32\"), B: T.Buffer({shape}, \"int32\")):\n    T_ = T.alloc_buffer({shape}, \"int32\")\n{first}    {}:\n        with T.block(\"copy\"):\n            {}\n            B[{iters}] = T_[{back}] + 1\n",
        grid("l"),
        remap("l", &spatial)
    )
}

fn check(c: &Case) -> Result<(), TestCaseError> {
    let text = text(c);
    let fail = |why: String| TestCaseError::fail(format!("{why}\n{text}"));
    let mut sch = schedule(&text);
    let (compute, copy) = (block(&mut sch, "compute"), block(&mut sch, "copy"));
    let mut moved = Vec::new();
    for (at, name) in ["A", "T_", "B"].into_iter().enumerate() {
        let Some((steps, pad)) = &c.layouts[at] else { continue };
        let map = map_text(&c.shape, steps);
        let (value, pad) = match pad {
            0 => (Value::None, Pad::Nothing),
            1 => (Value::Int(7), Pad::Is(7.0)),
            2 => (Value::Expr(Expr::undef(DType::I32)), Pad::Undef),
            _ => (Value::Float(-3.0), Pad::Is(-3.0)),
        };
        let b = if at == 2 { &copy } else { &compute };
        sch.transform_layout(b, name, &lambda(&map), &value, false)
            .map_err(|e| fail(format!("{map}: {}", e.render())))?;
        let param = [0, usize::MAX, 1][at];
        if param != usize::MAX {
            moved.push(Moved { param, map: lambda(&map), pad });
        }
    }
    // Other loops, where they are legal.
    let _ = match c.follow {
        0 => sch.sequential_buffer_access(&compute, "T_"),
        1 => sch.sequential_buffer_access(&compute, "A"),
        2 => sch.sequential_buffer_access(&copy, "B"),
        _ => sch.sequential_buffer_access(&copy, "T_"),
    };
    let before = parse(&text);
    let before = before.tensor("main").unwrap();
    let after = sch.func("main").unwrap();
    same(before, after, &moved).map_err(|why| fail(format!("{why}\n{}", shown(&sch))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any layouts of the argument, the temporary and the result, and loops that follow one of
    /// them, leave every logical cell as it was, and padding as the pad value says.
    #[test]
    fn layouts_compute_the_same(c in cases()) {
        check(&c)?;
    }
}
