//! Decoding steps of a model whose weights stay in their mapped pages: a session of its own, in which every linear layer is
//! [`Product`](super::product::Product).

use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::session::Session;

use super::mapped;
use super::provider::Provider;
use super::session::create;
use crate::engine::Options;
use crate::lower::Lowered;
use crate::{Value, Values};

/// From so many rows on, a weight is used often enough for ONNX Runtime's own way to be faster.
const MOST_ROWS: usize = 4;

/// What takes the place of a session where few tokens are run; made when the first come.
pub(super) struct DecodeSession {
    environment: &'static Environment,
    provider: Provider,
    lowered: Lowered,
    options: Options,
    session: Mutex<Option<Session>>,
}

impl DecodeSession {
    /// None where weights do not stay mapped, or no linear layer has a stored weight.
    pub(super) fn new(
        environment: &'static Environment,
        provider: &Provider,
        lowered: &Lowered,
        options: &Options,
    ) -> Option<Self> {
        if provider.is_exclusive() || options.map_weights != Some(true) {
            return None;
        }
        let model = mapped::for_decoding(&lowered.model)?;
        let lowered = Lowered { model, ..lowered.clone() };
        let (provider, options) = (provider.clone(), options.clone());
        Some(Self { environment, provider, lowered, options, session: Mutex::default() })
    }

    /// Whether these inputs are few enough tokens.
    pub(super) fn takes(inputs: &Values) -> bool {
        let tokens = ["input_ids", "decoder_input_ids", "inputs_embeds"];
        let shape = tokens.iter().find_map(|name| inputs.get(*name)).map(Value::shape).unwrap_or_default();
        shape.len() >= 2 && shape[0] * shape[1] <= MOST_ROWS
    }

    /// Hands the session to `run`.
    pub(super) fn with<T>(&self, run: impl FnOnce(&mut Session) -> ort::Result<T>) -> ort::Result<T> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.is_none() {
            let made = create(self.environment, &self.provider, &self.lowered, &self.options)?;
            *session = Some(made.0);
        }
        session.as_mut().map_or_else(|| Err(ort::Error::new("there is no session for decoding")), run)
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use ndarray::ArrayD;

    use super::super::environment;
    use super::super::session::Running;
    use super::*;
    use crate::Hardware;
    use crate::dims;
    use crate::engine::{Compiled, KvState};
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Dtype, Graph, Input};
    use crate::lower::{Target, lower};
    use crate::onnx::Model;
    use crate::weights::{Bytes, Weights};

    const WIDTH: usize = 128;
    const WORDS: usize = 300;

    /// A looked-up row, and two linear layers, one with a bias; the last has the looked-up weights.
    fn lowered(stored: Dtype) -> Lowered {
        let mut g = Graph::new();
        let ids = g.input(Input::i64("input_ids", dims![BATCH, SEQUENCE]));
        let w = g.scope("layer");
        let x = g.embedding(&w.scope("words"), &ids, WORDS, WIDTH).unwrap();
        let inner = g.linear(&w.scope("up"), &x, 3 * WIDTH).unwrap();
        let inner = g.linear_no_bias(&w.scope("down"), &inner, WIDTH).unwrap();
        let y = g.linear_no_bias(&w.scope("words"), &inner, WORDS).unwrap();
        g.output("y", &y).unwrap();
        let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
        let mut weights =
            Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
        for weight in &mut weights {
            let Bytes::Memory(bytes) = &mut weight.bytes else { panic!() };
            let numbers: Vec<f32> =
                bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            *bytes = match stored {
                Dtype::Bf16 => numbers.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
                Dtype::F16 => numbers.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
                _ => continue,
            };
            weight.dtype = stored;
        }
        lower(&g, &weights, &Target::of(Hardware::Cpu, crate::Precision::F32)).unwrap()
    }

    fn inputs(batch: usize, sequence: usize) -> Values {
        let ids = (0..batch * sequence).map(|i| (i * 37 % WORDS) as i64).collect();
        let ids = ArrayD::from_shape_vec(vec![batch, sequence], ids).unwrap();
        [("input_ids".to_owned(), Value::I64(ids))].into()
    }

    #[test]
    fn mapped_weights_give_what_converted_ones_do() {
        let (environment, _) = environment(Hardware::Cpu).unwrap();
        for stored in [Dtype::F32, Dtype::Bf16, Dtype::F16] {
            let lowered = lowered(stored);
            let opened = |map| {
                let options = Options { map_weights: Some(map), ..Options::default() };
                Running::new(environment, Hardware::Cpu, &lowered, &options).unwrap()
            };
            let (converted, mapped) = (opened(false), opened(true));
            for (batch, sequence) in [(1, 1), (3, 1), (2, 2), (1, 7)] {
                let inputs = inputs(batch, sequence);
                let Some(Value::F32(want)) = converted.run(&inputs).unwrap().remove("y") else { panic!() };
                let whole = mapped.run(&inputs).unwrap().remove("y");
                let step =
                    mapped.run_with_state(inputs.clone(), &mut KvState::default()).unwrap().remove("y");
                for got in [whole, step] {
                    let Some(Value::F32(got)) = got else { panic!() };
                    assert_eq!(got.shape(), want.shape());
                    let difference = (&got - &want).iter().fold(0.0_f32, |most, d| most.max(d.abs()));
                    assert!(difference < 1e-5, "{stored:?} {batch} x {sequence}: {difference}");
                }
            }
        }
    }

    #[test]
    fn only_few_tokens_are_decoded_by_it() {
        assert!(DecodeSession::takes(&inputs(1, 1)) && DecodeSession::takes(&inputs(4, 1)));
        assert!(!DecodeSession::takes(&inputs(1, 5)) && !DecodeSession::takes(&Values::new()));
    }

    #[test]
    fn linear_layers_take_weights_as_they_are_stored() {
        let operators = |model: Model| -> Vec<String> {
            model.graph.unwrap().node.into_iter().map(|node| node.op_type).collect()
        };
        let steps = |stored| operators(mapped::for_decoding(&lowered(stored).model).unwrap());
        assert_eq!(steps(Dtype::F32), ["Gather", "LinearF32", "LinearF32", "LinearF32"]);
        assert_eq!(
            steps(Dtype::Bf16),
            ["Gather", "Cast", "Cast", "LinearBf16", "LinearBf16", "LinearBf16"],
            "the cast of the bias, which is small, and of the rows that were looked up"
        );
        let prompt = operators(mapped::for_prefill(&lowered(Dtype::F16).model).unwrap());
        assert_eq!(prompt.iter().filter(|operator| *operator == "WidenF16").count(), 3);
        assert!(mapped::for_prefill(&lowered(Dtype::F32).model).is_none());
    }
}
