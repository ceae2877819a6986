//! Encoder-decoders: an encoder, and a decoder with a KV cache for its own tokens and for cross-attention.

use std::collections::BTreeMap;

use weft::graph::Input;
use weft::lower::Lowered;
use weft::onnx::{Graph, Node, ValueInfo};
use weft::{DynLoader, GraphKind, Result, Task};

use super::defaults::{self, Ids};
use super::{DtypeName, form, merged};
use crate::terminal::bad_input;

/// The encoder's hidden states, as the graphs of [`GraphKind::Encoder`] give them.
pub const STATES: &str = "encoder_last_hidden_state";
/// The ids of a decoder's tokens where the encoder has ids, too.
const DECODER_IDS: &str = "decoder_input_ids";

/// Which graphs an encoder-decoder becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The encoder gives keys and values of cross-attention, the decoder takes them (ONNX Runtime GenAI's Whisper).
    Cached,
    /// `encoder_model` gives hidden states, `decoder_model_merged` makes keys and values of them in its first step (Optimum).
    Merged,
}

/// The graphs of an encoder-decoder, by the stems of their files.
pub fn lowered(
    loader: &DynLoader,
    task: Option<Task>,
    dtype: DtypeName,
    form: Form,
) -> Result<Vec<(&'static str, Lowered)>> {
    let graph = |kind: GraphKind| {
        let lowered = loader.lower(task, kind, form::target(dtype.precision()))?;
        Ok((lowered, loader.inputs(task, kind)?))
    };
    let (mut encoder, encoder_inputs) = graph(GraphKind::Encoder)?;
    let (mut decoder, decoder_inputs) = graph(GraphKind::Decode)?;
    if let (Some(encoder), Some(decoder)) = (&mut encoder.model.graph, &mut decoder.model.graph) {
        if !encoder.output.iter().any(|output| output.name == STATES) {
            let problem =
                "has an encoder whose hidden states its graph does not give, which no layout here has";
            return Err(bad_input("class", problem, "run it with `weft run`"));
        }
        defaults::compute(encoder, &encoder_inputs, Ids::of(false));
        decode(decoder, &decoder_inputs);
    }
    if form == Form::Cached {
        return Ok(vec![("encoder", encoder), ("decoder", decoder)]);
    }
    let (encoder, decoder) = merged::merge(encoder, decoder, dtype)?;
    Ok(vec![("encoder_model", encoder), ("decoder_model_merged", decoder)])
}

/// The decoder's graph with the inputs that consumers give: its ids, the encoder's mask and the cache.
fn decode(graph: &mut Graph, inputs: &[Input]) {
    let has = |name: &str| inputs.iter().any(|input| input.name == name);
    let name = if has(DECODER_IDS) { DECODER_IDS } else { "input_ids" };
    let own =
        |input: &&Input| input.name.starts_with("past_key_values.") && !input.name.contains(".encoder.");
    let past = inputs.iter().find(own).map(|input| input.name.as_str());
    defaults::compute(graph, inputs, Ids { name, past, positions: false });
    rename(graph, &[(DECODER_IDS.to_owned(), "input_ids".to_owned())].into());
}

/// Gives values of a graph other names.
pub fn rename(graph: &mut Graph, names: &BTreeMap<String, String>) {
    rename_nodes(&mut graph.node, names);
    rename_values(&mut graph.input, names);
    rename_values(&mut graph.output, names);
    rename_values(&mut graph.value_info, names);
    graph.initializer.iter_mut().for_each(|tensor| replace(&mut tensor.name, names));
}

/// Gives operands and results of nodes other names.
pub fn rename_nodes(nodes: &mut [Node], names: &BTreeMap<String, String>) {
    let values = nodes.iter_mut().flat_map(|node| node.input.iter_mut().chain(&mut node.output));
    values.for_each(|value| replace(value, names));
}

/// Gives described values other names.
pub fn rename_values(values: &mut [ValueInfo], names: &BTreeMap<String, String>) {
    values.iter_mut().for_each(|value| replace(&mut value.name, names));
}

fn replace(name: &mut String, names: &BTreeMap<String, String>) {
    if let Some(other) = names.get(name) {
        name.clone_from(other);
    }
}
