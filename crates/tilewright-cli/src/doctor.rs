//! `tilewright doctor`: what was found on this machine, and what is missing.

use std::io::Write;
use std::process::{Command, Stdio};

use tilewright_codegen::cache::ObjectCache;
use tilewright_codegen::llvm::{Llvm, Status};
use tilewright_codegen::{cuda, opencl};
use tilewright_driver::Error;
use tilewright_driver::measuring::file as tuning_file;
use tilewright_runtime::pool::cores;
use tilewright_target::Caches;
use tilewright_tune::Store;

use super::answer::{Answer, Outcome};

/// Show what was found on this machine: LLVM, the C compiler, the CPU, the devices of OpenCL and CUDA.
///
/// Exit code 1 if something is missing without which models cannot run.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn execute(_: &Arguments, out: &mut impl Write) -> Outcome {
    writeln!(out, "tilewright {}", env!("CARGO_PKG_VERSION"))?;
    let answer = llvm(out)?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    tool(out, "rustc", Command::new(rustc), "only needed for its LLVM")?;
    tool(out, "cc", Command::new("cc"), "needed for `compile --emit so`")?;
    devices(out)?;
    gpus(out)?;
    writeln!(out, "cores: {}", cores())?;
    cache(out)?;
    tuning(out)?;
    Ok(answer)
}

/// LLVM, and the machine that it finds.
fn llvm(out: &mut impl Write) -> std::io::Result<Answer> {
    let answer = match Llvm::get() {
        Ok(llvm) => {
            writeln!(out, "LLVM: {}, {}", llvm.version(), llvm.path().display())?;
            writeln!(out, "  targets: {}", llvm.families().join(", "))?;
            let host = llvm.host();
            let vectors =
                ["avx2", "fma", "avx512f", "avx512bf16", "avx512vnni", "amx-tile", "neon", "sve"];
            let features = host.known_features();
            let found: Vec<&str> =
                vectors.iter().filter(|name| features.has(name)).copied().collect();
            writeln!(out, "CPU: {} ({})", host.cpu, host.triple)?;
            writeln!(
                out,
                "  vectors: {}",
                if found.is_empty() { "none".to_owned() } else { found.join(", ") }
            )?;
            let Caches { l1, l2, l3, .. } = host.caches;
            writeln!(out, "  caches: {} KiB, {} KiB, {} KiB", l1 >> 10, l2 >> 10, l3 >> 10)?;
            let tensor: Vec<&str> = host.tensor_instructions().map(|i| i.name).collect();
            if !tensor.is_empty() {
                writeln!(out, "  tensor instructions: {}", tensor.join(", "))?;
            }
            Answer::Yes
        }
        Err(error) => {
            writeln!(out, "LLVM: MISSING: {error}")?;
            advice(&error, out)?;
            Answer::No
        }
    };
    for place in Llvm::survey() {
        for (file, status) in &place.files {
            let status = match status {
                Status::Used => continue,
                Status::Refused(why) => format!("cannot be used: {why}"),
                Status::SameAs(other) => format!("the same as {}", other.display()),
                Status::NotNeeded => "not needed".to_owned(),
            };
            writeln!(out, "  also {} ({}): {status}", file.display(), place.origin)?;
        }
    }
    Ok(answer)
}

/// A program, by the first line of what it says to `--version`.
fn tool(out: &mut impl Write, name: &str, mut command: Command, use_: &str) -> std::io::Result<()> {
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success());
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match output.as_deref().and_then(|text| text.lines().next()) {
        Some(line) => writeln!(out, "{name}: {line}"),
        None => writeln!(out, "{name}: missing ({use_})"),
    }
}

