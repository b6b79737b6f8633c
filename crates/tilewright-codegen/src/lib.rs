//! Tensor functions to LLVM IR and native code.
