//! The shape function of a plan whose sizes are open: what depends on sizes, computed when they are
//! known.
//!
//! It is a tensor function as the kernels are, and is compiled with them: it takes the open sizes
//! and fills the *shape heap*, an array of 64-bit integers: extents and bytes of inputs and outputs,
//! the numbers that kernels take, bytes of the arena, and where each value lies in it. Which value
//! lies above which other one is decided once, by a placement for estimated sizes; for other sizes
//! each value begins where the highest one below it ends, so that values that are needed at the same
//! time never share memory.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::dim::{MAX_CELLS, SizeRange};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, DType, Dim, Error, Expr, Fold, Param, Result, Stmt, StmtKind, TensorFunc, dim,
};
use tilewright_runtime::plan::arena::{self, ALIGN, Block};
use tilewright_runtime::plan::{ArgSource, OpenStep, Within};

use tilewright_runtime::{MemoryPlan, OpenPort};

/// Where the heap holds what is known of an input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSizes {
    /// The first of its extents.
    pub extents: usize,
    pub bytes: usize,
}

/// The function, and what the heap holds where.
pub struct ShapeFunc {
    /// A name that no kernel has.
    pub name: Arc<str>,
    /// `(sizes: int64 [..], heap: int64 [..])`, lowered.
    pub func: TensorFunc,
    /// Numbers in the heap.
    pub count: usize,
    /// The inputs, in order.
    pub inputs: Vec<PortSizes>,
    /// The outputs, in order.
    pub outputs: Vec<PortSizes>,
    pub arena_bytes: usize,
    /// The sizes that kernels take as numbers.
    numbers: HashMap<Dim, usize>,
    /// The first byte in the arena of each value of the plan.
    offsets: Vec<usize>,
    /// For each step, the number that is 1 where it is left out, since all its results are empty.
    idle: Vec<Option<usize>>,
}

/// A place of the heap, as it is handed out.
#[derive(Default)]
struct Places(usize);

impl Places {
    fn take(&mut self, count: usize) -> usize {
        let first = self.0;
        self.0 += count;
        first
    }
}

/// The body under construction.
struct Body {
    stmts: Vec<Stmt>,
    heap: Buffer,
    /// The open sizes as loads.
    sizes: Subst,
    /// What was checked: a size, and the least that it may be.
    checked: Vec<(Dim, usize)>,
    /// Numbers of elements that were checked to be what a tensor may have.
    counted: HashSet<Dim>,
    /// Where the heap holds sizes already.
    known: HashMap<Dim, usize>,
    /// Whether open sizes themselves may be zero.
    empty: bool,
}

/// The elements of a place in memory; a size is itself.
fn size(plan: &MemoryPlan, place: &ArgSource) -> Option<Dim> {
    match *place {
        ArgSource::Input(k) => plan.inputs.get(k).map(cell_count),
        ArgSource::Output(k) => plan.outputs.get(k).map(cell_count),
        ArgSource::Value(k) => plan.values.get(k).map(|value| value.cells),
        ArgSource::Size(d) => Some(d),
        ArgSource::Constant(_) => None,
    }
}

fn cell_count(port: &OpenPort) -> Dim {
    dim::product(port.shape.iter().copied())
}

/// Why an extent of an input is this size, where that is known.
fn why(plan: &MemoryPlan, size: Dim) -> Option<&str> {
    // The last one found says most.
    plan.reasons
        .iter()
        .rfind(|r| plan.inputs.get(r.input).and_then(|port| port.shape.get(r.axis)) == Some(&size))
        .map(|r| &*r.why)
}

/// Whether a size may be zero in a plan.
fn may_be_zero(plan: &MemoryPlan, d: Dim) -> bool {
    match d.known() {
        Some(n) => plan.empty && n == 0,
        None => plan.empty || !d.at_least(1),
    }
}

