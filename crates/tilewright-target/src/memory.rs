//! Memory scopes: where buffers may live, and with how many physical axes.
//!
//! The axes of a buffer form groups, separated by its axis separators; each group is one *physical
//! axis*, and their number is the *physical rank*. Plain memory takes rank 1. Memory that is
//! addressed by two coordinates, such as a texture, takes rank 2 and nothing else. A function that
//! asks for memory that a target lacks is refused, as "Buffer Physical Layout" (RFC 0039 of Apache
//! TVM) asks of every backend.

use std::collections::HashSet;
use std::sync::Arc;

use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{Buffer, Error, Expr, Result, Span, Stmt, TensorFunc, Visit};

/// A kind of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryScope {
    /// As buffers name it: `global`, `local`, `global.texture`.
    pub name: Arc<str>,
    /// The physical ranks that it takes.
    pub ranks: Vec<usize>,
    /// How many neighbours along the last physical axis are one element: the channels of a texel.
    pub channels: i64,
    /// The largest extents, in elements; empty for any.
    pub most: Vec<i64>,
}

impl MemoryScope {
    /// A scope with the physical ranks that it takes.
    pub fn new(name: impl Into<Arc<str>>, ranks: impl Into<Vec<usize>>) -> MemoryScope {
        MemoryScope { name: name.into(), ranks: ranks.into(), channels: 1, most: Vec::new() }
    }

    /// The scopes of textures: two physical axes, elements of four channels, at most so many of them
    /// along the first and the last axis. Reads out of range give zero ([`Buffer::border`]).
    pub fn textures(rows: i64, columns: i64) -> [MemoryScope; 3] {
        ["global.texture", "global.texture-nhwc", "global.texture-weight"].map(|name| MemoryScope {
            channels: 4,
            most: vec![rows, columns],
            ..MemoryScope::new(name, [2])
        })
    }

    /// Refuses extents that it does not hold.
    fn holds(&self, buffer: &Buffer) -> Result<()> {
        if self.channels == 1 && self.most.is_empty() {
            return Ok(());
        }
        let Some(mut extents) = buffer.physical_shape() else {
            return self.refuse_buffer("its extents are not constant".to_owned(), buffer);
        };
        if let Some(last) = extents.last_mut() {
            if *last % self.channels != 0 {
                return self.refuse_buffer(format!(
                    "its last physical axis has {last} elements, which are no whole texels of {} channels",
                    self.channels
                ), buffer);
            }
            *last /= self.channels;
        }
        match extents.iter().zip(&self.most).find(|(n, most)| n > most) {
            Some((n, most)) => self.refuse_buffer(
                format!("{n} elements along one axis, at most {most} are possible"),
                buffer,
            ),
            None => Ok(()),
        }
    }

    fn refuse_buffer(&self, text: String, buffer: &Buffer) -> Result<()> {
        Err(Error::unsupported(format!("buffer `{}` in `{}`: {text}", buffer.name, self.name)))
    }

    /// The scopes of a CPU: flat memory.
    pub(crate) fn flat() -> Vec<MemoryScope> {
        vec![MemoryScope::new("global", [1]), MemoryScope::new("local", [1])]
    }
}

/// Number of physical axes.
fn physical_rank(buffer: &Buffer) -> usize {
    buffer.axis_separators.len() + 1
}

/// Whether all buffers of a function are in these scopes, with ranks that those take.
pub(crate) fn check(scopes: &[MemoryScope], func: &TensorFunc) -> Result<()> {
    let mut walk =
        Walk { scopes, at: func.span, seen: HashSet::new(), defined: Vec::new(), error: None };
    walk.stmt(&func.body);
    walk.at = func.span;
    // What nothing uses.
    let defined = std::mem::take(&mut walk.defined);
    defined.iter().chain(func.buffers()).for_each(|b| walk.buffer(b));
    walk.error.map_or(Ok(()), Err)
}

struct Walk<'s> {
    scopes: &'s [MemoryScope],
    /// The statement around.
    at: Option<Span>,
    seen: HashSet<Buffer>,
    /// Where a buffer is defined, no statement of the text may stand.
    defined: Vec<Buffer>,
    error: Option<Error>,
}

impl Walk<'_> {
    fn buffer(&mut self, buffer: &Buffer) {
        if self.error.is_none()
            && self.seen.insert(buffer.clone())
            && let Err(e) = fits(self.scopes, buffer)
        {
            self.error = Some(e.at(self.at));
        }
    }
}

