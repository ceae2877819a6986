//! The operator of linear layers with quantized weights.

use std::marker::PhantomData;

use half::f16;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::{TensorElementType, ValueRef};

use super::jobs::run;
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

/// The operands of a layer beside x.
pub(super) const OPERANDS: usize = 6;

/// The most layers that one operator computes.
pub(super) const MOST: usize = 4;

/// `x · wᵀ + b`, of a weight as `com.microsoft.MatMulNBits` takes it: `x` `[.., width]`, codes `[out, blocks, group · bits / 8]`,
/// scales `[out, blocks]`, or of as many elements in any shape, then each left out or not: zero points in as many bits as codes,
/// what is added to each weight of a block, and `b` `[out]`; `[.., out]`. Codes of 4 bits may be places in a codebook, and what
/// scales of 256 of them are multiplied with, f16 `[out, width / 256]`, comes last.
///
/// Layers of the same x, as those of queries, keys and values, follow with their six operands and an output each: x is rounded
/// once, and threads take blocks of all weights in one go.
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
        let first = [
            OperatorInput::required(number),
            OperatorInput::required(code),
            OperatorInput::required(S::into_tensor_element_type()),
        ];
        let optional =
            [code, S::into_tensor_element_type(), code, number, number, TensorElementType::Float16];
        let others =
            optional.into_iter().cycle().skip(2).take(OPERANDS * MOST - 2).map(OperatorInput::optional);
        first.into_iter().chain(others)
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        let number = TensorElementType::Float32;
        let others = std::iter::repeat_with(move || OperatorOutput::optional(number)).take(MOST - 1);
        std::iter::once(OperatorOutput::required(number)).chain(others)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self { blocks: Blocks::of(context)?, scales: PhantomData })
    }
}

impl<S: Stored> Kernel for LinearQuantized<S> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let missing = || ort::Error::new("an operand of a quantized linear layer is missing");
        let given = context.num_inputs()?;
        let inputs = (0..given).map(|place| context.input(place)).collect::<ort::Result<Vec<_>>>()?;
        let [Some(x), operands @ ..] = inputs.as_slice() else { return Err(missing()) };
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let Some((&last, rows)) = shape.split_last() else {
            return Err(ort::Error::new("a product takes rows"));
        };
        let width = last.unsigned_abs() as usize;
        let layers = operands
            .chunks(OPERANDS)
            .map(|operands| Layer::<S>::of(operands, self.blocks, width))
            .collect::<ort::Result<Vec<_>>>()?;
        let results = layers.iter().enumerate().map(|(place, layer)| {
            let shape: Vec<i64> = rows.iter().copied().chain([layer.out as i64]).collect();
            context.output(place, shape)?.ok_or_else(missing)
        });
        let mut results = results.collect::<ort::Result<Vec<_>>>()?;
        let mut products: Vec<Product<'_, S>> = vec![];
        for (Layer { weight, bias, .. }, result) in layers.into_iter().zip(&mut results) {
            let (_, result) = result.try_extract_tensor_mut::<f32>()?;
            products.push(match products.first() {
                None => Product::new(x, weight, bias, result, |rows, round| match rows {
                    0..=4 => {
                        (0..rows).for_each(round);
                        Ok(())
                    }
                    _ => context.par_for(rows, rows, round),
                })?,
                Some(first) => first.beside(weight, bias, result).ok_or_else(|| {
                    ort::Error::new("weights of quantized linear layers beside each other differ in blocks")
                })?,
            });
        }
        run(context, &products)
    }
}

/// One of the layers.
struct Layer<'a, S> {
    weight: Weight<'a, S>,
    bias: Option<&'a [f32]>,
    out: usize,
}

impl<'a, S: Stored> Layer<'a, S> {
    /// By its operands; those behind the last may be left out.
    fn of(operands: &'a [Option<ValueRef<'a>>], blocks: Blocks, width: usize) -> ort::Result<Self> {
        let missing = || ort::Error::new("a weight of a quantized linear layer is missing");
        let operand = |place: usize| operands.get(place).and_then(Option::as_ref);
        let (codes_shape, codes) = operand(0).ok_or_else(missing)?.try_extract_tensor::<u8>()?;
        let (_, scales) = operand(1).ok_or_else(missing)?.try_extract_tensor::<S>()?;
        let zeros = operand(2).map(|it| it.try_extract_tensor::<u8>()).transpose()?;
        let offsets = operand(3).map(|it| it.try_extract_tensor::<f32>()).transpose()?;
        let bias = operand(4).map(|it| it.try_extract_tensor::<f32>()).transpose()?.map(|(_, bias)| bias);
        let outer = operand(5).map(|it| it.try_extract_tensor::<f16>()).transpose()?.map(|(_, outer)| outer);
        let Blocks { bits, group, codebook } = blocks;
        let zeros = match (codebook, zeros, offsets) {
            (Some(book), ..) => Zeros::Codebook(book),
            (_, Some((_, zeros)), _) => Zeros::Codes(zeros),
            (_, _, Some((_, offsets))) => Zeros::Offsets(offsets),
            _ => Zeros::Middle,
        };
        let weight = Weight { codes, scales, outer, zeros, width, bits, group };
        let out = codes_shape.first().map_or(0, |out| out.unsigned_abs() as usize);
        if !weight.holds(out) || bias.is_some_and(|bias| bias.len() != out) {
            let problem = format!("a product got rows of {width} for codes of {codes_shape:?}");
            return Err(ort::Error::new(problem));
        }
        Ok(Self { weight, bias, out })
    }
}
