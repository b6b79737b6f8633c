//! Index maps: from the logical indices of a buffer or loop nest to physical ones.
//!
//! An [`IndexMap`] is parameters and one expression of them for each physical axis, with the places
//! of axis separators. On a shape it is a [`PhysicalLayout`]: the set engine answers whether it is injective,
//! which box holds the image, which cells of the box are padding, and what the inverse is.
//!
//! ```text
//! lambda i: [i // 4, i % 4]  on (14,)   box (4, 4), padding at c0 == 3 and c1 >= 2,
//!                                       inverse (c0 * 4 + c1,)
//! lambda i: [(i + 2) // 8, (i + 2) % 8]  on (16,)   box (3, 8), padding at both ends
//! ```
//!
//! # Terms that are not affine
//!
//! Two forms with symbolic factors are found by their structure, since the engine does not know
//! products of variables:
//!
//! * a *fusion* `x * (c * n) + y * n + z` whose factors are the extents of what comes after it, in
//!   mixed radix: the box is the product of the extents, and digits are quotients and remainders.
//!   The engine checks that the inverse gives every index back;
//! * a *split* `i // n, i % n` of one axis by a symbol. A map that divides by `n` is a map only
//!   for `n >= 1`; the code that applies it says that this holds.
//!
//! # Bits
//!
//! A map with `^`, `&`, `|` and shifts that is linear in binary digits (`j ^ (i % 8)`, Morton order, reversal
//! of bits) is a matrix over the field of two elements ([`tilewright_polyhedral::bits`]), which gives
//! its inverse: on the next powers of two above a shape, so that what lies beyond a ragged shape is padding.
//! Other bit operations are sums of digits to the engine.
//!
//! ```text
//! lambda i, j: [i // 8, i % 8, j ^ (i % 8)]  on (11, 6)   box (2, 8, 8), padding where
//!                                                         c0 * 8 + c1 >= 11 or c2 ^ c1 >= 6
//! ```
//!
//! **Limits.** Other maps that are not affine are refused with the term; an injective transform may
//! be assumed, and then only the box has to be known.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::equal::same_expr;
use tilewright_ir::extent;
use tilewright_ir::index::Ranges;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{BinOp, DType, Error, Expr, ExprKind, Fold, IterVar, Range, Result, Var};
use tilewright_polyhedral::{Domain, Engine, Reason, Relation, Unknown, Witness};

use tilewright_ir::lambda::{Lambda, LambdaItem};

use crate::digits::{MOST_POINTS, bit_map, box_of, digits_back, has_bits, numbers};

/// A function from logical indices to physical ones.
#[derive(Clone, Debug)]
pub struct IndexMap {
    /// The logical indices.
    pub params: Vec<Var>,
    /// The physical indices, expressions of the parameters and of symbolic sizes.
    pub indices: Vec<Expr>,
    /// Positions between physical indices where a physical axis ends.
    pub separators: Vec<usize>,
}

/// An index map on a shape.
#[derive(Clone, Debug)]
pub struct PhysicalLayout {
    pub map: IndexMap,
    /// Physical extents: the smallest box from zero that holds the image.
    pub physical: Vec<Expr>,
    /// Names for the physical indices, in which padding and inverse are written.
    pub cells: Vec<Var>,
    /// Padding and inverse, or why the engine cannot say them.
    pub known: Result<LayoutFacts>,
}

/// What is proven of a layout.
#[derive(Clone, Debug)]
pub struct LayoutFacts {
    /// Holds at the cells of the box that no logical index reaches; constant false without padding.
    pub padding: Expr,
    /// The logical indices as expressions of the cells, right wherever there is no padding.
    pub inverse: Vec<Expr>,
    /// Whether the lexicographic order of physical indices is seen to be that of logical ones.
    pub ordered: bool,
}

/// Physical extents, padding and inverse of a map that is linear in digits.
type ByDigits = (Vec<Expr>, Expr, Vec<Expr>);

