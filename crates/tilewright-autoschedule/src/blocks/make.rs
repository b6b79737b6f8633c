//! The stages of a product with weights in blocks, in tiles.

use tilewright_analysis::Stage;
use tilewright_ir::visit::{Subst, fold_expr_children};
use tilewright_ir::{
    Buffer, DType, Dim, Expr, ExprKind, Fold, Intrin, IterKind, Stmt, TensorFunc, Var,
};

use super::form::same;
use super::form::{BlockedProduct, Kind};
use super::tiles::{Part, Tiles, size};
use crate::canonical::pre;

/// The statements and buffers of a function under construction.
#[derive(Default)]
pub(super) struct TiledFunction {
    pub(super) stmts: Vec<Stmt>,
    pub(super) allocs: Vec<Buffer>,
}

/// An axis of a stage that is made.
struct Along {
    name: &'static str,
    extent: Dim,
    reduced: bool,
}

fn along(name: &'static str, extent: impl Into<Dim>) -> Along {
    Along { name, extent: extent.into(), reduced: false }
}

fn reduced(name: &'static str, extent: i64) -> Along {
    Along { name, extent: size(extent), reduced: true }
}

impl TiledFunction {
    fn alloc(&mut self, name: String, shape: &[Dim], dtype: DType) -> Buffer {
        let shape: Vec<Expr> = shape.iter().map(|d| d.typed(DType::I32)).collect();
        let buffer = Buffer::with_extents(name, &[], dtype).derive_storage(|b| b.shape = shape);
        self.allocs.push(buffer.clone());
        buffer
    }

    /// A stage over some axes that stores a value; sums where an axis is reduced.
    fn stage(
        name: &str,
        axes: &[Along],
        to: &Buffer,
        make: impl FnOnce(&[Expr]) -> (Vec<Expr>, Expr),
    ) -> Stage {
        let iters: Vec<(Var, Dim, IterKind)> = axes
            .iter()
            .map(|a| {
                let kind = if a.reduced { IterKind::Reduce } else { IterKind::Spatial };
                (Var::new(format!("v{}", a.name), DType::I32), a.extent, kind)
            })
            .collect();
        let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
        let (indices, value) = make(&at);
        let (value, init) = if axes.iter().any(|a| a.reduced) {
            let zero = Expr::constant(0.0, to.dtype());
            (to.load(indices.clone()) + value, Some(zero))
        } else {
            (value, None)
        };
        Stage::build(name, &iters, to, indices, value, init)
    }

    /// A buffer that is computed over axes of its own, before all runs.
    fn table(
        &mut self,
        name: &str,
        axes: &[Along],
        dtype: DType,
        value: impl FnOnce(&[Expr]) -> Expr,
    ) -> Buffer {
        let shape: Vec<Dim> = axes.iter().map(|a| a.extent).collect();
        let to = self.alloc(name.to_owned(), &shape, dtype);
        let stage = TiledFunction::stage(name, axes, &to, |at| (at.to_vec(), value(at)));
        self.stmts.push(pre(&stage));
        to
    }

    /// A buffer that is computed over axes of its own in every run.
    fn computed(
        &mut self,
        name: String,
        axes: &[Along],
        dtype: DType,
        value: impl FnOnce(&[Expr]) -> Expr,
    ) -> Buffer {
        let kept = axes.iter().filter(|a| !a.reduced);
        let shape: Vec<Dim> = kept.map(|a| a.extent).collect();
        let to = self.alloc(name.clone(), &shape, dtype);
        let rank = shape.len();
        let stage = TiledFunction::stage(&name, axes, &to, |at| (at[..rank].to_vec(), value(at)));
        self.stmts.push(stage.stmt.clone());
        to
    }

