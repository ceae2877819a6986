//! Weights whose codes are places in a codebook, by the runtime's own operators, which read them as they are stored.

use super::experts::WEFT;
use super::{Printer, Written};
use crate::Result;
use crate::graph::{BlockOp, Contrib, Dim, Dtype, Node};
use crate::onnx::Attribute;

/// Where scales are among what both operators are given; outer ones follow.
const SCALES: usize = 2;

impl Printer<'_> {
    /// The names of what it is given: scales without a conversion.
    pub(super) fn operands_of_codebook(&mut self, op: &Contrib, node: &Node) -> Result<Vec<String>> {
        let outer = op.blocks().is_some_and(|blocks| blocks.outer);
        let scales = SCALES..=SCALES + usize::from(outer);
        let operands = node.inputs.iter().enumerate().map(|(place, &id)| {
            match self.graph.weight_index(self.tensor(id)) {
                Some(index) if scales.contains(&place) => {
                    let shape: Vec<usize> = self.tensor(id).shape().iter().filter_map(Dim::fixed).collect();
                    self.stored(index, &shape)
                }
                _ => self.operand(id),
            }
        });
        operands.collect()
    }

    /// The operator for the type that scales are stored in, and what it is told.
    pub(super) fn by_codebook(&self, op: &Contrib, node: &Node, written: &mut Written) -> Vec<Attribute> {
        let scales = self.graph.weight_index(self.tensor(node.inputs[SCALES]));
        let scales = scales.map_or(Dtype::F32, |index| self.weights[index].dtype);
        written.domain = WEFT;
        written.operator = match (op, scales) {
            (Contrib::GatherBlockQuantized(_), Dtype::U8) => "EmbeddingQuantizedE8m0",
            (Contrib::GatherBlockQuantized(_), Dtype::F16) => "EmbeddingQuantizedF16",
            (Contrib::GatherBlockQuantized(_), _) => "EmbeddingQuantizedF32",
            (_, Dtype::U8) => "LinearQuantizedE8m0",
            (_, Dtype::F16) => "LinearQuantizedF16",
            _ => "LinearQuantizedF32",
        };
        let blocks = op.blocks();
        if let Contrib::MatMulNBits(op) = op {
            // Zero points and offsets, which there are none of, come before the bias, and outer scales behind it.
            let mut rest = written.operands.split_off(SCALES + 1).into_iter();
            let outer = if op.blocks.outer { rest.next() } else { None };
            let bias = rest.next();
            if outer.is_some() || bias.is_some() {
                written.operands.extend([String::new(), String::new(), bias.unwrap_or_default()]);
                written.operands.extend(outer);
            }
        }
        blocks.map(own_blocks).unwrap_or_default()
    }
}

/// How the runtime's own operators are told of blocks.
pub(super) fn own_blocks(op: BlockOp) -> Vec<Attribute> {
    let mut attributes =
        vec![Attribute::int("bits", op.bits as i64), Attribute::int("group", op.group as i64)];
    if op.outer {
        attributes.push(Attribute::int("outer", 1));
    }
    attributes.extend(op.codebook.map(|book| Attribute::string("codebook", book.name())));
    attributes
}
