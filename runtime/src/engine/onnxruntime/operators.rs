//! The runtime's own operators, and the widening of weights of 16 bits.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};
use ort::operator::{
    ComputeContext, Kernel, KernelContext, Operator, OperatorDomain, OperatorInput, OperatorOutput,
};
use ort::value::TensorElementType;

use super::cached_attention::CachedAttention;
use super::causal_conv::CausalConv;
use super::convolution::Convolution;
use super::convolution::quantized::ConvolutionQuantized;
use super::embedding_quantized::EmbeddingQuantized;
use super::experts::{ExpertLinear, ExpertLinearQuantized};
use super::flash_attention::FlashAttention;
use super::glu::Glu;
use super::linear::Linear;
use super::linear_attention::LinearAttention;
use super::linear_quantized::LinearQuantized;
use super::selective_scan::SelectiveScan;
use super::stored::Stored;
use super::tile::Element;
use super::top_k_mask::TopKMask;
use crate::graph::Dtype;

/// Their domain.
pub(super) const DOMAIN: &str = "weft";

/// Elements that a thread widens at a time.
const BLOCK: usize = 64 * 1024;

/// All of them.
pub(super) fn domain() -> ort::Result<OperatorDomain> {
    OperatorDomain::new(DOMAIN)?
        .add(Linear::<f32>::default())?
        .add(Linear::<bf16>::default())?
        .add(Linear::<f16>::default())?
        .add(LinearQuantized::<f32>::default())?
        .add(LinearQuantized::<f16>::default())?
        .add(LinearQuantized::<u8>::default())?
        .add(EmbeddingQuantized::<f32>::default())?
        .add(EmbeddingQuantized::<f16>::default())?
        .add(EmbeddingQuantized::<u8>::default())?
        .add(ExpertLinear::<f32>::default())?
        .add(ExpertLinear::<bf16>::default())?
        .add(ExpertLinear::<f16>::default())?
        .add(ExpertLinearQuantized::<f32>::default())?
        .add(ExpertLinearQuantized::<bf16>::default())?
        .add(ExpertLinearQuantized::<f16>::default())?
        .add(ExpertLinearQuantized::<u8>::default())?
        .add(Convolution::<f32>::default())?
        .add(Convolution::<bf16>::default())?
        .add(Convolution::<f16>::default())?
        .add(ConvolutionQuantized::default())?
        .add(CachedAttention::default())?
        .add(FlashAttention::default())?
        .add(LinearAttention::default())?
        .add(SelectiveScan::default())?
        .add(CausalConv::default())?
        .add(TopKMask::default())?
        .add(Glu::default())?
        .add(Widen::<bf16>(PhantomData))?
        .add(Widen::<f16>(PhantomData))
}

/// The operator that multiplies with weights of this type.
pub(super) fn linear(stored: Dtype) -> Option<&'static str> {
    match stored {
        Dtype::F32 => Some("LinearF32"),
        Dtype::Bf16 => Some("LinearBf16"),
        Dtype::F16 => Some("LinearF16"),
        _ => None,
    }
}

/// The operator that convolves with weights of this type.
pub(super) fn convolution(stored: Dtype) -> Option<&'static str> {
    match stored {
        Dtype::F32 => Some("ConvolutionF32"),
        Dtype::Bf16 => Some("ConvolutionBf16"),
        Dtype::F16 => Some("ConvolutionF16"),
        _ => None,
    }
}

/// The operator that widens weights of this type.
pub(super) fn widen(stored: Dtype) -> Option<&'static str> {
    match stored {
        Dtype::Bf16 => Some("WidenBf16"),
        Dtype::F16 => Some("WidenF16"),
        _ => None,
    }
}

/// Whether this processor has instructions for products of bfloat16.
pub(super) fn computes_in_bf16() -> bool {
    bf16::kernel::<f32>().is_some()
}

pub(super) fn missing() -> ort::Error {
    ort::Error::new("an operand of weft's is missing")
}

/// The attribute of linear layers that says whether many rows are multiplied in bfloat16.
pub(super) const IN_BF16: &str = "in_bf16";

/// Up to so many rows, reading the weights takes longer than multiplying with them.
pub(super) const FEW: usize = 8;

/// A weight of 16 bits in single precision.
///
/// ONNX Runtime's own `Cast` would be carried out for all weights when the session is made, into memory twice as large.
struct Widen<W>(PhantomData<W>);

impl<W: Stored> Operator for Widen<W> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        widen(W::DTYPE).unwrap_or_default()
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [OperatorInput::required(W::into_tensor_element_type())]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, _: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self(PhantomData))
    }
}

impl<W: Stored> Kernel for Widen<W> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let stored = context.input(0)?.ok_or_else(missing)?;
        let (shape, stored) = stored.try_extract_tensor::<W>()?;
        let mut wide = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
        let (_, wide) = wide.try_extract_tensor_mut::<f32>()?;
        let blocks: Vec<_> = stored.chunks(BLOCK).zip(wide.chunks_mut(BLOCK)).map(Mutex::new).collect();
        context.par_for(blocks.len(), blocks.len(), |block| {
            let mut block = blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
            let (stored, wide) = &mut *block;
            W::widen(stored, wide);
        })
    }
}
