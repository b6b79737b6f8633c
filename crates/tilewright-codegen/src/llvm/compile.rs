//! Textual LLVM IR to an object file, assembly, or optimised IR.
//!
//! Each call has an LLVM context of its own, so that calls from several threads do not meet. LLVM's
//! objects are held by guards that free them on every path; they borrow from one another in the
//! order in which they may be freed.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use tilewright_ir::{Error, Result, Source, Span};
use tilewright_target::{Arch, for_llvm};

use super::api::{self, DiagnosticInfo, MemoryBuffer, ModuleObject};
use super::buffer::Buffer;
use super::fatal::guarded;
use super::{Llvm, OptLevel, Target, c_string, passes};

/// The features that every RISC-V machine has on which a system for all of them runs (RV64GC). LLVM's
/// generic CPU has none of them, and passes floats in integer registers without `d`.
const RISCV_BASE: &str = "+m,+a,+f,+d,+c";

/// What [`Llvm::compile`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Emit {
    /// A relocatable object file with position-independent code.
    Object,
    /// Assembly text (for NVPTX, PTX).
    Assembly,
    /// Textual LLVM IR after the optimisation passes.
    OptimizedIr,
}

/// The name under which LLVM's messages speak of the text.
const MODULE_NAME: &CStr = c"module.ll";

impl Llvm {
    /// Compiles one module of textual LLVM IR for `target`. The module's own target triple and data
    /// layout, if it states any, are replaced by those of `target`.
    ///
    /// # Errors
    /// * [`Error::Internal`] if the text does not parse or breaks a rule of LLVM IR: Tilewright
    ///   generates this text, so that is a bug. The error carries LLVM's message and points at the
    ///   line.
    /// * [`Error::Unsupported`] if this LLVM has no code generator for the triple.
    /// * [`Error::Toolchain`] if the code generator fails. After a fatal error of LLVM's every
    ///   further call is one.
    /// * [`Error::Input`] if a text contains a NUL character, or the target a name that LLVM does not
    ///   know.
    pub fn compile(
        &'static self,
        ir: &str,
        target: &Target,
        level: OptLevel,
        emit: Emit,
    ) -> Result<Vec<u8>> {
        let (ir, target) = (ir.to_owned(), target.clone());
        guarded(move || self.compile_here(&ir, &target, level, emit))
    }

    /// [`Llvm::compile`] on a thread on which LLVM may fail.
    fn compile_here(
        &self,
        ir: &str,
        target: &Target,
        level: OptLevel,
        emit: Emit,
    ) -> Result<Vec<u8>> {
        let diagnostics = Diagnostics { llvm: self, errors: RefCell::default() };
        let context = Context::new(self, &diagnostics);
        let module = Module::parse(&context, ir)?;
        let machine = CodeGenerator::new(self, target, level)?;
        machine.adopt(&module);
        module.verify()?;
        module.optimise(&machine, level)?;
        let emitted = match emit {
            Emit::OptimizedIr => Ok(module.print().into_bytes()),
            Emit::Assembly => machine.emit(&module, api::FILE_ASSEMBLY),
            Emit::Object => machine.emit(&module, api::FILE_OBJECT),
        };
        // What was reported says more than the status, and does not always set it.
        diagnostics.check()?;
        emitted
    }
}

/// Collects what LLVM reports while it compiles. Without a handler, LLVM prints an error and ends
/// the process.
struct Diagnostics<'a> {
    llvm: &'a Llvm,
    errors: RefCell<Vec<String>>,
}

impl Diagnostics<'_> {
    /// The handler; `this` is a `Diagnostics`.
    unsafe extern "C" fn report(info: *mut DiagnosticInfo, this: *mut c_void) {
        // SAFETY: `Context::new` registers a `Diagnostics` that outlives the context, and a context
        // calls its handler on the thread that uses it.
        let this = unsafe { &*this.cast_const().cast::<Diagnostics<'_>>() };
        let f = this.llvm.functions();
        // SAFETY: `info` is valid during this call; the description is handed over.
        unsafe {
            if (f.LLVMGetDiagInfoSeverity)(info) == api::SEVERITY_ERROR {
                let text = this.llvm.take_message((f.LLVMGetDiagInfoDescription)(info));
                this.errors.borrow_mut().push(text);
            }
        }
    }

    /// The errors that were reported so far, as one.
    fn check(&self) -> Result<()> {
        let errors = self.errors.borrow();
        let Some((first, rest)) = errors.split_first() else { return Ok(()) };
        let error = Error::toolchain(format!("LLVM cannot generate code: {}", first.trim_end()));
        Err(rest.iter().fold(error, |error, text| error.note(text.trim_end())))
    }
}

