//! Data types, expressions, statements, buffers, functions and modules.