impl IndexMap {
    /// Binds a lambda to logical indices of these types.
    ///
    /// # Errors
    /// `Input` where the lambda takes another number of indices or returns what is no index.
    pub fn bind(lambda: &Lambda, dtypes: &[DType]) -> Result<IndexMap> {
        let body = lambda.bind(dtypes)?;
        let number = dtypes.first().copied().unwrap_or(DType::I32);
        let (mut indices, mut separators) = (Vec::new(), Vec::new());
        for item in body.items {
            match item {
                LambdaItem::Expr(e) if e.dtype().is_int() && e.dtype().lanes == 1 => {
                    indices.push(e);
                }
                LambdaItem::Expr(e) => {
                    let what = format!("an index map returns `{e}`, which is {}", e.dtype());
                    return Err(Error::input(what));
                }
                LambdaItem::Number(v) if v.fract() == 0.0 && v.abs() < 9e15 => {
                    indices.push(Expr::int(v as i64, number));
                }
                LambdaItem::Number(v) => {
                    return Err(Error::input(format!("an index map returns {v}")));
                }
                LambdaItem::Separator => separators.push(indices.len()),
                other => return Err(Error::input(format!("an index map returns {other}"))),
            }
        }
        let mut params = body.params;
        if params.len() != dtypes.len() {
            return Err(Error::input(format!(
                "the index map takes {} indices where there are {}",
                params.len(),
                dtypes.len()
            )));
        }
        // A lambda may keep its variables from one binding to the next.
        let fresh: Vec<Var> = params.iter().map(Var::fresh).collect();
        let mut rename = Subst::vars(params.iter().cloned().zip(fresh.iter().map(Var::expr)));
        let indices = indices.iter().map(|e| rename.expr(e)).collect();
        params = fresh;
        Ok(IndexMap { params, indices, separators })
    }

    /// Binds a lambda to the indices of a box: with the types of the variables that it is of, or
    /// with `int64` where an index, or a step on the way to it, leaves them.
    ///
    /// # Errors
    /// Those of [`IndexMap::bind`].
    pub fn bind_over(lambda: &Lambda, ranges: &[(DType, Range)]) -> Result<IndexMap> {
        let dtypes: Vec<DType> = ranges.iter().map(|(t, _)| *t).collect();
        let map = IndexMap::bind(lambda, &dtypes)?;
        if map.stays(ranges) {
            Ok(map)
        } else {
            IndexMap::bind(lambda, &vec![DType::I64; dtypes.len()])
        }
    }

    /// Whether every index, and every physical extent, is within its type, as far as known.
    fn stays(&self, ranges: &[(DType, Range)]) -> bool {
        let mut known = Ranges::default();
        for (p, (_, r)) in self.params.iter().zip(ranges) {
            known.bind_loop(p, r);
        }
        let beyond = self.indices.iter().any(|e| e.any(|part| known.leaves(part).is_some()));
        let extents = self
            .indices
            .iter()
            .all(|e| known.exact(e).is_none_or(|i| extent::holds(e.dtype(), i.hi + 1)));
        !beyond && extents
    }

    /// The physical indices of a logical point; the types of the parameters must be those of `at`.
    pub fn apply(&self, at: &[Expr]) -> Vec<Expr> {
        let mut subst = Subst::vars(self.params.iter().cloned().zip(at.iter().cloned()));
        self.indices.iter().map(|e| subst.expr(e)).collect()
    }

    /// The map as a lambda that can be printed; names of parameters are made different.
    pub fn to_lambda(&self) -> Lambda {
        let mut names: HashSet<String> = HashSet::default();
        let mut params = Vec::new();
        for v in &self.params {
            let mut name = v.name().to_string();
            while !names.insert(name.clone()) {
                name.push('_');
            }
            params.push(Var::new(name, v.dtype()));
        }
        let map = self.clone();
        Lambda::over_vars(params, move |at| {
            let at = at.iter().zip(&map.params).map(|(e, p)| e.clone().cast(p.dtype()));
            let indices = map.apply(&at.collect::<Vec<_>>());
            let mut items: Vec<LambdaItem> = indices.into_iter().map(LambdaItem::Expr).collect();
            for at in map.separators.iter().rev() {
                items.insert((*at).min(items.len()), LambdaItem::Separator);
            }
            items
        })
    }

