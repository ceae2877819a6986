//! What layers have each, or all alike.

use serde::{Deserialize, Deserializer, Serialize};

/// A size of each layer: `512` for all, or `[32, 64]`, one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PerLayer(pub Vec<usize>);

impl PerLayer {
    /// One for each of so many layers.
    ///
    /// # Errors
    /// What is wrong, when there are several and not as many as layers.
    pub fn of_layers(&self, layers: usize) -> Result<Vec<usize>, String> {
        match self.0.as_slice() {
            &[size] => Ok(vec![size; layers]),
            sizes if sizes.len() == layers => Ok(sizes.to_vec()),
            sizes => Err(format!("has {} entries, but there are {layers} layers", sizes.len())),
        }
    }
}

impl<'de> Deserialize<'de> for PerLayer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number, or a list of one for each layer")]
        enum Form {
            All(usize),
            Each(Vec<usize>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::All(size) => vec![size],
            Form::Each(sizes) => sizes,
        }))
    }
}

/// The period of a repeating pattern of layers: `4`, or `"LLLG"`, a letter for each (`sliding_window_pattern`); 0, which
/// stands for no pattern, is 1.
///
/// # Errors
/// When it is neither.
pub fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number of layers, or a letter for each")]
    enum Form {
        Layers(usize),
        Letters(String),
    }
    Ok(match Form::deserialize(deserializer)? {
        Form::Layers(layers) => layers.max(1),
        Form::Letters(letters) => letters.chars().count().max(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_that_of_all_layers_or_one_for_each() {
        let sizes = |text: &str| serde_json::from_str::<PerLayer>(text).unwrap().of_layers(3);
        assert_eq!((sizes("8"), sizes("[2, 4, 6]")), (Ok(vec![8; 3]), Ok(vec![2, 4, 6])));
        assert_eq!(sizes("[2, 4]"), Err("has 2 entries, but there are 3 layers".to_owned()));
        let error = serde_json::from_str::<PerLayer>("-1").unwrap_err().to_string();
        assert_eq!(error, "expected a number, or a list of one for each layer");
    }
}
