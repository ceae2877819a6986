//! The numbers of a layer, as configurations list them.

use serde::{Deserialize, Deserializer, Serialize};

/// The numbers of a layer in their order, of which those that are truth values are 0 or 1: `[32, 64, 1, true]`
/// (`resnet_configs` of `UVDocBackboneConfig`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayerNumbers(pub Vec<usize>);

impl LayerNumbers {
    /// The numbers, where there are as many.
    pub fn read<const N: usize>(&self) -> Option<[usize; N]> {
        self.0.as_slice().try_into().ok()
    }
}

impl<'de> Deserialize<'de> for LayerNumbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a whole number or a truth value")]
        enum Number {
            Truth(bool),
            Whole(usize),
        }
        let numbers = Vec::<Number>::deserialize(deserializer)?;
        let whole = |number| match number {
            Number::Truth(truth) => usize::from(truth),
            Number::Whole(number) => number,
        };
        Ok(Self(numbers.into_iter().map(whole).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_are_numbers() {
        let read = |text: &str| serde_json::from_str::<LayerNumbers>(text).map_err(|error| error.to_string());
        let numbers = read("[32, 64, 1, true]").unwrap();
        assert_eq!(numbers.read(), Some([32, 64, 1, 1]));
        assert_eq!(numbers.read::<3>(), None);
        assert_eq!(serde_json::to_string(&numbers).unwrap(), "[32,64,1,1]");
        assert!(read("[32, -1]").unwrap_err().contains("expected a whole number or a truth value"));
    }
}
