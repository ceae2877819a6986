//! GPTQ (`gptqmodel`, AutoGPTQ): `qweight` int32 `[in · bits / 32, out]`, packed along the inputs, low bits first.

use std::sync::Arc;

use safetensors::Dtype as Type;
use serde_json::Value as Json;

use super::grouped::{Grouped, code, transposed_words};
use super::{Format, Module, Stored};
use crate::weights::Bytes;
use crate::weights::Zeros;

pub(super) static FORMAT: Format =
    Format { name: "gptq", codes: &[".qweight"], others: &[".qzeros", ".scales", ".g_idx"], refuses, read };

fn refuses(config: &Json) -> Option<String> {
    let layout = config["checkpoint_format"].as_str().unwrap_or("gptq");
    if config["is_marlin_format"].as_bool() == Some(true) {
        return Some("`is_marlin_format`".to_owned());
    }
    (!["gptq", "gptq_v2"].contains(&layout)).then(|| format!("`checkpoint_format` `{layout}`"))
}

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let [out, columns] = shape;
    let words = module.codes()?.is(&[Type::I32])?;
    let bits = bits(module, words.shape, shape)?;
    let scales = module.tensor(".scales")?;
    let &[groups, _] = scales.shape else {
        return Err(format!("tensor `{}` is {:?}, not a matrix", scales.name, scales.shape));
    };
    let group = match module.published.number(&["group_size"]) {
        Some(-1) | None => columns,
        Some(said) => usize::try_from(said).unwrap_or_default(),
    };
    let group = match module.published.varies("dynamic") && groups > 0 && columns.is_multiple_of(groups) {
        true => columns / groups,
        false => group,
    };
    if group == 0 {
        return Err("`group_size` of `quantization_config` is no number of columns".to_owned());
    }
    let groups = columns.div_ceil(group);
    let why = format!("`{}` in groups of {group}", module.codes);
    let scales = scales.shaped(&[groups, out], &why)?;
    let zeros = module.tensor(".qzeros")?.is(&[Type::I32])?;
    let zeros = zeros.shaped(&[groups, (out * bits).div_ceil(32)], &why)?;
    let more = u8::from(module.published.config["checkpoint_format"] != "gptq_v2");
    let zeros = zero_points(&zeros.bytes()?, bits, [groups, out], more);
    let rows = words.shape[0];
    let grouped = Grouped {
        shape,
        bits,
        group,
        codes: Bytes::memory(transposed_words(&words.bytes()?, rows, out)),
        stride: rows * 4,
        scales: scales.scales()?.transposed(&scales.name)?,
        zeros: Zeros::Codes(zeros),
        order: None,
    };
    match module.find(".g_idx") {
        Some(index) => grouped.by_index(&index.shaped(&[columns], &why)?),
        None => Ok(Stored::Codes(grouped)),
    }
}

/// The bits of a code, by the shape of the words; the configuration must agree where it is the same for all modules.
fn bits(module: &Module<'_>, words: &[usize], [out, columns]: [usize; 2]) -> Result<usize, String> {
    let fits = |bits: &usize| words == [columns * bits / 32, out] && (columns * bits).is_multiple_of(32);
    let found = [2, 3, 4, 8].into_iter().find(fits);
    let said = module.published.number(&["bits"]).and_then(|bits| usize::try_from(bits).ok());
    match (found, said) {
        (Some(found), _) if module.published.varies("dynamic") => Ok(found),
        (Some(found), Some(said)) if found == said => Ok(found),
        (_, Some(said)) => Err(format!(
            "tensor `{}` is {words:?}, but [{out}, {columns}] in `bits` {said} of `quantization_config` is [{}, {out}]",
            module.codes,
            columns.saturating_mul(said) / 32
        )),
        (_, None) => Err("`quantization_config` has no `bits`".to_owned()),
    }
}

/// Zero points `[out, groups]` of rows of packed codes `[groups, out]`; the first version stores one less.
fn zero_points(packed: &[u8], bits: usize, [groups, out]: [usize; 2], more: u8) -> Arc<[u8]> {
    let stride = packed.len() / groups;
    let mask = ((1_u16 << bits) - 1) as u8;
    let zero = |at: usize| {
        let (row, column) = (at % groups, at / groups);
        code(&packed[row * stride..(row + 1) * stride], bits, column).wrapping_add(more) & mask
    };
    (0..groups * out).map(zero).collect()
}
