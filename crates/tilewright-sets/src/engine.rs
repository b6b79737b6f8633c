//! The engine of this thread, and how much it may work.

use std::cell::RefCell;
use std::path::Path;

use tilewright_ir::{Error, Expr, Range, Var};

use crate::answer::{Known, Reason};
use crate::budget;
use crate::domain::Domain;
use crate::isl::Ctx;
use crate::isl::api::Api;

/// Operations that a question may take unless the caller says otherwise. Simple questions take
/// tens to hundreds; this many take about a second.
pub const DEFAULT_QUOTA: u64 = 4_000_000;

/// Access to the set engine.
///
/// Everything is built from one: [`Engine::domain`] is the usual start. There is one context a
/// thread; engines of a thread share it, and what they make stays on the thread (no `Send`).
#[derive(Clone)]
pub struct Engine {
    pub(crate) ctx: Ctx,
    quota: u64,
}

impl Engine {
    /// The engine of this thread, with the default quota.
    ///
    /// # Errors
    /// [`Error::Toolchain`] where libisl is missing; its help says how to get it.
    pub fn new() -> Result<Engine, Error> {
        thread_local! {
            static CTX: RefCell<Option<Ctx>> = const { RefCell::new(None) };
        }
        let api = Api::get()?;
        let ctx = CTX.with_borrow_mut(|slot| slot.get_or_insert_with(|| Ctx::new(api)).clone());
        Ok(Engine { ctx, quota: DEFAULT_QUOTA })
    }

    /// The same engine with another quota: operations of the library that one question may take.
    pub fn with_quota(&self, operations: u64) -> Engine {
        Engine { ctx: self.ctx.clone(), quota: operations }
    }

    /// Version of the library, as it reports it.
    pub fn version(&self) -> &str {
        &self.ctx.library().version
    }

    /// The file of the library, or the name under which the dynamic linker found it.
    pub fn file(&self) -> &Path {
        &self.ctx.library().file
    }

    /// A domain without variables: one point, nothing known.
    pub fn domain(&self) -> Domain {
        Domain::unit(self)
    }

    /// The points with `range.min <= var < range.min + range.extent` for each variable, where each
    /// guard holds. Variables that only occur in ranges and guards are symbolic.
    pub fn domain_of(&self, ranges: &[(Var, Range)], guards: &[Expr]) -> Domain {
        Domain::build(self, ranges, guards)
    }

    /// The points `0 <= var < extent`.
    pub fn box_of(&self, extents: &[(Var, i64)]) -> Domain {
        let ranges: Vec<(Var, Range)> = extents
            .iter()
            .map(|(v, n)| (v.clone(), Range::upto(Expr::int(*n, v.dtype()))))
            .collect();
        self.domain_of(&ranges, &[])
    }

    /// Runs a question under the quota, and under the budget of the work that asks it. Questions
    /// that arise inside of one are parts of it.
    pub(crate) fn ask<T>(&self, work: impl FnOnce() -> Known<T>) -> Known<T> {
        if self.ctx.is_limited() {
            return work();
        }
        match budget::open(self.quota) {
            Ok(operations) => self.ctx.limited(operations, work),
            Err(operations) => Err(Reason::Budget { operations }.into()),
        }
    }
}
