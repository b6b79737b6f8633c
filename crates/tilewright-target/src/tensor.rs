//! Tensor instructions: `c += a * b` on tiles, with the layouts that they take the tiles in.
//!
//! With `a` of `m` rows and `k` columns, `b` of `k` rows and `n` columns, an instruction adds to each
//! `c[i, j]` the sum of `a[i, l] * b[l, j]` in the type of `c`. Rows of `a` and `c` lie one after
//! the other. `b` lies in *groups* of rows: the elements of one column and of `g` rows, which are
//! multiplied together, are neighbours, so that `b[l, j]` is at `[l // g, j, l % g]`.
//! [`Tile::layout`] is that map: with it `transform_layout` gives an operand the form that the
//! instruction takes, and [`TensorInstruction::description`] is what `tensorize` looks for. What
//! takes its place is [`TensorInstruction::implementation`], the same sums as one statement on
//! vectors. It means the same on every machine; code generation selects the instruction for it.
//!
//! Dot products add to vectors in registers, so that their `c` is in the scope `local`. Of 8-bit
//! operands one is signed and one is not (but for Arm's); pairs of `int16` hold either. The pairs of
//! VPMADDUBSW would saturate, and are not used.
//!
//! Sources: Intel's "Architecture Instruction Set Extensions Programming Reference" for AMX
//! (TDPBF16PS and its like) and its "Software Developer's Manual" for the dot products VPDPBUSD,
//! VDPBF16PS and VPMADDWD; Arm's "Architecture Reference Manual for A-profile" for SMMLA, UMMLA,
//! USMMLA, BFMMLA, SDOT, UDOT and USDOT.

use tilewright_ir::{Buffer, DType, Expr, ForKind, Param, Range, Stmt, TensorFunc, Var};

use crate::features::Arch;

/// A matrix, as an instruction takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the elements.
    pub dtype: DType,
    pub rows: i64,
    pub columns: i64,
    /// Rows whose elements of one column are neighbours; 1 for row after row.
    pub group: i64,
}

impl Tile {
    const fn new(dtype: DType, rows: i64, columns: i64, group: i64) -> Tile {
        Tile { dtype, rows, columns, group }
    }

    /// Its extents as it lies in memory.
    pub fn shape(&self) -> Vec<i64> {
        match self.group {
            1 => vec![self.rows, self.columns],
            g => vec![self.rows / g, self.columns, g],
        }
    }

    /// Where the element of a row and a column lies: the index map of the layout.
    pub fn layout(&self, row: &Expr, column: &Expr) -> Vec<Expr> {
        match self.group {
            1 => vec![row.clone(), column.clone()],
            g => vec![row.clone().floordiv(g), column.clone(), row.clone().floormod(g)],
        }
    }
}

/// An instruction that multiplies two tiles and adds the product to a third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorInstruction {
    /// The mnemonic.
    pub name: &'static str,
    /// The family of processors that have it.
    pub arch: Arch,
    /// The features that it needs, by LLVM's names.
    pub features: &'static [&'static str],
    /// The left factor.
    pub a: Tile,
    /// The right factor.
    pub b: Tile,
    /// What the product is added to.
    pub c: Tile,
}

impl TensorInstruction {
    /// What it computes, as a function of `a`, `b` and `c` in their layouts. Sums of floats are taken in
    /// another order by the hardware, and those of `bfloat16` take numbers below the normal ones as zeros.
    pub fn description(&self) -> TensorFunc {
        let [a, b, c] = self.buffers();
        let [i, j, l] = ["i", "j", "l"].map(Var::index);
        let row = if self.is_dot() { Expr::i32(0) } else { i.expr() };
        let column = j.expr();
        let product = self.products([&a, &b], &row, &column, [l.expr()]);
        let sum = self.add(&c, &row, &column, product);
        let loops = [(&i, self.c.rows), (&j, self.c.columns), (&l, self.a.columns)];
        let body = loops.into_iter().rev().fold(sum, |body, (var, extent)| match extent {
            1 => body,
            _ => Stmt::for_loop(
                var,
                Range::upto(Expr::int(extent, DType::I32)),
                ForKind::Serial,
                body,
            ),
        });
        TensorFunc::new([a, b, c].iter().map(Param::tensor).collect(), body)
    }

