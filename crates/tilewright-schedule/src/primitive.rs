//! What a primitive is: its signature, and how it runs.
//!
//! A file declares its primitives with `primitives!`, which makes the methods of
//! [`crate::Schedule`] and a table `PRIMITIVES` of the file; [`crate::table`] is all of them. A
//! trace keeps signatures with values. The types of arguments are those of [`crate::argument`].

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{Error, Result};

use crate::argument::Readable;
use crate::schedule::{Invocation, Schedule};
use crate::signature::{Given, Signature};
use crate::value::Value;

pub struct Primitive {
    /// What is said of it.
    pub signature: Signature,
    pub(crate) run: fn(&mut Schedule, Bound) -> Result<Vec<Value>>,
}

impl fmt::Debug for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature.fmt(f)
    }
}

/// The values of a call, one a parameter, in the order of the parameters.
pub(crate) struct Bound {
    signature: &'static Signature,
    values: std::vec::IntoIter<Option<Given>>,
    next: usize,
}

impl Bound {
    /// The next argument; `None` where its default is meant.
    pub(crate) fn next<T: Readable>(&mut self, sch: &Schedule) -> Result<Option<T>> {
        let param = &self.signature.params[self.next];
        self.next += 1;
        let Some(given) = self.values.next().flatten() else { return Ok(None) };
        let read = T::read(&given.value, sch).map_err(|e| given.place(e))?;
        read.map(Some).ok_or_else(|| {
            given.place(Error::input(format!(
                "argument `{}` of `{}` is {}, expected {}",
                param.name(),
                self.signature.name,
                given.value.describe(),
                param.takes()
            )))
        })
    }
}

impl Primitive {
    /// Calls it with the arguments of a script. A positional argument is the first one that no
    /// name gives.
    ///
    /// # Errors
    /// `Input` for arguments that do not fit, at their places; those of the primitive.
    pub fn call(
        &'static self,
        sch: &mut Schedule,
        positional: Vec<Given>,
        named: Vec<(Arc<str>, Given)>,
    ) -> Result<Vec<Value>> {
        let values = self.signature.bind(positional, named)?;
        (self.run)(sch, Bound { signature: &self.signature, values: values.into_iter(), next: 0 })
    }

    /// Calls it with a value for each parameter.
    pub(crate) fn apply(
        &'static self,
        sch: &mut Schedule,
        values: Vec<Value>,
    ) -> Result<Vec<Value>> {
        let values: Vec<Option<Given>> = values.into_iter().map(|v| Some(v.into())).collect();
        (self.run)(sch, Bound { signature: &self.signature, values: values.into_iter(), next: 0 })
    }
}

/// The step of the method of this name, which the file with this table declares.
pub(crate) fn invocation(
    file: &'static [Primitive],
    method: &'static str,
    args: Vec<Value>,
) -> Result<Invocation> {
    let primitive = file.iter().find(|p| p.signature.name == method);
    let primitive = primitive
        .ok_or_else(|| Error::internal(format!("`{method}` is in no table of primitives")))?;
    Ok(Invocation { primitive: &primitive.signature, args })
}

