//! Last-writer flow against execution.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::*;
use proptest::prelude::*;
use tilewright_ir::{Buffer, DType, Expr, Range, Var};
use tilewright_polyhedral::{AccessId, Flow, ScheduleDim, Statement, Witness, evaluate};

/// Random statements on one buffer: each in a nest of its own, one after the other or in one loop.
#[derive(Clone, Debug)]
struct Program {
    /// Domain, index read, index written.
    statements: Vec<(Case, Option<Expr>, Option<Expr>)>,
    /// Whether all statements are in one outermost loop.
    fused: bool,
    /// Whether the outermost loop says on which row of the buffer it works.
    rows: bool,
}

fn program() -> impl Strategy<Value = Program> {
    let access = |n: usize| prop::option::of(index(n));
    let statement = case().prop_flat_map(move |c| {
        let n = c.ranges.len();
        (Just(c), access(n), access(n))
    });
    (prop::collection::vec(statement, 1..4), any::<bool>(), any::<bool>())
        .prop_map(|(statements, fused, rows)| Program { statements, fused, rows })
}

/// A statement's variables are its own: the case's are shared by all.
fn own(e: &Expr, case: &Case, vars: &[Var]) -> Expr {
    use tilewright_ir::visit::{Fold, Subst};
    let pairs = case.vars().iter().cloned().zip(vars.iter().map(Var::expr));
    Subst::vars(pairs).expr(e)
}

type Instance = (usize, Vec<i64>);

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn flow_agrees_with_execution(program in program()) {
        let e = engine();
        let b = Buffer::with_extents("B", &[64, 64], DType::I32);
        let outermost = Var::index("o");
        let mut statements = Vec::new();
        let mut order: Vec<(Vec<i64>, Instance)> = Vec::new();
        let mut all_vars: Vec<Vec<Var>> = Vec::new();
        for (k, (case, read, write)) in program.statements.iter().enumerate() {
            let mut vars: Vec<Var> = case.vars().iter().map(Var::fresh).collect();
            if program.fused {
                vars[0] = outermost.clone();
            }
            let row = || if program.rows { vars[0].expr() } else { Expr::i32(0) };
            let ranges: Vec<(Var, Range)> =
                case.ranges().into_iter().zip(&vars).map(|((_, r), v)| (v.clone(), r)).collect();
            let guards: Vec<Expr> = case.guards.iter().map(|g| own(g, case, &vars)).collect();
            let d = e.domain_of(&ranges, &guards);
            let loops = vars.iter().map(|v| ScheduleDim::Loop(v.clone()));
            let at = ScheduleDim::Sequence(k as i64);
            let mut schedule: Vec<ScheduleDim> = Vec::new();
            if program.fused {
                schedule.extend(loops.clone().take(1));
                schedule.push(at);
                schedule.extend(loops.skip(1));
            } else {
                schedule.push(at);
                schedule.extend(loops);
            }
            for p in case.points() {
                let times = schedule.iter().map(|s| match s {
                    ScheduleDim::Sequence(k) => *k,
                    ScheduleDim::Loop(v) => p[vars.iter().position(|x| x == v).unwrap()],
                });
                order.push((times.collect(), (k, p)));
            }
            let mut s = Statement::new(&d, schedule);
            if let Some(r) = read {
                s = s.reads(&b, &[row(), own(r, case, &vars)]);
            }
            if let Some(w) = write {
                s = s.writes(&b, &[row(), own(w, case, &vars)]);
            }
            statements.push(s);
            all_vars.push(vars);
        }
        let longest = statements.iter().map(|s| s.schedule.len()).max().unwrap();
        for (times, _) in &mut order {
            times.resize(longest, 0);
        }
        order.sort();
        // Execution.
        let mut last: BTreeMap<(i64, i64), Instance> = BTreeMap::new();
        let mut pairs: BTreeSet<(Instance, Instance)> = BTreeSet::new();
        let mut lost: BTreeSet<Instance> = BTreeSet::new();
        for (_, (k, p)) in &order {
            let (_, read, write) = &program.statements[*k];
            let row = if program.rows { p[0] } else { 0 };
            if let Some(r) = read {
                match last.get(&(row, value(r, p))) {
                    Some(w) => drop(pairs.insert((w.clone(), (*k, p.clone())))),
                    None => drop(lost.insert((*k, p.clone()))),
                }
            }
            if let Some(w) = write {
                last.insert((row, value(w, p)), (*k, p.clone()));
            }
        }
        // Analysis.
        let flow = Flow::compute(&e, &statements).unwrap();
        let mut found: BTreeSet<(Instance, Instance)> = BTreeSet::new();
        for edge in &flow.edges {
            prop_assert!(edge.certain);
            let (w, r) = edge.witness().unwrap();
            let of = |k: usize, w: &Witness| -> Instance {
                (k, all_vars[k].iter().map(|v| w.get(v).unwrap()).collect())
            };
            let pair = (of(edge.writer.statement, &w), of(edge.reader.statement, &r));
            prop_assert!(pairs.contains(&pair), "{} to {}", w, r);
            // Every pair of execution is in the relation, and no other.
            let instances = edge.pairs().unwrap();
            let vars: Vec<Var> = instances.vars().cloned().collect();
            let d = instances.domain();
            let cond = instances.condition(&e.domain_of(&vars.iter().map(|v| {
                let min = Expr::int(-8, DType::I32);
                (v.clone(), Range { min, extent: Expr::int(24, DType::I32) })
            }).collect::<Vec<_>>(), &[]));
            prop_assert!(d.is_empty().is_no());
            let Ok(cond) = cond else { continue };
            let (a, b) = (edge.writer.statement, edge.reader.statement);
            for p in program.statements[a].0.points() {
                for q in program.statements[b].0.points() {
                    let both: Vec<i64> = p.iter().chain(&q).copied().collect();
                    let env = |v: &Var| vars.iter().position(|x| x == v).map(|i| both[i]);
                    if evaluate(&cond, &env).unwrap() != 0 {
                        found.insert(((a, p.clone()), (b, q)));
                    } else {
                        prop_assert!(!pairs.contains(&((a, p.clone()), (b, q))));
                    }
                }
            }
        }
        prop_assert!(found.is_subset(&pairs));
        let kinds: BTreeSet<(usize, usize)> = pairs.iter().map(|(w, r)| (w.0, r.0)).collect();
        let edges: BTreeSet<(usize, usize)> =
            flow.edges.iter().map(|e| (e.writer.statement, e.reader.statement)).collect();
        prop_assert_eq!(kinds, edges);
        let instances = |set: &tilewright_polyhedral::Set, k: usize| -> BTreeSet<Instance> {
            let d = e.domain_of(&all_vars[k].iter().map(|v| {
                let min = Expr::int(-8, DType::I32);
                (v.clone(), Range { min, extent: Expr::int(24, DType::I32) })
            }).collect::<Vec<_>>(), &[]);
            let points = program.statements[k].0.points();
            let inside = points.iter().filter(|p| {
                let here = all_vars[k].iter().zip(*p).fold(d.to_set().unwrap(), |s, (v, x)| {
                    let point = d.with_guard(&v.expr().equal(*x)).to_set().unwrap();
                    s.intersect(&point).unwrap()
                });
                here.intersect(set).unwrap().is_empty().is_no()
            });
            inside.map(|p| (k, p.clone())).collect()
        };
        // The instances of reads at an edge are those of its pairs.
        for (edge, k) in flow.edges.iter().map(|e| (e, e.reader.statement)) {
            let here = (edge.writer.statement, k);
            let seen = pairs.iter().filter(|(w, r)| (w.0, r.0) == here).map(|(_, r)| r.clone());
            prop_assert_eq!(instances(&edge.reads, k), seen.collect());
        }
        let raw: BTreeSet<Instance> = flow.uninitialised.iter()
            .flat_map(|u| instances(&u.instances, u.reader.statement)).collect();
        prop_assert_eq!(raw, lost);
        prop_assert!(flow.uninitialised.iter().all(|u| u.certain));
    }
}

