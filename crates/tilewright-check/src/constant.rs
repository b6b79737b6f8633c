//! What is said of constants is compared with them, cell by cell.

use crate::certificate::Certificate;
use crate::oracle::{Judged, Wrong};
use crate::program::Expr;

/// Compares constants cell by cell.
pub(crate) fn constants(c: &Certificate) -> Judged<()> {
    for pack in &c.packs {
        let wrong = |what: &str| Wrong::at(pack.line, what);
        let [before, after] =
            [0, 1].map(|side| c.constant(side, pack.constants[side]).map_err(|e| wrong(&e)));
        let (before, after) = (before?, after?);
        let type_of = |side: usize, at: usize| &c.programs[side].buffers[at].dtype;
        if type_of(0, before.buffer) != type_of(1, after.buffer) {
            return Err(wrong("the constants have different types"));
        }
        if pack.into.len() != after.shape.len() {
            return Err(wrong("the constant has another number of axes"));
        }
        for (place, value) in after.cells(&pack.into) {
            if pack.condition.at(&place) == Some(0) {
                continue;
            }
            let from: Option<Vec<i128>> = pack.map.iter().map(|e| e.at(&place)).collect();
            if from.and_then(|from| before.value(&from)) != Some(value) {
                return Err(wrong(&format!("{value} does not lie where the map says")));
            }
        }
    }
    for (line, at) in &c.cells {
        let wrong = |what: &str| Wrong::at(*line, what);
        let fact = &c.programs[1].facts[*at];
        let wanted = fact.value.constant();
        let constants = &c.programs[1].constants;
        let constant = constants.iter().find(|c| c.buffer == fact.buffer);
        let constant = constant.ok_or_else(|| wrong("there is no such constant"))?;
        for (place, value) in constant.cells(&fact.loops) {
            let holds = fact.condition.at(&place) == Some(0)
                || Expr::Literal(value.to_owned()).constant() == wanted && wanted.is_some();
            if !holds {
                return Err(wrong(&format!("one of the cells holds {value}")));
            }
        }
    }
    Ok(())
}
