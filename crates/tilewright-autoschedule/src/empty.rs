//! Reductions that may have nothing to combine, since data decide how much there is: their initialisation
//! goes before the loops over what is combined (`decompose_reduction`), so that it runs in any case.

use std::sync::Arc;

use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{Block, Dim, Error, IterKind, Result, Stmt, StmtKind, TensorFunc, Visit};
use tilewright_schedule::{BlockRef, Schedule};

/// Moves the initialisations of such reductions out. Says what was refused.
pub(crate) fn initialise_before(sch: &mut Schedule, func: &Arc<str>) -> Vec<Error> {
    let names = match sch.func(func) {
        Ok(f) => within_loops(f),
        Err(e) => return vec![e],
    };
    let mut said = Vec::new();
    for name in names {
        let block = BlockRef { func: func.clone(), name };
        said.extend(initialise(sch, &block).err());
    }
    said
}

/// Before the innermost loop that the primitive takes: the outermost over the reduction.
fn initialise(sch: &mut Schedule, block: &BlockRef) -> Result<()> {
    let mut why = Error::refused(format!("the block `{block}` has no loops"));
    for l in sch.get_loops(block)?.iter().rev() {
        match sch.decompose_reduction(block, l) {
            Ok(_) => return Ok(()),
            Err(e) => why = e,
        }
    }
    Err(why)
}

/// Whether every reduction of a function is initialised, also where it has nothing to combine.
pub fn is_initialised(func: &TensorFunc) -> bool {
    within_loops(func).is_empty()
}

/// The blocks that initialise in the first iteration of a reduction that may have none.
fn within_loops(func: &TensorFunc) -> Vec<Arc<str>> {
    struct Find(Vec<Arc<str>>);
    impl Visit for Find {
        fn stmt(&mut self, s: &Stmt) {
            if let StmtKind::Block { block, .. } = s.kind()
                && block.init.is_some()
                && may_be_empty(block)
            {
                self.0.push(block.name.clone());
            }
            walk_stmt(self, s);
        }
    }
    let mut found = Find(Vec::new());
    found.stmt(&func.body);
    found.0
}

fn may_be_empty(block: &Block) -> bool {
    let reduced = block.iters.iter().filter(|i| i.kind == IterKind::Reduce);
    let certain = |d: Dim| d.at_least(1);
    reduced.into_iter().any(|i| !Dim::of(&i.domain.extent).is_some_and(certain))
}
