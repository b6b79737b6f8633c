//! Relations: index maps on a domain.
//!
//! A [`Relation`] maps each point of a [`Domain`] to a tuple of expressions: the index map of a
//! layout, the indices of an access. It answers what a layout needs:
//!
//! * is it injective, and if not, which two logical indices collide;
//! * the *physical shape*: the smallest box from zero that holds the image, also symbolic;
//! * the *padding*: the cells of that box that no logical index reaches, as a condition;
//! * the inverse on the image, and composition with a further map.
//!
//! ```
//! # use tilewright_ir::Var;
//! # use tilewright_polyhedral::Engine;
//! let engine = Engine::new();
//! let i = Var::index("i");
//! let (io, ii) = (Var::index("io"), Var::index("ii"));
//! let map = engine.box_of(&[(i.clone(), 14)])
//!     .map(&[i.expr().floordiv(4), i.expr().floormod(4)])?;
//! assert!(map.collision()?.is_none());
//! let image = map.image(&[io.clone(), ii.clone()])?;
//! assert_eq!(image.shape.iter().map(|e| e.to_string()).collect::<Vec<_>>(), ["4", "4"]);
//! assert_eq!(image.padding.to_string(), "io == 3 and ii >= 2");
//! assert_eq!(map.inverse(&[io, ii])?[0].to_string(), "io * 4 + ii");
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Limits.** Indices that are not affine (`A[i]`, `i // n` under an unknown `n`) make the image
//! and the inverse unknown; `n * m` that does not vary with the domain's variables is a symbolic
//! size like any other.

use std::fmt;

use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Expr, Var};

use crate::answer::{Known, Proof, Reason, Unknown, Witness};
use crate::domain::Domain;
use crate::domain::forgotten;
use crate::form::{Atom, Pred, Sum};
use crate::render;
use crate::set::Set;
use crate::space::Space;

/// A function from the points of a domain to tuples of integers. A clone shares it.
#[derive(Clone)]
pub struct Relation {
    pub(crate) domain: Domain,
    pub(crate) exprs: Vec<Expr>,
    pub(crate) sums: Vec<Sum>,
}

/// The cells that a map reaches, in their box.
#[derive(Clone)]
pub struct Image {
    /// The extents of the box from zero that holds every cell, as of [`Relation::physical_shape`].
    pub shape: Vec<Expr>,
    /// The cells of the box, over the variables that were given for them.
    pub cells: Domain,
    /// The cells that are reached.
    pub reached: Set,
    /// Holds at the cells of the box that are not reached; the constant false without padding.
    /// Where the reached cells are one conjunction of constraints, this is the disjunction of
    /// their negations, each in its shortest form.
    pub padding: Expr,
}

/// Two points of a domain that a map sends to one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// One point.
    pub first: Witness,
    /// Another.
    pub second: Witness,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) and ({}) have one image", self.first, self.second)
    }
}

impl Domain {
    /// The map from each point to the values of some integer expressions.
    pub fn map(&self, exprs: &[Expr]) -> Known<Relation> {
        let mut normalizer = self.normalizer();
        let sums = exprs.iter().map(|e| normalizer.sum(e)).collect::<Known<Vec<_>>>()?;
        let domain = self.reached(|f| sums.iter().for_each(|s| s.atoms(f)))?;
        Ok(Relation { domain, exprs: exprs.to_vec(), sums })
    }
}

impl Relation {
    /// The points that are mapped.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// What they are mapped to.
    pub fn exprs(&self) -> &[Expr] {
        &self.exprs
    }

    /// What keeps the map from being known point by point.
    pub(crate) fn hidden_terms(&self) -> Option<Unknown> {
        let hidden = self.domain.hidden();
        let mut used: Vec<Atom> = Vec::new();
        for s in &self.sums {
            s.atoms(&mut |a| {
                if hidden.contains(a) && !used.contains(a) {
                    used.push(a.clone());
                }
            });
        }
        forgotten(&used)
    }

    /// The atoms that do not vary from point to point, and the values of the map with them.
    fn with_symbolic(&self) -> (Vec<Atom>, Vec<Sum>) {
        let d = &self.domain;
        let hidden = d.hidden();
        let symbolic = d.space.atoms[d.vars..].iter().filter(|a| !hidden.contains(a));
        let symbolic: Vec<Atom> = symbolic.cloned().collect();
        let sums = self.sums.iter().cloned().chain(symbolic.iter().cloned().map(Sum::atom));
        let sums = sums.collect();
        (symbolic, sums)
    }

