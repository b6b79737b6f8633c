//! How the accesses of a warp meet memory: bank conflicts, and segments of memory.
//!
//! A warp is so many neighbouring threads of a group, which access memory together. Shared memory has banks
//! of words: lanes that access different words of one bank wait for one another, and the most of these is the
//! *degree* of the conflict. Global memory is moved by segments: the fewer the lanes of a warp touch, the
//! better.
//!
//! ```text
//! for t in threads: B[t] = S[t, 3]      S of 32 columns: degree 32, of 33 columns: degree 1
//! ```
//!
//! A lane that accesses several neighbours at once, as vectors and `ldmatrix` do, takes part with as many lanes as one
//! row of banks has room for: 8 lanes of 16 bytes meet, and those of the next 8 come after them. Lanes that access
//! cells apart do so one after the other.
//!
//! Both are counted from the index of an access, for every warp of a group. What of an index depends on
//! threads is evaluated lane by lane; loops around shift all lanes by the same distance, of which only the
//! remainder by a word or segment counts, and every remainder that occurs is tried. Where an expression
//! takes a thread and a loop together (`(t + k) % 8`), the values of the loop are tried. So the number is that
//! of the worst warp, and is reached. Conditions are not looked at: a lane counts whether it takes part or
//! not. Buffers are taken to begin at a segment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::index::Linear;
use tilewright_ir::phases::group_extents;
use tilewright_ir::visit::{free_vars, walk_stmt};
use tilewright_ir::{
    Buffer, CallTarget, Error, Expr, ExprKind, ForKind, Range, Remarks, Result, Span, Stmt,
    StmtKind, TensorFunc, Var, Visit,
};
use tilewright_polyhedral::evaluate;
use tilewright_target::{LOAD_MATRIX, MATRIX_ROW};

use crate::lower::lower;
use crate::pass::{Number, Pass, Run};

/// Threads of a warp.
pub const LANES: Number =
    Number { name: "lanes", summary: "threads of a warp", default: 32, most: 1024 };
/// Banks of shared memory.
pub const BANKS: Number =
    Number { name: "banks", summary: "banks of shared memory", default: 32, most: 1024 };
/// Bytes of a word of a bank.
pub const WORD: Number =
    Number { name: "word", summary: "bytes of a word of a bank", default: 4, most: 64 };
/// Bytes that global memory moves at once.
const SEGMENT: Number = Number {
    name: "segment",
    summary: "bytes that global memory moves at once",
    default: 128,
    most: 4096,
};

/// `count_warp_accesses` by name.
pub const PASS: Pass = Pass {
    name: "count_warp_accesses",
    summary: "say of the accesses of threads which bank conflicts they have, and how many segments they touch",
    options: &[&BANKS, &LANES, &SEGMENT, &WORD],
    run: Run::Tensor(|f, given, why| {
        let number = |option| Ok::<_, Error>(i64::from(given.get(option)?).max(1));
        let (lanes, banks) = (number(&LANES)?, number(&BANKS)?);
        let machine = WarpMemory { lanes, banks, word: number(&WORD)?, segment: number(&SEGMENT)? };
        why.extend(count_warp_accesses(f, machine)?);
        Ok(f.clone())
    }),
};

/// Most values of loops that are tried for one access.
const MAX_TRIED: i64 = 4096;

/// What decides how accesses meet memory; the numbers are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpMemory {
    /// Threads of a warp.
    pub lanes: i64,
    /// Banks of shared memory.
    pub banks: i64,
    /// Bytes of a word of a bank.
    pub word: i64,
    /// Bytes that global memory moves at once.
    pub segment: i64,
}

/// Says of each access of threads to shared and global memory how it meets it.
///
/// # Errors
/// Those of [`lower`].
pub fn count_warp_accesses(func: &TensorFunc, machine: WarpMemory) -> Result<Remarks> {
    Ok(walk(func, machine)?.remarks)
}

/// The largest degree of the bank conflicts of the accesses to each buffer in shared memory, by its name;
/// `None` where one of them is not counted.
///
/// # Errors
/// Those of [`lower`].
pub fn degrees(func: &TensorFunc, machine: WarpMemory) -> Result<BTreeMap<Arc<str>, Option<i64>>> {
    Ok(walk(func, machine)?.degrees)
}

