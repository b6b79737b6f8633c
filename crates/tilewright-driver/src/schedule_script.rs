//! Schedule scripts: from the text to a schedule.
//!
//! ```
//! use tilewright_schedule::{Permissions, Schedule};
//! use tilewright_ir::Source;
//! use tilewright_driver::schedule_script::apply;
//! use tilewright_driver::{Sizes, parse, print};
//! let module = parse("
//! @T.prim_func
//! def double(A: T.Buffer((64,), 'float32'), B: T.Buffer((64,), 'float32')):
//!     for i in range(64):
//!         with T.block('B'):
//!             vi = T.axis.spatial(64, i)
//!             B[vi] = A[vi] * 2.0
//! ", &Sizes::new())?;
//! let script = Source::new("trace.py", "
//! b0 = sch.get_block(name='B')
//! l1, = sch.get_loops(block=b0)
//! l2, l3 = sch.split(loop=l1, factors=[None, 16])
//! sch.vectorize(loop=l3)
//! ");
//! let mut schedule = Schedule::new(module, Permissions::default());
//! apply(&mut schedule, &script, |_, _| Ok(()))?;
//! assert!(print(schedule.module()).contains("T.vectorized(16)"));
//! # Ok::<(), tilewright_driver::Error>(())
//! ```

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::scalar::eval_int;
use tilewright_ir::visit::{Visit, walk_buffer, walk_func};
use tilewright_ir::{BinOp, Buffer, DType, Error, Expr, ExprKind, Module, Result, Source, Var};
use tilewright_polyhedral::budget;
use tilewright_schedule::Schedule;
use tilewright_schedule::signature::Given;
use tilewright_schedule::table::find;
use tilewright_schedule::value::{Lambda, Value};
use tilewright_tvmscript::trace::{
    Argument, ArgumentKind, Builtin, Call, LambdaText, ScriptStmt, ScriptStmtKind, Target,
    parse_script,
};

use super::checked;

/// Elements of one list, those of lists inside of it included.
const MAX_ELEMENTS: usize = 10_000;

/// Values that a script makes, with those inside of lists.
const MAX_VALUES: usize = 1_000_000;

/// Passes through loops of a script.
const MAX_TURNS: usize = 1_000;

/// Runs a script on a schedule; `after` sees the text of each call and the module that it leaves.
///
/// # Errors
/// Those of reading the script and of the primitives, with the place in the script; the schedule
/// keeps what was applied before. Those of `after`. [`Error::Internal`] if, in debug builds, a
/// primitive turns out to have changed what a function computes.
pub fn apply(
    schedule: &mut Schedule,
    source: &Arc<Source>,
    mut after: impl FnMut(&str, &Module) -> Result<()>,
) -> Result<()> {
    let script = parse_script(source)?;
    let names = HashMap::default();
    let mut run = Run { schedule, source, names, after: &mut after, turns: 0, values: 0 };
    script.steps.iter().try_for_each(|s| run.step(s))
}

/// A script that runs.
struct Run<'a> {
    schedule: &'a mut Schedule,
    source: &'a Arc<Source>,
    names: HashMap<Arc<str>, Value>,
    after: &'a mut dyn FnMut(&str, &Module) -> Result<()>,
    /// Passes through loops.
    turns: usize,
    /// Values that were made.
    values: usize,
}

