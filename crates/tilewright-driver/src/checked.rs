//! Each transformation against what it was given, in debug builds.
//!
//! Functions run on symbols before and after. One that computes something else afterwards, or that
//! has become illegal, is an internal error of the transformation. What is not decided within a
//! small budget passes.

use std::sync::Arc;

use tilewright_graph::sizes::{self, Sizes};
use tilewright_interp::Uninitialised;
use tilewright_ir::{Error, Function, Module, Param, Result, well_formed};
use tilewright_verify::{Verdict, VerifyOptions};

/// Sizes that are open are taken to be this.
const SIZE: usize = 5;

/// What one function may take. A schedule may ask for another order of a sum. The leave to read what
/// is not written may be gone.
fn budget(before: &Module) -> VerifyOptions {
    let uninitialised =
        if arbitrary(before) { Uninitialised::Undef } else { Uninitialised::Refuse };
    VerifyOptions {
        reassociate: true,
        terms: 1 << 16,
        steps: 200_000,
        memory: 1 << 18,
        uninitialised,
        samples: false,
        ..VerifyOptions::default()
    }
}

/// Checks what became of the functions of a module, in debug builds. Where there are graph
/// functions only they count: what they call may change together with the calls.
///
/// # Errors
/// [`Error::Internal`] with the first element that differs.
pub(crate) fn check(what: &str, before: &Module, after: &Module) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    for (name, old) in &before.functions {
        let changed = match (old, after.functions.get(name)) {
            (Function::Tensor(f), Some(Function::Tensor(g))) => {
                !graphs(before) && !Arc::ptr_eq(f, g)
            }
            (Function::Graph(_), Some(Function::Graph(_))) => true,
            _ => false,
        };
        if changed {
            function(what, name, before, after)?;
        }
    }
    Ok(())
}

/// [`check`] for an instruction of a schedule, which may change the interface of a function.
pub(crate) fn check_step(what: &str, before: &Module, after: &Module) -> Result<()> {
    let all = before.tensors().all(|(name, f)| {
        after.tensor(name).is_ok_and(|g| {
            f.params.iter().zip(&g.params).all(|pair| match pair {
                (Param::Scalar(v), Param::Scalar(w)) => v == w,
                (Param::Buffer { buffer: b, .. }, Param::Buffer { buffer: c, .. }) => b == c,
                _ => false,
            })
        })
    });
    if all { check(what, before, after) } else { Ok(()) }
}

fn graphs(module: &Module) -> bool {
    module.graphs().next().is_some()
}

fn function(what: &str, name: &str, before: &Module, after: &Module) -> Result<()> {
    let (Ok(before), Ok(after)) = (closed(before, name), closed(after, name)) else {
        return Ok(());
    };
    // A free integer is an index variable: arithmetic on it stays in its type, which symbols do not know.
    if well_formed::check_module(&before).is_err() {
        return Ok(());
    }
    let budget = budget(&before);
    match tilewright_verify::functions(&before, name, &after, name, &budget) {
        Ok(Verdict::Equal(_) | Verdict::Undecided(_)) => Ok(()),
        Ok(Verdict::Differ(d)) => {
            let [old, new] = &d.terms;
            let message = format!("`{what}` changed `{name}`: {} was {old} and is {new}", d.cell);
            let inputs = d.inputs.iter().map(|(cell, value)| format!("{cell} = {value}"));
            let inputs: Vec<String> = inputs.collect();
            Err(Error::internal(message).note(format!("with {}", inputs.join(", "))))
        }
        // Other parameters than before, or illegal to begin with.
        Err(e) if !matches!(e, Error::Execution(_)) => Ok(()),
        Err(e) => match tilewright_verify::functions(&before, name, &before, name, &budget) {
            Err(_) => Ok(()),
            Ok(_) => Err(Error::internal(format!("`{what}` made `{name}` illegal: {e}"))),
        },
    }
}

/// A function alone, a graph function with what it calls, at a size for all that is open.
fn closed(module: &Module, name: &str) -> Result<Module> {
    let mut alone = module.clone();
    if let Some(Function::Tensor(_)) = module.functions.get(name) {
        alone.functions.retain(|n, _| **n == *name);
    }
    let open = sizes::open(&alone);
    sizes::fill(&alone, &open.iter().fold(Sizes::new(), |known, n| known.dim(&**n, SIZE)))
}

/// Whether arbitrary values occur in a module: reading memory that is not written may have been allowed.
fn arbitrary(module: &Module) -> bool {
    module.tensors().any(|(_, f)| f.body.effects().arbitrary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &str) -> Module {
        let text = format!(
            "@T.prim_func\ndef f(A: T.Buffer((n,), 'int32'), B: T.Buffer((n,), 'int32')):\n    {body}\n"
        );
        let text = text.replace("(n,)", "(4,)");
        crate::parse(&text, &Sizes::new()).expect("it reads")
    }

    fn text(before: &str, after: &str) -> String {
        match check("pass", &module(before), &module(after)) {
            Ok(()) => "fine".to_owned(),
            Err(e) => e.render(),
        }
    }

    #[test]
    fn what_a_pass_breaks_is_an_internal_error() {
        let double = "for i in range(4): B[i] = A[i] * 2";
        assert_eq!(text(double, "for i in range(4): B[3 - i] = A[3 - i] + A[3 - i]"), "fine");
        let wrong = text(double, "for i in range(4): B[i] = A[i] + i");
        assert!(wrong.contains("`pass` changed `f`: `B`[0] was (A[0] * 2) and is A[0]"), "{wrong}");
        let illegal = text(double, "for i in range(5): B[i] = A[i] * 2");
        assert!(illegal.contains("`pass` made `f` illegal"), "{illegal}");
        // What was illegal before may be anything.
        assert_eq!(text("B[4] = 0", "B[5] = 1"), "fine");
    }

    #[test]
    fn a_schedule_may_change_the_interface() {
        let (a, b) = (module("B[0] = A[1]"), module("B[1] = A[0]"));
        assert!(check("pass", &a, &b).is_err());
        assert!(check_step("transform_layout", &a, &b).is_ok());
    }
}
