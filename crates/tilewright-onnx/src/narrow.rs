//! Element types that modules do not have: integers of less than eight bits, and floats of eight and
//! four.
//!
//! Their elements are kept in a byte each: an integer as its value in `int8` or `uint8`, a float as its
//! bits in `uint8`. That is how inputs and outputs of these types are given, too. Operators that only
//! move elements work on them as on bytes; conversions and quantisation know what they stand for;
//! others are refused.

use tilewright_ir::hash::HashMap;

use tilewright_ir::{DType, Error, Result};
use tilewright_ops::narrow::NarrowFloat;

use crate::proto::{DataType, GraphProto, NodeProto, TypeValue};

/// What the bytes of a value stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Narrow {
    /// Integers of so many bits.
    Int {
        /// Two or four.
        bits: u32,
        /// Whether they may be negative.
        signed: bool,
    },
    Float(NarrowFloat),
}

/// The types, by the numbers that files have for them.
const TYPES: [(DataType, Narrow, &str); 10] = [
    (DataType::Float8e4m3fn, Narrow::Float(NarrowFloat::E4M3Fn), "float8_e4m3fn"),
    (DataType::Float8e4m3fnuz, Narrow::Float(NarrowFloat::E4M3Fnuz), "float8_e4m3fnuz"),
    (DataType::Float8e5m2, Narrow::Float(NarrowFloat::E5M2), "float8_e5m2"),
    (DataType::Float8e5m2fnuz, Narrow::Float(NarrowFloat::E5M2Fnuz), "float8_e5m2fnuz"),
    (DataType::Float8e8m0, Narrow::Float(NarrowFloat::E8M0), "float8_e8m0fnu"),
    (DataType::Float4e2m1, Narrow::Float(NarrowFloat::E2M1), "float4_e2m1fn"),
    (DataType::Uint4, Narrow::Int { bits: 4, signed: false }, "uint4"),
    (DataType::Int4, Narrow::Int { bits: 4, signed: true }, "int4"),
    (DataType::Uint2, Narrow::Int { bits: 2, signed: false }, "uint2"),
    (DataType::Int2, Narrow::Int { bits: 2, signed: true }, "int2"),
];

/// Operators whose results are elements of their inputs.
const MOVES: [&str; 20] = [
    "Compress",
    "Concat",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Reshape",
    "ReverseSequence",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
];

/// Operators that know what narrow elements stand for, or do not look at them.
const KNOWS: [&str; 8] = [
    "BitCast",
    "Cast",
    "CastLike",
    "DequantizeLinear",
    "GatherBlockQuantized",
    "QuantizeLinear",
    "Shape",
    "Size",
];

impl Narrow {
    /// The type of this number in the file, where it is narrow.
    pub(crate) fn from_number(number: i32) -> Option<Narrow> {
        let known = DataType::try_from(number).ok()?;
        TYPES.iter().find(|t| t.0 == known).map(|t| t.1)
    }

    pub(crate) fn name(self) -> &'static str {
        TYPES.iter().find(|t| t.1 == self).map_or("", |t| t.2)
    }

    /// The type in which elements are kept.
    pub(crate) fn stored(self) -> DType {
        match self {
            Narrow::Int { signed: true, .. } => DType::I8,
            Narrow::Int { signed: false, .. } | Narrow::Float(_) => DType::U8,
        }
    }

    /// How many bits an element has in a file.
    pub(crate) fn bits(self) -> usize {
        match self {
            Narrow::Int { bits, .. } => bits as usize,
            Narrow::Float(NarrowFloat::E2M1) => 4,
            Narrow::Float(_) => 8,
        }
    }

    /// Elements as a file packs them, the first in the lowest bits of a byte, each in a byte of its
    /// own.
    pub(crate) fn unpack(self, packed: &[u8], count: usize) -> Vec<u8> {
        let (bits, per) = (self.bits(), 8 / self.bits());
        (0..count)
            .map(|k| {
                let byte = packed.get(k / per).copied().unwrap_or(0) >> (bits * (k % per));
                let low = byte & (0xffu8 >> (8 - bits));
                match self {
                    // The sign's bit fills those above it.
                    Narrow::Int { signed: true, .. } if low >> (bits - 1) == 1 => {
                        low | (0xffu8 << bits)
                    }
                    _ => low,
                }
            })
            .collect()
    }
}

