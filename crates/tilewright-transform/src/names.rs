//! Names that are all different.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::fold_block_children;
use tilewright_ir::{Block, Fold, TensorFunc};

use crate::cursor::blocks;

/// Names that are all different: `base`, `base_1`, `base_2`, ...
#[derive(Default)]
pub struct UniqueNames {
    taken: HashSet<Arc<str>>,
    next: HashMap<Arc<str>, usize>,
}

impl UniqueNames {
    /// Says that a name is taken.
    pub fn reserve(&mut self, name: Arc<str>) {
        self.taken.insert(name);
    }

    /// A name that was not taken, and is now.
    pub fn take(&mut self, base: &str) -> Arc<str> {
        if !self.taken.contains(base) {
            let name: Arc<str> = base.into();
            self.taken.insert(name.clone());
            return name;
        }
        let next = self.next.entry(base.into()).or_insert(1);
        loop {
            let name: Arc<str> = format!("{base}_{next}").into();
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The names of the blocks of a function, all of which are taken.
pub fn block_names(func: &TensorFunc) -> UniqueNames {
    let mut names = UniqueNames::default();
    blocks(func).iter().for_each(|b| names.reserve(b.name.clone()));
    names
}

/// A name for a new block that no block of the function has: `base`, `base_1`, ...
pub fn fresh_block_name(func: &TensorFunc, base: &str) -> Arc<str> {
    block_names(func).take(base)
}

/// The function with a different name for each block, by which schedules find them.
pub fn unique_blocks(func: &TensorFunc) -> TensorFunc {
    struct Rename(UniqueNames);
    impl Fold for Rename {
        fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
            let name = self.0.take(&b.name);
            let b = fold_block_children(self, b);
            if name == b.name { b } else { Arc::new(Block { name, ..(*b).clone() }) }
        }
    }
    TensorFunc { body: Rename(UniqueNames::default()).stmt(&func.body), ..func.clone() }
}