impl ShapeFunc {
    /// The shape function of a plan.
    ///
    /// # Errors
    /// [`Error::Input`] where a size is open that no input says.
    pub fn new(plan: &MemoryPlan) -> Result<ShapeFunc> {
        plan.check()?;
        let mut places = Places::default();
        let [inputs, outputs] = [&plan.inputs, &plan.outputs].map(|ports| -> Vec<PortSizes> {
            ports
                .iter()
                .map(|port| PortSizes {
                    extents: places.take(port.shape.len()),
                    bytes: places.take(1),
                })
                .collect()
        });
        let arena_bytes = places.take(1);
        let mut numbers: HashMap<Dim, usize> = HashMap::default();
        let mut passed: Vec<Dim> = Vec::new();
        for place in plan.steps.iter().flat_map(|step| &step.args) {
            if let ArgSource::Size(d) = place
                && d.known().is_none()
                && !numbers.contains_key(d)
            {
                numbers.insert(*d, places.take(1));
                passed.push(*d);
            }
        }
        let offsets: Vec<usize> = plan.values.iter().map(|_| places.take(1)).collect();
        // How many bytes each value takes, and where it ends as soon as it has a place.
        let ends: Vec<usize> = plan.values.iter().map(|_| places.take(1)).collect();
        let idle = plan.steps.iter().map(|step| {
            let mut sizes = step.args.iter().filter_map(|place| size(plan, place));
            sizes.any(|d| may_be_zero(plan, d)).then(|| places.take(1))
        });
        let idle: Vec<Option<usize>> = idle.collect();
        let count = places.0;

        let vars = plan.sizes();
        let sizes = Buffer::with_extents("sizes", &[vars.len().max(1) as i64], DType::I64);
        let heap = Buffer::with_extents("heap", &[count.max(1) as i64], DType::I64);
        let loads = vars.iter().enumerate().map(|(k, v)| (v.clone(), size_at(k, &sizes)));
        let mut body = Body {
            stmts: Vec::new(),
            heap: heap.clone(),
            sizes: Subst::vars(loads),
            checked: Vec::new(),
            counted: HashSet::default(),
            known: HashMap::default(),
            empty: plan.empty,
        };
        for (k, v) in vars.iter().enumerate() {
            let least = match v.range() {
                SizeRange::ALL => usize::from(!plan.empty),
                range => range.least(),
            };
            let ends = size_at(k, &sizes)
                .greater_equal(number(least))
                .and(size_at(k, &sizes).less_equal(number(v.range().most())));
            let remainders = v.range().remainders().condition(size_at(k, &sizes));
            let fits = remainders.into_iter().fold(ends, Expr::and);
            let limits = v.range().limits_from(least);
            // The number comes last: where it is not known, what follows the comma is left out.
            let why = why(plan, Dim::open(v)).map(|why| why.replace("{}", "{ }"));
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            let text = format!("the size `{}` must be {limits}{why}, and is {{}}", v.name());
            body.assert(fits, text, vec![size_at(k, &sizes)]);
        }
        for (ports, at) in [(&plan.inputs, &inputs), (&plan.outputs, &outputs)] {
            for (port, at) in ports.iter().zip(at) {
                for (axis, d) in port.shape.iter().enumerate() {
                    body.set_size(at.extents + axis, *d);
                }
                let what = format!("`{}`", port.name);
                let cells = body.cells(dim::product(port.shape.iter().copied()), &what);
                body.set(at.bytes, cells * number(port.dtype.bytes()));
            }
        }
        for d in passed {
            body.set_size(numbers[&d], d);
        }
        let mut aligned: HashMap<(Dim, usize), usize> = HashMap::default();
        for (value, at) in plan.values.iter().zip(&ends) {
            let func = plan.steps.get(value.first).map_or("", |step| &step.func);
            let cells = body.cells(value.cells, &format!("an intermediate result of `{func}`"));
            let width = value.dtype.bytes();
            let bytes = match aligned.get(&(value.cells, width)) {
                Some(same) => body.get(*same),
                None => {
                    aligned.insert((value.cells, width), *at);
                    let last = cells * number(width) + number(ALIGN - 1);
                    last.floordiv(number(ALIGN)) * number(ALIGN)
                }
            };
            body.set(*at, bytes);
        }
        for (step, at) in plan.steps.iter().zip(&idle) {
            if let Some(at) = at {
                body.idle(plan, step, *at);
            }
        }
        let stacked = stacked(plan)?;
        let highest = |body: &Body, all: &[usize]| {
            let tops = all.iter().map(|b| body.get(ends[*b]));
            tops.reduce(Expr::max).unwrap_or_else(|| number(0))
        };
        for (value, below) in &stacked {
            let start = highest(&body, below);
            body.set(offsets[*value], start);
            body.set(ends[*value], body.get(offsets[*value]) + body.get(ends[*value]));
        }
        let covered: HashSet<&usize> = stacked.iter().flat_map(|(_, below)| below).collect();
        let tops = stacked.iter().map(|(value, _)| *value).filter(|v| !covered.contains(v));
        let top = highest(&body, &tops.collect::<Vec<usize>>());
        body.set(arena_bytes, top);
        for (value, at) in plan.values.iter().zip(&offsets) {
            let Some(Within { whole, byte }) = value.within else { continue };
            // The last cell has a position that was checked; the first one of nothing has any.
            let byte = body.sizes.expr(&byte.wide());
            let start = match whole {
                ArgSource::Input(_) | ArgSource::Output(_) => byte,
                ArgSource::Value(whole) if offsets.get(whole).is_some() => {
                    body.get(offsets[whole]) + byte
                }
                _ => {
                    let text = "the memory plan is wrong: a part of a value that is not there";
                    return Err(Error::internal(text));
                }
            };
            body.set(*at, start);
        }
        let params = [&sizes, &heap].map(Param::tensor).to_vec();
        let func = TensorFunc::new(params, Stmt::seq(body.stmts));
        let taken = plan.functions();
        let mut name: Arc<str> = "shapes".into();
        while taken.contains(&name) {
            name = format!("{name}_").into();
        }
        Ok(ShapeFunc { name, func, count, inputs, outputs, arena_bytes, numbers, offsets, idle })
    }

