//! Random graphs before and after their layouts flow, and the pad values of single functions.

use std::sync::Arc;

use proptest::prelude::*;
use tilewright_interp::run_module;
use tilewright_ir::{
    DType, Dim, Expr, GraphVar, Module, Remarks, Tensor, TensorFunc, random, well_formed,
};
use tilewright_layout::flow::{Anchor, FlowOptions, flow_layout};
use tilewright_layout::propagate::Propagation;
use tilewright_layout::regroup::Regrouping;
use tilewright_layout::{Conversion, TiledLayout, cancel_layout};
use tilewright_ops::Operand;
use tilewright_ops::te::{self, Reducer};

use crate::common::{Graph, calls, extents, operand};

/// Numbers from a seed (SplitMix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, n: usize) -> usize {
        (random::bits(&mut self.0) % n as u64) as usize
    }
}

pub(super) fn map(shape: &[usize], f: impl Fn(Expr) -> Expr) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::I32);
    let y = te::compute("y", shape, |i| f(x.at(i)));
    te::func([&x], [&y]).expect("a function")
}

pub(super) fn combine(shape: &[usize], f: impl Fn(Expr, Expr) -> Expr) -> TensorFunc {
    let [a, b] = ["a", "b"].map(|n| te::placeholder(n, shape, DType::I32));
    let y = te::compute("y", shape, |i| f(a.at(i), b.at(i)));
    te::func([&a, &b], [&y]).expect("a function")
}

/// The second axis broadcasts a vector.
pub(super) fn broadcast(shape: &[usize]) -> TensorFunc {
    let a = te::placeholder("a", shape, DType::I32);
    let b = te::placeholder("b", &shape[1..2], DType::I32);
    let y = te::compute("y", shape, |i| a.at(i) * b.at([&i[1]]));
    te::func([&a, &b], [&y]).expect("a function")
}

/// Reduces one axis, and puts the result back over all of it.
fn centred(shape: &[usize], axis: usize, reducer: Reducer) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::I32);
    let k = te::reduce_axis(shape[axis], "k");
    let rest: Vec<usize> =
        shape.iter().enumerate().filter(|(d, _)| *d != axis).map(|s| *s.1).collect();
    let m = te::compute("m", &rest, |i| {
        let mut at = i.to_vec();
        at.insert(axis, k.expr());
        te::reduce(reducer, x.at(at), [&k])
    });
    let y = te::compute("y", shape, |i| {
        let others = i.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, e)| e.clone());
        x.at(i) - m.at(others.collect::<Vec<_>>())
    });
    te::func([&x], [&y]).expect("a function")
}

/// What a consumer in physical layout sees, padding included: each cell times its position.
fn weighted(shape: &[usize]) -> TensorFunc {
    map_indexed(shape, |value, i| {
        let position = i.iter().zip(shape).fold(Expr::i32(0), |sum, (e, n)| sum * *n as i64 + e);
        value * (position + 1)
    })
}

fn map_indexed(shape: &[usize], f: impl Fn(Expr, &[Expr]) -> Expr) -> TensorFunc {
    let x = te::placeholder("x", shape, DType::I32);
    let y = te::compute("y", shape, |i| f(x.at(i), i));
    te::func([&x], [&y]).expect("a function")
}

fn layouts(shape: &[i64]) -> Vec<TiledLayout> {
    let made = [
        TiledLayout::blocked(shape, &[0, 1, 2, 1], &[(1, 4)]),
        TiledLayout::blocked(shape, &[0, 1, 2, 1], &[(1, 3)]),
        TiledLayout::blocked(shape, &[0, 2, 1], &[]),
        TiledLayout::blocked(shape, &[2, 0, 1, 2], &[(2, 2)]),
    ];
    made.into_iter().map(|l| l.expect("a layout")).collect()
}

