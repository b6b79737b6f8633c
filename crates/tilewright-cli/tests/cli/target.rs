//! `compile --target`: files for other machines, as far as no compiler of theirs is needed.
//! `conformance/cross` runs what is made.

use super::{Done, Scratch, digits, tilewright};

/// Compiles the digits model for two images.
fn compile(out: &str, more: &[&str]) -> Done {
    let model = digits("digits.onnx");
    tilewright(&[&["compile", &model, "--dim", "N=2", "-o", out], more].concat())
}

/// What an ELF file says of its machine: 183 is AArch64, 243 is RISC-V; and its flags.
fn machine(path: &str) -> (u16, u32) {
    let bytes = std::fs::read(path).expect("a file was written");
    assert_eq!(&bytes[..5], b"\x7fELF\x02");
    let flags = bytes[48..52].try_into().expect("four bytes");
    (u16::from_le_bytes([bytes[18], bytes[19]]), u32::from_le_bytes(flags))
}

#[test]
fn object_files_are_for_the_machine_that_is_said() {
    let scratch = Scratch::new();
    let out = scratch.path("digits.o");
    for cpu in [None, Some("neoverse-n2"), Some("cortex-a76")] {
        let cpu: Vec<&str> = cpu.into_iter().flat_map(|cpu| ["--cpu", cpu]).collect();
        let target = ["--target", "aarch64-unknown-linux-gnu"];
        compile(&out, &[&target[..], &cpu].concat()).code(0);
        assert_eq!(machine(&out).0, 183, "{cpu:?}");
    }
    for more in [&[][..], &["--features=+v,+zvl256b"], &["--cpu", "sifive-x280"]] {
        let target = ["--target", "riscv64-unknown-linux-gnu"];
        compile(&out, &[&target[..], more].concat()).code(0);
        let (machine, flags) = machine(&out);
        // Bit 0: compressed instructions; bits 1 and 2: floats in registers of 64 bits.
        assert_eq!((machine, flags & 7), (243, 5), "{more:?}");
    }
}

#[test]
fn vectors_are_those_of_the_machine() {
    let scratch = Scratch::new();
    let out = scratch.path("digits.s");
    let text = |more: &[&str]| {
        compile(&out, more).code(0);
        std::fs::read_to_string(&out).expect("a file was written")
    };
    let riscv = ["--target", "riscv64-unknown-linux-gnu"];
    let with = |more: &'static str| text(&[&riscv[..], &[more]].concat());
    assert!(!with("--cpu=generic-rv64").contains("vfmacc"));
    assert!(with("--features=+v,+zvl256b").contains("vfmacc"));
    assert!(text(&["--target", "aarch64-unknown-linux-gnu"]).contains("fmla"));
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let scratch = Scratch::new();
    let out = scratch.path("digits.o");
    let refused = |more: &[&str]| compile(&out, more).code(2);
    let riscv = ["--target", "riscv64-unknown-linux-gnu"];
    let with = |more: &[&'static str]| refused(&[&riscv[..], more].concat());
    with(&["--cpu", "sifive-x281"]).complains("did you mean `sifive-x280`?");
    with(&["--features=+zvl257b"]).complains("did you mean `zvl256b`?");
    with(&["--features=v"]).complains("write +NAME for a feature that is there");
    with(&["--cpu", "native"]).complains("this machine is no riscv64-unknown-linux-gnu");
    refused(&["--target", "pdp11-dec-unix"])
        .complains("no code generator for target `pdp11-dec-unix`");
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn a_package_file_stands_beside_a_library() {
    let scratch = Scratch::new();
    let library = scratch.path("libdigits.so");
    compile(&library, &["--pkg-config"]).code(0);
    let text = std::fs::read_to_string(scratch.path("digits.pc")).expect("a file was written");
    assert!(text.contains("Libs: \"${pcfiledir}/libdigits.so\"\n"), "{text}");
    assert!(text.contains("Cflags: -I\"${pcfiledir}\"\n"), "{text}");
    let object = scratch.path("digits.o");
    compile(&object, &["--pkg-config"]).code(2).complains("--pkg-config is for libraries");
}
