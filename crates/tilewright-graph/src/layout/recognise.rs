//! Which functions of a module are conversions, each looked at once.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::{Buffer, GraphExpr, Result, TensorFunc, TensorType, dim};

use super::conversion::Conversion;
use crate::call_sizes::{inside, passes_sizes};

/// The functions that have been looked at, by name.
#[derive(Default)]
pub struct Recognised(HashMap<Arc<str>, Option<Rc<Conversion>>>);

impl Recognised {
    /// The conversion that a function is.
    ///
    /// # Errors
    /// `Toolchain` where libisl is missing.
    pub fn func(&mut self, name: &Arc<str>, f: &TensorFunc) -> Result<Option<Rc<Conversion>>> {
        if let Some(found) = self.0.get(name) {
            return Ok(found.clone());
        }
        let found = Conversion::of(f)?.map(Rc::new);
        self.0.insert(name.clone(), found.clone());
        Ok(found)
    }

    /// The conversion that a call does: of a tensor of the function's type, without scalars other
    /// than sizes.
    ///
    /// # Errors
    /// `Toolchain` where libisl is missing.
    pub fn call(
        &mut self,
        name: &Arc<str>,
        f: &TensorFunc,
        call: &GraphExpr,
    ) -> Result<Option<Rc<Conversion>>> {
        let GraphExpr::CallTir { args, outs, scalars, .. } = call else { return Ok(None) };
        let buffers: Vec<&Buffer> = f.buffers().collect();
        let ([arg], [out], [from, to], true) =
            (&args[..], &outs[..], &buffers[..], passes_sizes(f, scalars))
        else {
            return Ok(None);
        };
        let fits = |ty: &TensorType, b: &Buffer| {
            let shape = inside(ty);
            ty.dtype == b.dtype() && shape.is_some() && shape == dim::of_shape(&b.shape)
        };
        let arg = arg.ty().as_tensor().is_some_and(|t| fits(t, from));
        if arg && fits(out, to) { self.func(name, f) } else { Ok(None) }
    }
}
