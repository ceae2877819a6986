//! Masks of the largest elements (`torch.topk`), by which routers select experts: ONNX has no operator for them, and plain ones take four
//! for each element that is selected.

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::operators::missing;

/// Of x `[…, elements]` whether each is one of the `count` largest, of equal ones the first: bool of the same shape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopKMask {
    count: usize,
}

impl Operator for TopKMask {
    type Kernel<'attr> = Self;

    fn name(&self) -> &'static str {
        "TopKMask"
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [OperatorInput::required(TensorElementType::Float32)]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Bool)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let count = context.get::<i64>("count").and_then(|count| usize::try_from(count).ok());
        match count {
            Some(count @ 1..) => Ok(Self { count }),
            _ => Err(ort::Error::new("a mask of the largest elements does not say how many")),
        }
    }
}

impl Kernel for TopKMask {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let x = context.input(0)?.ok_or_else(missing)?;
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let mut mask = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
        let (_, mask) = mask.try_extract_tensor_mut::<bool>()?;
        let length = shape.last().map_or(0, |length| length.unsigned_abs() as usize).max(1);
        for (x, mask) in x.chunks_exact(length).zip(mask.chunks_exact_mut(length)) {
            marked(x, self.count, mask);
        }
        Ok(())
    }
}

/// Marks the largest of x, none of which is as low as numbers go.
fn marked(x: &[f32], count: usize, mask: &mut [bool]) {
    mask.fill(false);
    for _ in 0..count {
        let mut best: Option<(usize, f32)> = None;
        for (place, (x, taken)) in x.iter().zip(mask.iter()).enumerate() {
            if !taken && *x > best.map_or(f32::MIN, |(_, most)| most) {
                best = Some((place, *x));
            }
        }
        let Some((place, _)) = best else { break };
        mask[place] = true;
    }
}

#[cfg(test)]
mod tests;
