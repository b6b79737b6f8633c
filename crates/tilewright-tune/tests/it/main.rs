//! Measurements from outside: what they are kept under, the file, and the processes that make them.

mod key;
mod store;
mod worker;
