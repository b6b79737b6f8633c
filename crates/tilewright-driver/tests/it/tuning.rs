//! Tuning: what is measured, what plans make of it, and what is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tilewright_driver::calibrated;
use tilewright_driver::layout;
use tilewright_driver::options::{Listener, Message};
use tilewright_driver::random::Random;
use tilewright_driver::timings::{Basis, Timings, Unit};
use tilewright_driver::tune::{Report, Request, Tuning, measure, tune};
use tilewright_driver::whole;
use tilewright_driver::{
    Error, IoLayout, LayoutPolicy, Module, Options, Result, Target, compile, print,
};
use tilewright_ir::Remarks;
use tilewright_layout::ConvLayout;
use tilewright_layout::flow::{Costs, Priced};
use tilewright_tune::{Kind, Measured, Store};

use crate::schedules::{chain, image, product};

fn convolutions() -> Module {
    chain(&image(24, 9, 3, 1), 3, &mut Random::new(3))
}

fn options() -> Options {
    Options::new().threads(1).cache(false)
}

struct File {
    _folder: TempDir,
    path: PathBuf,
    store: Store,
}

fn file() -> File {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("tuning.sqlite");
    let store = Store::open(&path).expect("a new file");
    File { _folder: folder, path, store }
}

/// Options for one machine, whichever this is: which ways there are depends on it.
fn for_one_machine() -> Options {
    let target = Target::new("x86_64-unknown-linux-gnu", "", "+avx2,+fma");
    options().target(target)
}

/// Tunes with answers that are made up.
fn tuned(
    module: &Module,
    store: &Store,
    answer: impl FnMut(&Request) -> Result<Measured>,
) -> Result<Report> {
    tuned_for(&options(), module, store, answer)
}

fn tuned_for(
    options: &Options,
    module: &Module,
    store: &Store,
    mut answer: impl FnMut(&Request) -> Result<Measured>,
) -> Result<Report> {
    let tuning = &mut Tuning {
        store,
        budget: Duration::from_secs(600),
        whole: true,
        measure: &mut answer,
        progress: &mut |_, _, _| {},
    };
    tune(module, options, tuning)
}

/// A time that depends on the request alone.
fn pretended(request: &Request) -> f64 {
    let text = format!("{request:?}");
    text.bytes().fold(7u32, |h, b| h.wrapping_mul(31).wrapping_add(b.into())) as f64 % 9973.0 + 1.0
}

#[test]
fn what_is_measured_is_kept_and_counts() {
    let (module, file) = (convolutions(), file());
    let mut asked = 0;
    let machine = for_one_machine();
    let report = tuned_for(&machine, &module, &file.store, |request| {
        asked += 1;
        Ok(Measured::Nanoseconds(pretended(request)))
    })
    .expect("it is tuned");
    assert_eq!((report.measured, report.new), (report.candidates, report.candidates));
    assert!(report.candidates >= 10, "{report:?}");
    assert_eq!(asked, report.candidates + report.models.len());
    let names: Vec<&str> = report.models.keys().map(|name| &**name).collect();
    let plans = ["plan", "plan:2", "plan:3", "plan:4", "plan:5", "plan:6", "plan:7", "plan:8"];
    let fixed = ["nchw16c", "nchw8c", "nhwc", "none"];
    assert_eq!(names, [&fixed[..], &plans[..]].concat());

    // The same again measures nothing.
    let again = tuned_for(&machine, &module, &file.store, |_| Err(Error::input("asked again")))
        .expect("tuned");
    assert_eq!((again.new, again.measured), (0, report.candidates));
    assert_eq!(again.models, report.models);

    // Every way of a convolution costs what was measured.
    let target = machine.resolve_target().expect("a target");
    let timings = Timings::read(&target, 1, &file.path).expect("read");
    assert_eq!(timings.unit(), Unit::Nanoseconds);
    let (_, plans, _) =
        layout::plan(&module, &timings, IoLayout::Logical, &mut Remarks::new()).expect("a plan");
    let all = file.store.all().expect("it reads");
    let of = |kind: Kind| {
        let all = all.iter().filter(move |r| r.kind == kind);
        all.filter_map(|r| match r.measured {
            Measured::Nanoseconds(n) => Some(n as u64),
            Measured::Failure(_) => None,
        })
    };
    let known: Vec<u64> = of(Kind::Contraction).chain(of(Kind::Other)).collect();
    let mut convolutions = 0;
    for call in &plans[0].problem.calls {
        for way in call.alternatives.iter().filter(|w| w.name == "nhwc" || w.name == "nchw8c") {
            let cost = way.cost.get().expect("a cost");
            assert!(known.contains(&cost), "{}: {cost}", way.name);
            convolutions += 1;
        }
    }
    assert!(convolutions > 0);
    // So does every conversion that was.
    let moved: Vec<u64> = of(Kind::Conversion).collect();
    let tensors = &plans[0].problem.tensors;
    let all = tensors.iter().flat_map(|t| t.conversions.iter().flatten());
    let found = all.filter(|c| c.get().is_some_and(|c| moved.contains(&c))).count();
    assert!(!moved.is_empty() && found >= moved.len(), "{found} of {moved:?}");
}

