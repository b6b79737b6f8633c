//! Object files to callable code in this process.
//!
//! A [`Jit`] is an ORC `LLJIT` with one symbol table: the objects that were added, then everything
//! this process exports, then the C mathematics library. An object is linked when one of its symbols
//! is looked up for the first time.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_ir::{Error, Result};

use super::api::{Dylib, ErrorObject, LlJit};
use super::buffer::Buffer;
use super::fatal::guarded;
use super::{Llvm, c_string};

/// The C mathematics library, which a process need not have loaded for all to see.
#[cfg(target_os = "linux")]
const MATHEMATICS: Option<&CStr> = Some(c"libm.so.6");
#[cfg(not(target_os = "linux"))]
const MATHEMATICS: Option<&CStr> = None;

/// Code that was linked into this process. Dropping it unmaps the code.
///
/// What LLVM compiles or links, it does on a thread on which a fatal error is survived.
pub struct Jit(Arc<Linked>);

/// What a [`Jit`] holds.
struct Linked {
    llvm: &'static Llvm,
    raw: NonNull<LlJit>,
    /// Boxed, because LLVM holds its address.
    reports: Box<Reports>,
}

/// What LLVM has to say outside the results of calls: which symbols are missing, for example.
struct Reports {
    llvm: &'static Llvm,
    texts: Mutex<Vec<String>>,
}

// SAFETY: an `LLJIT` is not tied to the thread that made it. Its symbol table and its linker are
// guarded by the lock of its execution session: ORC is made for several threads that add and look
// up at once. `raw` never changes, and `Reports` has a lock of its own.
unsafe impl Send for Linked {}
// SAFETY: as above.
unsafe impl Sync for Linked {}

impl Jit {
    /// An empty one, for code that runs in this process.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if LLVM cannot link code for this machine.
    pub fn new(llvm: &'static Llvm) -> Result<Jit> {
        guarded(move || Linked::new(llvm)).map(|linked| Jit(Arc::new(linked)))
    }

    /// Adds the symbols of an object file, which is copied.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if this is not an object file for this machine, or defines a symbol
    /// that is there already.
    pub fn add_object(&self, object: &[u8]) -> Result<()> {
        let (linked, object) = (self.0.clone(), object.to_vec());
        guarded(move || linked.add_object(&object))
    }

    /// Adds the functions of an object file or, by its ending, of a shared library: what
    /// `T.call_extern` may call.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Toolchain`] if it is no such file for this
    /// machine.
    pub(crate) fn add_file(&self, path: &Path) -> Result<()> {
        let (linked, path) = (self.0.clone(), path.to_owned());
        guarded(move || linked.add_file(&path))
    }

    /// The address of a symbol; links the object that defines it.
    ///
    /// The address is valid as long as this JIT is. What to call it as, the caller has to know.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is no such symbol, or its object needs one that is missing;
    /// [`Error::Input`] if the name contains a NUL character.
    pub fn lookup(&self, name: &str) -> Result<NonNull<c_void>> {
        let (linked, name) = (self.0.clone(), name.to_owned());
        let found = guarded(move || Ok(linked.lookup(&name)?.as_ptr().expose_provenance()))?;
        NonNull::new(std::ptr::with_exposed_provenance_mut(found))
            .ok_or_else(|| Error::internal("a symbol at no address"))
    }
}

impl Linked {
    fn new(llvm: &'static Llvm) -> Result<Linked> {
        let f = llvm.functions();
        let reports = Box::new(Reports { llvm, texts: Mutex::default() });
        let mut raw = null_mut();
        // SAFETY: without a builder, LLVM takes the machine that it runs on.
        let made = unsafe { llvm.check((f.LLVMOrcCreateLLJIT)(&mut raw, null_mut())) };
        let raw = made.and_then(|()| NonNull::new(raw).ok_or_else(|| "no reason given".into()));
        let raw =
            raw.map_err(|text| Error::toolchain(format!("LLVM cannot set up a JIT: {text}")))?;
        let jit = Linked { llvm, raw, reports };
        let argument: *const Reports = &*jit.reports;
        // SAFETY: the session belongs to the JIT, which is disposed of before the reports are
        // freed.
        unsafe {
            let session = (f.LLVMOrcLLJITGetExecutionSession)(jit.raw.as_ptr());
            let reporter = Reports::report;
            (f.LLVMOrcExecutionSessionSetErrorReporter)(
                session,
                reporter,
                argument.cast_mut().cast(),
            );
        }
        let mut generator = null_mut();
        // SAFETY: no filter; the generator is handed on once, and only if it was made.
        unsafe {
            let prefix = (f.LLVMOrcLLJITGetGlobalPrefix)(jit.raw.as_ptr());
            let process = f.LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess;
            llvm.check(process(&mut generator, prefix, None, null_mut())).map_err(|text| {
                Error::toolchain(format!("LLVM cannot see this process: {text}"))
            })?;
            (f.LLVMOrcJITDylibAddGenerator)(jit.main(), generator);
        }
        // A system without it by that name has its functions in the C library.
        let _ = MATHEMATICS.map(|library| jit.search(library));
        Ok(jit)
    }

