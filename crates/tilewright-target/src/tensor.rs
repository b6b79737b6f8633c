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
//! Instructions of a *warp* (`mma.sync`) work on registers of its 32 lanes: a tile is 32 rows of the registers of a
//! lane, and its layout says for each element which lane has it, and in which of its registers
//! ([`WarpOperand`]). They are executed by all lanes together, so that what takes their place is the plain loops
//! over the tile, which `tensorize` marks by [`TENSOR_INSTRUCTION`]: a group does them once, and code for a GPU lets
//! the lanes of its warp do them.
//!
//! Sources: NVIDIA's "Parallel Thread Execution ISA", matrix fragments for `mma.m16n8k8`, `.m16n8k16` and
//! `.m16n8k32`; Intel's "Architecture Instruction Set Extensions Programming Reference" for AMX
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
    /// Which operand of an instruction of a warp it is; `None` for tiles in memory.
    pub warp: Option<WarpOperand>,
}

/// The annotation of a loop that an instruction of a warp computes, with the name of that as its value.
pub const TENSOR_INSTRUCTION: &str = "tensor_instruction";

/// What [`TENSOR_INSTRUCTION`] says of a copy from shared memory to a fragment of a warp, of elements of 8 or 16 bits:
/// `ldmatrix` of PTX. The lanes give the addresses of rows of 16 bytes, which each instruction spreads over all of
/// them, four bytes to a lane.
pub const LOAD_MATRIX: &str = "ldmatrix";

/// Bytes of a row that `ldmatrix` reads.
pub const MATRIX_ROW: i64 = 16;

/// Lanes of a warp.
const LANES: i64 = 32;

/// An operand of an instruction of a warp: eight groups of four lanes have its rows (of the right factor the
/// columns), and the lanes of a group neighbours along the other axis, as many as a register of 32 bits holds. What
/// is left over of an axis is in further registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpOperand {
    Left,
    Right,
    Sum,
}

impl WarpOperand {
    /// The lane that has an element, and its number among the elements of the lane; `per` of them are a register.
    fn place(self, per: i64, row: &Expr, column: &Expr) -> [Expr; 2] {
        // Of `across` eight are groups of lanes; `along` runs inside of one.
        let (across, along) = match self {
            WarpOperand::Left | WarpOperand::Sum => (row, column),
            WarpOperand::Right => (column, row),
        };
        let per = if self == WarpOperand::Sum { 2 } else { per };
        let lane = across.clone().floormod(8) * 4 + along.clone().floormod(4 * per).floordiv(per);
        let in_register = along.clone().floormod(per);
        let number = match self {
            WarpOperand::Left => {
                along.clone().floordiv(4 * per) * (2 * per)
                    + across.clone().floordiv(8) * per
                    + in_register
            }
            WarpOperand::Right => along.clone().floordiv(4 * per) * per + in_register,
            WarpOperand::Sum => across.clone().floordiv(8) * per + in_register,
        };
        [lane, number]
    }
}

impl Tile {
    const fn new(dtype: DType, rows: i64, columns: i64, group: i64) -> Tile {
        Tile { dtype, rows, columns, group, warp: None }
    }

    const fn of_warp(dtype: DType, rows: i64, columns: i64, operand: WarpOperand) -> Tile {
        Tile { dtype, rows, columns, group: 1, warp: Some(operand) }
    }

    /// Its extents as it lies in memory.
    pub fn shape(&self) -> Vec<i64> {
        match self.group {
            _ if self.warp.is_some() => vec![LANES, self.rows * self.columns / LANES],
            1 => vec![self.rows, self.columns],
            g => vec![self.rows / g, self.columns, g],
        }
    }

