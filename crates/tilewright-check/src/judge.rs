//! What has to be shown for a certificate, question by question.
//!
//! Each question is whether the points of a system lie in one of some sets. Where its proof comes from is
//! the [`Oracle`]'s: a file, or a search. No answer is believed without being verified here.
//!
//! 1. *Reads*: the pieces of a load cover its instances. In each piece the store that is named runs before,
//!    at that point, to that cell, and no other store to the cell lies between; or none comes before.
//! 2. *Bounds*: all that the second function accesses is in range.
//! 3. *Layouts*: the inverse gives each index back, and the map stays in the second shape.
//! 4. *Equal loads*: what was stored last is the same expression on both sides, of equal loads. A pair of loads
//!    that is claimed to be equal may be used: both have gone back in time, so that this is an induction.
//! 5. *Outputs*: the caller loads the same at the end.

use std::collections::HashMap;

use crate::certificate::{Certificate, Claim, Flow, From, Load, Pass, stores};
use crate::constant::constants;
pub use crate::oracle::{Judged, Oracle, Wrong};
use crate::program::{Expr, Fact, Program, Stmt, Tick, Var};
use crate::set::{Affine, Place, Row, System};

/// A value: an expression at an instance of a statement, whose loads have numbers from `first`; or a cell of a
/// parameter as it was given.
#[derive(Clone)]
enum Value<'a> {
    At { stmt: usize, e: &'a Expr, place: Place, first: usize },
    Given { param: usize, indices: Vec<Affine> },
}

impl<'a> Value<'a> {
    /// Another expression at the same place; its loads have numbers from `from`.
    fn with(&self, e: &'a Expr, from: usize) -> Value<'a> {
        match self {
            Value::At { stmt, place, .. } => {
                Value::At { stmt: *stmt, e, place: place.clone(), first: from }
            }
            given => given.clone(),
        }
    }

    /// The operator and its operands.
    fn parts(&self) -> Option<(&'a str, Vec<Value<'a>>)> {
        let Value::At { e: Expr::Op(op, args), first, .. } = self else { return None };
        let mut from = *first;
        let each = |e: &'a Expr| {
            from += count(e);
            self.with(e, from - count(e))
        };
        Some((op, args.iter().map(each).collect()))
    }

    /// The load that it is, and its place.
    fn load(&self) -> Option<(Load, &Place)> {
        match self {
            Value::At { stmt, e: Expr::Load(..), place, first } => {
                Some((Load { stmt: *stmt, read: *first }, place))
            }
            _ => None,
        }
    }
}

/// Values inside of each other.
const DEPTH: usize = 200;

/// Judges a certificate.
///
/// # Errors
/// The first line that is wrong, from one.
pub fn judge(certificate: &Certificate, oracle: &mut dyn Oracle) -> Result<(), (usize, String)> {
    let mut base = System::default();
    let mut sizes = Place::new();
    let mut by_name: HashMap<&str, Affine> = HashMap::new();
    for (name, v) in certificate.programs.iter().flat_map(|p| &p.sizes) {
        let value = by_name.entry(name).or_insert_with(|| base.fresh());
        sizes.insert(*v, value.clone());
    }
    let mut judge = Judge { c: certificate, oracle, base, sizes, about: 1 };
    judge.whole().map_err(|wrong| (wrong.line.unwrap_or(judge.about), wrong.message))
}

struct Judge<'a, 'o> {
    c: &'a Certificate,
    oracle: &'o mut dyn Oracle,
    /// What is known of sizes.
    base: System,
    sizes: Place,
    /// The line that is judged.
    about: usize,
}

