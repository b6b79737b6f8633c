//! Schedule scripts: from the text to a schedule.
//!
//! ```
//! use tilewright::schedule_script::apply;
//! use tilewright::schedule::{Permissions, Schedule};
//! use tilewright::{Module, ModuleExt, ir::Source};
//! let module = Module::from_script("
//! @T.prim_func
//! def double(A: T.Buffer((64,), 'float32'), B: T.Buffer((64,), 'float32')):
//!     for i in range(64):
//!         with T.block('B'):
//!             vi = T.axis.spatial(64, i)
//!             B[vi] = A[vi] * 2.0
//! ")?;
//! let script = Source::new("trace.py", "
//! b0 = sch.get_block(name='B')
//! l1, = sch.get_loops(block=b0)
//! l2, l3 = sch.split(loop=l1, factors=[None, 16])
//! sch.vectorize(loop=l3)
//! ");
//! let mut schedule = Schedule::new(module, Permissions::default());
//! apply(&mut schedule, &script, |_, _| Ok(()))?;
//! assert!(schedule.module().to_script().contains("T.vectorized(16)"));
//! # Ok::<(), tilewright::Error>(())
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::visit::{Visit, walk_buffer, walk_func};
use tilewright_ir::{Buffer, Error, Expr, ExprKind, Module, Result, Source, Var};
use tilewright_schedule::Schedule;
use tilewright_schedule::trace::{Lambda, LambdaBody, LambdaItem, Value};
use tilewright_script::trace::{Argument, ArgumentKind, BoundItem, Call, LambdaText, parse_script};
use tilewright_sets::budget;

use crate::checked;

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
    let mut names: HashMap<Arc<str>, Value> = HashMap::new();
    for call in &script.calls {
        let text = source.text.get(call.span.start as usize..call.span.end as usize);
        let text = text.unwrap_or(&call.method);
        let before = schedule.module().clone();
        let asked = || run(schedule, call, &names, source);
        let (outputs, _) = budget::within(&call.method, budget::PER_FUNCTION, asked);
        let outputs = outputs.map_err(|e| match e.diagnostic() {
            d if d.source.as_ref().is_some_and(|s| Arc::ptr_eq(s, source)) => e,
            // A refusal that points into the module stays there, and says who asked.
            d if d.span.is_some() => {
                let (line, _) = source.line_col(call.span.start);
                e.note(format!("{}:{line} asked for it: {text}", source.name))
            }
            _ => e.at(call.span).in_source(source),
        })?;
        bind_outputs(call, outputs, &mut names).map_err(|e| e.at(call.span).in_source(source))?;
        checked::check_step(&call.method, &before, schedule.module())?;
        after(text, schedule.module())?;
    }
    Ok(())
}

fn run(
    schedule: &mut Schedule,
    call: &Call,
    names: &HashMap<Arc<str>, Value>,
    source: &Arc<Source>,
) -> Result<Vec<Value>> {
    let context = Arc::new(Context::new(schedule));
    let value = |a: &Argument| value(a, names, &context).map_err(|e| e.in_source(source));
    let mut positional = Vec::new();
    let mut named = Vec::new();
    if let Some(receiver) = &call.receiver {
        // `s[B].transform_layout(...)`: the stage that writes the buffer `B`.
        named.push(("block".into(), value(receiver)?));
    }
    for (name, argument) in &call.args {
        match name {
            Some(name) => named.push((name.clone(), value(argument)?)),
            None => positional.push(value(argument)?),
        }
    }
    schedule.call(&call.method, positional, named)
}

fn bind_outputs(
    call: &Call,
    outputs: Vec<Value>,
    names: &mut HashMap<Arc<str>, Value>,
) -> Result<()> {
    match call.outputs.len() {
        0 => {}
        1 if outputs.len() > 1 => {
            names.insert(call.outputs[0].clone(), Value::List(outputs));
        }
        n if n == outputs.len() => names.extend(call.outputs.iter().cloned().zip(outputs)),
        n => {
            return Err(Error::input(format!(
                "`{}` returns {} values, not {n}",
                call.method,
                outputs.len()
            )));
        }
    }
    Ok(())
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

fn value(a: &Argument, names: &HashMap<Arc<str>, Value>, context: &Arc<Context>) -> Result<Value> {
    Ok(match &a.kind {
        ArgumentKind::None => Value::None,
        ArgumentKind::Bool(v) => Value::Bool(*v),
        ArgumentKind::Int(v) => Value::Int(*v),
        ArgumentKind::Float(v) => Value::Float(*v),
        ArgumentKind::Str(s) => Value::Str(s.clone()),
        ArgumentKind::Expr(e) => Value::Expr(e.clone()),
        ArgumentKind::List(items) => {
            Value::List(items.iter().map(|i| value(i, names, context)).collect::<Result<_>>()?)
        }
        ArgumentKind::Lambda(l) => Value::Lambda(lambda(l, context)),
        ArgumentKind::Name(name) => match names.get(name) {
            Some(v) => v.clone(),
            // A buffer of the function, as in `s[B]`.
            None if context.buffers.iter().any(|b| b.name == *name) => Value::Str(name.clone()),
            None => {
                let known: Vec<&str> = names.keys().map(|k| &**k).collect();
                let e = Error::input(format!("`{name}` is not defined in the script")).at(a.span);
                return Err(match known.is_empty() {
                    true => e,
                    false => e.note(format!("defined are: {}", known.join(", "))),
                });
            }
        },
    })
}

fn lambda(text: &LambdaText, context: &Arc<Context>) -> Lambda {
    let (shown, text, context) = (text.text().to_owned(), text.clone(), context.clone());
    Lambda::over_buffers(shown, move |dtypes, first| {
        let buffers: Vec<Buffer> = context.buffers.iter().chain(first).cloned().collect();
        let bound = text.bind(dtypes, &context.vars, &buffers)?;
        let items = bound.items.into_iter().map(|i| match i {
            BoundItem::Expr(e) => LambdaItem::Expr(e),
            BoundItem::Number(v) => LambdaItem::Number(v),
            BoundItem::None => LambdaItem::None,
            BoundItem::Separator => LambdaItem::Separator,
        });
        Ok(LambdaBody { params: bound.params, items: items.collect() })
    })
}
