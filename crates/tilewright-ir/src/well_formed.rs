//! The rules that every function and module keeps.
