//! Linear layers of selected experts whose weights are quantized.

use std::marker::PhantomData;

use half::f16;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::super::jobs::run;
use super::super::linear_quantized::Blocks as CodeBlocks;
use super::super::operators::FEW;
use super::super::quantized::{Product, Weight, Zeros};
use super::super::stored::Stored;
use super::rows::Rows;
use super::{WEIGHTS, misfit, used};
use crate::graph::Dtype;

/// Rows of x by the quantized weights of the experts that they select, as [`super::ExpertLinear`] by others. Weights are for each expert, or
/// for all one after the other, codes, scales, and zero points, offsets or outer scales where there are any.
#[derive(Default)]
pub(in super::super) struct ExpertLinearQuantized<S> {
    blocks: CodeBlocks,
    zero_points: bool,
    offsets: bool,
    outer: bool,
    /// How many experts one weight holds.
    batch: Option<usize>,
    scales: PhantomData<S>,
}

impl<S: Stored> Operator for ExpertLinearQuantized<S> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        match S::DTYPE {
            Dtype::Bf16 => "ExpertLinearQuantizedBf16",
            Dtype::F16 => "ExpertLinearQuantizedF16",
            Dtype::U8 => "ExpertLinearQuantizedE8m0",
            _ => "ExpertLinearQuantizedF32",
        }
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [
            OperatorInput::required(TensorElementType::Float32),
            OperatorInput::required(TensorElementType::Int64),
            OperatorInput::variadic(1),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let of = |name| context.get::<i64>(name).and_then(|value| usize::try_from(value).ok());
        let (zero_points, offsets) = (of("zero_points") == Some(1), of("offsets") == Some(1));
        let batch = of("batch").filter(|experts| *experts > 0);
        let outer = of("outer") == Some(1);
        Ok(Self { blocks: CodeBlocks::of(context)?, zero_points, offsets, outer, batch, scales: PhantomData })
    }
}

impl<S: Stored> Kernel for ExpertLinearQuantized<S> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let rows = Rows::of(context)?;
        let parts = 2 + usize::from(self.zero_points) + usize::from(self.offsets) + usize::from(self.outer);
        let experts = self.batch.unwrap_or(1);
        let part = |place: usize| {
            used(context, &rows, |expert| match self.batch {
                Some(experts) if expert < experts => WEIGHTS + place,
                Some(_) => usize::MAX,
                None => WEIGHTS + expert * parts + place,
            })
        };
        let (codes, scales) = (part(0)?, part(1)?);
        let zeros = if parts > 2 { part(2)? } else { vec![] };
        let shape = codes.first().map(|codes| codes.try_extract_tensor::<u8>()).transpose()?;
        let out = match shape {
            Some((shape, _)) => shape.first().map_or(0, |out| out.unsigned_abs() as usize),
            // Codes have an axis of blocks.
            None => {
                let codes = context.input(WEIGHTS)?.ok_or_else(misfit)?;
                codes.shape().first().map_or(0, |out| out.unsigned_abs() as usize)
            }
        };
        let out = out / experts;
        let (x, mut result) = (rows.gathered(), vec![0.0; rows.count() * out]);
        let mut rest = result.as_mut_slice();
        let mut products = vec![];
        for (place, group) in rows.groups.iter().enumerate() {
            let expert = if self.batch.is_some() { group.expert } else { 0 };
            let codes = one_of(codes[place].try_extract_tensor::<u8>()?.1, expert, experts);
            let scales = one_of(scales[place].try_extract_tensor::<S>()?.1, expert, experts);
            let CodeBlocks { bits, group: codes_of_scale, codebook } = self.blocks;
            let outer = match zeros.get(place).filter(|_| self.outer) {
                Some(outer) => Some(one_of(outer.try_extract_tensor::<f16>()?.1, expert, experts)),
                None => None,
            };
            let zeros = match (codebook, zeros.get(place)) {
                (Some(book), _) => Zeros::Codebook(book),
                (_, Some(zeros)) if self.zero_points => {
                    Zeros::Codes(one_of(zeros.try_extract_tensor::<u8>()?.1, expert, experts))
                }
                (_, Some(offsets)) => {
                    Zeros::Offsets(one_of(offsets.try_extract_tensor::<f32>()?.1, expert, experts))
                }
                (_, None) => Zeros::Middle,
            };
            let weight =
                Weight { codes, scales, outer, zeros, width: rows.width, bits, group: codes_of_scale };
            if !weight.holds(out) {
                return Err(misfit());
            }
            let (mine, others) = rest.split_at_mut(group.rows.len() * out);
            rest = others;
            let x = &x[group.first * rows.width..(group.first + group.rows.len()) * rows.width];
            products.push(Product::new(x, weight, None, mine, |rows, round| match rows {
                0..=FEW => {
                    (0..rows).for_each(round);
                    Ok(())
                }
                _ => context.par_for(rows, rows, round),
            })?);
        }
        run(context, &products)?;
        drop(products);
        rows.scatter(context, &result, out)
    }
}

/// One of so many parts of the same length.
fn one_of<T>(all: &[T], index: usize, count: usize) -> &[T] {
    let length = all.len() / count;
    &all[index * length..][..length]
}