#[test]
fn a_tuner_that_is_stopped_goes_on_where_it_was() {
    let (module, file) = (convolutions(), file());
    let mut left = 4;
    let stopped = tuned(&module, &file.store, |request| {
        left -= 1;
        match left {
            0 => Err(Error::input("stopped")),
            _ => Ok(Measured::Nanoseconds(pretended(request))),
        }
    });
    assert!(stopped.is_err());
    assert_eq!(file.store.all().expect("it reads").len(), 3);
    let report =
        tuned(&module, &file.store, |r| Ok(Measured::Nanoseconds(pretended(r)))).expect("tuned");
    assert_eq!(report.new, report.candidates - 3);
    assert_eq!(report.measured, report.candidates);
}

#[test]
fn a_candidate_that_fails_is_said_once_and_left_alone() {
    let (module, file) = (convolutions(), file());
    let mut first = true;
    let report = tuned(&module, &file.store, |request| {
        Ok(if std::mem::replace(&mut first, false) {
            Measured::Failure("it crashed".to_owned())
        } else {
            Measured::Nanoseconds(pretended(request))
        })
    })
    .expect("it is tuned");
    assert_eq!(report.failures.len(), 1);
    assert_eq!(report.failures[0].1, "it crashed");
    assert_eq!(report.measured, report.candidates - 1);
    let again = tuned(&module, &file.store, |_| Err(Error::input("asked again"))).expect("tuned");
    assert!(again.failures.is_empty());
}