fn walk(func: &TensorFunc, machine: WarpMemory) -> Result<Walk> {
    let lowered = lower(func)?;
    let mut walk = Walk {
        machine,
        group: None,
        threads: Vec::new(),
        loops: Vec::new(),
        at: func.span,
        remarks: Remarks::new(),
        seen: HashSet::default(),
        degrees: BTreeMap::new(),
    };
    walk.stmt(&lowered.body);
    Ok(walk)
}

struct Walk {
    machine: WarpMemory,
    /// Threads of the group around, along each axis.
    group: Option<[Option<i64>; 3]>,
    /// Variables of loops over threads, with their axis and first value.
    threads: Vec<(Var, usize, Range)>,
    /// Other loops.
    loops: Vec<(Var, Range)>,
    at: Option<Span>,
    remarks: Remarks,
    /// What was said.
    seen: HashSet<String>,
    /// The largest degree of the accesses to a buffer; none where one is not counted.
    degrees: BTreeMap<Arc<str>, Option<i64>>,
}

impl Visit for Walk {
    fn stmt(&mut self, s: &Stmt) {
        let outside = self.at;
        self.at = s.span().or(outside);
        match s.kind() {
            StmtKind::For { var, range, kind, body, .. } => {
                let is_kernel = matches!(kind, ForKind::ThreadBinding(_)) && self.group.is_none();
                if is_kernel {
                    self.group = Some(group_extents(s));
                }
                self.inside(var, range, kind, body);
                if is_kernel {
                    self.group = None;
                }
            }
            StmtKind::Store { buffer, indices, value } => {
                self.expr(value);
                indices.iter().for_each(|e| self.expr(e));
                self.access(buffer, indices, "write", None);
            }
            StmtKind::Evaluate(e) => match matrices(e) {
                Some((buffer, indices, rows)) => self.access(buffer, indices, "read", Some(rows)),
                None => self.expr(e),
            },
            _ => walk_stmt(self, s),
        }
        self.at = outside;
    }

    fn expr(&mut self, e: &Expr) {
        let mut loads = Vec::new();
        e.for_each_load(|b, at| loads.push((b.clone(), at.to_vec())));
        loads.iter().for_each(|(b, at)| self.access(b, at, "read", None));
    }
}

/// The rows of shared memory that `ldmatrix` reads, and how many lanes give one.
fn matrices(e: &Expr) -> Option<(&Buffer, &[Expr], i64)> {
    let ExprKind::Call(CallTarget::Extern(name), args) = e.kind() else { return None };
    let kind = name.strip_prefix(LOAD_MATRIX)?;
    let ExprKind::Load(buffer, indices) = args.get(1)?.kind() else { return None };
    Some((buffer, indices, if kind.contains("x4") { 32 } else { 16 }))
}

/// What the lanes of a warp access at the same time.
struct Lanes {
    /// For each lane that runs, its number and the index of its element.
    at: Vec<(i64, i64)>,
}

/// What a lane accesses.
#[derive(Clone, Copy)]
struct Access {
    /// Bytes of an element.
    bytes: i64,
    /// Neighbouring bytes at once.
    wide: i64,
    /// Lanes that take part.
    lanes: i64,
}

impl Walk {
    fn inside(&mut self, var: &Var, range: &Range, kind: &ForKind, body: &Stmt) {
        match kind.thread_axis() {
            Some(axis) => {
                self.threads.push((var.clone(), axis, range.clone()));
                self.stmt(body);
                self.threads.pop();
            }
            None => {
                self.loops.push((var.clone(), range.clone()));
                self.stmt(body);
                self.loops.pop();
            }
        }
    }