    /// Variables for the physical indices, named after the parameters they come from.
    pub fn cells(&self) -> Vec<Var> {
        let names: Vec<String> = self
            .indices
            .iter()
            .map(|e| {
                let free = free_vars(e);
                let used: Vec<&Var> = self.params.iter().filter(|p| free.contains(p)).collect();
                match used.as_slice() {
                    [] => "ax".to_owned(),
                    [one] => one.name().to_string(),
                    many => many.iter().map(|v| v.name().to_string()).collect::<Vec<_>>().join("_"),
                }
            })
            .collect();
        names
            .iter()
            .zip(&self.indices)
            .enumerate()
            .map(|(at, (name, e))| {
                let before = names[..at].iter().filter(|n| *n == name).count();
                let shared = names.iter().filter(|n| *n == name).count() > 1;
                let name = if shared { format!("{name}_{before}") } else { name.clone() };
                Var::new(name, e.dtype())
            })
            .collect()
    }

    /// The map on a shape. Injectivity is proven unless it is to be assumed.
    ///
    /// # Errors
    /// `Refused` for two logical indices with one image, for negative indices, and where the engine
    /// cannot tell, each with the fact.
    pub fn on(&self, shape: &[Expr], assume_injective: bool) -> Result<PhysicalLayout> {
        let ranges: Vec<(Var, Range)> = self
            .params
            .iter()
            .cloned()
            .zip(shape)
            .map(|(p, e)| {
                let extent = e.clone().cast(p.dtype());
                (p, Range::upto(extent))
            })
            .collect();
        // What a layout is made of counts its axes.
        let engine = Engine::new().with_sizes(self.indices.iter().flat_map(free_vars));
        let domain = engine.domain_of(&ranges, &self.defined());
        let cells = self.cells();
        let relation = domain.map(&self.indices)?;
        let exact = self.by_engine(&engine, &ranges, &cells);
        let why = match exact {
            Ok((shape, known)) => return Ok(self.physical_layout(shape, Ok(known), &cells)),
            Err(why) => why,
        };
        if !assume_injective && let Some([first, second]) = self.digits_meet(&domain, shape) {
            return Err(Error::refused("the index map is not injective").note(format!(
                "the logical indices {first:?} and {second:?} have one physical index"
            )));
        }
        let mut injective = assume_injective;
        if !assume_injective && let Ok(collision) = relation.collision() {
            injective = collision.is_none();
            if let Some(c) = collision {
                return Err(Error::refused("the index map is not injective").note(format!(
                    "the logical indices {} and {} have one physical index",
                    self.indices_at(&c.first),
                    self.indices_at(&c.second)
                )));
            }
        }
        if let Some((physical, known)) = self.by_structure(&engine, &domain, shape, &cells)? {
            return Ok(self.physical_layout(physical, Ok(known), &cells));
        }
        let open = !matches!(why.reason(), Reason::Mismatch(_));
        let how = if open { "cannot be analysed" } else { "is no layout" };
        let why = Error::from(why).context(format!("the index map {how}"));
        match relation.physical_shape() {
            Ok(physical) if injective => Ok(self.physical_layout(physical, Err(why), &cells)),
            _ => Err(why),
        }
    }

    fn physical_layout(
        &self,
        physical: Vec<Expr>,
        known: Result<LayoutFacts>,
        cells: &[Var],
    ) -> PhysicalLayout {
        PhysicalLayout { map: self.clone(), physical, cells: cells.to_vec(), known }
    }