/// `conv1d` on tiles of four whose last one is partly padding: init and update under the guard
/// `4*io + ii < 14`, the instances that dropping the guard adds, and everything observed. The
/// stage that writes the padding is there or not.
fn conv1d(with_pad: bool) -> Flow {
    let e = engine();
    let b = Buffer::with_extents("B", &[4, 4], DType::F32);
    let nest = |guard: fn(Expr) -> Expr, reduce: bool| {
        let [io, ii, f] = ["io", "ii", "f"].map(Var::index);
        let mut extents = vec![(io.clone(), 4), (ii.clone(), 4)];
        if reduce {
            extents.push((f.clone(), 3));
        }
        let d = e.box_of(&extents).with_guard(&guard(&io * 4 + &ii));
        (d, io, ii, f)
    };
    let inside = |x: Expr| x.less(14);
    let outside = |x: Expr| x.greater_equal(14);
    let mut program = Vec::new();
    for guard in [inside as fn(Expr) -> Expr, outside] {
        let (d, io, ii, _) = nest(guard, false);
        let at = vec![
            ScheduleDim::Sequence(0),
            ScheduleDim::Loop(io.clone()),
            ScheduleDim::Loop(ii.clone()),
            ScheduleDim::Sequence(0),
        ];
        program.push(Statement::new(&d, at).writes(&b, &[io.expr(), ii.expr()]));
        let (d, io, ii, f) = nest(guard, true);
        let mut at = vec![
            ScheduleDim::Sequence(0),
            ScheduleDim::Loop(io.clone()),
            ScheduleDim::Loop(ii.clone()),
        ];
        at.extend([ScheduleDim::Sequence(1), ScheduleDim::Loop(f)]);
        let cell = [io.expr(), ii.expr()];
        program.push(Statement::new(&d, at).reads(&b, &cell).writes(&b, &cell));
    }
    if with_pad {
        let (d, io, ii, _) = nest(outside, false);
        let at = vec![
            ScheduleDim::Sequence(1),
            ScheduleDim::Loop(io.clone()),
            ScheduleDim::Loop(ii.clone()),
        ];
        program.push(Statement::new(&d, at).writes(&b, &[io.expr(), ii.expr()]));
    }
    program.push(Statement::observe(&e, &b, 2));
    Flow::compute(&e, &program).unwrap()
}

