//! Layouts of shared memory in which no two lanes of a warp meet in a bank.
//!
//! A tile of 32 columns that is written by rows and read by columns has a bank for each column: all lanes that
//! read one wait for one another. Two families of layouts prevent that:
//!
//! ```text
//! i, j -> i, j ^ (i % 32)       columns exchanged by the row: no memory more
//! i, j -> i * 33 + j            a row that is longer by one
//! ```
//!
//! The degree of each is counted from the accesses of the function ([`warp::degrees`]), not looked up: what
//! has degree 1 for all of them is taken, else the least degree, and of equal ones what takes the least
//! memory, first the layout that is there. The layout is made by `transform_layout`.

use std::sync::Arc;

use tilewright_ir::{
    Block, Buffer, Error, Expr, Intrin, Module, Remarks, Result, Stmt, StmtKind, TensorFunc,
};
use tilewright_schedule::buffer_arg::BufferArg;
use tilewright_schedule::value::{BlockRef, Lambda, Value};
use tilewright_schedule::{Schedule, Trace};
use tilewright_transform::pass::{Pass, Run};
use tilewright_transform::warp::{self, BANKS, LANES, WORD, WarpMemory};

use crate::parts::alone;
use crate::{Tiled, each};

/// `lay_out_shared` by name.
pub const PASS: Pass = Pass {
    name: "lay_out_shared",
    summary: "give buffers in shared memory layouts in which the lanes of a warp meet in no bank, by schedule primitives",
    options: &[&BANKS, &LANES, &WORD],
    run: Run::Traced(|module, given, why| {
        let number = |option| Ok::<_, Error>(i64::from(given.get(option)?).max(1));
        let (lanes, banks, word) = (number(&LANES)?, number(&BANKS)?, number(&WORD)?);
        let machine = WarpMemory { lanes, banks, word, segment: 1 };
        let (module, trace) = lay_out_shared(module, machine, why)?;
        Ok((module, trace.to_string()))
    }),
};

/// Gives each buffer in shared memory, of every function, the layout with the fewest bank conflicts. Second,
/// the trace.
pub fn lay_out_shared(
    module: &Module,
    machine: WarpMemory,
    why: &mut Remarks,
) -> Result<(Module, Trace)> {
    each(module, why, |name, func| {
        let mut remarks = Remarks::new();
        let schedule = laid_out(name, func, machine, &mut remarks);
        let schedule = schedule.unwrap_or_else(|e| {
            remarks.push(e);
            None
        });
        Tiled { schedule, remarks, untiled: Vec::new() }
    })
}

/// A layout, and what it is called.
struct Candidate {
    map: Lambda,
    text: String,
    /// Elements that it takes more.
    more: i64,
}

fn laid_out(
    name: &Arc<str>,
    func: &TensorFunc,
    machine: WarpMemory,
    why: &mut Remarks,
) -> Result<Option<Schedule>> {
    if shared_buffers(func).is_empty() {
        return Ok(None);
    }
    let mut sch = alone(name, func);
    lay_out(&mut sch, name, machine, why)?;
    Ok(Some(sch))
}

/// Gives each buffer in shared memory of a function of a schedule the layout with the fewest bank conflicts.
pub(crate) fn lay_out(
    sch: &mut Schedule,
    name: &Arc<str>,
    machine: WarpMemory,
    why: &mut Remarks,
) -> Result<()> {
    let func = sch.func(name)?.clone();
    let shared = shared_buffers(&func);
    if shared.is_empty() {
        return Ok(());
    }
    let before = warp::degrees(&func, machine)?;
    for (buffer, block) in shared {
        let name_of = &buffer.name;
        let block = match block {
            Ok(block) => block,
            Err(reason) => {
                why.push(Error::refused(format!("the layout of `{name_of}` stays: {reason}")));
                continue;
            }
        };
        let Some(Some(degree)) = before.get(name_of).copied() else {
            let text = format!("the layout of `{name_of}` stays: an access is not counted");
            why.push(Error::refused(text));
            continue;
        };
        let mut best: Option<(i64, Candidate, Schedule)> = None;
        let mut least = degree;
        for candidate in candidates(&buffer, machine) {
            if least == 1 {
                break;
            }
            let mut trial = sch.clone();
            let block: BlockRef = trial.get_block(&block, name)?;
            let arg = BufferArg::Name(name_of.clone());
            if trial.transform_layout(&block, arg, &candidate.map, &Value::None, false).is_err() {
                continue;
            }
            let degrees = warp::degrees(trial.func(name)?, machine)?;
            if let Some(Some(degree)) = degrees.get(name_of).copied().filter(|d| *d < Some(least)) {
                least = degree;
                best = Some((degree, candidate, trial));
            }
        }
        let text = match best {
            Some((least, Candidate { text, more, .. }, trial)) => {
                *sch = trial;
                let more =
                    if more > 0 { format!(", with {more} elements more") } else { String::new() };
                format!(
                    "`{name_of}` as {text}{more}: bank conflicts of degree {least}, {degree} before"
                )
            }
            None => {
                format!("the layout of `{name_of}` stays: its bank conflicts have degree {degree}")
            }
        };
        why.push(Error::refused(text));
    }
    Ok(())
}

