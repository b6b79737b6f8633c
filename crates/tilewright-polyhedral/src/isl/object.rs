//! The functions of isl that Tilewright calls, and owning wrappers of isl's objects.
//!
//! One table has each function with the type and ownership of isl's headers: an argument marked
//! `__isl_take` there is owned by isl after the call, one marked `__isl_keep` stays ours.
//!
//! * Every object holds its context by `Rc`, so that the context outlives it and neither can go
//!   to another thread.
//! * A method takes its operands by value where isl takes them over, and by reference where isl
//!   only looks. A copy is a reference count; isl copies for real when a shared object changes.
//! * A failing call gives null or -1 and leaves a code in the context. The wrappers turn that into
//!   [`Unknown`] and clear the code; nothing is printed and nothing aborts. isl passes null on: a
//!   null operand is an error itself, never undefined behaviour.
//! * Work is bounded: [`Ctx::limited`] gives isl a number of internal operations, and running out
//!   of them is [`Reason::Quota`](crate::Reason::Quota).

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::rc::Rc;

use super::api::*;
use crate::answer::{Known, Reason, Unknown};
use crate::budget;

/// A context: what isl calls `isl_ctx`.
#[derive(Clone)]
pub(crate) struct Ctx(Rc<CtxData>);

struct CtxData {
    raw: *mut isl_ctx,
    api: &'static Api,
    /// The limit that is in force.
    limit: Cell<Option<u64>>,
    /// Whether unions are coalesced where that is asked for.
    coalesces: Cell<bool>,
}

impl Drop for CtxData {
    fn drop(&mut self) {
        // SAFETY: every object holds an `Rc` of this, so that none is left.
        unsafe { (self.api.functions.isl_ctx_free)(self.raw) }
    }
}

impl Ctx {
    pub fn new(api: &'static Api) -> Ctx {
        // SAFETY: a new context, configured before it is used. isl ends the process when memory
        // runs out, so there always is one.
        let raw = unsafe {
            let raw = (api.functions.isl_ctx_alloc)();
            (api.functions.isl_options_set_on_error)(raw, ON_ERROR_CONTINUE);
            raw
        };
        Ctx(Rc::new(CtxData { raw, api, limit: Cell::new(None), coalesces: Cell::new(true) }))
    }

