//! The function that runs a whole plan.
//!
//! `int32_t PREFIX_run(const context *ctx, const void *const *inputs, void *const *outputs, const
//! void *const *constants, void *arena)` calls the kernels of the plan one after the other, with
//! the places that the plan gives them. Constants and arena are at 64-byte boundaries. The context
//! is that of the kernels (see [`crate::emit`]) and may be null.
//!
//! The result is 0, or where an assertion failed the number that [`failure`] takes apart: which
//! step, and which of its function's messages.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use tilewright_ir::{Error, Plan, Result, Slot, TensorFunc};
use tilewright_target::Target;

use crate::emit::{self, MAX_MESSAGES, check_prefix};

/// Results of one step's kernel; the number of the step counts in these.
pub(crate) const STEP: usize = MAX_MESSAGES + 1;

/// The symbol of the function under a prefix.
pub fn symbol(prefix: &str) -> String {
    format!("{prefix}_run")
}

/// The step that failed and the position of the message among
/// [`assertions`](emit::assertions) of its function; `None` for 0 and what is not a
/// result.
pub fn failure(result: i32) -> Option<(usize, usize)> {
    let result = usize::try_from(result).ok()?;
    Some((result / STEP, (result % STEP).checked_sub(1)?))
}

/// The LLVM IR of a module with the function alone; the kernels are declared.
///
/// # Errors
/// [`Error::Input`] if the prefix is not a C identifier, [`Error::Internal`] if the plan uses an
/// input, output, constant or byte that it does not have.
pub fn emit(prefix: &str, plan: &Plan) -> Result<String> {
    let mut text = function(prefix, plan, Visibility::Default)?;
    let kernels: BTreeSet<String> =
        plan.steps.iter().map(|s| emit::symbol(prefix, &s.func)).collect();
    for kernel in kernels {
        let _ = writeln!(text, "declare hidden i32 @{kernel}(ptr, ptr)");
    }
    Ok(text)
}

/// The LLVM IR of a module with the function and the kernels that it calls.
///
/// # Errors
/// Those of [`emit()`] and [`emit::module`], and [`Error::Internal`] if the plan calls a function
/// that is not among these.
pub fn program(
    prefix: &str,
    plan: &Plan,
    funcs: &[(Arc<str>, &TensorFunc)],
    target: &Target,
) -> Result<String> {
    program_with(prefix, plan, funcs, target, Visibility::Default)
}

/// Whether a symbol can be used outside the library or program that it is linked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Default,
    Hidden,
}

/// [`program`], where the function may stay inside the library that it is linked into.
pub(crate) fn program_with(
    prefix: &str,
    plan: &Plan,
    funcs: &[(Arc<str>, &TensorFunc)],
    target: &Target,
    visibility: Visibility,
) -> Result<String> {
    if let Some(step) = plan.steps.iter().find(|s| !funcs.iter().any(|(n, _)| *n == s.func)) {
        return Err(broken(format!("there is no function `{}`", step.func)));
    }
    let kernels = emit::module_with_prefix(prefix, funcs, target)?;
    Ok(function(prefix, plan, visibility)? + &kernels)
}

fn broken(what: String) -> Error {
    Error::internal(format!("the memory plan is wrong: {what}"))
}

