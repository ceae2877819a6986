//! Words in one text, or in a list.

use serde::{Deserialize, Deserializer, Serialize};

/// Words: `"c2p|p2c"`, `["c2p", "p2c"]`, or none; `true` is the word `true`, and `false` none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StringSet(pub Vec<String>);

impl StringSet {
    /// Whether a word is among them.
    pub fn contain(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }
}

impl<'de> Deserialize<'de> for StringSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected words, as a list or with `|` between them")]
        enum Form {
            None(()),
            Flag(bool),
            Text(String),
            List(Vec<String>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::None(()) | Form::Flag(false) => vec![],
            Form::Flag(true) => vec!["true".to_owned()],
            Form::Text(text) => text.to_lowercase().split('|').map(|word| word.trim().to_owned()).collect(),
            Form::List(words) => words,
        }))
    }
}
