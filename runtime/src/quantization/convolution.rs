//! Convolutions' weights as codes of 8 bits, with one scale for each channel of the result.

use super::making::{numbers, refused};
use super::{BlockQuantized, Zeros};
use crate::weights::{Bytes, WeightData};
use crate::{Dtype, Result};

/// Bytes of a weight that are read at a time.
const STEP: usize = 1 << 20;

/// Quantizes a weight `[out, ..]` symmetrically: a row's number farthest from zero is 127 or −127.
///
/// # Errors
/// When its file cannot be read, or it holds what is no finite number.
pub(crate) fn quantize_by_row(weight: &WeightData) -> Result<BlockQuantized> {
    let Some((&out, window)) = weight.shape.split_first() else {
        return Err(refused(weight, "has no channels"));
    };
    let columns: usize = window.iter().product();
    let row_bytes = columns * weight.dtype.size();
    let (mut codes, mut scales) = (Vec::with_capacity(out * columns), Vec::with_capacity(out));
    let step = (STEP / row_bytes.max(1)).max(1);
    for first in (0..out).step_by(step) {
        let rows = numbers(weight, first * row_bytes, step.min(out - first) * row_bytes)?;
        rows.chunks_exact(columns.max(1)).try_for_each(|row| by_row(weight, row, &mut codes, &mut scales))?;
    }
    Ok(BlockQuantized {
        shape: [out, columns],
        batch: None,
        bits: 8,
        group: columns,
        codes: Bytes::memory(codes),
        scale_dtype: Dtype::F32,
        scales: Bytes::memory(Dtype::F32.encoded(&scales)),
        outer: None,
        zeros: Zeros::Middle,
        order: None,
    })
}

/// The codes of a row, and its scale.
fn by_row(weight: &WeightData, row: &[f32], codes: &mut Vec<u8>, scales: &mut Vec<f32>) -> Result<()> {
    if !row.iter().all(|x| x.is_finite()) {
        return Err(refused(weight, "holds what is no finite number"));
    }
    let most = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    // A row of zeros, or of numbers too small to divide by, has codes of zero.
    let scale = if most / 127.0 < f32::MIN_POSITIVE { 0.0 } else { most / 127.0 };
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let code = |x: &f32| ((x * inverse).round_ties_even().clamp(-127.0, 127.0) + 128.0) as u8;
    codes.extend(row.iter().map(code));
    scales.push(scale);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(values: &[f32]) -> WeightData {
        WeightData {
            dtype: Dtype::F32,
            shape: vec![2, 2, 2],
            stored_as: "conv.weight".to_owned(),
            bytes: Bytes::memory(Dtype::F32.encoded(values)),
        }
    }

    #[test]
    fn the_farthest_number_of_a_row_is_127() {
        // Steps of a half, of which 0.3 is nearest to one and 0.25 between two, and a row of zeros.
        let made = quantize_by_row(&weight(&[-63.5, 0.3, 0.25, 63.0, 0.0, 0.0, 0.0, 0.0])).unwrap();
        assert_eq!(made.codes.read().unwrap()[..], [1, 129, 128, 254, 128, 128, 128, 128]);
        assert_eq!(made.dequantize().unwrap(), [-63.5, 0.5, 0.0, 63.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((made.shape, made.group, made.bits), ([2, 4], 4, 8));
        assert_eq!(made.size(), 8 + 2 * 4);
    }

    #[test]
    fn what_is_not_finite_is_refused_by_name() {
        let error = quantize_by_row(&weight(&[0.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`conv.weight` holds what is no finite number"), "{text}");
    }
}