    pub fn api(&self) -> &'static Functions {
        &self.0.api.functions
    }

    pub fn library(&self) -> &'static Api {
        self.0.api
    }

    fn raw(&self) -> *mut isl_ctx {
        self.0.raw
    }

    /// Whether a limit is in force.
    pub fn is_limited(&self) -> bool {
        self.0.limit.get().is_some()
    }

    /// How many operations were counted under a limit, rounded up to a power of four.
    ///
    /// isl does not tell its counter, but an operation fails once that has reached a bound.
    fn operations(&self, limit: u64) -> u64 {
        let within = |bound: u64| {
            // SAFETY: the context is valid; making a number is an operation.
            unsafe {
                (self.api().isl_ctx_set_max_operations)(self.raw(), bound as _);
                let made = (self.api().isl_val_int_from_si)(self.raw(), 0);
                if made.is_null() {
                    (self.api().isl_ctx_reset_error)(self.raw());
                } else {
                    let _ = (self.api().isl_val_free)(made);
                }
                !made.is_null()
            }
        };
        let bounds = (4..32).map(|k| 1_u64 << (2 * k)).take_while(|bound| *bound < limit);
        bounds.into_iter().find(|bound| within(*bound)).unwrap_or(limit)
    }

    /// Runs `work` with at most this many operations of isl, and counts them for the budget; a limit
    /// that is in force already goes on counting.
    pub fn limited<T>(&self, operations: u64, work: impl FnOnce() -> T) -> T {
        struct Release<'a>(&'a Ctx);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                if let Some(limit) = self.0.0.limit.get()
                    && budget::counts()
                {
                    budget::close(self.0.operations(limit));
                }
                // SAFETY: the context is valid.
                unsafe { (self.0.api().isl_ctx_set_max_operations)(self.0.raw(), 0) };
                self.0.0.limit.set(None);
            }
        }
        if self.is_limited() {
            return work();
        }
        self.0.limit.set(Some(operations));
        let _release = Release(self);
        // SAFETY: the context is valid. Zero would mean no limit.
        unsafe {
            (self.api().isl_ctx_reset_operations)(self.raw());
            (self.api().isl_ctx_set_max_operations)(self.raw(), operations.max(1) as _);
        }
        work()
    }

    /// Runs `work` with unions as they are: coalescing them does nothing.
    pub fn without_coalescing<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restore<'a>(&'a Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let coalesces = &self.0.coalesces;
        let _restore = Restore(coalesces, coalesces.replace(false));
        work()
    }

    /// Why the last call failed; clears the error.
    fn failure(&self) -> Unknown {
        let f = self.api();
        // SAFETY: the context is valid; the message is a static text or null.
        let (code, message) = unsafe {
            let message = (f.isl_ctx_last_error_msg)(self.raw());
            let text = if message.is_null() {
                String::new()
            } else {
                CStr::from_ptr(message).to_string_lossy().into_owned()
            };
            let code = (f.isl_ctx_last_error)(self.raw());
            (f.isl_ctx_reset_error)(self.raw());
            (code, text)
        };
        match (code, self.0.limit.get()) {
            (ERROR_QUOTA, Some(operations)) => Reason::Quota { operations }.into(),
            _ => Reason::Engine(message).into(),
        }
    }

    /// An integer of any size.
    pub fn val(&self, value: i128) -> Known<Val> {
        let raw = match c_long::try_from(value) {
            // SAFETY: the context is valid.
            Ok(small) => unsafe { (self.api().isl_val_int_from_si)(self.raw(), small) },
            Err(_) => {
                let text = CString::new(value.to_string()).unwrap_or_default();
                // SAFETY: the text is an integer and ends with zero.
                unsafe { (self.api().isl_val_read_from_str)(self.raw(), text.as_ptr()) }
            }
        };
        Val::read(self, raw)
    }

    fn id(&self, name: &str) -> Known<Id> {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: isl copies the name.
        let raw =
            unsafe { (self.api().isl_id_alloc)(self.raw(), name.as_ptr(), std::ptr::null_mut()) };
        Id::read(self, raw)
    }

    /// A matrix of rows of so many numbers.
    fn mat(&self, rows: &[Vec<i128>], columns: usize) -> Known<Mat> {
        let count = rows.len() as c_uint;
        // SAFETY: the context is valid.
        let raw = unsafe { (self.api().isl_mat_alloc)(self.raw(), count, columns as c_uint) };
        let mut mat = Mat::read(self, raw)?;
        // What isl allocates holds anything.
        for (i, row) in (0..).zip(rows) {
            for (k, value) in (0..).zip(row) {
                mat = match c_int::try_from(*value) {
                    Ok(small) => mat.set_si(i, k, small)?,
                    Err(_) => mat.set_val(i, k, self.val(*value)?)?,
                };
            }
        }
        Ok(mat)
    }

    /// The points of a space at which functions are zero, and others not negative. A row is a constant
    /// and a coefficient for each dimension.
    pub fn basic_set(
        &self,
        space: &Space,
        zero: &[Vec<i128>],
        not_negative: &[Vec<i128>],
    ) -> Known<BasicSet> {
        let rows = zero.first().or(not_negative.first());
        let columns = rows.map_or(1, Vec::len);
        let (eq, ineq) = (self.mat(zero, columns)?, self.mat(not_negative, columns)?);
        let make = self.api().isl_basic_set_from_constraint_matrices;
        // SAFETY: valid objects of one context, handed over; the columns are the constant, then
        // parameters, dimensions and divisions.
        let raw =
            unsafe { make(space.clone().raw(), eq.raw(), ineq.raw(), CONSTANT, PARAM, SET, DIV) };
        BasicSet::read(self, raw)
    }

    /// The space of sets with these parameters and a number of dimensions.
    pub fn space<'a>(
        &self,
        params: impl ExactSizeIterator<Item = &'a str>,
        dims: usize,
    ) -> Known<Space> {
        let n = params.len() as c_uint;
        // SAFETY: the context is valid.
        let raw = unsafe { (self.api().isl_space_set_alloc)(self.raw(), n, dims as c_uint) };
        let space = Space::read(self, raw)?;
        (0..n).zip(params).try_fold(space, |s, (i, name)| s.set_id(PARAM, i, self.id(name)?))
    }
}

/// What may be handed to a function of isl.
pub(crate) trait Arg {
    type Raw;
    fn raw(self) -> Self::Raw;
}

