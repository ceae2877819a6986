//! compressed-tensors (llm-compressor): `weight_packed` int32 `[out, in · bits / 32]`, or `weight` of int8 or float8.

use std::sync::Arc;

use safetensors::Dtype as Type;
use serde_json::Value as Json;

use super::fp8::{factors, scaled};
use super::grouped::{Grouped, code, pack};
use super::module::{Scales, Tensor};
use super::{Format, Module, Stored, mxfp4};
use crate::Dtype;
use crate::codebook::Codebook;
use crate::weights::Bytes;
use crate::weights::Zeros;

pub(super) static FORMAT: Format = Format {
    name: "compressed-tensors",
    codes: &[".weight_packed", ".weight"],
    others: &[
        ".weight_shape",
        ".weight_scale",
        ".weight_zero_point",
        ".weight_g_idx",
        ".weight_global_scale",
        ".input_scale",
        ".input_zero_point",
        ".input_global_scale",
        ".input_g_idx",
        ".output_scale",
        ".output_zero_point",
        ".k_scale",
        ".v_scale",
        ".q_scale",
    ],
    refuses,
    read,
};

const READ: [&str; 8] = [
    "dense",
    "naive-quantized",
    "pack-quantized",
    "int-quantized",
    "float-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp8-quantized",
];

fn groups(config: &Json) -> impl Iterator<Item = &Json> {
    config["config_groups"].as_object().into_iter().flat_map(serde_json::Map::values)
}

fn refuses(config: &Json) -> Option<String> {
    let formats = [&config["format"]].into_iter().chain(groups(config).map(|group| &group["format"]));
    let mut formats = formats.filter_map(Json::as_str).filter(|format| *format != "mixed-precision");
    let sparse = config["sparsity_config"]["format"].as_str().filter(|format| *format != "dense");
    sparse
        .or_else(|| formats.find(|format| !READ.contains(format)))
        .map(|format| format!("`format` `{format}`"))
}

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let codes = module.codes()?;
    match codes.stored {
        Type::I32 => packed(module, &codes),
        Type::I8 => whole(module, &codes),
        Type::F8_E4M3 => {
            let block = groups(&module.published.config).find_map(|group| {
                let block = &group["weights"]["block_structure"];
                Some([usize::try_from(block[0].as_u64()?).ok()?, usize::try_from(block[1].as_u64()?).ok()?])
            });
            scaled(&codes, &module.tensor(".weight_scale")?, block)
        }
        Type::U8 => fp4(module, &codes),
        other => Err(format!("tensor `{}` is {other:?}, which this format does not have", codes.name)),
    }
}

/// `pack-quantized`: codes are the values and `2^(bits − 1)`, along the inputs, low bits first.
fn packed(module: &Module<'_>, codes: &Tensor<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let [out, columns] = shape;
    if let Some(said) = module.find(".weight_shape") {
        let stored = said.integers()?;
        if stored != [out as i64, columns as i64] {
            return Err(format!(
                "tensor `{}` says {stored:?}, but config.json asks for {shape:?}",
                said.name
            ));
        }
    }
    let (bits, tens) = bits(module, codes, shape)?;
    let scales = module.tensor(".weight_scale")?;
    let (group, groups) = group(module, &scales, shape)?;
    let zeros = match module.find(".weight_zero_point") {
        None => Zeros::Middle,
        Some(zeros) if zeros.stored == Type::I32 => {
            let zeros = zeros.shaped(&[(out * bits).div_ceil(32), groups], &module.codes)?;
            Zeros::Codes(zero_points(&zeros.words()?, bits, [out, groups]))
        }
        Some(zeros) => offsets(&zeros, bits, out * groups)?,
    };
    let stride = codes.shape[1] * 4;
    let (stride, place) = match tens {
        false => (stride, codes.place()?),
        true => ((columns * 3).div_ceil(8), Bytes::memory(of_tens(&codes.words()?, codes.shape[1], columns))),
    };
    let grouped = Grouped {
        shape,
        bits,
        group,
        codes: place,
        stride,
        scales: scales.scales()?.spread(out)?,
        zeros,
        order: None,
    };
    match module.find(".weight_g_idx") {
        Some(index) if index.integers()?.first() != Some(&-1) => {
            grouped.by_index(&index.shaped(&[columns], &module.codes)?)
        }
        _ => Ok(Stored::Codes(grouped)),
    }
}

