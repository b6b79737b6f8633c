//! Expressions of programs as sets of the engine, and back.

use std::collections::BTreeMap;
use tilewright_ir::hash::HashMap;

use presburger::{Aff, Budget, Relation};
use tilewright_check::program::{Expr, INFIX, Var};

/// Operations that one certificate may take.
const BUDGET: u64 = 20_000_000;

/// Names of variables in the text of sets and of certificates.
pub(crate) struct Names {
    /// Sizes and products of sizes.
    pub params: Vec<String>,
    /// Products of sizes, by their names in order, and the names of the parameters that they are in sets.
    products: Vec<(Vec<String>, String)>,
    pub budget: Budget,
}

pub(crate) type Found<T> = Result<T, String>;

impl Names {
    pub fn new(params: Vec<String>) -> Names {
        Names { params, products: Vec::new(), budget: Budget::new(BUDGET) }
    }

    /// Makes parameters of the products of sizes in an expression: to sets, each is a size of its own.
    pub fn learn_products(&mut self, e: &Expr) {
        for factors in self.polynomial(e).into_iter().flat_map(BTreeMap::into_keys) {
            if factors.len() > 1 && self.products.iter().all(|(known, _)| *known != factors) {
                // Variables have no such name.
                let name = factors.join("'times'");
                self.params.push(name.clone());
                self.products.push((factors, name));
            }
        }
        if let Expr::Op(_, args) | Expr::Load(_, args) = e {
            args.iter().for_each(|a| self.learn_products(a));
        }
    }

