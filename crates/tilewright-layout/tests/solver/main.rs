//! Plans against brute force, proofs against a checker, and problems that are refused.

mod certificates;
mod exact;
mod generate;
mod networks;
mod problems;
mod ranked;
