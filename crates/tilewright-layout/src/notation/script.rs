//! Index maps as lambdas of TVMScript: `lambda i, j: [i // 4, j, i % 4]`.

use std::sync::Arc;

use tilewright_ir::{DType, Error, Result, Source, Var};
use tilewright_tvmscript::trace::parse_lambda;

use super::{Notation, Spec, dtype};
use crate::index_map::IndexMap;

/// `rank` is that of the shape; without one, the lambda has to name its parameters.
pub(super) fn read(source: &Arc<Source>, rank: Option<usize>) -> Result<Spec> {
    let text = parse_lambda(source)?;
    let Some(rank) = rank.or(text.rank()) else {
        return Err(Error::input("the lambda is one for any number of axes")
            .help("give the shape, or name its parameters"));
    };
    let dtypes: Vec<DType> = vec![dtype(); rank];
    let lambda = tilewright_ir::lambda::Lambda::new(text.text().to_owned(), move |dtypes| {
        let none: &[Var] = &[];
        text.bind(dtypes, none, &[])
    });
    let map = IndexMap::bind(&lambda, &dtypes).map_err(|e| e.in_source(source))?;
    Ok(Spec::new(Notation::Script, map))
}
