//! Owning wrappers of isl's objects.
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
use std::ffi::{CStr, CString, c_int, c_long, c_uint, c_void};
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
                match made.is_null() {
                    true => (self.api().isl_ctx_reset_error)(self.raw()),
                    false => drop((self.api().isl_val_free)(made)),
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
            let text = match message.is_null() {
                true => String::new(),
                false => CStr::from_ptr(message).to_string_lossy().into_owned(),
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

    fn truth(&self, value: c_int) -> Known<bool> {
        match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.failure()),
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
        Val::own(self, raw)
    }

    fn id(&self, name: &str) -> *mut isl_id {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: isl copies the name.
        unsafe { (self.api().isl_id_alloc)(self.raw(), name.as_ptr(), std::ptr::null_mut()) }
    }

    /// The space of sets with these parameters and a number of dimensions.
    pub fn space<'a>(
        &self,
        params: impl ExactSizeIterator<Item = &'a str>,
        dims: usize,
    ) -> Known<Space> {
        let f = self.api();
        // SAFETY: isl takes the space and the id over at each step.
        let raw = unsafe {
            let mut raw =
                (f.isl_space_set_alloc)(self.raw(), params.len() as c_uint, dims as c_uint);
            for (i, name) in params.enumerate() {
                raw = (f.isl_space_set_dim_id)(raw, PARAM, i as c_uint, self.id(name));
            }
            raw
        };
        Space::own(self, raw)
    }
}

/// What may be handed to a function of isl.
trait Arg {
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
    type Raw = *const std::ffi::c_char;
    fn raw(self) -> Self::Raw {
        self.as_ptr()
    }
}