/// `int-quantized`: int8, whatever the bits.
fn whole(module: &Module<'_>, codes: &Tensor<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let [out, columns] = shape;
    if codes.shape != shape {
        return Err(format!(
            "tensor `{}` is {:?}, but config.json asks for {shape:?}",
            codes.name, codes.shape
        ));
    }
    let scales = module.tensor(".weight_scale")?;
    let (group, groups) = group(module, &scales, shape)?;
    let zeros = match module.find(".weight_zero_point") {
        None => Zeros::Middle,
        Some(zeros) => offsets(&zeros, 8, out * groups)?,
    };
    let mut bytes = codes.bytes()?;
    bytes.iter_mut().for_each(|code| *code ^= 0x80);
    Ok(Stored::Codes(Grouped {
        shape,
        bits: 8,
        group,
        codes: Bytes::memory(bytes),
        stride: columns,
        scales: scales.scales()?.spread(out)?,
        zeros,
        order: None,
    }))
}

/// NVFP4 and MXFP4: two FP4 numbers a byte, which are halves of whole numbers; a scale for 16 or 32.
fn fp4(module: &Module<'_>, codes: &Tensor<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let [out, columns] = shape;
    let misfit = |tensor: &Tensor<'_>| {
        Err(format!("tensor `{}` is {:?}, no part of {shape:?}", tensor.name, tensor.shape))
    };
    if codes.shape != [out, columns / 2] || columns % 2 != 0 {
        return misfit(codes);
    }
    let scale = module.tensor(".weight_scale")?;
    let groups = match *scale.shape {
        [rows, groups] if rows == out && groups > 0 && columns % groups == 0 => groups,
        _ => return misfit(&scale),
    };
    let global = module.find(".weight_global_scale");
    let powers = matches!(scale.stored, Type::U8 | Type::F8_E8M0);
    if powers && columns == groups * mxfp4::GROUP && global.is_none() && !module.transposed {
        return Ok(Stored::Blocks { shape: shape.to_vec(), blocks: mxfp4::blocks(codes, &scale, shape)? });
    }
    let divisor = match global {
        Some(all) => match all.floats()?[..] {
            [divisor] if divisor != 0.0 => divisor,
            _ => return misfit(&all),
        },
        None => 1.0,
    };
    let scales: Vec<u8> =
        factors(&scale)?.iter().flat_map(|scale| (scale / divisor / 2.0).to_le_bytes()).collect();
    let values = Codebook::E2m1.values().map(|value| value.cast_unsigned() ^ 128);
    let code = |code: u8| values[usize::from(code)];
    let bytes = codes.bytes()?.into_iter().flat_map(|pair| [code(pair & 15), code(pair >> 4)]).collect();
    Ok(Stored::Codes(Grouped {
        shape,
        bits: 8,
        group: columns / groups,
        codes: Bytes::memory(bytes),
        stride: columns,
        scales: Scales { dtype: Dtype::F32, bytes: Bytes::memory(scales), shape: vec![out, groups] },
        zeros: Zeros::Middle,
        order: None,
    }))
}

/// The columns and the number of groups that share a scale: `[out, groups]`, `[out, 1]`, or one scale of all.
fn group(
    module: &Module<'_>,
    scales: &Tensor<'_>,
    [out, columns]: [usize; 2],
) -> Result<(usize, usize), String> {
    let said: Vec<i64> = groups(&module.published.config)
        .filter_map(|group| group["weights"]["group_size"].as_i64())
        .filter(|size| *size > 0)
        .collect();
    let misfit = || {
        Err(format!(
            "tensor `{}` is {:?}, which gives no groups of [{out}, {columns}] that `group_size` {said:?} of \
             `quantization_config` names",
            scales.name, scales.shape
        ))
    };
    match *scales.shape {
        [1] | [] | [1, 1] => Ok((columns, 1)),
        [rows] | [rows, 1] if rows == out => Ok((columns, 1)),
        [rows, groups] if rows == out => {
            let fits = |size: &&i64| columns.div_ceil(**size as usize) == groups;
            match said.iter().find(fits) {
                Some(size) => Ok((*size as usize, groups)),
                None => misfit(),
            }
        }
        _ => misfit(),
    }
}

