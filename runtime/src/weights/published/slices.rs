//! Codes of a matrix that is cut along its rows into slices, of which each byte holds one code each (HQQ, quanto, BitNet).

use super::Stored;
use super::grouped::{Grouped, pack};
use super::module::Scales;
use crate::Dtype;
use crate::weights::Bytes;
use crate::weights::Zeros;

/// The codes, row after row, of packed `[rows / slices, columns]`; a slice's codes are at the bits that `shift` gives.
pub(super) fn unpacked(bytes: &[u8], bits: usize, count: usize, shift: impl Fn(usize) -> usize) -> Vec<u8> {
    let mask = ((1_u16 << bits) - 1) as u8;
    let slices = (0..8 / bits).map(shift);
    slices.flat_map(|shift| bytes.iter().map(move |byte| byte >> shift & mask)).take(count).collect()
}

/// Groups of the elements of `[out, in]`, row after row, as blocks or values: `w = code · scale + minimum`.
pub(super) struct Flat {
    pub shape: [usize; 2],
    pub bits: usize,
    /// Row after row.
    pub codes: Vec<u8>,
    pub scales: Vec<f32>,
    /// What a code of zero stands for, or the code that stands for zero.
    pub zeros: Zeros,
}

impl Flat {
    /// In groups of rows where these are cut into whole groups, else the values.
    pub(super) fn stored(self, name: &str) -> Result<Stored, String> {
        let [out, columns] = self.shape;
        let count = out * columns;
        let groups = self.scales.len();
        if groups == 0 || self.codes.len() != count || !count.is_multiple_of(groups) {
            return Err(format!(
                "`{name}` has {groups} scales and {} codes for [{out}, {columns}]",
                self.codes.len()
            ));
        }
        let group = count / groups;
        if !columns.is_multiple_of(group) || !(columns * self.bits).is_multiple_of(8) {
            let value = |at: usize| {
                let group = at / group;
                self.zeros.value(self.codes[at], self.bits, self.scales[group], group)
            };
            let values = (0..count).map(value).collect();
            return Ok(Stored::Values { shape: self.shape.to_vec(), values });
        }
        let mut codes = vec![0; count * self.bits / 8];
        pack(self.codes.into_iter(), self.bits, &mut codes);
        let scales = self.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        Ok(Stored::Codes(Grouped {
            shape: self.shape,
            bits: self.bits,
            group,
            codes: Bytes::memory(codes),
            stride: columns * self.bits / 8,
            scales: Scales {
                dtype: Dtype::F32,
                bytes: Bytes::memory(scales),
                shape: vec![out, groups / out],
            },
            zeros: self.zeros,
            order: None,
        }))
    }
}