/// The definition of the function.
fn function(prefix: &str, plan: &Plan, visibility: Visibility) -> Result<String> {
    check_prefix(prefix)?;
    let most = i32::MAX as usize / STEP;
    if plan.steps.len() > most {
        let text = format!("a plan of {} steps, at most {most} are possible", plan.steps.len());
        return Err(Error::unsupported(text));
    }
    let hidden = if visibility == Visibility::Hidden { "hidden " } else { "" };
    let mut out = format!(
        "define {hidden}i32 @{}(ptr %ctx, ptr %inputs, ptr %outputs, ptr %constants, ptr %arena) nounwind {{\n",
        symbol(prefix)
    );
    let slots = plan.steps.iter().map(|s| s.args.len()).max().unwrap_or(0);
    let _ = writeln!(out, "  %args = alloca [{} x i64], align 8", slots.max(1));
    for (table, count) in [
        ("inputs", plan.inputs.len()),
        ("outputs", plan.outputs.len()),
        ("constants", plan.constants.len()),
    ] {
        for k in 0..count {
            let _ = writeln!(out, "  %{table}.at{k} = getelementptr ptr, ptr %{table}, i64 {k}");
            let _ = writeln!(out, "  %{table}.{k} = load ptr, ptr %{table}.at{k}, align 8");
        }
    }
    for (n, step) in plan.steps.iter().enumerate() {
        let missing = |slot: &Slot| broken(format!("step {n}, `{}`, uses {slot:?}", step.func));
        for (k, slot) in step.args.iter().enumerate() {
            let value = match *slot {
                Slot::Input(i) if i < plan.inputs.len() => format!("ptr %inputs.{i}"),
                Slot::Output(i) if i < plan.outputs.len() => format!("ptr %outputs.{i}"),
                Slot::Constant(i) if i < plan.constants.len() => format!("ptr %constants.{i}"),
                Slot::Arena(at) if at <= plan.arena_bytes => {
                    let _ =
                        writeln!(out, "  %arena.{n}.{k} = getelementptr i8, ptr %arena, i64 {at}");
                    format!("ptr %arena.{n}.{k}")
                }
                Slot::Number(n) => format!("i64 {n}"),
                _ => return Err(missing(slot)),
            };
            let _ = writeln!(out, "  %slot.{n}.{k} = getelementptr i64, ptr %args, i64 {k}");
            let _ = writeln!(out, "  store {value}, ptr %slot.{n}.{k}, align 8");
        }
        let kernel = emit::symbol(prefix, &step.func);
        let _ = writeln!(out, "  %code.{n} = call i32 @{kernel}(ptr %ctx, ptr %args)");
        let _ = writeln!(out, "  %failed.{n} = icmp ne i32 %code.{n}, 0");
        let _ = writeln!(out, "  br i1 %failed.{n}, label %fail{n}, label %step{n}");
        let _ = writeln!(out, "fail{n}:");
        let _ = writeln!(out, "  %result.{n} = add i32 %code.{n}, {}", n * STEP);
        let _ = writeln!(out, "  ret i32 %result.{n}");
        let _ = writeln!(out, "step{n}:");
    }
    out.push_str("  ret i32 0\n}\n");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{DType, Port, Step};

    fn plan(args: Vec<Slot>) -> Plan {
        let port = |n: &str| Port { name: n.into(), dtype: DType::F32, shape: vec![4] };
        Plan {
            inputs: vec![port("x")],
            outputs: vec![port("y")],
            steps: vec![Step { func: "f".into(), args, idle: false }],
            arena_bytes: 64,
            ..Plan::default()
        }
    }

    #[test]
    fn results_are_taken_apart() {
        assert_eq!(failure(0), None);
        assert_eq!(failure(-3), None);
        assert_eq!(failure(1), Some((0, 0)));
        assert_eq!(failure(3 * 4096 + 5), Some((3, 4)));
        assert_eq!(failure(4096), None);
    }

    #[test]
    fn a_plan_without_end_is_refused() {
        let step = Step { func: "f".into(), args: Vec::new(), idle: false };
        let endless = Plan { steps: vec![step; i32::MAX as usize / STEP + 1], ..Plan::default() };
        let error = emit("m", &endless).expect_err("too many steps");
        assert!(matches!(error, Error::Unsupported(_)));
        assert_eq!(error.to_string(), "a plan of 524288 steps, at most 524287 are possible");
    }

    #[test]
    fn a_plan_that_is_wrong_is_an_error() {
        for slot in [Slot::Input(1), Slot::Output(2), Slot::Constant(0), Slot::Arena(65)] {
            let error = emit("m", &plan(vec![slot])).expect_err("there is no such place");
            assert!(matches!(error, Error::Internal(_)), "{error}");
            assert!(error.to_string().contains(&format!("step 0, `f`, uses {slot:?}")), "{error}");
        }
        let target = Target::new("", "", "");
        let error = program("m", &plan(vec![Slot::Input(0)]), &[], &target);
        let error = error.expect_err("there is no such function");
        assert!(error.to_string().contains("there is no function `f`"), "{error}");
        assert!(emit("no prefix", &plan(Vec::new())).is_err());
    }
}