/// The bits of a code, and whether a word holds ten of three bits, as older releases wrote them.
fn bits(
    module: &Module<'_>,
    codes: &Tensor<'_>,
    [out, columns]: [usize; 2],
) -> Result<(usize, bool), String> {
    let said = groups(&module.published.config).filter_map(|group| group["weights"]["num_bits"].as_u64());
    let said: Vec<usize> = said.filter_map(|bits| usize::try_from(bits).ok()).collect();
    let dense = |bits: usize| codes.shape == [out, (columns * bits).div_ceil(32)];
    let tens = codes.shape == [out, columns.div_ceil(10)];
    for bits in [4, 8, 3, 2] {
        if said.contains(&bits) && dense(bits) {
            return Ok((bits, false));
        }
    }
    match said.contains(&3) && tens {
        true => Ok((3, true)),
        false => Err(format!(
            "tensor `{}` is {:?}, which is not [{out}, {columns}] in `num_bits` {said:?} of `quantization_config`",
            codes.name, codes.shape
        )),
    }
}

/// Rows of codes of three bits, of words that hold ten each.
fn of_tens(words: &[u32], words_a_row: usize, columns: usize) -> Vec<u8> {
    let stride = (columns * 3).div_ceil(8);
    let mut rows = vec![0; words.len() / words_a_row * stride];
    for (from, into) in words.chunks_exact(words_a_row).zip(rows.chunks_exact_mut(stride)) {
        pack((0..columns).map(|at| (from[at / 10] >> (at % 10 * 3) & 7) as u8), 3, into);
    }
    rows
}

/// Zero points `[out, groups]` of words that are packed along the outputs `[out · bits / 32, groups]`.
fn zero_points(words: &[u32], bits: usize, [out, groups]: [usize; 2]) -> Arc<[u8]> {
    let columns: Vec<Vec<u8>> = (0..groups)
        .map(|group| words.iter().skip(group).step_by(groups).flat_map(|word| word.to_le_bytes()).collect())
        .collect();
    (0..out * groups).map(|at| code(&columns[at % groups], bits, at / groups)).collect()
}

/// Zero points that are stored as the values that stand for zero.
fn offsets(zeros: &Tensor<'_>, bits: usize, count: usize) -> Result<Zeros, String> {
    let values = zeros.integers()?;
    let middle = 1_i64 << (bits - 1);
    let codes: Option<Vec<u8>> = values
        .iter()
        .map(|zero| {
            u8::try_from(zero.saturating_add(middle)).ok().filter(|code| i64::from(*code) < 2 * middle)
        })
        .collect();
    let codes = codes.ok_or_else(|| format!("tensor `{}` holds more than {bits} bits", zeros.name))?;
    match codes.len() {
        length if length == count => Ok(Zeros::Codes(codes.into())),
        1 => Ok(Zeros::Codes(vec![codes[0]; count].into())),
        other => Err(format!("tensor `{}` has {other} zero points, not {count}", zeros.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_values_and_half_the_range() {
        let row = 0x7654_3210_u32.to_le_bytes();
        let values: Vec<i32> = (0..8).map(|at| i32::from(code(&row, 4, at)) - 8).collect();
        assert_eq!(values, [-8, -7, -6, -5, -4, -3, -2, -1]);
    }

    #[test]
    fn zero_points_are_packed_along_the_outputs() {
        // -8, 7, then zeros.
        assert_eq!(*zero_points(&[0x8888_88f0], 4, [8, 1]), [0, 15, 8, 8, 8, 8, 8, 8]);
        assert_eq!(*zero_points(&[0x0000_0021, 0x0000_0043], 4, [2, 2]), [1, 3, 2, 4]);
    }

    #[test]
    fn older_releases_put_ten_codes_of_three_bits_into_a_word() {
        let words = [0o76_5432_1076, 0o1, 0o11_1111_1111, 0o7];
        let rows = of_tens(&words, 2, 11);
        let codes = |row: usize| (0..11).map(|at| code(&rows[row * 5..], 3, at)).collect::<Vec<_>>();
        assert_eq!(codes(0), [6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 1]);
        assert_eq!(codes(1), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7]);
    }
}
