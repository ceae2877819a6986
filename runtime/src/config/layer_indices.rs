//! States of a stack of layers, by number.

use serde::{Deserialize, Deserializer, Serialize};

/// States of a stack of layers: `-2`, or `[-2, 6]`. 0 is what goes into the first layer, -1 what comes out of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerIndices(pub Vec<i64>);

impl LayerIndices {
    /// Which states these are where there are so many layers, of which each gives one after that which goes in.
    ///
    /// # Errors
    /// What is wrong, when there is no such state or none is named.
    pub fn states(&self, layers: usize) -> Result<Vec<usize>, String> {
        if self.0.is_empty() {
            return Err("it names no layer".to_owned());
        }
        let state = |&index: &i64| {
            let counted = index + if index < 0 { layers as i64 + 1 } else { 0 };
            let state = usize::try_from(counted).ok().filter(|&state| state <= layers);
            state.ok_or_else(|| format!("it names layer {index}, but there are {layers} layers"))
        };
        self.0.iter().map(state).collect()
    }
}

impl<'de> Deserialize<'de> for LayerIndices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected the number of a layer, or a list of them")]
        enum Form {
            One(i64),
            Many(Vec<i64>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(layer) => vec![layer],
            Form::Many(layers) => layers,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_counted_from_either_end() {
        let states = |text: &str| serde_json::from_str::<LayerIndices>(text).unwrap().states(3);
        assert_eq!((states("-2"), states("[0, -1, 1]")), (Ok(vec![2]), Ok(vec![0, 3, 1])));
        assert_eq!(states("[1, -5]"), Err("it names layer -5, but there are 3 layers".to_owned()));
        assert_eq!(states("4"), Err("it names layer 4, but there are 3 layers".to_owned()));
        assert_eq!(states("[]"), Err("it names no layer".to_owned()));
    }
}