impl Run<'_> {
    fn step(&mut self, step: &ScriptStmt) -> Result<()> {
        let source = self.source;
        match &step.kind {
            ScriptStmtKind::Call(c) => self.call(c).map(|_| ()),
            ScriptStmtKind::Assign(target, value) => {
                let value = self.value(value)?;
                self.assign(target, value).map_err(|e| e.at(step.span).in_source(source))
            }
            ScriptStmtKind::For(target, over, body) => {
                let Value::List(items) = self.value(over)? else {
                    return Err(Error::input("a loop of a script runs over a list")
                        .at(step.span)
                        .in_source(source));
                };
                for item in items {
                    self.turns += 1;
                    if self.turns > MAX_TURNS {
                        let message = format!("a script takes at most {MAX_TURNS} turns");
                        return Err(Error::input(message).at(step.span).in_source(source));
                    }
                    self.assign(target, item).map_err(|e| e.at(step.span).in_source(source))?;
                    body.iter().try_for_each(|s| self.step(s))?;
                }
                Ok(())
            }
        }
    }

    /// Runs a primitive; what it returns is a list where its trace writes one.
    fn call(&mut self, call: &Call) -> Result<Value> {
        let source = self.source;
        let mut named = Vec::new();
        let mut positional = Vec::new();
        if let Some(receiver) = &call.receiver {
            // `s[B].transform_layout(...)`: the stage that writes the buffer `B`.
            named.push(("block".into(), self.evaluate_argument(receiver)?));
        }
        for (name, argument) in &call.args {
            match (name, &argument.kind) {
                (Some(name), _) => named.push((name.clone(), self.evaluate_argument(argument)?)),
                (None, ArgumentKind::Star(of)) => {
                    let place = Some((source.clone(), argument.span));
                    positional.extend(
                        self.elements(of)?
                            .into_iter()
                            .map(|value| Given { value, place: place.clone() }),
                    );
                }
                (None, _) => positional.push(self.evaluate_argument(argument)?),
            }
        }
        let text = source.text.get(call.span.start as usize..call.span.end as usize);
        let text = text.unwrap_or(&call.method);
        let before = self.schedule.module().clone();
        let primitive = find(&call.method).map_err(|e| e.at(call.span).in_source(source))?;
        let (outputs, _) = budget::within(&call.method, budget::PER_FUNCTION, || {
            primitive.call(self.schedule, positional, named)
        });
        let mut outputs = outputs.map_err(|e| match e.diagnostic() {
            d if d.source.as_ref().is_some_and(|s| Arc::ptr_eq(s, source)) => e,
            // A refusal that points into the module stays there, and says who asked.
            d if d.span.is_some() => {
                let (line, _) = source.line_col(call.span.start);
                e.note(format!("{}:{line} asked for it: {text}", source.name))
            }
            _ => e.at(call.span).in_source(source),
        })?;
        checked::check_step(&call.method, &before, self.schedule.module())?;
        (self.after)(text, self.schedule.module())?;
        Ok(match outputs.len() {
            _ if primitive.signature.returns.is_list() => Value::List(outputs),
            0 => Value::None,
            _ => outputs.swap_remove(0),
        })
    }

    /// Gives a value to a name, or its elements to several.
    fn assign(&mut self, target: &Target, value: Value) -> Result<()> {
        let items = match target {
            Target::Name(name) | Target::Rest(name) => {
                self.names.insert(name.clone(), value);
                return Ok(());
            }
            Target::List(items) => items,
        };
        let Value::List(values) = value else {
            let e = format!("{} is given to {} names", value.describe(), items.len());
            return Err(Error::input(e));
        };
        let star = items.iter().position(|t| matches!(t, Target::Rest(_)));
        let fits = match star {
            Some(_) => items.len() <= values.len() + 1,
            None => items.len() == values.len(),
        };
        if !fits {
            let (n, m) = (values.len(), items.len() - usize::from(star.is_some()));
            let least = if star.is_some() { "at least " } else { "" };
            return Err(Error::input(format!("there are {n} values for {least}{m} names")));
        }
        let rest = (values.len() + 1).saturating_sub(items.len());
        let mut values = values.into_iter();
        for item in items {
            let value = match item {
                Target::Rest(_) => Value::List(values.by_ref().take(rest).collect()),
                _ => values.next().unwrap_or(Value::None),
            };
            self.assign(item, value)?;
        }
        Ok(())
    }

    /// The elements of a list.
    fn elements(&mut self, a: &Argument) -> Result<Vec<Value>> {
        match self.value(a)? {
            Value::List(items) => Ok(items),
            other => Err(self.wrong(a, format!("expected a list, found {}", other.describe()))),
        }
    }

    fn number(&mut self, a: &Argument) -> Result<i64> {
        match self.value(a)? {
            Value::Int(v) => Ok(v),
            other => {
                Err(self.wrong(a, format!("expected a whole number, found {}", other.describe())))
            }
        }
    }

    fn wrong(&self, a: &Argument, message: impl Into<String>) -> Error {
        Error::input(message).at(a.span).in_source(self.source)
    }

    /// The value of an argument of a call, with its place.
    fn evaluate_argument(&mut self, a: &Argument) -> Result<Given> {
        Ok(Given { value: self.value(a)?, place: Some((self.source.clone(), a.span)) })
    }

    /// The value of an argument, which counts among those that the script may make.
    fn value(&mut self, a: &Argument) -> Result<Value> {
        let value = self.evaluated(a)?;
        self.values = self.values.saturating_add(count(&value));
        if self.values > MAX_VALUES {
            Err(self.wrong(a, format!("a script makes at most {MAX_VALUES} values")))
        } else {
            Ok(value)
        }
    }

    fn evaluated(&mut self, a: &Argument) -> Result<Value> {
        Ok(match &a.kind {
            ArgumentKind::Constant(value) => value.into(),
            ArgumentKind::List(items) => {
                let mut all = Vec::new();
                for item in items {
                    match &item.kind {
                        ArgumentKind::Star(of) => all.extend(self.elements(of)?),
                        _ => all.push(self.value(item)?),
                    }
                }
                Value::List(all)
            }
            ArgumentKind::Lambda(l) => {
                Value::Lambda(lambda(l, &Arc::new(Context::new(self.schedule))))
            }
            ArgumentKind::Name(name) => self.name(a, name)?,
            ArgumentKind::Call(c) => self.call(c)?,
            ArgumentKind::Star(_) => return Err(self.wrong(a, "a star stands in a list only")),
            ArgumentKind::Item(of, at) => {
                let (items, at) = (self.elements(of)?, self.number(at)?);
                let count = items.len() as i64;
                let place = if at < 0 { at.saturating_add(count) } else { at };
                let item = usize::try_from(place).ok().and_then(|k| items.get(k).cloned());
                item.ok_or_else(|| {
                    self.wrong(a, format!("there are {count} elements, and no element {at}"))
                })?
            }
            ArgumentKind::Slice(of, parts) => {
                let items = self.elements(of)?;
                let mut ends = [None; 3];
                for (end, part) in ends.iter_mut().zip(parts) {
                    *end = part.as_ref().map(|p| self.number(p)).transpose()?;
                }
                if ends[2] == Some(0) {
                    return Err(self.wrong(a, "the step of a slice is zero"));
                }
                Value::List(slice(&items, ends))
            }
            ArgumentKind::Binary(op, x, y) => self.binary(a, *op, x, y)?,
            ArgumentKind::Builtin(builtin, args) => self.builtin(a, *builtin, args)?,
            ArgumentKind::Each { item, target, over } => {
                let mut all = Vec::new();
                // The names of a list hold inside of it only.
                let outer = self.names.clone();
                for element in self.elements(over)? {
                    self.assign(target, element)
                        .map_err(|e| e.at(a.span).in_source(self.source))?;
                    all.push(self.value(item)?);
                }
                self.names = outer;
                Value::List(all)
            }
        })
    }

    fn name(&self, a: &Argument, name: &Arc<str>) -> Result<Value> {
        if let Some(v) = self.names.get(name) {
            return Ok(v.clone());
        }
        // A buffer of the function, as in `s[B]`.
        if Context::new(self.schedule).buffers.iter().any(|b| b.name == *name) {
            return Ok(Value::Str(name.clone()));
        }
        let e = self.wrong(a, format!("`{name}` is not defined in the script"));
        let mut known: Vec<&str> = self.names.keys().map(|k| &**k).collect();
        known.sort_unstable();
        Err(if known.is_empty() { e } else { e.note(format!("defined are: {}", known.join(", "))) })
    }

    /// Arithmetic on whole numbers; sums of lists, and lists several times over.
    fn binary(&mut self, a: &Argument, op: BinOp, x: &Argument, y: &Argument) -> Result<Value> {
        let (x, y) = (self.value(x)?, self.value(y)?);
        let value = match (op, x, y) {
            (_, Value::Int(x), Value::Int(y)) => eval_int(op, x, y, DType::I64).map(Value::Int),
            (BinOp::Add, Value::List(x), Value::List(y)) => {
                Some(Value::List([x, y].concat())).filter(small)
            }
            (BinOp::Mul, Value::List(x), Value::Int(n)) => {
                let n = usize::try_from(n).unwrap_or(0);
                let elements: usize = x.iter().map(count).sum();
                let fits = elements.checked_mul(n).is_some_and(|n| n <= MAX_ELEMENTS);
                fits.then(|| Value::List(x.iter().cycle().take(x.len() * n).cloned().collect()))
            }
            _ => None,
        };
        value.ok_or_else(|| self.wrong(a, "this has no value in a script"))
    }

    fn builtin(&mut self, a: &Argument, builtin: Builtin, args: &[Argument]) -> Result<Value> {
        match (builtin, args) {
            (Builtin::Len, [of]) => {
                let count = self.elements(of)?.len();
                Ok(Value::Int(count as i64))
            }
            (Builtin::List, []) => list_value(Vec::new()),
            (Builtin::List, [of]) => list_value(self.elements(of)?),
            (Builtin::Reversed, [of]) => list_value(self.elements(of)?.into_iter().rev().collect()),
            (Builtin::Enumerate, [of]) => {
                let items = self.elements(of)?.into_iter().enumerate();
                list_value(items.map(|(k, v)| Value::List(vec![Value::Int(k as i64), v])).collect())
            }
            (Builtin::Zip, lists) => {
                let mut all = Vec::new();
                for of in lists {
                    all.push(self.elements(of)?);
                }
                let count = all.iter().map(Vec::len).min().unwrap_or(0);
                list_value(
                    (0..count)
                        .map(|k| {
                            Value::List(all.iter().filter_map(|l| l.get(k).cloned()).collect())
                        })
                        .collect(),
                )
            }
            (Builtin::Range, [_] | [_, _] | [_, _, _]) => {
                let mut numbers = Vec::new();
                for n in args {
                    numbers.push(self.number(n)?);
                }
                let (start, end, step) = match numbers[..] {
                    [start, end, step] => (start, end, step),
                    [start, end] => (start, end, 1),
                    _ => (0, numbers[0], 1),
                };
                let mut all = Vec::new();
                let mut at = start;
                while (step > 0 && at < end) || (step < 0 && at > end) {
                    all.push(Value::Int(at));
                    match at.checked_add(step).filter(|_| all.len() <= MAX_ELEMENTS) {
                        Some(next) => at = next,
                        None => return Err(self.wrong(a, "the range is too long")),
                    }
                }
                match step {
                    0 => Err(self.wrong(a, "the step of a range is zero")),
                    _ => list_value(all),
                }
            }
            _ => Err(self.wrong(a, "another number of arguments is expected")),
        }
    }
}