fn random_graph(seed: u64) -> Module {
    let mut dice = Dice(seed);
    let shape = [1 + dice.below(2), 1 + dice.below(7), 1 + dice.below(4)];
    let logical = shape.map(|d| d as i64);
    let layouts = layouts(&logical);
    let mut g = Graph::default();
    let mut values: Vec<GraphVar> =
        ["x", "z"].map(|n| g.input_of(n, &Operand::new(&shape, DType::I32))).to_vec();
    let vector = g.input_of("v", &Operand::new(&shape[1..2], DType::I32));
    let mut seen: Vec<GraphVar> = Vec::new();
    for _ in 0..3 + dice.below(8) {
        let a = values[dice.below(values.len())].clone();
        let b = values[dice.below(values.len())].clone();
        let new = match dice.below(9) {
            0 => g.call("inc", map(&shape, |e| e + 1), &[&a]),
            1 => g.call("relu", map(&shape, |e| e.max(0)), &[&a]),
            2 => g.call("add", combine(&shape, |a, b| a + b), &[&a, &b]),
            3 => g.call("mul", combine(&shape, |a, b| a * b), &[&a, &b]),
            4 => g.call("scale", broadcast(&shape), &[&a, &vector]),
            5 => {
                let reducer = [Reducer::Sum, Reducer::Max][dice.below(2)];
                g.call("centre", centred(&shape, dice.below(3), reducer), &[&a])
            }
            _ => {
                // There and back, with a call between them that reads the padding.
                let layout = &layouts[dice.below(layouts.len())];
                let pad = Expr::i32([0, 0, 1, 2][dice.below(4)]);
                let packed = g.call("pack", layout.pack(DType::I32, Some(&pad)), &[&a]);
                let work = weighted(&extents(&operand(&packed)));
                let worked = g.call("work", work, &[&packed]);
                if dice.below(3) == 0 {
                    seen.push(worked.clone());
                }
                g.call("crop", layout.crop(DType::I32), &[&worked])
            }
        };
        values.push(new);
    }
    seen.push(values[values.len() - 1].clone());
    g.returns(&seen.iter().collect::<Vec<_>>())
}

pub(super) fn random_inputs(module: &Module, seed: u64) -> Vec<Tensor> {
    let mut dice = Dice(seed ^ 0xabcd);
    let main = module.graph("main").expect("main");
    let tensor = |v: &GraphVar| {
        let shape = extents(&operand(v));
        let count = shape.iter().product();
        let values: Vec<i32> = (0..count).map(|_| dice.below(19) as i32 - 9).collect();
        Tensor::from_slice(&shape, &values).expect("small")
    };
    main.params.iter().map(tensor).collect()
}

