//! Which buffer of a block a primitive is about.

use std::sync::Arc;

use tilewright_analysis::regions::declared_or_inferred;
use tilewright_ir::visit::walk_func;
use tilewright_ir::{
    Block, Buffer, Error, Function, GraphExpr, Module, Param, Region, Result, TensorFunc, Visit,
};

use crate::argument::{Readable, by_value};
use crate::cursor::{as_block, blocks, find};
use crate::schedule::{Permissions, Schedule};
use crate::value::Value;

/// What a block does to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Read,
    /// It writes it.
    Write,
}

impl Side {
    fn verb(self) -> &'static str {
        match self {
            Side::Read => "reads",
            Side::Write => "writes",
        }
    }
}

/// A buffer as an argument: `("read", 0)`, `("write", 1)`, its name, or only a position where the
/// primitive is about what a block reads, or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferArg {
    /// By position on the side that the primitive is about.
    At(usize),
    /// By position among the regions that the block reads.
    Read(usize),
    /// By position among the regions that the block writes.
    Write(usize),
    /// By name: of the block, or else of the function.
    Name(Arc<str>),
}

impl From<&str> for BufferArg {
    fn from(name: &str) -> Self {
        BufferArg::Name(name.into())
    }
}

impl From<usize> for BufferArg {
    fn from(at: usize) -> Self {
        BufferArg::At(at)
    }
}

impl From<(&str, usize)> for BufferArg {
    /// `("read", n)` or `("write", n)`; any other side is taken for a name, which is not found.
    fn from((side, at): (&str, usize)) -> Self {
        match side {
            "read" => BufferArg::Read(at),
            "write" => BufferArg::Write(at),
            _ => BufferArg::Name(side.into()),
        }
    }
}

