//! torchao's safetensors: `_weight_qdata` with `_weight_scale` and `_weight_zero_point`, of int4, int8 and float8.

use std::sync::Arc;

use safetensors::Dtype as Type;

use super::fp8::scaled;
use super::grouped::Grouped;
use super::module::Tensor;
use super::{Format, Module, Stored};
use crate::weights::Bytes;
use crate::weights::Zeros;

pub(super) static FORMAT: Format = Format {
    name: "torchao",
    codes: &["._weight_qdata"],
    others: &["._weight_scale", "._weight_zero_point", "._weight_act_pre_scale"],
    refuses: |_| None,
    read,
};

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let codes = module.codes()?;
    let [out, columns] = module.inner_shape()?;
    if let Some(scale) = module.find("._weight_act_pre_scale") {
        return Err(format!("tensor `{}` scales activations, which is not read", scale.name));
    }
    let scales = module.tensor("._weight_scale")?;
    match (codes.stored, codes.shape) {
        (Type::F8_E4M3, _) => scaled(&codes, &scales, None),
        (Type::U8 | Type::I8, &[rows, bytes]) if rows == out && bytes * 2 == columns => {
            nibbles(module, &codes, &scales)
        }
        (Type::I8, &[rows, whole]) if rows == out && whole == columns => bytes(module, &codes, &scales),
        (stored, shape) => Err(format!(
            "tensor `{}` is {stored:?} {shape:?}, a packing of [{out}, {columns}] that is not read: int4 plain, int8 and \
             float8 are",
            codes.name
        )),
    }
}

/// `Int4Tensor`: signed, the first in the low bits; `w = code · scale + zero`, both `[groups, out]`.
fn nibbles(module: &Module<'_>, codes: &Tensor<'_>, scales: &Tensor<'_>) -> Result<Stored, String> {
    let [out, columns] = module.inner_shape()?;
    let &[groups, rows] = scales.shape else {
        return Err(format!("tensor `{}` is {:?}, not a matrix", scales.name, scales.shape));
    };
    if rows != out || groups == 0 || columns % groups != 0 {
        return Err(format!(
            "tensor `{}` is {:?}, no groups of [{out}, {columns}]",
            scales.name, scales.shape
        ));
    }
    let scales = scales.scales()?.transposed(&scales.name)?;
    let zeros = module.tensor("._weight_zero_point")?.shaped(&[groups, out], &codes.name)?.floats()?;
    let zeros: Vec<f32> = (0..out * groups).map(|at| zeros[at % groups * out + at / groups]).collect();
    let zeros = match zeros.iter().all(|zero| *zero == 0.0) {
        true => Zeros::Middle,
        false => {
            let below = zeros.iter().zip(scales.single()?).map(|(zero, scale)| zero - 8.0 * scale);
            Zeros::Minimums(below.collect())
        }
    };
    let mut packed = codes.bytes()?;
    packed.iter_mut().for_each(|pair| *pair ^= 0x88);
    Ok(Stored::Codes(Grouped {
        shape: [out, columns],
        bits: 4,
        group: columns / groups,
        codes: Bytes::memory(packed),
        stride: columns / 2,
        scales,
        zeros,
        order: None,
    }))
}

/// `IntxUnpackedToInt8Tensor` and `Int8Tensor`: `w = (code − zero) · scale`, by groups of a row or by rows.
fn bytes(module: &Module<'_>, codes: &Tensor<'_>, scales: &Tensor<'_>) -> Result<Stored, String> {
    let [out, columns] = module.inner_shape()?;
    let groups = match *scales.shape {
        [rows] if rows == out => 1,
        [rows, groups] if rows == out && groups > 0 && columns % groups == 0 => groups,
        _ => {
            return Err(format!(
                "tensor `{}` is {:?}, no groups of [{out}, {columns}]",
                scales.name, scales.shape
            ));
        }
    };
    let zeros = match module.find("._weight_zero_point") {
        None => Zeros::Middle,
        Some(zeros) => {
            let offsets = zeros.integers()?;
            let codes: Option<Arc<[u8]>> =
                offsets.iter().map(|zero| u8::try_from(zero.saturating_add(128)).ok()).collect();
            Zeros::Codes(codes.ok_or_else(|| format!("tensor `{}` is of more than 8 bits", zeros.name))?)
        }
    };
    let mut bytes = codes.bytes()?;
    bytes.iter_mut().for_each(|code| *code ^= 0x80);
    Ok(Stored::Codes(Grouped {
        shape: [out, columns],
        bits: 8,
        group: columns / groups,
        codes: Bytes::memory(bytes),
        stride: columns,
        scales: scales.scales()?,
        zeros,
        order: None,
    }))
}
