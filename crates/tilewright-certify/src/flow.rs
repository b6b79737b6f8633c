//! Where loads get their values from: the last writers, as pieces of a certificate.

use presburger::{Dim, Relation, Source, last_writers};
use tilewright_check::certificate::{Flow, From, Load, Piece};
use tilewright_check::program::{Expr, Program, Stmt, Tick, Var};
use tilewright_ir::hash::HashMap;

use crate::sets::{Found, Names};

/// Pieces of one load.
const PIECES: usize = 64;

/// The pieces of a load, over the loops of its statement.
pub(crate) fn flow(names: &Names, program: &Program, load: Load) -> Found<Flow> {
    let stmt = &program.stmts[load.stmt];
    let read = &stmt.reads[load.read];
    let writers: Vec<usize> = (0..program.stmts.len())
        .filter(|k| *k < program.stores && program.stmts[*k].to.buffer == read.buffer)
        .collect();
    let mut flow = Flow { line: 0, load, pieces: Vec::new() };
    let condition = stmt.to.condition.clone().and(read.condition.clone());
    let instances = names.set(&stmt.to.loops, &condition)?;
    let cells = names.map(&stmt.to.loops, &read.indices, &condition)?;
    if writers.is_empty() {
        let mut rest = instances.clone();
        for (k, fact) in
            program.facts.iter().enumerate().filter(|(_, f)| f.of.buffer == read.buffer)
        {
            let known = names.map(&fact.of.loops, &fact.of.indices, &fact.of.condition)?;
            let source = names.known(cells.then(&known.reverse(), &names.budget))?;
            let source = names.known(source.intersect_domain(&rest, &names.budget))?;
            let domain = names.known(source.domain(&names.budget))?;
            for (condition, at) in functions(names, &source, Some(&instances), &stmt.to.loops)? {
                flow.pieces.push(Piece { line: 0, from: From::Known(k, at), condition });
            }
            rest = names.known(rest.subtract(&domain, &names.budget))?;
        }
        for condition in shown(names, &rest, Some(&instances), &stmt.to.loops)? {
            flow.pieces.push(Piece { line: 0, from: From::Given, condition });
        }
        return Ok(flow);
    }
    let length = writers.iter().chain([&load.stmt]).map(|k| program.stmts[*k].time.len()).max();
    let length = length.unwrap_or(0);
    let time = time(names, stmt, length)?;
    let mut sources = Vec::new();
    for k in &writers {
        let w = &program.stmts[*k];
        let cells = names.map(&w.to.loops, &w.to.indices, &w.to.condition)?;
        sources.push(Source { cells, time: self::time(names, w, length)?, is_certain: true });
    }
    let found = names.known(last_writers(&cells, &time, &sources, &names.budget))?;
    let rest = names.known(found.rest.domain(&names.budget))?;
    for condition in shown(names, &rest, Some(&instances), &stmt.to.loops)? {
        flow.pieces.push(Piece { line: 0, from: From::Given, condition });
    }
    for (k, last) in writers.iter().zip(&found.certain) {
        for (condition, at) in functions(names, &last.reverse(), Some(&instances), &stmt.to.loops)?
        {
            flow.pieces.push(Piece { line: 0, from: From::Store(*k, at), condition });
        }
    }
    if flow.pieces.len() > PIECES {
        return Err(format!("a load gets its value from {} places", flow.pieces.len()));
    }
    Ok(flow)
}

/// So many quotients and remainders in a place are digits.
const DIGITS: usize = 4;