#[test]
fn the_layout_whose_run_was_the_shortest_is_taken() {
    let module = convolutions();
    let mut texts = BTreeMap::new();
    for (best, policy) in [
        ("nchw8c", Some(ConvLayout::Blocked(8))),
        ("nhwc", Some(ConvLayout::ChannelsLast)),
        ("none", None),
        ("plan", None),
        ("plan:3", None),
    ] {
        let file = file();
        tuned(&module, &file.store, |request| {
            Ok(Measured::Nanoseconds(match request {
                Request::Model { layout, .. } if layout == best => 10.0,
                Request::Model { .. } => 20.0,
                function => pretended(function),
            }))
        })
        .expect("it is tuned");
        let options = options().tuning(file.path.clone());
        let timings = options.timings().expect("timings");
        let mut why = Remarks::new();
        let (chosen, _) =
            layout::choose(&module, &timings, IoLayout::Logical, &mut why).expect("a layout");
        let io = IoLayout::Logical;
        let expected = match (best, policy) {
            ("plan", _) => layout::plan(&module, &timings, io, &mut why).expect("a plan").0,
            ("plan:3", _) => layout::nth(&module, &timings, io, 3, &mut why).expect("a plan").0,
            (_, Some(policy)) => layout::apply(&module, policy, io, &mut why).expect("a layout").0,
            (_, None) => module.clone(),
        };
        texts.insert(best, print(&chosen));
        // What is measured says nothing of stored inputs and outputs.
        assert!(whole::measured(&module, &timings, IoLayout::Physical).is_empty());
        assert_eq!(whole::measured(&module, &timings, io)[0].0, 10.0);
        assert_eq!(print(&chosen), print(&expected), "{best}");
        // Results stay.
        let tuned = options.clone().layout(LayoutPolicy::Plan);
        let [a, b] = [&tuned, &self::options()].map(|o| compile(&module, o).expect("it compiles"));
        let port = &a.inputs()[0];
        let x = Random::new(5).tensor(port.dtype, &port.fixed().expect("fixed")).expect("a tensor");
        let [a, b] = [a, b].map(|e| e.run(std::slice::from_ref(&x)).expect("it runs"));
        let pairs = a[0].as_slice::<f32>().unwrap().iter().zip(b[0].as_slice::<f32>().unwrap());
        for (a, b) in pairs {
            assert!((a - b).abs() <= 1e-3 * b.abs().max(1.0), "{best}: {a} and {b}");
        }
    }
    assert_ne!(texts["plan"], texts["plan:3"]);
}

#[test]
fn the_best_plans_are_in_order_and_found_again_whatever_calls_cost() {
    let module = convolutions();
    let timings = options().timings().expect("timings");
    let io = IoLayout::Logical;
    let (best, plans, _) =
        layout::plan(&module, &timings, io, &mut Remarks::new()).expect("a plan");
    let ranked = whole::ranked(&plans, 6).expect("they are ranked");
    assert_eq!((ranked.len(), ranked[0].cost), (6, plans[0].plan.objective));
    assert!(ranked.is_sorted_by_key(|r| r.cost));
    let mut texts = Vec::new();
    for r in &ranked {
        // Measured times make other costs of the same problem.
        let file = file();
        tuned(&module, &file.store, |request| match request {
            Request::Model { .. } => Ok(Measured::Failure("none".to_owned())),
            function => Ok(Measured::Nanoseconds(pretended(function))),
        })
        .expect("it is tuned");
        let other = Timings::from_store(timings.target(), 1, &file.store).expect("timings");
        for timings in [&timings, &other] {
            let found = layout::plan_as(&module, timings, io, &r.ways, &mut Remarks::new());
            let (found, of, _) = found.expect("a layout").expect("it is found");
            texts.push(print(&found));
            let choice = whole::choice(&r.ways, &of[0].graph, &of[0].problem);
            assert_eq!(choice, Some(of[0].plan.choices()));
        }
        let [.., a, b] = &texts[..] else { panic!("two texts") };
        assert_eq!(a, b);
    }
    assert_eq!(texts[0], print(&best));
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 6, "each is another");
    // A text that says something else is no plan.
    let broken = ranked[0].ways.replacen(' ', " 00", 1);
    for ways in ["", "main", &broken, &format!("{} 12345678", ranked[0].ways.trim_end())] {
        let found = layout::plan_as(&module, &timings, io, ways, &mut Remarks::new());
        assert!(found.expect("no error").is_none(), "{ways}");
    }
    layout::nth(&module, &timings, io, 0, &mut Remarks::new()).expect_err("there is no plan 0");
}

#[test]
fn a_way_that_was_estimated_to_be_far_is_measured_when_the_others_turn_out_slow() {
    let (module, file) = (convolutions(), file());
    let mut slow = 0.0;
    let first = tuned(&module, &file.store, |request| {
        slow += 1e6;
        Ok(Measured::Nanoseconds(match request {
            Request::Model { .. } => 1.0,
            Request::Function { .. } => slow,
        }))
    })
    .expect("it is tuned");
    // Nothing that may be worth it is left, by what is known now.
    let again = tuned(&module, &file.store, |_| Err(Error::input("asked again"))).expect("tuned");
    assert_eq!((again.new, again.candidates), (0, first.candidates));
}