macro_rules! plain_args {
    ($($t:ty),*) => { $(impl Arg for $t {
        type Raw = $t;
        fn raw(self) -> $t { self }
    })* };
}
plain_args!(c_int, c_uint);

impl Arg for &CStr {
    type Raw = *const c_char;
    fn raw(self) -> Self::Raw {
        self.as_ptr()
    }
}

/// What a function of isl gives.
pub(crate) trait Made: Sized {
    type Raw;
    /// Takes over what a call returned, or the call's failure.
    fn read(ctx: &Ctx, raw: Self::Raw) -> Known<Self>;
}

impl Made for bool {
    type Raw = c_int;
    fn read(ctx: &Ctx, raw: c_int) -> Known<bool> {
        match raw {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ctx.failure()),
        }
    }
}

impl Made for usize {
    type Raw = c_int;
    fn read(ctx: &Ctx, raw: c_int) -> Known<usize> {
        usize::try_from(raw).map_err(|_| ctx.failure())
    }
}

/// The name that isl keeps for something; null where there is none.
impl Made for Option<String> {
    type Raw = *const c_char;
    fn read(_: &Ctx, raw: *const c_char) -> Known<Option<String>> {
        // SAFETY: a text that lives as long as the object that it was asked of.
        let text = || unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned();
        Ok((!raw.is_null()).then(text))
    }
}

