//! The operator of linear layers (`torch.nn.Linear`) with weights as they are stored.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use half::bf16;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::jobs::{Shared, run};
use super::linear_quantized::MOST;
use super::operators::{FEW, IN_BF16, linear, missing};
use super::stored::Stored;

/// The operands of a layer beside x.
pub(super) const OPERANDS: usize = 2;

/// `x · wᵀ + b`: `x` `[.., width]`, `w` `[out, width]`, `b` `[out]` or left out; `[.., out]`.
///
/// Layers of the same x, as those of queries, keys and values, follow with their two operands and an output each: threads take blocks of
/// all weights in one go.
#[derive(Default)]
pub(super) struct Linear<W> {
    in_bf16: bool,
    stored: PhantomData<W>,
}

impl<W: Stored> Operator for Linear<W> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        linear(W::DTYPE).unwrap_or_default()
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let (number, weight) = (TensorElementType::Float32, W::into_tensor_element_type());
        let others = [number, weight].into_iter().cycle().take(OPERANDS * MOST - 1);
        let first = [OperatorInput::required(number), OperatorInput::required(weight)];
        first.into_iter().chain(others.map(OperatorInput::optional))
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        let number = TensorElementType::Float32;
        let others = std::iter::repeat_with(move || OperatorOutput::optional(number)).take(MOST - 1);
        std::iter::once(OperatorOutput::required(number)).chain(others)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self { in_bf16: context.get::<i64>(IN_BF16) == Some(1), stored: PhantomData })
    }
}

impl<W: Stored> Kernel for Linear<W> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let given = context.num_inputs()?;
        let inputs = (0..given).map(|place| context.input(place)).collect::<ort::Result<Vec<_>>>()?;
        let [Some(x), operands @ ..] = inputs.as_slice() else { return Err(missing()) };
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let Some((&width, rows)) = shape.split_last() else {
            return Err(ort::Error::new("a product takes rows"));
        };
        let count = rows.iter().map(|rows| rows.unsigned_abs() as usize).product::<usize>();
        let mut memory = NARROW.take();
        let narrow = match self.in_bf16 && count > FEW {
            true => narrowed(context, x, &mut memory)?,
            false => &[],
        };
        let shared = Shared { x, narrow, width: width.unsigned_abs() as usize };
        let (mut weights, mut results) = (vec![], vec![]);
        for (place, operands) in operands.chunks(OPERANDS).enumerate() {
            let [Some(weight), bias @ ..] = operands else { return Err(missing()) };
            let (shape, weight) = weight.try_extract_tensor::<W>()?;
            let &[out, inner] = &shape[..] else {
                return Err(ort::Error::new("a product takes weights of two axes"));
            };
            if width != inner {
                return Err(ort::Error::new(format!("a product got rows of {width} for weights of {inner}")));
            }
            let bias = bias.first().and_then(Option::as_ref);
            let bias = bias.map(|bias| bias.try_extract_tensor::<f32>()).transpose()?;
            weights.push((weight, bias.map(|(_, bias)| bias)));
            let shape: Vec<i64> = rows.iter().copied().chain([out]).collect();
            results.push(context.output(place, shape)?.ok_or_else(missing)?);
        }
        let mut products = vec![];
        for ((weight, bias), result) in weights.into_iter().zip(&mut results) {
            let (_, result) = result.try_extract_tensor_mut::<f32>()?;
            products.push(shared.by(0..count, weight, bias, result)?);
        }
        let result = run(context, &products);
        drop(products);
        NARROW.set(memory);
        result
    }
}

thread_local! {
    /// Where layers round x to: memory of its own for each would be cleared and handed back as often.
    static NARROW: Cell<Vec<bf16>> = const { Cell::new(vec![]) };
}

/// Numbers that a thread rounds at a time.
const BLOCK: usize = 1 << 16;

/// All numbers in bfloat16.
fn narrowed<'m>(context: &ComputeContext, x: &[f32], memory: &'m mut Vec<bf16>) -> ort::Result<&'m [bf16]> {
    if memory.len() < x.len() {
        memory.resize(x.len(), bf16::ZERO);
    }
    let narrow = &mut memory[..x.len()];
    let blocks: Vec<_> = x.chunks(BLOCK).zip(narrow.chunks_mut(BLOCK)).map(Mutex::new).collect();
    context.par_for(blocks.len(), blocks.len(), |block| {
        let mut block = blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let (numbers, narrow) = &mut *block;
        f32::narrow(numbers, narrow);
    })?;
    drop(blocks);
    Ok(narrow)
}