/// An LLVM context, the owner of types and constants.
struct Context<'a> {
    llvm: &'a Llvm,
    raw: *mut api::Context,
    diagnostics: PhantomData<&'a Diagnostics<'a>>,
}

impl<'a> Context<'a> {
    fn new(llvm: &'a Llvm, diagnostics: &'a Diagnostics<'a>) -> Self {
        let f = llvm.functions();
        let handler: api::DiagnosticHandler = Diagnostics::report;
        // SAFETY: the context is this value's; it borrows `diagnostics`, so the handler's argument
        // is valid as long as the handler can be called.
        let raw = unsafe {
            let raw = (f.LLVMContextCreate)();
            let argument: *const Diagnostics<'_> = diagnostics;
            (f.LLVMContextSetDiagnosticHandler)(raw, Some(handler), argument.cast_mut().cast());
            raw
        };
        Context { llvm, raw, diagnostics: PhantomData }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`; modules borrow the context, so none is left.
        unsafe { (self.llvm.functions().LLVMContextDispose)(self.raw) }
    }
}

/// A module of LLVM IR.
struct Module<'a> {
    llvm: &'a Llvm,
    raw: *mut ModuleObject,
    context: PhantomData<&'a Context<'a>>,
}

impl<'a> Module<'a> {
    fn parse(context: &'a Context<'a>, ir: &str) -> Result<Self> {
        // LLVM's lexer takes a NUL inside the text for white space.
        if let Some(at) = ir.find('\0') {
            return Err(Error::input(format!(
                "the LLVM IR contains a NUL character, at byte {at}"
            )));
        }
        let llvm = context.llvm;
        let buffer = Buffer::copy(llvm, ir.as_bytes(), MODULE_NAME);
        let (mut raw, mut message) = (null_mut(), null_mut());
        // SAFETY: parsing consumes the buffer, whatever comes of it; the message is taken once.
        unsafe {
            let failed = (llvm.functions().LLVMParseIRInContext)(
                context.raw,
                buffer.into_raw(),
                &mut raw,
                &mut message,
            ) != 0;
            let message = llvm.take_message(message);
            if failed || raw.is_null() {
                return Err(rejected(ir, &message));
            }
        }
        Ok(Module { llvm, raw, context: PhantomData })
    }

    /// Checks the rules of LLVM IR that its parser does not know.
    fn verify(&self) -> Result<()> {
        let mut message = null_mut();
        // SAFETY: the module is valid; the message is taken once.
        unsafe {
            let verify = self.llvm.functions().LLVMVerifyModule;
            let broken = verify(self.raw, api::VERIFY_RETURN_STATUS, &mut message) != 0;
            let message = self.llvm.take_message(message);
            if broken { Err(rejected("", &message)) } else { Ok(()) }
        }
    }

    /// Runs the passes of this level.
    fn optimise(&self, machine: &CodeGenerator<'_>, level: OptLevel) -> Result<()> {
        let pipeline = passes::pipeline(level, self.llvm.version().major);
        if pipeline.is_empty() {
            return Ok(());
        }
        let f = self.llvm.functions();
        // SAFETY: module, machine and options are valid, the options are disposed of once, and the
        // pipeline is one that this version knows.
        let result = unsafe {
            let options = (f.LLVMCreatePassBuilderOptions)();
            let error = (f.LLVMRunPasses)(self.raw, pipeline.as_ptr(), machine.raw, options);
            (f.LLVMDisposePassBuilderOptions)(options);
            self.llvm.check(error)
        };
        result.map_err(|text| Error::toolchain(format!("LLVM cannot optimise: {text}")))
    }

    /// The module as text.
    fn print(&self) -> String {
        let f = self.llvm.functions();
        // SAFETY: the module is valid; the text is taken once.
        unsafe { self.llvm.take_message((f.LLVMPrintModuleToString)(self.raw)) }
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `parse`; its context is still there.
        unsafe { (self.llvm.functions().LLVMDisposeModule)(self.raw) }
    }
}

/// A code generator for one target.
struct CodeGenerator<'a> {
    llvm: &'a Llvm,
    raw: *mut api::TargetMachine,
    triple: CString,
}

impl<'a> CodeGenerator<'a> {
    fn new(llvm: &'a Llvm, target: &Target, level: OptLevel) -> Result<Self> {
        let f = llvm.functions();
        let triple = c_string("the target triple", &target.triple)?;
        let cpu = c_string("the name of the CPU", &target.cpu)?;
        let features = match Arch::from_triple(&target.triple) {
            Arch::X86_64 => format!("{},{}", target.features, llvm.avoided_features()),
            Arch::Riscv64 => format!("{RISCV_BASE},{}", target.features),
            Arch::Aarch64 => for_llvm(&target.features),
            Arch::Nvidia | Arch::Other => target.features.clone(),
        };
        let features = c_string("the list of CPU features", features.trim_matches(','))?;
        llvm.check_target(target)?;
        let (mut entry, mut message) = (null_mut(), null_mut());
        // SAFETY: all texts end with a zero and outlive the calls; the message is taken once.
        unsafe {
            let failed =
                (f.LLVMGetTargetFromTriple)(triple.as_ptr(), &mut entry, &mut message) != 0;
            let message = llvm.take_message(message);
            if failed || entry.is_null() {
                return Err(no_code_generator(&message, target, llvm));
            }
            let raw = (f.LLVMCreateTargetMachine)(
                entry,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                passes::code_level(level),
                api::RELOC_PIC,
                api::CODE_MODEL_DEFAULT,
            );
            if raw.is_null() {
                return Err(no_code_generator(
                    "LLVM knows the target but cannot generate code for it",
                    target,
                    llvm,
                ));
            }
            Ok(CodeGenerator { llvm, raw, triple })
        }
    }

    /// Makes the module one for this machine.
    fn adopt(&self, module: &Module<'_>) {
        let f = self.llvm.functions();
        // SAFETY: module and machine are valid; the layout is copied into the module, then disposed
        // of.
        unsafe {
            (f.LLVMSetTarget)(module.raw, self.triple.as_ptr());
            let layout = (f.LLVMCreateTargetDataLayout)(self.raw);
            (f.LLVMSetModuleDataLayout)(module.raw, layout);
            (f.LLVMDisposeTargetData)(layout);
        }
    }

    /// Generates code; `file_type` is an `LLVMCodeGenFileType`.
    fn emit(&self, module: &Module<'_>, file_type: c_int) -> Result<Vec<u8>> {
        let (mut message, mut buffer) = (null_mut::<c_char>(), null_mut::<MemoryBuffer>());
        // SAFETY: module and machine are valid; message and buffer are taken once.
        unsafe {
            let emit = self.llvm.functions().LLVMTargetMachineEmitToMemoryBuffer;
            let failed = emit(self.raw, module.raw, file_type, &mut message, &mut buffer) != 0;
            let message = self.llvm.take_message(message);
            match NonNull::new(buffer) {
                Some(raw) if !failed => Ok(Buffer::own(self.llvm, raw).bytes().to_vec()),
                _ => Err(Error::toolchain(format!(
                    "LLVM cannot generate code: {}",
                    message.trim_end()
                ))),
            }
        }
    }
}

fn no_code_generator(reason: &str, target: &Target, llvm: &Llvm) -> Error {
    Error::unsupported(format!("no code generator for target `{}`", target.triple))
        .note(reason.trim_end())
        .note(format!(
            "{} (LLVM {}) is set up for {}",
            llvm.path().display(),
            llvm.version(),
            llvm.families().join(", ")
        ))
}

impl Drop for CodeGenerator<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`.
        unsafe { (self.llvm.functions().LLVMDisposeTargetMachine)(self.raw) }
    }
}

