//! Plans large made-up networks, and prints what that took.
//!
//! ```text
//! cargo run --release -p tilewright-layout --example networks -- [CALLS [LAYERS [SEEDS]]]
//! ```
//!
//! `LAYERS` is the depth of a dense block, each layer of which reads all layers before it.

use std::time::Instant;

use tilewright_layout::solver::{Options, check, solve};

#[path = "../tests/solver/generate.rs"]
#[allow(dead_code)]
mod generate;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let calls = numbers.next().unwrap_or(1000);
    let layers = numbers.next().unwrap_or(12);
    for seed in 0..numbers.next().unwrap_or(3) as u64 {
        let problem = generate::network(seed, calls, layers);
        let plan = solve(&problem, &Options::default()).expect("nothing is forbidden");
        println!(
            "seed {seed}: {} calls, objective {}, greedy {}, gap {:.4} %, {} conversions",
            problem.calls.len(),
            plan.objective,
            plan.alternatives["greedy"],
            plan.gap * 100.0,
            plan.conversions.len(),
        );
        println!("  {:?}", plan.statistics);
        let start = Instant::now();
        check(&problem, &plan).expect("the solver proves what it says");
        let steps: usize = plan.certificate.lists.iter().map(Vec::len).sum();
        println!("  checked {steps} steps in {:.2} s", start.elapsed().as_secs_f64());
    }
}
