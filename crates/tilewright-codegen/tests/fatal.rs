//! What ends LLVM does not end this process. A test binary of its own, because LLVM is not used
//! any more afterwards.

use tilewright_codegen::llvm::{Emit, Jit, Llvm, OptLevel};
use tilewright_ir::Error;

#[test]
fn a_fatal_error_of_llvm_is_an_error() {
    let llvm = Llvm::get().expect("an LLVM");
    let compile = |ir: &str| llvm.compile(ir, &llvm.host(), OptLevel::None, Emit::Object);
    let jit = Jit::new(llvm).expect("a JIT");
    let before = compile("define i32 @f(i32 %x) { %y = add i32 %x, 1  ret i32 %y }");
    jit.add_object(&before.expect("the IR is right")).expect("an object");
    let f = jit.lookup("f").expect("it is there").as_ptr();
    // An intrinsic of another family: the verifier takes it, and the code generator has no
    // instruction for it.
    let foreign = if cfg!(target_arch = "aarch64") {
        "declare void @llvm.x86.sse2.mfence() define void @g() { call void @llvm.x86.sse2.mfence() ret void }"
    } else {
        "declare void @llvm.aarch64.hint(i32) define void @g() { call void @llvm.aarch64.hint(i32 1) ret void }"
    };
    let error = compile(foreign).expect_err("there is no such instruction");
    assert!(matches!(error, Error::Toolchain(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("LLVM stopped with a fatal error: "), "{text}");
    // What was compiled before runs, and nothing waits for what LLVM held.
    // SAFETY: the type is that of the definition, and `jit` is still there.
    let f: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(f) };
    assert_eq!(f(41), 42);
    let again = compile("define void @h() { ret void }").expect_err("LLVM is not used any more");
    assert!(again.render().contains("cannot be used any more"), "{}", again.render());
    assert!(Jit::new(llvm).is_err() && jit.lookup("f").is_err());
}