/// The error for IR that LLVM does not take. A message about a place reads `module.ll:3:7: error:
/// ...`, followed by the line and a caret; then the error points there itself.
fn rejected(ir: &str, message: &str) -> Error {
    located_error(message, ir).unwrap_or_else(|| rejected_code(message))
}

fn located_error(message: &str, ir: &str) -> Option<Error> {
    let name = MODULE_NAME.to_str().ok()?;
    let (line, rest) = message.strip_prefix(name)?.strip_prefix(':')?.split_once(':')?;
    let (column, rest) = rest.split_once(':')?;
    let text = rest.trim_start().strip_prefix("error: ")?.lines().next()?;
    let line: usize = line.parse().ok()?;
    let column: usize = column.parse().ok()?;
    let line = ir.split_inclusive('\n').nth(line.checked_sub(1)?)?;
    // The text is one allocation, so the difference of the addresses is the offset.
    let start = line.as_ptr().addr() - ir.as_ptr().addr();
    let at = start + column.saturating_sub(1).min(line.trim_end().len());
    let at = u32::try_from(at).ok()?;
    Some(rejected_code(text).at(Span::new(at, at)).in_source(&Source::new(name, ir)))
}

fn rejected_code(text: &str) -> Error {
    Error::internal(format!("LLVM rejects the generated code: {}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn llvm() -> &'static Llvm {
        Llvm::get().expect("an LLVM")
    }

    fn compile(ir: &str, emit: Emit) -> Result<String> {
        let bytes = llvm().compile(ir, &llvm().host(), OptLevel::Full, emit)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn error(ir: &str) -> Error {
        compile(ir, Emit::Object).expect_err("the IR is wrong")
    }

    const SUM: &str = "\
define i64 @sum(i64 %n) {
entry:
  %sum = alloca i64
  store i64 0, ptr %sum
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = load i64, ptr %sum
  %t = add i64 %s, %i
  store i64 %t, ptr %sum
  %next = add i64 %i, 1
  %go = icmp ult i64 %next, %n
  br i1 %go, label %loop, label %exit
exit:
  ret i64 %t
}
";

    #[test]
    fn a_function_becomes_ir_assembly_and_an_object() {
        let ir = compile(SUM, Emit::OptimizedIr).expect("the IR is right");
        assert!(ir.contains("define") && ir.contains("@sum"), "{ir}");
        assert!(!ir.contains("alloca"), "a sum is in a register: {ir}");
        let target = llvm().host();
        assert!(ir.contains(&format!("target triple = \"{}\"", target.triple)), "{ir}");
        assert!(ir.contains("target datalayout"), "{ir}");
        let assembly = compile(SUM, Emit::Assembly).expect("the IR is right");
        assert!(assembly.contains("sum:"), "{assembly}");
        let object =
            llvm().compile(SUM, &target, OptLevel::Less, Emit::Object).expect("the IR is right");
        assert!(object.starts_with(b"\x7fELF") || !cfg!(target_os = "linux"));
        let unoptimised = llvm().compile(SUM, &target, OptLevel::None, Emit::OptimizedIr);
        let unoptimised = unoptimised.expect("the IR is right");
        assert!(String::from_utf8_lossy(&unoptimised).contains("alloca"));
    }

    #[test]
    fn ir_that_does_not_parse_is_an_error_at_its_line() {
        let error = error("define i32 @f() {\n  ret i64 7 8\n}\n");
        assert!(matches!(error, Error::Internal(_)));
        let text = error.render();
        assert!(text.starts_with("error: LLVM rejects the generated code: "), "{text}");
        assert!(text.contains("--> module.ll:2:"), "{text}");
        assert!(text.contains("   2 |   ret i64 7 8\n"), "{text}");
    }

    #[test]
    fn a_place_at_the_end_of_the_text_is_an_error_too() {
        for ir in ["define i32 @f() {", "define", "@é = \u{1F600}", "\n\n;"] {
            match compile(ir, Emit::Object) {
                Err(error) => assert!(error.render().contains("LLVM rejects"), "{ir}"),
                Ok(_) => assert_eq!(ir, "\n\n;"),
            }
        }
    }

    #[test]
    fn ir_that_breaks_a_rule_is_an_error_with_the_instruction() {
        let ir = "define i32 @f(i1 %c) {
            entry:
              br i1 %c, label %a, label %b
            a:
              %x = add i32 1, 2
              br label %b
            b:
              ret i32 %x
            }";
        let error = error(ir);
        assert!(matches!(error, Error::Internal(_)));
        let text = error.to_string();
        assert!(text.contains("does not dominate all uses") && text.contains("%x = add"), "{text}");
    }

    #[test]
    fn what_the_code_generator_reports_is_an_error() {
        let error = error(
            "define void @f() {
               call void asm sideeffect \"frobnicate\", \"\"()
               ret void
             }",
        );
        assert!(matches!(error, Error::Toolchain(_)));
        let text = error.to_string();
        assert!(text.starts_with("LLVM cannot generate code: "), "{text}");
        assert!(text.contains("frobnicate") || text.contains("invalid instruction"), "{text}");
    }

    #[test]
    fn a_target_that_llvm_lacks_is_unsupported() {
        let target = Target::new("pdp11-dec-unix", "", "");
        let error =
            llvm().compile(SUM, &target, OptLevel::Full, Emit::Object).expect_err("no such target");
        assert!(matches!(error, Error::Unsupported(_)));
        let text = error.render();
        assert!(text.contains("no code generator for target `pdp11-dec-unix`"), "{text}");
        assert!(text.contains("is set up for"), "{text}");
    }

    #[test]
    fn a_nul_is_refused_wherever_it_is() {
        let host = llvm().host();
        check_nul("define\0", &host, "the LLVM IR contains a NUL character, at byte 6");
        let with = |edit: fn(&mut Target)| {
            let mut target = host.clone();
            edit(&mut target);
            target
        };
        check_nul(
            SUM,
            &with(|t| t.triple.push('\0')),
            "the target triple contains a NUL character",
        );
        check_nul(SUM, &with(|t| t.cpu.push('\0')), "the name of the CPU contains a NUL character");
        check_nul(
            SUM,
            &with(|t| t.features.push('\0')),
            "the list of CPU features contains a NUL character",
        );
    }

    fn check_nul(ir: &str, target: &Target, what: &str) {
        let error =
            llvm().compile(ir, target, OptLevel::Full, Emit::Object).expect_err("it has a NUL");
        assert!(matches!(error, Error::Input(_)));
        assert!(error.to_string().starts_with(what), "{error}");
    }

    #[test]
    fn other_families_generate_code_where_the_library_has_them() {
        for (family, triple, mark) in [
            ("X86", "x86_64-unknown-linux-gnu", "sum:"),
            ("AArch64", "aarch64-unknown-linux-gnu", "sum:"),
            ("RISCV", "riscv64-unknown-linux-gnu", "sum:"),
            ("NVPTX", "nvptx64-nvidia-cuda", ".visible .func"),
        ] {
            if !llvm().families().contains(&family) {
                continue;
            }
            let target = Target::new(triple, "", "");
            let text = llvm()
                .compile(SUM, &target, OptLevel::Full, Emit::Assembly)
                .expect("it has the family");
            assert!(String::from_utf8_lossy(&text).contains(mark), "{triple}");
        }
    }

    #[test]
    fn features_that_give_wrong_code_are_not_used() {
        if llvm().version().major < 22 || !llvm().families().contains(&"X86") {
            return;
        }
        let ir = "define <4 x i32> @f(<4 x i32> %x, <4 x i32> %a, <4 x i32> %b) {
                    %c = icmp slt <4 x i32> %x, zeroinitializer
                    %s = select <4 x i1> %c, <4 x i32> %a, <4 x i32> %b
                    ret <4 x i32> %s
                  }";
        for features in ["", "+avx512f,+avx512dq,+avx512vl"] {
            let target = Target::new("x86_64-unknown-linux-gnu", "skylake-avx512", features);
            let text = llvm().compile(ir, &target, OptLevel::Full, Emit::Assembly);
            let text = String::from_utf8(text.expect("the IR is right")).expect("text");
            assert!(!text.contains("vpmovd2m"), "{text}");
            assert!(text.contains("%k1"), "AVX-512 itself is used: {text}");
        }
    }

    #[test]
    fn unsigned_integers_become_floats_where_halves_are_computed() {
        if !llvm().families().contains(&"X86") {
            return;
        }
        let ir = "define <8 x float> @f(<8 x i64> %x) #0 {
                    %y = uitofp <8 x i64> %x to <8 x float>
                    ret <8 x float> %y
                  }
                  attributes #0 = { \"prefer-vector-width\"=\"512\" }";
        let target = Target::new("x86_64-unknown-linux-gnu", "sapphirerapids", "");
        let text = llvm().compile(ir, &target, OptLevel::Full, Emit::Assembly);
        assert!(String::from_utf8_lossy(&text.expect("the IR is right")).contains("zmm"));
    }

    #[test]
    fn several_threads_compile_at_once() {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for round in 0..8 {
                        let name = format!("f{thread}_{round}");
                        let ir = SUM.replace("sum", &name);
                        let text = compile(&ir, Emit::OptimizedIr).expect("the IR is right");
                        assert!(text.contains(&name));
                        assert!(error(&format!("{ir}define {name}")).render().contains(&name));
                    }
                });
            }
        });
    }
}