    /// The function with the product in tiles.
    pub(super) fn product(
        mut self,
        func: &TensorFunc,
        stages: &[Stage],
        form: &BlockedProduct,
        tiles: &Tiles,
    ) -> Option<TensorFunc> {
        let last = *form.stages.last()?;
        let result = stages[last].buffer.clone();
        // What the product reads is made before it.
        let (before, after) = stages.split_at(last);
        let others = before.iter().enumerate().filter(|(k, _)| !form.stages.contains(k));
        self.stmts.extend(others.map(|(_, stage)| stage.stmt.clone()));
        let packed = self.packed(form, tiles);
        let made = match &form.kind {
            Kind::Integers { zero, sums, value } => {
                self.integers(form, tiles, &packed, zero.as_ref(), (sums, value))
            }
            Kind::Numbers { factor } => self.numbers(form, tiles, &packed, factor),
        };
        let is_param = func.buffers().any(|b| *b == result);
        if is_param {
            let [row, column] = [form.row.1, size(form.column.extent)];
            let mut extents = [row, column];
            if form.at[0] == 1 {
                extents.swap(0, 1);
            }
            let axes = [along("x", extents[0]), along("y", extents[1])];
            let stage = TiledFunction::stage(stages[last].name(), &axes, &result, |at| {
                (at.to_vec(), read_tiled(at, tiles, form, &made))
            });
            self.stmts.push(stage.stmt.clone());
        }
        for stage in &after[1..] {
            let value = if is_param {
                stage.value.clone()
            } else {
                stage.value.replace(|e| match e.kind() {
                    ExprKind::Load(b, at) if *b == result => {
                        Some(read_tiled(at, tiles, form, &made))
                    }
                    _ => None,
                })
            };
            self.stmts.push(stage.with_value(value).stmt);
        }
        let gone: Vec<&Buffer> = form.stages.iter().map(|k| &stages[*k].buffer).collect();
        self.allocs.retain(|b| !gone.contains(&b));
        Some(func.with_root(self.allocs, Stmt::seq(self.stmts)))
    }

    /// The integers of the weights, packed for the tiles.
    fn packed(&mut self, form: &BlockedProduct, tiles: &Tiles) -> Buffer {
        let (per, group, bits) = (tiles.per_byte, tiles.group, i64::from(form.bits));
        let axes = [
            along("t", size(tiles.outer)),
            along("b", size(form.block.extent)),
            along("c", size(tiles.chunks)),
            along("j", size(tiles.chunk / (per * group))),
            along("v", size(tiles.vectors)),
            along("l", size(tiles.lanes)),
            along("e", size(group)),
        ];
        self.table("packed", &axes, DType::U8, |at| {
            let [t, b, c, j, v, l, e] = at else { return Expr::int(0, DType::U8) };
            let column = tiles.column([t, v, l]);
            let all = (0..per).map(|h| {
                let step = (j.clone() * per + Expr::i32(h as i32)) * group + e.clone();
                let inner = c.clone() * tiles.chunk + step;
                let map = [
                    (form.column.var.clone(), column.clone()),
                    (form.block.var.clone(), b.clone()),
                    (form.inner.var.clone(), inner),
                ];
                let value = Subst::vars(map).expr(&form.weight).cast(DType::I32);
                (value - Expr::i32(form.low as i32)) * Expr::i32(1 << (h * bits))
            });
            let all = all.reduce(|all, bits| all + bits).unwrap_or_else(|| Expr::i32(0));
            within(form, tiles, &column, all.cast(DType::U8))
        })
    }

    /// The bits of the weights taken apart, as elements of a type: a stage of its own for each part.
    fn taken_apart(
        &mut self,
        form: &BlockedProduct,
        tiles: &Tiles,
        name: String,
        dtype: DType,
        make: impl Fn(Expr, [&Expr; 4]) -> Expr,
        packed: &Buffer,
    ) -> Buffer {
        let mut axes = vec![
            along("t", size(tiles.outer)),
            along("b", size(form.block.extent)),
            along("c", size(tiles.chunks)),
            along("s", size(tiles.chunk / tiles.group)),
            along("v", size(tiles.vectors)),
            along("l", size(tiles.lanes)),
        ];
        axes.extend((tiles.group > 1).then(|| along("e", size(tiles.group))));
        let (per, bits) = (tiles.per_byte, i64::from(form.bits));
        self.computed(name, &axes, dtype, |at| {
            let e = at.get(6).cloned().unwrap_or_else(|| Expr::i32(0));
            let step = at[3].clone();
            let j = if per == 1 { step.clone() } else { step.clone().floordiv(per) };
            let place = [&at[0], &at[1], &at[2], &j, &at[4], &at[5], &e];
            let byte = packed.load(place.map(Clone::clone));
            let value = if per == 1 {
                byte
            } else {
                let shift = (step.floormod(per) * Expr::i32(bits as i32)).cast(DType::U8);
                let shifted = Expr::intrin(Intrin::Shr, vec![byte, shift]);
                let mask = Expr::int((1 << bits) - 1, DType::U8);
                Expr::intrin(Intrin::BitAnd, vec![shifted, mask])
            };
            make(value, [&at[0], &at[1], &at[4], &at[5]])
        })
    }

