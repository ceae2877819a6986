//! What a checkpoint is and what it needs, by its configuration and the headers of its weights: no weight is read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use super::quantizing;
use super::route::{self, Request};
use crate::auto::{Workload, memory};
use crate::graph::{Graph, Input, InputDefault};
use crate::lower::Readers;
use crate::weights::Weights;
use crate::{Architecture, Dim, GraphKind, Hardware, Head, Precision, Quantization, Result, Task};

/// What a checkpoint is and what it needs, as `weft info` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The architecture's name in the specs.
    pub architecture: &'static str,
    /// `model_type` of `config.json`.
    pub model_type: String,
    /// The class that is loaded.
    pub class: &'static str,
    /// The tasks that the architecture's checkpoints are for.
    pub tasks: Vec<&'static str>,
    /// The elements of all weights that the class reads.
    pub parameters: u64,
    /// How many tensors the files hold.
    pub tensors: usize,
    /// The bytes of these tensors.
    pub stored_bytes: u64,
    /// The same by element type, as the files call it.
    pub stored_types: BTreeMap<String, u64>,
    /// The longest sequence, where the architecture has a limit.
    pub longest_sequence: Option<usize>,
    /// Bytes of the KV cache for each token, in single precision, as caches are kept.
    pub cache_bytes_per_token: u64,
    /// Bytes of states of fixed size for each sequence, in single precision.
    pub state_bytes: u64,
    /// What weights and cache take, by precision.
    pub memory: Vec<MemoryNeed>,
    /// Bytes that are free on this machine, where the system tells.
    pub free_bytes: Option<u64>,
    /// Each backend, in the order of the matrices.
    pub backends: Vec<BackendVerdict>,
    /// The weights that the class reads and the files do not hold, each with what is wrong.
    pub missing: Vec<String>,
    /// The tensors that the files hold and the class does not read.
    pub unused: Vec<String>,
}

/// Bytes that a checkpoint takes in a precision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryNeed {
    /// What weights are in.
    pub precision: Precision,
    /// Bytes of the weights.
    pub weights: u64,
    /// Lengths of context, each with the bytes of weights and cache.
    pub contexts: Vec<(usize, u64)>,
}

/// Whether `Hardware::Auto` would take a backend on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackendVerdict {
    /// The backend.
    pub hardware: Hardware,
    /// Whether it is the one that is taken.
    pub chosen: bool,
    /// Whether it can run the model here: declared, with library and device.
    pub available: bool,
    /// Why it is taken or passed over.
    pub reason: String,
}

/// What is inspected.
pub(super) struct Inspected<'a, A: Architecture> {
    pub raw: &'a Json,
    pub head: A::Head,
    pub weights: &'a Weights,
    pub build: &'a dyn Fn(GraphKind) -> Result<Graph>,
}

pub(super) fn inspect<A: Architecture>(
    inspected: &Inspected<'_, A>,
    contexts: &[usize],
) -> Result<Inspection> {
    let Inspected { raw, head, weights, build } = *inspected;
    let graph = build(GraphKind::Forward)?;
    let survey = weights.survey(&graph.all_weights(), &graph.unused, &A::NAMES);
    let kinds = A::graph_kinds(head);
    let (per_token, state) = match kinds.iter().find(|kind| **kind == GraphKind::Decode) {
        Some(kind) => cache_bytes(build(*kind)?.inputs()),
        None => (0, 0),
    };
    let longest =
        graph.limits.iter().filter(|limit| limit.symbol == "sequence").map(|limit| limit.most).min();
    let elements = |shape: &[usize]| shape.iter().map(|length| *length as u64).product::<u64>();
    let sizes: Vec<u64> = graph.weights().iter().map(|weight| elements(&weight.shape)).collect();
    let readers = Readers::of(&graph);
    let need = |precision| {
        let bytes = weight_bytes(&graph, &readers, &sizes, precision);
        let cached = |context: &usize| (*context, bytes + state + per_token * *context as u64);
        let contexts = if per_token + state > 0 { contexts.iter().map(cached).collect() } else { vec![] };
        MemoryNeed { precision, weights: bytes, contexts }
    };
    let request = Request {
        asked: Hardware::Auto,
        device: None,
        precision: Precision::F32,
        workload: Workload::of(kinds),
        elements: sizes.iter().sum(),
    };
    Ok(Inspection {
        architecture: A::NAME,
        model_type: raw["model_type"].as_str().unwrap_or_default().to_owned(),
        class: head.class(),
        tasks: A::TASKS.iter().map(|served| Task::name(served.task)).collect(),
        parameters: sizes.iter().sum(),
        tensors: weights.counts().0,
        stored_bytes: weights.size(),
        stored_types: weights.stored_types(),
        longest_sequence: longest,
        cache_bytes_per_token: per_token,
        state_bytes: state,
        memory: Precision::ALL.into_iter().map(need).collect(),
        free_bytes: memory::free(),
        backends: route::survey::<A>(&request),
        missing: survey.missing,
        unused: survey.unused,
    })
}

