//! quanto: `weight._data._data` u8, slices of rows of groups in one byte, the first in the low bits; 8 bits as they are.

use safetensors::Dtype as Type;

use super::fp8::scaled;
use super::slices::{Flat, unpacked};
use super::{Format, Module, Stored};
use crate::weights::Zeros;

pub(super) static FORMAT: Format = Format {
    name: "quanto",
    codes: &[".weight._data._data", ".weight._data"],
    others: &[".weight._scale", ".weight._shift", ".input_scale", ".output_scale"],
    refuses: |_| None,
    read,
};

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let count = shape[0] * shape[1];
    let codes = module.codes()?;
    let scale = module.tensor(".weight._scale")?;
    if codes.stored == Type::F8_E4M3 {
        return scaled(&codes, &scale, None);
    }
    let codes = codes.is(&[Type::U8, Type::I8])?;
    let bytes = codes.bytes()?;
    let mut scales = scale.floats()?;
    if codes.stored == Type::I8 {
        if scales.len() == 1 {
            scales = vec![scales[0]; shape[0]];
        }
        let codes = bytes.iter().map(|code| code ^ 0x80).collect();
        return Flat { shape, bits: 8, codes, scales, zeros: Zeros::Middle }.stored(&module.codes);
    }
    let groups = scales.len();
    if groups == 0 || count % groups != 0 {
        return Err(format!("tensor `{}` is {:?}, no groups of {shape:?}", scale.name, scale.shape));
    }
    // The last slice of an odd number of rows is filled up.
    let packed = |bits: usize| (groups.div_ceil(8 / bits)) * (count / groups);
    let bits = [4, 2].into_iter().find(|&bits| bytes.len() == packed(bits)).ok_or_else(|| {
        format!("tensor `{}` is {:?}, no packing of {shape:?} in {groups} groups", codes.name, codes.shape)
    })?;
    let codes = unpacked(&bytes, bits, count, |slice| bits * slice);
    let shift = module.tensor(".weight._shift")?;
    let zeros = match shift.stored {
        Type::U8 | Type::I8 | Type::I32 | Type::I64 => {
            let shifts = shift.integers()?;
            Zeros::Minimums(
                shifts.iter().zip(&scales).map(|(shift, scale)| -(*shift as f32) * scale).collect(),
            )
        }
        _ => Zeros::Minimums(shift.floats()?.iter().map(|shift| -shift).collect()),
    };
    match &zeros {
        Zeros::Minimums(minimums) if minimums.len() == groups => {
            Flat { shape, bits, codes, scales, zeros }.stored(&module.codes)
        }
        _ => Err(format!("tensor `{}` is {:?}, but there are {groups} groups", shift.name, shift.shape)),
    }
}