    /// An access of all lanes, or of so many, each to a row of a matrix.
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], how: &str, rows: Option<i64>) {
        let shared = &*buffer.scope == "shared";
        let global = matches!(&*buffer.scope, "global" | "");
        if self.threads.is_empty() || !(shared || global) {
            return;
        }
        let text = tilewright_ir::text::brief(&buffer.load(indices.iter().cloned()));
        let met = self.count(buffer, indices, shared, rows);
        if shared {
            let degree = met.as_ref().ok().map(|met| met.count);
            let most = self.degrees.entry(buffer.name.clone()).or_insert(Some(1));
            *most = most.zip(degree).map(|(most, degree)| most.max(degree));
        }
        let said = match met {
            Ok(met) => format!("the {how} of `{text}` {}", met.text),
            Err(why) => format!("the {how} of `{text}` is not counted: {why}"),
        };
        if self.seen.insert(said.clone()) {
            self.remarks.push(Error::refused(said).at(self.at));
        }
    }

    /// How an access meets memory.
    fn count(
        &self,
        buffer: &Buffer,
        indices: &[Expr],
        shared: bool,
        rows: Option<i64>,
    ) -> Result<WarpCost, String> {
        let [index] = indices else { return Err("it has several indices".into()) };
        let bytes = (buffer.dtype().bytes() as i64).max(1);
        let (index, step) = match index.kind() {
            _ if index.dtype().lanes == 1 => (index, 0),
            ExprKind::Broadcast(first) => (first, 0),
            ExprKind::Ramp(first, step) => {
                (first, step.as_int().ok_or("its lanes are an open number of cells apart")?)
            }
            _ => return Err("it is a vector of any cells".into()),
        };
        let cells = i64::from(indices[0].dtype().lanes);
        let wide = match rows {
            Some(_) => MATRIX_ROW,
            None if step == 1 => cells * bytes,
            None => bytes,
        };
        let access = Access { bytes, wide, lanes: rows.unwrap_or(self.machine.lanes) };
        let unit = if shared { self.machine.word } else { self.machine.segment };
        // Shifts by whole units change nothing.
        let period = (unit / bytes).max(1);
        let linear = Linear::from_expr(index).ok_or("its index is too large")?;
        let mut own = Linear::constant(linear.constant, index.dtype());
        // Cells apart are accessed one after the other.
        let apart = if step == 1 { 1 } else { cells };
        let mut shifts: BTreeSet<i64> =
            (0..apart).map(|k| step.wrapping_mul(k).rem_euclid(period)).collect();
        let mut tried: BTreeMap<Arc<str>, (Var, i64, i64)> = BTreeMap::new();
        for (atom, by) in &linear.terms {
            let vars = free_vars(atom);
            let with_threads = vars.iter().any(|v| self.is_thread(v));
            if !with_threads && !atom.effects().loads {
                shifts = self.shifted(&shifts, atom, *by, period);
                continue;
            }
            if atom.effects().loads {
                return Err("data decide its index".into());
            }
            for v in vars.iter().filter(|v| !self.is_thread(v)) {
                let (first, count) = self
                    .values(v)
                    .ok_or_else(|| format!("the values of `{}` are not known", v.name()))?;
                let name = format!("{} {}", v.name(), v.id());
                tried.insert(name.into(), (v.clone(), first, count));
            }
            let term = Linear::atom(atom.clone()).times(*by);
            own = term.and_then(|t| own.plus(&t, 1)).ok_or("its index is too large")?;
        }
        let own = own.to_expr().ok_or("its index is too large")?;
        let tried: Vec<(Var, i64, i64)> = tried.into_values().collect();
        let all = tried.iter().map(|t| t.2).try_fold(1i64, i64::checked_mul);
        let all = all.filter(|all| *all <= MAX_TRIED).ok_or("it takes loops of too many values")?;
        let mut worst: Option<WarpCost> = None;
        for k in 0..all {
            let mut rest = k;
            let mut values = HashMap::default();
            for (v, first, count) in &tried {
                values.insert(v.clone(), first + rest % count);
                rest /= count;
            }
            for lanes in self.warps(&own, &mut values)? {
                for shift in &shifts {
                    let met = if shared {
                        self.conflict(&lanes, *shift, access)
                    } else {
                        self.segments(&lanes, *shift, access)
                    };
                    if worst.as_ref().is_none_or(|w| met.count > w.count) {
                        worst = Some(met);
                    }
                }
            }
        }
        worst.ok_or_else(|| "no thread comes to it".to_owned())
    }

    fn is_thread(&self, v: &Var) -> bool {
        self.threads.iter().any(|(thread, ..)| thread == v)
    }

    /// The first value of a loop, and how many there are.
    fn values(&self, v: &Var) -> Option<(i64, i64)> {
        let (_, range) = self.loops.iter().rev().find(|(var, _)| var == v)?;
        Some((range.min.as_int()?, range.extent.as_int()?))
    }

    /// The remainders of the sums of what is there and a term.
    fn shifted(&self, shifts: &BTreeSet<i64>, atom: &Expr, by: i128, period: i64) -> BTreeSet<i64> {
        let by = by.rem_euclid(i128::from(period)) as i64;
        let values: BTreeSet<i64> = match atom.as_var().and_then(|v| self.values(v)) {
            Some((first, count)) => {
                (first..first + count.min(period)).map(|v| (v * by).rem_euclid(period)).collect()
            }
            None => (0..period).map(|v| v * by % period).collect(),
        };
        let sums = shifts.iter().flat_map(|s| values.iter().map(move |v| (s + v) % period));
        sums.collect()
    }

    /// What each warp of a group accesses; a thread outside of the range of a loop around takes no part.
    fn warps(&self, index: &Expr, values: &mut HashMap<Var, i64>) -> Result<Vec<Lanes>, String> {
        let [Some(x), Some(y), Some(z)] = self.group.unwrap_or([Some(1); 3]) else {
            return Err("a loop over threads is open".into());
        };
        let count = x.checked_mul(y).and_then(|xy| xy.checked_mul(z));
        let count = count.filter(|n| *n <= MAX_TRIED).ok_or("the group has too many threads")?;
        let mut warps = Vec::new();
        for first in (0..count).step_by(self.machine.lanes as usize) {
            let mut at = Vec::new();
            for number in first..count.min(first + self.machine.lanes) {
                let place = [number % x, number / x % y, number / (x * y)];
                let mut runs = true;
                for (var, axis, range) in &self.threads {
                    let extent = range.extent.as_int().ok_or("a loop over threads is open")?;
                    let min = range.min.as_int().ok_or("a loop over threads is open")?;
                    runs &= place[*axis] < extent;
                    values.insert(var.clone(), min + place[*axis]);
                }
                if !runs {
                    continue;
                }
                let value = evaluate(index, &|v| values.get(v).copied());
                let value = value.ok_or_else(|| format!("`{index}` is not computed"))?;
                at.push((number - first, value));
            }
            if !at.is_empty() {
                warps.push(Lanes { at });
            }
        }
        Ok(warps)
    }

    /// How many different words of one bank the lanes access.
    fn conflict(&self, lanes: &Lanes, shift: i64, access: Access) -> WarpCost {
        let WarpMemory { banks, word, .. } = self.machine;
        // Lanes that one row of banks has room for are together.
        let together = (banks * word / access.wide.max(word)).max(1);
        let mut of_bank: BTreeMap<(i64, i64), BTreeMap<i64, i64>> = BTreeMap::new();
        for (lane, at) in lanes.at.iter().filter(|(lane, _)| *lane < access.lanes) {
            let first = (at + shift) * access.bytes;
            for number in first.div_euclid(word)..=(first + access.wide - 1).div_euclid(word) {
                let bank = (lane / together, number.rem_euclid(banks));
                of_bank.entry(bank).or_default().entry(number).or_insert(*lane);
            }
        }
        let worst = of_bank.iter().max_by_key(|(bank, words)| (words.len(), (-bank.0, -bank.1)));
        let Some(((_, bank), words)) = worst.filter(|(_, words)| words.len() > 1) else {
            return WarpCost { count: 1, text: "has no bank conflicts: degree 1".to_owned() };
        };
        let mut two = words.iter();
        let pair = two.next().zip(two.next());
        let pair = pair.map_or(String::new(), |((w, l), (v, k))| {
            format!(": lanes {l} and {k} access the words {w} and {v} of bank {bank}")
        });
        let count = words.len() as i64;
        WarpCost { count, text: format!("has bank conflicts of degree {count}{pair}") }
    }

    /// How many segments the lanes touch.
    fn segments(&self, lanes: &Lanes, shift: i64, access: Access) -> WarpCost {
        let segment = self.machine.segment;
        let mut touched = BTreeSet::new();
        let mut cells = BTreeSet::new();
        for (_, at) in &lanes.at {
            let byte = (at + shift) * access.bytes;
            cells.insert(byte);
            touched.extend(byte.div_euclid(segment)..=(byte + access.wide - 1).div_euclid(segment));
        }
        let least = (cells.len() as i64 * access.wide + segment - 1) / segment;
        let count = touched.len() as i64;
        let least = if count > least { format!(", where {least} would do") } else { String::new() };
        let plural = if count == 1 { "" } else { "s" };
        WarpCost {
            count,
            text: format!("touches {count} segment{plural} of {segment} bytes{least}"),
        }
    }
}

/// What an access of a warp costs: the degree of its bank conflicts, or the segments that it touches.
struct WarpCost {
    count: i64,
    text: String,
}