    /// Whether there is a variable for each value.
    pub(crate) fn fits(&self, cells: &[Var]) -> Known<()> {
        if cells.len() != self.sums.len() {
            let what = format!("{} variables for {} indices", cells.len(), self.sums.len());
            return Err(Reason::Mismatch(what).into());
        }
        Ok(())
    }

    /// Two points with one image, or `None` if the map is injective for all symbolic sizes.
    pub fn collision(&self) -> Known<Option<Collision>> {
        let d = &self.domain;
        d.ask(|| {
            let (_, sums) = self.with_symbolic();
            let graph = d.space.graph(&sums)?.intersect_domain(&d.set()?)?;
            if graph.is_injective()? {
                return Ok(None);
            }
            if let Some(why) = self.hidden_terms().or_else(|| d.vague()) {
                return Err(why);
            }
            let same = d.set()?.identity()?;
            let pairs = graph.then(&graph.reverse())?.subtract(&same)?;
            if pairs.is_empty()? {
                return Ok(None);
            }
            if let Some(why) = forgotten(&d.hidden()) {
                return Err(why);
            }
            // The points side by side, under other names for the second one.
            let renamed = d.space.atoms.iter().map(|a| match a.as_var() {
                Some(v) => Atom::var(&v.fresh()),
                None => a.clone(),
            });
            let atoms: Vec<Atom> = d.space.atoms.iter().cloned().chain(renamed).collect();
            let flat = pairs.wrap();
            let n = d.space.atoms.iter().filter(|a| a.as_var().is_some()).count();
            let both = Domain::of_raw(&d.engine, atoms, 0, flat.clone());
            let point = both.friendly_point(&flat)?;
            let Some(Witness { values }) = point else {
                return Err(Reason::TooLarge.into());
            };
            let (first, second) = values.split_at(n.min(values.len()));
            let names = first.iter().map(|(v, _)| v.clone());
            let values = names.zip(second.iter().map(|(_, x)| *x)).collect();
            let first = Witness { values: first.to_vec() };
            Ok(Some(Collision { first, second: Witness { values } }))
        })
    }

    /// The values that are taken, over one variable an expression.
    ///
    /// The result is exact unless indices or guards are not affine.
    pub fn range(&self, cells: &[Var]) -> Known<Set> {
        let d = &self.domain;
        self.fits(cells)?;
        d.ask(|| {
            let (symbolic, sums) = self.with_symbolic();
            let raw = d.set()?.apply(&d.space.graph(&sums)?)?.coalesce()?;
            let atoms = cells.iter().map(Atom::var).chain(symbolic).collect();
            let vague = d.vague().or_else(|| forgotten(&d.hidden()));
            let points = Domain::of_raw(&d.engine, atoms, cells.len(), raw);
            Ok(Set { points: points.blurred(vague) })
        })
    }

    /// The extents of the smallest box from zero that holds the image, in symbolic sizes. An index that is
    /// below a constant whatever the variables are (`i % 8`) has that extent where a size is open: tiles
    /// are whole for every size, and what is smaller than one is padded to one.
    ///
    /// # Errors
    /// [`Reason::Mismatch`] for an index that can be negative, with the point.
    pub fn physical_shape(&self) -> Known<Vec<Expr>> {
        let d = &self.domain;
        d.ask(|| {
            let mut shape = Vec::new();
            for (s, e) in self.sums.iter().zip(&self.exprs) {
                match d.refute(Pred::ge(s.clone()).negate()?)? {
                    Proof::Yes => {}
                    Proof::No { witness } => {
                        let what = format!("`{e}` is negative at {witness}");
                        return Err(Reason::Mismatch(what).into());
                    }
                    Proof::Unknown(why) => return Err(why),
                }
                let symbolic = d.space.len() > d.vars;
                let extent = match d.sum_bounds(s)? {
                    (_, Some(hi)) if !symbolic => {
                        let extent = i128::from(hi) + 1;
                        let e = render::sum(&Sum::constant(extent), e.dtype());
                        e.ok_or_else(|| Unknown::from(Reason::TooLarge))?
                    }
                    _ => d.extreme(&s.clone().offset(1)?, &[], true, e.dtype())?,
                };
                // What is below a constant for every value of every variable is a digit of a tile.
                let most = s.ends(&|_| (None, None)).1.filter(|_| extent.as_int().is_none());
                let tile = most
                    .and_then(|most| render::sum(&Sum::constant(most.checked_add(1)?), e.dtype()));
                shape.push(tile.unwrap_or(extent));
            }
            Ok(shape)
        })
    }

