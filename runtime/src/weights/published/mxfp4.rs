//! MXFP4 (gpt-oss): `_blocks` u8 `[experts, rows, groups, 16]`, two FP4 numbers a byte, `_scales` powers of two.

use safetensors::Dtype as Type;

use super::fp8::factors;
use super::small_floats::E2M1;
use super::{Format, Module, Stored};

pub(super) static FORMAT: Format =
    Format { name: "mxfp4", codes: &["_blocks"], others: &["_scales"], refuses: |_| None, read };

/// The experts' weights as the model has them, `[experts, in, out]`.
fn read(module: &Module<'_>) -> Result<Stored, String> {
    let blocks = module.codes()?.is(&[Type::U8])?;
    let &[experts, rows, groups, 16] = blocks.shape else {
        return Err(format!(
            "tensor `{}` is {:?}, not [experts, rows, groups, 16]",
            blocks.name, blocks.shape
        ));
    };
    if module.wanted != [experts, groups * 32, rows] {
        return Err(format!(
            "tensor `{}` is {:?}, which is not {:?} the other way round",
            blocks.name, blocks.shape, module.wanted
        ));
    }
    let scales = module.tensor("_scales")?.is(&[Type::U8])?;
    let scales = factors(&scales.shaped(&[experts, rows, groups], &blocks.name)?)?;
    let bytes = blocks.bytes()?;
    let columns = groups * 32;
    let mut values = vec![0.0; bytes.len() * 2];
    for (block, (codes, scale)) in bytes.chunks_exact(16).zip(&scales).enumerate() {
        let (row, first) = (block / groups, block % groups * 32);
        let start = row / rows * rows * columns + row % rows;
        for (pair, &codes) in codes.iter().enumerate() {
            for (half, code) in [codes & 15, codes >> 4].into_iter().enumerate() {
                values[start + (first + 2 * pair + half) * rows] = E2M1[usize::from(code)] * scale;
            }
        }
    }
    Ok(Stored::Values { shape: vec![experts, columns, rows], values })
}
