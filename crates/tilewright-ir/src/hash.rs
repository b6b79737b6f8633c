//! Maps and sets by hash, for all of the compiler.
//!
//! Their keys are names, variables and addresses that the compiler makes itself, so that nobody can choose them such
//! that they collide: a simple hash does, and takes a third of the time of the standard library's. The order of their
//! elements is the same in each run of a program.

/// A map by hash.
pub type HashMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set by hash.
pub type HashSet<T> = rustc_hash::FxHashSet<T>;
