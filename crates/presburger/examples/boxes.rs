//! Random questions about sets in small boxes, against enumeration of all points.
//!
//! `cargo run --release -p presburger --example boxes -- [SETS [SEED [KIND]]]` asks every kind of
//! question (or one of `points`, `pairs`, `extremes`, ...) about so many random sets. It tells the
//! smallest sets whose answers were wrong or missing, how many questions that were, and what the
//! longest took.

#[path = "../tests/boxes/mod.rs"]
mod boxes;

use boxes::{Asker, Kind};

/// Sets that are drawn from one seed.
const BATCH: u32 = 50;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match args.get(at).map(|a| a.parse()) {
        None => default,
        Some(Ok(n)) => n,
        Some(Err(_)) => panic!("{} is no number", args[at]),
    };
    let (sets, seed) = (number(0, 1000), number(1, 1));
    let mut failed = false;
    for kind in Kind::ALL {
        let name = format!("{kind:?}").to_lowercase();
        if args.get(2).is_some_and(|only| *only != name) {
            continue;
        }
        let asker = Asker::default();
        let mut wrong = 0;
        let batches = sets.div_ceil(u64::from(BATCH));
        for batch in 0..batches {
            if let Err(e) = kind.run(BATCH, seed.wrapping_add(batch), &asker) {
                wrong += 1;
                println!("{name}, seed {}: {e}\n", seed.wrapping_add(batch));
            }
        }
        println!(
            "{name}: {} questions about {} sets, {wrong} batches with a wrong or missing answer; \
             at most {:?} and {} operations",
            asker.asked.get(),
            batches * u64::from(BATCH),
            asker.longest.get(),
            asker.dearest.get(),
        );
        failed |= wrong > 0;
    }
    if failed {
        std::process::exit(1);
    }
}