/// Bytes of a cache, by its inputs: for each token, and of what does not grow.
fn cache_bytes(inputs: &[Input]) -> (u64, u64) {
    let (mut per_token, mut state) = (0, 0);
    for input in inputs.iter().filter(|input| input.default == Some(InputDefault::Past)) {
        let fixed = input.shape.iter().filter_map(Dim::fixed).map(|length| length as u64).product::<u64>();
        let grows = input.shape.iter().any(|dim| matches!(dim, Dim::Symbol(name) if name == "past"));
        *(if grows { &mut per_token } else { &mut state }) += fixed * input.dtype.size() as u64;
    }
    (per_token, state)
}

/// Bytes of a graph's weights in a precision; of quantized ones with the scale of each block.
fn weight_bytes(graph: &Graph, readers: &[Readers], sizes: &[u64], precision: Precision) -> u64 {
    let Some(settings) = Quantization::of(precision) else {
        let width = if precision == Precision::F32 { 4 } else { 2 };
        return width * sizes.iter().sum::<u64>();
    };
    let bits = quantizing::bits(&settings, graph, readers);
    let of = |(bits, size): (Option<usize>, &u64)| match bits {
        // Codes of 3 bits run as 4, and each block has a scale in half precision.
        Some(bits) => bits.next_power_of_two() as u64 * size / 8 + 2 * size.div_ceil(settings.group as u64),
        None => 4 * size,
    };
    bits.into_iter().zip(sizes).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::dims::{BATCH, PAST, SEQUENCE};

    #[test]
    fn a_cache_grows_by_the_token_and_states_do_not() {
        let past = |name: &str, shape| Input::f32(name, shape).or(InputDefault::Past);
        let inputs = [
            Input::i64("input_ids", dims![BATCH, SEQUENCE]),
            past("past_key_values.0.key", dims![BATCH, 2, PAST, 8]),
            past("past_key_values.0.value", dims![BATCH, 2, PAST, 8]),
            past("past_key_values.1.conv", dims![BATCH, 3, 5]),
        ];
        assert_eq!(cache_bytes(&inputs), (2 * 2 * 8 * 4, 3 * 5 * 4));
    }

    #[test]
    fn quantized_layers_take_their_bits_and_scales() {
        let mut graph = Graph::new();
        let ids = graph.input(Input::i64("input_ids", dims![BATCH, SEQUENCE]));
        let x = graph.embedding(&graph.scope("embed"), &ids, 64, 32).unwrap();
        let scope = graph.scope("layers").scope("0");
        let x = graph.linear(&scope, &x, 128).unwrap();
        graph.output("x", &x).unwrap();
        let readers = Readers::of(&graph);
        let sizes = [64 * 32, 128 * 32, 128];
        let bytes = |precision| weight_bytes(&graph, &readers, &sizes, precision);
        assert_eq!(bytes(Precision::F32), 4 * (2048 + 4096 + 128));
        assert_eq!(bytes(Precision::Bf16), 2 * (2048 + 4096 + 128));
        // 8 bits for the embedding, 4 for the layer, a scale of 16 bits for each block of 32; the bias stays.
        assert_eq!(bytes(Precision::Int4), 2048 + 2048 / 16 + 4096 / 2 + 4096 / 16 + 4 * 128);
    }
}