#[test]
fn overcompute_is_safe_where_the_padding_is_written_later() {
    let leaks = |flow: &Flow| -> Vec<String> {
        let new = |id: AccessId| id.statement == 2 || id.statement == 3;
        let leak = flow.edges.iter().filter(|e| new(e.writer) && !new(e.reader));
        leak.map(|e| {
            let (w, r) = e.witness().unwrap();
            format!("{w} is read at {r}")
        })
        .collect()
    };
    assert_eq!(leaks(&conv1d(true)), Vec::<String>::new());
    assert_eq!(leaks(&conv1d(false)), ["io=3, ii=2, f=2 is read at B0=3, B1=2"]);
}

#[test]
fn symbolic_sizes() {
    let e = engine();
    let [n, i, j, k] = ["n", "i", "j", "k"].map(Var::index);
    let b = Buffer::new("B", vec![n.expr()], DType::F32);
    let over = |v: &Var, extent: Expr| e.domain_of(&[(v.clone(), Range::upto(extent))], &[]);
    let at = |k: i64, v: &Var| vec![ScheduleDim::Sequence(k), ScheduleDim::Loop(v.clone())];
    let program = [
        Statement::new(&over(&i, n.expr()), at(0, &i)).writes(&b, &[i.expr()]),
        Statement::new(&over(&j, &n - 1), at(1, &j)).writes(&b, &[&j + 1]),
        Statement::new(&over(&k, &n + 1), at(2, &k)).reads(&b, &[k.expr()]),
    ];
    let flow = Flow::compute(&e, &program).unwrap();
    assert_eq!(flow.edges.len(), 2);
    let read = AccessId { statement: 2, access: 0 };
    assert_eq!(flow.sources(read).count(), 2);
    // The first statement survives only at i = 0.
    let (first, pairs) = (&flow.edges[0], flow.edges[0].pairs().unwrap());
    assert_eq!(first.writer.statement, 0);
    let cond =
        pairs.project(std::slice::from_ref(&i)).unwrap().condition(&over(&i, n.expr())).unwrap();
    assert_eq!(cond.to_string(), "i == 0");
    assert_eq!(first.reads.condition(&over(&k, &n + 1)).unwrap().to_string(), "k == 0 and n >= 1");
    // One cell too many is read.
    let lost = &flow.uninitialised[0];
    assert!(lost.certain);
    let cond = lost.instances.condition(&over(&k, &n + 1)).unwrap();
    assert_eq!(cond.to_string(), "n == k");
    let w = lost.instances.point().unwrap().unwrap();
    assert_eq!(w.get(&k), w.get(&n));
}

#[test]
fn writes_that_may_not_happen_hide_nothing() {
    let e = engine();
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let b = Buffer::with_extents("B", &[8], DType::F32);
    let mask = Buffer::with_extents("M", &[8], DType::BOOL);
    let over = |v: &Var| e.box_of(&[(v.clone(), 8)]);
    let at = |k: i64, v: &Var| vec![ScheduleDim::Sequence(k), ScheduleDim::Loop(v.clone())];
    let masked = over(&j).with_guard(&mask.load([j.expr()]));
    let program = [
        Statement::new(&over(&i), at(0, &i)).writes(&b, &[i.expr()]),
        Statement::new(&masked, at(1, &j)).writes(&b, &[j.expr()]),
        Statement::new(&over(&k), at(2, &k)).reads(&b, &[k.expr()]),
    ];
    let flow = Flow::compute(&e, &program).unwrap();
    let from: Vec<(usize, bool)> =
        flow.edges.iter().map(|e| (e.writer.statement, e.certain)).collect();
    assert_eq!(from, [(0, false), (1, false)]);
    assert!(flow.uninitialised.is_empty());
    let without = Flow::compute(&e, &program[1..]).unwrap();
    assert!(without.uninitialised.iter().all(|u| !u.certain));
    assert_eq!(without.uninitialised.len(), 1);
}

#[test]
fn views_of_different_rank_are_refused() {
    let e = engine();
    let i = Var::index("i");
    let b = Buffer::with_extents("B", &[8], DType::F32);
    let view = b.derive(|d| d.shape = vec![Expr::i32(2), Expr::i32(4)]);
    let d = e.box_of(&[(i.clone(), 8)]);
    let at = |k: i64| vec![ScheduleDim::Sequence(k), ScheduleDim::Loop(i.clone())];
    let program = [
        Statement::new(&d, at(0)).writes(&b, &[i.expr()]),
        Statement::new(&d, at(1)).reads(&view, &[i.expr().floordiv(4), i.expr().floormod(4)]),
    ];
    let refused = Flow::compute(&e, &program).err().unwrap();
    assert_eq!(refused.to_string(), "views of `B` of different rank");
}
