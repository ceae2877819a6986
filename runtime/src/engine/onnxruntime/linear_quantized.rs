//! The operator of linear layers with quantized weights.

use std::marker::PhantomData;

use half::f16;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::quantized::{Product, Weight, Zeros};
use super::stored::Stored;
use crate::graph::Dtype;
use crate::weights::Codebook;

/// The attributes that say how many bits codes have, and how many of them share a scale.
pub(super) const BITS: &str = "bits";
pub(super) const GROUP: &str = "group";
/// The attribute of the codebook that codes are places in, where they are.
pub(super) const CODEBOOK: &str = "codebook";

/// The operator whose scales are of this type.
pub(super) fn name(scales: Dtype) -> Option<&'static str> {
    match scales {
        Dtype::F32 => Some("LinearQuantizedF32"),
        Dtype::F16 => Some("LinearQuantizedF16"),
        Dtype::U8 => Some("LinearQuantizedE8m0"),
        _ => None,
    }
}

/// `x · wᵀ + b`, of a weight as `com.microsoft.MatMulNBits` takes it: `x` `[.., width]`, codes `[out, blocks, group · bits / 8]`,
/// scales `[out, blocks]`, or of as many elements in any shape, then each left out or not: zero points in as many bits as codes,
/// what is added to each weight of a block, and `b` `[out]`; `[.., out]`. Codes of 4 bits may be places in a codebook, and what
/// scales of 256 of them are multiplied with, f16 `[out, width / 256]`, comes last.
#[derive(Default)]
pub(super) struct LinearQuantized<S> {
    blocks: Blocks,
    scales: PhantomData<S>,
}

/// How codes are stored.
#[derive(Clone, Copy, Default)]
pub(super) struct Blocks {
    pub(super) bits: usize,
    pub(super) group: usize,
    pub(super) codebook: Option<Codebook>,
}

impl Blocks {
    /// By the attributes of an operator.
    pub(super) fn of(context: &KernelContext<'_>) -> ort::Result<Self> {
        let attribute = |name| context.get::<i64>(name).and_then(|value| usize::try_from(value).ok());
        let (bits, group) = (attribute(BITS).unwrap_or(0), attribute(GROUP).unwrap_or(0));
        if !matches!(bits, 2 | 4 | 8) || !matches!(group, 16 | 32 | 64 | 128 | 256) {
            return Err(ort::Error::new(format!("quantized weights have no {bits} bits by {group}")));
        }
        let Some(name) = context.get::<String>(CODEBOOK) else {
            return Ok(Self { bits, group, codebook: None });
        };
        match Codebook::named(&name).filter(|_| bits == 4) {
            None => Err(ort::Error::new(format!("there is no codebook `{name}` of {bits} bits"))),
            codebook => Ok(Self { bits, group, codebook }),
        }
    }
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
            OperatorInput::optional(TensorElementType::Float16),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self { blocks: Blocks::of(context)?, scales: PhantomData })
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
        let (zeros, offsets, bias, outer) = (optional(3)?, optional(4)?, optional(5)?, optional(6)?);
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (codes_shape, codes) = codes.try_extract_tensor::<u8>()?;
        let (_, scales) = scales.try_extract_tensor::<S>()?;
        let zeros = zeros.as_ref().map(|zeros| zeros.try_extract_tensor::<u8>()).transpose()?;
        let offsets = offsets.as_ref().map(|offsets| offsets.try_extract_tensor::<f32>()).transpose()?;
        let bias = bias.as_ref().map(|bias| bias.try_extract_tensor::<f32>()).transpose()?;
        let outer = outer.as_ref().map(|outer| outer.try_extract_tensor::<f16>()).transpose()?;
        let Some((&last, rows)) = shape.split_last() else {
            return Err(ort::Error::new("a product takes rows"));
        };
        let Blocks { bits, group, codebook } = self.blocks;
        let zeros = match (codebook, zeros, offsets) {
            (Some(book), ..) => Zeros::Codebook(book),
            (_, Some((_, zeros)), _) => Zeros::Codes(zeros),
            (_, _, Some((_, offsets))) => Zeros::Offsets(offsets),
            _ => Zeros::Middle,
        };
        let width = last.unsigned_abs() as usize;
        let outer = outer.map(|(_, outer)| outer);
        let weight = Weight { codes, scales, outer, zeros, width, bits, group };
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
