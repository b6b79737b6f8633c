//! ONNX models to modules.