    /// The sums of tiles of integers. Returns what they are in.
    fn integers(
        &mut self,
        form: &BlockedProduct,
        tiles: &Tiles,
        packed: &Buffer,
        zero: Option<&Expr>,
        (sums, value): (&Buffer, &Expr),
    ) -> Buffer {
        let (rows, blocks) = (form.row.1, size(form.block.extent));
        let Some((instruction, weights)) = tiles.dot else { return packed.clone() };
        // What is taken from the stored integers, which begin at zero.
        let zero = match (zero, form.low) {
            (Some(zero), 0) => Some(zero.clone()),
            (Some(zero), low) => Some(zero.clone() - Expr::i32(low as i32)),
            (None, 0) => None,
            (None, low) => Some(Expr::i32(-low as i32)),
        };
        let mut tables = Tables { made: self, form, tiles, weight: None, known: Vec::new() };
        let value = tables.expr(value);
        let zero = zero.map(|z| tables.expr(&z));
        let known = tables.known;
        let inner = form.inner.extent;

        // The instruction takes neighbours of a block at once, in its own type.
        let dtype = instruction.a.dtype;
        let copied = (dtype != DType::I8 || !form.lies_along_blocks()).then(|| {
            let [m, b] = [along("m", rows), along("b", blocks)];
            let axes = [m, b, along("i", size(inner))];
            self.computed("integers_in_blocks".to_owned(), &axes, dtype, |at| {
                other_operand(form, &at[0], &at[1], at[2].clone()).cast(dtype)
            })
        });
        let zero = zero.map(|zero| {
            let [m, b] = [along("m", rows), along("b", blocks)];
            let axes = [m, b, reduced("i", inner)];
            let all = self.computed("integers_summed".to_owned(), &axes, DType::I32, |at| {
                let i = at[2].clone();
                other_or_copy(form, copied.as_ref(), &at[0], &at[1], i).cast(DType::I32)
            });
            (zero, all)
        });

        let out = self.sums(form, tiles);
        for (p, part) in tiles.parts(rows).iter().enumerate() {
            let apart = if tiles.per_byte == 1 && weights == DType::U8 {
                packed.clone()
            } else {
                self.taken_apart(
                    form,
                    tiles,
                    format!("taken_apart_{p}"),
                    weights,
                    |w, _| w.cast(weights),
                    packed,
                )
            };
            let row = part.row();
            let axes = [
                along("r", part.tiles),
                along("m", size(part.rows)),
                along("b", blocks),
                along("t", size(tiles.outer)),
                along("v", size(tiles.vectors)),
                along("l", size(tiles.lanes)),
                reduced("c", tiles.chunks),
                reduced("s", tiles.chunk / tiles.group),
                reduced("e", tiles.group),
            ];
            let dots = self.computed(format!("dots_{p}"), &axes, DType::I32, |at| {
                let [r, m, b, t, v, l, c, s, e] = at else { return Expr::i32(0) };
                let i = c.clone() * tiles.chunk + (s.clone() * tiles.group + e.clone());
                let x = other_or_copy(form, copied.as_ref(), &row(r, m), b, i).cast(DType::I32);
                let w = apart.load([t, b, c, s, v, l, e].map(Clone::clone));
                x * w.cast(DType::I32)
            });
            let axes = [
                along("r", part.tiles),
                along("m", size(part.rows)),
                along("t", size(tiles.outer)),
                along("v", size(tiles.vectors)),
                along("l", size(tiles.lanes)),
                reduced("b", form.block.extent),
            ];
            let stage = TiledFunction::stage(&format!("sums_{p}"), &axes, &out, |at| {
                let [r, m, t, v, l, b] = at else { return (Vec::new(), Expr::i32(0)) };
                let row = row(r, m);
                let place = [r, m, b, t, v, l].map(Clone::clone);
                let there = [&row, b, t, v, l];
                let sum = dots.load(place);
                let sum = zero.iter().fold(sum, |sum, (zero, all)| {
                    let zero = in_tile(form, &known, zero, there);
                    sum - zero * all.load([row.clone(), b.clone()])
                });
                let value = value.replace(|e| match e.kind() {
                    ExprKind::Load(from, _) if from == sums => Some(sum.clone()),
                    _ => None,
                });
                let value = in_tile(form, &known, &value, there);
                (vec![row.clone(), t.clone(), v.clone(), l.clone()], value)
            });
            self.stmts.push(stage.stmt.clone());
        }
        out
    }