fn list_value(values: Vec<Value>) -> Result<Value> {
    Ok(Value::List(values))
}

/// How many values there are in a value, itself included.
fn count(v: &Value) -> usize {
    match v {
        Value::List(items) => items.iter().map(count).fold(1, usize::saturating_add),
        _ => 1,
    }
}

/// Whether a list is no longer than lists may be.
fn small(v: &Value) -> bool {
    count(v) <= MAX_ELEMENTS + 1
}

/// The elements from a start up to an end, by a step that is not zero, as Python counts them.
fn slice(items: &[Value], [start, end, step]: [Option<i64>; 3]) -> Vec<Value> {
    let count = items.len() as i64;
    let step = step.unwrap_or(1);
    // Places between the elements for steps forwards, and the elements themselves for steps back.
    let (low, high) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let first =
        start.map_or(if step > 0 { low } else { high }, |at| position_in(at, count, low, high));
    let last =
        end.map_or(if step > 0 { high } else { low }, |at| position_in(at, count, low, high));
    let mut all = Vec::new();
    let mut at = first;
    while (step > 0 && at < last) || (step < 0 && at > last) {
        all.extend(usize::try_from(at).ok().and_then(|k| items.get(k).cloned()));
        at = at.saturating_add(step);
    }
    all
}

fn position_in(at: i64, count: i64, low: i64, high: i64) -> i64 {
    let at = if at < 0 { at.saturating_add(count) } else { at };
    at.clamp(low, high)
}

