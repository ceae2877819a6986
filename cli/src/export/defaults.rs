//! Inputs that exporters do not have, computed within the graph: positions, and what is the same everywhere.

use weft::Dtype;
use weft::graph::dims::PAST;
use weft::graph::{Input, InputDefault};
use weft::onnx::{Attribute, Graph, Node, Tensor};

/// Inputs that consumers give where a model has them, though they have defaults.
const GIVEN: [&str; 4] = ["attention_mask", "token_type_ids", "pixel_mask", "bbox"];

/// The positions whose logits are computed, by Weft's own name: exporters compute those of all.
const LOGITS_TO_KEEP: &str = "logits_to_keep";

/// The input of ids that a graph's other inputs are computed from, `[batch, sequence]`.
#[derive(Clone, Copy, Debug)]
pub struct Ids<'a> {
    /// Its name.
    pub name: &'a str,
    /// Keys of a KV cache `[batch, heads, past, size]`, where the graph continues one and consumers give no positions.
    pub past: Option<&'a str>,
    /// Whether consumers give positions beside a cache.
    pub positions: bool,
}

impl Ids<'_> {
    /// The ids of a graph with one sequence; beside a cache, whose length consumers know, positions stay an input.
    pub fn of(cached: bool) -> Self {
        Self { name: "input_ids", past: None, positions: cached }
    }
}

/// Takes the inputs that consumers do not give out of a graph, and computes them from the ids.
pub fn compute(graph: &mut Graph, inputs: &[Input], ids: Ids<'_>) {
    let mut built = Built { ids: ids.name, ..Built::default() };
    if graph.input.iter().any(|input| input.name == LOGITS_TO_KEEP) {
        let (zero, length) = (built.integer(&[], 0), built.length());
        let range = built.range(&zero, &length);
        built.rename(&range, LOGITS_TO_KEEP);
    }
    let shape = inputs.iter().find(|input| input.name == ids.name).map(|input| input.shape.as_slice());
    let keys = shape.map(|shape| [shape[0].clone(), PAST + shape[shape.len() - 1].clone()]);
    for input in inputs.iter().filter(|input| input.dtype == Dtype::I64) {
        if GIVEN.contains(&input.name.as_str()) || (ids.positions && input.name == "position_ids") {
            continue;
        }
        let of_keys = ids.past.filter(|_| keys.as_ref().is_some_and(|keys| input.shape == *keys));
        let value = match (input.default, of_keys) {
            (Some(InputDefault::Ones), Some(past)) => built.full_of_keys(1, past),
            _ if shape != Some(&input.shape) => continue,
            (Some(InputDefault::Zeros), _) => built.full(0),
            (Some(InputDefault::Ones), _) => built.full(1),
            (Some(InputDefault::Full(number)), _) => built.full(number),
            (Some(InputDefault::Positions), _) => built.positions(0, ids.past),
            (Some(InputDefault::PositionsFrom(first)), _) => built.positions(first as i64, ids.past),
            (Some(InputDefault::TokenPositions { ids: of, padding }), _) if of == ids.name => {
                built.token_positions(padding as i64, ids.past)
            }
            _ => continue,
        };
        built.rename(&value, &input.name);
    }
    graph.input.retain(|input| !built.computed.contains(&input.name));
    graph.initializer.extend(built.constants);
    graph.node.splice(0..0, built.nodes);
}

/// Nodes and constants that go before a graph.
#[derive(Default)]
struct Built<'a> {
    ids: &'a str,
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    computed: Vec<String>,
}