#[test]
fn a_file_that_cannot_be_read_is_told_about_and_estimates_count() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "no database".repeat(100)).expect("a file");
    let said = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = said.clone();
    let listener: Listener = std::sync::Arc::new(move |message: Message<'_>| {
        if let Message::Warning(text) = message {
            heard.lock().unwrap().push(text.to_owned());
        }
    });
    let options = options().tuning(path).listener(Some(listener));
    assert_eq!(options.timings().expect("timings").unit(), Unit::Cycles);
    assert!(said.lock().unwrap()[0].contains("notes.txt"));
}

#[test]
fn functions_are_measured_by_their_text() {
    let module = convolutions();
    let mut requests = BTreeMap::new();
    let file = file();
    tuned(&module, &file.store, |request| {
        if let Request::Function { text, free, .. } = request {
            requests.insert(text.clone(), free.clone());
        }
        Ok(Measured::Nanoseconds(1.0))
    })
    .expect("it is tuned");
    for (text, free) in requests.iter().take(6) {
        let time = measure(text, free, &options(), Duration::from_millis(1)).expect("it runs");
        assert!(time > 0.0);
    }
    let error = measure("def f(", &[], &options(), Duration::ZERO).expect_err("no function");
    assert!(matches!(error, Error::Syntax(_) | Error::Input(_)), "{error}");
}

#[test]
fn a_calibration_counts_for_its_target_until_something_is_measured() {
    let (module, file) = (convolutions(), file());
    let machine = for_one_machine().tuning(file.path.clone());
    let written = machine.resolve_target().expect("a target");
    assert_eq!(machine.timings().expect("timings").basis(), Basis::Written);
    let costs = written.costs.with(0.25, [("fma", 1.0)]).expect("costs of some machine");
    calibrated::keep(&file.store, &written, &costs).expect("it is kept");
    let target = machine.resolve_target().expect("a target");
    assert_eq!(target.costs, costs);
    let timings = machine.timings().expect("timings");
    assert_eq!((timings.basis(), timings.unit()), (Basis::Calibrated, Unit::Nanoseconds));
    assert_eq!(timings.target().costs, costs);
    let cost = |timings: &Timings| {
        let func = module.tensor("f").expect("a function");
        let free = &[false, true, true];
        timings.call(&Priced {
            name: "f",
            func,
            free,
            constants: 0,
            joined: &[],
            cold: &[],
            reduced: false,
            further: false,
        })
    };
    let estimated = Timings::estimated(&written, 1);
    assert!(cost(&timings) < cost(&estimated) && cost(&timings) > 0.25 * cost(&estimated));
    // Another target, and a file without it, have the written ones.
    let other = Target::new("x86_64-unknown-linux-gnu", "", "+avx2,+fma,+bmi");
    let other = machine.clone().target(other);
    assert_eq!(other.resolve_target().expect("a target").costs.cycle, None);
    assert_eq!(for_one_machine().resolve_target().expect("a target").costs.cycle, None);
    tuned_for(&machine, &module, &file.store, |r| Ok(Measured::Nanoseconds(pretended(r))))
        .expect("it is tuned");
    let basis = machine.timings().expect("timings").basis();
    assert!(matches!(basis, Basis::Measured(n) if n >= 10), "{basis:?}");
}

#[test]
fn a_model_without_convolutions_has_nothing_to_tune() {
    let module = chain(&product(16, 16, 16), 2, &mut Random::new(3));
    let error = tuned(&module, &file().store, |_| Ok(Measured::Nanoseconds(1.0)));
    let error = error.expect_err("nothing to tune").to_string();
    assert!(error.contains("no convolution"), "{error}");
}
