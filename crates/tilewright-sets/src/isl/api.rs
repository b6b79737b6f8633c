//! The functions of isl that Tilewright calls, and their look-up in a library.
//!
//! Names, types and ownership are those of isl's headers. An argument marked `__isl_take` there is
//! owned by isl after the call, one marked `__isl_keep` stays ours; the wrappers of
//! [`super::object`] keep the two apart.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tilewright_dylib::Library;
use tilewright_ir::Error;

use super::find::{OVERRIDE, Search};

macro_rules! opaque {
    ($($name:ident),* $(,)?) => { $(
        #[doc = concat!("isl's `", stringify!($name), "`.")]
        #[allow(non_camel_case_types)]
        #[repr(C)]
        pub(crate) struct $name { _private: [u8; 0] }
    )* };
}

opaque!(
    isl_ctx,
    isl_val,
    isl_id,
    isl_space,
    isl_local_space,
    isl_aff,
    isl_pw_aff,
    isl_pw_multi_aff,
    isl_set,
    isl_basic_set,
    isl_basic_set_list,
    isl_constraint,
    isl_constraint_list,
    isl_point,
    isl_map,
    isl_union_map,
    isl_union_access_info,
    isl_union_flow,
);

/// `isl_dim_type`: parameters.
pub(crate) const PARAM: c_uint = 1;
/// `isl_dim_type`: input of a map.
pub(crate) const IN: c_uint = 2;
/// `isl_dim_type`: dimensions of a set; output of a map.
pub(crate) const SET: c_uint = 3;
/// `isl_dim_type`: integer divisions.
pub(crate) const DIV: c_uint = 4;
/// `ISL_ON_ERROR_CONTINUE`: a failing call returns null, prints nothing and does not abort.
pub(crate) const ON_ERROR_CONTINUE: c_int = 1;
/// `isl_error_quota`.
pub(crate) const ERROR_QUOTA: c_int = 6;

/// Callback of `isl_pw_aff_foreach_piece`; it owns both objects.
pub(crate) type OnPiece = unsafe extern "C" fn(*mut isl_set, *mut isl_aff, *mut c_void) -> c_int;
/// Callback of `isl_union_map_foreach_map`; it owns the map.
pub(crate) type OnMap = unsafe extern "C" fn(*mut isl_map, *mut c_void) -> c_int;

