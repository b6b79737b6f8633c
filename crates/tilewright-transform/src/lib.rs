//! Passes over tensor functions.
