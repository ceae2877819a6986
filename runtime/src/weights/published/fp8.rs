//! Fine-grained FP8 (DeepSeek): `weight` of float8 `[out, in]` with a scale for each block, which multiplies.

use safetensors::Dtype as Type;
use serde_json::Value as Json;

use super::module::Tensor;
use super::{Format, Module, Stored};
use crate::small_floats::{e4m3, e8m0};

pub(super) static FORMAT: Format = Format {
    name: "fp8",
    codes: &[".weight", ""],
    others: &[
        ".weight_scale_inv",
        ".weight_scale",
        ".scale",
        "_scale_inv",
        ".activation_scale",
        ".input_scale",
        ".k_scale",
        ".v_scale",
    ],
    refuses: |config: &Json| {
        let kind = config["fmt"].as_str().unwrap_or("e4m3");
        (!kind.starts_with("e4m3") && !kind.starts_with("float8_e4m3")).then(|| format!("`fmt` `{kind}`"))
    },
    read,
};

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let codes = module.codes()?.is(&[Type::F8_E4M3])?.shaped(&module.stored_shape(), "config.json")?;
    let scales = [".weight_scale_inv", ".weight_scale", ".scale", "_scale_inv"];
    let scale = scales.iter().find_map(|suffix| module.find(suffix));
    let scale = scale.ok_or_else(|| {
        format!(
            "tensor `{}.weight_scale_inv` is missing, without which `{}` means nothing",
            module.stem, codes.name
        )
    })?;
    let block = &module.published.config["weight_block_size"];
    let block = match (block[0].as_u64(), block[1].as_u64()) {
        (Some(rows), Some(columns)) if rows > 0 && columns > 0 => Some([rows as usize, columns as usize]),
        _ => None,
    };
    scaled(&codes, &scale, block)
}

/// The values of a matrix, or of a batch of them, by scales of blocks, of rows, or of all.
pub(super) fn scaled(
    codes: &Tensor<'_>,
    scale: &Tensor<'_>,
    block: Option<[usize; 2]>,
) -> Result<Stored, String> {
    let &[ref batch @ .., rows, columns] = codes.shape else {
        return Err(format!("tensor `{}` is {:?}, not a matrix", codes.name, codes.shape));
    };
    let count: usize = batch.iter().product();
    let [high, wide] = match (scale.shape, block) {
        ([] | [1] | [1, 1], _) => [rows, columns],
        (&[scaled] | &[scaled, 1], _) if scaled == rows && batch.is_empty() => [1, columns],
        (_, Some([high, wide])) => [high, wide],
        (&[.., down, across], None)
            if down > 0 && across > 0 && rows % down == 0 && columns % across == 0 =>
        {
            [rows / down, columns / across]
        }
        _ => {
            return Err(format!(
                "tensor `{}` is {:?}, which gives no blocks of {:?}",
                scale.name, scale.shape, codes.shape
            ));
        }
    };
    let (down, across) = (rows.div_ceil(high.max(1)), columns.div_ceil(wide.max(1)));
    let scales = factors(scale)?;
    if scales.len() != 1 && scales.len() != count * down * across {
        return Err(format!(
            "tensor `{}` is {:?}, but {:?} in blocks of {high} by {wide} has {down} by {across}",
            scale.name, scale.shape, codes.shape
        ));
    }
    let table: Vec<f32> = (0..=255).map(e4m3).collect();
    let one = scales.len() == 1;
    let mut values = Vec::with_capacity(count * rows * columns);
    let bytes = codes.bytes()?;
    for (index, row) in bytes.chunks_exact(columns.max(1)).enumerate() {
        let first = (index / rows * down + index % rows / high) * across;
        let of = |column: usize| scales[if one { 0 } else { first + column / wide }];
        values.extend(row.iter().enumerate().map(|(column, &code)| table[usize::from(code)] * of(column)));
    }
    Ok(Stored::Values { shape: codes.shape.to_vec(), values })
}

/// Scales, those that are powers of two among them.
pub(super) fn factors(scale: &Tensor<'_>) -> Result<Vec<f32>, String> {
    let power = match scale.stored {
        Type::U8 | Type::F8_E8M0 => e8m0,
        Type::F8_E4M3 => e4m3,
        _ => return scale.floats(),
    };
    let factors: Vec<f32> = scale.bytes()?.into_iter().map(power).collect();
    match factors.iter().all(|factor| factor.is_finite()) {
        true => Ok(factors),
        false => Err(format!("tensor `{}` holds NaN", scale.name)),
    }
}