    /// Where the map is defined: symbolic divisors are positive.
    fn defined(&self) -> Vec<Expr> {
        let mut defined = Vec::new();
        for index in &self.indices {
            index.for_each(|e| {
                if let ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, _, by) = e.kind()
                    && by.as_int().is_none()
                {
                    defined.push(by.clone().greater_equal(1));
                }
                true
            });
        }
        defined
    }

    fn indices_at(&self, w: &Witness) -> String {
        let all: Vec<String> = self
            .params
            .iter()
            .map(|p| w.get(p).map_or_else(|| "?".to_owned(), |v| v.to_string()))
            .collect();
        let sizes: Vec<String> = w
            .values
            .iter()
            .filter(|(v, _)| !self.params.contains(v))
            .map(|(v, x)| format!("{v}={x}"))
            .collect();
        let sizes =
            if sizes.is_empty() { String::new() } else { format!(" ({})", sizes.join(", ")) };
        format!("[{}]{sizes}", all.join(", "))
    }

    /// Box, padding and inverse. An index that is one parameter, which no other index has, is an
    /// axis of its own; only the others are put to the engine.
    fn by_engine(
        &self,
        engine: &Engine,
        ranges: &[(Var, Range)],
        cells: &[Var],
    ) -> Result<(Vec<Expr>, LayoutFacts), Unknown> {
        let free: Vec<HashSet<Var>> = self.indices.iter().map(free_vars).collect();
        let axes = self.indices.iter().map(|e| {
            let p = e.as_var()?;
            let alone = free.iter().filter(|f| f.contains(p)).count() == 1;
            self.params.iter().position(|q| q == p).filter(|_| alone)
        });
        let axes: Vec<Option<usize>> = axes.collect();
        let rest: Vec<usize> =
            (0..self.params.len()).filter(|p| !axes.contains(&Some(*p))).collect();
        let rest_ranges: Vec<(Var, Range)> =
            rest.iter().filter_map(|p| ranges.get(*p).cloned()).collect();
        let mixed = self.indices.iter().zip(cells).zip(&axes).filter(|(_, axis)| axis.is_none());
        let (indices, mixed_cells): (Vec<Expr>, Vec<Var>) =
            mixed.map(|((e, c), _)| (e.clone(), c.clone())).unzip();
        let defined = self.defined();
        let relation = engine.domain_of(&rest_ranges, &defined).map(&indices)?;
        let (extents, padding, found) = match self.by_digits(&relation, &rest_ranges, &mixed_cells)
        {
            Some(found) => found?,
            None => {
                // An inverse proves that the map is injective.
                let by_sets = relation.inverse(&mixed_cells).and_then(|found| {
                    let beside = beside(&relation, &rest_ranges, &defined, &mixed_cells, &found);
                    beside.map(|(extents, padding)| (extents, padding, found))
                });
                // Many digits, each moved, have no short form as sets, and one by digits.
                by_sets.or_else(|why| {
                    if matches!(why.reason(), Reason::Mismatch(_)) {
                        return Err(why);
                    }
                    let found = linear(&relation, &rest_ranges, &mixed_cells);
                    found.and_then(Result::ok).ok_or(why)
                })?
            }
        };
        let (mut extents, mut found) = (extents.into_iter(), found.into_iter());
        let mut physical = Vec::new();
        for axis in &axes {
            let plain = axis.and_then(|p| ranges.get(p)).map(|(_, r)| r.extent.clone());
            physical.extend(plain.or_else(|| extents.next()));
        }
        let mut inverse = Vec::new();
        for (p, param) in self.params.iter().enumerate() {
            let value = if rest.contains(&p) { found.next() } else { None };
            // An index that is a parameter as it is tells it, also where it has one value only.
            let plain = self.indices.iter().zip(cells).find(|(e, _)| e.as_var() == Some(param));
            inverse.extend(plain.map(|(_, c)| c.expr()).or(value));
        }
        Ok((physical, LayoutFacts { padding, inverse, ordered: false }))
    }

    /// Box, padding and inverse of a map with bit operations that is [`linear`] in the digits of the parameters, or of
    /// numbers that other arithmetic makes of these; `None` for others.
    fn by_digits(
        &self,
        relation: &Relation,
        ranges: &[(Var, Range)],
        cells: &[Var],
    ) -> Option<Result<ByDigits, Unknown>> {
        if !relation.exprs().iter().any(has_bits) {
            return None;
        }
        if let Some(found) = linear(relation, ranges, cells) {
            return Some(found);
        }
        let engine = relation.domain().engine();
        let (numbers, of_numbers) = numbers(relation.exprs(), cells)?;
        let physical = box_of(ranges, relation.exprs(), cells)?;
        let domain = engine.domain_of(&in_box(cells, &physical), &[]);
        let defined = self.defined();
        let below = match engine.domain_of(ranges, &defined).map(&numbers) {
            Ok(below) => below,
            Err(why) => return Some(Err(why)),
        };
        let back = below.inverse(cells).and_then(|back| {
            let (extents, padding) = beside(&below, ranges, &defined, cells, &back)?;
            Ok((extents, padding, back))
        });
        let (extents, padding, back) = match back {
            Ok(back) => back,
            Err(why) => return Some(Err(why)),
        };
        let ranges = in_box(cells, &extents);
        let (map, widths) = bit_map(relation.domain(), &ranges, &of_numbers)?;
        let (values, outside) = digits_back(&domain, &map, &widths, &ranges, cells)?;
        let mut at = Subst::vars(cells.iter().cloned().zip(values));
        let padding = domain.simplify(&at.expr(&padding));
        let inverse = back.iter().map(|e| domain.simplify(&at.expr(e))).collect();
        Some(Ok((physical, either(&domain, outside.into_iter().chain([padding])), inverse)))
    }

    /// Two logical indices with one image that the digits of a map show.
    fn digits_meet(&self, domain: &Domain, shape: &[Expr]) -> Option<[Vec<i64>; 2]> {
        if !self.indices.iter().any(has_bits) {
            return None;
        }
        let ranges: Vec<(Var, Range)> = self
            .params
            .iter()
            .zip(shape)
            .map(|(p, e)| (p.clone(), Range::upto(e.clone())))
            .collect();
        let (map, _) = bit_map(domain, &ranges, &self.indices)?;
        let extents: Vec<Option<i64>> = shape.iter().map(Expr::as_int).collect();
        // Where a size is open, it has to be large enough.
        let other = map.collision(&extents).filter(|_| extents.iter().all(Option::is_some))?;
        Some([vec![0; other.len()], other])
    }

    /// Fusions and splits with symbolic factors.
    fn by_structure(
        &self,
        engine: &Engine,
        domain: &Domain,
        shape: &[Expr],
        cells: &[Var],
    ) -> Result<Option<(Vec<Expr>, LayoutFacts)>> {
        let mut physical = Vec::new();
        let mut padding = Expr::bool(false);
        let mut inverse: Vec<Option<Expr>> = self.params.iter().map(|_| None).collect();
        for (p, (slot, extent)) in self.params.iter().zip(inverse.iter_mut().zip(shape)) {
            if extent.as_int() == Some(1) {
                *slot = Some(Expr::int(0, p.dtype()));
            }
        }
        // Axes in the order in which the indices have them.
        let (mut seen, mut in_order) = (Vec::new(), true);
        let indices: Vec<Expr> = self.indices.iter().map(|e| domain.simplify(e)).collect();
        let mut remainders: HashMap<usize, Expr> = HashMap::default();
        for (at, here) in indices.iter().enumerate() {
            if let Some(n) = remainders.remove(&at) {
                physical.push(n);
                continue;
            }
            let split = quotient(here).and_then(|(p, n)| {
                let rest = (at + 1..indices.len()).find(|k| {
                    remainder(&indices[*k]).is_some_and(|(q, m)| q == p && same_expr(&m, &n))
                })?;
                Some((self.params.iter().position(|q| *q == p)?, n, rest))
            });
            if let Some((axis, n, rest)) = split {
                let extent = shape[axis].clone().cast(self.params[axis].dtype());
                let flat = cells[at].expr() * &n + &cells[rest];
                let above = engine.domain().simplify(&(n.clone() + &extent - 1));
                physical.push(above.floordiv(n.clone()));
                let fills = extent.as_int().zip(n.as_int()).is_some_and(|(e, n)| e % n == 0);
                if !fills {
                    let beyond = flat.clone().greater_equal(extent);
                    padding = if padding.is_false() { beyond } else { padding.or(beyond) };
                }
                if inverse[axis].replace(flat).is_some() {
                    return Ok(None);
                }
                seen.push(axis);
                in_order &= rest == at + 1;
                remainders.insert(rest, n);
                continue;
            }
            let Some(extent) =
                self.fusion(domain, here, shape, &cells[at], &mut inverse, &mut seen)
            else {
                return Ok(None);
            };
            physical.push(engine.domain().simplify(&extent));
        }
        let Some(inverse) = inverse.into_iter().collect::<Option<Vec<Expr>>>() else {
            return Ok(None);
        };
        let ordered = in_order && seen.is_sorted();
        Ok(Some((physical, LayoutFacts { padding, inverse, ordered })))
    }

    /// The extent of an index in mixed radix; fills in the digits.
    fn fusion(
        &self,
        domain: &Domain,
        index: &Expr,
        shape: &[Expr],
        cell: &Var,
        inverse: &mut [Option<Expr>],
        seen: &mut Vec<usize>,
    ) -> Option<Expr> {
        let free = free_vars(index);
        let axes: Vec<usize> =
            (0..self.params.len()).filter(|k| free.contains(&self.params[*k])).collect();
        let dtype = cell.dtype();
        let mut factor = Expr::int(1, dtype);
        let mut sum = Expr::int(0, dtype);
        let mut digits = Vec::new();
        let mut left = cell.expr();
        for (nth, &k) in axes.iter().rev().enumerate() {
            let p = &self.params[k];
            let extent = shape[k].clone().cast(dtype);
            sum = p.expr().cast(dtype) * &factor + sum;
            let last = nth + 1 == axes.len();
            let digit = if last { left.clone() } else { left.clone().floormod(extent.clone()) };
            digits.push((k, digit.cast(p.dtype())));
            factor = extent::times(&factor, &extent).ok().filter(|f| f.dtype() == dtype)?;
            // Quotients by open sizes are taken one after the other: a quotient times its divisor and the remainder
            // then are the number.
            left = match factor.as_int() {
                Some(_) => cell.expr().floordiv(factor.clone()),
                None => left.floordiv(extent),
            };
        }
        if !domain.is_equal(&sum, index) {
            return None;
        }
        seen.extend(&axes);
        // The digits of a number in mixed radix, by construction: each is below its extent.
        for (k, digit) in digits {
            if inverse[k].replace(digit).is_some() {
                return None;
            }
        }
        Some(factor)
    }
}

