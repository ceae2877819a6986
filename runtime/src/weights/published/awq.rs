//! AWQ (`AutoAWQ`, `version` gemm): `qweight` int32 `[in, out / 8]`, eight columns of the outputs a word, in their own order.

use std::sync::Arc;

use safetensors::Dtype as Type;
use serde_json::Value as Json;

use super::grouped::Grouped;
use super::{Format, Module, Stored};
use crate::weights::Bytes;
use crate::weights::Zeros;

pub(super) static FORMAT: Format =
    Format { name: "awq", codes: &[".qweight"], others: &[".qzeros", ".scales"], refuses, read };

/// The output that each four bits of a word, from the low ones, belong to.
const COLUMNS: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

fn refuses(config: &Json) -> Option<String> {
    let version = config["version"].as_str().unwrap_or("gemm").to_lowercase();
    let bits = ["bits", "w_bit"].iter().find_map(|name| config[*name].as_u64()).unwrap_or(4);
    if version != "gemm" {
        return Some(format!("`version` `{version}`"));
    }
    if config["zero_point"].as_bool() == Some(false) {
        return Some("`zero_point` false".to_owned());
    }
    (bits != 4).then(|| format!("`bits` {bits}"))
}

fn read(module: &Module<'_>) -> Result<Stored, String> {
    let shape = module.inner_shape()?;
    let [out, columns] = shape;
    if out % 8 != 0 || columns % 8 != 0 {
        return Err(format!(
            "tensor `{}` is of [{out}, {columns}], which eights do not divide",
            module.codes
        ));
    }
    let group = match module.published.number(&["group_size", "q_group_size"]) {
        Some(said) if said > 0 => said as usize,
        _ => columns,
    };
    let groups = columns.div_ceil(group);
    let why = format!("[{out}, {columns}] in groups of {group}");
    let words = module.codes()?.is(&[Type::I32])?.shaped(&[columns, out / 8], &why)?;
    let zeros = module.tensor(".qzeros")?.is(&[Type::I32])?.shaped(&[groups, out / 8], &why)?;
    let scales = module.tensor(".scales")?.shaped(&[groups, out], &why)?;
    Ok(Stored::Codes(Grouped {
        shape,
        bits: 4,
        group,
        codes: Bytes::memory(rows(&words.words()?, columns, out / 8)),
        stride: columns / 2,
        scales: scales.scales()?.transposed(&scales.name)?,
        zeros: Zeros::Codes(zero_points(&zeros.words()?, groups, out)),
        order: None,
    }))
}

/// Rows of codes `[out, in]` of words `[in, out / 8]`.
fn rows(words: &[u32], columns: usize, words_a_row: usize) -> Vec<u8> {
    /// Words beside each other that are taken apart at once.
    const TILE: usize = 16;
    let stride = columns / 2;
    let mut rows = vec![0; words.len() * 4];
    for column in (0..columns).step_by(8) {
        for first in (0..words_a_row).step_by(TILE) {
            let width = TILE.min(words_a_row - first);
            let mut tile = [[0_u32; TILE]; 8];
            for (index, line) in tile.iter_mut().enumerate() {
                let start = (column + index) * words_a_row + first;
                line[..width].copy_from_slice(&words[start..start + width]);
            }
            for (nibble, output) in COLUMNS.into_iter().enumerate() {
                let mut codes = [0_u32; TILE];
                for (index, line) in tile.iter().enumerate() {
                    for (code, word) in codes.iter_mut().zip(line) {
                        *code |= (word >> (4 * nibble) & 15) << (4 * index);
                    }
                }
                for (word, code) in codes[..width].iter().enumerate() {
                    let into = ((first + word) * 8 + output) * stride + column / 2;
                    rows[into..into + 4].copy_from_slice(&code.to_le_bytes());
                }
            }
        }
    }
    rows
}

/// Zero points `[out, groups]` of words `[groups, out / 8]`.
fn zero_points(words: &[u32], groups: usize, out: usize) -> Arc<[u8]> {
    let mut zeros = vec![0; groups * out];
    for (at, word) in words.iter().enumerate() {
        let (group, first) = (at / (out / 8), at % (out / 8) * 8);
        for (nibble, output) in COLUMNS.into_iter().enumerate() {
            zeros[(first + output) * groups + group] = (word >> (4 * nibble) & 15) as u8;
        }
    }
    zeros.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_a_word_are_in_their_own_order() {
        // Columns 0..7 of one input are 0x75316420.
        let mut words = vec![0_u32; 8];
        words[3] = 0x7531_6420;
        let rows = rows(&words, 8, 1);
        let code = |out: usize, column: usize| rows[out * 4 + column / 2] >> (column % 2 * 4) & 15;
        assert_eq!((0..8).map(|out| code(out, 3)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!((0..8).all(|out| code(out, 2) == 0));
        assert_eq!(*zero_points(&[0x7531_6420, 0], 2, 8), [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0]);
    }

    #[test]
    fn many_words_are_taken_apart_in_tiles() {
        let words: Vec<u32> = (0..16 * 21_u32).map(|at| at.wrapping_mul(0x9E37_79B9)).collect();
        let rows = rows(&words, 16, 21);
        for column in 0..16 {
            for out in 0..168 {
                let nibble = COLUMNS.iter().position(|&output| output == out % 8).unwrap();
                let want = words[column * 21 + out / 8] >> (4 * nibble) & 15;
                let got = rows[out * 8 + column / 2] >> (column % 2 * 4) & 15;
                assert_eq!(u32::from(got), want);
            }
        }
    }
}