    /// The sums of tiles of numbers. Returns what they are in.
    fn numbers(
        &mut self,
        form: &BlockedProduct,
        tiles: &Tiles,
        packed: &Buffer,
        factor: &Expr,
    ) -> Buffer {
        let (rows, blocks) = (form.row.1, form.block.extent);
        // The weights stand for themselves while tables are made of all else.
        let weight = Var::new("weight", form.weight.dtype());
        let factor = factor.replace(|e| same(e, &form.weight).then(|| weight.expr()));
        let mut tables =
            Tables { made: self, form, tiles, weight: Some(&weight), known: Vec::new() };
        let factor = tables.expr(&factor);
        let known = tables.known;

        let plain = matches!(form.other.kind(), ExprKind::Load(..));
        let copied = (!plain).then(|| {
            let axes =
                [along("m", rows), along("b", size(blocks)), along("i", size(form.inner.extent))];
            self.computed("numbers".to_owned(), &axes, DType::F32, |at| {
                other_operand(form, &at[0], &at[1], at[2].clone())
            })
        });

        let out = self.sums(form, tiles);
        for (p, part) in tiles.parts(rows).iter().enumerate() {
            let make = |w: Expr, [t, b, v, l]: [&Expr; 4]| {
                let w = w.cast(DType::I32) + Expr::i32(form.low as i32);
                let map = [(weight.clone(), w.cast(weight.dtype()))];
                let value = Subst::vars(map).expr(&factor);
                let row = Expr::i32(0);
                in_tile(form, &known, &value, [&row, b, t, v, l])
            };
            let name = format!("taken_apart_{p}");
            let apart = self.taken_apart(form, tiles, name, DType::F32, make, packed);
            let row = part.row();
            let product = |row: &Expr, [t, v, l, b, c, s]: [&Expr; 6]| {
                let i = c.clone() * tiles.chunk + s.clone();
                let x = other_or_copy(form, copied.as_ref(), row, b, i);
                x * apart.load([t, b, c, s, v, l].map(Clone::clone))
            };
            let outer = [
                along("r", part.tiles),
                along("m", size(part.rows)),
                along("t", size(tiles.outer)),
                along("v", size(tiles.vectors)),
                along("l", size(tiles.lanes)),
            ];
            let name = format!("sums_{p}");
            let stage = if part.panels {
                let partial =
                    self.sums_of_panels(format!("panels_{p}"), part, tiles, blocks, |at| {
                        let [r, m, o, t, v, l, b, c, s] = at else { return Expr::i32(0) };
                        let b = o.clone() * tiles.panel + b.clone();
                        product(&row(r, m), [t, v, l, &b, c, s])
                    });
                let panels = reduced("o", blocks / tiles.panel);
                let axes: Vec<Along> = outer.into_iter().chain([panels]).collect();
                TiledFunction::stage(&name, &axes, &out, |at| {
                    let [r, m, t, v, l, o] = at else { return (Vec::new(), Expr::i32(0)) };
                    let sum = partial.load([r, m, o, t, v, l].map(Clone::clone));
                    (vec![row(r, m), t.clone(), v.clone(), l.clone()], sum)
                })
            } else {
                let inner =
                    [reduced("b", blocks), reduced("c", tiles.chunks), reduced("s", tiles.chunk)];
                let axes: Vec<Along> = outer.into_iter().chain(inner).collect();
                TiledFunction::stage(&name, &axes, &out, |at| {
                    let [r, m, t, v, l, b, c, s] = at else { return (Vec::new(), Expr::i32(0)) };
                    let row = row(r, m);
                    let product = product(&row, [t, v, l, b, c, s]);
                    (vec![row, t.clone(), v.clone(), l.clone()], product)
                })
            };
            self.stmts.push(stage.stmt.clone());
        }
        out
    }

    /// The sums over each panel of so many blocks, of the tiles of a part.
    fn sums_of_panels(
        &mut self,
        name: String,
        part: &Part,
        tiles: &Tiles,
        blocks: i64,
        value: impl FnOnce(&[Expr]) -> Expr,
    ) -> Buffer {
        let axes = [
            along("r", part.tiles),
            along("m", size(part.rows)),
            along("o", size(blocks / tiles.panel)),
            along("t", size(tiles.outer)),
            along("v", size(tiles.vectors)),
            along("l", size(tiles.lanes)),
            reduced("b", tiles.panel),
            reduced("c", tiles.chunks),
            reduced("s", tiles.chunk),
        ];
        self.computed(name, &axes, DType::F32, value)
    }

