//! Causal depthwise convolutions with a state (`com.microsoft.CausalConvWithState`, `causal_conv1d_update`), channels last.
//!
//! ONNX Runtime's kernel goes over each channel by itself. Here neighbouring channels are computed side by side.

use std::sync::PoisonError;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::lanes::{self, fused, silu};
use super::operators::missing;
use super::product::slices;

/// The operator, of the runtime's own domain as of ONNX Runtime's.
pub(super) const NAME: &str = "CausalConvWithState";

/// Multiplications that are worth another thread.
const LARGE: usize = 1 << 16;
/// So many rows are fewer than it is worth to lay the weights otherwise for.
const FEW: usize = 4;
/// Blocks of channels that threads take then.
const BLOCKS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CausalConv {
    silu: bool,
    dilation: usize,
}

impl Operator for CausalConv {
    type Kernel<'attr> = Self;

    fn name(&self) -> &'static str {
        NAME
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        [
            OperatorInput::required(number),
            OperatorInput::required(number),
            OperatorInput::optional(number),
            OperatorInput::optional(number),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [TensorElementType::Float32; 2].map(OperatorOutput::required)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let dilation = context.get::<i64>("dilation").and_then(|dilation| usize::try_from(dilation).ok());
        let silu = context.get::<String>("activation").is_some_and(|activation| activation == "silu");
        match (dilation, context.get::<i64>("channels_last")) {
            (Some(dilation @ 1..), Some(1)) => Ok(Self { silu, dilation }),
            _ => Err(ort::Error::new("a causal convolution takes channels last, and a dilation")),
        }
    }
}

impl Kernel for CausalConv {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let x = context.input(0)?.ok_or_else(missing)?;
        let weight = context.input(1)?.ok_or_else(missing)?;
        let (bias, past) = (context.input(2)?, context.input(3)?.ok_or_else(missing)?);
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (weight_shape, weight) = weight.try_extract_tensor::<f32>()?;
        let (past_shape, past) = past.try_extract_tensor::<f32>()?;
        let bias = bias.as_ref().map(|bias| bias.try_extract_tensor::<f32>()).transpose()?;
        let (&[batch, positions, channels], &[_, _, kernel]) = (&shape[..], &weight_shape[..]) else {
            let problem = format!("a causal convolution got {shape:?} and weights {weight_shape:?}");
            return Err(ort::Error::new(problem));
        };
        let [batch, positions, channels, kernel] =
            [batch, positions, channels, kernel].map(|length| length.unsigned_abs() as usize);
        let given = Given {
            of: *self,
            lengths: [batch, positions, channels, kernel],
            x,
            weight,
            bias: bias.map(|(_, bias)| bias),
            past,
        };
        given.check().map_err(ort::Error::new)?;
        let mut result = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
        let mut state = context.output(1, past_shape.to_vec())?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let (_, state) = state.try_extract_tensor_mut::<f32>()?;
        given.tail(state);
        let blocks = if x.len() * kernel < LARGE { 1 } else { BLOCKS };
        let each = channels.div_ceil(blocks).max(1);
        let results = slices(result, channels, each);
        let compute = fastest();
        context.par_for(results.len(), results.len(), |block| {
            let mut rows = results[block].lock().unwrap_or_else(PoisonError::into_inner);
            compute(&given, block * each, &mut rows);
        })
    }
}

/// What it is given.
#[derive(Clone, Copy, Debug)]
struct Given<'a> {
    of: CausalConv,
    /// Batch, positions, channels and the length of the kernel.
    lengths: [usize; 4],
    /// `[batch, positions, channels]`.
    x: &'a [f32],
    /// `[channels, 1, kernel]`.
    weight: &'a [f32],
    /// `[channels]`.
    bias: Option<&'a [f32]>,
    /// `[batch, (kernel − 1)·dilation, channels]`.
    past: &'a [f32],
}

