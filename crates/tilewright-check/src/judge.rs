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

use crate::certificate::{Certificate, Claim, Flow, From, Load, Pass, Piece};
use crate::program::{CASTS, Expr, Fact, Program, Stmt, Tick, Var};
use crate::proof::Proof;
use crate::set::{Affine, Place, Row, System};
use crate::tree::Placed;

/// What is wrong, and in which line, as far as it is in one.
pub struct Wrong {
    pub line: Option<usize>,
    pub message: String,
}

/// A result, or what is wrong.
pub type Judged<T> = Result<T, Wrong>;

impl Wrong {
    /// Something wrong with a line.
    pub fn at(line: usize, message: impl Into<String>) -> Wrong {
        Wrong { line: Some(line), message: message.into() }
    }
}

impl<T: Into<String>> std::convert::From<T> for Wrong {
    fn from(message: T) -> Wrong {
        Wrong { line: None, message: message.into() }
    }
}

/// Answers questions, in the order in which they are asked.
pub trait Oracle {
    /// A proof that every point is in one of the targets, and the line where it stands. Where there are no
    /// targets, `None` goes on with what follows from a point.
    fn answer(&mut self, of: &System, targets: Option<&[Vec<Row>]>) -> Answer;
}

/// A line, and the proof that stands there.
pub type Answer = Judged<(usize, Option<Proof>)>;

/// A value: an expression at an instance of a statement, with the number of its first load; or a cell of
/// memory as it was given, or that nothing was written to.
#[derive(Clone)]
enum Value<'a> {
    At { at: Load, e: &'a Expr, place: Place },
    Given { param: usize, indices: Vec<Affine> },
    Unwritten,
}

/// Values with the points at which something has them.
type Cases<'a> = Vec<(Value<'a>, System)>;

impl<'a> Value<'a> {
    fn parts(&self) -> Option<(&'a str, Vec<Value<'a>>)> {
        let Value::At { at, e: Expr::Op(op, args), place } = self else { return None };
        let mut next = *at;
        let each = |e: &'a Expr| {
            let at = next;
            next.read += e.loads();
            Value::At { at, e, place: place.clone() }
        };
        Some((op, args.iter().map(each).collect()))
    }

    fn load(&self) -> Option<(Load, &Place)> {
        match self {
            Value::At { at, e: Expr::Load(..), place } => Some((*at, place)),
            _ => None,
        }
    }

    /// The condition and the sides of a choice that indices make.
    fn choice(&self) -> Option<(&'a Expr, [Value<'a>; 2], &Place)> {
        let Value::At { e: Expr::Op(op, _), place, .. } = self else { return None };
        let (_, parts) = self.parts().filter(|_| ["if_then_else", "select"].contains(&&**op))?;
        let [Value::At { e, .. }, x, y] = <[Value; 3]>::try_from(parts).ok()? else { return None };
        (e.loads() == 0).then_some((e, [x, y], place))
    }
}

const DEPTH: usize = 200;
const CHANGES: &str = "an operand changes something";

/// Judges a certificate: an error is the first line that is wrong, from one.
pub fn judge(c: &Certificate, oracle: &mut dyn Oracle) -> Placed<()> {
    let (mut base, mut sizes) = (System::default(), Place::new());
    for size in c.programs.iter().flat_map(|p| &p.sizes) {
        sizes.entry(size.clone()).or_insert_with(|| base.fresh());
    }
    let mut judge = Judge { c, oracle, base, sizes, about: 1, depth: 0 };
    judge.whole().map_err(|wrong| (wrong.line.unwrap_or(judge.about), wrong.message))
}

struct Judge<'a, 'o> {
    c: &'a Certificate,
    oracle: &'o mut dyn Oracle,
    base: System,
    sizes: Place,
    about: usize,
    depth: usize,
}