impl Readable for BufferArg {
    fn takes() -> String {
        "a position from zero, `(\"read\", n)`, `(\"write\", n)` or a name".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        match value {
            Value::Str(name) => Ok(Some(BufferArg::Name(name.clone()))),
            Value::Int(k) => position_of(*k).map(|k| Some(BufferArg::At(k))),
            Value::List(items) => match items.as_slice() {
                [Value::Str(side), Value::Int(k)] if matches!(&**side, "read" | "write") => {
                    position_of(*k).map(|k| Some(BufferArg::from((&**side, k))))
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }
    fn record(&self) -> Value {
        match self {
            BufferArg::At(k) => Readable::record(k),
            BufferArg::Read(k) => recorded_pair("read", k),
            BufferArg::Write(k) => recorded_pair("write", k),
            BufferArg::Name(n) => Value::Str(n.clone()),
        }
    }
}
by_value!(BufferArg);

fn position_of(k: i64) -> Result<usize> {
    usize::try_from(k).map_err(|_| Error::refused(format!("a block has no buffer of number {k}")))
}

fn recorded_pair(side: &str, k: &usize) -> Value {
    Value::List(vec![side.into(), Readable::record(k)])
}

impl BufferArg {
    /// The region of the block that is meant, where the primitive is about what it reads, or what
    /// it writes.
    ///
    /// # Errors
    /// `Refused` where the block has no such buffer there, with those that it has.
    pub(crate) fn region(&self, block: &Block, side: Side) -> Result<Region> {
        let (reads, writes) = declared_or_inferred(block);
        let list = if side == Side::Read { &reads } else { &writes };
        let found = match self {
            BufferArg::At(k) => list.get(*k),
            BufferArg::Read(k) => list.get(*k).filter(|_| side == Side::Read),
            BufferArg::Write(k) => list.get(*k).filter(|_| side == Side::Write),
            BufferArg::Name(n) => list.iter().find(|r| r.buffer.name == *n),
        };
        found.cloned().ok_or_else(|| {
            let what = match self {
                BufferArg::At(k) => format!("no buffer of number {k}"),
                BufferArg::Read(k) => format!("no buffer (\"read\", {k})"),
                BufferArg::Write(k) => format!("no buffer (\"write\", {k})"),
                BufferArg::Name(n) => format!("no buffer `{n}`"),
            };
            let names: Vec<&str> = list.iter().map(|r| &*r.buffer.name).collect();
            let (block, verb) = (&block.name, side.verb());
            Error::refused(format!("the block `{block}` {verb} {what}"))
                .note(format!("it {verb}: {}", names.join(", ")))
        })
    }

    /// The buffer, of the block or else of the function.
    ///
    /// # Errors
    /// `Refused` where there is no such buffer, with those that there are.
    pub(crate) fn find(&self, func: &TensorFunc, block: &Block) -> Result<Buffer> {
        let side = match self {
            BufferArg::At(k) => {
                return Err(Error::refused(format!(
                    "{k} does not say which buffer of the block `{}` is meant",
                    block.name
                ))
                .help("say `(\"read\", n)`, `(\"write\", n)` or its name"));
            }
            BufferArg::Read(k) => (Side::Read, *k),
            BufferArg::Write(k) => (Side::Write, *k),
            BufferArg::Name(name) => {
                let (reads, writes) = declared_or_inferred(block);
                return by_name(func, &reads, &writes, name);
            }
        };
        BufferArg::At(side.1).region(block, side.0).map(|r| r.buffer)
    }
}

fn by_name(func: &TensorFunc, reads: &[Region], writes: &[Region], name: &str) -> Result<Buffer> {
    let mut near = reads.iter().chain(writes).map(|r| &r.buffer);
    if let Some(b) = near.find(|b| &*b.name == name) {
        return Ok(b.clone());
    }
    let all = buffers(func);
    let mut same = all.iter().filter(|b| &*b.name == name);
    match (same.next(), same.next()) {
        (Some(b), None) => Ok(b.clone()),
        (Some(_), Some(_)) => {
            Err(Error::refused(format!("the function has several buffers called `{name}`")))
        }
        (None, _) => {
            let names: Vec<&str> = all.iter().map(|b| &*b.name).collect();
            Err(Error::refused(format!("there is no buffer `{name}`"))
                .note(format!("the function has the buffers: {}", names.join(", "))))
        }
    }
}

impl Schedule {
    /// The blocks of a function that access a buffer of this name, in the order of the text;
    /// those that hold other blocks are left out.
    ///
    /// # Errors
    /// [`Error::Input`] where there is no such function.
    pub fn blocks_of(&self, func: &str, buffer: &str) -> Result<Vec<Arc<str>>> {
        let func = self.func(func)?;
        Ok(blocks(func)
            .iter()
            .filter_map(|block| {
                let (reads, writes) = declared_or_inferred(block);
                let named = reads.iter().chain(&writes).any(|r| &*r.buffer.name == buffer);
                let leaf = find(&block.body, |s| as_block(s).is_some()).is_empty();
                (named && leaf).then(|| block.name.clone())
            })
            .collect())
    }
}

/// Every buffer that a function defines, in the order of the text.
pub(crate) fn buffers(func: &TensorFunc) -> Vec<Buffer> {
    #[derive(Default)]
    struct All(Vec<Buffer>);
    impl Visit for All {
        fn buffer_def(&mut self, b: &Buffer) {
            self.0.push(b.clone());
        }
    }
    let mut all = All::default();
    walk_func(&mut all, func);
    all.0
}

/// Whether the buffer is a parameter.
pub(crate) fn is_param(func: &TensorFunc, buffer: &Buffer) -> bool {
    func.params.iter().filter_map(Param::buffer).any(|b| b == buffer)
}

/// Refuses to change how an argument lies in memory where the interface must stay.
pub(crate) fn check_interface(
    func: &TensorFunc,
    buffer: &Buffer,
    name: &str,
    permissions: &Permissions,
    caller: Option<&Arc<str>>,
) -> Result<()> {
    if !is_param(func, buffer) {
        return Ok(());
    }
    match caller {
        Some(caller) => {
            refuse_argument(format!("which `{caller}` calls with the present layout"), buffer, name)
        }
        None if !permissions.change_interface => {
            refuse_argument("whose interface must stay".into(), buffer, name)
        }
        None => Ok(()),
    }
}

fn refuse_argument(why: String, buffer: &Buffer, name: &str) -> Result<()> {
    Err(Error::refused(format!("`{buffer}` is an argument of `{name}`, {why}"))
        .help("transform a copy instead: `cache_read` or `cache_write` outside of any loop"))
}

/// A graph function of the module that calls a tensor function.
pub(crate) fn caller(module: &Module, callee: &str) -> Option<Arc<str>> {
    module.functions.iter().find_map(|(name, f)| match f {
        Function::Graph(g) => {
            let mut uses = false;
            g.for_each_expr(&mut |e| {
                uses |= matches!(e, GraphExpr::CallTir { func, .. } if **func == *callee);
            });
            uses.then(|| name.clone())
        }
        Function::Tensor(_) => None,
    })
}
