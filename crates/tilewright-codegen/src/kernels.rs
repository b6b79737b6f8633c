//! Kernels: compiled functions that can be called, and the objects that they are linked from.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Lowered, Result, Source, TensorFunc};
use tilewright_runtime::parallel;
use tilewright_target::abi::Workers;
use tilewright_target::{Code, CodeOptions, OptLevel, Target};

use crate::cache::ObjectCache;
use crate::emit::{self, Assertion, MAX_VALUES};
use crate::llvm::Llvm;

/// `tilewright_ctx`: what a kernel gets from who calls it, see [`crate::emit`].
#[repr(C)]
pub(crate) struct Context {
    workers: Workers,
    /// Where the first assertion that fails leaves its values.
    failure: *const Failure,
}

/// What the first assertion that failed left.
#[repr(C)]
#[derive(Default)]
struct Failure {
    /// The result of its kernel; zero as long as none did.
    code: AtomicI64,
    /// The values of its message.
    values: [AtomicI64; MAX_VALUES],
}

/// A compiled kernel.
pub(crate) type Kernel = unsafe extern "C" fn(ctx: *const Context, args: *const u64) -> i32;

/// The kernels of a module, and the code that they are.
pub(crate) struct Kernels {
    list: Vec<Linked>,
    numbers: HashMap<Arc<str>, usize>,
    /// The text that the places of assertions are in.
    source: Option<Arc<Source>>,
    /// Owns what the kernels point to.
    _owner: Box<dyn std::any::Any + Send + Sync>,
}

/// A kernel under the name of its function.
struct Linked {
    name: Arc<str>,
    kernel: Kernel,
    /// What its assertions say, in the order of the codes that it returns.
    assertions: Vec<Assertion>,
}

// SAFETY: lowered functions access nothing outside of their buffers, and the code does what they do.
unsafe impl Code for Kernels {
    fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    unsafe fn call(&self, function: usize, args: &[u64], workers: &Workers) -> Result<()> {
        let Some(linked) = self.list.get(function) else {
            return Err(Error::internal(format!("there is no kernel {function}")));
        };
        let failure = Failure::default();
        let context = Context { workers: *workers, failure: &failure };
        // SAFETY: by contract the kernel gets the arguments that it takes. The context lives until
        // it returns, and begins with the workers.
        let code = unsafe { (linked.kernel)(&context, args.as_ptr()) };
        match code {
            0 => Ok(()),
            code => Err(self.failed(linked, code, &failure)),
        }
    }
}

impl Kernels {
    /// The kernels of functions of a module, in memory that `owner` keeps.
    pub fn new(
        module: &Lowered,
        functions: &[Arc<str>],
        kernels: Vec<Kernel>,
        owner: Box<dyn std::any::Any + Send + Sync>,
    ) -> Result<Kernels> {
        let list = functions
            .iter()
            .zip(kernels)
            .map(|(name, kernel)| {
                let assertions = emit::assertions(module.tensor(name)?);
                Ok(Linked { name: name.clone(), kernel, assertions })
            })
            .collect::<Result<Vec<Linked>>>()?;
        let numbers = functions.iter().enumerate().map(|(k, name)| (name.clone(), k)).collect();
        Ok(Kernels { list, numbers, source: module.source.clone(), _owner: owner })
    }

    /// The assertion that a kernel failed with.
    fn failed(&self, kernel: &Linked, code: i32, failure: &Failure) -> Error {
        // Of several threads that failed, the one that left its values is reported.
        let first = failure.code.load(Ordering::Relaxed);
        let values: [i64; MAX_VALUES] =
            std::array::from_fn(|k| failure.values[k].load(Ordering::Relaxed));
        let (code, values) = match first {
            0 => (i64::from(code), None),
            first => (first, Some(&values[..])),
        };
        let number = usize::try_from(code).ok().and_then(|code| code.checked_sub(1));
        let Some(assertion) = number.and_then(|number| kernel.assertions.get(number)) else {
            return Error::internal(format!("the kernel of `{}` returned {code}", kernel.name));
        };
        let text = assertion.text(values);
        let error = Error::execution(format!("an assertion of `{}` failed: {text}", kernel.name));
        match &self.source {
            Some(source) => error.at(assertion.span).in_source(source),
            None => error,
        }
    }
}

/// Compiles functions to object files, those that share code to one, as many at a time as there are cores.
///
/// # Errors
/// Those of [`emit::module`] and [`Llvm::compile`]; the first one in the order of the functions.
pub(crate) fn objects(
    llvm: &'static Llvm,
    module: &Lowered,
    functions: &[Arc<str>],
    target: &Target,
    options: &CodeOptions<'_>,
) -> Result<Vec<Vec<u8>>> {
    let named = functions
        .iter()
        .map(|name| Ok((name.clone(), &**module.tensor(name)?)))
        .collect::<Result<Vec<(Arc<str>, &TensorFunc)>>>()?;
    let modules = emit::modules(&named, target)?;
    let cache = ObjectCache::from_options(options);
    let tell = |done| {
        if let Some(watch) = options.watch {
            watch(done, modules.len());
        }
    };
    let objects = objects_of(llvm, &cache, &modules, (target, options.level), &tell);
    cache.tell_warnings(options);
    objects
}

/// Compiles modules to object files, as many at a time as there are cores. `tell` hears how many are done.
///
/// # Errors
/// Those of [`Llvm::compile`]; the first one in the order of the modules.
pub(crate) fn objects_of(
    llvm: &'static Llvm,
    cache: &ObjectCache,
    modules: &[String],
    (target, level): (&Target, OptLevel),
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<u8>>> {
    // The longest first, so that no thread is left alone with one at the end.
    let mut order: Vec<usize> = (0..modules.len()).collect();
    order.sort_by_key(|i| Reverse(modules[*i].len()));
    let (failed, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    tell(0);
    let objects = parallel::map(order.len(), |k| {
        // Where one has failed, the others are not needed.
        if failed.load(Ordering::Relaxed) {
            return None;
        }
        let object = cache.compile(llvm, &modules[order[k]], target, level);
        failed.fetch_or(object.is_err(), Ordering::Relaxed);
        tell(done.fetch_add(1, Ordering::Relaxed) + 1);
        Some(object.map(|object| object.bytes))
    });
    let mut objects: Vec<_> = order.into_iter().zip(objects).collect();
    objects.sort_by_key(|(i, _)| *i);
    objects.into_iter().filter_map(|(_, object)| object).collect()
}
