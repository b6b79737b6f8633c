//! Plans of random graphs under random prices: whatever is chosen, the results stay, and what was
//! promised is what is made.

use std::sync::Arc;
use std::time::Duration;

use tilewright_graph::normal::results;
use tilewright_interp::run_module;
use tilewright_ir::{
    Attrs, DType, GraphExpr, GraphFunc, GraphVar, Module, Remarks, Source, Tensor, TensorFunc,
    well_formed,
};
use tilewright_layout::flow::{Costs, Moved, PlanOptions, Priced, Went, plan_layout};
use tilewright_layout::solver::check;
use tilewright_layout::{ConvLayout, IoLayout};
use tilewright_ops::Operand;
use tilewright_ops::movement::{reshape, transpose};
use tilewright_ops::te::{self, Reducer};
use tilewright_runtime::Stored;
use tilewright_runtime::plan::stored;
use tilewright_tvmscript::{parse_module, print_module};

use super::flow::{Dice, broadcast, combine, map, random_inputs};
use crate::common::{Graph, calls, extents, operand};

/// Windows of `k` by `k` pixels, all channels to `m`.
fn convolution(shape: &[usize], m: usize, k: usize) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::I32);
    let w = te::placeholder("w", &[m, shape[1], k, k], DType::I32);
    let [c, p, q] = [(shape[1], "c"), (k, "p"), (k, "q")].map(|(n, name)| te::reduce_axis(n, name));
    let out = [shape[0], m, shape[2] + 1 - k, shape[3] + 1 - k];
    let y = te::compute("y", &out, |i| {
        let data = x.at([i[0].clone(), c.expr(), &i[2] + p.expr(), &i[3] + q.expr()]);
        let weights = w.at([i[1].clone(), c.expr(), p.expr(), q.expr()]);
        te::reduce(Reducer::Sum, data * weights, [&c, &p, &q])
    });
    te::func([&x, &w], [&y]).expect("a function")
}

/// Convolutions, and what stands between them in models.
fn random_graph(seed: u64) -> Module {
    let mut dice = Dice(seed);
    let mut g = Graph::default();
    let input = |g: &mut Graph, name: &str, shape: &[usize]| {
        g.input_of(name, &Operand::new(shape, DType::I32))
    };
    let first = [1, [3, 5, 8][dice.below(3)], 7, 6];
    let mut values: Vec<GraphVar> = vec![input(&mut g, "x", &first)];
    let mut seen: Vec<GraphVar> = Vec::new();
    for _ in 0..3 + dice.below(5) {
        let value = values[values.len() - 1 - dice.below(values.len().min(3))].clone();
        let shape = extents(&operand(&value));
        let new = match dice.below(8) {
            0 | 1 if shape[2] > 1 && shape[3] > 1 => {
                let (m, k) = ([4, 5, 8, 9][dice.below(4)], 1 + dice.below(2));
                let w = input(&mut g, "w", &[m, shape[1], k, k]);
                g.call("conv", convolution(&shape, m, k), &[&value, &w])
            }
            2 => {
                let b = input(&mut g, "b", &shape[1..2]);
                g.call("scale", broadcast(&shape), &[&value, &b])
            }
            3 => {
                let alike = values.iter().filter(|v| extents(&operand(v)) == shape);
                let alike: Vec<&GraphVar> = alike.collect();
                let other = alike[dice.below(alike.len())].clone();
                g.call("add", combine(&shape, |a, b| a + b), &[&value, &other])
            }
            5 if shape[1].is_multiple_of(2) => {
                let [c, h, w] = [shape[1] / 2, shape[2], shape[3]];
                let groups = reshaped(&mut g, &value, &[shape[0], 2, c, h, w]);
                let members = transposed(&mut g, &groups, &[0, 2, 1, 3, 4]);
                reshaped(&mut g, &members, &shape)
            }
            6 if shape[1].is_multiple_of(4) => {
                let [c, h, w] = [shape[1] / 4, shape[2], shape[3]];
                let pixels = reshaped(&mut g, &value, &[shape[0], c, 2, 2, h, w]);
                let pixels = transposed(&mut g, &pixels, &[0, 1, 4, 2, 5, 3]);
                reshaped(&mut g, &pixels, &[shape[0], c, 2 * h, 2 * w])
            }
            4 => g.call("shift", map(&shape, |e| e + 1), &[&value]),
            _ => g.call("clip", map(&shape, |e| e.max(0)), &[&value]),
        };
        if dice.below(4) == 0 {
            seen.push(new.clone());
        }
        values.push(new);
    }
    seen.push(values[values.len() - 1].clone());
    g.returns(&seen.iter().collect::<Vec<_>>())
}

