//! Schedules: how the loops of a tensor function run.
