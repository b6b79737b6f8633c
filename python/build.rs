//! How an extension module is linked: its symbols of Python are found when Python loads it.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
