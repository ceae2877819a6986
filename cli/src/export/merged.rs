//! Optimum's `decoder_model_merged`: a decoder whose first step makes keys and values of cross-attention from the encoder's
//! hidden states, and whose next steps take them from the cache.

use std::collections::{BTreeMap, BTreeSet};

use weft::lower::Lowered;
use weft::onnx::{Attribute, Graph, Node, Tensor, ValueInfo, data_type, dimension};
use weft::{Dim, Dtype, Result};

use super::DtypeName;
use super::seq2seq::{STATES, rename, rename_nodes, rename_values};
use super::triton::lengths;
use crate::terminal::bad_input;

/// The decoder's input of hidden states.
const GIVEN_STATES: &str = "encoder_hidden_states";
/// Whether the cache is taken.
const USE_CACHE: &str = "use_cache_branch";
/// What the values of cross-attention's projections begin with in the decoder, whose own may have the same names.
const CROSS: &str = "/cross";

/// The encoder with its hidden states alone, and the decoder with what makes keys and values of them.
pub fn merge(mut encoder: Lowered, mut decoder: Lowered, dtype: DtypeName) -> Result<(Lowered, Lowered)> {
    let (Some(encoding), Some(decoding)) = (&mut encoder.model.graph, &mut decoder.model.graph) else {
        return Ok((encoder, decoder));
    };
    let float = if dtype == DtypeName::Fp16 { Dtype::F16 } else { Dtype::F32 };
    let projections = Projections::of(encoding, float)?;
    decoding.initializer.extend(projections.weights.iter().cloned().map(beside));
    let memory = encoder.memory.iter().map(|(place, bytes)| (format!("{CROSS}{place}"), bytes.clone()));
    decoder.memory.extend(memory);
    for domain in &encoder.model.opset_import {
        if !decoder.model.opset_import.iter().any(|known| known.domain == domain.domain) {
            decoder.model.opset_import.push(domain.clone());
        }
    }
    *decoding = branches(std::mem::take(decoding), projections);

    encoding.output.retain(|output| output.name == STATES);
    prune(encoding);
    rename(encoding, &[(STATES.to_owned(), "last_hidden_state".to_owned())].into());
    Ok((encoder, decoder))
}

/// The part of an encoder's graph that makes keys and values of its hidden states.
struct Projections {
    nodes: Vec<Node>,
    weights: Vec<Tensor>,
    /// Keys and values, `present.{layer}.encoder.key` and `.value`, `[batch, heads, encoder_sequence, size]`.
    outputs: Vec<ValueInfo>,
    states: ValueInfo,
}

impl Projections {
    fn of(encoder: &Graph, float: Dtype) -> Result<Self> {
        let (states, outputs): (Vec<_>, Vec<_>) =
            encoder.output.iter().cloned().partition(|output| output.name == STATES);
        let refuse = |what: &str| {
            let problem = format!("computes cross-attention from `{what}`, which decoders are not given");
            bad_input(
                "class",
                problem,
                "export it with `--to genai` or `--to triton`, or run it with `weft run`",
            )
        };
        let Some(mut states) = states.into_iter().next() else { return Err(refuse(STATES)) };
        let producers: BTreeMap<&str, usize> = (encoder.node.iter().enumerate())
            .flat_map(|(index, node)| node.output.iter().map(move |value| (value.as_str(), index)))
            .collect();
        let weights: BTreeMap<&str, &Tensor> =
            encoder.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        // What the hidden states are called where they are computed, and how these are made of the input.
        let last = producers.get(STATES).map(|&index| &encoder.node[index]);
        let before = last.filter(|node| matches!(node.op_type.as_str(), "Cast" | "Identity"));
        let before = before.map(|node| (node.input[0].as_str(), node.op_type.as_str()));
        let (mut chosen, mut read, mut first) = (BTreeSet::new(), BTreeMap::new(), vec![]);
        let mut wanted: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        let mut seen = BTreeSet::new();
        while let Some(value) = wanted.pop() {
            if value.is_empty() || value == STATES || !seen.insert(value) {
                continue;
            }
            if let Some((_, op)) = before.filter(|(name, _)| *name == value) {
                let to = Attribute::int("to", i64::from(data_type(float)));
                let attribute = if op == "Cast" { vec![to] } else { vec![] };
                first.push(node(op, &[STATES], value, attribute));
            } else if let Some(tensor) = weights.get(value) {
                read.insert(value, (*tensor).clone());
            } else if let Some(&index) = producers.get(value) {
                let node = &encoder.node[index];
                match length_of_input(node, &encoder.input, &states) {
                    Some(length) => first.push(length),
                    None if chosen.insert(index) => wanted.extend(node.input.iter().map(String::as_str)),
                    None => {}
                }
            } else {
                return Err(refuse(value));
            }
        }
        let nodes = chosen.into_iter().map(|index| encoder.node[index].clone());
        let mut nodes: Vec<Node> = first.into_iter().chain(nodes).collect();
        // All but hidden states and keys and values is named apart.
        let kept: BTreeSet<&str> =
            outputs.iter().map(|output| output.name.as_str()).chain([STATES, ""]).collect();
        let mut names: BTreeMap<String, String> = nodes
            .iter()
            .flat_map(|node| &node.output)
            .map(String::as_str)
            .chain(read.keys().copied())
            .filter(|name| !kept.contains(name))
            .map(|name| (name.to_owned(), format!("{CROSS}/{name}")))
            .collect();
        names.insert(STATES.to_owned(), GIVEN_STATES.to_owned());
        rename_nodes(&mut nodes, &names);
        let mut weights: Vec<Tensor> = read.into_values().collect();
        weights.iter_mut().for_each(|tensor| tensor.name = names[&tensor.name].clone());
        GIVEN_STATES.clone_into(&mut states.name);
        Ok(Self { nodes, weights, outputs, states })
    }
}