impl Built<'_> {
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

    /// The length of a value's axis, as a list of one number.
    fn axis(&mut self, of: &str, axis: i64) -> String {
        let ends = vec![Attribute::int("start", axis), Attribute::int("end", axis + 1)];
        self.node("Shape", &[of], ends)
    }

    /// A list of one number as that number.
    fn scalar(&mut self, list: &str) -> String {
        let axis = self.integer(&[1], 0);
        self.node("Squeeze", &[list, &axis], vec![])
    }

    /// How many ids are in a row.
    fn length(&mut self) -> String {
        let list = self.axis(self.ids, 1);
        self.scalar(&list)
    }

    /// The numbers from one to below another.
    fn range(&mut self, first: &str, end: &str) -> String {
        let one = self.integer(&[], 1);
        self.node("Range", &[first, end, &one], vec![])
    }

    /// A number in the shape of the ids.
    fn full(&mut self, number: i64) -> String {
        let zeros = self.node("Sub", &[self.ids, self.ids], vec![]);
        let number = self.integer(&[], number);
        self.node("Add", &[&zeros, &number], vec![])
    }

    /// A number for each cached and new position, `[batch, past + sequence]`.
    fn full_of_keys(&mut self, number: i64, past: &str) -> String {
        let (rows, new, cached) = (self.axis(self.ids, 0), self.axis(self.ids, 1), self.axis(past, 2));
        let keys = self.node("Add", &[&cached, &new], vec![]);
        let shape = self.node("Concat", &[&rows, &keys], vec![Attribute::int("axis", 0)]);
        let number = self.integer(&[], number);
        self.node("Expand", &[&number, &shape], vec![])
    }

    /// Positions of the ids from a number on, behind those that are cached.
    fn positions(&mut self, first: i64, past: Option<&str>) -> String {
        let (full, length) = (self.full(first), self.length());
        let range = match past {
            Some(past) => {
                let cached = self.axis(past, 2);
                let cached = self.scalar(&cached);
                let end = self.node("Add", &[&cached, &length], vec![]);
                self.range(&cached, &end)
            }
            None => {
                let zero = self.integer(&[], 0);
                self.range(&zero, &length)
            }
        };
        self.node("Add", &[&full, &range], vec![])
    }

    /// The padding's id for padding, and that plus 1, 2, 3 … for the tokens of a row, behind those that are cached.
    fn token_positions(&mut self, padding: i64, past: Option<&str>) -> String {
        let (padding, axis) = (self.integer(&[], padding), self.integer(&[], 1));
        let is_padding = self.node("Equal", &[self.ids, &padding], vec![]);
        let is_token = self.node("Not", &[&is_padding], vec![]);
        let tokens = self.node("Cast", &[&is_token], vec![Attribute::int("to", 7)]);
        let mut counted = self.node("CumSum", &[&tokens, &axis], vec![]);
        if let Some(past) = past {
            let cached = self.axis(past, 2);
            counted = self.node("Add", &[&counted, &cached], vec![]);
        }
        let counted = self.node("Mul", &[&counted, &tokens], vec![]);
        self.node("Add", &[&counted, &padding], vec![])
    }
}

#[cfg(test)]
mod tests {
    use weft::dims;
    use weft::graph::dims::{BATCH, ENCODER_SEQUENCE, SEQUENCE};
    use weft::onnx::ValueInfo;

    use super::*;

    const TOKENS: &str = "input_ids";

    /// The inputs that are left, and the operators that were put before the graph.
    fn computed(inputs: &[Input], ids: Ids<'_>) -> (Vec<String>, Vec<String>) {
        let value = |input: &Input| ValueInfo::new(&input.name, input.dtype, &input.shape);
        let mut graph = Graph { input: inputs.iter().map(value).collect(), ..Graph::default() };
        compute(&mut graph, inputs, ids);
        let names = graph.input.into_iter().map(|input| input.name).collect();
        let outputs = graph.node.into_iter().map(|node| format!("{} {}", node.op_type, node.output[0]));
        (names, outputs.filter(|node| !node.contains("/defaults/")).collect())
    }

    #[test]
    fn what_consumers_do_not_give_is_computed() {
        let input = |name: &str, default| Input::i64(name, dims![BATCH, SEQUENCE]).or(default);
        let inputs = [
            Input::i64(TOKENS, dims![BATCH, SEQUENCE]),
            input("attention_mask", InputDefault::Ones),
            input("position_ids", InputDefault::PositionsFrom(2)),
            Input::i64(LOGITS_TO_KEEP, dims![SEQUENCE]),
        ];
        let (names, nodes) = computed(&inputs, Ids::of(false));
        assert_eq!(names, [TOKENS, "attention_mask"]);
        assert_eq!(nodes, ["Range logits_to_keep", "Add position_ids"]);
        let (names, nodes) = computed(&inputs, Ids::of(true));
        assert_eq!(names, [TOKENS, "attention_mask", "position_ids"]);
        assert_eq!(nodes, ["Range logits_to_keep"]);
    }

    #[test]
    fn a_decoders_mask_and_positions_are_those_behind_its_cache() {
        let past = "past_key_values.0.decoder.key";
        let inputs = [
            Input::i64("decoder_input_ids", dims![BATCH, SEQUENCE]),
            Input::i64("encoder_attention_mask", dims![BATCH, ENCODER_SEQUENCE]).or(InputDefault::Ones),
            Input::i64("decoder_attention_mask", dims![BATCH, PAST + SEQUENCE]).or(InputDefault::Ones),
            Input::i64("decoder_position_ids", dims![BATCH, SEQUENCE]).or(InputDefault::Positions),
            Input::f32(past, dims![BATCH, 2, PAST, 8]).or(InputDefault::Past),
        ];
        let ids = Ids { name: "decoder_input_ids", past: Some(past), positions: false };
        let (names, nodes) = computed(&inputs, ids);
        assert_eq!(names, ["decoder_input_ids", "encoder_attention_mask", past]);
        assert_eq!(nodes, ["Expand decoder_attention_mask", "Add decoder_position_ids"]);
    }
}