    /// The sums of all rows, with whole tiles of columns.
    fn sums(&mut self, form: &BlockedProduct, tiles: &Tiles) -> Buffer {
        let shape = [form.row.1, size(tiles.outer), size(tiles.vectors), size(tiles.lanes)];
        self.alloc("sums_in_tiles".to_owned(), &shape, DType::F32)
    }
}

fn read_tiled(at: &[Expr], tiles: &Tiles, form: &BlockedProduct, made: &Buffer) -> Expr {
    let [tile, vector, lane] = tiles.place(&at[form.at[1]]);
    made.load([at[form.at[0]].clone(), tile, vector, lane])
}

/// A value of a column, and zero for those that there are not.
fn within(form: &BlockedProduct, tiles: &Tiles, column: &Expr, value: Expr) -> Expr {
    let columns = form.column.extent;
    if columns % (tiles.vectors * tiles.lanes) == 0 {
        return value;
    }
    let zero = Expr::constant(0.0, value.dtype());
    Expr::if_then_else(column.clone().less(columns), value, zero)
}

/// Makes tables of what is the same in every run and belongs to a block of a column.
struct Tables<'a> {
    made: &'a mut TiledFunction,
    form: &'a BlockedProduct,
    tiles: &'a Tiles,
    /// What stands for the weights.
    weight: Option<&'a Var>,
    /// A variable that stands for a cell of each table.
    known: Vec<(Var, Buffer, Expr)>,
}

impl Fold for Tables<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let (form, tiles) = (self.form, self.tiles);
        let mut of_columns = e.effects().loads && e.mentions(&form.column.var);
        of_columns &= !e.mentions(&form.row.0) && !self.weight.is_some_and(|w| e.mentions(w));
        if let Kind::Integers { sums, .. } = &form.kind {
            of_columns &= !e.loads_from(|b| b == sums);
        }
        let is_cast = matches!(e.kind(), ExprKind::Cast(_));
        if !of_columns || is_cast || !e.dtype().is_int() && !e.dtype().is_float() {
            return fold_expr_children(self, e);
        }
        if let Some((var, ..)) = self.known.iter().find(|(.., of)| same(of, e)) {
            return var.expr();
        }
        let axes = [
            along("t", size(tiles.outer)),
            along("b", size(form.block.extent)),
            along("v", size(tiles.vectors)),
            along("l", size(tiles.lanes)),
        ];
        let name = format!("of_blocks_{}", self.known.len());
        let table = self.made.table(&name, &axes, e.dtype(), |at| {
            let [t, b, v, l] = at else { return e.clone() };
            let column = tiles.column([t, v, l]);
            let map =
                [(form.column.var.clone(), column.clone()), (form.block.var.clone(), b.clone())];
            let value = Subst::vars(map).expr(e);
            within(form, tiles, &column, value)
        });
        let var = Var::new(name, e.dtype());
        self.known.push((var.clone(), table, e.clone()));
        var.expr()
    }
}

/// The other operand at a place.
fn other_operand(form: &BlockedProduct, m: &Expr, b: &Expr, i: Expr) -> Expr {
    let map = [
        (form.row.0.clone(), m.clone()),
        (form.block.var.clone(), b.clone()),
        (form.inner.var.clone(), i),
    ];
    Subst::vars(map).expr(&form.other)
}

/// The other operand at a place, read from a copy where there is one.
fn other_or_copy(
    form: &BlockedProduct,
    copy: Option<&Buffer>,
    m: &Expr,
    b: &Expr,
    i: Expr,
) -> Expr {
    match copy {
        Some(copy) => copy.load([m.clone(), b.clone(), i]),
        None => other_operand(form, m, b, i),
    }
}

/// An expression at a place of a tile, with the cells of tables for the variables that stand for them.
fn in_tile(
    form: &BlockedProduct,
    known: &[(Var, Buffer, Expr)],
    e: &Expr,
    [row, b, t, v, l]: [&Expr; 5],
) -> Expr {
    let place = [t, b, v, l].map(Clone::clone);
    let cells = known.iter().map(|(var, table, _)| (var.clone(), table.load(place.clone())));
    let own = [(form.row.0.clone(), row.clone()), (form.block.var.clone(), b.clone())];
    Subst::vars(cells.chain(own)).expr(e)
}