impl Visit for Walk<'_> {
    fn stmt(&mut self, s: &Stmt) {
        let outside = self.at;
        self.at = s.span().or(outside);
        walk_stmt(self, s);
        self.at = outside;
    }

    fn expr(&mut self, e: &Expr) {
        // A shared node once.
        e.for_each_load(|b, _| self.buffer(b));
    }

    fn buffer_def(&mut self, b: &Buffer) {
        self.defined.push(b.clone());
    }

    fn buffer_use(&mut self, b: &Buffer) {
        self.buffer(b);
    }
}

/// Whether a buffer is in one of the scopes, with a rank that it takes.
fn fits(scopes: &[MemoryScope], buffer: &Buffer) -> Result<()> {
    // Memory that is not said to live anywhere is global.
    let name = if buffer.scope.is_empty() { "global" } else { &*buffer.scope };
    let Some(scope) = scopes.iter().find(|s| &*s.name == name) else {
        let names: Vec<String> = scopes.iter().map(|s| format!("`{}`", s.name)).collect();
        return Err(Error::unsupported(format!(
            "buffer `{}` lives in `{name}`, which this target does not have",
            buffer.name
        ))
        .help(format!("use one of its scopes: {}", names.join(", "))));
    };
    let rank = physical_rank(buffer);
    if scope.ranks.contains(&rank) {
        return scope.holds(buffer);
    }
    let ranks: Vec<String> = scope.ranks.iter().map(usize::to_string).collect();
    let error = Error::unsupported(format!(
        "buffer `{}` has {}, and `{name}` memory of this target takes {}",
        buffer.name,
        axes_text(rank),
        ranks.join(" or ")
    ));
    let others: Vec<String> = scopes
        .iter()
        .filter(|s| s.ranks.contains(&rank))
        .map(|s| format!("`{}`", s.name))
        .collect();
    Err(error.help(if others.is_empty() {
        "remove the axis separators, or compile for a target with such memory".to_owned()
    } else {
        format!("such a buffer can live in {}", others.join(", "))
    }))
}

fn axes_text(n: usize) -> String {
    if n == 1 { "1 physical axis".into() } else { format!("{n} physical axes") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use tilewright_ir::{DType, Param};

    fn buffer(scope: &str, separators: &[usize]) -> Buffer {
        let b = Buffer::with_extents("A", &[4, 4], DType::F32);
        b.derive(|d| {
            d.scope = scope.into();
            d.axis_separators = separators.into();
        })
    }

    fn outcome(target: &Target, b: &Buffer) -> String {
        let used = Stmt::store(b, vec![Expr::i32(0), Expr::i32(0)], Expr::float(1.0, DType::F32));
        let parameter = TensorFunc::new(vec![Param::tensor(b)], Stmt::nop());
        let local = TensorFunc::new(Vec::new(), Stmt::allocate(b, Stmt::nop()));
        let written = TensorFunc::new(vec![Param::tensor(b)], used);
        let text = |f: &TensorFunc| match target.check_memory(f) {
            Ok(()) => "fine".to_owned(),
            Err(e) => e.render(),
        };
        let text = [parameter, local, written].map(|f| text(&f));
        assert!(text[0] == text[1] && text[1] == text[2], "{text:?}");
        text[0].clone()
    }

    #[test]
    fn ranks_that_a_scope_does_not_take_are_refused() {
        let cpu = Target::new("x86_64-unknown-linux-gnu", "", "");
        assert_eq!(outcome(&cpu, &buffer("global", &[])), "fine");
        assert_eq!(outcome(&cpu, &buffer("", &[])), "fine");
        assert_eq!(outcome(&cpu, &buffer("local", &[])), "fine");
        assert_eq!(
            outcome(&cpu, &buffer("global", &[1])),
            "error: buffer `A` has 2 physical axes, and `global` memory of this target takes 1\n\
             help: remove the axis separators, or compile for a target with such memory\n"
        );
        assert_eq!(
            outcome(&cpu, &buffer("global.texture", &[1])),
            "error: buffer `A` lives in `global.texture`, which this target does not have\n\
             help: use one of its scopes: `global`, `local`\n"
        );
        let gpu = cpu.with_scope(MemoryScope::new("global.texture", [2]));
        assert_eq!(outcome(&gpu, &buffer("global.texture", &[1])), "fine");
        assert_eq!(
            outcome(&gpu, &buffer("global.texture", &[])),
            "error: buffer `A` has 1 physical axis, and `global.texture` memory of this target \
             takes 2\nhelp: such a buffer can live in `global`, `local`\n"
        );
        assert_eq!(
            outcome(&gpu, &buffer("global", &[1])),
            "error: buffer `A` has 2 physical axes, and `global` memory of this target takes 1\n\
             help: such a buffer can live in `global.texture`\n"
        );
    }
}