fn conversions(module: &Module) -> usize {
    let is = |name: &Arc<str>| {
        let f = module.tensor(name).expect("a function");
        Conversion::recognise(f).is_some()
    };
    let main = module.graph("main").expect("main");
    let called = main.bindings().filter_map(|b| match &b.value {
        tilewright_ir::GraphExpr::CallTir { func, .. } => Some(func),
        _ => None,
    });
    called.filter(|f| is(f)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flow_changes_no_result_and_leaves_no_pair(seed in any::<u64>()) {
        let module = random_graph(seed);
        let inputs = random_inputs(&module, seed);
        let expected = run_module(&module, "main", &inputs).expect("it runs");
        let mut why = Remarks::new();
        let (flowed, _) = flow_layout(&module, &FlowOptions::default(), &mut why).expect("it flows");
        let cancelled = cancel_layout(&flowed, &mut why).expect("it cancels");
        for new in [&flowed, &cancelled] {
            let found = run_module(new, "main", &inputs).expect("it still runs");
            for (a, b) in expected.iter().zip(&found) {
                prop_assert!(a.same(b), "{:?} and {:?} in {:#?}", a, b, calls(new));
            }
        }
        let again = cancel_layout(&cancelled, &mut why).expect("it cancels");
        prop_assert_eq!(conversions(&again), conversions(&cancelled), "{:#?}", calls(&cancelled));
    }
}

/// A value that is padded lies nowhere by itself. One that is it under other axes and in another order is made of it.
#[test]
fn what_is_padded_is_there_for_other_axes() {
    let mut g = Graph::default();
    let x = g.input_of("x", &Operand::new(&[3, 6], DType::I32));
    let blocks = TiledLayout::blocked(&[3, 6], &[0, 1, 1], &[(1, 4)]).expect("a layout");
    let padded = g.call("padded", blocks.pack(DType::I32, Some(&Expr::i32(5))), &[&x]);
    let [before, after] =
        [[3usize, 2, 4].map(Dim::from).to_vec(), [3usize, 8].map(Dim::from).to_vec()];
    let regrouping = Regrouping::of_shapes(&before, &after).expect("one of both");
    let view = g.call("view", regrouping.func("view", DType::I32), &[&padded]);
    let worked = g.call("worked", map(&[3, 8], |e| e * 2), &[&view]);
    let module = g.returns(&[&worked]);

    let order = vec![(1, 0), (2, 0), (0, 0)];
    let from = TiledLayout { order, ..TiledLayout::identity(&before) };
    let to = regrouping.carry(&from).expect("both axes of eight stay together");
    let anchors = |v: &GraphVar, f: &TensorFunc| {
        let buffers: Vec<_> = f.buffers().cloned().collect();
        let layouts = buffers.into_iter().zip([from.clone(), to.clone()]).collect();
        (**v.name() == *"view").then_some(Anchor { layouts, zero: false })
    };
    let options = FlowOptions { anchors: &anchors, regroups: true, ..FlowOptions::default() };
    let (flowed, left) = flow_layout(&module, &options, &mut Remarks::new()).expect("it flows");
    well_formed::check_module(&flowed).unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(left.iter().any(|l| l.to == from), "{left:?}");
    let inputs = random_inputs(&module, 1);
    let [expected, found] =
        [&module, &flowed].map(|m| run_module(m, "main", &inputs).expect("it runs").remove(0));
    assert!(expected.same(&found), "{expected:?} and {found:?}");
}

/// The pad value of the result, given those of the arguments, of `[6]` in blocks of four.
fn pad_of(func: TensorFunc, pads: &[i64]) -> Option<i64> {
    let func = Arc::new(func);
    let layout = TiledLayout::blocked(&[6], &[0, 0], &[(0, 4)]).expect("a layout");
    let first = func.buffers().next().expect("a parameter").clone();
    let propagation = Propagation::new(&func, &[(first, layout)]).expect("it follows");
    let mut pads: Vec<Option<Expr>> =
        pads.iter().map(|p| Some(Expr::int(*p, DType::I32))).collect();
    pads.push(None);
    let propagated = propagation.build(&pads).expect("it is written");
    propagated.pads.last().expect("a result").as_ref().and_then(Expr::as_int)
}

#[test]
fn pad_values_are_those_of_the_function() {
    assert_eq!(pad_of(map(&[6], |e| e + 1), &[0]), Some(1));
    assert_eq!(pad_of(map(&[6], |e| e.max(0)), &[0]), Some(0));
    assert_eq!(pad_of(combine(&[6], |a, b| a * b), &[3, 4]), Some(12));
    // A position is another one in each cell.
    assert_eq!(pad_of(map_indexed(&[6], |e, i| e + &i[0]), &[0]), None);
    // Both sides agree, whatever the condition is.
    let same = map_indexed(&[6], |e, i| Expr::select(i[0].clone().less(3), e.clone(), e * 1));
    assert_eq!(pad_of(same, &[5]), Some(5));
}

#[test]
fn what_does_not_follow_is_refused_with_the_access() {
    let x = te::placeholder("x", &[6], DType::I32);
    let y = te::compute("y", &[5], |i| x.at([&i[0] + 1]) - x.at([&i[0]]));
    let func = Arc::new(te::func([&x], [&y]).expect("a function"));
    let layout = TiledLayout::blocked(&[6], &[0, 0], &[(0, 4)]).expect("a layout");
    let first = func.buffers().next().expect("a parameter").clone();
    let refused = Propagation::new(&func, &[(first, layout)]).err().expect("a refusal").render();
    assert_eq!(
        refused,
        "error: `x` is accessed at `vi0 + 1` along axis 0, which the layout splits into [2, 4]\n"
    );
}