fn reshaped(g: &mut Graph, x: &GraphVar, shape: &[usize]) -> GraphVar {
    g.call("reshape", reshape(&operand(x), shape).expect("as many cells"), &[x])
}

fn transposed(g: &mut Graph, x: &GraphVar, order: &[usize]) -> GraphVar {
    g.call("transpose", transpose(&operand(x), order).expect("an order"), &[x])
}

/// The same for the same function, and nothing that makes sense.
struct RandomCosts(u64);

impl Costs for RandomCosts {
    fn call(&self, call: &Priced<'_>) -> f64 {
        let extents = call.func.buffers().flat_map(|b| b.const_shape().unwrap_or_default());
        let all = extents.fold(self.0, |h, n| h.wrapping_mul(31).wrapping_add(n as u64));
        (Dice(all).below(4000) + 1) as f64
    }

    fn conversion(&self, moved: &Moved<'_>) -> f64 {
        500.0 + 0.3 * moved.bytes as f64
    }
}

/// How the parameters and the results of the main function are stored.
fn storage(module: &Module) -> [Vec<Option<Arc<Stored>>>; 2] {
    let f = module.graph("main").expect("it is there");
    let results = results(&f.ret).len();
    [(stored::INPUTS, f.params.len()), (stored::OUTPUTS, results)]
        .map(|(key, count)| Stored::list(&f.attrs, key, count).expect("a list"))
}

/// The cells of a stored tensor that no element has hold the pad value, where there is one.
fn check_padding(stored: &Stored, tensor: &Tensor) {
    let Some(pad) = stored.pad else { return };
    let ones = vec![1i32; stored.logical.iter().product()];
    let ones = Tensor::from_slice(&stored.logical, &ones).expect("small");
    let mask = Stored { pad: Some(0.0), ..stored.clone() }.store(&ones).expect("it fits");
    for i in 0..tensor.len() {
        assert!(mask.get_f64(i) == 1.0 || tensor.get_f64(i) == pad, "cell {i} of {stored}");
    }
}

