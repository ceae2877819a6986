//! Tokens of a vocabulary that are codes of images.

/// The token of each code of an image (`ChameleonImageVocabularyMapping.img2bpe`), by names that spell the code's digits in letters:
/// `IMGIMGBAZ` is 10. 0 for codes without a name.
pub fn code_tokens<'a>(names: impl Iterator<Item = (&'a String, &'a usize)>, codes: usize) -> Vec<i64> {
    let mut tokens = vec![0; codes];
    for (name, token) in names {
        let Some(letters) = name.strip_prefix("IMGIMG").and_then(|rest| rest.strip_suffix('Z')) else {
            continue;
        };
        let digit = |letter: u8| {
            letter.is_ascii_uppercase().then(|| usize::from(letter - b'A')).filter(|digit| *digit < 10)
        };
        let code = letters
            .bytes()
            .try_fold(0_usize, |code, letter| code.checked_mul(10)?.checked_add(digit(letter)?));
        if let Some(place) = code.and_then(|code| tokens.get_mut(code)) {
            *place = i64::try_from(*token).unwrap_or_default();
        }
    }
    tokens
}

/// The token of each code of an image (`Emu3ImageVocabularyMapping.img2bpe`), by names that end with its six digits:
/// `<|visual token 000010|>` is 10. 0 for codes without a name.
pub fn visual_tokens<'a>(names: impl Iterator<Item = (&'a String, &'a usize)>, codes: usize) -> Vec<i64> {
    let mut tokens = vec![0; codes];
    for (name, token) in names.filter(|(name, _)| name.starts_with("<|visual token")) {
        let digits = name.len().checked_sub(8).and_then(|first| name.get(first..name.len() - 2));
        let code = digits.and_then(|digits| digits.parse::<usize>().ok());
        if let Some(place) = code.and_then(|code| tokens.get_mut(code)) {
            *place = i64::try_from(*token).unwrap_or_default();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_of_codes_end_with_their_digits() {
        let names =
            [("<|visual token 000010|>", 8), ("<|visual token 000001|>", 7), ("<|extra_200|>", 9), ("|>", 3)];
        let names: BTreeMap<String, usize> = names.map(|(name, token)| (name.to_owned(), token)).into();
        assert_eq!(visual_tokens(names.iter(), 11), [0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 8]);
        assert_eq!(visual_tokens(names.iter(), 2), [0, 7]);
    }

    #[test]
    fn letters_are_digits() {
        let names = [
            ("IMGIMGAZ", 7),
            ("IMGIMGBAZ", 8),
            ("IMGIMGCZ", 9),
            ("IMGIMGKZ", 1),
            ("IMGIMGBBZ", 2),
            ("<image>", 3),
        ];
        let names: BTreeMap<String, usize> = names.map(|(name, token)| (name.to_owned(), token)).into();
        let tokens = code_tokens(names.iter(), 11);
        assert_eq!(tokens, [7, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8]);
    }
}
