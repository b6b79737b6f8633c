//! Attributes and annotations: `{"key": value, ...}`.

use ruff_python_ast as ast;
use tilewright_ir::{Attr, Attrs, Error, Result, Var, text};

use crate::args::{elements, string};
use crate::expr::{ExprParser, Space};
use crate::value::TextValue;

impl ExprParser {
    /// A dictionary with text keys.
    pub(crate) fn attrs(&mut self, e: &ast::Expr) -> Result<Attrs> {
        let ast::Expr::Dict(d) = e else {
            return Err(self.error(e, "expected a dictionary").help("write {\"key\": value}"));
        };
        let mut attrs = Attrs::new();
        for item in &d.items {
            let Some(key) = &item.key else {
                return Err(self.error(&item.value, "expected `\"key\": value`"));
            };
            let value = self.attr(&item.value)?;
            if attrs.insert(string(key)?.into(), value).is_some() {
                return Err(self.error(key, format!("the key `{}` stands twice", string(key)?)));
            }
        }
        Ok(attrs)
    }

    /// The value of an attribute.
    pub(crate) fn attr(&mut self, e: &ast::Expr) -> Result<Attr> {
        match e {
            ast::Expr::List(_) | ast::Expr::Tuple(_) => {
                elements(e).iter().map(|e| self.attr(e)).collect::<Result<_>>().map(Attr::List)
            }
            ast::Expr::Dict(_) => self.attrs(e).map(Attr::Map),
            ast::Expr::Call(c) => match self.path(&c.func) {
                Some((Space::T, name)) if name == "index_map" => self.index_map(c),
                _ => self.scalar_attr(e),
            },
            _ => self.scalar_attr(e),
        }
    }

    /// A value that is no list and no dictionary.
    pub(crate) fn scalar_attr(&mut self, e: &ast::Expr) -> Result<Attr> {
        Ok(match self.value(e)? {
            TextValue::None => Attr::None,
            TextValue::Bool(v) => Attr::Bool(v),
            TextValue::Float(v) => Attr::Float(v),
            TextValue::Str(s) => Attr::Str(s),
            TextValue::Int(v) => Attr::Int(
                i64::try_from(v)
                    .map_err(|_| self.error(e, format!("{v} does not fit in 64 bits")))?,
            ),
            TextValue::Typed(x) => Attr::Expr(x),
            v @ (TextValue::Undef | TextValue::Buffer(_)) => {
                Attr::Expr(v.typed(self.int).map_err(|err| err.at(self.span(e)))?)
            }
        })
    }

    /// `T.index_map(lambda i, j: (i, j // 4, j % 4))` as text, in which the parameters are
    /// called `i0`, `i1`, ... and everything is as the printer would write it.
    fn index_map(&mut self, c: &ast::ExprCall) -> Result<Attr> {
        let Some(ast::Expr::Lambda(l)) = c.arguments.args.first() else {
            return Err(no_index_map().at(self.span(c)));
        };
        self.env.push();
        let result = self.lambda_text(l);
        self.env.pop();
        result.map(|text| Attr::Str(text.into())).map_err(|err| err.at(self.span(l)))
    }

    fn lambda_text(&mut self, l: &ast::ExprLambda) -> Result<String> {
        let mut names = Vec::new();
        for (i, p) in l.parameters.iter().flat_map(|p| p.iter_non_variadic_params()).enumerate() {
            let var = Var::new(format!("i{i}"), self.int);
            names.push(var.name().clone());
            self.env.insert(p.parameter.name.as_str(), crate::env::Item::Var(var));
        }
        let mut results = Vec::new();
        let mut plain = text::Hints(self.int);
        for e in elements(&l.body) {
            results.push(text::expr_to_string(&self.expr(e)?, &mut plain));
        }
        Ok(format!("lambda {}: {}", text::commas(names), text::tuple(results)))
    }
}

fn no_index_map() -> Error {
    Error::syntax("expected `T.index_map(lambda i, ...: (...))`")
}