    /// Adds what a shared library exports.
    fn search(&self, library: &CStr) -> Result<(), String> {
        let f = self.llvm.functions();
        let mut generator = null_mut();
        // SAFETY: as in `new`.
        unsafe {
            let prefix = (f.LLVMOrcLLJITGetGlobalPrefix)(self.raw.as_ptr());
            let from_path = f.LLVMOrcCreateDynamicLibrarySearchGeneratorForPath;
            let made = from_path(&mut generator, library.as_ptr(), prefix, None, null_mut());
            self.llvm.check(made)?;
            (f.LLVMOrcJITDylibAddGenerator)(self.main(), generator);
        }
        Ok(())
    }

    fn add_object(&self, object: &[u8]) -> Result<()> {
        let f = self.llvm.functions();
        let buffer = Buffer::copy(self.llvm, object, c"object");
        // SAFETY: JIT and library are valid; adding consumes the buffer, whatever comes of it.
        let added = unsafe {
            let error =
                (f.LLVMOrcLLJITAddObjectFile)(self.raw.as_ptr(), self.main(), buffer.into_raw());
            self.llvm.check(error)
        };
        added.map_err(|text| self.error("cannot add an object file", text))
    }

    fn add_file(&self, path: &Path) -> Result<()> {
        tilewright_dylib::check_plain(path).map_err(Error::io)?;
        let shared = path.extension().is_some_and(|e| e == "so" || e == "dylib");
        if !shared {
            let object = std::fs::read(path).map_err(|e| Error::io(e.to_string()));
            let added = object.and_then(|object| self.add_object(&object));
            return added.map_err(|e| e.context(path.display()));
        }
        // A bare name would be looked for among the system's libraries.
        let absolute = std::path::absolute(path).map_err(|e| Error::io(e.to_string()))?;
        let name = c_string("the name of a library", &absolute.display().to_string())?;
        let made = self.search(&name);
        made.map_err(|text| self.error(&format!("cannot load `{}`", path.display()), text))
    }

    fn lookup(&self, name: &str) -> Result<NonNull<c_void>> {
        let c_name = c_string("the name of a symbol", name)?;
        let mut address = 0;
        // SAFETY: the JIT is valid, the name ends with a zero.
        let found = unsafe {
            let lookup = self.llvm.functions().LLVMOrcLLJITLookup;
            self.llvm.check(lookup(self.raw.as_ptr(), &mut address, c_name.as_ptr()))
        };
        found.map_err(|text| self.error(&format!("cannot link `{name}`"), text))?;
        let address = usize::try_from(address).unwrap_or(0);
        NonNull::new(std::ptr::with_exposed_provenance_mut(address)).ok_or_else(|| {
            self.error(&format!("cannot link `{name}`"), "its address is null".into())
        })
    }

    /// The one symbol table. It belongs to the JIT.
    fn main(&self) -> *mut Dylib {
        // SAFETY: the JIT is valid.
        unsafe { (self.llvm.functions().LLVMOrcLLJITGetMainJITDylib)(self.raw.as_ptr()) }
    }

    /// An error with this text, and with what was reported besides.
    fn error(&self, what: &str, text: String) -> Error {
        let reports = std::mem::take(&mut *self.reports.lock());
        let error = Error::toolchain(format!("{what}: {}", text.trim_end()));
        reports.iter().fold(error, |error, report| error.note(report.trim_end()))
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and disposed of once. An error here cannot be returned.
        let _ = unsafe {
            let error = (self.llvm.functions().LLVMOrcDisposeLLJIT)(self.raw.as_ptr());
            self.llvm.check(error)
        };
    }
}

