//! MXFP4 (gpt-oss): `_blocks` u8 `[experts, rows, groups, 16]`, two FP4 numbers a byte, `_scales` powers of two.

use safetensors::Dtype as Type;

use super::module::Tensor;
use super::{Format, Module, Stored};
use crate::Dtype;
use crate::small_floats::E8M0_MOST;
use crate::weights::{BlockQuantized, Codebook, Zeros};

/// How many numbers share a scale.
pub(super) const GROUP: usize = 32;

pub(super) static FORMAT: Format =
    Format { name: "mxfp4", codes: &["_blocks"], others: &["_scales"], refuses: |_| None, read };

/// The experts' weights, which the model has as `[experts, in, out]`.
fn read(module: &Module<'_>) -> Result<Stored, String> {
    let codes = module.codes()?.is(&[Type::U8])?;
    let &[experts, rows, groups, 16] = codes.shape else {
        return Err(format!("tensor `{}` is {:?}, not [experts, rows, groups, 16]", codes.name, codes.shape));
    };
    let columns = groups * GROUP;
    if module.wanted != [experts, columns, rows] {
        return Err(format!(
            "tensor `{}` is {:?}, which is not {:?} the other way round",
            codes.name, codes.shape, module.wanted
        ));
    }
    let scales = module.tensor("_scales")?.is(&[Type::U8])?.shaped(&[experts, rows, groups], &codes.name)?;
    let blocks = blocks(&codes, &scales, [experts * rows, columns])?;
    let shape = module.wanted.to_vec();
    Ok(Stored::Blocks { shape, blocks: BlockQuantized { batch: Some(experts), ..blocks } })
}

/// Codes and scales where they lie, which are in the order of kernels.
pub(super) fn blocks(
    codes: &Tensor<'_>,
    scales: &Tensor<'_>,
    shape: [usize; 2],
) -> Result<BlockQuantized, String> {
    if let Some((place, scale)) =
        scales.bytes()?.into_iter().enumerate().find(|(_, scale)| *scale > E8M0_MOST)
    {
        let what = if scale == 255 { "NaN".to_owned() } else { format!("2^{}", i32::from(scale) - 127) };
        return Err(format!(
            "tensor `{}` holds {what} at {place}: it stands for values that are not finite",
            scales.name
        ));
    }
    Ok(BlockQuantized {
        shape,
        batch: None,
        bits: 4,
        group: GROUP,
        codes: codes.place()?,
        scale_dtype: Dtype::U8,
        scales: scales.place()?,
        outer: None,
        zeros: Zeros::Codebook(Codebook::E2m1),
        order: None,
    })
}