impl PhysicalLayout {
    /// The cells with the range of each.
    pub fn ranges(&self) -> Vec<(Var, Range)> {
        self.cells
            .iter()
            .zip(&self.physical)
            .map(|(c, e)| (c.clone(), Range::upto(e.clone().cast(c.dtype()))))
            .collect()
    }

    /// Iteration variables over the cells, named after them.
    pub fn iters(&self) -> Vec<IterVar> {
        self.ranges()
            .into_iter()
            .map(|(c, domain)| IterVar::spatial(&Var::new(format!("v_{c}"), c.dtype()), domain))
            .collect()
    }
}

/// Box, padding and inverse of a map that is linear in the digits of its parameters; `None` for others.
fn linear(
    relation: &Relation,
    ranges: &[(Var, Range)],
    cells: &[Var],
) -> Option<Result<ByDigits, Unknown>> {
    let domain = relation.domain();
    let (map, widths) = bit_map(domain, ranges, relation.exprs())?;
    let extents: Vec<Option<i64>> = ranges.iter().map(|(_, r)| r.extent.as_int()).collect();
    let tried = relation.exprs().iter().zip(cells).enumerate().map(|(k, (index, cell))| {
        let greatest = map.greatest(k, &extents, MOST_POINTS);
        match greatest.and_then(|v| v.checked_add(1)) {
            Some(extent) => Ok(vec![Expr::int(extent, cell.dtype())]),
            None => domain.map(std::slice::from_ref(index))?.physical_shape(),
        }
    });
    let physical = match tried.collect::<Result<Vec<_>, Unknown>>() {
        Ok(physical) => physical.concat(),
        Err(why) => return Some(Err(why)),
    };
    let domain = domain.engine().domain_of(&in_box(cells, &physical), &[]);
    let (values, outside) = digits_back(&domain, &map, &widths, ranges, cells)?;
    Some(Ok((physical, either(&domain, outside), values)))
}