impl Reports {
    /// The reporter; `this` is a `Reports`.
    unsafe extern "C" fn report(this: *mut c_void, error: *mut ErrorObject) {
        // SAFETY: `Jit::new` registers a `Reports` that outlives the session; it is `Sync`, so the
        // thread does not matter. The error is handed over.
        unsafe {
            let this = &*this.cast_const().cast::<Reports>();
            if let Err(text) = this.llvm.check(error) {
                this.lock().push(text);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::{Emit, OptLevel};

    fn jit() -> Jit {
        Jit::new(Llvm::get().expect("an LLVM")).expect("a JIT for this machine")
    }

    fn object(ir: &str) -> Vec<u8> {
        let llvm = Llvm::get().expect("an LLVM");
        llvm.compile(ir, &llvm.host(), OptLevel::Full, Emit::Object).expect("the IR is right")
    }

    fn add(jit: &Jit, ir: &str) {
        jit.add_object(&object(ir)).expect("an object with new symbols");
    }

    /// The function `name` of one argument.
    fn function<T>(jit: &Jit, name: &str) -> unsafe extern "C" fn(T) -> T {
        let address = jit.lookup(name).expect("the symbol is there");
        // SAFETY: the tests ask for the type with which they define the function.
        unsafe { std::mem::transmute(address.as_ptr()) }
    }

    #[test]
    fn a_function_is_compiled_and_called() {
        let jit = jit();
        add(
            &jit,
            "define i32 @twice(i32 %x) {
               %y = shl i32 %x, 1
               ret i32 %y
             }",
        );
        add(
            &jit,
            "declare i32 @twice(i32)
             define i32 @four_times(i32 %x) {
               %y = call i32 @twice(i32 %x)
               %z = call i32 @twice(i32 %y)
               ret i32 %z
             }",
        );
        // SAFETY: an `i32` to an `i32`.
        assert_eq!(unsafe { function::<i32>(&jit, "four_times")(21) }, 84);
    }

    #[test]
    fn the_mathematics_of_c_are_there() {
        let jit = jit();
        add(
            &jit,
            "declare double @lgamma(double)
             declare double @erf(double)
             define double @f(double %x) {
               %a = call double @lgamma(double %x)
               %b = call double @erf(double %x)
               %s = fadd double %a, %b
               ret double %s
             }",
        );
        // SAFETY: a `double` to a `double`.
        let result = unsafe { function::<f64>(&jit, "f")(3.0) };
        let expected = 2f64.ln() + 0.999_977_909_503_001_4;
        assert!((result - expected).abs() < 1e-12, "{result} is not {expected}");
    }

    #[test]
    fn constants_are_linked() {
        let jit = jit();
        add(
            &jit,
            "@table = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
             define i64 @f(i64 %i) {
               %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
               %v = load i64, ptr %p
               ret i64 %v
             }",
        );
        // SAFETY: an `i64` to an `i64`, within the table.
        assert_eq!(unsafe { function::<i64>(&jit, "f")(2) }, 30);
    }

    #[test]
    fn a_missing_symbol_is_an_error_that_names_it() {
        let jit = jit();
        let error = jit.lookup("tw_nowhere").expect_err("there is no such symbol").render();
        assert!(error.starts_with("error: cannot link `tw_nowhere`: "), "{error}");
        add(
            &jit,
            "declare void @tw_missing()
             define void @tw_needs() {
               call void @tw_missing()
               ret void
             }",
        );
        let error = jit.lookup("tw_needs").expect_err("it needs a symbol").render();
        assert!(error.starts_with("error: cannot link `tw_needs`: "), "{error}");
        assert!(error.contains("tw_missing"), "{error}");
        let error = jit.lookup("a\0b").expect_err("a name with a NUL");
        assert!(matches!(error, Error::Input(_)));
    }

    #[test]
    fn a_symbol_twice_and_a_file_that_is_no_object_are_errors() {
        let jit = jit();
        let object = object("define void @tw_one() { ret void }");
        jit.add_object(&object).expect("an object");
        let error = jit.add_object(&object).expect_err("the symbol is there");
        assert!(error.to_string().contains("tw_one"), "{error}");
        for bytes in [b"".as_slice(), b"not an object", &object[..70]] {
            let error = jit.add_object(bytes).expect_err("not an object");
            assert!(error.to_string().starts_with("cannot add an object file: "), "{error}");
        }
        jit.lookup("tw_one").expect("errors leave what was there");
    }

    #[test]
    fn several_threads_add_and_look_up_at_once() {
        let jit = &jit();
        let work = |value: i32| {
            let name = format!("g{value}");
            let body = format!("%y = add i32 %x, {value}\n ret i32 %y");
            add(jit, &format!("define i32 @{name}(i32 %x) {{ {body} }}"));
            // SAFETY: an `i32` to an `i32`.
            assert_eq!(unsafe { function::<i32>(jit, &name)(100) }, 100 + value);
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || (0..4).for_each(|round| work(thread * 10 + round)));
            }
        });
    }
}