/// The buffers in shared memory, each with a block that writes it, or why its layout stays.
fn shared_buffers(func: &TensorFunc) -> Vec<(Buffer, Result<Arc<str>, &'static str>)> {
    let (mut buffers, mut blocks): (Vec<Buffer>, Vec<Arc<Block>>) = (Vec::new(), Vec::new());
    func.body.for_each(|s| match s.kind() {
        StmtKind::Block { block, .. } => {
            buffers.extend(block.allocs.iter().cloned());
            blocks.push(block.clone());
        }
        StmtKind::Allocate { buffer, .. } => buffers.push(buffer.clone()),
        _ => {}
    });
    let is_twice = |b: &Buffer| buffers.iter().filter(|other| other.name == b.name).count() > 1;
    let shared = buffers.iter().filter(|b| &*b.scope == "shared");
    let found = shared.map(|b| {
        let block = blocks.iter().find(|block| writes(&block.body, b));
        let block = match block {
            _ if is_twice(b) => Err("several buffers have its name"),
            _ if b.const_shape().is_none() => Err("its extents are not constant"),
            None => Err("no block writes it"),
            Some(block) => Ok(block.name.clone()),
        };
        (b.clone(), block)
    });
    found.collect()
}

/// Whether a statement itself writes a buffer, and no block inside of it does.
fn writes(s: &Stmt, buffer: &Buffer) -> bool {
    let (mut found, mut inner) = (false, false);
    s.for_each(|s| match s.kind() {
        StmtKind::Store { buffer: to, .. } => found |= to.data == buffer.data,
        StmtKind::Block { .. } => inner = true,
        _ => {}
    });
    found && !inner
}

/// Layouts to choose from, those that take the least memory first.
fn candidates(buffer: &Buffer, machine: WarpMemory) -> Vec<Candidate> {
    let Some(shape) = buffer.const_shape().filter(|shape| shape.len() >= 2) else {
        return Vec::new();
    };
    let (rank, rows, columns) =
        (shape.len(), shape[..shape.len() - 1].iter().product::<i64>(), shape[shape.len() - 1]);
    let word = (machine.word / buffer.dtype().bytes() as i64).max(1);
    let mut all = Vec::new();
    // Rows that share one row of banks are exchanged alike.
    let together = (machine.banks * word / columns).max(1);
    let digits = columns / word;
    if digits > 1 && columns % word == 0 && digits & (digits - 1) == 0 {
        let powers = || (0..62).map(|k| 1i64 << k);
        for step in [1, together] {
            for turned in powers().skip(1).take_while(|turned| *turned <= digits) {
                for apart in powers().take_while(|apart| turned * apart <= digits) {
                    all.push(exchanged(rank, step, turned, apart * word));
                }
            }
        }
    }
    // The largest exchange first: it separates the most rows.
    all.reverse();
    for more in 1..=machine.banks.min(columns) {
        all.push(Candidate {
            map: Lambda::over_indices(rank, move |at| {
                let mut to: Vec<Expr> = at[..rank - 2].to_vec();
                to.push(at[rank - 2].clone() * (columns + more) + at[rank - 1].clone());
                to
            }),
            text: format!("rows of {} elements", columns + more),
            more: rows * more,
        });
    }
    all
}

/// Columns exchanged by the row: `j ^ (i // step % turned * apart)`.
fn exchanged(rank: usize, step: i64, turned: i64, apart: i64) -> Candidate {
    let by = move |i: Expr| {
        let row = if step == 1 { i } else { i.floordiv(step) };
        let row = row.floormod(turned);
        if apart == 1 { row } else { row * apart }
    };
    let text = format!("{}", Expr::intrin(Intrin::BitXor, vec![named("j"), by(named("i"))]));
    Candidate {
        map: Lambda::over_indices(rank, move |at| {
            let mut to = at.to_vec();
            let row = by(at[rank - 2].clone());
            to[rank - 1] = Expr::intrin(Intrin::BitXor, vec![at[rank - 1].clone(), row]);
            to
        }),
        text: format!("columns `{text}`"),
        more: 0,
    }
}

fn named(name: &str) -> Expr {
    tilewright_ir::Var::index(name).expr()
}