impl Given<'_> {
    fn check(&self) -> Result<(), String> {
        let [batch, positions, channels, kernel] = self.lengths;
        let fits = channels * kernel > 0
            && self.x.len() == batch * positions * channels
            && self.weight.len() == channels * kernel
            && self.bias.is_none_or(|bias| bias.len() == channels)
            && self.past.len() == batch * self.before() * channels;
        if fits {
            Ok(())
        } else {
            Err(format!("a causal convolution got lengths that do not fit {:?}", self.lengths))
        }
    }

    /// How many positions before the first it sees.
    fn before(&self) -> usize {
        (self.lengths[3] - 1) * self.of.dilation
    }

    /// All channels of a position of a text, counted from the first of `past`.
    fn position(&self, text: usize, position: usize) -> &[f32] {
        let [_, positions, channels, _] = self.lengths;
        let before = self.before();
        match position.checked_sub(before) {
            None => &self.past[(text * before + position) * channels..][..channels],
            Some(new) => &self.x[(text * positions + new) * channels..][..channels],
        }
    }

    /// All channels that an element of the kernel sees of a row of the results.
    fn element(&self, row: usize, element: usize) -> &[f32] {
        let positions = self.lengths[1];
        self.position(row / positions, row % positions + element * self.of.dilation)
    }

    /// The same of each element.
    fn seen<const KERNEL: usize>(&self, row: usize) -> [&[f32]; KERNEL] {
        std::array::from_fn(|element| self.element(row, element))
    }

    /// What the sums of neighbouring channels begin with.
    fn begin(&self, first: usize, row: &mut [f32]) {
        match self.bias {
            Some(bias) => row.copy_from_slice(&bias[first..][..row.len()]),
            None => row.fill(0.0),
        }
    }

    /// What comes before the next positions.
    fn tail(&self, state: &mut [f32]) {
        let [_, positions, channels, _] = self.lengths;
        let before = self.before();
        for (index, row) in state.chunks_exact_mut(channels).enumerate() {
            row.copy_from_slice(self.position(index / before, positions + index % before));
        }
    }
}

/// The fastest that this processor has.
fn fastest() -> fn(&Given<'_>, usize, &mut [&mut [f32]]) {
    lanes::fastest!(compute: fn(given: &Given<'_>, first: usize, rows: &mut [&mut [f32]]))
}

/// The results of neighbouring channels, row by row.
#[inline(always)]
fn compute<const FUSED: bool>(given: &Given<'_>, first: usize, rows: &mut [&mut [f32]]) {
    match given.lengths[3] {
        2 if rows.len() <= FEW => few::<FUSED, 2>(given, first, rows),
        3 if rows.len() <= FEW => few::<FUSED, 3>(given, first, rows),
        4 if rows.len() <= FEW => few::<FUSED, 4>(given, first, rows),
        _ => many::<FUSED>(given, first, rows),
    }
    if given.of.silu {
        for row in rows {
            for result in row.iter_mut() {
                *result = silu::<FUSED>(*result);
            }
        }
    }
}

/// Of few rows, with the weights as they lie.
#[inline(always)]
fn few<const FUSED: bool, const KERNEL: usize>(given: &Given<'_>, first: usize, rows: &mut [&mut [f32]]) {
    let weights = &given.weight.as_chunks::<KERNEL>().0[first..];
    for (index, row) in rows.iter_mut().enumerate() {
        let x: [_; KERNEL] = given.seen(index).map(|x| &x[first..][..row.len()]);
        given.begin(first, row);
        for (channel, (result, weights)) in row.iter_mut().zip(weights).enumerate() {
            for element in 0..KERNEL {
                *result = fused::<FUSED>(x[element][channel], weights[element], *result);
            }
        }
    }
}

/// Of many rows, with the weights by element of the kernel, so that neighbouring channels lie side by side.
#[inline(always)]
fn many<const FUSED: bool>(given: &Given<'_>, first: usize, rows: &mut [&mut [f32]]) {
    let kernel = given.lengths[3];
    let count = rows.first().map_or(0, |row| row.len());
    let mut weights = vec![0.0_f32; kernel * count];
    for (channel, weight) in given.weight[first * kernel..].chunks_exact(kernel).take(count).enumerate() {
        for (element, weight) in weight.iter().enumerate() {
            weights[element * count + channel] = *weight;
        }
    }
    for (index, row) in rows.iter_mut().enumerate() {
        given.begin(first, row);
        for (element, weights) in weights.chunks_exact(count).enumerate() {
            let x = &given.element(index, element)[first..][..count];
            for ((result, x), weight) in row.iter_mut().zip(x).zip(weights) {
                *result = fused::<FUSED>(*x, *weight, *result);
            }
        }
    }
}

#[cfg(test)]
mod tests;
