//! bitsandbytes: NF4 and FP4 in flat blocks with a table of values, their scales quantized again or not; int8 by rows.

use safetensors::Dtype as Type;
use serde_json::Value as Json;

use super::grouped::Grouped;
use super::module::{Scales, Tensor};
use super::{Format, Module, Stored};
use crate::Dtype;
use crate::weights::Bytes;
use crate::weights::Zeros;

pub(super) static FORMAT: Format = Format {
    name: "bitsandbytes",
    codes: &[".weight"],
    others: &[
        ".weight.absmax",
        ".weight.quant_map",
        ".weight.nested_absmax",
        ".weight.nested_quant_map",
        ".weight.quant_state.bitsandbytes__nf4",
        ".weight.quant_state.bitsandbytes__fp4",
        ".SCB",
        ".weight_format",
    ],
    refuses: |_| None,
    read,
};

/// The values of a four-bit code where the file has no table (`quant_map`).
const KINDS: [&str; 2] = ["nf4", "fp4"];

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let codes = module.codes()?;
    match module.find(".SCB") {
        Some(scales) => by_rows(module, &codes.is(&[Type::I8])?, &scales),
        None => four_bits(module, &codes),
    }
}

/// `Linear8bitLt`: `w = code · SCB / 127`.
fn by_rows(module: &Module<'_>, codes: &Tensor<'_>, scales: &Tensor<'_>) -> Result<Stored, String> {
    let [out, columns] = module.inner_shape()?;
    if codes.shape != [out, columns] {
        return Err(format!("tensor `{}` is {:?}, not [{out}, {columns}]", codes.name, codes.shape));
    }
    if let Some(layout) = module.find(".weight_format")
        && layout.integers()?.iter().any(|&layout| layout != 0)
    {
        return Err(format!("tensor `{}` names a layout of tiles, which is not read", layout.name));
    }
    let scales = scales.floats()?;
    if scales.len() != out {
        return Err(format!("tensor `{}.SCB` has {} scales for {out} rows", module.stem, scales.len()));
    }
    let mut bytes = codes.bytes()?;
    bytes.iter_mut().for_each(|code| *code ^= 0x80);
    let scales: Vec<u8> = scales.iter().flat_map(|scale| (scale / 127.0).to_le_bytes()).collect();
    Ok(Stored::Codes(Grouped {
        shape: [out, columns],
        bits: 8,
        group: columns,
        codes: Bytes::memory(bytes),
        stride: columns,
        scales: Scales { dtype: Dtype::F32, bytes: Bytes::memory(scales), shape: vec![out, 1] },
        zeros: Zeros::Middle,
        order: None,
    }))
}

/// `Linear4bit`: the first code in the high bits, a table of values, a scale for each block of the flat weight.
fn four_bits(module: &Module<'_>, codes: &Tensor<'_>) -> Result<Stored, String> {
    let state = KINDS
        .iter()
        .find_map(|kind| module.find(&format!(".weight.quant_state.bitsandbytes__{kind}")))
        .ok_or_else(|| format!("tensor `{}.quant_state.bitsandbytes__nf4` is missing", codes.name))?;
    let damaged = |what: &str| format!("tensor `{}` {what}", state.name);
    let json: Json = serde_json::from_slice(&state.bytes()?).map_err(|_| damaged("is not JSON"))?;
    let shape = json["shape"].as_array().into_iter().flatten().map(Json::as_u64);
    let shape: Option<Vec<usize>> = shape.map(|size| usize::try_from(size?).ok()).collect();
    let shape = shape.filter(|shape| !shape.is_empty()).ok_or_else(|| damaged("has no `shape`"))?;
    let block =
        json["blocksize"].as_u64().filter(|block| *block > 0).ok_or_else(|| damaged("has no `blocksize`"))?;
    let block = block as usize;
    let count = shape.iter().try_fold(1_usize, |product, n| product.checked_mul(*n));
    let bytes = codes.bytes()?;
    let count = count.filter(|count| count.div_ceil(2) == bytes.len()).ok_or_else(|| {
        format!("tensor `{}` is {} bytes, but `{}` says {shape:?}", codes.name, bytes.len(), state.name)
    })?;
    let table = module.tensor(".weight.quant_map")?.shaped(&[16], "a code of four bits")?.floats()?;
    let scales = scales(module, &json)?;
    if scales.len() != count.div_ceil(block) {
        return Err(format!(
            "tensor `{}.absmax` has {} scales for {shape:?} in blocks of {block}",
            codes.name,
            scales.len()
        ));
    }
    let value = |at: usize| {
        let pair = bytes[at / 2];
        let code = if at.is_multiple_of(2) { pair >> 4 } else { pair & 15 };
        table[usize::from(code)] * scales[at / block]
    };
    Ok(Stored::Values { shape, values: (0..count).map(value).collect() })
}

/// The scales of all blocks; where these are quantized themselves (`nested`), by a table, scales of their own and an offset.
fn scales(module: &Module<'_>, state: &Json) -> Result<Vec<f32>, String> {
    let absmax = module.tensor(".weight.absmax")?;
    if absmax.stored != Type::U8 {
        return absmax.floats();
    }
    let table =
        module.tensor(".weight.nested_quant_map")?.shaped(&[256], "a code of eight bits")?.floats()?;
    let outer = module.tensor(".weight.nested_absmax")?;
    let (outer, name) = (outer.floats()?, outer.name);
    let block = state["nested_blocksize"].as_u64().unwrap_or(256).max(1) as usize;
    let offset = state["nested_offset"].as_f64().unwrap_or_default() as f32;
    let codes = absmax.bytes()?;
    if outer.len() != codes.len().div_ceil(block) || !offset.is_finite() {
        return Err(format!(
            "tensor `{name}` has {} scales for {} of `{}`",
            outer.len(),
            codes.len(),
            absmax.name
        ));
    }
    Ok(codes
        .iter()
        .enumerate()
        .map(|(at, &code)| table[usize::from(code)] * outer[at / block] + offset)
        .collect())
}
