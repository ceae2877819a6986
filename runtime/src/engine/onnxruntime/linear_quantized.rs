//! The operator of linear layers with quantized weights.

use std::marker::PhantomData;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::quantized::{Product, Weight, Zeros};
use super::stored::Stored;
use crate::graph::Dtype;

/// The attributes that say how many bits codes have, and how many of them share a scale.
pub(super) const BITS: &str = "bits";
pub(super) const GROUP: &str = "group";

/// The operator whose scales are of this type.
pub(super) fn name(scales: Dtype) -> Option<&'static str> {
    match scales {
        Dtype::F32 => Some("LinearQuantizedF32"),
        Dtype::F16 => Some("LinearQuantizedF16"),
        _ => None,
    }
}

/// `x · wᵀ + b`, of a weight as `com.microsoft.MatMulNBits` takes it: `x` `[.., width]`, codes `[out, blocks, group · bits / 8]`,
/// scales `[out, blocks]`, or of as many elements in any shape, then each left out or not: zero points in as many bits as codes,
/// what is added to each weight of a block, and `b` `[out]`; `[.., out]`.
#[derive(Default)]
pub(super) struct LinearQuantized<S> {
    bits: usize,
    group: usize,
    scales: PhantomData<S>,
}

impl<S: Stored> Operator for LinearQuantized<S> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        name(S::DTYPE).unwrap_or_default()
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let (number, code) = (TensorElementType::Float32, TensorElementType::Uint8);
        [
            OperatorInput::required(number),
            OperatorInput::required(code),
            OperatorInput::required(S::into_tensor_element_type()),
            OperatorInput::optional(code),
            OperatorInput::optional(number),
            OperatorInput::optional(number),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let attribute = |name| context.get::<i64>(name).and_then(|value| usize::try_from(value).ok());
        let (bits, group) = (attribute(BITS).unwrap_or(0), attribute(GROUP).unwrap_or(0));
        if !matches!(bits, 2 | 4 | 8) || !matches!(group, 16 | 32 | 64 | 128 | 256) {
            return Err(ort::Error::new(format!("quantized weights have no {bits} bits by {group}")));
        }
        Ok(Self { bits, group, scales: PhantomData })
    }
}

impl<S: Stored> Kernel for LinearQuantized<S> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let given = context.num_inputs()?;
        let optional = |place| if place < given { context.input(place) } else { Ok(None) };
        let missing = || ort::Error::new("an operand of a quantized linear layer is missing");
        let x = context.input(0)?.ok_or_else(missing)?;
        let codes = context.input(1)?.ok_or_else(missing)?;
        let scales = context.input(2)?.ok_or_else(missing)?;
        let (zeros, offsets, bias) = (optional(3)?, optional(4)?, optional(5)?);
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (codes_shape, codes) = codes.try_extract_tensor::<u8>()?;
        let (_, scales) = scales.try_extract_tensor::<S>()?;
        let zeros = zeros.as_ref().map(|zeros| zeros.try_extract_tensor::<u8>()).transpose()?;
        let offsets = offsets.as_ref().map(|offsets| offsets.try_extract_tensor::<f32>()).transpose()?;
        let bias = bias.as_ref().map(|bias| bias.try_extract_tensor::<f32>()).transpose()?;
        let Some((&last, rows)) = shape.split_last() else {
            return Err(ort::Error::new("a product takes rows"));
        };
        let zeros = match (zeros, offsets) {
            (Some((_, zeros)), _) => Zeros::Codes(zeros),
            (_, Some((_, offsets))) => Zeros::Offsets(offsets),
            _ => Zeros::Middle,
        };
        let width = last.unsigned_abs() as usize;
        let weight = Weight { codes, scales, zeros, width, bits: self.bits, group: self.group };
        let out = codes_shape.first().map_or(0, |out| out.unsigned_abs() as usize);
        let bias = bias.map(|(_, bias)| bias);
        if !weight.holds(out) || bias.is_some_and(|bias| bias.len() != out) {
            let problem = format!("a product got rows of {width} for codes of {codes_shape:?}");
            return Err(ort::Error::new(problem));
        }
        let given: Vec<i64> = rows.iter().copied().chain([out as i64]).collect();
        let mut result = context.output(0, given)?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let product = Product::new(x, weight, bias, result, |rows, round| match rows {
            0..=4 => {
                (0..rows).for_each(round);
                Ok(())
            }
            _ => context.par_for(rows, rows, round),
        })?;
        context.par_for(product.blocks(), product.blocks(), |block| product.compute(block))
    }
}
