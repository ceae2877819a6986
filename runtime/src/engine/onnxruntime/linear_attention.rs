//! Linear attention (`com.microsoft.LinearAttention`): states of heads side by side, on all cores.
//!
//! ONNX Runtime's kernel goes over keys and values one by one. Here the longer of both axes fills registers, of values where
//! there are several and of keys where a state has one value for each (selective scan), with exponentials of their decays.

use std::collections::HashSet;
use std::sync::PoisonError;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::operators::missing;
use super::product::{Slices, slices};
use crate::graph::Dtype;
use crate::onnx::{self, Graph, Node, ValueInfo};

/// The operator, of the runtime's own domain as of ONNX Runtime's.
pub(super) const NAME: &str = "LinearAttention";

/// Blocks of heads that threads take, where there are so many heads.
const BLOCKS: usize = 16;

/// Numbers that are computed side by side.
const LANES: usize = 16;

/// The most numbers of the states that stay in the first cache while positions go by.
const NEAR: usize = 4096;

/// Has the runtime's own kernel compute it wherever a graph has it in single precision; whether it has.
pub(super) fn own_linear_attention(graph: &mut Graph, domain: &str) -> bool {
    let single = |info: &&ValueInfo| {
        let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
        tensor.is_some_and(|tensor| tensor.elem_type == onnx::data_type(Dtype::F32))
    };
    let known = graph.value_info.iter().chain(&graph.input).filter(single);
    let single: HashSet<String> = known.map(|info| info.name.clone()).collect();
    let is_own = |node: &&mut Node| {
        let in_single = node.input.first().is_some_and(|name| single.contains(name));
        node.op_type == NAME && node.domain == "com.microsoft" && in_single
    };
    let nodes: Vec<_> = graph.node.iter_mut().filter(is_own).collect();
    let any = !nodes.is_empty();
    for node in nodes {
        domain.clone_into(&mut node.domain);
    }
    any
}

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
        let fits = self.q.len() == rows * query_heads * key
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
    /// Heads of a block.
    heads: usize,
    results: Vec<Slices<'a>>,
    states: Vec<Slices<'a>>,
    positions: fn(&Given<'_>, &mut Heads<'_, '_>),
}

impl<'a> Task<'a> {
    fn new(given: &'a Given<'a>, result: &'a mut [f32], states: &'a mut [f32]) -> Self {
        let [_, _, key, value] = given.lengths;
        let all = given.of.heads;
        let heads = all.div_ceil(BLOCKS).max(1);
        Self {
            given,
            heads,
            results: slices(result, all * value, heads * value),
            states: slices(states, all * key * value, heads * key * value),
            positions: fastest(),
        }
    }

    fn blocks(&self) -> usize {
        self.results.len()
    }

    fn compute(&self, block: usize) {
        let mut results = self.results[block].lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = self.states[block].lock().unwrap_or_else(PoisonError::into_inner);
        let [_, positions, key, value] = self.given.lengths;
        let first = block * self.heads;
        let count = self.heads.min(self.given.of.heads - first);
        // States that are too large for the first cache go one after the other.
        let step = if count * key * value <= NEAR { count } else { 1 };
        for (batch, state) in states.iter_mut().enumerate() {
            let before = (batch * self.given.of.heads + first) * key * value;
            state.copy_from_slice(&self.given.state[before..][..state.len()]);
            let rows = &mut results[batch * positions..][..positions];
            for start in (0..count).step_by(step) {
                let state = &mut state[start * key * value..][..step * key * value];
                let mut heads = Heads { batch, first: first + start, place: start * value, state, rows };
                (self.positions)(self.given, &mut heads);
            }
        }
    }
}

/// Heads whose positions are gone over, of a text of the batch.
struct Heads<'s, 'r> {
    batch: usize,
    first: usize,
    /// Where the first one's results begin in rows.
    place: usize,
    /// `[heads, key, value]`.
    state: &'s mut [f32],
    /// Of each position, the results of the block's heads.
    rows: &'s mut [&'r mut [f32]],
}

/// The fastest that this processor has.
fn fastest() -> fn(&Given<'_>, &mut Heads<'_, '_>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return with_fma::positions;
    }
    if cfg!(target_feature = "fma") || cfg!(target_arch = "aarch64") {
        positions::<true>
    } else {
        positions::<false>
    }
}

#[cfg(target_arch = "x86_64")]
mod with_fma {
    use super::{Given, Heads};

    /// As [`super::positions`], compiled for processors that multiply and add at once.
    #[allow(unsafe_code)]
    pub(super) fn positions(given: &Given<'_>, heads: &mut Heads<'_, '_>) {
        // SAFETY: only handed out where the processor has AVX2 and FMA.
        unsafe { compiled(given, heads) }
    }

    #[target_feature(enable = "avx2,fma")]
    fn compiled(given: &Given<'_>, heads: &mut Heads<'_, '_>) {
        super::positions::<true>(given, heads);
    }
}

