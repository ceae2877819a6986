//! Rows of tables whose codes are places in a codebook, looked up where they lie.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use half::f16;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::linear_quantized::Blocks;
use super::operators::missing;
use super::stored::Stored;
use crate::graph::Dtype;
use crate::weights::Codebook;

/// Codes of 4 bits `[rows, width / 2]`, the first in the low bits of a byte, ids `[..]` and scales `[rows, width / group]`;
/// `[.., width]`; what scales of 256 codes are multiplied with, f16 `[rows, width / 256]`, may come last. As `com.microsoft.GatherBlockQuantized`, which has no codebooks.
#[derive(Default)]
pub(super) struct EmbeddingQuantized<S> {
    blocks: Blocks,
    scales: PhantomData<S>,
}

impl<S: Stored> Operator for EmbeddingQuantized<S> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        match S::DTYPE {
            Dtype::U8 => "EmbeddingQuantizedE8m0",
            Dtype::F16 => "EmbeddingQuantizedF16",
            _ => "EmbeddingQuantizedF32",
        }
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [
            OperatorInput::required(TensorElementType::Uint8),
            OperatorInput::required(TensorElementType::Int64),
            OperatorInput::required(S::into_tensor_element_type()),
            OperatorInput::optional(TensorElementType::Float16),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let blocks = Blocks::of(context)?;
        match blocks.codebook {
            Some(_) => Ok(Self { blocks, scales: PhantomData }),
            None => Err(ort::Error::new("rows are looked up by a codebook, and there is none")),
        }
    }
}

impl<S: Stored> Kernel for EmbeddingQuantized<S> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let codes = context.input(0)?.ok_or_else(missing)?;
        let ids = context.input(1)?.ok_or_else(missing)?;
        let scales = context.input(2)?.ok_or_else(missing)?;
        let outer = if context.num_inputs()? > 3 { context.input(3)? } else { None };
        let outer = outer.as_ref().map(|outer| outer.try_extract_tensor::<f16>()).transpose()?;
        let (shape, codes) = codes.try_extract_tensor::<u8>()?;
        let (places, ids) = ids.try_extract_tensor::<i64>()?;
        let (_, scales) = scales.try_extract_tensor::<S>()?;
        let (&[rows, bytes], Some(book)) = (&shape[..], self.blocks.codebook) else {
            return Err(ort::Error::new("rows are looked up in tables of two axes"));
        };
        let [rows, bytes] = [rows, bytes].map(|length| length.unsigned_abs() as usize);
        let (width, blocks) = (2 * bytes, 2 * bytes / self.blocks.group.max(1));
        if scales.len() != rows * blocks || !width.is_multiple_of(self.blocks.group.max(1)) {
            let problem = format!("a table of {shape:?} got {} scales", scales.len());
            return Err(ort::Error::new(problem));
        }
        let outer_scales = width.div_ceil(256);
        let outer = outer.map(|(_, outer)| outer);
        if outer.is_some_and(|outer| outer.len() != rows * outer_scales) {
            return Err(ort::Error::new(format!("a table of {shape:?} got other outer scales")));
        }
        let place = |id: &i64| {
            // As those of `Gather`, negative ones count from the end.
            let place = if *id < 0 { id + rows as i64 } else { *id };
            let place = usize::try_from(place).ok().filter(|place| *place < rows);
            place.ok_or_else(|| ort::Error::new(format!("id {id} is not in a table of {rows} rows")))
        };
        let ids = ids.iter().map(place).collect::<ort::Result<Vec<usize>>>()?;
        let given: Vec<i64> = places.iter().copied().chain([width as i64]).collect();
        let mut result = context.output(0, given)?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let results: Vec<_> = result.chunks_mut(width.max(1)).map(Mutex::new).collect();
        context.par_for(results.len(), results.len(), |index| {
            let mut into = results[index].lock().unwrap_or_else(PoisonError::into_inner);
            let row = ids[index];
            let (codes, scales) = (&codes[row * bytes..][..bytes], &scales[row * blocks..][..blocks]);
            look_up(book, codes, scales, &mut into);
            let outer = outer.map(|outer| &outer[row * outer_scales..][..outer_scales]);
            for (values, outer) in into.chunks_mut(256).zip(outer.into_iter().flatten()) {
                values.iter_mut().for_each(|value| *value *= outer.single());
            }
        })
    }
}

/// The values of a row.
fn look_up<S: Stored>(book: Codebook, codes: &[u8], scales: &[S], values: &mut [f32]) {
    let group = codes.len() / scales.len().max(1);
    let table: [f32; 16] = std::array::from_fn(|code| book.value(code as u8));
    for ((codes, scale), values) in
        codes.chunks(group.max(1)).zip(scales).zip(values.chunks_mut((2 * group).max(1)))
    {
        let scale = scale.single();
        for (pair, values) in codes.iter().zip(values.as_chunks_mut::<2>().0) {
            *values = [table[usize::from(pair & 15)] * scale, table[usize::from(pair >> 4)] * scale];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_its_codes_stand_for_by_the_scale_of_each_block() {
        let mut values = [f32::NAN; 8];
        look_up(Codebook::E2m1, &[0x10, 0x32, 0x54, 0xf7], &[128_u8, 126], &mut values);
        assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 1.0, 1.5, 3.0, -3.0]);
        look_up(Codebook::Iq4Nl, &[0xf0], &[0.5_f32], &mut values);
        assert_eq!(values[..2], [-63.5, 56.5]);
    }
}