    /// The physical box, the cells in it that are reached, and those that are padding. `cells`
    /// names the physical indices.
    pub fn image(&self, cells: &[Var]) -> Known<Image> {
        let d = &self.domain;
        d.ask(|| {
            let shape = self.physical_shape()?;
            let reached = self.range(cells)?;
            if let Some(why) = reached.points.vague() {
                return Err(why);
            }
            // The image as its inverse tells it may be one conjunction where a projection is many.
            match self.in_box(cells, shape.clone(), reached) {
                Err(e) if matches!(e.reason(), Reason::NoClosedForm) => {
                    let Some(reached) = self.range_by_inverse(cells)? else { return Err(e) };
                    self.in_box(cells, shape, reached)
                }
                image => image,
            }
        })
    }

    /// The cells that are reached, in the box of a shape.
    fn in_box(&self, cells: &[Var], shape: Vec<Expr>, reached: Set) -> Known<Image> {
        let mut in_box = Vec::new();
        let mut normalizer = self.domain.engine.normalizer();
        for (cell, extent) in cells.iter().zip(&shape) {
            let value = Sum::var(cell);
            in_box.push(Pred::ge(value.clone()));
            in_box.push(Pred::ge(normalizer.sum(extent)?.plus(&value, -1)?.offset(-1)?));
        }
        // What holds of the symbolic sizes, holds here too.
        let Domain { space, vars, .. } = &reached.points;
        let set = reached.points.set()?;
        let symbolic = &space.atoms[*vars..];
        let context = space.gather(space.scatter(set.clone(), symbolic)?, symbolic)?;
        let cells = reached.points.within(context).constrain(in_box);
        let inside = cells.space.gather(set.clone(), &space.atoms)?;
        let padding = match cells.complement_form(&inside)? {
            Some(padding) => Some(padding),
            None => {
                let outside = cells.set()?.subtract(&inside)?.coalesce()?;
                cells.closed_form(&outside, None, None)?
            }
        };
        let padding = padding.ok_or_else(|| Unknown::from(Reason::NoClosedForm))?;
        Ok(Image { shape, cells, reached, padding })
    }

    /// The cells that are reached, as those whose points by the inverse are in the domain, and reach them;
    /// `None` where the structure of the map tells no inverse.
    fn range_by_inverse(&self, cells: &[Var]) -> Known<Option<Set>> {
        let d = &self.domain;
        let Some(inverse) = self.inverse_by_structure(cells)? else { return Ok(None) };
        let (symbolic, _) = self.with_symbolic();
        let atoms: Vec<Atom> = cells.iter().map(Atom::var).chain(symbolic).collect();
        let space = Space::new(&d.engine.ctx, atoms.clone());
        let mut normalizer = d.engine.normalizer();
        let mut point = inverse.iter().map(|e| normalizer.sum(e)).collect::<Known<Vec<_>>>()?;
        point.extend(d.space.atoms[d.vars..].iter().cloned().map(Sum::atom));
        let mut back = Subst::vars(d.vars().cloned().zip(inverse.iter().cloned()));
        let mut is_reached = Vec::new();
        for (e, cell) in self.exprs.iter().zip(cells) {
            let value = normalizer.sum(&back.expr(e))?;
            is_reached.push(Pred::eq(value.plus(&Sum::var(cell), -1)?));
        }
        let raw = space.graph(&point)?.intersect_range(&d.set()?)?.domain()?;
        let raw = raw.intersect(&space.all(&is_reached)?)?;
        Ok(Some(Set { points: Domain::of_raw(&d.engine, atoms, cells.len(), raw) }))
    }

    /// The map that takes a cell to `exprs`, expressions of the variables `cells` that name the
    /// cells, after this one.
    pub fn then(&self, cells: &[Var], exprs: &[Expr]) -> Known<Relation> {
        self.fits(cells)?;
        let mut subst = Subst::vars(cells.iter().cloned().zip(self.exprs.iter().cloned()));
        let exprs: Vec<Expr> = exprs.iter().map(|e| self.domain.simplify(&subst.expr(e))).collect();
        self.domain.map(&exprs)
    }

    /// Whether both maps send every point of this one's domain to the same tuple.
    pub fn same_as(&self, other: &Relation) -> Proof {
        if self.exprs.len() != other.exprs.len() {
            return Proof::Unknown(Reason::Mismatch("tuples of different length".into()).into());
        }
        for (a, b) in self.exprs.iter().zip(&other.exprs) {
            match self.domain.equal(a, b) {
                Proof::Yes => {}
                proof => return proof,
            }
        }
        Proof::Yes
    }
}