/// Declares the primitives of a file: methods of [`Schedule`], and the table `PRIMITIVES`.
///
/// ```text
/// primitives! {
///     /// Splits a loop into as many as there are factors.
///     split(l "loop": &LoopRef, factors: &[Option<Expr>]; preserve_unit_iters = true)
///         -> Vec<LoopRef>, edit |f| split(f, l, factors);
/// }
/// ```
///
/// The documentation of the method is that of the primitive; its first paragraph is what help
/// says. An argument may have other names in scripts (the first one is that of traces), and a
/// default, which only scripts use. `[rest]` before its name lets it take all that is left by
/// position, `[into]` lets the method take what converts to its type. After a semicolon come
/// switches of TVM's traces: `name = value` refuses the other value, `name = value or other` does
/// not. Then follows how it runs:
///
/// * `edit |f| ...`: what becomes of the function that the first argument is in, and what is
///   returned, see `Schedule::edit`;
/// * `ask |sch| ...`: what is known of the schedule, see `Schedule::ask`;
/// * `expand |sch| ...`: calls of other primitives, of which all are made or none, see
///   `Schedule::expand`;
/// * `run |sch, step| ...`: anything else that records the step, see `Schedule::run`.
macro_rules! primitives {
    ($(
        $(#[doc = $doc:literal])+
        $(#[alias($alias:literal)])?
        $method:ident (
            $( $([$mode:ident])? $arg:ident $($name:literal)* : $ty:ty $(= $default:expr)? ),*
            $( ; $($flag:ident = $value:literal $(or $other:literal)?),+ )?
        ) $(-> $out:ty)?, $how:ident |$($with:ident),+| $body:expr;
    )+) => {
        impl $crate::Schedule { $(
            $(#[doc = $doc])+
            pub fn $method(
                &mut self,
                $($arg: $crate::primitive::primitives!(@type $([$mode])? $ty)),*
            ) -> tilewright_ir::Result<$crate::primitive::primitives!(@out $($out)?)> {
                $(let $arg: $ty = $crate::primitive::primitives!(@own $([$mode])? $arg);)*
                let args = vec![$($crate::argument::Argument::record(&$arg)),*];
                let step = $crate::primitive::invocation(PRIMITIVES, stringify!($method), args)?;
                $crate::primitive::primitives!(
                    @$how self, step, [$($arg),*], |$($with),+| $body
                )
            }
        )+ }

        /// The primitives of this file.
        pub(crate) static PRIMITIVES: &[$crate::primitive::Primitive] = &[$(
            $crate::primitive::Primitive {
                signature: $crate::signature::Signature {
                name: stringify!($method),
                aliases: &[$($alias)?],
                params: &[$($crate::signature::Param {
                    names: $crate::primitive::primitives!(@names $arg $($name)*),
                    rest: $crate::primitive::primitives!(@rest $([$mode])?),
                    takes: <<$ty as $crate::argument::Argument<'_>>::Owned
                        as $crate::argument::Readable>::takes,
                    default: $crate::primitive::primitives!(@default $ty $(, $default)?),
                }),*],
                flags: &[$($($crate::signature::Flag {
                    name: stringify!($flag),
                    default: $value,
                    free: <[bool]>::len(&[$($other)?]) > 0,
                }),+)?],
                returns: <$crate::primitive::primitives!(@out $($out)?)
                    as $crate::signature::Output>::RETURNS,
                docs: &[$($doc),+],
                },
                run: |_sch, mut _bound| {
                    $(let $arg = _bound.next(_sch)?;)*
                    let out = _sch.$method($(
                        $crate::primitive::primitives!(@lend $arg: $ty $(, $default)?)
                    ),*)?;
                    Ok($crate::signature::Output::values(&out))
                },
            }
        ),+];
    };

    (@type [into] $ty:ty) => { impl Into<$ty> };
    (@type [rest] $ty:ty) => { $ty };
    (@type $ty:ty) => { $ty };
    (@own [into] $arg:ident) => { $arg.into() };
    (@own $([rest])? $arg:ident) => { $arg };
    (@out) => { () };
    (@out $out:ty) => { $out };
    (@names $arg:ident) => { &[stringify!($arg)] };
    (@names $arg:ident $($name:literal)+) => { &[$($name),+] };
    (@rest [rest]) => { true };
    (@rest $([into])?) => { false };
    (@default $ty:ty) => { None };
    (@default $ty:ty, $default:expr) => {
        Some(|| {
            let default: $ty = $default;
            $crate::argument::Argument::record(&default)
        })
    };
    (@lend $arg:ident: $ty:ty) => {
        match &$arg {
            Some(value) => <$ty as $crate::argument::Argument<'_>>::lend(value),
            None => return Err(tilewright_ir::Error::internal("an argument is missing")),
        }
    };
    (@lend $arg:ident: $ty:ty, $default:expr) => {
        match &$arg {
            Some(value) => <$ty as $crate::argument::Argument<'_>>::lend(value),
            None => $default,
        }
    };

    (@edit $sch:ident, $step:ident, [$at:ident $(, $arg:ident)*], |$f:ident| $body:expr) => {
        $sch.edit(&$at, $step, |$f| $body)
    };
    (@$how:ident $sch:ident, $step:ident, [$($arg:ident),*], |$($with:ident),+| $body:expr) => {
        $sch.$how($step, |$($with),+| $body)
    };
}
pub(crate) use primitives;