tilewright_dylib::functions! {
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
    isl_val_copy: fn(*mut isl_val) -> *mut isl_val;
    isl_val_free: fn(*mut isl_val) -> *mut isl_val;
    isl_val_is_int: fn(*mut isl_val) -> c_int;
    isl_val_cmp_si: fn(*mut isl_val, c_long) -> c_int;
    isl_val_get_num_si: fn(*mut isl_val) -> c_long;

    isl_id_alloc: fn(*mut isl_ctx, *const c_char, *mut c_void) -> *mut isl_id;

    isl_space_set_alloc: fn(*mut isl_ctx, c_uint, c_uint) -> *mut isl_space;
    isl_space_set_dim_id: fn(*mut isl_space, c_uint, c_uint, *mut isl_id) -> *mut isl_space;
    isl_space_copy: fn(*mut isl_space) -> *mut isl_space;
    isl_space_free: fn(*mut isl_space) -> *mut isl_space;
    isl_local_space_from_space: fn(*mut isl_space) -> *mut isl_local_space;
    isl_local_space_copy: fn(*mut isl_local_space) -> *mut isl_local_space;
    isl_local_space_free: fn(*mut isl_local_space) -> *mut isl_local_space;

    isl_aff_copy: fn(*mut isl_aff) -> *mut isl_aff;
    isl_aff_free: fn(*mut isl_aff) -> *mut isl_aff;
    isl_aff_zero_on_domain: fn(*mut isl_local_space) -> *mut isl_aff;
    isl_aff_set_constant_si: fn(*mut isl_aff, c_int) -> *mut isl_aff;
    isl_aff_set_constant_val: fn(*mut isl_aff, *mut isl_val) -> *mut isl_aff;
    isl_aff_set_coefficient_si: fn(*mut isl_aff, c_uint, c_int, c_int) -> *mut isl_aff;
    isl_aff_set_coefficient_val: fn(*mut isl_aff, c_uint, c_int, *mut isl_val) -> *mut isl_aff;
    isl_aff_get_constant_val: fn(*mut isl_aff) -> *mut isl_val;
    isl_aff_get_coefficient_val: fn(*mut isl_aff, c_uint, c_int) -> *mut isl_val;
    isl_aff_get_denominator_val: fn(*mut isl_aff) -> *mut isl_val;
    isl_aff_get_div: fn(*mut isl_aff, c_int) -> *mut isl_aff;
    isl_aff_dim: fn(*mut isl_aff, c_uint) -> c_int;
    isl_aff_scale_val: fn(*mut isl_aff, *mut isl_val) -> *mut isl_aff;
    isl_aff_nonneg_basic_set: fn(*mut isl_aff) -> *mut isl_basic_set;
    isl_aff_zero_basic_set: fn(*mut isl_aff) -> *mut isl_basic_set;

    isl_pw_aff_copy: fn(*mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_free: fn(*mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_from_aff: fn(*mut isl_aff) -> *mut isl_pw_aff;
    isl_pw_aff_add: fn(*mut isl_pw_aff, *mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_neg: fn(*mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_scale_val: fn(*mut isl_pw_aff, *mut isl_val) -> *mut isl_pw_aff;
    isl_pw_aff_scale_down_val: fn(*mut isl_pw_aff, *mut isl_val) -> *mut isl_pw_aff;
    isl_pw_aff_mod_val: fn(*mut isl_pw_aff, *mut isl_val) -> *mut isl_pw_aff;
    isl_pw_aff_floor: fn(*mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_min: fn(*mut isl_pw_aff, *mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_max: fn(*mut isl_pw_aff, *mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_intersect_domain: fn(*mut isl_pw_aff, *mut isl_set) -> *mut isl_pw_aff;
    isl_pw_aff_union_add: fn(*mut isl_pw_aff, *mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_nonneg_set: fn(*mut isl_pw_aff) -> *mut isl_set;
    isl_pw_aff_zero_set: fn(*mut isl_pw_aff) -> *mut isl_set;
    isl_pw_aff_non_zero_set: fn(*mut isl_pw_aff) -> *mut isl_set;
    isl_pw_aff_gist: fn(*mut isl_pw_aff, *mut isl_set) -> *mut isl_pw_aff;
    isl_pw_aff_coalesce: fn(*mut isl_pw_aff) -> *mut isl_pw_aff;
    isl_pw_aff_n_piece: fn(*mut isl_pw_aff) -> c_int;
    isl_pw_aff_foreach_piece: fn(*mut isl_pw_aff, OnPiece, *mut c_void) -> c_int;
    isl_pw_aff_min_val: fn(*mut isl_pw_aff) -> *mut isl_val;
    isl_pw_aff_max_val: fn(*mut isl_pw_aff) -> *mut isl_val;

    isl_pw_multi_aff_copy: fn(*mut isl_pw_multi_aff) -> *mut isl_pw_multi_aff;
    isl_pw_multi_aff_free: fn(*mut isl_pw_multi_aff) -> *mut isl_pw_multi_aff;
    isl_pw_multi_aff_get_pw_aff: fn(*mut isl_pw_multi_aff, c_int) -> *mut isl_pw_aff;

    isl_set_copy: fn(*mut isl_set) -> *mut isl_set;
    isl_set_free: fn(*mut isl_set) -> *mut isl_set;
    isl_set_universe: fn(*mut isl_space) -> *mut isl_set;
    isl_set_empty: fn(*mut isl_space) -> *mut isl_set;
    isl_set_get_dim_name: fn(*mut isl_set, c_uint, c_uint) -> *const c_char;
    isl_set_dim: fn(*mut isl_set, c_uint) -> c_int;
    isl_set_intersect: fn(*mut isl_set, *mut isl_set) -> *mut isl_set;
    isl_set_union: fn(*mut isl_set, *mut isl_set) -> *mut isl_set;
    isl_set_subtract: fn(*mut isl_set, *mut isl_set) -> *mut isl_set;
    isl_set_complement: fn(*mut isl_set) -> *mut isl_set;
    isl_set_coalesce: fn(*mut isl_set) -> *mut isl_set;
    isl_set_detect_equalities: fn(*mut isl_set) -> *mut isl_set;
    isl_set_remove_redundancies: fn(*mut isl_set) -> *mut isl_set;
    isl_set_compute_divs: fn(*mut isl_set) -> *mut isl_set;
    isl_set_gist: fn(*mut isl_set, *mut isl_set) -> *mut isl_set;
    isl_set_from_params: fn(*mut isl_set) -> *mut isl_set;
    isl_set_apply: fn(*mut isl_set, *mut isl_map) -> *mut isl_set;
    isl_set_add_dims: fn(*mut isl_set, c_uint, c_uint) -> *mut isl_set;
    isl_set_insert_dims: fn(*mut isl_set, c_uint, c_uint, c_uint) -> *mut isl_set;
    isl_set_project_out: fn(*mut isl_set, c_uint, c_uint, c_uint) -> *mut isl_set;
    isl_set_move_dims: fn(*mut isl_set, c_uint, c_uint, c_uint, c_uint, c_uint) -> *mut isl_set;
    isl_set_is_empty: fn(*mut isl_set) -> c_int;
    isl_set_is_equal: fn(*mut isl_set, *mut isl_set) -> c_int;
    isl_set_is_disjoint: fn(*mut isl_set, *mut isl_set) -> c_int;
    isl_set_is_subset: fn(*mut isl_set, *mut isl_set) -> c_int;
    isl_set_is_bounded: fn(*mut isl_set) -> c_int;
    isl_set_sample_point: fn(*mut isl_set) -> *mut isl_point;
    isl_set_lexmin: fn(*mut isl_set) -> *mut isl_set;
    isl_set_lexmax: fn(*mut isl_set) -> *mut isl_set;
    isl_set_dim_min: fn(*mut isl_set, c_int) -> *mut isl_pw_aff;
    isl_set_dim_max: fn(*mut isl_set, c_int) -> *mut isl_pw_aff;
    isl_set_dim_min_val: fn(*mut isl_set, c_int) -> *mut isl_val;
    isl_set_dim_max_val: fn(*mut isl_set, c_int) -> *mut isl_val;
    isl_set_n_basic_set: fn(*mut isl_set) -> c_int;
    isl_set_get_basic_set_list: fn(*mut isl_set) -> *mut isl_basic_set_list;
    isl_set_flatten: fn(*mut isl_set) -> *mut isl_set;
    isl_set_affine_hull: fn(*mut isl_set) -> *mut isl_basic_set;
    isl_set_identity: fn(*mut isl_set) -> *mut isl_map;

    isl_basic_set_copy: fn(*mut isl_basic_set) -> *mut isl_basic_set;
    isl_basic_set_free: fn(*mut isl_basic_set) -> *mut isl_basic_set;
    isl_basic_set_intersect: fn(*mut isl_basic_set, *mut isl_basic_set) -> *mut isl_basic_set;
    isl_set_from_basic_set: fn(*mut isl_basic_set) -> *mut isl_set;
    isl_basic_set_get_constraint_list: fn(*mut isl_basic_set) -> *mut isl_constraint_list;
    isl_basic_set_list_size: fn(*mut isl_basic_set_list) -> c_int;
    isl_basic_set_list_get_at: fn(*mut isl_basic_set_list, c_int) -> *mut isl_basic_set;
    isl_basic_set_list_free: fn(*mut isl_basic_set_list) -> *mut isl_basic_set_list;

    isl_constraint_copy: fn(*mut isl_constraint) -> *mut isl_constraint;
    isl_constraint_free: fn(*mut isl_constraint) -> *mut isl_constraint;
    isl_constraint_get_aff: fn(*mut isl_constraint) -> *mut isl_aff;
    isl_constraint_is_equality: fn(*mut isl_constraint) -> c_int;
    isl_constraint_is_div_constraint: fn(*mut isl_constraint) -> c_int;
    isl_constraint_list_size: fn(*mut isl_constraint_list) -> c_int;
    isl_constraint_list_get_at: fn(*mut isl_constraint_list, c_int) -> *mut isl_constraint;
    isl_constraint_list_free: fn(*mut isl_constraint_list) -> *mut isl_constraint_list;

    isl_point_copy: fn(*mut isl_point) -> *mut isl_point;
    isl_point_free: fn(*mut isl_point) -> *mut isl_point;
    isl_point_is_void: fn(*mut isl_point) -> c_int;
    isl_point_get_coordinate_val: fn(*mut isl_point, c_uint, c_int) -> *mut isl_val;

    isl_map_copy: fn(*mut isl_map) -> *mut isl_map;
    isl_map_free: fn(*mut isl_map) -> *mut isl_map;
    isl_map_from_pw_aff: fn(*mut isl_pw_aff) -> *mut isl_map;
    isl_map_from_domain: fn(*mut isl_set) -> *mut isl_map;
    isl_map_flat_range_product: fn(*mut isl_map, *mut isl_map) -> *mut isl_map;
    isl_map_intersect_domain: fn(*mut isl_map, *mut isl_set) -> *mut isl_map;
    isl_map_reverse: fn(*mut isl_map) -> *mut isl_map;
    isl_map_apply_range: fn(*mut isl_map, *mut isl_map) -> *mut isl_map;
    isl_map_subtract: fn(*mut isl_map, *mut isl_map) -> *mut isl_map;
    isl_map_coalesce: fn(*mut isl_map) -> *mut isl_map;
    isl_map_intersect: fn(*mut isl_map, *mut isl_map) -> *mut isl_map;
    isl_map_union: fn(*mut isl_map, *mut isl_map) -> *mut isl_map;
    isl_map_intersect_range: fn(*mut isl_map, *mut isl_set) -> *mut isl_map;
    isl_map_subtract_range: fn(*mut isl_map, *mut isl_set) -> *mut isl_map;
    isl_map_range: fn(*mut isl_map) -> *mut isl_set;
    isl_map_reset_tuple_id: fn(*mut isl_map, c_uint) -> *mut isl_map;
    isl_map_domain: fn(*mut isl_map) -> *mut isl_set;
    isl_map_wrap: fn(*mut isl_map) -> *mut isl_set;
    isl_map_move_dims: fn(*mut isl_map, c_uint, c_uint, c_uint, c_uint, c_uint) -> *mut isl_map;
    isl_map_insert_dims: fn(*mut isl_map, c_uint, c_uint, c_uint) -> *mut isl_map;
    isl_map_set_dim_id: fn(*mut isl_map, c_uint, c_uint, *mut isl_id) -> *mut isl_map;
    isl_map_project_out: fn(*mut isl_map, c_uint, c_uint, c_uint) -> *mut isl_map;
    isl_map_as_pw_multi_aff: fn(*mut isl_map) -> *mut isl_pw_multi_aff;
    isl_map_set_tuple_name: fn(*mut isl_map, c_uint, *const c_char) -> *mut isl_map;
    isl_map_get_tuple_name: fn(*mut isl_map, c_uint) -> *const c_char;
    isl_map_is_injective: fn(*mut isl_map) -> c_int;
    isl_map_is_subset: fn(*mut isl_map, *mut isl_map) -> c_int;
    isl_map_is_empty: fn(*mut isl_map) -> c_int;
    isl_map_dim: fn(*mut isl_map, c_uint) -> c_int;
    isl_map_n_basic_map: fn(*mut isl_map) -> c_int;

    isl_union_map_empty: fn(*mut isl_space) -> *mut isl_union_map;
    isl_union_map_copy: fn(*mut isl_union_map) -> *mut isl_union_map;
    isl_union_map_free: fn(*mut isl_union_map) -> *mut isl_union_map;
    isl_union_map_from_map: fn(*mut isl_map) -> *mut isl_union_map;
    isl_union_map_union: fn(*mut isl_union_map, *mut isl_union_map) -> *mut isl_union_map;
    isl_union_map_foreach_map: fn(*mut isl_union_map, OnMap, *mut c_void) -> c_int;

    isl_union_access_info_from_sink: fn(*mut isl_union_map) -> *mut isl_union_access_info;
    isl_union_access_info_copy: fn(*mut isl_union_access_info) -> *mut isl_union_access_info;
    isl_union_access_info_free: fn(*mut isl_union_access_info) -> *mut isl_union_access_info;
    isl_union_access_info_set_must_source: fn(
        *mut isl_union_access_info, *mut isl_union_map,
    ) -> *mut isl_union_access_info;
    isl_union_access_info_set_may_source: fn(
        *mut isl_union_access_info, *mut isl_union_map,
    ) -> *mut isl_union_access_info;
    isl_union_access_info_set_schedule_map: fn(
        *mut isl_union_access_info, *mut isl_union_map,
    ) -> *mut isl_union_access_info;
    isl_union_access_info_compute_flow: fn(*mut isl_union_access_info) -> *mut isl_union_flow;
    isl_union_flow_copy: fn(*mut isl_union_flow) -> *mut isl_union_flow;
    isl_union_flow_free: fn(*mut isl_union_flow) -> *mut isl_union_flow;
    isl_union_flow_get_must_dependence: fn(*mut isl_union_flow) -> *mut isl_union_map;
    isl_union_flow_get_may_dependence: fn(*mut isl_union_flow) -> *mut isl_union_map;
    isl_union_flow_get_may_no_source: fn(*mut isl_union_flow) -> *mut isl_union_map;
}

/// A library that is loaded and checked.
pub(crate) struct Api {
    pub functions: Functions,
    pub version: String,
    pub file: PathBuf,
    /// Keeps the functions alive.
    _library: Library,
}

impl Api {
    /// The library of this process; it is looked for once.
    pub fn get() -> Result<&'static Api, Error> {
        static API: OnceLock<Result<Api, Error>> = OnceLock::new();
        API.get_or_init(|| Api::search(&Search::from_env())).as_ref().map_err(Clone::clone)
    }

    /// The first library of a search that can be used.
    pub fn search(search: &Search) -> Result<Api, Error> {
        let mut refused = Vec::new();
        for file in &search.files {
            match Api::load(file) {
                Ok(api) => return Ok(api),
                Err(reason) => refused.push(format!("{}: {reason}", file.display())),
            }
        }
        let error = match search.demanded {
            true => Error::toolchain(format!("the isl library that {OVERRIDE} names is unusable")),
            false => Error::toolchain("the isl library (libisl) was not found"),
        };
        // Of the bare names, what the dynamic linker says about the first one is enough.
        let worth = |r: &&String| search.demanded || r.starts_with('/');
        Err(refused.iter().filter(worth).fold(error, |e, r| e.note(r.clone())).help(INSTALL))
    }

    fn load(file: &Path) -> Result<Api, String> {
        // SAFETY: loading isl runs no code of its own; a file that the user names is theirs to
        // vouch for.
        let library = unsafe { tilewright_dylib::open(file) }?;
        // SAFETY: the types are those of isl's headers; the library is kept beside the functions.
        let functions = unsafe { Functions::resolve(&library) }
            .map_err(|reason| format!("not an isl from 0.22 on: {reason}"))?;
        // SAFETY: returns a static text.
        let version = unsafe { CStr::from_ptr((functions.isl_version)()) };
        let version = version.to_string_lossy().trim().to_owned();
        Ok(Api { functions, version, file: file.to_path_buf(), _library: library })
    }
}

/// How to get the library.
const INSTALL: &str = "install isl: `apt install libisl23` (Debian, Ubuntu), `dnf install isl` \
    (Fedora), `pacman -S libisl` (Arch), `brew install isl` (macOS); or name the file in \
    TILEWRIGHT_ISL";

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(files: &[&str], demanded: bool) -> Error {
        let files = files.iter().map(PathBuf::from).collect();
        match Api::search(&Search { demanded, files }) {
            Ok(_) => panic!("found"),
            Err(e) => e,
        }
    }

    #[test]
    fn a_missing_library_says_how_to_get_it() {
        let e = failure(&["libisl-that-is-not-there.so"], false);
        assert!(matches!(e, Error::Toolchain(_)));
        assert_eq!(e.to_string(), "the isl library (libisl) was not found");
        let help = e.diagnostic().help.clone().unwrap_or_default();
        for part in ["apt install libisl23", "dnf install", "pacman -S", "brew install", OVERRIDE] {
            assert!(help.contains(part), "{part} in {help}");
        }
    }

    #[test]
    fn a_demanded_file_that_is_no_library_is_named() {
        let e = failure(&["/dev/null"], true);
        assert_eq!(e.to_string(), "the isl library that TILEWRIGHT_ISL names is unusable");
        assert!(e.diagnostic().notes.iter().any(|n| n.starts_with("/dev/null: ")), "{e:?}");
    }
}