/// What names in a lambda may stand for: the variables and buffers of the scheduled function.
struct Context {
    vars: Vec<Var>,
    buffers: Vec<Buffer>,
}

impl Context {
    /// Empty where the module does not say which function is meant.
    fn new(schedule: &Schedule) -> Self {
        let mut found = Found { vars: Vec::new(), buffers: Vec::new() };
        if let Ok(func) = schedule.current().and_then(|name| schedule.func(&name).cloned()) {
            walk_func(&mut found, &func);
        }
        Context { vars: found.vars, buffers: found.buffers }
    }
}

struct Found {
    vars: Vec<Var>,
    buffers: Vec<Buffer>,
}

impl Found {
    fn add(&mut self, v: &Var) {
        if !self.vars.contains(v) {
            self.vars.push(v.clone());
        }
    }
}

impl Visit for Found {
    fn var_def(&mut self, v: &Var) {
        self.add(v);
    }
    fn buffer_def(&mut self, b: &Buffer) {
        self.buffers.push(b.clone());
        walk_buffer(self, b);
    }
    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Var(v) = e.kind() {
            self.add(v);
        }
        tilewright_ir::visit::walk_expr(self, e);
    }
}

fn lambda(text: &LambdaText, context: &Arc<Context>) -> Lambda {
    let (shown, text, context) = (text.text().to_owned(), text.clone(), context.clone());
    Lambda::over_buffers(shown, move |dtypes, first| {
        let buffers: Vec<Buffer> = context.buffers.iter().chain(first).cloned().collect();
        text.bind(dtypes, &context.vars, &buffers)
    })
}