#[inline(always)]
fn positions<const FUSED: bool>(given: &Given<'_>, heads: &mut Heads<'_, '_>) {
    let [_, positions, key, value] = given.lengths;
    let LinearAttention { heads: all, query_heads, scale } = given.of;
    let shared = all / query_heads;
    let by_key = given.by_key();
    let (mut decays, mut held) = (vec![1.0_f32; key], vec![0.0_f32; value]);
    for (position, row) in heads.rows.iter_mut().enumerate() {
        let row_of = heads.batch * positions + position;
        for (index, state) in heads.state.chunks_exact_mut(key * value).enumerate() {
            let head = heads.first + index;
            let at = row_of * all + head;
            let q = &given.q[(row_of * query_heads + head / shared) * key..][..key];
            let k = &given.k[at * key..][..key];
            let v = &given.v[at * value..][..value];
            let result = &mut row[heads.place + index * value..][..value];
            let one = given.decay.filter(|_| !by_key).map_or(1.0, |decay| exp::<FUSED>(decay[at]));
            if let Some(decay) = given.decay.filter(|_| by_key) {
                exps::<FUSED>(&decay[at * key..][..key], &mut decays);
            }
            if value == 1 && given.beta.is_none() {
                if !by_key {
                    decays.fill(one);
                }
                result[0] = scale * single::<FUSED>(state, &decays, q, k, v[0]);
                continue;
            }
            let kept = |index: usize| if by_key { decays[index] } else { one };
            let mut added = v;
            if let Some(beta) = given.beta {
                held.fill(0.0);
                for (index, row) in state.chunks_exact_mut(value).enumerate() {
                    let (kept, k) = (kept(index), k[index]);
                    for (held, state) in held.iter_mut().zip(row) {
                        *state *= kept;
                        *held = fused::<FUSED>(*state, k, *held);
                    }
                }
                for (held, v) in held.iter_mut().zip(v) {
                    *held = beta[at] * (v - *held);
                }
                added = &held;
            }
            result.fill(0.0);
            for (index, row) in state.chunks_exact_mut(value).enumerate() {
                let kept = if given.beta.is_some() { 1.0 } else { kept(index) };
                let (q, k) = (q[index], k[index]);
                for ((state, added), result) in row.iter_mut().zip(added).zip(&mut *result) {
                    *state = fused::<FUSED>(k, *added, kept * *state);
                    *result = fused::<FUSED>(*state, q, *result);
                }
            }
            for result in result {
                *result *= scale;
            }
        }
    }
}

/// One position of a state of one value for each key: what queries read behind it.
#[inline(always)]
fn single<const FUSED: bool>(state: &mut [f32], kept: &[f32], q: &[f32], k: &[f32], v: f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let rest = state.len() / LANES * LANES;
    let (states, last) = state.as_chunks_mut::<LANES>();
    let chunks =
        kept.as_chunks::<LANES>().0.iter().zip(q.as_chunks::<LANES>().0).zip(k.as_chunks::<LANES>().0);
    for (state, ((kept, q), k)) in states.iter_mut().zip(chunks) {
        for lane in 0..LANES {
            state[lane] = fused::<FUSED>(k[lane], v, kept[lane] * state[lane]);
            sums[lane] = fused::<FUSED>(state[lane], q[lane], sums[lane]);
        }
    }
    let mut sum = sums.iter().sum();
    for (state, index) in last.iter_mut().zip(rest..) {
        *state = fused::<FUSED>(k[index], v, kept[index] * *state);
        sum = fused::<FUSED>(*state, q[index], sum);
    }
    sum
}

#[inline(always)]
fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn exps<const FUSED: bool>(x: &[f32], into: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<LANES>();
    for (x, into) in chunks.iter().zip(into_chunks) {
        for lane in 0..LANES {
            into[lane] = exp::<FUSED>(x[lane]);
        }
    }
    for (x, into) in rest.iter().zip(into_rest) {
        *into = exp::<FUSED>(*x);
    }
}

/// The exponential of a number, within two units of the last place; 0 below the least normal number.
///
/// A power of two by its bits, times a polynomial of what is left (Cephes, `expf`).
#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    const LEAST: f32 = -87.0;
    const MOST: f32 = 88.0;
    /// Added and taken off, it leaves a whole number.
    const WHOLE: f32 = 12_582_912.0;
    const TERMS: [f32; 6] =
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.0e-1];
    let within = x.clamp(LEAST, MOST);
    let shifted = fused::<FUSED>(within, std::f32::consts::LOG2_E, WHOLE);
    let power = shifted - WHOLE;
    let left = fused::<FUSED>(power, -0.693_359_4, within);
    let left = fused::<FUSED>(power, 2.121_944_4e-4, left);
    let mut sum = TERMS[0];
    for term in &TERMS[1..] {
        sum = fused::<FUSED>(sum, left, *term);
    }
    let sum = fused::<FUSED>(sum, left * left, left + 1.0);
    // The whole number stands in the lowest bits.
    let scale = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    if x < LEAST { 0.0 } else { sum * scale }
}

#[cfg(test)]
mod tests;
