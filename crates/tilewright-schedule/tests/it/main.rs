//! The integration tests of this crate, one binary.

mod cache;
mod common;
mod compute;
mod decompose_padding;
mod extents;
mod inline;
mod instruction;
mod layout;
mod order;
mod pad_einsum;
mod random;
mod reduction;
mod refused;
mod reindex_cache;
mod storage;
mod table;
mod versions;
mod widths;
