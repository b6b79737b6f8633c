//! Writes random problems and their plans as JSON, for `conformance/plan`.
//!
//! ```text
//! cargo run --release -p tilewright-layout --example problems -- FOLDER COUNT SEED
//! ```
//!
//! For each seed there are `NAME.problem.json` and, unless nothing is allowed, `NAME.plan.json`,
//! the proof left out.

use std::error::Error;
use std::path::Path;

use tilewright_layout::solver::{Certificate, Error as PlanError, Options, Problem, check, solve};

#[path = "../tests/solver/generate.rs"]
#[allow(dead_code)]
mod generate;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = &arguments[..] else {
        return Err("the arguments are FOLDER COUNT SEED".into());
    };
    let (folder, count, first) = (Path::new(folder), count.parse::<u64>()?, seed.parse::<u64>()?);
    for seed in first..first + count {
        let (name, problem) = match seed % 4 {
            0 => ("tangled", generate::tangled(seed, 8)),
            1 => ("network", generate::network(seed, 40, 4)),
            _ => ("small", generate::small(seed, 12)),
        };
        write(folder, &format!("{name}_{seed}"), &problem)?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, problem: &Problem) -> Result<(), Box<dyn Error>> {
    std::fs::write(folder.join(format!("{name}.problem.json")), problem.to_json())?;
    let mut plan = match solve(problem, &Options::default()) {
        Ok(plan) => plan,
        Err(PlanError::Infeasible) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    check(problem, &plan)?;
    plan.certificate = Certificate::default();
    std::fs::write(folder.join(format!("{name}.plan.json")), plan.to_json())?;
    Ok(())
}
