//! Root-mean-square normalisation of a sum (Zhang and Sennrich, 2019, arXiv:1910.07467), which other operations read as well.
//!
//! ONNX Runtime's kernels, `RMSNormalization` and `SkipSimplifiedLayerNormalization`, add up squares one after the other.

use std::sync::{Mutex, PoisonError};

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::lanes::{self, LANES, added_up, fused};
use super::operators::missing;

/// Elements that a thread computes at a time: fewer take less time than another thread to wake.
const BLOCK: usize = 1 << 14;

/// Of two values `[…, width]` and a scale `[width]`: `(a + b) / √(mean((a + b)²) + ε) · scale`, and `a + b`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddRmsNorm {
    epsilon: f32,
}

impl Operator for AddRmsNorm {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        "AddRmsNorm"
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [TensorElementType::Float32; 3].map(OperatorInput::required)
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [TensorElementType::Float32; 2].map(OperatorOutput::required)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let epsilon = context.get::<f32>("epsilon");
        epsilon.map(|epsilon| Self { epsilon }).ok_or_else(|| ort::Error::new("a norm has no epsilon"))
    }
}

impl Kernel for AddRmsNorm {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let input = |place: usize| context.input(place)?.ok_or_else(missing);
        let (a, b, scale) = (input(0)?, input(1)?, input(2)?);
        let (shape, a) = a.try_extract_tensor::<f32>()?;
        let ((other, b), (_, scale)) = (b.try_extract_tensor::<f32>()?, scale.try_extract_tensor::<f32>()?);
        if shape != other || shape.last().is_none_or(|width| width.unsigned_abs() as usize != scale.len()) {
            let problem = format!("a norm of {} got {shape:?} and {other:?}", scale.len());
            return Err(ort::Error::new(problem));
        }
        let mut normed = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
        let mut sum = context.output(1, shape.to_vec())?.ok_or_else(missing)?;
        let (_, normed) = normed.try_extract_tensor_mut::<f32>()?;
        let (_, sum) = sum.try_extract_tensor_mut::<f32>()?;
        let width = scale.len().max(1);
        let each = (BLOCK / width).max(1) * width;
        let (epsilon, compute) = (self.epsilon, fastest());
        if a.len() <= each {
            compute(epsilon, scale, [a, b], [normed, sum]);
            return Ok(());
        }
        let results = normed.chunks_mut(each).zip(sum.chunks_mut(each));
        let blocks: Vec<_> =
            a.chunks(each).zip(b.chunks(each)).zip(results).map(|block| Mutex::new(Some(block))).collect();
        context.par_for(blocks.len(), blocks.len(), |block| {
            let block = blocks[block].lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(((a, b), (normed, sum))) = block {
                compute(epsilon, scale, [a, b], [normed, sum]);
            }
        })
    }
}

/// What takes ε, the scale, and what is added row by row to what is normalised and the sums.
type Rows = fn(f32, &[f32], [&[f32]; 2], [&mut [f32]; 2]);

/// The form of [`rows`] that this processor is fastest with.
fn fastest() -> Rows {
    lanes::fastest!(rows: fn(epsilon: f32, scale: &[f32], of: [&[f32]; 2], into: [&mut [f32]; 2]))
}

#[inline(always)]
fn rows<const FUSED: bool>(epsilon: f32, scale: &[f32], [a, b]: [&[f32]; 2], [normed, sum]: [&mut [f32]; 2]) {
    let width = scale.len().max(1);
    let results = normed.chunks_mut(width).zip(sum.chunks_mut(width));
    for ((a, b), (normed, sum)) in a.chunks(width).zip(b.chunks(width)).zip(results) {
        let squares = added::<FUSED>(a, b, sum);
        let factor = 1.0 / (squares / width as f32 + epsilon).sqrt();
        for ((normed, sum), scale) in normed.iter_mut().zip(&*sum).zip(scale) {
            *normed = sum * factor * scale;
        }
    }
}

/// Adds up two rows; the sum of the squares.
#[inline(always)]
fn added<const FUSED: bool>(a: &[f32], b: &[f32], sum: &mut [f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let (chunks, rest) = sum.as_chunks_mut::<LANES>();
    let mut squares = [0.0; LANES];
    for ((a, b), sum) in a_chunks.iter().zip(b_chunks).zip(chunks) {
        let both: [f32; LANES] = std::array::from_fn(|lane| a[lane] + b[lane]);
        for lane in 0..LANES {
            squares[lane] = fused::<FUSED>(both[lane], both[lane], squares[lane]);
        }
        *sum = both;
    }
    for (lane, ((a, b), sum)) in a_rest.iter().zip(b_rest).zip(rest).enumerate() {
        *sum = a + b;
        squares[lane] = fused::<FUSED>(*sum, *sum, squares[lane]);
    }
    added_up(squares)
}

#[cfg(test)]
mod tests;
