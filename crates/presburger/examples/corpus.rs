//! Asks recorded questions again, compares the answers, and says how long they take.
//!
//!     cargo run --release -p presburger --example corpus -- QUESTIONS.tsv [FUNCTION]
//!
//! A line is: function, nanoseconds that isl took, its answer, arguments, all as text.

use std::collections::BTreeMap;
use std::time::Instant;

use presburger::{Budget, Dim, PwAff, Relation, Res, Stop};

#[derive(Default)]
struct Row {
    asked: usize,
    skipped: usize,
    stopped: usize,
    wrong: usize,
    slower: usize,
    isl: f64,
    ours: f64,
    log_ratio: f64,
}

/// What a question gives.
enum Answer {
    Bool(bool),
    Set(Relation),
    Function(PwAff),
    /// Nothing that the record could be compared with.
    Any,
}

fn rel(text: &str) -> Relation {
    Relation::parse(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn pw(text: &str) -> PwAff {
    PwAff::parse(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn same_function(a: &PwAff, b: &PwAff, budget: &Budget) -> Res<bool> {
    a.graph()?.is_equal(&b.graph()?, budget)
}

/// Runs a question; the parsing of arguments is not in the time.
fn ask(function: &str, args: &[&str], budget: &Budget) -> Option<(Res<Answer>, f64)> {
    macro_rules! timed {
        ($e:expr) => {{
            let t = Instant::now();
            let answer = $e;
            let time = t.elapsed().as_nanos() as f64;
            Some((answer, time))
        }};
    }
    let kind = |text: &str| match text {
        "1" => Dim::Param,
        "2" => Dim::In,
        _ => Dim::Out,
    };
    let int = |text: &str| text.parse::<usize>().unwrap_or(0);
    let (set, bool, function_) = (Answer::Set, Answer::Bool, Answer::Function);
    let any = |_| Answer::Any;
    let r = |k: usize| rel(args[k]);
    let p = |k: usize| pw(args[k]);
    match function {
        "isl_set_is_empty" | "isl_map_is_empty" => {
            let a = r(0);
            timed!(a.is_empty(budget).map(bool))
        }
        "isl_set_is_subset" | "isl_map_is_subset" => {
            let (a, b) = (r(0), r(1));
            timed!(a.is_subset(&b, budget).map(bool))
        }
        "isl_set_is_equal" => {
            let (a, b) = (r(0), r(1));
            timed!(a.is_equal(&b, budget).map(bool))
        }
        "isl_set_is_disjoint" => {
            let (a, b) = (r(0), r(1));
            timed!(a.is_disjoint(&b, budget).map(bool))
        }
        "isl_set_is_bounded" => {
            let a = r(0);
            timed!(a.is_bounded(budget).map(bool))
        }
        "isl_map_is_injective" => {
            let a = r(0);
            timed!(a.is_injective(budget).map(bool))
        }
        "isl_set_coalesce" | "isl_map_coalesce" => {
            let a = r(0);
            timed!(a.coalesce(budget).map(set))
        }
        "isl_set_lexmin" => {
            let a = r(0);
            timed!(a.lexicographic(false, budget).map(set))
        }
        "isl_set_lexmax" => {
            let a = r(0);
            timed!(a.lexicographic(true, budget).map(set))
        }
        "isl_set_subtract" | "isl_map_subtract" => {
            let (a, b) = (r(0), r(1));
            timed!(a.subtract(&b, budget).map(set))
        }
        "isl_set_complement" => {
            let a = r(0);
            timed!(a.complement(budget).map(set))
        }
        "isl_set_gist" => {
            let (a, b) = (r(0), r(1));
            timed!(a.gist(&b, budget).map(set))
        }
        "isl_set_apply" => {
            let (a, b) = (r(0), r(1));
            timed!(a.apply(&b, budget).map(set))
        }
        "isl_set_compute_divs" => {
            let a = r(0);
            timed!(a.compute_divs(budget).map(set))
        }
        "isl_set_project_out" => {
            let a = r(0);
            let (k, at, n) = (kind(args[1]), int(args[2]), int(args[3]));
            timed!(a.project_out(k, at, n, budget).map(set))
        }
        "isl_set_intersect" => {
            let (a, b) = (r(0), r(1));
            timed!(a.intersect(&b, budget).map(set))
        }
        "isl_set_union" => {
            let (a, b) = (r(0), r(1));
            timed!(Ok(set(a.union(&b))))
        }
        "isl_set_detect_equalities" => {
            let a = r(0);
            timed!(a.detect_equalities(budget).map(set))
        }
        "isl_set_remove_redundancies" => {
            let a = r(0);
            timed!(a.remove_redundancies(budget).map(set))
        }
        "isl_set_affine_hull" => {
            let a = r(0);
            timed!(a.affine_hull(budget).map(set))
        }
        "isl_set_sample_point" => {
            let a = r(0);
            timed!(a.sample(budget).map(any))
        }
        "isl_set_dim_min_val" | "isl_set_dim_max_val" => {
            let a = r(0);
            let at = int(args[1]);
            let max = function.contains("max");
            timed!(match a.extreme_value(Dim::Out, at, max, budget) {
                Err(Stop::Unbounded | Stop::Empty) => Ok(Answer::Any),
                v => v.map(|_| Answer::Any),
            })
        }
        "isl_set_dim_min" | "isl_set_dim_max" => {
            let a = r(0);
            let at = int(args[1]);
            let max = function.contains("max");
            timed!(a.extreme(at, max, budget).map(function_))
        }
        "isl_map_apply_range" => {
            let (a, b) = (r(0), r(1));
            timed!(a.then(&b, budget).map(set))
        }
        "isl_map_reverse" => {
            let a = r(0);
            timed!(Ok(set(a.reverse())))
        }
        "isl_map_domain" => {
            let a = r(0);
            timed!(a.domain(budget).map(set))
        }
        "isl_map_range" => {
            let a = r(0);
            timed!(a.range(budget).map(set))
        }
        "isl_map_intersect_domain" => {
            let (a, b) = (r(0), r(1));
            timed!(a.intersect_domain(&b, budget).map(set))
        }
        "isl_map_flat_range_product" => {
            let (a, b) = (r(0), r(1));
            timed!(a.flat_range_product(&b, budget).map(set))
        }
        "isl_map_from_pw_aff" => {
            let a = p(0);
            timed!(a.graph().map(set))
        }
        "isl_pw_aff_coalesce" => {
            let a = p(0);
            timed!(a.coalesce(budget).map(function_))
        }
        "isl_pw_aff_gist" => {
            let (a, b) = (p(0), r(1));
            timed!(a.gist(&b, budget).map(function_))
        }
        "isl_pw_aff_add" => {
            let (a, b) = (p(0), p(1));
            timed!(a.add(&b, budget).map(function_))
        }
        "isl_pw_aff_floor" => {
            let a = p(0);
            timed!(a.floor().map(function_))
        }
        "isl_pw_aff_min_val" | "isl_pw_aff_max_val" => {
            let a = p(0);
            let max = function.contains("max");
            timed!(match a.extreme_value(max, budget) {
                Err(Stop::Unbounded | Stop::Empty) => Ok(Answer::Any),
                v => v.map(|_| Answer::Any),
            })
        }
        "isl_pw_aff_zero_set" => {
            let a = p(0);
            timed!(a.zero(budget).map(set))
        }
        "isl_pw_aff_non_zero_set" => {
            let a = p(0);
            timed!(a.non_zero(budget).map(set))
        }
        "isl_pw_aff_nonneg_set" => {
            let a = p(0);
            timed!(a.nonneg(budget).map(set))
        }
        "isl_pw_aff_intersect_domain" => {
            let (a, b) = (p(0), r(1));
            timed!(a.intersect_domain(&b, budget).map(function_))
        }
        _ => None,
    }
}

/// Whether an answer is the recorded one.
fn right(function: &str, answer: &Answer, text: &str, args: &[&str]) -> Res<bool> {
    let budget = Budget::new(50_000_000);
    Ok(match answer {
        Answer::Any => true,
        Answer::Bool(v) => text == if *v { "1" } else { "0" },
        // A gist is right where it agrees inside of the context.
        Answer::Set(s) if function == "isl_set_gist" => {
            let context = rel(args[1]);
            s.intersect(&context, &budget)?
                .is_equal(&rel(args[0]).intersect(&context, &budget)?, &budget)?
        }
        Answer::Set(s) => s.is_equal(&rel(text), &budget)?,
        Answer::Function(f) if function == "isl_pw_aff_gist" => {
            let context = rel(args[1]);
            let f = f.intersect_domain(&context, &budget)?;
            same_function(&f, &pw(args[0]).intersect_domain(&context, &budget)?, &budget)?
        }
        Answer::Function(f) => same_function(f, &pw(text), &budget)?,
    })
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: corpus QUESTIONS.tsv [FUNCTION]");
        return;
    };
    let only = args.next();
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [function, ns, result, args @ ..] = &fields[..] else { continue };
        if only.as_ref().is_some_and(|o| o != function) {
            continue;
        }
        let row = rows.entry((*function).to_owned()).or_default();
        if std::env::var_os("CORPUS_TRACE").is_some() {
            eprintln!("{line}");
        }
        let budget = Budget::new(50_000_000);
        let mut best: Option<(Res<Answer>, f64)> = None;
        for _ in 0..3 {
            let Some((answer, time)) = ask(function, args, &budget) else { break };
            let time = best.as_ref().map_or(time, |(_, t)| t.min(time));
            best = Some((answer, time));
        }
        let Some((answer, time)) = best else {
            row.skipped += 1;
            continue;
        };
        row.asked += 1;
        let isl: f64 = ns.parse().unwrap_or(0.0);
        row.isl += isl;
        row.ours += time;
        row.log_ratio += (time.max(1.0) / isl.max(1.0)).ln();
        if time > 2.0 * isl {
            row.slower += 1;
            if only.is_some() {
                println!("slow {:.2} us, isl {:.2} us: {line}", time / 1e3, isl / 1e3);
            }
        }
        match answer {
            Err(e) => {
                row.stopped += 1;
                println!("{e}: {line}");
            }
            Ok(answer) => match right(function, &answer, result, args) {
                Ok(true) => {}
                Ok(false) => {
                    row.wrong += 1;
                    let ours = match &answer {
                        Answer::Bool(v) => v.to_string(),
                        Answer::Set(s) => s.to_string(),
                        Answer::Function(f) => f.to_string(),
                        Answer::Any => String::new(),
                    };
                    println!("WRONG {ours}\n    of {line}");
                }
                Err(e) => println!("not compared, {e}: {line}"),
            },
        }
    }
    println!(
        "{:>8} {:>5} {:>5} {:>6} {:>9} {:>9} {:>6} {:>6}",
        "asked", "wrong", "stop", "slower", "isl ms", "ours ms", "sum", "geo"
    );
    let (mut isl, mut ours, mut log, mut asked) = (0.0, 0.0, 0.0, 0);
    for (name, r) in &rows {
        println!(
            "{:8} {:5} {:5} {:6} {:9.2} {:9.2} {:6.3} {:6.3}  {name}{}",
            r.asked,
            r.wrong,
            r.stopped,
            r.slower,
            r.isl / 1e6,
            r.ours / 1e6,
            r.ours / r.isl,
            (r.log_ratio / r.asked.max(1) as f64).exp(),
            if r.skipped > 0 { format!(" ({} skipped)", r.skipped) } else { String::new() }
        );
        isl += r.isl;
        ours += r.ours;
        log += r.log_ratio;
        asked += r.asked;
    }
    println!(
        "{asked} asked, isl {:.1} ms, ours {:.1} ms: {:.3}, geometric mean {:.3}",
        isl / 1e6,
        ours / 1e6,
        ours / isl,
        (log / asked.max(1) as f64).exp()
    );
}
