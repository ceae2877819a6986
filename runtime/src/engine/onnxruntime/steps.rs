//! Steps of a decoder whose weights stay in their mapped pages: a session of its own, in which every linear layer is
//! [`Product`].

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::operator::{
    ComputeContext, Kernel, KernelContext, Operator, OperatorDomain, OperatorInput, OperatorOutput,
};
use ort::session::Session;
use ort::value::TensorElementType;

use super::product::Product;
use super::provider::Provider;
use super::session::create;
use crate::engine::Options;
use crate::graph::Dtype;
use crate::lower::Lowered;
use crate::onnx::{self, Model, Node, OperatorSet};
use crate::{Value, Values};

/// The domain of the runtime's own operators.
const DOMAIN: &str = "weft";
const LINEAR: &str = "Linear";

/// From so many rows on, a weight is used often enough for ONNX Runtime's own way to be faster.
const MOST_ROWS: usize = 4;

/// What takes the place of a session where few tokens are run; made when the first come.
pub(super) struct Steps {
    environment: &'static Environment,
    provider: Provider,
    lowered: Lowered,
    options: Options,
    session: Mutex<Option<Session>>,
}

impl Steps {
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
        let model = with_own_linear(&lowered.model)?;
        let lowered = Lowered { model, ..lowered.clone() };
        let (provider, options) = (provider.clone(), options.clone());
        Some(Self { environment, provider, lowered, options, session: Mutex::default() })
    }

    /// Whether these inputs are few enough tokens.
    pub(super) fn take(inputs: &Values) -> bool {
        let tokens = ["input_ids", "decoder_input_ids", "inputs_embeds"];
        let shape = tokens.iter().find_map(|name| inputs.get(*name)).map(Value::shape).unwrap_or_default();
        shape.len() >= 2 && shape[0] * shape[1] <= MOST_ROWS
    }

    /// Hands the session to `run`.
    pub(super) fn with<T>(&self, run: impl FnOnce(&mut Session) -> ort::Result<T>) -> ort::Result<T> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.is_none() {
            let domain = OperatorDomain::new(DOMAIN)?.add(Linear)?;
            let made = create(self.environment, &self.provider, &self.lowered, &self.options, Some(domain))?;
            *session = Some(made.0);
        }
        session.as_mut().map_or_else(|| Err(ort::Error::new("there is no session for steps")), run)
    }
}

/// The model with its linear layers as [`Linear`]; none where none has a stored weight.
fn with_own_linear(model: &Model) -> Option<Model> {
    let mut model = model.clone();
    let graph = model.graph.as_mut()?;
    let initializers = graph.initializer.iter();
    let single = initializers.filter(|tensor| tensor.data_type == onnx::data_type(Dtype::F32));
    let stored: BTreeSet<&str> = single.map(|tensor| tensor.name.as_str()).collect();
    let mut found = false;
    for node in
        graph.node.iter_mut().filter(|node| is_linear(node) && stored.contains(node.input[1].as_str()))
    {
        found = true;
        node.op_type = LINEAR.to_owned();
        node.domain = DOMAIN.to_owned();
        node.attribute.clear();
    }
    model.opset_import.push(OperatorSet { domain: DOMAIN.to_owned(), version: Some(1) });
    found.then_some(model)
}

/// Whether a node is `x · wᵀ`, plus a bias or not.
fn is_linear(node: &Node) -> bool {
    let [transposed] = node.attribute.as_slice() else { return false };
    node.op_type == "Gemm"
        && node.domain.is_empty()
        && transposed.name == "transB"
        && transposed.i == Some(1)
        && matches!(node.input.len(), 2 | 3)
}

/// `x · wᵀ + b`: `x` `[rows, width]`, `w` `[out, width]`, `b` `[out]` or left out.
struct Linear;

impl Operator for Linear {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        LINEAR
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        [OperatorInput::required(number), OperatorInput::required(number), OperatorInput::optional(number)]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, _: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self)
    }
}