macro_rules! objects {
    ($($(#[$doc:meta])* $Name:ident $raw:ident $copy:ident $free:ident;)*) => { $(
        $(#[$doc])*
        pub(crate) struct $Name {
            raw: NonNull<$raw>,
            ctx: Ctx,
        }

        impl $Name {
            /// Takes over what a call returned; null is the call's failure.
            fn own(ctx: &Ctx, raw: *mut $raw) -> Known<$Name> {
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
        } )*
    };
}

objects! {
    /// An integer or rational number.
    Val isl_val isl_val_copy isl_val_free;
    /// Parameters and dimensions.
    Space isl_space isl_space_copy isl_space_free;
    /// A space with integer divisions.
    LocalSpace isl_local_space isl_local_space_copy isl_local_space_free;
    /// An affine function with integer divisions.
    Aff isl_aff isl_aff_copy isl_aff_free;
    /// A piecewise affine function, undefined outside its pieces.
    PwAff isl_pw_aff isl_pw_aff_copy isl_pw_aff_free;
    /// A tuple of piecewise affine functions.
    PwMultiAff isl_pw_multi_aff isl_pw_multi_aff_copy isl_pw_multi_aff_free;
    /// A union of basic sets.
    Set isl_set isl_set_copy isl_set_free;
    /// A conjunction of constraints.
    BasicSet isl_basic_set isl_basic_set_copy isl_basic_set_free;
    /// `aff >= 0` or `aff == 0`.
    Constraint isl_constraint isl_constraint_copy isl_constraint_free;
    /// A point of a set.
    Point isl_point isl_point_copy isl_point_free;
    /// A relation.
    Map isl_map isl_map_copy isl_map_free;
    /// Relations of several spaces.
    UnionMap isl_union_map isl_union_map_copy isl_union_map_free;
    /// Reads, writes and a schedule.
    AccessInfo isl_union_access_info isl_union_access_info_copy isl_union_access_info_free;
    /// The result of a flow analysis.
    Flow isl_union_flow isl_union_flow_copy isl_union_flow_free;
}

/// Methods that take their operands over and give an object.
macro_rules! makes {
    ($Type:ident { $($name:ident = $f:ident($($arg:ident: $A:ty),*) -> $R:ident;)* }) => {
        impl $Type { $(
            #[doc = concat!("`", stringify!($f), "`.")]
            pub fn $name(self $(, $arg: $A)*) -> Known<$R> {
                let ctx = self.ctx.clone();
                // SAFETY: valid objects of one context, handed over.
                let raw = unsafe { (ctx.api().$f)(self.raw() $(, $arg.raw())*) };
                $R::own(&ctx, raw)
            } )*
        }
    };
}

/// Methods that only look, and give an object.
macro_rules! gets {
    ($Type:ident { $($name:ident = $f:ident($($arg:ident: $A:ty),*) -> $R:ident;)* }) => {
        impl $Type { $(
            #[doc = concat!("`", stringify!($f), "`.")]
            pub fn $name(&self $(, $arg: $A)*) -> Known<$R> {
                // SAFETY: valid objects of one context.
                let raw = unsafe { (self.ctx.api().$f)(self.raw.as_ptr() $(, $arg.raw())*) };
                $R::own(&self.ctx, raw)
            } )*
        }
    };
}

/// Methods that look at every pair of parts of two unions: those that make an object, and those that
/// decide. They are declined where there are too many pairs ([`few_pairs`]).
macro_rules! pairs {
    ($Type:ident { $($name:ident = $f:ident($arg:ident: $A:ty) -> $R:ident;)* }) => {
        impl $Type { $(
            #[doc = concat!("`", stringify!($f), "`; [`Reason::ManyParts`] for unions of very many parts.")]
            pub fn $name(self, $arg: $A) -> Known<$R> {
                few_pairs(&self, &$arg)?;
                let ctx = self.ctx.clone();
                // SAFETY: valid objects of one context, handed over.
                let raw = unsafe { (ctx.api().$f)(self.raw(), $arg.raw()) };
                $R::own(&ctx, raw)
            } )*
        }
    };
    ($Type:ident { $($name:ident = $f:ident($arg:ident: $A:ty);)* }) => {
        impl $Type { $(
            #[doc = concat!("`", stringify!($f), "`; [`Reason::ManyParts`] for unions of very many parts.")]
            pub fn $name(&self, $arg: $A) -> Known<bool> {
                few_pairs(self, $arg)?;
                // SAFETY: valid objects of one context.
                let value = unsafe { (self.ctx.api().$f)(self.raw.as_ptr(), $arg.raw()) };
                self.ctx.truth(value)
            } )*
        }
    };
}

/// Methods that decide.
macro_rules! tests {
    ($Type:ident { $($name:ident = $f:ident($($arg:ident: $A:ty),*);)* }) => {
        impl $Type { $(
            #[doc = concat!("`", stringify!($f), "`.")]
            pub fn $name(&self $(, $arg: $A)*) -> Known<bool> {
                // SAFETY: valid objects of one context.
                let value = unsafe { (self.ctx.api().$f)(self.raw.as_ptr() $(, $arg.raw())*) };
                self.ctx.truth(value)
            } )*
        }
    };
}

/// Methods that count.
macro_rules! counts {
    ($Type:ident { $($name:ident = $f:ident($($arg:ident: $A:ty),*);)* }) => {
        impl $Type { $(
            #[doc = concat!("`", stringify!($f), "`.")]
            pub fn $name(&self $(, $arg: $A)*) -> Known<usize> {
                // SAFETY: valid objects of one context.
                let n = unsafe { (self.ctx.api().$f)(self.raw.as_ptr() $(, $arg.raw())*) };
                usize::try_from(n).map_err(|_| self.ctx.failure())
            } )*
        }
    };
}

makes!(Space {
    local = isl_local_space_from_space() -> LocalSpace;
    universe = isl_set_universe() -> Set;
    empty = isl_set_empty() -> Set;
    empty_union = isl_union_map_empty() -> UnionMap;
});

makes!(LocalSpace { zero = isl_aff_zero_on_domain() -> Aff; });

makes!(Aff {
    piecewise = isl_pw_aff_from_aff() -> PwAff;
    set_constant_si = isl_aff_set_constant_si(value: c_int) -> Aff;
    set_constant_val = isl_aff_set_constant_val(value: Val) -> Aff;
    set_coefficient_si = isl_aff_set_coefficient_si(kind: c_uint, at: c_int, value: c_int) -> Aff;
    set_coefficient_val = isl_aff_set_coefficient_val(kind: c_uint, at: c_int, value: Val) -> Aff;
    scale = isl_aff_scale_val(by: Val) -> Aff;
    nonneg = isl_aff_nonneg_basic_set() -> BasicSet;
    zero = isl_aff_zero_basic_set() -> BasicSet;
});
gets!(Aff {
    constant = isl_aff_get_constant_val() -> Val;
    coefficient = isl_aff_get_coefficient_val(kind: c_uint, at: c_int) -> Val;
    denominator = isl_aff_get_denominator_val() -> Val;
    div = isl_aff_get_div(at: c_int) -> Aff;
});
counts!(Aff { dim = isl_aff_dim(kind: c_uint); });

makes!(PwAff {
    add = isl_pw_aff_add(other: PwAff) -> PwAff;
    neg = isl_pw_aff_neg() -> PwAff;
    scale = isl_pw_aff_scale_val(by: Val) -> PwAff;
    scale_down = isl_pw_aff_scale_down_val(by: Val) -> PwAff;
    modulo = isl_pw_aff_mod_val(by: Val) -> PwAff;
    floor = isl_pw_aff_floor() -> PwAff;
    min = isl_pw_aff_min(other: PwAff) -> PwAff;
    max = isl_pw_aff_max(other: PwAff) -> PwAff;
    on_domain = isl_pw_aff_intersect_domain(domain: Set) -> PwAff;
    union_add = isl_pw_aff_union_add(other: PwAff) -> PwAff;
    nonneg = isl_pw_aff_nonneg_set() -> Set;
    zero = isl_pw_aff_zero_set() -> Set;
    non_zero = isl_pw_aff_non_zero_set() -> Set;
    gist = isl_pw_aff_gist(context: Set) -> PwAff;
    coalesce = isl_pw_aff_coalesce() -> PwAff;
    min_val = isl_pw_aff_min_val() -> Val;
    max_val = isl_pw_aff_max_val() -> Val;
    graph = isl_map_from_pw_aff() -> Map;
});
counts!(PwAff { pieces = isl_pw_aff_n_piece(); });

gets!(PwMultiAff { at = isl_pw_multi_aff_get_pw_aff(at: c_int) -> PwAff; });

makes!(Set {
    union = isl_set_union(other: Set) -> Set;
    complement_parts = isl_set_complement() -> Set;
    coalesce_parts = isl_set_coalesce() -> Set;
    detect_equalities = isl_set_detect_equalities() -> Set;
    remove_redundancies = isl_set_remove_redundancies() -> Set;
    compute_divs = isl_set_compute_divs() -> Set;
    pointwise = isl_set_from_params() -> Set;
    add_dims = isl_set_add_dims(kind: c_uint, n: c_uint) -> Set;
    insert_dims = isl_set_insert_dims(kind: c_uint, at: c_uint, n: c_uint) -> Set;
    project_out = isl_set_project_out(kind: c_uint, at: c_uint, n: c_uint) -> Set;
    move_dims = isl_set_move_dims(
        to_kind: c_uint, to: c_uint, from_kind: c_uint, from: c_uint, n: c_uint) -> Set;
    sample = isl_set_sample_point() -> Point;
    lexmin = isl_set_lexmin() -> Set;
    lexmax = isl_set_lexmax() -> Set;
    dim_min = isl_set_dim_min(at: c_int) -> PwAff;
    dim_max = isl_set_dim_max(at: c_int) -> PwAff;
    dim_min_val = isl_set_dim_min_val(at: c_int) -> Val;
    dim_max_val = isl_set_dim_max_val(at: c_int) -> Val;
    flatten = isl_set_flatten() -> Set;
    identity = isl_set_identity() -> Map;
    affine_hull = isl_set_affine_hull() -> BasicSet;
});

pairs!(Set {
    intersect = isl_set_intersect(other: Set) -> Set;
    subtract = isl_set_subtract(other: Set) -> Set;
    gist = isl_set_gist(context: Set) -> Set;
    apply = isl_set_apply(map: Map) -> Set;
});
pairs!(Set {
    is_equal = isl_set_is_equal(other: &Set);
    is_subset = isl_set_is_subset(other: &Set);
    is_disjoint = isl_set_is_disjoint(other: &Set);
});
tests!(Set {
    is_empty = isl_set_is_empty();
    is_bounded = isl_set_is_bounded();
});
counts!(Set {
    dim = isl_set_dim(kind: c_uint);
    basic_sets = isl_set_n_basic_set();
});

makes!(BasicSet {
    intersect = isl_basic_set_intersect(other: BasicSet) -> BasicSet;
    set = isl_set_from_basic_set() -> Set;
});

gets!(Constraint { aff = isl_constraint_get_aff() -> Aff; });
tests!(Constraint {
    is_equality = isl_constraint_is_equality();
    is_div = isl_constraint_is_div_constraint();
});

tests!(Point { is_void = isl_point_is_void(); });
gets!(Point { coordinate = isl_point_get_coordinate_val(kind: c_uint, at: c_int) -> Val; });

makes!(Map {
    flat_range_product = isl_map_flat_range_product(other: Map) -> Map;
    reverse = isl_map_reverse() -> Map;
    coalesce_parts = isl_map_coalesce() -> Map;
    union = isl_map_union(other: Map) -> Map;
    domain = isl_map_domain() -> Set;
    range = isl_map_range() -> Set;
    reset_tuple = isl_map_reset_tuple_id(kind: c_uint) -> Map;
    wrap = isl_map_wrap() -> Set;
    move_dims = isl_map_move_dims(
        to_kind: c_uint, to: c_uint, from_kind: c_uint, from: c_uint, n: c_uint) -> Map;
    insert_dims = isl_map_insert_dims(kind: c_uint, at: c_uint, n: c_uint) -> Map;
    project_out = isl_map_project_out(kind: c_uint, at: c_uint, n: c_uint) -> Map;
    function = isl_map_as_pw_multi_aff() -> PwMultiAff;
    set_tuple = isl_map_set_tuple_name(kind: c_uint, name: &CStr) -> Map;
    union_map = isl_union_map_from_map() -> UnionMap;
});
pairs!(Map {
    on_domain = isl_map_intersect_domain(domain: Set) -> Map;
    then = isl_map_apply_range(other: Map) -> Map;
    subtract = isl_map_subtract(other: Map) -> Map;
    intersect = isl_map_intersect(other: Map) -> Map;
    intersect_range = isl_map_intersect_range(range: Set) -> Map;
    subtract_range = isl_map_subtract_range(range: Set) -> Map;
});
pairs!(Map { is_subset = isl_map_is_subset(other: &Map); });
tests!(Map {
    is_injective = isl_map_is_injective();
    is_empty = isl_map_is_empty();
});
counts!(Map {
    dim = isl_map_dim(kind: c_uint);
    basic_maps = isl_map_n_basic_map();
});

makes!(UnionMap {
    union = isl_union_map_union(other: UnionMap) -> UnionMap;
    sink = isl_union_access_info_from_sink() -> AccessInfo;
});
makes!(AccessInfo {
    must_source = isl_union_access_info_set_must_source(writes: UnionMap) -> AccessInfo;
    may_source = isl_union_access_info_set_may_source(writes: UnionMap) -> AccessInfo;
    schedule = isl_union_access_info_set_schedule_map(schedule: UnionMap) -> AccessInfo;
    flow = isl_union_access_info_compute_flow() -> Flow;
});
gets!(Flow {
    must = isl_union_flow_get_must_dependence() -> UnionMap;
    may = isl_union_flow_get_may_dependence() -> UnionMap;
    may_no_source = isl_union_flow_get_may_no_source() -> UnionMap;
});

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

/// The name that isl keeps for a dimension.
fn name_of(raw: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: null, or a text that lives as long as the object that it was asked of.
    (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned())
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
    match pairs.saturating_mul(dims * dims) <= MAX_PAIRS || pairs <= 1 {
        true => Ok(()),
        false => Err(Reason::ManyParts { parts: m.max(n), dims: d.max(e) }.into()),
    }
}

impl Set {
    /// `isl_set_complement`; [`Reason::ManyParts`] for a union of very many parts.
    pub fn complement(self) -> Known<Set> {
        few_pairs(&self, &self)?;
        self.complement_parts()
    }

    /// `isl_set_coalesce`; a union of very many parts keeps them, and so does each in work without
    /// coalescing.
    pub fn coalesce(self) -> Known<Set> {
        match few_pairs(&self, &self) {
            Ok(()) if self.ctx.0.coalesces.get() => self.coalesce_parts(),
            _ => Ok(self),
        }
    }
}

impl Map {
    /// `isl_map_coalesce`; a union of very many parts keeps them, and so does each in work without
    /// coalescing.
    pub fn coalesce(self) -> Known<Map> {
        match few_pairs(&self, &self) {
            Ok(()) if self.ctx.0.coalesces.get() => self.coalesce_parts(),
            _ => Ok(self),
        }
    }
}

impl Set {
    /// The ends of a dimension; none where it has no bound that is a number.
    pub fn ends(&self, at: usize) -> Known<Ends> {
        let low = self.clone().dim_min_val(at as c_int)?.to_i64();
        Ok((low, self.clone().dim_max_val(at as c_int)?.to_i64()))
    }

    /// The name of a parameter.
    fn param(&self, at: usize) -> Option<String> {
        let f = self.ctx.api();
        // SAFETY: a valid object; positions out of range give null.
        name_of(unsafe { (f.isl_set_get_dim_name)(self.raw.as_ptr(), PARAM, at as c_uint) })
    }

    /// The names of all parameters.
    pub fn param_names(&self) -> Known<Vec<String>> {
        let named = |i| self.param(i).ok_or_else(|| Reason::Engine("no name".into()).into());
        (0..self.dim(PARAM)?).map(named).collect()
    }

    /// The relation from each point to the empty tuple.
    pub fn nothing(self) -> Known<Map> {
        let ctx = self.ctx.clone();
        // SAFETY: handed over.
        let raw = unsafe { (ctx.api().isl_map_from_domain)(self.raw()) };
        Map::own(&ctx, raw)
    }

    /// The conjunctions whose union this is.
    pub fn parts(&self) -> Known<Vec<BasicSet>> {
        let f = self.ctx.api();
        // SAFETY: the list is owned here and freed once; each element is a reference of its own.
        unsafe {
            let list = (f.isl_set_get_basic_set_list)(self.raw.as_ptr());
            if list.is_null() {
                return Err(self.ctx.failure());
            }
            let n = (f.isl_basic_set_list_size)(list);
            let parts = (0..n)
                .map(|i| BasicSet::own(&self.ctx, (f.isl_basic_set_list_get_at)(list, i)))
                .collect();
            (f.isl_basic_set_list_free)(list);
            parts
        }
    }
}

impl BasicSet {
    /// The constraints, without those that only define divisions. All divisions must be known
    /// ([`Set::compute_divs`]).
    pub fn constraints(&self) -> Known<Vec<Constraint>> {
        let f = self.ctx.api();
        // SAFETY: as in `Set::parts`.
        let all: Known<Vec<Constraint>> = unsafe {
            let list = (f.isl_basic_set_get_constraint_list)(self.raw.as_ptr());
            if list.is_null() {
                return Err(self.ctx.failure());
            }
            let n = (f.isl_constraint_list_size)(list);
            let all = (0..n)
                .map(|i| Constraint::own(&self.ctx, (f.isl_constraint_list_get_at)(list, i)))
                .collect();
            (f.isl_constraint_list_free)(list);
            all
        };
        let mut kept = Vec::new();
        for constraint in all? {
            if !constraint.is_div()? {
                kept.push(constraint);
            }
        }
        Ok(kept)
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
            match (Set::own(&state.ctx, set), Aff::own(&state.ctx, aff)) {
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

impl Map {
    /// Names parameter `at`.
    pub fn name_param(self, at: usize, name: &str) -> Known<Map> {
        let ctx = self.ctx.clone();
        let id = ctx.id(name);
        // SAFETY: both are handed over.
        let raw = unsafe { (ctx.api().isl_map_set_dim_id)(self.raw(), PARAM, at as c_uint, id) };
        Map::own(&ctx, raw)
    }

    /// The name of the input or output tuple.
    pub fn tuple(&self, kind: c_uint) -> Option<String> {
        // SAFETY: a valid object; a tuple without a name gives null.
        name_of(unsafe { (self.ctx.api().isl_map_get_tuple_name)(self.raw.as_ptr(), kind) })
    }
}

impl UnionMap {
    /// The relations, one a space.
    pub fn list(&self) -> Known<Vec<Map>> {
        struct State {
            ctx: Ctx,
            out: Vec<Map>,
        }
        unsafe extern "C" fn on_map(map: *mut isl_map, at: *mut c_void) -> c_int {
            // SAFETY: `at` is the state below, borrowed for the walk; the map is ours.
            let state = unsafe { &mut *at.cast::<State>() };
            match Map::own(&state.ctx, map) {
                Ok(map) => {
                    state.out.push(map);
                    0
                }
                Err(_) => -1,
            }
        }
        let mut state = State { ctx: self.ctx.clone(), out: Vec::new() };
        let at = (&raw mut state).cast();
        // SAFETY: the callback keeps nothing of the state.
        match unsafe { (self.ctx.api().isl_union_map_foreach_map)(self.raw.as_ptr(), on_map, at) } {
            0 => Ok(state.out),
            _ => Err(self.ctx.failure()),
        }
    }
}
