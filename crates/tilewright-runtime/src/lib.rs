//! Tensors in files, compiled modules, threads and memory.
