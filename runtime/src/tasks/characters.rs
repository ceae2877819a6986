//! Text by character positions, in which offsets count.

/// A text whose characters can be addressed by number.
pub(super) struct Characters<'a> {
    text: &'a str,
    /// The byte at which each character begins, and the text's length.
    bytes: Vec<usize>,
}

impl<'a> Characters<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let bytes = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
        Self { text, bytes }
    }

    /// From one character to another, within the text.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        let last = self.bytes.len() - 1;
        let (start, end) = (start.min(last), end.min(last));
        if start >= end { "" } else { &self.text[self.bytes[start]..self.bytes[end]] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_characters_not_bytes() {
        let text = Characters::new("Zürich 東京 😀!");
        assert_eq!(text.slice(0, 6), "Zürich");
        assert_eq!(text.slice(7, 9), "東京");
        assert_eq!(text.slice(10, 11), "😀");
        assert_eq!(text.slice(11, 99), "!");
        assert_eq!(text.slice(5, 2), "");
    }
}
