//! HQQ: `W_q` u8 of groups `[elements / group, group]`, slices of its rows in one byte, the first in the high bits.

use safetensors::Dtype as Type;

use super::slices::{Flat, unpacked};
use super::{Format, Module, Stored};
use crate::weights::Zeros;

pub(super) static FORMAT: Format = Format {
    name: "hqq",
    codes: &[".W_q"],
    others: &[
        ".scale",
        ".zero",
        ".nbits",
        ".group_size",
        ".axis",
        ".shape",
        ".packing",
        ".unpack_view_dtype",
        ".view_as_float",
        ".channel_wise",
        ".optimize",
        ".round_zero",
        ".compute_dtype",
        ".encoded_state_dict",
        ".offload_meta",
        ".stores_quant_config",
        ".quant_scale",
        ".quant_zero",
    ],
    refuses: |_| None,
    read,
};

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let count = shape[0] * shape[1];
    let codes = module.codes()?.is(&[Type::U8, Type::I32])?;
    let (scale, zero) = (module.tensor(".scale")?, module.tensor(".zero")?);
    // Of groups of columns (axis 0) there is a scale for each column of the codes.
    let across = matches!(scale.shape, [1, groups] if *groups > 1);
    let (scales, zeros) = (scale.floats()?, zero.floats()?);
    if scales.is_empty() || count % scales.len() != 0 || zeros.len() != scales.len() {
        let problem = format!(
            "tensors `{}` and `{}` are {:?} and {:?}",
            scale.name, zero.name, scale.shape, zero.shape
        );
        return Err(format!("{problem}, which gives no groups of {shape:?}"));
    }
    let bytes = codes.bytes()?;
    let (codes, bits) = match codes.stored {
        Type::I32 => (tens(&codes.words()?, count), 3),
        _ => match [8, 4, 2].into_iter().find(|bits| bytes.len() == count * bits / 8) {
            Some(bits) => (unpacked(&bytes, bits, count, |slice| 8 - bits * (slice + 1)), bits),
            None => {
                return Err(format!("tensor `{}` is {:?}, no packing of {shape:?}", codes.name, codes.shape));
            }
        },
    };
    if codes.len() != count {
        return Err(format!("tensor `{}` has {} codes for {shape:?}", module.codes, codes.len()));
    }
    if across {
        let of = |at: usize| (f32::from(codes[at]) - zeros[at % scales.len()]) * scales[at % scales.len()];
        return Ok(Stored::Values { shape: shape.to_vec(), values: (0..count).map(of).collect() });
    }
    let most = ((1_u16 << bits) - 1) as f32;
    let zeros = match zeros.iter().all(|zero| zero.fract() == 0.0 && (0.0..=most).contains(zero)) {
        true => Zeros::Codes(zeros.iter().map(|&zero| zero as u8).collect()),
        false => Zeros::Minimums(zeros.iter().zip(&scales).map(|(zero, scale)| -zero * scale).collect()),
    };
    Flat { shape, bits, codes, scales, zeros }.stored(&module.codes)
}

/// Codes of three bits, ten a word, tenths of the rows from the high bits on.
fn tens(words: &[u32], count: usize) -> Vec<u8> {
    let slices = (0..10).flat_map(|slice| words.iter().map(move |word| (word >> (27 - 3 * slice) & 7) as u8));
    slices.take(count).collect()
}
