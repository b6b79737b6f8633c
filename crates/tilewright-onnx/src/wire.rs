//! How much memory a file will take once it is decoded, found without decoding it.
//!
//! Encoded, an empty message takes two bytes, in memory a few hundred: a small hostile file
//! could ask for a large amount of memory. [`decoded_size`] walks over the tags, adds up what
//! each message and list element will occupy, and touches no payload. Lists grow by doubling, so
//! each element counts twice.

use std::mem::size_of;

use crate::proto;

/// The messages whose fields matter here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Model,
    Graph,
    Function,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    /// Messages without lists or messages inside.
    Leaf,
}

/// Most messages inside of each other, as the decoder has it: graphs are nested through attributes.
const MAX_DEPTH: usize = 100;

/// What a field holds.
enum Field {
    /// A message: its kind, and the size of one in memory.
    Message(Message, usize),
    /// Numbers of this size in memory, packed or one at a time.
    Numbers(usize),
    /// A list of texts or byte strings.
    Texts,
    /// One text, byte string or number.
    Single,
}

fn field(of: Message, number: u64) -> Field {
    use Field::{Numbers, Single, Texts};
    use Message::*;
    match (of, number) {
        (Model, 7) => Field::Message(Graph, 0),
        (Model, 8) => Field::Message(Leaf, size_of::<proto::OperatorSetId>()),
        (Model, 25) => Field::Message(Function, size_of::<proto::FunctionProto>()),
        (Function, 7) => Field::Message(Node, size_of::<proto::NodeProto>()),
        (Function, 9) => Field::Message(Leaf, size_of::<proto::OperatorSetId>()),
        (Function, 11) => Field::Message(Attribute, size_of::<proto::AttributeProto>()),
        (Graph, 1) => Field::Message(Node, size_of::<proto::NodeProto>()),
        (Graph, 5) => Field::Message(Tensor, size_of::<proto::TensorProto>()),
        (Graph, 11 | 12) => Field::Message(ValueInfo, size_of::<proto::ValueInfoProto>()),
        (Function, 4 | 5) | (Node, 1 | 2) | (Attribute, 9) | (Tensor, 6) => Texts,
        (Node, 5) => Field::Message(Attribute, size_of::<proto::AttributeProto>()),
        (Attribute, 5) => Field::Message(Tensor, size_of::<proto::TensorProto>()),
        (Attribute, 6) => Field::Message(Graph, size_of::<proto::GraphProto>()),
        (Attribute, 7) | (Tensor, 4 | 5) => Numbers(4),
        (Attribute, 8) | (Tensor, 1 | 7 | 10 | 11) => Numbers(8),
        (Tensor, 13) => Field::Message(Leaf, size_of::<proto::StringStringEntry>()),
        (ValueInfo, 2) | (Attribute, 14) => Field::Message(Type, 0),
        (Type, 1) => Field::Message(TensorType, 0),
        (TensorType, 2) => Field::Message(Shape, 0),
        (Shape, 1) => Field::Message(Leaf, size_of::<proto::DimensionProto>()),
        _ => Single,
    }
}

/// Bytes that decoding `file` as a model may allocate beside its texts, which take as many as in
/// the file. Fails with the offset at which the file is no protocol buffer.
pub(crate) fn decoded_size(file: &[u8]) -> Result<u64, usize> {
    let mut scan = Scan { file, at: 0, total: 0 };
    scan.message(Message::Model, file.len(), 0)?;
    Ok(scan.total)
}

struct Scan<'a> {
    file: &'a [u8],
    at: usize,
    total: u64,
}

impl Scan<'_> {
    /// Takes a base-128 number that ends before `end`.
    fn varint(&mut self, end: usize) -> Result<u64, usize> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = match self.file.get(self.at) {
                Some(&byte) if self.at < end => byte,
                _ => return Err(start),
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(start)
    }

    /// Passes over `count` bytes and returns where they end.
    fn skip(&mut self, count: u64, end: usize) -> Result<usize, usize> {
        let count = usize::try_from(count).map_err(|_| self.at)?;
        match self.at.checked_add(count) {
            Some(next) if next <= end => Ok(next),
            _ => Err(self.at),
        }
    }

    /// Scans a message inside of `depth` others.
    fn message(&mut self, of: Message, end: usize, depth: usize) -> Result<(), usize> {
        if depth > MAX_DEPTH {
            return Err(self.at);
        }
        while self.at < end {
            let start = self.at;
            let tag = self.varint(end)?;
            let kind = field(of, tag >> 3);
            if let (Field::Numbers(size), 0 | 1 | 5) = (&kind, tag & 7) {
                self.total += twice(*size);
            }
            match tag & 7 {
                0 => drop(self.varint(end)?),
                1 => self.at = self.skip(8, end)?,
                5 => self.at = self.skip(4, end)?,
                2 => {
                    let length = self.varint(end)?;
                    let next = self.skip(length, end)?;
                    match kind {
                        Field::Message(kind, size) => {
                            self.total += twice(size);
                            self.message(kind, next, depth + 1)?;
                        }
                        Field::Numbers(size) => {
                            self.total += twice(size) * (length / packed_width(of, tag >> 3));
                        }
                        Field::Texts => self.total += twice(size_of::<proto::Bytes>()),
                        Field::Single => {}
                    }
                    self.at = next;
                }
                // Groups are not part of the schema.
                _ => return Err(start),
            }
        }
        Ok(())
    }
}

fn twice(size: usize) -> u64 {
    2 * size as u64
}

/// Smallest number of bytes of a packed element on the wire.
fn packed_width(of: Message, number: u64) -> u64 {
    match (of, number) {
        (Message::Tensor, 4) | (Message::Attribute, 7) => 4,
        (Message::Tensor, 10) => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

    fn model(graph: GraphProto) -> Vec<u8> {
        ModelProto { graph: Some(graph), ..Default::default() }.encode_to_vec()
    }

    #[test]
    fn empty_messages_count_in_full() {
        let node = vec![NodeProto::default(); 1000];
        let bytes = model(GraphProto { node, ..Default::default() });
        assert!(bytes.len() < 3000);
        let least = 1000 * size_of::<NodeProto>() as u64;
        assert!(decoded_size(&bytes).is_ok_and(|size| size >= least));
        let attribute = vec![AttributeProto::default(); 1000];
        let node = vec![NodeProto { attribute, ..Default::default() }];
        let bytes = model(GraphProto { node, ..Default::default() });
        let least = 1000 * size_of::<AttributeProto>() as u64;
        assert!(decoded_size(&bytes).is_ok_and(|size| size >= least));
    }

    #[test]
    fn weights_do_not_count() {
        let raw_data = Some(vec![0; 1 << 20].into());
        let initializer = vec![TensorProto { dims: vec![1 << 18], raw_data, ..Default::default() }];
        let bytes = model(GraphProto { initializer, ..Default::default() });
        assert!(decoded_size(&bytes).is_ok_and(|size| size < 1 << 12));
    }

    #[test]
    fn broken_files_are_refused_at_the_mistake() {
        let node = vec![NodeProto::default(); 3];
        let bytes = model(GraphProto { node, ..Default::default() });
        for end in 1..bytes.len() {
            assert!(decoded_size(&bytes[..end]).is_err(), "{end}");
        }
        assert_eq!(decoded_size(&[0x08, 0x03, 0x0b]), Err(2));
        assert_eq!(decoded_size(&[0xff; 64]), Err(0));
    }
}