#[test]
fn plans_change_no_result_and_keep_their_word() {
    let (mut physical, mut converted, mut at_ends, mut padded) = (0, 0, 0, 0);
    let (mut carried, mut copied) = (0, 0);
    for (seed, io) in
        (0..200).flat_map(|s| [IoLayout::Logical, IoLayout::Physical].map(|io| (s, io)))
    {
        let module = random_graph(seed);
        // The same for the same function, and nothing that makes sense.
        let policies = [ConvLayout::ChannelsLast, ConvLayout::Blocked(4), ConvLayout::Blocked(8)];
        let time_limit = Duration::from_secs(5);
        let costs = &RandomCosts(seed);
        let options =
            PlanOptions { policies: &policies, costs, time_limit, io, decided: &|_, _| None };
        let mut why = Remarks::new();
        let (planned, plans, left) = plan_layout(&module, &options, &mut why).expect("a plan");
        well_formed::check_module(&planned).expect("it is well-formed");
        let text = print_module(&planned);
        let planned = parse_module(&Source::new("planned.py", text)).expect("it reads again");
        let inputs = random_inputs(&module, seed);
        let expected = run_module(&module, "main", &inputs).expect("it runs");
        let [ins, outs] = storage(&planned);
        let inputs: Vec<Tensor> = inputs
            .iter()
            .zip(&ins)
            .map(|(t, s)| s.as_ref().map_or(t.clone(), |s| s.store(t).expect("it fits")))
            .collect();
        let found = run_module(&planned, "main", &inputs).expect("it still runs");
        for ((a, b), stored) in expected.iter().zip(&found).zip(&outs) {
            let b = match stored {
                Some(stored) => {
                    check_padding(stored, b);
                    padded += usize::from(stored.is_padded());
                    &stored.load(b).expect("it fits")
                }
                None => b,
            };
            assert!(a.same(b), "{seed}: {a:?} and {b:?} in {:#?}", calls(&planned));
        }
        at_ends += ins.iter().chain(&outs).flatten().count();
        for p in &plans {
            check(&p.problem, &p.plan).expect("a proof");
            assert_eq!(p.plan.objective, p.plan.bound, "{seed}");
            for (name, cost) in &p.plan.alternatives {
                assert!(cost.get().is_none_or(|c| c >= p.plan.objective), "{seed}: {name}");
            }
            // What the plan pays for is what is made; beside it only padding that must be zero.
            let paid = p.plan.conversions.iter().filter(|c| p.moves(c)).count();
            let made = left.iter().filter(|l| l.from != l.to).count();
            assert_eq!(paid, made, "{seed}: {:#?}", calls(&planned));
            physical += usize::from(p.plan.tensors.iter().any(|t| t.layout > 0));
            converted += usize::from(paid > 0);
            let went = p.reordered.iter().map(|r| r.went);
            carried += went.clone().filter(|w| matches!(w, Went::Writer | Went::Readers)).count();
            copied += went.filter(|w| *w == Went::Copied).count();
            // Whoever may leave the ends as they are can do what others do.
            if io == IoLayout::Physical {
                let logical = PlanOptions { io: IoLayout::Logical, ..options };
                let (_, others, _) = plan_layout(&module, &logical, &mut why).expect("a plan");
                assert!(p.plan.objective <= others[0].plan.objective, "{seed}");
            } else {
                assert!(ins.iter().chain(&outs).all(Option::is_none));
            }
        }
    }
    assert!(
        physical > 160 && converted > 80 && at_ends > 80 && padded > 20,
        "{physical} with layouts, {converted} with conversions, {at_ends} stored ends, {padded} padded"
    );
    assert!(carried > 100 && copied > 20, "{carried} reshapes carried, {copied} copied");
}

#[test]
fn only_the_entry_has_other_ends() {
    let mut module = random_graph(3);
    let main = module.graph("main").expect("it is there").clone();
    let params: Vec<GraphVar> =
        main.params.iter().map(|p| GraphVar::new(p.name().clone(), p.ty().clone())).collect();
    let call = GraphExpr::Call {
        op: "cls.inner".into(),
        args: params.iter().map(GraphVar::expr).collect(),
        attrs: Attrs::new(),
    };
    let (blocks, ret_ty) = (Vec::new(), None);
    let outer =
        GraphFunc { params, blocks, ret: call, ret_ty, attrs: Attrs::new(), ..(*main).clone() };
    module.insert("inner", (*main).clone());
    module.insert("main", outer);
    let time_limit = Duration::from_secs(5);
    for seed in 0..5 {
        let costs = &RandomCosts(seed);
        let options = PlanOptions {
            policies: &[ConvLayout::ChannelsLast],
            costs,
            time_limit,
            io: IoLayout::Physical,
            decided: &|_, _| None,
        };
        let mut why = Remarks::new();
        let (planned, ..) = plan_layout(&module, &options, &mut why).expect("a plan");
        let inner = planned.graph("inner").expect("it is there");
        assert!(!inner.attrs.contains_key(stored::INPUTS));
        assert!(!inner.attrs.contains_key(stored::OUTPUTS));
    }
}