/// The devices that OpenCL lists, under the numbers that `--target opencl:N` takes.
fn devices(out: &mut impl Write) -> std::io::Result<()> {
    let (file, devices) = match opencl::library().and_then(|file| Ok((file, opencl::devices()?))) {
        Ok(found) => found,
        Err(error) => {
            return writeln!(out, "OpenCL: missing ({error}; only needed for `--target opencl`)");
        }
    };
    writeln!(out, "OpenCL: {}", file.display())?;
    if devices.is_empty() {
        return writeln!(out, "  no devices: no driver is installed");
    }
    for (k, d) in devices.iter().enumerate() {
        let doubles = if d.arithmetic.doubles { "float64" } else { "no float64" };
        let images = if d.images.is_some() { "textures" } else { "no textures" };
        writeln!(out, "  opencl:{k}: {} {}, by {}, {}", d.kind, d.name, d.driver, d.version)?;
        writeln!(
            out,
            "    {} units, {} MiB, {} KiB shared by a group of at most {} threads, {doubles}, {images}",
            d.units,
            d.memory >> 20,
            d.shared >> 10,
            d.threads
        )?;
    }
    Ok(())
}

/// The GPUs of NVIDIA, under the numbers that `--target cuda:N` takes, and the compiler for them.
fn gpus(out: &mut impl Write) -> std::io::Result<()> {
    let (file, gpus) = match cuda::library().and_then(|file| Ok((file, cuda::gpus()?))) {
        Ok(found) => found,
        Err(error) => {
            return writeln!(out, "CUDA: missing ({error}; only needed for `--target cuda`)");
        }
    };
    writeln!(out, "CUDA: {}", file.display())?;
    if gpus.is_empty() {
        writeln!(out, "  no GPUs: the driver finds none")?;
    }
    for d in gpus {
        writeln!(
            out,
            "  cuda:{}: {}, {}, driver of CUDA {}",
            d.number, d.name, d.architecture, d.driver
        )?;
        writeln!(
            out,
            "    {} multiprocessors, {} MiB, {} KiB shared by a group of at most {} threads",
            d.units,
            d.memory >> 20,
            d.shared >> 10,
            d.threads
        )?;
    }
    match cuda::compiler() {
        Ok((file, version)) => writeln!(out, "  NVRTC {version}: {}", file.display()),
        Err(error) => {
            writeln!(out, "  NVRTC: missing ({error})")?;
            advice(&error, out)
        }
    }
}

/// The notes and the help of an error, indented.
fn advice(error: &Error, out: &mut impl Write) -> std::io::Result<()> {
    let d = error.diagnostic();
    d.notes.iter().chain(&d.help).try_for_each(|line| writeln!(out, "  {line}"))
}

/// The file of measurements.
fn tuning(out: &mut impl Write) -> std::io::Result<()> {
    let Some(file) = tuning_file() else { return writeln!(out, "measured times: off") };
    let shown = file.to_string_lossy().escape_debug().to_string();
    match Store::open_existing(&file).and_then(|s| s.map(|s| s.all()).transpose()) {
        Ok(Some(all)) => writeln!(out, "measured times: {shown}: {}", all.len()),
        Ok(None) => writeln!(out, "measured times: none yet (`tune` makes {shown})"),
        Err(error) => {
            writeln!(out, "measured times: NOT USED: {error}")?;
            advice(&error, out)
        }
    }
}

fn cache(out: &mut impl Write) -> std::io::Result<()> {
    let cache = ObjectCache::from_env();
    match cache.directory() {
        Some(directory) if cache.refused().is_some() => {
            let why = cache.refused().unwrap_or_default();
            let directory = directory.to_string_lossy();
            writeln!(out, "cache: {}: NOT USED: {why}", directory.escape_debug())?;
            writeln!(
                out,
                "  give it to this user alone (chmod 700), or name another one in TILEWRIGHT_CACHE"
            )
        }
        Some(directory) => {
            let (entries, bytes) = cache.usage();
            let mib = bytes as f64 / f64::from(1 << 20);
            writeln!(out, "cache: {}: {entries} objects, {mib:.1} MiB", directory.display())
        }
        None => writeln!(out, "cache: off"),
    }
}