/// A length that is read off an input of the encoder, read off its hidden states instead.
fn length_of_input(length: &Node, inputs: &[ValueInfo], states: &ValueInfo) -> Option<Node> {
    let input = inputs.iter().find(|input| length.op_type == "Shape" && length.input[0] == input.name)?;
    let at = |name: &str| length.attribute.iter().find(|one| one.name == name)?.i;
    let axis = at("start")?;
    let wanted = lengths(input)?.get(usize::try_from(axis).ok()?)?.clone();
    let axis = lengths(states)?.iter().position(|length| *length == wanted)? as i64;
    let ends = vec![Attribute::int("start", axis), Attribute::int("end", axis + 1)];
    Some(node("Shape", &[STATES], &length.output[0], ends))
}

/// A weight whose bytes are in memory, beside those of the decoder.
fn beside(mut tensor: Tensor) -> Tensor {
    let places = tensor.external_data.iter_mut().filter(|entry| entry.key == "location");
    for place in places.filter(|entry| entry.value.starts_with('*')) {
        place.value = format!("{CROSS}{}", place.value);
    }
    tensor
}

/// A graph that is one `If`: with the cache, or with keys and values of the hidden states.
fn branches(decoder: Graph, projections: Projections) -> Graph {
    let Graph { node: nodes, name, initializer, input, output, value_info } = decoder;
    let Projections { nodes: projected, outputs: cross, states, .. } = projections;
    let branch = |prefix: &str, mut nodes: Vec<Node>, given: &BTreeMap<String, String>, extra: Vec<Node>| {
        rename_nodes(&mut nodes, given);
        let mut nodes: Vec<Node> = extra.into_iter().chain(nodes).collect();
        let mut output: Vec<ValueInfo> = output.iter().chain(&cross).cloned().collect();
        // Values of a branch may not have the names of the graph around it.
        let inner = output.iter().map(|value| (value.name.clone(), format!("{prefix}/{}", value.name)));
        let inner: BTreeMap<_, _> = inner.collect();
        rename_nodes(&mut nodes, &inner);
        rename_values(&mut output, &inner);
        let mut value_info = value_info.clone();
        rename_values(&mut value_info, &inner);
        Graph { node: nodes, name: prefix.to_owned(), output, value_info, ..Graph::default() }
    };
    let past = |output: &ValueInfo| output.name.replacen("present", "past_key_values", 1);
    let computed = cross.iter().map(|output| (past(output), output.name.clone())).collect();
    let first = branch("first", nodes.clone(), &computed, projected);
    // Consumers keep what the first step gave: nothing is given again.
    let (mut empty, mut shapes) = (vec![], vec![]);
    for output in &cross {
        let sizes = lengths(output).unwrap_or_default().into_iter().map(|length| match length {
            dimension::Value::Number(number) => number,
            dimension::Value::Parameter(_) => 0,
        });
        let mut sizes: Vec<i64> = sizes.collect();
        sizes[0] = 0;
        let shape = format!("/none/{}", output.name);
        let bytes = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
        shapes.push(Tensor::inline(&shape, Dtype::I64, &[sizes.len()], bytes));
        empty.push(node("ConstantOfShape", &[&shape], &output.name, vec![]));
    }
    let then = branch("then", nodes, &BTreeMap::new(), empty);
    let mut choice = node("If", &[USE_CACHE], "", vec![]);
    choice.output = output.iter().chain(&cross).map(|value| value.name.clone()).collect();
    choice.attribute = vec![Attribute::graph("then_branch", then), Attribute::graph("else_branch", first)];
    let initializer = initializer.into_iter().chain(shapes).collect();
    let flag = ValueInfo::new(USE_CACHE, Dtype::Bool, &[Dim::Fixed(1)]);
    let mut input: Vec<ValueInfo> = input.into_iter().chain([states, flag]).collect();
    // In the first step, consumers give a cache without positions.
    let kept: BTreeSet<String> = cross.iter().map(past).collect();
    for value in input.iter_mut().filter(|value| kept.contains(&value.name)) {
        set_length(value, 2, "encoder_sequence");
    }
    let output = output.into_iter().chain(cross).collect();
    Graph { node: vec![choice], name, initializer, input, output, value_info: vec![] }
}

