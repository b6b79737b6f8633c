//! Which loads of two functions have one value, found by going back in time from the outputs.
//!
//! A pair of loads is compared at a set of pairs of instances. What was stored to both leads to other pairs, at
//! other sets. A set that is met again in another place grows to all instances that satisfy its linear
//! equations, so that reductions come to an end (Verdoolaege, Janssens and Bruynooghe 2012).

use tilewright_ir::hash::HashMap;

use presburger::{Dim, Relation};
use tilewright_check::certificate::{Claim, Flow, From, Layout, Load, Pass};
use tilewright_check::program::{Expr, Program, Var};

use crate::flow::{matched, shown};
use crate::sets::{Found, Names, list, placed, text};

/// Sets at which a pair of loads is compared before it grows.
const EXACT: usize = 3;
const CLAIMS: usize = 400;
const DEPTH: usize = 100;
/// Values inside of each other that are looked through for a number.
const NESTED: usize = 6;

/// How claims are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A load of an element whose place has many digits is guessed to read what the one store to its buffer wrote where
    /// that has the same place, as text: sets of digits are large. All else is as for `Short`.
    Matched,
    /// Conditions leave out what holds wherever both loads run: they are shorter, and say less.
    Short,
    Full,
}

pub(crate) struct Claims<'a> {
    pub names: &'a Names,
    pub programs: &'a [Program; 2],
    pub flows: Vec<Flow>,
    pub passes: Vec<Pass>,
    /// The stores of each side of which it was asked whether they pass something on.
    asked: Vec<(usize, usize)>,
    pub layouts: &'a [Layout],
    found: Vec<([Load; 2], Relation)>,
    /// Constants of both sides, and the map from the indices of the second to those of the first.
    packs: Vec<(usize, usize, Relation)>,
    /// Cells of constants of the second side that hold a number.
    cells: Vec<(usize, usize, f64, Relation)>,
    style: Style,
    /// Whether a flow was guessed.
    pub guessed: bool,
}

/// A value, as in the checker, in terms of the loops of the pair that is compared.
#[derive(Clone)]
enum Value<'a> {
    At { stmt: usize, e: &'a Expr, place: HashMap<Var, Expr>, first: usize },
    Given { load: Load, place: HashMap<Var, Expr> },
}