/// Cells with the range that a box gives each.
fn in_box(cells: &[Var], physical: &[Expr]) -> Vec<(Var, Range)> {
    let ranges = cells.iter().zip(physical);
    ranges.map(|(c, e)| (c.clone(), Range::upto(e.clone().cast(c.dtype())))).collect()
}

/// Whether one of some conditions holds.
fn either(domain: &Domain, conditions: impl IntoIterator<Item = Expr>) -> Expr {
    let some = conditions.into_iter().filter(|e| !e.is_false()).reduce(Expr::or);
    some.map_or_else(|| Expr::bool(false), |e| domain.simplify(&e))
}

/// Nodes of a condition for padding above which another one is looked for.
const LONG: u32 = 24;
/// Operations that may be spent on an image, since there is another way to say what is padding.
const BRIEF: u64 = 400_000;

/// The box of a map with an inverse, and where in it there is padding: what the image leaves of the box, or, where
/// that has no short form, where what the inverse gives is no index or does not lead back to the cell.
fn beside(
    relation: &Relation,
    ranges: &[(Var, Range)],
    defined: &[Expr],
    cells: &[Var],
    inverse: &[Expr],
) -> Result<(Vec<Expr>, Expr), Unknown> {
    let brief = relation.domain().engine().with_quota(BRIEF);
    let image = brief.domain_of(ranges, defined).map(relation.exprs()).and_then(|r| r.image(cells));
    let physical = match image {
        Ok(image) if image.padding.size() <= LONG => return Ok((image.shape, image.padding)),
        Ok(ref image) => image.shape.clone(),
        Err(_) => relation.physical_shape()?,
    };
    let domain = relation.domain().engine().domain_of(&in_box(cells, &physical), &[]);
    let mut back = Subst::vars(ranges.iter().map(|(v, _)| v.clone()).zip(inverse.iter().cloned()));
    let beyond = inverse.iter().zip(ranges).flat_map(|(value, (_, r))| {
        [value.clone().less(r.min.clone()), value.clone().greater_equal(r.min.clone() + &r.extent)]
    });
    let elsewhere =
        relation.exprs().iter().zip(cells).map(|(e, c)| back.expr(e).not_equal(c.expr()));
    let padding = either(&domain, beyond.chain(elsewhere).map(|e| domain.simplify(&e)));
    match image {
        Ok(image) if image.padding.size() <= padding.size() => Ok((image.shape, image.padding)),
        _ => Ok((physical, padding)),
    }
}

/// `p // n` of a variable by a factor that may be open.
fn quotient(e: &Expr) -> Option<(Var, Expr)> {
    by_factor(e, BinOp::FloorDiv)
}

/// `p % n`.
fn remainder(e: &Expr) -> Option<(Var, Expr)> {
    by_factor(e, BinOp::FloorMod)
}

fn by_factor(e: &Expr, wanted: BinOp) -> Option<(Var, Expr)> {
    match e.kind() {
        ExprKind::Binary(op, a, b) if *op == wanted && b.as_int().is_none_or(|n| n > 0) => {
            Some((a.as_var()?.clone(), b.clone()))
        }
        _ => None,
    }
}