    /// Whether it is a dot product in each lane of one vector, with the same `a` for all lanes.
    pub fn is_dot(&self) -> bool {
        self.c.rows == 1 && self.b.rows == self.b.group
    }

    /// The statement that asks for it, over the same parameters; `None` where there is no code for it
    /// yet.
    pub fn implementation(&self) -> Option<TensorFunc> {
        if !self.is_dot() {
            return None;
        }
        let [a, b, c] = self.buffers();
        let j = Var::index("j");
        let (row, column) = (Expr::i32(0), j.expr());
        let steps = (0..self.b.group).map(|l| Expr::int(l, DType::I32));
        let sum = if self.c.dtype.is_float() {
            // The last product is added first.
            let products = self.products([&a, &b], &row, &column, steps.rev());
            self.add(&c, &row, &column, products)
        } else {
            let products = self.products([&a, &b], &row, &column, steps);
            self.add(&c, &row, &column, products.reduce(|sum, product| sum + product))
        };
        let lanes = Range::upto(Expr::int(self.c.columns, DType::I32));
        let body = Stmt::for_loop(&j, lanes, ForKind::Vectorized, sum);
        Some(TensorFunc::new([a, b, c].iter().map(Param::tensor).collect(), body))
    }

    fn buffers(&self) -> [Buffer; 3] {
        let sums = if self.is_dot() { "local" } else { "global" };
        [
            tile_buffer("a", &self.a, "global"),
            tile_buffer("b", &self.b, "global"),
            tile_buffer("c", &self.c, sums),
        ]
    }

    /// Adds values to an element of `c`, one after the other.
    fn add(
        &self,
        c: &Buffer,
        row: &Expr,
        column: &Expr,
        values: impl IntoIterator<Item = Expr>,
    ) -> Stmt {
        let at = self.c.layout(row, column);
        let sum = values.into_iter().fold(c.load(at.clone()), |sum, value| sum + value);
        Stmt::store(c, at, sum)
    }

    /// The products of some steps, for an element of `c`.
    fn products(
        &self,
        [a, b]: [&Buffer; 2],
        row: &Expr,
        column: &Expr,
        steps: impl IntoIterator<Item = Expr>,
    ) -> impl Iterator<Item = Expr> {
        let one_group = self.b.rows == self.b.group;
        steps.into_iter().map(move |step| {
            let mut at = self.b.layout(&step, column);
            if one_group && self.b.group > 1 {
                at[0] = Expr::i32(0);
                at[2] = step.clone();
            }
            let x = a.load(self.a.layout(row, &step)).cast(self.c.dtype);
            x * b.load(at).cast(self.c.dtype)
        })
    }
}

fn tile_buffer(name: &str, t: &Tile, scope: &str) -> Buffer {
    Buffer::with_extents(name, &t.shape(), t.dtype).derive_storage(|b| b.scope = scope.into())
}

/// The instruction of this name.
pub fn instruction(name: &str) -> Option<&'static TensorInstruction> {
    INSTRUCTIONS.iter().find(|i| i.name == name)
}

const fn row(
    name: &'static str,
    arch: Arch,
    features: &'static [&'static str],
    [a, b, c]: [Tile; 3],
) -> TensorInstruction {
    TensorInstruction { name, arch, features, a, b, c }
}

/// AMX: tiles of 16 rows of 64 bytes, the right one in groups of four bytes.
const fn amx(a: DType, b: DType, c: DType) -> [Tile; 3] {
    let group = 4 / (a.bits as i64 / 8);
    let inner = 16 * group;
    [Tile::new(a, 16, inner, 1), Tile::new(b, inner, 16, group), Tile::new(c, 16, 16, 1)]
}

/// A dot product in each 32-bit lane of a register, with one group of `a` for all.
const fn dot(lanes: i64, a: DType, b: DType, c: DType) -> [Tile; 3] {
    let group = 4 / (a.bits as i64 / 8);
    [Tile::new(a, 1, group, 1), Tile::new(b, group, lanes, group), Tile::new(c, 1, lanes, 1)]
}