    /// Products of sizes, by the names of these in order, with their coefficients.
    fn polynomial(&self, e: &Expr) -> Option<BTreeMap<Vec<String>, i128>> {
        Some(match e {
            Expr::Int(k) => BTreeMap::from([(Vec::new(), *k)]),
            Expr::Var(v) => {
                let name = self.params.iter().find(|name| ***name == **v)?;
                BTreeMap::from([(vec![name.clone()], 1)])
            }
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("cast.int32" | "cast.int64", [a]) => self.polynomial(a)?,
                (op @ ("+" | "-"), [a, b]) => {
                    let mut sum = self.polynomial(a)?;
                    for (factors, k) in self.polynomial(b)? {
                        let old = sum.entry(factors).or_default();
                        *old = old.checked_add(if op == "-" { k.checked_neg()? } else { k })?;
                    }
                    sum
                }
                ("*", [a, b]) => {
                    let (a, b) = (self.polynomial(a)?, self.polynomial(b)?);
                    let mut product = BTreeMap::<_, i128>::new();
                    for ((x, k), (y, l)) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
                        let mut factors = [x.as_slice(), y].concat();
                        factors.sort_unstable();
                        let old = product.entry(factors).or_default();
                        *old = old.checked_add(k.checked_mul(*l)?)?;
                    }
                    product
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// What the engine answered.
    pub fn known<T>(&self, answer: Result<T, presburger::Stop>) -> Found<T> {
        answer.map_err(|e| format!("the sets are not known: {e}"))
    }

    fn list(&self, vars: &[Var]) -> String {
        vars.join(", ")
    }

    /// The points of some variables at which a condition holds.
    pub fn set(&self, vars: &[Var], condition: &Expr) -> Found<Relation> {
        let text = self.condition(condition, true)?;
        self.parse(&format!("{{ [{}] : {text} }}", self.list(vars)))
    }

    /// The map from the points at which a condition holds to some values.
    pub fn map(&self, vars: &[Var], values: &[Expr], condition: &Expr) -> Found<Relation> {
        let to: Vec<String> = (0..values.len()).map(|k| format!("to'{k}")).collect();
        let mut text = self.condition(condition, true)?;
        for (name, value) in to.iter().zip(values) {
            text += &format!(" and {name} = {}", self.index(value)?);
        }
        self.parse(&format!("{{ [{}] -> [{}] : {text} }}", self.list(vars), to.join(", ")))
    }

    fn parse(&self, text: &str) -> Found<Relation> {
        let text = format!("[{}] -> {text}", self.params.join(", "));
        Relation::parse(&text).map_err(|e| format!("{e} in `{text}`"))
    }

    fn index(&self, e: &Expr) -> Found<String> {
        let not = || Err(format!("`{e:?}` is not affine"));
        Ok(match e {
            Expr::Int(v) => format!("({v})"),
            Expr::Var(v) => v.to_string(),
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("cast.int32" | "cast.int64", [a]) => self.index(a)?,
                (op @ ("+" | "-"), [a, b]) => {
                    format!("({} {op} {})", self.index(a)?, self.index(b)?)
                }
                ("*", [Expr::Int(k), a] | [a, Expr::Int(k)]) => {
                    format!("({k} * {})", self.index(a)?)
                }
                ("//", [a, Expr::Int(k)]) if *k > 0 => format!("floor(({}) / {k})", self.index(a)?),
                ("%", [a, Expr::Int(k)]) if *k > 0 => {
                    let a = self.index(a)?;
                    format!("({a} - {k} * floor(({a}) / {k}))")
                }
                ("*", _) => {
                    let Some(sum) = self.polynomial(e) else { return not() };
                    let term = |(factors, k): (Vec<String>, i128)| match factors.as_slice() {
                        [] => Some(format!("({k})")),
                        [size] => Some(format!("({k} * {size})")),
                        _ => {
                            let (_, name) = self.products.iter().find(|(of, _)| *of == factors)?;
                            Some(format!("({k} * {name})"))
                        }
                    };
                    let terms: Option<Vec<String>> = sum.into_iter().map(term).collect();
                    let terms = terms.ok_or("a product that is not known")?;
                    format!("({})", terms.join(" + "))
                }
                _ => return not(),
            },
            _ => return not(),
        })
    }

    fn condition(&self, e: &Expr, holds: bool) -> Found<String> {
        let Expr::Op(op, args) = e else { return Err(format!("`{e:?}` is no condition")) };
        Ok(match (op.as_str(), args.as_slice()) {
            ("true" | "false", []) => {
                if (op == "true") == holds { "0 = 0" } else { "0 = 1" }.to_owned()
            }
            ("not", [a]) => self.condition(a, !holds)?,
            (op @ ("and" | "or"), [a, b]) => {
                let word = if (op == "and") == holds { "and" } else { "or" };
                format!("({} {word} {})", self.condition(a, holds)?, self.condition(b, holds)?)
            }
            (op @ ("<" | "<=" | ">" | ">=" | "==" | "!="), [a, b]) => {
                let sign = match (op, holds) {
                    ("<", true) | (">=", false) => "<",
                    ("<=", true) | (">", false) => "<=",
                    (">", true) | ("<=", false) => ">",
                    (">=", true) | ("<", false) => ">=",
                    ("==", true) | ("!=", false) => "=",
                    _ => "!=",
                };
                format!("{} {sign} {}", self.index(a)?, self.index(b)?)
            }
            _ => return Err(format!("`{e:?}` is no condition of indices")),
        })
    }

    /// The conjunctions of a set over some variables, as conditions.
    pub fn conditions(&self, set: &Relation, vars: &[Var]) -> Found<Vec<Expr>> {
        let set = self.known(set.compute_divs(&self.budget))?;
        let parts = set.constraints();
        let part = |rows: &Vec<(Aff, bool)>| {
            rows.iter().try_fold(Expr::truth(), |all, (aff, is_zero)| {
                let sign = if *is_zero { "==" } else { ">=" };
                Ok(all.and(Expr::op(sign, vec![self.numerator(aff, vars)?, Expr::Int(0)])))
            })
        };
        parts.iter().map(part).collect()
    }

    /// A function of sizes and some variables.
    pub fn function(&self, aff: &Aff, vars: &[Var]) -> Found<Expr> {
        let sum = self.numerator(aff, vars)?;
        Ok(match aff.denominator() {
            1 => sum,
            by => Expr::op("//", vec![sum, Expr::Int(by)]),
        })
    }

    fn numerator(&self, aff: &Aff, vars: &[Var]) -> Found<Expr> {
        let mut terms: Vec<(i128, Expr)> = Vec::new();
        let mut add = |k: i128, e: Expr| terms.extend((k != 0).then_some((k, e)));
        for at in 0..aff.dims() {
            let e = match at.checked_sub(self.params.len()) {
                Some(k) => Expr::Var(vars.get(k).ok_or("a set of other variables")?.clone()),
                None => self.param(at)?,
            };
            add(aff.coefficient(at), e);
        }
        for div in 0..aff.divs() {
            if aff.div_coefficient(div) != 0 {
                let of = aff.div(div);
                let whole =
                    Expr::op("//", vec![self.numerator(&of, vars)?, Expr::Int(of.denominator())]);
                add(aff.div_coefficient(div), whole);
            }
        }
        add(aff.constant(), Expr::Int(1));
        // What is added comes first.
        terms.sort_by_key(|(k, _)| *k < 0);
        let times = |(k, e): (i128, Expr)| match (k.abs(), e) {
            (k, Expr::Int(1)) => Expr::Int(k),
            (1, e) => e,
            (k, e) => Expr::op("*", vec![e, Expr::Int(k)]),
        };
        let sum = terms.into_iter().fold(None, |sum, (k, e)| {
            let term = times((k, e));
            Some(match sum {
                None if k < 0 => Expr::op("-", vec![Expr::Int(0), term]),
                None => term,
                Some(sum) => Expr::op(if k < 0 { "-" } else { "+" }, vec![sum, term]),
            })
        });
        Ok(sum.unwrap_or(Expr::Int(0)))
    }

    fn param(&self, at: usize) -> Found<Expr> {
        let name = self.params.get(at).ok_or("a set of other sizes")?;
        if let Some((factors, _)) = self.products.iter().find(|(_, product)| product == name) {
            let factors = factors.iter().map(|factor| {
                let at = self.params.iter().position(|p| p == factor);
                self.param(at.ok_or("a factor that is no size")?)
            });
            let factors: Vec<Expr> = factors.collect::<Found<_>>()?;
            let product = factors.into_iter().reduce(|a, b| Expr::op("*", vec![a, b]));
            return product.ok_or_else(|| "a product of nothing".into());
        }
        Ok(Expr::Var(name.as_str().into()))
    }
}

/// An index or a condition as it stands in a certificate.
pub(crate) fn text(e: &Expr) -> String {
    match e {
        Expr::Int(v) => v.to_string(),
        Expr::Literal(number) => number.clone(),
        Expr::Var(v) => v.to_string(),
        Expr::Load(..) => format!("{e:?}"),
        Expr::Op(op, args) => match args.as_slice() {
            [a, b] if INFIX.contains(&op.as_str()) => format!("({} {op} {})", text(a), text(b)),
            args => {
                let args: Vec<String> = args.iter().map(|a| format!(" {}", text(a))).collect();
                format!("({op}{})", args.concat())
            }
        },
    }
}

/// The same of several ones, in brackets.
pub(crate) fn list(exprs: &[Expr]) -> String {
    format!("({})", exprs.iter().map(text).collect::<Vec<_>>().join(" "))
}

/// An expression in which variables have values.
pub(crate) fn placed(e: &Expr, place: &HashMap<Var, Expr>) -> Expr {
    match e {
        Expr::Var(v) => place.get(v).unwrap_or(e).clone(),
        Expr::Op(op, args) => Expr::Op(op.clone(), args.iter().map(|a| placed(a, place)).collect()),
        Expr::Load(b, at) => Expr::Load(*b, at.iter().map(|a| placed(a, place)).collect()),
        _ => e.clone(),
    }
}
