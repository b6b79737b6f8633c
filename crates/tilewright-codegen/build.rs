//! Records the sysroot of the compiling toolchain: one of the places where libLLVM is looked for at
//! run time. Nothing is linked.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else {
        return;
    };
    if let (true, Ok(sysroot)) = (output.status.success(), String::from_utf8(output.stdout)) {
        println!("cargo:rustc-env=TILEWRIGHT_BUILD_SYSROOT={}", sysroot.trim());
    }
}
