//! The committed example: a trained model on its test images.

use std::path::{Path, PathBuf};

use tilewright_interp::run_module;
use tilewright_ir::{Result, Tensor, well_formed};
use tilewright_onnx::{ImportOptions, Model};
use tilewright_runtime::npz;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits").join(name)
}

/// An array of an archive.
fn array(archive: &str, name: &str) -> Result<Tensor> {
    npz::Archive::open(file(archive))?.read(name)
}

#[test]
fn digits_come_out_as_expected() -> Result<()> {
    let model = Model::read(file("digits.onnx"))?;
    let signature = model.signature()?;
    let images = array("test_inputs.npz", &signature.inputs[0].name)?;
    let shapes = [(signature.inputs[0].name.clone(), images.shape().to_vec())].into();
    let module = model.import(&ImportOptions { shapes, ..Default::default() })?;
    well_formed::check_module(&module)?;
    let outputs = run_module(&module, "main", &[images])?;
    assert_eq!(outputs.len(), signature.outputs.len());
    for (output, port) in outputs.iter().zip(&signature.outputs) {
        let expected = array("test_expected.npz", &port.name)?;
        assert_eq!(output.shape(), expected.shape());
        for i in 0..expected.len() {
            let (a, b) = (output.get_f64(i), expected.get_f64(i));
            assert!((a - b).abs() <= 1e-4, "`{}` at {i}: {a}, expected {b}", port.name);
        }
    }
    Ok(())
}
