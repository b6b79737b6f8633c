//! Structural equality modulo names.