/// What a load of a place with many digits reads if the one store to its buffer wrote it, where the place of the store is
/// the same text with other expressions for its loops. That may be wrong: nobody looked at when the store runs.
pub(crate) fn matched(program: &Program, load: Load) -> Option<Flow> {
    let read = &program.stmts[load.stmt].reads[load.read];
    let mut stores = (0..program.stores).filter(|k| program.stmts[*k].to.buffer == read.buffer);
    let (Some(at), None) = (stores.next(), stores.next()) else { return None };
    let to = &program.stmts[at].to;
    let mut bound: HashMap<Var, Expr> = HashMap::default();
    let same = to.indices.iter().zip(&read.indices).all(|(p, e)| fits(p, e, &to.loops, &mut bound));
    let point = to.loops.iter().map(|v| bound.get(v).cloned()).collect::<Option<Vec<Expr>>>()?;
    let digits: usize = read.indices.iter().map(digits).sum();
    let piece = Piece { line: 0, from: From::Store(at, point), condition: Expr::truth() };
    (same && digits >= DIGITS).then(|| Flow { line: 0, load, pieces: vec![piece] })
}

/// Whether an expression is a pattern with expressions for some variables.
fn fits(pattern: &Expr, e: &Expr, vars: &[Var], bound: &mut HashMap<Var, Expr>) -> bool {
    match (pattern, e) {
        (Expr::Var(v), _) if vars.contains(v) => {
            bound.entry(v.clone()).or_insert_with(|| e.clone()) == e
        }
        (Expr::Op(f, xs), Expr::Op(g, ys)) if f == g && xs.len() == ys.len() => {
            xs.iter().zip(ys).all(|(x, y)| fits(x, y, vars, bound))
        }
        _ => pattern == e,
    }
}

fn digits(e: &Expr) -> usize {
    match e {
        Expr::Op(op, args) => {
            usize::from(op == "%" || op == "//") + args.iter().map(digits).sum::<usize>()
        }
        _ => 0,
    }
}

/// A function of instances in pieces: conditions, and the values there.
pub(crate) fn functions(
    names: &Names,
    source: &Relation,
    all: Option<&Relation>,
    vars: &[Var],
) -> Found<Vec<(Expr, Vec<Expr>)>> {
    if names.known(source.is_empty(&names.budget))? {
        return Ok(Vec::new());
    }
    let mut parts = vec![(names.known(source.domain(&names.budget))?, Vec::new())];
    for at in 0..source.dim(Dim::Out) {
        let function = names.known(source.function(at, &names.budget))?;
        let mut next = Vec::new();
        for (set, values) in &parts {
            for (piece, aff) in function.pieces() {
                let both = names.known(set.intersect(piece, &names.budget))?;
                if !names.known(both.is_empty(&names.budget))? {
                    let mut values: Vec<Expr> = values.clone();
                    values.push(names.function(aff, vars)?);
                    next.push((both, values));
                }
            }
        }
        parts = next;
    }
    let mut out = Vec::new();
    for (set, at) in parts {
        let conditions = shown(names, &set, all, vars)?;
        out.extend(conditions.into_iter().map(|condition| (condition, at.clone())));
    }
    Ok(out)
}

/// The conjunctions of a set of instances, without what holds of all instances.
pub(crate) fn shown(
    names: &Names,
    set: &Relation,
    all: Option<&Relation>,
    vars: &[Var],
) -> Found<Vec<Expr>> {
    if names.known(set.is_empty(&names.budget))? {
        return Ok(Vec::new());
    }
    let set = names.known(set.coalesce(&names.budget))?;
    let short = all.and_then(|all| set.gist(all, &names.budget).ok()).unwrap_or(set);
    names.conditions(&short, vars)
}

fn time(names: &Names, stmt: &Stmt, length: usize) -> Found<Relation> {
    let last = i128::from(u32::MAX);
    let tick = |t: &Tick| match t {
        Tick::At(k) => Expr::Int(i128::try_from(*k).map_or(last, |k| k.min(last))),
        Tick::Loop(v) => Expr::Var(v.clone()),
    };
    let mut values: Vec<Expr> = stmt.time.iter().map(tick).collect();
    values.resize(length, Expr::Int(0));
    names.map(&stmt.to.loops, &values, &Expr::truth())
}
