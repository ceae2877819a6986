//! BitNet b1.58: `weight` u8 `[out / 4, in]` of −1, 0 and 1, quarters of the rows in one byte, and one scale.

use safetensors::Dtype as Type;
use serde_json::Value as Json;

use super::slices::{Flat, unpacked};
use super::{Format, Module, Stored};
use crate::weights::Zeros;

pub(super) static FORMAT: Format = Format {
    name: "bitnet",
    codes: &[".weight"],
    others: &[".weight_scale"],
    refuses: |config: &Json| {
        (config["use_rms_norm"].as_bool() == Some(true)).then(|| "`use_rms_norm`".to_owned())
    },
    read,
};

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let [out, columns] = shape;
    let codes = module.codes()?.is(&[Type::U8])?.shaped(&[out.div_ceil(4), columns], "four rows a byte")?;
    let scale = module.tensor(".weight_scale")?.floats()?;
    let &[scale] = &scale[..] else {
        return Err(format!("tensor `{}.weight_scale` has {} scales, not one", module.stem, scale.len()));
    };
    // `AutoBitLinear` multiplies by the scale, `BitLinear` divides by it.
    let multiplies = module.published.config["linear_class"] == "autobitlinear";
    let scale = if multiplies { scale } else { 1.0 / scale };
    if !scale.is_finite() {
        return Err(format!("tensor `{}.weight_scale` is zero", module.stem));
    }
    let mut codes = unpacked(&codes.bytes()?, 2, out * columns, |slice| 2 * slice);
    if codes.contains(&3) {
        return Err(format!("tensor `{}` holds codes other than 0, 1 and 2", module.codes));
    }
    // Zero in the middle of the codes that kernels run.
    codes.iter_mut().for_each(|code| *code += 1);
    Flat { shape, bits: 2, codes, scales: vec![scale; out], zeros: Zeros::Middle }.stored(&module.codes)
}