impl<'a> Claims<'a> {
    pub fn new(
        names: &'a Names,
        programs: &'a [Program; 2],
        layouts: &'a [Layout],
        style: Style,
    ) -> Claims<'a> {
        Claims {
            names,
            programs,
            flows: Vec::new(),
            passes: Vec::new(),
            asked: Vec::new(),
            layouts,
            found: Vec::new(),
            packs: Vec::new(),
            cells: Vec::new(),
            style,
            guessed: false,
        }
    }

    /// All claims that the outputs need.
    pub fn collect(&mut self) -> Found<Vec<Claim>> {
        let [a, b] = self.programs;
        for k in 0..a.looks.len() {
            let ends = [a.stores + k, b.stores + k];
            let (first, second) = (&a.stmts[ends[0]].to, &b.stmts[ends[1]].to);
            let as_given = |p: &Program, at: usize| !p.writes(at) && p.buffers[at].param == Some(k);
            if as_given(a, first.buffer) && as_given(b, second.buffer) {
                continue;
            }
            let place = first.loops.iter().cloned().map(Expr::Var).collect::<Vec<_>>();
            let cell = match self.layouts.iter().find(|l| l.param == k) {
                Some(l) => {
                    let at: HashMap<Var, Expr> = l.from.iter().cloned().zip(place).collect();
                    l.map.iter().map(|e| placed(e, &at)).collect()
                }
                None => place,
            };
            let same = second.loops.iter().zip(cell);
            let condition = same.fold(first.condition.clone(), |all, (v, e)| {
                all.and(Expr::op("==", vec![Expr::Var(v.clone()), e]))
            });
            let loads = [0, 1].map(|side| Load { side, stmt: ends[side], read: 0 });
            let set = self.names.set(&self.vars(loads), &condition)?;
            self.found.push((loads, set));
        }
        let mut at = 0;
        while at < self.found.len() {
            let (loads, set) = self.found[at].clone();
            self.follow(loads, &set)?;
            at += 1;
            if self.found.len() > CLAIMS {
                return Err(format!("more than {CLAIMS} pairs of loads are compared"));
            }
        }
        let mut claims = Vec::new();
        for (loads, set) in &self.found {
            let vars = self.vars(*loads);
            let runs = loads.iter().fold(Expr::truth(), |all, load| {
                all.and(self.programs[load.side].stmts[load.stmt].to.condition.clone())
            });
            let runs = self.names.set(&vars, &runs)?;
            for condition in
                shown(self.names, set, Some(&runs).filter(|_| self.style != Style::Full), &vars)?
            {
                claims.push(Claim { line: 0, loads: *loads, condition });
            }
        }
        Ok(claims)
    }

    /// The lines about constants; those about cells say numbers that loads of constants have.
    pub fn of_constants(&mut self) -> Found<Vec<String>> {
        let mut lines = Vec::new();
        for (p, q, map) in &self.packs {
            let vars = axes(map.dim(Dim::In));
            for (condition, to) in crate::flow::functions(self.names, map, None, &vars)? {
                let (vars, to) = (vars.join(" "), list(&to));
                lines.push(format!("(packs {p} {q} ({vars}) {to} {})", text(&condition)));
            }
        }
        for (q, rank, number, cells) in &self.cells {
            let vars = axes(*rank);
            let cells = self.names.known(cells.coalesce(&self.names.budget))?;
            for condition in self.names.conditions(&cells, &vars)? {
                let (vars, condition) = (vars.join(" "), text(&condition));
                // A sign stands in front, so that infinity is no name.
                lines.push(format!("(cells {q} ({vars}) {number:+} {condition})"));
            }
        }
        Ok(lines)
    }

    fn vars(&self, loads: [Load; 2]) -> Vec<Var> {
        let of = |load: Load| &self.programs[load.side].stmts[load.stmt].to.loops;
        of(loads[0]).iter().chain(of(loads[1])).cloned().collect()
    }

    fn is_written(&self, load: Load) -> bool {
        let program = &self.programs[load.side];
        program.writes(program.stmts[load.stmt].reads[load.read].buffer)
    }

    fn follow(&mut self, loads: [Load; 2], set: &Relation) -> Found<()> {
        let vars = self.vars(loads);
        let none = HashMap::default();
        for (a, set) in self.sources(loads[0], &none, set, &vars)? {
            for (b, set) in self.sources(loads[1], &none, &set, &vars)? {
                self.same(&a, &b, &set, &vars, DEPTH)?;
            }
        }
        Ok(())
    }

    fn sources(
        &mut self,
        load: Load,
        place: &HashMap<Var, Expr>,
        set: &Relation,
        vars: &[Var],
    ) -> Found<Vec<(Value<'a>, Relation)>> {
        let side = load.side;
        let program = &self.programs[side];
        let known = self.flow(load)?;
        let mut out = Vec::new();
        for piece in self.flows[known].pieces.clone() {
            let here = self.within(set, &placed(&piece.condition, place), true, vars)?;
            let Some(mut here) = here else { continue };
            let (stmt, at) = match &piece.from {
                From::Given => {
                    let buffer = program.stmts[load.stmt].reads[load.read].buffer;
                    // What nothing was written to may be anything where the first function reads it.
                    if side == 1 || program.buffers[buffer].param.is_some() {
                        out.push((Value::Given { load, place: place.clone() }, here));
                    }
                    continue;
                }
                From::Known(k, _) => {
                    let e = &program.facts[*k].value;
                    let value = Value::At { stmt: load.stmt, e, place: place.clone(), first: 0 };
                    out.push((value, here));
                    continue;
                }
                From::Store(stmt, at) => (*stmt, at),
            };
            let source = &program.stmts[stmt];
            let e = &source.value;
            let at = at.iter().map(|e| placed(e, place));
            let there: HashMap<Var, Expr> = source.to.loops.iter().cloned().zip(at).collect();
            self.ask(side, stmt)?;
            let value = |e| Value::At { stmt, e, place: there.clone(), first: 0 };
            for pass in self.passes.iter().filter(|p| p.side == side && p.stmt == stmt) {
                let condition = placed(&pass.condition, &there);
                if let (Some((_, x, ..)), Some(passed)) =
                    (e.neutral(), self.within(&here, &condition, true, vars)?)
                {
                    out.push((value(x), passed));
                }
                match self.within(&here, &condition, false, vars)? {
                    Some(rest) => here = rest,
                    None => {
                        here = self.names.set(vars, &Expr::op("false", Vec::new()))?;
                        break;
                    }
                }
            }
            if !self.names.known(here.is_empty(&self.names.budget))? {
                out.push((value(e), here));
            }
        }
        Ok(out)
    }

    /// The number of the flow of a load.
    fn flow(&mut self, load: Load) -> Found<usize> {
        let known = self.flows.iter().position(|f| f.load == load);
        if let Some(known) = known {
            return Ok(known);
        }
        let program = &self.programs[load.side];
        let guess = || matched(program, load).filter(|_| self.style == Style::Matched);
        let (flow, guessed) = match guess() {
            Some(flow) => (flow, true),
            None => (crate::flow::flow(self.names, program, load)?, false),
        };
        self.guessed |= guessed;
        self.flows.push(flow);
        Ok(self.flows.len() - 1)
    }

    /// Finds the instances of a store that pass their first operand on.
    fn ask(&mut self, side: usize, stmt: usize) -> Found<()> {
        if self.asked.contains(&(side, stmt)) {
            return Ok(());
        }
        self.asked.push((side, stmt));
        let source = &self.programs[side].stmts[stmt];
        let Some((op, x, y, wanted)) = source.value.neutral() else {
            return Ok(());
        };
        if !matches!(x, Expr::Load(..)) {
            return Ok(());
        }
        // A maximum is not changed by what it began with.
        let stores = self.programs[side].stmts.iter().filter(|s| s.to.buffer == source.to.buffer);
        let begins = stores.filter_map(|s| s.value.constant());
        let ends = begins.filter(|v| *v != wanted && ["max", "min"].contains(&op));
        let here = Value::At { stmt, e: y, place: HashMap::default(), first: x.loads() };
        let mut found = Vec::new();
        for wanted in ends.chain([wanted]) {
            found.extend(self.constant(side, &here, wanted, NESTED)?);
        }
        let Some(any) = found.into_iter().reduce(|a, b| Expr::op("or", vec![a, b])) else {
            return Ok(());
        };
        let set = self.names.set(&source.to.loops, &source.to.condition.clone().and(any))?;
        if self.names.known(set.is_empty(&self.names.budget))? {
            return Ok(());
        }
        let runs = self.names.set(&source.to.loops, &source.to.condition)?;
        for condition in shown(self.names, &set, Some(&runs), &source.to.loops)? {
            self.passes.push(Pass { line: 0, side, stmt, condition });
        }
        Ok(())
    }

    /// Conditions under which a value is a number.
    fn constant(
        &mut self,
        side: usize,
        value: &Value<'a>,
        wanted: f64,
        depth: usize,
    ) -> Found<Vec<Expr>> {
        let (Value::At { stmt, e, place, first }, Some(depth)) = (value, depth.checked_sub(1))
        else {
            return Ok(Vec::new());
        };
        let part =
            |e: &'a Expr, first: usize| Value::At { stmt: *stmt, e, place: place.clone(), first };
        let both = |a: &Expr, b: Expr| a.clone().and(b);
        Ok(match e {
            e if e.constant() == Some(wanted) => vec![Expr::truth()],
            Expr::Load(..) => {
                let known = self.flow(Load { side, stmt: *stmt, read: *first })?;
                let mut out = Vec::new();
                for piece in self.flows[known].pieces.clone() {
                    let program = &self.programs[side];
                    let here = placed(&piece.condition, place);
                    match &piece.from {
                        From::Known(k, _) if program.facts[*k].value.constant() == Some(wanted) => {
                            out.push(here);
                        }
                        From::Store(stmt, at) => {
                            let source = &program.stmts[*stmt];
                            let at = at.iter().map(|e| placed(e, place));
                            let place = source.to.loops.iter().cloned().zip(at).collect();
                            let e = &source.value;
                            let value = Value::At { stmt: *stmt, e, place, first: 0 };
                            let inner = self.constant(side, &value, wanted, depth)?;
                            out.extend(inner.into_iter().map(|c| both(&here, c)));
                        }
                        _ => {}
                    }
                }
                out
            }
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("*", [x, y]) if wanted == 0.0 => {
                    let a = self.constant(side, &part(x, *first), wanted, depth)?;
                    let b = self.constant(side, &part(y, first + x.loads()), wanted, depth)?;
                    a.iter().flat_map(|x| b.iter().map(|y| both(x, y.clone()))).collect()
                }
                (cast, [x]) if wanted == 0.0 && cast.starts_with("cast.") => {
                    self.constant(side, &part(x, *first), wanted, depth)?
                }
                ("if_then_else" | "select", [c, x, y]) if c.loads() == 0 => {
                    let c = placed(c, place);
                    let a = self.constant(side, &part(x, *first), wanted, depth)?;
                    let b = self.constant(side, &part(y, first + x.loads()), wanted, depth)?;
                    let not = Expr::op("not", vec![c.clone()]);
                    let a = a.into_iter().map(|x| both(&c, x));
                    a.chain(b.into_iter().map(|y| both(&not, y))).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        })
    }

    /// The part of a set in which a condition holds; `None` where it is empty.
    fn within(
        &self,
        set: &Relation,
        e: &Expr,
        holds: bool,
        vars: &[Var],
    ) -> Found<Option<Relation>> {
        let e = if holds { e.clone() } else { Expr::op("not", vec![e.clone()]) };
        let part = self.names.set(vars, &e)?;
        let part = self.names.known(set.intersect(&part, &self.names.budget))?;
        let is_empty = self.names.known(part.is_empty(&self.names.budget))?;
        Ok((!is_empty).then_some(part))
    }

    /// Collects the pairs of loads that two values need.
    fn same(
        &mut self,
        a: &Value<'a>,
        b: &Value<'a>,
        set: &Relation,
        vars: &[Var],
        depth: usize,
    ) -> Found<()> {
        let depth = depth.checked_sub(1).ok_or("the values are too deep")?;
        for (side, value) in [a, b].into_iter().enumerate() {
            if let Value::At { stmt, e: Expr::Op(op, args), place, first } = value
                && let ("if_then_else" | "select", [c, x, y]) = (op.as_str(), args.as_slice())
                && c.loads() == 0
            {
                for (holds, e, first) in [(true, x, *first), (false, y, first + x.loads())] {
                    let chosen = Value::At { stmt: *stmt, e, place: place.clone(), first };
                    if let Some(set) = self.within(set, &placed(c, place), holds, vars)? {
                        let [a, b] = if side == 0 { [&chosen, b] } else { [a, &chosen] };
                        self.same(a, b, &set, vars, depth)?;
                    }
                }
                return Ok(());
            }
        }
        let loads = [(0, a), (1, b)].map(|(side, v)| match v {
            Value::At { stmt, e: Expr::Load(..), place, first } => {
                Some((Load { side, stmt: *stmt, read: *first }, place.clone()))
            }
            _ => None,
        });
        if let [Some((x, at)), Some((y, there))] = &loads
            && (self.is_written(*x) || self.is_written(*y))
        {
            let mut place = at.clone();
            place.extend(there.clone());
            return self.pair([*x, *y], &place, set, vars);
        }
        for (side, load) in loads.iter().enumerate() {
            let Some((load, place)) = load else { continue };
            for (value, set) in self.sources(*load, place, set, vars)? {
                let [a, b] = if side == 0 { [&value, b] } else { [a, &value] };
                self.same(a, b, &set, vars, depth)?;
            }
            return Ok(());
        }
        if let (
            Value::At { stmt: s, e: Expr::Op(f, xs), place: p, first: i },
            Value::At { stmt: t, e: Expr::Op(g, ys), place: q, first: j },
        ) = (a, b)
            && f == g
            && xs.len() == ys.len()
        {
            let (mut i, mut j) = (*i, *j);
            for (e, o) in xs.iter().zip(ys) {
                let a = Value::At { stmt: *s, e, place: p.clone(), first: i };
                let b = Value::At { stmt: *t, e: o, place: q.clone(), first: j };
                self.same(&a, &b, set, vars, depth)?;
                (i, j) = (i + e.loads(), j + o.loads());
            }
            return Ok(());
        }
        self.constants(a, b, set, vars)?;
        // What differs is found by the checker, which needs to know where its operands come from.
        self.origins(0, a, set, vars, NESTED)?;
        self.origins(1, b, set, vars, NESTED)
    }

    /// Collects what constants have in common that are met where two values have to be the same.
    fn constants(
        &mut self,
        a: &Value<'a>,
        b: &Value<'a>,
        set: &Relation,
        vars: &[Var],
    ) -> Found<()> {
        let known = [(0, a), (1, b)].map(|(side, value)| match value {
            Value::Given { load, place } => {
                let program = &self.programs[side];
                let read = &program.stmts[load.stmt].reads[load.read];
                let constant = program.constants.iter().find(|c| c.buffer == read.buffer)?;
                let at: Vec<Expr> = read.indices.iter().map(|e| placed(e, place)).collect();
                Some((program.buffers[read.buffer].param?, constant.shape.len(), at))
            }
            Value::At { .. } => None,
        });
        let budget = &self.names.budget;
        match (known, a) {
            ([Some((p, _, x)), Some((q, _, y))], _) if p != q => {
                let there = self.names.map(vars, &x, &Expr::truth())?;
                let here = self.names.map(vars, &y, &Expr::truth())?;
                let back = self.names.known(here.reverse().intersect_range(set, budget))?;
                let map = self.names.known(back.then(&there, budget))?;
                let known = self.packs.iter_mut().find(|k| (k.0, k.1) == (p, q));
                match known {
                    Some(known) => known.2 = known.2.union(&map),
                    None => self.packs.push((p, q, map)),
                }
            }
            ([None, Some((q, rank, y))], Value::At { e, .. }) => {
                let Some(number) = e.constant() else { return Ok(()) };
                let here = self.names.map(vars, &y, &Expr::truth())?;
                let cells = self.names.known(set.apply(&here, budget))?;
                match self.cells.iter_mut().find(|k| k.0 == q && k.2 == number) {
                    Some(known) => known.3 = known.3.union(&cells),
                    None => self.cells.push((q, rank, number, cells)),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Finds where the loads of a value get their values from.
    fn origins(
        &mut self,
        side: usize,
        value: &Value<'a>,
        set: &Relation,
        vars: &[Var],
        depth: usize,
    ) -> Found<()> {
        let (Value::At { stmt, e, place, first }, Some(depth)) = (value, depth.checked_sub(1))
        else {
            return Ok(());
        };
        match e {
            Expr::Load(..) => {
                let load = Load { side, stmt: *stmt, read: *first };
                for (value, set) in self.sources(load, place, set, vars)? {
                    self.origins(side, &value, &set, vars, depth)?;
                }
            }
            Expr::Op(_, args) => {
                let mut first = *first;
                for e in args {
                    let part = Value::At { stmt: *stmt, e, place: place.clone(), first };
                    self.origins(side, &part, set, vars, depth)?;
                    first += e.loads();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Two loads at the places of a set are a claim, unless one says it already.
    fn pair(
        &mut self,
        loads: [Load; 2],
        place: &HashMap<Var, Expr>,
        set: &Relation,
        vars: &[Var],
    ) -> Found<()> {
        let budget = &self.names.budget;
        let to: Vec<Expr> = self.vars(loads).iter().map(|v| place[v].clone()).collect();
        let map = self.names.map(vars, &to, &Expr::truth())?;
        let mut image = self.names.known(set.apply(&map, budget))?;
        let before = self.found.iter().filter(|(l, _)| *l == loads).map(|(_, s)| s.clone());
        let before: Vec<Relation> = before.collect();
        let all = before.iter().fold(image.clone(), |all, s| all.union(s));
        for known in &before {
            if self.names.known(image.is_subset(known, budget))? {
                return Ok(());
            }
        }
        if before.len() >= EXACT {
            if before.len() > 2 * EXACT {
                return Err("the pairs of loads do not come to an end".into());
            }
            image = self.names.known(all.affine_hull(budget))?;
            for load in loads {
                let stmt = &self.programs[load.side].stmts[load.stmt];
                let runs = self.names.set(&self.vars(loads), &stmt.to.condition)?;
                image = self.names.known(image.intersect(&runs, budget))?;
            }
        }
        self.found.push((loads, self.names.known(image.coalesce(budget))?));
        Ok(())
    }
}

/// Variables for the axes of a constant. No function has such names.
fn axes(rank: usize) -> Vec<Var> {
    (0..rank).map(|k| format!("c'{k}").into()).collect()
}
