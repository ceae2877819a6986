//! Linear attention (`com.microsoft.LinearAttention`): states of heads side by side, on all cores.
//!
//! ONNX Runtime's kernel goes over keys and values one by one. Here the longer of both axes fills registers, of values where
//! there are several and of keys where a state has one value for each (selective scan), with exponentials of their decays.

mod positions;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use self::positions::{Heads, fastest};
use super::operators::missing;
use super::state_blocks::{Neighbours, StateBlocks};

/// The operator, of the runtime's own domain as of ONNX Runtime's.
pub(super) const NAME: &str = "LinearAttention";

/// The most numbers of the states that stay in the first cache while positions go by.
const NEAR: usize = 4096;

/// With decay g and delta rule β: `S = exp(g)·S + k ⊗ β(v − exp(g)·Sᵀk)`, of which the result is `scale·Sᵀq`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinearAttention {
    query_heads: usize,
    heads: usize,
    scale: f32,
}

impl Operator for LinearAttention {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        let given = (0..4).map(move |_| OperatorInput::required(number));
        given.chain((0..2).map(move |_| OperatorInput::optional(number)))
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [TensorElementType::Float32; 2].map(OperatorOutput::required)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let heads =
            |name| context.get::<i64>(name).and_then(|heads| usize::try_from(heads).ok()).unwrap_or(0);
        let (query_heads, heads) = (heads("q_num_heads"), heads("kv_num_heads"));
        if query_heads == 0 || !heads.is_multiple_of(query_heads) {
            let problem = format!("linear attention has {heads} heads for {query_heads} of queries");
            return Err(ort::Error::new(problem));
        }
        Ok(Self { query_heads, heads, scale: context.get::<f32>("scale").unwrap_or(1.0) })
    }
}

impl Kernel for LinearAttention {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let count = context.num_inputs()?;
        let inputs = (0..6)
            .map(|place| if place < count { context.input(place) } else { Ok(None) })
            .collect::<ort::Result<Vec<_>>>()?;
        let floats = |place: usize| -> ort::Result<Option<(&[i64], &[f32])>> {
            let Some(value) = inputs[place].as_ref() else { return Ok(None) };
            let (shape, numbers) = value.try_extract_tensor::<f32>()?;
            Ok(Some((shape, numbers)))
        };
        let needed = |place: usize| floats(place)?.ok_or_else(missing);
        let ((shape, q), (_, k), (_, v), (lengths, state)) = (needed(0)?, needed(1)?, needed(2)?, needed(3)?);
        let (&[batch, positions, _], &[_, _, key, value]) = (shape, lengths) else {
            return Err(ort::Error::new(format!(
                "linear attention got queries {shape:?} and a state {lengths:?}"
            )));
        };
        let result_shape = vec![batch, positions, self.heads as i64 * value];
        let states_shape = lengths.to_vec();
        let [batch, positions, key, value] =
            [batch, positions, key, value].map(|n| n.unsigned_abs() as usize);
        let given = Given {
            of: *self,
            lengths: [batch, positions, key, value],
            q,
            k,
            v,
            state,
            decay: floats(4)?.map(|(_, decay)| decay),
            beta: floats(5)?.map(|(_, beta)| beta),
        };
        given.check().map_err(ort::Error::new)?;
        let mut result = context.output(0, result_shape)?.ok_or_else(missing)?;
        let mut states = context.output(1, states_shape)?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let (_, states) = states.try_extract_tensor_mut::<f32>()?;
        let task = Task::new(&given, result, states);
        context.par_for(task.blocks(), task.blocks(), |block| task.compute(block))
    }
}

/// What it is given.
#[derive(Clone, Copy, Debug)]
struct Given<'a> {
    of: LinearAttention,
    /// Batch, positions, keys and values of a head.
    lengths: [usize; 4],
    /// `[batch, positions, query_heads·key]`.
    q: &'a [f32],
    /// `[batch, positions, heads·key]`.
    k: &'a [f32],
    /// `[batch, positions, heads·value]`.
    v: &'a [f32],
    /// `[batch, heads, key, value]`.
    state: &'a [f32],
    /// `[batch, positions, heads]` or `[batch, positions, heads·key]`.
    decay: Option<&'a [f32]>,
    /// `[batch, positions, heads]`.
    beta: Option<&'a [f32]>,
}

impl Given<'_> {
    fn check(&self) -> Result<(), String> {
        let [batch, positions, key, value] = self.lengths;
        let LinearAttention { heads, query_heads, .. } = self.of;
        let rows = batch * positions;
        let decays = self.decay.is_none_or(|decay| [rows * heads, rows * heads * key].contains(&decay.len()));
        let fits = key * value > 0
            && self.q.len() == rows * query_heads * key
            && self.k.len() == rows * heads * key
            && self.v.len() == rows * heads * value
            && self.state.len() == batch * heads * key * value
            && decays
            && self.beta.is_none_or(|beta| beta.len() == rows * heads);
        if fits {
            Ok(())
        } else {
            Err(format!("linear attention got lengths that do not fit {:?}", self.lengths))
        }
    }

    /// Whether each key decays by itself.
    fn by_key(&self) -> bool {
        let [batch, positions, key, _] = self.lengths;
        key > 1 && self.decay.is_some_and(|decay| decay.len() == batch * positions * self.of.heads * key)
    }
}

/// The work, cut into blocks of heads that threads take in any order.
struct Task<'a> {
    given: &'a Given<'a>,
    blocks: StateBlocks<'a>,
    positions: fn(&Given<'_>, &mut Heads<'_, '_>),
}

impl<'a> Task<'a> {
    fn new(given: &'a Given<'a>, results: &'a mut [f32], states: &'a mut [f32]) -> Self {
        let [_, _, key, value] = given.lengths;
        let blocks = StateBlocks::new(given.of.heads, [key * value, value], given.state, results, states);
        Self { given, blocks, positions: fastest() }
    }

    fn blocks(&self) -> usize {
        self.blocks.count()
    }

    fn compute(&self, block: usize) {
        let [_, _, key, value] = self.given.lengths;
        self.blocks.compute(block, |Neighbours { batch, first, state, rows }| {
            // States that are too large for the first cache go one after the other.
            let step = if state.len() <= NEAR { state.len() } else { key * value };
            for (index, state) in state.chunks_exact_mut(step).enumerate() {
                let start = index * step / (key * value);
                let mut heads = Heads { batch, first: first + start, place: start * value, state, rows };
                (self.positions)(self.given, &mut heads);
            }
        });
    }
}

#[cfg(test)]
mod tests;