    /// Where the heap holds a size that a kernel takes.
    pub(crate) fn number(&self, size: Dim) -> Option<usize> {
        self.numbers.get(&size).copied()
    }

    /// Where the heap says that a step is left out.
    pub(crate) fn idle(&self, step: usize) -> Option<usize> {
        self.idle.get(step).copied().flatten()
    }

    /// Where the heap holds the first byte of a value.
    pub(crate) fn offset(&self, value: usize) -> Option<usize> {
        self.offsets.get(value).copied()
    }
}

fn size_at(k: usize, sizes: &Buffer) -> Expr {
    sizes.load([Expr::i32(k as i32)])
}

impl Body {
    fn assert(&mut self, cond: Expr, message: String, values: Vec<Expr>) {
        self.stmts.push(Stmt::new(StmtKind::Assert { cond, message: message.into(), values }));
    }

    fn set(&mut self, at: usize, value: Expr) {
        self.stmts.push(Stmt::store(&self.heap, vec![Expr::i32(at as i32)], value));
    }

    fn get(&self, at: usize) -> Expr {
        self.heap.load([Expr::i32(at as i32)])
    }

    /// Writes a size that is checked.
    fn set_size(&mut self, at: usize, d: Dim) {
        let value = self.size(d);
        self.set(at, value);
        self.known.entry(d).or_insert(at);
    }

    /// A size, checked to be one: neither it nor what it is made of is negative, and no divisor is zero.
    fn size(&mut self, d: Dim) -> Expr {
        for (part, least) in d.demands() {
            if part.known().is_some()
                || self.checked.iter().any(|(seen, at)| *seen == part && *at >= least)
            {
                continue;
            }
            self.in_range(part, &format!("the size `{part}`"));
            // What follows for sizes of at least one element need not be checked.
            if !self.empty && part.at_least(least) {
                self.checked.push((part, least));
                continue;
            }
            let value = self.sizes.expr(&part.wide());
            let text = format!("the size `{part}` must be at least {least}, and is {{}}");
            self.assert(value.clone().greater_equal(number(least)), text, vec![value]);
            self.checked.push((part, least));
        }
        match self.known.get(&d) {
            Some(at) if d.known().is_none() => self.get(*at),
            _ => self.sizes.expr(&d.wide()),
        }
    }

    /// Whether a step is left out, since all its results are empty; one that is not, and is not right
    /// without elements, needs some.
    fn idle(&mut self, plan: &MemoryPlan, step: &OpenStep, at: usize) {
        let sizes = self.sizes.clone();
        let is_zero = |d: Dim| sizes.clone().expr(&d.wide()).equal(number(0));
        let results = step.args.iter().skip(step.results.start).take(step.results.len());
        let empty = results.map(|place| size(plan, place).map(is_zero));
        let idle = empty.collect::<Option<Vec<Expr>>>();
        let idle = idle.and_then(|all| all.into_iter().reduce(Expr::and));
        let idle = idle.unwrap_or_else(|| Expr::bool(false));
        self.set(at, Expr::select(idle.clone(), number(1), number(0)));
        if step.takes_empty {
            return;
        }
        for place in step.args.iter().filter(|place| !matches!(place, ArgSource::Output(_))) {
            let Some(d) = size(plan, place).filter(|d| may_be_zero(plan, *d)) else { continue };
            let text =
                format!("the size `{d}` is zero, and `{}` needs at least one element", step.func);
            self.assert((!is_zero(d)).or(idle.clone()), text, Vec::new());
        }
    }

