//! Text, in isl's notation: `[n] -> { [i, j] -> [o] : 0 <= i < n and o = floor((j)/4) }`.
//!
//! Dimensions are written `i0, i1, ..` and `o0, o1, ..`, explicit divisions in place, what merely exists
//! as `exists (e0: ..)`.

use std::fmt::{self, Display, Write};

use crate::aff::{Aff, PwAff};
use crate::basic::Basic;
use crate::num::Int;
use crate::relation::{Dim, Relation, Space};

/// The names of columns.
struct Names<'a> {
    space: &'a Space,
}

impl Names<'_> {
    fn dim(&self, at: usize) -> String {
        let (p, ins) = (self.space.dim(Dim::Param), self.space.dim(Dim::In));
        if at < p {
            return self.space.param(at).map_or_else(|| format!("p{at}"), str::to_owned);
        }
        if at < p + ins {
            return format!("i{}", at - p);
        }
        let letter = if ins == 0 { 'i' } else { 'o' };
        format!("{letter}{}", at - p - ins)
    }

    fn tuple(&self, kind: Dim) -> String {
        let first = self.space.first(kind);
        let names: Vec<String> = (0..self.space.dim(kind)).map(|k| self.dim(first + k)).collect();
        format!("[{}]", names.join(", "))
    }

    fn params(&self) -> String {
        match self.space.dim(Dim::Param) {
            0 => String::new(),
            n => {
                let names: Vec<String> = (0..n).map(|k| self.dim(k)).collect();
                format!("[{}] -> ", names.join(", "))
            }
        }
    }

    fn column(&self, frame: &Basic, col: usize) -> String {
        if col <= frame.dims {
            return self.dim(col - 1);
        }
        let div = col - 1 - frame.dims;
        if !frame.is_explicit(div) {
            return format!("e{div}");
        }
        let def = frame.divs.row(div);
        format!("floor(({})/{})", self.sum(frame, &def[1..]), def[0])
    }

    fn sum(&self, frame: &Basic, row: &[Int]) -> String {
        let mut out = String::new();
        let mut term = |c: Int, name: Option<String>| {
            let sign = match (c < 0, out.is_empty()) {
                (true, true) => "-",
                (true, false) => " - ",
                (false, true) => "",
                (false, false) => " + ",
            };
            out.push_str(sign);
            let size = c.unsigned_abs();
            let _ = match name {
                None => write!(out, "{size}"),
                Some(name) if size == 1 => write!(out, "{name}"),
                Some(name) => write!(out, "{size}*{name}"),
            };
        };
        if row[0] != 0 {
            term(row[0], None);
        }
        for (k, c) in row.iter().enumerate().skip(1) {
            if *c != 0 {
                term(*c, Some(self.column(frame, k)));
            }
        }
        if out.is_empty() { "0".to_owned() } else { out }
    }

    fn conjunction(&self, p: &Basic) -> String {
        let mut parts = Vec::new();
        for row in p.eqs.rows() {
            parts.push(format!("{} = 0", self.sum(p, row)));
        }
        for row in p.ineqs.rows() {
            parts.push(format!("{} >= 0", self.sum(p, row)));
        }
        // The inequalities of divisions that depend on what exists are in their place too.
        let exists: Vec<String> =
            (0..p.divs.len()).filter(|d| !p.is_explicit(*d)).map(|d| format!("e{d}")).collect();
        let all = parts.join(" and ");
        match (exists.is_empty(), all.is_empty()) {
            (true, _) => all,
            (false, true) => String::new(),
            (false, false) => format!("exists ({}: {all})", exists.join(", ")),
        }
    }
}

impl Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names { space: &self.space };
        write!(f, "{}{{ ", names.params())?;
        let tuple = match self.space.dim(Dim::In) {
            0 => names.tuple(Dim::Out),
            _ => format!("{} -> {}", names.tuple(Dim::In), names.tuple(Dim::Out)),
        };
        if self.parts.is_empty() {
            write!(f, "{tuple} : false")?;
        }
        for (i, p) in self.parts.iter().enumerate() {
            let semicolon = if i > 0 { "; " } else { "" };
            write!(f, "{semicolon}{tuple}")?;
            let text = names.conjunction(p);
            if !text.is_empty() {
                write!(f, " : {text}")?;
            }
        }
        f.write_str(" }")
    }
}

impl PwAff {
    fn written(&self, aff: &Aff) -> String {
        let names = Names { space: self.space() };
        let (frame, row, den) = aff.parts();
        let sum = names.sum(frame, row);
        if den == 1 { format!("({sum})") } else { format!("({sum})/{den}") }
    }
}

impl Display for PwAff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names { space: self.space() };
        write!(f, "{}{{ ", names.params())?;
        let mut first = true;
        for (set, aff) in self.pieces() {
            for p in set.parts.iter() {
                let semicolon = if first { "" } else { "; " };
                first = false;
                write!(f, "{semicolon}{} -> [{}]", names.tuple(Dim::Out), self.written(aff))?;
                let text = names.conjunction(p);
                if !text.is_empty() {
                    write!(f, " : {text}")?;
                }
            }
        }
        f.write_str(" }")
    }
}
