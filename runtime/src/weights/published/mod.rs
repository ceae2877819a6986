//! Published quantized checkpoints, opened as they are: `quantization_config` names the method, a file here reads each.
//!
//! What maps exactly onto blocks becomes [`BlockQuantized`], its codes left in the file where they lie
//! so there; the rest is dequantized as the format says.

mod awq;
mod bitnet;
mod bitsandbytes;
mod compressed_tensors;
mod config;
mod fp8;
mod gptq;
mod grouped;
mod hqq;
mod module;
mod mxfp4;
mod quanto;
mod slices;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod torchao;

use std::sync::Arc;

pub(crate) use config::Published;
use grouped::Grouped;
pub(crate) use module::Module;

use crate::weights::{BlockQuantized, Bytes, WeightData};
use crate::{Dtype, Result};

/// A format of quantized tensors.
#[derive(Debug)]
pub(crate) struct Format {
    /// What `quant_method` calls it.
    pub name: &'static str,
    /// What follows a module's name in the names of tensors of codes; the first that is there is read.
    codes: &'static [&'static str],
    /// What follows it in the names of the other tensors of a quantized module, those of activations among them.
    others: &'static [&'static str],
    /// What of a configuration of this format is not read, by name.
    refuses: fn(&serde_json::Value) -> Option<String>,
    /// Reads the tensors of a module; the error names the tensor.
    read: fn(&Module<'_>) -> Result<Stored, String>,
}

/// All formats that are read.
pub(super) static FORMATS: [&Format; 10] = [
    &gptq::FORMAT,
    &awq::FORMAT,
    &compressed_tensors::FORMAT,
    &fp8::FORMAT,
    &mxfp4::FORMAT,
    &bitsandbytes::FORMAT,
    &torchao::FORMAT,
    &hqq::FORMAT,
    &quanto::FORMAT,
    &bitnet::FORMAT,
];

/// What the tensors of a module hold.
enum Stored {
    /// Codes of whole numbers in groups that share a scale.
    Codes(Grouped),
    /// Blocks as kernels run them, for a tensor of this shape.
    Blocks { shape: Vec<usize>, blocks: BlockQuantized },
    /// Values that no such codes stand for, dequantized.
    Values { shape: Vec<usize>, values: Vec<f32> },
}

impl Format {
    /// The module of a tensor that belongs to a quantized weight.
    pub(crate) fn module<'n>(&self, tensor: &'n str) -> Option<&'n str> {
        self.others.iter().chain(self.codes).find_map(|suffix| tensor.strip_suffix(suffix))
    }

    /// The name of the tensor that holds the codes of a weight; none where it is not quantized.
    pub(crate) fn codes(&self, weight: &str, is_codes: impl Fn(&str) -> bool) -> Option<String> {
        let stem = stem(weight);
        self.codes.iter().map(|suffix| format!("{stem}{suffix}")).find(|name| is_codes(name))
    }
}

/// The tensor that holds the codes of a weight in whatever format.
pub(crate) fn codes_of_any(weight: &str, is_codes: impl Fn(&str) -> bool) -> Option<String> {
    FORMATS
        .iter()
        .filter(|format| !format.codes.contains(&".weight"))
        .find_map(|format| format.codes(weight, &is_codes))
}

/// The module whose parameter `weight` this is, or the parameter itself.
pub(crate) fn stem(weight: &str) -> &str {
    weight.strip_suffix(".weight").unwrap_or(weight)
}

/// The weight that a module's tensors stand for, in blocks where these are exact and the weight is one of a linear layer or an
/// embedding, else dequantized to the checkpoint's own dtype; with its shape, which may not be the one that is wanted.
pub(crate) fn read(module: &Module<'_>) -> Result<WeightData, String> {
    let data = |dtype, shape: &[usize], bytes| WeightData {
        dtype,
        shape: shape.to_vec(),
        stored_as: module.codes.clone(),
        bytes,
    };
    let (shape, values) = match (module.published.format.read)(module)? {
        Stored::Blocks { shape, blocks } => {
            return Ok(data(Dtype::F32, &shape, Bytes::Quantized(Arc::new(blocks))));
        }
        Stored::Codes(grouped) if !module.transposed => match grouped.blocks(&module.codes)? {
            Ok(blocks) => {
                let shape = blocks.shape;
                return Ok(data(Dtype::F32, &shape, Bytes::Quantized(Arc::new(blocks))));
            }
            Err(grouped) => (grouped.shape.to_vec(), grouped.dequantize(&module.codes)?),
        },
        Stored::Codes(grouped) => (grouped.shape.to_vec(), grouped.dequantize(&module.codes)?),
        Stored::Values { shape, values } => (shape, values),
    };
    if values.iter().any(|value| !value.is_finite()) {
        return Err(format!("tensor `{}` stands for values that are not finite", module.codes));
    }
    let (shape, values) = match (module.transposed, &shape[..]) {
        (true, &[rows, columns]) => (vec![columns, rows], transposed(&values, rows, columns)),
        _ => (shape, values),
    };
    let (dtype, bytes) = module.published.stored(&values);
    Ok(data(dtype, &shape, Bytes::memory(bytes)))
}

/// `[rows, columns]` as `[columns, rows]`.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..values.len()).map(|place| values[place % rows * columns + place / rows]).collect()
}