    /// Checks that 64 bits hold a size, where the ranges of sizes do not say it.
    fn in_range(&mut self, d: Dim, what: &str) {
        const LIMIT: f64 = (1u64 << 62) as f64;
        if d.most() < LIMIT {
            return;
        }
        let limit = Expr::float(LIMIT, DType::F64);
        let fits = self.sizes.expr(&d.ceiling()).less(limit);
        self.assert(fits, format!("{what} does not fit in 64 bits"), Vec::new());
    }

    /// A number of elements, checked to be what a tensor may have.
    fn cells(&mut self, cells: Dim, what: &str) -> Expr {
        let value = self.size(cells);
        let is_new = cells.known().is_none() && self.counted.insert(cells);
        if is_new && cells.most() > MAX_CELLS as f64 {
            let text = format!("{what} has more than 2^31 - 2^16 elements");
            self.assert(value.clone().less_equal(number(MAX_CELLS)), text, Vec::new());
        }
        value
    }
}

fn number(n: usize) -> Expr {
    Expr::int(i64::try_from(n).unwrap_or(i64::MAX), DType::I64)
}

/// The values of a plan that have memory of their own, from the lowest to the highest in memory, each
/// with those that lie directly below it and are needed at the same time: none of these lies below another one of them.
fn stacked(plan: &MemoryPlan) -> Result<Vec<(usize, Vec<usize>)>> {
    let blocks: Vec<Block> = plan
        .values
        .iter()
        .map(|value| Block {
            bytes: match value.within {
                Some(_) => 0,
                None => {
                    let cells = value.cells.estimate().clamp(1, MAX_CELLS as i64);
                    cells as usize * value.dtype.bytes()
                }
            },
            first: value.first,
            last: value.last,
        })
        .collect();
    let (at, _) = arena::place(&blocks)
        .ok_or_else(|| Error::input("the intermediate results do not fit in memory"))?;
    let mut order: Vec<usize> =
        (0..blocks.len()).filter(|k| plan.values[*k].within.is_none()).collect();
    order.sort_by_key(|b| (at[*b], *b));
    Ok((0..order.len()).map(|k| (order[k], directly_below(k, &blocks, &order))).collect())
}

