//! Passes over graph functions: fusion and memory planning.
