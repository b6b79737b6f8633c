//! Which functions of a module are conversions, each looked at once.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::{Buffer, GraphExpr, Result, TensorFunc, TensorType};

use super::conversion::Conversion;

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

    /// The conversion that a call does: of a tensor of the function's type, without scalars.
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
            (&args[..], &outs[..], &buffers[..], scalars.is_empty())
        else {
            return Ok(None);
        };
        let fits = |ty: &TensorType, b: &Buffer| {
            let shape: Option<Vec<i64>> = ty.shape.iter().map(|d| d.as_int()).collect();
            ty.dtype == b.dtype() && shape.is_some() && shape == b.const_shape()
        };
        let arg = arg.ty().as_tensor().is_some_and(|t| fits(t, from));
        if arg && fits(out, to) { self.func(name, f) } else { Ok(None) }
    }
}
