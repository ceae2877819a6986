//! Convolutions in 8 bits: the input is rounded image by image, windows are multiplied with quantized weights in whole numbers,
//! and sums become single precision as they are written.

mod codes;
mod product;
pub(super) mod tile;

use std::cell::RefCell;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use self::codes::Codes;
use self::product::{Follow, Plan, Product, Weight};
use super::super::operators::missing;
use super::windows::Geometry;
use super::{Attributes, KEPT};

/// Its name.
pub(in super::super) const NAME: &str = "ConvolutionQuantized";

/// Where what follows the weight begins among its operands.
pub(in super::super) const OTHERS: usize = 4;

thread_local! {
    /// The bytes of an image, which one convolution leaves to the next.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::default();
}

/// `Conv` of a weight in 8 bits: `x` `[batch, channels, ..lengths]`, codes in panels (`quantization::panels`), the scale and the sum of each
/// channel's codes, `[out]`, then as [`Convolution`](super::Convolution) takes them.
#[derive(Default)]
pub(in super::super) struct ConvolutionQuantized {
    attributes: Attributes,
}

impl Operator for ConvolutionQuantized {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let (number, code) = (TensorElementType::Float32, TensorElementType::Uint8);
        let given = [number, code, number, number].map(OperatorInput::required);
        given.into_iter().chain((0..6).map(move |_| OperatorInput::optional(number)))
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self { attributes: Attributes::of(context) })
    }
}

impl Kernel for ConvolutionQuantized {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let [x, codes, scales, sums] = [0, 1, 2, 3].map(|at| context.input(at));
        let (x, codes) = (x?.ok_or_else(missing)?, codes?.ok_or_else(missing)?);
        let (scales, sums) = (scales?.ok_or_else(missing)?, sums?.ok_or_else(missing)?);
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (_, codes) = codes.try_extract_tensor::<u8>()?;
        let (_, scales) = scales.try_extract_tensor::<f32>()?;
        let (_, sums) = sums.try_extract_tensor::<f32>()?;
        let channels = shape.get(1).copied().unwrap_or_default() / self.attributes.group.max(1);
        let window: Vec<i64> =
            [scales.len() as i64, channels].iter().chain(&self.attributes.kernel).copied().collect();
        let geometry = self.attributes.geometry(shape, &window)?;
        let weight = Weight::new(&geometry, codes, scales, sums).map_err(ort::Error::new)?;
        let axes = shape.len() - 2;
        self.attributes.compute(context, &geometry, axes, OTHERS, |epilogue, result| {
            let follow = Follow { epilogue, silu: self.attributes.silu };
            let each = |parts, task: super::windows::Task<'_>| context.par_for(parts, parts, task);
            by(tile::kernel(), &geometry, x, &weight, follow, result, each)
        })
    }
}

/// All images; `each` carries out a task for each of so many parts.
fn by<E>(
    kernel: tile::Kernel,
    geometry: &Geometry,
    x: &[f32],
    weight: &Weight<'_>,
    follow: Follow<'_>,
    result: &mut [f32],
    each: impl Fn(usize, super::windows::Task<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let places = geometry.places();
    let (channels, out) = (geometry.channels * geometry.groups, geometry.out * geometry.groups);
    let plane: usize = geometry.lengths.iter().product();
    if places * out == 0 {
        return Ok(());
    }
    let plan = Plan::of(geometry);
    let mut scratch = SCRATCH.take();
    for (image, result) in result.chunks_exact_mut(places * out).enumerate() {
        let x = &x[image * channels * plane..][..channels * plane];
        let codes = Codes::new(kernel, geometry, x, &mut scratch, &each)?;
        let product = Product::new(kernel, geometry, &plan, weight, &codes, follow, image, result);
        each(product.parts(), &|part| product.compute(part))?;
    }
    if scratch.len() <= KEPT * size_of::<f32>() {
        SCRATCH.set(scratch);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
