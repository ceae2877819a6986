//! Ids of tokens.

use serde::{Deserialize, Deserializer, Serialize};

/// Ids of tokens: `2`, `[2, 3]`, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenIds(pub Vec<usize>);

impl<'de> Deserialize<'de> for TokenIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected the id of a token, or a list of them")]
        enum Form {
            One(usize),
            Many(Vec<usize>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(id) => vec![id],
            Form::Many(ids) => ids,
        }))
    }
}
