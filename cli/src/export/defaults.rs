//! Inputs that exporters do not have, computed within the graph: positions, and what is the same everywhere.

use weft::Dtype;
use weft::graph::{Input, InputDefault};
use weft::onnx::{Attribute, Graph, Node, Tensor};

/// Inputs that consumers give where a model has them, though they have defaults.
const GIVEN: [&str; 4] = ["attention_mask", "token_type_ids", "pixel_mask", "bbox"];

/// The positions whose logits are computed, by Weft's own name: exporters compute those of all.
const LOGITS_TO_KEEP: &str = "logits_to_keep";

/// Takes the inputs that consumers do not give out of a graph, and computes them from the ids. With a cache, positions go on
/// from its length, which consumers know: they stay an input.
pub fn compute(graph: &mut Graph, inputs: &[Input], cached: bool) {
    let mut built = Built::default();
    if graph.input.iter().any(|input| input.name == LOGITS_TO_KEEP) {
        let range = built.range();
        built.rename(&range, LOGITS_TO_KEEP);
    }
    let ids = inputs.iter().find(|input| input.name == IDS).map(|input| &input.shape);
    for input in inputs.iter().filter(|input| ids == Some(&input.shape) && input.dtype == Dtype::I64) {
        if GIVEN.contains(&input.name.as_str()) || (cached && input.name == "position_ids") {
            continue;
        }
        let value = match input.default {
            Some(InputDefault::Zeros) => built.full(0),
            Some(InputDefault::Ones) => built.full(1),
            Some(InputDefault::Full(number)) => built.full(number),
            Some(InputDefault::Positions) => built.positions(0),
            Some(InputDefault::PositionsFrom(first)) => built.positions(first as i64),
            Some(InputDefault::TokenPositions { ids: IDS, padding }) => built.token_positions(padding as i64),
            _ => continue,
        };
        built.rename(&value, &input.name);
    }
    graph.input.retain(|input| !built.computed.contains(&input.name));
    graph.initializer.extend(built.constants);
    graph.node.splice(0..0, built.nodes);
}

/// The input that all of it is computed from, `[batch, sequence]`.
const IDS: &str = "input_ids";

/// Nodes and constants that go before a graph.
#[derive(Default)]
struct Built {
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    computed: Vec<String>,
}

impl Built {
    fn node(&mut self, op: &str, input: &[&str], attribute: Vec<Attribute>) -> String {
        let name = format!("/defaults/{op}.{}", self.nodes.len());
        self.nodes.push(Node {
            input: input.iter().map(|&name| name.to_owned()).collect(),
            output: vec![name.clone()],
            name: name.clone(),
            op_type: op.to_owned(),
            attribute,
            domain: String::new(),
        });
        name
    }

    fn integer(&mut self, dims: &[usize], value: i64) -> String {
        let name = format!("/defaults/constant.{}", self.constants.len());
        self.constants.push(Tensor::inline(&name, Dtype::I64, dims, value.to_le_bytes().to_vec()));
        name
    }

    /// Gives a value, of the node that was made last, the name of an input.
    fn rename(&mut self, value: &str, input: &str) {
        for node in self.nodes.iter_mut().filter(|node| node.output == [value]) {
            node.output = vec![input.to_owned()];
        }
        self.computed.push(input.to_owned());
    }

    /// 0, 1, 2 … as many as there are ids in a row.
    fn range(&mut self) -> String {
        let shape = self.node("Shape", &[IDS], vec![Attribute::int("start", 1), Attribute::int("end", 2)]);
        let [axis, zero, one] =
            [(&[1][..], 0), (&[], 0), (&[], 1)].map(|(dims, value)| self.integer(dims, value));
        let length = self.node("Squeeze", &[&shape, &axis], vec![]);
        self.node("Range", &[&zero, &length, &one], vec![])
    }

    /// A number in the shape of the ids.
    fn full(&mut self, number: i64) -> String {
        let zeros = self.node("Sub", &[IDS, IDS], vec![]);
        let number = self.integer(&[], number);
        self.node("Add", &[&zeros, &number], vec![])
    }

    fn positions(&mut self, first: i64) -> String {
        let (full, range) = (self.full(first), self.range());
        self.node("Add", &[&full, &range], vec![])
    }

    /// The padding's id for padding, and that plus 1, 2, 3 … for the tokens of a row.
    fn token_positions(&mut self, padding: i64) -> String {
        let (padding, axis) = (self.integer(&[], padding), self.integer(&[], 1));
        let is_padding = self.node("Equal", &[IDS, &padding], vec![]);
        let is_token = self.node("Not", &[&is_padding], vec![]);
        let tokens = self.node("Cast", &[&is_token], vec![Attribute::int("to", 7)]);
        let counted = self.node("CumSum", &[&tokens, &axis], vec![]);
        let counted = self.node("Mul", &[&counted, &tokens], vec![]);
        self.node("Add", &[&counted, &padding], vec![])
    }
}

#[cfg(test)]
mod tests {
    use weft::dims;
    use weft::graph::dims::{BATCH, SEQUENCE};
    use weft::onnx::ValueInfo;

    use super::*;

    /// The inputs that are left, and the operators that were put before the graph.
    fn computed(cached: bool) -> (Vec<String>, Vec<String>) {
        let input = |name: &str, default| Input::i64(name, dims![BATCH, SEQUENCE]).or(default);
        let inputs = [
            Input::i64(IDS, dims![BATCH, SEQUENCE]),
            input("attention_mask", InputDefault::Ones),
            input("position_ids", InputDefault::PositionsFrom(2)),
            Input::i64(LOGITS_TO_KEEP, dims![SEQUENCE]),
        ];
        let value = |input: &Input| ValueInfo::new(&input.name, input.dtype, &input.shape);
        let mut graph = Graph { input: inputs.iter().map(value).collect(), ..Graph::default() };
        compute(&mut graph, &inputs, cached);
        let names = graph.input.into_iter().map(|input| input.name).collect();
        let outputs = graph.node.into_iter().map(|node| format!("{} {}", node.op_type, node.output[0]));
        (names, outputs.filter(|node| !node.contains("/defaults/")).collect())
    }

    #[test]
    fn what_consumers_do_not_give_is_computed() {
        let (inputs, nodes) = computed(false);
        assert_eq!(inputs, [IDS, "attention_mask"]);
        assert_eq!(nodes, ["Range logits_to_keep", "Add position_ids"]);
        let (inputs, nodes) = computed(true);
        assert_eq!(inputs, [IDS, "attention_mask", "position_ids"]);
        assert_eq!(nodes, ["Range logits_to_keep"]);
    }
}