impl Kernel for Linear {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let missing = || ort::Error::new("weft.Linear lacks an operand");
        let x = context.input(0)?.ok_or_else(missing)?;
        let weight = context.input(1)?.ok_or_else(missing)?;
        let bias = if context.num_inputs()? > 2 { context.input(2)? } else { None };
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (weight_shape, weight) = weight.try_extract_tensor::<f32>()?;
        let bias = bias.as_ref().map(|bias| bias.try_extract_tensor::<f32>()).transpose()?;
        let (&[rows, width], &[out, inner]) = (&shape[..], &weight_shape[..]) else {
            return Err(ort::Error::new("weft.Linear takes operands of two axes"));
        };
        if width != inner {
            return Err(ort::Error::new(format!("weft.Linear got rows of {width} for weights of {inner}")));
        }
        let mut result = context.output(0, [rows, out])?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let product =
            Product::new(x, weight, bias.map(|(_, bias)| bias), width.unsigned_abs() as usize, result);
        context.par_for(product.blocks(), product.blocks(), |block| product.compute(block))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayD;

    use super::super::environment;
    use super::super::session::Running;
    use super::*;
    use crate::Hardware;
    use crate::dims;
    use crate::engine::{Compiled, Kept};
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Graph, Input};
    use crate::lower::{Rules, lower};
    use crate::weights::Weights;

    const WIDTH: usize = 48;

    /// Two linear layers, one with a bias.
    fn lowered() -> Lowered {
        let mut g = Graph::new();
        let x = g.input(Input::f32("inputs_embeds", dims![BATCH, SEQUENCE, WIDTH]));
        let w = g.scope("layer");
        let inner = g.linear(&w.scope("up"), &x, 3 * WIDTH).unwrap();
        let y = g.linear_no_bias(&w.scope("down"), &inner, WIDTH).unwrap();
        g.output("y", &y).unwrap();
        let parameters = g.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
        let weights = Weights::Rule(parameters.collect()).locate(g.weights(), &Default::default()).unwrap();
        lower(&g, &weights, &Rules::of(Hardware::Cpu, crate::Precision::F32)).unwrap()
    }

    fn inputs(batch: usize, sequence: usize) -> Values {
        let count = batch * sequence * WIDTH;
        let numbers = (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
        let x = ArrayD::from_shape_vec(vec![batch, sequence, WIDTH], numbers).unwrap();
        [("inputs_embeds".to_owned(), Value::F32(x))].into()
    }

    #[test]
    fn single_tokens_give_what_a_prompt_gives() {
        let (environment, _) = environment(Hardware::Cpu).unwrap();
        let options = Options { map_weights: Some(true), ..Options::default() };
        let running = Running::new(environment, Hardware::Cpu, &lowered(), &options).unwrap();
        for (batch, sequence) in [(1, 1), (3, 1), (2, 2), (1, 7)] {
            let inputs = inputs(batch, sequence);
            let Value::F32(want) = running.run(&inputs).unwrap().remove("y").unwrap() else { panic!() };
            let Value::F32(got) =
                running.run_kept(&inputs, &mut Kept::default()).unwrap().remove("y").unwrap()
            else {
                panic!()
            };
            assert_eq!(got.shape(), want.shape());
            let difference = (&got - &want).iter().fold(0.0_f32, |most, d| most.max(d.abs()));
            assert!(difference < 1e-5, "{batch} x {sequence}: {difference}");
        }
    }

    #[test]
    fn only_few_tokens_are_steps() {
        assert!(Steps::take(&inputs(1, 1)) && Steps::take(&inputs(4, 1)));
        assert!(!Steps::take(&inputs(1, 5)) && !Steps::take(&Values::new()));
    }

    #[test]
    fn every_linear_layer_becomes_our_own() {
        let model = with_own_linear(&lowered().model).unwrap();
        let nodes = model.graph.unwrap().node;
        assert_eq!(nodes.iter().filter(|node| node.op_type == LINEAR && node.domain == DOMAIN).count(), 2);
        assert!(nodes.iter().all(|node| node.op_type != "Gemm"));
    }
}