/// The names of all narrow element types.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|t| t.2)
}

/// Which values of a model have narrow elements, by their names.
#[derive(Default)]
pub(crate) struct NarrowValues {
    of: HashMap<String, Narrow>,
    /// What the results of the current node are, where its importer says so.
    results: Option<Narrow>,
}

impl NarrowValues {
    /// Takes note of the inputs and constants of a graph, and of those inside of its nodes.
    pub(crate) fn declare(&mut self, graph: &GraphProto) {
        for t in &graph.initializer {
            self.of.extend(Narrow::from_number(t.data_type).map(|n| (t.name.clone(), n)));
        }
        for v in &graph.input {
            if let Some(TypeValue::Tensor(t)) = v.r#type.as_ref().and_then(|t| t.value.as_ref()) {
                self.of.extend(Narrow::from_number(t.elem_type).map(|n| (v.name.clone(), n)));
            }
        }
        let attributes = graph.node.iter().flat_map(|node| &node.attribute);
        attributes.filter_map(|a| a.g.as_deref()).for_each(|inner| self.declare(inner));
    }

    /// What the elements of an input of a node stand for.
    pub(crate) fn input(&self, node: &NodeProto, at: usize) -> Option<Narrow> {
        node.input.get(at).and_then(|name| self.of.get(name)).copied()
    }

    /// Says what the results of the current node stand for.
    pub(crate) fn results_are(&mut self, narrow: Narrow) {
        self.results = Some(narrow);
    }

    /// Before a node is imported.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where it has narrow inputs and does not know them.
    pub(crate) fn enter(&mut self, node: &NodeProto) -> Result<()> {
        self.results = None;
        let found = (0..node.input.len()).find_map(|k| Some((k, self.input(node, k)?)));
        let Some((at, narrow)) = found else { return Ok(()) };
        let op = node.op_type.as_str();
        if MOVES.contains(&op) || KNOWS.contains(&op) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "elements of type {} are not supported, which input {at} has",
            narrow.name()
        ))
        .help("convert them to float32 before, by Cast or DequantizeLinear"))
    }

    /// After it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where a graph of the node gives narrow elements.
    pub(crate) fn leave(&mut self, node: &NodeProto) -> Result<()> {
        for graph in node.attribute.iter().filter_map(|a| a.g.as_deref()) {
            if let Some(narrow) = graph.output.iter().find_map(|v| self.of.get(&v.name)) {
                return Err(Error::unsupported(format!(
                    "elements of type {} are not supported as results of branches and loops",
                    narrow.name()
                ))
                .help("convert them to float32 before, by Cast or DequantizeLinear"));
            }
        }

        let moved = match node.op_type.as_str() {
            "Constant" | "ConstantOfShape" => {
                let value = node.attribute.iter().find(|a| a.name == "value");
                value.and_then(|a| a.t.as_ref()).and_then(|t| Narrow::from_number(t.data_type))
            }
            op if MOVES.contains(&op) => (0..node.input.len()).find_map(|k| self.input(node, k)),
            _ => None,
        };
        let narrow = self.results.take().or(moved);
        // Two branches may use one name.
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            match narrow {
                Some(narrow) => drop(self.of.insert(name.clone(), narrow)),
                None => drop(self.of.remove(name)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_out_of_their_bytes() {
        let int4 = Narrow::Int { bits: 4, signed: true };
        assert_eq!(int4.unpack(&[0x8f, 0x07], 3), [0xff, 0xf8, 0x07]);
        let uint2 = Narrow::Int { bits: 2, signed: false };
        assert_eq!(uint2.unpack(&[0b11_10_01_00, 0b10], 5), [0, 1, 2, 3, 2]);
        assert_eq!(Narrow::Float(NarrowFloat::E2M1).unpack(&[0xa1], 2), [1, 10]);
        assert_eq!(Narrow::Float(NarrowFloat::E5M2).unpack(&[0xa1, 2], 2), [0xa1, 2]);
    }
}