impl<'a> Judge<'a, '_> {
    fn whole(&mut self) -> Judged<()> {
        let c = self.c;
        for buffer in c.programs[0].buffers.iter().filter(|b| b.param.is_some()) {
            let shape = self.base.list(&buffer.shape, &self.sizes)?;
            self.base.add(shape.into_iter().map(Row::nonneg));
        }
        c.constants().map_err(|(line, message)| Wrong::at(line, message))?;
        c.flows.iter().try_for_each(|flow| self.flow(flow))?;
        c.passes.iter().try_for_each(|pass| self.pass(pass))?;
        self.bounds()?;
        self.layouts()?;
        c.claims.iter().try_for_each(|claim| self.claim(claim))?;
        self.about = 1;
        self.outputs()
    }

    fn need(&mut self, system: &System, targets: &[Vec<Row>]) -> Judged<()> {
        let (line, proof) = self.oracle.answer(system, Some(targets))?;
        let proof = proof.ok_or_else(|| Wrong::at(line, "a proof is needed here"))?;
        proof.verify(system, targets).map_err(|e| Wrong::at(line, e))
    }

    /// Whether it is shown that there is no point.
    fn void(&mut self, system: &System) -> Judged<bool> {
        let (line, proof) = self.oracle.answer(system, None)?;
        let verified = proof.as_ref().map_or(Ok(()), |p| p.verify(system, &[]));
        verified.map(|()| proof.is_some()).map_err(|e| Wrong::at(line, e))
    }

    /// The cases without those of which it is shown that they do not occur.
    fn met(&mut self, cases: Cases<'a>) -> Judged<Cases<'a>> {
        let mut met = Vec::new();
        for (value, system) in cases {
            if !self.void(&system)? {
                met.push((value, system));
            }
        }
        Ok(met)
    }

    fn place(&self, loops: &[Var], system: &mut System) -> Place {
        let values: Vec<Affine> = loops.iter().map(|_| system.fresh()).collect();
        self.values(loops, values)
    }

    /// The place at which variables beside the sizes have values.
    fn values(&self, vars: &[Var], values: Vec<Affine>) -> Place {
        let mut place = self.sizes.clone();
        place.extend(vars.iter().cloned().zip(values));
        place
    }

    /// The instances of a statement at which conditions hold.
    fn instances(&self, stmt: &Stmt, conditions: &[&Expr]) -> Judged<(Place, Vec<System>)> {
        let mut base = self.base.clone();
        let place = self.place(&stmt.to.loops, &mut base);
        let all = conditions.iter().fold(stmt.to.condition.clone(), |all, e| all.and((*e).clone()));
        let systems = base.given(&all, true, &place)?;
        Ok((place, systems))
    }

    fn flow(&mut self, flow: &Flow) -> Judged<()> {
        self.about = flow.line;
        let (stmt, read) = self.c.read_of(flow.load);
        let (place, systems) = self.instances(stmt, &[&read.condition])?;
        for mut system in systems {
            let mut targets = Vec::new();
            for piece in &flow.pieces {
                targets.extend(system.alternatives(&piece.condition, true, &place)?);
            }
            self.need(&system, &targets)?;
        }
        flow.pieces.iter().try_for_each(|piece| {
            self.about = piece.line;
            let (place, systems) = self.instances(stmt, &[&read.condition, &piece.condition])?;
            let mut systems = systems.into_iter();
            systems.try_for_each(|system| self.piece(flow, piece, system, (&stmt.time, &place)))
        })
    }

    /// Shows that a load at some instances gets its value from where a piece says.
    fn piece(&mut self, of: &Flow, piece: &Piece, mut system: System, now: Moment) -> Judged<()> {
        let program = &self.c.programs[of.load.side];
        let (_, read) = self.c.read_of(of.load);
        let cell = system.list(&read.indices, now.1)?;
        let is_given = program.buffers[read.buffer].param.is_some();
        let (access, loops) = match &piece.from {
            From::Store(at, loops) => (&store(program, *at)?.to, &loops[..]),
            From::Known(number, loops) if is_given && !program.writes(read.buffer) => {
                (&fact(program, *number)?.of, &loops[..])
            }
            From::Given => (read, &[][..]),
            From::Known(..) => return Err("that is not given, or is written".into()),
        };
        if access.buffer != read.buffer || loops.len() != access.loops.len() {
            return Err("that is about another buffer, or has other loops".into());
        }
        let values = system.list(loops, now.1)?;
        let there = self.values(&access.loops, values);
        if !matches!(piece.from, From::Given) {
            let runs = system.alternatives(&access.condition, true, &there)?;
            self.need(&system, &runs)?;
            let at = system.list(&access.indices, &there)?;
            self.need(&system, &[equal(&at, &cell)?])?;
        }
        let writer = match &piece.from {
            From::Known(..) => return Ok(()),
            From::Given => None,
            From::Store(at, _) => Some((&program.stmts[*at].time[..], &there)),
        };
        let late = writer.map(|writer| order(&system, writer, now, false)).transpose()?;
        late.iter().flatten().try_for_each(|late| self.need(late, &[]))?;
        // No other store to the cell lies between, or none comes before.
        for other in program.stmts[..program.stores].iter().filter(|s| s.to.buffer == read.buffer) {
            let mut with = system.clone();
            let there = self.place(&other.to.loops, &mut with);
            for mut with in with.given(&other.to.condition, true, &there)? {
                let stored = with.list(&other.to.indices, &there)?;
                with.add(equal(&stored, &cell)?);
                let starts = match writer {
                    Some(writer) => order(&with, writer, (&other.time, &there), true)?,
                    None => vec![with],
                };
                for start in starts {
                    for between in order(&start, (&other.time, &there), now, true)? {
                        self.need(&between, &[])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows that the second operand of what a store writes changes nothing.
    fn pass(&mut self, pass: &Pass) -> Judged<()> {
        self.about = pass.line;
        let stmt = store(&self.c.programs[pass.side], pass.stmt)?;
        let (op, x, y, wanted) = operands(stmt)?;
        let at = Load { side: pass.side, stmt: pass.stmt, read: x.loads() };
        let (place, systems) = self.instances(stmt, &[&pass.condition])?;
        let [x, y] = [(x, 0), (y, at.read)].map(|(e, read)| Value::At {
            at: Load { read, ..at },
            e,
            place: place.clone(),
        });
        let cases = systems.into_iter().map(|system| (y.clone(), system)).collect();
        for (y, system) in self.met(cases)? {
            if !["max", "min"].contains(&op) {
                (self.number(&y, &system)? == wanted).then_some(()).ok_or(CHANGES)?;
                continue;
            }
            let end = self.only(&y, &system, &mut |_, value, _| match value {
                Value::At { e, .. } if e.constant().is_some() => Ok(*e),
                _ => Err(CHANGES.into()),
            })?;
            if end.constant() != Some(wanted) {
                self.reaches(&x, (op, end), &mut Vec::new())?;
            }
        }
        Ok(())
    }

    fn inside<T>(&mut self, what: impl FnOnce(&mut Self) -> Judged<T>) -> Judged<T> {
        if self.depth == DEPTH {
            return Err("the values are too deep".into());
        }
        self.depth += 1;
        let done = what(self);
        self.depth -= 1;
        done
    }

    /// Shows that a value is a maximum or minimum to which a constant belongs, at all instances of the loads on
    /// the way. What a load leads to is older than it, so that this is an induction.
    fn reaches(&mut self, value: &Value, of: (&str, &Expr), on: &mut Vec<Load>) -> Judged<()> {
        match (value, value.parts(), value.load()) {
            (.., Some((load, _))) if on.contains(&load) => {}
            (.., Some((load, _))) => {
                on.push(load);
                let (stmt, read) = self.c.read_of(load);
                let (place, systems) = self.instances(stmt, &[&read.condition])?;
                for system in systems {
                    let sources = self.sources(load, &place, &system)?;
                    sources.iter().try_for_each(|(value, _)| self.reaches(value, of, on))?;
                }
            }
            (Value::At { e, .. }, ..) if *e == of.1 => {}
            (_, Some((op, parts)), _) if op == of.0 => self.reaches(&parts[0], of, on)?,
            _ => return Err(CHANGES.into()),
        }
        Ok(())
    }

    /// The number that a value is at all points of a system.
    fn number(&mut self, value: &Value<'a>, system: &System) -> Judged<f64> {
        self.only(value, system, &mut |judge, value, system| judge.computed(value, system))
    }

    /// The one thing that a value is at all points of a system, through loads and choices.
    fn only<T: PartialEq>(
        &mut self,
        value: &Value<'a>,
        system: &System,
        of: &mut dyn FnMut(&mut Self, &Value<'a>, &System) -> Judged<T>,
    ) -> Judged<T> {
        let Some(cases) = self.opened(value, system)? else { return of(self, value, system) };
        let mut found = None;
        for (value, system) in &cases {
            let this = self.inside(|judge| judge.only(value, system, of))?;
            if found.replace(this).is_some_and(|other| Some(other) != found) {
                return Err("an operand is now one number and now another one".into());
            }
        }
        found.ok_or_else(|| "an operand has no value".into())
    }

    /// The number that operators make of numbers: of small whole ones, which are exact in every type.
    fn computed(&mut self, value: &Value<'a>, system: &System) -> Judged<f64> {
        const UNKNOWN: &str = "an operand is no number that is known";
        let Value::At { e, .. } = value else { return Err(UNKNOWN.into()) };
        let exact = |v: &f64| (0.0..=127.0).contains(v) && v.fract() == 0.0;
        if let Some(number) = e.constant().filter(|v| exact(v) || v.is_infinite()) {
            return Ok(number);
        }
        let Some((op, parts)) = value.parts() else { return Err(UNKNOWN.into()) };
        let number = |value: &Value<'a>| self.inside(|judge| judge.number(value, system));
        let numbers = parts.iter().map(number).collect::<Judged<Vec<f64>>>()?;
        let result = match (op, numbers.as_slice()) {
            ("+", [x, y]) => x + y,
            ("-", [x, y]) => x - y,
            ("*", [x, y]) => x * y,
            ("max", [x, y]) => x.max(*y),
            ("min", [x, y]) => x.min(*y),
            (op, [x]) if *x == 0.0 && CASTS.iter().any(|cast| op.starts_with(cast)) => 0.0,
            _ => return Err(UNKNOWN.into()),
        };
        if numbers.iter().chain([&result]).all(exact) { Ok(result) } else { Err(UNKNOWN.into()) }
    }

    /// The cases of a value that is a load or a choice; `None` for other ones.
    fn opened(&mut self, value: &Value<'a>, system: &System) -> Judged<Option<Cases<'a>>> {
        if let Some((load, place)) = value.load() {
            return self.sources(load, place, system).map(Some);
        }
        let Some((condition, [x, y], place)) = value.choice() else { return Ok(None) };
        let mut cases = Vec::new();
        for (holds, side) in [(true, x), (false, y)] {
            let systems = system.given(condition, holds, place)?;
            cases.extend(systems.into_iter().map(|system| (side.clone(), system)));
        }
        self.met(cases).map(Some)
    }

    fn bounds(&mut self) -> Judged<()> {
        let program = &self.c.programs[1];
        for (line, extents) in &program.equal {
            self.about = *line;
            let mut system = self.base.clone();
            let extents = system.list(extents, &self.sizes)?;
            let same = equal(&extents[..1], &extents[1..])?;
            self.need(&system, &[same])?;
        }
        for stmt in &program.stmts[..program.stores] {
            self.about = stmt.line;
            let reads = stmt.reads.iter().map(|r| (r, Some(&r.condition)));
            for (access, condition) in reads.chain([(&stmt.to, None)]) {
                let buffer = &program.buffers[access.buffer];
                let (place, systems) = self.instances(stmt, condition.as_slice())?;
                for mut system in systems {
                    let at = system.list(&access.indices[buffer.around.len()..], &place)?;
                    let shape = system.list(&buffer.shape, &place)?;
                    let inside = in_box(&at, &shape)?;
                    self.need(&system, &[inside])?;
                }
            }
        }
        Ok(())
    }

    fn layouts(&mut self) -> Judged<()> {
        let [a, b] = &self.c.programs;
        for (param, (x, y)) in a.looks.iter().zip(&b.looks).enumerate() {
            let mut system = self.base.clone();
            let before = system.list(&a.buffers[*x].shape, &self.sizes)?;
            let after = system.list(&b.buffers[*y].shape, &self.sizes)?;
            let Some(layout) = self.c.layouts.iter().find(|l| l.param == param) else {
                // One that has no map lies as it lay.
                let wrong = |_| format!("parameter {param} has other axes and no map");
                let same = equal(&before, &after).map_err(wrong)?;
                self.need(&system, &[same])?;
                continue;
            };
            self.about = layout.line;
            if layout.from.len() != before.len() || layout.map.len() != after.len() {
                return Err("the map has another number of axes".into());
            }
            let place = self.place(&layout.from, &mut system);
            let at: Vec<Affine> = layout.from.iter().map(|v| place[v].clone()).collect();
            system.add(in_box(&at, &before)?);
            let cell = system.list(&layout.map, &place)?;
            let back = system.list(&layout.inverse, &self.values(&layout.cells, cell.clone()))?;
            let target = [in_box(&cell, &after)?, equal(&back, &at)?].concat();
            self.need(&system, &[target])?;
        }
        Ok(())
    }

    /// The indices of a parameter's cell in the second function.
    fn moved(&self, param: usize, at: &[Affine], system: &mut System) -> Judged<Vec<Affine>> {
        match self.c.layouts.iter().find(|l| l.param == param) {
            Some(layout) => Ok(system.list(&layout.map, &self.values(&layout.from, at.to_vec()))?),
            None => Ok(at.to_vec()),
        }
    }

    fn claim(&mut self, claim: &Claim) -> Judged<()> {
        self.about = claim.line;
        let mut base = self.base.clone();
        let mut condition = claim.condition.clone();
        let mut place = Place::new();
        let types = claim.loads.map(|load| {
            let (stmt, read) = self.c.read_of(load);
            place.extend(self.place(&stmt.to.loops, &mut base));
            condition =
                condition.clone().and(stmt.to.condition.clone()).and(read.condition.clone());
            &self.c.programs[load.side].buffers[read.buffer].dtype
        });
        if types[0] != types[1] {
            return Err("the loads have different types".into());
        }
        let looks = claim.loads[0].stmt >= self.c.programs[0].stores;
        for system in base.given(&condition, true, &place)? {
            for (a, system) in self.sources(claim.loads[0], &place, &system)? {
                if looks && a.parts().is_some_and(|(op, _)| op == "undef") {
                    // The first function leaves to the caller what it likes.
                    continue;
                }
                for (b, system) in self.sources(claim.loads[1], &place, &system)? {
                    self.same(&a, &b, &system)?;
                }
            }
        }
        Ok(())
    }

    fn sources(&mut self, load: Load, place: &Place, system: &System) -> Judged<Cases<'a>> {
        let program = &self.c.programs[load.side];
        let (stmt, read) = self.c.read_of(load);
        let flow = self.c.flows.iter().find(|f| f.load == load).ok_or_else(|| {
            format!("nothing says where load {} at line {} gets its value", load.read, stmt.line)
        })?;
        let mut cases = Vec::new();
        for piece in &flow.pieces {
            for mut system in system.given(&piece.condition, true, place)? {
                match &piece.from {
                    From::Given => {
                        let indices = system.list(&read.indices, place)?;
                        let param = program.buffers[read.buffer].param;
                        let given = param.map(|param| Value::Given { param, indices });
                        cases.push((given.unwrap_or(Value::Unwritten), system));
                    }
                    From::Known(number, _) => {
                        let e = &fact(program, *number)?.value;
                        cases.push((Value::At { at: load, e, place: place.clone() }, system));
                    }
                    From::Store(stmt, loops) => {
                        let values = system.list(loops, place)?;
                        let there = self.values(&store(program, *stmt)?.to.loops, values);
                        let at = Load { stmt: *stmt, read: 0, ..load };
                        cases.extend(self.stored(at, &there, &system)?);
                    }
                }
            }
        }
        self.met(cases)
    }

    fn stored(&self, at: Load, place: &Place, system: &System) -> Judged<Cases<'a>> {
        let source = store(&self.c.programs[at.side], at.stmt)?;
        let value = |e| Value::At { at, e, place: place.clone() };
        let mut cases = Vec::new();
        let mut whole = system.given(&source.to.condition, true, place)?;
        for pass in self.c.passes.iter().filter(|p| (p.side, p.stmt) == (at.side, at.stmt)) {
            let (_, x, ..) = operands(source)?;
            let mut rest = Vec::new();
            for system in whole {
                let passed = system.given(&pass.condition, true, place)?;
                cases.extend(passed.into_iter().map(|system| (value(x), system)));
                rest.extend(system.given(&pass.condition, false, place)?);
            }
            whole = rest;
        }
        cases.extend(whole.into_iter().map(|system| (value(&source.value), system)));
        Ok(cases)
    }

    /// Shows that two values are the same at all points of a system. What nothing was written to, the first
    /// function hands on at most, so that anything may be there.
    fn same(&mut self, a: &Value<'a>, b: &Value<'a>, system: &System) -> Judged<()> {
        if matches!(a, Value::Unwritten) {
            return Ok(());
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
        // Choices are opened before loads, which may be claimed to be equal to what is chosen.
        let opens_second = a.choice().is_none() && (b.choice().is_some() || a.load().is_none());
        match self.opened(if opens_second { b } else { a }, system)? {
            None => self.operators(a, b, system),
            Some(cases) => cases.iter().try_for_each(|(value, system)| {
                let [a, b] = if opens_second { [a, value] } else { [value, b] };
                self.inside(|judge| judge.same(a, b, system))
            }),
        }
    }

    /// Where two loads are claimed to be equal.
    fn claimed(&self, loads: [Load; 2], system: &mut System, at: &Place) -> Judged<Vec<Vec<Row>>> {
        let mut targets = Vec::new();
        for claim in self.c.claims.iter().filter(|c| c.loads == loads) {
            targets.extend(system.alternatives(&claim.condition, true, at)?);
        }
        Ok(targets)
    }

    /// Values that are no loads of what the functions wrote.
    fn operators(&mut self, a: &Value<'a>, b: &Value<'a>, system: &System) -> Judged<()> {
        let mut with = system.clone();
        let (s, x, p, t, y, q) = match (a, b) {
            (Value::At { at: s, e: x, place: p }, Value::At { at: t, e: y, place: q }) => {
                (s, *x, p, t, *y, q)
            }
            (Value::Given { param: p, indices: x }, Value::Given { param: q, indices: y }) => {
                let mut targets = Vec::new();
                if p == q {
                    targets.push(equal(&self.moved(*p, x, &mut with)?, y)?);
                }
                for pack in self.c.packs.iter().filter(|k| k.constants == [*p, *q]) {
                    let place = self.values(&pack.into, y.clone());
                    let from = equal(&with.list(&pack.map, &place)?, x)?;
                    let rows = with.alternatives(&pack.condition, true, &place)?;
                    targets.extend(rows.into_iter().map(|rows| [rows, from.clone()].concat()));
                }
                return self.need(&with, &targets);
            }
            _ => return Err("a value that was given meets another one".into()),
        };
        if let (Ok(x), Ok(y)) = (with.affine(x, p), with.affine(y, q)) {
            return self.need(&with, &[equal(&[x], &[y])?]);
        }
        match (a.parts(), b.parts()) {
            (None, None) if x == y => return Ok(()),
            (Some((f, xs)), Some((g, ys))) if f == g && xs.len() == ys.len() => {
                let mut pairs = xs.iter().zip(&ys);
                return pairs.try_for_each(|(x, y)| self.inside(|judge| judge.same(x, y, system)));
            }
            _ => {}
        }
        match [self.number(a, system), self.number(b, system)] {
            [Ok(x), Ok(y)] if x == y => Ok(()),
            _ => {
                let [x, y] = [s, t].map(|l| self.c.programs[l.side].stmts[l.stmt].line);
                Err(format!("the stores at lines {x} and {y} are of other expressions").into())
            }
        }
    }

    fn outputs(&mut self) -> Judged<()> {
        let [a, b] = &self.c.programs;
        for k in 0..a.looks.len() {
            let ends = [a, b].map(|p| &p.stmts[p.stores + k].to);
            let as_given = |p: &Program, at: usize| !p.writes(at) && p.buffers[at].param == Some(k);
            if as_given(a, ends[0].buffer) && as_given(b, ends[1].buffer) {
                continue;
            }
            let mut base = self.base.clone();
            let mut place = self.place(&ends[0].loops, &mut base);
            for mut system in base.given(&ends[0].condition, true, &place)? {
                let at: Vec<Affine> = ends[0].loops.iter().map(|v| place[v].clone()).collect();
                let cell = self.moved(k, &at, &mut system)?;
                if cell.len() != ends[1].loops.len() {
                    return Err(format!("parameter {k} has another number of axes").into());
                }
                place.extend(ends[1].loops.iter().cloned().zip(cell));
                // The second one has that cell.
                let inside = system.alternatives(&ends[1].condition, true, &place)?;
                self.need(&system, &inside)?;
                let look = |side: usize, p: &Program| Load { side, stmt: p.stores + k, read: 0 };
                let targets = self.claimed([look(0, a), look(1, b)], &mut system, &place)?;
                if targets.is_empty() {
                    let what = format!("nothing says that parameter {k} is the same at the end");
                    return Err(what.into());
                }
                self.need(&system, &targets)?;
            }
        }
        Ok(())
    }
}

fn store(program: &Program, at: usize) -> Judged<&Stmt> {
    program.stmts[..program.stores]
        .get(at)
        .ok_or_else(|| format!("statement {at} is no store").into())
}

fn fact(program: &Program, at: usize) -> Judged<&Fact> {
    program.facts.get(at).ok_or_else(|| format!("no assumption {at} is understood").into())
}

/// The operator and operands of what is stored, and the number that changes nothing as the second one.
fn operands(stmt: &Stmt) -> Judged<(&str, &Expr, &Expr, f64)> {
    stmt.value.neutral().ok_or_else(|| "it does not store what has a neutral operand".into())
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

/// When an instance of a statement runs.
type Moment<'a> = (&'a [Tick], &'a Place);

/// The systems in which the first moment is before the second one, or in which it is not.
fn order(system: &System, first: Moment, second: Moment, before: bool) -> Judged<Vec<System>> {
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