    /// Where the element of a row and a column lies: the index map of the layout.
    pub fn layout(&self, row: &Expr, column: &Expr) -> Vec<Expr> {
        if let Some(operand) = self.warp {
            return operand.place(4 / self.dtype.bytes() as i64, row, column).to_vec();
        }
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

    /// Whether the lanes of a warp execute it together.
    pub fn is_of_warp(&self) -> bool {
        self.c.warp.is_some()
    }

    /// The statement that asks for it, over the same parameters; `None` where there is no code for it
    /// yet.
    pub fn implementation(&self) -> Option<TensorFunc> {
        if self.is_of_warp() {
            return Some(self.description());
        }
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
        let sums = if self.is_dot() || self.is_of_warp() { "local" } else { "global" };
        let factors = if self.is_of_warp() { "local" } else { "global" };
        [
            tile_buffer("a", &self.a, factors),
            tile_buffer("b", &self.b, factors),
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

/// The tiles of an instruction of a warp: 16 rows, 8 columns, and 32 bytes along the sum, or 16 of 32 bits.
const fn warp(a: DType, b: DType, c: DType) -> [Tile; 3] {
    let inner = if a.bits == 32 { 8 } else { 256 / a.bits as i64 };
    [
        Tile::of_warp(a, 16, inner, WarpOperand::Left),
        Tile::of_warp(b, inner, 8, WarpOperand::Right),
        Tile::of_warp(c, 16, 8, WarpOperand::Sum),
    ]
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
    row("mma_m16n8k16_f16", Arch::Nvidia, &["mma"], warp(F16, F16, F32)),
    row("mma_m16n8k16_bf16", Arch::Nvidia, &["mma"], warp(BF16, BF16, F32)),
    row("mma_m16n8k32_s8", Arch::Nvidia, &["mma"], warp(I8, I8, I32)),
    row("mma_m16n8k32_u8", Arch::Nvidia, &["mma"], warp(U8, U8, I32)),
    row("mma_m16n8k32_s8_u8", Arch::Nvidia, &["mma"], warp(I8, U8, I32)),
    row("mma_m16n8k32_u8_s8", Arch::Nvidia, &["mma"], warp(U8, I8, I32)),
    // Factors are rounded to 19 bits: only who asks for it by its name gets it.
    row("mma_m16n8k8_tf32", Arch::Nvidia, &["mma", "tf32"], warp(F32, F32, F32)),
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

    /// What the tables of the PTX ISA say: the row and the column of the `i`-th element of a lane.
    fn documented(operand: WarpOperand, bits: u8, lane: i64, i: i64) -> [i64; 2] {
        let (group, thread) = (lane >> 2, lane % 4);
        match (operand, bits) {
            (WarpOperand::Left, 16) => {
                let row =
                    if (0..2).contains(&i) || (4..6).contains(&i) { group } else { group + 8 };
                [row, thread * 2 + (i & 1) + if i >= 4 { 8 } else { 0 }]
            }
            (WarpOperand::Left, 8) => {
                let row =
                    if (0..4).contains(&i) || (8..12).contains(&i) { group } else { group + 8 };
                [row, thread * 4 + (i & 3) + if i >= 8 { 16 } else { 0 }]
            }
            (WarpOperand::Left, _) => [
                if i == 0 || i == 2 { group } else { group + 8 },
                if i < 2 { thread } else { thread + 4 },
            ],
            (WarpOperand::Right, 16) => [thread * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, group],
            (WarpOperand::Right, 8) => [thread * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, group],
            (WarpOperand::Right, _) => [if i == 0 { thread } else { thread + 4 }, group],
            (WarpOperand::Sum, _) => [if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)],
        }
    }

    #[test]
    fn every_element_of_a_fragment_is_where_the_tables_say() {
        let mut checked = 0;
        for i in INSTRUCTIONS.iter().filter(|i| i.is_of_warp()) {
            for tile in [i.a, i.b, i.c] {
                let operand = tile.warp.expect("an operand of a warp");
                let [lanes, each] = tile.shape()[..] else { panic!("two axes") };
                assert_eq!(lanes * each, tile.rows * tile.columns, "{}", i.name);
                for (lane, number) in (0..lanes).flat_map(|l| (0..each).map(move |n| (l, n))) {
                    let [row, column] = documented(operand, tile.dtype.bits, lane, number);
                    let at = tile.layout(&Expr::i32(row as i32), &Expr::i32(column as i32));
                    let at: Vec<_> = at.iter().map(Expr::as_int).collect();
                    assert_eq!(at, [Some(lane), Some(number)], "{}: {row}, {column}", i.name);
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 2 * (256 + 128 + 128) + 4 * (512 + 256 + 128) + 128 + 64 + 128);
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