impl<'a> Judge<'a, '_> {
    fn whole(&mut self) -> Judged<()> {
        let [first, _] = &self.c.programs;
        for extent in first.buffers.iter().filter(|b| b.param.is_some()).flat_map(|b| &b.shape) {
            let extent = self.base.affine(extent, &self.sizes)?;
            self.base.add([Row::nonneg(extent)]);
        }
        constants(self.c)?;
        for flow in &self.c.flows {
            self.flow(flow)?;
        }
        for pass in &self.c.passes {
            self.pass(pass)?;
        }
        self.bounds()?;
        self.layouts()?;
        for claim in &self.c.claims {
            self.about = claim.line;
            self.claim(claim)?;
        }
        self.about = 1;
        self.outputs()
    }

    /// Asks for a proof, and verifies it.
    fn need(&mut self, system: &System, targets: &[Vec<Row>]) -> Judged<()> {
        let (line, proof) = self.oracle.proof(system, targets, self.about)?;
        proof.verify(system, targets).map_err(|e| Wrong::at(line, e))
    }

    /// Whether it is shown that there is no point.
    fn void(&mut self, system: &System) -> Judged<bool> {
        match self.oracle.void(system)? {
            Some((line, proof)) => match proof.verify(system, &[]) {
                Ok(()) => Ok(true),
                Err(e) => Err(Wrong::at(line, e)),
            },
            None => Ok(false),
        }
    }

    /// New unknowns for the loops of a statement.
    fn place(&self, stmt: &Stmt, system: &mut System) -> Place {
        let mut place = self.sizes.clone();
        place.extend(stmt.loops.iter().map(|v| (*v, system.fresh())));
        place
    }

    fn flow(&mut self, flow: &Flow) -> Judged<()> {
        self.about = flow.line;
        let program = &self.c.programs[flow.side];
        let stmt = &program.stmts[flow.load.stmt];
        let read = &stmt.reads[flow.load.read];
        let mut base = self.base.clone();
        let place = self.place(stmt, &mut base);
        let condition = stmt.condition.clone().and(read.condition.clone());
        for mut system in base.given(&condition, true, &place)? {
            let mut targets = Vec::new();
            for piece in &flow.pieces {
                let rows = system.alternatives(&piece.condition, true, &place);
                targets.extend(rows?);
            }
            self.need(&system, &targets)?;
        }
        for piece in &flow.pieces {
            self.about = piece.line;
            let here = condition.clone().and(piece.condition.clone());
            for mut system in base.given(&here, true, &place)? {
                let cell = affine_list(&mut system, &read.indices, &place)?;
                let writer = match &piece.from {
                    From::Store(writer, at) => {
                        let source = store(program, *writer)?;
                        let there = self.instance(&source.loops, at, &mut system, &place)?;
                        if source.buffer != read.buffer {
                            return Err("that statement stores to another buffer".into());
                        }
                        let runs = system.alternatives(&source.condition, true, &there)?;
                        self.need(&system, &runs)?;
                        let stored = affine_list(&mut system, &source.indices, &there)?;
                        self.need(&system, &[equal(&stored, &cell)?])?;
                        let late =
                            order(&system, (&source.time, &there), (&stmt.time, &place), false);
                        for late in late? {
                            self.need(&late, &[])?;
                        }
                        Some((source, there))
                    }
                    _ if program.buffers[read.buffer].param.is_none() => {
                        return Err("only parameters are given".into());
                    }
                    From::Given => None,
                    From::Known(number, at) => {
                        let fact = fact(program, *number)?;
                        if fact.buffer != read.buffer || program.writes(fact.buffer) {
                            return Err("that is not known of the buffer throughout".into());
                        }
                        let there = self.instance(&fact.loops, at, &mut system, &place)?;
                        let runs = system.alternatives(&fact.condition, true, &there)?;
                        self.need(&system, &runs)?;
                        let known = affine_list(&mut system, &fact.indices, &there)?;
                        self.need(&system, &[equal(&known, &cell)?])?;
                        continue;
                    }
                };
                self.nothing_between(program, &system, writer, (stmt, &place), read.buffer, &cell)?;
            }
        }
        Ok(())
    }

    /// Shows that no store to a cell lies between two instances, or before the second one.
    fn nothing_between(
        &mut self,
        program: &Program,
        system: &System,
        writer: Option<(&Stmt, Place)>,
        reader: (&Stmt, &Place),
        buffer: usize,
        cell: &[Affine],
    ) -> Judged<()> {
        for other in program.stmts.iter().filter(|s| s.value.is_some() && s.buffer == buffer) {
            let mut with = system.clone();
            let there = self.place(other, &mut with);
            for mut with in with.given(&other.condition, true, &there)? {
                let stored = affine_list(&mut with, &other.indices, &there)?;
                with.add(equal(&stored, cell)?);
                let starts = match &writer {
                    Some((w, at)) => order(&with, (&w.time, at), (&other.time, &there), true)?,
                    None => vec![with],
                };
                for start in starts {
                    let between =
                        order(&start, (&other.time, &there), (&reader.0.time, reader.1), true);
                    for between in between? {
                        self.need(&between, &[])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The place of an instance whose loops have these values.
    fn instance(
        &self,
        loops: &[Var],
        at: &[Expr],
        system: &mut System,
        place: &Place,
    ) -> Judged<Place> {
        if loops.len() != at.len() {
            return Err(format!("the statement has {} loops", loops.len()).into());
        }
        let values = affine_list(system, at, place)?;
        let mut there = self.sizes.clone();
        there.extend(loops.iter().copied().zip(values));
        Ok(there)
    }

    /// Shows that the second operand of what a store writes changes nothing.
    fn pass(&mut self, pass: &Pass) -> Judged<()> {
        self.about = pass.line;
        let stmt = store(&self.c.programs[pass.side], pass.stmt)?;
        let (x, y, wanted) = operands(stmt)?;
        let mut base = self.base.clone();
        let place = self.place(stmt, &mut base);
        let condition = stmt.condition.clone().and(pass.condition.clone());
        for system in base.given(&condition, true, &place)? {
            let y = Value::At { stmt: pass.stmt, e: y, place: place.clone(), first: count(x) };
            if !self.void(&system)? && self.number(pass.side, &y, &system, DEPTH)? != wanted {
                return Err("an operand changes something".into());
            }
        }
        Ok(())
    }

    /// The number that a value is at all points of a system.
    fn number(
        &mut self,
        side: usize,
        value: &Value<'a>,
        system: &System,
        depth: usize,
    ) -> Judged<f64> {
        let depth = depth.checked_sub(1).ok_or("the values are too deep")?;
        let sources = match (self.chosen(value, system)?, value.load()) {
            (Some(chosen), _) => chosen,
            (None, Some((load, place))) => self.sources(side, load, place, system)?,
            (None, None) => return self.computed(side, value, system, depth),
        };
        let mut found = None;
        for (value, system) in &sources {
            let number = self.number(side, value, system, depth)?;
            if found.replace(number).is_some_and(|other| other != number) {
                return Err("an operand is now one number and now another one".into());
            }
        }
        found.ok_or_else(|| "an operand has no value".into())
    }

    /// The number that operators make of numbers: of small whole ones, which are exact in every type.
    fn computed(
        &mut self,
        side: usize,
        value: &Value<'a>,
        system: &System,
        depth: usize,
    ) -> Judged<f64> {
        const UNKNOWN: &str = "an operand is no number that is known";
        let Value::At { e, .. } = value else { return Err(UNKNOWN.into()) };
        let exact = |v: &f64| (0.0..=127.0).contains(v) && v.fract() == 0.0;
        if let Some(number) = e.constant().filter(|v| exact(v) || v.is_infinite()) {
            return Ok(number);
        }
        let Some((op @ ("+" | "-" | "*" | "T.max" | "T.min"), parts)) = value.parts() else {
            return Err(UNKNOWN.into());
        };
        let [x, y] = parts.as_slice() else { return Err(UNKNOWN.into()) };
        let [x, y] = [self.number(side, x, system, depth)?, self.number(side, y, system, depth)?];
        let result = match op {
            "+" => x + y,
            "-" => x - y,
            "*" => x * y,
            "T.max" => x.max(y),
            _ => x.min(y),
        };
        if [x, y, result].iter().all(exact) { Ok(result) } else { Err(UNKNOWN.into()) }
    }

    /// The sides of a choice that indices make, each with the points at which it is taken; `None` for other
    /// values.
    fn chosen(
        &mut self,
        value: &Value<'a>,
        system: &System,
    ) -> Judged<Option<Vec<(Value<'a>, System)>>> {
        let (Some(("T.if_then_else" | "T.Select", parts)), Value::At { place, .. }) =
            (value.parts(), value)
        else {
            return Ok(None);
        };
        let [Value::At { e: c, .. }, x, y] = parts.as_slice() else { return Ok(None) };
        if c.loads() {
            return Ok(None);
        }
        let mut out = Vec::new();
        for (holds, side) in [(true, x), (false, y)] {
            for system in system.given(c, holds, place)? {
                if !self.void(&system)? {
                    out.push((side.clone(), system));
                }
            }
        }
        Ok(Some(out))
    }

    fn bounds(&mut self) -> Judged<()> {
        let program = &self.c.programs[1];
        for (line, formal, actual) in &program.views {
            self.about = *line;
            let mut system = self.base.clone();
            let [x, y] = [formal, actual].map(|e| system.affine(e, &self.sizes));
            let same = equal(&[x?], &[y?])?;
            self.need(&system, &[same])?;
        }
        for stmt in program.stmts.iter().filter(|s| s.value.is_some()) {
            self.about = stmt.line;
            let mut base = self.base.clone();
            let place = self.place(stmt, &mut base);
            let target = (stmt.buffer, &stmt.indices, Expr::truth());
            let reads = stmt.reads.iter().map(|r| (r.buffer, &r.indices, r.condition.clone()));
            for (buffer, indices, condition) in reads.chain([target]) {
                let buffer = &program.buffers[buffer];
                let condition = stmt.condition.clone().and(condition);
                for mut system in base.given(&condition, true, &place)? {
                    let own = &indices[buffer.around.len()..];
                    let at = affine_list(&mut system, own, &place)?;
                    let shape = affine_list(&mut system, &buffer.shape, &place)?;
                    let inside = in_box(&at, &shape)?;
                    self.need(&system, &[inside])?;
                }
            }
        }
        Ok(())
    }

    fn layouts(&mut self) -> Judged<()> {
        let [a, b] = &self.c.programs;
        for (at, (x, y)) in a.looks.iter().zip(&b.looks).enumerate() {
            if self.c.layouts.iter().any(|l| l.param == at) {
                continue;
            }
            // One that has no map lies as it lay.
            let mut system = self.base.clone();
            let shapes = [&a.buffers[*x].shape, &b.buffers[*y].shape];
            let [x, y] = shapes.map(|s| affine_list(&mut system, s, &self.sizes));
            let same =
                equal(&x?, &y?).map_err(|_| format!("parameter {at} has other axes and no map"));
            let same = same?;
            self.need(&system, &[same])?;
        }
        for layout in &self.c.layouts {
            self.about = layout.line;
            let [before, after] = [0, 1].map(|side| {
                let p = &self.c.programs[side];
                p.looks.get(layout.param).map(|b| &p.buffers[*b].shape)
            });
            let (Some(before), Some(after)) = (before, after) else {
                return Err("there is no such parameter".into());
            };
            if layout.from.len() != before.len() || layout.map.len() != after.len() {
                return Err("the map has another number of axes".into());
            }
            let mut system = self.base.clone();
            let mut place = self.sizes.clone();
            place.extend(layout.from.iter().map(|v| (*v, system.fresh())));
            let at: Vec<Affine> = layout.from.iter().map(|v| place[v].clone()).collect();
            let shape = affine_list(&mut system, before, &place)?;
            system.add(in_box(&at, &shape)?);
            let cell = affine_list(&mut system, &layout.map, &place)?;
            let shape = affine_list(&mut system, after, &place)?;
            let mut cells = self.sizes.clone();
            cells.extend(layout.cells.iter().copied().zip(cell.iter().cloned()));
            let back = affine_list(&mut system, &layout.inverse, &cells)?;
            let mut target = in_box(&cell, &shape)?;
            target.extend(equal(&back, &at)?);
            self.need(&system, &[target])?;
        }
        Ok(())
    }

    /// The indices of a parameter's cell in the second function.
    fn moved(&self, param: usize, at: &[Affine], system: &mut System) -> Judged<Vec<Affine>> {
        let Some(layout) = self.c.layouts.iter().find(|l| l.param == param) else {
            return Ok(at.to_vec());
        };
        let mut place = self.sizes.clone();
        place.extend(layout.from.iter().copied().zip(at.iter().cloned()));
        affine_list(system, &layout.map, &place)
    }

    fn claim(&mut self, claim: &Claim) -> Judged<()> {
        let mut base = self.base.clone();
        let mut condition = claim.condition.clone();
        let mut place = Place::new();
        let mut types = Vec::new();
        for (side, load) in claim.loads.iter().enumerate() {
            let stmt = &self.c.programs[side].stmts[load.stmt];
            let read = &stmt.reads[load.read];
            place.extend(self.place(stmt, &mut base));
            condition = condition.and(stmt.condition.clone()).and(read.condition.clone());
            types.push(&self.c.programs[side].buffers[read.buffer].dtype);
        }
        if types[0] != types[1] {
            return Err("the loads have different types".into());
        }
        for system in base.given(&condition, true, &place)? {
            for (a, system) in self.sources(0, claim.loads[0], &place, &system)? {
                let is_open = matches!(&a, Value::At { e: Expr::Op(op, _), .. } if op == "T.undef");
                if is_open && self.c.programs[0].stmts[claim.loads[0].stmt].value.is_none() {
                    // The first function leaves to the caller what it likes.
                    continue;
                }
                for (b, system) in self.sources(1, claim.loads[1], &place, &system)? {
                    self.same(&a, &b, &system, DEPTH)?;
                }
            }
        }
        Ok(())
    }

    /// What a load gets, with the points at which it does; those of which it is shown that there are none are
    /// left out.
    fn sources(
        &mut self,
        side: usize,
        load: Load,
        place: &Place,
        system: &System,
    ) -> Judged<Vec<(Value<'a>, System)>> {
        let c = self.c;
        let program = &c.programs[side];
        let read = &program.stmts[load.stmt].reads[load.read];
        let flow = c.flows.iter().find(|f| f.side == side && f.load == load);
        let flow = flow.ok_or_else(|| {
            let stmt = program.stmts[load.stmt].line;
            format!("nothing says where load {} at line {stmt} gets its value", load.read)
        })?;
        let mut out = Vec::new();
        for piece in &flow.pieces {
            for mut system in system.given(&piece.condition, true, place)? {
                let (stmt, at) = match &piece.from {
                    From::Store(stmt, at) => (*stmt, at),
                    other => {
                        let value = match other {
                            From::Known(number, _) => {
                                let e = &fact(program, *number)?.value;
                                Value::At { stmt: load.stmt, e, place: place.clone(), first: 0 }
                            }
                            _ => {
                                let param = program.buffers[read.buffer].param;
                                let param = param.ok_or("only parameters are given")?;
                                let indices = affine_list(&mut system, &read.indices, place)?;
                                Value::Given { param, indices }
                            }
                        };
                        if !self.void(&system)? {
                            out.push((value, system));
                        }
                        continue;
                    }
                };
                let source = store(program, stmt)?;
                let there = self.instance(&source.loops, at, &mut system, place)?;
                let e = source.value.as_ref().ok_or("that is no store")?;
                let mut whole = system.given(&source.condition, true, &there)?;
                let at = |e| Value::At { stmt, e, place: there.clone(), first: 0 };
                for pass in c.passes.iter().filter(|p| p.side == side && p.stmt == stmt) {
                    let mut rest = Vec::new();
                    for system in whole {
                        for system in system.given(&pass.condition, true, &there)? {
                            if !self.void(&system)? {
                                out.push((at(operands(source)?.0), system));
                            }
                        }
                        rest.extend(system.given(&pass.condition, false, &there)?);
                    }
                    whole = rest;
                }
                for system in whole {
                    if !self.void(&system)? {
                        out.push((at(e), system));
                    }
                }
            }
        }
        Ok(out)
    }

    /// Shows that two values are the same at all points of a system.
    fn same(&mut self, a: &Value<'a>, b: &Value<'a>, system: &System, depth: usize) -> Judged<()> {
        let depth = depth.checked_sub(1).ok_or("the values are too deep")?;
        if let Some(chosen) = self.chosen(a, system)? {
            return chosen.iter().try_for_each(|(a, system)| self.same(a, b, system, depth));
        }
        if let Some(chosen) = self.chosen(b, system)? {
            return chosen.iter().try_for_each(|(b, system)| self.same(a, b, system, depth));
        }
        if let (Some((x, at)), Some((y, there))) = (a.load(), b.load()) {
            let mut place = at.clone();
            place.extend(there.clone());
            let mut system = system.clone();
            let targets = self.claimed([x, y], &mut system, &place)?;
            if !targets.is_empty() {
                return self.need(&system, &targets);
            }
        }
        if let Some((load, place)) = a.load() {
            let sources = self.sources(0, load, place, system)?;
            return sources.iter().try_for_each(|(a, system)| self.same(a, b, system, depth));
        }
        if let Some((load, place)) = b.load() {
            let sources = self.sources(1, load, place, system)?;
            return sources.iter().try_for_each(|(b, system)| self.same(a, b, system, depth));
        }
        self.operators(a, b, system, depth)
    }

    /// Where two loads are claimed to be equal.
    fn claimed(
        &self,
        loads: [Load; 2],
        system: &mut System,
        place: &Place,
    ) -> Judged<Vec<Vec<Row>>> {
        let mut targets = Vec::new();
        for claim in self.c.claims.iter().filter(|c| c.loads == loads) {
            targets.extend(system.alternatives(&claim.condition, true, place)?);
        }
        Ok(targets)
    }

    /// Values that are no loads of what the functions wrote.
    fn operators(
        &mut self,
        a: &Value<'a>,
        b: &Value<'a>,
        system: &System,
        depth: usize,
    ) -> Judged<()> {
        match (a, b) {
            (Value::Given { param: p, indices: x }, Value::Given { param: q, indices: y })
                if p == q =>
            {
                let mut system = system.clone();
                let x = self.moved(*p, x, &mut system)?;
                self.need(&system, &[equal(&x, y)?])
            }
            (
                Value::At { stmt: s, e: x, place: p, .. },
                Value::At { stmt: t, e: y, place: q, .. },
            ) => {
                let mut with = system.clone();
                if let (Ok(x), Ok(y)) = (with.affine(x, p), with.affine(y, q)) {
                    return self.need(&with, &[equal(&[x], &[y])?]);
                }
                match (a.parts(), b.parts()) {
                    (None, None) if x == y => Ok(()),
                    (Some((f, xs)), Some((g, ys))) if f == g && xs.len() == ys.len() => {
                        let mut pairs = xs.iter().zip(&ys);
                        pairs.try_for_each(|(x, y)| self.same(x, y, system, depth))
                    }
                    _ => {
                        let [first, second] = &self.c.programs;
                        let lines = [first.stmts[*s].line, second.stmts[*t].line];
                        let numbers =
                            [self.number(0, a, system, depth), self.number(1, b, system, depth)];
                        match numbers {
                            [Ok(x), Ok(y)] if x == y => Ok(()),
                            _ => Err(format!(
                                "the stores at lines {} and {} are of other expressions",
                                lines[0], lines[1]
                            )
                            .into()),
                        }
                    }
                }
            }
            (Value::Given { param: p, indices: x }, Value::Given { param: q, indices: y }) => {
                let mut system = system.clone();
                let mut targets = Vec::new();
                for pack in self.c.packs.iter().filter(|k| k.constants == [*p, *q]) {
                    let mut place = self.sizes.clone();
                    place.extend(pack.into.iter().copied().zip(y.iter().cloned()));
                    let from = equal(&affine_list(&mut system, &pack.map, &place)?, x)?;
                    for rows in system.alternatives(&pack.condition, true, &place)? {
                        targets.push([rows, from.clone()].concat());
                    }
                }
                self.need(&system, &targets)
            }
            _ => Err("a value that was given meets another one".into()),
        }
    }

    fn outputs(&mut self) -> Judged<()> {
        let [a, b] = &self.c.programs;
        for k in 0..a.stmts.len() - stores(a) {
            let ends = [stores(a) + k, stores(b) + k];
            let stmts = [&a.stmts[ends[0]], &b.stmts[ends[1]]];
            let as_given = |p: &Program, at: usize| !p.writes(at) && p.buffers[at].param == Some(k);
            if as_given(a, stmts[0].buffer) && as_given(b, stmts[1].buffer) {
                continue;
            }
            let mut system = self.base.clone();
            let mut place = self.place(stmts[0], &mut system);
            for mut system in system.given(&stmts[0].condition, true, &place)? {
                let at: Vec<Affine> = stmts[0].loops.iter().map(|v| place[v].clone()).collect();
                let cell = self.moved(k, &at, &mut system)?;
                if cell.len() != stmts[1].loops.len() {
                    return Err(format!("parameter {k} has another number of axes").into());
                }
                place.extend(stmts[1].loops.iter().copied().zip(cell));
                // The second one has that cell.
                let inside = system.alternatives(&stmts[1].condition, true, &place);
                self.need(&system, &inside?)?;
                let loads = ends.map(|stmt| Load { stmt, read: 0 });
                let targets = self.claimed(loads, &mut system, &place)?;
                if targets.is_empty() {
                    return Err(
                        format!("nothing says that parameter {k} is the same at the end").into()
                    );
                }
                self.need(&system, &targets)?;
            }
        }
        Ok(())
    }
}

fn store(program: &Program, at: usize) -> Judged<&Stmt> {
    let stmt = program.stmts.get(at).filter(|s| s.value.is_some());
    stmt.ok_or_else(|| format!("statement {at} is no store").into())
}

fn fact(program: &Program, at: usize) -> Judged<&Fact> {
    program
        .facts
        .get(at)
        .ok_or_else(|| format!("no assumption of number {at} is understood").into())
}

/// The operands of what is stored, and the number that changes nothing as the second one.
fn operands(stmt: &Stmt) -> Judged<(&Expr, &Expr, f64)> {
    let operands = stmt.value.as_ref().and_then(Expr::neutral);
    operands.ok_or_else(|| "it does not store what has a neutral operand".into())
}

/// The number of loads in an expression.
fn count(e: &Expr) -> usize {
    match e {
        Expr::Load(..) => 1,
        Expr::Op(_, args) => args.iter().map(count).sum(),
        _ => 0,
    }
}

fn affine_list(system: &mut System, list: &[Expr], place: &Place) -> Judged<Vec<Affine>> {
    list.iter().map(|e| Ok(system.affine(e, place)?)).collect()
}

fn equal(a: &[Affine], b: &[Affine]) -> Judged<Vec<Row>> {
    if a.len() != b.len() {
        return Err("indices of different numbers of axes".into());
    }
    a.iter().zip(b).map(|(x, y)| Ok(Row::zero(x.plus(y, -1)?))).collect()
}

fn in_box(at: &[Affine], shape: &[Affine]) -> Judged<Vec<Row>> {
    let mut rows = Vec::new();
    for (x, n) in at.iter().zip(shape) {
        let rest = n.plus(x, -1).and_then(|r| r.plus(&Affine::constant(1), -1))?;
        rows.extend([Row::nonneg(x.clone()), Row::nonneg(rest)]);
    }
    Ok(rows)
}

/// The systems in which the first moment is before the second one, or in which it is not.
fn order(
    system: &System,
    first: (&[Tick], &Place),
    second: (&[Tick], &Place),
    before: bool,
) -> Result<Vec<System>, String> {
    let mut out = Vec::new();
    let mut so_far = system.clone();
    for (x, y) in first.0.iter().zip(second.0) {
        match (x, y) {
            (Tick::At(a), Tick::At(b)) if a == b => {}
            (Tick::At(a), Tick::At(b)) => {
                if (a < b) == before {
                    out.push(so_far);
                }
                return Ok(out);
            }
            (Tick::Loop(v), Tick::Loop(w)) => {
                let (a, b) = (&first.1[v], &second.1[w]);
                let (low, high) = if before { (a, b) } else { (b, a) };
                let mut with = so_far.clone();
                with.add([Row::nonneg(low.plus(high, -1)?.complement()?)]);
                out.push(with);
                so_far.add([Row::zero(a.plus(b, -1)?)]);
            }
            _ => return Err("two statements have times of different forms".into()),
        }
    }
    if !before {
        out.push(so_far);
    }
    Ok(out)
}
