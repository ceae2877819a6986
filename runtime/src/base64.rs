//! Base 64, in which `tokenizer.json` holds bytes.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text, filled up to whole groups of four letters.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().chain(&[0, 0]).take(3).fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() { letter.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_base_64() {
        assert_eq!([&b"abc"[..], b"ab", b"a"].map(encode), ["YWJj", "YWI=", "YQ=="]);
    }
}
