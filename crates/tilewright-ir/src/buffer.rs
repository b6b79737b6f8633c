//! Buffers: typed multi-dimensional storage that loads and stores name.

use std::any::Any;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{Expr, Var, by_identity, fresh_id};

/// A buffer. Equality and hashing go by identity, never by name or shape.
#[derive(Clone)]
pub struct Buffer(Arc<BufferData>);

/// What a [`Buffer`] is made of. Shapes and strides count elements.
#[derive(Clone, Debug)]
pub struct BufferData {
    id: u64,
    /// Name: a hint for printing.
    pub name: Arc<str>,
    /// Type of the elements.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<Expr>,
    /// Distance of neighbours along each axis; empty for row-major without gaps.
    pub strides: Vec<Expr>,
    /// Offset of the first element from `data`; `None` for zero.
    pub elem_offset: Option<Expr>,
    /// Where the memory lives: `global`, `local`, `shared`, ...
    pub scope: Arc<str>,
    /// Alignment of `data` in bytes; 0 for the default.
    pub align: u32,
    /// `elem_offset` is a multiple of this; 0 where nothing is known.
    pub offset_factor: u32,
    /// Positions between axes where a physical axis ends and the next one begins: with
    /// separators `[2]` and shape `[a, b, c]`, the physical axes are `a * b` and `c`.
    pub axis_separators: Vec<usize>,
    /// The pointer. Buffers with one pointer are views of one memory.
    pub data: Var,
    /// What computes the cells, for the time until there is a function that does.
    producer: Option<Producer>,
}

/// What computes a buffer, to whoever reads it: a matter of those who build functions.
#[derive(Clone)]
struct Producer(Arc<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>);

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Producer")
    }
}

impl Buffer {
    /// A new compact buffer in global memory with a pointer of its own.
    pub fn new(name: impl Into<Arc<str>>, shape: Vec<Expr>, dtype: DType) -> Self {
        let name = name.into();
        let data = Var::new(name.clone(), DType::HANDLE);
        Buffer(Arc::new(BufferData {
            id: fresh_id(),
            name,
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: None,
            scope: "global".into(),
            align: 0,
            offset_factor: 0,
            axis_separators: Vec::new(),
            data,
            producer: None,
        }))
    }

    /// A new compact buffer with constant `int32` extents.
    pub fn with_extents(name: impl Into<Arc<str>>, shape: &[i64], dtype: DType) -> Self {
        Self::new(name, shape.iter().map(|&d| Expr::int(d, DType::I32)).collect(), dtype)
    }

    /// A new buffer (new identity) that differs from this one as `edit` says. It keeps the
    /// pointer: give it a new one where it is other memory.
    pub fn derive(&self, edit: impl FnOnce(&mut BufferData)) -> Self {
        let mut data = (*self.0).clone();
        data.id = fresh_id();
        data.producer = None;
        edit(&mut data);
        Buffer(Arc::new(data))
    }

    /// Like [`Buffer::derive`], with a pointer of its own.
    pub fn derive_storage(&self, edit: impl FnOnce(&mut BufferData)) -> Self {
        self.derive(|d| {
            edit(d);
            d.data = Var::new(d.name.clone(), DType::HANDLE);
        })
    }

    /// This buffer, which holds what computes its cells.
    pub fn produced_by<T>(&self, producer: Arc<T>) -> Self
    where
        T: Any + Send + Sync + UnwindSafe + RefUnwindSafe,
    {
        let mut data = (*self.0).clone();
        data.producer = Some(Producer(producer));
        Buffer(Arc::new(data))
    }

    /// What [`produced_by`](Self::produced_by) was told.
    pub fn producer<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let Producer(producer) = self.0.producer.clone()?;
        let producer: Arc<dyn Any + Send + Sync> = producer;
        producer.downcast().ok()
    }

    /// The producer, where this is the last to hold the buffer, and nobody else holds the producer.
    pub fn into_producer<T: Any + Send + Sync>(self) -> Option<T> {
        let Producer(producer) = Arc::into_inner(self.0)?.producer?;
        let producer: Arc<dyn Any + Send + Sync> = producer;
        Arc::into_inner(producer.downcast().ok()?)
    }

    /// The identity.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// The extents, where all are constants.
    pub fn const_shape(&self) -> Option<Vec<i64>> {
        self.0.shape.iter().map(Expr::as_int).collect()
    }

    /// What a read out of range gives: zero in a texture whose axes are its physical axes, since an image
    /// has a border; `None` where such a read is not allowed.
    pub fn border(&self) -> Option<f64> {
        let is_image = self.0.scope.starts_with("global.texture");
        (is_image && self.rank() == self.0.axis_separators.len() + 1).then_some(0.0)
    }

    /// The extents of the physical axes, where they are constants.
    pub fn physical_shape(&self) -> Option<Vec<i64>> {
        let shape = self.const_shape()?;
        let ends = self.0.axis_separators.iter().copied().chain([shape.len()]);
        let mut start = 0;
        let mut sizes = Vec::new();
        for end in ends {
            let axes = shape.get(start..end)?;
            sizes.push(axes.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?);
            start = end;
        }
        Some(sizes)
    }

    /// Whether its cells lie one after the other, the last axis first, from where its memory
    /// starts.
    pub fn is_row_major(&self) -> bool {
        self.0.strides.is_empty()
            && self.0.elem_offset.as_ref().is_none_or(|o| o.as_int() == Some(0))
    }

    /// Reads an element.
    pub fn load(&self, indices: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::load(self, indices.into_iter().collect())
    }
}

impl std::ops::Deref for Buffer {
    type Target = BufferData;
    fn deref(&self) -> &BufferData {
        &self.0
    }
}

by_identity!(Buffer);

/// Its name.
impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