fn directly_below(k: usize, blocks: &[Block], order: &[usize]) -> Vec<usize> {
    let b = &blocks[order[k]];
    let mut found: Vec<usize> = Vec::new();
    for a in order[..k].iter().rev().filter(|a| blocks[**a].meets(b)) {
        if !found.iter().any(|above| blocks[*above].meets(&blocks[*a])) {
            found.push(*a);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tilewright_interp::{Arg, RunOptions, run_func};
    use tilewright_ir::dim::Remainders;
    use tilewright_ir::{Tensor, Var};
    use tilewright_runtime::Slot;
    use tilewright_runtime::plan::{OpenStep, Reason, Value};

    use super::*;

    /// `f(x [n, m]) -> y [(n + 1) // 2, m - 1]` in three steps, with values of which two at a time
    /// are needed.
    fn plan() -> MemoryPlan {
        let [n, m] = ["n", "m"].map(|name| Dim::open(&Var::new(name, DType::I64)));
        MemoryPlan {
            inputs: vec![tensor_port("x", &[n, m])],
            outputs: vec![tensor_port("y", &[n.ceildiv(2), m - 1])],
            constants: Vec::new(),
            steps: vec![
                shape_step(&[ArgSource::Input(0), ArgSource::Value(0), ArgSource::Size(n * m)]),
                shape_step(&[ArgSource::Value(0), ArgSource::Value(1), ArgSource::Value(2)]),
                shape_step(&[ArgSource::Value(1), ArgSource::Value(2), ArgSource::Output(0)]),
            ],
            // The last one is a part of the second.
            values: vec![
                f32_value(n * m, 0, 1),
                f32_value(m * 100, 1, 2),
                f32_value(n * n, 1, 2),
                Value {
                    within: Some(Within { whole: ArgSource::Value(1), byte: Dim::from(12) }),
                    ..f32_value(m, 1, 2)
                },
            ],
            ..MemoryPlan::default()
        }
    }

    fn tensor_port(name: &str, shape: &[Dim]) -> tilewright_runtime::Port<Dim> {
        OpenPort { name: name.into(), dtype: DType::F32, shape: shape.to_vec(), stored: None }
    }

    fn f32_value(cells: Dim, first: usize, last: usize) -> Value {
        Value { cells, dtype: DType::F32, first, last, within: None }
    }

    fn shape_step(args: &[ArgSource]) -> OpenStep {
        OpenStep {
            func: "shapes".into(),
            value: "".into(),
            args: args.to_vec(),
            results: 0..0,
            takes_empty: false,
            unless_shared: None,
        }
    }

    /// The heap for these sizes, or the message of the assertion that failed.
    fn heap(shapes: &ShapeFunc, sizes: &[i64]) -> std::result::Result<Vec<usize>, String> {
        let sizes = Tensor::from_slice(&[sizes.len()], sizes).expect("a tensor");
        let args = [Arg::Tensor(sizes), Arg::Fresh(None)];
        let done = run_func(&shapes.func, &args, &RunOptions::default());
        let heap = done.map_err(|e| e.render())?.outputs.remove(0);
        assert!(heap.states.is_none(), "every number is written");
        let numbers = heap.tensor.as_slice::<i64>().expect("integers").iter();
        Ok(numbers.map(|n| usize::try_from(*n).expect("not negative")).collect())
    }

    #[test]
    fn the_heap_holds_what_the_plan_for_the_sizes_holds() {
        let plan = plan();
        let shapes = ShapeFunc::new(&plan).expect("all sizes are said");
        assert_eq!(&*shapes.name, "shapes_", "a kernel has the plain name");
        for sizes in [[1, 2], [3, 5], [240, 240], [17, 1000], [2000, 3]] {
            let heap = heap(&shapes, &sizes).expect("it fits");
            let fixed = plan.at(&sizes.map(|n| n as usize)).expect("it fits");
            let ports = [(&fixed.inputs, &shapes.inputs), (&fixed.outputs, &shapes.outputs)];
            for (port, at) in ports.iter().flat_map(|(ports, at)| ports.iter().zip(*at)) {
                assert_eq!(heap[at.extents..][..port.shape.len()], port.shape);
                assert_eq!(heap[at.bytes], 4 * port.shape.iter().product::<usize>());
            }
            let ArgSource::Size(size) = plan.steps[0].args[2] else { panic!("not a size") };
            let number = shapes.number(size).expect("it is passed");
            assert_eq!(fixed.steps[0].args[2], Slot::Number(heap[number] as i64));
            let lies = |k: usize| {
                // No memory is shared, and at most so much is used as all three need.
                let cells = plan.values[k]
                    .cells
                    .value(&|v| plan.sizes().iter().position(|s| s == v).map(|k| sizes[k] as usize))
                    .expect("a number");
                let start = heap[shapes.offset(k).expect("it has a place")];
                assert_eq!(start % ALIGN, 0);
                (start, start + 4 * cells)
            };
            let start = |k: usize| heap[shapes.offset(k).expect("it has a place")];
            assert_eq!(start(3), start(1) + 12);
            let arena = heap[shapes.arena_bytes];
            for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                let ((start, end), (other, last)) = (lies(a), lies(b));
                assert!(end <= other || last <= start, "{sizes:?}: {a} and {b} overlap");
                assert!(end <= arena && last <= arena, "{sizes:?}");
            }
        }
        let heap = heap(&shapes, &[240, 240]).expect("it fits");
        assert_eq!(heap[shapes.arena_bytes], plan.at(&[240, 240]).expect("it fits").arena_bytes);
    }

    /// Sizes of a piece may be zero: what gives nothing is left out, and what takes nothing is refused
    /// unless it is right for that.
    #[test]
    fn steps_without_results_are_left_out() {
        let mut plan = MemoryPlan { empty: true, ..plan() };
        for (step, results) in plan.steps.iter_mut().zip([1..2, 1..3, 2..3]) {
            step.results = results;
        }
        let mut outcomes = Vec::new();
        for takes_empty in [false, true] {
            plan.steps[1].takes_empty = takes_empty;
            let shapes = ShapeFunc::new(&plan).expect("all sizes are said");
            for sizes in [[0, 3], [3, 1], [0, 1], [1, 2], [5, 4], [3, 0]] {
                let fixed = plan.at(&sizes.map(|n| n as usize));
                let heap = heap(&shapes, &sizes);
                assert_eq!(fixed.is_ok(), heap.is_ok(), "{sizes:?}: {heap:?}");
                let (Ok(fixed), Ok(heap)) = (fixed, heap) else { continue };
                for (k, step) in fixed.steps.iter().enumerate() {
                    let idle = shapes.idle(k).is_some_and(|at| heap[at] == 1);
                    assert_eq!(step.idle, idle, "{sizes:?}: step {k}");
                }
                outcomes.push(fixed.steps.iter().filter(|step| step.idle).count());
            }
        }
        outcomes.sort_unstable();
        assert_eq!(outcomes, [0, 0, 0, 0, 1, 1, 2, 2]);
        plan.steps[1].takes_empty = false;
        let message = heap(&ShapeFunc::new(&plan).expect("all sizes are said"), &[0, 3]);
        let message = message.expect_err("there is nothing to begin with");
        assert!(message.contains("is zero, and `shapes` needs at least one element"), "{message}");
        // Where open sizes are at least 1, what is computed of them may be zero.
        plan.empty = false;
        let shapes = ShapeFunc::new(&plan).expect("all sizes are said");
        let [first, second, last] = [0, 1, 2].map(|step| shapes.idle(step));
        assert!(first.is_none() && second.is_none(), "no size of theirs may be zero");
        let last = last.expect("the result may be empty");
        for (m, idle) in [(1, 1), (2, 0)] {
            assert_eq!(heap(&shapes, &[3, m]).expect("it fits")[last], idle);
            assert_eq!(plan.at(&[3, m as usize]).expect("it fits").steps[2].idle, idle == 1);
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_named() {
        let shapes = ShapeFunc::new(&plan()).expect("all sizes are said");
        let huge = MAX_CELLS as i64;
        for (sizes, expected) in [
            ([0, 3], "the size `n` must be at least 1 and at most 2^31 - 2^16, and is 0"),
            (
                [3, huge + 1],
                "the size `m` must be at least 1 and at most 2^31 - 2^16, and is 2147418113",
            ),
            ([3, 0], "the size `m` must be at least 1 and at most 2^31 - 2^16, and is 0"),
            ([1 << 16, 1 << 15], "`x` has more than 2^31 - 2^16 elements"),
            ([huge, huge], "`x` has more than 2^31 - 2^16 elements"),
            ([1 << 16, 2], "an intermediate result of `shapes` has more than 2^31 - 2^16 elements"),
        ] {
            let message = heap(&shapes, &sizes).expect_err("it does not fit");
            assert!(message.contains(expected), "{sizes:?}: {message}");
        }
        let (n, m) = (Var::new("n", DType::I64), Var::new("m", DType::I64));
        let cube = Dim::open(&n) * Dim::open(&n) * Dim::open(&m);
        let mut plan = plan();
        plan.inputs.push(OpenPort {
            name: "z".into(),
            dtype: DType::I8,
            shape: vec![Dim::open(&n), Dim::open(&m)],
            stored: None,
        });
        plan.values[0].cells = cube;
        let shapes = ShapeFunc::new(&plan).expect("all sizes are said");
        let message = heap(&shapes, &[3, 3, huge, huge]).expect_err("93 bits");
        assert!(
            message.contains("2^31 - 2^16 elements") || message.contains("64 bits"),
            "{message}"
        );
    }

    #[test]
    fn sizes_of_other_remainders_are_refused_with_the_last_reason() {
        let remainders = Remainders { modulus: 8, below: 1, count: 2 };
        let n = Var::size("n", DType::I64, SizeRange::ALL.with_remainders(remainders));
        let port = OpenPort {
            name: "x".into(),
            dtype: DType::F32,
            shape: vec![Dim::open(&n)],
            stored: None,
        };
        let reason = |why: &str| Reason { input: 0, axis: 0, why: why.into() };
        let reasons = vec![reason("a node needs more"), reason("another, of {}, needs this")];
        let plan = MemoryPlan { inputs: vec![port], reasons, ..MemoryPlan::default() };
        let shapes = ShapeFunc::new(&plan).expect("all sizes are said");
        for size in 1..40 {
            let found = heap(&shapes, &[size]);
            assert_eq!(found.is_ok(), [0, 7].contains(&(size % 8)), "{size}: {found:?}");
        }
        let said = heap(&shapes, &[12]).expect_err("it is 4 less");
        let limits = "at most 2^31 - 2^16, and a multiple of 8 or at most 1 less";
        let expected = format!("{limits} (another, of {{ }}, needs this), and is 12");
        assert!(said.contains(&expected), "{said}");
    }
}