/// Makes an axis one of any length.
fn set_length(value: &mut ValueInfo, axis: usize, symbol: &str) {
    let tensor = value.kind.as_mut().and_then(|kind| kind.tensor.as_mut());
    let shape = tensor.and_then(|tensor| tensor.shape.as_mut());
    if let Some(length) = shape.and_then(|shape| shape.dim.get_mut(axis)) {
        length.value = Some(dimension::Value::Parameter(symbol.to_owned()));
    }
}

/// Removes what none of the outputs is computed from.
fn prune(graph: &mut Graph) {
    let mut wanted: BTreeSet<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let mut kept = vec![];
    for node in std::mem::take(&mut graph.node).into_iter().rev() {
        if node.output.iter().any(|value| wanted.contains(value)) {
            wanted.extend(node.input.iter().cloned());
            kept.push(node);
        }
    }
    kept.reverse();
    graph.node = kept;
    graph.initializer.retain(|tensor| wanted.contains(&tensor.name));
    graph.value_info.retain(|value| wanted.contains(&value.name));
}

fn node(op: &str, input: &[&str], output: &str, attribute: Vec<Attribute>) -> Node {
    Node {
        input: input.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        name: format!("/{op}/{output}"),
        op_type: op.to_owned(),
        attribute,
        domain: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An encoder whose keys have the shape that an operator reads off an input, and what else they are computed from.
    fn encoder(shape_of: &str, other: &str) -> Graph {
        let value = |name: &str, shape: &[Dim]| ValueInfo::new(name, Dtype::F32, shape);
        let (batch, length) = (Dim::symbol("batch"), Dim::symbol("encoder_sequence"));
        let ends = vec![Attribute::int("start", 1), Attribute::int("end", 2)];
        Graph {
            node: vec![
                node("Gather", &["table", "input_ids"], STATES, vec![]),
                node("Shape", &[shape_of], "/length", ends),
                node("MatMul", &[STATES, other], "k", vec![]),
                node("Reshape", &["k", "/length"], "present.0.encoder.key", vec![]),
            ],
            initializer: ["table", "w"]
                .map(|name| Tensor::inline(name, Dtype::F32, &[1], vec![0; 4]))
                .to_vec(),
            input: vec![
                value("input_ids", &[batch.clone(), length.clone()]),
                value("bias", &[Dim::Fixed(3)]),
            ],
            output: vec![
                value(STATES, &[batch.clone(), length.clone(), Dim::Fixed(4)]),
                value("present.0.encoder.key", &[batch, Dim::Fixed(2), length, Dim::Fixed(2)]),
            ],
            ..Graph::default()
        }
    }

    #[test]
    fn projections_read_hidden_states_alone() {
        let found = Projections::of(&encoder("input_ids", "w"), Dtype::F32).unwrap();
        let nodes: Vec<_> =
            found.nodes.iter().map(|node| format!("{} {}", node.op_type, node.input.join(" "))).collect();
        let length = "Shape encoder_hidden_states";
        assert_eq!(
            nodes,
            [length, "MatMul encoder_hidden_states /cross/w", "Reshape /cross/k /cross//length"]
        );
        assert_eq!(found.weights.len(), 1);
        // The length is that of the second axis of hidden states, too.
        assert_eq!(found.nodes[0].attribute[0], Attribute::int("start", 1));
    }

    #[test]
    fn what_decoders_are_not_given_is_refused() {
        for graph in [encoder("input_ids", "bias"), encoder("bias", "w")] {
            let text = Projections::of(&graph, Dtype::F32).err().unwrap().to_string();
            assert!(text.contains("`bias`") && text.contains("--to triton"), "{text}");
        }
    }

    #[test]
    fn an_encoder_keeps_what_its_hidden_states_need() {
        let mut graph = encoder("input_ids", "w");
        graph.output.truncate(1);
        prune(&mut graph);
        assert_eq!((graph.node.len(), graph.initializer.len()), (1, 1));
        assert_eq!(graph.initializer[0].name, "table");
    }
}