/// A method that calls a function: it hands its object over (`take`), or lets isl look at it (`look`).
/// `few` is an operand with whose parts those of the object are paired ([`few_pairs`]).
macro_rules! method {
    (take $name:ident $f:ident ($($arg:ident: $A:ty),*) $R:ty $(, $few:ident)?) => {
        #[doc = concat!("`", stringify!($f), "`.")]
        $(#[doc = concat!("[`Reason::ManyParts`] for `", stringify!($few), "` of very many parts.")])?
        pub fn $name(self $(, $arg: $A)*) -> Known<$R> {
            $(few_pairs(&self, &$few)?;)?
            let ctx = self.ctx.clone();
            // SAFETY: valid objects of one context, handed over.
            let raw = unsafe { (ctx.api().$f)(self.raw() $(, $arg.raw())*) };
            <$R>::read(&ctx, raw)
        }
    };
    (look $name:ident $f:ident ($($arg:ident: $A:ty),*) $R:ty $(, $few:ident)?) => {
        #[doc = concat!("`", stringify!($f), "`.")]
        $(#[doc = concat!("[`Reason::ManyParts`] for `", stringify!($few), "` of very many parts.")])?
        pub fn $name(&self $(, $arg: $A)*) -> Known<$R> {
            $(few_pairs(self, $few)?;)?
            // SAFETY: valid objects of one context.
            let raw = unsafe { (self.ctx.api().$f)(self.raw() $(, $arg.raw())*) };
            <$R>::read(&self.ctx, raw)
        }
    };
}

/// The table of isl: functions that no method stands for, objects, and functions that are methods of
/// theirs.
macro_rules! isl {
    (
        functions { $($plain:tt)* }
        objects { $(
            $(#[$doc:meta])* $Name:ident $raw:ident $copy:ident $free:ident {
                $($how:ident $name:ident = $f:ident($($arg:ident: $A:ty),*) -> $R:ty
                    $(, pairs $few:ident)?;)*
            }
        )* }
    ) => {
        tilewright_dylib::functions! {
            $($plain)*
            $(
                $copy: fn(*mut $raw) -> *mut $raw;
                $free: fn(*mut $raw) -> *mut $raw;
                $($f: fn(*mut $raw $(, <$A as Arg>::Raw)*) -> <$R as Made>::Raw;)*
            )*
        }

        $(
            #[doc = concat!("isl's `", stringify!($raw), "`.")]
            #[allow(non_camel_case_types)]
            #[repr(C)]
            pub(crate) struct $raw { _private: [u8; 0] }

            $(#[$doc])*
            pub(crate) struct $Name {
                raw: NonNull<$raw>,
                ctx: Ctx,
            }

            impl $Name {
                $(method!($how $name $f ($($arg: $A),*) $R $(, $few)?);)*
            }

            impl Made for $Name {
                type Raw = *mut $raw;
                fn read(ctx: &Ctx, raw: *mut $raw) -> Known<$Name> {
                    match NonNull::new(raw) {
                        Some(raw) => Ok($Name { raw, ctx: ctx.clone() }),
                        None => Err(ctx.failure()),
                    }
                }
            }

            impl Clone for $Name {
                fn clone(&self) -> Self {
                    // SAFETY: the object is valid; a copy is one more reference to it.
                    let raw = unsafe { (self.ctx.api().$copy)(self.raw.as_ptr()) };
                    // Copying only counts, and does not fail.
                    $Name { raw: NonNull::new(raw).unwrap_or(self.raw), ctx: self.ctx.clone() }
                }
            }

            impl Drop for $Name {
                fn drop(&mut self) {
                    // SAFETY: owned, and not handed on.
                    unsafe { (self.ctx.api().$free)(self.raw.as_ptr()); }
                }
            }

            impl Arg for $Name {
                type Raw = *mut $raw;
                /// Hands the object over.
                fn raw(self) -> Self::Raw {
                    let this = ManuallyDrop::new(self);
                    // SAFETY: `this` is not dropped, so that the context is released once.
                    drop(unsafe { std::ptr::read(&this.ctx) });
                    this.raw.as_ptr()
                }
            }

            impl Arg for &$Name {
                type Raw = *mut $raw;
                /// Lets isl look at the object.
                fn raw(self) -> Self::Raw {
                    self.raw.as_ptr()
                }
            }
        )*
    };
}

/// isl's `isl_ctx`.
#[allow(non_camel_case_types)]
#[repr(C)]
pub(crate) struct isl_ctx {
    _private: [u8; 0],
}

/// Callback of `isl_pw_aff_foreach_piece`; it owns both objects.
type OnPiece = unsafe extern "C" fn(*mut isl_set, *mut isl_aff, *mut c_void) -> c_int;

isl! {
functions {
    isl_version: fn() -> *const c_char;
    isl_ctx_alloc: fn() -> *mut isl_ctx;
    isl_ctx_free: fn(*mut isl_ctx);
    isl_ctx_last_error: fn(*mut isl_ctx) -> c_int;
    isl_ctx_last_error_msg: fn(*mut isl_ctx) -> *const c_char;
    isl_ctx_reset_error: fn(*mut isl_ctx);
    isl_ctx_set_max_operations: fn(*mut isl_ctx, c_ulong);
    isl_ctx_reset_operations: fn(*mut isl_ctx);
    isl_options_set_on_error: fn(*mut isl_ctx, c_int) -> c_int;
    isl_val_int_from_si: fn(*mut isl_ctx, c_long) -> *mut isl_val;
    isl_val_read_from_str: fn(*mut isl_ctx, *const c_char) -> *mut isl_val;
    isl_val_is_int: fn(*mut isl_val) -> c_int;
    isl_val_cmp_si: fn(*mut isl_val, c_long) -> c_int;
    isl_val_get_num_si: fn(*mut isl_val) -> c_long;
    isl_id_alloc: fn(*mut isl_ctx, *const c_char, *mut c_void) -> *mut isl_id;
    isl_space_set_alloc: fn(*mut isl_ctx, c_uint, c_uint) -> *mut isl_space;
    isl_pw_aff_foreach_piece: fn(*mut isl_pw_aff, OnPiece, *mut c_void) -> c_int;
    isl_mat_alloc: fn(*mut isl_ctx, c_uint, c_uint) -> *mut isl_mat;
    isl_basic_set_from_constraint_matrices: fn(
        *mut isl_space, *mut isl_mat, *mut isl_mat, c_uint, c_uint, c_uint, c_uint
    ) -> *mut isl_basic_set;
}
objects {
    /// An integer or rational number.
    Val isl_val isl_val_copy isl_val_free {}
    /// A name.
    Id isl_id isl_id_copy isl_id_free {}
    /// Parameters and dimensions.
    Space isl_space isl_space_copy isl_space_free {
        take set_id = isl_space_set_dim_id(kind: c_uint, at: c_uint, id: Id) -> Space;
        take local = isl_local_space_from_space() -> LocalSpace;
        take universe = isl_set_universe() -> Set;
        take empty = isl_set_empty() -> Set;
        take empty_union = isl_union_map_empty() -> UnionMap;
    }
    /// A space with integer divisions.
    LocalSpace isl_local_space isl_local_space_copy isl_local_space_free {
        take zero = isl_aff_zero_on_domain() -> Aff;
    }
    /// A matrix.
    Mat isl_mat isl_mat_copy isl_mat_free {
        take set_si = isl_mat_set_element_si(row: c_int, column: c_int, value: c_int) -> Mat;
        take set_val = isl_mat_set_element_val(row: c_int, column: c_int, value: Val) -> Mat;
    }
    /// An affine function with integer divisions.
    Aff isl_aff isl_aff_copy isl_aff_free {
        take piecewise = isl_pw_aff_from_aff() -> PwAff;
        take set_constant_si = isl_aff_set_constant_si(value: c_int) -> Aff;
        take set_constant_val = isl_aff_set_constant_val(value: Val) -> Aff;
        take set_coefficient_si = isl_aff_set_coefficient_si(
            kind: c_uint, at: c_int, value: c_int) -> Aff;
        take set_coefficient_val = isl_aff_set_coefficient_val(
            kind: c_uint, at: c_int, value: Val) -> Aff;
        take scale = isl_aff_scale_val(by: Val) -> Aff;
        look constant = isl_aff_get_constant_val() -> Val;
        look coefficient = isl_aff_get_coefficient_val(kind: c_uint, at: c_int) -> Val;
        look denominator = isl_aff_get_denominator_val() -> Val;
        look div = isl_aff_get_div(at: c_int) -> Aff;
        look dim = isl_aff_dim(kind: c_uint) -> usize;
    }
    /// A piecewise affine function, undefined outside its pieces.
    PwAff isl_pw_aff isl_pw_aff_copy isl_pw_aff_free {
        take add = isl_pw_aff_add(other: PwAff) -> PwAff;
        take neg = isl_pw_aff_neg() -> PwAff;
        take scale = isl_pw_aff_scale_val(by: Val) -> PwAff;
        take scale_down = isl_pw_aff_scale_down_val(by: Val) -> PwAff;
        take modulo = isl_pw_aff_mod_val(by: Val) -> PwAff;
        take floor = isl_pw_aff_floor() -> PwAff;
        take min = isl_pw_aff_min(other: PwAff) -> PwAff;
        take max = isl_pw_aff_max(other: PwAff) -> PwAff;
        take on_domain = isl_pw_aff_intersect_domain(domain: Set) -> PwAff;
        take union_add = isl_pw_aff_union_add(other: PwAff) -> PwAff;
        take nonneg = isl_pw_aff_nonneg_set() -> Set;
        take zero = isl_pw_aff_zero_set() -> Set;
        take non_zero = isl_pw_aff_non_zero_set() -> Set;
        take gist = isl_pw_aff_gist(context: Set) -> PwAff;
        take coalesce = isl_pw_aff_coalesce() -> PwAff;
        take min_val = isl_pw_aff_min_val() -> Val;
        take max_val = isl_pw_aff_max_val() -> Val;
        take graph = isl_map_from_pw_aff() -> Map;
        look pieces = isl_pw_aff_n_piece() -> usize;
    }
    /// A tuple of piecewise affine functions.
    PwMultiAff isl_pw_multi_aff isl_pw_multi_aff_copy isl_pw_multi_aff_free {
        look at = isl_pw_multi_aff_get_pw_aff(at: c_int) -> PwAff;
    }
    /// A union of basic sets.
    Set isl_set isl_set_copy isl_set_free {
        take union = isl_set_union(other: Set) -> Set;
        take complement_parts = isl_set_complement() -> Set;
        take coalesce_parts = isl_set_coalesce() -> Set;
        take detect_equalities = isl_set_detect_equalities() -> Set;
        take remove_redundancies = isl_set_remove_redundancies() -> Set;
        take compute_divs = isl_set_compute_divs() -> Set;
        take pointwise = isl_set_from_params() -> Set;
        take add_dims = isl_set_add_dims(kind: c_uint, n: c_uint) -> Set;
        take insert_dims = isl_set_insert_dims(kind: c_uint, at: c_uint, n: c_uint) -> Set;
        take project_out = isl_set_project_out(kind: c_uint, at: c_uint, n: c_uint) -> Set;
        take move_dims = isl_set_move_dims(
            to_kind: c_uint, to: c_uint, from_kind: c_uint, from: c_uint, n: c_uint) -> Set;
        take sample = isl_set_sample_point() -> Point;
        take lexmin = isl_set_lexmin() -> Set;
        take lexmax = isl_set_lexmax() -> Set;
        take dim_min = isl_set_dim_min(at: c_int) -> PwAff;
        take dim_max = isl_set_dim_max(at: c_int) -> PwAff;
        take dim_min_val = isl_set_dim_min_val(at: c_int) -> Val;
        take dim_max_val = isl_set_dim_max_val(at: c_int) -> Val;
        take flatten = isl_set_flatten() -> Set;
        take identity = isl_set_identity() -> Map;
        take affine_hull = isl_set_affine_hull() -> BasicSet;
        take nothing = isl_map_from_domain() -> Map;
        take intersect = isl_set_intersect(other: Set) -> Set, pairs other;
        take subtract = isl_set_subtract(other: Set) -> Set, pairs other;
        take gist = isl_set_gist(context: Set) -> Set, pairs context;
        take apply = isl_set_apply(map: Map) -> Set, pairs map;
        look is_equal = isl_set_is_equal(other: &Set) -> bool, pairs other;
        look is_subset = isl_set_is_subset(other: &Set) -> bool, pairs other;
        look is_empty = isl_set_is_empty() -> bool;
        look is_bounded = isl_set_is_bounded() -> bool;
        look dim = isl_set_dim(kind: c_uint) -> usize;
        look dim_name = isl_set_get_dim_name(kind: c_uint, at: c_uint) -> Option<String>;
        look basic_sets = isl_set_n_basic_set() -> usize;
        look basic_set_list = isl_set_get_basic_set_list() -> BasicSetList;
    }
    /// A conjunction of constraints.
    BasicSet isl_basic_set isl_basic_set_copy isl_basic_set_free {
        take set = isl_set_from_basic_set() -> Set;
        look constraint_list = isl_basic_set_get_constraint_list() -> ConstraintList;
    }
    /// Conjunctions.
    BasicSetList isl_basic_set_list isl_basic_set_list_copy isl_basic_set_list_free {
        look size = isl_basic_set_list_size() -> usize;
        look at = isl_basic_set_list_get_at(at: c_int) -> BasicSet;
    }
    /// `aff >= 0` or `aff == 0`.
    Constraint isl_constraint isl_constraint_copy isl_constraint_free {
        look aff = isl_constraint_get_aff() -> Aff;
        look is_equality = isl_constraint_is_equality() -> bool;
        look is_div = isl_constraint_is_div_constraint() -> bool;
    }
    /// Constraints.
    ConstraintList isl_constraint_list isl_constraint_list_copy isl_constraint_list_free {
        look size = isl_constraint_list_size() -> usize;
        look at = isl_constraint_list_get_at(at: c_int) -> Constraint;
    }
    /// A point of a set.
    Point isl_point isl_point_copy isl_point_free {
        look is_void = isl_point_is_void() -> bool;
        look coordinate = isl_point_get_coordinate_val(kind: c_uint, at: c_int) -> Val;
    }
    /// A relation.
    Map isl_map isl_map_copy isl_map_free {
        take flat_range_product = isl_map_flat_range_product(other: Map) -> Map;
        take reverse = isl_map_reverse() -> Map;
        take coalesce_parts = isl_map_coalesce() -> Map;
        take union = isl_map_union(other: Map) -> Map;
        take domain = isl_map_domain() -> Set;
        take range = isl_map_range() -> Set;
        take reset_tuple = isl_map_reset_tuple_id(kind: c_uint) -> Map;
        take wrap = isl_map_wrap() -> Set;
        take move_dims = isl_map_move_dims(
            to_kind: c_uint, to: c_uint, from_kind: c_uint, from: c_uint, n: c_uint) -> Map;
        take insert_dims = isl_map_insert_dims(kind: c_uint, at: c_uint, n: c_uint) -> Map;
        take set_id = isl_map_set_dim_id(kind: c_uint, at: c_uint, id: Id) -> Map;
        take project_out = isl_map_project_out(kind: c_uint, at: c_uint, n: c_uint) -> Map;
        take function = isl_map_as_pw_multi_aff() -> PwMultiAff;
        take set_tuple = isl_map_set_tuple_name(kind: c_uint, name: &CStr) -> Map;
        take union_map = isl_union_map_from_map() -> UnionMap;
        take on_domain = isl_map_intersect_domain(domain: Set) -> Map, pairs domain;
        take then = isl_map_apply_range(other: Map) -> Map, pairs other;
        take subtract = isl_map_subtract(other: Map) -> Map, pairs other;
        take intersect = isl_map_intersect(other: Map) -> Map, pairs other;
        take intersect_range = isl_map_intersect_range(range: Set) -> Map, pairs range;
        take subtract_range = isl_map_subtract_range(range: Set) -> Map, pairs range;
        look is_subset = isl_map_is_subset(other: &Map) -> bool, pairs other;
        look is_injective = isl_map_is_injective() -> bool;
        look is_empty = isl_map_is_empty() -> bool;
        look tuple = isl_map_get_tuple_name(kind: c_uint) -> Option<String>;
        look dim = isl_map_dim(kind: c_uint) -> usize;
        look basic_maps = isl_map_n_basic_map() -> usize;
    }
    /// Relations.
    MapList isl_map_list isl_map_list_copy isl_map_list_free {
        look size = isl_map_list_size() -> usize;
        look at = isl_map_list_get_at(at: c_int) -> Map;
    }
    /// Relations of several spaces.
    UnionMap isl_union_map isl_union_map_copy isl_union_map_free {
        take union = isl_union_map_union(other: UnionMap) -> UnionMap;
        take sink = isl_union_access_info_from_sink() -> AccessInfo;
        look map_list = isl_union_map_get_map_list() -> MapList;
    }
    /// Reads, writes and a schedule.
    AccessInfo isl_union_access_info isl_union_access_info_copy isl_union_access_info_free {
        take must_source = isl_union_access_info_set_must_source(writes: UnionMap) -> AccessInfo;
        take may_source = isl_union_access_info_set_may_source(writes: UnionMap) -> AccessInfo;
        take schedule = isl_union_access_info_set_schedule_map(order: UnionMap) -> AccessInfo;
        take flow = isl_union_access_info_compute_flow() -> Flow;
    }
    /// The result of a flow analysis.
    Flow isl_union_flow isl_union_flow_copy isl_union_flow_free {
        look must = isl_union_flow_get_must_dependence() -> UnionMap;
        look may = isl_union_flow_get_may_dependence() -> UnionMap;
        look may_no_source = isl_union_flow_get_may_no_source() -> UnionMap;
    }
}
}

impl Val {
    /// The value, if it is an integer of 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        let f = self.ctx.api();
        // SAFETY: the value is valid; its numerator is read only where it fits.
        unsafe {
            let raw = self.raw.as_ptr();
            let fits = (f.isl_val_is_int)(raw) == 1
                && (f.isl_val_cmp_si)(raw, c_long::MAX) <= 0
                && (f.isl_val_cmp_si)(raw, c_long::MIN) >= 0;
            #[allow(clippy::useless_conversion)] // `c_long` has 32 bits on some targets.
            fits.then(|| i64::from((f.isl_val_get_num_si)(raw)))
        }
    }

    /// The value, or the reason why it is no number of ours.
    pub fn int(&self) -> Known<i64> {
        self.to_i64().ok_or_else(|| Reason::TooLarge.into())
    }
}

/// A least and a greatest value, where there is one.
pub(crate) type Ends = (Option<i64>, Option<i64>);

/// A union of parts in a number of dimensions.
trait Union {
    fn parts_and_dims(&self) -> Known<(usize, usize)>;
}

impl Union for Set {
    fn parts_and_dims(&self) -> Known<(usize, usize)> {
        Ok((self.basic_sets()?, self.dim(SET)? + self.dim(PARAM)?))
    }
}

impl Union for Map {
    fn parts_and_dims(&self) -> Known<(usize, usize)> {
        Ok((self.basic_maps()?, self.dim(IN)? + self.dim(SET)? + self.dim(PARAM)?))
    }
}

/// Pairs of parts, each counted by the square of its dimensions, that one operation looks at. isl
/// takes time for each pair that its counter of operations does not show: 4096 pairs of few
/// dimensions, or 650 of ten, take up to a second or two.
const MAX_PAIRS: usize = 1 << 16;

/// The dimensions up to which all pairs count alike.
const FEW_DIMS: usize = 4;

/// Whether an operation on the pairs of parts of two unions is one that ends soon.
fn few_pairs(one: &impl Union, other: &impl Union) -> Known<()> {
    let ((m, d), (n, e)) = (one.parts_and_dims()?, other.parts_and_dims()?);
    let (pairs, dims) = (m.saturating_mul(n), d.max(e).max(FEW_DIMS));
    if pairs.saturating_mul(dims * dims) <= MAX_PAIRS || pairs <= 1 {
        Ok(())
    } else {
        Err(Reason::ManyParts { parts: m.max(n), dims: d.max(e) }.into())
    }
}

/// A union in fewer parts. One of very many keeps them, and so does each in work without coalescing.
fn coalesced<U: Union>(union: U, ctx: &Ctx, fewer: impl FnOnce(U) -> Known<U>) -> Known<U> {
    match few_pairs(&union, &union) {
        Ok(()) if ctx.0.coalesces.get() => fewer(union),
        _ => Ok(union),
    }
}

impl Set {
    /// `isl_set_complement`; [`Reason::ManyParts`] for a union of very many parts.
    pub fn complement(self) -> Known<Set> {
        few_pairs(&self, &self)?;
        self.complement_parts()
    }

    /// `isl_set_coalesce`, where that does not take long.
    pub fn coalesce(self) -> Known<Set> {
        let ctx = self.ctx.clone();
        coalesced(self, &ctx, Set::coalesce_parts)
    }

    /// The ends of a dimension; none where it has no bound that is a number.
    pub fn ends(&self, at: usize) -> Known<Ends> {
        let low = self.clone().dim_min_val(at as c_int)?.to_i64();
        Ok((low, self.clone().dim_max_val(at as c_int)?.to_i64()))
    }

    /// The names of all parameters.
    pub fn param_names(&self) -> Known<Vec<String>> {
        let lost = || Reason::Engine("no name".into()).into();
        let named = |i| self.dim_name(PARAM, i as c_uint)?.ok_or_else(lost);
        (0..self.dim(PARAM)?).map(named).collect()
    }

    /// The conjunctions whose union this is.
    pub fn parts(&self) -> Known<Vec<BasicSet>> {
        let list = self.basic_set_list()?;
        (0..list.size()?).map(|i| list.at(i as c_int)).collect()
    }
}

impl Map {
    /// `isl_map_coalesce`, where that does not take long.
    pub fn coalesce(self) -> Known<Map> {
        let ctx = self.ctx.clone();
        coalesced(self, &ctx, Map::coalesce_parts)
    }

    /// Names parameter `at`.
    pub fn name_param(self, at: usize, name: &str) -> Known<Map> {
        let id = self.ctx.id(name)?;
        self.set_id(PARAM, at as c_uint, id)
    }
}

impl BasicSet {
    /// The constraints, without those that only define divisions. All divisions must be known
    /// ([`Set::compute_divs`]).
    pub fn constraints(&self) -> Known<Vec<Constraint>> {
        let list = self.constraint_list()?;
        let mut kept = Vec::new();
        for i in 0..list.size()? {
            let constraint = list.at(i as c_int)?;
            if !constraint.is_div()? {
                kept.push(constraint);
            }
        }
        Ok(kept)
    }
}

impl UnionMap {
    /// The relations, one a space.
    pub fn list(&self) -> Known<Vec<Map>> {
        let list = self.map_list()?;
        (0..list.size()?).map(|i| list.at(i as c_int)).collect()
    }
}

impl PwAff {
    /// The pieces: where, and which function.
    pub fn list(&self) -> Known<Vec<(Set, Aff)>> {
        struct State {
            ctx: Ctx,
            out: Vec<(Set, Aff)>,
        }
        unsafe extern "C" fn on_piece(
            set: *mut isl_set,
            aff: *mut isl_aff,
            at: *mut c_void,
        ) -> c_int {
            // SAFETY: `at` is the state below, borrowed for the walk; the objects are ours.
            let state = unsafe { &mut *at.cast::<State>() };
            match (Set::read(&state.ctx, set), Aff::read(&state.ctx, aff)) {
                (Ok(set), Ok(aff)) => {
                    state.out.push((set, aff));
                    0
                }
                _ => -1,
            }
        }
        let mut state = State { ctx: self.ctx.clone(), out: Vec::new() };
        let at = (&raw mut state).cast();
        // SAFETY: the callback keeps nothing of the state.
        match unsafe { (self.ctx.api().isl_pw_aff_foreach_piece)(self.raw.as_ptr(), on_piece, at) }
        {
            0 => Ok(state.out),
            _ => Err(self.ctx.failure()),
        }
    }
}