/// Two rows by two columns of a register of 16 bytes each.
const fn mmla(a: DType, b: DType, c: DType) -> [Tile; 3] {
    let inner = 8 / (a.bits as i64 / 8);
    [Tile::new(a, 2, inner, 1), Tile::new(b, inner, 2, inner), Tile::new(c, 2, 2, 1)]
}

const BF16: DType = DType::BF16;
const F16: DType = DType::F16;
const F32: DType = DType::F32;
const I8: DType = DType::I8;
const I16: DType = DType::I16;
const U8: DType = DType::U8;
const I32: DType = DType::I32;

/// Those that are known.
#[rustfmt::skip]
pub(crate) const INSTRUCTIONS: &[TensorInstruction] = &[
    row("tdpbf16ps", Arch::X86_64, &["amx-bf16"], amx(BF16, BF16, F32)),
    row("tdpfp16ps", Arch::X86_64, &["amx-fp16"], amx(F16, F16, F32)),
    row("tdpbssd", Arch::X86_64, &["amx-int8"], amx(I8, I8, I32)),
    row("tdpbsud", Arch::X86_64, &["amx-int8"], amx(I8, U8, I32)),
    row("tdpbusd", Arch::X86_64, &["amx-int8"], amx(U8, I8, I32)),
    row("tdpbuud", Arch::X86_64, &["amx-int8"], amx(U8, U8, I32)),
    row("vpdpbusd_512_u8_i8", Arch::X86_64, &["avx512vnni"], dot(16, U8, I8, I32)),
    row("vpdpbusd_512_i8_u8", Arch::X86_64, &["avx512vnni"], dot(16, I8, U8, I32)),
    row("vpdpbusd_256_u8_i8", Arch::X86_64, &["avxvnni"], dot(8, U8, I8, I32)),
    row("vpdpbusd_256_i8_u8", Arch::X86_64, &["avxvnni"], dot(8, I8, U8, I32)),
    row("vdpbf16ps", Arch::X86_64, &["avx512bf16"], dot(16, BF16, BF16, F32)),
    row("vpmaddwd_512", Arch::X86_64, &["avx512bw"], dot(16, I16, I16, I32)),
    row("vpmaddwd_256", Arch::X86_64, &["avx2"], dot(8, I16, I16, I32)),
    row("sdot", Arch::Aarch64, &["dotprod"], dot(4, I8, I8, I32)),
    row("udot", Arch::Aarch64, &["dotprod"], dot(4, U8, U8, I32)),
    row("usdot_u8_i8", Arch::Aarch64, &["i8mm"], dot(4, U8, I8, I32)),
    row("usdot_i8_u8", Arch::Aarch64, &["i8mm"], dot(4, I8, U8, I32)),
    row("smmla", Arch::Aarch64, &["i8mm"], mmla(I8, I8, I32)),
    row("ummla", Arch::Aarch64, &["i8mm"], mmla(U8, U8, I32)),
    row("usmmla", Arch::Aarch64, &["i8mm"], mmla(U8, I8, I32)),
    row("bfmmla", Arch::Aarch64, &["bf16"], mmla(BF16, BF16, F32)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::well_formed::check_tensor;

    #[test]
    fn tiles_fit_each_other_and_descriptions_keep_the_rules() {
        for TensorInstruction { name, a, b, c, .. } in INSTRUCTIONS {
            assert_eq!((a.columns, a.rows, b.columns), (b.rows, c.rows, c.columns), "{name}");
            assert_eq!(b.rows % b.group, 0, "{name}");
        }
        for i in INSTRUCTIONS {
            check_tensor(i.name, &i.description()).expect(i.name);
        }
    }

    #[test]
    fn the_right_tile_of_amx_lies_in_groups() {
        let bf16 = &INSTRUCTIONS[0];
        assert_eq!(bf16.b.shape(), [16, 16, 2]);
        let at = bf16.b.layout(&Expr::i32(5), &Expr::i32(3));
        assert_eq!(at.iter().map(Expr::as_int).collect::<Vec<_>>(), [Some(2), Some(3), Some(1)]);
        assert_eq!(INSTRUCTIONS[2].b.shape(), [16, 16, 4]);
        assert_eq!(bf16.a.shape(), [16, 32]);
    }
}
