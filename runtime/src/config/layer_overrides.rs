//! Fields that differ in some layers, as configurations list them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The fields of some layers that differ from those of all, by the index of the layer: `{"5": {"head_dim": 512}}`
/// (`PreTrainedConfig.per_layer_config`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct LayerOverrides(pub BTreeMap<usize, BTreeMap<String, usize>>);

impl LayerOverrides {
    /// What a field is in a layer, where that differs.
    pub fn get(&self, layer: usize, field: &str) -> Option<usize> {
        self.0.get(&layer)?.get(field).copied()
    }

    /// Refuses fields other than these, which nothing reads, and those that are 0.
    ///
    /// # Errors
    /// Names the layer and the field.
    pub fn check(&self, name: &str, known: &[&str]) -> Result<(), String> {
        for (layer, fields) in &self.0 {
            for (field, value) in fields {
                if !known.contains(&field.as_str()) {
                    let known = known.join(", ");
                    return Err(format!("{name}.{layer}.{field}: is not supported, expected one of {known}"));
                }
                if *value == 0 {
                    return Err(format!("{name}.{layer}.{field}: is 0, but must be at least 1"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LayerOverrides {
        serde_json::from_value(serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn layers_that_are_not_listed_are_as_all() {
        let overrides =
            read(r#"{"5": {"head_dim": 512}, "11": {"head_dim": 256, "num_key_value_heads": 1}}"#);
        let heads = [4, 5, 11].map(|layer| overrides.get(layer, "head_dim"));
        assert_eq!(heads, [None, Some(512), Some(256)]);
        assert_eq!(overrides.get(5, "num_key_value_heads"), None);
        assert_eq!(overrides.get(11, "num_key_value_heads"), Some(1));
    }

    #[test]
    fn what_nothing_reads_is_refused() {
        let known = ["head_dim", "num_key_value_heads"];
        let problem = |text: &str| read(text).check("per_layer_config", &known).unwrap_err();
        insta::assert_snapshot!(
            problem(r#"{"0": {"head_dim": 8}, "2": {"intermediate_size": 9}}"#),
            @"per_layer_config.2.intermediate_size: is not supported, expected one of head_dim, num_key_value_heads"
        );
        insta::assert_snapshot!(
            problem(r#"{"1": {"head_dim": 0}}"#),
            @"per_layer_config.1.head_dim: is 0, but must be at least 1"
        );
        assert_eq!(read("{}").check("per_layer_config", &known), Ok(()));
    }
}
