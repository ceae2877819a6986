//! What typed configurations are made of besides numbers and texts, and what older files say otherwise.

mod conv_block;
mod depth_bins;
mod image_size;
mod layer_indices;
mod layer_numbers;
mod layer_overrides;
mod lists;
mod names;
mod per_layer;
mod ratio;
mod relative_bias;
mod string_set;
mod token_ids;

use serde::{Deserialize, Deserializer};

pub use conv_block::ConvBlock;
pub use depth_bins::DepthBins;
pub use image_size::{ImageSize, square_size};
pub use layer_indices::LayerIndices;
pub use layer_numbers::LayerNumbers;
pub use layer_overrides::LayerOverrides;
pub use lists::{length, min_length, words};
pub use names::{keep_first, model_type};
pub use per_layer::{PerLayer, period};
pub use ratio::Ratio;
pub use relative_bias::{RelativeBias, RelativeBiasKind};
pub use serde_json::Value as Json;
pub use string_set::StringSet;
pub use token_ids::TokenIds;

use crate::Configuration;

/// For fields in which `null` says what a missing field says.
///
/// # Errors
/// As the field's own type has them.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A configuration that is one of several, whose errors name the field within it.
///
/// # Errors
/// As the configuration's own type has them.
pub fn variant<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    serde_path_to_error::deserialize(deserializer)
        .map_err(|e| serde::de::Error::custom(format!("{}: {}", e.path(), e.inner())))
}

/// Brings the configuration in a field into the form that its type reads.
pub fn prepare<C: Configuration>(raw: &mut Json, field: &str) {
    if let Some(within) = raw.get_mut(field).filter(|within| within.is_object()) {
        C::prepare(within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_token_ids_have_several_forms() {
        let pair = |text: &str| serde_json::from_str::<ImageSize>(text);
        assert_eq!(pair("224").unwrap(), ImageSize::square(224));
        assert_eq!(pair("[2, 3]").unwrap(), ImageSize { height: 2, width: 3 });
        assert_eq!(pair(r#"{"height": 2, "width": 3}"#).unwrap(), ImageSize { height: 2, width: 3 });
        let error = pair("[1]").unwrap_err().to_string();
        assert_eq!(error, "expected a number, or a list or map of height and width");
        let size = |text: &str| square_size(&mut serde_json::Deserializer::from_str(text));
        assert_eq!((size("448").unwrap(), size("[14, 14]").unwrap()), (448, 14));
        let error = size("[14, 16]").unwrap_err().to_string();
        assert!(error.starts_with("expected height and width to be the same, not 14 and 16"), "{error}");
        let layers = |text: &str| period(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!((layers("4"), layers(r#""LLLG""#), layers("0")), (4, 4, 1));
        let tokens = |text: &str| serde_json::from_str::<TokenIds>(text).unwrap();
        assert_eq!((tokens("2"), tokens("[2, 3]")), (TokenIds(vec![2]), TokenIds(vec![2, 3])));
    }

    #[test]
    fn one_of_several_says_which_it_is_and_what_is_wrong_within() {
        #[derive(Debug, Deserialize)]
        struct Sizes {
            sizes: Vec<usize>,
        }
        #[derive(Debug, Deserialize)]
        #[serde(tag = "model_type", rename_all = "lowercase")]
        enum Text {
            #[serde(deserialize_with = "variant")]
            Llama(Sizes),
            #[serde(deserialize_with = "variant")]
            Gemma(Sizes),
        }
        let read = |text: &str| {
            let mut raw = serde_json::from_str(text).unwrap();
            (model_type(&mut raw, "llama"), serde_json::from_value::<Text>(raw).map_err(|e| e.to_string()))
        };
        for said in ["", r#""model_type": null, "#, r#""model_type": "llama", "#] {
            let (chosen, text) = read(&format!(r#"{{{said}"sizes": [1]}}"#));
            assert!(
                chosen == "llama" && matches!(text, Ok(Text::Llama(text)) if text.sizes == [1]),
                "{said}"
            );
        }
        let (chosen, text) = read(r#"{"model_type": "gemma", "sizes": [2]}"#);
        assert!(chosen == "gemma" && matches!(text, Ok(Text::Gemma(text)) if text.sizes == [2]));
        let problem = read(r#"{"model_type": "gemma", "sizes": [3, "x"]}"#).1.unwrap_err();
        assert_eq!(problem, "sizes[1]: invalid type: string \"x\", expected usize");
        let problem = read(r#"{"model_type": "opt"}"#).1.unwrap_err();
        assert_eq!(problem, "unknown variant `opt`, expected `llama` or `gemma`");
    }
}
